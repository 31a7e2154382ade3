//! Eight threads lease, discover and complete on one store; an auditor replays what they were told.
//!
//! Threads do not know in which order the store took their calls, so the auditor claims only what must
//! hold in any order: tokens tell which lease was granted first, and a stamp is drawn before and after
//! each call from a counter that all share.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{close, is_sound, open, setting, wait};
use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::entry::{State, Token};
use forager_frontier::verbs::{
    Completed, LeaseAnswer, LeaseRequest, Leased, Link, ListFilter, Nothing, Outcome, Page, Report,
};
use forager_frontier::{Embedded, Frontier, Moment, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const THREADS: u64 = 8;
const HOSTS: u32 = 24;
const HOLD_SECONDS: u32 = 120;
const SEED: &str = "https://h0.example/";

/// A call as its caller saw it.
#[derive(Clone, Debug)]
struct Span {
    began: u64,
    ended: u64,
    now: Moment,
}

#[derive(Debug)]
enum Note {
    Leased(Span, Leased),
    Completed(Span, Completed),
    Released(Span, Token),
}

/// What all threads share.
struct Shop {
    store: Embedded,
    stamps: AtomicU64,
    /// The time, in milliseconds.
    clock: AtomicU64,
    completed: AtomicU64,
    notes: Mutex<Vec<Note>>,
}

impl Shop {
    /// Makes a call at a time of its own, and says when it began and ended.
    fn call<R>(&self, step: u64, call: impl FnOnce(Moment) -> R) -> (Span, R) {
        let now = Moment::from_millisecond(self.clock.fetch_add(step, Ordering::SeqCst));
        let began = self.stamps.fetch_add(1, Ordering::SeqCst);
        let answer = call(now);
        let ended = self.stamps.fetch_add(1, Ordering::SeqCst);
        (Span { began, ended, now }, answer)
    }

    fn note(&self, notes: impl IntoIterator<Item = Note>) {
        self.notes.lock().unwrap().extend(notes);
    }

    /// Leases as long as there is not enough done.
    fn work(&self, seed: u64, until: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        while self.completed.load(Ordering::SeqCst) < until {
            let (span, answer) = self.call(random.random_range(0..40), |now| {
                let request = LeaseRequest {
                    max: 4,
                    per_host: 2,
                    hold: Interval::from_secs_f64(f64::from(HOLD_SECONDS)),
                    ..LeaseRequest::default()
                };
                wait(self.store.lease(&request, now.timestamp())).unwrap()
            });
            self.note(answer.leased.iter().map(|leased| Note::Leased(span.clone(), leased.clone())));
            self.sleep(&answer);
            for leased in answer.leased {
                self.fetch(&leased, &mut random);
            }
        }
    }

    /// Nothing to do: all go on when there is.
    fn sleep(&self, answer: &LeaseAnswer) {
        let until = match answer.nothing {
            Some(
                Nothing::NotDue { until }
                | Nothing::Throttled { until, .. }
                | Nothing::Blocked { until: Some(until) },
            ) => until,
            Some(Nothing::Empty | Nothing::Blocked { until: None }) => panic!("{:?}", answer.nothing),
            None => return,
        };
        // Others may be about to report: not all the way at once.
        let now = self.clock.load(Ordering::SeqCst);
        let ahead = until.millisecond().saturating_sub(now).min(60_000);
        self.clock.fetch_max(now + ahead, Ordering::SeqCst);
        std::thread::yield_now();
    }

    fn fetch(&self, leased: &Leased, random: &mut Pcg64) {
        match random.random_range(0..20) {
            0 => return, // lost
            1 => {
                let (span, told) =
                    self.call(1, |now| wait(self.store.release(&[leased.token], now.timestamp())).unwrap());
                self.note(told[0].held.then_some(Note::Released(span, leased.token)));
                return;
            }
            2..8 => self.discover(leased, random),
            _ => {}
        }
        let status = [200, 200, 200, 200, 304, 404, 500][random.random_range(0..7)];
        let fingerprint = Some(format!("{}", random.random_range(0..3)));
        let report = Report { token: leased.token.0, status: Some(status), fingerprint, ..Report::default() };
        let (span, mut done) = self.call(random.random_range(0..200), |now| {
            wait(self.store.complete(&[report], now.timestamp())).unwrap()
        });
        let done = done.remove(0);
        self.completed.fetch_add(1, Ordering::SeqCst);
        self.note((done.outcome != Outcome::Refused).then_some(Note::Completed(span, done)));
    }

    fn discover(&self, leased: &Leased, random: &mut Pcg64) {
        let links = (0..5).map(|_| {
            let (host, page) = (random.random_range(0..HOSTS), random.random_range(0..40));
            Link { url: format!("https://h{host}.example/{page}"), ..Link::default() }
        });
        let page = Page {
            collection: leased.collection.clone(),
            source: Some(leased.url.clone()),
            links: links.collect(),
            ..Page::default()
        };
        self.call(1, |now| wait(self.store.discover(&[page], now.timestamp())).unwrap());
    }
}

fn begin(store: &Embedded, now: Moment) {
    let mut profile = Profile::new("p", "c");
    profile.scope = Scope::Any;
    let seed = Seed { url: SEED.to_owned(), profiles: vec!["p".to_owned()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    wait(store.configure(&changes, now.timestamp())).unwrap();
    let links = (0..HOSTS * 4).map(|number| Link {
        url: format!("https://h{}.example/{number}", number % HOSTS),
        ..Link::default()
    });
    let page =
        Page { collection: "c".into(), seed: Some(SEED.into()), links: links.collect(), ..Page::default() };
    wait(store.discover(&[page], now.timestamp())).unwrap();
}

/// A lease, and how it ended.
struct Life<'a> {
    span: &'a Span,
    /// When the store granted it. That is not before the time that its caller told.
    at: Moment,
    leased: &'a Leased,
    /// The call that ended it; none if it ran out.
    end: Option<&'a Span>,
    /// When the entry is due again.
    due: Option<Moment>,
}

fn lives(notes: &[Note]) -> BTreeMap<Token, Life<'_>> {
    let mut lives = BTreeMap::new();
    for note in notes {
        if let Note::Leased(span, leased) = note {
            let at = Moment::from_millisecond(leased.until.millisecond() - u64::from(HOLD_SECONDS) * 1000);
            assert!(at >= span.now, "{} was granted before it was asked for", leased.token);
            let life = Life { span, at, leased, end: None, due: None };
            assert!(lives.insert(leased.token, life).is_none(), "{} was given to two", leased.token);
        }
    }
    for note in notes {
        let (span, token, due) = match note {
            Note::Completed(span, done) => (span, done.token, done.due),
            Note::Released(span, token) => (span, *token, None),
            Note::Leased(..) => continue,
        };
        let life = lives.get_mut(&token).expect("what ended was leased");
        assert!(life.end.is_none(), "{token} was accepted twice");
        (life.end, life.due) = (Some(span), due);
    }
    lives
}

/// An entry is in one pair of hands at a time, and fetched at most once each time that it is due.
fn audit_entries(lives: &BTreeMap<Token, Life<'_>>) {
    let mut last: BTreeMap<&str, &Life<'_>> = BTreeMap::new();
    for (token, life) in lives {
        let now = life.at;
        assert!(life.leased.due <= now, "{token} was handed out before it was due");
        if let Some(before) = last.insert(&life.leased.url, life) {
            let has_run_out = before.leased.until <= now;
            // Its end was asked for before the next one was told: the store took that call first.
            let has_ended = before.end.is_some_and(|end| end.began < life.span.ended);
            assert!(has_run_out || has_ended, "{} was given to two at once: {token}", life.leased.url);
            let due = before.due.unwrap_or_default();
            assert!(due <= now, "{} was fetched again at {now}, due at {due}", life.leased.url);
        }
    }
}

/// Between two hand-outs of a host lies its delay, and never are more under way than may be.
fn audit_hosts(lives: &BTreeMap<Token, Life<'_>>, settings: &Settings) {
    let mut by_host: BTreeMap<&str, Vec<&Life<'_>>> = BTreeMap::new();
    for life in lives.values() {
        by_host.entry(&life.leased.host).or_default().push(life);
    }
    for (host, lives) in by_host {
        for (index, life) in lives.iter().enumerate() {
            let now = life.at;
            if let Some(before) = index.checked_sub(1).map(|index| lives[index]) {
                let opens = before.at.after(settings.politeness.delay);
                assert!(opens <= now, "{host} was asked at {now}, not to be asked before {opens}");
            }
            let is_surely_held = |other: &&&Life<'_>| {
                other.leased.until > now && other.end.is_none_or(|end| end.began > life.span.ended)
            };
            let held = lives[..index].iter().filter(is_surely_held).count();
            let limit = settings.politeness.in_flight as usize;
            assert!(held < limit, "{host} had {held} in flight at {now} and got another");
        }
    }
}

