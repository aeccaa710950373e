//! Commands of the shell itself, which begin with a backslash.
//!
//! What describes objects asks `pg_catalog`, as psql does, in queries of its own.
//!
//! Not here: where a command ends (split.rs); `\copy` (copy.rs).

use super::print::Form;
use super::terminal::Terminal;
use super::{Go, Shell};
use crate::exit::Failure;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::os::unix::fs::OpenOptionsExt;

const HELP: &str = "\
\\?                    this list
\\q                    ends
\\c, \\conninfo         says who is connected to what
\\copy TABLE|(QUERY) FROM|TO 'FILE'|stdin|stdout|pstdin|pstdout [(OPTIONS)]
                      COPY with a file of this machine, or what stands behind it
\\d                    tables, views and sequences
\\d NAME               columns, indexes, constraints of a table
\\dt, \\dv, \\di, \\ds    tables, views, indexes, sequences
\\dn, \\du, \\l          schemas, roles, databases
\\echo TEXT            prints it
\\format FORM          table, expanded, csv or json
\\g, \\gx               run what was typed, as a semicolon does; \\gx expanded
\\i FILE               runs the statements of a file
\\null TEXT            what stands for NULL in tables
\\r                    forgets what was begun to be typed
\\s [FILE]             what was typed, also in earlier sessions; or writes it to a file
\\timing               tells how long statements take, or stops telling
\\x                    expanded, or table again
";

