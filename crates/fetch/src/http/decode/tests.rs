use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;
use tokio::sync::Semaphore;

use super::*;

const ALL: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn encoded(coding: Coding, body: &[u8]) -> Vec<u8> {
    let level = Compression::default();
    match coding {
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        Coding::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(body).unwrap();
            encoder.finish().unwrap()
        }
        Coding::Brotli => {
            let mut out = Vec::new();
            let params = brotli::enc::BrotliEncoderParams { quality: 5, ..Default::default() };
            brotli::BrotliCompress(&mut &*body, &mut out, &params).unwrap();
            out
        }
        Coding::Zstd => zstd::encode_all(body, 3).unwrap(),
    }
}

/// Decodes a body that comes in pieces of `piece` bytes, with room for all of it.
fn decoded(codings: &[Coding], wire: &[u8], piece: usize, limits: &Limits) -> (Bytes, Option<CutOff>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let (places, clock) =
            (Arc::new(Semaphore::new(1)), std::pin::pin!(tokio::time::sleep(Duration::ZERO)));
        let mut room = Room::new(&places, limits, clock);
        let mut decoder = Decoder::new(codings, limits);
        let mut stopped = None;
        for chunk in wire.chunks(piece) {
            stopped = decoder.push(chunk, &mut room).await.err();
            if stopped.is_some() {
                break;
            }
        }
        let (body, unfinished) = decoder.finish();
        (body, stopped.or(unfinished))
    })
}

fn text(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|line| format!("<p>line {line} of {}</p>\n", line * 7919).into_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_was_encoded_comes_back(
        lines in 0..3000_usize,
        piece in 1..5000_usize,
        order in proptest::sample::subsequence(ALL.to_vec(), 1..=3),
    ) {
        let body = text(lines);
        let wire = order.iter().fold(body.clone(), |body, coding| encoded(*coding, &body));
        let (found, cut_off) = decoded(&order, &wire, piece, &Limits::default());
        prop_assert_eq!(cut_off, None);
        prop_assert!(found == body);
    }

    /// Whatever comes, nothing panics and no limit is passed.
    #[test]
    fn damage_is_noticed_or_harmless(
        which in 0..4_usize,
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
        piece in 1..300_usize,
    ) {
        let body = text(200);
        let mut wire = encoded(ALL[which], &body);
        let at = at.index(wire.len());
        wire[at] ^= 1 << bit;
        let limits = Limits { body_bytes: 20_000, ..Limits::default() };
        let (found, cut_off) = decoded(&[ALL[which]], &wire, piece, &limits);
        prop_assert!(found.len() <= 20_000);
        if ALL[which] == Coding::Gzip && cut_off.is_none() {
            prop_assert!(found == body, "gzip has a checksum");
        }
    }
}

#[test]
fn a_body_that_ends_early_is_kept_as_far_as_it_came() {
    let body = text(20_000);
    for coding in ALL {
        let wire = encoded(coding, &body);
        let (found, cut_off) = decoded(&[coding], &wire[..wire.len() / 2], 1000, &Limits::default());
        assert_eq!(cut_off, Some(CutOff::BadEncoding), "{coding:?}");
        assert!(found.len() > body.len() / 10 && body.starts_with(&found), "{coding:?}: {}", found.len());
    }
}

#[test]
fn damage_in_the_middle_leaves_what_came_before() {
    let body = text(20_000);
    let mut wire = encoded(Coding::Gzip, &body);
    let middle = wire.len() / 2;
    wire[middle..middle + 64].fill(0xff);
    let (found, cut_off) = decoded(&[Coding::Gzip], &wire, wire.len(), &Limits::default());
    assert_eq!(cut_off, Some(CutOff::BadEncoding));
    assert!(found.len() > body.len() / 4 && body.starts_with(&found[..body.len() / 4]));
}

#[test]
fn limits_hold_for_every_encoding() {
    let zeros = vec![0; 4 << 20];
    let cases: [(&str, Limits, CutOff, usize); 3] = [
        (
            "length",
            Limits { decompression_ratio: 1 << 20, body_bytes: 1000, ..Limits::default() },
            CutOff::BodyLimit,
            1000,
        ),
        (
            "growth",
            Limits { decompression_ratio: 100, ratio_floor_bytes: 100_000, ..Limits::default() },
            CutOff::RatioLimit,
            100 * 8192,
        ),
        (
            "wire",
            Limits { decompression_ratio: 1 << 20, wire_bytes: 11, ..Limits::default() },
            CutOff::WireLimit,
            4 << 20,
        ),
    ];
    for (name, limits, want, most) in cases {
        for coding in ALL {
            let (found, cut_off) = decoded(&[coding], &encoded(coding, &zeros), 8192, &limits);
            assert_eq!(cut_off, Some(want), "{coding:?}, {name}");
            assert!(found.len() <= most, "{coding:?}, {name}: {}", found.len());
        }
    }
}

