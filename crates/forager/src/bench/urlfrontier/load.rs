//! What a client asks of the server that is measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use forager_server::proto::get_params::Item as Of;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::url_item::Item;
use forager_server::proto::{
    DiscoveredBatch, DiscoveredUrlItem, GetParams, KnownUrlItem, QueueDelayParams, UrlInfo, UrlItem,
};
use futures_util::stream::{self, Stream};
use tonic::transport::{Channel, Endpoint};

use super::super::figures::Calls;
use super::super::workload::Workload;

const CRAWL: &str = "bench";
/// URLs in one batch.
const BATCH: u64 = 500;
/// What is got in one call of the cycle: queues, and URLs of each.
const QUEUES: u32 = 100;
const OF_EACH: u32 = 10;
/// New links of a page; as many others are known.
const LINKS: u64 = 5;
/// How many rounds of the cycle there are at most, for each worker.
const ROUNDS: u64 = 200;
/// How many calls are timed one by one; small workloads take fewer. Of two hundred the slowest hundredth would be two, and these
/// would tell of how the server is still busy with what was put before.
const CALLS: u64 = 2000;
/// How long to wait for queues that rest.
const REST: Duration = Duration::from_millis(1100);
/// How often.
const MOST_RESTS: u32 = 100;
/// A time that does not come while we measure.
const LATER: u64 = 4_000_000_000;

/// A client, and what it has put.
pub(super) struct Load {
    client: UrlFrontierClient<Channel>,
    workload: Workload,
    /// The number of the next URL that nobody has put.
    next: AtomicU64,
    put: AtomicU64,
}

