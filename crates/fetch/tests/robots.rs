//! robots.txt: the cases of RFC 9309, and what it leaves open.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::robots::{Addressed, MAX_BYTES, MAX_EXTRAS, MAX_SITEMAPS, MAX_TEXT_BYTES, Robots};
use proptest::prelude::*;

fn url(path: &str) -> FetchUrl {
    FetchUrl::parse(&format!("https://example.org{path}")).unwrap()
}

/// What a table says about a URL: allowed or not, and by which line; `FREE` is allowed by none.
type Want = (bool, Option<usize>);

const FREE: Want = (true, None);

const fn allowed(line: usize) -> Want {
    (true, Some(line))
}

const fn denied(line: usize) -> Want {
    (false, Some(line))
}

/// A name, a file, the path of a URL, and what is to be decided.
type Case<'a> = (&'a str, &'a str, &'a str, Want);

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
    let two = "User-agent: other\nDisallow: /\n\nUser-agent: forager\nDisallow: /a\n";
    let star_first = "User-agent: *\nDisallow: /\n\nUser-agent: forager\nDisallow: /a\n";
    let twice = "User-agent: forager\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\n\
                 User-agent: FORAGER\nDisallow: /c\n";
    let stars = "User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n";
    let shared = "User-agent: one\nUser-agent: forager\nUser-agent: two\nDisallow: /a\n";
    check(&[
        ("an empty file", "", "/", FREE),
        ("only another crawler is named", "User-agent: other\nDisallow: /\n", "/", FREE),
        ("our group counts", two, "/a", denied(5)),
        ("the group of another does not", two, "/b", FREE),
        ("ours counts instead of everyone's", star_first, "/b", FREE),
        ("ours counts though everyone's is first", star_first, "/a", denied(5)),
        ("everyone's counts where we are not named", stars, "/a", denied(2)),
        ("several groups of ours are one: the first", twice, "/a", denied(2)),
        ("several groups of ours are one: the second", twice, "/c", denied(8)),
        ("and what stands between them is not ours", twice, "/b", FREE),
        ("several groups of everyone's are one", stars, "/b", denied(5)),
        ("one of several names", shared, "/a", denied(4)),
        (
            "a group of ours without rules frees us",
            "User-agent: *\nDisallow: /\nUser-agent: forager",
            "/",
            FREE,
        ),
        ("rules for nobody", "User-agent:\nDisallow: /\n", "/", FREE),
    ]);
}

#[test]
fn names_are_compared_whole() {
    let cases = [
        ("in any case", "FoRaGeR", true),
        ("with a version", "Forager/1.0", true),
        ("with more words", "forager bot", true),
        ("with an address", "forager(+https://example.org)", true),
        ("one that starts with ours", "foragerbot", false),
        ("one that ours starts with", "forage", false),
        ("one that ends with ours", "theforager", false),
        ("ours and a hyphen", "forager-news", false),
        ("ours and an underscore", "forager_news", false),
        ("ours and a digit", "forager2", false),
        ("an asterisk in it is no wildcard", "forag*", false),
        ("an asterisk in front of it is not everyone", "*bot", false),
        ("everyone, and a word behind it", "* all", true),
        ("everyone", "*", true),
    ];
    for (name, agent, is_meant) in cases {
        let want = if is_meant { denied(2) } else { FREE };
        check(&[(name, &format!("User-agent: {agent}\nDisallow: /\n"), "/", want)]);
    }
}

