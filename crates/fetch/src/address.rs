//! Which addresses may be connected to.
//!
//! A crawler follows links that strangers wrote. Without a rule, one of them leads it to the router,
//! the database or the metadata service next to the machine it runs on. So only addresses that the
//! whole Internet can reach are allowed, unless a configuration opens others; and the question is
//! asked of the address that is about to be connected to, whatever it was called before.
//!
//! Here too it is kept that nobody is asked who could not learn by whom: a crawl without a contact is for this
//! machine alone, wherever seeds, links, redirects and sitemaps lead.

mod kind;
mod network;

use std::net::IpAddr;
use std::sync::Arc;

pub use self::kind::Kind;
pub use self::network::{Network, NetworkError};

/// Decides whether an address may be connected to. By default only public ones may.
///
/// ```
/// # use forager_fetch::address::AddressPolicy;
/// let policy = AddressPolicy::default();
/// assert!(policy.check("93.184.215.14".parse()?).is_ok());
/// let refused = policy.check("127.0.0.1".parse()?).unwrap_err();
/// assert_eq!(refused.to_string(), "127.0.0.1 is a loopback address");
///
/// let policy = AddressPolicy::allowing(&["127.0.0.0/8".parse()?]);
/// assert!(policy.check("127.0.0.1".parse()?).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct AddressPolicy {
    rule: Rule,
    /// Whether of all that the rule allows only this machine may be connected to.
    is_anonymous: bool,
}

#[derive(Clone, Debug)]
enum Rule {
    Any,
    PublicAnd(Arc<[Network]>),
}

impl Default for Rule {
    fn default() -> Self {
        Self::PublicAnd(Arc::new([]))
    }
}

/// An address that may not be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The address that was asked for.
    pub address: IpAddr,
    /// The IPv4 address that it leads to, where it is an IPv6 address that carries one.
    pub inner: Option<IpAddr>,
    /// What kind of address that is.
    pub kind: Kind,
}

impl std::error::Error for Refused {}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.inner {
            Some(inner) => write!(f, "{} leads to {inner}, {}", self.address, self.kind),
            None => write!(f, "{} is {}", self.address, self.kind),
        }
    }
}

impl Refused {
    /// What would open the address.
    pub fn remedy(&self) -> &'static str {
        match self.kind {
            Kind::Stranger => "--contact, or `contact` of [fetch] in the configuration, tells them",
            _ => "`allow_addresses` of [fetch] in the configuration, or --allow-private, opens it",
        }
    }
}

impl AddressPolicy {
    /// Every address may be connected to.
    pub fn any() -> Self {
        Self { rule: Rule::Any, is_anonymous: false }
    }

    /// Public addresses may be connected to, and those in `networks`.
    pub fn allowing(networks: &[Network]) -> Self {
        Self { rule: Rule::PublicAnd(networks.into()), is_anonymous: false }
    }

    /// The same for somebody who does not say who asks: of all that is allowed only loopback.
    ///
    /// ```
    /// # use forager_fetch::address::AddressPolicy;
    /// let policy = AddressPolicy::any().anonymous();
    /// assert!(policy.check("127.0.0.1".parse()?).is_ok());
    /// assert!(policy.check("93.184.215.14".parse()?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { is_anonymous: true, ..self }
    }

    /// Says why `address` may not be connected to, if so.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        self.check_rule(address)?;
        // Of all spellings only the mapped one leads to this machine for certain, without a gateway on the way.
        if self.is_anonymous && !address.to_canonical().is_loopback() {
            return Err(Refused { address, inner: None, kind: Kind::Stranger });
        }
        Ok(())
    }

    /// An IPv6 address that carries an IPv4 one is judged by both: a gateway on the way would
    /// unpack the inner one and connect to it.
    fn check_rule(&self, address: IpAddr) -> Result<(), Refused> {
        let Rule::PublicAnd(allowed) = &self.rule else { return Ok(()) };
        let is_allowed = |address: &IpAddr| allowed.iter().any(|network| network.contains(*address));
        if is_allowed(&address) {
            return Ok(());
        }
        let carried = kind::carried(address);
        let inner = carried.iter().flatten().find_map(|inner| {
            let kind = kind::special(*inner).filter(|_| !is_allowed(inner))?;
            Some(Refused { address, inner: Some(*inner), kind })
        });
        if let Some(refused) = inner {
            return Err(refused);
        }
        // What is only another spelling of an allowed address is as good as that one.
        if carried.iter().flatten().any(is_allowed) {
            return Ok(());
        }
        kind::special(address).map_or(Ok(()), |kind| Err(Refused { address, inner: None, kind }))
    }
}
