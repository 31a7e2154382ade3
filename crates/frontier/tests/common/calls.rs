//! Random calls over a small universe: few hosts, pages, collections, profiles of every order, seeds.
//!
//! A call is a plain value and picks what it is about by number, so that any part of a sequence makes
//! sense by itself and a failure can be cut down to what it needs.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Write as _};
use std::str::FromStr;

use forager_core::order::Order;
use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Limits};
use forager_frontier::entry::{How, Token, Validators};
use forager_frontier::host::{HostSettings, Robots};
use forager_frontier::verbs::{
    Action, Difference, FetchError, FetchRow, HostChange, HostFilter, Item, LeaseRequest, Leased, Link,
    ListFilter, NewJob, Note, Outcome, Page, PlanFilter, Purge, Put, Report, Sent, Steer, Target, Word,
    text_key,
};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub const PLANNED: [&str; 2] = ["a", "b"];
pub const COLLECTIONS: [&str; 6] = ["a", "b", "p", "q", "job", "gig"];
const JOBS: [&str; 2] = ["job", "gig"];
const HOSTS: [&str; 4] = ["x.example", "www.x.example", "y.example", "z.example"];
const PATHS: [&str; 15] = [
    "/",
    "/news",
    "/news/1",
    "/news/2",
    "/zakon/1",
    "/archive/1",
    "/f.pdf",
    "/services/install",
    "/about",
    "/a/b/c",
    "/x?b=2&a=1",
    "/x?a=1&b=2",
    "/logout",
    "/d/e/f/g",
    "/z",
];
/// Keys of notes. The first can have none.
const NOTES: [&str; 6] = ["", "robots x.example", "robots y.example", "text", "k", "k "];
const KEYS: [&str; 3] = ["k", "x.example", "other key"];
const TIMES: [u64; 13] = [
    0,
    1,
    500,
    1000,
    2500,
    10_000,
    60_000,
    300_000,
    3_600_000,
    18_000_000,
    86_400_000,
    700_000_000,
    4_000_000_000,
];

fn url(number: u8) -> String {
    let number = usize::from(number);
    format!("https://{}{}", HOSTS[number % HOSTS.len()], PATHS[number / HOSTS.len() % PATHS.len()])
}

/// Something that is asked of a frontier.
#[derive(Clone, Debug)]
pub enum Call {
    Configure(Vec<Edit>),
    Start(u8),
    Discover {
        collection: u8,
        source: u8,
        depth: u8,
        links: Vec<(u8, u8)>,
    },
    Put {
        collection: u8,
        items: Vec<(u8, u8)>,
    },
    Remove {
        collection: u8,
        key: Option<u8>,
    },
    Purge {
        collection: u8,
        key: Option<u8>,
        all: bool,
    },
    Lease {
        max: u8,
        per_host: u8,
        collection: Option<u8>,
        host: Option<u8>,
        hold: u8,
    },
    Complete(Vec<Told>),
    Extend(Vec<u8>, u8),
    Release(Vec<u8>),
    Reclaim(u8),
    Note(Vec<(u8, u8, u8)>),
    SetHost {
        host: u8,
        plain: Option<u8>,
        kind: u8,
        amount: u8,
    },
    StartJob {
        job: u8,
        url: u8,
        order: u8,
        limit: u8,
    },
    SteerJob {
        job: u8,
        how: u8,
    },
    Import {
        from: u8,
        to: u8,
    },
    Pass(u8),
    /// The next calls come from one whose clock is behind.
    Back(u8),
    Look(u8, u8),
}

/// A report of one of the last leases: what came of it, what it says besides, and what was found.
#[derive(Clone, Debug)]
pub struct Told {
    lease: u8,
    look: u8,
    extras: u8,
    links: Vec<(u8, u8)>,
}

/// A change of the catalog.
#[derive(Clone, Debug)]
pub enum Edit {
    Collection { which: u8, kind: u8 },
    EnableCollection(u8, bool),
    RemoveCollection(u8),
    Profile { which: u8, look: u8, set: bool },
    EnableProfile(u8, bool),
    RemoveProfile(u8),
    Seed { which: u8, profiles: u8, set: bool },
    EnableSeed(u8, bool),
    RemoveSeed(u8),
}

