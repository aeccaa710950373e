//! What transactions are asked for: the mix, the subscribers, the other parameters.

use super::Kind;
use super::population::{decimals, location};
use super::schema::*;
use vellum_base::random::Random;

/// How subscribers are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    subscribers: u32,
    /// The constant A of the description, one below a power of two; zero chooses all equally often.
    a: u32,
}

impl Choice {
    /// All of `subscribers` equally often.
    ///
    /// # Panics
    /// If there are none.
    pub fn uniform(subscribers: u32) -> Self {
        assert!(subscribers > 0, "somebody to choose");
        Self { subscribers, a: 0 }
    }

    /// As the description has it: the binary or of two uniform numbers, the first of them up to a constant that follows from the
    /// size of the population.
    ///
    /// # Panics
    /// If there are no subscribers.
    pub fn non_uniform(subscribers: u32) -> Self {
        let a = match subscribers {
            0..=1_000_000 => (1 << 16) - 1,
            1_000_001..=10_000_000 => (1 << 20) - 1,
            _ => (1 << 21) - 1,
        };
        Self {
            a,
            ..Self::uniform(subscribers)
        }
    }

    /// The constant A; zero where all are chosen equally often.
    pub fn constant(&self) -> u32 {
        self.a
    }

    /// The next subscriber, from 1.
    #[inline]
    pub fn next(&self, random: &mut Random) -> u32 {
        let subscribers = u64::from(self.subscribers);
        let drawn = random.between(1, subscribers);
        if self.a == 0 {
            return drawn as u32;
        }
        let mixed = random.between(0, self.a.into()) | drawn;
        (mixed % subscribers + 1) as u32
    }

    /// At least so many subscribers, chosen equally often, would meet each other as often in two draws.
    pub fn effective(&self) -> f64 {
        let subscribers = f64::from(self.subscribers);
        if self.a == 0 {
            return subscribers;
        }
        // Two ors of two random bits are equal in five cases of eight; bits above those of A are those of a uniform number.
        let bits = f64::from(self.a.count_ones());
        (1.6_f64).powf(bits.min(subscribers.log2())) * (subscribers / bits.exp2()).max(1.0)
    }
}

/// One transaction with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// [`Kind::GetSubscriberData`].
    GetSubscriberData {
        /// Who.
        s: u32,
    },
    /// [`Kind::GetNewDestination`].
    GetNewDestination {
        /// Who.
        s: u32,
        /// Which facility.
        kind: u8,
        /// The forwarding has started by then.
        start: u8,
        /// It ends after that.
        end: u8,
    },
    /// [`Kind::GetAccessData`].
    GetAccessData {
        /// Who.
        s: u32,
        /// Which access.
        kind: u8,
    },
    /// [`Kind::UpdateSubscriberData`].
    UpdateSubscriberData {
        /// Who.
        s: u32,
        /// Which facility.
        kind: u8,
        /// The new flag.
        bit: u8,
        /// The facility's new number.
        data: u8,
    },
    /// [`Kind::UpdateLocation`].
    UpdateLocation {
        /// Whose number.
        number: [u8; NUMBER_LENGTH],
        /// The new place.
        location: u32,
    },
    /// [`Kind::InsertCallForwarding`].
    InsertCallForwarding {
        /// Whose number.
        number: [u8; NUMBER_LENGTH],
        /// Which facility.
        kind: u8,
        /// When it starts.
        start: u8,
        /// When it ends.
        end: u8,
        /// Where calls go to.
        to: [u8; NUMBER_LENGTH],
    },
    /// [`Kind::DeleteCallForwarding`].
    DeleteCallForwarding {
        /// Whose number.
        number: [u8; NUMBER_LENGTH],
        /// Which facility.
        kind: u8,
        /// When it starts.
        start: u8,
    },
}

impl Input {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::GetSubscriberData { .. } => Kind::GetSubscriberData,
            Self::GetNewDestination { .. } => Kind::GetNewDestination,
            Self::GetAccessData { .. } => Kind::GetAccessData,
            Self::UpdateSubscriberData { .. } => Kind::UpdateSubscriberData,
            Self::UpdateLocation { .. } => Kind::UpdateLocation,
            Self::InsertCallForwarding { .. } => Kind::InsertCallForwarding,
            Self::DeleteCallForwarding { .. } => Kind::DeleteCallForwarding,
        }
    }
}

/// Draws transactions.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Random,
    choice: Choice,
}

impl Generator {
    /// Everything that it draws follows from `random`.
    pub fn new(random: Random, choice: Choice) -> Self {
        Self { random, choice }
    }

