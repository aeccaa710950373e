//! Databases that differ from the product, one after another on one directory.

use crate::support::{key, open, rows, seed, settle, small};
use std::collections::BTreeMap;
use std::sync::Arc;
use vellum::{Experiment, Protocol};
use vellum_base::random::Random;
use vellum_io::{Directory, MemoryDirectory};

#[test]
fn prop_each_experiment_reads_what_the_others_wrote() {
    let mut random = Random::new(seed("prop_each_experiment"));
    let every = [
        Experiment::BASIC,
        Experiment::STAMPING,
        Experiment::OSIC,
        Experiment::GRAVEYARD,
        Experiment::FAT,
        Experiment::FULL,
    ];
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut model = BTreeMap::new();
    for round in 0..30_u32 {
        let experiment = every[random.below(every.len() as u64) as usize];
        let database = open(&directory, &small().experiment(experiment));
        assert_eq!(database.config().protocol, experiment.protocol);
        let table = match round {
            0 => database.retry(|tx| tx.create_table("t")).unwrap(),
            _ => database.begin().unwrap().table("t").unwrap(),
        };
        let old = database.begin().unwrap();
        let seen: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(rows(&old, &table), seen, "{experiment:?}");
        for _ in 0..random.between(1, 40) {
            let number = random.below(30) as u32;
            let (row, value) = (key(number).to_vec(), vec![round as u8; 1 + number as usize]);
            let tx = database.begin().unwrap();
            if random.chance(1, 3) {
                tx.delete(&table, &row).unwrap();
                tx.commit().unwrap();
                model.remove(&row);
            } else {
                tx.upsert(&table, &row, &value).unwrap();
                if random.chance(1, 4) {
                    tx.rollback().unwrap();
                } else {
                    tx.commit().unwrap();
                    model.insert(row, value);
                }
            }
        }
        assert_eq!(rows(&old, &table), seen, "{experiment:?}");
        drop(old);
        settle(&database);
        let now: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(rows(&database.begin().unwrap(), &table), now);
        database.close().unwrap();
    }
}

#[test]
fn defaults_are_the_product_and_what_excludes_each_other_is_refused() {
    let (product, config) = (small().experiment(Experiment::FULL), small());
    assert_eq!(
        (product.protocol, product.versions),
        (config.protocol, config.versions)
    );
    assert_eq!(config.protocol, Protocol::Osic);
    let both = small().experiment(Experiment {
        fat: true,
        ..Experiment::STAMPING
    });
    let error = both.check().unwrap_err().to_string();
    assert!(error.contains("exclude each other"), "{error}");
}
