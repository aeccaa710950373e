//! Segment files and the space in them.
//!
//! Files `log/NNNNNNNN` are made once, filled with zeros and synced; from then on a commit overwrites
//! bytes and changes no metadata. The eight digits name the file, not its content: the content's
//! number stands in the header block and only grows.
//!
//! States of a file: free --[`Segments::switch`]: header written and synced--> current --next
//! switch--> full --[`Segments::release_before`]--> free.
//!
//! Invariants:
//! - I1 `held` is what was promised and is not on disk yet: granted to slots, appended but not
//!   flushed, set aside for rollbacks. Grants for a purpose leave that purpose's headroom free, so
//!   that rounds, rollbacks and checkpoints find room in files that exist already (R9).
//! - I2 A segment number is used once (see `frame`).
//!
//! Concurrency: one mutex, innermost; no I/O under it. `switch` is called by the round leader alone.
//!
//! Crash: a header that is torn is no header; no round was written behind it yet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use vellum_base::{Result, StorageError};
use vellum_io::{AlignedBuf, Directory, File, OpenOptions};
use vellum_sync::Mutex;
use vellum_sync::atomic::{AtomicBool, Ordering};

use crate::config::{BLOCK_BYTES, LogConfig, LogPosition, LogStart, Purpose, segment_name};
use crate::frame::{NUMBER_MAX, NoSegment, SegmentHeader};
use crate::segment_file;

/// Files of the segments that hold live content, by number.
#[derive(Debug, Default)]
pub struct SegmentFiles {
    files: Mutex<BTreeMap<u64, Arc<dyn File>>>,
}

impl SegmentFiles {
    pub(crate) fn insert(&self, number: u64, file: Arc<dyn File>) {
        self.files.lock().insert(number, file);
    }

    pub(crate) fn remove(&self, number: u64) {
        self.files.lock().remove(&number);
    }

    /// Numbers of the segments, ascending. Those before the log's position are complete: their content does not
    /// change until they are released.
    pub fn numbers(&self) -> Vec<u64> {
        self.files.lock().keys().copied().collect()
    }

    /// The file of a segment.
    ///
    /// # Errors
    /// `Corruption` if the segment is gone: something names a place that was recycled.
    pub fn get(&self, number: u64) -> Result<Arc<dyn File>> {
        self.files
            .lock()
            .get(&number)
            .cloned()
            .ok_or_else(|| StorageError::Corruption {
                file: "log".into(),
                page: None,
                what: "log segment is missing",
                expected: number,
                found: 0,
            })
    }
}

#[derive(Debug)]
struct Owned {
    index: u64,
    file: Arc<dyn File>,
    number: u64,
    /// Whether all of it is surely durable, its length above all. A process that was killed may have left it to the kernel.
    durable: bool,
    /// Whether it has the length of the settings. Others were made with other settings, and go when nothing of them is needed.
    fits: bool,
}

