//! Slots whose analytical transaction idles: passes need not look at them again.
//!
//! Ten sessions idle in their transactions, and a queue goes on beside them: each pass read ten slots of seven words, to find what the one before had
//! found. So a slot that showed the same snapshots to two passes gets a bit, and passes go by what it showed, until the bit is taken away: by its owner, before
//! anything changes that a pass has to know, and behind what a pass may learn later.
//!
//! Paper: none (Scalable and Robust Snapshot Isolation, §3.1, looks at every worker).
//!
//! Invariants:
//! - Q1 A pass that finds the bit (it has read C before) knows of each snapshot that the slot holds, or that is at or above C: the owner announces a snapshot,
//!   takes the bit away, and reads the clock then.
//! - Q2 The bit goes before the slot does: an analytical transaction keeps its slot, takes the bit away, and gives the slot back then. Interleaving otherwise: it ends;
//!   another transaction begins in the slot, with snapshot S; a pass reads C, above S, finds the bit and goes by: it has missed S. (So who gives a slot back
//!   at once has to be sure that nobody makes it analytical meanwhile: one compare-exchange.)
//! - Q3 A pass sets the bit first and looks second, and takes it away again where that look finds anything else than a running analytical transaction. Interleaving otherwise:
//!   the pass looks; the owner takes a new snapshot S, and finds no bit; the pass sets it. From then on passes say that no analytical snapshot is as new as S, and rows that it sees are dropped.
//! - Q4 What a pass learns late keeps garbage, and does not lose anything: a snapshot that was given back, a withdrawal. The bit goes behind these, or it would stay, and with it what
//!   the snapshot was the last to need.
//! - Q5 One pass at a time sets bits, and goes by them; who collects a list of all snapshots looks at all slots.
//!
//! A follower publishes its leader's snapshot, which is older than the clock: a pass may find the follower's slot idle, and goes by the leader's bit, as that has the snapshot
//! until the follower has ended (`begin` I2). So does who begins at another's snapshot, which may end first: a pass meanwhile counts for nothing (`slots` I3).
//!
//! Concurrency: bits belong to the Dekker pair of `slot`: read (SeqCst) after the clock; set (SeqCst) before the words are looked at; taken away (SeqCst) after the word says
//! BUSY and before the clock is read. Unpublishing and taking away are ordered for who sets the bit after that, as both change it.

use crate::commit_log::Settled;
use crate::slot::dekker_fence;
use crate::slots::BITS;
use crate::watermarks::Watermarks;
use vellum_base::Timestamp;
use vellum_sync::atomic::{AtomicU64, Ordering};

/// A bit for each slot.
#[derive(Debug)]
pub(crate) struct QuietBits(Box<[AtomicU64]>);

impl QuietBits {
    pub(crate) fn new(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// The bits of slots from `index * BITS` on.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::SeqCst)
    }

    pub(crate) fn set(&self, place: usize) {
        self.0[place / BITS].fetch_or(1 << (place % BITS), Ordering::SeqCst);
        dekker_fence();
    }

    #[cold]
    pub(crate) fn take_away(&self, place: usize) {
        self.0[place / BITS].fetch_and(!(1 << (place % BITS)), Ordering::SeqCst);
        dekker_fence();
    }
}

/// The oldest and the newest snapshot of a slot, whatever the clock of the pass was: the next pass has another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) oldest: Timestamp,
    pub(crate) newest: Timestamp,
}

impl Span {
    /// Of no snapshot.
    pub(crate) const NONE: Self = Self {
        oldest: Timestamp::MAX,
        newest: Timestamp::ZERO,
    };

    #[inline]
    pub(crate) fn add(&mut self, snapshot: Timestamp) {
        self.oldest = self.oldest.min(snapshot);
        self.newest = self.newest.max(snapshot);
    }
}

/// What passes know of slots from one to the next: belongs to who makes one.
#[derive(Debug)]
pub(crate) struct Known {
    /// The bits, as the last pass found them.
    quiet: Vec<u64>,
    /// What each slot showed last that ran an analytical transaction.
    spans: Vec<Span>,
    /// Of all slots with a bit.
    all: Span,
    /// Bits have changed since that was summed up.
    is_stale: bool,
    /// What slots with a bit had committed when they were settled last: not settled for all by this oldest_tx; not settled for OLTP.
    unsettled: (Option<Timestamp>, bool),
    /// Slots that passes looked at.
    pub(crate) looks: u64,
}

impl Known {
    pub(crate) const fn new() -> Self {
        Self {
            quiet: Vec::new(),
            spans: Vec::new(),
            all: Span::NONE,
            is_stale: false,
            unsettled: (None, false),
            looks: 0,
        }
    }

    /// Notes the bits that a pass found.
    #[inline]
    pub(crate) fn note_bits(&mut self, index: usize, bits: u64) {
        if self.quiet.get(index) != Some(&bits) {
            self.note_changed_bits(index, bits);
        }
    }

    #[cold]
    fn note_changed_bits(&mut self, index: usize, bits: u64) {
        if self.quiet.len() <= index {
            self.quiet.resize(index + 1, 0);
        }
        self.quiet[index] = bits;
        self.is_stale = true;
        self.unsettled = (Some(Timestamp::ZERO), true);
    }

    /// The bits that the last pass found.
    #[inline]
    pub(crate) fn bits(&self, index: usize) -> u64 {
        self.quiet.get(index).copied().unwrap_or(0)
    }

    /// Whether slots with a bit are to be settled by these watermarks, too: nothing is committed there meanwhile.
    pub(crate) fn take_unsettled(&mut self, marks: &Watermarks) -> bool {
        let (by, for_oltp) = self.unsettled;
        let is_due = for_oltp || by.is_some_and(|by| by < marks.oldest_tx);
        if is_due {
            self.unsettled = (None, false);
        }
        is_due
    }

    /// Notes what became of a slot with a bit that was settled by these watermarks.
    pub(crate) fn note_settled(&mut self, settled: Settled, marks: &Watermarks) {
        if !settled.for_all {
            self.unsettled.0 = Some(marks.oldest_tx);
        }
        self.unsettled.1 |= !settled.for_oltp;
    }

    /// Notes what a slot shows; true if it showed that before.
    pub(crate) fn note_span(&mut self, place: usize, span: Span) -> bool {
        if self.spans.len() <= place {
            self.spans.resize(place + 1, Span::NONE);
        }
        std::mem::replace(&mut self.spans[place], span) == span
    }

    /// The oldest and the newest snapshot of all slots whose bits the last pass found.
    #[inline]
    pub(crate) fn quiet_span(&mut self) -> Span {
        if self.is_stale {
            self.sum_up();
        }
        self.all
    }

    #[cold]
    fn sum_up(&mut self) {
        self.is_stale = false;
        self.all = Span::NONE;
        for (index, word) in self.quiet.iter().enumerate() {
            for place in places(index, *word) {
                let span = self.spans[place];
                self.all.oldest = self.all.oldest.min(span.oldest);
                self.all.newest = self.all.newest.max(span.newest);
            }
        }
    }
}

/// The places of the bits of a word.
pub(crate) fn places(index: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (bits != 0).then(|| index * BITS + bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
        place
    })
}
