//! The server itself: who may call, what it tells of itself, how it keeps to its limits, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::troubled::Troubled;
use common::*;
use forager_frontier::{Frontier as _, Memory, Settings};
use forager_server::limits::{MAX_WATCHERS, MAX_WATCHES};
use forager_server::proto::ack_message::Status;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{Empty, GetParams, Local, UrlItem};
use forager_server::{Options, Server, Tls, export};
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tonic::client::Grpc;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_prost::ProstCodec;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

async fn channel(world: &World) -> Channel {
    Channel::from_shared(world.address.clone()).unwrap().connect().await.unwrap()
}

/// A stream whose items are sent one by one.
fn sending() -> (mpsc::UnboundedSender<UrlItem>, impl stream::Stream<Item = UrlItem> + Send + 'static) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let items = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    (sender, items)
}

#[tokio::test]
async fn calls_without_the_token_are_turned_away() {
    let options = Options { token: Some("secret".into()), ..Options::default() };
    let world = World::with(options).await;
    let mut client = UrlFrontierClient::new(channel(&world).await);
    let cases = [
        ("no token", None, Err(Code::Unauthenticated)),
        ("another", Some("Bearer other"), Err(Code::Unauthenticated)),
        ("the token", Some("Bearer secret"), Ok(())),
    ];
    for (name, shown, want) in cases {
        let mut request = Request::new(Empty {});
        if let Some(shown) = shown {
            request.metadata_mut().insert("authorization", MetadataValue::try_from(shown).unwrap());
        }
        let answer = client.list_nodes(request).await;
        assert_eq!(answer.map(|_| ()).map_err(|status| status.code()), want, "{name}");
    }
    let put = client.put_ur_ls(stream::iter([found(info("http://a.example/"))])).await;
    assert_eq!(put.unwrap_err().code(), Code::Unauthenticated, "nor are streams let in");
}

#[tokio::test]
async fn it_says_how_it_is_to_anybody() {
    let options = Options { token: Some("secret".into()), ..Options::default() };
    let world = World::with(options).await;
    let mut client = HealthClient::new(channel(&world).await);
    for service in ["", "urlfrontier.URLFrontier"] {
        let request = HealthCheckRequest { service: service.into() };
        let serving = tonic_health::ServingStatus::Serving as i32;
        assert_eq!(client.check(request).await.unwrap().into_inner().status, serving, "{service:?}");
    }
}

/// Whoever need not show the token has small questions, asks them at once, and has not all the room there is.
#[tokio::test]
async fn who_shows_no_token_takes_little_room() {
    let options = Options { token: Some("secret".into()), ..Options::default() };
    let world = World::with(options).await;
    let large = HealthCheckRequest { service: "x".repeat(5000) };
    let refused = HealthClient::new(channel(&world).await).check(large).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");

    let mut asking = Grpc::new(channel(&world).await);
    asking.ready().await.unwrap();
    let question = stream::once(async { HealthCheckRequest::default() }).chain(stream::pending());
    let codec = ProstCodec::<HealthCheckRequest, HealthCheckResponse>::default();
    let path = "/grpc.health.v1.Health/Check".parse().unwrap();
    let late = asking.client_streaming(Request::new(question), path, codec).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded, "a question that does not end: {late}");

    let mut client = HealthClient::new(channel(&world).await);
    let mut watches = Vec::new();
    for _ in 0..MAX_WATCHES {
        watches.push(client.watch(HealthCheckRequest::default()).await.unwrap());
    }
    let refused = client.watch(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    client.check(HealthCheckRequest::default()).await.unwrap();
    drop(watches);
    while client.watch(HealthCheckRequest::default()).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// However many take all that they can have, and stay.
#[tokio::test]
async fn nobody_is_kept_from_asking_how_it_is() {
    let world = World::in_memory().await;
    let mut taken = Vec::new();
    for _ in 0..256 {
        let mut client = HealthClient::new(channel(&world).await);
        for _ in 0..9 {
            taken.extend(client.watch(HealthCheckRequest::default()).await);
        }
    }
    assert_eq!(taken.len(), 256 * MAX_WATCHES);
    let mut client = HealthClient::new(channel(&world).await);
    client.check(HealthCheckRequest::default()).await.unwrap();
    client.watch(HealthCheckRequest::default()).await.unwrap();
}

/// Nor does who asks for figures, and stays.
#[tokio::test]
async fn who_asks_for_figures_does_not_stay() {
    let world = World::in_memory().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(export(listener, world.metrics.clone(), std::future::pending()));
    let mut silent = Vec::new();
    for number in 0..2 * MAX_WATCHERS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let said =
            ["", "GET /metrics HTTP/1.1\r\nho", "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"][number % 3];
        stream.write_all(said.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    // It waits for those before it, of whom none is waited for any longer in the end.
    assert!(asked(address, "/healthz").await.starts_with("HTTP/1.1 200"));
    for mut stream in silent {
        let mut heard = Vec::new();
        let ended = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut heard)).await;
        assert!(ended.is_ok(), "it is given up");
    }
}

