//! From links as they are written to links that can be fetched.

use std::borrow::Cow;

use encoding_rs::{EncoderResult, Encoding, UTF_8};
use forager_core::url::{FetchUrl, UrlError};
use url::ParseError;

use super::collect::{Raw, Seen};
use super::{Kind, LeftOut, Link, LinkOptions, MAX_UNUSABLE, PageLinks, Unusable, Why};

/// Resolves what was seen, now that the base of the whole page is known.
pub(super) fn resolve(seen: Seen<'_>, complete: bool, page: &FetchUrl, options: &LinkOptions) -> PageLinks {
    let base = base(seen.base.as_deref(), page);
    let left_out = LeftOut { too_many: seen.too_many, too_long: seen.too_long, ..LeftOut::default() };
    let mut found = PageLinks {
        links: Vec::with_capacity(seen.links.len()),
        base,
        title: seen.title.filter(|title| !title.is_empty()),
        canonical: None,
        lang: seen.lang,
        robots_meta: seen.robots_meta,
        left_out,
        unusable: seen.unusable,
        complete,
    };
    let mut room = options.max_total_bytes;
    for raw in seen.links {
        let Some(link) = link(raw, options, &mut found) else { continue };
        let Some(left) = room.checked_sub(link.url.as_str().len()) else {
            found.left_out.too_many += 1;
            continue;
        };
        room = left;
        found.links.push(link);
    }
    found.canonical =
        found.links.iter().find(|link| link.kind == Kind::Canonical).map(|link| link.url.clone());
    found
}

/// What relative links are relative to. A base that cannot be fetched from counts as none.
fn base(href: Option<&str>, page: &FetchUrl) -> FetchUrl {
    href.and_then(|href| page.join(href).ok()).unwrap_or_else(|| page.clone())
}

fn link(raw: Raw<'_>, options: &LinkOptions, found: &mut PageLinks) -> Option<Link> {
    let Raw { href, mut text, mut title, rel, in_header, kind } = raw;
    // What a URL parser strips at both ends.
    let href = href.trim_matches(|letter: char| letter <= ' ');
    if href.starts_with('#') {
        found.left_out.fragments += 1;
        return None;
    }
    let left_out = &mut found.left_out;
    let (count, why) = match join(&found.base, href, options.encoding) {
        Ok(url) if url.as_str().len() <= options.max_url_bytes => {
            text.truncate(text.trim_end().len());
            title.truncate(title.trim_end().len());
            return Some(Link { url, text, title, rel, in_header, kind });
        }
        Ok(_) | Err(UrlError::TooLong { .. }) => (&mut left_out.too_long, Why::TooLong),
        Err(UrlError::Scheme { .. }) => (&mut left_out.other_schemes, Why::Scheme(scheme(href))),
        Err(UrlError::Invalid { cause, .. }) => (&mut left_out.invalid, Why::Malformed(words(cause))),
    };
    *count += 1;
    if found.unusable.len() < MAX_UNUSABLE {
        found.unusable.push(Unusable::new(href, why));
    }
    None
}

/// Where a link leads. Only a query depends on the encoding of the page; the path is in UTF-8 whatever that is.
fn join(base: &FetchUrl, href: &str, encoding: &'static str) -> Result<FetchUrl, UrlError> {
    if href.is_ascii() || !href.contains('?') {
        return base.join(href);
    }
    let encoding = Encoding::for_label(encoding.as_bytes()).map_or(UTF_8, Encoding::output_encoding);
    if encoding == UTF_8 {
        return base.join(href);
    }
    base.join_encoded(href, |query| Cow::Owned(in_encoding(query, encoding)))
}

/// A query in an encoding. A letter that this does not have stands as an escaped reference, as in browsers.
fn in_encoding(mut query: &str, encoding: &'static Encoding) -> Vec<u8> {
    let (mut encoder, mut bytes) = (encoding.new_encoder(), Vec::new());
    loop {
        let room =
            encoder.max_buffer_length_from_utf8_without_replacement(query.len()).unwrap_or(query.len());
        bytes.reserve(room);
        let (result, read) = encoder.encode_from_utf8_to_vec_without_replacement(query, &mut bytes, true);
        query = &query[read..];
        match result {
            EncoderResult::InputEmpty => return bytes,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(letter) => {
                bytes.extend(format!("%26%23{}%3B", u32::from(letter)).into_bytes());
            }
        }
    }
}

/// Schemes that links are often of. Others are not named: anybody can make up as many as they like.
const SCHEMES: [&str; 12] = [
    "mailto",
    "javascript",
    "data",
    "tel",
    "sms",
    "ftp",
    "file",
    "about",
    "blob",
    "geo",
    "whatsapp",
    "callto",
];

fn scheme(href: &str) -> &'static str {
    let name = href.split(':').next().unwrap_or_default();
    SCHEMES.into_iter().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or("another scheme")
}

/// What a parser says, in words that do not depend on its version.
fn words(cause: ParseError) -> &'static str {
    match cause {
        ParseError::EmptyHost => "no host",
        ParseError::InvalidPort => "wrong port",
        ParseError::InvalidIpv4Address | ParseError::InvalidIpv6Address => "wrong address",
        ParseError::IdnaError | ParseError::InvalidDomainCharacter => "wrong host name",
        _ => "no URL",
    }
}
