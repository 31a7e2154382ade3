//! `forager watch` and `forager run`: pages that are looked at again and again.

use crate::common;
use crate::web;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::web::{CONTACT, Field, Started, each, plain_host, wait_until};
use forager_site::{Answer, Asked, Host, Site};
use serde_json::{Value, json};

const HOST: &str = "a.test";
const OFFICE: &str = "office.test";

/// A page of which a test decides what it says.
#[derive(Clone, Default)]
struct Board(Arc<AtomicUsize>);

impl Board {
    /// Says something new from now on.
    fn change(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// A price that changes, under a clock that always goes.
    fn page(&self) -> impl Fn(&Asked<'_>) -> Answer + Send + Sync + 'static {
        let version = self.0.clone();
        move |asked| {
            let price = 10 + version.load(Ordering::SeqCst);
            Answer::html(format!(
                "<title>Prices</title><main><h1>Prices</h1><p>A boat costs {price} euros a day.</p>\
                 <p>Oars are included in the price of every boat that we rent.</p></main>\
                 <script>var now = {:?};</script><!-- {} -->",
                asked.now.to_string(),
                asked.now,
            ))
        }
    }

    /// The same, known by a tag and without a clock.
    fn tagged(&self) -> impl Fn(&Asked<'_>) -> Answer + Send + Sync + 'static {
        let version = self.0.clone();
        move |_| {
            let number = version.load(Ordering::SeqCst);
            let text = format!("<main><p>Rule number {number} applies to all who come here.</p></main>");
            Answer::html(text).etag(&format!("v{number}"))
        }
    }
}

fn watch(field: &Field, path: &str, more: &[&str]) -> Started {
    let url = field.url(HOST, path);
    Started::new(&mut field.queue.command(&[&["watch", &url, "--every", "1s", "--quiet"], more].concat()))
}

#[test]
fn a_change_is_printed_by_line_and_noise_is_none() {
    let board = Board::default();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", board.page())));
    // A page that is given twice is one.
    let watching = watch(&field, "/", &["--on-change", "cat >> seen.jsonl", &field.url(HOST, "/")]);
    field.wait_for(HOST, 3);
    board.change();
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let ran = watching.end();
    assert_eq!((ran.status, ran.stderr.as_str()), (11, ""), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "one change, though the clock goes: {ran:?}");
    assert!(lines[0].ends_with(&field.url(HOST, "/")), "{ran:?}");
    assert_eq!(lines[1..], ["  - A boat costs 10 euros a day.", "  + A boat costs 11 euros a day."]);

    let told = field.lines("seen.jsonl");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["url"], field.url(HOST, "/").as_str());
    assert_eq!(told[0]["added"], serde_json::json!(["A boat costs 11 euros a day."]));
    let times = field.times(HOST, "/");
    let least = jiff::SignedDuration::from_millis(1000) - web::TOLERANCE;
    for pair in times.windows(2) {
        assert!(pair[1].duration_since(pair[0]) >= least, "{times:?}");
    }
    field.assert_audit();
}

#[test]
fn a_page_that_redirects_elsewhere_says_from_where_to_where() {
    let board = Board::default();
    let (version, price) = (board.0.clone(), board.page());
    let host = Host::new(HOST).made("/", move |asked: &Asked<'_>| match version.load(Ordering::SeqCst) {
        0 => price(asked),
        number => Answer::redirect(302, &format!("/target/{number}")),
    });
    let field = Field::new(Site::new().host(host));
    let watching = watch(&field, "/", &["--json"]);
    for looks in [2, 3, 2] {
        let before = field.paths(HOST).len();
        field.wait_for(HOST, before + looks);
        board.change();
    }
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let ran = watching.end();
    let target = |number: usize| field.url(HOST, &format!("/target/{number}"));
    let says = |number: usize| format!("redirects to {}", target(number));
    let rows: Vec<Value> = ran.rows();
    assert_eq!(rows.len(), 3, "{ran:?}");
    assert_eq!((&rows[0]["redirect"], &rows[0]["redirectBefore"]), (&json!(target(1)), &Value::Null));
    assert_eq!(rows[0]["added"], json!([says(1)]));
    assert!(rows[0]["removed"].to_string().contains("A boat costs 10 euros a day."), "{}", rows[0]);
    assert_eq!((&rows[1]["redirect"], &rows[1]["redirectBefore"]), (&json!(target(2)), &json!(target(1))));
    assert_eq!((&rows[1]["added"], &rows[1]["removed"]), (&json!([says(2)]), &json!([says(1)])));
    for number in 1..=3 {
        let advice = format!("{}; watch that page instead", says(number));
        assert_eq!(ran.stderr.matches(&advice).count(), 1, "each is told once: {}", ran.stderr);
    }
    let events = field.run(&["events", "--json"]).good_rows();
    let told =
        events.iter().filter(|event| event["event"]["changed"]["difference"]["removed"] == json!([says(1)]));
    assert_eq!(told.count(), 1, "{events:?}");
}

#[test]
fn a_page_that_disappears_is_told_and_looked_at_as_often_as_before() {
    let board = Board::default();
    let (version, price) = (board.0.clone(), board.page());
    let host = Host::new(HOST).made("/", move |asked: &Asked<'_>| match version.load(Ordering::SeqCst) {
        1 => Answer::error(404),
        2 => Answer::error(410),
        3 => Answer::error(500),
        _ => price(asked),
    });
    let field = Field::new(Site::new().host(host));
    let watching = watch(&field, "/", &["--on-change", "cat >> seen.jsonl"]);
    // There, 404, 410, 500, and there again, with another price: each is looked at twice, a second apart.
    for _ in 0..4 {
        let before = field.paths(HOST).len();
        field.wait_for(HOST, before + 2);
        board.change();
    }
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let ran = watching.end();
    let lines: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("  ")).collect();
    let want = [
        "  + the page is gone",
        "  - A boat costs 10 euros a day.",
        "  + the page is there again",
        "  + A boat costs 14 euros a day.",
    ];
    assert_eq!(lines, want, "{ran:?}");
    let added: Vec<Value> = field.lines("seen.jsonl").into_iter().map(|line| line["added"].clone()).collect();
    let back = json!(["the page is there again", "A boat costs 14 euros a day."]);
    assert_eq!(added, [json!(["the page is gone"]), back]);
    let events = field.run(&["events", "--json"]).good_rows();
    assert_eq!(
        events.iter().filter(|row| row.to_string().contains("the page is gone")).count(),
        1,
        "{events:?}"
    );
    field.assert_audit();
}

