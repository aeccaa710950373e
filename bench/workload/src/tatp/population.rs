//! The population: a transaction for every hundred thousand subscribers, each table sorted.
//!
//! What belongs to a subscriber follows from the seed and its identifier alone ([`Person`]), so the same seed gives the same
//! database whatever happened on the way, and the checker can tell what every row must be that no transaction changes.
//!
//! Crash: each transaction also counts up [`meta::LOADED`]. A load that was interrupted goes on behind the last subscribers whose
//! commit survived; a database whose count is short is never measured.

use super::schema::*;
use crate::engine::{EngineError, Result, Session, TxOptions};
use crate::field::Text;
use vellum_base::random::Random;

/// Version of keys and rows.
const LAYOUT_VERSION: u32 = 1;
/// Subscribers of one transaction of the load.
const BATCH: u32 = 100_000;

/// What the description row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// How many subscribers there are to be; their identifiers count from 1.
    pub subscribers: u32,
    /// How many are loaded.
    pub loaded: u32,
    /// What everything follows from.
    pub seed: u64,
}

impl Population {
    /// A population that follows from `seed`, of which nothing is loaded.
    pub fn new(subscribers: u32, seed: u64) -> Self {
        Self {
            subscribers,
            loaded: 0,
            seed,
        }
    }

    /// True if every subscriber is loaded.
    pub fn is_complete(&self) -> bool {
        self.loaded == self.subscribers
    }

    /// Rows of all tables together, on average: for a progress bar.
    pub fn rows(&self) -> u64 {
        // Itself and its number; 2.5 accesses; 2.5 facilities with 1.5 forwardings each.
        u64::from(self.subscribers) * (2 * 4 + 10 + 10 + 15) / 4
    }

    /// What the database says about itself; none if nothing was loaded.
    ///
    /// # Errors
    /// Whatever the engine reports; [`EngineError::Unusable`] for another version of the layout.
    pub fn read<S: Session>(session: &mut S) -> Result<Option<Self>> {
        let mut row = Vec::new();
        session.begin(TxOptions::READ_ONLY)?;
        let found = session.get(META, META_KEY, &mut row);
        session.rollback()?;
        if found? {
            Self::decode(&row).map(Some)
        } else {
            Ok(None)
        }
    }

    fn decode(row: &[u8]) -> Result<Self> {
        if row.len() != meta::LENGTH || meta::VERSION.get(row) != LAYOUT_VERSION {
            return Err(EngineError::Unusable(
                "the data directory holds TATP in another layout".to_owned(),
            ));
        }
        Ok(Self {
            subscribers: meta::SUBSCRIBERS.get(row),
            loaded: meta::LOADED.get(row),
            seed: meta::SEED.get(row),
        })
    }

    fn encode(&self) -> [u8; meta::LENGTH] {
        let mut row = [0; meta::LENGTH];
        meta::VERSION.set(&mut row, LAYOUT_VERSION);
        meta::SUBSCRIBERS.set(&mut row, self.subscribers);
        meta::LOADED.set(&mut row, self.loaded);
        meta::SEED.set(&mut row, self.seed);
        row
    }

    /// What is loaded for subscriber `s`.
    pub fn person(&self, s: u32) -> Person {
        Person::new(self.seed, s)
    }
}

/// A set of up to eight small numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Set(u8);

impl Set {
    /// `count` of the numbers below `of`, each set equally likely.
    fn draw(random: &mut Random, count: u8, of: u8) -> Self {
        let mut set = 0_u8;
        while set.count_ones() < u32::from(count) {
            set |= 1 << random.below(of.into());
        }
        Self(set)
    }

    /// True if `number` is in it.
    #[inline]
    pub fn has(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }

    /// Adds `number`.
    #[inline]
    pub fn add(&mut self, number: u8) {
        self.0 |= 1 << number;
    }

