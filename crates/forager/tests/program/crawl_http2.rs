//! Crawls of a site that speaks HTTP/2 and nothing else, by the log of its server.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::web::secure::{Authority, NAME, authority, field, params, server_config, signed};
use crate::web::{Field, Started, each, wait_until};
use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde_json::Value;
use tokio_rustls::TlsAcceptor;

/// The home page leads to so many others.
const PAGES: usize = 5;

/// What goes wrong when [`VICTIM`] is asked for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mishap {
    Nothing,
    /// The server answers what it was asked, and wants no more requests on this connection.
    Goodbye,
    /// It ends the connection with an error, and answers nothing.
    SuddenEnd,
    /// It answers nothing to this one request.
    Reset,
    /// It answers half of it.
    ResetHalfway,
}

const VICTIM: &str = "/3";

/// A server of HTTP/2, and what it saw.
struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The paths that were asked for, and whether the client had the page already.
    asked: Mutex<Vec<(String, bool)>>,
    connections: AtomicUsize,
    under_way: AtomicUsize,
    most_under_way: AtomicUsize,
}

impl Seen {
    /// Notes a request. Returns whether its path was asked for the first time.
    fn begin(&self, path: &str, is_conditional: bool) -> bool {
        let now = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(now, Ordering::SeqCst);
        let mut asked = self.asked.lock().unwrap();
        asked.push((path.to_owned(), is_conditional));
        asked.iter().filter(|(other, _)| other == path).count() == 1
    }
}

impl Server {
    /// Serves for as long as the test runs.
    fn new(authority: &Authority, mishap: Mishap) -> Self {
        let mut config = server_config(signed(authority, &params(NAME)));
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let (address, seen) = (listener.local_addr().unwrap(), Arc::<Seen>::default());
        let log = seen.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let (acceptor, log) = (acceptor.clone(), log.clone());
                    tokio::spawn(async move {
                        let stream = acceptor.accept(stream).await.unwrap();
                        serve(stream, mishap, log).await;
                    });
                }
            });
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{NAME}:{}{path}", self.address.port())
    }

    /// How often each page was asked for, by whether the client had it already.
    fn counts(&self, is_conditional: bool) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        let asked = self.seen.asked.lock().unwrap();
        let pages = asked.iter().filter(|(path, had)| path != "/robots.txt" && *had == is_conditional);
        pages.for_each(|(path, _)| *counts.entry(path.clone()).or_default() += 1);
        counts
    }
}

/// Serves a connection until the client goes.
async fn serve(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    mishap: Mishap,
    seen: Arc<Seen>,
) {
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let is_first = seen.begin(request.uri().path(), request.headers().contains_key(IF_NONE_MATCH));
        let mishap = if is_first && request.uri().path() == VICTIM { mishap } else { Mishap::Nothing };
        match mishap {
            Mishap::Goodbye => connection.graceful_shutdown(),
            Mishap::SuddenEnd => connection.abrupt_shutdown(Reason::INTERNAL_ERROR),
            Mishap::Nothing | Mishap::Reset | Mishap::ResetHalfway => {}
        }
        tokio::spawn(answer(request, respond, mishap, seen.clone()));
    }
}

/// Answers a request; a page that the client has already, with 304.
async fn answer<T>(
    request: http::Request<T>,
    mut respond: SendResponse<Bytes>,
    mishap: Mishap,
    seen: Arc<Seen>,
) {
    // Long enough for others to come meanwhile, if the client lets them.
    tokio::time::sleep(Duration::from_millis(60)).await;
    // Before the client can know that it is answered.
    seen.under_way.fetch_sub(1, Ordering::SeqCst);
    let (path, tag) = (request.uri().path(), format!("\"{}\"", request.uri().path()));
    let head = http::Response::builder().header(CONTENT_TYPE, "text/html").header(ETAG, &tag);
    let is_known = request.headers().get(IF_NONE_MATCH).is_some_and(|known| known == tag.as_str());
    if mishap == Mishap::Reset {
        respond.send_reset(Reason::INTERNAL_ERROR);
    } else if path == "/robots.txt" || is_known {
        let status = if is_known { 304 } else { 404 };
        // A client that is gone is told nothing.
        let _ = respond.send_response(head.status(status).body(()).unwrap(), true);
    } else if let Ok(mut body) = respond.send_response(head.body(()).unwrap(), false) {
        let links: Vec<String> =
            (1..=PAGES).map(|number| format!("<a href=/{number}>{number}</a>")).collect();
        let text = if path == "/" { links.join(" ") } else { format!("This is the page at {path}.") };
        let is_whole = mishap != Mishap::ResetHalfway;
        let _ = body.send_data(text.into(), is_whole);
        if !is_whole {
            // Once what was sent has been read.
            tokio::time::sleep(Duration::from_millis(60)).await;
            body.send_reset(Reason::INTERNAL_ERROR);
        }
    }
}

