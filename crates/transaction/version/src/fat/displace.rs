//! The newest old version of a fat row gives its place to the next one, where nobody can see it: a row that is updated
//! all the time under an old snapshot stays as long as it is, and its readers pass over one version, not over as many
//! as there was slack for.
//!
//! Paper: LeanStore §3.3 prunes a tuple when it is full. Difference: what the published watermarks alone show to be dead
//! (committed after every analytical snapshot, replaced before every other one) goes with the update that adds a version;
//! what takes the list of open snapshots, or the rewriting of anything, waits until the row is full (`prune`).
//!
//! Concurrency: under the leaf's latch, like every change of a fat row; asks commit logs without their latches.

use crate::fat::layout::{BODY_AT, OldVersion, OldVersions, Step};
use crate::fat::prune::covers;
use crate::fat::update::Place;
use crate::row::Header;
use vellum_btree::LeafWrite;
use vellum_gc::Horizon;

/// Bytes at the end of the old versions that are looked at: two of the longest that an update of a few columns makes.
const LOOK_BYTES: usize = 256;

/// How many of the `versions` bytes of old versions stay before the one that is replaced now, whose header is `before`. All
/// of them, unless the newest ones are dead and the older ones are reached without them. One stays always: a row that
/// needs none is written plain when it is full.
#[inline]
pub(crate) fn displace(
    place: &Place<'_>,
    leaf: &LeafWrite<'_, '_>,
    body: usize,
    versions: usize,
    before: &Header,
) -> usize {
    if BODY_AT + body + versions > leaf.payload_len() {
        return versions;
    }
    let look = versions.min(LOOK_BYTES);
    let mut bytes = [0; LOOK_BYTES];
    let bytes = &mut bytes[..look];
    leaf.payload_read(BODY_AT + body + versions - look, bytes);
    let mut old = OldVersions::new(bytes);
    // Who is longer than what is looked at is left alone; what is broken is found when the row is full.
    let (Some(Ok(mut newest)), Some(replaced)) = (old.next(), before.writer) else {
        return versions;
    };
    let horizon = Horizon::published(place.transaction.domain());
    let mut stays = look;
    while let Some(writer) = newest.header.writer
        && horizon.is_plainly_dead(&writer.version, &replaced.version)
    {
        let end = old.rest().len();
        match old.next() {
            Some(Ok(older)) if is_reached_without(&newest, &older) => {
                (stays, newest) = (end, older)
            }
            _ => break,
        }
    }
    versions - look + stays
}

/// True if `older` is made of what is newer than `newest` just as it is made of `newest`: what
/// [`prune`](crate::fat::prune::prune) would leave of it is what is there.
fn is_reached_without(newest: &OldVersion<'_>, older: &OldVersion<'_>) -> bool {
    match (newest.step, older.step) {
        // Its copy would have to go, too.
        (Step::Copy(_), _) => false,
        (Step::Same, _) | (_, Step::Copy(_)) => true,
        (Step::Ranges(_), Step::Same) => older.header.shape.tombstone,
        (Step::Ranges(newer), Step::Ranges(older)) => covers(older, newer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::encode_image;
    use crate::fat::prune::prune;
    use vellum_base::{SlotId, Timestamp};
    use vellum_txn::VersionStamp;

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
                if !is_reached_without(&newest, &older) {
                    continue;
                }
                displaced += 1;
                let old = [newest, older];
                let pruned = prune(version(3), &old, |version, _| {
                    version == Some(&self::version(2))
                });
                assert_eq!(pruned.dropped, 1);
                assert_eq!(pruned.kept[0].as_old(), older, "after {newest:?}");
                assert!(pruned.gone.is_empty() && pruned.rewrites.is_empty());
            }
        }
        assert!(displaced >= 12, "{displaced} of 36 pairs");
    }
}
