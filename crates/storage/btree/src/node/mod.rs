//! One tree page: its bytes (`layout`), changing it in place (`edit`), building it anew (`build`),
//! and whether it is well formed (`check`).

pub mod build;
pub mod check;
pub mod edit;
pub mod layout;

#[cfg(test)]
mod tests;
