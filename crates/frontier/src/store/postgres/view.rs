//! What the engine sees of the database while one call runs: what was read, and over it what the call changed.
//!
//! A call asks many small questions, and the database is far away. So a question whose answer was not read is noted
//! as a want and answered with nothing; when the call is through, all its wants are read together and it runs
//! again from the start. A run without wants has seen everything it asked for, and only that run counts.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::loaded::{Changes, EntryRow, Head, HostRow, Key, Loaded, QueueRow, Text};
use super::wants::{Numbered, Wants, stretch_key};
use crate::catalog::{Catalog, Kind};
use crate::engine::{Counts, NewEntry, Outlook, Tx, Wanted, Within};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Host, InFlight, Opens};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{Event, EventRow, FetchRow, Tally};

/// A number that nothing has: the answer to a question that cannot be answered yet.
const UNKNOWN: u32 = u32::MAX;

/// The most hosts that one call holds at a time.
const MOST_CLAIMS: usize = 10_000;

static NO_HOST: LazyLock<HostRow> =
    LazyLock::new(|| HostRow { key: String::new(), owner: None, state: Host::default() });

/// The bytes by which an identity is looked up.
pub(super) fn key_of(identity: &str) -> Key {
    let digest = Sha256::digest(identity.as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(&digest[..16]);
    key
}

/// What the engine sees.
#[derive(Debug)]
pub(crate) struct View {
    pub(super) settings: Arc<Settings>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) now: Moment,
    pub(super) loaded: Loaded,
    pub(super) changes: Changes,
    pub(super) wants: Mutex<Wants>,
    /// Numbers that this call may give to what it makes, by kind.
    pub(super) numbers: [Vec<i64>; Numbered::ALL.len()],
    /// The last turn that was given.
    pub(super) last_turn: u64,
}

impl View {
    fn wants(&self) -> MutexGuard<'_, Wants> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the call looked for and did not find.
    pub(super) fn take_wants(&self) -> Wants {
        std::mem::take(&mut self.wants())
    }

    fn row(&self, entry: EntryId) -> Option<&EntryRow> {
        if let Some(row) = self.changes.entries.get(&entry) {
            return row.as_ref();
        }
        match self.loaded.entries.get(&entry) {
            Some(row) => row.as_ref(),
            None => {
                if entry.0 != UNKNOWN {
                    self.wants().entries.insert(entry);
                }
                None
            }
        }
    }

    fn row_mut(&mut self, entry: EntryId) -> Option<&mut EntryRow> {
        if !self.changes.entries.contains_key(&entry) {
            let row = self.row(entry)?.clone();
            self.changes.entries.insert(entry, Some(row));
        }
        self.changes.entries.get_mut(&entry)?.as_mut()
    }

    fn number(&mut self, kind: Numbered) -> u64 {
        let used = &mut self.changes.used[kind as usize];
        *used += 1;
        match self.numbers[kind as usize].get(*used - 1) {
            Some(number) => u64::try_from(*number).unwrap_or_default(),
            None => {
                self.wants().numbers[kind as usize] += 1;
                u64::from(UNKNOWN)
            }
        }
    }

    fn short_number(&mut self, kind: Numbered) -> u32 {
        u32::try_from(self.number(kind)).unwrap_or(UNKNOWN)
    }

    pub(super) fn queue_row(&self, queue: QueueId) -> Option<QueueRow> {
        self.changes.new_queues.get(&queue).or_else(|| self.loaded.queues.get(&queue)).copied()
    }

    pub(super) fn host_row(&self, host: HostId) -> &HostRow {
        self.changes.hosts.get(&host).or_else(|| self.loaded.hosts.get(&host)).unwrap_or(&NO_HOST)
    }

    fn is_plain(&self, collection: CollectionId) -> bool {
        self.catalog.collection_numbered(collection).is_some_and(|row| row.spec.kind == Kind::Plain)
    }

    pub(super) fn opens(&self, queue: QueueId) -> Opens {
        let (collection, host) = self.queue_parts(queue);
        let is_plain = self.is_plain(collection);
        self.host(host).opens(self.in_flight(host), &self.settings.politeness, is_plain)
    }

    pub(super) fn is_ready(&self, standing: &Standing) -> bool {
        standing.state == State::Queued && standing.due <= self.now
    }

