//! Tasks that are added by SQL to jobs with several seeds, ports and schemes: each belongs where Forager would have put it.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that cannot go on has failed, and the names say it"
)]

mod common;

use common::sql::{Beside, HOME, link};
use forager_core::order::Order;

/// The seeds of a job; the page that is added, and the page that it was found on; what is fetched, and for which seed.
type Case<'a> = (&'a [&'a str], (&'a str, &'a str), Option<&'a str>, &'a str, &'a str);

#[tokio::test]
async fn a_task_belongs_to_the_seed_that_it_is_nearest_to() {
    const TWO: &[&str] = &["https://a.example/", "http://b.example:8081/"];
    const NESTED: &[&str] = &["https://a.example/", "https://a.example/docs", "https://a.example/doc"];
    let cases: [Case<'_>; 8] = [
        (TWO, ("a.example", "/x"), None, "https://a.example/x", TWO[0]),
        (TWO, ("b.example", "/x"), None, "http://b.example:8081/x", TWO[1]),
        (TWO, ("b.example", "/x"), Some(TWO[1]), "http://b.example:8081/x", TWO[1]),
        (TWO, ("b.example", "/x"), Some("b.example"), "http://b.example:8081/x", TWO[1]),
        (TWO, ("www.b.example", "/x"), None, "http://www.b.example/x", TWO[1]),
        (NESTED, ("a.example", "/docs/x"), None, "https://a.example/docs/x", NESTED[1]),
        (NESTED, ("a.example", "/document"), None, "https://a.example/document", NESTED[0]),
        (NESTED, ("a.example", "/docs/x"), Some(NESTED[0]), "https://a.example/docs/x", NESTED[0]),
    ];
    for (seeds, (host, path), source, url, seed) in cases {
        let mut beside = Beside::new().await;
        beside.start_at("many", seeds).await;
        let id = beside.add("many", host, path, ("link", source)).await;
        let from = format!("FROM pages JOIN tasks USING (id) WHERE id = {id}");
        let expected = if source.is_some() { format!("0.800 {seed}") } else { "0.100".to_owned() };
        let told = beside.told("priority_score, source_url", &from).await;
        assert_eq!(told, [expected], "{url} found on {source:?}");
        let mut fetched = Vec::new();
        while let Some(leased) = beside.lease().await {
            beside.report(&leased, 200, Vec::new()).await;
            fetched.push((leased.url, leased.seed.unwrap_or_default(), leased.depth));
        }
        let expected = (url.to_owned(), seed.to_owned(), 1);
        assert!(fetched.contains(&expected), "{url} found on {source:?}: {fetched:?}");
        beside.is_sound().await;
    }
}

/// Found on a page of one seed, it is judged by that seed, as a link on it would be.
#[tokio::test]
async fn a_page_of_one_seed_leads_off_its_domain() {
    let mut beside = Beside::new().await;
    beside.start_at("many", &["https://a.example/", "https://b.example/"]).await;
    let id = beside.add("many", "b.example", "/x", ("link", Some("https://a.example/"))).await;
    assert_eq!(beside.told("hops", &format!("FROM entries WHERE id = {id}")).await, ["1"]);
    while let Some(leased) = beside.lease().await {
        assert_ne!(leased.url, "https://b.example/x", "it is out of scope there");
        beside.report(&leased, 200, Vec::new()).await;
    }
}

#[tokio::test]
async fn a_page_that_is_there_by_another_scheme_is_that_page() {
    let mut beside = Beside::new().await;
    beside.start("acme", "http://acme.example:18081/", Order::Hierarchy).await;
    beside.fetch(200, vec![link("https://acme.example:18081/sec")]).await;
    let known: i32 = beside.rows("SELECT id FROM pages WHERE path = '/sec'", &[]).await[0].get(0);
    let by_number = "INSERT INTO tasks (job_id, page_id, source_type) \
        SELECT 'acme', id, 'sitemap' FROM pages WHERE path = '/sec' RETURNING id";
    assert_eq!(beside.rows(by_number, &[]).await[0].get::<_, i32>(0), known);
    let by_path = beside.add("acme", "acme.example", "/sec", ("header", Some("acme.example"))).await;
    assert_eq!(by_path, known);
    assert_eq!(
        beside.told("id, priority_score", "FROM pages WHERE path = '/sec'").await,
        [format!("{known} 0.900")],
        "one page, and raised"
    );
    beside.is_sound().await;
}

