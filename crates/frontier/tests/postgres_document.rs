//! The SQL of document 001 works on a live store as it is written, and its functions agree with those in Rust.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on has failed, and the names say it"
)]

mod common;

use std::cell::Cell;

use common::sql::{Beside, HOME, link};
use forager_core::hierarchy::{Found, Mode, Pages, Priority, Sighting, effective, priority};
use forager_core::order::Order;
use forager_core::url::{FetchUrl, IdentityOptions};
use forager_frontier::Frontier as _;
use forager_frontier::verbs::Page;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A part of the document, by its name.
fn part(name: &str) -> &'static str {
    let parts = include_str!("cases/document-001.sql").split("\n--- ");
    let mut named = parts.filter_map(|part| part.split_once('\n'));
    named.find(|(known, _)| *known == name).expect("the document has it").1
}

/// What the document puts in place of ours.
const REPLACED: [&str; 4] =
    ["view", "update_page_priority", "update_job_page_priorities", "task_created_update_priority"];

async fn replace(beside: &Beside) {
    for name in REPLACED {
        beside.sql.batch_execute(part(name)).await.unwrap_or_else(|cause| panic!("{name}: {cause:?}"));
    }
}

#[tokio::test]
async fn the_statements_of_the_document_are_taken_as_they_are() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    replace(&beside).await;
    // Its trigger is there, as one that a view can have.
    assert!(beside.refused(part("trigger")).await.contains("\"tasks\" is a view"));
    assert_eq!(
        beside.told("tgname", "FROM pg_trigger WHERE tgrelid = 'tasks'::regclass AND tgfoid = 'task_created_update_priority'::regproc").await,
        ["trigger_task_priority_update"]
    );
    // With the functions of the document in place of ours, the queue is what it was; also by what the document does not know.
    let first = beside.add("acme", "acme.example", "/a", ("link", Some("acme.example/"))).await;
    beside.add("acme", "acme.example", "/b", ("link", Some("acme.example/a"))).await;
    beside.add("acme", "acme.example", "/map", ("sitemap", None)).await;
    beside.add("acme", "acme.example", "/nav", ("header", Some(HOME))).await;
    beside.add("acme", "acme.example", "/moved", ("redirect", Some("HTTP://ACME.example:80/a"))).await;
    beside.add("acme", "acme.example", "/feed", ("listing", None)).await;
    beside.rows("SELECT update_job_page_priorities('acme')", &[]).await;
    beside.rows("SELECT update_page_priority($1, 'sitemap')", &[&first]).await;
    assert_eq!(
        beside.told("path, effective_priority", "FROM prioritized_pending_tasks ORDER BY id").await,
        ["/ 1.000", "/a 0.800", "/b 0.640", "/map 0.500", "/nav 0.900", "/moved 0.640", "/feed 0.500"]
    );
    for path in ["", "nav", "a", "b", "moved", "map", "feed"] {
        assert_eq!(beside.fetch(200, Vec::new()).await.0.url, format!("{HOME}{path}"));
    }
    beside.is_sound().await;
}

/// Whatever is put in place of ours can raise a page, and do nothing else to it.
#[tokio::test]
async fn what_is_replaced_can_only_raise() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let replace = "CREATE OR REPLACE FUNCTION update_page_priority(p_page_id INTEGER, p_source_type TEXT, \
            p_source_page_id INTEGER DEFAULT NULL) RETURNS VOID LANGUAGE plpgsql AS \
            'BEGIN UPDATE pages SET priority_score = @ WHERE id = p_page_id; END'";
    for (path, set, want) in [("/zero", "0", "0.800"), ("/more", "0.95", "0.950")] {
        beside.sql.batch_execute(&replace.replace('@', set)).await.unwrap();
        beside.add("acme", "acme.example", path, ("link", Some(HOME))).await;
        let told = beside.told("priority_score", &format!("FROM pages WHERE path = '{path}'")).await;
        assert_eq!(told, [want], "{path}");
    }
    // One that wants to have nothing added has it added and counted, and only nothing returned.
    let none = "CREATE OR REPLACE FUNCTION task_created_update_priority() RETURNS TRIGGER LANGUAGE plpgsql AS \
        'BEGIN RETURN NULL; END'";
    beside.sql.batch_execute(none).await.unwrap();
    let add = "INSERT INTO pages (domain_id, path) SELECT domain_id, '/none' FROM jobs; \
        INSERT INTO tasks (job_id, page_id, source_type, source_url) \
            SELECT 'acme', id, 'link', 'acme.example' FROM pages WHERE path = '/none'";
    beside.sql.batch_execute(add).await.unwrap();
    assert_eq!(beside.told("priority_score", "FROM pages WHERE path = '/none'").await, ["0.800"]);
    beside.is_sound().await;
}