#[test]
fn a_change_of_which_not_all_is_told_says_so() {
    let board = Board::default();
    let version = board.0.clone();
    let host = Host::new(HOST).made("/", move |_: &Asked<'_>| {
        let number = version.load(Ordering::SeqCst);
        let lines =
            (0..120).map(|line| format!("<p>Rule {line} of edition {number} holds for everybody.</p>"));
        Answer::html(format!("<main>{}</main>", lines.collect::<String>()))
    });
    let field = Field::new(Site::new().host(host));
    let watching = watch(&field, "/", &["--json", "--on-change", "cat >> seen.jsonl"]);
    field.wait_for(HOST, 2);
    board.change();
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let ran = watching.end();
    let row = &ran.rows()[0];
    assert_eq!(row["more"], true, "{row}");
    for (list, edition) in [("added", 1), ("removed", 0)] {
        let lines = row[list].as_array().unwrap();
        assert_eq!((lines.len(), &lines[100]), (101, &json!("[20 more]")), "{list}");
        assert_eq!(lines[99], format!("Rule 99 of edition {edition} holds for everybody."), "{list}");
    }
    assert_eq!(field.lines("seen.jsonl"), *std::slice::from_ref(row));
    let events = field.run(&["events", "--json"]).good_rows();
    assert_eq!(events[0]["event"]["changed"]["difference"]["added"][100], "[20 more]", "{events:?}");
}

