//! Jobs from end to end: made, looked at, and their pages by rank.

use crate::common::{NOW, Queue};
use serde_json::{Value, json};

const HOME: &str = "https://acme.example/";

/// A page of the job, with links to these.
fn page(links: impl IntoIterator<Item = Value>) -> String {
    let links: Vec<Value> = links.into_iter().collect();
    json!({"collection": "acme.example", "source": HOME, "links": links}).to_string()
}

#[test]
fn a_homepage_of_1700_pages_has_rank_1700() {
    let queue = Queue::nowhere();
    queue.good(&["job", "create", HOME]);
    let links = (0..1699).map(|number| {
        let url = format!("{HOME}{number}");
        match number {
            0 => json!({"url": url, "inHeader": true}),
            1 => json!({"url": url, "how": "sitemap"}),
            _ => json!({"url": url}),
        }
    });
    queue.run(&["discover"], page(links)).good_rows();
    let pages = queue.good(&["job", "pages", "acme.example"]);
    assert_eq!(pages.len(), 1700);
    let shown = |row: &Value| [row["rank"].clone(), row["priority"].clone(), row["url"].clone()];
    assert_eq!(shown(&pages[0]), [json!(1700), json!(1.0), json!(HOME)]);
    assert_eq!(shown(&pages[1]), [json!(1530), json!(0.9), json!(format!("{HOME}0"))]);
    assert_eq!(shown(&pages[2]), [json!(1360), json!(0.8), json!(format!("{HOME}2"))]);
    assert_eq!(shown(&pages[1699]), [json!(850), json!(0.5), json!(format!("{HOME}1"))]);
    assert_eq!(
        pages[1699],
        json!({"rank": 850, "priority": 0.5, "state": "queued", "url": format!("{HOME}1"), "depth": 1, "how": "sitemap", "source": HOME})
    );
    let few = queue.good(&["job", "pages", "acme.example", "--limit", "3"]);
    assert_eq!(few, pages[..3]);
}

#[test]
fn the_mode_decides_what_pages_are_worth() {
    for (mode, priority, rank) in [("hierarchy", 0.8, 2), ("linked", 0.801, 2), ("fifo", 0.0, 2)] {
        let queue = Queue::nowhere();
        let job = queue.good(&["job", "create", HOME, "--mode", mode]);
        assert_eq!((&job[0]["order"], &job[0]["started"]), (&json!(mode), &json!(NOW)));
        queue.run(&["discover"], page([json!({"url": format!("{HOME}a")})])).good_rows();
        let other = json!({"collection": "acme.example", "source": format!("{HOME}b"), "seed": HOME,
            "links": [{"url": format!("{HOME}a")}]});
        queue.run(&["discover"], other.to_string()).good_rows();
        let pages = queue.good(&["job", "pages", "acme.example"]);
        let linked = pages.iter().find(|page| page["url"] != HOME).unwrap();
        assert_eq!((&linked["priority"], &linked["rank"]), (&json!(priority), &json!(rank)), "{mode}");
    }
    let ran = Queue::nowhere().run(&["job", "create", HOME, "--mode", "random"], "");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("hierarchy"), "{}", ran.stderr);
}

#[test]
fn a_job_is_named_by_its_host_unless_somebody_names_it() {
    let queue = Queue::nowhere();
    queue.good(&["collection", "add", "acme.example-2"]);
    let cases: [(&[&str], &str); 4] = [
        (&["https://acme.example/shop"], "acme.example"),
        (&["http://ACME.example:8080/", "https://other.example/"], "acme.example-3"),
        (&["https://acme.example/about", "--name", "about"], "about"),
        (&["https://other.example/b"], "other.example"),
    ];
    for (args, name) in cases {
        assert_eq!(queue.good(&[&["job", "create"], args].concat())[0]["id"], name, "{args:?}");
    }
    let ran = queue.run(&["job", "create", "https://acme.example/x", "--name", "about"], "");
    assert_eq!((ran.status, ran.stderr.contains("is there already")), (2, true), "{}", ran.stderr);
    for command in ["pages", "show", "pause"] {
        let ran = queue.run(&["job", command, "nothing"], "");
        assert_eq!(
            (ran.status, ran.stderr.as_str()),
            (2, "forager: there is no job \"nothing\"\n"),
            "{command}"
        );
    }
}
