//! Jobs, pages and tasks under the names that SQL users know: what Forager does is what these show, and what is added
//! here is crawled.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on has failed, and the names say it"
)]

mod common;

use common::postgres::InSchema;
use common::sql::{Beside, HOME, link};
use forager_core::hierarchy::Priority;
use forager_core::order::Order;
use forager_core::time::Interval;
use forager_frontier::catalog::Limits;
use forager_frontier::entry::How;
use forager_frontier::verbs::{JobState, LeaseRequest, Link, ListFilter, Report, Steer};
use forager_frontier::{Frontier as _, Settings};
use jiff::SignedDuration;

#[tokio::test]
async fn a_job_of_forager_is_what_the_views_show() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    let links = vec![
        Link { in_header: true, ..link("https://acme.example/shop") },
        link("https://acme.example/about?a=1"),
        Link { how: How::Sitemap, ..link("https://acme.example/map") },
        link("https://www.acme.example/"),
    ];
    beside.fetch(200, links).await;
    let (failed, _) = beside.fetch(403, Vec::new()).await;
    assert_eq!(failed.url, "https://www.acme.example/", "hosts take turns");
    let running = beside.lease().await.unwrap();
    assert_eq!(running.url, "https://acme.example/shop");
    let (tried, _) = beside.fetch(503, Vec::new()).await;
    assert_eq!(tried.url, "https://acme.example/about?a=1");
    assert_eq!(
        beside
            .told(
                "d.name, p.path, p.priority_score, p.rank, p.job_id",
                "FROM pages p JOIN domains d ON d.id = p.domain_id ORDER BY p.id"
            )
            .await,
        [
            "acme.example / 1.000 5 acme",
            "acme.example /shop 0.900 5 acme",
            "acme.example /about?a=1 0.800 4 acme",
            "acme.example /map 0.500 3 acme",
            "www.acme.example / 1.000 5 acme"
        ]
    );
    assert_eq!(
        beside
            .told("job_id, path, status, retry_count, source_type, source_url", "FROM tasks ORDER BY id")
            .await,
        [
            "acme / completed 0 seed",
            "acme /shop running 0 link https://acme.example/",
            "acme /about?a=1 waiting 1 link https://acme.example/",
            "acme /map pending 0 sitemap https://acme.example/",
            "acme / failed 1 link https://acme.example/",
        ]
    );
    let jobs =
        "j.id, d.name, j.status, j.prioritization_mode, j.total_pages, j.completed_tasks, j.failed_tasks";
    let from = "FROM jobs j JOIN domains d ON d.id = j.domain_id";
    assert_eq!(beside.told(jobs, from).await, ["acme acme.example running hierarchy 5 1 1"]);
    assert_eq!(
        beside.told("path, effective_priority", "FROM prioritized_pending_tasks").await,
        ["/map 0.500"]
    );
    for (steer, status) in
        [(Steer::Pause, "paused"), (Steer::Resume, "running"), (Steer::Cancel, "cancelled")]
    {
        beside.store.steer_job("acme", steer, beside.now).await.unwrap();
        assert_eq!(beside.told("status", "FROM jobs").await, [status]);
    }
    assert_eq!(
        beside.told("count(*)", "FROM tasks WHERE created_at > now() - interval '1 minute'").await,
        ["5"]
    );
}

#[tokio::test]
async fn ranks_are_those_of_people() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let pages: Vec<Link> = (1..1700).map(|page| link(&format!("https://acme.example/{page}"))).collect();
    let page = forager_frontier::verbs::Page {
        collection: "acme".into(),
        source: Some(HOME.into()),
        links: pages,
        ..Default::default()
    };
    beside.store.discover(&[page], beside.now).await.unwrap();
    assert_eq!(
        beside.told("rank, count(*)", "FROM pages GROUP BY rank ORDER BY rank").await,
        ["1360 1699", "1700 1"]
    );
    let priority = Priority::from_thousandths(800).unwrap();
    assert_eq!((Priority::MAX.rank(1700), priority.rank(1700)), (1700, 1360));
}

