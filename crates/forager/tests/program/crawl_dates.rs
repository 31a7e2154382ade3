//! Dates in sitemaps: whether they are right is learned of each host, kept, told, and gone by.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::web::{CONTACT, Field};
use forager_site::{Answer, Asked, Host, Site};
use serde_json::{Value, json};

/// The dates of both move on with every look; only the pages of the first do as well.
const HONEST: &str = "honest.test";
const LIAR: &str = "liar.test";

/// From then on dates that were wrong every time are not gone by.
const TRIALS: usize = 4;

/// A host with a page, and a sitemap that says the page has changed just now. The date has its fraction of a second: a page
/// that was fetched earlier in the same second has changed since.
fn host(name: &'static str, changes: bool) -> Host {
    let asked = AtomicUsize::new(0);
    let page = move |_: &Asked<'_>| {
        let edition = if changes { asked.fetch_add(1, Ordering::SeqCst) } else { 0 };
        Answer::html(format!("<main><p>This is edition number {edition} of all our news.</p></main>"))
    };
    let map = move |asked: &Asked<'_>| {
        let (url, now) = (asked.url(name, "/page"), asked.now);
        Answer::xml(format!("<urlset><url><loc>{url}</loc><lastmod>{now}</lastmod></url></urlset>"))
    };
    Host::new(name).made("/page", page).made("/map.xml", map)
}

/// Both hosts, whose sitemaps are the seeds. Nothing is due again by itself within hours, and one request at a time is under
/// way, so that a page that was asked for is reported before the next sitemap is made.
fn field() -> Field {
    let field = Field::new(Site::new().host(host(HONEST, true)).host(host(LIAR, false)));
    let seed = |host| format!("[[seeds]]\nurl = {:?}\nprofiles = [\"p\"]\n", field.url(host, "/map.xml"));
    let seeds: String = [HONEST, LIAR].map(seed).concat();
    field.configure(&format!(
        "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\nat_once = 1\n[[collections]]\nid = \"c\"\n\
         [[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\n{seeds}"
    ));
    field
}

/// Fetches all that is due, in a process of its own.
#[track_caller]
fn fetch_what_is_due(field: &Field) {
    let ran = field.run(&["run", "--until-idle", "--quiet"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
}

/// Has the sitemap of a host read again, and says whether its page was fetched again as well.
#[track_caller]
fn look_again(field: &Field, host: &str) -> bool {
    let before = field.counts(host);
    field.run(&["seed", "start", &field.url(host, "/map.xml")]).good_rows();
    fetch_what_is_due(field);
    let now = field.counts(host);
    assert_eq!(now["/map.xml"], before["/map.xml"] + 1, "{host}: only the sitemap was due");
    now["/page"] > before["/page"]
}

/// What the queue knows of the dates of a host.
#[track_caller]
fn dates(field: &Field, host: &str) -> Value {
    let url = field.url(host, "/page");
    let told = field.run(&["explain", &url, "--collection", "c"]).good_rows().remove(0);
    let hosts = field.run(&["queue", "hosts", "--json"]).good_rows();
    let listed = hosts.iter().find(|row| row["host"] == host).unwrap();
    assert_eq!(told["sitemapDates"], listed["sitemapDates"], "{told} {listed}");
    told["sitemapDates"].clone()
}

/// What people are told of the dates of a host.
fn in_words(field: &Field, host: &str) -> String {
    let url = field.url(host, "/page");
    let ran = field.run(&["explain", &url, "--collection", "c", "--format", "table"]);
    let line = ran.stdout.lines().find(|line| line.contains("the dates in its sitemaps"));
    line.unwrap_or_else(|| panic!("{ran:?}")).trim().to_owned()
}

#[test]
fn the_dates_of_a_host_are_gone_by_as_long_as_they_are_right() {
    let field = field();
    fetch_what_is_due(&field);
    for host in [HONEST, LIAR] {
        assert_eq!(field.counts(host), [("/map.xml".into(), 1), ("/page".into(), 1)].into(), "{host}");
        assert_eq!(dates(&field, host), Value::Null, "{host}: a page that was never fetched cannot be news");
    }
    for times in 1..=TRIALS {
        for (host, right) in [(HONEST, times), (LIAR, 0)] {
            assert!(look_again(&field, host), "{host}: gone by, time {times}");
            assert_eq!(dates(&field, host), json!({"right": right, "wrong": times - right}), "{host}");
        }
    }
    // The one is believed as before, the other no more, though it says the same.
    assert!(look_again(&field, HONEST));
    assert!(!look_again(&field, LIAR));
    assert_eq!(dates(&field, HONEST), json!({"right": TRIALS + 1, "wrong": 0}));
    assert_eq!(dates(&field, LIAR), json!({"right": 0, "wrong": TRIALS}));
    assert_eq!(in_words(&field, HONEST), "the dates in its sitemaps were right 5 of 5 times");
    assert_eq!(
        in_words(&field, LIAR),
        "the dates in its sitemaps were right 0 of 4 times, and are not gone by"
    );
    field.assert_audit();
}
