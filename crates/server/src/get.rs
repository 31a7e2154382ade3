//! `GetURLs`: what may be fetched now.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec;

use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::entry::Token;
use forager_frontier::verbs::{LeaseRequest, Leased};
use futures_util::Stream;
use tokio::task::AbortHandle;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tonic::Status;

use crate::budget::Counted;
use crate::limits::{MAX_HANDED_OUT, MAX_HANDED_OUT_BYTES};
use crate::metadata;
use crate::names;
use crate::proto::get_params::Item;
use crate::proto::{GetParams, UrlInfo};
use crate::shared::Shared;

/// For how many seconds URLs are held of a client that does not say.
const HOLD: u32 = 30;

/// Hands out what may be fetched now. There is always an answer at once, if an empty one.
pub(crate) async fn urls(shared: &Arc<Shared>, params: &GetParams) -> Result<HandedOut, Status> {
    let begun = std::time::Instant::now();
    let leased = lease(shared, params).await?;
    shared.metrics.got(leased.len(), begun.elapsed());
    HandedOut::new(shared, leased)
}

async fn lease(shared: &Shared, params: &GetParams) -> Result<Vec<Leased>, Status> {
    let Some(mut request) = request(params) else { return Ok(Vec::new()) };
    if let (Some(crawl), Some(key)) = (&request.collection, request.host.take()) {
        request.host = Some(shared.queue_key(crawl, key).await?);
    }
    if shared.closing.is_cancelled() {
        return Ok(Vec::new());
    }
    let answer = shared.or_none(shared.frontier.lease(&request, shared.now()).await)?;
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
    })
}

fn unless_zero(most: u32) -> usize {
    if most == 0 { usize::MAX } else { usize::try_from(most).unwrap_or(usize::MAX) }
}

/// URLs on their way to a client. Those that it has not taken when it leaves are anybody's again; those whose time is
/// over are already, and are not kept for it.
pub(crate) struct HandedOut {
    waiting: Arc<Waiting>,
    /// Ends what waits when its time is over, however long the client takes nothing.
    timer: Option<AbortHandle>,
}

/// URLs that wait for a client.
struct Waiting {
    shared: Arc<Shared>,
    left: Mutex<Left>,
    /// Has the server wait, when it is stopped, until they are given back.
    _waited_for: TaskTrackerToken,
}

struct Left {
    leased: vec::IntoIter<Leased>,
    /// Them, among all that waits for readers.
    counted: Option<Counted>,
}

impl HandedOut {
    fn new(shared: &Arc<Shared>, leased: Vec<Leased>) -> Result<Self, Status> {
        let counted = shared.unsent.add(leased.iter().map(size).sum());
        let now = Moment::of(shared.now());
        let hold = leased.first().map(|first| first.until.millisecond().saturating_sub(now.millisecond()));
        let left = Mutex::new(Left { leased: leased.into_iter(), counted: None });
        let waiting = Arc::new(Waiting { shared: shared.clone(), left, _waited_for: shared.tasks.token() });
        waiting.left().counted = Some(counted?); // where it fails they are dropped, and so given back
        let timer = hold.map(|millis| waiting.clone().end_after(Duration::from_millis(millis)));
        Ok(Self { waiting, timer })
    }
}

impl Waiting {
    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has them end by themselves. Their leases end at the same time, so that nothing has to be given back.
    fn end_after(self: Arc<Self>, hold: Duration) -> AbortHandle {
        let waiting = Arc::downgrade(&self);
        let timer = async move {
            tokio::time::sleep(hold).await;
            if let Some(waiting) = waiting.upgrade() {
                *waiting.left() = Left { leased: Vec::new().into_iter(), counted: None };
            }
        };
        tokio::spawn(timer).abort_handle()
    }
}

/// Roughly how much memory it holds.
fn size(leased: &Leased) -> usize {
    size_of::<Leased>() + leased.url.len() + leased.metadata.as_ref().map_or(0, |text| text.len())
}

impl Stream for HandedOut {
    type Item = Result<UrlInfo, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let now = Moment::of(self.waiting.shared.now());
        let leased = &mut self.waiting.left().leased;
        let is_late = leased.as_slice().first().is_some_and(|next| next.until <= now);
        let next = if is_late { None } else { leased.next() };
        Poll::Ready(next.map(|leased| Ok(info(leased))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.waiting.left().leased.len()))
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let tokens: Vec<Token> = self.left().leased.as_slice().iter().map(|leased| leased.token).collect();
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

#[cfg(test)]
mod tests {
    use forager_frontier::catalog::{Change, CollectionSpec, Kind};
    use forager_frontier::verbs::{Item, Put};
    use forager_frontier::{Frontier as _, Memory, Settings};
    use jiff::Timestamp;

    use super::*;
    use crate::limits::MAX_UNSENT_BYTES;
    use crate::serve::Options;

    /// A queue with one URL that is due.
    async fn one_due() -> Arc<Shared> {
        let memory = Memory::new(Settings::default()).unwrap();
        let plain = Change::AddCollection(CollectionSpec::new("p", Kind::Plain));
        memory.configure(&[plain], Timestamp::now()).await.unwrap();
        let items = vec![Item { url: "http://a.example/".to_owned(), ..Item::default() }];
        memory.put(&[Put { collection: "p".to_owned(), items }], Timestamp::now()).await.unwrap();
        Arc::new(Shared::new(Arc::new(memory), Arc::new(Timestamp::now), Options::default()))
    }

    /// Whoever asks then is not refused, and holds nothing that it has no time to report.
    #[tokio::test]
    async fn nothing_is_handed_out_while_the_server_is_being_stopped() {
        for (is_closing, want) in [(false, 1), (true, 0)] {
            let shared = one_due().await;
            if is_closing {
                shared.closing.cancel();
            }
            let handed_out = urls(&shared, &GetParams::default()).await.unwrap();
            assert_eq!(handed_out.size_hint().1, Some(want));
        }
    }

    /// The transport asks for the next only when there is room for it, which may be never.
    #[tokio::test]
    async fn what_nobody_reads_is_not_kept_beyond_its_time() {
        let shared = one_due().await;
        let hold = Interval::from_secs_f64(0.3);
        let request = LeaseRequest { hold, ..LeaseRequest::default() };
        let leased = shared.frontier.lease(&request, shared.now()).await.unwrap().leased;
        let handed_out = HandedOut::new(&shared, leased).unwrap();
        let is_kept = || shared.unsent.add(MAX_UNSENT_BYTES).is_err();
        assert!(is_kept());
        let begun = std::time::Instant::now();
        while is_kept() {
            assert!(begun.elapsed().as_secs() < 10, "its time is over");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(handed_out.size_hint(), (0, Some(0)));
    }
}
