//! Objects as the SQL that would make them: what `pg_get_indexdef`, `pg_get_constraintdef` and their like return.

use super::constraints::{self, What};
use super::names::{is_visible, reg_text};
use crate::catalog::{Action, Index, Kind, Oid, Relation, Table};
use crate::names::quoted;
use crate::session::Env;
use std::sync::Arc;
use vellum_row::{ColumnId, Type, Typmod};

/// A `pg_node_tree`: the number of the column that an expression is for (0: none), and the expression.
pub(super) fn node(column: u16, sql: &str) -> String {
    format!("{column} {sql}")
}

/// The parts of what [`node`] has made.
pub(super) fn parts_of(node: &str) -> (Option<ColumnId>, &str) {
    match node.split_once(' ') {
        Some((column, sql)) => match column.parse() {
            Ok(0) => (None, sql),
            Ok(column) => (Some(ColumnId(column)), sql),
            Err(_) => (None, node),
        },
        None => (None, node),
    }
}

/// `format_type`.
pub(super) fn format_type(oid: Oid, typmod: Option<i32>) -> String {
    match (Type::from_oid(oid), typmod) {
        (Some(ty), None) => ty.sql_name().to_owned(),
        (Some(ty), Some(typmod)) => ty.format(Typmod(typmod)),
        (None, _) if oid == 0 => "-".to_owned(),
        (None, _) => super::types::type_name(oid).unwrap_or("???").to_owned(),
    }
}

/// An index and the table that it is of.
pub(super) fn index<'e>(env: &'e Env<'_>, oid: Oid) -> Option<(&'e Arc<Relation>, &'e Index)> {
    env.catalog.index(oid)
}

fn column_name(table: &Table, column: ColumnId) -> String {
    quoted(&table.schema.column(table.position(column)).name)
}

fn column_names(table: &Table, columns: &[ColumnId]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| column_name(table, *column))
        .collect();
    names.join(", ")
}

/// `pg_get_indexdef`: the statement, or one of its columns (from 1).
pub(super) fn index_definition(
    env: &Env<'_>,
    oid: Oid,
    column: i32,
    pretty: bool,
) -> Option<String> {
    let (relation, index) = index(env, oid)?;
    let table = relation.table()?;
    if column > 0 {
        let part = index.columns.get(usize::try_from(column - 1).ok()?);
        return Some(part.map_or_else(String::new, |part| column_name(table, part.column)));
    }
    let columns = index.columns.iter().map(|part| {
        let mut text = column_name(table, part.column);
        if part.descending {
            text.push_str(" DESC");
        }
        match (part.descending, part.nulls_first) {
            (false, true) => text.push_str(" NULLS FIRST"),
            (true, false) => text.push_str(" NULLS LAST"),
            _ => {}
        }
        text
    });
    let columns: Vec<String> = columns.collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let visible = is_visible(
        env.catalog,
        env.search_path,
        relation.oid,
        (relation.namespace, &relation.name),
    );
    let table_name = if pretty && visible {
        quoted(&relation.name)
    } else {
        let schema = quoted(env.catalog.namespace_name(relation.namespace));
        format!("{schema}.{}", quoted(&relation.name))
    };
    Some(format!(
        "CREATE {unique}INDEX {} ON {table_name} USING btree ({})",
        quoted(&index.name),
        columns.join(", ")
    ))
}

/// `pg_get_constraintdef`.
pub(super) fn constraint_definition(env: &Env<'_>, oid: Oid, pretty: bool) -> Option<String> {
    let relations = env.catalog.relations();
    let mut all = relations
        .into_iter()
        .flat_map(|relation| constraints::of(relation));
    let found = all.find(|constraint| constraint.oid == oid)?;
    let table = found.table;
    Some(match &found.what {
        What::Index(index) => {
            let columns: Vec<ColumnId> = index.columns.iter().map(|part| part.column).collect();
            let word = if index.primary {
                "PRIMARY KEY"
            } else {
                "UNIQUE"
            };
            format!("{word} ({})", column_names(table, &columns))
        }
        What::Check(sql) => {
            let text = env.expression_text(Some(found.relation), None, sql, pretty);
            format!("CHECK ({text})")
        }
        What::Foreign(key) => {
            let target = env.catalog.relation(key.target)?;
            let mut text = format!(
                "FOREIGN KEY ({}) REFERENCES {}({})",
                column_names(table, &key.columns),
                reg_text(env, Type::Regclass, key.target),
                column_names(target.table()?, &key.target_columns)
            );
            for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if let Some(word) = action_words(action) {
                    text.push_str(&format!(" ON {event} {word}"));
                }
            }
            text
        }
    })
}

/// What a foreign key's action is called; `None` for the one that is not said.
pub(super) fn action_words(action: Action) -> Option<&'static str> {
    match action {
        Action::NoAction => None,
        Action::Restrict => Some("RESTRICT"),
        Action::Cascade => Some("CASCADE"),
        Action::SetNull => Some("SET NULL"),
        Action::SetDefault => Some("SET DEFAULT"),
    }
}

/// `pg_get_viewdef`: the query as it was given.
pub(super) fn view_definition(env: &Env<'_>, oid: Oid) -> Option<String> {
    match &env.catalog.relation(oid)?.kind {
        Kind::View(view) => Some(format!(" {};", view.query)),
        _ => None,
    }
}
