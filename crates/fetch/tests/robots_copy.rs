//! What becomes of a robots.txt over time: RFC 9309, sections 2.3.1 and 2.4.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::robots::{Answer, Copy, LastTry, MAX_BYTES, Outcome, Robots, Rules, Standing, of_answer};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

const FILE: &str = "User-agent: *\nDisallow: /private\n";

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn start() -> Timestamp {
    at("2026-01-01T00:00:00Z")
}

fn answer(status: u16, body: &str) -> Outcome<'_> {
    Outcome::Answer(Answer { status, body: body.as_bytes(), ..Answer::default() })
}

fn failed(error: &str) -> Outcome<'static> {
    Outcome::Failed { error: error.to_owned() }
}

fn known() -> Copy {
    of_answer(&answer(200, FILE), None, start())
}

/// Whether `/private/a` may be fetched, and why.
fn ruling(copy: &Copy) -> (bool, String) {
    let url = FetchUrl::parse("https://example.org/private/a").unwrap();
    let ruling = copy.rules("forager").verdict(&url);
    (ruling.allowed, ruling.to_string())
}

/// Each answer where nothing was known before, and where a file was.
#[test]
fn what_an_answer_means() {
    let rule = (false, "line 2: Disallow: /private");
    let none = (true, "no rule of robots.txt matches");
    let copy =
        (false, "line 2: Disallow: /private (copy of 2026-01-01T00:00:00Z; robots.txt is unreachable now)");
    let missing = |why| (true, why);
    let shut = |why| (false, why);
    let cases = [
        ("a file", answer(200, FILE), rule, rule),
        ("another success", answer(203, FILE), rule, rule),
        ("no content", answer(204, ""), none, none),
        ("a page", answer(200, "<html>: x"), none, none),
        ("not found", answer(404, FILE), missing("no robots.txt (404)"), missing("no robots.txt (404)")),
        ("gone", answer(410, ""), missing("no robots.txt (410)"), missing("no robots.txt (410)")),
        ("not for us", answer(401, ""), missing("no robots.txt (401)"), missing("no robots.txt (401)")),
        ("forbidden", answer(403, ""), missing("no robots.txt (403)"), missing("no robots.txt (403)")),
        ("too many requests", answer(429, FILE), shut("(429)"), copy),
        ("an error", answer(500, FILE), shut("(500)"), copy),
        ("unavailable", answer(503, ""), shut("(503)"), copy),
        ("no status there is", answer(700, ""), shut("(700)"), copy),
        ("an answer before the answer", answer(102, ""), shut("(102)"), copy),
        ("a time-out", failed("timed out"), shut("(timed out)"), copy),
        ("redirects", Outcome::TooManyRedirects, missing("no robots.txt (more than 5 redirects)"), copy),
        ("a redirect to nowhere", answer(302, ""), missing("no robots.txt (302)"), copy),
        ("not modified", answer(304, ""), missing("no robots.txt (304)"), rule),
    ];
    let next_day = at("2026-01-02T00:00:00Z");
    for (name, outcome, alone, after) in cases {
        let (allowed, mut why) = ruling(&of_answer(&outcome, None, next_day));
        why = why.replace("robots.txt is unreachable since 2026-01-02T00:00:00Z ", "");
        assert_eq!((allowed, why.as_str()), alone, "{name}");
        let (allowed, why) = ruling(&of_answer(&outcome, Some(&known()), next_day));
        assert_eq!((allowed, why.as_str()), after, "{name}, after a file");
    }
}

#[test]
fn robots_txt_itself_may_be_fetched_when_nothing_else_may() {
    let rules = of_answer(&failed("refused"), None, start()).rules("forager");
    for (path, want) in [("robots.txt", true), ("", false)] {
        let url = FetchUrl::parse(&format!("https://example.org/{path}")).unwrap();
        assert_eq!(rules.verdict(&url).allowed, want, "/{path}");
    }
}

#[test]
fn a_copy_is_used_for_a_day_at_most() {
    let cases = [
        ("nothing said", None, 24 * 60),
        ("an hour", Some("public, max-age=3600"), 60),
        ("a year", Some("max-age=31536000"), 24 * 60),
        ("no time at all", Some("max-age=0"), 5),
        ("in capitals and quotes", Some("Max-Age=\"7200\""), 120),
        ("not to be kept", Some("no-store"), 5),
        ("to be asked for each time", Some("no-cache, max-age=3600"), 5),
        ("to be asked for each time, said last", Some("max-age=3600, no-cache"), 5),
        ("absurd", Some("max-age=99999999999999999999999999"), 24 * 60),
        ("negative", Some("max-age=-5"), 24 * 60),
        ("no number", Some("max-age=soon"), 24 * 60),
        ("for shared stores only", Some("s-maxage=60"), 24 * 60),
    ];
    for (name, cache_control, minutes) in cases {
        for status in [200, 404] {
            let answer = Outcome::Answer(Answer { status, cache_control, ..Answer::default() });
            let copy = of_answer(&answer, None, start());
            let expires = start() + SignedDuration::from_mins(minutes);
            assert_eq!((copy.fetched_at, copy.expires), (start(), expires), "{name}, {status}");
            assert!(
                copy.is_fresh(expires - SignedDuration::from_secs(1)) && !copy.is_fresh(expires),
                "{name}"
            );
        }
    }
}

