//! canopydb, with exclusive transactions.

use super::{Client, MEMORY_BYTES, NAME, Result, Runs, change, rows};
use canopydb::{Database, DbOptions, EnvOptions};
use std::path::Path;
use std::time::Duration;

struct Bare(Database);

impl Client for Bare {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let reader = self.0.begin_read()?;
        let tree = reader.get_tree(NAME.as_bytes())?.ok_or("no tree")?;
        let found = tree.get(key)?.ok_or("a row is missing")?;
        value.clear();
        value.extend_from_slice(&found);
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let writer = self.0.begin_write()?;
        {
            let mut tree = writer.get_tree(NAME.as_bytes())?.ok_or("no tree")?;
            value.clear();
            value.extend_from_slice(&tree.get(key)?.ok_or("a row is missing")?);
            change(value);
            tree.insert(key, value)?;
        }
        writer.commit()?;
        Ok(())
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let mut environment = EnvOptions::new(path);
    environment.page_cache_size = MEMORY_BYTES as usize;
    environment.wal_background_sync_interval = Some(Duration::from_secs(1));
    let database = Database::with_options(environment, DbOptions::new())?;
    let writer = database.begin_write()?;
    {
        let mut tree = writer.get_or_create_tree(NAME.as_bytes())?;
        for (key, value) in rows() {
            tree.insert(&key, &value)?;
        }
    }
    writer.commit()?;
    database.checkpoint()?;
    run(&mut Bare(database))
}
