//! An office that publishes rules, consultations and news, with Croatian paths. Its pages change on a schedule.

use jiff::SignedDuration;

use super::words::{Words, seed_of};
use super::{LENGTH, START, with_robots};
use crate::changes::{Changes, Version};
use crate::site::{Asked, Host};
use crate::{Answer, Markup, listing};

const NAV: [(&str, &str); 7] = [
    ("/", "Naslovnica"),
    ("/propisi/", "Propisi"),
    ("/savjetovanja/", "Savjetovanja"),
    ("/vijesti/", "Vijesti"),
    ("/obrasci/", "Obrasci"),
    ("/upute/", "Upute"),
    ("/arhiva/", "Arhiva"),
];

/// Sections, how many pages each has, and how many hours there are between two changes of such a page, on average.
/// Pages without a number never change.
const SECTIONS: [(&str, usize, Option<i64>); 6] = [
    ("propisi", 8, Some(30)),
    ("savjetovanja", 5, Some(24)),
    ("vijesti", 10, None),
    ("obrasci", 5, Some(120)),
    ("upute", 5, Some(90)),
    ("arhiva", 6, None),
];

/// The hours between two changes of the list of news, on average.
const NEWS: i64 = 8;

pub(super) fn host(seed: u64) -> Host {
    let mut host = with_robots(Host::new("ured.demo"), "/sitemap.xml");
    for (section, count, hours) in SECTIONS {
        for number in 1..=count {
            let path = format!("/{section}/{number}");
            host = match hours {
                Some(hours) => add_changing(host, seed, path, hours),
                None => host.page(path.clone(), Answer::html(page(seed, &path, 0).finish())),
            };
        }
    }
    for (section, count, _) in SECTIONS {
        host = match section {
            "vijesti" => add_changing_list(host, seed, section, count),
            _ => host.page(format!("/{section}/"), Answer::html(list(section, count).finish())),
        };
    }
    let inside = ("/interno/plan", "Interni plan");
    let home = Markup::new("Ured za primjer").nav(NAV).links([inside]).finish();
    host.page("/", Answer::html(home))
        .page("/interno/plan", Answer::html(Markup::new("Interni plan").finish()))
        .page("/propisi/1/prilog.pdf", Answer::new("application/pdf", document(seed)))
        .made("/sitemap.xml", sitemap)
}

/// A page that changes, and looks different each time anyway: by a token and the time of day, which mean nothing.
fn add_changing(host: Host, seed: u64, path: String, hours: i64) -> Host {
    let changes = schedule(seed, &path, hours);
    // Half of the pages tell their version, so that most requests for them cost next to nothing.
    let is_known = Words::of(seed, &path).number(2) == 0;
    host.changing(path.clone(), changes, move |asked, version| {
        let answer = Answer::html(noisy(page(seed, &path, version.number), asked).finish());
        if is_known { known_by(answer, version) } else { answer }
    })
}

fn add_changing_list(host: Host, seed: u64, section: &'static str, count: usize) -> Host {
    let path = format!("/{section}/");
    host.changing(path.clone(), schedule(seed, &path, NEWS), move |asked, version| {
        let news = format!(
            "Obavijest {}: {}",
            version.number,
            Words::of(seed, &version.number.to_string()).subject()
        );
        Answer::html(noisy(list(section, count).text(&news), asked).finish())
    })
}

fn schedule(seed: u64, path: &str, hours: i64) -> Changes {
    Changes::random(seed_of(seed, path), START, LENGTH, SignedDuration::from_hours(hours))
}

fn known_by(answer: Answer, version: Version) -> Answer {
    answer.etag(&format!("v{}", version.number)).last_modified(version.since.unwrap_or(START))
}

fn page(seed: u64, path: &str, version: usize) -> Markup {
    let mut words = Words::of(seed, path);
    let title = format!("Dokument {path}");
    let page = Markup::new(&title).nav(NAV).text(&words.paragraph());
    let current = Words::of(seed, &format!("{path} {version}")).paragraph();
    let page = page.text(&format!("Izdanje {}. {current}", version + 1)).text(&words.paragraph());
    match path {
        "/propisi/1" => page.links([("/propisi/1/prilog.pdf", "Prilog")]),
        _ => page,
    }
}

/// Adds what differs each time and means nothing.
fn noisy(page: Markup, asked: &Asked<'_>) -> Markup {
    let token = xxhash_rust::xxh3::xxh3_64(format!("{} {}", asked.path, asked.now).as_bytes());
    let form = format!("<form><input type=\"hidden\" name=\"csrf\" value=\"{token:016x}\"></form>\n");
    page.raw(&form)
        .head(&format!("<!-- {} --><script nonce=\"{token:x}\">let t = {token};</script>", asked.now))
}

fn list(section: &str, count: usize) -> Markup {
    let links = (1..=count).map(|number| (format!("/{section}/{number}"), format!("Dokument {number}")));
    Markup::new(section).nav(NAV).links(links)
}

/// Something that is no text.
fn document(seed: u64) -> Vec<u8> {
    let mut bytes = b"%PDF-1.4\n".to_vec();
    bytes.extend(seed.to_le_bytes().repeat(64));
    bytes
}

fn sitemap(asked: &Asked<'_>) -> Answer {
    let pages = SECTIONS.iter().flat_map(|(section, count, _)| {
        (1..=*count).map(move |number| (asked.url(asked.host, &format!("/{section}/{number}")), None))
    });
    Answer::xml(listing::sitemap(pages))
}