    /// How many numbers are in it.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// A subscriber of the population: which rows it has and what is in them.
#[derive(Clone, Copy, Debug)]
pub struct Person {
    s: u32,
    /// Types of its access infos, less one.
    pub accesses: Set,
    /// Types of its special facilities, less one.
    pub facilities: Set,
    /// Positions in [`START_TIMES`] at which calls to each facility are forwarded, by its type less one.
    pub forwardings: [Set; TYPES as usize],
    /// What the contents of all rows follow from.
    contents: u64,
}

impl Person {
    fn new(seed: u64, s: u32) -> Self {
        let mut random = Random::new(seed ^ u64::from(s).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut some = |least: u64, most: u64, of: u8| {
            let count = random.between(least, most) as u8;
            Set::draw(&mut random, count, of)
        };
        let accesses = some(1, 4, TYPES);
        let facilities = some(1, 4, TYPES);
        let mut forwardings = [Set::default(); TYPES as usize];
        for kind in (0..TYPES).filter(|&kind| facilities.has(kind)) {
            forwardings[usize::from(kind)] = some(0, 3, START_TIMES.len() as u8);
        }
        Self {
            s,
            accesses,
            facilities,
            forwardings,
            contents: random.next_u64(),
        }
    }

    /// The random sequence of one of its rows.
    fn random(&self, table: crate::engine::Table, part: u8) -> Random {
        let row = ((table.position() as u64) << 8) | u64::from(part);
        Random::new(self.contents ^ row.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Its row.
    pub fn subscriber(&self) -> [u8; subscriber::LENGTH] {
        let mut random = self.random(SUBSCRIBER, 0);
        let mut row = [0; subscriber::LENGTH];
        subscriber::VLR_LOCATION.set(&mut row, location(&mut random));
        subscriber::MSC_LOCATION.set(&mut row, location(&mut random));
        subscriber::BIT_1.set(&mut row, random.below(2) as u8);
        for (column, most) in [(subscriber::BITS, 2), (subscriber::HEXES, 16)] {
            for byte in column.get_mut(&mut row) {
                *byte = random.below(most) as u8;
            }
        }
        random.fill(subscriber::BYTES.get_mut(&mut row));
        subscriber::SUB_NBR.set(&mut row, &number(self.s));
        row
    }

    /// Its access info of one type.
    pub fn access(&self, kind: u8) -> [u8; access_info::LENGTH] {
        let mut random = self.random(ACCESS_INFO, kind);
        let mut row = [0; access_info::LENGTH];
        access_info::DATA1.set(&mut row, random.below(256) as u8);
        access_info::DATA2.set(&mut row, random.below(256) as u8);
        capitals(&mut random, &mut row, access_info::DATA3);
        capitals(&mut random, &mut row, access_info::DATA4);
        row
    }

    /// Its special facility of one type.
    pub fn facility(&self, kind: u8) -> [u8; special_facility::LENGTH] {
        let mut random = self.random(SPECIAL_FACILITY, kind);
        let mut row = [0; special_facility::LENGTH];
        special_facility::IS_ACTIVE.set(&mut row, u8::from(random.chance(85, 100)));
        special_facility::ERROR_CNTRL.set(&mut row, random.below(256) as u8);
        special_facility::DATA_A.set(&mut row, random.below(256) as u8);
        capitals(&mut random, &mut row, special_facility::DATA_B);
        row
    }

    /// The call forwarding of one of its facilities that starts at one hour: it lasts one to eight hours.
    pub fn forwarding(&self, kind: u8, start: u8) -> [u8; call_forwarding::LENGTH] {
        let mut random = self.random(CALL_FORWARDING, (kind << 5) | start);
        let mut row = [0; call_forwarding::LENGTH];
        let end = start + random.between(1, 8) as u8;
        call_forwarding::END_TIME.set(&mut row, end);
        decimals(&mut random, call_forwarding::NUMBERX.padded_mut(&mut row));
        row
    }

    /// Its access infos with their keys, ascending.
    pub fn access_infos(self) -> impl Iterator<Item = ([u8; 5], [u8; access_info::LENGTH])> {
        types(self.accesses).map(move |kind| (typed_key(self.s, kind), self.access(kind)))
    }

    /// Its special facilities with their keys, ascending.
    pub fn special_facilities(
        self,
    ) -> impl Iterator<Item = ([u8; 5], [u8; special_facility::LENGTH])> {
        types(self.facilities).map(move |kind| (typed_key(self.s, kind), self.facility(kind)))
    }

    /// Types and start times of its call forwardings, in the order of keys.
    pub fn forwarding_times(self) -> impl Iterator<Item = (u8, u8)> {
        types(self.facilities).flat_map(move |kind| {
            let set = self.forwardings[usize::from(kind) - 1];
            let starts = START_TIMES.iter().zip(0_u8..);
            starts.filter_map(move |(start, at)| set.has(at).then_some((kind, *start)))
        })
    }
}

fn types(set: Set) -> impl Iterator<Item = u8> {
    (1..=TYPES).filter(move |kind| set.has(kind - 1))
}

/// A place: any number but zero.
#[inline]
pub fn location(random: &mut Random) -> u32 {
    random.between(1, u32::MAX.into()) as u32
}

/// Fills a column with capital letters.
fn capitals(random: &mut Random, row: &mut [u8], column: Text) {
    for byte in column.padded_mut(row) {
        *byte = b'A' + random.below(26) as u8;
    }
}

/// Fills `out` with digits.
pub fn decimals(random: &mut Random, out: &mut [u8]) {
    for byte in out {
        *byte = b'0' + random.below(10) as u8;
    }
}

/// Loads what is missing of `wanted`; `progress` gets the number of rows after each table, and may end the load by an
/// error. Returns the complete population.
///
/// # Errors
/// [`EngineError::Unusable`] if the database holds another population; whatever the engine
/// reports. What was committed before stays and a second call goes on behind it.
pub fn load<S: Session>(
    session: &mut S,
    wanted: Population,
    mut progress: impl FnMut(u64) -> Result<()>,
) -> Result<Population> {
    load_by(session, wanted, BATCH, &mut progress)
}

/// As [`load`], with `batch` subscribers a transaction.
pub(super) fn load_by<S: Session>(
    session: &mut S,
    wanted: Population,
    batch: u32,
    progress: &mut impl FnMut(u64) -> Result<()>,
) -> Result<Population> {
    let mut population = match Population::read(session)? {
        Some(found) if found.subscribers != wanted.subscribers => {
            return Err(EngineError::Unusable(format!(
                "the data directory holds TATP with {} subscribers, not {}",
                found.subscribers, wanted.subscribers
            )));
        }
        Some(found) => found,
        None => Population {
            loaded: 0,
            ..wanted
        },
    };
    while !population.is_complete() {
        let more = batch.min(population.subscribers - population.loaded);
        let next = Population {
            loaded: population.loaded + more,
            ..population
        };
        session.begin(TxOptions::READ_WRITE)?;
        let loaded = load_range(session, &population, next.loaded, progress)
            .and_then(|()| session.upsert(META, META_KEY, &next.encode()))
            .and_then(|()| session.commit());
        if let Err(error) = loaded {
            session.rollback()?;
            return Err(error);
        }
        population = next;
    }
    Ok(population)
}

/// Loads the subscribers behind those that are loaded, up to `last`.
fn load_range<S: Session>(
    session: &mut S,
    population: &Population,
    last: u32,
    progress: &mut impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let population = *population;
    let persons = || (population.loaded + 1..=last).map(move |s| population.person(s));

    let mut rows = persons();
    progress(session.bulk_load(SUBSCRIBER, |key, value| {
        rows.next()
            .is_some_and(|person| put(key, &subscriber_key(person.s), value, &person.subscriber()))
    })?)?;
    let mut rows = population.loaded + 1..=last;
    progress(session.bulk_load(SUBSCRIBER_BY_NUMBER, |key, value| {
        rows.next()
            .is_some_and(|s| put(key, &number(s), value, &s.to_le_bytes()))
    })?)?;
    let mut rows = persons().flat_map(Person::access_infos);
    progress(session.bulk_load(ACCESS_INFO, |key, value| {
        rows.next()
            .is_some_and(|(new, row)| put(key, &new, value, &row))
    })?)?;
    let mut rows = persons().flat_map(Person::special_facilities);
    progress(session.bulk_load(SPECIAL_FACILITY, |key, value| {
        rows.next()
            .is_some_and(|(new, row)| put(key, &new, value, &row))
    })?)?;
    let times = |person: Person| person.forwarding_times().map(move |time| (person, time));
    let mut rows = persons().flat_map(times);
    progress(session.bulk_load(CALL_FORWARDING, |key, value| {
        rows.next().is_some_and(|(person, (kind, start))| {
            let row = person.forwarding(kind, start);
            put(key, &forwarding_key(person.s, kind, start), value, &row)
        })
    })?)?;
    Ok(())
}

/// Hands a row to a bulk load.
fn put(key: &mut Vec<u8>, new_key: &[u8], value: &mut Vec<u8>, new_value: &[u8]) -> bool {
    key.clear();
    key.extend_from_slice(new_key);
    value.clear();
    value.extend_from_slice(new_value);
    true
}
