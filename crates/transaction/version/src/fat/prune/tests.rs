//! Pruning against a model: whoever reads must read after it what he read before.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::delta;
use crate::row::Shape;
use std::collections::{BTreeMap, BTreeSet};
use vellum_base::random::Random;
use vellum_base::{SlotId, Timestamp};

/// A version of the model: when it was committed, and what it says (`None`: deleted).
#[derive(Clone, Debug)]
struct Model {
    commit: u64,
    header: Header,
    body: Option<Vec<u8>>,
}

/// Version `number` of a row; its stamp says nothing about its commit.
fn name(random: &mut Random, number: u64) -> VersionStamp {
    VersionStamp::new(
        SlotId(random.below(4) as u16),
        Timestamp(1 + random.below(1000)),
        number as u32,
    )
}

/// Full copies by name: header and body.
type Copies = BTreeMap<VersionStamp, (Header, Vec<u8>)>;

/// Why a version was not found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    Copy(VersionStamp),
    /// F1 does not hold.
    End,
}

/// What a snapshot sees, by the row alone (and its copies).
fn read(
    newest: &Model,
    first: bool,
    kept: &[Kept<'_>],
    commits: &BTreeMap<VersionStamp, u64>,
    copies: &Copies,
    snapshot: u64,
) -> Result<Option<Vec<u8>>, Lost> {
    if newest.commit < snapshot {
        return Ok(newest.body.clone());
    }
    if first {
        return Ok(None);
    }
    let mut body = newest.body.clone().unwrap_or_default();
    let mut missing = None;
    for version in kept {
        match &version.step {
            KeptStep::Same => {}
            KeptStep::Ranges(image) => {
                if missing.is_none() {
                    delta::apply_image(image, &mut body).unwrap();
                }
            }
            KeptStep::Whole(whole) => (body, missing) = (whole.to_vec(), None),
            KeptStep::Copy(name) => match copies.get(name) {
                Some((_, copy)) => (body, missing) = (copy.clone(), None),
                None => missing = Some(Lost::Copy(*name)),
            },
        }
        let seen = version
            .header
            .writer
            .is_none_or(|w| commits[&w.version] < snapshot);
        if seen {
            if version.header.shape.tombstone {
                return Ok(None);
            }
            return missing.map_or(Ok(Some(body)), Err);
        }
        if version.header.writer.unwrap().first {
            return Ok(None);
        }
    }
    Err(Lost::End)
}

fn image(random: &mut Random, old: &[u8], new: &mut [u8]) -> Vec<u8> {
    let mut ranges: Vec<std::ops::Range<usize>> = Vec::new();
    let mut at = random.below(8) as usize;
    while at < old.len() && ranges.len() < 3 {
        let end = (at + 1 + random.below(9) as usize).min(old.len());
        ranges.push(at..end);
        at = end + 9 + random.below(20) as usize;
    }
    for range in &ranges {
        random.fill(&mut new[range.clone()]);
    }
    let mut out = Vec::new();
    delta::encode_image(old, &ranges, &mut out);
    out
}

struct History {
    /// From the oldest to the newest.
    models: Vec<Model>,
    /// How each is reached from the next newer one.
    images: Vec<Option<Vec<u8>>>,
    copies: Copies,
    /// Whose deltas are in the row, as whole bodies.
    wholes: BTreeSet<VersionStamp>,
    commits: BTreeMap<VersionStamp, u64>,
}

fn history(random: &mut Random) -> History {
    let count = 2 + random.below(20) as usize;
    let (mut commit, mut body) = (0, Some(vec![0; 40]));
    let mut made = History {
        models: Vec::new(),
        images: Vec::new(),
        copies: Copies::new(),
        wholes: BTreeSet::new(),
        commits: BTreeMap::new(),
    };
    for number in 0..count {
        // Commands of one transaction commit together.
        commit += u64::from(number == 0 || random.below(4) > 0);
        let name = name(random, number as u64);
        let shape = if body.is_some() {
            Shape::INLINE
        } else {
            Shape::DELETED
        };
        let mut header = Header::stamped(shape, name, number == 0);
        if number == 0 && random.below(2) == 0 {
            (header, commit) = (Header::frozen(shape), 0);
        }
        made.commits.insert(name, commit);
        if number > 0 {
            // The delta under this version's name gives the version before back.
            let before = made.models.last().unwrap();
            let old = before.body.clone().unwrap_or_default();
            let same = before.body.as_ref().map(Vec::len) == body.as_ref().map(Vec::len);
            let full = !same || made.images.len() < number;
            if before.body.is_none() {
                made.images.resize(number, None);
            } else if full || random.below(8) == 0 {
                if random.below(2) == 0 {
                    made.wholes.insert(name);
                } else {
                    made.copies.insert(name, (before.header, old));
                }
                made.images.resize(number, None);
            }
        }
        made.models.push(Model {
            commit,
            header,
            body: body.clone(),
        });
        match random.below(8) {
            0 => body = None,
            1 => body = Some(vec![number as u8; 10 + random.below(50) as usize]),
            _ => {
                if let Some(old) = body.clone() {
                    let mut new = old.clone();
                    made.images.push(Some(image(random, &old, &mut new)));
                    body = Some(new);
                } else {
                    body = Some(vec![number as u8; 30]);
                }
            }
        }
    }
    made.images.truncate(count - 1);
    made
}

impl History {
    fn old(&self) -> Vec<OldVersion<'_>> {
        let steps = (0..self.images.len()).rev().map(|at| {
            let successor = self.models[at + 1].header.writer.unwrap().version;
            let step = match &self.images[at] {
                _ if self.models[at].header.shape.tombstone => Step::Same,
                _ if self.wholes.contains(&successor) => {
                    Step::Whole(self.models[at].body.as_deref().unwrap())
                }
                Some(image) if !self.copies.contains_key(&successor) => Step::Ranges(image),
                _ => Step::Copy(successor),
            };
            OldVersion {
                header: self.models[at].header,
                step,
            }
        });
        steps.collect()
    }

    fn commit_of(&self, name: Option<&VersionStamp>) -> u64 {
        name.map_or(0, |name| self.commits[name])
    }

    fn sees(&self, snapshot: u64) -> Option<Vec<u8>> {
        let mut seen = self.models.iter().rev();
        seen.find(|model| model.commit < snapshot)
            .and_then(|model| model.body.clone())
    }
}

