//! Transfers, increments and a queue by SQL; judged as those of `vellum_clients`.

use crate::Workload;
use crate::client::{Client, Result, Statements};
use crate::lists::pause;
use postgres::Client as Connection;
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

fn look_at_total(open: &mut Statements<'_>, by_sum: bool, done: &mut Vec<Op>) -> Result<()> {
    let total: u64 = if by_sum {
        let rows = open.query("select sum(balance)::bigint from balances", &[])?;
        unsigned(rows[0].get(0))
    } else {
        let rows = open.query("select balance from balances order by id desc", &[])?;
        let balances = rows.iter().map(|row| unsigned(row.get(0)));
        balances.fold(0, u64::wrapping_add)
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
                    look_at_total(open, random.chance(1, 2), done)?;
                    if holds {
                        pause(random);
                        look_at_total(open, random.chance(1, 2), done)?;
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
        let moved = client.transact(level, false, vec![op.clone()], |open, _, done| {
            let (from, to, amount) = transfer_of(number);
            // In one order, or two sessions under read committed would wait for each other.
            let mut changes = [(from as i64, -(amount as i64)), (to as i64, amount as i64)];
            changes.sort_unstable();
            for (account, change) in changes {
                let sql = "update balances set balance = balance + $2 where id = $1";
                open.execute(sql, &[&account, &change])?;
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

fn look_at_count(open: &mut Statements<'_>, done: &mut Vec<Op>) -> Result<()> {
    let rows = open.query("select n from counter where id = 1", &[])?;
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
                    look_at_count(open, done)?;
                    if holds {
                        pause(random);
                        look_at_count(open, done)?;
                    }
                    Ok(Decision::Commit)
                });
            return looked.map(drop);
        }
        let op = Op::Append(text(counter::TABLE), client.value());
        let way = client.random.below(3);
        let level = match way {
            0 => Level::ReadCommitted,
            _ => Level::Snapshot,
        };
        let added = client.transact(level, false, vec![op.clone()], |open, _, done| {
            if way == 2 {
                let rows = open.query("select n from counter where id = 1", &[])?;
                let next = rows[0].get::<_, i64>(0) + 1;
                open.execute("update counter set n = $1 where id = 1", &[&next])?;
            } else {
                open.execute("update counter set n = n + 1 where id = 1", &[])?;
            }
            done.push(op);
            Ok(Decision::Commit)
        });
        added.map(drop)
    }

    fn read_all(&self, client: &mut Client<'_>, _: &[Event]) -> Result<()> {
        let read = client.transact(Level::Snapshot, true, Vec::new(), |open, _, done| {
            look_at_count(open, done)?;
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

fn look_at_queue(open: &mut Statements<'_>, forward: bool, done: &mut Vec<Op>) -> Result<()> {
    let sql = match forward {
        true => "select id from queue order by id",
        false => "select id from queue order by id desc",
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
                    look_at_queue(open, random.chance(1, 2), done)?;
                    if holds {
                        pause(random);
                        look_at_queue(open, random.chance(1, 2), done)?;
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
        let took = client.transact(level, false, announced, |open, _, done| {
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
        let read = client.transact(Level::Snapshot, true, Vec::new(), |open, _, done| {
            look_at_queue(open, true, done)?;
            Ok(Decision::Commit)
        });
        read.map(drop)
    }

    fn judge(&self, events: Vec<Event>) -> std::result::Result<String, String> {
        Queue.judge(events)
    }
}
