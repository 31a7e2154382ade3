//! What kind of page a URL leads to, guessed from its address.
//!
//! The patterns are matched against `//host/path`, percent-decoded and in lower case, because
//! host names such as `esavjetovanja.gov.hr` are meant to match; query and fragment are not part of it.

use core::fmt;

use regex::RegexSet;
use serde::{Deserialize, Serialize};

use super::Risk;
use crate::patterns;
use crate::url::{FetchUrl, percent_decoded};

/// What a page is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeType {
    /// A page that lists others.
    Hub,
    /// A page of content.
    Leaf,
    /// A file.
    Asset,
}

/// What a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeRole {
    /// What was.
    Archive,
    /// A table of contents.
    Index,
    /// What is new.
    NewsFeed,
    /// The law itself.
    Regulation,
    /// Something to fill in.
    Form,
    /// What an authority says about the law.
    Guidance,
}

/// A row of the table: what a page is if its address matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// A regular expression, looked for in `//host/path`.
    pub pattern: String,
    /// What the page is made of.
    pub node: NodeType,
    /// What it is for.
    #[serde(default)]
    pub role: Option<NodeRole>,
    /// How urgent its changes are.
    pub risk: Risk,
}

const DEFAULT_TABLE: [(&str, NodeType, NodeRole, Risk); 8] = [
    (r"/(arhiva?|archive|povijest|history|stari-?)/", NodeType::Hub, NodeRole::Archive, Risk::Low),
    (
        r"/(savjetovanja|e-?savjetovanja|javna-rasprava|public-consult)",
        NodeType::Hub,
        NodeRole::Guidance,
        Risk::Critical,
    ),
    (r"/(natjecaji|tenders|javna-nabava|pozivi)", NodeType::Hub, NodeRole::NewsFeed, Risk::High),
    (
        r"/(vijesti|novosti|news|priopcenja|priopćenja|aktual|objave|mediji)",
        NodeType::Hub,
        NodeRole::NewsFeed,
        Risk::High,
    ),
    (r"/(obrasci?|forms?|tiskanice|prijave?|zahtjevi)", NodeType::Leaf, NodeRole::Form, Risk::Medium),
    (
        r"/(uput[ea]|misljenj[ea]|mišljenj[ea]|tumacenj[ea]|tumačenj[ea]|stajalist[ea]|guidance)",
        NodeType::Leaf,
        NodeRole::Guidance,
        Risk::Medium,
    ),
    (
        r"/(propisi|zakoni?|pravilnici?|uredbe?|odluke?|akti|sluzbeni)",
        NodeType::Leaf,
        NodeRole::Regulation,
        Risk::Critical,
    ),
    (r"/(index|sadržaj|sadrzaj|pregled|contents?)\.", NodeType::Hub, NodeRole::Index, Risk::Low),
];

const ASSET_ENDINGS: [&str; 9] = [".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods"];

const ASSET_TYPES: [&str; 6] = ["pdf", "document", "msword", "spreadsheet", "ms-excel", "ms-powerpoint"];

/// What a page is, and why we think so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class<'c> {
    /// What it is made of.
    pub node_type: NodeType,
    /// What it is for, where that is known.
    pub node_role: Option<NodeRole>,
    /// How urgent its changes are.
    pub freshness_risk: Risk,
    /// What decided, in the order it was looked at.
    pub reasons: Vec<Reason<'c>>,
}

impl Class<'_> {
    /// The class once the risk of the page it was found on is known: a file on a critical page
    /// is critical itself.
    #[must_use]
    pub fn on_page_of(mut self, parent: Risk) -> Self {
        if self.node_type == NodeType::Asset && parent == Risk::Critical {
            self.freshness_risk = Risk::Critical;
            self.reasons.push(Reason::AssetOnCriticalPage);
        }
        self
    }
}

