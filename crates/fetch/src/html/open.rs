//! The elements that have begun and not ended.

use std::collections::HashMap;

use super::Name;

/// More levels than this are no page any more; browsers stop at some hundreds.
const MAX_DEPTH: usize = 10_000;
/// So many levels are looked through one by one. Few pages have more.
const SHALLOW: usize = 32;

/// The open elements, each with what has to be done when it ends.
pub(crate) struct OpenElements<T> {
    items: Vec<(Name, T)>,
    /// How many of each name there are below the shallow ones: many stray end tags in a deep page would
    /// otherwise take a look at all levels each.
    deep: HashMap<Name, u32>,
}

impl<T> Default for OpenElements<T> {
    fn default() -> Self {
        Self { items: Vec::with_capacity(SHALLOW), deep: HashMap::new() }
    }
}

impl<T> OpenElements<T> {
    /// Opens an element. Says no if there are too many.
    pub(crate) fn push(&mut self, name: Name, at_its_end: T) -> bool {
        if self.items.len() >= SHALLOW {
            *self.deep.entry(name).or_default() += 1;
        }
        self.items.push((name, at_its_end));
        self.items.len() < MAX_DEPTH
    }

    /// Closes the innermost element of a name and all within it, if there is one; the innermost come first.
    pub(crate) fn close(&mut self, name: Name) -> impl Iterator<Item = T> {
        let length = self.find(name).unwrap_or(self.items.len());
        for (name, _) in self.items.iter().skip(length.max(SHALLOW)) {
            if let Some(count) = self.deep.get_mut(name) {
                *count -= 1;
            }
        }
        self.items.drain(length..).rev().map(|(_, at_its_end)| at_its_end)
    }

    fn find(&self, name: Name) -> Option<usize> {
        let is_deep = self.deep.get(&name).is_some_and(|count| *count > 0);
        let among = if is_deep { self.items.len() } else { self.items.len().min(SHALLOW) };
        self.items[..among].iter().rposition(|(open, _)| *open == name)
    }
}