fn edits() -> impl Strategy<Value = Edit> {
    let n = any::<u8>;
    prop_oneof![
        2 => (n(), n()).prop_map(|(which, kind)| Edit::Collection { which, kind }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableCollection(which, on)),
        1 => n().prop_map(Edit::RemoveCollection),
        4 => (n(), n(), any::<bool>()).prop_map(|(which, look, set)| Edit::Profile { which, look, set }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableProfile(which, on)),
        1 => n().prop_map(Edit::RemoveProfile),
        4 => (n(), n(), any::<bool>()).prop_map(|(which, profiles, set)| Edit::Seed { which, profiles, set }),
        3 => (n(), any::<bool>()).prop_map(|(which, on)| Edit::EnableSeed(which, on)),
        1 => n().prop_map(Edit::RemoveSeed),
    ]
}

/// Every call, those of every day more often.
pub fn calls() -> impl Strategy<Value = Call> {
    let n = any::<u8>;
    let some = |most| proptest::collection::vec(any::<u8>(), 1..most);
    let pairs = |most| proptest::collection::vec((any::<u8>(), any::<u8>()), 1..most);
    let maybe = || proptest::option::weighted(0.2, any::<u8>());
    let told = (n(), n(), n(), proptest::collection::vec((n(), n()), 0..4))
        .prop_map(|(lease, look, extras, links)| Told { lease, look, extras, links });
    prop_oneof![
        3 => proptest::collection::vec(edits(), 1..4).prop_map(Call::Configure),
        2 => n().prop_map(Call::Start),
        12 => (n(), n(), n(), pairs(8)).prop_map(|(collection, source, depth, links)| {
            Call::Discover { collection, source, depth, links }
        }),
        8 => (n(), pairs(6)).prop_map(|(collection, items)| Call::Put { collection, items }),
        1 => (n(), proptest::option::weighted(0.8, n())).prop_map(|(collection, key)| {
            Call::Remove { collection, key }
        }),
        1 => (n(), maybe(), any::<bool>()).prop_map(|(collection, key, all)| {
            Call::Purge { collection, key, all }
        }),
        16 => (n(), n(), maybe(), maybe(), n()).prop_map(|(max, per_host, collection, host, hold)| {
            Call::Lease { max, per_host, collection, host, hold }
        }),
        12 => proptest::collection::vec(told, 1..5).prop_map(Call::Complete),
        2 => (some(4), n()).prop_map(|(tokens, hold)| Call::Extend(tokens, hold)),
        3 => some(4).prop_map(Call::Release),
        1 => n().prop_map(Call::Reclaim),
        4 => proptest::collection::vec((n(), n(), n()), 1..4).prop_map(Call::Note),
        3 => (n(), maybe(), n(), n()).prop_map(|(host, plain, kind, amount)| {
            Call::SetHost { host, plain, kind, amount }
        }),
        1 => (n(), n(), n(), n()).prop_map(|(job, url, order, limit)| Call::StartJob { job, url, order, limit }),
        1 => (n(), n()).prop_map(|(job, how)| Call::SteerJob { job, how }),
        1 => (n(), n()).prop_map(|(from, to)| Call::Import { from, to }),
        16 => n().prop_map(Call::Pass),
        1 => n().prop_map(Call::Back),
        4 => (n(), n()).prop_map(|(what, which)| Call::Look(what, which)),
    ]
}

/// A source of values that comes out the same for the same seed.
pub fn runner(seed: u64, cases: u32) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4096,
        max_shrink_time: 60_000,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, rng)
}

/// The first calls of the sequence that belongs to a seed.
pub fn sequence(seed: u64, count: usize) -> Vec<Call> {
    let mut runner = runner(seed, 1);
    let strategy = calls();
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("calls can always be made").current()).collect()
}

/// How many leases are remembered.
const REMEMBERED: usize = 24;

/// What one who makes these calls knows: the time, and the leases it was given last.
#[derive(Clone, Debug)]
pub struct Caller {
    pub now: Moment,
    /// The latest time that anybody was told, see [`Moment::advanced`].
    latest: Moment,
    tokens: VecDeque<Token>,
}

impl Default for Caller {
    fn default() -> Self {
        let now = Moment::of("2024-06-15T08:00:00Z".parse().unwrap());
        Self { now, latest: now, tokens: VecDeque::new() }
    }
}

/// As one line, so that another process can go on.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.now.millisecond(), self.latest.millisecond())?;
        self.tokens.iter().try_for_each(|token| write!(f, " {token}"))
    }
}

