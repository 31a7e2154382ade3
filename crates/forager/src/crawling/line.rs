//! The line that tells how far a crawl is.

use super::outlook::Estimate;
use crate::words::{counted, in_time};

/// What the line says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) done: u64,
    pub(crate) queued: u64,
    pub(crate) under_way: usize,
    pub(crate) errors: u64,
    /// Pages a second.
    pub(crate) rate: f64,
    /// How long it will take.
    pub(crate) left: Option<Estimate>,
    /// What it waits for, if it waits.
    pub(crate) waits: String,
}

/// What is left out where there is no room, in this order: what changes most goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Least {
    Nothing,
    /// What it waits for now: the estimate has what it waits for most.
    Waits,
    /// How many pages the host has that bounds it, and how far apart they are.
    Why,
    Rate,
    UnderWay,
    /// That there are no errors.
    NoErrors,
}

const STEPS: [Least; 6] =
    [Least::Nothing, Least::Waits, Least::Why, Least::Rate, Least::UnderWay, Least::NoErrors];

/// As much of the name of a host is always shown.
const SHORTEST: usize = 9;

impl Line {
    pub(crate) fn whole(&self) -> String {
        self.without(Least::Nothing, str::to_owned)
    }

    /// The line in so many columns: what bounds the crawl must be seen. Where nothing does, what is said last may be cut
    /// off, which changes most.
    pub(crate) fn fitted(&self, columns: usize) -> String {
        if self.left.is_none() {
            return self.whole();
        }
        let lines = STEPS.map(|least| self.without(least, str::to_owned));
        if let Some(line) = lines.iter().find(|line| line.chars().count() <= columns) {
            return line.clone();
        }
        let over = lines[STEPS.len() - 1].chars().count().saturating_sub(columns);
        self.without(Least::NoErrors, |bound| shortened(bound, bound.chars().count().saturating_sub(over)))
    }

    fn without(&self, least: Least, bound: impl Fn(&str) -> String) -> String {
        let Self { done, queued, under_way, errors, rate, left, waits } = self;
        let mut counts = vec![format!("{done} done"), format!("{queued} queued")];
        if least < Least::UnderWay {
            counts.push(format!("{under_way} under way"));
        }
        if least < Least::NoErrors || *errors > 0 {
            counts.push(counted(*errors, "error", "errors"));
        }
        if least < Least::Rate {
            counts.push(format!("{rate:.1}/s"));
        }
        let left = left.as_ref().map(|Estimate { seconds, bound: who, why }| {
            let why = if least < Least::Why { why } else { "" };
            format!("; about {} left, bound by {}{why}", in_time(*seconds), bound(who))
        });
        let waits = if least < Least::Waits { waits } else { "" };
        format!("{}{}{waits}", counts.join(", "), left.unwrap_or_default())
    }
}

/// The ends of a long name, in so many columns.
fn shortened(name: &str, most: usize) -> String {
    let (letters, most): (Vec<char>, _) = (name.chars().collect(), most.max(SHORTEST));
    if letters.len() <= most {
        return name.to_owned();
    }
    // The end of a name says whose it is.
    let last = most / 2;
    let first = most - 1 - last;
    let part = |letters: &[char]| letters.iter().collect::<String>();
    format!("{}…{}", part(&letters[..first]), part(&letters[letters.len() - last..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal of 80 columns, of which the sign that turns takes two.
    const COLUMNS: usize = 78;

    fn line(host: &str) -> Line {
        let left =
            Estimate { seconds: 23.0, bound: host.to_owned(), why: ": 60 pages, one in 0.5s".to_owned() };
        let waits = "; waiting until 08:00:00 UTC for a host (delay between fetches)".to_owned();
        Line { done: 12, queued: 60, under_way: 2, errors: 0, rate: 2.0, left: Some(left), waits }
    }

    #[test]
    fn what_bounds_a_crawl_is_seen_on_a_narrow_terminal() {
        let long = "a-very-long-name-of-a-host.with.many.labels.and-more-of-them.example.org";
        let table: [(&str, Line, &str); 6] = [
            (
                "usual",
                line("127.0.0.1"),
                "12 done, 60 queued, 2 under way, 0 errors; about 23s left, bound by 127.0.0.1",
            ),
            (
                "a longer name",
                line("www.example.org"),
                "12 done, 60 queued, 0 errors; about 23s left, bound by www.example.org",
            ),
            (
                "many pages, some errors",
                Line { done: 123_456, queued: 1_234_567, errors: 7, ..line("www.example.org") },
                "123456 done, 1234567 queued, 7 errors; about 23s left, bound by www.ex…ple.org",
            ),
            (
                "a name that is too long",
                line(long),
                "12 done, 60 queued; about 23s left, bound by a-very-long-name…them.example.org",
            ),
            (
                "a limit",
                Line {
                    left: Some(Estimate {
                        seconds: 5.0,
                        bound: "the limit of 9 pages".to_owned(),
                        why: String::new(),
                    }),
                    ..line("")
                },
                "12 done, 60 queued, 0 errors; about 5s left, bound by the limit of 9 pages",
            ),
            (
                "no estimate",
                Line { left: None, ..line("") },
                "12 done, 60 queued, 2 under way, 0 errors, 2.0/s; waiting until 08:00:00 UTC for a host (delay between \
                 fetches)",
            ),
        ];
        for (name, line, want) in table {
            let got = line.fitted(COLUMNS);
            assert_eq!(got, want, "{name}");
            assert!(line.left.is_none() || got.chars().count() <= COLUMNS + 1, "{name}");
        }
    }

    #[test]
    fn a_wide_terminal_has_all_of_it() {
        let line = line("127.0.0.1");
        let want = "12 done, 60 queued, 2 under way, 0 errors, 2.0/s; about 23s left, bound by 127.0.0.1: 60 pages, one \
                    in 0.5s; waiting until 08:00:00 UTC for a host (delay between fetches)";
        assert_eq!((line.fitted(200).as_str(), line.whole().as_str()), (want, want));
        let without_waits = want.split("; waiting").next().unwrap();
        assert_eq!(line.fitted(without_waits.len()), without_waits);
        // Whatever the width, the name is there.
        for columns in 0..200 {
            assert!(line.fitted(columns).contains("bound by 127.0.0.1"), "{columns}");
        }
    }
}
