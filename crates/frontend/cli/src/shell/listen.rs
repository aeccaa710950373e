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
    /// Where data of a COPY go, if not among the results.
    file: Option<&'o mut dyn Write>,
    /// Whether data of a COPY are among the results, which have no tag behind them then.
    has_data: bool,
    is_binary: bool,
    printer: Option<Printer>,
    /// Why the output took no more.
    broken: Option<io::Error>,
    /// Why the file did.
    file_broken: Option<io::Error>,
}

impl<'o> Listener<'o> {
    /// One that has heard nothing.
    pub fn new(form: Form, null: &'o str, quiet: bool, out: &'o mut dyn Write) -> Self {
        Self {
            form,
            null,
            quiet,
            out,
            file: None,
            has_data: false,
            is_binary: false,
            printer: None,
            broken: None,
            file_broken: None,
        }
    }

    /// Data of a COPY go into a file.
    pub fn write_data_to(&mut self, file: &'o mut dyn Write) {
        self.file = Some(file);
    }

    /// Whether the data that a COPY asks for are binary.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Why the file of a COPY took no more, once.
    pub fn file_error(&mut self) -> Option<io::Error> {
        self.file_broken.take()
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
        let has_data = std::mem::take(&mut self.has_data);
        let done = match self.printer.take() {
            Some(printer) => printer.end(self.out),
            None if has_data => Ok(()),
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
            super::tell_more(notice);
            return self.told(done);
        }
        Ok(())
    }

    fn copy_in(&mut self, shape: &CopyShape) -> Told {
        self.is_binary = shape.format == Format::Binary;
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        self.has_data = self.file.is_none();
        Ok(())
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        let Some(file) = &mut self.file else {
            let done = self.out.write_all(bytes);
            return self.told(done);
        };
        file.write_all(bytes).map_err(|error| {
            self.file_broken = Some(error);
            Gone
        })
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}
