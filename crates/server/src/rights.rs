//! Rights that a request needs beyond the scope of its operation.

use teamster_api::{Answer, PendingRequest, ProblemCode, RunInfo};
use teamster_core::PermissionMode;

use crate::keys::Caller;
use crate::{ApiError, Scope, ServerConfig};

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
    /// Unknown rights: arguments that only the agent's CLI understands, or a start that was not recorded.
    Unknown,
}

/// A request that changes something.
pub(crate) trait Demand {
    /// Returns the rights that it needs.
    fn rights(&self) -> Vec<Right>;
}

/// Checks the rights of a request. This is the only place that does. Fails if the server or the caller's token does not
/// have one of the rights.
pub(crate) fn check(
    demand: &impl Demand,
    config: &ServerConfig,
    caller: &Caller,
) -> Result<(), ApiError> {
    for right in demand.rights() {
        let (allowed, code, detail) = match right {
            Right::Bypass => (
                config.allow_bypass && caller.may(Scope::Admin),
                ProblemCode::BypassNotAllowed,
                "`bypass` needs a server with --allow-bypass and a token with the scope `admin`, at the start and for \
                each prompt",
            ),
            Right::Command => (
                config.allow_commands,
                ProblemCode::CommandNotAllowed,
                "an agent that is named by a command needs a server with --allow-commands, at the start and for each \
                prompt",
            ),
            Right::AllowedTools => (
                may_run_and_answer(caller),
                ProblemCode::InsufficientScope,
                "`allowedTools` allows tools before they are requested: this needs a token with the scopes `run` and \
                `answer`, or `admin`, at the start and for each prompt",
            ),
            Right::OtherInput => (
                may_run_and_answer(caller),
                ProblemCode::InsufficientScope,
                "`allow_with` changes what the tool does: this needs a token with the scopes `run` and `answer`, or \
                `admin`; the scope `answer` allows `allow`, `allow_always` and `deny`",
            ),
            Right::Unknown => (
                caller.may(Scope::Admin),
                ProblemCode::InsufficientScope,
                "this session has arguments of its CLI, or was started by an earlier version: what it may do is not \
                known, so this needs a token with the scope `admin`",
            ),
        };
        if !allowed {
            return Err(ApiError::new(code, detail));
        }
    }
    Ok(())
}

fn may_run_and_answer(caller: &Caller) -> bool {
    caller.may(Scope::Run) && caller.may(Scope::Answer)
}

/// Returns the rights to start an agent or to change its settings.
pub(crate) fn of_agent<'a>(
    permission: Option<PermissionMode>,
    agents: impl IntoIterator<Item = &'a String>,
    allowed_tools: &[String],
) -> Vec<Right> {
    let is_command = |name: &String| {
        let name = name.trim_start().to_ascii_lowercase();
        name.starts_with("cmd:") || name.starts_with("acp:")
    };
    let mut rights = Vec::new();
    if permission == Some(PermissionMode::Bypass) {
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

/// A prompt, a message or a change of settings in a session: the agent then acts with what the session may do, on the
/// sender's behalf.
pub(crate) struct InSession<'a> {
    pub(crate) info: &'a RunInfo,
    /// The session's permission mode, if it was changed after the start.
    pub(crate) changed: Option<PermissionMode>,
}

impl Demand for InSession<'_> {
    fn rights(&self) -> Vec<Right> {
        let Some(grants) = &self.info.grants else {
            let mut rights = of_agent(self.changed, [&self.info.provider], &[]);
            rights.push(Right::Unknown);
            return rights;
        };
        let permission = self.changed.unwrap_or(grants.permission);
        let agents = grants.fallback.iter().chain([&self.info.provider]);
        let mut rights = of_agent(Some(permission), agents, &grants.allowed_tools);
        if grants.cli_arguments {
            rights.push(Right::Unknown);
        }
        rights
    }
}

/// An answer to a request; `None` if the request is not known.
pub(crate) struct AnswerTo<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) request: Option<&'a PendingRequest>,
}

impl Demand for AnswerTo<'_> {
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
    use teamster_api::Grants;
    use teamster_core::{PermissionRequest, ToolKind};

    use super::*;

    #[test]
    fn question_input_is_an_answer_and_tool_input_another_action() {
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

    #[test]
    fn a_prompt_needs_what_the_session_may_do_now() {
        let rights = |grants: Option<Grants>, changed| {
            let mut info = RunInfo::new("s", "claude");
            info.grants = grants;
            let info = &info;
            InSession { info, changed }.rights()
        };
        let grants = |change: fn(&mut Grants)| {
            let mut grants = Grants::default();
            change(&mut grants);
            Some(grants)
        };
        let bypass = grants(|it| it.permission = PermissionMode::Bypass);
        assert_eq!(rights(grants(|_| {}), None), []);
        assert_eq!(rights(bypass.clone(), None), [Right::Bypass]);
        assert_eq!(rights(bypass, Some(PermissionMode::Default)), []);
        assert_eq!(
            rights(grants(|_| {}), Some(PermissionMode::Bypass)),
            [Right::Bypass]
        );
        let tools = grants(|it| it.allowed_tools = vec!["Bash".to_owned()]);
        assert_eq!(rights(tools, None), [Right::AllowedTools]);
        let fallback = grants(|it| it.fallback = vec!["cmd:sh".to_owned()]);
        assert_eq!(rights(fallback, None), [Right::Command]);
        let arguments = grants(|it| it.cli_arguments = true);
        assert_eq!(rights(arguments, None), [Right::Unknown]);
        // A session of a version that did not record them.
        assert_eq!(rights(None, None), [Right::Unknown]);
        assert_eq!(
            rights(None, Some(PermissionMode::Bypass)),
            [Right::Bypass, Right::Unknown]
        );
    }
}