#[tokio::test]
async fn a_task_inserted_by_sql_is_crawled() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    let id = beside.add("acme", "ACME.example", "/b/../a%7e b", ("link", Some("acme.example/"))).await;
    let seen = "path, status, source_type, source_url, retry_count";
    assert_eq!(
        beside.told(seen, &format!("FROM tasks WHERE id = {id}")).await,
        ["/a~%20b pending link https://acme.example/ 0"]
    );
    assert_eq!(beside.told("total_pages", "FROM jobs").await, ["2"]);
    assert_eq!(beside.told("count(*)", "FROM loose_pages").await, ["0"]);
    beside.is_sound().await;
    beside.fetch(200, Vec::new()).await;
    let leased = beside.lease().await.unwrap();
    assert_eq!((leased.url.as_str(), leased.depth), ("https://acme.example/a%7e%20b", 1));
    assert_eq!((leased.priority.thousandths(), leased.seed.as_deref()), (800, Some(HOME)));
    let report =
        forager_frontier::verbs::Report { token: leased.token.0, status: Some(200), ..Default::default() };
    beside.store.complete(&[report], beside.now).await.unwrap();
    assert_eq!(beside.store.jobs(beside.now).await.unwrap()[0].state, JobState::Finished);
    assert_eq!(beside.told("status, completed_tasks", "FROM jobs").await, ["completed 2"]);
    // A job that had nothing left has something again.
    beside.add("acme", "acme.example", "/late", ("sitemap", None)).await;
    assert_eq!(beside.lease().await.unwrap().url, "https://acme.example/late");
    beside.is_sound().await;
}

/// What a statement returns is what somebody reads who asks afterwards.
#[tokio::test]
async fn returning_gives_what_is_stored() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let domain: i32 = beside.rows("SELECT domain_id FROM jobs", &[]).await[0].get(0);
    let page = |path: &str| format!("INSERT INTO pages (domain_id, path) VALUES ({domain}, '{path}')");
    beside.sql.batch_execute(&page("/known")).await.unwrap();
    let task = "INSERT INTO tasks (job_id, page_id, status, created_at, source_type, source_url, retry_count) \
        SELECT 'acme', id, 'pending', '2001-01-01', 'header', 'acme.example', 7 FROM pages WHERE path = '/known'";
    let again = task.replace("'header'", "'redirect'").replace("'acme.example'", "NULL");
    let cases = [
        ("a domain", "domains", "INSERT INTO domains (name) VALUES ('ACME.example')".to_owned()),
        ("a page", "pages", page("/B/../%7ea")),
        ("one that is there", "pages", page("/known")),
        ("the homepage", "pages", page("/")),
        ("a task", "tasks", task.to_owned()),
        ("one that is there, found otherwise", "tasks", again),
        (
            "lower than it is",
            "pages",
            "UPDATE pages SET priority_score = 0.2 WHERE path = '/known'".to_owned(),
        ),
        ("higher", "pages", "UPDATE pages SET priority_score = 0.95 WHERE path = '/known'".to_owned()),
        ("a job", "jobs", "UPDATE jobs SET status = 'paused'".to_owned()),
        ("a job that is paused already", "jobs", "UPDATE jobs SET status = 'paused'".to_owned()),
    ];
    for (name, view, statement) in cases {
        let returned = beside.rows(&format!("{statement} RETURNING id::text, {view}::text"), &[]).await;
        let [id, row]: [String; 2] = [0, 1].map(|column| returned[0].get(column));
        assert_eq!(
            beside.told(&format!("{view}::text"), &format!("FROM {view} WHERE id::text = '{id}'")).await,
            [row],
            "{name}"
        );
    }
    assert_eq!(
        beside
            .told(
                "status, source_type, source_url, retry_count, created_at > now() - interval '1 minute'",
                "FROM tasks WHERE path = '/known'"
            )
            .await,
        ["pending link https://acme.example/ 0 t"]
    );
}

