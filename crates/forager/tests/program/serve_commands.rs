//! One queue, two ways in: what clients put is there for commands, and what commands put is there for clients.

use crate::common::{Queue, run_command};
use crate::serving::{Serving, found, get, info, known, of_crawl, put};
use forager_server::proto::{Active, DiscoveredBatch, QueueDelayParams, StringList, UrlInfo};
use futures_util::stream;
use jiff::Timestamp;
use serde_json::{Value, json};

fn serve(queue: &Queue) -> Serving {
    Serving::start(&mut queue.command(&["serve", "--port", "0"]))
}

/// The rows of a command that must go well, now: the server goes by the clock too.
#[track_caller]
fn rows(queue: &Queue, args: &[&str]) -> Vec<Value> {
    run_command(&mut queue.command(args), "").good_rows()
}

fn texts<'a>(rows: &'a [Value], key: &str) -> Vec<&'a str> {
    rows.iter().map(|row| row[key].as_str().unwrap_or_else(|| panic!("no {key} in {row}"))).collect()
}

const IN: &str = "my_spider";

fn of_spider(url: &str, key: &str) -> UrlInfo {
    UrlInfo { crawl_id: IN.into(), ..info(url, key) }
}

/// The files of a folder, without that of the queue.
fn files(folder: &std::path::Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != "forager-data").collect()
}

/// It waits for the server to leave the queue, and has begun its file.
#[test]
fn an_export_that_is_stopped_leaves_nothing_behind() {
    let queue = Queue::nowhere();
    let server = serve(&queue);
    for signal in ["INT", "TERM"] {
        let mut export = queue.command(&["export", "out.jsonl", "--lock-timeout", "1h"]).spawn().unwrap();
        while files(queue.folder()).is_empty() && export.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let sent = std::process::Command::new("kill").args(["-s", signal, &export.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let ended = export.wait().unwrap();
        assert_eq!((ended.code(), files(queue.folder())), (Some(11), Vec::new()), "{signal}: {ended}");
    }
    assert_eq!(server.stop(), (0, String::new()));
}

/// To clients the same URL under two keys is two records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_url_of_several_queues_is_shown_by_its_key() {
    let (queue, url) = (Queue::nowhere(), "http://a.example/");
    let server = serve(&queue);
    let mut client = server.client().await;
    put(&mut client, vec![found(of_spider(url, "")), known(of_spider(url, "other"), 0)]).await;
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));
    for (key, state, verdict) in
        [("a.example", "queued", "next at its host"), ("other", "done", "done, as a client has said")]
    {
        assert_eq!(texts(&rows(&queue, &["queue", "show", url, "--key", key]), "state"), [state]);
        assert_eq!(texts(&rows(&queue, &["explain", url, "--key", key]), "verdict"), [verdict]);
    }
    assert_eq!(rows(&queue, &["explain", url])[0]["otherKeys"], json!(["other"]));
    let shown = queue.command(&["queue", "show", url]).output().unwrap();
    let told = String::from_utf8(shown.stderr).unwrap();
    assert_eq!(told, "forager: the same URL is in other queues too; name one with --key: other\n");
    assert_eq!(serde_json::from_slice::<Value>(&shown.stdout).unwrap()["state"], "queued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_put_is_there_for_commands() {
    let queue = Queue::nowhere();
    let server = serve(&queue);
    let mut client = server.client().await;
    let list = StringList { values: vec!["1".into()] };
    let first =
        UrlInfo { metadata: [("depth".to_owned(), list)].into(), ..of_spider("http://A.example/%7e", "key") };
    put(&mut client, vec![found(first)]).await;
    put(&mut client, vec![known(of_spider("http://b.example/done", ""), 0)]).await;
    let items = ["1", "2"].map(|n| of_spider(&format!("http://c.example/{n}"), "")).to_vec();
    let batch = DiscoveredBatch { id: "b".into(), items };
    client.put_discovered(stream::iter([batch])).await.unwrap().into_inner().message().await.unwrap();
    assert_eq!(get(&mut client, of_crawl(IN, "c.example", 1)).await, ["http://c.example/1"]);
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));

    let listed = rows(&queue, &["queue", "list", "--collection", IN]);
    assert_eq!(
        texts(&listed, "url"),
        ["http://A.example/%7e", "http://b.example/done", "http://c.example/1", "http://c.example/2"]
    );
    assert_eq!(texts(&listed, "host"), ["key", "b.example", "c.example", "c.example"]);
    assert_eq!(texts(&listed, "state"), ["queued", "done", "leased", "queued"]);
    let shown = rows(&queue, &["queue", "show", "http://A.example/%7e", "--collection", IN]);
    assert_eq!(shown[0]["record"]["origin"]["metadata"], r#"{"depth":["1"]}"#, "{shown:?}");
    let mut hosts = rows(&queue, &["queue", "hosts", "--collection", IN]);
    hosts.sort_by_key(|row| row["host"].to_string());
    assert_eq!(texts(&hosts, "host"), ["b.example", "c.example", "key"]);

    let explained = rows(&queue, &["explain", "http://c.example/1", "--collection", IN]).pop().unwrap();
    let told = explained.to_string();
    assert!(told.contains("leased") && told.contains("c.example"), "{told}");

    let events = rows(&queue, &["events"]);
    assert!(events.iter().all(|row| row["collection"] == IN), "{events:?}");
    assert_eq!(
        texts(&events, "subject"),
        ["http://A.example/%7e", "http://b.example/done", "http://c.example/1"]
    );
    let put = |added, done| json!({"put": {"added": added, "changed": 0, "done": done}});
    let told: Vec<&Value> = events.iter().map(|row| &row["event"]).collect();
    assert_eq!(told, [&put(1, 0), &put(1, 1), &put(2, 0)]);
    let table = run_command(&mut queue.command(&["events", "--format", "table"]), "");
    assert!(table.stdout.contains("2 new, 0 known, 0 of them done"), "{table:?}");

    let exported = rows(&queue, &["export", "--collection", IN]);
    let (happened, there): (Vec<Value>, Vec<Value>) =
        exported.into_iter().partition(|row| row.get("log").is_some());
    assert_eq!(there.len(), 5, "the collection and its entries: {there:?}");
    assert_eq!(happened.len(), events.len(), "what clients put: {happened:?}");
    let checked = queue.run(&["check"], "");
    assert_eq!(checked.status, 0, "{checked:?}");
}

