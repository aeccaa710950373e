//! Why a query goes through DataFusion.

use crate::bind::Binder;

/// Why no program runs a query, or why none should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum General {
    /// Each row of one table would be compared with each of another.
    JoinWithoutIndex,
    /// The subquery would be run for each row.
    CorrelatedSubquery,
    RightJoin,
    FullJoin,
    WindowFunction,
    DistinctOn,
    /// Rows of several tables decide how those of one are changed.
    ChangeByJoin,
}

impl General {
    /// Whether there is a program all the same.
    pub fn has_program(self) -> bool {
        matches!(self, Self::JoinWithoutIndex | Self::CorrelatedSubquery)
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::JoinWithoutIndex => "a join without an index",
            Self::CorrelatedSubquery => "a correlated subquery",
            Self::RightJoin => "a right join",
            Self::FullJoin => "a full join",
            Self::WindowFunction => "a window function",
            Self::DistinctOn => "DISTINCT ON",
            Self::ChangeByJoin => "a change by a join",
        }
    }
}

impl Binder<'_> {
    /// Notes that the query that is being bound is for DataFusion.
    pub fn needs(&mut self, reason: General) {
        // What has no program decides.
        if self.general.is_none_or(General::has_program) {
            self.general = Some(reason);
        }
    }
}
