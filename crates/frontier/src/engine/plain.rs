//! Plain collections: clients decide, and everything is kept as it came.

use std::sync::Arc;

use forager_core::url::MAX_URL_BYTES;

use super::discover::{Finds, fresh};
use super::{NewEntry, Sought, Tx};
use crate::catalog::CollectionRow;
use crate::entry::{EntryId, How, Origin, Record, Standing, State};
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Action, Discovery, Item, Link, Word, derived_key};

/// The longest queue key, in the units of UTF-16 by which clients count.
const MAX_KEY_UNITS: usize = 255;

/// Takes in what was found on a page: what is new is due when it is said to be, or at once.
pub(super) fn take_in<T: Tx>(
    tx: &mut T,
    finds: Finds<'_>,
    now: Moment,
    answers: &mut Vec<Discovery>,
) -> Result<()> {
    take(tx, finds.collection, finds.links, now, answers)
}

/// Takes in what a client says.
pub(super) fn put<T: Tx>(
    tx: &mut T,
    collection: &CollectionRow,
    items: &[Item],
    now: Moment,
    answers: &mut Vec<Discovery>,
) -> Result<()> {
    take(tx, collection, items, now, answers)
}

/// What is said of a URL.
#[derive(Clone, Copy)]
struct Told<'a> {
    url: &'a str,
    key: &'a str,
    how: How,
    /// When it is due, if it was only found.
    due: Option<Moment>,
    word: Word,
    metadata: Option<&'a str>,
}

impl<'a> From<&'a Link> for Told<'a> {
    fn from(Link { url, key, how, due, metadata, .. }: &'a Link) -> Self {
        let how = if *how == How::Seed { How::Seed } else { How::Other };
        let (key, metadata) = (key_of(url, key.as_deref()), metadata.as_deref());
        Self { url, key, how, due: *due, word: Word::Found, metadata }
    }
}

impl<'a> From<&'a Item> for Told<'a> {
    fn from(Item { url, key, word, metadata, .. }: &'a Item) -> Self {
        let (key, metadata) = (key_of(url, key.as_deref()), metadata.as_deref());
        Self { url, key, how: How::Other, due: None, word: *word, metadata }
    }
}

fn take<'a, T: Tx, S>(
    tx: &mut T,
    collection: &CollectionRow,
    said: &'a [S],
    now: Moment,
    answers: &mut Vec<Discovery>,
) -> Result<()>
where
    Told<'a>: From<&'a S>,
{
    let rules = Rules::new();
    for said in said.chunks(T::TOGETHER) {
        let told: Vec<Told<'_>> = said.iter().map(Told::from).collect();
        let wanted: Vec<(&str, &str)> = told.iter().map(|told| (told.key, told.url)).collect();
        let Some(sought) = tx.seek(collection.number, &wanted) else { return Ok(()) };
        let mut done = Vec::with_capacity(told.len());
        for (told, sought) in told.iter().zip(&sought) {
            done.push(match problem(told) {
                Some(problem) => Err(problem),
                None => Ok(take_one(tx, collection, told, sought, now)?),
            });
        }
        // Not one by one: who shares words has to wait until all that was written before has gone to memory.
        answers.extend(done.into_iter().map(|done| rules.answer(done)));
    }
    Ok(())
}

/// Why an item cannot be kept; none if it can.
pub(crate) fn problem_of(item: &Item) -> Option<&'static str> {
    problem(&Told::from(item))
}

