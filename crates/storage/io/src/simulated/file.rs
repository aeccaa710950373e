//! One open file of the simulated disk.

use super::disk::{Change, InodeId};
use super::fault::{Call, FaultError, Verdict};
use super::lie::Synced;
use super::{Machine, State};
use crate::{File, OpenOptions, exact, is_aligned};
use std::io::ErrorKind;
use std::sync::Arc;
use vellum_base::{Result, StorageError};

/// Length that no file may exceed, as file systems have one.
const LENGTH_MAX: u64 = 1 << 44;

#[derive(Debug)]
pub(super) struct SimulatedFile {
    pub(super) name: Arc<str>,
    pub(super) machine: Arc<Machine>,
    pub(super) inode: InodeId,
    pub(super) options: OpenOptions,
}

impl SimulatedFile {
    fn check_change(&self, call: Call, offset: u64, length: u64) -> Result<()> {
        if self.options.read_only {
            return Err(exact::error(
                call.action(),
                &self.name,
                ErrorKind::PermissionDenied,
            ));
        }
        if offset
            .checked_add(length)
            .is_none_or(|end| end > LENGTH_MAX)
        {
            return Err(exact::error(
                call.action(),
                &self.name,
                ErrorKind::FileTooLarge,
            ));
        }
        self.machine.poison.check()
    }

    fn assert_aligned(&self, bytes: &[u8], offset: u64) {
        assert!(
            !self.options.direct || is_aligned(bytes, offset),
            "direct I/O on {}: offset {offset}, {} bytes at {:p}",
            self.name,
            bytes.len(),
            bytes.as_ptr()
        );
    }

    fn change(&self, state: &mut State, change: Change) {
        state.before_change();
        state.disk.change(self.inode, change);
    }

    fn write_front(&self, state: &mut State, bytes: &[u8], offset: u64) {
        if !bytes.is_empty() {
            self.change(
                state,
                Change::Write {
                    offset,
                    bytes: Arc::from(bytes),
                },
            );
        }
    }

    fn out_of_space(&self) -> StorageError {
        StorageError::OutOfSpace {
            file: self.name.clone(),
        }
    }
}

impl File for SimulatedFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        self.assert_aligned(out, offset);
        let mut state = self.machine.state.lock();
        let State { disk, plan, .. } = &mut *state;
        let verdict = plan.enter(Call::Read, false, &self.name, offset, out.len() as u64)?;
        let wanted = match verdict {
            Verdict::Fail(FaultError::Short) => out.len() / 2,
            Verdict::Fail(_) => 0,
            Verdict::Go | Verdict::CutNow => out.len(),
        };
        let read = disk
            .inode(self.inode)
            .current
            .read(&mut out[..wanted], offset);
        verdict.into_result(Call::Read, &self.name)?;
        if read < out.len() {
            return Err(exact::error("read", &self.name, ErrorKind::UnexpectedEof));
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.assert_aligned(bytes, offset);
        let length = bytes.len() as u64;
        self.check_change(Call::Write, offset, length)?;
        let mut state = self.machine.state.lock();
        let verdict = state
            .plan
            .enter(Call::Write, true, &self.name, offset, length)?;
        match verdict {
            Verdict::Go | Verdict::CutNow => {
                // The call itself is counted by now.
                let call = state.plan.mutating_calls - 1;
                let Some(offset) = state.lies.write(call, offset) else {
                    return verdict.into_result(Call::Write, &self.name);
                };
                // Bounded by the length of `bytes`.
                let fitting = state.disk.fitting(self.inode, offset, length) as usize;
                self.write_front(&mut state, &bytes[..fitting], offset);
                if verdict == Verdict::Go && fitting < bytes.len() {
                    return Err(self.out_of_space());
                }
            }
            Verdict::Fail(FaultError::Short) => {
                self.write_front(&mut state, &bytes[..bytes.len() / 2], offset);
            }
            Verdict::Fail(_) => {}
        }
        verdict.into_result(Call::Write, &self.name)
    }

    fn sync_data(&self) -> Result<()> {
        self.machine.poison.check()?;
        let mut state = self.machine.state.lock();
        let verdict = state.plan.enter(Call::Sync, true, &self.name, 0, 0)?;
        let result = verdict.into_io_result();
        if result.is_ok() {
            state.sync(&self.name, Synced::File(self.inode));
        }
        self.machine.poison.after_sync(&self.name, result)
    }

    fn len(&self) -> Result<u64> {
        let state = self.machine.state.lock();
        state.plan.check_power("stat", &self.name)?;
        Ok(state.disk.inode(self.inode).current.length())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.check_change(Call::SetLen, length, 0)?;
        let mut state = self.machine.state.lock();
        let verdict = state
            .plan
            .enter(Call::SetLen, true, &self.name, length, 0)?;
        if matches!(verdict, Verdict::Go | Verdict::CutNow) {
            self.change(&mut state, Change::SetLen { length });
        }
        verdict.into_result(Call::SetLen, &self.name)
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<()> {
        self.check_change(Call::Allocate, offset, length)?;
        if length == 0 {
            return Ok(());
        }
        let mut state = self.machine.state.lock();
        let verdict = state
            .plan
            .enter(Call::Allocate, true, &self.name, offset, length)?;
        if matches!(verdict, Verdict::Go | Verdict::CutNow) {
            if state.disk.fitting(self.inode, offset, length) < length {
                verdict.into_result(Call::Allocate, &self.name)?;
                return Err(self.out_of_space());
            }
            self.change(&mut state, Change::Allocate { offset, length });
        }
        verdict.into_result(Call::Allocate, &self.name)
    }

    fn is_direct(&self) -> bool {
        self.options.direct
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        self.machine.state.lock().disk.close_handle(self.inode);
    }
}
