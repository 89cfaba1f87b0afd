//! Lines about the session, and lines for a person.

use teamster_core::provider::Events;
use teamster_core::provider::json_line::parse;
use teamster_core::{Decision, NoticeCode, NoticeLevel, NoticeSource, PermissionEvent, RateLimit};

use super::CopilotDecoder;
use super::wire::{
    CallUsage, Line, McpServer, McpServers, MessageLine, NotificationKind, PermissionLine,
    QuotaLine,
};

impl CopilotDecoder {
    /// Handles a line of these types. Returns `None` for other types.
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
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                if line.agent.get().is_none()
                    && let Some(model) = line.data.model.get()
                {
                    self.session.model_is(model, out);
                }
            }
            "session.model_change" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                if line.agent.get().is_none()
                    && let Some(model) = line.data.new_model.get()
                {
                    self.session.model_is(model, out);
                }
            }
            "session.info" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                let reported = match line.data.info_type.text() {
                    // It follows each retry, which has the same in more detail.
                    "model_retry" => self.lanes[lane].retries > 0,
                    // The result of the call that created the file, or `abort`, reports the same.
                    "file_created" | "cancellation" => true,
                    _ => false,
                };
                if !reported {
                    say(NoticeLevel::Info, line.data.message.text().to_owned());
                }
            }
            "session.warning" | "session.managed_settings_enforced" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                say(NoticeLevel::Warning, line.data.message.text().to_owned());
            }
            "session.autopilot_stopped" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let reason = line.data.reason.get().unwrap_or("unknown");
                say(NoticeLevel::Info, format!("autopilot stopped: {reason}"));
            }
            // Autopilot only. The call of the tool with that name has the summary.
            "session.task_complete" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                if line.data.success == Some(false) {
                    let reason = line.data.reason.get().unwrap_or("no reason given");
                    let message = format!("the task was not completed: {reason}");
                    say(NoticeLevel::Warning, message);
                }
            }
            "session.compaction_start" => {
                out.coded_notice(
                    NoticeCode::CompactionStarted,
                    NoticeLevel::Info,
                    NoticeSource::Stdout,
                    "the CLI compacts the conversation",
                );
            }
            "session.compaction_complete" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let (code, level, message) = match line.data.success {
                    Some(false) => (
                        NoticeCode::CompactionFailed,
                        NoticeLevel::Warning,
                        "the CLI could not compact the conversation",
                    ),
                    _ => (
                        NoticeCode::Compacted,
                        NoticeLevel::Info,
                        "the CLI compacted the conversation",
                    ),
                };
                out.coded_notice(code, level, NoticeSource::Stdout, message);
            }
            "session.truncation" => {
                let message = "the CLI dropped older messages from the conversation";
                say(NoticeLevel::Warning, message.into());
            }
            "hook.end" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                if line.data.success == Some(false) {
                    let error = line.data.error.map_or("", |error| error.get());
                    say(NoticeLevel::Warning, format!("a hook failed: {error}"));
                }
            }
            "system.notification" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                self.background.notified(&line.data.kind);
                if let Some(message) = failed_in_background(&line.data.kind) {
                    say(NoticeLevel::Warning, message);
                }
            }
            "session.model_deselected" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let model = line.data.previous_model.text();
                say(
                    NoticeLevel::Warning,
                    format!("the model {model} is no longer available"),
                );
            }
            "session.auto_tier_switch_failed" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
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
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let server = line.data.server_name.text();
                let message = format!("the MCP server {server} is not connected any more");
                say(NoticeLevel::Warning, message);
            }
            "mcp.oauth_required" => {
                let line: Line<'_, MessageLine<'_>> = parse(text)?;
                let server = line.data.server_name.text();
                let message = format!("the MCP server {server} requires a login");
                say(NoticeLevel::Warning, message);
            }
            // Never seen in one-shot runs, which could not answer them.
            "auto_mode_switch.requested"
            | "elicitation.requested"
            | "exit_plan_mode.requested"
            | "external_tool.requested"
            | "sampling.requested"
            | "user_input.requested" => {
                let message =
                    format!("the CLI waits for an answer to {kind}, which a run cannot give");
                say(NoticeLevel::Warning, message);
            }
            "permission.requested" => self.permission_requested(&parse(text)?, out),
            // The result of the call reports the outcome.
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

    /// Handles the state of an MCP server, of the session or of a single sub-agent.
    fn server_is(&mut self, of_session: bool, server: &McpServer<'_>, out: &mut Events) {
        self.calls.servers.know(server.name.text());
        if of_session {
            self.session.server_is(server, out);
        } else {
            self.session.server_of_agent_is(server, out);
        }
    }

    /// Reports a permission request. It was never seen in a run, and a run could not answer it.
    fn permission_requested(&mut self, line: &Line<'_, PermissionLine<'_>>, out: &mut Events) {
        let request = &line.data.permission_request;
        let lane = self.lane(line.agent.get(), None);
        let call = request
            .tool_call_id
            .get()
            .and_then(|id| self.calls.find(lane, id));
        let name = call.map_or_else(|| request.kind.text(), |call| &call.name);
        out.push(
            PermissionEvent::new(name.to_owned(), Decision::Requested)
                .tool_id(call.map(|call| call.id.clone()))
                .reason(request.intention.get().map(str::to_owned)),
        );
    }
}

