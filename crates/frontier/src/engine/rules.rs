//! Reasons in words, made once for many answers.

use std::fmt;
use std::sync::Arc;

/// The words of the last reason: most links of a page share one.
#[derive(Debug)]
pub(super) struct Words<R> {
    last: Option<(R, Arc<str>)>,
}

impl<R: PartialEq + fmt::Display> Words<R> {
    pub(super) fn new() -> Self {
        Self { last: None }
    }

    /// The words of a reason.
    pub(super) fn of(&mut self, reason: R) -> Arc<str> {
        if let Some((last, words)) = &self.last
            && *last == reason
        {
            return words.clone();
        }
        let words: Arc<str> = reason.to_string().into();
        self.last = Some((reason, words.clone()));
        words
    }
}
