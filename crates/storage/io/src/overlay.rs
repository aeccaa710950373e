//! A directory over another one: reads come from below, writes stay in memory and vanish with it.
//!
//! What it is for: looking at a database that may need a recovery, without touching it.
//!
//! Layout: a file is the file below up to a length, with blocks of 4 KiB laid over it. A block of zeroes
//! behind that length takes no memory.
//!
//! Invariants:
//! - V1 The directory below is opened for reading only, and never written.
//! - V2 Blocks take at most the limit; a write that would exceed it is refused with `OutOfSpace`
//!   and may have been done in part, as on a full disk.
//!
//! Concurrency: a mutex over the names, a latch a file. The directory below must not change
//! meanwhile: the lock that [`Directory::try_lock`] takes there keeps openers away.
//!
//! Not here: durability. A sync does nothing.

use crate::directory::{check_name, check_subdir};
use crate::lock::MemoryLock;
use crate::memory::{entries_of, last_part};
use crate::{Directory, Entry, File, LockGuard, OpenOptions, exact, is_aligned, parent_of};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use vellum_base::{Result, StorageError};
use vellum_sync::atomic::{AtomicU64, Ordering};
use vellum_sync::{Mutex, RwLock};

const BLOCK: u64 = 4096;

/// A directory whose changes stay in memory. Clones share it.
#[derive(Clone, Debug)]
pub struct OverlayDirectory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    below: Arc<dyn Directory>,
    names: Mutex<Names>,
    memory: Arc<Memory>,
    lock: Arc<MemoryLock>,
}

#[derive(Debug, Default)]
struct Names {
    /// What differs from below, or was opened; `None`: removed.
    files: BTreeMap<String, Option<Arc<Node>>>,
    directories: BTreeSet<String>,
}

/// What all blocks together take.
#[derive(Debug)]
struct Memory {
    used: AtomicU64,
    limit: u64,
}

impl Memory {
    fn take_block(&self, file: &Arc<str>) -> Result<()> {
        // Relaxed: a count that orders nothing.
        let before = self.used.fetch_add(BLOCK, Ordering::Relaxed);
        if before + BLOCK > self.limit {
            self.used.fetch_sub(BLOCK, Ordering::Relaxed);
            return Err(StorageError::OutOfSpace { file: file.clone() });
        }
        Ok(())
    }

    fn give_blocks(&self, count: usize) {
        self.used.fetch_sub(count as u64 * BLOCK, Ordering::Relaxed);
    }
}

/// A file, whatever its name is now.
#[derive(Debug)]
struct Node {
    below: Option<Arc<dyn File>>,
    content: RwLock<Content>,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Content {
    length: u64,
    /// Bytes of the file below that still show.
    below: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.memory.give_blocks(self.content.read().blocks.len());
    }
}

impl OverlayDirectory {
    /// A view of `below` whose changes take at most `memory_bytes` of memory.
    pub fn new(below: Arc<dyn Directory>, memory_bytes: u64) -> Self {
        let memory = Arc::new(Memory {
            used: AtomicU64::new(0),
            limit: memory_bytes,
        });
        let names = Mutex::new(Names::default());
        Self {
            shared: Arc::new(Shared {
                below,
                names,
                memory,
                lock: Arc::default(),
            }),
        }
    }

    /// Bytes of memory that changes take now.
    pub fn memory_bytes(&self) -> u64 {
        self.shared.memory.used.load(Ordering::Relaxed)
    }

    fn node(&self, below: Option<Arc<dyn File>>) -> Result<Arc<Node>> {
        let length = below.as_ref().map_or(Ok(0), |file| file.len())?;
        let content = RwLock::new(Content {
            length,
            below: length,
            blocks: BTreeMap::new(),
        });
        let memory = self.shared.memory.clone();
        Ok(Arc::new(Node {
            below,
            content,
            memory,
        }))
    }

