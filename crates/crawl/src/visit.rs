//! One turn of a page: may it be fetched, what was the answer, what does it mean.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use forager_core::url::FetchUrl;
use forager_fetch::http::{Class, CutOff, Failure, Http, Request, Response};
use forager_fetch::robots::Robots;
use forager_fetch::sitemap::{Problem, Trouble};
use forager_frontier::entry::{How, Token};
use forager_frontier::verbs::{
    FetchError, FetchRow, Leased, Link, Note, Report, Sent, Terms, kept_text, text_key,
};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;
use tokio::sync::OwnedSemaphorePermit;

use crate::clock::Clock;
use crate::config::Result;
use crate::listings::Listings;
use crate::obstacle::{is_out_of_reach, keep_from, obstacle};
use crate::options::PageOptions;
use crate::pace::{Pace, Round};
use crate::reading::{self, Come, Reading};
use crate::robots::{self, Office};
use crate::told::{Found, NotFetched, PageLine};
use crate::trail::{Trails, robots_lines};

/// What visits need.
pub(crate) struct Visitor {
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) http: Http,
    pub(crate) office: Office,
    pub(crate) clock: Clock,
    pub(crate) pace: Arc<Pace>,
    pub(crate) product_token: String,
    /// Requests that were sent, of pages that are not reported yet.
    pub(crate) sent: Mutex<HashMap<Token, Unreported>>,
    pub(crate) listings: Listings,
    /// How pages were come to, if anybody wants to know.
    pub(crate) trails: Option<Trails>,
    /// Sites whose sitemaps a collection was told of.
    pub(crate) introduced: Mutex<HashSet<(String, String)>>,
}

/// A request that was sent, of a page that is not reported yet.
pub(crate) struct Unreported {
    leased: Arc<Leased>,
    at: Timestamp,
    robots: String,
}

impl Unreported {
    /// The host that was asked.
    fn host(&self) -> String {
        // What was asked for was parsed before.
        FetchUrl::parse(&self.leased.url).map(|url| url.host_key().to_owned()).unwrap_or_default()
    }

    /// How it stands in the log if nothing else comes of it.
    fn row(self, ended: Timestamp) -> FetchRow {
        let Terms { least_gap, most_in_flight } = self.leased.terms;
        FetchRow {
            least_gap,
            most_in_flight,
            started: Moment::of(self.at),
            ended: Moment::of(ended),
            collection: self.leased.collection.clone(),
            host: self.host(),
            url: self.leased.url.clone(),
            result: "stopped".to_owned(),
            robots: self.robots,
            ..FetchRow::default()
        }
    }
}

/// How many of them are kept in mind.
const MOST_INTRODUCED: usize = 100_000;

/// What a turn came to.
#[derive(Debug)]
pub enum Turn {
    /// The page was fetched, or must not be.
    Reported(Box<Visited>),
    /// The page has to wait for another turn: this one was spent on robots.txt, or the host has asked for a pause meanwhile,
    /// or there was no room for what came. With the requests for robots.txt, if anybody wants to know.
    Spent(Vec<PageLine>),
}

