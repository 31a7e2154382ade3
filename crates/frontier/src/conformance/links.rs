//! Links that come with a report: taken in by the call that ends the lease, or not at all.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::catalog::{Change, Limits};
use crate::entry::{How, State, Token};
use crate::verbs::{
    Action, Action::*, Completed, Event, JobState, LeaseRequest, Link, NewJob, Outcome, Page, Report,
};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

fn links<const N: usize>(urls: [&str; N]) -> Vec<Link> {
    urls.map(link).to_vec()
}

fn actions(completed: &Completed) -> Vec<Action> {
    completed.found.iter().map(|found| found.action).collect()
}

/// Leases the next page and reports these links.
async fn fetch_links<const N: usize>(world: &mut World, urls: [&str; N]) -> Completed {
    let leased = world.lease_one().await;
    world.complete(ok_with(leased.token, links(urls))).await
}

pub async fn what_became_of_each_is_told_in_order(world: World) {
    let mut world = site(world).await;
    let urls = [
        "https://a.example/1",
        "mailto:x",
        "https://b.example/",
        "https://a.example/1",
        "https://a.example/2",
    ];
    let done = fetch_links(&mut world, urls).await;
    assert_eq!(done.outcome, Outcome::Again);
    assert_eq!(actions(&done), [Added, Invalid, Ignored, Kept, Added]);
    assert!(done.found[2].rule.contains("not in scope domain"), "{}", done.found[2].rule);
    let leased = world.lease_one().await;
    let without = world.complete(ok(leased.token, "x")).await;
    assert_eq!(without.found, [], "nothing was found on it");
}

pub async fn a_page_stands_for_its_links_as_it_stood(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let leased = world.lease(2).await;
    world.complete(ok_with(leased[1].token, links(["https://a.example/1/2"]))).await;
    let entry = world.the_entry("c", "https://a.example/1/2").await;
    assert_eq!((entry.seed.as_deref(), entry.depth, entry.priority.thousandths()), (Some(HOME), 2, 640));
    assert_eq!((entry.source.as_deref(), entry.record.origin.how), (Some("https://a.example/1"), How::Link));
    assert_eq!(entry.due, world.moment());
}

pub async fn reports_and_their_links_survive_a_restart_together(world: World) {
    let mut world = site(world).await;
    let done = fetch_links(&mut world, ["https://a.example/1", "https://a.example/2"]).await;
    assert_eq!(actions(&done), [Added, Added]);
    let before = world.all("c").await;
    world.reopen();
    assert_eq!(world.all("c").await, before);
    assert_eq!(world.the_entry("c", HOME).await.record.scans, 1);
    world.counts_equal_a_scan("c").await;
}

pub async fn a_page_that_leaves_the_queue_leaves_its_links_there(mut world: World) {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    let done = fetch_links(&mut world, [HOME, "https://a.example/1"]).await;
    assert_eq!((done.outcome, actions(&done)), (Outcome::Done, vec![Kept, Added]));
    assert_eq!(world.the_entry("c", HOME).await.state, State::Done);
    assert_eq!(world.the_entry("c", "https://a.example/1").await.record.length, Some(1));
}

/// Whatever came of it: an error page has links too, and a page that is given up may have moved.
pub async fn links_of_failures_are_taken_in_too(world: World) {
    for status in [301, 403, 404, 500] {
        let mut world = site(world.another()).await;
        let leased = world.lease_one().await;
        let links = links(["https://a.example/1"]);
        let done = world.complete(Report { links, ..answered(leased.token, status) }).await;
        assert_eq!(actions(&done), [Added], "{status}");
    }
}

pub async fn a_report_that_is_refused_takes_in_nothing(world: World) {
    let mut world = site(world).await;
    let lost = world.lease_one().await;
    world.pass_until(lost.until);
    let held = world.lease_one().await;
    let cases = [
        ("run out", ok_with(lost.token, links(["https://a.example/1"]))),
        ("never was", ok_with(Token(77_777), links(["https://a.example/1"]))),
        (
            "neither error nor status",
            Report { token: held.token.0, links: links(["https://a.example/1"]), ..Report::default() },
        ),
    ];
    for (name, report) in cases {
        let done = world.complete(report).await;
        assert_eq!((done.outcome, done.found.len()), (Outcome::Refused, 0), "{name}");
        assert_eq!(world.stats("c").await.queued, 0, "{name}");
    }
    let twice = [(); 2].map(|()| ok_with(held.token, links(["https://a.example/1"])));
    let done = world.frontier().complete(&twice, world.now).await.unwrap();
    assert_eq!(done.iter().map(actions).collect::<Vec<_>>(), [vec![Added], vec![]], "a token counts once");
}

