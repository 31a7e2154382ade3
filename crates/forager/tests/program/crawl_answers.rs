//! What a crawl makes of answers other than a page: redirects, errors, rules for robots, servers that go away.

use crate::common;
use crate::web;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::run_command;
use crate::web::{Field, Started, TOLERANCE, each, page, plain_host, wait_until};
use forager_site::checks::{self, Rule};
use forager_site::{Answer, Asked, Host, RetryAfter, Site, listing};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const GAP: Duration = Duration::from_millis(50);
const HOST: &str = "a.test";

/// A page that answers with `first` once, and is there from then on.
fn at_first(
    first: impl Fn() -> Answer + Send + Sync + 'static,
) -> impl Fn(&Asked<'_>) -> Answer + Send + Sync {
    let asked = Arc::new(AtomicUsize::new(0));
    move |_| if asked.fetch_add(1, Ordering::SeqCst) == 0 { first() } else { page("There", &[]) }
}

fn statuses(field: &Field, path: &str) -> Vec<Option<u16>> {
    let of_path = field.seen().into_iter().filter(|seen| *seen.host == *HOST && seen.path == path);
    of_path.map(|seen| seen.status).collect()
}

/// Requires that a crawl said that it came to nothing, and where it began.
#[track_caller]
fn assert_nothing_fetched(field: &Field, ran: &common::Ran) {
    assert_eq!(ran.status, 9, "{ran:?}");
    assert!(
        ran.stderr.starts_with("forager: no page was had, for every page to start from failed:\n"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains(&field.url(HOST, "/: ")), "{ran:?}");
    assert_eq!(ran.rows()[0]["end"], "every page to start from failed");
}

#[test]
fn a_redirect_is_a_link() {
    let chain = |host: Host, number: usize| {
        host.page(format!("/chain/{number}"), Answer::redirect(302, &format!("/chain/{}", number + 1)))
    };
    let links = ["/moved", "/loop/a", "/chain/0", "/away", "/sibling", "/forbidden", "/itself"];
    let host = Host::new(HOST)
        .robots("User-agent: *\nDisallow: /private\n")
        .page("/", page("Home", &links))
        .page("/moved", Answer::redirect(301, "/target"))
        .page("/target", page("Target", &["/below"]))
        .page("/below", page("Below", &[]))
        .page("/loop/a", Answer::redirect(302, "/loop/b"))
        .page("/loop/b", Answer::redirect(302, "/loop/a"))
        .page("/itself", Answer::redirect(302, "/itself"))
        .page("/forbidden", Answer::redirect(302, "/private"))
        .made("/away", |asked| Answer::redirect(302, &asked.url("elsewhere.test", "/")))
        .made("/sibling", |asked| Answer::redirect(302, &asked.url("www.a.test", "/here")));
    let site = Site::new()
        .host((0..12).fold(host, chain).page("/chain/12", page("End", &[])))
        .host(Host::new("www.a.test").page("/here", page("Here", &[])))
        .host(Host::new("elsewhere.test").page("/", page("Elsewhere", &[])));
    let field = Field::new(site);
    // What is redirected to is no farther from the seed: a depth of 2 leads to the page below it.
    let ran = field.crawl(HOST, &["--depth", "2", "--skipped", "skipped.jsonl"]);
    ran.good_rows();

    let counts = field.counts(HOST);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for path in ["/moved", "/target", "/below", "/loop/a", "/loop/b", "/itself", "/forbidden"] {
        assert!(counts.contains_key(path), "{path}: {counts:?}");
    }
    assert!(!counts.contains_key("/private"), "forbidden by robots.txt");
    let chain: Vec<_> = counts.keys().filter(|path| path.starts_with("/chain/")).collect();
    assert_eq!(chain.len(), 11, "the first and ten redirects: {chain:?}");
    assert_eq!(field.paths("www.a.test"), ["/here"], "the same domain");
    assert_eq!(field.paths("elsewhere.test"), Vec::<String>::new(), "out of scope");

    let moved = field.line(HOST, "/moved");
    assert_eq!((&moved["status"], &moved["redirect"]), (&json!(301), &json!(field.url(HOST, "/target"))));
    let depths =
        ["/moved", "/target", "/below"].map(|path| field.line(HOST, path)["depth"].as_u64().unwrap());
    assert_eq!(depths, [1, 1, 2]);
    let skipped = field.lines("skipped.jsonl");
    let away = field.url("elsewhere.test", "/");
    assert!(skipped.iter().any(|line| line["url"] == away.as_str()), "{skipped:?}");
    field.assert_polite(2, GAP);
    field.assert_audit();
}

#[test]
fn errors_are_tried_again_or_not() {
    let host = Host::new(HOST)
        .page("/", page("Home", &["/missing", "/broken", "/gone", "/once", "/unknown", "/odd"]))
        .page("/gone", Answer::error(410))
        .page("/unknown", Answer::error(600))
        .page("/odd", Answer::error(999))
        .page("/broken", Answer::error(500))
        .made("/once", at_first(|| Answer::error(502)));
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &[]).good_rows();
    let table: [(&str, &[u16], &str); 6] = [
        ("/missing", &[404], "7: in scope"),
        ("/gone", &[410], "7: in scope"),
        ("/broken", &[500; 3], "500: given up after 2 more tries"),
        ("/once", &[502, 200], "7: in scope"),
        ("/unknown", &[600], "600: given up at once"),
        ("/odd", &[999], "999: given up at once"),
    ];
    for (path, want, rule) in table {
        let want: Vec<_> = want.iter().copied().map(Some).collect();
        assert_eq!(statuses(&field, path), want, "{path}");
        let lines: Vec<Value> = field.lines("pages.jsonl");
        let url = field.url(HOST, path);
        let lines: Vec<_> = lines.iter().filter(|line| line["url"] == url.as_str()).collect();
        let told: Vec<_> = lines.iter().map(|line| line["status"].as_u64()).collect();
        assert_eq!(told, want.iter().map(|status| status.map(u64::from)).collect::<Vec<_>>(), "{path}");
        let last = lines.last().unwrap()["rule"].as_str().unwrap();
        assert!(last.starts_with(rule), "{path}: {last}");
    }
    field.assert_polite(2, GAP);
    field.assert_audit();
}

