//! Crawls from a queue in PostgreSQL, by one process and by several that share it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::run_command;
use crate::server::{Cluster, Schema};
use crate::web::{CONTACT, Field, LONG, Started, each, page, plain_host, wait_until};
use forager_site::demo::HOSTS as HOSTS_OF_DEMO;
use forager_site::{Asked, Host, Seen, Site, demo_site};
use serde_json::{Value, json};

const GAP: Duration = Duration::from_millis(50);

/// A served web, and a configuration that names the queue of a schema.
fn field(site: Site, schema: &Schema, lines: &str) -> Field {
    field_at(site, &schema.url(), lines)
}

/// The same, wherever the queue is.
pub(crate) fn field_at(site: Site, url: &str, lines: &str) -> Field {
    let field = Field::new(site);
    let postgres = "[store.postgres]\nhold = \"3s\"\n";
    field.configure(&format!(
        "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\nanswer_timeout = \"2s\"\n[store]\nurl = {url:?}\n{postgres}{lines}"
    ));
    field
}

/// How often each page of any host was requested, robots.txt included.
fn counts(field: &Field) -> BTreeMap<(String, String), usize> {
    counts_of(field.seen())
}

fn counts_of(seen: impl IntoIterator<Item = Seen>) -> BTreeMap<(String, String), usize> {
    let mut counts = BTreeMap::new();
    seen.into_iter().for_each(|seen| *counts.entry((seen.host.to_string(), seen.path)).or_default() += 1);
    counts
}

/// Those that were requested more than once.
fn twice(field: &Field) -> Vec<(String, String)> {
    more_than_once(counts(field))
}

fn more_than_once(counts: BTreeMap<(String, String), usize>) -> Vec<(String, String)> {
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(page, _)| page).collect()
}

/// Requires that nothing is wrong with the queue.
#[track_caller]
fn assert_sound(schema: &Schema) {
    let ran = schema.run(&["check"], "");
    assert_eq!((ran.rows().len(), ran.status), (1, 0), "{ran:?}");
}

