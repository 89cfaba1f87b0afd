//! Providers that support live sessions.

use std::sync::Arc;

use crate::provider::{Launch, OffersQuery, SessionProtocol};
use crate::{AgentError, CliProvider, SessionCapabilities, SessionOptions};

/// A [`CliProvider`] that supports live sessions.
pub trait SessionProvider: CliProvider {
    /// Returns the capabilities of its sessions.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// Returns the launch of a session's process. [`Launch::stdin`] may have the first input of the CLI; the engine
    /// keeps stdin open and writes the output of the protocol there.
    /// [`ExecuteParams::prompt`](crate::ExecuteParams::prompt) is empty.
    ///
    /// # Errors
    ///
    /// Fails if sessions do not support a parameter.
    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError>;

    /// Creates the protocol for one process.
    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol>;

    /// Returns whether the CLI itself opens the image files of a turn. By default the engine reads them first, so the
    /// protocol only sees [images in memory](crate::Image::in_memory).
    fn opens_image_files(&self) -> bool {
        false
    }

    /// Returns whether the CLI supports sessions only. Its runs are then sessions of one turn, and
    /// [`launch`](CliProvider::launch) is an error.
    fn only_sessions(&self) -> bool {
        false
    }

    /// Returns the process that is asked what a session with these options would offer. `None` if the CLI cannot be asked
    /// without a session: by default.
    ///
    /// # Errors
    ///
    /// Fails if sessions do not support a parameter.
    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        let _ = options;
        Ok(None)
    }
}

impl<P: SessionProvider + ?Sized> SessionProvider for Arc<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        (**self).session_capabilities()
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        (**self).launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        (**self).protocol(options)
    }

    fn opens_image_files(&self) -> bool {
        (**self).opens_image_files()
    }

    fn only_sessions(&self) -> bool {
        (**self).only_sessions()
    }

    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        (**self).offers_query(options)
    }
}
