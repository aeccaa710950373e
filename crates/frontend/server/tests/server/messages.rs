//! Messages after login: in order, out of order, broken, huge.

use crate::support::{World, bind, execute, message, parse, query, sync};
use std::io::Write;

#[test]
fn a_login_tells_settings_and_a_key_and_then_is_ready() {
    let world = World::trusting();
    let mut raw = crate::support::Raw::new(world.address());
    let messages = raw.log_in("vellum");
    assert_eq!((messages[0].kind, &*messages[0].body), (b'R', &[0; 4][..]));
    let last = messages.last().unwrap();
    assert_eq!((last.kind, last.body.len()), (b'K', 8));
    assert!(
        messages[1..messages.len() - 1]
            .iter()
            .all(|m| m.kind == b'S')
    );
}

#[test]
fn an_error_in_an_extended_query_skips_to_sync() {
    let world = World::trusting();
    let mut raw = world.raw();
    let all = [
        bind("", "nowhere"),
        execute(""),
        parse("a", "select 1"),
        query("select 1"),
        sync(),
    ]
    .concat();
    raw.send(&all);
    let messages = raw.until_ready();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(messages[0].sqlstate(), "26000");
    raw.assert_alive();
}

#[test]
fn an_error_is_sent_before_sync_and_nothing_else_is() {
    let world = World::trusting();
    let mut raw = world.raw();
    raw.send(&execute("nowhere"));
    assert_eq!(raw.receive().unwrap().sqlstate(), "34000");
    raw.send(&message(b'C', b"Snowhere\0"));
    raw.send(&sync());
    assert_eq!(raw.kinds(), "", "Close was skipped");
    raw.send(&message(b'C', b"Snowhere\0"));
    raw.send(&message(b'H', b""));
    assert_eq!(raw.receive().unwrap().kind, b'3');
    raw.assert_alive();
}

#[test]
fn many_groups_in_one_packet_are_answered_one_by_one() {
    let world = World::trusting();
    let mut raw = world.raw();
    let group = [execute("x"), sync()].concat();
    raw.send(&group.repeat(500));
    for number in 0..500 {
        assert_eq!(raw.kinds(), "E", "group {number}");
    }
}

#[test]
fn a_broken_body_is_an_error_and_the_connection_goes_on() {
    let world = World::trusting();
    let mut raw = world.raw();
    for (bytes, sqlstate) in [
        (message(b'Q', b"no end"), "08P01"),
        (message(b'Q', b"a\0b\0"), "08P01"),
        (message(b'Q', b"\xff\0"), "22021"),
        (message(b'F', b""), "0A000"),
        ([message(b'P', b"\0\0\xff\xff"), sync()].concat(), "08P01"),
        (
            [message(b'B', b"\0\0\0\x01\0\x07\0\0\0\0"), sync()].concat(),
            "22023",
        ),
        ([message(b'D', b"X\0"), sync()].concat(), "08P01"),
        ([message(b'E', b"\0"), sync()].concat(), "08P01"),
    ] {
        raw.send(&bytes);
        let messages = raw.until_ready();
        assert_eq!(messages.len(), 1, "{bytes:?}: {messages:?}");
        assert_eq!(messages[0].sqlstate(), sqlstate, "{bytes:?}");
        assert_eq!(messages[0].field(b'S').as_deref(), Some("ERROR"));
    }
    raw.assert_alive();
}

#[test]
fn a_broken_frame_ends_its_connection_and_no_other() {
    let world = World::trusting();
    let mut other = world.raw();
    for bytes in [
        &b"Q\0\0\0\x03"[..],
        b"Q\xff\xff\xff\xff",
        b"\0\0\0\0\x04",
        b"GET / HTTP/1.1\r\n\r\n",
        b"p\0\0\0\x05x",
        b"S\0\x01\0\0",
    ] {
        let mut raw = world.raw();
        raw.send(bytes);
        let messages = raw.until_end();
        let last = messages.last().unwrap();
        assert_eq!(last.sqlstate(), "08P01", "{bytes:?}");
        assert_eq!(last.field(b'S').as_deref(), Some("FATAL"));
    }
    other.assert_alive();
}

#[test]
fn a_statement_above_the_limit_is_an_error_and_the_connection_goes_on() {
    let world = World::trusting_with(|settings| settings.message_mib_max = 1);
    let mut raw = world.raw();
    let huge = vec![b' '; 3 << 20];
    raw.send(&message(b'Q', &huge));
    assert_eq!(raw.until_ready()[0].sqlstate(), "54000");
    raw.send(&message(b'P', &huge));
    raw.send(&execute(""));
    raw.send(&sync());
    let messages = raw.until_ready();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].sqlstate(), "54000");
    raw.assert_alive();
}

