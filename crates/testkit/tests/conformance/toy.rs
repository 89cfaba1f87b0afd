//! A small imaginary CLI, with a provider that is correct or has one fault.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use super::servers::Servers;
use serde::Deserialize;
use serde_json::json;
use teamster_core::provider::{Args, DecodedResult, Decoder, Events, Exit, Launch, Stdin};
use teamster_core::{
    AgentError, AgentEvent, Capabilities, CliInfo, CliProvider, CostSource, ErrorCode, ErrorKind,
    ExecuteParams, McpDelivery, Notice, NoticeLevel, NoticeSource, SystemPrompt,
    SystemPromptSupport, Text, ToolKind, ToolResult, ToolUse, TurnEnd, Usage,
};
use teamster_testkit::conformance::{ArgvModel, Parser, Plain, Sent, Suite, Tool, Understood};
use teamster_testkit::fixture::{META, STDOUT};

/// A fault of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    // Faults of the decoder.
    KeepsStateBetweenRuns,
    EndIsCompleted,
    TextTwice,
    AnswerOfItsOwn,
    TextTrimmed,
    NoToolKind,
    ResultWithoutOutput,
    FailureNotSeen,
    ResultDropped,
    CallWithResult,
    ErrorKindOther,
    FailsWithoutError,
    CompletesWithError,
    Unwraps,
    // Faults of the capabilities.
    SaysThinking,
    HidesCost,
    HidesAnnouncing,
    SaysModel,
    HidesEffort,
    // Faults of the launch.
    RefusesWithoutName,
    RefusesAll,
    RefusesDashes,
    PromptWithoutDashes,
    PromptTwice,
    PromptNeverOnStdin,
    PromptAsCommand,
    StdinOpen,
    SessionIdAsWord,
    DirsJoined,
    ForgetsSystemPrompt,
    EnvInArguments,
    ExtraArgsDropped,
    // Faults of MCP servers.
    SaysTransport,
    HidesTransport,
    HidesStrict,
    SecretInArguments,
    SecretInFile,
    ServersDropped,
    LeaseUnasked,
    TimeoutDropped,
    // Faults of the model of the command line.
    DashesProtectNothing,
    // No fault: the CLI reads no prompt from stdin.
    ReadsNoStdin,
    // The same CLI, with a provider that sends long prompts there.
    PromptOnUnreadStdin,
}

pub(crate) struct Toy(pub(crate) Fault);

static INFO: CliInfo = {
    let mut info = CliInfo::new("toy", "Toy", "toy");
    info.version_args = &[];
    info
};

static CAPABILITIES: Capabilities = capabilities();

const fn capabilities() -> Capabilities {
    let mut can = Capabilities::none();
    can.resume = true;
    can.add_dirs = true;
    can.system_prompt = SystemPromptSupport::Append;
    can.effort = true;
    can.cli_retries = true;
    can.prompt_on_stdin = true;
    can.slash_commands = true;
    can.mcp.transports = &["stdio"];
    can.mcp.deliveries = &[McpDelivery::Private, McpDelivery::UserConfig];
    can.mcp.strict = true;
    can.mcp.startup_timeout = true;
    can.text_deltas = true;
    can.usage = true;
    can.announces_tools = true;
    can.live_usage = true;
    can.cost = true;
    can
}

impl Toy {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let refused = |message: &str| Err(AgentError::invalid_params(message));
        if self.is(Fault::RefusesWithoutName) && params.model.is_some() {
            return refused("there are no models");
        }
        if self.is(Fault::RefusesAll) && params.prompt != "hi" {
            return refused("prompt: it is not as it should be");
        }
        if self.is(Fault::RefusesDashes) && params.prompt.starts_with('-') {
            return refused("prompt: it begins with a dash");
        }
        params.check(&INFO, self.stdin_capabilities())
    }

    /// Returns what the provider believes. Faults of the capabilities are in what it reports.
    fn stdin_capabilities(&self) -> &'static Capabilities {
        static WITHOUT_STDIN: Capabilities = {
            let mut can = capabilities();
            can.prompt_on_stdin = false;
            can
        };
        if self.is(Fault::ReadsNoStdin) {
            &WITHOUT_STDIN
        } else {
            &CAPABILITIES
        }
    }
}

