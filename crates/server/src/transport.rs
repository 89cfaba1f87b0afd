//! How a request came.

/// The transport of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport {
    /// Over TCP.
    Tcp {
        /// The server's port.
        port: u16,
    },
    /// Over a Unix socket, whose file permissions authorize the caller.
    Unix,
}
