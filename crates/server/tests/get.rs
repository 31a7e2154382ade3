//! `GetURLs`: what is handed out, to whom, and for how long.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::*;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{
    Active, BlockQueueParams, GetParams, QueueDelayParams, QueueWithinCrawlParams, UrlInfo, UrlItem,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tonic::Streaming;
use tonic::transport::Channel;

/// For how long something may take that should not take long.
const PATIENCE: Duration = Duration::from_secs(30);

on_every_store![
    an_empty_queue_answers_at_once,
    the_oldest_date_goes_first,
    of_equal_dates_the_first_to_come_goes_first,
    what_is_not_due_is_not_handed_out,
    what_is_handed_out_is_held_and_then_free,
    it_is_held_for_half_a_minute_unless_told,
    limits_hold_for_queues_and_for_urls_of_each,
    no_limit_is_all_that_is_due,
    a_queue_rests_between_two_turns,
    a_queue_that_gave_nothing_need_not_rest,
    queues_take_turns,
    crawls_are_told_apart,
    a_queue_needs_its_crawl,
    queues_with_as_many_under_way_as_are_asked_for_are_passed_over,
    what_comes_back_is_what_was_put,
    nothing_is_handed_out_while_inactive,
    two_who_ask_at_once_get_different_urls,
    what_is_set_during_a_hand_out_leaves_it_as_it_is,
    a_queue_that_is_deleted_during_a_hand_out_stays_deleted,
    a_hand_out_whose_connection_breaks_was_the_turn_of_its_queues,
];

fn many(key: &str, count: u32) -> Vec<UrlItem> {
    (0..count).map(|n| found(placed(&format!("{key}/{n}"), key, ""))).collect()
}

async fn an_empty_queue_answers_at_once(mut world: World) {
    for params in [any(0, 0), explicitly_any(1, 1), of("", 1, 1), of("nobody's", 1, 1), keyed("none", 1)] {
        assert_eq!(world.get(params.clone()).await, [""; 0], "{params:?}");
    }
    world.good(vec![due(placed("done", "k", ""), 0u64)]).await;
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0], "never to be fetched");
}

async fn the_oldest_date_goes_first(mut world: World) {
    let now = world.now();
    let dates = [("b", now), ("a", now - 10_000), ("old", 1), ("c", now - 1)];
    world.good(dates.map(|(url, date)| due(placed(url, "k", ""), date)).to_vec()).await;
    assert_eq!(world.get(keyed("k", 2)).await, ["old", "a"]);
    world.pass(2);
    assert_eq!(world.get(keyed("k", 3)).await, ["c", "b"], "those that are held are passed over");
}

async fn of_equal_dates_the_first_to_come_goes_first(mut world: World) {
    let now = world.now();
    for (url, date) in [("z", now), ("b", now - 5), ("m", now), ("a", now), ("c", now - 5)] {
        world.good(vec![due(placed(url, "k", ""), date)]).await;
    }
    assert_eq!(world.get(keyed("k", 9)).await, ["b", "c", "z", "m", "a"]);
    world.pass(31);
    // Who is told the same date once more keeps the place.
    world.good(vec![due(placed("z", "k", ""), now)]).await;
    assert_eq!(world.get(keyed("k", 9)).await, ["b", "c", "z", "m", "a"], "and again");
}

async fn what_is_not_due_is_not_handed_out(mut world: World) {
    let now = world.now();
    world.good(vec![due(placed("later", "k", ""), now + 100), due(placed("now", "k", ""), now)]).await;
    assert_eq!(world.get(keyed("k", 9)).await, ["now"]);
    world.pass(99);
    assert_eq!(world.get(keyed("k", 9)).await, ["now"]);
    world.pass(2);
    assert_eq!(world.get(keyed("k", 9)).await, ["later"]);
}

async fn what_is_handed_out_is_held_and_then_free(mut world: World) {
    world.good(many("k", 1)).await;
    let two_seconds = GetParams { delay_requestable: 2, ..keyed("k", 1) };
    assert_eq!(world.get(two_seconds.clone()).await, ["k/0"]);
    let stats = world.stats("", "k").await;
    assert_eq!((stats.size, stats.in_process, stats.number_of_queues), (1, 1, 1), "it stays in the queue");
    assert_eq!(world.get(two_seconds.clone()).await, [""; 0]);
    world.pass(2);
    assert_eq!(world.stats("", "k").await.in_process, 0);
    assert_eq!(world.get(two_seconds).await, ["k/0"]);
}

async fn it_is_held_for_half_a_minute_unless_told(mut world: World) {
    world.good(many("k", 1)).await;
    assert_eq!(world.get(keyed("k", 1)).await, ["k/0"]);
    world.pass(29);
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0]);
    world.pass(1);
    assert_eq!(world.get(keyed("k", 1)).await, ["k/0"]);
}

