//! A client that keeps what it is told.

use std::sync::Arc;
use vellum::{Config, Database};
use vellum_io::{Directory, MemoryDirectory};
use vellum_sql::{
    CommandTag, CopyShape, FIRST_ROLE, Field, Fields, Format, OutputRow, Progress, Session,
    SessionOptions, Sink, SqlDatabase, SqlError, Told,
};

/// What a session has told.
#[derive(Default)]
pub struct Heard {
    pub fields: Vec<String>,
    /// Oids of their types.
    pub types: Vec<u32>,
    /// What their formats are told to be; none: text.
    pub formats: Vec<Format>,
    pub rows: Vec<Vec<Option<Vec<u8>>>>,
    pub tags: Vec<String>,
    pub notices: Vec<String>,
    /// SQLSTATEs of the notices.
    pub notice_states: Vec<String>,
    pub copied: Vec<u8>,
    /// How often it was told that a COPY begins.
    pub copies: usize,
    pub statuses: Vec<(String, String)>,
}

impl Sink for Heard {
    fn row_description(&mut self, fields: &[Field], formats: &[Format]) -> Told {
        self.fields = fields.iter().map(|field| field.name.clone()).collect();
        self.types = fields.iter().map(|field| field.type_oid).collect();
        self.formats = formats.to_vec();
        Ok(())
    }

    fn row(&mut self, row: OutputRow<'_>) -> Told {
        self.rows.push(
            row.iter()
                .map(|column| column.map(<[u8]>::to_vec))
                .collect(),
        );
        Ok(())
    }

    fn command_complete(&mut self, tag: &CommandTag) -> Told {
        self.tags.push(tag.to_string());
        Ok(())
    }

    fn empty_query(&mut self) -> Told {
        self.tags.push("EMPTY".to_owned());
        Ok(())
    }

    fn notice(&mut self, notice: &Fields) -> Told {
        self.notices.push(notice.message.clone());
        self.notice_states.push(notice.sqlstate.to_string());
        Ok(())
    }

    fn copy_in(&mut self, _: &CopyShape) -> Told {
        self.copies += 1;
        Ok(())
    }

    fn copy_out(&mut self, _: &CopyShape) -> Told {
        self.copies += 1;
        Ok(())
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Told {
        self.copied.extend_from_slice(bytes);
        Ok(())
    }

    fn copy_done(&mut self) -> Told {
        Ok(())
    }
}

impl Heard {
    /// Rows as text: columns by `|`, rows by line ends, NULL as `~`.
    pub fn text(&self) -> String {
        let row = |row: &Vec<Option<Vec<u8>>>| {
            let columns = row.iter().map(|column| match column {
                None => "~".to_owned(),
                Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            });
            columns.collect::<Vec<_>>().join("|")
        };
        self.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }
}

pub struct Client {
    pub session: Session,
}

/// A database with small pages and no threads, for sessions that get old. `promotes`: after a few ticks; else never.
pub fn database_that_promotes(promotes: bool) -> SqlDatabase {
    let mut config = Config::default()
        .page_size(4096)
        .pool_bytes(16 << 20)
        .background_threads(false);
    config.log_segment_bytes = 1 << 20;
    config.log_bytes_max = 16 << 20;
    config.data_bytes_max = 64 << 20;
    config.promote_after_ticks = if promotes { 3 } else { u64::MAX };
    database_with(config)
}

/// A database in memory with settings of its own.
pub fn database_with(config: Config) -> SqlDatabase {
    let directory = Arc::new(MemoryDirectory::new());
    SqlDatabase::open(Database::open_directory(directory, config).unwrap()).unwrap()
}

/// A database in memory.
pub fn database() -> SqlDatabase {
    database_in(&Arc::new(MemoryDirectory::new()))
}

pub fn database_in<D: Directory + 'static>(directory: &Arc<D>) -> SqlDatabase {
    let config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    SqlDatabase::open(Database::open_directory(directory.clone(), config).unwrap()).unwrap()
}

/// What is wrong with the catalog, and with indexes.
pub fn findings(database: &SqlDatabase) -> Vec<String> {
    let mut all = Vec::new();
    vellum_sql::verify(database.engine(), &mut |finding| {
        all.push(finding.to_string());
    })
    .unwrap();
    all
}

/// Pages, trees, the catalog and indexes are what they should be.
#[track_caller]
pub fn assert_sound(database: &SqlDatabase) {
    let report = database.engine().verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
    assert_eq!(findings(database), [""; 0]);
}

impl Client {
    pub fn of(database: &SqlDatabase) -> Self {
        Self::of_user(database, FIRST_ROLE)
    }

    pub fn of_user(database: &SqlDatabase, user: &str) -> Self {
        let options = SessionOptions {
            user: user.to_owned(),
            database: FIRST_ROLE.to_owned(),
            ..SessionOptions::default()
        };
        Self {
            session: database.session(options).unwrap(),
        }
    }

    /// One whose session has this process id.
    pub fn of_session(database: &SqlDatabase, process_id: i32) -> Self {
        let options = SessionOptions {
            user: FIRST_ROLE.to_owned(),
            database: FIRST_ROLE.to_owned(),
            process_id,
            ..SessionOptions::default()
        };
        Self {
            session: database.session(options).unwrap(),
        }
    }

    pub fn new() -> Self {
        Self::of(&database())
    }

    /// A client of a new database, with options other than its name.
    pub fn with(options: SessionOptions) -> Self {
        let options = SessionOptions {
            user: FIRST_ROLE.to_owned(),
            ..options
        };
        Self {
            session: database().session(options).unwrap(),
        }
    }

    /// Runs statements that must succeed; rows as text.
    #[track_caller]
    pub fn ok(&mut self, sql: &str) -> String {
        self.hear(sql).text()
    }

    /// The same; everything that was told.
    #[track_caller]
    pub fn hear(&mut self, sql: &str) -> Heard {
        let mut heard = Heard::default();
        match self.session.simple_query(sql, &mut heard) {
            Ok(Progress::Complete) => {
                let changed = self.session.changed_statuses().into_iter();
                heard.statuses = changed
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect();
                heard
            }
            Ok(other) => panic!("{sql}: {other:?}"),
            Err(error) => panic!("{sql}: {error}"),
        }
    }

    /// Runs statements that must fail; SQLSTATE and message.
    #[track_caller]
    pub fn fails(&mut self, sql: &str) -> (String, String) {
        let failure = self.failure(sql);
        (failure.sqlstate().to_string(), failure.message().to_owned())
    }

    /// The error of statements that must fail.
    #[track_caller]
    pub fn failure(&mut self, sql: &str) -> SqlError {
        let mut heard = Heard::default();
        match self.session.simple_query(sql, &mut heard) {
            Ok(_) => panic!("{sql} has not failed: {}", heard.text()),
            Err(error) => error,
        }
    }

    /// The SQLSTATE of statements that must fail.
    #[track_caller]
    pub fn state(&mut self, sql: &str) -> String {
        self.fails(sql).0
    }

    /// COPY … FROM STDIN with data, in pieces of so many bytes.
    #[track_caller]
    pub fn copy(&mut self, sql: &str, data: &str, piece: usize) -> Heard {
        let mut heard = Heard::default();
        let progress = self.session.simple_query(sql, &mut heard).unwrap();
        assert_eq!(progress, Progress::CopyIn);
        for piece in data.as_bytes().chunks(piece) {
            self.session.copy_data(piece).unwrap();
        }
        assert_eq!(
            self.session.copy_done(&mut heard).unwrap(),
            Progress::Complete
        );
        heard
    }
}
