//! Pages against a `BTreeMap`, in all page sizes.

use super::build::{
    Builder, Frame, Incoming, entry, frame_of, join, lower_fence, plan_inner_split,
    plan_leaf_split, rebuild, upper_fence,
};
use super::check::check_node;
use super::edit::NodeWrite;
use super::layout::{FLAG_PLAIN, HEADER_BYTES, NodeRead, record_bytes};
use crate::testing::seed;
use std::collections::BTreeMap;
use vellum_base::PageId;
use vellum_base::random::Random;
use vellum_buffer::{PageBuf, PageWrite};

const SIZES: [usize; 3] = [4096, 8192, 16384];

fn frame<'f>(lower: Option<&'f [u8]>, upper: Option<&'f [u8]>) -> Frame<'f> {
    Frame {
        tree: PageId(7),
        flags: FLAG_PLAIN,
        level: 0,
        lower,
        upper,
        rightmost: PageId::ZERO,
    }
}

fn empty(size: usize, lower: Option<&[u8]>, upper: Option<&[u8]>) -> PageBuf {
    let mut page = PageBuf::new(size);
    Builder::new(&mut page, &frame(lower, upper)).finish();
    page
}

fn assert_equal(page: &PageBuf, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    assert_eq!(check_node(page), Ok(()));
    assert_eq!(page.shape().count, model.len());
    for (index, (key, payload)) in model.iter().enumerate() {
        let entry = entry(page, index);
        assert_eq!((&entry.key(), entry.payload), (key, &payload[..]));
        assert_eq!(page.find(key), (index, true));
    }
}

/// Keys between "tree/a" and "tree/z" of mixed lengths, many of them with equal heads.
fn random_key(random: &mut Random) -> Vec<u8> {
    let mut key = b"tree/".to_vec();
    key.push(b'a' + random.below(20) as u8);
    if random.chance(1, 3) {
        key.extend_from_slice(b"same");
    }
    let tail = if random.chance(1, 20) { 300 } else { 8 };
    for _ in 0..random.below(tail) {
        key.push(random.below(3) as u8);
    }
    key
}

fn random_payload(random: &mut Random) -> Vec<u8> {
    let longest = if random.chance(1, 10) { 700 } else { 60 };
    let mut payload = vec![0; random.below(longest) as usize];
    random.fill(&mut payload);
    payload
}

#[test]
fn prop_page_equals_a_map_under_random_changes() {
    let seed = seed("prop_page_equals_a_map_under_random_changes");
    for size in SIZES {
        let mut random = Random::new(seed);
        let mut page = empty(size, Some(b"tree/a"), Some(b"tree/z"));
        assert_eq!(page.fences().prefix, 5);
        let mut model = BTreeMap::new();
        for step in 0..4000 {
            let (key, payload) = (random_key(&mut random), random_payload(&mut random));
            let (index, found) = page.find(&key);
            assert_eq!(found, model.contains_key(&key));
            assert!(page.covers(&key));
            match random.below(10) {
                0..5 if !found => {
                    let suffix = page.suffix_of(&key).to_vec();
                    if record_bytes(suffix.len(), payload.len()) <= page.shape().free {
                        page.insert_at(
                            index,
                            &suffix,
                            &[&payload[..1.min(payload.len())], {
                                &payload[1.min(payload.len())..]
                            }],
                        );
                        model.insert(key, payload);
                    }
                }
                0..6 if found => {
                    if page.replacement_fits(index, payload.len()) {
                        page.replace_at(index, &[&payload]);
                        model.insert(key, payload);
                    }
                }
                6 if found => {
                    let old = model.get_mut(&key).expect("found");
                    if !old.is_empty() {
                        let at = random.below(old.len() as u64) as usize;
                        page.patch_at(index, at, &[77]);
                        old[at] = 77;
                    }
                }
                7 => page.compact(),
                8 if random.chance(1, 8) => {
                    // Any part of the slots, sometimes all or none.
                    let share = random.below(9);
                    let indexes: Vec<usize> = (0..page.shape().count)
                        .filter(|_| random.below(8) < share)
                        .collect();
                    page.remove_all(&indexes);
                    let mut index = 0;
                    model.retain(|_, _| {
                        index += 1;
                        indexes.binary_search(&(index - 1)).is_err()
                    });
                }
                _ => {
                    if let Some(victim) = model.keys().nth(random.below(40) as usize).cloned() {
                        let (index, found) = page.find(&victim);
                        assert!(found);
                        page.remove_at(index);
                        model.remove(&victim);
                    }
                }
            }
            if step % 50 == 0 {
                assert_equal(&page, &model);
            }
        }
        assert_equal(&page, &model);
    }
}

