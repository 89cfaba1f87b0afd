//! `teamster token`: creates, lists and revokes access tokens.

pub(crate) mod args;

use std::io::{self, Write};

use anstyle::Style;
use teamster_server::{OwnerToken, Scope, TokenError, TokenInfo, Tokens};

use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, server_files, words};
use args::{TokenArgs, TokenCommand};

/// Creates, lists or revokes tokens and returns the exit code.
pub(crate) fn main(args: &TokenArgs) -> anyhow::Result<u8> {
    let tokens = Tokens::at(server_files::folder()?);
    let done = match &args.command {
        TokenCommand::Add(args) => {
            let scopes: Vec<Scope> = args.scope.iter().map(|scope| (*scope).into()).collect();
            tokens
                .add(&args.name, &scopes)
                .map(|secret| format!("{secret}\n").into_bytes())
        }
        TokenCommand::List(args) => {
            let tokens = tokens.list()?;
            let mut out = anstream::stdout();
            return exit_code::of_printed(if args.json {
                tokens.iter().try_for_each(|token| line(token, &mut out))
            } else if tokens.is_empty() {
                // On stderr, so that scripts do not read it as a token.
                let _ = writeln!(
                    anstream::stderr(),
                    "no tokens; `teamster token add` creates one"
                );
                Ok(())
            } else {
                table(&tokens, &mut out)
            });
        }
        TokenCommand::Replace(args) => {
            let file = match &args.token_file {
                Some(file) => file.clone(),
                None => server_files::folder()?.join(server_files::TOKEN),
            };
            OwnerToken::replace(&file).map(|owner| format!("{}\n", owner.secret()).into_bytes())
        }
        TokenCommand::Revoke(args) => tokens.revoke(&args.name).map(|()| Vec::new()),
    };
    match done {
        Ok(text) => exit_code::of_printed(io::stdout().write_all(&text)),
        Err(
            error @ (TokenError::Exists(_) | TokenError::NotFound(_) | TokenError::InvalidName(_)),
        ) => {
            crate::report::fail(&error.into());
            Ok(exit_code::USAGE)
        }
        Err(error) => Err(error.into()),
    }
}

fn line(token: &TokenInfo, out: &mut impl Write) -> io::Result<()> {
    // Without the hash.
    let line = serde_json::json!({
        "name": token.name,
        "scopes": token.scopes,
        "createdAt": token.created_at,
    });
    writeln!(out, "{line}")
}

fn table(tokens: &[TokenInfo], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["NAME", "SCOPES", "CREATED"]);
    for token in tokens {
        let scopes: Vec<_> = token.scopes.iter().map(|scope| scope.name()).collect();
        let cells = [
            words::one_line(&token.name),
            scopes.join(" "),
            local_time(token.created_at, "%Y-%m-%d %H:%M"),
        ];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.write(out)
}
