//! A look at a single page, for those who want to see what a crawl would see.

use std::sync::Arc;

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::http::{Failure, Http, HttpConfig, Request, Response};
use forager_fetch::robots::Rules;
use forager_frontier::host::{Gate, to_millis};
use forager_frontier::settings::Politeness;
use forager_frontier::verbs::{FetchRow, Note, Terms, Visit};
use forager_frontier::{Frontier as _, Memory, Moment, Settings};
use jiff::Timestamp;

use crate::clock::Clock;
use crate::config::Result;
use crate::obstacle::{is_rate_limited, obstacle};
use crate::pace::Pace;
use crate::robots::{Found, Office, Turn};
use crate::told::NotFetched;
use crate::visit::wants_rest;

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 10;
/// How long somebody who looks waits for a host that has failed, or asked for a pause.
const PATIENCE: Interval = Interval::MINUTE;

/// Fetches single pages, as politely as a crawl: with a look at robots.txt, a pause between two requests to a host that is
/// as long as the host asks for, and a longer one after it has failed or asked to be left alone.
pub struct Scout {
    http: Http,
    office: Office,
    pace: Arc<Pace>,
    /// What it learns of hosts, and who may be asked when. It is forgotten with the scout.
    frontier: Arc<Memory>,
    politeness: Politeness,
    clock: Clock,
    on_wait: OnWait,
}

/// Is told of each wait for a host before it begins: which, how long, and why.
pub type OnWait = fn(host: &str, wait: Interval, gate: Gate);

/// What became of a look.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Where the page is, redirects followed.
    pub url: FetchUrl,
    /// The redirects on the way.
    pub redirects: Vec<FetchUrl>,
    /// What robots.txt says of it.
    pub robots: String,
    /// The answer; an error if there was none, or may be none.
    pub answer: std::result::Result<Response, Unseen>,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unseen {
    /// robots.txt forbids it.
    #[error("robots.txt forbids {url}: {rule}")]
    Forbidden {
        /// The page.
        url: String,
        /// The rule.
        rule: String,
    },
    /// robots.txt cannot be had, so that nobody knows.
    #[error("{url} is not fetched: {why}")]
    Unknown {
        /// The page.
        url: String,
        /// What became of robots.txt.
        why: String,
        /// Whether whoever has it answered 429 or 503.
        is_rate_limited: bool,
    },
    /// No connection may lead there.
    #[error("{0}")]
    Refused(Arc<str>),
    /// The host is to be left alone for longer than anybody waits here.
    #[error("{url} is not fetched: {host} failed or asked for a pause, and is left alone until {until}")]
    Resting {
        /// The page.
        url: String,
        /// Its host.
        host: String,
        /// Until when.
        until: Moment,
    },
    /// There was none.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The last of too many redirects.
    #[error("{url} redirects too often")]
    TooManyRedirects {
        /// Where it began.
        url: String,
    },
}

impl Unseen {
    /// Whether to try again later may help.
    pub fn may_pass(&self) -> bool {
        !matches!(self, Self::Forbidden { .. } | Self::Refused(_))
    }

    /// Whether it is because a host wants to be asked less.
    pub fn is_rate_limited(&self) -> bool {
        matches!(self, Self::Resting { .. } | Self::Unknown { is_rate_limited: true, .. })
    }
}

impl Scout {
    /// A scout who spares hosts like this.
    pub fn new(
        http: HttpConfig,
        product_token: String,
        politeness: Politeness,
        on_wait: OnWait,
    ) -> Result<Self> {
        let (http, clock) = (Http::new(http)?, Clock::default());
        let pace = Arc::new(Pace::new(clock));
        let frontier = Arc::new(Memory::new(Settings { politeness, ..Settings::default() })?);
        let office = Office::new(
            frontier.clone(),
            http.clone(),
            (clock, pace.clone()),
            (product_token, Interval::MINUTE),
        );
        Ok(Self { http, office, pace, frontier, politeness, clock, on_wait })
    }

    /// What robots.txt says of the site of a URL.
    pub async fn rules(&self, url: &FetchUrl) -> Result<std::result::Result<Arc<Rules>, Unseen>> {
        Ok(self.found(url).await?.and_then(|found| match found.refused {
            Some(refused) => Err(Unseen::Refused(refused)),
            None => Ok(found.rules),
        }))
    }

