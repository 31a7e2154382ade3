//! What robots.txt files say of URLs, from the text of RFC 9309 and where it leaves things open: for the reader of the file,
//! and for the program as a whole.

#![allow(dead_code, reason = "each test file takes what it needs")]

/// What a table says about a URL: allowed or not, and by which line; `FREE` is allowed by none.
pub(crate) type Want = (bool, Option<usize>);

pub(crate) const FREE: Want = (true, None);

pub(crate) const fn allowed(line: usize) -> Want {
    (true, Some(line))
}

pub(crate) const fn denied(line: usize) -> Want {
    (false, Some(line))
}

/// A name, a file, the path of a URL, and what is to be decided.
pub(crate) type Case<'a> = (&'a str, &'a str, &'a str, Want);

/// Section 2.2.1: the user-agent line.
///
/// Whole files.
pub(crate) const GROUPS: &[Case<'static>] = {
    let two = "User-agent: other\nDisallow: /\n\nUser-agent: forager\nDisallow: /a\n";
    let star_first = "User-agent: *\nDisallow: /\n\nUser-agent: forager\nDisallow: /a\n";
    let twice = "User-agent: forager\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\n\
                 User-agent: FORAGER\nDisallow: /c\n";
    let stars = "User-agent: *\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n";
    let shared = "User-agent: one\nUser-agent: forager\nUser-agent: two\nDisallow: /a\n";
    &[
        ("an empty file", "", "/", FREE),
        ("only another crawler is named", "User-agent: other\nDisallow: /\n", "/", FREE),
        ("our group counts", two, "/a", denied(5)),
        ("the group of another does not", two, "/b", FREE),
        ("ours counts instead of everyone's", star_first, "/b", FREE),
        ("ours counts though everyone's is first", star_first, "/a", denied(5)),
        ("everyone's counts where we are not named", stars, "/a", denied(2)),
        ("several groups of ours are one: the first", twice, "/a", denied(2)),
        ("several groups of ours are one: the second", twice, "/c", denied(8)),
        ("and what stands between them is not ours", twice, "/b", FREE),
        ("several groups of everyone's are one", stars, "/b", denied(5)),
        ("one of several names", shared, "/a", denied(4)),
        (
            "a group of ours without rules frees us",
            "User-agent: *\nDisallow: /\nUser-agent: forager",
            "/",
            FREE,
        ),
        ("rules for nobody", "User-agent:\nDisallow: /\n", "/", FREE),
    ]
};

/// Section 2.2: where groups begin and end.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const ENDS: &[Case<'static>] = &[
    ("empty lines end no group", "\n\nDisallow: /", "/", denied(4)),
    ("nor separate names", "\nUser-agent: other\n\nDisallow: /", "/", denied(5)),
    ("nor separate rules", "Allow: /b\n\n\nDisallow: /", "/a", denied(5)),
    ("comments end no group", "# a\nUser-agent: other\n#b\nDisallow: /", "/", denied(5)),
    ("a sitemap ends no names", "Sitemap: /s.xml\nUser-agent: other\nDisallow: /", "/", denied(4)),
    ("an unknown line ends no names", "Foo: bar\nUser-agent: other\nDisallow: /", "/", denied(4)),
    ("a delay ends no names", "Crawl-delay: 5\nUser-agent: other\nDisallow: /", "/", denied(4)),
    ("a broken line ends no names", "what is this\nUser-agent: other\nDisallow: /", "/", denied(4)),
    ("an unknown line ends no rules", "Allow: /b\nFoo: x\nDisallow: /", "/", denied(4)),
    ("a rule ends the names", "Disallow: /a\nUser-agent: other\nDisallow: /", "/", FREE),
    ("so does an empty one", "Disallow:\nUser-agent: other\nDisallow: /", "/", FREE),
];

/// Section 2.2: where groups begin and end.
///
/// Whole files.
pub(crate) const ENDS_OF_FILES: &[Case<'static>] = &[
    ("a rule before any group", "Disallow: /\nUser-agent: forager\nDisallow: /a\n", "/b", FREE),
    ("only rules", "Disallow: /\n", "/", FREE),
];

