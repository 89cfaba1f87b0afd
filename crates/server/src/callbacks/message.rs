//! What is worth a message: a request that waits, the end of a run, and the end of a session's long turn. With
//! [`Sessions`](super::sessions::Sessions), the only place that decides it.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use teamster_api::{PendingRequest, RunKind, RunSummary as Run, ViewState};
use teamster_core::RunStatus;
use teamster_core::text::one_line;
use teamster_core::time::epoch_ms;

use crate::web_push::Notification;

/// The key of the message for the end of a run. Messages for requests have the request's id.
pub(super) const END: &str = "end";
/// The beginning of the key of the message for the end of a turn, whose number follows.
pub(super) const TURN: &str = "turn ";
/// The attempts to deliver the end of a run, over about an hour with exponential backoff.
const ATTEMPTS: usize = 10;
/// The attempts to deliver a request, over about two minutes: it may be answered by then.
const REQUEST_ATTEMPTS: usize = 5;
/// The type of the message for the end of a turn.
const AT_REST: &str = "session.at_rest";
/// The time for which a push service keeps a notification of a browser that it does not reach.
const KEPT: Duration = Duration::from_hours(24);
/// The maximum length of a notification's title, in characters. A message must fit a record.
const TITLE: usize = 200;
/// The maximum length of an agent's name in it, which may be a command.
const AGENT: usize = 100;

/// The body of a callback.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Message {
    r#type: &'static str,
    /// The time of the first attempt, in milliseconds since the Unix epoch.
    #[serde(rename = "atMs")]
    at_ms: u64,
    run: Arc<Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<PendingRequest>,
}

/// Returns the messages due for the run's current state, each with its key. `rested` is the number of turns of a session
/// that waits for a prompt after a long turn.
pub(super) fn due(run: &Arc<Run>, rested: Option<u64>) -> Vec<(String, Message)> {
    let run = without_files(run);
    let message = |r#type, request| Message {
        r#type,
        at_ms: epoch_ms(),
        run: run.clone(),
        request,
    };
    if run.state == ViewState::Ended {
        let kind = match run.status {
            Some(RunStatus::Completed) => "run.finished",
            _ => "run.failed",
        };
        return vec![(END.to_owned(), message(kind, None))];
    }
    let requests = run.requests.iter().cloned();
    let messages = requests.map(|request| {
        let key = request.request_id.clone();
        (key, message("run.needs_answer", Some(request)))
    });
    let turn = rested.map(|count| (format!("{TURN}{count}"), message(AT_REST, None)));
    messages.chain(turn).collect()
}

/// Leaves out the texts of files: they are for those who may read the run here.
fn without_files(run: &Arc<Run>) -> Arc<Run> {
    let mut run = run.clone();
    if run.requests.iter().any(|it| it.old_text.is_some()) {
        for request in &mut Arc::make_mut(&mut run).requests {
            request.old_text = None;
        }
    }
    run
}

impl Message {
    /// Returns whether it is only shown to people: the run continues, and needs nothing.
    pub(super) fn is_for_people(&self) -> bool {
        self.r#type == AT_REST
    }

    /// Returns how often its delivery is attempted.
    pub(super) fn attempts(&self) -> usize {
        match self.request {
            None if !self.is_for_people() => ATTEMPTS,
            _ => REQUEST_ATTEMPTS,
        }
    }

    /// Returns what a person is shown of it, if that is of use: not what a person has stopped, nor each tick of a loop
    /// that went well.
    pub(super) fn notification(&self) -> Option<Notification> {
        let info = &self.run.info;
        let text = match (&self.request, self.run.status) {
            (Some(request), _) if request.schema.is_some() => "asks a question",
            (Some(_), _) => "asks for permission",
            (None, _) if self.is_for_people() => "waits for a prompt",
            (None, Some(RunStatus::Aborted)) => return None,
            (None, Some(RunStatus::Completed)) if info.kind == RunKind::Tick => return None,
            (None, Some(RunStatus::Completed)) => "completed",
            (None, Some(RunStatus::TimedOut)) => "timed out",
            (None, Some(RunStatus::Incomplete)) => "broke off",
            (None, _) => "failed",
        };
        let (title, text) = match (&info.title, &self.request) {
            (None, _) => (&info.provider, text.to_owned()),
            (Some(title), None) => (title, text.to_owned()),
            (Some(title), Some(_)) => (title, format!("{} {text}", short(&info.provider, AGENT))),
        };
        let expires = (self.request.as_ref()).and_then(|request| request.expires_at_ms);
        let left = expires.map_or(KEPT, |at| {
            Duration::from_millis(at.saturating_sub(self.at_ms))
        });
        Some(Notification {
            run_id: info.run_id.clone(),
            request_id: self
                .request
                .as_ref()
                .map(|request| request.request_id.clone()),
            title: short(title, TITLE),
            text,
            ttl: left.min(KEPT).as_secs(),
        })
    }
}

