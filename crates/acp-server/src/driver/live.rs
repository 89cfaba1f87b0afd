//! The running session of a thread.

use std::path::PathBuf;
use std::time::Duration;

use teamster_api::{RunHandle, ServiceError};
use teamster_core::Stopping;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::change::Mode;
use super::queue;
use crate::Setup;

/// The shortest time between two attempts to send a prompt during a turn that the agent began by itself.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Time limit for the end of a session.
pub(super) const END_LIMIT: Duration = Duration::from_secs(30);

/// A running session.
pub(super) struct Live {
    pub(super) run: RunHandle,
    /// The setup, with the settings of the last prompt.
    pub(super) setup: Setup,
    /// The mode, which changes between prompts too.
    pub(super) mode: Mode,
    /// The task that reads the log for the editor. It ends with the log.
    pub(super) follower: JoinHandle<()>,
    /// The folder that went along, to which the changes come back.
    pub(super) folder: Option<PathBuf>,
    /// It may wait for a machine of a fleet.
    pub(super) may_be_queued: bool,
}

impl Live {
    pub(super) fn is_over(&self) -> bool {
        self.follower.is_finished()
    }

    /// Returns whether it waits for a machine.
    pub(super) async fn is_queued(&mut self) -> bool {
        self.may_be_queued = self.may_be_queued && queue::is_queued(&self.run).await;
        self.may_be_queued
    }

    /// Waits for the end of a session whose folder went along. Not called again after it.
    pub(super) async fn ended_by_itself(live: Option<&mut Self>) {
        match live.filter(|live| live.folder.is_some()) {
            Some(live) => {
                let _ = (&mut live.follower).await;
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until a prompt can be sent again. Cancel-safe. Fails if it cannot be known whether a machine has the
    /// session.
    pub(super) async fn idle(live: Option<&RunHandle>) -> Result<(), ServiceError> {
        if let Some(run) = live {
            queue::until_taken(run).await?;
            // After an error, sending the prompt has it, too.
            let _ = tokio::join!(run.idle(), sleep(RETRY_INTERVAL));
        }
        Ok(())
    }

    /// Ends the session, and waits until its log was shown.
    pub(super) async fn end(&mut self) {
        let end = async {
            // Fails if it has ended already.
            let _ = self.run.cancel(Stopping::Graceful).await;
            let _ = (&mut self.follower).await;
        };
        // A service that cannot be reached delays nothing for long.
        let _ = timeout(END_LIMIT, end).await;
    }

    /// Ends the session. The editor does not need the rest of the log.
    pub(super) async fn end_unseen(&self) {
        self.follower.abort();
        let end = async {
            let _ = self.run.cancel(Stopping::Graceful).await;
            let _ = self.run.result().await;
        };
        let _ = timeout(END_LIMIT, end).await;
    }
}
