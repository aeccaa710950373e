//! The verifiers of roles, and the first password of a database.
//!
//! Crash: the password is written and durable before the verifier that is made of it. A start that is cut off in between leaves a file that nobody was told of; the next
//! one makes another password. A file that is there is never read: it may hold the password that somebody has since changed, or taken away.

use super::verifier::{KEY_BYTES, Verifier};
use crate::files;
use crate::secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io;
use std::path::{Path, PathBuf};
use vellum_sql::{Password, SqlDatabase};

/// The role that owns everything, and the name of the database.
pub const SUPERUSER: &str = "vellum";
/// File of the first password.
const PASSWORD_FILE: &str = "password";
/// File of the secret of [`login_secret`], and the longest that is read.
const SECRET_FILE: &str = "login_secret";
const SECRET_BYTES_MAX: u64 = 4096;

/// What is known of who logs in.
#[derive(Debug)]
pub struct Account {
    /// The role's name.
    pub name: String,
    /// And its number.
    pub oid: u32,
    /// How many sessions it may have at once, unless it may do anything; `None`: any number.
    pub connections_max: Option<u32>,
    /// Its verifier; none if it has no password, or one that is good no more.
    pub verifier: Option<Verifier>,
    /// Whether it may do anything.
    pub superuser: bool,
    /// Whether it may connect at all.
    pub login: bool,
}

/// Looks a role up; none if there is none.
pub fn account(database: &SqlDatabase, name: &str) -> Option<Account> {
    let role = database.role(name)?;
    Some(Account {
        oid: role.oid,
        connections_max: role.connections_max,
        verifier: role.current_verifier().and_then(Verifier::parse),
        superuser: role.superuser,
        login: role.login,
        name: role.name.clone(),
    })
}

/// What is kept of a password that a statement sets: a verifier with a salt of its own, or what it is if that is a verifier already. `None` if there are no random
/// bytes for a salt. Costs milliseconds, and as long as the rounds take that a verifier names.
pub fn keep_password(password: &str) -> Option<Password> {
    let known = Verifier::parse(password);
    if password.is_empty() || known.as_ref().is_some_and(|known| known.is_of("")) {
        return Some(Password::Empty);
    }
    let verifier = known.map_or_else(|| Verifier::of(password), Ok).ok()?;
    Some(Password::Verifier(verifier.to_text()))
}

/// Gives the superuser a password if it has none. Returns the file that it is written to, if so.
///
/// # Errors
/// If the file cannot be written, or the database cannot be read or written.
pub fn make_first_password(
    directory: &Path,
    database: &SqlDatabase,
) -> io::Result<Option<PathBuf>> {
    // One that is past its time is one.
    if database
        .role(SUPERUSER)
        .is_some_and(|role| role.verifier.is_some())
    {
        return Ok(None);
    }
    let path = directory.join(PASSWORD_FILE);
    let password = secret::password()?;
    files::write_private(&path, format!("{password}\n").as_bytes())?;
    let verifier = Verifier::of(&password)?.to_text();
    database
        .set_verifier(SUPERUSER, Some(&verifier))
        .map_err(io::Error::other)?;
    Ok(Some(path))
}

/// The secret that verifiers of roles that do not exist are made of, which is kept: were it drawn at each start, their salts would change, and those of roles that
/// do exist would not.
///
/// # Errors
/// If the file cannot be read or written.
pub fn login_secret(directory: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = directory.join(SECRET_FILE);
    let found = files::read_text(&path, SECRET_BYTES_MAX)?;
    let found = found.and_then(|text| STANDARD.decode(text.trim_end()).ok());
    if let Some(secret) = found.and_then(|bytes| bytes.try_into().ok()) {
        return Ok(secret);
    }
    let secret = secret::random()?;
    let text = format!("{}\n", STANDARD.encode(secret));
    files::write_private(&path, text.as_bytes())?;
    Ok(secret)
}

