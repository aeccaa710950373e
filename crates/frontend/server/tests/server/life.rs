//! Connections that pause, stay idle for too long, are cancelled; servers that stop.

use crate::support::{LONG, Raw, World, bind, execute, message, parse, query, sync};
use std::io::{Read, Write};
use std::net::TcpStream;

/// The value of a metric.
fn metric(world: &World, name: &str) -> u64 {
    metric_text(world, name).parse().unwrap()
}

fn metric_text(world: &World, name: &str) -> String {
    let page = get(world, "/metrics");
    let prefix = format!("vellum_{name} ");
    let line = page.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("{name} is not in {page}"))
        .to_owned()
}

fn get(world: &World, path: &str) -> String {
    let address = world.server.as_ref().unwrap().http_address().unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

fn with_http() -> World {
    World::trusting_with(|settings| settings.http = "127.0.0.1:0".into())
}

fn wait_until(what: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !what() {
        assert!(begun.elapsed() < LONG, "it never comes");
        std::thread::yield_now();
    }
}

#[test]
fn a_client_that_pauses_is_parked_and_goes_on_when_it_speaks() {
    let world = with_http();
    let mut clients: Vec<Raw> = (0..5).map(|_| world.raw()).collect();
    for _ in 0..3 {
        wait_until(|| metric(&world, "sessions_parked") == 5);
        for client in &mut clients {
            client.assert_alive();
        }
    }
    // Half a message is kept.
    clients[0].send(b"S\0\0");
    wait_until(|| metric(&world, "sessions_parked") == 5);
    clients[0].send(b"\0\x04");
    assert_eq!(clients[0].kinds(), "");
    drop(clients);
    wait_until(|| metric(&world, "sessions") == 0);
    assert_eq!(metric(&world, "sessions_parked"), 0);
}

#[test]
fn metrics_and_health_are_told() {
    let world = with_http();
    let mut raw = world.raw();
    raw.assert_alive();
    assert_eq!(metric(&world, "sessions"), 1);
    assert!(metric(&world, "received_bytes_total") >= 5);
    assert!(metric(&world, "pages_resident_max") > 0);
    assert!(get(&world, "/health").starts_with("HTTP/1.1 200"));
    assert!(get(&world, "/nothing").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_copy_and_what_stands_behind_it_count_when_they_are_over() {
    let world = with_http();
    let mut raw = world.raw();
    raw.send(&query("create table t (a int)"));
    raw.until_ready();
    let before = metric(&world, "statements_total");
    raw.send(&query(
        "copy t from stdin; copy t from stdin; select pg_sleep(0.2)",
    ));
    for answers in ["G", "CG"] {
        for kind in answers.bytes() {
            assert_eq!(raw.receive().unwrap().kind, kind);
        }
        assert_eq!(metric(&world, "statements_total"), before);
        raw.send(&[message(b'd', b"1\n"), message(b'c', b"")].concat());
    }
    assert_eq!(raw.kinds(), "CTDC");
    assert_eq!(metric(&world, "statements_total"), before + 1);
    let seconds: f64 = metric_text(&world, "statement_seconds_total")
        .parse()
        .unwrap();
    assert!(seconds >= 0.2, "{seconds}");
    // One that fails is over, too.
    raw.send(&query("copy t from stdin"));
    raw.receive().unwrap();
    raw.send(&message(b'f', b"\0"));
    assert_eq!(raw.kinds(), "E");
    assert_eq!(metric(&world, "statements_total"), before + 2);
}

#[test]
fn a_session_that_is_idle_for_too_long_ends() {
    let world = World::trusting_with(|settings| settings.idle_timeout_seconds = 1);
    let mut raw = world.raw();
    let end = raw.until_end();
    assert_eq!(end[0].sqlstate(), "57P05");
}

#[test]
fn a_session_sets_for_how_long_it_may_be_idle() {
    let world = World::trusting();
    let mut raw = world.raw();
    raw.send(&query(
        "set idle_in_transaction_session_timeout = 300; set idle_session_timeout = '1h'",
    ));
    raw.until_ready();
    raw.send(&query("begin"));
    raw.until_ready();
    let end = raw.until_end();
    assert_eq!(end[0].sqlstate(), "25P03");
}

#[test]
fn a_session_in_the_middle_of_a_pipeline_is_not_idle() {
    let world = with_http();
    let mut raw = world.raw();
    raw.send(&query(
        "set idle_session_timeout = 100; set idle_in_transaction_session_timeout = 100",
    ));
    raw.until_ready();
    let select = [parse("", "select 1"), bind("", ""), execute("")].concat();
    raw.send(&[select, message(b'H', b"")].concat());
    for kind in *b"12DC" {
        assert_eq!(raw.receive().unwrap().kind, kind);
    }
    wait_until(|| metric(&world, "sessions_parked") == 1);
    std::thread::sleep(std::time::Duration::from_millis(500));
    raw.assert_alive();
    // Now it is.
    assert_eq!(raw.until_end()[0].sqlstate(), "57P05");
}

#[test]
fn a_server_that_stops_tells_everybody() {
    let world = with_http();
    let mut parked = world.raw();
    wait_until(|| metric(&world, "sessions_parked") == 1);
    let mut talking = world.raw();
    talking.assert_alive();
    let address = world.address();
    world.stop();
    for raw in [&mut parked, &mut talking] {
        let end = raw.until_end();
        assert_eq!(end[0].sqlstate(), "57P01");
        assert_eq!(end[0].field(b'S').as_deref(), Some("FATAL"));
    }
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_request_to_cancel_gets_no_answer_and_does_no_harm() {
    let world = World::trusting();
    let mut raw = Raw::new(world.address());
    let messages = raw.log_in("vellum");
    let key = &messages.last().unwrap().body;
    for flip in [0u8, 1] {
        let mut packet = [&16u32.to_be_bytes()[..], &80_877_102u32.to_be_bytes(), key].concat();
        packet[15] ^= flip;
        let mut canceller = Raw::new(world.address());
        canceller.send(&packet);
        assert!(canceller.until_end().is_empty());
    }
    raw.assert_alive();
}

#[test]
fn hundreds_of_idle_clients_need_few_threads_and_slow_nobody() {
    let world = with_http();
    let mut active = world.raw();
    let mut idle: Vec<Raw> = (0..300).map(|_| world.raw()).collect();
    wait_until(|| metric(&world, "sessions_parked") >= 300);
    active.assert_alive();
    // Threads that wait for work end by themselves; what counts is that none is held.
    assert_eq!(metric(&world, "sessions"), 301);
    for client in &mut idle {
        client.assert_alive();
    }
}

/// Begins a COPY into `t` and sends a row.
fn begin_copy(raw: &mut Raw, extended: bool) {
    if extended {
        let all = [parse("", "copy t from stdin"), bind("", ""), execute("")].concat();
        raw.send(&[all, message(b'H', b"")].concat());
        assert_eq!(raw.receive().unwrap().kind, b'1');
        assert_eq!(raw.receive().unwrap().kind, b'2');
    } else {
        raw.send(&query("copy t from stdin"));
    }
    assert_eq!(raw.receive().unwrap().kind, b'G');
    raw.send(&message(b'd', b"1\n"));
}

#[test]
fn a_copy_whose_client_says_nothing_ends_when_it_is_cancelled_or_takes_too_long() {
    let world = with_http();
    let mut other = world.client();
    let mut raw = world.raw();
    raw.send(&query("create table t (a int)"));
    raw.until_ready();
    let cancel = "select pg_cancel_backend(pid) from pg_stat_activity where query like 'copy%' and state = 'active'";
    for (parked, extended, timeout) in [
        (true, false, false),
        (false, false, false),
        (true, true, false),
        (true, false, true),
        (true, true, true),
    ] {
        let ms = if timeout { 300 } else { 0 };
        raw.send(&query(&format!("set statement_timeout = {ms}")));
        raw.until_ready();
        begin_copy(&mut raw, extended);
        if parked && !timeout {
            // The other one and this one.
            wait_until(|| metric(&world, "sessions_parked") == 2);
        }
        if !timeout {
            assert_eq!(other.query(cancel, &[]).unwrap().len(), 1);
        }
        assert_eq!(raw.receive().unwrap().sqlstate(), "57014");
        // What the client still says of it is thrown away.
        raw.send(&[message(b'd', b"2\n"), message(b'c', b"")].concat());
        if extended {
            raw.send(&sync());
        }
        assert_eq!(raw.kinds(), "");
        raw.send(&query("select count(*) from t where a > 0"));
        let answers = raw.until_ready();
        assert!(answers[1].body.ends_with(b"0"), "{answers:?}");
    }
    // It is no idle session, and an administrator may end it all the same.
    raw.send(&query(
        "set statement_timeout = 0; set idle_session_timeout = 100",
    ));
    raw.until_ready();
    begin_copy(&mut raw, false);
    wait_until(|| metric(&world, "sessions_parked") == 2);
    std::thread::sleep(std::time::Duration::from_millis(400));
    raw.send(&[message(b'd', b"2\n"), message(b'c', b"")].concat());
    assert_eq!(raw.kinds(), "C");
    raw.send(&query("set idle_session_timeout = 0"));
    raw.until_ready();
    begin_copy(&mut raw, false);
    let terminate = cancel.replace("cancel", "terminate");
    assert_eq!(other.query(&terminate, &[]).unwrap().len(), 1);
    assert_eq!(raw.until_end()[0].sqlstate(), "57P01");
    let count = other.query_one("select count(*) from t", &[]).unwrap();
    assert_eq!(count.get::<_, i64>(0), 2, "what was committed");
}

#[test]
fn who_sends_half_a_request_takes_few_descriptors_and_leaves() {
    let world = with_http();
    let address = world.server.as_ref().unwrap().http_address().unwrap();
    let half: Vec<TcpStream> = (0..150)
        .map(|_| {
            let mut socket = TcpStream::connect(address).unwrap();
            socket.write_all(b"GET /me").unwrap();
            socket.set_read_timeout(Some(LONG)).unwrap();
            socket
        })
        .collect();
    // Clients of the database go on, and who asks is answered before all of them have gone.
    world.raw().assert_alive();
    assert!(get(&world, "/health").starts_with("HTTP/1.1 200"));
    // Each is told to leave when its time is over, or when the next one needs its room.
    for mut socket in half {
        let mut text = Vec::new();
        let read = socket.read_to_end(&mut text);
        assert!(
            read.is_ok()
                || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    assert!(get(&world, "/health").starts_with("HTTP/1.1 200"));
}

/// Symptom: its locks stayed for as long as a write may take, ten minutes.
#[test]
fn regress_a_client_that_does_not_read_is_ended_by_an_administrator() {
    let world = with_http();
    let mut other = world.client();
    other
        .batch_execute("create table t (a int); insert into t values (1)")
        .unwrap();
    let mut raw = world.raw();
    raw.send(&query("begin; update t set a = 2"));
    raw.until_ready();
    let sent = metric(&world, "sent_bytes_total");
    raw.send(&query(
        "select repeat('x', 100000) from generate_series(1, 2000)",
    ));
    // It is in the middle of its answer, and comes no further.
    wait_until(|| metric(&world, "sent_bytes_total") > sent + 100_000);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let sql = "select pg_terminate_backend(pid) from pg_stat_activity where query like '%repeat%' and pid <> pg_backend_pid()";
    assert_eq!(other.query(sql, &[]).unwrap().len(), 1);
    other
        .batch_execute("set lock_timeout = '60s'; update t set a = 3")
        .unwrap();
    wait_until(|| metric(&world, "sessions") == 1);
}
