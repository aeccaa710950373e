//! The queries of TPC-H and of CH-benCHmark: equal answers. What is not checked: README.

// Helpers of tests are not marked as tests.
#![allow(clippy::unwrap_used)]

use postgres::Client;
use std::io::Write;
use vellum_answers::{Own, Peer, answer, difference};
use vellum_workload::{ch, tpch};

/// Scale 0.01.
const THOUSANDTHS: u32 = 10;

/// Makes a table and copies rows into it.
fn fill(client: &mut Client, definition: &str, name: &str, rows: &dyn Fn(&mut dyn FnMut(&str))) {
    client.batch_execute(definition).unwrap();
    let mut writer = client.copy_in(&format!("COPY {name} FROM STDIN")).unwrap();
    rows(&mut |text| writer.write_all(text.as_bytes()).unwrap());
    writer.finish().unwrap();
}

#[test]
fn all_queries_of_tpch_have_postgresqls_answers() {
    let Some(peer) = Peer::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Own::start(folder.path()).unwrap();
    let population = tpch::Population::new(1, THOUSANDTHS);
    let (mut own, mut other) = (server.connect().unwrap(), peer.connect().unwrap());
    for client in [&mut own, &mut other] {
        for table in tpch::Table::ALL {
            let rows = |each: &mut dyn FnMut(&str)| population.copy_text(table, 1 << 16, each);
            fill(client, table.definition(), table.name(), &rows);
        }
        client.batch_execute("ANALYZE").unwrap();
    }
    let mut wrong = Vec::new();
    for query in tpch::queries(THOUSANDTHS) {
        let mut both = [&mut own, &mut other].map(|client| {
            if let Some(text) = query.before {
                client.batch_execute(text).unwrap();
            }
            let answer = answer(client, &query.text);
            if let Some(text) = query.after {
                client.batch_execute(text).unwrap();
            }
            Some(answer)
        });
        let expected = both[1].take().unwrap().unwrap();
        if let Some(what) = difference(both[0].take().unwrap(), &expected, false) {
            wrong.push(format!("query {}: {what}", query.number));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_queries_of_ch_benchmark_have_postgresqls_answers() {
    let Some(peer) = Peer::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Own::start(folder.path()).unwrap();
    let population = ch::Population {
        seed: 1,
        warehouses: 2,
        items: 2000,
        customers: 100,
    };
    let (mut own, mut other) = (server.connect().unwrap(), peer.connect().unwrap());
    for client in [&mut own, &mut other] {
        for table in ch::Table::ALL {
            let rows = |each: &mut dyn FnMut(&str)| population.copy_text(table, each);
            fill(client, table.definition(), table.name(), &rows);
        }
        client.batch_execute("ANALYZE").unwrap();
    }
    let (mut wrong, mut empty) = (Vec::new(), Vec::new());
    for (number, text) in (1..).zip(ch::QUERIES) {
        let expected = answer(&mut other, text).unwrap();
        if expected.len() < 2 {
            empty.push(number);
        }
        if let Some(what) = difference(answer(&mut own, text), &expected, true) {
            wrong.push(format!("query {number}: {what}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(empty.is_empty(), "queries without rows: {empty:?}");
}
