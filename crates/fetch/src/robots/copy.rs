//! What a fetch of robots.txt means, and what is kept of it.

use core::fmt;

use forager_core::time::Interval;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::lines::{considered, ended_lines};
use super::{Robots, Rules};

/// The longest that a copy is used without asking again.
const LONGEST_FRESH: Interval = Interval::hours(24);

/// How late the first page may come after a copy that is as old as the longest, because its host asks for so long a wait.
const LATE: Interval = Interval::hours(1);

/// The shortest, whatever the server says: robots.txt must not be fetched along with every page.
const SHORTEST_FRESH_MINUTES: u32 = 5;

/// The wait after the first failure, in minutes; it doubles with each further one.
const FIRST_RETRY_MINUTES: u32 = 10;

/// The longest wait after a failure.
const LONGEST_RETRY: Interval = Interval::hours(6);

/// After so long out of reach the file counts as missing.
const GIVE_UP_AFTER: SignedDuration = SignedDuration::from_hours(30 * 24);

/// And after no fewer failures: two of them a month apart are not a month of failures.
const GIVE_UP_FAILURES: u32 = 10;

/// How much of the words of an error is kept, in characters.
const MAX_ERROR_CHARS: usize = 300;

/// What came of fetching robots.txt, redirects followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The server answered.
    Answer(Answer<'a>),
    /// It redirected more than five times.
    TooManyRedirects,
    /// There was no whole answer: a name or network error, a time-out, a body cut off on its way, a
    /// redirect to where we do not go.
    Failed {
        /// What happened, for people.
        error: String,
    },
}

/// What a server answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The body, decoded.
    pub body: &'a [u8],
    /// Whether reading stopped at a limit of ours, so that the last line may be half a line.
    pub is_cut: bool,
    /// The header `Cache-Control`.
    pub cache_control: Option<&'a str>,
    /// What `Retry-After` asks for.
    pub retry_after: Option<Interval>,
}

/// What is kept of the robots.txt of one scheme, host and port.
///
/// It outlives restarts: what was forbidden stays so, and what was fetched can be accounted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// What is known about the file.
    pub standing: Standing,
    /// The last file that was had, as evidence and for when it cannot be had.
    pub file: Option<File>,
    /// What happened the last time it was asked for.
    pub last: LastTry,
    /// When that was.
    pub fetched_at: Timestamp,
    /// When it is to be asked for again.
    pub expires: Timestamp,
    /// The first of the failures without a success since.
    pub unreachable_since: Option<Timestamp>,
    /// How many they are.
    pub failures: u32,
}

/// The text of a robots.txt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its bytes, at most [`MAX_BYTES`](super::MAX_BYTES) and only whole lines.
    pub body: Vec<u8>,
    /// When they were read, or last confirmed.
    pub read_at: Timestamp,
}

/// What is known about a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is there, and its rules count.
    Found,
    /// It is not, so that everything may be fetched.
    Missing,
    /// Nobody can tell. An earlier file counts on; without one nothing may be fetched.
    Unreachable,
}

/// What happened when robots.txt was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastTry {
    /// An answer with this status code.
    Status(u16),
    /// More than five redirects.
    TooManyRedirects,
    /// No answer, in the words of the error.
    Failed(String),
}

impl fmt::Display for LastTry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::TooManyRedirects => f.write_str("more than 5 redirects"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

/// What to make of a fetch at `now`, given what was known before.
///
/// - 2xx: the file is there. What is no robots.txt, such as a page, has no rules.
/// - 4xx but 429: there is none.
/// - A chain of redirects that leads nowhere: the RFC lets it count as none, for the server answers
///   and may never say anything else (a page to log in at). But where rules were known they are
///   kept like those of a file that is out of reach: a slip of the server does not open it.
/// - 5xx, 429 and no answer: nothing may be fetched, unless an earlier file is known. Trying again
///   does not wait for a day, and after 30 days of failures there counts as being none.
pub fn of_answer(outcome: &Outcome<'_>, previous: Option<&Copy>, now: Timestamp) -> Copy {
    let known = previous.and_then(|copy| copy.file.as_ref());
    let last = last_try(outcome);
    let answer = match outcome {
        Outcome::Answer(answer) => *answer,
        Outcome::TooManyRedirects | Outcome::Failed { .. } => Answer::default(),
    };
    match (&last, known) {
        (LastTry::Status(200..=299), _) => {
            let file = File { body: kept(&answer).to_vec(), read_at: now };
            settled(Standing::Found, Some(file), last, &answer, now)
        }
        (LastTry::Status(304), Some(file)) => {
            settled(Standing::Found, Some(File { read_at: now, ..file.clone() }), last, &answer, now)
        }
        (LastTry::Status(429), _) => unreachable(previous, last, &answer, now),
        (LastTry::Status(400..=499), _) | (LastTry::Status(300..=399) | LastTry::TooManyRedirects, None) => {
            settled(Standing::Missing, None, last, &answer, now)
        }
        _ => unreachable(previous, last, &answer, now),
    }
}

fn last_try(outcome: &Outcome<'_>) -> LastTry {
    match outcome {
        Outcome::Answer(answer) => LastTry::Status(answer.status),
        Outcome::TooManyRedirects => LastTry::TooManyRedirects,
        Outcome::Failed { error } => LastTry::Failed(error.chars().take(MAX_ERROR_CHARS).collect()),
    }
}

/// The part of a body that is read later, and so is worth keeping.
fn kept<'a>(answer: &Answer<'a>) -> &'a [u8] {
    let body = considered(answer.body);
    if answer.is_cut { ended_lines(body) } else { body }
}

