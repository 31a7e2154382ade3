//! The loop that ties it all together.

use std::sync::Arc;
use std::time::Duration;

use forager_core::time::Interval;
use forager_fetch::http::{Http, HttpConfig};
use forager_frontier::Frontier;
use forager_frontier::entry::{How, Token};
use forager_frontier::verbs::{Completed, LeaseAnswer, LeaseRequest, Leased, Nothing, Outcome, Report};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::config::{CrawlConfig, Result};
use crate::listings::{Listings, Turns};
use crate::options::OptionsOf;
use crate::pace::{Pace, Round};
use crate::places::Places;
use crate::robots::Office;
use crate::told::{Found, NotFetched, PageLine, Watcher};
use crate::trail::Trails;
use crate::visit::{Turn, Visited, Visitor};

/// How many pages are handed in together at most. A call of the queue costs as much as a few pages, whether it is for one or
/// for many; but while many are handed in, the hosts of all that is over have nothing to do.
const AT_A_TIME: usize = 32;

/// How long a crawl that is to stop at once waits for a queue that does not answer. What it could not hand in is the queue's
/// again when its time is over.
const GRACE: Duration = Duration::from_secs(2);

/// What to crawl.
#[derive(Clone, Debug, Default)]
pub struct Work {
    /// Of this collection only.
    pub collection: Option<String>,
    /// Whether to stop when there is nothing left to do.
    pub until_done: bool,
    /// Whether to stop when nothing is due, too.
    pub until_idle: bool,
}

/// Whether a crawl goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// It does.
    #[default]
    No,
    /// It finishes what is under way.
    Drain,
    /// It drops what is under way; the queue has it again.
    Now,
}

impl Stop {
    /// Waits until a crawl that was asked to stop at once has had so much longer for it.
    pub async fn overdue(mut asked: watch::Receiver<Self>, grace: Duration) {
        if asked.wait_for(|asked| *asked == Self::Now).await.is_err() {
            std::future::pending::<()>().await; // nobody can ask any more
        }
        tokio::time::sleep(grace).await;
    }
}

/// Why a crawl ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is nothing left to do.
    Done,
    /// What is left waits for a person: a host is blocked or at its limit, or something is disabled.
    Stuck,
    /// It was asked to stop.
    Stopped(Stop),
}

/// Fetches what the queue hands out.
#[derive(Clone)]
pub struct Crawler {
    visitor: Arc<Visitor>,
    frontier: Arc<dyn Frontier>,
    config: CrawlConfig,
    clock: Clock,
}

/// A turn that is over.
struct Over {
    leased: Arc<Leased>,
    turn: Result<Turn>,
}

impl Crawler {
    /// A crawler of this queue.
    pub fn new(
        frontier: Arc<dyn Frontier>,
        http: HttpConfig,
        config: CrawlConfig,
        clock: Clock,
    ) -> Result<Self> {
        let http = Http::new(http)?;
        let product_token = config.product_token.clone();
        let pace = Arc::new(Pace::new(clock));
        let robots = (product_token.clone(), config.first_retry);
        let office = Office::new(frontier.clone(), http.clone(), (clock, pace.clone()), robots);
        let trails = config.traces.then(|| Trails::new(frontier.clone()));
        let (sent, introduced) = (std::sync::Mutex::default(), std::sync::Mutex::default());
        let visitor = Visitor {
            frontier: frontier.clone(),
            http,
            office,
            clock,
            pace,
            listings: Listings::new(product_token.clone()),
            product_token,
            sent,
            trails,
            introduced,
        };
        Ok(Self { visitor: Arc::new(visitor), frontier, config, clock })
    }

    /// Crawls until there is nothing left, or until it is told to stop; gives the watcher back.
    ///
    /// It goes on among the fetches, in the threads of the runtime: whoever waits for it may be in one that they would
    /// have to wake for each page. It stops when nobody waits for it any longer.
    pub async fn run<W: Watcher + 'static>(
        &self,
        work: Work,
        mut stop: watch::Receiver<Stop>,
        mut watcher: W,
    ) -> (Result<Ended>, W) {
        let shift = Shift::new(self.clone(), work);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { (shift.crawl(&mut stop, &mut watcher).await, watcher) });
        match tasks.join_next().await {
            Some(Ok(done)) => done,
            Some(Err(cause)) => std::panic::resume_unwind(cause.into_panic()),
            None => unreachable!("a task was begun"),
        }
    }
}

