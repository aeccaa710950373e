//! How clients get in, and how they do not.

use crate::support::{LONG, Message, Raw, World, message, query, start, startup};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

fn refused(messages: &[Message]) -> String {
    let last = messages.last().unwrap();
    assert_eq!(last.field(b'S').as_deref(), Some("FATAL"), "{messages:?}");
    last.sqlstate()
}

#[test]
fn the_first_password_opens_the_door_and_no_other_does() {
    let world = World::new(|_| {});
    drop(world.client());
    let mode = |name: &str| {
        let path = world.directory.path().join(name);
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(""), mode("password")), (0o700, 0o600));
    for (user, password) in [
        ("vellum", "wrong"),
        ("vellum", ""),
        ("nobody", &*world.password()),
    ] {
        let mut config = world.config();
        config.user(user).password(password);
        let error = config.connect(postgres::NoTls).err().unwrap();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "28P01");
        let expected = format!("password authentication failed for user \"{user}\"");
        assert_eq!(error.message(), expected, "the same for all");
    }
}

#[test]
fn what_is_no_password_opens_nothing() {
    let world = World::new(|_| {});
    let hash = "md5900150983cd24fb0d6963f7d28e17f72";
    let broken = "SCRAM-SHA-256$anything";
    let mut client = world.client();
    let made = format!(
        "create user of_none password ''; create user of_hash password '{hash}';
         create user of_broken password '{broken}'"
    );
    client.batch_execute(&made).unwrap();
    let kept = |client: &mut postgres::Client, user: &str| -> Option<String> {
        let row = client
            .query_one(
                "select rolpassword from pg_authid where rolname = $1",
                &[&user],
            )
            .unwrap();
        row.get(0)
    };
    assert_eq!(kept(&mut client, "of_none"), None);
    assert_eq!(kept(&mut client, "of_hash").as_deref(), Some(hash));
    assert_ne!(kept(&mut client, "of_broken").as_deref(), Some(broken));
    for (user, password, lets_in) in [
        ("of_none", "", false),
        ("of_hash", hash, false),
        ("of_hash", "", false),
        ("of_broken", broken, true),
    ] {
        let mut config = world.config();
        config.user(user).password(password).dbname("vellum");
        let error = config.connect(postgres::NoTls).err();
        let said = error.as_ref().map(ToString::to_string);
        assert_eq!(
            error.is_none(),
            lets_in,
            "{user} by \"{password}\": {said:?}"
        );
    }
}

#[test]
fn a_password_outlives_its_server_and_its_file() {
    let mut world = World::new(|_| {});
    let password = world.password();
    world.server.take().unwrap().stop().unwrap();
    std::fs::remove_file(world.directory.path().join("password")).unwrap();
    let again = start(world.directory.path(), |_| {});
    assert!(again.new_password().is_none());
    let client = postgres::Config::new()
        .host("127.0.0.1")
        .port(again.addresses()[0].port())
        .user("vellum")
        .password(password)
        .connect(postgres::NoTls);
    drop(client.unwrap());
    again.stop().unwrap();
}

#[test]
fn a_client_that_proves_nothing_is_told_nothing_else() {
    let world = World::new(|_| {});
    let mut raw = Raw::new(world.address());
    raw.send(&startup(&[("user", "vellum")]));
    let first = raw.receive().unwrap();
    assert_eq!((first.kind, &first.body[..4]), (b'R', &[0, 0, 0, 10][..]));
    // A statement where a proof belongs.
    raw.send(&crate::support::query("select 1"));
    assert_eq!(refused(&raw.until_end()), "08P01");
}

