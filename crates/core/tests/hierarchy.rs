//! The page hierarchy: what each way of finding a page is worth, and the order of claims.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{cases, part};
use forager_core::hierarchy::{ClaimOrder, Found, Mode, Pages, Priority, Sighting, effective, priority};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    name: String,
    #[serde(default)]
    mode: Mode,
    events: Vec<Sighting>,
    /// The effective priority after each event.
    expected: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    tasks: Vec<Task>,
    hierarchy: Vec<String>,
    fifo: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    id: String,
    priority: f64,
    created: u64,
}

fn thousandths(number: u16) -> Priority {
    Priority::from_thousandths(number).unwrap()
}

fn decimal(number: f64) -> Priority {
    (0..=1000).map(thousandths).find(|priority| priority.to_string() == format!("{number:.3}")).unwrap()
}

fn sighting(url: &str, source_type: &str, source: Option<&str>) -> Sighting {
    Sighting {
        url: url.to_owned(),
        source_type: source_type.to_owned(),
        source: source.map(str::to_owned),
        in_header: false,
    }
}

#[test]
fn every_sequence_of_sightings_gives_its_priorities() {
    for (file, at_least) in [("hierarchy", 2), ("more-hierarchy", 25)] {
        for Sequence { name, mode, events, expected } in cases(file, "sequences", at_least) {
            assert_eq!(events.len(), expected.len(), "{name}");
            let mut pages = Pages::new(mode);
            for (index, (event, want)) in events.iter().zip(expected).enumerate() {
                let got = pages.see(event).unwrap_or_else(|error| panic!("{name}: event {index}: {error}"));
                assert_eq!(got, decimal(want), "{name}: event {index}: {}", event.url);
            }
        }
    }
}

#[test]
fn tasks_are_claimed_by_priority_then_age_then_arrival() {
    let Claims { tasks, hierarchy, fifo } = part("hierarchy", "claim_order");
    assert!(tasks.len() >= 4);
    for (mode, want) in [(Mode::Hierarchy, hierarchy), (Mode::Fifo, fifo)] {
        let mut order: Vec<_> = (0..)
            .zip(&tasks)
            .map(|(sequence, task)| {
                let effective = effective(mode, decimal(task.priority), 1);
                (ClaimOrder::new(effective, task.created, sequence), task.id.clone())
            })
            .collect();
        order.sort();
        assert_eq!(order.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), want, "{mode:?}");
    }
    let same = |sequence| ClaimOrder::new(Priority::SITEMAP, 7, sequence);
    assert!(same(1) < same(2), "one creation time: the first inserted is first");
}

#[test]
fn each_way_of_finding_a_page_has_its_priority() {
    let link = |source, in_homepage_header| Found::Link { source, in_homepage_header };
    let table = [
        ("homepage", true, Found::Otherwise, 1000),
        ("homepage in a sitemap", true, Found::Sitemap, 1000),
        ("homepage by a link from nowhere", true, link(None, false), 1000),
        ("header of the homepage", false, link(Some(Priority::MAX), true), 900),
        ("link from the homepage", false, link(Some(Priority::MAX), false), 800),
        ("link from .5", false, link(Some(Priority::SITEMAP), false), 400),
        ("link from .126", false, link(Some(thousandths(126)), false), 101),
        ("link from .125", false, link(Some(thousandths(125)), false), 100),
        ("link from a page of no priority", false, link(Some(Priority::ZERO), false), 100),
        ("sitemap", false, Found::Sitemap, 500),
        ("source unknown", false, link(None, false), 100),
        ("source unknown, in a header", false, link(None, true), 100),
        ("anything else", false, Found::Otherwise, 100),
    ];
    for (name, is_homepage, found, want) in table {
        assert_eq!(priority(is_homepage, found).thousandths(), want, "{name}");
    }
}

#[test]
fn modes_weigh_priority_and_links() {
    let table = [
        ("hierarchy does not count links", Mode::Hierarchy, 800, 50, 800),
        ("fifo counts nothing", Mode::Fifo, 1000, 50, 0),
        ("linked: no source", Mode::Linked, 500, 0, 500),
        ("linked: one source is the one that gave the priority", Mode::Linked, 500, 1, 500),
        ("linked: two", Mode::Linked, 500, 2, 501),
        ("linked: exactly .999", Mode::Linked, 900, 100, 999),
        ("linked: never over .999", Mode::Linked, 900, 101, 999),
        ("linked: more links than can be counted", Mode::Linked, 100, usize::MAX, 999),
        ("linked: the homepage needs none", Mode::Linked, 1000, 9, 1000),
    ];
    for (name, mode, base, sources, want) in table {
        assert_eq!(effective(mode, thousandths(base), sources).thousandths(), want, "{name}");
    }
}

#[test]
fn a_rank_is_the_priority_among_all_pages_rounded_half_up() {
    let table = [
        (1000, 1700, 1700),
        (900, 1700, 1530),
        (800, 1700, 1360),
        (500, 1700, 850),
        (100, 1700, 170),
        (0, 1700, 0),
        (500, 1, 1),
        (499, 1, 0),
        (1, 500, 1),
        (1, 499, 0),
        (1000, 0, 0),
        (1000, u64::MAX, u64::MAX),
    ];
    for (priority, total, want) in table {
        assert_eq!(thousandths(priority).rank(total), want, "{priority} of {total} pages");
    }
}

