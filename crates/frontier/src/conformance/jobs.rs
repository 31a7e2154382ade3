//! Jobs: harvests that end.

use forager_core::order::Order;

use super::World;
use super::world::*;
use crate::catalog::{Change, CollectionSpec, Job, Kind, Limits};
use crate::entry::State;
use crate::error::Error;
use crate::verbs::{Action::*, Event, JobState, JobView, NewJob, Nothing, Report, Steer, Target};

const HOME: &str = "https://a.example/";

fn job(id: &str, limits: Limits) -> NewJob {
    let profile = profile_value("any", "name", |profile| profile.order = Order::Linked);
    NewJob { id: id.into(), urls: vec![HOME.into()], profile, limits }
}

async fn started(world: &mut World, limits: Limits) -> JobView {
    world.frontier().start_job(&job("j", limits), world.now).await.unwrap()
}

async fn the_job(world: &mut World) -> JobView {
    let mut jobs = world.frontier().jobs(world.now).await.unwrap();
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

async fn steer(world: &mut World, steer: Steer) -> JobView {
    world.frontier().steer_job("j", steer, world.now).await.unwrap()
}

async fn finished(world: &mut World) -> usize {
    let events = world.events().await;
    events.iter().filter(|event| event.event == Event::Finished && event.subject == "j").count()
}

pub async fn a_job_starts_at_its_urls_in_a_collection_of_its_own(mut world: World) {
    let view = started(&mut world, Limits::default()).await;
    assert_eq!((view.id.as_str(), view.state, view.order), ("j", JobState::Running, Order::Linked));
    assert_eq!((view.job.started, view.progress.queued), (world.moment(), 1));
    let leased = world.lease_one().await;
    assert_eq!((leased.collection.as_str(), leased.url.as_str(), leased.depth), ("j", HOME, 0));
    world.reopen();
    assert_eq!(the_job(&mut world).await.progress.in_flight, 1);
}

pub async fn a_job_fetches_each_page_once(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/x"]).await;
    for left in [1, 0] {
        world.fetch("x").await;
        assert_eq!(the_job(&mut world).await.progress.queued, left);
    }
    assert_eq!(world.find("j", HOME, ["https://a.example/x"]).await, [Kept]);
    world.pass("100 days");
    assert_eq!(world.lease(9).await, []);
}

pub async fn a_job_tells_how_far_it_is(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/1", "https://a.example/2", "https://a.example/3"]).await;
    let leased = world.lease(3).await;
    world.complete(ok(leased[0].token, "four")).await;
    world.complete(answered(leased[1].token, 403)).await;
    world.reopen();
    let view = the_job(&mut world).await;
    let progress = &view.progress;
    assert_eq!([progress.queued, progress.in_flight, progress.done, progress.failed], [1, 1, 1, 1]);
    assert_eq!((progress.tally.fetches, progress.tally.bytes, progress.tally.skipped), (2, 4, 0));
    assert_eq!(*progress, world.stats("j").await);
    world.counts_equal_a_scan("j").await;
}

pub async fn what_leaves_the_queue_unfetched_counts_as_skipped(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/old"]).await;
    let narrow = changed_profile("j", "j", |profile| {
        (profile.exclude, profile.length) = (vec!["old".into()], Some(1));
    });
    world.configure([narrow]).await;
    world.fetch("x").await;
    assert_eq!(world.lease(9).await, []);
    let progress = the_job(&mut world).await.progress;
    assert_eq!([progress.queued, progress.done, progress.tally.skipped], [0, 1, 1]);
}

pub async fn a_job_is_finished_when_nothing_is_left_and_says_so_once(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/x"]).await;
    let leased = world.lease(2).await;
    world.complete(ok(leased[0].token, "x")).await;
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Running, 0));
    world.complete(ok(leased[1].token, "x")).await;
    world.reopen();
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Finished, 1));
    world.pass("10 days");
    assert_eq!(world.ask(&up_to(1)).await.nothing, Some(Nothing::Empty));
    assert_eq!(finished(&mut world).await, 1);
}

pub async fn a_job_ends_after_so_many_pages(mut world: World) {
    started(&mut world, Limits { pages: Some(3), ..Limits::default() }).await;
    let urls: Vec<String> = (0..9).map(|number| format!("https://a.example/{number}")).collect();
    world.discover(page("j", HOME, urls.iter().map(String::as_str))).await;
    world.fetch("x").await;
    let leased = world.lease(9).await;
    assert_eq!(leased.len(), 2, "what is under way counts");
    assert_eq!(world.lease(9).await, []);
    world.frontier().release(&[leased[0].token], world.now).await.unwrap();
    let again = world.lease(9).await;
    assert_eq!(again.len(), 1, "what was given back does not");
    world.complete(ok(leased[1].token, "x")).await;
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Running, 0));
    world.complete(ok(again[0].token, "x")).await;
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Limited, 1));
    assert_eq!(world.lease(9).await, []);
    assert_eq!(the_job(&mut world).await.progress.queued, 7, "the rest stays");
}

