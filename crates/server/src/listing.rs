//! Calls that show URLs: `GetURLStatus`, `ListURLs` and `CountURLs`.

use std::sync::Arc;
use std::vec;

use forager_frontier::verbs::{EntryView, derived_key};
use futures_util::stream::{self, Stream};
use tonic::Status;

use crate::budget::Counted;
use crate::names;
use crate::pages::{Pages, item, size};
use crate::proto::{CountUrlParams, ListUrlParams, UrlItem, UrlStatusRequest};
use crate::shared::Shared;
use crate::stats;
use crate::status::quoted;

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
        let words = format!("{} has no host to take for its queue", quoted(&request.url));
        return Err(Status::invalid_argument(words));
    }
    // Where profiles decide, a URL may be written in other ways than it is kept.
    let is_derived = request.key.is_empty();
    let is_plain = shared.is_plain(crawl).await.map_err(|error| shared.status(&error))?;
    let key =
        if is_plain || !is_derived { Some(shared.queue_key(crawl, key.to_owned()).await?) } else { None };
    let found = shared.frontier.entry(crawl, key.as_deref(), &request.url, shared.now()).await;
    let entry = shared.or_none(found)?.flatten();
    entry.map(item).ok_or_else(|| Status::not_found(format!("{} is not known", quoted(&request.url))))
}

/// `ListURLs`: page after page, as fast as the client reads.
pub(crate) fn urls(
    shared: Arc<Shared>,
    params: ListUrlParams,
) -> impl Stream<Item = Result<UrlItem, Status>> + Send + 'static {
    let size = if params.size == 0 { SIZE } else { params.size };
    let listing = Listing {
        to_skip: usize::try_from(params.start).unwrap_or(usize::MAX),
        to_give: usize::try_from(size).unwrap_or(usize::MAX),
        pages: Pages::new(shared.clone(), &params.crawl_id, params.key, params.filter, params.ignore_case),
        shared,
        page: Vec::new().into_iter(),
        counted: None,
    };
    stream::try_unfold(listing, |mut listing| async move {
        Ok(listing.next().await?.map(|entry| (item(entry), listing)))
    })
}

/// A listing on its way to a client.
struct Listing {
    shared: Arc<Shared>,
    pages: Pages,
    to_skip: usize,
    to_give: usize,
    /// What is left of the last page. It becomes messages one by one, as they are read.
    page: vec::IntoIter<EntryView>,
    /// That page, among all that waits for readers.
    counted: Option<Counted>,
}

impl Listing {
    async fn next(&mut self) -> Result<Option<EntryView>, Status> {
        while self.to_give > 0 {
            match self.page.next() {
                Some(_) if self.to_skip > 0 => self.to_skip -= 1,
                Some(entry) => {
                    self.to_give -= 1;
                    return Ok(Some(entry));
                }
                None => {
                    self.counted = None;
                    let Some(page) = self.pages.next().await? else { return Ok(None) };
                    self.counted = Some(self.shared.unsent.add(page.iter().map(size).sum())?);
                    self.page = page.into_iter();
                }
            }
        }
        Ok(None)
    }
}

/// `CountURLs`. Where nothing is filtered, the counts are there already.
pub(crate) async fn count(shared: &Arc<Shared>, params: CountUrlParams) -> Result<u64, Status> {
    let crawl = names::crawl(&params.crawl_id);
    let has_filter = params.filter.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !has_filter && params.key.is_empty() {
        let stats = shared.or_none(shared.frontier.stats(Some(crawl), shared.now()).await)?;
        return Ok(stats
            .unwrap_or_default()
            .iter()
            .map(|of| of.queued + of.in_flight + of.done + of.failed)
            .sum());
    }
    if !has_filter {
        let queue = stats::queue(shared, crawl, &params.key).await?;
        return Ok(queue.map_or(0, |of| of.queued + of.leased + of.done));
    }
    let mut pages =
        Pages::new(shared.clone(), &params.crawl_id, params.key, params.filter, params.ignore_case);
    let mut count = 0;
    while let Some(page) = pages.next().await? {
        count += page.len() as u64;
    }
    Ok(count)
}
