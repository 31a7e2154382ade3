//! What is written down besides entries: values under keys, what hosts ask for, and fetches.

use forager_core::time::Interval;

use super::complete::back_off;
use super::hosts::waits;
use super::{Tx, settle};
use crate::catalog::CollectionRow;
use crate::entry::{HostId, Record};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::moment::Moment;
use crate::verbs::{FetchRow, MAX_NOTE_BYTES, Note, Terms, kept_text, page_of_text, text_key};

/// The longest key of a note, in bytes: what every store can look up.
const MAX_KEY_BYTES: usize = 60_000;

fn can_be_kept(key: &str) -> bool {
    (1..=MAX_KEY_BYTES).contains(&key.len())
}

/// Writes down what was learned.
pub(crate) fn note<T: Tx>(tx: &mut T, notes: &[Note], now: Moment) -> Result<()> {
    settle(tx, now)?;
    for note in notes {
        match note {
            Note::Keep(key, value) => {
                check(key, value.as_deref())?;
                tx.set_note(key, value.clone());
            }
            Note::CrawlDelay(host, delay) => slow_down(tx, host, *delay, now),
            Note::Fetch(fetch) => {
                let id = tx.host_of(None, &fetch.host);
                let fetch = leave_alone(tx, id, fetch, now);
                log_fetch(tx, id, false, fetch);
            }
        }
    }
    Ok(())
}

/// Refuses what is too large to be kept.
fn check(key: &str, value: Option<&[u8]>) -> Result<()> {
    let bytes = value.map_or(0, <[u8]>::len);
    let problem = match can_be_kept(key) {
        true if bytes <= MAX_NOTE_BYTES => return Ok(()),
        true => format!("the note {key:?} has {bytes} bytes, and {MAX_NOTE_BYTES} at most are kept"),
        false => format!("the key of a note has {} bytes, not 1 to {MAX_KEY_BYTES}", key.len()),
    };
    Err(Error::Configuration(problem))
}

/// What was written down under these keys.
pub(crate) fn noted<T: Tx>(tx: &T, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
    keys.iter().map(|key| if can_be_kept(key) { tx.noted(key) } else { Ok(None) }).collect()
}

/// Leaves a host alone that refused, as after a page that it refuses.
fn leave_alone<T: Tx>(tx: &mut T, id: HostId, fetch: &FetchRow, now: Moment) -> FetchRow {
    let politeness = tx.settings().politeness;
    let back_off_until = fetch.back_off_until.map(|asked| {
        let mut host = tx.host(id).clone();
        let until = back_off(&mut host, tx.host_key(id).0, &politeness, (asked, fetch.started, now));
        tx.set_host(id, host);
        until
    });
    FetchRow { back_off_until, ..fetch.clone() }
}

/// Takes over what the robots.txt of a host asks for between fetches.
fn slow_down<T: Tx>(tx: &mut T, host: &str, delay: Option<Interval>, now: Moment) {
    let id = tx.host_of(None, host);
    let mut host = tx.host(id).clone();
    let is_more = delay > host.crawl_delay;
    host.crawl_delay = delay;
    if is_more && host.served > 0 {
        // What it handed out last is fetched about now: the wait after that is the first to be longer.
        let wait = host.shortest_delay(tx.settings().politeness.waits());
        host.next_allowed = host.next_allowed.max(now.after_millis(wait));
    }
    tx.set_host(id, host);
}

/// Appends a fetch to the log, with the limits that its host has now if it does not tell by which it was made. The wait of the
/// host, as it is now, counts from when the request was sent, which is later than the page was handed out; no other process
/// could know.
pub(super) fn log_fetch<T: Tx>(tx: &mut T, host: HostId, is_plain: bool, fetch: FetchRow) {
    let (state, politeness) = (tx.host(host), tx.settings().politeness);
    let Terms { least_gap, most_in_flight } = state.terms(waits(tx, is_plain), &politeness, is_plain);
    // Nothing is sent after its answer, whatever a report says.
    let next_allowed = fetch.started.min(fetch.ended).after_millis(least_gap);
    if !is_plain && next_allowed > state.next_allowed {
        let state = Host { next_allowed, ..state.clone() };
        tx.set_host(host, state);
    }
    // Whoever may have nothing under way sends nothing.
    let is_told = fetch.most_in_flight > 0;
    tx.log_fetch(if is_told { fetch } else { FetchRow { least_gap, most_in_flight, ..fetch } });
}

/// Keeps what a page says.
pub(super) fn keep_text<T: Tx>(tx: &mut T, collection: &CollectionRow, url: &str, text: &str) {
    let key = text_key(&collection.spec.id, url);
    if can_be_kept(&key) {
        tx.set_note(&key, Some(kept_text(text).into_owned().into_bytes()));
    }
}

/// Forgets what the pages of a collection said.
pub(super) fn forget_texts<T: Tx>(tx: &mut T, collection: &CollectionRow) -> Result<()> {
    let name = collection.spec.id.as_str();
    for key in tx.note_keys(&text_key(name, ""))? {
        // The name of another collection may go on from there.
        if page_of_text(&key).is_some_and(|(of, _)| of == name) {
            tx.set_note(&key, None);
        }
    }
    Ok(())
}

/// Forgets what a page said, if it ever said anything.
pub(super) fn forget_text<T: Tx>(tx: &mut T, collection: &CollectionRow, url: &str, record: &Record) {
    let key = text_key(&collection.spec.id, url);
    if record.scans > 0 && can_be_kept(&key) {
        tx.set_note(&key, None);
    }
}
