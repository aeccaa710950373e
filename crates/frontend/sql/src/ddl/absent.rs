//! DROP of what there is none of.

use super::{Ddl, no_schema};
use crate::error::{Fields, Result, SqlError};
use crate::expr::Builtin;
use crate::parse::{Absent, AbsentName, AbsentShape};
use crate::sqlstate::{self, SqlState};
use crate::wire::CommandTag;
use sqlparser::ast::{self, ObjectType};
use vellum_row::Type;

impl Ddl<'_> {
    /// Notices with IF EXISTS.
    ///
    /// # Errors
    /// `42P01`, `42704`, `42883`, `3F000`, `3D000` without; `42809` for the name of something else; `2BP01` for what the database came with.
    pub(super) fn drop_absent(&mut self, drop: &Absent) -> Result<CommandTag> {
        for own in &drop.names {
            match drop.kind.1 {
                AbsentShape::Relation => {
                    let (object, word) = (ObjectType::View, drop.kind.0);
                    self.object_to_drop(&own.name, object, word, drop.if_exists)?;
                }
                AbsentShape::OfTable => self.absent_of_table(drop, own)?,
                AbsentShape::Routine => self.absent_routine(drop, own)?,
                AbsentShape::Plain => self.absent_plain(drop, own)?,
            }
        }
        Ok(CommandTag::plain(drop.kind.2))
    }

    fn is_missing(&mut self, drop: &Absent, state: SqlState, message: String) -> Result<()> {
        if !drop.if_exists {
            return Err(SqlError::new(state, message));
        }
        self.notices
            .push(Fields::notice(format!("{message}, skipping")));
        Ok(())
    }

    fn absent_of_table(&mut self, drop: &Absent, own: &AbsentName) -> Result<()> {
        let Some(table) = &own.on else {
            return Err(SqlError::internal("no table"));
        };
        if self.binder().named(table)?.is_none() {
            self.check_schema(table)?;
            let error = self.binder().no_relation(table).without_place();
            return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
        }
        let (_, shown) = crate::bind::object_name(table)?;
        let (_, name) = crate::bind::object_name(&own.name)?;
        let word = drop.kind.0;
        let of = if word == "rule" { "relation" } else { "table" };
        let message = format!("{word} \"{name}\" for {of} \"{shown}\" does not exist");
        self.is_missing(drop, sqlstate::UNDEFINED_OBJECT, message)
    }

    fn absent_plain(&mut self, drop: &Absent, own: &AbsentName) -> Result<()> {
        let (schema, name) = crate::bind::object_name(&own.name)?;
        let kind = drop.kind.0;
        if kind == "database" && name == crate::database::DATABASE {
            let text = "cannot drop the currently open database";
            return Err(SqlError::new(sqlstate::OBJECT_IN_USE, text));
        }
        let there: &[&str] = match kind {
            "language" => &["internal", "c", "sql", "plpgsql"],
            "tablespace" => &["pg_default", "pg_global"],
            "access method" => &["heap", "btree", "hash", "gist", "gin", "spgist", "brin"],
            "collation" => &["default", "C", "POSIX"],
            _ => &[],
        };
        if there.contains(&name.as_str()) {
            return Err(is_required(&format!("{kind} {name}")));
        }
        let state = match kind {
            "database" => sqlstate::INVALID_CATALOG_NAME,
            _ => sqlstate::UNDEFINED_OBJECT,
        };
        if let Some(schema) = schema {
            if self.open.catalog.1.namespace(&schema).is_none() {
                let error = no_schema(&schema);
                return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
            }
            let message = format!("{kind} \"{schema}.{name}\" does not exist");
            return self.is_missing(drop, state, message);
        }
        self.is_missing(drop, state, format!("{kind} \"{name}\" does not exist"))
    }

    fn absent_routine(&mut self, drop: &Absent, own: &AbsentName) -> Result<()> {
        let (schema, name) = crate::bind::object_name(&own.name)?;
        let kind = drop.kind.0;
        let state = sqlstate::UNDEFINED_FUNCTION;
        if let Some(schema) = &schema
            && self.open.catalog.1.namespace(schema).is_none()
        {
            let error = no_schema(schema);
            return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
        }
        let shown = schema.map_or_else(|| name.clone(), |schema| format!("{schema}.{name}"));
        let Some(given) = &own.arguments else {
            if drop.if_exists {
                return self.is_missing(drop, state, format!("{kind} {shown}() does not exist"));
            }
            let message = format!("could not find a {kind} named \"{shown}\"");
            return Err(SqlError::new(state, message));
        };
        let (mut types, mut written) = (Vec::new(), Vec::new());
        for own in given {
            if own == "*" {
                written.push((own.clone(), own.clone()));
                continue;
            }
            let node = crate::parse::expression(&format!("NULL::{own}"))?;
            let ast::Expr::Cast { data_type, .. } = node else {
                return Err(SqlError::syntax(own.as_str()));
            };
            let ty = match self.binder().type_of(&data_type) {
                Ok((ty, _)) => ty,
                Err(error) => {
                    let error = error.without_place();
                    return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
                }
            };
            types.push(Some(ty));
            written.push((
                in_catalog(&data_type, ty, own),
                self.forms.name_of(ty).into_owned(),
            ));
        }
        if Builtin::find(&name, &types).is_some() && !given.iter().any(|own| own == "*") {
            let list: Vec<&str> = written.iter().map(|(_, own)| own.as_str()).collect();
            return Err(is_required(&format!("function {name}({})", list.join(","))));
        }
        let list: Vec<&str> = written
            .iter()
            .map(|(catalog, own)| if drop.if_exists { catalog } else { own }.as_str())
            .collect();
        let separator = if drop.if_exists { "," } else { ", " };
        let message = format!("{kind} {shown}({}) does not exist", list.join(separator));
        self.is_missing(drop, state, message)
    }
}

/// A type as PostgreSQL's notices have it: those whose names are words of the language by their place in the catalog.
fn in_catalog(data_type: &ast::DataType, ty: Type, given: &str) -> String {
    let by_name = matches!(
        data_type,
        ast::DataType::Custom(..)
            | ast::DataType::Text
            | ast::DataType::Date
            | ast::DataType::Uuid
            | ast::DataType::JSON
            | ast::DataType::JSONB
            | ast::DataType::Bytea
            | ast::DataType::Int4(_)
            | ast::DataType::Int8(_)
            | ast::DataType::Int2(_)
            | ast::DataType::Float4
            | ast::DataType::Float8
            | ast::DataType::Bool
    );
    match (ty.element(), by_name) {
        (_, true) => given.to_lowercase(),
        (Some(element), _) => {
            let below = given.trim_end_matches("[]");
            let plain = matches!(
                element,
                Type::Text | Type::Date | Type::Uuid | Type::Json | Type::Jsonb
            );
            match plain {
                true => format!("{}[]", below.to_lowercase()),
                false => format!("pg_catalog.{}[]", element.name()),
            }
        }
        (None, _) => format!("pg_catalog.{}", ty.name()),
    }
}

fn is_required(what: &str) -> SqlError {
    let message = format!("cannot drop {what} because it is required by the database system");
    SqlError::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
}
