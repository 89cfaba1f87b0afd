//! Where the server listens, and its connections.

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
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::Server;

/// How long the head of a request may take, the wait for it included.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// The largest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 << 10;
/// How long requests may take to finish when the server ends.
const GRACE: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Where a connection came in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Door {
    /// Over TCP.
    Tcp {
        /// Our port.
        port: u16,
    },
    /// Over a Unix socket: its permissions have decided who it is.
    Unix,
}

/// Where to listen: `ADDRESS:PORT`, or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// An address and a port; port 0 is any free one.
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
    /// Whether only this machine can reach it.
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

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Another process listens there.
    #[error("{address} is in use: choose another one with --listen, or stop what listens there")]
    InUse {
        /// The address or path.
        address: String,
    },
    /// A file that is no socket has this path.
    #[error("{} exists and is no socket: choose another path", path.display())]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// The system refused it.
    #[error("cannot listen on {address}: {source}")]
    Io {
        /// The address or path.
        address: String,
        /// Why.
        source: io::Error,
    },
}

/// A server that listens.
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
    /// Listens there. The file of a Unix socket is for its owner only.
    pub async fn bind(&self, address: &ListenAddress) -> Result<Bound, ListenError> {
        let listener = match address {
            ListenAddress::Tcp(address) => {
                let failed = |source: io::Error| match source.kind() {
                    ErrorKind::AddrInUse => ListenError::InUse {
                        address: address.to_string(),
                    },
                    _ => ListenError::Io {
                        address: address.to_string(),
                        source,
                    },
                };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let address = listener.local_addr().map_err(failed)?;
                Listener::Tcp(listener, address)
            }
            ListenAddress::Unix(path) => Listener::Unix(bind_unix(path)?, path.clone()),
        };
        Ok(Bound {
            server: self.clone(),
            listener,
        })
    }
}

fn bind_unix(path: &Path) -> Result<UnixListener, ListenError> {
    let address = || path.display().to_string();
    let failed = |source| ListenError::Io {
        address: address(),
        source,
    };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(ListenError::NoSocket {
                path: path.to_owned(),
            });
        }
        // What a server that was killed has left refuses connections.
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => return Err(ListenError::InUse { address: address() }),
            Err(_) => fs::remove_file(path).map_err(failed)?,
        },
    }
    // It gets its name when it is private: in between, others could connect.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let draft = tempfile::Builder::new()
        .prefix(".")
        .tempdir_in(folder)
        .map_err(failed)?;
    let hidden = draft.path().join("s");
    let listener = UnixListener::bind(&hidden).map_err(failed)?;
    fs::set_permissions(&hidden, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&hidden, path).map_err(failed)?;
    Ok(listener)
}

impl Bound {
    /// Where it listens: `http://127.0.0.1:7420`, or `unix:/path`.
    pub fn url(&self) -> String {
        match &self.listener {
            Listener::Tcp(_, address) => format!("http://{address}"),
            Listener::Unix(_, path) => format!("unix:{}", path.display()),
        }
    }

    /// Serves until [`Server::end`], and then as long as requests take to finish, at most 5 s.
    pub async fn serve(self) {
        let Self { server, listener } = self;
        let callbacks = tokio::spawn(crate::callbacks::send_all(server.shared.clone()));
        let tracker = TaskTracker::new();
        let free = Arc::new(Semaphore::new(server.shared.config.max_connections));
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
            let Ok(permit) = free.clone().try_acquire_owned() else {
                // Closed at once: a client that waits would not know for what.
                continue;
            };
            let server = server.clone();
            tracker.spawn(async move {
                let _permit = permit;
                match stream {
                    Stream::Tcp(stream, port) => {
                        // Entries are to be seen at once.
                        let _ = stream.set_nodelay(true);
                        connection(&server, stream, Door::Tcp { port }).await;
                    }
                    Stream::Unix(stream) => connection(&server, stream, Door::Unix).await,
                }
            });
        }
        if let Listener::Unix(_, path) = &listener {
            // One that stays refuses connections, which the next server notices.
            let _ = fs::remove_file(path);
        }
        drop(listener);
        tracker.close();
        // What is not finished by then is cut off.
        let _ = timeout(GRACE, tracker.wait()).await;
        callbacks.abort();
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream, u16),
    Unix(tokio::net::UnixStream),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener, address) => {
                let (stream, _) = listener.accept().await?;
                Ok(Stream::Tcp(stream, address.port()))
            }
            Self::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// Serves the requests of one connection.
async fn connection(
    server: &Server,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    door: Door,
) {
    let router = TowerToHyperService::new(server.router.clone());
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(door);
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(LARGEST_HEAD);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Errors are those of the client, or of the network.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = server.shared.ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
