//! What is said of sequences and identity columns, little of which the parser knows: CREATE and ALTER SEQUENCE with options in any order, ALTER
//! COLUMN … of an identity, the options of one that is made, OVERRIDING. And what ALTER VIEW, ALTER INDEX and ALTER TABLE say in the same words.
//!
//! The syntax trees are the parser's, so what is read here is carried in them as options, behind a name that no statement can have
//! ([`SEQUENCE`], [`IDENTITY`]); [`Clause`] reads them again.

use super::constraints;
use super::dialect::is_word;
use super::table_forms::Form;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AlterTable, AlterTableOperation, CastKind, ColumnOption, DataType, Expr, Ident, ObjectName,
    ObjectNamePart, RenameTableNameKind, SequenceOptions, SqlOption, Statement, Value,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

/// In front of what ALTER SEQUENCE says.
const SEQUENCE: &str =
    "a sequence is altered, by what is said behind; this is longer than any name in a text";
/// The same of ALTER VIEW, ALTER INDEX, ALTER TYPE, and of what ALTER TABLE says that the parser does not know.
const VIEW: &str =
    "a view is altered, by what is said behind; this is longer than any name in a text";
const INDEX: &str =
    "an index is altered, by what is said behind; this is longer than any name in a text";
const TABLE: &str =
    "a table is altered, by what is said behind; this is longer than any name in a text";
const TYPE: &str =
    "a type is altered, by what is said behind; this is longer than any name in a text";
const DOMAIN: &str =
    "a domain is altered, by what is said behind; this is longer than any name in a text";
const EXTENSION: &str =
    "an extension is altered, by what is said behind; this is longer than any name in a text";
/// In front of what is said of a column's identity: the column, then the clauses.
const IDENTITY: &str =
    "the identity of a column, by what is said behind; this is longer than any name in a text";

/// The last column that an INSERT names with OVERRIDING SYSTEM VALUE, and with OVERRIDING USER VALUE.
const OVERRIDING_SYSTEM: &str =
    "values are given for identities, too, as a name that is longer than any name in a text";
const OVERRIDING_USER: &str =
    "values for identities are passed over, as a name that is longer than any name in a text";

/// What INSERT does with values that are given for identity columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Overriding {
    /// Takes them for BY DEFAULT, refuses them for ALWAYS.
    Nothing,
    /// Takes them.
    System,
    /// Passes over them.
    User,
}

impl Overriding {
    /// What an INSERT says, and the columns that it names.
    pub fn of(columns: &[ObjectName]) -> (Self, &[ObjectName]) {
        let Some((last, named)) = columns.split_last() else {
            return (Self::Nothing, columns);
        };
        match last.0.as_slice() {
            [ObjectNamePart::Identifier(name)] if name.value == OVERRIDING_SYSTEM => {
                (Self::System, named)
            }
            [ObjectNamePart::Identifier(name)] if name.value == OVERRIDING_USER => {
                (Self::User, named)
            }
            _ => (Self::Nothing, columns),
        }
    }
}

/// OVERRIDING stands behind the columns, or where they would stand: it becomes the last one.
pub(super) fn overriding(tokens: &mut [TokenWithSpan]) {
    let spoken: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    for at in 1..spoken.len().saturating_sub(2) {
        let [before, first, second, third] =
            [at - 1, at, at + 1, at + 2].map(|number| spoken[number]);
        if !is_word(&tokens[first].token, "overriding") || !is_word(&tokens[third].token, "value") {
            continue;
        }
        let name = if is_word(&tokens[second].token, "system") {
            OVERRIDING_SYSTEM
        } else if is_word(&tokens[second].token, "user") {
            OVERRIDING_USER
        } else {
            continue;
        };
        let name = Token::make_word(name, Some('"'));
        let (first_is, second_is, third_is) = if tokens[before].token == Token::RParen {
            tokens[before].token = Token::Comma;
            (name, Token::RParen, Token::Whitespace(Whitespace::Space))
        } else {
            (Token::LParen, name, Token::RParen)
        };
        tokens[first].token = first_is;
        tokens[second].token = second_is;
        tokens[third].token = third_is;
    }
}

