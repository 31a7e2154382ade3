//! `forager lease`, `forager complete`, `forager extend`, `forager release`

use std::time::{Duration, Instant};

use anyhow::bail;
use forager_frontier::Moment;
use forager_frontier::entry::Token;
use forager_frontier::verbs::{self, LeaseAnswer, LeaseChange, LeaseRequest, Leased, Nothing, Report};
use jiff::Timestamp;

use super::host::wanted_key;
use crate::Outcome;
use crate::batch::{Batches, for_each_batch};
use crate::cli::{CompleteArgs, ExtendArgs, LeaseArgs, ReleaseArgs, StoreArgs};
use crate::input::{Input, Line};
use crate::output::{self, Output};
use crate::pause::Pauses;
use crate::record::{BadLine, parse_with_nulls};
use crate::store::{self, Missing};
use crate::words::counted;

const LEASE_COLUMNS: &[&str] =
    &["token", "until", "collection", "url", "priority", "due", "failures", "rule"];
const COMPLETE_COLUMNS: &[&str] = &["token", "outcome", "changed", "due", "rule"];

/// Whoever reports slowly is answered at once; whoever reports much shares commits.
const BATCHES: Batches = Batches { size: 500, eager: true };

/// The longest sleep at a time: another process may have added something by then.
const NAP: Duration = Duration::from_secs(10);

pub(super) fn lease(args: &LeaseArgs) -> anyhow::Result<Outcome> {
    let clock = Clock { first: args.store.now.get(), began: Instant::now() };
    let answer = if args.wait { wait(args, clock)? } else { ask(args, clock.first)? };
    // The queue is free again before anybody sees what was taken from it.
    let mut printed = 0;
    match print(args, &answer, &mut printed) {
        Ok(()) => Ok(Outcome::Complete),
        Err(error) => give_back(args, clock, &answer.leased[printed..], error),
    }
}

/// The time that counts as now, which goes on while we wait.
#[derive(Clone, Copy)]
struct Clock {
    first: Timestamp,
    began: Instant,
}

impl Clock {
    fn now(self) -> anyhow::Result<Timestamp> {
        Ok(self.first.saturating_add(self.began.elapsed())?)
    }
}

fn ask(args: &LeaseArgs, now: Timestamp) -> anyhow::Result<LeaseAnswer> {
    store::with(&args.store, Missing::Refuse, |store| {
        let collection = args.collection.clone();
        let host = wanted_key(store, args.host.as_deref(), collection.as_deref())?;
        let request = LeaseRequest {
            max: args.max,
            per_host: args.per_host,
            collection,
            host,
            hold: args.hold,
            ..LeaseRequest::default()
        };
        store::ask(store.frontier.lease(&request, now))
    })
}

/// Prints what was leased, and counts what somebody may have seen of it.
fn print(args: &LeaseArgs, answer: &LeaseAnswer, printed: &mut usize) -> anyhow::Result<()> {
    let mut output = Output::new(args.store.format(), LEASE_COLUMNS);
    for leased in &answer.leased {
        output.row(leased)?;
        if !output.is_for_people() {
            output.flush()?; // by itself, so that a failure tells which ones nobody has seen
            *printed += 1;
        }
    }
    match answer.nothing {
        Some(nothing) if output.is_for_people() => output.text(&in_words(nothing))?,
        Some(nothing) => output.row(&nothing)?,
        None => {}
    }
    output.flush()?;
    *printed = answer.leased.len();
    Ok(())
}

/// Gives back what nobody got to see, for nobody would fetch it.
fn give_back(
    args: &LeaseArgs,
    clock: Clock,
    unseen: &[Leased],
    error: anyhow::Error,
) -> anyhow::Result<Outcome> {
    let tokens: Vec<Token> = unseen.iter().map(|leased| leased.token).collect();
    let Some(until) = unseen.first().map(|leased| leased.until) else { return Err(error) };
    let now = clock.now()?;
    let released =
        store::with(&args.store, Missing::Refuse, |store| store::ask(store.frontier.release(&tokens, now)));
    let leases = counted(tokens.len() as u64, "lease", "leases");
    match released {
        Ok(_) => Err(error.context(format!("{leases} given back unseen"))),
        Err(cause) => {
            bail!(
                "{error:#}; {leases} that nobody has seen cannot be given back, and run out at {until}: {cause:#}"
            )
        }
    }
}

