//! TATP, the Telecommunication Application Transaction Processing benchmark (description 1.0, 2009): four tables of a
//! home location register, seven short transactions, non-uniform subscribers.
//!
//! Differences to the description: the tables are loaded in the order of their keys; a transaction that lost a conflict is run
//! again with the same input, so that conflicts cannot bend the mix; the way from a subscriber's number to its
//! identifier is a table of its own, as an index is; text columns are padded to their length.
//!
//! A transaction *fails* where the description lets it: it finds no row, or meets one that it would insert. It rolls back, is not run
//! again, and counts apart from those that succeed: the description's throughput is of these. How many must succeed
//! follows from the population and the input ([`rates`]).
//!
//! Where to look: rows and keys in [`schema`], the loader in [`population`], random input in [`input`], a client in
//! [`client`], the checker in [`check`], what inserts and deletes must add up to in [`ledger`].

pub mod check;
pub mod client;
pub mod input;
pub mod ledger;
pub mod population;
pub mod rates;
pub mod schema;
#[cfg(test)]
mod tests;

/// The seven transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Reads a subscriber.
    GetSubscriberData,
    /// Reads where a subscriber's calls are forwarded to.
    GetNewDestination,
    /// Reads an access of a subscriber.
    GetAccessData,
    /// Changes a subscriber and one of its special facilities.
    UpdateSubscriberData,
    /// Changes where a subscriber is, by its number.
    UpdateLocation,
    /// Adds a call forwarding.
    InsertCallForwarding,
    /// Deletes a call forwarding.
    DeleteCallForwarding,
}

impl Kind {
    /// All of them, in the order of their positions.
    pub const ALL: [Self; 7] = [
        Self::GetSubscriberData,
        Self::GetNewDestination,
        Self::GetAccessData,
        Self::UpdateSubscriberData,
        Self::UpdateLocation,
        Self::InsertCallForwarding,
        Self::DeleteCallForwarding,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GetSubscriberData => "get_subscriber_data",
            Self::GetNewDestination => "get_new_destination",
            Self::GetAccessData => "get_access_data",
            Self::UpdateSubscriberData => "update_subscriber_data",
            Self::UpdateLocation => "update_location",
            Self::InsertCallForwarding => "insert_call_forwarding",
            Self::DeleteCallForwarding => "delete_call_forwarding",
        }
    }

    /// Of a hundred transactions so many are of this kind.
    pub const fn share(self) -> u64 {
        match self {
            Self::GetSubscriberData | Self::GetAccessData => 35,
            Self::GetNewDestination => 10,
            Self::UpdateLocation => 14,
            Self::UpdateSubscriberData
            | Self::InsertCallForwarding
            | Self::DeleteCallForwarding => 2,
        }
    }
}
