//! Guards against sites that never end.

use jiff::Timestamp;
use jiff::tz::Offset;
use serde::{Deserialize, Serialize};

use super::extent::Outside;
use crate::url::{Identity, segment_count, segments};

/// Guards against sites that never end. 0 turns one off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traps {
    /// The most segments that a path may have.
    pub max_segments: usize,
    /// How often one segment may stand in a path.
    pub max_repeats: usize,
    /// How often the same two to eight segments may follow each other in a path: relative links that
    /// should have been absolute make `/a/b/a/b/a/b`.
    pub max_sequences: usize,
    /// The most parameters that a query may have: filters that can be combined at will.
    pub max_params: usize,
    /// Whether a session id in path or query keeps a URL out: each visit would make new URLs of all
    /// pages. Where `strip_params` takes the id off, there is none left to find.
    pub session_ids: bool,
    /// The first year of which pages of a calendar are fetched. There is always a month before. A number between -1000 and
    /// 1000 is counted from the present year.
    pub first_year: i16,
    /// The last year of which pages of a calendar are fetched, counted likewise. There is always a month after.
    pub last_year: i16,
    /// The most URLs of one host in a collection: for what no other guard has seen coming. Whoever has the queue counts.
    pub max_per_host: u64,
}

impl Default for Traps {
    fn default() -> Self {
        Self {
            max_segments: 32,
            max_repeats: 3,
            max_sequences: 2,
            max_params: 32,
            session_ids: true,
            // The web is about as old as that, and few plan farther ahead. Fixed years that are right for long would let
            // every calendar cost decades of pages.
            first_year: -30,
            last_year: 2,
            // Weeks of polite fetching: what still has more is endless, or worth saying so.
            max_per_host: 100_000,
        }
    }
}

impl Traps {
    /// Whether a URL is none of these.
    pub(super) fn check(&self, url: &Identity, now: Timestamp) -> Result<(), Outside<'static>> {
        let count = segment_count(url.path());
        if self.max_segments > 0 && count > self.max_segments {
            return Err(Outside::TooManySegments(self.max_segments));
        }
        if self.max_repeats > 0 && repeats(url.path(), count, self.max_repeats) {
            return Err(Outside::RepeatedSegment(self.max_repeats));
        }
        if self.max_sequences > 0 && follows_itself(url.path(), count, self.max_sequences) {
            return Err(Outside::RepeatedSequence(self.max_sequences));
        }
        if self.max_params > 0 && params(url).nth(self.max_params).is_some() {
            return Err(Outside::TooManyParams(self.max_params));
        }
        if let Some(name) = session_id(url).filter(|_| self.session_ids) {
            return Err(Outside::SessionId(name));
        }
        self.check_calendar(url, now)
    }

    fn check_calendar(&self, url: &Identity, now: Timestamp) -> Result<(), Outside<'static>> {
        let Some((year, is_said)) = calendar_year(url) else { return Ok(()) };
        let (first, last) = (bound(self.first_year, now), bound(self.last_year, now));
        // Where only the form says that it is a date, it may be that of an archive: that has an end in the past.
        if let Some(first) = first.filter(|first| is_said && year < *first) {
            return Err(Outside::CalendarBefore(first));
        }
        let is_likely = is_said || year <= LAST_LIKELY_YEAR;
        if let Some(last) = last.filter(|last| is_likely && year > *last) {
            return Err(Outside::CalendarAfter(last));
        }
        Ok(())
    }
}

/// The year that a bound stands for: itself, or so many from the present one; none if it is turned off.
fn bound(year: i16, now: Timestamp) -> Option<u16> {
    let present = || Offset::UTC.to_datetime(now).year();
    let year = match year {
        0 => return None,
        -999..=999 => present().saturating_add(year),
        _ => year,
    };
    // Before the year 0 there is nothing to keep out.
    Some(u16::try_from(year).unwrap_or_default())
}

