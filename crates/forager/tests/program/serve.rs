//! `forager serve`, as a process of its own.

use crate::common;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::common::{Queue, forager};
use crate::serving::{Serving, found, free_port, get, info, known, lasting, one_of_each, put, stats};
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{
    DiscoveredBatch, Empty, GetParams, Local, Pagination, QueueDelayParams, UrlInfo,
};
use futures_util::stream;
use rcgen::{CertificateParams, KeyPair};
use tonic::transport::{Certificate, Channel, ClientTlsConfig};
use tonic::{Code, Request};

fn serve(queue: &Queue, args: &[&str]) -> Serving {
    Serving::start(queue.command(&["serve", "--port", "0"]).args(args))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_says_when_it_listens_and_ends_well() {
    let queue = Queue::nowhere();
    let server = serve(&queue, &["-h", "frontier.example", "rocksdb.path=/data", "rocksdb.purge"]);
    assert_eq!(server.line, format!("Started URLFrontierServer on port {}\n", server.port));
    let nodes = server.client().await.list_nodes(Empty {}).await.unwrap().into_inner();
    assert_eq!(nodes.values, [format!("frontier.example:{}", server.port)]);
    let passed_over =
        "forager: passed over, as this server has no such settings: rocksdb.path, rocksdb.purge\n".to_owned();
    assert_eq!(server.stop(), (0, passed_over));
}

/// As existing deployments call it, with options of one letter and a file of settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_listens_and_reads_settings_as_that_of_urlfrontier_does() {
    let queue = Queue::nowhere();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let settings = queue.folder().join("config.ini");
    std::fs::write(&settings, "# ours\nrocksdb.path = /data\nputURLs.max.inflight = 2\n").unwrap();
    let port = free.port().to_string();
    let args = ["serve", "-p", &port, "-c", "config.ini", "rocksdb.purge"];
    let server = Serving::start(&mut queue.command(&args));
    assert_eq!(server.line, format!("Started URLFrontierServer on port {port}\n"));
    put(&mut server.client().await, vec![found(info("http://a.example/", ""))]).await;
    let passed_over =
        "forager: passed over, as this server has no such settings: rocksdb.path, rocksdb.purge\n".to_owned();
    assert_eq!(server.stop(), (0, passed_over));
    std::fs::write(&settings, "putURLs.max.inflight = many\n").unwrap();
    let ran = queue.command(&args).output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(4), "{told}");
    assert!(told.contains("putURLs.max.inflight"), "{told}");
}

#[test]
fn a_second_one_is_told_who_has_the_queue() {
    let queue = Queue::nowhere();
    let server = serve(&queue, &["--listen", "localhost", "--token", "secret"]);
    let ran = queue.command(&["serve", "--port", "0", "--lock-timeout", "0s"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(8));
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(told.contains("is in use by") && !told.contains("secret"), "{told}");
    let ran = queue.command(&["serve", "--port", &server.port.to_string()]).output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(told.contains(&format!("cannot listen on 127.0.0.1:{}", server.port)), "{told}");
    server.stop();
}

#[test]
fn what_cannot_be_listened_on_is_told_with_its_option() {
    let queue = Queue::nowhere();
    let port = free_port().to_string();
    let ran = queue.command(&["serve", "-p", &port, "-s", &port]).output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(4), "{told}");
    assert!(told.contains(&format!("cannot listen on 127.0.0.1:{port} (--prometheus)")), "{told}");
}

/// The status of each mistake is that of its help.
#[test]
fn wrong_flags_and_wrong_wishes_have_statuses_of_their_own() {
    let help = forager().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let cases: [(&[&str], i32, &str); 4] = [
        (&["--port", "x"], 2, "2  a flag is wrong"),
        (&["--nowhere"], 2, "2  a flag is wrong"),
        (&["putURLs.max.inflight=many"], 4, "4  something else that was asked for"),
        (&["--settings", "nowhere.ini"], 4, "4  something else that was asked for"),
    ];
    for (args, status, said) in cases {
        let ran = forager().arg("serve").args(args).output().unwrap();
        assert_eq!(ran.status.code(), Some(status), "{args:?}");
        assert!(help.contains(said), "{help}");
    }
}

