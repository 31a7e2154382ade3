//! Why a URL is, or is not, fetched now.

use forager_core::hierarchy::Priority;
use forager_core::order::Order;
use forager_core::scope::Place;
use forager_core::scope::before_fetch::{Action as FetchAction, before_fetch};
use forager_core::scope::outlink::{Action as LinkAction, Context, Hop, outlink};
use forager_core::score::score;
use forager_core::sentinel::classify::Class;
use forager_core::sentinel::schedule::interval;
use forager_core::time::Interval;
use forager_core::url::{FetchUrl, Identity};

use super::discover::{find_by, find_text, known_by, queues_of};
use super::lease::{judged_by, scope_entry, wake};
use super::priority::signals;
use super::read::{order_key, view};
use super::{Tx, Within, settle};
use crate::catalog::{Catalog, CollectionRow, Kind, Steering};
use crate::entry::{EntryId, QueueId, Record, Standing, State};
use crate::error::{Error, Result};
use crate::explain::{ClassView, DueView, EvidenceView, Explanation, Forms, GateView, PriorityTerms, Scope};
use crate::host::{Host, InFlight};
use crate::moment::Moment;

/// All that speaks for and against a URL, seen or never seen.
pub(crate) fn explain<T: Tx>(
    tx: &mut T,
    collection: &str,
    key: Option<&str>,
    url: &str,
    now: Moment,
) -> Result<Explanation> {
    settle(tx, now)?;
    wake(tx, now)?;
    let catalog = tx.catalog().clone();
    let row = catalog.require_collection(collection)?;
    let invalid = |cause: forager_core::url::UrlError| Error::Configuration(cause.to_string());
    let (derived, identity) = known_by(&catalog, row, url).map_err(invalid)?;
    let found = match key {
        Some(key) => find_by(tx, row, key, &identity)?,
        None => find_text(tx, row, &derived, &identity)?,
    };
    let other_keys = match found {
        Some((queue, _)) if key.is_none() => other_keys(tx, row, queue, &identity)?,
        _ => Vec::new(),
    };
    let known = found.and_then(|(queue, entry)| Some((queue, entry, tx.standing(entry)?)));
    let key = key.unwrap_or(&derived);
    let subject = Subject { catalog: &catalog, row, given: url, key, identity: &identity, now };
    let explanation = match known {
        Some((queue, entry, standing)) => subject.known(tx, queue, entry, standing)?,
        None => subject.unknown(tx),
    };
    Ok(Explanation { other_keys, ..explanation })
}

/// The keys of the other queues of a plain collection that have the same URL.
fn other_keys<T: Tx>(tx: &T, row: &CollectionRow, first: QueueId, identity: &str) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    if row.spec.kind == Kind::Planned {
        return Ok(keys);
    }
    for queue in queues_of(tx, row).filter(|queue| *queue != first) {
        if tx.find(queue, identity)?.is_some() {
            let (_, host) = tx.queue_parts(queue);
            keys.push(tx.host_key(host).0.to_owned());
        }
    }
    Ok(keys)
}

struct Subject<'a> {
    catalog: &'a Catalog,
    row: &'a CollectionRow,
    given: &'a str,
    key: &'a str,
    identity: &'a str,
    now: Moment,
}

