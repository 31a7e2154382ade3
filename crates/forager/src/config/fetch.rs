//! How pages are fetched: who asks, how much is taken in, and where requests may go.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use forager_core::time::Interval;
use forager_core::url::FetchUrl;
use forager_fetch::address::{AddressPolicy, Network};
use forager_fetch::http::{HttpConfig, Limits, authorities_from_pem};
use forager_fetch::robots::product_token;
use serde::{Deserialize, Serialize};

/// How many fetches may be under way altogether: beyond this, a process runs out of connections before it gets faster.
pub(crate) const AT_ONCE: std::ops::RangeInclusive<usize> = 1..=10_000;

/// The longest contact that is sent with every request.
const MAX_CONTACT: usize = 200;

/// Says what is wrong with a contact: whoever is crawled must be able to use it, and it stands in a header.
pub(crate) fn check_contact(text: &str) -> Result<(), String> {
    if text.len() > MAX_CONTACT {
        return Err(format!("{} bytes are too many; a contact has at most {MAX_CONTACT}", text.len()));
    }
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"()<>\"\\".contains(&byte));
    let is_page = FetchUrl::parse(text).is_ok() && text.contains("://");
    if is_plain && (is_page || is_mail(text)) {
        return Ok(());
    }
    Err("not a web page such as https://www.example.org/crawler, nor an address for mail such as \
         me@example.org"
        .to_owned())
}

/// Whether a name that is sent has a web page or an address for mail in it.
fn has_contact(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["@", "http://", "https://"].iter().any(|sign| name.contains(sign))
}

fn is_mail(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else { return false };
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    let is_name = |c: u8| c.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&c);
    !name.is_empty() && name.bytes().all(is_name) && domain.split('.').all(is_label)
}

/// How pages are fetched.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FetchConfig {
    /// Where those who are crawled can learn more, or complain: a web page or an address for mail.
    pub(crate) contact: Option<String>,
    /// The name that is sent, instead of `Forager/VERSION`; the contact follows where the name has none.
    pub(crate) user_agent: Option<String>,
    /// How many fetches may be under way altogether.
    pub(crate) at_once: usize,
    /// Networks that may be connected to although they are not public.
    pub(crate) allow_addresses: Vec<Network>,
    /// Addresses of names that are not asked of a name server.
    pub(crate) resolve: BTreeMap<String, Vec<IpAddr>>,
    /// The name server [default: that of the system].
    pub(crate) nameserver: Option<SocketAddr>,
    /// Files with certificates of further authorities.
    pub(crate) authorities: Vec<PathBuf>,
    /// How long a connection may take.
    pub(crate) connect_timeout: Interval,
    /// How long an answer may take to begin.
    pub(crate) answer_timeout: Interval,
    /// How long a fetch may take.
    pub(crate) timeout: Interval,
    /// The most bytes of a page.
    pub(crate) max_bytes: u64,
}

impl Default for FetchConfig {
    fn default() -> Self {
        let limits = Limits::default();
        let interval = |duration: Duration| Interval::from_secs_f64(duration.as_secs_f64());
        Self {
            contact: None,
            user_agent: None,
            at_once: 64,
            allow_addresses: Vec::new(),
            resolve: BTreeMap::new(),
            nameserver: None,
            authorities: Vec::new(),
            connect_timeout: interval(limits.connect),
            answer_timeout: interval(limits.first_byte),
            timeout: interval(limits.whole),
            max_bytes: limits.body_bytes,
        }
    }
}

impl FetchConfig {
    /// The name that is sent with every request.
    pub(crate) fn name(&self) -> String {
        let name = self.user_agent.as_deref().unwrap_or(concat!("Forager/", env!("CARGO_PKG_VERSION")));
        match &self.contact {
            Some(contact) if !has_contact(name) => format!("{name} (+{contact})"),
            _ => name.to_owned(),
        }
    }

    /// Whether those who are crawled can learn by whom.
    pub(crate) fn has_contact(&self) -> bool {
        has_contact(&self.name())
    }

