//! The first packet of a connection: what kind of conversation it is to be.
//!
//! Layout: length (i32, counts itself), code (u32: version, or a request), then for a version pairs of zero-terminated
//! texts and a zero byte.

use super::LOGIN_MESSAGE_BYTES_MAX;
use super::reader::{PROTOCOL_VIOLATION, Reader};
use super::report::Report;
use std::io::{self, Read};

/// The newest version that there is: 3.0.
pub const VERSION: u32 = 3 << 16;
/// Code of a request for TLS.
const TLS_REQUEST: u32 = 80_877_103;
/// Code of a request for encryption by GSSAPI.
const GSS_REQUEST: u32 = 80_877_104;
/// Code of a request to cancel what another connection does.
const CANCEL_REQUEST: u32 = 80_877_102;

/// What a client begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum First {
    /// It wants TLS.
    Tls,
    /// It wants encryption by GSSAPI.
    Gss,
    /// It wants a statement of another connection to stop.
    Cancel {
        /// Which connection.
        process: u32,
        /// What proves that it may.
        key: u32,
    },
    /// It wants to log in.
    Startup(Startup),
}

/// A login's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Startup {
    /// The minor version that the client speaks; the major one is 3.
    pub minor: u16,
    /// Who logs in.
    pub user: String,
    /// To which database; the user's name if the client says nothing.
    pub database: String,
    /// Settings in the order in which they were given, those of `options` first.
    pub settings: Vec<(String, String)>,
    /// Protocol options (`_pq_.…`): none is known.
    pub unknown_options: Vec<String>,
}

/// Reads the packet, exactly: no byte behind it is taken, so whatever a stranger put between it and a TLS handshake is seen
/// by the handshake, and by nobody else.
///
/// Returns none if the connection was closed before its first byte, as port scanners and health checks do.
///
/// # Errors
/// `Ok(Err)` for bytes that are no such packet: the connection must end. `Err` from the source.
pub fn read(source: &mut impl Read) -> io::Result<Option<Result<First, Report>>> {
    let mut length = [0; 4];
    // The first byte alone: a connection that is closed without one said nothing wrong.
    if source.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    source.read_exact(&mut length[1..])?;
    let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(0);
    if !(8..=LOGIN_MESSAGE_BYTES_MAX).contains(&length) {
        let error = Report::fatal(PROTOCOL_VIOLATION, "invalid length of startup packet");
        return Ok(Some(Err(error)));
    }
    let mut body = vec![0; length - 4];
    source.read_exact(&mut body)?;
    Ok(Some(decode(&body)))
}

/// Reads a packet behind its length.
///
/// # Errors
/// FATAL for anything that is no such packet.
pub fn decode(body: &[u8]) -> Result<First, Report> {
    decode_inner(body).map_err(Report::ends_connection)
}

fn decode_inner(body: &[u8]) -> Result<First, Report> {
    let mut reader = Reader::new(body);
    let invalid = || Report::error(PROTOCOL_VIOLATION, "invalid startup packet layout");
    match reader.u32()? {
        TLS_REQUEST => reader.end().map(|()| First::Tls),
        GSS_REQUEST => reader.end().map(|()| First::Gss),
        CANCEL_REQUEST => {
            let (process, key) = (reader.u32()?, reader.u32()?);
            reader.end()?;
            Ok(First::Cancel { process, key })
        }
        code if code >> 16 == 3 => {
            let minor = u16::try_from(code & 0xffff).expect("16 bits");
            startup(minor, &mut reader, invalid).map(First::Startup)
        }
        code => Err(Report::error(
            "0A000",
            format!(
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                code >> 16,
                code & 0xffff
            ),
        )),
    }
}

fn startup(
    minor: u16,
    reader: &mut Reader<'_>,
    invalid: impl Fn() -> Report,
) -> Result<Startup, Report> {
    let mut startup = Startup {
        minor,
        ..Startup::default()
    };
    let mut options = None;
    loop {
        let name = reader.text().map_err(|_| invalid())?;
        if name.is_empty() {
            break;
        }
        if name == "application_name" {
            let value = reader.text_bytes().map_err(|_| invalid())?;
            startup.settings.push((name.to_owned(), readable(value)));
            continue;
        }
        let value = reader.text().map_err(|_| invalid())?;
        match name {
            "user" => startup.user = value.to_owned(),
            "database" => startup.database = value.to_owned(),
            "options" => options = Some(value),
            "replication" if is_off(value) => {}
            "replication" => {
                return Err(Report::error("0A000", "replication is not supported"));
            }
            _ if name.starts_with("_pq_.") => startup.unknown_options.push(name.to_owned()),
            _ => startup.settings.push((name.to_owned(), value.to_owned())),
        }
    }
    if !reader.clone().rest().is_empty() {
        return Err(invalid().detail("bytes follow the end of the packet"));
    }
    if startup.user.is_empty() {
        return Err(Report::error(
            "28000",
            "no PostgreSQL user name specified in startup packet",
        ));
    }
    if startup.database.is_empty() {
        startup.database.clone_from(&startup.user);
    }
    // Before rules are looked up: they name the database as it is.
    if let Some(name) = vellum_sql::database_called(&startup.database) {
        name.clone_into(&mut startup.database);
    }
    if let Some(options) = options {
        let mut first = command_line(options)?;
        first.append(&mut startup.settings);
        startup.settings = first;
    }
    Ok(startup)
}