    /// The next transaction of the mix.
    #[inline]
    pub fn draw(&mut self) -> Input {
        let mut left = self.random.below(100);
        for kind in Kind::ALL {
            if left < kind.share() {
                return self.draw_kind(kind);
            }
            left -= kind.share();
        }
        unreachable!("the shares add up to a hundred")
    }

    /// The next transaction of one kind.
    #[inline]
    pub fn draw_kind(&mut self, kind: Kind) -> Input {
        let random = &mut self.random;
        let s = self.choice.next(random);
        let mut one_type = || random.between(1, TYPES.into()) as u8;
        match kind {
            Kind::GetSubscriberData => Input::GetSubscriberData { s },
            Kind::GetNewDestination => Input::GetNewDestination {
                s,
                kind: one_type(),
                start: start_time(random),
                end: end_time(random),
            },
            Kind::GetAccessData => Input::GetAccessData {
                s,
                kind: one_type(),
            },
            Kind::UpdateSubscriberData => Input::UpdateSubscriberData {
                s,
                kind: one_type(),
                bit: random.below(2) as u8,
                data: random.below(256) as u8,
            },
            Kind::UpdateLocation => Input::UpdateLocation {
                number: number(s),
                location: location(random),
            },
            Kind::InsertCallForwarding => {
                let mut to = [0; NUMBER_LENGTH];
                let kind = one_type();
                decimals(random, &mut to);
                Input::InsertCallForwarding {
                    number: number(s),
                    kind,
                    start: start_time(random),
                    end: end_time(random),
                    to,
                }
            }
            Kind::DeleteCallForwarding => Input::DeleteCallForwarding {
                number: number(s),
                kind: one_type(),
                start: start_time(random),
            },
        }
    }
}

#[inline]
fn start_time(random: &mut Random) -> u8 {
    START_TIMES[random.below(START_TIMES.len() as u64) as usize]
}

#[inline]
fn end_time(random: &mut Random) -> u8 {
    random.between(1, END_TIME_MAX.into()) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_in_their_shares() {
        assert_eq!(Kind::ALL.iter().map(|kind| kind.share()).sum::<u64>(), 100);
        let mut generator = Generator::new(Random::new(1), Choice::uniform(1_000));
        let draws = 200_000;
        let mut counts = [0_u64; 7];
        for _ in 0..draws {
            counts[generator.draw().kind() as usize] += 1;
        }
        for (kind, count) in Kind::ALL.iter().zip(counts) {
            let expected = (draws * kind.share() / 100) as f64;
            // Five standard deviations.
            assert!(
                (count as f64 - expected).abs() < 5.0 * expected.sqrt(),
                "{kind:?}: {count} for {expected}"
            );
        }
    }

    #[test]
    fn the_constant_follows_from_the_size_of_the_population() {
        for (subscribers, a) in [
            (1, 65_535),
            (1_000_000, 65_535),
            (1_000_001, 1_048_575),
            (10_000_000, 1_048_575),
            (10_000_001, 2_097_151),
        ] {
            assert_eq!(Choice::non_uniform(subscribers).constant(), a);
        }
        assert_eq!(Choice::uniform(5).constant(), 0);
    }

    /// Chosen pairs that are equal, as a number of subscribers that are chosen equally often.
    fn met(choice: Choice, draws: u64) -> f64 {
        let mut random = Random::new(9);
        let mut counts = vec![0_u64; choice.subscribers as usize + 1];
        for _ in 0..draws {
            counts[choice.next(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0, "subscribers count from 1");
        let pairs: u64 = counts
            .iter()
            .map(|count| count * count.saturating_sub(1))
            .sum();
        (draws * (draws - 1)) as f64 / pairs as f64
    }

    #[test]
    fn non_uniform_subscribers_stay_in_range_and_meet_as_often_as_is_said() {
        for subscribers in [1, 3, 100, 5_000, 100_000, 300_000] {
            let (uniform, skewed) = (
                Choice::uniform(subscribers),
                Choice::non_uniform(subscribers),
            );
            let all = f64::from(subscribers);
            assert!((met(uniform, 2_000_000) / all - 1.0).abs() < 0.1);
            let (found, said) = (met(skewed, 2_000_000), skewed.effective());
            assert!(found > 0.9 * said, "{subscribers}: {found} of {said}");
            // Where the population is larger than A little is folded, and what is said is near.
            if subscribers >= 100_000 {
                assert!(
                    found < 2.0 * said && found < all / 10.0,
                    "{subscribers}: {found} of {said}"
                );
            }
        }
    }
}