    fn is_wanted(&self, wanted: &Wanted, queue: QueueId) -> bool {
        let (collection, host) = self.queue_parts(queue);
        wanted.collections.contains(&collection)
            && wanted.key.as_ref().is_none_or(|key| *key == self.host_row(host).key)
    }

    /// The changed entries of a queue.
    fn changed_in(&self, queue: QueueId) -> impl Iterator<Item = (EntryId, &EntryRow)> {
        let changed = self.changes.entries.iter();
        changed
            .filter_map(move |(id, row)| Some((*id, row.as_ref().filter(|row| row.standing.queue == queue)?)))
    }

    /// The first entry of a queue that is ready, by an order; a want if that was not read.
    fn first<K: Ord>(
        &self,
        queue: QueueId,
        as_oldest: bool,
        order: impl Fn(EntryId, &Standing) -> K,
    ) -> Option<EntryId> {
        let heads = if as_oldest { &self.loaded.oldest } else { &self.loaded.ready };
        let empty = Head { entries: Vec::new(), is_all: true };
        let is_new = self.changes.new_queues.contains_key(&queue);
        let head = if is_new { Some(&empty) } else { heads.get(&queue) };
        let untouched = head.and_then(|head| {
            let mut entries = head.entries.iter();
            entries.find(|id| !self.changes.entries.contains_key(id)).copied()
        });
        if untouched.is_none() && !head.is_some_and(|head| head.is_all) {
            let known = head.map_or(0, |head| head.entries.len());
            let mut wants = self.wants();
            let wanted = if as_oldest { &mut wants.oldest } else { &mut wants.ready };
            wanted.insert(queue, (known * 2).max(1));
            return None;
        }
        let is_first = |row: &EntryRow| self.is_ready(&row.standing) && (!as_oldest || row.standing.by_due);
        let changed = self.changed_in(queue).filter(|(_, row)| is_first(row));
        let changed = changed.map(|(id, row)| (id, row.standing));
        let untouched = untouched.and_then(|id| Some((id, self.row(id)?.standing)));
        let all = changed.chain(untouched);
        all.min_by_key(|(id, standing)| order(*id, standing)).map(|(id, _)| id)
    }

    fn first_by_priority(&self, queue: QueueId) -> Option<EntryId> {
        self.first(queue, false, |id, standing| {
            (std::cmp::Reverse(standing.priority), standing.by_due.then_some(standing.due), id)
        })
    }

    /// The queues that this call may hand out from.
    fn held_queues(&self) -> impl Iterator<Item = QueueId> {
        let read = self.loaded.queues.iter().filter(|(_, row)| self.loaded.locked.contains(&row.host));
        read.map(|(queue, _)| *queue).chain(self.changes.new_queues.keys().copied())
    }

    fn turn_of(&self, queue: QueueId) -> u64 {
        let (collection, host) = self.queue_parts(queue);
        self.host(host).turn(collection)
    }
}

impl Tx for View {
    fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    fn catalog(&self) -> &Arc<Catalog> {
        self.changes.catalog.as_ref().unwrap_or(&self.catalog)
    }

    fn set_catalog(&mut self, catalog: Arc<Catalog>) {
        self.changes.catalog = Some(catalog);
    }

    fn clear_collection(&mut self, collection: CollectionId) -> Result<u64> {
        let count = self.counts(collection).iter().sum();
        self.changes.cleared.push(collection);
        self.changes.tallies.remove(&collection);
        let is_its = |queue: &QueueRow| queue.collection == collection;
        let doomed: BTreeSet<QueueId> = self
            .loaded
            .queues
            .iter()
            .chain(&self.changes.new_queues)
            .filter(|(_, row)| is_its(row))
            .map(|(queue, _)| *queue)
            .collect();
        self.changes
            .entries
            .retain(|_, row| row.as_ref().is_none_or(|row| !doomed.contains(&row.standing.queue)));
        self.changes.new_queues.retain(|_, row| !is_its(row));
        self.changes.hosts.retain(|_, host| host.owner != Some(collection));
        Ok(count)
    }

    fn tally(&self, collection: CollectionId) -> Tally {
        if let Some(tally) = self.changes.tallies.get(&collection) {
            return *tally;
        }
        self.counters(collection).map(|counters| counters.tally).unwrap_or_default()
    }

    fn set_tally(&mut self, collection: CollectionId, tally: Tally) {
        self.changes.tallies.insert(collection, tally);
    }

