//! From bytes to text, as browsers do it.
//!
//! The first of these that says something decides: a byte order mark, the `charset` of
//! `Content-Type`, a `meta` element in the first 1,024 bytes, an XML declaration. Where nothing
//! does, the bytes are looked at: what is well-formed UTF-8 is taken for it, the rest is guessed.
//! Unlike a browser, which must not let pages come to rely on it, we do guess UTF-8.

mod prescan;

use core::fmt;
use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

/// How many bytes are looked at for a guess. A guess rarely changes after a few kilobytes, and
/// looking costs more than decoding.
const GUESS_BYTES: usize = 65_536;

/// What told the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A byte order mark, which is stronger than every label.
    ByteOrderMark,
    /// The `charset` of `Content-Type`.
    ContentType,
    /// A `meta` element.
    Meta,
    /// An XML declaration.
    XmlDeclaration,
    /// Nothing said it, and the bytes are well-formed UTF-8.
    WellFormed,
    /// Nothing said it, and the bytes look most like this one.
    Guess,
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ByteOrderMark => "byte order mark",
            Self::ContentType => "Content-Type",
            Self::Meta => "meta element",
            Self::XmlDeclaration => "XML declaration",
            Self::WellFormed => "well-formed UTF-8",
            Self::Guess => "guess",
        })
    }
}

/// A body as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text, without a byte order mark.
    pub text: Cow<'a, str>,
    /// The name of the encoding, as the encoding standard spells it.
    pub encoding: &'static str,
    /// What told it.
    pub how: How,
    /// Whether some bytes made no sense in it and stand as U+FFFD.
    pub malformed: bool,
}

/// Decodes a body. It never fails: what makes no sense becomes U+FFFD.
///
/// ```
/// # use forager_fetch::encoding::{How, decode};
/// let page = decode(b"na\xefve", Some("text/html; charset=latin1"));
/// assert_eq!((&*page.text, page.encoding, page.how), ("naïve", "windows-1252", How::ContentType));
/// ```
pub fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Decoded<'a> {
    decode_from(body, content_type, None)
}

/// Decodes a body that came from `host`, whose last label (`jp`, `hr`) helps where it has to be guessed.
pub fn decode_from<'a>(body: &'a [u8], content_type: Option<&str>, host: Option<&str>) -> Decoded<'a> {
    if let Some((encoding, mark)) = Encoding::for_bom(body) {
        return with(encoding, How::ByteOrderMark, &body[mark..]);
    }
    let (encoding, how) = labelled(body, content_type).unwrap_or_else(|| unlabelled(body, host));
    with(encoding, how, body)
}

fn with<'a>(encoding: &'static Encoding, how: How, body: &'a [u8]) -> Decoded<'a> {
    let (text, malformed) = encoding.decode_without_bom_handling(body);
    Decoded { text, encoding: encoding.name(), how, malformed }
}

fn labelled(body: &[u8], content_type: Option<&str>) -> Option<(&'static Encoding, How)> {
    let by_header = content_type.and_then(charset).and_then(|label| Encoding::for_label(label.as_bytes()));
    by_header.map(|encoding| (encoding, How::ContentType)).or_else(|| prescan::prescan(body))
}

/// The `charset` parameter of a media type. Quotes of both kinds are taken off: servers write both.
pub(crate) fn charset(content_type: &str) -> Option<&str> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']))
    })
}

fn unlabelled(body: &[u8], host: Option<&str>) -> (&'static Encoding, How) {
    // ISO-2022-JP is ASCII throughout, and would be well-formed UTF-8; its escapes give it away.
    if is_utf8(body) && memchr::memchr(0x1b, body).is_none() {
        return (UTF_8, How::WellFormed);
    }
    let sample = &body[..body.len().min(GUESS_BYTES)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(sample, sample.len() == body.len());
    (detector.guess(top_level(host).as_deref(), Utf8Detection::Allow), How::Guess)
}

/// Whether the bytes are UTF-8; a last character that is cut off does not speak against it.
fn is_utf8(body: &[u8]) -> bool {
    match core::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    }
}

/// The last label of a host name, as the detector takes it: lower case, and no part of an address.
fn top_level(host: Option<&str>) -> Option<Vec<u8>> {
    let label = host?.trim_end_matches('.').rsplit('.').next()?.to_ascii_lowercase();
    let is_name = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_name.then(|| label.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_charset_of_a_media_type() {
        let cases = [
            ("none", "text/html", None),
            ("plain", "text/html; charset=utf-8", Some("utf-8")),
            ("any case, spaces", "text/html ;  CharSet = UTF-8 ", Some("UTF-8")),
            ("double quotes", "text/html;charset=\"koi8-r\"", Some("koi8-r")),
            ("single quotes", "text/html;charset='koi8-r'", Some("koi8-r")),
            ("after another", "text/html; boundary=x; charset=big5", Some("big5")),
            ("the first of two", "text/html; charset=big5; charset=gbk", Some("big5")),
            ("not a parameter", "charset=big5", None),
        ];
        for (name, content_type, want) in cases {
            assert_eq!(charset(content_type), want, "{name}");
        }
    }

    #[test]
    fn a_host_helps_only_by_its_name() {
        let cases = [
            (Some("www.example.JP."), Some("jp")),
            (Some("[::1]"), None),
            (Some("127.0.0.1"), None),
            (Some(""), None),
            (None, None),
        ];
        for (host, want) in cases {
            assert_eq!(top_level(host).as_deref(), want.map(str::as_bytes), "{host:?}");
        }
    }
}
