//! `forager explain`

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_crawl::robots::{self, Word};
use forager_frontier::Moment;
use forager_frontier::entry::{How, Visit};
use forager_frontier::explain::{ClassView, EvidenceView, Explanation, GateView, PriorityTerms, Scope};
use forager_frontier::verbs::EntryView;

use serde::Serialize;

use super::host::wanted_key;
use super::queue::collection_or_only;
use crate::Outcome;
use crate::cli::ExplainArgs;
use crate::config::Config;
use crate::output::Output;
use crate::runtime;
use crate::store::{self, Missing, Store};
use crate::words::counted;

pub(super) fn run(ExplainArgs { entry: args }: &ExplainArgs) -> anyhow::Result<Outcome> {
    let token = Config::load(&args.store.place.config)?.fetch.product_token();
    let (collection, explained, now) = store::with(&args.store, Missing::Refuse, |store| {
        let collection = collection_or_only(store, args.collection.as_deref())?;
        let key = wanted_key(store, args.key.as_deref(), Some(&collection))?;
        let now = store.now();
        let explanation = store::ask(store.frontier.explain(&collection, key.as_deref(), &args.url, now))?;
        let explained = with_robots(store, explanation, &token)?;
        Ok((collection, explained, Moment::of(now)))
    })?;
    let mut output = Output::new(args.store.format(), &[]);
    if output.is_for_people() {
        let lines = in_words(&collection, &explained, now);
        lines.iter().try_for_each(|line| output.text(line))?;
    } else {
        output.row(&explained)?;
    }
    output.flush()?;
    Ok(Outcome::Complete)
}

/// What the queue says of a URL, and what the robots.txt of its host does.
#[derive(Serialize)]
struct Explained {
    #[serde(flatten)]
    explanation: Explanation,
    /// None if it was never asked for.
    robots: Option<Word>,
}

fn with_robots(store: &Store, mut explanation: Explanation, token: &str) -> anyhow::Result<Explained> {
    let url = FetchUrl::parse(&explanation.forms.fetch).ok();
    let robots = match &url {
        Some(url) => runtime::wait(robots::known(&*store.frontier, url, token))??,
        None => None,
    };
    if let Some(word) = robots.as_ref().filter(|word| !word.allowed) {
        explanation.would_need.push(format!("{} has to allow it: {}", word.source, word.rule));
    }
    Ok(Explained { explanation, robots })
}

/// How wide the labels are.
const LABEL: usize = 12;

/// The sentence that says it all, and below it what it follows from.
fn in_words(collection: &str, explained: &Explained, now: Moment) -> Vec<String> {
    let it = &explained.explanation;
    let entry = it.entry.as_ref();
    let paragraphs = [
        ("needs", it.would_need.clone()),
        ("collection", vec![collection.to_owned()]),
        ("now", vec![now.to_string()]),
        ("scope", scope(&it.scope)),
        ("due", due(it, now)),
        ("host", host(it, now)),
        ("robots", explained.robots.as_ref().map(|word| word_of_robots(word, now)).unwrap_or_default()),
        ("queue", queue(it, now)),
        ("priority", priority(&it.priority, now)),
        ("class", it.class.as_ref().map(class).unwrap_or_default()),
        ("changes", it.evidence.as_ref().map(|it| evidence(it, now)).unwrap_or_default()),
        ("fetches", entry.map(|entry| history(entry, now)).unwrap_or_default()),
        ("others", others(it)),
        ("found", entry.map(|entry| found(entry, now)).unwrap_or_default()),
        ("forms", forms(it)),
    ];
    let mut lines = vec![it.forms.given.clone(), it.verdict.clone(), String::new()];
    for (label, paragraph) in paragraphs {
        let labels = std::iter::once(label).chain(std::iter::repeat(""));
        lines.extend(labels.zip(paragraph).map(|(label, line)| format!("  {label:LABEL$}{line}")));
    }
    lines
}

/// A time, and how far off it is.
fn when(time: Moment, now: Moment) -> String {
    let length =
        |millis: u64| Interval::from_secs_f64(std::time::Duration::from_millis(millis).as_secs_f64());
    match (time.millisecond(), now.millisecond()) {
        (time_ms, now_ms) if time_ms > now_ms => format!("{time}, in {}", length(time_ms - now_ms)),
        (time_ms, now_ms) if time_ms < now_ms => format!("{time}, {} ago", length(now_ms - time_ms)),
        _ => format!("{time}, now"),
    }
}

fn scope(scope: &Scope) -> Vec<String> {
    let Scope { action, rule, seed, depth } = scope;
    let mut lines = vec![format!("{action}: {rule}")];
    let depth = depth.map(|depth| format!(", depth {depth}")).unwrap_or_default();
    lines.extend(seed.as_ref().map(|seed| format!("by seed {seed}{depth}")));
    lines
}

fn due(it: &Explanation, now: Moment) -> Vec<String> {
    it.due.iter().map(|due| format!("{}: {}", when(due.at, now), due.because)).collect()
}

