//! The same as the reader beside it, on top of a parser by others: what both make of a page must be the same.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{ElementContentHandlers, HandlerResult, Selector, Settings};

use crate::html::{self, Handler, Name, Region, Regions, cut, push_words, selector, unescape};
use crate::links::collect::{
    self, MAX_LANG_BYTES, MAX_RAW_TEXT_BYTES, MAX_ROBOTS_META_BYTES, MAX_ROBOTS_METAS, Raw, parts,
};
use crate::links::{Kind, LinkOptions, MAX_UNUSABLE, RobotsMeta, Unusable, Why, refresh};

/// What was seen so far, and where the parser is.
#[derive(Debug, Default)]
struct State {
    seen: collect::Seen<'static>,
    /// The link whose text is being read.
    open: Option<usize>,
    /// The text since the last tag; a reference may be split between two pieces of it.
    pending: String,
    /// Whether the title of the page is being read.
    title_open: bool,
}

impl std::ops::Deref for State {
    type Target = collect::Seen<'static>;

    fn deref(&self) -> &collect::Seen<'static> {
        &self.seen
    }
}

impl std::ops::DerefMut for State {
    fn deref_mut(&mut self) -> &mut collect::Seen<'static> {
        &mut self.seen
    }
}

struct Selectors {
    document: Selector,
    anchor: Selector,
    inside_anchor: Selector,
    other: Selector,
    title: Selector,
}

static SELECTORS: LazyLock<Selectors> = LazyLock::new(|| Selectors {
    document: selector("html[lang]"),
    anchor: selector("a"),
    inside_anchor: selector("a *"),
    other: selector("area[href],iframe[src],frame[src],link[rel][href],meta[content],base[href]"),
    title: selector("title"),
});

/// Reads a page. The second value tells whether it was read to its end.
pub(super) fn collect(html: &str, options: &LinkOptions) -> (collect::Seen<'static>, bool) {
    let regions = Rc::new(Regions::default());
    let seen = Rc::new(RefCell::new(State::default()));
    let reader = Reader { seen: Rc::clone(&seen), regions: Rc::clone(&regions), options };
    let handlers = regions.handlers(html).into_iter().chain(reader.handlers());
    let settings = handlers.fold(Settings::new(), Settings::append_element_content_handler);
    let complete = html::read(html, settings);
    (seen.take().seen, complete)
}

#[derive(Clone)]
struct Reader<'o> {
    seen: Rc<RefCell<State>>,
    regions: Rc<Regions>,
    options: &'o LinkOptions,
}

