//! Servers on loopback, and a client that may talk to them.

#![allow(dead_code, reason = "each test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forager_fetch::address::AddressPolicy;
use forager_fetch::http::{Failure, Http, HttpConfig, Limits, Request, Response};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// Long enough never to pass in a test that works.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// A client's configuration that may connect to loopback.
pub(crate) fn config() -> HttpConfig {
    HttpConfig {
        user_agent: "Forager/0.1 (+https://forager.example; crawl@forager.example)".to_owned(),
        limits: Limits { connect: LONG, first_byte: LONG, whole: LONG, ..Limits::default() },
        addresses: AddressPolicy::allowing(&["127.0.0.0/8".parse().unwrap()]),
        ..HttpConfig::default()
    }
}

/// [`config`] with other limits.
pub(crate) fn limited(change: impl FnOnce(&mut Limits)) -> Http {
    let mut config = config();
    change(&mut config.limits);
    Http::new(config).unwrap()
}

pub(crate) fn request(url: &str) -> Request {
    Request::new(url.parse().unwrap())
}

/// Asks a server for `/` with a client of its own.
pub(crate) async fn get(address: SocketAddr) -> Result<Response, Failure> {
    get_with(&Http::new(config()).unwrap(), address).await
}

pub(crate) async fn get_with(http: &Http, address: SocketAddr) -> Result<Response, Failure> {
    http.get(&request(&format!("http://{address}/"))).await
}

/// Accepts connections at `ip`, and gives each to `serve` when the head of a request was read.
pub(crate) async fn raw_at<F, Served>(ip: &str, serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Served + Send + Sync + 'static,
    Served: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((ip, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            read_head(&mut stream).await;
            tokio::spawn(serve(stream));
        }
    });
    address
}

pub(crate) async fn raw<F, Served>(serve: F) -> SocketAddr
where
    F: Fn(TcpStream) -> Served + Send + Sync + 'static,
    Served: Future<Output = std::io::Result<()>> + Send + 'static,
{
    raw_at("127.0.0.1", serve).await
}

/// Answers every request with these bytes and closes.
pub(crate) async fn says(answer: impl Into<Bytes>) -> SocketAddr {
    let answer = answer.into();
    raw(move |mut stream| {
        let answer = answer.clone();
        async move {
            stream.write_all(&answer).await?;
            stream.shutdown().await
        }
    })
    .await
}

/// An answer with a body and its length.
pub(crate) fn answer(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Reads up to the empty line behind the headers of a request.
pub(crate) async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A server whose answers are made by a function of the request.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
}

impl Site {
    pub(crate) async fn new<F>(handle: F) -> Self
    where
        F: Fn(hyper::Request<hyper::body::Incoming>) -> hyper::Response<Full<Bytes>>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let handle = handle.clone();
                let service = service_fn(move |request| {
                    let answer = handle(request);
                    async move { Ok::<_, Infallible>(answer) }
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, connections }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A name server on loopback. `addresses` is told the name and how often it was asked for before.
pub(crate) async fn name_server<F>(addresses: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(&str, usize) -> Vec<IpAddr> + Send + 'static,
{
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let (name, is_v4, question) = read_question(&buffer[..length]);
            // The question for IPv4 is the one that counts; the one for IPv6 comes with it.
            let before =
                if is_v4 { count.fetch_add(1, Ordering::SeqCst) } else { count.load(Ordering::SeqCst) };
            let found: Vec<_> =
                addresses(&name, before).into_iter().filter(|ip| ip.is_ipv4() == is_v4).collect();
            let _ = socket.send_to(&dns_answer(&buffer[..2], question, &found), from).await;
        }
    });
    (address, asked)
}

/// The name in a question, whether it asks for IPv4, and its bytes.
fn read_question(packet: &[u8]) -> (String, bool, &[u8]) {
    let (mut at, mut labels) = (12, Vec::new());
    while packet[at] != 0 {
        let length = usize::from(packet[at]);
        labels.push(String::from_utf8_lossy(&packet[at + 1..=at + length]).to_lowercase());
        at += length + 1;
    }
    (labels.join("."), packet[at + 2] == 1, &packet[12..at + 5])
}

/// An answer whose records should not be kept at all.
fn dns_answer(id: &[u8], question: &[u8], found: &[IpAddr]) -> Vec<u8> {
    let count = u8::try_from(found.len()).unwrap();
    let mut packet = [id, &[0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0], question].concat();
    for address in found {
        let (kind, bytes) = match address {
            IpAddr::V4(v4) => (1, v4.octets().to_vec()),
            IpAddr::V6(v6) => (28, v6.octets().to_vec()),
        };
        let length = u8::try_from(bytes.len()).unwrap();
        packet.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 0, 0, length]);
        packet.extend(bytes);
    }
    packet
}