/// A page that had its turn.
#[derive(Debug, Default)]
pub struct Visited {
    /// For the queue.
    pub report: Report,
    /// For whoever watches.
    pub line: PageLine,
    /// Links that the queue is not shown.
    pub skipped: Vec<Found>,
    /// Requests for robots.txt that it took, if anybody wants to know.
    pub robots: Vec<PageLine>,
    /// The place of a list of pages among those that are read, until the queue has it.
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

impl Visitor {
    /// Takes the turn of a page.
    pub(crate) async fn visit(
        &self,
        leased: &Arc<Leased>,
        round: Round,
        options: &PageOptions,
    ) -> Result<Turn> {
        let mut visited = Box::new(Visited {
            report: Report { token: leased.token.0, ..Report::default() },
            line: begin(leased, self.clock.now()),
            skipped: Vec::new(),
            robots: Vec::new(),
            place: None,
        });
        let Visited { report, line, robots, .. } = &mut *visited;
        if let Some(trails) = &self.trails {
            line.trail = trails.to(&leased.collection, &leased.url, self.clock.now()).await?;
        }
        let url = match FetchUrl::parse(&leased.url) {
            Ok(url) => url,
            Err(cause) => {
                report.error = Some(FetchError::Refused);
                line.error = Some(cause.to_string());
                return Ok(Turn::Reported(visited));
            }
        };
        let turn = robots::Turn { terms: leased.terms, round };
        let Some(found) = self.office.rules(&url, turn).await? else {
            return Ok(Turn::Spent(Vec::new()));
        };
        if self.trails.is_some() {
            *robots = robots_lines(line, &found.requests);
        }
        let ruling = found.rules.verdict(&url);
        if found.was_asked && found.refused.is_none() && !is_out_of_reach(&ruling) {
            return Ok(Turn::Spent(visited.robots));
        }
        line.robots = ruling.to_string();
        if let Some(not_fetched) = obstacle(&found, &ruling) {
            keep_from(report, line, not_fetched, &found, (&url, self.clock.now()));
            return Ok(Turn::Reported(visited));
        }
        let Some(mut answer) = self.send((&url, leased), line, (round, found.expires)).await else {
            return Ok(Turn::Spent(visited.robots));
        };
        if let Err(cause @ Failure::Closed { reused: true, .. }) = &answer {
            // The server had closed the connection meanwhile, and says nothing about the page by that. Whether it has seen
            // the request nobody knows: so it counts, and the next one keeps its distance.
            self.log_unanswered(leased, cause).await?;
            let Some(again) = self.send((&url, leased), line, (round, found.expires)).await else {
                return Ok(Turn::Spent(visited.robots));
            };
            answer = again;
        }
        if wants_rest(&answer) {
            self.pace.rest(url.host_key());
        }
        if let Some(cause) = crowded_out(&answer) {
            self.log_unanswered(leased, &cause).await?;
            return Ok(Turn::Spent(visited.robots));
        }
        let ended = self.clock.now();
        line.took = millis(ended, line.at);
        let (at, ended) = (Moment::of(line.at), Some(Moment::of(ended)));
        report.fetch = Some(Sent { at, ended, robots: line.robots.clone(), terms: Some(leased.terms) });
        match answer {
            Ok(response) => {
                if leased.how == How::Listing {
                    visited.place = self.listings.place(response.status, response.body.len()).await;
                }
                self.take_in(&response, (&url, leased), options, &mut visited).await?;
            }
            Err(failure) => {
                report.error = Some(kind(&failure));
                line.error = Some(failure.to_string());
                if failure.class() == Class::AddressRefused {
                    // Nobody was asked.
                    report.fetch = None;
                    line.not_fetched = Some(NotFetched::AddressRefused);
                    line.rule = failure.to_string().into();
                }
            }
        }
        // Of a page that comes in part the queue takes the links when it gives the page up, and not before: the
        // sitemaps come along with each try, and with the next page all the same.
        let is_part = visited.report.came_in_part();
        let sitemaps =
            found.rules.robots().filter(|_| options.reading.sitemaps).map_or(&[][..], Robots::sitemaps);
        if !sitemaps.is_empty() && (is_part || self.is_first_of(&leased.collection, &url)) {
            visited.report.links.extend(sitemaps.iter().filter_map(|text| listing(&url, text)));
        }
        Ok(Turn::Reported(visited))
    }

    /// Sends a request when it is its turn; none if its host wants to rest, or another waits for its robots.txt, or the rules
    /// have run out meanwhile: they may have been read anew by another.
    async fn send(
        &self,
        (url, leased): (&FetchUrl, &Arc<Leased>),
        line: &mut PageLine,
        (round, expires): (Round, Timestamp),
    ) -> Option<std::result::Result<Response, Failure>> {
        if self.office.is_awaited(url.host_key()) {
            return None;
        }
        let at = self.pace.turn(url.host_key(), leased.terms.least_gap, round).await;
        line.at = at.filter(|at| *at < expires)?;
        self.note_sent(leased, line);
        Some(self.http.get(&request(url, leased)).await)
    }

    /// Keeps in mind that a request was sent, until its page is reported.
    fn note_sent(&self, leased: &Arc<Leased>, line: &PageLine) {
        let sent = Unreported { leased: leased.clone(), at: line.at, robots: line.robots.clone() };
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(leased.token, sent);
    }

