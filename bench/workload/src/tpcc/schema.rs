//! The tables of TPC-C: big-endian keys that sort as their columns do, values of fixed layout.
//!
//! Layout of keys (bytes): warehouse 4, district 1, customer 4, order 4, line 1, item 4. Columns
//! that are in the key are not in the value. Two tables are indexes: customers by name, orders by
//! customer; they and new-order have empty values. History has no key in the specification; here
//! it is (terminal, number), so that each terminal appends at an edge of its own.
//!
//! Columns that a transaction changes stand side by side at the start of a value: an update then
//! declares one or two short ranges.

use crate::field::Text;
use crate::schema::{Key, row, tables};

tables! {
    0 WAREHOUSE "tpcc_warehouse": "(w)";
    1 DISTRICT "tpcc_district": "(w, d)";
    2 CUSTOMER "tpcc_customer": "(w, d, c)";
    3 CUSTOMER_BY_NAME "tpcc_customer_by_name": "(w, d, last, first, c) → nothing";
    4 HISTORY "tpcc_history": "(terminal, number)";
    5 NEW_ORDER "tpcc_new_order": "(w, d, o) → nothing";
    6 ORDER "tpcc_order": "(w, d, o)";
    7 ORDER_BY_CUSTOMER "tpcc_order_by_customer": "(w, d, c, o) → nothing";
    8 ORDER_LINE "tpcc_order_line": "(w, d, o, line)";
    9 ITEM "tpcc_item": "(i)";
    10 STOCK "tpcc_stock": "(w, i)";
    11 META "tpcc_meta": "How the database was populated: one row under [`META_KEY`].";
}

/// Key of the row that describes the population.
pub const META_KEY: &[u8] = b"population";

/// Key of a warehouse.
#[inline]
pub fn warehouse_key(w: u32) -> [u8; 4] {
    w.to_be_bytes()
}

/// Key of a district; prefix of every key inside it.
#[inline]
pub fn district_key(w: u32, d: u8) -> [u8; 5] {
    Key::new().put(w.to_be_bytes()).put([d]).done()
}

/// Key of a customer.
#[inline]
pub fn customer_key(w: u32, d: u8, c: u32) -> [u8; 9] {
    Key::new()
        .put(district_key(w, d))
        .put(c.to_be_bytes())
        .done()
}

/// Prefix of the index keys of the customers of one last name (padded with zero bytes).
#[inline]
pub fn name_prefix(w: u32, d: u8, last: [u8; 16]) -> [u8; 21] {
    Key::new().put(district_key(w, d)).put(last).done()
}

/// Index key of a customer's name; both names are padded with zero bytes.
#[inline]
pub fn name_key(w: u32, d: u8, last: [u8; 16], first: [u8; 16], c: u32) -> [u8; 41] {
    Key::new()
        .put(name_prefix(w, d, last))
        .put(first)
        .put(c.to_be_bytes())
        .done()
}

/// Key of a row of history.
#[inline]
pub fn history_key(terminal: u32, number: u64) -> [u8; 12] {
    Key::new()
        .put(terminal.to_be_bytes())
        .put(number.to_be_bytes())
        .done()
}

/// Key of an order, and of its row in new-order.
#[inline]
pub fn order_key(w: u32, d: u8, o: u32) -> [u8; 9] {
    Key::new()
        .put(district_key(w, d))
        .put(o.to_be_bytes())
        .done()
}

/// Index key of a customer's order.
#[inline]
pub fn customer_order_key(w: u32, d: u8, c: u32, o: u32) -> [u8; 13] {
    Key::new()
        .put(customer_key(w, d, c))
        .put(o.to_be_bytes())
        .done()
}

/// Key of an order line; lines count from 1.
#[inline]
pub fn order_line_key(w: u32, d: u8, o: u32, line: u8) -> [u8; 10] {
    Key::new().put(order_key(w, d, o)).put([line]).done()
}

/// Key of an item.
#[inline]
pub fn item_key(i: u32) -> [u8; 4] {
    i.to_be_bytes()
}

/// Key of a stock row.
#[inline]
pub fn stock_key(w: u32, i: u32) -> [u8; 8] {
    Key::new().put(w.to_be_bytes()).put(i.to_be_bytes()).done()
}

