//! What the server answers, and what it notes down of it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use forager_core::time::Interval;
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::{CutOff, Http, HttpConfig, Request, Response};
use forager_fetch::sitemap;
use forager_site::changes::Changes;
use forager_site::{Answer, Host, RetryAfter, Running, Server, Site, listing};
use hyper_util::rt::{TokioExecutor, TokioIo};
use jiff::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A clock that a test sets.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn set(&self, second: i64) {
        self.0.store(second, Ordering::SeqCst);
    }

    fn read(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let second = self.0.clone();
        move || at(second.load(Ordering::SeqCst))
    }
}

fn client(running: &Running) -> Http {
    Http::new(HttpConfig {
        user_agent: "tester/1".to_owned(),
        addresses: AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap()]),
        overrides: running.overrides(),
        ..HttpConfig::default()
    })
    .unwrap()
}

async fn get(http: &Http, url: &str) -> Response {
    http.get(&Request::new(url.parse().unwrap())).await.unwrap()
}

fn two_hosts() -> Site {
    let host = |name: &str| Host::new(name).page("/", Answer::text(name.to_owned()));
    Site::new().host(host("a.demo")).host(host("b.demo"))
}

#[tokio::test]
async fn every_host_has_an_address_of_its_own_or_all_share_one() {
    for (name, site) in [("apart", two_hosts()), ("together", two_hosts().on_one_address())] {
        let running = Server::start(site, Timestamp::now).await.unwrap();
        let http = client(&running);
        for host in ["a.demo", "b.demo"] {
            let answer = get(&http, &running.url(host, "/")).await;
            assert_eq!((answer.status, &answer.body[..]), (200, host.as_bytes()), "{name}");
        }
        let seen: Vec<_> = running.log().take().into_iter().map(|seen| seen.host.to_string()).collect();
        assert_eq!(seen, ["a.demo", "b.demo"], "{name}");
    }
}

#[tokio::test]
async fn a_host_is_known_by_its_address_alone() {
    let running = Server::start(two_hosts(), Timestamp::now).await.unwrap();
    let address = running.addresses()["b.demo"];
    let answer = get(&client(&running), &format!("http://{address}/")).await;
    assert_eq!(&answer.body[..], b"b.demo");
    let shared = Server::start(two_hosts().on_one_address(), Timestamp::now).await.unwrap();
    let answer = get(&client(&shared), &format!("http://127.0.0.1:{}/", shared.port())).await;
    assert_eq!(answer.status, 421, "nobody can tell which host is meant");
}

#[tokio::test]
async fn a_path_is_found_with_its_query_then_without_then_by_its_beginning() {
    let host = Host::new("a.demo")
        .page("/p", Answer::text("plain"))
        .page("/p?q=1", Answer::text("queried"))
        .under("/deep/", |asked| (asked.path != "/deep/hole").then(|| Answer::text("deep")))
        .under("/deep/er/", |_| Some(Answer::text("deeper")));
    let running = Server::start(Site::new().host(host), Timestamp::now).await.unwrap();
    let http = client(&running);
    let table = [
        ("/p", 200, "plain"),
        ("/p?q=1", 200, "queried"),
        ("/p?q=2", 200, "plain"),
        ("/deep/x", 200, "deep"),
        ("/deep/er/x", 200, "deeper"),
        ("/deep/hole", 404, "404 Not Found"),
        ("/other", 404, "404 Not Found"),
    ];
    for (path, status, text) in table {
        let answer = get(&http, &running.url("a.demo", path)).await;
        let body = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(answer.status == status && body.contains(text), "{path}: {} {body}", answer.status);
    }
    assert_eq!(running.log().snapshot().iter().map(|seen| &*seen.path).collect::<Vec<_>>()[1], "/p?q=1");
}

#[tokio::test]
async fn who_has_a_version_is_told_so() {
    let changes = Changes::at([at(1000)]);
    let host = Host::new("a.demo")
        .page("/tag", Answer::text("x").etag("v1"))
        .page("/time", Answer::text("x").last_modified(at(500)))
        .page("/error", Answer::error(500).etag("v1"))
        .changing("/page", changes, |_, version| {
            Answer::text(format!("version {}", version.number)).etag(&format!("v{}", version.number))
        });
    let hand = Hand::default();
    let running = Server::start(Site::new().host(host), hand.read()).await.unwrap();
    let http = client(&running);
    let table = [
        ("the same tag", "/tag", Some("\"v1\""), None, 304),
        ("a weak tag", "/tag", Some("W/\"v1\""), None, 304),
        ("one of several", "/tag", Some("\"v0\", \"v1\""), None, 304),
        ("another tag", "/tag", Some("\"v2\""), None, 200),
        ("the same time", "/time", None, Some("Thu, 01 Jan 1970 00:08:20 GMT"), 304),
        ("an earlier time", "/time", None, Some("Thu, 01 Jan 1970 00:08:19 GMT"), 200),
        ("a tag counts before the time", "/tag", Some("\"v0\""), Some("Thu, 01 Jan 2026 00:00:00 GMT"), 200),
        ("an error is an error", "/error", Some("\"v1\""), None, 500),
    ];
    for (name, path, etag, last_modified, want) in table {
        let mut request = Request::new(running.url("a.demo", path).parse().unwrap());
        request.etag = etag.map(str::to_owned);
        request.last_modified = last_modified.map(str::to_owned);
        assert_eq!(http.get(&request).await.unwrap().status, want, "{name}");
        let seen = running.log().take().pop().unwrap();
        assert_eq!((seen.status, seen.if_none_match.as_deref()), (Some(want), etag), "{name}");
        assert_eq!(seen.if_modified_since.as_deref(), last_modified, "{name}");
    }
    let mut request = Request::new(running.url("a.demo", "/page").parse().unwrap());
    request.etag = Some("\"v0\"".to_owned());
    for (second, want) in [(999, 304), (1000, 200)] {
        hand.set(second);
        assert_eq!(http.get(&request).await.unwrap().status, want, "at {second}");
    }
}

