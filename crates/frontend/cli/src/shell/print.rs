//! Results as text: a table as psql prints it, its columns one below the other, CSV, JSON.
//!
//! Not here: how the first two look (tables.rs).

use super::tables::Rows;
use clap::ValueEnum;
use std::io::{self, Write};
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

/// Oids of the types that are numbers: `smallint` to `bigint`, `oid`, `xid`, `cid`, `xid8`, `real`, `double precision`, `numeric`.
const NUMBERS: [u32; 10] = [21, 23, 20, 26, 28, 29, 5069, 700, 701, 1700];
const BOOLEAN: u32 = 16;
const JSON: [u32; 2] = [114, 3802];

/// Whether values of a type stand at the right of their column.
pub fn is_number(type_oid: u32) -> bool {
    NUMBERS.contains(&type_oid)
}

/// Prints one result, whose rows come one after the other. Tables, expanded or not, are kept until the last row has come: they are as wide as the
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
            Form::Table | Form::Expanded => {
                self.kept.push(row);
                Ok(())
            }
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
        let rows = Rows {
            fields: &self.fields,
            rows: &self.kept,
            null: &self.null,
        };
        match self.form {
            Form::Csv => Ok(()),
            Form::Json => out.write_all(b"\n]\n"),
            Form::Table => rows.table(out),
            Form::Expanded => rows.expanded(out),
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
        // A line `\.` alone would end the data of a COPY.
        if value.is_empty() || value == "\\." || value.contains(['"', ',', '\n', '\r']) {
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

    /// Copied from psql 15.
    #[test]
    fn expanded_is_as_psql_prints_it() {
        let expected = "-[ RECORD 1 ]----\nn      | 1\na text | one, \"é\"+\n       | two\nok     | t\nj      | [1]\n\
                        -[ RECORD 2 ]----\nn      | -20\na text | \nok     | \nj      | \n\
                        -[ RECORD 3 ]----\nn      | \na text | \nok     | f\nj      | \n\n";
        assert_eq!(printed(Form::Expanded), expected);
    }

    #[test]
    fn a_result_without_rows_has_its_form() {
        for (form, expected) in [
            (Form::Table, "--\n(0 rows)\n\n"),
            (Form::Expanded, "(0 rows)\n\n"),
            (Form::Csv, "\n"),
            (Form::Json, "[\n]\n"),
        ] {
            let mut out = Vec::new();
            Printer::new(form, "", &[]).end(&mut out).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn csv_quotes_what_would_end_the_data_of_a_copy() {
        let mut out = Vec::new();
        csv_line([Some("\\."), Some("a\\.")].into_iter(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "\"\\.\",a\\.\n");
    }
}
