//! A look at a single page, for those who want to see what a crawl would see.

use std::sync::Arc;

use forager_core::url::FetchUrl;
use forager_fetch::http::{Failure, Http, HttpConfig, Request, Response};
use forager_fetch::robots::Rules;
use forager_frontier::Memory;

use crate::clock::Clock;
use crate::config::Result;
use crate::pace::Pace;
use crate::robots::{Found, Office, Turn};
use crate::told::NotFetched;
use crate::visit::obstacle;

/// How many redirects are followed.
const MOST_REDIRECTS: usize = 10;

/// Fetches single pages, as politely as a crawl: with a look at robots.txt, and a pause between requests.
pub struct Scout {
    http: Http,
    office: Office,
    pace: Arc<Pace>,
    least_gap: u64,
}

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
    },
    /// No connection may lead there.
    #[error("{0}")]
    Refused(Arc<str>),
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

impl Scout {
    /// A scout who waits so many milliseconds between two requests to a host.
    pub fn new(http: HttpConfig, product_token: String, least_gap: u64) -> Result<Self> {
        let (http, clock) = (Http::new(http)?, Clock::default());
        let pace = Arc::new(Pace::new(clock));
        // What it learns of hosts is forgotten with it.
        let frontier = Arc::new(Memory::new(forager_frontier::Settings::default())?);
        let office = Office::new(frontier, http.clone(), (clock, pace.clone()), product_token);
        Ok(Self { http, office, pace, least_gap })
    }

    /// What robots.txt says of the site of a URL.
    pub async fn rules(&self, url: &FetchUrl) -> Result<Arc<Rules>> {
        Ok(self.found(url).await?.rules)
    }

    /// The rules of a site. Nobody hands out pages here, so that nobody rests for long.
    async fn found(&self, url: &FetchUrl) -> Result<Found> {
        loop {
            let turn = Turn { least_gap: self.least_gap, round: self.pace.begin_round() };
            if let Some(found) = self.office.rules(url, turn).await? {
                return Ok(found);
            }
        }
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
            let found = self.found(&seen.url).await?;
            let ruling = found.rules.verdict(&seen.url);
            seen.robots = ruling.to_string();
            if let Some(not_fetched) = obstacle(&found, &ruling) {
                let (url, rule) = (seen.url.as_str().to_owned(), seen.robots.clone());
                seen.answer = Err(match (not_fetched, found.refused) {
                    (_, Some(refused)) => Unseen::Refused(refused),
                    (NotFetched::Robots, None) => Unseen::Forbidden { url, rule },
                    (NotFetched::RobotsUnreachable | NotFetched::AddressRefused, None) => {
                        Unseen::Unknown { url, why: rule }
                    }
                });
                return Ok(seen);
            }
            let mut request = Request::new(seen.url.clone());
            request.body_bytes = body_bytes;
            self.pace.turn(seen.url.host(), self.least_gap, self.pace.begin_round()).await;
            let answer = self.http.get(&request).await;
            let target = answer.as_ref().ok().filter(|answer| (300..400).contains(&answer.status));
            let target = target.and_then(Response::location).and_then(|to| seen.url.join(to).ok());
            let Some(target) = target else {
                seen.answer = answer.map_err(Unseen::Failed);
                return Ok(seen);
            };
            seen.redirects.push(std::mem::replace(&mut seen.url, target));
        }
        Ok(seen)
    }
}
