//! Whether it is worth while to look closer at a line. Where these say no, the expressions would find nothing.

/// Words before the number of an age: `prije 5 minuta`, `vor 2 Stunden`, `il y a 3 jours`, `hace 2 horas`.
const BEFORE_AN_AGE: [&str; 4] = ["prije", "vor", "a", "hace"];

/// The shortest token that is known by its length alone.
const TOKEN_BYTES: usize = 32;
/// The shortest value behind a name such as `sid`.
const VALUE_BYTES: usize = 8;

/// Whether these three letters stand in the line, in any case.
pub(super) fn says(line: &str, [first, middle, last]: [u8; 3]) -> bool {
    let bytes = line.as_bytes();
    let is =
        |index: usize, letter: u8| bytes.get(index).is_some_and(|byte| byte.eq_ignore_ascii_case(&letter));
    memchr::memchr2_iter(middle, middle.to_ascii_uppercase(), bytes)
        .any(|index| index > 0 && is(index - 1, first) && is(index + 1, last))
}

/// Whether a time, a timing, an age or a token may be in the line: something with digits that is more than
/// a number. Ages that end in `ago` are for [`says`] to find.
pub(super) fn may_have_figures(line: &str) -> bool {
    let bytes = line.as_bytes();
    let mut from = 0;
    while let Some(digit) = bytes[from..].iter().position(u8::is_ascii_digit) {
        let digit = from + digit;
        let start = bytes[from..digit]
            .iter()
            .rposition(|byte| !is_of_a_value(*byte))
            .map_or(from, |end| from + end + 1);
        let length = bytes[digit..].iter().position(|byte| !is_of_a_value(*byte));
        let end = length.map_or(bytes.len(), |length| digit + length);
        if is_more_than_a_number(&line[..start], &bytes[start..end], &line[end..]) {
            return true;
        }
        from = end;
    }
    false
}

/// What the value behind `sid=` may consist of.
fn is_of_a_value(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'.' | b'-')
}

fn is_more_than_a_number(before: &str, figure: &[u8], after: &str) -> bool {
    let ends_in_digit = figure.last().is_some_and(u8::is_ascii_digit);
    let is_time = ends_in_digit && after.as_bytes().first() == Some(&b':');
    let is_token = figure.len() >= TOKEN_BYTES;
    is_time || is_token || is_value(before, figure) || is_timing(figure, after) || is_age(before, after)
}

fn is_value(before: &str, figure: &[u8]) -> bool {
    figure.len() >= VALUE_BYTES && without_space_behind(before).ends_with(['=', ':'])
}

/// `0.03s`, `12 ms`; the micro sign and the long s are letters of these units too.
fn is_timing(figure: &[u8], after: &str) -> bool {
    let is_unit = |letter: char| matches!(letter, 's' | 'S' | 'm' | 'M' | 'µ' | 'μ' | 'ſ');
    let is_inside = figure.windows(2).any(|pair| pair[0].is_ascii_digit() && is_unit(char::from(pair[1])));
    let after = after.strip_prefix(char::is_whitespace).unwrap_or(after);
    is_inside || after.starts_with(is_unit)
}

fn is_age(before: &str, after: &str) -> bool {
    let ends_in = |text: &str, word: &str| {
        let end = text.len().checked_sub(word.len()).and_then(|start| text.get(start..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    let word = without_space_behind(before);
    word.len() < before.len()
        && after.starts_with(char::is_whitespace)
        && BEFORE_AN_AGE.iter().any(|known| ends_in(word, known))
}

fn without_space_behind(text: &str) -> &str {
    text.strip_suffix(char::is_whitespace).unwrap_or(text)
}