#[test]
fn two_roles_that_do_not_exist_look_like_two_that_do() {
    let mut world = World::new(|_| {});
    let salt = |world: &World, user: &str| {
        let mut raw = Raw::new(world.address());
        raw.send(&startup(&[("user", user)]));
        raw.receive().unwrap();
        let first = b"n,,n=,r=abc";
        let mut body = b"SCRAM-SHA-256\0".to_vec();
        body.extend_from_slice(&u32::try_from(first.len()).unwrap().to_be_bytes());
        body.extend_from_slice(first);
        raw.send(&message(b'p', &body));
        let text = String::from_utf8(raw.receive().unwrap().body[4..].to_vec()).unwrap();
        let (_, salt) = text.split_once(",s=").unwrap();
        salt.to_owned()
    };
    let users = ["vellum", "eve", "mallory"];
    let salts = users.map(|user| salt(&world, user));
    assert_ne!(salts[1], salts[2]);
    for (user, before) in users.iter().zip(&salts) {
        assert_eq!(salt(&world, user), *before, "the salt of {user} stays");
        assert!(before.ends_with(",i=4096"));
    }
    // Nor does a restart tell them apart.
    world.server.take().unwrap().stop().unwrap();
    world.server = Some(start(world.directory.path(), |_| {}));
    assert_eq!(users.map(|user| salt(&world, user)), salts);
}

#[test]
fn host_rules_decide_who_may_try() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        rules.path(),
        "host all eve all reject\nhostssl all all all trust\nhost vellum vellum 127.0.0.1/32 trust\n",
    )
    .unwrap();
    let world = World::new(|settings| settings.host_rules = rules.path().into());
    let answer = |user: &str, database: &str| {
        let mut raw = Raw::new(world.address());
        raw.send(&startup(&[("user", user), ("database", database)]));
        raw.receive().unwrap()
    };
    assert_eq!(answer("vellum", "vellum").kind, b'R');
    let rejected = answer("eve", "vellum");
    assert_eq!(rejected.sqlstate(), "28000");
    let expected = "pg_hba.conf rejects connection for host \"127.0.0.1\", user \"eve\", database \"vellum\", no encryption";
    assert_eq!(rejected.field(b'M').as_deref(), Some(expected));
    let unlisted = answer("vellum", "other");
    assert!(
        unlisted
            .field(b'M')
            .unwrap()
            .starts_with("no pg_hba.conf entry")
    );
}

#[test]
fn packets_that_are_no_login_end_their_connection() {
    let world = World::trusting();
    let long = vec![b'x'; 9_990];
    let cases: [(&[u8], &str); 6] = [
        (&[0, 0, 0, 7], "08P01"),
        (&[0xff; 8], "08P01"),
        (&[0, 0, 0, 8, 0, 2, 0, 0], "0A000"),
        (&startup(&[("database", "vellum")]), "28000"),
        (
            &startup(&[("user", "vellum"), ("replication", "true")]),
            "0A000",
        ),
        (
            &startup(&[("user", std::str::from_utf8(&long).unwrap())]),
            "08P01",
        ),
    ];
    for (number, (bytes, sqlstate)) in cases.into_iter().enumerate() {
        let mut raw = Raw::new(world.address());
        raw.send(bytes);
        assert_eq!(refused(&raw.until_end()), sqlstate, "case {number}");
    }
    // One that stops in the middle is closed by its own end.
    let mut half = Raw::new(world.address());
    half.send(&startup(&[("user", "vellum")])[..10]);
    half.socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(half.until_end().is_empty());
    world.raw().assert_alive();
}

#[test]
fn newer_minor_versions_and_unknown_options_are_negotiated() {
    let world = World::trusting();
    let mut packet = startup(&[("user", "vellum"), ("_pq_.new", "1")]);
    packet[4..8].copy_from_slice(&(3u32 << 16 | 2).to_be_bytes());
    let mut raw = Raw::new(world.address());
    raw.send(&packet);
    let first = raw.receive().unwrap();
    assert_eq!(first.kind, b'v');
    assert_eq!(first.body, b"\0\x03\0\0\0\0\0\x01_pq_.new\0");
    raw.until_ready();
}

