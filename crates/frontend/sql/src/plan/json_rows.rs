//! Rows of JSON objects, in FROM: `json_to_record` and `json_to_recordset`, whose columns are listed behind them, `json_populate_record` and `json_populate_recordset`, whose
//! columns are those of a row that they are given.
//!
//! Arguments of the call: the JSON, the names of the columns, their modifiers, and the row if there is one.

use super::{SetCall, SetFunction};
use crate::bind::{Binder, ScopeColumn, ScopeTable, folded, object_name, row_of};
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::sqlstate;
use sqlparser::ast;
use vellum_row::{Array, CastContext, Type, Typmod, Value};

/// Which of these functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct JsonRows {
    /// Of `jsonb`.
    pub binary: bool,
    /// Of an array of objects: a row each.
    pub many: bool,
    /// Of a row that is given.
    pub populates: bool,
}

impl JsonRows {
    /// The function of a name.
    pub fn find(name: &str) -> Option<Self> {
        let binary = name.starts_with("jsonb_");
        let stem = name.strip_prefix("jsonb_");
        let stem = stem.or_else(|| name.strip_prefix("json_"))?;
        let (many, populates) = match stem {
            "to_record" => (false, false),
            "to_recordset" => (true, false),
            "populate_record" => (false, true),
            "populate_recordset" => (true, true),
            _ => return None,
        };
        Some(Self {
            binary,
            many,
            populates,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match (self.binary, self.populates, self.many) {
            (false, false, false) => "json_to_record",
            (false, false, true) => "json_to_recordset",
            (false, true, false) => "json_populate_record",
            (false, true, true) => "json_populate_recordset",
            (true, false, false) => "jsonb_to_record",
            (true, false, true) => "jsonb_to_recordset",
            (true, true, false) => "jsonb_populate_record",
            (true, true, true) => "jsonb_populate_recordset",
        }
    }
}

/// That columns have to be listed.
#[cold]
fn no_list() -> SqlError {
    let text = "a column definition list is required for functions returning \"record\"";
    SqlError::syntax(text)
}

/// That columns are listed which are known.
#[cold]
fn redundant() -> SqlError {
    let text =
        "a column definition list is redundant for a function returning a named composite type";
    SqlError::syntax(text)
}

/// Whether an alias lists columns with their types.
pub(super) fn lists_types(alias: Option<&ast::TableAlias>) -> bool {
    alias.is_some_and(|alias| {
        alias
            .columns
            .iter()
            .any(|column| column.data_type.is_some())
    })
}

impl Binder<'_> {
    /// The call and its columns; `alias` lists them where the function says nothing of them.
    ///
    /// # Errors
    /// `42601` for columns that are not listed; `42883`, `42804` for arguments; those of types.
    pub(super) fn json_rows(
        &mut self,
        kind: JsonRows,
        args: &[ast::FunctionArg],
        ordinality: bool,
        alias: Option<&ast::TableAlias>,
    ) -> Result<(SetCall, Vec<ScopeColumn>)> {
        let mut given = Vec::with_capacity(args.len());
        for arg in args {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = arg else {
                return Err(SqlError::unsupported("this argument"));
            };
            given.push(expr);
        }
        // Members are found by names of the row, where that has some.
        let mut named = None;
        let (columns, json, base) = match (kind.populates, given.as_slice()) {
            (false, [json]) => {
                if lists_types(alias) && ordinality {
                    let text = "WITH ORDINALITY cannot be used with a column definition list";
                    let hint = "Put the column definition list inside ROWS FROM().";
                    return Err(SqlError::syntax(text).with_hint(hint));
                }
                (self.listed_columns(alias)?, *json, None)
            }
            (true, [row, json]) => {
                let (columns, base) = self.columns_of_row(row, alias, &mut named)?;
                (columns, *json, base)
            }
            _ => return Err(self.no_such_function(kind.name(), args.len())),
        };
        if columns.iter().any(|column| column.domain.is_some()) {
            return Err(SqlError::unsupported(
                "a column of a domain in a row of JSON",
            ));
        }
        let ty = if kind.binary { Type::Jsonb } else { Type::Json };
        let json = self.expr(json)?;
        let json = self.coerce(json, ty, Typmod::NONE, CastContext::Implicit)?;
        let names = named.unwrap_or_else(|| {
            let names = columns.iter().map(|column| column.name.as_str());
            names.map(Value::text).collect()
        });
        let names = Array::of(Type::Text, &names);
        let typmods = columns.iter().map(|column| Value::Int4(column.typmod.0));
        let typmods = Array::of(Type::Int4, &typmods.collect::<Vec<_>>());
        let mut arguments = vec![json];
        arguments.extend([names, typmods].map(|array| Expr::Const(Value::Array(array))));
        arguments.extend(base);
        let call = SetCall {
            function: SetFunction::JsonRows(kind),
            arguments,
            types: columns.iter().map(|column| column.ty).collect(),
        };
        Ok((call, columns))
    }

    fn listed_columns(&mut self, alias: Option<&ast::TableAlias>) -> Result<Vec<ScopeColumn>> {
        let listed = alias.map_or(&[][..], |alias| &alias.columns);
        if listed.is_empty() {
            return Err(no_list());
        }
        let mut columns: Vec<ScopeColumn> = Vec::with_capacity(listed.len());
        for column in listed {
            let data_type = column.data_type.as_ref().ok_or_else(no_list)?;
            let (ty, typmod) = self.type_of(data_type)?;
            let name = folded(&column.name);
            if columns.iter().any(|other| other.name == name) {
                let message = format!("column name \"{name}\" specified more than once");
                return Err(SqlError::new(sqlstate::DUPLICATE_COLUMN, message));
            }
            columns.push(ScopeColumn {
                name,
                ty,
                typmod,
                number: 0,
                domain: self.domain_named(data_type)?,
                collation: None,
            });
        }
        Ok(columns)
    }

    /// The columns of a row that an expression is, and that row: none of a null of a table's row type. Those of one that has no type of its own are listed.
    fn columns_of_row(
        &mut self,
        row: &ast::Expr,
        alias: Option<&ast::TableAlias>,
        named: &mut Option<Vec<Value>>,
    ) -> Result<(Vec<ScopeColumn>, Option<Expr>)> {
        let listed = lists_types(alias);
        if let Some(table) = null_row(row) {
            let (schema, name) = object_name(table)?;
            if schema.is_none() && name == "record" {
                return Ok((self.listed_columns(alias)?, None));
            }
            if let Ok(relation) = self.relation(table) {
                if listed {
                    return Err(redundant());
                }
                let columns = ScopeTable::of(&relation, None)?.columns;
                return Ok((columns, None));
            }
        }
        let is_plain = row_of(row).is_some();
        if listed && !is_plain {
            return Err(redundant());
        }
        let bound = self.expr(row)?;
        let known = match bound.ty {
            Some(Type::Record) => self.record_columns(bound.typmod).map(<[_]>::to_vec),
            _ => None,
        };
        let Some(known) = known else {
            let text = "first argument of json_populate_record must be a row type";
            return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, text));
        };
        if is_plain {
            let columns = self.listed_columns(alias)?;
            let given = known.iter().map(|(_, ty, _)| *ty);
            if given.ne(columns.iter().map(|column| column.ty)) {
                let text = "function return row and query-specified return row do not match";
                return Err(SqlError::new(sqlstate::DATATYPE_MISMATCH, text));
            }
            let names = known.into_iter().map(|(name, ..)| Value::text(name));
            *named = Some(names.collect());
            return Ok((columns, Some(bound.expr)));
        }
        let columns = known.into_iter().map(|(name, ty, typmod)| ScopeColumn {
            name,
            ty,
            typmod,
            number: 0,
            domain: None,
            collation: None,
        });
        Ok((columns.collect(), Some(bound.expr)))
    }

    #[cold]
    fn no_such_function(&self, name: &str, arguments: usize) -> SqlError {
        let types = vec!["unknown"; arguments].join(", ");
        let message = format!("function {name}({types}) does not exist");
        SqlError::new(sqlstate::UNDEFINED_FUNCTION, message)
    }
}

/// The table whose rows' type a null is cast to.
fn null_row(node: &ast::Expr) -> Option<&ast::ObjectName> {
    match node {
        ast::Expr::Nested(inner) => null_row(inner),
        ast::Expr::Cast {
            expr,
            data_type: ast::DataType::Custom(name, modifiers),
            ..
        } if modifiers.is_empty() => match &**expr {
            ast::Expr::Value(value) if value.value == ast::Value::Null => Some(name),
            _ => None,
        },
        _ => None,
    }
}
