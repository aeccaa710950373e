//! RocksDB's database with pessimistic transactions.

use super::{Client, MEMORY_BYTES, NAME, Result, Runs, change, rows};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, DataBlockIndexType,
    Options, ReadOptions, SingleThreaded, TransactionDB, TransactionDBOptions, TransactionOptions,
    WriteBatchWithTransaction, WriteOptions,
};
use std::path::Path;

struct Bare<'d> {
    database: &'d TransactionDB<SingleThreaded>,
    family: &'d rocksdb::ColumnFamily,
    write: WriteOptions,
    transaction: TransactionOptions,
}

impl Client for Bare<'_> {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let snapshot = self.database.snapshot();
        let mut read = ReadOptions::default();
        read.set_snapshot(&snapshot);
        let found = self.database.get_pinned_cf_opt(self.family, key, &read)?;
        value.clear();
        value.extend_from_slice(&found.ok_or("a row is missing")?);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let writer = self
            .database
            .transaction_opt(&self.write, &self.transaction);
        let mut read = ReadOptions::default();
        read.set_snapshot(&writer.snapshot());
        let found = writer.get_pinned_cf_opt(self.family, key, &read)?;
        value.clear();
        value.extend_from_slice(&found.ok_or("a row is missing")?);
        change(value);
        writer.put_cf(self.family, key, &value)?;
        Ok(writer.commit()?)
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(MEMORY_BYTES as usize));
    blocks.set_bloom_filter(10.0, false);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    options.set_manual_wal_flush(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_memtable_whole_key_filtering(true);
    let database: TransactionDB<SingleThreaded> = TransactionDB::open_cf_descriptors(
        &options,
        &TransactionDBOptions::default(),
        path,
        [ColumnFamilyDescriptor::new(NAME, options.clone())],
    )?;
    let family = database.cf_handle(NAME).ok_or("no column family")?;
    let mut batch = WriteBatchWithTransaction::<true>::new();
    for (key, value) in rows() {
        batch.put_cf(family, key, value);
    }
    database.write(batch)?;
    database.flush_cf(family)?;
    let mut transaction = TransactionOptions::default();
    transaction.set_snapshot(true);
    transaction.set_deadlock_detect(true);
    run(&mut Bare {
        database: &database,
        family,
        write: WriteOptions::default(),
        transaction,
    })
}
