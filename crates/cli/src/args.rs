//! The command line.

mod acp;
mod agent_loop;
mod chat;
mod detached;
#[cfg(all(test, repository))]
mod documented;
mod mcp;
mod mock_model;
mod prompt;
mod provider;
mod remote;
mod run;
mod serve;
mod store;
mod supervise;
mod usage;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

pub(crate) use acp::{AcpArgs, AcpProcessArgs, AcpTurnArgs};
pub(crate) use agent_loop::LoopArgs;
pub(crate) use chat::{ChatArgs, ChatLimitArgs, TurnArgs};
pub(crate) use detached::{
    AnswerArgs, AskTimeoutArgs, AttachArgs, CancelArgs, RequestsArgs, SayArgs, WaitArgs,
};
pub(crate) use mcp::{
    McpArgs, McpCheckArgs, McpCommand, McpCommandArgs, McpListArgs, McpRestoreArgs, McpServeArgs,
    ServerArgs,
};
pub(crate) use mock_model::MockModelArgs;
pub(crate) use remote::{REMOTE_TOKEN_VARIABLE, RemoteArgs};
pub(crate) use run::{
    AgentSessionArgs, InputArgs, LimitArgs, ModelArgs, PermissionArgs, ProcessArgs, RetryArgs,
    RunArgs, SessionArgs, StdinMode, SystemArgs, TimeoutArgs,
};
pub(crate) use serve::{ServeArgs, TokenArgs, TokenCommand};
pub(crate) use store::{
    RunsArgs, RunsCommand, RunsForgetArgs, RunsListArgs, RunsShowArgs, STORE_VARIABLE, Status,
    StoreArgs,
};
pub(crate) use supervise::{
    AgentsArgs, AgentsCommand, AgentsLogsArgs, AgentsSelection, AgentsStatusArgs, AgentsWatchArgs,
    SuperviseArgs,
};
pub(crate) use teamster_host::Fallback;
pub(crate) use usage::{By, UsageArgs};
pub(crate) use value::EnvVar;

use crate::exit_code;

/// The help heading of the most used options: `-h` lists them together with `--help` itself.
const COMMON: Option<&str> = None;

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
  teamster --remote https://box.example runs list --live    list runs of another machine
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
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the arguments; the first one is the program's name.
    pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        let index = command_index(&args);
        match args.get(index).and_then(|command| command.to_str()) {
            Some("run") => {
                let args = prompt::mark(args, index);
                Self::read_command(&args, index, Command::Run)
                    .map_or_else(|| Self::try_parse_from(args), Ok)
                    .map_err(prompt::replace_tip)
            }
            Some("chat") => Self::read_command(&args, index, Command::Chat)
                .map_or_else(|| Self::try_parse_from(args), Ok),
            _ => Self::try_parse_from(args).map_err(suggest_nearest),
        }
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
        let OneCommand { remote, options } = OneCommand::<T>::try_parse_from(without_name).ok()?;
        Some(Self {
            remote,
            command: command(Box::new(options)),
        })
    }
}

/// The options of one command.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct OneCommand<T: Args> {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    options: T,
}

/// Returns the index of the command, which follows the global options.
fn command_index(args: &[OsString]) -> usize {
    let mut index = 1;
    while let Some(flag) = args.get(index).and_then(|arg| arg.to_str()) {
        match flag {
            "--remote" | "--remote-token-file" => index += 2,
            flag if flag.starts_with("--remote=") || flag.starts_with("--remote-token-file=") => {
                index += 1;
            }
            _ => break,
        }
    }
    index
}

/// Maximum edit distance between a mistyped command and the suggested one.
const MAX_EDIT_DISTANCE: usize = 2;