/// What an ALTER TABLE alters that was written as another statement, or says what the parser does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Altered {
    Sequence,
    View,
    Index,
    Table,
    Type,
    Domain,
    Extension,
}

impl Altered {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Sequence, SEQUENCE),
        (Self::View, VIEW),
        (Self::Index, INDEX),
        (Self::Table, TABLE),
        (Self::Type, TYPE),
        (Self::Domain, DOMAIN),
        (Self::Extension, EXTENSION),
    ];
}

/// What a statement says of a sequence or of an identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Clause {
    As(DataType),
    Increment(Expr),
    /// `None`: NO MINVALUE.
    Minimum(Option<Expr>),
    Maximum(Option<Expr>),
    Start(Expr),
    /// `None`: where it starts.
    Restart(Option<Expr>),
    Cache(Expr),
    Cycle(bool),
    OwnedBy(Vec<Ident>),
    /// SEQUENCE NAME of the sequence of an identity.
    Name(Vec<Ident>),
    /// SET SCHEMA.
    Schema(Ident),
    /// ADD GENERATED, or GENERATED of a column that is made; whether it is ALWAYS.
    Identity(bool),
    /// SET GENERATED; whether it is ALWAYS.
    Generated(bool),
    /// DROP IDENTITY; whether it may be none.
    DropIdentity(bool),
    /// SET LOGGED, SET UNLOGGED; whether it is LOGGED.
    Logged(bool),
    /// SET STORAGE of a column, with its kind.
    Storage(Ident),
    /// SET STATISTICS of a column.
    Statistics,
    /// UPDATE of an extension, to a version.
    Update(Option<Ident>),
    /// What is said of a table in words that the parser does not know.
    Form(Form, Option<Ident>),
}

