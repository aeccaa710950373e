//! When a round of commits begins: at once, or when those are back who are on their way.
//!
//! Clients that commit one transaction after the other fall into two groups, one that a round acknowledges and one that came meanwhile. If the
//! next round begins at once, it covers the second group alone, and the first one waits for most of a round before its own begins. Two kinds of waiting help:
//! - *For all*: where they need less than half a round for coming back, one round for all of them is cheaper than two.
//! - *For half*: where they need longer (many clients, few processors), rounds of a few commits each would follow each other, and take processor time from those who
//!   are on their way. While one half is written, the other one computes.
//!
//! How many there are is what was seen: threads that waited for a commit in the last rounds, each counted once. They may have ended, or be at work on something long. So the wait is
//! bounded, by half a round or by a whole one. Waiting pays if there are more commits for the time of a round and of the wait before it than there would have been without; a kind that did not is
//! left out for some rounds, each time for twice as many. Where most came, but not all, as many are waited for meanwhile: one that is slow says nothing of the others. A client
//! that is alone waits for nobody. Nor does anybody where rounds are as short as a timer is inexact.
//!
//! Invariant: G1 Who opens a round has a timer, and those who join rely on that alone; nobody else's arrival is relied upon (`group` I1).
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
const ROUND_NANOS_MIN: u64 = 100_000;
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
    /// How many waited at first, and when that was.
    from: u32,
    opened: u64,
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
    /// As many as are waited for while `all` rests; none, if not more than half of them came.
    most: u32,
}

impl Default for Gathering {
    fn default() -> Self {
        Self {
            seen: vec![0; PLACES].into(),
            window: 1,
            rounds: 0,
            clients: 0,
            clients_before: if MODEL { 2 } else { 0 },
            round_nanos: if MODEL { ROUND_NANOS_MAX } else { 0 },
            all: Trust::new(),
            half: Trust::new(),
            most: 0,
        }
    }
}

