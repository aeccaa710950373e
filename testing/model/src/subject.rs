//! What is compared with the model; and the model as a subject, right or wrong on purpose.

use crate::defect::Defect;
use crate::model::Model;
use crate::step::{Answer, Step};
use vellum_base::random::Random;

/// Something that answers the steps of a history.
pub trait Subject {
    /// Applies one step.
    ///
    /// A step that names something that is not open is [`Answer::Skipped`]. A
    /// [`Step::PowerCut`] is answered with everything that is visible afterwards
    /// ([`Answer::Contents`]), a [`Step::Backup`] with everything that the copy shows. [`crate::Operation::Batch`] is answered with as many of the next rows
    /// as the subject likes, none only if there is none.
    fn apply(&mut self, step: &Step) -> Answer;

    /// Everything that a fresh transaction sees.
    fn contents(&mut self) -> Answer;

    /// Ends every open transaction, does all background work that there is, and says whether something old is left then: nobody can see it.
    fn end_all(&mut self) -> Answer {
        Answer::Done
    }

    /// Whether its tables have indexes, so that a changed row may be a new entry.
    fn has_indexes(&self) -> bool {
        false
    }
}

/// The model as a subject.
#[derive(Debug)]
pub struct ModelSubject {
    model: Model,
    defect: Option<Defect>,
}

impl ModelSubject {
    /// A subject that is the model, with a mistake if one is given.
    pub fn new(key_limit: usize, defect: Option<Defect>) -> Self {
        Self {
            model: Model::new(key_limit, defect),
            defect,
        }
    }

    /// Keeps a random prefix of what need not be there any more; wrong ones keep less.
    fn power_cut(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        let (sure, commits) = (self.model.acknowledged(), self.model.commits());
        let kept = random.between(sure, commits);
        match self.defect {
            Some(Defect::LosesAcknowledged) => self.model.forget_after(sure.saturating_sub(1)),
            Some(Defect::LosesFromTheMiddle) => {
                self.model.restart_at(kept);
                let lost = kept.checked_sub(2);
                self.model
                    .forget(|version| version.commit.is_some() && version.commit == lost);
            }
            Some(Defect::KeepsHalfATransaction) => {
                self.model.restart_at(kept);
                let mut odd = false;
                self.model.forget(|version| {
                    let last = version.commit.is_some() && version.commit == kept.checked_sub(1);
                    odd ^= last;
                    last && odd
                });
            }
            _ => self.model.restart_at(kept),
        }
    }
}

impl Subject for ModelSubject {
    fn apply(&mut self, step: &Step) -> Answer {
        match step {
            Step::Begin { tx, how } => self.model.begin(*tx, *how),
            Step::Do { tx, operation } => self.model.apply(*tx, operation),
            Step::Background { .. } | Step::Checkpoint | Step::Truncate | Step::Verify => {
                Answer::Done
            }
            Step::Backup if self.defect == Some(Defect::CopiesThePast) => {
                let commits = self.model.commits();
                Answer::Contents(self.model.contents_at(commits.saturating_sub(1)))
            }
            Step::Backup => self.contents(),
            Step::Reopen => {
                self.model.reopen();
                Answer::Done
            }
            Step::PowerCut { seed } => {
                self.power_cut(*seed);
                self.contents()
            }
        }
    }

    fn contents(&mut self) -> Answer {
        Answer::Contents(self.model.contents_at(self.model.commits()))
    }
}