/// Describes background work that failed.
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

/// Reports the state of an account's quota.
fn quota(line: &Line<'_, QuotaLine<'_>>, out: &mut Events) {
    let quota = &line.data.observation;
    let utilization = match (quota.available_quantity, quota.entitled_quantity) {
        (Some(left), Some(all)) if all > 0.0 => Some((1.0 - left / all).clamp(0.0, 1.0)),
        _ => None,
    };
    out.push(
        RateLimit::new(quota.access_state.text().to_owned())
            .kind(quota.id.get().map(str::to_owned))
            .utilization(utilization),
    );
}

/// Returns whether lines of this type are of no use to a user: pieces of what also comes complete, signs of life, and
/// the CLI's own bookkeeping.
pub(super) fn is_noise(kind: &str) -> bool {
    matches!(
        kind,
        "session.background_tasks_changed"
            | "assistant.message_start"
            | "assistant.streaming_delta"
            | "assistant.intent"
            | "assistant.server_tool_progress"
            | "tool.execution_partial_result"
            | "tool.execution_progress"
            | "user.message"
            | "system.message"
            | "model.call_final_result"
            | "model.log"
            | "model.message"
            | "model.messages_snapshot"
            | "model.model_call_failure"
            | "model.model_call_started"
            | "model.model_call_success"
            | "model.response"
            | "model.tool_execution"
            | "model.turn_ended"
            // Of 1.0.81 and older. The following `session.error` has the reason.
            | "model.turn_failed"
            | "model.turn_started"
            | "agent.interrupted"
            | "subagent.configured"
            | "subagent.selected"
            | "subagent.deselected"
            | "session.skills_loaded"
            | "session.custom_agents_updated"
            | "session.mcp_server_tools_loaded"
            | "session.mode_notice_delivered"
            | "session.mode_changed"
            | "session.permissions_changed"
            | "session.resume"
            | "session.usage_record"
            | "session.usage_info"
            | "session.usage_checkpoint"
            | "session.title_changed"
            | "session.todos_changed"
            | "session.idle"
            | "hook.start"
            | "hook.progress"
            | "tool_search.activated"
            | "pending_messages.modified"
            | "commands.changed"
            | "capabilities.changed"
    ) || is_of_the_schema_only(kind)
}

/// Returns whether a type is only in the schema of 1.0.102 and in no recorded run.
fn is_of_the_schema_only(kind: &str) -> bool {
    matches!(
        kind,
        // Outcomes of requests, and requests to a user interface.
        "auto_mode_switch.completed"
            | "command.completed"
            | "command.execute"
            | "command.queued"
            | "elicitation.completed"
            | "exit_plan_mode.completed"
            | "external_tool.completed"
            | "human_response.recorded"
            | "mcp.headers_refresh_completed"
            | "mcp.headers_refresh_required"
            | "mcp.oauth_completed"
            | "mcp.oauth_recovery_completed"
            | "sampling.completed"
            | "session_limits_exhausted.completed"
            | "tool.user_requested"
            | "ui.ephemeral_query"
            | "user_input.completed"
            // State of the session and its environment.
            | "mcp.prompts.list_changed"
            | "mcp.resources.list_changed"
            | "mcp.tools.list_changed"
            | "mcp_app.tool_call_complete"
            | "sandbox.decision"
            | "session.auto_mode_resolved"
            | "session.auto_tier_recommendation"
            | "session.autopilot_objective_changed"
            | "session.binary_asset"
            | "session.canvas.closed"
            | "session.canvas.opened"
            | "session.canvas.recorded"
            | "session.canvas.registry_changed"
            | "session.canvas.removed"
            | "session.canvas.unavailable"
            | "session.completion_receipt"
            | "session.context_changed"
            | "session.custom_notification"
            | "session.extensions.attachments_pushed"
            | "session.extensions_loaded"
            | "session.handoff"
            | "session.indexed_search"
            | "session.managed_plugin_progress"
            | "session.managed_settings_resolved"
            | "session.memory_changed"
            | "session.permission_recovery"
            | "session.plan_changed"
            | "session.remote_steerable_changed"
            | "session.request_body_compression_disabled"
            | "session.schedule_cancelled"
            | "session.schedule_created"
            | "session.schedule_rearmed"
            | "session.session_limits_changed"
            | "session.snapshot_rewind"
            | "session.workspace_file_changed"
            | "skill.context_delivered"
            | "skill.context_delivered_ref"
            | "skill.invoked"
            | "skill.invoked_ref"
            | "workflow.run_settled"
            | "workflow.run_started"
            | "workflow.run_updated"
            // Written only by earlier versions.
            | "permission.assentDetected"
            | "permission.carriedForward"
            | "permission.contextualAuthorization"
            | "permission.messageAuthorization"
            | "permission.messageAuthorizationDegraded"
            | "permission.messageAuthorizationRead"
            // Several models that answer one prompt.
            | "assistant.fusion_phase_activity"
            | "assistant.fusion_phase_completed"
            | "assistant.fusion_phase_failed"
            | "assistant.fusion_phase_started"
            | "session.fusion_change_checkpoint"
            | "session.fusion_commit_started"
            | "session.fusion_completed"
            | "session.fusion_handoff"
            | "session.fusion_resolved"
            | "session.fusion_route_failed"
            | "session.fusion_route_started"
    )
}