#[test]
fn a_host_that_asks_to_be_left_alone_is() {
    type Form = fn() -> (Answer, Timestamp);
    let seconds: Form =
        || (Answer::busy(RetryAfter::Seconds(2)), Timestamp::now() + SignedDuration::from_secs(2));
    let too_many: Form = || {
        let until = Timestamp::now() + SignedDuration::from_secs(2);
        (Answer::error(429).header(http::header::RETRY_AFTER, "2"), until)
    };
    let date: Form = || {
        let until = Timestamp::from_second(Timestamp::now().as_second() + 3).unwrap();
        (Answer::busy(RetryAfter::At(until)), until)
    };
    let too_many_until: Form = || {
        let until = Timestamp::from_second(Timestamp::now().as_second() + 3).unwrap();
        let date = until.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        (Answer::error(429).header(http::header::RETRY_AFTER, &date), until)
    };
    // The status has said it, whatever becomes of the rest.
    let cut: Form = || {
        let (answer, until) = (Answer::busy(RetryAfter::Seconds(2)), Timestamp::now());
        (answer.cut_after(5), until + SignedDuration::from_secs(2))
    };
    let table = [
        ("503, seconds", seconds),
        ("503, cut off", cut),
        ("503, a date", date),
        ("429, seconds", too_many),
        ("429, a date", too_many_until),
    ];
    for (name, form) in table {
        let opens = Arc::new(std::sync::Mutex::new(None));
        let note = opens.clone();
        let host = plain_host(HOST, 6).made(
            "/3",
            at_first(move || {
                let (answer, until) = form();
                *note.lock().unwrap() = Some(until);
                answer
            }),
        );
        let field = Field::new(Site::new().host(host));
        field.crawl(HOST, &["--in-flight", "1"]).good_rows();
        let until = opens.lock().unwrap().unwrap();
        let refused = field.times(HOST, "/3")[0];
        let next = field.seen().into_iter().map(|seen| seen.arrived).find(|at| *at > refused).unwrap();
        assert!(next >= until, "{name}: {next}, and {until} was asked for");
        let mut want = each(6, 1);
        want.insert("/3".to_owned(), 2);
        assert_eq!(field.counts(HOST), want, "{name}");
        field.assert_audit();
    }
}

