//! The questions of the engine.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::super::loaded::{Changes, EntryRow, HostRow, QueueRow, Text};
use super::super::numbers::Numbered;
use super::super::wants::stretch_key;
use super::{MOST_CLAIMS, UNKNOWN, View, key_of, sooner};
use crate::catalog::Catalog;
use crate::engine::{Counts, HostCounts, InLine, NewEntry, Outlook, Tx, Wanted, Within};
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, Record, Standing, Token};
use crate::error::Result;
use crate::host::{Host, InFlight, believed, next_turn};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::{Event, EventRow, FetchRow, Tally};

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
        self.changes.by_queue.retain(|queue, _| !doomed.contains(queue));
        self.changes.new_queues.retain(|_, row| !is_its(row));
        self.changes.queue_by.retain(|(of, _), _| *of != collection);
        self.changes.host_by.retain(|(owner, _), _| *owner != Some(collection));
        self.changes.hosts.retain(|_, host| host.owner != Some(collection));
        Ok(count)
    }

    fn tally(&self, collection: CollectionId) -> Tally {
        let mut tally = self.counters(collection).map(|counters| counters.tally).unwrap_or_default();
        tally += self.changes.tallies.get(&collection).copied().unwrap_or_default();
        tally
    }

    fn count_up(&mut self, collection: CollectionId, more: Tally) {
        *self.changes.tallies.entry(collection).or_default() += more;
    }

    fn look_ahead(&self, collection: CollectionId, wanted: &[(&str, &str)]) -> bool {
        let mut wants = self.wants();
        let mut are_known = true;
        for (key, identity) in wanted {
            let queue = self.loaded.queue_by.get(&(collection, (*key).to_owned()));
            let is_known = queue.is_some_and(|queue| {
                queue.is_none_or(|queue| self.loaded.found.contains_key(&(queue, key_of(identity))))
            });
            if !is_known {
                are_known = false;
                wants.lookups.insert((collection, (*key).to_owned(), key_of(identity)));
            }
        }
        wants.may_add |= !are_known;
        are_known
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
            let name = self.host_row(host).key.clone();
            self.wants().lookups.insert((collection, name, key));
        }
        let found = found.or(loaded.copied().flatten());
        Ok(found.filter(|entry| !matches!(self.changes.entries.get(entry), Some(None))))
    }

    fn standing(&self, entry: EntryId) -> Option<Standing> {
        self.row(entry).map(|row| row.standing)
    }

    fn arrived(&self, entry: EntryId) -> Option<Moment> {
        self.row(entry).map(|row| row.arrived)
    }

    fn load(&self, entry: EntryId) -> Result<(String, Record)> {
        let Some(row) = self.row(entry) else { return Ok(Default::default()) };
        if let Some(text) = &row.text {
            return Ok((text.url.to_string(), text.record.clone()));
        }
        self.wants().texts.insert(entry);
        Ok(Default::default())
    }

    fn insert(&mut self, new: NewEntry<'_>) -> EntryId {
        let entry = EntryId(self.short_number(Numbered::Entry));
        let NewEntry { identity, url, standing, record } = new;
        let text = Text { identity: identity.into(), url: url.into(), record };
        self.changes.found.insert((standing.queue, key_of(identity)), entry);
        let arrived = Moment::from_second(self.now.second());
        self.changes.take(entry, EntryRow { standing, arrived, lease: None, text: Some(text) });
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
        } else if self.row_mut(entry).is_some() {
            self.changes.entries.insert(entry, None);
        }
    }

    fn queue(&mut self, collection: CollectionId, key: &str, is_plain: bool) -> QueueId {
        if let Some(queue) = self.find_queue(collection, key) {
            return queue;
        }
        let host = self.host_of(is_plain.then_some(collection), key);
        let queue = QueueId(self.short_number(Numbered::Queue));
        let seen = self.now;
        let row = QueueRow {
            collection,
            host,
            counts: Counts::default(),
            place: None,
            opens: None,
            first_due: None,
            wake_at: None,
            seen,
            version: 0,
        };
        self.changes.take_queue(queue, row);
        self.changes.queue_by.insert((collection, key.to_owned()), queue);
        queue
    }

    fn find_queue(&self, collection: CollectionId, key: &str) -> Option<QueueId> {
        let name = (collection, key.to_owned());
        if let Some(queue) = self.changes.queue_by.get(&name) {
            return Some(*queue);
        }
        let loaded = self.loaded.queue_by.get(&name);
        if loaded.is_none() {
            self.wants().queues.insert(name);
        }
        let is_there = |queue: &QueueId| {
            !self.changes.cleared.contains(&collection) && !self.changes.forgotten.contains_key(queue)
        };
        loaded.copied().flatten().filter(is_there)
    }

    fn forget_queue(&mut self, queue: QueueId) {
        let (collection, host) = self.queue_parts(queue);
        let is_its_own = self.host_row(host).owner == Some(collection);
        if is_its_own {
            self.changes.hosts.remove(&host);
        }
        self.changes.forgotten.insert(queue, (host, is_its_own));
    }

    fn queue_parts(&self, queue: QueueId) -> (CollectionId, HostId) {
        let unknown = (CollectionId(UNKNOWN), HostId(UNKNOWN));
        self.queue_row(queue).map_or(unknown, |row| (row.collection, row.host))
    }

    fn queues(&self) -> Vec<QueueId> {
        if !self.loaded.has_all_queues {
            self.wants().all_queues = true;
        }
        let Changes { cleared, forgotten, .. } = &self.changes;
        let is_there = |queue: &QueueId, row: &QueueRow| {
            !cleared.contains(&row.collection) && !forgotten.contains_key(queue)
        };
        let read = self.loaded.queues.iter().filter(|(queue, row)| is_there(queue, row));
        read.chain(&self.changes.new_queues).map(|(queue, _)| *queue).collect()
    }

    fn queue_counts(&self, queue: QueueId) -> Counts {
        let mut counts = self.queue_row(queue).map(|row| row.counts).unwrap_or_default();
        let changed = self.changes.by_queue.get(&queue).into_iter().flatten();
        changed.for_each(|entry| self.count_change(&mut counts, *entry));
        counts
    }

    fn counts(&self, collection: CollectionId) -> Counts {
        let mut counts = self.counters(collection).map(|counters| counters.counts).unwrap_or_default();
        let is_its = |queue: &QueueId| self.queue_parts(*queue).0 == collection;
        let changed = self.changes.by_queue.iter().filter(|(queue, _)| is_its(queue));
        changed.flat_map(|(_, entries)| entries).for_each(|entry| self.count_change(&mut counts, *entry));
        counts
    }

    fn hosts_of(&self, collections: &[CollectionId]) -> HostCounts {
        let read = &self.loaded.host_counts;
        let unread = collections.iter().filter(|collection| !read.contains_key(collection));
        self.wants().host_counts.extend(unread.copied());
        let mut hosts =
            collections.iter().map(|collection| (*collection, self.hosts_left(*collection))).collect();
        self.count_changed_hosts(&mut hosts);
        hosts
    }

    fn host_of(&mut self, owner: Option<CollectionId>, key: &str) -> HostId {
        let name = (owner, key.to_owned());
        if let Some(host) = self.changes.host_by.get(&name) {
            return *host;
        }
        match self.loaded.host_by.get(&name) {
            Some(Some(host)) => *host,
            Some(None) => {
                let host = HostId(self.short_number(Numbered::Host));
                let row = HostRow { key: key.to_owned(), owner, state: Host::default() };
                self.changes.hosts.insert(host, row);
                self.changes.new_hosts.insert(host);
                self.changes.host_by.insert(name, host);
                host
            }
            None => {
                self.wants().hosts.insert(name);
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
        self.line_up_again(host);
    }

    fn in_flight(&self, host: HostId) -> InFlight {
        let read = self.loaded.leased.get(&host).into_iter().flatten();
        let untouched = read.filter(|(entry, ..)| !self.changes.entries.contains_key(entry));
        let changed = self.queues_at(host).flat_map(|queue| self.changed_in(queue));
        let changed = changed.filter_map(|(_, row)| Some(row.lease?.until));
        let ends = untouched.map(|(.., until)| *until).chain(changed);
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
        let is_forgotten = |host: &HostId| self.changes.forgotten.values().any(|gone| *gone == (*host, true));
        let is_there = |host: &HostId| {
            let owner = self.host_row(*host).owner;
            owner.is_none_or(|owner| !self.changes.cleared.contains(&owner)) && !is_forgotten(host)
        };
        hosts.filter(is_there).collect::<BTreeSet<HostId>>().into_iter().collect()
    }

    fn next_token(&mut self) -> Token {
        Token(self.number(Numbered::Token))
    }

    fn next_turn(&mut self) -> u64 {
        // Later than what was read, for the clocks of processes may differ a little.
        if !self.has_given_turns {
            let read = self.loaded.queues.keys().map(|queue| believed(self.turn_of(*queue), self.now));
            let read = read.max().unwrap_or_default();
            self.last_turn = self.last_turn.max(read);
            self.has_given_turns = true;
        }
        self.last_turn = next_turn(self.last_turn, self.now);
        self.last_turn
    }

    fn grant(&mut self, lease: Lease) {
        self.changes.tokens.insert(lease.token, lease.entry);
        if let Some(row) = self.row_mut(lease.entry) {
            row.lease = Some(lease);
            let queue = row.standing.queue;
            self.line_up_again(self.queue_parts(queue).1);
        }
    }

    fn lease(&self, token: Token) -> Option<Lease> {
        let changed = self.changes.tokens.get(&token).copied();
        let read = self.loaded.tokens.get(&token).copied();
        if changed.is_none() && read.is_none() {
            self.wants().tokens.insert(token);
        }
        let entry = changed.or(read.flatten())?;
        self.lease_of(entry).filter(|lease| lease.token == token)
    }

    fn lease_of(&self, entry: EntryId) -> Option<Lease> {
        self.row(entry)?.lease
    }

    fn end_lease(&mut self, token: Token) {
        if let Some(lease) = self.lease(token)
            && let Some(row) = self.row_mut(lease.entry)
        {
            row.lease = None;
            let queue = row.standing.queue;
            self.line_up_again(self.queue_parts(queue).1);
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
        if self.loaded.stepping.is_none() {
            self.wants().wake = true;
        }
        self.loaded.stepping.clone().unwrap_or_default()
    }

    fn next_queue(&mut self, wanted: &Wanted, after: Option<InLine>, below: u64) -> Option<InLine> {
        self.line_up();
        let is_next = |(_, queue): &&(u64, QueueId)| {
            self.is_wanted(wanted, *queue)
                && self.opens(*queue).is_open(self.now)
                && self.first_by_priority(*queue).is_some()
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let line = self.line.iter().flat_map(|line| line.order.range((from, Bound::Unbounded)));
        let next = line.take_while(|(place, _)| *place < below).find(is_next).copied();
        let claims = self.loaded.claims.as_ref();
        let is_sure = claims.is_some_and(|claims| {
            let are_enough = claims.is_all || claims.asked >= MOST_CLAIMS;
            are_enough || next.is_some_and(|next| Some(next) <= claims.last)
        });
        if !is_sure {
            let asked = claims.map_or(0, |claims| claims.asked);
            self.wants().claims = Some((wanted.clone(), (asked * 2).max(wanted.most).min(MOST_CLAIMS)));
            return None;
        }
        next
    }

    fn take(&mut self, queue: QueueId, as_oldest: bool) -> Option<EntryId> {
        if as_oldest {
            self.first(queue, true, |id, row| (row.standing.due, id))
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

    fn note_keys(&self, prefix: &str) -> Result<Vec<String>> {
        let Some(read) = self.loaded.note_keys.get(prefix) else {
            self.wants().note_prefixes.insert(prefix.to_owned());
            return Ok(Vec::new());
        };
        let changed = self.changes.notes.keys().filter(|key| key.starts_with(prefix));
        let all: BTreeSet<&String> = read.iter().chain(changed).collect();
        let is_there = |key: &&String| self.changes.notes.get(*key).is_none_or(Option::is_some);
        Ok(all.into_iter().filter(is_there).cloned().collect())
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