async fn limits_hold_for_queues_and_for_urls_of_each(mut world: World) {
    for key in ["a", "b", "c"] {
        world.good(many(key, 5)).await;
    }
    let got = world.infos(any(2, 2)).await;
    let count = |key: &str| got.iter().filter(|info| info.key == key).count();
    let mut counts = ["a", "b", "c"].map(count);
    counts.sort_unstable();
    assert_eq!(counts, [0, 2, 2]);
}

async fn no_limit_is_all_that_is_due(mut world: World) {
    for key in ["a", "b", "c"] {
        world.good(many(key, 50)).await;
    }
    assert_eq!(world.get(any(0, 0)).await.len(), 150);
}

async fn a_queue_rests_between_two_turns(mut world: World) {
    let set = |key: &str, seconds| QueueDelayParams {
        key: key.into(),
        delay_requestable: seconds,
        ..QueueDelayParams::default()
    };
    world.good(many("k", 9)).await;
    assert_eq!(world.get(keyed("k", 1)).await.len(), 1);
    assert_eq!(world.get(keyed("k", 5)).await.len(), 0, "a second, where nothing else is said");
    assert_eq!(world.get(any(5, 5)).await.len(), 0, "nor in turn");
    world.pass(2);
    assert_eq!(world.get(keyed("k", 5)).await.len(), 5);
    world.client.set_delay(set("k", 300)).await.unwrap();
    world.pass(299);
    assert_eq!(world.get(keyed("k", 9)).await.len(), 0, "it holds for the last turn too");
    world.pass(2);
    assert_eq!(world.get(keyed("k", 9)).await.len(), 9);
    world.client.set_delay(set("k", 0)).await.unwrap();
    world.pass(31);
    world.client.set_delay(set("", 60)).await.unwrap();
    assert_eq!(world.get(keyed("k", 1)).await.len(), 1, "its own goes before that of all");
}

async fn a_queue_that_gave_nothing_need_not_rest(mut world: World) {
    let later = world.now() + 1;
    world.good(vec![due(placed("later", "k", ""), later)]).await;
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0]);
    world.pass(1);
    assert_eq!(world.get(keyed("k", 1)).await, ["later"]);
}

async fn queues_take_turns(mut world: World) {
    for key in ["a", "b", "c"] {
        world.good(many(key, 5)).await;
    }
    let mut turns = Vec::new();
    for _ in 0..6 {
        let one = GetParams { delay_requestable: 1, ..any(1, 1) };
        turns.extend(world.infos(one).await.into_iter().map(|info| info.key));
        world.pass(2);
    }
    let (first, second) = turns.split_at(3);
    assert_eq!(sorted(first.to_vec()), ["a", "b", "c"]);
    assert_eq!(first, second);
}

async fn crawls_are_told_apart(mut world: World) {
    let items = [("one", "A"), ("two", "B"), ("three", "")];
    world.good(items.map(|(key, crawl)| found(placed("u", key, crawl))).to_vec()).await;
    let keys = |infos: Vec<forager_server::proto::UrlInfo>| {
        sorted(infos.into_iter().map(|info| format!("{} {}", info.crawl_id, info.key)).collect())
    };
    let cases: [(&str, GetParams, &[&str]); 4] = [
        ("one crawl", of("A", 0, 0), &["A one"]),
        ("the one without a name", of("", 0, 0), &["DEFAULT three"]),
        ("any", explicitly_any(0, 0), &["A one", "B two", "DEFAULT three"]),
        ("any, by saying nothing", any(0, 0), &["A one", "B two", "DEFAULT three"]),
    ];
    for (name, params, want) in cases {
        assert_eq!(keys(world.infos(params).await), want, "{name}");
        world.pass(31);
    }
}

async fn a_queue_needs_its_crawl(mut world: World) {
    world.good(vec![found(placed("u", "k", "")), found(placed("v", "k", "A"))]).await;
    let of_no_crawl = GetParams { key: "k".into(), ..any(1, 1) };
    assert_eq!(world.get(of_no_crawl).await, [""; 0]);
    let of_any_crawl = GetParams { key: "k".into(), ..explicitly_any(1, 1) };
    assert_eq!(world.get(of_any_crawl).await, [""; 0]);
    assert_eq!(world.get(GetParams { key: "k".into(), ..of("A", 1, 1) }).await, ["v"]);
    assert_eq!(world.get(keyed("k", 1)).await, ["u"]);
}

