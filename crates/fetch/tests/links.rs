//! The links of pages, well-formed and not.

use forager_core::url::FetchUrl;
use forager_fetch::links::{Kind, LeftOut, LinkOptions, MAX_UNUSABLE, PageLinks, Rel, RobotsMeta, extract};
use proptest::prelude::*;

fn page() -> FetchUrl {
    FetchUrl::parse("https://example.org/dir/page?q=1").expect("a URL")
}

fn links(html: &str) -> PageLinks {
    extract(html, &page(), &LinkOptions::default())
}

fn urls(html: &str) -> Vec<String> {
    links(html).links.iter().map(|link| link.url.as_str().to_owned()).collect()
}

#[test]
fn where_links_lead() {
    let cases: [(&str, &str, &[&str]); 29] = [
        ("nothing", "", &[]),
        ("absolute", "<a href='https://other.example/x'>", &["https://other.example/x"]),
        ("relative", "<a href=x>", &["https://example.org/dir/x"]),
        ("from the root", "<a href=/x>", &["https://example.org/x"]),
        ("query only", "<a href='?a=b'>", &["https://example.org/dir/page?a=b"]),
        ("without scheme", "<a href='//other.example'>", &["https://other.example/"]),
        ("white space about it", "<a href=' \n x\t '>", &["https://example.org/dir/x"]),
        ("line break within", "<a href='/a\nb'>", &["https://example.org/ab"]),
        ("fragment dropped", "<a href='x#y'>", &["https://example.org/dir/x"]),
        ("empty is the page itself", "<a href=''>", &["https://example.org/dir/page?q=1"]),
        ("any case", "<A HREF=x></A>", &["https://example.org/dir/x"]),
        ("reference in an attribute", "<a href='/?a=1&amp;b=2'>", &["https://example.org/?a=1&b=2"]),
        ("no reference without its sign", "<a href='/?a=1&copy=2'>", &["https://example.org/?a=1&copy=2"]),
        ("number as a reference", "<a href='/&#x61;&#98;'>", &["https://example.org/ab"]),
        ("area", "<map><area href=x alt=Here></map>", &["https://example.org/dir/x"]),
        (
            "iframe and frame",
            "<iframe src=x></iframe><frame src=y>",
            &["https://example.org/dir/x", "https://example.org/dir/y"],
        ),
        ("refresh", "<meta http-equiv=Refresh content='0; url=/x'>", &["https://example.org/x"]),
        ("in a comment", "<!-- <a href=x> -->", &[]),
        ("in a script", "<script>'<a href=x>'</script>", &[]),
        ("in a style", "<style><a href=x></style>", &[]),
        ("in noscript", "<noscript><a href=x>y</a></noscript>", &[]),
        ("in a template", "<template><a href=x>y</a><iframe src=z></template>", &[]),
        ("after a template", "<template><p></template><a href=x>", &["https://example.org/dir/x"]),
        ("in a text area", "<textarea><a href=x></textarea>", &[]),
        (
            "in a table that is broken",
            "<table><a href=x><tr></a><td><a href=y>",
            &["https://example.org/dir/x", "https://example.org/dir/y"],
        ),
        ("a tag that never ends", "<a href=x>ok</a><a href=y", &["https://example.org/dir/x"]),
        ("quotes that never end", "<a href=x>ok</a><a href=\"y>", &["https://example.org/dir/x"]),
        ("twice the attribute", "<a href=x href=y>", &["https://example.org/dir/x"]),
        ("no href", "<a name=x>", &[]),
    ];
    for (name, html, want) in cases {
        assert_eq!(urls(html), want, "{name}");
    }
}

#[test]
fn a_base_counts_once_and_for_all() {
    let cases = [
        ("after it", "<base href='/b/'><a href=x>", "https://example.org/b/x"),
        ("before it", "<a href=x></a><base href='/b/'>", "https://example.org/b/x"),
        ("another host", "<base href='http://b.example/c/'><a href=x>", "http://b.example/c/x"),
        ("the first of two", "<base href='/b/'><base href='/c/'><a href=x>", "https://example.org/b/x"),
        ("one without address", "<base target=_top><base href='/c/'><a href=x>", "https://example.org/c/x"),
        ("not of the web", "<base href='data:,x'><a href=x>", "https://example.org/dir/x"),
        ("a script", "<base href='javascript:x'><base href='/c/'><a href=x>", "https://example.org/dir/x"),
        ("not parseable", "<base href='http://['><a href=x>", "https://example.org/dir/x"),
        ("in a template", "<template><base href='/b/'></template><a href=x>", "https://example.org/dir/x"),
    ];
    for (name, html, want) in cases {
        assert_eq!(urls(html), [want], "{name}");
    }
}

