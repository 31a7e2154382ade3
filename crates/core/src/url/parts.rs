//! A URL as one text that knows where its parts are.
//!
//! Most addresses on the web are written just as the WHATWG parser would write them. Those are
//! recognised here and taken as they stand, at a fraction of the price; everything else is left
//! to the parser. The tests below hold both ways against each other.

use core::net::Ipv4Addr;

use url::{Position, Url};

use super::bytes;

/// An http or https URL without a fragment and user-info, and the places of its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Parts {
    // First, so that URLs order and compare by their text; the places follow from it.
    text: String,
    host: u32,
    host_end: u32,
    path: u32,
    path_end: u32,
}

impl Parts {
    /// The parts of what the parser made, but for its fragment and user-info. It must be http or https.
    pub(super) fn of(mut url: Url) -> Self {
        if url.fragment().is_some() {
            url.set_fragment(None);
        }
        if !url.username().is_empty() || url.password().is_some() {
            // Only a URL without a host refuses; http has one.
            let _ = url.set_username("");
            let _ = url.set_password(None);
        }
        let place = |part| position(&url[..part]);
        let (host, host_end) = (place(Position::BeforeHost), place(Position::AfterHost));
        let (path, path_end) = (place(Position::BeforePath), place(Position::AfterPath));
        Self { text: url.into(), host, host_end, path, path_end }
    }

    /// The parts of an absolute URL that the parser would leave as it is, but for its fragment.
    pub(super) fn plain(text: &str) -> Option<Self> {
        let authority = PlainAuthority::of(text)?;
        // The parser gives an empty path its slash.
        let target = PlainTarget::of(&text[authority.end..]).filter(|target| target.path_end > 0)?;
        let place = |end: usize| position(&text[..end]);
        let (host, host_end, path) = (place(authority.host), place(authority.host_end), place(authority.end));
        let text = [&text[..authority.end], target.text].concat();
        Some(Self { text, host, host_end, path, path_end: path + target.path_end })
    }

    /// The parts of an absolute URL of the same scheme, host and port as this one, if the parser would leave it as it is.
    pub(super) fn plain_beside(&self, text: &str) -> Option<Self> {
        let kept = &self.text[..self.path as usize];
        let target = text.strip_prefix(kept).filter(|target| target.starts_with('/'))?;
        Some(self.with_target(kept, &PlainTarget::of(target)?))
    }

    /// What is kept of this URL, and a path and query behind it.
    fn with_target(&self, kept: &str, target: &PlainTarget<'_>) -> Self {
        Self { text: [kept, target.text].concat(), path_end: position(kept) + target.path_end, ..*self }
    }

    /// Resolves a link on this page, if the parser would leave the link as it is.
    pub(super) fn plain_join(&self, href: &str) -> Option<Self> {
        let kept = match href.as_bytes() {
            [] | [b'#', ..] => return Some(self.clone()),
            [b'/', b'/', ..] => return None,
            [b'/', ..] => &self.text[..self.path as usize],
            [b'?', ..] => &self.text[..self.path_end as usize],
            _ if after_scheme(href).is_some() => return Self::plain(href),
            // What stands before a colon may be a scheme, and what starts with a dot or an
            // escape may be a dot segment.
            [b'.' | b'%', ..] => return None,
            bytes if bytes.contains(&b':') => return None,
            _ => &self.text[..=self.path as usize + self.path().rfind('/')?],
        };
        Some(self.with_target(kept, &PlainTarget::of(href)?))
    }

    /// The same URL, with its path and query as these make them.
    pub(super) fn rewritten(
        &self,
        push_path: impl FnOnce(&mut String, &str),
        push_query: impl FnOnce(&mut String, &str),
    ) -> Self {
        let mut text = String::with_capacity(self.text.len());
        text.push_str(self.scheme());
        text.push_str("://");
        let host = position(&text);
        text.push_str(self.authority());
        let path = position(&text);
        push_path(&mut text, self.path());
        let path_end = position(&text);
        if let Some(query) = self.query() {
            push_query(&mut text, query);
        }
        Self { text, host, host_end: host + (self.host_end - self.host), path, path_end }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }

