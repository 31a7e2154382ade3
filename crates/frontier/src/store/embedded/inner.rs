//! All that the store holds in memory, and how it is kept in order.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::blocks::Blocks;
use super::codec::Counters;
use super::disk::Disk;
use super::fold::Fold;
use super::held::Held;
use super::hosts::{HostEntry, Hosts};
use super::index::Index;
use super::leases::Leases;
use super::queue::Queue;
use super::rotation::{Filed, Rotation};
use super::slots::{Slot, Slots};
use super::staged::Staged;
use super::steps::Steps;
use super::undo::Undo;
use crate::catalog::{Catalog, Kind};
use crate::engine::Counts;
use crate::entry::{CollectionId, EntryId, HostId, Lease, QueueId, State};
use crate::host::{Host, Opens};
use crate::moment::Moment;
use crate::settings::Settings;
use crate::verbs::Tally;

/// The store while a call runs.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(super) settings: Arc<Settings>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) counters: Counters,
    pub(super) tallies: FxHashMap<CollectionId, Tally>,
    pub(super) slots: Slots,
    pub(super) index: Index,
    pub(super) hosts: Hosts,
    /// By number; none where one was removed.
    pub(super) queues: Blocks<Option<Queue>>,
    pub(super) leases: Leases,
    pub(super) steps: Steps,
    pub(super) rotation: Rotation,
    /// The entries of each collection by state.
    pub(super) totals: FxHashMap<CollectionId, Counts>,
    /// Entries of collections that are gone, whose rows are still on disk.
    pub(super) graveyard: Vec<u32>,
    pub(super) held: Held,
    pub(super) fold: Fold,
    pub(super) staged: Staged,
    pub(super) undo: Undo,
    pub(super) disk: Disk,
}

impl Inner {
    /// A store with nothing in it.
    pub(super) fn empty(disk: Disk, settings: Arc<Settings>, catalog: Arc<Catalog>, secret: u64) -> Self {
        Self {
            settings,
            catalog,
            counters: Counters::default(),
            tallies: FxHashMap::default(),
            slots: Slots::default(),
            index: Index::new(secret),
            hosts: Hosts::new(secret),
            queues: Blocks::default(),
            leases: Leases::default(),
            steps: Steps::default(),
            rotation: Rotation::default(),
            totals: FxHashMap::default(),
            graveyard: Vec::new(),
            held: Held::default(),
            fold: Fold::default(),
            staged: Staged::default(),
            undo: Undo::default(),
            disk,
        }
    }

    /// A queue that there is.
    pub(super) fn queue_at(&self, queue: QueueId) -> Option<&Queue> {
        self.queues.get(queue.0)?.as_ref()
    }

    fn queue_mut(&mut self, queue: QueueId) -> Option<&mut Queue> {
        self.queues.get_mut(queue.0)?.as_mut()
    }

    /// A host that there is.
    pub(super) fn host_at(&self, host: HostId) -> Option<&HostEntry> {
        self.hosts.get(host)
    }

    /// A host that there is, to be changed.
    pub(super) fn host_mut(&mut self, host: HostId) -> Option<&mut HostEntry> {
        self.hosts.get_mut(host)
    }

    /// The key of the host of a queue.
    pub(super) fn key_of(&self, queue: QueueId) -> &str {
        let host = self.queue_at(queue).and_then(|queue| self.host_at(queue.host));
        host.map_or("", |host| &host.key)
    }

    /// When the host of a queue opens.
    pub(super) fn opens(&self, queue: &Queue) -> Opens {
        let row = self.catalog.collection_numbered(queue.collection);
        let is_plain = row.is_some_and(|row| row.spec.kind == Kind::Plain);
        let never = Opens { at: Moment::NEVER, gate: None };
        self.host_at(queue.host)
            .map_or(never, |host| host.state().opens(host.in_flight(), &self.settings.politeness, is_plain))
    }

    /// Puts a new entry in its place.
    pub(super) fn place(&mut self, slot: Slot, step: Option<Moment>) -> u32 {
        let number = self.slots.len();
        self.slots.push(slot);
        self.index.insert(slot.hash, number, &self.slots);
        self.steps.set(number, step, slot.state() == State::Queued);
        self.enter(number);
        self.refile_moved(slot.queue());
        number
    }

    /// Takes an entry out of its place. Its slot stays, marked as removed.
    pub(super) fn displace(&mut self, number: u32) {
        let Some(slot) = self.slots.live(number).copied() else { return };
        self.leave(number);
        self.index.remove(slot.hash, number);
        self.steps.set(number, None, false);
        if let Some(slot) = self.slots.get_mut(number) {
            slot.remove();
        }
        self.refile_moved(slot.queue());
    }

    /// Puts back an entry that was taken out.
    pub(super) fn put_back(&mut self, number: u32, mut slot: Slot, step: Option<Moment>) {
        slot.set_ready(false);
        if let Some(place) = self.slots.get_mut(number) {
            *place = slot;
        }
        self.index.insert(slot.hash, number, &self.slots);
        self.steps.set(number, step, slot.state() == State::Queued);
        self.enter(number);
        self.refile_moved(slot.queue());
    }