#[test]
fn one_process_crawls_a_site_and_goes_on_where_it_was() {
    let schema = Schema::new();
    let field = field(Site::new().host(plain_host("shop.test", 12)), &schema, "");
    let ran = field.crawl("shop.test", &["--limit", "5"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(field.paths("shop.test").len(), 5);
    let ran = field.crawl("shop.test", &["--name", "all"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let all: BTreeMap<String, usize> = field.counts("shop.test");
    assert_eq!(all.keys().collect::<Vec<_>>(), each(12, 1).keys().collect::<Vec<_>>());
    field.assert_polite(1, GAP);
    field.assert_audit();
    assert_sound(&schema);
    let jobs = schema.good(&["job", "list"]);
    let states: Vec<&Value> = jobs.iter().map(|job| &job["state"]).collect();
    assert_eq!(states, ["limited", "finished"], "{jobs:?}");
}

#[test]
fn a_page_that_is_added_by_sql_to_a_job_of_the_command_line_is_crawled() {
    let schema = Schema::new();
    let host = plain_host("shop.test", 3).page("/unlinked", page("Unlinked", &["/unlinked/too"]));
    let field = field(Site::new().host(host.page("/unlinked/too", page("Too", &[]))), &schema, "");
    let home = field.url("shop.test", "/");
    let created = field.run(&["job", "create", &home, "--name", "shop"]).good_rows();
    assert_eq!((&created[0]["state"], &created[0]["order"]), (&json!("running"), &json!("hierarchy")));
    schema
        .sql("INSERT INTO pages (domain_id, path) SELECT domain_id, '/unlinked' FROM jobs WHERE id = 'shop'");
    let task = "INSERT INTO tasks (job_id, page_id, source_type) SELECT 'shop', id, 'sitemap' FROM pages WHERE path = '/unlinked'";
    schema.sql(task);
    let ran = field.crawl("shop.test", &["--name", "shop"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let counts = field.counts("shop.test");
    assert_eq!((counts.get("/unlinked"), counts.get("/unlinked/too")), (Some(&1), Some(&1)), "{counts:?}");
    let pages = field.run(&["job", "pages", "shop"]).good_rows();
    let told: Vec<[String; 3]> = pages
        .iter()
        .map(|page| {
            [page["rank"].to_string(), page["priority"].to_string(), page["url"].as_str().unwrap().into()]
        })
        .collect();
    let shown = "SELECT p.rank, p.priority_score::float8, e.url FROM pages p JOIN entries e ON e.id = p.id \
        ORDER BY p.priority_score DESC, e.created, p.id";
    let shown = schema.sql(shown).into_iter().map(|row| [row[0].clone(), row[1].clone(), row[2].clone()]);
    let with_point = |number: String| if number.contains('.') { number } else { number + ".0" };
    let shown: Vec<[String; 3]> =
        shown.map(|[rank, priority, url]| [rank, with_point(priority), url]).collect();
    assert_eq!(told, shown);
    assert_eq!(schema.sql("SELECT DISTINCT status FROM tasks"), [["completed"]]);
    assert_eq!(schema.sql("SELECT status, completed_tasks = total_pages FROM jobs"), [["completed", "t"]]);
    assert_sound(&schema);
}

/// A host whose pages lead from one to the next, until there is enough.
fn endless(name: &str, is_enough: &Arc<AtomicBool>) -> Host {
    let is_enough = is_enough.clone();
    Host::new(name).page("/", page("Home", &["/page/1"])).under("/page/", move |asked: &Asked<'_>| {
        let number: u32 = asked.path.rsplit('/').next()?.parse().ok()?;
        let next = format!("/page/{}", number + 1);
        Some(if is_enough.load(Ordering::Relaxed) { page("Last", &[]) } else { page("One", &[&next]) })
    })
}

const HOSTS: [&str; 4] = ["a.test", "b.test", "c.test", "d.test"];

fn seeds(field: &Field) -> String {
    let seed = |host: &&str| format!("[[seeds]]\nurl = \"{}\"\nprofiles = [\"p\"]\n", field.url(host, "/"));
    let seeds: Vec<String> = HOSTS.iter().map(seed).collect();
    let harvest = "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\nevery = \"1h\"\n";
    format!("{harvest}{}", seeds.concat())
}

/// A web that goes on until it is told that there is enough, and `forager run` to share it.
fn shared(schema: &Schema) -> (Field, Arc<AtomicBool>) {
    let is_enough = Arc::new(AtomicBool::new(false));
    let site = HOSTS.iter().fold(Site::new(), |site, host| site.host(endless(host, &is_enough)));
    let field = field(site, schema, "");
    let config = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    std::fs::write(field.file("forager.toml"), config + &seeds(&field)).unwrap();
    (field, is_enough)
}

fn worker(field: &Field, name: &str) -> Started {
    Started::new(&mut field.queue.command(&["run", "--quiet", "--out", &format!("{name}.jsonl")]))
}

/// Waits until both workers have fetched something.
#[track_caller]
fn wait_for_both(field: &Field) {
    wait_until("both to fetch", || ["one", "two"].iter().all(|name| fetched(field, name).len() >= 3));
}

/// Has the web end, and waits until all of it was fetched.
#[track_caller]
fn wait_for_the_end(schema: &Schema, is_enough: &AtomicBool) {
    is_enough.store(true, Ordering::Relaxed);
    let left = "SELECT count(*) FROM entries WHERE state = 1 OR last_fetch IS NULL";
    wait_until("the end of the web", || schema.sql(left) == [["0"]]);
}

/// Asks a worker to stop, which it does in good order.
#[track_caller]
fn stop(worker: Started) {
    worker.signal("TERM");
    let ran = worker.end();
    assert_eq!((ran.status, ran.stderr.as_str()), (11, ""));
}

/// The lines that workers wrote so far, whole ones only.
fn fetched(field: &Field, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(field.file(&format!("{name}.jsonl"))).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn two_runs_share_a_crawl_without_a_double_fetch() {
    let schema = Schema::new();
    let (field, is_enough) = shared(&schema);
    let workers = ["one", "two"].map(|name| worker(&field, name));
    wait_for_both(&field);
    wait_for_the_end(&schema, &is_enough);
    workers.into_iter().for_each(stop);
    assert_eq!(twice(&field), [], "neither a page nor a robots.txt");
    let lines = |name: &str| fetched(&field, name).into_iter().map(|line| line["url"].clone());
    let told: Vec<Value> = lines("one").chain(lines("two")).collect();
    assert_eq!(told.len(), counts(&field).len() - HOSTS.len(), "each page is told of by one of them");
    field.assert_polite(1, GAP);
    field.assert_audit();
    assert_sound(&schema);
}

#[test]
fn what_a_killed_worker_held_is_fetched_by_another_when_its_time_is_over() {
    let schema = Schema::new();
    let (field, is_enough) = shared(&schema);
    let (first, second) = (worker(&field, "one"), worker(&field, "two"));
    wait_for_both(&field);
    first.kill();
    let held: BTreeSet<String> = schema
        .sql("SELECT url FROM entries WHERE state = 1")
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect();
    wait_for_the_end(&schema, &is_enough);
    stop(second);
    let again: BTreeSet<String> = twice(&field).iter().map(|(host, path)| field.url(host, path)).collect();
    assert!(again.is_subset(&held), "{again:?} were fetched twice, and {held:?} were held");
    assert_eq!(field.run(&["audit"]).status, 0);
    field.assert_polite(1, GAP);
    assert_sound(&schema);
}

/// Whoever starts it again later may have more luck.
#[test]
fn a_crawl_whose_server_stays_away_ends_with_status_8() {
    for command in ["crawl", "run"] {
        let cluster = Cluster::start();
        let is_enough = Arc::new(AtomicBool::new(false));
        let site = HOSTS.iter().fold(Site::new(), |site, host| site.host(endless(host, &is_enough)));
        let field = field_at(site, &cluster.url, "patience = \"1s\"\n");
        let config = std::fs::read_to_string(field.file("forager.toml")).unwrap();
        std::fs::write(field.file("forager.toml"), config + &seeds(&field)).unwrap();
        field.run(&["db", "migrate"]).good_rows();
        let home = field.url(HOSTS[0], "/");
        let words: &[&str] =
            if command == "crawl" { &["crawl", &home, "--quiet"] } else { &["run", "--quiet"] };
        let started = Started::new(&mut field.queue.command(words));
        wait_until("pages to be fetched", || field.seen().len() > 10);
        drop(cluster);
        let ran = started.end();
        assert_eq!(ran.status, 8, "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains("it could not be used for 1 s"), "{command}: {}", ran.stderr);
    }
}

/// All of it, for as long as the host takes that asks for ten seconds between two requests. What failed is asked for again, and what
/// was had is not.
#[test]
fn four_workers_crawl_the_demonstration_web() {
    let schema = Schema::new();
    let field = field(demo_site(1), &schema, "");
    let urls: Vec<String> = HOSTS_OF_DEMO.iter().map(|host| field.url(host, "/")).collect();
    let mut command = vec!["crawl", "--json", "--depth", "6", "--scope", "host"];
    command.extend(urls.iter().map(String::as_str));
    let workers: Vec<Started> = (0..4).map(|_| Started::new(&mut field.queue.command(&command))).collect();
    let left = "SELECT count(*) FROM entries WHERE state < 2";
    let (mut last, mut since) = (0, Instant::now());
    while field.seen().len() <= HOSTS_OF_DEMO.len() || schema.sql(left) != [["0"]] {
        let seen = field.seen().len();
        if seen > last {
            (last, since) = (seen, Instant::now());
        }
        assert!(since.elapsed() < LONG, "nothing was requested for long");
        std::thread::sleep(Duration::from_millis(100));
    }
    for worker in workers {
        let ran = worker.end();
        assert_eq!(ran.status, 0, "{ran:?}");
    }
    let had = counts_of(field.seen().into_iter().filter(|seen| seen.status == Some(200) && seen.whole));
    assert_eq!(more_than_once(had), [], "neither a page nor a robots.txt");
    assert!(counts(&field).len() > 170, "{}", counts(&field).len());
    assert_eq!(schema.good(&["job", "list"]).len(), 1, "they share one job");
    field.assert_polite(1, GAP);
    let audited = field.assert_audit();
    assert_eq!(audited.len(), HOSTS_OF_DEMO.len());
    assert_sound(&schema);
}

/// What others put into the queue is queued for all, though a process that has nothing to do cannot count it.
#[test]
fn what_is_queued_is_told_as_the_queue_has_it() {
    let schema = Schema::new();
    let field = field(Site::new().host(plain_host("shop.test", 0)), &schema, "");
    schema.good(&["collection", "add", "plan"]);
    schema.good(&["profile", "add", "wide", "--collection", "plan", "--depth", "2"]);
    schema.good(&["seed", "add", &field.url("shop.test", "/"), "--profile", "wide"]);
    let told = field.file("told");
    let mut command = field.queue.command(&["run", "--log", "json"]);
    let worker = Started::telling(&mut command, &told);
    field.wait_for("shop.test", 1);
    schema.good(&["host", "set", "shop.test", "--delay", "1h"]);
    let url = |number: usize| field.url("shop.test", &format!("/new/{number}"));
    let links: Vec<Value> = (0..50).map(|number| json!({"url": url(number)})).collect();
    let page = json!({"collection": "plan", "source": field.url("shop.test", "/"), "links": links});
    run_command(&mut schema.command(&["discover"]), page.to_string()).good_rows();
    let progress = || {
        let text = std::fs::read_to_string(&told).unwrap();
        let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.filter(|line| line["event"] == "progress").collect::<Vec<_>>()
    };
    // And the homepage, which is due again later.
    wait_until("the queue to be told", || progress().iter().any(|line| line["queued"] == 51));
    worker.signal("TERM");
    let ran = worker.end();
    assert_eq!((ran.status, &progress().last().unwrap()["queued"]), (11, &json!(51)), "{ran:?}");
}
