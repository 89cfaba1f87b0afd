//! The driver of the state machine: an editor on one side, a service of sessions on the other.

mod change;
mod connection;
mod errors;
mod folders;
mod follow;
mod lines;
mod live;
mod open;
mod own;
mod past;
mod queue;
mod repeat;
mod thread;

use std::sync::Arc;

use teamster_api::{ProblemCode, RunService, ServiceError, SessionSpec};
use teamster_core::Offers;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::Catalog;
pub use folders::{FolderTransfer, SentFolder};
pub use own::{CliFiles, OwnMessage, OwnSession};

/// A server of sessions to an editor.
///
/// Each thread of the editor is a session of the service, which starts with the first prompt. The editor is shown the
/// session's log, so other clients of the service can take part. A thread whose agent needs another process has several
/// sessions: all but the first name that one ([`continues`](SessionSpec::continues)).
///
/// Needs a Tokio runtime.
#[derive(Clone)]
pub struct EditorServer {
    shared: Arc<Shared>,
}

/// State shared by all threads of the editor.
#[derive(Clone)]
struct Shared {
    runs: Arc<dyn RunService>,
    catalog: Catalog,
    /// The session of each thread, without what the editor chooses.
    session: SessionSpec,
    /// The reason why the service takes none of the editor's folders: it is one of another machine.
    refused_folders: Option<String>,
    /// The agents' files are on this machine.
    has_files: bool,
    /// The editor's folder goes along to the service's machine by this.
    folders: Option<Arc<dyn FolderTransfer>>,
    /// Reads what the agents' CLIs have on disk.
    own: Option<Arc<dyn CliFiles>>,
    /// Asks the agents what their sessions would offer.
    offers: Option<Arc<dyn AskOffers>>,
    /// Removes the login of an agent.
    log_out: Option<Arc<dyn LogOut>>,
    hint: fn(ProblemCode) -> Option<&'static str>,
}

/// Asks agents what their sessions would offer, before there is a session.
///
/// [`EditorServer`] starts no program: the program around it gives it this.
#[async_trait::async_trait]
pub trait AskOffers: Send + Sync {
    /// Returns what this session would offer; `None` if its agent cannot be asked, or does not answer. The future is dropped
    /// if the answer is not needed any more.
    async fn ask(&self, session: SessionSpec) -> Option<Offers>;
}

/// Removes logins of agents.
///
/// [`EditorServer`] starts no program: the program around it gives it this.
#[async_trait::async_trait]
pub trait LogOut: Send + Sync {
    /// Removes the login of the agent with this id.
    ///
    /// # Errors
    ///
    /// Fails with the reason.
    async fn log_out(&self, agent: &str) -> Result<(), ServiceError>;
}

/// Reason for the end of an editor's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disconnect {
    /// The editor has ended its output.
    EndOfInput,
    /// The editor reads no more.
    OutputClosed,
    /// The caller has stopped the server.
    Stopped,
}

teamster_core::debug_fields!(EditorServer |it| { session: it.shared.session });

impl Shared {
    /// Returns the agent of all threads, unless the editor chooses it.
    fn agent(&self) -> Option<&str> {
        Some(&*self.session.provider).filter(|agent| !agent.is_empty())
    }
}

impl EditorServer {
    /// Creates a server whose sessions `runs` carries out.
    ///
    /// `session` has what the editor does not choose. Without an agent in it (`provider` is empty), the editor chooses one
    /// of the `catalog`.
    pub fn new(runs: Arc<dyn RunService>, catalog: Catalog, session: SessionSpec) -> Self {
        let shared = Shared {
            runs,
            catalog,
            session,
            refused_folders: None,
            has_files: true,
            folders: None,
            own: None,
            offers: None,
            log_out: None,
            hint: |_| None,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Lets the service be one of another machine, which does not have the editor's folders; `why` is the reason with the
    /// next step, for the editor's user. MCP servers that it refuses are left out. Files that the agents change are not
    /// read.
    #[must_use]
    pub fn of_other_machine(mut self, why: impl Into<String>) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.refused_folders = Some(why.into());
        shared.has_files = false;
        shared.catalog.take_no_folders();
        self
    }

    /// Sends the editor's folder along, instead of naming it to the service: the sessions of a thread work in what comes of it,
    /// one after the other, and what the agent has changed comes back at the end of each that is not followed at once.
    #[must_use]
    pub fn with_folders(mut self, folders: Arc<dyn FolderTransfer>) -> Self {
        Arc::make_mut(&mut self.shared).folders = Some(folders);
        self
    }

    /// Lists the sessions that the agents' CLIs have on disk beside the threads, and continues them. Completes the commands on
    /// disk until a CLI has reported its own.
    #[must_use]
    pub fn with_cli_files(mut self, own: Arc<dyn CliFiles>) -> Self {
        Arc::make_mut(&mut self.shared).own = Some(own);
        self
    }

    /// Completes the editor's lists of commands and models before the first prompt of a thread, by what the agent reports.
    #[must_use]
    pub fn with_offers(mut self, offers: Arc<dyn AskOffers>) -> Self {
        Arc::make_mut(&mut self.shared).offers = Some(offers);
        self
    }

    /// Lets the editor remove the login of the agent that all threads have.
    #[must_use]
    pub fn with_log_out(mut self, log_out: Arc<dyn LogOut>) -> Self {
        let shared = Arc::make_mut(&mut self.shared);
        shared.log_out = Some(log_out);
        for agent in &mut shared.catalog.agents {
            agent.logs_out = true;
        }
        self
    }

    /// Sets the function that returns the next step after an error of the service, which follows the error's text.
    #[must_use]
    pub fn with_hints(mut self, hint: fn(ProblemCode) -> Option<&'static str>) -> Self {
        Arc::make_mut(&mut self.shared).hint = hint;
        self
    }

    /// Serves an editor until it disconnects or `stop` resolves. Then ends its sessions and waits for their ends, at most
    /// 30 s, and for what comes back of [folders](Self::with_folders), at most 2 minutes.
    pub async fn serve<R, W>(
        &self,
        reader: R,
        writer: W,
        stop: impl Future<Output = ()>,
    ) -> Disconnect
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        connection::serve(self.shared.clone(), reader, writer, stop).await
    }
}
