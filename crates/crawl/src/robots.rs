//! The robots.txt of every site: asked for when it is needed, kept for others and for later.

mod awaited;
mod delays;
mod kept;
mod unlogged;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::http::{Class, Failure, Http, Request, Response};
use forager_fetch::robots::{Answer, Copy, MAX_BYTES, Outcome, Robots, Rules, of_answer};
use forager_frontier::verbs::{FetchRow, Note, Terms};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;
use tokio::sync::Mutex as AsyncMutex;

use crate::clock::Clock;
use crate::config::Result;
use crate::pace::{Pace, Round};
use crate::visit::{broken, wants_rest};

use awaited::{Access, Awaited};
use delays::Delays;
pub(crate) use kept::named;
use kept::{Kept, kept};
use unlogged::Unlogged;

pub use delays::delays_key;
pub use kept::{CameTo, Label, Word, file_key, file_name, key_of_file, known, note_key, origin, robots_url};

/// How many redirects of robots.txt are followed.
const MOST_REDIRECTS: usize = 5;
/// How many sites are kept in mind; those of others are read from the queue again.
const MOST_KNOWN: usize = 50_000;

/// The rules of a site, and whether finding them out took a request.
#[derive(Clone, Debug)]
pub struct Found {
    /// The rules.
    pub rules: Arc<Rules>,
    /// Whether the host was just asked for them, so that it has to be left alone for a while.
    pub was_asked: bool,
    /// The requests that it took.
    pub requests: Vec<FetchRow>,
    /// Until when they count.
    pub expires: Timestamp,
    /// Why the host is not asked at all, if no connection may lead to it.
    pub refused: Option<Arc<str>>,
}

/// In whose turn a host may be asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// What it may be asked by.
    pub(crate) terms: Terms,
    /// When the turn was given.
    pub(crate) round: Round,
}

impl Turn {
    fn gap(self) -> Interval {
        let millis = u32::try_from(self.terms.least_gap).unwrap_or(u32::MAX);
        Interval::from_secs_f64(f64::from(millis) / 1000.0)
    }
}

/// Where the rules of sites are known.
pub struct Office {
    frontier: Arc<dyn Frontier>,
    http: Http,
    clock: Clock,
    pace: Arc<Pace>,
    token: String,
    /// After how long it is asked for again that cannot be had, at first.
    first_retry: Interval,
    sites: Mutex<HashMap<String, Arc<AsyncMutex<Site>>>>,
    /// Two sites of one host must not forget what the other asks for.
    hosts: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    unlogged: Unlogged,
    awaited: Awaited,
}

/// What is known of a site.
#[derive(Default)]
struct Site {
    known: Option<Known>,
    /// How far robots.txt was followed to a host that was busy, so that nobody is asked again for where it is.
    moved: Option<Moved>,
}

/// Where robots.txt is, after so many redirects.
struct Moved {
    to: FetchUrl,
    hops: usize,
}

#[derive(Clone)]
struct Known {
    rules: Arc<Rules>,
    expires: Timestamp,
    refused: Option<Arc<str>>,
}

impl Known {
    fn counts_at(&self, now: Timestamp) -> bool {
        now < self.expires
    }

    fn found(self) -> Found {
        let Self { rules, expires, refused } = self;
        Found { rules, was_asked: false, requests: Vec::new(), expires, refused }
    }
}

/// What came of asking for robots.txt.
struct Asked {
    copy: Copy,
    refused: Option<Arc<str>>,
    requests: Vec<FetchRow>,
}

/// Why robots.txt was not had.
struct Missed {
    outcome: Outcome<'static>,
    /// Why its host is not asked at all, if no connection may lead there.
    refused: Option<Arc<str>>,
}

impl Missed {
    fn failed(error: String) -> Self {
        Self { outcome: Outcome::Failed { error }, refused: None }
    }
}

impl Office {
    /// An office that knows what the queue knows.
    pub(crate) fn new(
        frontier: Arc<dyn Frontier>,
        http: Http,
        (clock, pace): (Clock, Arc<Pace>),
        (product_token, first_retry): (String, Interval),
    ) -> Self {
        Self {
            frontier,
            http,
            clock,
            pace,
            token: product_token,
            first_retry,
            sites: Mutex::default(),
            hosts: Mutex::default(),
            unlogged: Unlogged::default(),
            awaited: Awaited::default(),
        }
    }

