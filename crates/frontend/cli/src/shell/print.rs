//! Results as text: a table as psql prints it, its columns one below the other, CSV, JSON.

use clap::ValueEnum;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use vellum_sql::Field;

/// In which form results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Form {
    /// A table with a header and a count of its rows
    #[default]
    Table,
    /// A line a column, a block a row
    Expanded,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// An array of an object a row
    Json,
}

/// A row: the text of each column, `None` for NULL.
pub type Row = Vec<Option<String>>;

/// Oids of the types that are numbers: `smallint` to `bigint`, `oid`, `xid`, `real`, `double precision`, `numeric`.
const NUMBERS: [u32; 8] = [21, 23, 20, 26, 28, 700, 701, 1700];
const BOOLEAN: u32 = 16;
const JSON: [u32; 2] = [114, 3802];

/// Prints one result, whose rows come one after the other. Tables are kept until the last row has come: their columns are as wide as the
/// widest value.
#[derive(Debug)]
pub struct Printer {
    form: Form,
    null: String,
    fields: Vec<Field>,
    kept: Vec<Row>,
    rows: u64,
}

impl Printer {
    /// One of a result with these columns. `null` is what stands for NULL in tables.
    pub fn new(form: Form, null: &str, fields: &[Field]) -> Self {
        Self {
            form,
            null: null.to_owned(),
            fields: fields.to_vec(),
            kept: Vec::new(),
            rows: 0,
        }
    }

    /// What stands in front of the first row.
    fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Csv => csv_line(self.fields.iter().map(|field| Some(&*field.name)), out),
            Form::Json => out.write_all(b"["),
            Form::Table | Form::Expanded => Ok(()),
        }
    }

    /// Takes the next row.
    pub fn row(&mut self, row: Row, out: &mut dyn Write) -> io::Result<()> {
        if self.rows == 0 {
            self.begin(out)?;
        }
        self.rows += 1;
        match self.form {
            Form::Csv => csv_line(row.iter().map(Option::as_deref), out),
            Form::Json => {
                let before = if self.rows == 1 { "\n" } else { ",\n" };
                out.write_all(before.as_bytes())?;
                self.json_row(&row, out)
            }
            Form::Table => {
                self.kept.push(row);
                Ok(())
            }
            Form::Expanded => self.expanded_row(&row, out),
        }
    }

    /// There is no result: its statement has failed. What was printed of it before is ended so that it can be read.
    pub fn fail(self, out: &mut dyn Write) -> io::Result<()> {
        match self.form {
            Form::Json if self.rows > 0 => out.write_all(b"\n]\n"),
            _ => Ok(()),
        }
    }

    /// There are no more.
    pub fn end(self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows == 0 {
            self.begin(out)?;
        }
        match self.form {
            Form::Csv => Ok(()),
            Form::Json => out.write_all(b"\n]\n"),
            Form::Table => self.table(out),
            Form::Expanded if self.rows == 0 => writeln!(out, "(0 rows)"),
            Form::Expanded => Ok(()),
        }
    }

    fn json_row(&self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{")?;
        for (number, (field, value)) in self.fields.iter().zip(row).enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(out, "{comma}{}: ", quoted(&field.name)?)?;
            let ty = field.type_oid;
            match value.as_deref() {
                None => out.write_all(b"null")?,
                Some("t") if ty == BOOLEAN => out.write_all(b"true")?,
                Some("f") if ty == BOOLEAN => out.write_all(b"false")?,
                // Not every number of SQL is one of JSON's: NaN, infinities.
                Some(text)
                    if NUMBERS.contains(&ty) && text.ends_with(|c: char| c.is_ascii_digit()) =>
                {
                    out.write_all(text.as_bytes())?;
                }
                Some(text) if JSON.contains(&ty) => out.write_all(text.as_bytes())?,
                Some(text) => out.write_all(quoted(text)?.as_bytes())?,
            }
        }
        out.write_all(b"}")
    }

    fn shown<'s>(&'s self, value: &'s Option<String>) -> &'s str {
        value.as_deref().unwrap_or(&self.null)
    }

    fn table(&self, out: &mut dyn Write) -> io::Result<()> {
        let widths: Vec<usize> = self
            .fields
            .iter()
            .enumerate()
            .map(|(column, field)| {
                let values = self.kept.iter().map(|row| self.shown(&row[column]));
                let all = values.chain([&*field.name]);
                all.flat_map(str::lines)
                    .map(UnicodeWidthStr::width)
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let last = self.fields.len().saturating_sub(1);
        for (column, (field, width)) in self.fields.iter().zip(&widths).enumerate() {
            let room = width - field.name.width();
            let (left, right) = (room / 2, room - room / 2);
            let bar = if column == 0 { "" } else { "|" };
            write!(out, "{bar} {:left$}{}{:right$} ", "", field.name, "")?;
        }
        writeln!(out)?;
        for (column, width) in widths.iter().enumerate() {
            let cross = if column == 0 { "" } else { "+" };
            write!(out, "{cross}{:-<1$}", "", width + 2)?;
        }
        writeln!(out)?;
        for row in &self.kept {
            let cells: Vec<Vec<&str>> = row
                .iter()
                .map(|value| self.shown(value).split('\n').collect())
                .collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                    let text = cell.get(line).copied().unwrap_or_default();
                    let room = width.saturating_sub(text.width());
                    // A value that goes on in the next line says so.
                    let mark = if line + 1 < cell.len() { "+" } else { " " };
                    let bar = if column == 0 { "" } else { "|" };
                    if NUMBERS.contains(&self.fields[column].type_oid) {
                        write!(out, "{bar} {:room$}{text}", "")?;
                    } else if column == last && mark == " " {
                        write!(out, "{bar} {text}")?;
                        continue;
                    } else {
                        write!(out, "{bar} {text}{:room$}", "")?;
                    }
                    if column < last || mark == "+" {
                        out.write_all(mark.as_bytes())?;
                    }
                }
                writeln!(out)?;
            }
        }
        let plural = if self.rows == 1 { "" } else { "s" };
        writeln!(out, "({} row{plural})\n", self.rows)
    }

    fn expanded_row(&self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let width = self.fields.iter().map(|field| field.name.width()).max();
        let width = width.unwrap_or(0);
        writeln!(out, "-[ RECORD {} ]{:-<2$}", self.rows, "", width)?;
        for (field, value) in self.fields.iter().zip(row) {
            let room = width - field.name.width();
            writeln!(out, "{}{:room$} | {}", field.name, "", self.shown(value))?;
        }
        Ok(())
    }
}

