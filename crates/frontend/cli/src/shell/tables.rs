//! Results with a border between their columns, as psql prints them: a line a row, or a line a column.
//!
//! A value of several lines has as many here, and a mark (`+`) where it goes on.
//!
//! Not here: what a line shows (cells.rs).

use super::cells::{self, Line};
use super::print::{Row, is_number};
use std::io::{self, Write};
use vellum_sql::Field;

/// Rows, once all of them are there.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'r> {
    pub fields: &'r [Field],
    pub rows: &'r [Row],
    /// What stands for NULL.
    pub null: &'r str,
}

/// Writes a character so many times. (The widths of formats end at 65,535.)
fn fill(out: &mut dyn Write, char: u8, count: usize) -> io::Result<()> {
    let piece = [char; 64];
    let mut left = count;
    while left > 0 {
        let now = left.min(piece.len());
        out.write_all(&piece[..now])?;
        left -= now;
    }
    Ok(())
}

fn cell(text: &str) -> Vec<Line<'_>> {
    cells::lines(text).collect()
}

impl<'r> Rows<'r> {
    fn shown(self, value: &'r Option<String>) -> &'r str {
        value.as_deref().unwrap_or(self.null)
    }

    fn count(self, out: &mut dyn Write) -> io::Result<()> {
        let plural = if self.rows.len() == 1 { "" } else { "s" };
        writeln!(out, "({} row{plural})\n", self.rows.len())
    }

    /// A line a row, under a header, with a count of them.
    pub fn table(self, out: &mut dyn Write) -> io::Result<()> {
        let columns = self.fields.iter().enumerate();
        let widths: Vec<usize> = columns
            .map(|(column, field)| {
                let values = self.rows.iter().map(|row| self.shown(&row[column]));
                let all = values.chain([&*field.name]).map(cells::width);
                all.max().unwrap_or(0)
            })
            .collect();
        self.header(&widths, out)?;
        // A result without columns has rows, and nothing to show of them.
        if !widths.is_empty() {
            for row in self.rows {
                self.row(row, &widths, out)?;
            }
        }
        self.count(out)
    }

    fn header(self, widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let names: Vec<Vec<Line<'_>>> = self.fields.iter().map(|field| cell(&field.name)).collect();
        let height = names.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, (name, width)) in names.iter().zip(widths).enumerate() {
                out.write_all(if column == 0 { b" " } else { b"| " })?;
                match name.get(line) {
                    Some(own) => {
                        let room = width - own.width;
                        fill(out, b' ', room / 2)?;
                        out.write_all(own.text.as_bytes())?;
                        fill(out, b' ', room - room / 2)?;
                    }
                    None => fill(out, b' ', *width)?,
                }
                let goes_on = line + 1 < name.len();
                out.write_all(if goes_on { b"+" } else { b" " })?;
            }
            writeln!(out)?;
        }
        for (column, width) in widths.iter().enumerate() {
            out.write_all(if column == 0 { b"" } else { b"+" })?;
            fill(out, b'-', width + 2)?;
        }
        if widths.is_empty() {
            out.write_all(b"--")?;
        }
        writeln!(out)
    }

    fn row(self, row: &Row, widths: &[usize], out: &mut dyn Write) -> io::Result<()> {
        let cells: Vec<Vec<Line<'_>>> = row.iter().map(|value| cell(self.shown(value))).collect();
        let last = widths.len() - 1;
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for line in 0..height {
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                out.write_all(if column == 0 { b" " } else { b"| " })?;
                let goes_on = line + 1 < cell.len();
                // Nothing stands behind what ends a line.
                let is_padded = column < last || goes_on;
                match cell.get(line) {
                    Some(own) if is_number(self.fields[column].type_oid) => {
                        fill(out, b' ', width - own.width)?;
                        out.write_all(own.text.as_bytes())?;
                    }
                    Some(own) => {
                        out.write_all(own.text.as_bytes())?;
                        fill(out, b' ', if is_padded { width - own.width } else { 0 })?;
                    }
                    None => fill(out, b' ', if is_padded { *width } else { 0 })?,
                }
                if is_padded {
                    out.write_all(if goes_on { b"+" } else { b" " })?;
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// A line a column, in a block a row.
    pub fn expanded(self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.is_empty() || self.fields.is_empty() {
            return self.count(out);
        }
        let names = self.fields.iter().map(|field| cells::width(&field.name));
        let name_width = names.max().unwrap_or(0);
        let values = self.rows.iter().flatten();
        let values = values.map(|value| cells::width(self.shown(value)));
        let value_width = values.max().unwrap_or(0);
        for (number, row) in (1..).zip(self.rows) {
            record_line(number, name_width, value_width, out)?;
            for (field, value) in self.fields.iter().zip(row) {
                let (name, value) = (cell(&field.name), cell(self.shown(value)));
                for line in 0..name.len().max(value.len()) {
                    expanded_part(name.get(line), line + 1 < name.len(), name_width, true, out)?;
                    out.write_all(b"|")?;
                    if let Some(own) = value.get(line) {
                        out.write_all(b" ")?;
                        let goes_on = line + 1 < value.len();
                        expanded_part(Some(own), goes_on, value_width, goes_on, out)?;
                    }
                    writeln!(out)?;
                }
            }
        }
        writeln!(out)
    }
}

/// A line of a name or of a value, up to where its mark stands, if that has a place.
fn expanded_part(
    line: Option<&Line<'_>>,
    goes_on: bool,
    width: usize,
    has_mark: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (text, own) = line.map_or(("", 0), |line| (&*line.text, line.width));
    out.write_all(text.as_bytes())?;
    if !has_mark {
        return Ok(());
    }
    fill(out, b' ', width - own)?;
    out.write_all(if goes_on { b"+" } else { b" " })
}

/// The line above a row: as long as what is below it, with a `+` above the border between names and values, where its own text leaves these their places.
fn record_line(
    number: u64,
    name_width: usize,
    value_width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let text = format!("-[ RECORD {number} ]");
    out.write_all(text.as_bytes())?;
    let border = name_width + 1;
    let end = border + 2 + value_width;
    let before = text.len().min(end);
    if before <= border {
        fill(out, b'-', border - before)?;
        out.write_all(b"+")?;
        fill(out, b'-', end - border - 1)?;
    } else {
        fill(out, b'-', end - before)?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;
    use vellum_base::replay;

    fn field(name: &str, type_oid: u32) -> Field {
        Field {
            name: name.to_owned(),
            table_oid: 0,
            column_number: 0,
            type_oid,
            type_length: -1,
            type_modifier: -1,
        }
    }

    /// A result with a row: names, whether it is a number, values.
    fn printed(columns: &[(&str, bool, &str)]) -> [String; 2] {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, number, _)| field(name, if *number { 23 } else { 25 }))
            .collect();
        let rows = [columns
            .iter()
            .map(|(_, _, value)| Some((*value).to_owned()))
            .collect()];
        both(&fields, &rows)
    }

    fn both(fields: &[Field], rows: &[Row]) -> [String; 2] {
        let rows = Rows {
            fields,
            rows,
            null: "",
        };
        let (mut table, mut expanded) = (Vec::new(), Vec::new());
        rows.table(&mut table).unwrap();
        rows.expanded(&mut expanded).unwrap();
        [table, expanded].map(|text| String::from_utf8(text).unwrap())
    }

    /// What psql 15 prints.
    #[test]
    fn names_and_values_of_several_lines_are_as_psql_prints_them() {
        for (columns, table, expanded) in [
            (
                &[
                    ("x\nyz", false, "a\nb"),
                    ("n\nmm", true, "1"),
                    ("last", false, "tail\nq"),
                ][..],
                " x +| n +| last \n yz | mm |      \n----+----+------\n a +|  1 | tail+\n b  |    | q\n(1 row)\n\n",
                "-[ RECORD 1 ]\nx   +| a   +\nyz   | b\nn   +| 1\nmm   |\nlast | tail+\n     | q\n\n",
            ),
            (
                &[("t", false, "a\nb"), ("n", true, "7")],
                " t | n \n---+---\n a+| 7\n b | \n(1 row)\n\n",
                "-[ RECORD 1 ]\nt | a+\n  | b\nn | 7\n\n",
            ),
            (
                &[("n\nmm", true, "1"), ("longer name\nx\nq", true, "22222")],
                " n +| longer name+\n mm |      x     +\n    |      q      \n----+-------------\n  1 |       22222\n(1 row)\n\n",
                "-[ RECORD 1 ]------\nn          +| 1\nmm          |\nlonger name+| 22222\nx          +|\nq           |\n\n",
            ),
            (
                &[
                    ("w", false, "e\u{301}日本\t|"),
                    ("c", false, "\r\u{1}\u{85}"),
                    ("n", true, "12"),
                    ("ta\tb", false, "tail\n\tz"),
                ],
                "     w     |      c       | n  | ta      b \n-----------+--------------+----+-----------\n e\u{301}日本   | | \\r\\x01\\u0085 | 12 | tail     +\n           |              |    |         z\n(1 row)\n\n",
                "-[ RECORD 1 ]-----------\nw         | e\u{301}日本   |\nc         | \\r\\x01\\u0085\nn         | 12\nta      b | tail        +\n          |         z\n\n",
            ),
            (
                &[("日\n本語", false, "x")],
                "  日 +\n 本語 \n------\n x\n(1 row)\n\n",
                "-[ RECORD 1 ]\n日  +| x\n本語 |\n\n",
            ),
            (&[], "--\n(1 row)\n\n", "(1 row)\n\n"),
        ] {
            let [found_table, found_expanded] = printed(columns);
            assert_eq!(found_table, table);
            assert_eq!(found_expanded, expanded);
        }
    }

    #[test]
    fn the_line_of_a_record_makes_room_for_its_text() {
        for (name, line) in [
            ("abcdefghi", ""),
            ("abcdefghij", "-"),
            ("abcdefghijk", "--"),
            ("abcdefghijkl", "+--"),
            ("abcdefghijklm", "-+--"),
        ] {
            let [_, expanded] = printed(&[(name, true, "1")]);
            let expected = format!("-[ RECORD 1 ]{line}\n{name} | 1\n\n");
            assert_eq!(expanded, expected);
        }
    }

    #[test]
    fn regress_names_and_values_may_have_any_width() {
        let (name, value) = ("n".repeat(70_000), "v".repeat(140_000));
        let [table, expanded] = printed(&[(&name, false, "1"), ("b", false, &value)]);
        for text in [table, expanded] {
            assert!(text.contains(&name) && text.contains(&value));
        }
    }

    fn text(random: &mut Random) -> String {
        const CHARS: [&str; 20] = [
            "a",
            "B",
            "7",
            " ",
            "\n",
            "\n",
            "\t",
            "\r",
            "|",
            "+",
            "-",
            "\u{0}",
            "\u{1b}",
            "\u{7f}",
            "\u{85}",
            "é",
            "日",
            "\u{301}",
            "\u{200b}",
            "\u{1f600}",
        ];
        let length = match random.below(8) {
            0 => 0,
            1 => random.below(300),
            _ => random.below(9),
        };
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(CHARS[random.below(CHARS.len() as u64) as usize]);
        }
        text
    }

    /// The character that begins at a column of a terminal, if one does.
    fn at_column(line: &str, column: usize) -> Option<char> {
        let mut at = 0;
        for char in line.chars() {
            let width = cells::width(&char.to_string());
            if at == column && width > 0 {
                return Some(char);
            }
            at += width;
        }
        None
    }

    /// Borders stand below each other, whatever the values are; no line says more than its value.
    #[test]
    fn prop_borders_stand_below_each_other() {
        let seed = replay::seed();
        for round in 0..replay::rounds(2000) {
            let context = format!("VELLUM_SEED={seed} round {round}");
            let mut random = Random::new(seed.wrapping_add(round));
            let width = random.below(4) as usize;
            let fields: Vec<Field> = (0..width)
                .map(|_| field(&text(&mut random), [23, 25][random.below(2) as usize]))
                .collect();
            let rows: Vec<Row> = (0..random.below(4))
                .map(|_| {
                    let value = |_| (random.below(5) > 0).then(|| text(&mut random));
                    (0..width).map(value).collect()
                })
                .collect();
            let [table, expanded] = both(&fields, &rows);
            let lines: Vec<&str> = table.split('\n').collect();
            let height = |texts: Vec<&str>| {
                let heights = texts.iter().map(|text| text.split('\n').count());
                heights.max().unwrap_or(0)
            };
            let head = height(fields.iter().map(|field| &*field.name).collect());
            let values = |row: &Row| {
                row.iter()
                    .map(|value| value.as_deref().unwrap_or("").to_owned())
                    .collect::<Vec<_>>()
            };
            let heights = rows.iter().map(|row| {
                let own = values(row);
                height(own.iter().map(String::as_str).collect())
            });
            let body: usize = heights.sum();
            // The rule, the count, an empty line, what is behind the last end.
            assert_eq!(lines.len(), head + body + 4, "{context}\n{table}");
            let rule = lines[head];
            for (column, char) in rule.char_indices() {
                for line in lines[..head]
                    .iter()
                    .chain(&lines[head + 1..head + 1 + body])
                {
                    let found = at_column(line, column);
                    assert!(char != '+' || found == Some('|'), "{context}\n{table}");
                }
            }
            if rows.is_empty() || fields.is_empty() {
                continue;
            }
            let border = fields
                .iter()
                .map(|field| cells::width(&field.name))
                .max()
                .unwrap_or(0)
                + 1;
            for line in expanded.trim_end_matches('\n').split('\n') {
                if !line.starts_with("-[ RECORD ") {
                    assert_eq!(at_column(line, border), Some('|'), "{context}\n{expanded}");
                }
            }
        }
    }
}