/// Two sites of one host. At the one, a page asks for a pause; at the other, a page that was handed out before waits for
/// robots.txt meanwhile, and must not be asked for when that has come.
#[test]
fn what_was_handed_out_before_a_pause_goes_back() {
    for status in [429, 503] {
        let pause = Duration::from_secs(4);
        // Each server waits for the other one: the pause begins while robots.txt is under way.
        let (asked, refused) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (is_asked, is_refused) = (asked.clone(), refused.clone());
        let busy = move || {
            wait_until("a request for robots.txt", || is_asked.load(Ordering::SeqCst));
            refused.store(true, Ordering::SeqCst);
            Answer::error(status).header(http::header::RETRY_AFTER, "4")
        };
        let late = move |_: &Asked<'_>| {
            asked.store(true, Ordering::SeqCst);
            wait_until("the pause", || is_refused.load(Ordering::SeqCst));
            Answer::error(404).slow(Duration::from_millis(1500))
        };
        let field = Field::new(Site::new().host(Host::new(HOST).made("/busy", at_first(busy))));
        let other = Field::new(Site::new().host(plain_host(HOST, 2).made("/robots.txt", late)));
        let (one, two) = (other.url(HOST, "/1"), other.url(HOST, "/2"));
        let more = [
            "--scope",
            "page",
            "--delay",
            "0s",
            "--in-flight",
            "4",
            "--out",
            "pages.jsonl",
            "--json",
            "--quiet",
        ];
        field.run(&[&["crawl", &field.url(HOST, "/busy"), &one, &two], &more[..]].concat()).good_rows();

        let refused = field.seen().into_iter().find(|seen| seen.path == "/busy").unwrap();
        let robots = other.seen().into_iter().find(|seen| seen.path == "/robots.txt").unwrap();
        assert!(robots.arrived < refused.ended.unwrap(), "it was asked for before the pause");
        assert!(robots.ended.unwrap() > refused.ended.unwrap() + web::TOLERANCE, "and came in it");
        let seen: Vec<_> = field.seen().into_iter().chain(other.seen()).collect();
        let rule = Rule { limit: 4, gap: SignedDuration::ZERO, tolerance: web::TOLERANCE };
        let found: Vec<String> =
            checks::politeness(&seen, |_| rule).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{status}: {found:#?}");
        for path in ["/1", "/2"] {
            let times = other.times(HOST, path);
            assert_eq!(times.len(), 1, "{path}");
            assert!(times[0] >= refused.ended.unwrap() + pause, "{status}: {path} at {}", times[0]);
        }
        let lines = field.lines("pages.jsonl");
        let busy = field.url(HOST, "/busy");
        let others: Vec<_> = lines.iter().filter(|line| line["url"] != busy.as_str()).collect();
        assert!(
            others.len() == 2 && others.iter().all(|line| line["status"] == 200),
            "no try was lost: {lines:?}"
        );
        assert_eq!(field.run(&["audit", "--json"]).good_rows().len(), 1);
    }
}

/// The same, where no pause is asked for: a request for the robots.txt of the one site gets no answer.
#[test]
fn what_was_handed_out_before_a_failure_of_robots_txt_goes_back() {
    let (asked, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (is_asked, is_failed) = (asked.clone(), failed.clone());
    let late = move |_: &Asked<'_>| {
        asked.store(true, Ordering::SeqCst);
        wait_until("the failure", || is_failed.load(Ordering::SeqCst));
        Answer::error(404).slow(Duration::from_millis(1500))
    };
    let field = Field::new(Site::new().host(plain_host(HOST, 2).made("/robots.txt", late)));
    field.set("back_off = \"100ms\"\nmax_back_off = \"400ms\"", "back_off = \"4s\"\nmax_back_off = \"4s\"");
    // The address of the host.
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let failed_at = Arc::new(std::sync::Mutex::new(None));
    let noted = failed_at.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            wait_until("a request for robots.txt", || is_asked.load(Ordering::SeqCst));
            noted.lock().unwrap().get_or_insert_with(Timestamp::now);
            failed.store(true, Ordering::SeqCst);
        }
    });
    let broken = format!("http://{HOST}:{port}/");
    let pages = [broken, field.url(HOST, "/1"), field.url(HOST, "/2")];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let more = ["--scope", "page", "--delay", "0s", "--in-flight", "4", "--json", "--quiet"];
    field.run(&[&["crawl"], &pages[..], &more[..]].concat()).good_rows();
    let failed_at = failed_at.lock().unwrap().unwrap();
    for path in ["/1", "/2"] {
        let times = field.times(HOST, path);
        assert_eq!(times.len(), 1, "{path}");
        let waited = times[0].duration_since(failed_at);
        assert!(waited >= SignedDuration::from_secs(4), "{path} after {waited:#}");
    }
    assert_eq!(field.run(&["audit", "--json"]).good_rows().len(), 1);
}

#[test]
fn without_robots_txt_everything_is_allowed() {
    let field = Field::new(Site::new().host(plain_host(HOST, 3)));
    field.crawl(HOST, &[]).good_rows();
    assert_eq!(field.seen()[0].path, "/robots.txt");
    assert_eq!(field.seen()[0].status, Some(404));
    assert_eq!(field.counts(HOST), each(3, 1));
    field.assert_audit();
}

