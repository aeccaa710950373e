//! COMMENT ON.

use super::Ddl;
use crate::bind::folded;
use crate::catalog::{Change, Comment, Kind, Named, Oid};
use crate::error::{Fields, Result, SqlError};
use crate::parse::OF_TABLE;
use crate::roles::Role;
use crate::sqlstate;
use crate::wire::CommandTag;
use sqlparser::ast::{self, CommentObject};

impl Ddl<'_> {
    pub(super) fn comment(
        &mut self,
        what: &CommentObject,
        name: &ast::ObjectName,
        text: Option<&str>,
    ) -> Result<CommandTag> {
        let (object, column) = match what {
            CommentObject::Table
            | CommentObject::View
            | CommentObject::Sequence
            | CommentObject::Index => (self.relation_to_tell(what, name)?, 0),
            CommentObject::Column => self.column_to_tell(name)?,
            CommentObject::Schema => {
                let (_, name) = crate::bind::object_name(name)?;
                let found = self.open.catalog.1.namespace(&name).cloned();
                let schema = found.ok_or_else(|| super::no_schema(&name))?;
                if !self.open.rights().1.owns(self.role, schema.owner) {
                    return Err(denied("schema", &name));
                }
                (schema.oid, 0)
            }
            CommentObject::Role | CommentObject::User => {
                let (_, name) = crate::bind::object_name(name)?;
                let found = self.roles().role(&name).cloned();
                let role = found.ok_or_else(|| {
                    let message = format!("role \"{name}\" does not exist");
                    SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
                })?;
                self.check_may_tell_of(&role)?;
                (role.oid, 0)
            }
            CommentObject::Database => {
                let (_, name) = crate::bind::object_name(name)?;
                if name != crate::database::DATABASE {
                    let message = format!("database \"{name}\" does not exist");
                    let state = sqlstate::INVALID_CATALOG_NAME;
                    self.notices.push(Fields::warning(state, message));
                    return Ok(CommandTag::plain("COMMENT"));
                }
                self.check_owns_database()?;
                (crate::system::DATABASE_OID, 0)
            }
            CommentObject::Type => (self.type_to_tell(name)?, 0),
            CommentObject::Domain => {
                self.check_names_domain(name)?;
                (self.type_to_tell(name)?, 0)
            }
            CommentObject::Extension => {
                let (_, name) = crate::bind::object_name(name)?;
                let extension = self.extension_named(&name)?;
                (extension.oid, 0)
            }
            CommentObject::Procedure => self.constraint_to_tell(name)?,
            other => return Err(SqlError::unsupported(format!("COMMENT ON {other}"))),
        };
        let comment = Comment::of((object, column), text);
        self.change(Change::PutComment(comment))?;
        Ok(CommandTag::plain("COMMENT"))
    }

    /// # Errors
    /// `42501` for who may not say something of a role.
    fn check_may_tell_of(&self, role: &Role) -> Result<()> {
        let own = self.own_role()?;
        let refused = |text| Err(SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, text));
        match role.superuser {
            _ if own.superuser => Ok(()),
            true => refused("must be superuser"),
            false if own.create_role => Ok(()),
            false => refused("must have CREATEROLE privilege"),
        }
    }

    fn relation_to_tell(&mut self, what: &CommentObject, name: &ast::ObjectName) -> Result<Oid> {
        self.check_place(name)?;
        let found = self.binder().named(name)?;
        let (_, shown) = crate::bind::object_name(name)?;
        let word = what.to_string().to_lowercase();
        let wrong = || {
            let message = format!("\"{shown}\" is not {} {word}", article(&word));
            SqlError::new(sqlstate::WRONG_OBJECT_TYPE, message)
        };
        let Some(named) = found else {
            self.check_schema(name)?;
            return Err(self.binder().no_relation(name).without_place());
        };
        let catalog = self.open.catalog.1.clone();
        let (oid, owner) = match named {
            Named::Index { table, index } if *what == CommentObject::Index => (index, table),
            Named::Relation(oid) if *what != CommentObject::Index => (oid, oid),
            _ => return Err(wrong()),
        };
        let relation = catalog.relation(owner);
        let relation = relation.ok_or_else(|| SqlError::internal("a name without relation"))?;
        let fits = matches!(
            (&relation.kind, what),
            (Kind::Table(_), CommentObject::Table | CommentObject::Index)
                | (Kind::View(_), CommentObject::View)
                | (Kind::Sequence(_), CommentObject::Sequence)
        );
        if !fits {
            return Err(wrong());
        }
        self.check_owner(relation)?;
        Ok(oid)
    }

    /// A column, behind the name of its table.
    fn column_to_tell(&mut self, name: &ast::ObjectName) -> Result<(Oid, u16)> {
        let Some((ast::ObjectNamePart::Identifier(column), table)) = name.0.split_last() else {
            return Err(SqlError::syntax("column name must be qualified"));
        };
        if table.is_empty() {
            return Err(SqlError::syntax("column name must be qualified"));
        }
        let table = ast::ObjectName(table.to_vec());
        self.check_place(&table)?;
        let relation = self.binder().relation(&table);
        let relation = relation.map_err(SqlError::without_place)?;
        self.check_owner(&relation)?;
        let column = folded(column);
        let number = match &relation.kind {
            Kind::Table(table) => {
                let mut columns = table.schema.columns();
                columns.find(|own| *own.name == *column).map(|own| own.id.0)
            }
            Kind::View(view) => {
                let at = view.columns.iter().position(|own| **own == *column);
                at.and_then(|at| u16::try_from(at + 1).ok())
            }
            _ => None,
        };
        let number = number.ok_or_else(|| {
            let message = format!(
                "column \"{column}\" of relation \"{}\" does not exist",
                relation.name
            );
            SqlError::new(sqlstate::UNDEFINED_COLUMN, message)
        })?;
        Ok((relation.oid, number))
    }

    /// A constraint, in front of the name of its table.
    fn constraint_to_tell(&mut self, name: &ast::ObjectName) -> Result<(Oid, u16)> {
        let [
            ast::ObjectNamePart::Identifier(constraint),
            ast::ObjectNamePart::Identifier(mark),
            table @ ..,
        ] = name.0.as_slice()
        else {
            return Err(SqlError::unsupported("COMMENT ON PROCEDURE"));
        };
        if mark.value != OF_TABLE {
            return Err(SqlError::unsupported("COMMENT ON PROCEDURE"));
        }
        let table = ast::ObjectName(table.to_vec());
        self.check_place(&table)?;
        let relation = self.binder().relation(&table);
        let relation = relation.map_err(SqlError::without_place)?;
        self.check_owner(&relation)?;
        let name = folded(constraint);
        let found = relation.table().and_then(|table| {
            let mut indexes = table.indexes.iter();
            let index = indexes.find(|index| *index.name == *name);
            let check = table.checks.iter().find(|check| *check.name == *name);
            let key = table.foreign_keys.iter().find(|key| *key.name == *name);
            let of_index = index.and_then(|index| index.constraint);
            of_index
                .or(check.map(|check| check.oid))
                .or(key.map(|key| key.oid))
        });
        let oid = found.ok_or_else(|| {
            let message = format!(
                "constraint \"{name}\" for table \"{}\" does not exist",
                relation.name
            );
            SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
        })?;
        Ok((oid, 0))
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

#[cold]
fn denied(what: &str, name: &str) -> SqlError {
    let message = format!("must be owner of {what} {name}");
    SqlError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
}
