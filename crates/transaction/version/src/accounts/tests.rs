//! Sums over epochs against sums over all that there is.

use super::*;
use vellum_base::random::Random;

fn totals(accounts: &Accounts) -> (Tally, Tally, BTreeMap<PageId, VersionSums>) {
    let (mut all, mut by_tree) = (VersionSums::default(), BTreeMap::new());
    accounts.totals.report(&mut all);
    accounts.report(&mut by_tree);
    (
        all.of(VersionKind::Delta),
        all.of(VersionKind::FullCopy),
        by_tree,
    )
}

/// A before-image: stamp, tree, full, bytes.
type Image = (u64, u64, bool, usize);

fn brute(images: &[Image]) -> (Tally, Tally, BTreeMap<PageId, VersionSums>) {
    let (mut deltas, mut copies) = (Tally::default(), Tally::default());
    let mut by_tree: BTreeMap<PageId, VersionSums> = BTreeMap::new();
    for &(_, tree, full, bytes) in images {
        let (kind, sum) = if full {
            (VersionKind::FullCopy, &mut copies)
        } else {
            (VersionKind::Delta, &mut deltas)
        };
        sum.add(Tally::one(bytes));
        let sums = by_tree.entry(PageId(tree)).or_default();
        sums.add(kind, Tally::one(bytes));
    }
    (deltas, copies, by_tree)
}

#[test]
fn prop_accounts_are_what_is_there_within_an_epoch() {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-version prop_accounts");
    let mut random = Random::new(seed);
    for _ in 0..20 {
        let mut accounts = Accounts::new();
        let mut images: Vec<Image> = Vec::new();
        let mut stamp = 1;
        for _ in 0..3000 {
            match random.below(12) {
                0 => stamp += 1 + random.below(5),
                1 if !images.is_empty() => {
                    let at = random.below(images.len() as u64) as usize;
                    let (stamp, tree, full, bytes) = images.remove(at);
                    accounts.forget(PageId(tree), Timestamp(stamp), full, bytes);
                }
                _ => {
                    let image = (
                        stamp,
                        random.below(4),
                        random.chance(1, 3),
                        random.below(100) as usize,
                    );
                    images.push(image);
                    let (stamp, tree, full, bytes) = image;
                    accounts.add(PageId(tree), Timestamp(stamp), full, bytes);
                }
            }
        }
        let (deltas, copies, by_tree) = totals(&accounts);
        let (brute_deltas, brute_copies, brute_by_tree) = brute(&images);
        assert_eq!((deltas, copies), (brute_deltas, brute_copies));
        for (tree, sums) in &brute_by_tree {
            assert_eq!(by_tree.get(tree), Some(sums));
        }
        let dead = random.below(stamp + 2);
        accounts.forget_below(Timestamp(dead));
        images.retain(|image| image.0 >= dead);
        let (left, there) = (totals(&accounts), brute(&images));
        let counted = left.0.count + left.1.count;
        let real = there.0.count + there.1.count;
        let slack = accounts.epochs.front().map_or(0, |epoch| epoch.count);
        assert!(real <= counted && counted <= real + slack);
        accounts.forget_below(Timestamp(stamp + 1));
        assert_eq!(totals(&accounts).0, Tally::default());
        assert_eq!(totals(&accounts).1, Tally::default());
    }
}

/// What goes together counts as if it went one by one, epoch by epoch.
#[test]
fn prop_runs_are_taken_as_one_by_one() {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-version prop_runs");
    let mut random = Random::new(seed);
    let all = |accounts: &Accounts| format!("{accounts:?}");
    for _ in 0..40 {
        let (mut one, mut many) = (Accounts::new(), Accounts::new());
        let mut images: Vec<Image> = Vec::new();
        let mut stamp = 1;
        for _ in 0..40 {
            for _ in 0..random.below(300) {
                stamp += random.below(3);
                let tree = u64::from(random.chance(1, 40));
                let (full, bytes) = (random.chance(1, 50), random.below(100) as usize);
                images.push((stamp, tree, full, bytes));
                for accounts in [&mut one, &mut many] {
                    accounts.add(PageId(tree), Timestamp(stamp), full, bytes);
                }
            }
            if random.chance(1, 10) {
                let dead = Timestamp(random.below(stamp));
                one.forget_below(dead);
                many.forget_below(dead);
            }
            let (end, few) = (random.below(stamp + 2), random.chance(1, 2));
            let gone = images.extract_if(.., |image| image.0 < end && (few || image.1 == 0));
            let gone: Vec<_> = gone
                .map(|(stamp, tree, full, bytes)| (PageId(tree), Timestamp(stamp), full, bytes))
                .collect();
            for &(tree, stamp, full, bytes) in &gone {
                one.forget(tree, stamp, full, bytes);
            }
            many.forget_each(gone.into_iter());
            (one.found, many.found) = (0, 0);
            assert_eq!(all(&one), all(&many));
        }
    }
}

