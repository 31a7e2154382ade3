//! What came of fetches, and what became of leases.

use std::sync::Arc;

use forager_core::scope::after_fetch::{self, Fate, after_fetch};
use forager_core::scope::before_fetch::Rule;
use forager_core::sentinel::schedule::{Failure, Reason, next_scan, next_try};
use forager_core::time::Interval;
use rand_pcg::Pcg64;

use super::discover::{Finds, take_in};
use super::lease::{judged_by, scope_entry};
use super::notes::{forget_text, keep_text, log_fetch};
use super::priority::{adopt, prioritise};
use super::rules::Words;
use super::{Tx, jobs, note_removal};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::{EntryId, Lease, Record, Standing, State, Token, Validators, Visit};
use crate::error::Result;
use crate::host::{Host, to_millis};
use crate::moment::Moment;
use crate::settings::Politeness;
use crate::verbs::{
    Completed, Discovery, Event, FetchError, FetchRow, LeaseChange, Outcome, Presence, Report, Tally, Terms,
};

/// Takes back the leases that have run out. An entry that is taken and never reported too often is
/// treated as one that cannot be fetched: it may be what kills the workers.
pub(crate) fn settle<T: Tx>(tx: &mut T, now: Moment) -> Result<()> {
    let expired = tx.expired(now);
    if expired.is_empty() {
        return Ok(());
    }
    take_back(tx, expired, now)
}

/// Takes back all leases of a collection. Returns how many.
pub(crate) fn reclaim<T: Tx>(tx: &mut T, collection: &str, now: Moment) -> Result<u64> {
    settle(tx, now)?;
    let number = tx.catalog().require_collection(collection)?.number;
    let is_its = |tx: &T, lease: &Lease| {
        tx.standing(lease.entry).is_some_and(|standing| tx.queue_parts(standing.queue).0 == number)
    };
    let leases: Vec<Lease> =
        tx.expired(Moment::NEVER).into_iter().filter(|lease| is_its(tx, lease)).collect();
    let count = leases.len() as u64;
    for lease in &leases {
        wait_anew(tx, lease, now);
    }
    take_back(tx, leases, now)?;
    Ok(count)
}

/// Whoever held a page may have asked for it until just now, later than it was handed out: its host waits from now on.
fn wait_anew<T: Tx>(tx: &mut T, lease: &Lease, now: Moment) {
    let Some(standing) = tx.standing(lease.entry) else { return };
    let (_, id) = tx.queue_parts(standing.queue);
    let mut host = tx.host(id).clone();
    let wait = host.shortest_delay(tx.settings().politeness.waits());
    host.next_allowed = host.next_allowed.max(now.after_millis(wait));
    tx.set_host(id, host);
}

fn take_back<T: Tx>(tx: &mut T, leases: Vec<Lease>, now: Moment) -> Result<()> {
    let catalog = tx.catalog().clone();
    for lease in leases {
        tx.end_lease(lease.token);
        let Some(standing) = tx.standing(lease.entry) else { continue };
        let (number, _) = tx.queue_parts(standing.queue);
        if let Some(collection) = catalog.collection_numbered(number) {
            abandon(tx, collection, lease, standing, now)?;
        }
    }
    Ok(())
}

fn abandon<T: Tx>(
    tx: &mut T,
    collection: &CollectionRow,
    Lease { entry, from, .. }: Lease,
    mut standing: Standing,
    now: Moment,
) -> Result<()> {
    let settings = tx.settings().clone();
    let (url, mut record) = tx.load(entry)?;
    record.abandoned = record.abandoned.saturating_add(1);
    standing.state = State::Queued;
    tx.emit(now, &collection.spec.id, &url, Event::Abandoned { times: record.abandoned, from });
    // Clients of a plain collection have dates of their own.
    let is_planned = collection.spec.kind == Kind::Planned;
    let over = record.abandoned.checked_sub(settings.retry.abandoned);
    if let Some(over) = over.filter(|over| *over > 0 && is_planned) {
        if record.length.is_some() {
            standing.state = State::Failed;
            forget_text(tx, collection, &url, &record);
            let result = "abandoned by its workers".to_owned();
            tx.emit(now, &collection.spec.id, &url, Event::Failed { result });
        } else {
            let learned = (record.evidence().velocity, standing.risk);
            let next =
                next_try(Failure::Transient, over - 1, None, learned, &settings.sentinel, now.timestamp());
            standing.due = Moment::due(next.due, now);
            record.due_because = Some(format!("abandoned {} times in a row", record.abandoned));
        }
    }
    tx.set_standing(entry, standing);
    tx.set_record(entry, record);
    Ok(())
}

