//! Lists that are appended to and read by SQL; the history checker judges, with the order of real time (`vellum_clients::list`).
//!
//! How a list lies in tables follows from its key:
//!
//! | style | table | an append |
//! | --- | --- | --- |
//! | text | a row a list | `UPDATE … SET v = v || …`, one statement: also under read committed |
//! | rows | a row an element | the last number is read, the next inserted |
//! | indexed | a row a list, an index by a bucket and a unique one by the last value | as text; moves the row in both indexes |
//!
//! Some reads and appends go through the engine of general queries (right joins, windows, DISTINCT ON, changes by a join), beside those that programs run.
//!
//! Not checked: that a plan uses an index (`EXPLAIN`'s own tests).

use crate::Workload;
use crate::client::{Client, Gone, Result, Statements};
use postgres::Client as Connection;
use vellum_base::random::Random;
use vellum_clients::Workload as _;
use vellum_clients::client::Decision;
use vellum_clients::intent::{Appends, Scheme, Shape, read_all};
use vellum_history::{Event, Level};

/// Appends of a session to a window of lists, for each of them, before there are new ones.
const APPENDS: u64 = 20;
const BUCKETS: u64 = 8;
/// Keys of a life do not come again in another.
const KEYS_A_LIFE: u64 = 1 << 20;

const TABLES: &str = "\
create table if not exists lists_text (k bigint primary key, v text not null);
create table if not exists lists_rows (k bigint, n bigint, v bigint not null, primary key (k, n));
create table if not exists lists_indexed (k bigint primary key, bucket bigint not null, last bigint not null unique, v text not null);
create index if not exists lists_by_bucket on lists_indexed (bucket);";

/// A workload of lists.
#[derive(Clone, Copy, Debug)]
pub struct Lists(Scheme);

impl Lists {
    fn new(shape: Shape, window: u64, appends: u64) -> Self {
        Self(Scheme {
            shape,
            window,
            appends,
        })
    }

    /// Three lists at a time, one of each style.
    pub fn few() -> Self {
        Self::new(Shape::Mixed, 3, APPENDS)
    }

    /// Forty lists at a time.
    pub fn many() -> Self {
        Self::new(Shape::Mixed, 40, APPENDS)
    }

    /// Four lists at a time, each appended to by transactions that do nothing else.
    pub fn forks() -> Self {
        Self::new(Shape::Forks, 4, APPENDS)
    }

    /// Groups of four lists; a list gets a value if the group has none.
    pub fn skews() -> Self {
        Self::new(Shape::Skews, 4, 1)
    }
}

impl Appends for Statements<'_> {
    type Error = Gone;

    fn append(&mut self, random: &mut Random, key: u64, value: u64) -> Result<bool> {
        append(self, random, key, value).map(|()| true)
    }

    fn append_and_revert(&mut self, random: &mut Random, key: u64, value: u64) -> Result<()> {
        self.execute("savepoint s", &[])?;
        append(self, random, key, value)?;
        self.execute("rollback to savepoint s", &[])?;
        Ok(())
    }

    fn read(&mut self, random: &mut Random, key: u64) -> Result<Vec<u64>> {
        read(self, random, key)
    }

    fn read_range(&mut self, random: &mut Random, first: u64, count: u64) -> Result<Vec<Vec<u64>>> {
        read_range(self, random, first, count)
    }

    fn wait(&mut self, random: &mut Random) {
        pause(random);
    }
}

/// Says nothing for a while: others go on.
pub(crate) fn pause(random: &mut Random) {
    std::thread::sleep(std::time::Duration::from_micros(random.between(100, 3_000)));
}

/// How a list lies in tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    Text,
    Rows,
    Indexed,
}

impl Style {
    fn of(key: u64) -> Self {
        match key % 3 {
            0 => Self::Text,
            1 => Self::Rows,
            _ => Self::Indexed,
        }
    }
}

fn append(open: &mut Statements<'_>, random: &mut Random, key: u64, value: u64) -> Result<()> {
    let (k, v, text) = (key as i64, value as i64, format!(",{value}"));
    let bucket = (value % BUCKETS) as i64;
    match Style::of(key) {
        Style::Text => {
            let sql = match random.chance(1, 2) {
                true => "update lists_text set v = v || $2 where k = $1",
                false => {
                    "update lists_text t set v = t.v || w.more from (values ($1::bigint, $2::text)) w (k, more) \
                     where t.k = w.k"
                }
            };
            if open.execute(sql, &[&k, &text])? == 0 {
                open.execute("insert into lists_text values ($1, $2)", &[&k, &text])?;
            }
        }
        Style::Rows => {
            let last = open.query("select max(n) from lists_rows where k = $1", &[&k])?;
            let last: Option<i64> = last[0].get(0);
            let next = last.map_or(0, |last| last + 1);
            open.execute(
                "insert into lists_rows values ($1, $2, $3)",
                &[&k, &next, &v],
            )?;
        }
        Style::Indexed => {
            let sql = "update lists_indexed set v = v || $2, bucket = $3, last = $4 where k = $1";
            if open.execute(sql, &[&k, &text, &bucket, &v])? == 0 {
                let sql = "insert into lists_indexed (k, v, bucket, last) values ($1, $2, $3, $4)";
                open.execute(sql, &[&k, &text, &bucket, &v])?;
            }
        }
    }
    Ok(())
}

/// The values in `,1,2,3`.
fn values(text: &str) -> Result<Vec<u64>> {
    let number = |text: &str| {
        let wrong = |_| Gone::Wrong(format!("{text} is no value"));
        text.parse().map_err(wrong)
    };
    text.split(',').skip(1).map(number).collect()
}

