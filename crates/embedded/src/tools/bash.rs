//! `bash`: a command that is run by the process engine.

use std::borrow::Cow;
use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;
use teamster_core::provider::{DecodedResult, Decoder, Events, EventsOn, Exit, Launch, Stdin};
use teamster_core::{
    AgentError, AgentRuntime, CancellationToken, Capabilities, CliInfo, CliProvider, ErrorCode,
    ErrorKind, ExecuteParams, RunStatus, Timeouts,
};
use teamster_process::{CliRuntime, EnvPolicy};

use super::{Output, ToolContext, count, text};
use crate::sandbox;

/// Maximum and default timeout of a command, in milliseconds.
pub(super) const MOST_MS: u64 = 3_600_000;
const USUAL_MS: usize = 120_000;
/// Maximum bytes kept of a command's output. The beginning is discarded.
const MOST_OUTPUT: usize = 8 << 20;
/// Maximum length of a command in bytes, because of the system's limit for an argument.
pub(crate) const LONGEST: usize = 100_000;

static INFO: CliInfo = CliInfo::new("bash", "bash", "bash");
static CAN: Capabilities = Capabilities::none();

/// A command as the process engine sees it. Its output goes to stdout, of which the engine keeps the end. The event
/// stream is on stderr and stays empty.
struct Command {
    script: String,
    /// Arguments of the program that confines the command, if there is one.
    before: Vec<OsString>,
}

impl CliProvider for Command {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAN
    }

    fn launch(&self, _params: &ExecuteParams) -> Result<Launch, AgentError> {
        // Merge both streams, to keep the order of the writes. Keep the event stream open while the command runs. The
        // command is a separate argument, so it needs no quoting.
        let args = ["-c", "exec 198>&2 2>&1; eval \"$1\"", "bash", &self.script];
        let before = self.before.iter().cloned();
        Ok(Launch {
            args: before.chain(args.map(OsString::from)).collect(),
            stdin: Stdin::Closed,
            events_on: EventsOn::Stderr,
            ..Launch::default()
        })
    }

    fn decoder(&self, _params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(Nothing)
    }
}

/// Decoder of an event stream that stays empty.
struct Nothing;

impl Decoder for Nothing {
    fn line(&mut self, _line: &[u8], _out: &mut Events) {}

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: Some(false),
            ..DecodedResult::default()
        }
    }

    fn stderr_evidence<'a>(&self, _stderr: &'a str) -> Cow<'a, str> {
        Cow::Borrowed("")
    }
}

pub(super) async fn call(
    context: &ToolContext,
    input: &Value,
    cancel: &CancellationToken,
) -> Output {
    let command = text(input, "command").unwrap_or_default();
    if command.len() > LONGEST {
        return Output::error(format!(
            "the command has {} bytes; write what is long to a file first",
            command.len()
        ));
    }
    let limit = Duration::from_millis(count(input, "timeout_ms").unwrap_or(USUAL_MS) as u64);
    let mut config = context.config.process.clone();
    config.program.clone_from(&context.sandbox);
    let mut before = Vec::new();
    if context.sandbox.is_some() {
        before = sandbox::arguments(context.roots.all());
        before.push("bash".into());
    }
    config.record_to = None;
    config.observer = None;
    config.stderr_tail_bytes = MOST_OUTPUT;
    // The limit also holds for a command that closes its output.
    config.exit_grace = Some(limit);
    let is_hidden = |name: &String| context.hidden.contains(&name.as_str());
    if let EnvPolicy::Clean { allow } = &mut config.env_policy {
        allow.retain(|name| !is_hidden(name));
    }
    config
        .env_remove
        .extend(context.hidden.iter().map(|it| (*it).to_owned()));
    let mut params = ExecuteParams::new("command");
    params.working_directory = Some(context.directory());
    params.env = context.params.env.clone();
    for name in context.hidden {
        params.env.remove(*name);
    }
    params.keep_background = context.params.keep_background;
    params.timeouts = Timeouts {
        startup: Some(Duration::MAX),
        idle: Some(Duration::MAX),
        tool: Some(Duration::MAX),
    };
    params.cancel = cancel.child_token();
    let end = params.cancel.clone();
    let runtime = CliRuntime::with_config(
        Command {
            script: command.to_owned(),
            before,
        },
        config,
    );
    let run = runtime.execute(params).result();
    tokio::pin!(run);
    let (result, is_late) = tokio::select! {
        result = &mut run => (result, false),
        () = tokio::time::sleep(limit) => {
            // Stops the command and all its processes.
            end.cancel();
            (run.await, true)
        }
    };
    let written = result.stderr.clone().unwrap_or_default();
    let not_started = result.errors.iter().find(|error| {
        matches!(
            error.code,
            ErrorCode::CliNotFound | ErrorCode::Io | ErrorCode::InvalidParams
        ) || error.kind == ErrorKind::NotFound
    });
    let note = if is_late {
        Some(format!(
            "the command did not end within {limit:?} and was stopped"
        ))
    } else if let Some(error) = not_started {
        Some(error.message.clone())
    } else {
        let signal = result.exit_signal.as_ref();
        signal.map(|signal| format!("the command was ended by {signal}"))
    };
    let failed = result.exit_code.filter(|code| *code != 0);
    let is_error = note.is_some() || failed.is_some() || result.status == RunStatus::Aborted;
    let mut output = Output {
        is_error,
        ..Output::text(written)
    };
    // The stream has only the command's output. The model also gets the exit status.
    let ending = match (&note, failed) {
        (Some(note), _) => note.clone(),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) if output.text.is_empty() => "it wrote nothing".to_owned(),
        (None, None) => return output,
    };
    let shown = super::shortened(output.text.trim_end());
    let for_model = if shown.is_empty() {
        format!("[{ending}]")
    } else {
        format!("{shown}\n[{ending}]")
    };
    if note.is_some() {
        output.text.clone_from(&for_model);
    }
    output.for_model = Some(vec![crate::conversation::Input::text(for_model)]);
    output
}
