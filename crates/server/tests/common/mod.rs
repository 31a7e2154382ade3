//! A server on a real connection, with a clock that moves only when it is told to, and words for what is asked of it.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

pub(crate) mod troubled;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use forager_frontier::{
    Embedded, Frontier, Memory, Options as StoreOptions, Postgres, PostgresOptions, PostgresSchema, Settings,
};
use forager_server::proto::ack_message::Status as Ack;
use forager_server::proto::get_params::Item as Of;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::url_item::Item;
use forager_server::proto::{
    AckMessage, AnyCrawlId, BatchAck, DiscoveredBatch, DiscoveredUrlItem, GetParams, KnownUrlItem,
    ListUrlParams, QueueWithinCrawlParams, Stats, StringList, UrlInfo, UrlItem, UrlStatusRequest,
};
use forager_server::{Error, Metrics, Options, Server};
use futures_util::stream;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// The second at which tests begin.
pub(crate) const START: u32 = 1_718_438_400;

/// Runs each case on a queue in memory, on one in a folder and on one in PostgreSQL.
#[macro_export]
macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        mod in_memory {
            $(#[tokio::test] async fn $case() { super::$case(super::World::in_memory().await).await; })*
        }
        mod in_a_folder {
            $(#[tokio::test] async fn $case() { super::$case(super::World::in_a_folder().await).await; })*
        }
        mod in_a_database {
            $(#[tokio::test] async fn $case() { super::$case(super::World::in_a_database().await).await; })*
        }
    };
}

/// A server, a client of it, and the time.
pub(crate) struct World {
    pub(crate) client: UrlFrontierClient<Channel>,
    pub(crate) frontier: Arc<dyn Frontier>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) address: String,
    now: Arc<AtomicU32>,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<Result<(), Error>>>,
    /// The schema that the queue lies in, if it does in one.
    pub(crate) tables: Option<PostgresSchema>,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) async fn in_memory() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        Self::over(Arc::new(Memory::new(Settings::default()).unwrap()), options, None).await
    }

    pub(crate) async fn in_a_folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::open(folder.path(), Settings::default(), StoreOptions::default()).unwrap();
        Self::over(Arc::new(store), Options::default(), Some(folder)).await
    }

    /// In a schema of its own, which stays: the whole server is thrown away when the tests are through.
    pub(crate) async fn in_a_database() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let url = std::env::var("FORAGER_TEST_POSTGRES").expect(
            "FORAGER_TEST_POSTGRES names no server: run `make test`, or `scripts/postgres run cargo test`",
        );
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let schema = format!("served_{}_{number}", std::process::id());
        // Nobody else is there to hear from.
        let options =
            PostgresOptions { schema, connections: 2, listens: false, ..PostgresOptions::default() };
        let tables = PostgresSchema::connect(&url, options.clone()).unwrap();
        tables.migrate(tables.newest()).await.unwrap();
        let store = Postgres::connect(&url, Settings::default(), options).await.unwrap();
        let world = Self::over(Arc::new(store), Options::default(), None).await;
        Self { tables: Some(tables), ..world }
    }

    pub(crate) async fn over(
        frontier: Arc<dyn Frontier>,
        options: Options,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let now = Arc::new(AtomicU32::new(START));
        let time = now.clone();
        let clock = move || Timestamp::from_second(time.load(Ordering::SeqCst).into()).unwrap();
        let server = Server::new(frontier.clone(), Arc::new(clock), options).unwrap();
        let metrics = server.metrics();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = async {
            let _ = stopped.await;
        };
        let serving = tokio::spawn(async move { server.run(listener, stopped).await });
        let client = UrlFrontierClient::connect(address.clone()).await.unwrap();
        let (stop, serving) = (Some(stop), Some(serving));
        Self { client, frontier, metrics, address, now, stop, serving, tables: None, _folder: folder }
    }

    /// Asks the server to end.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits for its end, in good order.
    pub(crate) async fn ended(&mut self) {
        self.outcome().await.unwrap();
    }

    /// Waits for its end, whatever comes of it.
    pub(crate) async fn outcome(&mut self) -> Result<(), Error> {
        self.serving.take().unwrap().await.unwrap()
    }

    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::SeqCst)
    }

    pub(crate) fn pass(&self, seconds: u32) {
        self.now.fetch_add(seconds, Ordering::SeqCst);
    }

    /// The acknowledgements of items, in the order they came.
    pub(crate) async fn acks(&mut self, items: Vec<UrlItem>) -> Vec<(String, Ack)> {
        let mut answers = self.client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
        let mut acks = Vec::new();
        while let Some(AckMessage { id, status }) = answers.message().await.unwrap() {
            acks.push((id, Ack::try_from(status).unwrap()));
        }
        acks
    }

    /// What became of items, in their order, where each has another URL or the order does not matter.
    pub(crate) async fn put(&mut self, items: Vec<UrlItem>) -> Vec<Ack> {
        let numbered =
            items.into_iter().enumerate().map(|(number, item)| UrlItem { id: number.to_string(), ..item });
        let mut acks = self.acks(numbered.collect()).await;
        acks.sort_by_key(|(id, _)| id.parse::<usize>().unwrap());
        acks.into_iter().map(|(_, ack)| ack).collect()
    }

    /// Puts items that must all be taken.
    pub(crate) async fn good(&mut self, items: Vec<UrlItem>) {
        let count = items.len();
        assert_eq!(self.put(items).await, vec![Ack::Ok; count]);
    }

    /// The acknowledgements of batches.
    pub(crate) async fn batches(&mut self, batches: Vec<DiscoveredBatch>) -> Vec<(String, Vec<Ack>)> {
        let mut answers = self.client.put_discovered(stream::iter(batches)).await.unwrap().into_inner();
        let mut acks = Vec::new();
        while let Some(BatchAck { id, statuses }) = answers.message().await.unwrap() {
            acks.push((id, statuses.into_iter().map(|status| Ack::try_from(status).unwrap()).collect()));
        }
        acks
    }

    /// What is handed out.
    pub(crate) async fn infos(&mut self, params: GetParams) -> Vec<UrlInfo> {
        let mut answers = self.client.get_ur_ls(params).await.unwrap().into_inner();
        let mut infos = Vec::new();
        while let Some(info) = answers.message().await.unwrap() {
            infos.push(info);
        }
        infos
    }

    /// The URLs that are handed out.
    pub(crate) async fn get(&mut self, params: GetParams) -> Vec<String> {
        self.infos(params).await.into_iter().map(|info| info.url).collect()
    }

    /// What is known of a URL whose queue is its host.
    pub(crate) async fn status(&mut self, url: &str) -> Result<UrlItem, Code> {
        let request = UrlStatusRequest { url: url.to_owned(), ..UrlStatusRequest::default() };
        self.status_of(request).await
    }

    pub(crate) async fn status_of(&mut self, request: UrlStatusRequest) -> Result<UrlItem, Code> {
        let answer = self.client.get_url_status(request).await;
        answer.map(tonic::Response::into_inner).map_err(|status: Status| status.code())
    }

    /// When a URL may be fetched again; 0 if never.
    pub(crate) async fn date(&mut self, url: &str) -> u64 {
        known(self.status(url).await.unwrap()).1
    }

    pub(crate) async fn stats(&mut self, crawl: &str, key: &str) -> Stats {
        let params = QueueWithinCrawlParams { key: key.into(), crawl_id: crawl.into(), local: false };
        self.client.get_stats(params).await.unwrap().into_inner()
    }

    /// The URLs of a listing.
    pub(crate) async fn list(&mut self, params: ListUrlParams) -> Vec<String> {
        self.listed(params).await.into_iter().map(|item| known(item).0.url).collect()
    }

    pub(crate) async fn listed(&mut self, params: ListUrlParams) -> Vec<UrlItem> {
        let mut answers = self.client.list_ur_ls(params).await.unwrap().into_inner();
        let mut items = Vec::new();
        while let Some(item) = answers.message().await.unwrap() {
            items.push(item);
        }
        items
    }
}