/// Holds leases for this long from now.
pub(crate) fn extend<T: Tx>(
    tx: &mut T,
    tokens: &[Token],
    hold: Interval,
    now: Moment,
) -> Result<Vec<LeaseChange>> {
    settle(tx, now)?;
    let until = now.after(hold);
    let mut answers = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let lease = tx.lease(token);
        if let Some(lease) = lease {
            tx.grant(Lease { until, ..lease });
        }
        answers.push(LeaseChange { token, held: lease.is_some(), until: lease.map(|_| until) });
    }
    Ok(answers)
}

/// Gives entries back untouched.
pub(crate) fn release<T: Tx>(tx: &mut T, tokens: &[Token], now: Moment) -> Result<Vec<LeaseChange>> {
    settle(tx, now)?;
    let mut answers = Vec::with_capacity(tokens.len());
    for &token in tokens {
        let lease = tx.lease(token);
        let standing = lease.and_then(|lease| tx.standing(lease.entry));
        if let (Some(lease), Some(standing)) = (lease, standing) {
            tx.end_lease(token);
            tx.set_standing(lease.entry, Standing { state: State::Queued, ..standing });
        }
        answers.push(LeaseChange { token, held: lease.is_some(), until: None });
    }
    Ok(answers)
}

/// Takes in what came of fetches.
pub(crate) fn complete<T: Tx>(tx: &mut T, reports: &[Report], now: Moment) -> Result<Vec<Completed>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let mut words = Words::new();
    let mut answers = Vec::with_capacity(reports.len());
    for report in reports {
        let token = Token(report.token);
        let lease = tx.lease(token);
        let standing = lease.and_then(|lease| tx.standing(lease.entry));
        let collection =
            standing.and_then(|standing| catalog.collection_numbered(tx.queue_parts(standing.queue).0));
        let refused = |rule: &str| Completed {
            token,
            outcome: Outcome::Refused,
            changed: false,
            presence: None,
            due: None,
            rule: rule.into(),
            found: Vec::new(),
        };
        let (Some(lease), Some(standing), Some(collection)) = (lease, standing, collection) else {
            answers.push(refused("there is no such lease, or it has run out"));
            continue;
        };
        let Some(result) = FetchResult::of(report) else {
            answers.push(refused("the report has neither an error nor a status of at least 100"));
            continue;
        };
        let done = Done { catalog: &catalog, collection, report, result, now };
        let (url, mut record) = tx.load(lease.entry)?;
        // While the page still stands where it was found.
        let found = if done.counts_links(tx, &record) { done.take_in_links(tx, &url)? } else { Vec::new() };
        let mut standing = standing;
        if !found.is_empty() {
            // It may have found itself.
            standing = tx.standing(lease.entry).unwrap_or(standing);
            (_, record) = tx.load(lease.entry)?;
        }
        let completed = done.complete(tx, lease, standing, (&url, record), &mut words)?;
        answers.push(Completed { found, ..completed });
    }
    jobs::note_ends(tx, now)?;
    Ok(answers)
}

/// What came of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchResult {
    /// There was a page; it may be known not to have changed.
    Page { is_same: bool },
    /// 404 or 410.
    NotFound,
    /// The host had enough: 429 or 503.
    Refused,
    /// The host failed: 5xx, or no answer.
    Failed { by_host: bool },
    /// The page cannot be had: another 4xx, a status that HTTP does not know, or our own limits.
    Dead,
    /// It must not be fetched, so that nothing was asked of the host.
    Forbidden,
    /// Nobody can tell whether it may be fetched, because the host fails.
    Unknown,
}

