//! Questions of the agent or of its MCP servers to the user (`elicitation/create`).

use serde_json::json;
use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::{parse, value};
use teamster_core::{AgentEvent, Decision, PermissionEvent, PermissionRequest, ToolKind};

use super::AcpProtocol;
use super::permissions::{Pending, Subject};
use crate::dialect::NextUpdate;
use crate::wire::{CancelParams, ElicitationParams};
use crate::write;

/// Name of the tool in the request, as with CLIs that pass on questions of MCP servers.
const NAME: &str = "elicitation";

impl AcpProtocol {
    /// Asks the caller. A question outside of a turn, or in a form that was not offered, is cancelled at once.
    pub(super) fn elicitation(&mut self, id: &RawValue, params: &RawValue, out: &mut Events) {
        let params: ElicitationParams<'_> = parse(params.get()).unwrap_or_default();
        let (schema, input) = match (params.mode.as_deref(), params.requested_schema, params.url) {
            (Some("form"), Some(schema), _) => (value(schema), json!({})),
            (Some("url"), _, Some(url)) => (json!({"type": "object"}), json!({"url": url})),
            _ => return write::elicited(&mut self.outbox, id, None),
        };
        if !self.settings.asks || self.cancelling || !self.is_active() {
            return write::elicited(&mut self.outbox, id, None);
        }
        let call = params.tool_call_id.unwrap_or_default().into_owned();
        let mut tool_id = None;
        if call.is_empty() {
            self.resolve(NextUpdate::Other, out);
        } else {
            self.resolve(NextUpdate::Call(&call), out);
            tool_id = self.announce(&call, out).map(|(id, _)| id);
        }
        let message = params.message.map(std::borrow::Cow::into_owned);
        out.push(AgentEvent::Permission(Box::new(
            PermissionEvent::new(NAME, Decision::Requested)
                .tool_id(tool_id.clone())
                .reason(message.clone()),
        )));
        self.next_permission += 1;
        let number = self.next_permission;
        let mut request = PermissionRequest::new(number, NAME, ToolKind::Other, input);
        request.tool_id = tool_id;
        request.message = message;
        request.schema = Some(schema);
        request.takes_input = true;
        self.outbox.ask(request);
        self.permissions
            .push(Pending::new(number, id, call, Subject::Elicitation));
    }

    /// Withdraws the request that the agent has cancelled. Returns `None` if the line names none.
    pub(super) fn cancelled_by_agent(&mut self, params: &RawValue) -> Option<()> {
        let params: CancelParams<'_> = parse(params.get())?;
        let id = params.request_id?.get();
        // An unknown id is of a request that was answered meanwhile.
        let at = self.permissions.iter().position(|it| it.id.get() == id);
        if let Some(at) = at {
            let pending = self.permissions.remove(at);
            pending.cancel(&mut self.outbox);
        }
        Some(())
    }
}