#[test]
fn a_copy_outlives_the_pause_that_its_host_wants() {
    let table = [
        ("short", "2s", 5),
        ("long", "10m", 20),
        ("almost a day", "23h", 24 * 60),
        // Nobody may come sooner: a copy that was too old by then would have to be asked for anew each time.
        ("a day", "24h", 25 * 60),
        ("a month", "720h", 721 * 60),
    ];
    for (name, pause, minutes) in table {
        let cache_control = Some("no-cache");
        let answer = Outcome::Answer(Answer { status: 200, cache_control, ..Answer::default() });
        let mut copy = of_answer(&answer, None, start());
        copy.keep_for_pages_every(pause.parse().unwrap());
        assert_eq!(copy.expires, start() + SignedDuration::from_mins(minutes), "{name}");
    }
}

#[test]
fn failures_are_retried_sooner_than_in_a_day_and_ever_later() {
    let mut copy = known();
    let mut waits = Vec::new();
    for _ in 0..8 {
        copy = of_answer(&answer(503, ""), Some(&copy), copy.expires);
        waits.push(copy.expires.duration_since(copy.fetched_at).as_mins());
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 360, 360]);
    assert_eq!(copy.unreachable_since, Some(at("2026-01-02T00:00:00Z")), "the first failure");
    let back = of_answer(&answer(200, FILE), Some(&copy), copy.expires);
    assert_eq!((back.unreachable_since, back.failures, back.standing), (None, 0, Standing::Found));
}

#[test]
fn retry_after_is_waited_for_within_a_day() {
    for (name, asked, minutes) in [("longer", 3, 180), ("absurd", 9_999, 24 * 60), ("shorter", 0, 10)] {
        let answer = Answer { status: 429, retry_after: Some(Interval::hours(asked)), ..Answer::default() };
        let copy = of_answer(&Outcome::Answer(answer), None, start());
        assert_eq!(copy.expires, start() + SignedDuration::from_mins(minutes), "{name}");
    }
}

/// Asks again whenever it is due, and fails each time, for so many days.
fn fail_for(days: i64, first: Option<&Copy>) -> Copy {
    let begin = first.map_or(start(), |copy| copy.expires);
    let mut copy = of_answer(&failed("refused"), first, begin);
    while copy.expires <= begin + SignedDuration::from_hours(days * 24) {
        copy = of_answer(&failed("refused"), Some(&copy), copy.expires);
    }
    copy
}

#[test]
fn after_30_days_of_failures_there_is_no_file() {
    let why =
        "robots.txt is unreachable since 2026-01-01T00:00:00Z (refused): after 30 days that counts as none";
    assert!(!ruling(&fail_for(29, None)).0);
    assert_eq!(ruling(&fail_for(31, None)), (true, why.to_owned()));
    assert!(!ruling(&fail_for(29, Some(&known()))).0, "an earlier file counts");
    assert!(ruling(&fail_for(31, Some(&known()))).0, "but not for ever");
}

#[test]
fn two_failures_a_month_apart_are_not_a_month_of_failures() {
    let first = of_answer(&failed("refused"), None, start());
    let second = of_answer(&failed("refused"), Some(&first), at("2026-03-01T00:00:00Z"));
    assert_eq!(second.standing, Standing::Unreachable);
}

#[test]
fn that_there_was_no_file_is_no_copy_to_go_by() {
    let missing = of_answer(&answer(404, ""), Some(&known()), at("2026-01-02T00:00:00Z"));
    let copy = of_answer(&answer(500, ""), Some(&missing), missing.expires);
    assert_eq!((copy.standing, copy.file.is_none()), (Standing::Unreachable, true));
    assert!(!ruling(&copy).0);
}

#[test]
fn the_file_is_kept_as_evidence_within_bounds() {
    let long = format!("{FILE}#{}\nDisallow: /b", "x".repeat(MAX_BYTES));
    let copy = of_answer(&answer(200, &long), None, start());
    assert_eq!(copy.file.unwrap().body, FILE.as_bytes(), "whole lines only");
    let half = b"User-agent: *\nDisallow: /priv";
    for (is_cut, want) in [(true, &half[..14]), (false, half)] {
        let answer = Answer { status: 200, body: half, is_cut, ..Answer::default() };
        let copy = of_answer(&Outcome::Answer(answer), None, start());
        assert_eq!(copy.file.unwrap().body, want, "a rule that may be half a rule is none");
    }
    let LastTry::Failed(words) = of_answer(&failed(&"é".repeat(9_999)), None, start()).last else {
        panic!()
    };
    assert_eq!(words.chars().count(), 300);
}

#[test]
fn a_copy_can_be_stored() {
    let copies = [
        known(),
        of_answer(&failed("refused"), Some(&known()), start()),
        of_answer(&answer(404, ""), None, start()),
        of_answer(&Outcome::TooManyRedirects, None, start()),
    ];
    for copy in copies {
        let json = serde_json::to_string(&copy).unwrap();
        assert_eq!(serde_json::from_str::<Copy>(&json).unwrap(), copy);
    }
}

#[test]
fn rules_tell_the_file_they_are_from() {
    let copy = of_answer(&answer(200, "User-agent: *\nCrawl-delay: 3"), None, start());
    let rules = copy.rules("forager");
    assert!(matches!(rules, Rules::File { copy_of: None, .. }));
    assert!(rules.robots().unwrap().crawl_delay().is_some());
    assert!(of_answer(&answer(404, ""), None, start()).rules("forager").robots().is_none());
}

proptest! {
    /// A file means from the store what it meant when it came, also if it is longer than is kept.
    #[test]
    fn a_stored_file_means_the_same(tail in "(Disallow: /[a-c]\n?){0,5}", fill in MAX_BYTES - 60..MAX_BYTES + 10) {
        let body = format!("User-agent: *\n#{}\n{tail}", "x".repeat(fill));
        let copy = of_answer(&answer(200, &body), None, start());
        let robots = Robots::parse(body.as_bytes(), "forager");
        prop_assert_eq!(copy.rules("forager"), Rules::File { robots, copy_of: None });
    }
}
