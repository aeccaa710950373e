//! Cleaning a leaf that changes between the look at its rows and the latch.

use crate::node::layout::{FLAG_FAT, NodeRead};
use crate::testing::{World, body, contents};
use crate::{Cleaner, Logging, RowRedo, Tree, TreeKind, Verdict, row_log_bytes};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use vellum_base::{Gsn, PageId, SlotId};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// Removes rows whose body is "dead", takes the stamps of others; before it says so of the first one, somebody else has his turn.
#[derive(Clone, Default)]
struct Interrupted(Arc<(Mutex<Option<Meanwhile>>, AtomicBool)>);

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Cleaner for Interrupted {
    fn judge(&self, _: PageId, payload: &[u8], shorter: &mut Vec<u8>) -> Verdict {
        if let Some(meanwhile) = self.0.0.lock().unwrap().take() {
            meanwhile();
            self.0.1.store(true, Ordering::Relaxed);
        }
        match body(payload) {
            Some(b"dead") => Verdict::Remove,
            Some(body) if payload[0] == 1 => {
                shorter.push(0);
                shorter.extend_from_slice(body);
                Verdict::Shrink
            }
            _ => Verdict::Keep,
        }
    }
}

/// Writes a row, with a stamp, or removes it.
fn write(world: &World, tree: &Tree, key: &[u8], new: Option<&[u8]>) {
    let slot = world.log.slot(SlotId(1));
    slot.reserve(row_log_bytes(key.len(), 900)).unwrap();
    let mut leaf = tree.write(key).unwrap();
    let row = [&[0_u8][..], new.unwrap_or_default()];
    let logging = Logging::Record {
        slot,
        flags: 0,
        redo: if new.is_some() {
            RowRedo::Row(&row)
        } else {
            RowRedo::Remove
        },
        undo: &[],
    };
    let payload = [&[1; 9], new.unwrap_or_default()].concat();
    match (new.is_some(), leaf.found()) {
        (true, true) => drop(leaf.replace(&[&payload], logging)),
        (true, false) => drop(leaf.insert(&[&payload], logging)),
        (false, _) => drop(leaf.remove(logging)),
    }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn gsn_of(tree: &Tree) -> Gsn {
    tree.write(&key(1)).unwrap().page_mut().page_gsn()
}

/// A leaf whose cleaner is interrupted by somebody who says which number the leaf has then. What stands in it at the end, and whether it is marked.
fn cleaned_beside(dead: bool, meanwhile: fn(&World, &Tree) -> Gsn) -> (Vec<u32>, bool) {
    let cleaner = Interrupted::default();
    let world = Arc::new(World::make(4096, 16, true, |context| {
        context.with_cleaner(Arc::new(cleaner.clone()))
    }));
    let tree = world.tree(TreeKind::Rows);
    for number in 0..100 {
        let body = match dead && number % 4 == 0 {
            true => &b"dead"[..],
            false => b"alive",
        };
        write(&world, &tree, &key(number), Some(body));
    }
    let (other, of) = (world.clone(), tree.clone());
    let seen = Arc::new(Mutex::new(Gsn::ZERO));
    let note = seen.clone();
    *cleaner.0.0.lock().unwrap() = Some(Box::new(move || {
        *note.lock().unwrap() = meanwhile(&other, &of);
    }));
    // Room that cleaning makes, so no split follows.
    tree.make_room(&key(50), 1200, world.journal(2)).unwrap();
    assert!(cleaner.0.1.load(Ordering::Relaxed), "it had its turn");
    assert!(
        gsn_of(&tree) >= *seen.lock().unwrap(),
        "redo would do things twice"
    );
    let one = key(1);
    let mut leaf = tree.write(&one).unwrap();
    let is_fat = leaf.page_mut().kind_and_flags().1 & FLAG_FAT != 0;
    drop(leaf);
    let number = |(key, _): (Vec<u8>, Vec<u8>)| u32::from_be_bytes(key.try_into().unwrap());
    (contents(&tree).into_iter().map(number).collect(), is_fat)
}

#[test]
fn a_leaf_that_changes_while_its_rows_are_judged_keeps_what_is_new() {
    let all: Vec<u32> = (0..100).collect();
    for dead in [true, false] {
        let left: Vec<u32> = all
            .iter()
            .copied()
            .filter(|n| !dead || n % 4 != 0)
            .collect();
        let quiet = cleaned_beside(dead, |_, tree| gsn_of(tree));
        assert_eq!(quiet, (left.clone(), false));
        // A mark alone: the rows are those that were judged, and the mark stays.
        let marked = cleaned_beside(dead, |_, tree| {
            tree.write(&key(1)).unwrap().mark_fat();
            gsn_of(tree)
        });
        assert_eq!(marked, (left.clone(), true));
        // The same rows once more, under a higher number: it does not go back.
        let reborn = cleaned_beside(dead, |world, tree| {
            let before = gsn_of(tree);
            write(world, tree, &key(150), Some(b"short"));
            write(world, tree, &key(150), None);
            assert!(gsn_of(tree) > before);
            gsn_of(tree)
        });
        assert_eq!(reborn, (left, false));
        // Another row in the place of one that was judged: nothing is done.
        let changed = cleaned_beside(dead, |world, tree| {
            write(world, tree, &key(4), Some(b"anew!"));
            gsn_of(tree)
        });
        assert_eq!(changed.0, all);
    }
}
