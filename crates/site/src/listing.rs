//! Lists of the pages of a site, as sites publish them for crawlers.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;

use crate::markup::escaped;

/// A sitemap: addresses, and when each changed last where that is said.
///
/// ```
/// # use forager_site::listing;
/// let sitemap = listing::sitemap([("http://shop.demo/?a&b", None)]);
/// assert!(sitemap.contains("<url><loc>http://shop.demo/?a&amp;b</loc></url>"));
/// ```
pub fn sitemap<T: AsRef<str>>(pages: impl IntoIterator<Item = (T, Option<Timestamp>)>) -> String {
    list("urlset", "url", pages)
}

/// A sitemap of sitemaps.
pub fn index<T: AsRef<str>>(sitemaps: impl IntoIterator<Item = (T, Option<Timestamp>)>) -> String {
    list("sitemapindex", "sitemap", sitemaps)
}

fn list<T: AsRef<str>>(
    root: &str,
    item: &str,
    entries: impl IntoIterator<Item = (T, Option<Timestamp>)>,
) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
    );
    for (url, changed) in entries {
        let changed = changed.map(|time| format!("<lastmod>{time:.0}</lastmod>")).unwrap_or_default();
        let _ = writeln!(text, "<{item}><loc>{}</loc>{changed}</{item}>", escaped(url.as_ref()));
    }
    let _ = writeln!(text, "</{root}>");
    text
}

/// A text packed as a file, as sitemaps named `….xml.gz` are.
pub fn gzip(text: &str) -> Bytes {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packed.write_all(text.as_bytes());
    packed.finish().unwrap_or_default().into()
}
