//! Reasons in words, made once for many answers.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// So many reasons are remembered.
const MOST: usize = 8;

/// The words of the last reasons: the links of a page share a few.
#[derive(Debug)]
pub(super) struct Words<R> {
    known: Vec<(R, Arc<str>)>,
}

impl<R: PartialEq + fmt::Display> Words<R> {
    pub(super) fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// The words of a reason.
    pub(super) fn of(&mut self, reason: R) -> Arc<str> {
        if let Some((_, words)) = self.known.iter().find(|(known, _)| *known == reason) {
            return words.clone();
        }
        if self.known.len() == MOST {
            self.known.clear();
        }
        let words: Arc<str> = reason.to_string().into();
        self.known.push((reason, words.clone()));
        words
    }
}

/// Words that are always the same, made once.
pub(super) struct Fixed(LazyLock<Arc<str>>);

impl Fixed {
    /// What `words` makes.
    pub(super) const fn new(words: fn() -> Arc<str>) -> Self {
        Self(LazyLock::new(words))
    }

    /// The words.
    pub(super) fn get(&self) -> Arc<str> {
        self.0.clone()
    }
}
