//! Followers: other threads that read what a transaction sees.

use crate::support::{fresh, key, seed, small};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use vellum::{Database, Error, Follower, Table};
use vellum_base::random::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// The rows between two keys, as a follower sees them.
fn part(follower: &Follower<'_>, table: &Table, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Model {
    let mut cursor = follower.cursor(table, range).unwrap();
    let mut found = Model::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        let had = found.insert(key.to_vec(), value.to_vec());
        assert_eq!(had, None, "a key came twice");
    }
    found
}

fn filled(database: &Database, rows: u32) -> Table {
    let fill = |tx: &vellum::Transaction| {
        let table = tx.create_table("t")?;
        for number in 0..rows {
            tx.insert(&table, &key(number), &number.to_le_bytes().repeat(6))?;
        }
        Ok(table)
    };
    database.retry(fill).unwrap()
}

#[test]
fn prop_followers_see_what_their_leader_sees_whatever_others_commit() {
    let mut random = Random::new(seed(
        "prop_followers_see_what_their_leader_sees_whatever_others_commit",
    ));
    for _ in 0..12 {
        let (_directory, database) = fresh(&small());
        let table = filled(&database, 400);
        let leader = database.begin().unwrap();
        for _ in 0..60 {
            let at = key(random.below(500) as u32);
            match random.chance(1, 3) {
                true => drop(leader.delete(&table, &at).unwrap()),
                false => drop(leader.upsert(&table, &at, b"own").unwrap()),
            }
        }
        let mut expected = Model::new();
        let mut cursor = leader.cursor(&table, ..).unwrap();
        while let Some((key, value)) = cursor.next().unwrap() {
            expected.insert(key.to_vec(), value.to_vec());
        }
        drop(cursor);
        let own: Vec<Vec<u8>> = expected
            .iter()
            .filter(|(_, value)| *value == b"own")
            .map(|(key, _)| key.clone())
            .collect();
        let middle = key(random.below(400) as u32).to_vec();
        let shared = leader.share().unwrap();
        let followers = [(); 2].map(|()| database.follow(&shared).unwrap().unwrap());
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut random = Random::new(7);
                while !over.load(Ordering::Relaxed) {
                    let at = key(random.below(500) as u32).to_vec();
                    if own.contains(&at) {
                        continue;
                    }
                    let tx = database.begin().unwrap();
                    let done = match random.chance(1, 2) {
                        true => tx.delete(&table, &at),
                        false => tx.upsert(&table, &at, b"of another"),
                    };
                    match done {
                        Ok(_) => tx.commit().unwrap(),
                        Err(Error::Conflict) => tx.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                    let _ = database.step();
                }
            });
            let ranges = [
                (Bound::Unbounded, Bound::Excluded(middle.as_slice())),
                (Bound::Included(middle.as_slice()), Bound::Unbounded),
            ];
            let readers = followers.into_iter().zip(ranges).map(|(follower, range)| {
                let table = &table;
                scope.spawn(move || {
                    let first = part(&follower, table, range);
                    for _ in 0..20 {
                        assert_eq!(part(&follower, table, range), first);
                    }
                    first
                })
            });
            let readers: Vec<_> = readers.collect();
            let mut found = Model::new();
            for reader in readers {
                found.extend(reader.join().unwrap());
            }
            over.store(true, Ordering::Relaxed);
            writer.join().unwrap();
            assert_eq!(found, expected);
        });
    }
}

#[test]
fn a_transaction_only_reads_while_its_snapshot_is_shared() {
    let (_directory, database) = fresh(&small());
    let table = filled(&database, 3);
    let tx = database.begin().unwrap();
    let savepoint = tx.savepoint().unwrap();
    tx.upsert(&table, b"new", b"value").unwrap();
    let shared = tx.share().unwrap();
    let refused = |done: vellum::Result<()>| {
        assert!(
            matches!(done, Err(Error::InvalidArgument { .. })),
            "{done:?}"
        );
    };
    refused(tx.insert(&table, b"other", b"value"));
    refused(tx.rollback_to(&savepoint));
    let follower = database.follow(&shared).unwrap().unwrap();
    assert_eq!(
        follower
            .get(&table, b"new", <[u8]>::to_vec)
            .unwrap()
            .unwrap(),
        b"value"
    );
    assert!(matches!(
        follower.insert(&table, b"other", b"value"),
        Err(Error::ReadOnly)
    ));
    drop(follower);
    drop(shared);
    tx.insert(&table, b"other", b"value").unwrap();
    tx.rollback_to(&savepoint).unwrap();
    assert_eq!(tx.count(&table, ..).unwrap(), 3);
}

#[test]
fn who_finds_no_slot_follows_not_and_waits_for_nobody() {
    let (_directory, database) = fresh(&small());
    let table = filled(&database, 3);
    let leader = database.begin().unwrap();
    let shared = leader.share().unwrap();
    let mut others = Vec::new();
    while let Some(follower) = database.follow(&shared).unwrap() {
        assert_eq!(follower.count(&table, ..).unwrap(), 3);
        others.push(follower);
    }
    assert_eq!(others.len(), 15);
}

#[test]
fn what_followers_touched_counts_as_their_leaders() {
    let (_directory, database) = fresh(&small());
    let table = filled(&database, 2000);
    let leader = database.begin().unwrap();
    for number in 0..100 {
        let tx = database.begin().unwrap();
        tx.upsert(&table, &key(number), b"newer").unwrap();
        tx.commit().unwrap();
    }
    let before = leader.touched();
    assert_eq!(
        leader.get(&table, &key(1999), <[u8]>::len).unwrap(),
        Some(24)
    );
    assert_eq!(leader.touched().pages, before.pages + 1);
    let shared = leader.share().unwrap();
    let follower = database.follow(&shared).unwrap().unwrap();
    assert_eq!(
        part(&follower, &table, (Bound::Unbounded, Bound::Unbounded)).len(),
        2000
    );
    let own = follower.touched();
    assert!(own.pages >= 10 && own.versions >= 100, "{own:?}");
    drop(follower);
    drop(shared);
    let after = leader.touched();
    assert_eq!(after.versions, before.versions + own.versions);
    assert_eq!(after.pages, before.pages + 1 + own.pages);
}

#[test]
fn separators_part_a_table_evenly() {
    let (_directory, database) = fresh(&small());
    let rows = 5000;
    let table = filled(&database, rows);
    let tx = database.begin().unwrap();
    let keys = tx.separators(&table, 8).unwrap();
    assert!(keys.len() >= 8 && keys.is_sorted(), "{}", keys.len());
    let mut from: &[u8] = b"";
    let mut sum = 0;
    for to in keys.iter().map(Vec::as_slice) {
        let part = tx.count(&table, (Bound::Included(from), Bound::Excluded(to)));
        let part = part.unwrap();
        assert!(
            part > 0 && part < u64::from(rows / 4),
            "{part} rows in one part"
        );
        sum += part;
        from = to;
    }
    let last = tx.count(&table, (Bound::Included(from), Bound::Unbounded));
    assert_eq!(sum + last.unwrap(), u64::from(rows));
    let empty = database.retry(|tx| tx.create_table("empty")).unwrap();
    let tx = database.begin().unwrap();
    assert_eq!(tx.separators(&empty, 8).unwrap(), Vec::<Vec<u8>>::new());
}
