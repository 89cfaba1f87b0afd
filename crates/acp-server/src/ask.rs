//! Translates an agent's requests into requests to the editor, and the editor's responses into answers.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationCapabilities, ElicitationFormMode, ElicitationSchema, ElicitationSessionScope,
    ElicitationUrlMode, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse,
};
use serde_json::{Value, json};
use teamster_core::{Id, PermissionAnswer, PermissionRequest};

use crate::output::Output;
use crate::tool_call::Call;

const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const REJECT: &str = "reject";

/// The protocol request that carries an agent's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Permission,
    Form,
    Url,
}

/// Sends the request to the editor. Returns `None` if the editor supports no form of it.
pub(crate) fn ask(
    number: u64,
    session_id: &str,
    request_id: &str,
    request: &PermissionRequest,
    known: Option<&Call>,
    elicitation: Option<&ElicitationCapabilities>,
    out: &mut Output,
) -> Option<RequestKind> {
    let Some(schema) = &request.schema else {
        permission(number, session_id, request_id, request, known, out);
        return Some(RequestKind::Permission);
    };
    let message = request.message.clone().unwrap_or_default();
    let mut scope = ElicitationSessionScope::new(session_id.to_owned());
    scope.tool_call_id = request.tool_id.as_ref().map(|id| id.to_string().into());
    if let Some(url) = request.input["url"].as_str() {
        elicitation?.url.as_ref()?;
        let mode = ElicitationUrlMode::new(scope, request_id.to_owned(), url);
        let params = CreateElicitationRequest::new(mode, message);
        out.request(number, "elicitation/create", &params);
        return Some(RequestKind::Url);
    }
    elicitation?.form.as_ref()?;
    let schema: ElicitationSchema = serde_json::from_value(schema.clone()).ok()?;
    let mode = ElicitationFormMode::new(scope, schema);
    let params = CreateElicitationRequest::new(mode, message);
    out.request(number, "elicitation/create", &params);
    Some(RequestKind::Form)
}

fn permission(
    number: u64,
    session_id: &str,
    request_id: &str,
    request: &PermissionRequest,
    known: Option<&Call>,
    out: &mut Output,
) {
    let name = &request.tool_name;
    let message = request.message.as_deref();
    let call = match known {
        Some(call) => call.for_permission(name, message),
        None => {
            // The CLI names no call, so the request is shown as a call of its own.
            let id = request
                .tool_id
                .clone()
                .unwrap_or_else(|| Id::from(request_id));
            let mut call = Call::new(&id, name, request.kind, &request.input, None);
            call.requested(request);
            call.for_permission(name, message)
        }
    };
    let options = [
        (ALLOW, "Allow", PermissionOptionKind::AllowOnce),
        (ALWAYS, "Always allow", PermissionOptionKind::AllowAlways),
        (REJECT, "Reject", PermissionOptionKind::RejectOnce),
    ];
    let options = options.map(|(id, name, kind)| PermissionOption::new(id, name, kind));
    let params = RequestPermissionRequest::new(session_id.to_owned(), call, options.to_vec());
    out.request(number, "session/request_permission", &params);
}

/// Converts the editor's response to an answer. An unreadable response denies.
pub(crate) fn answer(kind: RequestKind, result: Option<Value>) -> PermissionAnswer {
    let deny = PermissionAnswer::Deny(None);
    let Some(result) = result else {
        return deny;
    };
    match kind {
        RequestKind::Permission => {
            let Ok(response) = serde_json::from_value::<RequestPermissionResponse>(result) else {
                return deny;
            };
            match response.outcome {
                RequestPermissionOutcome::Selected(it) if &*it.option_id.0 == ALLOW => {
                    PermissionAnswer::Allow
                }
                RequestPermissionOutcome::Selected(it) if &*it.option_id.0 == ALWAYS => {
                    PermissionAnswer::AllowAlways
                }
                _ => deny,
            }
        }
        RequestKind::Form | RequestKind::Url => {
            let Ok(response) = serde_json::from_value::<CreateElicitationResponse>(result) else {
                return deny;
            };
            match response.action {
                ElicitationAction::Accept(it) => PermissionAnswer::AllowWith(
                    it.content.map_or_else(|| json!({}), |it| json!(it)),
                ),
                _ => deny,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let chosen = |id: &str| Some(json!({"outcome": {"outcome": "selected", "optionId": id}}));
        let deny = PermissionAnswer::Deny(None);
        let content = PermissionAnswer::AllowWith(json!({"colour": "blue"}));
        for (kind, result, expected) in [
            (
                RequestKind::Permission,
                chosen("allow"),
                PermissionAnswer::Allow,
            ),
            (
                RequestKind::Permission,
                chosen("always"),
                PermissionAnswer::AllowAlways,
            ),
            (RequestKind::Permission, chosen("reject"), deny.clone()),
            (RequestKind::Permission, chosen("other"), deny.clone()),
            (
                RequestKind::Permission,
                Some(json!({"outcome": {"outcome": "cancelled"}})),
                deny.clone(),
            ),
            (RequestKind::Permission, Some(json!(7)), deny.clone()),
            (RequestKind::Permission, None, deny.clone()),
            (
                RequestKind::Form,
                Some(json!({"action": "accept", "content": {"colour": "blue"}})),
                content,
            ),
            (
                RequestKind::Url,
                Some(json!({"action": "accept"})),
                PermissionAnswer::AllowWith(json!({})),
            ),
            (
                RequestKind::Form,
                Some(json!({"action": "decline"})),
                deny.clone(),
            ),
            (RequestKind::Form, Some(json!({"action": "cancel"})), deny),
        ] {
            assert_eq!(
                answer(kind, result.clone()),
                expected,
                "{kind:?} {result:?}"
            );
        }
    }
}
