//! The verbs of the frontier: what callers ask, and what they are told.

mod clients;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use forager_core::hierarchy::Priority;
use forager_core::order::Order;
use forager_core::sentinel::Risk;
use forager_core::time::Interval;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::catalog::{Catalog, Change, Job, Limits};
use crate::entry::{EntryId, How, Record, State, Token, Validators};
use crate::error::Result;
use crate::explain::Explanation;
use crate::host::{Gate, Honesty, HostSettings, Setting};
use crate::moment::Moment;

pub use clients::{Item, Purge, Purged, Put, Word, derived_key};

/// The queue. Every call takes a batch, is told the time, and is atomic: when it returns, all of
/// it is durable, and if it fails nothing of it was done.
///
/// What the words mean exactly is fixed by the suite `conformance`, which every
/// implementation passes. Each call first takes back the leases that have run out.
#[async_trait]
pub trait Frontier: Send + Sync {
    /// Changes collections, profiles and seeds: all of the changes, or none.
    async fn configure(&self, changes: &[Change], now: Timestamp) -> Result<()>;
    /// The collections, profiles and seeds.
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
    /// Has the queues of plain collections that have no delay of their own wait so long after what they last handed out.
    async fn pace(&self, delay: Interval, now: Timestamp) -> Result<()>;
    /// Removes a queue with all that is known of it, or all queues of a collection, and a plain collection with them;
    /// says how many entries there were. What is not there has none.
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
    /// All that speaks for and against a URL, seen or never seen.
    async fn explain(&self, collection: &str, url: &str, now: Timestamp) -> Result<Explanation>;
    /// Entries with all that is known of them, to be taken elsewhere, a page at a time.
    async fn export(
        &self,
        collection: &str,
        after: Option<EntryId>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Image>>;
    /// Takes in what was exported elsewhere; says for each whether it was new.
    async fn import(&self, collection: &str, images: &[Image], now: Timestamp) -> Result<Vec<bool>>;
    /// Counts up whenever there may be something new to lease, so that whoever waits can wake.
    fn arrivals(&self) -> watch::Receiver<u64>;
}

/// What to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A seed, by its URL, in the collections of all its profiles.
    Seed(String),
    /// All seeds of a profile.
    Profile(String),
    /// All profiles of a collection.
    Collection(String),
}

/// What became of a seed that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The collection it was started in.
    pub collection: String,
    /// The URL.
    pub url: String,
    /// What became of it.
    pub action: Action,
    /// When it is due.
    pub due: Option<Moment>,
    /// Why.
    pub rule: Arc<str>,
}

/// Links, and the page they were found on.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Page {
    /// The collection that the page was fetched for.
    pub collection: String,
    /// The page. Where it is an entry, its seed, depth and priority are taken from there.
    pub source: Option<String>,
    /// The seed of the page, if it is no entry.
    pub seed: Option<String>,
    /// How far from the seed the page is, if it is no entry.
    pub depth: u32,
    /// What was found on it.
    pub links: Vec<Link>,
}

/// A link.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Link {
    /// Where it leads; absolute.
    pub url: String,
    /// How it was found.
    pub how: How,
    /// Whether it stands in the header or navigation of the page.
    pub in_header: bool,
    /// Its text.
    pub text: String,
    /// Its title.
    pub title: String,
    /// How well it fits the topic, 0 to 1.
    pub relevance: Option<f64>,
    /// The queue key, in a plain collection; the host of the URL if there is none.
    pub key: Option<String>,
    /// When it is due, in a plain collection; at once if there is none.
    pub due: Option<Moment>,
    /// What the client wants back with it.
    pub metadata: Option<String>,
    /// When it changed, as a sitemap says.
    pub last_modified: Option<Moment>,
}

/// What became of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// What was done.
    pub action: Action,
    /// Why.
    pub rule: Arc<str>,
}

/// What was done with a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It is new in the queue.
    Added,
    /// It was known, and something about it is better now.
    Improved,
    /// It was known, and stays as it is.
    Kept,
    /// It was known, and is out of scope now.
    Removed,
    /// It is not wanted.
    Ignored,
    /// It is not a URL that can be crawled.
    Invalid,
}

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
    /// How long a queue of a plain collection waits after this, unless it has a delay of its own; a second if not said.
    pub plain_delay: Option<Interval>,
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
            plain_delay: None,
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
    /// The least milliseconds between two requests to its host; for who is slower to send them than to lease.
    #[serde(skip)]
    pub least_gap: u64,
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