fn settled(
    standing: Standing,
    file: Option<File>,
    last: LastTry,
    answer: &Answer<'_>,
    now: Timestamp,
) -> Copy {
    let asked = answer.cache_control.and_then(max_age).unwrap_or(LONGEST_FRESH);
    let expires = asked.clamp(minutes(SHORTEST_FRESH_MINUTES), LONGEST_FRESH).after(now);
    Copy { standing, file, last, fetched_at: now, expires, unreachable_since: None, failures: 0 }
}

fn unreachable(previous: Option<&Copy>, last: LastTry, answer: &Answer<'_>, now: Timestamp) -> Copy {
    let since = previous.and_then(|copy| copy.unreachable_since).unwrap_or(now);
    let failures = previous.map_or(0, |copy| copy.failures).saturating_add(1);
    let gave_up = failures >= GIVE_UP_FAILURES && now.duration_since(since) >= GIVE_UP_AFTER;
    let pause = minutes(FIRST_RETRY_MINUTES).doubled(failures - 1, LONGEST_RETRY);
    let asked = answer.retry_after.unwrap_or_default().min(LONGEST_FRESH);
    Copy {
        standing: if gave_up { Standing::Missing } else { Standing::Unreachable },
        file: previous.and_then(|copy| copy.file.clone()),
        last,
        fetched_at: now,
        expires: pause.max(asked).after(now),
        unreachable_since: Some(since),
        failures,
    }
}

impl Copy {
    /// Keeps it long enough for a page after it, at a host that is asked no more often than this: otherwise every turn would
    /// be spent on asking for it again. No longer than any copy may be kept, unless the host lets nobody come sooner.
    pub fn keep_for_pages_every(&mut self, pause: Interval) {
        let within_a_day = pause.doubled(1, LONGEST_FRESH).after(self.fetched_at);
        let next_turn = LATE.after(pause.after(self.fetched_at));
        let long_enough = if pause < LONGEST_FRESH { within_a_day } else { next_turn };
        self.expires = self.expires.max(long_enough);
    }

    /// Where nothing may be fetched without it, it is asked for again when the pages that wait for it are tried again: after
    /// `first`, doubled with each failure, and not before the server wants to be asked. A later time would have them tried
    /// in vain.
    pub fn wait_as_pages_do(&mut self, first: Interval, asked: Option<Interval>) {
        if self.standing == Standing::Unreachable && self.file.is_none() {
            let pause = first.doubled(self.failures.saturating_sub(1), LONGEST_RETRY);
            let asked = asked.unwrap_or_default().min(LONGEST_FRESH);
            self.expires = pause.max(asked).after(self.fetched_at);
        }
    }

    /// Whether it may be used at `now` without asking again.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.expires
    }

    /// What the crawler of this name may fetch.
    pub fn rules(&self, product_token: &str) -> Rules {
        let read = |file: &File| Robots::parse(&file.body, product_token);
        match (self.standing, &self.file) {
            (Standing::Found, Some(file)) => Rules::File { robots: read(file), copy_of: None },
            (Standing::Unreachable, Some(file)) => {
                Rules::File { robots: read(file), copy_of: Some(file.read_at) }
            }
            (Standing::Unreachable, None) => {
                let since = self.unreachable_since.unwrap_or(self.fetched_at);
                Rules::Unreachable { since, last: self.last.clone() }
            }
            (Standing::Missing, _) | (Standing::Found, None) => {
                Rules::Missing { last: self.last.clone(), unreachable_since: self.unreachable_since }
            }
        }
    }
}

/// How long an answer may be used, if `Cache-Control` says so; the strictest word counts.
fn max_age(cache_control: &str) -> Option<Interval> {
    let age = |directive: &str| {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => Some(Interval::default()),
            "max-age" => seconds(value.trim().trim_matches('"')),
            _ => None,
        }
    };
    cache_control.split(',').filter_map(age).min()
}

fn seconds(text: &str) -> Option<Interval> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok().map(Interval::from_secs_f64)).flatten()
}

fn minutes(count: u32) -> Interval {
    Interval::from_secs_f64(f64::from(count) * 60.0)
}
