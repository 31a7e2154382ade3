//! What a page says about being indexed and followed: `X-Robots-Tag` and `meta robots`.
//!
//! Words for all robots and words for us hold together, and the strictest wins: a page that tells
//! all robots `noindex` and us only `nofollow` means both. What we do not know is passed over.

use core::fmt;

use jiff::Timestamp;

use crate::dates;
use crate::links::RobotsMeta;

/// How much is read of one header or element, and how many of them.
const MAX_BYTES: usize = 1024;
const MAX_SOURCES: usize = 64;

/// What a page asks of robots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Do not list it.
    pub noindex: bool,
    /// Do not follow its links.
    pub nofollow: bool,
    /// Do not show a copy of it.
    pub noarchive: bool,
    /// Do not list it after this time; the earliest that was named.
    pub unavailable_after: Option<Timestamp>,
    /// What was said, and where, in the order it was read.
    pub why: Vec<Said>,
}

/// One directive that counts, with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Where it stands.
    pub source: Source,
    /// The agent it was said to; none if to all.
    pub agent: Option<String>,
    /// The directive, in lower case.
    pub directive: String,
}

/// Where a directive stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The header `X-Robots-Tag`.
    Header,
    /// A `meta` element.
    Meta,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, directive, .. } = self;
        match (self.source, agent) {
            (Source::Header, None) => write!(f, "X-Robots-Tag: {directive}"),
            (Source::Header, Some(agent)) => write!(f, "X-Robots-Tag: {agent}: {directive}"),
            (Source::Meta, None) => write!(f, "meta robots: {directive}"),
            (Source::Meta, Some(agent)) => write!(f, "meta {agent}: {directive}"),
        }
    }
}

impl Directives {
    /// Reads what `X-Robots-Tag` headers and `meta` elements say to the agent of this name.
    ///
    /// ```
    /// # use forager_fetch::directives::Directives;
    /// let asked = Directives::read(["noarchive", "forager: nofollow"], &[], "forager");
    /// assert!(asked.nofollow && asked.noarchive && !asked.noindex);
    /// assert_eq!(asked.why[1].to_string(), "X-Robots-Tag: forager: nofollow");
    /// ```
    pub fn read<'h>(
        headers: impl IntoIterator<Item = &'h str>,
        metas: &[RobotsMeta],
        product_token: &str,
    ) -> Self {
        let mut directives = Self::default();
        for header in headers.into_iter().take(MAX_SOURCES) {
            directives.header(crate::html::cut(header, MAX_BYTES), product_token);
        }
        for meta in metas.iter().take(MAX_SOURCES) {
            let is_ours = meta.agent.eq_ignore_ascii_case(product_token);
            if is_ours || meta.agent.eq_ignore_ascii_case("robots") {
                let agent = is_ours.then_some(product_token);
                let text = crate::html::cut(&meta.content, MAX_BYTES);
                items(text).for_each(|item| directives.apply(item, Source::Meta, agent));
            }
        }
        directives
    }

    /// One header. A name with a colon says whom all that follows is for, until the next name.
    fn header(&mut self, text: &str, product_token: &str) {
        let mut for_us = true;
        let mut agent = None;
        for item in items(text) {
            let mut item = item;
            if let Some((name, rest)) = addressed(item) {
                let is_ours = name.eq_ignore_ascii_case(product_token);
                for_us = is_ours || matches!(name, "*") || name.eq_ignore_ascii_case("robots");
                agent = is_ours.then_some(product_token);
                item = rest;
            }
            if for_us {
                self.apply(item, Source::Header, agent);
            }
        }
    }

    fn apply(&mut self, item: &str, source: Source, agent: Option<&str>) {
        let directive = item.to_ascii_lowercase();
        match directive.as_str() {
            "noindex" => self.noindex = true,
            "nofollow" => self.nofollow = true,
            "none" => (self.noindex, self.nofollow) = (true, true),
            "noarchive" | "nocache" => self.noarchive = true,
            _ => {
                let Some(until) = unavailable_after(item) else { return };
                let earlier = self.unavailable_after.is_none_or(|known| until < known);
                self.unavailable_after = if earlier { Some(until) } else { self.unavailable_after };
            }
        }
        self.why.push(Said { source, agent: agent.map(str::to_owned), directive });
    }

    /// What it asks for, each once.
    ///
    /// ```
    /// # use forager_fetch::directives::Directives;
    /// let asked = Directives::read(["none, noarchive, noindex"], &[], "forager");
    /// assert_eq!(asked.words(), ["noindex", "nofollow", "noarchive"]);
    /// ```
    pub fn words(&self) -> Vec<String> {
        let named = [("noindex", self.noindex), ("nofollow", self.nofollow), ("noarchive", self.noarchive)];
        let named = named.into_iter().filter(|(_, is_asked)| *is_asked).map(|(word, _)| word.to_owned());
        named.chain(self.unavailable_after.map(|time| format!("unavailable_after: {time}"))).collect()
    }

    /// What keeps its links from being followed, if anything does.
    pub fn nofollow_said(&self) -> Option<&Said> {
        self.why.iter().find(|said| matches!(said.directive.as_str(), "nofollow" | "none"))
    }

    /// Whether the page may be listed at `now`.
    pub fn is_indexable(&self, now: Timestamp) -> bool {
        !self.noindex && self.unavailable_after.is_none_or(|until| now < until)
    }
}

/// The parts of a list. A date may hold a comma of its own (`Sat, 15 Jun 2024`), so what follows
/// one is added to it.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let end = item_end(rest);
            let item = rest[..end].trim();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !item.is_empty() {
                return Some(item);
            }
        }
    })
}

