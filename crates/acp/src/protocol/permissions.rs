//! Permission requests.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use teamster_core::provider::json_line::{parse, value};
use teamster_core::provider::{Events, Outbox};
use teamster_core::{
    AgentEvent, Decision, PermissionAnswer, PermissionEvent, PermissionRequest, ToolKind,
};

use super::AcpProtocol;
use crate::dialect::NextUpdate;
use crate::question::{Choice, text_of};
use crate::settings::Approve;
use crate::tool::{PermissionOption, Tool, ToolCall};
use crate::wire::{CallUpdate, OptionLine, PermissionParams, list};
use crate::write;

/// A request to the caller without an answer.
#[derive(Debug)]
pub(super) struct Pending {
    number: u64,
    /// The agent's id of the request.
    pub(super) id: Box<RawValue>,
    /// The agent's id of the call; empty if the request names none.
    call: String,
    subject: Subject,
}

/// The subject of a request to the caller.
#[derive(Debug)]
pub(super) enum Subject {
    /// A permission, with the options.
    Permission(Vec<PermissionOption>),
    /// A question that is asked as a request for permission, with the request's own data about the call.
    Choice(Vec<PermissionOption>, Value),
    /// A question with a form or a page.
    Elicitation,
}

impl Pending {
    pub(super) fn new(number: u64, id: &RawValue, call: String, subject: Subject) -> Self {
        Self {
            number,
            id: id.to_owned(),
            call,
            subject,
        }
    }

    /// Ends the request without an answer.
    pub(super) fn cancel(self, outbox: &mut Outbox) {
        match self.subject {
            Subject::Elicitation => write::elicited(outbox, &self.id, None),
            _ => write::permission(outbox, &self.id, None),
        }
        outbox.withdraw(self.number);
    }
}

/// Returns the input of a request whose agent sends no arguments but shows changes of files: these, in place of the title
/// and the locations, which say less.
fn with_changes(input: Value, own: &Value) -> Value {
    let content = own["content"].as_array().into_iter().flatten();
    let changes: Vec<_> = content
        .filter(|item| item["type"] == "diff")
        .map(|item| {
            // A file that is created has no old text.
            let old = item["oldText"].as_str().unwrap_or_default();
            json!({"path": item["path"], "oldText": old, "newText": item["newText"]})
        })
        .collect();
    if changes.is_empty() {
        input
    } else {
        json!({"changes": changes})
    }
}

/// Reason for a denial that no caller gave.
const READ_ONLY: &str = "the permission mode allows only tools that read";

