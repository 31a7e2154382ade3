//! A crawl that is stopped, or killed, goes on where it was: nothing is lost, nothing fetched twice, nobody hurried.

use crate::web;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::web::{ANOTHER_WISH, Field, LONG, Started, each, page, plain_host, wait_until};
use forager_site::{Answer, Host, RetryAfter, Seen, Site};
use jiff::SignedDuration;
use serde_json::{Value, json};

const HOST: &str = "a.test";
const GAP: Duration = Duration::from_millis(50);

/// A host whose pages take so long to answer, until it is told to be quick.
fn slow_host(pages: usize, delay: Duration) -> (Host, Arc<AtomicBool>) {
    let is_quick = Arc::new(AtomicBool::new(false));
    let host = (1..=pages).fold(plain_host(HOST, pages), |host, number| {
        let is_quick = is_quick.clone();
        host.made(format!("/{number}"), move |_| {
            let answer = page("Slow", &["/"]);
            if is_quick.load(Ordering::SeqCst) { answer } else { answer.slow(delay) }
        })
    });
    (host, is_quick)
}

/// The pages that `pages.jsonl` has, each at most once.
#[track_caller]
fn written(field: &Field) -> BTreeSet<String> {
    let start = field.url(HOST, "");
    let mut paths = BTreeSet::new();
    for line in field.lines("pages.jsonl") {
        let path = line["url"].as_str().unwrap().strip_prefix(&start).unwrap().to_owned();
        assert!(paths.insert(path), "twice: {line}");
    }
    paths
}

#[test]
fn what_a_dead_crawl_had_under_way_keeps_no_other_waiting() {
    let slow = |_: &forager_site::Asked<'_>| page("Slow", &[]).slow(Duration::from_mins(5));
    let host = plain_host(HOST, 2).made("/slow/1", slow).made("/slow/2", slow);
    let field = Field::new(Site::new().host(host));
    let (first, second) = (field.url(HOST, "/slow/1"), field.url(HOST, "/slow/2"));
    let running = Started::new(&mut field.queue.command(&["crawl", &first, &second, "--name", "slow"]));
    field.wait_for(HOST, 2); // as many as a host has at a time
    running.kill();
    let watched = field.url(HOST, "/1");
    let others: [(&[&str], &str); 2] = [
        (&["crawl", &field.url(HOST, "/"), "--name", "other", "--quiet"], "/"),
        (&["watch", &watched, "--quiet"], "/1"),
    ];
    for (command, path) in others {
        let before = field.times(HOST, path).len();
        let running = Started::new(&mut field.queue.command(command));
        wait_until(path, || field.times(HOST, path).len() > before);
        running.kill();
    }
}

#[test]
fn one_interrupt_finishes_what_is_under_way() {
    for signal in ["INT", "TERM"] {
        let (host, _) = slow_host(20, Duration::from_millis(300));
        let field = Field::new(Site::new().host(host));
        let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
        field.wait_for(HOST, 6);
        crawl.signal(signal);
        assert_eq!(crawl.end().status, 11, "{signal}");
        let (asked, done) = (field.counts(HOST), written(&field));
        assert!(asked.len() < 20, "{signal}: it stopped early");
        assert_eq!(done, asked.into_keys().collect(), "{signal}: what was asked for is done");
        assert!(field.seen().iter().all(|seen| seen.whole), "{signal}: all of it was read");

        field.crawl(HOST, &[]).good_rows();
        assert_eq!(
            field.times(HOST, "/robots.txt").len(),
            1,
            "{signal}: rules are known since the first time"
        );
        assert_eq!(field.counts(HOST), each(20, 1), "{signal}");
        assert_eq!(written(&field).len(), 21, "{signal}");
        field.assert_polite(2, GAP);
        field.assert_audit();
    }
}

/// What was under way was all that was left, so that nothing is left to go on with.
#[test]
fn an_interrupt_while_the_last_page_is_under_way_ends_a_crawl_that_is_done() {
    let table: [(&str, &[&str], &str); 2] = [
        ("the last page", &[], "done"),
        ("the last that is allowed", &["--limit", "2"], "the limit of 2 pages"),
    ];
    for (name, more, end) in table {
        let (host, _) = slow_host(if more.is_empty() { 1 } else { 5 }, Duration::from_secs(2));
        let field = Field::new(Site::new().host(host));
        let crawl = Started::new(&mut field.crawl_command(HOST, more));
        field.wait_for(HOST, 2);
        crawl.signal("INT");
        let ran = crawl.end();
        assert_eq!((ran.status, &ran.rows()[0]["end"]), (0, &end.into()), "{name}: {ran:?}");
        assert_eq!(written(&field).len(), 2, "{name}");
    }
}

