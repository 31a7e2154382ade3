//! A crawl that is stopped at once, several times, and goes on.

use std::collections::{BTreeMap, BTreeSet};

use forager_crawl::{Ended, PageLine, Stop};
use forager_frontier::verbs::Outcome;
use forager_site::Seen;

use crate::world::{Recorder, World, audit, counted, differences};

const HOSTS: [&str; 4] = ["shop.demo", "news.demo", "ured.demo", "slow.demo"];

/// After how many pages the crawl is stopped; and whether all that is under way is answered by then, though not
/// reported yet.
const STOPS: [(usize, bool); 4] = [(1, false), (10, true), (25, false), (40, true)];

/// What was seen and told of one part of the crawl.
struct Part {
    seen: Vec<Seen>,
    lines: Vec<PageLine>,
    /// How many requests may have been dropped: two of each host, unless all were answered.
    most_dropped: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_and_nothing_fetched_twice() {
    let world = World::new(40).await;
    world.start_job(&world.open(), &HOSTS).await;
    let mut parts = Vec::new();
    for (stop_after, lingers) in STOPS {
        let recorder = Recorder::new(stop_after);
        let recorder = if lingers { recorder.lingering(world.running.log()) } else { recorder };
        let (ended, seen, lines) = crawl(&world, recorder).await;
        assert_eq!(ended, Ended::Stopped(Stop::Now));
        parts.push(Part { seen, lines, most_dropped: if lingers { 0 } else { 2 * HOSTS.len() } });
    }
    let (ended, seen, lines) = crawl(&world, Recorder::new(usize::MAX)).await;
    assert_eq!(ended, Ended::Done);
    parts.push(Part { seen, lines, most_dropped: 0 });

    let pages: BTreeSet<String> = world.wanted(&HOSTS).into_keys().filter(|page| !is_robots(page)).collect();
    let lines = parts.iter().flat_map(|part| &part.lines);
    let done: Vec<String> =
        lines.filter(|line| line.outcome == Some(Outcome::Done)).map(|line| world.short(&line.url)).collect();
    assert_eq!(done.iter().cloned().collect::<BTreeSet<_>>(), pages, "nothing is lost");
    assert_eq!(done.len(), pages.len(), "and nothing is done twice");

    check_requests(&world, &parts);
    let seen: Vec<Seen> = parts.into_iter().flat_map(|part| part.seen).collect();
    let impolite: Vec<String> = world.impolite(&seen).iter().map(ToString::to_string).collect();
    assert!(impolite.is_empty(), "{impolite:#?}");
    assert_eq!(audit(&world.open()).await.violations, []);
}

fn is_robots(page: &str) -> bool {
    page.ends_with("/robots.txt")
}

/// Crawls with everything opened anew, as a process that starts.
async fn crawl(world: &World, recorder: Recorder) -> (Ended, Vec<Seen>, Vec<PageLine>) {
    let crawler = world.crawler(world.open());
    let (ended, recorder) = recorder.watch(&crawler).await;
    drop(crawler);
    // Who was dropped is gone for the server as well, a little later.
    while world.running.log().snapshot().iter().any(|seen| seen.ended.is_none()) {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    (ended, world.running.log().take(), recorder.lines)
}

/// A page is requested again only if its first request was dropped, and robots.txt is kept.
fn check_requests(world: &World, parts: &[Part]) {
    let mut answered: BTreeMap<String, usize> = BTreeMap::new();
    for Part { seen, lines, most_dropped } in parts {
        let told: BTreeSet<String> = lines.iter().map(|line| world.short(&line.url)).collect();
        let (known, dropped): (BTreeMap<_, _>, BTreeMap<_, _>) =
            counted(seen).into_iter().partition(|(page, _)| told.contains(page) || is_robots(page));
        assert!(dropped.len() <= *most_dropped, "{dropped:?}");
        for (page, times) in known {
            *answered.entry(page).or_default() += times;
        }
    }
    let (robots, pages): (BTreeMap<_, _>, BTreeMap<_, _>) =
        answered.into_iter().partition(|(page, _)| is_robots(page));
    let wanted: BTreeMap<_, _> =
        world.wanted(&HOSTS).into_iter().filter(|(page, _)| !is_robots(page)).collect();
    assert_eq!(differences(&pages, &wanted), [] as [String; 0]);
    assert!(robots.values().all(|times| *times <= 1 + STOPS.len()), "{robots:?}");
}
