//! Service-page selection: the filters, the categories, and the order of what is taken.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use common::{cases, part};
use forager_core::select::{Category, Dropped, Filter, Link, SelectConfig, SelectError, Selection, Selector};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::Value;

const HOME: &str = "https://acme.com";

const CAPS: [usize; 5] = [0, 1, 3, 5, usize::MAX];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    home: Option<String>,
    #[serde(default)]
    config: SelectConfig,
    page_cap: Option<usize>,
    links: Vec<Link>,
    /// The pages taken, in order; the matched term is compared where it is given.
    expected: Vec<Value>,
    /// The links not taken, in any order, where they are given.
    dropped: Option<Vec<Value>>,
}

fn link(href: &str, text: &str) -> Link {
    Link { href: href.to_owned(), text: text.to_owned(), title: String::new() }
}

/// Selectors are costly to prepare, so that each is prepared once: by cap and `drop_top_level`.
fn selector(page_cap: usize, drop_top_level: bool) -> &'static Selector {
    static PREPARED: LazyLock<BTreeMap<(usize, bool), Selector>> = LazyLock::new(|| {
        let keys = CAPS.into_iter().flat_map(|cap| [(cap, false), (cap, true)]);
        keys.map(|(page_cap, drop_top_level)| {
            let config = SelectConfig { page_cap, drop_top_level, ..SelectConfig::default() };
            ((page_cap, drop_top_level), Selector::new(config).unwrap())
        })
        .collect()
    });
    &PREPARED[&(page_cap, drop_top_level)]
}

fn select(links: impl IntoIterator<Item = Link>) -> Selection {
    selector(5, false).select(HOME, links).unwrap()
}

/// The category of a page alone, and the term that put it there.
fn category(href: &str, text: &str) -> (Category, Option<String>) {
    let page = select([link(href, text)]).picked.pop().unwrap_or_else(|| panic!("{href} was dropped"));
    (page.category, page.matched_term)
}

fn dropped_by(href: &str, text: &str) -> Option<Filter> {
    select([link(href, text)]).dropped.pop().map(|dropped| dropped.filter)
}

#[test]
fn every_case_takes_its_pages() {
    for (file, at_least) in [("select", 10), ("more-select", 70)] {
        let home: String = part(file, "home");
        for case in cases::<Case>(file, "cases", at_least) {
            let name = &case.name;
            let page_cap = case.page_cap.unwrap_or(case.config.page_cap);
            let selector = Selector::new(SelectConfig { page_cap, ..case.config }).unwrap();
            let selection = selector.select(case.home.as_deref().unwrap_or(&home), case.links).unwrap();
            let got: Vec<Value> =
                selection.picked.iter().map(|page| serde_json::to_value(page).unwrap()).collect();
            let named: Vec<Value> =
                case.expected.iter().zip(&got).map(|(want, got)| only_named(got, want)).collect();
            assert_eq!(got.len(), case.expected.len(), "{name}: {got:?}");
            assert_eq!(named, case.expected, "{name}");
            if let Some(mut want) = case.dropped {
                let mut got: Vec<_> =
                    selection.dropped.iter().map(|link| serde_json::to_value(link).unwrap()).collect();
                for list in [&mut got, &mut want] {
                    list.sort_by_key(ToString::to_string);
                }
                assert_eq!(got, want, "{name}: dropped");
            }
        }
    }
}

/// The fields of `got` that `want` names.
fn only_named(got: &Value, want: &Value) -> Value {
    let fields = got.as_object().unwrap().clone().into_iter();
    fields.filter(|(field, _)| want.get(field).is_some()).collect()
}

#[test]
fn the_default_lists_are_those_of_the_rules() {
    let given: Vec<String> = part("select", "disallowed_paths");
    assert_eq!(SelectConfig::default().disallowed_paths, given);
}

#[test]
fn each_absolute_term_is_a_service() {
    for term in ["installation", "install", "maintenance", "inspection", "protection"] {
        let found = Some(term.to_owned());
        assert_eq!(category(&format!("/x-{term}-y"), ""), (Category::B, found.clone()), "{term} in the path");
        assert_eq!(category(&format!("/x?{term}"), ""), (Category::B, found.clone()), "{term} in the query");
        assert_eq!(category(&format!("/services/{term}"), ""), (Category::A, found.clone()), "{term} boosts");
        assert_eq!(category("/x", &format!("our {term} team")), (Category::T, found), "{term} in the text");
    }
}

