//! A copy of the database by a statement.

use super::client::{Client, assert_sound, database};
use vellum::{Config, Database};
use vellum_sql::SqlDatabase;

#[test]
fn a_statement_copies_the_database_as_it_was_committed() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("copy");
    let backup = format!("select vellum_backup('{}')", target.display());
    let database = database();
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, a text unique)");
    client.ok("insert into t select n, 'row ' || n from generate_series(1, 1000) n");
    client.ok("create role ann login");
    let mut other = Client::of(&database);
    other.ok("begin");
    other.ok("insert into t values (0, 'not committed')");
    assert_eq!(client.state("select vellum_backup('copy')"), "42602");
    assert_eq!(Client::of_user(&database, "ann").state(&backup), "42501");
    assert!(!target.exists());
    assert_eq!(client.ok("select vellum_backup(null)"), "~");
    assert_eq!(client.ok(&backup), "");
    assert_eq!(client.state(&backup), "55000");
    other.ok("commit");
    let copy = Database::open(&target, Config::default().pool_bytes(16 << 20)).unwrap();
    let copy = SqlDatabase::open(copy).unwrap();
    assert_eq!(
        Client::of(&copy).ok("select count(*), min(id), max(a) from t"),
        "1000|1|row 999"
    );
    assert_sound(&copy);
}