/// Those that nobody looks at go between what is looked at, and what comes next: whatever is closed, and when, what is counted is what is there.
#[test]
fn prop_what_goes_unread_beside_what_stays_is_counted_exactly_in_few_epochs() {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-version prop_what_goes_unread");
    let mut random = Random::new(seed);
    for case in 0..16 {
        // Few enough that no epochs are joined: where some are, what a lazy collection left may be taken from two that it lay between.
        let is_lazy = case % 2 == 0;
        let (rounds, most) = if is_lazy { (200, 60) } else { (1_500, 300) };
        let mut accounts = Accounts::new();
        let mut images: Vec<Image> = Vec::new();
        let mut gone: Vec<Image> = Vec::new();
        let (mut stamp, mut behind) = (1, 0);
        for _ in 0..rounds {
            // Whoever is not committed comes behind what is collected.
            stamp += 1;
            for _ in 0..random.below(most) {
                stamp += random.below(3);
                let image = (stamp, random.below(2), random.chance(1, 9), 40);
                images.push(image);
                let (stamp, tree, full, bytes) = image;
                accounts.add(PageId(tree), Timestamp(stamp), full, bytes);
            }
            if random.chance(2, 3) {
                let dead = behind + random.below(stamp - behind + 2);
                let dead = accounts.whole_below(Timestamp(dead)).get();
                let within = |image: &Image| image.0 > behind && image.0 < dead;
                let all: Vec<_> = images.extract_if(.., |image| within(image)).collect();
                let count = accounts.forget_within(Timestamp(behind), Timestamp(dead));
                assert_eq!(count, all.len() as u64);
                gone = all;
            }
            if random.chance(1, 4) {
                behind = stamp;
                accounts.close(Timestamp(behind));
                // What the sweep comes by: nearly all goes by its name.
                images.retain(|&(stamp, tree, full, bytes)| {
                    let stays = random.chance(1, 2_000);
                    if !stays {
                        accounts.forget(PageId(tree), Timestamp(stamp), full, bytes);
                    }
                    stays
                });
            }
            // A lazy collection leaves some, which go by their names later.
            for &(stamp, tree, full, bytes) in gone.iter().take(20).filter(|_| is_lazy) {
                accounts.forget(PageId(tree), Timestamp(stamp), full, bytes);
            }
            let (deltas, copies, by_tree) = totals(&accounts);
            let (brute_deltas, brute_copies, brute_by_tree) = brute(&images);
            assert_eq!((deltas, copies), (brute_deltas, brute_copies));
            for (tree, sums) in &brute_by_tree {
                assert_eq!(by_tree.get(tree), Some(sums));
            }
            assert!(accounts.epochs.len() <= EPOCHS_MAX);
        }
    }
}

#[test]
fn a_burst_makes_epochs_longer_for_a_while_only() {
    let mut accounts = Accounts::new();
    for stamp in 1..=100_000 {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
    }
    assert!(accounts.epoch_length > EPOCH_MIN);
    for stamp in 100_001..101_001 {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
        accounts.forget_within(Timestamp::ZERO, accounts.whole_below(Timestamp(stamp)));
    }
    assert_eq!(accounts.epoch_length, EPOCH_MIN);
}

#[test]
fn what_was_collected_is_taken_from_no_other_epoch() {
    let mut accounts = Accounts::new();
    for stamp in 1..=3 * EPOCH_MIN {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
    }
    // A lazy collection: those below are forgotten, and some stay and are taken out by their names later.
    accounts.forget_below(Timestamp(EPOCH_MIN + 1));
    let count = accounts.totals.count();
    assert_eq!(count, 2 * EPOCH_MIN);
    for stamp in 1..=EPOCH_MIN {
        accounts.forget(PageId(7), Timestamp(stamp), false, 10);
    }
    assert_eq!(accounts.totals.count(), count);
    for stamp in EPOCH_MIN + 1..=3 * EPOCH_MIN {
        accounts.forget(PageId(7), Timestamp(stamp), false, 10);
    }
    assert_eq!(accounts.totals.count(), 0);
}

/// Most before-images go by their names soon, and a few stay for an old snapshot.
#[test]
fn what_stays_is_not_told_as_made_later_where_most_goes_at_once() {
    let mut accounts = Accounts::new();
    for stamp in 1..=20 {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
    }
    for stamp in 21..=100_000 {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
        accounts.forget(PageId(7), Timestamp(stamp), false, 10);
    }
    let between = |from, to| accounts.between(Timestamp(from), Timestamp(to)).count;
    assert_eq!((between(0, 1000), between(1000, u64::MAX)), (20, 0));
    assert!(accounts.epochs.len() <= EPOCHS_MAX && accounts.epoch_length == EPOCH_MIN);
}

#[test]
fn what_one_transaction_made_is_told_apart_from_what_is_in_its_epoch() {
    let mut accounts = Accounts::new();
    for stamp in 1..=40 {
        accounts.add(PageId(7), Timestamp(stamp), false, 1_000);
    }
    let of = |accounts: &Accounts, stamp| accounts.of_newest(Timestamp(stamp)).bytes;
    assert_eq!(of(&accounts, 50), 0);
    for _ in 0..3 {
        accounts.add(PageId(7), Timestamp(50), true, 10);
    }
    accounts.forget(PageId(7), Timestamp(50), true, 10);
    accounts.forget(PageId(7), Timestamp(40), false, 1_000);
    assert_eq!(of(&accounts, 50), 20);
    assert!(accounts.between(Timestamp(50), Timestamp::MAX).bytes > 30_000);
}

#[test]
fn epochs_stay_few_and_know_between_which_stamps_versions_lie() {
    let mut accounts = Accounts::new();
    for stamp in 1..=1_000_000 {
        accounts.add(PageId(7), Timestamp(stamp), false, 10);
    }
    assert!(accounts.epochs.len() <= EPOCHS_MAX);
    let between = |from, to| accounts.between(Timestamp(from), Timestamp(to)).count;
    assert_eq!(between(0, 2_000_000), 1_000_000);
    let half = between(500_000, 2_000_000);
    assert!((490_000..=510_000).contains(&half), "{half}");
    assert_eq!(between(0, 500_000) + half, 1_000_000, "each counts once");
}
