//! Looking for the encoding in the first bytes of a page, before anything can be decoded.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::How;

/// How far a page may put the word about its encoding; the HTML standard sets it.
const PRESCAN_BYTES: usize = 1024;

/// The encoding that the page itself names.
pub(super) fn prescan(body: &[u8]) -> Option<(&'static Encoding, How)> {
    let start = &body[..body.len().min(PRESCAN_BYTES)];
    let by_meta = || meta(start).map(|encoding| (encoding, How::Meta));
    // Written in UTF-16 without a mark: no `meta` could be read in it.
    let wide = match start {
        [b'<', 0, b'?', 0, b'x', 0, ..] => Some(UTF_16LE),
        [0, b'<', 0, b'?', 0, b'x', ..] => Some(UTF_16BE),
        _ => None,
    };
    let by_declaration =
        || wide.or_else(|| declaration(start)).map(|encoding| (encoding, How::XmlDeclaration));
    by_meta().or_else(by_declaration)
}

/// What a label inside a page means. A page that could be read as ASCII so far is not UTF-16, and
/// `x-user-defined` was only ever written by those who meant Latin letters.
fn by_label(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label)?;
    Some(match encoding.name() {
        "UTF-16LE" | "UTF-16BE" => UTF_8,
        "x-user-defined" => WINDOWS_1252,
        _ => encoding,
    })
}

/// `<?xml … encoding="…" ?>` at the very start.
fn declaration(start: &[u8]) -> Option<&'static Encoding> {
    let rest = start.strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', rest)?;
    let at = memchr::memmem::find(&rest[..end], b"encoding")?;
    by_label(after_equals(&rest[at + b"encoding".len()..end])?)
}

/// The first `meta` element that names an encoding we know.
fn meta(start: &[u8]) -> Option<&'static Encoding> {
    let mut rest = start;
    while let Some(at) = memchr::memchr(b'<', rest) {
        rest = &rest[at..];
        if rest.starts_with(b"<!--") {
            // Two dashes may serve for both ends: `<!-->` is a whole comment.
            let end = memchr::memmem::find(&rest[2..], b"-->")?;
            rest = &rest[2 + end + 3..];
            continue;
        }
        let mut tag = Tag::at(rest)?;
        if tag.is(b"meta")
            && let Some(encoding) = named_by(&mut tag)
        {
            return Some(encoding);
        }
        rest = tag.end()?;
    }
    None
}

fn named_by(meta: &mut Tag<'_>) -> Option<&'static Encoding> {
    let (mut by_charset, mut by_content, mut is_content_type) = (None, None, false);
    while let Some((name, value)) = meta.attribute() {
        match name.to_ascii_lowercase().as_slice() {
            b"charset" => by_charset = by_charset.or(Some(value)),
            b"content" => by_content = by_content.or_else(|| label_in(value)),
            b"http-equiv" => is_content_type |= value.eq_ignore_ascii_case(b"content-type"),
            _ => {}
        }
    }
    let label = by_charset.or(by_content.filter(|_| is_content_type))?;
    by_label(label)
}

/// The label in `text/html; charset=…`, as loosely as browsers read it.
fn label_in(content: &[u8]) -> Option<&[u8]> {
    let lower = content.to_ascii_lowercase();
    memchr::memmem::find_iter(&lower, b"charset").find_map(|at| after_equals(&content[at + 7..]))
}

/// The value behind an equals sign, in quotes or not.
fn after_equals(text: &[u8]) -> Option<&[u8]> {
    let value = text.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    if let [quote @ (b'"' | b'\''), inner @ ..] = value {
        let end = memchr::memchr(*quote, inner)?;
        return Some(&inner[..end]);
    }
    let end = value.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b';');
    Some(&value[..end.unwrap_or(value.len())])
}