    /// The rules of a site. Asking for them takes a turn at its host.
    async fn found(&self, url: &FetchUrl) -> Result<std::result::Result<Found, Unseen>> {
        loop {
            if !self.office.knows(url).await
                && let Err(unseen) = self.turn(url).await?
            {
                return Ok(Err(unseen));
            }
            // When the host may be asked has been decided; robots.txt that moves within it waits once more.
            let Politeness { delay, in_flight: most_in_flight, .. } = self.politeness;
            let terms = Terms { least_gap: to_millis(delay), most_in_flight };
            let turn = Turn { terms, round: self.pace.begin_round() };
            if let Some(found) = self.office.rules(url, turn).await? {
                return Ok(Ok(found));
            }
        }
    }

    /// Waits until a host may be asked for a page.
    async fn turn(&self, url: &FetchUrl) -> Result<std::result::Result<(), Unseen>> {
        let host = url.host_key();
        let give_up = Moment::of(PATIENCE.after(self.clock.now()));
        loop {
            let now = self.clock.now();
            match self.frontier.visit(host, PATIENCE, now).await? {
                Visit::Welcome(token) => {
                    // Nobody else is under way, and robots.txt may lead to the same host again.
                    self.frontier.leave(&[(host.to_owned(), token)], now).await?;
                    return Ok(Ok(()));
                }
                Visit::Closed(until, Gate::BackOff) if until > give_up => {
                    let (url, host) = (url.as_str().to_owned(), host.to_owned());
                    return Ok(Err(Unseen::Resting { url, host, until }));
                }
                Visit::Closed(until, gate) => {
                    let wait = until.timestamp().duration_since(now);
                    (self.on_wait)(host, Interval::from_secs_f64(wait.as_secs_f64()), gate);
                    self.clock.sleep_until(until.timestamp()).await;
                }
            }
        }
    }

    /// Sends a request, and writes down when, and whether its host is to be left alone.
    async fn get(&self, request: &Request) -> Result<std::result::Result<Response, Failure>> {
        let started = self.clock.now();
        let answer = self.http.get(request).await;
        let ended = self.clock.now();
        let row = FetchRow {
            started: Moment::of(started),
            ended: Moment::of(ended),
            host: request.url.host_key().to_owned(),
            url: request.url.as_str().to_owned(),
            back_off_until: wants_rest(&answer).then(|| self.rest(&answer, ended)),
            ..FetchRow::default()
        };
        self.frontier.note(&[Note::Fetch(row)], ended).await?;
        Ok(answer)
    }

    /// Until when a host is left alone that has failed, or asked for a pause.
    fn rest(&self, answer: &std::result::Result<Response, Failure>, now: Timestamp) -> Moment {
        let asked = answer.as_ref().ok().and_then(|response| response.retry_after(now)).unwrap_or_default();
        Moment::of(asked.max(self.politeness.back_off).after(now))
    }

    /// Looks at a page. `body_bytes` is the most that is read of it, if not the usual.
    pub async fn look(&self, url: &FetchUrl, body_bytes: Option<u64>) -> Result<Seen> {
        let mut seen = Seen {
            url: url.clone(),
            redirects: Vec::new(),
            robots: String::new(),
            answer: Err(Unseen::TooManyRedirects { url: url.as_str().to_owned() }),
        };
        for _ in 0..=MOST_REDIRECTS {
            let found = match self.found(&seen.url).await? {
                Ok(found) => found,
                Err(unseen) => return Ok(Seen { answer: Err(unseen), ..seen }),
            };
            let ruling = found.rules.verdict(&seen.url);
            seen.robots = ruling.to_string();
            if let Some(not_fetched) = obstacle(&found, &ruling) {
                let (url, rule) = (seen.url.as_str().to_owned(), seen.robots.clone());
                let unseen = match (not_fetched, found.refused) {
                    (_, Some(refused)) => Unseen::Refused(refused),
                    (NotFetched::Robots, None) => Unseen::Forbidden { url, rule },
                    (NotFetched::RobotsUnreachable | NotFetched::AddressRefused, None) => {
                        let is_rate_limited = is_rate_limited(&found.rules);
                        Unseen::Unknown { url, why: rule, is_rate_limited }
                    }
                };
                return Ok(Seen { answer: Err(unseen), ..seen });
            }
            let mut request = Request::new(seen.url.clone());
            request.body_bytes = body_bytes;
            if let Err(unseen) = self.turn(&seen.url).await? {
                return Ok(Seen { answer: Err(unseen), ..seen });
            }
            let answer = self.get(&request).await?;
            let target = answer.as_ref().ok().filter(|answer| (300..400).contains(&answer.status));
            let target = target.and_then(Response::location).and_then(|to| seen.url.join(&to).ok());
            let Some(target) = target else {
                seen.answer = answer.map_err(Unseen::Failed);
                return Ok(seen);
            };
            seen.redirects.push(std::mem::replace(&mut seen.url, target));
        }
        Ok(seen)
    }
}
