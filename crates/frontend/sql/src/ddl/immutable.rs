//! Whether an expression over a row has the same value whenever and by whomever it is asked: what generated columns and indexes keep.
//!
//! Functions whose result depends on the time zone, on the style of dates or on the session are known by their names, casts by their types; one between an enum
//! and anything else depends on how its labels are called. What is not known to depend on any of these does not.

use crate::expr::{Builtin, CatalogFunction, Expr};
use vellum_row::arithmetic::{self, Operator};
use vellum_row::{Column, Type};

/// Whether an expression over a row of these columns is immutable.
pub(super) fn is_immutable(expr: &Expr, columns: &[Column]) -> bool {
    let mut immutable = true;
    expr.walk(&mut |part| {
        let ty = |expr: &Expr| type_of(expr, columns);
        immutable &= match part {
            Expr::Call {
                function,
                arguments,
            } => {
                let parts_of_moment = matches!(function, Builtin::Extract | Builtin::DatePart)
                    && arguments
                        .iter()
                        .any(|own| ty(own) == Some(Type::Timestamptz));
                // What is quoted is the text of a value.
                let quoted = named(*function, &["quote_literal", "quote_nullable"])
                    && arguments
                        .iter()
                        .any(|own| ty(own).is_some_and(|ty| cast_depends(ty, Type::Text)));
                !function.is_volatile()
                    && !function.asks()
                    && !parts_of_moment
                    && !quoted
                    && !depends_on_settings(*function)
            }
            Expr::Cast {
                operand, ty: to, ..
            } => match ty(operand) {
                Some(from) => !cast_depends(from, *to),
                None => is_enum(*to) || !has_enum(operand, columns),
            },
            // Days and months have the length that the time zone gives them.
            Expr::Arithmetic {
                operator: Operator::Add | Operator::Subtract,
                left,
                right,
            } => {
                let types = [ty(left), ty(right)];
                !(types.contains(&Some(Type::Timestamptz)) && types.contains(&Some(Type::Interval)))
            }
            _ => true,
        };
    });
    immutable
}

fn named(function: Builtin, names: &[&str]) -> bool {
    matches!(function, Builtin::Scalar(own) if names.contains(&own.entry().name))
}

/// Functions whose result depends on the time zone or other settings.
fn depends_on_settings(function: Builtin) -> bool {
    let Builtin::Scalar(own) = function else {
        // A row is held as the text of its values, which is stable whatever they are, as in PostgreSQL.
        return matches!(
            function,
            Builtin::Concat | Builtin::Catalog(CatalogFunction::MakeRecord)
        );
    };
    let entry = own.entry();
    let count = entry.arguments().count();
    let zoned = entry.arguments().any(|ty| ty == "timestamptz");
    match entry.name {
        "to_char" | "to_date" | "to_number" | "format" | "concat_ws" | "to_json" | "to_jsonb"
        | "json_build_object" | "jsonb_build_object" | "json_build_array" | "jsonb_build_array"
        | "row_to_json" | "array_to_string" => true,
        "to_timestamp" => count == 2,
        "age" => count == 1,
        "make_timestamptz" => count == 6,
        "date_trunc" | "date" => zoned,
        _ => false,
    }
}

/// Whether values of a type are labels, which may be called otherwise.
fn is_enum(ty: Type) -> bool {
    matches!(ty.element().unwrap_or(ty), Type::Enum(_))
}

/// Whether an expression reads a column of labels.
fn has_enum(expr: &Expr, columns: &[Column]) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        if let Expr::Column { position, .. } = part {
            let column = columns.get(usize::from(*position));
            found |= column.is_some_and(|column| is_enum(column.ty));
        }
    });
    found
}

/// Casts that read the session's time zone or the style of dates, the labels of an enum, or the catalog. Texts of arrays depend on all of that, as PostgreSQL
/// has it, whatever their elements.
fn cast_depends(from: Type, to: Type) -> bool {
    let is_text = |ty: Type| ty.category() == 'S';
    match (from.element(), to.element()) {
        (Some(from), Some(to)) => return from != to && cast_depends(from, to),
        (Some(_), None) if is_text(to) => return true,
        (None, Some(_)) if is_text(from) => return true,
        _ => {}
    }
    if from.is_reg() && is_text(to) || to.is_reg() && is_text(from) {
        return true;
    }
    if is_enum(from) || is_enum(to) {
        return from != to;
    }
    let dated = |ty: Type| {
        matches!(
            ty,
            Type::Date | Type::Time | Type::Timestamp | Type::Timestamptz | Type::Interval
        )
    };
    let zoned = from == Type::Timestamptz || to == Type::Timestamptz;
    zoned && from != to && dated(from) && dated(to)
        || dated(from) && from != Type::Time && is_text(to)
        || is_text(from) && dated(to)
}

/// The type of an operand, as far as it tells it.
fn type_of(operand: &Expr, columns: &[Column]) -> Option<Type> {
    let of = |expr: &Expr| type_of(expr, columns);
    match operand {
        Expr::Const(value) => value.as_ref().ty(),
        Expr::Cast { ty, .. } => Some(*ty),
        Expr::Column { position, .. } => columns.get(usize::from(*position)).map(|own| own.ty),
        Expr::Negate(operand) => of(operand),
        Expr::Arithmetic {
            operator,
            left,
            right,
        } => Some(arithmetic::resolve(*operator, of(left)?, of(right)?)?.result),
        Expr::Coalesce(all) => all.iter().find_map(of),
        Expr::Case {
            branches,
            otherwise,
        } => {
            let results = branches.iter().map(|(_, result)| result);
            results.chain([&**otherwise]).find_map(of)
        }
        Expr::Call {
            function: Builtin::Scalar(own),
            ..
        } => Type::from_name(own.entry().result),
        Expr::Call {
            function: Builtin::NullIf | Builtin::Greatest | Builtin::Least,
            arguments,
        } => arguments.iter().find_map(of),
        _ => None,
    }
}