    fn look_ahead(&self, collection: CollectionId, wanted: &[(&str, &str)]) {
        let mut wants = self.wants();
        for (key, identity) in wanted {
            let queue = self.loaded.queue_by.get(&(collection, (*key).to_owned()));
            let is_known = queue.is_some_and(|queue| {
                queue.is_none_or(|queue| self.loaded.found.contains_key(&(queue, key_of(identity))))
            });
            if !is_known {
                wants.lookups.insert((collection, (*key).to_owned(), (*identity).to_owned()));
            }
        }
    }

    fn find(&self, queue: QueueId, identity: &str) -> Result<Option<EntryId>> {
        let key = key_of(identity);
        let found = self.changes.found.get(&(queue, key)).copied();
        if self.changes.new_queues.contains_key(&queue) || queue.0 == UNKNOWN {
            return Ok(found);
        }
        let loaded = self.loaded.found.get(&(queue, key));
        if loaded.is_none() && found.is_none() {
            let (collection, host) = self.queue_parts(queue);
            let key = self.host_row(host).key.clone();
            self.wants().lookups.insert((collection, key, identity.to_owned()));
        }
        let found = found.or(loaded.copied().flatten());
        Ok(found.filter(|entry| !matches!(self.changes.entries.get(entry), Some(None))))
    }

    fn standing(&self, entry: EntryId) -> Option<Standing> {
        self.row(entry).map(|row| row.standing)
    }

    fn load(&self, entry: EntryId) -> Result<(String, Record)> {
        let Some(row) = self.row(entry) else { return Ok(Default::default()) };
        match &row.text {
            Some(text) => Ok((text.url.to_string(), text.record.clone())),
            None => {
                self.wants().texts.insert(entry);
                Ok(Default::default())
            }
        }
    }

    fn insert(&mut self, new: NewEntry<'_>) -> EntryId {
        let entry = EntryId(self.short_number(Numbered::Entry));
        let NewEntry { identity, url, standing, record } = new;
        let text = Text { identity: identity.into(), url: url.into(), record };
        self.changes.found.insert((standing.queue, key_of(identity)), entry);
        self.changes.entries.insert(entry, Some(EntryRow { standing, lease: None, text: Some(text) }));
        self.changes.new_entries.insert(entry);
        entry
    }

    fn set_standing(&mut self, entry: EntryId, standing: Standing) {
        if let Some(row) = self.row_mut(entry) {
            row.standing = standing;
        }
    }

    fn set_record(&mut self, entry: EntryId, record: Record) {
        let Some(row) = self.row_mut(entry) else { return };
        match &mut row.text {
            Some(text) => text.record = record,
            None => {
                self.wants().texts.insert(entry);
            }
        }
    }

    fn remove(&mut self, entry: EntryId) {
        if let Some(lease) = self.lease_of(entry) {
            self.changes.tokens.remove(&lease.token);
        }
        if self.changes.new_entries.remove(&entry) {
            self.changes.entries.remove(&entry);
            self.changes.found.retain(|_, found| *found != entry);
        } else {
            self.changes.entries.insert(entry, None);
        }
    }

    fn queue(&mut self, collection: CollectionId, key: &str, is_plain: bool) -> QueueId {
        if let Some(queue) = self.find_queue(collection, key) {
            return queue;
        }
        let host = self.host_of(is_plain.then_some(collection), key);
        let queue = QueueId(self.short_number(Numbered::Queue));
        let row = QueueRow { collection, host, counts: Counts::default(), first_due: None };
        self.changes.new_queues.insert(queue, row);
        queue
    }

    fn find_queue(&self, collection: CollectionId, key: &str) -> Option<QueueId> {
        let mut new = self.changes.new_queues.iter();
        let is_it = |row: &QueueRow| row.collection == collection && self.host_row(row.host).key == key;
        if let Some((queue, _)) = new.find(|(_, row)| is_it(row)) {
            return Some(*queue);
        }
        let loaded = self.loaded.queue_by.get(&(collection, key.to_owned()));
        if loaded.is_none() {
            self.wants().queues.insert((collection, key.to_owned()));
        }
        loaded.copied().flatten().filter(|_| !self.changes.cleared.contains(&collection))
    }

    fn queue_parts(&self, queue: QueueId) -> (CollectionId, HostId) {
        let unknown = (CollectionId(UNKNOWN), HostId(UNKNOWN));
        self.queue_row(queue).map_or(unknown, |row| (row.collection, row.host))
    }

