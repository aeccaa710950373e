//! Relational operators over rows of SQL's values: what a query does whose shape no program has. DataFusion plans and runs them.
//!
//! Who asks builds a [`Relation`] of [`Term`]s, and runs it with [`Engine::run`] as a [`Host`]: it is asked for the rows of tables
//! and told those of the result, all in its own thread; the operators work in another. Types and values are those of `vellum_row`; nothing of
//! DataFusion or Arrow is seen outside. The structure is told in `docs/design/0020-queries.md`.
//!
//! Not here: names, syntax, what an expression means (`sql`): an expression that is more than a comparison comes as a [`RowFunction`].
#![forbid(unsafe_code)]

mod aggregate;
mod batch;
mod collect;
mod crews;
mod decimal;
mod engine;
mod error;
mod frames;
mod function;
mod kept;
mod keys;
mod known;
mod loops;
mod memory;
mod pushed;
mod relation;
mod running;
mod scan;
mod sets;
mod sorts;
mod stays;
mod sum;
mod temporary;
mod term;
mod types;
mod union;
mod watch;
mod window;

pub use aggregate::{Aggregate, Fold, Folding};
pub use batch::{BATCH_ROWS, Batch};
pub use decimal::Arithmetic;
pub use engine::{Engine, Flow, Host, Joins, Limits, Line, Reader, Requests, Tables};
pub use error::{Error, Failure, Result};
pub use frames::{Edge, Exclusion, Framing};
pub use function::RowFunction;
pub use relation::{Joined, Relation, SortKey, Symbols};
pub use running::{Running, Served};
pub use scan::{Expected, Part, Scanned};
pub use sum::Finish;
pub use temporary::TemporaryFile;
pub use term::{Column, Comparison, Term};
pub use types::{DIGITS_MAX, Extent, Kind};
pub use window::{Frame, FrameBound, FrameUnit, Window, WindowFunction, Windowed};
