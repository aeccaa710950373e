//! COLLATE: which collation a name means, and which one an expression is of.
//!
//! All collations have one order, so that none is part of a bound expression: which one it is of is found as it is bound, of what stands in it ([`Collated`]), by PostgreSQL's rules. Where nothing
//! decides, PostgreSQL says so when two texts are compared; here it is said when that is bound.
//!
//! Not here: rows, subqueries and arrays, of which nothing is said.

use super::row::row_of;
use super::types::object_name;
use super::{Binder, Bound};
use crate::catalog::{Collation, Oid};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{Type, Value};

/// The number of no collation: of a column that is computed of columns of several.
pub(crate) const NONE: Oid = 0;

/// The collation of an expression, and how it comes to be that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Collated {
    /// It is that of its type, which yields to every other.
    #[default]
    Own,
    /// It is a column's.
    Implicit(Oid),
    /// There are columns of several.
    Indeterminate,
    /// COLLATE says it.
    Explicit(Oid),
    /// COLLATE says two.
    Mismatch(Oid, Oid),
}

impl Collated {
    /// Of what two of them are put together to.
    pub fn and(self, other: Self) -> Self {
        use Collated as C;
        match (self, other) {
            (C::Mismatch(..), _) => self,
            (_, C::Mismatch(..)) => other,
            (C::Explicit(one), C::Explicit(other)) if one != other => C::Mismatch(one, other),
            (C::Explicit(_), _) => self,
            (_, C::Explicit(_)) => other,
            (C::Indeterminate, _) | (_, C::Indeterminate) => C::Indeterminate,
            (C::Implicit(one), C::Implicit(other)) if one != other => C::Indeterminate,
            (C::Implicit(_), _) => self,
            (C::Own, other) => other,
        }
    }

    /// That texts of it can be put together, or compared.
    ///
    /// # Errors
    /// `42P21`, `42P22`.
    fn check(self, compares: bool) -> Result<()> {
        match self {
            Self::Mismatch(one, other) => {
                let message = mismatch("explicit", one, other);
                Err(SqlError::new(sqlstate::COLLATION_MISMATCH, message))
            }
            Self::Indeterminate if compares => {
                let text = "could not determine which collation to use for string comparison";
                Err(indeterminate(text))
            }
            _ => Ok(()),
        }
    }

    /// Whether COLLATE says it.
    pub fn is_said(self) -> bool {
        matches!(self, Self::Explicit(_) | Self::Mismatch(..))
    }

    /// As a column of a type keeps it: `None` for the type's own, [`NONE`] where nothing decides.
    pub fn of_column(self, ty: Type) -> Option<Oid> {
        match self {
            _ if Collation::of_type(ty) == 0 => None,
            Self::Own => None,
            Self::Implicit(oid) | Self::Explicit(oid) => Collation::other_than_of(ty, oid),
            Self::Indeterminate | Self::Mismatch(..) => Some(NONE),
        }
    }
}

/// What is known while expressions are bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Collations {
    /// Of what was bound so far within the expression that is being bound.
    pub within: Collated,
    /// Of the expression that was bound last.
    pub last: Collated,
}

