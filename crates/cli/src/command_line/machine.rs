//! Commands about the machine that `--remote` names, or the machines of `--fleet`.

#[cfg(feature = "fleet")]
use anyhow::anyhow;
use anyhow::bail;

use super::{Cli, Command};
use crate::commands::agents::args::AgentsCommand;
use crate::commands::mcp::args::McpCommand;
use crate::exit_code::misuse;
use crate::remote::{self, Machine};

/// Returns the machine that the arguments name. Returns a usage error if it does not support the command.
pub(crate) fn machine(cli: &Cli) -> anyhow::Result<Machine> {
    #[cfg(feature = "fleet")]
    if cli.fleet.fleet {
        return fleet(cli);
    }
    let Some(url) = remote::url(&cli.remote).map_err(misuse)? else {
        return Ok(Machine::here());
    };
    if ignores_remote(&cli.command) {
        return Ok(Machine::here());
    }
    check_supported(&cli.command).map_err(misuse)?;
    if let Some(options) = remote::typed(&cli.remote) {
        crate::global::choose(&options);
    }
    remote::connect(url, &cli.remote).map_err(misuse)
}

/// Returns the machines of the fleet. The variable of a server gives way to the option.
#[cfg(feature = "fleet")]
fn fleet(cli: &Cli) -> anyhow::Result<Machine> {
    if remote::typed(&cli.remote).is_some() {
        return Err(misuse(anyhow!(
            "--fleet excludes --remote: a server in front of the fleet (`teamster --fleet serve`) is used with --remote alone"
        )));
    }
    let is_other_end = matches!(cli.command, Command::Serve(_));
    if !is_other_end && ignores_remote(&cli.command) {
        return Ok(Machine::here());
    }
    check_in_fleet(&cli.command).map_err(misuse)?;
    let settings = crate::fleet::settings::Settings::read(None).map_err(misuse)?;
    crate::fleet::machine(&settings)
}

/// Returns `true` for commands that ignore `--remote`, because they do not depend on a machine, or are started on another
/// one, whose environment may name a third.
fn ignores_remote(command: &Command) -> bool {
    let is_other_end = matches!(command, Command::Serve(args) if args.stdio);
    #[cfg(feature = "fleet")]
    if matches!(command, Command::Fleet(_) | Command::Worker(_)) {
        return true;
    }
    is_other_end
        || matches!(
            command,
            Command::Demo(_)
                | Command::MockModel(_)
                | Command::Completions(_)
                | Command::Man(_)
                | Command::FakeAgent(_)
                | Command::FakeMcp(_)
        )
}

fn check_supported(command: &Command) -> anyhow::Result<()> {
    check_chat(command, "--remote")?;
    let name = match command {
        Command::Serve(_) => Some("serve"),
        command => of_this_machine(command),
    };
    if let Some(name) = name {
        bail!(
            "`teamster {name}` does not support --remote: omit it and unset TEAMSTER_REMOTE, or run the command on the \
            server's machine"
        );
    }
    Ok(())
}

/// Checks that the command is about the runs of a fleet.
#[cfg(feature = "fleet")]
fn check_in_fleet(command: &Command) -> anyhow::Result<()> {
    check_chat(command, "--fleet")?;
    if matches!(command, Command::Agents(_)) {
        bail!(
            "`teamster agents` does not support --fleet, because a supervisor controls the loops of one machine: name it, as \
             in `teamster --remote ssh:HOST agents status`"
        );
    }
    if let Some(name) = of_this_machine(command) {
        bail!(
            "`teamster {name}` does not support --fleet: omit it, or run the command on one of the fleet's machines"
        );
    }
    Ok(())
}

fn check_chat(command: &Command, flag: &str) -> anyhow::Result<()> {
    match command {
        Command::Chat(args) if !args.detach => bail!(
            "`teamster chat` with {flag} needs --detach: it prints the session's id, and `teamster attach ID` \
             talks with it"
        ),
        _ => Ok(()),
    }
}

/// Returns the name of a command that is about this machine alone.
fn of_this_machine(command: &Command) -> Option<&'static str> {
    Some(match command {
        Command::Agents(args) => match &args.command {
            AgentsCommand::Watch(_) => "agents watch",
            AgentsCommand::Reload => "agents reload",
            AgentsCommand::Logs(args) if args.follow => "agents logs --follow",
            _ => return None,
        },
        Command::Usage(args) if args.statusline => "usage --statusline",
        Command::Usage(args) if args.watch.is_some() => "usage --watch",
        Command::Usage(args) if args.prices.is_some() => "usage --prices",
        Command::Token(_) => "token",
        Command::Trust(_) => "trust",
        Command::Accounts(_) => "accounts",
        Command::Loop(_) => "loop",
        Command::Supervise(_) => "supervise",
        Command::Doctor(args) if args.agent.is_some() => "doctor --try",
        Command::Doctor(args) if args.start => "doctor --start",
        Command::Doctor(args) if args.kill_leftovers => "doctor --kill-leftovers",
        Command::Mcp(args) => match args.command {
            McpCommand::Serve(_) => return None,
            _ => "mcp",
        },
        _ => return None,
    })
}
