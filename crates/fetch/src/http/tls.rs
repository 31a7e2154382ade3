//! Whom to trust, and what it means when that fails.

use std::sync::Arc;

use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::{ConfigError, TlsReason};

/// The certificates in a PEM file, for [`HttpConfig::extra_authorities`](super::HttpConfig).
///
/// A file without any is an error: it is the wrong file.
pub fn authorities_from_pem(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let unusable = |cause: String| ConfigError::Authority { cause };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| unusable(error.to_string()))?;
    if found.is_empty() {
        return Err(unusable("there is no certificate in it".to_owned()));
    }
    Ok(found)
}

/// Trusts the authorities that browsers trust, and `extra`.
pub(super) fn config(extra: Vec<CertificateDer<'static>>) -> Result<ClientConfig, ConfigError> {
    let unusable = |error: rustls::Error| ConfigError::Authority { cause: error.to_string() };
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in extra {
        roots.add(certificate).map_err(unusable)?;
    }
    // Named here, not taken from the process: another library in it may want another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(builder.map_err(unusable)?.with_root_certificates(roots).with_no_client_auth())
}

/// What an error of the encrypted connection means.
pub(super) fn reason(error: &rustls::Error) -> TlsReason {
    let rustls::Error::InvalidCertificate(certificate) = error else {
        return TlsReason::Other(error.to_string());
    };
    match certificate {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsReason::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => TlsReason::NotYetValid,
        CertificateError::UnknownIssuer => TlsReason::UnknownAuthority,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsReason::WrongName
        }
        CertificateError::Revoked => TlsReason::Revoked,
        // What whoever signs for himself often shows.
        CertificateError::Other(cause) if cause.to_string() == "CaUsedAsEndEntity" => {
            TlsReason::UnknownAuthority
        }
        CertificateError::Other(cause) => unacceptable(&cause.to_string()),
        other => unacceptable(&format!("{other:?}")),
    }
}

/// A reason of which the library has no more than a name, such as `BadSignature`.
fn unacceptable(name: &str) -> TlsReason {
    let mut words = String::from("its certificate cannot be accepted:");
    for letter in name.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    TlsReason::Other(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Named(&'static str);

    #[test]
    fn reasons_are_told_in_words() {
        let other = |name| CertificateError::Other(rustls::OtherError(Arc::new(Named(name))));
        let table = [
            (other("CaUsedAsEndEntity"), "its certificate is from an unknown authority"),
            (other("MalformedExtensions"), "its certificate cannot be accepted: malformed extensions"),
            (CertificateError::BadSignature, "its certificate cannot be accepted: bad signature"),
            (CertificateError::InvalidPurpose, "its certificate cannot be accepted: invalid purpose"),
            (CertificateError::Expired, "its certificate has expired"),
        ];
        for (error, want) in table {
            assert_eq!(reason(&rustls::Error::InvalidCertificate(error)).to_string(), want);
        }
    }
}
