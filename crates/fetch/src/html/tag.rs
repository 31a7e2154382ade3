//! A tag, read where it stands in the page: nothing of it is copied.

use std::borrow::Cow;

/// The name of an element, in any case, as one number.
///
/// Names are compared for every tag of a page. Two that come to the same number are taken for one: that does not happen
/// by chance, and whoever makes them up confuses nothing but his own page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name(u64);

impl Name {
    /// The number of a name.
    pub(crate) const fn of(name: &str) -> Self {
        Self::between(name.as_bytes(), 0, name.len())
    }

    /// Those of several names with a space between each two.
    pub(crate) const fn each<const COUNT: usize>(names: &str) -> [Self; COUNT] {
        let (bytes, mut all) = (names.as_bytes(), [Self(0); COUNT]);
        let (mut index, mut start, mut end) = (0, 0, 0);
        while end <= bytes.len() {
            if end == bytes.len() || bytes[end] == b' ' {
                all[index] = Self::between(bytes, start, end);
                (index, start) = (index + 1, end + 1);
            }
            end += 1;
        }
        assert!(index == COUNT, "there are as many as it says");
        all
    }

    /// FNV-1a of the lower case.
    const fn between(bytes: &[u8], mut start: usize, end: usize) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        while start < end {
            hash = (hash ^ bytes[start].to_ascii_lowercase() as u64).wrapping_mul(0x0100_0000_01b3);
            start += 1;
        }
        Self(hash)
    }
}

/// A start or end tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag<'h> {
    pub(crate) name: Name,
    /// Whether it ends with `/>`. In HTML that means nothing.
    pub(super) closes_itself: bool,
    attributes: Attributes<'h>,
    /// The first letters of the attributes, one bit for each: most that are asked for are not there.
    initials: u32,
}

impl<'h> Tag<'h> {
    /// Reads a tag of which `html` has all after its `<` or `</`; with how long it is. None if it never ends.
    pub(super) fn read(html: &'h str) -> Option<(Self, usize)> {
        let at = html.bytes().position(|byte| is_space(byte) || matches!(byte, b'/' | b'>'))?;
        let (name, attributes) = (Name::of(&html[..at]), Attributes { html, at });
        let (mut rest, mut initials) = (attributes, 0);
        loop {
            match rest.step()? {
                Step::Attribute(name, _) => initials |= initial(name),
                Step::End { closes_itself } => {
                    return Some((Self { name, closes_itself, attributes, initials }, rest.at));
                }
            }
        }
    }

    /// An attribute as it is written, the first of that name; empty if it has no value.
    pub(crate) fn raw(&self, wanted: &str) -> Option<&'h str> {
        if self.initials & initial(wanted) == 0 {
            return None;
        }
        let mut attributes = self.attributes;
        while let Some(Step::Attribute(name, value)) = attributes.step() {
            if name.eq_ignore_ascii_case(wanted) {
                return Some(value);
            }
        }
        None
    }

    /// An attribute with its character references resolved.
    pub(crate) fn attribute(&self, name: &str) -> Option<Cow<'h, str>> {
        self.raw(name).map(super::text::unescape_attribute)
    }
}

/// The attributes of a tag, from one place on.
#[derive(Clone, Copy, Debug)]
struct Attributes<'h> {
    html: &'h str,
    at: usize,
}

enum Step<'h> {
    Attribute(&'h str, &'h str),
    End { closes_itself: bool },
}

impl<'h> Attributes<'h> {
    /// The next attribute, or the end of the tag; none if the page ends before.
    fn step(&mut self) -> Option<Step<'h>> {
        let mut after_slash = false;
        loop {
            match self.byte()? {
                b'>' => {
                    self.at += 1;
                    return Some(Step::End { closes_itself: after_slash });
                }
                b'/' => after_slash = true,
                byte if is_space(byte) => after_slash = false,
                _ => break,
            }
            self.at += 1;
        }
        // A name may begin with an equals sign, and with nothing else that would end it.
        let name = self.until(1, |byte| is_space(byte) || matches!(byte, b'/' | b'>' | b'='))?;
        self.skip_spaces();
        if self.byte()? != b'=' {
            return Some(Step::Attribute(name, ""));
        }
        self.at += 1;
        self.skip_spaces();
        Some(Step::Attribute(name, self.value()?))
    }

    fn value(&mut self) -> Option<&'h str> {
        match self.byte()? {
            quote @ (b'"' | b'\'') => {
                self.at += 1;
                let end = memchr::memchr(quote, &self.html.as_bytes()[self.at..])?;
                let value = &self.html[self.at..self.at + end];
                self.at += end + 1;
                Some(value)
            }
            b'>' => Some(""),
            _ => self.until(0, |byte| is_space(byte) || byte == b'>'),
        }
    }

    fn byte(&self) -> Option<u8> {
        self.html.as_bytes().get(self.at).copied()
    }

    fn skip_spaces(&mut self) {
        while self.byte().is_some_and(is_space) {
            self.at += 1;
        }
    }

    /// What comes before the first of these bytes, of which the first `least` are not asked.
    fn until(&mut self, least: usize, is_end: impl Fn(u8) -> bool) -> Option<&'h str> {
        let (start, from) = (self.at, self.at + least);
        self.at = from + self.html.as_bytes()[from..].iter().position(|byte| is_end(*byte))?;
        Some(&self.html[start..self.at])
    }
}

/// The bit of the first letter of a name, in any case.
fn initial(name: &str) -> u32 {
    name.bytes().next().map_or(0, |letter| 1 << (letter & 0x1f))
}

/// White space as tags have it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_browsers_do() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], bool);
        let cases: [Case; 15] = [
            ("a>", &[], false),
            ("a/>", &[], true),
            ("a / >", &[], false),
            ("a href=x>", &[("href", "x")], false),
            ("a href=x/>", &[("href", "x/")], false),
            ("a href = 'x y' >", &[("href", "x y")], false),
            ("a HREF=\"x>y\"/>", &[("HREF", "x>y")], true),
            ("a href=x'y>", &[("href", "x'y")], false),
            ("a a=1b=2 c>", &[("a", "1b=2"), ("c", "")], false),
            ("a a='1'b='2'>", &[("a", "1"), ("b", "2")], false),
            ("a a=>", &[("a", "")], false),
            ("a =a=b>", &[("=a", "b")], false),
            ("a a\"b c'>", &[("a\"b", ""), ("c'", "")], false),
            ("a a/b>", &[("a", ""), ("b", "")], false),
            ("a é=ö>", &[("é", "ö")], false),
        ];
        for (html, want, closes_itself) in cases {
            let (tag, length) = Tag::read(html).unwrap();
            assert_eq!((length, tag.closes_itself), (html.len(), closes_itself), "{html}");
            assert_eq!(tag.name, Name::of("A"), "{html}");
            for (name, value) in want {
                let other_case = name.to_ascii_uppercase();
                assert_eq!((tag.raw(name), tag.raw(&other_case)), (Some(*value), Some(*value)), "{html}");
            }
            assert_eq!(tag.raw("hreflang"), None, "{html}");
        }
        assert_eq!(Name::each("a B"), [Name::of("a"), Name::of("b")]);
        for unfinished in ["a", "a ", "a b", "a b=", "a b='", "a b='c>", "a b=c", "a /"] {
            assert!(Tag::read(unfinished).is_none(), "{unfinished}");
        }
    }
}