    fn queues(&self) -> Vec<QueueId> {
        if !self.loaded.has_all_queues {
            self.wants().all_queues = true;
        }
        let read =
            self.loaded.queues.iter().filter(|(_, row)| !self.changes.cleared.contains(&row.collection));
        read.chain(&self.changes.new_queues).map(|(queue, _)| *queue).collect()
    }

    fn queue_counts(&self, queue: QueueId) -> Counts {
        let mut counts = self.queue_row(queue).map(|row| row.counts).unwrap_or_default();
        self.count_changes(&mut counts, |standing| standing.queue == queue);
        counts
    }

    fn counts(&self, collection: CollectionId) -> Counts {
        let mut counts = self.counters(collection).map(|counters| counters.counts).unwrap_or_default();
        self.count_changes(&mut counts, |standing| self.queue_parts(standing.queue).0 == collection);
        counts
    }

    fn host_of(&mut self, owner: Option<CollectionId>, key: &str) -> HostId {
        let mut new = self.changes.new_hosts.iter();
        let is_it = |row: &HostRow| row.owner == owner && row.key == key;
        if let Some(host) = new.find(|host| is_it(self.host_row(**host))) {
            return *host;
        }
        match self.loaded.host_by.get(&(owner, key.to_owned())) {
            Some(Some(host)) => *host,
            Some(None) => {
                let host = HostId(self.short_number(Numbered::Host));
                let row = HostRow { key: key.to_owned(), owner, state: Host::default() };
                self.changes.hosts.insert(host, row);
                self.changes.new_hosts.insert(host);
                host
            }
            None => {
                self.wants().hosts.insert((owner, key.to_owned()));
                HostId(UNKNOWN)
            }
        }
    }

    fn host_key(&self, host: HostId) -> (&str, Option<CollectionId>) {
        let row = self.host_row(host);
        (&row.key, row.owner)
    }

    fn host(&self, host: HostId) -> &Host {
        &self.host_row(host).state
    }

    fn set_host(&mut self, host: HostId, state: Host) {
        if self.host_row(host).state == state || host.0 == UNKNOWN {
            return;
        }
        let row = HostRow { state, ..self.host_row(host).clone() };
        self.changes.hosts.insert(host, row);
    }

    fn in_flight(&self, host: HostId) -> InFlight {
        let read = self.loaded.leased.get(&host).into_iter().flatten();
        let untouched = read.filter(|(entry, ..)| !self.changes.entries.contains_key(entry));
        let changed = self.changes.entries.values().flatten();
        let its = changed.filter(|row| self.queue_parts(row.standing.queue).1 == host);
        let ends = untouched.map(|(.., until)| *until).chain(its.filter_map(|row| Some(row.lease?.until)));
        let ends: Vec<Moment> = ends.collect();
        InFlight {
            count: u32::try_from(ends.len()).unwrap_or(u32::MAX),
            first_expiry: ends.into_iter().min(),
        }
    }

    fn all_hosts(&self) -> Vec<HostId> {
        if !self.loaded.has_all_hosts {
            self.wants().all_hosts = true;
        }
        let hosts = self.loaded.hosts.keys().chain(&self.changes.new_hosts).copied();
        let is_there = |host: &HostId| {
            self.host_row(*host).owner.is_none_or(|owner| !self.changes.cleared.contains(&owner))
        };
        hosts.filter(is_there).collect::<BTreeSet<HostId>>().into_iter().collect()
    }

    fn next_token(&mut self) -> Token {
        Token(self.number(Numbered::Token))
    }

    fn next_turn(&mut self) -> u64 {
        // By the clock, so that processes agree on who was served longest ago without asking each other; and later
        // than what was read, for their clocks may differ a little.
        let read = self.loaded.queues.keys().map(|queue| self.turn_of(*queue)).max().unwrap_or_default();
        self.last_turn = (self.last_turn.max(read) + 1).max(self.now.millisecond() << 20);
        self.last_turn
    }

    fn grant(&mut self, lease: Lease) {
        self.changes.tokens.insert(lease.token, lease.entry);
        if let Some(row) = self.row_mut(lease.entry) {
            row.lease = Some(lease);
        }
    }

