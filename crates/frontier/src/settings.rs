//! What holds for a whole frontier, whatever is crawled.

use forager_core::scope::ScopeOptions;
use forager_core::select::SelectConfig;
use forager_core::sentinel::classify::Row;
use forager_core::sentinel::manifest::Percent;
use forager_core::sentinel::schedule::ScheduleConfig;
use forager_core::time::Interval;
use serde::{Deserialize, Serialize};

use crate::host::Waits;

/// The settings of a frontier. They come with each process; the catalog stays with the store.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What holds for every scope.
    pub scope: ScopeOptions,
    /// Rows of the classifier that come before its default table.
    pub classify: Vec<Row>,
    /// What counts as a service page, for the order `services`.
    pub select: SelectConfig,
    /// The adaptive schedule.
    pub sentinel: ScheduleConfig,
    /// How hosts are spared.
    pub politeness: Politeness,
    /// What becomes of fetches that fail.
    pub retry: Retry,
    /// The share of hand-outs that goes to the oldest due, where the order is `risk`.
    pub reserved: Reserved,
}

/// The share of hand-outs that is kept for the oldest due entry, whatever its risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserved(pub Percent);

impl Default for Reserved {
    fn default() -> Self {
        Self(forager_core::sentinel::manifest::ManifestConfig::default().reserved_percent)
    }
}

/// How hosts are spared, unless a host has settings of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Politeness {
    /// The shortest time between two fetches from one host.
    pub delay: Interval,
    /// The longest; each wait is chosen at random between both.
    pub max_delay: Interval,
    /// How many fetches from one host may be under way.
    pub in_flight: u32,
    /// How long a host is left alone after a failure that is its own; doubles with each in a row.
    pub back_off: Interval,
    /// The longest that it is left alone.
    pub max_back_off: Interval,
}

impl Politeness {
    /// How long hosts wait that have no delay of their own.
    pub fn waits(&self) -> Waits {
        Waits { least: self.delay, most: self.max_delay }
    }
}

impl Default for Politeness {
    fn default() -> Self {
        Self {
            delay: Interval::from_secs_f64(2.0),
            max_delay: Interval::from_secs_f64(5.0),
            in_flight: 2,
            back_off: Interval::from_secs_f64(30.0),
            max_back_off: Interval::hours(1),
        }
    }
}

/// How often a fetch that failed is tried again, for pages that are fetched a limited number of
/// times. Pages without end are tried again for ever, at growing intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Tries after a 429 or 503.
    pub refused: u32,
    /// Tries after a time-out, network error or another 5xx.
    pub failed: u32,
    /// Tries after a worker that took the page and never reported.
    pub abandoned: u32,
    /// The wait before the first; it doubles with each.
    pub first: Interval,
    /// The longest wait.
    pub longest: Interval,
}

impl Default for Retry {
    fn default() -> Self {
        Self { refused: 3, failed: 5, abandoned: 5, first: Interval::MINUTE, longest: Interval::hours(1) }
    }
}
