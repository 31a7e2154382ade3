//! Any robots.txt against any path. Input: a path, a line break, a file.
#![no_main]

use forager_core::url::FetchUrl;
use forager_fetch::robots::{
    Answer, MAX_CRAWL_DELAY, MAX_EXTRAS, MAX_SITEMAPS, Outcome, Robots, Rules, of_answer,
};
use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|&byte| byte == b'\n').unwrap_or(input.len());
    let (path, body) = (String::from_utf8_lossy(&input[..end]), &input[end..]);
    let Ok(url) = FetchUrl::parse(&format!("https://example.org/{path}")) else { return };
    let robots = Robots::parse(body, "forager");
    verdict_holds(&robots, &url);
    assert!(robots.crawl_delay().is_none_or(|delay| delay <= MAX_CRAWL_DELAY));
    assert!(robots.sitemaps().len() <= MAX_SITEMAPS && robots.extras().len() <= MAX_EXTRAS);
    copy_holds(body, robots);
});

fn verdict_holds(robots: &Robots, url: &FetchUrl) {
    let verdict = robots.verdict(url);
    assert!(verdict.allowed || verdict.rule.is_some(), "only a rule forbids");
    if let Some(rule) = &verdict.rule {
        assert!(robots.rules().any(|one| one == (rule, verdict.allowed)), "the rule says so");
    }
    let itself = FetchUrl::parse("https://example.org/robots.txt").expect("a URL");
    assert!(robots.verdict(&itself).allowed);
}

/// What is stored means what was sent.
fn copy_holds(body: &[u8], robots: Robots) {
    let answer = Answer { status: 200, body, ..Answer::default() };
    let copy = of_answer(&Outcome::Answer(answer), None, Timestamp::UNIX_EPOCH);
    assert_eq!(copy.rules("Forager"), Rules::File { robots, copy_of: None });
}
