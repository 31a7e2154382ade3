//! How many URLs a second each policy judges on one core.
//!
//! The data is made up but shaped like the web: addresses of about 70 bytes, most of them plain,
//! some with a query or escapes. It is the same in every run.
//!
//! `raw` starts from text as a page or a queue holds it, `parsed` from a URL that was parsed before.
#![allow(clippy::unwrap_used, reason = "the data is made here")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use forager_core::scope::before_fetch::{Entry, before_fetch};
use forager_core::scope::extent::Kind;
use forager_core::scope::outlink::{Context, Hop, Queued, outlink};
use forager_core::scope::{Collection, Place, Profile, ScopeOptions, Scopes, Seed};
use forager_core::score::{Relevance, UrlSignals, next_change, score};
use forager_core::select::{Link, SelectConfig, Selector};
use forager_core::sentinel::Risk;
use forager_core::sentinel::classify::{Classifier, NodeRole, NodeType, Row};
use forager_core::time::Interval;
use forager_core::url::{FetchUrl, Identity, IdentityOptions};
use jiff::{SignedDuration, Timestamp};
use rand::RngExt;
use rand_pcg::Pcg64;

/// URLs judged in one round: more than the first cache holds, as in a real stream.
const URLS: usize = 4096;
const LINKS_PER_PAGE: usize = 200;
const SEEDS: usize = 1000;
/// 2024-06-15T08:00:00Z.
const NOW: Timestamp = Timestamp::constant(1_718_438_400, 0);

const SECTIONS: [&str; 16] = [
    "vijesti",
    "novosti",
    "propisi",
    "zakoni",
    "obrasci",
    "savjetovanja",
    "arhiva",
    "natjecaji",
    "pristup-informacijama",
    "gospodarstvo",
    "o-nama",
    "Dokumenti",
    "projekti",
    "english",
    "gradjani",
    "mjere",
];
const WORDS: [&str; 24] = [
    "ministarstvo",
    "odluka",
    "izmjena",
    "godina",
    "sustav",
    "porez",
    "dohodak",
    "uprava",
    "program",
    "javni",
    "poziv",
    "dodjela",
    "sredstva",
    "obnova",
    "zgrada",
    "zdravstvo",
    "promet",
    "turizam",
    "razvoj",
    "otoci",
    "sport",
    "kultura",
    "znanost",
    "energija",
];
const ENDINGS: [&str; 8] = ["", "", "", "", "/", ".html", ".aspx", ".pdf"];
const SERVICES: [&str; 12] = [
    "services",
    "services/fire-alarm-installation",
    "about/team",
    "projects",
    "blog",
    "inspection",
    "contact",
    "service-areas",
    "privacy-policy",
    "resources/guides",
    "industries",
    "fire-extinguishers",
];

fn rng() -> Pcg64 {
    Pcg64::new(42, 7)
}

fn pick<'a>(rng: &mut Pcg64, words: &[&'a str]) -> &'a str {
    words[rng.random_range(0..words.len())]
}

fn slug(rng: &mut Pcg64, words: usize) -> String {
    (0..words).map(|_| pick(rng, &WORDS)).collect::<Vec<_>>().join("-")
}

fn site(number: usize) -> String {
    let word = WORDS[number % WORDS.len()];
    let www = if number.is_multiple_of(3) { "www." } else { "" };
    format!("https://{www}{word}{number}.gov.hr")
}

fn path(rng: &mut Pcg64) -> String {
    let section = pick(rng, &SECTIONS);
    let slug = slug(rng, 2);
    let number: u32 = rng.random_range(1..100_000);
    match rng.random_range(0..20) {
        0 => format!("/{section}/{slug}?id={number}&lang=hr"),
        1 => format!("/{section}/priop%C4%87enja/{slug}"),
        _ => format!("/{section}/{slug}/{number}{}", pick(rng, &ENDINGS)),
    }
}

fn urls() -> Vec<String> {
    let mut rng = rng();
    (0..URLS).map(|_| format!("{}{}", site(rng.random_range(0..SEEDS)), path(&mut rng))).collect()
}

