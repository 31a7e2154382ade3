//! Handing out entries, politely and in order.

use std::sync::Arc;

use forager_core::scope::before_fetch::{Action as ScopeAction, Entry, Verdict, before_fetch};
use forager_core::url::{FetchUrl, Identity};
use rustc_hash::FxHashMap;

use super::hosts::waits;
use super::priority::{adopt, prioritise};
use super::rules::Words;
use super::{Tx, Wanted, jobs, note_removal, settle};
use crate::catalog::{Catalog, CollectionRow, Kind, Limits, Steering};
use crate::entry::{CollectionId, EntryId, HostId, How, Lease, QueueId, Record, Standing, State, Token};
use crate::error::Result;
use crate::host::{Gate, Host, Opens};
use crate::moment::Moment;
use crate::verbs::{LeaseAnswer, LeaseRequest, Leased, Nothing};

/// How many entries one call may postpone or remove on its way, besides ten for each it may hand out.
/// More are left to the next call, so that a disabled seed with a million entries holds up nobody.
const MOST_LOOKS: usize = 1000;

/// How many queues one call may pass over because they have enough under way. They keep their places in line; of what lies
/// behind so many, each takes a turn and a look, so that all are come to in the end.
const MOST_PASSED: usize = 8000;

/// Hands out up to `max` entries, or says how long to wait for one.
pub(crate) fn lease<T: Tx>(tx: &mut T, request: &LeaseRequest, now: Moment) -> Result<LeaseAnswer> {
    settle(tx, now)?;
    wake(tx, now)?;
    if request.max == 0 || request.per_host == 0 {
        return Ok(LeaseAnswer { leased: Vec::new(), nothing: None });
    }
    let catalog = tx.catalog().clone();
    let eligible = Eligible::of(tx, &catalog, request, now)?;
    let mut counter = Counter {
        catalog: &catalog,
        request,
        wanted: Wanted {
            collections: eligible.open,
            key: request.host.clone(),
            most: request.max,
            per_host: request.per_host,
        },
        now,
        leased: Vec::new(),
        bytes: 0,
        served: FxHashMap::default(),
        looks: request.max.saturating_mul(10).saturating_add(MOST_LOOKS),
        passes: MOST_PASSED,
        words: Words::new(),
    };
    counter.serve(tx)?;
    let Counter { leased, wanted, looks, .. } = counter;
    let nothing = match leased.is_empty() {
        false => None,
        true if looks == 0 => Some(Nothing::NotDue { until: now }),
        true => Some(nothing(tx, &wanted, &eligible.shut, eligible.ends)),
    };
    jobs::note_ends(tx, now)?;
    Ok(LeaseAnswer { leased, nothing })
}

/// Makes ready what is due, and gives those entries another priority whose score steps.
pub(crate) fn wake<T: Tx>(tx: &mut T, now: Moment) -> Result<()> {
    let catalog = tx.catalog().clone();
    for entry in tx.wake(now) {
        let Some(mut standing) = tx.standing(entry) else { continue };
        let (_, mut record) = tx.load(entry)?;
        let (collection, _) = tx.queue_parts(standing.queue);
        let Some(row) = catalog.collection_numbered(collection) else { continue };
        let order = catalog.order(&row.spec.id, standing.seed);
        prioritise(&catalog, order, &mut standing, &mut record, None, now);
        tx.set_standing(entry, standing);
    }
    Ok(())
}

/// The collections that a call is about.
struct Eligible {
    /// Those that hand out.
    open: Vec<CollectionId>,
    /// Those that a person or a client has stopped.
    shut: Vec<CollectionId>,
    /// When the time of the first of those is over that hand out.
    ends: Option<Moment>,
}

