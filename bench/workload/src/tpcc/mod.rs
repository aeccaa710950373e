//! TPC-C (revision 5.11): nine tables, five transactions, the population of clause 4.3 and the
//! consistency conditions of clause 3.3.2.
//!
//! Differences to the specification: no think times and no terminals' screens (as everybody
//! measures engines), deliveries run at once instead of deferred, money is whole cents and rates
//! are ten-thousandths, text columns are padded to their longest length. A transaction that lost
//! a conflict is run again with the same input.
//!
//! Where to look: rows and keys in [`schema`], random input in [`random`] and [`input`], the loader
//! in [`population`], a client in [`terminal`], the checker in [`check`].

pub mod check;
mod delivery;
pub mod input;
mod new_order;
mod order_status;
mod payment;
pub mod population;
pub mod random;
pub mod schema;
mod stock_level;
pub mod terminal;
#[cfg(test)]
mod tests;

/// How large a database is. [`Scale::standard`] is the specification's; tests use less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Number of warehouses (W).
    pub warehouses: u32,
    /// Number of items, and stock rows a warehouse.
    pub items: u32,
    /// Customers a district, equal to the orders that a district starts with.
    pub customers: u32,
    /// How many of those orders are not delivered yet.
    pub new_orders: u32,
}

impl Scale {
    /// The specification's population of `warehouses` warehouses.
    pub const fn standard(warehouses: u32) -> Self {
        Self {
            warehouses,
            items: 100_000,
            customers: 3_000,
            new_orders: 900,
        }
    }

    /// A population that a test loads in milliseconds.
    pub const fn tiny(warehouses: u32) -> Self {
        Self {
            warehouses,
            items: 200,
            customers: 60,
            new_orders: 18,
        }
    }

    /// Rows of stock; no transaction adds or deletes any.
    pub const fn stock_rows(&self) -> u64 {
        self.items as u64 * self.warehouses as u64
    }

    /// Rows that a load writes in all tables together, for a progress bar.
    pub const fn rows(&self) -> u64 {
        let orders = self.customers as u64;
        // Customer and its name, history, order and its customer, ten lines on average.
        let district = 1 + orders * 3 + orders * 2 + self.new_orders as u64 + orders * 10;
        let warehouse = 1 + self.items as u64 + DISTRICTS as u64 * district;
        self.items as u64 + self.warehouses as u64 * warehouse
    }
}

/// Districts a warehouse.
pub const DISTRICTS: u8 = 10;
/// Most lines an order.
pub const LINES_MAX: usize = 15;

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

impl Kind {
    /// All of them, in the order of their positions.
    pub const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "new_order",
            Self::Payment => "payment",
            Self::OrderStatus => "order_status",
            Self::Delivery => "delivery",
            Self::StockLevel => "stock_level",
        }
    }
}