#[test]
fn data_of_a_copy_that_is_not_there_are_ignored() {
    let world = World::trusting();
    let mut raw = world.raw();
    raw.send(&message(b'd', b"1\t2\n"));
    raw.send(&message(b'c', b""));
    raw.send(&message(b'f', b"never mind\0"));
    raw.assert_alive();
}

#[test]
fn what_has_no_place_among_the_data_of_a_copy_ends_the_connection() {
    let world = World::trusting();
    let mut raw = world.raw();
    raw.send(&query("create table t (a int)"));
    raw.until_ready();
    for other in [query("select 1"), parse("", "select 1")] {
        let mut raw = world.raw();
        raw.send(&query("copy t from stdin"));
        assert_eq!(raw.receive().unwrap().kind, b'G');
        // These two are passed over.
        raw.send(&[message(b'd', b"1\n"), sync(), message(b'H', b"")].concat());
        raw.send(&other);
        let end = raw.until_end();
        let text = format!(
            "unexpected message type 0x{:02X} during COPY from stdin",
            other[0]
        );
        let told = |at: usize, letter| end[at].field(letter).unwrap_or_default();
        assert_eq!((told(0, b'S'), told(0, b'M')), ("ERROR".to_owned(), text));
        assert_eq!(told(0, b'W'), "COPY t, line 2");
        assert_eq!((&*told(1, b'S'), end.len()), ("FATAL", 2));
        assert!(end.iter().all(|message| message.sqlstate() == "08P01"));
    }
    raw.send(&query("copy t to stdout"));
    assert_eq!(raw.kinds(), "HcC", "nothing was copied");
}

/// Symptom: the client was asked for rows, or told that some come, and only then that it has no right.
#[test]
fn regress_a_copy_that_is_refused_has_not_begun() {
    let world = World::trusting();
    let mut owner = world.raw();
    assert!(
        !owner
            .answers("create role ann login; create table t (a int)")
            .contains('E')
    );
    let mut raw = crate::support::Raw::new(world.address());
    raw.log_in("ann");
    for copy in ["copy t from stdin", "copy t to stdout"] {
        assert!(raw.answers(copy).ends_with("42501"), "{copy}");
        raw.send(&[parse("", copy), bind("", ""), execute(""), sync()].concat());
        assert_eq!(raw.kinds(), "12E", "{copy}");
        // What the client sends of it all the same is passed over.
        raw.send(&[message(b'd', b"1\n"), message(b'c', b"")].concat());
        raw.assert_alive();
    }
    owner.answers("begin read only");
    assert!(owner.answers("copy t from stdin").ends_with("25006"));
}

#[test]
fn prop_no_stream_of_bytes_disturbs_another_connection() {
    let world = World::trusting();
    let mut other = world.raw();
    let seed = vellum_base::replay::seed();
    eprintln!("VELLUM_SEED={seed}");
    let mut random = vellum_base::random::Random::new(seed);
    for _ in 0..200 {
        let mut raw = world.raw();
        let mut bytes = Vec::new();
        for _ in 0..random.between(1, 20) {
            let mut body = vec![0; usize::try_from(random.below(40)).unwrap()];
            random.fill(&mut body);
            let kinds = b"QPBDECSHFXdcfp";
            let kind = kinds[usize::try_from(random.below(kinds.len() as u64)).unwrap()];
            let mut one = message(kind, &body);
            // Now and then a byte of it is another one.
            if random.chance(1, 3) {
                let at = usize::try_from(random.below(one.len() as u64)).unwrap();
                one[at] = random.next_u64().to_le_bytes()[0];
            }
            bytes.extend(one);
        }
        // A server that has ended the connection may refuse the rest.
        if raw.socket.write_all(&bytes).is_ok() {
            let _ = raw.socket.shutdown(std::net::Shutdown::Write);
        }
        while raw.receive().is_some() {}
        other.assert_alive();
    }
}

