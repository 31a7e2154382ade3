//! Names of hosts: whatever a name server says, it is the address that is connected to that counts.
//!
//! 127.0.0.2 stands for a public address here; no other is allowed.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::Ran;
use crate::web::names::{NameServer, Reply, alias, at};
use crate::web::raw::Raw;
use crate::web::{CONTACT, Field};
use forager_site::Site;
use serde_json::{Value, json};

const PUBLIC: &str = "127.0.0.2";
const NAME: &str = "name.example";

/// Longer than an answer is kept that says it should not be kept at all.
const KEPT: Duration = Duration::from_millis(1100);

/// A server at every address of this machine, and at which of them it was asked.
struct Everywhere {
    raw: Raw,
    asked_at: Arc<Mutex<BTreeSet<IpAddr>>>,
}

impl Everywhere {
    /// `/` leads to `/1` and `/2`; `meanwhile` happens before it is answered.
    fn new(meanwhile: impl Fn() + Send + Sync + 'static) -> Self {
        let asked_at = Arc::<Mutex<BTreeSet<IpAddr>>>::default();
        let log = asked_at.clone();
        let raw = Raw::new("0.0.0.0", move |path, stream| {
            log.lock().unwrap().insert(stream.local_addr()?.ip());
            if path == "/" {
                meanwhile();
            }
            answer(stream, if path == "/" { "<a href=/1>1</a> <a href=/2>2</a>" } else { "a page" })
        });
        Self { raw, asked_at }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{NAME}:{}{path}", self.raw.address.port())
    }

    /// Requires that nobody was asked at an address that may not be connected to.
    #[track_caller]
    fn assert_public(&self, name: &str) {
        let asked_at = self.asked_at.lock().unwrap().clone();
        assert_eq!(asked_at, [PUBLIC.parse().unwrap()].into(), "{name}");
    }
}