fn is_off(value: &str) -> bool {
    ["false", "off", "no", "0"].contains(&value)
}

/// A name that a client calls itself, which may be in any encoding: what can be read of one that is not UTF-8.
fn readable(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name) {
        return text.to_owned();
    }
    let readable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    name.iter().map(readable).collect()
}

/// Options of PostgreSQL's server processes without an argument that say nothing here: about its planner, its logs, its core files.
const SILENT: &str = "EjnOPsT";
/// The same with an argument.
const SILENT_WITH: &str = "CdDfrtvW";
/// Those that stand for settings that no session can change; `true`: with an argument.
const FIXED: [(char, bool, &str); 9] = [
    ('B', true, "shared_buffers"),
    ('F', false, "fsync"),
    ('N', true, "max_connections"),
    ('b', false, "bonjour"),
    ('h', true, "listen_addresses"),
    ('i', false, "listen_addresses"),
    ('k', true, "unix_socket_directories"),
    ('l', false, "ssl"),
    ('p', true, "port"),
];

/// Settings of the form `-c name=value` and `--name=value`, and what stands for some of them; a backslash takes the special meaning from the next character.
fn command_line(options: &str) -> Result<Vec<(String, String)>, Report> {
    let mut settings = Vec::new();
    let mut words = words(options).into_iter();
    while let Some(word) = words.next() {
        let invalid = || {
            let text = format!("invalid command-line argument for server process: {word}");
            Report::error("42601", text).hint("Try \"postgres --help\" for more information.")
        };
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        let mut letters = letters.ok_or_else(invalid)?.chars();
        while let Some(letter) = letters.next() {
            let mut argument = || match letters.as_str() {
                "" => words.next().ok_or_else(invalid),
                rest => {
                    let rest = rest.to_owned();
                    letters = "".chars();
                    Ok(rest)
                }
            };
            match letter {
                'c' => settings.push(setting(&argument()?, "-c ")?),
                '-' if word != "--" => settings.push(setting(&argument()?, "--")?),
                'S' => settings.push(("work_mem".to_owned(), argument()?)),
                // European dates.
                'e' => settings.push(("datestyle".to_owned(), "euro".to_owned())),
                letter if SILENT.contains(letter) => {}
                letter if SILENT_WITH.contains(letter) => drop(argument()?),
                letter => {
                    let mut fixed = FIXED.iter().filter(|(own, ..)| *own == letter);
                    let (_, with_argument, name) = fixed.next().ok_or_else(invalid)?;
                    if *with_argument {
                        argument()?;
                    }
                    let text = format!("parameter \"{name}\" cannot be changed");
                    return Err(Report::error("55P02", text));
                }
            }
        }
    }
    Ok(settings)
}

/// `name=value`, in which a dash stands for an underscore.
fn setting(pair: &str, option: &str) -> Result<(String, String), Report> {
    let missing = || Report::error("42601", format!("{option}{pair} requires a value"));
    let (name, value) = pair.split_once('=').ok_or_else(missing)?;
    Ok((name.replace('-', "_"), value.to_owned()))
}

