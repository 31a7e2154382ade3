//! Bodies: their lengths, their encodings, and where they are cut off.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod servers;

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use forager_fetch::http::{CutOff, Http, Limits, Request};
use forager_fetch::robots::MAX_BYTES;
use servers::{answer, config, get, get_with, limited, raw, request, says};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

const PAGE: &str = "<html><body><p>The same words again and again and again.</p></body></html>";

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn brotli(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let params = brotli::enc::BrotliEncoderParams { quality: 5, ..Default::default() };
    brotli::BrotliCompress(&mut body, &mut out, &params).unwrap();
    out
}

fn zstd(body: &[u8]) -> Vec<u8> {
    zstd::encode_all(body, 3).unwrap()
}

type Encode = fn(&[u8]) -> Vec<u8>;

const ENCODINGS: [(&str, Encode); 3] = [("gzip", gzip), ("br", brotli), ("zstd", zstd)];

fn chunked(chunks: &[&[u8]]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in chunks {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A name, what the server says, and what is made of it.
type Case<'a> = (&'a str, Vec<u8>, &'a [u8], Option<CutOff>);

#[tokio::test]
async fn bodies_are_whole_or_cut_off() {
    let big = vec![b'x'; 300_000];
    let ended = |chunks: &[&[u8]], end: &str| [chunked(chunks), end.as_bytes().to_vec()].concat();
    let head = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}").into_bytes();
    let cases: [Case<'_>; 14] = [
        ("empty", answer("", b""), b"", None),
        ("with a length", answer("", b"hello"), b"hello", None),
        ("large, with a length", answer("", &big), &big, None),
        ("chunked", ended(&[b"he", b"llo"], "0\r\n\r\n"), b"hello", None),
        ("chunked, with a trailer", ended(&[b"hello"], "0\r\nX: 1\r\n\r\n"), b"hello", None),
        ("large, chunked", ended(&[&big[..100_000]; 3], "0\r\n\r\n"), &big, None),
        ("until the end", head("", "hello"), b"hello", None),
        ("HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec(), b"hello", None),
        ("less than its length", head("Content-Length: 10\r\n", "hello"), b"hello", Some(CutOff::Broken)),
        ("more than its length", head("Content-Length: 5\r\n", "hello, world"), b"hello", None),
        ("chunked, no end", chunked(&[b"he", b"llo"]), b"hello", Some(CutOff::Broken)),
        ("chunked, cut in a chunk", ended(&[b"he"], "5\r\nllo"), b"hello", Some(CutOff::Broken)),
        ("chunked, not a size", ended(&[b"hello"], "zz\r\n"), b"hello", Some(CutOff::Broken)),
        (
            "chunked, absurd size",
            ended(&[b"hello"], "ffffffffffffffffff\r\n"),
            b"hello",
            Some(CutOff::Broken),
        ),
    ];
    for (name, bytes, want, cut_off) in cases {
        let page = get(says(bytes).await).await.unwrap();
        assert!(page.body == want, "{name}: {} bytes", page.body.len());
        assert_eq!((page.cut_off, page.wire_bytes), (cut_off, want.len() as u64), "{name}");
    }
}

#[tokio::test]
async fn more_than_its_length_does_not_reach_the_next_request() {
    let smuggled =
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    let address = raw(move |mut stream| async move {
        stream.write_all(smuggled.as_bytes()).await?;
        servers::read_head(&mut stream).await;
        Ok(())
    })
    .await;
    let http = Http::new(config()).unwrap();
    for _ in 0..3 {
        if let Ok(page) = get_with(&http, address).await {
            assert_eq!(page.body, "ok");
        }
    }
}

#[tokio::test]
async fn encoded_bodies_are_decoded() {
    for (name, encode) in ENCODINGS {
        let wire = encode(PAGE.as_bytes());
        let page = get(says(answer(&format!("Content-Encoding: {name}\r\n"), &wire)).await).await.unwrap();
        assert_eq!((page.body, page.wire_bytes), (PAGE.into(), wire.len() as u64), "{name}");
        assert_eq!((page.cut_off, page.undecoded), (None, None), "{name}");
    }
    let twice = brotli(&gzip(PAGE.as_bytes()));
    let page = get(says(answer("Content-Encoding: gzip, br\r\n", &twice)).await).await.unwrap();
    assert_eq!((page.body, page.cut_off), (PAGE.into(), None));
}

#[tokio::test]
async fn unknown_encodings_are_kept_and_named() {
    for name in ["compress", "gzip, snappy", "gzip, gzip, gzip, gzip"] {
        let page = get(says(answer(&format!("Content-Encoding: {name}\r\n"), b"?!")).await).await.unwrap();
        assert_eq!((page.body, page.undecoded.as_deref(), page.cut_off), ("?!".into(), Some(name), None));
    }
}

#[tokio::test]
async fn bad_encodings_are_cut_off_where_they_fail() {
    let text = (0..60_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    for (name, encode) in ENCODINGS {
        let wire = encode(text.as_bytes());
        let half = answer(&format!("Content-Encoding: {name}\r\n"), &wire[..wire.len() / 2]);
        let page = get(says(half).await).await.unwrap();
        assert_eq!(page.cut_off, Some(CutOff::BadEncoding), "{name}");
        assert!(!page.body.is_empty() && text.as_bytes().starts_with(&page.body), "{name}");
    }
    let page = get(says(answer("Content-Encoding: gzip\r\n", b"not at all")).await).await.unwrap();
    assert_eq!((page.body.len(), page.cut_off), (0, Some(CutOff::BadEncoding)));
}

#[tokio::test]
async fn a_broken_connection_counts_more_than_what_it_broke() {
    let wire = gzip(PAGE.as_bytes());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", wire.len());
    let page = get(says([head.as_bytes(), &wire[..wire.len() - 9]].concat()).await).await.unwrap();
    assert_eq!(page.cut_off, Some(CutOff::Broken));
}

#[tokio::test]
async fn bombs_go_off_no_further_than_the_limits() {
    let zeros = vec![0; 16 << 20];
    for (name, encode) in ENCODINGS {
        let bomb = answer(&format!("Content-Encoding: {name}\r\n"), &encode(&zeros));
        let address = says(bomb).await;
        let page = get(address).await.unwrap();
        let most = Limits::default();
        assert_eq!(page.cut_off, Some(CutOff::RatioLimit), "{name}");
        let allowed = most.ratio_floor_bytes.max(page.wire_bytes * most.decompression_ratio);
        assert!(page.body.len() as u64 <= allowed, "{name}: {}", page.body.len());

        let unbounded_ratio = limited(|limits| limits.decompression_ratio = u64::MAX);
        let page = get_with(&unbounded_ratio, address).await.unwrap();
        assert_eq!((page.cut_off, page.body.len()), (Some(CutOff::BodyLimit), 10 << 20), "{name}");
    }
}

#[tokio::test]
async fn what_shrinks_well_but_is_small_is_no_bomb() {
    let spaces = vec![b' '; 1 << 20];
    for (name, encode) in ENCODINGS {
        let page = get(says(answer(&format!("Content-Encoding: {name}\r\n"), &encode(&spaces))).await).await;
        assert_eq!(page.unwrap().cut_off, None, "{name}");
    }
}

#[tokio::test]
async fn endless_bodies_end_at_the_limit() {
    let endless = |head: &'static str, piece: &'static [u8]| {
        raw(move |mut stream| async move {
            stream.write_all(head.as_bytes()).await?;
            loop {
                stream.write_all(piece).await?;
            }
        })
    };
    let cases: [(&str, &str, &'static [u8]); 3] = [
        ("until the end", "HTTP/1.1 200 OK\r\n\r\n", b"aaaaaaaaaaaaaaaa"),
        ("chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"4\r\naaaa\r\n"),
        ("absurd length", "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551000\r\n\r\n", b"aaaaaaaa"),
    ];
    for (name, head, piece) in cases {
        let http = limited(|limits| limits.body_bytes = 100_000);
        let page = get_with(&http, endless(head, piece).await).await.unwrap();
        assert_eq!((page.cut_off, page.body.len()), (Some(CutOff::BodyLimit), 100_000), "{name}");
        let http = limited(|limits| limits.wire_bytes = 50_000);
        let page = get_with(&http, endless(head, piece).await).await.unwrap();
        assert_eq!((page.cut_off, page.body.len()), (Some(CutOff::WireLimit), 50_000), "{name}");
    }
}

#[tokio::test]
async fn a_request_can_have_a_limit_of_its_own() {
    let address = says(answer("", &vec![b'a'; 20_000])).await;
    let http = limited(|limits| (limits.body_bytes, limits.wire_bytes) = (5_000, 5_000));
    let cases = [
        (None, 5_000, Some(CutOff::BodyLimit)),
        (Some(1_000), 1_000, Some(CutOff::BodyLimit)),
        (Some(19_999), 19_999, Some(CutOff::BodyLimit)),
        (Some(20_000), 20_000, None),
        (Some(0), 0, Some(CutOff::BodyLimit)),
    ];
    for (body_bytes, want, cut_off) in cases {
        let page = Request { body_bytes, ..request(&format!("http://{address}/")) };
        let page = http.get(&page).await.unwrap();
        assert_eq!((page.body.len(), page.cut_off), (want, cut_off), "{body_bytes:?}");
    }
}

#[tokio::test]
async fn a_compressed_body_is_cut_off_at_the_wire_limit_too() {
    let noise: Vec<u8> = (0..200_000_u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let address = says(answer("Content-Encoding: gzip\r\n", &gzip(&noise))).await;
    let page = get_with(&limited(|limits| limits.wire_bytes = 100_000), address).await.unwrap();
    assert_eq!(page.cut_off, Some(CutOff::WireLimit));
    assert!(!page.body.is_empty() && noise.starts_with(&page.body));
}

/// However many requests allow for more than usual, and wherever they are cut off. Nobody waits for ever.
#[tokio::test]
async fn two_bodies_at_a_time_are_longer_than_usual() {
    const PATIENCE: Duration = Duration::from_secs(2);
    let spaces = vec![b' '; 900_000];
    // No connection is used again: whether the server has closed it by then is another matter.
    let once = "Connection: close\r\n";
    let plain = says(answer(once, &spaces)).await;
    // It comes in one piece, and is cut off by that piece already.
    let packed = says(answer(&format!("{once}Content-Encoding: gzip\r\n"), &gzip(&spaces))).await;
    let cases = [
        ("plain", plain, 1_000_000, 900_000, None),
        ("packed", packed, 1_000_000, 900_000, None),
        ("plain and cut off", plain, 800_000, 800_000, Some(CutOff::BodyLimit)),
        ("packed and cut off", packed, 800_000, 800_000, Some(CutOff::BodyLimit)),
    ];
    let mut tasks = JoinSet::new();
    for (name, address, most, want, cut_off) in cases {
        let http = limited(|limits| {
            (limits.body_bytes, limits.whole) = (1000, PATIENCE);
            limits.decompression_ratio = u64::MAX;
        });
        let mut request = request(&format!("http://{address}/"));
        request.body_bytes = Some(most);
        tasks.spawn(async move {
            let large = async || http.get(&request).await.unwrap();
            let first = tokio::join!(large(), large());
            let third = large().await;
            assert_eq!(third.cut_off, Some(CutOff::NoRoom), "{name}: the first two are still kept");
            assert!(third.body.len() <= MAX_BYTES + 1, "{name}");
            let usual = get_with(&http, address).await.unwrap();
            assert_eq!(usual.body.len(), 1000, "{name}: what is not longer needs no room");
            let of_robots = Request { body_bytes: Some(MAX_BYTES as u64 + 1), ..request.clone() };
            let robots = http.get(&of_robots).await.unwrap();
            assert_eq!(robots.body.len(), MAX_BYTES + 1, "{name}: nor does a robots.txt");
            let (fourth, ()) = tokio::join!(large(), async { drop(first) });
            assert_eq!((fourth.body.len(), fourth.cut_off), (want, cut_off), "{name}");
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
