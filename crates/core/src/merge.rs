//! What a rediscovery may change about an entry: only for the better.

use jiff::Timestamp;

use crate::scope::Place;

/// The parts of an entry that a rediscovery may improve.
///
/// Creation time, counters and history are not among them: a link that is found again never
/// overwrites what was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing<P> {
    /// The highest priority that any discovery gave it.
    pub priority: P,
    /// The nearest place at which it was found: lowest depth, then fewest hops off the domain.
    pub place: Place,
    /// The earliest time at which it may be fetched.
    pub due: Timestamp,
}

impl<P: Ord> Standing<P> {
    /// The better of both in each part. The order of merges does not matter, nor does repeating one.
    ///
    /// ```
    /// # use forager_core::{merge::Standing, scope::Place};
    /// # use jiff::Timestamp;
    /// let at_depth = |depth| Place { depth, hops_off_domain: 0 };
    /// let known = Standing { priority: 500, place: at_depth(3), due: Timestamp::UNIX_EPOCH };
    /// let again = Standing { priority: 800, place: at_depth(4), due: Timestamp::MAX };
    /// let merged = Standing { priority: 800, place: at_depth(3), due: Timestamp::UNIX_EPOCH };
    /// assert_eq!(known.merge(again), merged);
    /// ```
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            priority: self.priority.max(other.priority),
            place: self.place.min(other.place),
            due: self.due.min(other.due),
        }
    }
}
