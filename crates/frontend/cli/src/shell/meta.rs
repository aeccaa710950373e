//! Commands of the shell itself: they begin with a backslash and end with their line.
//!
//! What describes objects asks `pg_catalog`, as psql does, in queries of its own.

use super::print::Form;
use super::terminal::Terminal;
use super::{Go, Shell};
use crate::exit::Failure;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const HELP: &str = "\
\\?                    this list
\\q                    ends
\\c, \\conninfo         says who is connected to what
\\copy TABLE|(QUERY) FROM|TO 'FILE' [(OPTIONS)]
                      COPY with a file of this machine
\\d                    tables, views and sequences
\\d NAME               columns, indexes, constraints of a table
\\dt, \\dv, \\di, \\ds    tables, views, indexes, sequences
\\dn, \\du, \\l          schemas, roles, databases
\\format FORM          table, expanded, csv or json
\\i FILE               runs the statements of a file
\\null TEXT            what stands for NULL in tables
\\s [FILE]             what was typed, also in earlier sessions; or writes it to a file
\\timing               tells how long statements take, or stops telling
\\x                    expanded, or table again
";

/// Pieces of COPY data that are read at once.
const PIECE_BYTES: usize = 64 << 10;

impl Shell<'_> {
    /// Runs one.
    pub(super) fn backslash(&mut self, line: &str) -> Result<Go, Failure> {
        let (command, rest) = match line.split_once(char::is_whitespace) {
            Some((command, rest)) => (command, rest.trim()),
            None => (line, ""),
        };
        match command {
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
            "\\i" if !rest.is_empty() => return self.file(Path::new(&unquoted(rest))),
            "\\copy" => return self.copy(rest),
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
        let name = unquoted(file);
        let mut file = OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(0o600);
        match file
            .open(&name)
            .and_then(|mut file| file.write_all(entries.as_bytes()))
        {
            Ok(()) => writeln!(self.out, "Wrote history to file \"{name}\".")?,
            Err(error) => self.complain(&format!("{name}: {error}")),
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

    /// `\copy`: COPY, with a file of this machine.
    fn copy(&mut self, rest: &str) -> Result<Go, Failure> {
        let Some(copy) = Copy::parse(rest) else {
            self.complain("\\copy TABLE|(QUERY) FROM|TO 'FILE' [(OPTIONS)]");
            return Ok(if self.stop { Go::Quit } else { Go::On });
        };
        let done = if copy.into {
            match File::open(&copy.file) {
                Ok(file) => {
                    let mut file = BufReader::with_capacity(PIECE_BYTES, file);
                    self.run(&copy.statement, &mut |session, listener| {
                        loop {
                            let piece = match file.fill_buf() {
                                Ok(piece) => piece,
                                Err(error) => return Err(session.copy_fail(&error.to_string())),
                            };
                            if piece.is_empty() {
                                return session.copy_done(listener);
                            }
                            let length = piece.len();
                            session.copy_data(piece)?;
                            file.consume(length);
                        }
                    })?
                }
                Err(error) => self.no_file(&copy.file, &error),
            }
        } else {
            match File::create(&copy.file) {
                Ok(file) => self.write_file(&copy.statement, file)?,
                Err(error) => self.no_file(&copy.file, &error),
            }
        };
        Ok(if done || !self.stop { Go::On } else { Go::Quit })
    }

    /// Runs a COPY whose data go into a file.
    fn write_file(&mut self, statement: &str, file: File) -> Result<bool, Failure> {
        let mut file = std::io::BufWriter::new(file);
        let done = {
            let mut listener = super::Listener::new(self.form, &self.null, true, &mut file);
            let done = self.session.simple_query(statement, &mut listener);
            listener.end()?;
            done
        };
        file.flush()?;
        match done {
            Ok(_) => Ok(true),
            Err(error) => {
                self.tell(&error, statement);
                Ok(false)
            }
        }
    }

    fn no_file(&mut self, name: &str, error: &std::io::Error) -> bool {
        self.complain(&format!("{name}: {error}"));
        false
    }
}

/// The file that `\s` names, empty if none; `None` if a command is another one.
pub(super) fn history_command(command: &str) -> Option<&str> {
    let rest = command.strip_prefix("\\s")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}

/// What `\copy` is to do.
#[derive(PartialEq, Eq, Debug)]
struct Copy {
    /// With the client in the place of the file.
    statement: String,
    file: String,
    /// From the file into the table.
    into: bool,
}

impl Copy {
    fn parse(text: &str) -> Option<Self> {
        let (what, into, rest) = direction(text)?;
        let rest = rest.trim_start();
        let (file, options) = match rest.strip_prefix('\'') {
            Some(quoted) => {
                // Doubled quotes stand for one.
                let mut from = 0;
                let end = loop {
                    let at = from + quoted[from..].find('\'')?;
                    if quoted[at + 1..].starts_with('\'') {
                        from = at + 2;
                    } else {
                        break at;
                    }
                };
                (quoted[..end].replace("''", "'"), &quoted[end + 1..])
            }
            None => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if file.is_empty() || what.trim().is_empty() {
            return None;
        }
        let client = if into { "from stdin" } else { "to stdout" };
        Some(Self {
            statement: format!("copy {} {client} {}", what.trim(), options.trim())
                .trim_end()
                .to_owned(),
            file,
            into,
        })
    }
}

/// What stands before FROM or TO (outside of quotes and parentheses), whether it is FROM, and what stands behind it.
fn direction(text: &str) -> Option<(&str, bool, &str)> {
    let (mut depth, mut quote) = (0usize, None);
    let mut word_at = None;
    for (at, char) in text.char_indices().chain([(text.len(), ' ')]) {
        if let Some(open) = quote {
            if char == open {
                quote = None;
            }
            continue;
        }
        if char.is_alphanumeric() || char == '_' {
            word_at.get_or_insert(at);
            continue;
        }
        if let Some(from) = word_at.take()
            && depth == 0
        {
            let into = text[from..at].eq_ignore_ascii_case("from");
            if into || text[from..at].eq_ignore_ascii_case("to") {
                return Some((&text[..from], into, &text[at..]));
            }
        }
        match char {
            '\'' | '"' => quote = Some(char),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// An argument without the quotes around it.
fn unquoted(text: &str) -> String {
    let inner = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    inner.map_or_else(|| text.to_owned(), |text| text.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_finds_its_file_and_asks_for_the_client_instead() {
        for (text, statement, file, into) in [
            (
                "t from 'a file.csv' (format csv)",
                "copy t from stdin (format csv)",
                "a file.csv",
                true,
            ),
            (
                "t (a, b) FROM x.txt",
                "copy t (a, b) from stdin",
                "x.txt",
                true,
            ),
            (
                "(select 'to', \"from\" from t) to 'it''s' with csv",
                "copy (select 'to', \"from\" from t) to stdout with csv",
                "it's",
                false,
            ),
            ("\"from\" to out", "copy \"from\" to stdout", "out", false),
        ] {
            let copy = Copy::parse(text).unwrap();
            assert_eq!(
                (&*copy.statement, &*copy.file, copy.into),
                (statement, file, into)
            );
        }
        for text in ["", "t", "t from", "from x", "t from 'open"] {
            assert_eq!(Copy::parse(text), None, "{text}");
        }
    }
}
