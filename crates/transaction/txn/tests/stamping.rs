//! What holds for the product's protocol holds for commit timestamps in rows, too.
#![cfg(not(any(loom, shuttle)))]

#[path = "crash.rs"]
mod crash;
#[path = "isolation.rs"]
mod isolation;
#[path = "visibility.rs"]
mod visibility;
