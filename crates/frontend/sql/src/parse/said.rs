//! Definitions that the parser does not know, or not as PostgreSQL has them: rights (GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, DROP and REASSIGN OWNED), CLUSTER,
//! ALTER DATABASE … OWNER TO and RENAME TO.
//!
//! They are read where they stand, so that what is wrong is told there, and again from their words when they run ([`definition`]): a syntax tree of the parser's
//! has no room for them.

use super::commands::Command;
use super::dialect::is_word;
use super::{fragment, tokens};
use crate::error::Result as Found;
use sqlparser::ast::{Ident, ObjectName, Statement};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

type Result<T> = std::result::Result<T, ParserError>;

/// A definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Definition {
    /// Of a table, by an index or by the one of the last time; of all tables that have one.
    Cluster {
        table: Option<ObjectName>,
        index: Option<Ident>,
    },
    Rights(RightsChange),
    /// GRANT and REVOKE of roles.
    Members {
        give: bool,
        roles: Vec<Ident>,
        members: Vec<Ident>,
        /// WITH ADMIN OPTION; ADMIN OPTION FOR.
        admin: bool,
        /// GRANTED BY.
        grantor: Option<Ident>,
    },
    /// ALTER DEFAULT PRIVILEGES.
    Defaults {
        roles: Vec<Ident>,
        schemas: Vec<Ident>,
        change: RightsChange,
    },
    DropOwned {
        roles: Vec<Ident>,
        cascade: bool,
    },
    ReassignOwned {
        roles: Vec<Ident>,
        to: Ident,
    },
    /// ALTER DATABASE … OWNER TO.
    DatabaseOwner {
        database: Ident,
        to: Ident,
    },
    /// ALTER DATABASE … RENAME TO.
    DatabaseName {
        database: Ident,
        to: Ident,
    },
    /// ALTER GROUP … RENAME TO.
    RoleName {
        role: Ident,
        to: Ident,
    },
}

/// GRANT and REVOKE of rights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RightsChange {
    pub give: bool,
    /// WITH GRANT OPTION; GRANT OPTION FOR.
    pub option: bool,
    /// Names, each with the columns that it is for. ALL is one of them.
    pub rights: Vec<(String, Vec<Ident>)>,
    pub on: On,
    pub grantees: Vec<Ident>,
    /// GRANTED BY.
    pub grantor: Option<Ident>,
    pub cascade: bool,
}

/// What rights are on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum On {
    Tables(Vec<ObjectName>),
    Sequences(Vec<ObjectName>),
    Schemas(Vec<Ident>),
    Databases(Vec<Ident>),
    Types(Vec<ObjectName>),
    Domains(Vec<ObjectName>),
    /// `function`, `procedure` or `routine`; names, and the types of their arguments where these are said.
    Routines(&'static str, Vec<(ObjectName, Option<Vec<String>>)>),
    Languages(Vec<Ident>),
    Tablespaces(Vec<Ident>),
    Wrappers(Vec<Ident>),
    Servers(Vec<Ident>),
    LargeObjects(Vec<String>),
    Parameters,
    AllTables(Vec<Ident>),
    AllSequences(Vec<Ident>),
    AllRoutines(Vec<Ident>),
    /// The objects of ALTER DEFAULT PRIVILEGES: `tables`, `sequences`, `functions`, `types`, `schemas`.
    Made(&'static str),
}

/// One of these statements; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement>> {
    begins(parser)?;
    let start = parser.index();
    let read = read(parser);
    Some(read.map(|_| {
        // The index is that of the token behind the last.
        let said = (start..parser.index()).map(|at| tokens::written(&parser.token_at(at).token));
        Command::Said(said.collect()).carried()
    }))
}

/// The definition that words say.
///
/// # Errors
/// `42601` for words that say none.
pub(crate) fn definition(said: &str) -> Found<Definition> {
    fragment::said(said, read)
}

fn begins(parser: &Parser<'_>) -> Option<()> {
    let is = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
    let own = is(0, "grant")
        || is(0, "revoke")
        || is(0, "cluster")
        || is(0, "alter") && is(1, "default") && is(2, "privileges")
        || (is(0, "drop") || is(0, "reassign")) && is(1, "owned")
        || is(0, "alter") && is(1, "database") && (is(3, "owner") || is(3, "rename"))
        || is(0, "alter") && is(1, "group") && is(3, "rename");
    own.then_some(())
}

