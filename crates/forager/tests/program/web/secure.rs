//! An authority of our own, servers that it vouches for, and a configuration that trusts it.

use std::sync::Arc;

use forager_site::Site;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{CONTACT, Field};

/// The name of the servers.
pub(crate) const NAME: &str = "secure.test";

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;
pub(crate) type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

pub(crate) fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "our own authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

pub(crate) fn signed(authority: &Authority, params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

pub(crate) fn signed_by_itself(params: &CertificateParams) -> Identity {
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (certificate.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// What a server that has this certificate goes by.
pub(crate) fn server_config((certificate, key): Identity) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}

/// A configuration that finds the server by its name, and trusts this authority besides the public ones.
pub(crate) fn field(trusted: Option<&Authority>) -> Field {
    let field = Field::strict(Site::new());
    let authorities = trusted.map_or(String::new(), |authority| {
        std::fs::write(field.file("own.pem"), authority.pem()).unwrap();
        "authorities = [\"own.pem\"]\n".to_owned()
    });
    let text = format!(
        "[politeness]\ndelay = \"0s\"\nmax_delay = \"0s\"\nback_off = \"10ms\"\nmax_back_off = \"10ms\"\n\
         [retry]\nfailed = 1\nfirst = \"10ms\"\nlongest = \"10ms\"\n\
         [fetch]\ncontact = {CONTACT:?}\nallow_addresses = [\"127.0.0.0/8\"]\n\
         resolve = {{ \"{NAME}\" = [\"127.0.0.1\"] }}\n{authorities}"
    );
    std::fs::write(field.file("forager.toml"), text).unwrap();
    field
}
