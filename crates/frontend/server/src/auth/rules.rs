//! Host rules: which method for whom, from where, to what. First match decides; none is a refusal (A1).
//!
//! Layout: a line a rule, as in PostgreSQL's `pg_hba.conf`: `type database user [address] method`. Types: `local` (Unix
//! socket), `host` (TCP), `hostssl` (TCP with TLS), `hostnossl` (without). Databases and users: names separated by
//! commas, or `all`; a name in double quotes is no keyword. Addresses: `all`, `address/bits`, or address and mask. Methods:
//! `scram-sha-256`, `trust`, `reject`. `#` begins a comment.
//!
//! An address of IPv4 is for clients of IPv4, one of IPv6 for those of IPv6, as in PostgreSQL; a client of IPv4 is one however its socket reports it.
//!
//! Not here: `samehost`, groups, regular expressions, host names, other methods: a line that uses them is an error, so that no
//! rule silently means something else.

use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// How a client came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Over the Unix socket.
    Local,
    /// Over TCP.
    Tcp {
        /// From where.
        address: SocketAddr,
        /// Whether over TLS.
        tls: bool,
    },
}

/// What proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A password, by SCRAM-SHA-256.
    Scram,
    /// Nothing.
    Trust,
    /// Nothing would.
    Reject,
}

/// The rules, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// Number of its line, from 1.
    line: usize,
    transport: Transport,
    databases: Names,
    users: Names,
    /// None for any.
    network: Option<Network>,
    method: Method,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Local,
    Host,
    HostTls,
    HostPlain,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Names {
    All,
    These(Vec<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

/// How a client on another machine may come in that should not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Without showing anything, by the rule in this line.
    Trusted(usize),
    /// Over plain text, by the rule in this line.
    PlainText(usize),
}

/// A line that is no rule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct RuleError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl Rules {
    /// Rules for who gives none: a password, over TLS where the client is on another machine, or over anything if
    /// `plain_text_allowed`.
    pub fn standard(plain_text_allowed: bool) -> Self {
        let remote = if plain_text_allowed {
            "host"
        } else {
            "hostssl"
        };
        let text = format!(
            "local all all scram-sha-256\n\
             host all all 127.0.0.0/8 scram-sha-256\n\
             host all all ::1/128 scram-sha-256\n\
             {remote} all all all scram-sha-256\n"
        );
        Self::parse(&text).expect("these are rules")
    }

    /// Reads rules.
    ///
    /// # Errors
    /// The first line that is none.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let mut rules = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            let rule = words(content)
                .and_then(|words| rule(line, &words))
                .map_err(|what| RuleError { line, what })?;
            rules.extend(rule);
        }
        Ok(Self { rules })
    }

    /// What a client must show; none if no rule is about it.
    pub fn method(&self, origin: Origin, database: &str, user: &str) -> Option<Method> {
        self.rules
            .iter()
            .find(|rule| {
                rule.covers(origin) && rule.databases.contain(database) && rule.users.contain(user)
            })
            .map(|rule| rule.method)
    }

    /// Whether anybody is let in from an address, whoever he says that he is, with TLS or without.
    pub fn may_admit(&self, address: SocketAddr) -> bool {
        let covers = |rule: &&Rule| {
            rule.transport != Transport::Local
                && rule
                    .network
                    .is_none_or(|network| network.contains(address.ip()))
        };
        let refuses_all = |rule: &&Rule| {
            rule.method == Method::Reject
                && rule.transport == Transport::Host
                && (&rule.databases, &rule.users) == (&Names::All, &Names::All)
        };
        let mut known = self
            .rules
            .iter()
            .filter(covers)
            .take_while(|rule| !refuses_all(rule));
        known.any(|rule| rule.method != Method::Reject)
    }

    /// The first rule by which a client on another machine may come in without a password, or over plain text.
    pub fn exposure(&self) -> Option<Exposure> {
        self.rules.iter().enumerate().find_map(|(at, rule)| {
            let here = rule.network.is_some_and(Network::is_loopback);
            if rule.transport == Transport::Local || rule.method == Method::Reject || here {
                return None;
            }
            if rule.method == Method::Trust {
                return Some(Exposure::Trusted(rule.line));
            }
            let before = &self.rules[..at];
            let plain = rule.transport != Transport::HostTls
                && !before
                    .iter()
                    .any(|earlier| earlier.rejects_plain_text_of(rule));
            plain.then_some(Exposure::PlainText(rule.line))
        })
    }
}

