//! The same rows and queries at Vellum and at PostgreSQL: where both are, and what they answer.
//!
//! What is not checked: README.
#![forbid(unsafe_code)]

pub mod peer;

pub use peer::Peer;

use postgres::{Client, NoTls, SimpleQueryMessage};
use std::path::Path;
use vellum_server::{Server, Settings};

/// A server of Vellum's in this process.
#[derive(Debug)]
pub struct Own {
    _server: Server,
    port: u16,
    password: String,
}

impl Own {
    /// With a database in this directory.
    ///
    /// # Errors
    /// What keeps it from serving.
    pub fn start(directory: &Path) -> Result<Self, String> {
        Self::with_pool(directory, 64)
    }

    /// The same with a pool of so many MiB.
    ///
    /// # Errors
    /// As [`Own::start`].
    pub fn with_pool(directory: &Path, pool_mib: u64) -> Result<Self, String> {
        let settings = Settings {
            data: directory.into(),
            listen: vec!["127.0.0.1:0".into()],
            unix_socket: false,
            log: "error".into(),
            pool_mib,
            ..Settings::default()
        };
        let server = Server::start(settings).map_err(|error| error.to_string())?;
        let password = std::fs::read_to_string(directory.join("password"));
        Ok(Self {
            port: server.addresses()[0].port(),
            _server: server,
            password: password.map_err(|error| error.to_string())?,
        })
    }

    /// A session.
    ///
    /// # Errors
    /// What the server says.
    pub fn connect(&self) -> Result<Client, postgres::Error> {
        postgres::Config::new()
            .host("127.0.0.1")
            .port(self.port)
            .user("vellum")
            .password(self.password.trim_end())
            .dbname("vellum")
            .connect(NoTls)
    }
}

/// What a query answers: the names of the columns, then the rows, as text.
pub type Answer = Vec<Vec<String>>;

/// Asks.
///
/// # Errors
/// What the server says.
pub fn answer(client: &mut Client, text: &str) -> Result<Answer, postgres::Error> {
    let mut lines = Vec::new();
    for message in client.simple_query(text)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let names = columns.iter().map(|column| column.name().to_owned());
                lines.push(names.collect());
            }
            SimpleQueryMessage::Row(row) => {
                let text = |at| row.get(at).map_or_else(|| "NULL".to_owned(), str::to_owned);
                lines.push((0..row.len()).map(text).collect());
            }
            _ => {}
        }
    }
    Ok(lines)
}

/// What is wrong with an answer; `sorted`: whatever the order of the rows.
pub fn difference(
    own: Result<Answer, postgres::Error>,
    expected: &Answer,
    sorted: bool,
) -> Option<String> {
    let mut own = match own {
        Ok(own) => own,
        Err(error) => {
            let told = error.as_db_error().map(ToString::to_string);
            return Some(told.unwrap_or_else(|| error.to_string()));
        }
    };
    let mut expected = expected.clone();
    if sorted {
        own.sort();
        expected.sort();
    }
    if own == expected {
        return None;
    }
    let differs = own.iter().zip(&expected).find(|(a, b)| a != b);
    Some(format!(
        "{} lines for {}, {differs:?}",
        own.len(),
        expected.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_differ_by_order_unless_they_are_sorted() {
        let line = |text: &str| vec![text.to_owned()];
        let (own, other) = (vec![line("a"), line("b")], vec![line("b"), line("a")]);
        assert!(difference(Ok(own.clone()), &other, false).is_some());
        assert_eq!(difference(Ok(own.clone()), &other, true), None);
        assert!(difference(Ok(own), &vec![line("a")], true).is_some());
    }
}
