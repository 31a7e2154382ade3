//! Sitemaps and feeds in XML.
//!
//! Elements are known by their name and by being right below their entry with its prefix, whatever
//! that is. So the `image:loc` of an image, or all that news and video say, is passed over, and
//! files whose namespaces are wrong or missing can still be read.

use core::ops::ControlFlow;

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::name::QName;
use quick_xml::reader::Reader;

use super::findings::{Entry, Findings, List, shown};
use super::{Kind, Trouble};

/// How deep elements may be nested. Sitemaps need 3 levels, and their extensions a few more.
const MAX_DEPTH: usize = 64;

/// How deep entries may stand: `rss`, `channel`, `item`.
const MAX_ENTRY_DEPTH: usize = 3;

/// How much of the text of an element is kept, in bytes: more than any URL may have.
const MAX_FIELD_BYTES: usize = 16 * 1024;

/// How many attributes of an element are looked at.
const MAX_ATTRIBUTES: usize = 32;

/// Reads as much as is well-formed.
pub(super) fn read(text: &str, findings: &mut Findings<'_>) {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    // Many leave the ampersands of their URLs as they are.
    config.allow_dangling_amp = true;
    config.expand_empty_elements = true;
    let mut walk = Walk::default();
    loop {
        let offset = position(reader.buffer_position());
        let flow = match reader.read_event() {
            Ok(Event::Eof) => {
                walk.end(offset, findings);
                return;
            }
            Ok(event) => walk.take(&event, offset, findings),
            Err(error) => {
                let offset = position(reader.error_position());
                findings.note(Some(offset), Trouble::Xml(shown(&error.to_string())));
                walk.keep_entry(findings);
                return;
            }
        };
        if flow.is_break() {
            return;
        }
    }
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// A language that lists URLs.
struct Format {
    kind: Kind,
    entries: &'static [(&'static str, List)],
    fields: &'static [(&'static str, Field)],
}

/// What is read of an entry. Where there are several of a sort, the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Url,
    /// The URL for when there is no other.
    SpareUrl,
    Date,
    SpareDate,
}

const SITEMAP_ENTRIES: &[(&str, List)] = &[("url", List::Urls), ("sitemap", List::Sitemaps)];
const SITEMAP_FIELDS: &[(&str, Field)] = &[("loc", Field::Url), ("lastmod", Field::Date)];
const RSS_FIELDS: &[(&str, Field)] = &[
    ("link", Field::Url),
    ("guid", Field::SpareUrl),
    ("pubDate", Field::Date),
    // Of Dublin Core, which RSS 1.0 has instead.
    ("dc:date", Field::SpareDate),
];
const ATOM_FIELDS: &[(&str, Field)] =
    &[("link", Field::Url), ("updated", Field::Date), ("published", Field::SpareDate)];

impl Format {
    /// The one whose documents have this root.
    fn of_root(name: &str) -> Option<Self> {
        let (kind, entries, fields): (_, &'static [_], _) = match name.to_ascii_lowercase().as_str() {
            "urlset" => (Kind::UrlSet, SITEMAP_ENTRIES, SITEMAP_FIELDS),
            "sitemapindex" => (Kind::Index, SITEMAP_ENTRIES, SITEMAP_FIELDS),
            "rss" | "rdf" => (Kind::Rss, &[("item", List::Urls)], RSS_FIELDS),
            "feed" => (Kind::Atom, &[("entry", List::Urls)], ATOM_FIELDS),
            _ => return None,
        };
        Some(Self { kind, entries, fields })
    }
}

/// Where in a document we are.
#[derive(Default)]
struct Walk {
    depth: usize,
    format: Option<Format>,
    entry: Option<OpenEntry>,
    /// The element of the entry whose text is being read.
    field: Option<(Field, String)>,
}

struct OpenEntry {
    list: List,
    depth: usize,
    offset: usize,
    prefix: String,
    /// By [`Field`].
    texts: [Option<String>; 4],
}

impl Walk {
    fn take(&mut self, event: &Event<'_>, offset: usize, findings: &mut Findings<'_>) -> ControlFlow<()> {
        match event {
            Event::Start(element) => return self.start(element, offset, findings),
            Event::End(_) => return self.close(findings),
            Event::Text(text) => self.push(text),
            Event::CData(text) => self.push(text),
            Event::GeneralRef(entity) => self.push_entity(entity, offset, findings),
            // Comments, instructions, and document types with whatever they declare.
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn start(
        &mut self,
        element: &BytesStart<'_>,
        offset: usize,
        findings: &mut Findings<'_>,
    ) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            findings
                .note(Some(offset), Trouble::Xml(format!("more than {MAX_DEPTH} elements in one another")));
            self.keep_entry(findings);
            return ControlFlow::Break(());
        }
        if self.depth == 1 {
            return self.start_document(element, offset, findings);
        }
        match &self.entry {
            None => self.start_entry(element, offset),
            Some(entry) if self.depth == entry.depth + 1 => self.start_field(element),
            Some(_) => {}
        }
        ControlFlow::Continue(())
    }

