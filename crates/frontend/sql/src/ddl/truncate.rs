//! TRUNCATE.

use super::Ddl;
use crate::catalog::Relation;
use crate::error::{Fields, Result, SqlError};
use crate::roles::Rights;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast;
use std::sync::Arc;

impl Ddl<'_> {
    /// # Errors
    /// `42809` for what is no table; `42501`.
    fn check_may_truncate(&self, relation: &Relation, restarts: bool) -> Result<()> {
        if relation.table().is_none() {
            super::check_no_system(relation)?;
            let message = format!("\"{}\" is not a table", relation.name);
            return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        self.check_right(relation, Rights::TRUNCATE)?;
        if restarts {
            for sequence in self.owned_sequences(relation.oid, None) {
                self.check_owner(&sequence)?;
            }
        }
        Ok(())
    }

    pub(super) fn truncate(&mut self, truncate: &ast::Truncate) -> Result<CommandTag> {
        let restarts = truncate.identity == Some(ast::TruncateIdentityOption::Restart);
        let may = |ddl: &Self, relation: &Relation| ddl.check_may_truncate(relation, restarts);
        let mut relations: Vec<Arc<Relation>> = Vec::with_capacity(truncate.table_names.len());
        for target in &truncate.table_names {
            let relation = self.table_alone(&target.name, may)?;
            if !relations.iter().any(|other| other.oid == relation.oid) {
                relations.push(relation);
            }
        }
        let mut at = 0;
        while at < relations.len() {
            for (other, _) in self.referring(relations[at].oid) {
                if relations.iter().any(|relation| relation.oid == other.oid) {
                    continue;
                }
                if truncate.cascade != Some(ast::CascadeOption::Cascade) {
                    let text = "cannot truncate a table referenced in a foreign key constraint";
                    let detail = format!(
                        "Table \"{}\" references \"{}\".",
                        other.name, relations[at].name
                    );
                    return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
                        .with_detail(detail)
                        .with_hint(format!(
                            "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                            other.name
                        )));
                }
                let message = format!("truncate cascades to table \"{}\"", other.name);
                self.notices.push(Fields::notice(message));
                relations.push(self.alone_if(&other, may)?);
            }
            at += 1;
        }
        for relation in relations {
            self.check_not_pending(&relation, "TRUNCATE")?;
            let table = relation.table().ok_or_else(|| {
                let message = format!("\"{}\" is not a table", relation.name);
                SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
            })?;
            let next = self.with_new_storage(&relation, table)?;
            self.drop_storage(table)?;
            if restarts {
                self.restart_sequences(relation.oid)?;
            }
            self.put_table(&relation, next)?;
        }
        Ok(CommandTag::plain("TRUNCATE TABLE"))
    }
}
