//! What readers of many rows find out from the first bytes of a row is what its whole header says.

use super::world::{World, view};
use crate::fat::layout::{BODY_AT, encode_lengths};
use crate::read::{Resolved, visible_as_is, visible_by_header};
use vellum_txn::VersionStamp;

const BODY: usize = 20;
const VERSIONS: usize = 5;

/// A row with these flags by this writer, with the lengths of a fat row and more behind its header. Its estimate is zero, which is a
/// bound's and a link's as well.
fn row(flags: u8, version: VersionStamp) -> Vec<u8> {
    let mut row = vec![flags];
    row.extend_from_slice(&version.slot.0.to_le_bytes());
    row.extend_from_slice(&version.stamp.get().to_le_bytes());
    row.extend_from_slice(&version.command.to_le_bytes());
    row.extend_from_slice(&[0; 3]);
    row.extend_from_slice(&encode_lengths(BODY, VERSIONS));
    row.resize(BODY_AT + BODY + VERSIONS, 7);
    row
}

#[test]
fn rows_with_headers_of_all_kinds_are_judged_at_a_glance_as_by_the_whole_header() {
    let world = World::new(4096, 64);
    let tree = world.table();
    let put = |byte: u8| {
        let tx = world.begin();
        world.put(&tx, &tree, &[byte], &[byte; 8]).unwrap();
        tx
    };
    world.commit(put(1));
    let reader = world.begin();
    // A snapshot is drawn with the first look.
    assert_eq!(world.get(&reader, &tree, &[1]), Some(vec![1; 8]));
    world.put(&reader, &tree, &[2], &[2; 8]).unwrap();
    world.commit(put(3));
    let unfinished = put(4);
    let writers: Vec<VersionStamp> = world
        .headers(&tree)
        .iter()
        .map(|header| header.writer.expect("written since the start").version)
        .collect();
    let [before, own, after, open] = writers[..] else {
        panic!("{writers:?}");
    };
    let mut seen_fat = 0;
    for version in [before, own, after, open] {
        for flags in 0..=u8::MAX {
            let whole = row(flags, version);
            // Cut off anywhere, too: the bytes may be damaged.
            for length in 0..=whole.len() {
                let row = &whole[..length];
                let view = view(&reader);
                let found = visible_as_is(&view, row);
                assert_eq!(
                    found,
                    visible_by_header(&view, row),
                    "flags {flags:#x}, {length} bytes of {version:?}"
                );
                let is_fat = matches!(found, Some(Resolved::Visible(at)) if at.start == BODY_AT && at.end == BODY_AT + BODY);
                seen_fat += u32::from(is_fat);
            }
        }
    }
    assert!(seen_fat > 0, "fat rows are among those that are seen");
    world.rollback(unfinished);
    world.rollback(reader);
}
