//! A server that may have few open files: whoever connects leaves the queue those that it needs.

#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::net::TcpStream;

use crate::common::Queue;
use crate::serving::{Serving, found, free_port, info, put, stats};
use forager_server::proto::{StringList, UrlInfo};

/// How HTTP/2 begins; who has said it may be silent for long.
const HELLO: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// So many connections that say no more than this.
fn silent(port: u16, said: &[u8], count: usize) -> Vec<TcpStream> {
    let connect = || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(said).unwrap();
        stream
    };
    (0..count).map(|_| connect()).collect()
}

fn large(number: usize) -> UrlInfo {
    let values = vec!["x".repeat(200 << 10)];
    let metadata = [("large".to_owned(), StringList { values })].into();
    UrlInfo { metadata, ..info(&format!("http://h{}.example/{number}", number % 50), "") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_connected_and_silent_takes_no_files_from_the_queue() {
    let (queue, figures) = (Queue::nowhere(), free_port());
    let args = ["serve", "--port", "0", "--prometheus", &figures.to_string()];
    let server = Serving::start(&mut queue.after("ulimit -n 256", &args));
    let mut client = server.client().await;
    // More than files may be open, and no more than the system lets wait.
    let silent = [silent(server.port, HELLO, 200), silent(figures, b"GET /metrics HTTP/1.1\r\n", 100)];
    // Far more than is held before it is written to files of its own.
    for batch in 0..10 {
        put(&mut client, (0..40).map(|n| found(large(batch * 40 + n))).collect()).await;
    }
    drop(silent);
    put(&mut server.client().await, vec![found(info("http://last.example/", ""))]).await;
    assert_eq!(stats(&mut client, "").await.size, 401);
    drop(client);
    let (status, told) = server.stop();
    assert_eq!(status, 0, "{told}");
    assert!(told.contains("128 connections at a time, for no more than 256 files may be open"), "{told}");
    assert_eq!(told.lines().count(), 2, "and where figures are: {told}");
}

/// What is usual is a limit that each process may raise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_has_as_many_open_files_as_it_may_have() {
    let queue = Queue::nowhere();
    let server = Serving::start(&mut queue.after("ulimit -S -n 64", &["serve", "--port", "0"]));
    let mut client = server.client().await;
    let silent = silent(server.port, HELLO, 200);
    put(&mut client, vec![found(info("http://a.example/", ""))]).await;
    // All of them are served, and not only taken in by the system.
    while server.open_files() < silent.len() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    drop((silent, client));
    assert_eq!(server.stop().0, 0);
}
