//! The names of crawls.

use crate::limits::MAX_CRAWL_BYTES;

/// The crawl of clients that name none.
pub(crate) const DEFAULT: &str = "DEFAULT";

/// The collection of a crawl. White space alone is no name.
pub(crate) fn crawl(given: &str) -> &str {
    if given.trim().is_empty() { DEFAULT } else { given }
}

/// Whether a collection can have this name.
pub(crate) fn is_crawl(name: &str) -> bool {
    name.len() <= MAX_CRAWL_BYTES && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_without_a_name_is_the_default_one() {
        let cases = [
            ("nothing", "", DEFAULT),
            ("white space", " \t", DEFAULT),
            ("its own name", "DEFAULT", DEFAULT),
            ("another", "news", "news"),
            ("white space around a name stays", " news ", " news "),
        ];
        for (name, given, want) in cases {
            assert_eq!(crawl(given), want, "{name}");
        }
    }

    #[test]
    fn names_are_bounded() {
        assert!(is_crawl("my_spider") && is_crawl(&"x".repeat(MAX_CRAWL_BYTES)));
        assert!(!is_crawl("a\nb") && !is_crawl(&"x".repeat(MAX_CRAWL_BYTES + 1)));
    }
}
