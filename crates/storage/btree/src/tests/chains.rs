//! Overflow chains.

use crate::overflow::{CHAIN_HEADER_BYTES, ChainRef, Reader, Writer, free, verify};
use crate::testing::{World, seed};
use crate::{Entry, TreeKind};
use vellum_base::PageId;
use vellum_base::random::Random;
use vellum_buffer::PageUse;
use vellum_io::{Directory, OpenOptions};

fn read(world: &World, chain: ChainRef) -> Vec<u8> {
    let mut all = Vec::new();
    Reader::new(&world.context, chain)
        .for_each(|bytes| all.extend_from_slice(bytes))
        .unwrap();
    all
}

#[test]
fn prop_chain_gives_back_its_bytes_and_its_pages() {
    let seed = seed("prop_chain_gives_back_its_bytes_and_its_pages");
    let mut random = Random::new(seed);
    for round in 0..30 {
        let world = World::new([4096, 8192, 16384][round % 3], 16);
        let pending = world.tree(TreeKind::Plain);
        let before = world.pages_in_use();
        let page = world.context.page_size() as u64 - 40;
        let length = [0, 1, page, page + 1, 3 * page, random.below(40 * page)][round % 6];
        let mut bytes = vec![0; length as usize];
        random.fill(&mut bytes);
        let entry = Entry {
            tree: &pending,
            payload: b"chain",
        };
        let mut writer = Writer::new(&world.context, world.journal(1), Some(entry));
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let count = random.between(1, 9000).min(rest.len() as u64) as usize;
            writer.write(&rest[..count]).unwrap();
            rest = &rest[count..];
        }
        let chain = writer.finish().unwrap();
        assert_eq!(chain.length, length);
        assert_eq!(ChainRef::decode(&chain.encode()), Some(chain));
        assert!(read(&world, chain) == bytes);
        assert_eq!(world.pages_in_use() - before, length.div_ceil(page).max(1));
        let mut pages = 0;
        Reader::new(&world.context, chain)
            .pages(|_| pages += 1)
            .unwrap();
        assert_eq!(pages, length.div_ceil(page).max(1));
        let mut seen = std::collections::HashSet::new();
        let checked = verify(&world.context, chain.root, &mut |page| seen.insert(page));
        assert_eq!(checked.unwrap(), (length.div_ceil(page).max(1), length));
        assert!(
            verify(&world.context, chain.root, &mut |page| seen.insert(page)).is_err(),
            "pages of another chain"
        );
        let wrong = ChainRef {
            length: length + 1,
            ..chain
        };
        let result = Reader::new(&world.context, wrong).for_each(|_| {});
        assert!(result.is_err(), "a chain of another length");
        let mut out = Vec::new();
        let key = chain.root.get().to_be_bytes();
        while !free(
            &world.context,
            chain.root,
            5,
            world.journal(1),
            Some(&pending),
        )
        .unwrap()
        {
            assert!(
                pending.get(&key, &mut out).unwrap(),
                "listed while there are pages"
            );
        }
        assert!(!pending.get(&key, &mut out).unwrap());
        assert_eq!(world.pages_in_use(), before);
    }
}

#[test]
fn chain_given_up_half_way_is_listed_and_can_be_freed() {
    let world = World::new(4096, 16);
    let pending = world.tree(TreeKind::Plain);
    let before = world.pages_in_use();
    let entry = Entry {
        tree: &pending,
        payload: b"",
    };
    let mut writer = Writer::new(&world.context, world.journal(1), Some(entry));
    assert!(writer.root().is_zero());
    writer.write(&[3; 20_000]).unwrap();
    let root = writer.root();
    drop(writer);
    assert!(
        pending
            .get(&root.get().to_be_bytes(), &mut Vec::new())
            .unwrap()
    );
    assert!(free(&world.context, root, 100, world.journal(1), Some(&pending)).unwrap());
    assert_eq!(world.pages_in_use(), before);
    // Only a chain can be freed as one.
    assert!(free(&world.context, pending.root(), 100, world.journal(1), None).is_err());
}

fn evict(world: &World) {
    while world.pool.evict_step(world.pool.frames()).unwrap() > 0 {}
}

/// Symptom: maintenance met a leaf of a tree that there was no more, and rows that were long gone could be read. Cause: a chain's pages are read ahead by a
/// guess; a free page among them has in the file what it was before, after a crash, or a truncation that gave up. Guard: who guesses asks what is in use.
#[test]
fn regress_chain_that_is_read_ahead_brings_no_page_back_that_was_given_back() {
    const PAGE: usize = 4096;
    const CAPACITY: usize = PAGE - CHAIN_HEADER_BYTES;
    let world = World::new(PAGE, 64);
    let mut writer = Writer::new(&world.context, world.journal(1), None);
    writer.write(&[1; 6 * CAPACITY + 1]).unwrap();
    let tree = world.tree(TreeKind::Temporary);
    tree.put(b"key", b"payload", None).unwrap();
    writer.write(&[1; 8 * CAPACITY]).unwrap();
    let chain = writer.finish().unwrap();
    let mut pages = Vec::new();
    let reader = Reader::new(&world.context, chain);
    reader.pages(|page| pages.push(page)).unwrap();
    let freed = tree.root();
    let beside = [PageId(freed.get() - 1), PageId(freed.get() + 1)];
    assert!(pages.windows(2).any(|pair| pair == beside), "{pages:?}");

    evict(&world);
    let file = world.directory.open("data", OpenOptions::existing());
    let (file, at) = (file.unwrap(), freed.get() * PAGE as u64);
    let mut leaf = [0; PAGE];
    file.read_at(&mut leaf, at).unwrap();
    while !tree.drop_pages(64, None, None).unwrap() {}
    evict(&world);
    file.write_at(&leaf, at).unwrap();

    assert_eq!(world.space.page_use(freed), PageUse::Free);
    let prefetched = || world.pool.statistics().prefetched;
    let before = prefetched();
    assert!(read(&world, chain) == [1; 14 * CAPACITY + 1]);
    assert!(prefetched() > before, "pages were read ahead");
    assert!(
        !world.pool.is_resident(freed),
        "a leaf of a tree that is gone"
    );
}