/// Suggests the command with the smallest edit distance; clap prefers those with a common prefix.
fn suggest_nearest(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(ContextValue::Strings(suggested)) = error.get(ContextKind::SuggestedSubcommand)
    {
        let program = Cli::command();
        // For nested commands clap's own suggestion is kept.
        let known = program.get_subcommands().map(clap::Command::get_name);
        let known: Vec<&str> = known.collect();
        if suggested.iter().all(|name| known.contains(&&**name)) {
            let distance = |name: &&str| strsim::osa_distance(typed, name);
            let nearest = known.into_iter().min_by_key(distance);
            if let Some(nearest) = nearest.filter(|name| distance(name) <= MAX_EDIT_DISTANCE) {
                let value = ContextValue::Strings(vec![nearest.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, value);
            }
        }
    }
    error
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
    Acp(Box<AcpArgs>),
    Serve(ServeArgs),
    Token(TokenArgs),
    Usage(UsageArgs),
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

/// List the installed agent CLIs and check whether they can be used.
///
/// For each supported CLI: its path, its version, whether it is logged in, and the versions that teamster
/// is tested with; for a missing one, how to install it. Also lists processes that earlier runs left
/// behind, and configuration files that killed runs left changed.
///
/// No agent is started and nothing is sent over the network: each CLI only prints its version. Logins are
/// detected by the CLI's files and the environment; if a keychain may hold a login, it is `unknown`. The
/// exit code is 0 if at least one CLI can be used, else 3.
///
/// With `--try`, one agent is started instead: any command that speaks the Agent Client Protocol. It must open a
/// session; no prompt is sent. The exit code is 0 if it did, 1 if it is not an ACP agent or needs a login, 3 if it
/// cannot be started, 4 if it did not answer in time.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check this ACP agent: `acp:COMMAND`, or the name of an agent that uses ACP
    #[arg(long = "try", value_name = "AGENT", conflicts_with = "kill_leftovers")]
    pub(crate) agent: Option<String>,
    /// Limit until the agent answers, such as 5s; `off` disables it
    #[arg(long, value_name = "DURATION", default_value = "30s", requires = "agent", value_parser = value::limit)]
    pub(crate) limit: std::time::Duration,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// End the processes that earlier runs left behind
    #[arg(long)]
    pub(crate) kill_leftovers: bool,
}

/// Demonstrate a run, with a scripted model or a recording.
///
/// If an agent CLI is installed, the demo runs it in a temporary folder, with its real tools, against a
/// scripted model on 127.0.0.1. Its home is temporary and its key is made up, so none of your files is
/// read or changed. Without a CLI, or if it fails, a stand-in prints the recorded output of a real run
/// of Claude Code; everything else is as in `teamster run`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The agent [default: the first installed of claude, codex, gemini, opencode, copilot]
    #[arg(long, value_name = "NAME", value_parser = provider::ProviderParser, conflicts_with = "recording")]
    pub(crate) provider: Option<String>,
    /// Play the recording, even if a CLI is installed
    #[arg(long)]
    pub(crate) recording: bool,
    /// Playback speed: 2 is twice as fast, 0 is without pauses
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = value::speed)]
    pub(crate) speed: f64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Generate shell completions.
///
/// For example: teamster completions bash > ~/.local/share/bash-completion/completions/teamster
///
/// The script calls teamster, so it also completes the ids of runs, sessions and agents.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Write the manual pages into a directory.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct ManArgs {
    /// The directory, created if it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
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

/// Output options of a run.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print every event as one line of JSON
    ///
    /// Nothing else is printed on stdout. Errors in arguments, prompts and files go to stderr only, with an
    /// empty stdout and exit code 2.
    #[arg(long, help_heading = COMMON)]
    pub(crate) json: bool,
    /// With --json: add the CLI's own line to each event
    #[arg(long, requires = "json", hide_short_help = true)]
    pub(crate) native: bool,
    /// Print only the agent's last message, and errors
    ///
    /// Errors are on stderr.
    #[arg(long, short, conflicts_with_all = ["json", "verbose"], help_heading = COMMON)]
    pub(crate) quiet: bool,
    /// Also show thinking, sub-agents and notes
    #[arg(long, short, conflicts_with = "json", help_heading = COMMON)]
    pub(crate) verbose: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_suggests_the_nearest_one() {
        for (typed, nearest) in [
            ("rnu", "'run'"),
            ("docter", "'doctor'"),
            ("mcpp", "'mcp'"),
            ("agent", "'agents'"),
        ] {
            let args = ["teamster", typed].map(OsString::from);
            let error = Cli::read(args).unwrap_err().to_string();
            assert!(error.contains(&format!("exists: {nearest}")), "{error}");
        }
    }

    #[test]
    fn short_help_fits_one_screen_of_80_columns() {
        let mut program = Cli::command().term_width(80);
        program.build();
        let commands = program.get_subcommands().cloned();
        let commands = commands.flat_map(|it| {
            let inner: Vec<_> = it.get_subcommands().cloned().collect();
            std::iter::once(it).chain(inner)
        });
        let mut too_long = Vec::new();
        for mut command in std::iter::once(program.clone()).chain(commands) {
            let help = command.clone().term_width(80).render_help().to_string();
            let lines = help.lines().count();
            // The program's own help has a line for each command.
            let most = if command.get_name() == "teamster" {
                37
            } else {
                30
            };
            if lines > most {
                too_long.push((command.get_name().to_owned(), lines));
            }
            let long = command.render_long_help().to_string();
            assert!(long.lines().count() >= lines, "{long}");
        }
        assert_eq!(too_long, []);
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }
}
