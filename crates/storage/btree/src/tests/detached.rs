//! Detached chains: what is linked is in the file, what is not is free.

use crate::detached::DetachedWriter;
use crate::overflow::{self, Reader, free};
use crate::testing::{World, records, recovered};
use crate::{Entry, TreeKind};
use vellum_base::Gsn;
use vellum_base::random::Random;
use vellum_io::{Directory, MemoryDirectory, OpenOptions};

fn bytes(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Random::new(length as u64).fill(&mut bytes);
    bytes
}

/// A copy of the data file as it is now.
pub(super) fn file_now(world: &World) -> MemoryDirectory {
    let copy = MemoryDirectory::new();
    let from = world
        .directory
        .open("data", OpenOptions::existing())
        .unwrap();
    let mut bytes = vec![0; from.len().unwrap() as usize];
    from.read_at(&mut bytes, 0).unwrap();
    let to = copy.open("data", OpenOptions::create()).unwrap();
    to.write_at(&bytes, 0).unwrap();
    copy
}

fn write_back(world: &World) {
    let mut scan = world.pool.checkpoint_begin();
    while !world.pool.checkpoint_step(&mut scan, 64).unwrap() {}
}

#[test]
fn a_linked_chain_is_in_the_file_and_costs_the_log_a_fraction_of_its_bytes() {
    for length in [0, 1, 4056, 4057, 300_000] {
        let world = World::make(4096, 16, false, |context| context);
        let pending = world.tree(TreeKind::Plain);
        let before = world.space.counts();
        let mut writer = DetachedWriter::new(&world.context).unwrap();
        bytes(length)
            .chunks(777)
            .for_each(|chunk| writer.write(chunk).unwrap());
        let chain = writer.finish().unwrap();
        let pages = (length as u64).div_ceil(4056).max(1);
        let counts = world.space.counts();
        assert_eq!(counts.temporary - before.temporary, pages);
        assert_eq!(counts.durable, before.durable);
        write_back(&world);
        world.log.flush_round().unwrap();
        let logged = world.log.statistics().bytes_records;
        let entry = Entry {
            tree: &pending,
            payload: b"chain",
        };
        let chain = chain.link(world.journal(1).unwrap(), entry).unwrap();
        world.log.flush_round().unwrap();
        let logged = world.log.statistics().bytes_records - logged;
        assert!(logged < 200 + 4 * pages, "{logged} bytes for {pages} pages");
        assert_eq!(world.space.counts().durable - before.durable, pages);
        // What was in the file when the chain was linked, and the log, are enough.
        let file = file_now(&world);
        let all = records(&world.directory);
        let cut = all.last().unwrap().0.gsn;
        let old = (Gsn::ZERO, file);
        for linked in [true, false] {
            let cut = if linked { cut } else { Gsn(cut.get() - 1) };
            let found = recovered(4096, 16, Some(&old), &all, cut);
            let pending = crate::Tree::open(&found.context, pending.root(), TreeKind::Plain);
            let key = chain.root.get().to_be_bytes();
            assert_eq!(pending.get(&key, &mut Vec::new()).unwrap(), linked);
            let grown = found.space.counts().durable - before.durable;
            assert_eq!(grown, if linked { pages } else { 0 });
            if linked {
                let mut read = Vec::new();
                Reader::new(&found.context, chain)
                    .for_each(|chunk| read.extend_from_slice(chunk))
                    .unwrap();
                assert!(read == bytes(length));
                let checked = overflow::verify(&found.context, chain.root, &mut |_| true);
                assert_eq!(checked.unwrap(), (pages, length as u64));
                while !free(
                    &found.context,
                    chain.root,
                    5,
                    found.journal(1),
                    Some(&pending),
                )
                .unwrap()
                {}
                assert!(!pending.get(&key, &mut Vec::new()).unwrap());
                assert_eq!(found.space.counts().durable, before.durable);
            }
        }
    }
}

#[test]
fn a_chain_that_is_given_up_gives_its_pages_back() {
    let world = World::new(4096, 16);
    let before = world.space.counts();
    for finishes in [true, false] {
        let mut writer = DetachedWriter::new(&world.context).unwrap();
        writer.write(&bytes(200_000)).unwrap();
        if finishes {
            drop(writer.finish().unwrap());
        } else {
            drop(writer);
        }
        let counts = world.space.counts();
        assert_eq!(
            (counts.durable, counts.temporary),
            (before.durable, before.temporary)
        );
    }
}

#[test]
fn a_writer_is_full_while_its_bits_fit_into_one_change() {
    let world = World::new(4096, 64);
    let pending = world.tree(TreeKind::Plain);
    let mut writer = DetachedWriter::new(&world.context).unwrap();
    let mut written = 0;
    while !writer.is_full() {
        writer.write(&bytes(3000)).unwrap();
        written += 3000;
    }
    assert!(written > 1 << 20, "{written}");
    writer.write(&bytes(4000)).unwrap();
    let chain = writer.finish().unwrap();
    write_back(&world);
    let entry = Entry {
        tree: &pending,
        payload: b"chain",
    };
    let chain = chain.link(world.journal(1).unwrap(), entry).unwrap();
    assert_eq!(chain.length, written + 4000);
}
