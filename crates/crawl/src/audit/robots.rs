//! What the robots.txt of every site said, and from when on.
//!
//! The crawler's own decision is made once more from what the log has of each answer, so that what counts as a missing
//! file, and for how long an old one counts on, is written down in one place.

use std::collections::HashMap;

use forager_core::url::FetchUrl;
use forager_fetch::robots::{Answer, Copy, LastTry, Outcome, Robots, Rules, Why, of_answer};
use forager_frontier::Moment;
use forager_frontier::host::to_millis;

use super::InForce;
use crate::robots::{CameTo, Label, file_name, origin};

/// Finds a text of robots.txt by the key it is kept under.
pub(super) type Files<'f> = &'f dyn Fn(&str) -> Option<Vec<u8>>;

/// The rules of all sites.
pub(super) struct Rulebook<'f> {
    /// The name that counts where the log has none.
    name: &'f str,
    files: Files<'f>,
    sites: HashMap<String, Site>,
}

/// The rules of one scheme, host and port.
#[derive(Default)]
struct Site {
    /// What the crawler kept when robots.txt was asked for last.
    copy: Option<Copy>,
    /// The rules, and from when on they were known: a page that was under way then was sent by those before.
    rules: Vec<(Moment, Rules)>,
}

impl<'f> Rulebook<'f> {
    pub(super) fn new(name: &'f str, files: Files<'f>) -> Self {
        Self { name, files, sites: HashMap::new() }
    }

    /// Takes in a request for robots.txt that ended at `now`, after all that were taken in before. Says what is known since.
    pub(super) fn learn(&mut self, label: &Label<'_>, now: Moment) -> Option<InForce> {
        // A redirect on the way says nothing: what robots.txt came to stands with the last request.
        let came_to = label.came_to?;
        let text = match came_to {
            CameTo::File(key) => (self.files)(key),
            CameTo::Nothing(_) => None,
        };
        let outcome = match (&text, came_to) {
            (Some(body), _) => Outcome::Answer(Answer { status: 200, body, ..Answer::default() }),
            (None, CameTo::File(key)) => Outcome::Failed { error: format!("{key} is not kept any more") },
            (None, CameTo::Nothing(words)) => without_file(words),
        };
        let site = self.sites.entry(label.origin.to_owned()).or_default();
        let copy = of_answer(&outcome, site.copy.as_ref(), now.timestamp());
        let rules = copy.rules(label.asked_as.unwrap_or(self.name));
        let in_force = InForce {
            from: now,
            site: label.origin.to_owned(),
            asked_as: label.asked_as.map(str::to_owned),
            answer: copy.last.to_string(),
            file: copy.file.as_ref().filter(|_| rules.robots().is_some()).map(|file| file_name(&file.body)),
            crawl_delay: rules.robots().and_then(Robots::crawl_delay).map(to_millis),
        };
        site.copy = Some(copy);
        if site.rules.last().is_none_or(|(_, before)| *before != rules) {
            site.rules.push((now, rules));
        }
        Some(in_force)
    }

    /// The rules for a URL that were known at a time.
    fn known(&self, url: &FetchUrl, at: Moment) -> Option<&Rules> {
        let rules = &self.sites.get(&origin(url))?.rules;
        rules.iter().rev().find(|(from, _)| *from <= at).map(|(_, rules)| rules)
    }

    /// The milliseconds that robots.txt wants between a page that is requested at a time and the request before it.
    pub(super) fn wait(&self, url: &FetchUrl, at: Moment) -> u64 {
        let robots = self.known(url, at).and_then(Rules::robots);
        robots.and_then(Robots::crawl_delay).map_or(0, to_millis)
    }

    /// Why a page must not be requested at a time, if so.
    pub(super) fn objection(&self, url: &FetchUrl, at: Moment) -> Option<String> {
        let Some(rules) = self.known(url, at) else {
            return Some("robots.txt was not read before".to_owned());
        };
        let ruling = rules.verdict(url);
        (!ruling.allowed).then(|| match ruling.why {
            Why::File { rule: Some(rule), .. } => format!("robots.txt forbids it: {rule}"),
            why => why.to_string(),
        })
    }
}

/// What came of robots.txt, if not a file, by the words that the log has for it.
fn without_file(words: &str) -> Outcome<'static> {
    match words.parse() {
        Ok(status) => Outcome::Answer(Answer { status, ..Answer::default() }),
        Err(_) if words == LastTry::TooManyRedirects.to_string() => Outcome::TooManyRedirects,
        Err(_) => Outcome::Failed { error: words.to_owned() },
    }
}
