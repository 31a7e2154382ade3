//! Hosts and queues: how they come, and what a change of the catalog means for them.

use std::sync::Arc;

use super::inner::Inner;
use super::queue::Queue;
use crate::catalog::Catalog;
use crate::entry::{CollectionId, HostId, QueueId};

impl Inner {
    /// Puts another catalog in place. A collection of another kind has other rules of politeness.
    pub(super) fn put_catalog(&mut self, catalog: Arc<Catalog>) {
        let before = std::mem::replace(&mut self.catalog, catalog);
        let kind = |catalog: &Catalog, queue: &Queue| {
            catalog.collection_numbered(queue.collection).map(|row| row.spec.kind)
        };
        let differs = before.rows().collections.iter().any(|row| {
            self.catalog.collection_numbered(row.number).map(|row| row.spec.kind) != Some(row.spec.kind)
        });
        if differs {
            let queues = self.queues.iter().flatten();
            let changed: Vec<QueueId> = queues
                .filter(|queue| kind(&before, queue) != kind(&self.catalog, queue))
                .map(|queue| queue.number)
                .collect();
            for queue in changed {
                self.refile(queue);
            }
        }
    }

    /// Adds a queue under the next number.
    pub(super) fn add_queue(&mut self, parts: Option<(CollectionId, HostId)>) {
        let number = QueueId(self.queues.len());
        if let Some((collection, host)) = parts
            && let Some(host) = self.hosts.get_mut(host)
        {
            host.queues.add(collection, number);
        }
        self.queues.push(parts.map(|(collection, host)| Queue::new(number, collection, host)));
    }
}
