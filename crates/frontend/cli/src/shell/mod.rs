//! `vellum sql`: statements to a database in this process, from a terminal, a file, or the command line.
//!
//! | question | where |
//! | --- | --- |
//! | where a statement ends | split.rs |
//! | results as text | print.rs, their tables: tables.rs, cells.rs |
//! | backslash commands | meta.rs, copy.rs |
//! | what a session says | listen.rs |
//! | lines that somebody types | terminal.rs |
//! | lines of standard input | standard.rs |
//! | what was typed earlier | history.rs |
//! | Ctrl-C | interrupt.rs |

mod cells;
mod copy;
mod history;
mod interrupt;
mod listen;
mod meta;
mod print;
mod split;
mod standard;
mod tables;
mod terminal;

use crate::args::version_policy;
use crate::exit::Failure;
use crate::relations::unreadable;
use clap::Args;
use interrupt::Interrupts;
use listen::Listener;
use meta::history_command;
use print::Form;
use split::{Said, Splitter};
use standard::Standard;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terminal::{Terminal, Typed};
use vellum::{Config, Database};
use vellum_base::clock::monotonic_nanos;
use vellum_server::{VersionPolicy, limit_versions};
use vellum_sql::{
    DATABASE, FIRST_ROLE, Fields, Progress, Session, SessionOptions, SqlDatabase, SqlError,
    TransactionStatus,
};

/// Options of `sql`.
#[derive(Debug, Args)]
pub struct Options {
    /// Directory of the database; made if it is not there
    #[arg(long, value_name = "DIR", env = "VELLUM_DATA")]
    data: PathBuf,
    /// Run this, then end; several are run in order, with files
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,
    /// Run the statements of a file (`-`: standard input), then end
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// How results are printed
    #[arg(long, value_enum, default_value_t)]
    format: Form,
    /// Print results only: no tags of commands, no notices
    #[arg(short, long)]
    quiet: bool,
    /// End at the first error (the default for -c and -f is to go on behind it)
    #[arg(long)]
    stop: bool,
    /// Role whose rights the statements have
    #[arg(long, value_name = "ROLE", default_value = FIRST_ROLE)]
    user: String,
    /// Memory for pages, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pool_mib: u64,
    /// Most of old versions, on disk and in memory together, in MiB; 0: no limit. It has an effect with `refuse` and `too-old` only
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    version_mib_max: u64,
    /// What happens where they take more: `spill` (nothing, they go on growing), `refuse` (statements that change rows fail, 53400), or
    /// `too-old` (the oldest transaction fails, 72000)
    // No variables: those are the server's, and may name a policy whose limit stands in its file.
    #[arg(long, value_name = "POLICY", default_value = "spill", value_parser = version_policy)]
    version_policy: VersionPolicy,
    /// File of what was typed at a terminal; empty: none [default: vellum/history in $XDG_STATE_HOME, or in ~/.local/state]
    #[arg(long, value_name = "FILE", env = "VELLUM_HISTORY")]
    history: Option<OsString>,
    // The system's variables, which are looked at here as all are.
    #[arg(long, hide = true, env = "XDG_STATE_HOME")]
    state_home: Option<OsString>,
    #[arg(long, hide = true, env = "HOME")]
    home: Option<OsString>,
}

/// A shell at work.
struct Shell<'o> {
    session: Session,
    form: Form,
    /// What stands for NULL in tables.
    null: String,
    quiet: bool,
    timing: bool,
    stop: bool,
    /// Whether a statement or a command has failed.
    failed: bool,
    /// Whether something was not run when nobody read the results any more.
    unrun: bool,
    /// Files that are read inside each other.
    depth: usize,
    /// At a terminal, where they do not end the process.
    interrupts: Option<Arc<Interrupts>>,
    /// What `~` is in names of files.
    home: Option<OsString>,
    out: &'o mut dyn Write,
}

/// Whether there is more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Go {
    On,
    Quit,
}

/// Files inside each other, at most.
const DEPTH_MAX: usize = 20;

