//! What is kept of robots.txt, where, and what the log says of it.

use std::fmt;

use forager_core::url::FetchUrl;
use forager_fetch::robots::{Copy, MAX_BYTES, Robots, Rules};
use forager_frontier::{Frontier, Moment};
use serde::Serialize;

use crate::config::Result;
use crate::obstacle::is_out_of_reach;

/// What the robots.txt that is known says of a URL, and where that is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    /// The address of the file.
    pub source: String,
    /// Whether the URL may be fetched.
    pub allowed: bool,
    /// The line that decides, or what stands for it.
    pub rule: String,
    /// When the file was asked for last.
    pub asked: Moment,
    /// Until when what is known of it counts.
    pub expires: Moment,
    /// Whether it could not be had, so that nobody can tell what it says: then this is no verdict, and changes soon.
    #[serde(skip)]
    pub is_out_of_reach: bool,
}

/// What is kept of the robots.txt of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) copy: Copy,
    /// The name under which it was asked for: another one may be answered otherwise, and other rules are for it.
    pub(super) asked_as: String,
}

impl Kept {
    /// As it is kept: the name stands behind the copy.
    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = postcard::to_allocvec(&self.copy).ok()?;
        bytes.extend(self.asked_as.as_bytes());
        Some(bytes)
    }

    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (copy, name) = postcard::take_from_bytes(bytes).ok()?;
        Some(Self { copy, asked_as: String::from_utf8_lossy(name).into_owned() })
    }
}

/// What is kept of the robots.txt of an origin.
pub(super) async fn kept(frontier: &dyn Frontier, origin: &str) -> Result<Option<Kept>> {
    let kept = frontier.noted(&[note_key(origin)]).await?.pop().flatten();
    Ok(kept.and_then(|bytes| Kept::of_bytes(&bytes)))
}

/// The sitemaps that the robots.txt that is for a URL names, as far as it is known.
pub(crate) async fn named(
    frontier: &dyn Frontier,
    url: &FetchUrl,
    product_token: &str,
) -> Result<Vec<FetchUrl>> {
    let rules = kept(frontier, &origin(url)).await?.map(|kept| kept.copy.rules(product_token));
    let named = rules.as_ref().and_then(Rules::robots).map(Robots::sitemaps).unwrap_or_default();
    Ok(named.iter().filter_map(|text| url.join(text).ok()).collect())
}

/// What the queue knows of the robots.txt that is for a URL; none if it was never asked for.
pub async fn known(frontier: &dyn Frontier, url: &FetchUrl, product_token: &str) -> Result<Option<Word>> {
    Ok(kept(frontier, &origin(url)).await?.map(|Kept { copy, .. }| {
        let ruling = copy.rules(product_token).verdict(url);
        Word {
            source: robots_url(url),
            allowed: ruling.allowed,
            rule: ruling.to_string(),
            asked: Moment::of(copy.fetched_at),
            expires: Moment::of(copy.expires),
            is_out_of_reach: is_out_of_reach(&ruling),
        }
    }))
}

/// What the log of fetches says of a request for robots.txt: for whom it was, and what robots.txt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// The site that it was for.
    pub origin: &'a str,
    /// The name under which it was asked for, by which its rules count from then on; none if the log does not have it.
    pub asked_as: Option<&'a str>,
    /// None for a redirect that was followed: the last request says it.
    pub came_to: Option<CameTo<'a>>,
}

/// What asking for robots.txt came to, redirects followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CameTo<'a> {
    /// A file, and the key that its text is kept under.
    File(&'a str),
    /// No file, in the words of [`LastTry`](forager_fetch::robots::LastTry). The last status alone does not say it: a redirect may
    /// lead nowhere, to whom we do not go, or be one too many.
    Nothing(&'a str),
}

/// Stands in a label before the name.
const AS: &str = " as ";
/// Stands in a label before why there is no file.
const NO_FILE: &str = ", no file: ";

impl<'a> Label<'a> {
    /// The label that a text is; none if it is about something else.
    pub fn of(text: &'a str) -> Option<Self> {
        let rest = text.strip_prefix("for ")?;
        let (whose, came_to) = if let Some((whose, words)) = rest.split_once(NO_FILE) {
            (whose, Some(CameTo::Nothing(words)))
        } else if let Some((whose, key)) = rest.split_once(": ") {
            (whose, Some(CameTo::File(key)))
        } else {
            (rest, None)
        };
        let (origin, asked_as) = whose.split_once(AS).map_or((whose, None), |(of, name)| (of, Some(name)));
        Some(Self { origin, asked_as, came_to })
    }
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "for {}", self.origin)?;
        if let Some(name) = self.asked_as {
            write!(f, "{AS}{name}")?;
        }
        match self.came_to {
            Some(CameTo::File(key)) => write!(f, ": {key}"),
            Some(CameTo::Nothing(words)) => write!(f, "{NO_FILE}{words}"),
            None => Ok(()),
        }
    }
}

/// The scheme, host and port that one robots.txt is for. A final dot of the host makes no other one of it.
pub fn origin(url: &FetchUrl) -> String {
    match url.port() {
        Some(port) => format!("{}://{}:{port}", url.scheme(), url.host_key()),
        None => format!("{}://{}", url.scheme(), url.host_key()),
    }
}

/// The address of the robots.txt that is for a URL.
pub fn robots_url(url: &FetchUrl) -> String {
    format!("{}/robots.txt", origin(url))
}

/// The key under which the queue keeps the robots.txt of an origin.
pub fn note_key(origin: &str) -> String {
    format!("robots {origin}")
}

/// The key under which a text of robots.txt is kept as evidence.
pub fn file_key(body: &[u8]) -> String {
    key_of_file(&file_name(body))
}

/// The key under which a text is kept that is known by this.
pub fn key_of_file(name: &str) -> String {
    format!("robots.txt {name}")
}

/// What a text of robots.txt is known by.
pub fn file_name(body: &[u8]) -> String {
    let body = &body[..body.len().min(MAX_BYTES)];
    blake3::hash(body).to_hex()[..32].to_owned()
}