impl FromStr for Caller {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut numbers = text.split(' ').map(str::parse);
        let mut moment = || numbers.next().unwrap_or(Ok(0)).map(Moment::from_millisecond);
        let (now, latest) = (moment()?, moment()?);
        let tokens = numbers.map(|number| number.map(Token));
        Ok(Self { now, latest, tokens: tokens.collect::<Result<_, _>>()? })
    }
}

/// What was answered, in words that can be compared, and what was handed out.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub text: String,
    /// Whether anything was done.
    pub is_done: bool,
    /// Whether the frontier was told the time, which moves it even where nothing was done.
    pub tells_time: bool,
    pub leased: Vec<Leased>,
    /// Leases that a report, a release or a removal has ended.
    pub ended: Vec<Token>,
    /// Those of them that robots.txt forbade to fetch.
    pub forbidden: Vec<Token>,
    /// The collection that has taken back its leases, and how many.
    pub reclaimed: Option<(String, u64)>,
    /// What nobody holds any more: collection, queue key and URL, or any.
    pub freed: Vec<Freed>,
    /// Leases that have another end now.
    pub extended: Vec<(Token, Moment)>,
}

/// Entries that were told of otherwise, or removed: of a collection, a queue of it, a URL in that.
#[derive(Clone, Debug)]
pub struct Freed {
    pub collection: String,
    pub key: Option<String>,
    pub url: Option<String>,
}

fn told<T: Debug>(result: forager_frontier::Result<T>) -> Answer {
    let is_done = result.is_ok();
    let text = match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    };
    Answer { text, is_done, tells_time: true, ..Answer::default() }
}

impl Caller {
    fn time(&self) -> Timestamp {
        self.now.timestamp()
    }

    /// One of the last leases that it was given, or now and then none at all.
    fn token(&self, pick: u8) -> Token {
        let index = usize::from(pick) % self.tokens.len().max(1);
        let known = self.tokens.iter().rev().nth(index).filter(|_| pick < 240);
        known.copied().unwrap_or(Token(u64::from(pick) + 1_000_000))
    }

    /// Does not show again what it has shown, most of the time.
    fn forget(&mut self, ended: &[Token]) {
        self.tokens.retain(|token| token.0.is_multiple_of(4) || !ended.contains(token));
    }

    /// What there is to begin with, so that sequences get somewhere.
    pub async fn set_up(&self, frontier: &dyn Frontier) {
        let mut changes: Vec<Change> = vec![];
        for (name, kind) in [("a", Kind::Planned), ("b", Kind::Planned), ("p", Kind::Plain)] {
            changes.push(Change::AddCollection(CollectionSpec::new(name, kind)));
        }
        changes.extend((0..6).map(|which| Change::AddProfile(Box::new(profile(which, which)))));
        changes.extend((0..5).map(|which| Change::AddSeed(seed(which, 0b0101_0101 << (which % 2)))));
        frontier.configure(&changes, self.time()).await.unwrap();
        let targets = PLANNED.map(|name| Target::Collection(name.to_owned()));
        frontier.start(&targets, self.time()).await.unwrap();
    }

    /// Makes a call.
    pub async fn make(&mut self, frontier: &dyn Frontier, call: &Call) -> Answer {
        let answer = self.ask(frontier, call).await;
        if answer.tells_time {
            self.looked();
        }
        self.forget(&answer.ended);
        answer
    }

    /// Has told the time by looking, which is no call.
    pub fn looked(&mut self) {
        self.latest = self.latest.advanced(self.now);
    }

    /// Reads the clock anew, as a process does that has just begun: calls that only look move the time of a
    /// frontier, but leave no trace of it.
    pub fn begin(&mut self) {
        self.now = self.now.max(self.latest);
    }

    /// One that has read the clock anew.
    pub fn begun(&self) -> Self {
        let mut begun = self.clone();
        begun.begin();
        begun
    }

