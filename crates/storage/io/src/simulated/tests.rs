//! Tests of the simulated disk: what cuts leave, and everything else.

mod cuts;
mod faults;
mod lies;

use super::*;
use crate::AlignedBuf;
use std::collections::BTreeSet;
use vellum_base::StorageError;
use vellum_base::random::Random;

/// A directory with one file, durable under its name.
fn with_file(name: &str, content: &[u8]) -> (SimulatedDirectory, Arc<dyn File>) {
    let directory = SimulatedDirectory::new();
    let file = directory.open(name, OpenOptions::create()).unwrap();
    file.write_at(content, 0).unwrap();
    file.sync_data().unwrap();
    directory.sync_dir("").unwrap();
    assert_eq!(directory.unsynced_changes(), 0);
    (directory, file)
}

fn is_io(error: &StorageError, kind: ErrorKind) -> bool {
    matches!(error, StorageError::Io { source, .. } if source.kind() == kind)
}
