//! Expressions as SQL again, written as PostgreSQL writes them (`ruleutils`).
//!
//! Differences: casts between kinds of text that change nothing are not there when an expression is bound, so only those of columns of
//! `character varying` are shown.

use crate::bind::Scope;
use crate::expr::{
    Builtin, Casting, CatalogFunction, Comparison, Expr, Form, Quantifier, RowTest, RowsFrom,
    Scalar,
};
use crate::names::{quoted, simple_literal};
use std::borrow::Cow;
use vellum_row::arithmetic::Operator;
use vellum_row::{Settings, Type, Typmod, Value, show};

/// What a function of an extension is called.
pub(crate) type Called<'f> = &'f dyn Fn(Scalar) -> String;

/// What a relation, a type or whatever else has an oid that is shown as a name is called.
pub(crate) type Named<'f> = &'f dyn Fn(Type, &str) -> String;

/// How an expression is written.
pub(crate) struct Writer<'w> {
    pub scope: &'w Scope,
    pub settings: &'w Settings,
    /// The name of what an oid is shown as, as it is shown, of the one that is kept.
    pub named: Named<'w>,
    /// The name of a function of an extension as it is shown.
    pub function: Called<'w>,
    /// Without parentheses that say nothing.
    pub pretty: bool,
    /// So that it is bound to the same again, where PostgreSQL writes what means the same.
    pub exact: bool,
}

/// What stands around an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// Nothing, or parentheses and commas of something else.
    Nothing,
    /// An operator: its sign, and whether this is what stands left of it.
    Operator(char, bool),
    And,
    Or,
    Not,
    Cast,
}

