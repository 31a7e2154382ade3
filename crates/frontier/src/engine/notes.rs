//! What is written down besides entries: values under keys, what hosts ask for, and fetches.

use super::{Tx, settle};
use crate::entry::HostId;
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{FetchRow, Note};

/// Writes down what was learned.
pub(crate) fn note<T: Tx>(tx: &mut T, notes: &[Note], now: Moment) -> Result<()> {
    settle(tx, now)?;
    for note in notes {
        match note {
            Note::Keep(key, value) => tx.set_note(key, value.clone()),
            Note::CrawlDelay(host, delay) => {
                let id = tx.host_of(None, host);
                let mut host = tx.host(id).clone();
                host.crawl_delay = *delay;
                tx.set_host(id, host);
            }
            Note::Fetch(fetch) => {
                let id = tx.host_of(None, &fetch.host);
                log_fetch(tx, id, false, fetch.clone());
            }
        }
    }
    Ok(())
}

/// Appends a fetch to the log, with the limits that its host has now.
pub(super) fn log_fetch<T: Tx>(tx: &mut T, host: HostId, is_plain: bool, fetch: FetchRow) {
    let (state, politeness) = (tx.host(host), tx.settings().politeness);
    let least_gap = state.shortest_delay(&politeness, is_plain);
    let most_in_flight = state.in_flight_limit(&politeness, is_plain);
    tx.log_fetch(FetchRow { least_gap, most_in_flight, ..fetch });
}
