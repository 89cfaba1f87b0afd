//! Lines about the session, and those that have something to say to a person.

use teamster_core::provider::Events;
use teamster_core::provider::json_line::parse;
use teamster_core::{AgentEvent, Decision, NoticeLevel, NoticeSource, Permission, RateLimit};

use super::CopilotDecoder;
use super::wire::{
    CallUsage, Line, McpServer, McpServers, NotificationKind, PermissionLine, QuotaLine, Said,
};

impl CopilotDecoder {
    /// Takes a line of these types. `None` if it is of another.
    pub(super) fn notice(&mut self, kind: &str, text: &str, out: &mut Events) -> Option<()> {
        let mut say = |level, message: String| {
            out.notice(level, NoticeSource::Stdout, message);
        };
        match kind {
            "session.mcp_servers_loaded" => {
                let line: Line<'_, McpServers<'_>> = parse(text)?;
                let of_session = line.agent.get().is_none();
                for server in &line.data.servers {
                    self.server_is(of_session, server, out);
                }
                if of_session {
                    self.session.servers_are_known(out);
                }
            }
            "session.mcp_server_status_changed" => {
                let line: Line<'_, McpServer<'_>> = parse(text)?;
                self.server_is(line.agent.get().is_none(), &line.data, out);
            }
            "session.tools_updated" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                if line.agent.get().is_none()
                    && let Some(model) = line.data.model.get()
                {
                    self.session.model_is(model, out);
                }
            }
            "session.model_change" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                if line.agent.get().is_none()
                    && let Some(model) = line.data.new_model.get()
                {
                    self.session.model_is(model, out);
                }
            }
            "session.info" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                let told = match line.data.info_type.text() {
                    // It comes after each retry, which says the same in more detail.
                    "model_retry" => self.lanes[lane].retries > 0,
                    // The result of the call that made the file says so too, and `abort`.
                    "file_created" | "cancellation" => true,
                    _ => false,
                };
                if !told {
                    say(NoticeLevel::Info, line.data.message.text().to_owned());
                }
            }
            "session.warning" | "session.managed_settings_enforced" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                say(NoticeLevel::Warning, line.data.message.text().to_owned());
            }
            "session.autopilot_stopped" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let reason = line.data.reason.get().unwrap_or("unknown");
                say(NoticeLevel::Info, format!("autopilot stopped: {reason}"));
            }
            // Autopilot only. The call of the tool of that name has the summary.
            "session.task_complete" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                if line.data.success == Some(false) {
                    let reason = line.data.reason.get().unwrap_or("no reason given");
                    let message = format!("the task was not completed: {reason}");
                    say(NoticeLevel::Warning, message);
                }
            }
            "session.compaction_start" => {
                say(
                    NoticeLevel::Info,
                    "the CLI compacts the conversation".into(),
                );
            }
            "session.compaction_complete" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                if line.data.success == Some(false) {
                    let message = "the CLI could not compact the conversation";
                    say(NoticeLevel::Warning, message.into());
                }
            }
            "session.truncation" => {
                let message = "the CLI dropped older messages from the conversation";
                say(NoticeLevel::Warning, message.into());
            }
            "hook.end" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                if line.data.success == Some(false) {
                    let error = line.data.error.map_or("", |error| error.get());
                    say(NoticeLevel::Warning, format!("a hook failed: {error}"));
                }
            }
            "system.notification" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                self.background.notified(&line.data.kind);
                if let Some(message) = failed_in_background(&line.data.kind) {
                    say(NoticeLevel::Warning, message);
                }
            }
            "session.model_deselected" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let model = line.data.previous_model.text();
                say(
                    NoticeLevel::Warning,
                    format!("the model {model} is no longer available"),
                );
            }
            "session.auto_tier_switch_failed" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let reason = line.data.reason.get().unwrap_or("no reason given");
                say(
                    NoticeLevel::Warning,
                    format!("the CLI could not switch models: {reason}"),
                );
            }
            "session.context_cleared" => {
                say(NoticeLevel::Info, "the conversation was cleared".into());
            }
            "session_limits_exhausted.requested" => {
                let message = "the session's limit of AI credits is used up";
                say(NoticeLevel::Warning, message.into());
            }
            "session.mcp_server_needs_reconnect" | "session.mcp_server_removed" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let server = line.data.server_name.text();
                let message = format!("the MCP server {server} is not connected any more");
                say(NoticeLevel::Warning, message);
            }
            "mcp.oauth_required" => {
                let line: Line<'_, Said<'_>> = parse(text)?;
                let server = line.data.server_name.text();
                let message = format!("the MCP server {server} wants somebody to log in");
                say(NoticeLevel::Warning, message);
            }
            // In one-shot runs they were never seen, and nobody could answer.
            "auto_mode_switch.requested"
            | "elicitation.requested"
            | "exit_plan_mode.requested"
            | "external_tool.requested"
            | "sampling.requested"
            | "user_input.requested" => {
                let message =
                    format!("the CLI waits for an answer to {kind}, which nobody can give");
                say(NoticeLevel::Warning, message);
            }
            "permission.requested" => self.permission_requested(&parse(text)?, out),
            // What became of it is told by the call's result.
            "permission.completed" => {}
            "session.quota_observation" => quota(&parse(text)?, out),
            "assistant.usage" => {
                let line: Line<'_, CallUsage<'_>> = parse(text)?;
                let main = line.agent.get().is_none();
                self.ending.spent(main, &line.data, out);
            }
            _ => return None,
        }
        Some(())
    }

    /// How an MCP server is: one of the session, or of a sub-agent alone.
    fn server_is(&mut self, of_session: bool, server: &McpServer<'_>, out: &mut Events) {
        self.calls.servers.know(server.name.text());
        if of_session {
            self.session.server_is(server, out);
        } else {
            self.session.server_of_agent_is(server, out);
        }
    }

    /// The CLI asks. In one-shot runs it was never seen to, and nobody could answer.
    fn permission_requested(&mut self, line: &Line<'_, PermissionLine<'_>>, out: &mut Events) {
        let request = &line.data.permission_request;
        let lane = self.lane(line.agent.get(), None);
        let call = request
            .tool_call_id
            .get()
            .and_then(|id| self.calls.find(lane, id));
        let name = call.map_or_else(|| request.kind.text(), |call| &call.name);
        out.push(AgentEvent::Permission(Box::new(
            Permission::new(name.to_owned(), Decision::Requested)
                .tool_id(call.map(|call| call.id.clone()))
                .reason(request.intention.get().map(str::to_owned)),
        )));
    }
}

/// Work in the background that did not end well.
fn failed_in_background(kind: &NotificationKind<'_>) -> Option<String> {
    let what = kind.description.text();
    match kind.kind.get()? {
        "shell_completed" => {
            let code = kind.exit_code.filter(|code| *code != 0)?;
            Some(format!(
                "the command {what:?} in the background ended with exit code {code}"
            ))
        }
        "agent_completed" if kind.status.get() == Some("failed") => {
            Some(format!("the agent {what:?} in the background failed"))
        }
        _ => None,
    }
}

/// The state of an account's quota.
fn quota(line: &Line<'_, QuotaLine<'_>>, out: &mut Events) {
    let quota = &line.data.observation;
    let utilization = match (quota.available_quantity, quota.entitled_quantity) {
        (Some(left), Some(all)) if all > 0.0 => Some((1.0 - left / all).clamp(0.0, 1.0)),
        _ => None,
    };
    out.push(AgentEvent::RateLimit(Box::new(
        RateLimit::new(quota.access_state.text().to_owned())
            .kind(quota.id.get().map(str::to_owned))
            .utilization(utilization),
    )));
}
