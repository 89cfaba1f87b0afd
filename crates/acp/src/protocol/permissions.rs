//! Permission requests.

use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::parse;
use teamster_core::{
    AgentEvent, Decision, Permission, PermissionAnswer, PermissionRequest, ToolKind,
};

use super::AcpProtocol;
use crate::dialect::Next;
use crate::settings::Approve;
use crate::tool::{PermissionOption, Tool};
use crate::wire::{CallUpdate, OptionLine, PermissionParams, list};
use crate::write;

/// A permission request without an answer.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) number: u64,
    /// The agent's id of the request.
    pub(super) id: Box<RawValue>,
    options: Vec<PermissionOption>,
    /// The agent's id of the call.
    call: String,
}

impl AcpProtocol {
    pub(super) fn permission(&mut self, id: &RawValue, params: &RawValue, out: &mut Events) {
        let params: Option<PermissionParams<'_>> = parse(params.get());
        let call = params
            .as_ref()
            .and_then(|params| parse::<CallUpdate<'_>>(params.tool_call?.get()));
        let (Some(params), Some(call)) = (params, call) else {
            return write::permission(&mut self.exchange, id, None);
        };
        if self.playing.is_none() || self.cancelling {
            return write::permission(&mut self.exchange, id, None);
        }
        let cli_id = call.tool_call_id.as_deref().unwrap_or_default().to_owned();
        self.resolve(Next::Call(&cli_id), out);
        self.know_of_request(&cli_id, &call);
        let Some((tool_id, tool)) = self.announce(&cli_id, out) else {
            return write::permission(&mut self.exchange, id, None);
        };
        let options: Vec<_> = list::<OptionLine>(params.options)
            .into_iter()
            .map(|option| PermissionOption::new(option.option_id, option.name, option.kind))
            .collect();
        if self.is_approved(&tool)
            && let Some(once) = options.iter().find(|option| option.kind == "allow_once")
        {
            return write::permission(&mut self.exchange, id, Some(&once.id));
        }
        self.next_permission += 1;
        let number = self.next_permission;
        let title = call.title.as_deref().filter(|title| !title.is_empty());
        out.push(AgentEvent::Permission(Box::new(
            Permission::new(tool.name.clone(), Decision::Requested)
                .tool_id(tool_id.clone())
                .reason(title.map(str::to_owned)),
        )));
        let mut request = PermissionRequest::new(number, tool.name, tool.kind, tool.input);
        request.tool_id = Some(tool_id);
        request.message = title.map(str::to_owned);
        self.exchange.ask(request);
        self.permissions.push(Pending {
            number,
            id: id.to_owned(),
            options,
            call: cli_id,
        });
    }

    fn is_approved(&self, tool: &Tool) -> bool {
        match self.settings.approve {
            Approve::Nothing => false,
            Approve::Edits => {
                matches!(
                    tool.kind,
                    ToolKind::Edit | ToolKind::Delete | ToolKind::Move
                )
            }
            Approve::Everything => true,
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
        let chosen = self.option_of(&pending, answer);
        write::permission(
            &mut self.exchange,
            &pending.id,
            chosen.map(|option| option.id.as_str()),
        );
        if let PermissionAnswer::Deny(_) = answer {
            self.was_denied(&pending.call, out);
        }
    }

    /// Returns the agent's option for this answer.
    fn option_of<'a>(
        &self,
        pending: &'a Pending,
        answer: &PermissionAnswer,
    ) -> Option<&'a PermissionOption> {
        let of_kind = |kind: &str| pending.options.iter().find(|option| option.kind == kind);
        let once = || of_kind("allow_once");
        match answer {
            PermissionAnswer::Allow => once(),
            PermissionAnswer::AllowAlways => self.dialect.always(&pending.options).or_else(once),
            _ => of_kind("reject_once").or_else(|| of_kind("reject_always")),
        }
    }

    /// Returns the reason why the agent cannot take this answer, if it cannot. No option of the protocol changes a
    /// tool's input.
    pub(super) fn unsupported(&self, number: u64, answer: &PermissionAnswer) -> Option<String> {
        let name = self.dialect.name();
        let pending = self.permissions.iter().find(|it| it.number == number)?;
        match answer {
            PermissionAnswer::Deny(_) => None,
            PermissionAnswer::AllowWith(_) => {
                Some(format!("{name} cannot run a tool with a changed input"))
            }
            _ if self.option_of(pending, answer).is_none() => Some(format!(
                "{name} offers no way to allow a tool this time only"
            )),
            _ => None,
        }
    }

    /// Withdraws the permission requests of a call that has ended.
    pub(super) fn withdraw_of(&mut self, cli_id: &str) {
        let exchange = &mut self.exchange;
        self.permissions.retain(|pending| {
            if pending.call == cli_id {
                exchange.withdraw(pending.number);
            }
            pending.call != cli_id
        });
    }
}
