//! The 22 queries with the parameters that validate them.
//!
//! Paper: TPC Benchmark H, clause 2.4: each query's text and its validation parameters. The fraction of query 11 is divided by the scale
//! factor, as clause 2.4.11.3 has it.

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// From 1 on.
    pub number: u32,
    /// What is run before it.
    pub before: Option<&'static str>,
    /// The query.
    pub text: String,
    /// What is run behind it.
    pub after: Option<&'static str>,
}

macro_rules! texts {
    ($($number:literal),*) => {
        [$(include_str!(concat!("queries/", $number, ".sql"))),*]
    };
}

const TEXTS: [&str; 22] = texts!(
    "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16",
    "17", "18", "19", "20", "21", "22"
);

/// The queries for a scale factor of `thousandths / 1000`.
pub fn queries(thousandths: u32) -> Vec<Query> {
    let fraction = format!("{:.7}", 0.1 / f64::from(thousandths));
    let texts = (1..).zip(TEXTS);
    texts
        .map(|(number, text)| {
            let view = number == 15;
            Query {
                number,
                before: view.then_some(REVENUE),
                text: text.trim().replace(":fraction", &fraction),
                after: view.then_some("DROP VIEW revenue0"),
            }
        })
        .collect()
}

/// The view of query 15.
const REVENUE: &str = "CREATE VIEW revenue0 (supplier_no, total_revenue) AS \
    SELECT l_suppkey, sum(l_extendedprice * (1 - l_discount)) FROM lineitem \
    WHERE l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-01-01' + interval '3' month GROUP BY l_suppkey";