impl Rule {
    fn covers(&self, origin: Origin) -> bool {
        match (self.transport, origin) {
            (Transport::Local, Origin::Local) => true,
            (Transport::Local, _) | (_, Origin::Local) => false,
            (Transport::HostTls, Origin::Tcp { tls: false, .. })
            | (Transport::HostPlain, Origin::Tcp { tls: true, .. }) => false,
            (_, Origin::Tcp { address, .. }) => self
                .network
                .is_none_or(|network| network.contains(address.ip())),
        }
    }

    /// Whether nobody who comes without TLS gets as far as a later rule (`hostnossl all all all reject`).
    fn rejects_plain_text_of(&self, later: &Self) -> bool {
        self.method == Method::Reject
            && matches!(self.transport, Transport::Host | Transport::HostPlain)
            && (&self.databases, &self.users) == (&Names::All, &Names::All)
            && match (self.network, later.network) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(all), Some(part)) => all.bits <= part.bits && all.contains(part.address),
            }
    }
}

impl Names {
    fn contain(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.iter().any(|known| known == name),
        }
    }
}

impl Network {
    /// A socket for both families reports a client of IPv4 by an address of IPv6.
    fn contains(self, address: IpAddr) -> bool {
        let beyond = match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differing = ours.to_bits() ^ theirs.to_bits();
                differing
                    .checked_shr(32 - u32::from(self.bits))
                    .unwrap_or(0)
                    != 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differing = ours.to_bits() ^ theirs.to_bits();
                differing
                    .checked_shr(128 - u32::from(self.bits))
                    .unwrap_or(0)
                    != 0
            }
            _ => true,
        };
        !beyond
    }

    fn is_loopback(self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_loopback() && self.bits >= 8,
            IpAddr::V6(address) => address.is_loopback() && self.bits == 128,
        }
    }

    /// # Errors
    /// For addresses of IPv4 in the form of IPv6, which no client has (A1: a rule that can never match would be passed over without a word).
    fn checked(self) -> Result<Self, String> {
        match self.address {
            IpAddr::V6(address) if self.bits >= 96 && address.to_ipv4_mapped().is_some() => Err(
                format!("`{address}` is an address of IPv4: write it as one"),
            ),
            _ => Ok(self),
        }
    }
}

/// A word, and whether it was in quotes and so is no keyword.
type Word = (String, bool);

/// Words of a line; those with commas between them are one list.
fn words(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut lists: Vec<Vec<Word>> = Vec::new();
    let mut characters = line.chars().peekable();
    let mut joined = false;
    while let Some(&next) = characters.peek() {
        if next == '#' {
            break;
        }
        if next.is_whitespace() {
            characters.next();
            continue;
        }
        if next == ',' {
            characters.next();
            if lists.is_empty() || joined {
                return Err("a comma stands alone".into());
            }
            joined = true;
            continue;
        }
        let mut word = (String::new(), false);
        while let Some(&character) = characters.peek() {
            if character.is_whitespace() || character == ',' || character == '#' {
                break;
            }
            characters.next();
            if character != '"' {
                word.0.push(character);
                continue;
            }
            word.1 = true;
            loop {
                match characters.next() {
                    Some('"') => break,
                    Some(character) => word.0.push(character),
                    None => return Err("a quoted name does not end".into()),
                }
            }
        }
        match lists.last_mut() {
            Some(list) if joined => list.push(word),
            _ => lists.push(vec![word]),
        }
        joined = false;
    }
    if joined {
        return Err("a list ends in a comma".into());
    }
    Ok(lists)
}

/// A rule of words; none for an empty line.
fn rule(line: usize, lists: &[Vec<Word>]) -> Result<Option<Rule>, String> {
    let mut lists = lists.iter();
    let Some(transport) = lists.next() else {
        return Ok(None);
    };
    let transport = match single(transport)? {
        "local" => Transport::Local,
        "host" => Transport::Host,
        "hostssl" => Transport::HostTls,
        "hostnossl" => Transport::HostPlain,
        other => return Err(format!("`{other}` is no type of connection")),
    };
    let databases = names(lists.next().ok_or("no database is named")?)?;
    let users = names(lists.next().ok_or("no user is named")?)?;
    let network = if transport == Transport::Local {
        None
    } else {
        let address = single(lists.next().ok_or("no address is given")?)?;
        network(address, &mut lists)?
    };
    let method = match single(lists.next().ok_or("no method is named")?)? {
        "scram-sha-256" => Method::Scram,
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        other => return Err(format!("the method `{other}` is not supported")),
    };
    if lists.next().is_some() {
        return Err("something follows the method".into());
    }
    Ok(Some(Rule {
        line,
        transport,
        databases,
        users,
        network,
        method,
    }))
}

