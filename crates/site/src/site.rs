//! The description of a web: hosts, and what they answer.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use crate::answer::Answer;
use crate::changes::{Changes, Version};

/// A request, as the functions that make answers see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The host, by its name in the description.
    pub host: &'a str,
    /// The path, as it was sent.
    pub path: &'a str,
    /// The query, without its question mark.
    pub query: Option<&'a str>,
    /// What time it is for the site.
    pub now: Timestamp,
    /// The port that all hosts are served at.
    pub port: u16,
}

impl Asked<'_> {
    /// An address at this or another host, for links that leave their host.
    pub fn url(&self, host: &str, path: &str) -> String {
        url(host, self.port, path)
    }
}

pub(crate) fn url(host: &str, port: u16, path: &str) -> String {
    if port == 80 { format!("http://{host}{path}") } else { format!("http://{host}:{port}{path}") }
}

/// Makes an answer; none stands for a page that is not there.
pub type Make = Arc<dyn Fn(&Asked<'_>) -> Option<Answer> + Send + Sync>;

/// Makes a version of a page that changes.
pub type MakeVersion = Arc<dyn Fn(&Asked<'_>, Version) -> Answer + Send + Sync>;

/// What is at a path.
#[derive(Clone)]
pub enum Page {
    /// Always the same.
    Fixed(Answer),
    /// Made for each request.
    Made(Make),
    /// Another version after each change.
    Changing(Changes, MakeVersion),
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(answer) => f.debug_tuple("Fixed").field(answer).finish(),
            Self::Made(_) => f.write_str("Made"),
            Self::Changing(changes, _) => f.debug_tuple("Changing").field(changes).finish(),
        }
    }
}

impl Page {
    pub(crate) fn answer(&self, asked: &Asked<'_>) -> Option<Answer> {
        match self {
            Self::Fixed(answer) => Some(answer.clone()),
            Self::Made(make) => make(asked),
            Self::Changing(changes, make) => Some(make(asked, changes.version(asked.now))),
        }
    }
}

/// A host: a name, perhaps an address, and pages.
#[derive(Clone, Default)]
pub struct Host {
    pub(crate) name: String,
    pub(crate) address: Option<IpAddr>,
    pages: BTreeMap<String, Page>,
    /// What answers for all paths that begin in a certain way.
    under: Vec<(String, Make)>,
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let under: Vec<&str> = self.under.iter().map(|(prefix, _)| prefix.as_str()).collect();
        f.debug_struct("Host")
            .field("name", &self.name)
            .field("address", &self.address)
            .field("pages", &self.pages)
            .field("under", &under)
            .finish()
    }
}

impl Host {
    /// A host without pages.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into().to_ascii_lowercase(), ..Self::default() }
    }

    /// Is served at this address, and not at the next one that is free.
    #[must_use]
    pub fn at(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Has a page. A path with a query is found before the path alone, which answers every query.
    #[must_use]
    pub fn page(self, path: impl Into<String>, answer: Answer) -> Self {
        self.with(path, Page::Fixed(answer))
    }

    /// Has a page that is made for each request.
    #[must_use]
    pub fn made(
        self,
        path: impl Into<String>,
        make: impl Fn(&Asked<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.with(path, Page::Made(Arc::new(move |asked| Some(make(asked)))))
    }

    /// Has a page that changes at certain times.
    #[must_use]
    pub fn changing(
        self,
        path: impl Into<String>,
        changes: Changes,
        make: impl Fn(&Asked<'_>, Version) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.with(path, Page::Changing(changes, Arc::new(make)))
    }

    /// Has a page of any kind.
    #[must_use]
    pub fn with(mut self, path: impl Into<String>, page: Page) -> Self {
        self.pages.insert(path.into(), page);
        self
    }

    /// Answers for all paths that begin like this and have no page of their own; the longest beginning counts.
    #[must_use]
    pub fn under(
        mut self,
        prefix: impl Into<String>,
        make: impl Fn(&Asked<'_>) -> Option<Answer> + Send + Sync + 'static,
    ) -> Self {
        self.under.push((prefix.into(), Arc::new(make)));
        self.under.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        self
    }

    /// Has these rules for robots.
    #[must_use]
    pub fn robots(self, rules: &str) -> Self {
        self.page("/robots.txt", Answer::text(rules.to_owned()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pages that are described one by one.
    pub fn pages(&self) -> impl Iterator<Item = (&str, &Page)> {
        self.pages.iter().map(|(path, page)| (path.as_str(), page))
    }

    pub(crate) fn answer(&self, asked: &Asked<'_>) -> Answer {
        let exact = asked.query.and_then(|query| self.pages.get(&format!("{}?{query}", asked.path)));
        let page = exact.or_else(|| self.pages.get(asked.path));
        let answer = match page {
            Some(page) => page.answer(asked),
            None => self
                .under
                .iter()
                .find(|(prefix, _)| asked.path.starts_with(prefix.as_str()))
                .and_then(|(_, make)| make(asked)),
        };
        answer.unwrap_or_else(|| Answer::error(404))
    }
}

/// A web: several hosts, all at one port.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub(crate) hosts: Vec<Host>,
    pub(crate) port: u16,
    pub(crate) is_on_one_address: bool,
}

impl Site {
    /// A web without hosts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has one more host. It takes the place of one with the same name.
    #[must_use]
    pub fn host(mut self, host: Host) -> Self {
        self.hosts.retain(|other| other.name != host.name);
        self.hosts.push(host);
        self
    }

    /// Is served at this port; any that is free, if it is 0.
    #[must_use]
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Is served at 127.0.0.1 alone, with the hosts told apart by what clients call them.
    #[must_use]
    pub fn on_one_address(self) -> Self {
        Self { is_on_one_address: true, ..self }
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// When each page changes that does: what a crawler should find out.
    pub fn changes(&self) -> impl Iterator<Item = (&str, &str, &Changes)> {
        self.hosts.iter().flat_map(|host| {
            host.pages().filter_map(|(path, page)| match page {
                Page::Changing(changes, _) => Some((host.name(), path, changes)),
                Page::Fixed(_) | Page::Made(_) => None,
            })
        })
    }
}
