//! What all sessions of a database share.

use crate::catalog::{self, Change, GatesByOid, Kind, Oid, Oids, Published, Store};
use crate::error::{Result, SqlError};
use crate::lock::{AdvisoryLocks, RowLocks, Waits};
use crate::numbers::Numbers;
use crate::roles::{self, Role};
use crate::session::{
    Activities, Channels, Exports, Session, SessionOptions, clock_time, drop_left_behind,
};
use crate::sqlstate;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use vellum::{Database, Error, Transaction};
use vellum_row::datetime::Timestamp;
use vellum_sync::Mutex;

/// Name of the role that a new database has; its password is set by [`SqlDatabase::set_verifier`].
pub const FIRST_ROLE: &str = "vellum";
/// Name of the database.
pub const DATABASE: &str = "vellum";
/// Another name to connect to it by: where tools look before they know what databases there are.
const MAINTENANCE: &str = "postgres";

/// The name of the database that a client asks for by `name`; `None` if there is none.
pub fn database_called(name: &str) -> Option<&'static str> {
    [DATABASE, MAINTENANCE].contains(&name).then_some(DATABASE)
}
/// Number of the first role.
pub(crate) const FIRST_ROLE_OID: u32 = 10;

/// A database that speaks SQL. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SqlDatabase {
    shared: Arc<Shared>,
}

/// Memory of all queries together that no program runs.
const QUERY_MEMORY_BYTES: usize = 1 << 30;

/// What all sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub engine: Database,
    /// Runs queries that no program runs.
    pub queries: Arc<vellum_query::Engine>,
    pub catalog: Published,
    /// Of what is no relation.
    pub gates: GatesByOid,
    pub oids: Oids,
    /// Who waits for whom.
    pub waits: Arc<Waits>,
    /// Locks on rows.
    pub locks: Arc<RowLocks>,
    /// Locks on numbers.
    pub advisory: Arc<AdvisoryLocks>,
    /// Numbers of transactions that have asked for one.
    pub numbers: Arc<Numbers>,
    /// Snapshots that others may begin at.
    pub exports: Arc<Exports>,
    /// What sessions are doing.
    pub activities: Arc<Activities>,
    /// Who listens to what.
    pub channels: Channels,
    /// Schemas of temporary relations whose sessions have ended.
    pub left_behind: Mutex<Vec<Oid>>,
    /// When the database was opened.
    pub started: Timestamp,
    /// See [`SqlDatabase::keys_left_out`].
    keys_left_out: Vec<String>,
    /// What makes a verifier of a password; see [`SqlDatabase::set_password_maker`].
    password_maker: OnceLock<PasswordMaker>,
}

/// What becomes of a password.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// This SCRAM-SHA-256 verifier is kept of it, in PostgreSQL's form.
    Verifier(String),
    /// It is empty, or a verifier that the empty one satisfies: who has it has none.
    Empty,
}

/// Tells nothing: it ends up in logs.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").finish_non_exhaustive()
    }
}

/// Says what becomes of a password, or of a verifier in its place; `None` if there is no randomness for a salt.
pub type PasswordMaker = fn(&str) -> Option<Password>;

impl Shared {
    /// Reads the catalog, or makes it.
    fn open(engine: Database) -> Result<Arc<Self>> {
        engine.retry(|transaction| match transaction.table(roles::TABLE) {
            Ok(_) => Ok(()),
            Err(Error::NoSuchTable { .. }) => {
                transaction.create_table(roles::TABLE)?;
                let mut first = Role::new(FIRST_ROLE, FIRST_ROLE_OID);
                first.superuser = true;
                first.login = true;
                first.create_role = true;
                first.create_database = true;
                first.replication = true;
                first.bypass_rls = true;
                roles::put(transaction, &first)
            }
            Err(error) => Err(error),
        })?;
        engine.retry(|transaction| match transaction.table(Store::TABLE) {
            Ok(_) => Ok(()),
            Err(Error::NoSuchTable { .. }) => Store::create(transaction),
            Err(error) => Err(error),
        })?;
        engine.retry(crate::statistics::create)?;
        let reader = engine.begin()?;
        let (catalog, keys_left_out) = Store::load(&reader, 1)?;
        let without_table = crate::statistics::load(&reader, &catalog)?;
        drop(reader);
        // All of it can be read.
        Store::keep_owners_by_oid(&engine, &catalog)?;
        crate::statistics::remove(&engine, &without_table)?;
        let relations = catalog.relations().into_iter();
        let values = relations.filter_map(|relation| match &relation.kind {
            Kind::Sequence(sequence) => Some(sequence.values),
            _ => None,
        });
        let values: BTreeSet<Oid> = values.collect();
        catalog::sweep(&engine, |oid| values.contains(&oid))?;
        let namespaces = catalog.namespaces().into_iter();
        let left_behind = namespaces.map(|namespace| namespace.oid);
        let left_behind = left_behind.filter(|oid| catalog.is_temporary(*oid));
        let left_behind = Mutex::new(left_behind.collect());
        let locks = Arc::<RowLocks>::default();
        let advisory = Arc::<AdvisoryLocks>::default();
        let activities = Arc::<Activities>::default();
        let waits = Waits::new(
            engine.clone(),
            locks.clone(),
            advisory.clone(),
            activities.clone(),
        );
        let shared = Arc::new(Self {
            engine: engine.clone(),
            queries: Arc::new(vellum_query::Engine::new(QUERY_MEMORY_BYTES)),
            catalog: Published::new(catalog),
            gates: GatesByOid::default(),
            oids: Oids::default(),
            numbers: Arc::new(Numbers::new(engine.clone())),
            exports: Arc::default(),
            waits: Arc::new(waits),
            locks,
            advisory,
            activities,
            channels: Channels::default(),
            left_behind,
            started: clock_time(),
            keys_left_out,
            password_maker: OnceLock::new(),
        });
        drop_left_behind(&shared);
        Ok(shared)
    }

