//! Which links of a home page describe services.
//!
//! Links pass five filters, in this order: another site, a disallowed path, the home page
//! itself, a duplicate, a service area. What is left is put into the first category that fits:
//!
//! | | rule | score |
//! |---|---|---|
//! | A | path starts with `/services` | 80, and 20 more with an absolute term |
//! | B | path or query contains an absolute term | 85 |
//! | C | path starts with `/about` | 75 |
//! | U | path or query contains a URL term | 60 |
//! | T | anchor text or title contains `services` or an absolute term | 50 |
//! | D | everything else | 0 |
//!
//! Best score first, then fewest path segments, then URL. Terms, prefixes and scores are
//! configuration, so that the same selector serves other trades.

mod config;

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use serde::{Deserialize, Serialize};

pub use config::{CategoryScores, SelectConfig};

use crate::url::{FetchUrl, UrlError, fold_www, percent_decoded, segment_count, segments};

/// A link as it stands on the page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Link {
    /// The address, absolute or relative.
    pub href: String,
    /// The anchor text.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub text: String,
    /// The title attribute.
    #[serde(default, deserialize_with = "crate::read::null_is_default")]
    pub title: String,
}

/// The rule that a page was taken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Category {
    /// Path starts as a service page.
    A,
    /// Absolute term in path or query.
    B,
    /// About the business.
    C,
    /// URL term in path or query.
    U,
    /// Term in anchor text or title.
    T,
    /// Nothing of the above.
    D,
}

/// A page that passed the filters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Picked {
    /// The absolute URL.
    pub url: FetchUrl,
    /// The rule it was taken by.
    pub category: Category,
    /// What it scores.
    pub score: u32,
    /// How many non-empty segments its path has.
    pub path_length: usize,
    /// The longest prefix or term that put it into its category.
    pub matched_term: Option<String>,
}

/// Why a link was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Filter {
    /// It is not an http or https URL.
    NotWeb,
    /// It leads to another site.
    OtherHost,
    /// Its path starts with a disallowed prefix.
    DisallowedPath,
    /// It is the home page.
    Homepage,
    /// The same URL is there under a smaller or equal `href`.
    Duplicate,
    /// It describes where the business works, not what it does.
    ServiceArea,
    /// It is a path of one segment without any term.
    TopLevel,
    /// It passed every filter, but better ones filled the cap.
    PageCap,
}

/// A link that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Dropped {
    /// The address as it stood on the page.
    pub href: String,
    /// The filter that dropped it.
    #[serde(rename = "dropped")]
    pub filter: Filter,
}

/// What became of the links of a page: each link is in exactly one of the two lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The pages taken, best first.
    pub picked: Vec<Picked>,
    /// The links not taken: first those that led nowhere, then in order of URL.
    pub dropped: Vec<Dropped>,
}

/// A term list or prefix list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// The home page has no usable URL.
    #[error("the home page cannot be used")]
    Home(#[from] UrlError),
    /// A list holds an empty text, which would match everything.
    #[error("{list} holds an empty text, which would match every link")]
    EmptyTerm {
        /// The name of the list.
        list: &'static str,
    },
    /// A path prefix that no path starts with.
    #[error("{list} holds {prefix:?}, which no path starts with: a path starts with /")]
    NotAPath {
        /// The name of the list.
        list: &'static str,
        /// The prefix.
        prefix: String,
    },
    /// A list is too large to search for.
    #[error("{list} is too large")]
    TooLarge {
        /// The name of the list.
        list: &'static str,
    },
}

/// A selection, ready to judge links.
///
/// ```
/// # use forager_core::select::{Link, SelectConfig, Selector};
/// let selector = Selector::new(SelectConfig::default())?;
/// let links = ["/about/team", "/services/fire-alarm-installation", "/inspection", "/privacy"]
///     .map(|href| Link { href: href.into(), ..Link::default() });
/// let selection = selector.select("https://acme.com", links)?;
/// let scores: Vec<_> = selection.picked.iter().map(|page| (page.url.path(), page.score)).collect();
/// assert_eq!(scores,
///     [("/services/fire-alarm-installation", 100), ("/inspection", 85), ("/about/team", 75)]);
/// # Ok::<(), forager_core::select::SelectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selector {
    config: SelectConfig,
    absolute: Terms,
    url: Terms,
    text: Terms,
    area_phrases: Terms,
}

/// A list of terms, searched for at once.
#[derive(Clone, Debug)]
struct Terms {
    terms: Vec<String>,
    search: AhoCorasick,
}

