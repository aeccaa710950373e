//! ALTER COLUMN … TYPE: all rows are written anew, into new tables of the engine, and foreign keys of the column, on either side, are looked at again.

use super::Ddl;
use super::computed::check_no_subquery;
use super::identity::not_integer;
use super::rewrite::contains_nulls;
use crate::bind::ScopeTable;
use crate::catalog::{Collation, Default, Kind, Relation, Table};
use crate::error::{Result, SqlError};
use crate::expr::{Expr, Frame, Plain, RowRef};
use crate::rows::Shape;
use crate::sqlstate::{self, SqlState};
use sqlparser::ast;
use std::sync::Arc;
use vellum_row::{CastContext, Column, Type, Typmod};

impl Ddl<'_> {
    /// Gives a column another type. Values are converted by `using`, or by the cast of an assignment.
    ///
    /// # Errors
    /// `42704`, `3F000` for a type or a collation that there is not, `42804` where there is no such cast, what the conversion of a value reports, `23505`, `23514`.
    pub(super) fn retype(
        &mut self,
        relation: &Relation,
        next: &mut Table,
        position: usize,
        (data_type, collation): (&ast::DataType, Option<&ast::ObjectName>),
        using: Option<&ast::Expr>,
    ) -> Result<()> {
        let column = next.schema.column(position).clone();
        let (ty, typmod) = self.type_said(data_type)?;
        super::table::check_column_type(&column.name, ty)?;
        self.hold_type(ty)?;
        let collation = match collation {
            Some(collation) => Some(self.binder().collation_named(collation, Some(ty))?),
            None => None,
        };
        let domain = self.column_domain(data_type)?;
        let collation = match collation {
            Some(own) => Collation::other_than_of(ty, own),
            None => self.domain_collation(domain),
        };
        let default = next.default_of(column.id);
        if domain.is_some() && matches!(default, Some(Default::Identity { .. })) {
            return Err(not_integer());
        }
        if using.is_none() && (ty, typmod) == (column.ty, column.typmod) {
            // No value becomes another.
            let same_domain = domain == next.domain_of(column.id);
            if same_domain && collation == next.collation_of(column.id) {
                return Ok(());
            }
            self.check_unviewed(relation, position)?;
            next.set_domain(column.id, domain);
            next.set_collation(column.id, collation);
            if same_domain {
                return Ok(());
            }
            return self.check_domains(&Relation {
                kind: Kind::Table(Box::new(next.clone())),
                ..relation.clone()
            });
        }
        self.check_unviewed(relation, position)?;
        if let Some(own) = self.generated_from(relation, position)?.first() {
            let text = "cannot alter type of a column used by a generated column";
            let detail = format!(
                "Column \"{}\" is used by generated column \"{}\".",
                column.name,
                next.schema.column(*own).name
            );
            return Err(SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text).with_detail(detail));
        }
        let generated = matches!(next.default_of(column.id), Some(Default::Generated(_)));
        if generated && using.is_some() {
            let text = "cannot specify USING when altering type of generated column";
            let detail = format!("Column \"{}\" is a generated column.", column.name);
            let state = SqlState::of("42611");
            return Err(SqlError::new(state, text).with_detail(detail));
        }
        let convert = self.conversion(relation, &column, (ty, typmod), using)?;
        self.retype_default(relation, &column, ty, typmod)?;
        if let Some(Default::Identity { sequence, .. }) = next.default_of(column.id) {
            self.retype_sequence(*sequence, ty)?;
        }
        next.schema = Arc::new(next.schema.with_type(position, ty, typmod));
        next.set_domain(column.id, domain);
        next.set_collation(column.id, collation);
        let old = relation
            .table()
            .ok_or_else(|| SqlError::internal("no table"))?;
        *next = self.with_new_storage(relation, next)?;
        let target = Arc::new(Relation {
            kind: Kind::Table(Box::new(next.clone())),
            ..relation.clone()
        });
        self.check_computed(&target)?;
        let shape = Shape::of(&target)?;
        let plain = Plain(self.forms);
        let catalog = self.open.catalog.1.clone();
        self.move_rows(relation, &shape, |values| {
            let rows = [RowRef::Values(values)];
            let mut row = values.to_vec();
            row[position] = convert.eval(&Frame::over(&rows, &plain))?.into_value();
            if row[position].is_null() && !column.nullable {
                return Err(contains_nulls(relation, &column.name, &catalog));
            }
            Ok(row)
        })?;
        self.drop_storage(old)?;
        for index in next
            .indexes
            .iter()
            .filter(|index| index.timing.is_deferrable())
        {
            self.check_apart(&target, index)?;
        }
        self.check_domains(&target)?;
        self.check_rows(&target)?;
        self.check_keys_of(&target, column.id)
    }

    /// What makes a value of the new type of a row.
    fn conversion(
        &self,
        relation: &Relation,
        column: &Column,
        (ty, typmod): (Type, Typmod),
        using: Option<&ast::Expr>,
    ) -> Result<Expr> {
        let mut binder = self.binder();
        let table = ScopeTable::of(&Arc::new(relation.clone()), None)?;
        binder.scope.add(table)?;
        let name = ast::Expr::Identifier(ast::Ident::with_quote('"', &*column.name));
        let node = using.unwrap_or(&name);
        let bound = binder.expr(node)?;
        check_no_subquery(&binder, "transform expression")?;
        let done = binder.coerce(bound, ty, typmod, CastContext::Assignment);
        done.map_err(|error| {
            if !matches!(error.sqlstate(), sqlstate::DATATYPE_MISMATCH | sqlstate::CANNOT_COERCE) {
                return error;
            }
            let shown = self.forms.format_type(ty, typmod);
            if using.is_some() {
                let message = format!(
                    "result of USING clause for column \"{}\" cannot be cast automatically to type {shown}",
                    column.name
                );
                return SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
                    .with_hint("You might need to add an explicit cast.");
            }
            let message = format!(
                "column \"{}\" cannot be cast automatically to type {shown}",
                column.name
            );
            let hint = format!(
                "You might need to specify \"USING {}::{shown}\".",
                crate::names::quoted(&column.name)
            );
            SqlError::new(sqlstate::DATATYPE_MISMATCH, message).with_hint(hint)
        })
    }

    /// The default, or what it is generated by, has to be one of the new type, too.
    fn retype_default(
        &self,
        relation: &Relation,
        column: &Column,
        ty: Type,
        typmod: Typmod,
    ) -> Result<()> {
        let table = relation.table();
        let default = table.and_then(|table| table.default_of(column.id));
        let what = match default {
            Some(Default::Generated(_)) => "generation expression",
            _ => "default",
        };
        match default {
            Some(Default::Expression(sql) | Default::Generated(sql)) => {
                let mut binder = self.binder();
                let scope = ScopeTable::of(&Arc::new(relation.clone()), None)?;
                binder.scope.add(scope)?;
                let bound = binder.expr(&crate::parse::expression(sql)?)?;
                let done = binder.coerce(bound, ty, typmod, CastContext::Assignment);
                done.map(|_| ()).map_err(|_| {
                    let message = format!(
                        "{what} for column \"{}\" cannot be cast automatically to type {}",
                        column.name,
                        self.forms.format_type(ty, typmod)
                    );
                    SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
                })
            }
            Some(Default::Identity { .. }) if !ty.is_integer() => Err(not_integer()),
            _ => Ok(()),
        }
    }
}
