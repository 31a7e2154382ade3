//! The exit status of every command that fetches, serves or judges fetches, by what happened.

use crate::web;
use std::time::Duration;

use crate::web::{CONTACT, Field, Started, page};
use forager_site::{Answer, Asked, Host, Site};

const HOST: &str = "a.test";
/// Answers 429 to everything but its home page.
const BUSY: &str = "busy.test";
/// Cannot even tell its rules: robots.txt answers 503.
const SHUT: &str = "shut.test";
/// Forbids everything.
const FORBIDS: &str = "forbids.test";

fn field() -> Field {
    let refuse = |_: &Asked<'_>| Answer::error(429);
    let site = Site::new()
        .host(
            Host::new(HOST)
                .page("/", page("Home", &["/1", "/2"]))
                .page("/1", page("One", &[]))
                .page("/2", page("Two", &[]))
                .page("/gone", Answer::error(404))
                .page("/broken", Answer::error(500))
                .page("/busy", Answer::error(503))
                .page("/slow", Answer::html("slow").slow(Duration::from_secs(30)))
                .page("/a.png", Answer::new("image/png", "PNG"))
                .made("/sitemap.txt", |asked: &Asked<'_>| Answer::text(asked.url(HOST, "/1"))),
        )
        .host(Host::new(BUSY).page("/", page("Home", &["/1"])).made("/1", refuse).made("/start", refuse))
        .host(Host::new(SHUT).made("/robots.txt", |_: &Asked<'_>| Answer::error(503)))
        .host(Host::new(FORBIDS).page("/robots.txt", Answer::text("User-agent: *\nDisallow: /\n")));
    Field::new(site)
}

/// A queue whose marker is lost.
fn damaged(field: &Field) {
    let ran = field.run(&["crawl", &field.url(HOST, "/"), "--quiet", "--data", "damaged"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    std::fs::remove_file(field.file("damaged/version")).unwrap();
}

#[test]
fn each_status_says_what_happened() {
    let field = field();
    damaged(&field);
    std::fs::write(field.file("wrong.toml"), "[fetch]\nno_such_key = 1\n").unwrap();
    std::fs::write(field.file("strict.toml"), format!("[fetch]\ncontact = {CONTACT:?}\n")).unwrap();
    std::fs::write(field.file("plain"), "no folder").unwrap();
    std::fs::create_dir(field.file("other")).unwrap();
    std::fs::write(field.file("other/letter.txt"), "no queue").unwrap();
    let url = |path: &str| field.url(HOST, path);
    let busy = |path: &str| field.url(BUSY, path);
    let (home, shut, forbids) = (url("/"), field.url(SHUT, "/"), field.url(FORBIDS, "/"));
    let wrong = ["--config", "wrong.toml"];
    let table: Vec<(&str, i32, Vec<String>)> = [
        ("all is done", 0, "crawl {home}"),
        ("as many pages as allowed", 0, "crawl {home} --limit 1 --name pages"),
        ("as many bytes as allowed", 14, "crawl {home} --bytes 1 --name bytes"),
        ("as long as allowed", 15, "crawl {slow} --scope page --time 1ms --name time"),
        ("no such flag", 2, "crawl {home} --no-such-flag"),
        ("the disk is full", 3, "crawl {home} --out /dev/full --name full"),
        ("a broken configuration", 4, "crawl {home} {wrong}"),
        ("no URL", 4, "crawl ftp://a.test/"),
        ("a file for a queue", 4, "crawl {home} --data plain"),
        ("another folder for a queue", 4, "crawl {home} --data other"),
        ("a damaged queue", 17, "crawl {home} --data damaged"),
        ("the start is gone", 4, "crawl {gone}"),
        ("the start is broken", 9, "crawl {broken}"),
        ("the start is busy", 18, "crawl {busy}"),
        ("the start asks for less", 18, "crawl {busy_start}"),
        ("robots.txt forbids the start", 4, "crawl {forbids}"),
        ("robots.txt forbids one start, one is gone", 4, "crawl {forbids} {gone} --name mixed"),
        ("robots.txt forbids one start", 0, "crawl {forbids} {home} --name some"),
        ("an address that is refused", 4, "crawl http://127.0.0.1:9/ --config strict.toml"),
        ("links at an address that is refused", 4, "links http://127.0.0.1:9/ --config strict.toml"),
        ("one start is busy, one gone", 9, "crawl {busy} {gone} --name both"),
        ("robots.txt of the start is busy", 18, "crawl {shut}"),
        ("what is left asks for less", 18, "crawl {busy_home}"),
        ("nothing to run", 4, "run --config none.toml"),
        ("a damaged queue to run", 17, "run --until-idle --data damaged"),
        ("a damaged queue to watch", 17, "watch {home} --data damaged"),
        ("a file for a queue to watch", 4, "watch {home} --data plain"),
        ("an audit", 0, "audit"),
        ("an audit with a broken configuration", 4, "audit {wrong}"),
        ("an audit of nothing", 4, "audit --data nothing"),
        ("an audit of a file", 4, "audit --data plain"),
        ("an audit of a damaged queue", 17, "audit --data damaged"),
        ("rules", 0, "robots {home}"),
        ("rules, with a broken configuration", 4, "robots {home} {wrong}"),
        ("rules that are busy", 18, "robots {shut}"),
        ("rules at an address that is refused", 4, "robots http://127.0.0.1:9/ --config strict.toml"),
        ("a sitemap at an address that is refused", 4, "sitemap http://127.0.0.1:9/ --config strict.toml"),
        ("no time between two looks", 2, "watch {home} --every 0s"),
        ("links", 0, "links {home}"),
        ("links of a picture", 4, "links {picture}"),
        ("links that are forbidden", 4, "links {forbids}"),
        ("links of what is gone", 9, "links {gone}"),
        ("links of what is broken", 9, "links {broken}"),
        ("links of what is busy", 18, "links {busy}"),
        ("links of what asks for less", 18, "links {busy_start}"),
        ("links, where rules are busy", 18, "links {shut}"),
        ("a sitemap", 0, "sitemap {sitemap}"),
        ("no sitemap", 1, "sitemap {home}"),
        ("a sitemap that is gone", 9, "sitemap {gone}"),
        ("a sitemap that is busy", 18, "sitemap {busy}"),
        ("a sitemap, where rules are busy", 18, "sitemap {shut}"),
        ("a pick", 0, "pick {home}"),
        ("a pick from what is gone", 9, "pick {gone}"),
        ("a pick from what is busy", 18, "pick {busy}"),
    ]
    .into_iter()
    .map(|(name, status, line)| {
        let words = line.split(' ').flat_map(|word| match word {
            "{home}" => vec![home.clone()],
            "{slow}" => vec![url("/slow")],
            "{gone}" => vec![url("/gone")],
            "{broken}" => vec![url("/broken")],
            "{busy}" => vec![url("/busy")],
            "{picture}" => vec![url("/a.png")],
            "{sitemap}" => vec![url("/sitemap.txt")],
            "{busy_home}" => vec![busy("/")],
            "{busy_start}" => vec![busy("/start")],
            "{shut}" => vec![shut.clone()],
            "{forbids}" => vec![forbids.clone()],
            "{wrong}" => wrong.map(str::to_owned).to_vec(),
            word => vec![word.to_owned()],
        });
        (name, status, words.collect())
    })
    .collect();
    let mut misses = Vec::new();
    for (name, status, words) in table {
        let ran = field.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        if ran.status != status {
            misses.push(format!("{name}: {} instead of {status}: {}", ran.status, ran.stderr));
        }
    }
    assert!(misses.is_empty(), "{misses:#?}");
}

#[test]
fn what_is_stopped_says_so() {
    let field = field();
    let (home, slow) = (field.url(HOST, "/"), field.url(HOST, "/slow"));
    field.configure(&format!(
        "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n[[collections]]\nid = \"c\"\n[[profiles]]\nid = \
         \"p\"\ncollection = \"c\"\nscope = \"page\"\n[[seeds]]\nurl = {home:?}\nprofiles = [\"p\"]\n"
    ));
    let table: [(&str, &[&str], &str, i32); 4] = [
        ("a run", &["run"], "TERM", 11),
        ("a watch", &["watch", &home, "--every", "1s"], "INT", 11),
        ("a crawl", &["crawl", &home, "--delay", "300ms"], "INT", 11),
        ("a watch that is stopped twice", &["watch", &slow, "--data", "third"], "TERM INT", 13),
    ];
    for (name, command, signals, status) in table {
        let before = field.seen().len();
        let running = Started::new(&mut field.queue.command(command));
        web::wait_until(name, || field.seen().len() > before);
        if status == 13 {
            // robots.txt, and the page that takes long.
            web::wait_until(name, || field.seen().len() > before + 1);
        }
        // Two that differ: the same one twice may arrive as one.
        for (number, signal) in signals.split(' ').enumerate() {
            if number > 0 {
                std::thread::sleep(web::ANOTHER_WISH);
            }
            running.signal(signal);
        }
        let ran = running.end();
        assert_eq!(ran.status, status, "{name}: {ran:?}");
    }
}

#[test]
fn what_waits_for_a_person_says_so() {
    let field = field();
    assert_eq!(field.run(&["crawl", &field.url(HOST, "/"), "--limit", "1", "--quiet"]).status, 0);
    assert_eq!(field.run(&["host", "set", HOST, "--block"]).status, 0);
    let ran = field.run(&["crawl", &field.url(HOST, "/")]);
    assert_eq!(ran.status, 17, "{ran:?}");
    assert!(ran.stderr.contains("at hosts that are blocked or at their limit"), "{ran:?}");
}
