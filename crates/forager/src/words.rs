//! Messages in plain words.

/// So many of a thing: `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    let word = if count == 1 { one } else { many };
    format!("{count} {word}")
}

/// A word as it is given to a shell.
pub(crate) fn in_shell(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@=,+%".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Seconds as people say them.
pub(crate) fn in_time(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "for people")]
    let seconds = seconds.min(1e9) as u64;
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// Replaces the names of types that a user never chose by what is expected.
pub(crate) fn in_words(message: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let words = match expected {
        "u8" => "a whole number, 0 to 255",
        "u16" => "a whole number, 0 to 65535",
        "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "f64" => "a number",
        "a sequence" => "a list",
        other if other.starts_with("struct ") => "a section",
        other => other,
    };
    format!("{before}expected {words}")
}

/// How many things are named where there may be any number of them.
const NAMED: usize = 10;

/// Names things: the first ten, and how many more there are.
pub(crate) fn named(mut things: Vec<String>) -> String {
    let further = things.len().saturating_sub(NAMED);
    things.truncate(NAMED);
    if further > 0 {
        things.push(format!("{further} more"));
    }
    things.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{counted, in_shell, in_words};

    #[test]
    fn one_is_not_many() {
        let told = [0, 1, 2].map(|count| counted(count, "entry", "entries"));
        assert_eq!(told, ["0 entries", "1 entry", "2 entries"]);
    }

    #[test]
    fn a_shell_takes_a_word_as_it_is_meant() {
        let table = [
            ("a-b/c.d", "a-b/c.d"),
            ("", "''"),
            ("my data", "'my data'"),
            ("it's", "'it'\\''s'"),
            ("$x", "'$x'"),
        ];
        for (text, want) in table {
            assert_eq!(in_shell(text), want);
        }
    }

    #[test]
    fn types_become_words() {
        let table = [
            (
                "invalid type: string \"x\", expected usize",
                "invalid type: string \"x\", expected a whole number, 0 or more",
            ),
            (
                "invalid type: integer `1`, expected struct SelectConfig",
                "invalid type: integer `1`, expected a section",
            ),
            ("invalid type: map, expected a string", "invalid type: map, expected a string"),
            ("missing field `url`", "missing field `url`"),
        ];
        for (message, want) in table {
            assert_eq!(in_words(message), want);
        }
    }
}