/// Each gate that is closed, and in one line those that are open.
fn host(it: &Explanation, now: Moment) -> Vec<String> {
    let closed = |gate: &GateView| match gate.opens {
        Some(opens) => format!("closed by {} until {}", gate.gate, when(opens, now)),
        None => format!("closed by {} until somebody opens it", gate.gate),
    };
    let mut lines = vec![it.forms.host.clone()];
    lines.extend(it.gates.iter().filter(|gate| !gate.is_open).map(closed));
    let general = it.general_delay.map(|delay| {
        format!("waits {delay} between two hand-outs: clients have set that for all queues (SetDelay)")
    });
    lines.extend(general);
    let open: Vec<String> =
        it.gates.iter().filter(|gate| gate.is_open).map(|gate| gate.gate.to_string()).collect();
    if !open.is_empty() {
        lines.push(format!("open: {}", open.join(", ")));
    }
    if !it.sitemap_dates.is_unknown() {
        let (dates, total) =
            (it.sitemap_dates, it.sitemap_dates.right.saturating_add(it.sitemap_dates.wrong));
        let trust = if dates.is_trusted() { "" } else { ", and are not gone by" };
        lines.push(format!("the dates in its sitemaps were right {} of {total} times{trust}", dates.right));
    }
    lines
}

fn word_of_robots(word: &Word, now: Moment) -> Vec<String> {
    let Word { source, allowed, rule, asked, expires, .. } = word;
    let verdict = if *allowed { "allowed" } else { "forbidden" };
    vec![
        format!("{verdict}: {rule}"),
        format!("by {source}, asked for at {}", when(*asked, now)),
        format!("counts until {}", when(*expires, now)),
    ]
}

fn queue(it: &Explanation, now: Moment) -> Vec<String> {
    let lease = it.entry.as_ref().and_then(|entry| entry.leased_until);
    let waiting = it.queue_length;
    let wait = counted(waiting, "waits", "wait");
    vec![match (it.place_in_queue, lease) {
        (Some(_), _) if waiting == 1 => "the only one that waits at its host".to_owned(),
        (Some(place), _) => format!("number {place} of the {waiting} that wait at its host"),
        (None, Some(until)) => format!("a worker has it until {}; {wait} at its host", when(until, now)),
        (None, None) => format!("not in it; {wait} at its host"),
    }]
}

/// The other queues that have the same URL.
fn others(it: &Explanation) -> Vec<String> {
    it.other_keys
        .iter()
        .map(|key| format!("the same URL is in the queue {key:?} too: --key {key:?}"))
        .collect()
}

fn priority(priority: &PriorityTerms, now: Moment) -> Vec<String> {
    let order = &priority.order;
    let mut lines = vec![
        priority.value.map_or_else(|| format!("order {order}"), |value| format!("{value}, order {order}")),
    ];
    lines.extend(priority.terms.iter().cloned());
    lines.extend(priority.next_step.map(|step| format!("changes by itself at {}", when(step, now))));
    lines
}

fn class(class: &ClassView) -> Vec<String> {
    let role = class.node_role.as_ref().map(|role| format!(" {role}")).unwrap_or_default();
    let mut lines = vec![format!("{}{role}, {} risk", class.node_type, class.risk)];
    lines.extend(class.reasons.iter().cloned());
    lines
}

fn evidence(evidence: &EvidenceView, now: Moment) -> Vec<String> {
    let EvidenceView { velocity, scans, interval, .. } = evidence;
    let scans = counted(*scans, "scan", "scans");
    let mut lines = vec![format!("rate {velocity} after {scans}: an interval of {interval}")];
    lines.extend(evidence.reasons.iter().cloned());
    lines.extend(evidence.last_changed.map(|at| format!("last changed {}", when(at, now))));
    lines
}

/// The last fetches, newest first.
fn history(entry: &EntryView, now: Moment) -> Vec<String> {
    let line = |visit: &Visit| {
        let changed = if visit.changed { ", changed" } else { "" };
        format!("{}: {}{changed}", when(visit.at, now), visit.result)
    };
    entry.record.history.iter().rev().map(line).collect()
}

fn found(entry: &EntryView, now: Moment) -> Vec<String> {
    let origin = &entry.record.origin;
    let how = match origin.how {
        How::Seed => "as a seed",
        How::Link => "as a link",
        How::Sitemap => "in a sitemap",
        How::Listing => "named as a list of pages",
        How::Redirect => "through a redirect",
        How::Other => "in some other way",
    };
    let source = entry.source.as_ref().map(|source| format!(" on {source}")).unwrap_or_default();
    vec![format!("{}, {how}{source}", when(origin.created, now))]
}

fn forms(it: &Explanation) -> Vec<String> {
    let forms = &it.forms;
    let forms = [("requested", &forms.fetch), ("known", &forms.identity), ("sorted", &forms.surt)];
    let has_any = forms.iter().filter(|(_, form)| !form.is_empty());
    has_any.map(|(how, form)| format!("{how} as {form}")).collect()
}
