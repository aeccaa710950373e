//! Vellum, opened as the command line says.

use crate::cli::{Durability, Settings, Variant, VersionPolicy};
use vellum::{Config, Experiment};
use vellum_adapter::VellumEngine;
use vellum_workload::engine::Result;

/// Opens, or creates, the database of a run.
///
/// # Errors
/// Whatever [`VellumEngine::open`] reports.
pub fn open(settings: &Settings) -> Result<VellumEngine> {
    let mut config = Config::default().experiment(experiment(settings.variant));
    config.pool_bytes = settings.pool_bytes;
    config.create = settings.create;
    if let Some(bytes) = settings.page_size {
        config.page_size = bytes as usize;
    }
    if let Some(bytes) = settings.file_bytes_max {
        config.data_bytes_max = bytes;
    }
    if let Some((bytes, policy)) = settings.version_limit {
        let policy = match policy {
            VersionPolicy::Spill => vellum::VersionPolicy::Spill,
            VersionPolicy::TooOld => vellum::VersionPolicy::SnapshotTooOld,
        };
        config = config.version_bytes_max(bytes, policy);
    }
    let durability = match settings.durability {
        Durability::Async => vellum::Durability::Async,
        Durability::Sync => vellum::Durability::Sync,
    };
    VellumEngine::open(&settings.data, config, durability)
}

/// What the engine is opened with to be this variant.
fn experiment(variant: Variant) -> Experiment {
    match variant {
        Variant::Basic => Experiment::BASIC,
        Variant::Stamping => Experiment::STAMPING,
        Variant::Osic => Experiment::OSIC,
        Variant::Graveyard => Experiment::GRAVEYARD,
        Variant::Fat => Experiment::FAT,
        Variant::Full => Experiment::FULL,
    }
}
