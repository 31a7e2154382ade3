//! The links of any page. Input: the page, as bytes in any encoding.
#![no_main]

use std::sync::LazyLock;

use forager_core::url::FetchUrl;
use forager_fetch::directives::Directives;
use forager_fetch::encoding::decode;
use forager_fetch::links::{LinkOptions, extract};
use libfuzzer_sys::fuzz_target;

static PAGE: LazyLock<FetchUrl> =
    LazyLock::new(|| FetchUrl::parse("https://example.org/dir/page?q=1").expect("a URL"));

fuzz_target!(|body: &[u8]| {
    let page = decode(body, None);
    let options = LinkOptions { max_links: 20, max_text_bytes: 40, ..LinkOptions::default() };
    let found = extract(&page.text, &PAGE, &options);
    assert!(found.links.len() <= options.max_links);
    for link in &found.links {
        assert_eq!(FetchUrl::parse(link.url.as_str()).as_ref(), Ok(&link.url), "it can be fetched");
        assert!(link.url.as_str().len() <= options.max_url_bytes);
        for text in [&link.text, &link.title] {
            assert!(text.len() <= options.max_text_bytes);
            assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), *text, "in one line");
        }
    }
    // A bound only leaves out: what is kept is the beginning of all.
    let all = extract(&page.text, &PAGE, &LinkOptions::default());
    assert!(all.links.len() >= found.links.len());
    assert_eq!((&all.base, all.complete, &all.lang), (&found.base, found.complete, &found.lang));
    let asked = Directives::read([], &found.robots_meta, "forager");
    assert!(asked.why.len() <= found.robots_meta.len() * 1024);
});
