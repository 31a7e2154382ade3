//! Entries on their way from one frontier to another.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::entry::State;
use crate::error::Error;
use crate::host::Learned;
use crate::moment::Moment;
use crate::verbs::{
    Action, EventRow, FetchRow, HostFilter, Image, Item, LeaseAnswer, LeaseRequest, Link, Logged, Put,
    Report, Sent, Stats, Word,
};

const HOME: &str = "https://a.example/";

async fn configured(world: &mut World, order: Order) {
    let ordered = |profile: &mut Profile| (profile.order, profile.length) = (order, Some(9));
    world.configure([planned("c"), unplanned("p"), profile("c", "c", ordered), seed(HOME, ["c"])]).await;
}

/// Entries that were found, fetched, changed, given up and lost.
async fn lived(world: &mut World, order: Order) {
    configured(world, order).await;
    world.start_seed(HOME).await;
    let urls: Vec<String> = (0..8).map(|number| format!("https://a.example/news/{number}")).collect();
    world.discover(page("c", HOME, urls.iter().map(String::as_str))).await;
    for round in ["one", "two", "three", "four", "five"] {
        for (number, leased) in world.lease(5).await.into_iter().enumerate() {
            let report = match number {
                1 => answered(leased.token, 404),
                3 => answered(leased.token, 500),
                _ => ok(leased.token, round),
            };
            world.complete(report).await;
        }
        world.pass("30h");
    }
    world.lease(1).await; // one is under way
    world.find("c", "https://a.example/news/1", ["https://a.example/deep"]).await;
    let links = vec![
        Link { key: Some("own key".into()), metadata: Some("{}".into()), ..link("any:text") },
        link("https://x.example/p"),
    ];
    world.discover(crate::verbs::Page { links, ..page("p", "", []) }).await;
}

async fn export(world: &mut World, collection: &str) -> Vec<Image> {
    world.frontier().export(collection, None, usize::MAX, world.now).await.unwrap()
}

pub async fn a_source_that_comes_later_is_known_when_its_finds_come_again(world: World) {
    let mut from = world.another();
    lived(&mut from, Order::Hierarchy).await;
    let mut to = world.another();
    configured(&mut to, Order::Hierarchy).await;
    to.now = from.now;
    let mut images = export(&mut from, "c").await;
    assert!(images.iter().any(|image| image.source.is_some()), "some were found on others");
    images.reverse();
    to.frontier().import("c", &images, to.now).await.unwrap();
    to.reopen();
    let told = to.frontier().import("c", &images, to.now).await.unwrap();
    assert!(told.iter().all(|new| !new), "they are there already");
    for image in images {
        assert_eq!(to.the_entry("c", &image.url).await.source, image.source, "{}", image.url);
    }
}

pub async fn what_is_imported_equals_what_was_exported(world: World) {
    for order in Order::ALL {
        let mut from = world.another();
        lived(&mut from, order).await;
        let mut to = world.another();
        configured(&mut to, order).await;
        to.now = from.now;
        for collection in ["c", "p"] {
            let images = export(&mut from, collection).await;
            let told = to.frontier().import(collection, &images, to.now).await.unwrap();
            assert!(told.len() == images.len() && told.iter().all(|new| *new), "{order}");
            to.reopen();
            let again: Vec<Image> = export(&mut to, collection).await;
            // Numbers are each frontier's own.
            let unnumbered = |images: &[Image]| -> Vec<Image> {
                images.iter().map(|image| Image { id: crate::entry::EntryId(0), ..image.clone() }).collect()
            };
            assert_eq!(unnumbered(&again), unnumbered(&images), "{order}");
            to.counts_equal_a_scan(collection).await;
        }
    }
}