impl<'o> Reader<'o> {
    fn handlers(&self) -> Vec<Handler<'o, 'static>> {
        let on_element = |act: fn(&Self, &mut Element<'_, '_>) -> HandlerResult| {
            let reader = self.clone();
            ElementContentHandlers::default()
                .element(move |element: &mut Element<'_, '_>| act(&reader, element))
        };
        // Most only look; those that wait for the end of their element may fail.
        let on_sight = |act: fn(&Self, &Element<'_, '_>)| {
            let reader = self.clone();
            ElementContentHandlers::default().element(move |element: &mut Element<'_, '_>| {
                act(&reader, element);
                Ok(())
            })
        };
        let on_text = |act: fn(&Self, &TextChunk<'_>)| {
            let reader = self.clone();
            move |text: &mut TextChunk<'_>| {
                act(&reader, text);
                Ok(())
            }
        };
        let Selectors { document, anchor, inside_anchor, other, title } = &*SELECTORS;
        vec![
            (Cow::Borrowed(document), on_sight(Self::document)),
            (Cow::Borrowed(other), on_sight(Self::other)),
            (Cow::Borrowed(title), on_sight(Self::title).text(on_text(Self::title_text))),
            (Cow::Borrowed(anchor), on_element(Self::anchor).text(on_text(Self::anchor_text))),
            (Cow::Borrowed(inside_anchor), on_element(Self::inside_anchor)),
        ]
    }

    fn document(&self, element: &Element<'_, '_>) {
        let lang = attribute(element, "lang").map(|lang| cut(lang.trim(), MAX_LANG_BYTES).to_owned());
        let mut seen = self.seen.borrow_mut();
        let known = seen.lang.take();
        seen.lang = known.or(lang.filter(|lang| !lang.is_empty()));
    }

    fn anchor(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        // A link cannot hold another: a new one ends the one before.
        self.seen.borrow_mut().open = None;
        let Some(href) = attribute(element, "href") else { return Ok(()) };
        let Some(index) = self.add(Kind::Anchor, href, element) else { return Ok(()) };
        self.seen.borrow_mut().open = Some(index);
        let seen = Rc::clone(&self.seen);
        element.on_end_tag(Box::new(move |_| {
            seen.borrow_mut().open = None;
            Ok(())
        }))
    }

    fn anchor_text(&self, text: &TextChunk<'_>) {
        let seen = &mut *self.seen.borrow_mut();
        let Some(index) = seen.open.filter(|_| text.text_type() == TextType::Data) else { return };
        if let Some(whole) = whole_text(&mut seen.pending, text) {
            let text = unescape(whole).into_owned();
            push_words(&mut seen.links[index].text, &text, self.options.max_text_bytes);
            seen.pending.clear();
        }
    }

    /// Blocks and pictures stand apart from the text beside them.
    fn inside_anchor(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        let Some(index) = self.seen.borrow().open else { return Ok(()) };
        let name = element.tag_name();
        if parts::is_part_of_a_word(Name::of(&name)) {
            return Ok(());
        }
        self.push_apart(index, "");
        if name == "img" {
            self.push_apart(index, &attribute(element, "alt").unwrap_or_default());
        } else if element.can_have_content() {
            let reader = Self::end_of_block(Rc::clone(&self.seen), index, self.options.max_text_bytes);
            element.on_end_tag(reader)?;
        }
        Ok(())
    }

    fn end_of_block(seen: Rc<RefCell<State>>, index: usize, max: usize) -> lol_html::EndTagHandler<'static> {
        Box::new(move |_| {
            push_words(&mut seen.borrow_mut().links[index].text, " ", max);
            Ok(())
        })
    }

    fn push_apart(&self, index: usize, text: &str) {
        let seen = &mut *self.seen.borrow_mut();
        for piece in [text, " "] {
            push_words(&mut seen.links[index].text, piece, self.options.max_text_bytes);
        }
    }

    fn title(&self, _: &Element<'_, '_>) {
        let seen = &mut *self.seen.borrow_mut();
        seen.title_open = seen.title.is_none() && !self.regions.is_in(Region::Template);
    }

    fn title_text(&self, text: &TextChunk<'_>) {
        let seen = &mut *self.seen.borrow_mut();
        // The title of a drawing (`svg`) is ordinary text to the parser; that of a page is not.
        if !seen.title_open || text.text_type() != TextType::RCData {
            return;
        }
        if let Some(whole) = whole_text(&mut seen.pending, text) {
            let mut title = String::new();
            push_words(&mut title, &unescape(whole), self.options.max_text_bytes);
            seen.pending.clear();
            title.truncate(title.trim_end().len());
            seen.title = Some(title);
            seen.title_open = false;
        }
    }

    fn other(&self, element: &Element<'_, '_>) {
        match element.tag_name().as_str() {
            "base" => self.base(element),
            "meta" => self.meta(element),
            "link" => self.link(element),
            "area" => {
                let href = attribute(element, "href").unwrap_or_default();
                if let Some(index) = self.add(Kind::Area, href, element) {
                    self.push_apart(index, &attribute(element, "alt").unwrap_or_default());
                }
            }
            _ => {
                let src = attribute(element, "src").unwrap_or_default();
                self.add(Kind::Frame, src, element);
            }
        }
    }

    fn base(&self, element: &Element<'_, '_>) {
        let seen = &mut *self.seen.borrow_mut();
        if seen.base.is_none() && !self.regions.is_in(Region::Template) {
            seen.base = attribute(element, "href").map(Cow::Owned);
        }
    }

    fn link(&self, element: &Element<'_, '_>) {
        let rel = element.get_attribute("rel").unwrap_or_default();
        let has = |wanted: &str| rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case(wanted));
        let kind = if has("canonical") {
            Kind::Canonical
        } else if !has("alternate") || has("stylesheet") {
            return;
        } else if element.get_attribute("type").is_some_and(|kind| parts::is_feed(&kind)) {
            Kind::Feed
        } else if element.has_attribute("hreflang") {
            Kind::Alternate
        } else {
            return;
        };
        self.add(kind, attribute(element, "href").unwrap_or_default(), element);
    }

    fn meta(&self, element: &Element<'_, '_>) {
        let content = || attribute(element, "content").unwrap_or_default();
        let equiv = element.get_attribute("http-equiv");
        if equiv.is_some_and(|equiv| equiv.trim().eq_ignore_ascii_case("refresh")) {
            if let Some(target) = refresh::target(&content()) {
                self.add(Kind::Refresh, target.to_owned(), element);
            }
            return;
        }
        let Some(name) = element.get_attribute("name") else { return };
        let name = name.trim().to_ascii_lowercase();
        let is_for_us = name == "robots" || name.eq_ignore_ascii_case(&self.options.product_token);
        let seen = &mut *self.seen.borrow_mut();
        if is_for_us && seen.robots_meta.len() < MAX_ROBOTS_METAS && !self.regions.is_in(Region::Template) {
            let content = cut(&content(), MAX_ROBOTS_META_BYTES).to_owned();
            seen.robots_meta.push(RobotsMeta { agent: name, content });
        }
    }

    /// Notes a link; tells its index, unless it is one too many or out of sight.
    fn add(&self, kind: Kind, href: String, element: &Element<'_, '_>) -> Option<usize> {
        if self.regions.is_in(Region::Template) {
            return None;
        }
        let seen = &mut *self.seen.borrow_mut();
        if href.len() > self.options.max_url_bytes {
            seen.too_long += 1;
            if seen.unusable.len() < MAX_UNUSABLE {
                seen.unusable.push(Unusable::new(&href, Why::TooLong));
            }
            return None;
        }
        if seen.links.len() >= self.options.max_links {
            seen.too_many += 1;
            return None;
        }
        let mut title = String::new();
        if let Some(raw) = attribute(element, "title") {
            push_words(&mut title, &raw, self.options.max_text_bytes);
        }
        let rel = element.get_attribute("rel").map(|rel| parts::relation(&rel)).unwrap_or_default();
        let in_header = self.regions.is_in_header();
        seen.links.push(Raw { href: Cow::Owned(href), text: String::new(), title, rel, in_header, kind });
        Some(seen.links.len() - 1)
    }
}

/// All text up to the next tag, once its last piece is there.
fn whole_text<'p>(pending: &'p mut String, piece: &TextChunk<'_>) -> Option<&'p str> {
    let room = MAX_RAW_TEXT_BYTES.saturating_sub(pending.len());
    pending.push_str(cut(piece.as_str(), room));
    piece.last_in_text_node().then_some(pending.as_str())
}

fn attribute(element: &Element<'_, '_>, name: &str) -> Option<String> {
    element.get_attribute(name).map(|raw| htmlize::unescape_attribute(raw).into_owned())
}
