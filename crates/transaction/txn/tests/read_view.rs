//! What holds for the product's protocol holds for read views, too.
#![cfg(not(any(loom, shuttle)))]
#![allow(
    clippy::duplicate_mod,
    reason = "each suite brings what it shares with others"
)]

#[path = "crash.rs"]
mod crash;
#[path = "handed_on.rs"]
mod handed_on;
#[path = "isolation.rs"]
mod isolation;
#[path = "visibility.rs"]
mod visibility;