/// Section 2.2.2: the most octets win, and `Allow` wins ties.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const LENGTHS: &[Case<'static>] = {
    let rfc = "Allow: /example/page/\nDisallow: /example/page/disallowed.gif";
    &[
        ("section 5.2: allowed below", rfc, "/example/page/a.gif", allowed(2)),
        ("section 5.2: the longest match", rfc, "/example/page/disallowed.gif", denied(3)),
        ("section 5.2: nothing matches", rfc, "/example/", FREE),
        ("allow wins ties, though later", "Disallow: /page\nAllow: /page", "/page", allowed(3)),
        ("a longer allow", "Allow: /p\nDisallow: /", "/page", allowed(2)),
        ("the order does not count", "Allow: /p\nDisallow: /", "/x", denied(3)),
        ("a wildcard counts as one octet", "Disallow: /*.php\nAllow: /shop.", "/shop.php", allowed(3)),
        ("and so can make a rule the longer one", "Disallow: /*.php\nAllow: /shop", "/shop.php", denied(2)),
        ("each of several wildcards counts", "Disallow: //*$\nAllow: /**$", "//", allowed(3)),
        ("an end counts as one", "Disallow: /a$\nAllow: /a", "/a", denied(2)),
        ("an end that is not reached", "Disallow: /a$\nAllow: /a", "/ab", allowed(3)),
        ("an escape counts as what it means", "Disallow: /%61%62\nAllow: /abc", "/abcd", allowed(3)),
        ("of equal rules the first is named", "Disallow: /a\nDisallow: /a", "/a", denied(2)),
        ("an empty disallow forbids nothing", "Disallow:", "/", FREE),
        ("an empty allow allows nothing", "Allow:\nDisallow: /", "/", denied(3)),
        ("a rule with only a comment", "Disallow: # all", "/", FREE),
    ]
};

/// Section 2.2.2: from the start of the path, case counts, the query is part of it.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const PATHS: &[Case<'static>] = &[
    ("the same", "Disallow: /fish", "/fish", denied(2)),
    ("a longer name", "Disallow: /fish", "/fish.html", denied(2)),
    ("a folder", "Disallow: /fish", "/fish/salmon.html", denied(2)),
    ("with a query", "Disallow: /fish", "/fish?id=anything", denied(2)),
    ("paths tell case apart", "Disallow: /fish", "/Fish.asp", FREE),
    ("not in the middle", "Disallow: /fish", "/catfish", FREE),
    ("not in the query", "Disallow: /fish", "/?id=/fish", FREE),
    ("a folder without its slash", "Disallow: /fish/", "/fish", FREE),
    ("a folder and its pages", "Disallow: /fish/", "/fish/?id=1", denied(2)),
    ("a rule with a query", "Disallow: /a?b", "/a?bc", denied(2)),
    ("a rule with another query", "Disallow: /a?b", "/a?c", FREE),
    ("a path without its first slash", "Disallow: fish", "/fish", denied(2)),
    ("a whole URL is no path", "Disallow: https://example.org/", "/", FREE),
    ("two slashes are not one", "Disallow: //a", "/a", FREE),
];

/// Section 2.2.3: `#`, `$` and `*`.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const SPECIAL: &[Case<'static>] = {
    let star = "Disallow: /path/file-with-a-%2A.html";
    &[
        ("a comment behind a path", "Disallow: /a # not /", "/a", denied(2)),
        ("a comment right behind it", "Disallow: /a#b", "/ac", denied(2)),
        ("a wildcard and an end", "Disallow: /*.gif$", "/x/y.gif", denied(2)),
        ("the end is meant", "Disallow: /*.gif$", "/x/y.gif?z", FREE),
        ("an end that comes twice", "Disallow: /*.gif$", "/x.gif.gif", denied(2)),
        ("a wildcard for nothing", "Disallow: /*.gif$", "/.gif", denied(2)),
        ("a wildcard at the end", "Disallow: /fish*", "/fishes", denied(2)),
        ("a wildcard at the end for nothing", "Disallow: /fish*", "/fish", denied(2)),
        ("a wildcard in front", "Disallow: */b/*/c", "/a/b/x/c", denied(2)),
        ("wildcards take slashes too", "Disallow: */b/*/c", "/a/b/x/y/c", denied(2)),
        ("wildcards need all pieces", "Disallow: */b/*/c", "/a/b/c", FREE),
        ("pieces do not overlap", "Disallow: /aba*aba$", "/ababa", FREE),
        ("a wildcard before a query", "Disallow: /*?id=", "/a/b?id=1", denied(2)),
        ("many wildcards in a row", "Disallow: /a****b", "/ab", denied(2)),
        ("only the end of the root", "Disallow: /$", "/", denied(2)),
        ("and nothing below it", "Disallow: /$", "/a", FREE),
        ("a wildcard and an end at once", "Disallow: /a*$", "/abc", denied(2)),
        ("only an end", "Disallow: $", "/", FREE),
        ("only a wildcard", "Disallow: *", "/a", denied(2)),
        ("a literal asterisk", star, "/path/file-with-a-*.html", denied(2)),
        ("a literal asterisk is no wildcard", star, "/path/file-with-a-b.html", FREE),
        ("a literal asterisk, escaped in the URL", star, "/path/file-with-a-%2a.html", denied(2)),
        ("a literal dollar", "Disallow: /path/foo-%24", "/path/foo-$", denied(2)),
        ("a literal dollar is no end", "Disallow: /path/foo-%24", "/path/foo-", FREE),
        ("a dollar in the middle is itself", "Disallow: /a$b$", "/a$b", denied(2)),
        ("and the last one is the end", "Disallow: /a$b$", "/a$bc", FREE),
    ]
};