    async fn ask(&mut self, frontier: &dyn Frontier, call: &Call) -> Answer {
        let now = self.time();
        match call {
            Call::Pass(pick) => {
                self.now = self.now.after_millis(TIMES[usize::from(*pick) % TIMES.len()]);
                Answer::default()
            }
            Call::Back(pick) => {
                let back = TIMES[usize::from(*pick) % TIMES.len()].min(300_000);
                self.now = Moment::from_millisecond(self.now.millisecond() - back);
                Answer::default()
            }
            Call::Configure(edits) => {
                let changes: Vec<Change> = edits.iter().map(change).collect();
                told(frontier.configure(&changes, now).await)
            }
            Call::Start(pick) => told(frontier.start(&[target(*pick)], now).await),
            Call::Discover { collection, source, depth, links } => {
                let page = found(*collection, *source, *depth, links, self.now);
                told(frontier.discover(&[page], now).await)
            }
            Call::Put { collection, items } => self.put(frontier, *collection, items).await,
            Call::Remove { collection, key } => {
                let (collection, key) = (collection_name(*collection), key.map(queue_key));
                let answer = frontier.remove(collection, key, now).await;
                Answer { freed: freed(collection, key), ..told(answer) }
            }
            Call::Purge { collection, key, all } => self.purge(frontier, *collection, *key, *all).await,
            Call::Lease { max, per_host, collection, host, hold } => {
                let request = lease_request([*max, *per_host, *hold], *collection, *host);
                let answer = frontier.lease(&request, now).await;
                let leased = answer.as_ref().map(|answer| answer.leased.clone()).unwrap_or_default();
                self.tokens.extend(leased.iter().map(|leased| leased.token));
                self.tokens.drain(..self.tokens.len().saturating_sub(REMEMBERED));
                Answer { leased, ..told(answer) }
            }
            Call::Complete(picks) => {
                let reports: Vec<Report> =
                    picks.iter().map(|told| report(self.token(told.lease), told, self.now)).collect();
                let answer = frontier.complete(&reports, now).await;
                let accepted = answer.iter().flatten().filter(|done| done.outcome != Outcome::Refused);
                let ended: Vec<Token> = accepted.map(|done| done.token).collect();
                let forbidden = reports.iter().filter(|report| report.error == Some(FetchError::Robots));
                let forbidden = forbidden.map(|report| Token(report.token));
                let forbidden = forbidden.filter(|token| ended.contains(token)).collect();
                Answer { ended, forbidden, ..told(answer) }
            }
            Call::Extend(picks, hold) => {
                let tokens: Vec<Token> = picks.iter().map(|&pick| self.token(pick)).collect();
                let hold = Interval::from_secs_f64(f64::from(u16::from(hold % 9) * 60));
                let answer = frontier.extend(&tokens, hold, now).await;
                let extended = answer.as_ref().map(|changes| {
                    changes.iter().filter_map(|change| Some((change.token, change.until?))).collect()
                });
                Answer { extended: extended.unwrap_or_default(), ..told(answer) }
            }
            Call::Release(picks) => {
                let tokens: Vec<Token> = picks.iter().map(|&pick| self.token(pick)).collect();
                let answer = frontier.release(&tokens, now).await;
                let held = answer.as_ref().map(|changes| {
                    changes.iter().filter(|change| change.held).map(|change| change.token).collect()
                });
                Answer { ended: held.unwrap_or_default(), ..told(answer) }
            }
            Call::Reclaim(pick) => {
                let name = collection_name(*pick);
                let answer = frontier.reclaim(name, now).await;
                let count = answer.as_ref().copied().unwrap_or_default();
                Answer { reclaimed: Some((name.to_owned(), count)), ..told(answer) }
            }
            Call::Note(picks) => {
                let notes: Vec<Note> = picks.iter().map(|pick| note(*pick, self.now)).collect();
                told(frontier.note(&notes, now).await)
            }
            Call::SetHost { host, plain, kind, amount } => {
                let change = HostChange {
                    key: HOSTS[usize::from(*host) % HOSTS.len()].to_owned(),
                    collection: plain.map(|pick| collection_name(pick).to_owned()),
                    sets: settings(*kind, *amount, self.now).all(),
                    only_known: plain.is_some() && amount.is_multiple_of(3),
                };
                told(frontier.set_hosts(&[change], now).await)
            }
            Call::StartJob { job, url, order, limit } => {
                told(frontier.start_job(&new_job(*job, *url, *order, *limit), now).await)
            }
            Call::SteerJob { job, how } => {
                let steer = [Steer::Pause, Steer::Resume, Steer::Resume, Steer::Cancel][usize::from(how % 4)];
                told(frontier.steer_job(JOBS[usize::from(job % 2)], steer, now).await)
            }
            Call::Import { from, to } => self.import(frontier, *from, *to).await,
            Call::Look(what, which) => self.look(frontier, *what, *which).await,
        }
    }

