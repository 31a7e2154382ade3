//! Leases: extended, given back, run out.

use forager_core::order::Order;
use forager_core::scope::Profile;

use super::World;
use super::world::*;
use crate::entry::{State, Token};
use crate::moment::Moment;
use crate::verbs::{Event, LeaseChange, LeaseRequest, Outcome};

const HOME: &str = "https://a.example/";

async fn site(mut world: World) -> World {
    world.harvest("c", Order::Hierarchy, HOME).await;
    world.start_seed(HOME).await;
    world
}

/// Every page is fetched once.
async fn once(mut world: World) -> World {
    let once = |profile: &mut Profile| profile.length = Some(1);
    world.configure([planned("c"), profile("c", "c", once), seed(HOME, ["c"])]).await;
    world.start_seed(HOME).await;
    world
}

pub async fn a_lease_is_held_for_as_long_as_was_asked(world: World) {
    let mut world = site(world).await;
    let leased = world.ask(&LeaseRequest { hold: interval("90s"), ..up_to(1) }).await.leased.remove(0);
    assert_eq!(leased.until, world.later("90s"));
    world.pass("89s");
    assert_eq!(world.the_entry("c", HOME).await.state, State::Leased);
    world.pass("1s");
    assert_eq!(
        world.the_entry("c", HOME).await.state,
        State::Queued,
        "at the very end it is anybody's again"
    );
}

pub async fn a_lease_can_be_extended_from_now(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    world.pass("4m");
    let hold = interval("10m");
    let told = world.frontier().extend(&[leased.token], hold, world.now).await.unwrap();
    let until = world.later("10m");
    assert_eq!(told, [LeaseChange { token: leased.token, held: true, until: Some(until) }]);
    world.reopen();
    world.pass("9m");
    assert_eq!(world.the_entry("c", HOME).await.leased_until, Some(until));
    assert_ne!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Refused);
}

pub async fn a_lease_can_be_shortened_too(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    world.frontier().extend(&[leased.token], interval("1s"), world.now).await.unwrap();
    world.pass("1s");
    assert_eq!(world.lease(1).await.len(), 1);
}

pub async fn what_is_given_back_is_as_if_never_taken(world: World) {
    let mut world = site(world).await;
    let before = world.the_entry("c", HOME).await;
    let leased = world.lease_one().await;
    let told = world.frontier().release(&[leased.token], world.now).await.unwrap();
    assert_eq!(told, [LeaseChange { token: leased.token, held: true, until: None }]);
    world.reopen();
    assert_eq!(world.the_entry("c", HOME).await, before);
    assert_eq!(world.events().await, []);
    assert_ne!(world.lease_one().await.token, leased.token);
}

pub async fn what_is_given_back_does_not_shorten_the_delay(world: World) {
    let mut world = site(world.with(delay("10s"))).await;
    let leased = world.lease_one().await;
    world.frontier().release(&[leased.token], world.now).await.unwrap();
    assert_eq!(world.lease(1).await, [], "the host may have been asked already");
    world.pass("10s");
    assert_eq!(world.lease(1).await.len(), 1);
}

pub async fn tokens_that_are_not_held_are_refused_and_change_nothing(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/x"]).await;
    let leased = world.lease(2).await;
    let (ended, live) = (leased[0].token, leased[1].token);
    world.complete(ok(ended, "x")).await;
    let before =
        (world.all("c").await, world.stats("c").await, world.host("a.example").await, world.events().await);
    let never = Token(987_654_321);
    for token in [never, ended, Token(0)] {
        let refused = world.complete(ok(token, "other")).await;
        assert_eq!(
            (refused.token, refused.outcome, refused.changed, refused.due),
            (token, Outcome::Refused, false, None)
        );
        let change = LeaseChange { token, held: false, until: None };
        assert_eq!(world.frontier().extend(&[token], interval("1h"), world.now).await.unwrap(), [change]);
        assert_eq!(world.frontier().release(&[token], world.now).await.unwrap(), [change]);
    }
    let after =
        (world.all("c").await, world.stats("c").await, world.host("a.example").await, world.events().await);
    assert_eq!(after, before);
    // In a batch the others count all the same.
    let told = world.frontier().release(&[never, live], world.now).await.unwrap();
    assert_eq!([told[0].held, told[1].held], [false, true]);
}

pub async fn a_token_counts_once_in_a_batch(world: World) {
    let mut world = site(world).await;
    let token = world.lease_one().await.token;
    let told = world.frontier().complete(&[ok(token, "one"), ok(token, "two")], world.now).await.unwrap();
    assert_eq!([told[0].outcome, told[1].outcome], [Outcome::Again, Outcome::Refused]);
    assert_eq!(world.the_entry("c", HOME).await.record.fingerprint.as_deref(), Some("one"));
    assert_eq!(world.stats("c").await.tally.fetches, 1);
}

