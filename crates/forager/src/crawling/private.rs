//! Names and passwords in URLs: they are never sent, and nobody should find them in a file either.

use std::borrow::Cow;

use forager_core::url::FetchUrl;
use forager_crawl::{Found, PageLine};

/// A URL without the name and password in it.
pub(crate) fn public(url: &str) -> Cow<'_, str> {
    if !has_user(url) {
        return url.into();
    }
    let Ok(parsed) = FetchUrl::parse(url) else { return url.into() };
    match parsed.as_str().split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let host = rest[..end].rfind('@')? + 1;
        Some(format!("{scheme}://{}", &rest[host..]))
    }) {
        Some(public) => public.into(),
        None => url.into(),
    }
}

/// Whether there is an `@` before the path: so it is looked for in every line, quickly.
fn has_user(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.bytes().take_while(|byte| !matches!(byte, b'/' | b'?' | b'#')).any(|byte| byte == b'@')
}

/// A page as it may be written down.
pub(crate) fn page(page: &PageLine) -> Cow<'_, PageLine> {
    let others = [&page.seed, &page.redirect, &page.redirect_before, &page.trail.via];
    if !has_user(&page.url) && !others.into_iter().flatten().any(|url| has_user(url)) {
        return Cow::Borrowed(page);
    }
    let mut page = page.clone();
    page.url = public(&page.url).into_owned();
    for url in [&mut page.seed, &mut page.redirect, &mut page.redirect_before, &mut page.trail.via] {
        *url = url.as_deref().map(|url| public(url).into_owned());
    }
    Cow::Owned(page)
}

/// Links as they may be written down.
pub(crate) fn links(found: &[Found]) -> Cow<'_, [Found]> {
    if !found.iter().any(|link| has_user(&link.url)) {
        return Cow::Borrowed(found);
    }
    found.iter().map(|link| Found { url: public(&link.url).into_owned(), ..link.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_left_out() {
        let table = [
            ("http://a.test/x@y", "http://a.test/x@y"),
            ("http://a.test/?m=me@b.test", "http://a.test/?m=me@b.test"),
            ("http://user@a.test/", "http://a.test/"),
            ("https://user:secret@a.test:8080/x?y=z@w", "https://a.test:8080/x?y=z@w"),
            ("mailto:me@a.test", "mailto:me@a.test"),
        ];
        for (url, want) in table {
            assert_eq!(public(url), want);
        }
    }
}
