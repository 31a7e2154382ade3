//! The three forms of a URL, kept apart.
//!
//! | form | for | example |
//! |---|---|---|
//! | [`FetchUrl`] | what is requested | `https://example.org/a%7eb?q=1` |
//! | [`Identity`] | whether two URLs are one page | `https://example.org/a~b?q=1` |
//! | [`Surt`] | scope prefixes and sorted listings | `http://(org,example,)/a~b?q=1` |
//!
//! The canonical forms are never requested: a server may tell apart what we count as one.

mod bytes;
mod dots;
mod parts;

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use bytes::{Bytes, are_all};
use parts::Parts;

/// The longest URL that is read. Longer ones are refused before they are parsed, so that a page
/// cannot fill the queue with megabytes of address.
pub const MAX_URL_BYTES: usize = 65_536;

/// Why a text is not a URL that can be crawled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It cannot be parsed, or is relative.
    #[error("{text:?} is not an absolute URL: {}", in_words(*cause))]
    Invalid {
        /// The text, shortened.
        text: String,
        /// What the parser says.
        cause: url::ParseError,
    },
    /// It is a URL of another scheme, such as `mailto:`.
    #[error("{text:?} is not an http or https URL{}", hint(text))]
    Scheme {
        /// The text, shortened.
        text: String,
    },
    /// It is longer than [`MAX_URL_BYTES`].
    #[error("a URL of {bytes} bytes is too long; at most {MAX_URL_BYTES} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

/// What the parser says, and what to do about it.
fn in_words(cause: url::ParseError) -> String {
    match cause {
        url::ParseError::RelativeUrlWithoutBase => "write https:// or http:// before it".to_owned(),
        other => other.to_string(),
    }
}

/// `localhost:8080/a` is a URL of the scheme `localhost` to a parser, and a host and its port to people.
fn hint(text: &str) -> &'static str {
    let port = text.split_once(':').map(|(_, after)| after.split(['/', '?', '#']).next().unwrap_or_default());
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok());
    if is_port { "; write https:// or http:// before it if that is a host and its port" } else { "" }
}

/// What is requested: parsed as browsers do (WHATWG), http or https, without its fragment.
///
/// A name and password go here, where a URL comes in: they are never sent, so that nothing has to keep them.
///
/// ```
/// # use forager_core::url::FetchUrl;
/// let url: FetchUrl = "HTTPS://me:pw@Example.org:443/a/../b#top".parse()?;
/// assert_eq!(url.as_str(), "https://example.org/b");
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchUrl(Parts);

