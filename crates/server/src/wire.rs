//! The bytes of a connection: as they are, or encrypted.
//!
//! The handshake is a part of reading and writing, so that whoever counts what a client says, and how long it takes to
//! say it, need not know whether it is encrypted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use crate::serve::{Error, Tls};

/// What encrypts connections, with a certificate and its key.
pub(crate) fn encrypting(tls: &Tls) -> Result<TlsAcceptor, Error> {
    let unreadable = |cause: rustls_pki_types::pem::Error| Error::Tls(Box::new(cause));
    let unfit = |cause: rustls::Error| Error::Tls(Box::new(cause));
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&tls.certificate).collect();
    let key = PrivateKeyDer::from_pem_slice(&tls.key).map_err(unreadable)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unfit)?
        .with_no_client_auth()
        .with_single_cert(chain.map_err(unreadable)?, key)
        .map_err(unfit)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The bytes of a connection.
pub(crate) enum Wire {
    Plain(TcpStream),
    /// Until the handshake is through.
    Greeting(Box<Accept<TcpStream>>),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, encrypting: Option<&TlsAcceptor>) -> Self {
        match encrypting {
            None => Self::Plain(stream),
            Some(acceptor) => Self::Greeting(Box::new(acceptor.accept(stream))),
        }
    }

    /// Takes the handshake as far as it goes.
    fn poll_greeted(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Self::Greeting(handshake) = self {
            let stream = ready!(Pin::new(&mut **handshake).poll(cx))?;
            *self = Self::Encrypted(Box::new(stream));
        }
        Poll::Ready(Ok(()))
    }
}

/// What is to be done with whichever stream there is; `$early` while there is none yet.
macro_rules! through {
    ($wire:expr, $stream:ident => $done:expr, $early:expr) => {
        match $wire {
            Wire::Plain(stream) => {
                let $stream = Pin::new(stream);
                $done
            }
            Wire::Encrypted(stream) => {
                let $stream = Pin::new(&mut **stream);
                $done
            }
            Wire::Greeting(_) => $early,
        }
    };
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_greeted(cx))?;
        through!(&mut *self, stream => stream.poll_read(cx, buffer), Poll::Pending)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeted(cx))?;
        through!(&mut *self, stream => stream.poll_write(cx, bytes), Poll::Pending)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_greeted(cx))?;
        through!(&mut *self, stream => stream.poll_write_vectored(cx, bytes), Poll::Pending)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Greeting(_) | Self::Encrypted(_) => true, // as all that encrypts
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Before the handshake is through there is nothing to flush.
        through!(&mut *self, stream => stream.poll_flush(cx), Poll::Ready(Ok(())))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nor is anybody there to say goodbye to.
        let nobody = || Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        through!(&mut *self, stream => stream.poll_shutdown(cx), nobody())
    }
}
