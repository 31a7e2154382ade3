//! A frontier, a clock, and words for what is asked.

use std::sync::{Arc, Mutex, PoisonError};

use forager_core::hierarchy::Priority;
use forager_core::order::Order;
use forager_core::scope::{Profile, Seed};
use forager_core::sentinel::schedule::{Jitter, ScheduleConfig};
use forager_core::time::Interval;
use jiff::Timestamp;

use crate::catalog::{Change, CollectionSpec, Kind};
use crate::entry::{How, State, Token};
use crate::error::Error;
use crate::explain::Explanation;
use crate::host::HostSettings;
use crate::moment::Moment;
use crate::settings::{Politeness, Settings};
use crate::store::Memory;
use crate::verbs::{
    Action, Completed, Discovery, EntryView, EventRow, FetchError, FetchRow, Frontier, HostChange,
    HostFilter, HostView, LeaseAnswer, LeaseRequest, Leased, Link, ListFilter, Note, Page, PlanFilter,
    Planned, Report, Started, Stats, Target,
};

/// Where a frontier is kept while nobody has it open.
pub trait Place: Send + Sync {
    /// Opens what is there; an empty frontier the first time.
    fn open(&self, settings: Settings) -> Arc<dyn Frontier>;

    /// Ends it as a process does that is asked to: whoever opens it again finds all of it.
    fn close(&self, frontier: Arc<dyn Frontier>);
}

/// The plain model, which lives as long as its place.
#[derive(Debug, Default)]
pub struct InMemory(Mutex<Option<Arc<Memory>>>);

impl Place for InMemory {
    fn open(&self, settings: Settings) -> Arc<dyn Frontier> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.get_or_insert_with(|| Arc::new(Memory::new(settings).unwrap())).clone()
    }

    fn close(&self, _frontier: Arc<dyn Frontier>) {}
}

/// Makes a place where nothing is kept yet.
pub type NewPlace = fn() -> Box<dyn Place>;

/// A frontier under test, and the time as it is told to it.
pub struct World {
    new_place: NewPlace,
    place: Box<dyn Place>,
    settings: Settings,
    frontier: Option<Arc<dyn Frontier>>,
    /// What time it is.
    pub now: Timestamp,
}

impl World {
    /// A frontier that is to be opened at a new place, with [`calm`] settings.
    pub fn new(new_place: NewPlace) -> Self {
        Self { new_place, place: new_place(), settings: calm(), frontier: None, now: start_time() }
    }