/// What is going on at the moment.
struct Shift {
    crawler: Crawler,
    work: Work,
    /// What is under way, and in which places.
    under_way: Places,
    /// Which lists of pages are.
    lists: Turns,
    visits: JoinSet<()>,
    sender: mpsc::UnboundedSender<Over>,
    over: mpsc::UnboundedReceiver<Over>,
    /// Turns that are over and not handed in.
    finished: Vec<Over>,
    arrivals: watch::Receiver<u64>,
    options: OptionsOf,
    /// Whether the queue may have something that it did not have before.
    may_have_more: bool,
    /// When the queue is told that what is under way still is.
    hold_on_at: Timestamp,
}

impl Shift {
    fn new(crawler: Crawler, work: Work) -> Self {
        // As many as are under way, and no more, can be sent.
        let (sender, over) = mpsc::unbounded_channel();
        let arrivals = crawler.frontier.arrivals();
        Self {
            under_way: Places::default(),
            lists: Turns::of(crawler.config.at_once),
            visits: JoinSet::new(),
            sender,
            over,
            finished: Vec::new(),
            arrivals,
            options: OptionsOf::default(),
            may_have_more: true,
            hold_on_at: crawler.clock.now(),
            crawler,
            work,
        }
    }

    /// Crawls, and leaves nothing behind.
    async fn crawl(mut self, stop: &mut watch::Receiver<Stop>, watcher: &mut dyn Watcher) -> Result<Ended> {
        let forced = Stop::overdue(stop.clone(), GRACE);
        let ended = tokio::select! {
            ended = self.go_on(stop, watcher) => ended,
            () = forced => Ok(Ended::Stopped(Stop::Now)),
        };
        // A turn that has told what came of it may still hold on to the queue, which its owner wants to close now.
        self.visits.shutdown().await;
        ended
    }

    /// Goes on until there is nothing left, or until it is told to stop.
    async fn go_on(&mut self, stop: &mut watch::Receiver<Stop>, watcher: &mut dyn Watcher) -> Result<Ended> {
        loop {
            self.hand_in(watcher).await?;
            self.hold_on().await?;
            let asked = match *stop.borrow_and_update() {
                Stop::No if watcher.has_enough() => Stop::Drain,
                asked => asked,
            };
            if asked == Stop::Now {
                self.drop_everything(watcher).await?;
                return Ok(Ended::Stopped(asked));
            }
            let nothing = if asked == Stop::No {
                self.take_up().await?
            } else {
                let waiting = self.lists.clear();
                self.give_back(&waiting).await?;
                None
            };
            watcher.under_way(self.under_way.count());
            if self.under_way.count() == 0
                && self.lists.waiting().next().is_none()
                && let Some(ended) = self.end(asked, nothing.as_ref())
            {
                return Ok(ended);
            }
            if let Some(nothing) = &nothing {
                watcher.waits(nothing);
                if watcher.has_enough() {
                    continue;
                }
            }
            self.wait(nothing, stop).await;
        }
    }

    /// Why it ends here, if it does, now that nothing is under way.
    fn end(&self, asked: Stop, nothing: Option<&Nothing>) -> Option<Ended> {
        let Work { until_done, until_idle, .. } = self.work;
        match (asked, nothing) {
            (Stop::Drain | Stop::Now, _) => Some(Ended::Stopped(asked)),
            (_, Some(Nothing::Empty)) if until_done => Some(Ended::Done),
            (_, Some(Nothing::NotDue { .. })) if until_idle => Some(Ended::Done),
            (_, Some(Nothing::Blocked { until: None })) if until_done => Some(Ended::Stuck),
            _ => None,
        }
    }

