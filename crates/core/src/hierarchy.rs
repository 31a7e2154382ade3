//! How important a page is, from how it was found: 0.000 to 1.000.
//!
//! | how the page was found | priority |
//! |---|---|
//! | homepage | 1.000 |
//! | link in the header or navigation of the homepage | 0.900 |
//! | other link or redirect from a page of the same domain | 0.8 × that page, at least 0.100 |
//! | sitemap, or another list of pages | 0.500 |
//! | anything else; a source that is unknown or on another domain | 0.100 |
//!
//! A page is only ever raised. Raising it does not by itself lift the pages it linked earlier:
//! they rise when its links are seen again.

use core::fmt;
use core::str::FromStr;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::url::{FetchUrl, Identity, IdentityOptions, UrlError};

/// A priority in thousandths. Arithmetic is in whole numbers, so nothing drifts.
///
/// ```
/// # use forager_core::hierarchy::Priority;
/// let mut chain = vec![Priority::MAX];
/// for _ in 0..4 {
///     chain.push(chain[chain.len() - 1].inherited());
/// }
/// assert_eq!(chain.iter().map(ToString::to_string).collect::<Vec<_>>(),
///     ["1.000", "0.800", "0.640", "0.512", "0.410"]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u16);

impl Priority {
    /// What every page has in `fifo`: no priority.
    pub const ZERO: Self = Self(0);
    /// The least that a page found in any way has.
    pub const LEAST: Self = Self(100);
    /// A page of the sitemap, or of another list.
    pub const SITEMAP: Self = Self(500);
    /// A link in the header or navigation of the homepage.
    pub const HEADER: Self = Self(900);
    /// The most that `linked` gives a page other than the homepage.
    pub const BELOW_MAX: Self = Self(999);
    /// The homepage.
    pub const MAX: Self = Self(1000);

    /// So many thousandths, at most 1000.
    pub fn from_thousandths(thousandths: u16) -> Option<Self> {
        (thousandths <= Self::MAX.0).then_some(Self(thousandths))
    }

    /// The priority in thousandths.
    pub fn thousandths(self) -> u16 {
        self.0
    }

    /// What a page linked from one of this priority gets: 0.8 of it, rounded half up, at least
    /// [`Priority::LEAST`].
    #[must_use]
    pub fn inherited(self) -> Self {
        Self((self.0 * 8 + 5) / 10).max(Self::LEAST)
    }

    /// This priority as a rank among `total_pages`, as people read it: the homepage of a site of
    /// 1,700 pages has rank 1700.
    pub fn rank(self, total_pages: u64) -> u64 {
        let rank = (u128::from(self.0) * u128::from(total_pages) + 500) / 1000;
        u64::try_from(rank).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Serialize for Priority {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1000.0)
    }
}

/// Which priorities a job goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The table above.
    #[default]
    Hierarchy,
    /// In order of arrival: every page has priority 0.
    Fifo,
    /// The table, and 0.001 more for each further page that links here.
    Linked,
}

/// A text that names no [`Mode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a mode; take hierarchy, fifo or linked")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text {
            "hierarchy" => Ok(Self::Hierarchy),
            "fifo" => Ok(Self::Fifo),
            "linked" => Ok(Self::Linked),
            other => Err(UnknownMode(other.to_owned())),
        }
    }
}

/// How a page was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// By a link, or a redirect, whose source page has this priority; none if the source is unknown
    /// or on another domain.
    Link {
        /// The priority of the page that leads to it.
        source: Option<Priority>,
        /// Whether the link stands in the header or navigation of the homepage.
        in_homepage_header: bool,
    },
    /// In a sitemap, or another list of pages such as a feed.
    Sitemap,
    /// In any other way.
    Otherwise,
}

/// The priority of a page that was found this way, before it is merged with what it had.
pub fn priority(is_homepage: bool, found: Found) -> Priority {
    match found {
        _ if is_homepage => Priority::MAX,
        Found::Link { source: Some(_), in_homepage_header: true } => Priority::HEADER,
        Found::Link { source: Some(source), .. } => source.inherited(),
        Found::Sitemap => Priority::SITEMAP,
        Found::Link { source: None, .. } | Found::Otherwise => Priority::LEAST,
    }
}

