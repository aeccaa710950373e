//! ANALYZE.

use super::Session;
use crate::catalog::Relation;
use crate::error::{Fields, Result, SqlError};
use crate::sqlstate;
use crate::statistics;
use crate::wire::{CommandTag, Sink};
use sqlparser::ast;
use std::sync::Arc;

impl Session {
    /// Makes statistics of a table, or of all that the session's role owns.
    ///
    /// # Errors
    /// `42P01`; storage errors.
    pub(super) fn analyze(
        &mut self,
        analyze: &ast::Analyze,
        sink: &mut dyn Sink,
    ) -> Result<CommandTag> {
        self.start_statement()?;
        let search_path = self.search_path();
        let named: Vec<Arc<Relation>> = match &analyze.table_name {
            Some(name) => {
                let binder = self.surroundings(&search_path, "").binder();
                vec![binder.relation(name).map_err(SqlError::without_place)?]
            }
            None => self.image().relations().into_iter().cloned().collect(),
        };
        let whole = analyze.table_name.is_none();
        for relation in named {
            let Some(table) = relation.table() else {
                continue;
            };
            let Some(open) = &self.open else {
                continue;
            };
            if !self.rights().owns(self.acting().role, relation.owner) {
                if !whole {
                    let message = format!(
                        "skipping \"{}\" --- only table or database owner can analyze it",
                        relation.name
                    );
                    let warning = Fields::warning(sqlstate::WARNING, message);
                    self.tell_notice(&warning, sink)?;
                }
                continue;
            }
            let made = statistics::measure(table, &open.transaction)?;
            let kept_in = (&self.shared.engine, &self.shared.catalog);
            statistics::keep(&relation, kept_in, made);
        }
        Ok(CommandTag::plain("ANALYZE"))
    }
}
