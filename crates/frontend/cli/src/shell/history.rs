//! What was typed in earlier sessions: where it is kept, and what is not.
//!
//! An entry is a statement, of however many lines, or a backslash command. It is added to the file before it runs, under a lock of the file, so that shells that run
//! at once lose nothing of each other; each sees what was in the file as it began, and its own.
//!
//! Not here: the form of the file and its lock, which are rustyline's.

use super::Options;
use rustyline::config::{Builder, Config};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History as _};
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use vellum_sql::without_passwords;

/// Entries that are kept; older ones go.
pub const ENTRIES_MAX: usize = 2000;
/// Longest entry that is kept: what is longer was pasted, and is somewhere else.
const ENTRY_BYTES_MAX: usize = 64 << 10;

/// The file of a history, while it can be written.
#[derive(Debug)]
pub struct Kept(Option<PathBuf>);

impl Kept {
    /// Reads what there is, if there is a place for it.
    pub fn open(options: &Options, history: &mut FileHistory) -> Self {
        let path = place(
            options.history.as_ref(),
            options.state_home.as_ref(),
            options.home.as_ref(),
        );
        let mut kept = Self(path);
        kept.with(|path| history.load(path));
        kept
    }

    /// Adds an entry to the history, and to the file; not one that is to be forgotten.
    pub fn add(&mut self, entry: &str, history: &mut FileHistory) {
        if entry.len() > ENTRY_BYTES_MAX || holds_secret(entry) {
            return;
        }
        // Of the two histories there are, only the other one, which is in SQLite, can fail here.
        if let Ok(true) = history.add(entry) {
            self.with(|path| history.append(path));
        }
    }

    /// Does something with the file. Where that fails, it is the last time, and is told: the shell is of use without it.
    fn with(&mut self, work: impl FnOnce(&Path) -> Result<(), ReadlineError>) {
        let Some(path) = &self.0 else { return };
        let done = match ready(path) {
            Ok(true) => work(path),
            Ok(false) => return self.0 = None,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = done {
            crate::complain!("vellum: no history is kept: {}: {error}", path.display());
            self.0 = None;
        }
    }
}

/// How entries are kept: none that is the same as the one before, and none that begins with a space.
pub fn config() -> Result<Builder, ReadlineError> {
    Ok(Config::builder()
        .max_history_size(ENTRIES_MAX)?
        .history_ignore_dups(true)?
        .history_ignore_space(true))
}

/// Where the history is: where the user says, or where the system keeps such things of its users. `None` if nowhere.
fn place(
    said: Option<&OsString>,
    state_home: Option<&OsString>,
    home: Option<&OsString>,
) -> Option<PathBuf> {
    if let Some(said) = said {
        return Some(PathBuf::from(said)).filter(|said| !said.as_os_str().is_empty());
    }
    // The XDG specification has paths that are not absolute ignored.
    let absolute =
        |path: Option<&OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute(state_home).or_else(|| Some(absolute(home)?.join(".local/state")))?;
    Some(state.join("vellum/history"))
}

/// Makes the file, for its owner alone, if there is none. False if it is no file: `/dev/null` keeps nothing, and must not become anybody's.
fn ready(path: &Path) -> io::Result<bool> {
    if let Some(directory) = path.parent().filter(|path| !path.as_os_str().is_empty()) {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    // A pipe would be waited for.
    if let Ok(found) = std::fs::metadata(path)
        && !found.is_file()
    {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)?;
    Ok(true)
}

/// Whether a text sets a password, as far as [`without_passwords`] knows it.
fn holds_secret(text: &str) -> bool {
    matches!(without_passwords(text), Cow::Owned(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn history() -> FileHistory {
        FileHistory::with_config(&config().unwrap().build())
    }

    fn read(path: &Path) -> Vec<String> {
        let mut history = history();
        history.load(path).unwrap();
        history.iter().cloned().collect()
    }

    #[test]
    fn its_place_is_said_or_is_the_systems() {
        let found = |said: Option<&str>, state: Option<&str>, home: Option<&str>| {
            let [said, state, home] = [said, state, home].map(|path| path.map(OsString::from));
            let place = place(said.as_ref(), state.as_ref(), home.as_ref());
            place.map(|path| path.to_str().unwrap().to_owned())
        };
        let all = (Some("/s"), Some("/h"));
        assert_eq!(found(Some("x"), all.0, all.1).as_deref(), Some("x"));
        assert_eq!(found(Some(""), all.0, all.1), None, "none is wanted");
        let state = found(None, all.0, all.1);
        assert_eq!(state.as_deref(), Some("/s/vellum/history"));
        for state in [None, Some(""), Some("relative")] {
            let home = found(None, state, all.1);
            assert_eq!(home.as_deref(), Some("/h/.local/state/vellum/history"));
        }
        assert_eq!(found(None, None, None), None);
        assert_eq!(found(None, None, Some("")), None);
    }

    #[test]
    fn its_file_and_directory_are_its_owners_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/history");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let mut kept = Kept(Some(path.clone()));
        kept.add("select 1;", &mut history());
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(read(&path), ["select 1;"]);
    }

    #[test]
    fn two_shells_lose_nothing_of_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let mut shells = [1, 2].map(|_| (history(), Kept(Some(path.clone()))));
        let mut expected = Vec::new();
        for number in 0..10 {
            for (shell, (history, kept)) in shells.iter_mut().enumerate() {
                let entry = format!("select {number},\n  {shell};");
                kept.add(&entry, history);
                expected.push(entry);
            }
        }
        assert_eq!(read(&path), expected);
        // A file that somebody removes is made again.
        std::fs::remove_file(&path).unwrap();
        for (history, kept) in &mut shells {
            kept.add(&format!("select {};", history.len()), history);
            kept.add("select 'last';", history);
        }
        assert_eq!(read(&path).last().unwrap(), "select 'last';");
        assert!(shells.iter().all(|(_, kept)| kept.0.is_some()));
    }

    #[test]
    fn at_once_they_lose_nothing_either() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        std::thread::scope(|scope| {
            for shell in 0..4 {
                let mut kept = Kept(Some(path.clone()));
                scope.spawn(move || {
                    let mut history = history();
                    for number in 0..50 {
                        kept.add(&format!("select {shell}, {number};"), &mut history);
                    }
                });
            }
        });
        let mut found = read(&path);
        assert_eq!(found.len(), 200);
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 200);
    }

