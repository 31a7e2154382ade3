//! Proof of politeness, from the log of fetches.
//!
//! What is proved: no host had more fetches under way than its limit, no two requests to a host were closer
//! together than its gap, none was sent while its host was to be left alone because it had failed or asked for a
//! pause, and no page was fetched that the robots.txt of the time forbids. The limits are those that were in force when
//! a fetch was made, as the log has them.

use std::collections::{BTreeMap, HashMap};

use forager_core::url::FetchUrl;
use forager_fetch::robots::Robots;
use forager_frontier::Moment;
use forager_frontier::verbs::FetchRow;
use serde::Serialize;

use crate::robots::{Label, origin};

/// What an audit found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// What each host can be shown.
    pub hosts: Vec<Evidence>,
    /// What should not have been, if anything.
    pub violations: Vec<Violation>,
}

/// How a host was treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The host.
    pub host: String,
    /// How many requests it had.
    pub fetches: u64,
    /// How many bytes it sent.
    pub bytes: u64,
    /// The first of them.
    pub first: Moment,
    /// The last.
    pub last: Moment,
    /// The most that were under way at a time.
    pub most_in_flight: u32,
    /// The shortest time between two requests, in milliseconds; none if there was but one.
    pub shortest_gap: Option<u64>,
    /// How often robots.txt was read.
    pub robots_read: u64,
    /// How many pages were taken by somebody who died: those may have been requested, and are not in the log.
    pub abandoned: u64,
}

/// Something that should not have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The host.
    pub host: String,
    /// What was requested.
    pub url: String,
    /// When.
    pub at: Moment,
    /// What is wrong with that.
    pub what: String,
}

/// A page that somebody took and never reported: it may have been fetched.
#[derive(Clone, Debug)]
pub struct Abandoned {
    /// The host.
    pub host: String,
    /// The page.
    pub url: String,
    /// When it was taken.
    pub from: Moment,
    /// When it was given up.
    pub until: Moment,
}

/// An audit under way.
pub struct Auditor<'f> {
    token: String,
    /// Finds a text of robots.txt by the key it is kept under.
    files: &'f dyn Fn(&str) -> Option<Vec<u8>>,
    hosts: BTreeMap<String, Vec<Span>>,
    evidence: BTreeMap<String, Evidence>,
    rules: HashMap<String, Known>,
    violations: Vec<Violation>,
}

/// From one request to its answer.
struct Span {
    started: Moment,
    ended: Moment,
    url: String,
    /// The gap and limit in force; none if the request may not have been sent at all.
    limits: Option<(u64, u32)>,
    /// Until when the host is to be left alone after its answer.
    pause: Option<Moment>,
}

/// What is known of the robots.txt of an origin.
enum Known {
    File(Box<Robots>),
    Nothing,
}

impl<'f> Auditor<'f> {
    /// An audit of what `product_token` did.
    pub fn new(product_token: &str, files: &'f dyn Fn(&str) -> Option<Vec<u8>>) -> Self {
        Self {
            token: product_token.to_owned(),
            files,
            hosts: BTreeMap::new(),
            evidence: BTreeMap::new(),
            rules: HashMap::new(),
            violations: Vec::new(),
        }
    }

    /// Takes in the next fetch of the log.
    pub fn fetch(&mut self, row: FetchRow) {
        let evidence = self.evidence_of(&row.host, row.started);
        evidence.fetches += 1;
        evidence.bytes += row.bytes;
        evidence.first = evidence.first.min(row.started);
        evidence.last = evidence.last.max(row.started);
        match Label::of(&row.robots) {
            Some(label) => {
                evidence.robots_read += 1;
                self.learn(&row, &label);
            }
            None => self.check_allowed(&row),
        }
        let limits = Some((row.least_gap, row.most_in_flight));
        let (started, ended, pause) = (row.started, row.ended, row.back_off_until);
        let span = Span { started, ended, url: row.url, limits, pause };
        self.hosts.entry(row.host).or_default().push(span);
    }

    /// Takes in a page that may have been fetched.
    pub fn abandoned(&mut self, page: Abandoned) {
        let Abandoned { url, from: started, until: ended, .. } = page;
        self.evidence_of(&page.host, started).abandoned += 1;
        let span = Span { started, ended, url, limits: None, pause: None };
        self.hosts.entry(page.host).or_default().push(span);
    }

    /// What is known of a host, of which nothing was before this.
    fn evidence_of(&mut self, host: &str, at: Moment) -> &mut Evidence {
        self.evidence.entry(host.to_owned()).or_insert_with(|| Evidence {
            host: host.to_owned(),
            first: at,
            last: at,
            ..Evidence::default()
        })
    }