    async fn put(&self, frontier: &dyn Frontier, collection: u8, items: &[(u8, u8)]) -> Answer {
        let name = collection_name(collection);
        let items: Vec<Item> = items.iter().map(|pick| item(*pick, self.now)).collect();
        let put = Put { collection: name.to_owned(), items };
        let answer = frontier.put(std::slice::from_ref(&put), self.time()).await;
        let actions = answer.iter().flatten().map(|told| told.action);
        let heard = put.items.iter().zip(actions).filter(|(_, action)| *action == Action::Improved);
        let catalog = frontier.catalog().await.unwrap();
        let is_plain = catalog.collection(name).is_some_and(|row| row.spec.kind == Kind::Plain);
        let freed = heard.map(|(item, _)| {
            let host = item.url.split('/').nth(2).unwrap_or_default();
            let key = item.key.clone().unwrap_or_else(|| host.to_owned());
            let (key, url) = (is_plain.then_some(key), Some(item.url.clone()));
            Freed { collection: name.to_owned(), key, url }
        });
        Answer { freed: freed.collect(), ..told(answer) }
    }

    async fn purge(&self, frontier: &dyn Frontier, collection: u8, key: Option<u8>, all: bool) -> Answer {
        let (collection, key) = (collection_name(collection), key.map(queue_key));
        let purge = Purge {
            collection: collection.to_owned(),
            key: key.map(str::to_owned),
            before: if all { Moment::NEVER } else { Moment::from_second(1) },
            after: None,
            limit: usize::MAX,
        };
        let answer = frontier.purge(&purge, self.time()).await;
        Answer { freed: if all { freed(collection, key) } else { vec![] }, ..told(answer) }
    }

    async fn import(&self, frontier: &dyn Frontier, from: u8, to: u8) -> Answer {
        let images = match frontier.export(collection_name(from), None, 20, self.time()).await {
            Ok(images) => images,
            Err(error) => return told::<()>(Err(error)),
        };
        let imported = told(frontier.import(collection_name(to), &images, self.time()).await);
        Answer { is_done: true, ..imported }
    }

    /// One look at something.
    async fn look(&self, frontier: &dyn Frontier, what: u8, which: u8) -> Answer {
        let (now, name) = (self.time(), collection_name(which));
        match what % 6 {
            0 => told(frontier.explain(name, &url(what), now).await),
            1 => {
                let filter = PlanFilter { collection: None, host: None, limit: usize::from(which % 16) };
                told(frontier.plan(&filter, now).await)
            }
            2 => {
                let filter = ListFilter { limit: usize::from(which % 8), ..ListFilter::default() };
                told(frontier.list(&filter, now).await)
            }
            3 => {
                let keys = [which, which / 8].map(|pick| NOTES[usize::from(pick) % NOTES.len()].to_owned());
                Answer { is_done: false, tells_time: false, ..told(frontier.noted(&keys).await) }
            }
            4 => {
                let (from, limit) = (u64::from(which % 32), usize::from(what / 6));
                Answer { is_done: false, tells_time: false, ..told(frontier.fetches(from, limit).await) }
            }
            _ => {
                let key = which.is_multiple_of(2).then(|| queue_key(which / 2));
                told(frontier.entry(name, key, &url(what), now).await)
            }
        }
    }

    /// All that can be seen, a line for each thing.
    pub async fn see_all(&self, frontier: &dyn Frontier) -> Vec<String> {
        let now = self.time();
        let mut lines = vec![];
        let all = ListFilter { limit: usize::MAX, ..ListFilter::default() };
        for entry in frontier.list(&all, now).await.unwrap().entries {
            lines.push(format!("{entry:?}"));
        }
        for view in
            frontier.hosts(&HostFilter { limit: usize::MAX, ..HostFilter::default() }, now).await.unwrap()
        {
            lines.push(format!("{view:?}"));
        }
        for stats in frontier.stats(None, now).await.unwrap() {
            lines.push(format!("{stats:?}"));
        }
        for event in frontier.events(0, usize::MAX).await.unwrap() {
            lines.push(format!("{event:?}"));
        }
        for fetch in frontier.fetches(0, usize::MAX).await.unwrap() {
            lines.push(format!("{fetch:?}"));
        }
        lines.extend(see_notes(frontier).await);
        for job in frontier.jobs(now).await.unwrap() {
            lines.push(format!("{job:?}"));
        }
        let plan = PlanFilter { limit: 1000, ..PlanFilter::default() };
        for planned in frontier.plan(&plan, now).await.unwrap() {
            lines.push(format!("{planned:?}"));
        }
        let rows = frontier.catalog().await.unwrap();
        lines.push(format!("{:?}", rows.rows()));
        for name in COLLECTIONS {
            for number in (0..60).step_by(7) {
                let mut line = format!("{name} {}: ", url(number));
                let _ = write!(line, "{}", told(frontier.explain(name, &url(number), now).await).text);
                lines.push(line);
            }
            lines.push(told(frontier.export(name, None, usize::MAX, now).await).text);
        }
        lines
    }
}

