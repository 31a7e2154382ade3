//! Which lines of a file are for us.

use core::cmp::Reverse;

use forager_core::time::Interval;

use super::Rule;
use super::lines::{Line, lines};
use super::pattern::Pattern;

/// How many sitemaps of one file are kept.
pub const MAX_SITEMAPS: usize = 500;

/// How many lines of other names are kept.
pub const MAX_EXTRAS: usize = 100;

/// How much of a line is kept as text, in bytes.
pub const MAX_TEXT_BYTES: usize = 2_048;

/// The longest delay that is taken at its word; longer ones are as good as never.
pub const MAX_CRAWL_DELAY: Interval = Interval::hours(30 * 24);

/// Whom the rules that apply are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addressed {
    /// The file names us.
    Us,
    /// The file has rules for all that it does not name.
    Everyone,
    /// Neither: everything may be fetched.
    #[default]
    Nobody,
}

/// All of a file that matters to us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addressed: Addressed,
    /// The most specific first, `Allow` before `Disallow` of the same length.
    pub(super) rules: Vec<GroupRule>,
    pub(super) crawl_delay: Option<Interval>,
    pub(super) sitemaps: Vec<String>,
    pub(super) extras: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GroupRule {
    pub(super) allows: bool,
    pub(super) pattern: Pattern,
    pub(super) rule: Rule,
}

/// Reads a file for the crawler of this name.
pub(super) fn find(body: &[u8], product_token: &str) -> Found {
    let token = name_of(product_token.as_bytes());
    let mut reader = Reader { token, ..Reader::default() };
    for line in lines(body) {
        reader.take(&line);
    }
    reader.finish()
}

/// All groups of one kind, merged.
#[derive(Default)]
struct Group {
    exists: bool,
    rules: Vec<GroupRule>,
    crawl_delay: Option<Interval>,
    extras: Vec<(String, String)>,
}

/// Which of the two kinds of groups that matter the lines being read belong to.
#[derive(Clone, Copy, Default)]
struct Names {
    us: bool,
    everyone: bool,
}

#[derive(Default)]
struct Reader<'a> {
    token: &'a [u8],
    ours: Group,
    everyones: Group,
    outside: Vec<(String, String)>,
    sitemaps: Vec<String>,
    in_group: bool,
    /// Whom the rules that follow are for. Further names join until there is a rule.
    names: Names,
    has_rule: bool,
    /// Whom a delay that follows is for: it belongs to the names right above it, even though by
    /// the RFC it does not end them. Else `a`, 10 s, `b`, 20 s would be one group with two delays.
    delayed: Names,
    has_delay: bool,
}

