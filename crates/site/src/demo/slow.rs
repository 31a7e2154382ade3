//! A host that answers slowly, and asks for patience.

use std::time::Duration;

use super::words::Words;
use super::{CRAWL_DELAY, robots};
use crate::site::Host;
use crate::{Answer, Markup};

const REPORTS: usize = 6;
/// How long an answer takes, on the clock on the wall.
const DELAY: Duration = Duration::from_millis(150);

pub(super) fn host(seed: u64) -> Host {
    let rules = robots("slow.demo", &format!("Crawl-delay: {}\n", CRAWL_DELAY.as_secs()));
    let report = |number: usize| {
        let path = format!("/reports/{number}");
        let page = Markup::new(&format!("Report {number}")).text(&Words::of(seed, &path).paragraph());
        (
            path,
            Answer::html(page.links([(format!("/reports/raw/{number}"), "Raw data")]).finish()).slow(DELAY),
        )
    };
    let links = (1..=REPORTS).map(|number| (format!("/reports/{number}"), format!("Report {number}")));
    let home = Answer::html(Markup::new("Reports since 1890").links(links).finish()).slow(DELAY);
    let host = Host::new("slow.demo").robots(&rules).page("/", home);
    let raw = |number: usize| (format!("/reports/raw/{number}"), Answer::text("1;2;3\n"));
    let all = (1..=REPORTS).flat_map(|number| [report(number), raw(number)]);
    all.fold(host, |host, (path, answer)| host.page(path, answer))
}
