//! Joining: which leaves take which.

use crate::testing::World;
use crate::{LeafCopy, Seek, Tree, TreeKind};
use vellum_base::PageId;

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn is_first_leaf_empty(tree: &Tree, copy: &mut LeafCopy) -> bool {
    tree.read_leaf(Seek::First, copy).unwrap();
    copy.is_empty() && copy.upper_fence().is_some()
}

/// Its keys share most of their front, which those of the first leaf cannot leave out: what the first one leaves behind does not take the
/// second, full as that is, before it has lost a row or two itself.
#[test]
fn first_leaf_of_a_queue_is_not_empty_for_long() {
    for payload in (10..130).step_by(3) {
        let world = World::new(4096, 128);
        let tree = world.tree(TreeKind::Temporary);
        let mut copy = LeafCopy::new(4096);
        let value = vec![7; payload];
        let (rows, operations) = (400, 2000);
        let mut empty = 0;
        for tail in 0..rows + operations {
            tree.put(&key(tail), &value, None).unwrap();
            if tail >= rows {
                assert!(tree.delete(&key(tail - rows), None).unwrap());
                empty += u64::from(is_first_leaf_empty(&tree, &mut copy));
            }
        }
        assert!(
            empty < operations / 3,
            "{empty} of {operations} with {payload}"
        );
        let findings = &mut |finding| panic!("{finding:?}");
        let statistics = tree.verify(&mut |_: PageId| true, findings).unwrap();
        assert_eq!(statistics.rows, rows);
    }
}
