//! The double-write area with something changed: damage of a medium, and forgery under right checksums; with pages in their places whole, or torn.
//!
//! What is asked depends on what was changed ([`Change`]):
//! - *damage*, and headers that say something else (batch numbers, how many images, of which pages): an image carries its page's number in its
//!   checksum, so no header can put it elsewhere. What is shown is what the last commit left, or an error of the family `Corrupt`; and if no page is
//!   torn, nobody needs the area, so an error is wrong, except where the header itself cannot be;
//! - *images* that nobody wrote, whose checksums and GSNs are right: nothing can be said of the answers; but there are answers.
//!
//! Afterwards the database is worked on, killed, and opened once more: batch numbers and halves go on from what was found.
//!
//! Layout of a half: `vellum_buffer`, double_write.rs.
//!
//! Not checked: several halves or images changed at once.

use crate::corpus::{self, DATA, PAGE, Wrong};
use crate::damage::{Outcome, in_time, scribble, seal_page};
use std::sync::Arc;
use vellum::{Database, Family};
use vellum_base::random::Random;
use vellum_base::{PageId, StorageError};
use vellum_buffer::page::page_checksum;
use vellum_io::SimulatedDirectory;

const MAGIC: &[u8; 8] = b"VELLUMDW";
const MAGIC_AT: usize = 24;
const BATCH_AT: usize = 32;
const COUNT_AT: usize = 40;
const ENTRIES_AT: usize = 64;
const ENTRY_BYTES: usize = 12;
/// Bytes that a medium writes whole.
const SECTOR: usize = 512;

/// An image of the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// The page whose image it is.
    pub of: u64,
    /// Where it stands.
    pub at: u64,
}

/// A half of the area, as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// The page of its header.
    pub header: u64,
    /// The number of its batch.
    pub batch: u64,
    /// Its images.
    pub images: Vec<Image>,
}

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One bit of a header or an image.
    Bit,
    /// A header, sealed again.
    Header,
    /// An image, sealed again, and its entry.
    Image,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("it lies in the page")
}

/// The halves of a data file's double-write area.
pub fn halves(data: &[u8]) -> Vec<Half> {
    let mut found = Vec::new();
    for (header, page) in (0..).zip(data.chunks_exact(PAGE)) {
        if &page[MAGIC_AT..MAGIC_AT + 8] != MAGIC {
            continue;
        }
        let count = u32::from_le_bytes(number(page, COUNT_AT));
        let image = |index: u32| Image {
            of: u64::from_le_bytes(number(page, ENTRIES_AT + index as usize * ENTRY_BYTES)),
            at: header + 1 + u64::from(index),
        };
        found.push(Half {
            header,
            batch: u64::from_le_bytes(number(page, BATCH_AT)),
            images: (0..count).map(image).collect(),
        });
    }
    found
}

/// A data file that is being changed.
struct Changed {
    data: Vec<u8>,
    what: String,
}

impl Changed {
    fn page(&mut self, page: u64) -> &mut [u8] {
        &mut self.data[page as usize * PAGE..][..PAGE]
    }

    /// A page in its place, of which some sectors are of another time.
    fn tear(&mut self, random: &mut Random, page: u64) {
        let first = random.below((PAGE / SECTOR) as u64) as usize;
        let bytes = self.page(page);
        for sector in bytes.chunks_exact_mut(SECTOR).skip(first) {
            if random.chance(1, 2) {
                sector.fill(0);
            } else {
                random.fill(sector);
            }
        }
        let first = PAGE / SECTOR - 1;
        // At least one of them.
        bytes[first * SECTOR] ^= 1;
        self.what.push_str(&format!("page {page} torn; "));
    }

    fn flip(&mut self, random: &mut Random, half: &Half) {
        let pages = 1 + half.images.len() as u64;
        let at = if random.chance(1, 2) {
            let used = ENTRIES_AT + half.images.len() * ENTRY_BYTES;
            half.header as usize * PAGE + random.below(used as u64) as usize
        } else {
            half.header as usize * PAGE + random.below(pages * PAGE as u64) as usize
        };
        self.data[at] ^= 1 << random.below(8);
        self.what.push_str(&format!("byte {at}; "));
    }