    fn start_document(
        &mut self,
        element: &BytesStart<'_>,
        offset: usize,
        findings: &mut Findings<'_>,
    ) -> ControlFlow<()> {
        let (prefix, name) = parts(element.name());
        self.format = Format::of_root(name);
        let Some(format) = &self.format else {
            let root = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}:{name}") };
            findings.note(Some(offset), Trouble::Unknown(format!("its root is {:?}", shown(&root))));
            return ControlFlow::Break(());
        };
        findings.set_kind(format.kind);
        ControlFlow::Continue(())
    }

    fn start_entry(&mut self, element: &BytesStart<'_>, offset: usize) {
        let (prefix, name) = parts(element.name());
        let Some(format) = self.format.as_ref().filter(|_| self.depth <= MAX_ENTRY_DEPTH) else { return };
        let Some(&(_, list)) = format.entries.iter().find(|(entry, _)| entry.eq_ignore_ascii_case(name))
        else {
            return;
        };
        let (depth, prefix) = (self.depth, prefix.to_owned());
        self.entry = Some(OpenEntry { list, depth, offset, prefix, texts: Default::default() });
    }

    fn start_field(&mut self, element: &BytesStart<'_>) {
        let (Some(format), Some(entry)) = (&self.format, &mut self.entry) else { return };
        let (prefix, name) = parts(element.name());
        let is_named = |field: &str| match field.split_once(':') {
            Some((its_prefix, field)) => its_prefix == prefix && field.eq_ignore_ascii_case(name),
            None => entry.prefix == prefix && field.eq_ignore_ascii_case(name),
        };
        let Some(&(_, field)) = format.fields.iter().find(|(field, _)| is_named(field)) else { return };
        if format.kind == Kind::Atom && field == Field::Url {
            if let Some(url) = atom_link(element) {
                entry.texts[field as usize].get_or_insert(url);
            }
            return;
        }
        let is_only_a_name =
            || attribute(element, "isPermaLink").is_some_and(|value| value.trim() == "false");
        if field == Field::SpareUrl && is_only_a_name() {
            return;
        }
        self.field = Some((field, String::new()));
    }

    fn push(&mut self, text: &str) {
        let is_in_field = self.entry.as_ref().is_some_and(|entry| self.depth == entry.depth + 1);
        let Some((_, field)) = self.field.as_mut().filter(|_| is_in_field) else { return };
        // Without spaces in front, what is cut off here is too long to be a URL or a date.
        let text = if field.is_empty() { text.trim_start() } else { text };
        let room = MAX_FIELD_BYTES.saturating_sub(field.len());
        field.push_str(&text[..text.floor_char_boundary(room)]);
    }

    /// A character by its number or one of the five of XML. All others are left as they are, so
    /// that nothing grows.
    fn push_entity(&mut self, entity: &BytesRef<'_>, offset: usize, findings: &mut Findings<'_>) {
        if self.field.is_none() {
            return;
        }
        if let Ok(Some(character)) = entity.resolve_char_ref() {
            self.push(character.encode_utf8(&mut [0; 4]));
        } else if let Some(text) = quick_xml::escape::resolve_predefined_entity(entity) {
            self.push(text);
        } else {
            findings.note(Some(offset), Trouble::UnknownEntity(shown(entity)));
            for part in ["&", entity, ";"] {
                self.push(part);
            }
        }
    }

    fn close(&mut self, findings: &mut Findings<'_>) -> ControlFlow<()> {
        let depth = self.depth;
        self.depth = depth.saturating_sub(1);
        let Some(entry) = &mut self.entry else { return ControlFlow::Continue(()) };
        if depth == entry.depth + 1
            && let Some((field, text)) = self.field.take()
        {
            entry.texts[field as usize].get_or_insert(text);
        }
        if depth == entry.depth { self.finish_entry(findings) } else { ControlFlow::Continue(()) }
    }

    fn finish_entry(&mut self, findings: &mut Findings<'_>) -> ControlFlow<()> {
        self.field = None;
        let Some(entry) = self.entry.take() else { return ControlFlow::Continue(()) };
        let text = |field: Field| {
            entry.texts[field as usize].as_deref().map(str::trim).filter(|text| !text.is_empty())
        };
        findings.add(Entry {
            list: entry.list,
            url: text(Field::Url).or_else(|| text(Field::SpareUrl)),
            date: text(Field::Date).or_else(|| text(Field::SpareDate)),
            offset: entry.offset,
        })
    }

    /// The end of the text, which should be the end of the document.
    fn end(&mut self, offset: usize, findings: &mut Findings<'_>) {
        if self.depth > 0 {
            findings.note(Some(offset), Trouble::EndsEarly);
        } else if self.format.is_none() {
            findings.note(None, Trouble::Unknown("it has no root".to_owned()));
        }
        self.keep_entry(findings);
    }

    /// An entry that the document breaks off in counts if its URL was whole.
    fn keep_entry(&mut self, findings: &mut Findings<'_>) {
        let has_url = |entry: &OpenEntry| entry.texts[Field::Url as usize].is_some();
        if self.entry.as_ref().is_some_and(has_url) {
            // The reading ends in any case.
            let _ = self.finish_entry(findings);
        }
    }
}

/// The prefix and the local name of an element.
fn parts(name: QName<'_>) -> (&str, &str) {
    let name = name.into_inner();
    name.split_once(':').unwrap_or(("", name))
}

/// The address of a link to the page itself, not to its comments or its feed.
fn atom_link(element: &BytesStart<'_>) -> Option<String> {
    let relation = attribute(element, "rel");
    if relation.is_some_and(|relation| relation.trim() != "alternate") {
        return None;
    }
    attribute(element, "href")
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = element.attributes();
    // They compare each with each, which takes too long where there are many.
    attributes.with_checks(false);
    let found = attributes.take(MAX_ATTRIBUTES).flatten().find(|one| one.key.into_inner() == name)?;
    if found.value.len() > MAX_FIELD_BYTES {
        return None;
    }
    let value = found.normalized_value(XmlVersion::Implicit1_0);
    Some(value.unwrap_or(found.value).into_owned())
}
