//! Decoder of the output of `codex exec --json`.

mod agents;
mod changes;
mod end;
pub(crate) mod errors;
pub(crate) mod items;
pub(crate) mod mcp;
pub(crate) mod messages;
mod moderation;

use std::borrow::Cow;
use std::path::PathBuf;

use teamster_core::provider::{
    Activity, DecodedResult, Decoder, Events, Exit, RecordFiles, UniqueIds, json_line,
};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Id, NoticeLevel, NoticeSource, Retry,
    SessionStarted, Usage,
};

use crate::totals::Totals;
use crate::transcript::{Before, Recorded};
use crate::wire::Object;
use crate::{command_line, transcript};
use end::Turns;
use items::{Items, Stage};

/// Decodes the output of one run.
#[derive(Debug, Default)]
pub struct CodexDecoder {
    /// Id of the resumed session. A different id is an error.
    resumed: Option<String>,
    /// True if the answer must be JSON.
    structured: bool,
    session: Option<Id>,
    /// The requested model. The CLI reports none.
    model: Option<String>,
    items: Items,
    ids: UniqueIds,
    turns: Turns,
    /// The CLI's home.
    home: Option<PathBuf>,
    /// Day of the run, in days since 1970-01-01. Files of sub-agents are in the folder of that day.
    begun: Option<u64>,
    recorded: Recorded,
    /// Number of reconnects in this turn.
    retries: u32,
    /// A reported failure that the end of the turn has not confirmed yet.
    pending: Option<String>,
    /// True if the turn has no item yet.
    empty: bool,
    /// True if an error was reported.
    failed: bool,
}

impl CodexDecoder {
    /// Creates a decoder for one run of a new session.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder for a run with these parameters. If it resumes or forks a session, reads the session's
    /// earlier usage from the CLI's own files.
    pub fn for_run(params: &ExecuteParams) -> Self {
        let before = match &params.session_id {
            Some(_) => Before::of(params),
            None if command_line::resumed(&params.extra_args).is_some() => Before::UNKNOWN,
            None => Before::default(),
        };
        let mut recorded = Recorded::new(before.recorded);
        if let Some(id) = params.session_id.as_deref().filter(|_| !params.fork) {
            recorded.session_known(id);
        }
        Self {
            home: transcript::home(params),
            begun: transcript::today(),
            recorded,
            resumed: params.session_id.clone().filter(|_| !params.fork),
            structured: params.output_schema.is_some(),
            model: params.model.clone(),
            turns: Turns::new(before.printed),
            ..Self::default()
        }
    }

    /// Handles an event. Returns `None` if its type is unknown; then the state is unchanged.
    fn event(&mut self, line: &Object<'_>, out: &mut Events) -> Option<()> {
        match &*line.text("type")? {
            "thread.started" => self.thread_started(line.text("thread_id")?, out),
            "turn.started" => {
                self.retries = 0;
                self.items.messages.turn_started();
                self.settle_pending(out);
                self.empty = true;
                self.turns.started();
            }
            "item.started" => self.item(Stage::Started, line, out)?,
            "item.updated" => self.item(Stage::Updated, line, out)?,
            "item.completed" => self.item(Stage::Completed, line, out)?,
            "error" => self.error(&line.text("message")?, out),
            "turn.completed" => {
                self.items.messages.settle();
                self.settle_pending(out);
                let totals = line.object("usage").map(|usage| Totals::of(&usage));
                if self.empty && totals.is_some_and(|totals| self.turns.used_nothing(totals)) {
                    self.held_back(out);
                } else {
                    self.turns.completed(totals, out);
                }
            }
            "turn.failed" => {
                let error = line.object("error");
                let message = error.and_then(|error| error.text("message"));
                self.turn_failed(message.or_else(|| line.text("error")), out);
            }
            _ => return None,
        }
        Some(())
    }

    fn thread_started(&mut self, id: Cow<'_, str>, out: &mut Events) {
        let id = Id::from(id);
        if self.session.as_ref() == Some(&id) {
            return;
        }
        if let Some(asked) = &self.resumed
            && !asked.eq_ignore_ascii_case(&id)
        {
            // The CLI begins a new session if it does not know the session's name.
            let error = AgentError::new(
                ErrorCode::CliError,
                ErrorKind::SessionNotFound,
                format!(
                    "Codex has no session {asked} and began the new session {id} in its place; \
                     leave out session_id to begin one on purpose"
                ),
            );
            self.failed = true;
            self.turns.not_resumed();
            self.recorded = Recorded::default();
            out.error(error);
        }
        self.recorded.session_known(&id);
        self.session = Some(id.clone());
        out.push(SessionStarted::new(id).model(self.model.clone()));
    }

    fn item(&mut self, stage: Stage, line: &Object<'_>, out: &mut Events) -> Option<()> {
        let item = line.object("item")?;
        self.empty = false;
        self.items.item(stage, &item, &mut self.ids, out)?;
        let message = item.text("message").unwrap_or_default();
        if item.text("type").as_deref() == Some("error") && message.starts_with(FALLING_BACK) {
            self.items.messages.broke_off(out);
        }
        Some(())
    }

