//! From links as they are written to links that can be fetched.

use forager_core::url::{FetchUrl, UrlError};

use super::collect::{Raw, Seen};
use super::{Kind, LeftOut, Link, LinkOptions, PageLinks};

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
        complete,
    };
    let mut room = options.max_total_bytes;
    for raw in seen.links {
        let Some(link) = link(raw, &found.base, options, &mut found.left_out) else { continue };
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

fn link(raw: Raw, base: &FetchUrl, options: &LinkOptions, left_out: &mut LeftOut) -> Option<Link> {
    let Raw { href, mut text, mut title, rel, in_header, kind } = raw;
    // What a URL parser strips at both ends.
    let href = href.trim_matches(|letter: char| letter <= ' ');
    if href.starts_with('#') {
        left_out.fragments += 1;
        return None;
    }
    let count = match base.join(href) {
        Ok(url) if url.as_str().len() <= options.max_url_bytes => {
            text.truncate(text.trim_end().len());
            title.truncate(title.trim_end().len());
            return Some(Link { url, text, title, rel, in_header, kind });
        }
        Ok(_) | Err(UrlError::TooLong { .. }) => &mut left_out.too_long,
        Err(UrlError::Scheme { .. }) => &mut left_out.other_schemes,
        Err(UrlError::Invalid { .. }) => &mut left_out.invalid,
    };
    *count += 1;
    None
}