/// Returns the beginning of a text in one line.
fn short(text: &str, length: usize) -> String {
    one_line(text).chars().take(length).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use teamster_api::RunInfo;
    use teamster_core::{PermissionRequest, ToolKind};

    use super::*;

    /// What a browser gets of the first message that is due.
    fn shown(change: impl FnOnce(&mut Run)) -> Option<Value> {
        let mut info = RunInfo::new("r", "claude");
        info.title = Some("Fix the\u{202e} parser".to_owned());
        let mut run = Run::new(info, ViewState::Ended);
        change(&mut run);
        let (_, message) = due(&Arc::new(run), None).remove(0);
        let notification = message.notification()?;
        Some(serde_json::to_value(notification).unwrap())
    }

    fn ended(status: RunStatus) -> impl FnOnce(&mut Run) {
        move |run| run.status = Some(status)
    }

    fn waiting(request: PermissionRequest) -> impl FnOnce(&mut Run) {
        move |run| {
            run.state = ViewState::Waiting;
            run.requests = vec![PendingRequest::new("r/1", "r", request)];
        }
    }

    #[test]
    fn notification_has_the_title_and_what_happened_and_no_input() {
        let input = json!({"command": "cat secret"});
        let tool = || PermissionRequest::new(1, "Bash", ToolKind::Execute, input.clone());
        assert_eq!(
            shown(waiting(tool())),
            Some(json!({
                "runId": "r", "requestId": "r/1", "title": "Fix the parser",
                "text": "claude asks for permission",
            }))
        );
        let question = PermissionRequest::question(1, "forms", "Which?", json!({}));
        assert_eq!(
            shown(waiting(question)).unwrap()["text"],
            "claude asks a question"
        );
        assert_eq!(
            shown(ended(RunStatus::Completed)),
            Some(json!({"runId": "r", "title": "Fix the parser", "text": "completed"}))
        );
        for (status, text) in [
            (RunStatus::Failed, "failed"),
            (RunStatus::TimedOut, "timed out"),
            (RunStatus::Incomplete, "broke off"),
        ] {
            assert_eq!(shown(ended(status)).unwrap()["text"], text);
        }
        let untitled = shown(|run| {
            waiting(tool())(run);
            run.info.title = None;
        });
        let untitled = untitled.unwrap();
        assert_eq!(
            (&untitled["title"], &untitled["text"]),
            (&json!("claude"), &json!("asks for permission"))
        );
    }

    #[test]
    fn callback_has_no_text_of_a_file() {
        let input = json!({"file_path": "a", "content": "new"});
        let mut request = PermissionRequest::new(1, "Write", ToolKind::Edit, input);
        request.old_text = Some("secret".to_owned());
        let mut run = Run::new(RunInfo::new("r", "claude"), ViewState::Waiting);
        waiting(request)(&mut run);
        let (_, message) = due(&Arc::new(run), None).remove(0);
        let body = serde_json::to_string(&message).unwrap();
        assert!(body.contains(r#""content":"new""#), "{body}");
        assert!(!body.contains("secret"), "{body}");
    }

    #[test]
    fn longest_notification_fits_a_record() {
        let tool = PermissionRequest::new(1, "Bash", ToolKind::Execute, json!({}));
        let shown = shown(|run| {
            waiting(tool)(run);
            run.info.provider = format!("acp:{}", "\u{1f980}".repeat(5000));
            run.info.title = Some("\u{1f980}".repeat(5000));
        });
        let shown = shown.unwrap().to_string();
        assert!(shown.len() < 2048, "{} bytes", shown.len());
    }

    #[test]
    fn stopped_runs_and_good_ticks_are_not_shown() {
        let tick = |status| {
            shown(move |run| {
                run.info.kind = RunKind::Tick;
                run.status = Some(status);
            })
        };
        assert_eq!(shown(ended(RunStatus::Aborted)), None);
        assert_eq!(tick(RunStatus::Completed), None);
        assert_eq!(tick(RunStatus::Failed).unwrap()["text"], "failed");
    }

    #[test]
    fn session_at_rest_is_shown_once_a_turn_and_is_no_callback() {
        let mut info = RunInfo::new("r", "claude");
        info.kind = RunKind::Session;
        let run = Arc::new(Run::new(info, ViewState::Running));
        assert!(due(&run, None).is_empty());
        let (key, message) = due(&run, Some(3)).remove(0);
        assert_eq!(key, "turn 3");
        assert!(message.is_for_people());
        let shown = serde_json::to_value(message.notification().unwrap()).unwrap();
        assert_eq!(
            shown,
            json!({"runId": "r", "title": "claude", "text": "waits for a prompt"})
        );
    }

    #[test]
    fn notification_is_kept_as_long_as_its_request_waits() {
        let input = json!({"command": "ls"});
        let request = PermissionRequest::new(1, "Bash", ToolKind::Execute, input);
        for (left, kept) in [(None, 86_400), (Some(90_500), 90), (Some(u64::MAX), 86_400)] {
            let mut run = Run::new(RunInfo::new("r", "claude"), ViewState::Waiting);
            let mut request = PendingRequest::new("r/1", "r", request.clone());
            request.expires_at_ms = left;
            run.requests = vec![request];
            let (_, mut message) = due(&Arc::new(run), None).remove(0);
            message.at_ms = 0;
            assert_eq!(message.notification().unwrap().ttl, kept, "{left:?}");
        }
    }
}
