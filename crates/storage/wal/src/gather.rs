//! When a round of commits begins: at once, or when those are back who are on their way.
//!
//! Clients that commit one transaction after the other fall into two groups, one that a round acknowledges and one that came meanwhile. If the
//! next round begins at once, it covers the second group alone, and the first one waits for most of a round before its own begins. Two kinds of waiting help:
//! - *For all*: where they need less than half a round for coming back, one round for all of them is cheaper than two.
//! - *For half*: where they need longer (many clients, few processors), rounds of a few commits each would follow each other, and take processor time from those who
//!   are on their way. While one half is written, the other one computes.
//!
//! How many there are is what was seen: threads that waited for a commit in the last rounds, each counted once. They may have ended, or be at work on something long. So the wait is
//! bounded, by half a round or by a whole one, and a kind of waiting that was in vain is left out for some rounds, each time for twice as many. A client
//! that is alone waits for nobody. Nor does anybody where rounds are as short as a timer is inexact.
//!
//! Invariant: G1 Whoever waits here has a timer; nobody else's arrival is relied upon (`group` I1).
//!
//! Concurrency: under the mutex of `group`. Under loom and shuttle, where time stands still and threads have other names in each execution, rounds take
//! long, a thread that was seen is one of two at most, and a timer is over at once: what others may do meanwhile they do before it is looked for.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use vellum_base::clock::monotonic_nanos;

/// Places for the threads that commit. Two that meet in one count as one.
const PLACES: usize = 1024;
/// Rounds after which those who committed are counted anew. Who has committed in neither of two such windows is no client any more.
const WINDOW_ROUNDS: u32 = 16;
/// A round that takes less is not waited for: timers are late by about as much.
const ROUND_NANOS_MIN: u64 = 50_000;
/// A round that takes longer is taken for one of this.
const ROUND_NANOS_MAX: u64 = 2_000_000;
/// Rounds without a kind of waiting after it was in vain: the first time, and at most.
const REST_ROUNDS: (u32, u32) = (4, 256);

/// Whether a checker of interleavings runs this.
pub(crate) const MODEL: bool = cfg!(any(loom, shuttle));

/// The time that durations of rounds are measured by.
pub(crate) fn now() -> u64 {
    if MODEL { 0 } else { monotonic_nanos() }
}

/// Whether a kind of waiting is worth trying.
#[derive(Debug)]
struct Trust {
    /// Rounds until it may be tried again.
    rest: u32,
    /// How long it rests when it is in vain again.
    next: u32,
}

impl Trust {
    const fn new() -> Self {
        Self {
            rest: 0,
            next: REST_ROUNDS.0,
        }
    }

    fn lose(&mut self) {
        self.rest = self.next;
        self.next = (2 * self.next).min(REST_ROUNDS.1);
    }
}

/// How many a round waits for, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quorum {
    /// The round begins when so many wait.
    pub want: u32,
    /// Or when so much time is over.
    pub wait: Duration,
    /// How many waited at first.
    from: u32,
    for_all: bool,
}

/// What is known about those who commit.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// The last window in which a thread was seen, by its place.
    seen: Box<[u32]>,
    window: u32,
    rounds: u32,
    /// Different threads in this window, and in the one before.
    clients: u32,
    clients_before: u32,
    /// How long a round takes: an average of the last ones.
    round_nanos: u64,
    all: Trust,
    half: Trust,
}

impl Default for Gathering {
    fn default() -> Self {
        Self {
            seen: vec![0; PLACES].into(),
            window: 1,
            rounds: 0,
            clients: 0,
            clients_before: 0,
            round_nanos: if MODEL { ROUND_NANOS_MAX } else { 0 },
            all: Trust::new(),
            half: Trust::new(),
        }
    }
}

impl Gathering {
    /// Notes that a thread waits for a commit.
    pub fn note(&mut self, who: impl Hash) {
        if MODEL {
            // The first one and others.
            self.clients = (self.clients + 1).min(2);
            return;
        }
        let mut hasher = DefaultHasher::new();
        who.hash(&mut hasher);
        let place = hasher.finish() as usize % PLACES;
        if self.seen[place] != self.window {
            self.seen[place] = self.window;
            self.clients += 1;
        }
    }

    /// Notes a round that wrote something, and how long it took.
    pub fn round_took(&mut self, nanos: u64) {
        let nanos = if MODEL {
            ROUND_NANOS_MAX
        } else {
            nanos.min(ROUND_NANOS_MAX)
        };
        self.round_nanos = match self.round_nanos {
            0 => nanos,
            average => average - average / 8 + nanos / 8,
        };
        for trust in [&mut self.all, &mut self.half] {
            trust.rest = trust.rest.saturating_sub(1);
        }
        self.rounds += 1;
        if self.rounds == WINDOW_ROUNDS {
            self.rounds = 0;
            // Places keep old numbers; after 2^32 windows one may seem seen.
            self.window = self.window.wrapping_add(1);
            self.clients_before = std::mem::take(&mut self.clients);
        }
    }

