//! A URL in the queue: where it stands, and what was learned of it.

use std::fmt;

use forager_core::hierarchy::Priority;
use forager_core::scope::Place;
use forager_core::scope::after_fetch::Counters;
use forager_core::sentinel::Risk;
use forager_core::sentinel::velocity::{Evidence, Velocity};
use serde::{Deserialize, Serialize};

use crate::moment::Moment;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);
    };
}

number!(
    /// An entry, numbered in the order of arrival; never used twice.
    EntryId
);
number!(
    /// A collection, numbered in the order of creation; never used twice.
    CollectionId
);
number!(
    /// A seed, numbered in the order of creation; never used twice.
    SeedId
);
number!(
    /// A host: a key, in a namespace of politeness.
    HostId
);
number!(
    /// The entries of one collection at one host.
    QueueId
);

/// What a worker holds while it fetches; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(pub u64);

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether an entry waits, is being fetched, or is through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It is in the queue, due or not.
    Queued,
    /// A worker has it.
    Leased,
    /// It was fetched as often as asked, and left the queue. Its history stays.
    Done,
    /// It could not be fetched, and left the queue. Its history stays.
    Failed,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Leased, Self::Done, Self::Failed];
}

/// Where an entry stands: all that a link that is found again may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its collection and host.
    pub queue: QueueId,
    /// The seed that owns it; none in a plain collection.
    pub seed: Option<SeedId>,
    /// How far from the seed it was found.
    pub place: Place,
    /// What it is worth. Higher is sooner, unless arrival alone counts.
    pub priority: Priority,
    /// When it may be fetched; whole seconds.
    pub due: Moment,
    /// When it was last fetched; whole seconds.
    pub last_fetch: Option<Moment>,
    /// Whether it waits.
    pub state: State,
    /// How urgent its changes are.
    pub risk: Risk,
    /// Whether it lists other pages.
    pub is_hub: bool,
    /// The harvest that last reached it: starting a seed begins a new one, which may fetch again
    /// what an earlier one is through with.
    pub harvest: u8,
    /// Whether it goes by its due time among entries of equal priority; if not, by arrival.
    pub by_due: bool,
    /// Whether arrival alone counts: its priority is what people see as its rank, and orders nothing.
    pub by_arrival: bool,
    /// When its score steps next; none if it never does, or the order is not `score`.
    pub step: Option<Moment>,
}

impl Standing {
    /// The priority that orders the queue.
    pub fn effective(&self) -> Priority {
        if self.by_arrival { Priority::ZERO } else { self.priority }
    }
}

/// The deepest place that is kept apart; deeper ones count as this.
pub(crate) const DEEPEST: Place = Place { depth: u16::MAX as u32, hops_off_domain: u8::MAX as u32 };

/// How an entry was first found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum How {
    /// It is a seed that was started.
    Seed,
    /// A page links to it.
    #[default]
    Link,
    /// A sitemap lists it.
    Sitemap,
    /// A page redirects to it.
    Redirect,
    /// In some other way.
    Other,
    /// It lists pages of a site: a sitemap that robots.txt or another sitemap names.
    Listing,
}

/// What was learned of an entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// How it was first found, and when. This part never changes.
    pub origin: Origin,
    /// How many fetches are left; unlimited if none.
    pub length: Option<u32>,
    /// Leases in a row that ran out without a report.
    pub abandoned: u32,
    /// Failures in a row.
    pub errors: u32,
    /// Times in a row that it was not found.
    pub not_found: u32,
    /// How often it changes, 0 to 1.
    pub velocity: f64,
    /// How many fetches gave an answer that could be compared.
    pub scans: u64,
    /// When it last changed.
    pub last_changed: Option<Moment>,
    /// What its content was known by after the last fetch.
    pub fingerprint: Option<String>,
    /// What the server asked to be shown again, to be told whether the page has changed since.
    #[serde(default)]
    pub validators: Validators,
    /// When a sitemap says that it changed, if that is after the last fetch.
    #[serde(default)]
    pub said_to_change: Option<Moment>,
    /// The last fetches, oldest first.
    pub history: Vec<Visit>,
    /// What it was worth by its best link, where the order is `linked`.
    pub best_link: Option<u16>,
    /// The pages that link to it, as hashes, where the order is `linked`.
    pub linked_from: Vec<u32>,
    /// Why it is due when it is.
    pub due_because: Option<String>,
}

/// What a server knows a version of a page by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Validators {
    /// The header `ETag`.
    pub etag: Option<String>,
    /// The header `Last-Modified`.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How an entry was first found, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// When it was first found; whole seconds.
    pub created: Moment,
    /// How.
    pub how: How,
    /// The page that it was found on, where that is an entry of the same collection.
    pub source: Option<EntryId>,
    /// How well it fits the topic, in thousandths, for the order `score`.
    pub relevance: Option<u16>,
    /// What the client wants back with it, as it was given.
    pub metadata: Option<Box<str>>,
}

/// One fetch in the history of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Visit {
    /// When it was completed; whole seconds.
    pub at: Moment,
    /// What came of it: a status, or the kind of error.
    pub result: String,
    /// Whether the page had changed.
    pub changed: bool,
}

/// How many fetches the history of an entry keeps.
pub const HISTORY: usize = 8;

impl Record {
    /// What is known of an entry that was just found.
    pub fn new(origin: Origin, length: Option<u32>) -> Self {
        Self { origin, length, velocity: Velocity::default().get(), ..Self::default() }
    }

    /// What the scans have taught.
    pub fn evidence(&self) -> Evidence {
        Evidence {
            velocity: Velocity::new(self.velocity).unwrap_or_default(),
            scan_count: self.scans,
            last_changed_at: self.last_changed.map(Moment::timestamp),
        }
    }

    /// Takes over what a scan has taught.
    pub fn learn(&mut self, evidence: Evidence) {
        self.velocity = evidence.velocity.get();
        self.scans = evidence.scan_count;
        self.last_changed = evidence.last_changed_at.map(Moment::of);
    }

    /// What it counts.
    pub fn counters(&self) -> Counters {
        Counters { errors: self.errors, not_found: self.not_found }
    }

    /// Adds a fetch to the history, and drops the oldest if there are too many.
    pub fn remember(&mut self, visit: Visit) {
        if self.history.len() >= HISTORY {
            self.history.remove(0);
        }
        self.history.push(visit);
    }
}

/// An entry that a worker holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// What the worker shows when it reports.
    pub token: Token,
    /// The entry.
    pub entry: EntryId,
    /// When it was handed out.
    pub from: Moment,
    /// When it runs out, and the entry is anybody's again.
    pub until: Moment,
}
