//! From what was sent to text.

use std::borrow::Cow;
use std::io::Read as _;

use encoding_rs::{Encoding, UTF_8};
use flate2::read::MultiGzDecoder;

use super::{MAX_BYTES, Trouble};

const GZIP: &[u8] = &[0x1f, 0x8b];

/// How far into a file its declaration of an encoding is looked for.
const MAX_DECLARATION_BYTES: usize = 256;

/// The bytes of a file, unpacked if it is a gzip, and what keeps it from being whole.
///
/// However well it is compressed, no more than [`MAX_BYTES`] come of it.
pub(super) fn unpacked(body: &[u8]) -> (Cow<'_, [u8]>, Option<Trouble>) {
    if !body.starts_with(GZIP) {
        let whole = body.len() <= MAX_BYTES;
        return (Cow::Borrowed(&body[..body.len().min(MAX_BYTES)]), (!whole).then_some(Trouble::TooLong));
    }
    let mut bytes = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    // What was unpacked before an error stays.
    let result = MultiGzDecoder::new(body).take(limit).read_to_end(&mut bytes);
    let trouble = match result {
        _ if bytes.len() > MAX_BYTES => Some(Trouble::TooLong),
        Ok(_) => None,
        Err(error) => Some(Trouble::Packing(error.to_string())),
    };
    bytes.truncate(MAX_BYTES);
    (Cow::Owned(bytes), trouble)
}

/// The text that bytes stand for. A byte-order mark counts most, then what the server says, then
/// what the file says; else it is UTF-8, as the protocol has it.
pub(super) fn text<'a>(bytes: &'a [u8], content_type: Option<&str>) -> (Cow<'a, str>, Option<Trouble>) {
    let encoding = content_type
        .and_then(charset)
        .or_else(|| declared(bytes))
        .and_then(Encoding::for_label)
        .unwrap_or(UTF_8);
    let (text, encoding, is_broken) = encoding.decode(bytes);
    (text, is_broken.then(|| Trouble::Encoding(encoding.name())))
}

fn charset(content_type: &str) -> Option<&[u8]> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).as_bytes())
    })
}

/// The encoding in `<?xml version="1.0" encoding="iso-8859-1"?>`.
fn declared(bytes: &[u8]) -> Option<&[u8]> {
    let start = &bytes[..bytes.len().min(MAX_DECLARATION_BYTES)];
    let declaration = start.trim_ascii_start().strip_prefix(b"<?xml")?;
    let declaration = &declaration[..memchr::memchr(b'>', declaration)?];
    let name = memchr::memmem::find(declaration, b"encoding")?;
    let value =
        declaration[name + "encoding".len()..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, value) = value.split_first()?;
    Some(&value[..memchr::memchr(*quote, value)?])
}
