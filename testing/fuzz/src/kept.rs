//! Real inputs that are kept, beside those that each run makes anew: what a commit before this one wrote.
//!
//! Layout of a file of `testing/corpus/decoders`: for each input its length as a little-endian u32, and its bytes. `database.bin` has as inputs the files
//! of a small database that was killed: name and length (u64) in one, then, block by block of 4 KiB that is not zero, its number (u32) and its bytes in another.
//!
//! Inputs follow the format: where it changes, `VELLUM_WRITE_CORPUS=1 cargo test -p vellum-fuzz --test kept` writes them anew.

use crate::corpus::{self, PAGE};
use crate::kinds;
use crate::targets::{Target, all, inputs};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use vellum::{Database, Result};
use vellum_buffer::{PageBuf, PageHeader};
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};

/// Inputs of a target that are kept, at most, beside one of each kind.
const INPUTS_MAX: usize = 24;
/// Bytes of an input that is no page, at most.
const INPUT_BYTES_MAX: usize = 400;
/// The name of the file with a whole database.
pub const DATABASE: &str = "database";
const BLOCK: usize = 4096;

/// The file of a target's inputs.
pub fn path_of(name: &str) -> PathBuf {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../corpus/decoders"));
    folder.join(format!("{}.bin", name.replace(' ', "-")))
}

/// The inputs that are kept for a target.
///
/// # Errors
/// I/O; `InvalidData` if the file is not of the layout.
pub fn read(name: &str) -> io::Result<Vec<Vec<u8>>> {
    let bytes = std::fs::read(path_of(name))?;
    let (mut inputs, mut rest) = (Vec::new(), &bytes[..]);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let Some((input, behind)) = behind.split_at_checked(length) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        inputs.push(input.to_vec());
        rest = behind;
    }
    match rest.is_empty() {
        true => Ok(inputs),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn write(name: &str, inputs: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for input in inputs {
        bytes.extend_from_slice(&(input.len() as u32).to_le_bytes());
        bytes.extend_from_slice(input);
    }
    let path = path_of(name);
    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
    std::fs::write(path, bytes)
}

/// Writes all files anew: inputs that their decoders know, one of a kind (of pages) or of a length.
///
/// # Errors
/// I/O, and what making the databases says.
pub fn write_all() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let disks = [corpus::make()?, corpus::make_shapes()?];
    let of_disks = disks.iter().map(inputs);
    let of_disks = of_disks.collect::<vellum_base::Result<Vec<_>>>()?;
    for (at, target) in all().enumerate() {
        let more = kinds::inputs(target.name)?;
        let made = of_disks.iter().flat_map(|inputs| &inputs[at]);
        write(target.name, &chosen(target, made.chain(&more)))?;
    }
    write(DATABASE, &pack(&make_small()?)?)?;
    Ok(())
}

fn chosen<'i>(target: Target, made: impl Iterator<Item = &'i Vec<u8>>) -> Vec<Vec<u8>> {
    let mut found: BTreeMap<(u8, u64, usize), &Vec<u8>> = BTreeMap::new();
    let pages = target.name == "page";
    let most = match target.name {
        // One has a column of every type.
        "schema" => usize::MAX,
        _ => INPUT_BYTES_MAX,
    };
    for input in made.filter(|input| pages || input.len() <= most) {
        let kind = kind_of(target.name, input);
        let key = match pages {
            true => {
                let mut page = PageBuf::new(PAGE);
                page.as_bytes_mut().copy_from_slice(input);
                (kind, page.tree().get(), usize::from(page.is_temporary()))
            }
            false => {
                let first = input.first().copied().unwrap_or(0);
                (kind, first.into(), input.len())
            }
        };
        if !found.contains_key(&key) && (target.run)(input) {
            found.insert(key, input);
        }
    }
    let step = found.len().div_ceil(INPUTS_MAX).max(1);
    let mut last = None;
    let some = found.into_iter().enumerate().filter(|(at, (key, _))| {
        let first = last.replace(key.0) != Some(key.0);
        first || at.is_multiple_of(step)
    });
    some.map(|(_, (_, input))| input.clone()).collect()
}

/// The kind of a page or of a record; 0 for inputs that have none.
pub fn kind_of(target: &str, input: &[u8]) -> u8 {
    let kind = match target {
        "page" => input.get(4).copied(),
        "tree record" => input.first().copied(),
        "log record" | "transaction record" => kinds::kind_of(input),
        _ => None,
    };
    kind.unwrap_or(0)
}

