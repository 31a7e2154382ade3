//! What is shown of the queue: entries, plans and events.

use forager_core::hierarchy::Priority;
use forager_core::sentinel::Risk;
use serde::{Deserialize, Serialize};

use super::reports::{Difference, FetchRow};
use crate::entry::{EntryId, Record, State};
use crate::moment::Moment;

/// An entry, as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    /// Its number, by which listings go on.
    pub id: EntryId,
    /// The collection.
    pub collection: String,
    /// What is requested.
    pub url: String,
    /// The queue key.
    pub host: String,
    /// Whether it waits.
    pub state: State,
    /// The priority that orders the queue.
    pub priority: Priority,
    /// What it is worth: the same, unless arrival alone orders the queue.
    #[serde(skip)]
    pub worth: Priority,
    /// When it is due.
    pub due: Moment,
    /// The seed that owns it.
    pub seed: Option<String>,
    /// How far from the seed it was found.
    pub depth: u32,
    /// When it was last fetched.
    pub last_fetch: Option<Moment>,
    /// How urgent its changes are.
    pub risk: Risk,
    /// When its lease runs out.
    pub leased_until: Option<Moment>,
    /// The page that it was first found on.
    pub source: Option<String>,
    /// What was learned of it.
    pub record: Record,
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// Of this collection.
    pub collection: Option<String>,
    /// Of this host.
    pub host: Option<String>,
    /// In this state.
    pub state: Option<State>,
    /// Whose URL starts with this.
    pub prefix: Option<String>,
    /// Whose URL contains this.
    pub contains: Option<String>,
    /// Whether large and small letters are the same in that.
    pub any_case: bool,
    /// After this one.
    pub after: Option<EntryId>,
    /// How many at most.
    pub limit: usize,
    /// No more when the URLs and metadata that were looked at have so many bytes, so that a page may be empty though
    /// there are others; as many as there are if not said.
    pub bytes: Option<usize>,
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage {
    /// The entries.
    pub entries: Vec<EntryView>,
    /// Where to go on; none at the end.
    pub next: Option<EntryId>,
}

/// What to plan.
#[derive(Clone, Debug, Default)]
pub struct PlanFilter {
    /// Of this collection only.
    pub collection: Option<String>,
    /// Of this host only.
    pub host: Option<String>,
    /// How many entries.
    pub limit: usize,
}

/// An entry in the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// When it can be handed out at the earliest; none if a person must change something first.
    pub at: Option<Moment>,
    /// The collection.
    pub collection: String,
    /// The URL.
    pub url: String,
    /// The host.
    pub host: String,
    /// Its priority.
    pub priority: Priority,
    /// When it is due.
    pub due: Moment,
    /// What it waits for.
    pub waits_for: Option<WaitsFor>,
}

/// What an entry in the plan waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WaitsFor {
    /// Its due time.
    Due,
    /// Its host.
    Host,
    /// Those before it at its host.
    Others,
}

/// An event and its position in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// Its position; events from the next one on come after it.
    pub position: u64,
    /// When it happened.
    pub at: Moment,
    /// The collection.
    pub collection: String,
    /// The URL, or the first of them, or the seed, profile or job that it is about.
    pub subject: String,
    /// What happened.
    pub event: Event,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Event {
    /// A page changed.
    Changed {
        /// What its content was known by.
        from: Option<String>,
        /// What it is known by.
        to: Option<String>,
        /// What changed, where that is known.
        difference: Difference,
    },
    /// A page was given up.
    Failed {
        /// What went wrong last.
        result: String,
    },
    /// A page was taken out of the queue.
    Removed {
        /// The rule that decided.
        rule: String,
    },
    /// A lease ran out without a report.
    Abandoned {
        /// How many in a row.
        times: u32,
        /// When it was handed out: from then on the page may have been fetched.
        from: Moment,
    },
    /// A job has nothing left to fetch, or reached a limit.
    Finished,
    /// A client that plans by itself said something of URLs, of which the first is the subject.
    Put {
        /// How many were new.
        added: u64,
        /// How many were known.
        changed: u64,
        /// How many of all of them are not to be fetched any more.
        done: u64,
    },
}

/// A row of a log, to be taken elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Logged {
    /// Of the log of fetches.
    Fetch(FetchRow),
    /// Of the log of events.
    Event(EventRow),
}

/// An entry with all that is known of it, to be taken elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its number where it comes from; listings go on by it, and sources refer to it.
    pub id: EntryId,
    /// What is requested.
    pub url: String,
    /// The queue key.
    pub key: String,
    /// Whether it waits. What was leased is queued.
    pub state: State,
    /// The seed that owns it.
    pub seed: Option<String>,
    /// How far from the seed it was found.
    pub depth: u32,
    /// How far off the domain of the seed.
    pub hops_off_domain: u32,
    /// Its priority, in thousandths.
    pub priority: u16,
    /// When it is due.
    pub due: Moment,
    /// When it was last fetched.
    pub last_fetch: Option<Moment>,
    /// The harvest that last reached it.
    pub harvest: u8,
    /// How urgent its changes are.
    pub risk: Risk,
    /// The page that it was found on.
    pub source: Option<String>,
    /// What was learned of it.
    pub record: Record,
}