impl CliProvider for Toy {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        let mut can = capabilities();
        match self.0 {
            Fault::SaysThinking => can.thinking = true,
            Fault::HidesCost => can.cost = false,
            Fault::HidesAnnouncing => can.announces_tools = false,
            Fault::SaysModel => can.model = true,
            Fault::HidesEffort => can.effort = false,
            Fault::SaysTransport => can.mcp.transports = &["stdio", "http"],
            Fault::HidesTransport => can.mcp.transports = &[],
            Fault::HidesStrict => can.mcp.strict = false,
            Fault::ReadsNoStdin | Fault::PromptOnUnreadStdin => can.prompt_on_stdin = false,
            _ => return &CAPABILITIES,
        }
        Box::leak(Box::new(can))
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.check(params)?;
        let mut args = Args::new();
        args.add("ask");
        match &params.session_id {
            Some(id) if self.is(Fault::SessionIdAsWord) => {
                args.add("--session");
                args.add(id);
            }
            Some(id) => args.value("--session", id),
            None => {}
        }
        if self.is(Fault::DirsJoined) && !params.add_dirs.is_empty() {
            let dirs = params.add_dirs.iter().map(|dir| dir.to_string_lossy());
            args.value("--dir", dirs.collect::<Vec<_>>().join(","));
        } else {
            for dir in &params.add_dirs {
                args.value("--dir", dir);
            }
        }
        if let Some(SystemPrompt::Append(text)) = &params.system_prompt
            && !self.is(Fault::ForgetsSystemPrompt)
        {
            args.private_file("--rules=", text.as_bytes());
        }
        if let Some(effort) = &params.effort {
            args.value("--effort", effort);
        }
        if self.is(Fault::EnvInArguments)
            && let Some(key) = params.env.get("API_KEY")
        {
            args.value("--dir", key);
        }
        let Servers { config, mut env } = Servers::new(params, self.0, &mut args);
        if !self.is(Fault::ExtraArgsDropped) {
            params.extra_args.iter().for_each(|arg| args.add(arg));
        }
        let prompt = match self.0 {
            Fault::PromptAsCommand => params.prompt.clone(),
            _ => not_a_command(params),
        };
        let on_stdin =
            params.prompt_on_stdin(&prompt, &INFO, self.stdin_capabilities(), 1 << 20)?;
        let on_stdin = on_stdin && !self.is(Fault::PromptNeverOnStdin);
        let bytes = prompt.clone().into_bytes();
        if !on_stdin {
            if !self.is(Fault::PromptWithoutDashes) {
                args.add("--");
            }
            args.add(prompt);
        }
        let stdin = if self.is(Fault::StdinOpen) && on_stdin {
            Stdin::Open(bytes)
        } else if on_stdin || self.is(Fault::PromptTwice) {
            Stdin::Bytes(bytes)
        } else {
            Stdin::Closed
        };
        let retries = params
            .cli_retries
            .map(|n| ("TOY_RETRIES".to_owned(), n.to_string()));
        env.extend(retries);
        let (args, private_files) = args.into_parts();
        Ok(Launch {
            args,
            private_files,
            env,
            config,
            stdin,
            ..Launch::default()
        })
    }

    fn decoder(&self, _: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(ToyDecoder {
            fault: self.0,
            summary: DecodedResult::default(),
            message: String::new(),
            held: None,
        })
    }
}

/// Returns the prompt, with a space before a `/` that the CLI would interpret as a command.
fn not_a_command(params: &ExecuteParams) -> String {
    let command = params.prompt.starts_with('/') && !params.slash_commands;
    format!("{}{}", if command { " " } else { "" }, params.prompt)
}

struct ToyDecoder {
    fault: Fault,
    summary: DecodedResult,
    message: String,
    /// A call that is emitted with its result.
    held: Option<AgentEvent>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Text {
        id: String,
        text: String,
    },
    Message {
        id: String,
    },
    Tool {
        id: String,
        command: String,
    },
    ToolEnd {
        id: String,
        output: String,
        exit: i32,
    },
    End {
        error: Option<String>,
    },
}

impl Decoder for ToyDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if self.fault == Fault::Unwraps {
            let line: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            assert!(line["type"].is_string(), "a line without a type");
        }
        let Ok(line) = serde_json::from_slice(line) else {
            return out.unknown(line);
        };
        match line {
            Line::Text { id, text } => {
                self.message.push_str(&text);
                self.text(&id, &text, out);
            }
            Line::Message { id } => {
                let message = std::mem::take(&mut self.message);
                if self.fault == Fault::TextTwice {
                    self.text(&id, &message, out);
                }
            }
            Line::Tool { id, command } => {
                let call = AgentEvent::ToolUse(Box::new(ToolUse::new(
                    "sh",
                    id,
                    match self.fault {
                        Fault::NoToolKind => ToolKind::Other,
                        _ => ToolKind::Execute,
                    },
                    json!({ "command": command }),
                )));
                if self.fault == Fault::CallWithResult {
                    self.held = Some(call);
                } else {
                    out.push(call);
                }
            }
            Line::ToolEnd { id, output, exit } if self.fault != Fault::ResultDropped => {
                self.held.take().into_iter().for_each(|call| out.push(call));
                let result = ToolResult::new(
                    id,
                    match self.fault {
                        Fault::ResultWithoutOutput => String::new(),
                        _ => output,
                    },
                )
                .is_error(exit != 0 && self.fault != Fault::FailureNotSeen);
                out.push(result);
            }
            Line::ToolEnd { .. } => {}
            Line::End { error } => self.end(error, out),
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> DecodedResult {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        if self.fault == Fault::KeepsStateBetweenRuns {
            let runs = RUNS.fetch_add(1, Ordering::Relaxed);
            out.push(Notice::new(
                NoticeLevel::Info,
                NoticeSource::Runtime,
                format!("run {runs}"),
            ));
        }
        let mut summary = self.summary.clone();
        if self.fault == Fault::EndIsCompleted {
            summary.ended_with_error.get_or_insert(false);
        }
        summary
    }
}

