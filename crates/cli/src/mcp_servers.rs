//! MCP servers that the arguments name.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use teamster::mcp::source::{Source, TypedError};

use crate::args::ServerArgs;

/// The default configuration file.
const DEFAULT: &str = ".mcp.json";

/// Reads the sources that the arguments name. Each is read once, because it may be a pipe.
pub(crate) fn sources(args: &ServerArgs) -> anyhow::Result<Vec<Source>> {
    let configs = args.mcp_config.iter().map(|config| from_config(config));
    let commands = args.mcp.iter().map(|server| from_command(server));
    configs.chain(commands).collect()
}

/// Reads the sources that the arguments name, or `.mcp.json` of the current directory if they name none.
pub(crate) fn sources_or_default(args: &ServerArgs) -> anyhow::Result<Vec<Source>> {
    if !args.mcp_config.is_empty() || !args.mcp.is_empty() {
        return sources(args);
    }
    if !Path::new(DEFAULT).exists() {
        bail!(
            "no {DEFAULT} in this directory; name servers with --mcp-config FILE or --mcp NAME=COMMAND"
        );
    }
    Ok(vec![from_config(DEFAULT)?])
}

/// Returns a variable of this process's environment.
pub(crate) fn own_variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn from_config(config: &str) -> anyhow::Result<Source> {
    if config.trim_start().starts_with('{') {
        return Ok(Source::new("--mcp-config", config));
    }
    let bytes =
        fs::read(config).with_context(|| format!("cannot read MCP servers from {config}"))?;
    let text = String::from_utf8(bytes).ok();
    let text = text.with_context(|| format!("{config} is not UTF-8 text"))?;
    Ok(Source::new(config, text))
}

/// Reads `NAME=COMMAND` or `NAME=URL`. The error does not show the argument, which may contain a secret.
fn from_command(argument: &str) -> anyhow::Result<Source> {
    let name = argument.split('=').next().unwrap_or_default();
    Source::typed("--mcp", argument).map_err(|error| match error {
        TypedError::NoName => anyhow!("--mcp needs NAME=COMMAND or NAME=URL"),
        TypedError::VariableAsName { typed } => anyhow!(
            "--mcp {name}: the program would be the value of a variable; add a name: --mcp NAME='{typed} COMMAND'"
        ),
        error => anyhow!("--mcp {name}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use teamster::mcp::source::merge;

    use super::*;

    fn error(configs: &[&str], servers: &[&str]) -> String {
        let args = ServerArgs {
            mcp_config: configs.iter().map(|&it| it.to_owned()).collect(),
            mcp: servers.iter().map(|&it| it.to_owned()).collect(),
        };
        let merged = sources(&args).and_then(|sources| Ok(merge(&sources, &|_| None)?));
        format!("{:#}", merged.unwrap_err())
    }

    #[test]
    fn errors_name_the_option() {
        for (typed, message) in [
            ("sk-1", "--mcp needs NAME=COMMAND or NAME=URL"),
            ("a=", "--mcp a: the command is missing"),
            (
                "a=x | y",
                "--mcp a: `|` needs a shell, and the command is run without one; use a=\"sh -c '…'\"",
            ),
            (
                "TOKEN=${TOKEN} tracker-mcp",
                "--mcp TOKEN: the program would be the value of a variable; add a name: \
                --mcp NAME='TOKEN=${TOKEN} COMMAND'",
            ),
            (
                "a=X=${NOT_SET} cmd",
                "--mcp: a: env.X: the variable NOT_SET is not set",
            ),
        ] {
            assert_eq!(error(&[], &[typed]), message);
        }
        assert_eq!(
            error(&[r#"{"a": {"command": "x"}}"#], &["a=y"]),
            "there are two MCP servers called `a`: in --mcp-config and in --mcp"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let message = error(&["/no/such.json"], &[]);
        assert!(
            message.starts_with("cannot read MCP servers from /no/such.json: "),
            "{message}"
        );
    }
}
