//! What a news page is worth now: a number from 0 to 100, with its reasons.
//!
//! The score starts at 50 and each rule of the table adds its part:
//!
//! | rule | adds | reason |
//! |---|---|---|
//! | visited < 1 h ago | −30 | `Recently visited (<1h)` |
//! | else visited < 24 h ago | −10 | `Visited today` |
//! | else visited > 168 h ago, or never | +15 | `Not visited in 7+ days` |
//! | changed < 24 h ago | +20 | `Changed in last 24h` |
//! | always | relevance × 15, rounded half up | `High topic relevance` if over 0.8 |
//! | hub | +10 | `Is a hub page` |
//! | depth > 3 | −5 | `Deep URL` |

use core::cmp::Reverse;
use core::fmt;
use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::top::Top;
use crate::url;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
const WEEK: SignedDuration = SignedDuration::from_hours(168);
const START: i32 = 50;

/// What is known of a URL when it is scored. Missing and `null` fields take their default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UrlSignals<'a> {
    /// The URL, absolute http or https, as it was given.
    #[serde(borrow, deserialize_with = "absolute_url")]
    pub url: Cow<'a, str>,
    /// How often it was visited; accepted, and without effect on the score.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub visits: u64,
    /// When it was last visited.
    #[serde(default, deserialize_with = "crate::time::deserialize_option")]
    pub last_visited: Option<Timestamp>,
    /// When it last changed.
    #[serde(default, deserialize_with = "crate::time::deserialize_option")]
    pub last_changed: Option<Timestamp>,
    /// How well it fits the topic, 0.5 if unknown.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub topic_relevance: Relevance,
    /// How many links it stands away from the nearest hub.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub hub_depth: u64,
    /// Whether it is a hub itself.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub is_hub: bool,
}

/// How well a page fits the topic: 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Relevance(f64);

impl Relevance {
    /// Accepts a number from 0 to 1; none for any other, NaN included.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }

    fn points(self) -> i32 {
        // `round` takes halves away from zero, which is up here.
        #[expect(clippy::cast_possible_truncation, reason = "at most 15")]
        let points = (self.0 * 15.0).round() as i32;
        points
    }
}

impl Default for Relevance {
    fn default() -> Self {
        Self(0.5)
    }
}

impl<'de> Deserialize<'de> for Relevance {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        Self::new(value)
            .ok_or_else(|| serde::de::Error::custom(format_args!("{value} is not a number from 0 to 1")))
    }
}

/// Why a score is not 50.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Visited less than an hour ago.
    RecentlyVisited,
    /// Visited less than a day ago.
    VisitedToday,
    /// Visited more than a week ago, or never.
    NotVisitedInAWeek,
    /// Changed less than a day ago.
    ChangedToday,
    /// Relevance over 0.8.
    HighRelevance,
    /// It is a hub.
    Hub,
    /// More than three links away from a hub.
    Deep,
}

impl Reason {
    /// The exact words of the rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RecentlyVisited => "Recently visited (<1h)",
            Self::VisitedToday => "Visited today",
            Self::NotVisitedInAWeek => "Not visited in 7+ days",
            Self::ChangedToday => "Changed in last 24h",
            Self::HighRelevance => "High topic relevance",
            Self::Hub => "Is a hub page",
            Self::Deep => "Deep URL",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The score in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Below 20: skip, or put last.
    #[serde(rename = "very low")]
    VeryLow,
    /// From 20: defer.
    Low,
    /// From 40: normal schedule.
    Medium,
    /// From 60: crawl soon.
    High,
    /// From 80: crawl at once.
    #[serde(rename = "very high")]
    VeryHigh,
}

impl Level {
    /// The level of a score.
    pub fn of(score: u8) -> Self {
        match score {
            80.. => Self::VeryHigh,
            60.. => Self::High,
            40.. => Self::Medium,
            20.. => Self::Low,
            _ => Self::VeryLow,
        }
    }
}

/// What one rule of the table adds, and what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Term {
    /// The points, negative ones included.
    pub adds: i32,
    /// The reason, where the rule has one.
    pub reason: Option<Reason>,
}

impl Term {
    fn because(adds: i32, reason: Reason) -> Self {
        Self { adds, reason: Some(reason) }
    }
}

/// A score with the terms it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scored {
    /// The score, 0 to 100.
    pub score: u8,
    /// One term for each rule, in the order of the table: visit, change, relevance, hub, depth.
    pub terms: [Term; 5],
}

impl Scored {
    /// The score in words.
    pub fn level(&self) -> Level {
        Level::of(self.score)
    }

    /// The reasons, in the order of the table.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> {
        self.terms.into_iter().filter_map(|term| term.reason)
    }
}

