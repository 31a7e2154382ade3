//! One request and its answer: headers, time, connections and everything that can go wrong.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forager_fetch::http::{Class, ConfigError, CutOff, Failure, Http, HttpConfig, Phase, Request};
use http_body_util::Full;
use hyper::Response;
use hyper::header::{ETAG, LOCATION};
use servers::{LONG, Site, answer, config, get, get_with, limited, raw, read_head, request, says};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// Passes in some tests; long enough to connect on a machine that has much else to do.
const SHORT: Duration = Duration::from_millis(500);

/// A server that keeps the heads of the requests it got.
async fn listening() -> (std::net::SocketAddr, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = heads.send(read_head(&mut stream).await);
            let _ = stream.write_all(&answer("Connection: close\r\n", b"ok")).await;
        }
    });
    (address, received)
}

#[tokio::test]
async fn a_request_says_who_asks_and_for_what() {
    let (address, mut heads) = listening().await;
    let from = Some("crawl@forager.example".to_owned());
    let http = Http::new(HttpConfig { from, ..config() }).unwrap();
    let page = Request {
        etag: Some("\"abc\"".to_owned()),
        last_modified: Some("Sat, 15 Jun 2024 08:00:00 GMT".to_owned()),
        accept: "text/html, */*;q=0.1",
        ..request(&format!("http://me:secret@{address}/a%20b?c=d#e"))
    };
    http.get(&page).await.unwrap();
    let head = heads.recv().await.unwrap();
    let mut lines: Vec<_> = head.trim_end().lines().map(str::to_owned).collect();
    lines[1..].sort_unstable();
    assert_eq!(
        lines,
        [
            "GET /a%20b?c=d HTTP/1.1",
            "accept-encoding: gzip, deflate, br, zstd",
            "accept: text/html, */*;q=0.1",
            "from: crawl@forager.example",
            &format!("host: {address}"),
            "if-modified-since: Sat, 15 Jun 2024 08:00:00 GMT",
            "if-none-match: \"abc\"",
            "user-agent: Forager/0.1 (+https://forager.example; crawl@forager.example)",
        ]
    );
}

#[tokio::test]
async fn a_condition_that_cannot_be_sent_is_left_out() {
    let (address, mut heads) = listening().await;
    let page = Request { etag: Some("a\r\nX-Evil: 1".to_owned()), ..request(&format!("http://{address}/")) };
    Http::new(config()).unwrap().get(&page).await.unwrap();
    let head = heads.recv().await.unwrap().to_lowercase();
    assert!(!head.contains("evil") && !head.contains("if-none-match"), "{head}");
}

#[test]
fn a_name_that_cannot_be_sent_is_an_error() {
    let wrong = HttpConfig { user_agent: "a\nb".to_owned(), ..config() };
    let error = Http::new(wrong).err().unwrap();
    assert_eq!(error, ConfigError::Header { name: "User-Agent", text: "a\nb".to_owned() });
}

#[tokio::test]
async fn an_answer_is_given_as_it_came() {
    let site = Site::new(|request| match request.uri().path() {
        "/moved" => {
            let answer = Response::builder().status(301).header(LOCATION, "/elsewhere");
            answer.body(Full::default()).unwrap()
        }
        "/busy" => {
            let answer = Response::builder().status(429).header("Retry-After", "120");
            answer.body(Full::from("later")).unwrap()
        }
        "/odd" => Response::builder().status(799).body(Full::default()).unwrap(),
        _ => {
            let answer = Response::builder().header("Content-Type", "text/html").header(ETAG, "\"v1\"");
            let answer = answer.header("Last-Modified", "Sat, 15 Jun 2024 08:00:00 GMT");
            answer.body(Full::from("<p>hello")).unwrap()
        }
    })
    .await;
    let http = Http::new(config()).unwrap();
    let now = jiff::Timestamp::UNIX_EPOCH;

    let page = http.get(&request(&site.url("/"))).await.unwrap();
    assert_eq!((page.status, &page.body[..], page.wire_bytes), (200, &b"<p>hello"[..], 8));
    assert_eq!((page.cut_off, page.undecoded.as_deref()), (None, None));
    assert_eq!((page.address, page.version), (site.address, hyper::Version::HTTP_11));
    assert_eq!((page.content_type(), page.etag()), (Some("text/html"), Some("\"v1\"")));
    assert_eq!(page.last_modified(), Some("Sat, 15 Jun 2024 08:00:00 GMT"));
    assert_eq!((page.location().as_deref(), page.retry_after(now)), (None, None));

    let moved = http.get(&request(&site.url("/moved"))).await.unwrap();
    assert_eq!(
        (moved.status, moved.location().as_deref()),
        (301, Some("/elsewhere")),
        "and it was not followed"
    );
    let busy = http.get(&request(&site.url("/busy"))).await.unwrap();
    assert_eq!((busy.status, busy.retry_after(now)), (429, Some("2m".parse().unwrap())));
    assert_eq!(http.get(&request(&site.url("/odd"))).await.unwrap().status, 799);
}