#[test]
fn prop_search_orders_keys_as_strings_whatever_their_heads_and_lengths() {
    let mut random = Random::new(seed(
        "prop_search_orders_keys_as_strings_whatever_their_heads_and_lengths",
    ));
    // Few different bytes, zeroes among them: equal heads, equal words behind them, keys that begin other keys.
    let mut draw = |bytes: u64| {
        let length = random.below(18) as usize;
        (0..length)
            .map(|_| [0, 0, 1, 255][random.below(bytes) as usize])
            .collect::<Vec<u8>>()
    };
    // In some rounds all keys begin alike, as far as heads go: by four bytes, or by as many zeroes as short keys are filled up with.
    const FRONTS: [&[u8]; 4] = [b"", b"same", &[0; 4], &[0; 3]];
    for round in 0..40 {
        let front = FRONTS[round as usize % 4];
        let mut draw = |bytes| {
            let key = draw(bytes);
            match front {
                // The short ones themselves, too.
                [0, ..] if key.len() < 3 => vec![0; key.len()],
                _ => [front, &key].concat(),
            }
        };
        let mut page = empty(16384, None, None);
        let mut keys = std::collections::BTreeSet::new();
        for _ in 0..400 {
            let key = draw(3 + round % 2);
            let (index, found) = page.find(&key);
            assert_eq!(found, keys.contains(&key), "{key:?}");
            if keys.insert(key.clone()) {
                page.insert_at(index, &key, &[b"payload"]);
            }
        }
        assert_eq!(check_node(&page), Ok(()));
        for _ in 0..400 {
            let key = draw(4);
            let below = keys.range(..key.clone()).count();
            assert_eq!(page.find(&key), (below, keys.contains(&key)), "{key:?}");
        }
    }
}

#[test]
fn rows_grow_in_a_full_page_until_no_byte_is_free() {
    let seed = seed("rows_grow_in_a_full_page_until_no_byte_is_free");
    for size in SIZES {
        let mut random = Random::new(seed);
        let mut page = empty(size, Some(b"tree/a"), Some(b"tree/z"));
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        while page.shape().free > 200 {
            let (key, payload) = (random_key(&mut random), random_payload(&mut random));
            let suffix = page.suffix_of(&key).to_vec();
            let (index, found) = page.find(&key);
            if !found && record_bytes(suffix.len(), payload.len()) <= page.shape().free {
                page.insert_at(index, &suffix, &[&payload]);
                model.insert(key, payload);
            }
        }
        while page.shape().free > 0 {
            let nth = random.below(model.len() as u64) as usize;
            let (key, payload) = model.iter_mut().nth(nth).expect("below their number");
            let extra = (1 + random.below(17) as usize).min(page.shape().free);
            payload.extend(std::iter::repeat_n(extra as u8, extra));
            let (index, found) = page.find(key);
            assert!(found && page.replacement_fits(index, payload.len()));
            let at = random.below(payload.len() as u64) as usize;
            page.replace_at(index, &[&payload[..at], &payload[at..]]);
            assert_equal(&page, &model);
        }
    }
}

#[test]
fn prop_split_and_join_give_back_the_page() {
    let seed = seed("prop_split_and_join_give_back_the_page");
    let mut random = Random::new(seed);
    let mut checked = 0;
    for round in 0..200 {
        let size = SIZES[round % 3];
        let mut page = empty(size, None, (round % 2 == 0).then_some(&b"u"[..]));
        let mut model = BTreeMap::new();
        let incoming = loop {
            let (key, payload) = (random_key(&mut random), random_payload(&mut random));
            let (index, found) = page.find(&key);
            if found {
                continue;
            }
            if record_bytes(key.len(), payload.len()) > page.shape().free {
                break (key, payload);
            }
            page.insert_at(index, &key, &[&payload]);
            model.insert(key, payload);
        };
        let plan = plan_leaf_split(
            &page,
            Incoming {
                key: &incoming.0,
                payload: incoming.1.len(),
                spare: 0,
            },
        )
        .expect("many records");
        let (mut left, mut right) = (PageBuf::new(size), PageBuf::new(size));
        let separator = &plan.separator[..];
        let fitted = rebuild(
            &page,
            0..plan.left,
            &Frame {
                upper: Some(separator),
                ..frame_of(&page)
            },
            &mut left,
        );
        if !fitted {
            // All records stay and the page is too full for the fence: the tree then cuts elsewhere.
            assert_eq!(plan.left, page.shape().count);
            continue;
        }
        checked += 1;
        assert!(rebuild(
            &page,
            plan.left..page.shape().count,
            &Frame {
                lower: Some(separator),
                ..frame_of(&page)
            },
            &mut right
        ));
        assert_eq!((check_node(&left), check_node(&right)), (Ok(()), Ok(())));
        assert_eq!(upper_fence(&left), lower_fence(&right));
        let home = if left.covers(&incoming.0) {
            &left
        } else {
            &right
        };
        assert!(home.covers(&incoming.0));
        assert!(home.shape().count < page.shape().count);
        let mut joined = PageBuf::new(size);
        assert!(join(&left, &right, &mut joined));
        assert_equal(&joined, &model);
    }
    assert!(checked > 100, "only {checked} splits");
}

