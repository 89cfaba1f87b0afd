//! The protocol's schema, which every message to an agent must follow.

use agent_client_protocol_schema::v1::{
    CancelNotification, InitializeRequest, LoadSessionRequest, NewSessionRequest, PromptRequest,
    ResumeSessionRequest, SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;

/// Checks that the parameters of a message have the fields of its type in the schema and no others.
pub(super) fn check(message: &Value) {
    let check = match message["method"].as_str() {
        Some("initialize") => same::<InitializeRequest>,
        Some("session/new") => same::<NewSessionRequest>,
        Some("session/load") => same::<LoadSessionRequest>,
        Some("session/resume") => same::<ResumeSessionRequest>,
        Some("session/prompt") => same::<PromptRequest>,
        Some("session/set_mode") => same::<SetSessionModeRequest>,
        Some("session/set_config_option") => same::<SetSessionConfigOptionRequest>,
        Some("session/cancel") => same::<CancelNotification>,
        // Responses, and requests that are not in the stable schema.
        None | Some("session/fork" | "session/set_model") => return,
        Some(other) => panic!("{other} is not checked"),
    };
    check(&message["params"]);
}

fn same<T: Serialize + DeserializeOwned>(params: &Value) {
    let read: T = serde_json::from_value(params.clone()).unwrap();
    assert_eq!(
        without_empty_lists(serde_json::to_value(read).unwrap()),
        without_empty_lists(params.clone())
    );
}

/// An empty list and none are the same to the schema, which leaves out some of them.
fn without_empty_lists(mut params: Value) -> Value {
    if let Some(fields) = params.as_object_mut() {
        fields.retain(|_, value| *value != json!([]));
    }
    params
}
