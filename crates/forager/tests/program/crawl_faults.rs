//! What must not happen, whatever a web answers: addresses that are not public, bodies without end, servers that dawdle.

use crate::web;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::web::raw::Raw;
use crate::web::{CONTACT, Field, LONG, each, page, plain_host};
use forager_site::{Answer, Asked, Host, Site, listing};
use http::header::CONTENT_ENCODING;
use serde_json::{Value, json};

const OUTER: &str = "outer.test";
const INNER: &str = "inner.test";

/// A host that may be asked, at 127.0.0.2, and one that may not, at 127.0.0.3.
fn half_open(outer: Host) -> Field {
    let field = Field::strict(Site::new().host(outer).host(plain_host(INNER, 2)));
    field.configure(&format!("contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.2/32\"]\n"));
    field
}

fn error(line: &Value) -> &str {
    line["error"].as_str().unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn loopback_is_refused_unless_it_is_allowed() {
    let field = Field::strict(Site::new().host(plain_host(OUTER, 2)));
    let at = |host: &str| format!("http://{host}:{}/", field.url(OUTER, "").rsplit(':').next().unwrap());
    // The last two are 127.0.0.2 too, one as a number and one inside IPv6.
    for (number, host) in ["127.0.0.2", OUTER, "2130706434", "[::ffff:127.0.0.2]"].into_iter().enumerate() {
        let out = format!("refused-{number}.jsonl");
        let log = format!("{out}.log");
        let ran = field.run(&[
            "crawl",
            &at(host),
            "--out",
            &out,
            "--crawl-log",
            &log,
            "--contact",
            CONTACT,
            "--name",
            &out,
            "--json",
            "--quiet",
        ]);
        assert_eq!(ran.status, 4, "{host}: {ran:?}");
        assert!(ran.stderr.contains("no page to start from may be fetched"), "{host}: {ran:?}");
        assert!(field.seen().is_empty(), "{host} was asked");
        let lines = field.lines(&out);
        assert_eq!(lines.len(), 1, "{host}: what is refused is not tried again: {lines:?}");
        for part in ["127.0.0.2", "loopback", "--allow-private", "allow_addresses"] {
            assert!(error(&lines[0]).contains(part), "{host}: {lines:?}");
        }
        assert_eq!(lines[0]["notFetched"], "addressRefused", "{host}: {lines:?}");
        assert_eq!(lines[0]["rule"], lines[0]["error"], "{host}");
        let summary = &ran.rows()[0];
        assert_eq!(
            (&summary["fetched"], &summary["outcomes"]),
            (&json!(0), &json!({ "address refused": 1 }))
        );
        let told = std::fs::read_to_string(field.file(&log)).unwrap();
        assert_eq!(told.split_whitespace().nth(1), Some("-5001"), "{host}: {told}");
    }
    assert!(field.run(&["audit", "--json"]).good_rows().is_empty(), "nothing was fetched");
    let jobs = field.run(&["job", "list", "--json"]).good_rows();
    assert!(jobs.iter().all(|job| job["progress"]["fetches"] == 0), "{jobs:?}");
    // What was refused once is no reason to refuse it to those who may.
    field.crawl(OUTER, &["--contact", CONTACT, "--allow-private"]).good_rows();
    assert_eq!(field.counts(OUTER), each(2, 1));
    // Nor is what is known of robots.txt a reason to ask those who may not be asked.
    let more = ["--contact", CONTACT, "--name", "again", "--out", "again.jsonl"];
    let ran = field.run(&[&["crawl", &field.url(OUTER, "/"), "--json"], &more[..]].concat());
    assert_eq!(ran.status, 4, "{ran:?}");
    let lines = field.lines("again.jsonl");
    assert_eq!((lines.len(), &lines[0]["notFetched"]), (1, &json!("addressRefused")), "{lines:?}");
    field.assert_audit();
}

#[test]
fn an_address_that_is_refused_is_not_reached_by_a_detour() {
    let to_inner =
        |path: &'static str| move |asked: &Asked<'_>| Answer::redirect(302, &asked.url(INNER, path));
    let by_number = |asked: &Asked<'_>| Answer::redirect(302, &asked.url("127.0.0.3", "/1"));
    let sitemap =
        |asked: &Asked<'_>| Answer::text(format!("Sitemap: {}\n", asked.url(INNER, "/sitemap.xml")));
    let listed = |asked: &Asked<'_>| {
        Answer::xml(listing::sitemap([(asked.url(INNER, "/1"), None), (asked.url("127.0.0.3", "/2"), None)]))
    };
    let own_map = |asked: &Asked<'_>| Answer::text(format!("Sitemap: {}\n", asked.url(OUTER, "/list.xml")));
    let table: [(&str, Host, usize); 5] = [
        ("a redirect to a name", plain_host(OUTER, 2).made("/1", to_inner("/1")), 3),
        ("a redirect to a number", plain_host(OUTER, 2).made("/1", by_number), 3),
        ("robots.txt that is moved", plain_host(OUTER, 2).made("/robots.txt", to_inner("/robots.txt")), 0),
        ("a sitemap", plain_host(OUTER, 2).made("/robots.txt", sitemap), 3),
        (
            "pages of a sitemap",
            plain_host(OUTER, 2).made("/robots.txt", own_map).made("/list.xml", listed),
            4,
        ),
    ];
    for (name, outer, fetched) in table {
        let field = half_open(outer);
        let ran = field.crawl(OUTER, &["--scope", "any"]);
        assert_eq!(ran.status, if fetched == 0 { 9 } else { 0 }, "{name}: {ran:?}");
        assert!(field.seen().iter().all(|seen| *seen.host == *OUTER), "{name}: {:?}", field.seen());
        assert_eq!(field.paths(OUTER).len(), fetched, "{name}: {:?}", field.paths(OUTER));
        let told = std::fs::read_to_string(field.file("pages.jsonl")).unwrap();
        assert!(told.contains("127.0.0.3"), "{name}: what was refused is said: {told}");
    }
}

