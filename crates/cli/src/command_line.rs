//! The command line: what all commands are, and how their arguments are read.
//!
//! No command imports this module.

mod machine;
mod suggest;

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};

#[cfg(feature = "fleet")]
use crate::args::FleetArgs;
use crate::args::RemoteArgs;
use crate::commands::accounts::args::AccountsArgs;
use crate::commands::acp::args::AcpArgs;
use crate::commands::agents::args::AgentsArgs;
use crate::commands::answer::args::AnswerArgs;
use crate::commands::attach::args::AttachArgs;
use crate::commands::cancel::args::CancelArgs;
use crate::commands::chat::args::ChatArgs;
use crate::commands::completions::args::CompletionsArgs;
use crate::commands::demo::args::DemoArgs;
use crate::commands::doctor::args::DoctorArgs;
#[cfg(feature = "fleet")]
use crate::commands::fleet::args::FleetCommandArgs;
use crate::commands::r#loop::args::LoopArgs;
use crate::commands::man::args::ManArgs;
use crate::commands::mcp::args::McpCommandArgs;
use crate::commands::mock_model::args::MockModelArgs;
use crate::commands::requests::args::RequestsArgs;
use crate::commands::run::args::RunArgs;
use crate::commands::run::prompt;
use crate::commands::runs::args::RunsArgs;
use crate::commands::say::args::SayArgs;
use crate::commands::serve::args::ServeArgs;
use crate::commands::supervise::args::SuperviseArgs;
use crate::commands::token::args::TokenArgs;
use crate::commands::trust::args::TrustArgs;
use crate::commands::usage::args::UsageArgs;
use crate::commands::wait::args::WaitArgs;
#[cfg(feature = "fleet")]
use crate::commands::worker::args::WorkerArgs;
use crate::exit_code;

pub(crate) use machine::machine;

const SHORT: &str = "\
Watch a run without an API key: teamster demo
Examples and the exit codes: teamster --help";

const EXAMPLES: &str = "\
Examples:
  teamster demo                                  watch a run; no CLI and no key needed
  teamster doctor                                list installed agents and check them
  teamster run claude \"What does this repository do?\"
  teamster run claude \"Fix the failing test\" --permission accept-edits
  git diff | teamster run claude \"Review this diff\"
  teamster run claude \"List the crates\" --json   print events as NDJSON
  teamster chat claude                           chat with an agent
  teamster runs list                             list past runs, their status and cost
  teamster usage --since 7d                      tokens and cost of all agents
  teamster loop ~/agents/triage                  run an agent in a polling loop
  teamster supervise agents.config.json          run many loops, restart those that crash
  teamster acp claude                            serve an agent to an editor (ACP)
  teamster serve                                 serve an HTTP API for detached runs
  teamster --remote ssh:box runs list --live     list runs of another machine
  teamster worker tls://nats.example             carry out runs of a fleet of machines
  teamster mcp check                             test the MCP servers of ./.mcp.json
  teamster mock-model hello.toml                 serve a scripted model, for tests";