/// Prunes again and again with fewer and fewer snapshots; each that is left must read what it read.
/// `eager` drops one version too many now and then.
fn run(seed: u64, eager: bool) -> bool {
    let mut random = Random::new(seed);
    let history = history(&mut random);
    let newest = history.models.last().unwrap().clone();
    let newest_name = newest.header.writer.unwrap().version;
    let mut snapshots: Vec<u64> = (0..random.below(6))
        .map(|_| 1 + random.below(newest.commit + 2))
        .collect();
    // Everybody who comes later sees the newest.
    snapshots.push(newest.commit + 1);
    let mut copies = history.copies.clone();
    let mut first = newest.header.writer.unwrap().first;
    let mut bytes = Vec::new();
    for old in history.old().iter().rev() {
        old.encode(&mut bytes);
    }
    while !snapshots.is_empty() {
        let held = bytes.clone();
        let old: Vec<_> = crate::fat::layout::OldVersions::new(&held)
            .map(Result::unwrap)
            .collect();
        let before_copies = copies.clone();
        let before: Vec<_> = old
            .iter()
            .map(|old| Kept {
                header: old.header,
                step: match old.step {
                    Step::Same => KeptStep::Same,
                    Step::Ranges(image) => KeptStep::Ranges(Cow::Borrowed(image)),
                    Step::Copy(name) => KeptStep::Copy(name),
                    Step::Whole(body) => KeptStep::Whole(Cow::Borrowed(body)),
                },
            })
            .collect();
        let pruned = prune(newest_name, &old, |version, newer| {
            let (from, to) = (history.commit_of(version), history.commit_of(Some(newer)));
            let mut sees = snapshots
                .iter()
                .filter(|snapshot| from < **snapshot && to >= **snapshot);
            let seen = sees.next().is_some();
            !seen || eager && random.below(10) == 0
        })
        .unwrap();
        for rewrite in &pruned.rewrites {
            let (header, body) = copies.get_mut(&rewrite.name).unwrap();
            *header = rewrite.header;
            delta::apply_image(&rewrite.image, body).unwrap();
        }
        // Who goes by the row as it was, while the copies change: right, or sent back.
        for &snapshot in &snapshots {
            for copies in [&before_copies, &copies] {
                let read = read(&newest, first, &before, &history.commits, copies, snapshot);
                let sent_back = matches!(read, Err(Lost::Copy(_)));
                if !sent_back && read != Ok(history.sees(snapshot)) {
                    assert!(eager);
                    return false;
                }
            }
        }
        for name in &pruned.gone {
            assert!(copies.remove(name).is_some(), "gone once");
        }
        first |= pruned.newest_is_first;
        for &snapshot in &snapshots {
            let read = read(
                &newest,
                first,
                &pruned.kept,
                &history.commits,
                &copies,
                snapshot,
            );
            if read != Ok(history.sees(snapshot)) {
                assert!(eager, "seed {seed}: snapshot {snapshot} of {snapshots:?}");
                return false;
            }
        }
        let named: Vec<_> = pruned
            .kept
            .iter()
            .filter_map(|kept| match kept.step {
                KeptStep::Copy(name) => Some(name),
                _ => None,
            })
            .collect();
        assert_eq!(
            named.len(),
            copies.len(),
            "seed {seed}: no copy without a name"
        );
        if !eager {
            let needed: BTreeSet<_> = snapshots
                .iter()
                .map(|snapshot| {
                    history
                        .models
                        .iter()
                        .rposition(|model| model.commit < *snapshot)
                })
                .collect();
            assert!(
                pruned.kept.len() <= needed.len(),
                "seed {seed}: what nobody sees goes"
            );
        }
        bytes.clear();
        encode_versions(&pruned.kept, &mut bytes);
        assert_eq!(bytes.len(), versions_bytes(&pruned.kept));
        snapshots.swap_remove(random.below(snapshots.len() as u64) as usize);
    }
    true
}

