//! Sentences that follow from a seed.

use rand::RngExt;
use rand_pcg::Pcg64;

const OPENINGS: [&str; 8] = [
    "Most customers ask about",
    "Our team takes care of",
    "Nobody expected",
    "The committee discussed",
    "Since last spring there is more interest in",
    "A short guide to",
    "Everything you need to know about",
    "Two visitors wrote to us about",
];

const SUBJECTS: [&str; 12] = [
    "the new entrance",
    "repairs at short notice",
    "opening hours in summer",
    "the price of copper",
    "a second inspection",
    "the bridge over the river",
    "training for beginners",
    "old wiring",
    "the annual report",
    "parking behind the station",
    "rain in the mountains",
    "the winter timetable",
];

const ENDINGS: [&str; 6] = [
    "which takes about an hour.",
    "and there is no charge for that.",
    "as the neighbours will confirm.",
    "so please call before you come.",
    "until further notice.",
    "and the results are on the next page.",
];

/// Sentences of one page.
pub(super) struct Words(Pcg64);

impl Words {
    /// The words for something: a seed and a name.
    pub(super) fn of(seed: u64, name: &str) -> Self {
        let number = xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), seed);
        Self(Pcg64::new(u128::from(number), u128::from(seed)))
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        from[self.0.random_range(0..from.len())]
    }

    /// A number from 0 to below `end`.
    pub(super) fn number(&mut self, end: usize) -> usize {
        self.0.random_range(0..end)
    }

    /// What something is about.
    pub(super) fn subject(&mut self) -> &'static str {
        self.pick(&SUBJECTS)
    }

    /// A few sentences.
    pub(super) fn paragraph(&mut self) -> String {
        let mut sentence =
            || format!("{} {}, {}", self.pick(&OPENINGS), self.pick(&SUBJECTS), self.pick(&ENDINGS));
        [sentence(), sentence(), sentence()].join(" ")
    }
}

/// The number by which something random of a page is seeded.
pub(super) fn seed_of(seed: u64, name: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(name.as_bytes(), seed)
}