/// Reads one.
fn read(parser: &mut Parser<'_>) -> Result<Definition> {
    if takes(parser, "cluster") {
        return cluster(parser);
    }
    if takes(parser, "grant") {
        return grant(parser);
    }
    if takes(parser, "revoke") {
        return revoke(parser);
    }
    if takes(parser, "drop owned") {
        wants(parser, "by")?;
        let roles = names(parser)?;
        let cascade = behavior(parser);
        return Ok(Definition::DropOwned { roles, cascade });
    }
    if takes(parser, "reassign owned") {
        wants(parser, "by")?;
        let roles = names(parser)?;
        wants(parser, "to")?;
        let to = parser.parse_identifier()?;
        return Ok(Definition::ReassignOwned { roles, to });
    }
    if takes(parser, "alter database") {
        let database = parser.parse_identifier()?;
        if takes(parser, "owner") {
            wants(parser, "to")?;
            let to = parser.parse_identifier()?;
            return Ok(Definition::DatabaseOwner { database, to });
        }
        wants(parser, "rename to")?;
        let to = parser.parse_identifier()?;
        return Ok(Definition::DatabaseName { database, to });
    }
    if takes(parser, "alter group") {
        let role = parser.parse_identifier()?;
        wants(parser, "rename to")?;
        let to = parser.parse_identifier()?;
        return Ok(Definition::RoleName { role, to });
    }
    wants(parser, "alter default privileges")?;
    defaults(parser)
}

/// Whether these words come next; they are behind then.
fn takes(parser: &mut Parser<'_>, words: &str) -> bool {
    let is = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
    let all = words.split(' ').enumerate().all(|(at, word)| is(at, word));
    if all {
        for _ in words.split(' ') {
            parser.advance_token();
        }
    }
    all
}

fn wants(parser: &mut Parser<'_>, words: &str) -> Result<()> {
    match takes(parser, words) {
        true => Ok(()),
        false => parser.expected_ref(&words.to_uppercase(), parser.peek_token_ref()),
    }
}

fn names(parser: &mut Parser<'_>) -> Result<Vec<Ident>> {
    parser.parse_comma_separated(|parser| parser.parse_identifier())
}

fn object_names(parser: &mut Parser<'_>) -> Result<Vec<ObjectName>> {
    parser.parse_comma_separated(|parser| parser.parse_object_name(false))
}

/// CASCADE or RESTRICT, if one of them is said.
fn behavior(parser: &mut Parser<'_>) -> bool {
    let cascade = takes(parser, "cascade");
    if !cascade {
        let _ = takes(parser, "restrict");
    }
    cascade
}

/// `[(VERBOSE)] table [USING index]`, or `index ON table`.
fn cluster(parser: &mut Parser<'_>) -> Result<Definition> {
    if parser.consume_token(&Token::LParen) {
        loop {
            wants(parser, "verbose")?;
            let _ = takes(parser, "true") || takes(parser, "on") || takes(parser, "off");
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    } else {
        let _ = takes(parser, "verbose");
    }
    if matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        return Ok(Definition::Cluster {
            table: None,
            index: None,
        });
    }
    let mut table = parser.parse_object_name(false)?;
    let mut index = None;
    if takes(parser, "using") {
        index = Some(parser.parse_identifier()?);
    } else if takes(parser, "on") {
        index = table.0.pop().and_then(|part| part.as_ident().cloned());
        table = parser.parse_object_name(false)?;
    }
    Ok(Definition::Cluster {
        table: Some(table),
        index,
    })
}

/// Rights, or roles, which look alike up to ON or TO.
fn rights(parser: &mut Parser<'_>) -> Result<Vec<(String, Vec<Ident>)>> {
    parser.parse_comma_separated(|parser| {
        let name = parser.parse_identifier()?;
        let mut word = match name.quote_style {
            Some(_) => name.value,
            None => name.value.to_lowercase(),
        };
        if word == "all" {
            let _ = takes(parser, "privileges");
        } else if word == "alter" && takes(parser, "system") {
            word = "alter system".to_owned();
        }
        let mut columns = Vec::new();
        if parser.consume_token(&Token::LParen) {
            columns = names(parser)?;
            parser.expect_token(&Token::RParen)?;
        }
        Ok((word, columns))
    })
}

/// Whether roles are given: no ON stands in front of TO or FROM.
fn is_of_roles(parser: &Parser<'_>) -> bool {
    // By their places: looking a number of tokens ahead passes over all of them each time.
    let mut at = parser.index();
    loop {
        let token = &parser.token_at(at).token;
        if is_word(token, "on") {
            return false;
        }
        let stops = matches!(token, Token::EOF | Token::SemiColon);
        if stops || is_word(token, "to") || is_word(token, "from") {
            return true;
        }
        at += 1;
    }
}

/// Who is given something, or loses it.
fn grantees(parser: &mut Parser<'_>) -> Result<Vec<Ident>> {
    parser.parse_comma_separated(|parser| {
        let _ = takes(parser, "group");
        parser.parse_identifier()
    })
}