impl Owned {
    /// Syncs a file that was taken over, once: a header must not be durable before the length is, or a power cut leaves what looks like a segment
    /// that somebody cut.
    fn make_durable(&mut self) -> Result<()> {
        if !self.durable {
            self.file.sync_data()?;
            self.durable = true;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Table {
    /// Ascending by number; the last is the current one.
    live: VecDeque<Owned>,
    /// Taken from the back.
    free: Vec<Owned>,
    /// Files that are to be removed, by index: nothing of them is needed.
    surplus: Vec<u64>,
    /// Where the next round starts in the current segment.
    offset: u64,
    next_number: u64,
    next_index: u64,
    held: u64,
    /// Where the first round that is not durable yet starts or, if the round before filled its
    /// segment, would start.
    position: LogPosition,
}

/// All segments of a log.
#[derive(Debug)]
pub(crate) struct Segments {
    dir: Arc<dyn Directory>,
    pub config: LogConfig,
    start: LogStart,
    pub files: Arc<SegmentFiles>,
    table: Mutex<Table>,
    /// Held while a file is made.
    growing: Mutex<()>,
    /// See [`Segments::set_unbounded`].
    unbounded: AtomicBool,
    /// Whether the last file that was wanted found no room on the disk: then the log is as large as it is, whatever the settings say.
    disk_is_full: AtomicBool,
}

/// Where a round may write.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub segment: u64,
    pub offset: u64,
    pub file: Arc<dyn File>,
}

/// What stands in a file of the log directory.
#[derive(Debug)]
pub(crate) struct Found {
    pub index: u64,
    pub file: Arc<dyn File>,
    pub header: Option<SegmentHeader>,
}

/// Opens all files of the log directory and reads their headers.
pub(crate) fn scan(dir: &dyn Directory, options: OpenOptions) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for name in dir.list("log")? {
        let digits = name.len() == 8 && name.bytes().all(|byte| byte.is_ascii_digit());
        let Some(index) = digits.then(|| name.parse().ok()).flatten() else {
            continue;
        };
        let file = segment_file::open(dir, &format!("log/{name}"), options)?;
        let mut header = None;
        if file.len()? >= BLOCK_BYTES {
            let mut block = vec![0; BLOCK_BYTES as usize];
            file.read_at(&mut block, 0)?;
            header = match SegmentHeader::decode(&block) {
                Ok(header) => Some(header),
                Err(NoSegment::Unused) => None,
                Err(NoSegment::Impossible(found)) => {
                    return Err(StorageError::Corruption {
                        file: file.name().clone(),
                        page: None,
                        what: "numbers of a log segment",
                        expected: NUMBER_MAX,
                        found,
                    });
                }
                Err(NoSegment::Foreign(version)) => {
                    return Err(StorageError::ForeignFormat {
                        file: file.name().clone(),
                        what: format!("log format version {version}"),
                    });
                }
            };
        }
        found.push(Found {
            index,
            file,
            header,
        });
    }
    Ok(found)
}

/// Segments that a log must have at least to set a segment and a half aside for checkpoints.
const SEGMENTS_TO_CARRY: u64 = 8;

impl Segments {
    /// Takes over the directory: segments from `start.keep_from_segment` on stay, others are free.
    pub fn open(dir: Arc<dyn Directory>, config: LogConfig, start: LogStart) -> Result<Self> {
        config.validate()?;
        dir.create_dir("log")?;
        // Also if it was there: a process that was killed may have left the control file's name to the kernel, and what is free by that
        // file is still needed by the one before it.
        dir.sync_dir("")?;
        let mut table = Table {
            live: VecDeque::new(),
            free: Vec::new(),
            surplus: Vec::new(),
            offset: 0,
            next_number: start.next_segment,
            next_index: 0,
            held: 0,
            position: LogPosition::default(),
        };
        let files = Arc::new(SegmentFiles::default());
        let mut found = scan(&*dir, OpenOptions::existing())?;
        found.sort_by_key(|f| f.header.map_or(0, |h| h.segment));
        for Found {
            index,
            file,
            header,
        } in found
        {
            table.next_index = table.next_index.max(index + 1);
            let number = header.map_or(0, |h| h.segment);
            let fits = file.len()? == config.segment_bytes;
            if number >= start.next_segment {
                // A start that does not belong to this directory: the number would be used twice.
                return Err(StorageError::Corruption {
                    file: file.name().clone(),
                    page: None,
                    what: "number of log segment",
                    expected: start.next_segment,
                    found: number,
                });
            }
            if number != 0 && number >= start.keep_from_segment {
                files.insert(number, file.clone());
                table.live.push_back(Owned {
                    index,
                    file,
                    number,
                    durable: false,
                    fits,
                });
            } else if fits {
                table.free.push(Owned {
                    index,
                    file,
                    number: 0,
                    durable: false,
                    fits,
                });
            } else {
                // Left by a crash while it was made, or made with another setting.
                dir.remove(&segment_name(index))?;
            }
        }
        // Also if nothing was removed: a process that was killed while it made a file has left its name to the kernel, and what is taken over here
        // as free is written next.
        dir.sync_dir("log")?;
        let table = Mutex::new(table);
        let segments = Self {
            dir,
            config,
            start,
            files,
            table,
            growing: Mutex::new(()),
            unbounded: AtomicBool::new(false),
            disk_is_full: AtomicBool::new(false),
        };
        // One to start with and one to go on in, whatever the bound says: an incarnation that cannot
        // start could never give anything back. On a full disk the one has to do until a checkpoint releases
        // what was there before.
        loop {
            let free = segments.table.lock().free.len();
            match (
                free,
                if free < 2 {
                    segments.make_file()
                } else {
                    break;
                },
            ) {
                (1, Err(StorageError::OutOfSpace { .. })) => break,
                (_, made) => made?,
            }
        }
        let place = segments.switch(start.next_round, start.previous.last_round)?;
        segments.table.lock().position = LogPosition {
            segment: place.segment,
            offset: place.offset,
            round: start.next_round,
        };
        Ok(segments)
    }

