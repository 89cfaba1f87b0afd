//! Decoder of the output of `gemini --output-format=stream-json`.

mod end;
pub(crate) mod errors;
pub(crate) mod mcp;
pub(crate) mod shell;
pub(crate) mod stderr;
pub(crate) mod tools;
mod usage;
mod wire;

use std::borrow::Cow;
use std::path::PathBuf;

use serde_json::Value;
use teamster_core::provider::json_line::{self, parse, type_of, value};
use teamster_core::provider::surrogates::{self, Chars, Joiner};
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, RecordFiles};
use teamster_core::{
    Decision, ErrorKind, ExecuteParams, Id, NoticeLevel, NoticeSource, PermissionEvent,
    PermissionMode, SessionStarted, Text, ToolKind, ToolResult, ToolUse, Usage,
};

use crate::command_line::Flags;
use crate::launch::{self, needs_policy};
use crate::tool_names;
use crate::transcript::{self, Recorded};
use end::End;
use mcp::Servers;
use tools::{Ended, Tools};
use wire::{
    ErrorLine, ErrorObject, InitLine, MessageLine, ResultLine, ToolResultLine, ToolUseLine,
};

/// Decodes the output of one run.
#[derive(Debug, Default)]
pub struct GeminiDecoder {
    /// The session to resume.
    asked: Option<String>,
    /// True if no rules deny anything.
    nothing_denied: bool,
    /// True if, in addition, the mode denies nothing.
    everything_allowed: bool,
    servers: Servers,
    session: Option<Id>,
    /// Joins characters that were split between two deltas.
    joiner: Joiner,
    /// Text of the current message's deltas.
    message: String,
    tools: Tools,
    end: End,
    /// Folder in which the CLI keeps the sessions of all projects.
    projects: Option<PathBuf>,
    recorded: Recorded,
}

impl GeminiDecoder {
    /// Creates a decoder for a run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        let given = Flags::of(&params.extra_args);
        let permission = given.permission.unwrap_or(params.permission);
        let nothing_denied = params.denied_tools.is_empty() && given.policies.is_empty();
        Self {
            nothing_denied,
            everything_allowed: nothing_denied && permission == PermissionMode::Bypass,
            servers: Servers::new(params, &given),
            end: End::new(needs_policy(params) || given.has_admin_policy()),
            projects: launch::projects(params),
            asked: params.session_id.clone().or(given.session_id),
            ..Self::default()
        }
    }

    /// Handles a line that is JSON of a known type. Returns `None` for other lines; then the state is unchanged.
    fn json_line(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let kind = type_of(text)?;
        if kind == "message" {
            return self.message(&parse(text)?, out);
        }
        let fixed = surrogates::without_lone_escapes(text);
        let text = fixed.as_deref().unwrap_or(text);
        match kind.as_ref() {
            "tool_use" => self.tool_use(&parse(text)?, out),
            "tool_result" => self.tool_result(&parse(text)?, out),
            "init" => self.init(parse(text)?, out),
            "error" => {
                let line: ErrorLine<'_> = parse(text)?;
                self.end.error_line(line, out)
            }
            "result" => {
                let line: ResultLine<'_> = parse(text)?;
                self.end.result(&line, out);
                Some(())
            }
            _ => None,
        }
    }

    fn init(&mut self, line: InitLine<'_>, out: &mut Events) -> Option<()> {
        let id = Id::from(line.session_id?);
        if let Some(asked) = &self.asked
            && **asked != *id
        {
            self.end.wrong_session(asked, &id, out);
        }
        if self.session.as_ref() != Some(&id) {
            self.session = Some(id.clone());
            out.push(SessionStarted::new(id).model(line.model));
        }
        Some(())
    }

    fn message(&mut self, line: &MessageLine<'_>, out: &mut Events) -> Option<()> {
        match line.role.as_deref()? {
            // The prompt, unchanged.
            "user" => {
                self.message.clear();
                Some(())
            }
            "assistant" => {
                let Chars(bytes) = serde_json::from_str(line.content?.get()).ok()?;
                self.end.continues(out);
                if line.delta == Some(false) {
                    let streamed = std::mem::take(&mut self.message);
                    // The complete message repeats its deltas.
                    if !streamed.is_empty() && streamed == Joiner::default().push(&bytes) {
                        return Some(());
                    }
                }
                let text = self.joiner.push(&bytes);
                if line.delta != Some(false) {
                    self.message.push_str(&text);
                }
                self.end.answer(&text);
                if !text.is_empty() {
                    out.push(Text::new(text.into_owned()));
                }
                Some(())
            }
            _ => None,
        }
    }

    fn tool_use(&mut self, line: &ToolUseLine<'_>, out: &mut Events) -> Option<()> {
        let name = line.tool_name.as_deref()?;
        self.end.continues(out);
        self.end.tool_called();
        let input = line.parameters.map_or(Value::Null, value);
        let id = self.tools.start(line.tool_id.as_deref(), name, &input);
        let kind = tool_names::kind(name);
        let mcp = (kind == ToolKind::Mcp).then(|| self.servers.tool(name));
        out.push(ToolUse::new(name.to_owned(), id, kind, input).mcp(mcp.flatten()));
        Some(())
    }

    fn tool_result(&mut self, line: &ToolResultLine<'_>, out: &mut Events) -> Option<()> {
        let mut call = self.tools.end(line.tool_id.as_deref())?;
        self.end.continues(out);
        self.message.clear();
        let output = line.output();
        let error = line.error.and_then(ErrorObject::read);
        let is_error = call.is_error(&Ended {
            status: line.status.as_deref(),
            output: output.as_deref(),
            error: error.as_ref(),
        });
        if let Some(error) = &error
            && call.is_denied(error, self.must_be_there(&call.name))
        {
            out.push(
                PermissionEvent::new(call.name.clone(), Decision::Denied)
                    .tool_id(call.id.clone())
                    .reason(error.message.as_deref().map(str::to_owned)),
            );
        }
        self.end.tool_ended(error.as_ref());
        out.push(
            ToolResult::new(
                call.id.clone(),
                tools::output(output.unwrap_or_default(), error),
            )
            .is_error(is_error),
        );
        if is_error == Some(false)
            && let Some(effect) = call.effect()
        {
            out.push(effect);
        }
        Some(())
    }

    /// Returns whether nothing would hide a tool of this name from the model. Then a missing tool does not exist.
    fn must_be_there(&self, tool: &str) -> bool {
        self.everything_allowed || (self.nothing_denied && self.servers.permit(tool))
    }
}

impl Decoder for GeminiDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        let trouble = self.servers.trouble(&exit.stderr).into_iter();
        for trouble in trouble.chain(stderr::failed_agents(&exit.stderr)) {
            out.notice(NoticeLevel::Warning, NoticeSource::Stderr, trouble);
        }
        let mut summary = self.end.finish(exit, out);
        // A run that did not complete printed no usage.
        summary.usage = summary.usage.or_else(|| self.recorded.usage());
        summary
    }

    fn record_files(&self) -> Option<RecordFiles> {
        let id = self.session.as_deref().or(self.asked.as_deref())?;
        transcript::files(self.projects.as_deref()?, id)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.recorded.line(line)
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(stderr::evidence(stderr))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        // Later output does not explain a failed start.
        stderr::kind_of_stderr(stderr).filter(|_| self.session.is_none())
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        errors::kind_of_exit_code(code)
    }
}

#[cfg(test)]
mod tests;
