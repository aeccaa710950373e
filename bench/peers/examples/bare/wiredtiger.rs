//! WiredTiger's C, by the functions of `src/wiredtiger/calls.c`: its handles are structs that only its header knows, and each of these is one call,
//! or two that belong together.

use super::{Client, MEMORY_BYTES, NAME, Result, Runs, change, rows};
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

#[repr(C)]
struct Row {
    key: *const c_void,
    key_bytes: usize,
    value: *const c_void,
    value_bytes: usize,
}

#[rustfmt::skip]
unsafe extern "C" {
    fn vellum_wt_open(home: *const c_char, config: *const c_char, connection: *mut *mut c_void) -> c_int;
    fn vellum_wt_close(connection: *mut c_void) -> c_int;
    fn vellum_wt_open_session(connection: *mut c_void, config: *const c_char, session: *mut *mut c_void) -> c_int;
    fn vellum_wt_create(session: *mut c_void, name: *const c_char, config: *const c_char) -> c_int;
    fn vellum_wt_begin(session: *mut c_void) -> c_int;
    fn vellum_wt_commit(session: *mut c_void) -> c_int;
    fn vellum_wt_checkpoint(session: *mut c_void) -> c_int;
    fn vellum_wt_open_cursor(session: *mut c_void, uri: *const c_char, config: *const c_char, cursor: *mut *mut c_void) -> c_int;
    fn vellum_wt_close_cursor(cursor: *mut c_void) -> c_int;
    fn vellum_wt_reset(cursor: *mut c_void) -> c_int;
    fn vellum_wt_search(cursor: *mut c_void, key: *const c_void, key_bytes: usize, row: *mut Row) -> c_int;
    fn vellum_wt_insert(cursor: *mut c_void, key: *const c_void, key_bytes: usize, value: *const c_void, value_bytes: usize) -> c_int;
    fn vellum_wt_update_here(cursor: *mut c_void, value: *const c_void, value_bytes: usize) -> c_int;
}

fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(format!("WiredTiger's error {code}").into()),
    }
}

struct Bare {
    session: *mut c_void,
    cursor: *mut c_void,
}

impl Bare {
    fn begin(&self) -> Result<()> {
        // SAFETY: an open session.
        check(unsafe { vellum_wt_begin(self.session) })
    }

    fn find(&self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let mut row = Row {
            key: ptr::null(),
            key_bytes: 0,
            value: ptr::null(),
            value_bytes: 0,
        };
        // SAFETY: an open cursor; the key is read only.
        check(unsafe { vellum_wt_search(self.cursor, key.as_ptr().cast(), key.len(), &mut row) })?;
        // SAFETY: the row's bytes are there until the next call with the cursor.
        let found = unsafe { std::slice::from_raw_parts(row.value.cast::<u8>(), row.value_bytes) };
        value.clear();
        value.extend_from_slice(found);
        Ok(())
    }

    fn end(&self) -> Result<()> {
        // SAFETY: an open cursor.
        check(unsafe { vellum_wt_reset(self.cursor) })?;
        // SAFETY: an open transaction.
        check(unsafe { vellum_wt_commit(self.session) })
    }
}

impl Client for Bare {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.begin()?;
        self.find(key, value)?;
        self.end()
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        self.begin()?;
        self.find(key, value)?;
        change(value);
        // SAFETY: the cursor stands at the row; the value is read only.
        check(unsafe { vellum_wt_update_here(self.cursor, value.as_ptr().cast(), value.len()) })?;
        self.end()
    }
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let home = CString::new(path.as_os_str().as_bytes())?;
    let config = CString::new(format!(
        "create,config_base=false,cache_size={MEMORY_BYTES},session_max=64,log=(enabled=true),\
         transaction_sync=(enabled=false,method=fsync),checkpoint=(wait=60)"
    ))?;
    let (of_session, bulk) = (CString::new("isolation=snapshot")?, CString::new("bulk")?);
    let table = CString::new(format!("table:{NAME}"))?;
    let of_table = CString::new("key_format=u,value_format=u")?;
    let mut connection = ptr::null_mut();
    let mut session = ptr::null_mut();
    let mut cursor = ptr::null_mut();
    // SAFETY: texts that end with a zero, and a place for a pointer.
    check(unsafe { vellum_wt_open(home.as_ptr(), config.as_ptr(), &mut connection) })?;
    // SAFETY: an open connection; as above.
    check(unsafe { vellum_wt_open_session(connection, of_session.as_ptr(), &mut session) })?;
    // SAFETY: an open session; as above.
    check(unsafe { vellum_wt_create(session, table.as_ptr(), of_table.as_ptr()) })?;
    // SAFETY: as above.
    check(unsafe { vellum_wt_open_cursor(session, table.as_ptr(), bulk.as_ptr(), &mut cursor) })?;
    for (key, value) in rows() {
        // SAFETY: an open cursor; key and value are read only.
        check(unsafe {
            vellum_wt_insert(
                cursor,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            )
        })?;
    }
    // SAFETY: it is not used again.
    check(unsafe { vellum_wt_close_cursor(cursor) })?;
    // SAFETY: an open session.
    check(unsafe { vellum_wt_checkpoint(session) })?;
    // SAFETY: an open session; a text that ends with a zero, none, and a place for a pointer.
    check(unsafe { vellum_wt_open_cursor(session, table.as_ptr(), ptr::null(), &mut cursor) })?;
    let ran = run(&mut Bare { session, cursor });
    // SAFETY: it closes what was opened from it.
    check(unsafe { vellum_wt_close(connection) })?;
    ran
}