fn read(open: &mut Statements<'_>, random: &mut Random, key: u64) -> Result<Vec<u64>> {
    let k = key as i64;
    match Style::of(key) {
        Style::Text => {
            let sql = match random.chance(1, 2) {
                true => "select v from lists_text where k = $1",
                false => {
                    "select t.v from lists_text t right join (values ($1::bigint)) w (k) on t.k = w.k"
                }
            };
            let rows = open.query(sql, &[&k])?;
            let text: Option<&str> = rows.first().and_then(|row| row.get(0));
            text.map_or(Ok(Vec::new()), values)
        }
        Style::Rows => {
            let (sql, forward) = match random.below(3) {
                0 => ("select n, v from lists_rows where k = $1 order by n", true),
                1 => (
                    "select n, v from lists_rows where k = $1 order by n desc",
                    false,
                ),
                _ => (
                    "select n, max(v) over (partition by n) from lists_rows where k = $1 order by n",
                    true,
                ),
            };
            let mut rows = open.query(sql, &[&k])?;
            if !forward {
                rows.reverse();
            }
            let mut list = Vec::new();
            for (at, row) in (0_i64..).zip(&rows) {
                let (n, v): (i64, i64) = (row.get(0), row.get(1));
                if n != at {
                    return Err(Gone::Wrong(format!("list {key} has row {n} at place {at}")));
                }
                list.push(v as u64);
            }
            Ok(list)
        }
        Style::Indexed => read_indexed(open, random, key),
    }
}

/// The rows of every table that a predicate on their key names: a range of the key, or a condition that no index helps with.
fn read_range(
    open: &mut Statements<'_>,
    random: &mut Random,
    first: u64,
    count: u64,
) -> Result<Vec<Vec<u64>>> {
    let predicate = match random.chance(1, 2) {
        true => "k between $1 and $2",
        false => "k + 0 >= $1 and not k > $2",
    };
    let (low, high) = (first as i64, (first + count - 1) as i64);
    let mut lists = vec![Vec::new(); count as usize];
    for table in ["lists_text", "lists_indexed"] {
        let sql = format!("select k, v from {table} where {predicate}");
        for row in open.query(&sql, &[&low, &high])? {
            lists[(row.get::<_, i64>(0) - low) as usize].extend(values(row.get(1))?);
        }
    }
    let sql = format!("select k, n, v from lists_rows where {predicate} order by k, n");
    for row in open.query(&sql, &[&low, &high])? {
        let (k, n, v): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
        let list = &mut lists[(k - low) as usize];
        if n as usize != list.len() {
            let place = list.len();
            return Err(Gone::Wrong(format!(
                "list {k} has row {n} at place {place}"
            )));
        }
        list.push(v as u64);
    }
    Ok(lists)
}

fn read_indexed(open: &mut Statements<'_>, random: &mut Random, key: u64) -> Result<Vec<u64>> {
    let sql = match random.chance(1, 2) {
        true => "select v, bucket, last from lists_indexed where k = $1",
        false => {
            "select distinct on (k) v, bucket, last from lists_indexed where k = $1 order by k"
        }
    };
    let rows = open.query(sql, &[&(key as i64)])?;
    let row = rows.first().map(|row| {
        let (v, bucket, last): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        (v, bucket, last)
    });
    let list = row.as_ref().map_or(Ok(Vec::new()), |row| values(&row.0))?;
    if let (Some((_, bucket, last)), true) = (&row, open.snapshot) {
        // What its entries say, in the same snapshot; and that it is at no other place.
        let by_bucket = random.chance(1, 2);
        let (sql, at) = match by_bucket {
            true => ("select k, v from lists_indexed where bucket = $1", *bucket),
            false => ("select k, v from lists_indexed where last = $1", *last),
        };
        let mut found = Vec::new();
        for row in open.query(sql, &[&at])? {
            if row.get::<_, i64>(0) == key as i64 {
                found.push(values(row.get(1))?);
            }
        }
        let elsewhere = open.query(
            "select count(*) from lists_indexed where k = $1 and bucket <> $2",
            &[&(key as i64), bucket],
        )?;
        if found != [list.clone()] || elsewhere[0].get::<_, i64>(0) != 0 {
            return Err(Gone::Wrong(format!(
                "list {key} is {list:?}, an index says {found:?}"
            )));
        }
    }
    Ok(list)
}

impl Workload for Lists {
    fn prepare(&self, connection: &mut Connection) -> std::result::Result<(), postgres::Error> {
        connection.batch_execute(TABLES)
    }

    fn step(&self, client: &mut Client<'_>) -> Result<()> {
        let Self(scheme) = self;
        // Sessions draw values about equally fast, so they meet.
        let base = client.life() * KEYS_A_LIFE + scheme.base(client.values_drawn());
        let blind = scheme.shape == Shape::Mixed && client.number == 1;
        let intent = if client.number == 0 && client.random.chance(1, 3) {
            scheme.hold(base, 8, 3)
        } else {
            let may = |key| !blind || Style::of(key) != Style::Rows;
            client.draw(|random, session, value| scheme.draw(random, session, base, value, may))
        };
        let level = match blind {
            true => Level::ReadCommitted,
            false => Level::Snapshot,
        };
        let done = client.transact(
            level,
            intent.only_reads(),
            intent.announced(),
            |open, random, done| intent.run(open, random, done),
        );
        done.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, events: &[Event]) -> Result<()> {
        let done = client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
            read_all(open, random, events, done)?;
            Ok(Decision::Commit)
        });
        done.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        // What is judged is the history, whatever the workload was.
        vellum_clients::list::Lists::few().judge(events)
    }
}
