//! What happened, as lines of an export: the logs of fetches and events.
//!
//! They stand at the end of a file, once for all its collections, so that they keep their order.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem;

use forager_core::url::FetchUrl;
use forager_crawl::robots::{CameTo, Label};
use forager_frontier::verbs::{EventRow, FetchRow, Image, Logged};
use serde::{Deserialize, Serialize};

use super::kept::Of;
use crate::input::MAX_LINE_BYTES;
use crate::record::BadLine;
use crate::store::{self, Store};

/// Rows that are read or written at a time.
const PAGE: usize = 1000;

/// How many bytes of rows are written at a time, if those are fewer.
const MOST_BYTES: usize = 4 << 20;

/// How many bytes of a row stand on one line: those of a text, written as a part of one, take six times as many at most.
const PART: usize = MAX_LINE_BYTES / 8;

/// Has what nobody has read yet numbered, which is a write where the queue is in a database: whoever may not write there learns of
/// it before anything else is read.
pub(super) fn number(store: &Store) -> anyhow::Result<()> {
    store::ask(store.frontier.fetches(0, 1))?;
    store::ask(store.frontier.events(0, 1))?;
    Ok(())
}

/// Hands on all fetches of the log.
pub(super) fn for_each_fetch(
    store: &Store,
    mut take: impl FnMut(FetchRow) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut from = 0;
    loop {
        let rows = store::ask(store.frontier.fetches(from, PAGE))?;
        let Some(last) = rows.last() else { return Ok(()) };
        from = last.position + 1;
        rows.into_iter().try_for_each(&mut take)?;
    }
}

/// Hands on all events of the log.
pub(super) fn for_each_event(
    store: &Store,
    mut take: impl FnMut(EventRow) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut from = 0;
    loop {
        let rows = store::ask(store.frontier.events(from, PAGE))?;
        let Some(last) = rows.last() else { return Ok(()) };
        from = last.position + 1;
        rows.into_iter().try_for_each(&mut take)?;
    }
}

/// A line: a row, or a part of one that is too long for a line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Line {
    Log(Logged),
    LogPart {
        text: String,
        /// Whether the next line goes on with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        more: bool,
    },
}

/// A row as lines that are not too long.
fn lines(row: Logged) -> anyhow::Result<Vec<Line>> {
    let text = serde_json::to_string(&row)?;
    if text.len() <= PART {
        return Ok(vec![Line::Log(row)]);
    }
    let (mut rest, mut lines) = (text.as_str(), Vec::new());
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART));
        lines.push(Line::LogPart { text: part.to_owned(), more: !after.is_empty() });
        rest = after;
    }
    Ok(lines)
}

/// Whose history is exported.
#[derive(Default)]
pub(super) struct Owners {
    collections: HashSet<String>,
    /// A request for robots.txt is made for a host, and for no collection.
    hosts: HashSet<String>,
}

impl Owners {
    /// Adds a collection.
    pub(super) fn add(&mut self, collection: &str) {
        self.collections.insert(collection.to_owned());
    }

    /// Adds the hosts of entries.
    pub(super) fn add_hosts(&mut self, entries: &[Image]) {
        self.hosts.extend(entries.iter().map(|entry| entry.key.clone()));
    }

    /// Whether a fetch was made for one of the collections, or for no collection and one of their hosts.
    fn have(&self, fetch: &FetchRow) -> bool {
        if !fetch.collection.is_empty() {
            return self.collections.contains(&fetch.collection);
        }
        let site = Label::of(&fetch.robots).and_then(|label| FetchUrl::parse(label.origin).ok());
        self.hosts.contains(&fetch.host) || site.is_some_and(|site| self.hosts.contains(site.host()))
    }