#[tokio::test]
async fn it_says_that_it_is_ending() {
    let mut world = World::in_memory().await;
    let mut client = HealthClient::new(channel(&world).await);
    let mut watches = Vec::new();
    for service in ["", "urlfrontier.URLFrontier"] {
        let request = HealthCheckRequest { service: service.into() };
        let mut watch = client.watch(request).await.unwrap().into_inner();
        let serving = tonic_health::ServingStatus::Serving as i32;
        assert_eq!(watch.message().await.unwrap().unwrap().status, serving, "{service:?}");
        watches.push(watch);
    }
    // Nor does one keep it who goes on asking what it offers.
    let (_sender, asked) = mpsc::unbounded_channel::<ServerReflectionRequest>();
    let asked = stream::unfold(asked, |mut asked| async { Some((asked.recv().await?, asked)) });
    let mut reflection = ServerReflectionClient::new(channel(&world).await);
    let _offers = reflection.server_reflection_info(asked).await.unwrap();
    let begun = std::time::Instant::now();
    world.stop();
    for watch in &mut watches {
        let not_serving = tonic_health::ServingStatus::NotServing as i32;
        assert_eq!(watch.message().await.unwrap().unwrap().status, not_serving);
        assert_eq!(watch.message().await.unwrap_err().code(), Code::Unavailable);
    }
    world.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "whoever watches does not keep it");
}

#[tokio::test]
async fn what_is_too_large_is_called_the_same_everywhere() {
    let mut world = World::in_memory().await;
    let large = "x".repeat(5 << 20);
    assert_eq!(world.status(&large).await.unwrap_err(), Code::ResourceExhausted);
    let mut answers = world.client.put_ur_ls(stream::iter([found(info(&large))])).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap_err().code(), Code::ResourceExhausted);
}

/// A connection that says nothing of use does not take the place of others for ever.
#[tokio::test]
async fn who_does_not_speak_http_is_given_up() {
    let world = World::in_memory().await;
    let address = world.address.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"P").await.unwrap();
    let mut heard = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut heard)).await;
    assert!(ended.is_ok(), "it waits for the rest");
}

/// A certificate for `localhost`, and who trusts nobody else.
fn certified() -> (Tls, TlsConnector) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tls = Tls { certificate: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() };
    (tls, TlsConnector::from(Arc::new(config)))
}

#[tokio::test]
async fn who_says_nothing_after_an_encrypted_handshake_is_given_up() {
    let (tls, trusting) = certified();
    let memory = Arc::new(Memory::new(Settings::default()).unwrap());
    let options = Options { tls: Some(tls), ..Options::default() };
    let server = Server::new(memory, Arc::new(Timestamp::now), options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.run(listener, std::future::pending()));
    let hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let is_given_up = async |said: &str| {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut stream = trusting.connect("localhost".try_into().unwrap(), stream).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        let mut heard = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut heard)).await.is_ok()
    };
    let ended = tokio::join!(is_given_up(""), is_given_up(&hello[..hello.len() - 10]), is_given_up(hello));
    assert_eq!(ended, (true, true, false), "silent, almost silent, and one that speaks HTTP/2");
}

#[tokio::test]
async fn compressed_messages_are_read_within_the_same_limit() {
    let mut world = World::in_memory().await;
    world.client = world.client.clone().send_compressed(CompressionEncoding::Gzip);
    world.good(vec![found(info("http://a.example/"))]).await;
    let large = UrlItem { id: "x".repeat(5 << 20), ..found(info("http://b.example/")) };
    let mut answers = world.client.put_ur_ls(stream::iter([large])).await.unwrap().into_inner();
    assert_eq!(answers.message().await.unwrap_err().code(), Code::ResourceExhausted);
}

