//! The best few of a long stream, in memory that does not grow with it.

use core::cmp::Ordering;
use std::collections::{BinaryHeap, binary_heap};

/// Keeps the `limit` items with the smallest keys.
///
/// Ties are the caller's to break: a key that ends in a sequence number has none.
///
/// ```
/// # use forager_core::top::Top;
/// let mut top = Top::new(2);
/// assert_eq!(top.push(3, "c"), None);
/// assert_eq!(top.push(1, "a"), None);
/// assert_eq!(top.push(2, "b"), Some((3, "c"))); // what no longer fits
/// assert_eq!(top.into_sorted(), [(1, "a"), (2, "b")]);
/// ```
#[derive(Clone, Debug)]
pub struct Top<K, T> {
    limit: usize,
    worst_first: BinaryHeap<Keyed<K, T>>,
}

impl<K: Ord, T> Top<K, T> {
    /// An empty one that keeps at most `limit`.
    pub fn new(limit: usize) -> Self {
        Self { limit, worst_first: BinaryHeap::new() }
    }

    /// Whether an item with this key would be kept if it were pushed now.
    pub fn would_keep(&self, key: &K) -> bool {
        self.worst_first.len() < self.limit || self.worst_first.peek().is_some_and(|worst| *key < worst.key)
    }

    /// Takes an item in, and gives back the one that no longer fits.
    pub fn push(&mut self, key: K, item: T) -> Option<(K, T)> {
        let keyed = Keyed { key, item };
        if self.worst_first.len() < self.limit {
            self.worst_first.push(keyed);
            return None;
        }
        let out = match self.worst_first.peek_mut() {
            Some(mut worst) if keyed.key < worst.key => core::mem::replace(&mut *worst, keyed),
            _ => keyed,
        };
        Some((out.key, out.item))
    }

    /// What was kept, smallest key first.
    pub fn into_sorted(self) -> Vec<(K, T)> {
        self.worst_first.into_sorted_vec().into_iter().map(Keyed::into_pair).collect()
    }
}

impl<K, T> IntoIterator for Top<K, T> {
    type Item = (K, T);
    type IntoIter = core::iter::Map<binary_heap::IntoIter<Keyed<K, T>>, fn(Keyed<K, T>) -> (K, T)>;

    /// What was kept, in no order.
    fn into_iter(self) -> Self::IntoIter {
        self.worst_first.into_iter().map(Keyed::into_pair)
    }
}

/// An item that orders by its key alone.
#[derive(Clone, Debug)]
pub struct Keyed<K, T> {
    key: K,
    item: T,
}

impl<K, T> Keyed<K, T> {
    fn into_pair(self) -> (K, T) {
        (self.key, self.item)
    }
}

impl<K: Ord, T> Ord for Keyed<K, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl<K: Ord, T> PartialOrd for Keyed<K, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord, T> PartialEq for Keyed<K, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K: Ord, T> Eq for Keyed<K, T> {}
