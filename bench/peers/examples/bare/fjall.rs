//! fjall's database for one writer.

use super::{Client, MEMORY_BYTES, NAME, Result, Runs, change, rows};
use fjall::config::{CompressionPolicy, HashRatioPolicy};
use fjall::{KeyspaceCreateOptions, Readable, SingleWriterTxDatabase, SingleWriterTxKeyspace};
use std::path::Path;

struct Bare(SingleWriterTxDatabase, SingleWriterTxKeyspace);

impl Client for Bare {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let reader = self.0.read_tx();
        let found = reader.get(&self.1, key)?.ok_or("a row is missing")?;
        value.clear();
        value.extend_from_slice(&found);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let mut writer = self.0.write_tx();
        let found = writer.get(&self.1, key)?.ok_or("a row is missing")?;
        value.clear();
        value.extend_from_slice(&found);
        change(value);
        writer.insert(&self.1, key, value.as_slice());
        Ok(writer.commit()?)
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let database = SingleWriterTxDatabase::builder(path)
        .cache_size(MEMORY_BYTES)
        .manual_journal_persist(true)
        .open()?;
    let table = database.keyspace(NAME, || {
        KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::disabled())
            .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
    })?;
    let mut load = table.inner().start_ingestion()?;
    for (key, value) in rows() {
        load.write(key.as_slice(), value.as_slice())?;
    }
    load.finish()?;
    run(&mut Bare(database, table))
}