pub async fn what_was_counted_and_learned_goes_on_elsewhere(world: World) {
    let mut from = world.another();
    lived(&mut from, Order::Hierarchy).await;
    let tally = |stats: Vec<Stats>| stats[0].tally;
    let counted = tally(from.frontier().stats(Some("c"), from.now).await.unwrap());
    assert!(counted.fetches > 0);
    let learned = Learned { back_off_until: from.later("1h"), ..from.host("a.example").await.learned };
    assert!(learned.served > 0 && learned.fetched > 0, "{learned:?}");
    let mut to = world.another();
    configured(&mut to, Order::Hierarchy).await;
    to.now = from.now;
    let images = export(&mut from, "c").await;
    let hosts = [("a.example".to_owned(), learned.clone())];
    // Twice is the same as once.
    for _ in 0..2 {
        to.frontier().learn("c", counted, &hosts, to.now).await.unwrap();
        to.frontier().import("c", &images, to.now).await.unwrap();
        to.reopen();
    }
    assert_eq!(tally(to.frontier().stats(Some("c"), to.now).await.unwrap()), counted);
    assert_eq!(to.host("a.example").await.learned, learned);
    assert_eq!(to.lease(1).await, [], "the host is left alone here too");
}

pub async fn what_is_done_is_counted_at_its_queue_again(world: World) {
    let mut from = world.another();
    configured(&mut from, Order::Hierarchy).await;
    let said = [Word::Done, Word::Done, Word::Found].into_iter().enumerate();
    let items = said.map(|(number, word)| Item {
        url: format!("https://x.example/{number}"),
        key: Some("k".into()),
        word,
        ..Item::default()
    });
    let put = Put { collection: "p".into(), items: items.collect() };
    from.frontier().put(&[put], from.now).await.unwrap();
    let mut to = world.another();
    configured(&mut to, Order::Hierarchy).await;
    to.now = from.now;
    let images = export(&mut from, "p").await;
    to.frontier().import("p", &images, to.now).await.unwrap();
    let filter =
        HostFilter { collection: Some("p".into()), key: Some("k".into()), limit: 1, ..HostFilter::default() };
    for world in [&mut from, &mut to] {
        let hosts = world.frontier().hosts(&filter, world.now).await.unwrap();
        assert_eq!(hosts[0].fetched, 2, "by which a limit goes");
    }
}

pub async fn what_was_imported_is_handed_out_in_the_same_order(world: World) {
    let mut from = world.another();
    lived(&mut from, Order::Hierarchy).await;
    let mut to = world.another();
    configured(&mut to, Order::Hierarchy).await;
    to.now = from.now;
    let images = export(&mut from, "c").await;
    to.frontier().import("c", &images, to.now).await.unwrap();
    for world in [&mut from, &mut to] {
        world.pass("100 days"); // the lease that was under way has run out
    }
    let of_c = LeaseRequest { collection: Some("c".into()), ..up_to(99) };
    let urls =
        |answer: LeaseAnswer| -> Vec<String> { answer.leased.into_iter().map(|leased| leased.url).collect() };
    let (ours, theirs) = (urls(to.ask(&of_c).await), urls(from.ask(&of_c).await));
    assert_eq!(ours, theirs);
}

pub async fn an_image_survives_json(world: World) {
    let mut from = world.another();
    lived(&mut from, Order::Linked).await;
    for image in export(&mut from, "c").await.into_iter().chain(export(&mut from, "p").await) {
        let line = serde_json::to_string(&image).unwrap();
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Image>(&line).unwrap(), image, "{line}");
    }
}

pub async fn logs_go_on_elsewhere_in_the_same_order(world: World) {
    let mut from = world.another();
    configured(&mut from, Order::Hierarchy).await;
    from.start_seed(HOME).await;
    for result in ["one", "two", "three"] {
        let leased = from.lease_one().await;
        let fetch = Sent { at: from.moment(), robots: "allowed by /".to_owned(), ..Sent::default() };
        from.complete(Report { fetch: Some(fetch), ..ok(leased.token, result) }).await;
        from.pass("30h");
    }
    let (fetches, events) = (from.fetches().await, from.events().await);
    assert_eq!((fetches.len(), events.len()), (3, 2), "each but the first was a change");
    let rest = FetchRow { back_off_until: Some(Moment::NEVER), ..fetches[2].clone() };
    let fetches = [fetches[0].clone(), fetches[1].clone(), rest];

    let mut to = world.another();
    configured(&mut to, Order::Hierarchy).await;
    to.start_seed(HOME).await;
    let of_fetches = fetches.iter().cloned().map(Logged::Fetch);
    let rows: Vec<Logged> = of_fetches.chain(events.iter().cloned().map(Logged::Event)).collect();
    for (row, line) in rows.iter().map(|row| (row, serde_json::to_string(row).unwrap())) {
        assert_eq!(serde_json::from_str::<Logged>(&line).unwrap(), *row, "{line}");
    }
    // In several calls, with positions of their own from where the log was.
    for row in &rows {
        to.frontier().append(std::slice::from_ref(row), to.now).await.unwrap();
    }
    to.reopen();
    to.frontier().append(&rows, to.now).await.unwrap();
    let (told, happened) = (to.fetches().await, to.events().await);
    for (number, row) in told.iter().enumerate() {
        assert_eq!(*row, FetchRow { position: number as u64, ..fetches[number % 3].clone() });
    }
    for (number, row) in happened.iter().enumerate() {
        assert_eq!(*row, EventRow { position: number as u64, ..events[number % 2].clone() });
    }
    assert_eq!((told.len(), happened.len()), (6, 4));
    assert_eq!(to.lease_urls(1).await, [HOME], "what was waited for elsewhere is not waited for again");
}

