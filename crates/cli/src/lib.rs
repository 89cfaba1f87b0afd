//! The program `teamster`: runs coding-agent CLIs from a terminal or a script.
//!
//! It is a library so that other programs can add providers: call [`main_with`] from `main`.
#![warn(missing_docs)]

mod args;
mod command_line;
mod commands;
mod completion;
mod detached;
mod dialog;
mod drive;
mod exit_code;
mod hints;
mod mcp_servers;
mod mock_home;
mod remote;
mod render;
mod runner;
mod server_files;
mod signals;
mod spec;
mod stdin;
mod store;
mod table;
mod words;
mod zone;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::CommandFactory;
use teamster::Providers;
use teamster_host::{Host, Notice, Role, Warning, threads};

use command_line::{Cli, Command};

/// The name of the fake agent's subcommand.
pub(crate) const FAKE_AGENT: &str = "fake-agent";

/// What carries out runs for the commands.
static HOST: OnceLock<Host> = OnceLock::new();

/// Returns what carries out runs for the commands.
pub(crate) fn host() -> &'static Host {
    HOST.get_or_init(|| new_host(Providers::builtin()))
}

fn new_host(providers: Providers) -> Host {
    Host::new(providers).on_notice(|notice| match notice {
        Notice::Warning(text) => warn(&[hints::warning(&text)]),
        Notice::Error(text) => fail(&anyhow::anyhow!(hints::warning(&text))),
        _ => {}
    })
}

/// Returns the path of this program.
pub(crate) fn program() -> io::Result<&'static Path> {
    host()
        .runner_program()
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns the providers available to commands.
pub(crate) fn providers() -> &'static Providers {
    host().providers()
}

/// Runs the program with these providers, such as `Providers::builtin().with(Arc::new(MyProvider))`.
///
/// Reads the arguments of the process and takes over its signals, output and environment. To be called from `main`,
/// before there is another thread.
pub fn main_with(providers: Providers) -> ExitCode {
    survive_file_limit();
    #[expect(unsafe_code, reason = "it changes the environment")]
    // SAFETY: `main` calls this function, and no thread has been started yet.
    unsafe {
        teamster::embedded::hide_keys();
    }
    if let Some(problem) = teamster::embedded::become_sandboxed(std::env::args_os().skip(1)) {
        let _ = writeln!(io::stderr(), "error: {problem}");
        return ExitCode::from(126);
    }
    // Before anything else: the fake agent takes foreign arguments, and tests measure its start.
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == FAKE_AGENT => return fake_agent(args),
        _ => {}
    }
    match teamster_host::init(new_host(providers).with_own_agents()) {
        // Fails only if this function is called twice.
        Ok(Role::Program(host)) => drop(HOST.set(host)),
        Ok(Role::Runner(ended)) => return ExitCode::from(runner::exit_code(&ended)),
        Ok(Role::Guard(code)) => return code,
        Ok(_) => return ExitCode::from(exit_code::USAGE),
        Err(error) => {
            fail(&anyhow::anyhow!(error.message));
            return ExitCode::from(exit_code::USAGE);
        }
    }
    completion::answer(Cli::command);
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => error.exit(),
        // Help, or the version.
        Err(help) => return exit(exit_code::of_printed(help.print())),
    };
    let machine = match command_line::machine(&cli) {
        Ok(machine) => machine,
        Err(error) => {
            fail(&error);
            return ExitCode::from(exit_code::USAGE);
        }
    };
    exit(match cli.command {
        Command::Run(args) => commands::run::main(*args, &machine),
        Command::Chat(args) => commands::chat::main(*args, &machine),
        Command::Acp(args) => commands::acp::main(*args),
        Command::Attach(args) => commands::attach::main(&args, &machine),
        Command::Say(args) => commands::say::main(&args, &machine),
        Command::Wait(args) => commands::wait::main(&args, &machine),
        Command::Cancel(args) => commands::cancel::main(&args, &machine),
        Command::Requests(args) => commands::requests::main(&args, &machine),
        Command::Answer(args) => commands::answer::main(&args, &machine),
        Command::Runs(args) => commands::runs::main(&args.command, &machine),
        Command::Serve(args) => commands::serve::main(&args),
        Command::Token(args) => commands::token::main(&args),
        Command::Usage(args) => commands::usage::main(&args, &machine),
        Command::Loop(args) => commands::r#loop::main(args),
        Command::Supervise(args) => commands::supervise::main(&args),
        Command::Agents(args) => commands::agents::main(&args, &machine),
        Command::Doctor(args) => commands::doctor::main(&args),
        Command::Mcp(args) => commands::mcp::main(args.command, &machine),
        Command::Demo(args) => commands::demo::main(&args),
        Command::MockModel(args) => commands::mock_model::main(&args),
        Command::Completions(args) => commands::completions::main(&args),
        Command::Man(args) => commands::man::main(&args, Cli::command()),
        Command::FakeAgent(args) => return fake_agent(args.args.into_iter()),
        Command::FakeMcp(args) => return teamster_testkit::mcp_server::main(args.args.into_iter()),
    })
}

