//! `forager events`

use std::time::Duration;

use forager_frontier::Moment;
use forager_frontier::verbs::{Event, EventRow};
use serde::Serialize;

use crate::Outcome;
use crate::cli::EventsArgs;
use crate::output::{self, Output};
use crate::pause::Pauses;
use crate::store::{self, Missing};

const COLUMNS: &[&str] = &["position", "at", "collection", "subject", "event", "detail"];

/// How many are read at a time.
const PAGE: usize = 1000;

/// How often to look for more.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) fn run(args: &EventsArgs) -> anyhow::Result<Outcome> {
    let mut pauses = args.follow.then(Pauses::new).transpose()?;
    let mut output = Output::new(args.store.format(), COLUMNS);
    let (mut from, mut left) = (args.from, args.limit.unwrap_or(usize::MAX));
    let mut has_told = false;
    loop {
        match print(args, &mut from, &mut left, &mut output) {
            // Whoever follows a queue waits for others to be done with it.
            Err(error) if pauses.is_some() && store::is_locked(&error) => {
                if !std::mem::replace(&mut has_told, true) {
                    output::complain(format_args!("waiting for the queue: {error}"));
                }
            }
            Err(error) if store::is_stopped(&error) => return Ok(Outcome::Complete),
            other => {
                other?;
                has_told = false;
            }
        }
        let goes_on = pauses.as_mut().is_some_and(|pauses| left > 0 && pauses.sleep(LOOK_EVERY));
        if !goes_on {
            return Ok(Outcome::Complete);
        }
    }
}

/// Prints what is there from a position on, and moves it behind.
fn print(args: &EventsArgs, from: &mut u64, left: &mut usize, output: &mut Output) -> anyhow::Result<()> {
    store::with(&args.store, Missing::Refuse, |store| {
        while *left > 0 {
            let limit = PAGE.min(*left);
            let events = store::ask(store.frontier.events(*from, limit))?;
            for event in &events {
                if output.is_for_people() {
                    output.row(&Row::from(event))?;
                } else {
                    output.row(event)?;
                }
                *from = event.position + 1;
            }
            *left -= events.len();
            if events.len() < limit {
                break;
            }
        }
        output.flush()
    })
}

/// An event for people.
#[derive(Serialize)]
struct Row<'a> {
    position: u64,
    at: Moment,
    collection: &'a str,
    subject: &'a str,
    event: &'static str,
    detail: Option<String>,
}

impl<'a> From<&'a EventRow> for Row<'a> {
    fn from(row: &'a EventRow) -> Self {
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_else(|| "nothing".to_owned());
        let (event, detail) = match &row.event {
            // What a page is known by says nothing of whether it is there.
            Event::Changed { from, to, difference } if from == to && !difference.added.is_empty() => {
                ("changed", difference.added.first().cloned())
            }
            Event::Changed { from, to, .. } => {
                ("changed", Some(format!("from {} to {}", or_nothing(from), or_nothing(to))))
            }
            Event::Failed { result } => ("failed", Some(result.clone())),
            Event::Removed { rule } => ("removed", Some(rule.clone())),
            Event::Abandoned { times, .. } => ("abandoned", Some(format!("{times} in a row"))),
            Event::Finished => ("finished", None),
            Event::Put { added, changed, done } => {
                ("put", Some(format!("{added} new, {changed} known, {done} of them done")))
            }
        };
        Self {
            position: row.position,
            at: row.at,
            collection: &row.collection,
            subject: &row.subject,
            event,
            detail,
        }
    }
}
