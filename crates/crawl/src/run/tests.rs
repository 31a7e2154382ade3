#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use forager_core::scope::Profile;
use forager_frontier::catalog::Limits;
use forager_frontier::entry::Token;
use forager_frontier::verbs::NewJob;
use forager_frontier::{Memory, Settings};

use super::*;

mod lists;

/// What became of each page.
#[derive(Default)]
struct Pages(Vec<(String, Option<Outcome>)>);

impl Watcher for Pages {
    fn page(&mut self, page: &PageLine, _: &[Found]) {
        self.0.push((page.url.clone(), page.outcome));
    }
}

fn reported(leased: &Leased) -> Turn {
    let report = Report { token: leased.token.0, status: Some(200), ..Report::default() };
    let line = PageLine { url: leased.url.clone(), ..PageLine::default() };
    Turn::Reported(Box::new(Visited { report, line, ..Visited::default() }))
}

#[tokio::test]
async fn a_turn_that_fails_does_not_take_others_along() {
    let frontier = Arc::new(Memory::new(Settings::default()).unwrap());
    let (clock, config) = (Clock::default(), CrawlConfig::default());
    // More than are handed in together while all goes well.
    let count = AT_A_TIME + 8;
    let urls = (0..count).map(|host| format!("http://host{host}.test/")).collect();
    let profile = Profile::new("job", "job");
    let job = NewJob { id: "job".to_owned(), urls, profile, limits: Limits::default() };
    frontier.start_job(&job, clock.now()).await.unwrap();
    let crawler = Crawler::new(frontier.clone(), HttpConfig::default(), config, clock).unwrap();
    let mut shift = Shift::new(crawler, Work::default());
    let request = LeaseRequest { max: count, per_host: 1, hold: Interval::MINUTE, ..LeaseRequest::default() };
    let leased = frontier.lease(&request, clock.now()).await.unwrap().leased;
    assert_eq!(leased.len(), count);
    let tokens: Vec<Token> = leased.iter().map(|leased| leased.token).collect();
    let urls: Vec<String> = leased.iter().map(|leased| leased.url.clone()).collect();
    let fails = |number: usize| number == 0 || number == 2;
    for (number, leased) in leased.into_iter().enumerate() {
        let failure = || forager_frontier::Error::Configuration(format!("failure {number}"));
        let turn = if fails(number) { Err(failure().into()) } else { Ok(reported(&leased)) };
        shift.under_way.take(leased.token);
        assert!(shift.sender.send(Over { leased: leased.into(), turn }).is_ok());
    }
    let mut pages = Pages::default();
    let failed = shift.hand_in(&mut pages).await.unwrap_err();
    assert_eq!(failed.to_string(), "failure 0", "the first is told");
    let others = urls.into_iter().enumerate().filter(|(number, _)| !fails(*number));
    assert_eq!(pages.0, others.map(|(_, url)| (url, Some(Outcome::Done))).collect::<Vec<_>>());
    let held = frontier.extend(&tokens, Interval::MINUTE, clock.now()).await.unwrap();
    assert_eq!(
        held.iter().map(|one| one.held).collect::<Vec<_>>(),
        (0..count).map(fails).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn nobody_holds_on_to_the_queue_when_a_crawl_has_ended() {
    let frontier = Arc::new(Memory::new(Settings::default()).unwrap());
    let (clock, config) = (Clock::default(), CrawlConfig::default());
    let crawler = Crawler::new(frontier.clone(), HttpConfig::default(), config, clock).unwrap();
    let work = Work { until_done: true, ..Work::default() };
    let mut shift = Shift::new(crawler, work);
    // Its turn is over, but it is not quite gone.
    let held = frontier.clone();
    shift.visits.spawn(async move {
        std::future::pending::<()>().await;
        drop(held);
    });
    let (_go_on, mut stop) = watch::channel(Stop::No);
    assert_eq!(shift.crawl(&mut stop, &mut Pages::default()).await.unwrap(), Ended::Done);
    assert_eq!(Arc::strong_count(&frontier), 1);
}
