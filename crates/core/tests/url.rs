//! The three forms of a URL: what is requested, what is one page, how pages sort.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use forager_core::url::{
    FetchUrl, Identity, IdentityOptions, MAX_URL_BYTES, UrlError, check, fold_www, without_user_info,
};
use proptest::prelude::*;

fn fetch(text: &str) -> FetchUrl {
    FetchUrl::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn identity(text: &str) -> Identity {
    fetch(text).identity(&IdentityOptions::default())
}

#[test]
fn a_fetch_url_is_what_a_browser_would_request() {
    let table = [
        ("fragment dropped", "https://example.org/a?b#c", "https://example.org/a?b"),
        ("empty fragment dropped", "https://example.org/a#", "https://example.org/a"),
        ("empty query kept", "https://example.org/a?", "https://example.org/a?"),
        ("empty path", "http://example.org", "http://example.org/"),
        ("query without a path", "http://example.org?a", "http://example.org/?a"),
        ("user-info removed", "http://me:pw@example.org/", "http://example.org/"),
        ("a user alone", "http://me@example.org:8080/@a?b@c", "http://example.org:8080/@a?b@c"),
        ("a password alone", "http://:pw@example.org/", "http://example.org/"),
        ("a host before another", "http://example.org@other.org/", "http://other.org/"),
        ("scheme and host in capitals", "HTTP://EXAMPLE.ORG/A", "http://example.org/A"),
        ("default port", "https://example.org:443/", "https://example.org/"),
        ("port of the other scheme", "https://example.org:80/", "https://example.org:80/"),
        ("empty port", "http://example.org:/a", "http://example.org/a"),
        ("port with zeros", "http://example.org:0080/", "http://example.org/"),
        ("dot segments", "http://example.org/a/./b/../c", "http://example.org/a/c"),
        ("more dots than path", "http://example.org/../../a", "http://example.org/a"),
        ("encoded dot segments", "http://example.org/a/%2e/b/%2E%2e/c", "http://example.org/a/c"),
        ("a dot segment at the end leaves a slash", "http://example.org/a/b/..", "http://example.org/a/"),
        ("no drives on the web", "http://example.org/a:/../x", "http://example.org/x"),
        ("in any form", r"http://example.org/b/C|\%2E%2e/./../x?y/a:/..", "http://example.org/x?y/a:/.."),
        ("a drive that stays", "http://example.org/a:/b/../c|/", "http://example.org/a:/c|/"),
        ("a drive at the end", "http://me@a:/a:/b:/..#c", "http://a/a:/"),
        ("a tab in a drive", "http://example.org/a\t:/../x", "http://example.org/x"),
        ("empty segments kept", "http://example.org//a//b/", "http://example.org//a//b/"),
        ("backslashes", r"http:\\example.org\a\b", "http://example.org/a/b"),
        ("one slash, or none", "http:example.org/a", "http://example.org/a"),
        ("escapes as they are", "http://example.org/%7ea%2fb?%7e", "http://example.org/%7ea%2fb?%7e"),
        ("spaces", "http://example.org/a b?c d", "http://example.org/a%20b?c%20d"),
        ("tab and newline removed", "ht\ttp://exam\nple.org/a\r\nb", "http://example.org/ab"),
        ("controls and spaces around it", "\u{1} \u{0}http://example.org/a \u{1f}\n", "http://example.org/a"),
        ("international name", "http://Bücher.example/", "http://xn--bcher-kva.example/"),
        ("full-width name", "http://ＥＸＡＭＰＬＥ.org/", "http://example.org/"),
        ("encoded name", "http://ex%61mple.org/", "http://example.org/"),
        ("name with a final dot", "http://example.org./", "http://example.org./"),
        ("IPv4", "http://127.0.0.1/", "http://127.0.0.1/"),
        ("IPv4 in one number", "http://2130706433/", "http://127.0.0.1/"),
        ("IPv4 in hexadecimal", "http://0x7f.0x1/", "http://127.0.0.1/"),
        ("IPv4 in octal", "http://0177.0.0.01/", "http://127.0.0.1/"),
        ("IPv4 in short", "http://127.1/", "http://127.0.0.1/"),
        ("IPv4 with a final dot", "http://127.0.0.1./", "http://127.0.0.1/"),
        ("IPv6", "http://[2001:DB8:0:0:0:0:0:1]:8080/", "http://[2001:db8::1]:8080/"),
        ("IPv4 in IPv6", "http://[::ffff:1.2.3.4]/", "http://[::ffff:102:304]/"),
    ];
    for (name, text, want) in table {
        assert_eq!(fetch(text).as_str(), want, "{name}");
    }
}

#[test]
fn what_is_no_absolute_web_url_is_refused() {
    let table = [
        ("empty", ""),
        ("relative", "/a/b"),
        ("without a scheme", "example.org/a"),
        ("no host", "http://"),
        ("no host before a port", "http://:80/"),
        ("another scheme", "ftp://example.org/"),
        ("mail", "mailto:me@example.org"),
        ("script", "javascript:void(0)"),
        ("data", "data:text/html,x"),
        ("space in the host", "http://exa mple.org/"),
        ("control in the host", "http://exa\u{1}mple.org/"),
        ("zero byte in the host", "http://exa\0mple.org/"),
        ("encoded control in the host", "http://exa%00mple.org/"),
        ("delete in the host", "http://exa\u{7f}mple.org/"),
        ("forbidden character in the host", "http://exa<mple.org/"),
        ("encoded slash in the host", "http://exa%2fmple.org/"),
        ("port too great", "http://example.org:65536/"),
        ("port not a number", "http://example.org:x/"),
        ("IPv4 out of range", "http://1.2.3.256/"),
        ("IPv4 of five parts", "http://1.2.3.4.5/"),
        ("IPv6 without its bracket", "http://[::1/"),
        ("IPv6 with a zone", "http://[fe80::1%25eth0]/"),
        ("punycode that decodes to nothing", "http://xn--/"),
    ];
    for (name, text) in table {
        let refused = FetchUrl::parse(text);
        assert!(
            matches!(refused, Err(UrlError::Invalid { .. } | UrlError::Scheme { .. })),
            "{name}: {refused:?}"
        );
        assert_eq!(check(text), refused.map(drop), "{name}");
    }
}

#[test]
fn whoever_leaves_out_the_scheme_is_told_to_write_it() {
    let table = [
        ("www.example.org/a", true),
        ("localhost:8080/x", true),
        ("example.org:80", true),
        ("mailto:me@example.org", false),
        ("ftp://example.org:21/", false),
        ("http://[x", false),
    ];
    for (text, is_told) in table {
        let told = FetchUrl::parse(text).unwrap_err().to_string();
        assert_eq!(told.contains("write https:// or http:// before it"), is_told, "{told}");
    }
}

#[test]
fn a_url_may_be_long_but_not_endless() {
    let of_bytes = |bytes: usize| format!("https://example.org/{}", "a".repeat(bytes - 20));
    for bytes in [8_000, 8_193, MAX_URL_BYTES] {
        assert_eq!(fetch(&of_bytes(bytes)).as_str().len(), bytes);
        assert_eq!(identity(&of_bytes(bytes)).as_str().len(), bytes);
    }
    let too_long = of_bytes(65_537);
    assert_eq!(FetchUrl::parse(&too_long), Err(UrlError::TooLong { bytes: 65_537 }));
    assert_eq!(check(&too_long), Err(UrlError::TooLong { bytes: 65_537 }));
    assert_eq!(fetch("http://example.org/").join(&too_long), Err(UrlError::TooLong { bytes: 65_537 }));
    // The identity of the longest URL is three times as long: every byte is escaped.
    let bars = format!("http://example.org/{}", "|".repeat(MAX_URL_BYTES - 19));
    assert_eq!(identity(&bars).as_str().len(), 19 + 3 * (MAX_URL_BYTES - 19));
}

#[test]
fn a_refusal_shows_the_start_of_a_long_text() {
    let long = "ö".repeat(5_000);
    let message = FetchUrl::parse(&long).unwrap_err().to_string();
    assert!(message.starts_with(&format!("\"{}…\"", "ö".repeat(100))), "{message}");
}

#[test]
fn links_resolve_against_their_page() {
    let page = fetch("https://example.org/a/b?c");
    let table = [
        ("", "https://example.org/a/b?c"),
        ("d", "https://example.org/a/d"),
        ("/d", "https://example.org/d"),
        ("?d", "https://example.org/a/b?d"),
        ("#d", "https://example.org/a/b?c"),
        ("..", "https://example.org/"),
        ("//other.org/d", "https://other.org/d"),
        ("http://other.org", "http://other.org/"),
        (" d\n", "https://example.org/a/d"),
    ];
    for (href, want) in table {
        assert_eq!(page.join(href).unwrap().as_str(), want, "{href:?}");
    }
    // What looks like a drive is a folder like any other.
    let below = fetch("https://example.org/a:/b");
    for (href, want) in
        [("../d", "/d"), ("c", "/a:/c"), ("c|/../d", "/a:/d"), ("https:C|/../../d", "/d"), ("/c:/../d", "/d")]
    {
        assert_eq!(below.join(href).unwrap().path(), want, "{href:?}");
    }
    assert!(matches!(page.join("mailto:me@example.org"), Err(UrlError::Scheme { .. })));
    assert!(matches!(page.join("http://[x"), Err(UrlError::Invalid { .. })));
}

#[test]
fn people_may_leave_out_the_scheme() {
    let table = [
        ("example.org/a", "http://example.org/a"),
        (" example.org ", "http://example.org/"),
        ("//example.org/a", "http://example.org/a"),
        ("localhost:8080/a", "http://localhost:8080/a"),
        ("https://example.org", "https://example.org/"),
        // Parsers take any number of slashes.
        ("http:/example.org/a", "http://example.org/a"),
        (" HTTPS:/example.org", "https://example.org/"),
        (r"http:\\example.org/b", "http://example.org/b"),
        ("example.org:/a", "http://example.org/a"),
        ("example.org/?to=https://other.org/", "http://example.org/?to=https://other.org/"),
    ];
    for (text, want) in table {
        assert_eq!(FetchUrl::parse_lenient(text).unwrap().as_str(), want, "{text:?}");
    }
    for text in ["", "/", "ftp://example.org", "mailto:me@example.org", "javascript:void(0)"] {
        let problem = FetchUrl::parse_lenient(text).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("{text:?} is not ")), "as it was written: {problem}");
    }
}

