//! WiredTiger's handles as types: a connection, and clients with their cursors.
//!
//! Concurrency: a connection is everybody's, a client (WiredTiger's session, with its cursors) is used by one thread at a time: it can be
//! neither shared nor sent.
//! Not here: what an engine is to the bench ([`super`]), the calls themselves (`calls.c`).

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::ptr::{self, NonNull};

/// What stands for a transaction that lost a conflict.
const ROLLBACK: c_int = -31_800;
const DUPLICATE_KEY: c_int = -31_801;
const NOT_FOUND: c_int = -31_803;
/// Errors of its own that every version has a text for.
const NAMED: [RangeInclusive<c_int>; 2] = [-31_804..=ROLLBACK, -31_809..=-31_806];
/// The system's: somebody else has it open.
const BUSY: c_int = 16;
/// The system's.
const INVALID: c_int = 22;

#[repr(C)]
struct RawConnection {
    opaque: [u8; 0],
}

#[repr(C)]
struct RawSession {
    opaque: [u8; 0],
}

#[repr(C)]
struct RawCursor {
    opaque: [u8; 0],
}

/// As `calls.c` has it.
#[repr(C)]
struct RawRow {
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
}

impl RawRow {
    const NONE: Self = Self {
        key: ptr::null(),
        key_bytes: 0,
        value: ptr::null(),
        value_bytes: 0,
    };
}

// In the order of `calls.c`, which says what each does.
unsafe extern "C" {
    fn vellum_wt_open(
        home: *const c_char,
        config: *const c_char,
        connection: *mut *mut RawConnection,
    ) -> c_int;
    fn vellum_wt_close(connection: *mut RawConnection) -> c_int;
    fn vellum_wt_open_session(
        connection: *mut RawConnection,
        config: *const c_char,
        session: *mut *mut RawSession,
    ) -> c_int;
    fn vellum_wt_close_session(session: *mut RawSession) -> c_int;
    fn vellum_wt_create(
        session: *mut RawSession,
        name: *const c_char,
        config: *const c_char,
    ) -> c_int;
    fn vellum_wt_drop(session: *mut RawSession, name: *const c_char) -> c_int;
    fn vellum_wt_begin(session: *mut RawSession) -> c_int;
    fn vellum_wt_commit(session: *mut RawSession) -> c_int;
    fn vellum_wt_rollback(session: *mut RawSession) -> c_int;
    fn vellum_wt_checkpoint(session: *mut RawSession) -> c_int;
    fn vellum_wt_open_cursor(
        session: *mut RawSession,
        uri: *const c_char,
        config: *const c_char,
        cursor: *mut *mut RawCursor,
    ) -> c_int;
    fn vellum_wt_close_cursor(cursor: *mut RawCursor) -> c_int;
    fn vellum_wt_reset(cursor: *mut RawCursor) -> c_int;
    fn vellum_wt_search(
        cursor: *mut RawCursor,
        key: *const c_void,
        key_bytes: usize,
        row: *mut RawRow,
    ) -> c_int;
    fn vellum_wt_first_from(
        cursor: *mut RawCursor,
        key: *const c_void,
        key_bytes: usize,
        row: *mut RawRow,
    ) -> c_int;
    fn vellum_wt_last_from(
        cursor: *mut RawCursor,
        key: *const c_void,
        key_bytes: usize,
        row: *mut RawRow,
    ) -> c_int;
    fn vellum_wt_next(cursor: *mut RawCursor, row: *mut RawRow) -> c_int;
    fn vellum_wt_prev(cursor: *mut RawCursor, row: *mut RawRow) -> c_int;
    fn vellum_wt_insert(
        cursor: *mut RawCursor,
        key: *const c_void,
        key_bytes: usize,
        value: *const c_void,
        value_bytes: usize,
    ) -> c_int;
    fn vellum_wt_update_here(
        cursor: *mut RawCursor,
        value: *const c_void,
        value_bytes: usize,
    ) -> c_int;
    fn vellum_wt_remove(cursor: *mut RawCursor, key: *const c_void, key_bytes: usize) -> c_int;
    fn vellum_wt_next_name(cursor: *mut RawCursor, name: *mut *const c_char) -> c_int;
    // Of the library itself.
    fn wiredtiger_strerror(error: c_int) -> *const c_char;
    fn wiredtiger_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int)
    -> *const c_char;
}

/// An error of WiredTiger's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure(c_int);

impl Failure {
    /// Another transaction was first.
    pub(super) fn is_conflict(self) -> bool {
        self.0 == ROLLBACK
    }

