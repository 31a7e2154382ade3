//! The three forms of a URL, from any text. Input: a base, a line break, a link.
#![no_main]

use forager_core::url::{FetchUrl, Identity, IdentityOptions, check};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (base, href) = text.split_once('\n').unwrap_or((text, ""));
    assert_eq!(check(base), FetchUrl::parse(base).map(drop), "check and parse agree");
    for url in [FetchUrl::parse(base), FetchUrl::parse_lenient(base)].into_iter().flatten() {
        holds(&url);
        if let Ok(link) = url.join(href) {
            holds(&link);
        }
    }
});

fn holds(url: &FetchUrl) {
    assert_eq!(FetchUrl::parse(url.as_str()).as_ref(), Ok(url), "a parsed URL parses to itself");
    assert!(matches!(url.scheme(), "http" | "https"));
    assert!(!url.host().is_empty() && url.path().starts_with('/') && !url.as_str().contains('#'));
    let strip_params = vec!["a".to_owned(), "utm_*".to_owned()];
    for options in [IdentityOptions::default(), IdentityOptions { sort_query: true, strip_params }] {
        let identity = url.identity(&options);
        let again = FetchUrl::parse(identity.as_str()).map(|url| url.identity(&options));
        assert_eq!(again.as_ref(), Ok(&identity), "the identity of an identity is itself");
        assert_eq!(identity.host(), url.host());
        in_parts(&identity);
    }
}

/// The parts are what the text is made of.
fn in_parts(identity: &Identity) {
    let query = identity.query().map(|query| format!("?{query}")).unwrap_or_default();
    let whole = [identity.scheme(), "://", identity.authority(), identity.path(), &query].concat();
    assert_eq!(whole, identity.as_str());
    assert!(identity.authority().starts_with(identity.host()));
    assert!(identity.surt().as_str().ends_with(&format!("){}{query}", identity.path())));
    if let Some(domain) = identity.registrable_domain() {
        assert!(identity.host().trim_end_matches('.').ends_with(domain));
        assert!(domain.contains('.') && !domain.starts_with('.'), "a name below a suffix");
    }
}