#[test]
fn names_and_passwords_are_left_out_of_what_is_told() {
    let table = [
        ("https://me:pw@Example.org#top", "https://Example.org#top"),
        ("http:/me:pw@example.org/a", "http:/example.org/a"),
        (r"http:\\me:pw@example.org", r"http:\\example.org"),
        ("//me:pw@example.org:99999/", "//example.org:99999/"),
        ("ftp://me@example.org/", "ftp://example.org/"),
        ("http://a@b@[bad/", "http://[bad/"),
        ("http://example.org/@me", "http://example.org/@me"),
        ("/@me:pw@x", "/@me:pw@x"),
        ("mailto:me@example.org", "mailto:me@example.org"),
        ("", ""),
    ];
    for (text, want) in table {
        assert_eq!(without_user_info(text), want, "{text:?}");
    }
    let told = FetchUrl::parse("http://me:pw@example.org:99999/").unwrap_err().to_string();
    assert!(told.contains("example.org:99999") && !told.contains("pw"), "{told}");
}

#[test]
fn an_identity_is_one_text_for_one_page() {
    let table = [
        ("host in lower case, path not", "HTTP://Example.ORG/A", "http://example.org/A"),
        ("user-info removed", "http://me:pw@example.org/", "http://example.org/"),
        ("user-info without a password", "http://me@example.org/", "http://example.org/"),
        ("default port of http", "http://example.org:80/", "http://example.org/"),
        ("default port of https", "https://example.org:443/", "https://example.org/"),
        ("another port", "http://example.org:8080/", "http://example.org:8080/"),
        ("scheme kept", "https://example.org/", "https://example.org/"),
        ("fragment removed", "http://example.org/#a", "http://example.org/"),
        ("empty path", "http://example.org", "http://example.org/"),
        ("dot segments", "http://example.org/a/../b/./c", "http://example.org/b/c"),
        ("encoded dot segments", "http://example.org/a/%2E%2e/b", "http://example.org/b"),
        ("trailing slash kept", "http://example.org/a/", "http://example.org/a/"),
        ("empty segments kept", "http://example.org/a//b", "http://example.org/a//b"),
        ("unreserved decoded", "http://example.org/%7e%41%2D%5f%2e%39", "http://example.org/~A-_.9"),
        (
            "reserved kept, in capitals",
            "http://example.org/a%2fb%3fc%23d",
            "http://example.org/a%2Fb%3Fc%23d",
        ),
        ("lower-case hex", "http://example.org/%c3%a9", "http://example.org/%C3%A9"),
        ("letters beyond ASCII", "http://example.org/é", "http://example.org/%C3%A9"),
        ("reserved characters stand", "http://example.org/!$&'()*+,;=:@", "http://example.org/!$&'()*+,;=:@"),
        ("others do not", "http://example.org/a|b[c]^d", "http://example.org/a%7Cb%5Bc%5D%5Ed"),
        ("percent sign alone", "http://example.org/100%", "http://example.org/100%25"),
        ("percent sign before no escape", "http://example.org/%zz%4", "http://example.org/%25zz%254"),
        ("no second decoding", "http://example.org/%2541", "http://example.org/%2541"),
        ("no escape out of two", "http://example.org/%%34%31", "http://example.org/%2541"),
        ("space", "http://example.org/a b%20c", "http://example.org/a%20b%20c"),
        ("plus is not a space", "http://example.org/a+b?c+d", "http://example.org/a+b?c+d"),
        ("query kept as it is ordered", "http://example.org/?b=2&a=1&b=1", "http://example.org/?b=2&a=1&b=1"),
        ("query normalised", "http://example.org/?%61=%7e|[", "http://example.org/?a=~%7C%5B"),
        ("slash and question mark in a query", "http://example.org/?a/b?c", "http://example.org/?a/b?c"),
        ("quotes in a query", "http://example.org/?'\"", "http://example.org/?%27%22"),
        ("empty query kept", "http://example.org/?", "http://example.org/?"),
        ("international name", "http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("IPv6", "http://[::1]:80/", "http://[::1]/"),
        ("IPv4", "http://0x7f.1/", "http://127.0.0.1/"),
    ];
    for (name, text, want) in table {
        assert_eq!(identity(text).as_str(), want, "{name}");
    }
}

#[test]
fn a_profile_may_sort_and_strip_parameters() {
    let table: [(&str, bool, &[&str], &str, &str); 15] = [
        ("sorted", true, &[], "?b=2&a=1", "?a=1&b=2"),
        ("sorted by value too", true, &[], "?a=2&a=1", "?a=1&a=2"),
        ("sorted bytewise", true, &[], "?a=1&B=1&a", "?B=1&a&a=1"),
        ("sorted after normalising", true, &[], "?b=1&%61=1", "?a=1&b=1"),
        ("an empty query is kept", true, &[], "?", "?"),
        ("empty parameters are kept", true, &[], "?b&&a", "?&a&b"),
        ("stripped by name", false, &["sid"], "?b=2&sid=9&a=1", "?b=2&a=1"),
        ("the name exactly", false, &["sid"], "?side=9&Sid=1&asid=2", "?side=9&Sid=1&asid=2"),
        ("a name without a value", false, &["sid"], "?sid&a", "?a"),
        ("every occurrence", false, &["sid"], "?sid=1&a&sid=2", "?a"),
        ("an encoded name", false, &["sid"], "?s%69d=1&a", "?a"),
        ("a beginning", false, &["utm_*"], "?utm_source=x&utm_=y&a=1&utm=z", "?a=1&utm=z"),
        ("all of them: the question mark goes too", false, &["sid", "utm_*"], "?utm_id=1&sid=2", ""),
        ("any name", false, &["*"], "?a=1&b", ""),
        ("both", true, &["sid"], "?c&sid=1&b", "?b&c"),
    ];
    for (name, sort_query, strip, query, want) in table {
        let strip_params = strip.iter().map(|&pattern| pattern.to_owned()).collect();
        let options = IdentityOptions { sort_query, strip_params };
        let identity = fetch(&format!("http://example.org/a{query}")).identity(&options);
        assert_eq!(identity.as_str(), format!("http://example.org/a{want}"), "{name}");
    }
}

#[test]
fn the_parts_of_an_identity_are_those_of_its_text() {
    let whole = identity("https://u@www.Example.org:8443/a/b?c=d#e");
    assert_eq!(whole.scheme(), "https");
    assert_eq!(whole.host(), "www.example.org");
    assert_eq!(whole.authority(), "www.example.org:8443");
    assert_eq!(whole.domain(), "example.org");
    assert_eq!(whole.path(), "/a/b");
    assert_eq!(whole.query(), Some("c=d"));
    assert_eq!(whole.without_scheme(), "www.example.org:8443/a/b?c=d");
    assert_eq!(whole.to_string(), "https://www.example.org:8443/a/b?c=d");
    let homepages = [("http://a.org", true), ("http://a.org/?", false), ("http://a.org/a", false)];
    for (text, is_homepage) in homepages {
        assert_eq!(identity(text).is_homepage(), is_homepage, "{text}");
    }
}

#[test]
fn a_surt_sorts_a_domain_together() {
    let table = [
        ("http://www.example.org/a?b", "http://(org,example,www,)/a?b"),
        ("https://www.example.org/a?b", "http://(org,example,www,)/a?b"),
        ("https://example.org", "http://(org,example,)/"),
        ("http://example.org:8080/a", "http://(org,example,:8080)/a"),
        ("http://localhost/", "http://(localhost,)/"),
        ("http://127.0.0.1/a", "http://(127.0.0.1)/a"),
        ("http://127.0.0.1:81/a", "http://(127.0.0.1:81)/a"),
        ("http://[::1]:81/a", "http://([::1]:81)/a"),
        ("http://bücher.example/", "http://(example,xn--bcher-kva,)/"),
        ("http://example.org./a", "http://(org,example,)/a"),
    ];
    for (text, want) in table {
        assert_eq!(identity(text).surt().as_str(), want);
    }
    let mut sorted = ["http://b.org/", "http://a.org/x", "http://z.a.org/", "http://a.org/"]
        .map(|text| identity(text).surt());
    sorted.sort();
    let listed: Vec<_> = sorted.iter().map(forager_core::url::Surt::as_str).collect();
    assert_eq!(listed, ["http://(org,a,)/", "http://(org,a,)/x", "http://(org,a,z,)/", "http://(org,b,)/"]);
}

#[test]
fn hosts_share_their_politeness_whatever_the_port_and_scheme() {
    let table = [
        ("https://Example.org:8443/a", "example.org"),
        ("http://example.org/b", "example.org"),
        ("http://www.example.org/", "www.example.org"),
        ("http://[::1]:80/", "[::1]"),
        ("http://127.1/", "127.0.0.1"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://example.org./a", "example.org"),
        ("https://EXAMPLE.org.:8443/", "example.org"),
        ("http://example.org../", "example.org."),
        ("http://127.0.0.1./", "127.0.0.1"),
    ];
    for (text, want) in table {
        assert_eq!(fetch(text).host_key(), want, "{text}");
        assert_eq!(identity(text).host_key(), fetch(text).host_key(), "{text}");
    }
}

#[test]
fn registrable_domains_follow_the_public_suffix_list() {
    let table = [
        ("example.org", Some("example.org")),
        ("a.b.example.org", Some("example.org")),
        ("www.example.co.uk", Some("example.co.uk")),
        ("co.uk", None),
        ("org", None),
        ("example.org.", Some("example.org")),
        ("me.github.io", Some("me.github.io")),
        ("github.io", None),
        ("a.xn--bcher-kva.de", Some("xn--bcher-kva.de")),
        ("a.食狮.公司.cn", Some("xn--85x722f.xn--55qx5d.cn")),
        ("公司.cn", None),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("localhost", None),
    ];
    for (host, want) in table {
        let text = format!("http://{host}/");
        assert_eq!(fetch(&text).registrable_domain(), want, "{host}");
        assert_eq!(identity(&text).registrable_domain(), want, "{host}");
    }
}

#[test]
fn only_a_leading_www_is_folded() {
    let table = [
        ("www.a.org", "a.org"),
        ("www2.a.org", "www2.a.org"),
        ("a.www.org", "a.www.org"),
        ("wwwa.org", "wwwa.org"),
    ];
    for (host, want) in table {
        assert_eq!(fold_www(host), want);
    }
}

#[test]
fn urls_read_from_json_are_checked() {
    let url: FetchUrl = serde_json::from_str(r#""http://Example.org\u002fa""#).unwrap();
    assert_eq!(serde_json::to_string(&url).unwrap(), r#""http://example.org/a""#);
    let error = serde_json::from_str::<FetchUrl>(r#""nonsense""#).unwrap_err().to_string();
    assert!(error.contains("nonsense"), "{error}");
}

/// Hosts good and bad, and hosts that look like the plain ones that `check` does not parse.
fn hosts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9.-]{0,12}",
        "[a-z0-9-]{0,4}(\\.[a-z0-9x-]{0,3}){0,5}",
        "(xn--)?[a-z0-9-]{0,6}\\.(xn--[a-z0-9]{0,4}|0x[0-9a-g]{0,2}|[0-9]{1,3}|org)",
        "[A-Za-zäß。ａ%\\[\\]:@<> _0-9.-]{0,10}",
        "[a-z]{60,70}(\\.[a-z]{60,70}){0,4}",
        any::<String>(),
    ]
}

/// Texts that look like URLs, with everything that needs care in them.
fn urls() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "http://", "https://", "HTTP://", "http:/", "http:", " http://", "ftp://", "",
    ]);
    let rest =
        "(:[0-9]{0,6})?([/?#&=;%|\\\\.'\"\\[\\]A-Fa-f0-9äé \t~+]|%[0-9a-fA-F]{2}|/\\.\\.?/|%2[eE]){0,24}";
    (scheme, hosts(), rest).prop_map(|(scheme, host, rest)| format!("{scheme}{host}{rest}"))
}