    /// Makes one more file: zeros, synced, free. One at a time: under `growing`, or while the log is opened.
    fn make_file(&self) -> Result<()> {
        let index = self.table.lock().next_index;
        let name = segment_name(index);
        let made = self.fill(&name);
        let full = matches!(made, Err(StorageError::OutOfSpace { .. }));
        // Relaxed: who sees it late asks once more.
        self.disk_is_full.store(full, Ordering::Relaxed);
        match made {
            Ok(file) => {
                let mut table = self.table.lock();
                // Only now: names have eight digits, and a full disk may refuse for as long as it likes.
                table.next_index = index + 1;
                table.free.insert(
                    0,
                    Owned {
                        index,
                        file,
                        number: 0,
                        durable: true,
                        fits: true,
                    },
                );
                Ok(())
            }
            Err(error) => {
                // Half a file is of no use and may be what fills the disk; failing to remove it
                // leaves it to the next start.
                let _ = self.dir.remove(&name);
                Err(error)
            }
        }
    }

    fn fill(&self, name: &str) -> Result<Arc<dyn File>> {
        let file = segment_file::open(&*self.dir, name, OpenOptions::create())?;
        file.allocate(0, self.config.segment_bytes)?;
        let bytes = self.config.segment_bytes;
        let zeros = AlignedBuf::zeroed(bytes.min(1 << 20) as usize)?;
        let mut at = 0;
        while at < bytes {
            let count = (bytes - at).min(zeros.len() as u64);
            file.write_at(&zeros[..count as usize], at)?;
            at += count;
        }
        file.sync_data()?;
        self.dir.sync_dir("log")?;
        Ok(file)
    }

    /// Makes a file if the bound allows it and `missing` cannot be granted otherwise. True if now it
    /// may be.
    pub fn try_grow(&self, missing: u64, purpose: Purpose) -> Result<bool> {
        let _one = self.growing.lock();
        if self.would_grant(missing, purpose) {
            return Ok(true);
        }
        let owned = {
            let table = self.table.lock();
            (table.live.len() + table.free.len()) as u64
        };
        if owned >= self.config.segments_max() && !self.unbounded.load(Ordering::Relaxed) {
            return Ok(false);
        }
        match self.make_file() {
            Ok(()) => Ok(true),
            // A full disk bounds the log as the setting does: with files as few as there are, less may have to be left free.
            Err(StorageError::OutOfSpace { .. }) => Ok(self.would_grant(missing, purpose)),
            Err(error) => Err(error),
        }
    }

    /// Whether files are made beyond the bound of the settings.
    pub fn set_unbounded(&self, on: bool) {
        // Relaxed: who sees it late makes a file too few or too many.
        self.unbounded.store(on, Ordering::Relaxed);
    }

    /// Bytes of rounds that one segment surely takes: without its header, and without a tail that no
    /// record fits into.
    fn usable(&self) -> u64 {
        self.config.segment_bytes - 3 * BLOCK_BYTES
    }

