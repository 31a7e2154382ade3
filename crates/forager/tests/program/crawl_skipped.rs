//! What a crawl does not fetch, and what it says of that.

use crate::web::{Field, page};
use forager_site::{Answer, Asked, Host, Site};
use serde_json::{Value, json};

const HOST: &str = "a.test";

/// The reasons that are told of a link, by its text.
#[track_caller]
fn reason<'l>(lines: &'l [Value], url: &str) -> &'l str {
    let found: Vec<&Value> = lines.iter().filter(|line| line["url"] == url).collect();
    assert_eq!(found.len(), 1, "{url}: {lines:#?}");
    found[0]["rule"].as_str().unwrap()
}

/// The fields that other crawlers have, and the rule; what a redirect leads to is as far from the seed as it is.
#[test]
fn a_line_says_how_far_off_it_is_and_which_rule_decided() {
    let away = |asked: &Asked<'_>| Answer::redirect(301, &asked.url("b.test", "/far"));
    let nowhere = |_: &Asked<'_>| Answer::redirect(301, "http://[");
    let host = Host::new(HOST)
        .robots("User-agent: *\nDisallow: /forbidden\n")
        .page("/", page("Home", &["/away", "/nowhere", "/forbidden", "http://c.test/"]))
        .made("/away", away)
        .made("/nowhere", nowhere);
    let field = Field::new(Site::new().host(host).host(Host::new("b.test").page("/far", page("Far", &[]))));
    field.crawl(HOST, &["--skipped", "skipped.jsonl"]).good_rows();
    let lines = field.lines("skipped.jsonl");
    let table = [
        (field.url("b.test", "/far"), 1, ""),
        ("http://[".to_owned(), 1, ""),
        (field.url(HOST, "/forbidden"), 1, "forbidden by robots.txt"),
        ("http://c.test/".to_owned(), 1, ""),
    ];
    for (url, depth, kind) in table {
        let found: Vec<&Value> = lines.iter().filter(|line| line["url"] == url.as_str()).collect();
        assert_eq!(found.len(), 1, "{url}: {lines:#?}");
        let (line, rule) = (found[0], found[0]["rule"].as_str().unwrap());
        assert_eq!(
            (&line["depth"], &line["seedUrl"]),
            (&json!(depth), &json!(field.url(HOST, "/"))),
            "{line}"
        );
        assert_eq!(line["reason"], if kind.is_empty() { rule } else { kind }, "{line}");
        assert!(rule.len() > kind.len() && line["ts"].is_string(), "{line}");
    }
}

/// Whoever has a `crawl.log` has followed the way to each page.
#[test]
fn a_page_that_was_not_fetched_says_where_it_was_found() {
    let host = Host::new(HOST)
        .robots("User-agent: *\nDisallow: /forbidden\n")
        .page("/", page("Home", &["/on"]))
        .page("/on", page("On", &["/forbidden"]));
    for (more, found) in [(&[][..], false), (&["--crawl-log", "crawl.log"], true)] {
        let field = Field::new(Site::new().host(host.clone()));
        field.crawl(HOST, &[&["--skipped", "skipped.jsonl"], more].concat()).good_rows();
        let lines = field.lines("skipped.jsonl");
        let want = if found { json!(field.url(HOST, "/on")) } else { Value::Null };
        assert_eq!((lines.len(), &lines[0]["page"]), (1, &want), "{lines:?}");
    }
}

#[test]
fn links_that_lead_nowhere_and_pages_that_are_forbidden_are_told() {
    let html = r##"<a href="mailto:a@b.test">m</a> <a href="javascript:void(0)">j</a> <a href="data:text/html,x">d</a>
        <a href="http://[">broken</a> <a href="https://">broken</a> <a href="/forbidden">f</a>
        <a href="/loose" rel="nofollow">n</a> <a href="#top">top</a> <a href="/ok">ok</a>"##;
    let strict = r#"<meta name="robots" content="nofollow"><a href="/never">n</a>"#;
    let host = Host::new(HOST)
        .robots("User-agent: *\nDisallow: /forbidden\n")
        .page("/", Answer::html(html))
        .page("/ok", Answer::html(strict));
    let field = Field::new(Site::new().host(host));
    let more = ["--skipped", "skipped.jsonl", "--respect-nofollow"];
    let summary = field.crawl(HOST, &more).good_rows().remove(0);
    let lines = field.lines("skipped.jsonl");
    let table = [
        ("mailto:a@b.test", "neither http nor https: mailto"),
        ("javascript:void(0)", "neither http nor https: javascript"),
        ("data:text/html,x", "neither http nor https: data"),
        ("http://[", "malformed: wrong address"),
        ("https://", "malformed: no host"),
        (&field.url(HOST, "/loose"), "the link is nofollow"),
        (&field.url(HOST, "/never"), "the page asks for no link to be followed (meta robots: nofollow)"),
    ];
    for (url, want) in table {
        assert_eq!(reason(&lines, url), want, "{url}");
        assert_eq!(summary["skipped"][want], 1, "{url}: {summary}");
    }
    let forbidden = reason(&lines, &field.url(HOST, "/forbidden"));
    assert!(forbidden.starts_with("forbidden by robots.txt: line 2: Disallow: /forbidden; "), "{forbidden}");
    assert_eq!(summary["skipped"]["forbidden by robots.txt"], 1, "{summary}");
    assert_eq!(lines.len(), 8, "{lines:#?}");
}