impl FetchUrl {
    /// Parses an absolute URL.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        check_length(text)?;
        match Parts::plain(text) {
            Some(parts) => Ok(Self(parts)),
            None => Self::accept(text, None, Url::parse(text)),
        }
    }

    /// Parses an absolute URL, as [`parse`](Self::parse) does: quicker where it is of the same scheme, host and port as this
    /// one, as most links of a page are.
    pub fn parse_beside(&self, text: &str) -> Result<Self, UrlError> {
        check_length(text)?;
        match self.0.plain_beside(text) {
            Some(parts) => Ok(Self(parts)),
            None => Self::parse(text),
        }
    }

    /// Parses a URL that people wrote without its scheme, such as `example.org/a`.
    pub fn parse_lenient(text: &str) -> Result<Self, UrlError> {
        // Before a path or query only: `example.org/?to=https://x` has no scheme of its own.
        let has_scheme = text.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
        if has_scheme || is_of_web(text) {
            return Self::parse(text);
        }
        let written = text.trim().trim_start_matches('/');
        let url = Self::parse(&format!("http://{written}")).map_err(|error| match error {
            // Nobody wrote the scheme.
            UrlError::Invalid { cause, .. } => UrlError::Invalid { text: shortened(text), cause },
            other => other,
        })?;
        // Nobody leaves out the scheme and writes a password: this is `mailto:me@example.org`. And
        // `tel:112` only looks like a host and its port.
        if user_info(written).contains(':') || matches!(url.host(), "tel" | "sms" | "callto") {
            return Err(UrlError::Scheme { text: shortened(text) });
        }
        Ok(url)
    }

    /// Resolves a link found on this page.
    pub fn join(&self, href: &str) -> Result<Self, UrlError> {
        check_length(href)?;
        match self.0.plain_join(href) {
            Some(parts) => Ok(Self(parts)),
            None => {
                Self::accept(href, Some(self), Url::parse(self.as_str()).and_then(|base| base.join(href)))
            }
        }
    }

    /// Resolves a link found on this page, whose query is written in bytes as `encode` does it: that of a page in an old
    /// encoding is sent in that encoding.
    pub fn join_encoded(&self, href: &str, encode: impl Fn(&str) -> Cow<'_, [u8]>) -> Result<Self, UrlError> {
        check_length(href)?;
        let base = Url::parse(self.as_str());
        Self::accept(
            href,
            Some(self),
            base.and_then(|base| {
                Url::options().base_url(Some(&base)).encoding_override(Some(&encode)).parse(href)
            }),
        )
    }

    fn accept(
        text: &str,
        base: Option<&Self>,
        parsed: Result<Url, url::ParseError>,
    ) -> Result<Self, UrlError> {
        let invalid = |cause| UrlError::Invalid { text: shortened(text), cause };
        let url = parsed.map_err(invalid)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(UrlError::Scheme { text: shortened(text) });
        }
        let url =
            if dots::may_be_left(&url) { dots::resolve(&url, text, base).map_err(invalid)? } else { url };
        Ok(Self(Parts::of(url)))
    }

    /// The URL as it is requested.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The URL as it is requested, to keep.
    pub fn into_string(self) -> String {
        self.0.into_string()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// The host in lower case; IPv6 addresses in brackets.
    pub fn host(&self) -> &str {
        self.0.host()
    }

    /// The port, where it is not the default of the scheme.
    pub fn port(&self) -> Option<u16> {
        self.0.port()
    }

    /// The path, never empty.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// The politeness unit that this URL belongs to; see [`host_key`].
    pub fn host_key(&self) -> &str {
        host_key(self.host())
    }

    /// The domain that one could register, such as `example.co.uk`; none for addresses and for
    /// names that are themselves a public suffix.
    pub fn registrable_domain(&self) -> Option<&str> {
        registrable_domain(self.host())
    }

    /// The text by which this URL is the same page as another.
    pub fn identity(&self, options: &IdentityOptions) -> Identity {
        Identity(self.0.rewritten(
            |text, path| push_normalised(text, path, &bytes::PATH),
            |text, query| push_query(text, query, options),
        ))
    }
}

impl FromStr for FetchUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl fmt::Display for FetchUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for FetchUrl {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for FetchUrl {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::read::borrowed_text(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Whether `text` is an absolute http or https URL, without keeping its parts.
///
/// The answer is that of [`FetchUrl::parse`]. Only the authority of an http URL can make it
/// invalid, so that one in plain lower-case letters, as most are, needs no parser.
pub fn check(text: &str) -> Result<(), UrlError> {
    check_length(text)?;
    if parts::has_plain_authority(text) { Ok(()) } else { FetchUrl::parse(text).map(drop) }
}

fn check_length(text: &str) -> Result<(), UrlError> {
    if text.len() > MAX_URL_BYTES {
        return Err(UrlError::TooLong { bytes: text.len() });
    }
    Ok(())
}

/// What a profile asks of the identity of its URLs. By default the query is left as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdentityOptions {
    /// Sort the parameters of the query, so that their order does not count.
    pub sort_query: bool,
    /// Parameters that do not count, such as `sid` or `utm_*`.
    pub strip_params: Vec<String>,
}

impl IdentityOptions {
    fn strips(&self, parameter: &str) -> bool {
        let name = percent_decoded(parameter.split_once('=').map_or(parameter, |(name, _)| name));
        self.strip_params.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern.as_str(),
        })
    }
}

/// The text by which two URLs are the same page.
///
/// Lower-case host; no default port, user-info or fragment; dot segments resolved;
/// percent-encoding normalised (unreserved characters plain, everything else that RFC 3986 does
/// not allow encoded, in capitals). Making the identity of an identity changes nothing.
///
/// ```
/// # use forager_core::url::{FetchUrl, IdentityOptions};
/// let url: FetchUrl = "http://me:pw@Example.org:80/%7ejoe?b=2&a=1&utm_source=x".parse()?;
/// assert_eq!(url.identity(&IdentityOptions::default()).as_str(),
///     "http://example.org/~joe?b=2&a=1&utm_source=x");
/// let options = IdentityOptions { sort_query: true, strip_params: vec!["utm_*".into()] };
/// assert_eq!(url.identity(&options).as_str(), "http://example.org/~joe?a=1&b=2");
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Parts);