fn lease_request([max, per_host, hold]: [u8; 3], collection: Option<u8>, host: Option<u8>) -> LeaseRequest {
    LeaseRequest {
        max: usize::from(max % 6),
        per_host: usize::from(per_host % 4),
        hosts: if hold.is_multiple_of(7) { 1 } else { usize::MAX },
        busy_at: if hold.is_multiple_of(11) { 1 } else { usize::MAX },
        bytes: if hold.is_multiple_of(13) { 40 } else { usize::MAX },
        collection: collection.map(|pick| collection_name(pick).to_owned()),
        host: host.map(|pick| HOSTS[usize::from(pick) % HOSTS.len()].to_owned()),
        hold: Interval::from_secs_f64(f64::from(u16::from(hold % 5) * 300 + 1)),
        plain_delay: hold.is_multiple_of(3).then(|| Interval::from_secs_f64(f64::from(hold % 13))),
    }
}

fn freed(collection: &str, key: Option<&str>) -> Vec<Freed> {
    vec![Freed { collection: collection.to_owned(), key: key.map(str::to_owned), url: None }]
}

/// A queue key: one that clients give, or a host.
fn queue_key(pick: u8) -> &'static str {
    let keys = KEYS.iter().chain(&HOSTS).copied();
    keys.cycle().nth(usize::from(pick % 7)).unwrap_or_default()
}

/// What a client says of a URL.
fn item((what, look): (u8, u8), now: Moment) -> Item {
    let word = match look % 5 {
        0 | 1 => Word::Found,
        2 => Word::Done,
        3 => Word::Due(now),
        _ => Word::Due(Moment::from_second(now.second().saturating_add(u32::from(look) * 7))),
    };
    Item {
        url: url(what),
        key: look.is_multiple_of(3).then(|| queue_key(look / 3).to_owned()),
        word,
        metadata: look.is_multiple_of(4).then(|| format!("{{\"look\":[\"{look}\"]}}")),
        source: look.is_multiple_of(7).then(|| url(look)),
        status: look.is_multiple_of(6).then_some(if look.is_multiple_of(12) { 404 } else { 200 }),
    }
}

/// All that was written down, and the texts of all pages.
async fn see_notes(frontier: &dyn Frontier) -> Vec<String> {
    let texts = COLLECTIONS.iter().flat_map(|name| (0..60).map(|number| text_key(name, &url(number))));
    let keys: Vec<String> = NOTES.iter().map(ToString::to_string).chain(texts).collect();
    let noted = frontier.noted(&keys).await.unwrap();
    assert_eq!(noted.len(), keys.len(), "one answer for each key");
    keys.iter().zip(noted).filter_map(|(key, value)| Some(format!("{key}: {:?}", value?))).collect()
}

impl Call {
    /// The hosts of planned collections whose robots.txt it brings, with the wait that they ask for.
    pub fn slows_hosts(&self, now: Moment) -> Vec<(String, Option<Interval>)> {
        let Self::Note(picks) = self else { return Vec::new() };
        let slowed = picks.iter().filter_map(|pick| match note(*pick, now) {
            Note::CrawlDelay(host, delay) => Some((host, delay)),
            Note::Keep(..) | Note::Fetch(_) => None,
        });
        slowed.collect()
    }

    /// The host that it sets something for, if that is one of planned collections.
    pub fn sets_host(&self, now: Moment) -> Option<(&'static str, HostSettings)> {
        match *self {
            Self::SetHost { host, plain: None, kind, amount } => {
                Some((HOSTS[usize::from(host) % HOSTS.len()], settings(kind, amount, now)))
            }
            _ => None,
        }
    }

    /// The collections that it removes.
    pub fn removes(&self) -> Vec<String> {
        let Self::Configure(edits) = self else { return Vec::new() };
        let removed = edits.iter().filter_map(|edit| match change(edit) {
            Change::RemoveCollection(name) => Some(name),
            _ => None,
        });
        removed.collect()
    }
}

