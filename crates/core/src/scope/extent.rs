//! Which URLs a profile covers, relative to a seed.

use core::fmt;

use jiff::Timestamp;
use regex::RegexSet;
use serde::{Deserialize, Serialize};

use super::config::{Profile, ScopeError};
pub use super::traps::Traps;
use crate::url::Identity;

/// Which URLs are in scope, relative to the seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The seed alone.
    Page,
    /// What lies below the path of the seed.
    Prefix,
    /// The host and port of the seed.
    Host,
    /// The host of the seed, with or without `www.`.
    #[default]
    Domain,
    /// Everything.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Page => "page",
            Self::Prefix => "prefix",
            Self::Host => "host",
            Self::Domain => "domain",
            Self::Any => "any",
        })
    }
}

/// How far from the seed a URL was found. The lesser place is the nearer one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Links followed since the seed, which has depth 0.
    pub depth: u32,
    /// Links followed since the harvest last left the domain of the seed; 0 on it.
    pub hops_off_domain: u32,
}

/// A URL as it is compared with a seed: scheme, default port and a trailing slash do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Comparable<'a> {
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Comparable<'a> {
    pub(super) fn of(url: &'a Identity) -> Self {
        let path = url.path();
        Self { authority: url.authority(), path: path.strip_suffix('/').unwrap_or(path), query: url.query() }
    }

    /// Whether `other` lies at or below this path; queries do not count.
    pub(super) fn is_prefix_of(&self, other: &Self) -> bool {
        let rest = other.path.strip_prefix(self.path);
        self.authority == other.authority && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(super) fn path_length(&self) -> usize {
        self.path.len()
    }
}

/// The part of a profile that says which URLs are in scope.
#[derive(Clone, Debug)]
pub(super) struct Extent {
    kind: Kind,
    depth: Option<u32>,
    hops_off_domain: u32,
    schemes: Vec<String>,
    max_url_length: usize,
    traps: Traps,
    include: Option<RegexSet>,
    exclude: Option<RegexSet>,
    registrable_domain: bool,
}

/// Why a URL is in scope of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// It is of this kind.
    Kind(Kind),
    /// It is off the domain, but not farther than allowed.
    HopsOffDomain(u32),
    /// It lists pages of the site.
    Listing,
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => write!(f, "scope {kind}"),
            Self::HopsOffDomain(hops) => write!(f, "{hops} hops off the domain"),
            Self::Listing => f.write_str("lists pages of the site"),
        }
    }
}

/// Why a URL is not in scope of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside<'c> {
    /// Its scheme is not among those of the profile.
    Scheme,
    /// It is longer than this.
    UrlLength(usize),
    /// It is deeper than this.
    Depth(u32),
    /// It is not of this kind.
    Kind(Kind),
    /// It is farther off the domain than this.
    HopsOffDomain(u32),
    /// It matches this pattern of `exclude`.
    Excluded(&'c str),
    /// It matches no pattern of `include`.
    NotIncluded,
    /// Its path has more segments than this.
    TooManySegments(usize),
    /// A segment stands in its path more often than this.
    RepeatedSegment(usize),
    /// The same segments follow each other in its path more often than this.
    RepeatedSequence(usize),
    /// Its query has more parameters than this.
    TooManyParams(usize),
    /// It carries a session id of this name.
    SessionId(&'static str),
    /// It is a page of a calendar before this year.
    CalendarBefore(u16),
    /// It is a page of a calendar after this year.
    CalendarAfter(u16),
}

impl fmt::Display for Outside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => f.write_str("scheme not allowed"),
            Self::UrlLength(limit) => write!(f, "URL longer than {limit} bytes"),
            Self::Depth(limit) => write!(f, "deeper than {limit}"),
            Self::Kind(kind) => write!(f, "not in scope {kind}"),
            Self::HopsOffDomain(limit) => write!(f, "more than {limit} hops off the domain"),
            Self::Excluded(pattern) => write!(f, "excluded by {pattern}"),
            Self::NotIncluded => f.write_str("matches no include pattern"),
            Self::TooManySegments(limit) => write!(f, "trap: more than {limit} path segments"),
            Self::RepeatedSegment(limit) => write!(f, "trap: a path segment more than {limit} times"),
            Self::RepeatedSequence(limit) => {
                write!(f, "trap: the same path segments more than {limit} times in a row")
            }
            Self::TooManyParams(limit) => write!(f, "trap: more than {limit} query parameters"),
            Self::SessionId(name) => write!(f, "trap: session id {name}"),
            Self::CalendarBefore(year) => write!(f, "trap: calendar before {year}"),
            Self::CalendarAfter(year) => write!(f, "trap: calendar after {year}"),
        }
    }
}

