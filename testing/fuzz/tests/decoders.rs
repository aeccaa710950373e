//! Every decoder answers, whatever the bytes are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use vellum_base::random::Random;
use vellum_fuzz::corpus;
use vellum_fuzz::kept;
use vellum_fuzz::mutate::mutate;
use vellum_fuzz::targets::{all, inputs};
use vellum_model::run::{first_seed, rounds};

#[test]
fn prop_every_decoder_answers_whatever_the_bytes_are() {
    let seed = first_seed();
    eprintln!("VELLUM_SEED={seed}");
    let disk = corpus::make().expect("a database");
    let shapes = corpus::make_shapes().expect("a database");
    let more = inputs(&shapes).expect("its files");
    let inputs = inputs(&disk).expect("its files").into_iter().zip(more);
    for (target, (inputs, more)) in all().zip(inputs) {
        let kept = kept::read(target.name).expect("some are kept");
        let inputs: Vec<Vec<u8>> = inputs.into_iter().chain(more).chain(kept).collect();
        let run = |bytes: &[u8]| {
            catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).unwrap_or_else(|_| {
                panic!(
                    "VELLUM_SEED={seed} {}: panicked on {bytes:02x?}",
                    target.name
                )
            })
        };
        // What is real is known as such; fat rows are not on disk while a row can be made plain.
        let known = inputs.iter().filter(|bytes| run(bytes)).count();
        eprintln!("{}: {} inputs, {known} known", target.name, inputs.len());
        let least = match target.name {
            "fat row" => 0,
            // One schema has a column of every type.
            "schema" => 1,
            _ => 10,
        };
        assert!(known >= least, "{}: {known} real inputs only", target.name);
        let mut random = Random::new(seed);
        let mut known = 0;
        for _ in 0..rounds(20_000) {
            let pick = |random: &mut Random| &inputs[random.below(inputs.len() as u64) as usize];
            let mut bytes = pick(&mut random).clone();
            let other = pick(&mut random);
            if random.chance(1, 20) {
                bytes.resize(random.below(200) as usize, 0);
                random.fill(&mut bytes);
            }
            mutate(&mut random, &mut bytes, other);
            known += u32::from(run(&bytes));
        }
        eprintln!("{}: {known} changed ones known", target.name);
    }
}
