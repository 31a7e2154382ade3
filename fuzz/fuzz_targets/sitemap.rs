//! Any bytes as a sitemap.
#![no_main]

use forager_core::url::FetchUrl;
use forager_fetch::sitemap::{Kind, MAX_ITEMS, MAX_PROBLEMS, Sitemap, may_list, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let base = FetchUrl::parse("https://example.org/maps/sitemap.xml").expect("a URL");
    holds(&read(body, &base, None), &base);
    holds(&read(body, &base, Some("text/xml; charset=utf-16le")), &base);
});

fn holds(sitemap: &Sitemap, base: &FetchUrl) {
    let Sitemap { kind, urls, sitemaps, problems, further_problems, remarks, further_remarks } = sitemap;
    assert!(urls.len() <= MAX_ITEMS && sitemaps.len() <= MAX_ITEMS);
    for (told, further) in [(problems, further_problems), (remarks, further_remarks)] {
        assert!(told.len() == MAX_PROBLEMS || (told.len() < MAX_PROBLEMS && *further == 0));
    }
    assert!(*kind != Kind::Unknown || (urls.is_empty() && sitemaps.is_empty() && !problems.is_empty()));
    for item in urls.iter().chain(sitemaps) {
        assert_eq!(FetchUrl::parse(item.url.as_str()).as_ref(), Ok(&item.url));
        assert!(may_list(base, &item.url, true).allowed);
    }
    for problem in problems.iter().chain(remarks) {
        assert!(problem.to_string().len() < 2_000, "{problem}");
        assert!(problem.at.is_none_or(|at| at.line > 0 && at.column > 0));
    }
}
