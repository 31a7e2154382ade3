//! Regular expressions from a configuration: many at once, in linear time, and of bounded size.

use regex::{RegexSet, RegexSetBuilder};

/// How large a set may become once compiled.
const LIMIT: usize = 4 << 20;

/// Says what is wrong with an expression, in one line; nothing if it can be used.
pub fn check(pattern: &str) -> Result<(), String> {
    let problem = compile([pattern]).err().map(|cause| cause.to_string());
    // The parser draws a picture of the place before it says what is wrong there.
    let in_short =
        |text: String| text.lines().last().map(|line| line.trim_start_matches("error: ").to_owned());
    problem.and_then(in_short).map_or(Ok(()), Err)
}

/// Compiles a set of expressions. The error is that of the first one at fault.
pub(crate) fn compile(patterns: impl IntoIterator<Item = impl AsRef<str>>) -> Result<RegexSet, regex::Error> {
    RegexSetBuilder::new(patterns).size_limit(LIMIT).build()
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let table = [
            ("/services/", Ok(())),
            ("", Ok(())),
            ("(", Err("unclosed group")),
            ("[a", Err("unclosed character class")),
            ("a{1000}{1000}{1000}", Err("Compiled regex exceeds size limit of 4194304 bytes.")),
        ];
        for (pattern, want) in table {
            assert_eq!(
                check(pattern).as_ref().map_err(|problem| &**problem),
                want.as_ref().map_err(|p| *p),
                "{pattern}"
            );
        }
    }
}