    fn lease(&self, token: Token) -> Option<Lease> {
        let entry = match self.changes.tokens.get(&token) {
            Some(entry) => Some(*entry),
            None => match self.loaded.tokens.get(&token) {
                Some(entry) => *entry,
                None => {
                    self.wants().tokens.insert(token);
                    None
                }
            },
        };
        self.lease_of(entry?).filter(|lease| lease.token == token)
    }

    fn lease_of(&self, entry: EntryId) -> Option<Lease> {
        self.row(entry)?.lease
    }

    fn end_lease(&mut self, token: Token) {
        if let Some(lease) = self.lease(token)
            && let Some(row) = self.row_mut(lease.entry)
        {
            row.lease = None;
        }
    }

    fn expired(&self, now: Moment) -> Vec<Lease> {
        let Some(read) = &self.loaded.expired else {
            self.wants().expired = Some(now);
            return Vec::new();
        };
        let is_asked = self.loaded.asked.expired.is_some_and(|asked| asked >= now);
        if !is_asked {
            self.wants().expired = Some(now);
        }
        let changed = self.changes.entries.values().flatten().filter_map(|row| row.lease);
        let untouched = read.iter().filter(|lease| !self.changes.entries.contains_key(&lease.entry)).copied();
        let mut expired: Vec<Lease> = changed.chain(untouched).filter(|lease| lease.until <= now).collect();
        expired.sort_by_key(|lease| (lease.until, lease.token));
        expired
    }

    fn wake(&mut self, _now: Moment) -> Vec<EntryId> {
        match &self.loaded.stepping {
            Some(stepping) => stepping.clone(),
            None => {
                self.wants().wake = true;
                Vec::new()
            }
        }
    }

    fn next_queue(&mut self, wanted: &Wanted, below: u64) -> Option<QueueId> {
        let is_next = |queue: &QueueId| {
            self.is_wanted(wanted, *queue)
                && self.turn_of(*queue) < below
                && self.opens(*queue).is_open(self.now)
                && self.first_by_priority(*queue).is_some()
        };
        let next = self.held_queues().filter(is_next).map(|queue| (self.turn_of(queue), queue)).min();
        let claims = self.loaded.claims.as_ref();
        let is_sure = claims.is_some_and(|claims| {
            let is_enough = claims.is_all || claims.asked >= MOST_CLAIMS;
            is_enough || next.is_some_and(|next| Some(next) <= claims.last)
        });
        if !is_sure {
            let asked = claims.map_or(0, |claims| claims.asked);
            self.wants().claims = Some((wanted.clone(), (asked * 2).max(wanted.most).min(MOST_CLAIMS)));
            return None;
        }
        next.map(|(_, queue)| queue)
    }

    fn take(&mut self, queue: QueueId, as_oldest: bool) -> Option<EntryId> {
        if as_oldest {
            self.first(queue, true, |id, standing| (standing.due, id))
        } else {
            self.first_by_priority(queue)
        }
    }

    fn outlook(&self, wanted: &Wanted) -> Outlook {
        let held: BTreeSet<QueueId> = self.held_queues().collect();
        let read = self.loaded.outlook.as_ref().filter(|read| {
            let asked = &read.wanted;
            asked.collections == wanted.collections && asked.key == wanted.key && read.without == held
        });
        let Some(read) = read else {
            self.wants().outlook = Some((wanted.clone(), held));
            return Outlook::default();
        };
        let its = held.into_iter().filter(|queue| self.is_wanted(wanted, *queue));
        let ours = its.map(|queue| (Some(queue), self.outlook_of(queue)));
        ours.fold((read.first_open, read.outlook), sooner).1
    }

    fn emit(&mut self, at: Moment, collection: &str, subject: &str, event: Event) {
        let (collection, subject) = (collection.to_owned(), subject.to_owned());
        self.changes.events.push(EventRow { position: 0, at, collection, subject, event });
    }

    fn events(&self, from: u64, limit: usize) -> Result<Vec<EventRow>> {
        if self.loaded.events.is_none() {
            self.wants().events = Some((from, limit));
        }
        Ok(self.loaded.events.clone().unwrap_or_default())
    }

