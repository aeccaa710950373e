//! Where things stand in a statement's text, for errors: where PostgreSQL says that they are.
//!
//! The parser keeps where names and literals stand. What it does not keep is found in the text: signs and words between or in front of these.

use super::Binder;
use sqlparser::ast::{self, Expr as E};
use sqlparser::tokenizer::Location;

impl Binder<'_> {
    /// Place of a syntax tree in the text.
    pub fn place(&self, node: &impl ast::Spanned) -> Option<u32> {
        self.place_of(node.span().start)
    }

    /// Place of a location that is one in this text.
    pub(crate) fn place_of(&self, start: Location) -> Option<u32> {
        crate::parse::position(self.text, start.line, start.column)
    }

    /// Where an error is that is an expression's own: at the operator, where there is one. `None` where that is not known.
    #[cold]
    pub(crate) fn place_of_error(&self, node: &E) -> Option<u32> {
        let not = |negated: bool, word: &'static str| if negated { "not" } else { word };
        match node {
            E::BinaryOp { left, op, .. } => self.place_behind(left, &op.to_string()),
            E::AnyOp {
                left, compare_op, ..
            }
            | E::AllOp {
                left, compare_op, ..
            } => self.place_behind(left, &compare_op.to_string()),
            E::InList { expr, negated, .. } | E::InSubquery { expr, negated, .. } => {
                self.place_behind(expr, not(*negated, "in"))
            }
            E::Between { expr, negated, .. } => self.place_behind(expr, not(*negated, "between")),
            E::Like { expr, negated, .. } => self.place_behind(expr, not(*negated, "like")),
            E::ILike { expr, negated, .. } => self.place_behind(expr, not(*negated, "ilike")),
            E::SimilarTo { expr, negated, .. } => self.place_behind(expr, not(*negated, "similar")),
            E::IsDistinctFrom(left, _) | E::IsNotDistinctFrom(left, _) => {
                self.place_behind(left, "is")
            }
            E::UnaryOp { op, expr } => self.place_before(&**expr, &op.to_string()),
            E::Cast {
                kind: ast::CastKind::DoubleColon,
                expr,
                ..
            } => self.place_behind(expr, "::"),
            E::Cast { expr, .. } => self.place_before(&**expr, "cast"),
            E::Extract { expr, .. } => self.place_before(&**expr, "extract"),
            E::Subquery(query) => self.place_before(&**query, "("),
            E::Substring { expr, .. } => self.place_before(&**expr, "sub"),
            _ => self.place(node),
        }
    }

    /// Where a sign or a word stands, the first behind an expression.
    fn place_behind(&self, node: &E, word: &str) -> Option<u32> {
        let end = ast::Spanned::span(node).end;
        let end = self.place_of(end)?;
        let from = byte_of(self.text, end);
        // Told as `<>`, and often written otherwise.
        let other = if word == "<>" { "!=" } else { word };
        let found = |word| found(&self.text[from..], word);
        let at = found(word).or_else(|| found(other))?;
        place_at(self.text, from + at)
    }

    /// Where one stands, the last in front of a syntax tree.
    pub(crate) fn place_before(&self, node: &impl ast::Spanned, word: &str) -> Option<u32> {
        let start = self.place(node)?;
        let text = &self.text[..byte_of(self.text, start)];
        let text = text.to_ascii_lowercase();
        place_at(self.text, text.rfind(word)?)
    }
}

/// Where it begins, as far as that is seen without a look at the whole.
pub(super) fn start_of(node: &E) -> Option<Location> {
    Some(match node {
        E::Value(value) => value.span.start,
        E::Identifier(ident) => ident.span.start,
        E::CompoundIdentifier(parts) => parts.first()?.span.start,
        E::Function(function) => ast::Spanned::span(function.name.0.first()?).start,
        _ => return None,
    })
}

/// The first place of a sign or a word, in any case.
fn found(text: &str, word: &str) -> Option<usize> {
    text.to_ascii_lowercase().find(&word.to_ascii_lowercase())
}

/// The byte at a place.
fn byte_of(text: &str, place: u32) -> usize {
    let before = usize::try_from(place.saturating_sub(1)).unwrap_or(usize::MAX);
    let found = text.char_indices().nth(before);
    found.map_or(text.len(), |(at, _)| at)
}

/// The place of a byte.
fn place_at(text: &str, byte: usize) -> Option<u32> {
    u32::try_from(text[..byte].chars().count() + 1).ok()
}
