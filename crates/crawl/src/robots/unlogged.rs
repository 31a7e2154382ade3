//! Requests for robots.txt that were sent, and are not in the log yet.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use forager_frontier::Moment;
use forager_frontier::verbs::FetchRow;

/// The requests that are not in the log yet, by the site whose robots.txt they are for. What robots.txt comes to is written down
/// with the last of them; whoever is stopped before that has asked all the same.
#[derive(Default)]
pub(super) struct Unlogged(Mutex<HashMap<String, Vec<FetchRow>>>);

impl Unlogged {
    fn rows(&self) -> MutexGuard<'_, HashMap<String, Vec<FetchRow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request is sent now.
    pub(super) fn begin(&self, origin: &str, row: FetchRow) {
        self.rows().entry(origin.to_owned()).or_default().push(row);
    }

    /// The last request has ended like this; none if nobody was asked after all.
    pub(super) fn end(&self, origin: &str, row: Option<FetchRow>) {
        if let Some(rows) = self.rows().get_mut(origin) {
            rows.pop();
            rows.extend(row);
        }
    }

    /// The requests for the robots.txt of a site.
    pub(super) fn of(&self, origin: &str) -> Vec<FetchRow> {
        self.rows().get(origin).cloned().unwrap_or_default()
    }

    /// They are written down now.
    pub(super) fn forget(&self, origin: &str) {
        self.rows().remove(origin);
    }

    /// All that will not be written down by those who sent it. What had no answer has ended by now.
    pub(super) fn take(&self, now: Moment) -> Vec<FetchRow> {
        let rows = std::mem::take(&mut *self.rows()).into_values().flatten();
        rows.map(|row| FetchRow { ended: if row.ended < row.started { now } else { row.ended }, ..row })
            .collect()
    }
}
