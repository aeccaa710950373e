//! IF and CASE.

use super::variables::CodeVariable;
use super::{Session, Silent};
use crate::error::{Result, SqlError};
use crate::parse::Step;

impl Session {
    /// The statements behind the first condition that is true.
    pub(super) fn chosen<'s>(
        &mut self,
        branches: &'s [(String, Vec<Step>)],
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Option<&'s [Step]>> {
        for (condition, steps) in branches {
            if self.code_condition(condition, handled, sink)? {
                return Ok(Some(steps));
            }
        }
        Ok(None)
    }

    /// The same, of conditions that compare a value, which is a variable for them.
    pub(super) fn case_chosen<'s>(
        &mut self,
        value: Option<&(String, String)>,
        branches: &'s [(String, Vec<Step>)],
        handled: Option<&SqlError>,
        sink: &mut Silent<'_>,
    ) -> Result<Option<&'s [Step]>> {
        let outer = self.code_scope.len();
        if let Some((name, text)) = value {
            let (value, ty) = self.code_value(text, handled, sink)?;
            self.code_scope.push(CodeVariable::of(name, value, ty));
            self.check_size()?;
        }
        let chosen = self.chosen(branches, handled, sink);
        self.code_scope.truncate(outer);
        chosen
    }
}
