//! What a fetch came to, without what is true of one host alone.

use std::net::{IpAddr, SocketAddr};

use forager_core::url::FetchUrl;
use forager_crawl::PageLine;

/// What a fetch came to, in few words: the same for all pages that it happens to, so that a thousand dead hosts are one row
/// of a table.
pub(super) fn of(page: &PageLine) -> String {
    if let Some(not_fetched) = page.not_fetched {
        return not_fetched.to_string();
    }
    match (page.status, &page.error) {
        (Some(status), None) => status.to_string(),
        (_, Some(error)) => of_error(error, &page.url),
        (None, None) => "nothing".to_owned(),
    }
}

fn of_error(error: &str, url: &str) -> String {
    let url = FetchUrl::parse(url).ok();
    let host = url.as_ref().map_or("", FetchUrl::host);
    let words = error.split_whitespace().map(|word| {
        // What stands around a word, as in "(www.example.org)" or "127.0.0.1:80,".
        let core = word.trim_matches(['(', ')', ',', ';', '"']).trim_end_matches(':');
        match nameless(core, host) {
            Some(nameless) => word.replacen(core, nameless, 1),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ").replace("the host the host", "the host")
}

/// What a host or an address is called where none is named.
fn nameless(word: &str, host: &str) -> Option<&'static str> {
    let address = word.trim_matches(['[', ']']);
    if !word.is_empty() && word == host {
        return Some("the host");
    }
    let is_address = word.parse::<SocketAddr>().is_ok() || address.parse::<IpAddr>().is_ok();
    is_address.then_some("an address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_without_its_host() {
        let table = [
            (
                "127.0.0.9:81 (a.test) cannot be connected to: Connection refused (os error 111)",
                "an address (the host) cannot be connected to: Connection refused (os error 111)",
            ),
            (
                "[::1]:81 (a.test) cannot be connected to: x",
                "an address (the host) cannot be connected to: x",
            ),
            ("the host a.test does not exist", "the host does not exist"),
            ("a.test did not answer within 30s", "the host did not answer within 30s"),
            (
                "no secure connection to a.test: its certificate has expired",
                "no secure connection to the host: its certificate has expired",
            ),
            (
                "the page is not whole: the body took too long",
                "the page is not whole: the body took too long",
            ),
        ];
        for (error, want) in table {
            let page = PageLine {
                url: "http://a.test/page".to_owned(),
                error: Some(error.to_owned()),
                ..PageLine::default()
            };
            assert_eq!(of(&page), want);
        }
    }
}
