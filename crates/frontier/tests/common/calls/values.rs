//! The universe that calls are about: each thing by a number.

use forager_core::order::Order;
use forager_core::scope::extent::Kind as Scope;
use forager_core::scope::{Profile, Seed};
use forager_core::time::Interval;
use forager_frontier::Moment;
use forager_frontier::catalog::{Change, CollectionSpec, Kind, Limits};
use forager_frontier::entry::{How, Token, Validators};
use forager_frontier::host::{HostSettings, Robots};
use forager_frontier::verbs::{
    Difference, FetchError, FetchRow, Item, LeaseRequest, Link, NewJob, Note, Page, Report, Sent, Target,
    Word,
};

use super::{Edit, Told};

pub const PLANNED: [&str; 2] = ["a", "b"];
pub const COLLECTIONS: [&str; 6] = ["a", "b", "p", "q", "job", "gig"];
pub const JOBS: [&str; 2] = ["job", "gig"];
pub const HOSTS: [&str; 4] = ["x.example", "www.x.example", "y.example", "z.example"];
pub const PATHS: [&str; 15] = [
    "/",
    "/news",
    "/news/1",
    "/news/2",
    "/zakon/1",
    "/archive/1",
    "/f.pdf",
    "/services/install",
    "/about",
    "/a/b/c",
    "/x?b=2&a=1",
    "/x?a=1&b=2",
    "/logout",
    "/d/e/f/g",
    "/z",
];
/// Keys of notes. The first can have none.
pub const NOTES: [&str; 6] = ["", "robots x.example", "robots y.example", "text", "k", "k "];
pub const KEYS: [&str; 3] = ["k", "x.example", "other key"];
pub const TIMES: [u64; 13] = [
    0,
    1,
    500,
    1000,
    2500,
    10_000,
    60_000,
    300_000,
    3_600_000,
    18_000_000,
    86_400_000,
    700_000_000,
    4_000_000_000,
];

pub fn url(number: u8) -> String {
    let number = usize::from(number);
    format!("https://{}{}", HOSTS[number % HOSTS.len()], PATHS[number / HOSTS.len() % PATHS.len()])
}

pub fn lease_request(
    [max, per_host, hold]: [u8; 3],
    collection: Option<u8>,
    host: Option<u8>,
) -> LeaseRequest {
    LeaseRequest {
        max: usize::from(max % 6),
        per_host: usize::from(per_host % 4),
        hosts: if hold.is_multiple_of(7) { 1 } else { usize::MAX },
        busy_at: if hold.is_multiple_of(11) { 1 } else { usize::MAX },
        bytes: if hold.is_multiple_of(13) { 40 } else { usize::MAX },
        collection: collection.map(|pick| collection_name(pick).to_owned()),
        host: host.map(|pick| HOSTS[usize::from(pick) % HOSTS.len()].to_owned()),
        hold: Interval::from_secs_f64(f64::from(u16::from(hold % 5) * 300 + 1)),
    }
}

/// A queue key: one that clients give, or a host.
pub fn queue_key(pick: u8) -> &'static str {
    let keys = KEYS.iter().chain(&HOSTS).copied();
    keys.cycle().nth(usize::from(pick % 7)).unwrap_or_default()
}

/// What a client says of a URL.
pub fn item((what, look): (u8, u8), now: Moment) -> Item {
    let word = match look % 5 {
        0 | 1 => Word::Found,
        2 => Word::Done,
        3 => Word::Due(now),
        _ => Word::Due(Moment::from_second(now.second().saturating_add(u32::from(look) * 7))),
    };
    Item {
        url: url(what),
        key: look.is_multiple_of(3).then(|| queue_key(look / 3).to_owned()),
        word,
        metadata: look.is_multiple_of(4).then(|| format!("{{\"look\":[\"{look}\"]}}")),
        source: look.is_multiple_of(7).then(|| url(look)),
        status: look.is_multiple_of(6).then_some(if look.is_multiple_of(12) { 404 } else { 200 }),
        failed: look.is_multiple_of(9),
    }
}

pub fn collection_name(pick: u8) -> &'static str {
    // The planned ones more often.
    let index = usize::from(pick) % 10;
    COLLECTIONS.get(index).copied().unwrap_or(PLANNED[index % 2])
}

pub fn profile_name(which: u8) -> String {
    format!("p{}", which % 7)
}

