//! Regular expressions from a configuration: many at once, in linear time, and of bounded size.

use regex::{RegexSet, RegexSetBuilder};

/// How large a set may become once compiled.
const LIMIT: usize = 4 << 20;

/// Compiles a set of expressions. The error is that of the first one at fault.
pub(crate) fn compile(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).size_limit(LIMIT).build()
}