#[test]
fn what_pages_ask_of_robots_is_obeyed_and_told() {
    let tag = http::HeaderName::from_static("x-robots-tag");
    let asks = |value: &str, path: &str| page("Page", &[path]).header(tag.clone(), value);
    let meta = |content: &str, path: &str| {
        Answer::html(format!("<meta name=robots content={content:?}><a href={path:?}>a link</a>"))
    };
    let home = ["/header", "/named", "/others", "/meta", "/none", "/picture"];
    let host = Host::new(HOST)
        .page("/", page("Home", &home))
        .page("/header", asks("noindex, nofollow", "/behind-header"))
        .page("/named", asks("forager: nofollow", "/behind-named"))
        .page("/others", asks("otherbot: nofollow", "/behind-others"))
        .page("/meta", meta("noarchive, nofollow", "/behind-meta"))
        .page("/none", meta("none", "/behind-none"))
        .page("/picture", Answer::new("image/png", "PNG").header(tag.clone(), "noindex"))
        .page("/behind-others", page("Behind", &[]));
    // The page, what it asks, what its link is kept out by.
    let table: [(&str, Value, &str); 5] = [
        ("header", json!(["noindex", "nofollow"]), "X-Robots-Tag: nofollow"),
        ("named", json!(["nofollow"]), "X-Robots-Tag: forager: nofollow"),
        ("meta", json!(["nofollow", "noarchive"]), "meta robots: nofollow"),
        ("none", json!(["noindex", "nofollow"]), "meta robots: none"),
        ("others", Value::Null, ""),
    ];
    for ignores in [false, true] {
        let field = Field::new(Site::new().host(host.clone()));
        let more: &[&str] = if ignores { &["--ignore-meta-robots"] } else { &[] };
        let ran = field.crawl(HOST, &[&["--skipped", "skipped.jsonl"], more].concat());
        assert_eq!(ran.status, 0, "{ran:?}");
        let skipped = field.lines("skipped.jsonl");
        for (name, asked, why) in &table {
            let (path, behind) = (format!("/{name}"), format!("/behind-{name}"));
            assert_eq!(field.line(HOST, &path)["directives"], *asked, "{name}");
            let is_followed = why.is_empty() || ignores;
            assert_eq!(field.counts(HOST).contains_key(&behind), is_followed, "{name}, ignoring: {ignores}");
            if !is_followed {
                let want = format!("the page asks for no link to be followed ({why})");
                assert_eq!(reason(&skipped, &field.url(HOST, &behind)), want, "{name}");
            }
        }
        assert_eq!(field.line(HOST, "/picture")["directives"], json!(["noindex"]));
        let ran = field.run(&["links", &field.url(HOST, "/header")]);
        assert_eq!(
            (ran.status, &ran.rows()[0]["directives"]),
            (0, &json!(["noindex", "nofollow"])),
            "{ran:?}"
        );
        assert!(
            ran.stderr.contains("asks of robots: X-Robots-Tag: noindex, X-Robots-Tag: nofollow"),
            "{ran:?}"
        );
    }
}

#[test]
fn what_is_told_of_a_page_is_bounded() {
    let many = "<a href='mailto:x'></a>".repeat(500);
    let long = format!("<a href='made-up:{}'></a>", "x".repeat(5000));
    let host = Host::new(HOST).page("/", Answer::html(format!("{long}{many}")));
    let field = Field::new(Site::new().host(host));
    field.crawl(HOST, &["--skipped", "skipped.jsonl"]).good_rows();
    let lines = field.lines("skipped.jsonl");
    assert_eq!(lines.len(), 100);
    assert!(lines.iter().all(|line| line["url"].as_str().unwrap().len() <= 300), "{}", lines[0]);
}