    pub(super) fn scheme(&self) -> &str {
        if self.text.starts_with("https") { "https" } else { "http" }
    }

    pub(super) fn schemeless(&self) -> &str {
        &self.text[self.host as usize..]
    }

    /// The host and, where it is not the default, the port.
    pub(super) fn authority(&self) -> &str {
        &self.text[self.host as usize..self.path as usize]
    }

    pub(super) fn host(&self) -> &str {
        &self.text[self.host as usize..self.host_end as usize]
    }

    pub(super) fn port(&self) -> Option<u16> {
        self.text[self.host_end as usize..self.path as usize].strip_prefix(':')?.parse().ok()
    }

    pub(super) fn path(&self) -> &str {
        &self.text[self.path as usize..self.path_end as usize]
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.text[self.path_end as usize..].strip_prefix('?')
    }

    /// Path and query.
    pub(super) fn target(&self) -> &str {
        &self.text[self.path as usize..]
    }
}

/// Whether `text` starts like a URL whose authority is plain: nothing behind that can make it invalid.
pub(super) fn has_plain_authority(text: &str) -> bool {
    PlainAuthority::of(text).is_some()
}

fn position(before: &str) -> u32 {
    // Parsing at most triples MAX_URL_BYTES, so that this never saturates.
    u32::try_from(before.len()).unwrap_or(u32::MAX)
}

fn after_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"))
}

/// A host and port that the parser would leave as they are: where in the URL they are.
struct PlainAuthority {
    host: usize,
    host_end: usize,
    /// Where the path begins, or the text ends.
    end: usize,
}

impl PlainAuthority {
    fn of(text: &str) -> Option<Self> {
        let rest = after_scheme(text)?;
        let host = text.len() - rest.len();
        let host_end = host + plain_host_length(rest)?;
        let end = host_end + plain_port_length(&text[host_end..], text.starts_with("https"))?;
        Some(Self { host, host_end, end })
    }
}

/// The length of the host that `text`, an authority and what follows, starts with; none if it
/// holds anything but labels of plain lower-case letters, or four numbers.
fn plain_host_length(text: &str) -> Option<usize> {
    let host = text.as_bytes();
    let (mut length, mut last_label, mut previous) = (0, 0, b'.');
    while let Some(&byte) = host.get(length) {
        match byte {
            b'/' | b':' => break,
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'.' => last_label = length + 1,
            // A double hyphen may be part of a punycode name, which has rules of its own.
            b'-' if previous != b'-' => {}
            _ => return None,
        }
        previous = byte;
        length += 1;
    }
    // So has what may be an IPv4 address: a last label that starts with a digit.
    let is_plain = match host[..length].get(last_label)? {
        byte if byte.is_ascii_lowercase() => true,
        byte if byte.is_ascii_digit() => text[..length].parse::<Ipv4Addr>().is_ok(),
        _ => false,
    };
    is_plain.then_some(length)
}

/// The length of the port that `text`, what follows a host, starts with; none if the parser would write it
/// otherwise, as it does with the default port of a scheme.
fn plain_port_length(text: &str, is_https: bool) -> Option<usize> {
    let Some(rest) = text.strip_prefix(':') else { return Some(0) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let port: u16 = rest[..digits].parse().ok()?;
    let default = if is_https { 443 } else { 80 };
    let is_plain =
        port != default && !rest.starts_with('0') && matches!(rest.as_bytes().get(digits), None | Some(b'/'));
    is_plain.then_some(1 + digits)
}

/// A path and query that the parser would leave as they are.
struct PlainTarget<'a> {
    text: &'a str,
    path_end: u32,
}

