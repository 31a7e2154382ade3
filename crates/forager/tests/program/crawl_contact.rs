//! Nobody is crawled who could not learn by whom, except this machine: not from the start, and not on the way.

use std::io::Write as _;

use crate::web::raw::Raw;
use crate::web::{CONTACT, Field, page, plain_host};
use forager_site::{Answer, Asked, Host, Site};
use serde_json::json;

const OUTER: &str = "outer.test";
const OWN: &str = "127.0.0.2";
/// It is at 0.0.0.0, which is no loopback address, and yet leads nowhere but to this machine: to [`stranger`].
const STRANGER: &str = "stranger.test";
/// Everything is allowed that a test may ask for.
const OPEN: &str = "allow_addresses = [\"127.0.0.0/8\", \"0.0.0.0/8\"]\n";

/// A server that must not be asked without a contact.
fn stranger() -> (Raw, String) {
    let raw = Raw::new("127.0.0.1", |_, stream| {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )
    });
    let url = format!("http://{STRANGER}:{}/", raw.address.port());
    (raw, url)
}

/// A host of this machine, in a world with a stranger.
fn field(host: Host, lines: &str) -> Field {
    let field = Field::strict(Site::new().host(host));
    field.configure(&format!("{lines}{OPEN}"));
    field.set("resolve = { ", &format!("resolve = {{ {STRANGER:?} = [\"0.0.0.0\"], "));
    field
}

#[test]
fn nobody_is_crawled_who_could_not_learn_by_whom() {
    let field = Field::strict(Site::new().host(plain_host(OUTER, 2)));
    for lines in ["", "user_agent = \"Example/1.0 (example.org)\"\n"] {
        field.configure(lines);
        for command in ["crawl", "watch", "pick", "links", "robots", "sitemap"] {
            let ran = field.run(&[command, &field.url(OUTER, "/"), "--allow-private"]);
            let wrong = (4, "");
            assert_eq!((ran.status, ran.stdout.as_str()), wrong, "{command}, {lines}: {ran:?}");
            assert!(ran.stderr.contains("--contact"), "{command}, {lines}: {ran:?}");
        }
    }
    assert!(field.seen().is_empty());
    // Loopback is one's own.
    let own = field.url(OWN, "/");
    let ran = field.run(&["crawl", &own, "--allow-private", "--scope", "page"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(field.paths(OUTER), ["/"]);
}

#[test]
fn a_run_does_not_start_with_strangers_that_only_the_queue_knows() {
    let field = Field::strict(Site::new().host(plain_host(OUTER, 1)));
    field.configure(OPEN);
    let done = |args: &[&str]| assert_eq!(field.run(args).status, 0, "{args:?}");
    done(&["collection", "add", "c"]);
    done(&["profile", "add", "p", "--collection", "c", "--scope", "page"]);
    done(&["seed", "add", &field.url(OUTER, "/"), "--profile", "p"]);
    let ran = field.run(&["run", "--until-idle"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{ran:?}");
    for part in [&field.url(OUTER, "/"), "--contact", "`contact` of [fetch]"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    assert!(field.seen().is_empty());
    done(&["run", "--until-idle", "--contact", CONTACT]);
    assert_eq!(field.paths(OUTER), ["/"]);
    // Who is not crawled need not learn by whom.
    done(&["collection", "add", "other"]);
    done(&["run", "--until-idle", "--collection", "other"]);
    done(&["seed", "disable", &field.url(OUTER, "/")]);
    done(&["seed", "add", &field.url(OWN, "/1"), "--profile", "p"]);
    done(&["run", "--until-idle"]);
    assert_eq!(field.paths(OUTER), ["/", "/1"]);
}

#[test]
fn strangers_who_are_met_on_the_way_are_asked_only_with_a_contact() {
    type Make = fn(&str) -> Host;
    let table: [(&str, Make); 4] = [
        ("a link", |url| Host::new(OUTER).page("/", page("Home", &[url]))),
        ("a redirect", |url| Host::new(OUTER).page("/", Answer::redirect(302, url))),
        ("a sitemap", |url| {
            plain_host(OUTER, 1).page("/robots.txt", Answer::text(format!("Sitemap: {url}\n")))
        }),
        ("robots.txt that is moved", |url| {
            let to = format!("{url}robots.txt");
            plain_host(OUTER, 1).made("/robots.txt", move |_: &Asked<'_>| Answer::redirect(302, &to))
        }),
    ];
    for (name, host) in table {
        let (raw, url) = stranger();
        let field = field(host(&url), "");
        let crawl = |more: &[&str]| {
            let start = field.url(OWN, "/");
            let command = ["crawl", &start, "--scope", "any", "--json", "--quiet"];
            field.run(&[&command, more].concat())
        };
        crawl(&["--out", "pages.jsonl"]);
        assert_eq!(raw.asked(), [""; 0], "{name}");
        let told = std::fs::read_to_string(field.file("pages.jsonl")).unwrap();
        for part in ["0.0.0.0 is the address of others, who could not learn who asks", "--contact", "[fetch]"]
        {
            assert!(told.contains(part), "{name}: what was refused is said: {told}");
        }
        if name != "robots.txt that is moved" {
            let line =
                field.lines("pages.jsonl").into_iter().find(|line| line["url"] == url.as_str()).unwrap();
            assert_eq!(line["notFetched"], "addressRefused", "{name}: {line}");
        }
        // A name of one's own counts if it says who asks.
        field.configure(&format!("user_agent = \"Example/1.0 (+https://example.org/)\"\n{OPEN}"));
        field.set("resolve = { ", &format!("resolve = {{ {STRANGER:?} = [\"0.0.0.0\"], "));
        let asked = if name == "robots.txt that is moved" { 1 } else { 2 };
        crawl(&["--data", "another"]);
        assert!(raw.asked().len() >= asked, "{name}: {:?}", raw.asked());
    }
}

#[test]
fn a_name_of_ones_own_without_a_contact_opens_nobody_and_has_the_contact_added() {
    let (raw, url) = stranger();
    let bare = "user_agent = \"Example/1.0\"\n";
    let host = Host::new(OUTER).page("/", Answer::redirect(302, &url));
    let field = field(host, bare);
    for command in ["links", "pick", "sitemap"] {
        let ran = field.run(&[command, &field.url(OWN, "/")]);
        assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{command}: {ran:?}");
        assert!(ran.stderr.contains("who could not learn who asks; --contact"), "{command}: {ran:?}");
    }
    assert_eq!(raw.asked(), [""; 0]);
    assert!(field.seen().iter().all(|seen| seen.user_agent.as_deref() == Some("Example/1.0")));
    let before = field.seen().len();
    assert_eq!(field.run(&["links", &field.url(OWN, "/"), "--contact", CONTACT]).status, 0);
    assert_eq!(raw.asked(), ["/robots.txt", "/"]);
    let want = format!("Example/1.0 (+{CONTACT})");
    let names: Vec<_> = field.seen().into_iter().skip(before).map(|seen| json!(seen.user_agent)).collect();
    assert_eq!(names, [json!(want), json!(want)]);
}