    /// What robots.txt said from then on.
    fn learn(&mut self, row: &FetchRow, label: &Label<'_>) {
        let file = label.file.and_then(|key| (self.files)(key));
        let known = match (file, row.result.parse::<u16>()) {
            (Some(body), _) => Known::File(Box::new(Robots::parse(&body, &self.token))),
            (None, Ok(status)) if (400..500).contains(&status) && status != 429 => Known::Nothing,
            // Out of reach, or on its way elsewhere: what was known before counts on.
            _ => return,
        };
        self.rules.insert(label.origin.to_owned(), known);
    }

    fn check_allowed(&mut self, row: &FetchRow) {
        let Ok(url) = FetchUrl::parse(&row.url) else { return };
        let what = match self.rules.get(&origin(&url)) {
            Some(Known::Nothing) => return,
            Some(Known::File(robots)) => match robots.verdict(&url) {
                verdict if verdict.allowed => return,
                verdict => {
                    verdict.rule.map_or_else(String::new, |rule| format!("robots.txt forbids it: {rule}"))
                }
            },
            // Out of reach for so long that it counts as none, and the log began after that.
            None if row.robots.contains("after 30 days") => return,
            None => "robots.txt was not read before".to_owned(),
        };
        self.violations.push(Violation {
            host: row.host.clone(),
            url: row.url.clone(),
            at: row.started,
            what,
        });
    }

    /// The result.
    pub fn finish(mut self) -> Audit {
        for (host, mut spans) in std::mem::take(&mut self.hosts) {
            spans.sort_by_key(|span| span.started);
            let shortest_gap = self.check_gaps(&host, &spans);
            let most_in_flight = self.check_in_flight(&host, &spans);
            self.check_pauses(&host, &spans);
            if let Some(evidence) = self.evidence.get_mut(&host) {
                (evidence.shortest_gap, evidence.most_in_flight) = (shortest_gap, most_in_flight);
            }
        }
        self.violations.sort_by_key(|violation| violation.at);
        Audit { hosts: self.evidence.into_values().collect(), violations: self.violations }
    }

    /// Requests to one host, by time. Returns the shortest gap.
    fn check_gaps(&mut self, host: &str, spans: &[Span]) -> Option<u64> {
        let mut shortest = None;
        for pair in spans.windows(2) {
            let [before, after] = pair else { continue };
            let gap = after.started.millisecond().saturating_sub(before.started.millisecond());
            let (Some((first, _)), Some((second, _))) = (before.limits, after.limits) else { continue };
            shortest = Some(shortest.map_or(gap, |known: u64| known.min(gap)));
            // A limit that was changed in between holds from then on.
            let least = first.min(second);
            if gap < least {
                let what = format!("{gap} ms after {}, and {least} ms were due", before.url);
                self.violations.push(Violation {
                    host: host.to_owned(),
                    url: after.url.clone(),
                    at: after.started,
                    what,
                });
            }
        }
        shortest
    }

    /// Requests to one host, by time. Returns the most that were under way at a time.
    fn check_in_flight(&mut self, host: &str, spans: &[Span]) -> u32 {
        let mut under_way: Vec<Moment> = Vec::new();
        let mut most = 0;
        for span in spans {
            under_way.retain(|ended| *ended > span.started);
            under_way.push(span.ended);
            let count = u32::try_from(under_way.len()).unwrap_or(u32::MAX);
            most = most.max(count);
            if let Some((_, limit)) = span.limits.filter(|(_, limit)| count > *limit) {
                let what = format!("{count} under way, and {limit} were allowed");
                let (host, url) = (host.to_owned(), span.url.clone());
                self.violations.push(Violation { host, url, at: span.started, what });
            }
        }
        most
    }
}

