//! A disk that can lose power: for crash tests of everything that writes files.
//!
//! It remembers for every file what is durable and, in order, every change since; the same for
//! names. [`SimulatedDirectory::power_cut`] then makes the directory that a machine could find when it
//! comes back, with any subset of what was not synced: whole writes, single sectors,
//! lengths, names. Everything follows from the order of calls and the seed.
//!
//! How a crash test uses it: run the workload once and read
//! [`SimulatedDirectory::mutating_calls`]; then for every (or some) n run it on a new directory with
//! [`SimulatedDirectory::cut_after`]`(n)` until a call fails, cut with some seeds, reopen, check.
//!
//! States of a change: made (visible to every reader of this directory) -> durable (by `sync_data` of its
//! file, `sync_dir` of its parents) or lost (by a cut).
//!
//! Invariants:
//! - S1 What was synced before a cut is in every directory that the cut can make.
//! - S2 A rename or an exchange of names is kept whole or not at all: no cut loses the file or shows half of
//!   it under the new name.
//! - S3 A failed sync makes nothing durable and poisons the directory; a call refused for that
//!   changes nothing.
//! - S4 The call in flight at the cut fails, and may yet have taken effect.
//!
//! Concurrency: one mutex; calls are atomic and totally ordered.
//!
//! Not checked: what a medium does beyond docs/media.md (sectors that change by themselves: use
//! [`SimulatedDirectory::flip_bit`]), file systems that lose synced names, hard links, time.

mod cut;
mod disk;
mod fault;
mod file;
mod image;
mod lie;
#[cfg(test)]
mod tests;

pub use cut::{Keep, PowerCut, Torn};
pub use fault::{Call, Counts, Fault, FaultError, TraceEntry};
pub use lie::{Lie, SyncObserver, WriteLie};

use crate::directory::{check_name, check_subdir};
use crate::lock::MemoryLock;
use crate::memory::entries_of;
use crate::{Directory, Entry, File, LockGuard, OpenOptions, Poison, exact, parent_of};
use disk::{Disk, NameChange};
use fault::{Plan, Verdict};
use file::SimulatedFile;
use lie::{Lies, Synced};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::Arc;
use vellum_base::Result;
use vellum_sync::Mutex;

/// A simulated directory. Clones share it, as threads of one process would.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDirectory {
    machine: Arc<Machine>,
    lock: Arc<MemoryLock>,
}

/// What a directory and its open files share.
#[derive(Debug, Default)]
struct Machine {
    state: Mutex<State>,
    poison: Poison,
}

#[derive(Debug, Default)]
struct State {
    disk: Disk,
    plan: Plan,
    lies: Lies,
}

impl State {
    /// Before each change of the disk that `plan` let pass.
    fn before_change(&mut self) {
        self.lies.before_change(&mut self.disk);
    }

    /// A sync that `plan` let pass.
    fn sync(&mut self, name: &str, synced: Synced) {
        // The call itself is counted by now.
        let call = self.plan.mutating_calls - 1;
        self.lies.sync(&mut self.disk, call, name, synced);
    }
}

impl SimulatedDirectory {
    /// An empty directory on a sound disk without limit.
    pub fn new() -> Self {
        Self::default()
    }

    fn on_disk(disk: Disk) -> Self {
        let state = Mutex::new(State {
            disk,
            ..State::default()
        });
        Self {
            machine: Arc::new(Machine {
                state,
                poison: Poison::new(),
            }),
            lock: Arc::default(),
        }
    }

    /// What a machine finds after losing power now. This directory is not changed.
    /// Faults, counts, poison and the lock stay behind; the limit of space is kept.
    pub fn power_cut(&self, seed: u64, cut: PowerCut) -> Self {
        let state = self.machine.state.lock();
        let mut disk = state.disk.clone();
        state.lies.at_cut(&mut disk);
        Self::on_disk(cut::power_cut(&disk, seed, cut))
    }

    /// What a new process finds after this one was killed now: the operating system still has
    /// everything that was written, synced or not, and a later cut can still lose it.
    pub fn process_kill(&self) -> Self {
        Self::on_disk(self.machine.state.lock().disk.without_handles())
    }

    /// Makes the syncs with these numbers (of changing calls before them, as [`SimulatedDirectory::observe_syncs`]
    /// tells them) lie, once each, in every run that makes the same calls.
    pub fn lie_at(&self, calls: BTreeSet<u64>, how: Lie) {
        let mut state = self.machine.state.lock();
        state.lies.calls = calls;
        state.lies.how = Some(how);
    }