#[test]
fn while_robots_txt_cannot_be_had_nothing_is_fetched() {
    let table = [
        ("500", Answer::error(500), 9),
        ("429", Answer::error(429), 18),
        ("cut off", Answer::text("User-agent: *\nDisallow:\n").cut_after(3), 9),
        (
            "packed in a way that nobody knows",
            Answer::text("User-agent: *\nDisallow:\n").header(http::header::CONTENT_ENCODING, "compress"),
            9,
        ),
    ];
    for (name, answer, status) in table {
        let field = Field::new(Site::new().host(plain_host(HOST, 3).page("/robots.txt", answer)));
        let ran = field.crawl(HOST, &["--crawl-log", "crawl.log"]);
        if status == 9 {
            assert_nothing_fetched(&field, &ran);
        }
        assert_eq!(ran.status, status, "{name}: {ran:?}");
        assert!(ran.stderr.contains(&field.url(HOST, "/: ")), "{name}: {ran:?}");
        let summary = ran.rows().remove(0);
        assert_eq!(field.paths(HOST), Vec::<String>::new(), "{name}");
        let lines = field.lines("pages.jsonl");
        let outcomes = json!({ "robots.txt unreachable": lines.len() });
        assert_eq!((&summary["fetched"], &summary["outcomes"]), (&json!(0), &outcomes), "{name}");
        assert!(lines.iter().all(|line| line["notFetched"] == "robotsUnreachable"), "{name}: {lines:?}");
        let log = std::fs::read_to_string(field.file("crawl.log")).unwrap();
        let (of_robots, of_pages): (Vec<&str>, Vec<&str>) =
            log.lines().partition(|line| line.contains("/robots.txt P "));
        assert_eq!(of_robots.len(), lines.len(), "{name}: each try asks for it again: {log}");
        let is_unreachable = |line: &&str| line.split_whitespace().nth(1) == Some("-61");
        assert!(!of_pages.is_empty() && of_pages.iter().all(is_unreachable), "{name}: {log}");
        assert!(!lines.is_empty() && lines.iter().all(|line| line["status"].is_null()), "{name}: {lines:?}");
        let error = lines[0]["error"].as_str().unwrap();
        assert!(error.contains("robots.txt"), "{name}: {error}");
        field.assert_audit();
    }
}

/// Such a page is there, and nobody can tell what it says.
#[test]
fn a_page_that_is_packed_in_a_way_that_nobody_knows_is_told() {
    let packed = page("Packed", &["/never"]).header(http::header::CONTENT_ENCODING, "compress");
    let field = Field::new(Site::new().host(plain_host(HOST, 1).page("/1", packed)));
    let summary = field.crawl(HOST, &[]).good_rows().remove(0);
    assert_eq!(summary["problems"], 1, "{summary}");
    let problems = &field.line(HOST, "/1")["problems"];
    assert_eq!(
        *problems,
        json!(["its content encoding \"compress\" is not known, so that nobody can read it"])
    );
}

/// RFC 9309, section 2.5: at least 500 KiB count, and what comes after that does not.
#[test]
fn a_huge_robots_txt_counts_as_far_as_it_is_read() {
    let filled = |kib: usize| {
        let mut text = String::from("User-agent: *\n");
        while text.len() < kib << 10 {
            text.push_str("Disallow: /nothing/that/is/there/at/all\n");
        }
        text
    };
    let robots = format!("{}Disallow: /1\n{}Disallow: /2\n", filled(400), filled(600));
    assert!(robots.find("Disallow: /2\n").unwrap() > 1000 << 10);
    let field = Field::new(Site::new().host(plain_host(HOST, 3).robots(&robots)));
    field.crawl(HOST, &[]).good_rows();
    assert_eq!(field.line(HOST, "/1")["notFetched"], "robots", "a rule after 400 KiB");
    assert_eq!(field.line(HOST, "/2")["status"], 200, "a rule after 1,000 KiB");
    assert!(!field.paths(HOST).contains(&"/1".to_owned()), "{:?}", field.paths(HOST));
    field.assert_audit();
}

/// A try before robots.txt is asked for again would ask nobody, and be lost.
#[test]
fn a_page_waits_until_robots_txt_is_asked_for_again() {
    let times = std::sync::atomic::AtomicUsize::new(0);
    let robots = move |_: &forager_site::Asked<'_>| {
        let is_first = times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        if is_first { Answer::error(503).header(http::header::RETRY_AFTER, "3") } else { Answer::error(404) }
    };
    let field = Field::new(Site::new().host(plain_host(HOST, 3).made("/robots.txt", robots)));
    field.set("failed = 2", "failed = 1");
    field.crawl(HOST, &["--skipped", "skipped.jsonl"]).good_rows();
    assert_eq!(field.counts(HOST), each(3, 1), "the one try that it has comes to something");
    let asked = field.times(HOST, "/robots.txt");
    assert_eq!(asked.len(), 2, "{asked:?}");
    let lines = field.lines("pages.jsonl");
    let waited: Vec<&Value> = lines.iter().filter(|line| line["notFetched"] == "robotsUnreachable").collect();
    assert_eq!(waited.len(), 1, "{lines:?}");
    // What is told is when it happens.
    let due: jiff::Timestamp = waited[0]["due"].as_str().unwrap().parse().unwrap();
    assert!(due <= asked[1] && due.duration_since(asked[0]).as_secs() >= 3, "{due}: {asked:?}");
    field.assert_audit();
}

