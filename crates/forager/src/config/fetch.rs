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
    /// The whole name that is sent, instead of `Forager/VERSION (+CONTACT)`.
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
        let own = concat!("Forager/", env!("CARGO_PKG_VERSION"));
        match (&self.user_agent, &self.contact) {
            (Some(name), _) => name.clone(),
            (None, Some(contact)) => format!("{own} (+{contact})"),
            (None, None) => own.to_owned(),
        }
    }

    /// The name by which robots.txt addresses us: the first word of the whole name.
    pub(crate) fn product_token(&self) -> String {
        let is_part = |letter: &char| letter.is_ascii_alphabetic() || matches!(letter, '_' | '-');
        self.name().chars().take_while(is_part).collect::<String>().to_ascii_lowercase()
    }

    /// The settings of the client.
    pub(crate) fn http(&self, allow_private: bool) -> anyhow::Result<HttpConfig> {
        let addresses =
            if allow_private { AddressPolicy::any() } else { AddressPolicy::allowing(&self.allow_addresses) };
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
    use super::check_contact;

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
}
