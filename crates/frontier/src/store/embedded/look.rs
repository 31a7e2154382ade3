//! What the queues wait for.

use super::inner::Inner;
use super::queue::Queue;
use super::rotation::Filed;
use crate::engine::{Outlook, Tx as _, Wanted};
use crate::entry::{CollectionId, QueueId, Token};
use crate::host::Opens;
use crate::moment::Moment;

impl Inner {
    /// The wanted queues of a single key.
    pub(super) fn keyed<'a>(&'a self, wanted: &'a Wanted, key: &'a str) -> impl Iterator<Item = &'a Queue> {
        let queues =
            wanted.collections.iter().filter_map(move |collection| self.find_queue(*collection, key));
        queues.filter_map(|queue| self.queue_at(queue))
    }

    pub(super) fn outlook_of_key(&self, wanted: &Wanted, key: &str) -> Outlook {
        let ready = self.keyed(wanted, key).filter(|queue| queue.ready > 0);
        let opens = ready.map(|queue| (self.opens(queue), queue.number));
        let dues = self.keyed(wanted, key).filter_map(|queue| match queue.filed {
            Filed::Asleep(due) => Some(Moment::from_second(due).max(self.opens(queue).at)),
            _ => None,
        });
        let leases = self.keyed(wanted, key).filter_map(|queue| {
            let host = self.host_at(queue.host)?;
            let is_its = |token: Token| {
                let entry = self.leases.get(token).and_then(|lease| self.slots.live(lease.entry.0));
                entry.is_some_and(|slot| slot.queue() == queue.number)
            };
            host.leases().iter().find(|(_, token)| is_its(*token)).map(|(until, _)| *until)
        });
        Outlook {
            first_open: opens.min_by_key(|(opens, queue)| (opens.at, *queue)).map(|(opens, _)| opens),
            first_due: dues.min(),
            first_expiry: leases.min(),
        }
    }

    /// Of the queues of a collection with something ready, the one whose host opens first.
    pub(super) fn first_open(&self, collection: CollectionId) -> Option<(Opens, QueueId)> {
        let rota = self.rotation.rota(collection)?;
        let closed = rota.closed.first().map(|(_, queue)| *queue);
        let open = rota.open.iter().map(|(_, queue)| *queue);
        let queues = open.chain(closed).filter_map(|queue| self.queue_at(queue));
        queues.map(|queue| (self.opens(queue), queue.number)).min_by_key(|(opens, queue)| (opens.at, *queue))
    }

    /// Of the queues of a collection with nothing ready, the time at which the first has something due and
    /// its host is open. Those due later than the best so far cannot be it.
    pub(super) fn first_due(&self, collection: CollectionId) -> Option<Moment> {
        let mut best = None;
        for (due, queue) in &self.rotation.rota(collection)?.asleep {
            let due = Moment::from_second(*due);
            if best.is_some_and(|best| best <= due) {
                break;
            }
            let at = self.queue_at(*queue).map(|queue| due.max(self.opens(queue).at));
            best = [best, at].into_iter().flatten().min();
        }
        best
    }
}