/// The words of a command line.
fn words(options: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        if character.is_ascii_whitespace() {
            words.extend(word.take());
            continue;
        }
        let literal = if character == '\\' {
            characters.next()
        } else {
            Some(character)
        };
        word.get_or_insert_default().extend(literal);
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u32, rest: &[u8]) -> Vec<u8> {
        [&code.to_be_bytes(), rest].concat()
    }

    #[test]
    fn a_login_has_a_user_a_database_and_settings() {
        let body = packet(
            VERSION,
            b"user\0ada\0application_name\0psql\0_pq_.x\x001\0options\0-c a=1 --b-c=x\\ y\0\0",
        );
        let First::Startup(startup) = decode(&body).unwrap() else {
            panic!("a login");
        };
        assert_eq!((&*startup.user, &*startup.database), ("ada", "ada"));
        let settings: Vec<(&str, &str)> = startup
            .settings
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let expected = [("a", "1"), ("b_c", "x y"), ("application_name", "psql")];
        assert_eq!(settings, expected);
        assert_eq!(startup.unknown_options, ["_pq_.x"]);
    }

    #[test]
    fn the_maintenance_database_is_the_one_that_there_is() {
        for (asked, found) in [("postgres", "vellum"), ("vellum", "vellum"), ("x", "x")] {
            let rest = format!("user\0ada\0database\0{asked}\0\0");
            let First::Startup(startup) = decode(&packet(VERSION, rest.as_bytes())).unwrap() else {
                panic!("a login");
            };
            assert_eq!(startup.database, found);
        }
    }

    #[test]
    fn every_prefix_of_a_login_is_refused() {
        let body = packet(VERSION, b"user\0ada\0database\0d\0\0");
        for length in 0..body.len() {
            assert!(decode(&body[..length]).unwrap_err().is_fatal());
        }
        assert!(decode(&[&body[..], b"x"].concat()).is_err());
    }

    #[test]
    fn requests_are_told_apart_by_their_code() {
        assert_eq!(decode(&packet(TLS_REQUEST, b"")).unwrap(), First::Tls);
        assert_eq!(decode(&packet(GSS_REQUEST, b"")).unwrap(), First::Gss);
        assert!(decode(&packet(TLS_REQUEST, b"x")).is_err());
        let cancel = packet(CANCEL_REQUEST, &[0, 0, 0, 7, 0xff, 0, 0, 1]);
        let expected = First::Cancel {
            process: 7,
            key: 0xff00_0001,
        };
        assert_eq!(decode(&cancel).unwrap(), expected);
        let old = decode(&packet(2 << 16, b"")).unwrap_err();
        assert_eq!(old.sqlstate, "0A000");
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_memory_is_taken() {
        for length in [0u32, 7, 10_001, u32::MAX] {
            let bytes = length.to_be_bytes();
            let read = read(&mut &bytes[..]).unwrap().unwrap();
            assert!(read.unwrap_err().is_fatal(), "{length}");
        }
        assert!(read(&mut &b""[..]).unwrap().is_none());
        assert!(read(&mut &b"\0\0"[..]).is_err());
    }

    #[test]
    fn nothing_behind_the_packet_is_read() {
        let bytes = [
            &8u32.to_be_bytes()[..],
            &TLS_REQUEST.to_be_bytes(),
            b"injected",
        ]
        .concat();
        let mut source = &bytes[..];
        assert_eq!(read(&mut source).unwrap(), Some(Ok(First::Tls)));
        assert_eq!(source, b"injected");
    }

    #[test]
    fn command_line_options_that_make_no_sense_are_refused() {
        let argument = "invalid command-line argument for server process: ";
        for (options, sqlstate, message) in [
            ("x", "42601", format!("{argument}x")),
            ("-c", "42601", format!("{argument}-c")),
            ("-e -S", "42601", format!("{argument}-S")),
            ("-x", "42601", format!("{argument}-x")),
            ("-", "42601", format!("{argument}-")),
            ("--", "42601", format!("{argument}--")),
            ("-c a", "42601", "-c a requires a value".to_owned()),
            ("--a", "42601", "--a requires a value".to_owned()),
            (
                "-p 5",
                "55P02",
                "parameter \"port\" cannot be changed".to_owned(),
            ),
        ] {
            let error = command_line(options).unwrap_err();
            assert_eq!((&*error.sqlstate, &*error.message), (sqlstate, &*message));
        }
        assert_eq!(command_line(" -ca=b ").unwrap()[0].1, "b");
    }

    #[test]
    fn options_may_stand_for_settings_and_beside_each_other() {
        let settings = command_line("-d 5 -eS 100 -fs -Ec a-b.c=1 --x-y=").unwrap();
        let settings = settings.iter().map(|(name, value)| (&**name, &**value));
        let expected = [
            ("datestyle", "euro"),
            ("work_mem", "100"),
            ("a_b.c", "1"),
            ("x_y", ""),
        ];
        assert_eq!(settings.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_client_may_call_itself_in_any_encoding() {
        let body = packet(
            VERSION,
            b"user\0ada\0application_name\0a\xff\xc3\xa4\x01b\0\0",
        );
        let First::Startup(startup) = decode(&body).unwrap() else {
            panic!("a login");
        };
        assert_eq!(startup.settings[0].1, "a????b");
    }
}