    /// What the next round waits for where `waiting` commits wait for it; `None` if it begins now.
    pub fn plan(&self, waiting: u32) -> Option<Quorum> {
        if self.round_nanos < ROUND_NANOS_MIN {
            return None;
        }
        let clients = self.clients.max(self.clients_before);
        if self.all.rest == 0 && waiting < clients {
            return Some(Quorum {
                want: clients,
                wait: Duration::from_nanos(self.round_nanos / 2),
                from: waiting,
                for_all: true,
            });
        }
        self.plan_half(clients, waiting, self.round_nanos)
    }

    fn plan_half(&self, clients: u32, waiting: u32, nanos: u64) -> Option<Quorum> {
        let want = clients.div_ceil(2);
        (self.half.rest == 0 && waiting < want).then_some(Quorum {
            want,
            wait: Duration::from_nanos(nanos),
            from: waiting,
            for_all: false,
        })
    }

    /// As many wait as were wanted.
    pub fn reached(&mut self, quorum: Quorum) {
        let trust = if quorum.for_all {
            &mut self.all
        } else {
            &mut self.half
        };
        trust.next = REST_ROUNDS.0;
    }

    /// The time is over, and `waiting` wait. What else to wait for; `None` if the round begins now.
    pub fn is_late(&mut self, quorum: Quorum, waiting: u32) -> Option<Quorum> {
        if quorum.for_all {
            self.all.lose();
            return self.plan_half(quorum.want, waiting, self.round_nanos / 2);
        }
        let (came, missed) = (
            waiting.saturating_sub(quorum.from),
            quorum.want.saturating_sub(waiting),
        );
        if came < missed {
            self.half.lose();
        }
        None
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const ROUND: u64 = 200_000;

    /// Rounds behind which `clients` are known.
    fn known(clients: u32) -> Gathering {
        let mut gathering = Gathering::default();
        rounds(&mut gathering, clients, WINDOW_ROUNDS);
        gathering
    }

    fn rounds(gathering: &mut Gathering, clients: u32, count: u32) {
        for _ in 0..count {
            // Numbers that do not meet.
            (0..clients).for_each(|who| gathering.note(who));
            gathering.round_took(ROUND);
        }
    }

    #[test]
    fn who_is_alone_waits_for_nobody() {
        assert_eq!(known(1).plan(1), None);
        assert_eq!(Gathering::default().plan(1), None);
    }

    #[test]
    fn all_are_waited_for_half_a_round_then_half_of_them_for_the_other_half() {
        let mut gathering = known(8);
        let all = gathering.plan(2).unwrap();
        assert_eq!((all.want, all.wait.as_nanos()), (8, 100_000));
        assert_eq!(gathering.plan(8), None);
        let half = gathering.is_late(all, 3).unwrap();
        assert_eq!((half.want, half.wait.as_nanos()), (4, 100_000));
        assert_eq!(gathering.is_late(half, 4), None);
    }

    #[test]
    fn what_was_in_vain_rests_for_twice_as_many_rounds_each_time() {
        let mut gathering = known(8);
        let mut rested = Vec::new();
        for _ in 0..8 {
            let all = gathering.plan(4).unwrap();
            assert_eq!(all.want, 8);
            assert_eq!(gathering.is_late(all, 5), None, "half of them are there");
            let mut rest = 0;
            while gathering.plan(4).is_none() {
                rounds(&mut gathering, 8, 1);
                rest += 1;
            }
            rested.push(rest);
        }
        assert_eq!(rested, [4, 8, 16, 32, 64, 128, 256, 256]);
        gathering.reached(gathering.plan(4).unwrap());
        let all = gathering.plan(4).unwrap();
        gathering.is_late(all, 5);
        rounds(&mut gathering, 8, REST_ROUNDS.0);
        assert_eq!(gathering.plan(4).unwrap().want, 8);
    }

    #[test]
    fn half_is_in_vain_only_if_more_stayed_away_than_came() {
        let mut gathering = known(64);
        gathering.all.rest = 1000;
        let clients = gathering.clients_before;
        let half = gathering.plan(10).unwrap();
        assert_eq!((half.want, half.from), (clients.div_ceil(2), 10));
        assert_eq!(gathering.is_late(half, half.want - 5), None);
        assert!(gathering.plan(10).is_some(), "most came");
        assert_eq!(gathering.is_late(half, 12), None);
        assert_eq!(gathering.plan(10), None, "few came");
    }

    #[test]
    fn those_who_have_gone_are_forgotten_after_two_windows() {
        let mut gathering = known(8);
        rounds(&mut gathering, 1, WINDOW_ROUNDS - 1);
        assert_eq!(gathering.plan(1).unwrap().want, 8);
        rounds(&mut gathering, 1, 1);
        assert_eq!(gathering.plan(1), None);
    }

    #[test]
    fn short_rounds_are_not_waited_for() {
        let mut gathering = known(8);
        for _ in 0..100 {
            gathering.round_took(5_000);
        }
        (0..8).for_each(|who| gathering.note(who));
        assert_eq!(gathering.plan(1), None);
    }
}