fn parsed(urls: &[String]) -> Vec<FetchUrl> {
    urls.iter().map(|url| url.parse().unwrap()).collect()
}

fn bench_url(c: &mut Criterion) {
    let urls = urls();
    let mut group = c.benchmark_group("url");
    group.throughput(Throughput::Elements(URLS as u64));
    group.bench_function("parse", |b| {
        b.iter(|| urls.iter().for_each(|url| drop(black_box(FetchUrl::parse(url)))));
    });
    let parsed = parsed(&urls);
    group.bench_function("identity", |b| {
        let options = IdentityOptions::default();
        b.iter(|| parsed.iter().for_each(|url| drop(black_box(url.identity(&options)))));
    });
    group.finish();
}

fn bench_score(c: &mut Criterion) {
    let urls = urls();
    let mut rng = rng();
    let mut ago = |hours: i64| Some(NOW - SignedDuration::from_mins(rng.random_range(0..hours * 60)));
    let signals: Vec<_> = urls
        .iter()
        .enumerate()
        .map(|(index, url)| UrlSignals {
            url: url.into(),
            visits: 3,
            last_visited: ago(400),
            last_changed: ago(72),
            topic_relevance: Relevance::new(0.9).unwrap(),
            hub_depth: index as u64 % 6,
            is_hub: index.is_multiple_of(10),
        })
        .collect();
    let mut group = c.benchmark_group("score");
    group.throughput(Throughput::Elements(URLS as u64));
    group.bench_function("score", |b| {
        b.iter(|| signals.iter().for_each(|signals| _ = black_box(score(signals, NOW))));
    });
    group.bench_function("next_change", |b| {
        b.iter(|| signals.iter().for_each(|signals| _ = black_box(next_change(signals, NOW))));
    });
    group.finish();
}

/// The links of a home page: navigation and footer twice, some other sites, some that are no pages.
fn links() -> Vec<Link> {
    let mut rng = rng();
    let mut links: Vec<Link> = (0..LINKS_PER_PAGE * 9 / 10)
        .map(|_| {
            let path = format!("{}/{}", pick(&mut rng, &SERVICES), slug(&mut rng, 3));
            let href = match rng.random_range(0..20) {
                0 => format!("https://www.facebook.com/{path}"),
                1 => "mailto:office@acme-fire.example".to_owned(),
                2 => format!("/{path}#top"),
                3 => format!("/{path}?page=2"),
                4..8 => format!("https://www.acme-fire.example/{path}"),
                8..10 => path,
                _ => format!("/{path}/"),
            };
            Link { href, text: format!(" Our {} ", slug(&mut rng, 2)), title: String::new() }
        })
        .collect();
    links.extend_from_within(..LINKS_PER_PAGE - links.len());
    links
}

