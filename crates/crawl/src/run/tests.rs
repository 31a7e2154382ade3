#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use forager_core::scope::Profile;
use forager_core::url::FetchUrl;
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::{CutOff, Limits as FetchLimits, Request};
use forager_frontier::catalog::Limits;
use forager_frontier::entry::Token;
use forager_frontier::verbs::{Link, NewJob, Page};
use forager_frontier::{Memory, Settings};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What became of each page.
#[derive(Default)]
struct Pages(Vec<(String, Option<Outcome>)>);

impl Watcher for Pages {
    fn page(&mut self, page: &PageLine, _: &[Found]) {
        self.0.push((page.url.clone(), page.outcome));
    }
}

fn reported(leased: &Leased) -> Turn {
    let report = Report { token: leased.token.0, status: Some(200), ..Report::default() };
    let line = PageLine { url: leased.url.clone(), ..PageLine::default() };
    Turn::Reported(Box::new(Visited { report, line, ..Visited::default() }))
}

#[tokio::test]
async fn a_turn_that_fails_does_not_take_others_along() {
    let frontier = Arc::new(Memory::new(Settings::default()).unwrap());
    let (clock, config) = (Clock::default(), CrawlConfig::default());
    let urls = ["a", "b", "c"].map(|host| format!("http://{host}.test/")).to_vec();
    let profile = Profile::new("job", "job");
    let job = NewJob { id: "job".to_owned(), urls, profile, limits: Limits::default() };
    frontier.start_job(&job, clock.now()).await.unwrap();
    let crawler = Crawler::new(frontier.clone(), HttpConfig::default(), config, clock).unwrap();
    let work = Work::default();
    let mut shift = Shift::new(&crawler, &work);
    let request = LeaseRequest { max: 3, per_host: 1, hold: Interval::MINUTE, ..LeaseRequest::default() };
    let leased = frontier.lease(&request, clock.now()).await.unwrap().leased;
    assert_eq!(leased.len(), 3);
    let tokens: Vec<Token> = leased.iter().map(|leased| leased.token).collect();
    let urls: Vec<String> = leased.iter().map(|leased| leased.url.clone()).collect();
    for (number, leased) in leased.into_iter().enumerate() {
        let failure = || forager_frontier::Error::Configuration(format!("failure {number}"));
        let turn = if number == 1 { Ok(reported(&leased)) } else { Err(failure().into()) };
        shift.under_way.take(leased.token);
        shift.finished.push(Over { leased: leased.into(), turn });
    }
    let mut pages = Pages::default();
    let failed = shift.hand_in(&mut pages).await.unwrap_err();
    assert_eq!(failed.to_string(), "failure 0", "the first is told");
    assert_eq!(pages.0, [(urls[1].clone(), Some(Outcome::Done))]);
    let held = frontier.extend(&tokens, Interval::MINUTE, clock.now()).await.unwrap();
    assert_eq!(held.iter().map(|one| one.held).collect::<Vec<_>>(), [true, false, true]);
}

#[tokio::test]
async fn nobody_holds_on_to_the_queue_when_a_crawl_has_ended() {
    let frontier = Arc::new(Memory::new(Settings::default()).unwrap());
    let (clock, config) = (Clock::default(), CrawlConfig::default());
    let crawler = Crawler::new(frontier.clone(), HttpConfig::default(), config, clock).unwrap();
    let work = Work { until_done: true, ..Work::default() };
    let mut shift = Shift::new(&crawler, &work);
    // Its turn is over, but it is not quite gone.
    let held = frontier.clone();
    shift.visits.spawn(async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    let (_go_on, mut stop) = watch::channel(Stop::No);
    assert_eq!(shift.crawl(&mut stop, &mut Pages::default()).await.unwrap(), Ended::Done);
    drop(crawler);
    assert_eq!(Arc::strong_count(&frontier), 1);
}

/// Answers a request, with a page or with a long list. Counts how often one of these is asked for.
async fn answer(mut stream: TcpStream, asked: watch::Sender<usize>) -> std::io::Result<()> {
    let mut lines = BufReader::new(&mut stream).lines();
    let first = lines.next_line().await?.unwrap_or_default();
    while lines.next_line().await?.is_some_and(|line| !line.is_empty()) {}
    let path = first.split(' ').nth(1).unwrap_or_default();
    asked.send_modify(|asked| *asked += usize::from(path == "/list.xml"));
    let (status, body) = match path {
        "/robots.txt" => ("404 Not Found", String::new()),
        "/" => ("200 OK", "<p>A page.</p>".to_owned()),
        _ => ("200 OK", format!("<urlset>{}</urlset>", " ".repeat(1_000_000))),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head, body].concat().into_bytes()).await
}

#[tokio::test]
async fn a_list_without_room_comes_again_and_loses_no_try() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = |path: &str| format!("http://{}{path}", listener.local_addr().unwrap());
    let (start, list, other) = (url("/"), url("/list.xml"), url("/other.xml"));
    let asked = watch::Sender::new(0);
    let count = asked.clone();
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Whoever finds no room does not read to the end.
            tokio::spawn(answer(stream, count.clone()));
        }
    });

    let mut settings = Settings::default();
    (settings.retry.failed, settings.politeness.delay, settings.politeness.max_delay) =
        (0, Interval::default(), Interval::default());
    let frontier = Arc::new(Memory::new(settings).unwrap());
    let clock = Clock::default();
    let (urls, profile) = (vec![start.clone()], Profile::new("job", "job"));
    let job = NewJob { id: "job".to_owned(), urls, profile, limits: Limits::default() };
    frontier.start_job(&job, clock.now()).await.unwrap();
    let link = Link { url: list.clone(), how: How::Listing, ..Link::default() };
    let (source, seed) = (Some(start.clone()), Some(start));
    let page = Page { collection: "job".to_owned(), source, seed, depth: 0, links: vec![link] };
    frontier.discover(&[page], clock.now()).await.unwrap();

    let limits = FetchLimits { body_bytes: 1000, whole: Duration::from_secs(2), ..FetchLimits::default() };
    let addresses = AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap()]);
    let http = HttpConfig { limits, addresses, ..HttpConfig::default() };
    let crawler = Crawler::new(frontier.clone(), http, CrawlConfig::default(), clock).unwrap();
    let mut request = Request::new(FetchUrl::parse(&other).unwrap());
    request.body_bytes = Some(10_000_000);
    let large = async || crawler.visitor.http.get(&request).await.unwrap();
    let others = tokio::join!(large(), large());
    assert_eq!((others.0.cut_off, others.1.cut_off), (None::<CutOff>, None));

    let (work, mut pages) = (Work { until_done: true, ..Work::default() }, Pages::default());
    let (_go_on, stop) = watch::channel(Stop::No);
    let mut asked = asked.subscribe();
    tokio::select! {
        ended = crawler.run(&work, stop, &mut pages) => assert_eq!(ended.unwrap(), Ended::Done),
        () = async {
            asked.wait_for(|asked| *asked > 1).await.unwrap();
            drop(others);
            std::future::pending().await
        } => {}
    }
    assert!(*asked.borrow() > 1);
    let of_list: Vec<_> = pages.0.iter().filter(|(url, _)| *url == list).collect();
    assert_eq!(of_list, [&(list.clone(), Some(Outcome::Done))]);
    server.abort();
}