impl FetchResult {
    fn of(report: &Report) -> Option<Self> {
        Some(match (report.error, report.status) {
            (Some(FetchError::Timeout | FetchError::Network), _) => Self::Failed { by_host: true },
            (Some(FetchError::Damaged), _) => Self::Failed { by_host: false },
            (Some(FetchError::Robots | FetchError::Address), _) => Self::Forbidden,
            (Some(FetchError::Unreachable), _) => Self::Unknown,
            (Some(FetchError::Refused), _) => Self::Dead,
            (None, Some(404 | 410)) => Self::NotFound,
            (None, Some(429 | 503)) => Self::Refused,
            (None, Some(..100) | None) => return None,
            (None, Some(status)) => match Failure::of_status(status) {
                Some(Failure::Transient) => Self::Failed { by_host: false },
                Some(Failure::Dead) => Self::Dead,
                None => Self::Page { is_same: status == 304 },
            },
        })
    }

    fn outcome(self) -> after_fetch::Outcome {
        match self {
            Self::Page { .. } => after_fetch::Outcome::Success,
            Self::NotFound => after_fetch::Outcome::NotFound,
            Self::Refused | Self::Failed { .. } | Self::Dead | Self::Forbidden | Self::Unknown => {
                after_fetch::Outcome::Failure
            }
        }
    }

    /// What the schedule calls it; none if it is no failure.
    fn failure(self) -> Option<Failure> {
        match self {
            Self::Page { .. } => None,
            Self::NotFound | Self::Dead | Self::Forbidden => Some(Failure::Dead),
            Self::Refused | Self::Failed { .. } | Self::Unknown => Some(Failure::Transient),
        }
    }

    /// Whether the host was asked for the page.
    fn was_asked(self) -> bool {
        !matches!(self, Self::Forbidden | Self::Unknown)
    }

    /// Whether the host has failed, or had enough.
    fn is_by_host(self) -> bool {
        matches!(self, Self::Refused | Self::Failed { by_host: true } | Self::Unknown)
    }
}

/// A report that counts.
struct Done<'c, 'r> {
    catalog: &'c Catalog,
    collection: &'c CollectionRow,
    report: &'r Report,
    result: FetchResult,
    now: Moment,
}

/// What becomes of an entry, before it is written down.
struct Next<'c> {
    outcome: Outcome,
    due: Option<Moment>,
    rule: Why<'c>,
}

/// Why an entry is due when it is.
enum Why<'c> {
    Scope(Rule<'c>),
    Text(Arc<str>),
}