#[test]
fn a_second_interrupt_stops_at_once_and_loses_nothing() {
    // Whoever waited for these answers would wait too long.
    let (host, is_quick) = slow_host(8, LONG * 2);
    let field = Field::new(Site::new().host(host));
    field.configure(&format!(
        "contact = \"{}\"\nallow_addresses = [\"127.0.0.0/8\"]\nanswer_timeout = \"5m\"\n",
        web::CONTACT
    ));
    let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
    field.wait_for(HOST, 3);
    let start = Instant::now();
    crawl.signal("INT");
    std::thread::sleep(ANOTHER_WISH);
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 13);
    assert!(start.elapsed() < LONG);
    let dropped: Vec<String> = field.paths(HOST).into_iter().filter(|path| path != "/").collect();
    assert_eq!(dropped.len(), 2, "as many as may be under way");

    is_quick.store(true, Ordering::SeqCst);
    field.crawl(HOST, &[]).good_rows();
    let mut want = each(8, 1);
    for path in dropped {
        *want.get_mut(&path).unwrap() += 1;
    }
    assert_eq!(field.counts(HOST), want);
    assert_eq!(written(&field).len(), 9);
    field.assert_polite(2, GAP);
    let audit = field.run(&["audit", "--json"]).good_rows();
    assert_eq!(audit.len(), 1);
    assert_eq!(audit[0]["fetches"], field.seen().len(), "requests that nobody waited for are in the log too");
}

/// What robots.txt comes to is written down when that is known. Whoever is stopped before has asked for it all the same.
#[test]
fn a_request_for_robots_txt_that_nobody_waits_for_is_logged() {
    let is_quick = Arc::new(AtomicBool::new(false));
    let quick = is_quick.clone();
    let host = plain_host(HOST, 2).page("/robots.txt", Answer::redirect(302, "/moved.txt")).made(
        "/moved.txt",
        move |_| {
            let answer = Answer::error(404);
            if quick.load(Ordering::SeqCst) { answer } else { answer.slow(LONG * 2) }
        },
    );
    let field = Field::new(Site::new().host(host));
    let (gap, more) = (Duration::from_millis(1500), ["--delay", "1500ms"]);
    let crawl = Started::new(&mut field.crawl_command(HOST, &more));
    field.wait_for(HOST, 1);
    crawl.signal("INT");
    std::thread::sleep(ANOTHER_WISH);
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 13);
    let audit = field.run(&["audit", "--json"]).good_rows();
    assert_eq!(audit.len(), 1, "{audit:?}");
    assert_eq!(audit[0]["fetches"], 2, "{audit:?}");

    is_quick.store(true, Ordering::SeqCst);
    field.crawl(HOST, &more).good_rows();
    let moved = field.counts(HOST).remove("/moved.txt");
    assert_eq!((field.counts(HOST).len(), moved), (4, Some(2)));
    field.assert_polite(2, gap);
    field.assert_audit();
}

