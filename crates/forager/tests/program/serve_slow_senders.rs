//! Clients that begin to send and do not go on: the server keeps little of what they have sent.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::time::Duration;

use crate::common::Queue;
use crate::serving::{Serving, found, get, info, of_queue, put};
use bytes::Bytes;
use flate2::write::GzEncoder;
use h2::{RecvStream, SendStream};
use http::Request;
use tokio::net::TcpStream;
use tonic::codec::CompressionEncoding;

/// How many connections there are, and calls on each.
const CONNECTIONS: usize = 4;
const CALLS: usize = 40;
/// How much of a message is sent that would have 4 MiB.
const SENT: usize = 3900 << 10;
/// What the server may have, in MiB. Without limits it would have twice as much.
const MOST_MEMORY: u64 = 330;

const PUT_URLS: &str = "/urlfrontier.URLFrontier/PutURLs";
const CHECK: &str = "/grpc.health.v1.Health/Check";

/// Calls that are under way, of which none is over.
type Held = Vec<(SendStream<Bytes>, tokio::task::JoinHandle<Option<String>>)>;

/// Begins calls on a connection of their own.
async fn begin(server: &Serving, path: &str, held: &mut Held) {
    let message = [&[0][..], &(4_u32 << 20).to_be_bytes(), &vec![b'\n'; SENT]].concat();
    send(server, path, "identity", &message.into(), held).await;
}

/// Sends the same on each of some calls on a connection of their own.
async fn send(server: &Serving, path: &str, packing: &str, bytes: &Bytes, held: &mut Held) {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..CALLS {
        client = client.ready().await.unwrap();
        let request = Request::post(format!("http://127.0.0.1{path}"));
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        let request = request.header("grpc-encoding", packing);
        let (answer, mut sender) = client.send_request(request.body(()).unwrap(), false).unwrap();
        // A call that is refused at once takes nothing more.
        let _ = sender.send_data(bytes.clone(), false);
        let status = tokio::spawn(async move {
            let answer = answer.await.ok()?;
            let status = match answer.headers().get("grpc-status").cloned() {
                Some(status) => status,
                None => trailer(answer.into_body()).await?,
            };
            Some(status.to_str().unwrap().to_owned())
        });
        held.push((sender, status));
    }
}

/// The status of a stream, when it ends.
async fn trailer(mut body: RecvStream) -> Option<http::HeaderValue> {
    while let Some(data) = body.data().await {
        data.ok()?;
    }
    body.trailers().await.ok()??.get("grpc-status").cloned()
}

/// Waits until the server has read all that it will.
async fn at_rest(server: &Serving) -> u64 {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_secs(2)).await;
        let now = server.most_memory();
        if now == before {
            return now;
        }
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_begins_and_does_not_go_on_cannot_exhaust_the_memory() {
    const RESOURCE_EXHAUSTED: &str = "8";
    let queue = Queue::nowhere();
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
    let mut held = Held::new();
    for _ in 0..CONNECTIONS {
        begin(&server, PUT_URLS, &mut held).await;
    }
    let memory = at_rest(&server).await;
    assert!(memory < MOST_MEMORY, "{memory} MiB");
    let (over, going): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, status)| status.is_finished());
    assert!(over.len() > CALLS && going.len() > 20, "{} and {}", over.len(), going.len());
    for (_, status) in over {
        assert_eq!(status.await.unwrap().unwrap(), RESOURCE_EXHAUSTED);
    }
    // Whoever sends what is not large is served meanwhile.
    let mut client = server.client().await;
    put(&mut client, vec![found(info("http://small.example/", "small"))]).await;
    assert_eq!(get(&mut client, of_queue("small", 1)).await, ["http://small.example/"]);
    drop((going, client));
    assert_eq!(server.stop(), (0, String::new()));
}

/// A message of four thousand bytes that becomes four million, and the room for it that is kept for the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_packs_much_into_little_cannot_exhaust_the_memory() {
    const RESOURCE_EXHAUSTED: &str = "8";
    // The name, and a field that nobody knows.
    let item = [&[0x1a, 1, b'i', 0x7a][..], &[0x80, 0x92, 0xf4, 0x01], &vec![0; 4_000_000]].concat();
    let mut packing = GzEncoder::new(Vec::new(), flate2::Compression::best());
    packing.write_all(&item).unwrap();
    let packed = packing.finish().unwrap();
    assert!(packed.len() < 5000);
    let message = [&[1][..], &u32::try_from(packed.len()).unwrap().to_be_bytes(), &packed].concat();
    let queue = Queue::nowhere();
    let server = Serving::start(&mut queue.command(&["serve", "--port", "0"]));
    let mut held = Held::new();
    for _ in 0..CONNECTIONS {
        send(&server, PUT_URLS, "gzip", &message.clone().into(), &mut held).await;
    }
    let memory = at_rest(&server).await;
    assert!(memory < MOST_MEMORY, "{memory} MiB");
    let (over, going): (Vec<_>, Vec<_>) = held.into_iter().partition(|(_, status)| status.is_finished());
    assert!(over.len() > CALLS && going.len() > 20, "{} and {}", over.len(), going.len());
    for (_, status) in over {
        assert_eq!(status.await.unwrap().unwrap(), RESOURCE_EXHAUSTED);
    }
    // Whoever leaves makes room.
    drop(going);
    let mut client = server.client().await.send_compressed(CompressionEncoding::Gzip);
    put(&mut client, vec![found(info(&format!("http://packed.example/{}", "x".repeat(60_000)), "packed"))])
        .await;
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));
}

/// What needs no token takes next to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_token_cannot_take_memory() {
    let queue = Queue::nowhere();
    let mut command = queue.command(&["serve", "--port", "0"]);
    let server = Serving::start(command.env("FORAGER_TOKEN", "secret"));
    let before = server.most_memory();
    let mut held = Held::new();
    for path in [CHECK, PUT_URLS, "/urlfrontier.URLFrontier/ListNodes", "/nowhere.Service/Call"] {
        begin(&server, path, &mut held).await;
    }
    let memory = at_rest(&server).await;
    assert!(memory < before + 40, "{before} and {memory} MiB");
    for (_, status) in held {
        assert_ne!(status.await.unwrap().as_deref(), Some("0"), "none is answered as if all were well");
    }
    assert_eq!(server.stop(), (0, String::new()));
}