impl Terms {
    fn new(list: &'static str, terms: impl IntoIterator<Item = String>) -> Result<Self, SelectError> {
        let terms: Vec<String> = terms.into_iter().collect();
        if terms.iter().any(String::is_empty) {
            return Err(SelectError::EmptyTerm { list });
        }
        // The automaton with the fastest search: the lists are short, and built once.
        let search = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::DFA))
            .build(&terms)
            .map_err(|_| SelectError::TooLarge { list })?;
        Ok(Self { terms, search })
    }

    fn is_in(&self, text: &str) -> bool {
        self.search.is_match(text)
    }

    /// The longest term in `text`; of several, the one that stands first in the list.
    fn longest_in(&self, text: &str) -> Option<&str> {
        // Most texts hold no term at all, which a plain search tells faster.
        if !self.is_in(text) {
            return None;
        }
        let found = self.search.find_overlapping_iter(text);
        let best = found.max_by_key(|hit| (hit.end() - hit.start(), core::cmp::Reverse(hit.pattern())))?;
        Some(&self.terms[best.pattern().as_usize()])
    }
}

impl Selector {
    /// Prepares a selection. Prefixes and terms match without regard to case.
    pub fn new(config: SelectConfig) -> Result<Self, SelectError> {
        let config = config.normalised();
        config.check_prefixes()?;
        Ok(Self {
            absolute: Terms::new("absolute_terms", config.absolute_terms.clone())?,
            url: Terms::new("url_terms", config.url_terms.clone())?,
            text: Terms::new("text_terms", config.text_terms.iter().chain(&config.absolute_terms).cloned())?,
            area_phrases: Terms::new("area_phrases", config.area_phrases.clone())?,
            config,
        })
    }

    /// Judges the links of the page at `home`. The order of the links does not matter.
    pub fn select(
        &self,
        home: &str,
        links: impl IntoIterator<Item = Link>,
    ) -> Result<Selection, SelectError> {
        let home = FetchUrl::parse(home)?;
        let mut dropped = Vec::new();
        let links = links.into_iter();
        let mut candidates = Vec::with_capacity(links.size_hint().0);
        for link in links {
            match self.resolve(&home, &link.href) {
                Ok(url) => candidates.push((url, link)),
                Err(filter) => dropped.push(Dropped { href: link.href, filter }),
            }
        }
        dropped.sort_unstable();
        let mut judged = self.judge(candidates, &mut dropped);
        judged.sort_unstable_by(|a, b| a.order().cmp(&b.order()));
        for page in judged.drain(self.config.page_cap.min(judged.len())..) {
            dropped.push(Dropped { href: page.href, filter: Filter::PageCap });
        }
        Ok(Selection { picked: judged.into_iter().map(Judged::picked).collect(), dropped })
    }

    /// What a single page scores, whatever site it is on: 0 if it would be dropped as a service area.
    pub fn score(&self, url: &FetchUrl, text: &str, title: &str) -> u32 {
        let mut texts = Texts::default();
        texts.start(text.to_owned(), title.to_owned());
        self.categorise(url, &texts).map_or(0, |verdict| verdict.score)
    }

    /// Filters 1 to 3, which look at one link alone.
    fn resolve(&self, home: &FetchUrl, href: &str) -> Result<FetchUrl, Filter> {
        let url = home.join(href).map_err(|_| Filter::NotWeb)?;
        if !self.is_same_site(home, &url) {
            return Err(Filter::OtherHost);
        }
        let path = lower(url.path());
        if starts_with_any(&path, &self.config.disallowed_paths) {
            return Err(Filter::DisallowedPath);
        }
        let is_home = (url.path(), url.query()) == (home.path(), home.query());
        if is_home || url.path() == "/" && url.query().is_none() {
            return Err(Filter::Homepage);
        }
        Ok(url)
    }

    fn is_same_site(&self, home: &FetchUrl, url: &FetchUrl) -> bool {
        let fold = |host| if self.config.fold_www { fold_www(host) } else { host };
        // Ports of either scheme's default are already gone, so http and https compare equal.
        fold(home.host()) == fold(url.host()) && home.port() == url.port()
    }

