//! A page, tag by tag.
//!
//! As the HTML standard reads it, as far as that can be told without building the tree. Text and attributes
//! are slices of the page, with their character references as they are written.

use memchr::{memchr, memmem};

use super::foreign::Namespaces;
use super::raw::Content;
use super::tag::{Name, Tag};

/// The longest tag without end that is a mistake of its author. More than that is no page any more.
const MAX_OPEN_TAG_BYTES: usize = 2 * 1024 * 1024;

/// A piece of a page. Comments are none.
pub(crate) enum Token<'h> {
    /// Text, all of it up to the next tag or comment.
    Text(&'h str),
    /// The content of the element before it, which is text and nothing else: of a `title`, a `script`.
    Raw(&'h str),
    /// A start tag.
    Start(Element<'h>),
    /// An end tag.
    End(Name),
}

/// An element that begins.
pub(crate) struct Element<'h> {
    pub(crate) tag: Tag<'h>,
    /// Whether it stays open until its end tag.
    pub(crate) has_content: bool,
}

/// The pieces of a page.
pub(crate) struct Tokens<'h> {
    html: &'h str,
    at: usize,
    namespaces: Namespaces,
    /// That of the element that was opened just now.
    content: Content,
    /// Whether the page was left before its end.
    pub(crate) gave_up: bool,
}

impl<'h> Tokens<'h> {
    pub(crate) fn of(html: &'h str) -> Self {
        Self { html, at: 0, namespaces: Namespaces::default(), content: Content::Markup, gave_up: false }
    }

    fn rest(&self) -> &'h str {
        &self.html[self.at..]
    }

    /// So many of the next bytes.
    fn take(&mut self, length: usize) -> &'h str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    /// Reads a start tag (`is_end`: an end tag) whose name is next.
    fn tag(&mut self, is_end: bool) -> Option<Token<'h>> {
        let Some((tag, length)) = Tag::read(self.rest()) else {
            self.gave_up = self.rest().len() > MAX_OPEN_TAG_BYTES;
            self.at = self.html.len();
            return None;
        };
        self.at += length;
        if is_end {
            self.namespaces.end(tag.name);
            return Some(Token::End(tag.name));
        }
        let was_html = self.namespaces.is_html();
        self.namespaces.start(&tag);
        let is_html = self.namespaces.is_html();
        if was_html && is_html {
            self.content = Content::of(tag.name);
        }
        let has_content = if is_html { !is_void(tag.name) } else { !tag.closes_itself };
        Some(Token::Start(Element { tag, has_content }))
    }

    /// Skips what begins with `<!` or `<?`, or is an end tag without a name.
    fn skip(&mut self) {
        let rest = self.rest().as_bytes();
        let found = if let Some(comment) = rest.strip_prefix(b"<!--") {
            comment_length(comment).map(|length| b"<!--".len() + length)
        } else if rest.starts_with(b"<![CDATA[") && !self.namespaces.is_html() {
            memmem::find(rest, b"]]>").map(|end| end + 3)
        } else {
            memchr(b'>', rest).map(|end| end + 1)
        };
        self.at += found.unwrap_or(rest.len());
    }
}

impl<'h> Iterator for Tokens<'h> {
    type Item = Token<'h>;

    fn next(&mut self) -> Option<Token<'h>> {
        let content = std::mem::replace(&mut self.content, Content::Markup);
        let raw = content.length(self.rest().as_bytes());
        if raw > 0 {
            return Some(Token::Raw(self.take(raw)));
        }
        loop {
            match text_length(self.rest().as_bytes()) {
                0 => {}
                length => return Some(Token::Text(self.take(length))),
            }
            match self.rest().as_bytes() {
                [] => return None,
                [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.at += 2;
                    return self.tag(true);
                }
                [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    self.at += 1;
                    return self.tag(false);
                }
                _ => self.skip(),
            }
        }
    }
}

/// How much of what comes is text: a `<` that begins nothing is part of it.
fn text_length(html: &[u8]) -> usize {
    let is_markup = |at: &usize| matches!(html[*at..], [_, b'!' | b'?' | b'a'..=b'z' | b'A'..=b'Z', ..] | [_, b'/', _, ..]);
    memchr::memchr_iter(b'<', html).find(is_markup).unwrap_or(html.len())
}

/// How long a comment is, with its end, from what follows `<!--`.
fn comment_length(comment: &[u8]) -> Option<usize> {
    if comment.starts_with(b">") {
        return Some(1);
    }
    if comment.starts_with(b"->") {
        return Some(2);
    }
    let is_end = |at: &usize| comment[..*at].ends_with(b"--") || comment[..*at].ends_with(b"--!");
    memchr::memchr_iter(b'>', comment).find(is_end).map(|at| at + 1)
}

/// Whether an element of HTML has no content, and no end tag.
fn is_void(name: Name) -> bool {
    const VOID: [Name; 17] = Name::each(
        "img br link meta input hr source area base wbr col embed track param basefont bgsound keygen",
    );
    VOID.contains(&name)
}
