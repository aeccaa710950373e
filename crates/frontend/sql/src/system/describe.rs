//! Objects as the SQL that would make them: what `pg_get_indexdef`, `pg_get_constraintdef` and their like return.

use super::constraints::{self, What};
use super::deparse_over::{expression_over, part_text};
use super::depend::{EXTENSION, FUNCTION};
use super::names::{is_visible, reg_text};
use super::view_text::view_text;
use crate::bind::{functions_in, kept_function_of};
use crate::catalog::{
    Action, Collation, Index, KeyCollation, Kind, Oid, OperatorClass, Relation, Table,
};
use crate::expr::Scalar;
use crate::names::{literal, quoted};
use crate::parse::{TOLD_APART, with_exclusions, with_stack};
use crate::rows::Parts;
use crate::session::Env;
use sqlparser::ast::{Ident, ObjectName};
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

/// A `pg_node_tree` of several expressions: each behind the number of its bytes.
pub(super) fn nodes<'s>(all: impl Iterator<Item = &'s str>) -> String {
    all.fold(LIST.to_owned(), |list, sql| {
        format!("{list} {} {sql}", sql.len())
    })
}

/// The expressions of what [`nodes`] has made.
pub(super) fn list_of(node: &str) -> Option<Vec<&str>> {
    let mut rest = node.strip_prefix(LIST)?;
    let mut all = Vec::new();
    while let Some(next) = rest.strip_prefix(' ') {
        let (length, behind) = next.split_once(' ')?;
        let (sql, behind) = behind.split_at_checked(length.parse().ok()?)?;
        all.push(sql);
        rest = behind;
    }
    Some(all)
}

/// What a list of expressions begins with; one alone begins with a number.
const LIST: &str = "list";