    /// Makes the writes with these numbers (of changing calls before them, as [`TraceEntry::mutating_calls`] tells them)
    /// do something else, once each, in every run that makes the same calls.
    pub fn lie_about_writes(&self, writes: BTreeMap<u64, WriteLie>) {
        self.machine.state.lock().lies.writes = writes;
    }

    /// Calls `observer` in each sync that succeeds, with the number of changing calls before it and the name. It
    /// must not use this directory.
    pub fn observe_syncs(&self, observer: SyncObserver) {
        self.machine.state.lock().lies.observer = Some(observer);
    }

    /// Adds a fault to the plan.
    pub fn fail(&self, fault: Fault) {
        self.machine.state.lock().plan.faults.push(fault);
    }

    /// Forgets the faults that have not happened, and ends those that last.
    pub fn clear_faults(&self) {
        self.machine.state.lock().plan.faults.clear();
    }

    /// Lets `calls` more mutating calls succeed. The next one is in flight when the power goes:
    /// it fails, and so does every call after it.
    pub fn cut_after(&self, calls: u64) {
        self.machine.state.lock().plan.calls_to_cut = Some(calls);
    }

    /// True once a call failed by [`SimulatedDirectory::cut_after`].
    pub fn is_cut(&self) -> bool {
        self.machine.state.lock().plan.is_cut
    }

    /// Mutating calls so far: writes, lengths, allocations, syncs, and changes of names. Opening
    /// counts where it makes a file.
    pub fn mutating_calls(&self) -> u64 {
        self.machine.state.lock().plan.mutating_calls
    }

    /// Calls so far, by kind.
    pub fn counts(&self) -> Counts {
        self.machine.state.lock().plan.counts
    }

    /// The last calls, oldest first.
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.machine
            .state
            .lock()
            .plan
            .trace
            .iter()
            .cloned()
            .collect()
    }

    /// Sets how many bytes all files together may take (in blocks of 4 KiB); `None` is no limit.
    pub fn set_space_limit(&self, bytes: Option<u64>) {
        self.machine.state.lock().disk.space_limit = bytes;
    }

    /// Bytes that all files together take, in whole blocks of 4 KiB; holes take none.
    pub fn used_space(&self) -> u64 {
        self.machine.state.lock().disk.used_space()
    }

    /// Changes that a cut could lose. Zero after everything was synced.
    pub fn unsynced_changes(&self) -> usize {
        self.machine.state.lock().disk.unsynced_changes()
    }

    /// Inverts a bit of a file, as a decaying medium does: nothing else notices.
    ///
    /// # Errors
    /// `Io` if there is no such file or byte.
    ///
    /// # Panics
    /// If `bit` is not below 8.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u8) -> Result<()> {
        assert!(bit < 8, "a byte has bits 0 to 7");
        let mut state = self.machine.state.lock();
        let inode = state.disk.lookup("flip", name)?;
        if state.disk.flip_bit(inode, offset, bit) {
            Ok(())
        } else {
            Err(exact::error("flip", name, ErrorKind::UnexpectedEof))
        }
    }

    /// Notes a change of names, which was found possible, and tells the caller how it ended.
    fn change_names(
        &self,
        state: &mut State,
        call: Call,
        name: &str,
        change: impl FnOnce(&mut Disk) -> NameChange,
    ) -> Result<()> {
        self.machine.poison.check()?;
        let name = Arc::from(name);
        let verdict = state.plan.enter(call, true, &name, 0, 0)?;
        if matches!(verdict, Verdict::Go | Verdict::CutNow) {
            state.before_change();
            let change = change(&mut state.disk);
            state.disk.change_names(change);
        }
        verdict.into_result(call, &name)
    }
}