/// The priority that orders the queue in `mode`, for a page with so many distinct pages linking to it.
pub fn effective(mode: Mode, priority: Priority, link_sources: usize) -> Priority {
    match mode {
        Mode::Fifo => Priority::ZERO,
        Mode::Hierarchy => priority,
        Mode::Linked if priority == Priority::MAX => priority,
        Mode::Linked => {
            let further = u16::try_from(link_sources.saturating_sub(1)).unwrap_or(u16::MAX);
            Priority(priority.0.saturating_add(further)).min(Priority::BELOW_MAX)
        }
    }
}

/// Where a task stands in the order of claims: smaller is sooner.
///
/// Effective priority descending, creation time ascending, then insertion sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimOrder<T: Ord>(core::cmp::Reverse<Priority>, T, u64);

impl<T: Ord> ClaimOrder<T> {
    /// The place of a task with this effective priority, creation time and sequence number.
    pub fn new(effective: Priority, created: T, sequence: u64) -> Self {
        Self(core::cmp::Reverse(effective), created, sequence)
    }
}

/// What a link is called in a [`Sighting`].
const LINK: &str = "link";

/// One sighting of a page.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sighting {
    /// The page.
    pub url: String,
    /// How it was found: `link`, `redirect`, `sitemap`, `listing`, or anything else.
    pub source_type: String,
    /// The page that leads to it.
    #[serde(default)]
    pub source: Option<String>,
    /// Whether the link stands in the header or navigation of that page.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub in_header: bool,
}

/// A sighting that names no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub struct SightingError {
    /// The field at fault: `url` or `source`.
    pub field: &'static str,
    /// What is wrong with it.
    pub cause: UrlError,
}

/// The pages seen so far and their priorities.
///
/// Pages are told apart by host, path and query: `https://acme.com/`, `http://ACME.com` and
/// `acme.com/` are one. A URL with a query is a page of its own, and not the homepage.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    mode: Mode,
    pages: BTreeMap<String, PageState>,
}

#[derive(Clone, Debug, Default)]
struct PageState {
    priority: Priority,
    /// The distinct pages that link here; kept only where the mode asks for them.
    sources: BTreeSet<String>,
}

impl Pages {
    /// No pages yet.
    pub fn new(mode: Mode) -> Self {
        Self { mode, pages: BTreeMap::new() }
    }

    /// How many pages have been seen.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether no page has been seen.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Takes in a sighting, and returns the effective priority of its page after it.
    pub fn see(&mut self, sighting: &Sighting) -> Result<Priority, SightingError> {
        let page = page("url", &sighting.url)?;
        let source = sighting.source.as_deref().map(|source| self::page("source", source)).transpose()?;
        let found = self.found(sighting, &page, source.as_ref());
        let new = priority(page.is_homepage(), found);
        let state = self.pages.entry(page.without_scheme().to_owned()).or_default();
        state.priority = state.priority.max(new);
        if self.mode == Mode::Linked
            && sighting.source_type == LINK
            && let Some(source) = source
        {
            // A redirect leads here too, but nobody has chosen to link.
            state.sources.insert(source.without_scheme().to_owned());
        }
        Ok(effective(self.mode, state.priority, state.sources.len()))
    }

    fn found(&self, sighting: &Sighting, page: &Identity, source: Option<&Identity>) -> Found {
        match sighting.source_type.as_str() {
            "sitemap" | "listing" => Found::Sitemap,
            LINK | "redirect" => {
                let source = source.filter(|source| source.domain() == page.domain());
                let known = source.and_then(|source| self.pages.get(source.without_scheme()));
                Found::Link {
                    source: known.map(|state| state.priority),
                    in_homepage_header: sighting.in_header && source.is_some_and(Identity::is_homepage),
                }
            }
            _ => Found::Otherwise,
        }
    }
}

fn page(field: &'static str, text: &str) -> Result<Identity, SightingError> {
    FetchUrl::parse_lenient(text)
        .map(|url| url.identity(&IdentityOptions::default()))
        .map_err(|cause| SightingError { field, cause })
}
