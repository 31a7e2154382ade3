//! From links as they are written to links that can be fetched.

use forager_core::url::{FetchUrl, UrlError};
use url::ParseError;

use super::collect::{Raw, Seen};
use super::{Kind, LeftOut, Link, LinkOptions, MAX_UNUSABLE, PageLinks, Unusable, Why};

/// Resolves what was seen, now that the base of the whole page is known.
pub(super) fn resolve(seen: Seen, complete: bool, page: &FetchUrl, options: &LinkOptions) -> PageLinks {
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

fn link(raw: Raw, options: &LinkOptions, found: &mut PageLinks) -> Option<Link> {
    let Raw { href, mut text, mut title, rel, in_header, kind } = raw;
    // What a URL parser strips at both ends.
    let href = href.trim_matches(|letter: char| letter <= ' ');
    if href.starts_with('#') {
        found.left_out.fragments += 1;
        return None;
    }
    let left_out = &mut found.left_out;
    let (count, why) = match found.base.join(href) {
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
