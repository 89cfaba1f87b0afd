//! What a session would offer, as its agent reports before it begins.

use std::time::Duration;

use teamster_api::SessionSpec;
use teamster_core::{AgentError, ErrorCode, ErrorKind, Offers, SessionOptions};

use crate::{Host, params, turns};

/// Time limit of an answer. On a busy machine the start of a CLI took 18 s.
const LIMIT: Duration = Duration::from_mins(1);

impl Host {
    /// Returns what a session with this description would offer: its agent is started and asked, without a request to a
    /// model and without a session. `None` if the agent cannot be asked like that, as in a container, which would be started
    /// for it. Dropping the future ends the agent's process.
    ///
    /// # Errors
    ///
    /// Fails with the reason if the agent cannot be started with this description, or does not answer.
    pub async fn offers(&self, spec: &SessionSpec) -> Result<Option<Offers>, AgentError> {
        spec.check_one_machine()?;
        let info = self.agent(&spec.provider)?;
        let mut config = params::runtime_config(&spec.trusted, info)?;
        if config.container.is_some() {
            return Ok(None);
        }
        config.record_to = None;
        let mut params = params::of_session(spec)?;
        let accounts = turns::accounts(self, info, &spec.fallback, &spec.accounts)?;
        if let Some(account) = accounts.iter().find(|it| it.agent == info.id) {
            account.apply(&mut params);
        }
        let runtime = self.providers().session_runtime(info.id, config)?;
        let asked = runtime.offers(SessionOptions::new(params));
        let limited = tokio::time::timeout(LIMIT, asked).await;
        limited.unwrap_or_else(|_| {
            let message = format!("{} did not say what it offers within {LIMIT:?}", info.name);
            let error = AgentError::new(ErrorCode::WatchdogTimeout, ErrorKind::Timeout, message);
            Err(error)
        })
    }
}
