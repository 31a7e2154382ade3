//! The politeness unit: what a host has to say about when it may be asked again.

use std::fmt;

use forager_core::time::Interval;
use serde::{Deserialize, Serialize};

use crate::entry::{CollectionId, Token};
use crate::moment::Moment;
use crate::settings::Politeness;
use crate::verbs::Terms;

/// A host whose robots.txt asks for a longer wait than this is slow: it is neither dropped nor hurried, but said to be.
pub const SLOW: Interval = Interval::MINUTE;

/// How long hosts wait after a fetch that have no delay of their own: at random between both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The shortest time.
    pub least: Interval,
    /// The longest.
    pub most: Interval,
}

/// A turn is the millisecond at which it was given, and its number in so many bits.
const TURN_BITS: u32 = 20;

/// The first numbers are for collections that wait for a host to open in that millisecond: which of them goes first.
const MOST_RANKS: u64 = 1023;

/// What no turn of that moment, or of a later one, comes before.
pub(crate) fn first_turn(at: Moment) -> u64 {
    at.millisecond() << TURN_BITS
}

/// The turn that comes after `last` and after all that opened by `now`.
pub(crate) fn next_turn(last: u64, now: Moment) -> u64 {
    believed(last, now).max(first_turn(now) + MOST_RANKS) + 1
}

/// The moment of a turn, or of a place in line.
pub(crate) fn moment_of(turn: u64) -> Moment {
    Moment::from_millisecond(turn >> TURN_BITS)
}

/// A turn as it counts at a time: not at all if it was given by a clock that was set back since, by which everything would
/// wait until it is that late again.
pub(crate) fn believed(turn: u64, now: Moment) -> u64 {
    if moment_of(turn).advanced(now) < moment_of(turn) { 0 } else { turn }
}

/// What is known of a host. All of it is durable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// What was set for this host alone.
    pub settings: HostSettings,
    /// No fetch before this: the delay after the last one.
    pub next_allowed: Moment,
    /// No fetch before this: the host failed, or asked for a pause.
    pub back_off_until: Moment,
    /// Failures of its own in a row.
    pub failures: u32,
    /// The wait between fetches that its robots.txt asks for.
    pub crawl_delay: Option<Interval>,
    /// The lease that it handed out last.
    pub last_lease: Option<Token>,
    /// Who visits it for no entry, and until when at the latest.
    pub visitor: Option<(Token, Moment)>,
    /// How often the dates in its sitemaps were right.
    pub sitemap_dates: Honesty,
    /// How many entries it has handed out.
    pub served: u64,
    /// When it last did.
    pub served_at: Moment,
    /// How many fetches were completed; in a plain collection, how many entries are done.
    pub fetched: u64,
    /// When each collection that has a queue here last took its turn; see [`Host::turn`].
    pub turns: Vec<(CollectionId, u64)>,
}

/// What was learned of a host, on its way from one store to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Learned {
    /// See [`Host::next_allowed`].
    pub next_allowed: Moment,
    /// See [`Host::back_off_until`].
    pub back_off_until: Moment,
    /// See [`Host::failures`].
    pub failures: u32,
    /// See [`Host::crawl_delay`].
    pub crawl_delay: Option<Interval>,
    /// See [`Host::sitemap_dates`].
    pub sitemap_dates: Honesty,
    /// See [`Host::served`].
    pub served: u64,
    /// See [`Host::served_at`].
    pub served_at: Moment,
    /// See [`Host::fetched`].
    pub fetched: u64,
}

impl Host {
    /// What was learned of it.
    pub fn learned(&self) -> Learned {
        Learned {
            next_allowed: self.next_allowed,
            back_off_until: self.back_off_until,
            failures: self.failures,
            crawl_delay: self.crawl_delay,
            sitemap_dates: self.sitemap_dates,
            served: self.served,
            served_at: self.served_at,
            fetched: self.fetched,
        }
    }

    /// Takes over what was learned elsewhere. Where something is known here already, it waits as long as either
    /// says, and counts as it did.
    pub(crate) fn take_over(&mut self, learned: &Learned, is_plain: bool) {
        self.next_allowed = self.next_allowed.max(learned.next_allowed);
        self.back_off_until = self.back_off_until.max(learned.back_off_until);
        self.crawl_delay = self.crawl_delay.max(learned.crawl_delay);
        if self.served == 0 {
            (self.served, self.served_at) = (learned.served, learned.served_at);
            (self.failures, self.sitemap_dates) = (learned.failures, learned.sitemap_dates);
            // What is done of a plain collection is counted as its entries come.
            self.fetched = if is_plain { self.fetched } else { learned.fetched };
        }
    }
}

/// How often somebody who said that pages had changed was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Honesty {
    /// How often the page had changed.
    pub right: u32,
    /// How often it had not.
    pub wrong: u32,
}

impl Honesty {
    /// Whether nothing is known yet.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Whether to go by what is said: until there is reason not to, and while it is right at least every other time.
    pub fn is_trusted(self) -> bool {
        const TOO_FEW: u32 = 4;
        self.right.saturating_add(self.wrong) < TOO_FEW || self.right >= self.wrong
    }

