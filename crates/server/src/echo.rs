//! A server that acknowledges without keeping anything: the limit of the wire, for benchmarks.

use std::future::Future;
use std::pin::Pin;

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::connections::{self, Door};
use crate::limits::MAX_CONNECTIONS;
use crate::metrics;
use crate::proto::ack_message;
use crate::proto::url_frontier_server::UrlFrontier;
use crate::proto::url_item::Item;
use crate::proto::{
    AckMessage, Active, BatchAck, BlockQueueParams, Boolean, CountUrlParams, CrawlLimitParams,
    DeleteCrawlMessage, DiscoveredBatch, Empty, GetParams, ListUrlParams, Local, LogLevelParams, Long,
    Pagination, PurgeUrlParams, QueueDelayParams, QueueList, QueueWithinCrawlParams, Stats, StringList,
    UrlInfo, UrlItem, UrlStatusRequest,
};
use crate::serve::{Error, bounded, ended, transport};

/// Acknowledges whatever it is sent, until it is told to stop.
pub async fn echo(listener: TcpListener, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let closing = CancellationToken::new();
    let metrics = std::sync::Arc::new(metrics::Metrics::default());
    let door = Door::new(listener, MAX_CONNECTIONS);
    let connections = connections::accept(door, None, metrics, CancellationToken::new());
    let router = transport().add_service(bounded(Echo));
    let serving = router.serve_with_incoming_shutdown(connections, closing.clone().cancelled_owned());
    ended(serving, stop, || closing.cancel()).await
}

struct Echo;

type Answer<T> = Result<Response<T>, Status>;
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

const OK: i32 = ack_message::Status::Ok as i32;

fn item(message: UrlItem) -> AckMessage {
    let url = || match message.item {
        Some(Item::Discovered(item)) => item.info.unwrap_or_default().url,
        Some(Item::Known(item)) => item.info.unwrap_or_default().url,
        None => String::new(),
    };
    AckMessage { id: if message.id.is_empty() { url() } else { message.id }, status: OK }
}

fn batch(message: DiscoveredBatch) -> BatchAck {
    BatchAck { statuses: vec![OK; message.items.len()], id: message.id }
}

/// The answer to a call that a benchmark does not need.
fn not_here<T>() -> Result<T, Status> {
    Err(Status::unimplemented("this server only acknowledges"))
}

#[tonic::async_trait]
impl UrlFrontier for Echo {
    type GetURLsStream = stream::Empty<Result<UrlInfo, Status>>;
    type PutURLsStream = Answers<AckMessage>;
    type PutDiscoveredStream = Answers<BatchAck>;
    type ListURLsStream = stream::Empty<Result<UrlItem, Status>>;

    async fn put_ur_ls(&self, request: Request<Streaming<UrlItem>>) -> Answer<Self::PutURLsStream> {
        let acks = request.into_inner().map(|message| message.map(item));
        Ok(Response::new(Box::pin(acks)))
    }

    async fn put_discovered(
        &self,
        request: Request<Streaming<DiscoveredBatch>>,
    ) -> Answer<Self::PutDiscoveredStream> {
        let acks = request.into_inner().map(|message| message.map(batch));
        Ok(Response::new(Box::pin(acks)))
    }

    async fn get_ur_ls(&self, _: Request<GetParams>) -> Answer<Self::GetURLsStream> {
        Ok(Response::new(stream::empty()))
    }

    async fn list_ur_ls(&self, _: Request<ListUrlParams>) -> Answer<Self::ListURLsStream> {
        Ok(Response::new(stream::empty()))
    }

    async fn list_nodes(&self, _: Request<Empty>) -> Answer<StringList> {
        not_here()
    }

    async fn list_crawls(&self, _: Request<Local>) -> Answer<StringList> {
        not_here()
    }

    async fn delete_crawl(&self, _: Request<DeleteCrawlMessage>) -> Answer<Long> {
        not_here()
    }

    async fn list_queues(&self, _: Request<Pagination>) -> Answer<QueueList> {
        not_here()
    }

    async fn get_stats(&self, _: Request<QueueWithinCrawlParams>) -> Answer<Stats> {
        not_here()
    }

    async fn delete_queue(&self, _: Request<QueueWithinCrawlParams>) -> Answer<Long> {
        not_here()
    }

    async fn block_queue_until(&self, _: Request<BlockQueueParams>) -> Answer<Empty> {
        not_here()
    }

    async fn set_active(&self, _: Request<Active>) -> Answer<Empty> {
        not_here()
    }

    async fn get_active(&self, _: Request<Local>) -> Answer<Boolean> {
        not_here()
    }

    async fn set_delay(&self, _: Request<QueueDelayParams>) -> Answer<Empty> {
        not_here()
    }

    async fn set_log_level(&self, _: Request<LogLevelParams>) -> Answer<Empty> {
        not_here()
    }

    async fn set_crawl_limit(&self, _: Request<CrawlLimitParams>) -> Answer<Empty> {
        not_here()
    }

    async fn get_url_status(&self, _: Request<UrlStatusRequest>) -> Answer<UrlItem> {
        not_here()
    }

    async fn count_ur_ls(&self, _: Request<CountUrlParams>) -> Answer<Long> {
        not_here()
    }

    async fn purge_ur_ls(&self, _: Request<PurgeUrlParams>) -> Answer<Long> {
        not_here()
    }
}