    /// The file of a name, taken note of.
    fn find(&self, names: &mut Names, name: &str) -> Result<Option<Arc<Node>>> {
        if let Some(known) = names.files.get(name) {
            return Ok(known.clone());
        }
        let below = match self.shared.below.open(name, OpenOptions::read_only()) {
            Ok(file) => file,
            Err(StorageError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let node = self.node(Some(below))?;
        names.files.insert(name.to_owned(), Some(node.clone()));
        Ok(Some(node))
    }

    fn has_dir(&self, names: &Names, name: &str) -> Result<bool> {
        Ok(
            name.is_empty()
                || names.directories.contains(name)
                || self.shared.below.exists(name)?,
        )
    }
}

impl Directory for OverlayDirectory {
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let mut names = self.shared.names.lock();
        let node = match self.find(&mut names, name)? {
            Some(_) if options.create_new => {
                return Err(exact::error("create", name, ErrorKind::AlreadyExists));
            }
            Some(node) => node,
            None if options.creates() && self.has_dir(&names, parent_of(name))? => {
                let node = self.node(None)?;
                names.files.insert(name.to_owned(), Some(node.clone()));
                node
            }
            None => return Err(exact::error("open", name, ErrorKind::NotFound)),
        };
        Ok(Arc::new(OverlayFile {
            name: Arc::from(name),
            node,
            options,
        }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        let names = self.shared.names.lock();
        match names.files.get(name) {
            Some(known) => Ok(known.is_some()),
            None => self.has_dir(&names, name),
        }
    }

    fn list(&self, subdir: &str) -> Result<Vec<String>> {
        check_subdir(subdir)?;
        let names = self.shared.names.lock();
        let below = subdir.is_empty() || self.shared.below.exists(subdir)?;
        if !below && !names.directories.contains(subdir) {
            return Err(exact::error("list", subdir, ErrorKind::NotFound));
        }
        let mut found = BTreeSet::new();
        if below {
            found.extend(self.shared.below.list(subdir)?);
        }
        for (name, node) in names
            .files
            .iter()
            .filter(|(name, _)| parent_of(name) == subdir)
        {
            if node.is_some() {
                found.insert(last_part(name).to_owned());
            } else {
                found.remove(last_part(name));
            }
        }
        Ok(found.into_iter().collect())
    }

    fn entries(&self, subdir: &str) -> Result<Vec<Entry>> {
        check_subdir(subdir)?;
        let names = self.shared.names.lock();
        let below = subdir.is_empty() || self.shared.below.exists(subdir)?;
        if !below && !names.directories.contains(subdir) {
            return Err(exact::error("list", subdir, ErrorKind::NotFound));
        }
        let mut found = if below {
            self.shared.below.entries(subdir)?
        } else {
            Vec::new()
        };
        let changed = |entry: &Entry| {
            let full = match subdir {
                "" => entry.name.clone(),
                subdir => format!("{subdir}/{}", entry.name),
            };
            names.files.contains_key(&full) || names.directories.contains(&full)
        };
        found.retain(|entry| !changed(entry));
        let files = names.files.iter().filter(|(_, node)| node.is_some());
        found.extend(entries_of(
            subdir,
            files.map(|(name, _)| name),
            names.directories.iter(),
        ));
        found.sort_unstable();
        Ok(found)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut names = self.shared.names.lock();
        if !self.has_dir(&names, parent_of(name))? {
            return Err(exact::error("create directory", name, ErrorKind::NotFound));
        }
        names.directories.insert(name.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut names = self.shared.names.lock();
        match self.find(&mut names, name)? {
            Some(_) => {
                names.files.insert(name.to_owned(), None);
                Ok(())
            }
            None => Err(exact::error("remove", name, ErrorKind::NotFound)),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut names = self.shared.names.lock();
        if !self.has_dir(&names, parent_of(to))? {
            return Err(exact::error("rename", to, ErrorKind::NotFound));
        }
        let Some(node) = self.find(&mut names, from)? else {
            return Err(exact::error("rename", from, ErrorKind::NotFound));
        };
        names.files.insert(from.to_owned(), None);
        names.files.insert(to.to_owned(), Some(node));
        Ok(())
    }

    fn sync_dir(&self, subdir: &str) -> Result<()> {
        check_subdir(subdir)
    }

    fn try_lock(&self) -> Result<LockGuard> {
        let below = self.shared.below.try_lock_shared()?;
        Ok(self.shared.lock.try_lock()?.with(below))
    }

    fn holds(&self, subdir: &str, path: &Path) -> bool {
        self.shared.below.holds(subdir, path)
    }

    fn try_lock_shared(&self) -> Result<LockGuard> {
        let below = self.shared.below.try_lock_shared()?;
        Ok(self.shared.lock.try_lock_shared()?.with(below))
    }

    fn poisoned(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct OverlayFile {
    name: Arc<str>,
    node: Arc<Node>,
    options: OpenOptions,
}

impl OverlayFile {
    fn error(&self, action: &'static str, kind: ErrorKind) -> StorageError {
        exact::error(action, &self.name, kind)
    }

    fn check_writable(&self, action: &'static str) -> Result<()> {
        if self.options.read_only {
            return Err(self.error(action, ErrorKind::PermissionDenied));
        }
        Ok(())
    }

    fn end_of(&self, action: &'static str, offset: u64, length: u64) -> Result<u64> {
        let end = offset.checked_add(length);
        end.ok_or_else(|| self.error(action, ErrorKind::FileTooLarge))
    }

    /// Reads what shows of the file below; zeroes elsewhere.
    fn read_below(&self, content: &Content, out: &mut [u8], offset: u64) -> Result<()> {
        let shown = content.below.saturating_sub(offset).min(out.len() as u64);
        let (head, tail) = out.split_at_mut(usize::try_from(shown).unwrap_or(0));
        tail.fill(0);
        match &self.node.below {
            Some(below) if !head.is_empty() => below.read_at(head, offset),
            _ => Ok(()),
        }
    }

    /// Writes into one block.
    fn write_block(
        &self,
        content: &mut Content,
        at: u64,
        inside: usize,
        bytes: &[u8],
    ) -> Result<()> {
        if let Some(block) = content.blocks.get_mut(&at) {
            block[inside..inside + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        if at * BLOCK >= content.below && bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        self.node.memory.take_block(&self.name)?;
        let mut block = vec![0; BLOCK as usize].into_boxed_slice();
        let filled = if bytes.len() as u64 == BLOCK {
            Ok(())
        } else {
            self.read_below(content, &mut block, at * BLOCK)
        };
        if let Err(error) = filled {
            self.node.memory.give_blocks(1);
            return Err(error);
        }
        block[inside..inside + bytes.len()].copy_from_slice(bytes);
        content.blocks.insert(at, block);
        Ok(())
    }
}

impl File for OverlayFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        assert!(
            !self.options.direct || is_aligned(out, offset),
            "direct read is aligned"
        );
        let end = self.end_of("read", offset, out.len() as u64)?;
        let content = self.node.content.read();
        if end > content.length {
            return Err(self.error("read", ErrorKind::UnexpectedEof));
        }
        let blocks = content.blocks.range(offset / BLOCK..end.div_ceil(BLOCK));
        let mut at = offset;
        for (number, block) in blocks {
            let start = (number * BLOCK).max(offset);
            let stop = ((number + 1) * BLOCK).min(end);
            self.read_below(
                &content,
                &mut out[(at - offset) as usize..(start - offset) as usize],
                at,
            )?;
            out[(start - offset) as usize..(stop - offset) as usize].copy_from_slice(
                &block[(start - number * BLOCK) as usize..(stop - number * BLOCK) as usize],
            );
            at = stop;
        }
        self.read_below(&content, &mut out[(at - offset) as usize..], at)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        assert!(
            !self.options.direct || is_aligned(bytes, offset),
            "direct write is aligned"
        );
        self.check_writable("write")?;
        let end = self.end_of("write", offset, bytes.len() as u64)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let mut content = self.node.content.write();
        let mut at = offset;
        while at < end {
            let (block, inside) = (at / BLOCK, at % BLOCK);
            let stop = end.min((block + 1) * BLOCK);
            let part = &bytes[(at - offset) as usize..(stop - offset) as usize];
            self.write_block(&mut content, block, inside as usize, part)?;
            at = stop;
            content.length = content.length.max(stop);
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.node.content.read().length)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.check_writable("set length")?;
        let mut content = self.node.content.write();
        content.length = length;
        content.below = content.below.min(length);
        let cut = content.blocks.split_off(&length.div_ceil(BLOCK));
        self.node.memory.give_blocks(cut.len());
        if !length.is_multiple_of(BLOCK)
            && let Some(block) = content.blocks.get_mut(&(length / BLOCK))
        {
            block[(length % BLOCK) as usize..].fill(0);
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<()> {
        self.check_writable("allocate")?;
        if length > 0 {
            let end = self.end_of("allocate", offset, length)?;
            let mut content = self.node.content.write();
            content.length = content.length.max(end);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDirectory;
    use vellum_base::random::Random;

    fn over(below: &MemoryDirectory) -> OverlayDirectory {
        OverlayDirectory::new(Arc::new(below.clone()), 1 << 20)
    }

    #[test]
    fn overlay_keeps_the_contract_of_directories() {
        crate::contract::check(&over(&MemoryDirectory::new()));
    }

    #[test]
    fn what_is_changed_above_stays_as_it_was_below() {
        let below = MemoryDirectory::new();
        below.create_dir("log").unwrap();
        for name in ["a", "b", "log/1"] {
            below.write_atomic(name, &[7; 5000]).unwrap();
        }
        let above = over(&below);
        let file = above.open("a", OpenOptions::existing()).unwrap();
        file.write_at(b"changed", 4093).unwrap();
        file.set_len(4098).unwrap();
        file.set_len(9000).unwrap();
        above.remove("b").unwrap();
        above.rename("log/1", "log/2").unwrap();
        above.open("log/3", OpenOptions::create_new()).unwrap();
        let mut expected = vec![7; 9000];
        expected[4093..4098].copy_from_slice(b"chang");
        expected[4098..].fill(0);
        assert_eq!(above.read_all("a").unwrap(), expected);
        assert_eq!(above.list("").unwrap(), ["a"]);
        assert_eq!(above.list("log").unwrap(), ["2", "3"]);
        assert!(!above.exists("b").unwrap() && !above.exists("log/1").unwrap());
        assert_eq!(below.list("").unwrap(), ["a", "b"]);
        assert_eq!(below.list("log").unwrap(), ["1"]);
        for name in ["a", "b", "log/1"] {
            assert_eq!(below.read_all(name).unwrap(), [7; 5000]);
        }
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let above = OverlayDirectory::new(Arc::new(MemoryDirectory::new()), 3 * BLOCK);
        let file = above.open("a", OpenOptions::create()).unwrap();
        file.write_at(&[0; 1 << 20], 0).unwrap();
        assert_eq!(above.memory_bytes(), 0, "zeroes take nothing");
        file.write_at(&[1; 3 * BLOCK as usize], 0).unwrap();
        assert!(matches!(
            file.write_at(b"x", 5 * BLOCK),
            Err(StorageError::OutOfSpace { .. })
        ));
        file.set_len(BLOCK).unwrap();
        file.write_at(b"x", 5 * BLOCK).unwrap();
        drop(file);
        above.remove("a").unwrap();
        assert_eq!(above.memory_bytes(), 0);
    }

    #[test]
    fn prop_reads_agree_with_a_plain_file_after_random_changes() {
        let seed = crate::test_seed();
        let mut random = Random::new(seed);
        let (below, plain) = (MemoryDirectory::new(), MemoryDirectory::new());
        let mut bytes = vec![0; 30_000];
        bytes
            .iter_mut()
            .for_each(|byte| *byte = random.below(256) as u8);
        for directory in [&below, &plain] {
            directory.write_atomic("f", &bytes).unwrap();
        }
        let above = over(&below);
        let files = [
            above.open("f", OpenOptions::existing()).unwrap(),
            plain.open("f", OpenOptions::existing()).unwrap(),
        ];
        for step in 0..400 {
            let (offset, length) = (random.below(40_000), random.below(9000));
            let kind = random.below(8);
            for file in &files {
                match kind {
                    0 => file.set_len(offset).unwrap(),
                    1 => file.allocate(offset, length).unwrap(),
                    2 => file.write_at(&vec![0; length as usize], offset).unwrap(),
                    _ => file
                        .write_at(&vec![step as u8; length as usize], offset)
                        .unwrap(),
                }
            }
            assert_eq!(
                above.read_all("f").unwrap(),
                plain.read_all("f").unwrap(),
                "seed {seed}, step {step}"
            );
        }
        assert_eq!(below.read_all("f").unwrap(), bytes);
    }
}