/// Crawls one page of a server that answers as it likes. Returns the last line on it.
#[track_caller]
fn crawl_raw(
    lines: &str,
    serve: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Value {
    let raw = Raw::new("127.0.0.1", serve);
    let field = Field::strict(Site::new());
    field.configure(lines);
    let start = Instant::now();
    let ran = field.run(&[
        "crawl",
        &raw.url("/page"),
        "--allow-private",
        "--scope",
        "page",
        "--out",
        "pages.jsonl",
        "--json",
        "--quiet",
    ]);
    assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
    assert!(raw.asked().contains(&"/page".to_owned()));
    assert_eq!(field.run(&["audit"]).status, 0);
    let line = field.lines("pages.jsonl").pop().unwrap();
    // It is the only page, so that the crawl comes to what the page comes to.
    assert_eq!(ran.status, if line["error"].is_null() { 0 } else { 9 }, "{ran:?}");
    line
}

#[test]
fn a_body_without_end_is_cut_off_and_said_to_be() {
    let line = crawl_raw("max_bytes = 50000\n", |_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Endless</title>")?;
        loop {
            stream.write_all(&[b'x'; 4096])?;
        }
    });
    assert_eq!((&line["status"], &line["title"]), (&200.into(), &"Endless".into()), "{line}");
    assert!(line["cutOff"].is_string(), "{line}");
    assert!(line["bytes"].as_u64().unwrap() <= 50_000, "{line}");
}

#[test]
fn a_body_that_expands_without_end_is_cut_off() {
    let text = format!("<title>Bomb</title>{}", " ".repeat(50_000_000));
    let packed = listing::gzip(&text);
    assert!(packed.len() < 100_000);
    let answer = Answer::html(packed).header(CONTENT_ENCODING, "gzip");
    let field = Field::new(Site::new().host(Host::new(OUTER).page("/", answer)));
    field.crawl(OUTER, &[]).good_rows();
    let line = field.line(OUTER, "/");
    assert!(line["cutOff"].is_string(), "{line}");
    assert!(line["bytes"].as_u64().unwrap() <= 10_485_760, "{line}");
    assert_eq!(line["title"], "Bomb");
}

