//! Which pages are in use: a mirror of all bitmaps in memory, growth and truncation of the file.
//!
//! The bitmap pages are the truth for durable pages, this mirror is the truth for temporary ones
//! (docs/design/0001): a temporary page has no bit, so a crash gives it back.
//!
//! Invariants:
//! - S1 A page is given out to one user at a time: its bit here is set from `take` to `give`.
//! - S2 The GSN floor is at or above every GSN at which any page was freed, and what is taken starts at
//!   it. "At", not above: the floor is the GSN of a record that exists, so the log can be made durable
//!   up to it, and redo skips records at or below a page's GSN.
//! - S3 Where the file cannot grow, each taker leaves pages to those that matter more ([`Claim`]): data that grows
//!   leaves some to deletes and their before-images, which make room, and both leave [`RESERVE_PAGES`] to rollbacks, for
//!   their splits.
//! - S4 `take_many` takes all or none; a failed growth leaves everything as it was.
//!
//! Concurrency: one mutex over the mirror, held for a bit search. Growth does its I/O outside of it,
//! under the pool's growth mutex. Nothing here latches a page, but for `load` and `truncate_tail`.
//!
//! Crash: growth is synced before its pages are given out: on a disk that is full by then, redo would not get them. Truncation comes
//! after the frees are durable, and is durable with the file's next sync, or not: records of pages beyond the end find
//! [`crate::RedoPage::Broken`] and are skipped, pages of the old tail are free.

use crate::bitmap;
use crate::geometry::Geometry;
use crate::page::{PageHeader, kind};
use crate::pool::Pool;
use crate::write_out::Mode;
use std::sync::Arc;
use vellum_base::{Gsn, PageId, Result, StorageError};
use vellum_sync::atomic::{AtomicU64, Ordering, fence};
use vellum_sync::{Backoff, Mutex, MutexGuard};

/// Pages that ordinary allocations leave alone.
pub const RESERVE_PAGES: u64 = 16;
/// Part of the file that data leaves to [`Claim::Upkeep`]: one in so many pages, ...
const UPKEEP_FRACTION: u64 = 32;
/// ... but in a small file as many as this, ...
const UPKEEP_MIN: u64 = 128;
/// ... or one page in so many, ...
const UPKEEP_FRACTION_SMALL: u64 = 8;
/// ... and in a large file no more than this.
const UPKEEP_BYTES_MAX: u64 = 64 << 20;
/// Fewest pages that the file grows by, if the disk has them.
const GROWTH_MIN: u64 = 64;
/// Most bytes that the file grows by at once.
const GROWTH_BYTES_MAX: u64 = 32 << 20;
/// An eighth of the file is a growth step that keeps the number of steps logarithmic.
const GROWTH_FRACTION: u64 = 8;

/// Looks at a page that somebody holds before truncation gives up; the later ones sleep a millisecond.
const FORGET_ATTEMPTS: u32 = 500;

/// What a page is taken for (S3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// For data that grows.
    Growth,
    /// For what makes room in the end, or goes by itself: deletes, before-images, collection, checkpoints.
    Upkeep,
    /// For what must not fail for space: rollback, recovery.
    Critical,
}

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageUse {
    /// Not at all.
    Free,
    /// By something that its bitmap says or will say.
    Durable,
    /// By version data.
    Temporary,
    /// File header, bitmap, double-write area.
    Reserved,
    /// There is no such page in the file.
    Beyond,
}

/// How many pages are what; together they are the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceCounts {
    /// Pages of the file.
    pub file: u64,
    /// In use by durable data.
    pub durable: u64,
    /// In use by version data.
    pub temporary: u64,
    /// Taken by loads, and in no tree yet. They are temporary in all else ([`PageUse::Temporary`]).
    pub loading: u64,
    /// Not in use.
    pub free: u64,
    /// File header, bitmaps, double-write area.
    pub reserved: u64,
}

/// The mirror of one bitmap.
struct Group {
    /// In use, reserved, or beyond the end of the file.
    used: Box<[u64]>,
    /// Those of them that are temporary.
    temporary: Box<[u64]>,
    /// No word before this one has a free bit.
    first: usize,
}

