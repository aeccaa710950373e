//! DO beyond its answers: memory, who cancels it, what is refused. Answers are in the corpus (`code`).

use super::client::{Client, database};

#[test]
fn variables_take_no_more_than_a_statement_may_keep() {
    let mut client = Client::new();
    client.ok("set work_mem = '64kB'");
    for code in [
        "declare x text := 'x'; begin loop x := x || x; end loop; end",
        "declare x text := repeat('x', 30000); y text; begin y := x; declare z text := y || 'z'; begin null; end; end",
        "declare r record; x text := repeat('x', 60000); begin select repeat('y', 30000) as y into r; end",
    ] {
        assert_eq!(client.state(&format!("do $$ {code} $$")), "53200", "{code}");
    }
    client.ok("do $$ begin for i in 1..9 loop declare x text := repeat('x', 30000); begin null; end; end loop; end $$");
}

/// Symptom: `53200` for a loop over more rows than `work_mem` holds.
#[test]
fn a_loop_goes_over_more_rows_than_memory_holds() {
    let directory = tempfile::tempdir().unwrap();
    let database = database();
    database.set_spill_directory(directory.path().join("spill"));
    let mut client = Client::of(&database);
    client.ok("create table t (id int primary key, note text, n numeric, j jsonb, a int[])");
    client.ok("insert into t select g, repeat('x', 400) || g, g / 7.0, to_jsonb(g), array[g, g + 1] from generate_series(1, 2000) g");
    client.ok("create table seen (id int primary key, same bool)");
    client.ok("set work_mem = '64kB'");
    client.ok(
        "do $$ declare r record; begin
           for r in select * from t order by id desc loop
             insert into seen select r.id, t.note = r.note and t.n = r.n and t.j = r.j and t.a = r.a from t where t.id = r.id;
           end loop; end $$",
    );
    assert_eq!(
        client.ok("select count(*), bool_and(same) from seen"),
        "2000|t"
    );
    client.ok("do $$ declare i int; s text; begin for i, s in execute 'select id, note from t' loop exit when i > 10; end loop; end $$");
}

#[test]
fn who_cancels_a_loop_ends_it_whatever_it_handles() {
    let mut client = Client::new();
    let handle = client.session.cancel_handle();
    let stopper = std::thread::spawn(move || {
        // Asked again until it is heard: a cancel before the statement is forgotten.
        for _ in 0..100_000 {
            handle.cancel();
            std::thread::yield_now();
        }
    });
    let sql = "do $$ begin loop begin perform 1; exception when others or query_canceled then null; end; end loop; end $$";
    assert_eq!(client.state(sql), "57014");
    stopper.join().unwrap();
    assert_eq!(client.ok("select 1"), "1");
}

#[test]
fn a_record_is_given_rows_of_its_own_code_only() {
    let mut client = Client::new();
    for value in ["row(1)", "(select 1)", "a", "r || r"] {
        let sql = format!("do $$ declare r record; a int; begin r := {value}; end $$");
        assert_eq!(client.state(&sql), "0A000", "{value}");
    }
    client.ok("create table t (r int, x int); insert into t values (1, 2)");
    client.ok("do $$ declare r record; begin select 1 as x into r; perform t.* from t; end $$");
    assert_eq!(
        client
            .state("do $$ declare r record; begin select 1 as x into r; perform r from t; end $$"),
        "42702"
    );
}