async fn queues_with_as_many_under_way_as_are_asked_for_are_passed_over(mut world: World) {
    world.good(many("k", 9)).await;
    assert_eq!(world.get(keyed("k", 2)).await.len(), 2);
    world.pass(2);
    assert_eq!(world.get(keyed("k", 2)).await.len(), 0);
    assert_eq!(world.get(keyed("k", 3)).await.len(), 3, "one more may be under way");
    world.pass(2);
    assert_eq!(world.get(keyed("k", 0)).await.len(), 4, "all the others");
}

async fn what_comes_back_is_what_was_put(mut world: World) {
    let given = with_metadata(placed("http://a.example/?x", "my_key", "my_crawl"), &[("m", &["1", "2"])]);
    world.good(vec![found(given.clone())]).await;
    assert_eq!(world.infos(any(1, 1)).await, [given]);
}

async fn nothing_is_handed_out_while_inactive(mut world: World) {
    world.client.set_active(Active { state: false, local: false }).await.unwrap();
    world.good(many("k", 1)).await;
    assert_eq!(world.get(any(1, 1)).await, [""; 0]);
    assert_eq!(world.get(keyed("k", 1)).await, [""; 0]);
    world.client.set_active(Active { state: true, local: true }).await.unwrap();
    assert_eq!(world.get(any(1, 1)).await, ["k/0"]);
}

/// More than the transport takes at once, so that the last ones are still here.
#[tokio::test]
async fn what_a_client_did_not_take_is_free_when_it_leaves() {
    let mut world = World::in_a_folder().await;
    let long = "x".repeat(2000);
    let items = (0..3000).map(|n| found(placed(&format!("{n} {long}"), &format!("k{n}"), "")));
    world.good(items.collect()).await;
    let mut answers = world.client.get_ur_ls(any(1, 0)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    let held = world.stats("", "").await.in_process;
    assert_eq!(held, 3000);
    drop(answers);
    while world.stats("", "").await.in_process == held {
        tokio::task::yield_now().await;
    }
    assert!(world.stats("", "").await.in_process > 0, "what was on its way counts as taken");
    assert!(world.get(any(1, 0)).await.is_empty(), "their queues rest all the same");
    world.pass(2);
    assert!(!world.get(any(1, 0)).await.is_empty());
    // Much is left to write, and its folder goes with this test.
    world.stop();
    world.ended().await;
}

/// More queues than a call would look at otherwise have all under way that they may have.
async fn a_queue_behind_many_busy_ones_is_served(mut world: World) {
    for number in 0..11 {
        let items = (0..100).flat_map(|queue| many(&format!("k{number}-{queue}"), 2));
        world.good(items.collect()).await;
    }
    assert_eq!(world.get(any(1, 0)).await.len(), 1100);
    world.pass(2);
    world.good(vec![found(placed("free", "free", ""))]).await;
    assert_eq!(world.get(any(1, 1)).await, ["free"]);
    assert_eq!(world.get(any(2, 1)).await.len(), 1, "who wants more of a queue finds them in their places");
}

// The model looks at everything for each of them.
#[tokio::test]
async fn a_queue_behind_many_busy_ones_is_served_from_a_folder() {
    a_queue_behind_many_busy_ones_is_served(World::in_a_folder().await).await;
}

#[tokio::test]
async fn a_queue_behind_many_busy_ones_is_served_from_a_database() {
    a_queue_behind_many_busy_ones_is_served(World::in_a_database().await).await;
}

async fn two_who_ask_at_once_get_different_urls(mut world: World) {
    let items = (0..40).flat_map(|queue| many(&format!("k{queue}"), 2));
    world.good(items.collect()).await;
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let mut client = world.client.clone();
            tokio::spawn(async move {
                let mut answers = client.get_ur_ls(any(1, 5)).await.unwrap().into_inner();
                let mut got = Vec::new();
                while let Some(info) = answers.message().await.unwrap() {
                    got.push((info.key, info.url));
                }
                got
            })
        })
        .collect();
    let mut got = Vec::new();
    for asked in asking {
        got.extend(asked.await.unwrap());
    }
    let count = got.len();
    got.sort();
    got.dedup_by(|one, other| one.0 == other.0);
    assert_eq!(got.len(), count, "each queue is served once, for it rests then");
    assert_eq!(world.stats("", "").await.in_process as usize, count);
}

/// Queues `k0` to `k399` with two URLs each. One of each are 4 MB, more than the transport takes at once.
async fn fill(world: &mut World) {
    let long = "x".repeat(10_000);
    for queue in 0..400 {
        let urls = (0..2).map(|n| found(placed(&format!("{n} {long}"), &format!("k{queue}"), "")));
        world.good(urls.collect()).await;
    }
}

