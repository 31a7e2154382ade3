//! The lines of a page, each with the regions it stands in.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::{Element, TextChunk, TextType};
use lol_html::{DocumentContentHandlers, ElementContentHandlers, HandlerResult, Selector, Settings};

use super::{Part, push_line};
use crate::html::{self, Handler, Regions, push_words, selector, unescape};

/// With less text than this, in bytes, a `main` or `article` is a frame around the content that
/// stands elsewhere.
const MIN_PART_BYTES: usize = 200;

/// Where a line stands.
#[expect(clippy::struct_excessive_bools, reason = "a line may stand in all of them at once")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) selected: bool,
    pub(super) main: bool,
    pub(super) article: bool,
    /// In the header, navigation, an aside or the footer of the page.
    pub(super) beside: bool,
}

/// The text of a page.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Lines that follow each other in the same regions, together; without what always changes.
    runs: Vec<(Region, String)>,
    /// Whether an element matched the selector.
    matched: bool,
    pub(super) complete: bool,
}

impl Page {
    /// Whether there is enough of this part to be the content.
    pub(super) fn has(&self, part: Part) -> bool {
        let bytes = || self.of(part).map(str::len).sum::<usize>();
        match part {
            // Who selects knows better, even if it is empty.
            Part::Selected => self.matched,
            Part::Main | Part::Article => bytes() >= MIN_PART_BYTES,
            _ => bytes() > 0,
        }
    }

    pub(super) fn lines_of(&self, part: Part) -> String {
        self.of(part).collect()
    }

    fn of(&self, part: Part) -> impl Iterator<Item = &str> {
        self.runs.iter().filter(move |(region, _)| part.takes(*region)).map(|(_, lines)| lines.as_str())
    }

    fn push(&mut self, region: Region, line: &str) {
        if self.runs.last().is_none_or(|(last, _)| *last != region) {
            self.runs.push((region, String::new()));
        }
        if let Some((_, lines)) = self.runs.last_mut() {
            push_line(lines, line);
        }
    }
}

/// What was read since the last line break.
#[derive(Debug, Default)]
struct Line {
    page: Page,
    region: Region,
    text: String,
    /// The text since the last tag; a reference may be split between two pieces of it.
    pending: String,
}

impl Line {
    fn end(&mut self) {
        if !self.text.is_empty() {
            self.page.push(self.region, &self.text);
            self.text.clear();
        }
    }

    fn push(&mut self, region: Region, text: &str) {
        if self.region != region {
            self.end();
            self.region = region;
        }
        push_words(&mut self.text, text, usize::MAX);
    }
}

static BLOCKS: LazyLock<Selector> = LazyLock::new(|| {
    selector(
        "address,article,aside,blockquote,body,br,caption,dd,details,dialog,div,dl,dt,fieldset,figcaption,\
         figure,footer,form,h1,h2,h3,h4,h5,h6,header,hr,legend,li,main,menu,nav,ol,optgroup,option,p,pre,\
         section,select,summary,table,tbody,td,tfoot,th,thead,tr,ul",
    )
});

/// Reads a page.
pub(super) fn read(html: &str, chosen: Option<&Selector>) -> Page {
    let reader = Reader::default();
    let handlers = reader.regions.handlers(html).into_iter().chain(reader.handlers(chosen));
    let settings = handlers.fold(Settings::new(), Settings::append_element_content_handler);
    let on_text = reader.clone();
    let on_text = DocumentContentHandlers::default().text(move |text: &mut TextChunk<'_>| {
        on_text.text(text);
        Ok(())
    });
    let complete = html::read(html, settings.append_document_content_handler(on_text));
    let mut line = reader.line.take();
    line.end();
    Page { complete, ..line.page }
}

#[derive(Clone, Default)]
struct Reader {
    line: Rc<RefCell<Line>>,
    regions: Rc<Regions>,
    /// How many elements that match the selector are open.
    selected: Rc<Cell<u32>>,
}

impl Reader {
    fn handlers<'s>(&self, chosen: Option<&'s Selector>) -> Vec<Handler<'static, 's>> {
        let reader = self.clone();
        let blocks = ElementContentHandlers::default()
            .element(move |element: &mut Element<'_, '_>| reader.block(element));
        let mut handlers = vec![(Cow::Borrowed(&*BLOCKS), blocks)];
        if let Some(chosen) = chosen {
            let reader = self.clone();
            let select = ElementContentHandlers::default()
                .element(move |element: &mut Element<'_, '_>| reader.select(element));
            handlers.push((Cow::Borrowed(chosen), select));
        }
        handlers
    }

    fn block(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        // The cells of a row stay in one line, apart from each other.
        let is_cell = matches!(element.tag_name().as_str(), "td" | "th");
        let apart =
            |line: &mut Line| if is_cell { push_words(&mut line.text, " ", usize::MAX) } else { line.end() };
        apart(&mut self.line.borrow_mut());
        if is_cell || !element.can_have_content() {
            return Ok(());
        }
        let line = Rc::clone(&self.line);
        element.on_end_tag(Box::new(move |_| {
            line.borrow_mut().end();
            Ok(())
        }))
    }

    fn select(&self, element: &mut Element<'_, '_>) -> HandlerResult {
        self.line.borrow_mut().page.matched = true;
        if !element.can_have_content() {
            return Ok(());
        }
        self.selected.set(self.selected.get().saturating_add(1));
        let selected = Rc::clone(&self.selected);
        element.on_end_tag(Box::new(move |_| {
            selected.set(selected.get().saturating_sub(1));
            Ok(())
        }))
    }

    fn text(&self, piece: &TextChunk<'_>) {
        // Text of scripts, styles, titles and form fields is of other types.
        if !matches!(piece.text_type(), TextType::Data | TextType::PlainText) {
            return;
        }
        if self.regions.is_in(html::Region::Template) {
            return;
        }
        let line = &mut *self.line.borrow_mut();
        if line.pending.is_empty() && memchr::memchr(b'&', piece.as_str().as_bytes()).is_none() {
            line.push(self.region(), piece.as_str());
            return;
        }
        line.pending.push_str(piece.as_str());
        if piece.last_in_text_node() {
            let raw = core::mem::take(&mut line.pending);
            line.push(self.region(), &unescape(&raw));
            line.pending = raw;
            line.pending.clear();
        }
    }

    fn region(&self) -> Region {
        let is_in = |region| self.regions.is_in(region);
        Region {
            selected: self.selected.get() > 0,
            main: is_in(html::Region::Main),
            article: is_in(html::Region::Article),
            beside: self.regions.is_in_header() || is_in(html::Region::Aside) || is_in(html::Region::Footer),
        }
    }
}
