//! Calls that remove: crawls, queues, and what is old.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use forager_server::proto::ack_message::Status;
use forager_server::proto::{
    BlockQueueParams, CrawlLimitParams, DeleteCrawlMessage, ListUrlParams, Local, PurgeUrlParams,
    QueueDelayParams, QueueWithinCrawlParams,
};
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use tonic::Code;

const DAY: u32 = 24 * 60 * 60;

on_every_store![
    a_queue_goes_with_all_that_it_had,
    a_crawl_goes_with_all_that_it_had,
    what_is_not_there_has_nothing_to_remove,
    names_that_begin_alike_are_told_apart,
    what_is_put_during_deletions_is_there_or_was_counted,
    a_crawl_that_was_removed_can_be_filled_again_by_many_at_once,
    nothing_of_what_was_set_outlives_a_queue,
    what_is_old_is_purged_whatever_has_become_of_it,
    purging_keeps_to_its_queue_and_crawl,
    no_days_are_everything,
    a_url_that_is_made_anew_during_a_purge_stays,
];

async fn delete_queue(world: &mut World, key: &str, crawl: &str) -> u64 {
    let params = QueueWithinCrawlParams { key: key.into(), crawl_id: crawl.into(), local: false };
    world.client.delete_queue(params).await.unwrap().into_inner().value
}

async fn delete_crawl(world: &mut World, crawl: &str) -> u64 {
    let message = DeleteCrawlMessage { value: crawl.into(), local: false };
    world.client.delete_crawl(message).await.unwrap().into_inner().value
}

async fn purge(world: &mut World, key: &str, crawl: &str, days: u32) -> u64 {
    let params = PurgeUrlParams { key: key.into(), crawl_id: crawl.into(), days };
    world.client.purge_ur_ls(params).await.unwrap().into_inner().value
}

async fn crawls(world: &mut World) -> Vec<String> {
    sorted(world.client.list_crawls(Local::default()).await.unwrap().into_inner().values)
}

/// Three URLs in a queue, one of them completed and one handed out.
async fn three(world: &mut World, key: &str, crawl: &str) {
    let url = |n: u32| placed(&format!("{key}/{n}"), key, crawl);
    world.good(vec![found(url(0)), found(url(1)), due(url(2), 0u64)]).await;
    let params = forager_server::proto::GetParams { key: key.into(), ..of(crawl, 1, 1) };
    assert_eq!(world.get(params).await.len(), 1);
}

/// Whatever was acknowledged is there in the end, or a deletion has counted it: nothing is lost, or half there.
async fn what_is_put_during_deletions_is_there_or_was_counted(mut world: World) {
    for of_crawl in [false, true] {
        let crawl = if of_crawl { "crawl" } else { "queue" };
        let mut client = world.client.clone();
        let (mut taken, mut removed) = (0, 0);
        let is_over = AtomicBool::new(false);
        let puts = async {
            for round in 0..30 {
                let items = (0..20).map(|n| found(placed(&format!("k/{round}/{n}"), "k", crawl)));
                let acks = world.put(items.collect()).await;
                taken += acks.iter().filter(|ack| **ack == Status::Ok).count() as u64;
            }
            is_over.store(true, Ordering::SeqCst);
        };
        let deletions = async {
            while !is_over.load(Ordering::SeqCst) {
                let answer = if of_crawl {
                    client.delete_crawl(DeleteCrawlMessage { value: crawl.into(), local: false }).await
                } else {
                    let (key, crawl_id) = ("k".into(), crawl.into());
                    client.delete_queue(QueueWithinCrawlParams { key, crawl_id, local: false }).await
                };
                removed += answer.unwrap().into_inner().value;
            }
        };
        tokio::join!(puts, deletions);
        assert!(removed > 0, "{crawl}: they met");
        let after: Vec<_> = (0..5).map(|n| found(placed(&format!("k/after/{n}"), "k", crawl))).collect();
        world.good(after).await;
        let left = world.stats(crawl, "k").await.size;
        assert_eq!(removed + left, taken + 5, "{crawl}: {removed} were removed");
        let all = ListUrlParams { crawl_id: crawl.into(), size: 1000, ..ListUrlParams::default() };
        let listed = world.list(all).await;
        assert_eq!(listed.len() as u64, left, "{crawl}");
        assert!((0..5).all(|n| listed.contains(&format!("k/after/{n}"))), "{crawl}: {listed:?}");
        let handed_out = world.get(of(crawl, 1000, 0)).await;
        assert_eq!(sorted(handed_out), sorted(listed), "{crawl}");
    }
}

