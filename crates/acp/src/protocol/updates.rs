//! Updates during a turn.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{parse, repaired, value};
use teamster_core::provider::surrogates::Chars;
use teamster_core::provider::{Events, mcp_content};
use teamster_core::{
    AgentError, AgentEvent, Id, NoticeCode, NoticeLevel, NoticeSource, Plan, PlanEntry, PlanStatus,
    Retract, Retry, Text, Thinking,
};

use super::AcpProtocol;
use super::start::Stage;
use crate::dialect::{Chunk, HeldText, NextUpdate};
use crate::peer;
use crate::wire::{CallUpdate, Opened, PlanLine, Update, UpdateParams, list};

/// A chunk of text that is not classified yet.
#[derive(Debug)]
pub(super) struct Held {
    text: String,
    message: Option<Id>,
}

impl AcpProtocol {
    pub(super) fn update(&mut self, params: &RawValue, out: &mut Events) -> Option<()> {
        let params: UpdateParams<'_> = parse(params.get())?;
        let whole;
        let mut raw = params.update?;
        let mut update: Update<'_> = parse(raw.get())?;
        // Half a character at the end of a chunk belongs to the next one.
        if !update.kind.as_deref()?.ends_with("_chunk") {
            whole = repaired(raw);
            if let Cow::Owned(replaced) = &whole {
                raw = replaced;
                update = parse(raw.get())?;
            }
        }
        let kind = update.kind.as_deref()?;
        let is_ours = match (&params.session_id, &self.session) {
            (Some(id), Some(ours)) => **id == **ours,
            _ => true,
        };
        if is_ours
            && let Some(beside) = params.meta
            && let Some(usd) = self.dialect.figures_so_far(&value(beside))
        {
            self.session_cost_is(usd);
        }
        let meta = update.meta.map(value).unwrap_or_default();
        if self.is_active()
            && is_ours
            && let Some(event) = peer::event(&meta)
        {
            self.resolve(NextUpdate::Other, out);
            out.push(event);
            return Some(());
        }
        let is_known = self.keep_in_mind(kind, raw, is_ours, out);
        if is_known || self.is_replay() {
            if kind == "tool_call" {
                // It may be reported once more, if it broke off with an earlier process.
                let call = parse::<CallUpdate<'_>>(raw.get())?;
                self.earlier.extend(call.tool_call_id.map(Cow::into_owned));
            }
            return Some(());
        }
        if is_ours && !self.is_active() && self.begins_turn(kind, &update, &meta, raw) {
            self.begin_own();
        }
        if !self.is_active() || !is_ours {
            return self
                .is_of_no_use(kind, &update, &meta, raw, out)
                .then_some(());
        }
        if !meta.is_null() {
            self.dialect.meta(&meta);
        }
        self.turn.named_parent = self.parent_in(&meta);
        if self.answer.is_some() && kind != "usage_update" {
            self.turn.followed = true;
        }
        match kind {
            "agent_message_chunk" => self.message_chunk(&update, &meta, out),
            "agent_thought_chunk" => self.thought(&update, out),
            // The agent echoes the prompt.
            "user_message_chunk" => Some(()),
            "tool_call" => self.call(raw, true, out),
            "tool_call_update" => self.call(raw, false, out),
            "plan" => {
                self.resolve(NextUpdate::Other, out);
                let entries = list::<PlanLine>(update.entries);
                let entries = entries.into_iter().map(|entry| {
                    PlanEntry::new(
                        entry.content,
                        PlanStatus::from_word(entry.status.as_deref()),
                    )
                });
                out.push(AgentEvent::Plan(Plan::new(entries)));
                Some(())
            }
            "notice" => {
                self.resolve(NextUpdate::Other, out);
                out.push(notice(raw)?);
                Some(())
            }
            "usage_update" => {
                self.resolve(NextUpdate::Request, out);
                self.turn.requests += 1;
                self.cost(&update);
                self.context(&update, out);
                Some(())
            }
            _ => None,
        }
    }

