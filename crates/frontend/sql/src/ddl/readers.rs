//! Defaults that read sequences, and what becomes of them when these are dropped or called otherwise.
//!
//! A default names its sequences in its text: with their schemas, from when the default is made, and written anew when a sequence is called otherwise.
//! So whoever looks for readers looks through these texts.

use super::Ddl;
use crate::catalog::{Change, Default, Kind, Named, Oid, Relation, Table};
use crate::error::{Fields, Result, SqlError};
use crate::names::{literal, parts, quoted};
use crate::sqlstate;
use sqlparser::ast::{self, Ident};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::sync::Arc;
use vellum_row::ColumnId;

/// A default that reads a sequence: its table, its column.
pub(super) type Reader = (Arc<Relation>, ColumnId);

impl Ddl<'_> {
    /// The sequence, or whatever else, that a name in a default stands for.
    pub(super) fn sequence_named(&self, name: &str) -> Option<Oid> {
        let named = parts(name)?.into_iter();
        let named = named.map(|part| Ident::with_quote('"', part));
        let named = ast::ObjectName::from(named.collect::<Vec<_>>());
        match self.binder().named(&named) {
            Ok(Some(Named::Relation(oid))) => Some(oid),
            _ => None,
        }
    }

    /// The text of a default in which sequences stand with their schemas: they are the same whatever path names are looked up in later.
    ///
    /// # Errors
    /// `42P01` for one that is not there.
    pub(super) fn default_text(&self, expr: &ast::Expr) -> Result<Box<str>> {
        let catalog = &self.open.catalog.1;
        let text = with_names(&expr.to_string(), |name| {
            let found = self
                .sequence_named(name)
                .and_then(|oid| catalog.relation(oid));
            let Some(found) = found else {
                let message = format!("relation \"{name}\" does not exist");
                return Err(SqlError::new(sqlstate::UNDEFINED_TABLE, message));
            };
            let schema = catalog.namespace_name(found.namespace);
            Ok(Some(format!("{}.{}", quoted(schema), quoted(&found.name))))
        })?;
        Ok(text.into())
    }

    /// The defaults that read a sequence.
    pub(super) fn readers(&self, sequence: Oid) -> Vec<Reader> {
        let mut found = Vec::new();
        for relation in self.open.catalog.1.relations() {
            let Some(table) = relation.table() else {
                continue;
            };
            for (column, default) in &table.defaults {
                let Default::Expression(sql) = default else {
                    continue;
                };
                let mut reads = false;
                let read = with_names(sql, |name| {
                    reads |= self.sequence_named(name) == Some(sequence);
                    Ok(None)
                });
                if read.is_ok() && reads {
                    found.push((relation.clone(), *column));
                }
            }
        }
        found
    }

    /// Gives a column another default, or none.
    pub(super) fn change_default(
        &mut self,
        relation: &Arc<Relation>,
        column: ColumnId,
        sql: Option<String>,
    ) -> Result<()> {
        let relation = self.alone(relation)?;
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let mut next = table.clone();
        set_default(&mut next, column, sql);
        self.put_table(&relation, next).map(drop)
    }

    /// What reads a sequence that is dropped: with CASCADE these defaults go.
    ///
    /// # Errors
    /// `2BP01` without CASCADE, and for the sequence of an identity.
    pub(super) fn drop_readers(&mut self, sequence: &Relation, cascade: bool) -> Result<()> {
        let what = format!("sequence {}", sequence.name);
        if let Some((owner, column)) = self.identity_of(sequence) {
            let table = owner.table();
            let position = table.and_then(|table| table.schema.position_of(column));
            let name = table
                .zip(position)
                .map(|(table, at)| table.schema.column(at).name.clone());
            let column = format!(
                "column {} of table {}",
                name.unwrap_or_default(),
                owner.name
            );
            let message = format!("cannot drop {what} because {column} requires it");
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(
                SqlError::new(state, message).with_hint(format!("You can drop {column} instead."))
            );
        }
        let readers = self.readers(sequence.oid);
        let readers = readers
            .into_iter()
            .map(|reader| (reader, sequence.name.clone()));
        for (table, column) in self.let_go(&what, readers.collect(), cascade)? {
            self.change_default(&table, column, None)?;
        }
        Ok(())
    }

    /// The sequences that go with a column that is dropped, or with all columns of a table that is dropped together with others.
    ///
    /// # Errors
    /// `2BP01` if another default reads one, without CASCADE.
    pub(super) fn drop_owned(
        &mut self,
        relation: &Relation,
        column: Option<(ColumnId, &mut Table)>,
        together: &[Oid],
        cascade: bool,
    ) -> Result<()> {
        let (of_column, mut next) = column.unzip();
        let owned: Vec<Oid> = self.owned_sequences(relation.oid);
        let mut gone = Vec::new();
        let mut readers = Vec::new();
        for oid in owned {
            let found = self.open.catalog.1.relation(oid).cloned();
            let Some(sequence) = found.filter(|found| match &found.kind {
                Kind::Sequence(own) => of_column.is_none_or(|column| own.owner.1 == column.0),
                _ => false,
            }) else {
                continue;
            };
            for reader in self.readers(oid) {
                let own = reader.0.oid == relation.oid;
                let goes = match of_column {
                    None => own || together.contains(&reader.0.oid),
                    Some(column) => own && reader.1 == column,
                };
                if !goes {
                    readers.push((reader, sequence.name.clone()));
                }
            }
            gone.push(oid);
        }
        let what = match of_column.zip(relation.table()) {
            None => format!("table {}", relation.name),
            Some((column, table)) => {
                let position = table.schema.position_of(column);
                let name = position.map(|at| table.schema.column(at).name.clone());
                format!(
                    "column {} of table {}",
                    name.unwrap_or_default(),
                    relation.name
                )
            }
        };
        for (table, column) in self.let_go(&what, readers, cascade)? {
            match &mut next {
                // What is being changed is put when that is done.
                Some(next) if table.oid == relation.oid => set_default(next, column, None),
                _ => self.change_default(&table, column, None)?,
            }
        }
        for oid in gone {
            self.open.change(self.shared, Change::DropRelation(oid))?;
        }
        Ok(())
    }

    /// Says that defaults go with what they read.
    ///
    /// # Errors
    /// `2BP01` without CASCADE, if there are any.
    fn let_go(
        &mut self,
        what: &str,
        readers: Vec<(Reader, Box<str>)>,
        cascade: bool,
    ) -> Result<Vec<Reader>> {
        if readers.is_empty() {
            return Ok(Vec::new());
        }
        let mut names: Vec<String> = Vec::new();
        let mut on: Vec<String> = Vec::new();
        for ((table, column), sequence) in &readers {
            let definition = table.table();
            let position = definition.and_then(|own| own.schema.position_of(*column));
            let name = definition
                .zip(position)
                .map(|(own, at)| own.schema.column(at).name.clone());
            let name = format!(
                "default value for column {} of table {}",
                name.unwrap_or_default(),
                table.name
            );
            on.push(format!("{name} depends on sequence {sequence}"));
            names.push(name);
        }
        if !cascade {
            let message = format!("cannot drop {what} because other objects depend on it");
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(SqlError::new(state, message)
                .with_detail(on.join("\n"))
                .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        let lines: Vec<String> = names
            .iter()
            .map(|name| format!("drop cascades to {name}"))
            .collect();
        let notice = match lines.as_slice() {
            [only] => Fields::notice(only.clone()),
            _ => {
                let mut notice =
                    Fields::notice(format!("drop cascades to {} other objects", lines.len()));
                notice.detail = Some(lines.join("\n"));
                notice
            }
        };
        self.notices.push(notice);
        Ok(readers.into_iter().map(|(reader, _)| reader).collect())
    }
}

fn set_default(table: &mut Table, column: ColumnId, sql: Option<String>) {
    table.defaults.retain(|(id, _)| *id != column);
    let default = sql.map(|sql| (column, Default::Expression(sql.into())));
    table.defaults.extend(default);
}

/// A text in which names of relations in literals are called otherwise: what functions of sequences are given, and what is cast to `regclass`.
/// `None` leaves one as it is.
pub(super) fn with_names(
    sql: &str,
    mut called: impl FnMut(&str) -> Result<Option<String>>,
) -> Result<String> {
    // Most defaults name none.
    let lower = sql.to_ascii_lowercase();
    if !lower.contains("val") && !lower.contains("regclass") {
        return Ok(sql.to_owned());
    }
    let dialect = PostgreSqlDialect {};
    // Literals stay as they were written.
    let tokens = Tokenizer::new(&dialect, sql)
        .with_unescape(false)
        .tokenize();
    let mut tokens = tokens.map_err(|error| SqlError::internal(error.message))?;
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at], Token::Whitespace(_)))
        .collect();
    let word = |token: Option<&Token>, words: &[&str]| {
        matches!(token, Some(Token::Word(word))
            if words.iter().any(|own| word.value.eq_ignore_ascii_case(own)))
    };
    for (at, place) in spoken.iter().enumerate() {
        let Token::SingleQuotedString(written) = &tokens[*place] else {
            continue;
        };
        let near = |by: isize| {
            let at = at.checked_add_signed(by)?;
            spoken.get(at).and_then(|place| tokens.get(*place))
        };
        // What is cast to text is looked up anew with every call.
        let given = near(1) != Some(&Token::DoubleColon)
            && near(-1) == Some(&Token::LParen)
            && word(near(-2), &["nextval", "currval", "setval"]);
        let cast = near(1) == Some(&Token::DoubleColon) && word(near(2), &["regclass"])
            || word(near(1), &["as"]) && word(near(2), &["regclass"]);
        let name = written.replace("''", "'");
        // An oid stands for itself.
        if !(given || cast) || name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        if let Some(called) = called(&name)? {
            let literal = literal(&called);
            let inside = literal
                .strip_prefix('\'')
                .and_then(|rest| rest.strip_suffix('\''));
            if let Some(inside) = inside {
                tokens[*place] = Token::SingleQuotedString(inside.to_owned());
            }
        }
    }
    Ok(tokens.iter().map(ToString::to_string).collect())
}
