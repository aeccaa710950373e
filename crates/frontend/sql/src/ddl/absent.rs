//! DROP of what there is none of.

use super::{Ddl, no_schema};
use crate::catalog::Collation;
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
            if let Err(error) = self.check_schema(table) {
                return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
            }
            let error = self.binder().no_relation(table).without_place();
            return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
        }
        let (_, shown) = crate::bind::object_name(table)?;
        let (_, name) = crate::bind::object_name(&own.name)?;
        let word = drop.kind.0;
        // Its notices and its errors call it otherwise.
        let of = if word == "rule" || drop.if_exists {
            "relation"
        } else {
            "table"
        };
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
            "collation" => &Collation::ALL.map(|own| own.name),
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
        let shown = match &schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name.clone(),
        };
        let Some(given) = &own.arguments else {
            if let Some(error) = self.routine_named_alone(schema.as_deref(), &name, kind) {
                return Err(error);
            }
            if drop.if_exists {
                return self.is_missing(drop, state, format!("{kind} {shown}() does not exist"));
            }
            let message = format!("could not find a {kind} named \"{shown}\"");
            return Err(SqlError::new(state, message));
        };
        let (types, written) = match self.types_given(given)? {
            Ok(read) => read,
            Err(error) => {
                return self.is_missing(drop, error.sqlstate(), error.message().to_owned());
            }
        };
        if !given.iter().any(|own| own == "*")
            && let Some(error) = self.routine_in_use(schema.as_deref(), &name, &types, &written)
        {
            return Err(error);
        }
        let list: Vec<&str> = written
            .iter()
            .map(|(catalog, own)| if drop.if_exists { catalog } else { own }.as_str())
            .collect();
        let separator = if drop.if_exists { "," } else { ", " };
        let message = format!("{kind} {shown}({}) does not exist", list.join(separator));
        self.is_missing(drop, state, message)
    }

    /// The types of arguments, and how they are told: as the catalog has them, and by themselves. The inner error is that of a type that is not there.
    fn types_given(&self, given: &[String]) -> Result<std::result::Result<Given, SqlError>> {
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
                Err(error) => return Ok(Err(error.without_place())),
            };
            types.push(Some(ty));
            written.push((
                in_catalog(&data_type, ty, own),
                self.forms.name_of(ty).into_owned(),
            ));
        }
        Ok(Ok((types, written)))
    }

    /// A function that is there cannot be dropped: the database came with it, or an extension.
    fn routine_in_use(
        &self,
        schema: Option<&str>,
        name: &str,
        types: &[Option<Type>],
        written: &[(String, String)],
    ) -> Option<SqlError> {
        let list: Vec<&str> = written.iter().map(|(_, own)| own.as_str()).collect();
        let what = format!("function {name}({})", list.join(","));
        let catalog = &self.open.catalog.1;
        let reached = crate::bind::functions_reached(catalog, &self.search_path, schema, name);
        let exact = reached.iter().find(|own| {
            let given = types.iter().map(|ty| ty.map(Type::name));
            own.entry().arguments().map(Some).eq(given)
        });
        if let Some(own) = exact {
            return Some(required_by(&what, own.extension()?.name));
        }
        let of_system = schema.is_none_or(|schema| schema == "pg_catalog");
        (of_system && Builtin::find(name, types).is_some()).then(|| is_required(&what))
    }

    /// The same of one whose arguments are not said.
    fn routine_named_alone(
        &self,
        schema: Option<&str>,
        name: &str,
        kind: &str,
    ) -> Option<SqlError> {
        if kind == "procedure" || kind == "aggregate" {
            return None;
        }
        let (catalog, path) = (&self.open.catalog.1, &self.search_path);
        let found = crate::system::functions_named(catalog, path, schema, name);
        match found[..] {
            [] => None,
            [oid] => {
                let reached = crate::bind::functions_reached(catalog, path, schema, name);
                let (_, arguments, _) = crate::system::function_of(catalog, oid)?;
                let what = format!("function {name}({})", arguments.replace(", ", ","));
                Some(match reached.first() {
                    Some(own) => required_by(&what, own.extension()?.name),
                    None => is_required(&what),
                })
            }
            _ => {
                let message = format!("{kind} name \"{name}\" is not unique");
                let hint = "Specify the argument list to select the function unambiguously.";
                Some(SqlError::new(SqlState::of("42725"), message).with_hint(hint))
            }
        }
    }

    /// A routine that a GRANT names with the types of its arguments, as it is shown.
    ///
    /// # Errors
    /// `3F000`, `42704`, `42883`.
    pub(super) fn routine_there(
        &self,
        kind: &str,
        name: &ast::ObjectName,
        arguments: Option<&[String]>,
    ) -> Result<String> {
        let (schema, base) = crate::bind::object_name(name)?;
        if let Some(schema) = &schema
            && self.open.catalog.1.namespace(schema).is_none()
        {
            return Err(no_schema(schema));
        }
        let shown = match &schema {
            Some(schema) => format!("{schema}.{base}"),
            None => base.clone(),
        };
        let state = sqlstate::UNDEFINED_FUNCTION;
        let Some(given) = arguments else {
            let message = format!("could not find a {kind} named \"{shown}\"");
            return Err(SqlError::new(state, message));
        };
        let (types, written) = self.types_given(given)??;
        let list: Vec<&str> = written.iter().map(|(_, own)| own.as_str()).collect();
        let there = kind != "procedure"
            && self
                .routine_in_use(schema.as_deref(), &base, &types, &written)
                .is_some();
        if there {
            return Ok(format!("{base}({})", list.join(",")));
        }
        let message = format!("{kind} {shown}({}) does not exist", list.join(", "));
        Err(SqlError::new(state, message))
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

/// Types, and how each is told by the catalog and by itself.
type Given = (Vec<Option<Type>>, Vec<(String, String)>);

fn required_by(what: &str, extension: &str) -> SqlError {
    let message = format!("cannot drop {what} because extension {extension} requires it");
    SqlError::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_hint(format!("You can drop extension {extension} instead."))
}

fn is_required(what: &str) -> SqlError {
    let message = format!("cannot drop {what} because it is required by the database system");
    SqlError::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
}
