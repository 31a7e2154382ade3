//! Calls that remove: `DeleteCrawl`, `DeleteQueue` and `PurgeURLs`.

use forager_frontier::Moment;
use forager_frontier::verbs::Purge;
use tonic::Status;

use crate::limits::PAGE;
use crate::names;
use crate::proto::PurgeUrlParams;
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

/// `PurgeURLs`: removes what was created so many days ago, whatever has become of it; the queues stay.
pub(crate) async fn purge(shared: &Shared, params: PurgeUrlParams) -> Result<u64, Status> {
    let crawl = names::crawl(&params.crawl_id);
    let key = shared.queue_key(crawl, params.key).await?;
    let mut purge = Purge {
        collection: crawl.to_owned(),
        key: Some(key).filter(|key| !key.is_empty()),
        before: cut_off(Moment::of(shared.now()), params.days),
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

/// What was created before this goes. No days at all are all that there is, this second included.
fn cut_off(now: Moment, days: u32) -> Moment {
    match days {
        0 => now.after_millis(1000),
        days => Moment::from_millisecond(now.millisecond().saturating_sub(u64::from(days) * DAY_MILLIS)),
    }
}
