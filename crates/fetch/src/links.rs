//! The links of a page, as a stream.
//!
//! The page is read once, by a parser that keeps no tree. What stands in comments, scripts,
//! `noscript` and `template` is not there for it, as it is not for people who look at the page.
//! What each field means, where HTML leaves a choice:
//!
//! - `base` counts once, for the whole document, also for links before it; only http and https.
//! - *In the header* is what stands in `nav`, in the role `navigation` or `banner`, or in a
//!   `header` that belongs to the page: one inside `article`, `main` or `section` does not.
//! - Links to fragments of the page itself, and to what is not http or https, are left out and
//!   counted; the first of those that lead nowhere are told one by one.

mod collect;
mod refresh;
mod resolve;

use serde::Serialize;

use forager_core::url::{FetchUrl, without_user_info};

/// How a page names another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `a`.
    Anchor,
    /// `area`, a part of a picture.
    Area,
    /// `iframe` or `frame`.
    Frame,
    /// `meta http-equiv=refresh`.
    Refresh,
    /// `link rel=canonical`.
    Canonical,
    /// `link rel=alternate hreflang=…`: the page in another language.
    Alternate,
    /// `link rel=alternate` to RSS, Atom or a JSON feed.
    Feed,
}

/// What a page says of its relation to the page it links to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rel {
    /// It does not vouch for it.
    pub nofollow: bool,
    /// A visitor wrote the link.
    pub ugc: bool,
    /// The link was paid for.
    pub sponsored: bool,
}

/// One link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it leads.
    pub url: FetchUrl,
    /// What is written on it, pictures by their `alt`; in one line, shortened.
    pub text: String,
    /// Its `title`, in one line, shortened.
    pub title: String,
    /// What the page says of the relation.
    pub rel: Rel,
    /// Whether it stands in the header or navigation of the page.
    pub in_header: bool,
    /// How the page names it.
    pub kind: Kind,
}

/// A word to robots: `meta name=robots`, or one with the name of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsMeta {
    /// The name, in lower case.
    pub agent: String,
    /// What is said.
    pub content: String,
}

/// The links that are not listed, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// They lead elsewhere in the same page.
    pub fragments: usize,
    /// They are `mailto:`, `javascript:`, `data:` and the like.
    pub other_schemes: usize,
    /// They cannot be parsed.
    pub invalid: usize,
    /// They are longer than allowed.
    pub too_long: usize,
    /// There were more than allowed.
    pub too_many: usize,
}

/// How many links that cannot be followed are told one by one.
pub const MAX_UNUSABLE: usize = 100;

/// How much of each of them is told, in characters.
const MAX_UNUSABLE_CHARS: usize = 300;

/// A link that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// As it is written, shortened.
    pub href: String,
    /// Why not.
    pub why: Why,
}

impl Unusable {
    fn new(href: &str, why: Why) -> Self {
        Self { href: without_user_info(href).chars().take(MAX_UNUSABLE_CHARS).collect(), why }
    }
}

/// Why a link cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// It is of another scheme; those that are well known are named.
    #[error("neither http nor https: {0}")]
    Scheme(&'static str),
    /// It cannot be parsed.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// It is longer than allowed.
    #[error("too long")]
    TooLong,
}

/// What a page links to, and what it says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLinks {
    /// The links, in the order of the page.
    pub links: Vec<Link>,
    /// What relative links are relative to.
    pub base: FetchUrl,
    /// Its title, in one line, shortened.
    pub title: Option<String>,
    /// The address that the page gives as its own.
    pub canonical: Option<FetchUrl>,
    /// Its language, as written.
    pub lang: Option<String>,
    /// Its words to robots.
    pub robots_meta: Vec<RobotsMeta>,
    /// What is not listed.
    pub left_out: LeftOut,
    /// Those of them that cannot be followed, at most [`MAX_UNUSABLE`].
    pub unusable: Vec<Unusable>,
    /// Whether the page was read to its end. If not, it was nested too deeply or a tag of it is too
    /// long, and what was found until then stands.
    pub complete: bool,
}

impl PageLinks {
    /// What keeps this from being all links of the page, in words.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.left_out.too_many > 0 {
            let (listed, further) = (self.links.len(), self.left_out.too_many);
            problems.push(format!(
                "it has more links than are read of a page: {listed} are listed, {further} left out"
            ));
        }
        if !self.complete {
            problems
                .push("it was not read to its end: it is nested too deeply, or a tag is too long".to_owned());
        }
        problems
    }
}

/// What to look for, and how much to keep.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// The name of the encoding of the page, as [`crate::encoding::Decoded`] has it: queries are sent in it, as browsers do.
    pub encoding: &'static str,
    /// The name of our agent, whose `meta` elements count beside those for all robots.
    pub product_token: String,
    /// The most links of one page.
    pub max_links: usize,
    /// The longest URL, in bytes.
    pub max_url_bytes: usize,
    /// Whether text and title of links are read.
    pub texts: bool,
    /// The longest text and title, in bytes.
    pub max_text_bytes: usize,
    /// The most bytes of all URLs together. A long base would multiply with the number of links.
    pub max_total_bytes: usize,
}

impl Default for LinkOptions {
    fn default() -> Self {
        Self {
            encoding: "UTF-8",
            product_token: "forager".to_owned(),
            max_links: 10_000,
            max_url_bytes: 8192,
            texts: true,
            max_text_bytes: 512,
            max_total_bytes: 8 * 1024 * 1024,
        }
    }
}

/// Finds the links of the page that was fetched from `page`.
///
/// ```
/// # use forager_core::url::FetchUrl;
/// # use forager_fetch::links::{LinkOptions, extract};
/// let page = FetchUrl::parse("https://example.org/a/")?;
/// let found = extract("<nav><a href=b?c&amp;d>To <b>B</b></a></nav>", &page, &LinkOptions::default());
/// let link = &found.links[0];
/// assert_eq!((link.url.as_str(), &*link.text), ("https://example.org/a/b?c&d", "To B"));
/// assert!(link.in_header);
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
pub fn extract(html: &str, page: &FetchUrl, options: &LinkOptions) -> PageLinks {
    let (seen, complete) = collect::collect(html, options);
    resolve::resolve(seen, complete, page, options)
}