fn bench_select(c: &mut Criterion) {
    let selector = Selector::new(SelectConfig::default()).unwrap();
    let links = links();
    let mut group = c.benchmark_group("select");
    group.throughput(Throughput::Elements(LINKS_PER_PAGE as u64));
    group.bench_function("raw", |b| {
        b.iter_batched(
            || links.clone(),
            |links| selector.select("https://www.acme-fire.example/", links),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn own_rows() -> Vec<Row> {
    let row = |pattern: &str, risk| Row {
        pattern: pattern.to_owned(),
        node: NodeType::Hub,
        role: Some(NodeRole::NewsFeed),
        risk,
    };
    vec![
        row(r"^//(www\.)?porez\d+\.gov\.hr/", Risk::Critical),
        row(r"/sjednice?-vlade/", Risk::High),
        row(r"/(mjere|poticaji)/\d{4}", Risk::High),
    ]
}

fn bench_classify(c: &mut Criterion) {
    let urls = urls();
    let parsed = parsed(&urls);
    let mut group = c.benchmark_group("classify");
    group.throughput(Throughput::Elements(URLS as u64));
    let classifiers =
        [("default", Classifier::default()), ("own rows", Classifier::new(own_rows()).unwrap())];
    for (name, classifier) in classifiers {
        group.bench_function(format!("{name}/parsed"), |b| {
            b.iter(|| parsed.iter().for_each(|url| drop(black_box(classifier.classify(url, None)))));
        });
        group.bench_function(format!("{name}/raw"), |b| {
            b.iter(|| {
                for url in &urls {
                    let url = FetchUrl::parse(url).unwrap();
                    drop(black_box(classifier.classify(&url, None)));
                }
            });
        });
    }
    group.finish();
}

fn scopes() -> Scopes {
    let collections = ["law", "news"].map(|id| Collection { id: id.to_owned(), enabled: true });
    let assets = || vec![r"\.(?:jpe?g|png|gif|css|js|ico|zip)$".to_owned(), "/kalendar/".to_owned()];
    let profiles = [
        Profile { every: Some(Interval::hours(24)), exclude: assets(), ..Profile::new("daily", "law") },
        Profile { depth: Some(3), hops_off_domain: 1, exclude: assets(), ..Profile::new("near", "law") },
        Profile { scope: Kind::Prefix, every: Some(Interval::hours(1)), ..Profile::new("hourly", "news") },
        Profile { scope: Kind::Host, enabled: false, ..Profile::new("paused", "news") },
    ];
    let seeds: Vec<Seed> = (0..SEEDS)
        .map(|number| Seed {
            url: site(number) + "/",
            profiles: ["daily", "near", "hourly", "paused"].map(str::to_owned).to_vec(),
            enabled: !number.is_multiple_of(50),
        })
        .collect();
    Scopes::new(&collections, &profiles, &seeds, ScopeOptions::default()).unwrap()
}

/// What the queue knows of one URL: one in eight was found off the domain of its seed.
struct Known {
    collection: &'static str,
    seed: Identity,
    place: Place,
    last_fetch: Option<Timestamp>,
}

fn known(urls: &[String]) -> Vec<Known> {
    let mut rng = rng();
    urls.iter()
        .map(|url| {
            let own_site = &url[..url.find(".hr/").unwrap() + ".hr/".len()];
            let on_domain = !rng.random_ratio(1, 8);
            let home = if on_domain { own_site.to_owned() } else { site(rng.random_range(0..SEEDS)) };
            Known {
                collection: if rng.random_ratio(1, 2) { "law" } else { "news" },
                seed: Identity::parse(&home).unwrap(),
                place: Place { depth: rng.random_range(0..5), hops_off_domain: u32::from(!on_domain) },
                last_fetch: Some(NOW - SignedDuration::from_hours(rng.random_range(0..100))),
            }
        })
        .collect()
}

fn bench_scope(c: &mut Criterion) {
    let scopes = scopes();
    let urls = urls();
    let known = known(&urls);
    let identities: Vec<_> = urls.iter().map(|url| Identity::parse(url).unwrap()).collect();
    let before = |url: &Identity, known: &Known| {
        let Known { collection, ref seed, place, last_fetch } = *known;
        black_box(before_fetch(
            &scopes,
            &Entry { collection, url, seed, place, last_fetch, length: None, is_listing: false },
            NOW,
        ));
    };
    let found = |url: &Identity, known: &Known| {
        let Known { collection, ref seed, place, last_fetch } = *known;
        let queued = Queued { seed, place, due: NOW, last_fetch, leased: false };
        // Half of the links are new.
        let queued = (place.depth % 2 == 0).then_some(&queued);
        black_box(outlink(&scopes, &Context { collection, seed, place, hop: Hop::Link }, url, queued, NOW));
    };
    let mut group = c.benchmark_group("scope");
    group.throughput(Throughput::Elements(URLS as u64));
    let before: &dyn Fn(&Identity, &Known) = &before;
    for (name, judge) in [("before_fetch", before), ("outlink", &found)] {
        group.bench_function(format!("{name}/parsed"), |b| {
            b.iter(|| identities.iter().zip(&known).for_each(|(url, known)| judge(url, known)));
        });
        group.bench_function(format!("{name}/raw"), |b| {
            b.iter(|| {
                for (url, known) in urls.iter().zip(&known) {
                    let url = scopes.identity(known.collection, &FetchUrl::parse(url).unwrap());
                    judge(&url, known);
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench_url, bench_score, bench_select, bench_classify, bench_scope);
criterion_main!(benches);