    /// Holds on to what takes long, well before the queue would give it to others.
    async fn hold_on(&mut self) -> Result<()> {
        let (hold, now) = (self.crawler.config.hold, self.crawler.clock.now());
        if now < self.hold_on_at {
            return Ok(());
        }
        self.hold_on_at = Interval::from_secs_f64(hold.as_secs_f64() / 3.0).after(now);
        if self.under_way.count() > 0 {
            // Of what is lost all the same, the report will be refused.
            let tokens: Vec<Token> =
                self.under_way.tokens().into_iter().chain(self.lists.waiting()).collect();
            self.crawler.frontier.extend(&tokens, hold, now).await?;
        }
        Ok(())
    }

    /// Leases as much as may be under way, and sets out. Says why there is nothing, if there is nothing.
    async fn take_up(&mut self) -> Result<Option<Nothing>> {
        let free = self.crawler.config.at_once.saturating_sub(self.under_way.count());
        if free == 0 {
            return Ok(None);
        }
        let come_up = self.lists.come_up();
        self.give_back(&come_up).await?;
        self.arrivals.mark_unchanged();
        let request = LeaseRequest {
            max: free,
            per_host: free,
            collection: self.work.collection.clone(),
            hold: self.crawler.config.hold,
            ..LeaseRequest::default()
        };
        let frontier = &self.crawler.frontier;
        let round = self.crawler.visitor.pace.begin_round();
        let LeaseAnswer { leased, nothing } = frontier.lease(&request, self.crawler.clock.now()).await?;
        if !leased.is_empty() {
            self.options.go_by(frontier.catalog().await?);
        }
        let (handed_out, mut too_many) = (leased.len(), Vec::new());
        for leased in leased {
            if leased.how == How::Listing && !self.lists.begin() {
                too_many.extend(self.lists.wait(leased.token));
            } else {
                self.set_out(leased, round);
            }
        }
        self.may_have_more = too_many.len() < handed_out || !come_up.is_empty();
        self.give_back(&too_many).await?;
        Ok(nothing)
    }

    /// Gives pages back untouched.
    async fn give_back(&self, tokens: &[Token]) -> Result<()> {
        if !tokens.is_empty() {
            self.crawler.frontier.release(tokens, self.crawler.clock.now()).await?;
        }
        Ok(())
    }

    fn set_out(&mut self, leased: Leased, round: Round) {
        let options = self.options.get(&leased.collection, leased.seed.as_deref());
        let (visitor, sender) = (self.crawler.visitor.clone(), self.sender.clone());
        self.under_way.take(leased.token);
        let leased = Arc::new(leased);
        self.visits.spawn(async move {
            let turn = visitor.visit(&leased, round, &options).await;
            // Whoever would read this is gone only when the crawl has ended.
            let _ = sender.send(Over { leased, turn });
        });
    }

