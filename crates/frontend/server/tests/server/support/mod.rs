//! A server in this process, and a client that says exactly what it is told to.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use vellum_server::{Server, Settings};

/// Longer than anything takes; a test that waits so long has failed.
pub const LONG: Duration = Duration::from_secs(60);

/// A server on a directory of its own.
pub struct World {
    pub directory: tempfile::TempDir,
    pub server: Option<Server>,
}

impl World {
    pub fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = Some(start(directory.path(), change));
        Self { directory, server }
    }

    pub fn trusting() -> Self {
        Self::trusting_with(|_| {})
    }

    /// A server whose clients need no password, for tests of what comes after.
    pub fn trusting_with(change: impl FnOnce(&mut Settings)) -> Self {
        let rules = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            rules.path(),
            "local all all trust\nhost all all all trust\n",
        )
        .unwrap();
        Self::new(|settings| {
            settings.host_rules = rules.path().into();
            change(settings);
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().addresses()[0]
    }

    pub fn password(&self) -> String {
        let path = self.directory.path().join("password");
        std::fs::read_to_string(path).unwrap().trim_end().to_owned()
    }

    /// Settings of a real client.
    pub fn config(&self) -> postgres::Config {
        let mut config = postgres::Config::new();
        config
            .host("127.0.0.1")
            .port(self.address().port())
            .user("vellum")
            .password(self.password())
            .connect_timeout(LONG);
        config
    }

    pub fn client(&self) -> postgres::Client {
        self.config().connect(postgres::NoTls).unwrap()
    }

    /// A raw connection that has logged in, by a rule that trusts it.
    pub fn raw(&self) -> Raw {
        let mut raw = Raw::new(self.address());
        raw.log_in("vellum");
        raw
    }

    pub fn stop(mut self) {
        self.server.take().unwrap().stop().unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let (Some(server), false) = (self.server.take(), std::thread::panicking()) {
            server.stop().unwrap();
        }
    }
}

/// Starts a small server on any port.
pub fn start(directory: &std::path::Path, change: impl FnOnce(&mut Settings)) -> Server {
    let mut settings = Settings {
        data: directory.into(),
        listen: vec!["127.0.0.1:0".into()],
        login_failure_delay_ms: 1,
        pool_mib: 16,
        ..Settings::default()
    };
    change(&mut settings);
    Server::start(settings).unwrap()
}

/// A client without manners.
pub struct Raw {
    pub socket: TcpStream,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an error or a notice.
    pub fn field(&self, letter: u8) -> Option<String> {
        assert!(b"EN".contains(&self.kind), "{self:?} has no fields");
        self.body
            .split(|byte| *byte == 0)
            .find(|field| field.first() == Some(&letter))
            .map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
    }

    pub fn sqlstate(&self) -> String {
        self.field(b'C').unwrap()
    }
}

/// Kinds of messages, with the SQLSTATE of errors.
pub fn told(messages: &[Message]) -> String {
    let one = |message: &Message| match message.kind {
        b'E' => format!("E{}", message.sqlstate()),
        kind => char::from(kind).to_string(),
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A message of a client.
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

pub fn query(text: &str) -> Vec<u8> {
    message(b'Q', &[text.as_bytes(), b"\0"].concat())
}

pub fn parse(name: &str, text: &str) -> Vec<u8> {
    message(b'P', format!("{name}\0{text}\0\0\0").as_bytes())
}

pub fn bind(portal: &str, statement: &str) -> Vec<u8> {
    message(
        b'B',
        format!("{portal}\0{statement}\0\0\0\0\0\0\0").as_bytes(),
    )
}

/// Bind with parameters as texts.
pub fn bind_texts(portal: &str, statement: &str, values: &[&str]) -> Vec<u8> {
    let mut body = format!("{portal}\0{statement}\0\0\0").into_bytes();
    body.extend(u16::try_from(values.len()).unwrap().to_be_bytes());
    for value in values {
        body.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
        body.extend_from_slice(value.as_bytes());
    }
    body.extend([0, 0]);
    message(b'B', &body)
}

/// Execute of so many rows.
pub fn execute_rows(portal: &str, rows: u32) -> Vec<u8> {
    let mut body = format!("{portal}\0").into_bytes();
    body.extend(rows.to_be_bytes());
    message(b'E', &body)
}

/// Describe of a statement (`S`) or a portal (`P`).
pub fn describe(what: char, name: &str) -> Vec<u8> {
    message(b'D', format!("{what}{name}\0").as_bytes())
}

/// Close of a statement (`S`) or a portal (`P`).
pub fn close(what: char, name: &str) -> Vec<u8> {
    message(b'C', format!("{what}{name}\0").as_bytes())
}

pub fn flush() -> Vec<u8> {
    message(b'H', b"")
}

pub fn execute(portal: &str) -> Vec<u8> {
    message(b'E', format!("{portal}\0\0\0\0\0").as_bytes())
}

pub fn sync() -> Vec<u8> {
    message(b'S', b"")
}

/// A startup packet.
pub fn startup(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut body = (3u32 << 16).to_be_bytes().to_vec();
    for (name, value) in pairs {
        body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
    }
    body.push(0);
    let length = u32::try_from(body.len() + 4).unwrap();
    [&length.to_be_bytes()[..], &body].concat()
}

impl Raw {
    pub fn new(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// The next message; none at the end of the connection.
    pub fn receive(&mut self) -> Option<Message> {
        let mut header = [0; 5];
        let read = loop {
            match self.socket.read(&mut header[..1]) {
                // A stopped and continued process, whose reads have a deadline.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        match read {
            Ok(0) => return None,
            // Closed with something of ours unread.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            read => read.map(drop).unwrap(),
        }
        self.socket.read_exact(&mut header[1..]).unwrap();
        let length = u32::from_be_bytes(header[1..].try_into().unwrap());
        let mut body = vec![0; usize::try_from(length).unwrap() - 4];
        self.socket.read_exact(&mut body).unwrap();
        Some(Message {
            kind: header[0],
            body,
        })
    }

    /// Everything up to ReadyForQuery, which is left out; panics if the connection ends.
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let next = self.receive();
            match next.unwrap_or_else(|| panic!("the connection ended after {messages:?}")) {
                Message { kind: b'Z', .. } => return messages,
                message => messages.push(message),
            }
        }
    }

    /// Everything up to the end of the connection.
    pub fn until_end(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    /// So many messages; their kinds.
    pub fn next_kinds(&mut self, count: usize) -> String {
        let kinds = (0..count).map(|_| char::from(self.receive().unwrap().kind));
        kinds.collect()
    }

    /// What a query returns, and what fails with its SQLSTATE: the kinds of messages, behind an error its state.
    pub fn answers(&mut self, text: &str) -> String {
        self.send(&query(text));
        told(&self.until_ready())
    }

    /// Kinds of the messages up to ReadyForQuery.
    pub fn kinds(&mut self) -> String {
        self.until_ready()
            .iter()
            .map(|message| char::from(message.kind))
            .collect()
    }

    pub fn log_in(&mut self, user: &str) -> Vec<Message> {
        self.send(&startup(&[("user", user), ("database", "vellum")]));
        self.until_ready()
    }

    /// The connection still answers.
    pub fn assert_alive(&mut self) {
        self.send(&sync());
        assert_eq!(self.kinds(), "");
    }
}
