//! An agent for services that start processes.

use std::path::PathBuf;
use std::sync::Arc;

use teamster_api::{RunService, RunSpec, SessionSpec, Spec, Worktree};

use super::{Behavior, Subject};

/// A shell script in place of Claude Code. Its prompts are those of [`ScriptedClaude`].
// Made by hand: what Claude Code prints for a prompt that it answers, asks about, or works at until it is stopped.
pub const CLAUDE: &str = r#"#!/bin/sh
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
init() { printf '{"type":"system","subtype":"init","session_id":"s","model":"opus"}\n'; }
text() { printf '{"type":"assistant","session_id":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "$1"; }
say() {
  text "$1"
  printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"result":"%s","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n' "$1"
}
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) exit 0 ;;
    *'"subtype":"interrupt"'*)
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)"
      printf '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","num_turns":1,"terminal_reason":"aborted_tools"}\n' ;;
    *'"type":"control_request"'*)
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)" ;;
    *'"behavior":"allow"'*) say allowed ;;
    *'"behavior":"deny"'*) say denied ;;
    *asks*)
      init
      printf '{"type":"assistant","session_id":"s","message":{"id":"w","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Write","input":{"file_path":"/x/a.txt","content":"one"}}]}}\n'
      printf '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"/x/a.txt","content":"one"},"tool_use_id":"t"}}\n' ;;
    *hangs*) init; text working ;;
    *writes*) init; echo new > new.txt; say written ;;
    *) init; say hello ;;
  esac
done
"#;

/// Returns a shell script in place of Claude Code, which does this with a prompt: the variable `line`. The functions `init`,
/// `text`, `result` and `say` print what Claude Code does, with the variable `id` as the session, and a second argument of
/// `text` as the message's id.
pub fn claude_that(does: &str) -> String {
    // Made by hand.
    const SCRIPT: &str = r#"#!/bin/sh
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
init() { printf '{"type":"system","subtype":"init","session_id":"%s","model":"opus"}\n' "${id:-s}"; }
text() { printf '{"type":"assistant","session_id":"%s","message":{"id":"%s","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "${id:-s}" "${2:-m}" "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":false,"session_id":"%s","num_turns":1,"result":"%s","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n' "${id:-s}" "$1"; }
say() { text "$1"; result "$1"; }
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) exit 0 ;;
    *'"type":"control_request"'*)
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)" ;;
    *)
      DOES ;;
  esac
done
"#;
    SCRIPT.replace("DOES", does)
}

/// A service whose agent `claude` is the program [`CLAUDE`].
pub struct ScriptedClaude {
    service: Arc<dyn RunService>,
    repository: Option<PathBuf>,
}

teamster_core::debug_fields!(ScriptedClaude {});

impl ScriptedClaude {
    /// Creates the subject of a service, whose machine has the program.
    pub fn new(service: Arc<dyn RunService>) -> Self {
        Self {
            service,
            repository: None,
        }
    }

    /// Includes the checks of workspaces. They are made of this git repository of the machine.
    #[must_use]
    pub fn with_repository(mut self, repository: impl Into<PathBuf>) -> Self {
        self.repository = Some(repository.into());
        self
    }
}

impl Subject for ScriptedClaude {
    fn service(&self) -> Arc<dyn RunService> {
        self.service.clone()
    }

    fn run(&self, behavior: Behavior) -> Spec {
        RunSpec::new("claude", self.prompt(behavior)).into()
    }

    fn session(&self) -> Option<SessionSpec> {
        Some(SessionSpec::new("claude"))
    }

    fn writing(&self) -> Option<RunSpec> {
        let mut spec = RunSpec::new("claude", "writes");
        spec.working_directory = Some(self.repository.clone()?);
        spec.worktree = Some(Worktree::Switch(true));
        Some(spec)
    }

    fn prompt(&self, behavior: Behavior) -> String {
        let prompt = match behavior {
            Behavior::Answers => "answers",
            Behavior::Asks => "asks",
            Behavior::Hangs => "hangs",
        };
        prompt.to_owned()
    }
}
