//! Permission requests, their answers and the policy.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::SessionFuture;
use crate::{Decision, Id, PermissionEvent, ToolKind};

/// Policy for permission requests of a CLI.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PermissionPolicy {
    /// Denies every request, as in a run.
    #[default]
    Deny,
    /// Allows every request of the CLI.
    Allow,
    /// Asks a callback. The turn waits for the answer without a time limit.
    #[serde(skip)]
    Ask(Arc<AskPermission>),
}

/// A callback that answers permission requests.
pub type AskPermission =
    dyn Fn(PermissionRequest) -> SessionFuture<'static, PermissionAnswer> + Send + Sync;

impl PermissionPolicy {
    /// Creates a policy that answers with the result of a synchronous function.
    ///
    /// ```
    /// use teamster_core::{PermissionAnswer, PermissionPolicy};
    ///
    /// let policy = PermissionPolicy::decide(|request| {
    ///     if request.kind.has_side_effects() {
    ///         PermissionAnswer::deny("only reading is allowed here")
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

    /// Creates a policy that answers with the result of an asynchronous function.
    pub fn ask<F, A>(ask: F) -> Self
    where
        F: Fn(PermissionRequest) -> A + Send + Sync + 'static,
        A: Future<Output = PermissionAnswer> + Send + 'static,
    {
        Self::Ask(Arc::new(move |request| Box::pin(ask(request))))
    }

    /// Returns the answer of a policy without a callback; `None` for [`Ask`](Self::Ask).
    pub fn answer(&self, request: &PermissionRequest) -> Option<PermissionAnswer> {
        match self {
            Self::Ask(_) => None,
            // A fixed policy cannot answer a question.
            _ if request.schema.is_some() => {
                let asked = request.message.as_deref().unwrap_or("an MCP server asks");
                let why = format!("{asked} (declined: no caller answers questions)");
                Some(PermissionAnswer::deny(why))
            }
            Self::Allow => Some(PermissionAnswer::Allow),
            Self::Deny => {
                let why = "no permission handler is set".to_owned();
                Some(PermissionAnswer::deny(why))
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

/// A request of the CLI for permission to use a tool, or of an MCP server for input.
///
/// Without a policy that asks a caller, a server's question is declined.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// Id of the request, unique in this process.
    pub id: u64,
    /// The CLI's own name of the tool.
    pub tool_name: String,
    /// The tool call, if the CLI reports it.
    pub tool_id: Option<Id>,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Input of the tool.
    pub input: Value,
    /// Current text of the file that the tool would write whole. Detached and attached runs of this project's program
    /// have it, if the file is a text of at most 256 KiB in the working directory.
    pub old_text: Option<String>,
    /// The CLI's description, such as a title or a reason.
    pub message: Option<String>,
    /// JSON Schema of the answer to a question: of the agent, or of an MCP server that requests input of the user
    /// (`elicitation`). In that case no tool waits for permission, and [`PermissionAnswer::AllowWith`] is the answer.
    pub schema: Option<Value>,
    /// True if [`PermissionAnswer::AllowWith`] can replace the tool's input, or answers the question. If false, that
    /// answer denies.
    pub takes_input: bool,
    /// Moment of the call at which the caller is asked.
    pub stage: ToolStage,
}

/// Moment of a tool call at which a caller is asked.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum ToolStage {
    /// The CLI requests permission.
    #[default]
    Permission,
    /// The tool is about to run ([`SessionOptions::tool_hooks`](crate::SessionOptions::tool_hooks)).
    /// [`PermissionAnswer::Allow`] leaves the decision to the CLI, which may request permission after it;
    /// [`PermissionAnswer::AllowWith`] decides.
    Before,
    /// The tool has run, and this is its output in the CLI's own form, or the text of its error.
    /// [`PermissionAnswer::Deny`] gives the agent its reason beside the output, which stays; all other answers change
    /// nothing.
    After(Box<Value>),
}

impl PermissionRequest {
    /// Creates a request for permission to use this tool.
    pub fn new(id: u64, tool_name: impl Into<String>, kind: ToolKind, input: Value) -> Self {
        Self {
            id,
            tool_name: tool_name.into(),
            tool_id: None,
            kind,
            input,
            old_text: None,
            message: None,
            schema: None,
            takes_input: false,
            stage: ToolStage::default(),
        }
    }

    /// Returns why this is no answer to a question: its form has required fields, and a plain permission has no values.
    pub(crate) fn unanswered(&self, answer: &PermissionAnswer) -> Option<String> {
        let required = self.schema.as_ref()?["required"].as_array()?;
        let is_plain = matches!(
            answer,
            PermissionAnswer::Allow | PermissionAnswer::AllowAlways
        );
        (is_plain && !required.is_empty())
            .then(|| "the form has required fields: answer with their values".to_owned())
    }

    /// Creates the question of an MCP server for input of this JSON Schema, while one of its tools runs.
    pub fn question(id: u64, server: &str, message: &str, schema: Value) -> Self {
        let input = serde_json::json!({"server": server});
        Self {
            message: Some(format!("the MCP server {server} asks: {message}")),
            schema: Some(schema),
            takes_input: true,
            ..Self::new(id, "elicitation", ToolKind::Mcp, input)
        }
    }

    /// Returns the event that reports this answer; `None` if it changes nothing about a call that needs no permission.
    pub fn reported(&self, answer: &PermissionAnswer) -> Option<PermissionEvent> {
        let is_decision = match self.stage {
            ToolStage::Permission => true,
            ToolStage::Before => matches!(answer, PermissionAnswer::Deny(_)),
            ToolStage::After(_) => false,
        };
        is_decision.then(|| self.answered(answer))
    }

    /// Returns the event of this answer to a request for permission.
    pub fn answered(&self, answer: &PermissionAnswer) -> PermissionEvent {
        let (decision, reason) = match answer {
            PermissionAnswer::Deny(reason) => (Decision::Denied, reason.clone()),
            _ => (Decision::Allowed, None),
        };
        let mut answered = PermissionEvent::new(self.tool_name.clone(), decision)
            .tool_id(self.tool_id.clone())
            .reason(reason);
        answered.of_question = self.schema.is_some();
        answered
    }
}

/// The answer to a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PermissionAnswer {
    /// Allows this call. It is no answer to a question whose form has required fields, which it denies.
    Allow,
    /// Allows this call, and the tool for the rest of the session if the CLI supports that.
    AllowAlways,
    /// Allows the call with this input instead of its own, or answers a question ([`PermissionRequest::schema`]). If
    /// the CLI does not support it ([`PermissionRequest::takes_input`]), the tool is denied, and the `permission`
    /// event reports this and the reason.
    AllowWith(Value),
    /// Denies the call. The agent gets the reason if the CLI supports that.
    Deny(Option<String>),
}

impl PermissionAnswer {
    /// Creates an answer that denies the call, with the reason for the agent.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny(Some(reason.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{SessionCapabilities, SessionOptions};

