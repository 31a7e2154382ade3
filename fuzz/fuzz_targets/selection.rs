//! Which links of a page are taken, from any text.
//!
//! Input: the home page on the first line, then a link on each: `href`, tab, anchor text, tab, title.
#![no_main]

use std::sync::LazyLock;

use forager_core::select::{Filter, Link, SelectConfig, Selection, Selector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let home = lines.next().unwrap_or_default();
    let links: Vec<Link> = lines.map(link).collect();
    for (page_cap, selector) in SELECTORS.iter() {
        let Ok(selection) = selector.select(home, links.iter().cloned()) else { return };
        holds(&selection, &links, *page_cap);
        let reversed = selector.select(home, links.iter().rev().cloned());
        assert_eq!(reversed.as_ref(), Ok(&selection), "the order of the links does not matter");
    }
});

/// With every option off and on, and the caps they have.
static SELECTORS: LazyLock<[(usize, Selector); 2]> = LazyLock::new(|| {
    [(2, false), (usize::MAX, true)].map(|(page_cap, loose)| {
        let config =
            SelectConfig { page_cap, fold_www: loose, drop_top_level: loose, ..SelectConfig::default() };
        (page_cap, Selector::new(config).expect("the default terms can be searched for"))
    })
});

fn link(line: &str) -> Link {
    let mut fields = line.split('\t').map(str::to_owned);
    let mut next = || fields.next().unwrap_or_default();
    Link { href: next(), text: next(), title: next() }
}

fn holds(Selection { picked, dropped }: &Selection, links: &[Link], page_cap: usize) {
    assert_eq!(picked.len() + dropped.len(), links.len(), "each link is in exactly one list");
    assert!(picked.len() <= page_cap);
    let is_cut = dropped.iter().any(|dropped| dropped.filter == Filter::PageCap);
    assert!(!is_cut || picked.len() == page_cap, "nothing is cut while there is room");
    for pair in picked.windows(2) {
        assert!(pair[0].score >= pair[1].score, "best first");
        assert_ne!(pair[0].url, pair[1].url);
    }
    let mut given: Vec<&str> = links.iter().map(|link| link.href.as_str()).collect();
    given.sort_unstable();
    for dropped in dropped {
        assert!(given.binary_search(&dropped.href.as_str()).is_ok(), "what is dropped was there");
    }
}
