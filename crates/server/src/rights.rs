//! Rights that a request's body needs beyond the scope of its operation.

use teamster_runner::protocol::{Answer, PendingRequest};

use crate::auth::Caller;
use crate::{Permission, Problem, ProblemCode, Scope, ServerConfig};

/// A right beyond the scope of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Runs without requests: the permission `bypass`.
    Bypass,
    /// Agents that are named by a command.
    Command,
    /// Tools that are allowed before they are requested (`allowedTools`). A token that may run
    /// and answer has it already, because it can allow what the agent requests on its behalf.
    AllowedTools,
    /// Another input for a requested tool (`allow_with`).
    OtherInput,
}

/// The body of a request that changes something.
pub(crate) trait Body {
    /// Returns the rights that it needs.
    fn rights(&self) -> Vec<Right>;
}

/// Checks the rights of a body. This is the only place that does. A prompt has none of its own: a turn has the rights of
/// its session.
///
/// # Errors
///
/// Fails if the server or the caller's token does not have one of the rights.
pub(crate) fn check(
    body: &impl Body,
    config: &ServerConfig,
    caller: &Caller,
) -> Result<(), Problem> {
    for right in body.rights() {
        let (allowed, code, detail) = match right {
            Right::Bypass => (
                config.allow_bypass && caller.may(Scope::Admin),
                ProblemCode::BypassNotAllowed,
                "`bypass` needs a server with --allow-bypass and a token with the scope `admin`",
            ),
            Right::Command => (
                config.allow_commands,
                ProblemCode::CommandNotAllowed,
                "an agent that is named by a command needs a server with --allow-commands",
            ),
            Right::AllowedTools => (
                may_run_and_answer(caller),
                ProblemCode::InsufficientScope,
                "`allowedTools` allows tools before they are requested: this needs a token with the scopes `run` and \
                `answer`, or `admin`",
            ),
            Right::OtherInput => (
                may_run_and_answer(caller),
                ProblemCode::InsufficientScope,
                "`allow_with` changes what the tool does: this needs a token with the scopes `run` and `answer`, or \
                `admin`; the scope `answer` allows `allow`, `allow_always` and `deny`",
            ),
        };
        if !allowed {
            return Err(Problem::new(code, detail));
        }
    }
    Ok(())
}

fn may_run_and_answer(caller: &Caller) -> bool {
    caller.may(Scope::Run) && caller.may(Scope::Answer)
}

/// Returns the rights to start an agent or to change its settings.
pub(crate) fn of_agent<'a>(
    permission: Option<Permission>,
    agents: impl IntoIterator<Item = &'a String>,
    allowed_tools: &[String],
) -> Vec<Right> {
    let is_command = |name: &String| {
        let name = name.trim_start().to_ascii_lowercase();
        name.starts_with("cmd:") || name.starts_with("acp:")
    };
    let mut rights = Vec::new();
    if permission == Some(Permission::Bypass) {
        rights.push(Right::Bypass);
    }
    if agents.into_iter().any(is_command) {
        rights.push(Right::Command);
    }
    if !allowed_tools.is_empty() {
        rights.push(Right::AllowedTools);
    }
    rights
}

/// An answer to a request; `None` if no request with its id is pending.
pub(crate) struct AnswerTo<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) request: Option<&'a PendingRequest>,
}

impl Body for AnswerTo<'_> {
    fn rights(&self) -> Vec<Right> {
        // The input of a question is its answer.
        let is_question = self.request.is_some_and(|request| request.schema.is_some());
        match self.answer {
            Answer::AllowWith { .. } if !is_question => vec![Right::OtherInput],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_core::{PermissionRequest, ToolKind};

    use super::*;

    #[test]
    fn the_input_of_a_question_is_its_answer_and_that_of_a_tool_is_another_action() {
        let answer = Answer::AllowWith { input: json!({}) };
        let rights = |request: Option<PermissionRequest>| {
            let request = request.map(|request| PendingRequest::new("r/1", "r", request));
            let request = request.as_ref();
            let answer = &answer;
            AnswerTo { answer, request }.rights()
        };
        let tool = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({"command": "ls"}));
        assert_eq!(rights(Some(tool)), [Right::OtherInput]);
        let question = PermissionRequest::question(1, "forms", "Which?", json!({}));
        assert_eq!(rights(Some(question)), []);
        // It may become a request for a tool before the answer arrives.
        assert_eq!(rights(None), [Right::OtherInput]);
    }
}
