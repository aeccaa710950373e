//! Expressions of a view's query.
//!
//! A tree is walked from its leaves, and each node becomes the text that stands for it; what is in it is text then. Before that, on the way down, parentheses are
//! given to what needs some, subqueries and CASE are written, whose lines stand further in, and columns get their tables.

use super::names::value_column;
use super::{PART, WRITTEN, Writer};
use crate::bind::folded;
use crate::names::{quoted, simple_literal};
use crate::parse::walk;
use crate::plan::column_name_of;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, DataType, Expr, Function, FunctionArgumentList, FunctionArguments,
    Ident, ObjectNamePart, Query, Select, SelectItem, Subscript, TableFactor, UnaryOperator, Value,
    VisitMut,
};

/// What an expression is, for what stands around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    /// Nothing that needs parentheses.
    Plain,
    /// An operator; how strongly it binds, of arithmetic.
    Operator(Option<u8>),
    And,
    Or,
    Not,
    /// `IS NULL` and its like.
    Test,
    Cast,
}

impl Sort {
    fn of(expr: &Expr) -> Self {
        use BinaryOperator as B;
        match expr {
            Expr::BinaryOp { op, .. } => match op {
                B::And => Self::And,
                B::Or => Self::Or,
                B::Plus | B::Minus => Self::Operator(Some(1)),
                B::Multiply | B::Divide | B::Modulo => Self::Operator(Some(2)),
                _ => Self::Operator(None),
            },
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                ..
            } => Self::Not,
            Expr::UnaryOp { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. }
            | Expr::SimilarTo { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. }
            | Expr::InList { .. } => Self::Operator(None),
            Expr::Between { negated, .. } => match negated {
                true => Self::Or,
                false => Self::And,
            },
            Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..) => Self::Test,
            Expr::Cast { .. } => Self::Cast,
            _ => Self::Plain,
        }
    }

    /// Whether an operand of this one stands in parentheses where only those do that say something.
    fn wraps(self, operand: Self, is_left: bool) -> bool {
        match (self, operand) {
            (_, Self::Plain | Self::Cast) => false,
            (Self::Operator(Some(own)), Self::Operator(Some(inner))) => {
                inner < own || (inner == own && !is_left)
            }
            (Self::And | Self::Or, Self::Operator(_) | Self::Test | Self::Not) => false,
            (Self::And, Self::And) | (Self::Or, Self::And | Self::Or) => false,
            (Self::Not, Self::Operator(_) | Self::Test) => false,
            _ => true,
        }
    }
}

/// Text in the place of an expression.
fn written(text: &str) -> Expr {
    Expr::Identifier(Ident::new(format!("{WRITTEN}{text}")))
}

fn is_written(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.value.starts_with(WRITTEN))
}

/// An expression without the parentheses around it.
fn strip(expr: &mut Expr) {
    while let Expr::Nested(inner) = expr {
        *expr = std::mem::replace(inner, Expr::Value(Value::Null.into()));
    }
}

