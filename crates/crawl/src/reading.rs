//! What an answer means: links, what the page is known by, and what has changed.

use forager_core::scope::config::ChangeBy;
use forager_core::url::{FetchUrl, without_user_info};
use forager_fetch::difference;
use forager_fetch::directives::Directives;
use forager_fetch::encoding;
use forager_fetch::fingerprint::{self, Fingerprint, Form, RULES};
use forager_fetch::http::Response;
use forager_fetch::links::{self, LinkOptions, PageLinks, RobotsMeta};
use forager_fetch::sitemap;
use forager_frontier::Moment;
use forager_frontier::entry::{How, Validators};
use forager_frontier::verbs::{Action, Difference, Link};

use crate::options::PageOptions;
use crate::told::Found;

/// What was made of an answer.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Links, and where it redirects to.
    pub links: Vec<Link>,
    /// The title of the page.
    pub title: Option<String>,
    /// What the page asks of robots.
    pub directives: Directives,
    /// What the content is known by.
    pub fingerprint: Option<String>,
    /// What it says, line by line.
    pub text: Option<String>,
    /// Where it redirects to.
    pub redirect: Option<String>,
    /// What the server knows this version by.
    pub validators: Validators,
    /// Links that cannot or may not be followed, and why.
    pub skipped: Vec<Found>,
    /// What is wrong with a sitemap, or keeps us from seeing all links of a page.
    pub problems: Vec<String>,
    /// What it has that the protocol does not allow.
    pub remarks: Vec<sitemap::Problem>,
}

/// How a page was come to, as far as that says how to read it.
#[derive(Clone, Copy, Debug)]
pub struct Come {
    /// How it was found.
    pub how: How,
    /// Whether it is one to start from, or where one redirects to.
    pub is_start: bool,
}

/// Reads an answer to a request for `url`. A page that was found as a listing is read as a sitemap; one to start from also,
/// if it is a sitemap or a feed.
pub fn read(
    response: &Response,
    url: &FetchUrl,
    Come { how, is_start }: Come,
    options: &PageOptions,
    product_token: &str,
) -> Reading {
    let mut reading = Reading { validators: validators(response), ..Reading::default() };
    if (300..400).contains(&response.status) {
        reading.follow(response, url, how, options);
        return reading;
    }
    if !(200..300).contains(&response.status) {
        return reading;
    }
    if how == How::Listing {
        reading.read_listing(response, url, options);
        return reading;
    }
    reading.read_page(response, url, options, product_token);
    if is_start && options.reaches_out {
        reading.read_start(response, url);
    }
    reading
}

impl Reading {
    /// A redirect is a link; and when it leads elsewhere, the page has changed.
    fn follow(&mut self, response: &Response, url: &FetchUrl, how: How, options: &PageOptions) {
        if response.status == 304 {
            return;
        }
        let Some(location) = response.location() else {
            self.problems.push("redirects without saying where to".to_owned());
            return;
        };
        let target = match url.join(&location) {
            Ok(target) => target.into_string(),
            Err(cause) => {
                let shown = without_user_info(&location).chars().take(MOST_SHOWN).collect();
                self.skipped.push(Found::new(shown, Action::Invalid, format!("redirects nowhere: {cause}")));
                self.problems.push(format!("redirects nowhere: {cause}"));
                return;
            }
        };
        self.fingerprint = Some(known_by(&Fingerprint::of_bytes(target.as_bytes()), options));
        self.redirect = Some(target.clone());
        // So that a change says where it led before, and where it leads now.
        self.text = Some(format!("{REDIRECTS}{target}"));
        // A sitemap that has moved is still one.
        let how = if how == How::Listing { How::Listing } else { How::Redirect };
        self.links.push(Link { url: target, how, ..Link::default() });
    }

    /// Whoever starts from a sitemap or a feed wants the pages that it lists.
    fn read_start(&mut self, response: &Response, url: &FetchUrl) {
        if Form::of(response.content_type(), &response.body) == Form::Html {
            return;
        }
        let listing = sitemap::read(&response.body, url, response.content_type());
        let is_listing = match listing.kind {
            sitemap::Kind::Unknown => false,
            // A text may have a URL in a line of its own, and be none.
            sitemap::Kind::Text => listing.problems.is_empty(),
            _ => true,
        };
        if is_listing {
            self.take_listing(listing);
        }
    }

    fn read_listing(&mut self, response: &Response, url: &FetchUrl, options: &PageOptions) {
        self.take_listing(sitemap::read(&response.body, url, response.content_type()));
        self.fingerprint = Some(known_by(&Fingerprint::of_bytes(&response.body), options));
    }