    /// Writes down a request that came to nothing and is sent once more. Its page has no line for it.
    async fn log_unanswered(&self, leased: &Leased, cause: &(dyn Display + Sync)) -> Result<()> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&leased.token);
        let ended = self.clock.now();
        let row = sent.map(|sent| FetchRow {
            collection: String::new(),
            result: cause.to_string(),
            ..sent.row(ended)
        });
        let notes: Vec<Note> = row.map(Note::Fetch).into_iter().collect();
        Ok(self.frontier.note(&notes, ended).await?)
    }

    /// A page was reported, so that its request is in the log, and the queue knows what its host wants.
    pub(crate) fn was_reported(&self, report: &Report) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let request = sent.remove(&Token(report.token));
        // A page that is well says nothing of another one whose host wants to rest, and which is not reported yet.
        let rests = match report.error {
            None => report.status.is_some_and(is_refusal),
            Some(error) => matches!(error, FetchError::Timeout | FetchError::Network),
        };
        if let Some(request) = request.filter(|_| rests) {
            self.pace.settle(&request.host());
        }
    }

    /// The requests that were sent and will not be reported, for the log.
    pub(crate) fn take_unreported(&self) -> Vec<Note> {
        let sent = std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = self.clock.now();
        let pages = sent.into_values().map(|sent| sent.row(ended));
        pages.chain(self.office.take_unlogged()).map(Note::Fetch).collect()
    }

    /// Whether this is the first page of its site that this crawl fetches for a collection: it brings along the
    /// sitemaps. The queue knows them already after a restart, and does not mind.
    fn is_first_of(&self, collection: &str, url: &FetchUrl) -> bool {
        let mut introduced = self.introduced.lock().unwrap_or_else(PoisonError::into_inner);
        if introduced.len() >= MOST_INTRODUCED {
            introduced.clear();
        }
        introduced.insert((collection.to_owned(), robots::origin(url)))
    }

    /// What a sitemap has that the protocol does not allow. Those that their own robots.txt vouches for are none of it.
    async fn remarks(&self, remarks: &[Problem], sitemap: &FetchUrl) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for remark in remarks {
            let is_vouched_for = match &remark.what {
                Trouble::Elsewhere { url } => {
                    robots::named(&*self.frontier, url, &self.product_token).await?.contains(sitemap)
                }
                _ => false,
            };
            if !is_vouched_for {
                told.push(remark.to_string());
            }
        }
        Ok(told)
    }

    async fn read(
        &self,
        response: &Response,
        (url, leased): (&FetchUrl, &Leased),
        options: &PageOptions,
    ) -> Result<Reading> {
        let mut reading = reading::read(response, url, come(leased), options, &self.product_token);
        self.listings.keep_near(&*self.frontier, (url, leased), &mut reading, self.clock.now()).await?;
        Ok(reading)
    }

    async fn take_in(
        &self,
        response: &Response,
        (url, leased): (&FetchUrl, &Leased),
        options: &PageOptions,
        Visited { report, line, skipped, .. }: &mut Visited,
    ) -> Result<()> {
        line.status = Some(response.status);
        line.is_rate_limited = is_refusal(response.status);
        line.bytes = response.body.len() as u64;
        line.wire_bytes = response.wire_bytes;
        line.media_type = response.content_type().map(str::to_owned);
        line.cut_off = response.cut_off.map(|cut| cut.to_string());
        report.status = Some(response.status);
        report.bytes = response.wire_bytes;
        report.retry_after = response.retry_after(self.clock.now());
        if let Some(cut) = broken(response) {
            report.error = Some(if cut == CutOff::Time { FetchError::Timeout } else { FetchError::Damaged });
            line.error = Some(format!("the page is not whole: {cut}"));
            // If it never comes whole, the queue takes what there is.
            let reading = self.read(response, (url, leased), options).await?;
            (line.links, report.links) = (reading.links.len(), reading.links);
            return Ok(());
        }
        let reading = self.read(response, (url, leased), options).await?;
        let Reading { links, title, fingerprint, text, redirect, validators, .. } = reading;
        *skipped = reading.skipped;
        line.directives = reading.directives.words();
        line.problems = self.remarks(&reading.remarks, url).await?;
        line.problems.extend(reading.problems);
        line.problems.extend(unread(response));
        report.changed = reading::has_changed(
            leased.fingerprint.as_deref(),
            fingerprint.as_deref(),
            options.reading.change,
        );
        if let (Some(true), Some(text)) = (report.changed, &text) {
            let key = text_key(&leased.collection, &leased.url);
            let before = self.frontier.noted(&[key]).await?.pop().flatten();
            let before = before.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
            line.redirect_before = reading::redirected_to(&before).map(str::to_owned);
            (report.difference, line.more) = reading::difference(&before, &kept_text(text));
        }
        line.fingerprint.clone_from(&fingerprint);
        (line.title, line.redirect, line.links) = (title, redirect, links.len());
        (report.links, report.fingerprint, report.text, report.validators) =
            (links, fingerprint, text, validators);
        Ok(())
    }
}