impl Writer<'_> {
    /// An expression that stands alone, of type `ty`.
    pub fn whole(&self, expr: &Expr, ty: Type) -> String {
        match expr {
            // What a cast that nobody wrote makes of a number is not shown.
            Expr::Const(value) => self.constant(value, Some(ty), false),
            Expr::Cast {
                operand,
                casting: Casting::Implicit | Casting::Compared,
                ..
            } => self.at(operand, Around::Nothing),
            other => self.at(other, Around::Nothing),
        }
    }

    fn constant(&self, value: &Value, ty: Option<Type>, nested: bool) -> String {
        let own = ty.filter(|ty| value.as_ref().fits(*ty)).or(value.ty());
        let name = self
            .settings
            .format_type(own.unwrap_or(Type::Text), Typmod::NONE);
        let mut text = String::new();
        show(value.as_ref(), self.settings, &mut text);
        match (value, ty) {
            (Value::Null, Some(_)) => return format!("NULL::{name}"),
            // Bound to what it was bound to before.
            (Value::Null, None) => return "NULL".to_owned(),
            _ => {}
        }
        match value {
            Value::Bool(value) => value.to_string(),
            Value::Int2(_) | Value::Int4(_) | Value::Int8(_) => {
                let name = if text.parse::<i32>().is_ok() {
                    "integer"
                } else {
                    "bigint"
                };
                if text.starts_with('-') {
                    format!("'{text}'::{name}")
                } else {
                    text
                }
            }
            Value::Numeric(_) if !text.starts_with('-') && text.contains('.') => text,
            Value::Numeric(_) | Value::Float4(_) | Value::Float8(_)
                if text.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                match (nested, self.pretty) {
                    (false, _) => text,
                    (true, true) => format!("{text}::{name}"),
                    (true, false) => format!("({text})::{name}"),
                }
            }
            _ => format!("{}::{name}", simple_literal(&text)),
        }
    }

    /// An expression beside others of its type: a null is shown as one of theirs.
    fn beside(&self, expr: &Expr, ty: Option<Type>, around: Around) -> String {
        match expr {
            Expr::Const(Value::Null) => self.constant(&Value::Null, ty, false),
            other => self.at(other, around),
        }
    }

    fn column(&self, table: u16, position: u16) -> (String, Option<Type>) {
        let table = self.scope.tables.get(usize::from(table));
        let column = table.and_then(|table| table.columns.get(usize::from(position)));
        match column {
            // What a domain asks is asked of its value.
            Some(column) if table.is_some_and(|table| table.name.is_empty()) => {
                (column.name.to_uppercase(), Some(column.ty))
            }
            Some(column) => (quoted(&column.name), Some(column.ty)),
            None => (String::new(), None),
        }
    }

    fn is_of_domain(&self, table: u16, position: u16) -> bool {
        let table = self.scope.tables.get(usize::from(table));
        let column = table.and_then(|table| table.columns.get(usize::from(position)));
        column.is_some_and(|column| column.domain.is_some())
    }

    /// Something between operators, with a cast that PostgreSQL shows there.
    fn operand(&self, expr: &Expr, operator: char, is_left: bool) -> String {
        match expr {
            Expr::Const(value) => self.constant(value, None, true),
            Expr::Column { table, position } => {
                let (name, ty) = self.column(*table, *position);
                // The operators of these types are those of others.
                let as_other = match ty {
                    Some(Type::Varchar) => Cow::Borrowed("text"),
                    Some(Type::Cidr) => Cow::Borrowed("inet"),
                    Some(ty) if ty.is_reg() && !self.exact => Cow::Borrowed("oid"),
                    Some(ty) if self.is_of_domain(*table, *position) => self.settings.name_of(ty),
                    _ => return name,
                };
                match self.pretty {
                    true => format!("{name}::{as_other}"),
                    false => format!("({name})::{as_other}"),
                }
            }
            Expr::Call {
                function: Builtin::Catalog(CatalogFunction::RegOf(_)),
                ..
            } if !self.exact => {
                let name = self.at(expr, Around::Cast);
                match self.pretty {
                    true => format!("{name}::oid"),
                    false => format!("({name})::oid"),
                }
            }
            other => self.at(other, Around::Operator(operator, is_left)),
        }
    }

    /// What stands for an oid, or for an array of them, by name.
    fn name(&self, ty: Type, value: &Value) -> Option<String> {
        let literal = |text: &str, ty| {
            let ty = self.settings.format_type(ty, Typmod::NONE);
            format!("{}::{ty}", simple_literal(text))
        };
        match value {
            Value::Text(name) => Some(literal(&(self.named)(ty, name), ty)),
            Value::Array(names) => {
                let names = names.as_ref().map(Type::Text, |name| {
                    Ok(match name.as_ref().as_str() {
                        Some(name) => Value::text((self.named)(ty, name)),
                        None => name,
                    })
                });
                let mut text = String::new();
                show(Value::Array(names.ok()?).as_ref(), self.settings, &mut text);
                Some(literal(&text, ty.array()))
            }
            _ => None,
        }
    }

    /// An operator whose sides are of one type.
    fn matched(&self, left: &Expr, operator: &str, right: &Expr, around: Around) -> String {
        let side = |own: &Expr, other: &Expr, is_left: bool| match own {
            Expr::Const(Value::Null) => self.constant(&Value::Null, self.type_of(other), false),
            _ => self.operand(own, sign_of(operator), is_left),
        };
        let sides = (side(left, right, true), side(right, left, false));
        self.between(sides, operator, around)
    }

    /// LIKE with another escape than the usual one, or none: what the pattern would be with that one.
    fn with_escape(
        &self,
        (operand, pattern, escape): (&Expr, &Expr, Option<char>),
        operator: &str,
        around: Around,
    ) -> String {
        let operand = self.operand(operand, '~', true);
        let escape = simple_literal(&escape.map(String::from).unwrap_or_default());
        if self.exact {
            let word = match operator {
                "~~" => "LIKE",
                "!~~" => "NOT LIKE",
                "~~*" => "ILIKE",
                _ => "NOT ILIKE",
            };
            let pattern = self.at(pattern, Around::Cast);
            return format!("({operand} {word} {pattern} ESCAPE {escape})");
        }
        let pattern = self.beside(pattern, Some(Type::Text), Around::Nothing);
        let call = format!("like_escape({pattern}, {escape}::text)");
        self.between((operand, call), operator, around)
    }

    fn binary(&self, left: &Expr, operator: &str, right: &Expr, around: Around) -> String {
        let sign = sign_of(operator);
        let sides = (
            self.operand(left, sign, true),
            self.operand(right, sign, false),
        );
        self.between(sides, operator, around)
    }

    fn between(&self, sides: (String, String), operator: &str, around: Around) -> String {
        let sign = sign_of(operator);
        let text = format!("{} {operator} {}", sides.0, sides.1);
        let low = |sign| matches!(sign, '+' | '-');
        let high = |sign| matches!(sign, '*' | '/' | '%');
        let simple = match around {
            Around::Nothing | Around::And | Around::Or | Around::Not => true,
            // What binds as tightly is read from the left.
            Around::Operator(outer, is_left) if operator.len() == 1 => {
                let same = low(outer) && low(sign) || high(outer) && high(sign);
                low(outer) && high(sign) || same && is_left
            }
            Around::Operator(..) | Around::Cast => false,
        };
        self.closed(text, simple)
    }

    /// In parentheses, unless they are left out.
    fn closed(&self, text: String, simple: bool) -> String {
        if self.pretty && simple {
            text
        } else {
            format!("({text})")
        }
    }

    fn list(&self, all: &[Expr]) -> String {
        let all = all.iter().map(|expr| self.at(expr, Around::Nothing));
        all.collect::<Vec<_>>().join(", ")
    }

    /// Expressions of one type.
    fn alike(&self, all: &[Expr]) -> String {
        let ty = all.iter().find_map(|expr| self.type_of(expr));
        let all = all
            .iter()
            .map(|expr| self.beside(expr, ty, Around::Nothing));
        all.collect::<Vec<_>>().join(", ")
    }

    /// The arguments of a function: text, where it takes text.
    fn arguments(&self, function: Builtin, all: &[Expr]) -> String {
        // Those that take values of any type, and from which argument on: literals need none there.
        let loose = match function {
            Builtin::Concat => Some(0),
            function => match function.name() {
                "json_build_object" | "jsonb_build_object" | "json_build_array"
                | "jsonb_build_array" | "num_nulls" | "num_nonnulls" => Some(0),
                "concat_ws" | "format" => Some(1),
                _ => None,
            },
        };
        if matches!(
            function,
            Builtin::NullIf | Builtin::Greatest | Builtin::Least
        ) {
            return self.alike(all);
        }
        let any = loose == Some(0)
            || matches!(
                function,
                Builtin::NullIf | Builtin::Greatest | Builtin::Least
            );
        let all = all.iter().enumerate().map(|(at, expr)| match expr {
            Expr::Column { .. } if !any => self.operand(expr, ',', false),
            Expr::Const(Value::Text(text)) if loose.is_some_and(|from| at >= from) => {
                simple_literal(text)
            }
            other => self.list(std::slice::from_ref(other)),
        });
        all.collect::<Vec<_>>().join(", ")
    }

    fn cast(&self, operand: &Expr, ty: Type, typmod: Typmod) -> String {
        if let (Expr::Call { function, .. }, Some(digits)) = (operand, typmod.fraction())
            && let Some(word) = function.keyword()
            && Builtin::of_word(&word.to_ascii_lowercase()) == Some((*function, ty))
        {
            return format!("{word}({digits})");
        }
        let name = self.settings.format_type(ty, typmod);
        let inner = match operand {
            Expr::Const(Value::Null) => return format!("NULL::{name}"),
            Expr::Const(value) => self.constant(value, None, false),
            other => self.at(other, Around::Cast),
        };
        let closed = inner.starts_with('(') && inner.ends_with(')');
        if self.pretty || closed {
            format!("{inner}::{name}")
        } else {
            format!("({inner})::{name}")
        }
    }

    fn at(&self, expr: &Expr, around: Around) -> String {
        match expr {
            Expr::Const(value) => self.constant(value, None, around != Around::Nothing),
            Expr::Column { table, position } => self.column(*table, *position).0,
            Expr::Param(number) => format!("${}", number + 1),
            Expr::Compare {
                comparison,
                left,
                right,
            } => self.matched(left, sign(*comparison), right, around),
            Expr::Arithmetic {
                operator,
                left,
                right,
            } => self.binary(left, arithmetic(*operator), right, around),
            Expr::Concat(left, right) => self.matched(left, "||", right, around),
            Expr::Like {
                operand,
                pattern,
                escape,
                fold,
                negated,
                ..
            } => {
                let operator = match (negated, fold) {
                    (false, false) => "~~",
                    (true, false) => "!~~",
                    (false, true) => "~~*",
                    (true, true) => "!~~*",
                };
                if *escape != Some('\\') {
                    return self.with_escape((operand, pattern, *escape), operator, around);
                }
                self.matched(operand, operator, pattern, around)
            }
            Expr::Distinct {
                left,
                right,
                negated,
            } => {
                let word = if *negated {
                    "IS NOT DISTINCT FROM"
                } else {
                    "IS DISTINCT FROM"
                };
                self.matched(left, word, right, around)
            }
            Expr::And(all) => {
                let all: Vec<String> = all.iter().map(|one| self.at(one, Around::And)).collect();
                let simple = matches!(around, Around::Nothing | Around::And | Around::Or);
                self.closed(all.join(" AND "), simple)
            }
            Expr::Or(all) => {
                let all: Vec<String> = all.iter().map(|one| self.at(one, Around::Or)).collect();
                let simple = matches!(around, Around::Nothing | Around::Or);
                self.closed(all.join(" OR "), simple)
            }
            Expr::Not(operand) => {
                let text = format!("NOT {}", self.at(operand, Around::Not));
                self.closed(
                    text,
                    matches!(around, Around::Nothing | Around::And | Around::Or),
                )
            }
            Expr::Negate(operand) => {
                let text = format!("- {}", self.operand(operand, '-', false));
                self.closed(text, around == Around::Nothing)
            }
            Expr::IsNull { operand, negated } => {
                let word = if *negated { "IS NOT NULL" } else { "IS NULL" };
                let text = format!("{} {word}", self.at(operand, Around::Cast));
                self.closed(text, !matches!(around, Around::Operator(..) | Around::Cast))
            }
            Expr::Is {
                operand,
                truth,
                negated,
            } => {
                let not = if *negated { "NOT " } else { "" };
                let word = if *truth { "TRUE" } else { "FALSE" };
                let text = format!("{} IS {not}{word}", self.at(operand, Around::Cast));
                self.closed(text, !matches!(around, Around::Operator(..) | Around::Cast))
            }
            Expr::Cast {
                operand,
                casting: Casting::Compared,
                ..
            } => self.at(operand, around),
            Expr::Cast {
                operand,
                ty,
                typmod,
                ..
            } => self.cast(operand, *ty, *typmod),
            Expr::In {
                operand,
                list,
                negated,
            } => {
                let ty = self.type_of(operand);
                let items = list.iter().map(|item| match item {
                    Expr::Const(value @ Value::Null) => self.constant(value, ty, true),
                    Expr::Const(value) => self.constant(value, None, true),
                    other => self.at(other, Around::Nothing),
                });
                let items: Vec<String> = items.collect();
                let (sign, word) = if *negated {
                    ("<>", "ALL")
                } else {
                    ("=", "ANY")
                };
                if let ([item], false) = (&**list, self.exact) {
                    return self.matched(operand, sign, item, around);
                }
                let operand = self.operand(operand, '=', true);
                if self.exact {
                    let not = if *negated { "NOT " } else { "" };
                    return format!("({operand} {not}IN ({}))", items.join(", "));
                }
                let array = format!("ARRAY[{}]", items.join(", "));
                let array = match (ty.is_some_and(Type::is_reg), self.pretty) {
                    (false, _) => array,
                    (true, true) => format!("{array}::oid[]"),
                    (true, false) => format!("({array})::oid[]"),
                };
                let text = format!("{operand} {sign} {word} ({array})");
                self.closed(text, around == Around::Nothing)
            }
            Expr::Among {
                operand,
                array,
                negated,
            } => {
                let how = if *negated { ("<>", false) } else { ("=", true) };
                self.quantified(operand, how, array, around)
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                let mut text = "CASE".to_owned();
                let ty = self.type_of(expr);
                for (condition, result) in branches {
                    let condition = self.beside(condition, Some(Type::Bool), Around::Nothing);
                    let result = self.beside(result, ty, Around::Nothing);
                    text.push_str(&format!(" WHEN {condition} THEN {result}"));
                }
                text.push_str(&format!(
                    " ELSE {} END",
                    self.beside(otherwise, ty, Around::Nothing)
                ));
                text
            }
            Expr::Coalesce(all) => format!("COALESCE({})", self.alike(all)),
            Expr::Call {
                function,
                arguments,
            } => self.call(*function, arguments, around),
            Expr::Rows {
                operands,
                from: RowsFrom::Row(others),
                test: RowTest::One(comparison) | RowTest::Values(comparison),
            } => format!(
                "(ROW({}) {} ROW({}))",
                self.list(operands),
                sign(*comparison),
                self.list(others)
            ),
            Expr::Domain { operand, rules } => {
                let name = self.settings.domain_name(rules.oid).unwrap_or_default();
                let inner = match &**operand {
                    Expr::Const(value) => self.constant(value, None, false),
                    other => self.at(other, Around::Cast),
                };
                let closed = inner.starts_with('(') && inner.ends_with(')');
                match self.pretty || closed {
                    true => format!("{inner}::{name}"),
                    false => format!("({inner})::{name}"),
                }
            }
            Expr::Shown { operand, shown }
                if matches!(shown.form, Form::Row(_)) && !shown.as_json =>
            {
                self.cast(operand, Type::Text, Typmod::NONE)
            }
            Expr::Shown { operand, .. } => self.at(operand, around),
            Expr::Slot(_)
            | Expr::Outer { .. }
            | Expr::Subquery(_)
            | Expr::InSubquery { .. }
            | Expr::Rows { .. }
            | Expr::Once { .. }
            | Expr::Held => String::new(),
        }
    }

    /// What subscripts stand behind.
    fn array(&self, array: &Expr) -> String {
        let text = self.at(array, Around::Nothing);
        match array {
            Expr::Column { .. } => text,
            _ => format!("({text})"),
        }
    }

    /// A value compared with the elements of an array.
    fn quantified(
        &self,
        value: &Expr,
        (sign, any): (&str, bool),
        array: &Expr,
        around: Around,
    ) -> String {
        let word = if any { "ANY" } else { "ALL" };
        let value = self.operand(value, '=', true);
        let array = self.at(array, Around::Nothing);
        let text = format!("{value} {sign} {word} ({array})");
        self.closed(text, around == Around::Nothing)
    }

    fn call(&self, function: Builtin, arguments: &[Expr], around: Around) -> String {
        match (function, arguments) {
            (Builtin::Catalog(CatalogFunction::Matches { fold }), [text, pattern]) => {
                self.binary(text, if fold { "~*" } else { "~" }, pattern, around)
            }
            (Builtin::Catalog(CatalogFunction::AnyOf(comparison, quantifier)), [value, array]) => {
                let any = quantifier == Quantifier::Any;
                self.quantified(value, (sign(comparison), any), array, around)
            }
            (
                Builtin::Catalog(CatalogFunction::LikeAnyOf {
                    fold,
                    negated,
                    quantifier,
                }),
                [value, array],
            ) => {
                let not = if negated { "!" } else { "" };
                let star = if fold { "*" } else { "" };
                let word = match quantifier {
                    Quantifier::Any => "ANY",
                    Quantifier::All => "ALL",
                };
                let (value, array) = (
                    self.operand(value, '~', true),
                    self.at(array, Around::Nothing),
                );
                let text = format!("{value} {not}~~{star} {word} ({array})");
                self.closed(text, around == Around::Nothing)
            }
            (Builtin::Catalog(CatalogFunction::JsonGet { as_text }), [json, field]) => {
                let sign = if as_text { "->>" } else { "->" };
                self.binary(json, sign, field, around)
            }
            (Builtin::Catalog(CatalogFunction::MakeArray(_)), items) => {
                format!("ARRAY[{}]", self.alike(items))
            }
            (Builtin::Catalog(CatalogFunction::Subscript), [array, places @ ..]) => {
                let places = places
                    .iter()
                    .map(|place| format!("[{}]", self.at(place, Around::Nothing)));
                format!("{}{}", self.array(array), places.collect::<String>())
            }
            (slice, [array, Expr::Const(left_out), bounds @ ..]) if slice.name() == "%slice" => {
                // A bit for each bound that was left out (`bind/array`).
                let left_out = left_out.as_ref().as_i64().unwrap_or(0);
                let mut text = self.array(array);
                for (number, pair) in bounds.chunks(2).enumerate() {
                    let bound = |at: usize| match left_out >> (2 * number + at) & 1 {
                        0 => pair
                            .get(at)
                            .map_or_else(String::new, |bound| self.at(bound, Around::Nothing)),
                        _ => String::new(),
                    };
                    text.push_str(&format!("[{}:{}]", bound(0), bound(1)));
                }
                text
            }
            (Builtin::Extract, [Expr::Const(Value::Text(field)), operand]) => {
                let operand = self.at(operand, Around::Nothing);
                format!("EXTRACT({field} FROM {operand})")
            }
            (similar, [text, pattern @ ..]) if similar.name() == "%similar" => {
                let text = self.operand(text, '~', true);
                match pattern {
                    [pattern, Expr::Const(Value::Text(escape))] if self.exact => {
                        let pattern = self.at(pattern, Around::Cast);
                        let escape = simple_literal(escape);
                        format!("({text} SIMILAR TO {pattern} ESCAPE {escape})")
                    }
                    [pattern] if self.exact => {
                        format!("({text} SIMILAR TO {})", self.at(pattern, Around::Cast))
                    }
                    _ => {
                        let pattern = format!("similar_to_escape({})", self.list(pattern));
                        self.between((text, pattern), "~", around)
                    }
                }
            }
            (Builtin::NextValue, [Expr::Const(value)]) => {
                let mut name = String::new();
                show(value.as_ref(), self.settings, &mut name);
                format!(
                    "nextval({}::regclass)",
                    simple_literal(&(self.named)(Type::Regclass, &name))
                )
            }
            (Builtin::Catalog(CatalogFunction::RegOf(ty)), [Expr::Const(value)])
                if let Some(text) = self.name(ty, value) =>
            {
                text
            }
            (Builtin::Catalog(CatalogFunction::RegOf(ty)), [operand]) => {
                let of_arrays = self.type_of(operand).and_then(Type::element).is_some();
                let ty = if of_arrays { ty.array() } else { ty };
                self.cast(operand, ty, Typmod::NONE)
            }
            (Builtin::Catalog(CatalogFunction::RegText(_)), [operand]) => {
                self.cast(operand, Type::Text, Typmod::NONE)
            }
            (function, arguments) => {
                if let Some(word) = function.keyword() {
                    return word.to_owned();
                }
                if let Builtin::Scalar(own) = function
                    && own.extension().is_some()
                {
                    let name = (self.function)(own);
                    return format!("{name}({})", self.arguments(function, arguments));
                }
                let name = function.name();
                let named = name.starts_with(|first: char| first.is_alphabetic() || first == '"');
                match arguments {
                    [left, right] if !named => self.binary(left, name, right, around),
                    [operand] if !named => {
                        let sign = name.chars().next().unwrap_or(' ');
                        self.closed(
                            format!("{name} {}", self.operand(operand, sign, false)),
                            false,
                        )
                    }
                    _ => format!("{name}({})", self.arguments(function, arguments)),
                }
            }
        }
    }
}