impl Shell<'_> {
    /// Runs one.
    /// `data`: what stands behind it, for a `\copy … from stdin`.
    pub(super) fn backslash(&mut self, line: &str, data: &mut dyn BufRead) -> Result<Go, Failure> {
        let (command, rest) = match line.split_once(char::is_whitespace) {
            Some((command, rest)) => (command, rest.trim()),
            None => (line, ""),
        };
        match command.trim_end_matches(';') {
            "\\q" => return Ok(Go::Quit),
            "\\?" | "\\h" => self.out.write_all(HELP.as_bytes())?,
            "\\c" | "\\conninfo" => {
                self.query("select current_database() as database, current_user as role, version()")?;
            }
            "\\timing" => {
                self.timing = !self.timing;
                let word = if self.timing { "on" } else { "off" };
                writeln!(self.out, "Timing is {word}.")?;
            }
            "\\x" => {
                self.form = match self.form {
                    Form::Expanded => Form::Table,
                    _ => Form::Expanded,
                }
            }
            "\\format" => match <Form as clap::ValueEnum>::from_str(rest, true) {
                Ok(form) => self.form = form,
                Err(_) => self.complain("\\format table, expanded, csv or json"),
            },
            "\\null" => self.null = unquoted(rest),
            "\\i" if !rest.is_empty() => return self.file(&self.path(&unquoted(rest))),
            "\\copy" => return self.copy(rest, data),
            "\\echo" => writeln!(self.out, "{}", unquoted(rest))?,
            "\\g" | "\\gx" if rest.is_empty() => self.complain("there is no statement to run"),
            "\\g" | "\\gx" => self.complain("a result is not written to a file: use \\copy"),
            "\\d" if rest.is_empty() => self.relations(&["r", "v", "S"])?,
            "\\d" => self.describe(rest)?,
            "\\dt" => self.relations(&["r"])?,
            "\\dv" => self.relations(&["v"])?,
            "\\di" => self.relations(&["i"])?,
            "\\ds" => self.relations(&["S"])?,
            "\\dn" => self.query(
                "select nspname as \"Name\", pg_catalog.pg_get_userbyid(nspowner) as \"Owner\" from pg_catalog.pg_namespace
                 where nspname !~ '^pg_' and nspname <> 'information_schema' order by 1",
            )?,
            "\\du" => self.query(
                "select rolname as \"Role\", rolsuper as \"Superuser\", rolcreaterole as \"Create role\", rolcreatedb as \"Create database\",
                 rolcanlogin as \"Login\" from pg_catalog.pg_roles order by 1",
            )?,
            "\\l" => self.query(
                "select datname as \"Name\", pg_catalog.pg_get_userbyid(datdba) as \"Owner\",
                 pg_catalog.pg_encoding_to_char(encoding) as \"Encoding\" from pg_catalog.pg_database order by 1",
            )?,
            "\\s" => self.complain("\\s: there is a history at a terminal only"),
            other => self.complain(&format!("there is no command {other}; \\? shows all")),
        }
        Ok(if self.failed && self.stop {
            Go::Quit
        } else {
            Go::On
        })
    }

    /// `\s`: shows what was typed, or writes it to a file.
    pub(super) fn history(&mut self, file: &str, terminal: &Terminal) -> Result<(), Failure> {
        let entries: String = terminal.entries().flat_map(|entry| [entry, "\n"]).collect();
        if file.is_empty() {
            self.out.write_all(entries.as_bytes())?;
            return Ok(());
        }
        let name = self.path(&unquoted(file));
        let mut file = OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(0o600);
        match file
            .open(&name)
            .and_then(|mut file| file.write_all(entries.as_bytes()))
        {
            Ok(()) => writeln!(self.out, "Wrote history to file \"{}\".", name.display())?,
            Err(error) => self.complain(&format!("{}: {error}", name.display())),
        }
        Ok(())
    }

    /// Runs a query of the shell's own.
    fn query(&mut self, sql: &str) -> Result<(), Failure> {
        self.statement(sql, None).map(|_| ())
    }

    /// Relations of users that the search path finds, of these kinds.
    fn relations(&mut self, kinds: &[&str]) -> Result<(), Failure> {
        let kinds: Vec<String> = kinds.iter().map(|kind| format!("'{kind}'")).collect();
        let table = if kinds == ["'i'"] {
            ", (select t.relname from pg_catalog.pg_index i join pg_catalog.pg_class t on t.oid = i.indrelid
             where i.indexrelid = c.oid) as \"Table\""
        } else {
            ""
        };
        self.query(&format!(
            "select n.nspname as \"Schema\", c.relname as \"Name\",
             case c.relkind when 'r' then 'table' when 'v' then 'view' when 'i' then 'index' when 'S' then 'sequence' end as \"Type\",
             pg_catalog.pg_get_userbyid(c.relowner) as \"Owner\"{table}
             from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
             where c.relkind in ({}) and n.nspname <> 'pg_catalog' and n.nspname <> 'information_schema'
             and pg_catalog.pg_table_is_visible(c.oid) order by 1, 2",
            kinds.join(", ")
        ))
    }

    /// Columns, indexes and constraints of one.
    fn describe(&mut self, name: &str) -> Result<(), Failure> {
        let name = name.trim_end_matches(';').replace('\'', "''");
        let of = format!("'{name}'::pg_catalog.regclass");
        let found = self.run(
            &format!(
                "select a.attname as \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) as \"Type\",
                 case when a.attnotnull then 'not null' else '' end as \"Nullable\",
                 case a.attidentity when 'a' then 'generated always as identity' when 'd' then 'generated by default as identity'
                 else coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') end as \"Default\"
                 from pg_catalog.pg_attribute a left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
                 where a.attrelid = {of} and a.attnum > 0 and not a.attisdropped order by a.attnum"
            ),
            &mut |session, _| Err(session.copy_fail("no COPY")),
        )?;
        // A name that stands for nothing is told once.
        if !found {
            return Ok(());
        }
        self.query(&format!(
            "select c.relname as \"Index\", pg_catalog.pg_get_indexdef(i.indexrelid) as \"Definition\"
             from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid where i.indrelid = {of} order by 1"
        ))?;
        self.query(&format!(
            "select conname as \"Constraint\", conrelid::pg_catalog.regclass as \"Table\", pg_catalog.pg_get_constraintdef(oid) as \"Definition\"
             from pg_catalog.pg_constraint where conrelid = {of} or confrelid = {of} order by 2, 1"
        ))
    }
}

/// The file that `\s` names, empty if none; `None` if a command is another one.
pub(super) fn history_command(command: &str) -> Option<&str> {
    let rest = command.strip_prefix("\\s")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// An argument without the quotes around it, in which a backslash escapes and a doubled quote is one.
pub(super) fn unquoted(text: &str) -> String {
    let inner = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let Some(inner) = inner else {
        return text.to_owned();
    };
    let mut chars = inner.chars();
    let mut plain = String::new();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '\'' => chars.next().unwrap_or(char),
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(char) => char,
                None => char,
            },
            char => char,
        });
    }
    plain
}
