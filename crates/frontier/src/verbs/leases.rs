//! What workers ask for and hold.

use std::sync::Arc;

use forager_core::hierarchy::Priority;
use forager_core::time::Interval;
use serde::Serialize;

use crate::entry::{How, Token, Validators};
use crate::host::Gate;
use crate::moment::Moment;

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// How many entries at most.
    pub max: usize,
    /// How many of one host at most.
    pub per_host: usize,
    /// Of how many hosts at most.
    pub hosts: usize,
    /// None of a host that has so many under way.
    pub busy_at: usize,
    /// No more when their URLs and metadata have so many bytes.
    pub bytes: usize,
    /// Of this collection only.
    pub collection: Option<String>,
    /// Of this host only.
    pub host: Option<String>,
    /// How long they are held.
    pub hold: Interval,
}

impl Default for LeaseRequest {
    fn default() -> Self {
        let hold = Interval::from_secs_f64(300.0);
        Self {
            max: 1,
            per_host: 1,
            hosts: usize::MAX,
            busy_at: usize::MAX,
            bytes: usize::MAX,
            collection: None,
            host: None,
            hold,
        }
    }
}

/// What a worker gets.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseAnswer {
    /// The entries, in the order they are to be fetched.
    pub leased: Vec<Leased>,
    /// Why there is none; not set if there is one, or if none was asked for.
    pub nothing: Option<Nothing>,
}

/// What a host may be asked by when a page of it is handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The least milliseconds between two requests.
    pub least_gap: u64,
    /// How many requests may be under way.
    pub most_in_flight: u32,
}

/// An entry that was handed out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leased {
    /// To be shown with the report.
    pub token: Token,
    /// When the lease runs out.
    pub until: Moment,
    /// The collection.
    pub collection: String,
    /// What to request.
    pub url: String,
    /// The queue key.
    pub host: String,
    /// The seed that owns it.
    pub seed: Option<String>,
    /// How far from the seed it was found.
    pub depth: u32,
    /// Its priority.
    pub priority: Priority,
    /// When it was due.
    pub due: Moment,
    /// When it was last fetched.
    pub last_fetch: Option<Moment>,
    /// What its content was known by then.
    pub fingerprint: Option<String>,
    /// What the server knew it by then.
    #[serde(skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// How it was first found; for who reads sitemaps otherwise than pages.
    #[serde(skip)]
    pub how: How,
    /// Failures and lost leases in a row before this one.
    pub failures: u32,
    /// What the client wanted back with it.
    pub metadata: Option<Box<str>>,
    /// What its host may be asked by; for who is slower to send requests than to lease.
    #[serde(skip)]
    pub terms: Terms,
    /// Whether it was its turn as the oldest due rather than by priority.
    pub as_oldest: bool,
    /// Why it may be fetched.
    pub rule: Arc<str>,
}

/// Why nothing was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "nothing")]
pub enum Nothing {
    /// Nothing is queued, and nothing is under way.
    Empty,
    /// Something is queued, but not due before this.
    NotDue {
        /// When to ask again.
        until: Moment,
    },
    /// Something is due, but its host must be left alone until this.
    Throttled {
        /// When to ask again.
        until: Moment,
        /// What closes the host that opens first.
        gate: Gate,
    },
    /// What there is waits for others: for leases to end, or for a person.
    Blocked {
        /// When to ask again at the latest, if anything is sure to change by itself.
        until: Option<Moment>,
    },
}

/// Whether a host can be visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Now; to be left with this token.
    Welcome(Token),
    /// Not before this, because of a gate.
    Closed(Moment, Gate),
}

/// What became of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseChange {
    /// The lease.
    pub token: Token,
    /// Whether it was still held; if not, nothing was done.
    pub held: bool,
    /// When it runs out now.
    pub until: Option<Moment>,
}
