//! `load`: many rows in one transaction.

use crate::cli::{Load, OrderName};
use crate::control::{Control, Counters};
use crate::measure::{Client, Limit, Plan, measure};
use crate::report::Summary;
use crate::{Context, Failure, interrupt, kv};
use std::io::Write;
use vellum_workload::engine::{Engine, Result as EngineResult, Session};
use vellum_workload::kv::{IDLE, Order, TABLES, load, shape};

/// How often a load is tried that is alone and loses conflicts all the same: some engines tell one that is too large for their memory so.
const ATTEMPTS_MAX: u32 = 3;

pub(crate) fn run<E: Engine>(
    engine: &mut E,
    arguments: &Load,
    context: &Context<'_>,
    summary: &mut Summary,
    lines: &mut dyn Write,
) -> Result<(), Failure> {
    engine
        .ensure_tables(TABLES)
        .map_err(Failure::engine("create the tables"))?;
    let engine = &*engine;
    let mut session = engine
        .open_session()
        .map_err(Failure::engine("open a session"))?;
    let there = shape(&mut session).map_err(Failure::engine("look at the rows"))?;
    drop(session);
    let holds = |what: &str| {
        let data = context.settings.data.display();
        Failure::Usage(format!("{data} holds {what}"))
    };
    let (count, size) = match there {
        None if context.common.check => return Err(holds("no rows")),
        Some(_) if context.common.check => arguments.rows.shape(there),
        Some((found, _)) => {
            return Err(holds(&format!("{found} rows already: give another --data")));
        }
        None => arguments.rows.shape(None),
    };
    let order = match arguments.order {
        OrderName::Sorted => Order::Sorted,
        OrderName::Shuffled => Order::Shuffled,
        OrderName::Inserted => Order::Inserted,
    };
    let settings = &mut summary.settings;
    settings.insert("rows".to_owned(), count.to_string());
    settings.insert("value_size".to_owned(), size.to_string());
    settings.insert("order".to_owned(), format!("{order:?}").to_lowercase());

    if !context.common.check {
        // One transaction of one thread, however long it takes.
        summary.one_thread();
        let plan = Plan {
            classes: &["load"],
            threads: 1,
            limit: Limit::Operations(1),
            timed_every: 1,
            idle_row: context.common.idle_writer.then_some((IDLE, kv::IDLE_KEY)),
            hold: None,
            counted: None,
            directory: &context.settings.data,
        };
        let control = Control::new(1);
        let measured = measure(
            engine,
            &plan,
            &control,
            |_, thread, control| Ok(loader(control, thread, count, size, order)),
            context.on_sample(lines),
        )?;
        summary.measured(measured);
        if summary.interrupted && summary.transactions == 0 {
            return Err(Failure::Interrupted);
        }
        summary.loaded(count);
    }
    if !context.common.no_check {
        context.check(summary, || {
            let found = kv::verify(engine, size)?;
            // A load updates nothing; what somebody did since is no mistake of it.
            let updates = if context.common.check {
                found.updates
            } else {
                0
            };
            Ok(kv::violations(found, count, updates))
        })?;
    }
    Ok(())
}

fn loader(control: &Control, thread: u32, rows: u64, size: usize, order: Order) -> Loader<'_> {
    Loader {
        counters: control.counters(thread),
        rows,
        size,
        order,
    }
}

struct Loader<'c> {
    counters: &'c Counters,
    rows: u64,
    size: usize,
    order: Order,
}

impl Client for Loader<'_> {
    fn draw(&mut self) -> usize {
        0
    }

    fn attempt<S: Session>(&mut self, session: &mut S, _now: u64) -> EngineResult<bool> {
        let mut before = 0;
        load(session, self.rows, self.size, self.order, |so_far| {
            self.counters.add_rows(so_far - before);
            before = so_far;
            interrupt::proceed()
        })?;
        Ok(true)
    }

    fn attempts_max(&self) -> Option<u32> {
        Some(ATTEMPTS_MAX)
    }
}
