//! What the engine sees of the database while one call runs: what was read, and over it what the call changed.
//!
//! A call asks many small questions, and the database is far away. So a question whose answer was not read is noted
//! as a want and answered with nothing; when the call is through, all its wants are read together and it runs
//! again from the start. A run without wants has seen everything it asked for, and only that run counts.

mod tx;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use super::loaded::{Changes, Counters, EntryRow, Head, HostRow, Key, Loaded, QueueRow};
use super::numbers::Numbered;
use super::wants::Wants;
use crate::catalog::{Catalog, Kind};
use crate::engine::{Counts, HostCounts, Outlook, Tx as _, Wanted};
use crate::entry::{CollectionId, EntryId, HostId, QueueId, Standing, State};
use crate::host::{Host, Opens};
use crate::moment::Moment;
use crate::settings::Settings;

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
    /// Whether this call gave any.
    pub(super) has_given_turns: bool,
    /// The queues that this call may hand out from, in line, once it has asked for the first.
    pub(super) line: Option<Line>,
}

/// Queues by their places in line.
#[derive(Debug, Default)]
pub(super) struct Line {
    order: BTreeSet<(u64, QueueId)>,
    places: FxHashMap<QueueId, u64>,
}

impl Line {
    /// Gives a queue its place, which may not be the first that it has.
    fn put(&mut self, queue: QueueId, place: u64) {
        if let Some(before) = self.places.insert(queue, place) {
            self.order.remove(&(before, queue));
        }
        self.order.insert((place, queue));
    }
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
        let read = self.loaded.entries.get(&entry);
        if read.is_none() && entry.0 != UNKNOWN {
            self.wants().entries.insert(entry);
        }
        read?.as_ref()
    }

    fn row_mut(&mut self, entry: EntryId) -> Option<&mut EntryRow> {
        if !self.changes.entries.contains_key(&entry) {
            let row = self.row(entry)?.clone();
            self.changes.take(entry, row);
        }
        self.changes.entries.get_mut(&entry)?.as_mut()
    }

    fn number(&mut self, kind: Numbered) -> u64 {
        let used = &mut self.changes.used[kind as usize];
        *used += 1;
        if let Some(number) = self.numbers[kind as usize].get(*used - 1) {
            return u64::try_from(*number).unwrap_or_default();
        }
        self.wants().numbers[kind as usize] += 1;
        u64::from(UNKNOWN)
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
        let changed = self.changes.by_queue.get(&queue).into_iter().flatten();
        changed.filter_map(|id| Some((*id, self.changes.entries.get(id)?.as_ref()?)))
    }

    /// The queues of a host.
    fn queues_at(&self, host: HostId) -> impl Iterator<Item = QueueId> {
        let read = self.loaded.queues_of.get(&host).into_iter().flatten().copied();
        read.chain(self.changes.queues_at(host))
    }

    /// The first entry of a queue that is ready, by an order; a want if that was not read.
    fn first<K: Ord>(
        &self,
        queue: QueueId,
        as_oldest: bool,
        order: impl Fn(EntryId, &EntryRow) -> K,
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
        let untouched = untouched.and_then(|id| Some((id, self.row(id)?)));
        let all = changed.chain(untouched);
        all.min_by_key(|(id, row)| order(*id, row)).map(|(id, _)| id)
    }

    /// Whether a queue has something ready that this call leaves as it is, if that was read.
    pub(super) fn has_other_ready(&self, queue: QueueId) -> Option<bool> {
        let head = self.loaded.ready.get(&queue)?;
        let is_left = head.entries.iter().any(|entry| !self.changes.entries.contains_key(entry));
        (is_left || head.is_all).then_some(is_left)
    }

    fn first_by_priority(&self, queue: QueueId) -> Option<EntryId> {
        self.first(queue, false, |id, EntryRow { standing, arrived, .. }| {
            let time = if standing.by_due { standing.due } else { *arrived };
            (std::cmp::Reverse(standing.effective()), standing.by_due, time, id)
        })
    }

    /// The queues that this call may hand out from.
    fn held_queues(&self) -> impl Iterator<Item = QueueId> {
        let read = self.loaded.queues.iter().filter(|(_, row)| self.loaded.locked.contains(&row.host));
        read.map(|(queue, _)| *queue).chain(self.changes.new_queues.keys().copied())
    }

    /// Lines up the queues that this call may hand out from, if they are not yet.
    fn line_up(&mut self) {
        if self.line.is_none() {
            let mut line = Line::default();
            self.held_queues().for_each(|queue| line.put(queue, self.place_of(queue)));
            self.line = Some(line);
        }
    }

    /// What changed of a host may have moved its queues.
    fn line_up_again(&mut self, host: HostId) {
        let Some(mut line) = self.line.take() else { return };
        for queue in self.queues_at(host) {
            if line.places.contains_key(&queue) {
                line.put(queue, self.place_of(queue));
            }
        }
        self.line = Some(line);
    }

    fn turn_of(&self, queue: QueueId) -> u64 {
        let (collection, host) = self.queue_parts(queue);
        self.host(host).turn(collection)
    }

    /// The place in line that a queue has if something is ready.
    pub(super) fn place_of(&self, queue: QueueId) -> u64 {
        let (collection, host) = self.queue_parts(queue);
        self.host(host).place(collection, self.opens(queue), self.now)
    }
}