#[tokio::test]
async fn what_has_not_changed_comes_without_a_body() {
    let site = Site::new(|request| {
        let is_known = request.headers().get("If-None-Match").is_some_and(|etag| etag == "\"v1\"");
        let answer = Response::builder().status(if is_known { 304 } else { 200 }).header(ETAG, "\"v1\"");
        answer.body(if is_known { Full::default() } else { Full::from("page") }).unwrap()
    })
    .await;
    let http = Http::new(config()).unwrap();
    let first = http.get(&request(&site.url("/"))).await.unwrap();
    assert_eq!((first.status, &first.body[..]), (200, &b"page"[..]));
    let again = Request { etag: first.etag().map(str::to_owned), ..request(&site.url("/")) };
    let second = http.get(&again).await.unwrap();
    assert_eq!((second.status, second.body.len(), second.cut_off), (304, 0, None));
}

#[tokio::test]
async fn a_304_that_names_a_length_and_an_encoding_is_whole() {
    let head = "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\nContent-Encoding: gzip\r\n\r\n";
    let page = get(says(head).await).await.unwrap();
    assert_eq!((page.status, page.body.len(), page.cut_off), (304, 0, None));
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let site = Site::new(|_| Response::new(Full::from("page"))).await;
    let http = Http::new(config()).unwrap();
    let mut connects = 0;
    for _ in 0..50 {
        let page = http.clone().get(&request(&site.url("/"))).await.unwrap();
        connects += usize::from(page.timings.connect.is_some());
        assert!(page.timings.first_byte <= page.timings.whole);
    }
    // A connection is given back by a task of its own, so that the next request may just miss it.
    assert!((1..=5).contains(&connects), "{connects}");
    assert!(site.connections.load(Ordering::SeqCst) <= 5);
}

