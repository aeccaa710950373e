//! Transfers, increments and a queue by SQL; judged as those of `vellum_clients`.
//!
//! Each is looked at, and changed, by statements that programs run and by others that go through the engine of general queries (windows, DISTINCT ON, changes
//! by a join), side by side in one history: both must see one snapshot.

use crate::Workload;
use crate::client::{Client, Gone, Result, Statements};
use crate::lists::pause;
use postgres::Client as Connection;
use vellum_base::random::Random;
use vellum_clients::Workload as _;
use vellum_clients::bank::{self, Bank, transfer_of};
use vellum_clients::client::Decision;
use vellum_clients::counter::{self, Counter};
use vellum_clients::queue::{self, Queue};
use vellum_history::{Event, Key, Level, Op};

fn text(name: &str) -> Key {
    Key::Text(name.into())
}

fn unsigned(number: i64) -> u64 {
    // A negative balance is one that was transferred away: as in the other bank.
    number as u64
}

/// Transfers between accounts.
#[derive(Clone, Copy, Debug)]
pub struct Transfers;

fn look_at_total(open: &mut Statements<'_>, random: &mut Random, done: &mut Vec<Op>) -> Result<()> {
    let total: u64 = match random.below(3) {
        0 => {
            let rows = open.query("select sum(balance)::bigint from balances", &[])?;
            unsigned(rows[0].get(0))
        }
        1 => {
            let sql = "select (sum(balance) over ())::bigint from balances limit 1";
            let rows = open.query(sql, &[])?;
            unsigned(rows[0].get(0))
        }
        _ => {
            let rows = open.query("select balance from balances order by id desc", &[])?;
            let balances = rows.iter().map(|row| unsigned(row.get(0)));
            balances.fold(0, u64::wrapping_add)
        }
    };
    done.push(Op::Read(text(bank::TOTAL), Some(vec![total])));
    Ok(())
}

impl Workload for Transfers {
    fn prepare(&self, connection: &mut Connection) -> std::result::Result<(), postgres::Error> {
        connection.batch_execute(&format!(
            "create table if not exists balances (id bigint primary key, balance bigint not null, filler text);
             create table if not exists transfers (number bigint primary key);
             insert into balances select g, {}, 'x' from generate_series(0, {}) g on conflict do nothing",
            bank::START,
            bank::ACCOUNTS - 1,
        ))
    }

    fn step(&self, client: &mut Client<'_>) -> Result<()> {
        let holds = client.number == 0;
        if client.random.chance(1, if holds { 2 } else { 8 }) {
            let looked =
                client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
                    look_at_total(open, random, done)?;
                    if holds {
                        pause(random);
                        look_at_total(open, random, done)?;
                    }
                    Ok(Decision::Commit)
                });
            return looked.map(drop);
        }
        let number = client.value();
        let op = Op::Append(text(bank::TRANSFERS), number);
        // One statement adds what it finds, so this is right under read committed, too.
        let level = match client.random.chance(1, 3) {
            true => Level::ReadCommitted,
            false => Level::Snapshot,
        };
        let moved = client.transact(level, false, vec![op.clone()], |open, random, done| {
            let (from, to, amount) = transfer_of(number);
            // In one order, or two sessions under read committed would wait for each other.
            let mut changes = [(from as i64, -(amount as i64)), (to as i64, amount as i64)];
            changes.sort_unstable();
            // A join has an order of its own, and changes a row once.
            if level == Level::Snapshot && random.chance(1, 2) {
                let sql = "update balances b set balance = b.balance + c.change \
                           from (values ($1::bigint, $2::bigint), ($3::bigint, $4::bigint)) c (id, change) \
                           where b.id = c.id";
                let [one, other] = &changes;
                let found = open.execute(sql, &[&one.0, &one.1, &other.0, &other.1])?;
                if found != 2 {
                    return Err(Gone::Wrong(format!("{found} of two accounts are there")));
                }
            } else {
                for (account, change) in changes {
                    let sql = "update balances set balance = balance + $2 where id = $1";
                    open.execute(sql, &[&account, &change])?;
                }
            }
            open.execute("insert into transfers values ($1)", &[&(number as i64)])?;
            done.push(op);
            Ok(Decision::Commit)
        });
        moved.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> Result<()> {
        let read = client.transact(Level::Snapshot, true, Vec::new(), |open, _, done| {
            let mut column = |sql, name| -> Result<()> {
                let rows = open.query(sql, &[])?;
                let numbers = rows.iter().map(|row| unsigned(row.get(0))).collect();
                done.push(Op::Read(text(name), Some(numbers)));
                Ok(())
            };
            column("select balance from balances order by id", bank::BALANCES)?;
            column(
                "select number from transfers order by number",
                bank::TRANSFERS,
            )?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        Bank.judge(events)
    }
}

/// Increments of one number.
#[derive(Clone, Copy, Debug)]
pub struct Increments;

fn look_at_count(open: &mut Statements<'_>, random: &mut Random, done: &mut Vec<Op>) -> Result<()> {
    let sql = match random.chance(1, 2) {
        true => "select n from counter where id = 1",
        false => "select distinct on (id) n from counter order by id",
    };
    let rows = open.query(sql, &[])?;
    let count = unsigned(rows[0].get(0));
    done.push(Op::Read(text(counter::TABLE), Some(vec![count])));
    Ok(())
}

impl Workload for Increments {
    fn prepare(&self, connection: &mut Connection) -> std::result::Result<(), postgres::Error> {
        connection.batch_execute(
            "create table if not exists counter (id int primary key, n bigint not null);
             insert into counter values (1, 0) on conflict do nothing",
        )
    }

    fn step(&self, client: &mut Client<'_>) -> Result<()> {
        let holds = client.number == 0;
        if client.random.chance(1, if holds { 2 } else { 6 }) {
            let looked =
                client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
                    look_at_count(open, random, done)?;
                    if holds {
                        pause(random);
                        look_at_count(open, random, done)?;
                    }
                    Ok(Decision::Commit)
                });
            return looked.map(drop);
        }
        let op = Op::Append(text(counter::TABLE), client.value());
        let way = client.random.below(5);
        let level = match way {
            0 | 1 => Level::ReadCommitted,
            _ => Level::Snapshot,
        };
        let added = client.transact(level, false, vec![op.clone()], |open, _, done| {
            if way == 2 {
                let rows = open.query("select n from counter where id = 1", &[])?;
                let next = rows[0].get::<_, i64>(0) + 1;
                open.execute("update counter set n = $1 where id = 1", &[&next])?;
            } else {
                let sql = match way {
                    0 | 3 => "update counter set n = n + 1 where id = 1",
                    _ => {
                        "update counter c set n = c.n + d.more from (values (1, 1)) d (id, more) where c.id = d.id"
                    }
                };
                let found = open.execute(sql, &[])?;
                if found != 1 {
                    return Err(Gone::Wrong(format!("{found} counters")));
                }
            }
            done.push(op);
            Ok(Decision::Commit)
        });
        added.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> Result<()> {
        let read = client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
            look_at_count(open, random, done)?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        Counter.judge(events)
    }
}