    /// What becomes of a password that a statement sets.
    ///
    /// # Errors
    /// `0A000` where nobody said how to make a verifier.
    pub fn kept_of(&self, password: &str) -> Result<Password> {
        let maker = self.password_maker.get();
        let maker = maker.ok_or_else(|| SqlError::unsupported("a password here"))?;
        maker(password).ok_or_else(|| SqlError::internal("no random bytes for a salt"))
    }
}

impl SqlDatabase {
    /// Opens the SQL catalog of an engine database; makes it if there is none. Blocks for I/O. An engine database has one SQL database: as long as
    /// there is a handle of either or a session, opening gives another handle, and costs nothing.
    ///
    /// # Errors
    /// What the engine reports; `XX001` for a catalog that cannot be read.
    pub fn open(engine: Database) -> Result<Self> {
        let shared = engine.attached(Shared::open)?;
        Ok(Self { shared })
    }

    /// The engine below.
    pub fn engine(&self) -> &Database {
        &self.shared.engine
    }

    /// The foreign keys that were left out of the catalog when the database was opened, as it has not what they refer to: the constraint and its table by name. They are
    /// not kept from then on; none in a database that no earlier build has written.
    pub fn keys_left_out(&self) -> &[String] {
        &self.shared.keys_left_out
    }

    /// Starts a session. No slot of the engine is taken before its first statement.
    ///
    /// # Errors
    /// `28000` for an unknown role, `3D000` for an unknown database, `22023` and `42704` for settings that cannot be.
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(self.shared.clone(), options)
    }

    /// Says how passwords in CREATE ROLE and ALTER ROLE become verifiers, and what is a verifier already; the first to say so is heard. Without, they are
    /// refused (`0A000`).
    pub fn set_password_maker(&self, maker: PasswordMaker) {
        let _ = self.shared.password_maker.set(maker);
    }

    /// Says where queries write what does not fit into their memory, before the first of them runs: into files of a directory that holds
    /// nothing else. Without, such queries fail (`53200`).
    pub fn set_spill_directory(&self, directory: PathBuf) {
        self.shared.queries.spill_into(directory);
    }

    /// Says how many bytes these files may take together, before the first query. What would take more fails (`53400`).
    pub fn set_spill_bytes_max(&self, bytes: u64) {
        self.shared.queries.spill_at_most(bytes);
    }

    /// How many statements were compiled since the database was opened: those that no session had run before, and known ones that a change of the
    /// catalog has made out of date. Blocks as long as it takes to look at each session.
    pub fn statements_compiled(&self) -> u64 {
        self.shared.activities.tally().compiled
    }

    /// The role of this name, as it was committed last; `None` if there is none. Begins no transaction: who logs in waits for no slot.
    pub fn role(&self, name: &str) -> Option<Arc<Role>> {
        self.shared.catalog.now().role(name).cloned()
    }

    /// Sets a role's SCRAM-SHA-256 verifier (see [`Role::verifier`]); `None` takes its password away. Durable on return.
    ///
    /// # Errors
    /// `42704` if there is no such role; what the engine reports.
    pub fn set_verifier(&self, name: &str, verifier: Option<&str>) -> Result<()> {
        let set = |transaction: &Transaction| -> Result<Role> {
            let role = roles::find(transaction, name)?;
            let mut role = role.ok_or_else(|| {
                let message = format!("role \"{name}\" does not exist");
                SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
            })?;
            role.verifier = verifier.map(str::to_owned);
            roles::put(transaction, &role)?;
            Ok(role)
        };
        let transaction = self.engine().begin()?;
        let role = set(&transaction)?;
        let changes = [Change::PutRole(Arc::new(role))];
        let catalog = &self.shared.catalog;
        Ok(catalog.publish(&changes, || transaction.commit())?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::*;
    use crate::Sql;
    use vellum::Config;
    use vellum_io::MemoryDirectory;

    #[test]
    fn no_gate_outlives_what_it_is_of() {
        let config = Config::default().background_threads(false);
        let directory = Arc::new(MemoryDirectory::new());
        let engine = Database::open_directory(directory, config).unwrap();
        let database = SqlDatabase::open(engine).unwrap();
        let mut connection = database.connect().unwrap();
        let before = database.shared.gates.count();
        let made = [
            "create role ann",
            "create schema s authorization ann",
            "create extension pgcrypto schema s",
            "create table s.t (id serial primary key)",
            "alter table s.t owner to ann",
            "alter sequence s.t_id_seq restart",
        ];
        let dropped = ["drop schema s cascade", "drop role ann"];
        let mut say = |texts: &[&str]| {
            for text in texts {
                connection.sql(text, &[]).unwrap();
            }
        };
        for (begin, end) in [
            (&["begin"][..], &["rollback"][..]),
            (&["begin", "savepoint a"], &["rollback to a", "commit"]),
            (&[], &dropped),
        ] {
            say(begin);
            say(&made);
            assert!(database.shared.gates.count() > before + 1);
            say(end);
            assert_eq!(database.shared.gates.count(), before, "{end:?}");
        }
    }
}