    #[test]
    fn only_so_many_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let mut history = history();
        let mut kept = Kept(Some(path.clone()));
        for number in 0..ENTRIES_MAX {
            history.add(&format!("select {number};")).unwrap();
        }
        history.append(&path).unwrap();
        kept.add("select 'one more';", &mut history);
        let found = read(&path);
        assert_eq!(found.len(), ENTRIES_MAX);
        assert_eq!(found[0], "select 1;");
        assert_eq!(found.last().unwrap(), "select 'one more';");
    }

    #[test]
    fn some_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let mut history = history();
        let mut kept = Kept(Some(path.clone()));
        let long = format!("select '{}';", "x".repeat(ENTRY_BYTES_MAX));
        for entry in [
            "select 1;",
            "select 1;",
            " select 'space';",
            "alter role a password 'secret';",
            &long,
            "select 2;",
        ] {
            kept.add(entry, &mut history);
        }
        assert_eq!(read(&path), ["select 1;", "select 2;"]);
        assert_eq!(history.len(), 2, "nor for this session");
    }

    #[test]
    fn passwords_are_known_by_the_word_and_a_literal() {
        for secret in [
            "create role a login password 'x';",
            "ALTER USER a WITH ENCRYPTED PASSWORD\n  'x';",
            "alter role a PassWord/* of a */'x';",
            "alter role a password -- so\n e'x';",
            "alter role a password U&'x';",
            "alter role a password $$x$$;",
            "do $$ begin execute 'alter role a password ''x'''; end $$;",
            "do $$ begin execute format('alter role a password %L', 'x'); end $$;",
            "create role é password 'x';",
        ] {
            assert!(holds_secret(secret), "{secret}");
        }
        for plain in [
            "alter role a password null;",
            "select password from users where name = 'x';",
            "select * from users where password = 'x';",
            "create table users (password text, e text);",
            "show password_encryption;",
        ] {
            assert!(!holds_secret(plain), "{plain}");
        }
    }

    #[test]
    fn what_is_no_file_keeps_nothing_and_stays_as_it_is() {
        let mode = || std::fs::metadata("/dev/null").unwrap().permissions();
        let before = mode();
        let mut kept = Kept(Some("/dev/null".into()));
        kept.add("select 1;", &mut history());
        assert!(kept.0.is_none());
        assert_eq!(mode(), before);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let mut kept = Kept(Some(file.join("history")));
        let mut history = history();
        kept.add("select 1;", &mut history);
        assert!(kept.0.is_none());
        assert_eq!(history.len(), 1, "this session has it");
    }
}