pub async fn a_lease_that_ran_out_is_refused_and_changes_nothing(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    world.pass_until(leased.until);
    let refused = world.complete(ok(leased.token, "x")).await;
    assert_eq!(refused.outcome, Outcome::Refused);
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((entry.state, entry.last_fetch, entry.record.fingerprint), (State::Queued, None, None));
    assert_eq!(world.stats("c").await.tally.fetches, 0);
    let told = world.frontier().extend(&[leased.token], interval("1h"), world.now).await.unwrap();
    assert!(!told[0].held);
}

pub async fn a_refused_report_leaves_the_lease_of_the_next_worker(world: World) {
    let mut world = site(world).await;
    let first = world.lease_one().await;
    world.pass_until(first.until);
    let second = world.lease_one().await;
    assert_eq!(world.complete(ok(first.token, "late")).await.outcome, Outcome::Refused);
    assert_eq!(world.the_entry("c", HOME).await.leased_until, Some(second.until));
    assert_eq!(world.complete(ok(second.token, "in time")).await.outcome, Outcome::Again);
    assert_eq!(world.the_entry("c", HOME).await.record.fingerprint.as_deref(), Some("in time"));
}

pub async fn a_lease_that_ran_out_counts_one_try(world: World) {
    let mut world = site(world).await;
    let due = world.the_entry("c", HOME).await.due;
    for times in 1..=3 {
        let (leased, from) = (world.lease_one().await, Moment::of(world.now));
        assert_eq!(leased.failures, times - 1);
        world.pass_until(leased.until);
        let entry = world.the_entry("c", HOME).await;
        assert_eq!((entry.state, entry.record.abandoned, entry.due), (State::Queued, times, due));
        let event = world.events().await.pop().unwrap();
        assert_eq!((event.event, event.subject.as_str()), (Event::Abandoned { times, from }, HOME));
        world.reopen();
    }
    let entry = world.the_entry("c", HOME).await;
    assert_eq!((entry.record.errors, entry.record.scans, entry.record.velocity), (0, 0, 0.5), "nothing else");
    world.fetch("x").await;
    assert_eq!(world.the_entry("c", HOME).await.record.abandoned, 0, "a report ends the row");
}

pub async fn every_call_takes_back_what_ran_out(world: World) {
    let mut world = site(world).await;
    let leased = world.lease_one().await;
    world.pass_until(leased.until);
    assert_eq!(world.stats("c").await.in_flight, 0);
    assert_eq!(world.host("a.example").await.in_flight, 0);
    world.counts_equal_a_scan("c").await;
}

pub async fn leases_that_run_out_are_taken_back_one_by_one(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/x", "https://a.example/y"]).await;
    let mut ends = Vec::new();
    for hold in ["3m", "1m", "2m"] {
        ends.push(world.ask(&LeaseRequest { hold: interval(hold), ..up_to(1) }).await.leased.remove(0));
    }
    for left in [2, 1, 0] {
        world.pass("1m");
        assert_eq!(world.stats("c").await.in_flight, left);
        world.reopen();
    }
    let told: Vec<String> = world.events().await.into_iter().map(|event| event.subject).collect();
    assert_eq!(told, [&*ends[1].url, &*ends[2].url, &*ends[0].url]);
}

pub async fn what_is_fetched_once_is_given_up_after_too_many_lost_leases(world: World) {
    let mut world = once(world.with(|settings| settings.retry.abandoned = 2)).await;
    for _ in 0..3 {
        let leased = world.lease_one().await;
        world.pass_until(leased.until);
    }
    assert_eq!(world.the_entry("c", HOME).await.state, State::Failed);
    assert_eq!(world.lease(1).await, []);
    let events = world.events().await;
    assert!(
        matches!(&events.last().unwrap().event, Event::Failed { result } if result.contains("abandoned")),
        "{events:?}"
    );
    world.counts_equal_a_scan("c").await;
}

pub async fn what_is_fetched_without_end_waits_longer_after_too_many_lost_leases(world: World) {
    let mut world = site(world.with(|settings| settings.retry.abandoned = 2)).await;
    for wait in [None, None, Some("1h"), Some("2h"), Some("4h")] {
        let leased = world.lease_one().await;
        world.pass_until(leased.until);
        let entry = world.the_entry("c", HOME).await;
        let want = wait.map_or(leased.due, |wait| world.later(wait));
        assert_eq!((entry.state, entry.due), (State::Queued, want), "{wait:?}");
        world.pass_until(entry.due.max(world.moment()));
    }
}