    /// Hands on, in their order, what happened to them, and after it the names of what it refers to.
    pub(super) fn write(
        mut self,
        store: &Store,
        mut write: impl FnMut(Written<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        // Pages that are not in the queue any more were fetched too, and robots.txt came before them.
        for_each_fetch(store, |row| {
            if self.collections.contains(&row.collection) {
                self.hosts.insert(row.host);
            }
            Ok(())
        })?;
        let mut told = HashSet::new();
        for_each_fetch(store, |row| {
            if !self.have(&row) {
                return Ok(());
            }
            let evidence = evidence(&row).filter(|key| told.insert((*key).to_owned())).map(str::to_owned);
            lines(Logged::Fetch(row))?.iter().try_for_each(|line| write(Written::Line(line)))?;
            evidence.map_or(Ok(()), |key| write(Written::Evidence(Of::Evidence(key))))
        })?;
        for_each_event(store, |row| {
            if !self.collections.contains(&row.collection) {
                return Ok(());
            }
            lines(Logged::Event(row))?.iter().try_for_each(|line| write(Written::Line(line)))
        })
    }
}

/// Something that is to be written.
pub(super) enum Written<'a> {
    Line(&'a Line),
    /// What a fetch refers to.
    Evidence(Of),
}

/// The key of the robots.txt that came of a fetch.
fn evidence(fetch: &FetchRow) -> Option<&str> {
    match Label::of(&fetch.robots)?.came_to? {
        CameTo::File(key) => Some(key),
        CameTo::Nothing(_) => None,
    }
}

/// What an import has read of the logs and not written down yet.
#[derive(Default)]
pub(super) struct Waiting {
    /// The beginning of a row.
    part: String,
    rows: Vec<Logged>,
    bytes: usize,
    /// How often each row is in the logs here, by its hash, as far as it has not come yet; none before they are read.
    known: Option<HashMap<u64, u32>>,
}

impl Waiting {
    /// Takes in a line; gives the row that is complete with it.
    pub(super) fn read(&mut self, line: Line) -> Result<Option<Logged>, BadLine> {
        let begun = mem::take(&mut self.part);
        match line {
            Line::Log(row) => Ok(Some(row)),
            Line::LogPart { text, .. } if begun.len() + text.len() > MOST_BYTES => {
                Err(BadLine::whole(format_args!("nothing of more than {MOST_BYTES} bytes is ever logged")))
            }
            Line::LogPart { text, more: true } => {
                self.part = begun + &text;
                Ok(None)
            }
            Line::LogPart { text, more: false } => {
                let row = serde_json::from_str(&(begun + &text));
                row.map(Some).map_err(|cause| BadLine::whole(format_args!("not the end of a row: {cause}")))
            }
        }
    }

    /// Has a row written, unless it is there.
    pub(super) fn add(&mut self, row: Logged, store: &Store) -> anyhow::Result<()> {
        let known = match &mut self.known {
            Some(known) => known,
            none => none.insert(known(store)?),
        };
        let (hash, bytes) = look_of(&row)?;
        if let Some(count) = known.get_mut(&hash).filter(|count| **count > 0) {
            *count -= 1;
            return Ok(());
        }
        self.rows.push(row);
        self.bytes += bytes;
        if self.rows.len() >= PAGE || self.bytes >= MOST_BYTES { self.write(store) } else { Ok(()) }
    }

    /// Whether there is something to write.
    pub(super) fn is_any(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Writes what waits.
    pub(super) fn write(&mut self, store: &Store) -> anyhow::Result<()> {
        self.bytes = 0;
        store::ask(store.frontier.append(&mem::take(&mut self.rows), store.now()))
    }
}

/// The rows of the logs, by their hashes, and how often each is there.
fn known(store: &Store) -> anyhow::Result<HashMap<u64, u32>> {
    let mut known = HashMap::new();
    let mut count = |row: Logged| {
        *known.entry(look_of(&row)?.0).or_default() += 1;
        Ok(())
    };
    for_each_fetch(store, |row| count(Logged::Fetch(row)))?;
    for_each_event(store, |row| count(Logged::Event(row)))?;
    Ok(known)
}

/// What a row is known by, and how long it is. A collection that is taken in under another name has not fetched anything
/// once more, so that its name does not count; nor does the position, which is that of one log.
fn look_of(row: &Logged) -> anyhow::Result<(u64, usize)> {
    let text = serde_json::to_string(&match row.clone() {
        Logged::Fetch(row) => Logged::Fetch(FetchRow { position: 0, collection: String::new(), ..row }),
        Logged::Event(row) => Logged::Event(EventRow { position: 0, collection: String::new(), ..row }),
    })?;
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Ok((hasher.finish(), text.len()))
}