impl Writer<'_> {
    /// The type of an expression's values, where it is seen without binding.
    fn type_of(&self, expr: &Expr) -> Option<Type> {
        Some(match expr {
            Expr::Const(value) => value.ty()?,
            Expr::Column { table, position } => self.column(*table, *position).1?,
            Expr::Cast { ty, .. } => *ty,
            Expr::Not(_)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::IsNull { .. }
            | Expr::Is { .. }
            | Expr::Compare { .. }
            | Expr::Distinct { .. }
            | Expr::In { .. }
            | Expr::Among { .. }
            | Expr::Rows { .. }
            | Expr::Like { .. } => Type::Bool,
            Expr::Concat(..) => Type::Text,
            Expr::Call {
                function: Builtin::Catalog(CatalogFunction::RegOf(ty)),
                ..
            } => *ty,
            Expr::Negate(operand) | Expr::Domain { operand, .. } => self.type_of(operand)?,
            Expr::Arithmetic {
                operator,
                left,
                right,
            } => {
                let (left, right) = (self.type_of(left)?, self.type_of(right)?);
                vellum_row::arithmetic::resolve(*operator, left, right)?.result
            }
            Expr::Coalesce(all) => all.iter().find_map(|expr| self.type_of(expr))?,
            Expr::Case {
                branches,
                otherwise,
            } => {
                let results = branches.iter().map(|(_, result)| result);
                let mut results = results.chain([&**otherwise]);
                results.find_map(|expr| self.type_of(expr))?
            }
            _ => return None,
        })
    }
}

/// What an operator begins with: it says how tightly it binds.
fn sign_of(operator: &str) -> char {
    operator.chars().next().unwrap_or(' ')
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

fn arithmetic(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
        Operator::Modulo => "%",
    }
}