struct Mirror {
    groups: Vec<Group>,
    /// No group before this one has a free bit.
    first: usize,
    counts: SpaceCounts,
}

/// The allocator of pages.
pub struct Space {
    pool: Arc<Pool>,
    shape: Geometry,
    mirror: Mutex<Mirror>,
    floor: AtomicU64,
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Space({:?})", self.counts())
    }
}

impl Mirror {
    /// Takes note of pages `self.counts.file..pages`, all free but for the reserved ones.
    fn extend(&mut self, shape: Geometry, pages: u64) {
        let words = (shape.group_pages() / 64) as usize;
        while (self.groups.len() as u64) < shape.groups(pages) {
            let full = vec![u64::MAX; words].into_boxed_slice();
            let none = vec![0; words].into_boxed_slice();
            self.groups.push(Group {
                used: full,
                temporary: none,
                first: words,
            });
        }
        for page in (self.counts.file..pages).map(PageId) {
            if shape.is_reserved(page) {
                self.counts.reserved += 1;
            } else {
                self.clear(shape, page);
                self.counts.free += 1;
            }
        }
        self.counts.file = pages;
    }

    fn clear(&mut self, shape: Geometry, page: PageId) {
        let (group, word, mask) = locate(shape, page);
        self.groups[group].used[word] &= !mask;
        self.groups[group].temporary[word] &= !mask;
        self.groups[group].first = self.groups[group].first.min(word);
        self.first = self.first.min(group);
    }

    /// Takes the lowest free page.
    fn take(&mut self, shape: Geometry, temporary: bool) -> Option<PageId> {
        while let Some(group) = self.groups.get_mut(self.first) {
            let full = |word: &u64| *word == u64::MAX;
            match group.used[group.first..]
                .iter()
                .position(|word| !full(word))
            {
                Some(skip) => {
                    let word = group.first + skip;
                    group.first = word;
                    let bit = group.used[word].trailing_ones();
                    group.used[word] |= 1 << bit;
                    if temporary {
                        group.temporary[word] |= 1 << bit;
                        self.counts.temporary += 1;
                    } else {
                        self.counts.durable += 1;
                    }
                    self.counts.free -= 1;
                    let index = word as u64 * 64 + u64::from(bit);
                    return Some(PageId(shape.bitmap_page(self.first as u64).get() + index));
                }
                None => {
                    group.first = group.used.len();
                    self.first += 1;
                }
            }
        }
        None
    }

    /// A temporary page becomes a durable one.
    fn settle(&mut self, shape: Geometry, page: PageId) {
        let found = self.page_use(shape, page);
        assert_eq!(
            found,
            PageUse::Temporary,
            "page {page} was taken as temporary"
        );
        let (group, word, mask) = locate(shape, page);
        self.groups[group].temporary[word] &= !mask;
        self.counts.temporary -= 1;
        self.counts.durable += 1;
    }

    /// A page of a load is a temporary one as any other.
    fn end_loading(&mut self) {
        self.counts.loading -= 1;
        self.counts.temporary += 1;
    }

    fn give(&mut self, shape: Geometry, page: PageId) {
        match self.page_use(shape, page) {
            PageUse::Durable => self.counts.durable -= 1,
            PageUse::Temporary => self.counts.temporary -= 1,
            other => panic!("page {page} was given back while it is {other:?}"),
        }
        self.counts.free += 1;
        self.clear(shape, page);
    }

    fn page_use(&self, shape: Geometry, page: PageId) -> PageUse {
        if page.get() >= self.counts.file {
            return PageUse::Beyond;
        }
        if shape.is_reserved(page) {
            return PageUse::Reserved;
        }
        let (group, word, mask) = locate(shape, page);
        let group = &self.groups[group];
        match (
            group.used[word] & mask != 0,
            group.temporary[word] & mask != 0,
        ) {
            (false, _) => PageUse::Free,
            (true, false) => PageUse::Durable,
            (true, true) => PageUse::Temporary,
        }
    }
}

/// Group, word in the group, bit in the word.
fn locate(shape: Geometry, page: PageId) -> (usize, usize, u64) {
    let (_, bit) = shape.bitmap_of(page);
    let group = (page.get() - 1) / shape.group_pages();
    (group as usize, (bit / 64) as usize, 1 << (bit % 64))
}