/// A reader that takes nothing more is left in the end, and what it has not taken is anybody's again.
#[tokio::test]
async fn what_was_not_read_is_given_back_when_it_ends() {
    let mut world = World::in_a_folder().await;
    let long = "x".repeat(2000);
    let items = (0..3000).map(|n| found(placed(&format!("{n} {long}"), &format!("k{n}"), "")));
    world.good(items.collect()).await;
    let mut answers = world.client.get_ur_ls(any(1, 0)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    world.stop();
    world.ended().await;
    let now = jiff::Timestamp::from_second(START.into()).unwrap();
    let held = world.frontier.stats(Some("DEFAULT"), now).await.unwrap()[0].in_flight;
    assert!(held < 3000, "{held}");
}

#[tokio::test]
async fn it_says_what_it_offers_by_the_older_name_too() {
    use tonic_reflection::pb::v1alpha::ServerReflectionRequest;
    use tonic_reflection::pb::v1alpha::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1alpha::server_reflection_request::MessageRequest;
    let world = World::in_memory().await;
    let mut client = ServerReflectionClient::new(channel(&world).await);
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = ServerReflectionRequest { host: String::new(), message_request };
    let mut answers = client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().unwrap().message_response.is_some());
}

#[tokio::test]
async fn it_says_what_it_offers() {
    let world = World::in_memory().await;
    let mut client = ServerReflectionClient::new(channel(&world).await);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    assert!(names.contains(&"urlfrontier.URLFrontier".to_owned()), "{names:?}");
}

#[tokio::test]
async fn headers_are_bounded() {
    let world = World::in_memory().await;
    let mut client = UrlFrontierClient::new(channel(&world).await);
    let mut request = Request::new(Empty {});
    request.metadata_mut().insert("large", MetadataValue::try_from("x".repeat(100_000)).unwrap());
    assert!(client.list_nodes(request).await.is_err());
    let mut client = UrlFrontierClient::new(channel(&world).await);
    client.list_nodes(Empty {}).await.unwrap();
}

/// A client that sends for ever and reads nothing gets so far and no further.
#[tokio::test]
async fn who_reads_no_acknowledgements_is_made_to_wait() {
    let mut world = World::in_memory().await;
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let counter = sent.clone();
    let id = "i".repeat(1000);
    let items = stream::iter(0u64..).map_to(move |n| {
        counter.store(n, std::sync::atomic::Ordering::SeqCst);
        UrlItem { id: id.clone(), ..found(info(&format!("http://a.example/{n}"))) }
    });
    let answers = world.client.put_ur_ls(items).await.unwrap();
    let mut last = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = sent.load(std::sync::atomic::Ordering::SeqCst);
        if now == last && now > 0 {
            break;
        }
        assert!(now < 200_000, "it goes on and on");
        last = now;
    }
    // The others are served meanwhile, and it goes on when it reads.
    assert!(world.stats("", "").await.size > 0);
    let mut answers = answers.into_inner();
    for _ in 0..last + 1000 {
        answers.message().await.unwrap().unwrap();
    }
}

