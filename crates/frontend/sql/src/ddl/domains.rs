//! CREATE, ALTER and DROP DOMAIN.
//!
//! Interleaving: what a domain asks is checked by whoever writes rows of a table with a column of it, by the table's definition as that was when the statement was compiled. So a
//! constraint that is added takes the gates of these tables alone, looks at their rows, and gives the tables a new generation: who waited for one of them compiles
//! anew (C1). A column of a domain is made with the gates of the domain and of those below ([`Ddl::hold_types`]), which ALTER DOMAIN has alone (U6).

use super::Ddl;
use super::made_names::MadeName;
use crate::bind::{NamedType, folded, no_type};
use crate::catalog::{Change, Check, Collation, DOMAINS_MAX, Domain, Kind, Oid, Relation};
use crate::error::{Fields, Result, SqlError};
use crate::expr::{Expr, Frame, RowRef};
use crate::parse::{Clause, DomainClause, Refused, too_deep};
use crate::plan::OutputColumn;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, AlterColumnOperation, AlterTableOperation as Operation};
use std::sync::Arc;
use vellum_row::{Type, Typmod};

/// What is asked of the values that are there.
enum Asked<'a> {
    NotNull,
    Check(&'a Expr),
}

impl Ddl<'_> {
    /// CREATE DOMAIN.
    ///
    /// # Errors
    /// `42710` for a name that is taken; `42601`, `0A000`, `42P16` for what a domain cannot have; those of its default and of its conditions.
    pub(super) fn create_domain(&mut self, create: &ast::CreateDomain) -> Result<CommandTag> {
        let (namespace, name) = self.new_name(&create.name, false)?;
        self.check_type_free(namespace, &name, false)?;
        let (ty, typmod) = self.type_said(&create.data_type)?;
        let base = self.binder().domain_named(&create.data_type)?;
        if matches!(ty, Type::Record | Type::Void) {
            let message = format!(
                "\"{}\" is not a valid base type for a domain",
                ty.sql_name()
            );
            return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, message));
        }
        let below = base.map_or(0, |base| self.open.catalog.1.domains_of(base).len());
        if below >= DOMAINS_MAX {
            return Err(too_deep());
        }
        let mut domain = Domain {
            ty,
            typmod,
            base: base.unwrap_or(0),
            not_null: false,
            // As it is now: a change of the other one's is not followed, as in PostgreSQL.
            default: base.and_then(|base| self.open.catalog.1.domain(base)?.1.default.clone()),
            checks: Vec::new(),
            collation: base.and_then(|base| self.open.catalog.1.domain(base)?.1.collation),
        };
        let (mut nullable, mut default) = (None, None);
        let mut checks = Vec::new();
        for clause in DomainClause::of(create) {
            match clause {
                DomainClause::Default(expr) if default.is_none() => default = Some(expr),
                DomainClause::Default(_) => {
                    return Err(SqlError::syntax("multiple default expressions"));
                }
                DomainClause::Null(may_be) => {
                    if nullable.is_some_and(|before| before != may_be) {
                        return Err(SqlError::syntax("conflicting NULL/NOT NULL constraints"));
                    }
                    nullable = Some(may_be);
                }
                DomainClause::Collate(collation) => {
                    let place = self.binder().place_before(&collation, "collate");
                    let done = self.binder().collation_named(&collation, Some(ty));
                    let collation = done.map_err(|error| error.at(place))?;
                    domain.collation = Collation::other_than_of(ty, collation);
                }
                DomainClause::Check(name, expr) => checks.push((name, expr)),
                DomainClause::Refused(what) => return Err(refused(what)),
            }
        }
        domain.not_null = nullable == Some(false);
        if let Some(expr) = default {
            domain.default = self.domain_default(&expr, &domain)?;
        }
        let oid = self.draw_pair()?;
        for (given, expr) in checks {
            let check = self.new_check(&name, &domain, given.as_ref(), &expr)?.0;
            domain.checks.push(check);
        }
        let own = self.new_relation(oid, namespace, &name, Kind::Domain(Box::new(domain)));
        self.hold_types(&own)?;
        self.change(Change::PutRelation(Arc::new(own)))?;
        self.check_bounds(oid)?;
        Ok(CommandTag::plain("CREATE DOMAIN"))
    }

    /// The default of a domain, as it is kept; none for NULL.
    fn domain_default(&mut self, expr: &ast::Expr, domain: &Domain) -> Result<Option<Box<str>>> {
        let default = self.new_default(expr, domain.ty, domain.typmod)?;
        let is_null = matches!(expr, ast::Expr::Value(value) if value.value == ast::Value::Null);
        match default {
            crate::catalog::Default::Expression(sql) if !is_null => Ok(Some(sql)),
            _ => Ok(None),
        }
    }

    /// A constraint of a domain that has others, and its condition over the value.
    ///
    /// # Errors
    /// `42710` for a name that another one has; those of conditions.
    fn new_check(
        &self,
        domain_name: &str,
        domain: &Domain,
        given: Option<&ast::Ident>,
        expr: &ast::Expr,
    ) -> Result<(Check, Expr)> {
        let is_taken = |name: &str| domain.checks.iter().any(|own| *own.name == *name);
        let made = MadeName {
            table: domain_name,
            columns: "",
            label: "check",
        };
        let name = given.map_or_else(|| made.free(is_taken), folded);
        if is_taken(&name) {
            let message =
                format!("constraint \"{name}\" for domain \"{domain_name}\" already exists");
            return Err(SqlError::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let outer = self.binder();
        let mut binder = outer.over_value(domain)?;
        let condition = binder.condition(expr, "CHECK")?;
        if !binder.subqueries.is_empty() {
            let text = "cannot use subquery in check constraint";
            let error = SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text);
            return Err(error.at(binder.place_of_error(expr)));
        }
        let check = Check {
            oid: self.draw_oid()?,
            name: name.into(),
            expression: self.kept_text(expr).into(),
        };
        Ok((check, condition))
    }

    /// A new condition of a domain does not cast to it, or to what asks the same: no value could be looked at.
    ///
    /// # Errors
    /// `0A000`.
    fn check_no_circle(&self, domain: &Relation, condition: &Expr) -> Result<()> {
        let catalog = &self.open.catalog.1;
        let mut casts = Vec::new();
        condition.walk(&mut |expr| {
            if let Expr::Domain { rules, .. } = expr {
                casts.push(rules.oid);
                casts.extend(rules.domains());
            }
        });
        let mut casts = casts.into_iter();
        if casts.any(|oid| catalog.is_domain_over(oid, domain.oid)) {
            return Err(SqlError::unsupported(
                "a constraint of a domain that casts to it",
            ));
        }
        Ok(())
    }

    /// All that a domain asks now, with those below, stays within bounds (U8).
    ///
    /// # Errors
    /// `54001`.
    fn check_bounds(&self, domain: Oid) -> Result<()> {
        self.binder().domain_rules(domain).map(drop)
    }

    /// A domain that is to be changed, alone.
    ///
    /// # Errors
    /// `42704` if it is not there, `42809` for another type, `42501` for who does not own it.
    fn domain_alone(&mut self, name: &ast::ObjectName) -> Result<Arc<Relation>> {
        let oid = match self.find_type(name)? {
            Some(NamedType::Domain(oid)) => oid,
            found => {
                let shown = match found {
                    Some(NamedType::Own(ty)) => self.forms.name_of(ty).into_owned(),
                    _ => match self.binder().relation(name) {
                        Ok(table) => crate::names::quoted(&table.name),
                        Err(_) => return Err(no_type(name)),
                    },
                };
                let message = format!("{shown} is not a domain");
                return Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message));
            }
        };
        let relation = self.open.catalog.1.relation(oid).cloned();
        let relation = relation.ok_or_else(|| no_type(name))?;
        self.alone_if(&relation, Self::check_type_owner)
    }

    /// `42809` for a name that DROP DOMAIN or COMMENT ON DOMAIN says and that is another type's.
    ///
    /// # Errors
    /// As it says.
    pub(super) fn check_names_domain(&self, name: &ast::ObjectName) -> Result<()> {
        match self.find_type(name)? {
            Some(NamedType::Own(_)) => {
                let (_, own) = crate::bind::object_name(name)?;
                let message = format!("\"{own}\" is not a domain");
                Err(SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message))
            }
            _ => Ok(()),
        }
    }

    /// ALTER DOMAIN.
    ///
    /// # Errors
    /// Those of [`Ddl::domain_alone`]; `42710`, `42704` of constraints; `23502`, `23514` for a value that is there.
    pub(super) fn alter_domain(
        &mut self,
        alter: &ast::AlterTable,
        clauses: &[Clause],
    ) -> Result<CommandTag> {
        let tag = CommandTag::plain("ALTER DOMAIN");
        let relation = self.domain_alone(&alter.name)?;
        let Kind::Domain(own) = &relation.kind else {
            return Err(SqlError::internal("no domain"));
        };
        let mut next = Domain::clone(own);
        let named = |name: &str| own.checks.iter().position(|check| *check.name == *name);
        match (alter.operations.get(1), clauses) {
            (_, [Clause::Schema(schema)]) => {
                self.move_type(&relation, schema)?;
                return Ok(tag);
            }
            (Some(Operation::OwnerTo { new_owner }), _) => {
                self.give_to(&relation, new_owner)?;
                return Ok(tag);
            }
            (Some(Operation::RenameTable { table_name }), _) => {
                let (ast::RenameTableNameKind::To(name) | ast::RenameTableNameKind::As(name)) =
                    table_name;
                let (_, name) = crate::bind::object_name(name)?;
                self.rename_type(&relation, &name)?;
                return Ok(tag);
            }
            (Some(Operation::AlterColumn { op, .. }), _) => match op {
                AlterColumnOperation::SetDefault { value } => {
                    next.default = self.domain_default(value, own)?;
                }
                AlterColumnOperation::DropDefault => next.default = None,
                AlterColumnOperation::SetNotNull if own.not_null => return Ok(tag),
                AlterColumnOperation::SetNotNull => {
                    self.check_values(relation.oid, &Asked::NotNull)?;
                    next.not_null = true;
                }
                AlterColumnOperation::DropNotNull => next.not_null = false,
                _ => return Err(SqlError::internal("nothing to alter")),
            },
            (Some(Operation::AddConstraint { constraint, .. }), _) => {
                let check = match constraint {
                    ast::TableConstraint::Check(check) => check,
                    ast::TableConstraint::Unique(_) => return Err(refused(Refused::Unique)),
                    ast::TableConstraint::PrimaryKey(_) => {
                        return Err(refused(Refused::PrimaryKey));
                    }
                    ast::TableConstraint::ForeignKey(_) => {
                        return Err(refused(Refused::ForeignKey));
                    }
                    other => return Err(SqlError::unsupported(format!("{other} of a domain"))),
                };
                let name = check.name.as_ref();
                let (check, condition) = self.new_check(&relation.name, own, name, &check.expr)?;
                self.check_no_circle(&relation, &condition)?;
                self.check_values(relation.oid, &Asked::Check(&condition))?;
                next.checks.push(check);
            }
            (
                Some(Operation::DropConstraint {
                    if_exists, name, ..
                }),
                _,
            ) => {
                let name = folded(name);
                match named(&name) {
                    Some(at) => drop(next.checks.remove(at)),
                    None => {
                        let message = format!(
                            "constraint \"{name}\" of domain \"{}\" does not exist",
                            relation.name
                        );
                        if !if_exists {
                            return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
                        }
                        let notice = Fields::notice(format!("{message}, skipping"));
                        self.notices.push(notice);
                        return Ok(tag);
                    }
                }
            }
            (Some(Operation::RenameConstraint { old_name, new_name }), _) => {
                let (old, new) = (folded(old_name), folded(new_name));
                let shown = self.binder().domain_shown(&relation);
                let wrong = |name: &str, state, what: &str| {
                    let message = format!("constraint \"{name}\" for domain {shown} {what}");
                    SqlError::new(state, message)
                };
                let at = named(&old)
                    .ok_or_else(|| wrong(&old, sqlstate::UNDEFINED_OBJECT, "does not exist"))?;
                if named(&new).is_some() {
                    return Err(wrong(&new, sqlstate::DUPLICATE_OBJECT, "already exists"));
                }
                next.checks[at].name = new.into();
            }
            (Some(Operation::ValidateConstraint { name }), _) => {
                let name = folded(name);
                if named(&name).is_none() {
                    let message = format!(
                        "constraint \"{name}\" of domain \"{}\" does not exist",
                        relation.name
                    );
                    return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
                }
                return Ok(tag);
            }
            _ => return Err(SqlError::internal("nothing to alter")),
        }
        let asks_more = next.checks.len() > own.checks.len();
        let next = Relation {
            generation: relation.generation + 1,
            kind: Kind::Domain(Box::new(next)),
            ..Relation::clone(&relation)
        };
        self.hold_types(&next)?;
        self.change(Change::PutRelation(Arc::new(next)))?;
        if asks_more {
            self.check_bounds(relation.oid)?;
        }
        Ok(tag)
    }

    /// The values that are there fulfil what a domain is about to ask; the tables with columns of it, and of domains that were made over it, get a new generation.
    ///
    /// # Errors
    /// `23502`, `23514`; those of waiting; `40001` for a table that the image lacks.
    fn check_values(&mut self, domain: Oid, asked: &Asked<'_>) -> Result<()> {
        self.check_users_known(domain)?;
        let catalog = self.open.catalog.1.clone();
        let is_of = |oid: &Oid| catalog.is_domain_over(*oid, domain);
        for table in catalog.relations() {
            let columns = table.table().map_or(&[][..], |table| &table.domains);
            let ids = columns.iter().filter(|(_, oid)| is_of(oid));
            let ids: Vec<_> = ids.map(|(id, _)| *id).collect();
            if ids.is_empty() {
                continue;
            }
            let relation = self.alone(table)?;
            let Some(table) = relation.table() else {
                continue;
            };
            let positions = ids.iter().filter_map(|id| table.schema.position_of(*id));
            let positions: Vec<usize> = positions.collect();
            self.each_row_asking(&relation, |values, env| {
                for at in &positions {
                    let row = std::slice::from_ref(&values[*at]);
                    let rows = [RowRef::Values(row)];
                    let wrong = match asked {
                        Asked::NotNull if row[0].is_null() => {
                            Some((sqlstate::NOT_NULL_VIOLATION, "contains null values"))
                        }
                        Asked::NotNull => None,
                        Asked::Check(check) => {
                            let found = check.eval(&Frame::over(&rows, env))?;
                            let failed = found.as_ref().as_bool() == Some(false);
                            let text = "contains values that violate the new constraint";
                            failed.then_some((sqlstate::CHECK_VIOLATION, text))
                        }
                    };
                    if let Some((state, what)) = wrong {
                        let column = &table.schema.column(*at).name;
                        let message =
                            format!("column \"{column}\" of table \"{}\" {what}", relation.name);
                        let error = SqlError::new(state, message);
                        return Err(error.on_table(&relation, &catalog).on_column(column));
                    }
                }
                Ok(())
            })?;
            let next = table.clone();
            self.put_table(&relation, next)?;
        }
        Ok(())
    }

    /// What the type of a column is called in messages.
    pub(super) fn column_type_shown(&self, column: &OutputColumn) -> String {
        match column
            .domain
            .and_then(|oid| self.open.catalog.1.relation(oid))
        {
            Some(domain) => self.binder().domain_shown(domain),
            None => self.forms.format_type(column.ty, column.typmod),
        }
    }

    /// Takes a constraint out of a domain that is still there.
    ///
    /// # Errors
    /// Those of waiting.
    pub(super) fn take_from_domain(&mut self, domain: &Arc<Relation>, check: &Check) -> Result<()> {
        if self.open.catalog.1.relation(domain.oid).is_none() {
            return Ok(());
        }
        self.change_domain(domain, |own| {
            own.checks.retain(|own| own.oid != check.oid);
        })
    }

    /// Gives a domain another definition, in which its values are what they were.
    ///
    /// # Errors
    /// Those of waiting.
    pub(super) fn change_domain(
        &mut self,
        domain: &Arc<Relation>,
        change: impl FnOnce(&mut Domain),
    ) -> Result<()> {
        let relation = self.alone(domain)?;
        let Kind::Domain(own) = &relation.kind else {
            return Ok(());
        };
        let mut next = Domain::clone(own);
        change(&mut next);
        let next = Relation {
            generation: relation.generation + 1,
            kind: Kind::Domain(Box::new(next)),
            ..Relation::clone(&relation)
        };
        self.change(Change::PutRelation(Arc::new(next)))
    }

    /// What holds for the rows of a table whose columns are of domains.
    ///
    /// # Errors
    /// `23502`, `23514`.
    pub(super) fn check_domains(&mut self, relation: &Relation) -> Result<()> {
        let domains = self.binder().domains_in(relation)?;
        if domains.is_empty() {
            return Ok(());
        }
        self.each_row_asking(relation, |values, env| {
            let rows = [RowRef::Values(values)];
            let frame = Frame::over(&rows, env);
            for (position, domain) in &domains {
                domain.check(values[*position].as_ref(), &frame)?;
            }
            Ok(())
        })
    }

    /// The type that a definition says, for who may look into its schema.
    ///
    /// # Errors
    /// Those of types; `42501`.
    pub(super) fn type_said(&self, data_type: &ast::DataType) -> Result<(Type, Typmod)> {
        let binder = self.binder();
        let found = binder.type_of(data_type)?;
        let domain = binder.domain_named(data_type)?;
        let own = domain.or_else(|| found.0.enum_id().map(|id| id.oid()));
        if let Some(own) = own.and_then(|oid| self.open.catalog.1.relation(oid)) {
            self.check_look(own.namespace)?;
        }
        Ok(found)
    }

    /// The domain that a column is of whose type is written so; its gate, and those of the domains that it was made over, are held with others.
    ///
    /// # Errors
    /// Those of types, and of waiting for the gates of the domain and of those below.
    pub(super) fn column_domain(&mut self, data_type: &ast::DataType) -> Result<Option<Oid>> {
        let domain = self.binder().domain_named(data_type)?;
        let made = self.binder().type_of(data_type).ok();
        let made = made.and_then(|(ty, _)| ty.enum_id()).map(|id| id.oid());
        if let Some(oid) = domain.or(made) {
            self.check_type_right(oid)?;
        }
        if let Some(oid) = domain {
            self.hold_named(oid)?;
        }
        Ok(domain)
    }
}

/// What a domain cannot have.
#[cold]
fn refused(what: Refused) -> SqlError {
    match what {
        Refused::Unique => SqlError::syntax("unique constraints not possible for domains"),
        Refused::PrimaryKey => SqlError::syntax("primary key constraints not possible for domains"),
        Refused::ForeignKey => SqlError::syntax("foreign key constraints not possible for domains"),
        Refused::Deferrable => {
            let text = "specifying constraint deferrability not supported for domains";
            SqlError::new(sqlstate::FEATURE_NOT_SUPPORTED, text)
        }
        Refused::NoInherit => {
            let text = "check constraints for domains cannot be marked NO INHERIT";
            SqlError::new(sqlstate::INVALID_TABLE_DEFINITION, text)
        }
    }
}
