//! Pages in the encodings of the web, with real text.

#[path = "vectors/encodings.rs"]
mod vectors;

use encoding_rs::Encoding;
use forager_fetch::encoding::{How, decode, decode_from};
use vectors::texts;

#[test]
fn the_header_tells() {
    for (encoding, text) in texts() {
        let page = format!("<p>{text}</p>");
        let body = encoding.encode(&page).0;
        let label = encoding.name().to_ascii_uppercase();
        let decoded = decode(&body, Some(&format!("text/html; charset={label}")));
        assert_eq!((&*decoded.text, decoded.encoding), (&*page, encoding.name()));
        assert_eq!((decoded.how, decoded.malformed), (How::ContentType, false), "{label}");
    }
}

#[test]
fn the_page_tells() {
    for (encoding, text) in texts() {
        let name = encoding.name();
        let forms = [
            format!("<!doctype html><head><meta charset={name}><title>{text}</title>"),
            format!("<meta http-equiv='Content-Type' content='text/html; charset={name}'>{text}"),
        ];
        for page in forms {
            let body = encoding.encode(&page).0;
            let decoded = decode(&body, Some("text/html"));
            assert_eq!((&*decoded.text, decoded.encoding, decoded.how), (&*page, name, How::Meta));
        }
    }
}

#[test]
fn nobody_tells() {
    // What text alone gives away; a few old encodings are too much like others.
    let guessed = [
        ("UTF-8", "hr"),
        ("windows-1252", "de"),
        ("windows-1250", "cz"),
        ("windows-1251", "ru"),
        ("windows-1253", "gr"),
        ("windows-1254", "tr"),
        ("windows-1255", "il"),
        ("windows-1256", "eg"),
        ("windows-874", "th"),
        ("ISO-8859-2", "pl"),
        ("KOI8-U", "ua"),
        ("Shift_JIS", "jp"),
        ("EUC-JP", "jp"),
        ("ISO-2022-JP", "jp"),
        ("EUC-KR", "kr"),
        ("GBK", "cn"),
        ("Big5", "tw"),
    ];
    for (encoding, text) in texts() {
        let Some((name, country)) = guessed.iter().find(|(name, _)| *name == encoding.name()) else {
            continue;
        };
        let page = format!("<p>{text}</p>").repeat(3);
        let body = encoding.encode(&page).0;
        let decoded = decode_from(&body, Some("text/html"), Some(&format!("www.example.{country}")));
        assert_eq!(decoded.text, page, "{name} as {}", decoded.encoding);
        let how = if *name == "UTF-8" { How::WellFormed } else { How::Guess };
        assert_eq!(decoded.how, how, "{name}");
    }
}

#[test]
fn a_mark_is_stronger_than_every_label() {
    let wide =
        |text: &str, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let cases = [
        ("UTF-8", "\u{feff}<meta charset=big5>č".as_bytes().to_vec(), "<meta charset=big5>č"),
        ("UTF-16LE", wide("\u{feff}čaj 🍵", u16::to_le_bytes), "čaj 🍵"),
        ("UTF-16BE", wide("\u{feff}čaj 🍵", u16::to_be_bytes), "čaj 🍵"),
    ];
    for (name, body, text) in cases {
        let decoded = decode(&body, Some("text/html; charset=koi8-r"));
        assert_eq!((decoded.encoding, &*decoded.text), (name, text));
        assert_eq!(decoded.how, How::ByteOrderMark);
    }
}

