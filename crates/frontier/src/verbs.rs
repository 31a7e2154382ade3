//! The verbs of the frontier: what callers ask, and what they are told.

mod clients;
mod finds;
mod hosts;
mod jobs;
mod leases;
mod looks;
mod reports;

use std::sync::Arc;

use async_trait::async_trait;
use forager_core::time::Interval;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::catalog::{Catalog, Change};
use crate::entry::{EntryId, Token};
use crate::error::Result;
use crate::explain::Explanation;
use crate::host::Learned;

pub use clients::{Item, Purge, Purged, Put, Word, derived_key};
pub use finds::{Action, Discovery, Link, Page, Started, Target};
pub use hosts::{HostChange, HostFilter, HostView};
pub use jobs::{JobState, JobView, NewJob, Stats, Steer, Tally};
pub use leases::{LeaseAnswer, LeaseChange, LeaseRequest, Leased, Nothing, Terms, Visit};
pub use looks::{
    EntryView, Event, EventRow, Image, ListFilter, ListPage, Logged, PlanFilter, Planned, WaitsFor,
};
pub use reports::{
    Completed, Difference, FetchError, FetchRow, MAX_NOTE_BYTES, Note, Outcome, Presence, Report, Sent,
    kept_text, text_key,
};
pub(crate) use reports::{TEXT, page_of_text};

/// The queue. Every call takes a batch, is told the time, and is atomic: when it returns, all of
/// it is durable, and if it fails nothing of it was done.
///
/// What the words mean exactly is fixed by the suite `conformance`, which every
/// implementation passes. Each call first takes back the leases that have run out.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Changes collections, profiles, seeds and what holds for all queues: all of the changes, or none.
    async fn configure(&self, changes: &[Change], now: Timestamp) -> Result<()>;
    /// The collections, profiles and seeds, and what holds for all queues.
    async fn catalog(&self) -> Result<Arc<Catalog>>;
    /// Queues seeds, as if links to them had been found.
    async fn start(&self, targets: &[Target], now: Timestamp) -> Result<Vec<Started>>;
    /// Takes in links; says for each, in order, what became of it and why.
    async fn discover(&self, pages: &[Page], now: Timestamp) -> Result<Vec<Discovery>>;
    /// Takes in what clients that plan by themselves say of URLs; says for each, in order, what became of it. In a
    /// collection with profiles those decide: what was found has to be in scope, and a date says that it was fetched.
    async fn put(&self, puts: &[Put], now: Timestamp) -> Result<Vec<Discovery>>;
    /// Hands out entries, or says how long to wait for one.
    async fn lease(&self, request: &LeaseRequest, now: Timestamp) -> Result<LeaseAnswer>;
    /// Takes in what came of fetches. A lease that ran out is refused, and changes nothing.
    async fn complete(&self, reports: &[Report], now: Timestamp) -> Result<Vec<Completed>>;
    /// Holds leases for this long from now.
    async fn extend(&self, tokens: &[Token], hold: Interval, now: Timestamp) -> Result<Vec<LeaseChange>>;
    /// Gives entries back untouched.
    async fn release(&self, tokens: &[Token], now: Timestamp) -> Result<Vec<LeaseChange>>;
    /// Takes back all leases of a collection as if they had run out; says how many. For whoever knows that their
    /// holders are gone.
    async fn reclaim(&self, collection: &str, now: Timestamp) -> Result<u64>;
    /// Writes down what was learned besides entries: all of it, or nothing.
    async fn note(&self, notes: &[Note], now: Timestamp) -> Result<()>;
    /// What was written down under these keys.
    async fn noted(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>>;
    /// The fetches that were made, from a position on.
    async fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>>;
    /// Asks a host for one fetch that is for no entry, such as its robots.txt: it waits its turn and counts like any
    /// other.
    async fn visit(&self, host: &str, hold: Interval, now: Timestamp) -> Result<Visit>;
    /// Ends visits.
    async fn leave(&self, tokens: &[(String, Token)], now: Timestamp) -> Result<()>;
    /// Changes what is set for hosts. A host that is not known yet is made known, or left alone, as the change says.
    async fn set_hosts(&self, changes: &[HostChange], now: Timestamp) -> Result<Vec<Option<HostView>>>;
    /// Removes a queue with all that is known of it, or all queues of a collection, and a plain collection with them;
    /// says how many entries there were. What is not there has none. Of a host that planned collections share, what clients
    /// can set goes with the last queue there, and what was learned stays.
    async fn remove(&self, collection: &str, key: Option<&str>, now: Timestamp) -> Result<u64>;
    /// Removes entries that have had their time. Their queues stay.
    async fn purge(&self, purge: &Purge, now: Timestamp) -> Result<Purged>;
    /// Starts a job: a collection of its own that ends.
    async fn start_job(&self, job: &NewJob, now: Timestamp) -> Result<JobView>;
    /// Pauses, resumes or cancels a job.
    async fn steer_job(&self, id: &str, steer: Steer, now: Timestamp) -> Result<JobView>;
    /// All jobs and how far they are.
    async fn jobs(&self, now: Timestamp) -> Result<Vec<JobView>>;
    /// An entry, by its URL; in one queue, or wherever it is.
    async fn entry(
        &self,
        collection: &str,
        key: Option<&str>,
        url: &str,
        now: Timestamp,
    ) -> Result<Option<EntryView>>;
    /// Entries in the order of arrival, a page at a time.
    async fn list(&self, filter: &ListFilter, now: Timestamp) -> Result<ListPage>;
    /// Hosts in the order they became known, a page at a time.
    async fn hosts(&self, filter: &HostFilter, now: Timestamp) -> Result<Vec<HostView>>;
    /// How many entries there are, by state; of one collection, or one for each.
    async fn stats(&self, collection: Option<&str>, now: Timestamp) -> Result<Vec<Stats>>;
    /// What would be handed out next, and when, if every fetch took no time.
    async fn plan(&self, filter: &PlanFilter, now: Timestamp) -> Result<Vec<Planned>>;
    /// Events from a position on.
    async fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>>;
    /// All that speaks for and against a URL, seen or never seen; in one queue, or wherever it is.
    async fn explain(
        &self,
        collection: &str,
        key: Option<&str>,
        url: &str,
        now: Timestamp,
    ) -> Result<Explanation>;
    /// Entries with all that is known of them, to be taken elsewhere, a page at a time.
    async fn export(
        &self,
        collection: &str,
        after: Option<EntryId>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Image>>;
    /// Takes in what a collection has counted elsewhere, and what was learned of its hosts.
    async fn learn(
        &self,
        collection: &str,
        tally: Tally,
        hosts: &[(String, Learned)],
        now: Timestamp,
    ) -> Result<()>;
    /// Takes in what was exported elsewhere; says for each whether it was new.
    async fn import(&self, collection: &str, images: &[Image], now: Timestamp) -> Result<Vec<bool>>;
    /// Appends to the logs what they had elsewhere, in this order. Positions are those of this frontier; nothing else is
    /// learned from it.
    async fn append(&self, rows: &[Logged], now: Timestamp) -> Result<()>;
    /// Counts up whenever there may be something new to lease, so that whoever waits can wake.
    fn arrivals(&self) -> watch::Receiver<u64>;
}
