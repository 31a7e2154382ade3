//! Sitemaps: XML, indexes, text, RSS and Atom.
//!
//! [`read`] takes what a server sent, compressed or not, and gives the URLs in it with the time of
//! their last change. A broken file gives what stands before its fault, and says where that is.
//! [`may_list`] tells whether a sitemap may speak for a URL.
//!
//! The limits are those of the protocol. Entities other than the five of XML are not resolved and
//! document types not read, so there is nothing to expand and nothing to fetch.

mod date;
mod decode;
mod findings;
mod place;
mod plain;
mod xml;

use core::fmt;

use forager_core::url::FetchUrl;
use jiff::Timestamp;

pub use place::{Placement, Reason, may_list};

use findings::Findings;

/// How many URLs, and how many sitemaps, one file may list.
pub const MAX_ITEMS: usize = 50_000;

/// How long a file may be when unpacked, in bytes. Who fetches one should ask for one byte more,
/// so that a file that is longer can be told from one that just fits.
pub const MAX_BYTES: usize = 52_428_800;

/// How long a URL may be, in characters: less than 2,048.
pub const MAX_URL_CHARS: usize = 2_047;

/// How many problems of one file are told one by one.
pub const MAX_PROBLEMS: usize = 100;

/// What a file lists.
///
/// ```
/// # use forager_core::url::FetchUrl;
/// # use forager_fetch::sitemap::{self, Kind};
/// let base = FetchUrl::parse("https://example.org/sitemap.xml")?;
/// let body = b"<urlset><url><loc>https://example.org/a</loc><lastmod>2026-02-01</lastmod></url></urlset>";
/// let sitemap = sitemap::read(body, &base, Some("application/xml"));
/// assert_eq!((sitemap.kind, sitemap.urls.len()), (Kind::UrlSet, 1));
/// assert_eq!(sitemap.urls[0].url.as_str(), "https://example.org/a");
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sitemap {
    /// What sort of file it is.
    pub kind: Kind,
    /// The pages in it, in its order.
    pub urls: Vec<Item>,
    /// The further sitemaps in it.
    pub sitemaps: Vec<Item>,
    /// What is wrong with it, at most [`MAX_PROBLEMS`].
    pub problems: Vec<Problem>,
    /// How many problems there are beyond those.
    pub further_problems: usize,
    /// What the protocol does not allow and counts all the same, at most [`MAX_PROBLEMS`]. Apart from the problems, so
    /// that they do not crowd those out.
    pub remarks: Vec<Problem>,
    /// How many remarks there are beyond those.
    pub further_remarks: usize,
}

/// A sort of sitemap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// XML with pages.
    UrlSet,
    /// XML with further sitemaps.
    Index,
    /// One URL a line.
    Text,
    /// An RSS feed, of version 2.0 or 1.0.
    Rss,
    /// An Atom feed.
    Atom,
    /// Nothing that is known, such as a page.
    #[default]
    Unknown,
}

/// One URL of a sitemap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The URL, resolved against that of the sitemap.
    pub url: FetchUrl,
    /// When it is said to have changed last. A hint: many sites say anything.
    pub last_modified: Option<Timestamp>,
}

/// Something wrong with a sitemap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, if it is not the whole file.
    pub at: Option<Position>,
    /// What.
    pub what: Trouble,
}

/// A place in a text, unpacked and in UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The byte in the line, from 1.
    pub column: usize,
}

/// What can be wrong with a sitemap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// Its compression is broken.
    #[error("cannot be unpacked further: {0}")]
    Packing(String),
    /// It is longer than [`MAX_BYTES`]; the rest is not read.
    #[error("is longer than {MAX_BYTES} bytes; the rest is not read")]
    TooLong,
    /// Some of it is no text.
    #[error("has bytes that are no {0} text")]
    Encoding(&'static str),
    /// It is no well-formed XML; the rest is not read.
    #[error("is broken, and the rest is not read: {0}")]
    Xml(String),
    /// It ends in the middle.
    #[error("ends in the middle")]
    EndsEarly,
    /// It is nothing that lists URLs.
    #[error("is no sitemap: {0}")]
    Unknown(String),
    /// It lists more than [`MAX_ITEMS`]; the rest is not read.
    #[error("lists more than {MAX_ITEMS} URLs; the rest is not read")]
    TooMany,
    /// An entry names no URL.
    #[error("entry without a URL")]
    NoUrl,
    /// A URL is longer than [`MAX_URL_CHARS`].
    #[error("URL of more than {MAX_URL_CHARS} characters")]
    UrlTooLong,
    /// A URL is none that can be fetched.
    #[error("{0}")]
    BadUrl(String),
    /// A URL is relative, which the protocol does not allow. It counts as one of the host of the sitemap.
    #[error("{written:?} is relative, and taken for {url}")]
    Relative {
        /// As it is written.
        written: String,
        /// What it is taken for.
        url: String,
    },
    /// A URL is of another scheme, host or port than the sitemap. It is judged like any link.
    #[error("{url} is of another site, for which a sitemap speaks only if the robots.txt there names it")]
    Elsewhere {
        /// The URL.
        url: FetchUrl,
    },
    /// A date cannot be read; its entry counts without it.
    #[error("{0:?} is no date")]
    BadDate(String),
    /// An entity is none of the five of XML; it is left as it is written.
    #[error("unknown entity {0:?}")]
    UnknownEntity(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(Position { line, column }) => write!(f, "line {line}, column {column}: {}", self.what),
            None => self.what.fmt(f),
        }
    }
}

/// Reads a sitemap from `base`. What sort of file it is shows in the file itself; of
/// `content_type`, which is often wrong, only the `charset` counts.
pub fn read(body: &[u8], base: &FetchUrl, content_type: Option<&str>) -> Sitemap {
    let (bytes, packing) = decode::unpacked(body);
    let (text, encoding) = decode::text(&bytes, content_type);
    let mut findings = Findings::new(&text, base);
    let is_cut = packing.is_some();
    for trouble in [packing, encoding].into_iter().flatten() {
        findings.note(None, trouble);
    }
    if text.trim_start().starts_with('<') {
        xml::read(&text, &mut findings);
    } else {
        plain::read(&text, is_cut, &mut findings);
    }
    findings.finish()
}