impl Space {
    /// Reads all bitmaps (after redo). `floor` is above every GSN of the log so far.
    ///
    /// # Errors
    /// I/O errors; `Corruption` if a bitmap is none, or says that pages are in use which the
    /// file does not have.
    pub fn load(pool: Arc<Pool>, floor: Gsn) -> Result<Self> {
        let shape = pool.geometry();
        let mut mirror = Mirror {
            groups: Vec::new(),
            first: 0,
            counts: SpaceCounts::default(),
        };
        // The file header is in no group.
        mirror.counts.file = 1;
        mirror.counts.reserved = 1;
        mirror.extend(shape, pool.file_pages());
        for group in 0..mirror.groups.len() {
            let at = shape.bitmap_page(group as u64);
            let page = pool.shared(at)?;
            if !matches!(page.kind(), kind::BITMAP | kind::FREE) {
                let (expected, found) = (kind::BITMAP.into(), page.kind().into());
                return Err(pool.corrupt(at, "kind of an allocation bitmap", expected, found));
            }
            for (index, bits) in bitmap::words(&page).enumerate() {
                let wrong = bits & mirror.groups[group].used[index];
                if wrong != 0 {
                    let bit = index as u64 * 64 + u64::from(wrong.trailing_zeros());
                    let page = PageId(at.get() + bit);
                    return Err(pool.corrupt(page, "a page in use that cannot be", 0, 1));
                }
                mirror.groups[group].used[index] |= bits;
                mirror.counts.durable += u64::from(bits.count_ones());
                mirror.counts.free -= u64::from(bits.count_ones());
            }
        }
        let space = Self {
            pool,
            shape,
            mirror: Mutex::new(mirror),
            floor: AtomicU64::new(floor.get()),
        };
        let end = space.cut_at(&space.mirror.lock());
        space.pool.note_in_use(end);
        Ok(space)
    }

    /// A mirror that read no bitmap and says of every page that it is in use: for who only looks at pages, of
    /// a file whose bitmaps may be damaged. Nothing may be taken from it or given to it.
    pub fn unread(pool: Arc<Pool>) -> Self {
        let shape = pool.geometry();
        let mut mirror = Mirror {
            groups: Vec::new(),
            first: 0,
            counts: SpaceCounts::default(),
        };
        mirror.counts.file = 1;
        mirror.counts.reserved = 1;
        mirror.extend(shape, pool.file_pages());
        for group in &mut mirror.groups {
            group.used.fill(u64::MAX);
        }
        mirror.counts.durable = std::mem::take(&mut mirror.counts.free);
        Self {
            pool,
            shape,
            mirror: Mutex::new(mirror),
            floor: AtomicU64::new(0),
        }
    }

    /// The bitmap page that covers a page, and the page's bit in it.
    #[inline]
    pub fn bitmap_of(&self, page: PageId) -> (PageId, u64) {
        self.shape.bitmap_of(page)
    }

    /// How many pages are what.
    pub fn counts(&self) -> SpaceCounts {
        self.mirror.lock().counts
    }

    /// What a page is used for.
    pub fn page_use(&self, page: PageId) -> PageUse {
        self.mirror.lock().page_use(self.shape, page)
    }

    /// At or above every GSN at which a page was freed.
    pub fn floor(&self) -> Gsn {
        // Acquire: pairs with the release in give.
        Gsn(self.floor.load(Ordering::Acquire))
    }

    /// Takes a page, a durable one for data that grows; also returns the GSN that it starts with ([`Pool::create`]). May
    /// grow the file, so the caller holds no slot latch.
    ///
    /// # Errors
    /// `OutOfSpace`: nothing was taken. I/O errors of growth.
    pub fn take(&self, temporary: bool) -> Result<(PageId, Gsn)> {
        self.take_for(Self::usual_claim(temporary), temporary)
    }

    /// As [`Space::take`], for something else.
    ///
    /// # Errors
    /// As [`Space::take`].
    pub fn take_for(&self, claim: Claim, temporary: bool) -> Result<(PageId, Gsn)> {
        let mut taken = [PageId::ZERO];
        let floor = self.take_into(&mut taken, temporary, claim)?;
        Ok((taken[0], floor))
    }