/// With and without a dot behind the name it is one host, and two pages: a source is found as it is written.
#[tokio::test]
async fn a_source_with_a_dot_is_another_page() {
    let cases = [
        ("https://a.example/", "a.example", "0.800"),
        ("https://a.example/", "a.example.", "0.100"),
        ("https://a.example./", "a.example.", "0.800"),
        ("https://a.example./", "http://a.example./", "0.800"),
        ("https://a.example./", "a.example", "0.100"),
        ("http://a.example.:8081/", "a.example.:8081", "0.800"),
        ("http://a.example.:8081/", "a.example.", "0.800"),
        ("http://a.example.:8081/", "a.example", "0.100"),
        ("http://a.example.:8081/", "a.example:8081", "0.100"),
        ("http://a.example:8081/", "a.example.", "0.100"),
        ("http://a.example:8081/", "a.example", "0.800"),
    ];
    let beside = Beside::new().await;
    for (number, (seed, source, priority)) in cases.into_iter().enumerate() {
        let job = format!("job {number}");
        beside.start(&job, seed, Order::Hierarchy).await;
        let id = beside.add(&job, "a.example", "/x", ("link", Some(source))).await;
        let told = beside.told("priority_score", &format!("FROM pages WHERE id = {id}")).await;
        assert_eq!(told, [priority], "a page of {seed} found on {source}");
    }
    beside.is_sound().await;
}

#[tokio::test]
async fn a_domain_with_a_dot_is_the_one_without() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let add = "INSERT INTO domains (name) VALUES ('ACME.example.') RETURNING id, name";
    let (known, added) =
        (beside.rows("SELECT id, name FROM domains", &[]).await, beside.rows(add, &[]).await);
    assert_eq!(added[0].get::<_, i32>(0), known[0].get::<_, i32>(0));
    assert_eq!(added[0].get::<_, &str>(1), "acme.example");
    for name in ["acme.example..", "acme.example.:80/", "acme.example./a"] {
        let refused = beside.refused(&format!("INSERT INTO domains (name) VALUES ('{name}')")).await;
        assert_eq!(refused, format!("'{name}' is not the name of a host that SQL can read"));
    }
}

#[tokio::test]
async fn a_page_at_a_host_that_sql_cannot_read_is_refused() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    beside.find("acme", "http://[::1]/").await;
    let add = "INSERT INTO pages (domain_id, path) SELECT id, '/a' FROM domains WHERE name = '[::1]'";
    assert_eq!(beside.refused(add).await, "'[::1]' is not a host that SQL can read");
    assert!(beside.hint(add).await.contains("`forager discover`"));
}

#[tokio::test]
async fn a_source_that_sql_cannot_read_is_refused() {
    let beside = Beside::with_job(Order::Hierarchy).await;
    let add = |source: &str| {
        format!(
            "INSERT INTO pages (domain_id, path) SELECT domain_id, '/a' FROM jobs; \
             INSERT INTO tasks (job_id, page_id, source_type, source_url) \
                SELECT 'acme', id, 'link', '{source}' FROM pages WHERE path = '/a'"
        )
    };
    for source in [
        "https://müller.example/",
        "https://xn--mller-kva.example/",
        "http://127.1/",
        "http://0x7f.0.0.1/",
        "http://[::1]/",
        "mailto:a@b.c",
    ] {
        let refused = beside.refused(&add(source)).await;
        assert_eq!(refused, format!("'{source}' is not an address that SQL can read"));
    }
    assert_eq!(beside.told("count(*)", "FROM tasks").await, ["1"]);
    beside.find("acme", "https://müller.example/").await;
    for source in ["", "https://xn--mller-kva.example/", HOME] {
        beside.sql.batch_execute(&add(source)).await.unwrap();
    }
    assert_eq!(beside.told("priority_score", "FROM pages WHERE path = '/a'").await, ["0.800"]);
}