#[tokio::test]
async fn a_task_says_when_it_was_taken_and_when_it_was_fetched() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    // When it was fetched is kept in seconds.
    let shown = async |beside: &Beside| {
        let now = format!("'{}'::timestamptz", beside.now);
        let row = format!("status, started_at = {now}, completed_at = date_trunc('second', {now})");
        beside.told(&row, "FROM tasks ORDER BY id").await
    };
    assert_eq!(shown(&beside).await, ["pending"], "neither is known");
    let leased = beside.lease().await.unwrap();
    assert_eq!(shown(&beside).await, ["running t"]);
    beside.report(&leased, 200, vec![link("https://acme.example/gone")]).await;
    assert_eq!(shown(&beside).await, ["completed t", "pending"]);
    beside.fetch(403, Vec::new()).await;
    assert_eq!(
        beside.told("status, completed_at IS NOT NULL", "FROM tasks ORDER BY id").await,
        ["completed t", "failed t"]
    );
}

/// The view says of a job what Forager says, at every turn that its end can take.
#[tokio::test]
async fn a_job_is_completed_as_long_as_nothing_is_left() {
    let limits = Limits::default();
    let hour = Some(Interval::from_secs_f64(3600.0));
    let cases = [
        ("without a limit", limits, ["running", "running", "completed", "running"]),
        (
            "with pages left",
            Limits { pages: Some(2), ..limits },
            ["running", "running", "completed", "running"],
        ),
        (
            "with no page left",
            Limits { pages: Some(1), ..limits },
            ["running", "running", "completed", "completed"],
        ),
        (
            "with bytes left",
            Limits { bytes: Some(101), ..limits },
            ["running", "running", "completed", "running"],
        ),
        (
            "with no byte left",
            Limits { bytes: Some(100), ..limits },
            ["running", "running", "completed", "completed"],
        ),
        ("with time left", Limits { time: hour, ..limits }, ["running", "running", "completed", "running"]),
    ];
    for (name, limits, expected) in cases {
        let mut beside = Beside::new().await;
        beside.start_within("acme", HOME, Order::Hierarchy, limits).await;
        let mut seen = vec![status(&beside, name).await];
        let leased = beside.lease().await.unwrap();
        seen.push(status(&beside, name).await);
        let report = forager_frontier::verbs::Report {
            token: leased.token.0,
            status: Some(200),
            bytes: 100,
            ..Default::default()
        };
        beside.store.complete(&[report], beside.now).await.unwrap();
        seen.push(status(&beside, name).await);
        beside.add("acme", "acme.example", "/late", ("sitemap", None)).await;
        seen.push(status(&beside, name).await);
        assert_eq!(seen, expected, "{name}");
    }
    let mut beside = Beside::new().await;
    beside.now -= jiff::SignedDuration::from_hours(2);
    beside.start_within("acme", HOME, Order::Hierarchy, Limits { time: hour, ..limits }).await;
    beside.now += jiff::SignedDuration::from_hours(2);
    assert_eq!(status(&beside, "whose time is over").await, "completed");
}

/// The status of the only job as SQL and as Forager tell it, which is the same; SQL first, which changes nothing.
async fn status(beside: &Beside, name: &str) -> String {
    let shown = beside.told("status, completed_at IS NOT NULL", "FROM jobs").await.remove(0);
    let (status, has_ended) = shown.split_once(' ').unwrap();
    let state = beside.store.jobs(beside.now).await.unwrap()[0].state;
    let told = if matches!(state, JobState::Finished | JobState::Limited) { "completed" } else { "running" };
    assert_eq!(status, told, "{name}");
    assert!(status == "completed" || has_ended == "f", "{name}: {shown}");
    status.to_owned()
}

