//! A host with places that have no end.

use super::robots;
use crate::site::Host;
use crate::{Answer, Markup, traps};

pub(super) fn host() -> Host {
    let links = [
        ("/calendar/2026/03", "Calendar"),
        ("/store/a", "Store"),
        ("/pictures/", "Pictures"),
        ("/about", "About"),
        ("/history", "History"),
    ];
    let page = |title: &str| Answer::html(Markup::new(title).links([("/", "Home")]).finish());
    Host::new("trap.demo")
        .robots(&robots("trap.demo", ""))
        .page("/", Answer::html(Markup::new("The club house").links(links).finish()))
        .page("/about", page("About"))
        .page("/history", page("History"))
        .under("/calendar", traps::calendar("/calendar"))
        .under("/store", traps::session_ids("/store"))
        .under("/pictures/", traps::repeating("/pictures/"))
}
