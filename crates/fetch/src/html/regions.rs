//! Where in a page the parser stands: in its header, its navigation, its main part.

use std::borrow::Cow;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::LazyLock;

use lol_html::html_content::Element;
use lol_html::{ElementContentHandlers, HandlerResult, Selector};
use regex::bytes::Regex;

use super::{Handler, Name, selector};

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

impl Region {
    /// The region that an element with these roles is.
    pub(crate) fn by_role(roles: &str) -> Option<Self> {
        const ROLES: [(&str, Region); 5] = [
            ("banner", Region::Header),
            ("navigation", Region::Nav),
            ("main", Region::Main),
            ("complementary", Region::Aside),
            ("contentinfo", Region::Footer),
        ];
        let one = |role: &str| ROLES.iter().find(|(known, _)| known.eq_ignore_ascii_case(role));
        roles.split_ascii_whitespace().find_map(one).map(|(_, region)| *region)
    }
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

    /// The region that an element of this name is, here.
    pub(crate) fn by_name(&self, name: Name) -> Option<Region> {
        const HEADER: Name = Name::of("header");
        const FOOTER: Name = Name::of("footer");
        const OTHERS: [(Name, Region); 6] = [
            (Name::of("nav"), Region::Nav),
            (Name::of("main"), Region::Main),
            (Name::of("article"), Region::Article),
            (Name::of("section"), Region::Section),
            (Name::of("aside"), Region::Aside),
            (Name::of("template"), Region::Template),
        ];
        let of_the_page =
            || ![Region::Article, Region::Main, Region::Section].iter().any(|part| self.is_in(*part));
        match name {
            HEADER => of_the_page().then_some(Region::Header),
            FOOTER => of_the_page().then_some(Region::Footer),
            _ => OTHERS.iter().find(|(known, _)| *known == name).map(|(_, region)| *region),
        }
    }

    /// The parser goes into a region.
    pub(crate) fn open(&self, region: Region) {
        self.change(region, 1);
    }

    /// The parser leaves a region.
    pub(crate) fn close(&self, region: Region) {
        self.change(region, -1);
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
        let region = self.by_name(Name::of(&element.tag_name()));
        region.map_or(Ok(()), |region| self.enter(region, element))
    }

    fn enter_by_role(self: &Rc<Self>, element: &mut Element<'_, '_>) -> HandlerResult {
        let region = element.get_attribute("role").and_then(|roles| Region::by_role(&roles));
        region.map_or(Ok(()), |region| self.enter(region, element))
    }

    fn enter(self: &Rc<Self>, region: Region, element: &mut Element<'_, '_>) -> HandlerResult {
        if !element.can_have_content() {
            return Ok(());
        }
        self.open(region);
        let regions = Rc::clone(self);
        // The parser calls this too where the end of an outer element closes this one.
        element.on_end_tag(Box::new(move |_| {
            regions.close(region);
            Ok(())
        }))
    }

    fn change(&self, region: Region, by: i32) {
        let count = &self.open[region as usize];
        count.set(count.get().saturating_add_signed(by));
    }
}