impl Clause {
    /// What it is called where something is said of it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::As(_) => "as",
            Self::Increment(_) => "increment",
            Self::Minimum(_) => "minvalue",
            Self::Maximum(_) => "maxvalue",
            Self::Start(_) => "start",
            Self::Restart(_) => "restart",
            Self::Cache(_) => "cache",
            Self::Cycle(_) => "cycle",
            Self::OwnedBy(_) => "owned_by",
            Self::Name(_) => "sequence_name",
            Self::Schema(_) => "schema",
            Self::Identity(_) => "identity",
            Self::Generated(_) => "generated",
            Self::DropIdentity(_) => "drop_identity",
            Self::Logged(_) => "logged",
            Self::Storage(_) => "storage",
            Self::Statistics => "statistics",
            Self::Update(_) => "update",
            Self::Form(form, _) => form.words(),
        }
    }

    fn carried(self) -> SqlOption {
        let key = Ident::new(self.word());
        let flag = |flag: bool| Some(Expr::Value(Value::Boolean(flag).into()));
        let value = match self {
            Self::As(data_type) => Some(Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(Value::Null.into())),
                data_type,
                array: false,
                format: None,
            }),
            Self::Increment(value) | Self::Start(value) | Self::Cache(value) => Some(value),
            Self::Minimum(value) | Self::Maximum(value) | Self::Restart(value) => value,
            Self::Cycle(value)
            | Self::Identity(value)
            | Self::Generated(value)
            | Self::DropIdentity(value)
            | Self::Logged(value) => flag(value),
            Self::OwnedBy(name) | Self::Name(name) => Some(Expr::CompoundIdentifier(name)),
            Self::Schema(name) | Self::Storage(name) => Some(Expr::Identifier(name)),
            Self::Update(name) | Self::Form(_, name) => name.map(Expr::Identifier),
            Self::Statistics => None,
        };
        match value {
            Some(value) => SqlOption::KeyValue { key, value },
            None => SqlOption::Ident(key),
        }
    }

    fn read(option: &SqlOption) -> Option<Self> {
        let (key, value) = match option {
            SqlOption::Ident(key) => (key, None),
            SqlOption::KeyValue { key, value } => (key, Some(value)),
            _ => return None,
        };
        let own = value.cloned();
        let flag = matches!(value, Some(Expr::Value(value)) if value.value == Value::Boolean(true));
        let name = match value {
            Some(Expr::CompoundIdentifier(name)) => name.clone(),
            _ => Vec::new(),
        };
        Some(match (key.value.as_str(), value) {
            ("as", Some(Expr::Cast { data_type, .. })) => Self::As(data_type.clone()),
            ("increment", _) => Self::Increment(own?),
            ("minvalue", _) => Self::Minimum(own),
            ("maxvalue", _) => Self::Maximum(own),
            ("start", _) => Self::Start(own?),
            ("restart", _) => Self::Restart(own),
            ("cache", _) => Self::Cache(own?),
            ("cycle", _) => Self::Cycle(flag),
            ("owned_by", _) => Self::OwnedBy(name),
            ("sequence_name", _) => Self::Name(name),
            ("schema", Some(Expr::Identifier(name))) => Self::Schema(name.clone()),
            ("identity", _) => Self::Identity(flag),
            ("generated", _) => Self::Generated(flag),
            ("drop_identity", _) => Self::DropIdentity(flag),
            ("logged", _) => Self::Logged(flag),
            ("storage", Some(Expr::Identifier(name))) => Self::Storage(name.clone()),
            ("statistics", _) => Self::Statistics,
            ("update", Some(Expr::Identifier(version))) => Self::Update(Some(version.clone())),
            ("update", _) => Self::Update(None),
            (words, value) => {
                let name = match value {
                    Some(Expr::Identifier(name)) => Some(name.clone()),
                    _ => None,
                };
                Self::Form(Form::of(words)?, name)
            }
        })
    }

    /// An option of CREATE SEQUENCE.
    pub fn of_option(option: &SequenceOptions) -> Self {
        match option {
            SequenceOptions::IncrementBy(by, _) => Self::Increment(by.clone()),
            SequenceOptions::MinValue(value) => Self::Minimum(value.clone()),
            SequenceOptions::MaxValue(value) => Self::Maximum(value.clone()),
            SequenceOptions::StartWith(value, _) => Self::Start(value.clone()),
            SequenceOptions::Cache(value) => Self::Cache(value.clone()),
            SequenceOptions::Cycle(no) => Self::Cycle(!no),
        }
    }

    /// What an ALTER TABLE alters that is no table, or says of a table that the parser does not know. Another operation may stand behind it.
    pub fn of_altered(operations: &[AlterTableOperation]) -> Option<(Altered, Vec<Self>)> {
        let AlterTableOperation::SetOptionsParens { options } = operations.first()? else {
            return None;
        };
        let mut all = Altered::ALL.into_iter();
        all.find_map(|(what, marker)| {
            let clauses = carried_behind(marker, options)?;
            Some((what, read_all(clauses)))
        })
    }

    /// What an operation of ALTER TABLE says of a column's identity.
    pub fn of_identity(options: &[SqlOption]) -> Option<(&Ident, Vec<Self>)> {
        match carried_behind(IDENTITY, options)? {
            [SqlOption::Ident(column), clauses @ ..] => Some((column, read_all(clauses))),
            _ => None,
        }
    }

    /// What the definition of a column says of its identity.
    pub fn of_column(options: &[SqlOption]) -> Option<Vec<Self>> {
        carried_behind(IDENTITY, options).map(read_all)
    }
}

fn read_all(options: &[SqlOption]) -> Vec<Clause> {
    options.iter().filter_map(Clause::read).collect()
}

fn carried_behind<'o>(marker: &str, options: &'o [SqlOption]) -> Option<&'o [SqlOption]> {
    match options {
        [SqlOption::Ident(first), rest @ ..] if first.value == marker => Some(rest),
        _ => None,
    }
}

fn carried(
    marker: &str,
    column: Option<Ident>,
    clauses: impl IntoIterator<Item = Clause>,
) -> Vec<SqlOption> {
    let marker = SqlOption::Ident(Ident::with_quote('"', marker));
    let column = column.map(SqlOption::Ident);
    let clauses = clauses.into_iter().map(Clause::carried);
    std::iter::once(marker)
        .chain(column)
        .chain(clauses)
        .collect()
}

