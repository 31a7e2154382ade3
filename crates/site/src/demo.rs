//! The web that `forager demo` crawls.
//!
//! | host | what it is there for |
//! |---|---|
//! | `shop.demo` | a small business: header navigation, service pages, a sitemap with pages that nothing links to |
//! | `news.demo` | a hub whose sections get new articles; an index of packed sitemaps |
//! | `ured.demo` | an office that publishes rules, in Croatian: pages that change on a seeded schedule |
//! | `slow.demo` | answers slowly, and asks for ten seconds between requests |
//! | `trap.demo` | a calendar, session ids and folders without end |
//! | `flaky.demo` | errors of every kind, redirects, broken markup |
//!
//! Everything follows from the seed: the same one gives the same pages and the same changes.

mod flaky;
mod news;
mod office;
mod shop;
mod slow;
mod trap;
mod words;

use jiff::{SignedDuration, Timestamp};

use crate::site::{Asked, Host, Site};

/// When it is in the demonstration when it begins: a Monday morning. Schedules begin then.
pub const START: Timestamp = Timestamp::constant(1_772_438_400, 0);

/// How long the schedules go on.
pub const LENGTH: SignedDuration = SignedDuration::from_hours(14 * 24);

/// The hosts, in their order.
pub const HOSTS: [&str; 6] = ["shop.demo", "news.demo", "ured.demo", "slow.demo", "trap.demo", "flaky.demo"];

/// What each robots.txt forbids, though pages link to it: (host, beginning of the path).
pub const FORBIDDEN: [(&str, &str); 5] = [
    ("shop.demo", "/cart"),
    ("shop.demo", "/account/"),
    ("news.demo", "/search"),
    ("ured.demo", "/interno/"),
    ("slow.demo", "/reports/raw/"),
];

/// What `slow.demo` asks for between two requests.
pub const CRAWL_DELAY: SignedDuration = SignedDuration::from_secs(10);

/// The demonstration web: about 200 pages on six hosts.
///
/// ```
/// let site = forager_site::demo_site(1);
/// let names: Vec<&str> = site.hosts().iter().map(|host| host.name()).collect();
/// assert_eq!(names, forager_site::demo::HOSTS);
/// ```
pub fn demo_site(seed: u64) -> Site {
    let hosts = [
        shop::host(seed),
        news::host(seed),
        office::host(seed),
        slow::host(seed),
        trap::host(),
        flaky::host(seed),
    ];
    hosts.into_iter().fold(Site::new(), Site::host)
}

/// The rules that a host has for robots: what is forbidden, and more lines.
fn robots(name: &str, more: &str) -> String {
    let forbidden = FORBIDDEN.iter().filter(|(host, _)| *host == name);
    let lines: Vec<String> = forbidden.map(|(_, path)| format!("Disallow: {path}\n")).collect();
    let lines = if lines.is_empty() { "Disallow:\n".to_owned() } else { lines.concat() };
    format!("User-agent: *\n{lines}{more}")
}

/// Gives a host its robots.txt, which names a sitemap.
fn with_robots(host: Host, sitemap: &'static str) -> Host {
    let rules = robots(host.name(), "");
    host.made("/robots.txt", move |asked: &Asked<'_>| {
        crate::Answer::text(format!("{rules}\nSitemap: {}\n", asked.url(asked.host, sitemap)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Page;

    fn pages(site: &Site) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        for host in site.hosts() {
            for (path, _) in host.pages() {
                let (path, query) =
                    path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
                let asked = Asked { host: host.name(), path, query, now: START, port: 80 };
                all.push((asked.url(host.name(), path), host.answer(&asked).body().to_vec()));
            }
        }
        all
    }

    #[test]
    fn it_has_about_two_hundred_pages() {
        let count = pages(&demo_site(1)).len();
        assert!((150..=300).contains(&count), "{count} pages");
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(pages(&demo_site(7)), pages(&demo_site(7)));
        assert_ne!(pages(&demo_site(7)), pages(&demo_site(8)));
    }

    #[test]
    fn official_pages_change_within_days() {
        let site = demo_site(1);
        let official: Vec<_> = site.changes().filter(|(host, ..)| *host == "ured.demo").collect();
        assert!(official.len() >= 5);
        let three_days = START + SignedDuration::from_hours(72);
        let soon = |changes: &crate::changes::Changes| changes.version(three_days).number > 0;
        assert!(official.iter().filter(|(_, _, changes)| soon(changes)).count() >= 3);
    }

    #[test]
    fn what_is_forbidden_is_there() {
        for (name, prefix) in FORBIDDEN {
            let site = demo_site(1);
            let host = site.hosts().iter().find(|host| host.name() == name).unwrap();
            let there = host
                .pages()
                .any(|(path, page)| path.starts_with(prefix) && !matches!(page, Page::Changing(..)));
            assert!(there, "{name}{prefix}");
        }
    }
}
