//! Where lines of a COPY end, and its data. What PostgreSQL 15 says.

use super::client::{Client, Heard};

/// Copies data in, cut into pieces of so many bytes; what has come of it, or the error with its hint and its line.
fn copied(client: &mut Client, options: &str, data: &[u8], piece: usize) -> String {
    client.ok("truncate ct");
    let mut heard = Heard::default();
    let sql = format!("copy ct from stdin {options}");
    let session = &mut client.session;
    let begun = session.simple_query(&sql, &mut heard).map(drop);
    let mut pieces = data.chunks(piece);
    let sent = begun.and_then(|()| pieces.try_for_each(|piece| session.copy_data(piece)));
    match sent.and_then(|()| session.copy_done(&mut heard)) {
        Ok(_) => client.ok("select a, b from ct").replace('\r', "<CR>"),
        Err(error) => {
            let fields = error.fields();
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            format!(
                "{} {} {}/{}",
                error.sqlstate(),
                error.message(),
                part(&fields.hint),
                part(&fields.context)
            )
        }
    }
}

fn literal(name: &str, escape: &str) -> String {
    format!(
        "22P04 literal {name} found in data Use \"{escape}\" to represent {name}./COPY ct, line 2"
    )
}

fn unquoted(name: &str) -> String {
    format!(
        "22P04 unquoted {name} found in data Use quoted CSV field to represent {name}./COPY ct, line 2"
    )
}

#[test]
fn lines_end_as_the_first_one_does_however_the_data_are_cut() {
    let mut client = Client::new();
    client.ok("create table ct (a text, b text)");
    let returned = literal("carriage return", "\\r");
    let newline = literal("newline", "\\n");
    let corrupt = |line| format!("22P04 end-of-copy marker corrupt /COPY ct, line {line}");
    let other = "22P04 end-of-copy marker does not match previous newline style /COPY ct, line 2";
    let extra = "22P04 extra data after last expected column /COPY ct, line 1: \"a\tb\\\nx\ty\"";
    let missing = "22P04 missing data for column \"b\" /COPY ct, line 1: \"a\\\r\"";
    let cases: [(&str, &str, &str); 38] = [
        ("", "a\\\nb\tc\n", "a\nb|c"),
        ("", "a\tb\\\n", "a|b\n"),
        ("", "a\tb\\\nx\ty\n", extra),
        ("", "a\tb\n\\.\nc\td\n", "a|b"),
        ("", "a\tb\\.\nc\td\n", "a|b"),
        ("", "\\.x\tb\n", &corrupt(1)),
        ("", "a\tb\n\\.", &corrupt(2)),
        ("", "a\tb\n\\.c\n", &corrupt(2)),
        ("", "a\tb\n\\.\\\n", &corrupt(2)),
        ("", "a\tb\rc\td\r", "a|b\nc|d"),
        ("", "a\tb\r\nc\td\r\n", "a|b\nc|d"),
        ("", "a\tb\nc\td\r\n", &returned),
        ("", "a\tb\r\nc\td\n", &newline),
        ("", "a\tb\rc\td\n", &newline),
        ("", "a\tb\nc\rd\te\n", &returned),
        ("", "a\tb\r\nc\rd\te\r\n", &returned),
        ("", "a\tb\r\n\\.\n", other),
        ("", "a\tb\n\\.\r\n", other),
        ("", "a\tb\r\\.\n", other),
        ("", "a\tb\r\n\\.\r\nc\td", "a|b"),
        ("", "a\\\rb\tc\n", "a<CR>b|c"),
        ("", "a\\\r\nb\tc\r\n", missing),
        ("", "a\tb\\", "a|b"),
        ("", "a\tb", "a|b"),
        ("(header)", "", ""),
        ("(header match)", "a\tb\n", ""),
        ("(format csv)", "a,b\r\nc,d\n", &unquoted("newline")),
        ("(format csv)", "a,b\nc,d\r\n", &unquoted("carriage return")),
        ("(format csv)", "a,b\rc,d\n", &unquoted("newline")),
        ("(format csv)", "a,b\rc,d\r", "a|b\nc|d"),
        (
            "(format csv)",
            "a,b\nc\rx,d\n",
            &unquoted("carriage return"),
        ),
        ("(format csv)", "a,b\n\\.\nc,d\n", "a|b"),
        ("(format csv)", "a,b\n\\.c,d\n", "a|b\n\\.c|d"),
        ("(format csv)", "a,\\.\nc,d\n", "a|\\.\nc|d"),
        ("(format csv)", "a,\"x\n\\.\ny\"\nc,d\n", "a|x\n\\.\ny\nc|d"),
        ("(format csv)", "a,\"x\r\ny\"\nc,d\n", "a|x<CR>\ny\nc|d"),
        (
            "(header match)",
            "",
            "22P04 wrong number of fields in header line: got 1, expected 2 /COPY ct, line 1: \"\"",
        ),
        (
            "(format csv, header match)",
            "",
            "22P04 wrong number of fields in header line: got 1, expected 2 /COPY ct, line 1: \"\"",
        ),
    ];
    for (options, data, expected) in cases {
        for piece in [1, 2, 3, 1 << 20] {
            let found = copied(&mut client, options, data.as_bytes(), piece);
            assert_eq!(found, expected, "{options} {data:?} by {piece}");
        }
    }
}

/// So many rows are loaded, line by line.
#[test]
fn lines_that_are_loaded_end_as_the_first_one_does() {
    let mut client = Client::new();
    client.ok("create table ct (a text, b text)");
    let lines = |end: &str, odd: &str| {
        let line = |at: usize| match at {
            400 => odd.to_owned(),
            _ => format!("{at}\tx{end}"),
        };
        (1..=600).map(line).collect::<String>()
    };
    let count = "select count(*), min(length(b)), max(length(b)) from ct";
    for (end, odd, expected) in [
        ("\n", "y\t\\\n\n", "600|1|1"),
        ("\r\n", "y\tz\r\n", "600|1|1"),
        ("\r", "y\tz\r", "600|1|1"),
        ("\n", "y\t\\r\\n\\\nz\n", "600|1|4"),
        ("\n", "\\.\n", "399|1|1"),
    ] {
        for piece in [1000, 1 << 20] {
            let found = copied(&mut client, "", lines(end, odd).as_bytes(), piece);
            assert!(!found.starts_with("22P04"), "{found}");
            assert_eq!(client.ok(count), expected, "{end:?} {odd:?}");
        }
    }
    for (end, odd, what) in [
        ("\n", "y\tz\r\n", "literal carriage return"),
        ("\r\n", "y\tz\n", "literal newline"),
        ("\r", "y\tz\n", "literal newline"),
    ] {
        let found = copied(&mut client, "", lines(end, odd).as_bytes(), 1 << 20);
        assert!(
            found.contains(what) && found.ends_with("line 400"),
            "{found}"
        );
        assert_eq!(client.ok("select count(*) from ct"), "0");
    }
}
