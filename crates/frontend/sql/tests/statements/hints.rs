//! What an error of a name says that somebody may have meant. What PostgreSQL 15 says.

use super::client::Client;

#[track_caller]
fn hint(client: &mut Client, sql: &str) -> (String, String) {
    let error = client.failure(sql);
    let hint = error.fields().hint.clone().unwrap_or_default();
    (error.message().to_owned(), hint)
}

#[test]
fn a_column_that_is_nearly_there_is_told() {
    let mut client = Client::new();
    client.ok("create table hn (aaa int, bbb int, name text)");
    let column = |name: &str| format!("Perhaps you meant to reference the column \"{name}\".");
    for (sql, expected) in [
        ("select aa from hn", column("hn.aaa")),
        ("select hn.bb from hn", column("hn.bbb")),
        ("select nam from hn h", column("h.name")),
        ("select aaab from hn order by 1", column("hn.aaa")),
        ("select 1 from hn where (select aaab) = 1", column("hn.aaa")),
        (
            "select * from hn a, hn b where aaax = 1",
            "Perhaps you meant to reference the column \"a.aaa\" or the column \"b.aaa\"."
                .to_owned(),
        ),
        (
            "select * from hn a, hn b, hn c where aaax = 1",
            String::new(),
        ),
        ("select hn.zzz from hn", String::new()),
        ("select xyz from hn", String::new()),
        ("select b from hn", String::new()),
        ("update hn set aaa = bbbb", column("hn.bbb")),
        ("delete from hn where nmae = ''", column("hn.name")),
    ] {
        let (message, told) = hint(&mut client, sql);
        assert!(message.starts_with("column "), "{sql}: {message}");
        assert_eq!(told, expected, "{sql}");
    }
}

#[test]
fn a_table_that_is_called_otherwise_is_told() {
    let mut client = Client::new();
    client.ok("create table hn (aaa int, bbb int, name text)");
    for (sql, alias) in [
        ("select hn.aaa from hn q", "q"),
        ("select h.aaa, hn.aaa from hn h", "h"),
        ("delete from hn h where hn.aaa = 1", "h"),
        ("select * from hn h join hn i on hn.aaa = i.aaa", "h"),
    ] {
        let (message, told) = hint(&mut client, sql);
        let expected = "invalid reference to FROM-clause entry for table \"hn\"";
        assert_eq!(message, expected, "{sql}");
        let expected = format!("Perhaps you meant to reference the table alias \"{alias}\".");
        assert_eq!(told, expected, "{sql}");
    }
    let (message, told) = hint(&mut client, "select q.aaa from hn h");
    assert_eq!(message, "missing FROM-clause entry for table \"q\"");
    assert_eq!(told, "");
}