    fn free_bytes(&self, table: &Table) -> u64 {
        (self.config.segment_bytes - table.offset) + table.free.len() as u64 * self.usable()
    }

    /// What a grant for `purpose` must leave free (I1). A segment for others' rollbacks: that much is lost in
    /// the current one when the database is opened again. Another one and a half for checkpoints: carrying the
    /// undo of a whole segment forward takes about as much. A log of a few segments has only half of one for them. One of three files that has
    /// no fourth because the disk is full has a quarter: two and a half are never free there once half of the current file is written. No file can be made
    /// at the next start either, so one stays free whatever a checkpoint writes.
    fn headroom(&self, table: &Table, purpose: Purpose) -> u64 {
        let small = self.config.segments_max() < SEGMENTS_TO_CARRY;
        let owned = table.live.len() + table.free.len();
        let few = !small && owned < 4 && self.disk_is_full.load(Ordering::Relaxed);
        match purpose {
            Purpose::Forward | Purpose::Optional if small => self.usable(),
            Purpose::Forward | Purpose::Optional if few => self.usable() * 5 / 4,
            Purpose::Forward | Purpose::Optional => self.usable() * 5 / 2,
            Purpose::Checkpoint if small => self.usable() / 2,
            Purpose::Checkpoint => self.usable(),
            Purpose::Undo => 0,
        }
    }

    /// True if a rollback that takes that much would use what checkpoints need to recycle anything: it then asks
    /// for a checkpoint first, while there is room for one.
    pub fn undo_runs_short(&self, bytes: u64) -> bool {
        let table = self.table.lock();
        let needed = self.headroom(&table, Purpose::Forward);
        table.held + bytes + needed > self.free_bytes(&table)
    }

    fn grantable(&self, table: &Table, bytes: u64, purpose: Purpose) -> bool {
        table.held + bytes + self.headroom(table, purpose) <= self.free_bytes(table)
    }

    /// Grants log bytes to a slot, if they are there.
    pub fn try_grant(&self, bytes: u64, purpose: Purpose) -> bool {
        let mut table = self.table.lock();
        let granted = self.grantable(&table, bytes, purpose);
        if granted {
            table.held += bytes;
        }
        granted
    }

    /// True if [`Segments::try_grant`] would grant that much.
    pub fn would_grant(&self, bytes: u64, purpose: Purpose) -> bool {
        self.grantable(&self.table.lock(), bytes, purpose)
    }

    /// Gives granted bytes back.
    pub fn give_back(&self, bytes: u64) {
        let mut table = self.table.lock();
        debug_assert!(bytes <= table.held, "more given back than granted");
        table.held = table.held.saturating_sub(bytes);
    }

    /// Bytes promised and not written.
    pub fn held(&self) -> u64 {
        self.table.lock().held
    }

    /// Where the next round starts.
    pub fn place(&self) -> Place {
        let table = self.table.lock();
        let current = table
            .live
            .back()
            .expect("the current segment exists since `open`");
        Place {
            segment: current.number,
            offset: table.offset,
            file: current.file.clone(),
        }
    }

    /// Where recovery finds what is not durable yet. Not the same as [`Segments::place`] while a
    /// round is written over the end of a segment.
    pub fn position(&self) -> LogPosition {
        self.table.lock().position
    }

    /// Notes that the rounds before `position`, in the current segment, are durable, and gives back
    /// what was held for them.
    pub fn advance(&self, position: LogPosition, given_back: u64) {
        let mut table = self.table.lock();
        debug_assert!(table.position < position && table.offset < position.offset);
        debug_assert!(position.offset <= self.config.segment_bytes);
        debug_assert!(given_back <= table.held, "more given back than granted");
        table.offset = position.offset;
        table.position = position;
        table.held = table.held.saturating_sub(given_back);
    }