/// Asks again whenever there may be something, until there is, the time is up, or Ctrl-C. Others
/// have the queue in between.
fn wait(args: &LeaseArgs, clock: Clock) -> anyhow::Result<LeaseAnswer> {
    let mut pauses = Pauses::new()?;
    let timeout = args.timeout.map(|timeout| Duration::from_secs_f64(timeout.as_secs_f64()));
    let mut last = None;
    loop {
        let now = clock.now()?;
        let left = timeout.map_or(Duration::MAX, |timeout| timeout.saturating_sub(clock.began.elapsed()));
        let asked = match (ask(args, now), last) {
            (Err(error), Some(last)) if store::is_stopped(&error) => return Ok(last),
            (asked, _) => asked,
        };
        let wait = match &asked {
            // Opening has waited for a while already.
            Err(error) if store::is_locked(error) => store::TRY_EVERY,
            Ok(LeaseAnswer { nothing: Some(nothing), .. }) => match until(*nothing) {
                Some(until) => {
                    Duration::from_millis(until.millisecond().saturating_sub(Moment::of(now).millisecond()))
                }
                None => return asked,
            },
            _ => return asked,
        };
        if left.is_zero() || !pauses.sleep(wait.min(left).min(NAP)) {
            return asked;
        }
        last = asked.ok();
    }
}

fn until(nothing: Nothing) -> Option<Moment> {
    match nothing {
        Nothing::Empty => None,
        Nothing::NotDue { until } | Nothing::Throttled { until, .. } => Some(until),
        Nothing::Blocked { until } => until,
    }
}

fn in_words(nothing: Nothing) -> String {
    match nothing {
        Nothing::Empty => "nothing to fetch: the queue is empty".to_owned(),
        Nothing::NotDue { until } => format!("nothing to fetch before {until}: nothing is due"),
        Nothing::Throttled { until, gate } => format!("nothing to fetch before {until}: {gate}"),
        Nothing::Blocked { until: Some(until) } => {
            format!("nothing to fetch: what there is waits for leases to end, until {until} at the latest")
        }
        Nothing::Blocked { until: None } => {
            "nothing to fetch: what there is was blocked, disabled or stopped by a client (SetActive)"
                .to_owned()
        }
    }
}

pub(super) fn complete(args: &CompleteArgs) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.store.format(), COMPLETE_COLUMNS);
    let input = Input::open(&args.input.files)?;
    store::with_lazy(&args.store, Missing::Refuse, |lazy| {
        let summary = for_each_batch(
            input,
            &mut output,
            BATCHES,
            read,
            |_| false,
            |reports, told| {
                let store = lazy.get()?;
                let completed = store::ask(store.frontier.complete(reports, store.now()))?;
                for (index, row) in completed.iter().enumerate() {
                    if row.outcome == verbs::Outcome::Refused {
                        let problem = format_args!("{}: {}", row.token, row.rule);
                        told.bad(index, &BadLine::field("token", problem))?;
                    } else {
                        told.row(index, row)?;
                    }
                }
                Ok(())
            },
        )?;
        Ok(summary.outcome())
    })
}

fn read(line: &Line<'_>) -> Result<Report, BadLine> {
    let report: Report = parse_with_nulls(line)?;
    if report.token == 0 {
        return Err(BadLine::field("token", "missing"));
    }
    match (report.status, report.error) {
        (None, None) => Err(BadLine::whole("has neither a \"status\" nor an \"error\"")),
        (Some(_), Some(_)) => Err(BadLine::whole(
            "has both a \"status\" and an \"error\"; an error is for a fetch without an answer",
        )),
        (Some(status), None) if status < 100 => {
            Err(BadLine::field("status", format_args!("{status} is not a status of HTTP: at least 100")))
        }
        _ => Ok(report),
    }
}

pub(super) fn extend(args: &ExtendArgs) -> anyhow::Result<Outcome> {
    let tokens = tokens(&args.leases.tokens);
    let changes = store::with(&args.store, Missing::Refuse, |store| {
        store::ask(store.frontier.extend(&tokens, args.hold, store.now()))
    })?;
    print_changes(&args.store, &changes)
}

pub(super) fn release(args: &ReleaseArgs) -> anyhow::Result<Outcome> {
    let tokens = tokens(&args.leases.tokens);
    let changes = store::with(&args.store, Missing::Refuse, |store| {
        store::ask(store.frontier.release(&tokens, store.now()))
    })?;
    print_changes(&args.store, &changes)
}

fn tokens(numbers: &[u64]) -> Vec<Token> {
    numbers.iter().copied().map(Token).collect()
}

fn print_changes(args: &StoreArgs, changes: &[LeaseChange]) -> anyhow::Result<Outcome> {
    let mut output = Output::new(args.format(), &["token", "held", "until"]);
    let mut outcome = Outcome::Complete;
    for change in changes {
        output.row(change)?;
        if !change.held {
            output::complain(format_args!("token {}: the lease has run out, or never was", change.token));
            outcome = Outcome::SomeBad;
        }
    }
    output.flush()?;
    Ok(outcome)
}
