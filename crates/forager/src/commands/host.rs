//! `forager host set`

use anyhow::Context as _;
use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_frontier::host::{HostSettings, Robots};
use forager_frontier::verbs::{HostChange, HostFilter};
use forager_frontier::{Frontier as _, Moment};
use jiff::Timestamp;

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
    hosts.iter().try_for_each(|host| output.sheet(host))?;
    output.flush()?;
    Ok(Outcome::Complete)
}

/// The host as the queue knows it: in lower case, and without what is no part of a host. The keys of a plain
/// collection are whatever its clients say.
fn key_of(host: &str, is_plain: bool) -> anyhow::Result<String> {
    if is_plain {
        return Ok(host.to_owned());
    }
    let url = FetchUrl::parse(&format!("http://{host}/"));
    let key = url.ok().map(|url| url.host().to_owned()).filter(|key| key.len() == host.len());
    key.with_context(|| format!("{host:?} is not a host such as \"www.example.org\""))
}

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
