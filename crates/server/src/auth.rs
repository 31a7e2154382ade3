//! Who may call: whoever shows the token, where there is one.

use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Lets through the calls that show a token; all, if there is none.
#[derive(Clone)]
pub(crate) struct Auth {
    /// Its hash, so that comparing takes as long whatever is shown, and however long that is.
    token: Option<blake3::Hash>,
}

impl Auth {
    pub(crate) fn new(token: Option<&str>) -> Self {
        Self { token: token.map(|token| blake3::hash(token.as_bytes())) }
    }

    fn allows(&self, header: Option<&[u8]>) -> bool {
        let Some(token) = self.token else { return true };
        let shown = header.and_then(bearer).unwrap_or_default();
        // Hashes are compared in constant time.
        blake3::hash(shown) == token
    }
}

/// The token of a header `authorization: Bearer TOKEN`.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked("bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token)
}

impl Interceptor for Auth {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let header = request.metadata().get("authorization").map(MetadataValue::as_bytes);
        if self.allows(header) {
            return Ok(request);
        }
        Err(Status::unauthenticated("show the token of this server: authorization: Bearer TOKEN"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let cases: [(&str, Option<&str>, Option<&str>, bool); 9] = [
            ("no token is asked for", None, None, true),
            ("none asked for, one shown", None, Some("Bearer x"), true),
            ("the token", Some("secret"), Some("Bearer secret"), true),
            ("the scheme in small letters", Some("secret"), Some("bearer secret"), true),
            ("nothing shown", Some("secret"), None, false),
            ("another", Some("secret"), Some("Bearer other"), false),
            ("its beginning", Some("secret"), Some("Bearer secre"), false),
            ("more than it", Some("secret"), Some("Bearer secrets"), false),
            ("another scheme", Some("secret"), Some("Basic secret"), false),
        ];
        for (name, token, header, want) in cases {
            assert_eq!(Auth::new(token).allows(header.map(str::as_bytes)), want, "{name}");
        }
    }
}