/// What came of a fetch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Report {
    /// The lease.
    pub token: u64,
    /// The HTTP status.
    pub status: Option<u16>,
    /// What went wrong, if there was no answer.
    pub error: Option<FetchError>,
    /// What the content is known by.
    pub fingerprint: Option<String>,
    /// Whether the content changed, where the worker knows; the fingerprint tells otherwise.
    pub changed: Option<bool>,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Interval>,
    /// How many bytes were read.
    pub bytes: u64,
    /// What the server knows this version by.
    pub validators: Validators,
    /// What was found on the page: taken in together with the report, or not at all.
    pub links: Vec<Link>,
    /// What the page says, to tell later what has changed; kept under [`text_key`] as [`kept_text`] has it.
    pub text: Option<String>,
    /// What has changed.
    pub difference: Difference,
    /// When the request was sent, and by which rule of robots.txt; for the log of fetches.
    pub fetch: Option<Sent>,
}

/// Lines that a page has and had not, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Difference {
    /// Lines that are new.
    pub added: Vec<String>,
    /// Lines that are gone.
    pub removed: Vec<String>,
}

impl Difference {
    /// The same, with a line before all others for a page that is gone, or there again.
    #[must_use]
    pub fn with(mut self, presence: Option<Presence>) -> Self {
        if let Some(presence) = presence {
            self.added.insert(0, presence.to_string());
        }
        self
    }
}

/// Whether a page is there, where that is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    /// It was there, and is gone: 404 or 410.
    Gone,
    /// It was gone, and is there again.
    Back,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the page is gone",
            Self::Back => "the page is there again",
        })
    }
}

/// A request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sent {
    /// When.
    pub at: Moment,
    /// When its answer was whole, or given up; when it is reported, if that is not told.
    pub ended: Option<Moment>,
    /// What robots.txt says of the URL.
    pub robots: String,
}

/// The most bytes of a note, and of the text of a page: twice the largest robots.txt.
pub const MAX_NOTE_BYTES: usize = 1 << 20;

/// The key under which the text of a page is kept.
pub fn text_key(collection: &str, url: &str) -> String {
    format!("{TEXT}{collection} {url}")
}

/// What the keys of all texts begin with.
pub(crate) const TEXT: &str = "text ";

/// The collection and the page whose text is kept under a key. A name may have spaces in it; a URL has none.
pub(crate) fn page_of_text(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(TEXT)?.rsplit_once(' ')
}

/// A text as it is kept. One that is too long ends where a line does, with a line more that says so; whoever compares
/// with it has to cut likewise.
pub fn kept_text(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_NOTE_BYTES {
        return Cow::Borrowed(text);
    }
    let end = format!("\n[cut off here: the text has {} bytes]", text.len());
    let most = &text[..text.floor_char_boundary(MAX_NOTE_BYTES - end.len())];
    let lines = most.rsplit_once('\n').map_or(most, |(lines, _)| lines);
    Cow::Owned(format!("{lines}{end}"))
}

/// Whether a host can be visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Now; to be left with this token.
    Welcome(Token),
    /// Not before this, because of a gate.
    Closed(Moment, Gate),
}

/// Something to write down.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A value under a key, of [`MAX_NOTE_BYTES`] at most; none forgets it.
    Keep(String, Option<Vec<u8>>),
    /// What the robots.txt of a host asks for between fetches.
    CrawlDelay(String, Option<Interval>),
    /// A fetch that was made for no entry. Its limits are filled in; a pause that the host asked for is kept.
    Fetch(FetchRow),
}

