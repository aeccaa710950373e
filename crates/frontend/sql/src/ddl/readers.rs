//! Defaults that read sequences, or name other relations, and what becomes of them when these are dropped or called otherwise.
//!
//! A default names its sequences in its text: with their schemas, from when the default is made, and written anew when a sequence is called otherwise.
//! So whoever looks for readers looks through these texts.

use super::Ddl;
use crate::bind::Binder;
use crate::catalog::{Catalog, Default, Kind, Mode, Named, Oid, Relation, Table};
use crate::error::{Result, SqlError};
use crate::names::{literal, parts, quoted};
use crate::sqlstate;
use sqlparser::ast::{self, Ident};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};
use std::sync::Arc;
use vellum_row::ColumnId;

/// The names of the sequences that a default reads.
pub(crate) fn named_sequences(sql: &str) -> Vec<String> {
    let mut names = Vec::new();
    let read = with_names(sql, |name| {
        names.push(name.to_owned());
        Ok(None)
    });
    // Its text was read when it was made.
    debug_assert!(read.is_ok(), "{sql}");
    names
}

/// A default that reads a sequence: its table, its column; of a view, which numbers its columns from 1.
pub(super) type Reader = (Arc<Relation>, ColumnId);

impl Ddl<'_> {
    /// The sequence, or whatever else, that a name in a default stands for.
    pub(super) fn sequence_named(&self, name: &str) -> Option<Oid> {
        self.sequence_named_in(&self.open.catalog.1, name)
    }

    /// The same in an image.
    fn sequence_named_in(&self, catalog: &Catalog, name: &str) -> Option<Oid> {
        match self.named_in(catalog, name)? {
            Named::Relation(oid) => Some(oid),
            Named::Index { .. } => None,
        }
    }

    fn named_in(&self, catalog: &Catalog, name: &str) -> Option<Named> {
        let named = parts(name)?.into_iter();
        let named = named.map(|part| Ident::with_quote('"', part));
        let named = ast::ObjectName::from(named.collect::<Vec<_>>());
        let binder = Binder::new(catalog, &self.search_path, self.forms, self.text);
        binder.named(&named).ok().flatten()
    }

    /// The text of a default in which sequences stand with their schemas: they are the same whatever path names are looked up in later. Their gates are
    /// held from then on, before rows are written.
    ///
    /// # Errors
    /// `42P01` for one that is not there; those of [`Ddl::enter`].
    pub(super) fn default_text(&mut self, expr: &ast::Expr) -> Result<Box<str>> {
        let mut named = Vec::new();
        let catalog = &self.open.catalog.1;
        let text = with_names(&self.kept_text(expr), |name| {
            let found = match self.named_in(catalog, name) {
                // Who calls an index otherwise looks for no texts.
                Some(Named::Index { index, .. }) => return Ok(Some(index.to_string())),
                Some(Named::Relation(oid)) => catalog.relation(oid),
                None => None,
            };
            let Some(found) = found else {
                let message = format!("relation \"{name}\" does not exist");
                return Err(SqlError::new(sqlstate::UNDEFINED_TABLE, message));
            };
            named.push(found.oid);
            let schema = catalog.namespace_name(found.namespace);
            Ok(Some(format!("{}.{}", quoted(schema), quoted(&found.name))))
        })?;
        for oid in named {
            self.enter(oid, Mode::Write)?;
        }
        Ok(text.into())
    }

    /// The defaults that read a sequence.
    ///
    /// # Errors
    /// `40001` under repeatable read, for what others have made since the snapshot, of domains, too.
    pub(super) fn readers(&self, sequence: Oid) -> Result<Vec<Reader>> {
        self.check_known(|now, other| self.sequences_read_by(now, other).contains(&sequence))?;
        let mut found = Vec::new();
        for relation in self.open.catalog.1.relations() {
            let table = relation.table().into_iter();
            let of_table = table.flat_map(|table| &table.defaults);
            let of_table = of_table.filter_map(|(column, default)| match default {
                Default::Expression(sql) => Some((*column, sql)),
                _ => None,
            });
            let view = match &relation.kind {
                Kind::View(view) => view.defaults.as_slice(),
                _ => &[],
            };
            let of_view = view.iter().map(|(number, sql)| (ColumnId(*number), sql));
            for (column, sql) in of_table.chain(of_view) {
                if self.reads_sequence(sql, sequence) {
                    found.push((relation.clone(), column));
                }
            }
        }
        Ok(found)
    }

    /// The domains whose default reads a sequence.
    pub(super) fn domains_reading(&self, sequence: Oid) -> Vec<Arc<Relation>> {
        let mut all = self.open.catalog.1.user_types();
        all.retain(|relation| match &relation.kind {
            Kind::Domain(own) => {
                let default = own.default.as_deref();
                default.is_some_and(|sql| self.reads_sequence(sql, sequence))
            }
            _ => false,
        });
        all.into_iter().cloned().collect()
    }

    /// The sequences, or whatever else, that the defaults of a relation name as such in an image.
    pub(super) fn sequences_read_by(&self, catalog: &Catalog, relation: &Relation) -> Vec<Oid> {
        let defaults: Vec<&str> = match &relation.kind {
            Kind::Table(table) => {
                let all = table.defaults.iter();
                let texts = all.filter_map(|(_, default)| match default {
                    Default::Expression(sql) => Some(&**sql),
                    _ => None,
                });
                texts.collect()
            }
            Kind::View(view) => view.defaults.iter().map(|(_, sql)| &**sql).collect(),
            Kind::Domain(own) => own.default.as_deref().into_iter().collect(),
            _ => Vec::new(),
        };
        let names = defaults.into_iter().flat_map(named_sequences);
        names
            .filter_map(|name| self.sequence_named_in(catalog, &name))
            .collect()
    }

    fn reads_sequence(&self, sql: &str, sequence: Oid) -> bool {
        let mut reads = false;
        let read = with_names(sql, |name| {
            reads |= self.sequence_named(name) == Some(sequence);
            Ok(None)
        });
        read.is_ok() && reads
    }

    /// Gives a column another default, or none.
    pub(super) fn change_default(
        &mut self,
        relation: &Arc<Relation>,
        column: ColumnId,
        sql: Option<String>,
    ) -> Result<()> {
        let relation = self.alone(relation)?;
        if let Kind::View(view) = &relation.kind {
            let mut next = view.clone();
            next.defaults.retain(|(own, _)| *own != column.0);
            next.defaults.extend(sql.map(|sql| (column.0, sql.into())));
            return self.put_view(&relation, next);
        }
        let Some(table) = relation.table() else {
            return Ok(());
        };
        let mut next = table.clone();
        set_default(&mut next, column, sql);
        self.put_table(&relation, next).map(drop)
    }

    /// The sequence of an identity goes with its column only.
    ///
    /// # Errors
    /// `2BP01`.
    pub(super) fn check_no_identity(&self, sequence: &Relation) -> Result<()> {
        let what = self.described(sequence);
        if let Some((owner, column)) = self.identity_of(sequence) {
            let column = self.column_described(&owner, column);
            let message = format!("cannot drop {what} because {column} requires it");
            let state = sqlstate::DEPENDENT_OBJECTS_STILL_EXIST;
            return Err(
                SqlError::new(state, message).with_hint(format!("You can drop {column} instead."))
            );
        }
        Ok(())
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
        // An oid stands for itself, as does none.
        if !(given || cast) || name == "-" || name.bytes().all(|byte| byte.is_ascii_digit()) {
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
