//! LMDB's functions, as far as the adapter needs them, with what they ask for as types.
//!
//! A [`Reader`] is a transaction that is reset and renewed: its slot in the table of readers and its cursors are made once a session.
//! A [`Writer`] is one transaction. What they hand out is the page's own bytes, borrowed from them: nobody can write, or end the
//! transaction, while he looks at it.
//!
//! Not here: tables with several values for a key, and nested transactions.

use lmdb_master_sys as ffi;
use std::ffi::{CStr, CString, c_int, c_uint, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use vellum_workload::engine::Direction;

/// Rights of files that are made.
const MODE: ffi::mdb_mode_t = 0o600;

/// Numbers of the C library's for wrong use (a zero inside a path; no snapshot), and for no memory.
const WRONG_USE: Failure = Failure(22);
const NO_MEMORY: Failure = Failure(12);

/// What LMDB answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure(c_int);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: takes any number.
        let text = unsafe { ffi::mdb_strerror(self.0) };
        // SAFETY: a constant text that ends with a zero, or one of the C library's, copied at once.
        let text = unsafe { CStr::from_ptr(text) };
        f.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for Failure {}

pub(super) type Result<T> = std::result::Result<T, Failure>;

fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Failure(code)),
    }
}

/// Whether something was found.
fn found(code: c_int) -> Result<bool> {
    match code {
        ffi::MDB_NOTFOUND => Ok(false),
        code => check(code).map(|()| true),
    }
}

/// LMDB's version.
pub(super) fn version() -> String {
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: three numbers to be written.
    unsafe { ffi::mdb_version(&mut major, &mut minor, &mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// How an environment is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Addresses for the file: it never grows beyond.
    pub(super) map_bytes: usize,
    pub(super) tables: u32,
    pub(super) readers: u32,
    /// Commits are on disk when they return.
    pub(super) sync: bool,
    /// Pages are written in the map, and not by system calls.
    pub(super) write_map: bool,
}

/// An open environment. Tables are opened while nobody else uses it.
#[derive(Debug)]
pub(super) struct Environment(NonNull<ffi::MDB_env>);

// SAFETY: LMDB's environments may be used by several threads at a time; transactions are not tied to threads (`MDB_NOTLS`).
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Drop for Environment {
    fn drop(&mut self) {
        // SAFETY: transactions borrow the environment, so there are none any more.
        unsafe { ffi::mdb_env_close(self.0.as_ptr()) };
    }
}

/// A table of an environment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree(ffi::MDB_dbi);

impl Environment {
    /// Opens or creates it in a directory, which nobody else opens, shortens or writes.
    pub(super) fn open(directory: &Path, options: Options) -> Result<Self> {
        let path = CString::new(directory.as_os_str().as_bytes()).map_err(|_| WRONG_USE)?;
        let mut flags = ffi::MDB_NOTLS;
        if !options.sync {
            flags |= ffi::MDB_NOSYNC;
        }
        // Pages that are written by system calls are wholly written here: what they held before says nothing to anybody.
        flags |= match options.write_map {
            true => ffi::MDB_WRITEMAP,
            false => ffi::MDB_NOMEMINIT,
        };
        let mut made = ptr::null_mut();
        // SAFETY: a place for a pointer.
        check(unsafe { ffi::mdb_env_create(&mut made) })?;
        let environment = Self(NonNull::new(made).ok_or(NO_MEMORY)?);
        // SAFETY: an environment that is not open yet; where this fails, it is closed.
        check(unsafe { ffi::mdb_env_set_mapsize(made, options.map_bytes) })?;
        // SAFETY: as above.
        check(unsafe { ffi::mdb_env_set_maxdbs(made, options.tables) })?;
        // SAFETY: as above.
        check(unsafe { ffi::mdb_env_set_maxreaders(made, options.readers) })?;
        // SAFETY: as above; the path ends with a zero.
        check(unsafe { ffi::mdb_env_open(made, path.as_ptr(), flags, MODE) })?;
        Ok(environment)
    }

    /// Writes everything to the disk.
    pub(super) fn sync(&self) -> Result<()> {
        // SAFETY: an open environment.
        check(unsafe { ffi::mdb_env_sync(self.0.as_ptr(), 1) })
    }

    /// Opens or creates a table.
    pub(super) fn create(&mut self, name: &str) -> Result<Tree> {
        let name = CString::new(name).map_err(|_| WRONG_USE)?;
        let mut room = Room::default();
        let writer = Writer::begin(self, &mut room)?;
        let mut tree = 0;
        // SAFETY: an open transaction, alone in the environment; a name that ends with a zero.
        check(unsafe {
            ffi::mdb_dbi_open(
                writer.txn.as_ptr(),
                name.as_ptr(),
                ffi::MDB_CREATE,
                &mut tree,
            )
        })?;
        writer.commit(&mut room)?;
        Ok(Tree(tree))
    }

    /// Names of the tables that there are.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let mut reader = Reader::new(self, 1)?;
        reader.renew()?;
        let mut main = 0;
        // SAFETY: an open transaction; without a name it is the table of tables, which is always open.
        check(unsafe { ffi::mdb_dbi_open(reader.txn.as_ptr(), ptr::null(), 0, &mut main) })?;
        let mut names = Vec::new();
        reader.scan(Tree(main), 0, b"", Direction::Forward, &mut |name, _| {
            names.push(String::from_utf8_lossy(name).into_owned());
            true
        })?;
        Ok(names)
    }

    fn begin(&self, flags: c_uint) -> Result<NonNull<ffi::MDB_txn>> {
        let mut txn = ptr::null_mut();
        // SAFETY: an open environment, and a place for a pointer.
        check(unsafe { ffi::mdb_txn_begin(self.0.as_ptr(), ptr::null_mut(), flags, &mut txn) })?;
        NonNull::new(txn).ok_or(NO_MEMORY)
    }
}

/// Bytes for LMDB, which reads them only.
fn value(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val {
        mv_size: bytes.len(),
        mv_data: bytes.as_ptr().cast::<c_void>().cast_mut(),
    }
}

const NOTHING: ffi::MDB_val = ffi::MDB_val {
    mv_size: 0,
    mv_data: ptr::null_mut(),
};

/// The bytes that LMDB points to.
///
/// # Safety
/// They are there, and unchanged, for as long as `'b`.
unsafe fn bytes<'b>(value: &ffi::MDB_val) -> &'b [u8] {
    if value.mv_size == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(value.mv_data.cast(), value.mv_size) }
}

