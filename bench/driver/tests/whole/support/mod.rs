//! What the tests of the program share: it is run in this process, on any engine.
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use vellum_bench::cli::Settings;
use vellum_bench::{Output, run};
use vellum_workload::engine::{
    Description, Direction, Engine, Result, Session, Statistics, Table, TableSpec, TxOptions,
};
use vellum_workload::reference::{Reference, ReferenceSession};

/// How a run of the program ended.
pub struct Ended {
    pub code: u8,
    pub lines: Vec<Value>,
    pub table: String,
}

/// Runs the program with `arguments`, the data in `directory`.
pub fn bench<E: Engine>(
    arguments: &str,
    directory: &Path,
    open: impl FnMut(&Settings) -> Result<E>,
) -> Ended {
    let data = directory.join("data");
    program(&format!("{arguments} --data {}", data.display()), open)
}

/// Runs the program with `arguments` alone.
pub fn program<E: Engine>(arguments: &str, open: impl FnMut(&Settings) -> Result<E>) -> Ended {
    let mut words: Vec<OsString> = vec!["vellum-bench".into()];
    words.extend(arguments.split_whitespace().map(OsString::from));
    let (mut lines, mut table) = (Vec::new(), Vec::new());
    let code = run(
        words,
        open,
        Output {
            lines: &mut lines,
            table: &mut table,
            program: None,
        },
    );
    let lines = String::from_utf8(lines).unwrap();
    Ended {
        code,
        lines: lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
        table: String::from_utf8(table).unwrap(),
    }
}

/// What a file says.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Makes the directory look like one of Vellum, whose place the reference engine has without leaving files.
pub fn occupy(directory: &Path) {
    std::fs::write(directory.join("data/control"), b"").unwrap();
}

/// Forgets one commit in a hundred.
pub struct Forgetful(pub Reference);
pub struct ForgetfulSession<'e>(ReferenceSession<'e>, u32);

impl Engine for Forgetful {
    type Session<'e> = ForgetfulSession<'e>;

    fn ensure_tables(&mut self, tables: &[TableSpec]) -> Result<()> {
        self.0.ensure_tables(tables)
    }
    fn open_session(&self) -> Result<ForgetfulSession<'_>> {
        Ok(ForgetfulSession(self.0.open_session()?, 0))
    }
    fn checkpoint(&self) -> Result<()> {
        self.0.checkpoint()
    }
    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
    fn describe(&self) -> Description {
        self.0.describe()
    }
}

impl Session for ForgetfulSession<'_> {
    fn begin(&mut self, options: TxOptions) -> Result<()> {
        self.0.begin(options)
    }
    fn commit(&mut self) -> Result<()> {
        self.1 += 1;
        if self.1.is_multiple_of(100) {
            self.0.rollback()
        } else {
            self.0.commit()
        }
    }
    fn rollback(&mut self) -> Result<()> {
        self.0.rollback()
    }
    fn get_with<R>(
        &mut self,
        table: Table,
        key: &[u8],
        read: impl FnMut(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.0.get_with(table, key, read)
    }
    fn insert(&mut self, t: Table, k: &[u8], v: &[u8]) -> Result<()> {
        self.0.insert(t, k, v)
    }
    fn upsert(&mut self, t: Table, k: &[u8], v: &[u8]) -> Result<()> {
        self.0.upsert(t, k, v)
    }
    fn update(
        &mut self,
        table: Table,
        key: &[u8],
        ranges: &[std::ops::Range<usize>],
        change: impl FnMut(&mut [u8]),
    ) -> Result<bool> {
        self.0.update(table, key, ranges, change)
    }
    fn delete(&mut self, table: Table, key: &[u8]) -> Result<bool> {
        self.0.delete(table, key)
    }
    fn scan(
        &mut self,
        table: Table,
        from: &[u8],
        direction: Direction,
        each: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        self.0.scan(table, from, direction, each)
    }
}
