//! The log of a crawl as Heritrix writes it, so that what reads those reads ours.

use forager_crawl::{NotFetched, PageLine};
use forager_frontier::verbs::Outcome;
use jiff::Timestamp;

/// One line: time, status, size, URL, path of hops, via, type, worker, start and duration, digest,
/// source, notes.
pub(crate) fn line(page: &PageLine) -> String {
    let or_dash = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    // A column has no white space in it, whatever servers send.
    let is_end = |letter: char| letter == ';' || letter.is_whitespace();
    let media_type = page.media_type.as_deref().and_then(|text| text.trim_start().split(is_end).next());
    let note = match (&page.error, &page.cut_off) {
        (Some(error), _) => error.replace(char::is_whitespace, "_"),
        (None, Some(cut)) => format!("cut:{}", cut.replace(char::is_whitespace, "_")),
        (None, None) => "-".to_owned(),
    };
    format!(
        "{} {:>5} {:>10} {} {} {} {} #{:03} {}+{} {} {} {note}",
        stamp(page.at, "%Y-%m-%dT%H:%M:%S%.3fZ"),
        status(page),
        page.bytes,
        page.url,
        or_dash(Some(&shortened(&page.trail.hops))),
        or_dash(page.trail.via.as_deref()),
        or_dash(media_type),
        page.worker,
        stamp(page.at, "%Y%m%d%H%M%S%3f"),
        page.took,
        or_dash(digest(page).as_deref()),
        or_dash(page.seed.as_deref()),
    )
}

/// How many columns a line has.
const COLUMNS: usize = 12;

/// Whether that is a line, and not only the beginning of one: it has all columns.
pub(super) fn is_whole(line: &[u8]) -> bool {
    line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty()).count() >= COLUMNS
}

/// What the bytes of the body are known by. A redirect is known by where it leads.
fn digest(page: &PageLine) -> Option<String> {
    let (_, exact) = page.fingerprint.as_deref().filter(|_| page.redirect.is_none())?.rsplit_once('.')?;
    Some(format!("blake3:{exact}"))
}

/// How many hops are shown.
const MOST_HOPS: usize = 50;

/// The last hops of a long way, after how many were left out: as Heritrix has it. Each hop is one letter.
fn shortened(hops: &str) -> String {
    match hops.len().checked_sub(MOST_HOPS) {
        None | Some(0) => hops.to_owned(),
        Some(left_out) => format!("{left_out}+{}", hops.get(left_out..).unwrap_or_default()),
    }
}

fn stamp(at: Timestamp, format: &str) -> String {
    jiff::fmt::strtime::format(format, at).unwrap_or_else(|_| at.to_string())
}

/// The status of HTTP, or the number that Heritrix has for what happened instead.
fn status(page: &PageLine) -> i32 {
    match (page.status, page.not_fetched, page.outcome) {
        (Some(status), ..) => i32::from(status),
        (None, Some(NotFetched::Robots), _) => -9998,
        (None, Some(NotFetched::RobotsUnreachable), _) => -61,
        (None, Some(NotFetched::AddressRefused), _) => -5001,
        (None, None, Some(Outcome::Again)) => -50,
        (None, None, _) => -2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_same_columns() {
        let types = ["text/html; charset=utf-8", "text/html charset=utf-8", " text/html\t;x", "text/html"];
        for media_type in types {
            let page = PageLine {
                url: "http://a.test/".to_owned(),
                media_type: Some(media_type.to_owned()),
                fingerprint: Some("1~ab:c0.e1".to_owned()),
                ..PageLine::default()
            };
            let line = line(&page);
            let columns: Vec<&str> = line.split_whitespace().collect();
            assert!(is_whole(line.as_bytes()));
            assert_eq!(columns.len(), COLUMNS, "{media_type:?}: {line}");
            assert_eq!((columns[6], columns[9]), ("text/html", "blake3:e1"), "{media_type:?}: {line}");
            let moved = PageLine { redirect: Some("http://a.test/b".to_owned()), ..page };
            assert_eq!(digest(&moved), None, "that is not of its bytes");
        }
    }

    #[test]
    fn a_long_way_is_shortened() {
        for (hops, want) in [(0, String::new()), (50, "L".repeat(50)), (53, format!("3+{}", "L".repeat(50)))]
        {
            assert_eq!(shortened(&"L".repeat(hops)), want, "{hops}");
        }
    }
}