/// What it adds to tables is there already, where those are views.
#[tokio::test]
async fn its_columns_and_its_index_are_there() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    for name in ["pages", "index", "jobs"] {
        let refused = beside.refused(part(name)).await;
        assert!(refused.contains("relation \"pages\"") || refused.contains("relation \"jobs\""), "{refused}");
    }
    let columns = "FROM pg_attribute a JOIN (VALUES ('pages', 'priority_score'), ('jobs', 'prioritization_mode'), ('jobs', 'total_pages')) \
        c (view, name) ON a.attrelid = c.view::regclass AND a.attname = c.name ORDER BY c.view DESC, a.attnum";
    assert_eq!(
        beside.told("attname, format_type(atttypid, atttypmod)", columns).await,
        ["priority_score numeric(4,3)", "prioritization_mode text", "total_pages integer"]
    );
    assert_eq!(
        beside.told("prioritization_mode, total_pages", "FROM jobs").await,
        ["hierarchy 1"],
        "by themselves"
    );
    let index = "FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'idx_pages_priority'";
    assert_eq!(beside.told("indexdef LIKE '%(queue, priority DESC, %'", index).await, ["t"]);
}

#[tokio::test]
async fn its_queries_find_the_tasks_and_lock_no_more() {
    its_queries_find_the_tasks(Beside::with_job(Order::Hierarchy).await).await;
    let beside = Beside::with_job(Order::Hierarchy).await;
    replace(&beside).await;
    its_queries_find_the_tasks(beside).await;
}