/// A sitemap of `a.test` with a relative URL, one that is none, and pages of two other hosts, of which one vouches for it.
fn faulty() -> Field {
    let entries = |asked: &Asked<'_>| {
        let locs = [
            "/relative".to_owned(),
            "mailto:x".to_owned(),
            asked.url("b.test", "/b"),
            asked.url("c.test", "/c"),
        ];
        let urls = locs.map(|loc| format!("<url><loc>{loc}</loc></url>\n")).concat();
        Answer::xml(format!("<urlset>\n{urls}</urlset>"))
    };
    let named = |asked: &Asked<'_>| Answer::text(format!("Sitemap: {}\n", asked.url(HOST, "/map.xml")));
    let host = Host::new(HOST)
        .made("/robots.txt", named)
        .made("/map.xml", entries)
        .page("/relative", page("R", &[]));
    let host = host.page("/", page("Home", &[]));
    let other = |name: &str| Host::new(name).page("/", page("Home", &[]));
    let vouches = other("c.test").made("/robots.txt", named);
    Field::new(Site::new().host(host).host(other("b.test")).host(vouches))
}

#[test]
fn what_is_wrong_with_a_sitemap_is_told() {
    let field = faulty();
    let (relative, other) = (field.url(HOST, "/relative"), field.url("b.test", "/b"));
    let starts = [
        format!("line 2, column 1: \"/relative\" is relative, and taken for {relative}"),
        format!("line 4, column 1: {other} is of another site, "),
        "line 3, column 1: ".to_owned(),
    ];
    // What a person sees who looks at it. Of those who vouch for it nobody is asked.
    let ran = field.run(&["sitemap", &field.url(HOST, "/map.xml"), "--format", "jsonl"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for start in &starts {
        assert!(ran.stderr.contains(start), "{start}: {ran:?}");
    }

    // The robots.txt of the host that vouches for it is known before the sitemap is read.
    field.run(&["crawl", &field.url("c.test", "/"), "--scope", "page", "--json", "--quiet"]).good_rows();
    let summary = field.crawl(HOST, &["--skipped", "skipped.jsonl"]).good_rows().remove(0);
    let map = field.line(HOST, "/map.xml");
    let problems: Vec<&str> =
        map["problems"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    assert_eq!(problems.len(), starts.len(), "{problems:#?}");
    for start in &starts {
        assert!(problems.iter().any(|problem| problem.starts_with(start)), "{start}: {problems:#?}");
    }
    assert_eq!(summary["problems"], json!(problems.len()), "{summary}");
    assert!(field.counts(HOST).contains_key("/relative"), "it is fetched all the same");
    let skipped = field.lines("skipped.jsonl");
    assert!(reason(&skipped, &other).contains("scope"), "judged like any link: {skipped:?}");
}

#[test]
fn links_that_are_too_many_for_a_page_are_told() {
    let paths: Vec<String> = (0..10_012).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let field = Field::new(Site::new().host(Host::new(HOST).page("/", page("Home", &links))));
    let summary = &field.crawl(HOST, &["--scope", "page"]).good_rows()[0];
    let problem = "it has more links than are read of a page: 10000 are listed, 12 left out";
    let line = field.line(HOST, "/");
    assert_eq!((&line["links"], &line["problems"]), (&json!(10_000), &json!([problem])));
    assert_eq!(summary["problems"], 1, "{summary}");
    let ran = field.run(&["links", &field.url(HOST, "/")]);
    assert_eq!((ran.status, ran.stdout.lines().count()), (0, 10_000), "{}", ran.stderr);
    assert_eq!(ran.stderr, format!("forager: {}: {problem}\n", field.url(HOST, "/")));
}

#[test]
fn a_host_has_its_fill_and_the_others_do_not_mind() {
    let links: Vec<String> = (1..=9).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let host =
        |name: &str| links.iter().fold(Host::new(name), |host, path| host.page(*path, page(path, &[])));
    let home = page("Home", &links);
    let site = Site::new().host(host(HOST).page("/", home.clone())).host(host("b.test").page("/", home));
    for (name, more, fetched) in
        [("capped", &["--max-per-host", "4"][..], 4), ("any number", &["--max-per-host", "0"], 10)]
    {
        let field = Field::new(site.clone());
        let second = field.url("b.test", "/");
        field.crawl(HOST, &[&[&*second, "--skipped", "skipped.jsonl"], more].concat()).good_rows();
        for host in [HOST, "b.test"] {
            assert_eq!(field.paths(host).len(), fetched, "{name}, {host}: {:?}", field.paths(host));
        }
        let skipped = std::fs::read_to_string(field.file("skipped.jsonl")).unwrap();
        let told = skipped.matches("\"rule\":\"trap: more than 4 URLs of one host\"").count();
        assert_eq!(told, 2 * (10 - fetched), "{name}: {skipped}");
    }
}
