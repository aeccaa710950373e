//! Copies of the files with something changed; opened, read, verified.
//!
//! Two kinds of change:
//! - *damage*, as a medium does it: it is detected, or harmless; what is shown is what the last commit left ([`corpus::right`]), or an error of
//!   the family `Corrupt`;
//! - *forgery*: the checksum over what was changed is made right again, so that the decoders behind it meet bytes that nobody wrote. Nothing can
//!   be said of the answers; but there are answers: no panic, no hang.

use crate::corpus::{self, CONTROL, DATA, PAGE, Wrong};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use vellum::{Database, Family, Inspection, inspect_directory};
use vellum_base::PageId;
use vellum_base::checksum::checksum;
use vellum_base::random::Random;
use vellum_buffer::page::{kind, page_checksum};
use vellum_io::SimulatedDirectory;

/// A trial that takes longer hangs; a sound one takes milliseconds.
const LIMIT: Duration = Duration::from_secs(120);

/// What came of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything was shown as some commit left it.
    Harmless,
    /// An error said that something is wrong.
    Detected,
}

/// Tells a panic's message.
fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("?")
        .to_owned()
}

/// Opens, reads and verifies a copy in a thread of its own.
fn trial(disk: &SimulatedDirectory, forged: bool, verifies: bool) -> Result<Outcome, String> {
    let disk = disk.process_kill();
    in_time(move || look(&disk, forged, verifies))
}

/// Runs a trial in a thread of its own; a panic and a hang are errors.
///
/// # Errors
/// What `run` says, a panic's message, that it hangs.
pub fn in_time<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let result =
            catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(message(&*payload)));
        // The other side may have given up.
        let _ = sender.send(result);
    });
    receiver
        .recv_timeout(LIMIT)
        .unwrap_or_else(|_| Err("hangs".into()))
}

fn look(disk: &SimulatedDirectory, forged: bool, verifies: bool) -> Result<Outcome, String> {
    let mut outcome = Outcome::Harmless;
    let judge = |what: &str, error: vellum::Error| -> Result<Outcome, String> {
        // A forged length may ask for more than there is, a forged time for one that never comes.
        match error.family() {
            Family::Corrupt => Ok(Outcome::Detected),
            _ if forged => Ok(Outcome::Detected),
            _ => Err(format!("{what}: {error}")),
        }
    };
    if verifies {
        let copy = Arc::new(disk.process_kill());
        match inspect_directory(copy, Inspection::default().pool_bytes(1 << 20)) {
            Ok(report) if report.is_sound() => {}
            Ok(_) => outcome = Outcome::Detected,
            Err(error) => outcome = judge("verify", error)?,
        }
    }
    match Database::open_directory(Arc::new(disk.clone()), corpus::config()) {
        Ok(database) => {
            match corpus::right(&database) {
                // Behind the last commit come other rounds of the log, and only the last round may be lost without a word.
                Ok(corpus::COMMITS) => {}
                Ok(_) if forged => {}
                Ok(commits) => {
                    let all = corpus::COMMITS;
                    return Err(format!("{commits} commits of {all}, and no error"));
                }
                // What a wrong answer would be is not known of a forgery.
                Err(Wrong::Answer(_)) if forged => {}
                Err(Wrong::Answer(what)) => return Err(format!("a wrong answer: {what}")),
                Err(Wrong::Error(error)) => outcome = judge("read", error)?,
            }
            if forged {
                corpus::work_on(&database);
            }
        }
        Err(error) => outcome = judge("open", error)?,
    }
    Ok(outcome)
}

/// A place in the files that is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The byte.
    pub at: usize,
}

/// Flips one bit of a byte. `verifies`: the files are also verified as they are, which costs a rehearsal of the recovery.
///
/// # Errors
/// A wrong answer, a panic, a hang, an error of the wrong family.
pub fn flip(
    disk: &SimulatedDirectory,
    place: &Place,
    bit: u8,
    verifies: bool,
) -> Result<Outcome, String> {
    let copy = disk.process_kill();
    let flipped = copy.flip_bit(&place.file, place.at as u64, bit);
    let tried = flipped
        .map_err(|error| error.to_string())
        .and_then(|()| trial(&copy, false, verifies));
    tried.map_err(|what| format!("{}, byte {}, bit {bit}: {what}", place.file, place.at))
}

/// Writes a number into the control file, whose checksum is right.
///
/// # Errors
/// A panic, a hang.
pub fn forge_control(disk: &SimulatedDirectory, at: usize, number: u64) -> Result<Outcome, String> {
    let copy = disk.process_kill();
    let io = |error: vellum_base::StorageError| error.to_string();
    let mut bytes = corpus::bytes_of(&copy, CONTROL).map_err(io)?;
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    seal_control(&mut bytes);
    corpus::replace(&copy, CONTROL, 0, &bytes).map_err(io)?;
    trial(&copy, true, true)
}

/// Sets a byte of a page, whose checksum is right.
///
/// # Errors
/// A panic, a hang.
pub fn forge_page(
    disk: &SimulatedDirectory,
    page: u64,
    at: usize,
    byte: u8,
) -> Result<Outcome, String> {
    let copy = disk.process_kill();
    let io = |error: vellum_base::StorageError| error.to_string();
    let bytes = corpus::bytes_of(&copy, DATA).map_err(io)?;
    let mut bytes = bytes[page as usize * PAGE..][..PAGE].to_vec();
    bytes[at] = byte;
    seal_page(page, &mut bytes);
    corpus::replace(&copy, DATA, page * PAGE as u64, &bytes).map_err(io)?;
    trial(&copy, true, false)
}