#[tokio::test]
async fn a_page_has_one_task_in_each_job() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    beside.start("other", "http://acme.example:8080/", Order::Hierarchy).await;
    let first = beside.add("acme", "acme.example", "/a", ("other", None)).await;
    assert_eq!(
        beside.add("acme", "acme.example", "/a", ("sitemap", None)).await,
        first,
        "it is raised, and stays one"
    );
    assert_eq!(beside.told("priority_score", &format!("FROM pages WHERE id = {first}")).await, ["0.500"]);
    let other = "INSERT INTO tasks (job_id, page_id) VALUES ('other', $1) RETURNING id, page_id";
    let row = &beside.rows(other, &[&first]).await[0];
    let (task, page): (i32, i32) = (row.get(0), row.get(1));
    assert_eq!(task, page);
    assert_ne!(task, first, "each job has pages of its own");
    assert_eq!(
        beside.told("job_id, path, source_type", "FROM tasks ORDER BY id").await,
        ["acme / seed", "other / seed", "acme /a other", "other /a other"]
    );
    let filter = ListFilter { collection: Some("other".into()), limit: 9, ..ListFilter::default() };
    let listed = beside.store.list(&filter, beside.now).await.unwrap();
    assert_eq!(listed.entries[1].url, "http://acme.example:8080/a", "at the port of the job");
    beside.is_sound().await;
}

#[tokio::test]
async fn many_tasks_of_one_statement_are_counted_together() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    let pages =
        "INSERT INTO pages (domain_id, path) SELECT domain_id, '/' || n FROM jobs, generate_series(1, 300) n";
    beside.sql.batch_execute(pages).await.unwrap();
    let tasks = "INSERT INTO tasks (job_id, page_id, source_type, source_url) \
        SELECT 'acme', id, 'link', 'acme.example' FROM pages WHERE job_id IS NULL";
    beside
        .sql
        .batch_execute(&format!("BEGIN; {tasks}; SAVEPOINT s; DELETE FROM tasks; ROLLBACK TO s; COMMIT"))
        .await
        .unwrap();
    beside.is_sound().await;
    assert_eq!(beside.told("total_pages", "FROM jobs").await, ["301"]);
    beside.sql.batch_execute("DELETE FROM tasks WHERE path LIKE '/1%'").await.unwrap();
    beside.is_sound().await;
    assert_eq!(
        beside.told("count(*), sum(effective_priority)", "FROM prioritized_pending_tasks").await,
        ["190 152.200"]
    );
    for path in ["/", "/2", "/3"] {
        assert_eq!(beside.fetch(200, Vec::new()).await.0.url, format!("https://acme.example{path}"));
    }
}

/// One statement, with far more queues than are counted at a time.
#[tokio::test]
async fn tasks_of_many_hosts_in_one_statement_are_all_counted() {
    let mut beside = Beside::with_job(Order::Fifo).await;
    beside
        .sql
        .batch_execute(
            "INSERT INTO domains (name) SELECT 'h' || n || '.example' FROM generate_series(1, 700) n; \
             INSERT INTO pages (domain_id, path) SELECT id, '/p' || n FROM domains, generate_series(1, 2) n \
                 WHERE name LIKE 'h%'; \
             INSERT INTO tasks (job_id, page_id) SELECT 'acme', id FROM pages WHERE job_id IS NULL ORDER BY path, id",
        )
        .await
        .unwrap();
    beside.is_sound().await;
    assert_eq!(beside.told("total_pages", "FROM jobs").await, ["1401"]);
    beside.now += jiff::SignedDuration::from_secs(10);
    let all = forager_frontier::verbs::LeaseRequest { max: 2000, ..Default::default() };
    let leased = beside.store.lease(&all, beside.now).await.unwrap().leased;
    assert_eq!(leased.len(), 701, "one of each host");
}

