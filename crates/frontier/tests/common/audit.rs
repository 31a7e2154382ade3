//! An auditor that knows nothing of the engine: it only reads what was answered.

use std::collections::BTreeMap;

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::entry::Token;
use forager_frontier::host::HostSettings;
use forager_frontier::settings::Politeness;
use forager_frontier::verbs::Leased;

use super::calls::{Answer, Call, Freed};

/// Proves that nothing was handed out twice at a time, and that no host was asked too early or too often.
#[derive(Debug, Default)]
pub struct Auditor {
    politeness: Politeness,
    held: BTreeMap<Token, Held>,
    hosts: BTreeMap<String, Asked>,
    highest: Option<Token>,
    /// The time that counts, see [`Moment::advanced`].
    latest: Moment,
}

#[derive(Debug)]
struct Held {
    /// Collection, queue key and URL.
    entry: (String, String, String),
    until: Moment,
    is_plain: bool,
}

#[derive(Debug, Default)]
struct Asked {
    settings: HostSettings,
    crawl_delay: Option<Interval>,
    /// What it was asked for, and the time before which it is not to be asked again because of that.
    fetches: BTreeMap<Token, Moment>,
}

impl Asked {
    fn not_before(&self) -> Moment {
        self.fetches.values().copied().max().unwrap_or_default()
    }

    fn in_flight_limit(&self, politeness: &Politeness) -> u32 {
        let ours = self.settings.in_flight.unwrap_or(politeness.in_flight);
        if self.crawl_delay.is_some() { ours.min(1) } else { ours }
    }

    fn delay(&self, politeness: &Politeness) -> Interval {
        let ours = self.settings.delay.unwrap_or(politeness.delay);
        self.crawl_delay.map_or(ours, |theirs| theirs.max(ours))
    }
}

impl Auditor {
    /// One who begins when the frontier has been told this time.
    pub fn from(now: Moment) -> Self {
        Self { latest: now, ..Self::default() }
    }

    /// Takes in that the frontier was told the time, though nothing was done.
    pub fn looked(&mut self, now: Moment) {
        self.latest = self.latest.advanced(now);
    }

    /// Takes in a call that was made at `now`, and what was answered.
    pub fn note(&mut self, call: &Call, answer: &Answer, now: Moment) {
        if answer.tells_time {
            self.looked(now);
        }
        if !answer.is_done {
            return;
        }
        let now = self.latest;
        self.held.retain(|_, held| held.until > now);
        for token in &answer.ended {
            assert!(self.held.remove(token).is_some(), "{token} was accepted, but had ended before");
        }
        for token in &answer.forbidden {
            // Nothing was asked of its host after all.
            for asked in self.hosts.values_mut() {
                asked.fetches.remove(token);
            }
        }
        if let Some((name, count)) = &answer.reclaimed {
            let before = self.held.len();
            self.held.retain(|_, held| held.entry.0 != *name);
            assert_eq!((before - self.held.len()) as u64, *count, "leases of {name} that were taken back");
        }
        for Freed { collection, key, url } in &answer.freed {
            self.held.retain(|_, Held { entry: (of, at, held), .. }| {
                of != collection
                    || key.as_ref().is_some_and(|key| key != at)
                    || url.as_ref().is_some_and(|url| url != held)
            });
        }
        for (token, until) in &answer.extended {
            let held = self.held.get_mut(token);
            held.unwrap_or_else(|| panic!("{token} was extended, but had ended before")).until = *until;
        }
        for leased in &answer.leased {
            self.hand_out(leased, now);
        }
        for name in call.removes() {
            self.held.retain(|_, held| held.entry.0 != name);
        }
        if let Some((host, settings)) = call.sets_host(now) {
            self.hosts.entry(host.to_owned()).or_default().settings = settings;
        }
        for (host, delay) in call.slows_hosts(now) {
            self.hosts.entry(host).or_default().crawl_delay = delay;
        }
    }

    fn hand_out(&mut self, leased: &Leased, now: Moment) {
        let Leased { token, until, .. } = *leased;
        assert!(self.highest < Some(token), "{token} was used before");
        self.highest = Some(token);
        let entry = (leased.collection.clone(), leased.host.clone(), leased.url.clone());
        let other = self.held.iter().find(|(_, held)| held.entry == entry);
        assert!(other.is_none(), "{entry:?} was handed out as {token} at {now}, but is held: {other:?}");
        assert!(leased.due <= now, "{entry:?} was handed out at {now}, before it was due");
        let is_plain = &*leased.rule == "plain";
        if !is_plain {
            self.ask_host(&leased.host, token, now);
        }
        self.held.insert(token, Held { entry, until, is_plain });
    }

    fn ask_host(&mut self, host: &str, token: Token, now: Moment) {
        let in_flight = self.held.values().filter(|held| !held.is_plain && held.entry.1 == host).count();
        let asked = self.hosts.entry(host.to_owned()).or_default();
        let limit = asked.in_flight_limit(&self.politeness);
        assert!(in_flight < limit as usize, "{host} has {in_flight} in flight at {now}, and got another");
        let not_before = asked.not_before();
        assert!(not_before <= now, "{host} was asked at {now}, not to be asked before {not_before}");
        let blocked = asked.settings.blocked_until.unwrap_or_default();
        assert!(blocked <= now, "{host} was asked at {now}, but is blocked until {blocked}");
        let robots = asked.settings.robots.filter(|robots| !robots.allowed);
        assert!(robots.is_none_or(|robots| robots.expires <= now), "{host} was asked at {now}: {robots:?}");
        let not_before = now.after(asked.delay(&self.politeness));
        asked.fetches.insert(token, not_before);
    }
}