    #[test]
    fn fixed_policies_answer_tools_and_decline_questions() {
        let tool = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
        let question = PermissionRequest::question(2, "db", "Which table?", json!({}));
        let mut bare = tool.clone();
        bare.schema = Some(json!({}));
        let denied = |why: &str| Some(PermissionAnswer::Deny(Some(why.to_owned())));
        let declined =
            "the MCP server db asks: Which table? (declined: no caller answers questions)";
        let unnamed = "an MCP server asks (declined: no caller answers questions)";
        let asks = PermissionPolicy::decide(|_| PermissionAnswer::Allow);
        for (policy, request, answer) in [
            (
                PermissionPolicy::Allow,
                &tool,
                Some(PermissionAnswer::Allow),
            ),
            (
                PermissionPolicy::Deny,
                &tool,
                denied("no permission handler is set"),
            ),
            (
                PermissionPolicy::default(),
                &tool,
                denied("no permission handler is set"),
            ),
            (PermissionPolicy::Allow, &question, denied(declined)),
            (PermissionPolicy::Deny, &bare, denied(unnamed)),
            (asks.clone(), &tool, None),
            (asks, &question, None),
        ] {
            assert_eq!(
                policy.answer(request),
                answer,
                "{policy:?} {}",
                request.tool_name
            );
        }
    }

    #[test]
    fn answer_to_a_hook_is_reported_if_it_denies_the_call() {
        let mut request = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
        let denied = PermissionAnswer::deny("no");
        let mut reported = |stage, answer| {
            request.stage = stage;
            request.reported(answer).map(|event| event.decision)
        };
        let allow = PermissionAnswer::Allow;
        let after = || ToolStage::After(Box::new(json!("x")));
        assert_eq!(
            reported(ToolStage::Permission, &allow),
            Some(Decision::Allowed)
        );
        assert_eq!(reported(ToolStage::Before, &allow), None);
        assert_eq!(reported(ToolStage::Before, &denied), Some(Decision::Denied));
        assert_eq!(reported(after(), &denied), None);
    }

    #[test]
    fn hooks_need_an_agent_that_asks_and_a_function() {
        let none = SessionCapabilities::none();
        let mut can = none;
        can.tool_hooks = true;
        let options = SessionOptions::default().tool_hooks(true);
        let refused = |options: &SessionOptions, can| {
            let error = options.check_tool_hooks("X", can).unwrap_err();
            error.message
        };
        assert_eq!(
            refused(&options, &none),
            "tool_hooks: X does not ask before and after each tool"
        );
        assert_eq!(
            refused(&options, &can),
            "tool_hooks: set `permissions` to a function, which is asked"
        );
        let asks = options.permissions(PermissionPolicy::decide(|_| PermissionAnswer::Allow));
        assert!(asks.check_tool_hooks("X", &can).is_ok());
        let without = SessionOptions::default();
        assert!(without.check_tool_hooks("X", &none).is_ok());
    }

    #[test]
    fn an_answer_is_reported_with_its_reason() {
        let mut tool = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
        tool.tool_id = Some("t".into());
        for (answer, decision, reason) in [
            (PermissionAnswer::Allow, Decision::Allowed, None),
            (PermissionAnswer::AllowAlways, Decision::Allowed, None),
            (
                PermissionAnswer::AllowWith(json!({})),
                Decision::Allowed,
                None,
            ),
            (PermissionAnswer::Deny(None), Decision::Denied, None),
            (PermissionAnswer::deny("no"), Decision::Denied, Some("no")),
        ] {
            let event = tool.answered(&answer);
            assert_eq!(
                (event.decision, event.reason.as_deref()),
                (decision, reason)
            );
            assert_eq!(
                (&*event.tool_name, event.tool_id.as_deref()),
                ("Bash", Some("t"))
            );
            assert!(!event.of_question);
        }
        let question = PermissionRequest::question(2, "db", "Which?", json!({}));
        assert!(question.takes_input && question.answered(&PermissionAnswer::Allow).of_question);
    }
}
