//! Dot segments behind what looks like the drive of a Windows path.
//!
//! A path may not go up over the drive in a file URL, and the parser has it so in every URL: of `/a:/../b` it makes `/a:/b`.
//! By the standard, and to browsers, that is `/b` where the scheme is http. Such paths are resolved here, from what was
//! written.

use url::{ParseError, Position, Url};

use super::FetchUrl;

/// Whether the parser may have left out to go up: it never goes up over a drive, which then is still there.
pub(super) fn may_be_left(url: &Url) -> bool {
    let is_drive =
        |part: &[u8]| matches!(part, [b'/', letter, b':' | b'|', b'/'] if letter.is_ascii_alphabetic());
    url.path().as_bytes().windows(4).any(is_drive)
}

/// The URL that was parsed from `text`, a link on `base` if there is one, with the path that it has by the standard.
pub(super) fn resolve(url: &Url, text: &str, base: Option<&FetchUrl>) -> Result<Url, ParseError> {
    let path = without_dots(&written_path(text, base));
    Url::parse(&[&url[..Position::BeforePath], &path, &url[Position::AfterPath..]].concat())
}

/// The path of a web URL as it is written, from its first slash on.
fn written_path(text: &str, base: Option<&FetchUrl>) -> String {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    // What the parser passes over.
    let text = text.trim_matches(|c| c <= ' ').replace(['\t', '\n', '\r'], "");
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let scheme = ["http", "https"].into_iter().find(|scheme| {
        let before = text.split_once(':').map(|(before, _)| before);
        before.is_some_and(|before| before.eq_ignore_ascii_case(scheme))
    });
    let rest = scheme.map_or(text, |scheme| &text[scheme.len() + 1..]);
    let after_slashes = rest.trim_start_matches(is_slash);
    let slashes = rest.len() - after_slashes.len();
    match base.filter(|base| slashes < 2 && scheme.is_none_or(|scheme| scheme == base.scheme())) {
        Some(base) if rest.is_empty() => base.path().to_owned(),
        Some(_) if slashes == 1 => rest.to_owned(),
        Some(base) => {
            let folder = base.path().rfind('/').map_or("", |slash| &base.path()[..=slash]);
            [folder, rest].concat()
        }
        None => after_slashes.find(is_slash).map_or("/", |path| &after_slashes[path..]).to_owned(),
    }
}

/// A path without `.` and `..`, also where these are written in escapes.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split(['/', '\\']).skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
            ".." => {
                kept.pop();
            }
            "." => {}
            _ => {
                kept.push(segment);
                continue;
            }
        }
        // The folder that it leads to has a slash at its end.
        if is_last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Links with all that a path is parted by.
    fn links() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "/",
            "/",
            "\\",
            "a",
            "B",
            "a:",
            "C|",
            ":",
            "..",
            ".",
            "%2e",
            "%2E.",
            "?",
            "#",
            "http:",
            "HTTPS://",
            "//",
            "x.example",
            "\t",
            " ",
            "é",
        ]);
        prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Where there is no drive, the parser and we agree, so that what is written is found and taken apart as it does.
        #[test]
        fn other_paths_are_as_parsed(link in links(), base in prop::sample::select(vec![
            "http://a.example/", "https://a.example/b/c/d?e", "http://a.example/b//c/",
        ])) {
            let hidden = link.replace("a:", "aa").replace("B:", "BB").replace('|', "c").replace("\t:", "\t");
            let base = FetchUrl::parse(base).unwrap_or_else(|error| panic!("{error}"));
            let joined = Url::parse(base.as_str()).and_then(|base| base.join(&hidden));
            for (base, parsed) in [(None, Url::parse(&hidden)), (Some(&base), joined)] {
                if let Ok(url) = parsed && matches!(url.scheme(), "http" | "https") {
                    prop_assert_eq!(resolve(&url, &hidden, base), Ok(url), "{:?}", hidden);
                }
            }
        }
    }
}