#[test]
fn encryption_that_is_not_there_is_declined() {
    let world = World::trusting();
    let mut raw = Raw::new(world.address());
    for code in [80_877_104u32, 80_877_103] {
        raw.send(&[8u32.to_be_bytes(), code.to_be_bytes()].concat());
        let mut answer = [0];
        raw.socket.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    raw.log_in("vellum");
    raw.assert_alive();
    let mut twice = Raw::new(world.address());
    let request = [8u32.to_be_bytes(), 80_877_103u32.to_be_bytes()].concat();
    twice.send(&request);
    twice.socket.read_exact(&mut [0]).unwrap();
    twice.send(&request);
    assert_eq!(refused(&twice.until_end()), "08P01");
}

#[test]
fn the_unix_socket_lets_its_owner_in() {
    let world = World::new(|_| {});
    let path = world
        .server
        .as_ref()
        .unwrap()
        .unix_socket()
        .unwrap()
        .to_owned();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut config = postgres::Config::new();
    config
        .host_path(path.parent().unwrap())
        .port(world.address().port())
        .user("vellum")
        .password(world.password());
    drop(config.connect(postgres::NoTls).unwrap());
    world.stop();
    assert!(!path.exists());
}

#[test]
fn one_connection_too_many_is_refused_and_the_superuser_has_places_left() {
    let world = World::trusting_with(|settings| {
        settings.connections_max = 2;
        settings.connections_reserved = 1;
    });
    let one = world.raw();
    let mut two = world.raw();
    let mut three = Raw::new(world.address());
    three.send(&startup(&[("user", "vellum")]));
    assert_eq!(refused(&three.until_end()), "53300");
    two.assert_alive();
    // The place is free once the server has seen its client leave.
    drop(one);
    loop {
        let mut again = Raw::new(world.address());
        again.send(&startup(&[("user", "vellum")]));
        match again.receive().unwrap() {
            Message { kind: b'E', .. } => std::thread::yield_now(),
            _ => break,
        }
    }
}

/// Symptom: a client that had sent its first message was reset, and never read why.
#[test]
fn regress_a_flood_of_logins_is_told_that_there_are_too_many() {
    let world = World::new(|settings| settings.login_timeout_seconds = 600);
    let mut alive = world.client();
    let begun = || {
        let mut raw = Raw::new(world.address());
        raw.send(&startup(&[("user", "vellum")]));
        raw
    };
    let mut proving: Vec<Raw> = (0..256).map(|_| begun()).collect();
    for client in &mut proving {
        assert_eq!(client.receive().unwrap().kind, b'R');
    }
    let mut late: Vec<Raw> = (0..50).map(|_| begun()).collect();
    for client in &mut late {
        let told = client.until_end();
        assert_eq!((told.len(), &*told[0].sqlstate()), (1, "53300"));
        assert_eq!(told[0].field(b'S').as_deref(), Some("FATAL"));
    }
    drop(proving);
    alive.batch_execute("select 1").unwrap();
}

/// Symptom: of more than 256 clients that came in the same instant, the first were cut off before they had a chance to say who they are.
#[test]
fn regress_clients_that_come_at_once_all_get_in() {
    const CLIENTS: usize = 600;
    let world = World::trusting_with(|settings| settings.connections_max = 2 * CLIENTS);
    let (address, together) = (world.address(), std::sync::Barrier::new(CLIENTS));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let spawned = std::thread::Builder::new()
                    .stack_size(128 << 10)
                    .spawn_scoped(scope, || {
                        together.wait();
                        let mut raw = Raw::new(address);
                        // Whether there is TLS: there is none.
                        raw.send(&[8u32.to_be_bytes(), 80_877_103u32.to_be_bytes()].concat());
                        let mut answer = [0];
                        raw.socket.read_exact(&mut answer).unwrap();
                        assert_eq!(answer, *b"N");
                        std::thread::sleep(std::time::Duration::from_millis(50));
                        raw.log_in("vellum");
                        raw
                    });
                spawned.unwrap()
            })
            .collect();
        let all: Vec<Raw> = clients.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(all.len(), CLIENTS);
    });
}

/// Symptom: for as long as a login may take they kept out everybody, and every request to cancel.
#[test]
fn regress_clients_that_say_nothing_keep_nobody_out() {
    let world = World::trusting_with(|settings| settings.login_timeout_seconds = 600);
    let mut silent: Vec<Raw> = (0..300).map(|_| Raw::new(world.address())).collect();
    let mut raw = Raw::new(world.address());
    let messages = raw.log_in("vellum");
    raw.send(&query("select pg_sleep(600)"));
    let key = &messages.last().unwrap().body;
    loop {
        let packet = [&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), key].concat();
        let mut canceller = Raw::new(world.address());
        canceller.send(&packet);
        assert!(canceller.until_end().is_empty());
        // It may have been asked before the statement began.
        let wait = std::time::Duration::from_millis(200);
        raw.socket.set_read_timeout(Some(wait)).unwrap();
        if raw.socket.peek(&mut [0]).is_ok() {
            break;
        }
    }
    raw.socket.set_read_timeout(Some(LONG)).unwrap();
    let answers = raw.until_ready();
    assert_eq!(answers.last().unwrap().sqlstate(), "57014");
    assert!(silent[0].until_end().is_empty(), "the oldest made way");
    raw.assert_alive();
}