#[test]
fn inner_split_moves_a_separator_up_and_join_takes_it_down() {
    let mut page = PageBuf::new(4096);
    let root = Frame {
        level: 1,
        rightmost: PageId(999),
        ..frame(None, None)
    };
    let mut builder = Builder::new(&mut page, &root);
    for number in 0..50_u64 {
        let key = (number * 10).to_be_bytes();
        assert!(builder.push((&key, b""), &[&(number + 100).to_le_bytes()]));
    }
    builder.finish();
    assert_eq!(check_node(&page), Ok(()));
    let edge = plan_inner_split(&page, &u64::MAX.to_be_bytes()).expect("separators");
    assert_eq!(edge, 49, "appending leaves a full page behind");
    let middle = plan_inner_split(&page, &0_u64.to_be_bytes()).expect("separators");
    assert!((20..30).contains(&middle));
    let up = entry(&page, middle).key();
    let (mut left, mut right, mut joined) =
        (PageBuf::new(4096), PageBuf::new(4096), PageBuf::new(4096));
    let base = frame_of(&page);
    let left_frame = Frame {
        upper: Some(&up),
        rightmost: page.child(middle, 50),
        ..base
    };
    assert!(rebuild(&page, 0..middle, &left_frame, &mut left));
    assert!(rebuild(
        &page,
        middle + 1..50,
        &Frame {
            lower: Some(&up),
            ..base
        },
        &mut right
    ));
    assert_eq!((check_node(&left), check_node(&right)), (Ok(()), Ok(())));
    assert!(join(&left, &right, &mut joined));
    for index in 0..=50 {
        assert_eq!(joined.child(index, 50), page.child(index, 50));
    }
}

#[test]
fn ascending_inserts_in_the_middle_split_at_the_insert() {
    let mut page = empty(4096, Some(b"a"), Some(b"z"));
    page.insert_at(0, b"y", &[b"last"]);
    let mut number = 0_u32;
    loop {
        let key = [&b"k"[..], &number.to_be_bytes()].concat();
        let (index, _) = page.find(&key);
        if record_bytes(key.len(), 20) > page.shape().free {
            let plan = plan_leaf_split(
                &page,
                Incoming {
                    key: &key,
                    payload: 20,
                    spare: 0,
                },
            )
            .expect("full");
            assert_eq!(plan.left, page.shape().count - 1);
            break;
        }
        page.insert_at(index, &key, &[&[1; 20]]);
        number += 1;
    }
}

#[test]
fn prop_garbage_pages_are_read_without_panic_and_found_out() {
    let seed = seed("prop_garbage_pages_are_read_without_panic_and_found_out");
    let mut random = Random::new(seed);
    for round in 0..3000 {
        let mut page = empty(4096, Some(b"tree/a"), Some(b"tree/z"));
        for _ in 0..20 {
            let key = random_key(&mut random);
            let (index, found) = page.find(&key);
            let suffix = page.suffix_of(&key).to_vec();
            if !found {
                page.insert_at(index, &suffix, &[&[1, 2, 3]]);
            }
        }
        let before = page.clone();
        for _ in 0..random.between(1, 8) {
            let at = if round % 2 == 0 {
                24 + random.below(200)
            } else {
                random.below(4096)
            };
            page.set_u8(at as usize, random.next_u64() as u8);
        }
        let key = random_key(&mut random);
        let (index, _) = page.find(&key);
        let _ = (
            page.covers(&key),
            page.covers_below(&key),
            page.child(index, 9),
        );
        for index in [0, 1, 500, 65535] {
            let _ = entry(&page, index).key();
        }
        if check_node(&page).is_ok() {
            // Only bytes that no structure covers may have changed.
            assert_eq!(page.shape().count, before.shape().count);
        }
    }
}

#[test]
fn record_overhead_is_at_most_twelve_bytes_with_a_row_header() {
    let mut page = empty(4096, None, None);
    let before = page.shape().free;
    page.insert_at(0, b"12345678", &[&[0; 100]]);
    assert_eq!(
        before - page.shape().free,
        10 + 108,
        "slot and length; the row header adds one"
    );
    assert_eq!(HEADER_BYTES, 48);
}
