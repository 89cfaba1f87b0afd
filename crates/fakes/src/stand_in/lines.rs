//! Lines of Claude Code 2.1.197: hand-made after recorded ones, with the fields that readers need.

use serde_json::{Value, json};
use teamster_core::time::epoch_ms;

use super::witness::iso;

/// Tokens of one answer of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
}

impl Tokens {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
        }
    }

    /// Returns a price in millionths of a dollar, for exact sums.
    pub(super) fn micro_usd(self) -> u64 {
        self.input + 5 * self.output
    }

    pub(super) fn usd(self) -> f64 {
        f64::from(u32::try_from(self.micro_usd()).unwrap_or(u32::MAX)) / 1e6
    }

    /// Returns the JSON form of the model's service.
    pub(super) fn of_the_service(self) -> Value {
        json!({
            "input_tokens": self.input,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cache_read,
            "output_tokens": self.output,
            "service_tier": "standard",
        })
    }

    /// Returns the JSON form that the CLI uses for a process.
    fn of_a_model(self) -> Value {
        json!({
            "inputTokens": self.input,
            "outputTokens": self.output,
            "cacheReadInputTokens": self.cache_read,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": self.usd(),
            "contextWindow": 1_000_000,
            "maxOutputTokens": 64_000,
        })
    }
}

/// Context of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) session: &'a str,
    pub(super) model: &'a str,
    pub(super) folder: &'a str,
}

impl At<'_> {
    pub(super) fn init(self, uuid: &str) -> Value {
        json!({
            "type": "system",
            "subtype": "init",
            "cwd": self.folder,
            "session_id": self.session,
            "tools": ["Task", "Bash", "Edit", "Read", "Skill", "Write"],
            "mcp_servers": [],
            "model": self.model,
            "permissionMode": "bypassPermissions",
            "slash_commands": ["clear", "compact", "context"],
            "apiKeySource": "ANTHROPIC_API_KEY",
            "claude_code_version": "2.1.197",
            "output_style": "default",
            "agents": [],
            "skills": [],
            "plugins": [],
            "uuid": uuid,
        })
    }

    pub(super) fn status(self, uuid: &str) -> Value {
        json!({
            "type": "system",
            "subtype": "status",
            "status": "requesting",
            "uuid": uuid,
            "session_id": self.session,
        })
    }

    pub(super) fn stream(self, event: &Value, uuid: &str) -> Value {
        json!({
            "type": "stream_event",
            "event": event,
            "session_id": self.session,
            "parent_tool_use_id": null,
            "uuid": uuid,
        })
    }

    /// Returns a line with one block of the model's answer. Its output tokens are not those of the whole
    /// answer.
    pub(super) fn assistant(self, id: &str, block: &Value, tokens: Tokens, uuid: &str) -> Value {
        let mut usage = tokens;
        usage.output = 1;
        json!({
            "type": "assistant",
            "message": {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [block],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage.of_the_service(),
            },
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": uuid,
        })
    }

    pub(super) fn user(self, content: &Value, uuid: &str) -> Value {
        json!({
            "type": "user",
            "message": {"role": "user", "content": content},
            "parent_tool_use_id": null,
            "session_id": self.session,
            "uuid": uuid,
        })
    }

    pub(super) fn result(self, end: End<'_>, uuid: &str) -> Value {
        let mut line = json!({
            "type": "result",
            "subtype": if end.interrupted { "error_during_execution" } else { "success" },
            "is_error": end.interrupted,
            "duration_ms": end.ms,
            "duration_api_ms": end.ms,
            "num_turns": end.turns,
            "stop_reason": if end.turns == 0 || end.interrupted { Value::Null } else { json!("end_turn") },
            "session_id": self.session,
            "total_cost_usd": end.total.usd(),
            "usage": end.usage.of_the_service(),
            "modelUsage": {},
            "permission_denials": [],
            "uuid": uuid,
        });
        if end.total != Tokens::default() {
            line["modelUsage"][self.model] = end.total.of_a_model();
        }
        if end.interrupted {
            line["terminal_reason"] = json!("aborted_streaming");
        } else {
            line["result"] = json!(end.text);
            if end.turns > 0 {
                line["terminal_reason"] = json!("completed");
            }
        }
        line
    }

    /// Returns a line of the CLI's own record of the session.
    pub(super) fn written(self, id: &str, block: &Value, tokens: Tokens, uuid: &str) -> Value {
        json!({
            "parentUuid": null,
            "isSidechain": false,
            "message": {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [block],
                "stop_reason": "end_turn",
                "usage": tokens.of_the_service(),
            },
            "requestId": format!("req_{id}"),
            "type": "assistant",
            "uuid": uuid,
            "timestamp": iso(epoch_ms()),
            "cwd": self.folder,
            "sessionId": self.session,
            "version": "2.1.197",
        })
    }
}

/// The end of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct End<'a> {
    pub(super) text: &'a str,
    pub(super) interrupted: bool,
    pub(super) ms: u64,
    /// Number of turns; 0 if the model was not called.
    pub(super) turns: u64,
    /// Usage of this turn.
    pub(super) usage: Tokens,
    /// Usage of the process.
    pub(super) total: Tokens,
}

/// Returns the answer to a control request.
pub(super) fn response(id: &str, response: Option<Value>) -> Value {
    let mut line = json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": id},
    });
    if let Some(response) = response {
        line["response"]["response"] = response;
    }
    line
}

/// Returns the error result for an unknown session.
pub(super) fn unknown(session: &str, uuid: &str) -> Value {
    json!({
        "type": "result",
        "subtype": "error_during_execution",
        "duration_ms": 0,
        "duration_api_ms": 0,
        "is_error": true,
        "num_turns": 0,
        "stop_reason": null,
        "session_id": session,
        "total_cost_usd": 0,
        "usage": Tokens::default().of_the_service(),
        "modelUsage": {},
        "permission_denials": [],
        "uuid": uuid,
        "errors": [unknown_words(session)],
    })
}

/// Returns the error message for an unknown session.
pub(super) fn unknown_words(session: &str) -> String {
    format!("No conversation found with session ID: {session}")
}
