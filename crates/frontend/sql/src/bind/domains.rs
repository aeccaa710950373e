//! Domains: which one an expression is of, and what makes a value one of a domain.
//!
//! A bound expression has the type of the domain's values, so operators, functions and assignments find what they find for that. That it is of a domain its expression
//! tells: it is a cast to it, or a column of it ([`Binder::domain_of`]).

use super::{Binder, Bound, ScopeColumn, ScopeTable};
use crate::catalog::{Domain, Oid, Relation};
use crate::error::{Result, SqlError};
use crate::expr::{Builtin, Casting, DomainRules, Expr, NESTED_MAX};
use crate::parse::{too_deep, with_stack};
use sqlparser::ast;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use vellum_row::{CastContext, Type, Typmod};

/// What domains ask that were met in a statement, or in a condition of one that was: conditions that cast to one share what it asks.
pub(crate) type KnownDomains = Rc<RefCell<BTreeMap<Oid, Arc<DomainRules>>>>;

impl Binder<'_> {
    /// The domain that a name of a type stands for, if it does.
    ///
    /// # Errors
    /// `3F000`; `42601` for what is no name.
    pub fn domain_named(&self, data_type: &ast::DataType) -> Result<Option<Oid>> {
        match data_type {
            ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
                self.type_names().domain(name)
            }
            _ => Ok(None),
        }
    }

    /// The domain that an expression of this query is of.
    pub fn domain_of(&self, expr: &Expr) -> Option<Oid> {
        match expr {
            Expr::Domain { rules, .. } => Some(rules.oid),
            _ => self.scope_column(expr)?.domain,
        }
    }

    /// The column of a FROM that an expression of this query is.
    pub(super) fn scope_column(&self, expr: &Expr) -> Option<&ScopeColumn> {
        let (scope, table, position) = match expr {
            Expr::Column { table, position } => (&self.scope, table, position),
            Expr::Outer {
                level,
                table,
                position,
            } => {
                let around = self.outer.len().checked_sub(usize::from(*level))?;
                (&self.outer.get(around)?.scope, table, position)
            }
            _ => return None,
        };
        let table = scope.tables.get(usize::from(*table))?;
        table.columns.get(usize::from(*position))
    }

    /// An expression of the type of a domain's values as one of the domain.
    ///
    /// # Errors
    /// As [`Binder::domain_rules`].
    pub fn in_domain(&mut self, expr: Expr, domain: Oid) -> Result<Expr> {
        if self.domain_of(&expr) == Some(domain) {
            return Ok(expr);
        }
        Ok(Expr::Domain {
            operand: Box::new(expr),
            rules: self.domain_rules(domain)?,
        })
    }

    /// A cast to a domain, of what was cast to the type of its values; of one to that type, what is of no domain any more.
    pub(super) fn cast_to_domain(&mut self, bound: Bound, domain: Option<Oid>) -> Result<Bound> {
        let Some(domain) = domain else {
            return Ok(match (self.domain_of(&bound.expr), bound.ty) {
                (Some(_), Some(ty)) => Bound {
                    expr: Expr::Cast {
                        operand: Box::new(bound.expr),
                        ty,
                        typmod: Typmod::NONE,
                        casting: Casting::Explicit,
                    },
                    ..bound
                },
                _ => bound,
            });
        };
        let expr = self.in_domain(bound.expr, domain)?;
        Ok(Bound { expr, ..bound })
    }

    /// What a domain asks of its values.
    ///
    /// # Errors
    /// `54001` for one whose conditions cast to it, or to domains too deep in each other; those of conditions whose names are not there any more.
    pub fn domain_rules(&self, domain: Oid) -> Result<Arc<DomainRules>> {
        let known = self.domains_known.get_or_init(Rc::default);
        if let Some(rules) = known.borrow().get(&domain) {
            return Ok(rules.clone());
        }
        if self.domain_depth > NESTED_MAX {
            return Err(too_deep());
        }
        // Its conditions may be as high as the statement is.
        let rules = Arc::new(with_stack(|| self.bound_rules(domain))?);
        known.borrow_mut().insert(domain, rules.clone());
        Ok(rules)
    }

    fn bound_rules(&self, oid: Oid) -> Result<DomainRules> {
        let all = self.catalog.domains_of(oid);
        let (own, _) = all.first().ok_or_else(|| no_domain(oid))?;
        if let Some((_, last)) = all.last().filter(|(_, last)| last.base != 0) {
            return Err(no_domain(last.base));
        }
        let mut checks = Vec::new();
        for (_, domain) in all.iter().rev() {
            let mut sorted: Vec<_> = domain.checks.iter().collect();
            sorted.sort_by(|a, b| a.name.cmp(&b.name));
            for check in sorted {
                let node = crate::parse::expression(&check.expression)?;
                let mut binder = self.over_value(domain)?;
                checks.push((check.name.clone(), binder.condition(&node, "CHECK")?));
            }
        }
        let not_null = all.iter().any(|(_, domain)| domain.not_null);
        let schema = self.catalog.namespace_name(own.namespace);
        let name = (schema.into(), own.name.clone());
        DomainRules::new((oid, not_null), self.domain_shown(own), name, checks)
    }

    /// What a domain is called in messages.
    pub fn domain_shown(&self, relation: &Relation) -> String {
        let types = self.catalog.types();
        let name = types.domain_name(relation.oid, self.search_path);
        name.unwrap_or_else(|| relation.name.to_string())
    }

    /// A binder of conditions of a domain, in which VALUE stands for the value.
    ///
    /// # Errors
    /// None that is known.
    pub fn over_value(&self, domain: &Domain) -> Result<Binder<'_>> {
        let base = Some(domain.base).filter(|base| *base != 0);
        let mut binder = self.over((domain.ty, domain.typmod), base)?;
        binder.domain_depth = self.domain_depth + 1;
        Ok(binder)
    }

    fn over(&self, (ty, typmod): (Type, Typmod), domain: Option<Oid>) -> Result<Binder<'_>> {
        let mut binder = Binder::new(self.catalog, self.search_path, self.settings, self.text);
        let known = self.domains_known.get_or_init(Rc::default);
        binder.domains_known = known.clone().into();
        binder.takes_params = false;
        binder.scope.add(ScopeTable {
            // No text can name it.
            name: String::new(),
            own: None,
            qualified_only: false,
            is_value: false,
            may_miss: false,
            relation: None,
            columns: vec![ScopeColumn {
                name: "value".to_owned(),
                ty,
                typmod,
                number: 0,
                domain,
                collation: None,
            }],
        })?;
        Ok(binder)
    }

    /// The default of a domain, as an expression of the type of its values; none if it has none.
    ///
    /// # Errors
    /// Of names that are not there any more.
    pub fn domain_default(&mut self, domain: Oid) -> Result<Option<Expr>> {
        let Some((_, own)) = self.catalog.domain(domain) else {
            return Err(no_domain(domain));
        };
        let Some(sql) = &own.default else {
            return Ok(None);
        };
        let node = crate::parse::expression(sql)?;
        let scope = std::mem::take(&mut self.scope);
        let bound = self.stored(|binder| binder.expr(&node));
        self.scope = scope;
        let expr = self.coerce(bound?, own.ty, own.typmod, CastContext::Assignment)?;
        Ok(Some(expr))
    }

    /// `pg_typeof` of what is of a domain.
    pub(super) fn domain_typeof(&self, name: &str, arguments: &[Bound]) -> Option<Bound> {
        let ("pg_typeof", [argument]) = (name, arguments) else {
            return None;
        };
        let domain = self.domain_of(&argument.expr)?;
        let expr = Expr::Call {
            function: Builtin::TypeOf(domain),
            arguments: [argument.expr.clone()].into(),
        };
        Some(Bound::new(expr, Type::Regtype))
    }
}

#[cold]
fn no_domain(oid: Oid) -> SqlError {
    let message = format!("type with OID {oid} does not exist");
    SqlError::new(crate::sqlstate::UNDEFINED_OBJECT, message)
}
