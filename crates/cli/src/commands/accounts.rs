//! `teamster accounts`: named accounts, and limits that accounts have reached.

pub(crate) mod args;

use std::io::{self, Write};

use serde::Serialize;
use teamster::AgentError;
use teamster::orchestrator::Held;
use teamster_host::Account;

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
    let named = crate::global::host().accounts()?;
    let holds = match store::open(&args.store).await? {
        Some(store) => store.holds(None).await?,
        None => Vec::new(),
    };
    let rows = rows(&named, &holds);
    if args.json {
        return exit_code::of_json_lines(&rows);
    }
    if rows.is_empty() {
        note("no account has reached a limit, and `accounts.toml` names none");
        return Ok(exit_code::SUCCESS);
    }
    exit_code::of_printed(table(&rows, &mut anstream::stdout()))
}

/// An account that has a name, or has reached a limit.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    /// The agent.
    provider: &'a str,
    /// The account's name in `accounts.toml`.
    account: Option<&'a str>,
    /// Whether a named account has a login.
    has_login: Option<bool>,
    model: Option<&'a str>,
    until_ms: Option<u64>,
    reason: Option<&'a AgentError>,
}

/// Returns a row for each limit, and for each named account without one.
fn rows<'a>(named: &'a [Account], holds: &'a [Held]) -> Vec<Row<'a>> {
    let parts = |held: &'a Held| match held.provider.split_once('@') {
        // The command of an agent may have a user or a version, and no account.
        Some((agent, account)) if !agent.contains(':') => (agent, Some(account)),
        _ => (&*held.provider, None),
    };
    let is_of = |account: &Account, held: &'a Held| parts(held).1 == Some(account.name.as_str());
    let has_login = |name: Option<&str>| {
        let account = named
            .iter()
            .find(|account| Some(account.name.as_str()) == name);
        account.and_then(|account| account.has_login)
    };
    let held = holds.iter().map(|held| {
        let (provider, account) = parts(held);
        Row {
            provider,
            account,
            has_login: has_login(account),
            model: held.model.as_deref(),
            until_ms: Some(held.until_ms),
            reason: Some(&held.reason),
        }
    });
    let free = named
        .iter()
        .filter(|account| !holds.iter().any(|held| is_of(account, held)));
    let free = free.map(|account| Row {
        provider: account.agent,
        account: Some(&account.name),
        has_login: account.has_login,
        model: None,
        until_ms: None,
        reason: None,
    });
    held.chain(free).collect()
}

async fn release(args: &AccountsReleaseArgs) -> anyhow::Result<u8> {
    let released = match store::open(&args.store).await? {
        Some(store) => store.release_holds(args.agent.as_deref()).await?,
        None => 0,
    };
    exit_code::of_lines([format!("{} released", words::plural(released, "account"))])
}

fn table(rows: &[Row<'_>], out: &mut impl Write) -> io::Result<()> {
    let head = ["AGENT", "ACCOUNT", "LOGIN", "MODEL", "HELD UNTIL", "REASON"];
    let mut table = Table::new(head).without_empty();
    for row in rows {
        let login = match row.has_login {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let until = |ms| local_time(ms, "%Y-%m-%d %H:%M");
        let cells = [
            words::one_line(row.provider),
            words::one_line(row.account.unwrap_or_default()),
            login.to_owned(),
            words::one_line(row.model.unwrap_or_default()),
            row.until_ms.map(until).unwrap_or_default(),
            words::one_line(row.reason.map(|it| &*it.message).unwrap_or_default()),
        ];
        table.texts(cells);
    }
    table.write(out)
}

#[cfg(test)]
mod tests {
    use teamster::{ErrorCode, ErrorKind};

    use super::*;

    #[test]
    fn held_account_is_named_after_an_agent_and_not_in_a_command() {
        let reason = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "over");
        let held = ["claude@work", "acp:npx -y @x/agent@1.2", "codex"]
            .map(|provider| Held::new(provider, 1, reason.clone()));
        let rows = rows(&[], &held);
        let rows: Vec<_> = rows.iter().map(|row| (row.provider, row.account)).collect();
        let command = "acp:npx -y @x/agent@1.2";
        assert_eq!(
            rows,
            [("claude", Some("work")), (command, None), ("codex", None)]
        );
    }
}
