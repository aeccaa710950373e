//! The newest old version of a fat row gives its place to the next one, where nobody can see it: a row that is updated
//! all the time under an old snapshot stays as long as it is, and its readers pass over one version, not over as many
//! as there was slack for.
//!
//! Paper: LeanStore §3.3 prunes a tuple when it is full. Difference: what the published watermarks alone show to be dead
//! (committed after every analytical snapshot, replaced before every other one) goes with the update that adds a version;
//! what takes the list of open snapshots, or the rewriting of anything, waits until the row is full (`prune`).
//!
//! Concurrency: under the leaf's latch, like every change of a fat row; asks commit logs without their latches.

use crate::fat::layout::{BODY_AT, NAME_BYTES, OldVersion, OldVersions, Step, VERSION_OVERHEAD};
use crate::fat::prune::covers;
use crate::fat::update::Place;
use crate::row::{Header, STAMPED_HEADER};
use vellum_btree::LeafWrite;
use vellum_gc::Horizon;

/// How many of the `versions` bytes of old versions stay before the one that is replaced now, whose header is `before`. All
/// of them, unless the newest ones are dead and the older ones are reached without them. One stays always: a row that
/// needs none is written plain when it is full. `look` is overwritten; with `spare`, a mistake on purpose, one goes whoever sees it.
#[inline]
pub(crate) fn displace(
    place: &Place<'_>,
    leaf: &LeafWrite<'_, '_>,
    body: usize,
    versions: usize,
    before: &Header,
    look: &mut Vec<u8>,
    mut spare: bool,
) -> usize {
    if BODY_AT + body + versions > leaf.payload_len() {
        return versions;
    }
    // Two of the longest that stand in a row: the newest, and the one that it gives its place to.
    let longest = VERSION_OVERHEAD + STAMPED_HEADER + place.image_max().max(NAME_BYTES);
    look.resize(versions.min(2 * longest), 0);
    let unread = versions - look.len();
    leaf.payload_read(BODY_AT + body + unread, look);
    let mut old = OldVersions::new(look);
    // What is broken is found when the row is full.
    let (Some(Ok(mut newest)), Some(replaced)) = (old.next(), before.writer) else {
        return versions;
    };
    let horizon = Horizon::published(place.transaction.domain());
    let mut stays = look.len();
    while let Some(writer) = newest.header.writer
        && (std::mem::take(&mut spare)
            || horizon.is_plainly_dead(&writer.version, &replaced.version))
    {
        let end = old.rest().len();
        match old.next() {
            Some(Ok(older)) if is_reached_without(&newest, &older) => {
                (stays, newest) = (end, older)
            }
            _ => break,
        }
    }
    unread + stays
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