impl Eligible {
    fn of<T: Tx>(tx: &T, catalog: &Catalog, request: &LeaseRequest, now: Moment) -> Result<Self> {
        let mut eligible = Self { open: Vec::new(), shut: Vec::new(), ends: None };
        let is_active = catalog.rows().overall.is_active;
        let mut sort = |row: &CollectionRow| {
            let steering = row.spec.job.map_or(Steering::Running, |job| job.steering);
            if !is_active || !row.spec.enabled || steering == Steering::Paused {
                eligible.shut.push(row.number);
            } else if steering == Steering::Running && remaining(tx, row, now) > 0 {
                eligible.open.push(row.number);
                let end = row.spec.job.and_then(|job| job.time_ends());
                eligible.ends = eligible.ends.into_iter().chain(end).min();
            }
        };
        match &request.collection {
            Some(name) => sort(catalog.require_collection(name)?),
            None => catalog.rows().collections.iter().for_each(sort),
        }
        Ok(eligible)
    }
}

/// How many entries a collection may still hand out.
pub(super) fn remaining<T: Tx>(tx: &T, row: &CollectionRow, now: Moment) -> u64 {
    let Some(job) = row.spec.job else { return u64::MAX };
    let Limits { pages, bytes, .. } = job.limits;
    let tally = tx.tally(row.number);
    let is_over =
        job.time_ends().is_some_and(|end| end <= now) || bytes.is_some_and(|bytes| tally.bytes >= bytes);
    if is_over {
        return 0;
    }
    let [_, in_flight, ..] = tx.counts(row.number);
    pages.map_or(u64::MAX, |pages| pages.saturating_sub(tally.fetches.saturating_add(in_flight)))
}

/// One call, as it goes from host to host.
struct Counter<'c> {
    catalog: &'c Catalog,
    request: &'c LeaseRequest,
    wanted: Wanted,
    now: Moment,
    leased: Vec<Leased>,
    /// How many bytes their URLs and metadata have.
    bytes: usize,
    /// How many each host has handed out: several collections may share one.
    served: FxHashMap<HostId, usize>,
    looks: usize,
    passes: usize,
    words: Words<Verdict<'c>>,
}

impl<'c> Counter<'c> {
    fn serve<T: Tx>(&mut self, tx: &mut T) -> Result<()> {
        // Whoever is served gets a later turn than this, so that no host is looked at twice.
        let below = tx.next_turn();
        let mut passed = None;
        while !self.is_full() && self.served.len() < self.request.hosts && self.looks > 0 {
            let Some((place, queue)) = tx.next_queue(&self.wanted, passed, below) else { break };
            if self.passes > 0 && self.is_busy(tx, tx.queue_parts(queue).1) {
                self.passes -= 1;
                passed = Some((place, queue));
            } else {
                self.serve_queue(tx, queue)?;
            }
        }
        Ok(())
    }

    fn serve_queue<T: Tx>(&mut self, tx: &mut T, queue: QueueId) -> Result<()> {
        let (number, host_id) = tx.queue_parts(queue);
        let Some(collection) = self.catalog.collection_numbered(number) else { return Ok(()) };
        let is_plain = collection.spec.kind == Kind::Plain;
        let mut host = tx.host(host_id).clone();
        host.take_turn(number, tx.next_turn());
        let allowed = self.allowed(tx, collection, host_id);
        let opens =
            |tx: &T, host: &Host| host.opens(tx.in_flight(host_id), &tx.settings().politeness, is_plain);
        let (mut handed_out, mut afterwards) = (0, Moment::ZERO);
        while handed_out < allowed && !self.is_full() && self.looks > 0 {
            if handed_out > 0 && !opens(tx, &host).is_open(self.now) {
                break;
            }
            let reserved = tx.settings().reserved.0.get();
            let as_oldest = !is_plain && is_turn_of_oldest(reserved, host.served);
            let oldest = if as_oldest { tx.take(queue, true) } else { None };
            let Some(entry) = oldest.or_else(|| tx.take(queue, false)) else { break };
            self.looks -= 1;
            if let Some(token) = self.hand_out(tx, collection, entry, oldest.is_some())? {
                host.last_lease = Some(token);
                handed_out += 1;
                (host.served, host.served_at) = (host.served + 1, self.now);
                let delay = host.delay_millis(tx.host_key(host_id).0, waits(tx, is_plain));
                let next_allowed = self.now.after_millis(delay);
                // Clients of a plain collection pace by themselves what they get at once.
                if is_plain { afterwards = next_allowed } else { host.next_allowed = next_allowed }
            }
        }
        if is_plain && handed_out > 1 {
            // They share one wait, so that none of them alone can give it back.
            host.last_lease = None;
        }
        host.next_allowed = host.next_allowed.max(afterwards);
        if handed_out > 0 {
            *self.served.entry(host_id).or_default() += handed_out;
        } else {
            // There may be any number of them.
            self.looks = self.looks.saturating_sub(1);
        }
        tx.set_host(host_id, host);
        if remaining(tx, collection, self.now) == 0 {
            self.wanted.collections.retain(|other| *other != number);
        }
        Ok(())
    }

