//! What the tests of this crate share.

use vellum_base::random::Random;

/// The seed of a random test, from `VELLUM_SEED` or fresh, printed with the way to replay it.
pub(crate) fn seed(test: &str) -> u64 {
    let seed = std::env::var("VELLUM_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(Random::fresh_seed);
    println!("replay with: VELLUM_SEED={seed} cargo test -p vellum-btree {test}");
    seed
}
