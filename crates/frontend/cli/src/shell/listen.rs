//! What a session says, on its way to the output.

use super::print::{Form, Printer, Row};
use std::io::{self, Write};
use vellum_sql::{CommandTag, CopyShape, Field, Fields, Format, Gone, OutputRow, Sink, Told};

/// Prints results, tags and notices as they come.
pub struct Listener<'o> {
    form: Form,
    null: &'o str,
    quiet: bool,
    out: &'o mut dyn Write,
    printer: Option<Printer>,
    /// Why the output took no more.
    broken: Option<io::Error>,
}

impl<'o> Listener<'o> {
    /// One that has heard nothing.
    pub fn new(form: Form, null: &'o str, quiet: bool, out: &'o mut dyn Write) -> Self {
        Self {
            form,
            null,
            quiet,
            out,
            printer: None,
            broken: None,
        }
    }

    /// The statements are done, or one has failed: it has no result then.
    ///
    /// # Errors
    /// What the output reported.
    pub fn end(mut self) -> io::Result<()> {
        if let Some(printer) = self.printer.take() {
            printer.fail(self.out)?;
        }
        self.broken.map_or(Ok(()), Err)
    }

    fn told(&mut self, done: io::Result<()>) -> Told {
        done.map_err(|error| {
            self.broken = Some(error);
            Gone
        })
    }
}

impl Sink for Listener<'_> {
    fn row_description(&mut self, fields: &[Field], _: &[Format]) -> Told {
        self.printer = Some(Printer::new(self.form, self.null, fields));
        Ok(())
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let row: Row = row.iter().map(|value| value.map(text)).collect();
        let done = match &mut self.printer {
            Some(printer) => printer.row(row, self.out),
            None => Ok(()),
        };
        self.told(done)
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        let done = match self.printer.take() {
            Some(printer) => printer.end(self.out),
            // What is read by a program is results alone.
            None if self.quiet || matches!(self.form, Form::Csv | Form::Json) => Ok(()),
            None => writeln!(self.out, "{tag}"),
        };
        self.told(done)
    }

    fn empty_query(&mut self) -> Told {
        Ok(())
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        if !self.quiet {
            let done = self.out.flush();
            crate::complain!("{}:  {}", notice.severity.as_str(), notice.message);
            return self.told(done);
        }
        Ok(())
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        Ok(())
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        let done = self.out.write_all(bytes);
        self.told(done)
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}
