//! ALTER TABLE … ALTER CONSTRAINT, which the parser does not know.
//!
//! It is carried in the syntax tree as a constraint that is added over an index, whose name no text can have ([`ALTERED`]).

use sqlparser::ast::{
    AlterTableOperation, ConstraintCharacteristics, ConstraintUsingIndex, Ident, TableConstraint,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};

/// The index of a constraint that is altered.
const ALTERED: &str =
    "the index of a constraint that is not added but altered, longer than any name in a text";

/// ALTER CONSTRAINT, a name, and when the constraint is checked.
pub(super) fn altered(parser: &mut Parser<'_>) -> Result<AlterTableOperation, ParserError> {
    parser.expect_keywords(&[Keyword::ALTER, Keyword::CONSTRAINT])?;
    let constraint = ConstraintUsingIndex {
        name: Some(parser.parse_identifier()?),
        index_name: Ident::with_quote('"', ALTERED),
        characteristics: parser.parse_constraint_characteristics()?,
    };
    Ok(AlterTableOperation::AddConstraint {
        constraint: TableConstraint::UniqueUsingIndex(constraint),
        not_valid: false,
    })
}

/// The constraint that an ADD CONSTRAINT alters, and what is said of when it is checked, if it carries that.
pub(crate) fn altered_constraint(
    constraint: &TableConstraint,
) -> Option<(&Ident, Option<&ConstraintCharacteristics>)> {
    match constraint {
        TableConstraint::UniqueUsingIndex(own) if own.index_name.value == ALTERED => {
            Some((own.name.as_ref()?, own.characteristics.as_ref()))
        }
        _ => None,
    }
}
