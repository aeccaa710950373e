//! A relation while it is run: its operators work, or wait until somebody hosts them again.
//!
//! Who takes its rows may have enough of them, and more later ([`Flow::Enough`]): then it *stands still*. The operators hold what they have gathered and wait for their answers; nobody reads for
//! them, and the batch that was being told is told on when it is served again. What operators have in threads of their own goes on until their places for batches are full.
//!
//! Concurrency: readers end when it stands still. First nobody can ask them any more, then they are told; what they were asked and have not answered is the host's to answer, in its order.

use crate::batch::{ColumnReader, readers as column_readers};
use crate::crews::{STACK_BYTES, Taken};
use crate::engine::{Flow, Host, LOOK, Line, Reader, Request, Requests, Shared, Tables, steps};
use crate::error::{Error, Result};
use crate::loops::reads_again;
use crate::scan::{Scans, scans_of};
use arrow::array::RecordBatch;
use datafusion::common::Result as Planned;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt as _;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{Builder, ScopedJoinHandle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use vellum_row::{Type, ValueRef};

/// Relations that stand still at a time, of all statements: half of the crews.
const STANDING_MAX: usize = 32;

/// How the rows of a relation are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// The next batch is made while one is told: not of what may stand still.
    pub ahead: bool,
    /// What the steps did is told behind the rows.
    pub steps: bool,
}

/// How far a relation was run.
#[derive(Debug)]
pub enum Served {
    /// To its end; its steps, a line each, if they are to be told.
    Done(Vec<String>),
    /// Whoever takes the rows has enough.
    Stands,
}

/// A relation that is run.
#[derive(Debug)]
pub struct Running {
    /// Goes with what was asked and not answered: who waits sees its channel closed, and so does who asks now.
    requests: Requests,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
    types: Vec<Type>,
    scans: Scans,
    /// Where readers hear what they are asked, until they begin.
    received: Vec<Receiver<Request>>,
    /// What readers were asked that have ended.
    asked: VecDeque<Request>,
    telling: Option<Telling>,
    place: Option<StandingPlace>,
    /// Held until it is dropped.
    _crew: Taken,
}

/// A batch of the result that is being told.
#[derive(Debug)]
struct Telling {
    batch: RecordBatch,
    /// The number of its row that is told next.
    next: usize,
    take: oneshot::Sender<()>,
}

/// One of the places for relations that stand still.
#[derive(Debug)]
struct StandingPlace(Arc<AtomicUsize>);

impl StandingPlace {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        // Relaxed: a count, which orders nothing.
        let more = |count: usize| (count < STANDING_MAX).then_some(count + 1);
        let took = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        took.is_ok().then(|| Self(taken.clone()))
    }
}

impl Drop for StandingPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ends();
    }
}

impl Running {
    /// Has a crew work for a plan whose result has columns of these types, and that so many readers will read for.
    pub(crate) fn start(
        (crew, state): (Taken, SessionState),
        (plan, types): (LogicalPlan, Vec<Type>),
        (requests, line): (Requests, Line),
        readers: usize,
        told: Told,
    ) -> Self {
        let shared = line.shared.clone();
        let (senders, received) = (0..readers).map(|_| channel()).unzip();
        // Before anybody asks.
        *shared.readers() = senders;
        let task = crew.spawn(async move {
            let done = work(&state, plan, &line, told).await;
            line.send(Request::Done(done));
        });
        Self {
            requests,
            shared,
            task,
            types,
            scans: Scans::default(),
            received,
            asked: VecDeque::new(),
            telling: None,
            place: None,
            _crew: crew,
        }
    }