/// Whether the queue will leave a host alone after this answer.
pub(crate) fn wants_rest(answer: &std::result::Result<Response, Failure>) -> bool {
    match answer {
        Ok(response) => is_refusal(response.status) || broken(response) == Some(CutOff::Time),
        Err(failure) => matches!(kind(failure), FetchError::Timeout | FetchError::Network),
    }
}

/// Why an answer is none, though it began as one. Whoever refuses has said so with the status: what comes after it is no page,
/// and need not be whole.
pub(crate) fn broken(response: &Response) -> Option<CutOff> {
    let is_broken = |cut: &CutOff| matches!(cut, CutOff::Broken | CutOff::Time | CutOff::BadEncoding);
    response.cut_off.filter(|cut| !is_refusal(response.status) && is_broken(cut))
}

/// Whether there was no room for an answer: nobody can help that, so that it is asked for in another turn and loses no try.
fn crowded_out(answer: &std::result::Result<Response, Failure>) -> Option<CutOff> {
    let response = answer.as_ref().ok().filter(|response| (200..300).contains(&response.status))?;
    response.cut_off.filter(|cut| *cut == CutOff::NoRoom)
}

/// Why nothing is read of an answer that has come whole, if so.
fn unread(response: &Response) -> Option<String> {
    let coding = response.undecoded.as_ref().filter(|_| (200..300).contains(&response.status))?;
    Some(format!("its content encoding {coding:?} is not known, so that nobody can read it"))
}

/// Whether a host answers that it has had enough.
fn is_refusal(status: u16) -> bool {
    matches!(status, 429 | 503)
}

fn begin(leased: &Leased, now: Timestamp) -> PageLine {
    PageLine {
        at: now,
        url: leased.url.clone(),
        collection: leased.collection.clone(),
        seed: leased.seed.clone(),
        depth: leased.depth,
        failures: leased.failures,
        priority: f64::from(leased.priority.thousandths()) / 1000.0,
        ..PageLine::default()
    }
}

fn request(url: &FetchUrl, leased: &Leased) -> Request {
    let mut request = Request::new(url.clone());
    request.etag.clone_from(&leased.validators.etag);
    request.last_modified.clone_from(&leased.validators.last_modified);
    if leased.how == How::Listing {
        request.body_bytes = Some(forager_fetch::sitemap::MAX_BYTES as u64 + 1);
    }
    request
}

fn come(leased: &Leased) -> Come {
    Come { how: leased.how, is_start: leased.depth == 0 && leased.how != How::Listing }
}

fn listing(page: &FetchUrl, text: &str) -> Option<Link> {
    let url = page.join(text).ok()?;
    Some(Link { url: url.into_string(), how: How::Listing, ..Link::default() })
}

fn kind(failure: &Failure) -> FetchError {
    match failure.class() {
        Class::TimedOut(_) => FetchError::Timeout,
        Class::Dns | Class::Connect | Class::Tls | Class::Protocol => FetchError::Network,
        Class::AddressRefused => FetchError::Address,
        Class::Url | Class::HeadersTooLarge => FetchError::Refused,
    }
}

fn millis(later: Timestamp, earlier: Timestamp) -> u64 {
    u64::try_from(later.duration_since(earlier).as_millis()).unwrap_or_default()
}
