//! The image that everybody starts from, and how a commit changes it.
//!
//! Interleaving that this closes: a transaction draws its snapshot, another commits a DROP TABLE and publishes the image
//! without it, the first takes that image, plans without an index that its snapshot has, or with one that it has not. So
//! the number of the image is odd while a commit of DDL is on its way; who begins reads it before and after drawing the snapshot.
//!
//! Concurrency: beginning reads one word that only DDL writes.

use super::{Catalog, Change};
use std::sync::Arc;
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicU64, Ordering, fence};

/// The published image.
#[derive(Debug)]
pub(crate) struct Published {
    /// Twice the number of commits of DDL, plus one while one is on its way.
    number: AtomicU64,
    image: Mutex<Arc<Catalog>>,
    /// The last version that was given to an image (C1).
    last_version: AtomicU64,
}

impl Published {
    pub fn new(mut image: Catalog) -> Self {
        image.base = image.common;
        let last_version = AtomicU64::new(image.common);
        Self {
            number: AtomicU64::new(0),
            image: Mutex::new(Arc::new(image)),
            last_version,
        }
    }

    /// A version for a new image (C1).
    pub fn draw_version(&self) -> u64 {
        self.last_version.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Runs `draw`, which draws a snapshot, and returns the image that belongs to it (C2). `known` is the image that the
    /// caller had, with its number.
    pub fn with_snapshot<R, E>(
        &self,
        known: &mut (u64, Arc<Catalog>),
        mut draw: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        loop {
            // Acquire: pairs with the release of `publish`.
            let before = self.number.load(Ordering::Acquire);
            if before % 2 == 1 {
                // Wait for it.
                drop(self.image.lock());
                continue;
            }
            let drawn = draw()?;
            fence(Ordering::SeqCst);
            if self.number.load(Ordering::Acquire) != before {
                continue;
            }
            if known.0 == before {
                return Ok(drawn);
            }
            let image = self.image.lock();
            if self.number.load(Ordering::Acquire) == before {
                *known = (before, image.clone());
                return Ok(drawn);
            }
        }
    }

    /// The number that the image has now: another one than that of an image that is not the newest.
    pub fn number(&self) -> u64 {
        // Acquire: pairs with the release of `publish`.
        self.number.load(Ordering::Acquire)
    }

    /// The image as it is now, with its number.
    pub fn numbered(&self) -> (u64, Arc<Catalog>) {
        let image = self.image.lock();
        (self.number.load(Ordering::Relaxed), image.clone())
    }

    /// The image as it is now.
    pub fn now(&self) -> Arc<Catalog> {
        self.image.lock().clone()
    }

    /// Runs `commit`, and if it succeeds applies the changes to the image (C2).
    pub fn publish<R, E>(
        &self,
        changes: &[Change],
        commit: impl FnOnce() -> Result<R, E>,
    ) -> Result<R, E> {
        let mut image = self.image.lock();
        let number = self.number.load(Ordering::Relaxed);
        debug_assert_eq!(number % 2, 0, "one at a time, under the lock");
        self.number.store(number + 1, Ordering::SeqCst);
        let committed = commit();
        if committed.is_ok() {
            let mut next = Catalog::clone(&image);
            let version = self.draw_version();
            for change in changes {
                next.advance(&change.committed(), version);
            }
            next.base = next.common;
            *image = Arc::new(next);
        }
        self.number.store(number + 2, Ordering::Release);
        committed
    }
}