/// Where the first password is written.
pub fn password_path(directory: &Path) -> PathBuf {
    directory.join(PASSWORD_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use vellum::{Config, Database};
    use vellum_sql::Sql;

    fn database(directory: &Path) -> SqlDatabase {
        let config = Config::default().pool_bytes(16 << 20);
        SqlDatabase::open(Database::open(directory, config).unwrap()).unwrap()
    }

    #[test]
    fn the_first_start_makes_a_password_that_only_its_owner_reads() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(directory.path());
        let path = make_first_password(directory.path(), &database)
            .unwrap()
            .unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let password = fs::read_to_string(&path).unwrap();
        let kept = account(&database, SUPERUSER).unwrap();
        assert!(kept.superuser && kept.login);
        let verifier = kept.verifier.unwrap();
        let again = Verifier::with_salt(password.trim_end(), &verifier.salt, verifier.iterations);
        assert!(again == verifier);
        // The password may be thrown away.
        fs::remove_file(&path).unwrap();
        assert!(
            make_first_password(directory.path(), &database)
                .unwrap()
                .is_none()
        );
        assert!(!path.exists());
        assert!(account(&database, "eve").is_none());
    }

    #[test]
    fn of_a_password_a_verifier_is_kept_and_of_an_empty_one_nothing() {
        let kept = |password: &str| match keep_password(password).unwrap() {
            Password::Verifier(text) => Some(text),
            Password::Empty => None,
        };
        let verifier = kept("pencil").unwrap();
        assert!(Verifier::parse(&verifier).unwrap().is_of("pencil"));
        assert_eq!(kept(&verifier), Some(verifier.clone()));
        assert_eq!(kept(""), None);
        let of_empty = Verifier::with_salt("", b"salt", 4096).to_text();
        assert_eq!(kept(&of_empty), None);
        // What only begins like one is a password.
        for password in ["SCRAM-SHA-256$anything", &verifier[..verifier.len() - 1]] {
            let kept = kept(password).unwrap();
            assert!(
                Verifier::parse(&kept).unwrap().is_of(password),
                "{password}"
            );
        }
    }

    #[test]
    fn the_secret_of_logins_is_kept_by_who_owns_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let secret = login_secret(directory.path()).unwrap();
        assert_eq!(login_secret(directory.path()).unwrap(), secret);
        let path = directory.path().join(SECRET_FILE);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&path, "no secret").unwrap();
        let other = login_secret(directory.path()).unwrap();
        assert_ne!(other, secret);
        assert_eq!(login_secret(directory.path()).unwrap(), other);
    }

    #[test]
    fn crash_between_password_and_verifier_makes_another_password() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(directory.path());
        let path = make_first_password(directory.path(), &database)
            .unwrap()
            .unwrap();
        let password = fs::read_to_string(&path).unwrap();
        database.set_verifier(SUPERUSER, None).unwrap();
        let again = make_first_password(directory.path(), &database).unwrap();
        assert_eq!(again.as_ref(), Some(&path));
        // Nobody was told of the first; or else it was taken away.
        let other = fs::read_to_string(&path).unwrap();
        assert_ne!(other, password);
        let kept = account(&database, SUPERUSER).unwrap();
        let verifier = kept.verifier.unwrap();
        assert!(verifier.is_of(other.trim_end()) && !verifier.is_of(password.trim_end()));
    }

    #[test]
    fn a_password_that_is_past_its_time_is_not_replaced_by_the_first_one() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(directory.path());
        make_first_password(directory.path(), &database).unwrap();
        let changed = Verifier::of("another").unwrap().to_text();
        database.set_verifier(SUPERUSER, Some(&changed)).unwrap();
        let text = "alter role vellum valid until '2020-01-01'";
        database.engine().sql(text, &[]).unwrap();
        let kept = account(&database, SUPERUSER).unwrap();
        assert!(kept.verifier.is_none(), "nobody logs in by it");
        let made = make_first_password(directory.path(), &database).unwrap();
        assert!(made.is_none());
        let stored = database.role(SUPERUSER).unwrap().verifier.clone();
        assert_eq!(stored, Some(changed));
    }
}
