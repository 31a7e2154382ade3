//! Sitemaps and feeds, whole and broken, and what they may list.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use forager_core::url::FetchUrl;
use forager_fetch::sitemap::{
    Item, Kind, MAX_BYTES, MAX_ITEMS, MAX_PROBLEMS, MAX_URL_CHARS, Position, Sitemap, Trouble, may_list, read,
};
use proptest::prelude::*;

fn base() -> FetchUrl {
    FetchUrl::parse("https://example.org/maps/sitemap.xml").unwrap()
}

fn read_bytes(body: &[u8]) -> Sitemap {
    read(body, &base(), None)
}

fn read_text(body: &str) -> Sitemap {
    read_bytes(body.as_bytes())
}

/// Items as `path` or `path@time`; those of other hosts with their whole URL.
fn shown(items: &[Item]) -> Vec<String> {
    let one = |item: &Item| {
        let url = item.url.as_str();
        let mut text = url.strip_prefix("https://example.org").unwrap_or(url).to_owned();
        if let Some(time) = item.last_modified {
            write!(text, "@{time}").unwrap();
        }
        text
    };
    items.iter().map(one).collect()
}

fn problems(sitemap: &Sitemap) -> Vec<String> {
    sitemap.problems.iter().map(ToString::to_string).collect()
}

/// A name, a file, the pages in it, and the start of each problem.
type Case<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str]);

