//! Which URLs a sitemap may list.

use core::fmt;

use forager_core::url::{FetchUrl, Identity, IdentityOptions};

/// Whether a sitemap may list a URL, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whether it may.
    pub allowed: bool,
    /// Why, or why not.
    pub why: Reason,
}

/// Why a sitemap may list a URL, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The URL is in the folder of the sitemap, or below it.
    Below {
        /// The folder.
        folder: String,
    },
    /// The robots.txt of the URL's host names the sitemap, and so vouches for it.
    NamedInRobots,
    /// The URL is of another scheme, host or port.
    Elsewhere {
        /// Where the sitemap is.
        sitemap: String,
        /// Where the URL is.
        url: String,
    },
    /// The URL is of the same host, but outside the folder of the sitemap.
    Outside {
        /// The folder.
        folder: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below { folder } => write!(f, "it is in the sitemap's folder {folder}"),
            Self::NamedInRobots => f.write_str("robots.txt names the sitemap"),
            Self::Elsewhere { sitemap, url } => {
                write!(f, "it is of {url}, the sitemap of {sitemap}, and no robots.txt names the sitemap")
            }
            Self::Outside { folder } => {
                write!(f, "it is outside the sitemap's folder {folder}, and no robots.txt names the sitemap")
            }
        }
    }
}

/// Whether a sitemap may list a URL.
///
/// A sitemap speaks for its own folder: else whoever may write one page of a host could list the
/// pages of others. It speaks for any URL of a host whose robots.txt names it; `named_in_robots`
/// says that of the robots.txt of `item`.
///
/// ```
/// # use forager_core::url::FetchUrl;
/// # use forager_fetch::sitemap::may_list;
/// let sitemap = FetchUrl::parse("https://example.org/catalog/sitemap.xml")?;
/// let page = FetchUrl::parse("https://example.org/images/1")?;
/// assert!(!may_list(&sitemap, &page, false).allowed);
/// assert!(may_list(&sitemap, &page, true).allowed);
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
pub fn may_list(sitemap: &FetchUrl, item: &FetchUrl, named_in_robots: bool) -> Placement {
    let options = IdentityOptions::default();
    let (sitemap, item) = (sitemap.identity(&options), item.identity(&options));
    let (sitemap_origin, item_origin) = (origin(&sitemap), origin(&item));
    let folder = sitemap.path().rfind('/').map_or("/", |slash| &sitemap.path()[..=slash]).to_owned();
    let is_below = sitemap_origin == item_origin && item.path().starts_with(&folder);
    let why = match (is_below, named_in_robots) {
        (true, _) => Reason::Below { folder },
        (false, true) => Reason::NamedInRobots,
        (false, false) if sitemap_origin == item_origin => Reason::Outside { folder },
        (false, false) => Reason::Elsewhere { sitemap: sitemap_origin, url: item_origin },
    };
    Placement { allowed: is_below || named_in_robots, why }
}

fn origin(url: &Identity) -> String {
    format!("{}://{}", url.scheme(), url.authority())
}