fn options() -> impl Strategy<Value = IdentityOptions> {
    let patterns = prop::sample::select(vec!["a", "a*", "A", "*", "", "%41", "."]);
    (any::<bool>(), prop::collection::vec(patterns, 0..3)).prop_map(|(sort_query, patterns)| {
        IdentityOptions { sort_query, strip_params: patterns.into_iter().map(str::to_owned).collect() }
    })
}

proptest! {
    #[test]
    fn the_identity_of_an_identity_is_itself(text in urls(), options in options()) {
        if let Ok(url) = FetchUrl::parse(&text) {
            for options in [&options, &IdentityOptions::default()] {
                let once = url.identity(options);
                let twice = fetch(once.as_str()).identity(options);
                prop_assert_eq!(&once, &twice);
                prop_assert!(once.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
                prop_assert_eq!(once.host(), url.host());
                prop_assert_eq!(once.path(), twice.path());
                prop_assert_eq!(once.registrable_domain(), url.registrable_domain());
            }
        }
    }

    #[test]
    fn a_fetch_url_parses_to_itself(text in urls()) {
        if let Ok(url) = FetchUrl::parse(&text) {
            prop_assert_eq!(fetch(url.as_str()), url);
        }
    }

    #[test]
    fn checking_agrees_with_parsing(text in prop_oneof![urls(), any::<String>()]) {
        prop_assert_eq!(check(&text), FetchUrl::parse(&text).map(drop));
    }

    #[test]
    fn sorting_forgets_the_order_of_parameters(
        parameters in prop::collection::vec("[ab%=]{0,3}", 1..6),
        turn in 0..6_usize,
    ) {
        let options = IdentityOptions { sort_query: true, ..IdentityOptions::default() };
        let with = |parameters: &[String]| {
            fetch(&format!("http://a.org/?{}", parameters.join("&"))).identity(&options)
        };
        let mut turned = parameters.clone();
        turned.rotate_left(turn % parameters.len());
        prop_assert_eq!(with(&parameters), with(&turned));
    }
}
