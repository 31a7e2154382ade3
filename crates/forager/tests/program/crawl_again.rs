//! Crawls that come back, when they are killed or told to begin again: no page is fetched before its time, no gap is
//! shortened. And how far apart requests are where nobody says.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use crate::web::{CONTACT, Field, Started, TOLERANCE, each, page, plain_host, wait_until};
use forager_site::{Answer, Seen, Site, listing};
use jiff::{SignedDuration, Timestamp};

const HOST: &str = "a.test";
const OFFICE: &str = "office.test";
const PAGES: usize = 3;

/// How far apart requests are, and how long a page is left alone.
const GAP: Duration = Duration::from_millis(400);
const EVERY: SignedDuration = SignedDuration::from_secs(4);

/// A host of a few pages.
fn field() -> Field {
    let field = Field::new(Site::new().host(plain_host(HOST, PAGES)).host(plain_host(OFFICE, 2)));
    field.set("delay = \"50ms\"\nmax_delay = \"50ms\"", "delay = \"400ms\"\nmax_delay = \"400ms\"");
    field
}

/// Adds a collection and its seeds to the configuration.
fn harvest(field: &Field, every: &str, seeds: &[&str]) {
    let seed = |host: &&str| format!("[[seeds]]\nurl = \"{}\"\nprofiles = [\"p\"]\n", field.url(host, "/"));
    let seeds: String = seeds.iter().map(seed).collect();
    field.configure(&format!(
        "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n[[collections]]\nid = \"c\"\n\
         [[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\nevery = {every:?}\n{seeds}"
    ));
}

/// Kills a command again and again at all sorts of moments, lets it go on, and checks what the server saw.
fn kill_and_go_on(field: &Field, paths: &[&str], command: impl Fn() -> Command) {
    let mut doubtful: BTreeSet<(String, Timestamp)> = BTreeSet::new();
    for (requests, later) in [(0, 50), (1, 0), (2, 10), (1, 200), (3, 390), (1, 30), (2, 100)] {
        let before = field.paths(HOST).len();
        let running = Started::new(&mut command());
        field.wait_for(HOST, before + requests);
        std::thread::sleep(Duration::from_millis(later));
        running.kill();
        // What was asked for last may not have been reported yet; two may be under way at a time.
        doubtful.extend(field.seen().into_iter().rev().take(2).map(|seen| (seen.path, seen.arrived)));
    }
    let counted: Vec<usize> = paths.iter().map(|path| field.times(HOST, path).len()).collect();
    let running = Started::new(&mut command());
    for (path, before) in paths.iter().zip(counted) {
        wait_until(path, || field.times(HOST, path).len() >= before + 2);
    }
    running.signal("TERM");
    assert_eq!(running.end().status, 11);

    for path in paths.iter().chain(&["/robots.txt"]) {
        let least = if *path == "/robots.txt" { SignedDuration::from_mins(5) } else { EVERY };
        for pair in field.times(HOST, path).windows(2) {
            let is_early = pair[1].duration_since(pair[0]) < least - TOLERANCE;
            let is_doubtful = doubtful.contains(&((*path).to_owned(), pair[0]));
            assert!(!is_early || is_doubtful, "{path} at {} and again at {}", pair[0], pair[1]);
        }
    }
    field.assert_polite(2, GAP);
    field.run(&["audit", "--json"]).good_rows();
}

#[test]
fn a_run_may_be_killed_at_any_moment() {
    let field = field();
    harvest(&field, "4s", &[HOST]);
    field.set("delay = \"50ms\"\nmax_delay = \"50ms\"", "delay = \"400ms\"\nmax_delay = \"400ms\"");
    kill_and_go_on(&field, &["/", "/1", "/2", "/3"], || field.queue.command(&["run", "--quiet"]));
}

#[test]
fn a_watch_may_be_killed_at_any_moment() {
    let field = field();
    let urls = ["/1", "/2", "/3"].map(|path| field.url(HOST, path));
    let command = || {
        let mut command = field.queue.command(&["watch", "--every", "4s", "--quiet"]);
        command.args(&urls);
        command
    };
    kill_and_go_on(&field, &["/1", "/2", "/3"], command);
}

#[test]
fn a_run_that_is_hung_up_on_while_it_reads_its_configuration_reads_it_once_more() {
    let field = field();
    harvest(&field, "1h", &[HOST]);
    let running = Started::new(&mut field.queue.command(&["run"]));
    field.wait_for(HOST, 1);
    for pause in (0..30).map(|number| number * 3) {
        running.signal("HUP");
        std::thread::sleep(Duration::from_millis(pause));
    }
    // The last word counts, however busy it is with those before.
    harvest(&field, "1h", &[HOST, OFFICE]);
    running.signal("HUP");
    field.wait_for(OFFICE, 3);
    field.wait_for(HOST, 1 + PAGES);
    running.signal("TERM");
    let ran = running.end();
    assert_eq!(ran.status, 11, "{ran:?}");
    assert_eq!((field.counts(HOST), field.counts(OFFICE)), (each(PAGES, 1), each(2, 1)));
    field.assert_audit();
}

#[test]
fn where_nobody_says_requests_are_two_seconds_apart_at_least() {
    let field = Field::new(Site::new().host(plain_host(HOST, 2)));
    field.set("delay = \"50ms\"\nmax_delay = \"50ms\"\n", "");
    field.crawl(HOST, &[]).good_rows();
    assert_eq!(field.counts(HOST), each(2, 1));
    let arrived: Vec<Timestamp> = field.seen().iter().map(|seen: &Seen| seen.arrived).collect();
    assert_eq!(arrived.len(), 4, "robots.txt, the home page and two more");
    for pair in arrived.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= SignedDuration::from_secs(2) - TOLERANCE, "{arrived:?}");
    }
    field.assert_audit();
}

#[test]
fn sitemaps_are_read_though_the_first_page_is_damaged() {
    let cases = [("once", 1), ("always", usize::MAX)];
    for (name, times) in cases {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let host = plain_host(HOST, 0)
            .made("/robots.txt", |asked| Answer::text(format!("Sitemap: {}\n", asked.url(HOST, "/list.xml"))))
            .made("/list.xml", |asked| Answer::xml(listing::sitemap([(asked.url(HOST, "/listed"), None)])))
            .made("/", move |_| {
                let is_damaged = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < times;
                let home = page("Home", &[]);
                if is_damaged { home.cut_after(20) } else { home }
            })
            .page("/listed", page("Listed", &[]));
        let field = Field::new(Site::new().host(host));
        let ran = field.crawl(HOST, &[]);
        let counts = field.counts(HOST);
        let want = if times == 1 { 2 } else { 3 };
        assert_eq!(counts["/"], want, "{name}: {ran:?}");
        assert_eq!((counts.get("/list.xml"), counts.get("/listed")), (Some(&1), Some(&1)), "{name}: {ran:?}");
        field.assert_audit();
    }
}