impl Auditor<'_> {
    /// Requests to one host, by time: none is sent between an answer that asked for a pause and its end.
    fn check_pauses(&mut self, host: &str, spans: &[Span]) {
        let mut asked: Vec<&Span> = spans.iter().filter(|span| span.pause.is_some()).collect();
        asked.sort_by_key(|span| span.ended);
        let mut asked = asked.into_iter().peekable();
        let mut longest: Option<&Span> = None;
        for span in spans.iter().filter(|span| span.limits.is_some()) {
            while let Some(earlier) = asked.next_if(|earlier| earlier.ended < span.started) {
                longest = longest.into_iter().chain([earlier]).max_by_key(|span| span.pause);
            }
            let Some((earlier, until)) = longest.and_then(|span| Some((span, span.pause?))) else { continue };
            if span.started < until {
                let what = format!("the host was to be left alone until {until}, after {}", earlier.url);
                let (host, url) = (host.to_owned(), span.url.clone());
                self.violations.push(Violation { host, url, at: span.started, what });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"User-agent: *\nDisallow: /private\n";

    fn at(millisecond: u64) -> Moment {
        Moment::from_millisecond(1_800_000_000_000 + millisecond)
    }

    fn robots(started: u64) -> FetchRow {
        let robots = Label { file: Some("robots.txt x"), origin: "http://a.no" }.to_string();
        FetchRow { robots, url: "http://a.no/robots.txt".into(), ..page(started, started + 10, "/") }
    }

    fn page(started: u64, ended: u64, path: &str) -> FetchRow {
        FetchRow {
            started: at(started),
            ended: at(ended),
            host: "a.no".into(),
            url: format!("http://a.no{path}"),
            result: "200".into(),
            robots: "no rule of robots.txt matches".into(),
            least_gap: 1000,
            most_in_flight: 2,
            ..FetchRow::default()
        }
    }

    fn audit(rows: Vec<FetchRow>) -> Vec<String> {
        let files = |_: &str| Some(FILE.to_vec());
        let mut auditor = Auditor::new("forager", &files);
        for row in rows {
            auditor.fetch(row);
        }
        auditor.finish().violations.into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn what_is_allowed_and_what_is_not() {
        let table: [(&str, Vec<FetchRow>, &[&str]); 7] = [
            ("polite", vec![robots(0), page(1000, 1500, "/a"), page(2000, 9000, "/b")], &[]),
            ("two under way", vec![robots(0), page(1000, 5000, "/a"), page(2000, 3000, "/b")], &[]),
            (
                "too soon",
                vec![robots(0), page(1000, 1100, "/a"), page(1999, 2100, "/b")],
                &["999 ms after http://a.no/a, and 1000 ms were due"],
            ),
            (
                "logged in the order of their ends",
                vec![robots(0), page(2000, 2100, "/b"), page(1500, 9000, "/a")],
                &["500 ms after http://a.no/a, and 1000 ms were due"],
            ),
            (
                "three under way",
                vec![robots(0), page(1000, 9000, "/a"), page(2000, 9000, "/b"), page(3000, 9000, "/c")],
                &["3 under way, and 2 were allowed"],
            ),
            (
                "forbidden",
                vec![robots(0), page(1000, 1100, "/private/x")],
                &["robots.txt forbids it: line 2: Disallow: /private"],
            ),
            ("without asking", vec![page(1000, 1100, "/a")], &["robots.txt was not read before"]),
        ];
        for (name, rows, want) in table {
            assert_eq!(audit(rows), want, "{name}");
        }
    }

    #[test]
    fn a_fetch_during_a_pause_is_named() {
        let busy = |started, ended, until| FetchRow {
            back_off_until: Some(at(until)),
            result: "503".into(),
            ..page(started, ended, "/busy")
        };
        let told =
            |until: u64| format!("the host was to be left alone until {}, after http://a.no/busy", at(until));
        let table: [(&str, Vec<FetchRow>, Vec<String>); 6] = [
            ("in the pause", vec![busy(1000, 1500, 9000), page(8999, 9100, "/a")], vec![told(9000)]),
            ("when it is over", vec![busy(1000, 1500, 9000), page(9000, 9100, "/a")], vec![]),
            ("under way before", vec![busy(1000, 2500, 9000), page(2500, 9100, "/a")], vec![]),
            (
                "the longest of two counts",
                vec![busy(1000, 1500, 9000), busy(1000 + 1000, 2500, 5000), page(6000, 6100, "/a")],
                vec![told(9000), told(9000)],
            ),
            (
                "each is named",
                vec![busy(1000, 1500, 9000), page(3000, 3100, "/a"), page(5000, 5100, "/b")],
                vec![told(9000), told(9000)],
            ),
            (
                "another host",
                vec![busy(1000, 1500, 9000), FetchRow { host: "b.no".into(), ..page(3000, 3100, "/a") }],
                vec![],
            ),
        ];
        for (name, mut rows, want) in table {
            rows.insert(0, robots(0));
            assert_eq!(audit(rows), want, "{name}");
        }
    }

    #[test]
    fn a_missing_file_allows_everything_and_a_broken_one_changes_nothing() {
        let answer = |started, result: &str| {
            let word = Label { file: None, origin: "http://a.no" }.to_string();
            FetchRow { robots: word, result: result.into(), ..robots(started) }
        };
        assert_eq!(audit(vec![answer(0, "404"), page(1000, 1100, "/private/x")]), Vec::<String>::new());
        let broken = audit(vec![robots(0), answer(1000, "500"), page(2000, 2100, "/private/x")]);
        assert_eq!(broken, ["robots.txt forbids it: line 2: Disallow: /private"]);
    }

    #[test]
    fn a_page_that_was_abandoned_counts_as_under_way() {
        let files = |_: &str| Some(FILE.to_vec());
        let mut auditor = Auditor::new("forager", &files);
        for row in [robots(0), page(1000, 9000, "/a"), page(3000, 9000, "/c")] {
            auditor.fetch(row);
        }
        let (host, url) = ("a.no".to_owned(), "http://a.no/b".to_owned());
        auditor.abandoned(Abandoned { host, url, from: at(2000), until: at(9000) });
        let audit = auditor.finish();
        assert_eq!(audit.violations.len(), 1, "{audit:?}");
        let host = &audit.hosts[0];
        assert_eq!((host.fetches, host.most_in_flight, host.abandoned), (3, 3, 1));
    }
}
