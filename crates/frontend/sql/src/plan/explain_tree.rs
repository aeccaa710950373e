//! What EXPLAIN tells of a program in forms that are read by programs: a tree of steps, with PostgreSQL's names of them and of what is told.
//!
//! There are no costs. The steps of a query that no program runs are DataFusion's, under their own names.

use super::explain::path_of;
use super::explain_form::Told;
use super::{Access, Body, Join, Program, ProgramKind, Select, Source, SourceKind, Subquery};
use crate::catalog::Catalog;
use crate::rows::Shape;

/// Names and values, in order.
type Group = Vec<(String, Told)>;

/// How much is told.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'c> {
    pub catalog: &'c Catalog,
    /// The rows that are expected.
    pub costs: bool,
    /// The schemas of tables.
    pub verbose: bool,
}

/// A step.
struct Step {
    name: String,
    /// What stands before what it has in common with others, and behind.
    kind: Group,
    own: Group,
    /// Steps that it reads, each with the part that it plays.
    reads: Vec<(&'static str, Step)>,
}

fn text(name: &str, text: &str) -> (String, Told) {
    (name.to_owned(), Told::Text(text.to_owned()))
}

fn plain(name: &str, value: impl ToString) -> (String, Told) {
    (name.to_owned(), Told::Plain(value.to_string()))
}

impl Step {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Vec::new(),
            own: Vec::new(),
            reads: Vec::new(),
        }
    }

    fn of(name: &str, reads: Self) -> Self {
        let mut step = Self::new(name);
        step.reads.push(("Outer", reads));
        step
    }

    fn is(mut self, name: &str, value: &str) -> Self {
        self.kind.push(text(name, value));
        self
    }

    fn has(mut self, name: &str, value: &str) -> Self {
        self.own.push(text(name, value));
        self
    }

    fn told(self, part: Option<&str>, more: Group) -> Group {
        let mut group = vec![text("Node Type", &self.name)];
        group.extend(self.kind);
        group.extend(part.map(|part| text("Parent Relationship", part)));
        group.push(plain("Parallel Aware", false));
        group.push(plain("Async Capable", false));
        group.extend(self.own);
        group.extend(more);
        if !self.reads.is_empty() {
            let reads = self.reads.into_iter();
            let reads = reads.map(|(part, step)| step.told(Some(part), Vec::new()));
            let plans = Told::Groups("Plan", reads.collect());
            group.push(("Plans".to_owned(), plans));
        }
        group
    }
}

/// The steps of a program, and which path it takes; `lines`: the steps of what no program runs, and `done`: what came of it all, told of the first step.
pub(crate) fn explained(
    program: &Program,
    wanted: Wanted<'_>,
    lines: &[String],
    done: Group,
) -> Group {
    let general = path_of(program);
    let mut found = of_lines(lines);
    let mut step = match &program.kind {
        ProgramKind::Select(select) => {
            let own = general.and_then(|_| found.pop());
            own.unwrap_or_else(|| query(select, wanted))
        }
        changes => {
            let step = changed(changes, wanted);
            match general.and_then(|_| found.pop()) {
                None => step,
                Some(own) => Step {
                    reads: vec![("Outer", own)],
                    ..step
                },
            }
        }
    };
    step.reads
        .extend(found.into_iter().map(|other| ("InitPlan", other)));
    for writing in &program.with {
        let name = format!("CTE {}", writing.number);
        let own = match &writing.kind {
            ProgramKind::Select(select) => query(select, wanted),
            changes => changed(changes, wanted),
        };
        step.reads
            .push(("InitPlan", own.has("Subplan Name", &name)));
    }
    subplans(&program.subqueries, wanted, &mut step);
    let mut told = vec![("Plan".to_owned(), Told::Group(step.told(None, done)))];
    told.push(text(
        "Path",
        if general.is_some() { "general" } else { "fast" },
    ));
    told.extend(general.map(|reason| text("Path Reason", reason.text())));
    told
}

/// A change, and what finds its rows.
fn changed(kind: &ProgramKind, wanted: Wanted<'_>) -> Step {
    let (operation, shape, reads) = match kind {
        ProgramKind::Select(select) => return query(select, wanted),
        ProgramKind::Insert(insert) => {
            let reads = match &insert.source {
                super::InsertSource::Select(select) => query(select, wanted),
                super::InsertSource::Rows(rows) if rows.len() > 1 => {
                    Step::new("Values Scan").has("Alias", "*VALUES*")
                }
                super::InsertSource::Rows(_) => Step::new("Result"),
            };
            ("Insert", &insert.shape, reads)
        }
        ProgramKind::Update(update) => {
            let reads = match &update.joined {
                Some(joined) => query(&joined.select, wanted),
                None => scan(&update.shape, &update.access, wanted),
            };
            ("Update", &update.shape, reads)
        }
        ProgramKind::Delete(delete) => {
            let reads = match &delete.joined {
                Some(joined) => query(&joined.select, wanted),
                None => scan(&delete.shape, &delete.access, wanted),
            };
            ("Delete", &delete.shape, reads)
        }
        ProgramKind::Merge(merge) => {
            let reads = query(&merge.joined.select, wanted);
            ("Merge", &merge.shape, reads)
        }
    };
    let mut step = Step::of("ModifyTable", reads).is("Operation", operation);
    named(shape, wanted, &mut step.own);
    step
}