impl Extent {
    pub(super) fn new(profile: &Profile, registrable_domain: bool) -> Result<Self, ScopeError> {
        if let Some(scheme) =
            profile.schemes.iter().find(|scheme| !matches!(scheme.as_str(), "http" | "https"))
        {
            let (profile, scheme) = (profile.id.clone(), scheme.clone());
            return Err(ScopeError::Scheme { profile, scheme });
        }
        Ok(Self {
            kind: profile.scope,
            depth: profile.depth,
            hops_off_domain: profile.hops_off_domain,
            schemes: profile.schemes.clone(),
            max_url_length: profile.max_url_length,
            traps: profile.traps,
            include: patterns(&profile.id, "include", &profile.include)?,
            exclude: patterns(&profile.id, "exclude", &profile.exclude)?,
            registrable_domain,
        })
    }

    /// The guards against sites that never end.
    pub(super) fn traps(&self) -> Traps {
        self.traps
    }

    /// Whether `url`, found at `place`, is in scope relative to `seed` at `now`.
    pub(super) fn covers(
        &self,
        seed: &Identity,
        url: &Identity,
        place: Place,
        now: Timestamp,
    ) -> Result<Within, Outside<'_>> {
        self.check_form(url)?;
        self.check_depth(place)?;
        let within = self.check_kind(seed, url, place)?;
        self.check_patterns(seed, url)?;
        self.traps.check(url, now)?;
        Ok(within)
    }

    fn check_form(&self, url: &Identity) -> Result<(), Outside<'_>> {
        if !self.schemes.iter().any(|scheme| scheme == url.scheme()) {
            return Err(Outside::Scheme);
        }
        if url.as_str().len() > self.max_url_length {
            return Err(Outside::UrlLength(self.max_url_length));
        }
        Ok(())
    }

    fn check_depth(&self, place: Place) -> Result<(), Outside<'_>> {
        match self.depth {
            Some(limit) if place.depth > limit => Err(Outside::Depth(limit)),
            _ => Ok(()),
        }
    }

    fn check_kind(&self, seed: &Identity, url: &Identity, place: Place) -> Result<Within, Outside<'_>> {
        let fits = match self.kind {
            Kind::Page => Comparable::of(seed) == Comparable::of(url),
            Kind::Prefix => Comparable::of(seed).is_prefix_of(&Comparable::of(url)),
            Kind::Host => seed.authority() == url.authority(),
            Kind::Domain => share_domain(seed, url, self.registrable_domain),
            Kind::Any => true,
        };
        if fits {
            return Ok(Within::Kind(self.kind));
        }
        if self.hops_off_domain == 0 || share_domain(seed, url, self.registrable_domain) {
            return Err(Outside::Kind(self.kind));
        }
        if place.hops_off_domain > self.hops_off_domain {
            return Err(Outside::HopsOffDomain(self.hops_off_domain));
        }
        Ok(Within::HopsOffDomain(place.hops_off_domain))
    }

    fn check_patterns(&self, seed: &Identity, url: &Identity) -> Result<(), Outside<'_>> {
        // Few URLs match, and whether one does is told faster than by what.
        let exclude = self.exclude.as_ref().filter(|set| set.is_match(url.as_str()));
        let excluded = exclude.and_then(|set| {
            let index = set.matches(url.as_str()).into_iter().next()?;
            Some(set.patterns()[index].as_str())
        });
        if let Some(pattern) = excluded {
            return Err(Outside::Excluded(pattern));
        }
        // The seed itself always counts as included: without it the harvest would find nothing.
        let included = self.include.as_ref().is_none_or(|set| set.is_match(url.as_str()));
        if included || Comparable::of(seed) == Comparable::of(url) {
            return Ok(());
        }
        Err(Outside::NotIncluded)
    }
}

/// Whether two URLs are on one domain.
pub(super) fn share_domain(a: &Identity, b: &Identity, registrable: bool) -> bool {
    if a.domain() == b.domain() {
        return true;
    }
    registrable && matches!((a.registrable_domain(), b.registrable_domain()), (Some(a), Some(b)) if a == b)
}

fn patterns(profile: &str, list: &'static str, patterns: &[String]) -> Result<Option<RegexSet>, ScopeError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    match crate::patterns::compile(patterns) {
        Ok(set) => Ok(Some(set)),
        Err(cause) => {
            Err(ScopeError::Pattern { profile: profile.to_owned(), list, cause: cause.to_string() })
        }
    }
}
