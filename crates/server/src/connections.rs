//! Connections: not too many, and none that stays silent.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::stream::{self, Stream};
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::anybody::Room;
use crate::limits::{FIRST_WORD, LAST_WORD};
use crate::metrics::Metrics;
use crate::wire::Wire;

/// How many bytes HTTP/2 begins with. Where the connection is encrypted, its handshake comes before them, and counts for none.
const PREFACE: usize = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len();

/// How long to wait when no connection can be had, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Connections that come in, while there is room for them.
pub(crate) struct Door {
    listener: TcpListener,
    room: Arc<Semaphore>,
}

impl Door {
    /// One that lets in so many at a time.
    pub(crate) fn new(listener: TcpListener, most: usize) -> Self {
        Self { listener, room: Arc::new(Semaphore::new(most)) }
    }

    /// The next one, with its place. There is never an error: a connection that cannot be had is no reason to end.
    pub(crate) async fn next(&self) -> (TcpStream, Place) {
        let place = self.room.clone().acquire_owned().await;
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return (stream, Place { _permit: place.ok() }),
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Where it is.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The place of a connection among those that may be there, which is free again without it.
pub(crate) struct Place {
    /// Always there, as nobody closes what it is of.
    _permit: Option<OwnedSemaphorePermit>,
}

/// The connections that come in. All of them break when they are `cut`.
pub(crate) fn accept(
    door: Door,
    encrypting: Option<TlsAcceptor>,
    metrics: Arc<Metrics>,
    cut: CancellationToken,
) -> impl Stream<Item = io::Result<Connection>> {
    stream::unfold((door, encrypting, metrics, cut), |this| async move {
        let (door, encrypting, metrics, cut) = this;
        let (stream, place) = door.next().await;
        // Acknowledgements are small and wanted at once; where it cannot be set they come a little later.
        let _ = stream.set_nodelay(true);
        let open = metrics.connections.clone();
        let wire = Wire::new(stream, encrypting.as_ref());
        let connection = Connection::new(wire, FIRST_WORD, place, open, &cut);
        Some((Ok(connection), (door, encrypting, metrics, cut)))
    })
}

/// A connection, which counts as long as it is there.
pub(crate) struct Connection {
    wire: Wire,
    /// Runs until the first words have come.
    patience: Option<Pin<Box<Sleep>>>,
    /// How many bytes of them are still to come.
    to_hear: usize,
    /// Runs when all was said, until the client is not heard any more.
    leave: Option<Pin<Box<Sleep>>>,
    /// What its calls know of it.
    client: Client,
    /// Comes when it is to break.
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    open: Gauge,
    _place: Place,
}

/// What calls know of their connection.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) cutter: Cutter,
    pub(crate) room: Room,
}

/// Breaks a connection, with all its calls, whoever still reads or writes.
#[derive(Clone, Debug)]
pub(crate) struct Cutter(CancellationToken);

impl Cutter {
    /// One for a connection that breaks with all others too.
    pub(crate) fn of(all: &CancellationToken) -> Self {
        Self(all.child_token())
    }

    pub(crate) fn cut(&self) {
        self.0.cancel();
    }

    #[cfg(test)]
    pub(crate) fn has_cut(&self) -> bool {
        self.0.is_cancelled()
    }
}

impl Connection {
    fn new(wire: Wire, patience: Duration, place: Place, open: Gauge, all: &CancellationToken) -> Self {
        open.inc();
        let patience = Some(Box::pin(sleep(patience)));
        let cutter = Cutter::of(all);
        let cut = Box::pin(cutter.0.clone().cancelled_owned());
        let client = Client { cutter, room: Room::new() };
        Self { wire, patience, to_hear: PREFACE, leave: None, client, cut, open, _place: place }
    }

    /// One that is given up after a while, whatever was said on it: for who asks once, and reads the answer.
    pub(crate) fn brief(stream: TcpStream, place: Place) -> Self {
        let (wire, all) = (Wire::new(stream, None), CancellationToken::new());
        let mut connection = Self::new(wire, FIRST_WORD, place, Gauge::default(), &all);
        connection.to_hear = usize::MAX;
        connection
    }

    /// Bytes have come. Who has said so many is looked after by the transport: it asks now and then whether anybody is
    /// there.
    fn heard(&mut self, bytes: usize) {
        self.to_hear = self.to_hear.saturating_sub(bytes);
        if self.to_hear == 0 {
            self.patience = None;
        }
    }

