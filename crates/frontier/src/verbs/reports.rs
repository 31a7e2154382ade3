//! What came of fetches, and what is written down of them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use forager_core::time::Interval;
use serde::{Deserialize, Serialize};

use super::finds::{Discovery, Link};
use super::leases::Terms;
use crate::entry::{Token, Validators};
use crate::moment::Moment;

/// What came of a fetch.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Report {
    /// The lease.
    pub token: u64,
    /// The HTTP status.
    pub status: Option<u16>,
    /// What went wrong, if there was no answer.
    pub error: Option<FetchError>,
    /// What the content is known by.
    pub fingerprint: Option<String>,
    /// Whether the content changed, where the worker knows; the fingerprint tells otherwise.
    pub changed: Option<bool>,
    /// How long the server asked to be left alone; with [`FetchError::Unreachable`], when robots.txt is asked for again.
    pub retry_after: Option<Interval>,
    /// How many bytes were read.
    pub bytes: u64,
    /// What the server knows this version by.
    pub validators: Validators,
    /// What was found on the page: taken in together with the report, or not at all.
    pub links: Vec<Link>,
    /// What the page says, to tell later what has changed; kept under [`text_key`] as [`kept_text`] has it.
    pub text: Option<String>,
    /// What has changed.
    pub difference: Difference,
    /// When the request was sent, and by which rule of robots.txt; for the log of fetches.
    pub fetch: Option<Sent>,
}

impl Report {
    /// Whether a part of the page came, and no more.
    pub fn came_in_part(&self) -> bool {
        match self.error {
            Some(FetchError::Damaged) => true,
            Some(FetchError::Timeout) => self.status.is_some(),
            _ => false,
        }
    }
}

/// Lines that a page has and had not, and the other way round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Difference {
    /// Lines that are new.
    pub added: Vec<String>,
    /// Lines that are gone.
    pub removed: Vec<String>,
}

impl Difference {
    /// The same, with a line before all others for a page that is gone, or there again.
    #[must_use]
    pub fn with(mut self, presence: Option<Presence>) -> Self {
        if let Some(presence) = presence {
            self.added.insert(0, presence.to_string());
        }
        self
    }
}

/// Whether a page is there, where that is news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    /// It was there, and is gone: 404 or 410.
    Gone,
    /// It was gone, and is there again.
    Back,
}

impl fmt::Display for Presence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "the page is gone",
            Self::Back => "the page is there again",
        })
    }
}

/// A request that was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Sent {
    /// When.
    pub at: Moment,
    /// When its answer was whole, or given up; when it is reported, if that is not told.
    pub ended: Option<Moment>,
    /// What robots.txt says of the URL.
    pub robots: String,
    /// What it was sent by, for the log; if that is not told, what holds when it is reported.
    #[serde(skip)]
    pub terms: Option<Terms>,
}

/// The most bytes of a note, and of the text of a page: twice the largest robots.txt.
pub const MAX_NOTE_BYTES: usize = 1 << 20;

/// The key under which the text of a page is kept.
pub fn text_key(collection: &str, url: &str) -> String {
    format!("{TEXT}{collection} {url}")
}

/// What the keys of all texts begin with.
pub(crate) const TEXT: &str = "text ";

/// The collection and the page whose text is kept under a key. A name may have spaces in it; a URL has none.
pub(crate) fn page_of_text(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(TEXT)?.rsplit_once(' ')
}

/// A text as it is kept. One that is too long ends where a line does, with a line more that says so; whoever compares
/// with it has to cut likewise.
pub fn kept_text(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_NOTE_BYTES {
        return Cow::Borrowed(text);
    }
    let end = format!("\n[cut off here: the text has {} bytes]", text.len());
    let most = &text[..text.floor_char_boundary(MAX_NOTE_BYTES - end.len())];
    let lines = most.rsplit_once('\n').map_or(most, |(lines, _)| lines);
    Cow::Owned(format!("{lines}{end}"))
}

/// Something to write down.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// A value under a key, of [`MAX_NOTE_BYTES`] at most; none forgets it.
    Keep(String, Option<Vec<u8>>),
    /// What the robots.txt of a host asks for between fetches.
    CrawlDelay(String, Option<Interval>),
    /// A fetch that was made for no entry. Its limits are filled in, unless they are told; a pause that the host asked for is
    /// kept.
    Fetch(FetchRow),
}

/// A fetch that was made, and the rules it was made by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FetchRow {
    /// Its position in the log; fetches from the next one on come after it.
    pub position: u64,
    /// When the request was sent.
    pub started: Moment,
    /// When its answer was whole, or given up.
    pub ended: Moment,
    /// The collection it was made for.
    pub collection: String,
    /// The host.
    pub host: String,
    /// What was requested.
    pub url: String,
    /// What came of it: a status, or the kind of error.
    pub result: String,
    /// How many bytes were read.
    pub bytes: u64,
    /// What robots.txt says of the URL.
    pub robots: String,
    /// The least milliseconds between two fetches from this host, at the time.
    pub least_gap: u64,
    /// How many fetches from this host could be under way, at the time. In a note, 0 if it does not tell by which limits it was
    /// made.
    pub most_in_flight: u32,
    /// Until when the host is left alone after this one, because it failed or asked for a pause. In a note, until when it
    /// asked for at least: the queue adds what is due after a refusal.
    pub back_off_until: Option<Moment>,
}

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FetchError {
    /// It took too long. If there is a status, a part of it came; its links count when it is given up.
    Timeout,
    /// The host could not be reached, or broke off.
    Network,
    /// What came is damaged: its packing is broken, or it is not as long as it says. That is the page's fault, not its
    /// host's; its links count when it is given up.
    Damaged,
    /// robots.txt forbids it, so that it was not asked for.
    Robots,
    /// Its robots.txt cannot be had, so that it was not asked for.
    Unreachable,
    /// Its host is where no connection may lead, so that it was not asked for.
    Address,
    /// It cannot be had: too large, wrong type.
    Refused,
}

/// What became of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Completed {
    /// The lease.
    pub token: Token,
    /// What was done.
    pub outcome: Outcome,
    /// Whether the page had changed.
    pub changed: bool,
    /// Whether it is gone since the last time, or there again; that is a change too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence: Option<Presence>,
    /// When it is due again.
    pub due: Option<Moment>,
    /// Why.
    pub rule: Arc<str>,
    /// What became of what was found on the page, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Discovery>,
}

/// What became of an entry after its fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is in the queue again.
    Again,
    /// It was fetched as often as asked.
    Done,
    /// It could not be fetched, and is given up.
    Failed,
    /// It is out of scope now.
    Removed,
    /// The lease had run out, or never was; nothing was done.
    Refused,
}
