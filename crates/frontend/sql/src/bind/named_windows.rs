//! What WINDOW names, and what OVER means by that.
//!
//! Definitions are resolved once, in their order: a chain of them costs no more than its text, and what one takes from another is shared.

use super::{Binder, COMPARED_MAX, folded};
use crate::error::{Result, SqlError};
use crate::sqlstate;
use sqlparser::ast;
use std::rc::Rc;
use vellum_base::maps::HashMap;

/// A window with what it has taken from the one that it was built on.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub partition_by: Rc<[ast::Expr]>,
    pub order_by: Rc<[ast::OrderByExpr]>,
    pub frame: Option<Rc<ast::WindowFrame>>,
}

/// The windows of a query's WINDOW, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedWindows(HashMap<String, Definition>);

impl Binder<'_> {
    /// Reads WINDOW, each of whose definitions may be built on one before it.
    ///
    /// # Errors
    /// `42P20` for a name that is there already, and for what a definition may not say anew; `42704`; `54000` for too many.
    pub fn name_windows(&mut self, definitions: &[ast::NamedWindowDefinition]) -> Result<()> {
        SqlError::check_room(definitions.len(), COMPARED_MAX, "windows with names")?;
        self.named_windows = NamedWindows::default();
        for ast::NamedWindowDefinition(name, definition) in definitions {
            self.step()?;
            let own = folded(name);
            if self.named_windows.0.contains_key(&own) {
                let message = format!("window \"{own}\" is already defined");
                let error = SqlError::new(sqlstate::WINDOWING_ERROR, message);
                return Err(error.at(self.place_of(name.span.start)));
            }
            let ast::NamedWindowExpr::WindowSpec(spec) = definition else {
                return Err(SqlError::syntax("a window without parentheses"));
            };
            let definition = self.on_base(spec, false)?;
            self.named_windows.0.insert(own, definition);
        }
        Ok(())
    }

    /// What OVER names, with what it is built on.
    pub(super) fn window_definition(&self, over: &ast::WindowType) -> Result<Definition> {
        match over {
            ast::WindowType::NamedWindow(name) => {
                let found = self.named_window(&folded(name)).cloned();
                found.map_err(|error| error.at(self.place_of(name.span.start)))
            }
            ast::WindowType::WindowSpec(spec) => self.on_base(spec, true),
        }
    }

    /// A window with what it takes from the one that it names.
    fn on_base(&self, spec: &ast::WindowSpec, in_over: bool) -> Result<Definition> {
        let mut own = Definition {
            partition_by: spec.partition_by.as_slice().into(),
            order_by: spec.order_by.as_slice().into(),
            frame: spec.window_frame.clone().map(Rc::new),
        };
        let Some(base) = &spec.window_name else {
            return Ok(own);
        };
        let place = self.place_of(base.span.start);
        let name = folded(base);
        let wrong = |message: String| SqlError::new(sqlstate::WINDOWING_ERROR, message).at(place);
        let base = self.named_window(&name).map_err(|error| error.at(place))?;
        if !own.partition_by.is_empty() {
            let message = format!("cannot override PARTITION BY clause of window \"{name}\"");
            return Err(wrong(message));
        }
        if !own.order_by.is_empty() && !base.order_by.is_empty() {
            let message = format!("cannot override ORDER BY clause of window \"{name}\"");
            return Err(wrong(message));
        }
        if base.frame.is_some() {
            let message = format!("cannot copy window \"{name}\" because it has a frame clause");
            let alone = in_over && own.order_by.is_empty() && own.frame.is_none();
            return Err(match alone {
                true => wrong(message).with_hint("Omit the parentheses in this OVER clause."),
                false => wrong(message),
            });
        }
        own.partition_by = base.partition_by.clone();
        if own.order_by.is_empty() {
            own.order_by = base.order_by.clone();
        }
        Ok(own)
    }

    fn named_window(&self, name: &str) -> Result<&Definition> {
        self.named_windows.0.get(name).ok_or_else(|| {
            let message = format!("window \"{name}\" does not exist");
            SqlError::new(sqlstate::UNDEFINED_OBJECT, message)
        })
    }
}