fn repeats(path: &str, count: usize, max: usize) -> bool {
    let times = |segment: &str| segments(path).filter(|other| *other == segment).count();
    // One that stands there too often stands there early enough to be followed by all the others.
    segments(path).take(count.saturating_sub(max)).any(|segment| times(segment) > max)
}

/// The longest sequence that is looked for, so that a long path takes no long time.
const LONGEST_SEQUENCE: usize = 8;

/// Whether two or more segments, not all alike, stand more than `max` times in a row.
fn follows_itself(path: &str, count: usize, max: usize) -> bool {
    let longest = LONGEST_SEQUENCE.min(count / max.saturating_add(1));
    if longest < 2 {
        return false;
    }
    let all: Vec<&str> = segments(path).collect();
    (2..=longest).any(|length| {
        let mut run = 0;
        (length..all.len()).any(|at| {
            run = if all[at] == all[at - length] { run + 1 } else { 0 };
            // One segment alone is for the guard against repeats.
            run >= length * max && all[at - length..at].iter().any(|other| other != &all[at])
        })
    })
}

/// The parameters of the query, each with its value.
fn params(url: &Identity) -> impl Iterator<Item = (&str, &str)> {
    let pairs = url.query().unwrap_or_default().split(['&', ';']).filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Names that are given to session ids and to nothing else.
const SESSION_NAMES: [&str; 6] =
    ["jsessionid", "phpsessid", "aspsessionid", "asp.net_sessionid", "oscsid", "zenid"];
/// Names that may stand for something else, unless the value is long and random.
const MAYBE_SESSION_NAMES: [&str; 9] =
    ["sid", "sess", "sessid", "session", "sessionid", "session_id", "cfid", "cftoken", "s_id"];
const MIN_SESSION_BYTES: usize = 8;
const MIN_RANDOM_BYTES: usize = 16;

/// The name of the session id in path or query, if there is one.
fn session_id(url: &Identity) -> Option<&'static str> {
    let path = url.path();
    // Without these there are no parameters in a path; most paths have neither.
    let in_path = path.contains([';', '(']).then(|| segments(path).find_map(session_in_segment)).flatten();
    in_path.or_else(|| params(url).find_map(session_name))
}

/// `page;jsessionid=…`, or `(S(…))` as ASP.NET writes it.
fn session_in_segment(segment: &str) -> Option<&'static str> {
    if segment.starts_with('(') && segment.contains("S(") && segment.ends_with("))") {
        return Some("(S(…))");
    }
    segment.split(';').skip(1).filter_map(|pair| pair.split_once('=')).find_map(session_name)
}

fn session_name((name, value): (&str, &str)) -> Option<&'static str> {
    let begins = |known: &str| name.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
    let sure = SESSION_NAMES.into_iter().find(|known| begins(known));
    let maybe = || MAYBE_SESSION_NAMES.into_iter().find(|known| name.eq_ignore_ascii_case(known));
    sure.filter(|_| value.len() >= MIN_SESSION_BYTES).or_else(|| maybe().filter(|_| is_random(value)))
}

/// Whether a value looks made by a machine: long, with digits, and not words joined by dashes.
fn is_random(value: &str) -> bool {
    let is_plain = || value.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_uuid = || value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    value.len() >= MIN_RANDOM_BYTES
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && (is_plain() || is_uuid())
}

/// Words by which a path shows that it leads to a calendar.
const CALENDAR_WORDS: [&str; 15] = [
    "cal",
    "calendar",
    "calendars",
    "kalendar",
    "kalender",
    "calendrier",
    "calendario",
    "events",
    "event",
    "agenda",
    "termine",
    "dogadanja",
    "month",
    "week",
    "day",
];
/// Words in the names of parameters that hold a date.
const DATE_WORDS: [&str; 8] = ["date", "day", "week", "month", "datum", "monat", "mjesec", "ym"];
/// Words in the names of parameters that hold a year.
const YEAR_WORDS: [&str; 5] = ["year", "yr", "jahr", "godina", "annee"];

