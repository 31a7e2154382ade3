//! What is asked for.

use ::http::header::{ACCEPT, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use ::http::{HeaderMap, Uri};
use bytes::Bytes;
use forager_core::url::FetchUrl;
use http_body_util::Empty;

use super::{Failure, Limits};

/// One page to ask for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Where it is.
    pub url: FetchUrl,
    /// The `ETag` that it had last time; if it still has it, the answer is a 304.
    pub etag: Option<String>,
    /// The `Last-Modified` that it had last time, likewise.
    pub last_modified: Option<String>,
    /// How many bytes to keep and to read at most, where that is not [`Limits::body_bytes`]. Of bodies that are longer than that,
    /// and than a robots.txt may be, only two are read at a time.
    pub body_bytes: Option<u64>,
    /// The kinds of content that are of use.
    pub accept: &'static str,
}

impl Request {
    /// Asks for a page, whatever it is.
    pub fn new(url: FetchUrl) -> Self {
        Self { url, etag: None, last_modified: None, body_bytes: None, accept: "*/*" }
    }

    pub(super) fn limits(&self, of_client: &Limits) -> Limits {
        let mut limits = *of_client;
        if let Some(bytes) = self.body_bytes {
            // Uncompressed, it comes as it is kept; compressed, it is seldom larger.
            (limits.body_bytes, limits.wire_bytes) = (bytes, bytes);
        }
        limits
    }

    /// The request as it is sent.
    pub(super) fn message(&self, common: &HeaderMap) -> Result<::http::Request<Empty<Bytes>>, Failure> {
        let mut message = ::http::Request::new(Empty::new());
        *message.uri_mut() = target(&self.url)?;
        *message.headers_mut() = common.clone();
        message.headers_mut().insert(ACCEPT, HeaderValue::from_static(self.accept));
        let mut condition = |name: HeaderName, value: &Option<String>| {
            // What cannot be sent back was not a good condition: without it the page comes whole.
            if let Some(value) = value.as_ref().and_then(|value| HeaderValue::from_str(value).ok()) {
                message.headers_mut().insert(name, value);
            }
        };
        condition(IF_NONE_MATCH, &self.etag);
        condition(IF_MODIFIED_SINCE, &self.last_modified);
        Ok(message)
    }
}

fn target(url: &FetchUrl) -> Result<Uri, Failure> {
    let text = url.as_str();
    Uri::from_maybe_shared(Bytes::copy_from_slice(text.as_bytes()))
        .map_err(|error| Failure::Url { url: text.chars().take(200).collect(), cause: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_has_no_user_info() {
        let cases = [
            ("http://example.org/a?b", "http://example.org/a?b"),
            ("http://me@example.org/", "http://example.org/"),
            ("http://me:secret@example.org:8080/a?b@c", "http://example.org:8080/a?b@c"),
            ("http://example.org@other.example/", "http://other.example/"),
            ("https://example.org/@me", "https://example.org/@me"),
            ("https://[::1]:8443/", "https://[::1]:8443/"),
        ];
        for (url, want) in cases {
            assert_eq!(target(&url.parse().unwrap()).unwrap().to_string(), want, "{url}");
        }
    }

    #[test]
    fn every_character_that_a_url_may_have_can_be_asked_for() {
        for character in ('!'..='~').chain(['\u{e4}', '\u{4e2d}']).filter(|c| !"/?#\\".contains(*c)) {
            let url: FetchUrl = format!("http://example.org/a{character}b?c{character}d").parse().unwrap();
            assert_eq!(target(&url).unwrap().to_string(), url.as_str());
        }
    }

    #[test]
    fn a_url_that_is_too_long_to_ask_for_is_a_failure() {
        let url: FetchUrl = format!("http://example.org/{}", "a".repeat(65_517)).parse().unwrap();
        let failure = target(&url).unwrap_err().to_string();
        assert!(failure.len() < 400 && failure.contains("too long"), "{failure}");
    }
}
