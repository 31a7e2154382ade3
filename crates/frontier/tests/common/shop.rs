//! Workers who lease, discover and complete at the same time, and an audit of what they were told.
//!
//! They do not know in which order the store took their calls, so the audit claims only what must hold in any
//! order: a stamp is drawn before and after each call from a counter that all share.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::entry::{State, Token};
use forager_frontier::verbs::{
    EntryView, LeaseAnswer, LeaseRequest, Leased, Link, ListFilter, Nothing, Outcome, Page, Report, Stats,
};
use forager_frontier::{Frontier, Moment, Settings};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const HOSTS: u32 = 24;
const HOLD_SECONDS: u32 = 120;
const SEED: &str = "https://h0.example/";

/// When it all begins.
pub fn start() -> Moment {
    Moment::of("2024-06-15T08:00:00Z".parse().unwrap())
}

/// The time and the stamps that all workers share.
#[async_trait]
pub trait Clock: Send + Sync {
    async fn stamp(&self) -> u64;
    /// The time, which goes on so many milliseconds.
    async fn tick(&self, step: u64) -> Moment;
    /// Lets the time go on, but by no more than a minute.
    async fn skip_to(&self, until: Moment);
}

/// The clock of workers in one process.
pub struct Local {
    stamps: AtomicU64,
    now: AtomicU64,
}

impl Local {
    pub fn new() -> Self {
        Self { stamps: AtomicU64::new(0), now: AtomicU64::new(start().millisecond()) }
    }
}

#[async_trait]
impl Clock for Local {
    async fn stamp(&self) -> u64 {
        self.stamps.fetch_add(1, Ordering::SeqCst)
    }

    async fn tick(&self, step: u64) -> Moment {
        Moment::from_millisecond(self.now.fetch_add(step, Ordering::SeqCst))
    }

    async fn skip_to(&self, until: Moment) {
        let now = self.now.load(Ordering::SeqCst);
        let ahead = until.millisecond().saturating_sub(now).min(60_000);
        self.now.fetch_max(now + ahead, Ordering::SeqCst);
    }
}

/// A call as its caller saw it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub began: u64,
    pub ended: u64,
    now: Moment,
}

/// What a worker was told.
#[derive(Clone, Debug)]
pub enum Note {
    Leased {
        span: Span,
        token: Token,
        until: Moment,
        due: Moment,
        host: String,
        url: String,
    },
    Completed {
        span: Span,
        token: Token,
        due: Option<Moment>,
    },
    Released {
        span: Span,
        token: Token,
    },
    /// That there is nothing to do.
    Nothing {
        span: Span,
        said: String,
    },
}

/// As one line, for another process.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |span: &Span| format!("{} {} {}", span.began, span.ended, span.now.millisecond());
        match self {
            Self::Leased { span, token, until, due, host, url } => {
                let (until, due) = (until.millisecond(), due.millisecond());
                write!(f, "leased {} {token} {until} {due} {host} {url}", show(span))
            }
            Self::Completed { span, token, due } => {
                let due = due.map_or(0, Moment::millisecond);
                write!(f, "completed {} {token} {due}", show(span))
            }
            Self::Released { span, token } => write!(f, "released {} {token}", show(span)),
            Self::Nothing { span, said } => write!(f, "nothing {} {said}", show(span)),
        }
    }
}

impl FromStr for Note {
    type Err = std::num::ParseIntError;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>();
        let moment = |at| number(at).map(Moment::from_millisecond);
        let span = Span { began: number(1)?, ended: number(2)?, now: moment(3)? };
        Ok(match words[0] {
            "leased" => Self::Leased {
                span,
                token: Token(number(4)?),
                until: moment(5)?,
                due: moment(6)?,
                host: words[7].to_owned(),
                url: words[8].to_owned(),
            },
            "completed" => {
                let due = Some(moment(5)?).filter(|due| due.millisecond() > 0);
                Self::Completed { span, token: Token(number(4)?), due }
            }
            "released" => Self::Released { span, token: Token(number(4)?) },
            "nothing" => Self::Nothing { span, said: words[4..].join(" ") },
            other => panic!("{other} is no note"),
        })
    }
}

/// What all workers share, besides the store.
pub struct Floor<C> {
    pub clock: C,
    completed: AtomicU64,
    notes: Mutex<Vec<Note>>,
}

impl<C: Clock> Floor<C> {
    pub fn new(clock: C) -> Self {
        Self { clock, completed: AtomicU64::new(0), notes: Mutex::default() }
    }