fn query(select: &Select, wanted: Wanted<'_>) -> Step {
    let mut step = match &select.body {
        Body::Values(rows) if rows.len() == 1 => Step::new("Result"),
        Body::Values(_) => Step::new("Values Scan").has("Alias", "*VALUES*"),
        Body::Set {
            operator,
            all,
            left,
            right,
        } => {
            let union = *operator == sqlparser::ast::SetOperator::Union;
            let mut step = Step::new(if union { "Append" } else { "SetOp" });
            if !union {
                let mut word = operator.to_string().to_lowercase();
                word[..1].make_ascii_uppercase();
                let all = if *all { " All" } else { "" };
                step = step.is("Command", &format!("{word}{all}"));
            }
            step.reads.push(("Member", query(left, wanted)));
            step.reads.push(("Member", query(right, wanted)));
            match union && !*all {
                true => Step::of("Aggregate", step).is("Strategy", "Hashed"),
                false => step,
            }
        }
        Body::From {
            sources,
            grouping,
            windows,
            ..
        } => {
            let mut step = joined(sources, wanted);
            if let Some(grouping) = grouping {
                let plain = grouping.keys.is_empty();
                let strategy = if plain { "Plain" } else { "Hashed" };
                step = Step::of("Aggregate", step).is("Strategy", strategy);
            }
            if !windows.is_empty() {
                step = Step::of("WindowAgg", step);
            }
            step
        }
    };
    if select.distinct || !select.distinct_on.is_empty() {
        step = Step::of("Unique", step);
    }
    if !select.order.is_empty() && !select.ordered {
        step = Step::of("Sort", step);
    }
    if !select.locks.is_empty() {
        step = Step::of("LockRows", step);
    }
    if select.limit.is_some() || select.offset.is_some() {
        step = Step::of("Limit", step);
    }
    subplans(&select.subqueries, wanted, &mut step);
    step
}

/// Queries in expressions: run before, or for each row.
fn subplans(subqueries: &[Subquery], wanted: Wanted<'_>, step: &mut Step) {
    for subquery in subqueries {
        let part = match subquery.select.correlated {
            true => "SubPlan",
            false => "InitPlan",
        };
        step.reads.push((part, query(&subquery.select, wanted)));
    }
}

/// The tables of a FROM, each joined to those before.
fn joined(sources: &[Source], wanted: Wanted<'_>) -> Step {
    let mut before: Option<Step> = None;
    for source in sources {
        let own = read(&source.kind, wanted);
        before = Some(match before {
            None => own,
            Some(before) => {
                let join = match source.join {
                    Join::Inner => "Inner",
                    Join::Left => "Left",
                    Join::Right => "Right",
                    Join::Full => "Full",
                };
                let mut step = Step::of("Nested Loop", before);
                step.own.push(text("Join Type", join));
                step.reads.push(("Inner", own));
                step
            }
        });
    }
    before.unwrap_or_else(|| Step::new("Result"))
}

fn read(kind: &SourceKind, wanted: Wanted<'_>) -> Step {
    match kind {
        SourceKind::Nothing => Step::new("Result"),
        SourceKind::Series { .. } | SourceKind::Function { .. } => Step::new("Function Scan"),
        SourceKind::Work { .. } => Step::new("WorkTable Scan"),
        SourceKind::Recursive(recursive) => {
            let mut step = Step::of("Recursive Union", query(&recursive.base, wanted));
            step.reads.push(("Inner", query(&recursive.step, wanted)));
            step
        }
        SourceKind::Lateral(inner) | SourceKind::Query(inner) => {
            let mut step = Step::new("Subquery Scan");
            step.reads.push(("Subquery", query(inner, wanted)));
            step
        }
        SourceKind::System(definition) => Step::new("Seq Scan")
            .has("Relation Name", definition.name)
            .has("Alias", definition.name),
        SourceKind::Table { shape, access } => scan(shape, access, wanted),
    }
}

fn scan(shape: &Shape, access: &Access, wanted: Wanted<'_>) -> Step {
    let table = shape.table();
    let mut step = match access.index {
        None => Step::new("Seq Scan"),
        Some(number) => Step::new("Index Scan")
            .has(
                "Scan Direction",
                if access.reverse {
                    "Backward"
                } else {
                    "Forward"
                },
            )
            .has("Index Name", &table.indexes[number].name),
    };
    named(shape, wanted, &mut step.own);
    let rows = match access.index {
        Some(_) if access.is_point(table) => Some(1),
        Some(_) => None,
        None => {
            let known = shape.relation.runtime.statistics.get();
            known.map(|known| known.rows)
        }
    };
    if let Some(rows) = rows.filter(|_| wanted.costs) {
        step.own.push(plain("Plan Rows", rows));
    }
    step
}