/// One URL of each queue, on its way to a client that has read no more than one.
async fn on_the_way(client: &mut UrlFrontierClient<Channel>) -> Streaming<UrlInfo> {
    let mut answers = client.get_ur_ls(any(1, 0)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap();
    answers
}

async fn under_way(world: &mut World) -> Streaming<UrlInfo> {
    fill(world).await;
    on_the_way(&mut world.client).await
}

async fn rest_of(mut answers: Streaming<UrlInfo>) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(info) = answers.message().await.unwrap() {
        keys.push(info.key);
    }
    keys
}

async fn what_is_set_during_a_hand_out_leaves_it_as_it_is(mut world: World) {
    let answers = under_way(&mut world).await;
    let block = BlockQueueParams { key: "k7".into(), time: u64::MAX, ..BlockQueueParams::default() };
    world.client.block_queue_until(block).await.unwrap();
    for (key, delay_requestable) in [("k8", 900), ("k9", 1)] {
        let delay = QueueDelayParams { key: key.into(), delay_requestable, ..QueueDelayParams::default() };
        world.client.set_delay(delay).await.unwrap();
    }
    for key in ["k7", "k8", "k9"] {
        assert_eq!(world.get(keyed(key, 2)).await, [""; 0], "{key} has had its turn");
    }
    assert_eq!(world.stats("", "").await.in_process, 400);
    assert_eq!(rest_of(answers).await.len(), 399, "what was handed out before comes all the same");
    world.pass(2);
    for (key, want) in [("k7", 0), ("k8", 0), ("k9", 1)] {
        assert_eq!(world.get(keyed(key, 2)).await.len(), want, "{key}");
    }
}

async fn a_queue_that_is_deleted_during_a_hand_out_stays_deleted(mut world: World) {
    let answers = under_way(&mut world).await;
    let queue = QueueWithinCrawlParams { key: "k399".into(), ..QueueWithinCrawlParams::default() };
    assert_eq!(world.client.delete_queue(queue).await.unwrap().into_inner().value, 2);
    rest_of(answers).await;
    let (gone, all) = (world.stats("", "k399").await, world.stats("", "").await);
    assert_eq!((gone.size, gone.in_process, gone.number_of_queues), (0, 0, 0));
    assert_eq!((all.size, all.in_process, all.number_of_queues), (798, 399, 399));
    world.good(vec![found(placed("new", "k399", ""))]).await;
    assert_eq!(world.get(keyed("k399", 1)).await, ["new"], "made anew, it is served at once");
}

/// How a connection breaks.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// The other side is gone, and what is still sent to it comes back as an error.
    Reset,
    /// What comes in is no HTTP any more.
    Noise,
}

/// A client whose connection breaks as soon as it is told to; the client itself is still there then.
async fn fragile(world: &World, how: Break) -> (UrlFrontierClient<Channel>, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = world.address.strip_prefix("http://").unwrap().to_owned();
    let (break_it, told) = oneshot::channel();
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(server).await.unwrap();
        tokio::select! {
            _ = copy_bidirectional(&mut client, &mut server) => {}
            _ = told => {}
        }
        match how {
            Break::Reset => server.set_zero_linger().unwrap(), // when it is dropped, which is now
            Break::Noise => {
                server.write_all(&[0xff; 64]).await.unwrap();
                let mut rest = Vec::new();
                let _ = server.read_to_end(&mut rest).await; // until the server has had enough
            }
        }
    });
    (UrlFrontierClient::connect(address).await.unwrap(), break_it)
}

async fn a_hand_out_whose_connection_breaks_was_the_turn_of_its_queues(mut world: World) {
    fill(&mut world).await;
    for how in [Break::Reset, Break::Noise] {
        let (mut client, break_it) = fragile(&world, how).await;
        let answers = on_the_way(&mut client).await;
        assert_eq!(world.stats("", "").await.in_process, 400, "{how:?}");
        break_it.send(()).unwrap();
        let broken = async {
            while world.stats("", "").await.in_process == 400 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, broken).await.expect("what could not be sent is given back");
        assert!(timeout(PATIENCE, failed(answers)).await.expect("it hears of it"), "{how:?}");
        assert_eq!(world.get(any(2, 0)).await, [""; 0], "{how:?}: every queue has had its turn, sent or not");
        for key in ["k0", "k399"] {
            assert_eq!(world.get(keyed(key, 2)).await, [""; 0], "{how:?}: {key} too");
        }
        world.pass(31);
        assert_eq!(world.get(any(1, 0)).await.len(), 400, "{how:?}: all of them are served again");
        world.pass(31);
    }
    world.stop();
    timeout(PATIENCE, world.ended()).await.expect("nothing is left that could keep it from ending");
}

/// Whether answers end with an error.
async fn failed(mut answers: Streaming<UrlInfo>) -> bool {
    loop {
        match answers.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}
