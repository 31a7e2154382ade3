//! Calls that remove: `DeleteCrawl`, `DeleteQueue` and `PurgeURLs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use forager_frontier::Moment;
use forager_frontier::entry::EntryId;
use forager_frontier::verbs::Purge;
use tonic::Status;

use crate::limits::PAGE;
use crate::listing;
use crate::names;
use crate::pages::Pages;
use crate::proto::{CountUrlParams, PurgeUrlParams};
use crate::shared::Shared;

const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// Removes a crawl, or one of its queues, with all that is known of it; says how many URLs that were.
pub(crate) async fn remove(shared: &Shared, crawl: &str, key: Option<&str>) -> Result<u64, Status> {
    let crawl = names::crawl(crawl);
    let key = match key {
        Some(key) => Some(shared.queue_key(crawl, key.to_owned()).await?),
        None => None,
    };
    let removed = shared.frontier.remove(crawl, key.as_deref(), shared.now()).await;
    if key.is_none() {
        shared.forget(crawl);
    }
    Ok(shared.or_none(removed)?.unwrap_or_default())
}

/// `PurgeURLs`: removes what was created so many days ago, whatever has become of it; the queues stay. No days at all are
/// all that there is, this second included.
pub(crate) async fn purge(shared: &Arc<Shared>, params: PurgeUrlParams) -> Result<u64, Status> {
    let crawl = names::crawl(&params.crawl_id);
    let key = shared.queue_key(crawl, params.key).await?;
    let before = cut_off(Moment::of(shared.now()), params.days);
    let also = if params.days == 0 { as_young(shared, crawl, &key, before).await? } else { BTreeSet::new() };
    let mut purge = Purge {
        collection: crawl.to_owned(),
        key: Some(key).filter(|key| !key.is_empty()),
        before,
        also,
        after: None,
        limit: PAGE,
    };
    let mut removed = 0;
    loop {
        let answer = shared.frontier.purge(&purge, shared.now()).await;
        let Some(purged) = shared.or_none(answer)? else { return Ok(removed) };
        removed += purged.removed;
        match purged.next {
            Some(next) => purge.after = Some(next),
            None => return Ok(removed),
        }
    }
}

/// What was created before this goes.
fn cut_off(now: Moment, days: u32) -> Moment {
    match days {
        0 => Moment::from_second(now.second()),
        days => Moment::from_millisecond(now.millisecond().saturating_sub(u64::from(days) * DAY_MILLIS)),
    }
}

/// What is there already, and no older than this. What a purge takes away and a client puts again is created in the same
/// second as these, and only its number tells it apart; so they are written down before the first one goes. What is put
/// meanwhile has no place among as many as there are now.
async fn as_young(
    shared: &Arc<Shared>,
    crawl: &str,
    key: &str,
    before: Moment,
) -> Result<BTreeSet<EntryId>, Status> {
    let (key, crawl_id) = (key.to_owned(), crawl.to_owned());
    let all = CountUrlParams { key: key.clone(), crawl_id, ..CountUrlParams::default() };
    let mut left = usize::try_from(listing::count(shared, all).await?).unwrap_or(usize::MAX);
    let mut pages = Pages::new(shared.clone(), crawl, key, None, None);
    let mut young = BTreeSet::new();
    while let Some(page) = pages.next().await?.filter(|_| left > 0) {
        let seen = page.iter().take(left);
        young.extend(seen.filter(|entry| entry.record.origin.created >= before).map(|entry| entry.id));
        left = left.saturating_sub(page.len());
    }
    Ok(young)
}