#[tokio::test]
async fn redirects_and_pauses_are_sent_as_described() {
    let host = Host::new("a.demo")
        .page("/moved", Answer::redirect(301, "/new"))
        .page("/seconds", Answer::busy(RetryAfter::Seconds(120)))
        .made("/date", |asked| Answer::busy(RetryAfter::At(asked.now + jiff::SignedDuration::from_secs(90))))
        .page("/slip", Answer::redirect(301, "/a\nb"));
    let hand = Hand::default();
    hand.set(10_000);
    let running = Server::start(Site::new().host(host), hand.read()).await.unwrap();
    let http = client(&running);
    let moved = get(&http, &running.url("a.demo", "/moved")).await;
    assert_eq!((moved.status, moved.location().as_deref()), (301, Some("/new")));
    for (path, seconds) in [("/seconds", 120.0), ("/date", 90.0)] {
        let busy = get(&http, &running.url("a.demo", path)).await;
        let asked = busy.retry_after(at(10_000)).map(Interval::as_secs_f64);
        assert_eq!((busy.status, asked), (503, Some(seconds)), "{path}");
    }
    assert_eq!(get(&http, &running.url("a.demo", "/slip")).await.status, 500);
}

#[tokio::test]
async fn a_body_can_be_cut() {
    let host = Host::new("a.demo").page("/", Answer::text("x".repeat(1000)).cut_after(400));
    let running = Server::start(Site::new().host(host), Timestamp::now).await.unwrap();
    let answer = get(&client(&running), &running.url("a.demo", "/")).await;
    assert_eq!((answer.status, answer.cut_off, answer.body.len()), (200, Some(CutOff::Broken), 400));
    let seen = ended(&running).await;
    assert_eq!((seen.status, seen.whole), (Some(200), false));
}

/// The first request, once it is over.
async fn ended(running: &Running) -> forager_site::Seen {
    loop {
        if let Some(seen) = running.log().take().into_iter().next() {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn requests_under_way_are_counted() {
    let slow = Answer::text("late").slow(Duration::from_millis(300));
    let host = |name: &str| Host::new(name).page("/", slow.clone());
    let site = Site::new().host(host("a.demo")).host(host("b.demo"));
    let running = Server::start(site, Timestamp::now).await.unwrap();
    let http = client(&running);
    let ask = |host: &'static str| {
        let (http, url) = (http.clone(), running.url(host, "/"));
        async move { get(&http, &url).await.status }
    };
    let statuses = tokio::join!(ask("a.demo"), ask("a.demo"), ask("b.demo"));
    assert_eq!(statuses, (200, 200, 200));
    let mut counts: Vec<_> =
        running.log().take().iter().map(|seen| (seen.host.to_string(), seen.at_once)).collect();
    counts.sort_unstable();
    let want = [("a.demo", 1), ("a.demo", 2), ("b.demo", 1)].map(|(host, count)| (host.to_owned(), count));
    assert_eq!(counts, want);
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    let host = Host::new("a.demo").page("/", Answer::text("never").slow(Duration::from_hours(1)));
    let running = Server::start(Site::new().host(host), Timestamp::now).await.unwrap();
    let (http, url) = (client(&running), running.url("a.demo", "/"));
    let asking = tokio::spawn(async move { get(&http, &url).await });
    while running.log().snapshot().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(running.log().snapshot()[0].ended, None);
    asking.abort();
    let seen = ended(&running).await;
    assert_eq!((seen.status, seen.whole, seen.user_agent.as_deref()), (None, false, Some("tester/1")));
}

#[tokio::test]
async fn it_speaks_http2() {
    let running = Server::start(two_hosts(), Timestamp::now).await.unwrap();
    let stream = tokio::net::TcpStream::connect(running.addresses()["b.demo"]).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(running.url("b.demo", "/")).body(String::new()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
    assert_eq!(&*running.log().snapshot()[0].host, "b.demo");
}

#[tokio::test]
async fn listings_are_read_as_they_were_written() {
    let pages = ["http://a.demo/?x&y", "http://a.demo/z"];
    let text = listing::sitemap(pages.map(|page| (page, Some(at(86_400)))));
    let index = listing::index([("http://a.demo/s.xml.gz", None)]);
    let base = "http://a.demo/sitemap.xml".parse().unwrap();
    let read = sitemap::read(&listing::gzip(&text), &base, None);
    let found: Vec<_> = read.urls.iter().map(|item| (item.url.as_str(), item.last_modified)).collect();
    assert_eq!(found, pages.map(|page| (page, Some(at(86_400)))));
    let read_index = sitemap::read(index.as_bytes(), &base, None);
    assert_eq!(read_index.sitemaps[0].url.as_str(), "http://a.demo/s.xml.gz");
    assert_eq!((read.problems.len(), read_index.problems.len()), (0, 0));
}
