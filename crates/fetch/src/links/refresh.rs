//! Where a `meta refresh` leads.

/// The address in the `content` of a refresh, such as `5; url=/next`, read as browsers do. None if
/// it only loads the page again.
pub(super) fn target(content: &str) -> Option<&str> {
    let text = content.trim_ascii_start();
    let rest = text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    // Without a time it is no refresh, unless the time is written as a bare dot.
    if rest.len() == text.len() {
        return None;
    }
    let is_gap = |letter: char| letter.is_ascii_whitespace() || matches!(letter, ';' | ',');
    if !rest.starts_with(is_gap) {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix([';', ',']).unwrap_or(rest).trim_ascii_start();
    let address = quoted(without_url_prefix(rest));
    (!address.is_empty()).then_some(address)
}

/// What follows `url=`; all of it if that is not there.
fn without_url_prefix(text: &str) -> &str {
    let Some((word, rest)) = text.split_at_checked(3) else { return text };
    let value = rest.trim_ascii_start().strip_prefix('=');
    value.filter(|_| word.eq_ignore_ascii_case("url")).map_or(text, str::trim_ascii_start)
}

fn quoted(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote) {
            return inner.split(quote).next().unwrap_or(inner);
        }
    }
    text.trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_refresh_leads() {
        let cases = [
            ("usual", "5; url=/next", Some("/next")),
            ("at once", "0;URL=/next", Some("/next")),
            ("in quotes", "0; url='/a b' x", Some("/a b")),
            ("a quote without end", "0; url=\"/a", Some("/a")),
            ("comma", "0, url=/next", Some("/next")),
            ("spaces about the sign", "0 ; url = /next ", Some("/next")),
            ("space alone", "0 url=/next", Some("/next")),
            ("without the word", "0; /next", Some("/next")),
            ("a path that begins like it", "0; url/next", Some("url/next")),
            ("fraction", "0.5; url=/next", Some("/next")),
            ("reload", "30", None),
            ("reload with a sign", "30;", None),
            ("no time", "url=/next", None),
            ("no gap", "0url=/next", None),
            ("empty", "", None),
            ("letters of several bytes", "0; éé", Some("éé")),
        ];
        for (name, content, want) in cases {
            assert_eq!(target(content), want, "{name}");
        }
    }
}
