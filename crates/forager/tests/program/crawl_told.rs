//! What a crawl says of itself: at its start, while it waits, at its end, and when it is asked for nonsense.

use crate::web;
use std::time::Duration;

use crate::common::{Ran, forager};
use crate::web::{ANOTHER_WISH, Field, Started, page, plain_host, wait_until};
use forager_site::{Answer, Host, Site};
use serde_json::{Value, json};

const HOST: &str = "a.test";

fn field(pages: usize) -> Field {
    Field::new(Site::new().host(plain_host(HOST, pages)))
}

/// Crawls as a user would who redirects nothing but reads all.
fn crawl(field: &Field, more: &[&str]) -> Ran {
    field.run(&[&["crawl", &field.url(HOST, "/"), "--json"], more].concat())
}

/// The name of the job that a run told of at its start.
#[track_caller]
fn job(ran: &Ran) -> String {
    let line = ran.stderr.lines().next().unwrap_or_else(|| panic!("nothing was told: {ran:?}"));
    line.split('"').nth(1).unwrap_or_else(|| panic!("{line}")).to_owned()
}

#[test]
fn the_name_of_the_job_leads_to_what_else_can_be_asked() {
    let field = field(2);
    let ran = crawl(&field, &[]);
    let name = job(&ran);
    assert!(ran.stderr.starts_with("forager: crawling as job"), "{ran:?}");
    let summary = &ran.rows()[0];
    assert_eq!(
        (&summary["job"], &summary["end"], &summary["left"]),
        (&name.as_str().into(), &"done".into(), &0.into())
    );
    for command in ["queue list", "explain URL"] {
        assert!(ran.stderr.contains(&format!("\"forager {command} --collection {name}\"")), "{ran:?}");
    }
    let explained =
        field.run(&["explain", &field.url(HOST, "/1"), "--collection", &name, "--json"]).good_rows();
    assert!(explained[0].to_string().contains(&name), "{explained:?}");
    assert_eq!(field.run(&["queue", "list", "--collection", &name, "--json"]).good_rows().len(), 3);
    let elsewhere = crawl(&field, &["--data", "my data", "--config", "forager.toml"]);
    let place = "--data 'my data' --config forager.toml";
    for command in ["queue list", "explain URL"] {
        let hint = format!("\"forager {command} --collection {name} {place}\"");
        assert!(elsewhere.stderr.contains(&hint), "{elsewhere:?}");
    }
    // The table says the same, and who wants to hear nothing hears nothing.
    let ran = field.run(&["crawl", &field.url(HOST, "/"), "--quiet"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert!(
        ran.stdout.lines().any(|line| line.starts_with("job ") && line.ends_with(&format!("{name}-2"))),
        "{ran:?}"
    );
}

#[test]
fn a_limit_that_is_reached_says_how_to_go_on_and_a_higher_one_does() {
    let field = field(9);
    let limited = crawl(&field, &["--limit", "4"]);
    let summary = &limited.rows()[0];
    assert_eq!((limited.status, summary["fetched"].as_u64()), (0, Some(4)));
    assert_eq!((&summary["end"], &summary["left"]), (&"the limit of 4 pages".into(), &6.into()), "{summary}");
    assert!(
        limited.stderr.contains("the limit of 4 pages is reached, and 6 pages are left; "),
        "{limited:?}"
    );
    assert!(limited.stderr.contains("a higher --limit"), "{limited:?}");

    let state = || field.run(&["job", "list", "--json"]).good_rows()[0]["state"].clone();
    assert_eq!(state(), "limited");

    let higher = crawl(&field, &["--limit", "7"]);
    assert_eq!(job(&higher), job(&limited));
    assert!(higher.stderr.starts_with("forager: going on with job"), "{higher:?}");
    assert_eq!((higher.rows()[0]["fetched"].as_u64(), higher.rows()[0]["left"].as_u64()), (Some(3), Some(3)));
    let unlimited = crawl(&field, &[]);
    assert_eq!((job(&unlimited), &unlimited.rows()[0]["end"]), (job(&limited), &"done".into()));
    assert_eq!(state(), "finished");
    assert_eq!(field.counts(HOST), web::each(9, 1), "each page once, over three commands");
    // What has nothing left is started anew.
    assert_eq!(job(&crawl(&field, &[])), format!("{}-2", job(&limited)));
    field.assert_audit();
}

#[test]
fn a_dry_run_shows_what_the_command_would_go_on_with() {
    let field = field(9);
    let limited = crawl(&field, &["--limit", "4"]);
    let rehearse = |more: &[&str]| crawl(&field, &[&["--dry-run"], more].concat());
    let higher = rehearse(&["--limit", "7"]);
    let told = format!("forager: it would go on with job {:?}: 6 pages queued\n", job(&limited));
    assert_eq!((higher.stderr.as_str(), higher.rows().len()), (told.as_str(), 3), "{higher:?}");
    assert!(higher.rows().iter().all(|row| row["url"] != field.url(HOST, "/").as_str()), "{higher:?}");
    assert_eq!(rehearse(&[]).rows().len(), 6);
    // With the same limit it would start anew.
    let anew = rehearse(&["--limit", "4"]);
    assert_eq!((anew.stderr.as_str(), anew.rows().len()), ("", 1), "{anew:?}");
    assert_eq!(field.paths(HOST).len(), 4, "nothing was asked for");
}

#[test]
fn a_dry_run_shows_no_page_that_the_robots_txt_that_is_known_forbids() {
    let host = plain_host(HOST, 4).robots("User-agent: *\nDisallow: /2\n");
    let field = Field::new(Site::new().host(host));
    crawl(&field, &["--limit", "1"]);
    let rehearsed = crawl(&field, &["--dry-run", "--quiet", "--limit", "3"]);
    let planned: Vec<Value> = rehearsed.rows().into_iter().map(|row| row["url"].clone()).collect();
    assert_eq!(planned, [field.url(HOST, "/1"), field.url(HOST, "/3")], "{rehearsed:?}");
    let told =
        format!("forager: {} is not fetched: forbidden by robots.txt: line 2: ", field.url(HOST, "/2"));
    assert!(rehearsed.status == 0 && rehearsed.stderr.starts_with(&told), "{rehearsed:?}");
    // So it is for another job.
    let forbidden = field.url(HOST, "/2");
    for dry in [&["--dry-run"][..], &[]] {
        let ran = field.run(&[&["crawl", &forbidden, "--json", "--quiet"], dry].concat());
        assert_eq!(ran.status, 4, "{dry:?}: {ran:?}");
    }
    assert_eq!(field.paths(HOST), ["/"], "nothing was asked for");
}

#[test]
fn a_reader_that_goes_away_ends_the_crawl() {
    let field = field(30);
    let mut command = field.queue.command(&["crawl", &field.url(HOST, "/"), "--out", "-", "--quiet"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    field.wait_for(HOST, 2);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(11), "{told}");
    assert!(told.contains("whoever read the output is gone"), "{told}");
    assert!(field.paths(HOST).len() < 31, "{:?}", field.paths(HOST));
    let rest = crawl(&field, &[]);
    assert!(rest.stderr.starts_with("forager: going on with job"), "{rest:?}");
    assert_eq!(field.counts(HOST), web::each(30, 1));
}

#[test]
fn a_start_that_leads_out_of_scope_says_what_to_do() {
    let away = |asked: &forager_site::Asked<'_>| Answer::redirect(301, &asked.url("b.test", "/"));
    let field = Field::new(Site::new().host(Host::new(HOST).made("/", away)).host(plain_host("b.test", 1)));
    let ran = crawl(&field, &["--quiet"]);
    let told = format!(
        "forager: {} redirects to {}, which is not followed: ",
        field.url(HOST, "/"),
        field.url("b.test", "/")
    );
    assert!(ran.stderr.starts_with(&told), "{ran:?}");
    assert!(ran.stderr.contains("; start from there, or widen the scope"), "{ran:?}");
    assert!(field.paths("b.test").is_empty());
}

#[test]
fn rules_that_cannot_be_had_are_an_error_of_the_command() {
    let mut field = field(1);
    field.stop();
    let ran = field.run(&["robots", &field.url(HOST, "/")]);
    assert_eq!(ran.status, 9, "{ran:?}");
    assert!(ran.stderr.contains("robots.txt of a.test cannot be had: "), "{ran:?}");
}

#[test]
fn where_every_start_fails_that_is_what_is_said() {
    let good = plain_host("good.test", 1);
    let field = Field::new(
        Site::new().host(Host::new(HOST).page("/moved", Answer::redirect(301, "/gone"))).host(good),
    );
    let (missing, moved, there) =
        (field.url(HOST, "/"), field.url(HOST, "/moved"), field.url("good.test", "/"));
    let table: [(&str, &[&str], i32, &str); 4] = [
        ("one", &[&missing], 4, "/: 404"),
        ("one of two", &[&missing, &there], 0, ""),
        ("both", &[&missing, &moved], 4, "/gone: 404"),
        ("one that was moved", &[&moved], 4, "/gone: 404"),
    ];
    for (name, urls, status, told) in table {
        let ran = field.run(&[&["crawl", "--quiet", "--json"], urls].concat());
        assert_eq!(ran.status, status, "{name}: {ran:?}");
        let is_told = ran
            .stderr
            .starts_with("forager: no page was had, for every page to start from failed for good:\n");
        assert_eq!((is_told, ran.stderr.contains(told)), (status == 4, true), "{name}: {ran:?}");
        let end = if status == 4 { "every page to start from failed for good" } else { "done" };
        assert_eq!(ran.rows()[0]["end"], end, "{name}");
    }
}

#[test]
fn a_crawl_that_waits_tells_what_for_and_how_long() {
    let slow = plain_host(HOST, 40).robots("User-agent: *\nCrawl-delay: 2\n");
    let field = Field::new(Site::new().host(slow).host(plain_host("quick.test", 3)));
    let urls = [field.url(HOST, "/"), field.url("quick.test", "/")];
    let mut command = field.queue.command(&["crawl", &urls[0], &urls[1], "--json"]);
    let crawl = Started::telling(&mut command, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    // The first line of all names the job; the second comes after a while, and a third later than that.
    wait_until("three lines", || told().lines().count() >= 3);
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 11);
    let told = told();
    let line = told.lines().nth(2).unwrap();
    for part in [" done, ", " queued, ", " under way, ", "0 errors, ", " left, bound by a.test: "] {
        assert!(line.contains(part), "{part}: {told}");
    }
    // Pages times gap of the slow host, whatever the rate of both; an estimate is good for five seconds.
    let bound = line.split("bound by a.test: ").nth(1).unwrap();
    let number = |text: &str| -> f64 {
        text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>().parse().unwrap()
    };
    let (pages, gap) = (number(bound), number(bound.split("one in ").nth(1).unwrap()));
    assert!(pages >= 10.0 && gap >= 1.9, "{line}");
    let about = line.split("about ").nth(1).unwrap();
    let seconds = number(about) * 60.0 + about.split("m ").nth(1).map_or(0.0, number);
    let want = pages * gap;
    assert!((want - seconds).abs() < pages * 0.1 + 8.0, "{seconds}, and {want} are wanted: {line}");
    assert!(told.contains("; the same command goes on with them"), "{told}");
    // What robots.txt asks for is known from the first line on; and nothing is left is never said of what goes on.
    let gaps =
        told.lines().filter_map(|line| line.split("bound by a.test: ").nth(1)?.split("one in ").nth(1));
    assert!(gaps.clone().count() >= 1 && gaps.map(number).all(|gap| gap >= 2.0), "{told}");
    assert!(!told.contains("about 0s left"), "{told}");
}

#[test]
fn a_start_that_cannot_be_reached_is_told_at_once_and_counted() {
    let mut field = field(3);
    field.set("first = \"100ms\"\nlongest = \"400ms\"", "first = \"2m\"\nlongest = \"2m\"");
    field.stop();
    let urls = [field.url(HOST, "/"), field.url(HOST, "/other")];
    let mut command = field.queue.command(&["crawl", &urls[0], &urls[1]]);
    let crawl = Started::telling(&mut command, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    wait_until("the reason", || told().contains("cannot be connected to"));
    wait_until("a line on how far it is", || told().contains("2 errors, "));
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 11);
    let told = told();
    let reasons: Vec<&str> = told.lines().filter(|line| line.contains("cannot be connected to")).collect();
    assert_eq!(reasons.len(), 1, "once for a host: {told}");
    assert!(reasons[0].starts_with(&format!("forager: {}", field.url(HOST, "/"))), "{told}");
    assert!(reasons[0].contains("; it is not tried again before "), "{told}");
    let line = told.lines().find(|line| line.contains("2 errors, ")).unwrap();
    assert!(line.contains("bound by a.test: nothing is due for "), "{told}");
    assert!(line.contains("; about 1m ") || line.contains("; about 2m "), "{told}");
}

#[test]
fn a_host_that_asks_for_long_waits_is_shown_as_slow() {
    let slow = plain_host(HOST, 3).robots("User-agent: *\nCrawl-delay: 90\n");
    let field = Field::new(Site::new().host(slow));
    let mut command = field.queue.command(&["crawl", &field.url(HOST, "/")]);
    let crawl = Started::telling(&mut command, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    wait_until("what bounds it", || told().contains("one in 90.0s as its robots.txt asks: a slow host"));
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 11);
    let hosts = field.run(&["queue", "hosts", "--json"]).good_rows();
    assert_eq!((&hosts[0]["crawlDelay"], &hosts[0]["isSlow"]), (&"1m 30s".into(), &true.into()), "{hosts:?}");
    let table = field.run(&["queue", "hosts", "--format", "table"]).stdout;
    assert!(table.contains("1m 30s (slow)"), "{table}");
}

#[test]
fn a_crawl_that_is_left_alone_for_long_says_so() {
    let host = Host::new(HOST).page("/", page("Home", &["/1", "/2"]));
    let busy = Answer::error(503).header(http::header::RETRY_AFTER, "600");
    let field = Field::new(Site::new().host(host.page("/1", busy).page("/2", page("Two", &[]))));
    let mut command = field.queue.command(&["crawl", &field.url(HOST, "/"), "--in-flight", "1"]);
    let crawl = Started::telling(&mut command, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    wait_until("what it waits for", || told().contains("for a host (back-off after failures)"));
    assert!(told().contains("bound by a.test: closed for 9m "), "{}", told());
    crawl.signal("INT");
    assert_eq!(crawl.end().status, 11);
}

/// A page that is under way ends long before anybody would take it back.
#[test]
fn a_host_that_has_enough_under_way_is_not_said_to_be_closed() {
    let paths: Vec<String> = (1..=60).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = paths.iter().map(String::as_str).collect();
    let host = paths.iter().fold(Host::new(HOST).page("/", page("Home", &links)), |host, path| {
        host.page(path, page(path, &[]).slow(web::LONG * 2))
    });
    let field = Field::new(Site::new().host(host));
    field.set("[fetch]\n", "[fetch]\nanswer_timeout = \"5m\"\ntimeout = \"5m\"\n");
    let mut command = field.queue.command(&["crawl", &field.url(HOST, "/"), "--delay", "1s"]);
    let crawl = Started::telling(&mut command, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    field.wait_for(HOST, 3);
    wait_until("how long it takes", || told().contains("2 under way") && told().contains("bound by a.test"));
    assert!(told().contains(" pages, one in 1.0s") && !told().contains("closed for"), "{}", told());
    assert!(told().contains("; waiting for answers"), "{}", told());
    crawl.kill();
}

#[test]
fn what_has_no_links_is_said_to_have_none() {
    let table: [(&str, Answer, &str); 4] = [
        ("/a.pdf", Answer::new("application/pdf", "%PDF-1.4"), "is application/pdf, and no HTML"),
        ("/a.png", Answer::new("image/png", "\u{89}PNG"), "is image/png, and no HTML"),
        ("/a.json", Answer::new("application/json", "{}"), "is application/json, and no HTML"),
        ("/a.txt", Answer::text("words"), "is text/plain; charset=utf-8, and no HTML"),
    ];
    let host = table.iter().fold(Host::new(HOST), |host, (path, answer, _)| host.page(*path, answer.clone()));
    let field = Field::new(Site::new().host(host.page("/", page("Home", &[]))));
    for (path, _, problem) in table {
        for command in ["links", "pick"] {
            let ran = field.run(&[command, &field.url(HOST, path)]);
            assert_eq!((ran.status, ran.stdout.as_str()), (4, ""), "{command} {path}: {ran:?}");
            assert!(ran.stderr.contains(problem), "{command} {path}: {ran:?}");
        }
    }
    // HTML without links is no mistake.
    assert_eq!(field.run(&["links", &field.url(HOST, "/")]).good_rows().len(), 0);
    let ran = field.run(&["sitemap", &field.url(HOST, "/")]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stderr.contains("is no sitemap, and its robots.txt names none"), "{ran:?}");
}

#[test]
fn a_url_without_a_scheme_is_told_what_it_is_taken_for() {
    let field = field(1);
    let bare = field.url(HOST, "/").replace("http://", "");
    let ran = field.run(&["crawl", &bare, "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let note =
        format!("forager: {bare:?} is taken as http://{bare}; write https:// before it if that is meant\n");
    assert!(ran.stderr.starts_with(&note), "{ran:?}");
    for text in ["localhost:8080/x", "www.example.org"] {
        let ran = field.run(&["job", "create", text, "--name", "j"]);
        assert_eq!(ran.status, 2, "{text}: {ran:?}");
        assert!(ran.stderr.contains("write https:// or http:// before it"), "{text}: {ran:?}");
    }
}

#[test]
fn what_a_flag_cannot_be_is_told_by_its_name() {
    let field = field(1);
    let long = format!("https://a.example/{}", "x".repeat(300));
    let table: [(&str, &str, &str); 16] = [
        ("--limit", "0", "not a whole number of at least 1"),
        ("--bytes", "0", "not a whole number of at least 1"),
        ("--time", "0s", "not more than nothing"),
        ("--at-once", "0", "not a whole number from 1 to 10000"),
        ("--at-once", "99999999999", "not a whole number from 1 to 10000"),
        ("--in-flight", "0", "not a whole number of at least 1"),
        ("--include", "(", "unclosed group"),
        ("--exclude", "[a", "unclosed character class"),
        ("--contact", "nobody", "not a web page such as"),
        ("--contact", "", "not a web page such as"),
        ("--contact", "me@", "not a web page such as"),
        ("--contact", "me@a.example\r\nX: y", "not a web page such as"),
        ("--contact", "ftp://a.example/", "not a web page such as"),
        ("--contact", &long, "bytes are too many; a contact has at most 200"),
        ("--delay", "soon", "soon"),
        ("--depth", "deep", "deep"),
    ];
    for (flag, value, problem) in table {
        let ran = crawl(&field, &[flag, value]);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{flag} {value:?}: {ran:?}");
        assert!(ran.stderr.contains(flag) && ran.stderr.contains(problem), "{flag} {value:?}: {ran:?}");
    }
    assert!(field.seen().is_empty());
    for (line, problem) in [
        ("at_once = 0", "fetch.at_once: 0 is not between 1 and 10000"),
        ("contact = \"nobody\"", "fetch.contact: not a web page such as"),
    ] {
        field.configure(&format!("{line}\n"));
        let ran = crawl(&field, &[]);
        assert_eq!(ran.status, 4, "{line}: {ran:?}");
        assert!(ran.stderr.contains("forager.toml:") && ran.stderr.contains(problem), "{line}: {ran:?}");
    }
}

fn help(command: &str) -> String {
    let output = forager().args(command.split_whitespace()).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_lists_every_exit_status_and_no_flag_without_effect() {
    let table: [(&str, &[&str]); 8] = [
        ("crawl", &["0", "2", "3", "4", "8", "9", "11", "13", "14", "15", "17", "18"]),
        ("run", &["0", "2", "3", "4", "8", "11", "13", "17"]),
        ("watch", &["2", "3", "4", "8", "11", "13", "17"]),
        ("audit", &["0", "1", "2", "4", "8", "17"]),
        ("robots", &["0", "2", "4", "9", "18"]),
        ("sitemap", &["0", "1", "2", "4", "9", "18"]),
        ("links", &["0", "2", "4", "9", "18"]),
        ("pick", &["0", "2", "4", "9", "18"]),
    ];
    for (command, statuses) in table {
        let help = help(command);
        let listed = help.split("Exit status:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
        let listed = listed.filter_map(|line| line.split_whitespace().next());
        let listed: Vec<&str> = listed.filter(|word| word.parse::<u8>().is_ok()).collect();
        assert_eq!(listed, statuses, "{command}");
    }
    assert!(help("").contains("`forager crawl --help`"));
    for command in ["robots", "sitemap", "links", "pick"] {
        for flag in ["--at-once", "--in-flight", "--quiet"] {
            assert!(!help(command).contains(flag), "{command} {flag}");
        }
    }
}

#[test]
fn a_second_crawl_of_one_folder_is_told_who_has_it_and_can_wait() {
    let slow = page("Home", &[]).slow(web::LONG * 2);
    let field = Field::new(Site::new().host(Host::new(HOST).page("/", slow)).host(plain_host("b.test", 1)));
    let first = Started::new(&mut field.crawl_command(HOST, &[]));
    field.wait_for(HOST, 1);
    let other = field.url("b.test", "/");
    let ran = field.run(&["crawl", &other, "--lock-timeout", "100ms"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (8, ""), "{ran:?}");
    let holder = format!("forager-data is in use by process {} (", first.id());
    for part in [&*holder, "crawl http://a.test:", "--lock-timeout", "--data", "--out"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    // Whoever follows says once that it waits.
    let mut follow = field.queue.command(&["events", "--follow", "--lock-timeout", "0s"]);
    let follow = Started::telling(&mut follow, &field.file("told"));
    let told = || std::fs::read_to_string(field.file("told")).unwrap();
    wait_until("who follows to be told", || !told().is_empty());
    std::thread::sleep(Duration::from_millis(2500));
    assert!(told().starts_with(&format!("forager: waiting for the queue: {holder}")), "{}", told());
    assert_eq!(told().lines().count(), 1, "{}", told());
    follow.signal("INT");
    assert_eq!(follow.end().status, 0);

    let wait = ["crawl", &other, "--lock-timeout", "5m", "--quiet", "--json"];
    let second = Started::new(&mut field.queue.command(&wait));
    std::thread::sleep(Duration::from_millis(300));
    assert!(field.paths("b.test").is_empty(), "it waits");
    first.signal("INT");
    std::thread::sleep(ANOTHER_WISH);
    first.signal("INT");
    assert_eq!(first.end().status, 13);
    assert_eq!(second.end().good_rows()[0]["fetched"], Value::from(2));
    assert_eq!(field.run(&["audit"]).status, 0);
}

#[test]
fn the_summary_goes_to_standard_error_where_the_pages_have_standard_output() {
    let table: [(&[&str], &str); 4] = [
        (&[], "forager: fetched       2\n"),
        (&["--json"], "\n{\"job\":"),
        (&["--log", "json"], "\"event\":\"summary\",\"job\":"),
        (&["--json", "--quiet"], ""),
    ];
    for (more, want) in table {
        let field = Field::new(Site::new().host(plain_host(HOST, 1)));
        let ran = field.run(&[&["crawl", &field.url(HOST, "/"), "--out", "-"], more].concat());
        let rows = ran.rows();
        assert!(rows.len() == 2 && rows.iter().all(|row| row["url"].is_string()), "{more:?}: {ran:?}");
        assert_eq!(ran.stderr.is_empty(), want.is_empty(), "{more:?}: {ran:?}");
        assert!(ran.stderr.contains(want), "{more:?}: {ran:?}");
        for line in ran.stderr.lines().filter(|line| line.starts_with('{') && line.contains("\"end\":")) {
            let summary: Value = serde_json::from_str(line).unwrap();
            assert_eq!((&summary["end"], &summary["fetched"]), (&json!("done"), &json!(2)), "{more:?}");
        }
    }
}
