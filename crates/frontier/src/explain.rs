//! All that speaks for and against a URL.

use forager_core::time::Interval;
use serde::Serialize;

use crate::host::{Gate, Honesty};
use crate::moment::Moment;
use crate::verbs::EntryView;

/// The whole derivation of what happens with a URL, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// What happens with it, in one sentence.
    pub verdict: String,
    /// For a URL that is not fetched now: what would have to change.
    pub would_need: Vec<String>,
    /// The URL in its forms.
    pub forms: Forms,
    /// Whether it is in scope, and the rule that says so.
    pub scope: Scope,
    /// What its priority is made of, term by term.
    pub priority: PriorityTerms,
    /// What kind of page it is taken for; none in a plain collection, where that decides nothing.
    pub class: Option<ClassView>,
    /// What its scans have taught, and the interval that follows; none in a plain collection.
    pub evidence: Option<EvidenceView>,
    /// When it is due, and why then.
    pub due: Option<DueView>,
    /// Every gate of its host.
    pub gates: Vec<GateView>,
    /// How long its host waits between two hand-outs, where clients have set that for all queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub general_delay: Option<Interval>,
    /// How often the dates in the sitemaps of its host were right.
    #[serde(skip_serializing_if = "Honesty::is_unknown")]
    pub sitemap_dates: Honesty,
    /// Its place among the entries of its host, from 1; none if it does not wait there.
    pub place_in_queue: Option<u64>,
    /// How many entries wait at its host.
    pub queue_length: u64,
    /// The entry; none if the URL was never seen.
    pub entry: Option<EntryView>,
    /// Other queues of a plain collection that have an entry of the same URL, where no queue was named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_keys: Vec<String>,
}

/// A URL in its forms.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forms {
    /// As it was given.
    pub given: String,
    /// What is requested.
    pub fetch: String,
    /// What counts as the same page.
    pub identity: String,
    /// How it sorts; nothing if it is no URL.
    pub surt: String,
    /// The politeness unit.
    pub host: String,
}

/// Whether a URL is in scope.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// `fetch`, `postpone` or `remove` for an entry, `add` or `ignore` for a URL never seen.
    pub action: String,
    /// The rule that decided.
    pub rule: String,
    /// The seed it is judged by.
    pub seed: Option<String>,
    /// How far from that seed.
    pub depth: Option<u32>,
}

/// What a priority is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PriorityTerms {
    /// The order of the profile; `due` in a plain collection.
    pub order: String,
    /// The priority, 0 to 1; none for a URL never seen, and in a plain collection.
    pub value: Option<f64>,
    /// Each term, as it was added.
    pub terms: Vec<String>,
    /// When it changes by itself.
    pub next_step: Option<Moment>,
}

/// What kind of page it is taken for.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassView {
    /// What it is made of.
    pub node_type: String,
    /// What it is for.
    pub node_role: Option<String>,
    /// How urgent its changes are.
    pub risk: String,
    /// What decided.
    pub reasons: Vec<String>,
}

/// What the scans of a page have taught.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceView {
    /// How often it changes, 0 to 1.
    pub velocity: f64,
    /// How many scans that is from.
    pub scans: u64,
    /// When it last changed.
    pub last_changed: Option<Moment>,
    /// The interval that follows, before its random part.
    pub interval: String,
    /// What the interval is made of.
    pub reasons: Vec<String>,
}

/// When an entry is due.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DueView {
    /// The instant.
    pub at: Moment,
    /// Whether that has come.
    pub is_due: bool,
    /// Why then.
    pub because: String,
}

/// A gate of a host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GateView {
    /// Which one.
    pub gate: Gate,
    /// Whether it is open.
    pub is_open: bool,
    /// When it opens; none if it is open, or if nothing is sure to open it.
    pub opens: Option<Moment>,
}
