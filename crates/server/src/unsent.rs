//! What waits for readers: not too much, of all calls together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonic::Status;

use crate::limits::MAX_UNSENT_BYTES;

/// Bytes that wait for readers, of all calls.
#[derive(Debug, Default)]
pub(crate) struct Unsent(Arc<AtomicUsize>);

impl Unsent {
    /// Counts bytes until what is returned is dropped; refused where others have not read so much that there is no room.
    pub(crate) fn add(&self, bytes: usize) -> Result<Counted, Status> {
        let counted = Counted { all: self.0.clone(), bytes };
        let before = self.0.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 && before + bytes > MAX_UNSENT_BYTES {
            let words = "too much waits for other readers; ask again when they have read it, or ask for less";
            return Err(Status::resource_exhausted(words)); // dropped, and so counted out
        }
        Ok(counted)
    }
}

/// Bytes that are counted as long as it is there.
#[derive(Debug)]
pub(crate) struct Counted {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_waits_is_bounded() {
        let unsent = Unsent::default();
        let first = unsent.add(MAX_UNSENT_BYTES - 1).unwrap();
        let cases = [("nothing", 0, true), ("all that is left", 1, true), ("more than that", 2, false)];
        for (name, bytes, want) in cases {
            assert_eq!(unsent.add(bytes).is_ok(), want, "{name}");
        }
        drop(first);
        assert!(unsent.add(MAX_UNSENT_BYTES).is_ok(), "what was refused does not count, nor what was read");
    }
}
