//! A crawl from the first page to the last.

use std::collections::BTreeMap;

use forager_crawl::{Ended, NotFetched};
use forager_frontier::Frontier;
use forager_frontier::entry::How;
use forager_frontier::verbs::Outcome;
use forager_site::{Seen, demo};
use jiff::SignedDuration;

use crate::world::{JOB, Recorder, World, audit, counted, differences, is_forbidden};

/// Where the pages are made up without end.
const ENDLESS: [&str; 3] = ["trap.demo/calendar", "trap.demo/store", "trap.demo/pictures"];

fn is_endless(page: &str) -> bool {
    ENDLESS.iter().any(|prefix| page.starts_with(prefix))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_allowed_is_fetched_once_politely_and_nothing_else() {
    let world = World::new(20).await;
    let frontier = world.open();
    world.start_job(&frontier, &demo::HOSTS).await;
    let (ended, recorder) = Recorder::new(usize::MAX).watch(&world.crawler(frontier.clone())).await;
    assert_eq!(ended, Ended::Done);
    let seen = world.running.log().snapshot();

    let (endless, pages): (BTreeMap<_, _>, BTreeMap<_, _>) =
        counted(&seen).into_iter().partition(|(page, _)| is_endless(page));
    assert_eq!(differences(&pages, &wanted(&world)), [] as [String; 0]);
    let forbidden: Vec<&Seen> = seen.iter().filter(|seen| is_forbidden(&seen.host, &seen.path)).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");
    check_traps(&endless, &recorder);

    let impolite: Vec<String> = world.impolite(&seen).iter().map(ToString::to_string).collect();
    assert!(impolite.is_empty(), "{impolite:#?}");
    let audit = audit(&frontier).await;
    assert_eq!(audit.violations, []);
    assert_eq!(audit.hosts.iter().map(|host| host.fetches).sum::<u64>(), seen.len() as u64);

    check_pauses(&seen);
    check_outcomes(&world, &recorder);
    let hidden = world.running.url("shop.demo", "/offers/spring");
    let entry = frontier.entry(JOB, None, &hidden, world.clock.now()).await.unwrap().unwrap();
    assert_eq!(entry.record.origin.how, How::Sitemap, "no page links to it");
}

/// How often each page is requested, those that go wrong included.
fn wanted(world: &World) -> BTreeMap<String, usize> {
    let mut wanted = world.wanted(&demo::HOSTS);
    let tries = 1 + world.settings.retry.failed as usize;
    let failing = [("down", tries), ("shaky", 2), ("busy", 2), ("busy-until", 2), ("cut", 2), ("missing", 1)];
    wanted.extend(failing.map(|(page, times)| (format!("flaky.demo/{page}"), times)));
    wanted
}

/// The calendar ends with the year, session ids lead nowhere, and folders do not repeat for long.
fn check_traps(endless: &BTreeMap<String, usize>, recorder: &Recorder) {
    let under = |prefix: &str| endless.keys().filter(|page| page.starts_with(prefix)).count();
    let [calendar, store, pictures] = ENDLESS.map(under);
    assert_eq!((calendar, store), (12, 1), "{endless:?}");
    assert!((1..=20).contains(&pictures), "{endless:?}");
    assert!(endless.values().all(|times| *times == 1), "{endless:?}");
    for reason in ["calendar after 2026", "calendar before 2026", "session id jsessionid", "times in a row"] {
        let is_told = recorder.found.iter().any(|found| found.rule.contains(reason));
        assert!(is_told, "no link was turned away for {reason}");
    }
}

/// Who asks for twenty seconds gets them, in either form.
fn check_pauses(seen: &[Seen]) {
    for path in ["/busy", "/busy-until"] {
        let times: Vec<_> =
            seen.iter().filter(|seen| *seen.host == *"flaky.demo" && seen.path == path).collect();
        let [first, second] = times[..] else { panic!("{times:?}") };
        assert_eq!((first.status, second.status), (Some(503), Some(200)), "{path}");
        // The date has whole seconds, and so may be almost one second less.
        let waited = second.arrived.duration_since(first.arrived);
        assert!(waited >= SignedDuration::from_secs(19), "{path}: {waited}");
    }
}

fn check_outcomes(world: &World, recorder: &Recorder) {
    let last: BTreeMap<String, _> =
        recorder.lines.iter().map(|line| (world.short(&line.url), line)).collect();
    let table = [
        ("flaky.demo/fine", Outcome::Done, Some(200)),
        ("flaky.demo/down", Outcome::Failed, Some(500)),
        ("flaky.demo/shaky", Outcome::Done, Some(200)),
        ("flaky.demo/cut", Outcome::Done, Some(200)),
        ("flaky.demo/gone", Outcome::Done, Some(410)),
        ("flaky.demo/behind-broken", Outcome::Done, Some(200)),
        ("flaky.demo/hop/1", Outcome::Done, Some(301)),
        ("flaky.demo/hop/end", Outcome::Done, Some(200)),
        ("shop.demo/services/sprinklers", Outcome::Done, Some(301)),
        ("shop.demo/cart", Outcome::Failed, None),
    ];
    for (page, outcome, status) in table {
        let line = last[page];
        assert_eq!((line.outcome, line.status), (Some(outcome), status), "{page}");
    }
    let tries = recorder.lines.iter().filter(|line| world.short(&line.url) == "flaky.demo/down");
    let failures: Vec<u32> = tries.map(|line| line.failures).collect();
    assert_eq!(failures, (0..=world.settings.retry.failed).collect::<Vec<_>>(), "before each try");
    let forbidden = recorder.lines.iter().filter(|line| line.not_fetched == Some(NotFetched::Robots)).count();
    assert_eq!(forbidden, 10, "the cart, the log-in, the search, the plan, and six tables of raw data");
}
