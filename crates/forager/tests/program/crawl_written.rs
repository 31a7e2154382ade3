//! What a crawl leaves behind: redirects that lead nowhere, passwords, sums, broken sitemaps, folders.

use std::io::Write as _;

use crate::web::raw::Raw;
use crate::web::{Field, Started, page, plain_host, wait_until};
use forager_site::{Answer, Host, Site};
use serde_json::json;

const HOST: &str = "a.test";

#[test]
fn a_redirect_that_leads_nowhere_leaves_a_trace() {
    let host = Host::new(HOST)
        .page("/", page("Home", &["/ftp", "/broken", "/missing"]))
        .page("/ftp", Answer::redirect(301, "ftp://a.test/file"))
        .page("/broken", Answer::redirect(302, "http://["))
        .page("/missing", Answer::error(302));
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &["--skipped", "skipped.jsonl"]).good_rows();
    let table = [
        ("/ftp", Some("ftp://a.test/file"), "redirects nowhere: "),
        ("/broken", Some("http://["), "redirects nowhere: "),
        ("/missing", None, "redirects without saying where to"),
    ];
    let skipped = field.lines("skipped.jsonl");
    for (path, target, why) in table {
        let problems = field.line(HOST, path)["problems"].clone();
        assert!(problems[0].as_str().unwrap_or_default().starts_with(why), "{path}: {problems}");
        let of_page = |line: &&serde_json::Value| line["page"] == field.url(HOST, path).as_str();
        let told: Vec<_> = skipped.iter().filter(of_page).map(|line| line["url"].as_str()).collect();
        assert_eq!(told, target.map(Some).into_iter().collect::<Vec<_>>(), "{path}");
    }
}

#[test]
fn a_redirect_in_an_older_encoding_is_followed() {
    let raw = Raw::new("127.0.0.1", |path, stream| match path {
        "/" => stream.write_all(
            b"HTTP/1.1 302 Found\r\nLocation: /caf\xE9\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        _ => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
    });
    let field = Field::new(Site::new().host(plain_host(HOST, 1)));
    field.run(&["crawl", &raw.url("/"), "--quiet"]);
    assert!(raw.asked().iter().any(|asked| asked.contains("/caf%E9")), "{:?}", raw.asked());
}

#[test]
fn passwords_are_not_written_down() {
    let host = Host::new(HOST)
        .made("/", |asked| {
            let away = asked.url("b.test", "/").replace("://", "://me:secret@");
            let here = asked.url(HOST, "/1").replace("://", "://me:secret@");
            page("Home", &[&away, &here, "http://me:secret@a.test:99999/", "ftp://me:secret@a.test/"])
        })
        .page("/1", Answer::redirect(302, "http://me:secret@a.test:99999/"));
    let field = Field::new(Site::new().host(host));
    let start = field.url(HOST, "/").replace("://", "://me:secret@");
    let files = ["--out", "pages.jsonl", "--skipped", "skipped.jsonl", "--crawl-log", "crawl.log"];
    let ran = field.run(&[&["crawl", &start, "--log", "json", "--limit", "1"][..], &files].concat());
    assert_eq!(ran.status, 0, "{ran:?}");
    // The next process knows the line of the first.
    field.run(&[&["crawl", &start, "--quiet"][..], &files].concat());
    for name in ["pages.jsonl", "skipped.jsonl", "crawl.log"] {
        let text = std::fs::read_to_string(field.file(name)).unwrap();
        assert!(!text.is_empty() && !text.contains("secret"), "{name}: {text}");
    }
    field.line(HOST, "/");
    assert!(field.line(HOST, "/1")["problems"].to_string().contains("redirects nowhere"));
    // Nobody has to leave out what nobody has.
    for command in [&["export"][..], &["events"], &["queue", "list"], &["seed", "list"]] {
        let ran = field.run(command);
        assert!(ran.stdout.contains(HOST) && !ran.stdout.contains("secret"), "{command:?}: {ran:?}");
    }
}

#[test]
fn the_password_of_a_seed_is_not_taken_in() {
    // Parsers take any number of slashes.
    for secret in ["://me:secret@", ":/me:secret@"] {
        no_password_of_a_seed_is_taken_in(secret);
    }
}

fn no_password_of_a_seed_is_taken_in(secret: &str) {
    let field = Field::new(Site::new().host(Host::new(HOST).page("/", page("Home", &[]))));
    let text = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let seed = field.url(HOST, "/").replace("://", secret);
    let harvest = format!(
        "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\n[[seeds]]\nurl = {seed:?}\nprofiles = [\"p\"]\n"
    );
    std::fs::write(field.file("forager.toml"), text + &harvest).unwrap();
    let ran = field.run(&["run", "--until-idle", "--out", "pages.jsonl", "--quiet"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let line = field.line(HOST, "/");
    let kept = secret.trim_end_matches("me:secret@");
    let kept = line["url"].as_str().unwrap().replace("://", kept);
    assert_eq!(line["seed"], kept);
    assert_eq!(field.run(&["seed", "list"]).good_rows()[0]["url"], kept);
    // It is known for what it is: the same configuration changes nothing.
    let ran = field.run(&["apply", "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(!ran.stdout.contains("seed"), "{ran:?}");
}

#[test]
fn a_crawl_that_goes_on_tells_what_the_whole_job_fetched() {
    let field = Field::new(Site::new().host(plain_host(HOST, 3)));
    let first = field.crawl(HOST, &["--limit", "1"]).rows().remove(0);
    assert_eq!((&first["fetched"], &first["wholeJob"]), (&json!(1), &json!(null)), "{first}");
    let second = field.crawl(HOST, &[]).rows().remove(0);
    assert_eq!((&second["fetched"], &second["wholeJob"]["fetched"]), (&json!(3), &json!(4)), "{second}");
}

#[test]
fn a_broken_sitemap_is_told_though_robots_txt_names_another() {
    let host = Host::new(HOST)
        .robots("User-agent: *\nSitemap: /map.xml\n")
        .page("/", page("Home", &[]))
        .page("/broken.xml", Answer::xml("<urlset><url><loc>"))
        .page("/wrong.xml", Answer::xml("<?xml version=\"1.0\"?><catalogue></catalogue>"));
    let field = Field::new(Site::new().host(host));
    for path in ["/broken.xml", "/wrong.xml"] {
        let ran = field.run(&["sitemap", &field.url(HOST, path), "--format", "jsonl"]);
        assert_eq!(ran.status, 1, "{path}: {ran:?}");
        assert!(ran.stderr.contains(&format!("{path}: ")), "{path}: {ran:?}");
    }
    // Of a page the sitemaps are shown that its site has, as a crawl takes them.
    let rows = field.run(&["sitemap", &field.url(HOST, "/"), "--format", "jsonl"]).good_rows();
    assert_eq!(rows[0]["url"], field.url(HOST, "/map.xml").as_str(), "{rows:?}");
}

#[test]
fn a_demonstration_that_is_stopped_leaves_no_folder_behind() {
    let field = Field::new(Site::new().host(plain_host(HOST, 1)));
    let folder = field.file("temporary");
    std::fs::create_dir(&folder).unwrap();
    let is_empty = || std::fs::read_dir(&folder).unwrap().next().is_none();
    let demo = Started::new(field.queue.command(&["demo"]).env("TMPDIR", &folder));
    wait_until("its folder", || !is_empty());
    std::thread::sleep(std::time::Duration::from_secs(1));
    demo.signal("INT");
    assert_eq!(demo.end().status, 11);
    assert!(is_empty());
}