/// GRANTED BY.
fn granted_by(parser: &mut Parser<'_>) -> Result<Option<Ident>> {
    let said = takes(parser, "granted by");
    said.then(|| parser.parse_identifier()).transpose()
}

fn grant(parser: &mut Parser<'_>) -> Result<Definition> {
    if is_of_roles(parser) {
        let roles = names(parser)?;
        wants(parser, "to")?;
        let members = grantees(parser)?;
        let admin = takes(parser, "with admin option");
        let grantor = granted_by(parser)?;
        return Ok(Definition::Members {
            give: true,
            roles,
            members,
            admin,
            grantor,
        });
    }
    give(parser, on).map(Definition::Rights)
}

fn give(parser: &mut Parser<'_>, on: fn(&mut Parser<'_>) -> Result<On>) -> Result<RightsChange> {
    let rights = rights(parser)?;
    wants(parser, "on")?;
    let on = on(parser)?;
    wants(parser, "to")?;
    let grantees = grantees(parser)?;
    let option = takes(parser, "with grant option");
    let grantor = granted_by(parser)?;
    Ok(RightsChange {
        give: true,
        option,
        rights,
        on,
        grantees,
        grantor,
        cascade: false,
    })
}

fn revoke(parser: &mut Parser<'_>) -> Result<Definition> {
    let admin = takes(parser, "admin option for");
    if admin || !is_word(&parser.peek_token_ref().token, "grant") && is_of_roles(parser) {
        let roles = names(parser)?;
        wants(parser, "from")?;
        let members = grantees(parser)?;
        let grantor = granted_by(parser)?;
        behavior(parser);
        return Ok(Definition::Members {
            give: false,
            roles,
            members,
            admin,
            grantor,
        });
    }
    take(parser, on).map(Definition::Rights)
}

fn take(parser: &mut Parser<'_>, on: fn(&mut Parser<'_>) -> Result<On>) -> Result<RightsChange> {
    let option = takes(parser, "grant option for");
    let rights = rights(parser)?;
    wants(parser, "on")?;
    let on = on(parser)?;
    wants(parser, "from")?;
    let grantees = grantees(parser)?;
    let grantor = granted_by(parser)?;
    let cascade = behavior(parser);
    Ok(RightsChange {
        give: false,
        option,
        rights,
        on,
        grantees,
        grantor,
        cascade,
    })
}

/// What stands behind ON.
fn on(parser: &mut Parser<'_>) -> Result<On> {
    for (words, of) in [
        (
            "all tables in schema",
            On::AllTables as fn(Vec<Ident>) -> On,
        ),
        ("all sequences in schema", On::AllSequences),
        ("all functions in schema", On::AllRoutines),
        ("all procedures in schema", On::AllRoutines),
        ("all routines in schema", On::AllRoutines),
        ("foreign data wrapper", On::Wrappers),
        ("foreign server", On::Servers),
    ] {
        if takes(parser, words) {
            return names(parser).map(of);
        }
    }
    if takes(parser, "large object") {
        let numbers = parser.parse_comma_separated(|parser| parser.parse_number_value())?;
        let numbers = numbers.into_iter().map(|number| number.to_string());
        return Ok(On::LargeObjects(numbers.collect()));
    }
    // A table may be called by one of these words.
    let follows = matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
        && !is_word(&parser.peek_nth_token_ref(1).token, "to")
        && !is_word(&parser.peek_nth_token_ref(1).token, "from");
    if !follows {
        return object_names(parser).map(On::Tables);
    }
    for (word, of) in [
        ("schema", On::Schemas as fn(Vec<Ident>) -> On),
        ("database", On::Databases),
        ("language", On::Languages),
        ("tablespace", On::Tablespaces),
    ] {
        if takes(parser, word) {
            return names(parser).map(of);
        }
    }
    for (word, of) in [
        ("sequence", On::Sequences as fn(Vec<ObjectName>) -> On),
        ("type", On::Types),
        ("domain", On::Domains),
        ("table", On::Tables),
    ] {
        if takes(parser, word) {
            return object_names(parser).map(of);
        }
    }
    for word in ["function", "procedure", "routine"] {
        if takes(parser, word) {
            let all = parser.parse_comma_separated(super::absent::routine)?;
            return Ok(On::Routines(word, all));
        }
    }
    if takes(parser, "parameter") {
        object_names(parser)?;
        return Ok(On::Parameters);
    }
    object_names(parser).map(On::Tables)
}

