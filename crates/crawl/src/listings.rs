//! Lists of pages: how many are under way and how many read at a time, and which others they may lead to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use forager_core::url::{FetchUrl, IdentityOptions};
use forager_frontier::Frontier;
use forager_frontier::entry::{How, Token};
use forager_frontier::verbs::{Action, Leased, Link};
use jiff::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Result;
use crate::reading::{MOST_SKIPPED, Reading};
use crate::robots;
use crate::told::Found;

/// How many are read, and not yet taken in by the queue, at a time: each may come to a hundred megabytes and more when it is
/// unpacked.
const AT_A_TIME: usize = 2;
/// What is no longer than this comes to a megabyte at most, however well it is packed.
const SMALL: usize = 1000;
/// One of so many fetches may be for a list. They may be anywhere, and each robots.txt may name hundreds that are slow, or
/// have to wait for room: pages must not have to wait for all of them.
const SHARE: usize = 4;
/// How many wait for that.
const MOST_WAITING: usize = 1000;
/// How many sites are asked whether they vouch for what one list names.
const MOST_SITES: usize = 100;
/// Why a list is not followed.
const ELSEWHERE: &str =
    "a sitemap may lead to sitemaps of its own host only, or to those that the robots.txt there vouches for";

/// The turns of lists: how many are under way, and which were handed out and wait until fewer are.
pub(crate) struct Turns {
    most: usize,
    under_way: usize,
    waiting: VecDeque<Token>,
}

impl Turns {
    /// Turns for a share of so many fetches.
    pub(crate) fn of(at_once: usize) -> Self {
        Self { most: (at_once / SHARE).max(1), under_way: 0, waiting: VecDeque::new() }
    }

    /// Takes a turn, if there is one.
    pub(crate) fn begin(&mut self) -> bool {
        let is_free = self.under_way < self.most;
        self.under_way += usize::from(is_free);
        is_free
    }

    /// A turn is over.
    pub(crate) fn end(&mut self) {
        self.under_way -= 1;
    }

    /// A list waits for a turn. Gives it back if too many do.
    pub(crate) fn wait(&mut self, list: Token) -> Option<Token> {
        if self.waiting.len() >= MOST_WAITING {
            return Some(list);
        }
        self.waiting.push_back(list);
        None
    }

    /// Those that need not wait any more, as there are turns. They go back to the queue, which hands them out anew: it
    /// counts the pauses of a host from when it has handed something out, and that was long ago.
    pub(crate) fn come_up(&mut self) -> Vec<Token> {
        let turns = self.most - self.under_way;
        self.waiting.drain(..turns.min(self.waiting.len())).collect()
    }

    /// Those that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Token> {
        self.waiting.iter().copied()
    }

    /// Nobody waits any more. Says who did.
    pub(crate) fn clear(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.waiting).into()
    }
}

/// What the lists of a crawl have in common.
pub(crate) struct Listings {
    places: Arc<Semaphore>,
    product_token: String,
}

impl Listings {
    pub(crate) fn new(product_token: String) -> Self {
        Self { places: Arc::new(Semaphore::new(AT_A_TIME)), product_token }
    }

    /// A place for a list, until the queue has it; none if that many bytes with this status are nothing much to read.
    pub(crate) async fn place(&self, status: u16, bytes: usize) -> Option<OwnedSemaphorePermit> {
        if !(200..300).contains(&status) || bytes <= SMALL {
            return None;
        }
        // They are never closed.
        self.places.clone().acquire_owned().await.ok()
    }

    /// Leaves out the lists elsewhere that a list names, or has moved to: otherwise it could lead a crawl out of its scope, to
    /// any host, and each list there further still. What robots.txt names may be anywhere, and be moved once to anywhere.
    pub(crate) async fn keep_near(
        &self,
        frontier: &dyn Frontier,
        (url, leased): (&FetchUrl, &Leased),
        reading: &mut Reading,
        now: Timestamp,
    ) -> Result<()> {
        let is_far = |link: &Link| link.how == How::Listing && !share_domain(url, &link.url);
        if !reading.links.iter().any(is_far)
            || (reading.redirect.is_some() && !is_of_a_list(frontier, leased, now).await?)
        {
            return Ok(());
        }
        let mut sites = HashMap::new();
        let mut near = Vec::with_capacity(reading.links.len());
        for link in std::mem::take(&mut reading.links) {
            if !is_far(&link) || self.is_vouched_for(frontier, (url, &link.url), &mut sites).await? {
                near.push(link);
            } else if reading.skipped.len() < MOST_SKIPPED {
                reading.skipped.push(Found::new(link.url, Action::Ignored, ELSEWHERE));
            }
        }
        reading.links = near;
        Ok(())
    }

    /// Whether the robots.txt of where a list is, as far as it is known, names that list or the one that leads to it.
    async fn is_vouched_for(
        &self,
        frontier: &dyn Frontier,
        (from, to): (&FetchUrl, &str),
        sites: &mut HashMap<String, Vec<FetchUrl>>,
    ) -> Result<bool> {
        let Ok(to) = FetchUrl::parse(to) else { return Ok(false) };
        let origin = robots::origin(&to);
        if !sites.contains_key(&origin) {
            if sites.len() >= MOST_SITES {
                return Ok(false);
            }
            sites.insert(origin.clone(), robots::named(frontier, &to, &self.product_token).await?);
        }
        Ok(sites[&origin].iter().any(|named| *named == to || named == from))
    }
}

/// Whether two URLs are of one host, apart from a leading `www.`.
fn share_domain(url: &FetchUrl, other: &str) -> bool {
    let options = IdentityOptions::default();
    let domain = |url: &FetchUrl| url.identity(&options).domain().to_owned();
    FetchUrl::parse(other)
        .is_ok_and(|other| other.host_key() == url.host_key() || domain(&other) == domain(url))
}

/// Whether a list was found on another one, which named it or has moved there.
async fn is_of_a_list(frontier: &dyn Frontier, leased: &Leased, now: Timestamp) -> Result<bool> {
    let Leased { collection, url, .. } = leased;
    let entry = frontier.entry(collection, None, url, now).await?;
    let Some(source) = entry.and_then(|entry| entry.source) else { return Ok(false) };
    let source = frontier.entry(collection, None, &source, now).await?;
    Ok(source.is_some_and(|source| source.record.origin.how == How::Listing))
}
