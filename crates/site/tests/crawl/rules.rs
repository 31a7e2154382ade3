//! Rules for robots that run out: while their server fails, and while a page waits for its turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use forager_core::scope::extent::Kind;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_crawl::{Ended, Stop};
use forager_frontier::catalog::{self, Change, CollectionSpec};
use forager_frontier::verbs::Target;
use forager_frontier::{Embedded, Frontier};
use forager_site::{Answer, Host, Markup, Seen, Site};
use http::header::CACHE_CONTROL;

use crate::world::{Recorder, World, audit, counted};

const HOST: &str = "rules.demo";

/// Longer than anything takes that works: whoever asks for nothing but robots.txt would go on for ever.
const LONG: Duration = Duration::from_mins(1);

/// A host whose rules are good for five minutes, the least that is kept.
fn host(robots: impl Fn() -> Answer + Send + Sync + 'static) -> Host {
    let paths = ["/1", "/2", "/private/3"];
    let home = Markup::new("Home").links(paths.map(|path| (path, path))).finish();
    let host = Host::new(HOST)
        .made("/robots.txt", move |_| robots().header(CACHE_CONTROL, "max-age=1"))
        .page("/", Answer::html(home));
    paths.iter().fold(host, |host, path| host.page(*path, Answer::html(Markup::new(path).finish())))
}

fn of_path(seen: &[Seen], is_it: impl Fn(&str) -> bool) -> Vec<&Seen> {
    seen.iter().filter(|seen| is_it(&seen.path)).collect()
}

/// All pages of the host, every ten minutes.
async fn come_back(world: &World, frontier: &Embedded) {
    let mut profile = Profile::new("p", "c");
    (profile.scope, profile.every) = (Kind::Host, Some(Interval::from_secs_f64(600.0)));
    let url = world.running.url(HOST, "/");
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", catalog::Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(Seed { url, profiles: vec!["p".to_owned()], enabled: true }),
    ];
    frontier.configure(&changes, world.clock.now()).await.unwrap();
    frontier.start(&[Target::Collection("c".to_owned())], world.clock.now()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_counts_on_while_its_server_fails() {
    let asked = AtomicUsize::new(0);
    let robots = move || match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::text("User-agent: *\nDisallow: /private\n"),
        _ => Answer::error(500),
    };
    let world = World::of(Site::new().host(host(robots)), 1000).await;
    let frontier = world.open();
    come_back(&world, &frontier).await;
    let recorder = Recorder::new(20);
    let crawler = world.crawler(frontier.clone());
    let (ended, recorder) = tokio::time::timeout(LONG, recorder.watch(&crawler)).await.unwrap();
    assert_eq!(ended, Ended::Stopped(Stop::Now));

    let seen = world.running.log().snapshot();
    let rules = of_path(&seen, |path| path == "/robots.txt");
    assert!(rules.len() >= 3, "they were asked for when they ran out: {rules:?}");
    assert_eq!(rules[0].status, Some(200));
    assert!(rules[1..].iter().all(|seen| seen.status.is_none_or(|status| status == 500)), "{rules:?}");
    let failed = rules[1].arrived;
    let later = of_path(&seen, |path| matches!(path, "/" | "/1" | "/2"));
    let later = later.iter().filter(|seen| seen.arrived > failed && seen.status == Some(200)).count();
    assert!(later >= 3, "what they allow is fetched all the same: {seen:?}");
    assert!(of_path(&seen, |path| path.starts_with("/private")).is_empty(), "and nothing else");
    let forbidden = recorder.lines.iter().filter(|line| line.url.contains("/private"));
    assert!(forbidden.clone().all(|line| line.not_fetched.is_some()));
    assert!(forbidden.count() > 0);
    drop(crawler);
    assert_eq!(audit(&frontier).await.violations, []);
}

/// The host is asked every seven minutes, and rules are good for five: they must not be all that is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_have_their_turn_though_rules_run_out_meanwhile() {
    let robots = || Answer::text("User-agent: *\nCrawl-delay: 420\nDisallow: /private\n");
    let world = World::of(Site::new().host(host(robots)), 2000).await;
    let frontier = world.open();
    world.start_job(&frontier, &[HOST]).await;
    let recorder = Recorder::new(usize::MAX);
    let crawler = world.crawler(frontier.clone());
    let (ended, _) = tokio::time::timeout(LONG, recorder.watch(&crawler)).await.unwrap();
    assert_eq!(ended, Ended::Done);
    let mut counts = counted(&world.running.log().snapshot());
    let rules = counts.remove(&format!("{HOST}/robots.txt")).unwrap();
    let pages: Vec<(&str, usize)> = counts.iter().map(|(page, count)| (page.as_str(), *count)).collect();
    assert_eq!(pages, [("rules.demo/", 1), ("rules.demo/1", 1), ("rules.demo/2", 1)]);
    assert!(
        rules <= pages.len() + 1,
        "once for each page at most, what is forbidden included: {rules} times"
    );
    drop(crawler);
    assert_eq!(audit(&frontier).await.violations, []);
}