/// Section 2.2: where groups begin and end.
#[test]
fn a_group_ends_at_the_next_name_after_a_rule() {
    check_rules(&[
        ("empty lines end no group", "\n\nDisallow: /", "/", denied(4)),
        ("nor separate names", "\nUser-agent: other\n\nDisallow: /", "/", denied(5)),
        ("nor separate rules", "Allow: /b\n\n\nDisallow: /", "/a", denied(5)),
        ("comments end no group", "# a\nUser-agent: other\n#b\nDisallow: /", "/", denied(5)),
        ("a sitemap ends no names", "Sitemap: /s.xml\nUser-agent: other\nDisallow: /", "/", denied(4)),
        ("an unknown line ends no names", "Foo: bar\nUser-agent: other\nDisallow: /", "/", denied(4)),
        ("a delay ends no names", "Crawl-delay: 5\nUser-agent: other\nDisallow: /", "/", denied(4)),
        ("a broken line ends no names", "what is this\nUser-agent: other\nDisallow: /", "/", denied(4)),
        ("an unknown line ends no rules", "Allow: /b\nFoo: x\nDisallow: /", "/", denied(4)),
        ("a rule ends the names", "Disallow: /a\nUser-agent: other\nDisallow: /", "/", FREE),
        ("so does an empty one", "Disallow:\nUser-agent: other\nDisallow: /", "/", FREE),
    ]);
    check(&[
        ("a rule before any group", "Disallow: /\nUser-agent: forager\nDisallow: /a\n", "/b", FREE),
        ("only rules", "Disallow: /\n", "/", FREE),
    ]);
}

/// Section 2.2.2: the most octets win, and `Allow` wins ties.
#[test]
fn the_longest_rule_decides() {
    let rfc = "Allow: /example/page/\nDisallow: /example/page/disallowed.gif";
    check_rules(&[
        ("section 5.2: allowed below", rfc, "/example/page/a.gif", allowed(2)),
        ("section 5.2: the longest match", rfc, "/example/page/disallowed.gif", denied(3)),
        ("section 5.2: nothing matches", rfc, "/example/", FREE),
        ("allow wins ties, though later", "Disallow: /page\nAllow: /page", "/page", allowed(3)),
        ("a longer allow", "Allow: /p\nDisallow: /", "/page", allowed(2)),
        ("the order does not count", "Allow: /p\nDisallow: /", "/x", denied(3)),
        ("a wildcard counts as one octet", "Disallow: /*.php\nAllow: /shop.", "/shop.php", allowed(3)),
        ("and so can make a rule the longer one", "Disallow: /*.php\nAllow: /shop", "/shop.php", denied(2)),
        ("each of several wildcards counts", "Disallow: //*$\nAllow: /**$", "//", allowed(3)),
        ("an end counts as one", "Disallow: /a$\nAllow: /a", "/a", denied(2)),
        ("an end that is not reached", "Disallow: /a$\nAllow: /a", "/ab", allowed(3)),
        ("an escape counts as what it means", "Disallow: /%61%62\nAllow: /abc", "/abcd", allowed(3)),
        ("of equal rules the first is named", "Disallow: /a\nDisallow: /a", "/a", denied(2)),
        ("an empty disallow forbids nothing", "Disallow:", "/", FREE),
        ("an empty allow allows nothing", "Allow:\nDisallow: /", "/", denied(3)),
        ("a rule with only a comment", "Disallow: # all", "/", FREE),
    ]);
}

/// Section 2.2.2: from the start of the path, case counts, the query is part of it.
#[test]
fn paths_match_from_their_start() {
    check_rules(&[
        ("the same", "Disallow: /fish", "/fish", denied(2)),
        ("a longer name", "Disallow: /fish", "/fish.html", denied(2)),
        ("a folder", "Disallow: /fish", "/fish/salmon.html", denied(2)),
        ("with a query", "Disallow: /fish", "/fish?id=anything", denied(2)),
        ("paths tell case apart", "Disallow: /fish", "/Fish.asp", FREE),
        ("not in the middle", "Disallow: /fish", "/catfish", FREE),
        ("not in the query", "Disallow: /fish", "/?id=/fish", FREE),
        ("a folder without its slash", "Disallow: /fish/", "/fish", FREE),
        ("a folder and its pages", "Disallow: /fish/", "/fish/?id=1", denied(2)),
        ("a rule with a query", "Disallow: /a?b", "/a?bc", denied(2)),
        ("a rule with another query", "Disallow: /a?b", "/a?c", FREE),
        ("a path without its first slash", "Disallow: fish", "/fish", denied(2)),
        ("a whole URL is no path", "Disallow: https://example.org/", "/", FREE),
        ("two slashes are not one", "Disallow: //a", "/a", FREE),
    ]);
}