/// A page that no job has yet is given to two at the same time: each has it, and nobody fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_can_be_given_to_two_jobs_at_once() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    beside.start("other", "https://other.example/", Order::Hierarchy).await;
    let pages = "INSERT INTO domains (name) VALUES ('h.example'); \
        INSERT INTO pages (domain_id, path) SELECT id, '/' || n FROM domains, generate_series(1, 40) n \
            WHERE name = 'h.example'";
    beside.sql.batch_execute(pages).await.unwrap();
    let loose: Vec<i32> = beside
        .rows("SELECT id FROM pages WHERE job_id IS NULL ORDER BY id", &[])
        .await
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut callers = tokio::task::JoinSet::new();
    for job in ["acme", "other"] {
        let (client, loose) = (beside.another().await, loose.clone());
        callers.spawn(async move {
            for page in loose {
                let task = format!("INSERT INTO tasks (job_id, page_id) VALUES ('{job}', {page})");
                client.batch_execute(&task).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    beside.is_sound().await;
    assert_eq!(
        beside.told("job_id, count(*)", "FROM tasks WHERE path <> '/' GROUP BY job_id ORDER BY job_id").await,
        ["acme 40", "other 40"]
    );
    assert_eq!(beside.told("count(*)", "FROM pages WHERE job_id IS NULL").await, ["0"]);
}

/// Some add by SQL while others claim and report: nobody fails, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sql_and_workers_do_not_get_in_each_others_way() {
    const HOSTS: usize = 4;
    let mut beside = Beside::with_job(Order::Linked).await;
    let store = std::sync::Arc::new(beside.schema.connect(forager_frontier::Settings::default()));
    let start = beside.now;
    let worker = tokio::spawn(async move {
        let mut fetched = 0;
        for turn in 1..60 {
            let now = start + jiff::SignedDuration::from_secs(turn * 10);
            let request = forager_frontier::verbs::LeaseRequest { max: HOSTS, ..Default::default() };
            for leased in store.lease(&request, now).await.unwrap().leased {
                let links = vec![link("https://h0.example/deep"), link("https://acme.example/deep")];
                let report = forager_frontier::verbs::Report {
                    token: leased.token.0,
                    status: Some(200),
                    links,
                    ..Default::default()
                };
                store.complete(&[report], now).await.unwrap();
                fetched += 1;
            }
        }
        fetched
    });
    for number in 0..40 {
        beside
            .add("acme", &format!("h{}.example", number % HOSTS), &format!("/{number}"), ("link", Some(HOME)))
            .await;
    }
    let mut fetched = worker.await.unwrap();
    beside.now += jiff::SignedDuration::from_secs(1000);
    while let Some(leased) = beside.lease().await {
        beside.report(&leased, 200, Vec::new()).await;
        fetched += 1;
    }
    assert_eq!(fetched, 43, "the homepage, forty that were added and two that were found");
    beside.is_sound().await;
}

#[tokio::test]
async fn setting_a_priority_has_a_page_crawled_sooner() {
    for (order, expected) in
        [(Order::Hierarchy, ["/b", "/a"]), (Order::Linked, ["/b", "/a"]), (Order::Fifo, ["/a", "/b"])]
    {
        let mut beside = Beside::with_job(order).await;
        beside.fetch(200, vec![link("https://acme.example/a"), link("https://acme.example/b")]).await;
        let set = "UPDATE pages SET priority_score = 0.9 WHERE path = '/b' AND job_id = 'acme'";
        beside.sql.batch_execute(set).await.unwrap();
        beside.sql.batch_execute("UPDATE pages SET priority_score = 0.2 WHERE path = '/b'").await.unwrap();
        assert_eq!(
            beside.told("priority_score, rank", "FROM pages WHERE path = '/b'").await,
            ["0.900 3"],
            "{order}"
        );
        let effective = if order == Order::Fifo { "0 0" } else { "0.800 0.900" };
        assert_eq!(
            beside
                .told("min(effective_priority), max(effective_priority)", "FROM prioritized_pending_tasks")
                .await,
            [effective],
            "{order}"
        );
        for path in expected {
            let (leased, _) = beside.fetch(200, Vec::new()).await;
            assert_eq!(leased.url, format!("https://acme.example{path}"), "{order}");
        }
    }
}

#[tokio::test]
async fn a_job_is_steered_by_sql() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    beside.sql.batch_execute("UPDATE jobs SET status = 'paused' WHERE id = 'acme'").await.unwrap();
    assert_eq!(beside.lease().await, None);
    assert_eq!(beside.store.jobs(beside.now).await.unwrap()[0].state, JobState::Paused);
    beside.sql.batch_execute("UPDATE jobs SET status = 'running'").await.unwrap();
    assert_eq!(beside.lease().await.unwrap().url, HOME);
    beside.sql.batch_execute("UPDATE jobs SET status = 'cancelled'").await.unwrap();
    assert_eq!(beside.store.jobs(beside.now).await.unwrap()[0].state, JobState::Cancelled);
    assert_eq!(beside.refused("UPDATE jobs SET status = 'running'").await, "job 'acme' is cancelled");
}

#[tokio::test]
async fn a_task_can_be_deleted_while_nobody_has_it() {
    let mut beside = Beside::with_job(Order::Hierarchy).await;
    beside.fetch(200, vec![link("https://acme.example/a"), link("https://acme.example/b")]).await;
    beside.sql.batch_execute("DELETE FROM tasks WHERE path IN ('/', '/a')").await.unwrap();
    beside.is_sound().await;
    beside.schema.is_sound().await;
    assert_eq!(beside.store.check().await.unwrap().findings, []);
    assert_eq!(beside.lease().await.unwrap().url, "https://acme.example/b");
    let refused = beside.refused("DELETE FROM tasks").await;
    assert!(refused.ends_with("is being fetched"), "{refused}");
    assert_eq!(beside.lease().await, None);
}

#[tokio::test]
async fn what_sql_cannot_do_is_refused_in_plain_words() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    beside.start("risky", "https://risk.example/", Order::Risk).await;
    beside.add("acme", "acme.example", "/a", ("other", None)).await;
    beside
        .sql
        .batch_execute(
            "INSERT INTO pages (domain_id, path) SELECT domain_id, '/loose' FROM jobs WHERE id = 'acme'",
        )
        .await
        .unwrap();
    let cases = [
        (
            "INSERT INTO jobs (id) VALUES ('x')",
            "a job is more than a row: it has seeds, a scope and an order",
        ),
        ("DELETE FROM jobs", "a job goes with its seeds and its profile"),
        ("UPDATE jobs SET total_pages = 1700", "of a job only status can be set"),
        (
            "UPDATE jobs SET status = 'completed'",
            "the status of a job can be set to running, paused or cancelled, not to 'completed'",
        ),
        (
            "INSERT INTO domains (name) VALUES ('https://acme.example')",
            "'https://acme.example' is not the name of a host that SQL can read",
        ),
        (
            "INSERT INTO domains (name) VALUES ('acme.example:8080')",
            "'acme.example:8080' is not the name of a host that SQL can read",
        ),
        ("INSERT INTO domains (name) VALUES (NULL)", "NULL is not the name of a host that SQL can read"),
        ("UPDATE domains SET name = 'x.example'", "a domain stays as it is"),
        ("DELETE FROM domains", "a domain stays as it is"),
        ("INSERT INTO pages (domain_id, path) VALUES (999, '/')", "there is no domain 999"),
        ("INSERT INTO pages (domain_id, path) SELECT min(id), 'a' FROM domains", "'a' is not a path"),
        ("UPDATE pages SET path = '/x' WHERE path = '/a'", "of a page only priority_score can be set"),
        (
            "UPDATE pages SET priority_score = 1.001 WHERE path = '/a'",
            "priority_score is 1.001 and has to be from 0 to 1",
        ),
        (
            "UPDATE pages SET priority_score = 0.9 WHERE job_id = 'risky'",
            "job 'risky' orders its pages by risk, which takes more than SQL knows",
        ),
        ("INSERT INTO tasks (job_id, page_id) SELECT 'none', min(id) FROM pages", "there is no job 'none'"),
        ("INSERT INTO tasks (job_id, page_id) VALUES ('acme', 999)", "there is no page 999"),
        (
            "INSERT INTO tasks (job_id, page_id, status) SELECT 'acme', min(id), 'running' FROM pages",
            "a new task is pending, not running",
        ),
        (
            "INSERT INTO tasks (job_id, page_id) SELECT 'risky', min(id) FROM pages",
            "job 'risky' orders its pages by risk, which takes more than SQL knows",
        ),
        (
            "UPDATE tasks SET status = 'running'",
            "a task is claimed and completed through Forager, which keeps the pace at each host",
        ),
    ];
    for (statement, expected) in cases {
        assert_eq!(beside.refused(statement).await, expected, "{statement}");
    }
    let refused = beside.refused("DELETE FROM pages WHERE path = '/a'").await;
    assert!(refused.ends_with("has a task"), "{refused}");
    beside.sql.batch_execute("DELETE FROM pages WHERE path = '/loose'").await.unwrap();
    beside.is_sound().await;
}

