//! Calls that count and name: crawls, queues, and how much there is in them.

use std::collections::BTreeMap;

use forager_frontier::verbs::{HostFilter, HostView};
use tonic::Status;

use crate::limits::{MAX_QUEUES_LISTED, MAX_QUEUES_LISTED_BYTES};
use crate::names;
use crate::proto::{Pagination, QueueList, QueueWithinCrawlParams, Stats};
use crate::shared::Shared;

/// How many queues are listed of a client that does not say.
const PAGE: u32 = 100;

/// `ListCrawls`: those that have a queue.
pub(crate) async fn crawls(shared: &Shared) -> Result<Vec<String>, Status> {
    let stats = shared.frontier.stats(None, shared.now()).await.map_err(|error| shared.status(&error))?;
    Ok(stats.into_iter().filter(|stats| stats.hosts > 0).map(|stats| stats.collection).collect())
}

/// `ListQueues`
pub(crate) async fn queues(shared: &Shared, params: Pagination) -> Result<QueueList, Status> {
    let crawl = names::crawl(&params.crawl_id).to_owned();
    let size = if params.size == 0 { PAGE } else { params.size };
    let filter = HostFilter {
        collection: Some(crawl.clone()),
        is_active: !params.include_inactive,
        skip: usize::try_from(params.start).unwrap_or(usize::MAX),
        limit: usize::try_from(size).unwrap_or(usize::MAX).min(MAX_QUEUES_LISTED),
        ..HostFilter::default()
    };
    let hosts = shared.or_none(shared.frontier.hosts(&filter, shared.now()).await)?.unwrap_or_default();
    let found = hosts.len();
    let mut values: Vec<String> = hosts.into_iter().map(|host| host.host).collect();
    values.truncate(fitting(&values));
    // Where all that was asked for is there, nothing is said of the rest, as with other servers.
    let total = if values.len() < found { u64::from(params.start) + found as u64 } else { 0 };
    let size = u32::try_from(values.len()).unwrap_or(u32::MAX);
    Ok(QueueList { values, total, start: params.start, size, crawl_id: crawl })
}

/// How many names fit into an answer.
fn fitting(names: &[String]) -> usize {
    /// What stands before a name, with a length of two bytes at most.
    const PREFIX: usize = 3;
    let mut left = MAX_QUEUES_LISTED_BYTES;
    let fits = |name: &&String| match left.checked_sub(PREFIX + name.len()) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    };
    names.iter().take_while(fits).count()
}

/// `GetStats`: of one queue, or of a crawl. What is not there has nothing.
pub(crate) async fn stats(shared: &Shared, params: QueueWithinCrawlParams) -> Result<Stats, Status> {
    let crawl = names::crawl(&params.crawl_id);
    let counted = match params.key.as_str() {
        "" => of_crawl(shared, crawl).await?,
        key => queue(shared, crawl, key).await?.as_ref().map(of_queue),
    };
    Ok(Stats { crawl_id: crawl.to_owned(), ..counted.unwrap_or_else(of_nothing) })
}

/// One queue; none if it is not there.
pub(crate) async fn queue(shared: &Shared, crawl: &str, key: &str) -> Result<Option<HostView>, Status> {
    let key = shared.queue_key(crawl, key.to_owned()).await?;
    let (collection, key) = (Some(crawl.to_owned()), Some(key));
    let filter = HostFilter { collection, key, limit: 1, ..HostFilter::default() };
    let hosts = shared.or_none(shared.frontier.hosts(&filter, shared.now()).await)?;
    Ok(hosts.and_then(|mut hosts| hosts.pop()))
}

async fn of_crawl(shared: &Shared, crawl: &str) -> Result<Option<Stats>, Status> {
    let stats = shared.or_none(shared.frontier.stats(Some(crawl), shared.now()).await)?;
    let stats = stats.and_then(|mut stats| stats.pop());
    Ok(stats.map(|of| Stats {
        size: of.queued + of.in_flight,
        in_process: u32::try_from(of.in_flight).unwrap_or(u32::MAX),
        counts: counts(of.done + of.failed, of.active_hosts),
        number_of_queues: of.hosts,
        crawl_id: String::new(),
    }))
}

fn of_queue(of: &HostView) -> Stats {
    // Others may have something under way at the same host.
    let size = of.queued + of.leased;
    Stats {
        size,
        in_process: u32::try_from(of.leased).unwrap_or(u32::MAX),
        counts: counts(of.done, u64::from(size > 0)),
        number_of_queues: 1,
        crawl_id: String::new(),
    }
}

fn of_nothing() -> Stats {
    Stats { counts: counts(0, 0), ..Stats::default() }
}

fn counts(completed: u64, active_queues: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("completed".to_owned(), completed), ("active_queues".to_owned(), active_queues)])
}
