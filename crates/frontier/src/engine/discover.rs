//! Links that were found: queued, merged with what is known, or turned away.

use std::sync::Arc;

use forager_core::hierarchy::Priority;
use forager_core::order::Order;
use forager_core::scope::Place;
use forager_core::scope::outlink::{self, Claim, Hop, Queued, Rule};
use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::NodeType;
use forager_core::url::{FetchUrl, Identity, UrlError};

use super::priority::{Sighting, Source, counts_links, prioritise};
use super::rules::{Fixed, Words};
use super::{NewEntry, Tx, jobs, note_removal, plain, settle};
use crate::catalog::{Catalog, CollectionRow, Kind};
use crate::entry::{DEEPEST, EntryId, How, Origin, QueueId, Record, SeedId, Standing, State};
use crate::error::Result;
use crate::moment::Moment;
use crate::verbs::{Action, Discovery, Link, Page};

/// Takes in links; says for each what became of it.
pub(crate) fn discover<T: Tx>(tx: &mut T, pages: &[Page], now: Moment) -> Result<Vec<Discovery>> {
    settle(tx, now)?;
    let catalog = tx.catalog().clone();
    let mut answers = Vec::with_capacity(pages.iter().map(|page| page.links.len()).sum());
    for page in pages {
        let Some(collection) = catalog.collection(&page.collection) else {
            answers.extend(turned_away(&page.links, "collection gone"));
            continue;
        };
        let (source, seed) = (page.source.as_deref(), page.seed.as_deref());
        let finds = Finds { collection, source, entry: None, seed, depth: page.depth, links: &page.links };
        take_in(tx, &catalog, finds, now, &mut answers)?;
    }
    jobs::note_ends(tx, now)?;
    Ok(answers)
}

/// What was found on a page of a collection; see [`Page`].
#[derive(Clone, Copy)]
pub(super) struct Finds<'a> {
    pub(super) collection: &'a CollectionRow,
    pub(super) source: Option<&'a str>,
    /// The entry of that, where it is at hand.
    pub(super) entry: Option<EntryId>,
    pub(super) seed: Option<&'a str>,
    pub(super) depth: u32,
    pub(super) links: &'a [Link],
}

/// Takes in what was found on a page.
pub(super) fn take_in<T: Tx>(
    tx: &mut T,
    catalog: &Catalog,
    finds: Finds<'_>,
    now: Moment,
    answers: &mut Vec<Discovery>,
) -> Result<()> {
    if finds.collection.spec.kind == Kind::Plain {
        return plain::take_in(tx, finds, now, answers);
    }
    match Context::of(tx, catalog, finds, now)? {
        Some(context) => context.take_in(tx, finds.links, answers)?,
        None => answers.extend(turned_away(finds.links, "the page is no entry, and names no seed")),
    }
    Ok(())
}

fn turned_away(links: &[Link], rule: &str) -> impl Iterator<Item = Discovery> {
    let rule: Arc<str> = rule.into();
    links.iter().map(move |_| Discovery { action: Action::Ignored, rule: rule.clone() })
}

/// How many hops in a row are followed that lead no farther from the seed: redirects, and lists of lists.
const MOST_FREE_HOPS: usize = 10;

/// Why a link changes nothing that leads to a page which is through. Most links of a crawl do in the end.
static SPENT: Fixed = Fixed::new(|| "fetched as often as asked".into());
static GIVEN_UP: Fixed = Fixed::new(|| "given up".into());

/// What all links of a page have in common.
struct Context<'c> {
    catalog: &'c Catalog,
    collection: &'c CollectionRow,
    seed: &'c Identity,
    seed_number: SeedId,
    /// The page, as the rules of scope have it.
    page: outlink::Page<'c, 'c>,
    /// Where it is.
    url: Option<FetchUrl>,
    order: Order,
    harvest: u8,
    /// The most URLs of one host; 0 if any number.
    max_per_host: u64,
    source: Option<Source>,
    source_entry: Option<EntryId>,
    source_risk: Risk,
    now: Moment,
}

