//! Rules for robots, encodings and broken pages, as a site sends them and the program reads them. The tables of rules and
//! encodings are those that the readers are tested with.

#[path = "../../../fetch/tests/vectors/encodings.rs"]
mod encodings;
#[path = "../../../fetch/tests/vectors/robots.rs"]
mod robots;

use std::sync::{Arc, Mutex};

use crate::web::Field;
use forager_site::{Answer, Host, Markup, Site};

const HOST: &str = "a.test";

#[test]
fn every_rule_for_robots_decides_as_it_should() {
    let file = Arc::new(Mutex::new(Vec::new()));
    let served = file.clone();
    let host = Host::new(HOST).made("/robots.txt", move |_| Answer::text(served.lock().unwrap().clone()));
    let field = Field::new(Site::new().host(host));
    for (name, body, path, (allowed, line)) in robots::files() {
        *file.lock().unwrap() = body;
        let row = field.run(&["robots", &field.url(HOST, &path), "--format", "jsonl"]).good_rows().remove(0);
        let rule = row["rule"].as_str().unwrap();
        let told = rule.strip_prefix("line ").and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
        assert_eq!((row["allowed"].as_bool().unwrap(), told), (allowed, line), "{name}: {row}");
    }
    assert_eq!(field.paths(HOST), [""; 0], "only robots.txt was asked for");
}

/// The words of a text, however far apart.
fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn a_page_is_read_in_the_encoding_that_it_or_its_server_tells() {
    let (mut host, mut links, mut want) = (Host::new(HOST), Vec::new(), Vec::new());
    for (number, (encoding, text)) in encodings::texts().enumerate() {
        let name = encoding.name();
        let told = Box::leak(format!("text/html; charset={name}").into_boxed_str());
        let pages = [
            (format!("/server/{number}"), &*told, format!("<title>{text}</title>")),
            (format!("/page/{number}"), "text/html", format!("<meta charset={name}><title>{text}</title>")),
        ];
        for (path, media_type, page) in pages {
            host = host.page(&path, Answer::new(media_type, encoding.encode(&page).0.into_owned()));
            links.push(path.clone());
            want.push((name, path, text.clone()));
        }
    }
    let home = Markup::new("Home").links(links.iter().map(|path| (path.as_str(), "A page")));
    let field = Field::new(Site::new().host(host.page("/", Answer::html(home.finish()))));
    field.crawl(HOST, &["--delay", "0s"]).good_rows();
    assert!(want.len() >= 2 * 20);
    for (encoding, path, text) in want {
        let line = field.line(HOST, &path);
        assert_eq!(words(line["title"].as_str().unwrap()), words(&text), "{encoding}, {path}");
    }
}

#[test]
fn broken_pages_are_read_as_browsers_read_them() {
    let deep = format!("{}<a href=/deep>x", "<div>".repeat(300));
    let table: [(&str, &str, &[&str]); 18] = [
        ("nothing is closed", "<html><body><p><a href=\"/1\">a<div><b><a href=/2>b", &["/1", "/2"]),
        ("quotes of all sorts", "<A HREF='/1'>a</A><a href=/2>b</a>", &["/1", "/2"]),
        ("no space between attributes", "<a class=\"x\"href=\"/1\">a</a>", &["/1"]),
        ("an attribute twice", "<a href=\"/first\" href=\"/second\">a</a>", &["/first"]),
        ("a link in a link", "<a href=\"/1\">a<a href=\"/2\">b</a></a>", &["/1", "/2"]),
        ("ends without a beginning", "</a></p></div></html><a href=\"/1\">a</a>", &["/1"]),
        ("tags that overlap", "<b><a href=\"/1\">a</b></a><i><a href=\"/2\">b</i>", &["/1", "/2"]),
        ("a comment without an end", "<a href=\"/1\">a</a><!-- <a href=\"/2\">b</a>", &["/1"]),
        ("a comment with a wrong end", "<!-- a --!><a href=\"/1\">b</a>", &["/1"]),
        ("a script without an end", "<a href=\"/1\">a</a><script>'<a href=\"/2\">'", &["/1"]),
        ("a link within a script", "<script>'<a href=\"/no\">'</script><a href=\"/1\">a</a>", &["/1"]),
        ("a title without an end", "<title>Never <a href=\"/1\">a</a>", &[]),
        ("a link in a table, where none may be", "<table><a href=\"/1\">a</a><tr><td>b", &["/1"]),
        ("words before the page begins", "oh <!doctype html><a href=\"/1\">a</a>", &["/1"]),
        ("zero bytes", "<p>\0</p><a href=\"/1\">\0</a>", &["/1"]),
        ("lines and spaces in a link", "<a href=\" /o\nne\t \">a</a>", &["/one"]),
        ("references that are none", "<a href=\"/?a=1&amp;b=2&copy=3\">a</a>", &["/?a=1&b=2&copy=3"]),
        ("very deep", &deep, &["/deep"]),
    ];
    let host = table.iter().enumerate().fold(Host::new(HOST), |host, (number, (_, html, _))| {
        host.page(format!("/bad/{number}"), Answer::html((*html).to_owned()))
    });
    let field = Field::new(Site::new().host(host));
    for (number, (name, _, want)) in table.iter().enumerate() {
        let url = field.url(HOST, &format!("/bad/{number}"));
        let rows = field.run(&["links", &url, "--format", "jsonl"]).good_rows();
        let found: Vec<&str> = rows.iter().map(|row| row["url"].as_str().unwrap()).collect();
        let want: Vec<String> = want.iter().map(|path| field.url(HOST, path)).collect();
        assert_eq!(found, want, "{name}");
    }
}