    /// The rules for a URL. Where nobody knows them, the host is asked in the turn of the caller, so many milliseconds
    /// after its last request; others who want the same meanwhile wait for the answer. None if the host would have to
    /// be asked, and wants to be left alone; or the host that robots.txt was moved to is busy.
    pub(crate) async fn rules(&self, url: &FetchUrl, turn: Turn) -> Result<Option<Found>> {
        let origin = origin(url);
        let site = self.site(&origin);
        let mut site = site.lock().await;
        if let Some(known) = site.known.as_ref().filter(|known| known.counts_at(self.clock.now())) {
            return Ok(Some(known.clone().found()));
        }
        let (key, kept) = (note_key(&origin), kept(&*self.frontier, &origin).await?);
        // Under a new name a site is asked anew: it may be answered otherwise, other waits may be asked of it, and the log
        // says from when on it is used.
        let is_of_use = |kept: &&Kept| kept.asked_as == self.token && kept.copy.is_fresh(self.clock.now());
        let fresh = kept.as_ref().filter(is_of_use);
        let was_asked = fresh.is_none();
        let previous = kept.as_ref().map(|kept| &kept.copy);
        let Asked { copy, refused, requests } = match fresh {
            Some(kept) => Asked { copy: kept.copy.clone(), refused: None, requests: Vec::new() },
            None => match self.ask((url, turn), &mut site.moved, (&key, previous)).await? {
                Some(asked) => asked,
                None => return Ok(None),
            },
        };
        let rules = Arc::new(copy.rules(&self.token));
        if rules.robots().and_then(Robots::crawl_delay) > Some(turn.gap()) {
            // Others have waited for this answer, and were handed out before anybody knew of it.
            self.pace.recall(url.host_key());
        }
        let found = site.known.insert(Known { rules, expires: copy.expires, refused }).clone();
        Ok(Some(Found { was_asked, requests, ..found.found() }))
    }

    /// Whether the rules for a URL are known without asking its host.
    pub(crate) async fn knows(&self, url: &FetchUrl) -> bool {
        let site = self.site(&origin(url));
        let site = site.lock().await;
        site.known.as_ref().is_some_and(|known| known.counts_at(self.clock.now()))
    }

    fn site(&self, origin: &str) -> Arc<AsyncMutex<Site>> {
        lock_of(&self.sites, origin)
    }

    /// Asks for robots.txt, and writes down what came of it, and what it asks for. Says why, if the host may not be
    /// asked; then nothing is written down, for another process may be allowed to.
    async fn ask(
        &self,
        (url, turn): (&FetchUrl, Turn),
        moved: &mut Option<Moved>,
        (key, previous): (&str, Option<&Copy>),
    ) -> Result<Option<Asked>> {
        let origin = origin(url);
        let answer = self.follow(url, turn, moved).await?;
        let mut requests = self.unlogged.of(&origin);
        let Some(answer) = answer else {
            self.write_down(&origin, requests, Vec::new()).await?;
            return Ok(None);
        };
        let mut last_fetch = requests.last_mut();
        // The time that the log has: whoever goes through it comes to the same result.
        let now = last_fetch.as_ref().map_or_else(|| self.clock.now(), |row| row.ended.timestamp());
        let asked = answer.as_ref().ok().and_then(|response| response.retry_after(now));
        let mut copy = match answer {
            Ok(response) => of_answer(&outcome(&response, now), previous, now),
            Err(missed) => {
                let copy = of_answer(&missed.outcome, previous, now);
                if missed.refused.is_some() {
                    // Whoever redirected there was asked all the same.
                    let requests = self.write_down(&origin, requests, Vec::new()).await?;
                    return Ok(Some(Asked { copy, refused: missed.refused, requests }));
                }
                copy
            }
        };
        copy.wait_as_pages_do(self.first_retry, asked);
        let new_file = copy.file.as_ref().filter(|file| file.read_at == copy.fetched_at);
        let (file, words) = (new_file.map(|file| file_key(&file.body)), copy.last.to_string());
        if let Some(row) = &mut last_fetch {
            let came_to = file.as_deref().map_or(CameTo::Nothing(&words), CameTo::File);
            row.robots = self.label(&origin, Some(came_to));
        }
        let mut notes = Vec::new();
        if let (Some(key), Some(file)) = (file, new_file) {
            notes.push(Note::Keep(key, Some(file.body.clone())));
        }
        let delay = copy.rules(&self.token).robots().and_then(Robots::crawl_delay);
        let host = url.host_key();
        let of_host = lock_of(&self.hosts, host);
        let _alone = of_host.lock().await;
        let mut delays = Delays::of_others(&*self.frontier, host, &origin, now).await?;
        copy.keep_for_pages_every(delays.longest().max(delay).unwrap_or_default().max(turn.gap()));
        delays.add(&origin, delay, copy.expires);
        notes.push(Note::CrawlDelay(host.to_owned(), delays.longest()));
        let (wishes, kept) = delays.kept(host);
        notes.push(Note::Keep(wishes, kept));
        let kept = Kept { copy, asked_as: self.token.clone() };
        notes.extend(kept.to_bytes().map(|bytes| Note::Keep(key.to_owned(), Some(bytes))));
        let requests = self.write_down(&origin, requests, notes).await?;
        Ok(Some(Asked { copy: kept.copy, refused: None, requests }))
    }

