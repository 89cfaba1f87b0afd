//! Start of a session: a thread is started, resumed or forked.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use teamster_core::provider::{CommandId, Events};
use teamster_core::{AgentError, Id, Image, ImageSource, PermissionMode};

use super::calls::Call;
use super::errors::answer_without;
use super::permissions::{self, PLAN, Settings};
use super::state::{CodexSession, Lookup, Opening, OpeningKind, Thread};
use super::usage::Figures;
use crate::launch::Answers;
use crate::totals::Baseline;
use crate::wire::Object;

/// Notifications that are not needed here and are large or frequent: each change of a file comes with all changes of
/// the turn so far.
const UNWANTED: &[&str] = &[
    "turn/diff/updated",
    "thread/readState/changed",
    "item/reasoning/textDelta",
];

impl CodexSession {
    /// Sends the first request, and prepares the session that the parameters name.
    pub(super) fn initialize(&mut self) {
        self.call(Call::Initialize, "initialize", &about_client());
        self.outbox.write(&initialized());
        self.opening = Some(self.first_opening());
    }

    /// Returns the opening of the session that the parameters name.
    fn first_opening(&self) -> Opening {
        let kind = match &self.start.resume {
            None => OpeningKind::New,
            Some((id, false)) => OpeningKind::Resume(id.clone()),
            Some((id, true)) => OpeningKind::Fork(id.clone()),
        };
        Opening {
            kind,
            clear: None,
            call: None,
            baseline: self.baseline,
        }
    }

    /// Replaces this session by a new one.
    pub(super) fn clear(&mut self, command: CommandId, out: &mut Events) {
        self.leave_turn(out);
        if let Some(before) = self.opening.take().and_then(|opening| opening.clear) {
            let error = AgentError::invalid_params("the session was cleared again");
            self.outbox.answer(before, Err(error));
        }
        // This also applies to later openings: if the CLI loses the new session, the old one must not be resumed.
        self.start.resume = None;
        self.baseline = Baseline::default();
        self.opening = Some(Opening {
            kind: OpeningKind::New,
            clear: Some(command),
            call: None,
            baseline: Baseline::default(),
        });
    }

    /// Marks the session as closed by the CLI.
    pub(super) fn closed(&mut self) {
        if let Some(thread) = &mut self.thread {
            thread.is_closed = true;
        }
    }

    /// Ensures that there is a session for the next turn.
    pub(super) fn open_if_needed(&mut self) {
        if self.opening.is_some() {
            return;
        }
        self.opening = match &self.thread {
            Some(thread) if !thread.is_closed => None,
            Some(thread) if thread.can_be_resumed => Some(Opening {
                kind: OpeningKind::Resume(thread.id.to_string()),
                clear: None,
                call: None,
                baseline: self.figures.total(),
            }),
            _ => Some(self.first_opening()),
        };
    }

    /// Returns whether the user's settings are known, and requests them if necessary.
    pub(super) fn has_settings(&mut self) -> bool {
        if matches!(self.settings, Lookup::Not) {
            self.settings = Lookup::Waiting;
            let params = json!({"cwd": self.start.directory});
            self.call(Call::Settings, "config/read", &params);
        }
        matches!(self.settings, Lookup::Answered(_))
    }

    /// Returns the user's settings, or the defaults if they are unknown.
    pub(super) fn settings(&self) -> Settings {
        match &self.settings {
            Lookup::Answered(settings) => settings.clone(),
            _ => Settings::default(),
        }
    }

    pub(super) fn settings_answered(&mut self, result: Option<&Object<'_>>) {
        let settings = result.map(|result| Settings::of(result, &self.start));
        self.settings = Lookup::Answered(settings.unwrap_or_default());
    }