impl Identity {
    /// The identity of a URL whose query is left as it is.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Ok(FetchUrl::parse(text)?.identity(&IdentityOptions::default()))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Everything after `http://` or `https://`.
    pub fn without_scheme(&self) -> &str {
        self.0.schemeless()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// What the page is known by if it is known by the other scheme. A port that is written stays.
    ///
    /// ```
    /// # use forager_core::url::Identity;
    /// let identity = Identity::parse("HTTP://Example.org:80/a")?;
    /// assert_eq!(identity.by_other_scheme(), "https://example.org/a");
    /// # Ok::<(), forager_core::url::UrlError>(())
    /// ```
    pub fn by_other_scheme(&self) -> String {
        let other = if self.scheme() == "https" { "http" } else { "https" };
        format!("{other}://{}", self.without_scheme())
    }

    /// The host, without its port.
    pub fn host(&self) -> &str {
        self.0.host()
    }

    /// The host, and its port where it is not the default.
    pub fn authority(&self) -> &str {
        self.0.authority()
    }

    /// The host without a leading `www.`: what the scope rules call a domain.
    pub fn domain(&self) -> &str {
        fold_www(self.host())
    }

    /// The domain that one could register; none for addresses and public suffixes.
    pub fn registrable_domain(&self) -> Option<&str> {
        registrable_domain(self.host())
    }

    /// The path, never empty.
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// The query, without its question mark.
    pub fn query(&self) -> Option<&str> {
        self.0.query()
    }

    /// Whether this is the first page of its host: path `/`, no query.
    pub fn is_homepage(&self) -> bool {
        self.path() == "/" && self.query().is_none()
    }

    /// The politeness unit that this URL belongs to; see [`host_key`].
    pub fn host_key(&self) -> &str {
        host_key(self.host())
    }

    /// The form for prefixes and sorted listings.
    pub fn surt(&self) -> Surt {
        let mut text = String::with_capacity(self.as_str().len() + 4);
        // Both schemes give one SURT: scope does not tell them apart.
        text.push_str("http://(");
        let host = self.host();
        if is_address(host) {
            text.push_str(host);
        } else {
            // A final dot makes a name absolute; it is no label.
            for label in host_key(host).rsplit('.') {
                text.push_str(label);
                text.push(',');
            }
        }
        text.push_str(&self.authority()[host.len()..]);
        text.push(')');
        text.push_str(self.0.target());
        Surt(text)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Identity {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A URL written so that pages of one domain, and folders of one site, sort together.
///
/// ```
/// # use forager_core::url::Identity;
/// let surt = Identity::parse("https://www.example.org:8080/a?b")?.surt();
/// assert_eq!(surt.as_str(), "http://(org,example,www,:8080)/a?b");
/// # Ok::<(), forager_core::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Surt(String);

impl Surt {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The politeness unit of a host as it stands in a URL: its name, whatever the port.
///
/// Two ports of one host are one machine, and share its patience. So do `example.org` and `example.org.`: a final dot only
/// says that the name is whole.
///
/// ```
/// # use forager_core::url::host_key;
/// assert_eq!(host_key("example.org."), host_key("example.org"));
/// ```
pub fn host_key(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// The politeness unit that somebody means by a host, however it is written: in lower case, in the letters that are sent,
/// and without a final dot. None if it is more, or less, than a host.
///
/// ```
/// # use forager_core::url::named_host_key;
/// assert_eq!(named_host_key("WWW.Bücher.example."), Some("www.xn--bcher-kva.example".to_owned()));
/// assert_eq!(named_host_key("example.org/path"), None);
/// ```
pub fn named_host_key(host: &str) -> Option<String> {
    let is_address = host.starts_with('[');
    if host.contains(['/', '\\', '?', '#', '@']) || (host.contains(':') && !is_address) {
        return None;
    }
    FetchUrl::parse(&format!("http://{host}/")).ok().map(|url| url.host_key().to_owned())
}

/// A URL as it is written, whether it can be parsed or not, but without a name and password in it.
///
/// ```
/// # use forager_core::url::without_user_info;
/// assert_eq!(without_user_info("https://me:pw@Example.org#top"), "https://Example.org#top");
/// ```
pub fn without_user_info(text: &str) -> Cow<'_, str> {
    let links_to_host = |text: &str| text.starts_with(['/', '\\']) && text[1..].starts_with(['/', '\\']);
    let rest = match after_scheme(text) {
        Some(rest) => rest,
        None if links_to_host(text) => text,
        None => return text.into(),
    };
    let host = rest.trim_start_matches(['/', '\\']);
    match user_info(host) {
        "" => text.into(),
        user_info => [&text[..text.len() - host.len()], &host[user_info.len()..]].concat().into(),
    }
}

/// Whether a URL has a scheme of ours, with whatever slashes behind it. `example.org:/a` is a host with an empty port.
fn is_of_web(text: &str) -> bool {
    let text = text.trim_start_matches(|letter| letter <= ' ');
    let scheme = after_scheme(text).map(|rest| &text[..text.len() - rest.len()]);
    scheme.is_some_and(|scheme| ["http:", "https:"].iter().any(|ours| scheme.eq_ignore_ascii_case(ours)))
}

/// What follows the scheme of a URL and its colon. Parsers take any number of slashes and backslashes there; without one,
/// `localhost:8080` is a host and its port, and `mailto:me@example.org` has no host.
fn after_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (is_scheme && !scheme.is_empty() && rest.starts_with(['/', '\\'])).then_some(rest)
}

/// What stands before the host in a URL without its scheme: a user, a password and an `@`, or nothing.
fn user_info(schemeless: &str) -> &str {
    let end = schemeless.find(['/', '\\', '?', '#']).unwrap_or(schemeless.len());
    schemeless[..end].rfind('@').map_or("", |at| &schemeless[..=at])
}

/// The host without a leading `www.`.
pub fn fold_www(host: &str) -> &str {
    host.strip_prefix("www.").unwrap_or(host)
}

/// `text` with its percent-encoding undone; bytes that are not UTF-8 become `U+FFFD`.
pub(crate) fn percent_decoded(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('%') { percent_decode_str(text).decode_utf8_lossy() } else { text.into() }
}

/// The non-empty segments of a path.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// How many non-empty segments a path has, counted by where they start.
pub(crate) fn segment_count(path: &str) -> usize {
    let inner = path.as_bytes().windows(2).filter(|pair| pair[0] == b'/' && pair[1] != b'/').count();
    inner + usize::from(!path.is_empty() && !path.starts_with('/'))
}

fn registrable_domain(host: &str) -> Option<&str> {
    // The list takes an empty label for a suffix; every host that ends in two dots would share it.
    if is_address(host) || host.contains("..") {
        return None;
    }
    psl::domain_str(host_key(host))
}

/// Whether a host is an IP address.
fn is_address(host: &str) -> bool {
    host.ends_with(']') || host.parse::<core::net::Ipv4Addr>().is_ok()
}

/// What is told of a text that is no URL of ours.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    crate::read::shortened(&without_user_info(text), SHOWN).into_owned()
}

fn push_query(out: &mut String, query: &str, options: &IdentityOptions) {
    if *options == IdentityOptions::default() {
        out.push('?');
        return push_normalised(out, query, &bytes::QUERY);
    }
    let mut normalised = String::with_capacity(query.len());
    push_normalised(&mut normalised, query, &bytes::QUERY);
    let mut parameters: Vec<&str> = normalised.split('&').collect();
    let before = parameters.len();
    parameters.retain(|parameter| !options.strips(parameter));
    if parameters.is_empty() && before > 0 {
        return; // every parameter was stripped: the question mark goes with them
    }
    if options.sort_query {
        parameters.sort_unstable();
    }
    out.push('?');
    for (index, parameter) in parameters.into_iter().enumerate() {
        if index > 0 {
            out.push('&');
        }
        out.push_str(parameter);
    }
}

/// Appends `text` with unreserved characters decoded, other escapes in capitals, and what may
/// not stand plain encoded. A percent sign that starts no escape becomes `%25`; left alone, it
/// could form a new escape with what is decoded behind it.
fn push_normalised(out: &mut String, text: &str, may_stand: &Bytes) {
    if are_all(text, may_stand) {
        return out.push_str(text);
    }
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (byte, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = after;
                let decoded = hex_value(*high) << 4 | hex_value(*low);
                if bytes::UNRESERVED[usize::from(decoded)] {
                    out.push(char::from(decoded));
                } else {
                    push_escaped(out, decoded);
                }
            }
            (b'%', _) => out.push_str("%25"),
            (&plain, _) if may_stand[usize::from(plain)] => out.push(char::from(plain)),
            (&other, _) => push_escaped(out, other),
        }
    }
}

fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}
