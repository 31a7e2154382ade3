//! Text of a page, without its references and without its line breaks.

use std::borrow::Cow;

/// The value of an attribute with its character references resolved, by the rules for attributes: in
/// `?a=1&copy=2` there is no copyright sign.
pub(crate) fn unescape_attribute(raw: &str) -> Cow<'_, str> {
    match memchr::memchr(b'&', raw.as_bytes()) {
        Some(_) => htmlize::unescape_attribute(raw),
        None => Cow::Borrowed(raw),
    }
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
    let mut rest = text;
    while !rest.is_empty() {
        // Most text is well spaced, and copied at once.
        let (even, uneven) = rest.split_at(spaced_up_to(rest, into.is_empty() || into.ends_with(' ')));
        let fits = cut(even, max.saturating_sub(into.len()));
        into.push_str(fits);
        if fits.len() < even.len() {
            return;
        }
        let Some(letter) = uneven.chars().next() else { return };
        rest = &uneven[letter.len_utf8()..];
        if !letter.is_whitespace() {
            if into.len() + letter.len_utf8() > max {
                return;
            }
            into.push(letter);
        } else if !into.is_empty() && !into.ends_with(' ') && into.len() < max {
            into.push(' ');
        }
    }
}

/// Whether [`push_words`] would leave the text as it is, with nothing to trim. It may say no of one that has
/// letters which are spelled much like white space.
pub(crate) fn is_well_spaced(text: &str) -> bool {
    spaced_up_to(text, true) == text.len() && !text.ends_with(' ')
}

/// The bytes that white space other than a space begins with.
const MAY_BE_SPACE: [bool; 256] = {
    let mut table = [false; 256];
    let starts = [b'\t', b'\n', 0x0b, 0x0c, b'\r', 0xc2, 0xe1, 0xe2, 0xe3];
    let mut index = 0;
    while index < starts.len() {
        table[starts[index] as usize] = true;
        index += 1;
    }
    table
};

/// How many bytes at the start of a text have no white space but single spaces. Letters whose first
/// byte is that of some white space count as such, for the caller to look at.
fn spaced_up_to(text: &str, mut after_space: bool) -> usize {
    let is_uneven = |byte: &u8| {
        let follows_space = core::mem::replace(&mut after_space, *byte == b' ');
        (follows_space && *byte == b' ') || MAY_BE_SPACE[usize::from(*byte)]
    };
    text.as_bytes().iter().position(is_uneven).unwrap_or(text.len())
}
/// The first `max` bytes of a text, or a few less, so that no letter is cut.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

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
    fn every_white_space_is_known_by_its_first_byte() {
        let spaces = ('\0'..=char::MAX).filter(|letter| letter.is_whitespace() && *letter != ' ');
        for space in spaces {
            let mut bytes = [0; 4];
            space.encode_utf8(&mut bytes);
            assert!(MAY_BE_SPACE[usize::from(bytes[0])], "{space:?}");
        }
    }

    proptest! {
        /// However a text is cut, its words come out as if they were taken letter by letter.
        #[test]
        fn words_are_those_of_the_plain_rule(pieces in vec("[a \t\nšé–あ\u{a0}\u{3000}]{0,12}", 0..6), max in 0..40_usize) {
            let (mut quick, mut plain) = (String::new(), String::new());
            for piece in &pieces {
                push_words(&mut quick, piece, max);
                push_letters(&mut plain, piece, max);
            }
            prop_assert_eq!(quick, plain);
        }
    }

    fn push_letters(into: &mut String, text: &str, max: usize) {
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

    #[test]
    fn a_cut_is_between_letters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("aé", 99), "aé");
    }
}