fn answer(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// A queue whose crawls ask this name server, and may connect to one address of this machine.
fn field(names: &NameServer) -> Field {
    let field = Field::strict(Site::new());
    field.configure(&format!(
        "contact = {CONTACT:?}\nallow_addresses = [{PUBLIC:?}]\nnameserver = \"{}\"\n",
        names.address
    ));
    field
}

fn crawl(field: &Field, server: &Everywhere) -> Ran {
    let start = server.url("/");
    field.run(&["crawl", &start, "--out", "pages.jsonl", "--skipped", "skipped.jsonl", "--json", "--quiet"])
}

/// What the lines of a file say in a field of the one on this URL.
#[track_caller]
fn told(field: &Field, file: &str, url: &str, key: &str) -> Value {
    let lines = field.lines(file);
    let line = lines.iter().find(|line| line["url"] == url);
    line.unwrap_or_else(|| panic!("{url} is not in {lines:?}"))[key].clone()
}

#[test]
fn a_name_that_leads_elsewhere_by_and_by_is_not_followed_there() {
    let has_turned = Arc::new(AtomicBool::new(false));
    let turned = has_turned.clone();
    let names =
        NameServer::new(move |_| at(&[if has_turned.load(Ordering::SeqCst) { "127.0.0.1" } else { PUBLIC }]));
    let server = Everywhere::new(move || {
        turned.store(true, Ordering::SeqCst);
        std::thread::sleep(KEPT);
    });
    let field = field(&names);
    let ran = crawl(&field, &server);
    assert_eq!(ran.status, 0, "the page to start from was had: {ran:?}");
    server.assert_public("rebinding");
    assert_eq!(server.raw.asked(), ["/robots.txt", "/"]);
    for path in ["/1", "/2"] {
        let url = server.url(path);
        assert_eq!(told(&field, "pages.jsonl", &url, "notFetched"), "addressRefused", "{path}");
        let why = told(&field, "skipped.jsonl", &url, "rule");
        assert!(why.as_str().unwrap().contains("127.0.0.1 is a loopback address"), "{path}: {why}");
    }
    assert_eq!(ran.rows()[0]["outcomes"], json!({"200": 1, "address refused": 2}), "{ran:?}");
    // What was not asked for is in no log of requests.
    assert_eq!(field.run(&["audit", "--json"]).good_rows()[0]["fetches"], 2);
}

#[test]
fn of_several_addresses_only_those_are_tried_that_may_be() {
    let table: [(&str, Reply); 4] = [
        ("one of many", at(&["127.0.0.1", "10.0.0.1", PUBLIC, "169.254.169.254", "::1"])),
        ("another name for it", alias(&["b.example"], &[PUBLIC])),
        ("a chain of names", alias(&["b.example", "c.example", "d.example"], &["127.0.0.1", PUBLIC])),
        ("kept for a minute", Reply::Addresses(vec![PUBLIC.parse().unwrap()], 60)),
    ];
    for (name, reply) in table {
        let names = NameServer::new(move |_| reply.clone());
        let server = Everywhere::new(|| ());
        let field = field(&names);
        assert_eq!(crawl(&field, &server).good_rows()[0]["outcomes"]["200"], 3, "{name}");
        server.assert_public(name);
    }
}

#[test]
fn a_name_with_no_address_that_may_be_connected_to_is_refused() {
    let table: [(&str, Reply, &str); 6] = [
        ("loopback", at(&["127.0.0.1"]), "127.0.0.1 is a loopback address"),
        ("IPv6", at(&["::1"]), "::1 is a loopback address"),
        ("inside IPv6", at(&["::ffff:127.0.0.1"]), "127.0.0.1"),
        ("metadata", at(&["169.254.169.254"]), "169.254.169.254 is the address of a cloud metadata service"),
        ("all of many", at(&["10.0.0.1", "127.0.0.1", "192.168.0.1"]), "10.0.0.1 is a private address"),
        ("a chain of names", alias(&["b.example", "c.example"], &["127.0.0.1"]), "127.0.0.1 is a loopback"),
    ];
    for (name, reply, why) in table {
        let names = NameServer::new(move |_| reply.clone());
        let server = Everywhere::new(|| ());
        let field = field(&names);
        let ran = crawl(&field, &server);
        assert_eq!(ran.status, 4, "{name}: trying again will not help: {ran:?}");
        assert!(ran.stderr.contains(why), "{name}: {ran:?}");
        assert_eq!(told(&field, "pages.jsonl", &server.url("/"), "notFetched"), "addressRefused", "{name}");
        assert!(server.raw.asked().is_empty(), "{name}: {:?}", server.raw.asked());
    }
}

#[test]
fn a_name_that_is_not_found_is_told_with_its_reason() {
    let table = [
        ("no such name", Reply::NoSuchName, "the host name.example does not exist"),
        ("no address", at(&[]), "the host name.example has no address"),
        ("a circle", alias(&["b.example", NAME], &[]), "the host name.example has no address"),
        ("no answer", Reply::Silence, "name.example was not connected to within 300ms"),
    ];
    for (name, reply, why) in table {
        let is_silent = matches!(reply, Reply::Silence);
        let names = NameServer::new(move |_| reply.clone());
        let server = Everywhere::new(|| ());
        let field = field(&names);
        if is_silent {
            field.set("[fetch]\n", "[fetch]\nconnect_timeout = \"300ms\"\n");
        }
        let ran = crawl(&field, &server);
        assert_eq!(ran.status, 9, "{name}: {ran:?}");
        assert!(ran.stderr.contains(why), "{name}: {ran:?}");
        assert!(!names.asked().is_empty() && server.raw.asked().is_empty(), "{name}");
    }
}

#[test]
fn an_answer_is_kept_for_as_long_as_it_says() {
    for (seconds, is_asked_once) in [(60, true), (0, false)] {
        let names = NameServer::new(move |_| Reply::Addresses(vec![PUBLIC.parse().unwrap()], seconds));
        // Every request has a connection of its own, and those after the first page come when a short time is over.
        let server = Everywhere::new(|| std::thread::sleep(KEPT));
        let field = field(&names);
        crawl(&field, &server).good_rows();
        assert_eq!(server.raw.asked().len(), 4, "robots.txt and three pages");
        let asked = names.asked();
        assert!(asked.iter().all(|name| name == NAME), "{asked:?}");
        assert_eq!(asked.len() == 1, is_asked_once, "kept for {seconds}s: {asked:?}");
    }
}
