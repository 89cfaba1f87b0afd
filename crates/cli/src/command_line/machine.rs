//! Which commands are about the machine that `--remote` names.

use anyhow::bail;

use super::{Cli, Command};
use crate::commands::agents::args::AgentsCommand;
use crate::commands::mcp::args::McpCommand;
use crate::remote::{self, Machine};

/// Returns the machine that the arguments name. Returns a usage error if it does not support the command.
pub(crate) fn machine(cli: &Cli) -> anyhow::Result<Machine> {
    let Some(url) = remote::url(&cli.remote)? else {
        return Ok(Machine::here());
    };
    if ignores_remote(&cli.command) {
        return Ok(Machine::here());
    }
    check_supported(&cli.command)?;
    remote::connect(url, &cli.remote)
}

/// Returns `true` for commands that ignore `--remote`, because they do not depend on a machine, or are started on another
/// one, whose environment may name a third.
fn ignores_remote(command: &Command) -> bool {
    let is_other_end = matches!(command, Command::Serve(args) if args.stdio);
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
    let name = match command {
        Command::Chat(args) if args.detach => return Ok(()),
        Command::Chat(_) => bail!(
            "`teamster chat` with --remote needs --detach: it prints the session's id, and `teamster attach ID` \
             talks with it"
        ),
        Command::Agents(args) => match &args.command {
            AgentsCommand::Watch(_) => "agents watch",
            AgentsCommand::Reload => "agents reload",
            AgentsCommand::Logs(args) if args.follow => "agents logs --follow",
            _ => return Ok(()),
        },
        Command::Usage(args) if args.statusline => "usage --statusline",
        Command::Usage(args) if args.watch.is_some() => "usage --watch",
        Command::Usage(args) if args.prices.is_some() => "usage --prices",
        Command::Serve(_) => "serve",
        Command::Token(_) => "token",
        Command::Trust(_) => "trust",
        Command::Loop(_) => "loop",
        Command::Supervise(_) => "supervise",
        Command::Doctor(args) if args.agent.is_some() => "doctor --try",
        Command::Doctor(args) if args.kill_leftovers => "doctor --kill-leftovers",
        Command::Mcp(args) => match args.command {
            McpCommand::Serve(_) => return Ok(()),
            _ => "mcp",
        },
        _ => return Ok(()),
    };
    bail!(
        "`teamster {name}` does not support --remote: omit it and unset TEAMSTER_REMOTE, or run the command on the \
        server's machine"
    )
}