impl Gathering {
    /// Notes that a thread waits for a commit.
    pub fn note(&mut self, who: impl Hash) {
        if MODEL {
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
        if self.rounds == WINDOW_ROUNDS && !MODEL {
            self.rounds = 0;
            // Places keep old numbers; after 2^32 windows one may seem seen.
            self.window = self.window.wrapping_add(1);
            self.clients_before = std::mem::take(&mut self.clients);
        }
    }

    /// What the next round waits for where `waiting` commits wait for it; `None` if it begins now.
    pub fn plan(&self, waiting: u32, now: u64) -> Option<Quorum> {
        if self.round_nanos < ROUND_NANOS_MIN {
            return None;
        }
        let clients = self.clients.max(self.clients_before);
        let want = if self.all.rest == 0 {
            clients
        } else {
            self.most
        };
        if waiting < want {
            return Some(Quorum {
                want,
                wait: Duration::from_nanos(self.round_nanos / 2),
                from: waiting,
                opened: now,
                for_all: true,
            });
        }
        match want {
            0 => self.plan_half(clients, waiting, self.round_nanos, now),
            _ => None,
        }
    }

    fn plan_half(&self, clients: u32, waiting: u32, nanos: u64, now: u64) -> Option<Quorum> {
        let want = clients.div_ceil(2);
        (self.half.rest == 0 && waiting < want).then_some(Quorum {
            want,
            wait: Duration::from_nanos(nanos),
            from: waiting,
            opened: now,
            for_all: false,
        })
    }

    /// Whether there are more commits a time than there would have been without the wait: `from` for each round.
    fn pays(&self, quorum: Quorum, waiting: u32, now: u64) -> bool {
        let came = u64::from(waiting.saturating_sub(quorum.from));
        let waited = now.saturating_sub(quorum.opened);
        came.saturating_mul(self.round_nanos) >= u64::from(quorum.from).saturating_mul(waited)
    }

    /// As many wait as were wanted.
    pub fn reached(&mut self, quorum: Quorum, waiting: u32, now: u64) {
        let pays = self.pays(quorum, waiting, now);
        let trust = if quorum.for_all {
            &mut self.all
        } else {
            &mut self.half
        };
        if !pays {
            self.most = 0;
            trust.lose();
        } else if trust.rest == 0 {
            trust.next = REST_ROUNDS.0;
        }
    }

    /// The time is over, and `waiting` wait. What else to wait for; `None` if the round begins now.
    pub fn is_late(&mut self, quorum: Quorum, waiting: u32, now: u64) -> Option<Quorum> {
        let pays = self.pays(quorum, waiting, now);
        if quorum.for_all {
            self.all.lose();
            let are_most = pays && 2 * waiting > quorum.want;
            self.most = if are_most { waiting } else { 0 };
            return self.plan_half(quorum.want, waiting, self.round_nanos / 2, now);
        }
        if !pays {
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
        assert_eq!(known(1).plan(1, 0), None);
        assert_eq!(Gathering::default().plan(1, 0), None);
    }

    #[test]
    fn all_are_waited_for_half_a_round_then_half_of_them_for_the_other_half() {
        let mut gathering = known(8);
        let all = gathering.plan(2, 0).unwrap();
        assert_eq!((all.want, all.wait.as_nanos()), (8, 100_000));
        assert_eq!(gathering.plan(8, 0), None);
        let half = gathering.is_late(all, 3, ROUND / 2).unwrap();
        assert_eq!((half.want, half.wait.as_nanos()), (4, 100_000));
        assert_eq!(gathering.is_late(half, 4, ROUND / 2), None);
    }

    #[test]
    fn what_was_in_vain_rests_for_twice_as_many_rounds_each_time() {
        let mut gathering = known(8);
        let mut rested = Vec::new();
        for _ in 0..8 {
            let all = gathering.plan(4, 0).unwrap();
            assert_eq!(all.want, 8);
            assert_eq!(
                gathering.is_late(all, 5, ROUND / 2),
                None,
                "half of them are there"
            );
            let mut rest = 0;
            while gathering.plan(4, 0).is_none() {
                rounds(&mut gathering, 8, 1);
                rest += 1;
            }
            rested.push(rest);
        }
        assert_eq!(rested, [4, 8, 16, 32, 64, 128, 256, 256]);
        gathering.reached(gathering.plan(4, 0).unwrap(), 8, 0);
        let all = gathering.plan(4, 0).unwrap();
        gathering.is_late(all, 5, ROUND / 2);
        rounds(&mut gathering, 8, REST_ROUNDS.0);
        assert_eq!(gathering.plan(4, 0).unwrap().want, 8);
    }

    #[test]
    fn half_is_in_vain_only_if_it_did_not_pay() {
        let mut gathering = known(64);
        gathering.all.rest = 1000;
        let clients = gathering.clients_before;
        let half = gathering.plan(10, 0).unwrap();
        assert_eq!((half.want, half.from), (clients.div_ceil(2), 10));
        assert_eq!(gathering.is_late(half, half.want - 5, ROUND), None);
        assert!(gathering.plan(10, 0).is_some(), "most came");
        assert_eq!(gathering.is_late(half, 12, ROUND), None);
        assert_eq!(gathering.plan(10, 0), None, "few came");
    }

    #[test]
    fn one_that_is_slow_says_nothing_of_the_others() {
        let mut gathering = known(8);
        let all = gathering.plan(1, 0).unwrap();
        assert_eq!(gathering.is_late(all, 7, ROUND / 2), None);
        for _ in 0..REST_ROUNDS.0 {
            assert_eq!(gathering.plan(3, 0).unwrap().want, 7);
            assert_eq!(gathering.plan(7, 0), None);
            rounds(&mut gathering, 8, 1);
        }
        assert_eq!(gathering.plan(3, 0).unwrap().want, 8);
    }

    #[test]
    fn a_wait_that_made_the_number_and_cost_more_than_it_brought_was_in_vain() {
        let mut gathering = known(64);
        gathering.all.rest = 1000;
        let half = gathering.plan(27, 0).unwrap();
        gathering.reached(half, 32, ROUND * 7 / 10);
        assert_eq!(gathering.plan(27, 0), None, "5 for 0.7 of 27");
        rounds(&mut gathering, 64, REST_ROUNDS.0);
        let half = gathering.plan(4, 0).unwrap();
        gathering.reached(half, 32, ROUND * 7 / 10);
        assert!(gathering.plan(4, 0).is_some(), "28 for 0.7 of 4");
    }

    #[test]
    fn those_who_have_gone_are_forgotten_after_two_windows() {
        let mut gathering = known(8);
        rounds(&mut gathering, 1, WINDOW_ROUNDS - 1);
        assert_eq!(gathering.plan(1, 0).unwrap().want, 8);
        rounds(&mut gathering, 1, 1);
        assert_eq!(gathering.plan(1, 0), None);
    }

    #[test]
    fn short_rounds_are_not_waited_for() {
        let mut gathering = known(8);
        for _ in 0..100 {
            gathering.round_took(5_000);
        }
        (0..8).for_each(|who| gathering.note(who));
        assert_eq!(gathering.plan(1, 0), None);
    }
}
