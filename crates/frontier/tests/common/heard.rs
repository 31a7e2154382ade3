//! Workers that say what they were told, until they are killed, and what must be there afterwards.
//!
//! Nobody knows in which order the store took their calls, so that the claims are those that hold in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};

use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::entry::State;
use forager_frontier::verbs::{LeaseRequest, Leased, Link, ListFilter, Outcome, Page, Report};
use forager_frontier::{Frontier, Moment};
use rand::RngExt as _;
use rand_pcg::Pcg64;

const SEED: &str = "https://h0.example/";

pub fn start() -> Moment {
    Moment::of("2024-06-15T08:00:00Z".parse().unwrap())
}

pub async fn begin(store: &dyn Frontier) {
    let mut profile = Profile::new("p", "c");
    profile.scope = Scope::Any;
    let seed = Seed { url: SEED.to_owned(), profiles: vec!["p".to_owned()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    store.configure(&changes, start().timestamp()).await.unwrap();
}

/// One line, written at once, so that a line that was read is whole.
fn say(line: &str) {
    std::io::stdout().write_all(format!("@{line}\n").as_bytes()).unwrap();
}

/// Works until it is killed, or for a good while.
pub async fn work(store: &dyn Frontier, clock: &AtomicU64, mut random: Pcg64) {
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
        store.discover(&[page], tick(&mut random)).await.unwrap();
        say(&format!("found {}", urls.join(" ")));
        let request = LeaseRequest { max: 2, per_host: 2, ..LeaseRequest::default() };
        let now = tick(&mut random);
        let leased = store.lease(&request, now).await.unwrap().leased;
        for Leased { token, url, until, .. } in &leased {
            say(&format!("leased {} {token} {url} {}", Moment::of(now).millisecond(), until.millisecond()));
        }
        for Leased { token, url, .. } in leased {
            if random.random_bool(0.3) {
                continue; // still under way when the end comes
            }
            say(&format!("reports {token} {url}"));
            let report = Report { token: token.0, status: Some(200), ..Report::default() };
            let done = store.complete(&[report], tick(&mut random)).await.unwrap().remove(0);
            if done.outcome != Outcome::Refused {
                say(&format!("reported {token} {url}"));
            }
        }
    }
}

/// What the children have said.
#[derive(Default)]
pub struct Heard {
    found: BTreeSet<String>,
    /// By URL: until when it is surely held. A report that was begun may have ended it.
    pub held: BTreeMap<String, Moment>,
    pub reports: u64,
    reported: BTreeMap<String, u64>,
    pub latest: Moment,
}

impl Heard {
    pub fn hear(&mut self, line: &str) {
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

    pub async fn compare(&self, store: &dyn Frontier) {
        // Other calls may have moved the time on a little since the last lease that was told.
        let now = self.latest.after_millis(10_000);
        let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
        let entries = store.list(&all, now.timestamp()).await.unwrap().entries;
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
        let fetches = store.stats(Some("c"), now.timestamp()).await.unwrap()[0].tally.fetches;
        let reported = self.reported.values().sum::<u64>();
        assert!((reported..=self.reports).contains(&fetches), "{fetches} of {reported} to {}", self.reports);
    }
}

/// What a child says, line by line, to its end.
pub fn said_by(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.filter_map(|line| Some(line.split_once('@')?.1.to_owned()))
}