#[test]
fn where_nobody_listens_nothing_is_fetched() {
    let mut field = Field::new(Site::new().host(plain_host(HOST, 3)));
    field.stop();
    let ran = field.crawl(HOST, &[]);
    assert_nothing_fetched(&field, &ran);
    let summary = ran.rows().remove(0);
    assert_eq!(summary["outcomes"], json!({ "robots.txt unreachable": 3 }), "{summary}");
    let lines = field.lines("pages.jsonl");
    assert!(!lines.is_empty() && lines.iter().all(|line| line["status"].is_null()), "{lines:?}");
}

#[test]
fn a_crawl_delay_is_kept_with_one_request_at_a_time() {
    let slowly = |path: &str| page(path, &[]).slow(Duration::from_millis(100));
    let host = plain_host(HOST, 4).robots("User-agent: *\nCrawl-delay: 0.5\n");
    let host = (1..=4).fold(host, |host, number| host.page(format!("/{number}"), slowly("Slow")));
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &["--in-flight", "4", "--delay", "10ms"]).good_rows();
    assert_eq!(field.counts(HOST), each(4, 1));
    field.assert_polite(1, Duration::from_millis(500));
    field.assert_audit();
}

/// Pages that were handed out while robots.txt was under way, before anybody knew what it asks for.
#[test]
fn a_crawl_delay_counts_for_pages_that_have_waited_for_it() {
    let delay = Duration::from_millis(1500);
    let robots = Answer::text("User-agent: *\nCrawl-delay: 1.5\n").slow(Duration::from_millis(800));
    let field = Field::new(Site::new().host(plain_host(HOST, 3).page("/robots.txt", robots)));
    let pages = ["/1", "/2", "/3"].map(|path| field.url(HOST, path));
    let more = ["--scope", "page", "--delay", "10ms", "--in-flight", "4", "--json", "--quiet"];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    field.run(&[&["crawl"], &pages[..], &more[..]].concat()).good_rows();
    assert_eq!(field.paths(HOST).len(), 3, "each page once: {:?}", field.paths(HOST));
    // A request ends after it began: counted from the end of robots.txt nothing is late because the machine is.
    let robots = field.seen().remove(0);
    let first = field.seen().into_iter().map(|seen| seen.arrived).nth(1).unwrap();
    assert!(first >= robots.ended.unwrap() + web::TOLERANCE, "{first}, right after robots.txt");
    field.assert_polite(1, delay);
    field.assert_audit();
}

/// Two sites of one host, at two ports: the one asks for pauses, the other knows nothing of it.
#[test]
fn the_longest_crawl_delay_of_the_sites_of_a_host_counts_for_all() {
    let slow = Field::new(Site::new().host(plain_host(HOST, 1).robots("User-agent: *\nCrawl-delay: 1\n")));
    let quick = Field::new(Site::new().host(plain_host(HOST, 3)));
    slow.crawl(HOST, &[]).good_rows();
    let start = quick.url(HOST, "/");
    slow.run(&["crawl", &start, "--json", "--quiet", "--in-flight", "4"]).good_rows();
    assert_eq!(quick.counts(HOST), each(3, 1));
    let hosts = slow.run(&["queue", "hosts", "--json"]).good_rows();
    assert_eq!(hosts[0]["crawlDelay"], "1s", "{hosts:?}");
    let seen: Vec<_> = slow.seen().into_iter().chain(quick.seen()).collect();
    let rule = Rule { limit: 1, gap: SignedDuration::from_secs(1), tolerance: web::TOLERANCE };
    let found: Vec<String> = checks::politeness(&seen, |_| rule).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(slow.run(&["audit", "--json"]).good_rows().len(), 1);
}