pub async fn what_is_leased_is_exported_as_queued(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    world.start_seed(HOME).await;
    world.lease(1).await;
    assert_eq!(export(&mut world, "c").await[0].state, State::Queued);
    assert_eq!(world.the_entry("c", HOME).await.state, State::Leased, "and stays with its worker");
}

pub async fn an_export_goes_on_where_it_stopped(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    let urls: Vec<String> = (0..10).map(|number| format!("https://a.example/{number}")).collect();
    world.discover(page_of_seed("c", HOME, urls.iter().map(String::as_str))).await;
    world.discover(page("p", "", ["https://x.example/between"])).await;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let images = world.frontier().export("c", after, 3, world.now).await.unwrap();
        let Some(last) = images.last() else { break };
        after = Some(last.id);
        found.extend(images.into_iter().map(|image| image.url));
    }
    assert_eq!(found, urls);
}

pub async fn what_is_known_already_stays_as_it_is(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    world.start_seed(HOME).await;
    let mut images = export(&mut world, "c").await;
    world.fetch("x").await;
    let before = world.the_entry("c", HOME).await;
    images.push(Image { url: "https://a.example/new".into(), ..images[0].clone() });
    let told = world.frontier().import("c", &images, world.now).await.unwrap();
    assert_eq!(told, [false, true]);
    assert_eq!(world.the_entry("c", HOME).await, before);
}

pub async fn an_import_takes_all_or_nothing(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    world.start_seed(HOME).await;
    let good = Image { url: "https://a.example/good".into(), ..export(&mut world, "c").await.remove(0) };
    for (bad, named) in [
        (Image { url: "mailto:x".into(), ..good.clone() }, "mailto:x"),
        (Image { seed: None, ..good.clone() }, "seed"),
        (Image { seed: Some("https://gone.example/".into()), ..good.clone() }, "https://gone.example/"),
    ] {
        let error = world.frontier().import("c", &[good.clone(), bad], world.now).await.unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(world.stats("c").await.queued, 1);
    }
    for missing in [
        world.frontier().import("nowhere", &[], world.now).await.unwrap_err(),
        world.frontier().export("nowhere", None, 1, world.now).await.unwrap_err(),
    ] {
        assert!(matches!(missing, Error::NotFound { kind: "collection", .. }), "{missing}");
    }
}

pub async fn what_comes_into_a_plain_collection_has_no_seed(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    world.start_seed(HOME).await;
    let images = export(&mut world, "c").await;
    world.frontier().import("p", &images, world.now).await.unwrap();
    assert_eq!(world.all("p").await[0].seed, None);
}

pub async fn what_was_imported_takes_part_in_everything(mut world: World) {
    configured(&mut world, Order::Hierarchy).await;
    world.start_seed(HOME).await;
    let image =
        Image { url: "https://a.example/x".into(), priority: 640, ..export(&mut world, "c").await.remove(0) };
    world.frontier().import("c", &[image], world.now).await.unwrap();
    assert_eq!(world.find("c", HOME, ["https://a.example/x"]).await, [Action::Improved]);
    assert_eq!(world.priority("c", "https://a.example/x").await, 800);
    assert_eq!(world.lease_urls(9).await, [HOME, "https://a.example/x"]);
}
