//! How many transactions of a kind succeed, and whether so many did.
//!
//! | kind | succeeds if | share |
//! | --- | --- | --- |
//! | get_subscriber_data, update_location | always | 1 |
//! | get_access_data | one type of four is there for a subscriber with 1 to 4 of them | 5/8 |
//! | update_subscriber_data | the same of special facilities | 5/8 |
//! | insert_call_forwarding | the facility is there (5/8), this start time is not (1/2) | 5/16 |
//! | delete_call_forwarding | the facility and this start time are there | 5/16 |
//! | get_new_destination | the facility is there (5/8) and active (17/20), and a forwarding has started and ends later | 0.148 to 0.204 |
//!
//! The last share grows: a loaded forwarding lasts one to eight hours, an inserted one ends at any hour, so that it is
//! 0.148 in a fresh population and 0.204 once all forwardings were replaced. Inserts and deletes keep their shares, since as many of
//! the one kind as of the other are tried.
//!
//! Differences: the description expects 23.9 % of get_new_destination. The rest of its figures are those above, but this one does not
//! follow from its population and its input as they are read here; what follows is expected.

use super::Kind;
use super::input::Choice;

/// Standard deviations that are taken for chance: one run in a hundred million is wrongly blamed.
const DEVIATIONS: f64 = 6.0;

/// The least and the largest share of a kind that succeeds.
pub const fn expected(kind: Kind) -> (f64, f64) {
    match kind {
        Kind::GetSubscriberData | Kind::UpdateLocation => (1.0, 1.0),
        Kind::GetAccessData | Kind::UpdateSubscriberData => (0.625, 0.625),
        Kind::InsertCallForwarding | Kind::DeleteCallForwarding => (0.3125, 0.3125),
        Kind::GetNewDestination => (0.1478, 0.2043),
    }
}

/// What is wrong with `succeeded` transactions of `all` of a kind, if chance does not explain it.
pub fn judge(kind: Kind, all: u64, succeeded: u64, choice: &Choice) -> Option<String> {
    if all == 0 {
        return None;
    }
    let (least, most) = expected(kind);
    // Draws are many, subscribers may be few: what the load gave those that are chosen most is chance, too.
    let draws = 1.0 / all as f64 + 1.0 / choice.effective();
    let chance = |share: f64| DEVIATIONS * (share * (1.0 - share) * draws).sqrt();
    let share = succeeded as f64 / all as f64;
    let (least, most) = (least - chance(least), most + chance(most));
    (share < least || share > most).then(|| {
        format!(
            "{}: {succeeded} of {all} succeeded, a share of {share:.4}; {:.4} to {:.4} are expected",
            kind.name(),
            least.max(0.0),
            most.min(1.0)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_chance_explains_are_not_blamed_and_others_are() {
        let choice = Choice::uniform(1_000_000);
        for (kind, all, right, wrong) in [
            (Kind::GetSubscriberData, 10, 10, 9),
            (Kind::UpdateLocation, 1_000_000, 1_000_000, 999_999),
            (Kind::GetAccessData, 100_000, 62_600, 63_500),
            (Kind::UpdateSubscriberData, 100_000, 62_400, 61_500),
            (Kind::InsertCallForwarding, 100_000, 31_000, 30_000),
            (Kind::DeleteCallForwarding, 100_000, 31_500, 32_500),
            (Kind::GetNewDestination, 100_000, 18_000, 21_500),
            (Kind::GetNewDestination, 100_000, 14_600, 13_500),
        ] {
            assert_eq!(judge(kind, all, right, &choice), None);
            let told = judge(kind, all, wrong, &choice).expect("a finding");
            assert!(
                told.contains(kind.name()) && told.contains("of 10"),
                "{told}"
            );
        }
        assert_eq!(judge(Kind::GetSubscriberData, 0, 0, &choice), None);
        // Ten subscribers may all have one access.
        let few = Choice::uniform(10);
        assert_eq!(judge(Kind::GetAccessData, 1_000_000, 250_000, &few), None);
    }
}