/// Rows of the small database, and commits behind its checkpoint.
const ROWS: u32 = 30;
const COMMITS: u32 = 6;

fn value(row: u32) -> Vec<u8> {
    let times = if row == 9 { 600 } else { 3 };
    format!("row {row}, ").into_bytes().repeat(times)
}

/// A small database that was killed: an index, a long value, commits behind the checkpoint, one that was rolled back and one without an end.
fn make_small() -> Result<SimulatedDirectory> {
    let disk = SimulatedDirectory::new();
    let database = Database::open_directory(Arc::new(disk.clone()), corpus::config())?;
    database.retry(|transaction| {
        let table = transaction.create_table("kept")?;
        (0..ROWS).try_for_each(|row| transaction.insert(&table, &row.to_be_bytes(), &value(row)))
    })?;
    database.checkpoint()?;
    for row in ROWS..ROWS + COMMITS {
        database.retry(|transaction| {
            let table = transaction.table("kept")?;
            transaction.insert(&table, &row.to_be_bytes(), &value(row))
        })?;
    }
    let begun = |row: u32| {
        let transaction = database.begin()?;
        let table = transaction.table("kept")?;
        transaction.delete(&table, &row.to_be_bytes())?;
        Ok::<_, vellum::Error>(transaction)
    };
    begun(1)?.rollback()?;
    let loser = begun(0)?;
    database.sync()?;
    let found = disk.process_kill();
    drop(loser);
    Ok(found)
}

/// Whether a database shows what `make_small` left.
///
/// # Errors
/// What is wrong.
pub fn is_right(disk: &SimulatedDirectory) -> std::result::Result<(), String> {
    let shown = || -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let database = Database::open_directory(Arc::new(disk.clone()), corpus::config())?;
        let transaction = database.begin()?;
        let table = transaction.table("kept")?;
        let mut cursor = transaction.cursor(&table, ..)?;
        let mut rows = Vec::new();
        while let Some((key, bytes)) = cursor.next()? {
            rows.push((key.to_vec(), bytes.to_vec()));
        }
        Ok(rows)
    };
    let rows = shown().map_err(|error| format!("{error:?}"))?;
    let expected = (0..ROWS + COMMITS).map(|row| (row.to_be_bytes().to_vec(), value(row)));
    match rows == expected.collect::<Vec<_>>() {
        true => Ok(()),
        false => Err(format!("{} rows, or others", rows.len())),
    }
}

/// The files of a database.
fn pack(disk: &SimulatedDirectory) -> vellum_base::Result<Vec<Vec<u8>>> {
    let mut names = corpus::segments(disk)?;
    names.extend([corpus::CONTROL.to_owned(), corpus::DATA.to_owned()]);
    let mut packed = Vec::new();
    for name in names {
        let bytes = corpus::bytes_of(disk, &name)?;
        let mut head = (bytes.len() as u64).to_le_bytes().to_vec();
        head.extend_from_slice(name.as_bytes());
        let mut blocks = Vec::new();
        for (number, block) in (0_u32..).zip(bytes.chunks(BLOCK)) {
            if block.iter().any(|byte| *byte != 0) {
                blocks.extend_from_slice(&number.to_le_bytes());
                blocks.extend_from_slice(block);
            }
        }
        packed.extend([head, blocks]);
    }
    Ok(packed)
}

/// The disk that was packed.
///
/// # Errors
/// If these are no files of a database.
pub fn unpack(packed: &[Vec<u8>]) -> vellum_base::Result<SimulatedDirectory> {
    let disk = SimulatedDirectory::new();
    disk.create_dir("log")?;
    for file in packed.chunks_exact(2) {
        let (length, name) = file[0].split_first_chunk().unwrap_or((&[0; 8], &[]));
        let name = String::from_utf8_lossy(name);
        let length = u64::from_le_bytes(*length);
        let made = disk.open(&name, OpenOptions::create_new())?;
        made.set_len(length)?;
        let mut rest = &file[1][..];
        while let Some((number, behind)) = rest.split_first_chunk() {
            let at = u64::from(u32::from_le_bytes(*number)) * BLOCK as u64;
            let block = BLOCK
                .min(length.saturating_sub(at) as usize)
                .min(behind.len());
            made.write_at(&behind[..block], at)?;
            rest = &behind[block..];
        }
    }
    Ok(disk.process_kill())
}

/// Names of all files that are kept.
pub fn names() -> BTreeSet<&'static str> {
    all().map(|target| target.name).chain([DATABASE]).collect()
}
