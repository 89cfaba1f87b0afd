//! A server for one client on a byte stream, such as the standard streams of a process.

use std::io;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use teamster_api::StdioGreeting;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::Server;
use crate::listen::{GRACE, LARGEST_HEAD};
use crate::transport::Transport;

/// The time without data after which a sign of life is requested of the client.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit of that sign. A client that is gone without a word does not keep its server.
const PING_LIMIT: Duration = Duration::from_mins(1);
/// The bytes of one request that are on their way at most.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same of all requests: so large that none holds up the others.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

impl Server {
    /// Serves the client at the other end of a stream, with all scopes and without a token, until the stream ends or
    /// [`Server::end`]: a greeting ([`StdioGreeting`]), then HTTP/2.
    ///
    /// Only for a stream whose other end belongs to the user whose runs these are.
    ///
    /// # Errors
    ///
    /// Fails if the greeting cannot be written.
    pub async fn serve_stream(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let greeting = format!("{}\n", StdioGreeting::own());
        stream.write_all(greeting.as_bytes()).await?;
        stream.flush().await?;
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(Transport::Stream);
            router.call(request)
        });
        let streams = u32::try_from(self.shared.config.max_connections).unwrap_or(u32::MAX);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_LIMIT)
            .max_concurrent_streams(streams)
            .max_header_list_size(LARGEST_HEAD)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        // Connection errors come from the client or the network.
        tokio::select! {
            _ = connection.as_mut() => {}
            () = self.shared.ending.cancelled() => {
                connection.as_mut().graceful_shutdown();
                let _ = timeout(GRACE, connection).await;
            }
        }
        Ok(())
    }
}