impl<'c> Context<'c> {
    /// The context of a page: that of its entry, or else what the page says of itself.
    fn of<T: Tx>(tx: &T, catalog: &'c Catalog, finds: Finds<'c>, now: Moment) -> Result<Option<Self>> {
        let collection = finds.collection;
        let url = finds.source.and_then(|source| FetchUrl::parse_lenient(source).ok());
        let identity = url.as_ref().map(|url| catalog.scopes().identity(&collection.spec.id, url));
        let known = match (finds.entry, &identity) {
            (None, Some(identity)) => find_source(tx, collection, identity)?,
            (entry, _) => entry,
        };
        let standing = known.and_then(|entry| tx.standing(entry));
        let named = finds.seed.and_then(|seed| Identity::parse(seed).ok());
        let number = match standing {
            Some(standing) => standing.seed,
            None => named.and_then(|seed| catalog.seed_number(&seed)),
        };
        let Some((seed_number, seed)) =
            number.and_then(|number| Some((number, catalog.seed_identity(number)?)))
        else {
            return Ok(None);
        };
        let place =
            standing.map_or(Place { depth: finds.depth, hops_off_domain: 0 }, |standing| standing.place);
        let context = outlink::Context { collection: &collection.spec.id, seed, place, hop: Hop::default() };
        let page = outlink::Page::of(catalog.scopes(), &context);
        let order = page.order();
        let mut priority = standing.map(|standing| standing.priority);
        if let (true, Some(entry)) = (counts_links(order), known) {
            // What further links added to a page is its own; it hands on what its best link gave it.
            let best = tx.load(entry)?.1.best_link;
            priority = best.map(super::priority::thousandths);
        }
        Ok(Some(Self {
            catalog,
            collection,
            seed,
            seed_number,
            page,
            url,
            order,
            harvest: standing.map_or(collection.harvest, |standing| standing.harvest),
            max_per_host: page.max_per_host(),
            source: identity.map(|identity| Source { identity, priority }),
            source_entry: known,
            source_risk: standing.map_or(Risk::Low, |standing| standing.risk),
            now,
        }))
    }

    /// Takes in the links of the page.
    fn take_in<T: Tx>(&self, tx: &mut T, links: &[Link], answers: &mut Vec<Discovery>) -> Result<()> {
        let parse = |link: &Link| {
            let url = match &self.url {
                Some(page) => page.parse_beside(&link.url)?,
                None => FetchUrl::parse(&link.url)?,
            };
            let identity = self.catalog.scopes().identity(&self.collection.spec.id, &url);
            Ok((url, identity))
        };
        let parsed: Vec<Result<(FetchUrl, Identity), UrlError>> = links.iter().map(parse).collect();
        let wanted: Vec<(&str, &str)> =
            parsed.iter().flatten().map(|(_, identity)| (identity.host_key(), identity.as_str())).collect();
        if !tx.look_ahead(self.collection.number, &wanted) {
            return Ok(());
        }
        let (mut words, mut last_queue) = (Words::new(), None);
        for (link, parsed) in links.iter().zip(&parsed) {
            answers.push(match parsed {
                Ok((url, identity)) => {
                    let queue = self.queue_of(tx, identity, &mut last_queue);
                    let known = queue.map_or(Ok(None), |queue| tx.find(queue, identity.as_str()))?;
                    let sighting = Sighting { url, identity, link, source: self.source.as_ref() };
                    self.judge(tx, sighting, known, &mut words)?
                }
                Err(error) => Discovery { action: Action::Invalid, rule: error.to_string().into() },
            });
        }
        Ok(())
    }

    /// The queue that a URL belongs to, if it is there. Most links of a page lead to where the `last` one did.
    fn queue_of<'l, T: Tx>(
        &self,
        tx: &T,
        identity: &'l Identity,
        last: &mut Option<(&'l str, QueueId)>,
    ) -> Option<QueueId> {
        let key = identity.host_key();
        if let Some((_, queue)) = last.filter(|(of, _)| *of == key) {
            return Some(queue);
        }
        let queue = tx.find_queue(self.collection.number, key)?;
        *last = Some((key, queue));
        Some(queue)
    }