/// What a table is called.
fn named(shape: &Shape, wanted: Wanted<'_>, own: &mut Group) {
    let name = &shape.relation.name;
    own.push(text("Relation Name", name));
    if wanted.verbose {
        let schema = wanted.catalog.namespace_name(shape.relation.namespace);
        own.push(text("Schema", schema));
    }
    own.push(text("Alias", name));
}

/// Steps that are told as lines, those below others further in; what is told behind a step in brackets, is told of it.
fn of_lines(lines: &[String]) -> Vec<Step> {
    let mut roots: Vec<Step> = Vec::new();
    // The steps that the next line may be below, with how far in they stand.
    let mut open: Vec<(usize, Step)> = Vec::new();
    let close = |open: &mut Vec<(usize, Step)>, roots: &mut Vec<Step>, depth: usize| {
        while open.last().is_some_and(|(own, _)| *own >= depth) {
            let Some((_, step)) = open.pop() else {
                return;
            };
            match open.last_mut() {
                None => roots.push(step),
                Some((_, above)) => {
                    let part = if above.reads.is_empty() {
                        "Outer"
                    } else {
                        "Inner"
                    };
                    above.reads.push((part, step));
                }
            }
        }
    };
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        close(&mut open, &mut roots, depth);
        open.push((depth, of_line(line.trim())));
    }
    close(&mut open, &mut roots, 0);
    roots
}

/// What a step did, if its line says that: what stands before it, the rows, the milliseconds. A literal in the line may look like it.
pub(crate) fn counts_of(line: &str) -> Option<(&str, &str, &str)> {
    let (before, did) = line.rsplit_once(" (actual rows=")?;
    let (rows, spent) = did.strip_suffix(" ms)")?.split_once(" time=")?;
    (is_number(rows) && is_number(spent)).then_some((before, rows, spent))
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn of_line(line: &str) -> Step {
    let mut rest = line;
    let mut own = Vec::new();
    if let Some((before, rows, spent)) = counts_of(rest) {
        own.push(plain("Actual Total Time", spent));
        own.push(plain("Actual Rows", rows));
        own.push(plain("Actual Loops", 1));
        rest = before;
    }
    if let Some((before, rows)) = rest.rsplit_once(" (rows=")
        && let Some(rows) = rows.strip_suffix(')')
        && is_number(rows)
    {
        own.insert(0, plain("Plan Rows", rows));
        rest = before;
    }
    let (name, details) = rest.split_once(':').unwrap_or((rest, ""));
    let mut step = Step::new(name);
    if !details.trim().is_empty() {
        step.own.push(text("Details", details.trim()));
    }
    step.own.extend(own);
    step
}

#[cfg(test)]
mod tests {
    use super::of_lines;
    use crate::plan::Form;

    #[test]
    fn what_a_literal_says_is_no_count() {
        let lines = [
            "Filter: a = 'x (rows=9",
            "Filter: a = ' (rows=b)",
            "Filter: a = ' (actual rows=1 time=x ms)",
            "Filter: a = ' (rows=1)' (rows=7)",
        ];
        let told = lines.map(|line| super::of_line(line).told(None, Vec::new()));
        let json = told.map(|told| Form::Json.written(&told));
        for (line, json) in lines.iter().zip(&json[..3]) {
            let details = line.strip_prefix("Filter: ").unwrap_or_default();
            assert!(
                json.contains(&format!("\"Details\": \"{details}\"")),
                "{json}"
            );
            assert!(!json.contains("Rows"), "{json}");
        }
        assert!(json[3].contains("\"Details\": \"a = ' (rows=1)'\""));
        assert!(json[3].contains("\"Plan Rows\": 7"));
    }

    #[test]
    fn lines_are_steps_below_each_other() {
        let lines = [
            "SortExec: expr=[a] (rows=3) (actual rows=2 time=0.125 ms)",
            "  JoinExec",
            "    Scan: t (rows=9)",
            "    Scan: u",
        ];
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let mut found = of_lines(&lines);
        assert_eq!(found.len(), 1);
        let told = found.pop().map(|step| step.told(None, Vec::new()));
        let json = Form::Json.written(&told.unwrap_or_default());
        let expected = r#"[
  {
    "Node Type": "SortExec",
    "Parallel Aware": false,
    "Async Capable": false,
    "Details": "expr=[a]",
    "Plan Rows": 3,
    "Actual Total Time": 0.125,
    "Actual Rows": 2,
    "Actual Loops": 1,
    "Plans": [
      {
        "Node Type": "JoinExec",
        "Parent Relationship": "Outer",
        "Parallel Aware": false,
        "Async Capable": false,
        "Plans": [
          {
            "Node Type": "Scan",
            "Parent Relationship": "Outer",
            "Parallel Aware": false,
            "Async Capable": false,
            "Details": "t",
            "Plan Rows": 9
          },
          {
            "Node Type": "Scan",
            "Parent Relationship": "Inner",
            "Parallel Aware": false,
            "Async Capable": false,
            "Details": "u"
          }
        ]
      }
    ]
  }
]"#;
        assert_eq!(json, expected);
    }
}
