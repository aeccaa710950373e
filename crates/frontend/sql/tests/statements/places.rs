//! Where errors are said to be in the text of a statement: where PostgreSQL 15 says so.
//!
//! `tests/corpus/places.txt`: a statement a line, then its SQLSTATE and its place in characters (0: none), parted by tabs. They are a server's, not ours: whoever
//! adds some asks one.

use super::client::Client;

const SETUP: &str = "create table t (id int primary key, n int, s text, d date, b bool, a int[]); create table u (id int, n int)";

#[test]
fn errors_are_where_postgresql_says_that_they_are() {
    let mut client = Client::new();
    client.ok(SETUP);
    let mut wrong = Vec::new();
    let lines = include_str!("../corpus/places.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let mut parts = line.split('\t');
        let [sql, state, place] = [(); 3].map(|()| parts.next().unwrap());
        client.ok("begin");
        let error = client.failure(sql);
        client.ok("rollback");
        let own = error.fields().position.unwrap_or(0).to_string();
        if (error.sqlstate().as_str(), &*own) != (state, place) {
            wrong.push(format!("{line}: {own}, {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}