    /// Reports what is over, as much of it together as is worth it.
    async fn hand_in(&mut self, watcher: &mut dyn Watcher) -> Result<()> {
        // One that failed ends the crawl, but not before all others are handed in: they would be fetched twice.
        let is_last = |finished: &[Over]| finished.iter().any(|over| over.turn.is_err());
        while (self.finished.len() < AT_A_TIME || is_last(&self.finished))
            && let Ok(over) = self.over.try_recv()
        {
            self.finished.push(over);
        }
        while self.visits.try_join_next().is_some() {}
        if self.finished.is_empty() {
            return Ok(());
        }
        let mut failed = None;
        let finished = std::mem::take(&mut self.finished);
        let (mut reports, mut lines) =
            (Vec::with_capacity(finished.len()), Vec::with_capacity(finished.len()));
        // Lists of pages make room for others when the queue has them.
        let (mut spent, mut places) = (Vec::new(), Vec::new());
        for over in finished {
            let worker = self.under_way.leave(over.leased.token);
            if over.leased.how == How::Listing {
                self.lists.end();
            }
            match over.turn {
                Err(cause) => failed = failed.or(Some(cause)),
                Ok(Turn::Reported(visited)) => {
                    let Visited { report, line, skipped, robots, place } = *visited;
                    places.extend(place);
                    tell_robots(watcher, robots, worker);
                    let line = PageLine { worker, ..line };
                    reports.push(report);
                    lines.push((line, skipped, over.leased.rule.clone()));
                }
                Ok(Turn::Spent(robots)) => {
                    tell_robots(watcher, robots, worker);
                    spent.push(over.leased.token);
                }
            }
        }
        let (frontier, now) = (&self.crawler.frontier, self.crawler.clock.now());
        self.give_back(&spent).await?;
        if !reports.is_empty() {
            let completed = frontier.complete(&reports, now).await?;
            for ((report, completed), line) in reports.into_iter().zip(completed).zip(lines) {
                self.crawler.visitor.was_reported(&report);
                tell(watcher, report, completed, line);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Waits for something to do.
    async fn wait(&mut self, nothing: Option<Nothing>, stop: &mut watch::Receiver<Stop>) {
        // Others come to their end in the moment after one has: these are handed in together.
        tokio::task::yield_now().await;
        if self.may_have_more && self.under_way.count() < self.crawler.config.at_once {
            // What was just handed out may not have been all; asking again costs little.
            self.may_have_more = false;
            return;
        }
        let until = nothing.and_then(|nothing| match nothing {
            Nothing::NotDue { until } | Nothing::Throttled { until, .. } => Some(until),
            Nothing::Blocked { until } => until,
            Nothing::Empty => None,
        });
        let is_free = self.under_way.count() < self.crawler.config.at_once;
        let alarm = async {
            match until {
                Some(until) => self.crawler.clock.sleep_until(until.timestamp()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            over = self.over.recv() => self.finished.extend(over),
            _ = stop.changed() => {}
            _ = self.arrivals.changed(), if is_free => {}
            () = alarm, if is_free => {}
            () = self.crawler.clock.sleep_until(self.hold_on_at), if self.under_way.count() > 0 => {}
        }
    }

    /// Stops what is under way; the queue has it again. What was over just before still counts, or it would be
    /// fetched twice.
    async fn drop_everything(&mut self, watcher: &mut dyn Watcher) -> Result<()> {
        self.visits.shutdown().await;
        while !self.over.is_empty() || !self.finished.is_empty() {
            self.hand_in(watcher).await?;
        }
        let (frontier, now) = (&self.crawler.frontier, self.crawler.clock.now());
        // Whoever was asked was asked, though nobody waited for the answer.
        frontier.note(&self.crawler.visitor.take_unreported(), now).await?;
        let mut held = std::mem::take(&mut self.under_way).tokens();
        held.extend(self.lists.clear());
        self.give_back(&held).await
    }
}

/// Tells of requests for robots.txt.
fn tell_robots(watcher: &mut dyn Watcher, robots: Vec<PageLine>, worker: usize) {
    for line in robots {
        watcher.robots(&PageLine { worker, ..line });
    }
}

/// Tells what became of a page.
fn tell(
    watcher: &mut dyn Watcher,
    report: Report,
    completed: Completed,
    (mut line, skipped, why): (PageLine, Vec<Found>, Arc<str>),
) {
    let found: Vec<Found> = report
        .links
        .into_iter()
        .zip(completed.found)
        .map(|(link, found)| Found { url: link.url, action: found.action, rule: found.rule })
        .chain(skipped)
        .collect();
    line.added = found.iter().filter(|found| found.action == forager_frontier::verbs::Action::Added).count();
    line.changed = completed.changed;
    line.difference = completed.changed.then(|| report.difference.with(completed.presence));
    line.outcome = Some(completed.outcome);
    line.due = completed.due;
    line.rule = match (completed.outcome, line.not_fetched) {
        (Outcome::Again | Outcome::Failed, None) => completed.rule,
        (Outcome::Again, Some(_)) | (Outcome::Failed, Some(NotFetched::RobotsUnreachable)) => {
            format!("{}; {}", line.rule, completed.rule).into()
        }
        (_, Some(_)) => line.rule,
        (_, None) => why,
    };
    watcher.page(&line, &found);
}

#[cfg(test)]
mod tests;
