//! The URLs of a benchmark: made from their number, so that none has to be kept.

use std::fmt::Write as _;

/// So many URLs on so many hosts, whose sizes follow Zipf's law.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) urls: u64,
    pub(crate) hosts: u64,
}

impl Workload {
    pub(crate) fn new(urls: u64, hosts: u64) -> Self {
        Self { urls: urls.max(1), hosts: hosts.max(1) }
    }

    /// Writes URL number `index`, about 75 bytes long.
    pub(crate) fn write_url(&self, index: u64, text: &mut String) {
        text.clear();
        let drawn = mix(index);
        let host = self.host(drawn);
        let (section, year) = (drawn % 13, 2000 + drawn % 27);
        let written = write!(
            text,
            "https://www.site-{host:06}.example/section-{section}/{year}/article-{index:010}/page-{:x}.html",
            drawn >> 44
        );
        debug_assert!(written.is_ok(), "a text takes everything");
    }

    /// URL number `index`.
    pub(crate) fn url(&self, index: u64) -> String {
        let mut text = String::with_capacity(96);
        self.write_url(index, &mut text);
        text
    }

    /// A host: the chance of one is inverse to its rank, so that the largest has a share of 1/ln(hosts).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are small"
    )]
    fn host(&self, drawn: u64) -> u64 {
        let uniform = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = (self.hosts as f64).powf(uniform) as u64;
        rank.clamp(1, self.hosts) - 1
    }

    /// The numbers of URLs from the first on, in the order in which they are found: every tenth was found before.
    pub(crate) fn found_from(self, first: u64) -> impl Iterator<Item = u64> {
        let (mut new, mut position) = (first, first);
        std::iter::from_fn(move || {
            if new >= self.urls {
                return None;
            }
            let is_again = position % 10 == 9 && new > 0;
            let found = if is_again { mix(position) % new } else { new };
            new += u64::from(!is_again);
            position += 1;
            Some(found)
        })
    }

    /// The same in batches of up to so many.
    pub(crate) fn batches_from(self, first: u64, size: usize) -> impl Iterator<Item = Vec<u64>> {
        let mut found = self.found_from(first);
        std::iter::from_fn(move || {
            let batch: Vec<u64> = found.by_ref().take(size).collect();
            (!batch.is_empty()).then_some(batch)
        })
    }
}

/// Numbers that look random, and are the same in every run.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_distinct_and_of_the_length_that_is_claimed() {
        let workload = Workload::new(10_000, 1000);
        let urls: std::collections::BTreeSet<String> = (0..10_000).map(|index| workload.url(index)).collect();
        assert_eq!(urls.len(), 10_000);
        let mean = urls.iter().map(String::len).sum::<usize>() / urls.len();
        assert!((70..=85).contains(&mean), "{mean} bytes on average");
    }

    #[test]
    fn every_tenth_of_the_stream_was_there_before() {
        let mut seen = std::collections::BTreeSet::new();
        let new: Vec<u64> =
            Workload::new(900, 10).found_from(0).filter(|number| seen.insert(*number)).collect();
        assert_eq!(new, (0..900).collect::<Vec<u64>>(), "the new ones come in order");
        assert_eq!(Workload::new(900, 10).found_from(0).count(), 999, "up to the last new one");
    }

    #[test]
    fn batches_are_the_stream_in_pieces() {
        let workload = Workload::new(900, 10);
        let batches: Vec<Vec<u64>> = workload.batches_from(0, 500).collect();
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [500, 499]);
        assert!(batches.into_iter().flatten().eq(workload.found_from(0)));
        assert_eq!(workload.batches_from(900, 500).count(), 0);
    }
}
