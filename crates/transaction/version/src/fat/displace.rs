//! The newest old version of a fat row gives its place to the next one, where nobody can see it: a row that is updated
//! all the time under an old snapshot stays as long as it is, and its readers pass over one version, not over as many
//! as there was slack for.
//!
//! Paper: LeanStore §3.3 prunes a tuple when it is full. Difference: what the published watermarks alone show to be dead
//! (committed after every analytical snapshot, replaced before every other one) goes with the update that adds a version;
//! what takes the list of open snapshots, or the rewriting of anything, waits until the row is full (`prune`).
//!
//! Concurrency: under the leaf's latch, like every change of a fat row; asks what passes have settled.

use crate::fat::layout::{BODY_AT, NAME_BYTES, OldVersion, OldVersions, Step, VERSION_OVERHEAD};
use crate::fat::prune::covers;
use crate::fat::update::Place;
use crate::row::{Header, STAMPED_HEADER};
use smallvec::SmallVec;
use vellum_btree::LeafWrite;
use vellum_gc::is_plainly_dead;
use vellum_txn::VersionStamp;

/// How many of the `versions` bytes of old versions stay before the one that is replaced now, whose header is `before`. All
/// of them, unless the newest ones are dead and the older ones are reached without them. One stays always: a row that
/// needs none is written plain when it is full. `longest`: the most bytes of ranges or a body. `look` is overwritten; with `spare`, a mistake on purpose, one goes whoever sees it.
#[inline]
pub(crate) fn displace(
    place: &Place<'_>,
    leaf: &LeafWrite<'_, '_>,
    body: usize,
    (versions, longest): (usize, usize),
    before: &Header,
    look: &mut Vec<u8>,
    mut spare: bool,
) -> usize {
    if BODY_AT + body + versions > leaf.payload_len() {
        return versions;
    }
    // Two of the longest that stand in a row: the newest, and the one that it gives its place to.
    let longest = VERSION_OVERHEAD + STAMPED_HEADER + longest.max(NAME_BYTES);
    look.resize(versions.min(2 * longest), 0);
    let unread = versions - look.len();
    leaf.payload_read(BODY_AT + body + unread, look);
    let Some(replaced) = before.writer else {
        return versions;
    };
    let domain = place.transaction.domain();
    let stays = without_newest(look, |version| {
        std::mem::take(&mut spare) || is_plainly_dead(domain, version, &replaced.version)
    });
    unread + stays
}

