//! `forager pick`, `robots`, `sitemap` and `links`: what a crawl would see.

use crate::web;
use std::time::Duration;

use crate::web::{Field, page};
use forager_site::{Answer, Host, Markup, Site, listing};
use http::header::RETRY_AFTER;
use serde_json::{Value, json};

const HOST: &str = "a.test";

fn field() -> Field {
    field_with(page("Alarms", &[]))
}

/// A host whose page on services answers this.
fn field_with(services: Answer) -> Field {
    let home = Markup::new("Fire safety")
        .nav([("/services/alarms", "Alarms"), ("/about-us", "About us"), ("/contact", "Contact")])
        .links([("/blog/summer", "Summer"), ("/privacy", "Privacy"), ("/fire-alarm-repair", "Repairs")])
        .raw("<a href=\"/ad\" rel=\"nofollow\" title=\"An ad\">Ad</a>");
    let host = Host::new(HOST)
        .made("/robots.txt", |asked| {
            let sitemap = asked.url(HOST, "/sitemap.xml");
            Answer::text(format!("User-agent: *\nDisallow: /private\nAllow: /private/open\nCrawl-delay: 1\nSitemap: {sitemap}\n"))
        })
        .made("/sitemap.xml", |asked| {
            let changed = "2026-03-01T00:00:00Z".parse().unwrap();
            Answer::xml(listing::sitemap([(asked.url(HOST, "/one"), Some(changed)), (asked.url(HOST, "/two"), None)]))
        })
        .page("/", Answer::html(home.finish()))
        .page("/old", Answer::redirect(301, "/"))
        .page("/services/alarms", services)
        .page("/about-us", page("About us", &[]))
        .page("/fire-alarm-repair", page("Repairs", &[]))
        .page("/private", page("Private", &[]));
    Field::new(Site::new().host(host))
}

fn look(field: &Field, command: &str, path: &str, more: &[&str]) -> Vec<Value> {
    field.run(&[&[command, &field.url(HOST, path), "--format", "jsonl"], more].concat()).good_rows()
}

#[test]
fn robots_shows_the_rule_that_decides() {
    let field = field();
    let table = [
        ("/", true, "no rule of robots.txt matches"),
        ("/private/x", false, "line 2: Disallow: /private"),
        ("/private/open/x", true, "line 3: Allow: /private/open"),
    ];
    for (path, allowed, rule) in table {
        let row = look(&field, "robots", path, &[]).pop().unwrap();
        assert_eq!((&row["allowed"], &row["rule"]), (&json!(allowed), &json!(rule)), "{path}: {row}");
        assert_eq!(row["sitemaps"], json!([field.url(HOST, "/sitemap.xml")]), "{row}");
        assert_eq!((&row["crawlDelay"], &row["addressed"]), (&json!("1s"), &json!("everyone")), "{row}");
    }
    assert!(field.paths(HOST).is_empty(), "only robots.txt was asked for");
}

#[test]
fn sitemap_shows_pages_and_where_sitemaps_are() {
    let field = field();
    let rows = look(&field, "sitemap", "/sitemap.xml", &[]);
    let told: Vec<_> = rows.iter().map(|row| (&row["kind"], &row["url"], &row["lastModified"])).collect();
    let (one, two) = (json!(field.url(HOST, "/one")), json!(field.url(HOST, "/two")));
    let (kind, changed) = (json!("page"), json!("2026-03-01T00:00:00Z"));
    assert_eq!(told, [(&kind, &one, &changed), (&kind, &two, &Value::Null)]);
    let rows = look(&field, "sitemap", "/", &[]);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["url"]),
        (&json!("named by robots.txt"), &json!(field.url(HOST, "/sitemap.xml")))
    );
}

#[test]
fn links_shows_what_a_crawl_sees() {
    let field = field();
    // A redirect is followed to the page.
    for path in ["/", "/old"] {
        let rows = look(&field, "links", path, &[]);
        let find = |path: &str| {
            let url = field.url(HOST, path);
            rows.iter().find(|row| row["url"] == url.as_str()).unwrap_or_else(|| panic!("{path}: {rows:?}"))
        };
        assert_eq!(rows.len(), 7, "{rows:?}");
        assert_eq!(find("/about-us")["inHeader"], true);
        let ad = find("/ad");
        let told = ["inHeader", "nofollow", "text", "title"].map(|key| ad[key].clone());
        assert_eq!(told, [json!(false), json!(true), json!("Ad"), json!("An ad")]);
    }
}