/// Profiles of every order; each belongs to one collection.
pub fn profile(which: u8, look: u8) -> Profile {
    let mut profile = Profile::new(profile_name(which), PLANNED[usize::from(which % 2)]);
    profile.order = Order::ALL[usize::from(look) % Order::ALL.len()];
    profile.scope =
        [Scope::Domain, Scope::Any, Scope::Prefix, Scope::Host, Scope::Page][usize::from(look / 6) % 5];
    profile.depth = [None, Some(1), Some(3)][usize::from(look / 7) % 3];
    profile.every = [None, Some(Interval::hours(2)), None][usize::from(look / 5) % 3];
    profile.length = [None, None, Some(1), Some(2)][usize::from(look / 3) % 4];
    profile.hops_off_domain = u32::from(look % 3);
    if look.is_multiple_of(5) {
        profile.exclude = vec!["logout".to_owned()];
    }
    profile
}

pub fn seed(which: u8, profiles: u8) -> Seed {
    let names = (0..7).filter(|bit| profiles & (1 << bit) != 0).map(profile_name).collect();
    Seed { url: url([0, 1, 4, 2, 22, 3][usize::from(which) % 6]), profiles: names, enabled: true }
}

pub fn change(edit: &Edit) -> Change {
    let name = |which: u8| COLLECTIONS[usize::from(which) % 4].to_owned();
    match *edit {
        Edit::Collection { which, kind } => {
            let name = name(which);
            let kind = if kind % 8 == 0 || name == "p" || name == "q" { Kind::Plain } else { Kind::Planned };
            Change::AddCollection(CollectionSpec::new(name, kind))
        }
        Edit::EnableCollection(which, on) => Change::EnableCollection(name(which), on),
        Edit::RemoveCollection(which) => Change::RemoveCollection(name(which)),
        Edit::Profile { which, look, set: true } => Change::SetProfile(Box::new(profile(which, look))),
        Edit::Profile { which, look, set: false } => Change::AddProfile(Box::new(profile(which, look))),
        Edit::EnableProfile(which, on) => Change::EnableProfile(profile_name(which), on),
        Edit::RemoveProfile(which) => Change::RemoveProfile(profile_name(which)),
        Edit::Seed { which, profiles, set: true } => Change::SetSeed(seed(which, profiles)),
        Edit::Seed { which, profiles, set: false } => Change::AddSeed(seed(which, profiles)),
        Edit::EnableSeed(which, on) => Change::EnableSeed(seed(which, 0).url, on),
        Edit::RemoveSeed(which) => Change::RemoveSeed(seed(which, 0).url),
        Edit::SetActive(on) => Change::SetActive(on),
        Edit::SetPlainDelay(amount) => Change::SetPlainDelay(Interval::from_secs_f64(f64::from(amount % 13))),
    }
}

pub fn target(pick: u8) -> Target {
    match pick % 3 {
        0 => Target::Seed(seed(pick / 3, 0).url),
        1 => Target::Profile(profile_name(pick / 3)),
        _ => Target::Collection(collection_name(pick / 3).to_owned()),
    }
}

pub fn found(collection: u8, source: u8, depth: u8, links: &[(u8, u8)], now: Moment) -> Page {
    Page {
        collection: collection_name(collection).to_owned(),
        source: (!source.is_multiple_of(4)).then(|| url(source)),
        seed: (!source.is_multiple_of(5)).then(|| seed(depth, 0).url),
        depth: u32::from(depth % 4),
        links: links.iter().map(|&pick| link(pick, now)).collect(),
    }
}

pub fn link((number, look): (u8, u8), now: Moment) -> Link {
    let hows = [How::Link, How::Link, How::Sitemap, How::Redirect, How::Other, How::Listing, How::Link];
    Link {
        url: if look == 255 { "mailto:nobody".to_owned() } else { url(number) },
        how: hows[usize::from(look) % hows.len()],
        in_header: look.is_multiple_of(3),
        text: if look.is_multiple_of(7) { "our services".to_owned() } else { String::new() },
        title: String::new(),
        relevance: (look % 4 == 1).then(|| f64::from(look) / 255.0),
        key: (look % 4 == 2).then(|| KEYS[usize::from(look) % KEYS.len()].to_owned()),
        due: (look % 4 == 3).then(|| now.after_millis(u64::from(look) * 100_000)),
        metadata: look.is_multiple_of(11).then(|| format!("{{\"look\": {look}}}")),
        last_modified: look.is_multiple_of(2).then_some(now),
    }
}

