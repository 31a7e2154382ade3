//! Answers by name, each kept until it runs out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::DnsError;

/// What is known of one name.
pub(super) struct Answer {
    pub(super) addresses: Result<Arc<[IpAddr]>, DnsError>,
    pub(super) until: Instant,
}

/// An answer, or the place where it will be.
pub(super) type Cell = Arc<OnceCell<Answer>>;

/// The cells of at most so many names.
pub(super) struct Cache {
    names: usize,
    cells: Mutex<HashMap<Box<str>, Cell>>,
}

impl Cache {
    pub(super) fn new(names: usize) -> Self {
        Self { names, cells: Mutex::default() }
    }

    /// The cell of a name: with an answer that still counts at `now`, or to be filled.
    pub(super) fn cell(&self, name: &str, now: Instant) -> Cell {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = cells.get(name).filter(|cell| counts(cell, now)) {
            return cell.clone();
        }
        if cells.len() >= self.names {
            cells.retain(|_, cell| counts(cell, now));
        }
        // Everything goes at once: to ask again costs each name one question, an order of use
        // would cost every look-up.
        if cells.len() >= self.names {
            cells.clear();
        }
        let cell = Cell::default();
        cells.insert(name.into(), cell.clone());
        cell
    }
}

fn counts(cell: &Cell, now: Instant) -> bool {
    cell.get().is_none_or(|answer| now < answer.until)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fill(cell: &Cell, until: Instant) {
        let answer = Answer { addresses: Ok(Arc::new([])), until };
        assert!(cell.set(answer).is_ok());
    }

    #[test]
    fn an_answer_counts_until_it_runs_out() {
        let (cache, now) = (Cache::new(8), Instant::now());
        let later = now + Duration::from_secs(1);
        let first = cache.cell("a", now);
        assert!(Arc::ptr_eq(&first, &cache.cell("a", later)), "a question under way is shared");
        fill(&first, later);
        assert!(Arc::ptr_eq(&first, &cache.cell("a", now)), "it still counts");
        assert!(!Arc::ptr_eq(&first, &cache.cell("a", later)), "it has run out");
    }

    #[test]
    fn the_cache_never_holds_more_names_than_it_may() {
        let (cache, now) = (Cache::new(3), Instant::now());
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            fill(&cache.cell(name, now), now + Duration::from_secs(9));
            assert!(cache.cells.lock().unwrap().len() <= 3);
        }
    }
}
