//! How often a page changes: 0.01 (never) to 0.99 (at every scan), learned from its scans.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Scans before which nothing is concluded.
const WARM_UP: u64 = 3;
const NEUTRAL: f64 = 0.5;
const WEIGHT_OF_CHANGE: f64 = 0.3;
const WEIGHT_OF_STABILITY: f64 = 0.1;

/// How often a page changes, as a number from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Velocity(f64);

impl Velocity {
    /// The least that is ever learned.
    pub const MIN: Self = Self(0.01);
    /// The most that is ever learned.
    pub const MAX: Self = Self(0.99);

    /// Accepts a number from 0 to 1; none for any other, NaN included.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// The velocity after one more scan, when `scan_count` were completed before it.
    ///
    /// One change wakes a dormant page; many stable scans are needed to put it back to sleep.
    #[must_use]
    pub fn after_scan(self, scan_count: u64, changed: bool) -> Self {
        if scan_count < WARM_UP {
            return Self(NEUTRAL);
        }
        let (weight, signal) = if changed { (WEIGHT_OF_CHANGE, 1.0) } else { (WEIGHT_OF_STABILITY, 0.0) };
        let moved = weight * signal + (1.0 - weight) * self.0;
        // To twelve decimals, so that .65 is .65 and not .6499999999999999.
        let rounded = (moved * 1e12).round() / 1e12;
        Self(rounded.clamp(Self::MIN.0, Self::MAX.0))
    }
}

impl Default for Velocity {
    /// What is assumed of a page that was never scanned.
    fn default() -> Self {
        Self(NEUTRAL)
    }
}

impl<'de> Deserialize<'de> for Velocity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value)
            .ok_or_else(|| serde::de::Error::custom(format_args!("{value} is not a number from 0 to 1")))
    }
}

/// What the scans of a page have taught.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// How often it changes.
    pub velocity: Velocity,
    /// How many scans were completed.
    pub scan_count: u64,
    /// When it last changed; none if it never did.
    pub last_changed_at: Option<Timestamp>,
}

impl Evidence {
    /// The evidence after a completed scan. The first scan ever is never a change, for there is
    /// nothing to compare it with. A failed scan is no evidence at all: do not call this for it.
    ///
    /// ```
    /// # use forager_core::sentinel::velocity::{Evidence, Velocity};
    /// # use jiff::Timestamp;
    /// let now = Timestamp::UNIX_EPOCH;
    /// let known = Evidence { scan_count: 3, ..Evidence::default() };
    /// let after = known.after_scan(true, now);
    /// assert_eq!((after.velocity, after.scan_count), (Velocity::new(0.65).unwrap(), 4));
    /// assert_eq!(after.last_changed_at, Some(now));
    /// assert_eq!(after.after_scan(false, Timestamp::MAX).last_changed_at, Some(now));
    /// ```
    #[must_use]
    pub fn after_scan(self, changed: bool, now: Timestamp) -> Self {
        let changed = changed && self.scan_count > 0;
        Self {
            velocity: self.velocity.after_scan(self.scan_count, changed),
            scan_count: self.scan_count.saturating_add(1),
            last_changed_at: if changed { Some(now) } else { self.last_changed_at },
        }
    }
}
