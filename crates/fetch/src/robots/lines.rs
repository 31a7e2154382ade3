//! From bytes to lines of the form `name: value`.

/// How much of a file is read: 500 KiB, the least that the RFC asks for.
pub const MAX_BYTES: usize = 500 * 1024;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One line with a colon in it, without its comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// From 1, as editors count.
    pub(super) number: usize,
    pub(super) name: &'a [u8],
    pub(super) value: &'a [u8],
    /// Both, as they are written.
    pub(super) text: &'a [u8],
}

/// The lines of a file, of which any number of bytes may be broken.
pub(super) fn lines(body: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut rest = considered(body);
    rest = rest.strip_prefix(BYTE_ORDER_MARK).unwrap_or(rest);
    let whole_lines = core::iter::from_fn(move || next_line(&mut rest));
    whole_lines.zip(1..).filter_map(|(text, number)| line(text, number))
}

fn line(text: &[u8], number: usize) -> Option<Line<'_>> {
    let text = text.split(|&byte| byte == b'#').next()?.trim_ascii();
    let colon = memchr::memchr(b':', text)?;
    Some(Line { number, name: text[..colon].trim_ascii(), value: text[colon + 1..].trim_ascii(), text })
}

/// Takes a line off; LF, CR and both together end one.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
    let (line, after) = rest.split_at(end);
    let ending = if after.starts_with(b"\r\n") { 2 } else { after.len().min(1) };
    *rest = &after[ending..];
    Some(line)
}

/// The part of a file that is read. A line that the limit cuts through is not: half a path would
/// forbid or allow more than was meant.
pub(super) fn considered(body: &[u8]) -> &[u8] {
    match body.get(MAX_BYTES) {
        None | Some(b'\n' | b'\r') => &body[..body.len().min(MAX_BYTES)],
        Some(_) => ended_lines(&body[..MAX_BYTES]),
    }
}

/// What stands before the end of the last line that has one.
pub(super) fn ended_lines(body: &[u8]) -> &[u8] {
    &body[..memchr::memrchr2(b'\n', b'\r', body).map_or(0, |last| last + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Vec<(usize, String, String)> {
        let owned = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        lines(body.as_bytes()).map(|line| (line.number, owned(line.name), owned(line.value))).collect()
    }

    #[test]
    fn lines_are_numbered_as_editors_do() {
        type Case<'a> = (&'a str, &'a str, &'a [(usize, &'a str, &'a str)]);
        let cases: [Case<'_>; 11] = [
            ("nothing", "", &[]),
            ("LF", "a:1\nb:2\n", &[(1, "a", "1"), (2, "b", "2")]),
            ("CR", "a:1\rb:2\r", &[(1, "a", "1"), (2, "b", "2")]),
            ("CRLF", "a:1\r\nb:2\r\n", &[(1, "a", "1"), (2, "b", "2")]),
            ("empty lines count", "\n\r\r\n\na:1", &[(5, "a", "1")]),
            ("LF before CR is two", "a:1\n\rb:2", &[(1, "a", "1"), (3, "b", "2")]),
            ("no line end at the end", "a:1", &[(1, "a", "1")]),
            ("comments", "# x: y\na: 1 # 2: 3\n#", &[(2, "a", "1")]),
            ("spaces and tabs", " \ta \t: \tb c\t \n", &[(1, "a", "b c")]),
            ("no colon", "a 1\nb: 2", &[(2, "b", "2")]),
            ("several colons", "a: b:c", &[(1, "a", "b:c")]),
        ];
        for (name, body, want) in cases {
            let want: Vec<_> = want.iter().map(|&(n, a, b)| (n, a.to_owned(), b.to_owned())).collect();
            assert_eq!(read(body), want, "{name}");
        }
    }

    #[test]
    fn a_line_that_the_limit_cuts_is_not_read() {
        let cases = [
            ("ends at the limit", MAX_BYTES - 4, "a: 1\nb: 2", 1),
            ("ends just before it", MAX_BYTES - 5, "a: 1\nb: 2", 1),
            ("is cut by one byte", MAX_BYTES - 3, "a: 1\nb: 2", 0),
            ("is the last and fits", MAX_BYTES - 4, "a: 1", 1),
            ("is the last and does not fit", MAX_BYTES - 3, "a: 1", 0),
        ];
        for (name, before, tail, want) in cases {
            let mut body = vec![b'x'; before - 1];
            body.push(b'\n');
            body.extend(tail.bytes());
            assert_eq!(lines(&body).count(), want, "{name}");
        }
    }
}