/// What begins with `<`: a tag whose attributes are still to be read, or something to be skipped.
struct Tag<'a> {
    name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Tag<'a> {
    fn at(text: &'a [u8]) -> Option<Self> {
        let text = text.get(1..)?;
        let end = text.iter().position(|byte| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>'))?;
        // `</meta …>` is none; its slash would be taken for the end of an empty name.
        let end = if end == 0 { 1 } else { end };
        Some(Self { name: &text[..end], rest: &text[end..] })
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The next attribute with its value, empty if it has none; nothing at the end of the tag.
    fn attribute(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'/';
        let start = self.rest.iter().position(|byte| !is_between(byte))?;
        let text = &self.rest[start..];
        if text[0] == b'>' {
            self.rest = text;
            return None;
        }
        // An equals sign at the start belongs to the name.
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
        let end = 1 + text[1..].iter().position(is_end)?;
        let (name, text) = text.split_at(end);
        let Some(value) = text.trim_ascii_start().strip_prefix(b"=") else {
            self.rest = text;
            return Some((name, b""));
        };
        let (value, rest) = value_of(value.trim_ascii_start())?;
        self.rest = rest;
        Some((name, value))
    }

    /// What follows the tag.
    fn end(mut self) -> Option<&'a [u8]> {
        while self.attribute().is_some() {}
        let end = memchr::memchr(b'>', self.rest)?;
        Some(&self.rest[end + 1..])
    }
}

fn value_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let [quote @ (b'"' | b'\''), inner @ ..] = text {
        let end = memchr::memchr(*quote, inner)?;
        return Some((&inner[..end], &inner[end + 1..]));
    }
    let end = text.iter().position(|byte| byte.is_ascii_whitespace() || *byte == b'>')?;
    Some(text.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_says_of_its_encoding() {
        let cases = [
            ("charset", r#"<meta charset="koi8-r">"#, Some("KOI8-R")),
            ("without quotes", "<meta charset=koi8-r>", Some("KOI8-R")),
            ("closed like XML", "<meta charset='koi8-r'/>", Some("KOI8-R")),
            ("any case", "<META CHARSET=KOI8-R>", Some("KOI8-R")),
            (
                "among others",
                "<html><head><title>x</title><meta name=a content=b><meta charset=big5>",
                Some("Big5"),
            ),
            (
                "http-equiv",
                r#"<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">"#,
                Some("windows-1251"),
            ),
            (
                "in the other order",
                r#"<meta content="text/html;charset = 'gbk' " http-equiv=content-type>"#,
                Some("GBK"),
            ),
            ("content without http-equiv", r#"<meta content="text/html; charset=gbk">"#, None),
            ("another http-equiv", r#"<meta http-equiv=refresh content="1; charset=gbk">"#, None),
            (
                "charset before content",
                r#"<meta http-equiv=content-type content="charset=gbk" charset=big5>"#,
                Some("Big5"),
            ),
            ("an unknown label is passed over", "<meta charset=klingon><meta charset=big5>", Some("Big5")),
            ("UTF-16 cannot be", "<meta charset=utf-16le>", Some("UTF-8")),
            ("user-defined", "<meta charset=x-user-defined>", Some("windows-1252")),
            ("in a comment", "<!-- <meta charset=big5> --><p>", None),
            ("after a comment", "<!-- > --><meta charset=big5>", Some("Big5")),
            ("after the shortest comment", "<!--><meta charset=big5>", Some("Big5")),
            ("a comment without end", "<!-- <meta charset=big5>", None),
            ("in an attribute", r#"<p title="<meta charset=big5>">"#, None),
            ("of an end tag", "</meta charset=big5>", None),
            ("another element", "<metal charset=big5>", None),
            ("no end", "<meta charset=big5", None),
            ("XML declaration", r#"<?xml version="1.0" encoding="iso-8859-2"?><html>"#, Some("ISO-8859-2")),
            (
                "meta before XML declaration",
                r#"<?xml encoding="iso-8859-2"?><meta charset=big5>"#,
                Some("Big5"),
            ),
            ("declaration not at the start", r#" <?xml encoding="iso-8859-2"?>"#, None),
            ("XML in UTF-16", "<\0?\0x\0m\0l\0", Some("UTF-16LE")),
            ("nothing", "<p>text</p>", None),
            ("empty", "", None),
        ];
        for (name, page, want) in cases {
            let found = prescan(page.as_bytes()).map(|(encoding, _)| encoding.name());
            assert_eq!(found, want, "{name}");
        }
    }

    #[test]
    fn only_the_first_1024_bytes_count() {
        let label = "<meta charset=big5>";
        let page = |spaces: usize| format!("{}{label}", " ".repeat(spaces));
        assert!(prescan(page(1024 - label.len()).as_bytes()).is_some());
        assert!(prescan(page(1025 - label.len()).as_bytes()).is_none());
    }
}
