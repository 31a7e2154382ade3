//! Versions of a page: what a server knows them by, what they say, and what changed between them.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::Change;
use crate::entry::{How, State, Token, Validators};
use crate::verbs::{
    Difference, Event, FetchError, LeaseRequest, Link, MAX_NOTE_BYTES, NewJob, Outcome, Page, Report,
    kept_text, text_key,
};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

/// Every page is fetched so many times.
async fn limited(mut world: World, times: u32) -> World {
    let limited = |profile: &mut Profile| profile.length = Some(times);
    world.configure([planned("c"), profile("c", "c", limited), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world
}

fn known_by(etag: &str, last_modified: &str) -> Validators {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Validators { etag: given(etag), last_modified: given(last_modified) }
}

fn saying(text: &str) -> impl Fn(Token) -> Report {
    move |token| Report { text: Some(text.to_owned()), ..ok(token, text) }
}

/// Waits until something is due and open, leases it and reports; returns what became of it.
async fn when_due(world: &mut World, report: impl FnOnce(Token) -> Report) -> Outcome {
    let (entry, host) = (world.the_entry("c", HOME).await, world.host("a.example").await);
    world.pass_until(entry.due.max(host.opens.unwrap_or_default()).max(world.moment()));
    let leased = world.lease_one().await;
    world.complete(report(leased.token)).await.outcome
}

async fn text(world: &mut World) -> Option<String> {
    world.noted(&text_key("c", HOME)).await
}

pub async fn validators_are_handed_out_with_the_next_lease(world: World) {
    let long = "e".repeat(512);
    let too_long = "e".repeat(513);
    let new = known_by("\"2\"", "Tuesday");
    let cases = [
        ("new ones", 200, new.clone(), new.clone()),
        ("one of two", 200, known_by("\"2\"", ""), known_by("\"2\"", "")),
        ("a new version without any", 200, known_by("", ""), known_by("", "")),
        ("304 without any", 304, known_by("", ""), known_by("\"1\"", "Monday")),
        ("304 with new ones", 304, new.clone(), new.clone()),
        ("304 with a tag only", 304, known_by("\"2\"", ""), known_by("\"2\"", "Monday")),
        ("304 with a date only", 304, known_by("", "Tuesday"), known_by("\"1\"", "Tuesday")),
        ("304 with a tag too long", 304, known_by(&too_long, ""), known_by("", "Monday")),
        ("as long as may be", 200, known_by(&long, &long), known_by(&long, &long)),
        ("too long", 200, known_by(&too_long, "Tuesday"), known_by("", "Tuesday")),
        ("too long, the other", 200, known_by("\"2\"", &too_long), known_by("\"2\"", "")),
        ("gone", 404, new.clone(), known_by("\"1\"", "Monday")),
        ("a failure", 500, new.clone(), known_by("\"1\"", "Monday")),
    ];
    for (name, status, given, want) in cases {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        assert_eq!(leased.validators, Validators::default(), "{name}");
        let first = Report { validators: known_by("\"1\"", "Monday"), ..ok(leased.token, "one") };
        world.complete(first).await;
        when_due(&mut world, |token| Report { validators: given, ..answered(token, status) }).await;
        world.reopen();
        let entry = world.the_entry("c", HOME).await;
        assert_eq!(entry.record.validators, want, "{name}");
        world.pass_until(entry.due);
        assert_eq!(world.lease_one().await.validators, want, "{name}");
    }
}

/// A sitemap that says the home page changed just now is read.
async fn read_sitemap(world: &mut World) {
    let link = Link { last_modified: Some(world.moment()), ..link_as(How::Sitemap, HOME) };
    let page = Page { collection: "c".into(), seed: Some(HOME.into()), links: vec![link], ..Page::default() };
    world.discover(page).await;
}

pub async fn a_date_in_a_sitemap_is_gone_by_as_long_as_it_is_right(world: World) {
    let mut world = site(world).await;
    world.fetch("0").await;
    // Wrong four times: the page is brought forward, and has not changed.
    for times in 1..=4 {
        world.pass("1m");
        read_sitemap(&mut world).await;
        let entry = world.the_entry("c", HOME).await;
        assert_eq!(entry.due, world.moment(), "brought forward, time {times}");
        assert!(entry.record.due_because.is_some_and(|why| why.contains("sitemap")));
        when_due(&mut world, |token| answered(token, 304)).await;
        world.reopen();
        let dates = world.host("a.example").await.sitemap_dates;
        assert_eq!((dates.right, dates.wrong), (0, times));
        assert_eq!(world.explain("c", HOME).await.sitemap_dates, dates);
    }
    let due = world.the_entry("c", HOME).await.due;
    world.pass("1m");
    read_sitemap(&mut world).await;
    assert_eq!(world.the_entry("c", HOME).await.due, due, "nobody goes by it any more");
    // But it can win back trust.
    when_due(&mut world, |token| ok(token, "another")).await;
    assert_eq!(world.host("a.example").await.sitemap_dates.right, 1);
}

pub async fn an_image_has_the_validators(world: World) {
    let mut world = site(world).await;
    let validators = known_by("\"1\"", "Monday");
    when_due(&mut world, |token| Report { validators: validators.clone(), ..ok(token, "x") }).await;
    let images = world.frontier().export("c", None, 9, world.now).await.unwrap();
    let mut other = site(world.another()).await;
    other.configure([planned("d"), profile("d", "d", |_| {}), seed("https://d.example/", ["d"])]).await;
    other.frontier().import("d", &images, other.now).await.unwrap();
    assert_eq!(other.the_entry("d", HOME).await.record.validators, validators);
}

pub async fn a_change_says_what_is_different(world: World) {
    let mut world = site(world).await;
    let lines = |added: &[&str], removed: &[&str]| Difference {
        added: added.iter().map(ToString::to_string).collect(),
        removed: removed.iter().map(ToString::to_string).collect(),
    };
    let (first, second) = (lines(&["all of it"], &[]), lines(&["new ü", ""], &["old"]));
    let saying = |content: &'static str, difference: &Difference| {
        let difference = difference.clone();
        move |token| Report { difference, ..ok(token, content) }
    };
    when_due(&mut world, saying("one", &first)).await;
    when_due(&mut world, saying("one", &second)).await;
    assert_eq!(world.events().await, [], "no change, no word of it");
    when_due(&mut world, saying("two", &second)).await;
    world.reopen();
    let events: Vec<Event> = world.events().await.into_iter().map(|row| row.event).collect();
    let want = Event::Changed { from: Some("one".into()), to: Some("two".into()), difference: second };
    assert_eq!(events, [want]);
}

pub async fn what_a_page_says_is_kept_while_it_comes_back(world: World) {
    let mut world = site(world).await;
    assert_eq!(text(&mut world).await, None);
    when_due(&mut world, saying("first")).await;
    world.reopen();
    assert_eq!(text(&mut world).await.as_deref(), Some("first"));
    when_due(&mut world, saying("second")).await;
    assert_eq!(text(&mut world).await.as_deref(), Some("second"));
    when_due(&mut world, |token| answered(token, 304)).await;
    when_due(&mut world, |token| ok(token, "third")).await;
    assert_eq!(text(&mut world).await.as_deref(), Some("second"), "nothing else was said");
    when_due(&mut world, |token| no_answer(token, FetchError::Timeout)).await;
    for status in [404, 500, 503] {
        when_due(&mut world, |token| Report { text: Some("sorry".into()), ..answered(token, status) }).await;
        assert_eq!(text(&mut world).await.as_deref(), Some("second"), "{status} is not the page");
    }
    let refused = world.complete(saying("refused")(Token(77_777))).await;
    assert_eq!(refused.outcome, Outcome::Refused);
    assert_eq!(text(&mut world).await.as_deref(), Some("second"));
}

pub async fn the_text_of_a_page_that_is_done_is_forgotten(world: World) {
    for last in [saying("last")(Token(0)), answered(Token(0), 304), answered(Token(0), 404)] {
        let mut world = limited(world.another(), 2).await;
        assert_eq!(when_due(&mut world, saying("first")).await, Outcome::Again);
        assert_eq!(text(&mut world).await.as_deref(), Some("first"));
        let last = |token: Token| Report { token: token.0, ..last.clone() };
        assert_eq!(when_due(&mut world, last).await, Outcome::Done);
        world.reopen();
        assert_eq!(text(&mut world).await, None);
    }
    let mut world = limited(world, 1).await;
    assert_eq!(when_due(&mut world, saying("only")).await, Outcome::Done);
    assert_eq!(text(&mut world).await, None, "nor is it kept at all");
}

pub async fn the_text_of_a_page_that_is_given_up_is_forgotten(world: World) {
    let mut world = limited(world, 2).await;
    when_due(&mut world, saying("first")).await;
    assert_eq!(when_due(&mut world, |token| answered(token, 403)).await, Outcome::Failed);
    assert_eq!(text(&mut world).await, None);

    let mut world = limited(world.another(), 2).await;
    when_due(&mut world, saying("first")).await;
    let due = world.the_entry("c", HOME).await.due;
    world.pass_until(due);
    while world.the_entry("c", HOME).await.state != State::Failed {
        assert_eq!(text(&mut world).await.as_deref(), Some("first"));
        let lost = world.lease_one().await;
        world.pass_until(lost.until);
    }
    assert_eq!(text(&mut world).await, None, "lost by too many workers");
}

pub async fn the_text_of_a_page_that_is_removed_is_forgotten(world: World) {
    let out = || changed_profile("c", "c", |profile| profile.exclude = vec!["a.example".into()]);
    // When it is reported, when it is handed out, and when a link to it is found.
    for way in ["report", "lease", "link"] {
        let mut world = site(world.another()).await;
        world.find("c", HOME, ["https://a.example/1"]).await;
        let leased = world.lease(2).await;
        for leased in &leased {
            world.complete(saying("first")(leased.token)).await;
        }
        world.pass("8h");
        if way == "report" {
            let leased = world.lease(2).await;
            world.configure([out()]).await;
            for leased in &leased {
                assert_eq!(world.complete(saying("x")(leased.token)).await.outcome, Outcome::Removed);
            }
        } else {
            world.configure([out()]).await;
            if way == "link" {
                world.find("c", "https://a.example/1", [HOME]).await;
            } else {
                assert_eq!(world.lease(2).await, []);
            }
        }
        assert_eq!(world.entry("c", HOME).await, None, "{way}");
        assert_eq!(text(&mut world).await, None, "{way}");
        if way == "link" {
            let other = world.noted(&text_key("c", "https://a.example/1")).await;
            assert_eq!(other.as_deref(), Some("first"), "the other page is still there");
        }
    }
}

pub async fn the_texts_of_a_collection_that_is_removed_are_forgotten(world: World) {
    let mut world = site(world).await;
    // Names that begin alike, and one that could be taken for a part of a key.
    let others = ["c d", "cc", "c https://a.example/"];
    for name in others {
        world.configure([planned(name), profile(name, name, |_| {})]).await;
    }
    let [one, two, three] = others;
    world.configure([Change::SetSeed(seed_value(HOME, ["c", one, two, three]))]).await;
    world.start_seed(HOME).await;
    for leased in world.lease(9).await {
        world.complete(saying("first")(leased.token)).await;
    }
    world.note([crate::verbs::Note::Keep("text".into(), Some(b"mine".to_vec()))]).await;
    world.configure([Change::RemoveProfile("c".into()), Change::RemoveCollection("c".into())]).await;
    for reopened in [false, true] {
        if reopened {
            world.reopen();
        }
        assert_eq!(text(&mut world).await, None, "reopened: {reopened}");
        for name in others {
            let other = world.noted(&text_key(name, HOME)).await;
            assert_eq!(other.as_deref(), Some("first"), "{name}, reopened: {reopened}");
        }
        assert_eq!(world.noted("text").await.as_deref(), Some("mine"));
    }
    world.configure([planned("c")]).await;
    assert_eq!(text(&mut world).await, None, "another collection of that name knows nothing of it");
}

/// A text that is longer than what is kept ends with a line that says so.
pub async fn a_text_that_is_too_long_is_cut_and_says_so(world: World) {
    let mut world = site(world).await;
    let line = "a line of many, and none is like ünother\n";
    let whole = line.repeat(MAX_NOTE_BYTES / line.len());
    when_due(&mut world, saying(&whole)).await;
    assert_eq!(text(&mut world).await.as_deref(), Some(whole.as_str()), "as much as is kept");
    let long = line.repeat(2 + MAX_NOTE_BYTES / line.len());
    when_due(&mut world, saying(&long)).await;
    world.reopen();
    let kept = text(&mut world).await.unwrap();
    assert!(kept.len() <= MAX_NOTE_BYTES, "{}", kept.len());
    let (lines, end) = kept.rsplit_once('\n').unwrap();
    assert!(long.starts_with(lines) && lines.ends_with(line.trim_end()), "whole lines");
    assert_eq!(end, format!("[cut off here: the text has {} bytes]", long.len()));
    assert_eq!(kept, kept_text(&long), "as a worker would cut it");
    let one_line = "ü".repeat(MAX_NOTE_BYTES);
    when_due(&mut world, saying(&one_line)).await;
    let kept = text(&mut world).await.unwrap();
    assert!(kept.len() <= MAX_NOTE_BYTES && kept.ends_with(']'), "{}", kept.len());
}

pub async fn a_job_that_fetches_twice_forgets_too(mut world: World) {
    let job = NewJob {
        id: "job".into(),
        urls: vec![HOME.into()],
        profile: profile_value("", "", |profile| profile.length = Some(2)),
        limits: crate::catalog::Limits::default(),
    };
    world.frontier().start_job(&job, world.now).await.unwrap();
    let request = LeaseRequest { collection: Some("job".into()), ..up_to(1) };
    let mut outcomes = vec![];
    for report in [saying("first")(Token(0)), answered(Token(0), 304)] {
        let leased = world.ask(&request).await.leased.remove(0);
        outcomes.push(world.complete(Report { token: leased.token.0, ..report }).await.outcome);
        let noted = world.noted(&text_key("job", HOME)).await;
        assert_eq!(noted.is_some(), outcomes.len() == 1, "{outcomes:?}");
        world.pass("1000 days");
    }
    assert_eq!(outcomes, [Outcome::Again, Outcome::Done]);
}

pub async fn a_url_too_long_for_a_key_is_fetched_all_the_same(world: World) {
    let mut world = site(world).await;
    let long = format!("https://a.example/{}", "x".repeat(65_518)); // as long as a URL may be
    world.find("c", HOME, [&long]).await;
    for _ in 0..2 {
        for leased in world.lease(2).await {
            let done = world.complete(saying("text")(leased.token)).await;
            assert_eq!(done.outcome, Outcome::Again);
        }
        assert_eq!(world.noted(&text_key("c", &long)).await, None, "its text is not kept");
        world.pass("8h");
    }
    world.configure([Change::RemoveSeed(HOME.into())]).await;
    assert_eq!(world.lease(2).await, []);
    assert_eq!(world.all("c").await, []);
}

pub async fn nothing_is_kept_of_a_plain_collection(mut world: World) {
    world.configure([unplanned("p")]).await;
    let links = vec![link(HOME)];
    world.discover(Page { collection: "p".into(), links, ..Page::default() }).await;
    let leased = world.lease_one().await;
    assert_eq!(world.complete(saying("x")(leased.token)).await.outcome, Outcome::Done);
    assert_eq!(world.noted(&text_key("p", HOME)).await, None, "it does not come back");
}