impl<'a> PlainTarget<'a> {
    /// What stands before the fragment, if the parser would change none of it.
    fn of(text: &'a str) -> Option<Self> {
        let path_end = bytes::leading(text, &bytes::PLAIN_PATH);
        let (path, rest) = text.split_at(path_end);
        let query_length = if rest.starts_with('?') { bytes::leading(rest, &bytes::PLAIN_QUERY) } else { 0 };
        let is_plain = matches!(rest.as_bytes().get(query_length), None | Some(b'#'));
        // A segment that starts with a dot or an escape may be a dot segment.
        let may_have_dots = path.as_bytes().windows(2).any(|pair| matches!(pair, [b'/', b'.' | b'%']));
        (is_plain && !may_have_dots)
            .then(|| Self { text: &text[..path_end + query_length], path_end: position(path) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts close to the border between plain and not.
    fn tricky() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-z0-9]{1,3}",
            2 => proptest::sample::select(vec![
                "/", "//", ".", "..", "/.", "/..", "%", "%2e", "%2E.", "%41", "?", "#", "'", "\"", "\\", ":",
                "@", "&", "=", "-", "--", "xn--", "|", "^", "`", "{", "~", "!", "[", "é", " ", "\t", "http:",
                "https://", ":80", ":443", ":8080", ":0", ":65536", "1.2", "0x7", "10.0.0.9", "127.0.0.01",
            ])
            .prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    fn bases() -> impl Strategy<Value = String> {
        let bases =
            ["http://a.b/", "https://u:p@a.b:8080/c/d?e", "https://[::1]/x/.y/", "http://1.2.3.4/a//b"];
        prop_oneof![
            proptest::sample::select(bases.to_vec()).prop_map(str::to_owned),
            tricky().prop_map(|rest| format!("http://{rest}")),
        ]
    }

    #[test]
    fn which_authorities_need_no_parser() {
        let table = [
            ("http://a.b/", true),
            ("http://a.b:8080/", true),
            ("https://a.b:80/", true),
            ("http://127.0.0.1/a", true),
            ("http://127.0.0.1:65535/a", true),
            ("the default port goes: http://a.b:80/", false),
            ("the default port goes: https://a.b:443/", false),
            ("zeros go: http://a.b:08080/", false),
            ("an empty port goes: http://a.b:/", false),
            ("no port: http://a.b:65536/", false),
            ("an address in short: http://127.1/", false),
            ("in octal: http://127.0.0.01/", false),
            ("in hexadecimal: http://0x7f000001/", false),
            ("no address: http://127.0.0.256/", false),
            ("no address: http://a.1/", false),
            ("a user: http://u@a.b:8080/", false),
            ("a password: http://u:1@a.b/", false),
        ];
        for (case, want) in table {
            let text = case.rsplit(' ').next().unwrap_or_default();
            let parts = Parts::plain(text);
            assert_eq!(parts.is_some(), want, "{case}");
            if let Some(parts) = parts {
                assert_eq!(Ok(parts), Url::parse(text).map(Parts::of), "{case}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// What is taken as plain is what the parser makes of it.
        #[test]
        fn plain_urls_are_as_parsed(scheme in "https?://", rest in tricky()) {
            let text = scheme + &rest;
            if let Some(parts) = Parts::plain(&text) {
                prop_assert_eq!(Ok(parts), Url::parse(&text).map(Parts::of));
            }
        }

        /// Also where the authority is not looked at, because it is that of another one.
        #[test]
        fn plain_urls_beside_another_are_as_parsed(base in bases(), rest in tricky()) {
            if let Ok(base) = Url::parse(&base).map(Parts::of) {
                for text in [format!("{}{rest}", &base.text[..base.path as usize]), rest] {
                    if let Some(parts) = base.plain_beside(&text) {
                        prop_assert_eq!(Ok(parts), Url::parse(&text).map(Parts::of));
                    }
                }
            }
        }

        #[test]
        fn plain_links_are_as_resolved(base in bases(), href in tricky()) {
            if let Ok(base) = Url::parse(&base)
                && let Some(parts) = Parts::of(base.clone()).plain_join(&href)
            {
                prop_assert_eq!(Ok(parts), base.join(&href).map(Parts::of));
            }
        }

        /// Forgetting what the parser knew of the base, and parsing it again, changes no answer.
        #[test]
        fn a_base_is_parsed_again_as_it_was(base in bases(), href in tricky()) {
            if let Ok(mut base) = Url::parse(&base) {
                base.set_fragment(None);
                let again = Url::parse(base.as_str()).and_then(|base| base.join(&href));
                prop_assert_eq!(again, base.join(&href));
            }
        }
    }
}
