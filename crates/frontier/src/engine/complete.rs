//! What came of fetches.

mod learn;
mod next;
mod result;

use forager_core::scope::before_fetch::Rule;
use forager_core::time::Interval;

use super::chance::draw;
use super::discover::{Finds, take_in};
use super::hold::settle;
use super::notes::{forget_text, keep_text, log_fetch};
use super::priority::prioritise;
use super::rules::Words;
use super::{Tx, jobs, note_removal};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::{EntryId, Lease, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Host, to_millis};
use crate::moment::Moment;
use crate::settings::Politeness;
use crate::verbs::{Completed, Discovery, Event, FetchRow, Outcome, Report, Tally, Terms};
use next::Why;
use result::FetchResult;

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
        let found = if done.counts_links(tx, &record) {
            done.take_in_links(tx, lease.entry, &url)?
        } else {
            Vec::new()
        };
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

/// A report that counts.
struct Done<'c, 'r> {
    catalog: &'c Catalog,
    collection: &'c CollectionRow,
    report: &'r Report,
    result: FetchResult,
    now: Moment,
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
        self.charge_host(tx, &standing, lease);
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

    /// Whether the links of the page count. Those of a part of it may be cut short: they do when no better ones will come.
    fn counts_links<T: Tx>(&self, tx: &T, before: &Record) -> bool {
        let is_last = before.length.is_some() && before.errors >= self.tries(tx);
        !self.report.came_in_part() || is_last
    }

    /// Takes in what was found on the page.
    fn take_in_links<T: Tx>(&self, tx: &mut T, entry: EntryId, url: &str) -> Result<Vec<Discovery>> {
        let mut found = Vec::with_capacity(self.report.links.len());
        if !self.report.links.is_empty() {
            let (collection, links) = (self.collection, self.report.links.as_slice());
            let finds =
                Finds { collection, source: Some(url), entry: Some(entry), seed: None, depth: 0, links };
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

    /// The result in words: a status, or the kind of error.
    fn words(&self) -> String {
        match (self.report.error, self.report.status) {
            (Some(error), _) => format!("{error:?}").to_lowercase(),
            (None, Some(status)) => status.to_string(),
            (None, None) => String::new(),
        }
    }

    /// A host that had enough, or cannot be reached, is left alone for a while.
    fn charge_host<T: Tx>(&self, tx: &mut T, standing: &Standing, lease: Lease) {
        let (_, id) = tx.queue_parts(standing.queue);
        let politeness = tx.settings().politeness;
        let mut host: Host = tx.host(id).clone();
        if self.result == FetchResult::Forbidden {
            // It was open when this was handed out, and nothing was asked of it since.
            if host.last_lease == Some(lease.token) {
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
            back_off(&mut host, tx.host_key(id).0, &politeness, (asked, lease.from, self.now));
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

/// Leaves a host alone that has failed or refused: twice as long each time in a row, and at least until it asked for, as far
/// as anybody may ask. Says until when that is. What was sent before the host was last left alone failed along with what
/// it was left alone for, and not once more.
pub(super) fn back_off(
    host: &mut Host,
    key: &str,
    politeness: &Politeness,
    (asked, sent, now): (Moment, Moment, Moment),
) -> Moment {
    let is_another = host.failures == 0 || sent >= host.back_off_until;
    host.failures = host.failures.saturating_add(is_another.into());
    let millis = to_millis(politeness.back_off.doubled(host.failures - 1, politeness.max_back_off));
    let jitter = draw(key, host.fetched, millis / 5);
    let until = now.after_millis(millis + jitter).max(asked.min(now.after(LONGEST_PAUSE)));
    host.back_off_until = host.back_off_until.max(until);
    until
}
