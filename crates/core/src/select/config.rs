//! The settings of a selection.

use serde::{Deserialize, Serialize};

use super::SelectError;
use crate::url::percent_decoded;

/// The settings of a selection; the default is the fire-protection trade of the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectConfig {
    /// How many pages are taken; 0 takes none.
    pub page_cap: usize,
    /// Prefixes of paths that are never taken.
    pub disallowed_paths: Vec<String>,
    /// Count `www.example.org` and `example.org` as one site.
    pub fold_www: bool,
    /// Drop paths of one segment that neither start as a service page nor contain a term.
    pub drop_top_level: bool,
    /// Prefixes of category A.
    pub service_prefixes: Vec<String>,
    /// Prefixes of category C.
    pub about_prefixes: Vec<String>,
    /// Terms of category B, which also boost A and count in T.
    pub absolute_terms: Vec<String>,
    /// Terms of category U.
    pub url_terms: Vec<String>,
    /// Terms of category T besides the absolute terms.
    pub text_terms: Vec<String>,
    /// First path segments that mark a service area.
    pub area_segments: Vec<String>,
    /// Anchor texts that mark a service area.
    pub area_phrases: Vec<String>,
    /// What each category scores.
    pub scores: CategoryScores,
}

impl Default for SelectConfig {
    fn default() -> Self {
        let owned = |words: &str| words.split(' ').map(str::to_owned).collect();
        Self {
            page_cap: 5,
            disallowed_paths: owned("/privacy /terms /cookie /legal /sso"),
            fold_www: false,
            drop_top_level: false,
            service_prefixes: owned("/services"),
            about_prefixes: owned("/about"),
            absolute_terms: owned("installation install maintenance inspection protection"),
            url_terms: owned(
                "fire alarm testing extinguishers repair system design monitoring commissioning commission",
            ),
            text_terms: owned("services"),
            area_segments: owned(
                "service-area service-areas servicearea areas-we-serve location locations territories \
                 coverage where-we-work region regions",
            ),
            area_phrases: vec!["service area".to_owned(), "areas we serve".to_owned()],
            scores: CategoryScores::default(),
        }
    }
}

/// What each category scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CategoryScores {
    /// A: starts as a service page.
    pub services: u32,
    /// Added to A once if an absolute term is there too.
    pub services_boost: u32,
    /// B: an absolute term.
    pub absolute: u32,
    /// C: about the business.
    pub about: u32,
    /// U: a URL term.
    pub url_term: u32,
    /// T: a term in the text.
    pub text: u32,
    /// D: everything else.
    pub other: u32,
}

impl Default for CategoryScores {
    fn default() -> Self {
        Self { services: 80, services_boost: 20, absolute: 85, about: 75, url_term: 60, text: 50, other: 0 }
    }
}

impl SelectConfig {
    /// The same settings with every text as it is looked for: in lower case, and what stands in
    /// URLs percent-decoded.
    pub(super) fn normalised(mut self) -> Self {
        for text in [&mut self.text_terms, &mut self.area_phrases].into_iter().flatten() {
            *text = text.to_lowercase();
        }
        let in_urls = [
            &mut self.disallowed_paths,
            &mut self.service_prefixes,
            &mut self.about_prefixes,
            &mut self.absolute_terms,
            &mut self.url_terms,
            &mut self.area_segments,
        ];
        for text in in_urls.into_iter().flatten() {
            *text = percent_decoded(text).to_lowercase();
        }
        self
    }

    /// An empty prefix would fit every path, and one without its slash none.
    pub(super) fn check_prefixes(&self) -> Result<(), SelectError> {
        let lists = [
            ("disallowed_paths", &self.disallowed_paths),
            ("service_prefixes", &self.service_prefixes),
            ("about_prefixes", &self.about_prefixes),
        ];
        for (list, prefix) in
            lists.into_iter().flat_map(|(name, list)| list.iter().map(move |text| (name, text)))
        {
            if prefix.is_empty() {
                return Err(SelectError::EmptyTerm { list });
            }
            if !prefix.starts_with('/') {
                return Err(SelectError::NotAPath { list, prefix: prefix.clone() });
            }
        }
        Ok(())
    }
}
