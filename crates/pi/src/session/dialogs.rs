//! Questions of extensions to their user, which wait for an answer without a limit.

use serde_json::{Value, json};
use teamster_core::provider::Events;
use teamster_core::text::excerpt;
use teamster_core::{
    Decision, NoticeLevel, NoticeSource, PermissionAnswer, PermissionEvent, PermissionRequest,
    ToolKind,
};

use super::PiSession;
use super::wire::Dialog;

/// Longest part of an extension's question, in bytes.
const QUESTION_BYTES: usize = 300;
/// Name under which an extension asks. The CLI does not tell which one it is.
const EXTENSION: &str = "extension";

/// A question without an answer.
#[derive(Debug)]
pub(super) struct Open {
    /// Id of the request to the caller.
    number: u64,
    /// The CLI's id of the question.
    id: String,
    /// Field of the answer, here and for the CLI.
    field: &'static str,
}

impl PiSession {
    /// Passes a question of an extension to the caller. Between two turns there is none. Returns `false` if it is no
    /// question.
    pub(super) fn dialog(&mut self, dialog: &Dialog, out: &mut Events) -> bool {
        let (field, mut answer) = match dialog.method.as_str() {
            "select" => ("value", json!({"type": "string", "enum": dialog.options})),
            "confirm" => ("confirmed", json!({"type": "boolean"})),
            "input" | "editor" => ("value", json!({"type": "string"})),
            _ => return false,
        };
        let question = [&dialog.title, &dialog.message];
        let question: Vec<&str> = (question.into_iter())
            .map(|text| text.trim())
            .filter(|text| !text.is_empty())
            .collect();
        let question = question.join("\n");
        let question = excerpt(&question, QUESTION_BYTES);
        if !self.in_turn {
            self.respond(&dialog.id, json!({"cancelled": true}));
            let message = format!(
                "an extension asked {question:?} between two turns, which was answered with no"
            );
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            return true;
        }
        answer["description"] = json!(question);
        self.dialogs_so_far += 1;
        let number = self.dialogs_so_far;
        let mut request = PermissionRequest::new(number, EXTENSION, ToolKind::Other, Value::Null);
        request.message = Some(question.clone());
        request.takes_input = true;
        request.schema = Some(json!({
            "type": "object", "properties": {field: answer}, "required": [field],
        }));
        out.push(PermissionEvent::new(EXTENSION, Decision::Requested).reason(Some(question)));
        self.outbox.ask(request);
        self.dialogs.push(Open {
            number,
            id: dialog.id.clone(),
            field,
        });
        true
    }

    /// Answers a question of an extension.
    pub(super) fn answer_dialog(&mut self, number: u64, answer: &PermissionAnswer) {
        let Some(at) = self.dialogs.iter().position(|it| it.number == number) else {
            return;
        };
        let open = self.dialogs.remove(at);
        let given = match answer {
            PermissionAnswer::AllowWith(answer) => answer.get(open.field).cloned(),
            _ => None,
        };
        let answer = match given {
            Some(value) => json!({open.field: value}),
            None => json!({"cancelled": true}),
        };
        self.respond(&open.id, answer);
    }

    /// Returns why an answer is none to a question, if it is none.
    pub(super) fn is_no_answer(&self, number: u64, answer: &PermissionAnswer) -> Option<String> {
        let open = self.dialogs.iter().find(|it| it.number == number)?;
        let has_it = match answer {
            PermissionAnswer::Deny(_) => true,
            PermissionAnswer::AllowWith(answer) => answer.get(open.field).is_some(),
            _ => false,
        };
        (!has_it).then(|| format!("the answer has no field `{}`", open.field))
    }

    /// Closes all questions as if their user had.
    pub(super) fn close_dialogs(&mut self) {
        for open in std::mem::take(&mut self.dialogs) {
            self.outbox.withdraw(open.number);
            self.respond(&open.id, json!({"cancelled": true}));
        }
    }

    fn respond(&mut self, id: &str, mut answer: Value) {
        answer["type"] = json!("extension_ui_response");
        answer["id"] = json!(id);
        self.outbox.write(&answer);
    }
}