impl AcpProtocol {
    pub(super) fn permission(&mut self, id: &RawValue, params: &RawValue, out: &mut Events) {
        let params: Option<PermissionParams<'_>> = parse(params.get());
        let call = params
            .as_ref()
            .and_then(|params| parse::<CallUpdate<'_>>(params.tool_call?.get()));
        let (Some(params), Some(call)) = (params, call) else {
            return write::permission(&mut self.outbox, id, None);
        };
        if self.cancelling || !self.is_active() && !self.may_begin() {
            return write::permission(&mut self.outbox, id, None);
        }
        self.begin_own();
        let cli_id = call.tool_call_id.as_deref().unwrap_or_default().to_owned();
        self.resolve(NextUpdate::Call(&cli_id), out);
        let own = params.tool_call.map(value).unwrap_or_default();
        self.turn.named_parent = self.parent_in(&own["_meta"]);
        if self.turn.named_parent.is_none() && self.turn.find(&cli_id).is_none() {
            let parent = self.dialect.parent_of_request(&self.turn);
            self.turn.named_parent = parent.and_then(|parent| self.id_of_call(&parent));
        }
        self.know_of_request(&cli_id, &call);
        let Some((tool_id, tool)) = self.announce(&cli_id, out) else {
            return write::permission(&mut self.outbox, id, None);
        };
        let options: Vec<_> = list::<OptionLine>(params.options)
            .into_iter()
            .map(|option| PermissionOption::new(option.option_id, option.name, option.kind))
            .collect();
        let question = (self.turn.find(&cli_id).map(|open| open.call.clone()))
            .and_then(|call| self.dialect.question(&call, &own, &options));
        if question.is_none() {
            let once = options.iter().find(|option| option.kind == "allow_once");
            if let Some(once) = once.filter(|_| self.is_approved(&tool)) {
                return write::permission(&mut self.outbox, id, Some(&once.id));
            }
            if self.approve() == Approve::ReadOnly {
                out.push(AgentEvent::Permission(Box::new(
                    PermissionEvent::new(tool.name, Decision::Denied)
                        .tool_id(tool_id)
                        .reason(Some(READ_ONLY.to_owned())),
                )));
                let rejecting = rejecting(&options).map(|option| option.id.as_str());
                write::permission(&mut self.outbox, id, rejecting);
                return self.was_denied(&cli_id, out);
            }
        }
        self.next_permission += 1;
        let number = self.next_permission;
        let title = call.title.as_deref().filter(|title| !title.is_empty());
        // The title may only repeat the tool's name.
        let says_more = title.filter(|title| *title != tool.name).map(str::to_owned);
        let message = (question.as_ref().map(|question| question.message.clone()))
            .or(says_more)
            .or_else(|| text_of(&own))
            .or_else(|| title.map(str::to_owned));
        out.push(AgentEvent::Permission(Box::new(
            PermissionEvent::new(tool.name.clone(), Decision::Requested)
                .tool_id(tool_id.clone())
                .reason(message.clone()),
        )));
        let sends_no_input = |call: &ToolCall| call.input.is_none();
        let input = match self.turn.find(&cli_id) {
            Some(open) if sends_no_input(&open.call) => with_changes(tool.input, &own),
            _ => tool.input,
        };
        let mut request = PermissionRequest::new(number, tool.name, tool.kind, input);
        request.tool_id = Some(tool_id);
        request.message = message;
        let subject = match question {
            Some(question) => {
                request.schema = Some(question.schema);
                request.takes_input = true;
                Subject::Choice(options, own)
            }
            None => Subject::Permission(options),
        };
        self.outbox.ask(request);
        self.permissions
            .push(Pending::new(number, id, cli_id, subject));
    }

    fn is_approved(&self, tool: &Tool) -> bool {
        match self.approve() {
            Approve::Nothing => false,
            Approve::Edits => {
                matches!(
                    tool.kind,
                    ToolKind::Edit | ToolKind::Delete | ToolKind::Move
                )
            }
            Approve::Everything => true,
            Approve::ReadOnly => matches!(
                tool.kind,
                ToolKind::Read | ToolKind::Search | ToolKind::Fetch
            ),
        }
    }

    pub(super) fn answer_permission(
        &mut self,
        number: u64,
        answer: &PermissionAnswer,
        out: &mut Events,
    ) {
        let is_it = |pending: &Pending| pending.number == number;
        let Some(at) = self.permissions.iter().position(is_it) else {
            return;
        };
        let pending = self.permissions.remove(at);
        match &pending.subject {
            Subject::Elicitation => {
                return write::elicited(&mut self.outbox, &pending.id, Some(answer));
            }
            Subject::Choice(options, asked) => match self.choice_of(options, asked, answer) {
                Some(choice) => write::choice(&mut self.outbox, &pending.id, choice),
                // No option of a question allows a tool.
                None => self.choose(&pending.id, rejecting(options)),
            },
            Subject::Permission(options) => {
                let option = self.option_of(options, answer);
                self.choose(&pending.id, option);
            }
        }
        if let PermissionAnswer::Deny(_) = answer {
            self.was_denied(&pending.call, out);
        }
    }

    fn choose(&mut self, id: &RawValue, option: Option<&PermissionOption>) {
        let option = option.map(|option| option.id.as_str());
        write::permission(&mut self.outbox, id, option);
    }

    /// Returns the choice for the answer to a question.
    fn choice_of(
        &self,
        options: &[PermissionOption],
        asked: &Value,
        answer: &PermissionAnswer,
    ) -> Option<Choice> {
        match answer {
            PermissionAnswer::AllowWith(answer) => self.dialect.choice(asked, answer, options),
            _ => None,
        }
    }

    /// Returns the agent's option for this answer to a request for permission.
    fn option_of<'a>(
        &self,
        options: &'a [PermissionOption],
        answer: &PermissionAnswer,
    ) -> Option<&'a PermissionOption> {
        let once = || options.iter().find(|option| option.kind == "allow_once");
        match answer {
            PermissionAnswer::Allow => once(),
            PermissionAnswer::AllowAlways => self.dialect.always(options).or_else(once),
            _ => rejecting(options),
        }
    }

    /// Returns the reason why the agent cannot take this answer, if it cannot. No option of the protocol changes a
    /// tool's input.
    pub(super) fn unsupported(&self, number: u64, answer: &PermissionAnswer) -> Option<String> {
        let name = self.dialect.name();
        let pending = self.permissions.iter().find(|it| it.number == number)?;
        match (&pending.subject, answer) {
            (Subject::Elicitation, _) | (_, PermissionAnswer::Deny(_)) => None,
            (Subject::Choice(options, asked), _) => {
                let is_none = self.choice_of(options, asked, answer).is_none();
                is_none.then(|| "the answer is not one of the choices".to_owned())
            }
            (Subject::Permission(_), PermissionAnswer::AllowWith(_)) => {
                Some(format!("{name} cannot run a tool with a changed input"))
            }
            (Subject::Permission(options), _) if self.option_of(options, answer).is_none() => {
                Some(format!("{name} cannot allow a tool only once"))
            }
            _ => None,
        }
    }

    /// Withdraws all permission requests.
    pub(super) fn withdraw_all(&mut self) {
        for pending in std::mem::take(&mut self.permissions) {
            self.outbox.withdraw(pending.number);
        }
    }

    /// Withdraws the permission requests of a call that has ended.
    pub(super) fn withdraw_of(&mut self, cli_id: &str) {
        let outbox = &mut self.outbox;
        self.permissions.retain(|pending| {
            if pending.call == cli_id {
                outbox.withdraw(pending.number);
            }
            pending.call != cli_id
        });
    }
}

/// Returns the option that rejects a tool, or skips a question.
fn rejecting(options: &[PermissionOption]) -> Option<&PermissionOption> {
    let of_kind = |kind: &str| options.iter().find(|option| option.kind == kind);
    of_kind("reject_once").or_else(|| of_kind("reject_always"))
}
