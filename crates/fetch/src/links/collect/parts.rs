//! Names that mean something to links.

use crate::html::Name;
use crate::links::Rel;

pub(super) const A: Name = Name::of("a");
pub(super) const AREA: Name = Name::of("area");
pub(super) const BASE: Name = Name::of("base");
pub(super) const FRAME: Name = Name::of("frame");
pub(super) const HTML: Name = Name::of("html");
pub(super) const IFRAME: Name = Name::of("iframe");
pub(super) const IMG: Name = Name::of("img");
pub(super) const LINK: Name = Name::of("link");
pub(super) const META: Name = Name::of("meta");
pub(super) const TITLE: Name = Name::of("title");

/// What a page says of its relation to the page it links to.
pub(super) fn relation(rel: &str) -> Rel {
    let mut relation = Rel::default();
    for word in rel.split_ascii_whitespace() {
        relation.nofollow |= word.eq_ignore_ascii_case("nofollow");
        relation.ugc |= word.eq_ignore_ascii_case("ugc");
        relation.sponsored |= word.eq_ignore_ascii_case("sponsored");
    }
    relation
}

/// Whether a media type is that of a feed.
pub(super) fn is_feed(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"]
        .iter()
        .any(|feed| kind.eq_ignore_ascii_case(feed))
}

/// Elements that may stand in the middle of a word.
pub(super) fn is_part_of_a_word(name: Name) -> bool {
    const NAMES: [Name; 25] = Name::each(
        "span b i em strong font u s small big sup sub mark abbr code bdi bdo wbr ins del tt q cite kbd var",
    );
    NAMES.contains(&name)
}
