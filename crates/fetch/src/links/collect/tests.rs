//! The reader is held against a parser that others wrote, on pages that are broken in every way.

mod model;

use std::sync::LazyLock;

use forager_core::url::FetchUrl;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use regex::Regex;

use crate::links::{LinkOptions, PageLinks, resolve::resolve};

static PAGE: LazyLock<FetchUrl> =
    LazyLock::new(|| FetchUrl::parse("https://example.org/dir/page?q=1").unwrap());

fn options() -> LinkOptions {
    LinkOptions { max_links: 40, max_url_bytes: 60, max_text_bytes: 30, ..LinkOptions::default() }
}

fn ours(html: &str) -> PageLinks {
    let (seen, complete) = super::collect(html, &options());
    resolve(seen, complete, &PAGE, &options())
}

fn theirs(html: &str) -> PageLinks {
    let (seen, complete) = model::collect(html, &options());
    resolve(seen, complete, &PAGE, &options())
}

/// Where the other parser is not what browsers do; [`what_browsers_do`] has these.
fn is_theirs_alone(html: &str) -> bool {
    static NO_VALUE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"=\s*>").unwrap());
    static IN_FOREIGN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?is)<(svg|math).*(/\s*>|<textarea)").unwrap());
    NO_VALUE.is_match(html) || IN_FOREIGN.is_match(html)
}

#[test]
fn what_browsers_do() {
    let cases: [(&str, &str, &[&str], Option<&str>); 6] = [
        (
            "a script whose last attribute has no value",
            "<script x=><a href=a></script><a href=b>",
            &["b"],
            None,
        ),
        ("a drawing that is empty", "<svg/><title>Page</title><a href=a>", &["a"], Some("Page")),
        ("a link in a drawing that is empty", "<svg><a href='a'/></svg><a href=b>", &["a", "b"], None),
        (
            "text area in the title of a drawing",
            "<svg><title><textarea>x</textarea></title></svg>",
            &[],
            None,
        ),
        ("an image in a drawing ends it", "<svg><img/><title>Page</title><a href=a>", &["a"], Some("Page")),
        ("a link around an empty one", "<a href=a>x<svg><a href='b'/>y</svg></a>", &["a", "b"], None),
    ];
    for (name, html, links, title) in cases {
        let found = ours(html);
        let paths: Vec<_> =
            found.links.iter().map(|link| link.url.path().trim_start_matches("/dir/")).collect();
        assert_eq!((paths, found.title.as_deref(), found.complete), (links.to_vec(), title, true), "{name}");
    }
}

static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let names = "a a A a area base link meta title html body head iframe frame img header nav main article \
         section aside footer template div p ul li span b br table tr td script style noscript textarea \
         xmp noembed noframes plaintext svg math desc foreignObject mi mtext annotation-xml font path h1 \
         input option select form button Custom-Element custom-element wbr i em figure";
    names.split(' ').collect()
});

const ATTRIBUTES: [&str; 36] = [
    "href=x",
    "href='/y?a=1&amp;b=2#c'",
    "HREF=\"z\"",
    "href",
    "href='mailto:a'",
    "href=#top",
    "href='http://['",
    "href=//b.example/",
    "href='/long/long/long/long/long/long/long/long/long/long/long/long'",
    "src=f",
    "src='/g'",
    "title='T &quot;t&quot;'",
    "title=\" a  b\n\"",
    "alt='Pic &amp; more'",
    "alt",
    "rel=nofollow",
    "rel='ugc sponsored'",
    "rel=canonical",
    "rel='alternate'",
    "rel='alternate stylesheet'",
    "hreflang=en",
    "type=application/rss+xml",
    "name=robots",
    "name=' Forager '",
    "name=description",
    "content=noindex",
    "content='0; url=/next'",
    "http-equiv=refresh",
    "lang=hr",
    "lang=' '",
    "role=navigation",
    "role='x banner'",
    "encoding='text/html'",
    "color=red",
    "class='a>b'",
    "= x",
];

const BITS: [&str; 32] = [
    "<!--",
    "-->",
    "--!>",
    "<!-->",
    "<!--->",
    "<!",
    "<!DOCTYPE html>",
    "<?xml version='1'?>",
    "</",
    "</>",
    "</ a>",
    "<",
    ">",
    "'",
    "\"",
    "=",
    "/",
    "&",
    "&amp;",
    "&lt;a href=x&gt;",
    "&eacute",
    "<![CDATA[",
    "]]>",
    "]",
    "--",
    "-",
    "<!--<script>",
    "</script",
    "</title ",
    "\u{e9}\u{4e2d}",
    "\n \t",
    "\u{c}",
];

fn tag() -> impl Strategy<Value = String> {
    let end = select(vec![">", ">", ">", ">", " >", "/>", "", " "]);
    (select(NAMES.clone()), vec(select(&ATTRIBUTES[..]), 0..4), end).prop_map(|(name, attributes, end)| {
        let attributes: Vec<String> = attributes.iter().map(|attribute| format!(" {attribute}")).collect();
        format!("<{name}{}{end}", attributes.concat())
    })
}

fn html() -> impl Strategy<Value = String> {
    let end = (select(NAMES.clone()), select(vec![">", ">", ">", " x='>'>", ""]));
    let piece = prop_oneof![
        6 => tag(),
        4 => end.prop_map(|(name, end)| format!("</{name}{end}")),
        3 => "[a-z <>&;\n]{0,12}",
        2 => select(&BITS[..]).prop_map(str::to_owned),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// A page as people write them.
const WHOLE: &str = include_str!("tests/page.html");

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Both make the same of any page.
    #[test]
    fn any_page_is_read_as_by_another_parser(html in html()) {
        prop_assume!(!is_theirs_alone(&html));
        prop_assert_eq!(ours(&html), theirs(&html));
    }

    /// And of a good page that was cut, swapped and overwritten.
    #[test]
    fn a_damaged_page_is_read_as_by_another_parser(
        damages in vec((0..WHOLE.len(), 0..WHOLE.len(), select(&BITS[..])), 0..6),
    ) {
        let mut html = WHOLE.to_owned();
        for (from, to, bit) in damages {
            let at = |place: usize| html.floor_char_boundary(place % html.len().max(1));
            let (from, to) = (at(from).min(at(to)), at(from).max(at(to)).min(at(from) + 40));
            let to = html.floor_char_boundary(to.max(from));
            html.replace_range(from..to, bit);
        }
        prop_assume!(!is_theirs_alone(&html));
        prop_assert_eq!(ours(&html), theirs(&html));
    }
}