    fn take_listing(&mut self, listing: sitemap::Sitemap) {
        self.problems = listing.problems.iter().map(ToString::to_string).collect();
        let further = listing.further_problems + listing.further_remarks;
        if further > 0 {
            self.problems.push(format!("and {further} more"));
        }
        self.remarks = listing.remarks;
        let link = |how| {
            move |item: sitemap::Item| Link {
                url: item.url.into_string(),
                how,
                last_modified: item.last_modified.map(Moment::of),
                ..Link::default()
            }
        };
        self.links.extend(listing.sitemaps.into_iter().map(link(How::Listing)));
        self.links.extend(listing.urls.into_iter().map(link(How::Sitemap)));
    }

    fn read_page(&mut self, response: &Response, url: &FetchUrl, options: &PageOptions, token: &str) {
        let form = Form::of(response.content_type(), &response.body);
        let decoded = match form {
            Form::Binary => None,
            Form::Html | Form::Text => {
                Some(encoding::decode_from(&response.body, response.content_type(), Some(url.host())))
            }
        };
        let text = decoded.as_ref().map_or("", |decoded| &*decoded.text);
        if let (Form::Html, Some(decoded)) = (form, &decoded) {
            let mut page = links::extract(text, url, &link_options(token, decoded.encoding, options));
            self.title = page.title.take();
            self.problems = page.problems();
            let unusable = std::mem::take(&mut page.unusable).into_iter();
            self.skipped = unusable.map(|link| Found::new(link.href, Action::Invalid, link.why)).collect();
            self.directives = directives(response, &page.robots_meta, token);
            self.follow_links(page, options);
        } else {
            self.directives = directives(response, &[], token);
        }
        self.recognise(response, (form, text), options);
    }

    /// The links of a page that may be followed.
    fn follow_links(&mut self, page: PageLinks, options: &PageOptions) {
        let of_page = self.directives.nofollow_said().filter(|_| options.reading.respect_meta_robots);
        let of_page = of_page.map(|said| format!("the page asks for no link to be followed ({said})"));
        self.links.reserve(page.links.len());
        for link in page.links {
            let is_loose = link.rel.nofollow && options.reading.respect_nofollow;
            let obstacle = of_page.as_deref().or(is_loose.then_some("the link is nofollow"));
            match obstacle {
                None => self.links.push(to_queue(link)),
                Some(why) if self.skipped.len() < MOST_SKIPPED => {
                    self.skipped.push(Found::new(link.url.into_string(), Action::Ignored, why));
                }
                Some(_) => {}
            }
        }
    }

    /// What the page is known by, and what it says. To read its content takes longer than all the rest, and
    /// serves to see what has changed: a page that is fetched once is known by its bytes.
    fn recognise(&mut self, response: &Response, (form, text): (Form, &str), options: &PageOptions) {
        if !options.comes_back {
            self.fingerprint = Some(known_by_bytes(&Fingerprint::of_bytes(&response.body)));
            return;
        }
        let known = fingerprint::take(&response.body, text, form, options.content.as_ref());
        self.fingerprint = Some(known_by(&known.fingerprint, options));
        self.text = (form != Form::Binary).then_some(known.lines);
    }
}

/// What a page asks of robots, by its headers and its `meta` elements.
pub fn directives(response: &Response, metas: &[RobotsMeta], token: &str) -> Directives {
    let tags = response.headers.get_all("x-robots-tag");
    Directives::read(tags.iter().filter_map(|value| value.to_str().ok()), metas, token)
}

fn link_options(token: &str, encoding: &'static str, options: &PageOptions) -> LinkOptions {
    let PageOptions { needs_texts, .. } = *options;
    LinkOptions { encoding, product_token: token.to_owned(), texts: needs_texts, ..LinkOptions::default() }
}

/// How much is told of where a redirect should have led.
const MOST_SHOWN: usize = 300;
/// How many links of a page that are not followed are told one by one.
pub(crate) const MOST_SKIPPED: usize = 10 * links::MAX_UNUSABLE;

fn to_queue(link: links::Link) -> Link {
    Link {
        url: link.url.into_string(),
        how: if link.kind == links::Kind::Refresh { How::Redirect } else { How::Link },
        in_header: link.in_header,
        text: link.text,
        title: link.title,
        ..Link::default()
    }
}

fn validators(response: &Response) -> Validators {
    Validators {
        etag: response.etag().map(str::to_owned),
        last_modified: response.last_modified().map(str::to_owned),
    }
}