fn check(kind: Kind, cases: &[Case<'_>]) {
    for &(name, body, urls, want) in cases {
        let sitemap = read_text(body);
        assert_eq!(sitemap.kind, kind, "{name}");
        assert_eq!(shown(&sitemap.urls), urls, "{name}");
        let found = problems(&sitemap);
        let is_same =
            found.len() == want.len() && found.iter().zip(want).all(|(one, want)| one.starts_with(want));
        assert!(is_same, "{name}: {found:#?}");
    }
}

/// The same for what stands inside a `urlset`.
fn check_urls(cases: &[Case<'_>]) {
    for &(name, inner, urls, want) in cases {
        let body = format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{inner}</urlset>");
        check(Kind::UrlSet, &[(name, &body, urls, want)]);
    }
}

const LOC: &str = "<loc>https://example.org/a</loc>";

#[test]
fn pages() {
    let all = "<url><loc>https://example.org/a</loc><lastmod>2026-02-01</lastmod>\
               <changefreq>daily</changefreq><priority>0.8</priority></url>";
    check_urls(&[
        ("none", "", &[], &[]),
        ("all that an entry may have", all, &["/a@2026-02-01T00:00:00Z"], &[]),
        ("two", &format!("<url>{LOC}</url><url>{LOC}</url>"), &["/a", "/a"], &[]),
        ("spaces and lines", "<url>\n <loc>\n https://example.org/a \n</loc>\n</url>", &["/a"], &[]),
        (
            "the date first",
            &format!("<url><lastmod>2026</lastmod>{LOC}</url>"),
            &["/a@2026-01-01T00:00:00Z"],
            &[],
        ),
        ("an empty date", &format!("<url>{LOC}<lastmod/></url>"), &["/a"], &[]),
        ("names in capitals", "<URL><Loc>https://example.org/a</Loc></URL>", &["/a"], &[]),
        ("another host", "<url><loc>http://other.example/</loc></url>", &["http://other.example/"], &[]),
        ("relative", "<url><loc>../a</loc></url><url><loc>/b</loc></url>", &["/a", "/b"], &[]),
        ("two in one entry", &format!("<url>{LOC}<loc>/b</loc></url>"), &["/a"], &[]),
        ("a comment in it", "<url><loc>/a<!-- b -->c</loc></url>", &["/ac"], &[]),
        ("an instruction in it", "<url><loc>/a<?x y?>c</loc></url>", &["/ac"], &[]),
        ("an element in it", "<url><loc>/a<b>x</b></loc></url>", &["/a"], &[]),
        ("beyond ASCII", "<url><loc>/ü</loc></url>", &["/%C3%BC"], &[]),
    ]);
}

#[test]
fn what_the_protocol_does_not_allow_is_taken_and_told() {
    let body = "<urlset>\n<url><loc>/a</loc></url>\n<url><loc>https://b.example/c</loc></url>\n\
                <url><loc>https://example.org/d</loc></url></urlset>";
    let sitemap = read_text(body);
    assert_eq!(shown(&sitemap.urls), ["/a", "https://b.example/c", "/d"]);
    let told = |sitemap: &Sitemap| sitemap.remarks.iter().map(ToString::to_string).collect::<Vec<_>>();
    let elsewhere = "https://b.example/c is of another site, for which a sitemap speaks only if the robots.txt there names it";
    let want = [
        "line 2, column 1: \"/a\" is relative, and taken for https://example.org/a".to_owned(),
        format!("line 3, column 1: {elsewhere}"),
    ];
    assert_eq!(told(&sitemap), want);
    assert_eq!(sitemap.problems, []);
    let index = read_text("<sitemapindex><sitemap><loc>https://b.example/c</loc></sitemap></sitemapindex>");
    assert_eq!(told(&index), [format!("line 1, column 15: {elsewhere}")]);
    assert_eq!(told(&read_text("https://b.example/c\n")), [format!("line 1, column 1: {elsewhere}")]);
    let items = "<item><link>/a</link></item><item><link>https://b.example/c</link></item>";
    let feed = read_text(&format!("<rss><channel>{items}</channel></rss>"));
    assert_eq!((feed.urls.len(), told(&feed)), (2, vec![]), "a feed may have both");
    let many =
        read_text(&format!("<urlset>{}</urlset>", "<url><loc>/a</loc></url>".repeat(MAX_PROBLEMS + 3)));
    assert_eq!((many.remarks.len(), many.further_remarks), (MAX_PROBLEMS, 3));
}

#[test]
fn entities_and_cdata() {
    let unknown = "line 1, column 73: unknown entity \"nbsp\"";
    check_urls(&[
        ("an ampersand", "<url><loc>/?a=1&amp;b=2</loc></url>", &["/?a=1&b=2"], &[]),
        ("all five", "<url><loc>/?&amp;&apos;&quot;&lt;&gt;</loc></url>", &["/?&%27%22%3C%3E"], &[]),
        ("by number", "<url><loc>/&#97;&#x62;&#xfc;</loc></url>", &["/ab%C3%BC"], &[]),
        ("an ampersand as it is", "<url><loc>/?a=1&b=2&c</loc></url>", &["/?a=1&b=2&c"], &[]),
        ("CDATA", "<url><loc><![CDATA[/?a=1&b=2]]></loc></url>", &["/?a=1&b=2"], &[]),
        ("CDATA in pieces", "<url><loc>/a<![CDATA[?b]]>&amp;<![CDATA[c]]></loc></url>", &["/a?b&c"], &[]),
        ("an unknown one", "<url><loc>/a&nbsp;b</loc></url>", &["/a&nbsp;b"], &[unknown]),
        (
            "a character that is none, and so a fragment",
            "<url><loc>/a&#0;b</loc></url>",
            &["/a&"],
            &["line 1, column 73: unk"],
        ),
    ]);
}

#[test]
fn entities_of_a_document_are_not_expanded() {
    let bomb = "<?xml version=\"1.0\"?><!DOCTYPE urlset [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">\
                <!ENTITY file SYSTEM \"file:///etc/passwd\">]>\
                <urlset><url><loc>/&b;</loc></url><url><loc>/&file;</loc></url></urlset>";
    check(
        Kind::UrlSet,
        &[(
            "left as they are",
            bomb,
            &["/&b;", "/&file;"],
            &["line 1, column 153: unknown", "line 1, column 179: unknown"],
        )],
    );
}

#[test]
fn namespaces() {
    let prefixed = "<s:urlset xmlns:s=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
                    <s:url><s:loc>/a</s:loc><s:lastmod>2026</s:lastmod></s:url></s:urlset>";
    let images = "<urlset><url><loc>/a</loc><image:image><image:loc>/a.png</image:loc></image:image>\
                  <image:loc>/b.png</image:loc></url></urlset>";
    let image_first = "<urlset><url><image:loc>/a.png</image:loc><loc>/a</loc></url></urlset>";
    let news = "<urlset><url><loc>/a</loc><news:news><news:publication><news:name>N</news:name>\
                </news:publication><news:publication_date>2020</news:publication_date></news:news></url></urlset>";
    let video = "<urlset><url><loc>/a</loc><video:video><video:player_loc>/p</video:player_loc>\
                 <video:url><video:loc>/v</video:loc></video:url></video:video></url></urlset>";
    let languages = "<urlset><url><loc>/a</loc><xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"/de\"/>\
                     </url></urlset>";
    check(
        Kind::UrlSet,
        &[
            ("a prefix", prefixed, &["/a@2026-01-01T00:00:00Z"], &[]),
            ("none at all", "<urlset><url><loc>/a</loc></url></urlset>", &["/a"], &[]),
            ("the wrong one", "<urlset xmlns=\"x:y\"><url><loc>/a</loc></url></urlset>", &["/a"], &[]),
            ("images", images, &["/a"], &[]),
            ("an image first", image_first, &["/a"], &[]),
            ("news", news, &["/a"], &[]),
            ("videos", video, &["/a"], &[]),
            ("other languages", languages, &["/a"], &[]),
        ],
    );
}

#[test]
fn prologues() {
    let urls = format!("<urlset><url>{LOC}</url></urlset>");
    let cases = [
        ("a declaration", format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{urls}")),
        ("a byte-order mark", format!("\u{feff}<?xml version=\"1.0\"?>{urls}")),
        ("lines in front", format!("\r\n\n  <?xml version=\"1.0\"?>{urls}")),
        ("a mark and lines", format!("\u{feff}\n{urls}")),
        ("a style sheet", format!("<?xml-stylesheet href=\"a.xsl\"?>{urls}")),
        ("a comment", format!("<!-- made by hand -->{urls}<!-- end -->\n")),
        ("a document type", format!("<!DOCTYPE urlset SYSTEM \"x.dtd\">{urls}")),
    ];
    for (name, body) in cases {
        check(Kind::UrlSet, &[(name, &body, &["/a"], &[])]);
    }
}

#[test]
fn indexes() {
    let two = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
               <sitemap><loc>https://example.org/1.xml.gz</loc><lastmod>2004-10-01T18:23:17+00:00</lastmod></sitemap>\
               <sitemap><loc>/2.xml</loc></sitemap></sitemapindex>";
    let sitemap = read_text(two);
    assert_eq!((sitemap.kind, sitemap.urls.len(), sitemap.problems.len()), (Kind::Index, 0, 0));
    assert_eq!(shown(&sitemap.sitemaps), ["/1.xml.gz@2004-10-01T18:23:17Z", "/2.xml"]);
    let mixed = read_text("<urlset><sitemap><loc>/1.xml</loc></sitemap><url><loc>/a</loc></url></urlset>");
    assert_eq!((shown(&mixed.sitemaps), shown(&mixed.urls)), (vec!["/1.xml".into()], vec!["/a".into()]));
}

#[test]
fn broken_files_give_what_stands_before_the_fault() {
    let good = format!("<url>{LOC}</url>");
    let cases: [(&str, String, &[&str], &str); 10] = [
        ("cut between entries", format!("<urlset>{good}"), &["/a"], "line 1, column 52: ends in the middle"),
        (
            "cut in a URL",
            format!("<urlset>{good}<url><loc>/b"),
            &["/a"],
            "line 1, column 64: ends in the middle",
        ),
        (
            "cut behind a URL",
            format!("<urlset>{good}<url><loc>/b</loc>"),
            &["/a", "/b"],
            "line 1, column 70: ends",
        ),
        ("cut in a date", format!("<urlset><url>{LOC}<lastmod>20"), &["/a"], "line 1, column 57: ends in"),
        ("cut in a tag", format!("<urlset>{good}\n<ur"), &["/a"], "line 2, column 1: is broken"),
        ("cut in a comment", format!("<urlset>{good}<!-- "), &["/a"], "line 1, column 52: is broken"),
        (
            "a wrong end",
            format!("<urlset>{good}<url></wrong>{good}"),
            &["/a"],
            "line 1, column 57: is broken",
        ),
        (
            "an end too many",
            format!("<urlset>{good}</urlset></urlset>"),
            &["/a"],
            "line 1, column 61: is broken",
        ),
        ("too deep", format!("<urlset>{good}{}", "<x>".repeat(99)), &["/a"], "line 1, column 241: is broken"),
        ("no root", "<!-- a -->".into(), &[], "is no sitemap: it has no root"),
    ];
    for (name, body, urls, problem) in cases {
        let sitemap = read_text(&body);
        assert_eq!(shown(&sitemap.urls), urls, "{name}");
        let found = problems(&sitemap);
        assert!(found.len() == 1 && found[0].starts_with(problem), "{name}: {found:?}");
    }
}

#[test]
fn one_bad_entry_costs_only_itself() {
    let after = format!("<url>{LOC}</url>");
    let cases = [
        ("no URL", "<url><lastmod>2026</lastmod></url>", "line 2, column 2: entry without a URL"),
        ("an empty URL", "<url><loc> </loc></url>", "line 2, column 2: entry without a URL"),
        (
            "another scheme",
            "<url><loc>mailto:a@b</loc></url>",
            "line 2, column 2: \"mailto:a@b\" is not an http",
        ),
        ("no host", "<url><loc>http://</loc></url>", "line 2, column 2: \"http://\" is not an absolute URL"),
    ];
    for (name, entry, problem) in cases {
        check(Kind::UrlSet, &[(name, &format!("<urlset>\n {entry}\n{after}</urlset>"), &["/a"], &[problem])]);
    }
    let date = "<urlset><url><loc>/a</loc><lastmod>yesterday</lastmod></url></urlset>";
    check(Kind::UrlSet, &[("a bad date", date, &["/a"], &["line 1, column 9: \"yesterday\" is no date"])]);
}

#[test]
fn text_files() {
    let mail = "line 2, column 1: \"mailto:a@b\" is not";
    check(
        Kind::Text,
        &[
            ("one", "https://example.org/a", &["/a"], &[]),
            ("several", "https://example.org/a\nhttps://example.org/b\n", &["/a", "/b"], &[]),
            ("CRLF", "https://example.org/a\r\nhttps://example.org/b\r\n", &["/a", "/b"], &[]),
            ("CR", "https://example.org/a\rhttps://example.org/b\r", &["/a", "/b"], &[]),
            ("a byte-order mark", "\u{feff}https://example.org/a\n", &["/a"], &[]),
            ("spaces and empty lines", "\n\n  https://example.org/a \t\n\n", &["/a"], &[]),
            ("beyond ASCII", "https://example.org/ü\n", &["/%C3%BC"], &[]),
            ("no escapes", "https://example.org/?a=1&amp;b\n", &["/?a=1&amp;b"], &[]),
            (
                "a line that is none",
                "https://example.org/a\nmailto:a@b\nhttps://example.org/b",
                &["/a", "/b"],
                &[mail],
            ),
            ("a relative line is none", "https://example.org/a\n/b", &["/a"], &["line 2, column 1: \"/b\""]),
        ],
    );
}

#[test]
fn rss() {
    let item = "<rss version=\"2.0\"><channel><title>T</title><link>https://example.org/</link>\
                <atom:link href=\"https://example.org/feed\" rel=\"self\"/><item><title>A</title>\
                <link>https://example.org/a</link><pubDate>Wed, 02 Oct 2002 13:00:00 GMT</pubDate></item>\
                </channel></rss>";
    let guid = "<rss><channel><item><guid>https://example.org/a</guid></item></channel></rss>";
    let no_link = "<rss><channel><item><guid isPermaLink=\"false\">42</guid></item></channel></rss>";
    let both =
        "<rss><channel><item><guid isPermaLink=\"true\">/g</guid><link>/a</link></item></channel></rss>";
    let old = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><channel><link>/</link></channel>\
               <item rdf:about=\"/a\"><link>/a</link><dc:date>2002-10-02</dc:date></item></rdf:RDF>";
    let nested = "<rss><channel><item><link>/a</link><media:content url=\"/v\"><link>/x</link></media:content>\
                  <source url=\"/s\">S</source></item></channel></rss>";
    check(
        Kind::Rss,
        &[
            ("an item", item, &["/a@2002-10-02T13:00:00Z"], &[]),
            ("only a permanent name", guid, &["/a"], &[]),
            ("a name that is no URL", no_link, &[], &["line 1, column 15: entry without a URL"]),
            ("a link goes before a name", both, &["/a"], &[]),
            ("version 1.0", old, &["/a@2002-10-02T00:00:00Z"], &[]),
            (
                "CDATA",
                "<rss><channel><item><link><![CDATA[/a?b&c]]></link></item></channel></rss>",
                &["/a?b&c"],
                &[],
            ),
            ("extensions", nested, &["/a"], &[]),
        ],
    );
}

#[test]
fn atom() {
    let feed = |inner: &str| {
        let head = "<link rel=\"self\" href=\"/feed\"/><updated>2001-01-01T00:00:00Z</updated>";
        format!("<feed xmlns=\"http://www.w3.org/2005/Atom\">{head}<entry>{inner}</entry></feed>")
    };
    let cases = [
        ("a link", "<link href=\"/a\"/>", "/a"),
        ("a link with an end", "<link href='/a'></link>", "/a"),
        ("the page itself", "<link rel=\"edit\" href=\"/e\"/><link rel=\"alternate\" href=\"/a\"/>", "/a"),
        ("the first of several", "<link href=\"/a\"/><link rel=\"alternate\" href=\"/b\"/>", "/a"),
        ("escaped", "<link href=\"/?a&amp;b&#99;\"/>", "/?a&bc"),
        ("an ampersand as it is", "<link href=\"/?a&b\"/>", "/?a&b"),
        (
            "when updated",
            "<link href=\"/a\"/><published>2002-01-01T00:00:00Z</published>\
          <updated>2003-12-13T18:30:02Z</updated>",
            "/a@2003-12-13T18:30:02Z",
        ),
        (
            "when published",
            "<link href=\"/a\"/><published>2003-12-13T18:30:02+01:00</published>",
            "/a@2003-12-13T17:30:02Z",
        ),
    ];
    for (name, inner, want) in cases {
        check(Kind::Atom, &[(name, &feed(inner), &[want], &[])]);
    }
    let sitemap = read_text(&feed("<link rel=\"replies\" href=\"/c\"/>"));
    assert_eq!(sitemap.problems[0].what, Trouble::NoUrl, "comments are not the page");
}

#[test]
fn what_is_no_sitemap() {
    let cases = [
        ("nothing", "", "is no sitemap: no URL in \"\""),
        ("words", "Not found", "line 1, column 1: \"Not found\" is not an absolute URL"),
        ("a page", "<!DOCTYPE html><html><body>", "line 1, column 16: is no sitemap: its root is \"html\""),
        ("a prefixed root", "<a:b/>", "line 1, column 1: is no sitemap: its root is \"a:b\""),
        ("a tag that does not end", "<", "line 1, column 1: is broken"),
    ];
    for (name, body, problem) in cases {
        let sitemap = read_text(body);
        assert_eq!((sitemap.kind, sitemap.urls.len()), (Kind::Unknown, 0), "{name}");
        assert!(problems(&sitemap)[0].starts_with(problem), "{name}: {:?}", problems(&sitemap));
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_known_by_its_first_bytes() {
    let plain = format!("<urlset><url>{LOC}</url></urlset>");
    let packed = gzip(plain.as_bytes());
    let parts = [gzip(&plain.as_bytes()[..20]), gzip(&plain.as_bytes()[20..])].concat();
    let text = gzip(b"https://example.org/a\n");
    for (name, body) in [("whole", &packed), ("in parts", &parts), ("text", &text)] {
        let sitemap = read_bytes(body);
        assert_eq!((shown(&sitemap.urls), sitemap.problems), (vec!["/a".to_owned()], vec![]), "{name}");
    }
}

/// One entry for each path.
fn entries(paths: impl Iterator<Item = String>) -> String {
    paths.map(|path| format!("<url><loc>/{path}</loc></url>")).collect::<Vec<_>>().concat()
}

#[test]
fn a_broken_gzip_gives_what_was_unpacked() {
    let entries = entries((0..20_000).map(|number| number.to_string()));
    let packed = gzip(format!("<urlset>{entries}</urlset>").as_bytes());
    let sitemap = read_bytes(&packed[..packed.len() / 2]);
    assert!(matches!(sitemap.problems[0].what, Trouble::Packing(_)) && sitemap.problems[0].at.is_none());
    assert!((1_000..20_000).contains(&sitemap.urls.len()), "{}", sitemap.urls.len());
    let lines: Vec<_> = (0..20_000).map(|number| format!("https://example.org/page-{number:05}\n")).collect();
    let packed = gzip(lines.concat().as_bytes());
    let sitemap = read_bytes(&packed[..packed.len() / 2]);
    assert!(sitemap.urls.len() > 1_000);
    assert!(
        sitemap.urls.iter().all(|item| item.url.path().len() == "/page-00000".len()),
        "half a URL is none"
    );
    assert!(
        matches!(read_bytes(&[0x1f, 0x8b, 1, 2]).problems[0].what, Trouble::Packing(_)),
        "no gzip at all"
    );
}

#[test]
fn a_bomb_is_unpacked_up_to_the_limit() {
    let mut bomb = b"<urlset><url><loc>/a</loc></url>".to_vec();
    bomb.resize(MAX_BYTES + 1, b' ');
    for (name, body) in [("packed", gzip(&bomb)), ("plain", bomb)] {
        let sitemap = read_bytes(&body);
        let what: Vec<_> = sitemap.problems.iter().map(|problem| &problem.what).collect();
        assert_eq!(what, [&Trouble::TooLong, &Trouble::EndsEarly], "{name}");
        assert_eq!(shown(&sitemap.urls), ["/a"], "{name}");
    }
}

#[test]
fn a_file_of_just_the_limit_is_whole() {
    let mut body = b"<urlset><url><loc>/a</loc></url></urlset>".to_vec();
    body.resize(MAX_BYTES, b'\n');
    assert!(read_bytes(&body).problems.is_empty());
}

#[test]
fn at_most_50_000_of_each() {
    for (name, list, entry) in [("pages", "urlset", "url"), ("sitemaps", "sitemapindex", "sitemap")] {
        for (count, is_too_many) in [(MAX_ITEMS, false), (MAX_ITEMS + 2, true)] {
            let entries = format!("<{entry}><loc>/a</loc></{entry}>").repeat(count);
            let sitemap = read_text(&format!("<{list}>{entries}</{list}>"));
            assert_eq!(sitemap.urls.len() + sitemap.sitemaps.len(), MAX_ITEMS, "{name}");
            let what: Vec<_> = sitemap.problems.into_iter().map(|problem| problem.what).collect();
            assert_eq!(what == [Trouble::TooMany], is_too_many, "{name}: {what:?}");
        }
    }
    assert_eq!(read_text(&"https://example.org/\n".repeat(MAX_ITEMS + 1)).urls.len(), MAX_ITEMS);
}

#[test]
fn urls_of_less_than_2_048_characters() {
    let start = "https://example.org/";
    for (name, character) in [("ASCII", "a"), ("beyond it", "ü")] {
        for (chars, is_kept) in [(MAX_URL_CHARS, true), (MAX_URL_CHARS + 1, false), (1_000_000, false)] {
            let url = format!("{start}{}", character.repeat(chars - start.len()));
            for body in [format!("<urlset><url><loc>{url}</loc></url></urlset>"), format!("{url}\n{start}")] {
                let sitemap = read_text(&body);
                let is_refused = sitemap.problems.iter().any(|problem| problem.what == Trouble::UrlTooLong);
                // In a text, one of more than 65,536 bytes is no URL to begin with.
                let is_bad =
                    sitemap.problems.iter().any(|problem| matches!(problem.what, Trouble::BadUrl(_)));
                assert_eq!(is_refused || is_bad, !is_kept, "{name}, {chars}");
                assert_eq!(
                    sitemap.urls.iter().any(|item| item.url.path().len() > 1),
                    is_kept,
                    "{name}, {chars}"
                );
            }
        }
    }
}

#[test]
fn spaces_in_front_of_a_url_do_not_cut_it() {
    for spaces in [16_370, 1_000_000] {
        let body = format!("<urlset><url><loc>{}/a-long-path</loc></url></urlset>", " \n".repeat(spaces / 2));
        assert_eq!(shown(&read_text(&body).urls), ["/a-long-path"], "{spaces}");
    }
}

#[test]
fn problems_are_bounded_and_counted() {
    let sitemap = read_text(&format!("<urlset>\n{}</urlset>", "<url/>\n".repeat(1_000)));
    assert_eq!((sitemap.problems.len(), sitemap.further_problems), (MAX_PROBLEMS, 1_000 - MAX_PROBLEMS));
    let lines: Vec<_> = sitemap.problems.iter().map(|problem| problem.at.unwrap()).collect();
    let want: Vec<_> = (2..).take(MAX_PROBLEMS).map(|line| Position { line, column: 1 }).collect();
    assert_eq!(lines, want);
}

#[test]
fn encodings() {
    type Case<'a> = (&'a str, &'a [u8], Option<&'a str>, &'a str, usize);
    let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>/\xFC</loc></url></urlset>";
    let undeclared = b"<urlset><url><loc>/\xFC</loc></url></urlset>";
    let utf16: Vec<u8> = "\u{feff}<urlset><url><loc>/ü</loc></url></urlset>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let utf8 = "\u{feff}<urlset><url><loc>/ü</loc></url></urlset>".as_bytes();
    let cases: [Case<'_>; 7] = [
        ("declared", latin, None, "/%C3%BC", 0),
        ("said by the server", undeclared, Some("text/xml; charset=\"iso-8859-1\""), "/%C3%BC", 0),
        ("the server goes before the file", latin, Some("text/xml;charset=windows-1251"), "/%D1%8C", 0),
        ("UTF-16 by its mark", &utf16, None, "/%C3%BC", 0),
        ("a mark goes before the server", utf8, Some("text/xml; charset=iso-8859-1"), "/%C3%BC", 0),
        ("an unknown one is UTF-8", utf8, Some("text/xml; charset=klingon"), "/%C3%BC", 0),
        ("bytes that are no text", undeclared, None, "/%EF%BF%BD", 1),
    ];
    for (name, body, content_type, path, faults) in cases {
        let sitemap = read(body, &base(), content_type);
        assert_eq!(shown(&sitemap.urls), [path], "{name}");
        assert_eq!(sitemap.problems.len(), faults, "{name}");
    }
}

#[test]
fn what_a_sitemap_may_list() {
    let map = "https://example.org/catalog/sitemap.xml";
    let cases = [
        ("its folder", map, "https://example.org/catalog/a", true, "it is in the sitemap's folder /catalog/"),
        ("below it", map, "https://example.org/catalog/b/c?d", true, "it is in"),
        ("its folder itself", map, "https://example.org/catalog/", true, "it is in"),
        ("escaped", map, "https://example.org/%63atalog/a", true, "it is in"),
        ("with the port", map, "https://example.org:443/catalog/a", true, "it is in"),
        (
            "another folder",
            map,
            "https://example.org/image/a",
            false,
            "it is outside the sitemap's folder /catalog/",
        ),
        ("a folder of a longer name", map, "https://example.org/catalogue/a", false, "it is outside"),
        ("above", map, "https://example.org/", false, "it is outside"),
        (
            "another scheme",
            map,
            "http://example.org/catalog/a",
            false,
            "it is of http://example.org, the sitemap of",
        ),
        (
            "another host",
            map,
            "https://www.example.org/catalog/a",
            false,
            "it is of https://www.example.org,",
        ),
        (
            "another port",
            map,
            "https://example.org:8443/catalog/a",
            false,
            "it is of https://example.org:8443,",
        ),
        ("a sitemap at the root", "https://example.org/s.xml", "https://example.org/a/b", true, "it is in"),
        ("one with a query", "https://example.org/a/?s=/b/c", "https://example.org/a/d", true, "it is in"),
    ];
    for (name, sitemap, item, want, why) in cases {
        let (sitemap, item) = (FetchUrl::parse(sitemap).unwrap(), FetchUrl::parse(item).unwrap());
        let placement = may_list(&sitemap, &item, false);
        assert_eq!(placement.allowed, want, "{name}");
        assert!(placement.why.to_string().starts_with(why), "{name}: {}", placement.why);
        assert!(may_list(&sitemap, &item, true).allowed, "{name}, named in robots.txt");
    }
}

proptest! {
    /// What is written as a sitemap is read as it was written.
    #[test]
    fn every_entry_is_read(paths in proptest::collection::vec("[a-z0-9&<>'\" ü]{1,12}", 0..20)) {
        let escaped = |path: &String| format!("x{path}").replace('&', "&amp;").replace('<', "&lt;");
        let entries = entries(paths.iter().map(escaped));
        let sitemap = read_text(&format!("<urlset>{entries}</urlset>"));
        let want: Vec<_> = paths.iter().map(|path| base().join(&format!("/x{path}")).unwrap()).collect();
        prop_assert_eq!(sitemap.urls.into_iter().map(|item| item.url).collect::<Vec<_>>(), want);
    }

    /// Wherever a file breaks off, it gives the first of its entries, and says that it broke off.
    #[test]
    fn a_part_gives_a_part(length in 0_usize..1_000) {
        let entries = entries((0..30).map(|number| number.to_string()));
        let whole = format!("<urlset>{entries}</urlset>");
        let length = length.min(whole.len() - 1);
        let part = read_text(&whole[..length]);
        let all = read_text(&whole);
        prop_assert!(all.urls.starts_with(&part.urls));
        prop_assert!(!part.problems.is_empty() && all.problems.is_empty());
        prop_assert!(part.urls.len() >= whole[..length].matches("</url>").count(), "no entry is lost");
    }

    /// No bytes make it panic.
    #[test]
    fn any_bytes_can_be_read(body: Vec<u8>, text in "[<>/a-d&;!\\[\\]\"' =?-]{0,60}") {
        read_bytes(&body);
        read_bytes(&[&[0x1f, 0x8b, 8, 0], body.as_slice()].concat());
        read_text(&format!("<urlset><url>{text}"));
    }
}