#[test]
fn a_crawl_may_be_killed_at_any_moment() {
    const PAGES: usize = 20;
    let gap = Duration::from_millis(400);
    let (host, _) = slow_host(PAGES, Duration::from_millis(120));
    let field = Field::new(Site::new().host(host));
    let more = ["--delay", "400ms"];
    let mut doubtful = BTreeSet::new();
    // Not only when a page has just come: also on the way, and before anything was asked for.
    for (requests, later) in [(0, 30), (1, 0), (2, 60), (1, 110), (2, 150), (1, 300), (2, 20)] {
        let before = field.paths(HOST).len();
        let crawl = Started::new(&mut field.crawl_command(HOST, &more));
        if requests > 0 {
            field.wait_for(HOST, before + requests);
        }
        std::thread::sleep(Duration::from_millis(later));
        crawl.kill();
        let seen = field.seen();
        // What was asked for last may have been under way; two may be at a time.
        doubtful.extend(seen.iter().rev().take(2).map(|seen| seen.path.clone()));
    }
    let done = if field.file("pages.jsonl").exists() { whole_lines(&field) } else { BTreeSet::new() };
    let killed_at = field.seen().len();
    field.crawl(HOST, &more).good_rows();

    let (counts, seen) = (field.counts(HOST), field.seen());
    assert_eq!(counts.keys().cloned().collect::<BTreeSet<_>>(), each(PAGES, 1).into_keys().collect());
    for (path, count) in &counts {
        assert!(*count == 1 || doubtful.contains(path), "{path} was fetched {count} times");
    }
    let again: Vec<&Seen> = seen.iter().skip(killed_at).filter(|seen| done.contains(&seen.path)).collect();
    assert!(again.is_empty(), "written down, and fetched again: {again:?}");
    field.assert_polite(2, gap);
    let audit = field.run(&["audit", "--json"]).good_rows();
    assert_eq!(audit.len(), 1);
    // Lines that could not be written any more are made up for.
    assert_eq!(written(&field), each(PAGES, 1).into_keys().collect(), "every page has its line, and one");
}

