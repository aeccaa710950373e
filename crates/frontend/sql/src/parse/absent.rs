//! DROP of what there never is here: functions, triggers, materialized views and their like. Migrations write it with IF EXISTS.

use super::commands::Command;
use super::dialect::is_word;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart, RenameTable, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// How objects of a kind are named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Plain,
    /// Among tables and views.
    Relation,
    /// With the types of its arguments.
    Routine,
    /// `name ON table`.
    OfTable,
}

/// A kind: how it is called, how it is named, and the words of its DROP.
pub(crate) type Kind = (&'static str, Shape, &'static str);

const KINDS: [Kind; 25] = [
    (
        "materialized view",
        Shape::Relation,
        "DROP MATERIALIZED VIEW",
    ),
    ("foreign table", Shape::Relation, "DROP FOREIGN TABLE"),
    ("function", Shape::Routine, "DROP FUNCTION"),
    ("procedure", Shape::Routine, "DROP PROCEDURE"),
    ("routine", Shape::Routine, "DROP ROUTINE"),
    ("aggregate", Shape::Routine, "DROP AGGREGATE"),
    ("trigger", Shape::OfTable, "DROP TRIGGER"),
    ("rule", Shape::OfTable, "DROP RULE"),
    ("policy", Shape::OfTable, "DROP POLICY"),
    ("collation", Shape::Plain, "DROP COLLATION"),
    ("conversion", Shape::Plain, "DROP CONVERSION"),
    ("server", Shape::Plain, "DROP SERVER"),
    (
        "foreign-data wrapper",
        Shape::Plain,
        "DROP FOREIGN DATA WRAPPER",
    ),
    ("publication", Shape::Plain, "DROP PUBLICATION"),
    ("subscription", Shape::Plain, "DROP SUBSCRIPTION"),
    ("event trigger", Shape::Plain, "DROP EVENT TRIGGER"),
    ("language", Shape::Plain, "DROP LANGUAGE"),
    ("statistics object", Shape::Plain, "DROP STATISTICS"),
    ("tablespace", Shape::Plain, "DROP TABLESPACE"),
    ("database", Shape::Plain, "DROP DATABASE"),
    ("access method", Shape::Plain, "DROP ACCESS METHOD"),
    (
        "text search configuration",
        Shape::Plain,
        "DROP TEXT SEARCH CONFIGURATION",
    ),
    (
        "text search dictionary",
        Shape::Plain,
        "DROP TEXT SEARCH DICTIONARY",
    ),
    (
        "text search parser",
        Shape::Plain,
        "DROP TEXT SEARCH PARSER",
    ),
    (
        "text search template",
        Shape::Plain,
        "DROP TEXT SEARCH TEMPLATE",
    ),
];

/// A DROP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Absent {
    pub kind: Kind,
    pub if_exists: bool,
    pub names: Vec<Name>,
}

/// What it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Name {
    pub name: ObjectName,
    /// The types of its arguments, if it says them; `*` of an aggregate.
    pub arguments: Option<Vec<String>>,
    pub on: Option<ObjectName>,
}

impl Absent {
    /// As the tables of a RENAME TABLE.
    pub(super) fn carried(self) -> (ObjectName, Vec<RenameTable>) {
        let how = if self.if_exists { "if exists" } else { "plain" };
        let first = ObjectName::from(vec![Ident::new(self.kind.0), Ident::new(how)]);
        let names = self.names.into_iter().map(|own| {
            let arguments = own.arguments.map(|all| {
                let all = all.into_iter().map(|ty| Ident::with_quote('"', ty));
                ObjectName::from(
                    std::iter::once(Ident::new("("))
                        .chain(all)
                        .collect::<Vec<_>>(),
                )
            });
            RenameTable {
                old_name: own.name,
                new_name: own.on.or(arguments).unwrap_or(ObjectName(Vec::new())),
            }
        });
        (first, names.collect())
    }

    /// Of what [`Absent::carried`] has made.
    pub(super) fn of(first: &ObjectName, rest: &[RenameTable]) -> Option<Self> {
        let parts = |name: &ObjectName| -> Vec<String> {
            let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
            parts.map(|part| part.value.clone()).collect()
        };
        let first = parts(first);
        let kind = *KINDS
            .iter()
            .find(|kind| *kind.0 == **first.first().unwrap_or(&String::new()))?;
        let names = rest.iter().map(|own| {
            let behind = parts(&own.new_name);
            let of_table = kind.1 == Shape::OfTable;
            Name {
                name: own.old_name.clone(),
                arguments: (!of_table && !behind.is_empty()).then(|| behind[1..].to_vec()),
                on: of_table.then(|| own.new_name.clone()),
            }
        });
        Some(Self {
            kind,
            if_exists: first.get(1).is_some_and(|how| how == "if exists"),
            names: names.collect(),
        })
    }
}