#[test]
fn who_comes_from_where_no_rule_lets_anybody_in_is_told_at_once() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    let text =
        "host all all 10.0.0.0/8 trust\nhost all all 127.0.0.1/32 reject\nhost all all all trust\n";
    std::fs::write(rules.path(), text).unwrap();
    let world = World::new(|settings| settings.host_rules = rules.path().into());
    let mut raw = Raw::new(world.address());
    let told = raw.until_end();
    assert_eq!((told.len(), &*told[0].sqlstate()), (1, "28000"));
    let text = "no pg_hba.conf entry for host \"127.0.0.1\"";
    assert_eq!(told[0].field(b'M').as_deref(), Some(text));
}

#[test]
fn a_client_may_wait_for_an_empty_challenge_before_it_begins_its_proof() {
    use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
    let world = World::new(|_| {});
    let mut scram = ScramSha256::new(world.password().as_bytes(), ChannelBinding::unsupported());
    let mut raw = Raw::new(world.address());
    raw.send(&startup(&[("user", "vellum"), ("database", "vellum")]));
    assert_eq!(raw.receive().unwrap().kind, b'R');
    raw.send(&message(b'p', b"SCRAM-SHA-256\0\xff\xff\xff\xff"));
    let challenge = raw.receive().unwrap();
    assert_eq!(
        (challenge.kind, &*challenge.body),
        (b'R', &[0, 0, 0, 11][..])
    );
    raw.send(&message(b'p', scram.message()));
    scram.update(&raw.receive().unwrap().body[4..]).unwrap();
    raw.send(&message(b'p', scram.message()));
    raw.until_ready();
    raw.assert_alive();
}

/// An answer that comes at once would say that the password was not looked at, and could be asked for as often as one likes.
#[test]
fn a_proof_that_is_none_is_answered_as_late_as_a_wrong_one() {
    let delay = std::time::Duration::from_millis(100);
    let world = World::new(|settings| settings.login_failure_delay_ms = 100);
    let first = |data: &[u8]| {
        let mut body = b"SCRAM-SHA-256\0".to_vec();
        body.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
        body.extend_from_slice(data);
        message(b'p', &body)
    };
    for (messages, sqlstate) in [
        (vec![first(b"nonsense")], "08P01"),
        (
            vec![first(b"n,,n=,r=abc"), message(b'p', b"nonsense")],
            "08P01",
        ),
        (vec![message(b'p', b"nothing else")], "08P01"),
        (vec![message(b'Q', b"select 1\0")], "08P01"),
    ] {
        let mut raw = Raw::new(world.address());
        raw.send(&startup(&[("user", "vellum")]));
        let begun = std::time::Instant::now();
        for message in &messages {
            raw.receive().unwrap();
            raw.send(message);
        }
        assert_eq!(refused(&raw.until_end()), sqlstate);
        // It may come later than that, and never before.
        assert!(begun.elapsed() >= delay, "{messages:?}");
    }
}

#[test]
fn a_login_that_takes_too_long_is_over() {
    let world = World::new(|settings| settings.login_timeout_seconds = 1);
    let mut raw = Raw::new(world.address());
    raw.send(&startup(&[("user", "vellum")])[..6]);
    assert!(raw.until_end().is_empty());
    // Also one that goes on sending, a byte now and then.
    let mut slow = Raw::new(world.address());
    slow.socket
        .set_read_timeout(Some(std::time::Duration::from_millis(50)))
        .unwrap();
    let begun = std::time::Instant::now();
    // The length of a long packet, which then comes byte by byte.
    slow.send(&9_000u32.to_be_bytes());
    loop {
        let over = match slow.socket.read(&mut [0; 64]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        if over || slow.socket.write_all(&[0]).is_err() {
            break;
        }
        assert!(begun.elapsed() < LONG, "it goes on for ever");
    }
}