    /// How many reports were made.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::SeqCst)
    }

    pub fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }

    /// Makes a call at a time of its own, and says when it began and ended.
    async fn call<R, F: Future<Output = R>>(&self, step: u64, call: impl FnOnce(Moment) -> F) -> (Span, R) {
        let now = self.clock.tick(step).await;
        let began = self.clock.stamp().await;
        let answer = call(now).await;
        let ended = self.clock.stamp().await;
        (Span { began, ended, now }, answer)
    }

    fn note(&self, notes: impl IntoIterator<Item = Note>) {
        self.notes.lock().unwrap().extend(notes);
    }

    /// Leases as long as there is not enough done.
    pub async fn work(&self, store: &dyn Frontier, seed: u64, until: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        while self.completed() < until {
            let request = request(4, 2);
            let step = random.random_range(0..40);
            let call = |now: Moment| store.lease(&request, now.timestamp());
            let (span, answer) = self.call(step, call).await;
            let answer = answer.unwrap();
            self.note(answer.leased.iter().map(|leased| leased_note(span, leased)));
            self.sleep(&answer).await;
            for leased in answer.leased {
                self.fetch(store, &leased, &mut random).await;
            }
        }
    }

    /// Nothing to do: all go on when there is.
    async fn sleep(&self, answer: &LeaseAnswer) {
        if !answer.leased.is_empty() {
            return;
        }
        let until = until(answer).unwrap_or_else(|| panic!("{:?}", answer.nothing));
        // Others may be about to report: not all the way at once.
        self.clock.skip_to(until).await;
        tokio::task::yield_now().await;
    }

    async fn fetch(&self, store: &dyn Frontier, leased: &Leased, random: &mut Pcg64) {
        let token = leased.token;
        match random.random_range(0..20) {
            0 => return, // lost
            1 => {
                let call = async |now: Moment| store.release(&[token], now.timestamp()).await.unwrap();
                let (span, told) = self.call(1, call).await;
                self.note(told[0].held.then_some(Note::Released { span, token }));
                return;
            }
            2..8 => self.discover(store, leased, random).await,
            _ => {}
        }
        let status = [200, 200, 200, 200, 304, 404, 500][random.random_range(0..7)];
        let fingerprint = Some(format!("{}", random.random_range(0..3)));
        let report = Report { token: token.0, status: Some(status), fingerprint, ..Report::default() };
        let step = random.random_range(0..200);
        let call = async |now: Moment| store.complete(&[report], now.timestamp()).await.unwrap();
        let (span, mut done) = self.call(step, call).await;
        let done = done.remove(0);
        self.completed.fetch_add(1, Ordering::SeqCst);
        let is_accepted = done.outcome != Outcome::Refused;
        self.note(is_accepted.then_some(Note::Completed { span, token, due: done.due }));
    }

    async fn discover(&self, store: &dyn Frontier, leased: &Leased, random: &mut Pcg64) {
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
        self.call(1, async |now: Moment| store.discover(&[page], now.timestamp()).await.unwrap()).await;
    }

    /// Leases and reports until there is nothing more.
    pub async fn work_off(&self, store: &dyn Frontier, max: usize) {
        let request = request(max, max);
        loop {
            let call = async |now: Moment| store.lease(&request, now.timestamp()).await.unwrap();
            let (span, answer) = self.call(1, call).await;
            if answer.leased.is_empty() {
                if let Some(until) = until(&answer).filter(|until| *until < span.now.after_millis(1000)) {
                    // Another one's clock was ahead.
                    self.clock.skip_to(until).await;
                    continue;
                }
                self.note([Note::Nothing { span, said: format!("{:?}", answer.nothing) }]);
                return;
            }
            self.note(answer.leased.iter().map(|leased| leased_note(span, leased)));
            let report =
                |leased: &Leased| Report { token: leased.token.0, status: Some(200), ..Report::default() };
            let reports: Vec<Report> = answer.leased.iter().map(report).collect();
            let call = async |now: Moment| store.complete(&reports, now.timestamp()).await.unwrap();
            let (span, done) = self.call(1, call).await;
            self.note(
                done.iter().filter(|done| done.outcome != Outcome::Refused).map(|done| Note::Completed {
                    span,
                    token: done.token,
                    due: done.due,
                }),
            );
        }
    }
}

/// When to ask again.
fn until(answer: &LeaseAnswer) -> Option<Moment> {
    match answer.nothing {
        Some(Nothing::NotDue { until } | Nothing::Throttled { until, .. }) => Some(until),
        Some(Nothing::Blocked { until }) => until,
        Some(Nothing::Empty) | None => None,
    }
}

fn request(max: usize, per_host: usize) -> LeaseRequest {
    let hold = Interval::from_secs_f64(f64::from(HOLD_SECONDS));
    LeaseRequest { max, per_host, hold, ..LeaseRequest::default() }
}

fn leased_note(span: Span, leased: &Leased) -> Note {
    let Leased { token, until, due, .. } = *leased;
    Note::Leased { span, token, until, due, host: leased.host.clone(), url: leased.url.clone() }
}

