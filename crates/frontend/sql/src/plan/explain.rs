//! EXPLAIN: which path a program takes.

use super::{Access, Body, Bounds, General, Join, Program, ProgramKind, Select, SourceKind};
use crate::rows::Shape;

/// The lines of EXPLAIN.
pub(crate) fn explain(program: &Program) -> Vec<String> {
    let mut lines = Vec::new();
    for writing in &program.with {
        lines.push(format!("CTE {}", writing.number));
        let mut own = Vec::new();
        kind(&writing.kind, &mut own);
        lines.extend(own.into_iter().map(|line| format!("  {line}")));
    }
    kind(&program.kind, &mut lines);
    lines.push(match path_of(program) {
        None => "Path: fast (compiled program)".to_owned(),
        Some(reason) => format!("Path: general (DataFusion), for {}", reason.text()),
    });
    lines
}

fn kind(kind: &ProgramKind, lines: &mut Vec<String>) {
    match kind {
        ProgramKind::Select(select) => query(select, 0, lines),
        ProgramKind::Insert(insert) => {
            lines.push(format!("Insert on {}", insert.shape.relation.name));
            if let super::InsertSource::Select(select) = &insert.source {
                query(select, 1, lines);
            }
        }
        ProgramKind::Update(update) => {
            lines.push(format!("Update on {}", update.shape.relation.name));
            lines.push(access(&update.shape, &update.access, 1));
        }
        ProgramKind::Delete(delete) => {
            lines.push(format!("Delete on {}", delete.shape.relation.name));
            lines.push(access(&delete.shape, &delete.access, 1));
        }
        ProgramKind::Merge(merge) => {
            lines.push(format!("Merge on {}", merge.shape.relation.name));
            query(&merge.joined.select, 1, lines);
        }
    }
}

impl Program {
    /// Whether it is a query that no program runs.
    pub fn is_general_query(&self) -> bool {
        matches!(self.kind, ProgramKind::Select(_)) && path_of(self).is_some()
    }
}

/// Why the rows of a statement are found by no program, if they are not.
pub(super) fn path_of(program: &Program) -> Option<General> {
    match &program.kind {
        ProgramKind::Select(select) => select.general,
        ProgramKind::Insert(insert) => match &insert.source {
            super::InsertSource::Select(select) => select.general,
            _ => None,
        },
        ProgramKind::Update(update) => update.joined.as_ref()?.select.general,
        ProgramKind::Delete(delete) => delete.joined.as_ref()?.select.general,
        ProgramKind::Merge(merge) => merge.joined.select.general,
    }
}

fn query(select: &Select, depth: usize, lines: &mut Vec<String>) {
    let mut depth = depth;
    let mut line = |text: &str| {
        lines.push(format!("{}{text}", indent(depth)));
        depth += 1;
    };
    if select.limit.is_some() || select.offset.is_some() {
        line("Limit");
    }
    if !select.locks.is_empty() {
        line("LockRows");
    }
    if !select.order.is_empty() && !select.ordered {
        line("Sort");
    }
    if select.distinct {
        line("Unique");
    }
    match &select.body {
        Body::Values(rows) => line(&format!("Values ({} rows)", rows.len())),
        Body::Set {
            operator,
            left,
            right,
            ..
        } => {
            line(&operator.to_string());
            query(left, depth, lines);
            query(right, depth, lines);
        }
        Body::From {
            sources, grouping, ..
        } => {
            if let Some(grouping) = grouping {
                line(if grouping.keys.is_empty() {
                    "Aggregate"
                } else {
                    "HashAggregate"
                });
            }
            for source in sources {
                let join = match source.join {
                    Join::Left => "Nested Loop Left Join: ",
                    Join::Right => "Right Join: ",
                    Join::Full => "Full Join: ",
                    Join::Inner => "",
                };
                match &source.kind {
                    SourceKind::Nothing => lines.push(format!("{}Result", indent(depth))),
                    SourceKind::Series { .. } | SourceKind::Function { .. } => {
                        lines.push(format!("{}{join}Function Scan", indent(depth)));
                    }
                    SourceKind::Work { .. } => {
                        lines.push(format!("{}{join}WorkTable Scan", indent(depth)));
                    }
                    SourceKind::Recursive(recursive) => {
                        lines.push(format!("{}{join}Recursive Union", indent(depth)));
                        query(&recursive.base, depth + 1, lines);
                        query(&recursive.step, depth + 1, lines);
                    }
                    SourceKind::Lateral(inner) => {
                        let path = own_path(select, inner);
                        lines.push(format!(
                            "{}{join}Lateral Subquery Scan{path}",
                            indent(depth)
                        ));
                        query(inner, depth + 1, lines);
                    }
                    SourceKind::Query(inner) => {
                        let path = own_path(select, inner);
                        lines.push(format!("{}{join}Subquery Scan{path}", indent(depth)));
                        query(inner, depth + 1, lines);
                    }
                    SourceKind::System(definition) => {
                        let name = definition.name;
                        lines.push(format!("{}{join}System Scan on {name}", indent(depth)));
                    }
                    SourceKind::Table {
                        shape,
                        access: path,
                    } => {
                        lines.push(access(shape, path, depth));
                    }
                }
                depth += 1;
            }
        }
    }
}

/// Why DataFusion runs a query of FROM where a program runs the one around.
fn own_path(around: &Select, inner: &Select) -> String {
    let own = inner.general.filter(|_| around.general.is_none());
    own.map_or_else(String::new, |reason| {
        format!(" (general, for {})", reason.text())
    })
}

fn access(shape: &Shape, access: &Access, depth: usize) -> String {
    let name = &shape.relation.name;
    let Some(number) = access.index else {
        return format!("{}Seq Scan on {name}", indent(depth));
    };
    let index = &shape.table().indexes[number];
    let kind = if access.is_point(shape.table()) {
        "Index Lookup"
    } else if access.bounds == Bounds::default() && access.equal.is_empty() {
        "Index Order Scan"
    } else {
        "Index Range Scan"
    };
    let back = if access.reverse { " Backward" } else { "" };
    format!(
        "{}{kind}{back} using {} on {name}",
        indent(depth),
        index.name
    )
}

fn indent(depth: usize) -> String {
    match depth {
        0 => String::new(),
        depth => format!("{}->  ", "  ".repeat(depth)),
    }
}