fn quoted(text: &str) -> io::Result<String> {
    Ok(serde_json::to_string(text)?)
}

/// A line of CSV; NULL is empty, an empty text is quoted.
fn csv_line<'v>(
    values: impl Iterator<Item = Option<&'v str>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (number, value) in values.enumerate() {
        if number > 0 {
            out.write_all(b",")?;
        }
        let Some(value) = value else { continue };
        if value.is_empty() || value.contains(['"', ',', '\n', '\r']) {
            write!(out, "\"{}\"", value.replace('"', "\"\""))?;
        } else {
            out.write_all(value.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(form: Form) -> String {
        let field = |name: &str, type_oid| Field {
            name: name.to_owned(),
            table_oid: 0,
            column_number: 0,
            type_oid,
            type_length: -1,
            type_modifier: -1,
        };
        let fields = [
            field("n", 23),
            field("a text", 25),
            field("ok", 16),
            field("j", 3802),
        ];
        let rows = [
            [Some("1"), Some("one, \"é\"\ntwo"), Some("t"), Some("[1]")],
            [Some("-20"), None, None, None],
            [None, Some(""), Some("f"), None],
        ];
        let mut out = Vec::new();
        let mut printer = Printer::new(form, "", &fields);
        for row in rows {
            let row = row.iter().map(|value| value.map(str::to_owned)).collect();
            printer.row(row, &mut out).unwrap();
        }
        printer.end(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Copied from psql 15.
    const TABLE: &str = "  n  |  a text  | ok |  j  \n-----+----------+----+-----\n   1 | one, \"é\"+| t  | [1]\n     | two      |    | \n -20 |          |    | \n     |          | f  | \n(3 rows)\n\n";

    #[test]
    fn a_table_is_as_psql_prints_it() {
        assert_eq!(printed(Form::Table), TABLE);
    }

    #[test]
    fn csv_quotes_what_has_to_be_quoted_and_tells_null_from_empty() {
        let expected = "n,a text,ok,j\n1,\"one, \"\"é\"\"\ntwo\",t,[1]\n-20,,,\n,\"\",f,\n";
        assert_eq!(printed(Form::Csv), expected);
    }

    #[test]
    fn json_has_values_of_its_own_kinds() {
        let found: serde_json::Value = serde_json::from_str(&printed(Form::Json)).unwrap();
        let expected = serde_json::json!([
            {"n": 1, "a text": "one, \"é\"\ntwo", "ok": true, "j": [1]},
            {"n": -20, "a text": null, "ok": null, "j": null},
            {"n": null, "a text": "", "ok": false, "j": null},
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn expanded_has_a_line_a_column() {
        let text = printed(Form::Expanded);
        assert!(
            text.starts_with("-[ RECORD 1 ]------\nn      | 1\na text | one"),
            "{text}"
        );
    }
}