/// Section 2.2.3: `#`, `$` and `*`.
#[test]
fn special_characters() {
    let star = "Disallow: /path/file-with-a-%2A.html";
    check_rules(&[
        ("a comment behind a path", "Disallow: /a # not /", "/a", denied(2)),
        ("a comment right behind it", "Disallow: /a#b", "/ac", denied(2)),
        ("a wildcard and an end", "Disallow: /*.gif$", "/x/y.gif", denied(2)),
        ("the end is meant", "Disallow: /*.gif$", "/x/y.gif?z", FREE),
        ("an end that comes twice", "Disallow: /*.gif$", "/x.gif.gif", denied(2)),
        ("a wildcard for nothing", "Disallow: /*.gif$", "/.gif", denied(2)),
        ("a wildcard at the end", "Disallow: /fish*", "/fishes", denied(2)),
        ("a wildcard at the end for nothing", "Disallow: /fish*", "/fish", denied(2)),
        ("a wildcard in front", "Disallow: */b/*/c", "/a/b/x/c", denied(2)),
        ("wildcards take slashes too", "Disallow: */b/*/c", "/a/b/x/y/c", denied(2)),
        ("wildcards need all pieces", "Disallow: */b/*/c", "/a/b/c", FREE),
        ("pieces do not overlap", "Disallow: /aba*aba$", "/ababa", FREE),
        ("a wildcard before a query", "Disallow: /*?id=", "/a/b?id=1", denied(2)),
        ("many wildcards in a row", "Disallow: /a****b", "/ab", denied(2)),
        ("only the end of the root", "Disallow: /$", "/", denied(2)),
        ("and nothing below it", "Disallow: /$", "/a", FREE),
        ("a wildcard and an end at once", "Disallow: /a*$", "/abc", denied(2)),
        ("only an end", "Disallow: $", "/", FREE),
        ("only a wildcard", "Disallow: *", "/a", denied(2)),
        ("a literal asterisk", star, "/path/file-with-a-*.html", denied(2)),
        ("a literal asterisk is no wildcard", star, "/path/file-with-a-b.html", FREE),
        ("a literal asterisk, escaped in the URL", star, "/path/file-with-a-%2a.html", denied(2)),
        ("a literal dollar", "Disallow: /path/foo-%24", "/path/foo-$", denied(2)),
        ("a literal dollar is no end", "Disallow: /path/foo-%24", "/path/foo-", FREE),
        ("a dollar in the middle is itself", "Disallow: /a$b$", "/a$b", denied(2)),
        ("and the last one is the end", "Disallow: /a$b$", "/a$bc", FREE),
    ]);
}

