//! What each message does.
//!
//! Paper: PostgreSQL 15's protocol, "Message Flow".
//! Differences: a message above the limit is skipped and answered with 54000, where PostgreSQL ends the connection: the
//! length is known, so the next message is, too.

use super::answers::{self, Answers};
use super::work::{Begun, Step};
use super::{Connection, End, Mode};
use crate::sessions::Tally;
use crate::wire::reader::PROTOCOL_VIOLATION;
use crate::wire::report::Report;
use crate::wire::request::{self, Bind, Parse, Request, Target, belongs_to_extended};
use smallvec::SmallVec;
use std::ops::Range;
use vellum_sql::{Format, Parameters, Progress, Severity, SqlError};

/// What went wrong with a request.
enum Failure {
    /// The session says so.
    Sql(SqlError),
    /// The protocol says so.
    Protocol(Report),
    /// The connection is over.
    End(End),
}

/// What is left to do when a request no longer borrows the buffer.
enum Next {
    /// Another message.
    Message,
    /// ReadyForQuery.
    Ready,
    /// What Sync asks for.
    Sync,
    /// What Flush asks for.
    Flush,
    /// The data of a COPY.
    Copy { extended: bool },
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

impl From<End> for Failure {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl Connection {
    /// Handles one message.
    pub(super) fn handle(&mut self, kind: u8, body: Range<usize>) -> Result<(), End> {
        (self.awaited, self.silent_since) = (false, None);
        match self.mode {
            Mode::Serving => {}
            Mode::Skipping if !matches!(kind, b'S' | b'X') => return Ok(()),
            Mode::Skipping => self.mode = Mode::Serving,
            Mode::Copying { .. } => return self.handle_copying(kind, body),
        }
        let done = match kind {
            // A COPY that failed while the client still sends.
            b'd' | b'c' | b'f' => Ok(()),
            b'p' => {
                let text = "invalid frontend message type 112";
                return Err(End::Told(Report::fatal(PROTOCOL_VIOLATION, text)));
            }
            _ => self.answer(kind, body),
        };
        done.or_else(|failure| self.fail(kind, failure))
    }

    /// Does what a request says.
    fn answer(&mut self, kind: u8, body: Range<usize>) -> Result<(), Failure> {
        match self.work(kind, body)? {
            Next::Message => {}
            Next::Ready => self.ready()?,
            Next::Sync => self.sync()?,
            Next::Flush => self.flush()?,
            Next::Copy { extended } => self.mode = Mode::Copying { extended },
        }
        Ok(())
    }