    /// The row is there.
    pub(super) fn is_duplicate(self) -> bool {
        self.0 == DUPLICATE_KEY
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = *self;
        if error > 0 {
            let error = std::io::Error::from_raw_os_error(error);
            return write!(f, "WiredTiger: {error}");
        }
        if !NAMED.iter().any(|named| named.contains(&error)) {
            return write!(f, "WiredTiger: error {error}");
        }
        // SAFETY: any number is an argument.
        let text = unsafe { wiredtiger_strerror(error) };
        // SAFETY: the library's constant text, as for all that it names; only those of others are written into a place of all threads.
        let text = unsafe { CStr::from_ptr(text) };
        write!(f, "WiredTiger: {}", text.to_string_lossy())
    }
}

impl std::error::Error for Failure {}

pub(super) type Result<T> = std::result::Result<T, Failure>;

#[inline]
fn checked(error: c_int) -> Result<()> {
    match error {
        0 => Ok(()),
        error => Err(Failure(error)),
    }
}

/// Whether there is a row.
#[inline]
fn found(error: c_int) -> Result<bool> {
    match error {
        0 => Ok(true),
        NOT_FOUND => Ok(false),
        error => Err(Failure(error)),
    }
}

/// What C gave, which is there where it reported no error.
fn handed_out<T>(handle: *mut T, error: c_int) -> Result<NonNull<T>> {
    checked(error)?;
    // No error and no handle: the header rules it out.
    NonNull::new(handle).ok_or(Failure(INVALID))
}

/// The library's version.
pub(super) fn version() -> String {
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: three places for numbers.
    unsafe { wiredtiger_version(&raw mut major, &raw mut minor, &raw mut patch) };
    format!("{major}.{minor}.{patch}")
}

/// An open database.
#[derive(Debug)]
pub(super) struct Connection(NonNull<RawConnection>);

// SAFETY: WiredTiger's connections may be used by any thread, and by many at a time.
unsafe impl Send for Connection {}
// SAFETY: the same.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens the database in a directory that exists.
    pub(super) fn open(home: &CStr, config: &CStr) -> Result<Self> {
        let mut connection = ptr::null_mut();
        // SAFETY: two texts and a place for the handle.
        let error = unsafe { vellum_wt_open(home.as_ptr(), config.as_ptr(), &raw mut connection) };
        handed_out(connection, error).map(Self)
    }

    /// A client of these tables, whose transactions have snapshots.
    pub(super) fn client<'c>(&'c self, tables: &'c [CString]) -> Result<Client<'c>> {
        let mut session = ptr::null_mut();
        // SAFETY: the connection is open as long as it is borrowed.
        let error = unsafe {
            vellum_wt_open_session(
                self.0.as_ptr(),
                c"isolation=snapshot".as_ptr(),
                &raw mut session,
            )
        };
        Ok(Client {
            session: handed_out(session, error)?,
            tables,
            cursors: vec![None; 2 * tables.len()],
            connection: PhantomData,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: clients borrow it: none is left.
        let closed = checked(unsafe { vellum_wt_close(self.0.as_ptr()) });
        // Its log has what was committed: nobody is to be told.
        let _ = closed;
    }
}

/// Which of a table's cursors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Inserts, updates and removes only where that changes something, and says so.
    Looks = 0,
    /// Puts its row there whatever is there.
    Overwrites = 1,
}

/// A session of WiredTiger's with its cursors, which are opened once.
///
/// Invariants:
/// - C1 Bytes that a cursor hands out borrow the client: none of its methods runs before they are let go.
/// - C2 The session and the cursors in their places are open.
pub(super) struct Client<'c> {
    session: NonNull<RawSession>,
    tables: &'c [CString],
    /// By table and way.
    cursors: Vec<Option<NonNull<RawCursor>>>,
    connection: PhantomData<&'c Connection>,
}

impl fmt::Debug for Client<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.tables)
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        // SAFETY: C2; it closes its cursors, which nobody uses after it.
        let closed = checked(unsafe { vellum_wt_close_session(self.session.as_ptr()) });
        // What it had not committed is rolled back: nobody is to be told.
        let _ = closed;
    }
}