    fn noted(&self, key: &str) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.changes.notes.get(key) {
            return Ok(value.clone());
        }
        let read = self.loaded.notes.get(key);
        if read.is_none() {
            self.wants().notes.insert(key.to_owned());
        }
        Ok(read.cloned().flatten())
    }

    fn set_note(&mut self, key: &str, value: Option<Vec<u8>>) {
        self.changes.notes.insert(key.to_owned(), value);
    }

    fn log_fetch(&mut self, fetch: FetchRow) {
        self.changes.fetches.push(fetch);
    }

    fn fetches(&self, from: u64, limit: usize) -> Result<Vec<FetchRow>> {
        if self.loaded.fetches.is_none() {
            self.wants().fetches = Some((from, limit));
        }
        Ok(self.loaded.fetches.clone().unwrap_or_default())
    }

    fn scan(
        &self,
        within: Within,
        after: Option<EntryId>,
        limit: usize,
        keep: &mut dyn FnMut(EntryId, &Standing) -> bool,
    ) -> Vec<EntryId> {
        let stretch = (within, after);
        let head = self.loaded.scans.get(&stretch_key(stretch));
        let mut kept = Vec::new();
        for &entry in head.iter().flat_map(|head| &head.entries) {
            if kept.len() == limit {
                return kept;
            }
            let Some(standing) = self.standing(entry) else { continue };
            if keep(entry, &standing) {
                kept.push(entry);
            }
        }
        if kept.len() < limit && !head.is_some_and(|head| head.is_all) {
            let known = head.map_or(0, |head| head.entries.len());
            let more = (known * 4).max(limit.saturating_add(1).min(1000));
            self.wants().scans.insert(stretch_key(stretch), (stretch, more));
        }
        kept
    }
}

impl View {
    fn counters(&self, collection: CollectionId) -> Option<super::loaded::Counters> {
        let counters = self.loaded.counters.get(&collection).copied();
        if counters.is_none() && collection.0 != UNKNOWN {
            self.wants().counters.insert(collection);
        }
        counters
    }

    /// Corrects what was counted in the database by what this call changed.
    fn count_changes(&self, counts: &mut Counts, is_its: impl Fn(&Standing) -> bool) {
        for (entry, row) in &self.changes.entries {
            let before = self.loaded.entries.get(entry).and_then(Option::as_ref);
            if let Some(before) = before.filter(|row| is_its(&row.standing)) {
                let count = &mut counts[before.standing.state as usize];
                *count = count.saturating_sub(1);
            }
            if let Some(row) = row.as_ref().filter(|row| is_its(&row.standing)) {
                counts[row.standing.state as usize] += 1;
            }
        }
    }

    /// What one queue waits for, by all that this call knows of it.
    fn outlook_of(&self, queue: QueueId) -> Outlook {
        let opens = self.opens(queue);
        let (_, host) = self.queue_parts(queue);
        let read = self.loaded.leased.get(&host).into_iter().flatten();
        let is_untouched = |entry: &EntryId| !self.changes.entries.contains_key(entry);
        let untouched = read.filter(|(entry, of, _)| *of == queue && is_untouched(entry));
        let changed = self.changed_in(queue).filter_map(|(_, row)| Some(row.lease?.until));
        let first_expiry = untouched.map(|(.., until)| *until).chain(changed).min();
        if self.first_by_priority(queue).is_some() {
            return Outlook { first_open: Some(opens), first_due: None, first_expiry };
        }
        let waiting = self.changed_in(queue).filter(|(_, row)| row.standing.state == State::Queued);
        let changed = waiting.map(|(_, row)| row.standing.due).min();
        let read = self.queue_row(queue).and_then(|row| row.first_due);
        let first_due = changed.into_iter().chain(read).min().map(|due| due.max(opens.at));
        Outlook { first_open: None, first_due, first_expiry }
    }
}

/// What comes first of two.
fn sooner(
    (queue, one): (Option<QueueId>, Outlook),
    (other_queue, other): (Option<QueueId>, Outlook),
) -> (Option<QueueId>, Outlook) {
    let min = |one: Option<Moment>, other: Option<Moment>| one.into_iter().chain(other).min();
    let opens = [(one.first_open, queue), (other.first_open, other_queue)];
    let open = opens.into_iter().filter_map(|(opens, queue)| Some((opens?, queue)));
    let first = open.min_by_key(|(opens, queue)| (opens.at, *queue));
    let outlook = Outlook {
        first_open: first.map(|(opens, _)| opens),
        first_due: min(one.first_due, other.first_due),
        first_expiry: min(one.first_expiry, other.first_expiry),
    };
    (first.and_then(|(_, queue)| queue), outlook)
}