/// Section 2.2.2: percent-encoding is normalised on both sides.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const ESCAPES: &[Case<'static>] = {
    let link = "Disallow: /foo/bar?baz=https://foo.bar";
    let escaped_link = "Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar";
    &[
        ("a plain query", "Disallow: /foo/bar?baz=quz", "/foo/bar?baz=quz", denied(2)),
        ("a URL in a query, escaped by the URL", link, "/foo/bar?baz=https%3A%2F%2Ffoo.bar", denied(2)),
        ("a URL in a query, escaped by the rule", escaped_link, "/foo/bar?baz=https://foo.bar", denied(2)),
        ("a URL in a query, escaped by neither", link, "/foo/bar?baz=https://foo.bar", denied(2)),
        ("an escaped slash behind a wildcard", "Disallow: /*=%2Fa", "/?b=%2Fa", denied(2)),
        ("a slash in a query behind a wildcard", "Disallow: /*=/a", "/?b=/a", denied(2)),
        ("beyond ASCII, escaped by neither", "Disallow: /foo/bar/ツ", "/foo/bar/ツ", denied(2)),
        ("beyond ASCII, escaped by the URL", "Disallow: /foo/bar/ツ", "/foo/bar/%E3%83%84", denied(2)),
        ("beyond ASCII, escaped by the rule", "Disallow: /foo/bar/%E3%83%84", "/foo/bar/ツ", denied(2)),
        ("beyond ASCII, in small letters", "Disallow: /%E3%83%84", "/%e3%83%84", denied(2)),
        ("letters escaped by the rule", "Disallow: /foo/bar/%62%61%7A", "/foo/bar/baz", denied(2)),
        ("letters escaped by the URL", "Disallow: /foo/bar/baz", "/foo/bar/%62%61%7A", denied(2)),
        ("a tilde", "Disallow: /%7Ejoe", "/~joe", denied(2)),
        ("an escaped slash is no slash", "Disallow: /a%2Fb", "/a/b", FREE),
        ("a slash is no escaped one", "Disallow: /a/b", "/a%2Fb", FREE),
        ("an escaped slash is itself", "Disallow: /a%2fb", "/a%2Fb", denied(2)),
        ("an escaped question mark is no query", "Disallow: /a%3Fb", "/a?b", FREE),
        ("a semicolon", "Disallow: /a;b", "/a%3Bb", denied(2)),
        ("capitals of escapes do not count", "Disallow: /a%3cd", "/a%3Cd", denied(2)),
        ("a space", "Disallow: /a b", "/a%20b", denied(2)),
        ("a percent sign alone", "Disallow: /100%", "/100%25", denied(2)),
        ("an escape cut short", "Disallow: /a%2", "/a%2", denied(2)),
        ("escaped twice is not escaped once", "Disallow: /%257E", "/~", FREE),
    ]
};

