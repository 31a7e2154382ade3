//! What one cycle scans: the most urgent of what is due, and a share of the oldest.

use core::cmp::Reverse;
use core::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Risk;
use crate::top::Top;

/// The settings of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ManifestConfig {
    /// How many items one cycle scans at most.
    pub limit: usize,
    /// How many per cent of them are reserved for the oldest due, whatever their risk.
    pub reserved_percent: Percent,
}

impl Default for ManifestConfig {
    fn default() -> Self {
        Self { limit: 500, reserved_percent: Percent(10) }
    }
}

impl ManifestConfig {
    /// How many places are reserved: rounded up so that small manifests starve nothing either,
    /// and never the only place.
    fn reserved(&self) -> usize {
        let share = (self.limit as u128 * u128::from(self.reserved_percent.0)).div_ceil(100);
        usize::try_from(share).unwrap_or(usize::MAX).min(self.limit.saturating_sub(1))
    }
}

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Percent(u8);

impl Percent {
    /// Accepts 0 to 100.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 100).then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> u8 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = u8::deserialize(deserializer)?;
        Self::new(value).ok_or_else(|| serde::de::Error::custom(format_args!("{value} is not from 0 to 100")))
    }
}

/// Why an item is in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Why {
    /// Its risk and due time put it among the first.
    #[serde(rename = "risk")]
    Risk,
    /// Its risk would not have, but it is among the oldest due.
    #[serde(rename = "oldest due")]
    OldestDue,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Risk => "risk",
            Self::OldestDue => "oldest due",
        })
    }
}

/// An item chosen for a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen<T> {
    /// The item.
    pub item: T,
    /// Its risk.
    pub risk: Risk,
    /// When it was due.
    pub due: Timestamp,
    /// Why it was chosen.
    pub why: Why,
}

/// Chooses from a stream of items, holding no more than the manifest has places.
///
/// Due items by risk, then due time, then order of arrival; of those that do not fit, the oldest
/// due take the reserved places.
///
/// ```
/// # use forager_core::sentinel::{Risk, manifest::{Manifest, ManifestConfig, Why}};
/// let now = "2024-06-15T08:00:00Z".parse()?;
/// let mut manifest = Manifest::new(&ManifestConfig { limit: 2, ..ManifestConfig::default() }, now);
/// manifest.push("old", Risk::Low, "2024-05-01T00:00:00Z".parse()?);
/// manifest.push("new", Risk::High, "2024-06-15T07:00:00Z".parse()?);
/// manifest.push("also new", Risk::High, "2024-06-15T07:30:00Z".parse()?);
/// manifest.push("not due", Risk::Critical, "2024-06-16T00:00:00Z".parse()?);
/// let chosen: Vec<_> = manifest.finish().into_iter().map(|chosen| (chosen.item, chosen.why)).collect();
/// assert_eq!(chosen, [("new", Why::Risk), ("old", Why::OldestDue)]);
/// # Ok::<(), jiff::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Manifest<T> {
    now: Timestamp,
    arrived: u64,
    by_risk: Top<RiskOrder, T>,
    oldest: Top<AgeOrder, T>,
}

/// The order of a manifest: most urgent first, then longest due, then first come.
type RiskOrder = (Reverse<Risk>, Timestamp, u64);

/// The order of the reserved places. The risk comes last: arrival has already decided.
type AgeOrder = (Timestamp, u64, Reverse<Risk>);

impl<T> Manifest<T> {
    /// An empty manifest for the cycle at `now`.
    pub fn new(config: &ManifestConfig, now: Timestamp) -> Self {
        let reserved = config.reserved();
        Self { now, arrived: 0, by_risk: Top::new(config.limit - reserved), oldest: Top::new(reserved) }
    }

    /// Considers an item; one that is not due is passed over.
    pub fn push(&mut self, item: T, risk: Risk, due: Timestamp) {
        self.arrived += 1;
        if due > self.now {
            return;
        }
        let order = (Reverse(risk), due, self.arrived);
        if let Some(((risk, due, arrival), item)) = self.by_risk.push(order, item) {
            self.oldest.push((due, arrival, risk), item);
        }
    }

    /// What the cycle scans, in order.
    pub fn finish(self) -> Vec<Chosen<T>> {
        let by_risk = self.by_risk.into_iter().map(|(order, item)| (order, item, Why::Risk));
        let oldest = self
            .oldest
            .into_iter()
            .map(|((due, arrival, risk), item)| ((risk, due, arrival), item, Why::OldestDue));
        let mut chosen: Vec<_> = by_risk.chain(oldest).collect();
        chosen.sort_unstable_by_key(|(order, ..)| *order);
        chosen
            .into_iter()
            .map(|((Reverse(risk), due, _), item, why)| Chosen { item, risk, due, why })
            .collect()
    }
}