impl Reader<'_> {
    fn take(&mut self, line: &Line<'_>) {
        let is = |name: &str| line.name.eq_ignore_ascii_case(name.as_bytes());
        if is("user-agent") {
            self.take_name(line.value);
        } else if is("allow") || is("disallow") {
            self.take_rule(line, is("allow"));
        } else if is("crawl-delay") {
            self.take_delay(line.value);
        } else if is("sitemap") {
            self.take_sitemap(line.value);
        } else if !line.name.is_empty() {
            self.take_extra(line);
        }
    }

    fn take_name(&mut self, value: &[u8]) {
        if self.has_rule || !self.in_group {
            self.names = Names::default();
        }
        if self.has_rule || self.has_delay || !self.in_group {
            self.delayed = Names::default();
        }
        (self.in_group, self.has_rule, self.has_delay) = (true, false, false);
        let is_us = !self.token.is_empty() && name_of(value).eq_ignore_ascii_case(self.token);
        let is_everyone = value == b"*" || value.starts_with(b"* ") || value.starts_with(b"*\t");
        for names in [&mut self.names, &mut self.delayed] {
            names.us |= is_us;
            names.everyone |= is_everyone;
        }
        self.ours.exists |= is_us;
        self.everyones.exists |= is_everyone;
    }

    fn take_rule(&mut self, line: &Line<'_>, allows: bool) {
        // Even one that matches nothing is a rule, and ends the names above it.
        self.has_rule = true;
        let Some(pattern) = Pattern::parse(line.value) else { return };
        if !(self.names.us || self.names.everyone) {
            return;
        }
        let rule = Rule { line: line.number, text: text(line.text) };
        let rule = GroupRule { allows, pattern, rule };
        for group in self.groups(self.names) {
            group.rules.push(rule.clone());
        }
    }

    fn take_delay(&mut self, value: &[u8]) {
        self.has_delay = true;
        let delay = delay(value);
        for group in self.groups(self.delayed) {
            group.crawl_delay = group.crawl_delay.max(delay);
        }
    }

    fn take_sitemap(&mut self, value: &[u8]) {
        let fits = !value.is_empty() && value.len() <= MAX_TEXT_BYTES && self.sitemaps.len() < MAX_SITEMAPS;
        let sitemap = text(value);
        if fits && !self.sitemaps.contains(&sitemap) {
            self.sitemaps.push(sitemap);
        }
    }

    fn take_extra(&mut self, line: &Line<'_>) {
        let extra = (text(line.name), text(line.value));
        if !self.in_group {
            push_bounded(&mut self.outside, extra);
            return;
        }
        for group in self.groups(self.names) {
            push_bounded(&mut group.extras, extra.clone());
        }
    }

    fn groups(&mut self, names: Names) -> impl Iterator<Item = &mut Group> {
        [(names.us, &mut self.ours), (names.everyone, &mut self.everyones)]
            .into_iter()
            .filter_map(|(is_named, group)| is_named.then_some(group))
    }

    fn finish(self) -> Found {
        let (addressed, group) = match (self.ours.exists, self.everyones.exists) {
            (true, _) => (Addressed::Us, self.ours),
            (false, true) => (Addressed::Everyone, self.everyones),
            (false, false) => (Addressed::Nobody, Group::default()),
        };
        let (mut rules, mut extras) = (group.rules, self.outside);
        rules.sort_by_key(|one| (Reverse(one.pattern.length()), !one.allows));
        for extra in group.extras {
            push_bounded(&mut extras, extra);
        }
        Found { addressed, rules, crawl_delay: group.crawl_delay, sitemaps: self.sitemaps, extras }
    }
}

/// The name by which robots.txt addresses a crawler that sends this as its own: what a `User-agent` line has of it, too.
///
/// ```
/// # use forager_fetch::robots::product_token;
/// assert_eq!(product_token("Example2/1.0 (+https://www.example.org/)"), "Example2");
/// ```
pub fn product_token(name: &str) -> &str {
    // The bytes of a name are ASCII, so that it ends where a letter does.
    &name[..name_of(name.as_bytes()).len()]
}

/// The name that a text starts with. The RFC has letters, `-` and `_`; digits are taken along, for
/// `forager2` is somebody else.
fn name_of(text: &[u8]) -> &[u8] {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    &text[..text.iter().position(|&byte| !is_part(byte)).unwrap_or(text.len())]
}

/// A number of seconds, where it is one and not zero.
fn delay(value: &[u8]) -> Option<Interval> {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.' || byte == b',';
    let end = value.iter().position(|&byte| !is_part(byte)).unwrap_or(value.len());
    let number = core::str::from_utf8(&value[..end]).ok()?.replace(',', ".");
    let seconds: f64 = number.parse().ok()?;
    let millis = (seconds.min(MAX_CRAWL_DELAY.as_secs_f64()) * 1_000.0).ceil();
    (millis > 0.0).then(|| format!("{millis}ms").parse().ok()).flatten()
}

/// Text for people, shortened where it is long.
fn text(bytes: &[u8]) -> String {
    if bytes.len() <= MAX_TEXT_BYTES {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut shortened = String::from_utf8_lossy(&bytes[..MAX_TEXT_BYTES]).into_owned();
    shortened.push('…');
    shortened
}

fn push_bounded(extras: &mut Vec<(String, String)>, extra: (String, String)) {
    if extras.len() < MAX_EXTRAS {
        extras.push(extra);
    }
}