impl Client<'_> {
    /// Makes a table where there is none.
    pub(super) fn create(&mut self, table: usize) -> Result<()> {
        let (session, name) = (self.session.as_ptr(), self.tables[table].as_ptr());
        // SAFETY: C2, and two texts.
        checked(unsafe { vellum_wt_create(session, name, c"key_format=u,value_format=u".as_ptr()) })
    }

    #[inline]
    pub(super) fn begin(&mut self) -> Result<()> {
        // SAFETY: C2.
        checked(unsafe { vellum_wt_begin(self.session.as_ptr()) })
    }

    /// Ends the transaction, which is rolled back where this fails.
    #[inline]
    pub(super) fn commit(&mut self) -> Result<()> {
        // SAFETY: C2; the pages that cursors stand on are let go, of which nobody has bytes: C1.
        checked(unsafe { vellum_wt_commit(self.session.as_ptr()) })
    }

    pub(super) fn rollback(&mut self) -> Result<()> {
        // SAFETY: as `commit`.
        checked(unsafe { vellum_wt_rollback(self.session.as_ptr()) })
    }

    /// Writes out what the log has; not inside a transaction.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        // SAFETY: C2.
        checked(unsafe { vellum_wt_checkpoint(self.session.as_ptr()) })
    }

    fn open(&mut self, uri: &CStr, config: &CStr) -> Result<NonNull<RawCursor>> {
        let mut cursor = ptr::null_mut();
        // SAFETY: C2, two texts and a place for the handle.
        let error = unsafe {
            vellum_wt_open_cursor(
                self.session.as_ptr(),
                uri.as_ptr(),
                config.as_ptr(),
                &raw mut cursor,
            )
        };
        handed_out(cursor, error)
    }

    #[inline]
    fn cursor(&mut self, table: usize, way: Way) -> Result<*mut RawCursor> {
        let place = 2 * table + way as usize;
        if let Some(cursor) = self.cursors[place] {
            return Ok(cursor.as_ptr());
        }
        let config = match way {
            Way::Looks => c"overwrite=false",
            Way::Overwrites => c"overwrite=true",
        };
        let cursor = self.open(&self.tables[table], config)?;
        self.cursors[place] = Some(cursor);
        Ok(cursor.as_ptr())
    }

    /// Closes the cursors of a table.
    pub(super) fn close(&mut self, table: usize) -> Result<()> {
        for place in [2 * table, 2 * table + 1] {
            if let Some(cursor) = self.cursors[place].take() {
                // SAFETY: C2 until here, and it is in its place no more.
                checked(unsafe { vellum_wt_close_cursor(cursor.as_ptr()) })?;
            }
        }
        Ok(())
    }

    /// The value under a key. The cursor stays there, and keeps the page.
    #[inline]
    pub(super) fn search(&mut self, table: usize, key: &[u8]) -> Result<Option<&[u8]>> {
        let cursor = self.cursor(table, Way::Looks)?;
        let mut row = RawRow::NONE;
        // SAFETY: C2; the key is there until the call ends.
        let error =
            unsafe { vellum_wt_search(cursor, key.as_ptr().cast(), key.len(), &raw mut row) };
        if !found(error)? {
            return Ok(None);
        }
        // SAFETY: what the row points to stays until the client is asked again: C1.
        Ok(Some(unsafe { bytes(row.value, row.value_bytes) }))
    }

    /// Lets go of where the table's cursor stands: a page that is kept can neither be split nor evicted.
    #[inline]
    pub(super) fn leave(&mut self, table: usize) -> Result<()> {
        let cursor = self.cursor(table, Way::Looks)?;
        // SAFETY: C2, C1.
        checked(unsafe { vellum_wt_reset(cursor) })
    }

    /// Gives the row that was searched for another value.
    #[inline]
    pub(super) fn update_here(&mut self, table: usize, value: &[u8]) -> Result<()> {
        let cursor = self.cursor(table, Way::Looks)?;
        // SAFETY: C2; the value is there until the call ends.
        checked(unsafe { vellum_wt_update_here(cursor, value.as_ptr().cast(), value.len()) })
    }

    #[inline]
    pub(super) fn insert(
        &mut self,
        table: usize,
        way: Way,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        let cursor = self.cursor(table, way)?;
        // SAFETY: C2.
        unsafe { insert(cursor, key, value) }
    }

    /// Removes a row; false without one.
    #[inline]
    pub(super) fn remove(&mut self, table: usize, key: &[u8]) -> Result<bool> {
        let cursor = self.cursor(table, Way::Looks)?;
        // SAFETY: C2; the key is there until the call ends.
        found(unsafe { vellum_wt_remove(cursor, key.as_ptr().cast(), key.len()) })
    }

    /// Hands rows on, upwards from the smallest at or above `from` or downwards from the largest at or below it, until `each`
    /// returns false or there are no more. The cursor stays where it ends.
    pub(super) fn scan(
        &mut self,
        table: usize,
        from: &[u8],
        upwards: bool,
        mut each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let cursor = self.cursor(table, Way::Looks)?;
        let (key, key_bytes) = (from.as_ptr().cast(), from.len());
        let mut row = RawRow::NONE;
        // WiredTiger has no empty key, nor takes one to look for.
        let mut error = if from.is_empty() {
            if !upwards {
                return Ok(());
            }
            self.leave(table)?;
            // SAFETY: C2.
            unsafe { vellum_wt_next(cursor, &raw mut row) }
        } else if upwards {
            // SAFETY: C2; the key is there until the call ends.
            unsafe { vellum_wt_first_from(cursor, key, key_bytes, &raw mut row) }
        } else {
            // SAFETY: the same.
            unsafe { vellum_wt_last_from(cursor, key, key_bytes, &raw mut row) }
        };
        while found(error)? {
            // SAFETY: what the row points to stays until the next call: C1.
            let key = unsafe { bytes(row.key, row.key_bytes) };
            // SAFETY: the same.
            let value = unsafe { bytes(row.value, row.value_bytes) };
            if !each(key, value) {
                break;
            }
            error = if upwards {
                // SAFETY: C2.
                unsafe { vellum_wt_next(cursor, &raw mut row) }
            } else {
                // SAFETY: C2.
                unsafe { vellum_wt_prev(cursor, &raw mut row) }
            };
        }
        Ok(())
    }

    /// Makes a table anew, without rows; false, and nothing is done, where somebody has it open. At once, whatever becomes of
    /// transactions; not inside one.
    pub(super) fn make_anew(&mut self, table: usize) -> Result<bool> {
        let (session, name) = (self.session.as_ptr(), self.tables[table].as_ptr());
        // SAFETY: C2, and a text.
        match checked(unsafe { vellum_wt_drop(session, name) }) {
            Err(Failure(BUSY)) => Ok(false),
            dropped => dropped.and_then(|()| self.create(table)).map(|()| true),
        }
    }

    /// Fills a table that was just made: one that was looked at cannot be filled any more. The rows are everybody's, and not
    /// in the log. Not inside a transaction.
    pub(super) fn fill(
        &mut self,
        table: usize,
        mut next: impl FnMut(&mut Vec<u8>, &mut Vec<u8>) -> bool,
    ) -> Result<u64> {
        let bulk = self.open(&self.tables[table], c"bulk")?.as_ptr();
        let (mut key, mut value, mut rows) = (Vec::new(), Vec::new(), 0);
        let mut filled = Ok(());
        while filled.is_ok() && next(&mut key, &mut value) {
            // SAFETY: open until below.
            filled = unsafe { insert(bulk, &key, &value) };
            rows += 1;
        }
        // SAFETY: it is not used after this.
        let closed = checked(unsafe { vellum_wt_close_cursor(bulk) });
        filled.and(closed).map(|()| rows)
    }

    /// Names of all objects of the database: their kinds, colons, their own names.
    pub(super) fn names(&mut self) -> Result<Vec<String>> {
        let cursor = self.open(c"metadata:", c"")?.as_ptr();
        let mut names = Vec::new();
        let listed = loop {
            let mut name = ptr::null();
            // SAFETY: open until below; a place for a text.
            match found(unsafe { vellum_wt_next_name(cursor, &raw mut name) }) {
                Ok(true) => {
                    // SAFETY: a text that stays until the next call.
                    let name = unsafe { CStr::from_ptr(name) };
                    names.push(name.to_string_lossy().into_owned());
                }
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        // SAFETY: it is not used after this.
        let closed = checked(unsafe { vellum_wt_close_cursor(cursor) });
        listed.and(closed).map(|()| names)
    }
}

/// Puts a row there.
///
/// # Safety
/// The cursor is open.
#[inline]
unsafe fn insert(cursor: *mut RawCursor, key: &[u8], value: &[u8]) -> Result<()> {
    // SAFETY: the caller's; key and value are there until the call ends.
    checked(unsafe {
        vellum_wt_insert(
            cursor,
            key.as_ptr().cast(),
            key.len(),
            value.as_ptr().cast(),
            value.len(),
        )
    })
}

/// Bytes that C points to; of none it may point nowhere.
///
/// # Safety
/// So many bytes are there, and nobody writes them, as long as the caller has them.
#[inline]
unsafe fn bytes<'b>(data: *const c_void, length: usize) -> &'b [u8] {
    match length {
        0 => &[],
        // SAFETY: the caller's.
        length => unsafe { std::slice::from_raw_parts(data.cast(), length) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_by_their_texts_and_unknown_ones_by_their_numbers() {
        for (error, told) in [
            (ROLLBACK, "WT_ROLLBACK"),
            (NOT_FOUND, "WT_NOTFOUND"),
            (-31_809, "WT_TRY_SALVAGE"),
            (BUSY, "busy"),
            (-31_805, "error -31805"),
            (-31_999, "error -31999"),
        ] {
            let text = Failure(error).to_string();
            assert!(text.contains(told), "{text}");
        }
    }
}
