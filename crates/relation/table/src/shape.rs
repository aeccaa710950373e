//! What a table consists of, and how that changes over time: DDL follows the snapshot like rows do.
//!
//! A table is a chain of shapes, oldest first; each names the version (slot, stamp, command) that made it. A
//! transaction uses the newest shape that it sees. Handles start anywhere in the chain and walk forward, so an
//! old handle costs a pointer a change, and nothing is ever updated under a reader.
//!
//! Invariants:
//! - T1 At most one shape of a chain is uncommitted: changing a table writes its catalog row, and the first writer
//!   wins there.
//! - T2 Who writes rows checks *under the leaf's latch* that its shape is the newest; who changes the shape
//!   appends the new one first and then takes the latch of every leaf that it reads. So a row that is not in what
//!   the changer read will meet the check, by the order of the latch.
//! - T3 A rolled-back change is void for ever; what comes later is built on what was before it.
//! - T8 A shape that is settled was committed below every snapshot that is open or can still be drawn, so it stays so and is never void.

use crate::key_description::KeyDescription;
use std::sync::{Arc, OnceLock};
use vellum_base::TableId;
use vellum_btree::Tree;
use vellum_sync::atomic::{AtomicBool, Ordering};
use vellum_txn::VersionStamp;

/// An index of a table.
#[derive(Clone, Debug)]
pub struct Index {
    /// Its number in the catalog.
    pub id: TableId,
    /// Its name.
    pub name: Arc<str>,
    /// Its rows: columns and primary key to primary key, or columns to primary key if unique.
    pub tree: Tree,
    /// What it is keyed by.
    pub key: KeyDescription,
}

/// What a table consists of, from one change to the next.
#[derive(Debug)]
pub struct Shape {
    /// Its number in the catalog.
    pub id: TableId,
    /// Its name.
    pub name: Arc<str>,
    /// Its rows.
    pub tree: Tree,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// The table is gone.
    pub dropped: bool,
    /// The change that made it; `None` if it is older than every snapshot.
    made_by: Option<VersionStamp>,
    void: AtomicBool,
    /// Every snapshot that is open or can still be drawn sees it.
    settled: AtomicBool,
    next: OnceLock<Arc<Shape>>,
}

/// What changes from one shape to the next.
#[derive(Clone, Debug)]
pub enum ShapeChange {
    /// Nothing: closes the table to concurrent writers, for who is about to read it whole.
    Close,
    /// The rows are in another tree.
    Tree(Tree),
    /// One more index.
    AddIndex(Index),
    /// One index less.
    RemoveIndex(TableId),
    /// The table is gone.
    Drop,
}

impl Shape {
    /// A table that was made by `made_by`, or before every snapshot.
    pub fn new(
        id: TableId,
        name: Arc<str>,
        tree: Tree,
        indexes: Vec<Index>,
        made_by: Option<VersionStamp>,
    ) -> Self {
        Self {
            id,
            name,
            tree,
            indexes,
            dropped: false,
            settled: AtomicBool::new(made_by.is_none()),
            made_by,
            void: AtomicBool::new(false),
            next: OnceLock::new(),
        }
    }

    /// The shape that a reader uses: the newest from here on that it sees. `None` if it sees none.
    #[inline]
    pub fn resolve(&self, sees: impl Fn(&VersionStamp) -> bool) -> Option<&Shape> {
        let visible = |shape: &Shape| {
            shape.is_settled() || !shape.is_void() && shape.made_by.as_ref().is_none_or(&sees)
        };
        // What is settled hides what was before it, and mostly nothing else follows: few shapes are judged.
        let (mut at, mut last) = (self, self);
        // Acquire (OnceLock, here and below): pairs with the release of `append`.
        while let Some(next) = last.next.get() {
            if next.is_settled() {
                at = next;
            }
            last = next;
        }
        let mut best = visible(at).then_some(at);
        while let Some(next) = at.next.get() {
            if visible(next) {
                best = Some(next);
            }
            at = next;
        }
        best
    }

    /// True if no change came after this shape (T2: asked under a leaf's latch).
    #[inline]
    pub fn is_newest(&self) -> bool {
        let mut at = self;
        while let Some(next) = at.next.get() {
            if !next.is_void() {
                return false;
            }
            at = next;
        }
        true
    }

    /// True if a change came after this shape that `by` says yes to and that was not rolled back.
    pub fn is_followed(&self, by: impl Fn(&VersionStamp) -> bool) -> bool {
        let mut at = self;
        while let Some(next) = at.next.get() {
            if !next.is_void() && next.made_by.as_ref().is_some_and(&by) {
                return true;
            }
            at = next;
        }
        false
    }

    /// True if every snapshot that is open or can still be drawn is known to see it: nobody need ask again.
    #[inline]
    pub fn is_settled(&self) -> bool {
        // Relaxed: it was true when it was stored, and stays so (T8); what it is about is immutable.
        self.settled.load(Ordering::Relaxed)
    }

    /// Notes that every snapshot that is open or can still be drawn sees it.
    pub fn settle(&self) {
        debug_assert!(!self.is_void(), "what was rolled back nobody sees");
        self.settled.store(true, Ordering::Relaxed);
    }

    /// True if the change that made it was rolled back.
    pub fn is_void(&self) -> bool {
        // Acquire: pairs with the release in `make_void`.
        self.void.load(Ordering::Acquire)
    }

    /// Marks the shape as rolled back (T3).
    pub fn make_void(&self) {
        // Release: pairs with the acquire in `is_void`.
        self.void.store(true, Ordering::Release);
    }

    /// The change that made it.
    pub fn made_by(&self) -> Option<&VersionStamp> {
        self.made_by.as_ref()
    }

    /// Puts a changed shape behind `newest`, the newest one, which the caller knows by T1. Returns it.
    pub fn append(newest: &Shape, change: ShapeChange, made_by: VersionStamp) -> Arc<Shape> {
        let mut tree = newest.tree.clone();
        let mut indexes = newest.indexes.clone();
        let mut dropped = newest.dropped;
        match change {
            ShapeChange::Close => {}
            ShapeChange::Tree(other) => tree = other,
            ShapeChange::AddIndex(index) => indexes.push(index),
            ShapeChange::RemoveIndex(id) => indexes.retain(|index| index.id != id),
            ShapeChange::Drop => dropped = true,
        }
        let shape = Arc::new(Shape {
            id: newest.id,
            name: newest.name.clone(),
            tree,
            indexes,
            dropped,
            made_by: Some(made_by),
            void: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            next: OnceLock::new(),
        });
        let mut at = newest;
        loop {
            match at.next.get() {
                Some(next) => at = next,
                None => match at.next.set(shape.clone()) {
                    Ok(()) => return shape,
                    // Lost to another: T1 makes that one void, or it is a change of our own.
                    Err(_) => continue,
                },
            }
        }
    }
}
