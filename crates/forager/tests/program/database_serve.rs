//! Servers on a queue in PostgreSQL: those that share it are the same to their clients, and a kill loses nothing.

use crate::common;
use crate::server::Schema;
use crate::serving::{
    Serving, all_urls, found, get, info, known, lasting, of_queue, one_of_each, put, stats,
};
use forager_server::proto::ack_message::Status as Ack;
use forager_server::proto::url_frontier_client::UrlFrontierClient;
use forager_server::proto::{Active, Local, QueueDelayParams, QueueWithinCrawlParams, UrlItem};
use futures_util::stream;
use tonic::Code;
use tonic::transport::Channel;

fn serve(schema: &Schema) -> Serving {
    Serving::start(&mut schema.command(&["serve", "--port", "0"]))
}

/// Has clients work on servers of a schema, and checks what is left. The schema is made outside of the runtime, for it
/// has one of its own.
fn on_a_schema(work: impl AsyncFnOnce(&Schema)) {
    let schema = Schema::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work(&schema));
    let checked = common::run_command(&mut schema.command(&["db", "check"]), "");
    assert_eq!(checked.status, 0, "{checked:?}");
}

#[test]
fn what_one_is_told_the_other_knows() {
    on_a_schema(share);
}

#[test]
fn nothing_acknowledged_is_lost_when_it_is_killed() {
    on_a_schema(async |schema| lasting::nothing_acknowledged_is_lost(|| serve(schema), 2, 500).await);
}

#[test]
fn what_was_set_and_handed_out_outlives_a_kill() {
    on_a_schema(async |schema| {
        lasting::what_was_set_and_handed_out_outlives(|| serve(schema), Serving::kill).await;
    });
}

/// A schema that is changed under it is found at the next call, whichever that is. All that are under way are answered,
/// and the server ends with the status that says that trying again is of no use.
#[test]
fn a_schema_of_another_version_ends_it() {
    for is_put in [false, true] {
        let schema = Schema::new();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut command = schema.command(&["serve", "--port", "0"]);
        let serving = Serving::start(&mut command);
        let mut client = runtime.block_on(serving.client());
        runtime.block_on(put(&mut client, vec![found(info("http://a.example/", ""))]));
        schema.sql("INSERT INTO migrations (version, name) VALUES (9999, 'later')");
        let item = found(info("http://a.example/later", ""));
        if is_put {
            let acks = runtime.block_on(acknowledged(&mut client, vec![item]));
            assert_eq!(acks, [Ack::Fail], "nothing is taken that is not kept");
        } else {
            let refused = runtime.block_on(client.get_stats(QueueWithinCrawlParams::default())).unwrap_err();
            assert_eq!(refused.code(), Code::Unavailable, "{refused}");
        }
        drop(client);
        let (status, told) = serving.ended();
        assert_eq!((status, told.matches("made by a newer version").count()), (4, 1), "{told}");
    }
}

/// What becomes of items.
async fn acknowledged(client: &mut UrlFrontierClient<Channel>, items: Vec<UrlItem>) -> Vec<Ack> {
    let mut answers = client.put_ur_ls(stream::iter(items)).await.unwrap().into_inner();
    let mut acks = Vec::new();
    while let Some(ack) = answers.message().await.unwrap() {
        acks.push(Ack::try_from(ack.status).unwrap());
    }
    acks
}

async fn share(schema: &Schema) {
    let (one, other) = (serve(schema), serve(schema));
    let (mut here, mut there) = (one.client().await, other.client().await);
    let items = (0..2000).map(|n| found(info(&format!("http://h{}.example/{n}", n % 20), "")));
    put(&mut here, items.collect()).await;
    put(&mut there, vec![known(info("http://h0.example/done", ""), 0)]).await;
    assert_eq!(all_urls(&mut there).await.len(), 2001);
    assert_eq!(get(&mut here, one_of_each()).await.len(), 20);
    assert_eq!(stats(&mut there, "").await.in_process, 20);
    assert!(get(&mut there, one_of_each()).await.is_empty(), "every queue has one under way, and rests");
    there.set_active(Active { state: false, local: true }).await.unwrap();
    assert!(!here.get_active(Local::default()).await.unwrap().into_inner().state);
    assert!(get(&mut here, of_queue("h1.example", 9)).await.is_empty());
    there.set_active(Active { state: true, local: true }).await.unwrap();
    let none = QueueDelayParams { key: "h1.example".into(), ..QueueDelayParams::default() };
    there.set_delay(none).await.unwrap();
    assert_eq!(get(&mut here, of_queue("h1.example", 9)).await.len(), 9);
    drop((here, there));
    assert_eq!((one.stop().0, other.stop().0), (0, 0));
}