    /// Gives an entry another standing, and moves it to where it belongs.
    pub(super) fn restand(&mut self, number: u32, mut slot: Slot, step: Option<Moment>) {
        let Some(before) = self.slots.live(number).copied() else { return };
        let is_new_step = self.steps.get(number) != step || before.state() != slot.state();
        slot.set_ready(before.is_ready());
        let stays = before.stands_like(&slot);
        if !stays {
            self.leave(number);
            slot.set_ready(false);
        }
        if let Some(place) = self.slots.get_mut(number) {
            *place = slot;
        }
        if is_new_step {
            self.steps.set(number, step, slot.state() == State::Queued);
        }
        if !stays {
            self.enter(number);
            self.refile_moved(slot.queue());
            if slot.queue() != before.queue() {
                self.refile_moved(before.queue());
            }
        }
    }

    /// Counts an entry in at its queue.
    fn enter(&mut self, number: u32) {
        let now = self.counters.now.second();
        let Some(slot) = self.slots.get_mut(number) else { return };
        let Some(Some(queue)) = self.queues.get_mut(slot.queue().0) else { return };
        queue.count_in(slot.state());
        self.totals.entry(queue.collection).or_default()[slot.state() as usize] += 1;
        if slot.state() != State::Queued {
            return;
        }
        if slot.due <= now {
            slot.set_ready(true);
            queue.add_ready(number, slot);
        } else {
            queue.add_waiting(number, slot.due);
        }
    }

    /// Counts an entry out at its queue.
    fn leave(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        let Some(Some(queue)) = self.queues.get_mut(slot.queue().0) else { return };
        queue.count_out(slot.state());
        self.totals.entry(queue.collection).or_default()[slot.state() as usize] -= 1;
        if slot.is_ready() {
            slot.set_ready(false);
            queue.drop_ready(number, &self.slots);
        } else if slot.state() == State::Queued {
            queue.drop_waiting(&self.slots);
        }
    }

    /// Files a queue where it belongs after one of its entries has moved. If it is filed by its host,
    /// and still has something ready, nothing has changed.
    fn refile_moved(&mut self, number: QueueId) {
        let Some(queue) = self.queue_at(number) else { return };
        if queue.ready == 0 || !matches!(queue.filed, Filed::Open(_) | Filed::Closed(_)) {
            self.refile(number);
        }
    }

    /// Files a queue where it belongs.
    pub(super) fn refile(&mut self, number: QueueId) {
        let now = self.counters.now.second();
        let Some(Some(queue)) = self.queues.get_mut(number.0) else { return };
        let next_due = if queue.ready == 0 { queue.next_due(&self.slots) } else { None };
        if next_due.is_some_and(|due| due <= now) {
            queue.wake(&mut self.slots, now);
        }
        let to = match (&*queue, next_due) {
            (Queue { ready: 0, .. }, None) => Filed::Nowhere,
            (Queue { ready: 0, .. }, Some(due)) => Filed::Asleep(due),
            _ => self.filed_ready(number),
        };
        let Some(queue) = self.queue_mut(number) else { return };
        let from = std::mem::replace(&mut queue.filed, to);
        let collection = queue.collection;
        if from != to {
            self.rotation.refile(collection, number, from, to);
        }
    }

    fn filed_ready(&self, number: QueueId) -> Filed {
        let Some(queue) = self.queue_at(number) else { return Filed::Nowhere };
        let opens = self.opens(queue);
        let now = self.counters.now;
        if opens.is_open(now) {
            let host = self.host_at(queue.host);
            Filed::Open(host.map_or(0, |host| host.state().place(queue.collection, opens, now)))
        } else {
            Filed::Closed(opens.at)
        }
    }

    /// Files the queues of a host where they belong.
    pub(super) fn refile_host(&mut self, host: HostId) {
        for place in 0.. {
            let queue = self.host_at(host).and_then(|host| host.queues.at(place));
            let Some(queue) = queue else { return };
            if self.queue_at(queue).is_some_and(|queue| queue.ready > 0) {
                self.refile(queue);
            }
        }
    }

    /// What is due becomes ready, and what opens is open.
    pub(super) fn wake_queues(&mut self) {
        let now = self.counters.now;
        for number in self.rotation.due(now) {
            self.refile(number);
        }
        for number in self.rotation.opening(now) {
            self.refile(number);
        }
    }

    /// The collection and host of an entry.
    pub(super) fn home(&self, entry: EntryId) -> Option<(CollectionId, HostId)> {
        let queue = self.queue_at(self.slots.live(entry.0)?.queue())?;
        Some((queue.collection, queue.host))
    }

    /// Records a lease.
    pub(super) fn put_lease(&mut self, lease: Lease) {
        let Some((collection, host)) = self.home(lease.entry) else { return };
        self.leases.insert(lease, collection);
        if let Some(host) = self.host_mut(host) {
            host.add_lease(lease.until, lease.token);
        }
        self.refile_host(host);
    }

    /// Forgets a lease.
    pub(super) fn drop_lease(&mut self, lease: Lease) {
        let Some((collection, host)) = self.home(lease.entry) else { return };
        self.leases.remove(lease, collection);
        if let Some(host) = self.host_mut(host) {
            host.remove_lease(lease.until, lease.token);
        }
        self.refile_host(host);
    }

    /// Gives a host another state.
    pub(super) fn put_host(&mut self, host: HostId, state: Host) {
        if let Some(host) = self.host_mut(host) {
            host.set_state(state);
        }
        self.refile_host(host);
    }
}