    /// What is known after one more.
    #[must_use]
    pub fn after(self, was_right: bool) -> Self {
        let (right, wrong) = (u32::from(was_right), u32::from(!was_right));
        Self { right: self.right.saturating_add(right), wrong: self.wrong.saturating_add(wrong) }
    }
}

/// What can be set for a single host; what is not takes the general setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct HostSettings {
    /// The time between two fetches.
    pub delay: Option<Interval>,
    /// No fetch before this; [`Moment::NEVER`] if only a person can change it.
    pub blocked_until: Option<Moment>,
    /// How many fetches may be under way.
    pub in_flight: Option<u32>,
    /// How many fetches there may be altogether.
    pub fetch_limit: Option<u64>,
    /// What robots.txt says of the whole host.
    pub robots: Option<Robots>,
}

/// One of the things that can be set for a host; none takes the general setting again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The time between two fetches.
    Delay(Option<Interval>),
    /// No fetch before this.
    BlockedUntil(Option<Moment>),
    /// How many fetches may be under way.
    InFlight(Option<u32>),
    /// How many fetches there may be altogether.
    FetchLimit(Option<u64>),
    /// What robots.txt says of the whole host.
    Robots(Option<Robots>),
}

impl HostSettings {
    /// Sets one thing.
    pub fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Delay(delay) => self.delay = delay,
            Setting::BlockedUntil(until) => self.blocked_until = until,
            Setting::InFlight(most) => self.in_flight = most,
            Setting::FetchLimit(most) => self.fetch_limit = most,
            Setting::Robots(robots) => self.robots = robots,
        }
    }

    /// All of it, one by one.
    pub fn all(&self) -> Vec<Setting> {
        let Self { delay, blocked_until, in_flight, fetch_limit, robots } = *self;
        vec![
            Setting::Delay(delay),
            Setting::BlockedUntil(blocked_until),
            Setting::InFlight(in_flight),
            Setting::FetchLimit(fetch_limit),
            Setting::Robots(robots),
        ]
    }
}

/// What robots.txt says of a whole host, and until when that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Robots {
    /// Whether anything may be fetched at all.
    pub allowed: bool,
    /// When it has to be read again.
    pub expires: Moment,
}

/// A reason why a host may not be asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// The delay after the last fetch.
    Delay,
    /// The host failed, or asked for a pause.
    BackOff,
    /// It was blocked.
    Blocked,
    /// As many fetches are under way as may be.
    InFlight,
    /// As many fetches were made as may be.
    FetchLimit,
    /// robots.txt forbids it.
    Robots,
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delay => "delay between fetches",
            Self::BackOff => "back-off after failures",
            Self::Blocked => "blocked",
            Self::InFlight => "in-flight limit",
            Self::FetchLimit => "fetch limit",
            Self::Robots => "robots.txt",
        })
    }
}

/// When a host opens, and the gate that opens last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opens {
    /// [`Moment::NEVER`] if nothing but a change from outside opens it.
    pub at: Moment,
    /// The gate that decides; none if the host was never closed.
    pub gate: Option<Gate>,
}

impl Opens {
    /// Whether the host may be asked.
    pub fn is_open(self, now: Moment) -> bool {
        self.at <= now
    }
}

/// What a host has under way: how many leases, and when the first of them runs out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// How many.
    pub count: u32,
    /// When the first runs out.
    pub first_expiry: Option<Moment>,
}

impl Host {
    /// The place in line of a collection that has something ready here: since when the host is open, or since the collection
    /// last took its turn, whichever is later. Queues with a lower one go first, so that hosts take turns; of collections that
    /// wait for the same host, the one that had its turn longest ago. Time alone opens a host, and moves nobody in the line.
    pub(crate) fn place(&self, collection: CollectionId, opens: Opens, now: Moment) -> u64 {
        let turn = believed(self.turn(collection), now);
        let earlier = || self.turns.iter().filter(|(_, other)| believed(*other, now) < turn).count() as u64;
        let rank = if turn == 0 { 0 } else { (1 + earlier()).min(MOST_RANKS) };
        turn.max(first_turn(opens.at) + rank)
    }

    /// When a collection last took its turn here, 0 if it never did.
    pub fn turn(&self, collection: CollectionId) -> u64 {
        self.turns.iter().find(|(known, _)| *known == collection).map_or(0, |(_, turn)| *turn)
    }

    /// A collection takes its turn.
    pub(crate) fn take_turn(&mut self, collection: CollectionId, turn: u64) {
        match self.turns.iter_mut().find(|(known, _)| *known == collection) {
            Some((_, last)) => *last = turn,
            None => self.turns.push((collection, turn)),
        }
    }