/// CREATE and ALTER SEQUENCE, and ALTER TABLE, which may change identities; `None` for what the parser is to read itself.
pub(super) fn statement(parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
    if parser.peek_keyword(Keyword::CREATE) {
        let second = nth_keyword(parser, 1);
        let temporary = matches!(second, Keyword::TEMP | Keyword::TEMPORARY);
        if nth_keyword(parser, 1 + usize::from(temporary)) != Keyword::SEQUENCE {
            return None;
        }
        for _ in 0..2 + usize::from(temporary) {
            parser.advance_token();
        }
        return Some(create_sequence(parser, temporary));
    }
    if !parser.peek_keyword(Keyword::ALTER) {
        return None;
    }
    let what = match nth_keyword(parser, 1) {
        Keyword::SEQUENCE => Altered::Sequence,
        Keyword::VIEW => Altered::View,
        Keyword::INDEX => Altered::Index,
        Keyword::TABLE => Altered::Table,
        _ => return None,
    };
    parser.advance_token();
    parser.advance_token();
    Some(match what {
        Altered::Table => alter_table(parser),
        _ => alter(parser, what),
    })
}

fn create_sequence(parser: &mut Parser<'_>, temporary: bool) -> Result<Statement, ParserError> {
    let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let (mut data_type, mut owned_by) = (None, None);
    let mut sequence_options = Vec::new();
    loop {
        let at = parser.peek_token_ref().clone();
        sequence_options.push(match option(parser)? {
            None => break,
            Some(Clause::As(given)) if data_type.is_none() => {
                data_type = Some(given);
                continue;
            }
            Some(Clause::OwnedBy(given)) if owned_by.is_none() => {
                owned_by = Some(ObjectName::from(given));
                continue;
            }
            Some(Clause::Increment(by)) => SequenceOptions::IncrementBy(by, true),
            Some(Clause::Minimum(value)) => SequenceOptions::MinValue(value),
            Some(Clause::Maximum(value)) => SequenceOptions::MaxValue(value),
            Some(Clause::Start(value)) => SequenceOptions::StartWith(value, true),
            Some(Clause::Cache(value)) => SequenceOptions::Cache(value),
            Some(Clause::Cycle(cycles)) => SequenceOptions::Cycle(!cycles),
            Some(_) => return parser.expected_ref("an option of a new sequence", &at),
        });
    }
    Ok(Statement::CreateSequence {
        temporary,
        if_not_exists,
        name,
        data_type,
        sequence_options,
        owned_by,
    })
}

/// What stands behind ALTER VIEW, ALTER INDEX or ALTER SEQUENCE.
fn alter(parser: &mut Parser<'_>, what: Altered) -> Result<Statement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_object_name(false)?;
    let mut clauses = Vec::new();
    let mut operation = None;
    if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        let name = ObjectName::from(vec![parser.parse_identifier()?]);
        operation = Some(AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(name),
        });
    } else if what == Altered::Index {
        if !parser.peek_keyword(Keyword::SET) {
            return parser.expected_ref("RENAME TO", parser.peek_token_ref());
        }
        operation = Some(self::operation(parser)?);
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        clauses.push(Clause::Schema(parser.parse_identifier()?));
    } else if what == Altered::View {
        operation = Some(parser.parse_alter_table_operation()?);
    } else if parser.parse_keywords(&[Keyword::OWNER, Keyword::TO]) {
        let new_owner = parser.parse_owner()?;
        operation = Some(AlterTableOperation::OwnerTo { new_owner });
    } else {
        while let Some(option) = option(parser)? {
            clauses.push(option);
        }
        if clauses.is_empty() {
            return parser.expected_ref("an option of a sequence", parser.peek_token_ref());
        }
    }
    Ok(altering(
        parser,
        what,
        (name, if_exists),
        clauses,
        operation,
    ))
}