impl Subject<'_> {
    fn known<T: Tx>(
        &self,
        tx: &T,
        queue: QueueId,
        entry: EntryId,
        standing: Standing,
    ) -> Result<Explanation> {
        let (url, record) = tx.load(entry)?;
        let (_, host_id) = tx.queue_parts(queue);
        let gates = self.gates(tx, tx.host(host_id), tx.in_flight(host_id));
        let scope = self.scope_of_entry(&standing, &record, &url);
        let waits = standing.state == State::Queued;
        let mut explanation = Explanation {
            verdict: String::new(),
            would_need: Vec::new(),
            forms: Forms { host: tx.host_key(host_id).0.to_owned(), ..self.forms(&url) },
            scope,
            priority: self.priority_terms(tx, &standing, &record),
            class: self.class(&url, Some(&standing)),
            evidence: (record.scans > 0 && !self.is_plain()).then(|| evidence(tx, &standing, &record)),
            due: waits.then(|| self.due(&standing, &record)),
            gates,
            general_delay: self.general_delay(tx.host(host_id)),
            sitemap_dates: tx.host(host_id).sitemap_dates,
            place_in_queue: if waits { Some(self.place_in_queue(tx, queue, entry, &standing)) } else { None },
            queue_length: tx.queue_counts(queue)[0],
            entry: view(tx, self.catalog, entry)?,
            other_keys: Vec::new(),
        };
        self.conclude(&mut explanation, Some((&standing, &record)));
        Ok(explanation)
    }

    fn unknown<T: Tx>(&self, tx: &T) -> Explanation {
        let parsed = FetchUrl::parse_lenient(self.given).ok().filter(|_| !self.is_plain());
        let url = parsed.as_ref().map_or(self.given, FetchUrl::as_str);
        let queue = tx.find_queue(self.row.number, self.key);
        let (host, in_flight) = match queue.map(|queue| tx.queue_parts(queue).1) {
            Some(id) => (tx.host(id).clone(), tx.in_flight(id)),
            None => (Host::default(), InFlight::default()),
        };
        let mut explanation = Explanation {
            verdict: String::new(),
            would_need: Vec::new(),
            forms: self.forms(url),
            scope: self.scope_of_stranger(parsed.as_ref()),
            priority: if self.is_plain() { priority_of_plain() } else { self.priority_of_stranger() },
            class: self.class(url, None),
            evidence: None,
            due: None,
            gates: self.gates(tx, &host, in_flight),
            general_delay: self.general_delay(&host),
            sitemap_dates: host.sitemap_dates,
            place_in_queue: None,
            queue_length: queue.map_or(0, |queue| tx.queue_counts(queue)[0]),
            entry: None,
            other_keys: Vec::new(),
        };
        self.conclude(&mut explanation, None);
        explanation
    }

    fn is_plain(&self) -> bool {
        self.row.spec.kind == Kind::Plain
    }

    /// The order is that of the first profile of the collection.
    fn priority_of_stranger(&self) -> PriorityTerms {
        let mut profiles = self.catalog.rows().profiles.iter();
        let first = profiles.find(|profile| profile.collection == self.row.spec.id);
        let order = first.map(|profile| profile.order).unwrap_or_default().to_string();
        let terms = vec!["depends on how it is found".to_owned()];
        PriorityTerms { order, value: None, terms, next_step: None }
    }

    fn forms(&self, url: &str) -> Forms {
        let surt = Identity::parse(self.identity).map(|identity| identity.surt().as_str().to_owned());
        Forms {
            given: self.given.to_owned(),
            fetch: url.to_owned(),
            identity: self.identity.to_owned(),
            surt: surt.unwrap_or_default(),
            host: self.key.to_owned(),
        }
    }

    fn scope_of_entry(&self, standing: &Standing, record: &Record, url: &str) -> Scope {
        let text = |action: &str, rule: String, seed: Option<String>| Scope {
            action: action.to_owned(),
            rule,
            seed,
            depth: Some(standing.place.depth),
        };
        if self.is_plain() {
            let no_scope = text("fetch", "a plain collection has no scope".to_owned(), None);
            return Scope { depth: None, ..no_scope };
        }
        let Some((identity, seed)) = judged_by(self.catalog, self.row, standing, url) else {
            return text("remove", "seed gone".to_owned(), None);
        };
        let entry = scope_entry(self.row, &identity, seed, standing, record);
        let verdict = before_fetch(self.catalog.scopes(), &entry, self.now.timestamp());
        let action = match verdict.action {
            FetchAction::Fetch => "fetch",
            FetchAction::Postpone { .. } => "postpone",
            FetchAction::Remove => "remove",
        };
        text(action, verdict.to_string(), verdict.seed.map(ToString::to_string))
    }

    /// The verdict on a URL that was never seen, if a seed of the collection linked to it: the best there is.
    fn scope_of_stranger(&self, url: Option<&FetchUrl>) -> Scope {
        let Some(url) = url else {
            let rule = "a plain collection has no scope".to_owned();
            return Scope { action: "add".to_owned(), rule, seed: None, depth: None };
        };
        let identity = self.catalog.scopes().identity(&self.row.spec.id, url);
        let mut refused = None;
        for seed in self.catalog.rows().seeds.iter().filter(|row| !row.is_gone) {
            let Some(seed_url) = self.catalog.seed_identity(seed.number) else { continue };
            let context = Context {
                collection: &self.row.spec.id,
                seed: seed_url,
                place: Place::default(),
                hop: Hop::Link,
            };
            let verdict = outlink(self.catalog.scopes(), &context, &identity, None, self.now.timestamp());
            let scope = |action: &str| Scope {
                action: action.to_owned(),
                rule: verdict.rule.to_string(),
                seed: Some(seed.seed.url.clone()),
                depth: Some(1),
            };
            if matches!(verdict.action, LinkAction::Add { .. }) {
                return scope("add");
            }
            let is_near = seed_url.domain() == identity.domain();
            if is_near || refused.is_none() {
                refused = Some(scope("ignore"));
            }
        }
        let rule = "the collection has no seed".to_owned();
        refused.unwrap_or(Scope { action: "ignore".to_owned(), rule, seed: None, depth: None })
    }

    fn priority_terms<T: Tx>(&self, tx: &T, standing: &Standing, record: &Record) -> PriorityTerms {
        if self.is_plain() {
            return priority_of_plain();
        }
        let order = self.catalog.order(&self.row.spec.id, standing.seed);
        let terms = match order {
            Order::Fifo => vec!["order of arrival".to_owned()],
            Order::Hierarchy => vec![hierarchy_term(tx, self.identity, standing, record)],
            Order::Linked => {
                let best = f64::from(record.best_link.unwrap_or_default()) / 1000.0;
                let further = record.linked_from.len().saturating_sub(1);
                let pages = if further == 1 { "page" } else { "pages" };
                vec![
                    format!("best link gives {best:.3}"),
                    format!("+0.001 for each of {further} further {pages}"),
                ]
            }
            Order::Risk => vec![format!("{} risk", standing.risk)],
            Order::Services => vec!["how well address and texts describe a service".to_owned()],
            Order::Score => {
                let scored = score(&signals(standing, record), self.now.timestamp());
                let mut terms = vec!["50 to start with".to_owned()];
                for term in scored.terms.iter().filter(|term| term.adds != 0) {
                    let reason = term.reason.map_or("topic relevance", |reason| reason.as_str());
                    terms.push(format!("{:+} {reason}", term.adds));
                }
                terms.push(format!("= {} of 100", scored.score));
                terms
            }
        };
        PriorityTerms {
            order: order.to_string(),
            value: Some(f64::from(standing.effective().thousandths()) / 1000.0),
            terms,
            next_step: standing.step,
        }
    }

    fn class(&self, url: &str, standing: Option<&Standing>) -> Option<ClassView> {
        if self.is_plain() {
            return None;
        }
        let classified = FetchUrl::parse(url).ok();
        let class: Option<Class<'_>> =
            classified.as_ref().map(|url| self.catalog.classifier().classify(url, None));
        let risk = standing.map(|standing| standing.risk);
        let json = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Some(ClassView {
            node_type: class.as_ref().map_or_else(String::new, |class| {
                json(serde_json::to_value(class.node_type).unwrap_or_default())
            }),
            node_role: class.as_ref().and_then(|class| {
                class.node_role.map(|role| json(serde_json::to_value(role).unwrap_or_default()))
            }),
            risk: risk
                .or(class.as_ref().map(|class| class.freshness_risk))
                .map_or_else(String::new, |risk| risk.to_string()),
            reasons: class
                .map_or_else(Vec::new, |class| class.reasons.iter().map(ToString::to_string).collect()),
        })
    }

    fn due(&self, standing: &Standing, record: &Record) -> DueView {
        let because = match (&record.due_because, standing.last_fetch) {
            (Some(because), _) => because.clone(),
            (None, None) if self.is_plain() => "its client decides".to_owned(),
            (None, None) => "it was never fetched".to_owned(),
            (None, Some(last)) => format!("it was fetched at {last}; its interval followed"),
        };
        DueView { at: standing.due, is_due: standing.due <= self.now, because }
    }

    fn gates<T: Tx>(&self, tx: &T, host: &Host, in_flight: InFlight) -> Vec<GateView> {
        let gates = host.gates(in_flight, &tx.settings().politeness, self.is_plain());
        gates
            .into_iter()
            .map(|(gate, at)| {
                let is_open = at <= self.now;
                GateView { gate, is_open, opens: (!is_open && at < Moment::NEVER).then_some(at) }
            })
            .collect()
    }

    /// The delay that clients have set for all queues, where it counts.
    fn general_delay(&self, host: &Host) -> Option<Interval> {
        let counts = self.is_plain() && host.settings.delay.is_none();
        self.catalog.rows().overall.delay.filter(|_| counts)
    }

    /// How many entries of the queue are due before this one, and it.
    fn place_in_queue<T: Tx>(&self, tx: &T, queue: QueueId, entry: EntryId, standing: &Standing) -> u64 {
        let key = |id: EntryId, standing: &Standing| {
            let is_due = standing.due <= self.now;
            (!is_due, (!is_due).then_some(standing.due), order_key(tx, id, standing))
        };
        let own = key(entry, standing);
        let mut before = 0;
        tx.scan(Within::Queue(queue), None, usize::MAX, &mut |id, other| {
            if other.state == State::Queued && key(id, other) < own {
                before += 1;
            }
            false
        });
        before + 1
    }

    /// Sums up: what happens, and what would have to change.
    fn conclude(&self, explanation: &mut Explanation, known: Option<(&Standing, &Record)>) {
        let mut needs = Vec::new();
        let verdict = match known {
            None if self.is_plain() => {
                needs.push("a client has to put it into the queue".to_owned());
                "never seen; it would be queued if a client put it in".to_owned()
            }
            None => conclude_stranger(explanation, &mut needs),
            Some((standing, record)) => self.conclude_entry(explanation, standing, record, &mut needs),
        };
        explanation.verdict = verdict;
        explanation.would_need = needs;
    }

    fn conclude_entry(
        &self,
        explanation: &Explanation,
        standing: &Standing,
        record: &Record,
        needs: &mut Vec<String>,
    ) -> String {
        match standing.state {
            State::Leased => {
                needs.push("the worker that has it has to report, or its lease to run out".to_owned());
                return "a worker has it".to_owned();
            }
            State::Done if self.is_plain() => {
                needs.push("a client has to say when it is to be handed out again".to_owned());
                let is_fetched = !record.history.is_empty();
                let verdict = if is_fetched { "fetched" } else { "done, as a client has said" };
                return verdict.to_owned();
            }
            State::Done => {
                needs.push(
                    "its seed has to be started again, or its profile to have a greater length".to_owned(),
                );
                return "fetched as often as asked".to_owned();
            }
            State::Failed => {
                needs.push("its seed has to be started again".to_owned());
                let last = record.history.last().map_or("no answer", |visit| visit.result.as_str());
                return format!("given up: {last}");
            }
            State::Queued => {}
        }
        if !self.row.spec.enabled {
            needs.push(format!("collection {:?} has to be enabled", self.row.spec.id));
        }
        if !self.catalog.rows().overall.is_active {
            needs.push("clients have stopped handing out (SetActive); one has to start it again".to_owned());
        }
        match self.row.spec.job.map(|job| job.steering) {
            Some(Steering::Paused) => needs.push("the job has to be resumed".to_owned()),
            Some(Steering::Cancelled) => needs.push("the job is cancelled; start another".to_owned()),
            Some(Steering::Running) | None => {}
        }
        if explanation.scope.action != "fetch" {
            needs.push(format!("scope has to allow it: {}", explanation.scope.rule));
        }
        if standing.due > self.now {
            needs.push(format!("its due time has to come: {}", standing.due));
        }
        for gate in explanation.gates.iter().filter(|gate| !gate.is_open) {
            needs.push(match gate.opens {
                Some(at) => format!("its host has to open at {at}: {}", gate.gate),
                None => format!("its host has to be opened: {}", gate.gate),
            });
        }
        if !needs.is_empty() {
            return "queued; not handed out now".to_owned();
        }
        match explanation.place_in_queue {
            Some(1) | None => "next at its host".to_owned(),
            Some(place) => {
                needs.push(match place - 1 {
                    1 => "another one of its host goes before it".to_owned(),
                    others => format!("{others} others of its host go before it"),
                });
                format!("number {place} at its host")
            }
        }
    }
}

