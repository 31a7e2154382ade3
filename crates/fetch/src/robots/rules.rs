//! A decision for every state of the file, with its reason.

use core::fmt;

use forager_core::url::FetchUrl;
use jiff::Timestamp;

use super::{LastTry, Robots, Rule, is_robots_file};

/// What a crawler may fetch of a host, whatever became of its robots.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rules {
    /// There is a file.
    File {
        /// Its rules.
        robots: Robots,
        /// When they were read, if the file has been out of reach since and they are old.
        copy_of: Option<Timestamp>,
    },
    /// There is none, or it is taken for such: everything may be fetched.
    Missing {
        /// Why.
        last: LastTry,
        /// Since when nobody could tell, if that is why.
        unreachable_since: Option<Timestamp>,
    },
    /// Nobody can tell, and no earlier copy is known: nothing may be fetched.
    Unreachable {
        /// Since when.
        since: Timestamp,
        /// What happened the last time.
        last: LastTry,
    },
}

impl Rules {
    /// Whether `url` may be fetched, and why.
    pub fn verdict(&self, url: &FetchUrl) -> Ruling {
        if is_robots_file(url) {
            return Ruling { allowed: true, why: Why::RobotsFile };
        }
        match self {
            Self::File { robots, copy_of } => {
                let verdict = robots.verdict(url);
                Ruling { allowed: verdict.allowed, why: Why::File { rule: verdict.rule, copy_of: *copy_of } }
            }
            Self::Missing { last, unreachable_since } => {
                let why = Why::Missing { last: last.clone(), unreachable_since: *unreachable_since };
                Ruling { allowed: true, why }
            }
            Self::Unreachable { since, last } => {
                Ruling { allowed: false, why: Why::Unreachable { since: *since, last: last.clone() } }
            }
        }
    }

    /// The file that the rules are from, if there is one: its delay, its sitemaps.
    pub fn robots(&self) -> Option<&Robots> {
        match self {
            Self::File { robots, .. } => Some(robots),
            Self::Missing { .. } | Self::Unreachable { .. } => None,
        }
    }
}

/// Whether a URL may be fetched, and why. Its text is the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// Whether it may be.
    pub allowed: bool,
    /// Why, or why not.
    pub why: Why,
}

/// Why a URL may be fetched, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is robots.txt itself.
    RobotsFile,
    /// A file decided.
    File {
        /// The rule; without one all is allowed.
        rule: Option<Rule>,
        /// When the file was read, if it has been out of reach since.
        copy_of: Option<Timestamp>,
    },
    /// There is no file.
    Missing {
        /// What was found instead.
        last: LastTry,
        /// Since when the file was out of reach, if that is why.
        unreachable_since: Option<Timestamp>,
    },
    /// The file cannot be had.
    Unreachable {
        /// Since when.
        since: Timestamp,
        /// What happened the last time.
        last: LastTry,
    },
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.why.fmt(f)
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RobotsFile => f.write_str("robots.txt itself may always be fetched"),
            Self::File { rule, copy_of } => {
                match rule {
                    Some(rule) => rule.fmt(f)?,
                    None => f.write_str("no rule of robots.txt matches")?,
                }
                copy_of.map_or(Ok(()), |then| write!(f, " (copy of {then}; robots.txt is unreachable now)"))
            }
            Self::Missing { last, unreachable_since: None } => write!(f, "no robots.txt ({last})"),
            Self::Missing { last, unreachable_since: Some(since) } => write!(
                f,
                "robots.txt is unreachable since {since} ({last}): after 30 days that counts as none"
            ),
            Self::Unreachable { since, last } => {
                write!(f, "robots.txt is unreachable since {since} ({last})")
            }
        }
    }
}
