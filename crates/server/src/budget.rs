//! What is held for clients: not too much, of all calls together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Status;

/// Bytes that are held for clients, of all calls, and how many they may be.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    held: Arc<AtomicUsize>,
    most: usize,
    /// What a call is told that there is no room for.
    refusal: &'static str,
}

impl Budget {
    pub(crate) fn new(most: usize, refusal: &'static str) -> Self {
        Self { held: Arc::default(), most, refusal }
    }

    /// Counts bytes until what is returned is dropped; refused where others hold so many that there is no room.
    pub(crate) fn add(&self, bytes: usize) -> Result<Counted, Status> {
        let counted = Counted { held: self.held.clone(), bytes };
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 && before + bytes > self.most {
            return Err(Status::resource_exhausted(self.refusal)); // dropped, and so counted out
        }
        Ok(counted)
    }

    /// Nothing yet, to take in more.
    pub(crate) fn nothing(&self) -> Counted {
        Counted { held: self.held.clone(), bytes: 0 }
    }
}

/// Bytes that are counted as long as it is there.
#[derive(Debug)]
pub(crate) struct Counted {
    held: Arc<AtomicUsize>,
    pub(crate) bytes: usize,
}

impl Counted {
    /// Counts more of the same budget together with it.
    pub(crate) fn take_in(&mut self, mut more: Self) {
        self.bytes += std::mem::take(&mut more.bytes);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What is held for one thing after another, and is kept for the next: as much as the largest of them takes.
#[derive(Debug)]
pub(crate) struct Largest {
    budget: Budget,
    counted: Counted,
}

impl Largest {
    /// That of nothing yet.
    pub(crate) fn of(budget: &Budget) -> Self {
        Self { budget: budget.clone(), counted: budget.nothing() }
    }

    /// Holds one of so many bytes; refused where there is no room for it.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), Status> {
        if bytes > self.counted.bytes {
            self.counted.take_in(self.budget.add(bytes - self.counted.bytes)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_held_is_bounded() {
        let budget = Budget::new(100, "no room");
        let first = budget.add(99).unwrap();
        let cases = [("nothing", 0, true), ("all that is left", 1, true), ("more than that", 2, false)];
        for (name, bytes, want) in cases {
            assert_eq!(budget.add(bytes).is_ok(), want, "{name}");
        }
        drop(first);
        assert!(budget.add(100).is_ok(), "what was refused does not count, nor what is held no more");
    }
}
