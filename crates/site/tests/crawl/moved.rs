//! Rules for robots that were moved to a host that has no time at the moment.

use std::time::Duration;

use forager_crawl::Ended;
use forager_site::{Answer, Asked, Host, Markup, Seen, Site};

use crate::world::{Recorder, World, audit, counted, differences};

/// Longer than anything takes that works: two that wait for each other would do so for ever.
const LONG: Duration = Duration::from_mins(1);

const HUB: &str = "hub.demo";
const PAGES: usize = 6;

/// A host with some pages that take a while.
fn busy(robots: &str) -> Host {
    let paths: Vec<String> = (1..=PAGES).map(|number| format!("/{number}")).collect();
    let home = Markup::new("Home").links(paths.iter().map(|path| (&**path, &**path))).finish();
    let host = Host::new(HUB).robots(robots).page("/", Answer::html(home));
    let slow = |path: &str| Answer::html(Markup::new(path).finish()).slow(Duration::from_millis(300));
    paths.iter().fold(host, |host, path| host.page(path.clone(), slow(path)))
}

/// A host whose rules are at another one.
fn moved(name: &str, to: &'static str) -> Host {
    let robots = move |asked: &Asked<'_>| Answer::redirect(301, &asked.url(to, "/robots.txt"));
    Host::new(name).made("/robots.txt", robots).page("/", Answer::html(Markup::new(name).finish()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_moved_rules_is_crawled_however_busy_their_host_is() {
    let all = "User-agent: *\nAllow: /\n";
    let slow = "User-agent: *\nCrawl-delay: 150\n";
    let many = ["a.demo", "b.demo", "c.demo", "d.demo", "e.demo"];
    let many = many.iter().fold(Site::new().host(busy(all)), |site, name| site.host(moved(name, HUB)));
    let ring = [moved("a.demo", "b.demo"), moved("b.demo", "c.demo"), moved("c.demo", "a.demo")];
    let ring = ring.into_iter().fold(Site::new(), Site::host);
    let table: [(&str, Site, &[&str], u32, u32); 4] = [
        ("busy", Site::new().host(busy(all)).host(moved("a.demo", HUB)), &[HUB, "a.demo"], 2, 20),
        ("wanted by many", many, &[HUB, "a.demo", "b.demo", "c.demo", "d.demo", "e.demo"], 2, 20),
        ("slow", Site::new().host(busy(slow)).host(moved("a.demo", HUB)), &[HUB, "a.demo"], 2, 1000),
        ("each other", ring, &["a.demo", "b.demo", "c.demo"], 1, 20),
    ];
    for (name, site, hosts, in_flight, speed) in table {
        let mut world = World::of(site, speed).await;
        world.settings.politeness.in_flight = in_flight;
        let frontier = world.open();
        world.start_job(&frontier, hosts).await;
        let recorder = Recorder::new(usize::MAX);
        let crawler = world.crawler(frontier.clone());
        let ended = tokio::time::timeout(LONG, recorder.watch(&crawler)).await.map(|done| done.0);
        let seen = world.running.log().snapshot();
        assert_eq!(ended, Ok(Ended::Done), "{name}: {seen:#?}");
        let mut counts = counted(&seen);
        counts.retain(|page, _| !page.ends_with("/robots.txt"));
        let mut wanted = world.wanted(hosts);
        wanted.retain(|page, _| !page.ends_with("/robots.txt"));
        assert_eq!(differences(&counts, &wanted), Vec::<String>::new(), "{name}");
        let of_hop = |seen: &&Seen| *seen.host == *"a.demo" && seen.path == "/robots.txt";
        let asked = seen.iter().filter(of_hop).count();
        assert!(
            asked == 1 || name == "each other",
            "{name}: where they are is asked once, not {asked} times"
        );
        drop(crawler);
        assert_eq!(audit(&frontier).await.violations, [], "{name}");
    }
}
