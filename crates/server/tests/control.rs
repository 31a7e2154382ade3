//! Calls that steer what is handed out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::*;
use forager_server::proto::log_level_params::Level;
use forager_server::proto::{
    Active, BlockQueueParams, CountUrlParams, CrawlLimitParams, DeleteCrawlMessage, Empty, GetParams,
    ListUrlParams, Local, LogLevelParams, Pagination, PurgeUrlParams, QueueDelayParams,
    QueueWithinCrawlParams, UrlStatusRequest,
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
    the_largest_numbers_are_kept_as_far_as_they_can_be,
    white_space_is_the_crawl_without_a_name,
    fields_of_later_releases_are_known,
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

async fn the_largest_numbers_are_kept_as_far_as_they_can_be(mut world: World) {
    const MOST: u32 = u32::MAX;
    const YEAR: u32 = 365 * 24 * 60 * 60;
    for key in ["held", "delayed", "limited"] {
        one_due(&mut world, key, "").await;
    }
    let hold = GetParams { delay_requestable: MOST, ..keyed("held", 1) };
    assert_eq!(world.get(hold).await, ["held/0"]);
    let (key, crawl_id) = ("delayed".to_owned(), String::new());
    let delay = QueueDelayParams { key, delay_requestable: MOST, crawl_id, local: false };
    world.client.set_delay(delay).await.unwrap();
    assert_eq!(world.get(keyed("delayed", 1)).await, ["delayed/0"]);
    let (key, crawl_id) = ("limited".to_owned(), String::new());
    world
        .client
        .set_crawl_limit(CrawlLimitParams { key, limit: MOST, crawl_id, local: false })
        .await
        .unwrap();
    world.good(vec![due(placed("limited/0", "limited", ""), 0u64)]).await;
    assert_eq!(world.get(keyed("limited", 1)).await, ["limited/1"]);
    world.pass(YEAR);
    assert_eq!(world.stats("", "held").await.in_process, 1, "held");
    assert_eq!(world.get(keyed("held", 9)).await.len(), 4, "the others");
    assert_eq!(world.get(keyed("delayed", 9)).await, [""; 0]);
    assert_eq!(world.get(keyed("limited", 9)).await.len(), 4);
}

/// In every call that names a crawl, apart from those that put and get.
async fn white_space_is_the_crawl_without_a_name(mut world: World) {
    const WHITE: &str = " \t ";
    let crawl_id = || WHITE.to_owned();
    let key = || "k".to_owned();
    one_due(&mut world, "k", "").await;
    assert_eq!(world.stats(WHITE, "k").await.crawl_id, "DEFAULT");
    let pagination = Pagination { crawl_id: crawl_id(), ..Pagination::default() };
    let queues = world.client.list_queues(pagination).await.unwrap().into_inner();
    assert_eq!((queues.values, queues.crawl_id.as_str()), (vec![key()], "DEFAULT"));
    let request = UrlStatusRequest { url: "k/0".into(), key: key(), crawl_id: crawl_id() };
    assert_eq!(known(world.status_of(request).await.unwrap()).0.crawl_id, "DEFAULT");
    let list = ListUrlParams { crawl_id: crawl_id(), ..ListUrlParams::default() };
    assert_eq!(world.list(list).await.len(), 5);
    let count = CountUrlParams { crawl_id: crawl_id(), ..CountUrlParams::default() };
    assert_eq!(world.client.count_ur_ls(count).await.unwrap().into_inner().value, 5);

    block(&mut world, "k", WHITE, u64::MAX).await;
    assert_eq!(world.get(keyed("k", 1)).await.len(), 0, "blocked");
    block(&mut world, "k", WHITE, 0).await;
    let limit = |limit| CrawlLimitParams { key: key(), limit, crawl_id: crawl_id(), local: false };
    world.client.set_crawl_limit(limit(1)).await.unwrap();
    world.good(vec![due(placed("k/4", "k", ""), 0u64)]).await;
    assert_eq!(world.get(keyed("k", 1)).await.len(), 0, "limited");
    world.client.set_crawl_limit(limit(0)).await.unwrap();
    let delay = QueueDelayParams { key: key(), delay_requestable: 900, crawl_id: crawl_id(), local: false };
    world.client.set_delay(delay).await.unwrap();
    assert_eq!(world.get(keyed("k", 1)).await.len(), 1);
    world.pass(60);
    assert_eq!(world.get(keyed("k", 1)).await.len(), 0, "delayed");

    let purge = PurgeUrlParams { key: "none".into(), crawl_id: crawl_id(), days: 0 };
    assert_eq!(world.client.purge_ur_ls(purge.clone()).await.unwrap().into_inner().value, 0);
    let purge = PurgeUrlParams { key: key(), ..purge };
    assert_eq!(world.client.purge_ur_ls(purge).await.unwrap().into_inner().value, 5);
    one_due(&mut world, "k", "").await;
    let queue = QueueWithinCrawlParams { key: key(), crawl_id: crawl_id(), local: false };
    assert_eq!(world.client.delete_queue(queue).await.unwrap().into_inner().value, 5);
    one_due(&mut world, "k", "").await;
    let crawl = DeleteCrawlMessage { value: crawl_id(), local: false };
    assert_eq!(world.client.delete_crawl(crawl).await.unwrap().into_inner().value, 5);
}

/// Those of release 2.6 in messages that there were before.
async fn fields_of_later_releases_are_known(mut world: World) {
    one_due(&mut world, "k", "").await;
    let created = u64::from(world.now());
    for local in [false, true] {
        let limit = CrawlLimitParams { key: "k".into(), limit: 1, crawl_id: String::new(), local };
        world.client.set_crawl_limit(limit).await.unwrap();
        let listed = world.listed(ListUrlParams { local, ..ListUrlParams::default() }).await;
        assert_eq!(listed.iter().filter(|item| item.creation_date == created).count(), 5, "{local}");
    }
    world.good(vec![due(placed("k/0", "k", ""), 0u64)]).await;
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0], "the limit holds");
}