/// A stream that may have so much wait to be acknowledged hands the queue no more at a time, and `events` tells how much.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_is_taken_in_at_a_time_than_the_settings_say() {
    let queue = Queue::nowhere();
    let settings = ["serve", "--port", "0", "putURLs.max.inflight=3", "putDiscovered.max.inflight=2"];
    let server = Serving::start(&mut queue.command(&settings));
    let mut client = server.client().await;
    put(&mut client, (0..60).map(|n| found(info(&format!("http://a.example/{n}"), ""))).collect()).await;
    let batches = (0..30).map(|batch| {
        let items = (0..5).map(|n| info(&format!("http://b.example/{batch}/{n}"), ""));
        DiscoveredBatch { id: batch.to_string(), items: items.collect() }
    });
    let batches: Vec<DiscoveredBatch> = batches.collect();
    let mut answers = client.put_discovered(stream::iter(batches)).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));
    for (host, most, all) in [("http://a.example/", 3, 60), ("http://b.example/", 2 * 5, 150)] {
        let events = rows(&queue, &["events"]);
        let of_host = events.iter().filter(|row| row["subject"].as_str().unwrap().starts_with(host));
        let added: Vec<u64> = of_host.map(|row| row["event"]["put"]["added"].as_u64().unwrap()).collect();
        assert_eq!(added.iter().sum::<u64>(), all);
        assert!(added.iter().all(|added| *added <= most), "{host}: {added:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_commands_put_is_there_for_clients() {
    let queue = Queue::nowhere();
    rows(&queue, &["collection", "add", IN, "--plain"]);
    let page = json!({"collection": IN, "links": [
        {"url": "http://a.example/found"},
        {"url": "http://b.example/keyed", "key": "own", "metadata": r#"{"depth":["2"]}"#},
    ]});
    let told = run_command(&mut queue.command(&["discover"]), page.to_string()).good_rows();
    assert_eq!(texts(&told, "action"), ["added", "added"]);
    // The same by way of a file, under another name.
    let exported = run_command(&mut queue.command(&["export", "--collection", IN]), "");
    let renamed = exported.stdout.replace(IN, "imported");
    let imported = run_command(&mut queue.command(&["import"]), renamed);
    assert_eq!(imported.status, 0, "{imported:?}");
    // And one whose profiles decide.
    rows(&queue, &["collection", "add", "news"]);
    rows(&queue, &["profile", "add", "daily", "--collection", "news", "--depth", "2", "--every", "24h"]);
    rows(&queue, &["seed", "add", "https://paper.example/", "--profile", "daily"]);
    rows(&queue, &["collection", "start", "news"]);

    let server = serve(&queue);
    let mut client = server.client().await;
    for (crawl, want) in [
        (IN, &["http://a.example/found", "http://b.example/keyed"][..]),
        ("imported", &["http://a.example/found", "http://b.example/keyed"]),
        ("news", &["https://paper.example/"]),
    ] {
        let mut answers = client.get_ur_ls(of_crawl(crawl, "", 9)).await.unwrap().into_inner();
        let mut infos = Vec::new();
        while let Some(info) = answers.message().await.unwrap() {
            infos.push(info);
        }
        infos.sort_by(|a, b| a.url.cmp(&b.url));
        let urls: Vec<&str> = infos.iter().map(|info| info.url.as_str()).collect();
        assert_eq!(urls, want, "{crawl}");
        if let [_, keyed] = infos.as_slice() {
            assert_eq!(
                (keyed.key.as_str(), &*keyed.metadata["depth"].values),
                ("own", &["2".to_owned()][..])
            );
        }
    }
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_clients_set_for_all_queues_holds_for_commands() {
    let queue = Queue::nowhere();
    rows(&queue, &["collection", "add", "news"]);
    rows(&queue, &["profile", "add", "daily", "--collection", "news", "--depth", "2", "--every", "24h"]);
    rows(&queue, &["seed", "add", "https://paper.example/", "--profile", "daily"]);
    rows(&queue, &["collection", "start", "news"]);
    let server = serve(&queue);
    let mut client = server.client().await;
    let urls = ["http://a.example/1", "http://a.example/2"];
    put(&mut client, urls.map(|url| found(of_spider(url, ""))).to_vec()).await;
    let an_hour = QueueDelayParams { delay_requestable: 3600, ..QueueDelayParams::default() };
    client.set_delay(an_hour).await.unwrap();
    client.set_active(Active { state: false, local: false }).await.unwrap();
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));

    let lease = ["lease", "--max", "9", "--per-host", "1", "--hold", "3h"];
    assert_eq!(rows(&queue, &lease), [json!({"nothing": "blocked", "until": null})]);
    let told = run_command(&mut queue.command(&["lease", "--format", "table"]), "");
    assert!(told.stdout.contains("SetActive"), "{told:?}");
    for (url, collection) in [(urls[0], IN), ("https://paper.example/", "news")] {
        let explained = rows(&queue, &["explain", url, "--collection", collection]).pop().unwrap();
        assert_eq!(explained["verdict"], "queued; not handed out now", "{explained}");
        assert!(explained["wouldNeed"].to_string().contains("SetActive"), "{explained}");
    }

    let server = serve(&queue);
    let mut client = server.client().await;
    client.set_active(Active { state: true, local: false }).await.unwrap();
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));

    let leased = rows(&queue, &lease);
    let mut handed_out = texts(&leased, "url");
    handed_out.sort_unstable();
    assert_eq!(handed_out, [urls[0], "https://paper.example/"]);
    let next = rows(&queue, &["lease", "--collection", IN]).pop().unwrap();
    assert_eq!((&next["nothing"], &next["gate"]), (&json!("throttled"), &json!("delay")), "{next}");
    let [held, waits] = [&leased[0]["until"], &next["until"]]
        .map(|time| time.as_str().unwrap().parse::<Timestamp>().unwrap());
    assert_eq!(held.duration_since(waits).as_secs(), 2 * 3600, "three hours from then, and one");
    let explain = ["explain", urls[1], "--collection", IN, "--format", "table"];
    let told = run_command(&mut queue.command(&explain), "").stdout;
    assert!(told.contains("waits 1h between two hand-outs"), "{told}");
    assert!(told.contains("closed by delay between fetches"), "{told}");
}