    fn judge<T: Tx>(
        &self,
        tx: &mut T,
        sighting: Sighting<'_>,
        known: Option<EntryId>,
        words: &mut Words<Rule<'c>>,
    ) -> Result<Discovery> {
        let known = known.and_then(|entry| Some((entry, tx.standing(entry)?)));
        let is_through = |standing: &Standing| matches!(standing.state, State::Done | State::Failed);
        if let Some((_, standing)) = known
            && is_through(&standing)
            && !self.is_newer_harvest(&standing)
        {
            let rule = if standing.state == State::Done { &SPENT } else { &GIVEN_UP };
            return Ok(Discovery { action: Action::Kept, rule: rule.get() });
        }
        let queued = known.filter(|(_, standing)| !is_through(standing));
        if self.is_endless(tx, sighting.link.how)? {
            let is_listing = sighting.link.how == How::Listing;
            let rule =
                if is_listing { "a list of lists of lists, too often" } else { "redirected too often" };
            return Ok(Discovery { action: Action::Ignored, rule: rule.into() });
        }
        let verdict = self.ask_scope(sighting, queued.map(|(_, standing)| standing));
        let rule = words.of(verdict.rule);
        let action = match verdict.action {
            outlink::Action::Add { length, claim } => match known {
                Some((entry, standing)) => self.revive(tx, entry, standing, claim, length, sighting)?,
                None if self.is_host_full(tx, sighting.identity) => {
                    let rule = format!("trap: more than {} URLs of one host", self.max_per_host);
                    return Ok(Discovery { action: Action::Ignored, rule: rule.into() });
                }
                None => self.add(tx, claim, length, sighting),
            },
            outlink::Action::Merge(claim) => match queued {
                Some((entry, standing)) => self.merge(tx, entry, standing, claim, sighting)?,
                None => Action::Ignored,
            },
            outlink::Action::Keep => Action::Kept,
            outlink::Action::Ignore => Action::Ignored,
            outlink::Action::Remove => match queued {
                // What a worker has is decided when it reports.
                Some((_, Standing { state: State::Leased, .. })) => Action::Kept,
                // A list of pages is in scope wherever it lies, whoever links to it.
                Some((entry, _)) if tx.load(entry)?.1.origin.how == How::Listing => Action::Kept,
                Some((entry, _)) => {
                    note_removal(tx, self.collection, entry, &rule, self.now)?;
                    Action::Removed
                }
                None => Action::Ignored,
            },
        };
        Ok(Discovery { action, rule })
    }

    /// Whether a hop that leads no farther from the seed is one of too many in a row.
    fn is_endless<T: Tx>(&self, tx: &T, how: How) -> Result<bool> {
        let (mut how, mut source) = (how, self.source_entry);
        for _ in 0..=MOST_FREE_HOPS {
            let (How::Redirect | How::Listing, Some(entry)) = (how, source) else { return Ok(false) };
            let origin = tx.load(entry)?.1.origin;
            (how, source) = (origin.how, origin.source);
        }
        Ok(true)
    }

    /// Whether a host has as many entries as it may.
    fn is_host_full<T: Tx>(&self, tx: &T, identity: &Identity) -> bool {
        if self.max_per_host == 0 {
            return false;
        }
        let queue = tx.find_queue(self.collection.number, identity.host_key());
        queue.is_some_and(|queue| tx.queue_counts(queue).iter().sum::<u64>() >= self.max_per_host)
    }