#[test]
fn growth_between_two_encodings_counts_too() {
    // The outer one grows to megabytes of empty gzip members, from which nothing comes.
    let wire = encoded(Coding::Zstd, &encoded(Coding::Gzip, b"").repeat(200_000));
    let (found, cut_off) = decoded(&[Coding::Gzip, Coding::Zstd], &wire, 8192, &Limits::default());
    assert_eq!((found.len(), cut_off), (0, Some(CutOff::RatioLimit)));
}

/// However much comes of one chunk, through however many encodings.
#[tokio::test]
async fn no_more_is_decoded_than_there_is_room_for() {
    const USUAL: usize = 1_000_000;
    let body = [text(10), vec![b' '; 4 << 20]].concat();
    for codings in ALL.map(|coding| vec![coding]).into_iter().chain([vec![Coding::Gzip, Coding::Brotli]]) {
        let wire = codings.iter().fold(body.clone(), |body, coding| encoded(*coding, &body));
        let limits = Limits { decompression_ratio: u64::MAX, ..Limits::default() };
        let of_client = Limits { body_bytes: USUAL as u64, ..limits };
        let places = Arc::new(Semaphore::new(0));
        for is_given_up in [true, false] {
            let clock = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
            let mut room = Room::new(&places, &of_client, clock);
            let mut decoder = Decoder::new(&codings, &limits);
            let mut push = Box::pin(decoder.push(&wire, &mut room));
            tokio::select! {
                biased;
                pushed = &mut push => panic!("{codings:?}: {pushed:?} without room"),
                () = tokio::task::yield_now() => {}
            }
            if is_given_up {
                drop(push);
                let most = USUAL - SCRATCH..=USUAL;
                assert!(most.contains(&decoder.body.len()), "{codings:?}: {}", decoder.body.len());
            } else {
                places.add_permits(1);
                assert_eq!(push.await, Ok(()), "{codings:?}");
                assert!(decoder.finish() == (body.clone().into(), None), "{codings:?}");
            }
        }
    }
}

#[test]
fn a_body_of_exactly_the_limit_is_whole() {
    let body = text(100);
    let limits = Limits { body_bytes: body.len() as u64, ..Limits::default() };
    for coding in ALL {
        let wire = encoded(coding, &body);
        let limits = Limits { wire_bytes: wire.len() as u64, ..limits };
        assert_eq!(decoded(&[coding], &wire, 100, &limits), (body.clone().into(), None), "{coding:?}");
    }
}

#[test]
fn odd_but_honest_bodies_are_read_as_browsers_do() {
    let body = text(50);
    let gzip = encoded(Coding::Gzip, &body);
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(&body).unwrap();
    let named = flate2::GzBuilder::new().filename("a.html").comment("page").extra(vec![7; 300]);
    let mut named = named.write(Vec::new(), Compression::fast());
    named.write_all(&body).unwrap();
    let cases: [(&str, Coding, Vec<u8>, Vec<u8>); 7] = [
        ("nothing at all", Coding::Gzip, vec![], vec![]),
        ("two members", Coding::Gzip, gzip.repeat(2), body.repeat(2)),
        ("padding behind the end", Coding::Gzip, [&gzip[..], &[0; 100]].concat(), body.clone()),
        ("a header with everything", Coding::Gzip, named.finish().unwrap(), body.clone()),
        ("deflate without a header", Coding::Deflate, raw.finish().unwrap(), body.clone()),
        ("two frames", Coding::Zstd, encoded(Coding::Zstd, &body).repeat(2), body.repeat(2)),
        (
            "text behind brotli",
            Coding::Brotli,
            [encoded(Coding::Brotli, &body), b"x".to_vec()].concat(),
            body.clone(),
        ),
    ];
    for (name, coding, wire, want) in cases {
        for piece in [1, 7, 100_000] {
            let found = decoded(&[coding], &wire, piece, &Limits::default());
            assert_eq!(found, (want.clone().into(), None), "{name}, {piece} at a time");
        }
    }
}

#[test]
fn what_is_not_encoded_as_it_says_is_an_error() {
    for coding in [Coding::Gzip, Coding::Zstd, Coding::Deflate] {
        let (found, cut_off) =
            decoded(&[coding], b"<html>plain text after all</html>", 100, &Limits::default());
        assert_eq!((found.len(), cut_off), (0, Some(CutOff::BadEncoding)), "{coding:?}");
    }
}

#[test]
fn a_zstd_window_beyond_what_http_allows_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(26).unwrap();
    encoder.write_all(&text(100)).unwrap();
    let (_, cut_off) = decoded(&[Coding::Zstd], &encoder.finish().unwrap(), 100, &Limits::default());
    assert_eq!(cut_off, Some(CutOff::BadEncoding));
}