/// Streams that all find out at the same time that a crawl is gone, through a server or behind its back, make it
/// again: what they put is as new as the crawl.
async fn a_crawl_that_was_removed_can_be_filled_again_by_many_at_once(mut world: World) {
    const STREAMS: usize = 8;
    for round in 0..10 {
        let by_another = round % 2 == 0;
        let putting = (0..STREAMS).map(|stream| {
            let mut client = world.client.clone();
            async move {
                let items = (0..5).map(move |n| found(placed(&format!("k/{stream}/{n}"), "k", "crawl")));
                let acks = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
                acks.map(|ack| ack.unwrap().status()).collect::<Vec<_>>().await
            }
        });
        let acks = join_all(putting).await.concat();
        assert_eq!(acks, [Status::Ok; 5 * STREAMS], "round {round}");
        let removed = if by_another {
            let now = Timestamp::from_second(world.now().into()).unwrap();
            world.frontier.remove("crawl", None, now).await.unwrap()
        } else {
            delete_crawl(&mut world, "crawl").await
        };
        assert_eq!(removed, 5 * STREAMS as u64, "round {round}");
    }
}

async fn a_queue_goes_with_all_that_it_had(mut world: World) {
    three(&mut world, "a", "").await;
    three(&mut world, "b", "").await;
    assert_eq!(delete_queue(&mut world, "a", "").await, 3);
    let (gone, all) = (world.stats("", "a").await, world.stats("", "").await);
    assert_eq!((gone.size, gone.in_process, gone.number_of_queues), (0, 0, 0));
    assert_eq!((all.size, all.in_process, all.number_of_queues, all.counts["completed"]), (2, 1, 1, 1));
    assert_eq!(delete_queue(&mut world, "a", "").await, 0, "once");
    assert_eq!(world.put(vec![found(placed("a/2", "a", ""))]).await, [Status::Ok], "it is new again");
}

async fn a_crawl_goes_with_all_that_it_had(mut world: World) {
    three(&mut world, "a", "BESPOKE").await;
    three(&mut world, "b", "BESPOKE").await;
    three(&mut world, "a", "").await;
    assert_eq!(delete_crawl(&mut world, "BESPOKE").await, 6);
    assert_eq!(crawls(&mut world).await, ["DEFAULT"]);
    let gone = world.stats("BESPOKE", "").await;
    assert_eq!((gone.size, gone.number_of_queues, gone.crawl_id.as_str()), (0, 0, "BESPOKE"));
    assert_eq!(delete_crawl(&mut world, "").await, 3, "the one without a name");
    assert_eq!(crawls(&mut world).await, [""; 0]);
    three(&mut world, "a", "BESPOKE").await;
    assert_eq!(crawls(&mut world).await, ["BESPOKE"], "it can come again");
}

async fn what_is_not_there_has_nothing_to_remove(mut world: World) {
    three(&mut world, "a", "").await;
    assert_eq!(delete_queue(&mut world, "none", "").await, 0);
    assert_eq!(delete_queue(&mut world, "a", "none").await, 0);
    assert_eq!(delete_queue(&mut world, "", "").await, 0);
    assert_eq!(delete_crawl(&mut world, "none").await, 0);
    assert_eq!(purge(&mut world, "", "none", 0).await, 0);
    assert_eq!(purge(&mut world, "none", "", 0).await, 0);
    assert_eq!(world.stats("", "").await.size, 2);
}

async fn names_that_begin_alike_are_told_apart(mut world: World) {
    let names = ["crawl1", "crawl10", "a_b", "aZ", "ab", "a%5Fb"];
    for name in names {
        three(&mut world, "my_host.example", name).await;
    }
    for (left, name) in (0..names.len()).rev().zip(names) {
        assert_eq!(delete_crawl(&mut world, name).await, 3, "{name}");
        assert_eq!(crawls(&mut world).await.len(), left, "{name}");
    }
}