    /// Lets a header say something else, under its checksum.
    fn forge_header(&mut self, random: &mut Random, half: &Half, all: &[Half]) {
        let (count, pages) = (half.images.len(), self.data.len() / PAGE);
        let mut what = String::new();
        for _ in 0..random.between(1, 3) {
            let entry = ENTRIES_AT + random.below(count.max(1) as u64) as usize * ENTRY_BYTES;
            let other = &all[random.below(all.len() as u64) as usize].images;
            let bytes = self.page(half.header);
            match random.below(6) {
                0 | 1 => {
                    let numbers = [
                        0,
                        half.batch.wrapping_sub(2),
                        half.batch + 1,
                        half.batch + 2,
                        half.batch + 3,
                        half.batch + 1000,
                        u64::from(u32::MAX) + half.batch % 2,
                        (1 << 62) - 2 + half.batch % 2,
                        1 << 62,
                        u64::MAX,
                    ];
                    let batch = numbers[random.below(numbers.len() as u64) as usize];
                    bytes[BATCH_AT..BATCH_AT + 8].copy_from_slice(&batch.to_le_bytes());
                    what.push_str(&format!("batch {batch}, "));
                }
                2 => {
                    // A half has a page for each of a batch; 12 of 48 frames here.
                    let numbers = [
                        0,
                        1,
                        count.wrapping_sub(1) as u32,
                        count as u32 + 1,
                        12,
                        13,
                        64,
                        336,
                        337,
                        u32::MAX,
                    ];
                    let images = numbers[random.below(numbers.len() as u64) as usize];
                    bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&images.to_le_bytes());
                    what.push_str(&format!("{images} images, "));
                }
                3 | 4 => {
                    let mut numbers = vec![
                        0,
                        1,
                        half.header,
                        half.header + 1,
                        pages as u64 - 1,
                        pages as u64,
                        1 + (PAGE as u64 - 64) * 8,
                        1 << 40,
                        u64::MAX,
                    ];
                    // What another image of the area is of: then there are two.
                    numbers.extend(other.iter().map(|image| image.of));
                    let page = numbers[random.below(numbers.len() as u64) as usize];
                    bytes[entry..entry + 8].copy_from_slice(&page.to_le_bytes());
                    what.push_str(&format!("entry at {entry} of page {page}, "));
                }
                _ => {
                    let at = scribble(random, &mut bytes[4..ENTRIES_AT + 12 * ENTRY_BYTES]) + 4;
                    what.push_str(&format!("byte {at}, "));
                }
            }
        }
        seal_page(half.header, self.page(half.header));
        self.what
            .push_str(&format!("header {}: {what}; ", half.header));
    }

    /// Lets an image be another one, under its checksum, that its entry has, too.
    fn forge_image(&mut self, random: &mut Random, half: &Half) {
        let index = random.below(half.images.len() as u64) as usize;
        let Image { mut of, at } = half.images[index];
        let pages = (self.data.len() / PAGE) as u64;
        if random.chance(1, 4) {
            // Of a page that was in no batch.
            of = random.below(pages);
        }
        let image = self.page(at);
        let gsn = u64::from_le_bytes(number(image, 8));
        // What is in place is newer, as new, or older; or nothing is ever newer.
        let gsn = [gsn, gsn, gsn + 1, gsn + 1, gsn + 1000, u64::MAX][random.below(6) as usize];
        image[8..16].copy_from_slice(&gsn.to_le_bytes());
        let end = if random.chance(1, 2) { 160 } else { PAGE };
        let byte = scribble(random, &mut image[4..end]) + 4;
        let sum = page_checksum(PageId(of), image);
        image[..4].copy_from_slice(&sum.to_le_bytes());
        let entry = ENTRIES_AT + index * ENTRY_BYTES;
        let header = self.page(half.header);
        header[entry..entry + 8].copy_from_slice(&of.to_le_bytes());
        header[entry + 8..entry + 12].copy_from_slice(&sum.to_le_bytes());
        seal_page(half.header, header);
        let what = format!("image {at} of page {of} with GSN {gsn}, byte {byte}; ");
        self.what.push_str(&what);
    }
}

