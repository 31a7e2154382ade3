//! What changes with every look at a page: clocks, ages, timings, and random tokens.
//!
//! | ignored | example |
//! |---|---|
//! | times | `14:30`, `2:30:05 pm`, `14:30 Uhr`, `08:00 GMT` |
//! | dates with times | `2024-06-15T08:00:00Z`, `15. 6. 2024. u 14:30`, `Sat, 15 Jun 2024 08:00:00 GMT` |
//! | ages | `3 minutes ago`, `just now`, `prije 5 minuta`, `vor 2 Stunden`, `il y a 3 jours`, `hace 2 horas` |
//! | timings | `0.03 s`, `12 ms`, `30 seconds`, `generated in 0.03 s` |
//! | tokens | UUIDs, 32 hexadecimal digits or more, long mixtures of letters and digits, `sid=…` with a random value |
//!
//! The price is known: a meeting that moves from 10:00 to 11:00 of the same day is not seen in the
//! content. The exact fingerprint sees it.

mod quick;

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::html::{is_well_spaced, push_words};

static WITH_DIGITS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&with_digits()).ok());
static IN_WORDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(AGES_IN_WORDS).ok());

const AGES_IN_WORDS: &str = r"(?i-u)\b(?:just now|moments? ago|(?:(?:about|less than|almost|over) )?(?:an?|one|a few|few|several) (?:second|minute|hour|day|week|month|year)s? ago)\b";

/// The line without what always changes, each run of white space as one space.
///
/// ```
/// # use forager_fetch::fingerprint::clock::without;
/// assert_eq!(without("Last  login: 3 minutes ago,  welcome"), "Last login: , welcome");
/// ```
pub fn without(line: &str) -> Cow<'_, str> {
    // The expressions are slow, and few lines have anything for them; to see that is quick.
    let says_ago = quick::says(line, *b"ago");
    let text = if says_ago || quick::may_have_figures(line) {
        stripped(&WITH_DIGITS, line)
    } else {
        Cow::Borrowed(line)
    };
    let text = if says_ago || quick::says(line, *b"now") {
        Cow::Owned(stripped(&IN_WORDS, &text).into_owned())
    } else {
        text
    };
    match text {
        Cow::Borrowed(line) if is_well_spaced(line) => Cow::Borrowed(line),
        text => {
            let mut words = String::with_capacity(text.len());
            push_words(&mut words, &text, usize::MAX);
            words.truncate(words.trim_end().len());
            Cow::Owned(words)
        }
    }
}

fn stripped<'t>(fragments: &LazyLock<Option<Regex>>, text: &'t str) -> Cow<'t, str> {
    let Some(fragments) = fragments.as_ref() else { return Cow::Borrowed(text) };
    let instead =
        |found: &Captures<'_>| if is_fragment(found) { " ".to_owned() } else { found[0].to_owned() };
    fragments.replace_all(text, instead)
}

/// What looks like a token by its length may be a word, or a number that means something.
fn is_fragment(found: &Captures<'_>) -> bool {
    let count = |text: &str, is: fn(&u8) -> bool| text.bytes().filter(is).count();
    if let Some(token) = found.name("mixture") {
        let token = token.as_str();
        return count(token, u8::is_ascii_digit) >= 3
            && count(token, u8::is_ascii_lowercase) >= 3
            && count(token, u8::is_ascii_uppercase) >= 3;
    }
    if let Some(value) = found.name("value") {
        return count(value.as_str(), u8::is_ascii_digit) >= 3;
    }
    true
}

/// A time of the day, with what may be written behind it. Zones in capitals only: `est` is a word.
const TIME: &str = r"(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-6][0-9](?:[.,][0-9]{1,9})?)?(?:\s?(?:[ap]m|uhr|h)\b|\s?[ap]\.m\.|z\b|\b)(?:\s?(?-i:UTC|GMT|CET|CEST|EST|EDT|CST|CDT|MST|MDT|PST|PDT|BST|MSK)\b)?(?:\s?[+-][0-9]{2}:?[0-9]{2}\b)?";

/// Dates, in figures and with the month as a word; they count only beside a time.
const DATE: &str = r"(?:\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|\b[0-9]{1,2}[-/.]\s?[0-9]{1,2}[-/.]\s?[0-9]{2,4}\.?|(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s)?\b[0-9]{1,2}\.?[\s-]\p{L}{3,12}\.?,?[\s-][0-9]{4}\.?|(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s)?\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s[0-9]{1,2}(?:st|nd|rd|th)?,?\s[0-9]{4})";

/// What stands between a date and its time.
const BETWEEN: &str = r"(?:t|,?\s(?:[-–|·]\s|(?:at|u|um|à|om|ob)\s)?)";

const AGES: &str = r"\b(?:(?:about|less\sthan|almost|over)\s)?[0-9]+\s?(?:s|sec|second|min|minute|h|hr|hour|day|week|month|year)s?\.?\sago\b|\b(?:prije|vor|il\sy\sa|hace)\s[0-9]+\s(?:sekund\p{L}*|minut\p{L}*|sat\p{L}*|dan\p{L}*|tjed\p{L}*|mjesec\p{L}*|godin\p{L}*|stunden?|tag(?:en)?|wochen?|monat(?:en)?|jahr(?:en)?|secondes?|heures?|jours?|semaines?|mois|ans?|segundos?|horas?|d[ií]as?|semanas?|meses|años?)\b";