impl Directory for SimulatedDirectory {
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let mut state = self.machine.state.lock();
        let State { disk, plan, lies } = &mut *state;
        let found = disk.names.files.get(name).copied();
        let creates = found.is_none() && options.creates() && !options.read_only;
        if options.creates() {
            self.machine.poison.check()?;
        }
        let full_name = Arc::from(name);
        let possible = match found {
            Some(_) if options.create_new => Err(ErrorKind::AlreadyExists),
            None if !creates || !disk.names.has_dir(parent_of(name)) => Err(ErrorKind::NotFound),
            _ => Ok(()),
        };
        let mutates = creates && possible.is_ok();
        let verdict = plan.enter(Call::Open, mutates, &full_name, 0, 0)?;
        if matches!(verdict, Verdict::Go | Verdict::CutNow) {
            possible.map_err(|kind| exact::error("open", name, kind))?;
            if mutates {
                lies.before_change(disk);
                let inode = disk.new_inode();
                disk.change_names(NameChange::Create {
                    name: name.to_owned(),
                    inode,
                });
            }
        }
        verdict.into_result(Call::Open, &full_name)?;
        let inode = disk.lookup("open", name)?;
        disk.open_handle(inode);
        drop(state);
        let machine = self.machine.clone();
        Ok(Arc::new(SimulatedFile {
            name: full_name,
            machine,
            inode,
            options,
        }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        let mut state = self.machine.state.lock();
        let full_name = Arc::from(name);
        let verdict = state.plan.enter(Call::Exists, false, &full_name, 0, 0)?;
        verdict.into_result(Call::Exists, &full_name)?;
        let names = &state.disk.names;
        Ok(names.files.contains_key(name) || names.directories.contains(name))
    }

    fn entries(&self, subdir: &str) -> Result<Vec<Entry>> {
        check_subdir(subdir)?;
        let mut state = self.machine.state.lock();
        let full_name = Arc::from(subdir);
        let verdict = state.plan.enter(Call::List, false, &full_name, 0, 0)?;
        verdict.into_result(Call::List, &full_name)?;
        let names = &state.disk.names;
        if !names.has_dir(subdir) {
            return Err(exact::error("list", subdir, ErrorKind::NotFound));
        }
        Ok(entries_of(
            subdir,
            names.files.keys(),
            names.directories.iter(),
        ))
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut state = self.machine.state.lock();
        let names = &state.disk.names;
        if !names.has_dir(parent_of(name)) {
            return Err(exact::error("create directory", name, ErrorKind::NotFound));
        }
        if names.files.contains_key(name) {
            return Err(exact::error(
                "create directory",
                name,
                ErrorKind::AlreadyExists,
            ));
        }
        if names.directories.contains(name) {
            state.plan.check_power("create directory", name)?;
            return self.machine.poison.check();
        }
        self.change_names(&mut state, Call::CreateDir, name, |_| {
            NameChange::CreateDir {
                name: name.to_owned(),
            }
        })
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut state = self.machine.state.lock();
        state.disk.lookup("remove", name)?;
        self.change_names(&mut state, Call::Remove, name, |_| NameChange::Remove {
            name: name.to_owned(),
        })
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.machine.state.lock();
        let inode = state.disk.lookup("rename", from)?;
        let names = &state.disk.names;
        if !names.has_dir(parent_of(to)) {
            return Err(exact::error("rename", to, ErrorKind::NotFound));
        }
        if names.directories.contains(to) {
            return Err(exact::error("rename", to, ErrorKind::IsADirectory));
        }
        let both = format!("{from} -> {to}");
        self.change_names(&mut state, Call::Rename, &both, |_| NameChange::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
            inode,
        })
    }

    fn exchange(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.machine.state.lock();
        let inodes = [
            state.disk.lookup("exchange names", from)?,
            state.disk.lookup("exchange names", to)?,
        ];
        let both = format!("{from} <-> {to}");
        self.change_names(&mut state, Call::Rename, &both, |_| NameChange::Exchange {
            files: [(from.to_owned(), inodes[1]), (to.to_owned(), inodes[0])],
        })
    }

    fn sync_dir(&self, subdir: &str) -> Result<()> {
        check_subdir(subdir)?;
        self.machine.poison.check()?;
        let mut state = self.machine.state.lock();
        if !state.disk.names.has_dir(subdir) {
            return Err(exact::error("open directory", subdir, ErrorKind::NotFound));
        }
        let name = Arc::from(subdir);
        let verdict = state.plan.enter(Call::SyncDir, true, &name, 0, 0)?;
        let result = verdict.into_io_result();
        if result.is_ok() {
            state.sync(subdir, Synced::Names(subdir.to_owned()));
        }
        self.machine.poison.after_sync(&name, result)
    }

    fn try_lock(&self) -> Result<LockGuard> {
        self.machine
            .state
            .lock()
            .plan
            .check_power("lock", crate::lock::LOCK_NAME)?;
        self.lock.try_lock()
    }

    fn try_lock_shared(&self) -> Result<LockGuard> {
        self.machine
            .state
            .lock()
            .plan
            .check_power("lock", crate::lock::LOCK_NAME)?;
        self.lock.try_lock_shared()
    }

    fn poisoned(&self) -> bool {
        self.machine.poison.is_set()
    }
}

/// The error of every call after the cut.
fn power_is_cut() -> io::Error {
    io::Error::other("the power is cut")
}
