//! Sessions: turns, and commands to the turn in progress.

use std::time::Duration;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use teamster_api::{Images, ProblemCode, RunView};
use teamster_core::{Image, PermissionMode, Stopping};
use tokio::time::sleep;

use crate::Client;
use crate::call::Call;
use crate::error::ClientError;

/// The pause after a prompt that waited in vain.
const PAUSE: Duration = Duration::from_millis(100);

/// A turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StartedTurn {
    /// The turn's id: that of the session, a dot and a number.
    pub run_id: String,
    /// The number of the log's entry with the prompt. The turn's entries follow it, up to the `done` with its id.
    pub seq: u64,
    /// The turn was begun by an earlier prompt with the same key.
    #[serde(skip)]
    pub known: bool,
}

/// The body that starts a turn.
#[derive(Serialize)]
struct TurnBody<'a> {
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Images>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    queue: bool,
}

/// The body that adds text to the turn in progress.
#[derive(Serialize)]
struct Message<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

/// Settings of a session to change from its next turn on, for [`Client::change`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionChange {
    /// The model, by the CLI's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionMode>,
}

impl SessionChange {
    /// Changes the model.
    pub fn model(model: impl Into<String>) -> Self {
        Self {
            model: Some(model.into()),
            ..Self::default()
        }
    }

    /// Changes the permission mode.
    pub fn permission(mode: PermissionMode) -> Self {
        Self {
            permission: Some(mode),
            ..Self::default()
        }
    }
}

impl Client {
    /// Sends a prompt to a session, which starts a turn. `from` is the name of the sender, for the log; by default
    /// that of the token.
    ///
    /// With a `key`, any text of your own for this prompt, the request is repeated if the connection breaks, and the
    /// turn still starts once. Without one, the request is sent once.
    ///
    /// # Errors
    ///
    /// Fails with the code `SESSION_BUSY` during another turn, or if the server refuses the prompt or cannot be reached.
    pub async fn say(
        &self,
        id: &str,
        prompt: &str,
        from: Option<&str>,
        key: Option<&str>,
    ) -> Result<StartedTurn, ClientError> {
        self.say_with(id, prompt, Vec::new(), from, key).await
    }

    /// Sends a prompt with images, as [`say`](Self::say) does without.
    ///
    /// # Errors
    ///
    /// Fails as [`say`](Self::say) does, and if an image has no bytes in memory.
    pub async fn say_with(
        &self,
        id: &str,
        prompt: &str,
        images: Vec<Image>,
        from: Option<&str>,
        key: Option<&str>,
    ) -> Result<StartedTurn, ClientError> {
        let images = (!images.is_empty()).then_some(Images(images));
        let body = TurnBody {
            prompt,
            images,
            from,
            queue: false,
        };
        self.turn(id, &body, key).await
    }

    /// Sends a prompt to a session as soon as no turn is in progress, which may take as long as that turn. Of several
    /// prompts that wait, any may be the next. The rest is as for [`say`](Self::say). If the future is dropped, a prompt
    /// that waits is not sent.
    pub async fn queue(
        &self,
        id: &str,
        prompt: &str,
        from: Option<&str>,
        key: Option<&str>,
    ) -> Result<StartedTurn, ClientError> {
        let body = TurnBody {
            prompt,
            images: None,
            from,
            queue: true,
        };
        loop {
            match self.turn(id, &body, key).await {
                Err(error) if error.code == Some(ProblemCode::SessionBusy) => {
                    // The server has waited already, unless it is about to end.
                    sleep(error.retry_after.unwrap_or(PAUSE)).await;
                }
                turn => return turn,
            }
        }
    }

    async fn turn(
        &self,
        id: &str,
        body: &TurnBody<'_>,
        key: Option<&str>,
    ) -> Result<StartedTurn, ClientError> {
        let mut call = Call::post(&["sessions", id, "turns"], body)?;
        if let Some(key) = key {
            call = call.with_key(key)?;
        }
        let (mut turn, known): (StartedTurn, bool) = self.http.once(&call).await?;
        turn.known = known;
        Ok(turn)
    }

    /// Sends text to the turn in progress, if the agent's CLI supports it.
    ///
    /// # Errors
    ///
    /// Fails if no turn is in progress, or the server cannot be reached.
    pub async fn steer(&self, id: &str, text: &str, from: Option<&str>) -> Result<(), ClientError> {
        let body = Message { text, from };
        self.command(&["sessions", id, "steer"], &body).await
    }

    /// Interrupts the turn in progress. The session continues.
    ///
    /// # Errors
    ///
    /// Fails if no turn is in progress, or the server cannot be reached.
    pub async fn interrupt(&self, id: &str, stopping: Stopping) -> Result<(), ClientError> {
        let kill = stopping.is_kill();
        self.command(&["sessions", id, "interrupt"], &json!({ "kill": kill }))
            .await
    }

    /// Clears the context of a session.
    ///
    /// # Errors
    ///
    /// Fails if the session has ended or its agent does not support this, or the server cannot be reached.
    pub async fn clear(&self, id: &str) -> Result<(), ClientError> {
        self.command(&["sessions", id, "clear"], &json!({})).await
    }

    /// Changes the model or the permission mode of a session, from its next turn on.
    ///
    /// # Errors
    ///
    /// Fails if the session has ended or the server refuses the change, or it cannot be reached.
    pub async fn change(&self, id: &str, change: &SessionChange) -> Result<RunView, ClientError> {
        let call = Call::new(Method::PATCH, &["sessions", id])?.with_body(change)?;
        self.http.json(&call).await
    }
}