const TIMINGS: &str = r"\b(?:(?:page\s)?(?:generated|rendered|served|loaded|built|created|executed|processed)\s(?:in|within)\s)?(?:[0-9]+[.,][0-9]+\s?|[0-9]+\s)(?:s|secs?|seconds?|ms|msec|milliseconds?|µs)\b";

const TOKENS: &str = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32,}\b|\b(?:csrf|xsrf|nonce|token|sid|session|session[_-]?id|phpsessid|jsessionid|request[_\s-]?id|trace[_\s-]?id|ray\sid)\s?[=:]\s?(?<value>[a-z0-9+/_.-]{8,})|\b(?<mixture>[a-z0-9]{32,})\b";

/// All of them. What comes first wins where several begin: a date takes its time with it.
fn with_digits() -> String {
    format!(
        "(?i){DATE}{BETWEEN}{TIME}|\\b{TIME},?\\s(?:on\\s)?{DATE}(?:{BETWEEN}{TIME})?|\\b{TIME}|{AGES}|{TIMINGS}|{TOKENS}"
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_always_changes_is_ignored() {
        let fragments = [
            "14:30",
            "2:30",
            "02:30:05",
            "14:30:05.123",
            "2:30 pm",
            "2:30 P.M.",
            "14:30 Uhr",
            "14:30h",
            "08:00:00 GMT",
            "08:00 +0200",
            "2024-06-15T08:00:00Z",
            "2024-06-15 08:00",
            "2024-06-15T08:00:00.5+02:00",
            "15.06.2024. 14:30",
            "15. 6. 2024. u 14:30",
            "15/06/2024, 14:30",
            "06/15/2024 2:30 PM",
            "15 June 2024 at 14:30",
            "15. lipnja 2024. u 14:30",
            "June 15, 2024 14:30",
            "Jun 15th 2024, 2:30 pm",
            "Sat, 15 Jun 2024 08:00:00 GMT",
            "14:30, 15 June 2024",
            "14:30 on 2024-06-15",
            "3 minutes ago",
            "1 hour ago",
            "5 min ago",
            "about 2 hours ago",
            "just now",
            "a minute ago",
            "a few seconds ago",
            "prije 5 minuta",
            "prije 2 dana",
            "vor 3 Stunden",
            "il y a 3 jours",
            "hace 2 horas",
            "0.03 s",
            "0.03s",
            "12 ms",
            "30 seconds",
            "generated in 0.03 s",
            "Page rendered in 12 ms",
            "0,5 seconds",
            "6f1c2b9e-8d3a-4c5b-9e7f-0a1b2c3d4e5f",
            "d41d8cd98f00b204e9800998ecf8427e",
            "sid=a8f3k2m9x1",
            "session_id: 8f3a-92bc-11",
            "csrf = Zx81jKq90-22",
            "Qm9vVGhpczEyMzQ1Njc4OTBhYmNkZWZnSElKS0xN",
        ];
        for fragment in fragments {
            assert_eq!(without(fragment), "", "{fragment}");
            assert_eq!(without(&format!("word {fragment} word")), "word word", "{fragment}");
            assert_eq!(without(&format!("(č {fragment})")), "(č )", "{fragment}");
        }
    }

    #[test]
    fn what_means_something_counts() {
        let texts = [
            "15 June 2024",
            "15.06.2024.",
            "2024-06-15",
            "20 euro",
            "Article 12",
            "the 1990s",
            "3:1",
            "25:99",
            "version 1.2.3",
            "+385 1 234 5678",
            "10 %",
            "NN 64/2024",
            "5 minutes",
            "3 days",
            "session: breakfast",
            "token: yesterday",
            "sid=information",
            "a long time ago",
            "HR1210010051863000160",
            "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaagh",
            "second reading",
        ];
        for text in texts {
            assert_eq!(without(text), text);
        }
    }

    #[test]
    fn white_space_does_not_count() {
        assert_eq!(without(" a \t b\u{a0}\n c "), "a b c");
    }

    /// What [`without`] does, without the quick looks that spare it the most.
    fn slowly(line: &str) -> String {
        let has_digit = line.bytes().any(|byte| byte.is_ascii_digit());
        let text = if has_digit { stripped(&WITH_DIGITS, line) } else { Cow::Borrowed(line) };
        let mut words = String::new();
        push_words(&mut words, &stripped(&IN_WORDS, &text), usize::MAX);
        words.trim_end().to_owned()
    }

    fn pieces() -> impl Strategy<Value = String> {
        const WORDS: &[&str] = &[
            "14:30",
            "3",
            "0.03",
            "0,5",
            "12",
            " ",
            "\u{a0}",
            "s",
            "ms",
            "µs",
            "M",
            "ago",
            "AGO",
            "minutes",
            "a minute",
            "just now",
            "Now",
            "prije",
            "vor",
            "il y a",
            "Hace",
            "minuta",
            "Stunden",
            "jours",
            "2024-06-15",
            "T08:00:00Z",
            "15. lipnja 2024.",
            " u ",
            "sid",
            "csrf",
            "=",
            ":",
            "a8f3k2m9x1",
            "-",
            "/",
            "č",
            "Zx81jKq90",
            "chapter",
            "6f1c2b9e-8d3a-4c5b-9e7f-0a1b2c3d4e5f",
            "d41d8cd98f00b204",
            "e9800998ecf8427e",
            ", ",
            "(",
            ")",
        ];
        let piece = prop_oneof![prop::sample::select(WORDS).prop_map(str::to_owned), "[0-9a-z:=. -]{0,6}"];
        prop::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_quick_look_misses_nothing(line in pieces()) {
            prop_assert_eq!(without(&line), slowly(&line));
        }
    }
}