/// The big-endian number in the last four bytes of a key (order of new-order and of
/// order-by-customer, customer of customer-by-name, item of stock); none where it is shorter.
#[inline]
pub fn last_number(key: &[u8]) -> Option<u32> {
    key.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// The big-endian number at `offset` of a key; none where it is shorter.
#[inline]
pub fn number_at(key: &[u8], offset: usize) -> Option<u32> {
    key.get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

row! {
    /// Columns of a warehouse.
    warehouse {
        /// Year-to-date balance, cents.
        YTD: i64,
        /// Sales tax, ten-thousandths.
        TAX: u32,
        /// Name.
        NAME: Text(10),
        /// Address.
        STREET_1: Text(20),
        /// Address.
        STREET_2: Text(20),
        /// Address.
        CITY: Text(20),
        /// Address.
        STATE: Text(2),
        /// Address.
        ZIP: Text(9),
    }
}

row! {
    /// Columns of a district.
    district {
        /// Year-to-date balance, cents.
        YTD: i64,
        /// Number of the next order.
        NEXT_O_ID: u32,
        /// Sales tax, ten-thousandths.
        TAX: u32,
        /// Name.
        NAME: Text(10),
        /// Address.
        STREET_1: Text(20),
        /// Address.
        STREET_2: Text(20),
        /// Address.
        CITY: Text(20),
        /// Address.
        STATE: Text(2),
        /// Address.
        ZIP: Text(9),
    }
}

row! {
    /// Columns of a customer.
    customer {
        /// Balance, cents.
        BALANCE: i64,
        /// Year-to-date payment, cents.
        YTD_PAYMENT: i64,
        /// Number of payments.
        PAYMENT_CNT: u32,
        /// Number of deliveries.
        DELIVERY_CNT: u32,
        /// "GC" good or "BC" bad.
        CREDIT: Text(2),
        /// Miscellaneous; a bad customer's last payments. Behind the credit, so that a payment's
        /// ranges are close to each other.
        DATA: Text(500),
        /// Discount, ten-thousandths.
        DISCOUNT: u32,
        /// Credit limit, cents.
        CREDIT_LIM: i64,
        /// Customer since, microseconds of the epoch.
        SINCE: u64,
        /// Name.
        FIRST: Text(16),
        /// Name.
        MIDDLE: Text(2),
        /// Name.
        LAST: Text(16),
        /// Address.
        STREET_1: Text(20),
        /// Address.
        STREET_2: Text(20),
        /// Address.
        CITY: Text(20),
        /// Address.
        STATE: Text(2),
        /// Address.
        ZIP: Text(9),
        /// Telephone.
        PHONE: Text(16),
    }
}

row! {
    /// Columns of history.
    history {
        /// Customer's warehouse.
        C_W_ID: u32,
        /// Customer's district.
        C_D_ID: u8,
        /// Customer.
        C_ID: u32,
        /// Warehouse that was paid.
        W_ID: u32,
        /// District that was paid.
        D_ID: u8,
        /// When, microseconds of the epoch.
        DATE: u64,
        /// How much, cents.
        AMOUNT: i64,
        /// Miscellaneous.
        DATA: Text(24),
    }
}

row! {
    /// Columns of an order.
    order {
        /// Carrier; zero before delivery.
        CARRIER_ID: u8,
        /// Number of lines.
        OL_CNT: u8,
        /// One if no line comes from another warehouse.
        ALL_LOCAL: u8,
        /// Customer.
        C_ID: u32,
        /// When, microseconds of the epoch.
        ENTRY_D: u64,
    }
}

row! {
    /// Columns of an order line.
    order_line {
        /// When delivered, microseconds of the epoch; zero before delivery.
        DELIVERY_D: u64,
        /// Price of the line, cents.
        AMOUNT: i64,
        /// Item.
        I_ID: u32,
        /// Warehouse that supplies it.
        SUPPLY_W_ID: u32,
        /// How many.
        QUANTITY: u8,
        /// Text of the district in the supplying stock row.
        DIST_INFO: Text(24),
    }
}

row! {
    /// Columns of an item.
    item {
        /// Image.
        IM_ID: u32,
        /// Price, cents.
        PRICE: u32,
        /// Name.
        NAME: Text(24),
        /// Brand; one in ten contains "ORIGINAL".
        DATA: Text(50),
    }
}

row! {
    /// Columns of stock.
    stock {
        /// In stock; goes below zero never, above 100 by restocking.
        QUANTITY: u16,
        /// Sold.
        YTD: u32,
        /// Orders.
        ORDER_CNT: u32,
        /// Orders from other warehouses.
        REMOTE_CNT: u32,
        /// Ten texts of 24 bytes, one a district.
        DISTS: Text(240),
        /// Brand; one in ten contains "ORIGINAL".
        DATA: Text(50),
    }
}

row! {
    /// Columns of the row that describes the population.
    meta {
        /// Version of this layout.
        VERSION: u32,
        /// [`super::super::Scale::warehouses`].
        WAREHOUSES: u32,
        /// [`super::super::Scale::items`].
        ITEMS: u32,
        /// [`super::super::Scale::customers`].
        CUSTOMERS: u32,
        /// [`super::super::Scale::new_orders`].
        NEW_ORDERS: u32,
        /// Constant of the last names (clause 2.1.6.1).
        C_LAST: u32,
        /// How many warehouses are loaded.
        LOADED: u32,
        /// The load's seed.
        SEED: u64,
    }
}

const _: () = assert!(customer::LENGTH == 667 && stock::LENGTH == 304 && order_line::LENGTH == 49);

/// The text of district `d` (from 1) in a stock row.
pub const fn stock_dist(d: u8) -> Text {
    Text::at(stock::DISTS.range().start + (d as usize - 1) * 24, 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_columns_do() {
        let numbers = [0, 1, 255, 256, 65_535, 65_536, u32::MAX];
        let mut keys = Vec::new();
        for w in numbers {
            for d in [1, 10] {
                for o in numbers {
                    for line in [1, 15] {
                        keys.push(order_line_key(w, d, o, line));
                    }
                }
            }
        }
        assert!(keys.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn columns_come_back_from_keys() {
        assert_eq!(last_number(&order_key(1, 2, 3_000_000)), Some(3_000_000));
        assert_eq!(
            last_number(&name_key(1, 2, [b'A'; 16], [b'b'; 16], 77)),
            Some(77)
        );
        assert_eq!(number_at(&order_line_key(1, 2, 9, 4), 5), Some(9));
        assert_eq!((last_number(b"abc"), number_at(b"abcdef", 5)), (None, None));
    }

    #[test]
    fn positions_match_the_list() {
        for (position, spec) in TABLES.iter().enumerate() {
            assert_eq!(spec.table.position(), position);
        }
    }
}
