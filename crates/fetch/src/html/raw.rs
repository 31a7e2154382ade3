//! Elements whose content is text and nothing else, whatever it looks like.

use super::tag::{Name, is_space};

/// What the content of an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// Elements and text.
    Markup,
    /// Text up to the end tag, which has this name.
    Text(&'static str),
    /// Text up to the end tag; but a comment in it may hide a script within the script.
    Script,
    /// All the rest of the page.
    Rest,
}

impl Content {
    /// That of an element of HTML. Nobody sees what is in `noscript`: browsers run scripts.
    pub(super) fn of(name: Name) -> Self {
        const TEXTS: [(Name, &str); 8] = [
            (Name::of("title"), "title"),
            (Name::of("style"), "style"),
            (Name::of("noscript"), "noscript"),
            (Name::of("textarea"), "textarea"),
            (Name::of("iframe"), "iframe"),
            (Name::of("xmp"), "xmp"),
            (Name::of("noembed"), "noembed"),
            (Name::of("noframes"), "noframes"),
        ];
        const SCRIPT: Name = Name::of("script");
        const PLAINTEXT: Name = Name::of("plaintext");
        match name {
            SCRIPT => Self::Script,
            PLAINTEXT => Self::Rest,
            _ => TEXTS
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(Self::Markup, |(_, name)| Self::Text(name)),
        }
    }

    /// Where this content ends, at the start of `html`.
    pub(super) fn length(self, html: &[u8]) -> usize {
        match self {
            Self::Markup => 0,
            Self::Text(name) => {
                let is_end = |at: &usize| is_tag(&html[*at..], b"</", name);
                memchr::memchr_iter(b'<', html).find(is_end).unwrap_or(html.len())
            }
            Self::Script => script(html),
            Self::Rest => html.len(),
        }
    }
}

/// Whether a tag of this name stands here. What is not ended by a letter that may follow a name is another one.
fn is_tag(html: &[u8], start: &[u8], name: &str) -> bool {
    let Some(rest) = html.strip_prefix(start) else { return false };
    let Some((found, rest)) = rest.split_at_checked(name.len()) else { return false };
    let is_end = |byte: &u8| is_space(*byte) || matches!(byte, b'/' | b'>');
    found.eq_ignore_ascii_case(name.as_bytes()) && rest.first().is_some_and(is_end)
}

/// How deep in comments and scripts a script is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Script,
    /// In `<!--`.
    Comment,
    /// In `<!-- <script>`, whose end tag does not end the outer script.
    Inner,
}

fn script(html: &[u8]) -> usize {
    let (mut level, mut at) = (Level::Script, 0);
    loop {
        let found = match level {
            Level::Script => memchr::memchr(b'<', &html[at..]),
            Level::Comment | Level::Inner => memchr::memchr2(b'<', b'-', &html[at..]),
        };
        let Some(found) = found else { return html.len() };
        at += found;
        let rest = &html[at..];
        let is_end = || is_tag(rest, b"</", "script");
        (level, at) = match level {
            Level::Script | Level::Comment if is_end() => return at,
            // The dashes may be those of its end, too: `<!-->` is a whole comment.
            Level::Script if rest.starts_with(b"<!--") => (Level::Comment, at + 2),
            Level::Comment | Level::Inner if rest.starts_with(b"-->") => (Level::Script, at + 3),
            Level::Comment if is_tag(rest, b"<", "script") => (Level::Inner, at + 1),
            Level::Inner if is_end() => (Level::Comment, at + 1),
            _ => (level, at + 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_script_ends() {
        let cases = [
            ("plain", "a</script>", 1),
            ("any case, with a space", "a</SCRIPT >", 1),
            ("another name", "a</scripts></script>", 11),
            ("never", "a</script", 9),
            ("in a comment", "<!--a</script>", 5),
            ("a script in a comment", "<!--<script>a</script>b</script>", 23),
            ("a whole comment", "<!--><script>a</script>", 14),
            ("after the comment", "<!--<script>--></script>", 15),
            ("dashes alone", "--<script></script>", 10),
        ];
        for (name, html, want) in cases {
            assert_eq!(Content::Script.length(html.as_bytes()), want, "{name}");
        }
    }
}
