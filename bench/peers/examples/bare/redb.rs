//! redb, whose commits are durable once a second.

use super::{Client, MEMORY_BYTES, Result, Runs, change, rows};
use redb::{Database, Durability, ReadableDatabase, TableDefinition};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(super::NAME);

struct Bare {
    database: Database,
    sync_at: Instant,
}

impl Client for Bare {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        let found = table.get(key)?.ok_or("a row is missing")?;
        value.clear();
        value.extend_from_slice(found.value());
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let mut writer = self.database.begin_write()?;
        {
            let mut table = writer.open_table(ROWS)?;
            let mut found = table.get_mut(key)?.ok_or("a row is missing")?;
            value.clear();
            value.extend_from_slice(found.value());
            change(value);
            found.insert(value.as_slice())?;
        }
        let now = Instant::now();
        if now >= self.sync_at {
            self.sync_at = now + Duration::from_secs(1);
        } else {
            writer.set_durability(Durability::None)?;
        }
        Ok(writer.commit()?)
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let database = Database::builder()
        .set_cache_size(MEMORY_BYTES as usize)
        .create(path.join("redb"))?;
    let writer = database.begin_write()?;
    {
        let mut table = writer.open_table(ROWS)?;
        for (key, value) in rows() {
            table.insert(key.as_slice(), value.as_slice())?;
        }
    }
    writer.commit()?;
    run(&mut Bare {
        database,
        sync_at: Instant::now(),
    })
}
