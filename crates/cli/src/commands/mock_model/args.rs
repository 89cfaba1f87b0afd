//! Arguments of `teamster mock-model`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::args::provider::ProviderParser;

const SHORT: &str = "\
Examples:
  teamster mock-model --example > hello.toml
  teamster mock-model hello.toml -- teamster run claude \"Hi\"
All options, more examples and the exit codes: teamster mock-model --help";

const EXAMPLES: &str = "\
Examples:
  teamster mock-model --example > hello.toml     write a commented example script
  teamster mock-model hello.toml                 serve until Ctrl-C; print how to point CLIs at it
  teamster mock-model hello.toml -- teamster run claude \"Hi\" --permission accept-edits
  teamster mock-model hello.toml -- codex exec --skip-git-repo-check -s workspace-write \"Hi\"
  teamster mock-model hello.toml --log requests.ndjson -- ./my-wrapper --once
  teamster mock-model hello.toml -- sh           a shell in which every agent CLI uses the script
  eval \"$(teamster mock-model hello.toml --export &)\"   the same in this shell";

const EXIT_CODES: &str = "\
Exit codes:
  With COMMAND: its own exit code; 128 plus the signal's number if a signal ended it; 3 if it is not
  installed. Without: 0 at Ctrl-C or SIGTERM. In both cases: 1 if the port is taken, 2 if the command
  line or the script is wrong, 130 if a signal to teamster stopped COMMAND.";

/// Serve a scripted model to agent CLIs, without key and network.
///
/// The server listens on 127.0.0.1, speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions
/// and Gemini, and answers from a TOML script. Real CLIs use it in place of their model service, and run
/// their real tools when the script calls them. Keys are made up, and the CLIs get a temporary home.
#[derive(Debug, Args)]
#[command(
    after_help = SHORT,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"),
)]
pub(crate) struct MockModelArgs {
    /// The script; `-` reads stdin
    #[arg(required_unless_present = "example")]
    pub(crate) script: Option<PathBuf>,
    /// Run this command with the CLIs pointed at the server, and exit with its exit code
    ///
    /// COMMAND is one of the CLIs, by its name, or a program that starts any of them. A CLI also gets the
    /// flags and the model that it needs.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// Print an example script with comments
    #[arg(long, exclusive = true)]
    pub(crate) example: bool,
    /// Only this CLI (repeatable)
    ///
    /// Default: those that are installed, or COMMAND. With a single CLI, its tools are also called where a
    /// request does not name the client.
    #[arg(long, value_name = "NAME", value_parser = ProviderParser)]
    pub(crate) cli: Vec<String>,
    /// The agent's working directory, for tools that take only absolute paths
    ///
    /// The current directory by default. COMMAND is run there.
    #[arg(long, short = 'C', value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value = "0")]
    pub(crate) port: u16,
    /// Delay between two pieces of text, in milliseconds
    #[arg(long, value_name = "MS", default_value = "10", hide_short_help = true)]
    pub(crate) pace: u64,
    /// With COMMAND: leave HOME as it is
    ///
    /// For a COMMAND that needs it, such as a tool chain. The CLIs get a temporary home by their own
    /// variables, such as `CODEX_HOME` and `XDG_CONFIG_HOME`.
    #[arg(long, requires = "command", hide_short_help = true)]
    pub(crate) keep_home: bool,
    /// Print one line of JSON: the address, and what each CLI needs
    #[arg(long, conflicts_with_all = ["command", "export"], hide_short_help = true)]
    pub(crate) json: bool,
    /// Print shell lines to `eval` that set the variables, then close stdout
    ///
    /// HOME is not changed. `TEAMSTER_MOCK_PID` is the server's process.
    #[arg(long, conflicts_with = "command")]
    pub(crate) export: bool,
    /// Append every request to a file, as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// With COMMAND: show every request on stderr
    #[arg(long, short, requires = "command")]
    pub(crate) verbose: bool,
    /// Without COMMAND: do not show requests
    #[arg(long, short, conflicts_with = "command", hide_short_help = true)]
    pub(crate) quiet: bool,
}
