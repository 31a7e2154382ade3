//! Whether the path of a rule matches a URL.
//!
//! Both sides are brought into one form first, so that `/~joe`, `/%7Ejoe` and `/%7ejoe` are one
//! path. What remains is a search for the pieces between the asterisks, one after the other. Each
//! search goes on where the one before it ended and takes linear time, so the whole does too.

use std::borrow::Cow;

use forager_core::url::FetchUrl;
use memchr::memmem;

/// Reserved characters that separate nothing in a path or query: they mean the same escaped.
const HARMLESS: &[u8] = b"!'(),;:@[]";

/// Reserved characters that separate: escaped they are data, plain they are structure.
const SEPARATING: &[u8] = b"/?#&=+";

const ESCAPED_SLASH: &[u8] = b"%2F";

/// The path of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Normalised; an asterisk in it stands for anything, a literal one is `%2A`.
    text: Vec<u8>,
    /// Whether it must reach the end of the URL: it ends with `$`.
    anchored: bool,
    /// Whether it has a question mark, behind which slashes and their escapes are the same.
    reaches_query: bool,
}

impl Pattern {
    /// Reads the path of a rule. An empty one matches no URL.
    ///
    /// A path without its first slash is taken to have it: what was meant is clear, and no URL
    /// would match otherwise.
    pub(super) fn parse(path: &[u8]) -> Option<Self> {
        let (path, anchored) = path.strip_suffix(b"$").map_or((path, false), |path| (path, true));
        let mut text = match path.first()? {
            b'/' | b'*' => Vec::new(),
            _ => vec![b'/'],
        };
        text.append(&mut normalised(path, Asterisk::Any));
        let reaches_query = text.contains(&b'?');
        Some(Self { text: plain_slashes_in_query(&text).into_owned(), anchored, reaches_query })
    }

    /// How specific it is, in octets.
    pub(super) fn length(&self) -> usize {
        self.text.len() + usize::from(self.anchored)
    }

    pub(super) fn matches(&self, target: &Target) -> bool {
        let target = if self.reaches_query { &target.plain_query } else { &target.written };
        matches(&self.text, self.anchored, target, memmem::find)
    }
}

/// The path and query of a URL, as rules are compared with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    written: Vec<u8>,
    /// With plain slashes for escaped ones in the query: `?to=https%3A%2F%2Fx` is `?to=https://x`.
    plain_query: Vec<u8>,
}

impl Target {
    pub(super) fn of(url: &FetchUrl) -> Self {
        let mut text = url.path().to_owned();
        if let Some(query) = url.query() {
            text.push('?');
            text.push_str(query);
        }
        let written = normalised(text.as_bytes(), Asterisk::Literal);
        Self { plain_query: plain_slashes_in_query(&written).into_owned(), written }
    }
}

/// What an asterisk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asterisk {
    /// In a rule it stands for anything.
    Any,
    /// In a URL it is a character.
    Literal,
}

/// The one form of a path: what needs no escape plain, all else escaped in capitals.
fn normalised(path: &[u8], asterisk: Asterisk) -> Vec<u8> {
    let mut text = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [byte, after @ ..] = rest {
        if let Some(octet) = escaped_octet(rest) {
            push(&mut text, octet, is_unreserved(octet) || HARMLESS.contains(&octet));
            rest = &rest[3..];
            continue;
        }
        rest = after;
        let is_wildcard = *byte == b'*' && asterisk == Asterisk::Any;
        let is_plain = is_unreserved(*byte) || HARMLESS.contains(byte) || SEPARATING.contains(byte);
        push(&mut text, *byte, is_plain || is_wildcard);
    }
    text
}

/// The octet that an escape such as `%7E` at the start of `text` stands for.
fn escaped_octet(text: &[u8]) -> Option<u8> {
    let &[b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? * 16 + digit(low)?)
}

