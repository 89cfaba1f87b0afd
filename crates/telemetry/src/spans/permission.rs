//! Requests for permission, and questions, as spans.

use opentelemetry::KeyValue;
use opentelemetry::trace::Span as _;
use teamster_core::{Decision, ErrorKind, Id, PermissionEvent};

use super::{MOST_OPEN, Open, RunSpans, Spans};
use crate::attributes as names;
use crate::attributes::{of_text, short};

/// A request for permission, or a question.
pub(super) struct RequestSpan {
    pub(super) own: Open,
    tool_name: String,
    pub(super) tool_id: Option<Id>,
}

impl Spans {
    /// Begins or ends the span of a request, and marks a denied call.
    pub(super) fn permission(&self, run: &mut RunSpans, permission: &PermissionEvent, at_ms: u64) {
        let (name, id) = (&permission.tool_name, &permission.tool_id);
        if permission.decision == Decision::Requested {
            if run.requests.len() >= MOST_OPEN {
                return;
            }
            let mut attributes = vec![of_text(names::TOOL, name)];
            attributes.extend(id.as_ref().map(|id| of_text(names::CALL, id)));
            let parent = run.parent_of(id.as_ref());
            let own = format!("{} {}", names::REQUEST_SPAN, short(name));
            run.requests.push(RequestSpan {
                own: self.open(own, at_ms, attributes, &parent),
                tool_name: name.clone(),
                tool_id: id.clone(),
            });
            return;
        }
        let is_denied = permission.decision == Decision::Denied;
        let request = run.request(|it| it.tool_name == *name && it.tool_id == *id);
        if let Some(mut request) = request {
            let decision = if is_denied { "denied" } else { "allowed" };
            let decision = KeyValue::new(names::DECISION, decision);
            request.own.span.set_attribute(decision);
            request.own.end(at_ms);
        }
        if is_denied && let Some(tool) = id.as_ref().and_then(|id| run.tools.get_mut(id)) {
            tool.fail(ErrorKind::Permission.as_str(), String::new());
        }
    }
}

impl RunSpans {
    /// Removes the first of these requests.
    pub(super) fn request(&mut self, is: impl Fn(&RequestSpan) -> bool) -> Option<RequestSpan> {
        let index = self.requests.iter().position(is)?;
        Some(self.requests.remove(index))
    }
}
