//! The statements that a session has read before, by their texts.
//!
//! Invariants:
//! - PL1 A statement is kept under its text and the types that were given for its parameters. What else it depends on is looked at when it is run
//!   (the catalog's version), or makes the session forget all of them (settings, the role).
//! - PL3 Statements that have names are not forgotten, and settings that they were read with stay in them, as in PostgreSQL. But names are looked up anew
//!   when they are run in other schemas than those that they were compiled for.
//! - PL2 A text with literals that is not repeated leaves no more than a mark: only the second one of its form is compiled with parameters.

use super::run::Prepared;
use crate::catalog::{Oid, Version};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use vellum_base::maps::HashMap;

/// Statements that are kept of each kind.
const PLANS_MAX: usize = 512;

/// What is known of a text with parameters.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// It was made from a statement with literals, once.
    Once,
    /// Statements of this form are read with their literals.
    Literal,
    Ready(Arc<Prepared>),
}

/// What a search path is found for: versions of the image that has the schemas, and of that which tells who may look into them.
pub(super) type PathOf = (Version, Version);

#[derive(Debug, Default)]
pub(super) struct Plans {
    /// Without types.
    texts: HashMap<Box<str>, Arc<Prepared>>,
    /// By text, a zero, and the types.
    typed: HashMap<Box<[u8]>, Known>,
    key: Vec<u8>,
    /// The schemas that names are looked up in, for versions of the catalog.
    path: RefCell<Option<(PathOf, Arc<[Oid]>)>>,
    /// How often these were others than before, and what they were last (PL3).
    last_path: RefCell<(u64, Arc<[Oid]>)>,
    /// Whether the session's role may do everything, in a version of the catalog.
    superuser: Cell<Option<(Version, bool)>>,
}

impl Plans {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.texts.clear();
        self.typed.clear();
        self.path.take();
        self.superuser.take();
    }

    /// Whether the session's role may do everything in a version of the catalog, found if it is not known.
    pub fn is_superuser(&self, version: Version, find: impl FnOnce() -> bool) -> bool {
        match self.superuser.get() {
            Some((known, superuser)) if known == version => superuser,
            _ => {
                let found = find();
                self.superuser.set(Some((version, found)));
                found
            }
        }
    }

    /// The search path for versions of the catalog, found if it is not known.
    pub fn path(&self, of: PathOf, find: impl FnOnce() -> Arc<[Oid]>) -> Arc<[Oid]> {
        if let Some((known, path)) = &*self.path.borrow()
            && *known == of
        {
            return path.clone();
        }
        let found = find();
        let mut last = self.last_path.borrow_mut();
        if last.1 != found {
            *last = (last.0 + 1, found.clone());
        }
        *self.path.borrow_mut() = Some((of, found.clone()));
        found
    }

    /// A number that is another one whenever the search path has become another one.
    pub fn path_number(&self, of: PathOf, find: impl FnOnce() -> Arc<[Oid]>) -> u64 {
        let known = self.path.borrow().as_ref().map(|(known, _)| *known);
        if known != Some(of) {
            self.path(of, find);
        }
        self.last_path.borrow().0
    }

    /// The statement of a text without types.
    pub fn get(&self, text: &str) -> Option<&Arc<Prepared>> {
        self.texts.get(text)
    }

    /// Keeps it. When there are too many, all are forgotten.
    pub fn keep(&mut self, prepared: &Arc<Prepared>) {
        if self.texts.len() >= PLANS_MAX {
            self.texts.clear();
        }
        self.texts.insert((*prepared.text).into(), prepared.clone());
    }

    /// What is known of a text whose parameters have these types, 0 where they are to be inferred.
    pub fn typed(&mut self, text: &str, types: &[u32]) -> Option<&Known> {
        self.make_key(text, types);
        self.typed.get(self.key.as_slice())
    }

    /// Notes it. When there are too many, those that are not ready are forgotten first.
    pub fn note(&mut self, text: &str, types: &[u32], known: Known) {
        self.make_key(text, types);
        if self.typed.len() >= PLANS_MAX {
            self.typed
                .retain(|_, known| matches!(known, Known::Ready(_)));
            // Or every new one would look at all of them.
            if self.typed.len() >= PLANS_MAX / 2 {
                self.typed.clear();
            }
        }
        self.typed.insert(self.key.as_slice().into(), known);
    }

    fn make_key(&mut self, text: &str, types: &[u32]) {
        self.key.clear();
        self.key.extend_from_slice(text.as_bytes());
        self.key.push(0);
        for ty in types {
            self.key.extend_from_slice(&ty.to_le_bytes());
        }
    }
}