type Serve = fn(&str, &mut TcpStream) -> std::io::Result<()>;

/// Sends this, and then a letter at a time without end.
fn drip(stream: &mut TcpStream, head: &str) -> std::io::Result<()> {
    stream.write_all(head.as_bytes())?;
    loop {
        std::thread::sleep(Duration::from_millis(50));
        stream.write_all(b"a")?;
    }
}

#[test]
fn servers_that_dawdle_are_given_up() {
    let limits = "connect_timeout = \"1s\"\nanswer_timeout = \"500ms\"\ntimeout = \"1s\"\n";
    let (late, cut) =
        ("127.0.0.1 did not answer within 500ms", "the page is not whole: the body took too long");
    let table: [(&str, &str, Serve); 4] = [
        ("no word", late, |_, _| {
            std::thread::sleep(LONG * 2);
            Ok(())
        }),
        ("a letter of the status at a time", late, |_, stream| drip(stream, "HTTP/1.1 200 ")),
        ("a letter of a header at a time", late, |_, stream| drip(stream, "HTTP/1.1 200 OK\r\nX: ")),
        ("a letter of the body at a time", cut, |_, stream| {
            drip(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
        }),
    ];
    for (name, want, serve) in table {
        let line = crawl_raw(limits, serve);
        assert_eq!(error(&line), want, "{name}");
        assert!(line["links"] == 0 && line["took"].as_u64().unwrap() < 30_000, "{name}: {line}");
    }
}

#[test]
fn the_links_of_a_page_that_never_ends_are_followed_in_the_end() {
    let raw = Raw::new("127.0.0.1", |path, stream| match path {
        "/slow" => {
            drip(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=\"/behind\">There</a>")
        }
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere"),
    });
    let field = Field::strict(Site::new());
    field.configure("timeout = \"1s\"\n");
    let ran = field.run(&["crawl", &raw.url("/slow"), "--allow-private", "--out", "pages.jsonl", "--quiet"]);
    assert_eq!((ran.status, raw.asked().last().unwrap().as_str()), (0, "/behind"), "{ran:?}");
    let lines = field.lines("pages.jsonl");
    let (tries, behind) = lines.split_at(lines.len() - 1);
    assert_eq!(behind[0]["url"], raw.url("/behind"), "{lines:?}");
    let (last, earlier) = tries.split_last().unwrap();
    assert_eq!((&last["outcome"], &last["added"], &last["links"]), (&json!("failed"), &json!(1), &json!(1)));
    assert!(!earlier.is_empty() && earlier.iter().all(|line| line["outcome"] == "again"), "{earlier:?}");
    assert_eq!(field.run(&["audit"]).status, 0);
}

#[test]
fn answers_that_are_not_whole_or_no_answers_are_errors() {
    // What came of a body that is not whole is read; its links are out of scope here.
    let table: [(&str, u64, Serve); 4] = [
        ("shorter than it says", 1, |_, stream| {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000\r\n\r\n<a href=\"/x\">",
            )
        }),
        ("a closed door", 0, |_, _| Ok(())),
        ("another language", 0, |_, stream| stream.write_all(b"220 mail.test ESMTP\r\n")),
        ("two lengths", 0, |_, stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde")
        }),
    ];
    for (name, links, serve) in table {
        let line = crawl_raw("", serve);
        assert!(!error(&line).is_empty(), "{name}");
        assert_eq!(line["links"], links, "{name}: {line}");
    }
}