/// Changes the area of a copy of `disk`, perhaps with a page of it torn in its place; opens it, reads it, works on it, opens it again.
///
/// # Errors
/// A wrong answer, an error where none is due or of the wrong family, a panic, a hang; with the seed that makes it again.
pub fn change(disk: &SimulatedDirectory, how: Change, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let copy = disk.process_kill();
    let io = |error: StorageError| error.to_string();
    let data = corpus::bytes_of(&copy, DATA).map_err(io)?;
    let all = halves(&data);
    let half = &all[random.below(all.len() as u64) as usize];
    let mut changed = Changed {
        data,
        what: String::new(),
    };
    let torn = random.chance(1, 2);
    if torn {
        // What stands in the area and is not beyond the end of the file.
        let from = &all[random.below(all.len() as u64) as usize].images;
        let page = from[random.below(from.len() as u64) as usize].of;
        changed.tear(&mut random, page);
    }
    match how {
        Change::Bit => changed.flip(&mut random, half),
        Change::Header => changed.forge_header(&mut random, half, &all),
        Change::Image => changed.forge_image(&mut random, half),
    }
    let Changed { data, what } = changed;
    corpus::replace(&copy, DATA, 0, &data).map_err(io)?;
    let expected = match how {
        Change::Image => Expected::Anything,
        _ if torn => Expected::RightOrTold,
        Change::Bit => Expected::Right,
        // A number that no batch can have is told.
        Change::Header => Expected::RightOrNotOpened,
    };
    in_time(move || look(&copy, expected))
        .map_err(|error| format!("{how:?} with seed {seed}: {what}{error}"))
}

/// A page of the area is torn in its place, and the area is whole: everything is there. How many pages were tried.
///
/// # Errors
/// What is not there.
pub fn tear_each(disk: &SimulatedDirectory, seed: u64) -> Result<u64, String> {
    let data = corpus::bytes_of(disk, DATA).map_err(|error| error.to_string())?;
    let mut pages: Vec<u64> = halves(&data)
        .iter()
        .flat_map(|half| &half.images)
        .map(|image| image.of)
        .collect();
    pages.sort_unstable();
    pages.dedup();
    for page in &pages {
        let copy = disk.process_kill();
        let mut torn = Changed {
            data: data.clone(),
            what: String::new(),
        };
        torn.tear(&mut Random::new(seed ^ page), *page);
        corpus::replace(&copy, DATA, 0, &torn.data).map_err(|error| error.to_string())?;
        in_time(move || look(&copy, Expected::Right))
            .map_err(|error| format!("seed {seed}: {}{error}", torn.what))?;
    }
    Ok(pages.len() as u64)
}

/// What may come of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Everything is there.
    Right,
    /// The same, or it is not opened for damage.
    RightOrNotOpened,
    /// What is shown is right; what is missing is told when somebody looks at it.
    RightOrTold,
    /// There are answers.
    Anything,
}

/// Opens and reads; works, and opens what a kill leaves.
fn look(disk: &SimulatedDirectory, expected: Expected) -> Result<Outcome, String> {
    let opens = |disk: &SimulatedDirectory| {
        Database::open_directory(Arc::new(disk.clone()), corpus::config())
    };
    let told = expected == Expected::RightOrTold;
    let judge = |what: &str, error: vellum::Error, may: bool| {
        let corrupt = may && error.family() == Family::Corrupt;
        match corrupt || expected == Expected::Anything {
            true => Ok(Outcome::Detected),
            false => Err(format!("{what}: {error}")),
        }
    };
    let not_opened = told || expected == Expected::RightOrNotOpened;
    let database = match opens(disk) {
        Ok(database) => database,
        Err(error) => return judge("open", error, not_opened),
    };
    match corpus::right(&database) {
        Ok(corpus::COMMITS) => {}
        Ok(_) | Err(Wrong::Answer(_)) if expected == Expected::Anything => {}
        Ok(commits) => return Err(format!("{commits} commits of {}", corpus::COMMITS)),
        Err(Wrong::Answer(what)) => return Err(format!("a wrong answer: {what}")),
        Err(Wrong::Error(error)) => return judge("read", error, told),
    }
    corpus::work_on(&database);
    let after = disk.process_kill();
    drop(database);
    let database = match opens(&after) {
        Ok(database) => database,
        // The last number that a batch can have was given away.
        Err(error) => return judge("open again", error, not_opened),
    };
    match database.verify() {
        Ok(report) if report.is_sound() => Ok(Outcome::Harmless),
        // What is torn, and was not looked at before.
        Ok(_) if told || expected == Expected::Anything => Ok(Outcome::Detected),
        Ok(_) => Err("worked on and opened again it is not sound".into()),
        Err(error) => judge("verify", error, told),
    }
}
