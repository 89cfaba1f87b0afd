//! Requests of the CLI, which have the CLI's own numbers.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use teamster_core::provider::{Events, Outbox};
use teamster_core::{Decision, Id, PermissionAnswer, PermissionEvent, PermissionRequest, ToolKind};

use super::work::Work;
use crate::wire::Object;

/// The open requests, by our numbers.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    last: u64,
    open: BTreeMap<u64, ApprovalRequest>,
}

/// A request of the CLI.
#[derive(Debug)]
struct ApprovalRequest {
    /// The CLI's number of the request, or another JSON value.
    id: Value,
    sort: Sort,
    tool: Option<Id>,
    /// True if an agent asks. Its request may outlive the turn.
    is_agent: bool,
}

/// Form of the answer.
#[derive(Debug, Clone, PartialEq)]
enum Sort {
    /// For a command or a change of files.
    Decision,
    /// For a tool of an MCP server.
    McpTool,
    /// For a question of an MCP server.
    Question,
    /// For these permissions, for a limited time.
    Permissions(Value),
}

/// The agent that asks, which works for the current turn.
pub(super) struct Asker<'a> {
    pub(super) work: &'a Work,
    /// True if it is not the main agent.
    pub(super) is_agent: bool,
}

impl Approvals {
    /// Handles a request. Returns `None` if its kind is unknown; then the state is unchanged.
    ///
    /// Declines the request if no caller can be asked.
    pub(super) fn asked(
        &mut self,
        method: &str,
        id: &Value,
        params: &Object<'_>,
        asker: Option<&Asker<'_>>,
        outbox: &mut Outbox,
        out: &mut Events,
    ) -> Option<()> {
        let sort = Sort::of(method, params)?;
        // Between turns, no caller receives the request.
        let request = asker.and_then(|asker| {
            self.last += 1;
            self.request(self.last, method, params, asker)
        });
        let Some(request) = request else {
            outbox.write(&json!({"id": id, "result": sort.answer(&PermissionAnswer::Deny(None))}));
            return Some(());
        };
        out.push(
            PermissionEvent::new(request.tool_name.clone(), Decision::Requested)
                .tool_id(request.tool_id.clone())
                .reason(request.message.clone()),
        );
        let asked = ApprovalRequest {
            id: id.clone(),
            sort,
            tool: request.tool_id.clone(),
            is_agent: asker.is_some_and(|asker| asker.is_agent),
        };
        self.open.insert(request.id, asked);
        outbox.ask(request);
        Some(())
    }

    fn request(
        &self,
        number: u64,
        method: &str,
        params: &Object<'_>,
        asker: &Asker<'_>,
    ) -> Option<PermissionRequest> {
        let item = params.text("item_id").unwrap_or_default();
        let call = asker.work.items.open_call(&item);
        let kind = call.as_ref().map(|call| call.kind);
        let (name, kind, input) = match method {
            "item/commandExecution/requestApproval" => {
                let input = params.fields(&["command", "cwd"]);
                ("command_execution".to_owned(), ToolKind::Execute, input)
            }
            "item/fileChange/requestApproval" => {
                let changes = asker.work.changes.get(&*item);
                let mut input = params.fields(&["grant_root"]);
                if let (Some(changes), Some(input)) = (changes, input.as_object_mut()) {
                    input.insert("changes".to_owned(), changes.clone());
                }
                let kind = kind.unwrap_or(ToolKind::Edit);
                ("file_change".to_owned(), kind, input)
            }
            "item/permissions/requestApproval" => {
                let input = params.fields(&["permissions", "cwd"]);
                ("request_permissions".to_owned(), ToolKind::Other, input)
            }
            _ => return self.request_of_mcp(number, params, asker),
        };
        let mut request = PermissionRequest::new(number, name, kind, input);
        request.tool_id = call.map(|call| call.id.clone());
        request.message = params.text("reason").map(std::borrow::Cow::into_owned);
        Some(request)
    }