/// Takes the last lines away from `pages.jsonl`, as if they had not been written. Says which pages they are of.
fn lose_lines(field: &Field, count: usize) -> Vec<String> {
    let text = std::fs::read_to_string(field.file("pages.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let lost = lines.split_off(lines.len() - count);
    let kept: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    std::fs::write(field.file("pages.jsonl"), kept).unwrap();
    let url = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["url"].as_str().unwrap().to_owned();
    lost.iter().map(url).collect()
}

#[test]
fn lines_that_were_not_written_any_more_are_made_up_for() {
    let (host, _) = slow_host(20, Duration::from_millis(100));
    let field = Field::new(Site::new().host(host));
    let crawl = Started::new(&mut field.crawl_command(HOST, &["--name", "job"]));
    field.wait_for(HOST, 8);
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 11);
    let is_made_up = |line: &&Value| line["recovered"] == true;
    let made_up =
        || -> Vec<Value> { field.lines("pages.jsonl").iter().filter(is_made_up).cloned().collect() };
    assert_eq!(made_up(), Vec::<Value>::new());

    let lost = lose_lines(&field, 3);
    field.crawl(HOST, &["--name", "job"]).good_rows();
    assert_eq!(written(&field), each(20, 1).into_keys().collect());
    let lines = made_up();
    assert_eq!(lines.iter().map(|line| line["url"].as_str().unwrap()).collect::<Vec<_>>(), lost);
    for line in &lines {
        assert_eq!((&line["status"], &line["collection"]), (&json!(200), &json!("job")), "{line}");
        assert!(line.get("links").is_none(), "what is not known is not said: {line}");
    }

    // The last ones of a crawl that is done, too; and another file lacks nothing.
    let lost = lose_lines(&field, 2);
    field.crawl(HOST, &["--name", "job"]).good_rows();
    let lines = made_up();
    assert_eq!(lines[3..].iter().map(|line| line["url"].as_str().unwrap()).collect::<Vec<_>>(), lost);
    assert_eq!(field.lines("pages.jsonl").len(), 42, "two crawls");
    let other = ["--name", "job", "--out", "other.jsonl", "--json", "--quiet"];
    field.run(&[&["crawl", &field.url(HOST, "/")], &other[..]].concat()).good_rows();
    assert!(field.lines("other.jsonl").iter().all(|line| line.get("recovered").is_none()));
}

/// Stops a crawl in this way, and goes on at once.
fn stop_and_go_on(field: &Field, more: &[&str], crawl: Started, how: &str) {
    match how {
        "KILL" => crawl.kill(),
        "INT twice" => {
            crawl.signal("INT");
            std::thread::sleep(ANOTHER_WISH);
            crawl.signal("INT");
            assert!(matches!(crawl.end().status, 11 | 13), "{how}");
        }
        signal => {
            crawl.signal(signal);
            assert_eq!(crawl.end().status, 11, "{how}");
        }
    }
    field.crawl(HOST, more).good_rows();
}

const HOW: [&str; 3] = ["KILL", "INT", "INT twice"];

#[test]
fn a_gap_is_as_long_across_a_restart() {
    for how in HOW {
        let field = Field::new(Site::new().host(plain_host(HOST, 3)));
        let more = ["--delay", "1s"];
        let crawl = Started::new(&mut field.crawl_command(HOST, &more));
        field.wait_for(HOST, 2);
        stop_and_go_on(&field, &more, crawl, how);
        assert!(field.counts(HOST).len() == 4, "{how}");
        field.assert_polite(2, Duration::from_secs(1));
        field.run(&["audit", "--json"]).good_rows();
    }
}

#[test]
fn a_crawl_delay_is_kept_across_a_restart() {
    for how in HOW {
        let host = plain_host(HOST, 3).robots("User-agent: *\nCrawl-delay: 1\n");
        let field = Field::new(Site::new().host(host));
        let crawl = Started::new(&mut field.crawl_command(HOST, &[]));
        field.wait_for(HOST, 1);
        stop_and_go_on(&field, &[], crawl, how);
        assert!(field.counts(HOST).len() == 4, "{how}");
        field.assert_polite(1, Duration::from_secs(1));
        field.run(&["audit", "--json"]).good_rows();
    }
}

#[test]
fn a_host_is_left_alone_as_long_across_a_restart() {
    for how in HOW {
        let asked = Arc::new(AtomicBool::new(false));
        let host = plain_host(HOST, 3).made("/1", move |_| {
            let is_first = !asked.swap(true, Ordering::SeqCst);
            if is_first { Answer::busy(RetryAfter::Seconds(4)) } else { page("There", &[]) }
        });
        let field = Field::new(Site::new().host(host));
        let more = ["--in-flight", "1"];
        let crawl = Started::new(&mut field.crawl_command(HOST, &more));
        wait_until("the refusal to be written down", || {
            std::fs::read_to_string(field.file("pages.jsonl")).unwrap_or_default().contains("\"status\":503")
        });
        stop_and_go_on(&field, &more, crawl, how);
        let refused = field.times(HOST, "/1")[0];
        let next = field.seen().into_iter().map(|seen| seen.arrived).find(|at| *at > refused).unwrap();
        let waited = next.duration_since(refused);
        assert!(waited >= SignedDuration::from_secs(4), "{how}: {waited:#}");
        assert_eq!(field.counts(HOST).len(), 4, "{how}");
        field.run(&["audit", "--json"]).good_rows();
    }
}

/// The pages that `pages.jsonl` has. A line that a crash broke off is none.
fn whole_lines(field: &Field) -> BTreeSet<String> {
    let (start, text) = (field.url(HOST, ""), std::fs::read_to_string(field.file("pages.jsonl")).unwrap());
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.map(|line| line["url"].as_str().unwrap().strip_prefix(&start).unwrap().to_owned()).collect()
}

#[test]
fn a_limit_of_time_counts_work_and_not_the_time_between() {
    let field = Field::new(Site::new().host(plain_host(HOST, 2000)));
    let more = ["--time", "8s"];
    let first = Started::new(&mut field.crawl_command(HOST, &more));
    field.wait_for(HOST, 3);
    first.signal("INT");
    assert_eq!(first.end().status, 11);
    std::thread::sleep(Duration::from_secs(9));
    let before = field.paths(HOST).len();
    let ran = field.crawl(HOST, &more);
    assert_eq!((ran.status, &ran.rows()[0]["end"]), (15, &"the limit of 8s".into()), "{ran:?}");
    assert!(field.paths(HOST).len() > before, "it went on where it was");
    assert_eq!(field.counts(HOST)["/"], 1, "it was not started anew");
    // When the time is used up, more of it goes on.
    let before = field.paths(HOST).len();
    let ran = field.crawl(HOST, &["--time", "11s"]);
    assert_eq!((ran.status, &ran.rows()[0]["end"]), (15, &"the limit of 11s".into()), "{ran:?}");
    assert!(field.paths(HOST).len() > before, "it went on again");
    assert_eq!(field.counts(HOST)["/"], 1, "it was not started anew");
    field.assert_audit();
}

/// Whoever gives a name again and means something else would have the old crawl go on, and never see what was asked for.
#[test]
fn a_name_goes_on_with_what_it_was_given_for_and_nothing_else() {
    let field = Field::new(Site::new().host(plain_host(HOST, 9)).host(plain_host("b.test", 1)));
    let (start, other) = (field.url(HOST, "/"), field.url("b.test", "/"));
    let started = ["crawl", &start, "--name", "job", "--depth", "2", "--quiet"];
    let created = ["job", "create", &start, "--name", "made", "--depth", "2"];
    assert_eq!(field.run(&[&started[..], &["--limit", "3"]].concat()).status, 0);
    assert_eq!(field.run(&created).status, 0);
    let before = field.seen().len();
    let table: [(&str, &[&str], &str); 5] = [
        ("another page", &[&other, "--depth", "2"], &format!("it does not start from {other}")),
        ("one page less", &[&other, "--depth", "2"], &format!("it starts from {start}, which is not given")),
        ("another depth", &[&start, "--depth", "3"], "its depth is 2, here 3"),
        ("no depth", &[&start], "its depth is 2, here the default"),
        (
            "less of it",
            &[&start, "--depth", "2", "--exclude", "/9"],
            "its exclude is the default, here [\"/9\"]",
        ),
    ];
    for (name, asked, why) in table {
        for job in ["job", "made"] {
            for dry in [&[][..], &["--dry-run"]] {
                let ran = field.run(&[&["crawl"], asked, &["--name", job, "--quiet"], dry].concat());
                assert_eq!(ran.status, 4, "{name}, {job}, {dry:?}: {ran:?}");
                assert!(ran.stderr.contains(why), "{name}, {job}, {dry:?}: {ran:?}");
                assert!(ran.stderr.contains("another --name"), "{name}, {job}, {dry:?}: {ran:?}");
            }
        }
    }
    assert_eq!(field.seen().len(), before, "nobody was asked");

    // What others did with the job meanwhile does not make it another one.
    assert_eq!(field.run(&["seed", "add", &other, "--profile", "job"]).status, 0);
    assert_eq!(field.run(&started).status, 0);
    assert_eq!(field.counts(HOST), each(9, 1), "it went on");
    // One that is done is in nobody's way.
    let ran = field.run(&["crawl", &other, "--name", "job", "--json", "--quiet"]);
    assert_eq!(ran.good_rows()[0]["job"], "job-2");
}

/// However many pages that were not asked for stand between the last line of a fetch and the end.
#[test]
fn lines_are_made_up_for_after_any_number_of_pages_that_were_not_asked_for() {
    let hidden: Vec<String> = (0..1100).map(|number| format!("/private/{number}")).collect();
    let links: Vec<&str> = ["/1", "/2", "/3"].into_iter().chain(hidden.iter().map(String::as_str)).collect();
    let host =
        plain_host(HOST, 3).robots("User-agent: *\nDisallow: /private/\n").page("/", page("Home", &links));
    let field = Field::new(Site::new().host(host));
    let job = field.crawl(HOST, &[]).good_rows()[0]["job"].clone();
    let (hidden, fetched): (Vec<Value>, Vec<Value>) =
        field.lines("pages.jsonl").into_iter().partition(|line| line["notFetched"].is_string());
    assert_eq!((hidden.len(), fetched.len()), (1100, 4));
    // As if it had been killed before the last three were written.
    let left: Vec<String> = fetched[..1].iter().chain(&hidden).map(ToString::to_string).collect();
    std::fs::write(field.file("pages.jsonl"), left.join("\n") + "\n").unwrap();
    field.crawl(HOST, &[]).good_rows();
    let mut made_up = field.lines("pages.jsonl");
    made_up.retain(|line| line["recovered"] == true);
    let urls = |lines: &[Value]| lines.iter().map(|line| line["url"].clone()).collect::<Vec<_>>();
    assert_eq!(urls(&made_up), urls(&fetched[1..]));
    assert!(made_up.iter().all(|line| line["collection"] == job), "{made_up:?}");
}

/// A full disk breaks lines off. What is written next has lines of its own, and the one that was broken off is made up for.
#[test]
fn a_line_that_is_not_whole_swallows_none_that_follows() {
    // By how many bytes the files are shortened: into the last line, and by its end alone.
    for lost in [9, 1] {
        let host = plain_host(HOST, 6).page("/2", page("Two", &["ftp://a.test/x"]));
        let field = Field::new(Site::new().host(host.page("/6", page("Six", &["ftp://a.test/y"]))));
        let files = ["pages.jsonl", "skipped.jsonl", "crawl.log"];
        let started = ["--name", "job", "--skipped", files[1], "--crawl-log", files[2]];
        let ran = field.crawl(HOST, &[&started[..], &["--limit", "4"]].concat());
        assert_eq!(ran.status, 0, "{ran:?}");
        let logged = |field: &Field| std::fs::read_to_string(field.file("crawl.log")).unwrap();
        let before = logged(&field).lines().count();
        for name in files {
            let text = std::fs::read(field.file(name)).unwrap();
            std::fs::write(field.file(name), &text[..text.len() - lost]).unwrap();
        }

        let ran = field.crawl(HOST, &started);
        assert_eq!(ran.status, 0, "{ran:?}");
        let told: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("not whole")).collect();
        assert_eq!(told.len(), if lost > 1 { files.len() } else { 0 }, "{ran:?}");
        for (name, line) in files.iter().zip(&told) {
            assert!(ran.stderr.contains(&format!("{name} ended with a line that is not whole")), "{line}");
        }
        assert_eq!(
            written(&field),
            each(6, 1).into_keys().collect(),
            "{lost}: every fetch has its line, and one"
        );
        let made_up = field.lines("pages.jsonl").iter().filter(|line| line["recovered"] == true).count();
        assert_eq!(made_up, usize::from(lost > 1), "{lost}");
        let skipped: Vec<Value> =
            field.lines("skipped.jsonl").iter().map(|line| line["url"].clone()).collect();
        let want = if lost > 1 { vec!["ftp://a.test/y"] } else { vec!["ftp://a.test/x", "ftp://a.test/y"] };
        assert_eq!(skipped, want, "{lost}");
        let log = logged(&field);
        assert!(log.lines().all(|line| line.split_whitespace().count() == 12), "{log}");
        assert_eq!(log.lines().count(), before + 3 - usize::from(lost > 1), "{log}");
    }
}