pub async fn a_page_that_links_to_itself_is_told_the_truth(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    world.find("c", "https://a.example/1", ["https://a.example/1/2"]).await;
    let leased = world.lease(3).await;
    let page = leased.iter().find(|leased| leased.depth == 2).unwrap();
    // A sitemap is worth less than what it has, a place in the header of the homepage more: only a homepage has one.
    world.complete(ok_with(page.token, vec![link_as(How::Sitemap, &page.url)])).await;
    assert_eq!(world.priority("c", &page.url).await, 640);

    let other = world.another();
    let mut world = other;
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.find_for("c", HOME, ["https://a.example/x"]).await;
    let leased = world.lease_one().await;
    assert_eq!(leased.priority.thousandths(), 100);
    let done = world.complete(ok_with(leased.token, vec![link_as(How::Sitemap, &leased.url)])).await;
    assert_eq!(actions(&done), [Improved]);
    assert_eq!(world.priority("c", "https://a.example/x").await, 500, "as it was told");
}

pub async fn pages_of_a_batch_find_each_other(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let leased = world.lease(2).await;
    let reports = [
        ok_with(leased[0].token, links(["https://a.example/1", "https://a.example/2"])),
        ok_with(leased[1].token, links([HOME, "https://a.example/2", "https://a.example/3"])),
    ];
    let done = world.frontier().complete(&reports, world.now).await.unwrap();
    assert_eq!(actions(&done[0]), [Kept, Added]);
    assert_eq!(actions(&done[1]), [Kept, Kept, Added]);
    let entry = world.the_entry("c", "https://a.example/2").await;
    assert_eq!((entry.depth, entry.source.as_deref()), (1, Some(HOME)));
}

pub async fn a_page_whose_seed_is_gone_brings_nothing(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    world.configure([Change::RemoveSeed(HOME.into())]).await;
    let done = world.complete(ok_with(leased.token, links(["https://a.example/1"]))).await;
    assert_eq!((done.outcome, actions(&done)), (Outcome::Removed, vec![Ignored]));
    assert_eq!(world.all("c").await, []);
}

pub async fn a_plain_collection_takes_them_as_they_are(mut world: World) {
    world.configure([unplanned("p")]).await;
    let put = Page { collection: "p".into(), links: links(["https://a.example/"]), ..Page::default() };
    world.discover(put).await;
    let leased = world.lease_one().await;
    let later = world.later("1h");
    let found = vec![
        Link { key: Some("k".into()), due: Some(later), ..link("No URL at all") },
        link("https://a.example/"),
        link(""),
    ];
    let done = world.complete(ok_with(leased.token, found)).await;
    assert_eq!((done.outcome, actions(&done)), (Outcome::Done, vec![Added, Kept, Invalid]));
    let entry = world.the_entry("p", "No URL at all").await;
    assert_eq!((entry.host.as_str(), entry.due, entry.seed), ("k", later, None));
}

pub async fn a_job_goes_on_with_the_links_of_its_last_page(mut world: World) {
    let job = NewJob {
        id: "job".into(),
        urls: vec![HOME.into()],
        profile: Profile::new("", ""),
        limits: Limits::default(),
    };
    world.frontier().start_job(&job, world.now).await.unwrap();
    fetch_links(&mut world, ["https://a.example/1"]).await;
    let jobs = world.frontier().jobs(world.now).await.unwrap();
    assert_eq!(
        (jobs[0].state, world.events().await.len()),
        (JobState::Running, 0),
        "never finished in between"
    );
    let request = LeaseRequest { collection: Some("job".into()), ..up_to(1) };
    let last = world.ask(&request).await.leased.remove(0);
    world.complete(ok_with(last.token, links([HOME]))).await;
    let events: Vec<Event> = world.events().await.into_iter().map(|row| row.event).collect();
    assert_eq!(events, [Event::Finished]);
}