#[test]
fn strangers_are_not_served_unasked() {
    let cases: [(&str, &[&str], &str); 5] = [
        ("nothing", &[], "a token (--token) and encryption (--tls-cert); add them, or"),
        ("a file that is not there", &["--token-file", "nowhere"], "cannot read nowhere"),
        ("a token", &["--token", "secret"], "lacks encryption (--tls-cert); add it, or"),
        ("a certificate", &["--tls-cert", "c.pem", "--tls-key", "k.pem"], "a token (--token)"),
        ("a token that is none", &["--token", " "], "an empty token opens to everybody"),
    ];
    for (name, args, lacking) in cases {
        let ran =
            forager().args(["serve", "--port", "0", "--listen", "0.0.0.0"]).args(args).output().unwrap();
        let told = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(4), "{name}: {told}");
        assert!(told.contains(lacking), "{name}: {told}");
        assert!(ran.stdout.is_empty(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_served_with_a_warning_where_somebody_insists() {
    let queue = Queue::nowhere();
    let server = serve(&queue, &["--listen", "0.0.0.0", "--insecure"]);
    server.client().await.list_nodes(Empty {}).await.unwrap();
    let (status, told) = server.stop();
    assert_eq!(status, 0);
    assert!(told.contains("a token (--token) and encryption (--tls-cert)"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_has_to_be_shown() {
    for (variable, value) in [("FORAGER_TOKEN", "from outside"), ("FORAGER_TOKEN_FILE", "token.txt")] {
        let queue = Queue::nowhere();
        std::fs::write(queue.folder().join("token.txt"), "from outside\n").unwrap();
        let server = Serving::start(queue.command(&["serve", "--port", "0"]).env(variable, value));
        let mut client = server.client().await;
        let turned_away = client.list_nodes(Empty {}).await.unwrap_err().code();
        assert_eq!(turned_away, Code::Unauthenticated, "{variable}");
        let mut request = Request::new(Empty {});
        request.metadata_mut().insert("authorization", "Bearer from outside".parse().unwrap());
        client.list_nodes(request).await.unwrap();
        assert_eq!(server.stop(), (0, String::new()), "{variable}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_encrypted_on_request() {
    let queue = Queue::nowhere();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    std::fs::write(queue.folder().join("cert.pem"), &certificate).unwrap();
    std::fs::write(queue.folder().join("key.pem"), key.serialize_pem()).unwrap();
    let server = serve(&queue, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    let trusting = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&certificate));
    let address = format!("https://localhost:{}", server.port);
    let channel =
        Channel::from_shared(address).unwrap().tls_config(trusting).unwrap().connect().await.unwrap();
    let mut client = UrlFrontierClient::new(channel);
    client.list_nodes(Empty {}).await.unwrap();
    let plain = UrlFrontierClient::connect(format!("http://127.0.0.1:{}", server.port)).await;
    let answer = match plain {
        Ok(mut client) => client.list_nodes(Empty {}).await.map(|_| ()).map_err(|status| status.code()),
        Err(_) => Err(Code::Unavailable),
    };
    assert!(answer.is_err(), "not in the clear");
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));
    std::fs::write(queue.folder().join("key.pem"), "no key").unwrap();
    let args = ["serve", "--port", "0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let ran = queue.command(&args).output().unwrap();
    assert!(String::from_utf8(ran.stderr).unwrap().contains("cannot be used"));
    assert_eq!((ran.status.code(), ran.stdout), (Some(4), Vec::new()), "before it says that it listens");
    std::fs::write(queue.folder().join("cert.pem"), "").unwrap();
    let ran = queue.command(&args).output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert!(told.contains("cert.pem cannot be used: there is no certificate in it"), "{told}");
}

/// No limit of their own: a stream goes on as far as all streams may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_limit_to_what_is_in_flight_is_one_that_can_be_asked_for() {
    for (items, batches) in [("0", "0"), ("-1", "-1"), ("1", "1")] {
        let queue = Queue::nowhere();
        let keys = [format!("putURLs.max.inflight={items}"), format!("putDiscovered.max.inflight={batches}")];
        let server = serve(&queue, &[&keys[0], &keys[1]]);
        let mut client = server.client().await;
        put(&mut client, (0..5000).map(|n| found(info(&format!("http://a.example/{n}"), ""))).collect())
            .await;
        let batch = |b: usize| DiscoveredBatch {
            id: b.to_string(),
            items: (0..100).map(|n| info(&format!("http://b.example/{b}/{n}"), "")).collect(),
        };
        let mut answers = client.put_discovered(stream::iter((0..50).map(batch))).await.unwrap().into_inner();
        let mut taken = 0;
        while let Some(ack) = answers.message().await.unwrap() {
            assert_eq!(ack.statuses, [0; 100], "{}", ack.id);
            taken += 1;
        }
        assert_eq!((taken, stats(&mut client, "").await.size), (50, 10_000), "{items}");
        drop(client);
        assert_eq!(server.stop(), (0, String::new()), "{items}");
    }
}

/// Whose turn it is outlives an end and a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_go_on_taking_turns_after_a_restart() {
    const KEYS: usize = 9;
    let queue = Queue::nowhere();
    let url = |n: usize| format!("http://h{n}.example/");
    let mut turns = Vec::new();
    for end in [Serving::kill, |server: Serving| drop(server.stop()), Serving::kill, Serving::kill] {
        let server = serve(&queue, &[]);
        let mut client = server.client().await;
        if turns.is_empty() {
            client.set_delay(QueueDelayParams::default()).await.unwrap(); // none of them rests
            put(&mut client, (0..KEYS).map(|n| found(info(&url(n), ""))).collect()).await;
        }
        let got = get(&mut client, GetParams { max_queues: 4, ..one_of_each() }).await;
        // Due again at once, as it was before all others: nothing but its turn holds it back.
        put(&mut client, got.iter().map(|url| known(info(url, ""), 1)).collect()).await;
        turns.extend(got);
        drop(client);
        end(server);
    }
    let want: Vec<String> = (0..4 * 4).map(|n| url(n % KEYS)).collect();
    assert_eq!(turns, want);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_are_served_where_they_are_wanted() {
    let queue = Queue::nowhere();
    let server = serve(&queue, &["--prometheus", "0"]);
    let mut client = server.client().await;
    put(&mut client, vec![found(info("http://a.example/", ""))]).await;
    drop(client);
    let (status, told) = server.stop();
    assert_eq!(status, 0);
    let address = told.trim().strip_prefix("forager: figures for Prometheus: http://").unwrap();
    assert!(address.ends_with("/metrics"), "{told}");
}

/// The port has to be known before, as it is told on standard error, which is read at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_can_be_read() {
    let queue = Queue::nowhere();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = serve(&queue, &["-s", &free.port().to_string()]);
    put(&mut server.client().await, vec![found(info("http://a.example/", ""))]).await;
    let mut stream = TcpStream::connect(free).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.lines().any(|line| line == "frontier_putURLs_total 1"), "{page}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_set_and_handed_out_outlives_its_end() {
    let queue = Queue::nowhere();
    let end = |server: Serving| assert_eq!(server.stop(), (0, String::new()));
    lasting::what_was_set_and_handed_out_outlives(|| serve(&queue, &[]), end).await;
}

/// Who pages through queues, or compares what there is, finds the same after an end and after a kill.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crawls_and_queues_keep_their_order() {
    let queue = Queue::nowhere();
    let crawls = ["z", "a", "DEFAULT", "m"];
    let mut before = None;
    for end in [Serving::kill, |server: Serving| drop(server.stop()), Serving::kill] {
        let server = serve(&queue, &[]);
        let mut client = server.client().await;
        if before.is_none() {
            let items = (0..80).map(|n| {
                let key = format!("k{}", n * 37 % 80);
                found(UrlInfo { crawl_id: crawls[n % 4].into(), ..info(&format!("u{n}"), &key) })
            });
            put(&mut client, items.collect()).await;
        }
        let mut told = vec![client.list_crawls(Local::default()).await.unwrap().into_inner().values];
        for crawl in crawls {
            let params =
                Pagination { crawl_id: crawl.into(), include_inactive: true, ..Pagination::default() };
            let queues = client.list_queues(params).await.unwrap().into_inner().values;
            assert_eq!(queues.len(), 20, "{crawl}");
            told.push(queues);
        }
        assert_eq!(told[0].len(), 4);
        assert_eq!(before.get_or_insert_with(|| told.clone()), &told);
        drop(client);
        end(server);
    }
}

#[test]
fn the_example_of_its_help_is_what_it_prints() {
    let help = forager().args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, example) = help.split_once("Example:\n").unwrap();
    let shown = example.lines().nth(1).unwrap().trim();
    let server = serve(&Queue::nowhere(), &[]);
    assert_eq!(server.line.trim_end().rsplit_once(' ').unwrap().0, shown.rsplit_once(' ').unwrap().0);
    server.stop();
}

/// A process that ends with its test, also where that fails.
struct Mortal(std::process::Child);

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whoever started it may have left: its clients have not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_serves_where_nobody_reads_that_it_has_started() {
    let queue = Queue::nowhere();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = queue.command(&["serve", "--port", &free.to_string()]);
    let mut server = Mortal(command.stdout(writer).spawn().unwrap());
    let address = format!("http://127.0.0.1:{free}");
    let mut client = loop {
        match UrlFrontierClient::connect(address.clone()).await {
            Ok(client) => break client,
            Err(_) => assert_eq!(server.0.try_wait().unwrap(), None, "it has ended"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    };
    put(&mut client, vec![found(info("http://a.example/", ""))]).await;
    drop(client);
    assert!(std::process::Command::new("kill").arg(server.0.id().to_string()).status().unwrap().success());
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_server_is_measured_by_its_name_and_port() {
    let queue = Queue::nowhere();
    let server = serve(&queue, &[]);
    let address = format!("127.0.0.1:{}", server.port);
    let ran = common::run(&["bench", "urlfrontier", &address, "--urls", "100", "--queues", "20"], "");
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("perSecond"), "{ran:?}");
    assert_eq!(server.stop(), (0, String::new()));
}
