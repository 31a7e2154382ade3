//! Lists of pages, and the room that they need.

use std::time::Duration;

use forager_core::url::FetchUrl;
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::{Limits as FetchLimits, Request};
use forager_frontier::verbs::{Link, Page};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use super::*;

/// Longer than anything takes that works.
const LONG: Duration = Duration::from_mins(1);

/// A server, and a crawler that has one page of it to fetch, and one list.
struct World {
    crawler: Crawler,
    root: String,
    /// How often the list was asked for.
    asked: watch::Receiver<usize>,
    server: AbortHandle,
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl World {
    /// Nothing is tried again, and what is longer than 1000 bytes needs room.
    async fn with(list: &'static str) -> Self {
        let (asked, server, root) = serve(list).await;
        let mut settings = Settings::default();
        (settings.retry.failed, settings.retry.refused) = (0, 0);
        (settings.politeness.delay, settings.politeness.max_delay) = Default::default();
        let (frontier, clock) = (Arc::new(Memory::new(settings).unwrap()), Clock::default());
        queue(&frontier, &format!("{root}/"), &format!("{root}{list}")).await;
        let whole = Duration::from_secs(2);
        let limits = FetchLimits { body_bytes: 1000, whole, ..FetchLimits::default() };
        let addresses = AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap()]);
        let http = HttpConfig { limits, addresses, ..HttpConfig::default() };
        let crawler = Crawler::new(frontier, http, CrawlConfig::default(), clock).unwrap();
        Self { crawler, root, asked, server }
    }

    /// Crawls to the end, and says what became of each turn of the list.
    async fn crawl(&self, list: &str) -> Vec<Outcome> {
        let work = Work { until_done: true, ..Work::default() };
        let (_go_on, stop) = watch::channel(Stop::No);
        let (ended, pages) = self.crawler.run(work, stop, Pages::default()).await;
        assert_eq!(ended.unwrap(), Ended::Done);
        let url = format!("{}{list}", self.root);
        pages.0.into_iter().filter(|page| page.0 == url).filter_map(|page| page.1).collect()
    }
}

/// Has a page to start from, and a list that was found there.
async fn queue(frontier: &Memory, start: &str, list: &str) {
    let now = Clock::default().now();
    let (urls, profile) = (vec![start.to_owned()], Profile::new("job", "job"));
    let job = NewJob { id: "job".to_owned(), urls, profile, limits: Limits::default() };
    frontier.start_job(&job, now).await.unwrap();
    let link = Link { url: list.to_owned(), how: How::Listing, ..Link::default() };
    let [source, seed] = [(); 2].map(|()| Some(start.to_owned()));
    let page = Page { collection: "job".to_owned(), source, seed, depth: 0, links: vec![link] };
    frontier.discover(&[page], now).await.unwrap();
}

async fn serve(list: &'static str) -> (watch::Receiver<usize>, AbortHandle, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let root = format!("http://{}", listener.local_addr().unwrap());
    let (count, asked) = watch::channel(0);
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Whoever finds no room does not read to the end.
            tokio::spawn(answer(stream, list, count.clone()));
        }
    });
    (asked, server.abort_handle(), root)
}

async fn answer(mut stream: TcpStream, list: &str, asked: watch::Sender<usize>) -> std::io::Result<()> {
    let mut lines = BufReader::new(&mut stream).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    asked.send_modify(|asked| *asked += usize::from(path == list));
    let (status, body) = match path {
        "/" => (200, "<p>A page.</p>".to_owned()),
        "/short.xml" => (200, "<urlset></urlset>".to_owned()),
        "/long.xml" => (200, format!("<urlset>{}</urlset>", " ".repeat(1_000_000))),
        "/same.xml" => (304, String::new()),
        "/busy.xml" => (503, "later".repeat(1000)),
        _ => (404, "not here".repeat(1000)),
    };
    let length = if status == 304 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let head = format!("HTTP/1.1 {status} So\r\n{length}Connection: close\r\n\r\n");
    stream.write_all(&[head, body].concat().into_bytes()).await
}

#[tokio::test]
async fn one_that_finds_no_room_comes_again_and_loses_no_try() {
    let world = World::with("/long.xml").await;
    let mut request = Request::new(FetchUrl::parse(&format!("{}/long.xml", world.root)).unwrap());
    request.body_bytes = Some(10_000_000);
    let large = async || world.crawler.visitor.http.get(&request).await.unwrap();
    let others = tokio::join!(large(), large());
    assert_eq!((others.0.cut_off, others.1.cut_off), (None, None));
    let mut asked = world.asked.clone();
    let room_at_last = async {
        asked.wait_for(|asked| *asked >= 4).await.unwrap();
        drop(others);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcomes = world.crawl("/long.xml") => assert_eq!(outcomes, [Outcome::Done]),
        () = room_at_last => {}
    }
    assert!(*world.asked.borrow() >= 4, "twice by the others, and again after it found no room");
}

#[tokio::test]
async fn one_that_is_nothing_to_read_waits_for_nobody() {
    let cases = [
        ("/short.xml", Outcome::Done),
        ("/same.xml", Outcome::Done),
        ("/busy.xml", Outcome::Failed),
        ("/gone.xml", Outcome::Done),
    ];
    for (list, want) in cases {
        let world = World::with(list).await;
        let listings = &world.crawler.visitor.listings;
        let others = [listings.place(200, usize::MAX).await, listings.place(200, usize::MAX).await];
        assert!(others.iter().all(Option::is_some));
        let outcomes = tokio::time::timeout(LONG, world.crawl(list)).await;
        assert_eq!(outcomes.as_deref(), Ok(&[want][..]), "{list}");
    }
}

/// Otherwise it is asked for by the pause of long ago, while others may have asked its host meanwhile.
#[tokio::test]
async fn one_that_has_waited_is_handed_out_anew() {
    let (start, list) = ("http://127.0.0.1:1/", "http://127.0.0.2:1/list.xml");
    let mut settings = Settings::default();
    (settings.politeness.delay, settings.politeness.max_delay) = (Interval::hours(1), Interval::hours(1));
    let (frontier, clock) = (Arc::new(Memory::new(settings).unwrap()), Clock::default());
    queue(&frontier, start, list).await;
    let config = CrawlConfig { at_once: 4, ..CrawlConfig::default() };
    let crawler = Crawler::new(frontier.clone(), HttpConfig::default(), config, clock).unwrap();
    let mut shift = Shift::new(crawler, Work::default());
    assert!(shift.lists.begin() && !shift.lists.begin(), "a quarter of four is one");
    shift.take_up().await.unwrap();
    assert_eq!((shift.under_way.count(), shift.lists.waiting().count()), (1, 1), "the page, and the list");
    shift.lists.end();
    shift.take_up().await.unwrap();
    assert_eq!((shift.under_way.count(), shift.lists.waiting().count()), (1, 0), "its host is not open");
    let request = LeaseRequest { max: 9, per_host: 9, hold: Interval::MINUTE, ..LeaseRequest::default() };
    let later = Interval::hours(2).after(clock.now());
    let leased = frontier.lease(&request, later).await.unwrap().leased;
    assert!(leased.iter().any(|leased| leased.url == list), "{leased:?}");
}