    /// Handles an `error` line: a reconnect, or a failure that `turn.failed` repeats.
    fn error(&mut self, message: &str, out: &mut Events) {
        let Some(reconnect) = Reconnect::of(message) else {
            self.settle_pending(out);
            self.pending = Some(message.to_owned());
            return;
        };
        self.items.messages.broke_off(out);
        self.retries += 1;
        out.push(
            Retry::new(
                reconnect.attempt.unwrap_or(self.retries),
                errors::of_reconnect(reconnect.reason),
            )
            .max_attempts(reconnect.max_attempts),
        );
    }

    fn turn_failed(&mut self, reported: Option<Cow<'_, str>>, out: &mut Events) {
        self.items.messages.settle();
        let has_text = |text: &str| !text.trim().is_empty();
        let reported = reported.filter(|text| has_text(text));
        let pending = self.pending.take().filter(|pending| has_text(pending));
        let message = match (reported, pending) {
            (Some(reported), Some(pending)) if reported != pending => {
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, pending);
                reported.into_owned()
            }
            (Some(reported), _) => reported.into_owned(),
            (None, Some(pending)) => pending,
            // `of_message` reports that the text is missing.
            (None, None) => String::new(),
        };
        self.failed = true;
        out.error(errors::of_message(&message));
        self.turns.failed(errors::stop_reason(&message), out);
    }

    /// Reports a turn that ended before the model was asked. The CLI calls such a turn a success.
    fn held_back(&mut self, out: &mut Events) {
        self.failed = true;
        // The CLI gives no reason.
        out.error(errors::held_back(""));
        self.turns.failed(None, out);
    }

    /// Emits a pending failure as a notice, because the turn continued after it.
    fn settle_pending(&mut self, out: &mut Events) {
        if let Some(message) = self.pending.take() {
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }
}

impl Decoder for CodexDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let text = json_line::text(line);
        let known = Object::parse(&text).and_then(|object| self.event(&object, out));
        if known.is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.items.finish(out);
        mcp::notices(&exit.stderr, out);
        if let Some(message) = self.pending.take() {
            self.failed = true;
            out.error(errors::of_message(&message));
        }
        let mut summary = self.turns.summary();
        if self.failed && summary.ended_with_error.is_some() {
            summary.ended_with_error = Some(true);
        }
        if self.structured && summary.ended_with_error == Some(false) {
            let answer = self.items.messages.last();
            summary.structured_output = answer.and_then(|text| serde_json::from_str(text).ok());
        }
        // A turn that did not complete printed no usage.
        summary.usage = summary.usage.or_else(|| self.recorded.main_usage());
        match (self.recorded.sub_agent_usage(), &mut summary.usage) {
            (Some(used), Some(usage)) => *usage = usage.plus(used),
            (Some(used), none) => *none = Some(used),
            (None, _) if self.items.used_sub_agents => out.notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                "Codex has not recorded what its sub-agents used: the figures of this run are the \
                 main agent's",
            ),
            (None, _) => {}
        }
        summary.session_usage = (summary.session_usage).or_else(|| self.recorded.session_usage());
        summary.session_id.clone_from(&self.session);
        summary.model.clone_from(&self.model);
        summary
    }

    fn record_files(&self) -> Option<RecordFiles> {
        let id = self.session.as_deref().or(self.resumed.as_deref())?;
        transcript::files(self.home.as_deref()?, id, self.begun)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.recorded.line(line)
    }

    fn recorded_model(&self) -> Option<String> {
        self.recorded.model.clone()
    }

    fn activity(&self) -> Activity {
        self.turns.activity()
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(errors::evidence(stderr))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

/// Prefix of the warning that the CLI repeats the request over another transport.
pub(crate) const FALLING_BACK: &str = "Falling back from WebSockets";

/// A reconnect: `Reconnecting... 2/5 (why)` or `Reconnecting... waiting for network (why)`.
pub(crate) struct Reconnect<'a> {
    pub(crate) attempt: Option<u32>,
    pub(crate) max_attempts: Option<u32>,
    reason: &'a str,
}

impl<'a> Reconnect<'a> {
    pub(crate) fn of(message: &'a str) -> Option<Self> {
        let rest = message.strip_prefix("Reconnecting...")?.trim();
        let (count, reason) = match rest.split_once('(') {
            Some((count, reason)) => (count.trim(), reason.strip_suffix(')').unwrap_or(reason)),
            None => (rest, message),
        };
        let numbers = count.split_once('/');
        Some(Self {
            attempt: numbers.and_then(|(n, _)| n.trim().parse().ok()),
            max_attempts: numbers.and_then(|(_, max)| max.trim().parse().ok()),
            reason,
        })
    }
}

#[cfg(test)]
mod tests;