    /// Another one of its kind, in which nothing has happened yet.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { settings: self.settings.clone(), ..Self::new(self.new_place) }
    }

    /// Other settings; before anything is asked.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        assert!(self.frontier.is_none(), "the settings are chosen before the frontier is opened");
        change(&mut self.settings);
        self
    }

    /// The frontier.
    pub fn frontier(&mut self) -> Arc<dyn Frontier> {
        let Self { place, settings, frontier, .. } = self;
        frontier.get_or_insert_with(|| place.open(settings.clone())).clone()
    }

    /// Closes it and opens it again, as two processes one after the other do.
    pub fn reopen(&mut self) {
        if let Some(frontier) = self.frontier.take() {
            self.place.close(frontier);
        }
    }

    /// Lets so much time pass, such as `"90s"` or `"4h"`.
    pub fn pass(&mut self, time: &str) {
        self.now = interval(time).after(self.now);
    }

    /// Lets time pass until an instant that is not before now.
    pub fn pass_until(&mut self, moment: Moment) {
        assert!(moment.timestamp() >= self.now, "{moment} is past");
        self.now = moment.timestamp();
    }

    /// The instant so long from now.
    pub fn later(&self, time: &str) -> Moment {
        Moment::of(interval(time).after(self.now))
    }

    /// This instant.
    pub fn moment(&self) -> Moment {
        Moment::of(self.now)
    }

    pub async fn configure(&mut self, changes: impl IntoIterator<Item = Change>) {
        let changes: Vec<Change> = changes.into_iter().collect();
        self.frontier().configure(&changes, self.now).await.unwrap();
    }

    pub async fn refuses(&mut self, changes: impl IntoIterator<Item = Change>) -> Error {
        let changes: Vec<Change> = changes.into_iter().collect();
        self.frontier().configure(&changes, self.now).await.unwrap_err()
    }

    /// A collection with one profile and one seed.
    pub async fn harvest(&mut self, collection: &str, order: Order, seed_url: &str) {
        let profile = profile(collection, collection, |profile| profile.order = order);
        self.configure([planned(collection), profile, seed(seed_url, [collection])]).await;
    }

    pub async fn start(&mut self, target: Target) -> Vec<Started> {
        self.frontier().start(&[target], self.now).await.unwrap()
    }

    pub async fn start_seed(&mut self, url: &str) -> Vec<Started> {
        self.start(Target::Seed(url.to_owned())).await
    }

    /// Takes in the links of one page.
    pub async fn discover(&mut self, page: Page) -> Vec<Discovery> {
        self.frontier().discover(&[page], self.now).await.unwrap()
    }

    /// Takes in links found on a page, and says what was done with each.
    pub async fn find<const N: usize>(
        &mut self,
        collection: &str,
        source: &str,
        urls: [&str; N],
    ) -> [Action; N] {
        let found = self.discover(page(collection, source, urls)).await;
        let actions: Vec<Action> = found.into_iter().map(|found| found.action).collect();
        actions.try_into().unwrap()
    }

    /// Takes in links that a seed has brought, on a page that is no entry.
    pub async fn find_for<const N: usize>(
        &mut self,
        collection: &str,
        seed: &str,
        urls: [&str; N],
    ) -> [Action; N] {
        let found = self.discover(page_of_seed(collection, seed, urls)).await;
        let actions: Vec<Action> = found.into_iter().map(|found| found.action).collect();
        actions.try_into().unwrap()
    }

    pub async fn ask(&mut self, request: &LeaseRequest) -> LeaseAnswer {
        self.frontier().lease(request, self.now).await.unwrap()
    }

    /// Leases up to so many entries, however many of them are of one host.
    pub async fn lease(&mut self, max: usize) -> Vec<Leased> {
        self.ask(&up_to(max)).await.leased
    }

    /// Leases one entry, which must be there.
    pub async fn lease_one(&mut self) -> Leased {
        let mut leased = self.lease(1).await;
        leased.pop().expect("something to lease")
    }

    /// What is leased next, as URLs.
    pub async fn lease_urls(&mut self, max: usize) -> Vec<String> {
        self.lease(max).await.into_iter().map(|leased| leased.url).collect()
    }

    pub async fn complete(&mut self, report: Report) -> Completed {
        let mut done = self.frontier().complete(&[report], self.now).await.unwrap();
        assert_eq!(done.len(), 1, "one answer for each report");
        done.remove(0)
    }

    /// Leases one entry and reports 200 with this content.
    pub async fn fetch(&mut self, content: &str) -> Completed {
        let leased = self.lease_one().await;
        self.complete(ok(leased.token, content)).await
    }

    /// Leases one entry and reports this status.
    pub async fn fetch_status(&mut self, status: u16) -> Completed {
        let leased = self.lease_one().await;
        self.complete(answered(leased.token, status)).await
    }

    pub async fn entry(&mut self, collection: &str, url: &str) -> Option<EntryView> {
        self.frontier().entry(collection, None, url, self.now).await.unwrap()
    }

    /// The entry, which must be there.
    pub async fn the_entry(&mut self, collection: &str, url: &str) -> EntryView {
        let entry = self.entry(collection, url).await;
        entry.unwrap_or_else(|| panic!("{url} is an entry of {collection}"))
    }

    pub async fn priority(&mut self, collection: &str, url: &str) -> u16 {
        self.the_entry(collection, url).await.priority.thousandths()
    }

    pub async fn set_host(&mut self, key: &str, settings: HostSettings) -> HostView {
        let change =
            HostChange { key: key.to_owned(), collection: None, sets: settings.all(), only_known: false };
        let mut views = self.frontier().set_hosts(&[change], self.now).await.unwrap();
        assert_eq!(views.len(), 1, "one answer for each change");
        views.remove(0).expect("the host is made known")
    }

    pub async fn host(&mut self, key: &str) -> HostView {
        let filter = HostFilter { key: Some(key.to_owned()), limit: 2, ..HostFilter::default() };
        let mut views = self.frontier().hosts(&filter, self.now).await.unwrap();
        assert_eq!(views.len(), 1, "one host of this key: {views:?}");
        views.remove(0)
    }

    pub async fn stats(&mut self, collection: &str) -> Stats {
        let mut stats = self.frontier().stats(Some(collection), self.now).await.unwrap();
        assert_eq!(stats.len(), 1, "one row for one collection");
        stats.remove(0)
    }

    pub async fn list(&mut self, filter: ListFilter) -> Vec<EntryView> {
        let filter = ListFilter { limit: usize::MAX, ..filter };
        self.frontier().list(&filter, self.now).await.unwrap().entries
    }

    pub async fn list_urls(&mut self, filter: ListFilter) -> Vec<String> {
        self.list(filter).await.into_iter().map(|entry| entry.url).collect()
    }

    pub async fn all(&mut self, collection: &str) -> Vec<EntryView> {
        self.list(ListFilter { collection: Some(collection.to_owned()), ..ListFilter::default() }).await
    }

    pub async fn plan(&mut self, limit: usize) -> Vec<Planned> {
        let filter = PlanFilter { limit, ..PlanFilter::default() };
        self.frontier().plan(&filter, self.now).await.unwrap()
    }

    pub async fn events(&mut self) -> Vec<EventRow> {
        self.frontier().events(0, usize::MAX).await.unwrap()
    }

    pub async fn note(&mut self, notes: impl IntoIterator<Item = Note>) {
        let notes: Vec<Note> = notes.into_iter().collect();
        self.frontier().note(&notes, self.now).await.unwrap();
    }

    /// What was written down under a key, as text.
    pub async fn noted(&mut self, key: &str) -> Option<String> {
        let mut noted = self.frontier().noted(&[key.to_owned()]).await.unwrap();
        assert_eq!(noted.len(), 1, "one answer for each key");
        noted.remove(0).map(|value| String::from_utf8(value).unwrap())
    }

    pub async fn fetches(&mut self) -> Vec<FetchRow> {
        self.frontier().fetches(0, usize::MAX).await.unwrap()
    }

    pub async fn reclaim(&mut self, collection: &str) -> u64 {
        self.frontier().reclaim(collection, self.now).await.unwrap()
    }

    pub async fn explain(&mut self, collection: &str, url: &str) -> Explanation {
        self.frontier().explain(collection, None, url, self.now).await.unwrap()
    }

    /// What is counted equals what a scan of everything counts.
    pub async fn counts_equal_a_scan(&mut self, collection: &str) {
        let (stats, all) = (self.stats(collection).await, self.all(collection).await);
        let count = |state| all.iter().filter(|entry| entry.state == state).count() as u64;
        let counted = [State::Queued, State::Leased, State::Done, State::Failed].map(count);
        assert_eq!([stats.queued, stats.in_flight, stats.done, stats.failed], counted, "{collection}");
        let hosts: std::collections::BTreeSet<&str> = all.iter().map(|entry| entry.host.as_str()).collect();
        assert_eq!(stats.hosts, hosts.len() as u64, "hosts with entries of {collection}");
    }
}