/// # Safety
/// The transaction is open, and neither ends nor writes for as long as `'b`.
unsafe fn get<'b>(txn: NonNull<ffi::MDB_txn>, tree: Tree, key: &[u8]) -> Result<Option<&'b [u8]>> {
    let (mut key, mut data) = (value(key), NOTHING);
    // SAFETY: an open transaction (the caller's) and a table of its environment; the key is read only.
    let code = unsafe { ffi::mdb_get(txn.as_ptr(), tree.0, &mut key, &mut data) };
    // SAFETY: what was found is the page's until the transaction writes or ends.
    Ok(found(code)?.then(|| unsafe { bytes(&data) }))
}

/// A cursor of a transaction.
#[derive(Clone, Copy, Debug)]
struct Cursor(NonNull<ffi::MDB_cursor>);

impl Cursor {
    /// # Safety
    /// The transaction is open. The cursor is closed before a writer ends, and used only while its transaction is open.
    unsafe fn open(txn: NonNull<ffi::MDB_txn>, tree: Tree) -> Result<Self> {
        let mut cursor = ptr::null_mut();
        // SAFETY: the caller's.
        check(unsafe { ffi::mdb_cursor_open(txn.as_ptr(), tree.0, &mut cursor) })?;
        NonNull::new(cursor).map(Self).ok_or(NO_MEMORY)
    }

    /// Moves; whether a row is there.
    ///
    /// # Safety
    /// Its transaction is open.
    unsafe fn to(
        self,
        operation: ffi::MDB_cursor_op,
        key: &mut ffi::MDB_val,
        data: &mut ffi::MDB_val,
    ) -> Result<bool> {
        // SAFETY: the caller's.
        found(unsafe { ffi::mdb_cursor_get(self.0.as_ptr(), key, data, operation) })
    }