impl Binder<'_> {
    /// The collation of a name, for values of a type; `None`: of a literal whose type is not known yet.
    ///
    /// # Errors
    /// `3F000` for a schema that there is not, `42704` for a collation, `42804` for a type whose values have none.
    pub(crate) fn collation_named(
        &self,
        collation: &ast::ObjectName,
        ty: Option<Type>,
    ) -> Result<Oid> {
        let (schema, name) = object_name(collation)?;
        if let Some(schema) = &schema
            && self
                .catalog
                .schema_named(schema, self.search_path)
                .is_none()
        {
            let message = format!("schema \"{schema}\" does not exist");
            return Err(SqlError::new(sqlstate::INVALID_SCHEMA_NAME, message));
        }
        let found = match schema.as_deref() {
            None | Some("pg_catalog") => Collation::named(&name),
            Some(_) => None,
        };
        let Some(found) = found else {
            let shown = match schema {
                Some(schema) => format!("{schema}.{name}"),
                None => name,
            };
            let message = format!("collation \"{shown}\" for encoding \"UTF8\" does not exist");
            return Err(SqlError::new(sqlstate::UNDEFINED_OBJECT, message));
        };
        match ty {
            Some(ty) if ty.element().unwrap_or(ty).category() != 'S' => Err(no_collations(ty)),
            _ => Ok(found.oid),
        }
    }

    /// Says which collation an expression is of that was bound; `collations` has what stands in it.
    ///
    /// # Errors
    /// `42P21` for two that COLLATE says, `42P22` for texts that are compared of which nothing says by which, `42704`, `3F000`, `42804`.
    pub(super) fn note_collation(&mut self, node: &ast::Expr, bound: &Bound) -> Result<()> {
        let within = std::mem::take(&mut self.collations.within);
        self.collations.last = Collated::Own;
        self.collations.last = self.collated(node, bound, within)?;
        Ok(())
    }

    fn collated(&self, node: &ast::Expr, bound: &Bound, within: Collated) -> Result<Collated> {
        match node {
            ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => {
                return Ok(self.collated_column(&bound.expr));
            }
            ast::Expr::Collate { collation, .. } => {
                let oid = self.collation_named(collation, bound.ty)?;
                return Ok(Collated::Explicit(oid));
            }
            _ => {}
        }
        // A cast to a domain has the domain's, whatever stands in it.
        if let (Expr::Domain { rules, .. }, ast::Expr::Cast { .. } | ast::Expr::TypedString(_)) =
            (&bound.expr, node)
            && !matches!(within, Collated::Mismatch(..))
        {
            let domain = self.catalog.domain(rules.oid);
            if let Some(oid) = domain.and_then(|(_, domain)| domain.collation) {
                return Ok(Collated::Implicit(oid));
            }
        }
        if within == Collated::Own {
            return Ok(within);
        }
        let Some(compares) = compares(node) else {
            return Ok(Collated::Own);
        };
        within.check(compares)?;
        Ok(match bound.ty {
            Some(ty) if Collation::of_type(ty) == 0 => Collated::Own,
            _ => within,
        })
    }

    /// That an operand, of such a collation, can be compared with the one that was bound last: where several are compared with one, each is by itself.
    ///
    /// # Errors
    /// `42P21`, `42P22`.
    pub(super) fn check_compared(&self, operand: Collated) -> Result<()> {
        operand.and(self.collations.last).check(true)
    }

    /// The same of the items of IN: those that read no columns are one array, whose collation is one.
    ///
    /// # Errors
    /// `42P21`, `42P22`.
    pub(super) fn check_listed(
        operand: Collated,
        items: &[Bound],
        collations: &[Collated],
    ) -> Result<()> {
        let mut array = Collated::Own;
        for (item, own) in items.iter().zip(collations) {
            let mut reads = false;
            item.expr
                .walk(&mut |part| reads |= matches!(part, Expr::Column { .. }));
            match reads {
                true => operand.and(*own).check(true)?,
                false => array = array.and(*own),
            }
        }
        operand.and(array).check(true)
    }

    /// `pg_collation_for` of an argument that was bound last.
    ///
    /// # Errors
    /// `42804` for what is no text.
    pub(super) fn collation_for(&self, argument: &Bound) -> Result<Bound> {
        let ty = argument.ty.unwrap_or(Type::Text);
        let own = match Collation::of_type(ty) {
            NONE => return Err(no_collations(ty)),
            // A literal has none.
            _ if argument.ty.is_none() => NONE,
            own => own,
        };
        let oid = self.collations.within.of_column(ty).unwrap_or(own);
        let name = Collation::of(oid).map(|own| Value::text(crate::names::quoted(own.name)));
        let name = Expr::Const(name.unwrap_or(Value::Null));
        Ok(Bound::new(name, Type::Text))
    }

    /// Which collation a column is of.
    pub(crate) fn collated_column(&self, expr: &Expr) -> Collated {
        match self.scope_column(expr).and_then(|column| column.collation) {
            None => Collated::Own,
            Some(NONE) => Collated::Indeterminate,
            Some(oid) => Collated::Implicit(oid),
        }
    }
}

