//! LMDB's C: a reader that is renewed, and a writer that puts a value where its cursor stands.

use super::{Client, NAME, Result, Runs, change, rows};
use lmdb_master_sys as ffi;
use std::ffi::{CString, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const MAP_BYTES: usize = 1 << 32;

struct Bare {
    environment: *mut ffi::MDB_env,
    reader: *mut ffi::MDB_txn,
    table: ffi::MDB_dbi,
}

fn check(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(format!("LMDB's error {code}").into()),
    }
}

const fn value_of(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val {
        mv_size: bytes.len(),
        mv_data: bytes.as_ptr().cast_mut().cast(),
    }
}

/// Copies what was found.
fn copy(found: &ffi::MDB_val, value: &mut Vec<u8>) {
    // SAFETY: the bytes of a page, which nobody changes while the transaction is open and writes nothing.
    let found = unsafe { std::slice::from_raw_parts(found.mv_data.cast::<u8>(), found.mv_size) };
    value.clear();
    value.extend_from_slice(found);
}

impl Client for Bare {
    fn read(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let (mut key, mut found) = (value_of(key), value_of(&[]));
        // SAFETY: a reader that was reset.
        check(unsafe { ffi::mdb_txn_renew(self.reader) })?;
        // SAFETY: it is open.
        check(unsafe { ffi::mdb_get(self.reader, self.table, &mut key, &mut found) })?;
        copy(&found, value);
        // SAFETY: what was found is copied.
        unsafe { ffi::mdb_txn_reset(self.reader) };
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<()> {
        let (mut key, mut found) = (value_of(key), value_of(&[]));
        let writer = begin(self.environment, 0)?;
        let mut cursor = ptr::null_mut();
        // SAFETY: the transaction is open; a place for a pointer.
        check(unsafe { ffi::mdb_cursor_open(writer, self.table, &mut cursor) })?;
        // SAFETY: the cursor's transaction is open.
        check(unsafe { ffi::mdb_cursor_get(cursor, &mut key, &mut found, ffi::MDB_SET) })?;
        copy(&found, value);
        change(value);
        let mut put = value_of(value);
        // SAFETY: the cursor stands at the key; the value is none of the file's bytes.
        check(unsafe { ffi::mdb_cursor_put(cursor, &mut key, &mut put, ffi::MDB_CURRENT) })?;
        // SAFETY: it is not used again.
        unsafe { ffi::mdb_cursor_close(cursor) };
        // SAFETY: an open transaction without cursors.
        check(unsafe { ffi::mdb_txn_commit(writer) })
    }
}

fn begin(environment: *mut ffi::MDB_env, flags: c_uint) -> Result<*mut ffi::MDB_txn> {
    let mut transaction = ptr::null_mut();
    // SAFETY: an open environment; a place for a pointer.
    check(unsafe { ffi::mdb_txn_begin(environment, ptr::null_mut(), flags, &mut transaction) })?;
    Ok(transaction)
}

pub fn bare(path: &Path, run: &mut dyn FnMut(&mut dyn Runs) -> Result<()>) -> Result<()> {
    let (path, name) = (
        CString::new(path.as_os_str().as_bytes())?,
        CString::new(NAME)?,
    );
    let (mut environment, mut table) = (ptr::null_mut(), 0);
    // SAFETY: a place for a pointer.
    check(unsafe { ffi::mdb_env_create(&mut environment) })?;
    // SAFETY: an environment that is not open yet.
    check(unsafe { ffi::mdb_env_set_mapsize(environment, MAP_BYTES) })?;
    // SAFETY: as above.
    check(unsafe { ffi::mdb_env_set_maxdbs(environment, 1) })?;
    let flags = ffi::MDB_NOTLS | ffi::MDB_NOSYNC | ffi::MDB_NOMEMINIT;
    // SAFETY: as above; the path ends with a zero.
    check(unsafe { ffi::mdb_env_open(environment, path.as_ptr(), flags, 0o600) })?;
    let writer = begin(environment, 0)?;
    // SAFETY: an open transaction; the name ends with a zero.
    check(unsafe { ffi::mdb_dbi_open(writer, name.as_ptr(), ffi::MDB_CREATE, &mut table) })?;
    for (key, value) in rows() {
        let (mut key, mut value) = (value_of(&key), value_of(&value));
        // SAFETY: an open transaction; key and value are read only.
        check(unsafe { ffi::mdb_put(writer, table, &mut key, &mut value, ffi::MDB_APPEND) })?;
    }
    // SAFETY: an open transaction without cursors.
    check(unsafe { ffi::mdb_txn_commit(writer) })?;
    let reader = begin(environment, ffi::MDB_RDONLY)?;
    // SAFETY: an open reader.
    unsafe { ffi::mdb_txn_reset(reader) };
    let ran = run(&mut Bare {
        environment,
        reader,
        table,
    });
    // SAFETY: nobody has it any more.
    unsafe { ffi::mdb_txn_abort(reader) };
    // SAFETY: there is no transaction any more.
    unsafe { ffi::mdb_env_close(environment) };
    ran
}
