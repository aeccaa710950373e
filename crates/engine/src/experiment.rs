//! What a database is opened with to be compared with itself: other protocols, and parts switched off.
//!
//! For measurements. The defaults are the product; nothing else is ever better, and the file format does not
//! depend on it: a database may be opened with another experiment each time.
//!
//! Paper: Scalable and Robust Snapshot Isolation, §4 (variants of the figures).

use crate::config::{Config, Protocol};

/// What differs from the product. [`Config::experiment`] opens a database with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// How commits become visible.
    pub protocol: Protocol,
    /// Deleted rows that only old snapshots see leave the main index.
    pub graveyard: bool,
    /// Rows with many versions keep them in their leaf.
    pub fat: bool,
    /// Rows that are not hot have shortcuts past the versions that old snapshots do not see, and these are swept. Not the paper's.
    pub shortcuts: bool,
}

impl Experiment {
    /// The classical engine: read views; what every snapshot sees is all that is collected (the paper's Basic).
    pub const BASIC: Self = Self::high_watermark(Protocol::ReadView);
    /// Commit timestamps are written into rows; collection as in [`Experiment::BASIC`] (the paper's NoSteal).
    pub const STAMPING: Self = Self::high_watermark(Protocol::Stamping);
    /// The product's protocol; collection as in [`Experiment::BASIC`].
    pub const OSIC: Self = Self::high_watermark(Protocol::Osic);
    /// The product's protocol and graveyards.
    pub const GRAVEYARD: Self = Self {
        graveyard: true,
        ..Self::OSIC
    };
    /// The product's protocol and fat rows (the paper's OSIC+FatTuple): chains of rows that are not hot grow.
    pub const FAT: Self = Self {
        fat: true,
        ..Self::OSIC
    };
    /// The product.
    pub const FULL: Self = Self {
        graveyard: true,
        shortcuts: true,
        ..Self::FAT
    };

    const fn high_watermark(protocol: Protocol) -> Self {
        Self {
            protocol,
            graveyard: false,
            fat: false,
            shortcuts: false,
        }
    }
}

impl Config {
    /// Makes the database differ from the product.
    #[must_use]
    pub fn experiment(mut self, experiment: Experiment) -> Self {
        let Experiment {
            protocol,
            graveyard,
            fat,
            shortcuts,
        } = experiment;
        self.protocol = protocol;
        (self.versions.graveyard, self.versions.fat) = (graveyard, fat);
        self.versions.shortcuts = shortcuts;
        self
    }
}