fn single(list: &[Word]) -> Result<&str, String> {
    match list {
        [(word, _)] => Ok(word),
        _ => Err("a list stands where one word belongs".into()),
    }
}

fn names(list: &[Word]) -> Result<Names, String> {
    let mut names = Vec::new();
    for (word, quoted) in list {
        match word.as_str() {
            "all" if !quoted => return Ok(Names::All),
            "sameuser" | "samerole" | "samegroup" | "replication" if !quoted => {
                return Err(format!("`{word}` is not supported"));
            }
            name if !quoted && name.starts_with(['+', '@', '/']) => {
                return Err(format!("`{word}` is not supported"));
            }
            name => names.push(name.to_owned()),
        }
    }
    Ok(Names::These(names))
}

fn network<'w>(
    word: &str,
    rest: &mut impl Iterator<Item = &'w Vec<Word>>,
) -> Result<Option<Network>, String> {
    if word == "all" {
        return Ok(None);
    }
    let parse = |text: &str| -> Result<IpAddr, String> {
        text.parse().map_err(|_| format!("`{text}` is no address"))
    };
    let width = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    if let Some((address, bits)) = word.split_once('/') {
        let address = parse(address)?;
        let bits = bits
            .parse()
            .ok()
            .filter(|bits| *bits <= width(address))
            .ok_or_else(|| format!("`{bits}` is no number of bits of an address"))?;
        return Network { address, bits }.checked().map(Some);
    }
    let address = parse(word)?;
    let mask = parse(single(rest.next().ok_or("an address has no mask")?)?)?;
    if mask.is_ipv4() != address.is_ipv4() {
        return Err("address and mask are of different families".into());
    }
    let (bits, contiguous) = match mask {
        IpAddr::V4(mask) => {
            let ones = mask.to_bits().leading_ones();
            (ones, mask.to_bits().count_ones() == ones)
        }
        IpAddr::V6(mask) => {
            let ones = mask.to_bits().leading_ones();
            (ones, mask.to_bits().count_ones() == ones)
        }
    };
    if !contiguous {
        return Err(format!("`{mask}` is no mask"));
    }
    let bits = u8::try_from(bits).expect("at most 128 bits");
    Network { address, bits }.checked().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str, tls: bool) -> Origin {
        Origin::Tcp {
            address: SocketAddr::new(address.parse().unwrap(), 1),
            tls,
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_none_is_a_refusal() {
        let rules = Rules::parse(
            "# who may come\n\
             host all eve 0.0.0.0/0 reject\n\
             \n\
             hostssl shop,\"all\" ada,eve 10.0.0.0/8 scram-sha-256 # from the office\n\
             host all all 10.1.0.0 255.255.0.0 trust\n\
             local all all scram-sha-256",
        )
        .unwrap();
        let office = tcp("10.1.2.3", true);
        assert_eq!(rules.method(office, "shop", "eve"), Some(Method::Reject));
        assert_eq!(rules.method(office, "shop", "ada"), Some(Method::Scram));
        assert_eq!(rules.method(office, "all", "ada"), Some(Method::Scram));
        assert_eq!(rules.method(office, "bank", "ada"), Some(Method::Trust));
        let plain = tcp("10.2.2.3", false);
        assert_eq!(rules.method(plain, "shop", "ada"), None, "no TLS");
        assert_eq!(rules.method(tcp("::1", true), "shop", "ada"), None);
        assert_eq!(rules.method(Origin::Local, "x", "y"), Some(Method::Scram));
    }

    #[test]
    fn an_ipv4_client_of_a_socket_for_both_families_is_one_of_ipv4() {
        let rules = Rules::parse("host all all 192.168.0.0/16 trust").unwrap();
        let mapped = tcp("::ffff:192.168.7.7", false);
        assert_eq!(rules.method(mapped, "d", "u"), Some(Method::Trust));
        assert_eq!(rules.method(tcp("::ffff:10.0.0.1", false), "d", "u"), None);
    }

    #[test]
    fn a_rule_of_a_family_is_for_clients_of_that_family_only() {
        let (four, six) = (tcp("10.0.0.1", false), tcp("fd00::1", false));
        let mapped = tcp("::ffff:10.0.0.1", false);
        let method = |text, origin| Rules::parse(text).unwrap().method(origin, "d", "u");
        let ours = Some(Method::Trust);
        for (text, of_four, of_six) in [
            ("host all all ::/0 trust", None, ours),
            ("host all all :: :: trust", None, ours),
            ("host all all 0.0.0.0/0 trust", ours, None),
            ("host all all 0.0.0.0 0.0.0.0 trust", ours, None),
            ("host all all all trust", ours, ours),
        ] {
            assert_eq!(method(text, four), of_four, "{text}");
            assert_eq!(method(text, mapped), of_four, "{text}");
            assert_eq!(method(text, six), of_six, "{text}");
        }
        let lone = "host all all fd00::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff trust";
        assert_eq!(method(lone, six), ours);
        assert_eq!(method(lone, tcp("fd00::2", false)), None);
    }

    #[test]
    fn the_standard_rules_want_tls_from_other_machines() {
        let rules = Rules::standard(false);
        for origin in [
            Origin::Local,
            tcp("127.0.0.1", false),
            tcp("::1", false),
            tcp("10.0.0.1", true),
        ] {
            assert_eq!(rules.method(origin, "d", "u"), Some(Method::Scram));
        }
        assert_eq!(rules.method(tcp("10.0.0.1", false), "d", "u"), None);
        let open = Rules::standard(true);
        assert!(open.method(tcp("10.0.0.1", false), "d", "u").is_some());
        assert_eq!(rules.exposure(), None);
        assert_eq!(open.exposure(), Some(Exposure::PlainText(4)));
    }

    #[test]
    fn what_lets_others_in_without_a_password_or_over_plain_text_is_noticed() {
        use Exposure::{PlainText, Trusted};
        for (text, exposure) in [
            ("local all all trust", None),
            ("host all all 127.0.0.1/32 trust", None),
            ("host all all ::1/128 trust", None),
            ("host all all all trust", Some(Trusted(1))),
            ("hostssl all all all trust", Some(Trusted(1))),
            ("host all all 127.0.0.1/7 trust", Some(Trusted(1))),
            ("host all all 10.0.0.0/8 trust", Some(Trusted(1))),
            ("host all all ::1/127 trust", Some(Trusted(1))),
            ("hostssl all all all scram-sha-256", None),
            ("host all all all reject", None),
            ("host all all all scram-sha-256", Some(PlainText(1))),
            (
                "\nhostnossl all eve 10.0.0.1/32 scram-sha-256",
                Some(PlainText(2)),
            ),
            ("host all all 127.0.0.0/8 scram-sha-256", None),
            // Nobody gets as far without TLS.
            (
                "hostnossl all all all reject\nhost all all all scram-sha-256",
                None,
            ),
            (
                "hostnossl all all 10.0.0.0/8 reject\nhost all all 10.1.0.0/16 scram-sha-256",
                None,
            ),
            (
                "hostnossl all all 10.0.0.0/8 reject\nhost all all 11.0.0.0/8 scram-sha-256",
                Some(PlainText(2)),
            ),
            (
                "hostnossl all all 10.0.0.0/8 reject\nhost all all 10.0.0.0/7 scram-sha-256",
                Some(PlainText(2)),
            ),
            (
                "hostnossl all all 0.0.0.0/0 reject\nhost all all all scram-sha-256",
                Some(PlainText(2)),
            ),
            (
                "hostnossl all eve all reject\nhost all all all scram-sha-256",
                Some(PlainText(2)),
            ),
            (
                "hostssl all all all reject\nhost all all all scram-sha-256",
                Some(PlainText(2)),
            ),
        ] {
            let rules = Rules::parse(text).unwrap();
            assert_eq!(rules.exposure(), exposure, "{text}");
        }
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for line in [
            "remote all all trust",
            "host all all trust",
            "host all all 10.0.0.0/33 trust",
            "host all all 10.0.0.0 255.0.255.0 trust",
            "host all all 10.0.0.0 ffff:: trust",
            "host all all example.org trust",
            "host all all ::ffff:127.0.0.1/96 trust",
            "host all all ::ffff:10.0.0.1/128 reject",
            "host all all ::ffff:10.0.0.0 ffff:ffff:ffff:ffff:ffff:ffff:ffff:0 reject",
            "local all all md5",
            "local all +staff trust",
            "local sameuser all trust",
            "local all all trust map=x",
            "local a, all trust",
            "local ,a all trust",
            "local \"a all trust",
            "local all",
        ] {
            let error = Rules::parse(&format!("\n{line}")).unwrap_err();
            assert_eq!(error.line, 2, "{line}");
        }
    }
}
