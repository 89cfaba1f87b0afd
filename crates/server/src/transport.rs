//! Transport of a request.

use std::net::IpAddr;

/// The transport of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transport {
    /// Over TCP.
    Tcp {
        /// The server's port.
        port: u16,
        /// The server's address, if the other end is on this machine, be it the client or a proxy.
        near: Option<IpAddr>,
    },
    /// Over a Unix socket, whose file permissions authorize the caller.
    Unix,
    /// Over a stream that belongs to the user, such as the standard streams of a process.
    Stream,
}

impl Transport {
    /// Returns the name of who is at the other end, if only the user can be.
    pub(crate) fn user(self) -> Option<&'static str> {
        match self {
            Self::Tcp { .. } => None,
            Self::Unix => Some("HTTP, Unix socket"),
            Self::Stream => Some("HTTP, SSH"),
        }
    }
}
