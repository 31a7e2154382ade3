//! Logs of fetches, and what an audit finds in them.

use super::*;
use crate::robots::CameTo;

const FILE: &[u8] = b"User-agent: *\nDisallow: /private\n";
const FORBIDDEN: &str = "robots.txt forbids it: line 2: Disallow: /private";
const UNREAD: &str = "robots.txt was not read before";
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

fn at(millisecond: u64) -> Moment {
    Moment::from_millisecond(1_800_000_000_000 + millisecond)
}

/// A request for robots.txt, and what it came to.
fn asked(started: u64, came_to: Option<CameTo<'_>>) -> FetchRow {
    let robots = Label { origin: "http://a.no", asked_as: None, came_to }.to_string();
    FetchRow { robots, url: "http://a.no/robots.txt".into(), ..page(started, started + 10, "/") }
}

fn robots(started: u64) -> FetchRow {
    asked(started, Some(CameTo::File("robots.txt x")))
}

/// The same, but everything is allowed.
fn open_robots(started: u64) -> FetchRow {
    asked(started, Some(CameTo::File("robots.txt open")))
}

fn no_robots(started: u64, words: &str) -> FetchRow {
    asked(started, Some(CameTo::Nothing(words)))
}

fn on_the_way(started: u64) -> FetchRow {
    FetchRow { result: "302".into(), ..asked(started, None) }
}

fn private(started: u64) -> FetchRow {
    page(started, started + 10, "/private/x")
}

/// Finds a text of robots.txt.
fn text(key: &str) -> Option<Vec<u8>> {
    match key {
        "robots.txt x" => Some(FILE.to_vec()),
        "robots.txt open" => Some(Vec::new()),
        "robots.txt names" => {
            Some(b"User-agent: newsbot\nAllow: /\nCrawl-delay: 5\n\nUser-agent: *\nDisallow: /\n".to_vec())
        }
        "robots.txt slow" => Some(b"User-agent: *\nCrawl-delay: 5\n".to_vec()),
        _ => None,
    }
}

fn page(started: u64, ended: u64, path: &str) -> FetchRow {
    FetchRow {
        started: at(started),
        ended: at(ended),
        host: "a.no".into(),
        url: format!("http://a.no{path}"),
        result: "200".into(),
        robots: "no rule of robots.txt matches".into(),
        least_gap: 1000,
        most_in_flight: 2,
        ..FetchRow::default()
    }
}

fn audit(rows: Vec<FetchRow>) -> Vec<String> {
    let mut auditor = Auditor::new("forager", &text);
    for row in rows {
        auditor.fetch(row);
    }
    auditor.finish().violations.into_iter().map(|violation| violation.what).collect()
}

