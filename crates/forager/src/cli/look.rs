//! The commands that look at a page as a crawl would.

use clap::Args;

use super::{AskArgs, ConfigFile};
use crate::output::Format;

/// A page to look at, and how.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// The page
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    #[command(flatten)]
    pub(crate) ask: AskArgs,

    #[command(flatten)]
    pub(crate) config: ConfigFile,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Show what robots.txt says of a page, and what else it asks for
///
/// Exit status:
///    0  it could be shown, whatever it says
///    2  a flag is wrong
///    4  something else that was asked for, or the configuration, is wrong: trying again will not help
///    9  robots.txt cannot be had
///   18  it cannot be had because its host is asked too often (429, 503): try again later
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager robots https://www.example.org/private/ --contact me@example.com"
)]
pub(crate) struct RobotsArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Show what a sitemap lists; for any other page, the sitemaps that its robots.txt names
///
/// Exit status:
///    0  there is one, and all of it can be read
///    1  not all of it can, or there is none
///    2  a flag is wrong
///    4  something else that was asked for, or the configuration, is wrong,
///       or the page may not be fetched: trying again will not help
///    9  the page cannot be had
///   18  it cannot be had because its host is asked too often (429, 503): try again later
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager sitemap https://www.example.org/sitemap.xml --contact me@example.com"
)]
pub(crate) struct SitemapArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Show the links of a page, as a crawl sees them
///
/// Exit status:
///    0  they could be shown
///    2  a flag is wrong
///    4  something else that was asked for, or the configuration, is wrong,
///       or the page is no HTML or may not be fetched: trying again will not help
///    9  the page cannot be had
///   18  it cannot be had because its host is asked too often (429, 503): try again later
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager links https://www.example.org/ --contact me@example.com"
)]
pub(crate) struct LinksArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// Fetch a home page, and pick the pages that describe services
///
/// Exit status:
///    0  the home page could be read, however many pages were picked
///    2  a flag is wrong
///    4  something else that was asked for, or the configuration, is wrong,
///       or the page is no HTML or may not be fetched: trying again will not help
///    9  the page cannot be had
///   18  it cannot be had because its host is asked too often (429, 503): try again later
#[derive(Debug, Args)]
#[command(
    verbatim_doc_comment,
    after_long_help = "Example:\n  $ forager pick https://www.example.org/ --page-cap 3 --contact me@example.com"
)]
pub(crate) struct PickArgs {
    #[command(flatten)]
    pub(crate) look: LookArgs,

    /// How many pages to pick [default: `page_cap` of `[select]` in the configuration, 5]
    #[arg(long, value_name = "N")]
    pub(crate) page_cap: Option<usize>,

    /// Fetch the picked pages too, and show what came of it
    #[arg(long)]
    pub(crate) fetch_pages: bool,
}
