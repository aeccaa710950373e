//! Loads whose leaves are in no log record: what a crash leaves of them.

use super::detached::file_now;
use crate::testing::{World, assert_sound, contents, records, recovered, seed};
use crate::{Tree, TreeKind};
use vellum_base::random::Random;
use vellum_base::{Gsn, SlotId};

fn key(number: u64) -> Vec<u8> {
    format!("{:09}", number * 3).into_bytes()
}

/// The file as it is while the load goes on, and the log up to any cut behind that: a prefix of the rows is in the tree, and no other page is
/// taken.
#[test]
fn crash_at_any_moment_of_a_load_leaves_a_prefix_and_no_page() {
    let seed = seed("crash_at_any_moment_of_a_load_leaves_a_prefix_and_no_page");
    let mut random = Random::new(seed);
    // Pages are written by eviction here too.
    for frames in [32, 256, 2048] {
        let world = World::make(4096, frames, false, |context| context);
        let journal = world.journal(1).unwrap();
        // Somebody had these pages before.
        let former = world.tree(TreeKind::Plain);
        for number in 0..20_000 {
            former.put(&key(number), &[9; 60], Some(journal)).unwrap();
        }
        while !former.drop_pages(16, Some(journal), None).unwrap() {}
        let tree = world.tree(TreeKind::Rows);
        let pending = world.pages_in_use();
        assert_eq!(pending, 1, "nothing but the root");
        world.log.flush_round().unwrap();
        let born = world.log.durable_gsn();
        let mut loader = tree.bulk_loader(90);
        let mut files = Vec::new();
        let rows = 12_000;
        for number in 0..rows {
            let payload = [&[0][..], &vec![7; random.below(120) as usize]].concat();
            loader.push(&key(number), &[&payload], journal).unwrap();
            if number % 2000 == 1999 {
                world.log.flush_round().unwrap();
                files.push((world.log.slot(SlotId(1)).slot_gsn(), file_now(&world)));
            }
        }
        loader.finish(journal).unwrap();
        world.log.flush_round().unwrap();
        files.push((world.log.slot(SlotId(1)).slot_gsn(), file_now(&world)));
        let all = records(&world.directory);
        let (mut from, mut most) = (born, 0);
        for (until, file) in files {
            let mut cuts: Vec<Gsn> = all
                .iter()
                .map(|(header, _)| header.gsn)
                .filter(|gsn| *gsn >= from && *gsn <= until)
                .collect();
            cuts.dedup();
            let old = (Gsn::ZERO, file);
            for _ in 0..12 {
                let cut = cuts[random.below(cuts.len() as u64) as usize];
                let found = recovered(4096, 64, Some(&old), &all, cut);
                let tree = Tree::open(&found.context, tree.root(), TreeKind::Rows);
                let sound = assert_sound(&tree);
                let rows = contents(&tree);
                let wanted = (0..rows.len() as u64).map(key);
                assert!(wanted.eq(rows.iter().map(|row| row.0.clone())), "a prefix");
                assert_eq!(found.pages_in_use(), sound.pages_total(), "{frames} frames");
                most = most.max(rows.len());
            }
            from = until;
        }
        assert!(most > 8000, "{most} rows at most");
        let end = (Gsn::ZERO, file_now(&world));
        let found = recovered(4096, 64, Some(&end), &all, Gsn::MAX);
        let tree = Tree::open(&found.context, tree.root(), TreeKind::Rows);
        assert_eq!(contents(&tree).len() as u64, rows);
    }
}