    fn work(&mut self, kind: u8, body: Range<usize>) -> Result<Next, Failure> {
        // Apart, so that a request may borrow from the buffer while the session answers.
        let Self {
            inbound,
            session,
            out,
            stream,
            place,
            limits,
            unfinished,
            ..
        } = self;
        let seat = place.seat();
        let tally = &seat.tally;
        let mut answers = Answers {
            out,
            stream,
            tally,
            lost: None,
        };
        let request = request::decode(kind, inbound.body(body)).map_err(Failure::Protocol)?;
        match request {
            Request::Query(text) => {
                let begun = Begun::now();
                let result = session.simple_query(text, &mut answers);
                let lost = answers.lost.take();
                match result {
                    Ok(Progress::CopyIn) => {
                        *unfinished = Some(begun.goes_on(limits, || text.into()))
                    }
                    _ => begun.ended(Step::Run, seat, limits, || text.into()),
                }
                return Ok(match checked(result, lost)? {
                    Progress::CopyIn => Next::Copy { extended: false },
                    Progress::Complete | Progress::Suspended => Next::Ready,
                });
            }
            Request::Parse(Parse { name, text, types }) => {
                let begun = Begun::now();
                let parsed = session.parse(name, text, &types);
                begun.ended(Step::Parse, seat, limits, || text.into());
                parsed?;
                answers.out.bare(b'1');
            }
            Request::Bind(bind) => {
                let Bind {
                    portal,
                    statement,
                    formats,
                    values,
                    result_formats,
                } = bind;
                let formats = known(&formats);
                let parameters = Parameters {
                    formats: &formats,
                    values: &values,
                };
                let begun = Begun::now();
                let bound = session.bind(portal, statement, parameters, &known(&result_formats));
                begun.ended(Step::Bind, seat, limits, || {
                    let text = session.prepared_text(statement);
                    text.unwrap_or_else(|| format!("statement \"{statement}\"").into())
                });
                bound?;
                answers.out.bare(b'2');
            }
            Request::Describe(Target::Statement, name) => {
                let description = session.describe_statement(name)?;
                answers::parameter_description(answers.out, &description.parameters);
                match description.fields {
                    Some(fields) => answers::row_description(answers.out, &fields, &[]),
                    None => answers.out.bare(b'n'),
                }
            }
            Request::Describe(Target::Portal, name) => match session.describe_portal(name)? {
                Some((fields, formats)) => {
                    answers::row_description(answers.out, &fields, &formats);
                }
                None => answers.out.bare(b'n'),
            },
            Request::Execute { portal, rows_max } => {
                let begun = Begun::now();
                let runs = session.has_portal(portal);
                let result = session.execute(portal, rows_max, &mut answers);
                let lost = answers.lost.take();
                // Where there is no portal, the statement before is not to blame.
                let text = || match runs {
                    true => session.statement_text(),
                    false => format!("portal \"{portal}\"").into(),
                };
                match result {
                    Ok(Progress::CopyIn) => *unfinished = Some(begun.goes_on(limits, text)),
                    _ => begun.ended(Step::Run, seat, limits, text),
                }
                match checked(result, lost)? {
                    Progress::Complete => {}
                    Progress::Suspended => answers.out.bare(b's'),
                    Progress::CopyIn => return Ok(Next::Copy { extended: true }),
                }
            }
            Request::Close(target, name) => {
                match target {
                    Target::Statement => session.close_statement(name),
                    Target::Portal => session.close_portal(name),
                }
                answers.out.bare(b'3');
            }
            Request::Sync => return Ok(Next::Sync),
            Request::Flush => return Ok(Next::Flush),
            Request::Terminate => return Err(Failure::End(End::Asked)),
            Request::FunctionCall => {
                let text = "function calls by oid are not supported";
                return Err(Failure::Protocol(Report::error("0A000", text)));
            }
            Request::Password(_)
            | Request::CopyData(_)
            | Request::CopyDone
            | Request::CopyFail(_) => unreachable!("`handle` kept these"),
        }
        Ok(Next::Message)
    }

    /// Sync: the end of a transaction that is no block, and an answer in any case.
    fn sync(&mut self) -> Result<(), End> {
        if let Err(error) = self.session.sync() {
            self.tell(&error)?;
        }
        self.ready()
    }

    /// Tells of a failure, and what follows from it (P3).
    fn fail(&mut self, kind: u8, failure: Failure) -> Result<(), End> {
        match failure {
            Failure::End(end) => return Err(end),
            Failure::Protocol(report) if report.is_fatal() => return Err(End::Told(report)),
            Failure::Protocol(report) => {
                Tally::count(&self.place.seat().tally.errors, 1);
                report.write(&mut self.out);
                // The session did not see the message: what it does in a transaction it must be told.
                self.session.fail_transaction();
            }
            Failure::Sql(error) => self.tell(&error)?,
        }
        self.urgent = true;
        self.after_error(belongs_to_extended(kind))
    }

    /// What the client is owed after an error.
    fn after_error(&mut self, extended: bool) -> Result<(), End> {
        if extended {
            self.mode = Mode::Skipping;
            return Ok(());
        }
        self.mode = Mode::Serving;
        self.ready()
    }

    /// Writes an error of the session; a fatal one is the end.
    fn tell(&mut self, error: &SqlError) -> Result<(), End> {
        let seat = self.place.seat();
        Tally::count(&seat.tally.errors, 1);
        self.limits.troubles.hear(seat.process, error);
        if error.fields().severity == Severity::Fatal {
            let mut report = Report::fatal("XX000", error.message().to_owned());
            report.sqlstate = error.sqlstate().to_string().into();
            report.detail = error.fields().detail.clone().map(Into::into);
            return Err(End::Told(report));
        }
        answers::error(&mut self.out, error);
        Ok(())
    }

    /// The statement whose COPY took data is over.
    fn finish(&mut self) {
        if let Some(unfinished) = self.unfinished.take() {
            unfinished.ended(self.place.seat(), &self.limits);
        }
    }