/// What a page says that redirects.
const REDIRECTS: &str = "redirects to ";

/// Where a page redirected to that said this.
pub fn redirected_to(text: &str) -> Option<&str> {
    text.strip_prefix(REDIRECTS).filter(|target| !target.contains('\n'))
}

/// A fingerprint as the queue keeps it: the version of the rules, what the selector is known by if there is one, the content,
/// the exact bytes. What was read with another selector says nothing of what has changed.
fn known_by(fingerprint: &Fingerprint, options: &PageOptions) -> String {
    let selector = options.reading.content.as_deref().filter(|_| options.content.is_some());
    let selector = selector.map(|text| Fingerprint::of_bytes(text.as_bytes()).exact);
    let selector = selector.map(|hash| format!("{SELECTOR}{}", &hash[..8])).unwrap_or_default();
    format!("{RULES}{selector}:{}.{}", fingerprint.content, fingerprint.exact)
}

/// What stands between the version of the rules and the selector.
const SELECTOR: char = '~';

/// The same where the content was not read: by rules of its own, so that the two are never compared.
fn known_by_bytes(fingerprint: &Fingerprint) -> String {
    format!("0:{}.{}", fingerprint.content, fingerprint.exact)
}

/// Whether a page has changed; none if that cannot be told, because it was never read, or by other rules.
pub fn has_changed(before: Option<&str>, now: Option<&str>, by: ChangeBy) -> Option<bool> {
    let part = |text: &str| -> Option<(String, String)> {
        let (rules, rest) = text.split_once(':')?;
        let (content, exact) = rest.split_once('.')?;
        let (rules, counted) = match by {
            ChangeBy::Content => (rules, content),
            // Bytes are the same, however they are read.
            ChangeBy::Exact => (rules.split(SELECTOR).next()?, exact),
        };
        Some((rules.to_owned(), counted.to_owned()))
    };
    let (before, now) = (part(before?)?, part(now?)?);
    (before.0 == now.0).then(|| before.1 != now.1)
}

/// What has changed between two texts of a page, and whether there is more of it than is told.
pub fn difference(before: &str, now: &str) -> (Difference, bool) {
    let found = difference::lines(before, now, difference::Limits::default());
    (Difference { added: found.added, removed: found.removed }, found.more)
}

#[cfg(test)]
mod tests {
    use forager_core::scope::Profile;

    use super::*;

    #[test]
    fn what_counts_as_changed() {
        use ChangeBy::{Content, Exact};
        let table = [
            ("never read", None, Some("1:a.b"), Content, None),
            ("the same", Some("1:a.b"), Some("1:a.b"), Exact, Some(false)),
            ("other bytes", Some("1:a.b"), Some("1:a.c"), Content, Some(false)),
            ("other bytes, and they count", Some("1:a.b"), Some("1:a.c"), Exact, Some(true)),
            ("other content", Some("1:a.b"), Some("1:x.c"), Content, Some(true)),
            ("by other rules", Some("0:a.b"), Some("1:x.c"), Content, None),
            ("by another selector", Some("1~aa:a.b"), Some("1~bb:x.c"), Content, None),
            ("by a selector, and by none before", Some("1:a.b"), Some("1~bb:x.b"), Content, None),
            ("by the same selector", Some("1~aa:a.b"), Some("1~aa:x.c"), Content, Some(true)),
            ("by another selector, and bytes count", Some("1~aa:a.b"), Some("1~bb:x.b"), Exact, Some(false)),
            ("given by somebody else", Some("etag"), Some("1:x.c"), Content, None),
        ];
        for (name, before, now, by, want) in table {
            assert_eq!(has_changed(before, now, by), want, "{name}");
        }
    }
    #[test]
    fn what_is_read_by_another_selector_is_not_compared() {
        let options = |content: Option<&str>| {
            let mut profile = Profile::new("p", "c");
            profile.reading.content = content.map(str::to_owned);
            PageOptions::of(&profile)
        };
        let page = Fingerprint::of_bytes(b"page");
        let known = |content| known_by(&page, &options(content));
        let table = [
            (None, None, Some(false)),
            (Some("main"), Some("main"), Some(false)),
            (None, Some("main"), None),
            (Some("main"), Some("#text"), None),
        ];
        for (before, now, want) in table {
            let changed = has_changed(Some(&known(before)), Some(&known(now)), ChangeBy::Content);
            assert_eq!(changed, want, "{before:?}, {now:?}");
        }
    }
}
