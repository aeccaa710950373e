//! CH-benCHmark: the 22 queries of TPC-H over the tables of TPC-C, which has `supplier`, `nation` and `region` beside them.
//!
//! Paper: Cole et al., "The mixed workload CH-benCHmark", DBTest 2011, with the queries of its appendix.
//!
//! Differences: the tables of TPC-C are those of clause 1.3 without the columns that no query reads; there may be fewer customers, orders and items
//! than clause 4.3.3 asks for, so that a test may load them; query 16 is sorted by all that it returns, query 20 takes more items.
//!
//! Not here: transactions (`tpcc`), which would run beside the queries.

mod population;

pub use population::{Population, Table};

macro_rules! texts {
    ($($number:literal),*) => {
        [$(include_str!(concat!("queries/", $number, ".sql"))),*]
    };
}

/// The queries, from number 1 on.
pub const QUERIES: [&str; 22] = texts!(
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16",
    "17", "18", "19", "20", "21", "22"
);
