//! Servers that answer with bytes of their own: bodies that are packed, and no answer at all.

use std::io::Write as _;

use crate::web::Field;
use crate::web::raw::Raw;
use forager_site::Site;
use serde_json::json;

type Pack = fn(&[u8]) -> Vec<u8>;

/// A stream of Brotli (RFC 7932) that has the text as it is: one block that is not compressed, and an empty last one.
fn brotli(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len() - 1).unwrap();
    assert!(length < 1 << 16, "the length has 16 bits");
    // From the lowest bit: a window of 64 KiB, not the last block, a length of four nibbles, not compressed.
    let head = (length << 4 | 1 << 20).to_le_bytes();
    [&head[..3], text, &[0b11]].concat()
}

/// A frame of Zstandard (RFC 8878) that has the text as it is: one block that is not compressed.
fn zstandard(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    let magic = 0xFD2F_B528_u32.to_le_bytes();
    // One segment, with its length in four bytes.
    let head = [&[0b1010_0000], &length.to_le_bytes()[..]].concat();
    let block = (1 | length << 3).to_le_bytes();
    [&magic[..], &head, &block[..3], text].concat()
}

#[test]
fn a_body_in_brotli_or_zstandard_is_read() {
    let table: [(&str, Pack); 2] = [("br", brotli), ("zstd", zstandard)];
    for (coding, pack) in table {
        let raw = Raw::new("127.0.0.1", move |path, stream| {
            let text = format!("<title>Page {path}</title><a href=\"/next\">next</a>");
            let body = pack(text.as_bytes());
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {coding}\r\nContent-Length: \
                 {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), &body].concat())
        });
        let field = Field::strict(Site::new());
        let command = ["crawl", &raw.url("/first"), "--allow-private", "--out", "pages.jsonl", "--quiet"];
        let ran = field.run(&command);
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{coding}: {ran:?}");
        let told: Vec<_> = field
            .lines("pages.jsonl")
            .iter()
            .map(|line| (line["url"].clone(), line["title"].clone()))
            .collect();
        let want = ["/first", "/next"].map(|path| (json!(raw.url(path)), json!(format!("Page {path}"))));
        assert_eq!(told, want, "{coding}");
        assert_eq!(raw.asked(), ["/robots.txt", "/first", "/next"], "{coding}");
    }
}

#[test]
fn what_fails_alike_at_many_hosts_is_one_row_of_the_summary() {
    let servers: Vec<Raw> =
        (1..=5).map(|number| Raw::new(&format!("127.0.0.{number}"), |_, _| Ok(()))).collect();
    let urls: Vec<String> = servers.iter().map(|server| server.url("/")).collect();
    let field = Field::strict(Site::new());
    let mut command = vec!["crawl", "--allow-private", "--out", "pages.jsonl", "--json", "--quiet"];
    command.extend(urls.iter().map(String::as_str));
    let ran = field.run(&command);
    assert_eq!(ran.status, 9, "{ran:?}");
    let lines = field.lines("pages.jsonl");
    let want = json!({ "the host closed the connection before it answered": lines.len() });
    assert_eq!(ran.rows()[0]["outcomes"], want, "{ran:?}");
    // Each has its own words.
    for server in &servers {
        let host = server.address.ip().to_string();
        let is_named = |line: &serde_json::Value| line["error"].as_str().unwrap().starts_with(&host);
        assert!(lines.iter().any(is_named), "{host}: {lines:?}");
    }
}