/// `format_type`.
pub(super) fn format_type(env: &Env<'_>, oid: Oid, typmod: Option<i32>) -> String {
    match (env.forms.type_with_oid(oid), typmod) {
        (Some(ty), None) => env.forms.name_of(ty).into_owned(),
        (Some(ty), Some(typmod)) => env.forms.format_type(ty, Typmod(typmod)),
        (None, _) if oid == 0 => "-".to_owned(),
        (None, _) => env
            .forms
            .domain_name(oid)
            .or_else(|| super::types::type_name(env.catalog, env.search_path, oid))
            .unwrap_or_else(|| "???".to_owned()),
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
    let Parts {
        columns: parts,
        predicate,
    } = Parts::shown(relation, index).ok()?;
    let shown = |own: Scalar| env.function_shown(own);
    let named = |ty: Type, name: &str| env.name_shown(ty, name);
    let included = index.include.iter().map(|id| column_name(table, *id));
    if column > 0 {
        let keys = parts.iter();
        let keys = keys.map(|part| part_text(relation, part, (env.forms, &shown, &named), pretty));
        let text = keys.chain(included).nth(usize::try_from(column - 1).ok()?);
        return Some(text.unwrap_or_default());
    }
    let columns = index.columns.iter().zip(&parts).map(|(part, own)| {
        let mut text = part_text(relation, own, (env.forms, &shown, &named), pretty);
        if let Some(KeyCollation::Said(oid)) = part.collation
            && let Some(collation) = Collation::of(oid)
        {
            text.push_str(&format!(" COLLATE {}", quoted(collation.name)));
        }
        // Only of one that is not the type's own a number is kept.
        if let Some(class) = OperatorClass::of(part.class) {
            text.push_str(&format!(" {}", quoted(class.name)));
        }
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
    let mut text = format!(
        "CREATE {unique}INDEX {} ON {table_name} USING {} ({})",
        quoted(&index.name),
        index.method.name(),
        columns.join(", ")
    );
    if !index.include.is_empty() {
        let included: Vec<String> = included.collect();
        text.push_str(&format!(" INCLUDE ({})", included.join(", ")));
    }
    if !index.nulls_distinct {
        text.push_str(" NULLS NOT DISTINCT");
    }
    if !index.options.is_empty() {
        let options: Vec<String> = index.options.iter().map(|own| option_text(own)).collect();
        text.push_str(&format!(" WITH ({})", options.join(", ")));
    }
    if let Some(condition) = &predicate {
        let condition = expression_over(
            relation,
            condition,
            Type::Bool,
            (env.forms, &shown, &named),
            pretty,
        );
        text.push_str(&format!(" WHERE {condition}"));
    }
    Some(text)
}

/// A parameter as a statement says it: the value is a text, where it is no name.
fn option_text(option: &str) -> String {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let value = if quoted(value) == value {
        value.to_owned()
    } else {
        literal(value)
    };
    format!("{}={value}", quoted(name))
}

/// `pg_get_constraintdef`.
pub(super) fn constraint_definition(env: &Env<'_>, oid: Oid, pretty: bool) -> Option<String> {
    let relations = env.catalog.relations();
    let mut all = relations
        .into_iter()
        .flat_map(|relation| constraints::of(relation));
    let Some(found) = all.find(|constraint| constraint.oid == oid) else {
        let mut checks = env.catalog.user_types().into_iter().filter_map(|own| {
            let Kind::Domain(domain) = &own.kind else {
                return None;
            };
            let check = domain.checks.iter().find(|check| check.oid == oid)?;
            Some((domain, check))
        });
        let (domain, check) = checks.next()?;
        let text = env.condition_text(domain, &check.expression, pretty);
        return Some(format!("CHECK ({text})"));
    };
    let table = found.table;
    Some(match &found.what {
        What::Index(index) => {
            let columns: Vec<ColumnId> = index.key_columns().collect();
            let word = match (index.primary, index.nulls_distinct) {
                (true, _) => "PRIMARY KEY",
                (false, true) => "UNIQUE",
                (false, false) => "UNIQUE NULLS NOT DISTINCT",
            };
            let names = column_names(table, &columns);
            let included = match &index.include[..] {
                [] => String::new(),
                included => format!(" INCLUDE ({})", column_names(table, included)),
            };
            format!("{word} ({names}){included}{}", index.timing.words())
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
            if key.full {
                text.push_str(" MATCH FULL");
            }
            for (event, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
                if let Some(word) = action_words(action) {
                    text.push_str(&format!(" ON {event} {word}"));
                }
            }
            text.push_str(key.timing.words());
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

/// `pg_describe_object` of a function or an extension, by the relation that has its row; `None` for others.
pub(super) fn function_or_extension(env: &Env<'_>, class: Oid, oid: Oid) -> Option<String> {
    Some(match class {
        FUNCTION => {
            let (_, arguments, _) = super::types::function_of(env.catalog, oid)?;
            let name = super::types::function_name(env.catalog, env.search_path, oid)?;
            let types = match crate::extension::function(oid) {
                // Without the names of its parameters.
                Some(own) => {
                    let types = own.entry().arguments();
                    let types = types.map(|ty| Type::from_name(ty).map_or(ty, Type::sql_name));
                    types.collect::<Vec<_>>().join(",")
                }
                None => arguments.replace(", ", ","),
            };
            format!("function {name}({types})")
        }
        EXTENSION => format!("extension {}", env.catalog.extension_by_oid(oid)?.name),
        _ => return None,
    })
}

/// A query as a definition keeps it, in which types and functions of extensions are called as they are now.
pub(super) fn with_names(env: &Env<'_>, query: &str) -> String {
    let calls = !functions_in(query).is_empty();
    let named = calls || !crate::ddl::types_in(query).is_empty();
    let read = || crate::parse::statements(query).ok()?.pop();
    let Some(mut statement) = named.then(read).flatten() else {
        return query.to_owned();
    };
    crate::ddl::each_type(&mut statement, |name| {
        let kept = match crate::bind::object_name(name) {
            Ok((Some(schema), own)) if schema == "pg_catalog" => crate::bind::kept_oid(&own),
            _ => None,
        };
        let shown = kept.and_then(|oid| match env.forms.type_with_oid(oid) {
            Some(ty) => Some(env.forms.name_of(ty).into_owned()),
            None => env.forms.domain_name(oid),
        });
        if let Some(shown) = shown {
            // A schema and brackets may be in it: it is written as it is.
            *name = ObjectName::from(vec![Ident::new(shown)]);
        }
    });
    if calls {
        crate::ddl::each_function(&mut statement, |name, _| {
            let kept = crate::bind::object_name(name).ok();
            let kept = kept.and_then(|(schema, own)| kept_function_of(schema.as_deref(), &own));
            if let Some(own) = kept {
                *name = ObjectName::from(vec![Ident::new(env.function_shown(own))]);
            }
        });
    }
    statement.to_string()
}

/// `pg_get_viewdef`: the query as PostgreSQL shows it; one with a form that is not known there, as it was given, in a line. Types that users have made, and functions of
/// extensions, have the names that they have now.
pub(super) fn view_definition(env: &Env<'_>, oid: Oid, pretty: bool) -> Option<String> {
    match &env.catalog.relation(oid)?.kind {
        Kind::View(view) => {
            let text = with_names(env, &view.query);
            let shown = with_stack(|| view_text(env, view, &text, pretty));
            let text = with_exclusions(&shown.unwrap_or_else(|| format!(" {text}")));
            let text = crate::parse::with_lock_words(&text);
            let text = text.replace(&format!("\"{TOLD_APART}\", "), "DISTINCT ");
            Some(format!("{};", crate::parse::as_written(&text)))
        }
        _ => None,
    }
}