    /// Whether as much is handed out as was asked for.
    fn is_full(&self) -> bool {
        self.leased.len() >= self.request.max || self.bytes >= self.request.bytes
    }

    /// Whether a host has as much under way as whoever asks wants of it.
    fn is_busy<T: Tx>(&self, tx: &T, host: HostId) -> bool {
        tx.in_flight(host).count as usize >= self.request.busy_at
    }

    /// How many entries a host may hand out for a collection.
    fn allowed<T: Tx>(&self, tx: &T, collection: &CollectionRow, host: HostId) -> usize {
        if self.is_busy(tx, host) {
            return 0;
        }
        let of_host = self.served.get(&host).copied().unwrap_or_default();
        let of_collection = usize::try_from(remaining(tx, collection, self.now)).unwrap_or(usize::MAX);
        of_collection.min(self.request.per_host.saturating_sub(of_host))
    }

    /// Hands out an entry, unless the rules of scope have it wait or go. Returns the token if it did.
    fn hand_out<T: Tx>(
        &mut self,
        tx: &mut T,
        collection: &'c CollectionRow,
        entry: EntryId,
        as_oldest: bool,
    ) -> Result<Option<Token>> {
        let Some(mut standing) = tx.standing(entry) else { return Ok(None) };
        let (url, record) = tx.load(entry)?;
        let is_plain = collection.spec.kind == Kind::Plain;
        let rule = if is_plain {
            "plain".into()
        } else {
            match self.ask_scope(tx, collection, entry, &mut standing, &url, &record)? {
                Some(rule) => rule,
                None => return Ok(None),
            }
        };
        let token = tx.next_token();
        let until = self.now.after(self.request.hold);
        standing.state = State::Leased;
        tx.set_standing(entry, standing);
        tx.grant(Lease { token, entry, from: self.now, until });
        let (_, host_id) = tx.queue_parts(standing.queue);
        self.bytes += url.len() + record.origin.metadata.as_ref().map_or(0, |text| text.len());
        self.leased.push(Leased {
            token,
            until,
            collection: collection.spec.id.clone(),
            url,
            host: tx.host_key(host_id).0.to_owned(),
            seed: seed_text(self.catalog, &standing),
            depth: standing.place.depth,
            priority: standing.effective(),
            due: standing.due,
            last_fetch: standing.last_fetch,
            fingerprint: record.fingerprint,
            validators: record.validators,
            how: record.origin.how,
            failures: record.errors.saturating_add(record.abandoned),
            metadata: record.origin.metadata,
            terms: tx.host(host_id).terms(waits(tx, is_plain), &tx.settings().politeness, is_plain),
            as_oldest,
            rule,
        });
        Ok(Some(token))
    }

