//! What a name without its table means, in the query of a view.

use super::Writer;
use crate::bind::{folded, star_of};
use crate::catalog::{Kind, Named, Relation};
use crate::names::quoted;
use crate::plan::column_name_of;
use crate::system::names::is_visible;
use sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use std::sync::Arc;

/// What a name in FROM, or in WITH, stands for.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub name: String,
    /// `None` if they are not known here.
    pub columns: Option<Vec<String>>,
    /// Whether its columns are merged with those of another, by an outer join: they have no table.
    pub is_merged: bool,
}

impl Known {
    /// Something under the name of an alias, whose names of columns come first.
    pub fn under(name: String, columns: Option<Vec<String>>, alias: Option<&TableAlias>) -> Self {
        let mut columns = columns;
        let given = alias.map_or(&[][..], |alias| &alias.columns);
        for (at, column) in given.iter().enumerate() {
            let own = columns.as_mut().and_then(|columns| columns.get_mut(at));
            if let Some(own) = own {
                *own = folded(&column.name);
            }
        }
        Self {
            name: alias.map_or(name, |alias| folded(&alias.name)),
            columns,
            is_merged: false,
        }
    }
}

/// Columns of a function's rows that is called so, in FROM under a name: of those that return values, which are called as they are.
pub(super) fn value_column(function: &str, name: &str) -> Option<Vec<String>> {
    const OF_VALUES: [&str; 5] = [
        "generate_series",
        "generate_subscripts",
        "regexp_split_to_table",
        "string_to_table",
        "unnest",
    ];
    OF_VALUES.contains(&function).then(|| vec![name.to_owned()])
}