impl<'c> Done<'c, '_> {
    fn complete<T: Tx>(
        &self,
        tx: &mut T,
        lease: Lease,
        mut standing: Standing,
        (url, mut record): (&str, Record),
        words: &mut Words<Rule<'c>>,
    ) -> Result<Completed> {
        tx.end_lease(lease.token);
        self.charge_host(tx, &standing, lease.token);
        self.log(tx, &standing, url);
        let before = record.clone();
        let presence = self.presence(&before);
        let changed = self.learn(&mut record, presence);
        self.judge_dates(tx, &standing, &mut record, changed);
        let next = self.decide(tx, url, &mut standing, &before, &mut record);
        self.count(tx, changed);
        if changed {
            let (from, to) = (before.fingerprint.clone(), record.fingerprint.clone());
            let difference = self.report.difference.clone().with(presence);
            tx.emit(self.now, &self.collection.spec.id, url, Event::Changed { from, to, difference });
        }
        let rule = match next.rule {
            Why::Scope(rule) => words.of(rule),
            Why::Text(text) => text,
        };
        let (outcome, due) = (next.outcome, next.due);
        let (token, found) = (lease.token, Vec::new());
        let completed = Completed { token, outcome, changed, presence, due, rule, found };
        self.keep_text(tx, url, outcome, &before);
        self.write(tx, lease.entry, url, standing, record, &completed)?;
        Ok(completed)
    }

    /// Whether the links of the page count. Those of a damaged one may be cut short: they do when no better ones will
    /// come.
    fn counts_links<T: Tx>(&self, tx: &T, before: &Record) -> bool {
        let is_last = before.length.is_some() && before.errors >= self.tries(tx);
        self.report.error != Some(FetchError::Damaged) || is_last
    }

    /// How often a page with a limited number of fetches is tried again after this.
    fn tries<T: Tx>(&self, tx: &T) -> u32 {
        let retry = tx.settings().retry;
        match self.result {
            FetchResult::Refused => retry.refused,
            FetchResult::Failed { .. } | FetchResult::Unknown => retry.failed,
            FetchResult::Page { .. } | FetchResult::NotFound | FetchResult::Dead | FetchResult::Forbidden => {
                0
            }
        }
    }

    /// Takes in what was found on the page.
    fn take_in_links<T: Tx>(&self, tx: &mut T, url: &str) -> Result<Vec<Discovery>> {
        let mut found = Vec::with_capacity(self.report.links.len());
        if !self.report.links.is_empty() {
            let (collection, links) = (self.collection, self.report.links.as_slice());
            let finds = Finds { collection, source: Some(url), seed: None, depth: 0, links };
            take_in(tx, self.catalog, finds, self.now, &mut found)?;
        }
        Ok(found)
    }

    /// Keeps what the page says for as long as it comes back. What a server says instead of the page is not that.
    fn keep_text<T: Tx>(&self, tx: &mut T, url: &str, outcome: Outcome, before: &Record) {
        match (outcome, self.result, &self.report.text) {
            (Outcome::Again, FetchResult::Page { is_same: false }, Some(text)) => {
                keep_text(tx, self.collection, url, text);
            }
            (Outcome::Done | Outcome::Failed, ..) => forget_text(tx, self.collection, url, before),
            // What is removed is forgotten where that is done.
            (Outcome::Again | Outcome::Removed | Outcome::Refused, ..) => {}
        }
    }

    /// Appends the fetch to the log, if the worker told when it was made.
    fn log<T: Tx>(&self, tx: &mut T, standing: &Standing, url: &str) {
        let Some(sent) = self.report.fetch.as_ref() else { return };
        let (_, host) = tx.queue_parts(standing.queue);
        let ended = sent.ended.filter(|ended| (sent.at..=self.now).contains(ended));
        let Terms { least_gap, most_in_flight } = sent.terms.unwrap_or_default();
        let fetch = FetchRow {
            started: sent.at,
            ended: ended.unwrap_or(self.now),
            collection: self.collection.spec.id.clone(),
            host: tx.host_key(host).0.to_owned(),
            url: url.to_owned(),
            result: self.words(),
            bytes: self.report.bytes,
            robots: sent.robots.clone(),
            least_gap,
            most_in_flight,
            back_off_until: self.result.is_by_host().then(|| tx.host(host).back_off_until),
            ..FetchRow::default()
        };
        log_fetch(tx, host, self.collection.spec.kind == Kind::Plain, fetch);
    }

    fn write<T: Tx>(
        &self,
        tx: &mut T,
        entry: EntryId,
        url: &str,
        mut standing: Standing,
        mut record: Record,
        completed: &Completed,
    ) -> Result<()> {
        standing.state = match completed.outcome {
            Outcome::Done => State::Done,
            Outcome::Failed => State::Failed,
            Outcome::Removed => return note_removal(tx, self.collection, entry, &completed.rule, self.now),
            Outcome::Again | Outcome::Refused => State::Queued,
        };
        if standing.state == State::Failed {
            tx.emit(self.now, &self.collection.spec.id, url, Event::Failed { result: self.words() });
        }
        if let Some(due) = completed.due {
            standing.due = due;
        }
        if standing.by_due && standing.seed.is_some() {
            let order = self.catalog.order(&self.collection.spec.id, standing.seed);
            prioritise(self.catalog, order, &mut standing, &mut record, None, self.now);
        }
        tx.set_standing(entry, standing);
        tx.set_record(entry, record);
        Ok(())
    }

    /// Whether a page that was there is gone, or one that was gone is there again. Clients of a plain collection count
    /// nothing, so that this cannot be told there.
    fn presence(&self, before: &Record) -> Option<Presence> {
        let is_known = before.scans > 0 && self.collection.spec.kind == Kind::Planned;
        match self.result {
            FetchResult::NotFound if is_known && before.not_found == 0 => Some(Presence::Gone),
            FetchResult::Page { .. } if is_known && before.not_found > 0 => Some(Presence::Back),
            _ => None,
        }
    }

    /// Takes over what the fetch has taught. Returns whether the page had changed; one that is gone has, but that
    /// teaches nothing of how often its content does.
    fn learn(&self, record: &mut Record, presence: Option<Presence>) -> bool {
        record.abandoned = 0;
        record.due_because = None;
        let FetchResult::Page { is_same } = self.result else {
            self.remember(record, presence.is_some());
            return presence.is_some();
        };
        let given = self.report.fingerprint.as_deref().filter(|_| !is_same).map(bounded);
        let differs = matches!((&given, &record.fingerprint), (Some(new), Some(old)) if new != old);
        let changed = !is_same && record.scans > 0 && self.report.changed.unwrap_or(differs);
        record.learn(record.evidence().after_scan(changed, self.now.timestamp()));
        record.fingerprint = given.or_else(|| record.fingerprint.take());
        record.validators = validators_after(&record.validators, &self.report.validators, is_same);
        let changed = changed || presence.is_some();
        self.remember(record, changed);
        changed
    }

    /// Whether a sitemap that said the page had changed was right.
    fn judge_dates<T: Tx>(&self, tx: &mut T, standing: &Standing, record: &mut Record, changed: bool) {
        if !matches!(self.result, FetchResult::Page { .. }) || record.said_to_change.take().is_none() {
            return;
        }
        let (_, id) = tx.queue_parts(standing.queue);
        let mut host = tx.host(id).clone();
        host.sitemap_dates = host.sitemap_dates.after(changed);
        tx.set_host(id, host);
    }

    fn remember(&self, record: &mut Record, changed: bool) {
        let at = Moment::from_second(self.now.second());
        record.remember(Visit { at, result: self.words(), changed });
    }

    /// The result in words: a status, or the kind of error.
    fn words(&self) -> String {
        match (self.report.error, self.report.status) {
            (Some(error), _) => format!("{error:?}").to_lowercase(),
            (None, Some(status)) => status.to_string(),
            (None, None) => String::new(),
        }
    }

    fn decide<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        standing: &mut Standing,
        before: &Record,
        record: &mut Record,
    ) -> Next<'c> {
        let last_fetch = Moment::from_second(self.now.second());
        if self.collection.spec.kind == Kind::Plain {
            standing.last_fetch = Some(last_fetch);
            return Next { outcome: Outcome::Done, due: None, rule: Why::Text("plain".into()) };
        }
        let Some((identity, seed)) = judged_by(self.catalog, self.collection, standing, url) else {
            return Next { outcome: Outcome::Removed, due: None, rule: Why::Text("seed gone".into()) };
        };
        let entry = scope_entry(self.collection, &identity, seed, standing, before);
        let (after, fate) = after_fetch(
            self.catalog.scopes(),
            &entry,
            before.counters(),
            self.result.outcome(),
            self.now.timestamp(),
        );
        standing.last_fetch = Some(last_fetch);
        (record.errors, record.not_found) = (after.counters.errors, after.counters.not_found);
        record.length = after.length;
        match fate {
            Fate::Spent => {
                let text = "fetched as often as asked";
                Next { outcome: Outcome::Done, due: None, rule: Why::Text(text.into()) }
            }
            Fate::Remove { rule } => Next { outcome: Outcome::Removed, due: None, rule: Why::Scope(rule) },
            Fate::Stay { seed, not_before, rule } => {
                let before = standing.seed;
                standing.seed = self.catalog.seed_number(seed).or(before);
                adopt(self.catalog, &self.collection.spec.id, before, standing, record, self.now);
                let not_before = not_before.map(|time| Moment::due(time, self.now));
                self.schedule(tx, url, standing, record, not_before, rule)
            }
        }
    }

    /// When an entry that stays is due again.
    fn schedule<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        standing: &Standing,
        record: &mut Record,
        not_before: Option<Moment>,
        rule: Rule<'c>,
    ) -> Next<'c> {
        let settings = tx.settings();
        let learned = (record.evidence().velocity, standing.risk);
        let at_least = |due: Moment| not_before.map_or(due, |bound| bound.max(due));
        let now = self.now.timestamp();
        let Some(failure) = self.result.failure() else {
            if let (Rule::TooEarly { .. }, Some(due)) = (rule, not_before) {
                return Next { outcome: Outcome::Again, due: Some(due), rule: Why::Scope(rule) };
            }
            let mut random = random(url, record.scans);
            let next = next_scan(learned.0, learned.1, &settings.sentinel, now, &mut random);
            let due = at_least(Moment::due(next.due, self.now));
            return Next { outcome: Outcome::Again, due: Some(due), rule: Why::Scope(rule) };
        };
        if record.length.is_some() && self.result != FetchResult::NotFound {
            return self.retry(tx, url, record, at_least);
        }
        if let (Rule::TooEarly { profile, every }, Some(due)) = (rule, not_before)
            && self.result != FetchResult::Forbidden
        {
            return self.as_often_as_said(profile, every, due, record);
        }
        let failures = record.errors.max(record.not_found).saturating_sub(1);
        let next = next_try(failure, failures, self.report.retry_after, learned, &settings.sentinel, now);
        let reasons: Vec<String> = next.reasons.iter().map(ToString::to_string).collect();
        let because = format!("{}: {}", self.words(), reasons.join("; "));
        record.due_because = Some(because.clone());
        let due = at_least(Moment::due(next.due, self.now));
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// A failed fetch of a page whose profile says how often it is fetched: that holds, for whoever says so wants to know
    /// soon when the page is there again. Its host is spared all the same.
    fn as_often_as_said(&self, profile: &str, every: Interval, due: Moment, record: &mut Record) -> Next<'c> {
        let mut because = format!("{}: every {every} ({profile})", self.words());
        let asked = self.report.retry_after.map(|asked| asked.min(LONGEST_PAUSE));
        let asked = asked.map(|asked| (asked, Moment::due(asked.after(self.now.timestamp()), self.now)));
        let later = asked.filter(|(_, until)| *until > due);
        if let Some((asked, _)) = later {
            because = format!("{because}; {}", Reason::RetryAfter(asked));
        }
        record.due_because = Some(because.clone());
        let due = later.map_or(due, |(_, until)| until);
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// A failed fetch of a page that is fetched a limited number of times: a few tries, then it is given up.
    fn retry<T: Tx>(
        &self,
        tx: &T,
        url: &str,
        record: &mut Record,
        at_least: impl Fn(Moment) -> Moment,
    ) -> Next<'c> {
        let (retry, tries) = (tx.settings().retry, self.tries(tx));
        let failures = record.errors;
        if failures > tries {
            let after = match tries {
                0 => "at once".to_owned(),
                1 => "after 1 more try".to_owned(),
                _ => format!("after {tries} more tries"),
            };
            let text = format!("{}: given up {after}", self.words());
            return Next { outcome: Outcome::Failed, due: None, rule: Why::Text(text.into()) };
        }
        let wait = to_millis(retry.first.doubled(failures.saturating_sub(1), retry.longest));
        let wait = wait + draw(url, u64::from(failures), wait / 5);
        let asked = self.report.retry_after.map_or(0, to_millis);
        let due = self.now.after_millis(wait.max(asked));
        let because = format!("{}: try {failures} of {tries}", self.words());
        record.due_because = Some(because.clone());
        let due = at_least(Moment::due(due.timestamp(), self.now));
        Next { outcome: Outcome::Again, due: Some(due), rule: Why::Text(because.into()) }
    }

    /// A host that had enough, or cannot be reached, is left alone for a while.
    fn charge_host<T: Tx>(&self, tx: &mut T, standing: &Standing, token: Token) {
        let (_, id) = tx.queue_parts(standing.queue);
        let politeness = tx.settings().politeness;
        let mut host: Host = tx.host(id).clone();
        if self.result == FetchResult::Forbidden {
            // It was open when this was handed out, and nothing was asked of it since.
            if host.last_lease == Some(token) {
                host.next_allowed = host.next_allowed.min(self.now);
                tx.set_host(id, host);
            }
            return;
        }
        if self.result == FetchResult::Unknown && self.report.retry_after.is_some() {
            // Whoever knows when robots.txt is asked for again has asked nobody now, or told of that by itself.
            return;
        }
        host.fetched += u64::from(self.result.was_asked());
        if self.result.is_by_host() {
            let asked = self.report.retry_after.map_or(0, |asked| to_millis(asked.min(LONGEST_PAUSE)));
            let asked = self.now.after_millis(asked);
            back_off(&mut host, tx.host_key(id).0, &politeness, (asked, self.now));
        } else {
            host.failures = 0;
        }
        tx.set_host(id, host);
    }

    fn count<T: Tx>(&self, tx: &mut T, changed: bool) {
        let more = Tally {
            fetches: self.result.was_asked().into(),
            bytes: self.report.bytes,
            changes: changed.into(),
            ..Tally::default()
        };
        tx.count_up(self.collection.number, more);
    }
}