pub async fn a_job_ends_after_so_many_bytes(mut world: World) {
    started(&mut world, Limits { bytes: Some(6), ..Limits::default() }).await;
    world.find("j", HOME, ["https://a.example/1", "https://a.example/2", "https://a.example/3"]).await;
    world.fetch("four").await;
    world.fetch("four").await;
    assert_eq!(world.lease(9).await, []);
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Limited, 1));
}

pub async fn a_job_ends_after_so_long(mut world: World) {
    started(&mut world, Limits { time: Some(interval("1h")), ..Limits::default() }).await;
    world.find("j", HOME, ["https://a.example/1"]).await;
    world.pass("3599s");
    let leased = world.lease_one().await;
    world.pass("1s");
    assert_eq!(world.lease(9).await, [], "the hour is over");
    assert_eq!(the_job(&mut world).await.state, JobState::Running, "one is still under way");
    world.complete(ok(leased.token, "x")).await;
    assert_eq!((the_job(&mut world).await.state, finished(&mut world).await), (JobState::Limited, 1));
}

/// What a host asks for may be long after that: nobody has to wait for it.
pub async fn whoever_waits_for_a_job_is_told_when_its_time_is_over(mut world: World) {
    let start = world.moment();
    let until_over = Some(start.after(interval("1h")));
    let waits = |nothing: Option<Nothing>| match nothing {
        Some(Nothing::Throttled { until, .. } | Nothing::NotDue { until }) => Some(until),
        Some(Nothing::Blocked { until }) => until,
        Some(Nothing::Empty) | None => None,
    };
    started(&mut world, Limits { time: Some(interval("1h")), ..Limits::default() }).await;
    let leased = world.lease_one().await;
    let asked = Report { retry_after: Some(interval("3h")), ..answered(leased.token, 503) };
    world.complete(asked).await;
    let answer = world.ask(&up_to(9)).await;
    assert_eq!(waits(answer.nothing), until_over, "its host wants to be left alone for longer");
    world.pass("1h");
    assert_eq!(world.ask(&up_to(9)).await.nothing, Some(Nothing::Empty));
    assert_eq!(the_job(&mut world).await.state, JobState::Limited);
}

