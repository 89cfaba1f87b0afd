//! Listeners and connections of the server.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::Server;
use crate::private_file::folder_of;
use crate::slots::{Slot, Slots};
use crate::transport::Transport;

/// The time limit for a request's head, including the wait for its first byte.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// The maximum size of a request's head, in bytes.
pub(crate) const LARGEST_HEAD: u32 = 64 << 10;
/// The grace period for requests in progress when the server ends.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// The pause after `accept` failed, for example without free file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An address to listen on: `ADDRESS:PORT`, or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// An address and a port; port 0 selects a free one.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("expected a path after `unix:`".to_owned()),
                path => Ok(Self::Unix(path.into())),
            };
        }
        let text = match text.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => text.to_owned(),
        };
        text.parse().map(Self::Tcp).map_err(|_| {
            "expected an address and a port, such as 127.0.0.1:7420, or unix:/path".to_owned()
        })
    }
}

impl ListenAddress {
    /// Returns `true` if only this machine can reach the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => ip.is_loopback(),
                IpAddr::V6(ip) => ip.is_loopback(),
            },
            Self::Unix(_) => true,
        }
    }
}

/// An error of [`Server::bind`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another process listens there.
    #[error("{address} is in use: choose another one with --listen, or stop what listens there")]
    InUse {
        /// The address or path.
        address: String,
    },
    /// The path is a file that is not a socket.
    #[error("{} exists and is not a socket: choose another path", path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// A system call failed.
    #[error("cannot listen on {address}: {error}")]
    Io {
        /// The address or path.
        address: String,
        /// The system's error.
        error: io::Error,
    },
}

/// A server with a bound listener.
#[derive(Debug)]
pub struct Bound {
    server: Server,
    listener: Listener,
}

#[derive(Debug)]
enum Listener {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Server {
    /// Binds a listener. The file of a Unix socket gets mode 0600.
    ///
    /// # Errors
    ///
    /// Fails if the address is in use, the path is a file that is not a socket, or a system call fails.
    pub async fn bind(&self, address: &ListenAddress) -> Result<Bound, ListenError> {
        let listener = match address {
            ListenAddress::Tcp(address) => {
                let failed = |error: io::Error| match error.kind() {
                    ErrorKind::AddrInUse => ListenError::InUse {
                        address: address.to_string(),
                    },
                    _ => ListenError::Io {
                        address: address.to_string(),
                        error,
                    },
                };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Listener::Tcp(listener, address)
            }
            ListenAddress::Unix(path) => Listener::Unix(bind_unix(path).await?, path.clone()),
        };
        Ok(Bound {
            server: self.clone(),
            listener,
        })
    }
}

async fn bind_unix(path: &Path) -> Result<UnixListener, ListenError> {
    let address = || path.display().to_string();
    let failed = |error| ListenError::Io {
        address: address(),
        error,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(ListenError::NoSocket {
                path: path.to_owned(),
            });
        }
        // The socket of a killed server refuses connections.
        Ok(_) => match UnixStream::connect(path).await {
            // A server that is stopped accepts no connection once its queue is full.
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                fs::remove_file(path).map_err(failed)?;
            }
            _ => return Err(ListenError::InUse { address: address() }),
        },
    }
    // Set the permissions before the socket gets its name, so that no other user can connect in between.
    let draft = tempfile::Builder::new()
        .prefix(".")
        .tempdir_in(folder_of(path))
        .map_err(failed)?;
    let hidden = draft.path().join("s");
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&hidden, path).map_err(failed)?;
    Ok(listener)
}

impl Bound {
    /// Returns the URL, such as `http://127.0.0.1:7420` or `unix:/path`.
    pub fn url(&self) -> String {
        match &self.listener {
            Listener::Tcp(_, address) => format!("http://{address}"),
            Listener::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Serves until [`Server::end`], then waits up to 5 s for requests in progress.
    pub async fn serve(self) {
        let Self { server, listener } = self;
        let callbacks = tokio::spawn(crate::callbacks::send_all(server.shared.callbacks.clone()));
        let shared = server.shared.clone();
        tokio::spawn(async move { shared.figures.keep_up().await });
        let tracker = TaskTracker::new();
        let slots = Slots::new(server.shared.config.max_connections);
        let ending = server.shared.ending.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                () = ending.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let Ok(stream) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            let slot = slots.enter();
            let server = server.clone();
            tracker.spawn(async move {
                match stream {
                    Stream::Tcp(stream, transport) => {
                        // Send entries without delay.
                        let _ = stream.set_nodelay(true);
                        connection(&server, stream, transport, slot).await;
                    }
                    Stream::Unix(stream) => {
                        connection(&server, stream, Transport::Unix, slot).await;
                    }
                }
            });
        }
        if let Listener::Unix(_, path) = &listener {
            // The next server replaces a socket file that could not be removed.
            let _ = fs::remove_file(path);
        }
        drop(listener);
        tracker.close();
        // Connections that are still open are dropped.
        let _ = timeout(GRACE, tracker.wait()).await;
        callbacks.abort();
        // Once it is dropped, another server delivers what is left.
        let _ = callbacks.await;
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream, Transport),
    Unix(UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener, address) => {
                let (stream, peer) = listener.accept().await?;
                let peer = peer.ip().to_canonical();
                // A machine reaches its own other addresses from the same one.
                let own = stream.local_addr().ok();
                let own = own.map(|own| own.ip().to_canonical());
                let transport = Transport::Tcp {
                    port: address.port(),
                    near: own.filter(|own| peer.is_loopback() || *own == peer),
                };
                Ok(Stream::Tcp(stream, transport))
            }
            Self::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// Serves the requests of one connection.
async fn connection(
    server: &Server,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    transport: Transport,
    slot: Arc<Slot>,
) {
    let taken = slot.taken();
    let router = TowerToHyperService::new(server.router.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(transport);
        request.extensions_mut().insert(slot.clone());
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(LARGEST_HEAD as usize);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Connection errors come from the client or the network.
    tokio::select! {
        _ = connection.as_mut() => {}
        // Closed at once, so that the client gets an error instead of a hang.
        () = taken.cancelled() => {}
        () = server.shared.ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixSocket;

    use super::*;

    #[tokio::test]
    async fn the_socket_of_a_server_that_accepts_no_connection_is_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let _stopped = socket.listen(1).unwrap();
        let mut queue = Vec::new();
        while let Ok(connection) = UnixStream::connect(&path).await {
            queue.push(connection);
        }
        let error = timeout(GRACE, bind_unix(&path)).await.unwrap().unwrap_err();
        assert!(matches!(error, ListenError::InUse { .. }), "{error}");
        assert!(path.exists());
    }
}
