//! Text of a page, without its references and without its line breaks.

use std::borrow::Cow;

use lol_html::html_content::Element;

/// An attribute with its character references resolved, by the rules for attributes: in
/// `?a=1&copy=2` there is no copyright sign.
pub(crate) fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    let raw = element.get_attribute(name)?;
    if memchr::memchr(b'&', raw.as_bytes()).is_none() {
        return Some(raw);
    }
    Some(htmlize::unescape_attribute(raw).into_owned())
}

/// Text with its character references resolved.
pub(crate) fn unescape(raw: &str) -> Cow<'_, str> {
    match memchr::memchr(b'&', raw.as_bytes()) {
        Some(_) => htmlize::unescape(raw),
        None => Cow::Borrowed(raw),
    }
}

/// Appends text with each run of white space as one space, up to `max` bytes in all. White space
/// at the start is kept as one space if there is something before it, so that pieces join as they
/// would on the page; at the end it is left for the caller to trim.
pub(crate) fn push_words(into: &mut String, text: &str, max: usize) {
    for letter in text.chars() {
        if letter.is_whitespace() {
            if !into.is_empty() && !into.ends_with(' ') && into.len() < max {
                into.push(' ');
            }
        } else if into.len() + letter.len_utf8() <= max {
            into.push(letter);
        } else {
            return;
        }
    }
}

/// The first `max` bytes of a text, or a few less, so that no letter is cut.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_as_on_the_page() {
        let cases: [(&str, &[&str], usize, &str); 6] = [
            ("one piece", &["  a \n\t b  "], 99, "a b "),
            ("pieces without space", &["a", "b"], 99, "ab"),
            ("pieces with spaces", &["a ", " b"], 99, "a b"),
            ("no-break space", &["a\u{a0}b"], 99, "a b"),
            ("bounded", &["abc", "def"], 4, "abcd"),
            ("no half letters", &["aé"], 2, "a"),
        ];
        for (name, pieces, max, want) in cases {
            let mut text = String::new();
            for piece in pieces {
                push_words(&mut text, piece, max);
            }
            assert_eq!(text, want, "{name}");
        }
    }

    #[test]
    fn a_cut_is_between_letters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 99), "aé");
    }
}