/// A limit is no end: the pages that are left are those of the job, and its name stands for it.
#[test]
fn a_name_at_its_limit_stands_for_its_crawl() {
    let field = Field::new(Site::new().host(plain_host(HOST, 9)));
    let started = ["--name", "job", "--limit", "3"];
    assert_eq!(field.crawl(HOST, &started).good_rows()[0]["job"], "job");
    for dry in [&[][..], &["--dry-run"]] {
        let ran = field.crawl(HOST, &[&started[..], &["--depth", "2"], dry].concat());
        assert_eq!(ran.status, 4, "{dry:?}: {ran:?}");
        let told = "\"job\" is not done (7 pages are left at its limit), and is another crawl: its depth is the default, \
                    here 2.";
        assert!(ran.stderr.contains(told), "{dry:?}: {ran:?}");
    }
    assert_eq!(field.paths(HOST).len(), 3, "nobody was asked");
    let rows = field.crawl(HOST, &["--name", "job", "--limit", "6"]).good_rows();
    assert_eq!(
        (&rows[0]["job"], field.paths(HOST).len()),
        (&json!("job"), 6),
        "the pages are still to be had"
    );
    // The same command again is another crawl, whose name has a number.
    let rows = field.crawl(HOST, &["--name", "job", "--limit", "6"]).good_rows();
    assert_eq!(rows[0]["job"], "job-2");
}

#[test]
fn a_job_that_is_paused_at_its_limit_says_so() {
    let field = Field::new(Site::new().host(plain_host(HOST, 6)));
    let with_limit = |limit: &str| field.crawl(HOST, &["--name", "job", "--limit", limit]);
    assert_eq!(with_limit("2").status, 0);
    assert_eq!(field.run(&["job", "pause", "job"]).status, 0);
    for (limit, dry) in [("4", None), ("2", None), ("4", Some("--dry-run"))] {
        let more: Vec<&str> = ["--name", "job", "--limit", limit].into_iter().chain(dry).collect();
        let ran = field.crawl(HOST, &more);
        assert_eq!(ran.status, 4, "{limit}, {dry:?}: {ran:?}");
        assert!(ran.stderr.contains("the job \"job\" is paused; \"forager job resume job"), "{ran:?}");
    }
    assert_eq!(field.run(&["job", "resume", "job"]).status, 0);
    assert_eq!(with_limit("4").good_rows()[0]["job"], "job");
    assert_eq!(field.paths(HOST).len(), 4);
}
