//! What the engine sees of the store.

use std::hint::black_box;
use std::sync::Arc;

use super::codec;
use super::hosts::HostEntry;
use super::inner::Inner;
use super::queue::Queue;
use super::slots::{CHUNK, Slot};
use super::undo::Deed;
use crate::catalog::{Catalog, Kind};
use crate::engine::{Counts, InLine, NewEntry, Outlook, Sought, Tx, Wanted, Within};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Host, InFlight, next_turn};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{Event, EventRow, FetchRow, Tally};

impl Inner {
    /// The rows of a log from a position on.
    fn rows_from<T: serde::de::DeserializeOwned>(
        &self,
        log: &fjall::Keyspace,
        from: u64,
        limit: usize,
        what: &str,
    ) -> Result<Vec<T>> {
        let rows = log.range(from.to_be_bytes()..).take(limit).map(|row| {
            let bytes = row.value().map_err(|cause| self.disk.reading(&cause))?;
            codec::unpack(&bytes).map_err(self.disk.unreadable(what))
        });
        rows.collect()
    }

    /// The number of the first entry that this call added.
    pub(super) fn first_fresh(&self) -> u32 {
        self.slots.len() - to_u32(self.staged.fresh.len())
    }

    /// The place of an entry among those that this call added.
    fn fresh_place(&self, number: u32) -> Option<usize> {
        number.checked_sub(self.first_fresh()).map(|place| place as usize)
    }

    /// When the score of an entry steps.
    pub(super) fn step_of(&self, number: u32, slot: &Slot) -> Option<Moment> {
        if slot.has_step() { self.steps.get(number) } else { None }
    }

    /// Where entries are to be looked for, and added if they are new. Most of that is waiting for memory, which is asked
    /// for one step of all of them after another, so that they wait together.
    fn sought(&self, collection: CollectionId, wanted: &[(&str, &str)]) -> Vec<Sought> {
        let row = self.catalog.collection_numbered(collection);
        let is_plain = row.is_some_and(|row| row.spec.kind == Kind::Plain);
        // Most links of a page lead to one host.
        let runs = || wanted.chunk_by(|(key, _), (next, _)| key == next);
        let keys: Vec<&str> = runs().map(|run| run[0].0).collect();
        let queues = self.hosts.find_queues(collection, &keys, is_plain);
        let mut sought = Vec::with_capacity(wanted.len());
        for (run, queue) in runs().zip(queues) {
            sought.extend(run.iter().map(|(_, identity)| Sought {
                queue,
                mark: queue.map_or(0, |queue| self.index.hash(queue, identity)),
            }));
        }
        self.fetch(&sought);
        sought
    }

    /// Has at hand what will be looked at when entries are looked for, and changed where they are new.
    fn fetch(&self, sought: &[Sought]) {
        let mut likely = Vec::with_capacity(sought.len());
        likely.extend(sought.iter().map(|sought| sought.queue.and_then(|_| self.index.likely(sought.mark))));
        let known = likely.iter().filter_map(|number| self.slots.get((*number)?));
        black_box(known.map(|slot| slot.hash).fold(0, u64::wrapping_add));
        let mut queues: Vec<&Queue> = Vec::with_capacity(sought.len());
        let new = sought.iter().zip(&likely).filter(|(_, number)| number.is_none());
        queues.extend(new.filter_map(|(sought, _)| self.queue_at(sought.queue?)));
        for step in 0..Queue::STEPS {
            black_box(queues.iter().map(|queue| queue.end(step)).fold(0, usize::wrapping_add));
        }
    }

    fn add(&mut self, new: NewEntry<'_>, hash: u64) -> EntryId {
        let offset = to_u32(self.staged.fresh.len()) % CHUNK;
        let host =
            self.queues.get(new.standing.queue.0).and_then(|queue| self.hosts.get(queue.as_ref()?.host));
        self.staged.fresh.push(host.map_or("", |host| &host.key), new.url, new.record);
        self.staged.rings = true;
        self.undo.note_inserted();
        let number = self.place(Slot::new(hash, offset, &new.standing), new.standing.step);
        self.counters.entries = self.slots.len();
        EntryId(number)
    }

    fn stage_state(&mut self, number: u32) {
        if number < self.first_fresh() {
            self.staged.states.push(number);
        }
    }
}