/// How many requests the log of the queue has.
#[track_caller]
fn logged(field: &Field) -> Value {
    field.run(&["audit", "--json"]).good_rows()[0]["fetches"].clone()
}

#[test]
fn a_site_is_crawled_politely_and_only_what_changed_comes_again() {
    let authority = authority();
    let server = Server::new(&authority, Mishap::Nothing);
    let field = field(Some(&authority));
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let seed = server.url("/");
    let harvest = format!(
        "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\nevery = \"1s\"\n\
         [[seeds]]\nurl = {seed:?}\nprofiles = [\"p\"]\n"
    );
    std::fs::write(field.file("forager.toml"), text + &harvest).unwrap();
    let running = Started::new(&mut field.queue.command(&["run", "--quiet", "--out", "pages.jsonl"]));
    wait_until("all pages to be asked for again", || server.counts(true).len() == PAGES + 1);
    running.signal("TERM");
    let ran = running.end();
    assert_eq!((ran.status, ran.stderr.as_str()), (11, ""), "{ran:?}");
    assert_eq!(server.counts(false), each(PAGES, 1), "whole once, and then only if they changed");
    let answers =
        |status: u16| field.lines("pages.jsonl").iter().filter(|line| line["status"] == status).count();
    let again: usize = server.counts(true).values().sum();
    assert_eq!((answers(200), answers(304)), (PAGES + 1, again));
    let most = server.seen.most_under_way.load(Ordering::SeqCst);
    assert!(most <= 2, "{most} requests under way at once");
    assert_eq!(server.seen.connections.load(Ordering::SeqCst), 1, "one connection is enough");
    assert_eq!(logged(&field), server.seen.asked.lock().unwrap().len());
}

#[test]
fn a_connection_or_a_request_that_breaks_off_is_written_down_and_tried_again() {
    let authority = authority();
    // How many connections it takes, and what is told of the first try. A connection that had served other pages may end
    // at any time: such a request is in the log, and sent once more without a word.
    let table = [
        (Mishap::Goodbye, 1, 2, None),
        (Mishap::SuddenEnd, 2, 2, None),
        (Mishap::Reset, 2, 1, Some("stream error received: unexpected internal error encountered")),
        (Mishap::ResetHalfway, 2, 1, Some("the page is not whole: the connection ended before the body did")),
    ];
    for (mishap, tries, connections, problem) in table {
        let server = Server::new(&authority, mishap);
        let field = field(Some(&authority));
        // One at a time, so that nothing but the page that it happens to is under way.
        field.set("[politeness]\n", "[politeness]\nin_flight = 1\n");
        field.set("failed = 1", "failed = 2");
        let ran = field.run(&["crawl", &server.url("/"), "--out", "pages.jsonl", "--json", "--quiet"]);
        assert_eq!(ran.good_rows()[0]["outcomes"]["200"], PAGES + 1, "{mishap:?}: {ran:?}");
        let mut counts = each(PAGES, 1);
        counts.insert(VICTIM.to_owned(), tries);
        assert_eq!(server.counts(false), counts, "{mishap:?}");
        assert_eq!(server.seen.connections.load(Ordering::SeqCst), connections, "{mishap:?}");
        let lines = field.lines("pages.jsonl");
        let told: Vec<&str> = lines.iter().filter_map(|line| line["error"].as_str()).collect();
        assert_eq!(told.len(), problem.iter().len(), "{mishap:?}: {told:?}");
        assert!(
            told.iter().zip(problem).all(|(told, problem)| told.contains(problem)),
            "{mishap:?}: {told:?}"
        );
        assert_eq!(logged(&field), server.seen.asked.lock().unwrap().len(), "{mishap:?}");
    }
}
