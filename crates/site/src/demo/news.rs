//! A news site: sections that list articles, the newest first.

use jiff::{SignedDuration, Timestamp};

use super::words::{Words, seed_of};
use super::{LENGTH, START, with_robots};
use crate::changes::{Changes, Version};
use crate::site::{Asked, Host};
use crate::{Answer, Markup, listing};

const SECTIONS: [&str; 4] = ["world", "economy", "culture", "sport"];

/// How many articles a section has from the beginning, and how many in the end.
const FIRST: usize = 12;
const MOST: usize = 18;

/// One more article in a section, on average.
const MEAN: SignedDuration = SignedDuration::from_hours(20);

const NAV: [(&str, &str); 6] = [
    ("/", "Front page"),
    ("/world/", "World"),
    ("/economy/", "Economy"),
    ("/culture/", "Culture"),
    ("/sport/", "Sport"),
    ("/search?q=weather", "Search"),
];

pub(super) fn host(seed: u64) -> Host {
    let mut host = with_robots(Host::new("news.demo"), "/sitemap-index.xml");
    for section in SECTIONS {
        let changes = arrivals(seed, section);
        let shown = changes.clone();
        host = host.changing(format!("/{section}/"), changes, move |_, version| front(section, version));
        for number in 1..=FIRST {
            host = host.page(format!("/{section}/{number}"), article(seed, section, number, START));
        }
        // Later ones are there once the section lists them, so that a crawler has to come back for them.
        host = host.under(format!("/{section}/"), move |asked| {
            let number: usize = asked.path.rsplit('/').next()?.parse().ok()?;
            let written = *shown.times().get(number.checked_sub(FIRST + 1)?)?;
            (written <= asked.now).then(|| article(seed, section, number, written))
        });
        let packed = move |asked: &Asked<'_>| {
            let pages = (1..=FIRST)
                .map(|number| (asked.url(asked.host, &format!("/{section}/{number}")), Some(START)));
            Answer::new("application/gzip", listing::gzip(&listing::sitemap(pages)))
        };
        host = host.made(format!("/sitemap-{section}.xml.gz"), packed);
    }
    let headlines =
        SECTIONS.map(|section| (format!("/{section}/1"), format!("Our {section} desk recommends")));
    host.page("/", Answer::html(Markup::new("The Demo Times").nav(NAV).links(headlines).finish()))
        .page("/search", Answer::html(Markup::new("Search").finish()))
        .made("/sitemap-index.xml", |asked| {
            let maps =
                SECTIONS.map(|section| (asked.url(asked.host, &format!("/sitemap-{section}.xml.gz")), None));
            Answer::xml(listing::index(maps))
        })
}

/// When a section gets its further articles.
fn arrivals(seed: u64, section: &str) -> Changes {
    let all = Changes::random(seed_of(seed, section), START, LENGTH, MEAN);
    Changes::at(all.times().iter().copied().take(MOST - FIRST))
}

/// The list of a section, newest first.
fn front(section: &str, version: Version) -> Answer {
    let articles = (1..=FIRST + version.number).rev();
    let links =
        articles.map(|number| (format!("/{section}/{number}"), format!("Report {number} from {section}")));
    let page = Markup::new(&format!("All of {section}")).nav(NAV).links(links);
    Answer::html(page.finish()).etag(&format!("{section}-{}", version.number))
}

fn article(seed: u64, section: &str, number: usize, written: Timestamp) -> Answer {
    let mut words = Words::of(seed, &format!("{section} {number}"));
    let (title, text) = (format!("{section}: {}", words.subject()), words.paragraph());
    Answer::html(Markup::new(&title).nav(NAV).text(&text).text(&words.paragraph()).finish())
        .last_modified(written)
}