fn item_end(text: &str) -> usize {
    let comma = text.find(',').unwrap_or(text.len());
    let head = &text[..comma];
    let is_day = head.rsplit([':', ' ']).next().is_some_and(is_weekday);
    if !is_day || !head.to_ascii_lowercase().contains("unavailable_after") {
        return comma;
    }
    text.get(comma + 1..).and_then(|tail| tail.find(',')).map_or(text.len(), |next| comma + 1 + next)
}

fn is_weekday(word: &str) -> bool {
    ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
        .iter()
        .any(|day| word.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(day)))
}

/// `agent: directive`. The directives that have a colon themselves are no agents.
fn addressed(item: &str) -> Option<(&str, &str)> {
    let (name, rest) = item.split_once(':')?;
    let name = name.trim();
    let own = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    let is_directive = own.iter().any(|own| name.eq_ignore_ascii_case(own));
    (!is_directive).then_some((name, rest.trim()))
}

/// The time of `unavailable_after: …`.
fn unavailable_after(item: &str) -> Option<Timestamp> {
    let (name, value) = item.split_once(':')?;
    if !name.trim().eq_ignore_ascii_case("unavailable_after") {
        return None;
    }
    dates::read(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Timestamp> {
        (!text.is_empty()).then(|| text.parse().unwrap())
    }

    #[test]
    fn what_headers_ask() {
        // (name, headers, (noindex, nofollow, noarchive), unavailable_after)
        type Flags = (bool, bool, bool);
        let cases: [(&str, &[&str], Flags, &str); 24] = [
            ("nothing", &[], (false, false, false), ""),
            ("one", &["noindex"], (true, false, false), ""),
            ("a list in any case", &["NoIndex , NOFOLLOW"], (true, true, false), ""),
            ("none", &["none"], (true, true, false), ""),
            ("all", &["all, index, follow"], (false, false, false), ""),
            ("unknown ones", &["noodp, max-snippet:20, noarchive"], (false, false, true), ""),
            ("nocache", &["nocache"], (false, false, true), ""),
            ("several headers", &["noindex", "nofollow"], (true, true, false), ""),
            ("for us", &["forager: noindex"], (true, false, false), ""),
            ("for us in any case", &["Forager:noindex"], (true, false, false), ""),
            ("for another", &["otherbot: noindex"], (false, false, false), ""),
            ("a name holds on", &["otherbot: noindex, nofollow"], (false, false, false), ""),
            ("until the next", &["otherbot: noindex, forager: nofollow"], (false, true, false), ""),
            ("not into the next header", &["otherbot: noindex", "nofollow"], (false, true, false), ""),
            ("all by name", &["robots: noindex", "*: noarchive"], (true, false, true), ""),
            ("both hold", &["noindex", "forager: nofollow"], (true, true, false), ""),
            ("ours does not lift", &["noindex", "forager: all"], (true, false, false), ""),
            (
                "until a time",
                &["unavailable_after: 25 Jun 2010 15:00:00 PST"],
                (false, false, false),
                "2010-06-25T23:00:00Z",
            ),
            (
                "a date with its own comma",
                &["unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex"],
                (true, false, false),
                "2010-06-25T15:00:00Z",
            ),
            (
                "with dashes",
                &["forager: unavailable_after: 25-Aug-2011 15:00:00 EST"],
                (false, false, false),
                "2011-08-25T20:00:00Z",
            ),
            (
                "RFC 3339",
                &["unavailable_after: 2024-06-15T10:00:00+02:00"],
                (false, false, false),
                "2024-06-15T08:00:00Z",
            ),
            (
                "a date alone",
                &["unavailable_after:2024-06-15"],
                (false, false, false),
                "2024-06-15T00:00:00Z",
            ),
            (
                "the earliest",
                &[
                    "unavailable_after: 2024-06-15",
                    "unavailable_after: 2023-06-15",
                    "unavailable_after: 2025-01-01",
                ],
                (false, false, false),
                "2023-06-15T00:00:00Z",
            ),
            ("not a time", &["unavailable_after: soon, noindex"], (true, false, false), ""),
        ];
        for (name, headers, flags, until) in cases {
            let asked = Directives::read(headers.iter().copied(), &[], "forager");
            assert_eq!((asked.noindex, asked.nofollow, asked.noarchive), flags, "{name}");
            assert_eq!(asked.unavailable_after, at(until), "{name}");
        }
    }

    #[test]
    fn what_elements_ask_and_why() {
        let meta = |agent: &str, content: &str| RobotsMeta { agent: agent.into(), content: content.into() };
        let metas =
            [meta("robots", "NOINDEX, follow"), meta("Forager", "nofollow"), meta("otherbot", "noarchive")];
        let asked = Directives::read(["none"], &metas, "forager");
        assert!(asked.noindex && asked.nofollow && !asked.noarchive);
        let why: Vec<_> = asked.why.iter().map(ToString::to_string).collect();
        assert_eq!(why, ["X-Robots-Tag: none", "meta robots: noindex", "meta forager: nofollow"]);
    }

    #[test]
    fn a_page_leaves_the_index_when_its_time_is_over() {
        let asked = Directives::read(["unavailable_after: 2024-06-15"], &[], "forager");
        assert!(asked.is_indexable(at("2024-06-14T23:59:59Z").unwrap()));
        assert!(!asked.is_indexable(at("2024-06-15T00:00:00Z").unwrap()));
        assert!(!Directives { noindex: true, ..Directives::default() }.is_indexable(Timestamp::MIN));
    }

    #[test]
    fn only_the_beginning_of_a_long_header_is_read() {
        let long = format!("{}noindex", "x,".repeat(600));
        assert!(!Directives::read([long.as_str()], &[], "forager").noindex);
        assert!(!Directives::read(core::iter::repeat_n("x", 64).chain(["noindex"]), &[], "forager").noindex);
    }
}
