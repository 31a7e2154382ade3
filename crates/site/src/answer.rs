//! What a page answers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

/// What a page answers: a status, headers and a body; late, or not whole, if that is wanted.
///
/// ```
/// # use forager_site::Answer;
/// let answer = Answer::html("<p>Closed on Mondays").etag("v1");
/// assert_eq!(answer.status(), 200);
/// ```
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) delay: Duration,
    pub(crate) cut_after: Option<usize>,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<Timestamp>,
}

/// How long a server asks to be left alone, in the two forms that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// For so many seconds.
    Seconds(u32),
    /// Until then.
    At(Timestamp),
}

impl Answer {
    /// 200, with a body of this media type.
    pub fn new(media_type: &'static str, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        Self {
            status: StatusCode::OK,
            headers,
            body: body.into(),
            delay: Duration::ZERO,
            cut_after: None,
            etag: None,
            last_modified: None,
        }
    }

    /// A page.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::new("text/html; charset=utf-8", body)
    }

    /// A text, such as robots.txt.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::new("text/plain; charset=utf-8", body)
    }

    /// A sitemap.
    pub fn xml(body: impl Into<Bytes>) -> Self {
        Self::new("application/xml", body)
    }

    /// An answer without a page, whose body repeats the status.
    pub fn error(status: u16) -> Self {
        // What is no status is a slip in the description, and shows as one.
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, ..Self::html(format!("<title>{status}</title><h1>{status}</h1>")) }
    }

    /// An answer that leads elsewhere.
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::error(status).header(LOCATION, to)
    }

    /// 503, and when to come back.
    pub fn busy(retry: RetryAfter) -> Self {
        let value = match retry {
            RetryAfter::Seconds(seconds) => seconds.to_string(),
            RetryAfter::At(time) => httpdate::fmt_http_date(SystemTime::from(time)),
        };
        Self::error(503).header(RETRY_AFTER, &value)
    }

    /// Adds a header. A value that cannot be sent makes the answer an error that says so.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.append(name, value);
                self
            }
            Err(_) => Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                ..Self::text(format!("the site is described wrongly: {name} cannot be {value:?}"))
            },
        }
    }

    /// Waits before it answers. The time is that of the wall, like the patience of clients.
    #[must_use]
    pub fn slow(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Breaks the connection after so many bytes of the body.
    #[must_use]
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { cut_after: Some(bytes), ..self }
    }

    /// Is known by this; who has it already is told so.
    #[must_use]
    pub fn etag(self, tag: &str) -> Self {
        let tag: String = tag.chars().filter(|letter| letter.is_ascii_graphic() && *letter != '"').collect();
        Self { etag: Some(format!("\"{tag}\"")), ..self }
    }

    /// Says when it last changed; who has seen it since is told so.
    #[must_use]
    pub fn last_modified(self, time: Timestamp) -> Self {
        Self { last_modified: Some(time), ..self }
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body, whole.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}
