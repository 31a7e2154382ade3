//! The plain model: short, obviously right, and slow. Every other store agrees with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::Store;
use crate::catalog::{Catalog, Kind, Rows};
use crate::engine::{Counts, InLine, NewEntry, Outlook, Tx, Wanted, Within};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Host, InFlight, Opens, next_turn};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{Event, EventRow, FetchRow, Tally};

/// A frontier that forgets everything when it is dropped. For tests and small one-off runs: every
/// question is answered by looking at everything.
#[derive(Debug)]
pub struct Memory {
    model: Mutex<Model>,
    bell: watch::Sender<u64>,
}

impl Memory {
    /// An empty frontier.
    pub fn new(settings: Settings) -> Result<Self> {
        let catalog = Arc::new(Catalog::new(Rows::default(), &settings)?);
        let model = Model { settings: Arc::new(settings), catalog, ..Model::empty() };
        Ok(Self { model: Mutex::new(model), bell: watch::Sender::new(0) })
    }
}

impl Store for Memory {
    type Tx = Model;

    async fn transact<R: Send>(
        &self,
        now: Option<Moment>,
        call: impl Fn(&mut Model, Moment) -> Result<R> + Send + Sync,
    ) -> Result<R> {
        let mut model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
        // The time was told, whatever comes of the call.
        model.now = now.map_or(model.now, |now| model.now.advanced(now));
        let now = model.now;
        // A copy is what makes a failed call undone: simple, and right.
        let mut next = model.clone();
        let result = call(&mut next, now)?;
        *model = next;
        drop(model);
        self.bell.send_modify(|count| *count += 1);
        Ok(result)
    }

    fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }
}

/// Everything there is.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    settings: Arc<Settings>,
    catalog: Arc<Catalog>,
    now: Moment,
    tallies: BTreeMap<CollectionId, Tally>,
    /// By number; none where one was removed.
    entries: Vec<Option<Entry>>,
    queues: Vec<Option<(CollectionId, HostId)>>,
    hosts: Vec<Option<HostEntry>>,
    leases: BTreeMap<Token, Lease>,
    events: Vec<EventRow>,
    notes: BTreeMap<String, Vec<u8>>,
    fetches: Vec<FetchRow>,
    last_token: u64,
    last_turn: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    identity: String,
    url: String,
    standing: Standing,
    record: Record,
}

#[derive(Clone, Debug)]
struct HostEntry {
    key: String,
    owner: Option<CollectionId>,
    state: Host,
}

impl Model {
    fn empty() -> Self {
        let settings = Arc::new(Settings::default());
        #[expect(clippy::expect_used, reason = "an empty catalog has nothing that could be wrong")]
        let catalog = Catalog::new(Rows::default(), &settings).expect("an empty catalog is valid");
        Self {
            settings,
            catalog: Arc::new(catalog),
            now: Moment::ZERO,
            tallies: BTreeMap::new(),
            entries: Vec::new(),
            queues: Vec::new(),
            hosts: Vec::new(),
            leases: BTreeMap::new(),
            events: Vec::new(),
            notes: BTreeMap::new(),
            fetches: Vec::new(),
            last_token: 0,
            last_turn: 0,
        }
    }

    fn live(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        let numbered = self.entries.iter().enumerate();
        numbered.filter_map(|(index, entry)| Some((EntryId(number(index)), entry.as_ref()?)))
    }

    fn entry_mut(&mut self, entry: EntryId) -> Option<&mut Entry> {
        self.entries.get_mut(entry.0 as usize)?.as_mut()
    }

    fn is_ready(&self, entry: &Entry) -> bool {
        entry.standing.state == State::Queued && entry.standing.due <= self.now
    }

    fn opens(&self, queue: QueueId) -> Opens {
        let (collection, host) = self.queue_parts(queue);
        let row = self.catalog.collection_numbered(collection);
        let is_plain = row.is_some_and(|row| row.spec.kind == Kind::Plain);
        self.host(host).opens(self.in_flight(host), &self.settings.politeness, is_plain)
    }

    fn is_wanted(&self, wanted: &Wanted, queue: QueueId) -> bool {
        let (collection, host) = self.queue_parts(queue);
        wanted.collections.contains(&collection)
            && wanted.key.as_ref().is_none_or(|key| *key == self.host_key(host).0)
    }

