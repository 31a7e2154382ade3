//! Places that have no end. Each makes the pages under a path of its own.

use jiff::civil::Date;
use jiff::{Span, ToSpan as _};

use crate::answer::Answer;
use crate::markup::Markup;
use crate::site::Asked;

/// A calendar: every month, such as `/calendar/2026/03`, links to the one before and the one after.
pub fn calendar(prefix: &str) -> impl Fn(&Asked<'_>) -> Option<Answer> + Send + Sync + use<> {
    let prefix = prefix.to_owned();
    move |asked| {
        let (year, month) = asked.path.strip_prefix(&prefix)?.trim_matches('/').split_once('/')?;
        let first = Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()?;
        let beside = |span: Span, text: &'static str| {
            let date = first.checked_add(span).ok()?;
            Some((format!("{prefix}/{}/{:02}", date.year(), date.month()), text))
        };
        let links = [beside(-1.month(), "Earlier"), beside(1.month(), "Later")];
        let page = Markup::new(&format!("Calendar {year}/{month}")).text("Nothing on this month.");
        Some(Answer::html(page.links(links.into_iter().flatten()).finish()))
    }
}

/// A shop that gives every visitor a number and puts it into every address: each visit makes all pages new ones.
pub fn session_ids(prefix: &str) -> impl Fn(&Asked<'_>) -> Option<Answer> + Send + Sync + use<> {
    let prefix = prefix.to_owned();
    move |asked| {
        let rest = asked.path.strip_prefix(&prefix)?;
        let page = rest.split(';').next().unwrap_or_default();
        let number = xxhash_rust::xxh3::xxh3_64(format!("{} {}", asked.path, asked.now).as_bytes());
        let links = ["/a", "/b", "/c"].map(|to| (format!("{prefix}{to};jsessionid={number:016x}"), to));
        Some(Answer::html(Markup::new(&format!("Aisle {page}")).links(links).finish()))
    }
}

/// Links that should have been absolute: each page leads to itself, one folder deeper.
pub fn repeating(prefix: &str) -> impl Fn(&Asked<'_>) -> Option<Answer> + Send + Sync + use<> {
    let prefix = prefix.to_owned();
    move |asked| {
        asked.path.strip_prefix(&prefix)?;
        let links = [("images/gallery/", "Gallery"), ("images/", "Pictures")];
        Some(Answer::html(Markup::new("Pictures").links(links).finish()))
    }
}