/// A fetch that was made, and the rules it was made by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FetchRow {
    /// Its position in the log; fetches from the next one on come after it.
    pub position: u64,
    /// When the request was sent.
    pub started: Moment,
    /// When its answer was whole, or given up.
    pub ended: Moment,
    /// The collection it was made for.
    pub collection: String,
    /// The host.
    pub host: String,
    /// What was requested.
    pub url: String,
    /// What came of it: a status, or the kind of error.
    pub result: String,
    /// How many bytes were read.
    pub bytes: u64,
    /// What robots.txt says of the URL.
    pub robots: String,
    /// The least milliseconds between two fetches from this host, at the time.
    pub least_gap: u64,
    /// How many fetches from this host could be under way, at the time.
    pub most_in_flight: u32,
    /// Until when the host is left alone after this one, because it failed or asked for a pause.
    pub back_off_until: Option<Moment>,
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FetchError {
    /// It took too long.
    Timeout,
    /// The host could not be reached, or broke off.
    Network,
    /// What came is damaged: its packing is broken, or it is not as long as it says. That is the page's fault, not its
    /// host's; its links count when it is given up.
    Damaged,
    /// robots.txt forbids it, so that it was not asked for.
    Robots,
    /// Its robots.txt cannot be had, so that it was not asked for.
    Unreachable,
    /// Its host is where no connection may lead, so that it was not asked for.
    Address,
    /// It cannot be had: too large, wrong type.
    Refused,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    /// The lease.
    pub token: Token,
    /// What was done.
    pub outcome: Outcome,
    /// Whether the page had changed.
    pub changed: bool,
    /// Whether it is gone since the last time, or there again; that is a change too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence: Option<Presence>,
    /// When it is due again.
    pub due: Option<Moment>,
    /// Why.
    pub rule: Arc<str>,
    /// What became of what was found on the page, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Discovery>,
}

/// What became of an entry after its fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is in the queue again.
    Again,
    /// It was fetched as often as asked.
    Done,
    /// It could not be fetched, and is given up.
    Failed,
    /// It is out of scope now.
    Removed,
    /// The lease had run out, or never was; nothing was done.
    Refused,
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

/// Something to set for a host.
#[derive(Clone, Debug)]
pub struct HostChange {
    /// The host, or queue key.
    pub key: String,
    /// The plain collection it belongs to; none for a host of planned collections.
    pub collection: Option<String>,
    /// What is set from now on. What is not named stays.
    pub sets: Vec<Setting>,
    /// Whether a host that is not known is left alone.
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
}

/// A job to start.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its name; also that of its collection and profile.
    pub id: String,
    /// Where it starts.
    pub urls: Vec<String>,
    /// Scope, order and depth; its name, collection and length are set by the job.
    pub profile: forager_core::scope::Profile,
    /// When it ends at the latest.
    pub limits: Limits,
}

/// What to do with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steer {
    /// Hand out nothing until it is resumed.
    Pause,
    /// Go on.
    Resume,
    /// Hand out nothing any more.
    Cancel,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// Its name.
    pub id: String,
    /// Whether it goes on.
    pub state: JobState,
    /// How it orders its pages.
    pub order: Order,
    /// What it is made of.
    #[serde(flatten)]
    pub job: Job,
    /// How far it is.
    pub progress: Stats,
}

/// Whether a job goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// It goes on.
    Running,
    /// It waits to be resumed.
    Paused,
    /// A person ended it.
    Cancelled,
    /// It has nothing left to fetch, or reached a limit.
    Finished,
}

/// How many entries a collection has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The collection.
    pub collection: String,
    /// Entries in the queue, due or not.
    pub queued: u64,
    /// Entries that workers have.
    pub in_flight: u64,
    /// Entries that were fetched as often as asked.
    pub done: u64,
    /// Entries that were given up.
    pub failed: u64,
    /// Hosts that have entries.
    pub hosts: u64,
    /// Hosts that have entries which wait or are under way.
    #[serde(skip)]
    pub active_hosts: u64,
    /// What was counted since the collection began.
    #[serde(flatten)]
    pub tally: Tally,
}

/// What is counted as it happens, for no entry tells it afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Fetches that were reported.
    pub fetches: u64,
    /// Bytes that were read.
    pub bytes: u64,
    /// Changes that were found.
    pub changes: u64,
    /// Entries that were taken out of the queue unfetched, because they were out of scope.
    pub skipped: u64,
}

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
    /// Its priority.
    pub priority: Priority,
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
}

/// A page of a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPage {
    /// The entries.
    pub entries: Vec<EntryView>,
    /// Where to go on; none at the end.
    pub next: Option<EntryId>,
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
    /// The URL, or the seed, profile or job that it is about.
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
