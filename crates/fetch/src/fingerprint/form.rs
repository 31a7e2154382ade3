//! What a body is: a page, other text, or bytes.

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// HTML.
    Html,
    /// Text of another kind.
    Text,
    /// Anything else.
    Binary,
}

/// How far a body is looked at where its type does not tell.
const LOOK_BYTES: usize = 1024;

impl Form {
    /// Tells by the content type, and by the first bytes where it does not say.
    pub fn of(content_type: Option<&str>, body: &[u8]) -> Self {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        match essence.as_str() {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "" | "unknown/unknown" | "application/unknown" | "*/*" => Self::by_look(body),
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/x-ndjson"
            | "application/yaml" => Self::Text,
            other if other.starts_with("text/") => Self::Text,
            other if other.ends_with("+xml") || other.ends_with("+json") => Self::Text,
            _ => Self::Binary,
        }
    }

    fn by_look(body: &[u8]) -> Self {
        let start = &body[..body.len().min(LOOK_BYTES)];
        if memchr::memchr(0, start).is_some() {
            return Self::Binary;
        }
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        let begins = |tag: &[u8]| start.get(..tag.len()).is_some_and(|s| s.eq_ignore_ascii_case(tag));
        let tags: [&[u8]; 8] =
            [b"<!doctype html", b"<html", b"<head", b"<body", b"<title", b"<!--", b"<div", b"<p>"];
        if tags.into_iter().any(begins) {
            return Self::Html;
        }
        match core::str::from_utf8(start) {
            Err(error) if error.error_len().is_some() => Self::Binary,
            _ => Self::Text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_is() {
        let cases: [(&str, Option<&str>, &[u8], Form); 15] = [
            ("HTML", Some("Text/HTML; charset=x"), b"", Form::Html),
            ("XHTML", Some("application/xhtml+xml"), b"", Form::Html),
            ("plain text", Some("text/plain"), b"<html>", Form::Text),
            ("JSON", Some("application/ld+json"), b"", Form::Text),
            ("a feed", Some("application/rss+xml"), b"", Form::Text),
            ("a drawing", Some("image/svg+xml"), b"", Form::Text),
            ("a picture", Some("image/png"), b"<html>", Form::Binary),
            ("a document", Some("application/pdf"), b"", Form::Binary),
            ("not said, a page", None, b" \n<!DOCTYPE html>", Form::Html),
            ("not said, a page with a mark", Some(""), b"\xef\xbb\xbf<html>", Form::Html),
            ("not said, text", None, b"Hello", Form::Text),
            ("not said, text of several bytes", None, "čć".as_bytes(), Form::Text),
            ("not said, zeros", None, b"a\0b", Form::Binary),
            ("not said, no text", None, b"\x89PNG\r\n", Form::Binary),
            ("nothing at all", None, b"", Form::Text),
        ];
        for (name, content_type, body, want) in cases {
            assert_eq!(Form::of(content_type, body), want, "{name}");
        }
    }
}
