//! What changed between two versions of a page.

use std::collections::HashMap;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::html::cut;

/// Up to this many lines on both sides together, differences are found in their order; its work
/// grows with the product of the lines that differ. Above, lines are compared as a heap of lines.
const MAX_ORDERED_LINES: usize = 4_000;

/// What a line ends with of which not all is told.
const SHORTENED: &str = " […]";

/// How much of a difference is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most lines of each list.
    pub lines: usize,
    /// The longest line, in bytes.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lines: 100, line_bytes: 500 }
    }
}

/// The lines that one version has and the other has not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// What is new, in the order of the new version.
    pub added: Vec<String>,
    /// What is gone, in the order of the old version.
    pub removed: Vec<String>,
    /// Whether something was left out or shortened: a list of which not all is told ends with a line such as `[12 more]`,
    /// a line that is cut off with `[…]`.
    pub more: bool,
}

/// Compares two texts line by line.
///
/// ```
/// # use forager_fetch::difference::{Limits, lines};
/// let change = lines("Fee\n20 euro\nPay", "Fee\n25 euro\nPay", Limits::default());
/// assert_eq!((&*change.removed, &*change.added), (&["20 euro".to_owned()][..], &["25 euro".to_owned()][..]));
/// ```
pub fn lines(old: &str, new: &str, limits: Limits) -> Difference {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (old, new) = without_common_ends(&old, &new);
    let (removed, added) =
        if old.len() + new.len() <= MAX_ORDERED_LINES { in_order(old, new) } else { as_heaps(old, new) };
    let mut difference = Difference::default();
    difference.removed = bounded(&removed, limits, &mut difference.more);
    difference.added = bounded(&added, limits, &mut difference.more);
    difference
}

/// Most changes are small: what both versions begin and end with needs no comparing.
fn without_common_ends<'t, 's>(old: &'s [&'t str], new: &'s [&'t str]) -> (&'s [&'t str], &'s [&'t str]) {
    let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    (&old[..old.len() - end], &new[..new.len() - end])
}

type Changed<'t> = (Vec<&'t str>, Vec<&'t str>);

fn in_order<'t>(old: &[&'t str], new: &[&'t str]) -> Changed<'t> {
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for change in capture_diff_slices(Algorithm::Myers, old, new) {
        if matches!(change, DiffOp::Equal { .. }) {
            continue;
        }
        removed.extend_from_slice(&old[change.old_range()]);
        added.extend_from_slice(&new[change.new_range()]);
    }
    (removed, added)
}

/// A line that only moved is no difference here; one that stands there more often is.
fn as_heaps<'t>(old: &[&'t str], new: &[&'t str]) -> Changed<'t> {
    (only_in(old, new), only_in(new, old))
}

fn only_in<'t>(these: &[&'t str], others: &[&'t str]) -> Vec<&'t str> {
    let mut left: HashMap<&str, usize> = HashMap::with_capacity(others.len());
    for line in others {
        *left.entry(line).or_default() += 1;
    }
    let mut missing = Vec::new();
    for line in these {
        match left.get_mut(line) {
            Some(count @ 1..) => *count -= 1,
            _ => missing.push(*line),
        }
    }
    missing
}

fn bounded(lines: &[&str], limits: Limits, more: &mut bool) -> Vec<String> {
    let shortened = |line: &&str| match cut(line, limits.line_bytes) {
        whole if whole.len() == line.len() => whole.to_owned(),
        part => format!("{part}{SHORTENED}"),
    };
    let mut told: Vec<String> = lines.iter().take(limits.lines).map(shortened).collect();
    *more |= lines.iter().take(limits.lines).any(|line| line.len() > limits.line_bytes);
    let left_out = lines.len().saturating_sub(limits.lines);
    if left_out > 0 {
        *more = true;
        told.push(format!("[{left_out} more]"));
    }
    told
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(removed: &[&str], added: &[&str], more: bool) -> Difference {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Difference { added: owned(added), removed: owned(removed), more }
    }

    #[test]
    fn what_is_told_of_a_change() {
        let limits = Limits { lines: 2, line_bytes: 4 };
        let cases = [
            ("nothing", "a\nb", "a\nb", told(&[], &[], false)),
            ("from nothing", "", "a", told(&[], &["a"], false)),
            ("to nothing", "a", "", told(&["a"], &[], false)),
            ("a line replaced", "a\nb\nc", "a\nx\nc", told(&["b"], &["x"], false)),
            ("a line between", "a\nc", "a\nb\nc", told(&[], &["b"], false)),
            ("a line moved", "a\nb\nc", "b\nc\na", told(&["a"], &["a"], false)),
            ("once more", "a", "a\na", told(&[], &["a"], false)),
            ("too many lines", "a", "a\nb\nc\nd", told(&[], &["b", "c", "[1 more]"], true)),
            ("a line too long", "", "12345", told(&[], &["1234 […]"], true)),
            ("no half letters", "", "123é", told(&[], &["123 […]"], true)),
            ("another end of line", "a\r\nb", "a\nb", told(&[], &[], false)),
        ];
        for (name, old, new, want) in cases {
            assert_eq!(lines(old, new, limits), want, "{name}");
        }
    }

    #[test]
    fn many_lines_are_compared_without_their_order() {
        let numbered =
            |from: usize, to: usize| (from..to).fold(String::new(), |text, n| text + &n.to_string() + "\n");
        let old = numbered(0, 40_000);
        let new = format!("new\n{}{}last\n", numbered(20_000, 40_000), numbered(1, 20_000));
        assert_eq!(lines(&old, &new, Limits::default()), told(&["0"], &["new", "last"], false));
    }

    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec("[a-d]", 0..30).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        /// The old lines without what is gone, with what is new, are the new lines.
        #[test]
        fn nothing_is_lost_between_versions(old in texts(), new in texts()) {
            let limits = Limits { lines: usize::MAX, line_bytes: usize::MAX };
            let change = lines(&old, &new, limits);
            let mut rest: Vec<&str> = old.lines().collect();
            for gone in &change.removed {
                let at = rest.iter().position(|line| line == gone);
                prop_assert!(at.is_some());
                rest.remove(at.unwrap());
            }
            rest.extend(change.added.iter().map(String::as_str));
            let mut want: Vec<&str> = new.lines().collect();
            rest.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(rest, want);
            prop_assert_eq!(change == Difference::default(), old.lines().eq(new.lines()));
        }
    }
}