/// Clients remove a crawl and fill it again within the same second.
async fn nothing_of_what_was_set_outlives_a_queue(mut world: World) {
    for whole in [true, false] {
        three(&mut world, "k", "").await;
        let block = BlockQueueParams { key: "k".into(), time: u64::MAX, ..BlockQueueParams::default() };
        world.client.block_queue_until(block).await.unwrap();
        let delay =
            QueueDelayParams { key: "k".into(), delay_requestable: 900, ..QueueDelayParams::default() };
        world.client.set_delay(delay).await.unwrap();
        let limit = CrawlLimitParams { key: "k".into(), limit: 1, ..CrawlLimitParams::default() };
        world.client.set_crawl_limit(limit).await.unwrap();
        if whole {
            delete_crawl(&mut world, "").await;
        } else {
            delete_queue(&mut world, "k", "").await;
        }
        world.good(vec![found(placed("k/0", "k", "")), found(placed("k/1", "k", ""))]).await;
        assert_eq!(world.get(keyed("k", 1)).await.len(), 1, "served at once");
        world.pass(2);
        world.good(vec![due(placed("k/9", "k", ""), 0u64)]).await;
        assert_eq!(world.get(keyed("k", 2)).await.len(), 1, "and again, though one is completed");
        delete_crawl(&mut world, "").await;
    }
}

async fn what_is_old_is_purged_whatever_has_become_of_it(mut world: World) {
    three(&mut world, "k", "").await;
    world.pass(10 * DAY);
    world.good(vec![found(placed("young", "k", "")), due(placed("k/1", "k", ""), 0u64)]).await;
    assert_eq!(purge(&mut world, "", "", u32::MAX).await, 0);
    assert_eq!(purge(&mut world, "", "", 20_000).await, 0);
    assert_eq!(purge(&mut world, "", "", 11).await, 0);
    assert_eq!(purge(&mut world, "", "", 10).await, 0, "as old as that is not older");
    assert_eq!(purge(&mut world, "", "", 9).await, 3);
    let stats = world.stats("", "").await;
    assert_eq!((stats.size, stats.counts["completed"], stats.number_of_queues), (1, 0, 1));
    assert_eq!(world.put(vec![found(placed("k/1", "k", ""))]).await, [Status::Ok], "it is new again");
}

async fn purging_keeps_to_its_queue_and_crawl(mut world: World) {
    for (key, crawl) in [("a", ""), ("b", ""), ("a", "other")] {
        three(&mut world, key, crawl).await;
    }
    world.pass(2 * DAY);
    assert_eq!(purge(&mut world, "a", "", 1).await, 3);
    assert_eq!(purge(&mut world, "", "", 1).await, 3);
    assert_eq!(world.stats("other", "").await.size, 2);
}

async fn no_days_are_everything(mut world: World) {
    let items = (0..2500).map(|n| found(placed(&format!("u{n}"), &format!("k{}", n % 10), "")));
    world.good(items.collect()).await;
    assert_eq!(purge(&mut world, "", "", 0).await, 2500);
    let stats = world.stats("", "").await;
    assert_eq!((stats.size, stats.counts["completed"], stats.counts["active_queues"]), (0, 0, 0));
    assert_eq!(stats.number_of_queues, 10, "the queues stay");
    assert_eq!(crawls(&mut world).await, ["DEFAULT"], "and so does the crawl");
    let request =
        forager_server::proto::UrlStatusRequest { url: "u0".into(), key: "k0".into(), ..Default::default() };
    assert_eq!(world.status_of(request).await, Err(Code::NotFound));
}

/// What is put while a purge goes on was there before, and goes with it, or is new, and stays: also where all of it was
/// created in the same second.
async fn a_url_that_is_made_anew_during_a_purge_stays(mut world: World) {
    for (crawl, days) in [("old", 1), ("young", 0)] {
        let item = |n: u32| found(placed(&format!("u{n}"), &format!("k{}", n % 10), crawl));
        world.good((0..5500).map(item).collect()).await;
        world.pass(2 * DAY * days);
        let mut client = world.client.clone();
        let params = PurgeUrlParams { key: String::new(), crawl_id: crawl.into(), days };
        let is_over = AtomicBool::new(false);
        let mut made = 0;
        // The first ones to go, so that they are there again when the purge comes to the last.
        let puts = async {
            while !is_over.load(Ordering::SeqCst) {
                let acks = world.put((0..20).map(item).collect()).await;
                made += acks.iter().filter(|ack| **ack == Status::Ok).count() as u64;
            }
        };
        let purging = async {
            let purged = client.purge_ur_ls(params).await.unwrap().into_inner().value;
            is_over.store(true, Ordering::SeqCst);
            purged
        };
        let ((), purged) = tokio::join!(puts, purging);
        assert_eq!(purged, 5500, "{crawl}: all that there were, and none of the others");
        let all = ListUrlParams { crawl_id: crawl.into(), size: 5000, ..ListUrlParams::default() };
        let (size, listed) = (world.stats(crawl, "").await.size, world.list(all).await.len() as u64);
        assert_eq!((size, listed), (made, made), "{crawl}");
    }
}