    /// Filters 4 and 5, then the categories. Links to one URL are judged as one, with all their texts.
    fn judge(&self, mut candidates: Vec<(FetchUrl, Link)>, dropped: &mut Vec<Dropped>) -> Vec<Judged<'_>> {
        // Sorted by href too, so that which duplicate stays does not depend on the order they came in.
        candidates.sort_unstable_by(|(a, x), (b, y)| (a, &x.href).cmp(&(b, &y.href)));
        let mut judged = Vec::with_capacity(candidates.len());
        let mut texts = Texts::default();
        let mut rest = candidates.into_iter().peekable();
        while let Some((url, Link { href, text, title })) = rest.next() {
            texts.start(text, title);
            while let Some((_, again)) = rest.next_if(|(other, _)| *other == url) {
                texts.add(again.text, again.title);
                dropped.push(Dropped { href: again.href, filter: Filter::Duplicate });
            }
            match self.categorise(&url, &texts) {
                Ok(verdict) => judged.push(Judged { url, href, verdict }),
                Err(filter) => dropped.push(Dropped { href, filter }),
            }
        }
        judged
    }

    fn categorise(&self, url: &FetchUrl, texts: &Texts) -> Result<Verdict<'_>, Filter> {
        let path = lower(url.path());
        if self.is_service_area(&path, texts) {
            return Err(Filter::ServiceArea);
        }
        let match_text = match_text(&path, url.query());
        let path_length = segment_count(url.path());
        if self.config.drop_top_level && path_length == 1 && self.is_plain(&path, &match_text, texts) {
            return Err(Filter::TopLevel);
        }
        let (category, score, matched_term) = self.category(&path, &match_text, texts);
        Ok(Verdict { category, score, path_length, matched_term })
    }

    fn category(&self, path: &str, match_text: &str, texts: &Texts) -> (Category, u32, Option<&str>) {
        let scores = &self.config.scores;
        let absolute = self.absolute.longest_in(match_text);
        if let Some(prefix) = longest_prefix(path, &self.config.service_prefixes) {
            let boost = if absolute.is_some() { scores.services_boost } else { 0 };
            let score = scores.services.saturating_add(boost);
            return (Category::A, score, absolute.or(Some(prefix)));
        }
        if absolute.is_some() {
            return (Category::B, scores.absolute, absolute);
        }
        if let Some(prefix) = longest_prefix(path, &self.config.about_prefixes) {
            return (Category::C, scores.about, Some(prefix));
        }
        if let Some(term) = self.url.longest_in(match_text) {
            return (Category::U, scores.url_term, Some(term));
        }
        match texts.longest(&self.text) {
            Some(term) => (Category::T, scores.text, Some(term)),
            None => (Category::D, scores.other, None),
        }
    }

    fn is_service_area(&self, path: &str, texts: &Texts) -> bool {
        let first = segments(path).next();
        first.is_some_and(|segment| self.config.area_segments.iter().any(|area| area == segment))
            || texts.anchors().any(|text| self.area_phrases.is_in(text))
    }

    /// Neither starts as a service page nor has a term in path, query or anchor text.
    fn is_plain(&self, path: &str, match_text: &str, texts: &Texts) -> bool {
        let has_term = |text: &str| self.text.is_in(text) || self.url.is_in(text);
        !starts_with_any(path, &self.config.service_prefixes)
            && !self.absolute.is_in(match_text)
            && !self.url.is_in(match_text)
            && !texts.anchors().any(has_term)
    }
}

/// A page that passed the filters, and the `href` that stands for it.
struct Judged<'s> {
    url: FetchUrl,
    href: String,
    verdict: Verdict<'s>,
}

struct Verdict<'s> {
    category: Category,
    score: u32,
    path_length: usize,
    matched_term: Option<&'s str>,
}

impl Judged<'_> {
    fn order(&self) -> (core::cmp::Reverse<u32>, usize, &str) {
        (core::cmp::Reverse(self.verdict.score), self.verdict.path_length, self.url.as_str())
    }

    fn picked(self) -> Picked {
        let Verdict { category, score, path_length, matched_term } = self.verdict;
        Picked { url: self.url, category, score, path_length, matched_term: matched_term.map(str::to_owned) }
    }
}

/// The anchor texts and titles of all links to one URL, in lower case.
#[derive(Debug, Default)]
struct Texts(Vec<(String, String)>);

impl Texts {
    /// Goes on to the next URL.
    fn start(&mut self, anchor: String, title: String) {
        self.0.clear();
        self.add(anchor, title);
    }

    fn add(&mut self, anchor: String, title: String) {
        self.0.push((lower_text(anchor), lower_text(title)));
    }

    fn anchors(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(anchor, _)| anchor.trim())
    }

    fn longest<'t>(&self, terms: &'t Terms) -> Option<&'t str> {
        let titles = self.0.iter().map(|(_, title)| title.trim());
        let found = self.anchors().chain(titles).filter_map(|text| terms.longest_in(text));
        found.max_by_key(|term| (term.len(), core::cmp::Reverse(*term)))
    }
}

/// A text in lower case, in place where its length cannot change.
fn lower_text(mut text: String) -> String {
    if text.is_ascii() {
        text.make_ascii_lowercase();
        return text;
    }
    text.to_lowercase()
}

/// What terms are looked for in: the path without a trailing slash, and the query.
fn match_text<'a>(path: &'a str, query: Option<&str>) -> Cow<'a, str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    match query {
        Some(query) => format!("{path}?{}", lower(query)).into(),
        None => path.into(),
    }
}

fn starts_with_any(path: &str, prefixes: &[String]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix.as_str()))
}

fn longest_prefix<'a>(path: &str, prefixes: &'a [String]) -> Option<&'a str> {
    let fitting = prefixes.iter().map(String::as_str).filter(|prefix| path.starts_with(prefix));
    fitting.max_by_key(|prefix| prefix.len())
}

/// A path or query as terms are looked for in it: percent-decoded and in lower case. Most are
/// already, and are not copied.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'%') {
        percent_decoded(text).to_lowercase().into()
    } else {
        text.into()
    }
}