    /// What the log says of a request for the robots.txt of a site.
    fn label(&self, origin: &str, came_to: Option<CameTo<'_>>) -> String {
        Label { origin, asked_as: Some(&self.token), came_to }.to_string()
    }

    /// Writes down requests for the robots.txt of a site, and what was learned by them. Then the queue knows who wants to be
    /// left alone.
    async fn write_down(
        &self,
        origin: &str,
        requests: Vec<FetchRow>,
        notes: Vec<Note>,
    ) -> Result<Vec<FetchRow>> {
        let notes: Vec<Note> = requests.iter().cloned().map(Note::Fetch).chain(notes).collect();
        if notes.is_empty() {
            return Ok(requests);
        }
        // Not after it: whoever is stopped meanwhile has handed them to the queue, and must not do so twice.
        self.unlogged.forget(origin);
        self.frontier.note(&notes, self.clock.now()).await?;
        for row in requests.iter().filter(|row| row.back_off_until.is_some()) {
            self.pace.settle(&row.host);
        }
        Ok(requests)
    }

    /// The requests that were sent and will not be written down by those who sent them.
    pub(crate) fn take_unlogged(&self) -> Vec<FetchRow> {
        self.unlogged.take(Moment::of(self.clock.now()))
    }

    /// Follows robots.txt to where it is. The host of the page is asked in the turn of the page, for which it is not asked
    /// meanwhile; every other one waits for a turn of its own. None if the host wants to be left alone, or the other one
    /// is busy: that says nothing of robots.txt, which is looked for again in another turn.
    async fn follow(
        &self,
        url: &FetchUrl,
        turn: Turn,
        moved: &mut Option<Moved>,
    ) -> Result<Option<std::result::Result<Response, Missed>>> {
        let failed = |error: String| Ok(Some(Err(Missed::failed(error))));
        let Moved { to: mut at, hops } = match (moved.take(), FetchUrl::parse(&robots_url(url))) {
            (Some(moved), _) => moved,
            (None, Ok(to)) => Moved { to, hops: 0 },
            (None, Err(cause)) => return failed(cause.to_string()),
        };
        for hop in hops..=MOST_REDIRECTS {
            let is_elsewhere = at.host_key() != url.host_key();
            let access = if is_elsewhere {
                self.visit(at.host_key(), url.host_key()).await?
            } else if self.is_awaited(at.host_key()) {
                Access::Busy
            } else {
                Access::Own
            };
            let visit = match access {
                Access::Own => None,
                Access::Welcome(token) => Some(token),
                Access::Busy => {
                    *moved = Some(Moved { to: at, hops: hop });
                    return Ok(None);
                }
                Access::Closed(gate) => return failed(format!("{} is not asked now: {gate}", at.host_key())),
            };
            let round = if is_elsewhere { self.pace.round() } else { turn.round };
            // By what another host may be asked, the queue knows.
            let terms = if is_elsewhere { Terms::default() } else { turn.terms };
            let started = self.pace.turn(at.host_key(), turn.terms.least_gap, round).await;
            let answer = match started {
                Some(started) => Some(self.get((url, &at), started, terms).await),
                None => None,
            };
            let wants_rest = answer.as_ref().is_some_and(wants_rest);
            if wants_rest {
                self.pace.rest(at.host_key());
            }
            if let Some(token) = visit {
                self.frontier.leave(&[(at.host_key().to_owned(), token)], self.clock.now()).await?;
            }
            let response = match answer {
                Some(Ok(response)) => response,
                Some(Err(failure)) => {
                    let is_refused = hop == 0 && failure.class() == Class::AddressRefused;
                    let refused = is_refused.then(|| failure.to_string().into());
                    return Ok(Some(Err(Missed { refused, ..Missed::failed(failure.to_string()) })));
                }
                None => {
                    *moved = Some(Moved { to: at, hops: hop });
                    return Ok(None);
                }
            };
            // Whoever wants to be left alone is not asked for more.
            let is_moved = (300..400).contains(&response.status) && !wants_rest;
            match response.location().filter(|_| is_moved).map(|to| at.join(&to)) {
                Some(Ok(next)) => at = next,
                Some(Err(cause)) => return failed(cause.to_string()),
                None => return Ok(Some(Ok(response))),
            }
        }
        Ok(Some(Err(Missed { outcome: Outcome::TooManyRedirects, refused: None })))
    }

