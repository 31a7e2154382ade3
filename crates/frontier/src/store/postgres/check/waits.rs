//! What a queue waits for: what it says, against what comes out.

use tokio_postgres::Row;

use super::super::failure::Failure;
use super::super::rows::{millis, moment_of_millis};
use crate::entry::CollectionId;
use crate::host::{Host, Opens};
use crate::moment::Moment;

/// What a queue says that it waits for, and what its entries say.
pub(super) struct Waits {
    place: Option<i64>,
    opens: Option<i64>,
    first_due: Option<i64>,
    wake_at: Option<i64>,
    has_ready: bool,
    is_due: Option<i64>,
    step: Option<i64>,
    seen: Moment,
}

impl Waits {
    pub(super) fn read(row: &Row) -> Result<Self, Failure> {
        Ok(Self {
            place: row.try_get("place")?,
            opens: row.try_get("opens")?,
            first_due: row.try_get("first_due")?,
            wake_at: row.try_get("wake_at")?,
            has_ready: row.try_get("has_ready")?,
            is_due: row.try_get("is_due")?,
            step: row.try_get("step")?,
            seen: moment_of_millis(row.try_get("seen")?),
        })
    }

    /// Whether it says what its entries say, and is looked at in time. Too early does no harm: what changes by SQL
    /// is worked out by the next who claims.
    pub(super) fn are_known(&self) -> bool {
        let is_same = (self.place.is_some(), self.first_due) == (self.has_ready, self.is_due);
        let is_waiting = !self.has_ready && self.is_due.is_some();
        let changes = [self.first_due.map(in_millis), self.step].into_iter().flatten().min();
        let is_woken = changes.is_none_or(|change| self.wake_at.is_some_and(|wake| wake <= change));
        is_same && self.opens.is_some() == is_waiting && is_woken
    }

    /// Whether it waits as long as its host says, or less if it is looked at before anything comes of that. How many may
    /// be under way at a time is set for each process, and only counts where some are.
    pub(super) fn are_those_of(
        &self,
        host: &Host,
        collection: CollectionId,
        opens: Opens,
        is_busy: bool,
    ) -> bool {
        let place = i64::try_from(host.place(collection, opens, self.seen)).unwrap_or(i64::MAX);
        let due = self.first_due.map_or(0, in_millis).max(millis(opens.at));
        let is_right = |says: i64, right: i64| {
            says == right || (says > right && is_busy) || (says < right && self.wake_at.is_some())
        };
        self.place.is_none_or(|says| is_right(says, place))
            && self.opens.is_none_or(|says| is_right(says, due))
    }
}

fn in_millis(second: i64) -> i64 {
    second.saturating_mul(1000)
}
