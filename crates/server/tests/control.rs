//! Calls that steer what is handed out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_server::proto::log_level_params::Level;
use forager_server::proto::{
    Active, BlockQueueParams, CrawlLimitParams, Empty, Local, LogLevelParams, QueueDelayParams,
};
use tonic::Code;

on_every_store![
    a_queue_is_blocked_up_to_and_with_a_second,
    a_block_is_lifted_by_a_time_that_is_over,
    what_is_set_for_no_queue_is_forgotten,
    the_delay_of_all_holds_for_queues_without_one,
    a_limit_counts_what_is_completed,
    a_limit_is_that_of_one_queue_and_can_be_raised,
    a_limit_for_no_queue_is_an_error,
    no_delay_is_a_delay_of_its_own,
    what_is_put_while_nothing_is_handed_out_waits,
    being_active_is_read_back,
    the_rest_answers,
];

async fn one_due(world: &mut World, key: &str, crawl: &str) {
    for n in 0..5 {
        world.good(vec![found(placed(&format!("{key}/{n}"), key, crawl))]).await;
    }
}

async fn block(world: &mut World, key: &str, crawl: &str, time: u64) {
    let params = BlockQueueParams { key: key.into(), time, crawl_id: crawl.into(), local: false };
    world.client.block_queue_until(params).await.unwrap();
}

async fn a_queue_is_blocked_up_to_and_with_a_second(mut world: World) {
    one_due(&mut world, "k", "").await;
    let until = u64::from(world.now()) + 10;
    block(&mut world, "k", "", until).await;
    for (seconds, want) in [(0, 0), (9, 0), (1, 0), (1, 1)] {
        world.pass(seconds);
        assert_eq!(world.get(keyed("k", 1)).await.len(), want, "{seconds} s later");
    }
    world.pass(60);
    block(&mut world, "k", "", u64::MAX).await;
    world.pass(1_000_000);
    assert_eq!(world.get(any(1, 1)).await.len(), 0);
}

async fn a_block_is_lifted_by_a_time_that_is_over(mut world: World) {
    one_due(&mut world, "k", "").await;
    for over in [0, 1, u64::from(START) - 1] {
        block(&mut world, "k", "", u64::from(START) + 1_000_000).await;
        assert_eq!(world.get(keyed("k", 1)).await.len(), 0, "{over}");
        block(&mut world, "k", "", over).await;
        assert_eq!(world.get(keyed("k", 1)).await.len(), 1, "{over}");
        world.pass(40);
    }
}

async fn what_is_set_for_no_queue_is_forgotten(mut world: World) {
    one_due(&mut world, "other", "").await;
    for crawl in ["", "unknown"] {
        for key in ["k", ""] {
            block(&mut world, key, crawl, u64::MAX).await;
        }
        let params = QueueDelayParams {
            key: "k".into(),
            delay_requestable: 900,
            crawl_id: crawl.into(),
            local: false,
        };
        world.client.set_delay(params).await.unwrap();
    }
    assert_eq!(world.stats("", "").await.number_of_queues, 1);
    for crawl in ["", "unknown"] {
        one_due(&mut world, "k", crawl).await;
        let params = || forager_server::proto::GetParams { key: "k".into(), ..of(crawl, 1, 1) };
        assert_eq!(world.get(params()).await.len(), 1, "{crawl:?}: not blocked");
        world.pass(2);
        assert_eq!(
            world.get(forager_server::proto::GetParams { max_urls_per_queue: 2, ..params() }).await.len(),
            2,
            "{crawl:?}: no delay"
        );
    }
    assert_eq!(world.get(keyed("other", 1)).await.len(), 1, "an empty key is no queue");
}

async fn the_delay_of_all_holds_for_queues_without_one(mut world: World) {
    let set = |key: &str, seconds| QueueDelayParams {
        key: key.into(),
        delay_requestable: seconds,
        crawl_id: "ignored".into(),
        local: false,
    };
    one_due(&mut world, "k", "").await;
    one_due(&mut world, "l", "other").await;
    for _ in 0..2 {
        world.client.set_delay(set("", 10)).await.unwrap();
    }
    assert_eq!(world.get(any(1, 0)).await.len(), 2);
    world.pass(9);
    assert_eq!(world.get(any(2, 0)).await.len(), 0);
    world.pass(2);
    assert_eq!(world.get(any(2, 0)).await.len(), 4);
}