impl Writer<'_> {
    /// What a column's name is, with its table; `None` where that would be another one.
    pub(super) fn column(&self, parts: &[Ident]) -> Option<String> {
        // Of each query, from the innermost outwards.
        let called = |table: &str| -> Vec<usize> {
            let scopes = self.scopes.iter().rev();
            let count =
                |scope: &Vec<Known>| scope.iter().filter(|known| known.name == *table).count();
            scopes.map(count).collect()
        };
        let [name] = parts else {
            let [schemas @ .., table, column] = parts else {
                return None;
            };
            let table = folded(table);
            // A schema in front of the table is not shown: without it the nearest one is meant.
            let mut own = called(&table).into_iter().filter(|count| *count > 0);
            let is_told = own.next().is_none_or(|count| count == 1);
            if !is_told || !schemas.is_empty() && own.next().is_some() {
                return None;
            }
            return Some(format!("{}.{}", quoted(&table), quoted(&folded(column))));
        };
        let name = folded(name);
        for (depth, scope) in self.scopes.iter().rev().enumerate() {
            self.spend(scope.len())?;
            let has = |known: &&Known| {
                let columns = known.columns.as_ref();
                columns.is_none_or(|columns| columns.contains(&name))
            };
            // What is not known may have it.
            if let Some(known) = scope.iter().find(has) {
                // Behind the name of the table a nearer one that is called so would be asked.
                let is_told = called(&known.name)[..=depth].iter().sum::<usize>() == 1;
                let with_table = known.columns.is_some() && !known.is_merged && is_told;
                return Some(match with_table {
                    true => format!("{}.{}", quoted(&known.name), quoted(&name)),
                    false => quoted(&name),
                });
            }
        }
        Some(quoted(&name))
    }

    /// Every column of what a query reads, with its table; `None` where they are not known, or merged.
    pub(super) fn all_columns(&self, select: &Select) -> Option<Vec<(String, String)>> {
        let joins = select.from.iter().flat_map(|table| &table.joins);
        let merges = |own: &JoinConstraint| {
            matches!(own, JoinConstraint::Using(_) | JoinConstraint::Natural)
        };
        if joins
            .filter_map(|join| constraint(&join.join_operator))
            .any(merges)
        {
            return None;
        }
        let mut all = Vec::new();
        let scope = self.scopes.last()?;
        for known in scope {
            let columns = known.columns.as_ref()?;
            self.spend(columns.len() + scope.len())?;
            let mut same = scope.iter().filter(|other| other.name == known.name);
            if same.nth(1).is_some() {
                return None;
            }
            all.extend(
                columns
                    .iter()
                    .map(|column| (known.name.clone(), column.clone())),
            );
        }
        Some(all)
    }

    /// Columns that tables have together with another one, in their order; `None` if there are none, or they are not known.
    pub(super) fn shared_columns(
        &self,
        (first, joins): (&TableFactor, &[Join]),
        right: &TableFactor,
    ) -> Option<Vec<String>> {
        let (mut columns, mut left) = (Vec::new(), Vec::new());
        self.add(first, joins, &mut left);
        for known in left {
            for column in known.columns? {
                // Merged ones are there once.
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
        }
        let right = self.known(right)?.columns?;
        columns.retain(|column| right.contains(column));
        Some(columns).filter(|columns| !columns.is_empty())
    }

    /// What the tables of a FROM are.
    pub(super) fn scope_of(&self, from: &[TableWithJoins]) -> Vec<Known> {
        let mut scope = Vec::new();
        for table in from {
            self.add(&table.relation, &table.joins, &mut scope);
        }
        scope
    }

    fn add(&self, first: &TableFactor, joins: &[Join], scope: &mut Vec<Known>) {
        let from = scope.len();
        let others = joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(first).chain(others) {
            match factor {
                TableFactor::NestedJoin {
                    table_with_joins: inner,
                    alias: None,
                } => self.add(&inner.relation, &inner.joins, scope),
                other => scope.extend(self.known(other)),
            }
        }
        let merges = joins.iter().any(|join| {
            use JoinOperator as J;
            let is_outer = matches!(
                join.join_operator,
                J::Right(_) | J::RightOuter(_) | J::FullOuter(_)
            );
            let own = constraint(&join.join_operator);
            is_outer && !matches!(own, Some(JoinConstraint::On(_)) | None)
        });
        if merges {
            let all = scope[from..].iter_mut();
            all.for_each(|known| known.is_merged = true);
        }
    }

    fn known(&self, factor: &TableFactor) -> Option<Known> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let alias = alias.as_ref();
                if let Some(with) = self.with_named(name) {
                    let columns = with.columns.clone();
                    return Some(Known::under(with.name.clone(), columns, alias));
                }
                let relation = self.relation(name)?;
                let columns = columns_of_relation(&relation);
                Some(Known::under(relation.name.to_string(), columns, alias))
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => {
                let columns = self.columns_of(subquery);
                Some(Known::under(String::new(), columns, alias.as_ref()))
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                let function = name.0.last()?.as_ident().map(folded)?;
                Some(of_function(&function, alias.as_ref()))
            }
            TableFactor::UNNEST {
                alias, array_exprs, ..
            } => {
                let mut known = of_function("unnest", alias.as_ref());
                if array_exprs.len() > 1 {
                    known.columns = None;
                }
                Some(known)
            }
            TableFactor::NestedJoin { alias, .. } => {
                Some(Known::under(String::new(), None, alias.as_ref()))
            }
            _ => None,
        }
    }

    fn with_named(&self, name: &ObjectName) -> Option<&Known> {
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
            return None;
        };
        let name = folded(name);
        self.with.iter().rev().find(|with| with.name == name)
    }

    fn relation(&self, name: &ObjectName) -> Option<Arc<Relation>> {
        let (schema, name) = crate::bind::object_name(name).ok()?;
        let catalog = self.env.catalog;
        let path = self.env.search_path;
        let found = match schema {
            Some(schema) => {
                let schema = catalog.schema_named(&schema, path)?;
                catalog.named(schema, &name)?
            }
            None => path
                .iter()
                .find_map(|schema| catalog.named(*schema, &name))?,
        };
        match found {
            Named::Relation(oid) => catalog.relation(oid).cloned(),
            Named::Index { .. } => None,
        }
    }

    /// A relation as it is named now: with its schema, where it is not found without.
    pub(super) fn relation_name(&self, name: &ObjectName) -> Option<String> {
        if let Some(with) = self.with_named(name) {
            return Some(quoted(&with.name));
        }
        let relation = self.relation(name)?;
        let (catalog, path) = (self.env.catalog, self.env.search_path);
        let own = (relation.namespace, &*relation.name);
        let hidden = self.with.iter().any(|with| *with.name == *relation.name);
        if is_visible(catalog, path, relation.oid, own) && !hidden {
            return Some(quoted(&relation.name));
        }
        let schema = quoted(catalog.namespace_name(relation.namespace));
        Some(format!("{schema}.{}", quoted(&relation.name)))
    }

    /// What the columns of a query are called.
    pub(super) fn columns_of(&self, query: &Query) -> Option<Vec<String>> {
        self.columns_of_body(&query.body)
    }

    pub(super) fn columns_of_body(&self, body: &SetExpr) -> Option<Vec<String>> {
        match body {
            SetExpr::Query(query) => self.columns_of(query),
            SetExpr::SetOperation { left, .. } => self.columns_of_body(left),
            SetExpr::Values(values) => {
                let width = values.rows.first()?.content.len();
                Some((1..=width).map(|at| format!("column{at}")).collect())
            }
            SetExpr::Select(select) => {
                let mut all = Vec::with_capacity(select.projection.len());
                for item in &select.projection {
                    match item {
                        SelectItem::UnnamedExpr(expr) if star_of(expr).is_some() => return None,
                        SelectItem::UnnamedExpr(expr) => all.push(column_name_of(expr)),
                        SelectItem::ExprWithAlias { alias, .. } => all.push(folded(alias)),
                        SelectItem::Wildcard(_) => {
                            for known in self.scope_of(&select.from) {
                                let columns = known.columns?;
                                self.spend(1 + columns.len())?;
                                all.extend(columns);
                            }
                        }
                        _ => return None,
                    }
                }
                Some(all)
            }
            _ => None,
        }
    }
}

/// What a function in FROM is.
fn of_function(function: &str, alias: Option<&TableAlias>) -> Known {
    let name = alias.map_or_else(|| function.to_owned(), |alias| folded(&alias.name));
    let columns = value_column(function, &name);
    Known::under(name, columns, alias)
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator as J;
    match operator {
        J::Join(own)
        | J::Inner(own)
        | J::Left(own)
        | J::LeftOuter(own)
        | J::Right(own)
        | J::RightOuter(own)
        | J::FullOuter(own) => Some(own),
        _ => None,
    }
}

fn columns_of_relation(relation: &Relation) -> Option<Vec<String>> {
    Some(match &relation.kind {
        Kind::Table(table) => {
            let columns = table.schema.columns();
            columns.map(|column| column.name.to_string()).collect()
        }
        Kind::View(view) => view.columns.iter().map(ToString::to_string).collect(),
        Kind::System(definition) => {
            let columns = definition.columns.iter();
            columns.map(|column| column.name.to_owned()).collect()
        }
        _ => return None,
    })
}