impl Tx for Inner {
    fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        let before = self.catalog.clone();
        self.undo.note(Deed::SetCatalog(before.clone()));
        self.staged.catalog_before.get_or_insert(before);
        self.staged.rings = true;
        self.put_catalog(catalog);
    }

    fn clear_collection(&mut self, collection: CollectionId) -> Result<u64> {
        self.undo.note(Deed::Cleared);
        Ok(self.clear(collection))
    }

    fn tally(&self, collection: CollectionId) -> Tally {
        self.tallies.get(&collection).copied().unwrap_or_default()
    }

    fn count_up(&mut self, collection: CollectionId, more: Tally) {
        if more == Tally::default() {
            return;
        }
        let before = self.tallies.get(&collection).copied();
        *self.tallies.entry(collection).or_default() += more;
        self.undo.note(Deed::SetTally(collection, before));
        self.staged.tallies.push(collection);
    }

    fn look_ahead(&self, collection: CollectionId, wanted: &[(&str, &str)]) -> bool {
        for wanted in wanted.chunks(Self::TOGETHER) {
            self.sought(collection, wanted);
        }
        true
    }

    /// So many that all that is fetched for them stays in the nearest cache until it is used.
    const TOGETHER: usize = 64;

    fn seek(&self, collection: CollectionId, wanted: &[(&str, &str)]) -> Option<Vec<Sought>> {
        Some(self.sought(collection, wanted))
    }

    fn sought_in(&self, queue: QueueId, identity: &str) -> Sought {
        Sought { queue: Some(queue), mark: self.index.hash(queue, identity) }
    }

    fn find_sought(&self, sought: &Sought, _: &str) -> Result<Option<EntryId>> {
        Ok(sought.queue.and_then(|_| self.index.find(sought.mark, &self.slots)).map(EntryId))
    }

    fn insert_sought(&mut self, new: NewEntry<'_>, sought: &Sought) -> EntryId {
        self.add(new, sought.mark)
    }

    fn find(&self, queue: QueueId, identity: &str) -> Result<Option<EntryId>> {
        Ok(self.index.find(self.index.hash(queue, identity), &self.slots).map(EntryId))
    }

    fn standing(&self, entry: EntryId) -> Option<Standing> {
        let slot = self.slots.live(entry.0)?;
        Some(slot.standing(self.step_of(entry.0, slot)))
    }

    fn load(&self, entry: EntryId) -> Result<(String, Record)> {
        let Some(slot) = self.slots.live(entry.0) else { return Ok(Default::default()) };
        if let Some(place) = self.fresh_place(entry.0) {
            let read = self.staged.fresh.read(place, self.key_of(slot.queue()));
            return read.map_err(self.disk.unreadable(format_args!("entry {}", entry.0)));
        }
        if let Some(record) = self.staged.records.get(&entry.0) {
            return Ok((self.url_on_disk(entry.0, slot)?, record.clone()));
        }
        if let Some(held) = self.held.get(entry) {
            return Ok(held);
        }
        let found = self.on_disk(entry.0, slot)?;
        self.held.note(entry, &found);
        Ok(found)
    }

    fn insert(&mut self, new: NewEntry<'_>) -> EntryId {
        let hash = self.index.hash(new.standing.queue, new.identity);
        self.add(new, hash)
    }

    fn set_standing(&mut self, entry: EntryId, standing: Standing) {
        let Some(before) = self.slots.live(entry.0).copied() else { return };
        let step = self.step_of(entry.0, &before);
        let mut slot = before;
        slot.set(&standing);
        if slot == before && step == standing.step {
            return;
        }
        self.undo.note(Deed::Stood(entry.0, before, step));
        self.stage_state(entry.0);
        self.staged.rings |= standing.state == State::Queued;
        self.restand(entry.0, slot, standing.step);
    }

    fn set_record(&mut self, entry: EntryId, record: Record) {
        let Some(before) = self.slots.live(entry.0).copied() else { return };
        if let Some(place) = self.fresh_place(entry.0) {
            self.staged.fresh.set_record(place, record);
            return;
        }
        self.held.forget(entry);
        self.staged.records.insert(entry.0, record);
        if !before.has_record() {
            let step = self.steps.get(entry.0);
            self.undo.note(Deed::Stood(entry.0, before, step));
            self.stage_state(entry.0);
            if let Some(slot) = self.slots.get_mut(entry.0) {
                slot.set_has_record(true);
            }
        }
    }

    fn remove(&mut self, entry: EntryId) {
        let Some(slot) = self.slots.live(entry.0).copied() else { return };
        if let Some(lease) = self.lease_of(entry) {
            self.end_lease(lease.token);
        }
        self.undo.note(Deed::Removed(entry.0, slot, self.steps.get(entry.0)));
        self.displace(entry.0);
        self.stage_state(entry.0);
        if self.staged.records.remove(&entry.0).is_some() || slot.has_record() {
            self.staged.forgotten.push(entry.0);
        }
    }

    fn queue(&mut self, collection: CollectionId, key: &str, is_plain: bool) -> QueueId {
        if let Some(queue) = self.find_queue(collection, key) {
            return queue;
        }
        let host = self.host_of(is_plain.then_some(collection), key);
        self.undo.note(Deed::MadeQueue);
        self.add_queue(Some((collection, host)));
        self.counters.queues = self.queues.len();
        self.staged.queues.push(self.counters.queues - 1);
        QueueId(self.counters.queues - 1)
    }

    fn find_queue(&self, collection: CollectionId, key: &str) -> Option<QueueId> {
        let row = self.catalog.collection_numbered(collection);
        self.hosts.find_queue(collection, key, row.is_some_and(|row| row.spec.kind == Kind::Plain))
    }

    fn forget_queue(&mut self, queue: QueueId) {
        self.undo.note(Deed::Cleared);
        self.drop_queue(queue);
    }

    #[expect(clippy::expect_used, reason = "entries refer to queues that there are")]
    fn queue_parts(&self, queue: QueueId) -> (CollectionId, HostId) {
        let queue = self.queue_at(queue).expect("the queue is there");
        (queue.collection, queue.host)
    }

    fn queues(&self) -> Vec<QueueId> {
        self.queues.iter().flatten().map(|queue| queue.number).collect()
    }

    fn queue_counts(&self, queue: QueueId) -> Counts {
        self.queue_at(queue).map_or_else(Counts::default, Queue::counts)
    }

    fn counts(&self, collection: CollectionId) -> Counts {
        self.totals.get(&collection).copied().unwrap_or_default()
    }

    fn host_of(&mut self, owner: Option<CollectionId>, key: &str) -> HostId {
        if let Some(host) = self.hosts.find(owner, key) {
            return host;
        }
        self.undo.note(Deed::MadeHost);
        self.hosts.push(Some(HostEntry::new(key, owner)));
        self.counters.hosts = self.hosts.len();
        self.staged.named_hosts.push(self.counters.hosts - 1);
        HostId(self.counters.hosts - 1)
    }

    #[expect(clippy::expect_used, reason = "queues refer to hosts that there are")]
    fn host_key(&self, host: HostId) -> (&str, Option<CollectionId>) {
        let host = self.host_at(host).expect("the host is there");
        (&host.key, host.owner)
    }

    #[expect(clippy::expect_used, reason = "queues refer to hosts that there are")]
    fn host(&self, host: HostId) -> &Host {
        self.host_at(host).expect("the host is there").state()
    }

    fn set_host(&mut self, host: HostId, state: Host) {
        let Some(before) = self.host_at(host).map(|host| host.state().clone()) else { return };
        if before == state {
            return;
        }
        self.undo.note(Deed::SetHost(host, Box::new(before)));
        self.staged.hosts.push(host.0);
        self.staged.rings = true;
        self.put_host(host, state);
    }

    fn in_flight(&self, host: HostId) -> InFlight {
        self.host_at(host).map_or_else(InFlight::default, HostEntry::in_flight)
    }

    fn all_hosts(&self) -> Vec<HostId> {
        self.hosts.numbers().collect()
    }

    fn next_token(&mut self) -> Token {
        self.counters.last_token += 1;
        self.staged.counters = true;
        Token(self.counters.last_token)
    }

    fn next_turn(&mut self) -> u64 {
        self.counters.last_turn = next_turn(self.counters.last_turn, self.counters.now);
        self.staged.counters = true;
        self.counters.last_turn
    }

    fn grant(&mut self, lease: Lease) {
        if let Some(before) = self.leases.get(lease.token) {
            self.undo.note(Deed::Ended(before));
            self.drop_lease(before);
        }
        self.undo.note(Deed::Granted(lease));
        self.put_lease(lease);
        self.held.keep(lease.entry);
        self.stage_state(lease.entry.0);
    }

    fn lease(&self, token: Token) -> Option<Lease> {
        self.leases.get(token)
    }

    fn lease_of(&self, entry: EntryId) -> Option<Lease> {
        self.leases.of(entry)
    }

    fn end_lease(&mut self, token: Token) {
        let Some(lease) = self.leases.get(token) else { return };
        self.undo.note(Deed::Ended(lease));
        self.drop_lease(lease);
        self.held.forget(lease.entry);
        self.stage_state(lease.entry.0);
        self.staged.rings = true;
    }

    fn expired(&self, now: Moment) -> Vec<Lease> {
        self.leases.expired(now)
    }

    fn wake(&mut self, now: Moment) -> Vec<EntryId> {
        self.wake_queues();
        self.steps.due(&self.slots, now).into_iter().map(EntryId).collect()
    }

    fn next_queue(&mut self, wanted: &Wanted, after: Option<InLine>, below: u64) -> Option<InLine> {
        let first = if let Some(key) = &wanted.key {
            let in_line = self.keyed(wanted, key).filter_map(Queue::in_line);
            in_line.filter(|in_line| Some(*in_line) > after).min()
        } else {
            let rotas = wanted.collections.iter().filter_map(|collection| self.rotation.rota(*collection));
            rotas.filter_map(|rota| rota.first_after(after)).min()
        };
        first.filter(|(place, _)| *place < below)
    }

    fn take(&mut self, queue: QueueId, as_oldest: bool) -> Option<EntryId> {
        let now = self.counters.now.second();
        let queue = self.queues.get_mut(queue.0)?.as_mut()?;
        queue.wake(&mut self.slots, now);
        let taken = if as_oldest { queue.oldest(&self.slots) } else { queue.first(&self.slots) };
        taken.map(EntryId)
    }

    fn outlook(&self, wanted: &Wanted) -> Outlook {
        if let Some(key) = &wanted.key {
            return self.outlook_of_key(wanted, key);
        }
        let collections = || wanted.collections.iter().copied();
        let opens = collections().filter_map(|collection| self.first_open(collection));
        Outlook {
            first_open: opens.min_by_key(|(opens, queue)| (opens.at, *queue)).map(|(opens, _)| opens),
            first_due: collections().filter_map(|collection| self.first_due(collection)).min(),
            first_expiry: collections().filter_map(|collection| self.leases.first_end(collection)).min(),
        }
    }

    fn emit(&mut self, at: Moment, collection: &str, subject: &str, event: Event) {
        let (collection, subject) = (collection.to_owned(), subject.to_owned());
        let position = self.counters.events;
        self.counters.events += 1;
        self.staged.events.push(EventRow { position, at, collection, subject, event });
    }

    fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>> {
        let mut events: Vec<EventRow> = self.rows_from(&self.disk.events, from, limit, "an event")?;
        let staged = self.staged.events.iter().filter(|row| row.position >= from);
        events.extend(staged.take(limit - events.len()).cloned());
        Ok(events)
    }

    fn noted(&self, key: &str) -> Result<Option<Vec<u8>>> {
        if let Some(staged) = self.staged.notes.get(key) {
            return Ok(staged.clone());
        }
        let row = self.disk.notes.get(key).map_err(|cause| self.disk.reading(&cause))?;
        Ok(row.map(|row| row.to_vec()))
    }

    fn note_keys(&self, prefix: &str) -> Result<Vec<String>> {
        let staged = &self.staged.notes;
        let mut keys: Vec<String> = self.disk.note_keys(prefix)?;
        keys.retain(|key| !staged.contains_key(key));
        let added = staged.iter().filter(|(key, value)| value.is_some() && key.starts_with(prefix));
        keys.extend(added.map(|(key, _)| key.clone()));
        Ok(keys)
    }

    fn set_note(&mut self, key: &str, value: Option<Vec<u8>>) {
        self.staged.notes.insert(key.to_owned(), value);
    }

    fn log_fetch(&mut self, fetch: FetchRow) {
        let position = self.counters.fetches;
        self.counters.fetches += 1;
        self.staged.fetches.push(FetchRow { position, ..fetch });
    }

    fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>> {
        let mut fetches: Vec<FetchRow> = self.rows_from(&self.disk.fetches, from, limit, "a fetch")?;
        let staged = self.staged.fetches.iter().filter(|row| row.position >= from);
        fetches.extend(staged.take(limit - fetches.len()).cloned());
        Ok(fetches)
    }

    fn scan(
        &self,
        within: Within,
        after: Option<EntryId>,
        limit: usize,
        keep: &mut dyn FnMut(EntryId, &Standing) -> bool,
    ) -> Vec<EntryId> {
        let first = after.map_or(0, |after| after.0.saturating_add(1));
        let standing = |number, slot: &Slot| slot.standing(self.step_of(number, slot));
        let wanted =
            self.slots.iter_from(first).map(|(number, slot)| (EntryId(number), standing(number, slot)));
        let is_within = |standing: &Standing| match within {
            Within::Everything => true,
            Within::Collection(collection) => self.queue_parts(standing.queue).0 == collection,
            Within::Queue(queue) => standing.queue == queue,
        };
        wanted
            .filter(|(entry, standing)| is_within(standing) && keep(*entry, standing))
            .take(limit)
            .map(|(entry, _)| entry)
            .collect()
    }
}

#[expect(clippy::expect_used, reason = "numbers of 32 bits are the limit of the store")]
pub(super) fn to_u32(len: usize) -> u32 {
    u32::try_from(len).expect("a store has at most four billion entries")
}
