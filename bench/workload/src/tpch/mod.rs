//! TPC-H: the tables, their rows and the 22 queries.
//!
//! Paper: TPC Benchmark H, revision 3.0.1: the tables (clause 1.4), queries with their validation parameters (2.4), the population
//! (4.2.3).
//!
//! Differences: rows follow from a seed with this crate's generator, not with the sequences of the benchmark's own program, so
//! answers are compared with another database's over the same rows and not with the answers that are published. Keys are `integer`.
//! A scale factor may be below 1.
//!
//! Not here: clients, clocks. The refresh functions.

mod population;
mod queries;
mod text;
mod words;

#[cfg(test)]
mod tests;

pub use population::{Field, Population};
pub use queries::{Query, queries};

/// The tables, in an order in which they can be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the specification's names")]
pub enum Table {
    Region,
    Nation,
    Supplier,
    Part,
    Partsupp,
    Customer,
    Orders,
    Lineitem,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Region,
        Self::Nation,
        Self::Supplier,
        Self::Part,
        Self::Partsupp,
        Self::Customer,
        Self::Orders,
        Self::Lineitem,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Nation => "nation",
            Self::Supplier => "supplier",
            Self::Part => "part",
            Self::Partsupp => "partsupp",
            Self::Customer => "customer",
            Self::Orders => "orders",
            Self::Lineitem => "lineitem",
        }
    }

    /// The statement that makes it, with its primary key and nothing else.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Region => {
                "CREATE TABLE region (r_regionkey integer NOT NULL PRIMARY KEY, r_name char(25) NOT NULL, \
                 r_comment varchar(152))"
            }
            Self::Nation => {
                "CREATE TABLE nation (n_nationkey integer NOT NULL PRIMARY KEY, n_name char(25) NOT NULL, \
                 n_regionkey integer NOT NULL, n_comment varchar(152))"
            }
            Self::Supplier => {
                "CREATE TABLE supplier (s_suppkey integer NOT NULL PRIMARY KEY, s_name char(25) NOT NULL, \
                 s_address varchar(40) NOT NULL, s_nationkey integer NOT NULL, s_phone char(15) NOT NULL, \
                 s_acctbal numeric(15,2) NOT NULL, s_comment varchar(101) NOT NULL)"
            }
            Self::Part => {
                "CREATE TABLE part (p_partkey integer NOT NULL PRIMARY KEY, p_name varchar(55) NOT NULL, \
                 p_mfgr char(25) NOT NULL, p_brand char(10) NOT NULL, p_type varchar(25) NOT NULL, p_size integer NOT NULL, \
                 p_container char(10) NOT NULL, p_retailprice numeric(15,2) NOT NULL, p_comment varchar(23) NOT NULL)"
            }
            Self::Partsupp => {
                "CREATE TABLE partsupp (ps_partkey integer NOT NULL, ps_suppkey integer NOT NULL, ps_availqty integer NOT NULL, \
                 ps_supplycost numeric(15,2) NOT NULL, ps_comment varchar(199) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey))"
            }
            Self::Customer => {
                "CREATE TABLE customer (c_custkey integer NOT NULL PRIMARY KEY, c_name varchar(25) NOT NULL, \
                 c_address varchar(40) NOT NULL, c_nationkey integer NOT NULL, c_phone char(15) NOT NULL, \
                 c_acctbal numeric(15,2) NOT NULL, c_mktsegment char(10) NOT NULL, c_comment varchar(117) NOT NULL)"
            }
            Self::Orders => {
                "CREATE TABLE orders (o_orderkey integer NOT NULL PRIMARY KEY, o_custkey integer NOT NULL, \
                 o_orderstatus char(1) NOT NULL, o_totalprice numeric(15,2) NOT NULL, o_orderdate date NOT NULL, \
                 o_orderpriority char(15) NOT NULL, o_clerk char(15) NOT NULL, o_shippriority integer NOT NULL, \
                 o_comment varchar(79) NOT NULL)"
            }
            Self::Lineitem => {
                "CREATE TABLE lineitem (l_orderkey integer NOT NULL, l_partkey integer NOT NULL, l_suppkey integer NOT NULL, \
                 l_linenumber integer NOT NULL, l_quantity numeric(15,2) NOT NULL, l_extendedprice numeric(15,2) NOT NULL, \
                 l_discount numeric(15,2) NOT NULL, l_tax numeric(15,2) NOT NULL, l_returnflag char(1) NOT NULL, \
                 l_linestatus char(1) NOT NULL, l_shipdate date NOT NULL, l_commitdate date NOT NULL, \
                 l_receiptdate date NOT NULL, l_shipinstruct char(25) NOT NULL, l_shipmode char(10) NOT NULL, \
                 l_comment varchar(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber))"
            }
        }
    }
}
