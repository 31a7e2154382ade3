//! Hosts and queues: how they come, and what a change of the catalog means for them.

use std::sync::Arc;

use super::inner::{HostEntry, Inner};
use super::queue::Queue;
use super::tx::to_u32;
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

    /// Adds a host under the next number.
    pub(super) fn add_host(&mut self, host: Option<HostEntry>) {
        if let Some(HostEntry { key, owner, .. }) = &host {
            self.names.add_host(HostId(to_u32(self.hosts.len())), *owner, key);
        }
        self.hosts.push(host);
    }

    /// Adds a queue under the next number.
    pub(super) fn add_queue(&mut self, parts: Option<(CollectionId, HostId)>) {
        let number = QueueId(to_u32(self.queues.len()));
        if let Some((collection, host)) = parts
            && let Some(Some(host)) = self.hosts.get_mut(host.0 as usize)
        {
            self.names.add_queue(number, collection, &host.key);
            host.queues.push(number);
        }
        self.queues.push(parts.map(|(collection, host)| Queue::new(number, collection, host)));
    }
}
