//! What the reader of a page meets, as it is written: links are resolved when the base is known.

mod parts;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::{Kind, LinkOptions, MAX_UNUSABLE, Rel, RobotsMeta, Unusable, Why, refresh};
use crate::html::{
    Element, Name, OpenElements, Region, Regions, Tag, Token, Tokens, cut, push_words, unescape,
};
use parts::{A, AREA, BASE, FRAME, HTML, IFRAME, IMG, LINK, META, TITLE};

/// The most `meta` elements for robots that are kept, and the longest one.
const MAX_ROBOTS_METAS: usize = 32;
const MAX_ROBOTS_META_BYTES: usize = 1024;
/// The longest text between two tags that is read.
const MAX_RAW_TEXT_BYTES: usize = 4096;
/// The longest language tag.
const MAX_LANG_BYTES: usize = 64;

/// A link as it is written.
#[derive(Debug)]
pub(super) struct Raw<'h> {
    pub(super) href: Cow<'h, str>,
    pub(super) text: String,
    pub(super) title: String,
    pub(super) rel: Rel,
    pub(super) in_header: bool,
    pub(super) kind: Kind,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen<'h> {
    pub(super) links: Vec<Raw<'h>>,
    pub(super) base: Option<Cow<'h, str>>,
    pub(super) title: Option<String>,
    pub(super) lang: Option<String>,
    pub(super) robots_meta: Vec<RobotsMeta>,
    pub(super) too_many: usize,
    pub(super) too_long: usize,
    pub(super) unusable: Vec<Unusable>,
}

/// Reads a page. The second value tells whether it was read to its end.
pub(super) fn collect<'h>(html: &'h str, options: &LinkOptions) -> (Seen<'h>, bool) {
    let mut reader = Reader {
        seen: Seen::default(),
        regions: Regions::default(),
        elements: OpenElements::default(),
        open: None,
        title_open: false,
        options,
    };
    let mut tokens = Tokens::of(html);
    for token in &mut tokens {
        match token {
            Token::Text(text) => reader.text(text),
            Token::Raw(text) => reader.raw_text(text),
            Token::End(name) => reader.end(name),
            Token::Start(element) => {
                if !reader.start(&element) {
                    return (reader.seen, false);
                }
            }
        }
    }
    (reader.seen, !tokens.gave_up)
}

struct Reader<'h, 'o> {
    seen: Seen<'h>,
    regions: Regions,
    elements: OpenElements<AtEnd>,
    /// The link whose text is being read.
    open: Option<usize>,
    /// Whether the element that began just now is the title of the page.
    title_open: bool,
    options: &'o LinkOptions,
}

/// What the end of an element ends.
#[derive(Default)]
struct AtEnd {
    /// By its name and by its role.
    regions: [Option<Region>; 2],
    link: bool,
    /// A block in a link, which stands apart from the text behind it.
    block: bool,
}