fn defaults(parser: &mut Parser<'_>) -> Result<Definition> {
    let (mut roles, mut schemas) = (Vec::new(), Vec::new());
    loop {
        if takes(parser, "in schema") {
            schemas.extend(names(parser)?);
        } else if takes(parser, "for role") || takes(parser, "for user") {
            roles.extend(names(parser)?);
        } else {
            break;
        }
    }
    let change = if takes(parser, "grant") {
        give(parser, made)?
    } else {
        wants(parser, "revoke")?;
        take(parser, made)?
    };
    Ok(Definition::Defaults {
        roles,
        schemas,
        change,
    })
}

/// What ALTER DEFAULT PRIVILEGES is about.
fn made(parser: &mut Parser<'_>) -> Result<On> {
    for (word, kind) in [
        ("tables", "tables"),
        ("sequences", "sequences"),
        ("functions", "functions"),
        ("routines", "functions"),
        ("types", "types"),
        ("schemas", "schemas"),
    ] {
        if takes(parser, word) {
            return Ok(On::Made(kind));
        }
    }
    parser.expected_ref("what is made", parser.peek_token_ref())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    fn said(text: &str) -> Definition {
        match Command::of(&statements(text).unwrap().remove(0)) {
            Some(Command::Said(said)) => definition(&said).unwrap(),
            other => panic!("{text}: {other:?}"),
        }
    }

    fn change(text: &str) -> RightsChange {
        match said(text) {
            Definition::Rights(change) => change,
            other => panic!("{text}: {other:?}"),
        }
    }

    fn values(names: &[Ident]) -> Vec<&str> {
        names.iter().map(|name| &*name.value).collect()
    }

    #[test]
    fn rights_are_read_again_as_they_were_written() {
        let own =
            change("grant SELECT, update (a, \"B\") on s.t, u to \"X\", group y with grant option");
        assert!(own.give && own.option);
        assert_eq!(own.rights[0], ("select".to_owned(), Vec::new()));
        assert_eq!(values(&own.rights[1].1), ["a", "B"]);
        assert!(matches!(&own.on, On::Tables(names) if names.len() == 2));
        assert_eq!(values(&own.grantees), ["X", "y"]);
        let own = change(
            "revoke grant option for all privileges on all tables in schema s from public cascade",
        );
        assert!(!own.give && own.option && own.cascade);
        assert_eq!(own.rights, [("all".to_owned(), Vec::new())]);
        assert!(matches!(own.on, On::AllTables(_)));
        let own = change("grant execute on function s.f(int, text[]), g to x");
        let On::Routines("function", all) = own.on else {
            panic!("{own:?}");
        };
        assert_eq!(all[0].1.as_ref().map(Vec::len), Some(2));
        assert_eq!(all[1].1, None);
        assert!(matches!(
            change("grant usage on type to x").on,
            On::Tables(_)
        ));
        assert!(matches!(
            change("grant usage on type a.b to x").on,
            On::Types(_)
        ));
    }

    #[test]
    fn other_definitions_are_read_again_as_they_were_written() {
        let Definition::Members {
            give: false,
            admin: true,
            roles,
            members,
            grantor: Some(grantor),
        } = said("revoke admin option for a, b from c granted by \"D\" restrict")
        else {
            panic!();
        };
        assert_eq!(
            (values(&roles), values(&members)),
            (vec!["a", "b"], vec!["c"])
        );
        assert_eq!(grantor.value, "D");
        assert!(matches!(
            said("alter database d owner to current_user"),
            Definition::DatabaseOwner { .. }
        ));
        assert!(matches!(
            said("alter database d rename to e"),
            Definition::DatabaseName { .. }
        ));
        assert!(matches!(
            said("alter group g rename to \"H\""),
            Definition::RoleName { to, .. } if to.value == "H"
        ));
        let Definition::Defaults {
            roles,
            schemas,
            change,
        } = said(
            "alter default privileges for role a in schema s, t revoke all on routines from b",
        )
        else {
            panic!();
        };
        assert_eq!(
            (values(&roles), values(&schemas)),
            (vec!["a"], vec!["s", "t"])
        );
        assert_eq!(change.on, On::Made("functions"));
        let Definition::Cluster {
            table: Some(table),
            index: Some(index),
        } = said("cluster i on s.t")
        else {
            panic!();
        };
        assert_eq!(
            (table.to_string(), index.value),
            ("s.t".to_owned(), "i".to_owned())
        );
        assert!(matches!(
            said("cluster (verbose)"),
            Definition::Cluster { table: None, .. }
        ));
        assert!(matches!(
            said("drop owned by a cascade"),
            Definition::DropOwned { cascade: true, .. }
        ));
        for text in [
            "grant select on t",
            "grant select t to x",
            "revoke select on t to x",
            "cluster t using",
            "alter default privileges grant select on views to x",
            "drop owned a",
            "reassign owned by a",
        ] {
            statements(text).unwrap_err();
        }
    }
}