#[test]
fn each_url_term_counts_in_the_url_only() {
    let terms = "fire alarm testing extinguishers repair system design monitoring commissioning commission";
    let mut count = 0;
    for term in terms.split(' ') {
        let found = Some(term.to_owned());
        assert_eq!(category(&format!("/x-{term}-y"), ""), (Category::U, found.clone()), "{term} in the path");
        assert_eq!(category(&format!("/x?{term}"), ""), (Category::U, found), "{term} in the query");
        assert_eq!(category("/x", term), (Category::D, None), "{term} in the text");
        count += 1;
    }
    assert_eq!(count, 10);
}

#[test]
fn each_service_area_is_dropped() {
    let segments = "service-area service-areas servicearea areas-we-serve location locations territories \
                    coverage where-we-work region regions";
    let mut count = 0;
    for segment in segments.split_whitespace() {
        for href in
            [format!("/{segment}"), format!("/{segment}/"), format!("/{}/fire?x", segment.to_uppercase())]
        {
            assert_eq!(dropped_by(&href, ""), Some(Filter::ServiceArea), "{href}");
        }
        for href in [format!("/a/{segment}"), format!("/{segment}x"), format!("/x{segment}")] {
            assert_eq!(dropped_by(&href, ""), None, "{href}");
        }
        count += 1;
    }
    assert_eq!(count, 11);
    for phrase in ["service area", "areas we serve"] {
        assert_eq!(
            dropped_by("/x", &format!("Our {} now", phrase.to_uppercase())),
            Some(Filter::ServiceArea)
        );
    }
}

