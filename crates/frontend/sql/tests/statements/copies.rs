//! COPY in binary.

use super::client::{Client, Heard};
use vellum_sql::Progress;

const TYPES: &str = "id int primary key, n numeric(12, 2), s text, b bytea, f float8, d date, t timestamptz, i interval, j jsonb";

fn with_rows(name: &str) -> Client {
    let mut client = Client::new();
    client.ok(&format!(
        "create table t ({TYPES}); create table {name} ({TYPES});
         insert into t values
            (1, 12.5, 'one', '\\x00ff', 1.5, '2024-02-29', '2024-02-29 12:00+02', '1 mon 2 days', '{{\"a\": [1]}}'),
            (2, null, '', null, 'NaN', 'infinity', null, null, 'null'),
            (3, -0.01, 'ä', '', -0, '1999-12-31', '-infinity', '-00:00:01', '[]')"
    ));
    client
}

/// COPY FROM STDIN in pieces; SQLSTATE if it fails.
fn copy_in(client: &mut Client, table: &str, data: &[u8], piece: usize) -> Result<String, String> {
    let mut heard = Heard::default();
    let sql = format!("copy {table} from stdin (format binary)");
    let begun = client.session.simple_query(&sql, &mut heard).unwrap();
    assert_eq!(begun, Progress::CopyIn);
    let state = |error: vellum_sql::SqlError| error.sqlstate().to_string();
    for piece in data.chunks(piece) {
        client.session.copy_data(piece).map_err(state)?;
    }
    client.session.copy_done(&mut heard).map_err(state)?;
    Ok(heard.tags[0].clone())
}

#[test]
fn rows_go_out_and_come_back_in_binary_however_they_are_cut() {
    for piece in [1, 7, 1 << 20] {
        let mut client = with_rows("u");
        let out = client.hear("copy t to stdout (format binary)");
        assert_eq!(out.tags, ["COPY 3"]);
        assert!(
            out.copied
                .starts_with(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0")
        );
        assert!(out.copied.ends_with(&[0xff, 0xff]));
        assert_eq!(
            copy_in(&mut client, "u", &out.copied, piece).unwrap(),
            "COPY 3"
        );
        let all = |client: &mut Client, name: &str| {
            client.ok(&format!("select * from {name} order by id"))
        };
        assert_eq!(all(&mut client, "u"), all(&mut client, "t"));
        let some = client.hear("copy (select id from t where id < 2) to stdout with binary");
        assert_eq!(
            &some.copied[19..],
            [0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0xff, 0xff]
        );
    }
}

#[test]
fn bytes_that_are_no_rows_are_refused() {
    let mut client = with_rows("u");
    let good = client.hear("copy t to stdout (format binary)").copied;
    let end = good.len() - 2;
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for (what, data) in [
        ("signature", with(0, b"X")),
        ("flags", with(11, &[0, 1, 0, 0])),
        ("extension", with(15, &[0xff; 4])),
        ("columns", with(19, &[0, 8])),
        ("length", with(21, &[0xff, 0xff, 0xff, 0xfe])),
        ("end", good[..end - 1].to_vec()),
        ("header", good[..12].to_vec()),
        ("more", [&good[..], &[0]].concat()),
    ] {
        assert_eq!(
            copy_in(&mut client, "u", &data, 64).unwrap_err(),
            "22P04",
            "{what}"
        );
    }
    // An integer of three bytes.
    assert_eq!(
        copy_in(&mut client, "u", &with(24, &[3]), 64).unwrap_err(),
        "08P01"
    );
    assert_eq!(client.ok("select count(*) from u"), "0");
    assert_eq!(
        copy_in(&mut client, "u", &good[..end], 64).unwrap(),
        "COPY 3",
        "the end may be left out"
    );
    assert_eq!(
        client.state("copy u from stdin (format binary, delimiter ';')"),
        "42601"
    );
}
