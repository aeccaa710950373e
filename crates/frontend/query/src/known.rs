//! What DataFusion is told of a function of ours, whatever it computes.

use crate::types::Kind;
use arrow::datatypes::DataType;
use datafusion::logical_expr::{Signature, TypeSignature, Volatility};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use vellum_row::Type;

/// A function with a number of its own in a query. Two are one if they have one number.
#[derive(Debug)]
pub(crate) struct Known<F: ?Sized> {
    number: u32,
    /// What plans call it.
    pub name: String,
    /// What computes.
    pub function: Arc<F>,
    /// Types of its arguments.
    pub arguments: Vec<Type>,
    /// The type of its value.
    pub result: Type,
    /// Of these arguments and no others.
    pub signature: Signature,
}

impl<F: ?Sized> Known<F> {
    /// It is called `kind` and its number.
    pub fn new(
        kind: char,
        number: u32,
        function: Arc<F>,
        arguments: &[Kind],
        result: Type,
        volatility: Volatility,
    ) -> Self {
        let types: Vec<DataType> = arguments.iter().map(|kind| kind.data_type()).collect();
        let signature = match types.is_empty() {
            true => TypeSignature::Nullary,
            false => TypeSignature::Exact(types),
        };
        Self {
            number,
            name: format!("{kind}{number}"),
            function,
            arguments: arguments.iter().map(|kind| kind.ty).collect(),
            result,
            signature: Signature::new(signature, volatility),
        }
    }
}

impl<F: ?Sized> PartialEq for Known<F> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.function, &other.function)
    }
}

impl<F: ?Sized> Eq for Known<F> {}

impl<F: ?Sized> Hash for Known<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