    /// Handles updates that concern the session and not a turn. Returns whether this is one.
    fn keep_in_mind(
        &mut self,
        kind: &str,
        raw: &RawValue,
        is_ours: bool,
        out: &mut Events,
    ) -> bool {
        match kind {
            "available_commands_update" => {
                if is_ours {
                    self.commands_are(raw, out);
                }
                true
            }
            "session_info_update" => true,
            "current_mode_update" => {
                #[derive(Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Mode {
                    current_mode_id: String,
                }
                if let Some(mode) = parse::<Mode>(raw.get()).filter(|_| is_ours) {
                    self.mode_is(mode.current_mode_id, out);
                }
                true
            }
            "config_option_update" => {
                let options: Opened = parse(raw.get()).unwrap_or_default();
                if is_ours {
                    self.options_are(&options.config_options, out);
                    self.options_offered(None, &options.config_options, out);
                }
                let is_model = |category: &Option<String>| category.as_deref() == Some("model");
                let model = (options.config_options.into_iter())
                    .find(|option| is_model(&option.category))
                    .and_then(|option| option.current_value);
                if is_ours {
                    self.model = model.or_else(|| self.model.take());
                }
                true
            }
            _ => false,
        }
    }

    /// Returns whether the agent is replaying earlier turns.
    fn is_replay(&self) -> bool {
        self.prompt_id.is_none() && self.stage != Stage::Ready
    }

    /// Returns whether an update between two turns begins a turn of the agent's own.
    fn begins_turn(&self, kind: &str, update: &Update<'_>, meta: &Value, raw: &RawValue) -> bool {
        let text = || update.content.and_then(text_of).unwrap_or_default();
        self.may_begin()
            && match kind {
                "agent_message_chunk" => {
                    let text = text();
                    let chunk = self.dialect.chunk(&text, meta, &self.turn);
                    !text.is_empty() && !matches!(chunk, Chunk::Noise | Chunk::Notice(_))
                }
                "agent_thought_chunk" => !text().is_empty(),
                "tool_call" => parse::<CallUpdate<'_>>(raw.get())
                    .and_then(|call| Some(!self.is_of_earlier(call.tool_call_id.as_deref()?)))
                    .unwrap_or(false),
                _ => false,
            }
    }

    /// Returns the call of the sub-agent that an update names as its origin.
    pub(super) fn parent_in(&self, meta: &Value) -> Option<Id> {
        let parent = self.dialect.parent(meta)?;
        self.id_of_call(&parent)
    }

    /// Returns the id under which a call was emitted.
    pub(super) fn id_of_call(&self, parent: &str) -> Option<Id> {
        let open = (self.turn.open.iter()).find(|open| open.call.id == parent);
        let known = || (self.turn.used.contains(parent)).then(|| Id::from(parent));
        open.and_then(|open| open.id.clone()).or_else(known)
    }

    /// Handles an update outside of the turn: between turns, or of another session. Returns whether it can be
    /// discarded.
    fn is_of_no_use(
        &mut self,
        kind: &str,
        update: &Update<'_>,
        meta: &Value,
        raw: &RawValue,
        out: &mut Events,
    ) -> bool {
        match kind {
            "user_message_chunk" | "notice" => true,
            "usage_update" => {
                self.cost(update);
                true
            }
            "tool_call" | "tool_call_update" => {
                !self.is_active() && self.call(raw, false, out).is_some()
            }
            "agent_message_chunk" => {
                let text = update.content.and_then(text_of).unwrap_or_default();
                match self.dialect.chunk(&text, meta, &self.turn) {
                    Chunk::Noise => true,
                    Chunk::Notice(code) => {
                        about_itself(code, text, out);
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn cost(&mut self, update: &Update<'_>) {
        if let Some(cost) = &update.cost
            && cost.currency.as_deref().is_none_or(|it| it == "USD")
        {
            self.session_cost_is(cost.amount);
        }
    }

    fn session_cost_is(&mut self, usd: f64) {
        self.cost_usd = Some(usd);
        self.dialect.set_session_cost(usd);
    }

    /// Returns the id of the message that a chunk of text belongs to.
    fn message_of(&mut self, update: &Update<'_>) -> Option<Id> {
        let id = match &update.message_id {
            Some(id) => Some(Id::from(&**id)),
            None if self.dialect.usage_begins_messages() => {
                let prompt = self.prompt_id.unwrap_or_default();
                Some(Id::from(format!("{prompt}.{}", self.turn.requests)))
            }
            None => None,
        };
        if id.is_some() && id != self.turn.last_message {
            self.turn.messages += 1;
            self.turn.last_message.clone_from(&id);
        }
        id
    }

    fn message_chunk(&mut self, update: &Update<'_>, meta: &Value, out: &mut Events) -> Option<()> {
        let content = update.content?;
        let text = match chars_of(content) {
            Some(Chars(bytes)) => self.text.push(&bytes).into_owned(),
            None => mcp_content(&[value(content)]),
        };
        self.resolve(NextUpdate::Other, out);
        let message = self.message_of(update);
        match self.dialect.chunk(&text, meta, &self.turn) {
            Chunk::Noise => {}
            Chunk::Notice(code) => about_itself(code, text, out),
            Chunk::Hold => self.held = Some(Held { text, message }),
            Chunk::Answer => self.say(text, message, out),
        }
        Some(())
    }

    fn say(&mut self, text: String, message_id: Option<Id>, out: &mut Events) {
        if text.is_empty() {
            return;
        }
        self.resumable = true;
        let parent = self.turn.parent(self.dialect.usage_begins_messages());
        self.turn.answer |= parent.is_none() && !text.trim().is_empty();
        self.turn.retries = 0;
        out.push(AgentEvent::Text(
            Text::new(text)
                .message_id(message_id)
                .parent_tool_id(parent),
        ));
    }

    fn thought(&mut self, update: &Update<'_>, out: &mut Events) -> Option<()> {
        let content = update.content?;
        let text = match chars_of(content) {
            Some(Chars(bytes)) => self.thoughts.push(&bytes).into_owned(),
            None => mcp_content(&[value(content)]),
        };
        self.resolve(NextUpdate::Other, out);
        if !text.is_empty() {
            out.push(AgentEvent::Thinking(
                Thinking::new(text)
                    .message_id(update.message_id.as_deref().map(Id::from))
                    .parent_tool_id(self.turn.parent(self.dialect.usage_begins_messages())),
            ));
        }
        Some(())
    }

    /// Classifies held text once the next event is known. Returns the turn's failure if the text reports one.
    pub(super) fn resolve(&mut self, next: NextUpdate<'_>, out: &mut Events) -> Option<AgentError> {
        let held = self.held.take()?;
        match self.dialect.held_text(&held.text, next, &self.turn) {
            HeldText::Answer => {
                self.say(held.text, held.message, out);
                None
            }
            HeldText::Noise => None,
            HeldText::Retry(error) => {
                if let Some(message_id) = held.message.filter(|_| self.turn.answer) {
                    out.push(AgentEvent::Retract(Retract::new(message_id)));
                    self.turn.answer = false;
                }
                self.turn.retries += 1;
                out.push(AgentEvent::Retry(Box::new(Retry::new(
                    self.turn.retries,
                    error,
                ))));
                None
            }
            HeldText::Failure(error) => Some(error),
        }
    }
}

/// Reports a message of the agent about itself.
fn about_itself(code: Option<NoticeCode>, text: String, out: &mut Events) {
    let (level, source) = (NoticeLevel::Info, NoticeSource::Stdout);
    match code {
        Some(code) => out.coded_notice(code, level, source, text),
        None => out.notice(level, source, text),
    }
}

/// Converts a notice for the user.
fn notice(raw: &RawValue) -> Option<AgentEvent> {
    #[derive(Deserialize)]
    struct Notice {
        severity: String,
        title: String,
        description: Option<String>,
    }
    let notice: Notice = parse(raw.get())?;
    let level = match &*notice.severity {
        "warning" | "error" => NoticeLevel::Warning,
        _ => NoticeLevel::Info,
    };
    let text = match notice.description {
        Some(more) => format!("{}: {more}", notice.title),
        None => notice.title,
    };
    Some(AgentEvent::notice(level, NoticeSource::Stdout, text))
}

#[derive(Deserialize)]
struct TextBlock<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// Returns the text of a content block of text.
fn chars_of(content: &RawValue) -> Option<Chars<'_>> {
    let block: TextBlock<'_> = parse(content.get())?;
    serde_json::from_str(block.text?.get()).ok()
}

fn text_of(content: &RawValue) -> Option<String> {
    let block: TextBlock<'_> = parse(content.get())?;
    parse(block.text?.get())
}