impl<'h> Reader<'h, '_> {
    /// Says no if there are too many elements in each other.
    fn start(&mut self, element: &Element<'h>) -> bool {
        let (tag, mut at_end) = (&element.tag, AtEnd::default());
        if element.has_content {
            at_end.regions[0] = self.regions.by_name(tag.name);
            at_end.regions[1] = tag.raw("role").and_then(Region::by_role);
            at_end.regions.iter().flatten().for_each(|region| self.regions.open(*region));
        }
        self.title_open = false;
        if tag.name == A {
            at_end.link = self.anchor(tag, element.has_content);
        } else {
            self.element(tag);
            at_end.block = self.inside_anchor(tag);
        }
        !element.has_content || self.elements.push(tag.name, at_end)
    }

    fn end(&mut self, name: Name) {
        for at_end in self.elements.close(name) {
            at_end.regions.iter().flatten().for_each(|region| self.regions.close(*region));
            if at_end.link {
                self.open = None;
            }
            if let Some(index) = self.open.filter(|_| at_end.block) {
                push_words(&mut self.seen.links[index].text, " ", self.options.max_text_bytes);
            }
        }
    }

    fn text(&mut self, text: &str) {
        let Some(index) = self.open else { return };
        let text = unescape(cut(text, MAX_RAW_TEXT_BYTES));
        push_words(&mut self.seen.links[index].text, &text, self.options.max_text_bytes);
    }

    fn raw_text(&mut self, text: &str) {
        if self.title_open {
            self.seen.title = Some(self.line(&unescape(cut(text, MAX_RAW_TEXT_BYTES))));
        }
    }

    /// A text in one line, as much as is kept of it.
    fn line(&self, text: &str) -> String {
        let mut line = String::new();
        push_words(&mut line, text, self.options.max_text_bytes);
        line.truncate(line.trim_end().len());
        line
    }

    /// Says whether its end is the end of a link.
    fn anchor(&mut self, tag: &Tag<'h>, has_content: bool) -> bool {
        // A link cannot hold another: a new one ends the one before.
        self.open = None;
        let Some(href) = tag.attribute("href") else { return false };
        self.open = self.add(Kind::Anchor, href, tag).filter(|_| has_content && self.options.texts);
        self.open.is_some()
    }

    /// Blocks and pictures stand apart from the text beside them. Says whether this is one that has an end.
    fn inside_anchor(&mut self, tag: &Tag<'h>) -> bool {
        let Some(index) = self.open.filter(|_| !parts::is_part_of_a_word(tag.name)) else { return false };
        self.push_apart(index, "");
        if tag.name == IMG {
            self.push_apart(index, &tag.attribute("alt").unwrap_or_default());
        }
        true
    }

    fn push_apart(&mut self, index: usize, text: &str) {
        for piece in [text, " "] {
            push_words(&mut self.seen.links[index].text, piece, self.options.max_text_bytes);
        }
    }

    fn element(&mut self, tag: &Tag<'h>) {
        match tag.name {
            HTML => self.document(tag),
            TITLE => self.title_open = self.seen.title.is_none() && !self.is_in_template(),
            BASE => self.base(tag),
            META => self.meta(tag),
            LINK => self.link(tag),
            AREA => {
                let index = tag.attribute("href").and_then(|href| self.add(Kind::Area, href, tag));
                if let Some(index) = index.filter(|_| self.options.texts) {
                    self.push_apart(index, &tag.attribute("alt").unwrap_or_default());
                }
            }
            IFRAME | FRAME => {
                if let Some(src) = tag.attribute("src") {
                    self.add(Kind::Frame, src, tag);
                }
            }
            _ => {}
        }
    }

    fn is_in_template(&self) -> bool {
        self.regions.is_in(Region::Template)
    }

    fn document(&mut self, tag: &Tag<'h>) {
        let lang = || tag.attribute("lang").map(|lang| cut(lang.trim(), MAX_LANG_BYTES).to_owned());
        self.seen.lang = self.seen.lang.take().or_else(|| lang().filter(|lang| !lang.is_empty()));
    }

    fn base(&mut self, tag: &Tag<'h>) {
        if self.seen.base.is_none() && !self.is_in_template() {
            self.seen.base = tag.attribute("href");
        }
    }

    fn link(&mut self, tag: &Tag<'h>) {
        let (Some(rel), Some(href)) = (tag.raw("rel"), tag.attribute("href")) else { return };
        let has = |wanted: &str| rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(wanted));
        let kind = if has("canonical") {
            Kind::Canonical
        } else if !has("alternate") || has("stylesheet") {
            return;
        } else if tag.raw("type").is_some_and(parts::is_feed) {
            Kind::Feed
        } else if tag.raw("hreflang").is_some() {
            Kind::Alternate
        } else {
            return;
        };
        self.add(kind, href, tag);
    }

    fn meta(&mut self, tag: &Tag<'h>) {
        let Some(content) = tag.attribute("content") else { return };
        if tag.raw("http-equiv").is_some_and(|equiv| equiv.trim().eq_ignore_ascii_case("refresh")) {
            if let Some(target) = refresh::target(&content) {
                self.add(Kind::Refresh, Cow::Owned(target.to_owned()), tag);
            }
            return;
        }
        let Some(name) = tag.raw("name").map(str::trim) else { return };
        let is_for_us =
            name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(&self.options.product_token);
        if is_for_us && self.seen.robots_meta.len() < MAX_ROBOTS_METAS && !self.is_in_template() {
            let content = cut(&content, MAX_ROBOTS_META_BYTES).to_owned();
            self.seen.robots_meta.push(RobotsMeta { agent: name.to_ascii_lowercase(), content });
        }
    }

    /// Notes a link; tells its index, unless it is one too many or out of sight.
    fn add(&mut self, kind: Kind, href: Cow<'h, str>, tag: &Tag<'h>) -> Option<usize> {
        if self.is_in_template() {
            return None;
        }
        if href.len() > self.options.max_url_bytes {
            self.seen.too_long += 1;
            if self.seen.unusable.len() < MAX_UNUSABLE {
                self.seen.unusable.push(Unusable::new(&href, Why::TooLong));
            }
            return None;
        }
        if self.seen.links.len() >= self.options.max_links {
            self.seen.too_many += 1;
            return None;
        }
        let title = if self.options.texts { tag.attribute("title") } else { None };
        let title = title.map(|title| self.line(&title)).unwrap_or_default();
        let rel = tag.raw("rel").map(parts::relation).unwrap_or_default();
        let in_header = self.regions.is_in_header();
        self.seen.links.push(Raw { href, text: String::new(), title, rel, in_header, kind });
        Some(self.seen.links.len() - 1)
    }
}
