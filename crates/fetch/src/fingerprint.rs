//! What a page is known by: its exact bytes, and its content without what always changes.
//!
//! The content of a page is its words, in their order. Where lines break does not count, so that
//! another layout of the same words is the same content; headings count as any words do. Not
//! counted:
//!
//! - scripts, styles, comments, `template`, `noscript`, form fields, attributes;
//! - the header, navigation, asides and footer of the page, wherever there is anything else;
//! - times, dates with times, "3 minutes ago", "generated in 0.03 s", session ids and other long
//!   random tokens ([`clock`] has the list). A date without a time counts: it is news when the date
//!   of a hearing moves.
//! - where links lead: their addresses carry session ids and tracking, and a new link brings its
//!   text. Who watches addresses compares the exact fingerprint.

pub mod clock;
mod content;
mod form;

use core::fmt;

use lol_html::Selector;

pub use form::Form;

use crate::html::cut;
use content::Region;

/// The rules by which content is told. Fingerprints of two versions are not to be compared.
pub const RULES: u32 = 1;

/// How much of the text is kept for showing differences. The fingerprint covers all of it.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The longest selector.
const MAX_SELECTOR_BYTES: usize = 1024;

/// What a page is known by. Each is the first 128 bits of a BLAKE3 hash, in hexadecimal: enough
/// that two of 10¹⁵ pages are never taken for one by chance, and half as long to store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// Of the bytes of the body.
    pub exact: String,
    /// Of its content; the same as `exact` for what is not text.
    pub content: String,
}

impl Fingerprint {
    /// That of bytes that are what they are: a file, an address.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let exact = shortened(blake3::hash(bytes));
        Self { content: exact.clone(), exact }
    }
}

/// The part of a body that counts as its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What the selector chose.
    Selected,
    /// `main`.
    Main,
    /// `article`, all of them.
    Article,
    /// The page without its header, navigation, asides and footer.
    Body,
    /// All of the page, as it has nothing else.
    Whole,
    /// The lines of a text that is not HTML.
    Text,
    /// The bytes of what is not text.
    Bytes,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Selected => "what the selector chose",
            Self::Main => "main",
            Self::Article => "article",
            Self::Body => "page without header, navigation and footer",
            Self::Whole => "whole page",
            Self::Text => "text",
            Self::Bytes => "bytes",
        })
    }
}

/// A CSS selector that narrows what counts as content.
#[derive(Clone, Debug)]
pub struct ContentSelector(Selector);

/// Why a text cannot be used as a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// It is not one, or of a kind that cannot be matched while the page streams by.
    #[error("{text:?} cannot be used as a selector: {cause}")]
    Invalid {
        /// The text.
        text: String,
        /// What the parser says.
        cause: String,
    },
    /// It is too long.
    #[error("a selector of {bytes} bytes is too long; at most {MAX_SELECTOR_BYTES} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl ContentSelector {
    /// Reads a selector: names, `.class`, `#id`, `[attribute]`, `>`, descendants, lists, `:not` and
    /// `:nth-child`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_SELECTOR_BYTES {
            return Err(SelectorError::TooLong { bytes: text.len() });
        }
        let invalid = |cause: lol_html::errors::SelectorError| SelectorError::Invalid {
            text: text.to_owned(),
            cause: cause.to_string(),
        };
        text.parse().map(Self).map_err(invalid)
    }
}

/// A fingerprint with what it was taken of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// What counted as content. Not [`Part::Selected`] although a selector was given means that
    /// nothing matched it.
    pub part: Part,
    /// The content, line by line, for [`difference`](crate::difference); empty for bytes.
    pub lines: String,
    /// Whether `lines` is only the beginning.
    pub cut: bool,
    /// Whether the page was read to its end, as in [`links`](crate::links::PageLinks::complete).
    pub complete: bool,
}

/// Takes the fingerprint of a body. `text` is the body decoded; it is not looked at for bytes.
///
/// ```
/// # use forager_fetch::fingerprint::{Form, take};
/// let at_ten = "<p>Fee: 20 euro</p><p>10:00:01</p><script>nonce=1</script>";
/// let at_noon = "<p>Fee: 20 euro</p><p>12:00:00</p><script>nonce=2</script>";
/// let [ten, noon] = [at_ten, at_noon].map(|html| take(html.as_bytes(), html, Form::Html, None));
/// assert_ne!(ten.fingerprint.exact, noon.fingerprint.exact);
/// assert_eq!(ten.fingerprint.content, noon.fingerprint.content);
/// ```
pub fn take(body: &[u8], text: &str, form: Form, selector: Option<&ContentSelector>) -> Taken {
    let exact = shortened(blake3::hash(body));
    let (part, lines, complete) = match form {
        Form::Binary => {
            let fingerprint = Fingerprint { content: exact.clone(), exact };
            let lines = String::new();
            return Taken { fingerprint, part: Part::Bytes, lines, cut: false, complete: true };
        }
        Form::Text => (Part::Text, text_lines(text), true),
        Form::Html => html_lines(text, selector),
    };
    let content = hash_of_words(&lines);
    let kept = cut(&lines, MAX_KEPT_BYTES).len();
    let is_cut = kept < lines.len();
    let mut lines = lines;
    lines.truncate(kept);
    Taken { fingerprint: Fingerprint { exact, content }, part, lines, cut: is_cut, complete }
}

fn shortened(hash: blake3::Hash) -> String {
    hash.to_hex()[..32].to_owned()
}

/// The hash of the words: a line break is as good as a space.
fn hash_of_words(lines: &str) -> String {
    // In one piece: then many blocks are hashed at once.
    shortened(blake3::hash(lines.replace('\n', " ").as_bytes()))
}

fn text_lines(text: &str) -> String {
    let mut lines = String::new();
    text.lines().for_each(|line| push_line(&mut lines, line));
    lines
}

/// Adds a line without what always changes, unless nothing is left of it.
fn push_line(lines: &mut String, line: &str) {
    let line = clock::without(line);
    if !line.is_empty() {
        lines.push_str(&line);
        lines.push('\n');
    }
}

/// The lines of a page that count, and of which part they are.
fn html_lines(html: &str, selector: Option<&ContentSelector>) -> (Part, String, bool) {
    let page = content::read(html, selector.map(|ContentSelector(selector)| selector));
    let part = [Part::Selected, Part::Main, Part::Article, Part::Body]
        .into_iter()
        .find(|part| page.has(*part))
        .unwrap_or(Part::Whole);
    (part, page.lines_of(part), page.complete)
}

impl Part {
    /// Whether a line from these regions belongs to the part.
    fn takes(self, region: Region) -> bool {
        match self {
            Self::Selected => region.selected,
            Self::Main => region.main && !region.beside,
            Self::Article => region.article && !region.beside,
            Self::Body => !region.beside,
            Self::Whole | Self::Text | Self::Bytes => true,
        }
    }
}
