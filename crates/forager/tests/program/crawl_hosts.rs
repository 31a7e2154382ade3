//! A host is one host, also where its name is written with the dot at its end.

use std::time::Duration;

use crate::web::{Field, each, plain_host};
use forager_site::Site;

const HOST: &str = "a.test";
const PAGES: usize = 3;
const GAP: Duration = Duration::from_millis(400);

/// The same site under both names. The server knows it by the first.
fn field() -> (Field, [String; 2]) {
    let field = Field::new(Site::new().host(plain_host(HOST, PAGES)));
    field.set("delay = \"50ms\"\nmax_delay = \"50ms\"", "delay = \"400ms\"\nmax_delay = \"400ms\"");
    let starts = [field.url(HOST, "/"), field.url("a.test.", "/")];
    (field, starts)
}

fn crawl(field: &Field, starts: &[String; 2], more: &[&str]) {
    let [plain, dotted] = starts;
    let args = ["crawl", plain, dotted, "--scope", "host", "--out", "pages.jsonl", "--json", "--quiet"];
    field.run(&[&args[..], more].concat()).good_rows();
}

#[test]
fn both_names_share_patience_robots_and_log() {
    let (field, starts) = field();
    crawl(&field, &starts, &[]);
    // Pages are told apart by what is written, and asked for as they are.
    assert_eq!(field.counts(HOST), each(PAGES, 2));
    assert_eq!(field.lines("pages.jsonl").len(), 2 * (PAGES + 1));
    // But all of them are asked for at the pace of one host.
    assert_eq!(field.times(HOST, "/robots.txt").len(), 1);
    field.assert_polite(2, GAP);
    assert_eq!(field.assert_audit().len(), 1);
    let hosts = field.run(&["queue", "hosts", "--json"]).good_rows();
    assert_eq!((hosts.len(), hosts[0]["host"].as_str()), (1, Some(HOST)), "{hosts:?}");
    let listed = field.run(&["queue", "list", "--host", "A.TEST.", "--json"]).good_rows();
    assert_eq!(listed.len(), 2 * (PAGES + 1), "whoever writes the dot means the same host: {listed:?}");
}

#[test]
fn both_names_share_what_a_host_may_have() {
    let (field, starts) = field();
    crawl(&field, &starts, &["--max-per-host", "5"]);
    assert_eq!(field.paths(HOST).len(), 5, "{:?}", field.paths(HOST));
}