#[test]
fn who_is_asked_first() {
    let koi8 = |text: &str| Encoding::for_label(b"koi8-r").unwrap().encode(text).0.into_owned();
    let cases = [
        (
            "the header before the page",
            koi8("<meta charset=big5>Да"),
            Some("text/html; charset=koi8-r"),
            "KOI8-R",
            How::ContentType,
        ),
        (
            "an unknown label counts as none",
            koi8("<meta charset=koi8-r>Да"),
            Some("text/html; charset=x"),
            "KOI8-R",
            How::Meta,
        ),
        (
            "XML",
            koi8("<?xml version='1.0' encoding='koi8-r'?><a>Да</a>"),
            None,
            "KOI8-R",
            How::XmlDeclaration,
        ),
        (
            "the page said UTF-16, and could be read",
            "<meta charset=utf-16>é".into(),
            None,
            "UTF-8",
            How::Meta,
        ),
        (
            "latin1 is Windows",
            b"\x80".to_vec(),
            Some("text/plain; charset=iso-8859-1"),
            "windows-1252",
            How::ContentType,
        ),
        (
            "ASCII is Windows",
            b"\x80".to_vec(),
            Some("text/plain; charset=us-ascii"),
            "windows-1252",
            How::ContentType,
        ),
        ("plain ASCII", b"hello".to_vec(), None, "UTF-8", How::WellFormed),
        ("nothing", Vec::new(), None, "UTF-8", How::WellFormed),
    ];
    for (name, body, content_type, encoding, how) in cases {
        let decoded = decode(&body, content_type);
        assert_eq!((decoded.encoding, decoded.how), (encoding, how), "{name}");
    }
}

#[test]
fn broken_bytes_are_shown_and_never_fail() {
    let decoded = decode(b"a\xffb", Some("text/html; charset=utf-8"));
    assert_eq!((&*decoded.text, decoded.malformed), ("a\u{fffd}b", true));
    // Cut off in the middle of a letter: UTF-8 still.
    let cut = decode("<p>kuća č".as_bytes().split_last().unwrap().1, None);
    assert_eq!((cut.encoding, &*cut.text), ("UTF-8", "<p>kuća \u{fffd}"));
    // An encoding that browsers refuse to read, for it served attacks.
    let refused = decode(b"hello", Some("text/html; charset=iso-2022-kr"));
    assert_eq!((refused.encoding, &*refused.text), ("replacement", "\u{fffd}"));
}

proptest::proptest! {
    /// Any bytes become text, and UTF-8 becomes itself.
    #[test]
    fn any_bytes_become_text(body: Vec<u8>, label in "(text/html; charset=[a-z0-9-]{0,12})?") {
        let _ = decode(&body, Some(&label));
    }

    #[test]
    fn utf8_becomes_itself(text in "\\PC{0,60}") {
        proptest::prop_assume!(!text.starts_with('\u{feff}'));
        let decoded = decode(text.as_bytes(), Some("text/plain; charset=utf-8"));
        proptest::prop_assert_eq!(&*decoded.text, &*text);
    }
}

#[test]
fn the_query_of_a_link_is_sent_in_the_encoding_of_its_page() {
    use forager_core::url::FetchUrl;
    use forager_fetch::links::{LinkOptions, extract};
    let page = FetchUrl::parse("https://a.example/").unwrap();
    let table = [
        ("windows-1250", "/š?q=š&x", "/%C5%A1?q=%9A&x"),
        ("windows-1250", "?q=đak#š", "/?q=%F0ak"),
        ("iso-8859-1", "/ü?q=größe", "/%C3%BC?q=gr%F6%DFe"),
        ("shift_jis", "/s?q=官報", "/s?q=%8A%AF%95%F1"),
        ("euc-kr", "/s?q=법", "/s?q=%B9%FD"),
        ("utf-8", "/š?q=š", "/%C5%A1?q=%C5%A1"),
        ("utf-16le", "?q=š", "/?q=%C5%A1"),
        ("utf-16be", "?q=š", "/?q=%C5%A1"),
        // What the encoding does not have is written as a reference, as browsers write it.
        ("iso-8859-1", "?q=Жü", "/?q=%26%231046%3B%FC"),
        ("shift_jis", "?q=官ŵ報", "/?q=%8A%AF%26%23373%3B%95%F1"),
        // What was escaped before stays as it is, and so does a link of plain letters.
        ("windows-1250", "?q=%C5%A1š", "/?q=%C5%A1%9A"),
        ("windows-1250", "/a?b=c", "/a?b=c"),
        ("windows-1250", "/š", "/%C5%A1"),
    ];
    for (label, href, want) in table {
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        let options = LinkOptions { encoding: encoding.name(), ..LinkOptions::default() };
        let html = format!("<a href=\"{href}\">x</a>");
        let found = extract(&html, &page, &options);
        let urls: Vec<&str> = found.links.iter().map(|link| link.url.as_str()).collect();
        assert_eq!(urls, [format!("https://a.example{want}")], "{label} {href}");
    }
}
