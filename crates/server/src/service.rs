//! Every call, and what answers it.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use tonic::{Request, Response, Status, Streaming};

use crate::exchange::Answers;
use crate::get::{self, HandedOut};
use crate::proto::url_frontier_server::UrlFrontier;
use crate::proto::{
    Active, BlockQueueParams, Boolean, CountUrlParams, CrawlLimitParams, DeleteCrawlMessage, DiscoveredBatch,
    Empty, GetParams, ListUrlParams, Local, LogLevelParams, Long, Pagination, PurgeUrlParams,
    QueueDelayParams, QueueList, QueueWithinCrawlParams, Stats, StringList, UrlItem, UrlStatusRequest,
};
use crate::put::{Batches, Items};
use crate::shared::Shared;
use crate::{control, listing, removal, stats};

/// The calls of URLFrontier on a queue of Forager.
pub(crate) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Counts a call, and has at hand what it asks.
    fn called<T>(&self, name: &'static str, request: Request<T>) -> (&Arc<Shared>, T) {
        self.shared.metrics.called(name);
        (&self.shared, request.into_inner())
    }
}

/// An answer of one message.
type Answer<T> = Result<Response<T>, Status>;

fn empty(done: Result<(), Status>) -> Answer<Empty> {
    done.map(|()| Response::new(Empty {}))
}

fn long(count: Result<u64, Status>) -> Answer<Long> {
    count.map(|value| Response::new(Long { value }))
}

#[tonic::async_trait]
impl UrlFrontier for Service {
    type GetURLsStream = HandedOut;
    type PutURLsStream = Answers<Items>;
    type PutDiscoveredStream = Answers<Batches>;
    type ListURLsStream = Pin<Box<dyn Stream<Item = Result<UrlItem, Status>> + Send>>;

    async fn list_nodes(&self, request: Request<Empty>) -> Answer<StringList> {
        let (shared, _) = self.called("ListNodes", request);
        Ok(Response::new(StringList { values: vec![shared.options.name.clone()] }))
    }

    async fn list_crawls(&self, request: Request<Local>) -> Answer<StringList> {
        let (shared, _) = self.called("ListCrawls", request);
        stats::crawls(shared).await.map(|values| Response::new(StringList { values }))
    }

    async fn delete_crawl(&self, request: Request<DeleteCrawlMessage>) -> Answer<Long> {
        let (shared, message) = self.called("DeleteCrawl", request);
        long(removal::remove(shared, &message.value, None).await)
    }

    async fn list_queues(&self, request: Request<Pagination>) -> Answer<QueueList> {
        let (shared, params) = self.called("ListQueues", request);
        stats::queues(shared, params).await.map(Response::new)
    }

    async fn get_ur_ls(&self, request: Request<GetParams>) -> Answer<Self::GetURLsStream> {
        let (shared, params) = self.called("GetURLs", request);
        get::urls(shared, &params).await.map(Response::new)
    }

    async fn put_ur_ls(&self, request: Request<Streaming<UrlItem>>) -> Answer<Self::PutURLsStream> {
        let (shared, inbound) = self.called("PutURLs", request);
        Ok(Response::new(Answers::new(shared.clone(), inbound, shared.options.items_in_flight)))
    }

    async fn put_discovered(
        &self,
        request: Request<Streaming<DiscoveredBatch>>,
    ) -> Answer<Self::PutDiscoveredStream> {
        let (shared, inbound) = self.called("PutDiscovered", request);
        Ok(Response::new(Answers::new(shared.clone(), inbound, shared.options.batches_in_flight)))
    }

    async fn get_stats(&self, request: Request<QueueWithinCrawlParams>) -> Answer<Stats> {
        let (shared, params) = self.called("GetStats", request);
        stats::stats(shared, params).await.map(Response::new)
    }

    async fn delete_queue(&self, request: Request<QueueWithinCrawlParams>) -> Answer<Long> {
        let (shared, params) = self.called("DeleteQueue", request);
        long(removal::remove(shared, &params.crawl_id, Some(&params.key)).await)
    }

    async fn block_queue_until(&self, request: Request<BlockQueueParams>) -> Answer<Empty> {
        let (shared, params) = self.called("BlockQueueUntil", request);
        empty(control::block(shared, params).await)
    }

    async fn set_active(&self, request: Request<Active>) -> Answer<Empty> {
        let (shared, active) = self.called("SetActive", request);
        empty(control::set_active(shared, active).await)
    }

    async fn get_active(&self, request: Request<Local>) -> Answer<Boolean> {
        let (shared, _) = self.called("GetActive", request);
        Ok(Response::new(Boolean { state: control::is_active(shared).await? }))
    }

    async fn set_delay(&self, request: Request<QueueDelayParams>) -> Answer<Empty> {
        let (shared, params) = self.called("SetDelay", request);
        empty(control::set_delay(shared, params).await)
    }

    async fn set_log_level(&self, request: Request<LogLevelParams>) -> Answer<Empty> {
        self.called("SetLogLevel", request);
        empty(Ok(()))
    }

    async fn set_crawl_limit(&self, request: Request<CrawlLimitParams>) -> Answer<Empty> {
        let (shared, params) = self.called("SetCrawlLimit", request);
        empty(control::set_limit(shared, params).await)
    }

    async fn get_url_status(&self, request: Request<UrlStatusRequest>) -> Answer<UrlItem> {
        let (shared, request) = self.called("GetURLStatus", request);
        listing::status(shared, request).await.map(Response::new)
    }

    async fn list_ur_ls(&self, request: Request<ListUrlParams>) -> Answer<Self::ListURLsStream> {
        let (shared, params) = self.called("ListURLs", request);
        Ok(Response::new(Box::pin(listing::urls(shared.clone(), params))))
    }

    async fn count_ur_ls(&self, request: Request<CountUrlParams>) -> Answer<Long> {
        let (shared, params) = self.called("CountURLs", request);
        long(listing::count(shared, params).await)
    }

    async fn purge_ur_ls(&self, request: Request<PurgeUrlParams>) -> Answer<Long> {
        let (shared, params) = self.called("PurgeURLs", request);
        long(removal::purge(shared, params).await)
    }
}