/// What the document shows does what it says, from the first line to the last.
#[tokio::test]
async fn the_examples_of_the_document_work() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sql.md");
    let document = std::fs::read_to_string(path).unwrap();
    let blocks: Vec<&str> =
        document.split("```sql\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    let [search_path, adding, priorities, steering] = blocks[..] else { panic!("{blocks:?}") };
    assert!(search_path.starts_with("SET search_path TO"), "{search_path}");
    let beside = Beside::new().await;
    beside.start("acme.example", HOME, Order::Hierarchy).await;
    beside.add("acme.example", "acme.example", "/tag/a", ("sitemap", None)).await;
    let pages = "FROM tasks JOIN pages USING (id, path) ORDER BY path";
    let seen = "path, source_type, source_url, priority_score";
    for _ in 0..2 {
        // Twice, for it may be there already.
        beside.sql.batch_execute(adding).await.unwrap();
        assert_eq!(
            beside.told(seen, pages).await,
            ["/ seed 1.000", "/shop link https://acme.example/ 0.800", "/tag/a sitemap 0.500"]
        );
    }
    beside.sql.batch_execute(priorities).await.unwrap();
    assert_eq!(beside.told("path, priority_score", pages).await, ["/ 1.000", "/shop 0.900", "/tag/a 0.500"]);
    beside.sql.batch_execute(steering).await.unwrap();
    assert_eq!(beside.told("status, total_pages", "FROM jobs").await, ["paused 2"]);
    beside.is_sound().await;
}

