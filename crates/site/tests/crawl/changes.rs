//! A crawl that goes on for days, and finds out what changes.

use std::collections::BTreeMap;

use forager_core::order::Order;
use forager_core::scope::extent::Kind;
use forager_core::scope::{Profile, Seed};
use forager_core::sentinel::schedule::ScheduleConfig;
use forager_crawl::{Ended, Found, PageLine, Stop, Watcher, Work};
use forager_frontier::catalog::{self, Change, CollectionSpec};
use forager_frontier::verbs::{Event, EventRow, Target};
use forager_frontier::{Embedded, Frontier, Moment};
use forager_site::{Seen, demo};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

use crate::world::World;

const HOST: &str = "ured.demo";

/// What is watched for, in time of the site: seventeen seconds on the wall.
const DAYS: SignedDuration = SignedDuration::from_hours(48);
const SPEED: u32 = 10_000;

/// Tells nobody.
struct Silent;

impl Watcher for Silent {
    fn page(&mut self, _page: &PageLine, _found: &[Found]) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_pages_are_watched_and_their_changes_found() {
    let mut world = World::new(SPEED).await;
    world.settings.sentinel = ScheduleConfig::sentinel();
    let frontier = world.open();
    watch_over(&world, &frontier).await;
    assert_eq!(crawl_for(&world, &frontier, DAYS).await, Ended::Stopped(Stop::Drain));

    let seen = world.running.log().snapshot();
    let found = changes_found(&world, &frontier).await;
    let versions = versions_seen(&world, &seen);
    let counts: BTreeMap<_, _> = found.iter().map(|(path, rows)| (path.clone(), rows.len())).collect();
    assert_eq!(counts, versions, "every change that was shown, and none of the noise");
    assert!(versions.values().sum::<usize>() >= 10, "{versions:?}");

    let rules = found.iter().filter(|(path, _)| path.starts_with("/propisi/")).flat_map(|(_, rows)| rows);
    let mut told = rules.map(|row| match &row.event {
        Event::Changed { difference, .. } => difference.added.iter().any(|line| line.contains("Izdanje")),
        other => panic!("{other:?}"),
    });
    assert!(told.next().is_some_and(|first| first) && told.all(|one| one), "a change says what has changed");

    let delays = delays(&world, &found);
    let median = delays[delays.len() / 2];
    assert!(median <= SignedDuration::from_hours(5), "half of the changes took longer than {median:#}");
    let is_spared = |seen: &Seen| seen.status == Some(304) && seen.if_none_match.is_some();
    assert!(seen.iter().any(is_spared), "no page was found unchanged by its tag");
}

/// All pages of the host, again and again, by the schedule for monitors.
async fn watch_over(world: &World, frontier: &Embedded) {
    let mut profile = Profile::new("official", "official");
    (profile.scope, profile.order) = (Kind::Host, Order::Risk);
    let url = world.running.url(HOST, "/");
    let changes = [
        Change::AddCollection(CollectionSpec::new("official", catalog::Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(Seed { url, profiles: vec!["official".to_owned()], enabled: true }),
    ];
    frontier.configure(&changes, world.clock.now()).await.unwrap();
    frontier.start(&[Target::Collection("official".to_owned())], world.clock.now()).await.unwrap();
}

async fn crawl_for(world: &World, frontier: &std::sync::Arc<Embedded>, length: SignedDuration) -> Ended {
    let (stop, clock) = (watch::Sender::new(Stop::No), world.clock);
    let told = stop.subscribe();
    tokio::spawn(async move {
        clock.sleep_until(demo::START + length).await;
        stop.send_replace(Stop::Drain);
        stop.closed().await;
    });
    world.crawler(frontier.clone()).run(Work::default(), told, Silent).await.0.unwrap()
}

/// The changes that were found of each page that changes.
async fn changes_found(world: &World, frontier: &Embedded) -> BTreeMap<String, Vec<EventRow>> {
    let mut found: BTreeMap<String, Vec<EventRow>> =
        schedule(world).into_keys().map(|path| (path, Vec::new())).collect();
    for row in frontier.events(0, 100_000).await.unwrap() {
        if let Event::Changed { .. } = row.event {
            let path = world.short(&row.subject).replacen(HOST, "", 1);
            found.get_mut(&path).unwrap_or_else(|| panic!("{path} never changes")).push(row);
        }
    }
    found
}

fn schedule(world: &World) -> BTreeMap<String, forager_site::changes::Changes> {
    let all = world.site.changes().filter(|(host, ..)| *host == HOST);
    all.map(|(_, path, changes)| (path.to_owned(), changes.clone())).collect()
}

/// How often a page was another one than at the request before, going by what the server answered.
fn versions_seen(world: &World, seen: &[Seen]) -> BTreeMap<String, usize> {
    let versions = |path: &str, changes: &forager_site::changes::Changes| {
        let requests = seen.iter().filter(|seen| *seen.host == *HOST && seen.path == path);
        let mut versions: Vec<usize> = requests.map(|seen| changes.version(seen.arrived).number).collect();
        versions.dedup();
        versions.len().saturating_sub(1)
    };
    schedule(world).iter().map(|(path, changes)| (path.clone(), versions(path, changes))).collect()
}

/// How long after it happened each change of a critical page was found, shortest first.
fn delays(world: &World, found: &BTreeMap<String, Vec<EventRow>>) -> Vec<SignedDuration> {
    let schedule = schedule(world);
    let mut delays = Vec::new();
    for (path, rows) in
        found.iter().filter(|(path, _)| path.starts_with("/propisi/") || path.starts_with("/savj"))
    {
        for row in rows {
            let found: Timestamp = Moment::timestamp(row.at);
            delays.extend(schedule[path].version(found).since.map(|since| found.duration_since(since)));
        }
    }
    delays.sort_unstable();
    delays
}
