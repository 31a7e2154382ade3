//! What a queue waits for: what it says, against what comes out.

use tokio_postgres::Row;

use super::super::failure::Failure;

/// What a queue says that it waits for, and what its entries say.
pub(super) struct Waits {
    ready: bool,
    claimable: bool,
    at: Option<i64>,
    first_due: Option<i64>,
    wake_at: Option<i64>,
    has_ready: bool,
    is_due: Option<i64>,
    step: Option<i64>,
}

impl Waits {
    pub(super) fn read(row: &Row) -> Result<Self, Failure> {
        Ok(Self {
            ready: row.try_get("ready")?,
            claimable: row.try_get("claimable")?,
            at: row.try_get("at")?,
            first_due: row.try_get("first_due")?,
            wake_at: row.try_get("wake_at")?,
            has_ready: row.try_get("has_ready")?,
            is_due: row.try_get("is_due")?,
            step: row.try_get("step")?,
        })
    }

    /// Whether it says what its entries say, and is looked at in time. Too early does no harm: what changes by SQL
    /// is worked out by the next who claims.
    pub(super) fn are_known(&self) -> bool {
        let is_same = (self.ready, self.first_due) == (self.has_ready, self.is_due);
        let has_any = self.has_ready || self.is_due.is_some();
        let opens = self.at.filter(|_| !self.claimable);
        let changes = [opens, self.first_due.map(in_millis), self.step].into_iter().flatten().min();
        let is_woken = changes.is_none_or(|change| self.wake_at.is_some_and(|wake| wake <= change));
        is_same && (self.ready || !self.claimable) && self.at.is_some() == has_any && is_woken
    }

    /// Whether it waits as long as its host says, or less if it is looked at before anything comes of that. How many may
    /// be under way at a time is set for each process, and only counts where some are.
    pub(super) fn are_those_of(&self, opens: i64, is_busy: bool) -> bool {
        let Some(at) = self.at else { return true };
        let due = if self.ready { opens } else { self.first_due.map_or(0, in_millis).max(opens) };
        let is_looked_at = self.wake_at.is_some_and(|wake| wake <= at);
        at == due || (at > due && is_busy) || (at < due && is_looked_at)
    }
}

fn in_millis(second: i64) -> i64 {
    second.saturating_mul(1000)
}
