//! Files in memory, for tests that want files and nothing else. Nothing is ever lost or refused.

use crate::directory::{check_name, check_subdir};
use crate::lock::MemoryLock;
use crate::{
    Directory, Entry, EntryKind, File, LockGuard, OpenOptions, exact, is_aligned, parent_of,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::sync::Arc;
use vellum_base::Result;
use vellum_sync::{Mutex, RwLock};

type Content = Arc<RwLock<Vec<u8>>>;

/// A directory in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryDirectory {
    names: Arc<Mutex<Names>>,
    lock: Arc<MemoryLock>,
}

#[derive(Debug, Default)]
struct Names {
    files: BTreeMap<String, Content>,
    directories: BTreeSet<String>,
}

impl Names {
    fn has_dir(&self, name: &str) -> bool {
        name.is_empty() || self.directories.contains(name)
    }
}

impl MemoryDirectory {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Directory for MemoryDirectory {
    fn open(&self, name: &str, options: OpenOptions) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let mut names = self.names.lock();
        let found = names.files.get(name).cloned();
        let content = match found {
            Some(_) if options.create_new => {
                return Err(exact::error("create", name, ErrorKind::AlreadyExists));
            }
            Some(content) => content,
            None if options.creates() && names.has_dir(parent_of(name)) => {
                let content = Content::default();
                names.files.insert(name.to_owned(), content.clone());
                content
            }
            None => return Err(exact::error("open", name, ErrorKind::NotFound)),
        };
        Ok(Arc::new(MemoryFile {
            name: Arc::from(name),
            content,
            options,
        }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        let names = self.names.lock();
        Ok(names.files.contains_key(name) || names.directories.contains(name))
    }

    fn entries(&self, subdir: &str) -> Result<Vec<Entry>> {
        check_subdir(subdir)?;
        let names = self.names.lock();
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
        let mut names = self.names.lock();
        if !names.has_dir(parent_of(name)) {
            return Err(exact::error("create directory", name, ErrorKind::NotFound));
        }
        names.directories.insert(name.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let removed = self.names.lock().files.remove(name);
        removed
            .map(drop)
            .ok_or_else(|| exact::error("remove", name, ErrorKind::NotFound))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut names = self.names.lock();
        if !names.has_dir(parent_of(to)) {
            return Err(exact::error("rename", to, ErrorKind::NotFound));
        }
        let content = names
            .files
            .remove(from)
            .ok_or_else(|| exact::error("rename", from, ErrorKind::NotFound))?;
        names.files.insert(to.to_owned(), content);
        Ok(())
    }

    fn sync_dir(&self, subdir: &str) -> Result<()> {
        check_subdir(subdir)
    }

    fn try_lock(&self) -> Result<LockGuard> {
        self.lock.try_lock()
    }

    fn try_lock_shared(&self) -> Result<LockGuard> {
        self.lock.try_lock_shared()
    }

    fn poisoned(&self) -> bool {
        false
    }
}

/// What stands in a subdirectory, of all files and directories.
pub(crate) fn entries_of<'a>(
    subdir: &str,
    files: impl Iterator<Item = &'a String>,
    directories: impl Iterator<Item = &'a String>,
) -> Vec<Entry> {
    let files = files.map(|name| (name, EntryKind::File));
    let directories = directories.map(|name| (name, EntryKind::Directory));
    let mut entries: Vec<Entry> = files
        .chain(directories)
        .filter(|(name, _)| parent_of(name) == subdir)
        .map(|(name, kind)| Entry {
            name: last_part(name).to_owned(),
            kind,
        })
        .collect();
    entries.sort_unstable();
    entries
}

/// The part of a name behind the last slash.
pub(crate) fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

#[derive(Debug)]
struct MemoryFile {
    name: Arc<str>,
    content: Content,
    options: OpenOptions,
}

impl MemoryFile {
    fn check_writable(&self, action: &'static str) -> Result<()> {
        if self.options.read_only {
            return Err(exact::error(
                action,
                &self.name,
                ErrorKind::PermissionDenied,
            ));
        }
        Ok(())
    }

    fn too_large(&self, action: &'static str) -> vellum_base::StorageError {
        exact::error(action, &self.name, ErrorKind::FileTooLarge)
    }

    /// End of a range as an index, if memory could ever be that large.
    fn end_of(&self, action: &'static str, offset: u64, length: usize) -> Result<usize> {
        usize::try_from(offset)
            .ok()
            .and_then(|start| start.checked_add(length))
            .filter(|&end| end <= isize::MAX as usize)
            .ok_or_else(|| self.too_large(action))
    }
}

impl File for MemoryFile {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> Result<()> {
        assert!(
            !self.options.direct || is_aligned(out, offset),
            "direct read is aligned"
        );
        let content = self.content.read();
        let end = self.end_of("read", offset, out.len())?;
        let bytes = content
            .get(end - out.len()..end)
            .ok_or_else(|| exact::error("read", &self.name, ErrorKind::UnexpectedEof))?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        assert!(
            !self.options.direct || is_aligned(bytes, offset),
            "direct write is aligned"
        );
        self.check_writable("write")?;
        let end = self.end_of("write", offset, bytes.len())?;
        let mut content = self.content.write();
        if content.len() < end && !bytes.is_empty() {
            content.resize(end, 0);
        }
        if let Some(place) = content.get_mut(end - bytes.len()..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.read().len() as u64)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.check_writable("set length")?;
        let length = self.end_of("set length", length, 0)?;
        self.content.write().resize(length, 0);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> Result<()> {
        self.check_writable("allocate")?;
        if length == 0 {
            return Ok(());
        }
        let length = usize::try_from(length).map_err(|_| self.too_large("allocate"))?;
        let end = self.end_of("allocate", offset, length)?;
        let mut content = self.content.write();
        if content.len() < end {
            content.resize(end, 0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_directory_keeps_the_contract_of_directories() {
        crate::contract::check(&MemoryDirectory::new());
    }
}