    /// Returns the request for a tool or a question of an MCP server. The CLI's request does not identify the call.
    fn request_of_mcp(
        &self,
        number: u64,
        params: &Object<'_>,
        asker: &Asker<'_>,
    ) -> Option<PermissionRequest> {
        let server = params.text("server_name").unwrap_or_default();
        let about = params.object("_meta").filter(|_| is_about_tool(params));
        let Some(about) = about else {
            let message = params.text("message").unwrap_or_default();
            let schema = params.value("requested_schema");
            let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
            let mut question = PermissionRequest::question(number, &server, &message, schema);
            if let Some(url) = params.value("url") {
                question.input["url"] = url;
            }
            return Some(question);
        };
        let tool = about.text("tool_name")?.into_owned();
        let input = about.value("tool_params").unwrap_or_else(|| json!({}));
        let is_asked = |id: &Id| {
            self.open
                .values()
                .any(|asked| asked.tool.as_ref() == Some(id))
        };
        let calls = asker.work.items.open_calls_of_mcp(&server, &tool);
        let call = calls.into_iter().find(|id| !is_asked(id));
        let mut request = PermissionRequest::new(number, tool, ToolKind::Mcp, input);
        request.tool_id = call;
        request.message = params.text("message").map(std::borrow::Cow::into_owned);
        Some(request)
    }

    /// Returns why the CLI does not support this answer to the request with our number `id`.
    pub(super) fn unsupported(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        let supported = self.open.get(&id)?.sort.supports(answer);
        (!supported).then(|| "Codex cannot run a tool with a changed input".to_owned())
    }

    /// Answers the request with our number `id`.
    pub(super) fn answer(&mut self, id: u64, answer: &PermissionAnswer, outbox: &mut Outbox) {
        if let Some(asked) = self.open.remove(&id) {
            outbox.write(&json!({"id": asked.id, "result": asked.sort.answer(answer)}));
        }
    }

    /// Withdraws the request with the CLI's number `id`, which needs no answer any more.
    pub(super) fn resolved(&mut self, id: &Value, outbox: &mut Outbox) {
        self.open.retain(|number, asked| {
            let is_it = asked.id == *id;
            if is_it {
                outbox.withdraw(*number);
            }
            !is_it
        });
    }

    /// Withdraws all requests, because their turn has ended.
    pub(super) fn withdraw_all(&mut self, outbox: &mut Outbox) {
        let denied = PermissionAnswer::Deny(None);
        for (number, asked) in std::mem::take(&mut self.open) {
            outbox.withdraw(number);
            if asked.is_agent {
                outbox.write(&json!({"id": asked.id, "result": asked.sort.answer(&denied)}));
            }
        }
    }
}

/// Returns whether an elicitation is about a tool of an MCP server. Otherwise it is a question of the server.
fn is_about_tool(params: &Object<'_>) -> bool {
    let about = params.object("_meta");
    about.is_some_and(|about| about.text("codex_approval_kind").as_deref() == Some("mcp_tool_call"))
}

impl Sort {
    fn of(method: &str, params: &Object<'_>) -> Option<Self> {
        Some(match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                Self::Decision
            }
            "mcpServer/elicitation/request" if is_about_tool(params) => Self::McpTool,
            "mcpServer/elicitation/request" => Self::Question,
            "item/permissions/requestApproval" => {
                let permissions = params.value("permissions");
                Self::Permissions(permissions.unwrap_or_else(|| json!({})))
            }
            _ => return None,
        })
    }

    /// Returns whether the CLI supports the answer. It accepts content only for questions: a tool runs with its
    /// original input.
    fn supports(&self, answer: &PermissionAnswer) -> bool {
        *self == Self::Question || !matches!(answer, PermissionAnswer::AllowWith(_))
    }

    fn answer(&self, answer: &PermissionAnswer) -> Value {
        let always = *answer == PermissionAnswer::AllowAlways;
        let denied = matches!(answer, PermissionAnswer::Deny(_)) || !self.supports(answer);
        match self {
            // The CLI does not take a reason.
            Self::Decision if denied => json!({"decision": "decline"}),
            Self::Decision if always => json!({"decision": "acceptForSession"}),
            Self::Decision => json!({"decision": "accept"}),
            Self::McpTool | Self::Question if denied => {
                json!({"action": "decline", "content": null, "_meta": null})
            }
            Self::McpTool | Self::Question => {
                let about = always.then(|| json!({"persist": "session"}));
                let content = match answer {
                    PermissionAnswer::AllowWith(content) => content.clone(),
                    _ => json!({}),
                };
                json!({"action": "accept", "content": content, "_meta": about})
            }
            Self::Permissions(asked) => json!({
                "permissions": if denied { json!({}) } else { asked.clone() },
                "scope": if always { "session" } else { "turn" },
            }),
        }
    }
}