trait MapTo: Sized {
    fn map_to<T>(self, to: impl FnMut(u64) -> T + Send + 'static) -> stream::BoxStream<'static, T>;
}

impl<S: stream::Stream<Item = u64> + Send + 'static> MapTo for S {
    fn map_to<T>(self, to: impl FnMut(u64) -> T + Send + 'static) -> stream::BoxStream<'static, T> {
        Box::pin(self.map(to))
    }
}

#[tokio::test]
async fn what_has_arrived_is_acknowledged_when_it_ends() {
    let mut world = World::in_memory().await;
    let (sender, items) = sending();
    let mut answers = world.client.put_ur_ls(items).await.unwrap().into_inner();
    sender.send(found(info("http://a.example/"))).unwrap();
    assert_eq!(answers.message().await.unwrap().unwrap().id, "http://a.example/");
    sender.send(found(info("http://b.example/"))).unwrap();
    world.stop();
    // Kept or failed, but told; then the stream ends with a reason.
    let mut told = Vec::new();
    let end = loop {
        match answers.message().await {
            Ok(Some(ack)) => told.push((ack.id, Status::try_from(ack.status).unwrap())),
            Ok(None) => panic!("an end without a reason"),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable);
    world.ended().await;
    let stats =
        world.frontier.stats(Some("DEFAULT"), jiff::Timestamp::from_second(START.into()).unwrap()).await;
    let kept = 1 + told.iter().filter(|(_, status)| *status == Status::Ok).count() as u64;
    assert_eq!(stats.unwrap()[0].queued, kept, "{told:?}");
}

#[tokio::test]
async fn it_ends_though_clients_stay() {
    let mut world = World::in_memory().await;
    world.good(vec![found(info("http://a.example/"))]).await;
    let (_sender, items) = sending();
    let _answers = world.client.put_ur_ls(items).await.unwrap();
    world.stop();
    world.ended().await;
    assert!(UrlFrontierClient::connect(world.address.clone()).await.is_err(), "nobody listens any more");
}

/// What a server says of a path.
async fn asked(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

#[tokio::test]
async fn who_is_ending_is_not_ready() {
    let mut world = World::in_memory().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(export(listener, world.metrics.clone(), std::future::pending()));
    world.stop();
    world.ended().await;
    assert!(asked(address, "/readyz").await.starts_with("HTTP/1.1 503"));
}

/// Waits for what a server says of a path to begin like this.
async fn says(address: std::net::SocketAddr, path: &str, start: &str) {
    let told = async {
        while !asked(address, path).await.starts_with(start) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_mins(1), told).await.is_ok(), "{path} never says {start:?}");
}

/// One whose disk stalls keeps every thread that calls are made on, so that nothing of them goes on.
#[tokio::test]
async fn who_looks_after_a_server_learns_that_its_queue_stalls() {
    let runtime = |threads| Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let (calls, aside) = (runtime(2), runtime(1));
    let queue = Arc::new(Troubled::new());
    let world = calls.spawn(World::over(queue.clone(), Options::default(), None)).await.unwrap();
    let metrics = world.metrics.clone();
    let (told, address) = tokio::sync::oneshot::channel();
    aside.spawn(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        told.send(listener.local_addr().unwrap()).unwrap();
        export(listener, metrics, std::future::pending()).await
    });
    let address = address.await.unwrap();
    says(address, "/readyz", "HTTP/1.1 200").await;
    queue.stall(true);
    let held: Vec<_> = [(); 2]
        .map(|()| {
            let queue = queue.clone();
            calls.spawn(async move { queue.catalog().await.map(drop) })
        })
        .into();
    says(address, "/readyz", "HTTP/1.1 503").await;
    says(address, "/healthz", "HTTP/1.1 200").await;
    queue.stall(false);
    says(address, "/readyz", "HTTP/1.1 200").await;
    for call in held {
        call.await.unwrap().unwrap();
    }
    calls.shutdown_background();
    aside.shutdown_background();
}

/// Nobody tells it to stop: a call finds out that the schema is not the one that it knows.
#[tokio::test]
async fn one_whose_queue_cannot_be_used_any_more_is_not_ready_and_ends() {
    let mut world = World::in_a_database().await;
    world.good(vec![found(info("http://a.example/"))]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(export(listener, world.metrics.clone(), std::future::pending()));
    assert!(asked(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    let tables = world.tables.as_ref().unwrap();
    tables.migrate(tables.newest() - 1).await.unwrap();
    let refused = world.client.get_active(Local::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    assert!(asked(address, "/readyz").await.starts_with("HTTP/1.1 503"));
    let ended = world.outcome().await.unwrap_err();
    assert_eq!(ended.to_string(), refused.message(), "it is told why");
}

#[tokio::test]
async fn figures_have_the_names_that_dashboards_know() {
    let mut world = World::in_memory().await;
    world.good(vec![found(info("http://a.example/")), due(info("http://b.example/"), 0u64)]).await;
    world.put(vec![found(info("http://a.example/"))]).await;
    world.batches(vec![forager_server::proto::DiscoveredBatch::default()]).await;
    world.get(GetParams::default()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(export(listener, world.metrics.clone(), std::future::pending()));
    for path in ["/healthz", "/readyz"] {
        assert!(asked(address, path).await.starts_with("HTTP/1.1 200 OK"), "{path}");
    }
    let page = asked(address, "/metrics").await;
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    for line in [
        "frontier_getURLs_calls_total 1",
        "frontier_getURLs_total 1",
        "# TYPE frontier_getURLs_latency_seconds summary",
        "frontier_getURLs_latency_seconds_count 1",
        "frontier_putURLs_calls_total 2",
        "frontier_putDiscovered_calls_total 1",
        "frontier_putURLs_total 3",
        "frontier_putURLs_discovered_total{discovered=\"true\"} 2",
        "frontier_putURLs_discovered_total{discovered=\"false\"} 1",
        "frontier_putURLs_ignored_total 1",
        "frontier_putURLs_completed_total 1",
        "frontier_putURLs_forward_notready_total 0",
        "forager_urlfrontier_calls_total{call=\"GetURLs\"} 1",
        "forager_urlfrontier_put_items_total{status=\"ok\"} 2",
        "forager_urlfrontier_get_latency_seconds_count 1",
        "forager_urlfrontier_connections 1",
    ] {
        assert_eq!(page.lines().filter(|told| *told == line).count(), 1, "{line} is not once in\n{page}");
    }
    let sum = page.lines().find_map(|line| line.strip_prefix("frontier_getURLs_latency_seconds_sum "));
    assert!(sum.unwrap().parse::<f64>().unwrap() > 0.0, "{page}");
    assert!(page.ends_with("\n# EOF\n") && page.matches("# EOF").count() == 1, "{page}");
}