/// Section 2.2: lines as people write them.
///
/// Whole files.
pub(crate) const LINES: &[Case<'static>] = &[
    ("a byte-order mark", "\u{feff}User-agent: forager\nDisallow: /\n", "/", denied(2)),
    ("a mark further on is a broken name", "\n\u{feff}User-agent: forager\nDisallow: /\n", "/", FREE),
    ("CR", "User-agent: forager\rDisallow: /\r", "/", denied(2)),
    ("CRLF", "User-agent: forager\r\nDisallow: /\r\n", "/", denied(2)),
    ("all in turn", "User-agent: forager\r\n\rDisallow: /\n", "/", denied(3)),
    ("no line end at the end", "User-agent: forager\nDisallow: /", "/", denied(2)),
    ("names in capitals", "USER-AGENT: forager\nDISALLOW: /\n", "/", denied(2)),
    ("names in small letters", "user-agent: forager\ndisallow: /\n", "/", denied(2)),
    ("spaces everywhere", "  User-agent\t:  forager  \n\tDisallow :\t/a \n", "/ab", denied(2)),
    ("no space", "User-agent:forager\nDisallow:/\n", "/", denied(2)),
    ("no colon", "User-agent: forager\nDisallow /\n", "/", FREE),
    ("an empty name", "User-agent: forager\n: /\n", "/", FREE),
    ("a name that is not quite", "User-agent: forager\nDisallowed: /\n", "/", FREE),
    ("two colons", "User-agent: forager\nDisallow:: /\n", "/", FREE),
    ("a zero byte", "User-agent: forager\nDis\0allow: /\nDisallow: /a\n", "/a", denied(3)),
    ("a page", "<!DOCTYPE html>\n<html><body style='a: b'>\n<p>Disallow: /</p></html>", "/", FREE),
];

/// Section 2.2.2: robots.txt itself is allowed, whatever it says.
///
/// Lines of our own group, the first of which is line 2.
pub(crate) const ITSELF: &[Case<'static>] = &[
    ("the file", "Disallow: /", "/robots.txt", FREE),
    ("even if it is named", "Disallow: /robots.txt", "/robots.txt", FREE),
    ("another of that name", "Disallow: /", "/a/robots.txt", denied(2)),
    ("a longer name", "Disallow: /", "/robots.txt.gz", denied(2)),
    ("with a query it may be any page", "Disallow: /", "/robots.txt?a", denied(2)),
    ("in capitals it is another", "Disallow: /", "/ROBOTS.TXT", denied(2)),
];

/// Names that may be ours, and whether they are.
pub(crate) const NAMES: &[(&str, &str, bool)] = &[
    ("in any case", "FoRaGeR", true),
    ("with a version", "Forager/1.0", true),
    ("with more words", "forager bot", true),
    ("with an address", "forager(+https://example.org)", true),
    ("one that starts with ours", "foragerbot", false),
    ("one that ours starts with", "forage", false),
    ("one that ends with ours", "theforager", false),
    ("ours and a hyphen", "forager-news", false),
    ("ours and an underscore", "forager_news", false),
    ("ours and a digit", "forager2", false),
    ("an asterisk in it is no wildcard", "forag*", false),
    ("an asterisk in front of it is not everyone", "*bot", false),
    ("everyone, and a word behind it", "* all", true),
    ("everyone", "*", true),
];

/// All cases as whole files.
pub(crate) fn files() -> Vec<(String, Vec<u8>, String, Want)> {
    let file = |&(name, body, path, want): &Case<'_>| {
        (name.to_owned(), body.as_bytes().to_vec(), path.to_owned(), want)
    };
    let rules = |&(name, rules, path, want): &Case<'_>| {
        let body = format!("User-agent: forager\n{rules}\n");
        (name.to_owned(), body.into_bytes(), path.to_owned(), want)
    };
    let named = |&(name, agent, is_meant): &(&str, &str, bool)| {
        let body = format!("User-agent: {agent}\nDisallow: /\n");
        (name.to_owned(), body.into_bytes(), "/".to_owned(), if is_meant { denied(2) } else { FREE })
    };
    let whole = [GROUPS, ENDS_OF_FILES, LINES].into_iter().flatten().map(file);
    let lines = [ENDS, LENGTHS, PATHS, SPECIAL, ESCAPES, ITSELF].into_iter().flatten().map(rules);
    whole.chain(lines).chain(NAMES.iter().map(named)).collect()
}
