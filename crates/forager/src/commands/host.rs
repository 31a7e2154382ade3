//! `forager host set`

use anyhow::Context as _;
use forager_core::time::Interval;
use forager_core::url::named_host_key;
use forager_frontier::Moment;
use forager_frontier::catalog::Kind;
use forager_frontier::host::{Robots, Setting};
use forager_frontier::verbs::{HostChange, HostFilter, HostView};
use jiff::Timestamp;
use serde_json::Value;

use crate::Outcome;
use crate::cli::{HostSetArgs, RobotsWord};
use crate::output::Output;
use crate::store::{self, Missing, Store};

/// How long what robots.txt says holds, unless told otherwise.
const ROBOTS_HOLD: Interval = Interval::hours(24);

pub(super) fn set(args: &HostSetArgs) -> anyhow::Result<Outcome> {
    let key = key_of(&args.host, args.collection.is_some())?;
    let hosts = store::with(&args.store, Missing::Refuse, |store| {
        let (collection, sets) = (args.collection.clone(), sets(args, store.now()));
        let change = HostChange { key: key.clone(), collection, sets, only_known: false };
        store::ask(store.frontier.set_hosts(&[change], store.now()))
    })?;
    let mut output = Output::new(args.store.format(), &[]);
    let is_for_people = output.is_for_people();
    hosts.iter().flatten().try_for_each(|host| output.sheet(&shown(host, is_for_people)?))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// The host as the queue knows it. The keys of a plain collection are whatever its clients say.
fn key_of(host: &str, is_plain: bool) -> anyhow::Result<String> {
    if is_plain { Ok(host.to_owned()) } else { named(host) }
}

/// The host that somebody names.
pub(super) fn named(host: &str) -> anyhow::Result<String> {
    named_host_key(host).with_context(|| format!("{host:?} is not a host such as \"www.example.org\""))
}

/// The key that is meant by a host that somebody asks for, in a collection or in any. Planned collections know it by
/// its canonical name, plain ones as their clients wrote it.
pub(super) fn wanted_key(
    store: &Store,
    host: Option<&str>,
    collection: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let Some(host) = host else { return Ok(None) };
    let Some(canonical) = named_host_key(host).filter(|canonical| canonical != host) else {
        return Ok(Some(host.to_owned()));
    };
    let is_as_written = if let Some(name) = collection {
        store::ask(store.frontier.catalog())?.require_collection(name)?.spec.kind == Kind::Plain
    } else {
        let filter = HostFilter { key: Some(host.to_owned()), limit: 1, ..HostFilter::default() };
        !store::ask(store.frontier.hosts(&filter, store.now()))?.is_empty()
    };
    Ok(Some(if is_as_written { host.to_owned() } else { canonical }))
}

/// A host as it is printed: for people, what never comes by itself has no date.
pub(super) fn shown(host: &HostView, is_for_people: bool) -> anyhow::Result<Value> {
    let mut row = serde_json::to_value(host)?;
    if is_for_people {
        if host.opens.is_none() && host.gate.is_some() {
            row["opens"] = NEVER.into();
        }
        if host.settings.blocked_until == Some(Moment::NEVER) {
            row["settings"]["blockedUntil"] = NEVER.into();
        }
        if let Some(delay) = host.crawl_delay.filter(|_| host.is_slow) {
            row["crawlDelay"] = format!("{delay} (slow)").into();
        }
    }
    Ok(row)
}

const NEVER: &str = "never";

/// What the command sets.
fn sets(args: &HostSetArgs, now: Timestamp) -> Vec<Setting> {
    let expires = Moment::of(args.robots_until.unwrap_or_else(|| ROBOTS_HOLD.after(now)));
    let robots = |word| match word {
        RobotsWord::Allow => Some(Robots { allowed: true, expires }),
        RobotsWord::Forbid => Some(Robots { allowed: false, expires }),
        RobotsWord::Default => None,
    };
    let block = match (args.block, args.unblock, args.block_until) {
        (_, true, _) => Some(None),
        (true, ..) => Some(Some(Moment::NEVER)),
        (_, _, until) => until.map(|until| Some(Moment::of(until))),
    };
    let sets = [
        args.delay.map(|delay| Setting::Delay(delay.own())),
        args.in_flight.map(|most| Setting::InFlight(most.own())),
        args.fetch_limit.map(|most| Setting::FetchLimit(most.own())),
        block.map(Setting::BlockedUntil),
        args.robots.map(|word| Setting::Robots(robots(word))),
    ];
    sets.into_iter().flatten().collect()
}