/// Opens the database and runs what it is told; false if something failed.
pub fn run(options: &Options, out: &mut dyn Write) -> Result<bool, Failure> {
    let config = Config::default().pool_bytes(options.pool_mib << 20);
    let config = limit_versions(config, options.version_mib_max, options.version_policy)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let engine = Database::open(&options.data, config)
        .map_err(|error| Failure::database(&options.data, error))?;
    let failed = |error: SqlError| Failure::failed(error.to_string());
    let database = SqlDatabase::open(engine);
    let database = database.map_err(|error| unreadable(&options.data, &error))?;
    for key in database.keys_left_out() {
        crate::complain!(
            "WARNING:  the foreign key {key} is left out: what it refers to is not there"
        );
    }
    let spill = options.data.join("spill");
    // What a process left behind that was killed. Of what cannot be removed the server tells.
    let _ = vellum_server::empty_directory(&spill);
    database.set_spill_directory(spill);
    database.set_password_maker(vellum_server::keep_password);
    admit(&database, &options.user)?;
    let session = database
        .session(SessionOptions {
            user: options.user.clone(),
            database: DATABASE.to_owned(),
            ..SessionOptions::default()
        })
        .map_err(failed)?;
    let mut shell = Shell {
        session,
        form: options.format,
        null: String::new(),
        quiet: options.quiet,
        timing: false,
        stop: options.stop,
        failed: false,
        unrun: false,
        depth: 0,
        interrupts: None,
        home: options.home.clone(),
        out,
    };
    match shell.all(options) {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            if shell.unrun || shell.session.status() != TransactionStatus::Idle {
                let text = "nobody reads the results any more: the rest was not run, and a transaction that was begun is rolled back";
                return Err(Failure::failed(text.to_owned()));
            }
        }
        done => done?,
    }
    let well = !shell.failed;
    drop(shell);
    let engine = database.engine().clone();
    drop(database);
    engine.close()?;
    Ok(well)
}

/// That a role may log in, as a server would ask it.
///
/// # Errors
/// If it may not, or there is none.
fn admit(database: &SqlDatabase, user: &str) -> Result<(), Failure> {
    match database.role(user) {
        None => Err(Failure::failed(format!("role \"{user}\" does not exist"))),
        Some(role) if !role.login => Err(Failure::failed(format!(
            "role \"{user}\" is not permitted to log in"
        ))),
        Some(_) => Ok(()),
    }
}