/// Two sites of one host: while two pages of the one are under way, the other asks for pauses.
#[test]
fn what_was_sent_before_a_crawl_delay_was_known_is_judged_by_the_limits_of_then() {
    let sent = Arc::new(AtomicUsize::new(0));
    let is_sent = sent.clone();
    let slowly = move |sent: Arc<AtomicUsize>| {
        move |_: &Asked<'_>| {
            sent.fetch_add(1, Ordering::SeqCst);
            page("Slow", &[]).slow(Duration::from_millis(1500))
        }
    };
    let quick = plain_host(HOST, 2).made("/1", slowly(sent.clone())).made("/2", slowly(sent));
    let late = move |_: &Asked<'_>| {
        wait_until("two pages", || is_sent.load(Ordering::SeqCst) == 2);
        Answer::text("User-agent: *\nCrawl-delay: 1\n")
    };
    let field = Field::new(Site::new().host(quick));
    let other = Field::new(Site::new().host(plain_host(HOST, 1).made("/robots.txt", late)));
    let pages = [other.url(HOST, "/1"), field.url(HOST, "/1"), field.url(HOST, "/2")];
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    let more = ["--scope", "page", "--delay", "10ms", "--in-flight", "4", "--json", "--quiet"];
    field.run(&[&["crawl"], &pages[..], &more[..]].concat()).good_rows();
    let (robots, page) = (other.seen().remove(0), other.seen().remove(1));
    let pages: Vec<_> = field.seen().into_iter().filter(|seen| seen.path != "/robots.txt").collect();
    assert!(pages.len() == 2 && pages.iter().all(|page| page.ended.unwrap() > robots.ended.unwrap()));
    assert!(page.arrived + web::TOLERANCE >= robots.ended.unwrap() + SignedDuration::from_secs(1));
    assert_eq!(field.run(&["audit", "--json"]).good_rows().len(), 1, "nobody is accused");
}

#[test]
fn a_host_that_refuses_its_robots_txt_is_left_alone_though_it_does_not_say_how_long() {
    for status in [429, 503] {
        let field =
            Field::new(Site::new().host(plain_host(HOST, 1).page("/robots.txt", Answer::error(status))));
        field.set("back_off = \"100ms\"", "back_off = \"2h\"");
        field.set("max_back_off = \"400ms\"", "max_back_off = \"4h\"");
        let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
        wait_until("a request for robots.txt", || !field.seen().is_empty());
        wait_until("what came of it", || {
            field.file("pages.jsonl").metadata().is_ok_and(|file| file.len() > 0)
        });
        crawl.signal("INT");
        assert_eq!(crawl.end().status, 11, "{status}");
        let host = field.run(&["queue", "hosts", "--json"]).good_rows().remove(0);
        let opens: Timestamp = host["opens"].as_str().unwrap_or_else(|| panic!("{host}")).parse().unwrap();
        assert_eq!(host["gate"], "backOff", "{host}");
        assert!(opens.duration_since(Timestamp::now()) > SignedDuration::from_hours(1), "{host}");
        assert_eq!(field.seen().len(), 1, "{status}");
        field.assert_audit();
    }
}

#[test]
fn a_longer_delay_of_our_own_goes_over_that_of_robots_txt() {
    let host = plain_host(HOST, 3).robots("User-agent: *\nCrawl-delay: 0.1\n");
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &["--delay", "400ms"]).good_rows();
    field.assert_polite(2, Duration::from_millis(400));
    field.assert_audit();
}

#[test]
fn rules_for_us_by_name_go_over_those_for_everyone() {
    let table = [
        ("forager", ""),
        ("Example2", "user_agent = \"Example2/1.0\"\n"),
        ("example_2-b", "user_agent = \"Example_2-B (reads)\"\n"),
    ];
    for (name, line) in table {
        let rules = format!("User-agent: *\nDisallow: /\n\nUser-agent: {name}\nDisallow: /2\n");
        let field = Field::new(Site::new().host(plain_host(HOST, 3).robots(&rules)));
        field.set("contact = ", &format!("{line}contact = "));
        field.crawl(HOST, &[]).good_rows();
        let mut want = each(3, 1);
        want.remove("/2");
        assert_eq!(field.counts(HOST), want, "{name}");
        field.assert_audit();
    }
}

/// Each name has rules of its own: they hold from its first request on, and the audit goes by those of the time.
#[test]
fn another_name_goes_by_its_own_rules_at_once() {
    let rules = "User-agent: fastbot\nDisallow: /3\n\nUser-agent: slowbot\nCrawl-delay: 1\nDisallow: /2\n\n\
                 User-agent: *\nDisallow: /\n";
    let field = Field::new(Site::new().host(plain_host(HOST, 3).robots(rules)));
    field.set("contact = ", "user_agent = \"FastBot/1.0\"\ncontact = ");
    field.crawl(HOST, &[]).good_rows();
    let before = field.seen().len();
    field.set("FastBot", "SlowBot");
    field.crawl(HOST, &["--name", "second"]).good_rows();
    let as_slow = field.seen().split_off(before);
    assert_eq!(as_slow[0].path, "/robots.txt", "another name may be answered otherwise");
    for pair in as_slow.windows(2) {
        let gap = pair[1].arrived.duration_since(pair[0].arrived);
        assert!(gap >= SignedDuration::from_secs(1) - TOLERANCE, "{gap:?} before {}", pair[1].path);
    }
    let want: BTreeMap<String, usize> =
        [("/", 2), ("/1", 2), ("/2", 1), ("/3", 1)].map(|(path, count)| (path.to_owned(), count)).into();
    assert_eq!(field.counts(HOST), want);
    // The name that is configured now was forbidden everything, and has asked for nothing.
    field.set("SlowBot", "OtherBot");
    field.assert_audit();
    let exported = field.run(&["export"]);
    assert_eq!(exported.status, 0, "{exported:?}");
    let import = &mut field.queue.command(&["import", "--data", "moved", "-"]);
    assert_eq!(run_command(import, exported.stdout).status, 0);
    assert_eq!(field.run(&["audit", "--json", "--data", "moved"]).good_rows().len(), 1);
}