/// Run coding agents such as Claude Code and show what they do.
///
/// Each agent CLI has its own flags and output. teamster starts it, reads what it prints and turns it
/// into one stream of events, for a person at a terminal or for a script. It uses the CLIs and logins
/// of this machine; it has no account or key of its own.
#[derive(Debug, Parser)]
#[command(
    name = "teamster",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = SHORT,
    after_long_help = format!("{EXAMPLES}\n\n{}", exit_code::HELP),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the arguments; the first one is the program's name.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let index = command_index(&args);
        let read = match args.get(index).and_then(|command| command.to_str()) {
            Some("run") => {
                let args = prompt::mark(args, index);
                Self::read_command(&args, index, Command::Run)
                    .map_or_else(|| Self::try_parse_from(args), Ok)
                    .map_err(|error| suggest::flag(prompt::replace_tip(error)))
            }
            Some("chat") => Self::read_command(&args, index, Command::Chat)
                .map_or_else(|| Self::try_parse_from(args), Ok)
                .map_err(suggest::flag),
            _ => {
                Self::try_parse_from(args).map_err(|error| suggest::command(suggest::option(error)))
            }
        };
        read.map_err(suggest::missing).map_err(suggest::agent)
    }

    /// Parses the arguments of one command, without building the options of all others: that takes most of the
    /// time, and two processes of a detached run parse the same arguments. Returns `None` for an error and for
    /// help, which need the whole command line.
    fn read_command<T: Args>(
        args: &[OsString],
        index: usize,
        command: fn(Box<T>) -> Command,
    ) -> Option<Self> {
        let without_name = args.iter().take(index).chain(args.iter().skip(index + 1));
        let read = OneCommand::<T>::try_parse_from(without_name).ok()?;
        Some(Self {
            remote: read.remote,
            #[cfg(feature = "fleet")]
            fleet: read.fleet,
            command: command(Box::new(read.options)),
        })
    }
}

/// The options of one command.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct OneCommand<T: Args> {
    #[command(flatten)]
    remote: RemoteArgs,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    fleet: FleetArgs,
    #[command(flatten)]
    options: T,
}

/// Returns the index of the command, which follows the global options.
fn command_index(args: &[OsString]) -> usize {
    let mut index = 1;
    while let Some(flag) = args.get(index).and_then(|arg| arg.to_str()) {
        match flag {
            "--remote" | "--remote-token-file" => index += 2,
            "--fleet" => index += 1,
            flag if flag.starts_with("--remote=") || flag.starts_with("--remote-token-file=") => {
                index += 1;
            }
            _ => break,
        }
    }
    index
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Chat(Box<ChatArgs>),
    Attach(AttachArgs),
    Say(SayArgs),
    Wait(WaitArgs),
    Cancel(CancelArgs),
    Requests(RequestsArgs),
    Answer(AnswerArgs),
    Runs(RunsArgs),
    Trust(TrustArgs),
    Acp(Box<AcpArgs>),
    Serve(ServeArgs),
    Token(TokenArgs),
    #[cfg(feature = "fleet")]
    Fleet(FleetCommandArgs),
    #[cfg(feature = "fleet")]
    Worker(WorkerArgs),
    Usage(UsageArgs),
    Accounts(AccountsArgs),
    Loop(LoopArgs),
    Supervise(SuperviseArgs),
    Agents(AgentsArgs),
    Doctor(DoctorArgs),
    Mcp(McpCommandArgs),
    Demo(DemoArgs),
    MockModel(Box<MockModelArgs>),
    Completions(CompletionsArgs),
    Man(ManArgs),
    #[command(hide = true)]
    FakeAgent(FakeAgentArgs),
    #[command(hide = true)]
    FakeMcp(FakeMcpArgs),
}

impl Command {
    /// Returns whether its output is not what it is started for, and it may be started without stdout.
    pub(crate) fn is_service(&self) -> bool {
        #[cfg(feature = "fleet")]
        if matches!(self, Self::Worker(_)) {
            return true;
        }
        matches!(self, Self::Serve(_) | Self::Loop(_) | Self::Supervise(_))
    }
}

/// Act as an agent CLI that misbehaves by script, for tests.
///
/// The script defines what it does: print lines, half lines and floods, ignore signals, leave processes
/// behind, crash. `teamster fake-agent --help` documents the script language.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct FakeAgentArgs {
    /// `--script FILE`; all arguments are ignored if the variable `TEAMSTER_FAKE_SCRIPT` is set
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<OsString>,
}

/// Serve a small MCP server, for tests.
///
/// It has the tools echo, fail, slow, env and draw. `teamster fake-mcp --help` lists the faults that it
/// can simulate. For example:
/// teamster mcp check --mcp "fake=teamster fake-mcp"
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct FakeMcpArgs {
    /// A fault, such as `--hang`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

#[cfg(test)]
mod tests;
