//! `GetURLs`: what may be fetched now.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::vec;

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::entry::Token;
use forager_frontier::verbs::{LeaseRequest, Leased};
use futures_util::Stream;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::Status;

use crate::control;
use crate::limits::{MAX_HANDED_OUT, MAX_HANDED_OUT_BYTES, MAX_UNSENT_BYTES};
use crate::metadata;
use crate::names;
use crate::proto::get_params::Item;
use crate::proto::{GetParams, UrlInfo};
use crate::shared::Shared;
use crate::status;

/// For how many seconds URLs are held of a client that does not say.
const HOLD: u32 = 30;

/// Hands out what may be fetched now. There is always an answer at once, if an empty one.
pub(crate) async fn urls(shared: &Arc<Shared>, params: &GetParams) -> Result<HandedOut, Status> {
    let begun = std::time::Instant::now();
    let leased = lease(shared, params).await?;
    shared.metrics.got(leased.len(), begun.elapsed());
    HandedOut::new(shared.clone(), leased)
}

async fn lease(shared: &Shared, params: &GetParams) -> Result<Vec<Leased>, Status> {
    let Some(mut request) = request(params) else { return Ok(Vec::new()) };
    if shared.closing.is_cancelled() {
        return Ok(Vec::new());
    }
    let settings = control::settings(shared).await?;
    if !settings.is_active {
        return Ok(Vec::new());
    }
    request.plain_delay = settings.delay;
    let answer = status::or_none(shared.frontier.lease(&request, shared.now()).await)?;
    Ok(answer.map_or_else(Vec::new, |answer| answer.leased))
}

/// What the queue is asked; none for a queue of no crawl, of which there is nothing.
fn request(params: &GetParams) -> Option<LeaseRequest> {
    let collection = match &params.item {
        Some(Item::CrawlId(crawl)) => Some(names::crawl(crawl).to_owned()),
        Some(Item::AnyCrawlId(_)) | None => None,
    };
    let host = Some(&params.key).filter(|key| !key.is_empty()).cloned();
    if host.is_some() && collection.is_none() {
        return None;
    }
    let (per_host, hosts) = (unless_zero(params.max_urls_per_queue), unless_zero(params.max_queues));
    let seconds = if params.delay_requestable == 0 { HOLD } else { params.delay_requestable };
    Some(LeaseRequest {
        max: per_host.saturating_mul(hosts).min(MAX_HANDED_OUT),
        per_host,
        hosts,
        busy_at: per_host,
        bytes: MAX_HANDED_OUT_BYTES,
        collection,
        host,
        hold: Interval::from_secs_f64(f64::from(seconds)),
        ..LeaseRequest::default()
    })
}

fn unless_zero(most: u32) -> usize {
    if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) }
}

/// URLs on their way to a client. Those that it has not taken when it leaves, or whose time is over, are anybody's
/// again.
pub(crate) struct HandedOut {
    shared: Arc<Shared>,
    left: vec::IntoIter<Leased>,
    /// What they count of all that waits for readers.
    bytes: usize,
    /// Has the server wait, when it is stopped, until they are given back.
    _waited_for: TaskTrackerToken,
}

impl HandedOut {
    fn new(shared: Arc<Shared>, leased: Vec<Leased>) -> Result<Self, Status> {
        let bytes = leased.iter().map(size).sum();
        let waited_for = shared.tasks.token();
        let handed_out = Self { shared, left: leased.into_iter(), bytes, _waited_for: waited_for };
        let before = handed_out.shared.unsent.fetch_add(bytes, Ordering::Relaxed);
        if bytes > 0 && before + bytes > MAX_UNSENT_BYTES {
            let words = "too much waits for other readers; ask again when they have read it, or ask for less";
            return Err(Status::resource_exhausted(words)); // dropped, and so given back
        }
        Ok(handed_out)
    }
}

/// Roughly how much memory it holds.
fn size(leased: &Leased) -> usize {
    size_of::<Leased>() + leased.url.len() + leased.metadata.as_ref().map_or(0, |text| text.len())
}

impl Stream for HandedOut {
    type Item = Result<UrlInfo, Status>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let is_late =
            self.left.as_slice().first().is_some_and(|next| next.until <= Moment::of(self.shared.now()));
        if is_late {
            return Poll::Ready(None);
        }
        Poll::Ready(self.left.next().map(|leased| Ok(info(leased))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left.len()))
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        self.shared.unsent.fetch_sub(self.bytes, Ordering::Relaxed);
        let tokens: Vec<Token> = self.left.as_slice().iter().map(|leased| leased.token).collect();
        if tokens.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        self.shared.tasks.spawn(async move {
            // Where it fails, they are free when their time is over.
            if let Err(error) = shared.frontier.release(&tokens, shared.now()).await {
                shared.failed(&error);
            }
        });
    }
}

fn info(leased: Leased) -> UrlInfo {
    let metadata = leased.metadata.as_deref().map(metadata::to_map).unwrap_or_default();
    UrlInfo { url: leased.url, key: leased.host, crawl_id: leased.collection, metadata }
}