/// The statement that carries what is said, or another operation behind it.
pub(super) fn altering(
    parser: &Parser<'_>,
    what: Altered,
    (name, if_exists): (ObjectName, bool),
    clauses: Vec<Clause>,
    operation: Option<AlterTableOperation>,
) -> Statement {
    let marker = Altered::ALL.iter().find(|(own, _)| *own == what);
    let options = carried(marker.map_or("", |(_, marker)| marker), None, clauses);
    let first = AlterTableOperation::SetOptionsParens { options };
    let operations = std::iter::once(first).chain(operation).collect();
    altered(parser, name, if_exists, false, operations)
}

fn alter_table(parser: &mut Parser<'_>) -> Result<Statement, ParserError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let only = parser.parse_keyword(Keyword::ONLY);
    let name = parser.parse_object_name(false)?;
    // With the tables that inherit of it: there are none.
    if !only {
        let _ = parser.consume_token(&Token::Mul);
    }
    if parser.parse_keywords(&[Keyword::SET, Keyword::SCHEMA]) {
        let clauses = vec![Clause::Schema(parser.parse_identifier()?)];
        let named = (name, if_exists);
        return Ok(altering(parser, Altered::Table, named, clauses, None));
    }
    let operations = parser.parse_comma_separated(operation)?;
    Ok(altered(parser, name, if_exists, only, operations))
}

fn altered(
    parser: &Parser<'_>,
    name: ObjectName,
    if_exists: bool,
    only: bool,
    operations: Vec<AlterTableOperation>,
) -> Statement {
    Statement::AlterTable(AlterTable {
        name,
        if_exists,
        only,
        operations,
        location: None,
        on_cluster: None,
        table_type: None,
        end_token: AttachedToken(parser.get_current_token().clone()),
    })
}

/// One operation of ALTER TABLE.
fn operation(parser: &mut Parser<'_>) -> Result<AlterTableOperation, ParserError> {
    if let Some(form) = Form::read(parser) {
        let (form, name) = form?;
        let options = carried(TABLE, None, [Clause::Form(form, name)]);
        return Ok(AlterTableOperation::SetOptionsParens { options });
    }
    if parser.peek_keyword(Keyword::SET) {
        let second = &parser.peek_nth_token_ref(1).token;
        let logged = is_word(second, "logged");
        if logged || is_word(second, "unlogged") {
            parser.advance_token();
            parser.advance_token();
            let options = carried(TABLE, None, [Clause::Logged(logged)]);
            return Ok(AlterTableOperation::SetOptionsParens { options });
        }
    }
    if !parser.peek_keyword(Keyword::ALTER) {
        return parser.parse_alter_table_operation();
    }
    if nth_keyword(parser, 1) == Keyword::CONSTRAINT {
        return constraints::altered(parser);
    }
    // ALTER, maybe COLUMN, and the name.
    let named = 1 + usize::from(nth_keyword(parser, 1) == Keyword::COLUMN);
    let third = &parser.peek_nth_token_ref(named + 2).token;
    let (statistics, storage) = (is_word(third, "statistics"), is_word(third, "storage"));
    if nth_keyword(parser, named + 1) == Keyword::SET && (statistics || storage) {
        for _ in 0..named {
            parser.advance_token();
        }
        let column = parser.parse_identifier()?;
        parser.advance_token();
        parser.advance_token();
        let clause = if storage {
            Clause::Storage(parser.parse_identifier()?)
        } else {
            // -1: the default.
            let _ = parser.consume_token(&Token::Minus);
            parser.parse_literal_uint()?;
            Clause::Statistics
        };
        let options = carried(IDENTITY, Some(column), [clause]);
        return Ok(AlterTableOperation::SetOptionsParens { options });
    }
    if let Some(passed) = said_of_column(parser, named) {
        return passed;
    }
    let words = [1, 2].map(|more| nth_keyword(parser, named + more));
    let own = match words {
        [Keyword::ADD, Keyword::GENERATED]
        | [Keyword::DROP, Keyword::IDENTITY]
        | [Keyword::RESTART, _] => true,
        [Keyword::SET, word] => matches!(
            word,
            Keyword::GENERATED
                | Keyword::AS
                | Keyword::INCREMENT
                | Keyword::MINVALUE
                | Keyword::MAXVALUE
                | Keyword::NO
                | Keyword::START
                | Keyword::RESTART
                | Keyword::CACHE
                | Keyword::CYCLE
                | Keyword::OWNED
                | Keyword::SEQUENCE
        ),
        _ => false,
    };
    if !own {
        return parser.parse_alter_table_operation();
    }
    for _ in 0..named {
        parser.advance_token();
    }
    let column = parser.parse_identifier()?;
    let mut clauses = Vec::new();
    if parser.parse_keyword(Keyword::ADD) {
        clauses = identity(parser)?;
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::IDENTITY]) {
        let may_be_none = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        clauses.push(Clause::DropIdentity(may_be_none));
    } else {
        while let Some(clause) = change_of_identity(parser)? {
            clauses.push(clause);
        }
    }
    let options = carried(IDENTITY, Some(column), clauses);
    Ok(AlterTableOperation::SetOptionsParens { options })
}

