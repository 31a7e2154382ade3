//! What reading links and reading content have in common: how a page is taken apart, within which bounds, and its text.
//!
//! Links are read with `tokens`, which makes no copy of anything: every page is read so. Content is read with `lol_html`,
//! which knows selectors; `links` has a property that holds both against each other.

mod foreign;
mod open;
mod raw;
mod regions;
mod tag;
mod text;
mod tokens;

use lol_html::{HtmlRewriter, MemorySettings, Settings};

pub(crate) use open::OpenElements;
pub(crate) use regions::{Region, Regions};
pub(crate) use tag::{Name, Tag};
pub(crate) use text::{cut, is_well_spaced, push_words, unescape};
pub(crate) use tokens::{Element, Token, Tokens};

/// What the parser may keep at once: the stack of open elements, and a tag without end. It allows
/// for about ten thousand levels of nesting; browsers stop at some hundreds.
const PARSER_BYTES: usize = 2 * 1024 * 1024;

/// A handler with the selector that says when it is asked.
pub(crate) type Handler<'h, 's> =
    (std::borrow::Cow<'s, lol_html::Selector>, lol_html::ElementContentHandlers<'h>);

/// Parses a page, and tells whether it was read to its end. Where the parser gives up, what the
/// handlers saw until then stands.
pub(crate) fn read(html: &str, settings: Settings<'_, '_>) -> bool {
    let memory = MemorySettings::new().with_max_allowed_memory_usage(PARSER_BYTES);
    // In one piece: then nothing is copied but what is left over at the end. The output is the
    // input, in slices; nobody wants it.
    let mut parser =
        HtmlRewriter::new(settings.with_memory_settings(memory).with_strict(false), |_: &[u8]| {});
    parser.write(html.as_bytes()).is_ok() && parser.end().is_ok()
}

/// A selector of ours. They are fixed, and a test reads them all.
pub(crate) fn selector(text: &'static str) -> lol_html::Selector {
    #[expect(clippy::expect_used, reason = "fixed text, covered by tests")]
    text.parse().expect("our selectors are well-formed")
}