impl Writer<'_> {
    /// An expression that stands alone.
    pub(super) fn expr(&mut self, expr: &Expr) -> Option<String> {
        let mut expr = expr.clone();
        strip(&mut expr);
        self.spelled(expr)
    }

    /// The text of a tree whose expressions are written as PostgreSQL writes them.
    pub(super) fn spelled(&mut self, node: impl VisitMut + ToString) -> Option<String> {
        let mut node = node;
        let mut well = true;
        walk::change_both_ways(&mut node, &mut |expr, is_before| {
            if !well || is_written(expr) {
                return;
            }
            match is_before {
                true => well = self.descend(expr).is_some(),
                false => {
                    let term = self.term(expr);
                    well = self.spend(term.len()).is_some();
                    *expr = written(&term);
                }
            }
        });
        well.then(|| node.to_string())
    }

    /// Goes down into an expression: what is not text of its operands' texts is written here.
    fn descend(&mut self, expr: &mut Expr) -> Option<()> {
        // Parentheses that were given to an operand are doubled.
        match expr {
            Expr::Nested(inner) if matches!(**inner, Expr::Nested(_)) => {
                strip(inner);
                return Some(());
            }
            Expr::Nested(_) => strip(expr),
            _ => {}
        }
        self.spell(expr);
        let sort = Sort::of(expr);
        let text = match expr {
            Expr::Identifier(name) => self.column(std::slice::from_ref(name))?,
            Expr::CompoundIdentifier(parts) => self.column(parts)?,
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.subscripted(root, access_chain)?
            }
            // They bind more strongly than what they stand beside by their words.
            Expr::AtTimeZone { .. } | Expr::Collate { .. } if self.pretty => return None,
            Expr::Collate {
                expr: operand,
                collation,
            } => {
                let operand = self.expr(operand)?;
                // All collations are in `pg_catalog`.
                let name = collation.0.last()?;
                format!("({operand} COLLATE {name})")
            }
            Expr::Subquery(query) => self.subquery("", query)?,
            Expr::Exists { subquery, negated } => {
                let text = self.subquery("EXISTS ", subquery)?;
                self.negated(&format!("({text})"), *negated)
            }
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => {
                let text = self.expr(expr)?;
                let text = self.subquery(&format!("{text} IN "), subquery)?;
                self.negated(&format!("({text})"), *negated)
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } if matches!(**right, Expr::Subquery(_)) => {
                let left = self.expr(left)?;
                self.quantified(&format!("{left} {compare_op} ANY "), right)?
            }
            Expr::AllOp {
                left,
                compare_op,
                right,
            } if matches!(**right, Expr::Subquery(_)) => {
                let left = self.expr(left)?;
                self.quantified(&format!("{left} {compare_op} ALL "), right)?
            }
            Expr::Function(function) if function.over.is_none() => {
                match crate::bind::array_subquery(function) {
                    Some(query) => self.subquery("ARRAY", query)?,
                    None => return Some(()),
                }
            }
            Expr::Case { .. } => self.case(expr)?,
            Expr::TypedString(typed) => {
                let text = typed.value.clone().into_string()?;
                format!(
                    "{}::{}",
                    simple_literal(&text),
                    self.type_text(&typed.data_type)
                )
            }
            Expr::Cast {
                expr: operand,
                data_type,
                ..
            } if is_constant(operand) => {
                let ty = self.type_text(data_type);
                format!("{operand}::{ty}")
            }
            Expr::BinaryOp { left, right, .. } => {
                self.wrap(sort, left, true);
                self.wrap(sort, right, false);
                return Some(());
            }
            Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
                self.wrap(sort, left, true);
                self.wrap(sort, right, false);
                return Some(());
            }
            Expr::AnyOp { left: operand, .. }
            | Expr::AllOp { left: operand, .. }
            | Expr::InList { expr: operand, .. }
            | Expr::Like { expr: operand, .. }
            | Expr::ILike { expr: operand, .. }
            | Expr::UnaryOp { expr: operand, .. }
            | Expr::Cast { expr: operand, .. }
            | Expr::IsNull(operand)
            | Expr::IsNotNull(operand)
            | Expr::IsTrue(operand)
            | Expr::IsNotTrue(operand)
            | Expr::IsFalse(operand)
            | Expr::IsNotFalse(operand)
            | Expr::IsUnknown(operand)
            | Expr::IsNotUnknown(operand) => {
                self.wrap(sort, operand, true);
                return Some(());
            }
            _ => return Some(()),
        };
        self.spend(text.len())?;
        *expr = written(&text);
        Some(())
    }

    /// A column with subscripts. `None` for fields, and for what else has subscripts: it stays as it is kept.
    fn subscripted(&mut self, root: &Expr, chain: &[AccessExpr]) -> Option<String> {
        let Expr::Identifier(first) = root else {
            return None;
        };
        // `table.column[1]` is read as a field of `table`.
        let (mut parts, mut rest) = (vec![first.clone()], chain);
        while let [AccessExpr::Dot(Expr::Identifier(name)), behind @ ..] = rest {
            parts.push(name.clone());
            rest = behind;
        }
        let mut text = self.column(&parts)?;
        for access in rest {
            let AccessExpr::Subscript(subscript) = access else {
                return None;
            };
            let mut part = |bound: &Option<Expr>| match bound {
                Some(bound) => self.expr(bound),
                None => Some(String::new()),
            };
            let inner = match subscript {
                Subscript::Index { index } => self.expr(index)?,
                Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                } => format!("{}:{}", part(lower_bound)?, part(upper_bound)?),
                Subscript::Slice { .. } => return None,
            };
            text.push_str(&format!("[{inner}]"));
        }
        Some(text)
    }

    /// Forms that PostgreSQL keeps as other ones: BETWEEN, LIKE.
    fn spell(&self, expr: &mut Expr) {
        use BinaryOperator as B;
        let of = |left: &Expr, op: B, right: &Expr| Expr::BinaryOp {
            left: Box::new(left.clone()),
            op,
            right: Box::new(right.clone()),
        };
        let spelled = match expr {
            Expr::Between {
                expr: own,
                negated,
                low,
                high,
            } => {
                let ops = match negated {
                    true => (B::Lt, B::Or, B::Gt),
                    false => (B::GtEq, B::And, B::LtEq),
                };
                of(&of(own, ops.0, low), ops.1, &of(own, ops.2, high))
            }
            Expr::Like {
                any: false,
                escape_char: None,
                negated,
                expr: own,
                pattern,
            } => match negated {
                true => of(own, B::PGNotLikeMatch, pattern),
                false => of(own, B::PGLikeMatch, pattern),
            },
            Expr::ILike {
                any: false,
                escape_char: None,
                negated,
                expr: own,
                pattern,
            } => match negated {
                true => of(own, B::PGNotILikeMatch, pattern),
                false => of(own, B::PGILikeMatch, pattern),
            },
            _ => return,
        };
        *expr = spelled;
    }

    /// Gives parentheses to an operand that needs some, and takes others. Where all operators have their own, it has them as one.
    fn wrap(&self, around: Sort, operand: &mut Expr, is_left: bool) {
        strip(operand);
        if self.pretty && around.wraps(Sort::of(operand), is_left) {
            let inner = std::mem::replace(operand, Expr::Value(Value::Null.into()));
            *operand = Expr::Nested(Box::new(Expr::Nested(Box::new(inner))));
        }
    }

    /// What a node says of its operands, which are text.
    fn term(&self, expr: &Expr) -> String {
        let text = match expr {
            Expr::Nested(inner) => return format!("({inner})"),
            Expr::BinaryOp { left, op, right } => format!("{left} {op} {right}"),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => format!("NOT {expr}"),
            Expr::UnaryOp { op, expr } => {
                let text = expr.to_string();
                let number = text.trim_start_matches(WRITTEN);
                if number
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
                {
                    return format!("{op}{number}");
                }
                format!("{op} {text}")
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                ..
            } => format!("{left} {compare_op} ANY ({right})"),
            Expr::AllOp {
                left,
                compare_op,
                right,
            } => format!("{left} {compare_op} ALL ({right})"),
            Expr::Cast {
                expr, data_type, ..
            } => {
                let ty = self.type_text(data_type);
                return match self.pretty {
                    true => format!("{expr}::{ty}"),
                    false => format!("({expr})::{ty}"),
                };
            }
            Expr::Function(function) => return called(function),
            other if Sort::of(other) == Sort::Plain => return other.to_string(),
            other => other.to_string(),
        };
        match self.pretty {
            true => text,
            false => format!("({text})"),
        }
    }

    fn negated(&self, text: &str, negated: bool) -> String {
        match (negated, self.pretty) {
            (false, _) => text.to_owned(),
            (true, true) => format!("NOT {text}"),
            (true, false) => format!("(NOT {text})"),
        }
    }

    /// A subquery in its parentheses, behind a text.
    fn subquery(&mut self, before: &str, query: &Query) -> Option<String> {
        let around = std::mem::take(&mut self.text);
        // Of what it is asked for alone nobody sees the names.
        let done = self.nested(query, before != "EXISTS ");
        let own = std::mem::replace(&mut self.text, around);
        done.map(|()| format!("{before}{own}"))
    }

    fn quantified(&mut self, before: &str, right: &Expr) -> Option<String> {
        match right {
            Expr::Subquery(query) => Some(format!("({})", self.subquery(before, query)?)),
            _ => None,
        }
    }

    /// CASE: a line each for its word, its branches, and its end.
    fn case(&mut self, expr: &Expr) -> Option<String> {
        let Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } = expr
        else {
            return None;
        };
        let around = std::mem::take(&mut self.text);
        let level = self.level;
        let done = (|| {
            self.line("CASE", 0, 0, PART);
            if let Some(operand) = operand {
                let text = self.expr(operand)?;
                self.text.push_str(&format!(" {text}"));
            }
            for branch in conditions {
                let (condition, result) =
                    (self.expr(&branch.condition)?, self.expr(&branch.result)?);
                self.line("WHEN ", 0, 0, 0);
                self.text.push_str(&format!("{condition} THEN {result}"));
            }
            let other = match else_result {
                Some(other) => self.expr(other)?,
                None => "NULL".to_owned(),
            };
            self.line("ELSE ", 0, 0, 0);
            self.text.push_str(&other);
            self.line("END", PART, 0, 0);
            Some(())
        })();
        self.level = level;
        let own = std::mem::replace(&mut self.text, around);
        done.map(|()| own)
    }

    /// A key of ORDER BY, GROUP BY or DISTINCT ON: what it stands for. `by_name`: names of the list come before those of columns.
    pub(super) fn key(&mut self, expr: &Expr, select: &Select, by_name: bool) -> Option<String> {
        let mut expr = expr;
        while let Expr::Nested(inner) = expr {
            expr = inner;
        }
        let items = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(own) => Some((own, column_name_of(own))),
            SelectItem::ExprWithAlias { expr, alias } => Some((expr, folded(alias))),
            _ => None,
        });
        let items: Vec<(&Expr, String)> = items.collect();
        self.spend(items.len())?;
        let all_are_known = items.len() == select.projection.len();
        let found = match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    let at = number.parse::<usize>().ok()?.checked_sub(1)?;
                    items.get(at).filter(|_| all_are_known)?;
                    Some(at)
                }
                _ => None,
            },
            Expr::Identifier(name) => {
                let name = folded(name);
                let has = |known: &super::Known| {
                    let columns = known.columns.as_ref();
                    columns.is_none_or(|columns| columns.contains(&name))
                };
                let is_column = self
                    .scopes
                    .last()
                    .is_some_and(|scope| scope.iter().any(has));
                let named = items.iter().position(|(_, own)| *own == name);
                named.filter(|_| by_name || !is_column)
            }
            _ => None,
        };
        let own = found.map_or(expr, |at| items[at].0);
        if let Some(at) = found
            && is_literal(own)
        {
            // A number in its place would be that of a column, and a text none that is sorted by.
            return all_are_known.then(|| (at + 1).to_string());
        }
        let text = self.expr(own)?;
        let is_apart = match own {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => false,
            Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_) => false,
            Expr::Function(_) => true,
            _ => self.pretty,
        };
        Some(match is_apart {
            true => format!("({text})"),
            false => text,
        })
    }

    /// A function in FROM with its alias, and the names of its columns, as far as they are known.
    pub(super) fn function_in_from(&mut self, factor: &TableFactor) -> Option<String> {
        let (name, args, ordinality, alias) = match factor {
            TableFactor::Table {
                name,
                args: Some(args),
                with_ordinality,
                alias,
                ..
            } => (name.to_string(), &args.args, *with_ordinality, alias),
            TableFactor::Function {
                name,
                args,
                with_ordinality,
                alias,
                ..
            } => (name.to_string(), args, *with_ordinality, alias),
            TableFactor::UNNEST {
                alias,
                array_exprs,
                with_ordinality,
                ..
            } => {
                let args = array_exprs.iter().map(|own| self.expr(own));
                let args = args.collect::<Option<Vec<_>>>()?;
                return Some(self.as_table("unnest", &args, *with_ordinality, alias.as_ref()));
            }
            _ => return None,
        };
        let mut texts = Vec::with_capacity(args.len());
        for arg in args {
            texts.push(match arg {
                sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(
                    own,
                )) => self.expr(own)?,
                _ => return None,
            });
        }
        // What stands for a form that the parser does not know is kept as it is.
        if name.starts_with('"') {
            return None;
        }
        Some(self.as_table(
            &name.to_ascii_lowercase(),
            &texts,
            ordinality,
            alias.as_ref(),
        ))
    }

    fn as_table(
        &mut self,
        function: &str,
        args: &[String],
        ordinality: bool,
        alias: Option<&sqlparser::ast::TableAlias>,
    ) -> String {
        let around = std::mem::take(&mut self.text);
        self.text
            .push_str(&format!("{function}({})", args.join(", ")));
        self.text
            .push_str(if ordinality { " WITH ORDINALITY" } else { "" });
        let name = alias.map_or_else(|| function.to_owned(), |alias| folded(&alias.name));
        let columns = if ordinality || args.len() > 1 && function == "unnest" {
            None
        } else {
            value_column(function, &name)
        };
        match alias {
            Some(_) => self.alias(alias, &columns.unwrap_or_default()),
            None => {
                self.text.push_str(&format!(" {}", quoted(&name)));
                if let Some(columns) = columns {
                    let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
                    self.text.push_str(&format!("({})", columns.join(", ")));
                }
            }
        }
        std::mem::replace(&mut self.text, around)
    }

    /// A type as it is shown.
    pub(super) fn type_text(&self, ty: &DataType) -> String {
        self.env.type_shown(ty).unwrap_or_else(|| ty.to_string())
    }
}

/// Whether it is a constant, behind parentheses and a sign.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_literal(inner),
        Expr::Value(_) => true,
        _ => false,
    }
}

/// A text or a null: a cast of it needs no parentheses.
fn is_constant(expr: &Expr) -> bool {
    let Expr::Value(value) = expr else {
        return false;
    };
    matches!(
        value.value,
        Value::SingleQuotedString(_) | Value::EscapedStringLiteral(_) | Value::Null
    )
}

/// A call, whose name is as PostgreSQL writes it.
fn called(function: &Function) -> String {
    const UPPER: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "grouping"];
    let mut function = function.clone();
    let has_list = matches!(
        function.args,
        FunctionArguments::List(FunctionArgumentList { .. })
    );
    if let (true, [.., ObjectNamePart::Identifier(name)]) =
        (has_list, function.name.0.as_mut_slice())
        && name.quote_style.is_none()
    {
        name.value = name.value.to_ascii_lowercase();
        if UPPER.contains(&&*name.value) {
            name.value = name.value.to_ascii_uppercase();
        }
    }
    function.to_string()
}
