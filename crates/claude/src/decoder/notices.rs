//! Classification of informational lines: notices for the user, and bookkeeping.

use std::borrow::Cow;

use teamster_core::NoticeLevel;
use teamster_core::provider::json_line::parse;
use teamster_core::text::excerpt;

use super::NOTICE_BYTES;
use super::system::word;
use super::wire::{ActiveGoal, OsNotification, RefusalContinuation, SystemLine};

/// Returns the notice of a line. `None` for an unknown subtype; an empty text is no notice.
pub(super) fn notice(line: &SystemLine<'_>) -> Option<(NoticeLevel, String)> {
    let subtype = line.subtype.as_deref()?;
    let level = match subtype {
        "informational" if line.level.as_deref() != Some("warning") => NoticeLevel::Info,
        "informational"
        | "file_attachments_missing"
        | "instruction_size_warning"
        | "mirror_error"
        | "model_refusal_no_fallback"
        | "plugin_install"
        | "session_writes_lost"
        | "worker_shutting_down" => NoticeLevel::Warning,
        _ => NoticeLevel::Info,
    };
    Some((level, excerpt(&text(subtype, line)?, NOTICE_BYTES)))
}

fn text(subtype: &str, line: &SystemLine<'_>) -> Option<String> {
    let or_empty = |text: &Option<Cow<'_, str>>| text.as_deref().unwrap_or_default().to_owned();
    let reason = or_empty(&line.reason);
    Some(match subtype {
        "notification" => or_empty(&line.text),
        "informational" | "away_summary" | "permission_retry" | "scheduled_task_fire" => {
            or_empty(&line.content)
        }
        // The result only reports the refusal; the reason is here.
        "model_refusal_no_fallback" => or_empty(&line.api_refusal_explanation),
        "vcs_state_changed" => {
            let branch = line.branch.as_deref();
            let branch = branch.map_or_else(String::new, |branch| format!(" on {branch}"));
            let kind = line.kind.as_deref().unwrap_or("change");
            format!("git {kind}{branch} in {}", or_empty(&line.cwd))
        }
        "code_change_published" => {
            let action = line.action.as_deref().unwrap_or("published");
            format!("code change {action}: {}", or_empty(&line.url))
        }
        "session_title_changed" => format!("the session's title is: {}", or_empty(&line.title)),
        "agents_killed" => "the agents in the background were stopped".to_owned(),
        "memory_saved" => format!("memory saved: {}", line.written_paths.join(", ")),
        "feedback_draft_queued" => {
            format!("a draft of feedback was saved: {}", or_empty(&line.title))
        }
        "turn_preempted" => format!("the turn was stopped for the next message ({reason})"),
        "instruction_size_warning" => format!(
            "the instruction files have {} characters; at most {} are recommended",
            line.total_chars.unwrap_or_default(),
            line.total_limit_chars.unwrap_or_default()
        ),
        "plugin_install" if line.status.as_deref() == Some("failed") => {
            let error = line.error.and_then(word).unwrap_or_default();
            let name = line.name.as_deref().unwrap_or("unnamed");
            format!("the plugins of {name} could not be installed: {error}")
        }
        "mirror_error" => {
            let error = line.error.and_then(word).unwrap_or_default();
            format!("a part of the transcript was not stored: {error}")
        }
        "session_writes_lost" => format!(
            "the disk is full, and this was not saved: {}",
            line.lost.join(", ")
        ),
        "file_attachments_missing" => "files of the message could not be loaded".to_owned(),
        "worker_shutting_down" => format!("the CLI shuts down: {reason}"),
        "ui_log" | "ui_notify" | "ui_toast" => {
            let plugin = line.plugin.as_deref().unwrap_or("a plugin");
            let text = line.text.as_deref().or(line.title.as_deref());
            format!("{plugin}: {}", text.unwrap_or_default())
        }
        // Every `api_error` is accompanied by an `api_retry`.
        "api_error" | "plugin_install" => String::new(),
        _ if BOOKKEEPING.contains(&subtype) => String::new(),
        _ => return None,
    })
}

/// Subtypes for progress and bookkeeping. `thinking` repeats streamed text. The `ui_` lines concern plugins in the
/// CLI's own screens.
const BOOKKEEPING: &[&str] = &[
    "background_tasks_changed",
    "cloud_session_delta",
    "commands_changed",
    "control_request_progress",
    "dev_intent",
    "elicitation_complete",
    "file_snapshot",
    "files_persisted",
    "hook_progress",
    "hook_started",
    "inherited_asks_settled",
    "late_allow_not_run",
    "memory_recall",
    "peer_message_hold",
    "per_turn_effort_changed",
    "permission_check_status",
    "post_turn_summary",
    "session_metadata",
    "shell_cwd",
    "stop_hook_summary",
    "task_list_statuses",
    "task_progress",
    "task_summary",
    "thinking",
    "thinking_tokens",
    "turn_duration",
    "turn_handoff_available",
    "ui_focus",
    "ui_invalidate",
    "ui_notify_cancel",
    "ui_panes",
    "ui_placed",
    "ui_scroll",
    "ui_status",
    "upgrade_relay_marker",
];

/// Types of lines without events: responses to the caller, the state of its messages, keep-alives, and data for the
/// CLI's own screens. The content of an `attachment` is also in the result.
const SILENT: &[&str] = &[
    "apply_flag_settings",
    "attachment",
    "auth_status",
    "autocompact_state",
    "command_lifecycle",
    "control_cancel_request",
    "control_response",
    "conversation_reset",
    "hint_clears",
    "interruptible_tool_in_progress",
    "keep_alive",
    "open_message_selector",
    "prompt_suggestion",
    "response_length",
    "set_expanded_view",
    "set_in_progress_tool_use_ids",
    "stream_mode",
    "tool_use_summary",
    "transcript_mirror",
];

/// Returns whether lines of this type have no events.
pub(super) fn is_silent(kind: &str) -> bool {
    SILENT.contains(&kind)
}

/// Returns the notice of a line for the CLI's own screens. `None` for an unknown type.
pub(super) fn of_surface(kind: &str, text: &str) -> Option<String> {
    let message = match kind {
        "os_notification" => parse::<OsNotification<'_>>(text)?.message.into_owned(),
        "active_goal" => match parse::<ActiveGoal<'_>>(text)?.value {
            Some(goal) => {
                let reason = goal.last_reason.as_deref().unwrap_or("not looked at yet");
                let (goal, rounds) = (goal.condition, goal.iterations);
                format!("goal not met yet, round {rounds}: {goal}: {reason}")
            }
            None => "the goal is met, or no longer pursued".to_owned(),
        },
        "refusal_continuation" if parse::<RefusalContinuation<'_>>(text)?.phase == "begin" => {
            "the model refused, and is asked again".to_owned()
        }
        "refusal_continuation" => String::new(),
        _ => return None,
    };
    Some(excerpt(&message, NOTICE_BYTES))
}