#[test]
fn what_is_allowed_and_what_is_not() {
    let table: [(&str, Vec<FetchRow>, &[&str]); 7] = [
        ("polite", vec![robots(0), page(1000, 1500, "/a"), page(2000, 9000, "/b")], &[]),
        ("two under way", vec![robots(0), page(1000, 5000, "/a"), page(2000, 3000, "/b")], &[]),
        (
            "too soon",
            vec![robots(0), page(1000, 1100, "/a"), page(1999, 2100, "/b")],
            &["999 ms after http://a.no/a, and 1000 ms were due"],
        ),
        (
            "logged in the order of their ends",
            vec![robots(0), page(2000, 2100, "/b"), page(1500, 9000, "/a")],
            &["500 ms after http://a.no/a, and 1000 ms were due"],
        ),
        (
            "three under way",
            vec![robots(0), page(1000, 9000, "/a"), page(2000, 9000, "/b"), page(3000, 9000, "/c")],
            &["3 under way, and 2 were allowed"],
        ),
        ("forbidden", vec![robots(0), page(1000, 1100, "/private/x")], &[FORBIDDEN]),
        ("without asking", vec![page(1000, 1100, "/a")], &[UNREAD]),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

/// A log that an import has added an older one to.
#[test]
fn rules_hold_from_when_they_were_read_wherever_they_stand_in_the_log() {
    let table: [(&str, Vec<FetchRow>, &[&str]); 5] = [
        (
            "what cannot be read goes by what was read last, and not by what an import added last",
            vec![open_robots(DAY), robots(0), no_robots(2 * DAY, "503"), private(2 * DAY + HOUR)],
            &[],
        ),
        (
            "an import hides nothing",
            vec![robots(DAY), open_robots(0), no_robots(2 * DAY, "503"), private(2 * DAY + HOUR)],
            &[FORBIDDEN],
        ),
        (
            "forbidden now, allowed then",
            vec![robots(DAY), open_robots(0), private(HOUR), private(DAY + HOUR)],
            &[FORBIDDEN],
        ),
        (
            "allowed now, forbidden then",
            vec![open_robots(DAY), robots(0), private(HOUR), private(DAY + HOUR)],
            &[FORBIDDEN],
        ),
        (
            "what could not be read then goes by what was read before it",
            vec![robots(DAY), open_robots(0), no_robots(HOUR, "503"), private(2 * HOUR)],
            &[],
        ),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

#[test]
fn a_crawl_delay_holds_from_when_it_was_read() {
    let slow = |started| asked(started, Some(CameTo::File("robots.txt slow")));
    let table: [(&str, Vec<FetchRow>, &[&str]); 4] = [
        ("kept", vec![slow(0), page(5000, 5100, "/a"), page(10_000, 10_100, "/b")], &[]),
        (
            "right after it, by the limits from before",
            vec![slow(0), page(1000, 1100, "/a"), page(6000, 6100, "/b")],
            &["1000 ms after http://a.no/robots.txt, and 5000 ms were due"],
        ),
        (
            "sent before it was read",
            vec![open_robots(0), page(1000, 2500, "/a"), page(2000, 9000, "/b"), slow(3000)],
            &[],
        ),
        (
            "until it was read again",
            vec![slow(0), page(5000, 5100, "/a"), open_robots(10_000), page(11_000, 11_100, "/b")],
            &[],
        ),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

/// What the configuration says by now is of no account where the log says it.
#[test]
fn rules_count_for_the_name_under_which_robots_txt_was_asked_for() {
    let read = |started, asked_as| {
        let came_to = Some(CameTo::File("robots.txt names"));
        let robots = Label { origin: "http://a.no", asked_as, came_to }.to_string();
        FetchRow { robots, ..asked(started, came_to) }
    };
    let page = |started| page(started, started + 10, "/a");
    let forbidden = "robots.txt forbids it: line 6: Disallow: /";
    let soon = "1000 ms after http://a.no/robots.txt, and 5000 ms were due";
    let table: [(&str, Vec<FetchRow>, &[&str]); 5] = [
        ("allowed to the name", vec![read(0, Some("newsbot")), page(5000)], &[]),
        ("too soon for the name", vec![read(0, Some("newsbot")), page(1000)], &[soon]),
        ("forbidden to the name", vec![read(0, Some("otherbot")), page(5000)], &[forbidden]),
        ("by the name of now, where there is none", vec![read(0, None), page(5000)], &[forbidden]),
        (
            "each from when it was used",
            vec![
                read(0, Some("newsbot")),
                page(5000),
                read(10_000, Some("forager")),
                page(15_000),
                read(20_000, Some("newsbot")),
                page(25_000),
            ],
            &[forbidden],
        ),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

#[test]
fn a_fetch_during_a_pause_is_named() {
    let busy = |started, ended, until| FetchRow {
        back_off_until: Some(at(until)),
        result: "503".into(),
        ..page(started, ended, "/busy")
    };
    let told =
        |until: u64| format!("the host was to be left alone until {}, after http://a.no/busy", at(until));
    let table: [(&str, Vec<FetchRow>, Vec<String>); 6] = [
        ("in the pause", vec![busy(1000, 1500, 9000), page(8999, 9100, "/a")], vec![told(9000)]),
        ("when it is over", vec![busy(1000, 1500, 9000), page(9000, 9100, "/a")], vec![]),
        ("under way before", vec![busy(1000, 2500, 9000), page(2500, 9100, "/a")], vec![]),
        (
            "the longest of two counts",
            vec![busy(1000, 1500, 9000), busy(1000 + 1000, 2500, 5000), page(6000, 6100, "/a")],
            vec![told(9000), told(9000)],
        ),
        (
            "each is named",
            vec![busy(1000, 1500, 9000), page(3000, 3100, "/a"), page(5000, 5100, "/b")],
            vec![told(9000), told(9000)],
        ),
        (
            "another host",
            vec![busy(1000, 1500, 9000), FetchRow { host: "b.no".into(), ..page(3000, 3100, "/a") }],
            vec![],
        ),
    ];
    for (name, mut rows, want) in table {
        rows.insert(0, robots(0));
        assert_eq!(audit(rows), want, "{name}");
    }
}

#[test]
fn what_robots_txt_came_to_counts_as_it_does_for_the_crawler() {
    let redirects = |last: FetchRow| {
        let way = (0..5).map(|hop| on_the_way(hop * 1000));
        way.chain([last, private(9000)]).collect::<Vec<_>>()
    };
    let unreachable =
        |words: &str| format!("robots.txt is unreachable since {} ({words})", at(10).timestamp());
    let table: [(&str, Vec<FetchRow>, Vec<String>); 13] = [
        ("missing", vec![no_robots(0, "404"), private(1000)], vec![]),
        ("missing since", vec![robots(0), no_robots(1000, "410"), private(2000)], vec![]),
        ("a redirect to nowhere", vec![no_robots(0, "302"), private(1000)], vec![]),
        ("too many redirects", redirects(no_robots(5000, "more than 5 redirects")), vec![]),
        ("a file after redirects", redirects(robots(5000)), vec![FORBIDDEN.into()]),
        ("on the way only", vec![on_the_way(0), private(1000)], vec![UNREAD.into()]),
        (
            "a redirect to nowhere, with an earlier file",
            vec![robots(0), no_robots(1000, "302"), private(2000)],
            vec![FORBIDDEN.into()],
        ),
        (
            "too many redirects, with an earlier file",
            vec![robots(0), no_robots(1000, "more than 5 redirects"), private(2000)],
            vec![FORBIDDEN.into()],
        ),
        (
            "a redirect to whom we do not go",
            vec![no_robots(0, "no time for it"), private(1000)],
            vec![unreachable("no time for it")],
        ),
        ("broken", vec![no_robots(0, "500"), private(1000)], vec![unreachable("500")]),
        ("too many requests", vec![no_robots(0, "429"), private(1000)], vec![unreachable("429")]),
        (
            "broken, with an earlier file",
            vec![robots(0), no_robots(1000, "500"), private(2000)],
            vec![FORBIDDEN.into()],
        ),
        (
            "the text is lost",
            vec![asked(0, Some(CameTo::File("robots.txt y"))), private(1000)],
            vec![unreachable("robots.txt y is not kept any more")],
        ),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

#[test]
fn after_thirty_days_of_failures_an_old_file_counts_no_more() {
    let failures = |every: u64, count: u64| (1..=count).map(move |number| no_robots(number * every, "500"));
    let word = "robots.txt is unreachable since then (500): after 30 days that counts as none";
    let claimed = |started: u64| FetchRow { robots: word.into(), ..private(started) };
    let table: [(&str, Vec<FetchRow>, &[&str]); 5] = [
        ("30 days", failures(3 * DAY, 11).chain([claimed(34 * DAY)]).collect(), &[]),
        ("not yet", failures(3 * DAY, 10).chain([claimed(34 * DAY)]).collect(), &[FORBIDDEN]),
        ("too few failures", failures(5 * DAY, 9).chain([claimed(46 * DAY)]).collect(), &[FORBIDDEN]),
        (
            "it was back meanwhile",
            failures(3 * DAY, 10)
                .chain([robots(32 * DAY), no_robots(33 * DAY, "500"), claimed(34 * DAY)])
                .collect(),
            &[FORBIDDEN],
        ),
        (
            "it is back",
            failures(3 * DAY, 11).chain([robots(34 * DAY), private(35 * DAY)]).collect(),
            &[FORBIDDEN],
        ),
    ];
    for (name, mut rows, want) in table {
        rows.insert(0, robots(0));
        assert_eq!(audit(rows), want, "{name}");
    }
    assert_eq!(audit(vec![claimed(0)]), [UNREAD], "a claim alone proves nothing");
}

#[test]
fn a_page_is_judged_by_the_rules_that_were_known_when_it_was_requested() {
    let under_way = |started, ended| page(started, ended, "/private/x");
    let table: [(&str, Vec<FetchRow>, &[&str]); 6] = [
        (
            "under way while they closed",
            vec![open_robots(0), robots(HOUR), under_way(HOUR - 1000, 2 * HOUR)],
            &[],
        ),
        (
            "under way while they opened",
            vec![robots(0), open_robots(HOUR), under_way(HOUR - 1000, 2 * HOUR)],
            &[FORBIDDEN],
        ),
        ("after they closed", vec![open_robots(0), robots(HOUR), private(HOUR + 1000)], &[FORBIDDEN]),
        ("after they opened", vec![robots(0), open_robots(HOUR), private(HOUR + 1000)], &[]),
        ("before they were first read", vec![open_robots(HOUR), under_way(HOUR - 1000, 2 * HOUR)], &[UNREAD]),
        (
            "of three that were read",
            vec![robots(0), open_robots(HOUR), robots(2 * HOUR), under_way(HOUR + 1000, 3 * HOUR)],
            &[],
        ),
    ];
    for (name, rows, want) in table {
        assert_eq!(audit(rows), want, "{name}");
    }
}

#[test]
fn one_host_alone_is_judged_by_a_file_from_another() {
    let moved = || FetchRow { host: "b.no".into(), url: "http://b.no/rules".into(), ..robots(1000) };
    let elsewhere = || FetchRow { host: "b.no".into(), url: "http://b.no/".into(), ..private(4000) };
    for (only, hosts, violations) in [
        (None, vec![("a.no", 3), ("b.no", 2)], vec![FORBIDDEN, UNREAD]),
        (Some("a.no"), vec![("a.no", 3)], vec![FORBIDDEN]),
        (Some("b.no"), vec![("b.no", 2)], vec![UNREAD]),
        (Some("c.no"), vec![], vec![]),
    ] {
        let mut auditor = Auditor::new("forager", &text).only(only);
        for row in [on_the_way(0), moved(), page(2000, 2010, "/"), private(3000), elsewhere()] {
            auditor.fetch(row);
        }
        let (host, url) = ("b.no".to_owned(), "http://b.no/lost".to_owned());
        auditor.abandoned(Abandoned { host, url, from: at(5000), until: at(6000) });
        let Audit { hosts: told, violations: found } = auditor.finish();
        let told: Vec<_> = told.iter().map(|host| (host.host.as_str(), host.fetches)).collect();
        let found: Vec<_> = found.iter().map(|violation| violation.what.as_str()).collect();
        assert_eq!((told, found), (hosts, violations), "{only:?}");
    }
}

#[test]
fn a_page_that_was_abandoned_counts_as_under_way() {
    let mut auditor = Auditor::new("forager", &text);
    for row in [robots(0), page(1000, 9000, "/a"), page(3000, 9000, "/c")] {
        auditor.fetch(row);
    }
    let (host, url) = ("a.no".to_owned(), "http://a.no/b".to_owned());
    auditor.abandoned(Abandoned { host, url, from: at(2000), until: at(9000) });
    let audit = auditor.finish();
    assert_eq!(audit.violations.len(), 1, "{audit:?}");
    let host = &audit.hosts[0];
    assert_eq!((host.fetches, host.most_in_flight, host.abandoned), (3, 3, 1));
}

#[test]
fn what_was_abandoned_does_not_part_the_requests_around_it() {
    let told = |gap: u64| format!("{gap} ms after http://a.no/a, and 1000 ms were due");
    let table: [(&str, u64, &[u64], Vec<String>); 4] = [
        ("far enough", 2000, &[1500], vec![]),
        ("too close", 1900, &[1500], vec![told(900)]),
        ("too close, with two between", 1900, &[1300, 1600], vec![told(900)]),
        ("too close, at the same time", 1000, &[1000], vec![told(0)]),
    ];
    for (name, second, abandoned, want) in table {
        let mut auditor = Auditor::new("forager", &text);
        for row in [robots(0), page(1000, 1100, "/a"), page(second, second + 100, "/b")] {
            auditor.fetch(row);
        }
        for from in abandoned {
            let (host, url) = ("a.no".to_owned(), "http://a.no/lost".to_owned());
            auditor.abandoned(Abandoned { host, url, from: at(*from), until: at(from + 10) });
        }
        let audit = auditor.finish();
        let found: Vec<_> = audit.violations.into_iter().map(|violation| violation.what).collect();
        assert_eq!(found, want, "{name}");
        assert_eq!(audit.hosts[0].shortest_gap, Some((second - 1000).min(1000)), "{name}");
    }
}