    /// Requests the session once all its parameters are known.
    pub(super) fn open_if_ready(&mut self) {
        let Some(opening) = &self.opening else {
            return;
        };
        if opening.call.is_some() {
            return;
        }
        let is_new = matches!(opening.kind, OpeningKind::New);
        let may_write = !matches!(
            self.mode,
            PermissionMode::ReadOnly | PermissionMode::Bypass | PermissionMode::Plan
        );
        // A resumed session would otherwise keep its earlier permissions.
        let of_settings = self.mode == PermissionMode::Default && !is_new;
        let with_roots = may_write && !self.start.add_dirs.is_empty();
        if (of_settings || with_roots) && !self.has_settings() {
            return;
        }
        let settings = self.settings();
        let mut params = json!({});
        let method = match self.opening.as_ref().map(|opening| &opening.kind) {
            Some(OpeningKind::Resume(id)) => {
                params["threadId"] = json!(id);
                "thread/resume"
            }
            Some(OpeningKind::Fork(id)) => {
                params["threadId"] = json!(id);
                "thread/fork"
            }
            _ => "thread/start",
        };
        if is_new {
            // The directory is not set, because it is the process's own: given one, the CLI marks the project as
            // trusted in the user's configuration.
            set(
                &mut params,
                "developerInstructions",
                self.start.append.as_deref(),
            );
        } else {
            params["excludeTurns"] = json!(true);
            let directory = self.start.directory.as_deref();
            set(&mut params, "cwd", directory.and_then(|dir| dir.to_str()));
        }
        set(&mut params, "model", self.model.as_deref());
        set(
            &mut params,
            "baseInstructions",
            self.start.replace.as_deref(),
        );
        let (mode, answers) = (self.mode, self.start.answers);
        if of_settings || mode != PermissionMode::Default {
            params["sandbox"] = json!(permissions::sandbox_name(mode, &settings));
        }
        if of_settings {
            let policy = permissions::approval_policy_or_own(mode, answers, &settings);
            params["approvalPolicy"] = policy;
        } else {
            let policy = permissions::approval_policy(mode, answers);
            set(&mut params, "approvalPolicy", policy);
        }
        if answers != Answers::None {
            // Not another model, which the user may have configured to answer.
            params["approvalsReviewer"] = json!("user");
        }
        if with_roots {
            let roots = settings.roots(&self.start);
            params["config"] = json!({"sandbox_workspace_write.writable_roots": roots});
        }
        let call = self.call(Call::Open, method, &params);
        if let Some(opening) = &mut self.opening {
            opening.call = Some(call);
        }
    }

    /// Returns whether this request was for the session that is being opened.
    pub(super) fn is_opening(&self, call: u64) -> bool {
        let opening = self.opening.as_ref();
        opening.is_some_and(|opening| opening.call == Some(call))
    }

    pub(super) fn opened(&mut self, result: &Object<'_>, out: &mut Events) {
        let id = result.object("thread").and_then(|thread| thread.text("id"));
        let Some(id) = id else {
            return self.not_opened(answer_without("the id of the session"), out);
        };
        let Some(opening) = self.opening.take() else {
            return;
        };
        self.leave_turn(out);
        let is_new = matches!(opening.kind, OpeningKind::New);
        let defaults = || Some((result.value("sandbox")?, result.value("approval_policy")?));
        let thread = Thread {
            id: Id::from(id),
            model: result.text("model").map(std::borrow::Cow::into_owned),
            answered_by: None,
            can_be_resumed: !is_new,
            is_closed: false,
            defaults: defaults().filter(|_| is_new && self.mode == PermissionMode::Default),
        };
        // A resumed session keeps its mode.
        let mode = result.object("collaboration_mode");
        let mode = mode.and_then(|mode| mode.text("mode"));
        self.is_planning = mode.as_deref() == Some(PLAN);
        self.figures = Figures::from(&opening.baseline);
        let before = self.thread.replace(thread);
        if let Some(before) = before.filter(|before| !before.is_closed) {
            self.leave_goal(&before.id);
            let params = json!({"threadId": before.id});
            self.call(Call::Other, "thread/unsubscribe", &params);
        }
        self.goal = None;
        self.agents.clear();
        if let Some(command) = opening.clear {
            self.outbox.answer(command, Ok(()));
        }
        if self.waiting.turn.is_some() {
            self.report_session(out);
        }
    }

    /// Closes a session that was opened after another one was requested.
    pub(super) fn opened_unwanted(&mut self, result: &Object<'_>) {
        let id = result.object("thread").and_then(|thread| thread.text("id"));
        if let Some(id) = id {
            self.call(Call::Other, "thread/unsubscribe", &json!({"threadId": id}));
        }
    }

    pub(super) fn not_opened(&mut self, error: AgentError, out: &mut Events) {
        let opening = self.opening.take();
        if let Some(command) = opening.and_then(|opening| opening.clear) {
            self.outbox.answer(command, Err(error));
        } else if self.waiting.turn.is_some() {
            self.fail(error, out);
        }
    }
}

/// Returns the parameters of the first request.
pub(super) fn about_client() -> Value {
    json!({
        "clientInfo": {
            "name": "teamster",
            "title": null,
            "version": env!("CARGO_PKG_VERSION"),
        },
        "capabilities": {
            // Without this, the CLI does not end commands on request.
            "experimentalApi": true,
            "requestAttestation": false,
            "optOutNotificationMethods": UNWANTED,
        },
    })
}

/// Returns the notification that follows it.
pub(super) fn initialized() -> Value {
    json!({"method": "initialized"})
}

fn set(params: &mut Value, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        params[name] = json!(value);
    }
}

/// Returns an image as a part of a turn's input.
pub(super) fn image_item(image: &Image) -> Option<Value> {
    Some(match &image.source {
        ImageSource::Path(path) => {
            let path = std::path::absolute(path).ok()?;
            json!({"type": "localImage", "path": path.to_str()?})
        }
        ImageSource::Bytes(bytes) => {
            let url = format!(
                "data:{};base64,{}",
                image.media_type,
                BASE64_STANDARD.encode(bytes)
            );
            json!({"type": "image", "url": url})
        }
        _ => return None,
    })
}