/// Scores a URL at `now`.
///
/// ```
/// # use forager_core::score::{score, UrlSignals};
/// let signals: UrlSignals = serde_json::from_str(r#"{
///     "url": "https://reuters.com/world/europe", "visits": 150, "hubDepth": 1, "isHub": true,
///     "lastVisited": "2024-06-10T08:00:00Z", "lastChanged": "2024-06-14T22:00:00Z",
///     "topicRelevance": 0.9
/// }"#)?;
/// let scored = score(&signals, "2024-06-15T08:00:00Z".parse().unwrap());
/// assert_eq!(scored.score, 94);
/// assert_eq!(scored.reasons().map(|reason| reason.as_str()).collect::<Vec<_>>(),
///     ["Changed in last 24h", "High topic relevance", "Is a hub page"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn score(signals: &UrlSignals<'_>, now: Timestamp) -> Scored {
    let terms = [
        visit_term(signals.last_visited, now),
        change_term(signals.last_changed, now),
        relevance_term(signals.topic_relevance),
        if signals.is_hub { Term::because(10, Reason::Hub) } else { Term::default() },
        if signals.hub_depth > 3 { Term::because(-5, Reason::Deep) } else { Term::default() },
    ];
    let sum = START + terms.iter().map(|term| term.adds).sum::<i32>();
    let score = u8::try_from(sum.clamp(0, 100)).unwrap_or_default();
    Scored { score, terms }
}

fn visit_term(last_visited: Option<Timestamp>, now: Timestamp) -> Term {
    let Some(visited) = last_visited else {
        return Term::because(15, Reason::NotVisitedInAWeek);
    };
    match now.duration_since(visited) {
        age if age < HOUR => Term::because(-30, Reason::RecentlyVisited),
        age if age < DAY => Term::because(-10, Reason::VisitedToday),
        age if age > WEEK => Term::because(15, Reason::NotVisitedInAWeek),
        _ => Term::default(),
    }
}

fn change_term(last_changed: Option<Timestamp>, now: Timestamp) -> Term {
    match last_changed {
        Some(changed) if now.duration_since(changed) < DAY => Term::because(20, Reason::ChangedToday),
        _ => Term::default(),
    }
}

fn relevance_term(relevance: Relevance) -> Term {
    let reason = (relevance.get() > 0.8).then_some(Reason::HighRelevance);
    Term { adds: relevance.points(), reason }
}

/// The first instant after `now` at which the score will differ from what it is at `now`; none
/// if it never will.
///
/// The score is a step function of time, so that a queue can move an entry exactly then instead
/// of scoring everything again. Comparisons are strict: the steps stand 1 h and 24 h after the
/// visit and 24 h after the change, and one nanosecond past 168 h after the visit. A step that
/// another one at the same instant cancels is passed over.
pub fn next_change(signals: &UrlSignals<'_>, now: Timestamp) -> Option<Timestamp> {
    let past_a_week = WEEK + SignedDuration::from_nanos(1);
    let visit = signals.last_visited.into_iter().flat_map(|t| [(t, HOUR), (t, DAY), (t, past_a_week)]);
    let change = signals.last_changed.into_iter().map(|t| (t, DAY));
    let present = score(signals, now).score;
    visit
        .chain(change)
        .filter_map(|(from, age)| from.checked_add(age).ok())
        .filter(|&step| step > now && score(signals, step).score != present)
        .min()
}

/// Ranks a stream of scored items: best score first, ties in the order they came.
///
/// With a `top` it holds only that many items, however long the stream.
///
/// ```
/// # use forager_core::score::Ranking;
/// let mut ranking = Ranking::new(Some(2), 30);
/// for (index, (score, url)) in [(40, "a"), (94, "b"), (29, "c"), (94, "d")].into_iter().enumerate() {
///     ranking.push(score, index as u64, url);
/// }
/// assert_eq!(ranking.into_sorted().collect::<Vec<_>>(), [(94, "b"), (94, "d")]);
/// ```
#[derive(Clone, Debug)]
pub struct Ranking<T> {
    min_score: u8,
    top: Top<(Reverse<u8>, u64), T>,
}

impl<T> Ranking<T> {
    /// Keeps the best `top` (all, if none) of those that score at least `min_score`.
    pub fn new(top: Option<usize>, min_score: u8) -> Self {
        Self { min_score, top: Top::new(top.unwrap_or(usize::MAX)) }
    }

    /// Takes in the item that came as number `sequence`.
    pub fn push(&mut self, score: u8, sequence: u64, item: T) {
        if score >= self.min_score {
            self.top.push((Reverse(score), sequence), item);
        }
    }

    /// Whether an item would be kept if it were pushed now; spares the making of those that would not.
    pub fn would_keep(&self, score: u8, sequence: u64) -> bool {
        score >= self.min_score && self.top.would_keep(&(Reverse(score), sequence))
    }

    /// Takes in everything that `other` kept.
    pub fn absorb(&mut self, other: Self) {
        for (order, item) in other.top {
            self.top.push(order, item);
        }
    }

    /// What was kept with its score, best first.
    pub fn into_sorted(self) -> impl Iterator<Item = (u8, T)> {
        self.top.into_sorted().into_iter().map(|((Reverse(score), _), item)| (score, item))
    }
}

fn absolute_url<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    let text = crate::read::borrowed_text(deserializer)?;
    url::check(&text).map_err(serde::de::Error::custom)?;
    Ok(text)
}
