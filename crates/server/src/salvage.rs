//! What is left of a message that cannot be read, so that its stream can go on.
//!
//! The transport has brought such a message whole: what is wrong is within. What is left of it is a message again, of
//! which nothing is taken in but what is beyond doubt, and which is acknowledged under the name it came with, if that
//! can be read.

use prost::Message as _;
use prost::encoding::{WireType, decode_key};

use crate::codec::{INFO, content, count};
use crate::limits::MAX_MESSAGE_PARTS;
use crate::proto::{DiscoveredBatch, UrlInfo, UrlItem};

/// The bytes of what is left; none of messages that are not acknowledged, which their callers are told of as a whole,
/// and of batches with so many items that not even their statuses should be made.
pub(crate) fn salvaged(name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match name {
        "URLItem" => Some(item(bytes).encode_to_vec()),
        "DiscoveredBatch" => batch(bytes).map(|batch| batch.encode_to_vec()),
        _ => None,
    }
}

/// An item that says nothing, under its name: what it was given, or its URL.
fn item(bytes: &[u8]) -> UrlItem {
    let id = text(bytes, 3).filter(|id| !id.is_empty());
    let url = |kind| text(last(last(bytes, kind)?, 1)?, 1);
    UrlItem { id: id.or_else(|| url(1)).or_else(|| url(2)).unwrap_or_default(), ..UrlItem::default() }
}

/// A batch in which an item that cannot be read is an empty one, which is skipped. Where it is not even clear how far
/// each item goes, all of them are, and one more stands for what is unclear.
fn batch(bytes: &[u8]) -> Option<DiscoveredBatch> {
    let mut fields = Fields(bytes);
    let found = fields.by_ref().filter(|(tag, _)| *tag == 2).map(|(_, bytes)| bytes);
    let found: Vec<&[u8]> = found.take(MAX_MESSAGE_PARTS).collect();
    if found.len() >= MAX_MESSAGE_PARTS {
        return None;
    }
    let mut items: Vec<UrlInfo> = Vec::with_capacity(found.len() + 1);
    if fields.0.is_empty() {
        let mut left = MAX_MESSAGE_PARTS - found.len();
        items.extend(found.iter().map(|bytes| info(bytes, &mut left).unwrap_or_default()));
    } else {
        items.resize_with(found.len() + 1, UrlInfo::default);
    }
    Some(DiscoveredBatch { id: text(bytes, 1).unwrap_or_default(), items })
}

/// A URL that can be read and has no more parts than are left.
fn info(bytes: &[u8], left: &mut usize) -> Option<UrlInfo> {
    let now_left = left.checked_sub(count(bytes, INFO)?)?;
    let info = UrlInfo::decode(bytes).ok()?;
    *left = now_left;
    Some(info)
}

/// The last text under a number.
fn text(bytes: &[u8], tag: u32) -> Option<String> {
    String::from_utf8(last(bytes, tag)?.to_vec()).ok()
}

fn last(bytes: &[u8], tag: u32) -> Option<&[u8]> {
    Fields(bytes).filter(|(found, _)| *found == tag).last().map(|(_, content)| content)
}

/// The fields that have a length, as far as they can be told apart. What is left then is nothing, or cannot be.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.0.is_empty() {
            let mut bytes = self.0;
            let (tag, form) = decode_key(&mut bytes).ok()?;
            let content = content(&mut bytes, form)?;
            self.0 = bytes;
            if form == WireType::LengthDelimited {
                return Some((tag, content));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BAD: &[u8] = b"\xff\xfe";

    /// A batch in pieces, the name and the URLs that are left of it.
    type Case = (&'static str, Vec<Vec<u8>>, &'static str, &'static [&'static str]);

    /// A field with a length.
    fn field(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = u8::try_from(content.len()).ok().filter(|len| *len < 0x80);
        [&[tag << 3 | 2, len.unwrap_or_default()], content].concat()
    }

    fn url(url: &[u8]) -> Vec<u8> {
        field(1, url)
    }

    #[test]
    fn an_item_is_known_by_what_can_be_read_of_it() {
        let found = |content: &[u8]| field(1, &field(1, content));
        let known = |content: &[u8]| field(2, &field(1, content));
        let bad_key = |url_field: Vec<u8>| [url_field, field(2, BAD)].concat();
        let cases: [(&str, Vec<u8>, &str); 8] = [
            ("its name", [found(&url(BAD)), field(3, b"mine")].concat(), "mine"),
            ("the last of two", [field(3, b"one"), field(3, b"two"), vec![0x80]].concat(), "two"),
            ("its URL", found(&bad_key(url(b"http://a.example/"))), "http://a.example/"),
            ("the same where it is known", known(&bad_key(url(b"b"))), "b"),
            ("its URL, for it has no name", [field(3, b""), found(&bad_key(url(b"c")))].concat(), "c"),
            ("nothing, for neither can be read", [field(3, BAD), found(&url(BAD))].concat(), ""),
            ("what stands before the end", [field(3, b"mine"), vec![0x0a, 0x7f]].concat(), "mine"),
            ("noise", vec![0xff; 20], ""),
        ];
        for (name, bytes, id) in cases {
            assert_eq!(item(&bytes), UrlItem { id: id.to_owned(), ..UrlItem::default() }, "{name}");
        }
    }

    #[test]
    fn of_a_batch_stays_what_is_beyond_doubt() {
        let good = field(2, &url(b"good"));
        let bad = field(2, &url(BAD));
        let id = field(1, b"b");
        let cases: [Case; 5] = [
            (
                "one item is bad",
                vec![id.clone(), good.clone(), bad, good.clone()],
                "b",
                &["good", "", "good"],
            ),
            (
                "an item is cut off within",
                vec![good.clone(), field(2, &[0x0a, 9]), id.clone()],
                "b",
                &["good", ""],
            ),
            ("its name is bad", vec![field(1, BAD), good.clone()], "", &["good"]),
            ("it is cut off", vec![id.clone(), good.clone(), vec![0x12, 0x20, 0x0a]], "b", &["", ""]),
            ("a group may hide anything", vec![good, vec![0x7b, 0x7c], id], "", &["", ""]),
        ];
        for (name, parts, id, urls) in cases {
            let batch = batch(&parts.concat()).unwrap();
            let found: Vec<&str> = batch.items.iter().map(|info| info.url.as_str()).collect();
            assert_eq!((batch.id.as_str(), found.as_slice()), (id, urls), "{name}");
        }
    }

    #[test]
    fn a_batch_of_too_many_items_is_not_made() {
        assert_eq!(batch(&[0x12, 0].repeat(MAX_MESSAGE_PARTS)), None);
    }
}
