//! `forager explain`

use forager_frontier::explain::{ClassView, EvidenceView, Explanation, PriorityTerms, Scope};
use forager_frontier::verbs::EntryView;
use forager_frontier::{Frontier as _, Moment};

use super::queue::collection_or_only;
use crate::Outcome;
use crate::cli::ExplainArgs;
use crate::output::Output;
use crate::store::{self, Missing};

pub(super) fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    let (collection, explanation, now) = store::with(&args.store, Missing::Refuse, |store| {
        let collection = collection_or_only(store, args.collection.as_deref())?;
        let explanation = store.ask(store.frontier.explain(&collection, &args.url, store.now))?;
        Ok((collection, explanation, Moment::of(store.now)))
    })?;
    let mut output = Output::new(args.store.format(), &[]);
    if output.is_for_people() {
        let lines = in_words(&collection, &explanation, now);
        lines.iter().try_for_each(|line| output.text(line))?;
    } else {
        output.row(&explanation)?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

/// Paragraphs with a label each, aligned.
struct Sheet {
    lines: Vec<String>,
}

/// How wide the labels are.
const LABEL: usize = 10;

impl Sheet {
    /// A paragraph; nothing if it has no lines.
    fn add(&mut self, label: &str, lines: impl IntoIterator<Item = String>) {
        let mut label = label;
        for line in lines {
            self.lines.push(format!("{label:LABEL$}{line}"));
            label = "";
        }
    }
}

fn in_words(collection: &str, it: &Explanation, now: Moment) -> Vec<String> {
    let title = [it.forms.given.clone(), format!("in collection {collection}, at {now}")];
    let mut sheet = Sheet { lines: title.into() };
    sheet.lines.extend([String::new(), it.verdict.clone(), String::new()]);
    sheet.add("needs", it.would_need.iter().cloned());
    sheet.add("scope", scope(&it.scope));
    sheet.add(
        "due",
        it.due.iter().map(|due| {
            let state = if due.is_due { "due since" } else { "not before" };
            format!("{state} {}: {}", due.at, due.because)
        }),
    );
    let mut label = "host";
    for gate in &it.gates {
        let state = match gate.opens {
            _ if gate.is_open => "open".to_owned(),
            Some(opens) => format!("closed until {opens}"),
            None => "closed until somebody opens it".to_owned(),
        };
        sheet.add(label, [format!("{:25}{state}", gate.gate.to_string())]);
        label = "";
    }
    sheet.add("queue", queue(it));
    sheet.add("priority", priority(&it.priority));
    sheet.add("class", class(&it.class));
    sheet.add("evidence", it.evidence.iter().flat_map(evidence));
    sheet.add("history", it.entry.iter().flat_map(history));
    sheet.add("found", it.entry.iter().map(found));
    sheet.add(
        "url",
        [
            format!("requested as  {}", it.forms.fetch),
            format!("known as      {}", it.forms.identity),
            format!("sorted as     {}", it.forms.surt),
            format!("polite to     {}", it.forms.host),
        ],
    );
    sheet.lines
}

fn scope(scope: &Scope) -> [String; 1] {
    let Scope { action, rule, seed, depth } = scope;
    let seed = seed.as_ref().map(|seed| format!(", seed {seed}")).unwrap_or_default();
    let depth = depth.map(|depth| format!(", depth {depth}")).unwrap_or_default();
    [format!("{action}: {rule}{seed}{depth}")]
}

fn queue(it: &Explanation) -> Vec<String> {
    let lease = it.entry.as_ref().and_then(|entry| entry.leased_until);
    match (it.place_in_queue, lease) {
        (Some(place), _) => vec![format!("number {place} of {} at {}", it.queue_length, it.forms.host)],
        (None, Some(until)) => vec![format!("leased until {until}; {} others wait", it.queue_length)],
        (None, None) => vec![format!("not in it; {} wait at {}", it.queue_length, it.forms.host)],
    }
}

fn priority(priority: &PriorityTerms) -> Vec<String> {
    let value = priority.value.map(|value| format!("{value} ")).unwrap_or_default();
    let mut lines = vec![format!("{value}by order {}", priority.order)];
    lines.extend(priority.terms.iter().map(|term| format!("  {term}")));
    lines.extend(priority.next_step.map(|step| format!("  changes by itself at {step}")));
    lines
}

fn class(class: &ClassView) -> Vec<String> {
    let role = class.node_role.as_ref().map(|role| format!(" {role}")).unwrap_or_default();
    let mut lines = vec![format!("{}{role}, {} risk", class.node_type, class.risk)];
    lines.extend(class.reasons.iter().map(|reason| format!("  {reason}")));
    lines
}

fn evidence(evidence: &EvidenceView) -> Vec<String> {
    let changed = evidence.last_changed.map(|at| format!(", last changed {at}")).unwrap_or_default();
    let mut lines = vec![format!(
        "change rate {} after {} scans{changed}: {}",
        evidence.velocity, evidence.scans, evidence.interval
    )];
    lines.extend(evidence.reasons.iter().map(|reason| format!("  {reason}")));
    lines
}

fn history(entry: &EntryView) -> Vec<String> {
    let line = |visit: &forager_frontier::entry::Visit| {
        format!("{}  {}{}", visit.at, visit.result, if visit.changed { ", changed" } else { "" })
    };
    entry.record.history.iter().rev().map(line).collect()
}

fn found(entry: &EntryView) -> String {
    let origin = &entry.record.origin;
    let how = serde_json::to_value(origin.how).ok();
    let how = how.as_ref().and_then(|how| how.as_str()).unwrap_or_default();
    let source = entry.source.as_ref().map(|source| format!(" on {source}")).unwrap_or_default();
    format!("{}, as {how}{source}", origin.created)
}