async fn its_queries_find_the_tasks(mut beside: Beside) {
    beside.fetch(200, Vec::new()).await;
    for url in ["https://acme.example/a", "https://acme.example/b"] {
        beside.now += jiff::SignedDuration::from_secs(1);
        let page = Page {
            collection: "acme".into(),
            source: Some(HOME.into()),
            links: vec![link(url)],
            ..Page::default()
        };
        beside.store.discover(&[page], beside.now).await.unwrap();
    }
    // Both are due, though the clock of the database is behind that of the store.
    beside.sql.batch_execute("UPDATE entries SET ready = state = 0").await.unwrap();
    beside.sql.batch_execute("UPDATE pages SET priority_score = 0.95 WHERE path = '/b'").await.unwrap();
    for (name, expected) in [("acquisition, first in first out", "/a"), ("acquisition, by priority", "/b")] {
        beside.sql.batch_execute("BEGIN").await.unwrap();
        let rows = beside.rows(part(name), &[&"acme"]).await;
        assert_eq!(rows.len(), 1, "{name}");
        assert_eq!(rows[0].get::<_, &str>("path"), expected, "{name}");
        assert_eq!(rows[0].get::<_, &str>("source_url"), HOME, "{name}");
        let locked = "FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE l.pid = pg_backend_pid() \
            AND l.mode = 'RowShareLock' AND c.relkind = 'r' AND c.relname <> 'loose_pages'";
        assert_eq!(
            beside.told("relname", locked).await,
            ["entries"],
            "{name}: hosts, queues and jobs stay free"
        );
        beside.sql.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn every_priority_is_that_of_rust() {
    let beside = Beside::new().await;
    let all = "SELECT p, t, h, s, found_priority(h, t, p, s) FROM (SELECT generate_series(0, 1000) UNION ALL SELECT NULL) n (p), \
        unnest(ARRAY['link', 'header', 'redirect', 'sitemap', 'listing', 'manual', '', NULL]) t, unnest(ARRAY[true, false]) h, unnest(ARRAY[true, false]) s";
    for row in beside.rows(all, &[]).await {
        let source = row
            .get::<_, Option<i32>>(0)
            .map(|source| Priority::from_thousandths(source.try_into().unwrap()).unwrap());
        let (kind, is_homepage, is_from_homepage): (Option<&str>, bool, bool) =
            (row.get(1), row.get(2), row.get(3));
        let found = match kind {
            Some("link" | "redirect") => Found::Link { source, in_homepage_header: false },
            Some("header") => Found::Link { source, in_homepage_header: is_from_homepage },
            Some("sitemap" | "listing") => Found::Sitemap,
            _ => Found::Otherwise,
        };
        let expected = i32::from(priority(is_homepage, found).thousandths());
        assert_eq!(row.get::<_, i32>(4), expected, "{source:?} {kind:?} {is_homepage} {is_from_homepage}");
    }
    let linked = "SELECT p, n, linked_priority(p, n) FROM generate_series(0, 1000) p, unnest(ARRAY[0, 1, 2, 3, 99, 1000]) n";
    for row in beside.rows(linked, &[]).await {
        let best = Priority::from_thousandths(row.get::<_, i32>(0).try_into().unwrap()).unwrap();
        let sources = usize::try_from(row.get::<_, i32>(1)).unwrap();
        let expected = i32::from(effective(Mode::Linked, best, sources).thousandths());
        assert_eq!(row.get::<_, i32>(2), expected, "{best} {sources}");
    }
}

/// Whatever pages are worth when it is called, and wherever they stand: as much as the way in which they were found is worth, if
/// that is a sitemap or another list, and a homepage 1.000.
#[tokio::test]
async fn the_pages_of_a_job_are_raised_as_the_rules_say() {
    const WAYS: [(&str, Found); 5] = [
        ("sitemap", Found::Sitemap),
        ("listing", Found::Sitemap),
        ("link", Found::Otherwise),
        ("redirect", Found::Otherwise),
        ("other", Found::Otherwise),
    ];
    for order in [Order::Hierarchy, Order::Fifo, Order::Linked] {
        let mut beside = Beside::with_job(order).await;
        beside.start("other", "https://other.example/", order).await;
        for (number, (way, _)) in WAYS.iter().enumerate() {
            for path in [format!("/{number}/a"), format!("/{number}/b"), format!("/{number}/high")] {
                beside.add("acme", "acme.example", &path, (way, None)).await;
            }
        }
        beside.add("acme", "www.acme.example", "/", ("other", None)).await;
        beside.add("other", "other.example", "/list", ("sitemap", None)).await;
        // In the middle of its work: some are through, some under way. And as if nothing had been known of any.
        beside.fetch(200, Vec::new()).await;
        beside.lease().await.unwrap();
        let nothing = "UPDATE entries SET priority = 0, best = CASE WHEN best IS NOT NULL THEN 0 END, \
            record = (record::jsonb || '{\"bestLink\": 0}')::json";
        beside.sql.batch_execute(nothing).await.unwrap();
        beside
            .sql
            .batch_execute("UPDATE pages SET priority_score = 0.95 WHERE path LIKE '%/high'")
            .await
            .unwrap();
        for steer in [forager_frontier::verbs::Steer::Pause, forager_frontier::verbs::Steer::Resume] {
            beside.store.steer_job("acme", steer, beside.now).await.unwrap();
            beside.rows("SELECT update_job_page_priorities('acme')", &[]).await;
            for (number, (way, found)) in WAYS.into_iter().enumerate() {
                let by_rule = if found == Found::Sitemap { priority(false, found) } else { Priority::ZERO };
                let scores = format!("FROM pages WHERE path LIKE '/{number}/%' ORDER BY path");
                let want = [
                    format!("/{number}/a {by_rule}"),
                    format!("/{number}/b {by_rule}"),
                    format!("/{number}/high 0.950"),
                ];
                assert_eq!(beside.told("path, priority_score", &scores).await, want, "{way} in {order}");
            }
            let home = priority(true, Found::Otherwise).to_string();
            let homes = "FROM pages WHERE path = '/' AND job_id = 'acme'";
            assert_eq!(beside.told("priority_score", homes).await, [home.clone(), home], "{order}");
            let others = "FROM pages WHERE job_id = 'other'";
            assert_eq!(
                beside.told("max(priority_score)", others).await,
                ["0.000"],
                "another job stays as it is"
            );
        }
        beside.is_sound().await;
    }
}

const HOSTS: [&str; 3] = ["acme.example", "www.acme.example", "other.example"];
const PATHS: [&str; 6] = ["/", "/a", "/b", "/a/c", "/a?q=1", "/%7Ed"];
const TYPES: [&str; 6] = ["link", "header", "sitemap", "manual", "redirect", "listing"];

/// A page that was found: host and path; how; and on which page, as somebody wrote it.
type Find = ((usize, usize), usize, Option<(usize, usize, usize)>);

fn finds() -> impl Strategy<Value = Find> {
    let page = || (0..HOSTS.len(), 0..PATHS.len());
    // Half of them the homepage, which is known from the start.
    let source = prop_oneof![
        (Just(0), Just(0), 0..9_usize).boxed(),
        (0..HOSTS.len(), 0..PATHS.len(), 0..9_usize).boxed()
    ];
    let source = prop::option::weighted(0.8, source);
    (page(), 0..TYPES.len(), source)
}

/// One page, written in different ways; and others that only look like it: with a dot behind the host, and at other ports.
fn written(host: &str, path: &str, way: usize) -> String {
    match way {
        0 => format!("https://{host}{path}"),
        1 => format!("HTTP://{}:80{path}#top", host.to_uppercase()),
        2 => format!("{host}{path}"),
        3 => format!("https://me@{host}:443/x/..{}", path.replace("%7E", "~")),
        4 => format!("https://{host}.{path}"),
        5 => format!("HTTP://{}.:80{path}", host.to_uppercase()),
        6 => format!("{host}.:8443{path}"),
        7 => format!("http://{host}:8080{path}"),
        _ => format!("//{host}{path}"),
    }
}

/// A host as a job writes it that starts at the first one: that may have a dot behind it.
fn at(host: &str, dot: &str) -> String {
    if host == HOSTS[0] { format!("{host}{dot}") } else { host.to_owned() }
}

/// The same finds, taken in by SQL and by Rust: after each, the page has the same priority in both.
async fn compare(
    beside: &Beside,
    job: &str,
    (mode, dot): (Mode, &str),
    finds: &[Find],
) -> Result<(), TestCaseError> {
    let order = match mode {
        Mode::Hierarchy => Order::Hierarchy,
        Mode::Fifo => Order::Fifo,
        Mode::Linked => Order::Linked,
    };
    let home = format!("https://{}/", at(HOSTS[0], dot));
    beside.start(job, &home, order).await;
    // In fifo a page has its score, and only its place in the queue does not hang on it.
    let mut pages = Pages::new(if mode == Mode::Fifo { Mode::Hierarchy } else { mode });
    let seed = Sighting { url: home, source_type: "seed".into(), source: None, in_header: false };
    pages.see(&seed).unwrap();
    for (index, &((host, path), kind, source)) in finds.iter().enumerate() {
        let (host, path, kind) = (HOSTS[host], PATHS[path], TYPES[kind]);
        let source = source.map(|(host, path, way)| written(HOSTS[host], PATHS[path], way));
        let known = page(beside, job, host, path).await;
        let source_id = match &source {
            Some(source) => {
                let url = FetchUrl::parse_lenient(source).unwrap().identity(&IdentityOptions::default());
                let (written, _) = url.without_scheme().split_once('/').unwrap();
                let path = &url.without_scheme()[written.len()..];
                match HOSTS.iter().find(|host| at(host, dot) == written) {
                    Some(host) => page(beside, job, host, path).await,
                    None => None,
                }
            }
            None => None,
        };
        // By turns: a task is inserted, or the function of the document is called where it can say the same.
        let id = match (known, source_id) {
            (Some(known), Some(source)) if index % 2 == 0 => {
                beside.rows("SELECT update_page_priority($1, $2, $3)", &[&known, &kind, &source]).await;
                known
            }
            (Some(known), None) if index % 2 == 0 && source.is_none() => {
                beside.rows("SELECT update_page_priority($1, $2)", &[&known, &kind]).await;
                known
            }
            _ => beside.add(job, host, path, (kind, source.as_deref())).await,
        };
        let sighting = Sighting {
            url: format!("https://{}{path}", at(host, dot)),
            source_type: if kind == "header" { "link" } else { kind }.into(),
            source,
            in_header: kind == "header",
        };
        let expected = pages.see(&sighting).unwrap();
        let scored = beside.told("priority_score", &format!("FROM pages WHERE id = {id}")).await;
        prop_assert_eq!(&scored, &[expected.to_string()], "{:?} in {:?}, at {:?}", sighting, mode, dot);
    }
    let total = beside.told("total_pages", &format!("FROM jobs WHERE id = '{job}'")).await;
    prop_assert_eq!(total, [pages.len().to_string()]);
    Ok(())
}

/// The number of a page of a job.
async fn page(beside: &Beside, job: &str, host: &str, path: &str) -> Option<i32> {
    let find = "SELECT p.id FROM pages p JOIN domains d ON d.id = p.domain_id WHERE p.job_id = $1 AND d.name = $2 AND p.path = $3";
    beside.rows(find, &[&job, &host, &path.replace("%7E", "~")]).await.first().map(|row| row.get(0))
}

#[test]
fn sql_and_rust_agree_whatever_is_found() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let beside = runtime.block_on(Beside::new());
    let mut runner = TestRunner::new(Config { cases: 10, failure_persistence: None, ..Config::default() });
    let jobs = std::sync::atomic::AtomicU32::new(0);
    let ran = runner.run(&prop::collection::vec(finds(), 1..20), |finds| {
        for at in [
            (Mode::Hierarchy, ""),
            (Mode::Hierarchy, "."),
            (Mode::Fifo, ""),
            (Mode::Linked, ""),
            (Mode::Linked, "."),
        ] {
            let job = format!("job {}", jobs.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
            runtime.block_on(compare(&beside, &job, at, &finds))?;
        }
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    runtime.block_on(beside.is_sound());
}

/// What names in other scripts are written as, and what only looks like that.
fn names_in_other_scripts() -> impl Strategy<Value = String> {
    let label = prop_oneof![
        prop::sample::select(vec![
            "xn--mller-kva",
            "XN--MLLER-KVA",
            "xn--fiq228c",
            "xn--80akhbyknj4f",
            "xn--",
            "xn--a",
            "xn--acme-",
            "xn--zzzzzzz99",
            "xn--ls8h",
            "xn--strae-oqa",
        ])
        .prop_map(str::to_owned),
        "xn--[a-z0-9-]{1,8}",
    ];
    let whole = prop::sample::select(vec!["@.example", "@", "www.@.example", "@.xn--p1ai.", "a-@.example"]);
    (label, whole).prop_map(|(label, whole)| whole.replace('@', &label))
}

/// Addresses that SQL has to read: with whatever people write into a path and a query.
fn addresses() -> impl Strategy<Value = String> {
    let scheme =
        prop::sample::select(vec!["http://", "https://", "HTTP:\\\\", "https:///", "", "//", "ftp://"]);
    let user = prop::sample::select(vec!["", "", "", "me@", "me:pw@"]);
    let host = prop_oneof![
        prop::sample::select(vec![
            "acme.example",
            "WWW.Acme.Example.",
            "a_b.x-y.example",
            "127.0.0.1",
            "localhost",
        ])
        .prop_map(str::to_owned),
        names_in_other_scripts(),
    ];
    let port = prop::sample::select(vec!["", "", ":80", ":443", ":8080", ":", ":00080", ":0", ":65536"]);
    let piece = prop::sample::select(vec![
        "/",
        "/",
        "/../",
        "\\",
        "a",
        "B",
        "/a:",
        ":/\t/",
        "/C|",
        ".",
        "..",
        "%2e",
        "%2E%2e",
        "~",
        "%7e",
        "%41",
        "%zz",
        "%",
        "%C3%A9",
        "é",
        " ",
        "\t",
        "\"",
        "'",
        "<",
        "{",
        "|",
        "^",
        "[",
        "`",
        "?",
        "&",
        "=",
        "#",
        "@",
        ":",
        ";",
        "+",
        "%2F",
        "\u{1F600}",
        "\u{7f}",
    ]);
    let rest = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    let start = prop::sample::select(vec!["", "/", "/", "/", "?", "#"]);
    (scheme, user, host, port, start, rest).prop_map(|(scheme, user, host, port, start, rest)| {
        let start = if start.is_empty() && !rest.is_empty() { "/" } else { start };
        format!("{scheme}{user}{host}{port}{start}{rest}")
    })
}

/// What SQL reads of an address: what is requested, by which it is known, and its host.
async fn read(beside: &Beside, address: &str) -> [Option<String>; 3] {
    let rows = beside.rows("SELECT url, identity, host FROM web_address($1)", &[&address]).await;
    [0, 1, 2].map(|column| rows[0].get(column))
}

#[test]
fn sql_and_rust_read_the_same_addresses() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let beside = runtime.block_on(Beside::with_job(Order::Hierarchy));
    let mut runner = TestRunner::new(Config { cases: 3000, failure_persistence: None, ..Config::default() });
    let (known, unknown) = (Cell::new(0), Cell::new(0));
    let ran = runner.run(&addresses(), |address| {
        let url = FetchUrl::parse_lenient(&address).ok();
        // A name in another script is one that Forager has seen: it is shown each, and takes those that can be.
        let is_name = address.to_lowercase().contains("xn--");
        if is_name {
            let home = url.as_ref().map_or(address.clone(), |url| format!("http://{}/", url.host()));
            runtime.block_on(beside.find("acme", &home));
            let count = if url.is_some() { &known } else { &unknown };
            count.set(count.get() + 1);
        }
        let [requested, by, host] = runtime.block_on(read(&beside, &address));
        let identity = url.as_ref().map(|url| url.identity(&IdentityOptions::default()));
        prop_assert_eq!(
            by.as_deref(),
            identity.as_ref().map(forager_core::url::Identity::as_str),
            "{:?}",
            address
        );
        prop_assert_eq!(host.as_deref(), url.as_ref().map(FetchUrl::host_key), "{:?}", address);
        prop_assert_eq!(requested.as_deref(), url.as_ref().map(FetchUrl::as_str), "{:?}", address);
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(known.get() > 100 && unknown.get() > 100, "{known:?} and {unknown:?}");
}

#[tokio::test]
async fn a_name_in_another_script_is_taken_when_forager_has_judged_it() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let name = "xn--mller-kva.example";
    let add = format!("INSERT INTO domains (name) VALUES ('{name}')");
    assert_eq!(read(&beside, &format!("https://{name}/")).await, [None, None, None]);
    assert_eq!(beside.refused(&add).await, format!("'{name}' is not the name of a host that SQL can read"));
    assert!(beside.hint(&add).await.contains("`forager discover`"));
    beside.find("acme", "https://müller.example/").await;
    beside.sql.batch_execute(&add).await.unwrap();
    beside.add("acme", name, "/a", ("link", Some(&format!("https://{name}/")))).await;
    assert_eq!(
        beside.told("path, priority_score", "FROM pages WHERE path = '/a'").await,
        ["/a 0.800"],
        "its source is found by its name"
    );
    // What can be no name never becomes one.
    beside.find("acme", "https://xn--a.example/").await;
    assert_eq!(read(&beside, "https://xn--a.example/").await, [None, None, None]);
    beside.is_sound().await;
}
