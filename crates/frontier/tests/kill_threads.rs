//! `kill -9` while several threads share commits: what each was told is there.
//!
//! Unlike in `kill.rs`, nobody knows in which order the store took the calls, so that the claims are those
//! that hold in any order. `FORAGER_SOAK_ROUNDS` makes it longer.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{is_sound, options, setting, wait};
use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::entry::State;
use forager_frontier::verbs::{LeaseRequest, Leased, Link, ListFilter, Outcome, Page, Report};
use forager_frontier::{Durability, Embedded, Frontier, Moment, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const THREADS: u64 = 4;
const SEED: &str = "https://h0.example/";
/// Folder, seed, time, and whether to sync.
const ORDERS: &str = "FORAGER_KILL_THREADS";

fn start() -> Moment {
    Moment::of("2024-06-15T08:00:00Z".parse().unwrap())
}

fn open(folder: &Path, durability: Durability) -> Embedded {
    Embedded::open(folder, Settings::default(), options(durability)).unwrap()
}

fn begin(store: &Embedded) {
    let mut profile = Profile::new("p", "c");
    profile.scope = Scope::Any;
    let seed = Seed { url: SEED.to_owned(), profiles: vec!["p".to_owned()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    wait(store.configure(&changes, start().timestamp())).unwrap();
}

/// One line, written at once, so that a line that was read is whole.
fn say(line: &str) {
    std::io::stdout().write_all(format!("@{line}\n").as_bytes()).unwrap();
}

/// Not a test of its own: what the child does, if this is one.
#[test]
fn child() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let parts: Vec<&str> = orders.split('|').collect();
    let [folder, seed, clock, syncs] = parts[..] else { panic!("{orders}") };
    let durability = if syncs == "true" { Durability::Fsync } else { Durability::Process };
    let store = open(Path::new(folder), durability);
    let clock = AtomicU64::new(clock.parse().unwrap());
    let seed: u64 = seed.parse().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, clock) = (&store, &clock);
            scope.spawn(move || work(store, clock, Pcg64::seed_from_u64(seed * 100 + thread)));
        }
    });
}

/// Works until it is killed, or for a good while.
fn work(store: &Embedded, clock: &AtomicU64, mut random: Pcg64) {
    let tick = |random: &mut Pcg64| {
        Moment::from_millisecond(clock.fetch_add(random.random_range(0..400), Ordering::SeqCst)).timestamp()
    };
    for _ in 0..400 {
        let urls: Vec<String> = (0..4)
            .map(|_| {
                format!("https://h{}.example/{}", random.random_range(0..9), random.random_range(0..99_999))
            })
            .collect();
        let links = urls.iter().map(|url| Link { url: url.clone(), ..Link::default() }).collect();
        let page = Page { collection: "c".into(), seed: Some(SEED.into()), links, ..Page::default() };
        wait(store.discover(&[page], tick(&mut random))).unwrap();
        say(&format!("found {}", urls.join(" ")));
        let request = LeaseRequest { max: 2, per_host: 2, ..LeaseRequest::default() };
        let now = tick(&mut random);
        let leased = wait(store.lease(&request, now)).unwrap().leased;
        for Leased { token, url, until, .. } in &leased {
            say(&format!("leased {} {token} {url} {}", Moment::of(now).millisecond(), until.millisecond()));
        }
        for Leased { token, url, .. } in leased {
            if random.random_bool(0.3) {
                continue; // still under way when the end comes
            }
            say(&format!("reports {token} {url}"));
            let report = Report { token: token.0, status: Some(200), ..Report::default() };
            let done = wait(store.complete(&[report], tick(&mut random))).unwrap().remove(0);
            if done.outcome != Outcome::Refused {
                say(&format!("reported {token} {url}"));
            }
        }
    }
}

/// What the children have said.
#[derive(Default)]
struct Heard {
    found: BTreeSet<String>,
    /// By URL: until when it is surely held. A report that was begun may have ended it.
    held: BTreeMap<String, Moment>,
    reports: u64,
    reported: BTreeMap<String, u64>,
    latest: Moment,
}

impl Heard {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let moment = |text: &str| Moment::from_millisecond(text.parse().unwrap());
        match words[..] {
            ["found", ref urls @ ..] => self.found.extend(urls.iter().map(|url| (*url).to_owned())),
            ["leased", now, token, url, until] => {
                let now = moment(now);
                let before = self.held.insert(url.to_owned(), moment(until));
                assert!(before.is_none_or(|before| before <= now), "{url} was handed out twice: {token}");
                self.latest = self.latest.max(now);
            }
            ["reports", _, url] => {
                self.held.remove(url);
                self.reports += 1;
            }
            ["reported", _, url] => *self.reported.entry(url.to_owned()).or_default() += 1,
            _ => panic!("{line}"),
        }
    }

    fn compare(&self, store: &Embedded) {
        is_sound(store);
        // Other calls may have moved the time on a little since the last lease that was told.
        let now = self.latest.after_millis(10_000);
        let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
        let entries = wait(store.list(&all, now.timestamp())).unwrap().entries;
        let by_url: BTreeMap<&str, _> = entries.iter().map(|entry| (entry.url.as_str(), entry)).collect();
        for url in &self.found {
            assert!(by_url.contains_key(url.as_str()), "{url} was acknowledged, and is gone");
        }
        for (url, &until) in self.held.iter().filter(|(_, until)| **until > now) {
            let entry = by_url[url.as_str()];
            assert_eq!((entry.state, entry.leased_until), (State::Leased, Some(until)), "the lease of {url}");
        }
        for (url, &times) in &self.reported {
            let scans = by_url[url.as_str()].record.scans;
            assert!(scans >= times, "{url} was reported {times} times, and remembers {scans}");
        }
        let fetches = wait(store.stats(Some("c"), now.timestamp())).unwrap()[0].tally.fetches;
        let reported = self.reported.values().sum::<u64>();
        assert!((reported..=self.reports).contains(&fetches), "{fetches} of {reported} to {}", self.reports);
    }
}

fn kill(folder: &Path, round: u64, heard: &mut Heard, durability: Durability, random: &mut Pcg64) {
    let clock = heard.latest.max(start()).millisecond() + 1;
    let syncs = durability == Durability::Fsync;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ORDERS, format!("{}|{round}|{clock}|{syncs}", folder.display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut said = lines.filter_map(|line| Some(line.split_once('@')?.1.to_owned()));
    for line in said.by_ref().take(random.random_range(1..300)) {
        heard.hear(&line);
    }
    std::thread::sleep(Duration::from_micros(random.random_range(0..3000)));
    child.kill().unwrap();
    said.for_each(|line| heard.hear(&line));
    child.wait().unwrap();
}

#[test]
fn what_any_thread_was_told_is_there() {
    let rounds = setting("FORAGER_SOAK_ROUNDS", 8) as u64;
    for (durability, seed) in [(Durability::Process, 1), (Durability::Fsync, 2)] {
        let folder = common::new_folder();
        begin(&open(folder.path(), durability));
        let (mut heard, mut random) = (Heard::default(), Pcg64::seed_from_u64(seed));
        for round in 0..rounds.div_ceil(2) {
            kill(folder.path(), round, &mut heard, durability, &mut random);
            heard.compare(&open(folder.path(), durability));
        }
        assert!(heard.reports > 0 && !heard.held.is_empty(), "nothing happened");
    }
}