pub(crate) fn info(url: &str) -> UrlInfo {
    UrlInfo { url: url.into(), ..UrlInfo::default() }
}

/// A URL in a queue of a crawl.
pub(crate) fn placed(url: &str, key: &str, crawl: &str) -> UrlInfo {
    UrlInfo { url: url.into(), key: key.into(), crawl_id: crawl.into(), ..UrlInfo::default() }
}

pub(crate) fn with_metadata(info: UrlInfo, pairs: &[(&str, &[&str])]) -> UrlInfo {
    let list = |values: &[&str]| StringList { values: values.iter().map(|&v| v.to_owned()).collect() };
    let metadata = pairs.iter().map(|(key, values)| ((*key).to_owned(), list(values))).collect();
    UrlInfo { metadata, ..info }
}

/// An item that was found on a page.
pub(crate) fn found(info: UrlInfo) -> UrlItem {
    UrlItem { item: Some(Item::Discovered(DiscoveredUrlItem { info: Some(info) })), ..UrlItem::default() }
}

/// An item that is to be fetched again at a time, or never.
pub(crate) fn due(info: UrlInfo, date: impl Into<u64>) -> UrlItem {
    let item = KnownUrlItem { info: Some(info), refetchable_from_date: date.into() };
    UrlItem { item: Some(Item::Known(item)), ..UrlItem::default() }
}

/// What an item that is shown says, which is always of one that is known.
#[track_caller]
pub(crate) fn known(item: UrlItem) -> (UrlInfo, u64) {
    match item.item {
        Some(Item::Known(known)) => (known.info.unwrap(), known.refetchable_from_date),
        other => panic!("not as one that is known: {other:?}"),
    }
}

/// From any crawl: so many of a queue, of so many queues.
pub(crate) fn any(urls: u32, queues: u32) -> GetParams {
    GetParams { max_urls_per_queue: urls, max_queues: queues, ..GetParams::default() }
}

/// The same, where that is said.
pub(crate) fn explicitly_any(urls: u32, queues: u32) -> GetParams {
    GetParams { item: Some(Of::AnyCrawlId(AnyCrawlId {})), ..any(urls, queues) }
}

/// From one crawl.
pub(crate) fn of(crawl: &str, urls: u32, queues: u32) -> GetParams {
    GetParams { item: Some(Of::CrawlId(crawl.into())), ..any(urls, queues) }
}

/// From one queue.
pub(crate) fn keyed(key: &str, urls: u32) -> GetParams {
    GetParams { key: key.into(), ..of("", urls, 0) }
}

pub(crate) fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}
