//! CREATE, ALTER and DROP DOMAIN, of which the parser knows a part.
//!
//! What is said of a new domain stands in any order, and some of it is no constraint: each clause is carried as one of the constraints of the parser's tree, behind a name
//! that no statement can have ([`CLAUSE`]); [`DomainClause`] reads them again. ALTER DOMAIN is carried in an ALTER TABLE, as in [`super::sequences`]; DROP DOMAIN in a DROP
//! TYPE that names [`CLAUSE`] as its table.

use super::dialect::is_word;
use super::sequences::{self, Altered, Clause};
use sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, CheckConstraint, ColumnOption, CreateDomain, Expr,
    Ident, ObjectName, ObjectNamePart, ObjectType, RenameTableNameKind, Statement, TableConstraint,
    Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// In front of a clause.
const CLAUSE: &str =
    "what is said of a domain that is made; this is longer than any name in a text";

/// What is said of a domain that is made.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum DomainClause {
    Default(Expr),
    /// NOT NULL, or NULL.
    Null(bool),
    Collate(ObjectName),
    Check(Option<Ident>, Expr),
    /// What a domain cannot have.
    Refused(Refused),
}

/// What a domain cannot have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    Unique,
    PrimaryKey,
    ForeignKey,
    Deferrable,
    NoInherit,
}

impl Refused {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Unique, "unique"),
        (Self::PrimaryKey, "primary key"),
        (Self::ForeignKey, "foreign key"),
        (Self::Deferrable, "deferrable"),
        (Self::NoInherit, "no inherit"),
    ];
}

impl DomainClause {
    fn carried(self) -> TableConstraint {
        let mark = |word: &str, inner: Option<Expr>| {
            let names = [Ident::with_quote('"', CLAUSE), Ident::with_quote('"', word)];
            let names = names.into_iter().map(Expr::Identifier);
            (None, Expr::Tuple(names.chain(inner).collect()))
        };
        let (name, expr) = match self {
            Self::Check(name, expr) => (name, expr),
            Self::Default(expr) => mark("default", Some(expr)),
            Self::Null(may_be) => {
                let flag = Expr::Value(Value::Boolean(may_be).into());
                mark("null", Some(flag))
            }
            Self::Collate(name) => {
                let parts = name.0.into_iter().filter_map(|part| match part {
                    ObjectNamePart::Identifier(ident) => Some(ident),
                    ObjectNamePart::Function(_) => None,
                });
                mark("collate", Some(Expr::CompoundIdentifier(parts.collect())))
            }
            Self::Refused(what) => {
                let word = Refused::ALL.iter().find(|(own, _)| *own == what);
                mark(word.map_or("", |(_, word)| word), None)
            }
        };
        TableConstraint::Check(CheckConstraint {
            name,
            expr: Box::new(expr),
            enforced: None,
        })
    }

    fn read(constraint: &TableConstraint) -> Option<Self> {
        let TableConstraint::Check(check) = constraint else {
            return None;
        };
        let plain = || Self::Check(check.name.clone(), (*check.expr).clone());
        let Expr::Tuple(parts) = &*check.expr else {
            return Some(plain());
        };
        let [Expr::Identifier(mark), Expr::Identifier(word), inner @ ..] = parts.as_slice() else {
            return Some(plain());
        };
        if mark.value != CLAUSE {
            return Some(plain());
        }
        Some(match (word.value.as_str(), inner) {
            ("default", [expr]) => Self::Default(expr.clone()),
            ("null", [Expr::Value(flag)]) => Self::Null(flag.value == Value::Boolean(true)),
            ("collate", [Expr::CompoundIdentifier(parts)]) => {
                Self::Collate(ObjectName::from(parts.clone()))
            }
            (word, _) => Self::Refused(Refused::ALL.iter().find(|(_, own)| *own == word)?.0),
        })
    }

    /// What a CREATE DOMAIN says behind its type, in order.
    pub fn of(create: &CreateDomain) -> Vec<Self> {
        create.constraints.iter().filter_map(Self::read).collect()
    }
}

/// Whether a DROP TYPE was written as DROP DOMAIN.
pub(crate) fn drops_domains(table: Option<&ObjectName>) -> bool {
    let parts = table.map_or(&[][..], |name| &name.0);
    matches!(parts, [ObjectNamePart::Identifier(mark)] if mark.value == CLAUSE)
}

/// One of these statements; `None` for any other.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    let word = |at, word| is_word(&parser.peek_nth_token_ref(at).token, word);
    if !word(1, "domain") {
        return None;
    }
    let read = if word(0, "create") {
        create
    } else if word(0, "alter") {
        alter
    } else if word(0, "drop") {
        drop_domains
    } else {
        return None;
    };
    parser.advance_token();
    parser.advance_token();
    Some(read(parser))
}

fn create(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = parser.parse_object_name(false)?;
    let _ = parser.parse_keyword(Keyword::AS);
    let data_type = parser.parse_data_type()?;
    let mut constraints = Vec::new();
    while let Some(clause) = clause(parser)? {
        constraints.push(clause.carried());
    }
    Ok(Statement::CreateDomain(CreateDomain {
        name,
        data_type,
        collation: None,
        default: None,
        constraints,
    }))
}