/// Elements that go into a queue and out of it.
#[derive(Clone, Copy, Debug)]
pub struct Elements;

fn look_at_queue(open: &mut Statements<'_>, random: &mut Random, done: &mut Vec<Op>) -> Result<()> {
    let (sql, forward) = match random.below(3) {
        0 => ("select id from queue order by id", true),
        1 => ("select id from queue order by id desc", false),
        _ => (
            "select id, row_number() over (order by id desc) from queue order by 2",
            false,
        ),
    };
    let rows = open.query(sql, &[])?;
    let mut elements: Vec<u64> = rows.iter().map(|row| unsigned(row.get(0))).collect();
    if !forward {
        elements.reverse();
    }
    done.push(Op::Read(text(queue::TABLE), Some(elements)));
    Ok(())
}

impl Workload for Elements {
    fn prepare(&self, connection: &mut Connection) -> std::result::Result<(), postgres::Error> {
        connection.batch_execute(
            "create table if not exists queue (id bigint primary key, filler text not null)",
        )
    }

    fn step(&self, client: &mut Client<'_>) -> Result<()> {
        let holds = client.number == 0;
        if client.random.chance(1, if holds { 2 } else { 10 }) {
            let looked =
                client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
                    look_at_queue(open, random, done)?;
                    if holds {
                        pause(random);
                        look_at_queue(open, random, done)?;
                    }
                    Ok(Decision::Commit)
                });
            return looked.map(drop);
        }
        let level = match client.random.chance(1, 3) {
            true => Level::ReadCommitted,
            false => Level::Snapshot,
        };
        if client.values_drawn() < 10 || client.random.chance(1, 2) {
            let element = client.value();
            let op = Op::Append(text(queue::IN), element);
            let put = client.transact(level, false, vec![op.clone()], |open, random, done| {
                let filler = "x".repeat(random.below(200) as usize);
                let sql = "insert into queue values ($1, $2)";
                open.execute(sql, &[&(element as i64), &filler])?;
                done.push(op);
                Ok(Decision::Commit)
            });
            return put.map(drop);
        }
        let announced = vec![Op::Read(text(queue::OUT), None)];
        let took = client.transact(level, false, announced, |open, random, done| {
            if random.chance(1, 3) {
                let sql = "delete from queue q using (select id from queue order by id limit 1) f \
                           where q.id = f.id returning q.id";
                let rows = open.query(sql, &[])?;
                let took = rows.iter().map(|row| unsigned(row.get(0)));
                done.extend(took.map(|id| Op::Append(text(queue::OUT), id)));
                return Ok(Decision::Commit);
            }
            let rows = open.query("select id from queue order by id limit 1", &[])?;
            if let Some(row) = rows.first() {
                let id: i64 = row.get(0);
                if open.execute("delete from queue where id = $1", &[&id])? == 1 {
                    done.push(Op::Append(text(queue::OUT), unsigned(id)));
                }
            }
            Ok(Decision::Commit)
        });
        took.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> Result<()> {
        let read = client.transact(Level::Snapshot, true, Vec::new(), |open, random, done| {
            look_at_queue(open, random, done)?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        Queue.judge(events)
    }
}
