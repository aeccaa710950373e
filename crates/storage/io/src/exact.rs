//! Transfers of exactly so many bytes over calls that may transfer fewer.

use std::io;
use std::sync::Arc;
use vellum_base::StorageError;

/// An error that the operating system did not give.
pub(crate) fn error(action: &'static str, file: &str, kind: io::ErrorKind) -> StorageError {
    StorageError::io(action, &Arc::from(file), kind.into())
}

/// Fills `out` by repeated `read` calls.
pub(crate) fn read(
    out: &mut [u8],
    offset: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < out.len() {
        match read(&mut out[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` by repeated `write` calls.
pub(crate) fn write(
    bytes: &[u8],
    offset: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes what a vectored write of entries that continue each other left over after `written` bytes.
pub(crate) fn write_rest(
    run: &[(u64, &[u8])],
    written: usize,
    mut write: impl FnMut(&[u8], u64) -> io::Result<()>,
) -> io::Result<()> {
    let mut skip = written;
    for &(offset, bytes) in run {
        let done = skip.min(bytes.len());
        skip -= done;
        if done < bytes.len() {
            write(&bytes[done..], offset + done as u64)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_interrupted_writes_are_continued_where_they_stopped() {
        let mut disk = [0; 16];
        let mut calls = 0;
        write(b"0123456789", 3, |bytes, offset| {
            calls += 1;
            if calls == 2 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = bytes.len().min(4);
            let at = usize::try_from(offset).unwrap();
            disk[at..at + count].copy_from_slice(&bytes[..count]);
            Ok(count)
        })
        .unwrap();
        assert_eq!(&disk[3..13], b"0123456789");
        assert_eq!(calls, 4);
    }

    #[test]
    fn a_write_without_progress_is_an_error() {
        let error = write(b"x", 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn short_reads_are_continued_and_the_end_of_the_file_is_an_error() {
        let disk = b"0123456789";
        let from = |out: &mut [u8], offset: u64| {
            let rest = &disk[usize::try_from(offset).unwrap().min(disk.len())..];
            let count = rest.len().min(out.len()).min(3);
            out[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        };
        let mut out = [0; 8];
        read(&mut out, 2, from).unwrap();
        assert_eq!(&out, b"23456789");
        let error = read(&mut out, 3, from).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_error_in_the_middle_is_handed_on() {
        let mut calls = 0;
        let error = read(&mut [0; 4], 0, |_, _| {
            calls += 1;
            if calls == 1 {
                Ok(2)
            } else {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        })
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn rest_of_a_short_vectored_write_is_written_and_nothing_twice() {
        let run: [(u64, &[u8]); 3] = [(10, b"abc"), (13, b"de"), (15, b"fghi")];
        for written in 0..=9 {
            let mut rest = Vec::new();
            write_rest(&run, written, |bytes, offset| {
                assert_eq!(offset, 10 + (written + rest.len()) as u64);
                rest.extend_from_slice(bytes);
                Ok(())
            })
            .unwrap();
            assert_eq!(rest, b"abcdefghi"[written..]);
        }
    }
}