#[test]
fn what_is_inherited_is_four_fifths_rounded_half_up_for_every_priority() {
    for source in 0..=1000_u16 {
        // The nearest of all thousandths to 0.8 × source, the upper of two: |5n − 4·source| is least.
        let nearest = (0..=1000_u16).rev().min_by_key(|n| (5 * n).abs_diff(4 * source)).unwrap();
        assert_eq!(thousandths(source).inherited().thousandths(), nearest.max(100), "{source}");
    }
}

#[test]
fn priorities_are_shown_with_three_decimals() {
    let shown = [(0, "0.000"), (1, "0.001"), (99, "0.099"), (640, "0.640"), (1000, "1.000")];
    for (number, text) in shown {
        assert_eq!(thousandths(number).to_string(), text);
    }
    assert_eq!(serde_json::to_string(&thousandths(262)).unwrap(), "0.262");
    assert_eq!(Priority::from_thousandths(1001), None);
}

#[test]
fn modes_have_names_and_others_are_refused() {
    let named = [("hierarchy", Mode::Hierarchy), ("fifo", Mode::Fifo), ("linked", Mode::Linked)];
    for (name, mode) in named {
        assert_eq!(name.parse(), Ok(mode));
        assert_eq!(serde_json::to_string(&mode).unwrap(), format!("{name:?}"));
    }
    assert_eq!(Mode::default(), Mode::Hierarchy);
    let error = "random".parse::<Mode>().unwrap_err().to_string();
    assert_eq!(error, r#""random" is not a mode; take hierarchy, fifo or linked"#);
}

#[test]
fn a_sighting_that_names_no_page_is_refused_with_its_field() {
    let table = [
        ("url", sighting("", "manual", None)),
        ("url", sighting("ftp://acme.com/", "manual", None)),
        ("url", sighting("https://", "manual", None)),
        ("url", sighting("mailto:info@acme.com", "link", None)),
        ("url", sighting("javascript:void(0)", "link", None)),
        ("source", sighting("https://acme.com/a", "link", Some("https://[::1/"))),
        ("source", sighting("https://acme.com/a", "sitemap", Some(""))),
    ];
    for (field, sighting) in table {
        let mut pages = Pages::new(Mode::Hierarchy);
        assert_eq!(pages.see(&sighting).unwrap_err().field, field, "{sighting:?}");
        assert!(pages.is_empty(), "{sighting:?}");
    }
}

#[test]
fn a_page_with_a_thousand_sources_stays_below_the_homepage() {
    let mut pages = Pages::new(Mode::Linked);
    pages.see(&sighting("https://acme.com/", "manual", None)).unwrap();
    for number in 0..1000 {
        let source = format!("https://acme.com/{number}");
        let popular = sighting("https://acme.com/popular", "link", Some(&source));
        let want = (100 + number).min(999);
        assert_eq!(pages.see(&popular).unwrap().thousandths(), want, "after {number} others");
    }
    assert_eq!(pages.len(), 2, "sources are not pages until they are seen themselves");
}

prop_compose! {
    /// Sightings of a handful of pages, so that they meet again.
    fn sightings()(
        page in 0..6_usize,
        how in prop::sample::select(vec!["link", "redirect", "sitemap", "listing", "manual"]),
        source in prop::option::of(0..6_usize),
        in_header in any::<bool>(),
    ) -> Sighting {
        let urls = ["acme.com/", "acme.com/a", "acme.com/b", "acme.com/c", "www.acme.com/a", "other.com/"];
        Sighting { in_header, ..sighting(urls[page], how, source.map(|source| urls[source])) }
    }
}

proptest! {
    #[test]
    fn a_page_is_only_ever_raised_within_its_bounds(
        sightings in prop::collection::vec(sightings(), 1..60),
    ) {
        for mode in [Mode::Hierarchy, Mode::Linked] {
            let mut pages = Pages::new(mode);
            let mut known = std::collections::BTreeMap::new();
            for sighting in &sightings {
                let now = pages.see(sighting).unwrap();
                prop_assert!((Priority::LEAST..=Priority::MAX).contains(&now), "{now} in {mode:?}");
                prop_assert_eq!(now == Priority::MAX, sighting.url.ends_with(".com/"));
                let before = known.insert(&sighting.url, now).unwrap_or_default();
                prop_assert!(before <= now, "{before} fell to {now} in {mode:?}");
            }
            prop_assert_eq!(pages.len(), known.len());
        }
    }

    #[test]
    fn a_rank_is_exact(priority in 0..=1000_u16, total in any::<u64>()) {
        let rank = i128::from(thousandths(priority).rank(total));
        let exact = i128::from(priority) * i128::from(total);
        // Half up: never more than half a page too high, always less than half a page too low.
        prop_assert!((-500..500).contains(&(exact - rank * 1000)));
    }

    #[test]
    fn claims_are_in_the_order_of_a_stable_sort(
        tasks in prop::collection::vec((0..=3_u16, 0..4_u64), 0..40),
    ) {
        let mut claims: Vec<_> = (0..)
            .zip(&tasks)
            .map(|(sequence, &(priority, created))| {
                (ClaimOrder::new(thousandths(priority), created, sequence), (priority, created))
            })
            .collect();
        claims.sort_unstable();
        let mut want = tasks;
        want.sort_by_key(|&(_, created)| created);
        want.sort_by_key(|&(priority, _)| core::cmp::Reverse(priority));
        prop_assert_eq!(claims.into_iter().map(|(_, task)| task).collect::<Vec<_>>(), want);
    }
}
