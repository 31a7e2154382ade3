//! Chance that comes out the same on every store, and whenever it is asked again.

use rand_pcg::Pcg64;

/// Random numbers that come out the same wherever they are drawn: from the URL and a count.
pub(super) fn random(url: &str, count: u64) -> Pcg64 {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(url.as_bytes(), count);
    Pcg64::new(u128::from(seed), u128::from(count))
}

/// A number from 0 to `most`, drawn from a text and a count.
pub(super) fn draw(text: &str, count: u64, most: u64) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(text.as_bytes(), count) % (most + 1)
}