/// `42804`.
#[cold]
fn no_collations(ty: Type) -> SqlError {
    let message = format!("collations are not supported by type {}", ty.sql_name());
    SqlError::new(sqlstate::DATATYPE_MISMATCH, message)
}

/// The collation of a column that a set operation makes of two; `may_differ`: no texts are compared.
///
/// # Errors
/// `42P21`.
pub(crate) fn common_collation(
    columns: [Option<Oid>; 2],
    said: [bool; 2],
    may_differ: bool,
) -> Result<Option<Oid>> {
    Ok(match columns {
        [one, other] if one == other => one,
        // What COLLATE says wins.
        [one, _] if said == [true, false] => one,
        [_, other] if said == [false, true] => other,
        [one, other] if said == [true; 2] => {
            // A collation that is none here is the type's own.
            let [one, other] = [one, other].map(|own| own.unwrap_or(Collation::DEFAULT));
            let message = mismatch("explicit", one, other);
            return Err(SqlError::new(sqlstate::COLLATION_MISMATCH, message));
        }
        [one, None] => one,
        [None, other] => other,
        _ if may_differ => Some(NONE),
        [Some(one), Some(other)] => {
            let message = mismatch("implicit", one, other);
            let hint = "You can choose the collation by applying the COLLATE clause to one or both expressions.";
            return Err(SqlError::new(sqlstate::COLLATION_MISMATCH, message).with_hint(hint));
        }
    })
}

fn mismatch(kind: &str, one: Oid, other: Oid) -> String {
    let [one, other] = [one, other].map(|oid| Collation::of(oid).map_or("", |own| own.name));
    format!("collation mismatch between {kind} collations \"{one}\" and \"{other}\"")
}

/// `42P22`.
#[cold]
pub(crate) fn indeterminate(message: impl Into<String>) -> SqlError {
    SqlError::new(sqlstate::INDETERMINATE_COLLATION, message.into())
        .with_hint("Use the COLLATE clause to set the collation explicitly.")
}

/// Whether an expression compares the texts that stand in it; `None` if they are not put together, so that nothing is said of them.
fn compares(node: &ast::Expr) -> Option<bool> {
    use ast::BinaryOperator as B;
    use ast::Expr as E;
    let of_rows = |side: &E| row_of(side).is_some();
    match node {
        E::BinaryOp { left, right, .. } if of_rows(left) || of_rows(right) => None,
        E::BinaryOp { op, .. } => Some(!matches!(
            op,
            B::StringConcat
                | B::And
                | B::Or
                | B::Arrow
                | B::LongArrow
                | B::PGLikeMatch
                | B::PGNotLikeMatch
        )),
        E::IsDistinctFrom(left, right) | E::IsNotDistinctFrom(left, right) => {
            (!of_rows(left) && !of_rows(right)).then_some(true)
        }
        // What they compare is looked at one by one, where it is bound.
        E::Between { .. } | E::InList { .. } => None,
        // Bytes are all that LIKE looks at.
        E::Like { any: false, .. } => Some(false),
        E::ILike { any: false, .. } | E::SimilarTo { .. } => Some(true),
        E::Nested(_)
        | E::Cast { .. }
        | E::Case { operand: None, .. }
        | E::Substring { .. }
        | E::Trim { .. }
        | E::Overlay { .. } => Some(false),
        E::Function(function) => {
            let ast::FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let alone = list.clauses.is_empty()
                && function.within_group.is_empty()
                && function.over.is_none();
            let name = object_name(&function.name).ok()?.1;
            let compares = matches!(
                name.as_str(),
                "greatest" | "least" | "max" | "min" | "nullif" | "lower" | "upper" | "initcap"
            );
            alone.then_some(compares)
        }
        _ => None,
    }
}
