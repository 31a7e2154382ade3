//! Hosts: what is set for them, and how they are shown.

use forager_core::time::Interval;
use serde::Serialize;

use crate::host::{Gate, Honesty, HostSettings, Learned, Setting};
use crate::moment::Moment;

/// Something to set for a host.
#[derive(Clone, Debug)]
pub struct HostChange {
    /// The host, or queue key.
    pub key: String,
    /// The plain collection it belongs to; none for a host of planned collections. One of these may be named for a host
    /// that has to be known: it is changed for all of them then, if this one has a queue there.
    pub collection: Option<String>,
    /// What is set from now on. What is not named stays.
    pub sets: Vec<Setting>,
    /// Whether a host that is not known is left alone: one without a queue, of the collection if one is named.
    pub only_known: bool,
}

/// A host, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostView {
    /// The host, or queue key.
    pub host: String,
    /// The plain collection it belongs to.
    pub collection: Option<String>,
    /// Entries in the queue.
    pub queued: u64,
    /// Entries that workers have: of one collection, where only that is looked at.
    #[serde(skip)]
    pub leased: u64,
    /// Entries that were fetched as often as asked, or given up.
    pub done: u64,
    /// Fetches under way.
    pub in_flight: u32,
    /// Fetches completed.
    pub fetched: u64,
    /// Failures of its own in a row.
    pub failures: u32,
    /// When it may be asked; none if at once, or if nothing is sure to open it, which `gate` tells apart.
    pub opens: Option<Moment>,
    /// What closes it.
    pub gate: Option<Gate>,
    /// How often the dates in its sitemaps were right.
    #[serde(skip_serializing_if = "Honesty::is_unknown")]
    pub sitemap_dates: Honesty,
    /// The wait between fetches that its robots.txt asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl_delay: Option<Interval>,
    /// Whether that is so long that its pages take their time, whatever else is done: see [`SLOW`](crate::host::SLOW).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_slow: bool,
    /// What is set for it.
    pub settings: HostSettings,
    /// All that was learned of it, for an export.
    #[serde(skip)]
    pub learned: Learned,
}

/// Which hosts to list.
#[derive(Clone, Debug, Default)]
pub struct HostFilter {
    /// Those with entries of this collection.
    pub collection: Option<String>,
    /// This one.
    pub key: Option<String>,
    /// Those that are not blocked and have entries that wait or are under way.
    pub is_active: bool,
    /// How many to pass over.
    pub skip: usize,
    /// How many at most.
    pub limit: usize,
}
