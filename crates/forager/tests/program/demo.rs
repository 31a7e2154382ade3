//! `forager demo`: what it shows, and that it ends.

use std::collections::BTreeMap;

use crate::common::{Queue, run_command};

const HOSTS: [&str; 6] = ["flaky.demo", "news.demo", "shop.demo", "slow.demo", "trap.demo", "ured.demo"];

/// The sections, in their order.
const SECTIONS: [&str; 5] = [
    "What was fetched, in which order, and why",
    "Links that were not followed, and why",
    "Changes at the office, and how soon they were seen",
    "What each order would have fetched first, of all that was found",
    "Was it polite?",
];

/// What it is allowed to take, in seconds. Watching a day takes four of them, on any machine.
const HALF_A_MINUTE: f64 = 30.0;

/// The number before some words in a text.
#[track_caller]
fn number(text: &str, words: &str) -> f64 {
    let (before, _) = text.split_once(words).unwrap_or_else(|| panic!("{words:?} is not in\n{text}"));
    let start = before.rfind(|letter: char| !letter.is_ascii_digit() && letter != '.').map_or(0, |at| at + 1);
    before[start..].parse().unwrap_or_else(|_| panic!("no number before {words:?} in\n{text}"))
}

#[test]
fn it_shows_what_it_did_and_why_and_leaves_nothing_behind() {
    let folder = Queue::nowhere();
    // As the README has it.
    let ran = run_command(&mut folder.command(&["demo"]), "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let left: Vec<_> = std::fs::read_dir(folder.folder()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");

    let mut rest = ran.stdout.as_str();
    let mut parts = Vec::new();
    for title in SECTIONS {
        let (before, after) =
            rest.split_once(&format!("\n{title}\n{}\n", "-".repeat(title.len()))).unwrap_or_else(|| {
                panic!("{title} is not where it should be in\n{}", ran.stdout);
            });
        parts.push(before);
        rest = after;
    }
    let [sites, order, skipped, changes, policies] = parts.try_into().unwrap();
    let (polite, farewell) = rest.split_once("\n\n").unwrap();
    for host in HOSTS {
        assert!(sites.contains(&format!("  {host}")), "{host} is not in\n{sites}");
    }
    check_order(order);
    assert!(skipped.contains("trap: session id") && skipped.contains("not in scope host"), "{skipped}");
    check_changes(changes);
    // Each site is begun at its home page, which all of its pages link to later.
    let fifo = policies.lines().find_map(|line| line.strip_prefix("  fifo ")).unwrap();
    let is_home = |url: &str| url.ends_with('/') && url.matches('/').count() == 1;
    assert!(fifo.split_whitespace().all(is_home), "{fifo}");
    for order in ["hierarchy", "linked", "fifo", "score", "services", "risk"] {
        let line = policies.lines().find(|line| line.starts_with(&format!("  {order} ")));
        let first =
            line.unwrap_or_else(|| panic!("{order} is not in\n{policies}")).split_whitespace().skip(1);
        assert_eq!(first.filter(|page| page.contains(".demo:")).count(), 4, "{policies}");
    }
    check_politeness(polite);
    let took = farewell.split_once("All of this took ").unwrap().1;
    assert!(number(took, " s.") < HALF_A_MINUTE, "{farewell}");
    assert!(farewell.contains("forager crawl"), "{farewell}");
}

/// Home pages come first, links of their headers before others, each with its reason.
#[track_caller]
fn check_order(order: &str) {
    let pages: Vec<&str> = order.lines().filter(|line| line.contains(".demo:")).collect();
    assert!(pages.len() >= 10, "{order}");
    assert!(pages[0].contains("1.000 as the homepage"), "{order}");
    assert!(order.contains("0.900 as a link in the header of the homepage"), "{order}");
    for page in &pages {
        assert!(page.contains(" as ") || page.contains(" of http://"), "without a reason: {page}");
    }
    let (fetched, more) = (number(order, " pages; "), number(order, " more\n"));
    let shown = f64::from(u32::try_from(pages.len()).unwrap());
    assert!((fetched - more - shown).abs() < 0.5, "{order}");
    for outcome in ["200: ", "301: ", "404: ", "500: ", "503: ", "robots: "] {
        assert!(order.contains(outcome), "{outcome} is not in\n{order}");
    }
}

#[track_caller]
fn check_changes(changes: &str) {
    let (made, seen) = (number(changes, " changes, "), number(changes, " seen: half of them within "));
    assert!(seen > 0.0 && seen <= made, "{changes}");
    assert!(changes.contains("critical ones within "), "{changes}");
    assert!(changes.lines().any(|line| line.contains("ured.demo:") && line.contains(": ")), "{changes}");
    let (looks, spared) = (number(changes, " looks, "), number(changes, " of them answered \"not changed\""));
    assert!(spared > 0.0 && spared < looks, "{changes}");
}

/// Every host was spared as agreed, by both logs, which have the same requests.
#[track_caller]
fn check_politeness(polite: &str) {
    for host in HOSTS {
        let line = polite.lines().find(|line| line.trim_start().starts_with(host));
        let line = line.unwrap_or_else(|| panic!("{host} is not in\n{polite}"));
        let gap = if host == "slow.demo" { 10.0 } else { 2.0 };
        assert!(number(line, " s apart") >= gap && number(line, " under way") <= 2.0, "{line}");
        assert!(number(line, " times") >= 1.0, "robots.txt: {line}");
    }
    let verdict = polite.lines().find(|line| line.contains("by our own log")).unwrap();
    let (ours, theirs) =
        (number(verdict, " fetches, 0 not as agreed"), number(verdict, " requests, 0 not as agreed"));
    assert!((ours - theirs).abs() < 0.5, "{verdict}");
    assert!(!polite.contains("NOT AS AGREED"), "{polite}");
}

/// What was read of the pages that had changed, by the paths of those.
fn changed(more: &[&str]) -> BTreeMap<String, String> {
    let folder = Queue::nowhere();
    let ran = run_command(&mut folder.command(&[&["demo", "--days", "1"], more].concat()), "");
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let (_, rest) = ran.stdout.split_once(SECTIONS[2]).unwrap();
    let (changes, _) = rest.split_once(SECTIONS[3]).unwrap();
    let lines: Vec<&str> = changes.lines().filter(|line| line.contains(" ured.demo:")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("  Mon ")), "one day: {changes}");
    let told = lines.iter().map(|line| {
        let (page, text) = line.split_once(" ured.demo:").unwrap().1.split_once(": ").unwrap();
        (page.split_once('/').unwrap().1.to_owned(), text.to_owned())
    });
    told.collect()
}

#[test]
fn another_seed_makes_another_web_and_the_same_seed_the_same() {
    let [seven, again, eight] = ["7", "7", "8"].map(|seed| changed(&["--seed", seed]));
    let in_both = |other: &BTreeMap<String, String>| {
        let pairs = seven.iter().filter_map(|(page, text)| Some((text.clone(), other.get(page)?.clone())));
        pairs.collect::<Vec<_>>()
    };
    assert!(in_both(&again).iter().all(|(one, other)| one == other), "{seven:?}, {again:?}");
    assert!(
        seven != eight && in_both(&eight).iter().all(|(one, other)| one != other),
        "{seven:?}, {eight:?}"
    );
}
