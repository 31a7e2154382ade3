//! Drawings and formulas: where other rules hold than in HTML.

use super::tag::{Name, Tag};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Namespace {
    #[default]
    Html,
    Svg,
    MathMl,
}

/// In which namespace the page is, told from its tags alone, without a tree. A drawing may hold HTML again, and so on.
#[derive(Debug, Default)]
pub(super) struct Namespaces(Vec<Namespace>);

impl Namespaces {
    fn current(&self) -> Namespace {
        self.0.last().copied().unwrap_or_default()
    }

    /// Whether it is in none but HTML.
    pub(super) fn is_html(&self) -> bool {
        self.current() == Namespace::Html
    }

    /// A start tag was read.
    pub(super) fn start(&mut self, tag: &Tag<'_>) {
        let inner = match tag.name {
            SVG => Namespace::Svg,
            MATH => Namespace::MathMl,
            _ if self.is_html() => return,
            _ if is_html_only(tag) => {
                self.0.pop();
                return;
            }
            _ if holds_html(self.current(), tag) => Namespace::Html,
            _ => return,
        };
        if !tag.closes_itself {
            self.0.push(inner);
        }
    }

    /// An end tag was read.
    pub(super) fn end(&mut self, name: Name) {
        let ends = match (self.current(), &self.0[..]) {
            (Namespace::Html, [.., outer, _]) => may_hold_html(*outer, name),
            (Namespace::Html, _) => false,
            (Namespace::Svg, _) => matches!(name, SVG | P | BR),
            (Namespace::MathMl, _) => matches!(name, MATH | P | BR),
        };
        if ends {
            self.0.pop();
        }
    }
}

const SVG: Name = Name::of("svg");
const MATH: Name = Name::of("math");
const P: Name = Name::of("p");
const BR: Name = Name::of("br");
const FONT: Name = Name::of("font");
const ANNOTATION: Name = Name::of("annotation-xml");

/// Whether an element of this name may hold HTML.
fn may_hold_html(namespace: Namespace, name: Name) -> bool {
    const IN_SVG: [Name; 3] = Name::each("desc title foreignobject");
    const IN_MATH_ML: [Name; 6] = Name::each("mi mo mn ms mtext annotation-xml");
    match namespace {
        Namespace::Html => false,
        Namespace::Svg => IN_SVG.contains(&name),
        Namespace::MathMl => IN_MATH_ML.contains(&name),
    }
}

fn holds_html(namespace: Namespace, tag: &Tag<'_>) -> bool {
    let is_html = |value: &str| {
        ["text/html", "application/xhtml+xml"].iter().any(|kind| value.eq_ignore_ascii_case(kind))
    };
    may_hold_html(namespace, tag.name) && (tag.name != ANNOTATION || tag.raw("encoding").is_some_and(is_html))
}

/// Whether a tag can only be meant as HTML, so that it ends what it stands in.
fn is_html_only(tag: &Tag<'_>) -> bool {
    const NAMES: [Name; 44] = Name::each(
        "b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu \
         meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var",
    );
    let is_old_font = || ["color", "face", "size"].iter().any(|name| tag.raw(name).is_some());
    NAMES.contains(&tag.name) || (tag.name == FONT && is_old_font())
}
