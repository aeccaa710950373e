//! The seed of random tests: printed, and replayed with `VELLUM_SEED`.

use vellum_base::random::Random;

/// A generator whose seed is printed.
pub fn random() -> Random {
    let given = std::env::var("VELLUM_SEED").ok();
    let seed = given
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(Random::fresh_seed);
    println!("run again with VELLUM_SEED={seed}");
    Random::new(seed)
}
