//! The tables that a run has seen, by id: where each chain of shapes starts.
//!
//! Concurrency: who opens tables by name looks here with every call. So the map is cut into parts with a latch each, and
//! those who open different tables meet at none; those who open the same one meet at its count of handles anyway. A
//! latch is held for a look or a change of one entry, and nothing is taken beneath it.

use std::sync::Arc;
use vellum_base::TableId;
use vellum_base::maps::HashMap;
use vellum_sync::{CachePadded, Mutex};
use vellum_table::Shape;

/// Parts of the map; ids are given out one after the other, so neighbours lie in different ones.
const PARTS: usize = 64;

type Part = CachePadded<Mutex<HashMap<TableId, Arc<Shape>>>>;

/// A map from ids to first shapes.
#[derive(Debug)]
pub(crate) struct KnownTables {
    parts: Box<[Part]>,
}

impl KnownTables {
    /// Without any.
    pub fn new() -> Self {
        let parts = (0..PARTS).map(|_| Part::default()).collect();
        Self { parts }
    }

    fn part(&self, id: TableId) -> &Mutex<HashMap<TableId, Arc<Shape>>> {
        &self.parts[id.0 as usize % PARTS]
    }

    /// The first shape of a table.
    pub fn get(&self, id: TableId) -> Option<Arc<Shape>> {
        self.part(id).lock().get(&id).cloned()
    }

    /// Adds a table.
    pub fn insert(&self, shape: Arc<Shape>) {
        let id = shape.id;
        self.part(id).lock().insert(id, shape);
    }

    /// Forgets a table.
    pub fn remove(&self, id: TableId) {
        self.part(id).lock().remove(&id);
    }

    /// Forgets a table if this is its first shape, not a later one.
    pub fn remove_first(&self, shape: &Arc<Shape>) {
        let mut part = self.part(shape.id).lock();
        if part
            .get(&shape.id)
            .is_some_and(|first| Arc::ptr_eq(first, shape))
        {
            part.remove(&shape.id);
        }
    }

    /// All of them: each that was there before the call and is there after it.
    pub fn all(&self) -> Vec<Arc<Shape>> {
        let parts = self.parts.iter();
        parts
            .flat_map(|part| part.lock().values().cloned().collect::<Vec<_>>())
            .collect()
    }
}