    /// Hands rows on from a key, in either direction, until one is enough.
    ///
    /// # Safety
    /// Its transaction is open, and writes nothing meanwhile.
    unsafe fn scan(
        self,
        from: &[u8],
        direction: Direction,
        each: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let (mut key, mut data) = (value(from), NOTHING);
        let forward = direction == Direction::Forward;
        // LMDB has no empty key, nor takes one to look for.
        let first = match (forward, from.is_empty()) {
            (true, true) => ffi::MDB_FIRST,
            (_, false) => ffi::MDB_SET_RANGE,
            (false, true) => return Ok(()),
        };
        // SAFETY: the caller's.
        let mut there = unsafe { self.to(first, &mut key, &mut data)? };
        // SAFETY: the row's bytes are the page's while nobody writes.
        let is_beyond = || unsafe { bytes(&key) } != from;
        if !forward && (!there || is_beyond()) {
            let before = if there { ffi::MDB_PREV } else { ffi::MDB_LAST };
            // SAFETY: the caller's.
            there = unsafe { self.to(before, &mut key, &mut data)? };
        }
        let next = if forward {
            ffi::MDB_NEXT
        } else {
            ffi::MDB_PREV
        };
        while there {
            // SAFETY: the row's bytes are the page's while nobody writes.
            let row = unsafe { bytes(&key) };
            // SAFETY: as above.
            let held = unsafe { bytes(&data) };
            if !each(row, held) {
                break;
            }
            // SAFETY: the caller's.
            there = unsafe { self.to(next, &mut key, &mut data)? };
        }
        Ok(())
    }

    /// # Safety
    /// It is not used again.
    unsafe fn close(self) {
        // SAFETY: the caller's.
        unsafe { ffi::mdb_cursor_close(self.0.as_ptr()) };
    }
}

/// A transaction that reads, over and over.
#[derive(Debug)]
pub(super) struct Reader<'e> {
    txn: NonNull<ffi::MDB_txn>,
    /// By table, those that were needed.
    cursors: Vec<Option<Cursor>>,
    is_open: bool,
    environment: PhantomData<&'e Environment>,
}

impl<'e> Reader<'e> {
    /// One that is not open yet, for so many tables.
    pub(super) fn new(environment: &'e Environment, tables: usize) -> Result<Self> {
        let txn = environment.begin(ffi::MDB_RDONLY)?;
        let mut reader = Self {
            txn,
            cursors: vec![None; tables],
            is_open: true,
            environment: PhantomData,
        };
        reader.reset();
        Ok(reader)
    }

    /// Takes a snapshot.
    pub(super) fn renew(&mut self) -> Result<()> {
        debug_assert!(!self.is_open, "one snapshot at a time");
        // SAFETY: a reader's transaction that was reset.
        check(unsafe { ffi::mdb_txn_renew(self.txn.as_ptr()) })?;
        self.is_open = true;
        Ok(())
    }

    /// Lets the snapshot go.
    pub(super) fn reset(&mut self) {
        // SAFETY: a reader's transaction; what it handed out borrows this.
        unsafe { ffi::mdb_txn_reset(self.txn.as_ptr()) };
        self.is_open = false;
    }

    /// The value of a key.
    #[inline]
    pub(super) fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<&[u8]>> {
        if !self.is_open {
            return Err(WRONG_USE);
        }
        // SAFETY: it is open, and is reset by whoever borrows all of this.
        unsafe { get(self.txn, tree, key) }
    }

    /// Hands rows on; `at` is the table's position.
    pub(super) fn scan(
        &mut self,
        tree: Tree,
        at: usize,
        from: &[u8],
        direction: Direction,
        each: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        if !self.is_open {
            return Err(WRONG_USE);
        }
        let cursor = match self.cursors[at] {
            Some(cursor) => {
                // SAFETY: both are a reader's, and the transaction is open.
                check(unsafe { ffi::mdb_cursor_renew(self.txn.as_ptr(), cursor.0.as_ptr()) })?;
                cursor
            }
            // SAFETY: it is open; the cursor goes with this, and is renewed before it is used in another snapshot.
            None => *self.cursors[at].insert(unsafe { Cursor::open(self.txn, tree)? }),
        };
        // SAFETY: it is open, and writes nothing.
        unsafe { cursor.scan(from, direction, each) }
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        for cursor in self.cursors.drain(..).flatten() {
            // SAFETY: nobody has it any more.
            unsafe { cursor.close() };
        }
        // SAFETY: nobody has it any more.
        unsafe { ffi::mdb_txn_abort(self.txn.as_ptr()) };
    }
}

/// How a row is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Instead of one that is there.
    Over,
    /// Where none is.
    New,
    /// Above all others.
    Behind,
}

/// Room for a writer's cursors, which goes from one to the next, so that none allocates it.
#[derive(Debug, Default)]
pub(super) struct Room(Vec<Option<Cursor>>);

/// A transaction that writes.
#[derive(Debug)]
pub(super) struct Writer<'e> {
    txn: NonNull<ffi::MDB_txn>,
    /// By table, those that were needed.
    cursors: Vec<Option<Cursor>>,
    environment: PhantomData<&'e Environment>,
}