/// Names of parameters that hold a date and nothing else, if their value is one.
const DATE_NAMES: [&str; 3] = ["d", "dt", "ymd"];
/// The last year that a number is taken for where nothing but its place says that it is one.
const LAST_LIKELY_YEAR: u16 = 2999;

/// The year of a page of a calendar: one whose path says that it is one and has a month in it, or is made of year, month
/// and day, or whose query has a date; and whether a word says that it is one. Four digits alone may be the number of
/// anything.
fn calendar_year(url: &Identity) -> Option<(u16, bool)> {
    let said = |year| (year, true);
    let by_param = params(url).find_map(|(name, value)| {
        if has_word(name, &YEAR_WORDS) {
            return year(value).or_else(|| date_year(value)).map(said);
        }
        if has_word(name, &DATE_WORDS) {
            return date_year(value).map(said);
        }
        let is_named = |known: &&str| name.eq_ignore_ascii_case(known);
        let year = match DATE_NAMES.iter().any(is_named) {
            true => date_year(value),
            // Beside an x it is the place of a point.
            false if is_named(&"y") && params(url).all(|(name, _)| !name.eq_ignore_ascii_case("x")) => {
                year(value)
            }
            false => None,
        };
        year.map(|year| (year, false))
    });
    let is_calendar = || segments(url.path()).any(|segment| has_word(segment, &CALENDAR_WORDS));
    // Few paths have a month in them, and looking for words takes longer.
    by_param.or_else(|| {
        let (year, has_day) = path_year(url.path())?;
        let is_said = is_calendar();
        (has_day || is_said).then_some((year, is_said))
    })
}

/// The year in `/2031/05`, `/2031/05/12` or `/2031-05-12`, and whether a segment of its own is the day.
fn path_year(path: &str) -> Option<(u16, bool)> {
    let next = |count| segments(path).skip(count).map(Some).chain(core::iter::repeat(None));
    segments(path).zip(next(1).zip(next(2))).find_map(|(segment, (next, after))| {
        let before_month = || next.is_some_and(is_month).then(|| year(segment)).flatten();
        let in_one = date_year(segment).map(|year| (year, false));
        in_one.or_else(|| Some((before_month()?, after.is_some_and(is_day))))
    })
}

fn has_word(text: &str, words: &[&str]) -> bool {
    let is_one = |word: &str| words.iter().any(|known| word.eq_ignore_ascii_case(known));
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(is_one)
}

fn year(text: &str) -> Option<u16> {
    let is_year = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_year.then(|| text.parse().ok()).flatten()
}

fn is_month(text: &str) -> bool {
    is_number(text, 12)
}

fn is_day(text: &str) -> bool {
    is_number(text, 31)
}

/// Whether a text is a number of one or two digits from 1 to `most`.
fn is_number(text: &str, most: u8) -> bool {
    text.len() <= 2
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse().is_ok_and(|number: u8| (1..=most).contains(&number))
}

/// The year of `2031-05`, `2031-05-12` and what may follow, `20310512`, `12.05.2031` or `12/05/2031`.
fn date_year(text: &str) -> Option<u16> {
    year_first(text).or_else(|| year_last(text))
}

fn year_first(text: &str) -> Option<u16> {
    let (first, rest) = text.split_at_checked(4)?;
    let year = year(first)?;
    let is_compact = rest.len() == 4
        && rest.split_at_checked(2).is_some_and(|(month, day)| is_month(month) && is_day(day));
    let month = rest.strip_prefix('-').and_then(|rest| rest.split(['-', 'T']).next());
    (is_compact || month.is_some_and(is_month)).then_some(year)
}

/// Day and month, in whichever order, and then the year.
fn year_last(text: &str) -> Option<u16> {
    let (start, last) = text.split_at_checked(text.len().checked_sub(4)?)?;
    let year = year(last)?;
    let mark = ["%2F", "%2f", "/", ".", "-"].into_iter().find(|mark| start.ends_with(mark))?;
    let (one, other) = start.strip_suffix(mark)?.split_once(mark)?;
    let is_date = is_day(one) && is_day(other) && (is_month(one) || is_month(other));
    is_date.then_some(year)
}
