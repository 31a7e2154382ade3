//! What is kept beside entries, as lines of an export: the last texts of pages, and robots.txt as hosts gave it.

use std::collections::HashSet;
use std::mem;

use forager_core::url::FetchUrl;
use forager_crawl::robots::{delays_key, file_key, note_key, origin};
use forager_frontier::verbs::{Image, MAX_NOTE_BYTES, Note, text_key};
use serde::{Deserialize, Serialize};

use crate::record::BadLine;
use crate::store::{self, Store};

/// How many bytes stand on one line: an import reads lines of a megabyte, and one byte can take six to write.
const PART: usize = 100_000;

/// How many are read or written at a time; each may have a megabyte.
const AT_A_TIME: usize = 16;

/// What is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Of {
    /// What a page of the collection says.
    Text(String),
    /// The robots.txt of a scheme, host and port.
    Robots(String),
    /// What all robots.txt of a host ask for between fetches.
    CrawlDelays(String),
    /// A text of robots.txt that the log of fetches refers to, by its key.
    Evidence(String),
}

impl Of {
    /// The key that it is kept under, in a collection.
    fn key(&self, collection: &str) -> String {
        match self {
            Self::Text(url) => text_key(collection, url),
            Self::Robots(origin) => note_key(origin),
            Self::CrawlDelays(host) => delays_key(host),
            Self::Evidence(key) => key.clone(),
        }
    }

    /// A value as a line has it. What is no text has the character of its number for each byte.
    fn written(&self, value: &[u8]) -> String {
        match self {
            Self::Text(_) => String::from_utf8_lossy(value).into_owned(),
            Self::Robots(_) | Self::CrawlDelays(_) | Self::Evidence(_) => {
                value.iter().copied().map(char::from).collect()
            }
        }
    }

    /// A part of a value as it is kept.
    fn read(&self, value: &str) -> Option<Vec<u8>> {
        match self {
            Self::Text(_) => Some(value.as_bytes().to_vec()),
            Self::Robots(_) | Self::CrawlDelays(_) | Self::Evidence(_) => {
                value.chars().map(|letter| u8::try_from(letter).ok()).collect()
            }
        }
    }

    /// Whether there can be such a page or host, or such a text.
    fn is_sound(&self, value: &[u8]) -> bool {
        let url = match self {
            Self::Text(url) => url.clone(),
            Self::Robots(origin) => format!("{origin}/"),
            Self::CrawlDelays(host) => format!("http://{host}/"),
            Self::Evidence(key) => return *key == file_key(value),
        };
        FetchUrl::parse(&url).is_ok()
    }
}

/// A line: a value, or a part of one that the next line goes on with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(rename = "kept")]
    of: Of,
    value: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

impl Kept {
    /// Whether it belongs to the log of fetches, and to no collection.
    pub(super) fn is_evidence(&self) -> bool {
        matches!(self.of, Of::Evidence(_))
    }
}

/// Hands on, line by line, what is kept of these.
pub(super) fn write_all(
    store: &Store,
    collection: &str,
    all: &[Of],
    mut write: impl FnMut(&Kept) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for some in all.chunks(AT_A_TIME) {
        let keys: Vec<String> = some.iter().map(|of| of.key(collection)).collect();
        let values = store::ask(store.frontier.noted(&keys))?;
        for (of, value) in some.iter().zip(values) {
            let Some(value) = value else { continue };
            lines(of, &of.written(&value)).try_for_each(|line| write(&line))?;
        }
    }
    Ok(())
}

/// What was written so far of hosts: each is written with its first page.
#[derive(Default)]
pub(super) struct Written {
    hosts: HashSet<String>,
}

impl Written {
    /// What may be kept of these entries, and was not written yet.
    pub(super) fn of_entries(&mut self, entries: &[Image]) -> Vec<Of> {
        entries.iter().flat_map(|entry| self.about(entry)).collect()
    }

    /// What may be kept of an entry, and of its host if that is the first one of it.
    fn about(&mut self, entry: &Image) -> Vec<Of> {
        let text = entry.last_fetch.map(|_| Of::Text(entry.url.clone()));
        let mut about: Vec<Of> = text.into_iter().collect();
        if let Ok(url) = FetchUrl::parse(&entry.url) {
            let (origin, host) = (origin(&url), url.host_key().to_owned());
            about.extend(self.hosts.insert(origin.clone()).then_some(Of::Robots(origin)));
            about.extend(self.hosts.insert(host.clone()).then_some(Of::CrawlDelays(host)));
        }
        about
    }
}

/// A value as lines that are not too long.
fn lines(of: &Of, value: &str) -> impl Iterator<Item = Kept> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let all = rest.take()?;
        let (part, after) = all.split_at(all.floor_char_boundary(PART));
        rest = Some(after).filter(|after| !after.is_empty());
        Some(Kept { of: of.clone(), value: part.to_owned(), more: rest.is_some() })
    })
}

const NEVER_KEPT: &str = "nothing like this is ever kept";

/// What an import has read and not written down yet.
#[derive(Default)]
pub(super) struct Waiting {
    /// The beginning of a value.
    part: Option<(Of, Vec<u8>)>,
    notes: Vec<(String, Vec<u8>)>,
}

impl Waiting {
    /// Takes in a line of a collection.
    pub(super) fn take(&mut self, line: Kept, collection: &str) -> Result<(), BadLine> {
        let Kept { of: kept, value, more } = line;
        let begun = self.part.take().filter(|(of, _)| *of == kept);
        let Some(bytes) = kept.read(&value) else { return Err(BadLine::whole(NEVER_KEPT)) };
        let mut all = begun.map(|(_, begun)| begun).unwrap_or_default();
        all.extend(bytes);
        if all.len() > MAX_NOTE_BYTES {
            return Err(BadLine::whole(format_args!("more than {MAX_NOTE_BYTES} bytes are never kept")));
        }
        if more {
            self.part = Some((kept, all));
        } else if !kept.is_sound(&all) {
            return Err(BadLine::whole(NEVER_KEPT));
        } else {
            self.notes.push((kept.key(collection), all));
        }
        Ok(())
    }

    /// Whether there is something to write.
    pub(super) fn is_any(&self) -> bool {
        !self.notes.is_empty()
    }

    /// Whether there is enough to write.
    pub(super) fn is_enough(&self) -> bool {
        self.notes.len() >= AT_A_TIME
    }

    /// Writes down what is not there yet: what is there may be newer.
    pub(super) fn write(&mut self, store: &Store) -> anyhow::Result<()> {
        let notes = mem::take(&mut self.notes);
        let keys: Vec<String> = notes.iter().map(|(key, _)| key.clone()).collect();
        let known = store::ask(store.frontier.noted(&keys))?;
        let new = notes.into_iter().zip(known).filter(|(_, known)| known.is_none());
        let new: Vec<Note> = new.map(|((key, value), _)| Note::Keep(key, Some(value))).collect();
        if !new.is_empty() {
            store::ask(store.frontier.note(&new, store.now()))?;
        }
        Ok(())
    }
}