/// Whoever gives profiles to a collection that a client was the first to name is told that they would have no say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn profiles_for_what_a_client_made_are_refused() {
    let queue = Queue::nowhere();
    let server = serve(&queue);
    let mut client = server.client().await;
    put(&mut client, vec![found(of_spider("http://a.example/", ""))]).await;
    drop(client);
    assert_eq!(server.stop(), (0, String::new()));

    let config = format!(
        "[[collections]]\nid = \"{IN}\"\n\n[[profiles]]\nid = \"daily\"\ncollection = \"{IN}\"\n\n\
         [[seeds]]\nurl = \"http://a.example/\"\nprofiles = [\"daily\"]\n"
    );
    std::fs::write(queue.folder().join("forager.toml"), config).unwrap();
    let add = ["profile", "add", "daily", "--collection", IN];
    for args in [&["apply", "--config", "forager.toml"][..], &add] {
        let ran = run_command(&mut queue.command(args), "");
        assert_ne!(ran.status, 0, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("is plain") && ran.stderr.contains("collection remove"), "{ran:?}");
        assert_eq!(rows(&queue, &["profile", "list"]), [Value::Null; 0], "{args:?}");
    }
    rows(&queue, &["collection", "remove", IN, "--yes"]);
    rows(&queue, &["apply", "--config", "forager.toml"]);
    assert_eq!(texts(&rows(&queue, &["collection", "list"]), "kind"), ["planned"]);
}
