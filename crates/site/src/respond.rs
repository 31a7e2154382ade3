//! One request and its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::{
    ETAG, HOST, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER,
};
use http::{Method, Request, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};

use crate::answer::Answer;
use crate::body::Sending;
use crate::log::Log;
use crate::site::{Asked, Host};

/// A host, where it is served.
pub(crate) struct Placed {
    pub(crate) name: Arc<str>,
    pub(crate) address: IpAddr,
    pub(crate) host: Host,
}

/// All that is served.
pub(crate) struct Served {
    pub(crate) hosts: Vec<Placed>,
    pub(crate) port: u16,
    pub(crate) log: Log,
}

impl Served {
    /// Answers a request that came to an address of ours.
    pub(crate) async fn respond<B>(&self, request: Request<B>, address: IpAddr) -> Response<Sending> {
        let called = called(&request);
        let host = self.find(&called, address);
        let name = host.map_or_else(|| called.as_str().into(), |host| host.name.clone());
        let target = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let mut open = self.log.arrive(&name, target.to_owned(), request.headers());
        let answer = match host {
            Some(host) if matches!(*request.method(), Method::GET | Method::HEAD) => {
                let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
                let (now, port) = (self.log.now(), self.port);
                host.host.answer(&Asked { host: &name, path, query, now, port })
            }
            Some(_) => Answer::error(405),
            None => Answer::error(421),
        };
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        let Answer { status, mut headers, body, cut_after, etag, last_modified, .. } = answer;
        put_validators(&mut headers, etag.as_deref(), last_modified);
        let is_known = status == StatusCode::OK && is_known(request.headers(), &headers, last_modified);
        let (status, body) =
            if is_known { (StatusCode::NOT_MODIFIED, bytes::Bytes::new()) } else { (status, body) };
        open.status = Some(status.as_u16());
        open.pause = pause(status, &headers, self.log.now());
        let mut response = Response::new(Sending::new(body, cut_after, open));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }

    /// The host that is meant: by its name, or else the only one at the address.
    fn find(&self, called: &str, address: IpAddr) -> Option<&Placed> {
        let named = self.hosts.iter().find(|host| *host.name == *called);
        named.or_else(|| {
            let mut there = self.hosts.iter().filter(|host| host.address == address);
            there.next().filter(|_| there.next().is_none())
        })
    }
}

/// What the client calls the host: in the target for HTTP/2, in a header for HTTP/1.1.
fn called<B>(request: &Request<B>) -> String {
    let header = || request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let called = request.uri().host().or_else(header).unwrap_or_default();
    let name = match called.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => called,
    };
    name.to_ascii_lowercase()
}

fn put_validators(headers: &mut HeaderMap, etag: Option<&str>, last_modified: Option<Timestamp>) {
    // Both are made of letters that a header may have.
    if let Some(Ok(value)) = etag.map(HeaderValue::from_str) {
        headers.insert(ETAG, value);
    }
    let date = last_modified.map(|time| httpdate::fmt_http_date(SystemTime::from(time)));
    if let Some(Ok(value)) = date.map(HeaderValue::try_from) {
        headers.insert(LAST_MODIFIED, value);
    }
}

/// Until when an answer that is given now asks to be left alone.
fn pause(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    if !matches!(status.as_u16(), 429 | 503) {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    match text.parse() {
        Ok(seconds) => now.checked_add(SignedDuration::from_secs(seconds)).ok(),
        Err(_) => Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok(),
    }
}

/// Whether the client has this version already. Where it names a tag, its time does not count.
fn is_known(asked: &HeaderMap, answered: &HeaderMap, last_modified: Option<Timestamp>) -> bool {
    let text = |name| asked.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if let Some(tags) = text(IF_NONE_MATCH) {
        let tag = answered.get(ETAG).and_then(|value| value.to_str().ok());
        let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        return tag.is_some_and(|tag| tags.split(',').any(|known| bare(known) == bare(tag)));
    }
    let (Some(since), Some(changed)) = (text(IF_MODIFIED_SINCE), last_modified) else { return false };
    // Dates of HTTP have whole seconds.
    let changed = Timestamp::from_second(changed.as_second()).unwrap_or(changed);
    httpdate::parse_http_date(since).is_ok_and(|since| SystemTime::from(changed) <= since)
}