/// Converts the result to an exit code and prints an error.
fn exit(code: anyhow::Result<u8>) -> ExitCode {
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            fail(&error);
            ExitCode::from(exit_code::AGENT_ERROR)
        }
    }
}

/// Prints an error to stderr.
pub(crate) fn fail(error: &anyhow::Error) {
    fail_on(&mut anstream::stderr(), error);
}

/// Prints an error to `out`.
pub(crate) fn fail_on(out: &mut dyn Write, error: &anyhow::Error) {
    let style = anstyle::Style::new()
        .fg_color(Some(anstyle::AnsiColor::Red.into()))
        .bold();
    let advice = hints::advice(error).unwrap_or_default();
    let error = words::error_chain(error) + &advice;
    let error = words::printable(words::without_error_word(&error));
    let deleted = if is_current_directory_deleted() && !error.contains(DELETED) {
        format!("; {DELETED}; change to another one")
    } else {
        String::new()
    };
    // A closed stderr is ignored.
    let _ = writeln!(out, "{style}error:{style:#} {error}{deleted}");
}

/// The note that explains errors in a deleted current directory.
const DELETED: &str = "the current directory was deleted";

fn is_current_directory_deleted() -> bool {
    std::env::current_dir().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Prints warnings to stderr.
pub(crate) fn warn(ignored: &[String]) {
    let style = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Yellow.into()));
    for what in ignored {
        let what = words::printable(what);
        // As above.
        let _ = writeln!(anstream::stderr(), "{style}warning:{style:#} {what}");
    }
}

/// Prints warnings of a run to stderr. A quiet command leaves out those that are not important.
pub(crate) fn warn_of(warnings: &[Warning], quiet: bool) {
    let shown = warnings.iter().filter(|it| it.important || !quiet);
    let shown: Vec<_> = shown.map(|it| hints::warning(&it.text)).collect();
    warn(&shown);
}

/// Creates a runtime with two worker threads. They continue while the main thread waits for a slow reader of stdout,
/// so an agent never waits for that reader.
pub(crate) fn tokio_runtime() -> io::Result<tokio::runtime::Runtime> {
    threads::runtime(2)
}

/// Creates the runtime of a server, which has many threads for a moment.
pub(crate) fn server_runtime() -> io::Result<tokio::runtime::Runtime> {
    threads::runtime_for(2, std::time::Duration::from_secs(10))
}

/// Makes writes beyond the limit of file sizes (`ulimit -f`) fail, where the default would end this process.
///
/// A handler that does nothing, because child processes would inherit an ignored signal.
fn survive_file_limit() {
    extern "C" fn nothing(_: nix::libc::c_int) {}

    let handler = nix::sys::signal::SigHandler::Handler(nothing);
    // SAFETY: the handler does nothing, so it is safe at any time.
    #[expect(unsafe_code, reason = "the only way to set a signal handler")]
    // Without it, only the error is lost.
    let _ = unsafe { nix::sys::signal::signal(nix::sys::signal::Signal::SIGXFSZ, handler) };
}

fn fake_agent(args: impl Iterator<Item = OsString>) -> ExitCode {
    teamster_testkit::fake_agent::FakeAgent::new()
        .prefix_args([FAKE_AGENT])
        .run(args)
}

#[cfg(test)]
mod tests {
    use teamster::Providers;
    use teamster::usage::Provider as Reader;
    use teamster_mock_model::Cli;

    /// Each built-in provider has a usage reader and can be pointed at the mock model.
    #[test]
    fn the_parts_of_the_workspace_know_the_same_clis() {
        let all = Providers::builtin().all();
        let ids: Vec<_> = all.iter().map(|provider| provider.info().id).collect();
        assert_eq!(Reader::ALL.map(Reader::id).to_vec(), ids);
        assert_eq!(Cli::ALL.map(Cli::id).to_vec(), ids);
    }
}
