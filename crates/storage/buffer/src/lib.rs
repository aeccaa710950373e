//! The buffer pool: pages of the data file at fixed addresses, latched by one word each.

pub mod words;

pub use words::{PageBuf, PageRead, PageWrite};