/// Section 2.2.2: percent-encoding is normalised on both sides.
#[test]
fn escapes_mean_what_they_stand_for() {
    let link = "Disallow: /foo/bar?baz=https://foo.bar";
    let escaped_link = "Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar";
    check_rules(&[
        ("a plain query", "Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", denied(2)),
        ("a URL in a query, escaped by the URL", link, "/foo/bar?baz=https%3A%2F%2Ffoo.bar", denied(2)),
        ("a URL in a query, escaped by the rule", escaped_link, "/foo/bar?baz=https://foo.bar", denied(2)),
        ("a URL in a query, escaped by neither", link, "/foo/bar?baz=https://foo.bar", denied(2)),
        ("an escaped slash behind a wildcard", "Disallow: /*=%2Fa", "/?b=%2Fa", denied(2)),
        ("a slash in a query behind a wildcard", "Disallow: /*=/a", "/?b=/a", denied(2)),
        ("beyond ASCII, escaped by neither", "Disallow: /foo/bar/ツ", "/foo/bar/ツ", denied(2)),
        ("beyond ASCII, escaped by the URL", "Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", denied(2)),
        ("beyond ASCII, escaped by the rule", "Disallow: /foo/bar/%E3%83%84", "/foo/bar/ツ", denied(2)),
        ("beyond ASCII, in small letters", "Disallow: /%E3%83%84", "/%e3%83%84", denied(2)),
        ("letters escaped by the rule", "Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", denied(2)),
        ("letters escaped by the URL", "Disallow: /foo/bar/baz", "/foo/bar/%62%61%7A", denied(2)),
        ("a tilde", "Disallow: /%7Ejoe", "/~joe", denied(2)),
        ("an escaped slash is no slash", "Disallow: /a%2Fb", "/a/b", FREE),
        ("a slash is no escaped one", "Disallow: /a/b", "/a%2Fb", FREE),
        ("an escaped slash is itself", "Disallow: /a%2fb", "/a%2Fb", denied(2)),
        ("an escaped question mark is no query", "Disallow: /a%3Fb", "/a?b", FREE),
        ("a semicolon", "Disallow: /a;b", "/a%3Bb", denied(2)),
        ("capitals of escapes do not count", "Disallow: /a%3cd", "/a%3Cd", denied(2)),
        ("a space", "Disallow: /a b", "/a%20b", denied(2)),
        ("a percent sign alone", "Disallow: /100%", "/100%25", denied(2)),
        ("an escape cut short", "Disallow: /a%2", "/a%2", denied(2)),
        ("escaped twice is not escaped once", "Disallow: /%257E", "/~", FREE),
    ]);
}

/// Section 2.2: lines as people write them.
#[test]
fn lines_of_all_sorts() {
    check(&[
        ("a byte-order mark", "\u{feff}User-agent: forager\nDisallow: /\n", "/", denied(2)),
        ("a mark further on is a broken name", "\n\u{feff}User-agent: forager\nDisallow: /\n", "/", FREE),
        ("CR", "User-agent: forager\rDisallow: /\r", "/", denied(2)),
        ("CRLF", "User-agent: forager\r\nDisallow: /\r\n", "/", denied(2)),
        ("all in turn", "User-agent: forager\r\n\rDisallow: /\n", "/", denied(3)),
        ("no line end at the end", "User-agent: forager\nDisallow: /", "/", denied(2)),
        ("names in capitals", "USER-AGENT: forager\nDISALLOW: /\n", "/", denied(2)),
        ("names in small letters", "user-agent: forager\ndisallow: /\n", "/", denied(2)),
        ("spaces everywhere", "  User-agent\t:  forager  \n\tDisallow :\t/a \n", "/ab", denied(2)),
        ("no space", "User-agent:forager\nDisallow:/\n", "/", denied(2)),
        ("no colon", "User-agent: forager\nDisallow /\n", "/", FREE),
        ("an empty name", "User-agent: forager\n: /\n", "/", FREE),
        ("a name that is not quite", "User-agent: forager\nDisallowed: /\n", "/", FREE),
        ("two colons", "User-agent: forager\nDisallow:: /\n", "/", FREE),
        ("a zero byte", "User-agent: forager\nDis\0allow: /\nDisallow: /a\n", "/a", denied(3)),
        ("a page", "<!DOCTYPE html>\n<html><body style='a: b'>\n<p>Disallow: /</p></html>", "/", FREE),
    ]);
}

/// Section 2.2.2: robots.txt itself is allowed, whatever it says.
#[test]
fn the_file_itself_is_always_allowed() {
    check_rules(&[
        ("the file", "Disallow: /", "/robots.txt", FREE),
        ("even if it is named", "Disallow: /robots.txt", "/robots.txt", FREE),
        ("another of that name", "Disallow: /", "/a/robots.txt", denied(2)),
        ("a longer name", "Disallow: /", "/robots.txt.gz", denied(2)),
        ("with a query it may be any page", "Disallow: /", "/robots.txt?a", denied(2)),
        ("in capitals it is another", "Disallow: /", "/ROBOTS.TXT", denied(2)),
    ]);
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