#[tokio::test]
async fn headers_that_trickle_are_not_waited_for() {
    let address = raw(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
        loop {
            stream.write_all(b"X-Slow: 1\r\n").await?;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await;
    let failure = get_with(&limited(|limits| limits.first_byte = SHORT), address).await.unwrap_err();
    assert_eq!(failure.class(), Class::TimedOut(Phase::FirstByte));
    assert_eq!(failure.to_string(), "127.0.0.1 did not answer within 500ms");
}

#[tokio::test]
async fn endless_interim_answers_are_not_waited_for() {
    let address = raw(|mut stream| async move {
        loop {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await?;
        }
    })
    .await;
    let failure = get_with(&limited(|limits| limits.first_byte = SHORT), address).await.unwrap_err();
    assert_eq!(failure.class(), Class::TimedOut(Phase::FirstByte));
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for() {
    let silent = || {
        raw(|stream| async move {
            tokio::time::sleep(LONG).await;
            drop(stream);
            Ok(())
        })
    };
    for (name, http) in [
        ("first byte", limited(|limits| limits.first_byte = SHORT)),
        ("whole", limited(|limits| limits.whole = SHORT)),
    ] {
        let failure = get_with(&http, silent().await).await.unwrap_err();
        let limit = SHORT;
        let host = "127.0.0.1".to_owned();
        assert_eq!(failure, Failure::TimedOut { host, phase: Phase::FirstByte, limit }, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_agrees_on_nothing_is_not_waited_for() {
    // It takes the connection, but never says anything about encryption.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let http = limited(|limits| limits.connect = SHORT);
    let failure = http.get(&request(&url)).await.unwrap_err();
    assert_eq!(failure.class(), Class::TimedOut(Phase::Connect));
    assert_eq!(failure.to_string(), "127.0.0.1 was not connected to within 500ms");
}

#[tokio::test]
async fn nobody_listening_is_a_failure_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failure = get(address).await.unwrap_err();
    assert_eq!(failure.class(), Class::Connect);
    assert!(failure.to_string().starts_with(&format!("{address} (127.0.0.1) cannot be connected to")));
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failure_of_dns() {
    let (nameserver, _) = servers::name_server(|_, _| vec![]).await;
    let http = Http::new(HttpConfig { nameserver: Some(nameserver), ..config() }).unwrap();
    let failure = http.get(&request("http://nowhere.example/")).await.unwrap_err();
    assert_eq!(failure.class(), Class::Dns);
    assert_eq!(failure.to_string(), "the host nowhere.example has no address");
}

#[tokio::test]
async fn what_is_not_http_is_named() {
    let cases: [(&str, &str, Class); 7] = [
        ("another protocol", "SSH-2.0-OpenSSH_9.6\r\n\r\n", Class::Protocol),
        ("no status", "HTTP/1.1 hello\r\n\r\n", Class::Protocol),
        ("only a body", "<html>hello</html>", Class::Protocol),
        ("nothing", "", Class::Protocol),
        ("half a head", "HTTP/1.1 200 OK\r\nContent-Ty", Class::Protocol),
        (
            "two lengths",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            Class::Protocol,
        ),
        ("a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nab", Class::Protocol),
    ];
    for (name, bytes, want) in cases {
        let got = get(says(bytes).await).await;
        assert_eq!(got.as_ref().map_err(Failure::class).err(), Some(want), "{name}: {got:?}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_without_an_answer_says_so() {
    let failure = get(says("").await).await.unwrap_err();
    assert_eq!(failure, Failure::Closed { host: "127.0.0.1".to_owned(), reused: false });
}

#[tokio::test]
async fn a_connection_that_ends_at_its_second_request_was_used() {
    let address = raw(|mut stream| async move {
        stream.write_all(&answer("", b"ok")).await?;
        read_head(&mut stream).await;
        Ok(())
    })
    .await;
    let http = Http::new(config()).unwrap();
    get_with(&http, address).await.unwrap();
    // Until a request finds one of the connections that its predecessors left.
    let failure = loop {
        match get_with(&http, address).await {
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure, Failure::Closed { host: "127.0.0.1".to_owned(), reused: true });
}

#[tokio::test]
async fn floods_of_headers_are_refused() {
    let long = format!("X: {}\r\n", "a".repeat(70_000));
    let too_large = Err(Class::HeadersTooLarge);
    let cases = [
        ("many", "X: 1\r\n".repeat(101)),
        ("one that is long", long),
        ("many that are long together", format!("X: {}\r\n", "a".repeat(1000)).repeat(80)),
    ];
    for (name, headers) in cases {
        let got = get(says(answer(&headers, b"ok")).await).await;
        assert_eq!(got.map(|page| page.status).map_err(|failure| failure.class()), too_large, "{name}");
    }
}

#[tokio::test]
async fn an_endless_header_is_refused() {
    let address = raw(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX: ").await?;
        loop {
            stream.write_all(&[b'a'; 4096]).await?;
        }
    })
    .await;
    assert_eq!(get(address).await.unwrap_err().class(), Class::HeadersTooLarge);
}

#[tokio::test]
async fn the_limits_of_headers_can_be_moved() {
    let page = says(answer(&"X: 1\r\n".repeat(150), b"ok")).await;
    let http = limited(|limits| limits.header_count = 200);
    assert_eq!(get_with(&http, page).await.unwrap().headers.len(), 151);
    let page = says(answer(&"X: 1\r\n".repeat(20), b"ok")).await;
    let http = limited(|limits| limits.header_count = 10);
    let failure = get_with(&http, page).await.unwrap_err();
    assert_eq!(failure.to_string(), "the headers of 127.0.0.1 are more than 65536 bytes or 10 lines");
}

#[tokio::test]
async fn a_slow_body_is_cut_off_and_what_came_is_kept() {
    let address = raw(|mut stream| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await?;
        loop {
            stream.write_all(b"a").await?;
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await;
    let page = get_with(&limited(|limits| limits.whole = SHORT), address).await.unwrap();
    assert_eq!((page.status, page.cut_off), (200, Some(CutOff::Time)));
    assert!(page.body.starts_with(b"a") && page.body.len() < 1000);
}

#[tokio::test]
async fn many_requests_at_once_are_answered_each_with_its_own() {
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let site = Site::new(move |request| {
        count.fetch_add(1, Ordering::SeqCst);
        Response::new(Full::from(Bytes::from(request.uri().path().to_owned())))
    })
    .await;
    let http = Http::new(config()).unwrap();
    let pages = (0..200).map(|number| {
        let (http, url) = (http.clone(), site.url(&format!("/{number}")));
        tokio::spawn(async move { http.get(&request(&url)).await.unwrap().body })
    });
    for (number, page) in pages.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(page.await.unwrap(), format!("/{number}"));
    }
    assert_eq!(served.load(Ordering::SeqCst), 200, "exactly one request each");
}

#[tokio::test]
async fn a_dropped_request_closes_its_connection() {
    let (closed, mut was_closed) = tokio::sync::mpsc::unbounded_channel();
    let address = raw(move |mut stream: TcpStream| {
        let closed = closed.clone();
        async move {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            while stream.write_all(&[b'a'; 4096]).await.is_ok() {}
            let _ = closed.send(());
            Ok(())
        }
    })
    .await;
    let http = limited(|limits| limits.body_bytes = 10_000);
    let page = get_with(&http, address).await.unwrap();
    assert_eq!((page.body.len(), page.cut_off), (10_000, Some(CutOff::BodyLimit)));
    tokio::time::timeout(LONG, was_closed.recv()).await.unwrap().unwrap();
}