    /// Writes the header of a segment whose first round is `round`.
    fn write_header(&self, file: &dyn File, number: u64, round: u64, durable: u64) -> Result<()> {
        let header = SegmentHeader {
            segment: number,
            incarnation: self.start.incarnation,
            first_round: round,
            segment_bytes: self.config.segment_bytes,
            previous: self.start.previous,
            last_durable: durable,
        };
        let mut block = AlignedBuf::zeroed(BLOCK_BYTES as usize)?;
        block.copy_from_slice(&header.encode());
        file.write_at(&block, 0)?;
        file.sync_data()
    }

    /// Labels the current segment, which no durable round is in, anew: its first round is `round`.
    pub fn relabel(&self, round: u64, durable: u64) -> Result<Place> {
        let place = self.place();
        debug_assert_eq!(place.offset, BLOCK_BYTES);
        self.write_header(&*place.file, place.segment, round, durable)?;
        Ok(place)
    }

    /// Takes a free segment into use; its first round will be `round`, and rounds up to `durable` are
    /// on disk.
    pub fn switch(&self, round: u64, durable: u64) -> Result<Place> {
        let next = {
            let mut table = self.table.lock();
            let number = table.next_number;
            table.free.pop().map(|owned| {
                table.next_number += 1;
                Owned { number, ..owned }
            })
        };
        let Some(mut next) = next else {
            return Err(StorageError::OutOfSpace { file: "log".into() });
        };
        let written = next
            .make_durable()
            .and_then(|()| self.write_header(&*next.file, next.number, round, durable));
        let mut table = self.table.lock();
        if let Err(error) = written {
            // The number is burnt: the header may be there or not. Taken next time (others are
            // put in front of it), and written over: it would send a reader to rounds that are elsewhere.
            table.free.push(Owned { number: 0, ..next });
            return Err(error);
        }
        self.files.insert(next.number, next.file.clone());
        table.live.push_back(next);
        table.offset = BLOCK_BYTES;
        drop(table);
        Ok(self.place())
    }

    /// Frees the segments below `segment`, never the current one. Returns how many. They are free also where a file that is too many cannot be
    /// removed: it is tried again by the next call, or the next start.
    pub fn release_before(&self, segment: u64) -> Result<u64> {
        let mut released = 0;
        let surplus = {
            let mut table = self.table.lock();
            while table.live.len() > 1 && table.live[0].number < segment {
                let owned = table.live.pop_front().expect("more than one is live");
                self.files.remove(owned.number);
                released += 1;
                let count = (table.live.len() + table.free.len()) as u64;
                // Another setting, or a start with a full log, left more or others than wanted.
                if count >= self.config.segments_max() || !owned.fits {
                    table.surplus.push(owned.index);
                } else {
                    table.free.insert(0, Owned { number: 0, ..owned });
                }
            }
            // What was made beyond the bound and is not promised to anybody.
            while (table.live.len() + table.free.len()) as u64 > self.config.segments_max()
                && table.held + self.usable() <= self.free_bytes(&table)
                && !table.free.is_empty()
            {
                // From the front: the back may have to be written over first (see `switch`).
                let index = table.free.remove(0).index;
                table.surplus.push(index);
            }
            std::mem::take(&mut table.surplus)
        };
        let mut first = None;
        for index in surplus {
            if let Err(error) = self.dir.remove(&segment_name(index)) {
                self.table.lock().surplus.push(index);
                first = first.or(Some(error));
            }
        }
        first.map_or(Ok(released), Err)
    }

    /// The oldest segment that is kept.
    pub fn oldest(&self) -> u64 {
        self.table
            .lock()
            .live
            .front()
            .map_or(0, |owned| owned.number)
    }

    /// Bytes of segments that may not be overwritten.
    pub fn bytes_in_use(&self) -> u64 {
        let table = self.table.lock();
        (table.live.len() as u64 - 1) * self.config.segment_bytes + table.offset
    }

    /// Which incarnation writes.
    pub fn incarnation(&self) -> u64 {
        self.start.incarnation
    }

    /// True once a sync failed.
    pub fn poisoned(&self) -> bool {
        self.dir.poisoned()
    }
}
