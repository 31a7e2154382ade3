//! `forager host set`

use anyhow::Context as _;
use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_frontier::Moment;
use forager_frontier::catalog::Kind;
use forager_frontier::host::{HostSettings, Robots};
use forager_frontier::verbs::{HostChange, HostFilter, HostView};
use jiff::Timestamp;
use serde_json::Value;

use crate::Outcome;
use crate::cli::{HostSetArgs, RobotsWord, Setting};
use crate::output::Output;
use crate::store::{self, Missing, Store};

/// How long what robots.txt says holds, unless told otherwise.
const ROBOTS_HOLD: Interval = Interval::hours(24);

pub(super) fn set(args: &HostSetArgs) -> anyhow::Result<Outcome> {
    let key = key_of(&args.host, args.collection.is_some())?;
    let hosts = store::with(&args.store, Missing::Refuse, |store| {
        let settings = changed(current(store, &key, args)?, args, store.now);
        let change = HostChange { key: key.clone(), collection: args.collection.clone(), settings };
        store::ask(store.frontier.set_hosts(&[change], store.now))
    })?;
    let mut output = Output::new(args.store.format(), &[]);
    let is_for_people = output.is_for_people();
    hosts.iter().try_for_each(|host| output.sheet(&shown(host, is_for_people)?))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// The host as the queue knows it. The keys of a plain collection are whatever its clients say.
fn key_of(host: &str, is_plain: bool) -> anyhow::Result<String> {
    if is_plain {
        return Ok(host.to_owned());
    }
    canonical(host).with_context(|| format!("{host:?} is not a host such as \"www.example.org\""))
}

/// A host as planned collections know it: in lower case, and in the letters that are sent. None if it is more, or
/// less, than a host.
fn canonical(host: &str) -> Option<String> {
    let is_address = host.starts_with('[');
    if host.contains(['/', '\\', '?', '#', '@']) || (host.contains(':') && !is_address) {
        return None;
    }
    FetchUrl::parse(&format!("http://{host}/")).ok().map(|url| url.host().to_owned())
}

/// The key that is meant by a host that somebody asks for, in a collection or in any. Planned collections know it by
/// its canonical name, plain ones as their clients wrote it.
pub(super) fn wanted_key(
    store: &Store,
    host: Option<&str>,
    collection: Option<&str>,
) -> anyhow::Result<Option<String>> {
    let Some(host) = host else { return Ok(None) };
    let Some(canonical) = canonical(host).filter(|canonical| canonical != host) else {
        return Ok(Some(host.to_owned()));
    };
    let is_as_written = if let Some(name) = collection {
        store::ask(store.frontier.catalog())?.require_collection(name)?.spec.kind == Kind::Plain
    } else {
        let filter = HostFilter { key: Some(host.to_owned()), limit: 1, ..HostFilter::default() };
        !store::ask(store.frontier.hosts(&filter, store.now))?.is_empty()
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
    }
    Ok(row)
}

const NEVER: &str = "never";

/// What is set for the host so far; nothing if it is not known.
fn current(store: &Store, key: &str, args: &HostSetArgs) -> anyhow::Result<HostSettings> {
    let filter = HostFilter {
        collection: args.collection.clone(),
        key: Some(key.to_owned()),
        skip: 0,
        limit: usize::MAX,
    };
    let hosts = store::ask(store.frontier.hosts(&filter, store.now))?;
    let known = hosts.into_iter().find(|host| host.host == key && host.collection == args.collection);
    Ok(known.map(|host| host.settings).unwrap_or_default())
}

fn changed(mut settings: HostSettings, args: &HostSetArgs, now: Timestamp) -> HostSettings {
    replace(&mut settings.delay, args.delay);
    replace(&mut settings.in_flight, args.in_flight);
    replace(&mut settings.fetch_limit, args.fetch_limit);
    if let Some(until) = args.block_until {
        settings.blocked_until = Some(Moment::of(until));
    }
    if args.block {
        settings.blocked_until = Some(Moment::NEVER);
    }
    if args.unblock {
        settings.blocked_until = None;
    }
    let expires = Moment::of(args.robots_until.unwrap_or_else(|| ROBOTS_HOLD.after(now)));
    match args.robots {
        Some(RobotsWord::Allow) => settings.robots = Some(Robots { allowed: true, expires }),
        Some(RobotsWord::Forbid) => settings.robots = Some(Robots { allowed: false, expires }),
        Some(RobotsWord::Default) => settings.robots = None,
        None => {}
    }
    settings
}

fn replace<T: Copy>(value: &mut Option<T>, with: Option<Setting<T>>) {
    if let Some(setting) = with {
        *value = setting.own();
    }
}