#[test]
fn settings_that_would_match_everything_are_refused() {
    type Change = fn(&mut SelectConfig) -> &mut Vec<String>;
    let lists: [(&str, Change); 7] = [
        ("disallowed_paths", |config| &mut config.disallowed_paths),
        ("service_prefixes", |config| &mut config.service_prefixes),
        ("about_prefixes", |config| &mut config.about_prefixes),
        ("absolute_terms", |config| &mut config.absolute_terms),
        ("url_terms", |config| &mut config.url_terms),
        ("text_terms", |config| &mut config.text_terms),
        ("area_phrases", |config| &mut config.area_phrases),
    ];
    for (list, of) in lists {
        let mut config = SelectConfig::default();
        of(&mut config).push(String::new());
        assert_eq!(Selector::new(config).unwrap_err(), SelectError::EmptyTerm { list });
        let mut config = SelectConfig::default();
        of(&mut config).clear();
        assert!(Selector::new(config).is_ok(), "{list} may be empty");
    }
    let unknown = serde_json::from_str::<SelectConfig>(r#"{"page_caps": 3}"#).unwrap_err().to_string();
    assert!(unknown.contains("page_caps"), "{unknown}");
}

#[test]
fn a_home_page_that_is_no_web_address_is_refused() {
    for home in ["", "acme.com", "mailto:x@acme.com"] {
        assert!(matches!(selector(5, false).select(home, []), Err(SelectError::Home(_))), "{home:?}");
    }
}

/// Links that often lead to the same page, under several addresses and with several texts.
fn links() -> impl Strategy<Value = Vec<Link>> {
    let hrefs = [
        "/",
        "/x",
        "x",
        "https://acme.com/x",
        "/x#top",
        "/X",
        "/x/",
        "/x?fire",
        "/services/a",
        "/services/install",
        "/about",
        "/locations",
        "/privacy",
        "/a/b/inspection",
        "https://other.com/x",
        "mailto:x@acme.com",
        "http://acme.com/x",
        "/fire",
        "/alarm",
    ];
    let texts = ["", "services", "Our Service Area", " installation and maintenance ", "fire"];
    let link = (
        prop::sample::select(hrefs.to_vec()),
        prop::sample::select(texts.to_vec()),
        prop::sample::select(texts.to_vec()),
    )
        .prop_map(|(href, text, title)| Link { title: title.to_owned(), ..link(href, text) });
    prop::collection::vec(link, 0..16)
}

fn caps() -> impl Strategy<Value = usize> {
    prop::sample::select(CAPS.to_vec())
}

proptest! {
    #[test]
    fn the_order_of_the_links_does_not_matter(
        (links, shuffled) in links().prop_flat_map(|links| (Just(links.clone()), Just(links).prop_shuffle())),
        page_cap in caps(),
        drop_top_level in any::<bool>(),
    ) {
        let selector = selector(page_cap, drop_top_level);
        let sorted = |mut dropped: Vec<Dropped>| { dropped.sort(); dropped };
        let one = selector.select(HOME, links).unwrap();
        let other = selector.select(HOME, shuffled).unwrap();
        prop_assert_eq!(one.picked, other.picked);
        prop_assert_eq!(sorted(one.dropped), sorted(other.dropped));
    }

    #[test]
    fn every_link_is_taken_or_dropped_but_not_both(links in links(), page_cap in caps()) {
        let Selection { picked, dropped } = selector(page_cap, false).select(HOME, links.clone()).unwrap();
        prop_assert!(picked.len() <= page_cap);
        prop_assert_eq!(picked.len() + dropped.len(), links.len());
        // What is left of the input once the dropped are taken out is one link for each page taken.
        let mut left: Vec<&str> = links.iter().map(|link| link.href.as_str()).collect();
        for Dropped { href, .. } in &dropped {
            let index = left.iter().position(|other| other == href);
            prop_assert!(index.is_some(), "{href} was dropped more often than it was there");
            left.swap_remove(index.unwrap());
        }
        let home: forager_core::url::FetchUrl = HOME.parse().unwrap();
        let mut left: Vec<_> = left.into_iter().map(|href| home.join(href).unwrap()).collect();
        left.sort();
        let mut taken: Vec<_> = picked.into_iter().map(|page| page.url).collect();
        taken.sort();
        prop_assert_eq!(left, taken);
    }

    /// A higher cap only adds pages at the end.
    #[test]
    fn a_higher_cap_changes_nothing_that_a_lower_one_took(links in links(), page_cap in caps()) {
        let few = selector(page_cap, false).select(HOME, links.clone()).unwrap().picked;
        let all = selector(usize::MAX, false).select(HOME, links).unwrap().picked;
        prop_assert!(all.starts_with(&few));
        let order: Vec<_> = all
            .iter()
            .map(|page| (core::cmp::Reverse(page.score), page.path_length, page.url.as_str()))
            .collect();
        prop_assert!(order.is_sorted());
    }
}

#[test]
fn terms_of_any_language_are_found_in_escaped_paths() {
    let config = SelectConfig {
        absolute_terms: vec!["Prüfung".into()],
        about_prefixes: vec!["/über-uns".into()],
        ..SelectConfig::default()
    };
    let links = ["/PR%C3%9CFUNG", "/über-uns"].map(|href| Link { href: href.into(), ..Link::default() });
    let selection = Selector::new(config).unwrap().select("https://acme.com", links).unwrap();
    let found: Vec<_> =
        selection.picked.iter().map(|page| (page.category, page.matched_term.as_deref().unwrap())).collect();
    assert_eq!(found, [(Category::B, "prüfung"), (Category::C, "/über-uns")]);
}

#[test]
fn settings_may_be_escaped_as_addresses_are() {
    let config = SelectConfig {
        disallowed_paths: ["/o%20nama", "/caf%C3%A9", "/a%2Fb"].map(str::to_owned).to_vec(),
        url_terms: vec!["%C4%8Davao".into()],
        ..SelectConfig::default()
    };
    let hrefs = ["/o%20nama/x", "/caf%C3%A9/menu", "/a%2fb", "/%C4%8Davao"];
    let links = hrefs.map(|href| Link { href: href.into(), ..Link::default() });
    let selection = Selector::new(config).unwrap().select("https://acme.com", links).unwrap();
    assert_eq!(selection.dropped.iter().filter(|link| link.filter == Filter::DisallowedPath).count(), 3);
    assert_eq!(selection.picked[0].category, Category::U);
}

#[test]
fn a_prefix_that_is_no_path_is_refused() {
    let config = SelectConfig { disallowed_paths: vec!["impressum".into()], ..SelectConfig::default() };
    let error = Selector::new(config).unwrap_err().to_string();
    assert_eq!(
        error,
        "disallowed_paths holds \"impressum\", which no path starts with: a path starts with /"
    );
}

#[test]
fn the_home_page_itself_is_dropped_over_either_scheme() {
    let links = ["http://a.example/en/", "https://a.example/en/", "/en/?x"]
        .map(|href| Link { href: href.into(), ..Link::default() });
    let selector = Selector::new(SelectConfig::default()).unwrap();
    let selection = selector.select("https://a.example/en/", links).unwrap();
    assert_eq!(
        selection.picked.iter().map(|page| page.url.as_str()).collect::<Vec<_>>(),
        ["https://a.example/en/?x"]
    );
}
