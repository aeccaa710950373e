//! A small durable store, right or wrong on purpose: it shows that the tools of this crate pass a
//! store that is right and catch one that is not.
//!
//! Every commit appends everything that it made visible as one checked record to one file. In
//! memory it is the model.
//!
//! Layout of a record: `u32 length, u32 crc, bytes` (names, keys and values with their lengths).

use vellum_base::Result;
use vellum_base::checksum::checksum;
use vellum_base::codec::{Put, Reader};
use vellum_io::{Directory, OpenOptions, SimulatedDirectory};
use vellum_model::model::Model;
use vellum_model::step::{Contents, Key, Operation};
use vellum_model::{Answer, Refusal, Step, Subject};

/// A mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// A commit returns before its record is synced.
    AnswersBeforeSync,
    /// The file's name is never synced.
    ForgetsDirectorySync,
    /// Records are believed without their checksum.
    BelievesTornRecords,
    /// Writes what is not committed, as if it were.
    WritesUncommitted,
    /// Recovery cuts the file off and writes it anew in place.
    RewritesInPlace,
    /// An error of a write is taken for success.
    HidesErrors,
    /// A write that failed counts as written.
    CountsFailedWrites,
}

/// The file.
const FILE: &str = "records";

/// The store.
#[derive(Debug)]
pub struct Reference {
    disk: SimulatedDirectory,
    model: Model,
    end: u64,
    mistake: Option<Mistake>,
}

impl Reference {
    /// Opens what is there; an empty store if nothing is.
    ///
    /// # Errors
    /// What the disk said.
    pub fn open(
        disk: &SimulatedDirectory,
        key_limit: usize,
        mistake: Option<Mistake>,
    ) -> std::result::Result<Box<dyn Subject>, String> {
        let mut reference = Self {
            disk: disk.clone(),
            model: Model::new(key_limit, None),
            end: 0,
            mistake,
        };
        reference
            .recover(key_limit)
            .map_err(|error| error.to_string())?;
        Ok(Box::new(reference))
    }

    fn recover(&mut self, key_limit: usize) -> Result<()> {
        let file = self.disk.open(FILE, OpenOptions::create())?;
        if self.mistake != Some(Mistake::ForgetsDirectorySync) {
            self.disk.sync_dir("")?;
        }
        let bytes = self.disk.read_all(FILE)?;
        let mut reader = Reader::new(&bytes);
        let mut last = None;
        while let Some((length, crc)) = reader.u32().zip(reader.u32()) {
            let Some(body) = reader.bytes(length as usize) else {
                break;
            };
            if checksum(1, body) != crc && self.mistake != Some(Mistake::BelievesTornRecords) {
                break;
            }
            let Some(contents) = decode(body) else { break };
            self.end += 8 + u64::from(length);
            last = Some(contents);
        }
        self.model = Model::of_contents(key_limit, &last.clone().unwrap_or_default());
        if self.mistake == Some(Mistake::RewritesInPlace) && last.is_some() {
            file.set_len(0)?;
            self.end = 0;
            self.append()?;
            return file.sync_data();
        }
        // What follows the last whole record must not become one later.
        file.set_len(self.end)?;
        file.sync_data()
    }

    /// Makes the effect of a step as durable as it must be.
    fn write(&mut self, step: &Step, commits: u64, acknowledged: u64) -> Result<()> {
        if let (Some(Mistake::WritesUncommitted), Step::Do { tx, .. }) = (self.mistake, step) {
            let before = self.model.clone();
            self.model
                .apply(*tx, &Operation::Commit { deferred: false });
            self.append()?;
            self.model = before;
        }
        if self.model.commits() != commits {
            self.append()?;
        }
        let waits = self.model.acknowledged() != acknowledged;
        if waits && self.mistake != Some(Mistake::AnswersBeforeSync) {
            self.sync()?;
        }
        Ok(())
    }

    /// Appends what is visible now.
    fn append(&mut self) -> Result<()> {
        let contents = self.model.contents_at(self.model.commits());
        let body = encode(&contents);
        let mut record = Vec::with_capacity(body.len() + 8);
        record.put_u32(body.len() as u32);
        record.put_u32(checksum(1, &body));
        record.extend_from_slice(&body);
        let file = self.disk.open(FILE, OpenOptions::existing())?;
        // Two writes, so that a cut can come between them.
        let (front, back) = record.split_at(record.len() / 2);
        file.write_at(front, self.end)?;
        file.write_at(back, self.end + front.len() as u64)?;
        self.end += record.len() as u64;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.disk.open(FILE, OpenOptions::existing())?.sync_data()
    }
}

impl Subject for Reference {
    fn apply(&mut self, step: &Step) -> Answer {
        let before = self.model.clone();
        let (commits, acknowledged) = (before.commits(), before.acknowledged());
        let answer = match step {
            Step::Begin { tx, how } => self.model.begin(*tx, *how),
            Step::Do { tx, operation } => self.model.apply(*tx, operation),
            Step::Reopen => {
                self.model.reopen();
                Answer::Done
            }
            Step::PowerCut { .. } => Answer::Skipped,
            _ => Answer::Done,
        };
        let end = self.end;
        match self.write(step, commits, acknowledged) {
            Ok(()) => answer,
            Err(_) if self.mistake == Some(Mistake::HidesErrors) => answer,
            Err(error) => {
                if self.mistake != Some(Mistake::CountsFailedWrites) {
                    self.model = before;
                    self.end = end;
                }
                Refusal::from(&error).into()
            }
        }
    }

    fn contents(&mut self) -> Answer {
        Answer::Contents(self.model.contents_at(self.model.commits()))
    }
}

fn encode(contents: &Contents) -> Vec<u8> {
    let mut out = Vec::new();
    let put = |out: &mut Vec<u8>, bytes: &[u8]| {
        out.put_u32(bytes.len() as u32);
        out.extend_from_slice(bytes);
    };
    out.put_u32(contents.len() as u32);
    for (name, rows) in contents {
        put(&mut out, name.as_bytes());
        out.put_u32(rows.len() as u32);
        for (key, value) in rows {
            put(&mut out, &key.0);
            put(&mut out, value);
        }
    }
    out
}

fn decode(body: &[u8]) -> Option<Contents> {
    fn take<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
        let length = reader.u32()?;
        reader.bytes(length as usize)
    }
    let mut reader = Reader::new(body);
    let mut contents = Vec::new();
    for _ in 0..reader.u32()? {
        let name = String::from_utf8_lossy(take(&mut reader)?).into_owned();
        let mut rows = Vec::new();
        for _ in 0..reader.u32()? {
            let key = Key(take(&mut reader)?.to_vec());
            rows.push((key, take(&mut reader)?.to_vec()));
        }
        contents.push((name, rows));
    }
    Some(contents)
}
