//! A client: draws a transaction, runs it on a session, as often as it takes.

use super::input::{Generator, Home, Input, Who};
use super::population::{LOADER_TERMINAL, Population, next_history_number};
use super::random::Constants;
use super::schema::*;
use super::{Kind, delivery, new_order, order_status, payment, stock_level};
use crate::engine::{Direction, EngineError, Result, Session};
use vellum_base::random::Random;

/// How a transaction ended that needs no other attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It rolled itself back, as one new-order in a hundred does.
    RolledBack,
}

/// One client of a database that is completely loaded.
#[derive(Debug)]
pub struct Terminal {
    generator: Generator,
    input: Input,
    id: u32,
    history_number: u64,
    scratch: Scratch,
}

/// Buffers that live as long as the terminal, so that no transaction allocates.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Customers of one last name, or items of the last orders.
    pub(super) numbers: Vec<u32>,
    /// Sum of what was read for no other purpose than to have been read.
    pub(super) seen: u64,
}

impl Terminal {
    /// The terminal `id` (from 1) of a run with `seed`. Its input follows from the seed, its id
    /// and the population; its history goes on behind what an earlier run has written.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::Unusable`] if the load is not complete.
    pub fn new<S: Session>(
        session: &mut S,
        population: &Population,
        id: u32,
        seed: u64,
        home: Home,
    ) -> Result<Self> {
        assert!(id != LOADER_TERMINAL, "terminals count from 1");
        if !population.is_complete() {
            return Err(EngineError::Unusable(format!(
                "only {} of {} warehouses are loaded",
                population.loaded, population.scale.warehouses
            )));
        }
        let constants = Constants::for_run(seed, population.c_last);
        let random = Random::new(seed ^ u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut generator = Generator::new(random, population.scale, constants, home);
        Ok(Self {
            input: generator.draw(),
            generator,
            id,
            history_number: next_history_number(session, id)?,
            scratch: Scratch::default(),
        })
    }

    /// Draws the next transaction of the mix.
    #[inline]
    pub fn draw(&mut self) -> Kind {
        self.input = self.generator.draw();
        self.input.kind()
    }

    /// Draws the next transaction of one kind.
    pub fn draw_kind(&mut self, kind: Kind) {
        self.input = self.generator.draw_kind(kind);
    }

    /// What was drawn last.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// Runs the transaction that was drawn, once, at the date `now` (microseconds of the epoch).
    /// After an error it is rolled back; a retryable one may be attempted again.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::WrongData`] if a row is missing.
    pub fn attempt<S: Session>(&mut self, session: &mut S, now: u64) -> Result<Outcome> {
        let scratch = &mut self.scratch;
        let attempted = match self.input {
            Input::NewOrder {
                w,
                d,
                c,
                ref lines,
                count,
            } => {
                let lines = &lines[..usize::from(count)];
                new_order::run(session, w, d, c, lines, now, scratch)
            }
            Input::Payment {
                w,
                d,
                c_w,
                c_d,
                who,
                amount,
            } => {
                let payment = payment::Payment {
                    w,
                    d,
                    c_w,
                    c_d,
                    who,
                    amount,
                    now,
                    history: history_key(self.id, self.history_number),
                };
                payment::run(session, &payment, scratch).map(|()| Outcome::Committed)
            }
            Input::OrderStatus { w, d, who } => {
                order_status::run(session, w, d, who, scratch).map(|_| Outcome::Committed)
            }
            Input::Delivery { w, carrier } => {
                delivery::run(session, w, carrier, now).map(|()| Outcome::Committed)
            }
            Input::StockLevel { w, d, threshold } => {
                stock_level::run(session, w, d, threshold, scratch).map(|_| Outcome::Committed)
            }
        };
        match attempted {
            Ok(outcome) => {
                if matches!(self.input, Input::Payment { .. }) {
                    self.history_number += 1;
                }
                Ok(outcome)
            }
            Err(error) => {
                session.rollback()?;
                Err(error)
            }
        }
    }
}

/// Turns a last name into the customer in the middle of all who have it, sorted by first name
/// (clause 2.5.2.2: position n/2, rounded up).
pub(super) fn find_customer<S: Session>(
    session: &mut S,
    w: u32,
    d: u8,
    who: Who,
    numbers: &mut Vec<u32>,
) -> Result<u32> {
    let last = match who {
        Who::Id(c) => return Ok(c),
        Who::Last(last) => last,
    };
    let prefix = name_prefix(w, d, last);
    numbers.clear();
    session.scan(CUSTOMER_BY_NAME, &prefix, Direction::Forward, |key, _| {
        let same = key.starts_with(&prefix);
        if same {
            numbers.extend(last_number(key));
        }
        same
    })?;
    match numbers.len() {
        0 => Err(EngineError::missing(CUSTOMER_BY_NAME)),
        count => Ok(numbers[count.div_ceil(2) - 1]),
    }
}
