//! When two versions of a page count as the same.

use forager_fetch::fingerprint::{ContentSelector, Form, Part, SelectorError, Taken, take};
use proptest::prelude::*;

fn html(text: &str) -> Taken {
    take(text.as_bytes(), text, Form::Html, None)
}

fn content(text: &str) -> String {
    html(text).fingerprint.content
}

/// Text long enough to be the main part of a page.
fn long(word: &str) -> String {
    format!("{word} {}", "lorem ipsum dolor sit amet ".repeat(10))
}

#[test]
fn what_does_not_change_the_content() {
    let page = "<body><h1>Fees</h1><p>A passport costs 20 euro.</p></body>";
    let cases = [
        ("a script", "<body><script>var t=1</script><h1>Fees</h1><p>A passport costs 20 euro.</p></body>"),
        ("a script in the text", "<h1>Fees</h1><p>A passport co<script>1</script>sts 20 euro.</p>"),
        ("a style", "<style>p{}</style><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("a comment", "<h1>Fees</h1><!-- 1 --><p>A pass<!-- built -->port costs 20 euro.</p>"),
        ("a template", "<template><p>x</p></template><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("noscript", "<noscript><img src=x>y</noscript><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        (
            "a token in a field",
            "<h1>Fees</h1><input type=hidden name=csrf value=abc><p>A passport costs 20 euro.</p>",
        ),
        ("a nonce in an attribute", "<h1 nonce=abc data-t=1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("a title", "<title>(3) Fees</title><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("white space", "<h1>\n Fees </h1>\n\n<p>A  passport\ncosts&nbsp;20 euro.</p>"),
        ("another layout", "<div>Fees</div><table><tr><td>A passport<td>costs 20 euro.</table>"),
        ("a clock", "<p>14:30:05</p><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("an age", "<h1>Fees</h1><span>3 minutes ago</span><p>A passport costs 20 euro.</p>"),
        ("how long it took", "<h1>Fees</h1><p>A passport costs 20 euro.</p><p>Page generated in 0.03 s"),
        ("a session", "<h1>Fees</h1><p>A passport costs 20 euro.</p><small>sid=8fk29dk20d</small>"),
        ("where links lead", "<h1><a href='/?sid=1'>Fees</a></h1><p>A passport costs 20 euro.</p>"),
        ("references", "<h1>Fee&#115;</h1><p>A passport costs 20 euro.</p>"),
        ("a header", "<header>Log in, Ana</header><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("navigation", "<nav>News</nav><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("an aside", "<aside>Read also</aside><h1>Fees</h1><p>A passport costs 20 euro.</p>"),
        ("a footer", "<h1>Fees</h1><p>A passport costs 20 euro.</p><footer>Visitors: 12</footer>"),
        (
            "by role",
            "<div role=Banner>x</div><h1>Fees</h1><p>A passport costs 20 euro.</p><div role=contentinfo>y</div>",
        ),
    ];
    for (name, other) in cases {
        assert_eq!(content(other), content(page), "{name}: {}", html(other).lines);
        assert_ne!(html(other).fingerprint.exact, html(page).fingerprint.exact, "{name}");
    }
}

#[test]
fn what_changes_the_content() {
    let page = "<h1>Fees</h1><p>A passport costs 20 euro.</p>";
    let cases = [
        ("a figure", "<h1>Fees</h1><p>A passport costs 25 euro.</p>"),
        ("a word", "<h1>Fees</h1><p>A visa costs 20 euro.</p>"),
        ("a letter's case", "<h1>Fees</h1><p>a passport costs 20 euro.</p>"),
        ("a heading", "<h1>Prices</h1><p>A passport costs 20 euro.</p>"),
        ("a line more", "<h1>Fees</h1><p>A passport costs 20 euro.</p><p>From June.</p>"),
        ("a date", "<h1>Fees</h1><p>A passport costs 20 euro.</p><p>15 June 2024</p>"),
        ("another order", "<p>A passport costs 20 euro.</p><h1>Fees</h1>"),
        ("a link's text", "<h1>Fees</h1><p>A passport costs 20 euro.</p><a href=x>Form</a>"),
    ];
    for (name, other) in cases {
        assert_ne!(content(other), content(page), "{name}");
    }
}

#[test]
fn which_part_counts() {
    let text = long("passport");
    let cases = [
        ("main", format!("<div>x</div><main>{text}</main><div>y</div>"), Part::Main),
        ("by its role", format!("<div>x</div><div role=main>{text}</div>"), Part::Main),
        ("article", format!("<div>x</div><article>{text}</article>"), Part::Article),
        ("main before article", format!("<article>{text}</article><main>{text}</main>"), Part::Main),
        ("main without enough text", "<main>short</main><p>text".to_owned(), Part::Body),
        ("neither", format!("<header>h</header><p>{text}"), Part::Body),
        ("nothing else", "<nav>Home</nav>".to_owned(), Part::Whole),
        ("nothing", String::new(), Part::Whole),
    ];
    for (name, page, want) in cases {
        assert_eq!(html(&page).part, want, "{name}");
    }
    let main = |aside: &str, header: &str| {
        html(&format!("<div>{aside}</div><main><header>{header}</header><nav>{aside}</nav>{text}</main>"))
            .lines
    };
    assert_eq!(main("one", "Title"), main("two", "Title"), "what is beside the main part does not count");
    assert_ne!(main("one", "Title"), main("one", "Other"), "its own header does");
}

#[test]
fn a_clock_does_not_decide_which_part_counts() {
    let page = |clock: &str| format!("<main>{}{clock}</main><p>beside</p>", "word ".repeat(39));
    let clocks = "<p>14:30:05</p>".repeat(40);
    assert_eq!(content(&page("")), content(&page(&clocks)));
}

#[test]
fn a_selector_narrows_the_content() {
    let select = |selector: &str, page: &str| {
        let selector = ContentSelector::parse(selector).unwrap();
        take(page.as_bytes(), page, Form::Html, Some(&selector))
    };
    let page = "<nav class=menu>Menu</nav><div id=a><p>One <b>two</b></div><div class='x fee'>20 euro<script>1</script></div>";
    let cases = [
        ("#a", Part::Selected, "One two\n"),
        (".fee", Part::Selected, "20 euro\n"),
        ("div", Part::Selected, "One two\n20 euro\n"),
        ("#a b, .fee", Part::Selected, "two\n20 euro\n"),
        (".menu", Part::Selected, "Menu\n"),
        ("#none", Part::Body, "One two\n20 euro\n"),
    ];
    for (selector, part, lines) in cases {
        let taken = select(selector, page);
        assert_eq!((taken.part, &*taken.lines), (part, lines), "{selector}");
    }
    assert_eq!(select("#a", "<div id=a></div>text").lines, "", "what is selected may be empty");
}

#[test]
fn a_selector_is_checked() {
    let error = |text: &str| ContentSelector::parse(text).unwrap_err();
    for text in ["", "p:hover", "a + b", "[", "p::before"] {
        assert!(matches!(error(text), SelectorError::Invalid { .. }), "{text}");
        assert!(
            error(text).to_string().contains(&format!("{text:?} cannot be used as a selector")),
            "{text}"
        );
    }
    assert_eq!(error(&"a".repeat(2000)), SelectorError::TooLong { bytes: 2000 });
}

#[test]
fn bodies_that_are_not_html() {
    let text = |text: &str| take(text.as_bytes(), text, Form::Text, None);
    assert_eq!(text("a  b\r\n\r\n c 14:30 ").lines, "a b\nc\n");
    assert_eq!(text("a\nb 14:30").fingerprint.content, text("a b\r\n15:45").fingerprint.content);
    assert_ne!(text("<b>a</b>").fingerprint.content, text("a").fingerprint.content);
    let bytes = take(b"\x00\x01", "", Form::Binary, None);
    assert_eq!(bytes.fingerprint.content, bytes.fingerprint.exact);
    assert_eq!((bytes.part, &*bytes.lines), (Part::Bytes, ""));
    assert_ne!(bytes.fingerprint.exact, take(b"\x00\x02", "", Form::Binary, None).fingerprint.exact);
}

#[test]
fn a_fingerprint_stays_what_it_is() {
    // Stored for years: a change here would make every page look changed. If it must be, raise RULES.
    let taken = html("<h1>Fees</h1><p>A passport costs 20 euro.</p>");
    assert_eq!(taken.lines, "Fees\nA passport costs 20 euro.\n");
    assert_eq!(taken.fingerprint.exact, "7d6c530437a0ebebd4b34660ba837ffc");
    assert_eq!(taken.fingerprint.content, "5a55f9593bcfe8baff2c2d87ea3a1585");
}

#[test]
fn long_texts_are_cut_for_showing_and_not_for_telling() {
    let text = "a line of text\n".repeat(20_000);
    let page = |end: &str| format!("{text}{end}");
    let [one, two] = ["one", "two"].map(|end| {
        let text = page(end);
        take(text.as_bytes(), &text, Form::Text, None)
    });
    assert!(one.cut && one.lines.len() <= 256 * 1024);
    assert_eq!(one.lines, two.lines);
    assert_ne!(one.fingerprint.content, two.fingerprint.content);
    assert!(!html("<p>short").cut);
}

#[test]
fn broken_pages_are_read_as_far_as_they_go() {
    let deep = format!("<p>start</p>{}end", "<div>".repeat(200_000));
    let taken = html(&deep);
    assert!(!taken.complete);
    assert!(taken.lines.starts_with("start\n"));
    assert!(html("<p>a<b>b</p><!-- ").complete);
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[b-z]{2,9}", 1..40)
}

fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        "<script>[a-z0-9 ]{0,20}</script>",
        "<!--[a-z0-9 ]{0,20}-->",
        "<style>[a-z0-9 {}]{0,20}</style>",
        "<template><p>[a-z]{0,9}</p></template>",
        "<noscript>[a-z]{0,9}</noscript>",
        "<input type=hidden name=csrf value=[a-z0-9]{8,20}>",
        "(0[0-9]|1[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?( GMT)?",
        "202[0-9]-0[1-9]-[12][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9]Z",
        "[1-9][0-9]? (minutes|hours|days) ago",
        "generated in 0\\.[0-9]{1,4} s",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9a-f]{32,64}",
        Just("just now".to_owned()),
    ]
}

proptest! {
    /// Noise anywhere between the words changes nothing.
    #[test]
    fn noise_never_changes_the_content(words in words(), noise in prop::collection::vec((any::<prop::sample::Index>(), noise()), 0..6)) {
        let plain = format!("<p>{}</p>", words.join(" "));
        let mut noisy = words.clone();
        for (at, noise) in noise {
            noisy.insert(at.index(words.len() + 1), noise);
        }
        let noisy = format!("<p>{}</p>", noisy.join(" "));
        prop_assert_eq!(content(&plain), content(&noisy), "{}", noisy);
    }

    /// Another word in the main text is always seen.
    #[test]
    fn another_word_always_changes_the_content(words in words(), at in any::<prop::sample::Index>(), word in "[b-z]{2,9}", in_main in any::<bool>()) {
        let at = at.index(words.len());
        prop_assume!(words[at] != word);
        let page = |words: &[String]| {
            let tag = if in_main { "main" } else { "div" };
            format!("<nav>menu</nav><{tag}><p>{}</p></{tag}>", words.join(" "))
        };
        let mut other = words.clone();
        other[at] = word;
        prop_assert_ne!(content(&page(&words)), content(&page(&other)));
    }

    /// Whatever the page: no panic, and what is told is made of single-spaced lines.
    #[test]
    fn any_page_gives_tidy_lines(page in "(<(p|main|nav|script|/p|/main|!--|svg|td)>|-->|[ -~]{0,10}|\\PC{0,5}){0,20}") {
        let lines = html(&page).lines;
        for line in lines.lines() {
            prop_assert!(!line.is_empty() && line.trim() == line && !line.contains("  "));
        }
    }
}
