//! `teamster accounts`: limits that accounts have reached.

pub(crate) mod args;

use std::io::{self, Write};

use anstyle::Style;
use teamster::orchestrator::Held;

use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, store, words};
use args::{AccountsArgs, AccountsCommand, AccountsListArgs, AccountsReleaseArgs};

/// Lists or releases accounts and returns the exit code.
pub(crate) fn main(args: &AccountsArgs) -> anyhow::Result<u8> {
    tokio_runtime()?.block_on(async {
        match &args.command {
            AccountsCommand::List(args) => list(args).await,
            AccountsCommand::Release(args) => release(args).await,
        }
    })
}

async fn list(args: &AccountsListArgs) -> anyhow::Result<u8> {
    let holds = match store::open(&args.store).await? {
        Some(store) => store.holds(None).await?,
        None => Vec::new(),
    };
    if args.json {
        return exit_code::of_json_lines(&holds);
    }
    if holds.is_empty() {
        note("no account has reached a limit");
        return Ok(exit_code::SUCCESS);
    }
    exit_code::of_printed(table(&holds, &mut anstream::stdout()))
}

async fn release(args: &AccountsReleaseArgs) -> anyhow::Result<u8> {
    let released = match store::open(&args.store).await? {
        Some(store) => store.release_holds(args.agent.as_deref()).await?,
        None => 0,
    };
    exit_code::of_lines([format!("{} released", words::plural(released, "account"))])
}

fn table(holds: &[Held], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["AGENT", "MODEL", "UNTIL", "REASON"]).without_empty();
    for held in holds {
        let cells = [
            words::one_line(&held.provider),
            words::one_line(held.model.as_deref().unwrap_or_default()),
            local_time(held.until_ms, "%Y-%m-%d %H:%M"),
            words::one_line(&held.reason.message),
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.write(out)
}