#[test]
fn a_damaged_page_does_not_close_its_host_and_its_links_are_followed_in_the_end() {
    let text = page("Bad", &["/behind"]).body().to_vec();
    let cut = listing::gzip(&format!("{}{}", String::from_utf8(text).unwrap(), "x".repeat(5000)));
    let bad = Answer::html(cut[..cut.len() - 8].to_vec()).header(CONTENT_ENCODING, "gzip");
    let host = plain_host(OUTER, 3).page("/1", bad).page("/behind", page("Behind", &[]));
    let field = Field::new(Site::new().host(host));
    // Whoever is left alone after a failure is left alone for long.
    field.set("back_off = \"100ms\"\nmax_back_off = \"400ms\"", "back_off = \"10m\"\nmax_back_off = \"10m\"");
    let summary = &field.crawl(OUTER, &[]).good_rows()[0];
    assert_eq!(field.counts(OUTER)["/1"], 3, "{summary}");
    assert_eq!(field.counts(OUTER)["/behind"], 1, "{summary}");
    let lines = field.lines("pages.jsonl");
    let url = field.url(OUTER, "/1");
    let last = lines.iter().rfind(|line| line["url"] == url.as_str()).unwrap();
    assert_eq!(
        (&last["rule"], &last["added"]),
        (&"damaged: given up after 2 more tries".into(), &1.into()),
        "{last}"
    );
    field.assert_audit();
}

#[test]
fn a_page_whose_links_are_traps_ends() {
    let host = Host::new(OUTER)
        .page("/", page("Home", &["/calendar/2026/01", "/pictures/", "/cart/"]))
        .under("/calendar", forager_site::traps::calendar("/calendar"))
        .under("/pictures", forager_site::traps::repeating("/pictures"))
        .under("/cart", forager_site::traps::session_ids("/cart"));
    let field = Field::new(Site::new().host(host));
    field.configure(&format!("contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n"));
    let more = ["--delay", "0s", "--skipped", "skipped.jsonl", "--first-year", "2025", "--last-year", "2027"];
    field.crawl(OUTER, &more).good_rows();
    let counts = field.counts(OUTER);
    let months = counts.keys().filter(|path| path.starts_with("/calendar/")).count();
    assert_eq!(months, 36, "{counts:?}");
    assert!(counts.keys().all(|path| !path.contains("jsessionid")), "{counts:?}");
    assert!(counts.len() < 100, "{counts:?}");
    field.assert_audit();
}

/// Paths, and when each was asked for.
type Requests = Vec<(String, Instant)>;

/// Answers the first request of every connection, and closes it at the second, which it has read. Returns its port, and when
/// each request came.
fn closing() -> (u16, Arc<Mutex<Requests>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Requests>>::default());
    let log = seen.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let log = log.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                for number in 0..2 {
                    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
                    let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else { return };
                    log.lock().unwrap().push((path.to_owned(), Instant::now()));
                    if number == 0 {
                        let body = "<a href=/1>one</a> <a href=/2>two</a>";
                        let status = if path == "/robots.txt" { "404 Not Found" } else { "200 OK" };
                        let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n");
                        let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                }
                // The reader has the other half of it.
                let _ = stream.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    (port, seen)
}

#[test]
fn a_request_that_is_repeated_keeps_its_distance_and_is_logged() {
    let (port, seen) = closing();
    let field = Field::new(Site::new());
    let start = format!("http://127.0.0.1:{port}/");
    let command = ["crawl", &start, "--delay", "500ms", "--in-flight", "1", "--out", "pages.jsonl", "--json"];
    let ran = field.run(&[&command[..], &["--quiet"]].concat());
    assert_eq!(ran.status, 0, "{ran:?}");
    let statuses: Vec<Value> = field.lines("pages.jsonl").iter().map(|line| line["status"].clone()).collect();
    assert_eq!(statuses, [200, 200, 200], "a page has one line");
    let seen = seen.lock().unwrap().clone();
    let twice =
        ["/", "/1", "/2"].iter().filter(|path| seen.iter().filter(|(at, _)| at == *path).count() == 2);
    assert!(twice.count() >= 2, "connections are used again, and closed: {seen:?}");
    let least = Duration::from_millis(500).saturating_sub(web::TOLERANCE.unsigned_abs());
    for pair in seen.windows(2) {
        assert!(pair[1].1.duration_since(pair[0].1) >= least, "{seen:?}");
    }
    let audit = field.run(&["audit", "--json"]).good_rows();
    assert_eq!(audit[0]["fetches"], seen.len(), "{audit:?}");
}