fn nth_keyword(parser: &Parser<'_>, at: usize) -> Keyword {
    match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

/// RESTART, SET GENERATED, or SET and an option of a sequence.
fn change_of_identity(parser: &mut Parser<'_>) -> Result<Option<Clause>, ParserError> {
    if parser.peek_keyword(Keyword::RESTART) {
        return option(parser);
    }
    if !parser.parse_keyword(Keyword::SET) {
        return Ok(None);
    }
    if parser.parse_keyword(Keyword::GENERATED) {
        return always(parser).map(|always| Some(Clause::Generated(always)));
    }
    match option(parser)? {
        Some(Clause::As(_) | Clause::Restart(_) | Clause::OwnedBy(_)) | None => {
            parser.prev_token();
            parser.expected_ref("an option of the identity", parser.peek_token_ref())
        }
        Some(clause) => Ok(Some(clause)),
    }
}

/// ALWAYS or BY DEFAULT.
fn always(parser: &mut Parser<'_>) -> Result<bool, ParserError> {
    if parser.parse_keyword(Keyword::ALWAYS) {
        return Ok(true);
    }
    parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
    Ok(false)
}

/// An identity in the definition of a column; `None` if that is not what comes next.
pub(super) fn column_option(parser: &mut Parser<'_>) -> Option<Result<ColumnOption, ParserError>> {
    let words = [0, 1, 2, 3, 4].map(|at| nth_keyword(parser, at));
    match words {
        [
            Keyword::GENERATED,
            Keyword::ALWAYS,
            Keyword::AS,
            Keyword::IDENTITY,
            _,
        ]
        | [
            Keyword::GENERATED,
            Keyword::BY,
            Keyword::DEFAULT,
            Keyword::AS,
            Keyword::IDENTITY,
        ] => {}
        _ => return None,
    }
    let clauses = identity(parser);
    Some(clauses.map(|clauses| ColumnOption::Options(carried(IDENTITY, None, clauses))))
}

/// GENERATED … AS IDENTITY with its options.
fn identity(parser: &mut Parser<'_>) -> Result<Vec<Clause>, ParserError> {
    parser.expect_keyword(Keyword::GENERATED)?;
    let mut clauses = vec![Clause::Identity(always(parser)?)];
    parser.expect_keywords(&[Keyword::AS, Keyword::IDENTITY])?;
    if parser.consume_token(&Token::LParen) {
        while let Some(option) = option(parser)? {
            clauses.push(option);
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(clauses)
}

/// An option of a sequence, if one comes next.
fn option(parser: &mut Parser<'_>) -> Result<Option<Clause>, ParserError> {
    let words = [
        Keyword::AS,
        Keyword::INCREMENT,
        Keyword::MINVALUE,
        Keyword::MAXVALUE,
        Keyword::NO,
        Keyword::START,
        Keyword::RESTART,
        Keyword::CACHE,
        Keyword::CYCLE,
        Keyword::OWNED,
        Keyword::SEQUENCE,
    ];
    let Some(word) = parser.parse_one_of_keywords(&words) else {
        return Ok(None);
    };
    Ok(Some(match word {
        Keyword::AS => Clause::As(parser.parse_data_type()?),
        Keyword::INCREMENT => {
            let _ = parser.parse_keyword(Keyword::BY);
            Clause::Increment(parser.parse_number()?)
        }
        Keyword::MINVALUE => Clause::Minimum(Some(parser.parse_number()?)),
        Keyword::MAXVALUE => Clause::Maximum(Some(parser.parse_number()?)),
        Keyword::START => {
            let _ = parser.parse_keyword(Keyword::WITH);
            Clause::Start(parser.parse_number()?)
        }
        Keyword::RESTART => {
            let with = parser.parse_keyword(Keyword::WITH);
            let numeric = matches!(
                parser.peek_token_ref().token,
                Token::Number(..) | Token::Minus | Token::Plus
            );
            Clause::Restart(match with || numeric {
                true => Some(parser.parse_number()?),
                false => None,
            })
        }
        Keyword::CACHE => Clause::Cache(parser.parse_number()?),
        Keyword::CYCLE => Clause::Cycle(true),
        Keyword::OWNED => {
            parser.expect_keyword(Keyword::BY)?;
            Clause::OwnedBy(dotted(parser)?)
        }
        Keyword::SEQUENCE => {
            // NAME is no keyword that is reserved.
            if !is_word(&parser.peek_token_ref().token, "name") {
                return parser.expected_ref("NAME", parser.peek_token_ref());
            }
            parser.advance_token();
            Clause::Name(dotted(parser)?)
        }
        _ => match parser.expect_one_of_keywords(&[
            Keyword::MINVALUE,
            Keyword::MAXVALUE,
            Keyword::CYCLE,
        ])? {
            Keyword::MINVALUE => Clause::Minimum(None),
            Keyword::MAXVALUE => Clause::Maximum(None),
            _ => Clause::Cycle(false),
        },
    }))
}

/// A name with points in it.
fn dotted(parser: &mut Parser<'_>) -> Result<Vec<Ident>, ParserError> {
    let name = parser.parse_object_name(false)?;
    let parts = name.0.into_iter().map(|part| match part {
        ObjectNamePart::Identifier(ident) => Ok(ident),
        ObjectNamePart::Function(_) => Err(ParserError::ParserError("a name".to_owned())),
    });
    parts.collect()
}

/// SET COMPRESSION, SET and RESET (n_distinct) of a column, which change nothing here: passed over as SET STATISTICS is.
fn said_of_column(
    parser: &mut Parser<'_>,
    named: usize,
) -> Option<Result<AlterTableOperation, ParserError>> {
    let word = nth_keyword(parser, named + 1);
    let third = &parser.peek_nth_token_ref(named + 2).token;
    let compression = word == Keyword::SET && is_word(third, "compression");
    let options = matches!(word, Keyword::SET | Keyword::RESET) && *third == Token::LParen;
    if !compression && !options {
        return None;
    }
    for _ in 0..named {
        parser.advance_token();
    }
    let read = |parser: &mut Parser<'_>| {
        let column = parser.parse_identifier()?;
        parser.advance_token();
        parser.advance_token();
        if compression {
            let method = parser.parse_identifier()?.value.to_ascii_lowercase();
            if !["pglz", "lz4", "default"].contains(&&*method) {
                return parser.expected_ref("a method of compression", parser.peek_token_ref());
            }
        }
        let mut more = options;
        while more {
            let name = parser.parse_identifier()?.value.to_ascii_lowercase();
            if !["n_distinct", "n_distinct_inherited"].contains(&&*name) {
                return parser.expected_ref("an option of a column", parser.peek_token_ref());
            }
            if word == Keyword::SET {
                parser.expect_token(&Token::Eq)?;
                let _ = parser.consume_token(&Token::Minus);
                parser.parse_number_value()?;
            }
            more = parser.consume_token(&Token::Comma);
            if !more {
                parser.expect_token(&Token::RParen)?;
            }
        }
        let options = carried(IDENTITY, Some(column), [Clause::Statistics]);
        Ok(AlterTableOperation::SetOptionsParens { options })
    };
    Some(read(parser))
}