fn seed() -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with: VELLUM_SEED={seed} cargo test -p vellum-version prune");
    seed
}

#[test]
fn prop_every_snapshot_reads_after_pruning_what_it_read_before() {
    let seed = seed();
    for case in 0..3000 {
        run(seed.wrapping_add(case), false);
    }
}

#[test]
fn prop_pruning_one_version_too_many_is_noticed() {
    let seed = seed();
    let noticed = (0..500)
        .filter(|case| !run(seed.wrapping_add(*case), true))
        .count();
    assert!(noticed > 50, "{noticed} of 500");
}

#[test]
fn ranges_behind_a_whole_body_that_goes_are_written_over_it_and_lie_in_it() {
    let version = |stamp| VersionStamp::new(SlotId(1), Timestamp(stamp), 0);
    let old = |stamp, step| OldVersion {
        header: Header::stamped(Shape::INLINE, version(stamp), false),
        step,
    };
    let mut image = Vec::new();
    delta::encode_image(&[7; 40], std::slice::from_ref(&(2..5)), &mut image);
    let pruned = |body: &'static [u8], image| {
        let versions = [
            old(3, Step::Whole(body)),
            old(2, Step::Ranges(image)),
            old(1, Step::Same),
        ];
        let dead = [version(3), version(2)];
        prune(version(4), &versions, |version, _| {
            dead.contains(version.unwrap())
        })
        .map(|pruned| pruned.kept[0].clone())
    };
    let kept = pruned(&[1; 6], &image).unwrap();
    assert_eq!(kept.as_old(), old(1, Step::Whole(&[1, 1, 7, 7, 7, 1])));
    assert_eq!(pruned(&[1; 4], &image), None, "damaged");
}

#[test]
fn older_bytes_win_where_ranges_of_both_meet() {
    let image = |parts: &[(u32, &[u8])]| {
        let mut out = Vec::new();
        for (offset, bytes) in parts {
            out.extend_from_slice(&offset.to_le_bytes());
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        }
        out
    };
    let newer = image(&[(2, b"nnn"), (20, b"nn")]);
    let older = image(&[(4, b"oo"), (10, b"o")]);
    assert_eq!(
        &*merge(Cow::Borrowed(&newer), &older),
        image(&[(2, b"nnoo"), (10, b"o"), (20, b"nn")])
    );
    let wide = image(&[(0, b"0123456789012345678901234")]);
    assert_eq!(&*merge(Cow::Borrowed(&newer), &wide), wide);
}