pub fn note((kind, which, amount): (u8, u8, u8), now: Moment) -> Note {
    let host = HOSTS[usize::from(which) % HOSTS.len()].to_owned();
    let key = NOTES[usize::from(which) % NOTES.len()].to_owned();
    match kind % 8 {
        // A key that can have no note fails the whole call: not too often.
        0..=2 if key.is_empty() && amount < 200 => Note::Keep(NOTES[1].to_owned(), Some(vec![amount])),
        0 | 1 => Note::Keep(key, Some(vec![amount; usize::from(amount)])),
        2 => Note::Keep(key, None),
        3 | 4 => Note::CrawlDelay(host, Some(Interval::from_secs_f64(f64::from(amount % 16)))),
        5 => Note::CrawlDelay(host, None),
        _ => {
            let (url, started) = (format!("https://{host}/robots.txt"), now);
            let back_off_until = (amount > 200).then(|| now.after_millis(u64::from(amount) * 1000));
            let bytes = amount.into();
            Note::Fetch(FetchRow { started, host, url, bytes, back_off_until, ..FetchRow::default() })
        }
    }
}

pub fn report(token: Token, told: &Told, now: Moment) -> Report {
    let &Told { look, extras, .. } = told;
    let has = |bit: u8| extras & bit != 0;
    let long = if has(64) { 600 } else { 2 };
    let report = Report {
        token: token.0,
        bytes: u64::from(look),
        links: told.links.iter().map(|&pick| link(pick, now)).collect(),
        text: has(1).then(|| format!("says {extras}")),
        validators: Validators {
            etag: has(2).then(|| "e".repeat(long)),
            last_modified: has(4).then(|| format!("{extras}")),
        },
        difference: Difference { added: vec![format!("{extras}")], removed: Vec::new() },
        fetch: has(8).then(|| Sent { at: now, robots: "allowed".to_owned(), ..Sent::default() }),
        ..Report::default()
    };
    let status = |status| Report { status: Some(status), ..report.clone() };
    match look % 16 {
        0..=5 => Report { fingerprint: Some(format!("f{}", look / 16 % 3)), ..status(200) },
        6 => status(304),
        7 => status(404),
        8 => status(410),
        9 => Report { retry_after: Some(Interval::from_secs_f64(f64::from(look) * 60.0)), ..status(429) },
        10 => status(503),
        11 => status(500),
        12 => Report { error: Some(FetchError::Timeout), ..report.clone() },
        13 => Report { error: Some(FetchError::Network), ..report.clone() },
        14 => status(403),
        _ => {
            let errors = [FetchError::Robots, FetchError::Address, FetchError::Unreachable];
            Report { error: Some(errors[usize::from(look / 16 % 3)]), ..report.clone() }
        }
    }
}

pub fn settings(kind: u8, amount: u8, now: Moment) -> HostSettings {
    let later = now.after_millis(u64::from(amount) * 20_000);
    let mut settings = HostSettings::default();
    match kind % 8 {
        0 => settings.delay = Some(Interval::from_secs_f64(f64::from(amount % 20))),
        1 => settings.blocked_until = Some(later),
        2 => settings.blocked_until = Some(Moment::NEVER),
        3 => settings.in_flight = Some(u32::from(amount % 4)),
        4 => settings.fetch_limit = Some(u64::from(amount % 16)),
        5 => settings.robots = Some(Robots { allowed: amount.is_multiple_of(3), expires: later }),
        _ => {}
    }
    settings
}

pub fn new_job(job: u8, number: u8, order: u8, limit: u8) -> NewJob {
    let mut profile = Profile::new("", "");
    profile.order = Order::ALL[usize::from(order) % Order::ALL.len()];
    let limits = match limit % 4 {
        0 => Limits { pages: Some(u64::from(limit / 16)), ..Limits::default() },
        1 => Limits { bytes: Some(u64::from(limit) * 4), ..Limits::default() },
        2 => Limits { time: Some(Interval::hours(u32::from(limit / 32))), ..Limits::default() },
        _ => Limits::default(),
    };
    NewJob { id: JOBS[usize::from(job % 2)].to_owned(), urls: vec![url(number)], profile, limits }
}