#[test]
fn what_is_written_on_a_link() {
    let cases = [
        ("plain", "<a href=x>News</a>", "News"),
        ("white space", "<a href=x>\n  Our \t news\n</a>", "Our news"),
        ("elements within", "<a href=x>Our <b>ne</b>ws</a>", "Our news"),
        ("blocks stand apart", "<a href=x><div>Our</div><p>news</p>now</a>", "Our news now"),
        ("a line break", "<a href=x>Our<br>news</a>", "Our news"),
        ("a picture", "<a href=x><img src=y alt='Our news'></a>", "Our news"),
        ("text and picture", "<a href=x>See<img alt='our &amp; their'>news</a>", "See our & their news"),
        ("a picture without words", "<a href=x><img src=y></a>", ""),
        ("references", "<a href=x>R&amp;D &lt;b&gt; caf&eacute; &#8364;</a>", "R&D <b> café €"),
        ("a reference without its end", "<a href=x>R&amp D</a>", "R& D"),
        ("a comment within", "<a href=x>a<!-- no -->b</a>", "ab"),
        ("a script within", "<a href=x>a<script>no</script>b</a>", "a b"),
        ("a style within", "<a href=x>a<style>no</style>b</a>", "a b"),
        ("text after it", "<a href=x>a</a> b", "a"),
        ("ended by the next", "<a href=x>a<a name=y>b</a>", "a"),
        ("ended by an outer end", "<div><a href=x>a</div>b", "a"),
        ("never ended", "<a href=x>a", "a"),
    ];
    for (name, html, want) in cases {
        let found = links(html).links;
        assert_eq!(found.iter().map(|link| &*link.text).collect::<Vec<_>>(), [want], "{name}");
    }
    let two = links("<a href=x>a<a href=y>b</a>c").links;
    assert_eq!(two.iter().map(|link| &*link.text).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn titles_and_relations_of_links() {
    let html = "<a href=1 title=' Our\n &quot;news&quot; ' rel='noopener NoFollow ugc'>x</a>
        <a href=2 rel=sponsored></a><area href=3 alt='Left  half'>";
    let found = links(html).links;
    assert_eq!(found[0].title, "Our \"news\"");
    assert_eq!(found[0].rel, Rel { nofollow: true, ugc: true, sponsored: false });
    assert_eq!(found[1].rel, Rel { sponsored: true, ..Rel::default() });
    assert_eq!((found[2].kind, &*found[2].text, found[2].rel), (Kind::Area, "Left half", Rel::default()));
}

#[test]
fn links_in_the_header_and_navigation() {
    let cases = [
        ("nowhere", "<p><a href=x>", false),
        ("header", "<header><div><a href=x>", true),
        ("nav", "<nav><ul><li><a href=x>", true),
        ("nav in the middle of the page", "<main><article><nav><a href=x>", true),
        ("after the header", "<header></header><a href=x>", false),
        ("after the navigation", "<nav><ul><li></ul></nav><a href=x>", false),
        ("nested", "<header><nav></nav><a href=x></header>", true),
        ("after nested ones", "<header><nav></nav></header><a href=x>", false),
        ("header of an article", "<article><header><a href=x>", false),
        ("header of the main part", "<main><header><a href=x>", false),
        ("header of a section", "<section><header><a href=x>", false),
        ("section in the page's header", "<header><section><header></header><a href=x>", true),
        ("header after an article", "<article></article><header><a href=x>", true),
        ("footer", "<footer><a href=x>", false),
        ("role", "<div role=navigation><a href=x>", true),
        ("role in any case", "<DIV ROLE='BANNER'><a href=x>", true),
        ("one of several roles", "<div role='menu navigation'><a href=x>", true),
        ("another role", "<div role=main><a href=x>", false),
        ("after a role", "<div role=navigation><div></div></div><a href=x>", false),
        ("both name and role", "<header role=banner></header><a href=x>", false),
        ("closed by the end around it", "<div><header><a href=y></div><a href=x>", false),
        ("in any case", "<HEADER><a href=x>", true),
        ("a name that begins alike", "<header-x><a href=x>", false),
    ];
    for (name, html, want) in cases {
        let found = links(html).links;
        let link = found.iter().find(|link| link.url.path() == "/dir/x").unwrap();
        assert_eq!(link.in_header, want, "{name}");
    }
}

#[test]
fn what_a_page_says_of_itself() {
    let html = "<!doctype html><html lang=' hr '><head><title>\n Narodne &amp; \n novine </title>
        <link rel='Canonical' href='/official?id=1&amp;x'><link rel=canonical href='/second'>
        <link rel='alternate' hreflang=en href='/en'>
        <link rel='alternate' type='application/rss+xml' href='/feed'>
        <link rel='alternate' type='application/atom+xml; charset=utf-8' href='/atom'>
        <link rel='alternate stylesheet' href='/css'><link rel=stylesheet href='/css2'>
        <link rel=alternate media=print href='/print'>
        <meta name=Robots content='noindex, follow'><meta name=FORAGER content=nofollow>
        <meta name=googlebot content=none><meta name=description content=x>
        <svg><title>not this</title></svg><title>nor this</title>";
    let found = links(html);
    assert_eq!(found.title.as_deref(), Some("Narodne & novine"));
    assert_eq!(found.lang.as_deref(), Some("hr"));
    assert_eq!(found.canonical.unwrap().as_str(), "https://example.org/official?id=1&x");
    let meta = |agent: &str, content: &str| RobotsMeta { agent: agent.into(), content: content.into() };
    assert_eq!(found.robots_meta, [meta("robots", "noindex, follow"), meta("forager", "nofollow")]);
    let kinds: Vec<_> = found.links.iter().map(|link| (link.kind, link.url.path())).collect();
    let want = [
        (Kind::Canonical, "/official"),
        (Kind::Canonical, "/second"),
        (Kind::Alternate, "/en"),
        (Kind::Feed, "/feed"),
        (Kind::Feed, "/atom"),
    ];
    assert_eq!(kinds, want);
}

#[test]
fn the_title_of_a_drawing_is_none() {
    assert_eq!(links("<svg><title>icon</title></svg>").title, None);
    assert_eq!(links("<svg><title>icon</title></svg><title>Page</title>").title.as_deref(), Some("Page"));
    assert_eq!(links("<title></title>").title, None);
}

#[test]
fn what_is_left_out_is_counted() {
    let html = "<a href='#'></a><a href=' #top'></a><a href='mailto:a@b.example'></a>
        <a href='javascript:void(0)'></a><a href='JavaScript:x'></a><a href='data:text/html,x'></a>
        <a href='tel:112'></a><a href='http://['></a><a href='ftp://b.example/'></a><a href=ok></a>";
    let found = links(html);
    assert_eq!(found.links.len(), 1);
    assert_eq!(found.left_out, LeftOut { fragments: 2, other_schemes: 6, invalid: 1, ..LeftOut::default() });
}

#[test]
fn what_cannot_be_followed_is_told_with_its_reason() {
    let long = format!("/{}", "x".repeat(9000));
    let html = format!(
        "<a href='#'></a><a href='mailto:a@b.example'></a><a href='JavaScript:void(0)'></a><a href='data:text/html,x'></a>
        <a href='made-up:x'></a><a href='http://['></a><a href='http://a:99999/'></a><a href='https://'></a>
        <a href='https://a b/'></a><iframe src='about:blank'></iframe><a href='{long}'></a><a href=ok></a>"
    );
    let told: Vec<(String, String)> =
        links(&html).unusable.into_iter().map(|one| (one.href, one.why.to_string())).collect();
    let want = [
        ("mailto:a@b.example", "neither http nor https: mailto"),
        ("JavaScript:void(0)", "neither http nor https: javascript"),
        ("data:text/html,x", "neither http nor https: data"),
        ("made-up:x", "neither http nor https: another scheme"),
        ("http://[", "malformed: wrong address"),
        ("http://a:99999/", "malformed: wrong port"),
        ("https://", "malformed: no host"),
        ("https://a b/", "malformed: wrong host name"),
        ("about:blank", "neither http nor https: about"),
    ];
    let mut want: Vec<_> = want.map(|(href, why)| (href.to_owned(), why.to_owned())).to_vec();
    // It is seen to be too long before the base is known.
    want.insert(0, (long[..300].to_owned(), "too long".to_owned()));
    assert_eq!(told, want);
    let many = links(&"<a href='mailto:x'></a>".repeat(MAX_UNUSABLE + 5));
    assert_eq!((many.unusable.len(), many.left_out.other_schemes), (MAX_UNUSABLE, MAX_UNUSABLE + 5));
}

#[test]
fn everything_is_bounded() {
    let options =
        LinkOptions { max_links: 3, max_url_bytes: 40, max_text_bytes: 8, ..LinkOptions::default() };
    let html = format!(
        "<title>{0}</title><a href=/1 title='{0}'>{0}</a><a href='/{0}'>long</a><a href=/2></a><a href=/3></a><a href=/4></a>",
        "word ".repeat(20),
    );
    let found = extract(&html, &page(), &options);
    let first = &found.links[0];
    assert_eq!(
        (&*first.text, &*first.title, found.title.as_deref()),
        ("word wor", "word wor", Some("word wor"))
    );
    assert_eq!(found.links.iter().map(|link| link.url.path()).collect::<Vec<_>>(), ["/1", "/2", "/3"]);
    assert_eq!((found.left_out.too_long, found.left_out.too_many), (1, 1));

    let total = LinkOptions { max_total_bytes: 50, ..LinkOptions::default() };
    let found = extract("<a href=/1></a><a href=/2></a><a href=/3></a>", &page(), &total);
    assert_eq!((found.links.len(), found.left_out.too_many), (2, 1), "a URL is 21 bytes long");
}

#[test]
fn where_the_parser_gives_up_what_was_found_stands() {
    let deep = format!("<a href=x>ok</a>{}<a href=y>deep</a>", "<div>".repeat(200_000));
    let found = links(&deep);
    assert!(!found.complete);
    assert_eq!(found.links[0].url.path(), "/dir/x");

    let long_tag = format!("<a href=x>ok</a><a title='{}", "x".repeat(4_000_000));
    let found = links(&long_tag);
    assert_eq!((found.links.len(), found.complete), (1, false));

    assert!(links("<a href=x>ok</a>").complete);
}

#[test]
fn many_stray_ends_and_levels_take_no_longer_than_they_should() {
    // Work that grows with the square of the page would not end in our time.
    let stray = format!("{}{}", "<b>".repeat(5_000), "</i>".repeat(500_000));
    assert!(links(&stray).complete);
    let nested = "<a href=x><b>".repeat(4_000);
    assert_eq!(links(&nested).links.len(), 4_000);
}

fn markup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<a href=/x>".to_owned()),
        Just("</a>".to_owned()),
        Just("<base href='//b.example/'>".to_owned()),
        Just("<header><nav>".to_owned()),
        Just("</header>".to_owned()),
        Just("<template>".to_owned()),
        Just("<!--".to_owned()),
        Just("-->".to_owned()),
        Just("<script>".to_owned()),
        Just("<svg><title>".to_owned()),
        Just("<img alt='&amp".to_owned()),
        Just("<meta http-equiv=refresh content='0;u".to_owned()),
        "\\PC{0,12}",
        "[<>&'\"=/! a-z]{0,12}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Whatever the page: no panic, and every link can be fetched and keeps its bounds.
    #[test]
    fn any_page_gives_links_that_can_be_fetched(html in markup()) {
        let options = LinkOptions { max_links: 10, max_text_bytes: 20, ..LinkOptions::default() };
        let found = extract(&html, &page(), &options);
        prop_assert!(found.links.len() <= 10);
        for link in &found.links {
            prop_assert_eq!(&FetchUrl::parse(link.url.as_str()).unwrap(), &link.url);
            prop_assert!(link.text.len() <= 20 && link.text.trim() == link.text && !link.text.contains("  "));
        }
    }

    /// Text between and around links never adds or takes one.
    #[test]
    fn plain_text_changes_no_link(words in "[a-z .,]{0,40}", more in "[a-z .,]{0,40}") {
        let bare = urls("<a href=1></a><a href=2></a>");
        let with_text = urls(&format!("{words}<a href=1>{more}</a>{more}<a href=2>{words}</a>{words}"));
        prop_assert_eq!(bare, with_text);
    }
}

#[test]
fn texts_are_left_out_where_nobody_wants_them() {
    let html =
        "<title>T</title><a href=a title=x>To <b>A</b></a><map><area href=b alt=B></map><a href=c>C</a>";
    let page = FetchUrl::parse("https://example.org/").unwrap();
    let read = |texts| extract(html, &page, &LinkOptions { texts, ..LinkOptions::default() });
    let (with, mut without) = (read(true), read(false));
    assert!(without.links.iter().all(|link| link.text.is_empty() && link.title.is_empty()));
    for (without, with) in without.links.iter_mut().zip(&with.links) {
        (without.text, without.title) = (with.text.clone(), with.title.clone());
    }
    assert_eq!(without, with, "nothing else differs");
}