#[test]
fn eight_threads_never_get_in_each_others_way() {
    let folder = common::new_folder();
    let settings = Settings::default();
    let start = Moment::of("2024-06-15T08:00:00Z".parse().unwrap());
    let store = open(folder.path(), settings.clone());
    begin(&store, start);
    let shop = Shop {
        store,
        stamps: AtomicU64::new(0),
        clock: AtomicU64::new(start.millisecond()),
        completed: AtomicU64::new(0),
        notes: Mutex::new(Vec::new()),
    };
    let enough = setting("FORAGER_SOAK_STEPS", 2000) as u64;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shop = &shop;
            scope.spawn(move || shop.work(thread, enough));
        }
    });
    let Shop { store, clock, notes, .. } = shop;
    let notes = notes.into_inner().unwrap();
    let lives = lives(&notes);
    assert!(lives.len() as u64 >= enough, "only {} leases", lives.len());
    audit_entries(&lives);
    audit_hosts(&lives, &settings);

    let now = Moment::from_millisecond(clock.into_inner()).timestamp();
    let see = |store: &Embedded| {
        let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
        let entries = wait(store.list(&all, now)).unwrap().entries;
        let stats = wait(store.stats(Some("c"), now)).unwrap().remove(0);
        (entries, stats)
    };
    is_sound(&store);
    let (entries, stats) = see(&store);
    let count = |state| entries.iter().filter(|entry| entry.state == state).count() as u64;
    assert_eq!([stats.queued, stats.in_flight, stats.done, stats.failed], State::ALL.map(count));
    let completed = notes.iter().filter(|note| matches!(note, Note::Completed(..))).count() as u64;
    assert_eq!(stats.tally.fetches, completed, "every accepted report was counted once");
    close(store);
    let store = open(folder.path(), settings);
    is_sound(&store);
    assert_eq!(see(&store), (entries, stats), "and all of it is there after a restart");
}