    /// As [`Space::take_for`], a temporary page of a load: it is no version data. [`Space::settle_loaded`] or [`Space::give_loading`] end that.
    ///
    /// # Errors
    /// As [`Space::take`].
    pub fn take_loading(&self, claim: Claim) -> Result<(PageId, Gsn)> {
        let taken = self.take_for(claim, true)?;
        let mut mirror = self.mirror.lock();
        mirror.counts.temporary -= 1;
        mirror.counts.loading += 1;
        Ok(taken)
    }

    /// Takes `count` pages or none.
    ///
    /// # Errors
    /// As [`Space::take`].
    pub fn take_many(&self, count: usize, temporary: bool) -> Result<(Vec<PageId>, Gsn)> {
        let mut taken = vec![PageId::ZERO; count];
        let floor = self.take_into(&mut taken, temporary, Self::usual_claim(temporary))?;
        Ok((taken, floor))
    }

    /// Version data goes by itself.
    fn usual_claim(temporary: bool) -> Claim {
        if temporary {
            Claim::Upkeep
        } else {
            Claim::Growth
        }
    }

    /// Pages that `claim` leaves free in a file of so many pages that cannot grow.
    fn left_free(&self, claim: Claim, file_pages: u64) -> u64 {
        match claim {
            Claim::Growth => RESERVE_PAGES + self.set_aside(file_pages),
            Claim::Upkeep => RESERVE_PAGES,
            Claim::Critical => 0,
        }
    }

    /// Pages that data leaves to [`Claim::Upkeep`].
    pub(crate) fn set_aside(&self, file_pages: u64) -> u64 {
        let of_small = (file_pages / UPKEEP_FRACTION_SMALL).min(UPKEEP_MIN);
        let most = UPKEEP_BYTES_MAX / self.shape.page_size as u64;
        (file_pages / UPKEEP_FRACTION).clamp(of_small, most)
    }

    fn take_into(&self, out: &mut [PageId], temporary: bool, claim: Claim) -> Result<Gsn> {
        let mut mirror = self.mirror.lock();
        loop {
            let wanted = out.len() as u64 + self.left_free(claim, mirror.counts.file);
            if mirror.counts.free >= wanted {
                break;
            }
            drop(mirror);
            self.grow_to_free(wanted)?;
            mirror = self.mirror.lock();
        }
        for page in out.iter_mut() {
            *page = mirror
                .take(self.shape, temporary)
                .expect("as many are free as were counted");
            debug_assert!(!self.shape.is_reserved(*page));
            self.pool.note_in_use(page.get() + 1);
        }
        // Under the mutex: whoever freed one of these pages raised the floor before.
        Ok(self.floor())
    }

    /// Notes that a page that was taken as temporary is durable from now on: its bit is set in its bitmap.
    ///
    /// # Panics
    /// If the page is not in use as a temporary one.
    pub fn settle(&self, page: PageId) {
        self.mirror.lock().settle(self.shape, page);
    }

    /// As [`Space::settle`], of a page of a load.
    ///
    /// # Panics
    /// As [`Space::settle`].
    pub fn settle_loaded(&self, page: PageId) {
        let mut mirror = self.mirror.lock();
        mirror.end_loading();
        mirror.settle(self.shape, page);
    }

    /// Gives a page of a load back that is in no tree.
    ///
    /// # Panics
    /// As [`Space::give`].
    pub fn give_loading(&self, page: PageId) {
        let mut mirror = self.mirror.lock();
        mirror.end_loading();
        mirror.give(self.shape, page);
    }

    /// Gives a page back. `freed_at` is the GSN of the record that freed it (durable pages), and at
    /// least the page's own GSN; [`Gsn::ZERO`] for a temporary page whose GSN was never raised
    /// above what it started with. The record must have been appended before.
    ///
    /// # Panics
    /// If the page is not in use.
    pub fn give(&self, page: PageId, freed_at: Gsn) {
        let mut mirror = self.mirror.lock();
        // Release: pairs with the acquire in floor.
        self.floor.fetch_max(freed_at.get(), Ordering::Release);
        mirror.give(self.shape, page);
    }