/// A collection with something at each host.
pub async fn begin(store: &dyn Frontier) {
    let now = start();
    let mut profile = Profile::new("p", "c");
    profile.scope = Scope::Any;
    let seed = Seed { url: SEED.to_owned(), profiles: vec!["p".to_owned()], enabled: true };
    let changes = [
        Change::AddCollection(CollectionSpec::new("c", Kind::Planned)),
        Change::AddProfile(Box::new(profile)),
        Change::AddSeed(seed),
    ];
    store.configure(&changes, now.timestamp()).await.unwrap();
    let links = (0..HOSTS * 4).map(|number| Link {
        url: format!("https://h{}.example/{number}", number % HOSTS),
        ..Link::default()
    });
    let page =
        Page { collection: "c".into(), seed: Some(SEED.into()), links: links.collect(), ..Page::default() };
    store.discover(&[page], now.timestamp()).await.unwrap();
}

/// A lease, and how it ended.
pub struct Life<'a> {
    pub span: Span,
    /// When the store granted it. That is not before the time that its caller told.
    at: Moment,
    until: Moment,
    was_due: Moment,
    host: &'a str,
    pub url: &'a str,
    /// The call that ended it; none if it ran out.
    end: Option<Span>,
    /// When the entry is due again.
    due: Option<Moment>,
}

/// All leases, with their tokens, in the order of time.
pub fn lives(notes: &[Note]) -> Vec<(Token, Life<'_>)> {
    let mut lives = BTreeMap::new();
    for note in notes {
        if let Note::Leased { span, token, until, due, host, url } = note {
            let at = Moment::from_millisecond(until.millisecond() - u64::from(HOLD_SECONDS) * 1000);
            assert!(at >= span.now, "{token} was granted before it was asked for");
            let (span, until, was_due) = (*span, *until, *due);
            let life = Life { span, at, until, was_due, host, url, end: None, due: None };
            assert!(lives.insert(*token, life).is_none(), "{token} was given to two");
        }
    }
    for note in notes {
        let (span, token, due) = match *note {
            Note::Completed { span, token, due } => (span, token, due),
            Note::Released { span, token } => (span, token, None),
            Note::Leased { .. } | Note::Nothing { .. } => continue,
        };
        let life = lives.get_mut(&token).expect("what ended was leased");
        assert!(life.end.is_none(), "{token} was accepted twice");
        (life.end, life.due) = (Some(span), due);
    }
    let mut lives: Vec<_> = lives.into_iter().collect();
    lives.sort_by_key(|(token, life)| (life.at, *token));
    lives
}

/// Nothing was in two hands, and no host was asked too early or too often.
pub fn audit(lives: &[(Token, Life<'_>)], settings: &Settings) {
    audit_entries(lives);
    audit_hosts(lives, settings);
}

/// An entry is in one pair of hands at a time, and fetched at most once each time that it is due.
fn audit_entries(lives: &[(Token, Life<'_>)]) {
    let mut last: BTreeMap<&str, &Life<'_>> = BTreeMap::new();
    for (token, life) in lives {
        let now = life.at;
        assert!(life.was_due <= now, "{token} was handed out before it was due");
        if let Some(before) = last.insert(life.url, life) {
            let has_run_out = before.until <= now;
            // Its end was asked for before the next one was told: the store took that call first.
            let has_ended = before.end.is_some_and(|end| end.began < life.span.ended);
            assert!(has_run_out || has_ended, "{} was given to two at once: {token}", life.url);
            let due = before.due.unwrap_or_default();
            assert!(due <= now, "{} was fetched again at {now}, due at {due}", life.url);
        }
    }
}

/// Between two hand-outs of a host lies its delay, and never are more under way than may be.
fn audit_hosts(lives: &[(Token, Life<'_>)], settings: &Settings) {
    let mut by_host: BTreeMap<&str, Vec<&Life<'_>>> = BTreeMap::new();
    for (_, life) in lives {
        by_host.entry(life.host).or_default().push(life);
    }
    for (host, lives) in by_host {
        for (index, life) in lives.iter().enumerate() {
            let now = life.at;
            if let Some(before) = index.checked_sub(1).map(|index| lives[index]) {
                let opens = before.at.after(settings.politeness.delay);
                assert!(opens <= now, "{host} was asked at {now}, not to be asked before {opens}");
            }
            let is_surely_held = |other: &&&Life<'_>| {
                other.until > now && other.end.is_none_or(|end| end.began > life.span.ended)
            };
            let held = lives[..index].iter().filter(is_surely_held).count();
            let limit = settings.politeness.in_flight as usize;
            assert!(held < limit, "{host} had {held} in flight at {now} and got another");
        }
    }
}

/// Everything that can be seen of the collection, which is counted right: every accepted report once.
pub async fn see(store: &dyn Frontier, notes: &[Note], now: Moment) -> (Vec<EntryView>, Stats) {
    let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
    let entries = store.list(&all, now.timestamp()).await.unwrap().entries;
    let stats = store.stats(None, now.timestamp()).await.unwrap().remove(0);
    let count = |state| entries.iter().filter(|entry| entry.state == state).count() as u64;
    assert_eq!([stats.queued, stats.in_flight, stats.done, stats.failed], State::ALL.map(count));
    let completed = notes.iter().filter(|note| matches!(note, Note::Completed { .. })).count() as u64;
    assert_eq!(stats.tally.fetches, completed, "every accepted report was counted once");
    (entries, stats)
}