fn clause(parser: &mut Parser<'_>) -> Result<Option<DomainClause>, ParserError> {
    let name = match parser.parse_keyword(Keyword::CONSTRAINT) {
        true => Some(parser.parse_identifier()?),
        false => None,
    };
    if parser.parse_keyword(Keyword::CHECK) {
        parser.expect_token(&Token::LParen)?;
        let expr = parser.parse_expr()?;
        parser.expect_token(&Token::RParen)?;
        return Ok(Some(DomainClause::Check(name, expr)));
    }
    if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        return Ok(Some(DomainClause::Null(false)));
    }
    if parser.parse_keyword(Keyword::NULL) {
        return Ok(Some(DomainClause::Null(true)));
    }
    if parser.peek_keyword(Keyword::DEFAULT) {
        // As that of a column: NOT NULL behind it is no part of it.
        return match parser.parse_optional_column_option()? {
            Some(ColumnOption::Default(expr)) => Ok(Some(DomainClause::Default(expr))),
            _ => parser.expected_ref("a default", parser.peek_token_ref()),
        };
    }
    if parser.parse_keyword(Keyword::UNIQUE) {
        return Ok(Some(DomainClause::Refused(Refused::Unique)));
    }
    if parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
        return Ok(Some(DomainClause::Refused(Refused::PrimaryKey)));
    }
    if parser.parse_keyword(Keyword::REFERENCES) {
        parser.parse_object_name(false)?;
        if parser.peek_token_ref().token == Token::LParen {
            parser
                .parse_parenthesized_column_list(sqlparser::parser::IsOptional::Mandatory, false)?;
        }
        return Ok(Some(DomainClause::Refused(Refused::ForeignKey)));
    }
    if name.is_some() {
        return parser.expected_ref("a constraint", parser.peek_token_ref());
    }
    if parser.parse_keyword(Keyword::COLLATE) {
        let name = parser.parse_object_name(false)?;
        return Ok(Some(DomainClause::Collate(name)));
    }
    if parser.parse_keyword(Keyword::DEFERRABLE)
        || parser.parse_keywords(&[Keyword::NOT, Keyword::DEFERRABLE])
        || parser.parse_keyword(Keyword::INITIALLY)
    {
        let _ = parser.parse_one_of_keywords(&[Keyword::DEFERRED, Keyword::IMMEDIATE]);
        return Ok(Some(DomainClause::Refused(Refused::Deferrable)));
    }
    if is_word(&parser.peek_token_ref().token, "no")
        && is_word(&parser.peek_nth_token_ref(1).token, "inherit")
    {
        parser.advance_token();
        parser.advance_token();
        return Ok(Some(DomainClause::Refused(Refused::NoInherit)));
    }
    Ok(None)
}

fn drop_domains(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
    let cascade = parser.parse_keyword(Keyword::CASCADE);
    let restrict = !cascade && parser.parse_keyword(Keyword::RESTRICT);
    Ok(Statement::Drop {
        object_type: ObjectType::Type,
        if_exists,
        names,
        cascade,
        restrict,
        purge: false,
        temporary: false,
        table: Some(ObjectName::from(vec![Ident::with_quote('"', CLAUSE)])),
    })
}

fn alter(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let name = parser.parse_object_name(false)?;
    let named = (name, false);
    let of_value = |op| AlterTableOperation::AlterColumn {
        column_name: Ident::new("value"),
        op,
    };
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let clauses = vec![Clause::Schema(parser.parse_identifier()?)];
        return Ok(sequences::altering(
            parser,
            Altered::Domain,
            named,
            clauses,
            None,
        ));
    }
    let operation = if parser.parse_keywords(&[Keyword::SET, Keyword::DEFAULT]) {
        let value = parser.parse_expr()?;
        of_value(AlterColumnOperation::SetDefault { value })
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::DEFAULT]) {
        of_value(AlterColumnOperation::DropDefault)
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        of_value(AlterColumnOperation::SetNotNull)
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::NOT, Keyword::NULL]) {
        of_value(AlterColumnOperation::DropNotNull)
    } else if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        let name = ObjectName::from(vec![parser.parse_identifier()?]);
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(name),
        }
    } else if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
        let new_owner = parser.parse_owner()?;
        AlterTableOperation::OwnerTo { new_owner }
    } else {
        let at = parser.peek_token_ref().clone();
        let operation = parser.parse_alter_table_operation()?;
        let is_own = matches!(
            operation,
            AlterTableOperation::AddConstraint { .. }
                | AlterTableOperation::DropConstraint { .. }
                | AlterTableOperation::RenameConstraint { .. }
                | AlterTableOperation::ValidateConstraint { .. }
        );
        if !is_own {
            return parser.expected_ref("what is to be altered of a domain", &at);
        }
        operation
    };
    Ok(sequences::altering(
        parser,
        Altered::Domain,
        named,
        Vec::new(),
        Some(operation),
    ))
}
