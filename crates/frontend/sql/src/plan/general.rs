//! Why a query goes through DataFusion.

use super::select::{Source, SourceKind};
use crate::bind::Binder;
use crate::error::Result;

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
    Ties,
    GroupingSets,
    /// Many rows are read and few returned.
    LargeScan,
    /// Rows are locked that come out of a query in FROM.
    LockedQuery,
    /// Rows of several tables decide how those of one are changed.
    ChangeByJoin,
}

impl General {
    /// Whether there is a program all the same.
    pub fn has_program(self) -> bool {
        matches!(
            self,
            Self::JoinWithoutIndex | Self::CorrelatedSubquery | Self::LargeScan
        )
    }

    /// Whether a program runs it, if it has to since a table is read again for each row of those before it.
    pub fn may_be_row_by_row(self) -> bool {
        self.has_program() || matches!(self, Self::RightJoin | Self::FullJoin)
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
            Self::Ties => "WITH TIES",
            Self::GroupingSets => "grouping sets",
            Self::LargeScan => "a group of many rows",
            Self::LockedQuery => "locked rows of a query in FROM",
            Self::ChangeByJoin => "a change by a join",
        }
    }
}

impl Binder<'_> {
    /// Notes that the query that is being bound is for DataFusion.
    pub fn needs(&mut self, reason: General) {
        // What has no program decides, and of that what has none where it has to.
        let weaker = |known: General| {
            known.has_program() || known.may_be_row_by_row() && !reason.may_be_row_by_row()
        };
        if self.general.is_none_or(weaker) {
            self.general = Some(reason);
        }
    }

    /// Binds a query of FROM. Why the one around is for DataFusion is no reason for it; its own reasons are that one's, too.
    pub(super) fn apart_from_around<R>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R>,
    ) -> Result<R> {
        let around = self.general.take();
        let bound = work(self);
        let own = std::mem::replace(&mut self.general, around);
        if let Some(reason) = own {
            self.needs(reason);
        }
        bound
    }
}

/// Rows from which on a table is worth the other way.
const MUCH_ROWS: u64 = 20_000;

/// Whether the first of these tables is read whole and known to be large.
pub(super) fn reads_much(sources: &[Source]) -> bool {
    let Some(SourceKind::Table { shape, access }) = sources.first().map(|source| &source.kind)
    else {
        return false;
    };
    let known = &shape.relation.runtime.statistics;
    let rows = known.get().map_or(0, |known| known.rows);
    let tables = sources
        .iter()
        .all(|source| matches!(source.kind, SourceKind::Table { .. }));
    tables && access.index.is_none() && rows.max(known.changed()) >= MUCH_ROWS
}