fn collection_name(pick: u8) -> &'static str {
    // The planned ones more often.
    let index = usize::from(pick) % 10;
    COLLECTIONS.get(index).copied().unwrap_or(PLANNED[index % 2])
}

fn profile_name(which: u8) -> String {
    format!("p{}", which % 7)
}

/// Profiles of every order; each belongs to one collection.
fn profile(which: u8, look: u8) -> Profile {
    let mut profile = Profile::new(profile_name(which), PLANNED[usize::from(which % 2)]);
    profile.order = Order::ALL[usize::from(look) % Order::ALL.len()];
    profile.scope =
        [Scope::Domain, Scope::Any, Scope::Prefix, Scope::Host, Scope::Page][usize::from(look / 6) % 5];
    profile.depth = [None, Some(1), Some(3)][usize::from(look / 7) % 3];
    profile.every = [None, Some(Interval::hours(2)), None][usize::from(look / 5) % 3];
    profile.length = [None, None, Some(1), Some(2)][usize::from(look / 3) % 4];
    profile.hops_off_domain = u32::from(look % 3);
    if look.is_multiple_of(5) {
        profile.exclude = vec!["logout".to_owned()];
    }
    profile
}

fn seed(which: u8, profiles: u8) -> Seed {
    let names = (0..7).filter(|bit| profiles & (1 << bit) != 0).map(profile_name).collect();
    Seed { url: url([0, 1, 4, 2, 22, 3][usize::from(which) % 6]), profiles: names, enabled: true }
}

fn change(edit: &Edit) -> Change {
    let name = |which: u8| COLLECTIONS[usize::from(which) % 4].to_owned();
    match *edit {
        Edit::Collection { which, kind } => {
            let name = name(which);
            let kind = if kind % 8 == 0 || name == "p" || name == "q" { Kind::Plain } else { Kind::Planned };
            Change::AddCollection(CollectionSpec::new(name, kind))
        }
        Edit::EnableCollection(which, on) => Change::EnableCollection(name(which), on),
        Edit::RemoveCollection(which) => Change::RemoveCollection(name(which)),
        Edit::Profile { which, look, set: true } => Change::SetProfile(Box::new(profile(which, look))),
        Edit::Profile { which, look, set: false } => Change::AddProfile(Box::new(profile(which, look))),
        Edit::EnableProfile(which, on) => Change::EnableProfile(profile_name(which), on),
        Edit::RemoveProfile(which) => Change::RemoveProfile(profile_name(which)),
        Edit::Seed { which, profiles, set: true } => Change::SetSeed(seed(which, profiles)),
        Edit::Seed { which, profiles, set: false } => Change::AddSeed(seed(which, profiles)),
        Edit::EnableSeed(which, on) => Change::EnableSeed(seed(which, 0).url, on),
        Edit::RemoveSeed(which) => Change::RemoveSeed(seed(which, 0).url),
    }
}

fn target(pick: u8) -> Target {
    match pick % 3 {
        0 => Target::Seed(seed(pick / 3, 0).url),
        1 => Target::Profile(profile_name(pick / 3)),
        _ => Target::Collection(collection_name(pick / 3).to_owned()),
    }
}

fn found(collection: u8, source: u8, depth: u8, links: &[(u8, u8)], now: Moment) -> Page {
    Page {
        collection: collection_name(collection).to_owned(),
        source: (!source.is_multiple_of(4)).then(|| url(source)),
        seed: (!source.is_multiple_of(5)).then(|| seed(depth, 0).url),
        depth: u32::from(depth % 4),
        links: links.iter().map(|&pick| link(pick, now)).collect(),
    }
}

fn link((number, look): (u8, u8), now: Moment) -> Link {
    let hows = [How::Link, How::Link, How::Sitemap, How::Redirect, How::Other, How::Listing, How::Link];
    Link {
        url: if look == 255 { "mailto:nobody".to_owned() } else { url(number) },
        how: hows[usize::from(look) % hows.len()],
        in_header: look.is_multiple_of(3),
        text: if look.is_multiple_of(7) { "our services".to_owned() } else { String::new() },
        title: String::new(),
        relevance: (look % 4 == 1).then(|| f64::from(look) / 255.0),
        key: (look % 4 == 2).then(|| KEYS[usize::from(look) % KEYS.len()].to_owned()),
        due: (look % 4 == 3).then(|| now.after_millis(u64::from(look) * 100_000)),
        metadata: look.is_multiple_of(11).then(|| format!("{{\"look\": {look}}}")),
        last_modified: look.is_multiple_of(2).then_some(now),
    }
}