#[test]
fn what_robots_txt_forbids_is_told_with_its_line_and_how_long_that_counts() {
    let rules = "# ours\nUser-agent: *\nDisallow: /2\n";
    let field = Field::new(Site::new().host(plain_host(HOST, 2).robots(rules)));
    let summary = field.crawl(HOST, &["--name", "job"]).good_rows().remove(0);
    assert_eq!(
        (&summary["fetched"], &summary["outcomes"]["forbidden by robots.txt"]),
        (&json!(2), &json!(1))
    );
    let line = field.line(HOST, "/2");
    assert_eq!((&line["notFetched"], &line["error"]), (&json!("robots"), &json!("line 3: Disallow: /2")));
    let (source, decided) = (field.url(HOST, "/robots.txt"), "line 3: Disallow: /2");
    let rule = line["rule"].as_str().unwrap();
    let start = format!("forbidden by robots.txt: {decided}; {source} counts until ");
    let until: Timestamp = rule.strip_prefix(&start).unwrap_or_else(|| panic!("{rule}")).parse().unwrap();
    let ahead = until.duration_since(Timestamp::now());
    assert!(ahead > SignedDuration::from_hours(23) && ahead <= SignedDuration::from_hours(24), "{until}");

    let explained = field.run(&["explain", &field.url(HOST, "/2"), "--json"]).good_rows().remove(0);
    let robots = &explained["robots"];
    assert_eq!((&robots["allowed"], &robots["rule"]), (&json!(false), &json!(decided)), "{explained}");
    assert_eq!((&robots["source"], &robots["expires"]), (&json!(source), &json!(until)), "{explained}");
    let needs = format!("{source} has to allow it: {decided}");
    assert!(explained["wouldNeed"].as_array().unwrap().contains(&json!(needs)), "{explained}");
    let shown = field.run(&["explain", &field.url(HOST, "/2"), "--format", "table"]).stdout;
    for part in
        [format!("forbidden: {decided}"), format!("by {source}, asked for at "), "counts until".into()]
    {
        assert!(shown.contains(&part), "{part}: {shown}");
    }
    let allowed = field.run(&["explain", &field.url(HOST, "/1"), "--json"]).good_rows().remove(0);
    let robots = &allowed["robots"];
    assert_eq!(
        (&robots["allowed"], &robots["rule"]),
        (&json!(true), &json!("no rule of robots.txt matches"))
    );
}

#[test]
fn rules_may_be_moved_to_another_place() {
    let moved = |asked: &Asked<'_>| Answer::redirect(301, &asked.url("rules.test", "/robots-of-a.txt"));
    let rules = Answer::text("User-agent: *\nDisallow: /2\n");
    let site = Site::new()
        .host(plain_host(HOST, 3).made("/robots.txt", moved))
        .host(Host::new("rules.test").page("/robots-of-a.txt", rules));
    let field = Field::new(site);
    field.crawl(HOST, &[]).good_rows();
    assert!(!field.counts(HOST).contains_key("/2"));
    assert_eq!(field.counts(HOST).len(), 3);
    assert_eq!(field.paths("rules.test"), ["/robots-of-a.txt"]);
    field.assert_audit();
    // Where the rules came from is not told of then, but counts.
    let alone = field.run(&["audit", "--json", "--host", HOST]).good_rows();
    let told: Vec<_> = alone.iter().map(|row| (&row["host"], &row["fetches"])).collect();
    assert_eq!(told, [(&json!(HOST), &json!(4))]);
    let dotted = format!("{}.", HOST.to_uppercase());
    assert_eq!(field.run(&["audit", "--json", "--host", &dotted]).good_rows(), alone, "it is the same host");
    // Of whom nothing is known, nothing is proved.
    let unknown = field.run(&["audit", "--host", "nosuch.test"]);
    assert!(unknown.status == 4 && unknown.stderr.contains("nothing to prove"), "{unknown:?}");
}