/// How many of these bytes of old versions stay where the newest ones go that are dead and that none needs which stays: an older one writes
/// all that they write. (Not each what the one before it writes: transactions of two kinds may change two columns of a row in any order.) What is cut off at the
/// front of the bytes stays, as what is broken, which is found when the row is full.
fn without_newest(versions: &[u8], mut is_dead: impl FnMut(&VersionStamp) -> bool) -> usize {
    let mut old = OldVersions::new(versions);
    let mut stays = versions.len();
    let mut dead: SmallVec<[Step<'_>; 8]> = SmallVec::new();
    let Some(Ok(mut newest)) = old.next() else {
        return stays;
    };
    while let Some(writer) = newest.header.writer
        && !matches!(newest.step, Step::Copy(_))
        && is_dead(&writer.version)
    {
        dead.push(newest.step);
        let end = old.rest().len();
        let Some(Ok(older)) = old.next() else {
            break;
        };
        if dead.iter().all(|dead| is_reached_without(dead, &older)) {
            stays = end;
            dead.clear();
        }
        newest = older;
    }
    stays
}

/// True if `older` is made of what is newer than the version behind `dead` just as it is made of that one: what
/// [`prune`](crate::fat::prune::prune) would leave of it is what is there.
fn is_reached_without(dead: &Step<'_>, older: &OldVersion<'_>) -> bool {
    match (dead, older.step) {
        // Its copy would have to go, too.
        (Step::Copy(_), _) => false,
        (Step::Same, _) | (_, Step::Copy(_) | Step::Whole(_)) => true,
        // Ranges on a whole body would have to become one.
        (Step::Ranges(_) | Step::Whole(_), Step::Same) => older.header.shape.tombstone,
        (Step::Whole(_), Step::Ranges(_)) => false,
        (Step::Ranges(newer), Step::Ranges(older)) => covers(older, newer),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::delta::encode_image;
    use crate::fat::prune::{Kept, KeptStep, encode_versions, prune};
    use vellum_base::random::Random;
    use vellum_base::{SlotId, Timestamp};

    fn version(stamp: u64) -> VersionStamp {
        VersionStamp::new(SlotId(1), Timestamp(stamp), 0)
    }

    #[test]
    fn what_is_displaced_leaves_what_pruning_would_leave() {
        let image = |at: usize, length: usize| {
            let mut image = Vec::new();
            encode_image(
                &[7; 64],
                std::slice::from_ref(&(at..at + length)),
                &mut image,
            );
            image
        };
        let (narrow, wide, other) = (image(8, 4), image(4, 16), image(40, 4));
        let tombstone = Header::stamped(crate::row::Shape::DELETED, version(1), false);
        let live = |stamp| Header::stamped(crate::row::Shape::INLINE, version(stamp), false);
        let steps = [
            (live(1), Step::Same),
            (tombstone, Step::Same),
            (live(1), Step::Copy(version(2))),
            (live(1), Step::Whole(&[9; 64])),
            (live(1), Step::Ranges(&narrow)),
            (live(1), Step::Ranges(&wide)),
            (live(1), Step::Ranges(&other)),
        ];
        let mut displaced = 0;
        for (_, step) in &steps {
            let newest = OldVersion {
                header: live(2),
                step: *step,
            };
            for (header, step) in &steps {
                let older = OldVersion {
                    header: *header,
                    step: *step,
                };
                if !is_reached_without(&newest.step, &older) {
                    continue;
                }
                displaced += 1;
                let old = [newest, older];
                let pruned = prune(version(3), &old, |version, _| {
                    version == Some(&self::version(2))
                })
                .unwrap();
                assert_eq!(pruned.dropped, 1);
                assert_eq!(pruned.kept[0].as_old(), older, "after {newest:?}");
                assert!(pruned.gone.is_empty() && pruned.rewrites.is_empty());
            }
        }
        assert_eq!(displaced, 30, "of 49 pairs");
    }

    #[test]
    fn who_stays_is_made_of_the_same_bytes_without_the_newest_ones() {
        let seed = crate::tests::world::seed(
            "fat::displace::tests::who_stays_is_made_of_the_same_bytes_without_the_newest_ones",
        );
        let mut random = Random::new(seed);
        let (mut several, mut none) = (0, 0);
        for _ in 0..4000 {
            let spans = [0..8, 8..12, 0..12, 4..20, 30..34];
            let count = random.below(6) as usize + 1;
            let images: Vec<Vec<u8>> = (0..count)
                .map(|_| {
                    let span = spans[random.below(spans.len() as u64) as usize].clone();
                    let body: Vec<u8> = (0..40).map(|_| random.below(256) as u8).collect();
                    let mut image = Vec::new();
                    encode_image(&body, &[span], &mut image);
                    image
                })
                .collect();
            // From the newest to the oldest, as they are asked; in the row the oldest is first.
            let kept: Vec<Kept<'_>> = images
                .iter()
                .zip((1..=count as u64).rev())
                .map(|(image, stamp)| Kept {
                    header: Header::stamped(crate::row::Shape::INLINE, version(stamp), false),
                    step: KeptStep::Ranges(image.as_slice().into()),
                })
                .collect();
            let mut bytes = Vec::new();
            encode_versions(&kept, &mut bytes);
            let dead = random.below(count as u64 + 1);
            let is_dead = |version: &VersionStamp| version.stamp.get() > count as u64 - dead;
            let stays = without_newest(&bytes, is_dead);
            let left = OldVersions::new(&bytes[..stays]).count();
            let gone = count - left;
            assert!(left > 0 && gone as u64 <= dead);
            let start: Vec<u8> = (0..40).map(|_| random.below(256) as u8).collect();
            let (mut all, mut without) = (start.clone(), start);
            for (index, image) in images.iter().enumerate() {
                crate::delta::apply_image(image, &mut all).unwrap();
                if index >= gone {
                    crate::delta::apply_image(image, &mut without).unwrap();
                    assert_eq!(all, without, "{gone} of {count} went");
                }
            }
            several += u32::from(gone > 1);
            none += u32::from(gone == 0 && dead > 0);
        }
        // Some 240 and 2000: a seed is not the one that has none of either.
        assert!(several > 100 && none > 100, "{several} {none}");
    }

    #[test]
    fn two_columns_changed_by_turns_leave_one_version_besides_the_one_that_is_seen() {
        let image = |span: std::ops::Range<usize>| {
            let mut image = Vec::new();
            encode_image(&[7; 40], &[span], &mut image);
            image
        };
        // What the old snapshot sees was pruned into both columns.
        let images = [image(0..8), image(8..12), image(0..8), image(0..12)];
        let kept = |images: &[Vec<u8>]| {
            let mut bytes = Vec::new();
            let versions: Vec<Kept<'_>> = (images.iter().zip((1..=images.len() as u64).rev()))
                .map(|(image, stamp)| Kept {
                    header: Header::stamped(crate::row::Shape::INLINE, version(stamp), false),
                    step: KeptStep::Ranges(image.as_slice().into()),
                })
                .collect();
            encode_versions(&versions, &mut bytes);
            bytes
        };
        let bytes = kept(&images);
        let one = kept(&images[3..]).len();
        let seen = |version: &VersionStamp| version.stamp > Timestamp(1);
        assert_eq!(without_newest(&bytes, seen), one);
        // The second column's version is seen by somebody: the first two stay.
        let third = |version: &VersionStamp| version.stamp > Timestamp(3);
        assert_eq!(without_newest(&bytes, third), bytes.len());
    }
}