impl ToyDecoder {
    fn text(&self, id: &str, text: &str, out: &mut Events) {
        let text = match self.fault {
            Fault::TextTrimmed => text.trim(),
            _ => text,
        };
        out.push(Text::new(text.to_owned()).message_id(id));
    }

    fn end(&mut self, error: Option<String>, out: &mut Events) {
        let failed = error.is_some();
        self.summary.ended_with_error = Some(failed);
        self.summary.usage = Some(Usage::default().input_tokens(1));
        self.summary.cost = Some((0.1, CostSource::Reported));
        if self.fault == Fault::AnswerOfItsOwn {
            self.summary.final_message = Some("done".into());
        }
        let kind = match self.fault {
            Fault::ErrorKindOther => ErrorKind::Internal,
            _ => ErrorKind::Auth,
        };
        let completes_with_error = self.fault == Fault::CompletesWithError && !failed;
        let error = error.or(completes_with_error.then(|| "a warning".to_owned()));
        if let Some(message) = error
            && self.fault != Fault::FailsWithoutError
        {
            out.error(AgentError::new(ErrorCode::CliError, kind, message));
        }
        out.push(TurnEnd::new(failed));
    }
}

/// Hand-made runs of the toy CLI.
const RUNS: &[(&str, i32, &[&str])] = &[
    (
        "text",
        0,
        &[
            r#"{"type":"text","id":"m1","text":"Hello, "}"#,
            r#"{"type":"text","id":"m1","text":"wor"}"#,
            r#"{"type":"text","id":"m1","text":"ld!"}"#,
            r#"{"type":"message","id":"m1"}"#,
            r#"{"type":"end"}"#,
        ],
    ),
    (
        "tool",
        0,
        &[
            r#"{"type":"tool","id":"t1","command":"echo \"a\""}"#,
            r#"{"type":"tool_end","id":"t1","output":"a\n","exit":0}"#,
            r#"{"type":"tool","id":"t2","command":"exit 3"}"#,
            r#"{"type":"tool_end","id":"t2","output":"no","exit":3}"#,
            r#"{"type":"text","id":"m1","text":"It failed."}"#,
            r#"{"type":"message","id":"m1"}"#,
            r#"{"type":"end"}"#,
        ],
    ),
    (
        "cut_off",
        1,
        &[r#"{"type":"tool","id":"t1","command":"sleep 9"}"#],
    ),
    ("error", 1, &[r#"{"type":"end","error":"who are you?"}"#]),
];

/// Creates the suite of a provider with this fault.
pub(crate) fn suite(fault: Fault) -> Suite {
    let dir = tempfile::tempdir().unwrap();
    for (scenario, exit_code, lines) in RUNS {
        let dir = dir.path().join(scenario);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(STDOUT), format!("{}\n", lines.join("\n"))).unwrap();
        let argv = ["toy", "ask", "--", "--help me"];
        let meta = json!({"exit_code": exit_code, "prompt": argv[3], "argv": argv});
        fs::write(dir.join(META), meta.to_string()).unwrap();
    }
    let mut ask = ArgvModel::new(Parser::Clap)
        .one("--session|-s --rules --effort --servers")
        .each("--dir")
        .switches("--help|-h --only-these");
    if fault == Fault::DashesProtectNothing {
        ask = ask.without_double_dash();
    }
    Suite::new(Toy(fault), dir.path())
        .prompt_becomes(match fault {
            Fault::PromptAsCommand => |params| params.prompt.clone(),
            _ => not_a_command,
        })
        .run_is_over(|lines| lines.iter().any(|line| line["type"] == "end"))
        .command_line(ArgvModel::new(Parser::Clap).command("ask", ask), understand)
        .plain(Plain {
            env: &[("TOY", "yes")],
            ..Plain::default()
        })
        .text("text", "Hello, world!")
        .text("tool", "It failed.")
        .tool("tool", Tool::shell("echo \"a\"", "a\n"))
        .tool("tool", Tool::failed_shell("exit 3", "no"))
        .call("tool", ToolKind::Execute)
        .cut_off("cut_off", ToolKind::Execute)
        .status("text", teamster_core::RunStatus::Completed, None)
        .status(
            "error",
            teamster_core::RunStatus::Failed,
            Some(ErrorKind::Auth),
        )
}

fn understand(sent: &Sent<'_>) -> Understood {
    let words = sent.args.positionals.iter();
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let rules = sent.args.value("--rules").and_then(|path| sent.file(path));
    let retries = sent.variable("TOY_RETRIES");
    let prompt: String = words.chain(sent.stdin()).collect();
    Understood {
        slash_command: prompt.starts_with('/'),
        prompt,
        session_id: sent.args.text("--session"),
        add_dirs: sent.args.paths("--dir"),
        system_prompt: rules.map(SystemPrompt::Append),
        effort: sent.args.text("--effort"),
        cli_retries: retries.and_then(|n| n.parse().ok()),
        ..Understood::default()
    }
}
