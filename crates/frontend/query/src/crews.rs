//! Threads of operators: each statement has a crew of its own, so the system shares the processors among statements, and none waits for operators of another.
//!
//! Operators are tasks that give way between batches, and a batch may take long (a join that finds no pair in millions): on threads that all statements have in
//! common as many such statements as there are threads would stop all others, and do so even when they are over, until the batch is done.
//!
//! Invariants:
//! - W1 A crew that a statement has given back is given to another only when none of its tasks are left.
//! - W2 There are [`CREWS_MAX`] crews at most. Statements beyond share the one that the fewest have; so do those for which the system gives no threads.

use crate::error::{Error, Result};
use std::ops::Deref;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Crews at a time. Each statement has a thread of its host beside: a machine that runs so many has nothing to gain from more.
const CREWS_MAX: usize = 64;

/// Crews of each size that stay while nobody has work for them: to make one costs some 100 us.
const IDLE_MAX: usize = 4;

/// Stack of a thread of the operators: plans and expressions recurse, and are as high as the parser lets them be. Only what is used
/// takes memory.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// The crews of an engine. Lock order: its lock is the last.
#[derive(Debug, Default)]
pub(crate) struct Crews {
    all: Mutex<Vec<Manned>>,
}

/// A crew, and how many statements have it.
#[derive(Debug)]
struct Manned {
    crew: Arc<Crew>,
    statements: usize,
}

/// So many threads.
#[derive(Debug)]
struct Crew {
    threads: usize,
    /// Taken when it is dropped.
    runtime: Option<Runtime>,
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Whoever drops it must not wait for what its threads are at. They end when they give way.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Crew {
    fn new(threads: usize) -> Result<Self> {
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name("vellum-query")
                .thread_stack_size(STACK_BYTES)
                .build()
        };
        // It panics where the system gives no thread; what was begun ends by itself.
        let runtime = catch_unwind(build).map_err(|_| Error::internal("no threads"))?;
        let runtime = runtime.map_err(Error::internal)?;
        Ok(Self {
            threads,
            runtime: Some(runtime),
        })
    }

    /// Whether tasks are left, running or waiting.
    fn has_tasks(&self) -> bool {
        let runtime = self.runtime.as_ref();
        runtime.is_some_and(|runtime| runtime.metrics().num_alive_tasks() > 0)
    }
}

impl Crews {
    fn all(&self) -> MutexGuard<'_, Vec<Manned>> {
        // No invariant is broken halfway.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A crew of so many threads for a statement, until it is dropped. Does not wait.
    ///
    /// # Errors
    /// The system gives no threads, and there is no crew.
    pub fn take(self: &Arc<Self>, threads: usize) -> Result<Taken> {
        let mut all = self.all();
        // The last that was given back first: what it has touched is at hand.
        let idle = all.iter().rposition(|manned| {
            manned.statements == 0 && manned.crew.threads == threads && !manned.crew.has_tasks()
        });
        let found = match idle {
            Some(at) => at,
            None => match (all.len() < CREWS_MAX).then(|| Crew::new(threads)) {
                Some(Ok(crew)) => {
                    let crew = Arc::new(crew);
                    let statements = 0;
                    all.push(Manned { crew, statements });
                    all.len() - 1
                }
                refused => {
                    let least = all.iter().enumerate().min_by_key(|(_, manned)| {
                        // One whose statement is over and whose threads do not give way comes last.
                        let lost = manned.statements == 0 && manned.crew.has_tasks();
                        (lost, manned.statements)
                    });
                    match (least.map(|(at, _)| at), refused) {
                        (Some(at), _) => at,
                        (None, Some(Err(error))) => return Err(error),
                        (None, _) => return Err(Error::internal("no crew")),
                    }
                }
            },
        };
        all[found].statements += 1;
        let crew = all[found].crew.clone();
        let crews = self.clone();
        Ok(Taken { crews, crew })
    }

    /// Whether no crew has tasks left.
    #[cfg(test)]
    pub fn are_idle(&self) -> bool {
        self.all().iter().all(|manned| !manned.crew.has_tasks())
    }

    fn give_back(&self, crew: &Arc<Crew>) {
        let mut all = self.all();
        let Some(at) = all
            .iter()
            .position(|manned| Arc::ptr_eq(&manned.crew, crew))
        else {
            debug_assert!(false, "a crew that is not there");
            return;
        };
        let mut manned = all.remove(at);
        manned.statements -= 1;
        let same = |other: &&Manned| other.statements == 0 && other.crew.threads == crew.threads;
        let idle = all.iter().filter(same).count();
        if manned.statements > 0 || idle < IDLE_MAX {
            all.push(manned);
        }
    }
}

/// A statement's crew.
#[derive(Debug)]
pub(crate) struct Taken {
    crews: Arc<Crews>,
    crew: Arc<Crew>,
}

impl Deref for Taken {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        match &self.crew.runtime {
            Some(runtime) => runtime,
            None => unreachable!("a crew that is dropped is nobody's"),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.crews.give_back(&self.crew);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn statements_have_crews_of_their_own_and_get_them_again() -> Result<()> {
        let crews = Arc::new(Crews::default());
        let (one, other) = (crews.take(1)?, crews.take(1)?);
        assert!(!Arc::ptr_eq(&one.crew, &other.crew));
        let first = one.crew.clone();
        drop(one);
        assert!(Arc::ptr_eq(&crews.take(1)?.crew, &first));
        assert!(
            !Arc::ptr_eq(&crews.take(2)?.crew, &first),
            "of another size"
        );
        Ok(())
    }

    #[test]
    fn a_crew_that_still_works_for_a_statement_that_is_over_is_not_given_to_another() -> Result<()>
    {
        let crews = Arc::new(Crews::default());
        let (end, ended) = channel::<()>();
        let taken = crews.take(1)?;
        let busy = taken.crew.clone();
        let (begin, begun) = channel();
        let task = taken.spawn(async move {
            let _ = begin.send(());
            // As an operator that does not give way.
            let _ = ended.recv();
        });
        assert!(begun.recv().is_ok());
        task.abort();
        drop(taken);
        let next = crews.take(1)?;
        assert!(!Arc::ptr_eq(&next.crew, &busy));
        let (tell, told) = channel();
        next.spawn(async move { tell.send(()) });
        assert!(told.recv().is_ok(), "it waits for nobody");
        drop(end);
        Ok(())
    }

    #[test]
    fn no_more_crews_than_so_many_are_there_at_a_time() -> Result<()> {
        let crews = Arc::new(Crews::default());
        let taken: Vec<Taken> = (0..CREWS_MAX + 3)
            .map(|_| crews.take(1))
            .collect::<Result<_>>()?;
        assert_eq!(crews.all().len(), CREWS_MAX);
        let shared = crews
            .all()
            .iter()
            .filter(|manned| manned.statements == 2)
            .count();
        assert_eq!(shared, 3, "evenly");
        drop(taken);
        assert_eq!(crews.all().len(), IDLE_MAX);
        Ok(())
    }
}