#[test]
fn links_names_what_cannot_be_followed() {
    let links = page("Home", &["/one", "mailto:me@a.test", "http://a.test:99999/", "javascript:go()"]);
    let field = Field::new(Site::new().host(Host::new(HOST).page("/", links)));
    let ran = field.run(&["links", &field.url(HOST, "/"), "--format", "jsonl"]);
    assert_eq!((ran.status, ran.rows().len()), (0, 1), "{ran:?}");
    let told = "forager: not followed: mailto:me@a.test: neither http nor https: mailto\n\
                forager: not followed: http://a.test:99999/: malformed: wrong port\n\
                forager: not followed: javascript:go(): neither http nor https: javascript\n";
    assert_eq!(ran.stderr, told);
}

#[test]
fn what_robots_txt_forbids_is_not_looked_at() {
    let field = field();
    for command in ["links", "pick", "sitemap"] {
        let ran = field.run(&[command, &field.url(HOST, "/private")]);
        assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{command}: {ran:?}");
        assert!(ran.stderr.contains("line 2: Disallow: /private"), "{command}: {ran:?}");
    }
    assert!(field.paths(HOST).is_empty());
}

#[test]
fn pick_shows_and_fetches_the_pages_that_describe_services() {
    let field = field();
    let rows = look(&field, "pick", "/", &["--page-cap", "3"]);
    let mut told: Vec<_> = rows.iter().map(|row| row["url"].as_str().unwrap()).collect();
    assert_eq!(told.len(), 3, "{rows:?}");
    told.sort_unstable();
    let want = ["/about-us", "/fire-alarm-repair", "/services/alarms"].map(|path| field.url(HOST, path));
    assert_eq!(told, want);
    assert_eq!(field.paths(HOST), ["/"]);
    let rows = look(&field, "pick", "/", &["--page-cap", "1", "--fetch-pages"]);
    assert_eq!(
        (&rows[0]["url"], &rows[0]["status"]),
        (&json!(field.url(HOST, "/services/alarms")), &json!(200))
    );
}

#[test]
fn looks_keep_the_pause_that_robots_txt_asks_for() {
    let table: [(&[&str], &str, usize); 3] = [
        (&["pick", "--page-cap", "3", "--fetch-pages"], "/", 4),
        (&["links"], "/old", 2),
        (&["sitemap"], "/sitemap.xml", 1),
    ];
    for (command, path, pages) in table {
        let field = field();
        look(&field, command[0], path, &command[1..]);
        assert_eq!(field.paths(HOST).len(), pages, "{command:?}");
        // We would wait for 50 ms; robots.txt, which is a request too, asks for a second.
        field.assert_polite(1, Duration::from_secs(1));
    }
}

#[test]
fn looks_leave_a_host_alone_that_asks_for_it() {
    let pick = |retry_after: &str| {
        let field = field_with(Answer::error(429).header(RETRY_AFTER, retry_after));
        let rows = look(&field, "pick", "/", &["--page-cap", "3", "--fetch-pages"]);
        assert_eq!((rows.len(), &rows[0]["status"]), (3, &json!(429)), "{rows:?}");
        (field, rows)
    };
    let (field, rows) = pick("3600");
    assert_eq!(field.paths(HOST), ["/", "/services/alarms"]);
    for row in &rows[1..] {
        let told = row["error"].as_str().unwrap();
        assert!(told.contains("a.test failed or asked for a pause, and is left alone until 2"), "{row}");
        assert_eq!(row["status"], Value::Null, "{row}");
    }
    // A short pause is waited for.
    let (field, rows) = pick("2");
    assert!(rows[1..].iter().all(|row| row["status"] == 200), "{rows:?}");
    let refused = field.times(HOST, "/services/alarms")[0];
    let pages = field.seen().into_iter().filter(|seen| seen.arrived > refused);
    let first = pages.map(|seen| seen.arrived).min().unwrap();
    assert!(first.duration_since(refused) >= jiff::SignedDuration::from_secs(2) - web::TOLERANCE);
}
