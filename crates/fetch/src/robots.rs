//! robots.txt, as RFC 9309 has it.
//!
//! [`Robots`] reads a file and decides about URLs; each verdict names the line that decided it.
//! [`of_answer`] says what a fetch of the file means and makes the [`struct@Copy`] that is kept of it,
//! and [`Copy::rules`] decides whatever became of the file, also where there is none.
//!
//! Where the RFC leaves room, this is what was chosen:
//!
//! | question | choice |
//! |---|---|
//! | the name in `User-agent: Forager/1.0 (x)` | letters, digits, `-` and `_` at its start: `Forager` |
//! | a line without a colon | skipped, as other broken lines |
//! | a path without its first slash | is taken to have it |
//! | `Crawl-delay` between two `User-agent` lines | ends no group, and counts for the names above it |
//! | `;` and `%3B` | the same; only what separates (`/ ? # & = +`) is kept apart from its escape |
//! | `/` and `%2F` | the same behind a `?`, different before it |
//! | how long a pattern is | its octets after normalising, each `*` and the final `$` as one |
//! | a chain of more than five redirects | no file, unless an earlier copy is known: then that one |

mod copy;
mod groups;
mod lines;
mod pattern;
mod rules;

use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use serde::{Deserialize, Serialize};

pub use copy::{Answer, Copy, File, LastTry, Outcome, Standing, of_answer};
pub use groups::{Addressed, MAX_CRAWL_DELAY, MAX_EXTRAS, MAX_SITEMAPS, MAX_TEXT_BYTES, product_token};
pub use lines::MAX_BYTES;
pub use rules::{Rules, Ruling, Why};

use groups::{Found, GroupRule};
use pattern::Target;

/// A robots.txt as one crawler reads it.
///
/// ```
/// # use forager_core::url::FetchUrl;
/// # use forager_fetch::robots::Robots;
/// let robots = Robots::parse(b"User-agent: *\nDisallow: /private\nAllow: /private/open", "forager");
/// let verdict = robots.verdict(&FetchUrl::parse("https://example.org/private/a")?);
/// assert!(!verdict.allowed);
/// assert_eq!(verdict.rule.unwrap().to_string(), "line 2: Disallow: /private");
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Robots {
    found: Found,
}

/// Whether a URL may be fetched, and the rule that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may be.
    pub allowed: bool,
    /// The longest rule that matches; none where none does, and for `/robots.txt` itself.
    pub rule: Option<Rule>,
}

/// One `Allow` or `Disallow` line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The line as it is written, without comment and spaces around it, and shortened if long.
    pub text: String,
}

impl core::fmt::Display for Rule {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "line {}: {}", self.line, self.text)
    }
}

impl Robots {
    /// Reads a file for the crawler of this name.
    ///
    /// No file is refused: what cannot be read is passed over. At most [`MAX_BYTES`] are read.
    pub fn parse(body: &[u8], product_token: &str) -> Self {
        Self { found: groups::find(body, product_token) }
    }

    /// Whether `url` may be fetched. The URL must be of the host that the file is from.
    pub fn verdict(&self, url: &FetchUrl) -> Verdict {
        let deciding = if is_robots_file(url) { None } else { self.deciding(url) };
        Verdict { allowed: deciding.is_none_or(|one| one.allows), rule: deciding.map(|one| one.rule.clone()) }
    }

    /// The rules are ordered: of those that match, the first one counts.
    fn deciding(&self, url: &FetchUrl) -> Option<&GroupRule> {
        let target = Target::of(url);
        self.found.rules.iter().find(|one| one.pattern.matches(&target))
    }

    /// The pause that the file asks for between two requests. It is no part of the RFC.
    ///
    /// Decimals are rounded up to a millisecond. Of several the longest counts; zero is none.
    pub fn crawl_delay(&self) -> Option<Interval> {
        self.found.crawl_delay
    }

    /// The sitemaps that the file names, whichever group they stand in, as they are written.
    pub fn sitemaps(&self) -> &[String] {
        &self.found.sitemaps
    }

    /// Lines of other names, such as `Content-Signal`, from our group or from outside all groups.
    pub fn extras(&self) -> &[(String, String)] {
        &self.found.extras
    }

    /// Whom the rules are for.
    pub fn addressed(&self) -> Addressed {
        self.found.addressed
    }

    /// All rules that apply, and whether each allows; the ones that go first stand first.
    pub fn rules(&self) -> impl Iterator<Item = (&Rule, bool)> {
        self.found.rules.iter().map(|one| (&one.rule, one.allows))
    }
}

/// The file itself may always be fetched: nobody could obey it otherwise.
fn is_robots_file(url: &FetchUrl) -> bool {
    url.path() == "/robots.txt" && url.query().is_none()
}