/// Where the clock of a new world stands.
fn start_time() -> Timestamp {
    "2024-06-15T08:00:00Z".parse().unwrap()
}

/// Settings without chance or delay, so that a case sees only what it is about.
pub fn calm() -> Settings {
    Settings {
        sentinel: ScheduleConfig { jitter: Jitter::NONE, ..ScheduleConfig::default() },
        politeness: Politeness {
            delay: Interval::default(),
            max_delay: Interval::default(),
            in_flight: 1000,
            ..Politeness::default()
        },
        ..Settings::default()
    }
}

/// A delay between fetches that is always the same.
pub fn delay(time: &str) -> impl FnOnce(&mut Settings) {
    let delay = interval(time);
    move |settings| (settings.politeness.delay, settings.politeness.max_delay) = (delay, delay)
}

pub fn interval(text: &str) -> Interval {
    text.parse().unwrap()
}

pub fn thousandths(value: u16) -> Priority {
    Priority::from_thousandths(value).unwrap()
}

pub fn planned(id: &str) -> Change {
    Change::AddCollection(CollectionSpec::new(id, Kind::Planned))
}

pub fn unplanned(id: &str) -> Change {
    Change::AddCollection(CollectionSpec::new(id, Kind::Plain))
}

pub fn profile(id: &str, collection: &str, change: impl FnOnce(&mut Profile)) -> Change {
    Change::AddProfile(Box::new(profile_value(id, collection, change)))
}

pub fn changed_profile(id: &str, collection: &str, change: impl FnOnce(&mut Profile)) -> Change {
    Change::SetProfile(Box::new(profile_value(id, collection, change)))
}

pub fn profile_value(id: &str, collection: &str, change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = Profile::new(id, collection);
    change(&mut profile);
    profile
}

pub fn seed<const N: usize>(url: &str, profiles: [&str; N]) -> Change {
    Change::AddSeed(seed_value(url, profiles))
}

pub fn seed_value<const N: usize>(url: &str, profiles: [&str; N]) -> Seed {
    Seed { url: url.to_owned(), profiles: profiles.map(ToOwned::to_owned).to_vec(), enabled: true }
}

/// A page that is an entry, with plain links.
pub fn page<'a>(collection: &str, source: &str, urls: impl IntoIterator<Item = &'a str>) -> Page {
    Page {
        collection: collection.to_owned(),
        source: Some(source.to_owned()),
        links: urls.into_iter().map(link).collect(),
        ..Page::default()
    }
}

/// A page that is no entry: a seed at depth 0 brought it.
pub fn page_of_seed<'a>(collection: &str, seed: &str, urls: impl IntoIterator<Item = &'a str>) -> Page {
    Page { source: None, seed: Some(seed.to_owned()), ..page(collection, "", urls) }
}

pub fn link(url: &str) -> Link {
    Link { url: url.to_owned(), ..Link::default() }
}

pub fn link_as(how: How, url: &str) -> Link {
    Link { how, ..link(url) }
}

pub fn up_to(max: usize) -> LeaseRequest {
    LeaseRequest { max, per_host: max, ..LeaseRequest::default() }
}

pub fn answered(token: Token, status: u16) -> Report {
    Report { token: token.0, status: Some(status), ..Report::default() }
}

pub fn ok(token: Token, content: &str) -> Report {
    Report { fingerprint: Some(content.to_owned()), bytes: content.len() as u64, ..answered(token, 200) }
}

pub fn no_answer(token: Token, error: FetchError) -> Report {
    Report { token: token.0, error: Some(error), ..Report::default() }
}

/// A report of a page with these links.
pub fn ok_with(token: Token, links: Vec<Link>) -> Report {
    Report { links, ..ok(token, "x") }
}
