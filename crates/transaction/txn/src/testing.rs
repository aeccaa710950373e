//! What the tests of this crate share.

/// The seed of a random test: `VELLUM_SEED`, else a fresh one. Prints how to run `test` again.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = vellum_base::replay::seed();
    println!("replay with VELLUM_SEED={seed} cargo test -p vellum-txn {test}");
    seed
}
