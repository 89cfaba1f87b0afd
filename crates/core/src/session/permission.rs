//! Permission requests, their answers and the policy.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::SessionFuture;
use crate::{Decision, Id, Permission, ToolKind};

/// How permission requests of a CLI are answered.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionPolicy {
    /// Every request is denied, as in a run.
    #[default]
    Deny,
    /// Everything is allowed that the CLI asks for.
    Allow,
    /// This answers. The turn waits as long as that takes, without a limit of time.
    #[serde(skip)]
    Ask(Arc<AskPermission>),
}

/// A callback that answers a request for permission.
pub type AskPermission =
    dyn Fn(PermissionRequest) -> SessionFuture<'static, PermissionAnswer> + Send + Sync;

impl PermissionPolicy {
    /// Answers by this function, at once.
    ///
    /// ```
    /// use teamster_core::{PermissionAnswer, PermissionPolicy};
    ///
    /// let policy = PermissionPolicy::decide(|request| {
    ///     if request.kind.has_side_effects() {
    ///         PermissionAnswer::Deny(Some("only reading is allowed here".into()))
    ///     } else {
    ///         PermissionAnswer::Allow
    ///     }
    /// });
    /// # drop(policy);
    /// ```
    pub fn decide<F>(decide: F) -> Self
    where
        F: Fn(&PermissionRequest) -> PermissionAnswer + Send + Sync + 'static,
    {
        Self::ask(move |request| std::future::ready(decide(&request)))
    }

    /// Asks this function.
    pub fn ask<F, A>(ask: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionAnswer> + Send + 'static,
    {
        Self::Ask(Arc::new(move |request| Box::pin(ask(request))))
    }

    /// The answer of a policy that asks no one; `None` if it asks.
    pub fn answer(&self, request: &PermissionRequest) -> Option<PermissionAnswer> {
        match self {
            Self::Ask(_) => None,
            // No one knows what a server's question wants.
            _ if request.schema.is_some() => {
                let asked = request.message.as_deref().unwrap_or("an MCP server asks");
                let why = format!("{asked} (declined: no caller answers questions)");
                Some(PermissionAnswer::Deny(Some(why)))
            }
            Self::Allow => Some(PermissionAnswer::Allow),
            Self::Deny => {
                let why = "there is no permission handler".to_owned();
                Some(PermissionAnswer::Deny(Some(why)))
            }
        }
    }
}

impl fmt::Debug for PermissionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deny => "Deny",
            Self::Allow => "Allow",
            Self::Ask(_) => "Ask(..)",
        })
    }
}

/// The CLI asks whether a tool may be used, or an MCP server asks for input.
///
/// Without a policy that asks a caller, a server's question is declined.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Which request this is, in this process.
    pub id: u64,
    /// The tool, in the CLI's own name.
    pub tool_name: String,
    /// The call of the tool, if the CLI names it.
    pub tool_id: Option<Id>,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Input of the tool.
    pub input: Value,
    /// The CLI's description, such as a title or a reason.
    pub message: Option<String>,
    /// The JSON Schema of the input that an MCP server asks the user for (`elicitation`). No tool waits
    /// for permission then; [`PermissionAnswer::AllowWith`] answers it.
    pub schema: Option<Value>,
    /// Whether [`PermissionAnswer::AllowWith`] can replace the tool's input, or answers the question.
    /// Where it is false, that answer denies.
    pub takes_input: bool,
}

impl PermissionRequest {
    /// A request for this tool.
    pub fn new(id: u64, tool_name: impl Into<String>, kind: ToolKind, input: Value) -> Self {
        Self {
            id,
            tool_name: tool_name.into(),
            tool_id: None,
            kind,
            input,
            message: None,
            schema: None,
            takes_input: false,
        }
    }

    /// The question of an MCP server for input of this JSON Schema, while one of its tools runs.
    pub fn question(id: u64, server: &str, message: &str, schema: Value) -> Self {
        let input = serde_json::json!({"server": server});
        Self {
            message: Some(format!("the MCP server {server} asks: {message}")),
            schema: Some(schema),
            takes_input: true,
            ..Self::new(id, "elicitation", ToolKind::Mcp, input)
        }
    }

    /// The event that reports this answer.
    pub fn answered(&self, answer: &PermissionAnswer) -> Permission {
        let (decision, reason) = match answer {
            PermissionAnswer::Deny(reason) => (Decision::Denied, reason.clone()),
            _ => (Decision::Allowed, None),
        };
        Permission::new(self.tool_name.clone(), decision)
            .tool_id(self.tool_id.clone())
            .reason(reason)
    }
}

/// The answer to a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// The tool may be used, this time.
    Allow,
    /// The tool may be used, now and for the rest of the session where the CLI knows that.
    AllowAlways,
    /// The tool may be used with this input in place of its own. Where that cannot be
    /// ([`PermissionRequest::takes_input`]), the tool is denied, and the `permission` event reports this and
    /// the reason. For a question ([`PermissionRequest::schema`]) it is the answer.
    AllowWith(Value),
    /// It may not. The agent gets the reason, where the CLI has a way for it.
    Deny(Option<String>),
}
