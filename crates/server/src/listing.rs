//! Calls that show URLs: `GetURLStatus`, `ListURLs` and `CountURLs`.

use std::sync::Arc;

use forager_frontier::verbs::derived_key;
use futures_util::stream::{self, Stream, StreamExt as _};
use tonic::Status;

use crate::names;
use crate::pages::{Pages, item};
use crate::proto::{CountUrlParams, ListUrlParams, UrlItem, UrlStatusRequest};
use crate::shared::Shared;
use crate::{stats, status};

/// How many URLs are listed for a client that does not say.
const SIZE: u32 = 100;

/// `GetURLStatus`
pub(crate) async fn status(shared: &Shared, request: UrlStatusRequest) -> Result<UrlItem, Status> {
    let crawl = names::crawl(&request.crawl_id);
    let key = match request.key.as_str() {
        "" => derived_key(&request.url),
        key => key,
    };
    if key.is_empty() {
        return Err(Status::invalid_argument(format!("{:?} has no host to take for its queue", request.url)));
    }
    let found = shared.frontier.entry(crawl, Some(key), &request.url, shared.now()).await;
    let entry = status::or_none(found)?.flatten();
    entry.map(item).ok_or_else(|| Status::not_found(format!("{:?} is not known", request.url)))
}

/// `ListURLs`: page after page, as fast as the client reads.
pub(crate) fn urls(
    shared: Arc<Shared>,
    params: ListUrlParams,
) -> impl Stream<Item = Result<UrlItem, Status>> + Send + 'static {
    let size = if params.size == 0 { SIZE } else { params.size };
    let to_skip = usize::try_from(params.start).unwrap_or(usize::MAX);
    let to_give = usize::try_from(size).unwrap_or(usize::MAX);
    let pages = Pages::new(shared, &params.crawl_id, params.key, params.filter, params.ignore_case);
    stream::unfold((pages, to_skip, to_give), |(mut pages, mut to_skip, mut to_give)| async move {
        if to_give == 0 {
            return None;
        }
        let page = match pages.next().await {
            Ok(page) => page?,
            Err(status) => return Some((vec![Err(status)], (pages, 0, 0))),
        };
        let skipped = page.len().min(to_skip);
        let items: Vec<_> =
            page.into_iter().skip(skipped).take(to_give).map(|entry| Ok(item(entry))).collect();
        to_skip -= skipped;
        to_give -= items.len();
        Some((items, (pages, to_skip, to_give)))
    })
    .flat_map(stream::iter)
}

/// `CountURLs`. Where nothing is filtered, the counts are there already.
pub(crate) async fn count(shared: &Arc<Shared>, params: CountUrlParams) -> Result<u64, Status> {
    let crawl = names::crawl(&params.crawl_id);
    let has_filter = params.filter.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !has_filter && params.key.is_empty() {
        let stats = status::or_none(shared.frontier.stats(Some(crawl), shared.now()).await)?;
        return Ok(stats
            .unwrap_or_default()
            .iter()
            .map(|of| of.queued + of.in_flight + of.done + of.failed)
            .sum());
    }
    if !has_filter && shared.is_plain(crawl).await.map_err(|error| status::of(&error))? {
        let queue = stats::queue(shared, crawl, &params.key).await?;
        return Ok(queue.map_or(0, |of| of.queued + u64::from(of.in_flight) + of.done));
    }
    let mut pages =
        Pages::new(shared.clone(), &params.crawl_id, params.key, params.filter, params.ignore_case);
    let mut count = 0;
    while let Some(page) = pages.next().await? {
        count += page.len() as u64;
    }
    Ok(count)
}