    /// Every gate of the host, with the time at which it opens.
    pub fn gates(&self, in_flight: InFlight, politeness: &Politeness, is_plain: bool) -> [(Gate, Moment); 6] {
        let settings = &self.settings;
        let in_flight = self.with_visitor(in_flight);
        let limit = self.in_flight_limit(politeness, is_plain);
        let busy = in_flight.count >= limit;
        let first_expiry = in_flight.first_expiry.unwrap_or(Moment::NEVER);
        // What is under way counts, as it may still be made; but in a plain collection, where clients count what they are
        // through with.
        let limit_opens = match settings.fetch_limit {
            Some(limit) if self.fetched >= limit => Moment::NEVER,
            Some(limit) if !is_plain && self.fetched + u64::from(in_flight.count) >= limit => first_expiry,
            _ => Moment::ZERO,
        };
        let robots = settings.robots.filter(|robots| !robots.allowed);
        [
            (Gate::Delay, self.next_allowed),
            (Gate::BackOff, self.back_off_until),
            (Gate::Blocked, settings.blocked_until.unwrap_or_default()),
            (Gate::InFlight, if busy { first_expiry } else { Moment::ZERO }),
            (Gate::FetchLimit, limit_opens),
            (Gate::Robots, robots.map_or(Moment::ZERO, |robots| robots.expires)),
        ]
    }

    /// What is under way, a visitor included. One that never left counts until its time is over.
    fn with_visitor(&self, in_flight: InFlight) -> InFlight {
        let Some((_, until)) = self.visitor else { return in_flight };
        let first_expiry = in_flight.first_expiry.map_or(until, |expiry| expiry.min(until));
        InFlight { count: in_flight.count.saturating_add(1), first_expiry: Some(first_expiry) }
    }

    /// When the last of its gates opens.
    pub fn opens(&self, in_flight: InFlight, politeness: &Politeness, is_plain: bool) -> Opens {
        let gates = self.gates(in_flight, politeness, is_plain);
        let last = gates.into_iter().max_by_key(|(_, at)| *at);
        match last {
            Some((gate, at)) if at > Moment::ZERO => Opens { at, gate: Some(gate) },
            _ => Opens { at: Moment::ZERO, gate: None },
        }
    }

    /// The wait before the next fetch: random between the bounds, and yet the same wherever it is
    /// worked out, for it is drawn from the key of the host and the number of the fetch.
    pub fn delay_millis(&self, key: &str, general: Waits) -> u64 {
        let shortest = self.shortest_delay(general);
        if self.settings.delay.is_some() {
            return shortest;
        }
        let longest = to_millis(general.most).max(shortest);
        let drawn = xxhash_rust::xxh3::xxh3_64_with_seed(key.as_bytes(), self.served);
        shortest + drawn % (longest - shortest + 1)
    }

    /// The least milliseconds between two fetches: what was set, or asked for by robots.txt if that is more.
    pub fn shortest_delay(&self, general: Waits) -> u64 {
        let ours = to_millis(self.settings.delay.unwrap_or(general.least));
        self.crawl_delay.map_or(ours, |theirs| to_millis(theirs).max(ours))
    }

    /// What it may be asked by.
    pub(crate) fn terms(&self, general: Waits, politeness: &Politeness, is_plain: bool) -> Terms {
        Terms {
            least_gap: self.shortest_delay(general),
            most_in_flight: self.in_flight_limit(politeness, is_plain),
        }
    }

    /// Whether its robots.txt asks for so long a wait that a crawl of it takes its time.
    pub fn is_slow(&self) -> bool {
        self.crawl_delay.is_some_and(|theirs| theirs > SLOW)
    }

    /// How many fetches may be under way. Who asks for a wait between fetches wants one at a time.
    pub fn in_flight_limit(&self, politeness: &Politeness, is_plain: bool) -> u32 {
        let general = if is_plain { u32::MAX } else { politeness.in_flight };
        let ours = self.settings.in_flight.unwrap_or(general);
        if self.crawl_delay.is_some() { ours.min(1) } else { ours }
    }
}

/// The milliseconds of an interval.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an interval is at most 100 years"
)]
pub fn to_millis(interval: Interval) -> u64 {
    (interval.as_secs_f64() * 1000.0).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_of_a_clock_that_was_set_back_since_does_not_count() {
        let (now, collection) = (Moment::from_second(1_000_000), CollectionId(1));
        let open = Opens { at: now, gate: None };
        for (ahead, counts) in [(0, true), (60, true), (2 * 60 * 60, false)] {
            let turn = next_turn(0, Moment::from_second(1_000_000 + ahead));
            let host = Host { turns: vec![(collection, turn)], ..Host::default() };
            assert_eq!(host.place(collection, open, now) == turn, counts, "{ahead} s ahead");
            assert_eq!(next_turn(turn, now) > turn, counts, "{ahead} s ahead");
        }
    }

    #[test]
    fn the_next_turn_comes_after_all_that_is_open() {
        let now = Moment::from_second(1_000_000);
        let turns = (0..2000).map(|number| (CollectionId(number), u64::from(number) + 1)).collect();
        let host = Host { turns, ..Host::default() };
        let place = |number| host.place(CollectionId(number), Opens { at: now, gate: None }, now);
        assert!((0..1000).all(|number| place(number) < place(number + 1)), "in the order of their turns");
        assert!(place(1999) < next_turn(0, now), "however many share the host");
    }
}
