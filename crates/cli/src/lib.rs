//! The program `teamster`: runs coding-agent CLIs from a terminal or a script.
//!
//! It is a library so that other programs can add providers: call [`main_with`] from `main`.
#![warn(missing_docs)]

mod args;
mod branch;
mod closed_stdout;
mod command_line;
mod commands;
mod completion;
mod detached;
mod dialog;
mod drive;
mod exit_code;
#[cfg(feature = "fleet")]
mod fleet;
mod global;
mod hints;
mod mcp_servers;
mod mock_home;
mod remote;
mod render;
mod report;
mod runtime;
mod server_files;
mod signals;
mod spec;
mod start;
mod stdin;
mod store;
mod style;
mod table;
#[cfg(feature = "otlp")]
mod telemetry;
mod words;
mod zone;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use teamster::Providers;
use teamster_host::{Host, Notice, Role};

use command_line::{Cli, Command};
use global::{FAKE_AGENT, set_host};
use report::{fail, warn};

fn new_host(providers: Providers) -> Host {
    Host::new(providers).on_notice(|notice| match notice {
        Notice::Warning(text) => warn(&[hints::warning(&text)]),
        Notice::Error(text) => fail(&anyhow::anyhow!(hints::warning(&text))),
        _ => {}
    })
}

/// Runs the program with these providers, such as `Providers::builtin().with(Arc::new(MyProvider))`.
///
/// Reads the arguments of the process and takes over its signals, output and environment. To be called from `main`,
/// before there is another thread.
pub fn main_with(providers: Providers) -> ExitCode {
    let code = perform(providers);
    #[cfg(feature = "otlp")]
    telemetry::end();
    code
}

fn perform(providers: Providers) -> ExitCode {
    teamster_host::limits::survive_file_limit();
    #[expect(unsafe_code, reason = "it changes the environment")]
    // SAFETY: `main` calls `main_with`, and no thread has been started yet.
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
    let host = new_host(providers).with_own_agents();
    #[cfg(feature = "otlp")]
    let host = telemetry::observe(host);
    match teamster_host::init(host) {
        Ok(Role::Program(host)) => set_host(host),
        Ok(Role::Runner(ended)) => return ExitCode::from(exit_code::of_runner(&ended)),
        Ok(Role::Guard(code)) => return code,
        Ok(_) => return ExitCode::from(exit_code::USAGE),
        Err(error) => return exit(Err(exit_code::misuse(anyhow::anyhow!(error.message)))),
    }
    completion::answer(Cli::command);
    let cli = match Cli::read(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => error.exit(),
        // Help, or the version.
        Err(help) => return exit(exit_code::of_printed(help.print())),
    };
    if !cli.command.is_service()
        && let Err(error) = closed_stdout::check()
    {
        return exit(Err(error));
    }
    let machine = match command_line::machine(&cli) {
        Ok(machine) => machine,
        Err(error) => return exit(Err(error)),
    };
    exit(match cli.command {
        Command::Run(args) => commands::run::main(*args, &machine),
        Command::Chat(args) => commands::chat::main(*args, &machine),
        Command::Acp(args) => commands::acp::main(*args, &machine),
        Command::Attach(args) => commands::attach::main(&args, &machine),
        Command::Say(args) => commands::say::main(&args, &machine),
        Command::Wait(args) => commands::wait::main(&args, &machine),
        Command::Cancel(args) => commands::cancel::main(&args, &machine),
        Command::Requests(args) => commands::requests::main(&args, &machine),
        Command::Answer(args) => commands::answer::main(&args, &machine),
        Command::Runs(args) => commands::runs::main(&args.command, &machine),
        Command::Serve(args) => commands::serve::main(&args, &machine),
        #[cfg(feature = "fleet")]
        Command::Worker(args) => commands::worker::main(args),
        #[cfg(feature = "fleet")]
        Command::Fleet(args) => commands::fleet::main(args.command),
        Command::Token(args) => commands::token::main(&args),
        Command::Trust(args) => commands::trust::main(&args),
        Command::Usage(args) => commands::usage::main(&args, &machine),
        Command::Accounts(args) => commands::accounts::main(&args),
        Command::Loop(args) => commands::r#loop::main(args),
        Command::Supervise(args) => commands::supervise::main(&args),
        Command::Agents(args) => commands::agents::main(&args, &machine),
        Command::Doctor(args) => commands::doctor::main(&args, &machine),
        Command::Mcp(args) => commands::mcp::main(args.command, &machine),
        Command::Demo(args) => commands::demo::main(&args),
        Command::MockModel(args) => commands::mock_model::main(&args),
        Command::Completions(args) => commands::completions::main(&args),
        Command::Man(args) => commands::man::main(&args, Cli::command()),
        Command::FakeAgent(args) => return fake_agent(args.args.into_iter()),
        Command::FakeMcp(args) => {
            return teamster_fakes::fake_mcp_server::main(args.args.into_iter());
        }
    })
}

/// Converts the result to an exit code and prints an error.
fn exit(code: anyhow::Result<u8>) -> ExitCode {
    ExitCode::from(code.unwrap_or_else(exit_code::of_error))
}

fn fake_agent(args: impl Iterator<Item = OsString>) -> ExitCode {
    teamster_fakes::fake_agent::FakeAgent::new()
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