impl Shell<'_> {
    fn all(&mut self, options: &Options) -> Result<(), Failure> {
        if options.commands.is_empty() && options.files.is_empty() {
            // Results that go somewhere else are not mixed with prompts.
            if io::stdin().is_terminal() && io::stdout().is_terminal() {
                self.stop = false;
                return self.terminal(options);
            }
            let done = self.input(&mut Standard::default(), None);
            // Whether more would come is not waited for.
            self.unrun |= done.is_err();
            return done.map(drop);
        }
        let mut files = options.files.iter();
        for (number, command) in options.commands.iter().enumerate() {
            // Data that do not stand behind it are standard input, as for psql.
            let (mut standard, mut rest) = (Standard::default(), command.as_bytes());
            let done = self.input(&mut rest, Some(&mut standard));
            let is_last = number + 1 == options.commands.len() && files.len() == 0;
            self.unrun |= done.is_err() && !(is_last && rest.trim_ascii().is_empty());
            if done? == Go::Quit {
                return Ok(());
            }
        }
        while let Some(file) = files.next() {
            let done = self.file(file);
            self.unrun |= done.is_err() && files.len() > 0;
            if done? == Go::Quit {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Lines that somebody types.
    fn terminal(&mut self, options: &Options) -> Result<(), Failure> {
        let interrupts = Interrupts::of(self.session.cancel_handle())?;
        let interrupts = self.interrupts.insert(Arc::new(interrupts)).clone();
        let mut terminal = Terminal::open(options, interrupts)?;
        writeln!(
            self.out,
            "vellum {} at {}; \\? shows the commands, \\q ends",
            env!("CARGO_PKG_VERSION"),
            options.data.display()
        )?;
        let mut splitter = Splitter::default();
        loop {
            let status = match self.session.status() {
                TransactionStatus::Idle => "",
                TransactionStatus::InBlock => "*",
                TransactionStatus::Failed => "!",
            };
            self.out.flush()?;
            let line = match terminal.next(&format!("{DATABASE}{}{status}# ", splitter.mark()))? {
                Typed::Line(line) => line,
                Typed::Nothing => {
                    splitter = Splitter::default();
                    terminal.forget();
                    continue;
                }
                Typed::End => return Ok(()),
            };
            let said = splitter.line(&line);
            // Before it runs: what ends the process is what is looked for there.
            terminal.keep(&line, splitter.is_empty());
            for one in &said {
                let file = match one {
                    Said::Command(command) => history_command(command),
                    _ => None,
                };
                if let Some(file) = file {
                    self.history(file, &terminal)?;
                } else if self.said(one, &mut terminal)? == Go::Quit {
                    return Ok(());
                }
                if self.is_interrupted() {
                    break;
                }
            }
        }
    }

    /// A file that a command names.
    fn path(&self, name: &str) -> PathBuf {
        match (name.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => PathBuf::from(name),
        }
    }

    /// The lines of a file; `-` is standard input.
    fn file(&mut self, path: &Path) -> Result<Go, Failure> {
        if self.depth >= DEPTH_MAX {
            self.complain("files are read inside each other too deeply");
            return Ok(Go::On);
        }
        if path == Path::new("-") {
            let done = self.input(&mut Standard::default(), None);
            self.unrun |= done.is_err();
            return done;
        }
        match std::fs::File::open(path) {
            Ok(file) => {
                self.depth += 1;
                let mut lines = io::BufReader::new(file);
                let done = self.input(&mut lines, None);
                self.unrun |= done.is_err() && !lines.fill_buf().is_ok_and(<[u8]>::is_empty);
                self.depth -= 1;
                done
            }
            Err(error) => {
                self.complain(&format!("{}: {error}", path.display()));
                Ok(if self.stop { Go::Quit } else { Go::On })
            }
        }
    }

    /// Lines that nobody types. `behind`: where data are that a COPY asks for behind the last of them.
    fn input(
        &mut self,
        input: &mut dyn BufRead,
        mut behind: Option<&mut dyn BufRead>,
    ) -> Result<Go, Failure> {
        let mut splitter = Splitter::default();
        let mut line = String::new();
        loop {
            line.clear();
            match input.read_line(&mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    self.complain(&format!("the input cannot be read: {error}"));
                    return Ok(Go::Quit);
                }
            }
            let said = splitter.line(line.trim_end_matches(['\n', '\r']));
            for (number, one) in said.iter().enumerate() {
                let is_last = behind.is_some() && input.fill_buf().is_ok_and(<[u8]>::is_empty);
                let done = match &mut behind {
                    Some(behind) if is_last => self.said(one, *behind),
                    _ => self.said(one, input),
                };
                self.unrun |= done.is_err() && (number + 1 < said.len() || !splitter.is_empty());
                let go = done?;
                if go == Go::Quit || self.is_interrupted() {
                    return Ok(go);
                }
            }
        }
        match splitter.rest() {
            Some(statement) => self.statement(&statement, behind),
            None => Ok(Go::On),
        }
    }

    /// Does what was said. `data`: what stands behind it, for a COPY … FROM STDIN.
    fn said(&mut self, said: &Said, data: &mut dyn BufRead) -> Result<Go, Failure> {
        match said {
            Said::Command(command) => self.backslash(command, data),
            Said::Statement(statement) => self.statement(statement, Some(data)),
            Said::Expanded(statement) => {
                let form = std::mem::replace(&mut self.form, Form::Expanded);
                let go = self.statement(statement, Some(data));
                self.form = form;
                go
            }
            Said::Cleared => {
                writeln!(self.out, "Query buffer reset (cleared).")?;
                Ok(Go::On)
            }
        }
    }

    /// Whether who sits at the terminal wants an end of what runs.
    fn is_interrupted(&self) -> bool {
        self.interrupts.as_ref().is_some_and(|all| all.come())
    }

    /// Runs a statement and prints what it says. `data`: where COPY … FROM STDIN finds its lines.
    fn statement(&mut self, text: &str, data: Option<&mut dyn BufRead>) -> Result<Go, Failure> {
        let since = monotonic_nanos();
        let mut data = data;
        let done = self.run(text, &mut |session, listener| match &mut data {
            Some(data) => copy::feed(session, listener, *data),
            None => {
                let text = "no data: use \\copy, or give the statement in a file";
                Err(session.copy_fail(text))
            }
        })?;
        if self.timing {
            writeln!(
                self.out,
                "Time: {:.3} ms",
                (monotonic_nanos() - since) as f64 / 1e6
            )?;
        }
        Ok(if done || !self.stop { Go::On } else { Go::Quit })
    }

    /// Runs statements; `feed` gives the data that a COPY asks for. False if something failed, which was told then.
    fn run(
        &mut self,
        text: &str,
        feed: &mut dyn FnMut(&mut Session, &mut Listener<'_>) -> vellum_sql::Result<Progress>,
    ) -> Result<bool, Failure> {
        self.run_into(text, feed, None)
    }

    /// The same; `file`: where the data of a COPY TO STDOUT go.
    fn run_into(
        &mut self,
        text: &str,
        feed: &mut dyn FnMut(&mut Session, &mut Listener<'_>) -> vellum_sql::Result<Progress>,
        file: Option<&mut dyn Write>,
    ) -> Result<bool, Failure> {
        let mut listener = Listener::new(self.form, &self.null, self.quiet, self.out);
        if let Some(file) = file {
            listener.write_data_to(file);
        }
        let mut done = self.session.simple_query(text, &mut listener);
        while matches!(done, Ok(Progress::CopyIn)) {
            done = feed(&mut self.session, &mut listener);
        }
        let unwritten = listener.file_error();
        listener.end()?;
        if let Some(error) = unwritten {
            self.complain(&format!("the data of COPY cannot be written: {error}"));
            return Ok(false);
        }
        if let Err(error) = done {
            self.tell(&error, text);
            return Ok(false);
        }
        self.print_notifications()?;
        Ok(true)
    }

    /// Prints what others said, as psql does.
    fn print_notifications(&mut self) -> Result<(), Failure> {
        for news in self.session.take_notifications() {
            let said = if news.payload.is_empty() {
                String::new()
            } else {
                format!(" with payload \"{}\"", news.payload)
            };
            writeln!(
                self.out,
                "Asynchronous notification \"{}\"{said} received from server process with PID {}.",
                news.channel, news.process_id
            )?;
        }
        Ok(())
    }

    /// Prints an error as psql does, with the place in the statement.
    fn tell(&mut self, error: &SqlError, text: &str) {
        self.failed = true;
        let _ = self.out.flush();
        let fields = error.fields();
        crate::complain!(
            "{}:  {}: {}",
            fields.severity.as_str(),
            fields.sqlstate,
            fields.message
        );
        if let Some(position) = fields.position {
            let (number, line, column) = place(text, position);
            let head = format!("LINE {number}: ");
            crate::complain!("{head}{line}\n{:1$}^", "", head.len() + column);
        }
        tell_more(fields);
        if let Some(context) = &fields.context {
            crate::complain!("CONTEXT:  {context}");
        }
    }

    /// Tells that a command has failed.
    fn complain(&mut self, message: &str) {
        self.failed = true;
        let _ = self.out.flush();
        crate::complain!("vellum: {message}");
    }
}

/// Prints what an error or a notice says beside its message.
fn tell_more(fields: &Fields) {
    for (name, value) in [("DETAIL", &fields.detail), ("HINT", &fields.hint)] {
        if let Some(value) = value {
            crate::complain!("{name}:  {value}");
        }
    }
}

/// The line (from 1) that a place in a text, in characters from 1, is in; that line; the column in it, from 0.
fn place(text: &str, position: u32) -> (usize, &str, usize) {
    let mut left = usize::try_from(position)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    for (number, line) in (1..).zip(text.lines()) {
        let length = line.chars().count();
        if left <= length {
            return (number, line, left);
        }
        left -= length + 1;
    }
    (1, text.lines().next().unwrap_or_default(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_error_is_found_in_its_line() {
        assert_eq!(place("select nope", 8), (1, "select nope", 7));
        assert_eq!(place("select\n  é, nope\nfrom t", 13), (2, "  é, nope", 5));
        assert_eq!(place("", 9), (1, "", 0));
    }
}