fn push(text: &mut Vec<u8>, octet: u8, is_plain: bool) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if is_plain {
        text.push(octet);
    } else {
        text.extend([b'%', DIGITS[usize::from(octet >> 4)], DIGITS[usize::from(octet & 15)]]);
    }
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// In a query a slash separates nothing, so there an escaped one is a plain one.
fn plain_slashes_in_query(text: &[u8]) -> Cow<'_, [u8]> {
    let query = memchr::memchr(b'?', text).unwrap_or(text.len());
    if memmem::find(&text[query..], ESCAPED_SLASH).is_none() {
        return Cow::Borrowed(text);
    }
    let mut plain = text[..query].to_vec();
    let mut rest = &text[query..];
    while let Some(at) = memmem::find(rest, ESCAPED_SLASH) {
        plain.extend_from_slice(&rest[..at]);
        plain.push(b'/');
        rest = &rest[at + ESCAPED_SLASH.len()..];
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// Whether `pattern` matches the start of `target`, or all of it if `anchored`.
///
/// Taking the first place for each piece is enough: it leaves the most for those that follow.
fn matches(
    pattern: &[u8],
    anchored: bool,
    target: &[u8],
    mut find: impl FnMut(&[u8], &[u8]) -> Option<usize>,
) -> bool {
    let mut pieces = pattern.split(|&byte| byte == b'*');
    let Some(mut rest) = target.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !anchored || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if anchored && pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = find(rest, piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_have_one_form() {
        let cases = [
            ("plain", "/a/b?c=d&e", "/a/b?c=d&e"),
            ("unreserved escaped", "/%62%61%7A%7e%2d%5F%2E", "/baz~-_."),
            ("capitals in escapes", "/%c3%bc", "/%C3%BC"),
            ("beyond ASCII", "/ü", "/%C3%BC"),
            ("a separator escaped", "/a%2fb%3fc%26d%3de%2Bf%23", "/a%2Fb%3Fc%26d%3De%2Bf%23"),
            ("a harmless one escaped", "/a%3Bb%3ac%40d", "/a;b:c@d"),
            ("a dollar", "/a$b%24", "/a%24b%24"),
            ("an asterisk", "/a*b%2a", "/a%2Ab%2A"),
            ("no escape", "/100%/%g1/%2", "/100%25/%25g1/%252"),
            ("an escaped percent sign", "/100%25", "/100%25"),
            ("a space and a quote", "/a b\"", "/a%20b%22"),
        ];
        for (name, path, want) in cases {
            let text = normalised(path.as_bytes(), Asterisk::Literal);
            assert_eq!(String::from_utf8_lossy(&text), want, "{name}");
        }
    }

    /// Every search starts where the last one ended, and there are no more of them than pieces. So
    /// with a linear search the work is at most the length of both texts.
    #[test]
    fn many_wildcards_take_linear_work() {
        let target = format!("/{}", "a".repeat(1_999)).into_bytes();
        let patterns = [
            ("no piece is there", "/*b".repeat(40)),
            ("all but the last", format!("/{}b", "*a".repeat(40))),
            ("long pieces", format!("/{}b", "*aaaaaaaaaaaaaaaaaaaa".repeat(40))),
        ];
        for (name, pattern) in patterns {
            let (mut searches, mut passed) = (0, 0);
            let found = matches(pattern.as_bytes(), false, &target, |rest, piece| {
                assert_eq!(rest.len(), target.len() - 1 - passed, "{name}: searched from the last place");
                searches += 1;
                let at = memmem::find(rest, piece)?;
                passed += at + piece.len();
                Some(at)
            });
            assert!(!found, "{name}");
            assert!((1..=40).contains(&searches) && passed < target.len(), "{name}: {searches}, {passed}");
        }
    }

    /// By its definition: an asterisk takes nothing, or one more octet.
    fn by_definition(pattern: &[u8], anchored: bool, target: &[u8]) -> bool {
        match (pattern, target) {
            ([], rest) => !anchored || rest.is_empty(),
            ([b'*', after @ ..], []) => by_definition(after, anchored, &[]),
            ([b'*', after @ ..], [_, rest @ ..]) => {
                by_definition(after, anchored, target) || by_definition(pattern, anchored, rest)
            }
            ([one, after @ ..], [other, rest @ ..]) => one == other && by_definition(after, anchored, rest),
            (_, []) => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn greedy_search_is_the_definition(pattern in "/[ab*]{0,8}", target in "/[ab]{0,8}", anchored: bool) {
            let (pattern, target) = (pattern.as_bytes(), target.as_bytes());
            prop_assert_eq!(
                matches(pattern, anchored, target, memmem::find),
                by_definition(pattern, anchored, target)
            );
        }

        #[test]
        fn the_form_of_a_form_is_itself(path: Vec<u8>) {
            for asterisk in [Asterisk::Any, Asterisk::Literal] {
                let once = normalised(&path, asterisk);
                prop_assert_eq!(normalised(&once, asterisk), once);
            }
        }
    }
}