/// One of these statements; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let is = |at: usize, word: &str| is_word(&parser.peek_nth_token_ref(at).token, word);
    if !is(0, "drop") {
        return None;
    }
    let skipped = usize::from(is(1, "procedural") && is(2, "language"));
    let count = |kind: &Kind| kind.2.split(' ').count();
    let named = |kind: &&Kind| {
        let mut words = kind.2.split(' ').enumerate().skip(1);
        words.all(|(at, word)| is(skipped + at, &word.to_ascii_lowercase()))
    };
    let kind = *KINDS.iter().find(named)?;
    for _ in 0..skipped + count(&kind) {
        parser.advance_token();
    }
    Some(drop(parser, kind))
}

fn drop(parser: &mut Parser<'_>, kind: Kind) -> Result<Statement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = match kind.1 {
        Shape::OfTable => vec![name(parser, kind)?],
        _ => parser.parse_comma_separated(|parser| name(parser, kind))?,
    };
    if kind.0 == "database" {
        let with = parser.parse_keyword(Keyword::WITH);
        if with || parser.peek_token_ref().token == Token::LParen {
            parser.expect_token(&Token::LParen)?;
            // There is no other session in a database that is not there.
            while is_word(&parser.peek_token_ref().token, "force") {
                parser.advance_token();
                let _ = parser.consume_token(&Token::Comma);
            }
            parser.expect_token(&Token::RParen)?;
        }
    }
    let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
    let absent = Absent {
        kind,
        if_exists,
        names,
    };
    Ok(Command::DropAbsent(absent).carried())
}

fn name(parser: &mut Parser<'_>, kind: Kind) -> Result<Name, ParserError> {
    let mut own = Name {
        name: parser.parse_object_name(false)?,
        arguments: None,
        on: None,
    };
    match kind.1 {
        Shape::OfTable => {
            parser.expect_keyword(Keyword::ON)?;
            own.on = Some(parser.parse_object_name(false)?);
        }
        Shape::Routine if parser.consume_token(&Token::LParen) => {
            own.arguments = Some(arguments(parser)?);
        }
        _ => {}
    }
    Ok(own)
}

/// The name of a routine, and the types of its arguments if they are said.
pub(super) fn routine(
    parser: &mut Parser<'_>,
) -> Result<(ObjectName, Option<Vec<String>>), ParserError> {
    let kind = ("", Shape::Routine, "");
    name(parser, kind).map(|own| (own.name, own.arguments))
}

/// `[mode] [name] type, …)`.
fn arguments(parser: &mut Parser<'_>) -> Result<Vec<String>, ParserError> {
    let mut all = Vec::new();
    if parser.consume_token(&Token::Mul) {
        parser.expect_token(&Token::RParen)?;
        return Ok(vec!["*".to_owned()]);
    }
    while !parser.consume_token(&Token::RParen) {
        let mode = ["in", "out", "inout", "variadic"];
        let mode = mode
            .iter()
            .find(|word| is_word(&parser.peek_token_ref().token, word));
        if mode.is_some() {
            parser.advance_token();
        }
        let mut ty = parser.parse_data_type()?;
        // What was read was a name.
        if !matches!(parser.peek_token_ref().token, Token::Comma | Token::RParen) {
            ty = parser.parse_data_type()?;
        }
        if mode != Some(&"out") {
            all.push(ty.to_string());
        }
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            break;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::parse::statements;

    #[test]
    fn what_is_dropped_is_read_again_as_it_was_written() {
        let absent = |text: &str| match Command::of(&statements(text).unwrap().remove(0)) {
            Some(Command::DropAbsent(absent)) => absent,
            other => panic!("{text}: {other:?}"),
        };
        let found =
            absent("drop function if exists a.f(x int, out y text, double precision), g cascade");
        assert_eq!(
            (found.kind.0, found.if_exists, found.names.len()),
            ("function", true, 2)
        );
        assert_eq!(found.names[0].name.to_string(), "a.f");
        let types = found.names[0].arguments.clone().unwrap();
        assert_eq!(types.len(), 2, "{types:?}");
        assert_eq!(found.names[1].arguments, None);
        let found = absent("drop trigger t on s.r restrict");
        assert_eq!(found.names[0].on.as_ref().unwrap().to_string(), "s.r");
        assert!(!found.if_exists);
        assert_eq!(absent("drop procedural language l").kind.0, "language");
        assert_eq!(
            absent("drop aggregate a(*)").names[0].arguments,
            Some(vec!["*".to_owned()])
        );
        assert_eq!(
            absent("DROP FOREIGN DATA WRAPPER w").kind.0,
            "foreign-data wrapper"
        );
        for text in [
            "drop trigger t",
            "drop function f(",
            "drop server",
            "drop rule a, b on t",
        ] {
            statements(text).unwrap_err();
        }
    }
}