impl Load {
    pub(super) async fn connect(address: &str, urls: u64) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(address.to_owned())
            .with_context(|| format!("{address:?} is no address such as http://127.0.0.1:7071"))?;
        // As much on its way as the server takes, so that it is the server that is measured.
        let endpoint = endpoint.initial_stream_window_size(1 << 20).initial_connection_window_size(4 << 20);
        let channel = endpoint.connect().await.with_context(|| format!("cannot reach {address}"))?;
        let workload = Workload::new(urls, (urls / 50).max(1));
        // Batches have URLs of their own, after those that are put one by one.
        let next = AtomicU64::new(urls * 2);
        Ok(Self { client: UrlFrontierClient::new(channel), workload, next, put: AtomicU64::new(0) })
    }

    /// How many URLs were put that nobody had put before.
    pub(super) fn put_so_far(&self) -> u64 {
        self.put.load(Ordering::Relaxed)
    }

    /// Lets queues take turns without a rest.
    pub(super) async fn no_delay(&self) -> anyhow::Result<()> {
        self.client.clone().set_delay(QueueDelayParams::default()).await.context("cannot set the delay")?;
        Ok(())
    }

    /// URLs a second, put one by one.
    pub(super) async fn put_items(&self) -> anyhow::Result<f64> {
        let (urls, workload) = (self.workload.urls, self.workload);
        let items = (0..urls).map(move |index| found(workload.url(index)));
        let begun = Instant::now();
        self.exchange(items).await?;
        self.put.fetch_max(urls, Ordering::Relaxed);
        Ok(rate(urls, begun))
    }

    /// URLs a second, put in batches.
    pub(super) async fn put_batches(&self) -> anyhow::Result<f64> {
        let (urls, workload) = (self.workload.urls, self.workload);
        let batches = (0..urls.div_ceil(BATCH)).map(move |batch| {
            let indices = (batch * BATCH..urls.min((batch + 1) * BATCH)).map(|index| urls + index);
            links(batch, indices.map(|index| workload.url(index)))
        });
        let begun = Instant::now();
        self.exchange_batches(batches).await?;
        self.put.fetch_max(urls * 2, Ordering::Relaxed);
        Ok(rate(urls, begun))
    }

    /// Pages go through their lives: got, reported, and their links put. Tells how long rounds and calls took.
    pub(super) async fn cycle(&self, workers: usize) -> anyhow::Result<(Calls, Calls)> {
        let rounds = (self.workload.urls / u64::from(QUEUES * OF_EACH) / workers as u64).clamp(1, ROUNDS);
        let begun = Instant::now();
        let workers = (0..workers).map(|_| self.work(rounds));
        let done = futures_util::future::try_join_all(workers).await?;
        let took = begun.elapsed();
        let (cycles, gets): (Vec<Calls>, Vec<Calls>) = done.into_iter().unzip();
        Ok((Calls::side_by_side(cycles, took), Calls::side_by_side(gets, took)))
    }

    async fn work(&self, rounds: u64) -> anyhow::Result<(Calls, Calls)> {
        let (mut cycles, mut gets) = (Calls::default(), Calls::default());
        for _ in 0..rounds {
            let begun = Instant::now();
            let pages = self.get(CRAWL, QUEUES, OF_EACH).await?;
            gets.add(begun.elapsed(), pages.len());
            let count = pages.len();
            self.report(pages).await?;
            cycles.add(begun.elapsed(), count);
        }
        Ok((cycles, gets))
    }

    /// Reports pages as fetched, and puts what they link to.
    async fn report(&self, pages: Vec<UrlInfo>) -> anyhow::Result<()> {
        let count = pages.len() as u64;
        let first = self.next.fetch_add(count * LINKS, Ordering::Relaxed);
        self.put.fetch_add(count * LINKS, Ordering::Relaxed);
        let (workload, known) = (self.workload, self.workload.urls);
        let urls = (0..count * LINKS * 2).map(move |link| {
            let new = first + link / 2;
            workload.url(if link % 2 == 0 { new } else { new % known })
        });
        let urls: Vec<String> = urls.collect();
        let batches: Vec<DiscoveredBatch> =
            urls.chunks(500).zip(0..).map(|(urls, number)| links(number, urls.iter().cloned())).collect();
        let fetched = pages.into_iter().map(|info| known_until(info, LATER));
        futures_util::try_join!(self.exchange(fetched), self.exchange_batches(batches.into_iter()))?;
        Ok(())
    }

    /// Times calls that get one URL of each queue that has one due; of many that have none.
    pub(super) async fn get_due(&self, crawl: &str, queues: u64, due: u64) -> anyhow::Result<Calls> {
        let every = (queues / due).max(1);
        let crawl_id = crawl.to_owned();
        let items = (0..queues).map(move |queue| {
            let key = format!("queue-{queue:07}.example");
            let info = UrlInfo {
                url: format!("https://{key}/"),
                key,
                crawl_id: crawl_id.clone(),
                ..UrlInfo::default()
            };
            known_until(info, if queue % every == 0 { 1 } else { LATER })
        });
        self.exchange(items).await?;
        let mut calls = Calls::default();
        for _ in 0..(self.workload.urls / 20).clamp(1, CALLS) {
            let begun = Instant::now();
            let due = self.get(crawl, u32::try_from(due)?, 1).await?;
            calls.add(begun.elapsed(), due.len());
            self.exchange(due.into_iter().map(|info| known_until(info, 1))).await?;
        }
        Ok(calls)
    }

    /// Gets URLs. Where there are none, queues may have to rest, and it is tried again.
    async fn get(&self, crawl: &str, queues: u32, of_each: u32) -> anyhow::Result<Vec<UrlInfo>> {
        let params = GetParams {
            max_urls_per_queue: of_each,
            max_queues: queues,
            delay_requestable: 3600,
            item: Some(Of::CrawlId(crawl.to_owned())),
            ..GetParams::default()
        };
        for _ in 0..MOST_RESTS {
            let mut answers = self.client.clone().get_ur_ls(params.clone()).await?.into_inner();
            let mut urls = Vec::new();
            while let Some(info) = answers.message().await? {
                urls.push(info);
            }
            if !urls.is_empty() {
                return Ok(urls);
            }
            tokio::time::sleep(REST).await;
        }
        anyhow::bail!("the server hands out nothing")
    }

    /// Puts items on one stream, and waits for all acknowledgements.
    async fn exchange(&self, items: impl Iterator<Item = UrlItem> + Send + 'static) -> anyhow::Result<()> {
        let (items, sent) = counted(items);
        let mut answers = self.client.clone().put_ur_ls(items).await?.into_inner();
        let mut acknowledged = 0;
        while answers.message().await?.is_some() {
            acknowledged += 1;
        }
        let sent = sent.load(Ordering::Relaxed);
        ensure!(acknowledged == sent, "{acknowledged} of {sent} items were acknowledged");
        Ok(())
    }

    async fn exchange_batches(
        &self,
        batches: impl Iterator<Item = DiscoveredBatch> + Send + 'static,
    ) -> anyhow::Result<()> {
        let (batches, sent) = counted(batches);
        let mut answers = self.client.clone().put_discovered(batches).await?.into_inner();
        let mut acknowledged = 0;
        while answers.message().await?.is_some() {
            acknowledged += 1;
        }
        let sent = sent.load(Ordering::Relaxed);
        ensure!(acknowledged == sent, "{acknowledged} of {sent} batches were acknowledged");
        Ok(())
    }
}

/// A stream that counts what it sends.
fn counted<T: Send + 'static>(
    items: impl Iterator<Item = T> + Send + 'static,
) -> (impl Stream<Item = T> + Send + 'static, std::sync::Arc<AtomicU64>) {
    let sent = std::sync::Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let items = items.inspect(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    (stream::iter(items), sent)
}

fn info(url: String) -> UrlInfo {
    let host = url.split('/').nth(2).unwrap_or_default().to_owned();
    UrlInfo { key: host, url, crawl_id: CRAWL.to_owned(), ..UrlInfo::default() }
}

fn found(url: String) -> UrlItem {
    let item = DiscoveredUrlItem { info: Some(info(url)) };
    UrlItem { item: Some(Item::Discovered(item)), ..UrlItem::default() }
}

fn known_until(info: UrlInfo, date: u64) -> UrlItem {
    let item = KnownUrlItem { info: Some(info), refetchable_from_date: date };
    UrlItem { item: Some(Item::Known(item)), ..UrlItem::default() }
}

fn links(number: u64, urls: impl Iterator<Item = String>) -> DiscoveredBatch {
    DiscoveredBatch { id: format!("batch-{number}"), items: urls.map(info).collect() }
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people")]
fn rate(urls: u64, begun: Instant) -> f64 {
    urls as f64 / begun.elapsed().as_secs_f64().max(1e-9)
}