async fn a_limit_counts_what_is_completed(mut world: World) {
    one_due(&mut world, "k", "").await;
    let set = |limit| CrawlLimitParams { key: "k".into(), limit, crawl_id: String::new(), local: false };
    world.client.set_crawl_limit(set(2)).await.unwrap();
    let later = world.now() + 100_000;
    world.good(vec![due(placed("k/0", "k", ""), 0u64), due(placed("k/1", "k", ""), later)]).await;
    assert_eq!(world.get(keyed("k", 1)).await, ["k/2"], "one is completed; what comes again does not count");
    world.good(vec![due(placed("k/2", "k", ""), 0u64)]).await;
    world.pass(60);
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0]);
    assert_eq!(world.get(any(1, 1)).await, [""; 0]);
    world.good(vec![found(placed("k/9", "k", ""))]).await;
    world.client.set_crawl_limit(set(0)).await.unwrap();
    assert_eq!(world.get(keyed("k", 1)).await, ["k/3"], "no limit any more");
}

async fn a_limit_is_that_of_one_queue_and_can_be_raised(mut world: World) {
    let of_k = |crawl: &str| forager_server::proto::GetParams { key: "k".into(), ..of(crawl, 1, 1) };
    for crawl in ["a", "b"] {
        one_due(&mut world, "k", crawl).await;
        one_due(&mut world, "l", crawl).await;
    }
    // The limit, how many are completed by then, and whether the queue is served.
    for (limit, completed, want) in [(1, 0, 1), (1, 1, 0), (2, 1, 1), (2, 2, 0), (1, 2, 0), (3, 2, 1)] {
        let params = CrawlLimitParams { key: "k".into(), limit, crawl_id: "a".into(), local: false };
        world.client.set_crawl_limit(params).await.unwrap();
        for n in 0..completed {
            world.good(vec![due(placed(&format!("k/{n}"), "k", "a"), 0u64)]).await;
        }
        world.pass(60);
        assert_eq!(world.get(of_k("a")).await.len(), want, "{completed} of {limit}");
        assert_eq!(world.get(of_k("b")).await.len(), 1, "that of another crawl");
    }
    assert_eq!(world.get(of("a", 1, 0)).await.len(), 1, "nor is there one for the other queue");
}

async fn no_delay_is_a_delay_of_its_own(mut world: World) {
    one_due(&mut world, "k", "").await;
    let set = |key: &str, seconds| QueueDelayParams {
        key: key.into(),
        delay_requestable: seconds,
        ..QueueDelayParams::default()
    };
    world.client.set_delay(set("k", 0)).await.unwrap();
    world.client.set_delay(set("", 900)).await.unwrap();
    assert_eq!(world.get(keyed("k", 1)).await.len(), 1);
    assert_eq!(world.get(keyed("k", 2)).await.len(), 2, "at once");
}

async fn what_is_put_while_nothing_is_handed_out_waits(mut world: World) {
    world.client.set_active(Active { state: false, local: false }).await.unwrap();
    one_due(&mut world, "k", "").await;
    for params in [any(1, 1), keyed("k", 1)] {
        assert_eq!(world.get(params).await, [""; 0]);
    }
    assert_eq!(world.stats("", "k").await.size, 5);
    world.client.set_active(Active { state: true, local: false }).await.unwrap();
    assert_eq!(world.get(keyed("k", 1)).await.len(), 1);
}

async fn a_limit_for_no_queue_is_an_error(mut world: World) {
    one_due(&mut world, "k", "").await;
    for (key, crawl) in [("none", ""), ("k", "none"), ("", "")] {
        let params = CrawlLimitParams { key: key.into(), limit: 1, crawl_id: crawl.into(), local: true };
        let error = world.client.set_crawl_limit(params).await.unwrap_err();
        assert_eq!(error.code(), Code::Unknown, "{key:?} of {crawl:?}");
    }
}

async fn being_active_is_read_back(mut world: World) {
    for state in [true, false, false, true] {
        world.client.set_active(Active { state, local: false }).await.unwrap();
        let told = world.client.get_active(Local { local: true }).await.unwrap().into_inner();
        assert_eq!(told.state, state);
    }
}

async fn the_rest_answers(mut world: World) {
    assert!(world.client.get_active(Local::default()).await.unwrap().into_inner().state, "at first");
    let nodes = world.client.list_nodes(Empty {}).await.unwrap().into_inner();
    assert_eq!(nodes.values, ["localhost:7071"]);
    let level = LogLevelParams { package: "crawlercommons".into(), level: Level::Debug.into(), local: false };
    world.client.set_log_level(level).await.unwrap();
}