    /// The rule by which an entry may be fetched; none if it waits or goes instead.
    fn ask_scope<T: Tx>(
        &mut self,
        tx: &mut T,
        collection: &'c CollectionRow,
        id: EntryId,
        standing: &mut Standing,
        url: &str,
        record: &Record,
    ) -> Result<Option<Arc<str>>> {
        let Some((identity, seed)) = judged_by(self.catalog, collection, standing, url) else {
            note_removal(tx, collection, id, "seed gone", self.now)?;
            return Ok(None);
        };
        let entry = scope_entry(collection, &identity, seed, standing, record);
        let verdict = before_fetch(self.catalog.scopes(), &entry, self.now.timestamp());
        if let Some(heir) = verdict.seed.filter(|_| verdict.taken_over) {
            let before = standing.seed;
            standing.seed = self.catalog.seed_number(heir).or(before);
            let mut record = record.clone();
            adopt(self.catalog, &collection.spec.id, before, standing, &mut record, self.now);
        }
        let rule = self.words.of(verdict);
        match verdict.action {
            ScopeAction::Fetch => Ok(Some(rule)),
            ScopeAction::Postpone { due } => {
                standing.due = Moment::due(due, self.now);
                tx.set_standing(id, *standing);
                let because = Some(format!("postponed at {}: {rule}", self.now));
                tx.set_record(id, Record { due_because: because, ..record.clone() });
                Ok(None)
            }
            ScopeAction::Remove => {
                note_removal(tx, collection, id, &rule, self.now)?;
                Ok(None)
            }
        }
    }
}

/// Whether the next hand-out of a host is reserved for its oldest due entry.
pub(super) fn is_turn_of_oldest(reserved_percent: u8, served: u64) -> bool {
    if reserved_percent == 0 {
        return false;
    }
    let period = u64::from(100 / reserved_percent.min(100)).max(1);
    (served + 1).is_multiple_of(period)
}

/// The identity of an entry and of its seed. An entry without a seed has none to be judged by.
pub(super) fn judged_by<'c>(
    catalog: &'c Catalog,
    collection: &CollectionRow,
    standing: &Standing,
    url: &str,
) -> Option<(Identity, &'c Identity)> {
    let fetch = FetchUrl::parse(url).ok()?;
    let identity = catalog.scopes().identity(&collection.spec.id, &fetch);
    let seed = catalog.seed_identity(standing.seed?)?;
    Some((identity, seed))
}

/// An entry as the rules of scope see it.
pub(super) fn scope_entry<'a>(
    collection: &'a CollectionRow,
    identity: &'a Identity,
    seed: &'a Identity,
    standing: &Standing,
    record: &Record,
) -> Entry<'a> {
    Entry {
        collection: &collection.spec.id,
        url: identity,
        seed,
        place: standing.place,
        last_fetch: standing.last_fetch.map(Moment::timestamp),
        length: record.length,
        is_listing: record.origin.how == How::Listing,
    }
}

/// The seed of an entry, as it was written.
pub(super) fn seed_text(catalog: &Catalog, standing: &Standing) -> Option<String> {
    Some(catalog.seed(standing.seed?)?.seed.url.clone())
}

/// Why there is nothing to hand out, and when to ask again.
fn nothing<T: Tx>(tx: &T, wanted: &Wanted, shut: &[CollectionId], ends: Option<Moment>) -> Nothing {
    let outlook = tx.outlook(wanted);
    let soonest = |at: Moment| {
        let others = [outlook.first_due, outlook.first_expiry, ends];
        others.into_iter().flatten().fold(at, Moment::min)
    };
    match (outlook.first_open, outlook.first_due, outlook.first_expiry) {
        (Some(Opens { at, gate }), ..) if at < Moment::NEVER => match gate {
            Some(Gate::InFlight) | None => Nothing::Blocked { until: Some(soonest(at)) },
            Some(gate) => Nothing::Throttled { until: soonest(at), gate },
        },
        (_, Some(due), _) if due < Moment::NEVER => Nothing::NotDue { until: soonest(due) },
        (_, _, Some(expiry)) => Nothing::Blocked { until: Some(soonest(expiry)) },
        (Some(_), ..) | (_, Some(_), _) => Nothing::Blocked { until: None },
        (None, None, None) => {
            let waits = |collection: &CollectionId| tx.counts(*collection)[0] > 0;
            if shut.iter().any(waits) { Nothing::Blocked { until: None } } else { Nothing::Empty }
        }
    }
}
