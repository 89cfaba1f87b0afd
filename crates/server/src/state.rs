//! State that all requests share.

use std::sync::Arc;

use teamster_api::{MachineService, RunHandle, RunInfo, RunService};
use teamster_core::sync::ByName;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::feed::AgentsFeed;
use crate::figures::Figures;
use crate::keys::Keys;
use crate::web_push::WebPush;
use crate::{ApiError, ServerConfig};

/// State shared by all requests.
pub(crate) struct Shared {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) keys: Arc<Keys>,
    pub(crate) runs: Arc<dyn RunService>,
    pub(crate) machine: Arc<dyn MachineService>,
    /// Cancelled when the server ends; streams then end.
    pub(crate) ending: CancellationToken,
    /// Serializes starts that have the same id or `Idempotency-Key`.
    pub(crate) starts: ByName<Mutex<()>>,
    pub(crate) agents: Arc<AgentsFeed>,
    pub(crate) figures: Figures,
    pub(crate) callbacks: Arc<Callbacks>,
    /// The browsers; `None` if the server notifies none.
    pub(crate) web_push: Option<Arc<WebPush>>,
}

impl Shared {
    /// Returns the description of the run with this id or unique id prefix.
    pub(crate) async fn find(&self, id: &str) -> Result<RunInfo, ApiError> {
        Ok(self.runs.resolve(id).await?)
    }

    /// Returns a handle to the run with exactly this id.
    pub(crate) fn run(&self, id: &str) -> RunHandle {
        RunHandle::new(self.runs.clone(), id)
    }
}