    fn count(&self, keep: impl Fn(&Standing) -> bool) -> Counts {
        let of_state = |state| move |standing: &Standing| standing.state == state;
        let kept = || self.live().map(|(_, entry)| entry.standing).filter(&keep);
        State::ALL.map(|state| kept().filter(of_state(state)).count() as u64)
    }

    /// The wanted queues that have a ready entry.
    fn ready_queues(&self, wanted: &Wanted) -> BTreeSet<QueueId> {
        let ready = self.live().filter(|(_, entry)| self.is_ready(entry));
        ready.map(|(_, entry)| entry.standing.queue).filter(|queue| self.is_wanted(wanted, *queue)).collect()
    }
}

impl Tx for Model {
    fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        self.catalog = catalog;
    }

    fn clear_collection(&mut self, collection: CollectionId) -> Result<u64> {
        let is_its = |queues: &[Option<(CollectionId, HostId)>], queue: QueueId| {
            queues[queue.0 as usize].is_some_and(|(owner, _)| owner == collection)
        };
        let doomed: Vec<EntryId> = self
            .live()
            .filter(|(_, entry)| is_its(&self.queues, entry.standing.queue))
            .map(|(id, _)| id)
            .collect();
        for entry in &doomed {
            self.entries[entry.0 as usize] = None;
        }
        self.leases.retain(|_, lease| !doomed.contains(&lease.entry));
        for queue in &mut self.queues {
            if queue.is_some_and(|(owner, _)| owner == collection) {
                *queue = None;
            }
        }
        for host in &mut self.hosts {
            if host.as_ref().is_some_and(|host| host.owner == Some(collection)) {
                *host = None;
            }
        }
        self.tallies.remove(&collection);
        Ok(doomed.len() as u64)
    }

    fn tally(&self, collection: CollectionId) -> Tally {
        self.tallies.get(&collection).copied().unwrap_or_default()
    }

    fn count_up(&mut self, collection: CollectionId, more: Tally) {
        *self.tallies.entry(collection).or_default() += more;
    }

    fn find(&self, queue: QueueId, identity: &str) -> Result<Option<EntryId>> {
        let mut live = self.live();
        Ok(live
            .find(|(_, entry)| entry.standing.queue == queue && entry.identity == identity)
            .map(|(id, _)| id))
    }

    fn standing(&self, entry: EntryId) -> Option<Standing> {
        Some(self.entries.get(entry.0 as usize)?.as_ref()?.standing)
    }

    fn load(&self, entry: EntryId) -> Result<(String, Record)> {
        let found = self.entries.get(entry.0 as usize).and_then(Option::as_ref);
        Ok(found.map(|entry| (entry.url.clone(), entry.record.clone())).unwrap_or_default())
    }

    fn insert(&mut self, new: NewEntry<'_>) -> EntryId {
        let NewEntry { identity, url, standing, record } = new;
        self.entries.push(Some(Entry {
            identity: identity.to_owned(),
            url: url.to_owned(),
            standing,
            record,
        }));
        EntryId(number(self.entries.len() - 1))
    }

    fn set_standing(&mut self, entry: EntryId, standing: Standing) {
        if let Some(entry) = self.entry_mut(entry) {
            entry.standing = standing;
        }
    }

    fn set_record(&mut self, entry: EntryId, record: Record) {
        if let Some(entry) = self.entry_mut(entry) {
            entry.record = record;
        }
    }

    fn remove(&mut self, entry: EntryId) {
        self.leases.retain(|_, lease| lease.entry != entry);
        self.entries[entry.0 as usize] = None;
    }

    fn queue(&mut self, collection: CollectionId, key: &str, is_plain: bool) -> QueueId {
        if let Some(queue) = self.find_queue(collection, key) {
            return queue;
        }
        let host = self.host_of(is_plain.then_some(collection), key);
        self.queues.push(Some((collection, host)));
        QueueId(number(self.queues.len() - 1))
    }

    fn find_queue(&self, collection: CollectionId, key: &str) -> Option<QueueId> {
        let is_it = |parts: &Option<(CollectionId, HostId)>| {
            parts.is_some_and(|(owner, host)| owner == collection && self.host_key(host).0 == key)
        };
        self.queues.iter().position(is_it).map(|index| QueueId(number(index)))
    }

    fn forget_queue(&mut self, queue: QueueId) {
        let Some((collection, host)) = self.queues[queue.0 as usize].take() else { return };
        if self.host_key(host).1 == Some(collection) {
            self.hosts[host.0 as usize] = None;
        }
    }

    #[expect(clippy::expect_used, reason = "entries refer to queues that there are")]
    fn queue_parts(&self, queue: QueueId) -> (CollectionId, HostId) {
        self.queues[queue.0 as usize].expect("the queue is there")
    }

    fn queues(&self) -> Vec<QueueId> {
        let live = self.queues.iter().enumerate().filter(|(_, queue)| queue.is_some());
        live.map(|(index, _)| QueueId(number(index))).collect()
    }

    fn queue_counts(&self, queue: QueueId) -> Counts {
        self.count(|standing| standing.queue == queue)
    }

    fn counts(&self, collection: CollectionId) -> Counts {
        self.count(|standing| self.queue_parts(standing.queue).0 == collection)
    }

    fn host_of(&mut self, owner: Option<CollectionId>, key: &str) -> HostId {
        let is_it = |host: &Option<HostEntry>| {
            host.as_ref().is_some_and(|host| host.key == key && host.owner == owner)
        };
        if let Some(index) = self.hosts.iter().position(is_it) {
            return HostId(number(index));
        }
        self.hosts.push(Some(HostEntry { key: key.to_owned(), owner, state: Host::default() }));
        HostId(number(self.hosts.len() - 1))
    }

    #[expect(clippy::expect_used, reason = "queues refer to hosts that there are")]
    fn host_key(&self, host: HostId) -> (&str, Option<CollectionId>) {
        let host = self.hosts[host.0 as usize].as_ref().expect("the host is there");
        (&host.key, host.owner)
    }

    #[expect(clippy::expect_used, reason = "queues refer to hosts that there are")]
    fn host(&self, host: HostId) -> &Host {
        &self.hosts[host.0 as usize].as_ref().expect("the host is there").state
    }

    fn set_host(&mut self, host: HostId, state: Host) {
        if let Some(Some(host)) = self.hosts.get_mut(host.0 as usize) {
            host.state = state;
        }
    }

    fn in_flight(&self, host: HostId) -> InFlight {
        let its = self.leases.values().filter(|lease| {
            self.standing(lease.entry).is_some_and(|standing| self.queue_parts(standing.queue).1 == host)
        });
        let ends: Vec<Moment> = its.map(|lease| lease.until).collect();
        InFlight { count: number(ends.len()), first_expiry: ends.into_iter().min() }
    }

    fn all_hosts(&self) -> Vec<HostId> {
        let live = self.hosts.iter().enumerate().filter(|(_, host)| host.is_some());
        live.map(|(index, _)| HostId(number(index))).collect()
    }

    fn next_token(&mut self) -> Token {
        self.last_token += 1;
        Token(self.last_token)
    }

    fn next_turn(&mut self) -> u64 {
        self.last_turn = next_turn(self.last_turn, self.now);
        self.last_turn
    }

    fn grant(&mut self, lease: Lease) {
        self.leases.insert(lease.token, lease);
    }

    fn lease(&self, token: Token) -> Option<Lease> {
        self.leases.get(&token).copied()
    }

    fn lease_of(&self, entry: EntryId) -> Option<Lease> {
        self.leases.values().find(|lease| lease.entry == entry).copied()
    }

    fn end_lease(&mut self, token: Token) {
        self.leases.remove(&token);
    }

    fn expired(&self, now: Moment) -> Vec<Lease> {
        let mut expired: Vec<Lease> =
            self.leases.values().filter(|lease| lease.until <= now).copied().collect();
        expired.sort_by_key(|lease| (lease.until, lease.token));
        expired
    }

    fn wake(&mut self, now: Moment) -> Vec<EntryId> {
        let steps = |entry: &Entry| {
            entry.standing.state == State::Queued && entry.standing.step.is_some_and(|step| step <= now)
        };
        self.live().filter(|(_, entry)| steps(entry)).map(|(id, _)| id).collect()
    }

    fn next_queue(&mut self, wanted: &Wanted, after: Option<InLine>, below: u64) -> Option<InLine> {
        let place = |queue: QueueId| {
            let ((collection, host), opens) = (self.queue_parts(queue), self.opens(queue));
            opens.is_open(self.now).then(|| self.host(host).place(collection, opens, self.now))
        };
        let ready = self.ready_queues(wanted).into_iter();
        let open = ready.filter_map(|queue| Some((place(queue)?, queue)));
        open.filter(|in_line| in_line.0 < below && Some(*in_line) > after).min()
    }

    fn take(&mut self, queue: QueueId, as_oldest: bool) -> Option<EntryId> {
        let ready = self.live().filter(|(_, entry)| entry.standing.queue == queue && self.is_ready(entry));
        if as_oldest {
            let by_due = ready.filter(|(_, entry)| entry.standing.by_due);
            return by_due.min_by_key(|(id, entry)| (entry.standing.due, *id)).map(|(id, _)| id);
        }
        let order = |(id, entry): &(EntryId, &Entry)| {
            let standing = &entry.standing;
            (std::cmp::Reverse(standing.effective()), standing.by_due.then_some(standing.due), *id)
        };
        ready.min_by_key(order).map(|(id, _)| id)
    }

    fn outlook(&self, wanted: &Wanted) -> Outlook {
        let ready = self.ready_queues(wanted);
        let closed = ready.iter().map(|queue| (self.opens(*queue), *queue));
        let waiting = self.live().map(|(_, entry)| entry.standing).filter(|standing| {
            standing.state == State::Queued
                && self.is_wanted(wanted, standing.queue)
                && !ready.contains(&standing.queue)
        });
        let leased = self.leases.values().filter(|lease| {
            self.standing(lease.entry).is_some_and(|standing| self.is_wanted(wanted, standing.queue))
        });
        Outlook {
            first_open: closed.min_by_key(|(opens, queue)| (opens.at, *queue)).map(|(opens, _)| opens),
            first_due: waiting.map(|standing| standing.due.max(self.opens(standing.queue).at)).min(),
            first_expiry: leased.map(|lease| lease.until).min(),
        }
    }

    fn emit(&mut self, at: Moment, collection: &str, subject: &str, event: Event) {
        let position = self.events.len() as u64;
        let (collection, subject) = (collection.to_owned(), subject.to_owned());
        self.events.push(EventRow { position, at, collection, subject, event });
    }

    fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>> {
        Ok(self.events.iter().filter(|row| row.position >= from).take(limit).cloned().collect())
    }

    fn noted(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.notes.get(key).cloned())
    }

    fn note_keys(&self, prefix: &str) -> Result<Vec<String>> {
        Ok(self.notes.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }

    fn set_note(&mut self, key: &str, value: Option<Vec<u8>>) {
        match value {
            Some(value) => self.notes.insert(key.to_owned(), value),
            None => self.notes.remove(key),
        };
    }

    fn log_fetch(&mut self, fetch: FetchRow) {
        let position = self.fetches.len() as u64;
        self.fetches.push(FetchRow { position, ..fetch });
    }

    fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>> {
        Ok(self.fetches.iter().filter(|row| row.position >= from).take(limit).cloned().collect())
    }

    fn scan(
        &self,
        within: Within,
        after: Option<EntryId>,
        limit: usize,
        keep: &mut dyn FnMut(EntryId, &Standing) -> bool,
    ) -> Vec<EntryId> {
        let is_within = |standing: &Standing| match within {
            Within::Everything => true,
            Within::Collection(collection) => self.queue_parts(standing.queue).0 == collection,
            Within::Queue(queue) => standing.queue == queue,
        };
        let later = self
            .live()
            .filter(|(id, entry)| after.is_none_or(|after| *id > after) && is_within(&entry.standing));
        later.filter(|(id, entry)| keep(*id, &entry.standing)).take(limit).map(|(id, _)| id).collect()
    }
}

#[expect(clippy::expect_used, reason = "a model of four billion entries does not fit into memory")]
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("the model is small")
}
