//! Vellum does what every engine must do before its figures mean anything.

use clap::Parser;
use vellum_bench::cli::{Cli, Command};
use vellum_bench::vellum_engine;
use vellum_workload::conformance::{check, check_read_committed};
use vellum_workload::engine::Engine;

#[test]
fn vellum_conforms() {
    for durability in ["async", "sync"] {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_str().unwrap();
        let flags = [
            "kv",
            "--pool-mib",
            "64",
            "--durability",
            durability,
            "--data",
            data,
        ];
        let cli = Cli::try_parse_from(["vellum-bench"].into_iter().chain(flags)).unwrap();
        let Command::Run(workload) = cli.command else {
            panic!("a workload");
        };
        check(|| vellum_engine::open(&workload.settings()).unwrap());
        let described = vellum_engine::open(&workload.settings())
            .unwrap()
            .describe();
        // What is told of each peer.
        for what in ["isolation", "durability", "memory", "checksums"] {
            let told = described.settings.iter().find(|it| it.0 == what);
            assert!(told.is_some_and(|it| !it.1.is_empty()), "{what}");
        }
        let mut settings = workload.settings();
        settings.data = directory.path().join("read-committed");
        std::fs::create_dir(&settings.data).unwrap();
        check_read_committed(vellum_engine::open(&settings).unwrap());
    }
}
