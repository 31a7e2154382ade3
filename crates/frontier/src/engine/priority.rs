//! What an entry is worth in the order of its profile.

use std::borrow::Cow;

use forager_core::hierarchy::{self, Found, Mode, Priority};
use forager_core::order::Order;
use forager_core::score::{Relevance, UrlSignals, next_change, score};
use forager_core::sentinel::Risk;
use forager_core::url::{FetchUrl, Identity};
use sha2::{Digest as _, Sha256};

use crate::catalog::Catalog;
use crate::entry::{How, Record, SeedId, Standing};
use crate::moment::Moment;
use crate::verbs::Link;

/// The page that a link was found on, as far as its links inherit from it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) identity: Identity,
    /// Its priority; none if it is no entry.
    pub(super) priority: Option<Priority>,
}

/// A sighting of a URL.
#[derive(Clone, Copy)]
pub(super) struct Sighting<'a> {
    pub(super) url: &'a FetchUrl,
    pub(super) identity: &'a Identity,
    pub(super) link: &'a Link,
    pub(super) source: Option<&'a Source>,
}

/// The priority by how a page was found.
pub(super) fn by_hierarchy(sighting: Sighting<'_>) -> Priority {
    let found = match sighting.link.how {
        // What lists pages goes before them: it is worth what they are.
        How::Sitemap | How::Listing => Found::Sitemap,
        How::Link | How::Redirect => {
            let on_domain = |source: &&Source| source.identity.domain() == sighting.identity.domain();
            let source = sighting.source.filter(on_domain);
            Found::Link {
                source: source.and_then(|source| source.priority),
                in_homepage_header: sighting.link.in_header
                    && source.is_some_and(|source| source.identity.is_homepage()),
            }
        }
        How::Seed | How::Other => Found::Otherwise,
    };
    hierarchy::priority(sighting.identity.is_homepage(), found)
}

/// The priority of a risk: the more urgent, the higher.
pub(super) fn by_risk(risk: Risk) -> Priority {
    thousandths(match risk {
        Risk::Low => 250,
        Risk::Medium => 500,
        Risk::High => 750,
        Risk::Critical => 1000,
    })
}

/// The priority by how well a page describes a service.
pub(super) fn by_service(catalog: &Catalog, sighting: Sighting<'_>) -> Priority {
    let score = catalog.selector().score(sighting.url, &sighting.link.text, &sighting.link.title);
    thousandths(u16::try_from(score.saturating_mul(10)).unwrap_or(u16::MAX))
}

/// Gives an entry the priority that its order asks for, once more whenever something it depends on
/// has changed. What rediscovery gave it is only ever raised.
pub(super) fn prioritise(
    catalog: &Catalog,
    order: Order,
    standing: &mut Standing,
    record: &mut Record,
    sighting: Option<Sighting<'_>>,
    now: Moment,
) {
    standing.by_due = order.ties_by_due();
    standing.by_arrival = order.is_by_arrival();
    standing.step = None;
    match order {
        Order::Risk => standing.priority = by_risk(standing.risk),
        Order::Score => {
            let signals = signals(standing, record);
            let scored = score(&signals, now.timestamp());
            standing.priority = thousandths(u16::from(scored.score) * 10);
            standing.step = next_change(&signals, now.timestamp()).map(|step| Moment::due(step, now));
        }
        Order::Fifo | Order::Hierarchy => {
            let found = sighting.map_or(Priority::ZERO, by_hierarchy);
            standing.priority = standing.priority.max(found);
        }
        Order::Services => {
            let found = sighting.map_or(Priority::ZERO, |sighting| by_service(catalog, sighting));
            standing.priority = standing.priority.max(found);
        }
        Order::Linked => standing.priority = linked(record, sighting),
    }
}

/// Gives an entry the order of its new owner, where that differs from the old one's.
pub(super) fn adopt(
    catalog: &Catalog,
    collection: &str,
    before: Option<SeedId>,
    standing: &mut Standing,
    record: &mut Record,
    now: Moment,
) {
    let (old, new) = (catalog.order(collection, before), catalog.order(collection, standing.seed));
    if before != standing.seed && old != new {
        prioritise(catalog, new, standing, record, None, now);
    }
}

/// The most pages whose links are told apart: more would not raise a page any further.
const MOST_LINKS: usize = 1000;

/// The priority by the best link, and a little for each further page that links.
fn linked(record: &mut Record, sighting: Option<Sighting<'_>>) -> Priority {
    let mut best = record.best_link.and_then(Priority::from_thousandths).unwrap_or(Priority::ZERO);
    if let Some(sighting) = sighting {
        best = best.max(by_hierarchy(sighting));
        record.best_link = Some(best.thousandths());
        if let Some(source) = sighting.source.filter(|_| sighting.link.how == How::Link) {
            let page = link_hash(&source.identity);
            if record.linked_from.len() < MOST_LINKS && !record.linked_from.contains(&page) {
                record.linked_from.push(page);
            }
        }
    }
    hierarchy::effective(Mode::Linked, best, record.linked_from.len())
}

/// Whether another sighting may raise the priority of an entry, so that its record has to be read.
pub(super) fn counts_links(order: Order) -> bool {
    order == Order::Linked
}

/// By what pages that link are told apart: four bytes are enough for a thousand. A hash that SQL knows too, for links
/// can be added there.
fn link_hash(page: &Identity) -> u32 {
    let mut first = [0; 4];
    first.copy_from_slice(&Sha256::digest(page.without_scheme())[..4]);
    u32::from_be_bytes(first)
}

/// What the news score is made of.
pub(super) fn signals(standing: &Standing, record: &Record) -> UrlSignals<'static> {
    let relevance = record.origin.relevance.map(|relevance| f64::from(relevance) / 1000.0);
    UrlSignals {
        url: Cow::Borrowed(""),
        visits: record.scans,
        last_visited: standing.last_fetch.map(Moment::timestamp),
        last_changed: record.last_changed.map(Moment::timestamp),
        topic_relevance: relevance.and_then(Relevance::new).unwrap_or_default(),
        hub_depth: u64::from(standing.place.depth),
        is_hub: standing.is_hub,
    }
}

/// A priority of so many thousandths, at most the highest.
pub(super) fn thousandths(thousandths: u16) -> Priority {
    Priority::from_thousandths(thousandths).unwrap_or(Priority::MAX)
}
