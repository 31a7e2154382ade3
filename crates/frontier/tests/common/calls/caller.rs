//! One who makes calls, and what it is answered.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::{self, Debug, Write as _};
use std::str::FromStr;

use forager_core::time::Interval;
use forager_frontier::catalog::{Change, CollectionSpec, Kind};
use forager_frontier::entry::Token;
use forager_frontier::verbs::{
    Action, FetchError, HostChange, HostFilter, Item, Leased, ListFilter, Note, Outcome, PlanFilter, Purge,
    Put, Report, Steer, Target, text_key,
};
use forager_frontier::{Frontier, Moment};
use jiff::Timestamp;

use super::Call;
use super::values::{
    COLLECTIONS, HOSTS, JOBS, NOTES, PLANNED, TIMES, change, collection_name, found, item, lease_request,
    new_job, note, profile, queue_key, report, seed, settings, target, url,
};

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
    /// Those of them that robots.txt, or their address, forbade to fetch.
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

    /// Does not show again what it has shown, most of the time. Which it does goes by its place: stores number leases in
    /// their own ways.
    fn forget(&mut self, ended: &[Token]) {
        let mut place = 0;
        self.tokens.retain(|token| {
            place += 1;
            place % 4 == 0 || !ended.contains(token)
        });
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
                let is_forbidden =
                    |report: &&Report| matches!(report.error, Some(FetchError::Robots | FetchError::Address));
                let forbidden = reports.iter().filter(is_forbidden);
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
            also: BTreeSet::new(),
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
            0 => told(frontier.explain(name, None, &url(what), now).await),
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
                let _ = write!(line, "{}", told(frontier.explain(name, None, &url(number), now).await).text);
                lines.push(line);
            }
            lines.push(told(frontier.export(name, None, usize::MAX, now).await).text);
        }
        lines
    }
}

fn freed(collection: &str, key: Option<&str>) -> Vec<Freed> {
    vec![Freed { collection: collection.to_owned(), key: key.map(str::to_owned), url: None }]
}

/// All that was written down, and the texts of all pages.
async fn see_notes(frontier: &dyn Frontier) -> Vec<String> {
    let texts = COLLECTIONS.iter().flat_map(|name| (0..60).map(|number| text_key(name, &url(number))));
    let keys: Vec<String> = NOTES.iter().map(ToString::to_string).chain(texts).collect();
    let noted = frontier.noted(&keys).await.unwrap();
    assert_eq!(noted.len(), keys.len(), "one answer for each key");
    keys.iter().zip(noted).filter_map(|(key, value)| Some(format!("{key}: {:?}", value?))).collect()
}