pub async fn a_long_absence_takes_back_every_lease(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/x"]).await;
    assert_eq!(world.lease(2).await.len(), 2);
    world.reopen();
    world.pass("100 days");
    assert_eq!(world.lease(2).await.len(), 2);
    assert_eq!(world.events().await.len(), 2);
}

pub async fn the_time_it_was_handed_out_is_told_when_it_is_lost(world: World) {
    let mut world = site(world).await;
    let (leased, from) = (world.lease_one().await, world.moment());
    world.pass("4m");
    world.frontier().extend(&[leased.token], interval("10m"), world.now).await.unwrap();
    world.reopen();
    world.pass("10m");
    let event = {
        world.stats("c").await; // any call takes back what ran out
        world.events().await.pop().unwrap()
    };
    assert_eq!((event.at, event.event), (world.moment(), Event::Abandoned { times: 1, from }));
    // When it was handed out this time, not the first.
    world.reclaim("c").await;
    let from = world.moment();
    world.lease_one().await;
    world.pass("1s");
    world.reclaim("c").await;
    let event = world.events().await.pop().unwrap();
    assert_eq!(event.event, Event::Abandoned { times: 2, from });
}

pub async fn a_collection_takes_back_all_its_leases(world: World) {
    let mut world = site(world).await;
    world.configure([planned("d"), profile("d", "d", |_| {}), seed("https://d.example/", ["d"])]).await;
    world.configure([unplanned("p")]).await;
    world.start_seed("https://d.example/").await;
    world.find("c", HOME, ["https://a.example/1", "https://a.example/2"]).await;
    world.discover(page("p", "", ["https://p.example/"])).await;
    let leased = world.lease(4).await;
    let [mine, others]: [Vec<_>; 2] =
        [true, false].map(|mine| leased.iter().filter(|leased| (leased.collection == "c") == mine).collect());
    assert_eq!(world.reclaim("c").await, mine.len() as u64);
    world.reopen();
    assert_eq!(world.stats("c").await.in_flight, 0);
    assert_eq!((mine.len() + others.len(), world.reclaim("c").await), (4, 0), "nothing is left to take back");
    for leased in mine {
        assert_eq!(world.the_entry("c", &leased.url).await.record.abandoned, 1, "it counts one try");
        assert_eq!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Refused);
        assert!(!world.frontier().release(&[leased.token], world.now).await.unwrap()[0].held);
    }
    for leased in others {
        assert_ne!(world.complete(ok(leased.token, "x")).await.outcome, Outcome::Refused, "{}", leased.url);
    }
    world.counts_equal_a_scan("c").await;
}

pub async fn what_is_taken_back_can_be_handed_out_at_once(world: World) {
    let mut world = site(world).await;
    let first = world.ask(&LeaseRequest { hold: interval("1000 days"), ..up_to(1) }).await.leased.remove(0);
    assert_eq!(world.reclaim("c").await, 1);
    let again = world.lease_one().await;
    assert_eq!((again.url.as_str(), again.failures), (HOME, 1));
    assert_ne!(again.token, first.token);
    assert_ne!(world.complete(ok(again.token, "x")).await.outcome, Outcome::Refused);
    assert_eq!(world.the_entry("c", HOME).await.record.abandoned, 0, "a report ends the row");
}

pub async fn what_is_taken_back_does_not_shorten_the_delay(world: World) {
    let mut world = site(world.with(delay("10s"))).await;
    world.lease_one().await;
    world.pass("1s");
    world.reclaim("c").await;
    assert_eq!(
        world.host("a.example").await.opens,
        Some(world.later("10s")),
        "it may have been fetched just now"
    );
}

pub async fn what_is_taken_back_too_often_is_given_up(world: World) {
    let mut world = once(world).await;
    for times in 1..=6 {
        world.lease_one().await;
        assert_eq!(world.reclaim("c").await, 1, "{times}");
    }
    assert_eq!(world.the_entry("c", HOME).await.state, State::Failed);
}

/// Those that have run out are taken back by any call, and are not counted again.
pub async fn what_has_run_out_is_not_counted_as_taken_back(world: World) {
    let mut world = site(world).await;
    world.find("c", HOME, ["https://a.example/1"]).await;
    let first = world.lease_one().await;
    world.pass("1m");
    world.lease_one().await;
    world.pass_until(first.until);
    assert_eq!(world.reclaim("c").await, 1);
    assert_eq!(world.events().await.len(), 2);
}

pub async fn only_a_collection_that_is_there_can_take_back(world: World) {
    let mut world = site(world).await;
    let error = world.frontier().reclaim("nowhere", world.now).await.unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
    assert_eq!(world.reclaim("c").await, 0);
}
