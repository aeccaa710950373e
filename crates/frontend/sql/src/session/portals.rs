//! The portals of a session, by their names.
//!
//! Nearly all that drivers make have no name and live for one statement: that one has a place of its own, so that a statement
//! hashes and allocates nothing for it.

use super::extended::Portal;
use vellum_base::maps::HashMap;

/// Statements with parameters that were bound; the empty name is one, too.
#[derive(Debug, Default)]
pub(super) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal>,
}

impl Portals {
    /// The portal of a name.
    pub fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() {
            return self.unnamed.as_ref();
        }
        self.named.get(name)
    }

    /// Whether there is one of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Names a portal; who had the name is forgotten.
    pub fn insert(&mut self, name: &str, portal: Portal) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.to_owned(), portal);
        }
    }

    /// Takes it out.
    pub fn remove(&mut self, name: &str) -> Option<Portal> {
        if name.is_empty() {
            return self.unnamed.take();
        }
        self.named.remove(name)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.unnamed = None;
        if !self.named.is_empty() {
            self.named.clear();
        }
    }
}