    /// Sends a request for the robots.txt of a site.
    async fn get(
        &self,
        (site, url): (&FetchUrl, &FetchUrl),
        started: Timestamp,
        Terms { least_gap, most_in_flight }: Terms,
    ) -> std::result::Result<Response, Failure> {
        let mut request = Request::new(url.clone());
        request.body_bytes = Some(MAX_BYTES as u64 + 1);
        request.accept = "text/plain,*/*;q=0.5";
        let origin = origin(site);
        let row = FetchRow {
            started: Moment::of(started),
            host: url.host_key().to_owned(),
            url: url.as_str().to_owned(),
            result: "stopped".to_owned(),
            robots: self.label(&origin, None),
            least_gap,
            most_in_flight,
            ..FetchRow::default()
        };
        self.unlogged.begin(&origin, row.clone());
        let answer = self.http.get(&request).await;
        let was_asked = answer.as_ref().err().is_none_or(|failure| failure.class() != Class::AddressRefused);
        self.unlogged.end(&origin, was_asked.then(|| self.ended(row, &answer)));
        answer
    }

    /// What the log has of a request that was answered, or failed.
    fn ended(&self, row: FetchRow, answer: &std::result::Result<Response, Failure>) -> FetchRow {
        let now = self.clock.now();
        let (result, bytes) = match answer {
            Ok(response) => (response.status.to_string(), response.wire_bytes),
            Err(failure) => (failure.to_string(), 0),
        };
        // Until when at least; how long it is, the queue decides.
        let asked = answer.as_ref().ok().and_then(|response| response.retry_after(now)).unwrap_or_default();
        let back_off_until = wants_rest(answer).then(|| Moment::of(asked.after(now)));
        FetchRow { ended: Moment::of(now), result, bytes, back_off_until, ..row }
    }
}

/// What is known under a name, for one at a time. What nobody holds is forgotten when there is too much of it.
fn lock_of<T: Default>(known: &Mutex<HashMap<String, Arc<AsyncMutex<T>>>>, name: &str) -> Arc<AsyncMutex<T>> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MOST_KNOWN {
        known.retain(|_, one| Arc::strong_count(one) > 1);
    }
    known.entry(name.to_owned()).or_default().clone()
}

fn outcome(response: &Response, now: Timestamp) -> Outcome<'_> {
    if let Some(cut) = broken(response) {
        return Outcome::Failed { error: cut.to_string() };
    }
    if let (200..=299, Some(coding)) = (response.status, &response.undecoded) {
        // Nobody can read it, and what cannot be read has rules all the same.
        return Outcome::Failed { error: format!("its content encoding {coding:?} is not known") };
    }
    Outcome::Answer(Answer {
        status: response.status,
        body: &response.body,
        is_cut: response.cut_off.is_some(),
        cache_control: response.headers.get("cache-control").and_then(|value| value.to_str().ok()),
        retry_after: response.retry_after(now),
    })
}
