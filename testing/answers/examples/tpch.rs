//! TPC-H at Vellum and at PostgreSQL 15 in turn: what the load and each query take.
//!
//! `cargo run --release -p vellum-answers --example tpch -- 200 3`: scale 0.2, queries three times (the median counts). One connection; the client
//! runs beside the server, and sends rows that it has made before. A query ends after a minute. Both have a pool of 1 GiB, 64 MiB of `work_mem`, and commit asynchronously;
//! PostgreSQL runs without fsync. The answers are compared by the tests, at scale 0.01.
// A program for measurements, not for users.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use postgres::Client;
use std::error::Error;
use std::io::Write;
use std::time::Instant;
use vellum_answers::{Own, Peer, answer};
use vellum_workload::tpch;

/// Seconds by name: of tables and of queries.
#[derive(Default)]
struct Times {
    tables: Vec<(&'static str, f64)>,
    queries: Vec<(u32, f64)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str, default: u32| match arguments.next() {
        Some(given) => given
            .parse()
            .map_err(|_| format!("{what}: {given:?} is no number")),
        None => Ok(default),
    };
    let thousandths = number("thousandths of scale 1", 100)?.max(1);
    let rounds = number("rounds", 3)?.max(1);
    println!("scale {}", f64::from(thousandths) / 1000.0);
    let rows = rows(thousandths);
    let folder = tempfile::tempdir()?;
    let own = {
        let server = Own::with_pool(folder.path(), 1024)?;
        run(&mut server.connect()?, &rows, thousandths, rounds)?
    };
    let options = "-c shared_buffers=1GB -c max_wal_size=16GB -c synchronous_commit=off";
    let peer = match Peer::with(options) {
        Some(server) => Some(run(&mut server.connect()?, &rows, thousandths, rounds)?),
        None => {
            eprintln!("PostgreSQL 15 is not installed: Vellum alone");
            None
        }
    };
    table(&own, peer.as_ref());
    Ok(())
}

/// The rows of each table, as text, in pieces.
fn rows(thousandths: u32) -> Vec<Vec<String>> {
    let population = tpch::Population::new(1, thousandths);
    let pieces = tpch::Table::ALL.map(|table| {
        let mut pieces = Vec::new();
        population.copy_text(table, 1 << 18, |text| pieces.push(text.to_owned()));
        pieces
    });
    pieces.into()
}

fn run(
    client: &mut Client,
    rows: &[Vec<String>],
    thousandths: u32,
    rounds: u32,
) -> Result<Times, Box<dyn Error>> {
    let mut times = Times::default();
    client.batch_execute(
        "SET synchronous_commit = off; SET work_mem = '64MB'; SET statement_timeout = '60s'",
    )?;
    for (table, pieces) in tpch::Table::ALL.into_iter().zip(rows) {
        client.batch_execute(table.definition())?;
        let start = Instant::now();
        let mut writer = client.copy_in(&format!("COPY {} FROM STDIN", table.name()))?;
        for piece in pieces {
            writer.write_all(piece.as_bytes())?;
        }
        writer.finish()?;
        let seconds = start.elapsed().as_secs_f64();
        times.tables.push((table.name(), seconds));
    }
    client.batch_execute("ANALYZE")?;
    for query in tpch::queries(thousandths) {
        eprintln!("query {}", query.number);
        let mut seconds = Vec::new();
        for _ in 0..rounds {
            client.batch_execute(query.before.unwrap_or_default())?;
            let start = Instant::now();
            let answered = answer(client, &query.text);
            let took = start.elapsed().as_secs_f64();
            // One that was ended counts with its minute.
            if took < 59.0 {
                answered?;
            }
            client.batch_execute(query.after.unwrap_or_default())?;
            seconds.push(took);
        }
        seconds.sort_by(f64::total_cmp);
        times
            .queries
            .push((query.number, seconds[seconds.len() / 2]));
    }
    Ok(times)
}

fn table(own: &Times, peer: Option<&Times>) {
    println!(
        "{:<12} {:>10} {:>10} {:>8}",
        "", "Vellum", "PostgreSQL", "times"
    );
    let line = |name: &str, own: f64, peer: Option<f64>| {
        let (peer, times) = match peer {
            Some(peer) => (format!("{:.1}", peer * 1e3), format!("{:.2}", peer / own)),
            None => ("-".into(), "-".into()),
        };
        println!("{name:<12} {:>10.1} {peer:>10} {times:>8}", own * 1e3);
    };
    for (at, (name, seconds)) in own.tables.iter().enumerate() {
        line(
            &format!("copy {name}"),
            *seconds,
            peer.map(|peer| peer.tables[at].1),
        );
    }
    let sum = |times: &Times| times.tables.iter().map(|(_, seconds)| seconds).sum::<f64>();
    line("copy all", sum(own), peer.map(sum));
    for (at, (number, seconds)) in own.queries.iter().enumerate() {
        line(
            &format!("query {number}"),
            *seconds,
            peer.map(|peer| peer.queries[at].1),
        );
    }
    let mean = |times: &Times| {
        let logs: f64 = times.queries.iter().map(|(_, seconds)| seconds.ln()).sum();
        (logs / times.queries.len() as f64).exp()
    };
    line("geometric", mean(own), peer.map(mean));
    println!("milliseconds");
}