/// Makes the checksum of a page right.
pub(crate) fn seal_page(page: u64, bytes: &mut [u8]) {
    let sum = page_checksum(PageId(page), bytes);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
}

fn seal_control(bytes: &mut [u8]) {
    let body = bytes.len() - 4;
    let sum = checksum(0, &bytes[..body]);
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
}

/// Changes one sealed part of the files and seals it again.
///
/// # Errors
/// A panic, a hang; with the seed that makes it again.
pub fn forge(disk: &SimulatedDirectory, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let copy = disk.process_kill();
    let io = |error: vellum_base::StorageError| error.to_string();
    let what = match random.below(8) {
        0 => {
            let mut bytes = corpus::bytes_of(&copy, CONTROL).map_err(io)?;
            let body = bytes.len() - 4;
            // Magic and version are asked first.
            let at = scribble(&mut random, &mut bytes[12..body]) + 12;
            seal_control(&mut bytes);
            corpus::replace(&copy, CONTROL, 0, &bytes).map_err(io)?;
            format!("control, byte {at}")
        }
        1..=4 => {
            let bytes = corpus::bytes_of(&copy, DATA).map_err(io)?;
            // Half of them nodes: of those there are most, and most depends on them.
            let is_node =
                |page: u64| [kind::LEAF, kind::INNER].contains(&bytes[page as usize * PAGE + 4]);
            let nodes = random.chance(1, 2);
            let pages: Vec<u64> = (0..(bytes.len() / PAGE) as u64)
                .filter(|page| is_node(*page) == nodes)
                .collect();
            let page = pages[random.below(pages.len() as u64) as usize];
            let mut bytes = bytes[page as usize * PAGE..][..PAGE].to_vec();
            // Heads are where it matters.
            let end = if random.chance(1, 2) { 160 } else { PAGE };
            let at = scribble(&mut random, &mut bytes[4..end]) + 4;
            seal_page(page, &mut bytes);
            corpus::replace(&copy, DATA, page * PAGE as u64, &bytes).map_err(io)?;
            format!("page {page}, byte {at}")
        }
        _ => {
            let names = corpus::segments(&copy).map_err(io)?;
            let name = &names[random.below(names.len() as u64) as usize];
            let mut bytes = corpus::bytes_of(&copy, name).map_err(io)?;
            let chunks = corpus::chunks(&bytes);
            let Some((at, length)) = pick(&mut random, &chunks) else {
                return Ok(Outcome::Harmless);
            };
            let what = forge_chunk(&mut random, &mut bytes, at, length);
            corpus::replace(&copy, name, 0, &bytes).map_err(io)?;
            format!("{name}, {what}")
        }
    };
    trial(&copy, true, random.chance(1, 4))
        .map_err(|error| format!("forged with seed {seed}: {what}: {error}"))
}

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> Option<T> {
    (!from.is_empty()).then(|| from[random.below(from.len() as u64) as usize])
}

/// Changes a few bytes near each other; says where.
pub(crate) fn scribble(random: &mut Random, bytes: &mut [u8]) -> usize {
    let at = random.below(bytes.len() as u64) as usize;
    let width = (1_usize << random.below(4)).min(bytes.len() - at);
    let numbers = [
        0,
        1,
        u64::MAX,
        u64::MAX >> 1,
        random.next_u64(),
        random.below(1 << 16),
    ];
    let number = numbers[random.below(numbers.len() as u64) as usize].to_le_bytes();
    bytes[at..at + width].copy_from_slice(&number[..width]);
    at
}

/// Layout of chunk and trailer: `vellum_wal`, frame.rs.
fn forge_chunk(random: &mut Random, bytes: &mut [u8], at: usize, length: usize) -> String {
    let segment = u64::from_le_bytes(*bytes[at + 8..].first_chunk().expect("eight bytes"));
    let (head, records) = (at..at + 80, at + 80..at + 80 + length);
    let what = if random.chance(1, 4) || length == 0 {
        format!(
            "head of chunk {at}, byte {}",
            scribble(random, &mut bytes[at + 16..at + 80]) + 16
        )
    } else {
        format!(
            "records of chunk {at}, byte {}",
            scribble(random, &mut bytes[records.clone()])
        )
    };
    let sum = checksum(segment, &bytes[records]);
    bytes[at + 52..at + 56].copy_from_slice(&sum.to_le_bytes());
    let sum = checksum(segment, &bytes[at + 8..head.end]);
    bytes[at + 4..at + 8].copy_from_slice(&sum.to_le_bytes());
    seal_round(bytes, segment, at);
    what
}

/// Makes the trailer behind a chunk right: it sums up the sums of its round's chunks.
fn seal_round(bytes: &mut [u8], segment: u64, at: usize) {
    let Some(trailer) = (at..bytes.len().saturating_sub(64))
        .step_by(8)
        .find(|place| bytes[*place..].starts_with(b"VLTR"))
    else {
        return;
    };
    let round = &bytes[trailer + 16..trailer + 24];
    let mut chain = 0;
    for (chunk, _) in corpus::chunks(bytes)
        .iter()
        .filter(|(chunk, _)| *chunk < trailer)
    {
        if bytes[chunk + 16..chunk + 24] == *round {
            chain = vellum_base::checksum::checksum_append(chain, &bytes[chunk + 4..chunk + 8]);
        }
    }
    bytes[trailer + 56..trailer + 60].copy_from_slice(&chain.to_le_bytes());
    let sum = checksum(segment, &bytes[trailer + 8..trailer + 64]);
    bytes[trailer + 4..trailer + 8].copy_from_slice(&sum.to_le_bytes());
}
