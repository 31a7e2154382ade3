//! robots.txt: the cases of RFC 9309, and what it leaves open.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "vectors/robots.rs"]
mod vectors;

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::robots::{Addressed, MAX_BYTES, MAX_EXTRAS, MAX_SITEMAPS, MAX_TEXT_BYTES, Robots};
use proptest::prelude::*;
use vectors::{
    Case, ENDS, ENDS_OF_FILES, ESCAPES, FREE, GROUPS, ITSELF, LENGTHS, LINES, NAMES, PATHS, SPECIAL, denied,
};

fn url(path: &str) -> FetchUrl {
    FetchUrl::parse(&format!("https://example.org{path}")).unwrap()
}

fn check(cases: &[Case<'_>]) {
    for &(name, body, path, want) in cases {
        let verdict = Robots::parse(body.as_bytes(), "forager").verdict(&url(path));
        assert_eq!((verdict.allowed, verdict.rule.map(|rule| rule.line)), want, "{name}");
    }
}

/// The same for lines of our own group, the first of which is line 2.
fn check_rules(cases: &[Case<'_>]) {
    for &(name, rules, path, want) in cases {
        check(&[(name, &format!("User-agent: forager\n{rules}\n"), path, want)]);
    }
}

/// Section 2.2.1: the user-agent line.
#[test]
fn groups_are_chosen_by_name() {
    check(GROUPS);
}

#[test]
fn names_are_compared_whole() {
    for &(name, agent, is_meant) in NAMES {
        let want = if is_meant { denied(2) } else { FREE };
        check(&[(name, &format!("User-agent: {agent}\nDisallow: /\n"), "/", want)]);
    }
}

/// Section 2.2: where groups begin and end.
#[test]
fn a_group_ends_at_the_next_name_after_a_rule() {
    check_rules(ENDS);
    check(ENDS_OF_FILES);
}

/// Section 2.2.2: the most octets win, and `Allow` wins ties.
#[test]
fn the_longest_rule_decides() {
    check_rules(LENGTHS);
}

/// Section 2.2.2: from the start of the path, case counts, the query is part of it.
#[test]
fn paths_match_from_their_start() {
    check_rules(PATHS);
}

/// Section 2.2.3: `#`, `$` and `*`.
#[test]
fn special_characters() {
    check_rules(SPECIAL);
}

/// Section 2.2.2: percent-encoding is normalised on both sides.
#[test]
fn escapes_mean_what_they_stand_for() {
    check_rules(ESCAPES);
}

/// Section 2.2: lines as people write them.
#[test]
fn lines_of_all_sorts() {
    check(LINES);
}

/// Section 2.2.2: robots.txt itself is allowed, whatever it says.
#[test]
fn the_file_itself_is_always_allowed() {
    check_rules(ITSELF);
}

#[test]
fn bytes_that_are_no_text_are_octets() {
    let robots = Robots::parse(b"\xFF\xFE\nUser-agent: forager\nDisallow: /\xFCber\n", "forager");
    let verdict = robots.verdict(&url("/%fcber"));
    assert!(!verdict.allowed);
    assert_eq!(verdict.rule.unwrap().to_string(), "line 3: Disallow: /\u{fffd}ber");
    assert!(robots.verdict(&url("/%C3%BCber")).allowed, "the same letter in UTF-8 is not the same path");
}

#[test]
fn our_own_name_may_have_a_version_or_be_missing() {
    let body = b"User-agent: forager\nDisallow: /a\nUser-agent: *\nDisallow: /b\n";
    for (name, token, line) in [("a version", "Forager/2.1", 2), ("none", "", 4), ("no name", "/", 4)] {
        let robots = Robots::parse(body, token);
        assert_eq!(robots.rules().map(|(rule, _)| rule.line).collect::<Vec<_>>(), [line], "{name}");
    }
    assert!(Robots::parse(b"User-agent:\nDisallow: /\n", "").verdict(&url("/")).allowed, "nobody is nobody");
}

#[test]
fn whom_the_rules_are_for() {
    let cases = [
        ("us", "User-agent: *\nDisallow: /\nUser-agent: Forager\n", Addressed::Us),
        ("everyone", "User-agent: *\n", Addressed::Everyone),
        ("nobody", "User-agent: other\nDisallow: /\n", Addressed::Nobody),
    ];
    for (name, body, want) in cases {
        assert_eq!(Robots::parse(body.as_bytes(), "forager").addressed(), want, "{name}");
    }
}

/// Section 2.5: at least 500 KiB.
#[test]
fn the_first_500_kib_count() {
    let (head, rule) = ("User-agent: forager\n", "Disallow: /secret");
    let exact = MAX_BYTES - head.len() - rule.len();
    let cases = [
        ("all within", exact, "", false),
        ("all within, and more behind it", exact, "\nAllow: /secret", false),
        ("cut in the middle", exact + 3, "", true),
        ("all behind the limit", MAX_BYTES, "", true),
    ];
    for (name, fill, behind, want) in cases {
        let filler = format!("#{}\n", "x".repeat(fill - 2));
        let robots = Robots::parse(format!("{head}{filler}{rule}{behind}").as_bytes(), "forager");
        assert_eq!(robots.verdict(&url("/secret")).allowed, want, "{name}");
    }
}

#[test]
fn long_lines_are_read_whole_and_shown_short() {
    let path = format!("/{}", "a".repeat(60_000));
    let robots = Robots::parse(format!("User-agent: *\nDisallow: {path}\n").as_bytes(), "forager");
    let verdict = robots.verdict(&url(&path));
    assert!(!verdict.allowed);
    let text = verdict.rule.unwrap().text;
    assert!(text.starts_with("Disallow: /aaa") && text.ends_with('…') && text.len() < MAX_TEXT_BYTES + 4);
    assert!(robots.verdict(&url(&path[..path.len() - 1])).allowed, "all of the line counts");
}

#[test]
fn crawl_delays() {
    let cases = [
        ("seconds", "User-agent: *\nCrawl-delay: 10", "10s"),
        ("decimals", "User-agent: *\nCrawl-delay: 2.5", "2500ms"),
        ("a decimal comma", "User-agent: *\nCrawl-delay: 2,5", "2500ms"),
        ("rounded up", "User-agent: *\nCrawl-delay: 0.0001", "1ms"),
        ("a unit behind it", "User-agent: *\nCrawl-delay: 7s", "7s"),
        ("a comment behind it", "User-agent: *\nCrawl-delay: 7 # seconds", "7s"),
        ("in capitals", "User-agent: *\nCRAWL-DELAY: 7", "7s"),
        ("ours", "User-agent: *\nCrawl-delay: 9\nUser-agent: forager\nCrawl-delay: 3", "3s"),
        ("not everyone's", "User-agent: *\nCrawl-delay: 9\nUser-agent: forager\nDisallow:", "none"),
        ("the longest of several", "User-agent: *\nCrawl-delay: 3\nCrawl-delay: 9\nCrawl-delay: 5", "9s"),
        ("of the names above it", "User-agent: forager\nCrawl-delay: 3\nUser-agent: b\nCrawl-delay: 9", "3s"),
        ("of all the names above it", "User-agent: forager\nUser-agent: b\nCrawl-delay: 9", "9s"),
        ("behind a rule", "User-agent: forager\nDisallow: /a\nCrawl-delay: 3", "3s"),
        ("of another", "User-agent: other\nCrawl-delay: 3", "none"),
        ("before any group", "Crawl-delay: 3\nUser-agent: *\nDisallow:", "none"),
        ("zero", "User-agent: *\nCrawl-delay: 0", "none"),
        ("negative", "User-agent: *\nCrawl-delay: -1", "none"),
        ("not a number", "User-agent: *\nCrawl-delay: NaN", "none"),
        ("endless", "User-agent: *\nCrawl-delay: inf", "none"),
        ("a word", "User-agent: *\nCrawl-delay: slow", "none"),
        ("nothing", "User-agent: *\nCrawl-delay:", "none"),
        ("two points", "User-agent: *\nCrawl-delay: 1.2.3", "none"),
        ("absurd", "User-agent: *\nCrawl-delay: 1000000000000000000", "30 days"),
    ];
    for (name, body, want) in cases {
        let want: Option<Interval> = (want != "none").then(|| want.parse().unwrap());
        assert_eq!(Robots::parse(body.as_bytes(), "forager").crawl_delay(), want, "{name}");
    }
}

#[test]
fn sitemaps_belong_to_no_group() {
    let body = "Sitemap: https://example.org/a.xml\nUser-agent: other\nDisallow: /\n\
                sitemap: https://example.org/b.xml # b\nSitemap: https://example.org/a.xml\nSitemap:\n\
                User-agent: *\nSITEMAP : /c.xml\n";
    let robots = Robots::parse(body.as_bytes(), "forager");
    assert_eq!(robots.sitemaps(), ["https://example.org/a.xml", "https://example.org/b.xml", "/c.xml"]);
}

#[test]
fn other_lines_are_kept_where_they_concern_us() {
    let body = "Host: example.org\nUser-agent: other\nContent-Signal: ai-train=yes\nDisallow: /\n\
                User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\nLLM-Policy: /llms.txt\n";
    let robots = Robots::parse(body.as_bytes(), "forager");
    let want =
        [("Host", "example.org"), ("Content-Signal", "search=yes, ai-train=no"), ("LLM-Policy", "/llms.txt")];
    assert_eq!(robots.extras(), want.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn what_is_kept_is_bounded() {
    let lines = |number| format!("Sitemap: https://example.org/{number}.xml\nNote: {number}\n");
    let many: String = (0..5_000).map(lines).collect();
    let robots = Robots::parse(format!("User-agent: *\n{many}").as_bytes(), "forager");
    assert_eq!((robots.sitemaps().len(), robots.extras().len()), (MAX_SITEMAPS, MAX_EXTRAS));
    let long = format!("Sitemap: https://example.org/{}", "x".repeat(MAX_TEXT_BYTES));
    assert!(Robots::parse(long.as_bytes(), "forager").sitemaps().is_empty(), "half a URL is none");
}

/// A file of lines as they come, most of them meaningful.
fn files() -> impl Strategy<Value = String> {
    let name = prop_oneof![Just("forager"), Just("FORAGER"), Just("*"), Just("other"), Just("foragerbot")];
    let line = prop_oneof![
        2 => name.prop_map(|name| format!("User-agent: {name}")),
        4 => ("(Allow|Disallow): ?", "(/[ab/*]{0,6}[$]?)?").prop_map(|(name, path)| name + &path),
        1 => "(Sitemap: https://example[.]org/|Foo: bar|#x|)",
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Another implementation comes to the same verdicts.
    #[test]
    fn robotxt_agrees(body in files(), path in "/[ab/]{0,6}") {
        let theirs = robotxt::Robots::parse(body.as_bytes(), "forager").is_allowed(&path);
        prop_assert_eq!(Robots::parse(body.as_bytes(), "forager").verdict(&url(&path)).allowed, theirs);
    }

    /// Line ends of another kind change nothing, nor do comments.
    #[test]
    fn line_ends_do_not_matter(body in files(), path in "/[ab/]{0,6}") {
        let verdict = |body: &str| Robots::parse(body.as_bytes(), "forager").verdict(&url(&path));
        let plain = verdict(&body);
        prop_assert_eq!(&verdict(&body.replace('\n', "\r\n")), &plain);
        prop_assert_eq!(&verdict(&body.replace('\n', "\r")), &plain);
        prop_assert_eq!(&verdict(&body.replace('\n', " # x\n")), &plain);
    }

    /// The line that a verdict names is the line that says so.
    #[test]
    fn the_rule_is_in_its_line(body in files(), path in "/[ab/]{0,6}") {
        let verdict = Robots::parse(body.as_bytes(), "forager").verdict(&url(&path));
        let Some(rule) = verdict.rule else { return Ok(()) };
        prop_assert_eq!(body.lines().nth(rule.line - 1).map(str::trim), Some(rule.text.as_str()));
        prop_assert_eq!(rule.text.starts_with("Allow"), verdict.allowed);
    }

    /// No file whatever makes it panic, and only a rule forbids.
    #[test]
    fn any_bytes_are_a_file(body: Vec<u8>, path in "[ -~]{0,20}") {
        let verdict = Robots::parse(&body, "forager").verdict(&url(&format!("/{path}")));
        prop_assert!(verdict.allowed || verdict.rule.is_some());
    }
}
