//! A host where things go wrong.

use std::sync::atomic::{AtomicU32, Ordering};

use jiff::SignedDuration;

use super::robots;
use super::words::Words;
use crate::site::{Asked, Host};
use crate::{Answer, Markup, RetryAfter};

/// How long it asks to be left alone when it is busy.
const PAUSE: u32 = 20;

pub(super) fn host(seed: u64) -> Host {
    let links = [
        ("/fine", "Fine"),
        ("/down", "Always an error"),
        ("/shaky", "An error the first time"),
        ("/busy", "Busy the first time"),
        ("/busy-until", "Busy the first time, in the other form"),
        ("/cut", "Broken off the first time"),
        ("/missing", "Not there"),
        ("/gone", "Not there any more"),
        ("/broken", "Broken markup"),
        ("/hop/1", "Three redirects"),
        ("/loop/a", "Redirects without end"),
    ];
    let page =
        |title: &str| Answer::html(Markup::new(title).text(&Words::of(seed, title).paragraph()).finish());
    let (shaky, busy, busy_until, cut) = (page("Shaky"), page("Busy"), page("Busy until"), page("Cut"));
    let half = cut.clone().cut_after(cut.body().len() / 2);
    Host::new("flaky.demo")
        .robots(&robots("flaky.demo", ""))
        .page("/", Answer::html(Markup::new("Under construction").links(links).finish()))
        .page("/fine", page("Fine"))
        .page("/down", Answer::error(500))
        .made("/shaky", at_first(|_| Answer::error(500), shaky))
        .made("/busy", at_first(|_| Answer::busy(RetryAfter::Seconds(PAUSE)), busy))
        .made("/busy-until", at_first(busy_for_a_while, busy_until))
        .made("/cut", at_first(move |_| half.clone(), cut))
        .page("/gone", Answer::error(410))
        .page("/broken", Answer::html(broken()))
        .page("/behind-broken", page("Found in spite of it"))
        .page("/hop/1", Answer::redirect(301, "/hop/2"))
        .page("/hop/2", Answer::redirect(302, "3"))
        .page("/hop/3", Answer::redirect(307, "/hop/end"))
        .page("/hop/end", page("After three redirects"))
        .page("/loop/a", Answer::redirect(302, "/loop/b"))
        .page("/loop/b", Answer::redirect(302, "/loop/a"))
}

/// One answer the first time, another one from then on.
fn at_first(
    first: impl Fn(&Asked<'_>) -> Answer + Send + Sync + 'static,
    then: Answer,
) -> impl Fn(&Asked<'_>) -> Answer + Send + Sync + 'static {
    let times = AtomicU32::new(0);
    move |asked| if times.fetch_add(1, Ordering::Relaxed) == 0 { first(asked) } else { then.clone() }
}

fn busy_for_a_while(asked: &Asked<'_>) -> Answer {
    let pause = SignedDuration::from_secs(i64::from(PAUSE));
    Answer::busy(RetryAfter::At(asked.now.saturating_add(pause).unwrap_or(asked.now)))
}

/// Unclosed, badly nested, with half a tag and an address that is none; and yet people see its links.
fn broken() -> &'static str {
    "<html><body><p><b>Almost<i></b> done</p><div class=a<table><tr><td>\n\
     <a href=/fine>Fine<a HREF = '/behind-broken' >More</tr></span>\n\
     <a href=\"http://[broken\">Nowhere</a><!-- never closed"
}