    /// Ends a COPY that somebody has cancelled, or whose time is over, while its client says nothing.
    pub(super) fn end_copy(&mut self) -> Result<(), End> {
        let Mode::Copying { extended } = self.mode else {
            return Ok(());
        };
        match self.session.end_copy() {
            Some(error) => {
                self.finish();
                self.tell(&error)?;
                self.after_error(extended)
            }
            None => Ok(()),
        }
    }

    /// Ends a pipeline whose statement takes too long: its client says nothing. What it has yet to say of it is skipped (P3).
    pub(super) fn end_pipeline(&mut self) -> Result<Option<()>, End> {
        let Some(error) = self.session.end_pipeline() else {
            return Ok(None);
        };
        self.tell(&error)?;
        self.urgent = true;
        self.after_error(true).map(Some)
    }

    /// Handles a message while the client sends data.
    fn handle_copying(&mut self, kind: u8, body: Range<usize>) -> Result<(), End> {
        let Mode::Copying { extended } = self.mode else {
            unreachable!("the caller looked");
        };
        let result = match kind {
            b'd' => match self.session.copy_data(self.inbound.body(body)) {
                Ok(()) => return Ok(()),
                Err(error) => Err(error),
            },
            b'c' => {
                let mut answers = Answers {
                    out: &mut self.out,
                    stream: &mut self.stream,
                    tally: &self.place.seat().tally,
                    lost: None,
                };
                let result = self.session.copy_done(&mut answers);
                if let Some(error) = answers.lost.take() {
                    return Err(End::Lost(error));
                }
                result
            }
            // Ignored, as the protocol says.
            b'H' | b'S' => return Ok(()),
            b'X' => return Err(End::Asked),
            b'f' => Err(match request::decode(kind, self.inbound.body(body)) {
                Ok(Request::CopyFail(message)) => self.session.copy_fail(message),
                _ => self.session.copy_fail("no message"),
            }),
            kind => {
                let error = self.session.copy_broken(kind);
                self.tell(&error)?;
                // Nobody knows what the client takes for its data, and what not.
                let text = "terminating connection because protocol synchronization was lost";
                return Err(End::Told(Report::fatal(PROTOCOL_VIOLATION, text)));
            }
        };
        if !matches!(result, Ok(Progress::CopyIn)) {
            self.finish();
        }
        match result {
            Ok(Progress::CopyIn) => Ok(()),
            Ok(Progress::Complete | Progress::Suspended) => {
                self.mode = Mode::Serving;
                if extended { Ok(()) } else { self.ready() }
            }
            Err(error) => {
                self.tell(&error)?;
                self.urgent = true;
                self.after_error(extended)
            }
        }
    }

    /// Answers a message above the limit, whose bytes are skipped.
    pub(super) fn refuse_long(&mut self, kind: u8, bytes: usize) -> Result<(), End> {
        let extended = match self.mode {
            Mode::Skipping => return Ok(()),
            Mode::Serving if matches!(kind, b'd' | b'f') => return Ok(()),
            Mode::Serving => belongs_to_extended(kind),
            Mode::Copying { extended } => {
                let _ = self.session.copy_fail("a message is too long");
                self.finish();
                extended
            }
        };
        let most = self.limits.message_bytes_max;
        let text = format!("message of {bytes} bytes exceeds the limit of {most} bytes");
        (self.awaited, self.silent_since) = (false, None);
        Tally::count(&self.place.seat().tally.errors, 1);
        Report::error("54000", text)
            .hint("The setting message_mib_max of the server is the limit.")
            .write(&mut self.out);
        self.session.fail_transaction();
        self.urgent = true;
        self.after_error(extended)
    }
}

/// A result, unless the client was lost meanwhile: then its error is not worth telling.
fn checked<T>(result: Result<T, SqlError>, lost: Option<std::io::Error>) -> Result<T, Failure> {
    match lost {
        Some(error) => Err(Failure::End(End::Lost(error))),
        None => result.map_err(Failure::Sql),
    }
}

/// Formats that were checked when they were read.
fn known(codes: &[i16]) -> SmallVec<[Format; 8]> {
    codes
        .iter()
        .map(|code| Format::from_code(*code).unwrap_or_default())
        .collect()
}