fn note((kind, which, amount): (u8, u8, u8), now: Moment) -> Note {
    let host = HOSTS[usize::from(which) % HOSTS.len()].to_owned();
    let key = NOTES[usize::from(which) % NOTES.len()].to_owned();
    match kind % 8 {
        // A key that can have no note fails the whole call: not too often.
        0..=2 if key.is_empty() && amount < 200 => Note::Keep(NOTES[1].to_owned(), Some(vec![amount])),
        0 | 1 => Note::Keep(key, Some(vec![amount; usize::from(amount)])),
        2 => Note::Keep(key, None),
        3 | 4 => Note::CrawlDelay(host, Some(Interval::from_secs_f64(f64::from(amount % 16)))),
        5 => Note::CrawlDelay(host, None),
        _ => {
            let (url, started) = (format!("https://{host}/robots.txt"), now);
            let back_off_until = (amount > 200).then(|| now.after_millis(u64::from(amount) * 1000));
            let bytes = amount.into();
            Note::Fetch(FetchRow { started, host, url, bytes, back_off_until, ..FetchRow::default() })
        }
    }
}

fn report(token: Token, told: &Told, now: Moment) -> Report {
    let &Told { look, extras, .. } = told;
    let has = |bit: u8| extras & bit != 0;
    let long = if has(64) { 600 } else { 2 };
    let report = Report {
        token: token.0,
        bytes: u64::from(look),
        links: told.links.iter().map(|&pick| link(pick, now)).collect(),
        text: has(1).then(|| format!("says {extras}")),
        validators: Validators {
            etag: has(2).then(|| "e".repeat(long)),
            last_modified: has(4).then(|| format!("{extras}")),
        },
        difference: Difference { added: vec![format!("{extras}")], removed: Vec::new() },
        fetch: has(8).then(|| Sent { at: now, ended: None, robots: "allowed".to_owned() }),
        ..Report::default()
    };
    let status = |status| Report { status: Some(status), ..report.clone() };
    match look % 16 {
        0..=5 => Report { fingerprint: Some(format!("f{}", look / 16 % 3)), ..status(200) },
        6 => status(304),
        7 => status(404),
        8 => status(410),
        9 => Report { retry_after: Some(Interval::from_secs_f64(f64::from(look) * 60.0)), ..status(429) },
        10 => status(503),
        11 => status(500),
        12 => Report { error: Some(FetchError::Timeout), ..report.clone() },
        13 => Report { error: Some(FetchError::Network), ..report.clone() },
        14 => status(403),
        _ => {
            let errors = [FetchError::Robots, FetchError::Address, FetchError::Unreachable];
            Report { error: Some(errors[usize::from(look / 16 % 3)]), ..report.clone() }
        }
    }
}

fn settings(kind: u8, amount: u8, now: Moment) -> HostSettings {
    let later = now.after_millis(u64::from(amount) * 20_000);
    let mut settings = HostSettings::default();
    match kind % 8 {
        0 => settings.delay = Some(Interval::from_secs_f64(f64::from(amount % 20))),
        1 => settings.blocked_until = Some(later),
        2 => settings.blocked_until = Some(Moment::NEVER),
        3 => settings.in_flight = Some(u32::from(amount % 4)),
        4 => settings.fetch_limit = Some(u64::from(amount % 16)),
        5 => settings.robots = Some(Robots { allowed: amount.is_multiple_of(3), expires: later }),
        _ => {}
    }
    settings
}

fn new_job(job: u8, number: u8, order: u8, limit: u8) -> NewJob {
    let mut profile = Profile::new("", "");
    profile.order = Order::ALL[usize::from(order) % Order::ALL.len()];
    let limits = match limit % 4 {
        0 => Limits { pages: Some(u64::from(limit / 16)), ..Limits::default() },
        1 => Limits { bytes: Some(u64::from(limit) * 4), ..Limits::default() },
        2 => Limits { time: Some(Interval::hours(u32::from(limit / 32))), ..Limits::default() },
        _ => Limits::default(),
    };
    NewJob { id: JOBS[usize::from(job % 2)].to_owned(), urls: vec![url(number)], profile, limits }
}
