//! Drops a whole collection, or a queue of one.

use super::inner::Inner;
use super::queue::Queue;
use crate::entry::{CollectionId, EntryId, HostId, QueueId};

impl Inner {
    /// Drops the entries and queues of a collection, and the hosts of its own. The rows of its queues
    /// go at once, which is what makes its entries unknown; theirs follow bit by bit.
    pub(super) fn clear(&mut self, collection: CollectionId) -> u64 {
        let is_its = |queue| self.queue_at(queue).is_some_and(|queue| queue.collection == collection);
        let doomed = self.slots.iter().filter(|(_, slot)| is_its(slot.queue()));
        let doomed: Vec<u32> = doomed.map(|(number, _)| number).collect();
        for &number in &doomed {
            self.clear_entry(number);
        }
        let count = doomed.len() as u64;
        self.graveyard.extend(doomed);
        self.clear_queues(collection);
        self.clear_hosts(collection);
        self.rotation.remove(collection);
        self.totals.remove(&collection);
        self.leases.remove_collection(collection);
        if self.tallies.remove(&collection).is_some() {
            self.staged.tallies.push(collection);
        }
        self.staged.rings = true;
        count
    }

    fn clear_entry(&mut self, number: u32) {
        if let Some(lease) = self.leases.of(EntryId(number)) {
            self.drop_lease(lease);
        }
        self.staged.records.remove(&number);
        self.held.forget(EntryId(number));
        let Some(slot) = self.slots.get_mut(number) else { return };
        self.index.remove(slot.hash, number);
        if slot.has_step() {
            self.steps.set(number, None, false);
        }
        slot.remove();
        slot.set_doomed(true);
    }

    fn clear_queues(&mut self, collection: CollectionId) {
        for number in 0..self.queues.len() {
            let place = self.queues.get_mut(number);
            let queue = place.and_then(|queue| queue.take_if(|queue| queue.collection == collection));
            if let Some(queue) = queue {
                self.forget_queue(&queue);
                self.staged.queues.push(number);
            }
        }
    }

    /// Drops a queue without entries, and its host if that is of its collection alone.
    pub(super) fn drop_queue(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number.0).and_then(Option::take) else { return };
        self.forget_queue(&queue);
        self.staged.queues.push(number.0);
        self.clear_host(queue.host, queue.collection);
    }

    /// Takes a queue away from its host.
    pub(super) fn forget_queue(&mut self, queue: &Queue) {
        if let Some(host) = self.hosts.get_mut(queue.host) {
            host.queues.remove(queue.collection);
        }
    }

    fn clear_hosts(&mut self, collection: CollectionId) {
        for number in 0..self.hosts.len() {
            self.clear_host(HostId(number), collection);
        }
    }

    /// Drops a host if it is of this collection.
    fn clear_host(&mut self, host: HostId, collection: CollectionId) {
        if self.host_at(host).is_some_and(|host| host.owner == Some(collection)) {
            self.hosts.remove(host);
            self.staged.named_hosts.push(host.0);
        }
    }
}