#[test]
fn every_byte_counts_if_that_is_asked_for() {
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", Board::default().page())));
    let watching = watch(&field, "/", &["--exact", "--json"]);
    field.wait_for(HOST, 3);
    watching.signal("TERM");
    let ran = watching.end();
    assert_eq!(ran.status, 11, "{ran:?}");
    let rows: Vec<Value> = ran.rows();
    assert!(rows.len() >= 2, "the clock counts: {ran:?}");
    assert!(rows.iter().all(|row| row["url"] == field.url(HOST, "/").as_str() && row["at"].is_string()));
}

#[test]
fn of_what_has_no_text_it_is_told_that_its_bytes_have_changed() {
    let version = Arc::new(AtomicUsize::new(0));
    let said = version.clone();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/rules.pdf", move |_: &Asked<'_>| {
        Answer::new("application/pdf", format!("%PDF-1.4 {}\u{0}", said.load(Ordering::SeqCst)))
    })));
    let watching = watch(&field, "/rules.pdf", &[]);
    field.wait_for(HOST, 1);
    version.store(1, Ordering::SeqCst);
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let ran = watching.end();
    let (page, change) = ran.stdout.split_once('\n').unwrap();
    assert!(page.ends_with(&format!(" UTC {}", field.url(HOST, "/rules.pdf"))), "{ran:?}");
    assert_eq!(change, "  its bytes have changed; there is no line of text to show it\n", "{ran:?}");
}

#[test]
fn a_page_that_has_not_changed_is_not_sent_again() {
    let board = Board::default();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", board.tagged())));
    let watching = watch(&field, "/", &["--json"]);
    field.wait_for(HOST, 3);
    board.change();
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 2);
    watching.signal("INT");
    let rows = watching.end().interrupted_rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["removed"], serde_json::json!(["Rule number 0 applies to all who come here."]));

    let pages: Vec<_> = field.seen().into_iter().filter(|seen| seen.path == "/").collect();
    assert_eq!((pages[0].status, pages[0].if_none_match.as_deref()), (Some(200), None));
    let tags: Vec<_> = pages.iter().skip(1).map(|seen| seen.if_none_match.as_deref()).collect();
    assert!(tags.iter().all(|tag| matches!(tag, Some("\"v0\"" | "\"v1\""))), "{tags:?}");
    let statuses: Vec<_> = pages.iter().map(|seen| seen.status.unwrap_or_default()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 2, "{statuses:?}");
    assert!(statuses.contains(&304), "{statuses:?}");
}

#[test]
fn what_was_watched_is_remembered() {
    let board = Board::default();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", board.page())));
    for _ in 0..2 {
        let before = field.paths(HOST).len();
        let watching = watch(&field, "/", &["--json"]);
        field.wait_for(HOST, before + 1);
        std::thread::sleep(std::time::Duration::from_millis(300));
        watching.signal("INT");
        watching.end().interrupted_rows();
        board.change();
    }
    let before = field.paths(HOST).len();
    let watching = watch(&field, "/", &["--json"]);
    field.wait_for(HOST, before + 1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    watching.signal("INT");
    let rows = watching.end().interrupted_rows();
    assert_eq!(rows.len(), 1, "changed while nobody watched: {rows:?}");
    assert_eq!(rows[0]["removed"], serde_json::json!(["A boat costs 11 euros a day."]));
}

#[test]
fn pages_that_were_watched_before_are_named_and_can_be_let_go() {
    let field = Field::new(Site::new().host(plain_host(HOST, 2)));
    let page = |number: u32| field.url(HOST, &format!("/{number}"));
    // Watches a page until these have been looked at, and returns what was told.
    let watched = |number: u32, paths: &[&str]| {
        let before: Vec<usize> = paths.iter().map(|path| field.times(HOST, path).len()).collect();
        let command = ["watch", &page(number), "--every", "1s"];
        let watching = Started::new(&mut field.queue.command(&command));
        for (path, before) in paths.iter().zip(before) {
            wait_until(path, || field.times(HOST, path).len() > before + 1);
        }
        watching.signal("INT");
        let ran = watching.end();
        assert_eq!(ran.status, 11, "{ran:?}");
        ran.stderr
    };
    let told = watched(1, &["/1"]);
    assert!(told.contains("watching 1 page, ") && !told.contains("since earlier"), "{told}");
    let told = watched(2, &["/1", "/2"]);
    let named = format!(
        "watched since earlier, and from now on with the options given now: {}; \"forager seed remove URL\" ends that",
        page(1)
    );
    assert!(told.contains("watching 2 pages, ") && told.contains(&named), "{told}");
    assert_eq!(field.run(&["seed", "remove", &page(1)]).status, 0);
    let before = field.times(HOST, "/1").len();
    let told = watched(2, &["/2"]);
    assert!(told.contains("watching 1 page, ") && !told.contains("since earlier"), "{told}");
    assert_eq!(field.times(HOST, "/1").len(), before, "it is not looked at any more");
}

#[test]
fn only_the_part_that_is_named_counts() {
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", |asked: &Asked<'_>| {
        let text = format!(
            "<main><p>Visitors so far: {}</p><p id=\"rule\">No boats on Monday at all.</p></main>",
            asked.now
        );
        Answer::html(text)
    })));
    let watching = watch(&field, "/", &["--json", "--content", "#rule"]);
    field.wait_for(HOST, 3);
    watching.signal("INT");
    assert_eq!(watching.end().interrupted_rows().len(), 0);
}

