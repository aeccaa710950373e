//! The portals of a session, by their names.
//!
//! Nearly all that drivers make have no name and live for one statement: that one has a place of its own, so that a statement
//! hashes and allocates nothing for it.
//!
//! Invariants:
//! - O1 ROLLBACK TO a savepoint takes portals along that were bound after it, as it does with cursors. One that was bound before and run behind it stays, with the rows
//!   that it has found, as in PostgreSQL: what was written behind the savepoint is not among those that it finds later. Where the catalog was changed behind it, what is run in pieces and reads
//!   the session's transaction may read what is not there any more: it is run to its end before, or cannot be run any more where the block has failed.

use super::cursor::ShownCursor;
use super::extended::Portal;
use std::sync::Arc;
use vellum_base::maps::HashMap;
use vellum_row::datetime::Timestamp;

/// Statements with parameters that were bound; the empty name is one, too.
#[derive(Debug, Default)]
pub(crate) struct Portals {
    unnamed: Option<Portal>,
    named: HashMap<String, Portal>,
    bound: u64,
    /// The one that is being run, which is taken out: its name, its text, and when it was made.
    running: Option<(Box<str>, Arc<str>, Timestamp)>,
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

    /// One is being run, until it is put back.
    pub fn run(&mut self, name: &str, text: &Arc<str>, since: Timestamp) {
        self.running = Some((name.into(), text.clone(), since));
    }

    /// All of them, as `pg_cursors` shows them.
    pub fn shown(&self) -> Vec<ShownCursor<'_>> {
        let named = self.named.iter().map(|(name, portal)| (&**name, portal));
        let unnamed = self.unnamed.iter().map(|portal| ("", portal));
        let bound = named.chain(unnamed).filter_map(|(name, portal)| {
            let prepared = portal.prepared.as_ref()?;
            Some((name, &*prepared.text, portal.since))
        });
        let running = self.running.iter();
        let running = running.map(|(name, text, since)| (&**name, &**text, *since));
        let shown = bound
            .chain(running)
            .map(|(name, statement, since)| ShownCursor {
                name,
                statement,
                hold: false,
                binary: false,
                scrolls: false,
                since,
            });
        shown.collect()
    }

    /// Names a portal; who had the name is forgotten.
    pub fn insert(&mut self, name: &str, portal: Portal) {
        self.running = None;
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else {
            self.named.insert(name.to_owned(), portal);
        }
    }

    /// A number for the next one.
    pub fn number(&mut self) -> u64 {
        self.bound += 1;
        self.bound - 1
    }

    /// How many were bound so far: a point to go back to.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// One has failed, and is not run again.
    pub fn fail(&mut self, name: &str) {
        let portal = match name {
            "" => self.unnamed.as_mut(),
            name => self.named.get_mut(name),
        };
        if let Some(portal) = portal {
            portal.fail_if(true);
        }
    }

    /// The block has failed that those were bound in which were bound from there on: what they hold is given back.
    pub fn fail_from(&mut self, bound: u64) {
        self.running = None;
        for portal in self.all() {
            if portal.number >= bound {
                portal.aborted = true;
                (portal.params, portal.found) = (Vec::new(), None);
            }
        }
    }

    /// The same of those that are run in pieces, from the query of this number on, in the session's transaction: what they read of the catalog has been taken back.
    pub fn fail_pieces(&mut self, from: u64) {
        for portal in self.all() {
            let found = portal.found.as_ref();
            portal.fail_if(found.is_some_and(|found| found.reads_own_from(from)));
        }
    }

    /// All that are not being run.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.unnamed.iter_mut().chain(self.named.values_mut())
    }

    /// O1.
    pub fn forget_from(&mut self, bound: u64) {
        let is_late = |portal: &Portal| portal.number >= bound;
        if self.unnamed.as_ref().is_some_and(is_late) {
            self.unnamed = None;
        }
        self.named.retain(|_, portal| !is_late(portal));
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
        (self.unnamed, self.running) = (None, None);
        if !self.named.is_empty() {
            self.named.clear();
        }
    }
}