    /// Serves the operators, and tells the host, whose thread this is, rows until there are no more or it has enough. Readers read beside it meanwhile: the first time as many as it was
    /// begun for, later none.
    ///
    /// # Errors
    /// What the host, a reader or a function failed with; [`Error::Memory`]; [`Error::Unplanned`], before any row was told. It is over then.
    pub fn serve(
        &mut self,
        host: &mut dyn Host,
        readers: Vec<Box<dyn Reader + '_>>,
    ) -> Result<Served> {
        let shared = self.shared.clone();
        let shared: &Shared = &shared;
        std::thread::scope(|scope| {
            let mut reading = Reading {
                shared,
                stands: false,
            };
            let mut threads: Vec<ScopedJoinHandle<'_, Left>> = Vec::with_capacity(readers.len());
            let mut started = Ok(());
            let received = std::mem::take(&mut self.received);
            for (mut reader, received) in readers.into_iter().zip(received) {
                let builder = Builder::new().name("vellum-scan".to_owned());
                let thread = builder
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || {
                        let mut left = Left::default();
                        reader.read(&mut |tables| read(tables, (&received, shared), &mut left));
                        left
                    });
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => started = Err(Error::internal(error)),
                }
            }
            let served = started.and_then(|()| self.until_enough(host));
            reading.stands = matches!(served, Ok(Served::Stands));
            if !reading.stands {
                self.task.abort();
            }
            // Before anybody is waited for.
            drop(reading);
            // All of them, or the scope panics for those that nobody joined.
            let mut sound = true;
            for thread in threads {
                match thread.join() {
                    Ok(left) => {
                        self.scans.take_over(left.scans);
                        self.asked.extend(left.asked);
                    }
                    Err(_) => sound = false,
                }
            }
            match sound {
                true => served,
                // What it read no more looks like the end of its part.
                false => {
                    self.ends();
                    served.and(Err(Error::internal("a reader stopped")))
                }
            }
        })
    }

    /// Whether its operators read no tables any more, whatever they are asked for.
    pub fn reads_no_more(&self) -> bool {
        // Acquire: whoever has closed the last scan has done with it.
        self.shared.unread.load(Ordering::Acquire) == 0
    }

    /// Takes one of the places for what stands still, if it has none.
    pub(crate) fn takes_place(&mut self, taken: &Arc<AtomicUsize>) -> bool {
        if self.place.is_none() {
            self.place = StandingPlace::take(taken);
        }
        self.place.is_some()
    }

    /// Whoever works for it stops.
    fn ends(&self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.task.abort();
    }

    fn until_enough(&mut self, host: &mut dyn Host) -> Result<Served> {
        if self.tell(host)? == Flow::Enough {
            return Ok(Served::Stands);
        }
        loop {
            let request = match self.asked.pop_front() {
                Some(request) => Some(request),
                None => self.next_request()?,
            };
            if let Some(request) = request
                && let Some(served) = self.answer(host, request)?
            {
                return Ok(served);
            }
            host.look().map_err(Error::Failed)?;
        }
    }

    /// What is asked next; none if nothing is for a while.
    fn next_request(&self) -> Result<Option<Request>> {
        match self.requests.0.recv_timeout(LOOK) {
            Ok(request) => Ok(Some(request)),
            // Its last words may have come since.
            Err(RecvTimeoutError::Timeout) if self.task.is_finished() => {
                match self.requests.0.try_recv() {
                    Ok(request) => Ok(Some(request)),
                    Err(_) => Err(Error::internal("an operator stopped")),
                }
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Error::internal("an operator stopped")),
        }
    }

    /// Answers a request; says how far the relation was run if nothing more is to be answered.
    fn answer(&mut self, host: &mut dyn Host, request: Request) -> Result<Option<Served>> {
        match request {
            Request::Ask(question) => host.asked(question),
            Request::Output(batch, take) => {
                let next = 0;
                self.telling = Some(Telling { batch, next, take });
                if self.tell(host)? == Flow::Enough {
                    return Ok(Some(Served::Stands));
                }
            }
            Request::Done(done) => return Ok(Some(Served::Done(done?))),
            request => self.scans.serve(host, request),
        }
        Ok(None)
    }

    /// Tells the rows of the batch that are left.
    fn tell(&mut self, host: &mut dyn Host) -> Result<Flow> {
        let Some(mut telling) = self.telling.take() else {
            return Ok(Flow::More);
        };
        let columns = telling.batch.columns();
        let readers: Vec<ColumnReader<'_>> = column_readers(&self.types, columns)?;
        let mut row: Vec<ValueRef<'_>> = Vec::with_capacity(readers.len());
        let mut flow = Flow::More;
        while flow == Flow::More && telling.next < telling.batch.num_rows() {
            row.clear();
            for reader in &readers {
                row.push(reader.get(telling.next)?);
            }
            telling.next += 1;
            flow = host.row(&row).map_err(Error::Failed)?;
        }
        drop((row, readers));
        match flow {
            Flow::More => drop(telling.take.send(())),
            Flow::Enough => self.telling = Some(telling),
        }
        Ok(flow)
    }
}

/// The operators' side.
async fn work(
    state: &SessionState,
    plan: LogicalPlan,
    line: &Line,
    told: Told,
) -> Planned<Vec<String>> {
    let physical = state.create_physical_plan(&plan).await?;
    // One more, which nobody reads, where a scan may begin anew behind its end: what is read then is of the same snapshot (NL2).
    let unread = scans_of(&physical) + usize::from(reads_again(&physical));
    line.shared.unread.store(unread, Ordering::Release);
    let mut stream = execute_stream(physical.clone(), state.task_ctx())?;
    let mut taken: Option<oneshot::Receiver<()>> = None;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // One batch is on its way while the next is made.
        if let Some(taken) = taken.take()
            && taken.await.is_err()
        {
            return Ok(Vec::new());
        }
        let (take, taking) = oneshot::channel();
        line.send(Request::Output(batch, take));
        if told.ahead {
            taken = Some(taking);
        } else if taking.await.is_err() {
            return Ok(Vec::new());
        }
    }
    let mut lines = Vec::new();
    if told.steps {
        steps(physical.as_ref(), 0, true, &mut lines);
    }
    Ok(lines)
}

/// What a reader leaves when what it reads for stands still.
#[derive(Debug, Default)]
struct Left {
    scans: Scans,
    asked: Vec<Request>,
}

/// A reader's side: serves until it is told the end, or nobody is left who could ask.
fn read(
    tables: &mut dyn Tables,
    (requests, shared): (&Receiver<Request>, &Shared),
    left: &mut Left,
) {
    while let Ok(request) = requests.recv() {
        match request {
            Request::End => return,
            request if shared.stands.load(Ordering::Relaxed) => left.asked.push(request),
            Request::Read { scan, reply } => match left.scans.read(tables, scan) {
                // It may have stopped before it found a row.
                Ok(None) if shared.stands.load(Ordering::Relaxed) => {
                    left.asked.push(Request::Read { scan, reply });
                }
                // Who has enough hears nothing, also of what failed.
                answer => drop(reply.send(answer)),
            },
            request => left.scans.serve(tables, request),
        }
    }
}

/// The readers of a relation while it is served; they end when this is dropped, also when its host panics: the scope waits for them all the same.
struct Reading<'s> {
    shared: &'s Shared,
    stands: bool,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let readers = std::mem::take(&mut *self.shared.readers());
        let told = match self.stands {
            true => &self.shared.stands,
            false => &self.shared.over,
        };
        told.store(true, Ordering::Relaxed);
        for reader in readers {
            let _ = reader.send(Request::End);
        }
    }
}