    fn ask_scope(&self, sighting: Sighting<'_>, queued: Option<Standing>) -> outlink::Verdict<'c> {
        let hop = match sighting.link.how {
            How::Redirect => Hop::Redirect,
            How::Listing => Hop::Listing,
            How::Seed | How::Link | How::Sitemap | How::Other => Hop::Link,
        };
        let queued = queued.and_then(|standing| {
            Some(Queued {
                seed: self.catalog.seed_identity(standing.seed?)?,
                place: standing.place,
                due: standing.due.timestamp(),
                // Only the second is kept. A page that is found again is not brought forward to before its time.
                last_fetch: standing.last_fetch.map(|last| last.after_millis(999).timestamp()),
                leased: standing.state == State::Leased,
            })
        });
        self.page.judge(hop, sighting.identity, queued.as_ref(), self.now.timestamp())
    }

    fn is_newer_harvest(&self, standing: &Standing) -> bool {
        is_newer(self.harvest, standing.harvest)
    }

    fn add<T: Tx>(
        &self,
        tx: &mut T,
        claim: Claim<'_>,
        length: Option<u32>,
        sighting: Sighting<'_>,
    ) -> Action {
        let queue = tx.queue(self.collection.number, sighting.identity.host_key(), false);
        let origin = Origin {
            created: Moment::from_second(self.now.second()),
            how: sighting.link.how,
            source: self.source_entry,
            relevance: sighting.link.relevance.and_then(to_thousandths),
            metadata: sighting.link.metadata.as_deref().map(Into::into),
        };
        let mut record = Record::new(origin, length);
        let mut standing =
            fresh(queue, Some(self.seed_number), self.harvest, Moment::due(claim.due, self.now));
        standing.place = claim.place.min(DEEPEST);
        (standing.risk, standing.is_hub) = classify(self.catalog, sighting.url, self.source_risk);
        prioritise(self.catalog, self.order, &mut standing, &mut record, Some(sighting), self.now);
        tx.insert(NewEntry {
            identity: sighting.identity.as_str(),
            url: sighting.url.as_str(),
            standing,
            record,
        });
        Action::Added
    }

    /// An entry that an earlier harvest is through with is fetched again. Its history stays.
    fn revive<T: Tx>(
        &self,
        tx: &mut T,
        entry: EntryId,
        known: Standing,
        claim: Claim<'_>,
        length: Option<u32>,
        sighting: Sighting<'_>,
    ) -> Result<Action> {
        let (_, mut record) = tx.load(entry)?;
        (record.length, record.errors, record.abandoned) = (length, 0, 0);
        let mut standing = Standing {
            seed: Some(self.seed_number),
            place: claim.place.min(DEEPEST),
            due: Moment::due(claim.due, self.now),
            state: State::Queued,
            harvest: self.harvest,
            ..known
        };
        prioritise(self.catalog, self.order, &mut standing, &mut record, Some(sighting), self.now);
        tx.set_standing(entry, standing);
        tx.set_record(entry, record);
        Ok(Action::Added)
    }

    fn merge<T: Tx>(
        &self,
        tx: &mut T,
        entry: EntryId,
        known: Standing,
        claim: Claim<'_>,
        sighting: Sighting<'_>,
    ) -> Result<Action> {
        let mut standing = known;
        let seed = if claim.seed == self.seed {
            Some(self.seed_number)
        } else {
            self.catalog.seed_number(claim.seed).or(known.seed)
        };
        standing.seed = seed;
        standing.place = claim.place.min(DEEPEST);
        if known.state == State::Queued {
            standing.due = Moment::due(claim.due, self.now).min(known.due);
        }
        let is_hinted = self.note_date(tx, entry, &mut standing, sighting.link)?;
        if self.is_newer_harvest(&known) {
            standing.harvest = self.harvest;
        }
        let order = if seed == Some(self.seed_number) {
            self.order
        } else {
            self.catalog.order(&self.collection.spec.id, seed)
        };
        let is_other_order =
            seed != known.seed && order != self.catalog.order(&self.collection.spec.id, known.seed);
        let links_added = if is_other_order {
            let (_, mut record) = tx.load(entry)?;
            standing.priority = Priority::ZERO;
            prioritise(self.catalog, order, &mut standing, &mut record, Some(sighting), self.now);
            tx.set_record(entry, record);
            true
        } else {
            self.raise(tx, entry, order, &mut standing, sighting)? | is_hinted
        };
        if standing == known {
            return Ok(if links_added { Action::Improved } else { Action::Kept });
        }
        tx.set_standing(entry, standing);
        let only_harvest = Standing { harvest: known.harvest, ..standing } == known;
        Ok(if only_harvest && !links_added { Action::Kept } else { Action::Improved })
    }

    /// Notes that a sitemap says an entry has changed since its last fetch; where such words are to be trusted, it is due
    /// at once. Returns whether its record changed.
    fn note_date<T: Tx>(
        &self,
        tx: &mut T,
        entry: EntryId,
        standing: &mut Standing,
        link: &Link,
    ) -> Result<bool> {
        let is_news =
            |date: &Moment| standing.last_fetch.is_some_and(|last| *date > last) && *date <= self.now;
        let Some(date) = link.last_modified.filter(is_news) else { return Ok(false) };
        let (_, host) = tx.queue_parts(standing.queue);
        let is_trusted = tx.host(host).sitemap_dates.is_trusted();
        let (_, mut record) = tx.load(entry)?;
        if record.said_to_change.is_some_and(|said| said >= date) {
            return Ok(false);
        }
        record.said_to_change = Some(date);
        if is_trusted && standing.state == State::Queued && standing.due > self.now {
            standing.due = Moment::from_second(self.now.second());
            record.due_because = Some(format!("its sitemap says that it changed at {date}"));
        }
        tx.set_record(entry, record);
        Ok(true)
    }

    /// Raises the priority of an entry that was seen again. Returns whether its record changed too.
    fn raise<T: Tx>(
        &self,
        tx: &mut T,
        entry: EntryId,
        order: Order,
        standing: &mut Standing,
        sighting: Sighting<'_>,
    ) -> Result<bool> {
        match order {
            Order::Fifo | Order::Hierarchy => {
                standing.by_arrival = order.is_by_arrival();
                standing.priority = standing.priority.max(super::priority::by_hierarchy(sighting));
            }
            Order::Services => {
                let found = super::priority::by_service(self.catalog, sighting);
                standing.priority = standing.priority.max(found);
            }
            Order::Risk => {
                // Only a file on a critical page can become more urgent than it was.
                if self.source_risk == Risk::Critical && standing.risk < Risk::Critical {
                    let (risk, _) = classify(self.catalog, sighting.url, self.source_risk);
                    standing.risk = standing.risk.max(risk);
                    standing.priority = super::priority::by_risk(standing.risk);
                }
            }
            Order::Score => {
                if standing.place.depth != tx.standing(entry).map_or(0, |known| known.place.depth) {
                    let (_, mut record) = tx.load(entry)?;
                    prioritise(self.catalog, order, standing, &mut record, None, self.now);
                }
            }
            Order::Linked => {
                let (_, record) = tx.load(entry)?;
                let mut linked = record.clone();
                prioritise(self.catalog, order, standing, &mut linked, Some(sighting), self.now);
                if linked != record {
                    tx.set_record(entry, linked);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// The entry of a page on which something was found, as whoever says so writes it: the page by the other scheme is that
/// page too, unless there is one by its own.
fn find_source<T: Tx>(tx: &T, collection: &CollectionRow, identity: &Identity) -> Result<Option<EntryId>> {
    let Some(queue) = tx.find_queue(collection.number, identity.host_key()) else { return Ok(None) };
    match tx.find(queue, identity.as_str())? {
        None => tx.find(queue, &identity.by_other_scheme()),
        found => Ok(found),
    }
}

/// The entry of an identity, and its queue.
pub(super) fn find<T: Tx>(
    tx: &T,
    collection: &CollectionRow,
    identity: &Identity,
) -> Result<Option<(QueueId, EntryId)>> {
    find_by(tx, collection, identity.host_key(), identity.as_str())
}

pub(super) fn find_by<T: Tx>(
    tx: &T,
    collection: &CollectionRow,
    key: &str,
    identity: &str,
) -> Result<Option<(QueueId, EntryId)>> {
    let Some(queue) = tx.find_queue(collection.number, key) else { return Ok(None) };
    Ok(tx.find(queue, identity)?.map(|entry| (queue, entry)))
}

/// The standing of an entry that nothing is known of yet.
pub(super) fn fresh(queue: QueueId, seed: Option<SeedId>, harvest: u8, due: Moment) -> Standing {
    Standing {
        queue,
        seed,
        place: Place::default(),
        priority: Priority::ZERO,
        due,
        last_fetch: None,
        state: State::Queued,
        risk: Risk::Medium,
        is_hub: false,
        harvest,
        by_due: false,
        by_arrival: false,
        step: None,
    }
}

/// How urgent the changes of a page are, and whether it is a hub.
pub(super) fn classify(catalog: &Catalog, url: &FetchUrl, parent: Risk) -> (Risk, bool) {
    let class = catalog.classifier().classify(url, None).on_page_of(parent);
    (class.freshness_risk, class.node_type == NodeType::Hub)
}

/// Whether one harvest came after another. There are 256 numbers, so that of two the nearer way round counts.
pub(super) fn is_newer(harvest: u8, than: u8) -> bool {
    harvest != than && harvest.wrapping_sub(than) < 128
}

fn to_thousandths(share: f64) -> Option<u16> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
    (0.0..=1.0).contains(&share).then(|| (share * 1000.0).round() as u16)
}

/// The entry of a URL as people write it. In a plain collection its queue key may be any; where it is
/// not the derived one, every queue is asked.
pub(super) fn find_text<T: Tx>(
    tx: &T,
    collection: &CollectionRow,
    key: &str,
    identity: &str,
) -> Result<Option<(QueueId, EntryId)>> {
    let found = find_by(tx, collection, key, identity)?;
    if found.is_some() || collection.spec.kind == Kind::Planned {
        return Ok(found);
    }
    for queue in queues_of(tx, collection) {
        if let Some(entry) = tx.find(queue, identity)? {
            return Ok(Some((queue, entry)));
        }
    }
    Ok(None)
}

/// The queues of a collection, in the order of their numbers.
pub(super) fn queues_of<T: Tx>(tx: &T, collection: &CollectionRow) -> impl Iterator<Item = QueueId> {
    tx.queues().into_iter().filter(|queue| tx.queue_parts(*queue).0 == collection.number)
}

/// The text by which a URL is known in a collection, and its queue key; an error says why it is none.
pub(super) fn known_by(
    catalog: &Catalog,
    collection: &CollectionRow,
    url: &str,
) -> Result<(String, String), forager_core::url::UrlError> {
    if collection.spec.kind == Kind::Plain {
        return Ok((crate::verbs::derived_key(url).to_owned(), url.to_owned()));
    }
    let identity = catalog.scopes().identity(&collection.spec.id, &FetchUrl::parse_lenient(url)?);
    Ok((identity.host_key().to_owned(), identity.as_str().to_owned()))
}