    /// True if the file should grow soon: for whoever does it in the background.
    pub fn runs_short(&self) -> bool {
        let counts = self.counts();
        let used_up = self.left_free(Claim::Growth, counts.file);
        counts.free < used_up + self.growth_step(counts.file) / 4
    }

    /// Grows the file by a step, ahead of need.
    ///
    /// # Errors
    /// `OutOfSpace`, I/O errors; nothing has changed then.
    pub fn grow(&self) -> Result<()> {
        let free = self.counts().free;
        self.grow_to_free(free + 1)
    }

    fn growth_step(&self, file_pages: u64) -> u64 {
        let largest = GROWTH_BYTES_MAX / self.shape.page_size as u64;
        (file_pages / GROWTH_FRACTION).clamp(GROWTH_MIN, largest)
    }

    /// Grows the file until at least `wanted` pages are free; by a whole step if the disk has it.
    fn grow_to_free(&self, wanted: u64) -> Result<()> {
        let _growth = self.pool.growth.lock();
        let counts = self.counts();
        let Some(missing) = wanted
            .checked_sub(counts.free)
            .filter(|missing| *missing > 0)
        else {
            // Somebody else grew the file, or pages were given back.
            return Ok(());
        };
        let full = StorageError::OutOfSpace {
            file: self.pool.file.name().clone(),
        };
        let room = self.pool.pages_max() - counts.file;
        // A new group's bitmap takes a page of the growth.
        let least =
            missing + self.shape.groups(counts.file + missing + 2) - self.shape.groups(counts.file);
        let mut step = least.max(self.growth_step(counts.file)).min(room);
        if step < least {
            return Err(full);
        }
        let offset = self.shape.offset(PageId(counts.file));
        loop {
            match self
                .pool
                .file
                .allocate(offset, step * self.shape.page_size as u64)
            {
                Ok(()) => break,
                // A nearly full disk still gives what is needed.
                Err(StorageError::OutOfSpace { .. }) if step > least => {
                    step = (step / 2).max(least);
                }
                Err(error) => return Err(error),
            }
        }
        self.pool.file.sync_data()?;
        let pages = counts.file + step;
        // Release: pairs with the acquire in Pool::file_pages.
        self.pool.file_pages.store(pages, Ordering::Release);
        self.mirror.lock().extend(self.shape, pages);
        Ok(())
    }

    /// Cuts free pages off the end of the file; returns how many (none if pages were freed or used
    /// meanwhile). For a maintenance call: waits
    /// for the log, for the writer of batches, and for holders of pages that were freed.
    ///
    /// # Errors
    /// I/O errors, those of the log. After an error the file is as long as before.
    pub fn truncate_tail(&self) -> Result<u64> {
        let _growth = self.pool.growth.lock();
        // The frees must be durable: the pages' content will be gone. Pages that are freed meanwhile
        // raise the floor and have to wait for the next call.
        let floor = self.floor();
        self.pool.log.make_durable(floor)?;
        let end = self.cut_at(&self.mirror.lock());
        self.write_tail(end)?;
        let mut mirror = self.mirror.lock();
        if self.floor() != floor {
            return Ok(0);
        }
        let before = mirror.counts.file;
        // Pages may have been taken meanwhile; what was given back meanwhile was not written.
        let end = end.max(self.cut_at(&mirror));
        let removed = before - end;
        if removed == 0 {
            return Ok(0);
        }
        self.shrink(&mut mirror, end);
        drop(mirror);
        // Release: pairs with the acquire in Pool::file_pages: faults refuse the pages from now on.
        self.pool.file_pages.store(end, Ordering::Release);
        let forgotten = self.forget(end, before);
        vellum_sync::test_point!("truncation: before the cut");
        let cut = if forgotten {
            self.cut_file(end).map(|()| true)
        } else {
            Ok(false)
        };
        if matches!(cut, Ok(true)) {
            self.pool.note_end(end);
        } else {
            self.pool.file_pages.store(before, Ordering::Release);
            self.mirror.lock().extend(self.shape, before);
        }
        cut.map(|cut| if cut { removed } else { 0 })
    }

