//! What a crawl tells of itself while it runs.

use std::fmt;
use std::sync::Arc;

use forager_frontier::Moment;
use forager_frontier::verbs::{Action, Difference, Nothing, Outcome};
use jiff::Timestamp;
use serde::Serialize;

use crate::trail::Trail;

/// One fetch, for people and programs: a line of the crawl's output.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageLine {
    /// When the request was sent.
    pub at: Timestamp,
    /// What was requested.
    pub url: String,
    /// The HTTP status; none if there was no answer.
    pub status: Option<u16>,
    /// Why it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_fetched: Option<NotFetched>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The collection.
    pub collection: String,
    /// The seed that owns it.
    pub seed: Option<String>,
    /// How far from the seed it was found.
    pub depth: u32,
    /// Its priority.
    pub priority: f64,
    /// The title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it asks of robots, by `X-Robots-Tag` or `meta robots`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<String>,
    /// The media type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Bytes of the body, decoded.
    pub bytes: u64,
    /// Bytes as they came over the wire.
    pub wire_bytes: u64,
    /// Milliseconds from the request to the last byte.
    pub took: u64,
    /// Why the body is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    /// Where it redirects to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<String>,
    /// Where it redirected to before it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect_before: Option<String>,
    /// What the content is known by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// How many links it has that may be followed.
    pub links: usize,
    /// How many of them are new in the queue.
    pub added: usize,
    /// Whether the page had changed.
    pub changed: bool,
    /// What has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Whether that is not all of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// What is wrong with it, if it is a sitemap; for a page, why not all of its links were seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What robots.txt says of it.
    pub robots: String,
    /// How it was come to, where that was asked for.
    #[serde(skip)]
    pub trail: Trail,
    /// The place among the fetches under way that it had, from 1 on.
    #[serde(skip)]
    pub worker: usize,
    /// Whether its host, or whoever has the robots.txt for it, answered 429 or 503.
    #[serde(skip)]
    pub is_rate_limited: bool,
    /// How many tries failed in a row before this one, also of earlier crawls.
    #[serde(skip)]
    pub failures: u32,
    /// What became of it.
    pub outcome: Option<Outcome>,
    /// When it is due again.
    pub due: Option<Moment>,
    /// Why it was fetched, or why not; and why it is due when it is, or given up.
    pub rule: Arc<str>,
}

/// Why a page was not asked for. Its text is what the page came to, in few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NotFetched {
    /// robots.txt forbids it.
    Robots,
    /// robots.txt cannot be had, so that nobody knows whether it may be fetched.
    RobotsUnreachable,
    /// Its host is where no connection may lead.
    AddressRefused,
}

impl fmt::Display for NotFetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Robots => "forbidden by robots.txt",
            Self::RobotsUnreachable => "robots.txt unreachable",
            Self::AddressRefused => "address refused",
        })
    }
}

/// A link and what became of it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Where it leads.
    pub url: String,
    /// What was done with it.
    pub action: Action,
    /// The rule that decided.
    pub rule: Arc<str>,
}

impl Found {
    /// A link that was not even shown to the queue.
    pub(crate) fn new(url: String, action: Action, why: impl fmt::Display) -> Self {
        Self { url, action, rule: why.to_string().into() }
    }
}

/// Who is told what a crawl does, in a thread of the runtime in which the fetches are made. Whoever takes long holds up the crawl,
/// and must not wait for what needs that thread: an answer of the queue, or somebody who waits for one.
pub trait Watcher: Send {
    /// A page was fetched, and reported to the queue. Says what was found on it.
    fn page(&mut self, page: &PageLine, found: &[Found]);
    /// A robots.txt was asked for. Told only where it is asked how pages were come to.
    fn robots(&mut self, _line: &PageLine) {}
    /// How many fetches are under way.
    fn under_way(&mut self, _count: usize) {}
    /// Nothing can be fetched now, and why.
    fn waits(&mut self, _nothing: &Nothing) {}
    /// Whether it can take in no more, so that the crawl has to stop when what is under way is finished.
    fn has_enough(&self) -> bool {
        false
    }
}
