//! Many rows in one array of numbers.
//!
//! An array for each column has to be taken in, unpacked and put beside the others by itself, which for few rows takes longer
//! than what is done with them. So numbers of all columns go in one array, row after row.

use std::fmt::Write as _;

/// Stands for a number that is none: no number in a column that may be empty is below zero.
const NONE: i64 = -1;

/// A column, and what the server makes of its number, which is written `#`.
pub(super) type Column = (&'static str, &'static str);

/// A column of small numbers.
pub(super) const SMALL: &str = "#::int2";
/// One of numbers such as those of rows.
pub(super) const INT: &str = "#::int4";
/// The same, where there may be none.
pub(super) const INT_OR_NONE: &str = "nullif(#, -1)::int4";
/// One of times and counts.
pub(super) const BIG: &str = "#";
/// The same, where there may be none.
pub(super) const BIG_OR_NONE: &str = "nullif(#, -1)";
/// One of yes and no.
pub(super) const TRUTH: &str = "# = 1";

/// The columns as SQL selects them from an array, where `n` is the number of the row, from 1 on.
pub(super) fn select(array: &str, columns: &[Column]) -> String {
    let width = columns.len();
    let mut text = String::new();
    for (place, (name, made)) in columns.iter().enumerate() {
        let number = format!("{array}[{width} * n - {}]", width - 1 - place);
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{} AS {name}", made.replace('#', &number));
    }
    text
}

/// How many rows of so many columns an array has, in SQL.
pub(super) fn count(array: &str, columns: &[Column]) -> String {
    format!("coalesce(array_length({array}, 1), 0) / {}", columns.len())
}

/// A number that may be missing.
pub(super) fn or_none(number: Option<impl Into<i64>>) -> i64 {
    number.map_or(NONE, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_its_place_in_the_row() {
        let columns = [("id", INT), ("seed", INT_OR_NONE), ("ready", TRUTH)];
        let wanted =
            "$1[3 * n - 2]::int4 AS id, nullif($1[3 * n - 1], -1)::int4 AS seed, $1[3 * n - 0] = 1 AS ready";
        assert_eq!(select("$1", &columns), wanted);
        assert_eq!(count("$1", &columns), "coalesce(array_length($1, 1), 0) / 3");
    }
}
