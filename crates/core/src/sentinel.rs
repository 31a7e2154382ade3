//! The adaptive sentinel: what kind of page it is, how often it changes, when to look again.
//!
//! [`classify`] guesses the risk of a page from its address, [`velocity`] learns from each scan
//! how often it changes, [`schedule`] turns both into the time of the next scan, and
//! [`manifest`] chooses what one cycle scans.

pub mod classify;
pub mod manifest;
pub mod schedule;
pub mod velocity;

use core::fmt;

use serde::{Deserialize, Serialize};

/// How much it matters to see a change soon. Greater is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Risk {
    /// Archives, answered questions.
    Low,
    /// Ordinary content.
    Medium,
    /// New laws, gazette items.
    High,
    /// Rates and deadlines: hours matter.
    Critical,
}

impl Risk {
    /// From least to most urgent.
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Critical];

    /// How many times more often such a page is scanned than a medium one.
    pub fn factor(self) -> f64 {
        match self {
            Self::Low => 0.5,
            Self::Medium => 1.0,
            Self::High => 2.0,
            Self::Critical => 4.0,
        }
    }

    /// The name as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "LOW",
            Self::Medium => "MEDIUM",
            Self::High => "HIGH",
            Self::Critical => "CRITICAL",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
