//! Models that the CLI offers.

use serde_json::{Value, json};
use teamster_core::provider::Events;
use teamster_core::{ModelChoice, Offers};

use super::state::CodexSession;
use crate::wire::Object;

/// Id of the request for the models. Other requests have numbers.
const REQUEST: &str = "models";

impl CodexSession {
    /// Requests the models, once in a process.
    pub(super) fn request_models(&mut self) {
        if std::mem::take(&mut self.wants_models) {
            let request = json!({"id": REQUEST, "method": "model/list", "params": {}});
            self.outbox.write(&request);
        }
    }
}

/// Handles the response with this id. Returns `None` if the request for the models has another id.
pub(super) fn answered(id: &Value, message: &Object<'_>, out: &mut Events) -> Option<()> {
    if id != REQUEST {
        return None;
    }
    // A CLI without this request answers with an error.
    if let Some(result) = message.object("result") {
        let models: Vec<_> = result.objects("data").iter().filter_map(model).collect();
        if !models.is_empty() {
            out.push(Offers::new().models(models).into());
        }
    }
    Some(())
}

fn model(line: &Object<'_>) -> Option<ModelChoice> {
    if line.get("hidden") == Some(true) {
        return None;
    }
    let text = |name: &str| line.text(name).map(std::borrow::Cow::into_owned);
    let efforts = line.objects("supported_reasoning_efforts");
    let efforts: Vec<_> = (efforts.iter())
        .filter_map(|effort| Some(effort.text("reasoning_effort")?.into_owned()))
        .collect();
    Some(
        ModelChoice::new(text("model").or_else(|| text("id"))?)
            .name(text("display_name"))
            .description(text("description"))
            .efforts(Some(efforts).filter(|efforts| !efforts.is_empty())),
    )
}