/// Why a URL cannot be kept; none if it can.
fn problem(told: &Told<'_>) -> Option<&'static str> {
    if told.url.is_empty() || told.key.is_empty() {
        return Some("no queue key is given, and none can be derived");
    }
    // Databases keep no text with a zero in it.
    if told.url.contains('\0') || told.key.contains('\0') {
        return Some("the URL or its queue key has a zero character");
    }
    let is_long = told.key.len() > MAX_KEY_UNITS && told.key.encode_utf16().count() > MAX_KEY_UNITS;
    (is_long || told.url.len() > MAX_URL_BYTES).then_some("the URL or its queue key is too long")
}

fn take_one<T: Tx>(
    tx: &mut T,
    collection: &CollectionRow,
    told: &Told<'_>,
    sought: &Sought,
    now: Moment,
) -> Result<Action> {
    let made: Sought;
    let sought = if sought.queue.is_some() {
        sought
    } else {
        // One that came before may have made it.
        let queue = tx.find_queue(collection.number, told.key);
        let queue = queue.unwrap_or_else(|| tx.queue(collection.number, told.key, true));
        made = tx.sought_in(queue, told.url);
        &made
    };
    match tx.find_sought(sought, told.url)? {
        Some(_) if told.word == Word::Found => Ok(Action::Kept),
        Some(entry) => change(tx, entry, told, now),
        None => {
            add(tx, collection, sought, told, now);
            Ok(Action::Added)
        }
    }
}

fn add<T: Tx>(tx: &mut T, collection: &CollectionRow, sought: &Sought, told: &Told<'_>, now: Moment) {
    let Some(queue) = sought.queue else { return };
    let (state, due) = standing_of(told, now);
    let origin = Origin {
        created: Moment::from_second(now.second()),
        how: told.how,
        metadata: told.metadata.map(Into::into),
        ..Origin::default()
    };
    let standing = Standing { by_due: true, state, ..fresh(queue, None, collection.harvest, due) };
    let record = Record::new(origin, None);
    tx.insert_sought(NewEntry { identity: told.url, url: told.url, standing, record }, sought);
    count_done(tx, &standing, State::Queued);
}

/// Does with an entry what the client says. Who has it on lease need not report any more.
fn change<T: Tx>(tx: &mut T, entry: EntryId, told: &Told<'_>, now: Moment) -> Result<Action> {
    let Some(before) = tx.standing(entry) else { return Ok(Action::Kept) };
    let was_fetched = match tx.lease_of(entry) {
        Some(lease) => {
            tx.end_lease(lease.token);
            true
        }
        None => false,
    };
    let (state, due) = standing_of(told, now);
    let last_fetch = if was_fetched { Some(Moment::from_second(now.second())) } else { before.last_fetch };
    let standing = Standing { due, last_fetch, state, ..before };
    tx.set_standing(entry, standing);
    count_done(tx, &standing, before.state);
    let (_, mut record) = tx.load(entry)?;
    if record.origin.metadata.as_deref() != told.metadata || record.abandoned > 0 {
        record.origin.metadata = told.metadata.map(Into::into);
        record.abandoned = 0;
        tx.set_record(entry, record);
    }
    Ok(Action::Improved)
}

/// Whether an entry waits after what the client says, and when it is due.
fn standing_of(told: &Told<'_>, now: Moment) -> (State, Moment) {
    match told.word {
        Word::Found => (State::Queued, Moment::due(told.due.unwrap_or(now).timestamp(), now)),
        Word::Due(due) => (State::Queued, Moment::due(due.timestamp(), now)),
        Word::Done => (State::Done, Moment::from_second(now.second())),
    }
}

/// Keeps count at the host of how many of its entries are done, by which a limit of its fetches goes.
pub(super) fn count_done<T: Tx>(tx: &mut T, standing: &Standing, before: State) {
    let is_through = |state| matches!(state, State::Done | State::Failed);
    if is_through(standing.state) == is_through(before) {
        return;
    }
    let (_, id) = tx.queue_parts(standing.queue);
    let mut host = tx.host(id).clone();
    host.fetched = if is_through(before) { host.fetched.saturating_sub(1) } else { host.fetched + 1 };
    tx.set_host(id, host);
}

/// Counts an entry out that is removed.
pub(super) fn count_out<T: Tx>(tx: &mut T, standing: &Standing) {
    count_done(tx, &Standing { state: State::Queued, ..*standing }, standing.state);
}

/// The words for what became of a URL, each made once for a call.
struct Rules {
    new: Arc<str>,
    known: Arc<str>,
    told: Arc<str>,
}

impl Rules {
    fn new() -> Self {
        Self { new: "new".into(), known: "known".into(), told: "as the client says".into() }
    }

    fn answer(&self, done: Result<Action, &'static str>) -> Discovery {
        let action = match done {
            Ok(action) => action,
            Err(problem) => return Discovery { action: Action::Invalid, rule: problem.into() },
        };
        let rule = match action {
            Action::Added => &self.new,
            Action::Improved => &self.told,
            _ => &self.known,
        };
        Discovery { action, rule: rule.clone() }
    }
}

/// The queue key of a URL: what the client gives, or what clients expect of it.
fn key_of<'a>(url: &'a str, given: Option<&'a str>) -> &'a str {
    given.filter(|key| !key.is_empty()).unwrap_or_else(|| derived_key(url))
}