/// What decided a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason<'c> {
    /// The path ends like a file.
    AssetEnding(&'static str),
    /// The content type is that of a file.
    AssetType(&'static str),
    /// The address matches a row of the configuration.
    OwnRow(&'c str),
    /// The address matches a row of the default table.
    DefaultRow(&'c str),
    /// No row matched.
    NoRow,
    /// It was found on a critical page.
    AssetOnCriticalPage,
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AssetEnding(ending) => write!(f, "asset: path ends in {ending}"),
            Self::AssetType(part) => write!(f, "asset: content type contains {part}"),
            Self::OwnRow(pattern) => write!(f, "own row: {pattern}"),
            Self::DefaultRow(pattern) => write!(f, "default row: {pattern}"),
            Self::NoRow => f.write_str("no row matches"),
            Self::AssetOnCriticalPage => f.write_str("asset on a CRITICAL page"),
        }
    }
}

/// The classifier: own rows before the default table.
///
/// ```
/// # use forager_core::sentinel::{Risk, classify::Classifier};
/// let classifier = Classifier::default();
/// let class = classifier.classify(&"https://x.hr/propisi/1".parse()?, None);
/// assert_eq!(class.freshness_risk, Risk::Critical);
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Classifier {
    rows: Vec<Row>,
    own: usize,
    patterns: RegexSet,
}

impl Default for Classifier {
    fn default() -> Self {
        #[expect(clippy::expect_used, reason = "the default table is constant, and tested")]
        Self::new(Vec::new()).expect("the default table compiles")
    }
}

impl Classifier {
    /// Puts `own` rows before the default table. The error is that of the first pattern at fault.
    pub fn new(own: Vec<Row>) -> Result<Self, regex::Error> {
        let defaults = DEFAULT_TABLE.iter().map(|&(pattern, node, role, risk)| Row {
            pattern: pattern.to_owned(),
            node,
            role: Some(role),
            risk,
        });
        let own_count = own.len();
        let rows: Vec<Row> = own.into_iter().chain(defaults).collect();
        let patterns = patterns::compile(rows.iter().map(|row| &row.pattern))?;
        Ok(Self { rows, own: own_count, patterns })
    }

    /// Classifies a URL, and its content type where that is known.
    pub fn classify(&self, url: &FetchUrl, content_type: Option<&str>) -> Class<'_> {
        let subject = subject(url);
        if let Some(reason) = asset(&subject, content_type) {
            return Class {
                node_type: NodeType::Asset,
                node_role: None,
                freshness_risk: Risk::Medium,
                reasons: vec![reason],
            };
        }
        let Some(index) = self.patterns.matches(&subject).into_iter().next() else {
            return Class {
                node_type: NodeType::Leaf,
                node_role: None,
                freshness_risk: Risk::Medium,
                reasons: vec![Reason::NoRow],
            };
        };
        let Row { pattern, node, role, risk } = &self.rows[index];
        let reason = if index < self.own { Reason::OwnRow(pattern) } else { Reason::DefaultRow(pattern) };
        Class { node_type: *node, node_role: *role, freshness_risk: *risk, reasons: vec![reason] }
    }
}

fn subject(url: &FetchUrl) -> String {
    let (host, path) = (url.host(), percent_decoded(url.path()));
    let mut subject = String::with_capacity(host.len() + path.len() + 2);
    subject.push_str("//");
    subject.push_str(host);
    if path.is_ascii() {
        subject.push_str(&path);
        subject.make_ascii_lowercase();
    } else {
        subject.push_str(&path.to_lowercase());
    }
    subject
}

fn asset(subject: &str, content_type: Option<&str>) -> Option<Reason<'static>> {
    let ending = ASSET_ENDINGS.into_iter().find(|ending| subject.ends_with(ending));
    ending.map(Reason::AssetEnding).or_else(|| {
        let content_type = content_type?.to_ascii_lowercase();
        ASSET_TYPES.into_iter().find(|part| content_type.contains(part)).map(Reason::AssetType)
    })
}
