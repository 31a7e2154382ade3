//! The pages, the same in every run.
//!
//! A page has a header with navigation, an article and a footer. Its 22 links: six in the navigation, two to
//! the next pages of a tree that spans the host, so that every page can be reached from the first, eleven to
//! any pages of the host, and three to pages of other hosts.

use std::fmt::Write as _;

use bytes::Bytes;

const NAVIGATION: usize = 6;
const OWN: usize = 11;
const ELSEWHERE: usize = 3;
/// How many different sentences there are.
const SENTENCES: usize = 512;

const WORDS: [&str; 48] = [
    "a",
    "and",
    "as",
    "at",
    "by",
    "for",
    "from",
    "in",
    "is",
    "it",
    "of",
    "on",
    "or",
    "that",
    "the",
    "to",
    "was",
    "with",
    "application",
    "archive",
    "autumn",
    "bridge",
    "building",
    "chapter",
    "citizen",
    "council",
    "decision",
    "document",
    "evening",
    "garden",
    "harbour",
    "history",
    "island",
    "journal",
    "language",
    "library",
    "market",
    "meeting",
    "mountain",
    "museum",
    "notice",
    "office",
    "permit",
    "railway",
    "river",
    "school",
    "service",
    "winter",
];

/// What the site is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    /// Of each host.
    pub(crate) pages: usize,
    /// Of each page, or a few more.
    pub(crate) bytes: usize,
    pub(crate) port: u16,
}

impl Plan {
    /// The number of the page at a path.
    pub(crate) fn page_at(&self, path: &str) -> Option<usize> {
        let page = match path {
            "/" => 0,
            _ => path.strip_prefix("/page/")?.parse().ok()?,
        };
        (page < self.pages).then_some(page)
    }

    /// All pages, host by host.
    pub(crate) fn render(&self) -> Vec<Bytes> {
        let sentences: Vec<String> = (0..SENTENCES).map(sentence).collect();
        let places = (0..self.hosts).flat_map(|host| (0..self.pages).map(move |page| (host, page)));
        places.map(|(host, page)| self.page(host, page, &sentences).into()).collect()
    }

    fn page(&self, host: usize, page: usize, sentences: &[String]) -> String {
        let mut chance = Chance(((host * self.pages + page) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut html = String::with_capacity(self.bytes + 512);
        let name = format!("Page {page} of site {}", host + 1);
        let _ = write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n\
             <style>body {{ max-width: 60em; margin: auto }}</style>\n\
             <script>window.page = {page};</script>\n</head>\n<body>\n<header><nav><ul>\n"
        );
        for section in 0..NAVIGATION {
            let _ =
                writeln!(html, "<li><a href=\"{}\">Section {section}</a></li>", path(section % self.pages));
        }
        let _ = write!(html, "</ul></nav></header>\n<main><article>\n<h1>{name}</h1>\n");
        let links = self.links(host, page, &mut chance);
        // What is left for the text, spread over as many paragraphs as there are links in it.
        let (end, markup) =
            ("</article></main>\n<footer>Generated for a benchmark.</footer>\n</body>\n</html>\n", 60);
        let text = self.bytes.saturating_sub(html.len() + end.len() + links.len() * markup) / links.len();
        for (number, link) in links.iter().enumerate() {
            paragraph(&mut html, link, number, text, sentences, &mut chance);
        }
        html.push_str(end);
        html
    }

    /// Where the links in the text lead.
    fn links(&self, host: usize, page: usize, chance: &mut Chance) -> Vec<String> {
        let mut links: Vec<String> =
            [2 * page + 1, 2 * page + 2].into_iter().filter(|next| *next < self.pages).map(path).collect();
        while links.len() < 2 + OWN {
            links.push(path(chance.below(self.pages)));
        }
        for _ in 0..ELSEWHERE {
            let other = (host + 1 + chance.below(self.hosts.max(2) - 1)) % self.hosts;
            let page = path(chance.below(self.pages));
            links.push(format!("http://127.0.0.{}:{}{page}", other + 1, self.port));
        }
        links
    }
}

fn path(page: usize) -> String {
    if page == 0 { "/".to_owned() } else { format!("/page/{page}") }
}

/// A paragraph with one link in it.
fn paragraph(
    html: &mut String,
    link: &str,
    number: usize,
    bytes: usize,
    sentences: &[String],
    chance: &mut Chance,
) {
    let end = html.len() + bytes;
    let _ =
        write!(html, "<p>{} <a href=\"{link}\">Read on, {number}</a>.", sentences[chance.below(SENTENCES)]);
    while html.len() < end {
        html.push(' ');
        html.push_str(&sentences[chance.below(SENTENCES)]);
    }
    html.push_str("</p>\n");
}

fn sentence(number: usize) -> String {
    let mut chance = Chance(number as u64);
    let words: Vec<&str> = (0..6 + chance.below(12)).map(|_| WORDS[chance.below(WORDS.len())]).collect();
    format!("{}.", words.join(" "))
}

/// Numbers that look random and are the same in every run (`SplitMix64`).
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or_default()
    }
}