pub async fn time_at_which_nobody_works_does_not_count(mut world: World) {
    started(&mut world, Limits { time: Some(interval("1h")), ..Limits::default() }).await;
    world.find("j", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    world.pass("10m");
    world.fetch("x").await;
    world.pass("24h");
    assert_eq!(world.lease(9).await, [], "nobody has told that nobody worked");
    assert_eq!(the_job(&mut world).await.state, JobState::Limited);
    let job = Job { idle: interval("24h"), ..the_job(&mut world).await.job };
    let spec = CollectionSpec { job: Some(job), ..CollectionSpec::new("j", Kind::Planned) };
    world.configure([Change::SetCollection(spec)]).await;
    world.reopen();
    let view = the_job(&mut world).await;
    assert_eq!((view.state, view.job.idle), (JobState::Running, interval("24h")));
    world.fetch("x").await;
    world.pass("50m");
    assert_eq!(world.lease(9).await, [], "the hour is over");
    assert_eq!(the_job(&mut world).await.state, JobState::Limited);
}

/// Nobody reports then, so the first call after its time has to say it.
pub async fn a_job_that_ends_by_itself_says_so_too(mut world: World) {
    started(&mut world, Limits { time: Some(interval("1h")), ..Limits::default() }).await;
    world.pass("2h");
    assert_eq!(world.lease(9).await, []);
    assert_eq!(the_job(&mut world).await.state, JobState::Limited);
    assert_eq!(finished(&mut world).await, 1, "ended by its time");

    let mut world = world.another().with(|settings| settings.retry.abandoned = 0);
    started(&mut world, Limits::default()).await;
    let leased = world.lease_one().await;
    world.pass_until(leased.until);
    assert_eq!(world.lease(9).await, []);
    assert_eq!(the_job(&mut world).await.state, JobState::Finished);
    assert_eq!(finished(&mut world).await, 1, "its last page was lost by its worker");

    let mut world = world.another();
    let view = started(&mut world, Limits { pages: Some(0), ..Limits::default() }).await;
    assert_eq!((view.state, view.job.finished), (JobState::Limited, Some(world.moment())));
    assert_eq!(finished(&mut world).await, 1, "it has nothing to fetch from the start");

    let mut world = world.another();
    started(&mut world, Limits { time: Some(interval("1h")), ..Limits::default() }).await;
    world.pass("2h");
    let view = steer(&mut world, Steer::Pause).await;
    assert_eq!((view.state, view.job.finished), (JobState::Limited, Some(world.moment())));
}

pub async fn a_paused_job_hands_out_nothing_until_it_is_resumed(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/1"]).await;
    let leased = world.lease_one().await;
    assert_eq!(steer(&mut world, Steer::Pause).await.state, JobState::Paused);
    world.reopen();
    let answer = world.ask(&up_to(9)).await;
    assert_eq!(answer.leased, []);
    assert!(matches!(answer.nothing, Some(Nothing::Blocked { .. })), "{:?}", answer.nothing);
    let done = world.complete(ok(leased.token, "x")).await;
    assert_ne!(done.outcome, crate::verbs::Outcome::Refused, "what is under way is taken in");
    assert_eq!(world.find("j", HOME, ["https://a.example/2"]).await, [Added], "and so are links");
    assert_eq!(world.ask(&up_to(9)).await.nothing, Some(Nothing::Blocked { until: None }));
    assert_eq!(steer(&mut world, Steer::Resume).await.state, JobState::Running);
    assert_eq!(world.lease(9).await.len(), 2);
}

pub async fn a_cancelled_job_hands_out_nothing_any_more(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.find("j", HOME, ["https://a.example/1"]).await;
    let leased = world.lease_one().await;
    assert_eq!(steer(&mut world, Steer::Cancel).await.state, JobState::Cancelled);
    world.reopen();
    assert_eq!(world.lease(9).await, []);
    world.complete(ok(leased.token, "x")).await;
    assert_eq!(the_job(&mut world).await.state, JobState::Cancelled);
    for again in [Steer::Pause, Steer::Resume, Steer::Cancel] {
        let error = world.frontier().steer_job("j", again, world.now).await.unwrap_err();
        assert!(error.to_string().contains("\"j\" is cancelled"), "{error}");
    }
    assert_eq!(world.the_entry("j", HOME).await.state, State::Done, "what was fetched stays");
}

pub async fn jobs_are_found_by_name(mut world: World) {
    world.harvest("c", Order::Fifo, "https://c.example/").await;
    for name in ["nowhere", "c"] {
        let error = world.frontier().steer_job(name, Steer::Pause, world.now).await.unwrap_err();
        assert!(matches!(&error, Error::NotFound { kind: "job", name: told } if told == name), "{error}");
    }
    started(&mut world, Limits::default()).await;
    let error = world.frontier().start_job(&job("j", Limits::default()), world.now).await.unwrap_err();
    assert!(matches!(error, Error::Exists { .. }), "{error}");
}

pub async fn a_job_that_cannot_start_leaves_nothing(mut world: World) {
    let empty = NewJob { urls: vec![], ..job("j", Limits::default()) };
    let bad = NewJob { urls: vec![HOME.into(), "no url".into()], ..job("j", Limits::default()) };
    let twice = NewJob { urls: vec![HOME.into(), HOME.into()], ..job("j", Limits::default()) };
    for job in [empty, bad] {
        assert!(world.frontier().start_job(&job, world.now).await.is_err(), "{:?}", job.urls);
        assert_eq!(world.frontier().jobs(world.now).await.unwrap(), []);
        assert_eq!(world.frontier().catalog().await.unwrap().rows().profiles, []);
    }
    // The same URL twice is either one start or an error, but never half a job.
    match world.frontier().start_job(&twice, world.now).await {
        Ok(view) => assert_eq!(view.progress.queued, 1),
        Err(_) => assert_eq!(world.frontier().jobs(world.now).await.unwrap(), []),
    }
}

pub async fn the_name_of_a_job_that_was_removed_is_free_again(mut world: World) {
    started(&mut world, Limits::default()).await;
    world.configure([Change::RemoveCollection("j".into())]).await;
    assert_eq!(world.frontier().jobs(world.now).await.unwrap(), []);
    let again = world.frontier().start_job(&job("j", Limits::default()), world.now).await;
    assert_eq!(again.expect("the same name again").progress.queued, 1);
}

/// Whoever starts a job wants it to run, whatever was disabled before.
pub async fn a_job_may_start_where_a_disabled_seed_is(mut world: World) {
    world.harvest("c", Order::Fifo, HOME).await;
    world.configure([Change::EnableSeed(HOME.into(), false)]).await;
    let told = world.frontier().start_job(&job("j", Limits::default()), world.now).await;
    // An error that says so is as good.
    if told.is_ok() {
        assert_eq!(world.lease(9).await.len(), 1, "the job runs");
    }
}

pub async fn a_job_may_start_where_a_seed_is(mut world: World) {
    world.harvest("c", Order::Fifo, HOME).await;
    world.start_seed(HOME).await;
    started(&mut world, Limits::default()).await;
    assert_eq!(the_job(&mut world).await.progress.queued, 1);
    assert_eq!(world.stats("c").await.queued, 1);
    assert_eq!(world.lease(9).await.len(), 2, "one entry in each collection");
    assert_eq!(world.start(Target::Collection("c".into())).await.len(), 1, "the seed is what it was");
}
