//! What is found in a file while it is read.

use core::ops::ControlFlow;

use forager_core::url::{self, FetchUrl};

use super::{
    Item, Kind, MAX_ITEMS, MAX_PROBLEMS, MAX_URL_CHARS, Position, Problem, Reason, Sitemap, Trouble, date,
    may_list,
};

/// How much of a wrong text is told, in characters.
const MAX_SHOWN_CHARS: usize = 200;

/// One entry, as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) list: List,
    pub(super) url: Option<&'a str>,
    pub(super) date: Option<&'a str>,
    /// Where it starts.
    pub(super) offset: usize,
}

/// Which list an entry belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Urls,
    Sitemaps,
}

/// A sitemap in the making. What it is made from is bounded here.
pub(super) struct Findings<'a> {
    text: &'a str,
    base: &'a FetchUrl,
    sitemap: Sitemap,
    /// Where the last problem was, and the line and the start of the line there: most follow one
    /// another, so that lines are counted once.
    last: (usize, usize, usize),
}

impl<'a> Findings<'a> {
    pub(super) fn new(text: &'a str, base: &'a FetchUrl) -> Self {
        Self { text, base, sitemap: Sitemap::default(), last: (0, 1, 0) }
    }

    pub(super) fn finish(self) -> Sitemap {
        self.sitemap
    }

    /// Settles what sort of file it is. The first word counts.
    pub(super) fn set_kind(&mut self, kind: Kind) {
        if self.sitemap.kind == Kind::Unknown {
            self.sitemap.kind = kind;
        }
    }

    /// Takes an entry of XML; a URL in it may be relative.
    pub(super) fn add(&mut self, entry: Entry<'_>) -> ControlFlow<()> {
        let Some(text) = entry.url.filter(|url| !url.is_empty()) else {
            self.note(Some(entry.offset), Trouble::NoUrl);
            return ControlFlow::Continue(());
        };
        if text.chars().nth(MAX_URL_CHARS).is_some() {
            self.note(Some(entry.offset), Trouble::UrlTooLong);
            return ControlFlow::Continue(());
        }
        match self.base.join(text) {
            Ok(url) => {
                self.look_at(text, &url, entry.offset);
                self.push(entry, url)
            }
            Err(error) => {
                self.note(Some(entry.offset), Trouble::BadUrl(error.to_string()));
                ControlFlow::Continue(())
            }
        }
    }

    /// A sitemap has whole URLs of its own site. A feed may have others.
    fn look_at(&mut self, text: &str, url: &FetchUrl, offset: usize) {
        if matches!(self.sitemap.kind, Kind::Rss | Kind::Atom) {
            return;
        }
        if url::check(text).is_err() {
            let (written, url) = (shown(text), shown(url.as_str()));
            self.remark(offset, Trouble::Relative { written, url });
        }
        let base = self.base;
        let is_near = (url.scheme(), url.host(), url.port()) == (base.scheme(), base.host(), base.port());
        if !is_near && matches!(may_list(base, url, false).why, Reason::Elsewhere { .. }) {
            self.remark(offset, Trouble::Elsewhere { url: url.clone() });
        }
    }

    fn remark(&mut self, offset: usize, what: Trouble) {
        if self.sitemap.remarks.len() >= MAX_PROBLEMS {
            self.sitemap.further_remarks += 1;
            return;
        }
        let at = Some(self.position(offset));
        self.sitemap.remarks.push(Problem { at, what });
    }

    fn push(&mut self, entry: Entry<'_>, url: FetchUrl) -> ControlFlow<()> {
        let is_full = match entry.list {
            List::Urls => self.sitemap.urls.len() >= MAX_ITEMS,
            List::Sitemaps => self.sitemap.sitemaps.len() >= MAX_ITEMS,
        };
        if is_full {
            self.note(Some(entry.offset), Trouble::TooMany);
            return ControlFlow::Break(());
        }
        let date = entry.date.filter(|date| !date.is_empty());
        let last_modified = date.and_then(date::parse);
        if let (Some(date), None) = (date, last_modified) {
            self.note(Some(entry.offset), Trouble::BadDate(shown(date)));
        }
        let list = match entry.list {
            List::Urls => &mut self.sitemap.urls,
            List::Sitemaps => &mut self.sitemap.sitemaps,
        };
        list.push(Item { url, last_modified });
        ControlFlow::Continue(())
    }

    /// Keeps a problem at a place in the text, or of the whole file.
    pub(super) fn note(&mut self, offset: Option<usize>, what: Trouble) {
        if self.sitemap.problems.len() >= MAX_PROBLEMS {
            self.sitemap.further_problems += 1;
            return;
        }
        let at = offset.map(|offset| self.position(offset));
        self.sitemap.problems.push(Problem { at, what });
    }

    fn position(&mut self, offset: usize) -> Position {
        let offset = offset.min(self.text.len());
        let (from, mut line, mut line_start) = if self.last.0 <= offset { self.last } else { (0, 1, 0) };
        for newline in memchr::memchr_iter(b'\n', &self.text.as_bytes()[from..offset]) {
            (line, line_start) = (line + 1, from + newline + 1);
        }
        self.last = (offset, line, line_start);
        Position { line, column: offset - line_start + 1 }
    }
}

/// The start of a text, for people.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN_CHARS).collect()
}