    /// Shortens the file, of whose tail nothing is in memory any more.
    fn cut_file(&self, end: u64) -> Result<()> {
        // A batch under way may still write pages of the tail; no later one can.
        let mut writer = self.pool.writer.lock();
        writer.finish_pending(&*self.pool.file)?;
        // Not synced: until the file's next sync a power cut may find it as long as it was, which it may in this call as well. What is
        // put behind the end comes after a sync (`grow_to_free`).
        self.pool.file.set_len(self.shape.offset(PageId(end)))
    }

    /// Where the file could end.
    fn cut_at(&self, mirror: &MutexGuard<'_, Mirror>) -> u64 {
        let mut end = mirror.counts.file;
        while end > self.shape.first_free().get() {
            let page = PageId(end - 1);
            let cut = match mirror.page_use(self.shape, page) {
                PageUse::Free => true,
                // A bitmap of which every page was cut.
                PageUse::Reserved => self.shape.is_bitmap(page),
                _ => false,
            };
            if !cut {
                break;
            }
            end -= 1;
        }
        end
    }

    /// Takes the pages from `end` on out of the mirror.
    fn shrink(&self, mirror: &mut MutexGuard<'_, Mirror>, end: u64) {
        for page in (end..mirror.counts.file).map(PageId) {
            if self.shape.is_reserved(page) {
                mirror.counts.reserved -= 1;
            } else {
                mirror.counts.free -= 1;
                let (group, word, mask) = locate(self.shape, page);
                mirror.groups[group].used[word] |= mask;
            }
        }
        mirror.counts.file = end;
        let groups = self.shape.groups(end) as usize;
        mirror.groups.truncate(groups);
        mirror.first = mirror.first.min(groups);
    }

    /// Writes dirty pages from `end` on: neither a truncation that fails nor the double-write area
    /// after one that succeeds may show redo a page that lacks changes (double_write.rs, D5).
    fn write_tail(&self, end: u64) -> Result<()> {
        let pool = &*self.pool;
        let mut batch = Vec::with_capacity(self.shape.batch_pages);
        for frame in 0..u32::try_from(pool.frames()).expect("the number of frames fits") {
            if let Some(page) = pool.frames.page(frame).filter(|page| page.get() >= end) {
                batch.push((frame, page));
            }
            if batch.len() == self.shape.batch_pages {
                pool.write_out(&mut batch, Mode::Checkpoint)?;
            }
        }
        pool.write_out(&mut batch, Mode::Checkpoint).map(|_| ())
    }

    /// Drops resident pages in `end..before`. False if somebody holds on to one, or one is still to be
    /// written.
    fn forget(&self, end: u64, before: u64) -> bool {
        // The file's new length before our look at the latches; pairs with the fence in `Pool::check_latched`.
        fence(Ordering::SeqCst);
        let mut backoff = Backoff::new();
        // A fault that looked at the length before it was published holds a latch, but its page is in no frame until it has
        // read it.
        for _ in 0..FORGET_ATTEMPTS {
            if !self.forget_framed(end) {
                return false;
            }
            if !(end..before).any(|page| self.pool.is_resident(PageId(page))) {
                return true;
            }
            backoff.wait();
        }
        false
    }

    /// Drops the pages from `end` on that a frame names. False as [`Space::forget`].
    fn forget_framed(&self, end: u64) -> bool {
        let pool = &*self.pool;
        for frame in 0..u32::try_from(pool.frames()).expect("the number of frames fits") {
            let mut backoff = Backoff::new();
            let mut attempts = 0;
            while let Some(page) = pool.frames.page(frame).filter(|page| page.get() >= end) {
                match pool.try_exclusive(page) {
                    Some(guard) if pool.frames.page(frame) == Some(page) => {
                        if guard.is_to_be_written() {
                            return false;
                        }
                        pool.forget_pages(vec![(frame, guard)]);
                    }
                    // A late reader of a freed page, or eviction was faster. The reader may be
                    // waiting for the growth mutex: this wait must end.
                    _ if attempts < FORGET_ATTEMPTS => {
                        attempts += 1;
                        backoff.wait();
                    }
                    _ => return false,
                }
            }
        }
        true
    }
}
