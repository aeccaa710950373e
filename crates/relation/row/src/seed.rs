//! The seed of random tests: printed, and replayed with `VELLUM_SEED`.

use vellum_base::random::Random;

/// A generator whose seed is printed.
pub fn random() -> Random {
    let seed = vellum_base::replay::seed();
    println!("run again with VELLUM_SEED={seed}");
    Random::new(seed)
}