/// The longest pause that a server may ask for.
pub(super) const LONGEST_PAUSE: Interval = forager_core::sentinel::schedule::LONGEST;

/// How much of a fingerprint is kept.
const FINGERPRINT_CHARS: usize = 128;

fn bounded(fingerprint: &str) -> String {
    fingerprint.chars().take(FINGERPRINT_CHARS).collect()
}

/// The longest validator that is shown to a server again; a longer one is as good as none.
const VALIDATOR_BYTES: usize = 512;

/// What the version that a server has now is known by. A 304 need not repeat what has not changed: what it does not
/// name stays.
fn validators_after(before: &Validators, given: &Validators, is_same: bool) -> Validators {
    let next = |before: &Option<String>, given: &Option<String>| match given {
        Some(text) => Some(text).filter(|text| text.len() <= VALIDATOR_BYTES).cloned(),
        None => before.clone().filter(|_| is_same),
    };
    Validators {
        etag: next(&before.etag, &given.etag),
        last_modified: next(&before.last_modified, &given.last_modified),
    }
}

/// Leaves a host alone that has failed or refused: twice as long each time in a row, and at least until it asked for, as far
/// as anybody may ask. Says until when that is.
pub(super) fn back_off(
    host: &mut Host,
    key: &str,
    politeness: &Politeness,
    (asked, now): (Moment, Moment),
) -> Moment {
    host.failures = host.failures.saturating_add(1);
    let millis = to_millis(politeness.back_off.doubled(host.failures - 1, politeness.max_back_off));
    let jitter = draw(key, host.fetched, millis / 5);
    let until = now.after_millis(millis + jitter).max(asked.min(now.after(LONGEST_PAUSE)));
    host.back_off_until = host.back_off_until.max(until);
    until
}

/// Random numbers that come out the same wherever they are drawn: from the URL and a count.
fn random(url: &str, count: u64) -> Pcg64 {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(url.as_bytes(), count);
    Pcg64::new(u128::from(seed), u128::from(count))
}

/// A number from 0 to `most`, drawn from a text and a count.
fn draw(text: &str, count: u64, most: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), count) % (most + 1)
}