#[test]
fn rules_that_lead_nowhere_are_none() {
    let round = |asked: &Asked<'_>| Answer::redirect(302, &asked.url(HOST, "/robots.txt"));
    let table: [(&str, Host, usize); 2] = [
        ("a redirect without a target", plain_host(HOST, 2).page("/robots.txt", Answer::error(302)), 1),
        ("a redirect to itself", plain_host(HOST, 2).made("/robots.txt", round), 6),
    ];
    for (name, host, requests) in table {
        let field = Field::new(Site::new().host(host));
        field.crawl(HOST, &[]).good_rows();
        assert_eq!(field.times(HOST, "/robots.txt").len(), requests, "{name}");
        assert_eq!(field.counts(HOST), each(2, 1), "{name}");
        field.assert_audit();
    }
}

/// As most sites do that have moved to https: and there may be no room for a second request beside that of the page.
#[test]
fn rules_may_be_moved_within_their_host() {
    let host = plain_host(HOST, 3)
        .page("/robots.txt", Answer::redirect(301, "/moved/robots.txt"))
        .page("/moved/robots.txt", Answer::text("User-agent: *\nDisallow: /2\n"));
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &["--in-flight", "1"]).good_rows();
    let paths = field.paths(HOST);
    assert_eq!(paths.first().map(String::as_str), Some("/moved/robots.txt"));
    assert!(!paths.contains(&"/2".to_owned()) && paths.contains(&"/1".to_owned()), "{paths:?}");
    field.assert_polite(1, GAP);
    field.assert_audit();
}

#[test]
fn sitemaps_of_every_kind_lead_to_pages() {
    let index = |asked: &Asked<'_>| {
        let parts =
            ["/part-1.xml", "/part-2.xml.gz", "/part-3.txt"].map(|path| (asked.url(HOST, path), None));
        Answer::xml(listing::index(parts))
    };
    let part =
        |path: &'static str| move |asked: &Asked<'_>| listing::sitemap([(asked.url(HOST, path), None)]);
    let (first, second) = (part("/from-1"), part("/from-2"));
    let host = Host::new(HOST)
        .made("/robots.txt", |asked| {
            let (one, other) = (asked.url(HOST, "/index.xml"), asked.url("lists.test", "/of-a.xml"));
            Answer::text(format!("Sitemap: {one}\nSitemap: {other}\n"))
        })
        .made("/index.xml", index)
        .made("/part-1.xml", move |asked| Answer::xml(first(asked)))
        .made("/part-2.xml.gz", move |asked| Answer::new("application/gzip", listing::gzip(&second(asked))))
        .made("/part-3.txt", |asked| Answer::text(asked.url(HOST, "/from-3")))
        .page("/", page("Home", &[]));
    let host = (1..=4).fold(host, |host, number| host.page(format!("/from-{number}"), page("Listed", &[])));
    let lists = Host::new("lists.test").made("/of-a.xml", |asked| {
        Answer::xml(listing::sitemap([
            (asked.url(HOST, "/from-4"), None),
            (asked.url("lists.test", "/page"), None),
        ]))
    });
    let field = Field::new(Site::new().host(host).host(lists.page("/page", page("Not ours", &[]))));
    field.crawl(HOST, &[]).good_rows();
    let counts = field.counts(HOST);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for number in 1..=4 {
        assert!(counts.contains_key(&format!("/from-{number}")), "{number}: {counts:?}");
    }
    assert_eq!(
        field.paths("lists.test"),
        ["/of-a.xml"],
        "a list may lie elsewhere; its pages are judged as links"
    );
    field.assert_polite(2, GAP);
    field.assert_audit();
}

#[test]
fn a_server_that_goes_away_and_comes_back_is_crawled_to_the_end() {
    let mut field = Field::new(Site::new().host(plain_host(HOST, 12)));
    field.set("failed = 2", "failed = 50");
    let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
    field.wait_for(HOST, 5);
    field.stop();
    wait_until("a fetch that fails", || {
        let text = std::fs::read_to_string(field.file("pages.jsonl")).unwrap();
        text.lines().filter(|line| line.contains("\"error\"")).count() >= 2
    });
    field.serve_again();
    assert_eq!(crawl.end().status, 0);
    let whole: std::collections::BTreeSet<String> = field
        .seen()
        .into_iter()
        .filter(|seen| seen.status == Some(200) && seen.whole)
        .map(|seen| seen.path)
        .collect();
    assert_eq!(whole, each(12, 1).into_keys().collect());
    let lines = field.lines("pages.jsonl");
    let done: Vec<_> =
        lines.iter().filter(|line| line["status"] == 200).map(|line| line["url"].as_str().unwrap()).collect();
    assert_eq!(done.len(), 13, "every page once: {done:?}");
    field.assert_polite(2, GAP);
    assert_eq!(field.run(&["audit", "--json"]).good_rows().len(), 1);
}
