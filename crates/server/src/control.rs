//! Calls that steer what is handed out.

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::catalog::Change;
use forager_frontier::host::Setting;
use forager_frontier::verbs::{HostChange, HostView};
use tonic::Status;

use crate::names;
use crate::proto::{Active, BlockQueueParams, CrawlLimitParams, QueueDelayParams};
use crate::put;
use crate::shared::Shared;
use crate::status::quoted;

/// `SetActive`
pub(crate) async fn set_active(shared: &Shared, active: Active) -> Result<(), Status> {
    configure(shared, Change::SetActive(active.state)).await
}

/// `GetActive`
pub(crate) async fn is_active(shared: &Shared) -> Result<bool, Status> {
    let catalog = shared.frontier.catalog().await.map_err(|error| shared.status(&error))?;
    Ok(catalog.rows().overall.is_active)
}

/// `SetDelay`. Without a key it holds for all queues that have no delay of their own.
pub(crate) async fn set_delay(shared: &Shared, params: QueueDelayParams) -> Result<(), Status> {
    let delay = Interval::from_secs_f64(f64::from(params.delay_requestable));
    if params.key.is_empty() {
        return configure(shared, Change::SetPlainDelay(delay)).await;
    }
    set(shared, params.key, &params.crawl_id, Setting::Delay(Some(delay))).await.map(drop)
}

/// `BlockQueueUntil`. The second that is named is the last one.
pub(crate) async fn block(shared: &Shared, params: BlockQueueParams) -> Result<(), Status> {
    let until = put::moment(params.time.saturating_add(1));
    let until = Some(until).filter(|until| *until > Moment::of(shared.now()));
    set(shared, params.key, &params.crawl_id, Setting::BlockedUntil(until)).await.map(drop)
}

/// `SetCrawlLimit`. The one call that complains of a queue that is not there.
pub(crate) async fn set_limit(shared: &Shared, params: CrawlLimitParams) -> Result<(), Status> {
    let limit = Some(u64::from(params.limit)).filter(|limit| *limit > 0);
    let complaint = format!("there is no queue {}", quoted(&params.key));
    let set = set(shared, params.key, &params.crawl_id, Setting::FetchLimit(limit)).await?;
    set.map(drop).ok_or_else(|| Status::unknown(complaint))
}

/// Sets something for a queue that the crawl has; none if it has none of that key, whoever else may.
async fn set(
    shared: &Shared,
    key: String,
    crawl: &str,
    setting: Setting,
) -> Result<Option<HostView>, Status> {
    let collection = names::crawl(crawl);
    let change = HostChange {
        key: shared.queue_key(collection, key).await?,
        collection: Some(collection.to_owned()),
        sets: vec![setting],
        only_known: true,
    };
    let answer = shared.or_none(shared.frontier.set_hosts(&[change], shared.now()).await)?;
    Ok(answer.and_then(|mut views| views.pop()).flatten())
}

/// Sets something for all queues. The queue keeps it, so that it holds for whoever hands out, and outlives the process.
async fn configure(shared: &Shared, change: Change) -> Result<(), Status> {
    shared.frontier.configure(&[change], shared.now()).await.map_err(|error| shared.status(&error))
}
