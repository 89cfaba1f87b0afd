//! `teamster token`: creates, lists and revokes access tokens.

pub(crate) mod args;

use std::io::{self, Write};

use teamster_server::{OwnerToken, TokenError, TokenInfo, Tokens};

use crate::report::note;
use crate::table::Table;
use crate::zone::local_time;
use crate::{exit_code, server_files, words};
use args::{TokenArgs, TokenCommand};

/// Creates, lists or revokes tokens and returns the exit code.
pub(crate) fn main(args: &TokenArgs) -> anyhow::Result<u8> {
    let tokens = Tokens::at(server_files::folder()?);
    let done = match &args.command {
        TokenCommand::Add(args) => {
            let secret = tokens.add(&args.name, &args.scope);
            secret.map(|secret| format!("{secret}\n").into_bytes())
        }
        TokenCommand::List(args) => {
            let tokens = tokens.list()?;
            if args.json {
                return exit_code::of_json_lines(tokens.iter().map(line));
            }
            if tokens.is_empty() {
                note("no tokens; `teamster token add` creates one");
                return Ok(exit_code::SUCCESS);
            }
            return exit_code::of_printed(table(&tokens, &mut anstream::stdout()));
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
        ) => Err(exit_code::misuse(error)),
        Err(error) => Err(error.into()),
    }
}

fn line(token: &TokenInfo) -> serde_json::Value {
    // Without the hash.
    serde_json::json!({
        "name": token.name,
        "scopes": token.scopes,
        "createdAt": token.created_at,
    })
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
        table.texts(cells);
    }
    table.write(out)
}
