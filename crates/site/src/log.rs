//! What was asked, as the server saw it.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use http::header::{HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};
use jiff::Timestamp;

/// How many requests are remembered. The oldest go first, and are counted.
const MOST: usize = 1_000_000;

/// One request, as the server saw it. All times are those of the clock of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its number, in the order of arrival.
    pub number: u64,
    /// The host, by its name in the description; what the client called it, if there is none of that name.
    pub host: Arc<str>,
    /// The path and the query, as they were sent.
    pub path: String,
    /// When the head of the request had been read.
    pub arrived: Timestamp,
    /// When the last byte of the answer was handed to the connection, or the client had gone; none while it lasts.
    pub ended: Option<Timestamp>,
    /// The status of the answer; none if the client went before there was one.
    pub status: Option<u16>,
    /// Whether all of the answer was handed to the connection.
    pub whole: bool,
    /// Who asked.
    pub user_agent: Option<String>,
    /// The version that the client has, by its tag.
    pub if_none_match: Option<String>,
    /// The version that the client has, by its time.
    pub if_modified_since: Option<String>,
    /// How many requests were under way at the host when it arrived, this one among them.
    pub at_once: usize,
    /// Until when the answer asks to be left alone: a 429 or 503 with `Retry-After`.
    pub pause: Option<Timestamp>,
}

/// The log of a server. Clones are the same log.
#[derive(Clone)]
pub struct Log {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    next: u64,
    open: BTreeMap<u64, Seen>,
    over: VecDeque<Seen>,
    at_once: HashMap<Arc<str>, usize>,
    forgotten: u64,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Log {
    pub(crate) fn new(clock: Arc<dyn Fn() -> Timestamp + Send + Sync>) -> Self {
        Self { clock, entries: Arc::default() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All requests, in the order of arrival; those that are under way too.
    pub fn snapshot(&self) -> Vec<Seen> {
        let entries = self.entries();
        let mut all: Vec<Seen> = entries.over.iter().chain(entries.open.values()).cloned().collect();
        all.sort_unstable_by_key(|seen| seen.number);
        all
    }

    /// The requests that are over, in the order of arrival, which are forgotten with that.
    pub fn take(&self) -> Vec<Seen> {
        let mut all: Vec<Seen> = std::mem::take(&mut self.entries().over).into();
        all.sort_unstable_by_key(|seen| seen.number);
        all
    }

    /// How many requests were forgotten because there were too many.
    pub fn forgotten(&self) -> u64 {
        self.entries().forgotten
    }

    /// A request has arrived. It is over when what is returned here is dropped.
    pub(crate) fn arrive(&self, host: &Arc<str>, path: String, headers: &HeaderMap) -> Open {
        let text = |name: HeaderName| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let mut entries = self.entries();
        // Read while nobody else can arrive, so that the numbers and the times agree.
        let arrived = self.now();
        let number = entries.next;
        entries.next += 1;
        let at_once = entries.at_once.entry(host.clone()).or_default();
        *at_once += 1;
        let seen = Seen {
            number,
            host: host.clone(),
            path,
            arrived,
            ended: None,
            status: None,
            whole: false,
            user_agent: text(USER_AGENT),
            if_none_match: text(IF_NONE_MATCH),
            if_modified_since: text(IF_MODIFIED_SINCE),
            at_once: *at_once,
            pause: None,
        };
        entries.open.insert(number, seen);
        drop(entries);
        Open { log: self.clone(), number, status: None, whole: false, pause: None }
    }

    fn end(&self, open: &Open) {
        let mut entries = self.entries();
        let now = self.now();
        let Some(mut seen) = entries.open.remove(&open.number) else { return };
        (seen.ended, seen.status, seen.whole) = (Some(now), open.status, open.whole);
        seen.pause = open.pause;
        // Clients can make up names without end: those of nobody under way are not kept.
        if let Entry::Occupied(mut count) = entries.at_once.entry(seen.host.clone()) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        if entries.over.len() >= MOST {
            entries.over.pop_front();
            entries.forgotten += 1;
        }
        entries.over.push_back(seen);
    }
}

/// A request that is under way.
pub(crate) struct Open {
    log: Log,
    number: u64,
    pub(crate) status: Option<u16>,
    pub(crate) whole: bool,
    pub(crate) pause: Option<Timestamp>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.log.end(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_count_from_arrival_to_end() {
        let log = Log::new(Arc::new(|| Timestamp::UNIX_EPOCH));
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let arrive = |host, path: &str| log.arrive(host, path.to_owned(), &HeaderMap::new());
        let first = arrive(&a, "/1");
        let mut second = arrive(&a, "/2");
        drop(arrive(&b, "/3"));
        drop(first);
        (second.status, second.whole) = (Some(200), true);
        let third = arrive(&a, "/4");
        drop(second);
        let seen: Vec<_> = log
            .snapshot()
            .into_iter()
            .map(|seen| (seen.path, seen.at_once, seen.status, seen.whole))
            .collect();
        let want = [
            ("/1", 1, None, false),
            ("/2", 2, Some(200), true),
            ("/3", 1, None, false),
            ("/4", 2, None, false),
        ];
        assert_eq!(seen, want.map(|(path, count, status, whole)| (path.to_owned(), count, status, whole)));
        assert_eq!(log.take().len(), 3, "the last one is still under way");
        drop(third);
        let rest: Vec<String> = log.take().into_iter().map(|seen| seen.path).collect();
        assert_eq!(rest, ["/4"]);
    }
}