impl<'e> Writer<'e> {
    /// Begins, when no other writer is there any more.
    pub(super) fn begin(environment: &'e Environment, room: &mut Room) -> Result<Self> {
        Ok(Self {
            txn: environment.begin(0)?,
            cursors: std::mem::take(&mut room.0),
            environment: PhantomData,
        })
    }

    /// Commits, and leaves its room behind.
    pub(super) fn commit(mut self, room: &mut Room) -> Result<()> {
        self.close_cursors();
        room.0 = std::mem::take(&mut self.cursors);
        let txn = self.txn;
        std::mem::forget(self);
        // SAFETY: an open transaction without cursors, over now whatever happens.
        check(unsafe { ffi::mdb_txn_commit(txn.as_ptr()) })
    }

    fn close_cursors(&mut self) {
        for cursor in self.cursors.drain(..).flatten() {
            // SAFETY: nobody has it any more.
            unsafe { cursor.close() };
        }
    }

    #[inline]
    pub(super) fn get(&self, tree: Tree, key: &[u8]) -> Result<Option<&[u8]>> {
        // SAFETY: it is open; whoever writes or ends it borrows all of this.
        unsafe { get(self.txn, tree, key) }
    }

    /// Puts a row; false if one of its key is there that was to stay.
    #[inline]
    pub(super) fn put(&mut self, tree: Tree, way: Way, key: &[u8], data: &[u8]) -> Result<bool> {
        let flags = match way {
            Way::Over => 0,
            Way::New => ffi::MDB_NOOVERWRITE,
            Way::Behind => ffi::MDB_APPEND,
        };
        let (mut key, mut data) = (value(key), value(data));
        // SAFETY: an open transaction; nobody has a row of it. Key and value are read only, and are none of the file's bytes, which `self` borrows.
        match unsafe { ffi::mdb_put(self.txn.as_ptr(), tree.0, &mut key, &mut data, flags) } {
            ffi::MDB_KEYEXIST if way == Way::New => Ok(false),
            code => check(code).map(|()| true),
        }
    }

    /// Changes the value of a key by one search, through `copy`; false if it is not there. `at` is the table's position.
    pub(super) fn update(
        &mut self,
        tree: Tree,
        at: usize,
        key: &[u8],
        copy: &mut Vec<u8>,
        change: impl FnOnce(&mut [u8]),
    ) -> Result<bool> {
        let cursor = self.cursor(tree, at)?;
        let (mut key, mut data) = (value(key), NOTHING);
        // SAFETY: its transaction is open.
        if !unsafe { cursor.to(ffi::MDB_SET, &mut key, &mut data)? } {
            return Ok(false);
        }
        copy.clear();
        // SAFETY: nobody writes before it is copied.
        copy.extend_from_slice(unsafe { bytes(&data) });
        change(copy);
        let mut data = value(copy);
        let (cursor, flags) = (cursor.0.as_ptr(), ffi::MDB_CURRENT);
        // SAFETY: the cursor stands at the key; key and value are no bytes of the file's.
        check(unsafe { ffi::mdb_cursor_put(cursor, &mut key, &mut data, flags) })?;
        Ok(true)
    }

    /// Deletes a row; whether it was there.
    pub(super) fn delete(&mut self, tree: Tree, key: &[u8]) -> Result<bool> {
        let mut key = value(key);
        // SAFETY: an open transaction; nobody has a row of it.
        found(unsafe { ffi::mdb_del(self.txn.as_ptr(), tree.0, &mut key, ptr::null_mut()) })
    }

    /// Hands rows on; `at` is the table's position.
    pub(super) fn scan(
        &mut self,
        tree: Tree,
        at: usize,
        from: &[u8],
        direction: Direction,
        each: &mut impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let cursor = self.cursor(tree, at)?;
        // SAFETY: its transaction is open, and borrowed meanwhile.
        unsafe { cursor.scan(from, direction, each) }
    }

    fn cursor(&mut self, tree: Tree, at: usize) -> Result<Cursor> {
        if self.cursors.len() <= at {
            self.cursors.resize(at + 1, None);
        }
        match self.cursors[at] {
            Some(cursor) => Ok(cursor),
            // SAFETY: it is open, and closes its cursors before it ends.
            None => Ok(*self.cursors[at].insert(unsafe { Cursor::open(self.txn, tree)? })),
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.close_cursors();
        // SAFETY: an open transaction without cursors.
        unsafe { ffi::mdb_txn_abort(self.txn.as_ptr()) };
    }
}