impl View {
    fn counters(&self, collection: CollectionId) -> Option<Counters> {
        let counters = self.loaded.counters.get(&collection).copied();
        if counters.is_none() && collection.0 != UNKNOWN {
            self.wants().counters.insert(collection);
        }
        counters
    }

    /// Corrects what was counted in the database by what this call changed of an entry.
    fn count_change(&self, counts: &mut Counts, entry: EntryId) {
        let before = self.loaded.entries.get(&entry).and_then(Option::as_ref);
        if let Some(before) = before {
            let count = &mut counts[before.standing.state as usize];
            *count = count.saturating_sub(1);
        }
        if let Some(Some(row)) = self.changes.entries.get(&entry) {
            counts[row.standing.state as usize] += 1;
        }
    }

    /// How many hosts a collection has by the tables, unless the call clears it.
    fn hosts_left(&self, collection: CollectionId) -> [u64; 2] {
        let is_cleared = self.changes.cleared.contains(&collection);
        let read = self.loaded.host_counts.get(&collection).filter(|_| !is_cleared);
        read.copied().unwrap_or_default()
    }

    /// Corrects what was counted in the database by the queues that this call makes, changes or forgets.
    fn count_changed_hosts(&self, hosts: &mut HostCounts) {
        let Changes { by_queue, new_queues, forgotten, cleared, .. } = &self.changes;
        let touched: BTreeSet<&QueueId> =
            by_queue.keys().chain(new_queues.keys()).chain(forgotten.keys()).collect();
        for queue in touched {
            let (collection, _) = self.queue_parts(*queue);
            let Some(counts) = hosts.get_mut(&collection) else { continue };
            let is_plain = self.is_plain(collection);
            let before = self.loaded.queues.get(queue).filter(|_| !cleared.contains(&collection));
            let [before, after] = [
                before.map(|row| row.counts),
                (!forgotten.contains_key(queue)).then(|| self.queue_counts(*queue)),
            ]
            .map(|counts| counts.map_or([0, 0], |counts| host_count(is_plain, counts)));
            for (count, (before, after)) in counts.iter_mut().zip(before.into_iter().zip(after)) {
                *count = (*count + after).saturating_sub(before);
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

/// Whether the host of a queue with so many entries is listed, and whether it has something to do, as numbers.
fn host_count(is_plain: bool, [queued, leased, done, failed]: Counts) -> [u64; 2] {
    let is_active = queued + leased > 0;
    [u64::from(is_plain || is_active || done + failed > 0), u64::from(is_active)]
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
