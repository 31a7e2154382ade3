//! Drops a whole collection, or a queue of one.

use super::inner::Inner;
use super::queue::Queue;
use crate::entry::{CollectionId, EntryId, QueueId};

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
        for place in 0..self.queues.len() {
            let Some(queue) = self.queues[place].take_if(|queue| queue.collection == collection) else {
                continue;
            };
            self.forget_queue(&queue);
            self.staged.queues.push(queue.number.0);
        }
    }

    /// Drops a queue without entries, and its host if that is of its collection alone.
    pub(super) fn drop_queue(&mut self, number: QueueId) {
        let Some(queue) = self.queues.get_mut(number.0 as usize).and_then(Option::take) else { return };
        self.forget_queue(&queue);
        self.staged.queues.push(number.0);
        self.clear_host(queue.host.0, queue.collection);
    }

    /// Takes a queue away from its host.
    pub(super) fn forget_queue(&mut self, queue: &Queue) {
        if let Some(Some(host)) = self.hosts.get_mut(queue.host.0 as usize) {
            self.names.remove_queue(queue.collection, &host.key);
            host.queues.retain(|known| *known != queue.number);
        }
    }

    fn clear_hosts(&mut self, collection: CollectionId) {
        for number in 0..super::tx::to_u32(self.hosts.len()) {
            self.clear_host(number, collection);
        }
    }

    /// Drops a host if it is of this collection.
    fn clear_host(&mut self, number: u32, collection: CollectionId) {
        let place = &mut self.hosts[number as usize];
        let Some(host) = place.take_if(|host| host.owner == Some(collection)) else { return };
        self.names.remove_host(host.owner, &host.key);
        self.staged.named_hosts.push(number);
    }
}
