//! Where in a page the parser stands: in its header, its navigation, its main part.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::Element;
use lol_html::{ElementContentHandlers, HandlerResult, Selector};
use regex::bytes::Regex;

use super::{Handler, selector};

/// A part of a page, by its element or by its ARIA role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Region {
    /// The header of the page: `header`, or the role `banner`.
    Header,
    /// `nav`, or the role `navigation`.
    Nav,
    /// `main`, or the role `main`.
    Main,
    /// `article`.
    Article,
    /// `section`.
    Section,
    /// `aside`, or the role `complementary`.
    Aside,
    /// The footer of the page: `footer`, or the role `contentinfo`.
    Footer,
    /// What scripts may make use of, but nobody sees.
    Template,
}

/// How many of each region are open.
///
/// A `header` or `footer` inside `article`, `main` or `section` belongs to that part and not to the
/// page, as the HTML standard has it: the title and date of an article stand there, and the links
/// in it are the author's.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    open: [Cell<u32>; 8],
}

static LANDMARKS: LazyLock<Selector> =
    LazyLock::new(|| selector("header,nav,main,article,section,aside,footer,template"));
static ROLES: LazyLock<Selector> = LazyLock::new(|| selector("[role]"));
static HAS_ROLES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i-u)role\s*=[^>]{0,64}(?:banner|navigation|main|complementary|contentinfo)").ok()
});

impl Regions {
    /// Whether the parser is inside such a region.
    pub(crate) fn is_in(&self, region: Region) -> bool {
        self.open[region as usize].get() > 0
    }

    /// Whether it is in the header or navigation of the page.
    pub(crate) fn is_in_header(&self) -> bool {
        self.is_in(Region::Header) || self.is_in(Region::Nav)
    }

    /// The handlers that keep the count for this page.
    pub(crate) fn handlers<'h>(self: &Rc<Self>, html: &str) -> Vec<Handler<'h, 'static>> {
        let by_name = Rc::clone(self);
        let by_name = ElementContentHandlers::default()
            .element(move |element: &mut Element<'_, '_>| by_name.enter_by_name(element));
        let mut handlers = vec![(Cow::Borrowed(&*LANDMARKS), by_name)];
        // To ask every element for its role takes time, and most pages have none of these.
        if HAS_ROLES.as_ref().is_none_or(|roles| roles.is_match(html.as_bytes())) {
            let by_role = Rc::clone(self);
            let by_role = ElementContentHandlers::default()
                .element(move |element: &mut Element<'_, '_>| by_role.enter_by_role(element));
            handlers.push((Cow::Borrowed(&*ROLES), by_role));
        }
        handlers
    }

    fn enter_by_name(self: &Rc<Self>, element: &mut Element<'_, '_>) -> HandlerResult {
        let of_the_page =
            ![Region::Article, Region::Main, Region::Section].iter().any(|part| self.is_in(*part));
        let region = match element.tag_name().as_str() {
            "header" if of_the_page => Region::Header,
            "footer" if of_the_page => Region::Footer,
            "nav" => Region::Nav,
            "main" => Region::Main,
            "article" => Region::Article,
            "section" => Region::Section,
            "aside" => Region::Aside,
            "template" => Region::Template,
            _ => return Ok(()),
        };
        self.enter(region, element)
    }

    fn enter_by_role(self: &Rc<Self>, element: &mut Element<'_, '_>) -> HandlerResult {
        let roles = element.get_attribute("role").unwrap_or_default().to_ascii_lowercase();
        let region = roles.split_ascii_whitespace().find_map(|role| match role {
            "banner" => Some(Region::Header),
            "navigation" => Some(Region::Nav),
            "main" => Some(Region::Main),
            "complementary" => Some(Region::Aside),
            "contentinfo" => Some(Region::Footer),
            _ => None,
        });
        region.map_or(Ok(()), |region| self.enter(region, element))
    }

    fn enter(self: &Rc<Self>, region: Region, element: &mut Element<'_, '_>) -> HandlerResult {
        if !element.can_have_content() {
            return Ok(());
        }
        self.change(region, 1);
        let regions = Rc::clone(self);
        // The parser calls this too where the end of an outer element closes this one.
        element.on_end_tag(Box::new(move |_| {
            regions.change(region, -1);
            Ok(())
        }))
    }

    fn change(&self, region: Region, by: i32) {
        let count = &self.open[region as usize];
        count.set(count.get().saturating_add_signed(by));
    }
}