/// In a plain collection there is no priority, only an order.
fn priority_of_plain() -> PriorityTerms {
    let terms = vec!["the one due first goes first; of equals, the one that came first".to_owned()];
    PriorityTerms { order: "due".to_owned(), value: None, terms, next_step: None }
}

/// What the scans of a page have taught.
fn evidence<T: Tx>(tx: &T, standing: &Standing, record: &Record) -> EvidenceView {
    let velocity = record.evidence().velocity;
    let (interval, reasons) = interval(velocity, standing.risk, &tx.settings().sentinel);
    EvidenceView {
        velocity: record.velocity,
        scans: record.scans,
        last_changed: record.last_changed,
        interval: interval.to_string(),
        reasons: reasons.iter().map(ToString::to_string).collect(),
    }
}

fn conclude_stranger(explanation: &Explanation, needs: &mut Vec<String>) -> String {
    if explanation.scope.action == "add" {
        needs.push("a page of the collection has to link to it, or it has to become a seed".to_owned());
        return "never seen; it would be queued if a link to it were found".to_owned();
    }
    needs.push(format!("a profile has to have it in scope: {}", explanation.scope.rule));
    "never seen; a link to it would be ignored".to_owned()
}

/// The sighting that gave a page its priority, as far as it can be told afterwards: only the best one is kept,
/// and of the pages that link here only the first.
fn hierarchy_term<T: Tx>(tx: &T, identity: &str, standing: &Standing, record: &Record) -> String {
    let priority = standing.priority;
    let source = record.origin.source.and_then(|source| Some((tx.standing(source)?.priority, source)));
    let is_homepage = Identity::parse(identity).is_ok_and(|identity| identity.is_homepage());
    match source {
        _ if is_homepage => format!("{priority} as the homepage"),
        Some((from, source)) if from.inherited() == priority => {
            let page = tx.load(source).map(|(url, _)| url).unwrap_or_default();
            format!("{priority} = 0.8 × {from} of {page}, which links to it")
        }
        _ if priority == Priority::HEADER => format!("{priority} as a link in the header of the homepage"),
        _ if priority == Priority::SITEMAP => format!("{priority} as a page of the sitemap"),
        _ if priority == Priority::LEAST => format!("{priority}, the least: nothing better is known of it"),
        _ => format!("{priority} by the best of the pages that link to it"),
    }
}
