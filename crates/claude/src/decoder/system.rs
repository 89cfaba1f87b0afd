//! `system` lines: session, retries, hooks and background work.

use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::{parse, repaired};
use teamster_core::text::excerpt;
use teamster_core::{
    ErrorKind, Id, McpServerStatus, NoticeCode, NoticeLevel, NoticeSource, Retry, SessionStarted,
};

use super::errors::Evidence;
use super::notices::notice;
use super::wire::{McpServerLine, SubAgentRetry, SystemLine};
use super::{ClaudeDecoder, NOTICE_BYTES};

impl ClaudeDecoder {
    /// Decodes a `system` line. `None` for an unknown subtype.
    pub(super) fn system(&mut self, line: SystemLine<'_>, out: &mut Events) -> Option<()> {
        match line.subtype.as_deref()? {
            "init" => self.init(line, out),
            "status" => status(&line, out),
            "compact_boundary" => compacted(&line, out),
            "api_retry" => retry(&line, self.has_fixed_key, out),
            "hook_response" => hook_response(&line, out),
            "task_started" => self.background.started(&line),
            "task_notification" => {
                self.background.ended(&line);
                if let (Some(status), Some(summary)) = (line.status.as_deref(), &line.summary)
                    && status != "completed"
                {
                    let text = excerpt(&format!("{summary} ({status})"), NOTICE_BYTES);
                    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, text);
                }
            }
            "task_updated" => self.background.updated(&line),
            "session_state_changed" => {
                if line.state.as_deref() == Some("idle") {
                    self.background.idle();
                }
            }
            "permission_denied" => self.denied(
                line.tool_name.as_deref(),
                line.tool_use_id.as_deref(),
                line.message.as_deref(),
                out,
            ),
            "model_fallback" | "model_refusal_fallback" | "model_consent_fallback" => {
                let text = line.content.as_deref().unwrap_or("another model answers");
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, text);
                if let (Some(model), Some(session)) = (line.fallback_model, &self.session) {
                    let session = session.clone().model(model);
                    self.session_is(session, out);
                }
            }
            // The following result is that error.
            "informational" if line.prevent_continuation => {
                self.blocked = Some(line.content.unwrap_or_default().into_owned());
            }
            "local_command_output" => {
                let text = line.content.as_deref().unwrap_or_default();
                self.lanes[0].emit_plain(text, out);
            }
            _ => {
                let (level, text) = notice(&line)?;
                if !text.is_empty() {
                    out.notice(level, NoticeSource::Stdout, text);
                }
            }
        }
        Some(())
    }

    fn init(&mut self, line: SystemLine<'_>, out: &mut Events) {
        self.background.turn_begins();
        if let Some(commands) = line.slash_commands {
            self.commands = commands;
        }
        let source = line.api_key_source.as_deref();
        self.has_fixed_key =
            source.is_some_and(|source| !matches!(source, "none" | "apiKeyHelper"));
        let mut mcp_servers = Vec::new();
        let mut odd_servers = Vec::new();
        // An unreadable server must not hide the others.
        let servers = line.mcp_servers.unwrap_or_default().into_iter();
        for McpServerLine { name, status } in servers.filter_map(|s| parse(repaired(s).get())) {
            match status {
                Some(status) => mcp_servers.push(McpServerStatus::new(name, status)),
                None => odd_servers.push(name),
            }
        }
        let session = SessionStarted::new(Id::from(line.session_id.unwrap_or_default()))
            .model(line.model)
            .tools(line.tools)
            .mcp_servers(Some(mcp_servers).filter(|servers| !servers.is_empty()));
        // Every turn begins with `init`; emit only changes.
        if self.session.as_ref() == Some(&session) {
            return;
        }
        if self.session.is_none()
            && let Some(version) = &line.claude_code_version
            && !crate::INFO.tested_versions.contains(&version.as_ref())
        {
            let message = format!(
                "Claude Code {version} is untested: it should work, new event types show as `unknown`"
            );
            let code = NoticeCode::UntestedVersion;
            out.coded_notice(code, NoticeLevel::Info, NoticeSource::Runtime, message);
        }
        let listed = session.mcp_servers.as_deref().unwrap_or_default();
        let missing = self.servers.missing(listed, &odd_servers);
        self.session_is(session, out);
        for (server, why) in missing {
            let message = format!("the MCP server {server} {why}, so its tools are missing");
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }
}