    /// Where the client has to do something first: whether it is not waited for any more.
    fn poll_given_up<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if let Some(patience) = &mut self.patience
            && patience.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.cut.as_mut().poll(cx).map(|()| Err(io::ErrorKind::ConnectionAborted.into()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl Connected for Connection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        self.client.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.wire).poll_read(cx, buffer) {
            self.heard(buffer.filled().len() - before);
            return Poll::Ready(read);
        }
        self.poll_given_up(cx)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(cx, bytes);
        if written.is_pending() { self.poll_given_up(cx) } else { written }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(cx, bytes);
        if written.is_pending() { self.poll_given_up(cx) } else { written }
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    /// Ends what is said here, and hears the client out for a moment: a connection that is closed while something of it
    /// is unread takes with it what the client has not read yet, and that may be acknowledgements.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.wire).poll_shutdown(cx))?;
        let leave = self.leave.get_or_insert_with(|| Box::pin(sleep(LAST_WORD)));
        if leave.as_mut().poll(cx).is_ready() || self.cut.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; 16 << 10];
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.wire).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn pair(patience: Duration) -> (TcpStream, Connection, Gauge) {
        pair_until(patience, CancellationToken::new()).await
    }

    async fn pair_until(patience: Duration, cut: CancellationToken) -> (TcpStream, Connection, Gauge) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, place) = Door::new(listener, 1).next().await;
        let open = Gauge::default();
        (client, Connection::new(Wire::new(stream, None), patience, place, open.clone(), &cut), open)
    }

    #[tokio::test]
    async fn one_that_says_nothing_is_given_up() {
        let (_client, mut connection, open) = pair(Duration::from_millis(20)).await;
        assert_eq!(open.get(), 1);
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(connection);
        assert_eq!(open.get(), 0);
    }

    #[tokio::test]
    async fn one_that_has_spoken_may_be_silent() {
        let cases =
            [("one byte", 1, false), ("all but one", PREFACE - 1, false), ("all of it", PREFACE, true)];
        for (name, bytes, want) in cases {
            let (mut client, mut connection, _) = pair(Duration::from_millis(50)).await;
            client.write_all(&vec![7; bytes]).await.unwrap();
            connection.read_exact(&mut vec![0; bytes]).await.unwrap();
            let silent = tokio::time::timeout(Duration::from_millis(300), connection.read_u8()).await;
            assert_eq!(silent.is_err(), want, "{name}: it waits");
        }
    }

    #[tokio::test]
    async fn what_was_said_last_is_heard_though_the_client_goes_on_talking() {
        let (mut client, mut connection, _) = pair(Duration::from_mins(1)).await;
        client.write_all(&vec![7; 100_000]).await.unwrap();
        connection.write_all(b"the end").await.unwrap();
        let server = tokio::spawn(async move {
            connection.shutdown().await.unwrap();
        });
        client.write_all(&vec![7; 100_000]).await.unwrap();
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"the end");
        drop(client);
        server.await.unwrap();
    }

    #[tokio::test]
    async fn one_that_is_cut_breaks_while_it_is_read() {
        let cut = CancellationToken::new();
        let (mut client, mut connection, _) = pair_until(Duration::from_mins(1), cut.clone()).await;
        client.write_u8(7).await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), 7);
        let (read, ()) = tokio::join!(connection.read_u8(), async { cut.cancel() });
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    }
    #[tokio::test]
    async fn one_is_cut_and_the_others_stay() {
        let all = CancellationToken::new();
        let (_client, mut one, _) = pair_until(Duration::from_mins(1), all.clone()).await;
        let (mut client, mut other, _) = pair_until(Duration::from_mins(1), all).await;
        one.connect_info().cutter.cut();
        assert_eq!(one.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        client.write_u8(7).await.unwrap();
        assert_eq!(other.read_u8().await.unwrap(), 7);
    }

    #[tokio::test]
    async fn the_next_one_waits_for_a_place() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door::new(listener, 1);
        let _clients =
            [TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap()];
        let (_, place) = door.next().await;
        assert!(tokio::time::timeout(Duration::from_millis(100), door.next()).await.is_err());
        drop(place);
        door.next().await;
    }
}