/// The statements in docs/postgres.md are what a role needs, to write by SQL and to work.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_was_granted_what_the_guide_says_can_write_and_work() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let (name, role) = (&beside.schema.options.schema, format!("worker_{}", beside.schema.options.schema));
    let guide = include_str!("../../../docs/postgres.md");
    let grants: String = guide.lines().filter(|line| line.starts_with("GRANT ")).collect();
    assert_eq!(grants.matches(" TO worker;").count(), 3, "{grants}");
    let grants = grants
        .replace("SCHEMA forager", &format!("SCHEMA {name}"))
        .replace(" TO worker;", &format!(" TO {role};"));
    let grants = format!("CREATE ROLE {role} LOGIN; {grants} SET ROLE {role}");
    beside.sql.batch_execute(&grants).await.unwrap();
    beside.add("acme", "acme.example", "/shop", ("link", Some(HOME))).await;
    for statement in [
        "UPDATE pages SET priority_score = 0.95 WHERE path = '/shop'",
        "SELECT update_job_page_priorities('acme')",
        "UPDATE jobs SET status = 'paused'",
        "UPDATE jobs SET status = 'running'",
        "DELETE FROM tasks WHERE path = '/shop'",
    ] {
        beside.sql.batch_execute(statement).await.unwrap_or_else(|cause| panic!("{statement}: {cause:?}"));
    }
    let url = beside.schema.url.replacen("forager@", &format!("{role}@"), 1);
    assert!(url.contains(&role), "{url}");
    let worker = InSchema { url, ..beside.schema.clone() }.connect(Settings::default());
    let later = beside.now + SignedDuration::from_secs(10);
    let leased = worker.lease(&LeaseRequest::default(), later).await.unwrap().leased.remove(0);
    let links = vec![link("https://new.acme.example/")];
    let report = Report { token: leased.token.0, status: Some(200), links, ..Report::default() };
    worker.complete(&[report], later).await.unwrap();
    worker.close().await;
    beside.is_sound().await;
}