fn status(line: &SystemLine<'_>, out: &mut Events) {
    if line.status.as_deref() == Some("compacting") {
        let message = "the conversation is being compacted";
        let code = NoticeCode::CompactionStarted;
        out.coded_notice(code, NoticeLevel::Info, NoticeSource::Stdout, message);
    }
    if let Some(error) = &line.compact_error {
        let message = format!("the conversation could not be compacted: {error}");
        let code = NoticeCode::CompactionFailed;
        out.coded_notice(code, NoticeLevel::Warning, NoticeSource::Stdout, message);
    }
}

fn compacted(line: &SystemLine<'_>, out: &mut Events) {
    let details = line.compact_metadata.as_ref();
    let trigger = details.and_then(|d| d.trigger.as_deref());
    let tokens = details.and_then(|d| d.pre_tokens);
    let trigger = trigger.map_or_else(String::new, |trigger| format!(" ({trigger})"));
    let tokens = tokens.map_or_else(String::new, |tokens| format!("; it had {tokens} tokens"));
    let message = format!("the conversation was compacted{trigger}{tokens}");
    let code = NoticeCode::Compacted;
    out.coded_notice(code, NoticeLevel::Info, NoticeSource::Stdout, message);
}

fn retry(line: &SystemLine<'_>, has_fixed_key: bool, out: &mut Events) {
    let word = line.error.and_then(word);
    let request = RetriedRequest {
        of: "",
        attempt: line.attempt.unwrap_or(1),
        max_attempts: line.max_retries,
        delay_ms: line.retry_delay_ms,
        status: line.error_status,
        word: word.as_deref(),
    };
    request.emit(has_fixed_key, out);
}

/// Handles a retry of a sub-agent's request.
pub(super) fn sub_agent_retry(line: &SubAgentRetry<'_>, has_fixed_key: bool, out: &mut Events) {
    let request = RetriedRequest {
        of: "a sub-agent: ",
        attempt: line.attempt,
        max_attempts: line.max_retries,
        delay_ms: line.retry_delay_ms,
        status: line.error_status,
        word: line.error_category.as_deref(),
    };
    request.emit(has_fixed_key, out);
}

/// A request to the model that the CLI retries.
struct RetriedRequest<'a> {
    /// Text before the message, if the request is not one of the main agent.
    of: &'static str,
    attempt: u32,
    max_attempts: Option<u32>,
    delay_ms: Option<f64>,
    /// HTTP status of the service's response.
    status: Option<u16>,
    /// The CLI's code for the failure.
    word: Option<&'a str>,
}

impl RetriedRequest<'_> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates, and a delay is far from the limits"
    )]
    fn emit(&self, has_fixed_key: bool, out: &mut Events) {
        let of = self.of;
        let what = self.word.unwrap_or("unknown");
        let message = match self.status {
            Some(status) => format!("{of}{what} (HTTP {status})"),
            None => format!("{of}{what} (no answer from the service)"),
        };
        let evidence = Evidence {
            status: self.status,
            word: self.word,
            is_retry: true,
            ..Evidence::default()
        };
        let mut error = evidence.error(message);
        // The CLI replaces the token of a login, or asks the helper again, before it retries.
        error.retryable |= error.kind == ErrorKind::Auth && self.attempt <= 1 && !has_fixed_key;
        out.push(
            Retry::new(self.attempt, error)
                .max_attempts(self.max_attempts)
                .delay_ms(self.delay_ms.map(|ms| ms.round() as u64)),
        );
    }
}

/// Returns the `error` of a line if it is a string, as in retries.
pub(super) fn word(raw: &RawValue) -> Option<String> {
    parse(repaired(raw).get())
}

fn hook_response(line: &SystemLine<'_>, out: &mut Events) {
    let exit_code = line.exit_code.unwrap_or(0);
    if exit_code == 0 && line.outcome.as_deref() != Some("error") {
        return;
    }
    let name = line.hook_name.as_deref().unwrap_or("unnamed");
    let output = line.output.as_deref().unwrap_or_default().trim();
    out.notice(
        NoticeLevel::Warning,
        NoticeSource::Stdout,
        format!(
            "the hook {name} ended with exit code {exit_code}: {}",
            excerpt(output, NOTICE_BYTES)
        ),
    );
}