/// A statement ended the process for everybody: chains of operators were bounded, but run on what was left of a thread's stack; commas and words that the
/// bound did not know made chains without one, and calls that the parser does not count nested without one. Now the height of trees is told from the
/// tokens, and statements run on a stack that has room for it (`sql/src/parse`, P1, P3).
#[test]
fn regress_a_statement_whose_tree_is_high_is_refused_or_done_and_the_server_goes_on() {
    let world = World::trusting();
    let mut other = world.raw();
    let of = |first: &str, link: &str, many: usize| format!("select {first}{}", link.repeat(many));
    let done = format!("{} from (select 1 as a) x", of("a", " + a", 3900));
    let calls = (0..30).fold("1".to_owned(), |inner, _| {
        format!("coalesce({inner}, 0){}", " + 1".repeat(3000))
    });
    let refused = [
        format!("select {calls}"),
        of("1, 2", " union all select 1, 2", 100_000),
        of("1", " notnull", 100_000),
        of("", "interval ", 60_000),
        of("cast(1 as ", "table(a ", 50_000),
    ];
    let mut client = world.raw();
    client.send(&query(&done));
    assert!(client.kinds().contains('C'), "it was done");
    for text in refused {
        client.send(&query(&text));
        let messages = client.until_ready();
        let error = messages.iter().find(|message| message.kind == b'E');
        assert_eq!(error.unwrap().sqlstate(), "54001", "{text:.40}");
    }
    other.assert_alive();
}

/// Process, channel and payload of a NotificationResponse.
fn news(raw: &mut crate::support::Raw) -> (u32, String, String) {
    let message = raw.receive().unwrap();
    assert_eq!(message.kind, b'A', "{message:?}");
    let process = u32::from_be_bytes(message.body[..4].try_into().unwrap());
    let text = String::from_utf8(message.body[4..].to_vec()).unwrap();
    let mut parts = text.split('\0');
    let mut part = || parts.next().unwrap().to_owned();
    (process, part(), part())
}

fn process_of(raw: &mut crate::support::Raw) -> u32 {
    raw.send(&query("select pg_backend_pid()"));
    let messages = raw.until_ready();
    let row = messages
        .iter()
        .find(|message| message.kind == b'D')
        .unwrap();
    std::str::from_utf8(&row.body[6..])
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_parked_client_is_told_what_others_say_and_one_in_a_transaction_is_not() {
    let world = World::trusting();
    let (mut a, mut b) = (world.raw(), world.raw());
    let process = process_of(&mut b);
    a.send(&query("listen n"));
    a.until_ready();
    // Parked by now, or soon.
    for payload in ["one", "two"] {
        b.send(&query(&format!("notify n, '{payload}'")));
        b.until_ready();
        assert_eq!(news(&mut a), (process, "n".into(), payload.into()));
    }
    a.send(&query("begin"));
    a.until_ready();
    b.send(&query("notify n, 'three'; notify n"));
    b.until_ready();
    a.send(&query("select 1"));
    assert!(a.until_ready().iter().all(|message| message.kind != b'A'));
    a.send(&query("commit"));
    let messages = a.until_ready();
    let kinds: String = messages
        .iter()
        .map(|message| message.kind as char)
        .collect();
    assert_eq!(kinds, "CAA", "behind the tag, before ReadyForQuery");
    // Without a word of its own in between, from a client that has gone on.
    a.send(&[parse("", "select 1"), bind("", ""), execute(""), sync()].concat());
    a.until_ready();
    b.send(&query("notify n, 'four'"));
    b.until_ready();
    assert_eq!(news(&mut a).2, "four");
    a.send(&query("unlisten n"));
    a.until_ready();
    b.send(&query("notify n, 'five'"));
    b.until_ready();
    a.assert_alive();
}

#[test]
fn settings_that_a_rollback_takes_back_are_told() {
    let world = World::trusting();
    let mut raw = world.raw();
    let told = |raw: &mut crate::support::Raw, sql: &str| {
        raw.send(&query(sql));
        let messages = raw.until_ready();
        let statuses = messages.iter().filter(|message| message.kind == b'S');
        let text = |message: &crate::support::Message| {
            String::from_utf8_lossy(&message.body).replace('\0', " ")
        };
        statuses.map(text).collect::<String>()
    };
    assert_eq!(
        told(&mut raw, "begin; set datestyle = german"),
        "DateStyle German, DMY "
    );
    assert_eq!(told(&mut raw, "rollback"), "DateStyle ISO, MDY ");
    assert_eq!(
        told(
            &mut raw,
            "select set_config('application_name', 'x', false)"
        ),
        "application_name x "
    );
    assert_eq!(told(&mut raw, "select 1"), "");
}

#[test]
fn regress_a_statement_may_declare_as_many_parameters_as_can_be_counted() {
    let world = World::trusting();
    let mut raw = world.raw();
    let declared = |number: u16| {
        let mut body = b"\0select 1\0".to_vec();
        body.extend_from_slice(&number.to_be_bytes());
        body.extend(23u32.to_be_bytes().repeat(usize::from(number)));
        message(b'P', &body)
    };
    for number in [1, u16::MAX - 1, u16::MAX] {
        raw.send(&[declared(number), sync()].concat());
        assert_eq!(raw.kinds(), "1", "{number} types");
    }
    raw.assert_alive();
}