    /// The name by which robots.txt addresses us: the first word of the whole name.
    pub(crate) fn product_token(&self) -> String {
        product_token(&self.name()).to_ascii_lowercase()
    }

    /// The settings of the client.
    pub(crate) fn http(&self, allow_private: bool) -> anyhow::Result<HttpConfig> {
        let addresses =
            if allow_private { AddressPolicy::any() } else { AddressPolicy::allowing(&self.allow_addresses) };
        let addresses = if self.has_contact() { addresses } else { addresses.anonymous() };
        let mut extra_authorities = Vec::new();
        for path in &self.authorities {
            let failed = || format!("cannot read the authorities in {}", path.display());
            let pem = std::fs::read(path).with_context(failed)?;
            extra_authorities.extend(authorities_from_pem(&pem).with_context(failed)?);
        }
        let duration = |interval: Interval| Duration::from_secs_f64(interval.as_secs_f64());
        Ok(HttpConfig {
            user_agent: self.name(),
            from: self.contact.clone().filter(|contact| is_mail(contact)),
            limits: Limits {
                connect: duration(self.connect_timeout),
                first_byte: duration(self.answer_timeout),
                whole: duration(self.timeout),
                body_bytes: self.max_bytes,
                wire_bytes: self.max_bytes,
                ..Limits::default()
            },
            addresses,
            overrides: self.resolve.clone(),
            nameserver: self.nameserver,
            extra_authorities,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{FetchConfig, check_contact};

    #[test]
    fn a_contact_is_a_page_or_an_address_for_mail() {
        let long = format!("https://a.example/{}", "x".repeat(200));
        let table = [
            ("https://www.example.org/crawler?by=us", true),
            ("http://127.0.0.1:8080/", true),
            ("me@example.org", true),
            ("crawl+web@mail.example.co.uk", true),
            ("me@localhost", true),
            ("", false),
            ("me", false),
            ("example.org", false),
            ("@example.org", false),
            ("me@", false),
            ("me@example..org", false),
            ("a b@example.org", false),
            ("me@example.org\r\nX-Other: 1", false),
            ("https://example.org/\u{7}", false),
            ("https://example.org/ (me)", false),
            ("ftp://example.org/", false),
            ("https:example.org", false),
            ("m\u{fc}ller@example.org", false),
            (&long, false),
        ];
        for (text, is_good) in table {
            assert_eq!(check_contact(text).is_ok(), is_good, "{text:?}");
        }
    }

    #[test]
    fn a_name_of_ones_own_says_who_asks_or_the_contact_does() {
        let table = [
            (
                Some("Example/1.0 (+https://a.example/bot)"),
                None,
                "Example/1.0 (+https://a.example/bot)",
                true,
            ),
            (
                Some("Example/1.0 (+HTTP://a.example/)"),
                Some("b@b.example"),
                "Example/1.0 (+HTTP://a.example/)",
                true,
            ),
            (Some("Example/1.0 me@a.example"), None, "Example/1.0 me@a.example", true),
            (Some("Example/1.0"), None, "Example/1.0", false),
            (Some("Example/1.0 (a.example)"), None, "Example/1.0 (a.example)", false),
            (Some("Example/1.0"), Some("me@a.example"), "Example/1.0 (+me@a.example)", true),
            (
                None,
                Some("me@a.example"),
                concat!("Forager/", env!("CARGO_PKG_VERSION"), " (+me@a.example)"),
                true,
            ),
            (None, None, concat!("Forager/", env!("CARGO_PKG_VERSION")), false),
        ];
        for (user_agent, contact, name, has_contact) in table {
            let [user_agent, contact] = [user_agent, contact].map(|text| text.map(str::to_owned));
            let config = FetchConfig { contact, user_agent, ..FetchConfig::default() };
            assert_eq!((config.name().as_str(), config.has_contact()), (name, has_contact));
        }
    }
}
