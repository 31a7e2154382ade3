//! How a crawl came to a page: hop by hop from the seed, as the queue remembers it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forager_frontier::Frontier;
use forager_frontier::entry::How;
use forager_frontier::verbs::FetchRow;
use jiff::Timestamp;

use crate::config::Result;
use crate::told::PageLine;

/// How many pages are kept in mind: those that were just fetched are those that others are found on.
const MOST_KNOWN: usize = 20_000;
/// The longest way that is followed back. The queue goes no farther than 65,535 links and ten redirects after each.
const MOST_HOPS: usize = 1_000;

/// The way to a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// A letter for each hop from the seed, as Heritrix has them: L a link, R a redirect, M a sitemap or what it lists, P a
    /// robots.txt that goes before, X anything else.
    pub hops: String,
    /// The page that it was found on.
    pub via: Option<String>,
}

/// Finds trails in a queue.
pub(crate) struct Trails {
    frontier: Arc<dyn Frontier>,
    /// The hops to each page, by collection and URL.
    known: Mutex<HashMap<(String, String), String>>,
}

impl Trails {
    pub(crate) fn new(frontier: Arc<dyn Frontier>) -> Self {
        Self { frontier, known: Mutex::default() }
    }

    /// The way to a page.
    pub(crate) async fn to(&self, collection: &str, url: &str, now: Timestamp) -> Result<Trail> {
        let (mut via, mut at) = (None, url.to_owned());
        // From the page back to the seed, or to one that is known.
        let (mut back, mut start) = (Vec::new(), String::new());
        for step in 0..MOST_HOPS {
            let known = self.known().get(&(collection.to_owned(), at.clone())).cloned();
            if let Some(known) = known.filter(|_| step > 0) {
                start = known;
                break;
            }
            let Some(entry) = self.frontier.entry(collection, None, &at, now).await? else { break };
            back.extend(letter(entry.record.origin.how));
            let Some(source) = entry.source else { break };
            if step == 0 {
                via = Some(source.clone());
            }
            at = source;
        }
        let hops: String = start.chars().chain(back.into_iter().rev()).collect();
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert((collection.to_owned(), url.to_owned()), hops.clone());
        Ok(Trail { hops, via })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, String), String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn letter(how: How) -> Option<char> {
    match how {
        How::Seed => None,
        How::Link => Some('L'),
        How::Redirect => Some('R'),
        How::Sitemap | How::Listing => Some('M'),
        How::Other => Some('X'),
    }
}

/// The requests for the robots.txt of a page, as lines of their own: what goes before it, and where that redirects to.
pub(crate) fn robots_lines(page: &PageLine, requests: &[FetchRow]) -> Vec<PageLine> {
    let mut trail = Trail { hops: format!("{}P", page.trail.hops), via: Some(page.url.clone()) };
    let line = |row: &FetchRow| {
        let next = Trail { hops: format!("{}R", trail.hops), via: Some(row.url.clone()) };
        let status = row.result.parse().ok();
        PageLine {
            at: row.started.timestamp(),
            url: row.url.clone(),
            status,
            error: status.is_none().then(|| row.result.clone()),
            collection: page.collection.clone(),
            seed: page.seed.clone(),
            depth: page.depth,
            bytes: row.bytes,
            wire_bytes: row.bytes,
            took: row.ended.millisecond().saturating_sub(row.started.millisecond()),
            trail: std::mem::replace(&mut trail, next),
            ..PageLine::default()
        }
    };
    requests.iter().map(line).collect()
}