const COLLECTION: &str =
    "[[collections]]\nid = \"c\"\n[[profiles]]\nid = \"p\"\ncollection = \"c\"\nscope = \"host\"\n";

/// Adds collections, profiles and seeds to the configuration.
fn harvest(field: &Field, every: &str, seeds: &[&str]) {
    let head = format!(
        "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n{COLLECTION}every = {every:?}\n"
    );
    let seed = |host: &&str| format!("[[seeds]]\nurl = \"{}\"\nprofiles = [\"p\"]\n", field.url(host, "/"));
    let seeds: Vec<String> = seeds.iter().map(seed).collect();
    field.configure(&(head + &seeds.concat()));
}

#[test]
fn a_run_fetches_all_seeds_and_ends_when_nothing_is_due() {
    let field = Field::new(Site::new().host(plain_host(HOST, 3)).host(plain_host(OFFICE, 4)));
    harvest(&field, "1h", &[HOST, OFFICE]);
    let ran = field.run(&["run", "--until-idle", "--out", "pages.jsonl", "--quiet"]);
    assert_eq!((ran.status, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert_eq!((field.counts(HOST), field.counts(OFFICE)), (each(3, 1), each(4, 1)));
    assert_eq!(field.lines("pages.jsonl").len(), 9);
    // Nothing is due again for an hour.
    assert_eq!(field.run(&["run", "--until-idle"]).status, 0);
    assert_eq!((field.counts(HOST), field.counts(OFFICE)), (each(3, 1), each(4, 1)));
    field.assert_polite(2, std::time::Duration::from_millis(50));
    field.assert_audit();
}

#[test]
fn a_run_with_the_preset_comes_back_to_critical_pages_within_four_hours() {
    const PAGES: usize = 30;
    let four_hours = jiff::SignedDuration::from_hours(4) + jiff::SignedDuration::from_mins(1);
    // Without it the random part goes up as often as down, so that some of so many are later.
    for (preset, is_promised) in [("preset = \"sentinel\"\n", true), ("", false)] {
        let field = Field::new(Site::new().host(plain_host(HOST, PAGES)));
        let seed = field.url(HOST, "/");
        field.configure(&format!(
            "contact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n{COLLECTION}[[seeds]]\nurl = {seed:?}\nprofiles = \
             [\"p\"]\n[[classify.rows]]\npattern = \".\"\nnode = \"LEAF\"\nrisk = \"CRITICAL\"\n[sentinel]\n{preset}"
        ));
        let ran = field.run(&["run", "--until-idle", "--out", "pages.jsonl", "--quiet"]);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
        let lines = field.lines("pages.jsonl");
        assert_eq!(lines.len(), PAGES + 1);
        let time = |line: &Value, key: &str| line[key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        let is_in_time = |line: &&Value| time(line, "due").duration_since(time(line, "at")) <= four_hours;
        let in_time = lines.iter().filter(is_in_time).count();
        assert_eq!(in_time == lines.len(), is_promised, "{preset:?}: {in_time} of {}", lines.len());
    }
}

#[test]
fn a_run_until_idle_ends_when_all_that_is_left_waits_for_a_person() {
    let field = Field::new(Site::new().host(plain_host(HOST, 1)));
    harvest(&field, "1h", &[HOST]);
    assert_eq!(field.run(&["apply"]).status, 0);
    assert_eq!(field.run(&["host", "set", HOST, "--block"]).status, 0);
    let ran = field.run(&["run", "--until-idle"]);
    assert_eq!(ran.status, 17, "{ran:?}");
    assert!(ran.stderr.contains("what is left waits for a person"), "{ran:?}");
    assert!(field.counts(HOST).is_empty());
}

#[test]
fn a_run_comes_back_writes_down_changes_and_drains() {
    let board = Board::default();
    let host = plain_host(HOST, 2).made("/1", board.page());
    let field = Field::new(Site::new().host(host));
    harvest(&field, "1s", &[HOST]);
    let command = [
        "run",
        "--quiet",
        "--out",
        "pages.jsonl",
        "--changes",
        "changes.jsonl",
        "--on-change",
        "cat >> told.jsonl",
    ];
    let running = Started::new(&mut field.queue.command(&command));
    wait_until("a second look", || field.times(HOST, "/1").len() >= 2);
    board.change();
    let before = field.times(HOST, "/1").len();
    wait_until("two more", || field.times(HOST, "/1").len() >= before + 2);
    running.signal("TERM");
    let ran = running.end();
    assert_eq!((ran.status, ran.stderr.as_str()), (11, ""), "{ran:?}");
    let changes = field.lines("changes.jsonl");
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["url"], field.url(HOST, "/1").as_str());
    assert_eq!(changes, field.lines("told.jsonl"));
    assert_eq!(field.lines("pages.jsonl").len(), field.paths(HOST).len(), "what was under way was finished");
    assert!(field.seen().iter().all(|seen| seen.whole));
    let events = field.run(&["events", "--json"]).good_rows();
    let told = events.iter().filter(|event| event.to_string().contains("A boat costs 11 euros a day."));
    assert_eq!(told.count(), 1, "{events:?}");
    field.assert_audit();
}

#[test]
fn a_run_that_is_hung_up_on_reads_its_configuration_again() {
    let field = Field::new(Site::new().host(plain_host(HOST, 2)).host(plain_host(OFFICE, 2)));
    harvest(&field, "1h", &[HOST]);
    let running = Started::new(&mut field.queue.command(&["run"]));
    field.wait_for(HOST, 3);
    assert_eq!(field.paths(OFFICE).len(), 0);
    for round in 1..=2 {
        harvest(&field, "1h", &[HOST, OFFICE]);
        running.signal("HUP");
        field.wait_for(OFFICE, 3);
        // A second time it finds nothing new, and goes on all the same.
        std::thread::sleep(std::time::Duration::from_millis(300 * round));
    }
    running.signal("TERM");
    assert_eq!(running.end().status, 11);
    assert_eq!((field.counts(HOST), field.counts(OFFICE)), (each(2, 1), each(2, 1)));
    field.assert_audit();
}

/// All that it began with may be done when it is asked to read its configuration again.
#[test]
fn a_run_that_is_hung_up_on_with_nothing_left_to_do_goes_on_waiting() {
    let field = Field::new(Site::new().host(plain_host(HOST, 2)).host(plain_host(OFFICE, 2)));
    assert_eq!(field.run(&["job", "create", &field.url(HOST, "/"), "--name", "once"]).status, 0);
    let file = field.file("told.jsonl");
    let running = Started::telling(&mut field.queue.command(&["run", "--log", "json"]), &file);
    let told = |what: &str| std::fs::read_to_string(&file).unwrap().matches(what).count();
    field.wait_for(HOST, 3);
    wait_until("the end of the job", || told("\"event\":\"page\"") == 3);
    running.signal("HUP");
    wait_until("it to be told", || {
        told("there is no collection to crawl: all are disabled, or jobs that are done") == 1
    });
    harvest(&field, "1h", &[OFFICE]);
    running.signal("HUP");
    field.wait_for(OFFICE, 3);
    running.signal("TERM");
    assert_eq!(running.end().status, 11);
    assert_eq!((field.counts(HOST), field.counts(OFFICE)), (each(2, 1), each(2, 1)));
}

#[test]
fn a_configuration_that_is_broken_meanwhile_is_told_and_the_one_before_counts_on() {
    let field = Field::new(Site::new().host(plain_host(HOST, 1)).host(plain_host(OFFICE, 2)));
    harvest(&field, "1s", &[HOST]);
    let running = Started::telling(&mut field.queue.command(&["run", "--quiet"]), &field.file("told"));
    field.wait_for(HOST, 2);
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    let good = std::fs::read_to_string(field.file("forager.toml")).unwrap();
    let line = good.lines().count() + 1;
    let no_contact = good.replace(&format!("contact = {CONTACT:?}\n"), "");
    let table = [
        ("no TOML", format!("{good}every = \n"), format!("forager.toml:{line}")),
        ("an unknown key", format!("{good}colour = 1\n"), format!("forager.toml:{line}")),
        ("nothing that can be opened with", no_contact, "--contact".to_owned()),
    ];
    for (round, (name, broken, want)) in (1..).zip(table) {
        std::fs::write(field.file("forager.toml"), broken).unwrap();
        running.signal("HUP");
        let again = "; going on with the configuration as it was before\n";
        wait_until(name, || told().matches(again).count() == round);
        assert!(told().contains(&want), "{name}: {}", told());
        let before = field.paths(HOST).len();
        field.wait_for(HOST, before + 2);
    }
    assert_eq!(field.paths(OFFICE).len(), 0);
    // What is mended counts.
    harvest(&field, "1s", &[HOST, OFFICE]);
    running.signal("HUP");
    field.wait_for(OFFICE, 3);
    running.signal("TERM");
    assert_eq!(running.end().status, 11);
}

#[test]
fn what_only_the_queue_has_is_named() {
    let field = Field::new(Site::new().host(plain_host(HOST, 1)).host(plain_host(OFFICE, 1)));
    harvest(&field, "1h", &[HOST, OFFICE]);
    let ran = field.run(&["run", "--until-idle"]);
    assert!(!ran.stderr.contains("not in the configuration"), "{ran:?}");
    harvest(&field, "1h", &[HOST]);
    let ran = field.run(&["run", "--until-idle", "--config", "forager.toml"]);
    let told = format!(
        "not in the configuration, and crawled all the same as long as the queue has them: seed {}; \"forager apply \
         --prune --config forager.toml\" removes them",
        field.url(OFFICE, "/")
    );
    assert!(ran.stderr.contains(&told), "{ran:?}");
    assert_eq!(field.run(&["apply", "--prune", "--yes"]).status, 0);
    let ran = field.run(&["run", "--until-idle"]);
    assert!(!ran.stderr.contains("not in the configuration"), "{ran:?}");
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let table: [(&str, &[&str]); 5] = [
        ("a watch that would say nothing for long", &["watch", "--every", "1h", "--quiet"]),
        ("a run that writes pages", &["run", "--quiet", "--out", "-"]),
        ("a run that writes changes", &["run", "--quiet", "--changes", "-"]),
        ("a watch for people", &["watch", "--every", "1s", "--quiet", "--exact"]),
        ("a watch for programs", &["watch", "--every", "1s", "--quiet", "--exact", "--json"]),
    ];
    for (name, command) in table {
        let visitors = AtomicUsize::new(10);
        let field = Field::new(Site::new().host(Host::new(HOST).made("/", move |_: &Asked<'_>| {
            let number = visitors.fetch_add(1, Ordering::SeqCst);
            Answer::html(format!(
                "<main><p>So many visitors came here until now: {number} people.</p></main>"
            ))
        })));
        harvest(&field, "1s", &[HOST]);
        let mut command = field.queue.command(command);
        if name.starts_with("a watch") {
            command.arg(field.url(HOST, "/"));
        }
        let mut running = Started::new(&mut command);
        field.wait_for(HOST, 1);
        running.desert();
        let ran = running.end();
        assert_eq!(ran.status, 11, "{name}: {ran:?}");
        assert_eq!(
            ran.stderr, "forager: whoever read the output is gone, so that the crawl was stopped\n",
            "{name}"
        );
        field.assert_audit();
    }
}

#[test]
fn a_change_is_not_glued_to_a_line_that_is_not_whole() {
    let board = Board::default();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", board.page())));
    harvest(&field, "1s", &[HOST]);
    std::fs::write(field.file("changes.jsonl"), "{\"url\":\"before\"}\n{\"url\":\"brok").unwrap();
    let command = ["run", "--quiet", "--changes", "changes.jsonl"];
    let running = Started::new(&mut field.queue.command(&command));
    wait_until("a first look", || !field.times(HOST, "/").is_empty());
    board.change();
    wait_until("a change", || {
        std::fs::read_to_string(field.file("changes.jsonl")).unwrap().contains("collection")
    });
    running.signal("TERM");
    let ran = running.end();
    assert_eq!(ran.status, 11, "{ran:?}");
    assert!(ran.stderr.contains("changes.jsonl ended with a line that is not whole"), "{ran:?}");
    let changes = field.lines("changes.jsonl");
    let urls: Vec<&str> = changes.iter().map(|change| change["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["before", &field.url(HOST, "/")]);
}

/// A run over a page that changes twice, with a command for each change that does not do well.
fn with_hook(hook: &str, stop: impl Fn(&Started)) -> common::Ran {
    let board = Board::default();
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", board.page())));
    harvest(&field, "1s", &[HOST]);
    let command = ["run", "--quiet", "--changes", "changes.jsonl", "--on-change", hook];
    let running = Started::new(&mut field.queue.command(&command));
    wait_until("a first look", || !field.times(HOST, "/").is_empty());
    for number in 1..=2 {
        board.change();
        wait_until("a change", || {
            let text = std::fs::read_to_string(field.file("changes.jsonl")).unwrap_or_default();
            text.lines().count() == number
        });
    }
    let before = field.paths(HOST).len();
    field.wait_for(HOST, before + 1); // the crawl goes on, whatever the command does
    stop(&running);
    let ran = running.end();
    field.assert_audit();
    ran
}

#[test]
fn a_command_that_fails_does_not_stop_a_crawl() {
    let table = [
        ("exit 3", "forager: \"exit 3\" failed: exit status: 3"),
        ("exec 2> /dev/null; /no/such/program", "failed: exit status: 127"),
        ("kill -9 $$", "failed: signal: 9"),
    ];
    for (hook, told) in table {
        let ran = with_hook(hook, |running| running.signal("INT"));
        assert_eq!(ran.status, 11, "{hook}: {ran:?}");
        assert_eq!(ran.stderr.matches(told).count(), 2, "{hook}: {ran:?}");
    }
}

#[test]
fn a_command_that_hangs_does_not_stop_a_crawl_nor_its_end() {
    let ran = with_hook("sleep 600", |running| {
        running.signal("INT");
        std::thread::sleep(std::time::Duration::from_secs(2));
        running.signal("INT");
    });
    assert_eq!(ran.status, 13, "{ran:?}");
    for told in [
        "waiting for \"sleep 600\" to end; Ctrl-C twice ends it",
        "\"sleep 600\" did not end, and was ended",
        "2 changes were not told to \"sleep 600\"; \"forager events\" has them",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {ran:?}");
    }
}
