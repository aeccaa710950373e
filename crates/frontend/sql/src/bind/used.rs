//! Which columns of relations a statement uses: who has no right on a relation may have one on its columns.

use super::Binder;
use crate::catalog::Oid;
use crate::expr::Expr;
use crate::roles::Rights;

impl Binder<'_> {
    /// Notes that a column of a relation is used, or (0) all of it. What views use is lent by whose they are.
    pub(crate) fn uses_column(&mut self, relation: Oid, right: Rights, column: u16) {
        let own = (relation, right, column);
        if self.view_depth == 0 && !self.column_uses.contains(&own) {
            self.column_uses.push(own);
        }
    }

    /// Notes the columns that stand in an expression over the tables of the query, or of one so many queries outwards.
    pub(crate) fn reads_columns(&mut self, level: usize, expr: &Expr) {
        if self.view_depth > 0 {
            return;
        }
        let scope = match level.checked_sub(1) {
            None => &self.scope,
            Some(level) => &self.outer[self.outer.len() - 1 - level].scope,
        };
        let mut read = Vec::new();
        expr.walk(&mut |part| {
            let Expr::Column { table, position } = part else {
                return;
            };
            let table = &scope.tables[usize::from(*table)];
            if let Some(relation) = &table.relation {
                let number = table.columns[usize::from(*position)].number;
                read.push((relation.oid, number as u16));
            }
        });
        for (relation, number) in read {
            self.uses_column(relation, Rights::SELECT, number);
        }
    }
}
