//! MCP servers from the command line and from configuration files.

mod typed;

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use teamster::McpServer;
use teamster::mcp::config;

use crate::args::ServerArgs;

/// The default configuration file.
const DEFAULT: &str = ".mcp.json";

/// A configuration text with servers.
pub(crate) struct Source {
    /// The origin of the text, for messages.
    origin: String,
    text: String,
}

/// The parsed servers of all sources.
#[derive(Debug, Default)]
pub(crate) struct ParsedServers {
    /// The servers.
    pub(crate) servers: Vec<McpServer>,
    /// The origin of each server.
    pub(crate) origins: Vec<String>,
    /// Settings without effect, for people.
    pub(crate) ignored: Vec<String>,
}

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

/// Parses the servers of the sources.
pub(crate) fn parse_servers(
    sources: &[Source],
    variables: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<ParsedServers> {
    let mut given = ParsedServers::default();
    for Source { origin, text } in sources {
        let parsed =
            config::parse(text, variables).map_err(|error| anyhow!("{origin}: {error}"))?;
        for server in parsed.servers {
            let name = &server.name;
            if let Some(index) = given.servers.iter().position(|it| it.name == *name) {
                bail!(
                    "there are two MCP servers called `{name}`: in {} and in {origin}",
                    given.origins[index]
                );
            }
            given.servers.push(server);
            given.origins.push(origin.clone());
        }
        let ignored = parsed.ignored.iter();
        given
            .ignored
            .extend(ignored.map(|it| format!("{origin}: {it}")));
    }
    Ok(given)
}

/// Returns a variable of this process's environment.
pub(crate) fn own_variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

fn from_config(config: &str) -> anyhow::Result<Source> {
    let (origin, text) = if config.trim_start().starts_with('{') {
        ("--mcp-config".to_owned(), config.to_owned())
    } else {
        let bytes =
            fs::read(config).with_context(|| format!("cannot read MCP servers from {config}"))?;
        let text = String::from_utf8(bytes).ok();
        let text = text.with_context(|| format!("{config} is not UTF-8 text"))?;
        (config.to_owned(), text)
    };
    Ok(Source { origin, text })
}

/// Converts `NAME=COMMAND` or `NAME=URL` to the equivalent JSON, so that the same rules apply.
fn from_command(argument: &str) -> anyhow::Result<Source> {
    // The error does not show the argument, which may contain a secret.
    let Some((name, value)) = argument.split_once('=').filter(|(name, _)| is_name(name)) else {
        bail!("--mcp needs NAME=COMMAND or NAME=URL");
    };
    let server = typed::server(name, value)?;
    let servers: Map<String, Value> = [(name.to_owned(), server)].into_iter().collect();
    Ok(Source {
        origin: "--mcp".to_owned(),
        text: json!({ "mcpServers": servers }).to_string(),
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/' || c == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(configs: &[&str], servers: &[&str]) -> anyhow::Result<ParsedServers> {
        let args = ServerArgs {
            mcp_config: configs.iter().map(|&it| it.to_owned()).collect(),
            mcp: servers.iter().map(|&it| it.to_owned()).collect(),
        };
        let variables = |name: &str| (name == "TOKEN").then(|| "sk 1".to_owned());
        parse_servers(&sources(&args)?, &variables)
    }

    fn server(text: &str) -> McpServer {
        let mut given = read(&[], &[text]).unwrap();
        assert_eq!(given.ignored, [""; 0]);
        given.servers.remove(0)
    }

    fn error(configs: &[&str], servers: &[&str]) -> String {
        format!("{:#}", read(configs, servers).unwrap_err())
    }

    const NO_ARGS: [&str; 0] = [];

    #[test]
    fn a_command_is_split_as_a_shell_does() {
        assert_eq!(
            server(r#"a=my-mcp --root "/my files" 'x y' z\ z"#),
            McpServer::stdio("a", "my-mcp", ["--root", "/my files", "x y", "z z"])
        );
        assert_eq!(
            server("a=A=1 _B='2 3' cmd C=4"),
            McpServer::stdio("a", "cmd", ["C=4"])
                .env("A", "1")
                .env("_B", "2 3")
        );
    }

    #[test]
    fn variables_come_after_the_splitting() {
        assert_eq!(
            server("a=TOKEN=${TOKEN} cmd ${TOKEN}"),
            McpServer::stdio("a", "cmd", ["sk 1"]).env("TOKEN", "sk 1")
        );
        assert_eq!(
            error(&[], &["a=X=${NOT_SET} cmd"]),
            "--mcp: a: env.X: the variable NOT_SET is not set"
        );
    }

    #[test]
    fn an_address_is_a_server_over_http() {
        for (typed, url) in [
            ("https://example.com/mcp?a=b", "https://example.com/mcp?a=b"),
            ("HTTPS://Example.com/MCP", "https://Example.com/MCP"),
            ("Http://localhost:1/mcp", "http://localhost:1/mcp"),
            (" https://example.com/mcp ", "https://example.com/mcp"),
            ("'https://example.com/mcp'", "https://example.com/mcp"),
        ] {
            assert_eq!(server(&format!("a={typed}")), McpServer::http("a", url));
        }
    }

    #[test]
    fn an_address_of_another_kind_is_no_program() {
        for typed in [
            "ws://sk-1/mcp",
            "sse+x.y-1://sk-1",
            "FILE:///sk-1",
            "\"ws://sk-1\"",
        ] {
            assert_eq!(
                error(&[], &[&format!("a={typed}")]),
                "--mcp a: unsupported URL: expected http:// or https://"
            );
        }
        for typed in [
            "KEY=sk-1 https://x/mcp",
            "'https://x/mcp' -v",
            "https://x/mcp -v",
        ] {
            assert_eq!(
                error(&[], &[&format!("a={typed}")]),
                "--mcp a: a URL takes no variables or arguments"
            );
        }
        // Not URLs.
        for program in ["./a://b", "1a://b", "://b"] {
            assert_eq!(
                server(&format!("a={program}")),
                McpServer::stdio("a", program, NO_ARGS)
            );
        }
    }

    #[test]
    fn a_program_is_never_the_value_of_a_variable() {
        for (typed, message) in [
            (
                "TOKEN=${TOKEN} tracker-mcp",
                "--mcp TOKEN: the program would be the value of a variable; add a name: \
                --mcp NAME='TOKEN=${TOKEN} COMMAND'",
            ),
            // A default may be a secret.
            (
                "TOKEN=${NOT_SET:-sk-1} sk-2",
                "--mcp TOKEN: the program would be the value of a variable; add a name: \
                --mcp NAME='TOKEN=${…} COMMAND'",
            ),
            (
                "KEY='Bearer ${TOKEN}' sk-2",
                "--mcp KEY: the program would be the value of a variable; add a name: \
                --mcp NAME='KEY=${…} COMMAND'",
            ),
            (
                "a=KEY=sk-1 ${TOKEN}",
                "--mcp a: the program would be the value of a variable; name the program itself",
            ),
        ] {
            assert_eq!(error(&[], &[typed]), message);
        }
    }

    #[test]
    fn shell_operators_are_rejected() {
        for (typed, operator) in [
            ("x | y > z; rm", "|"),
            ("x || y", "||"),
            ("x &", "&"),
            ("x && y", "&&"),
            ("x ; y", ";"),
            ("x > y", ">"),
            ("x >> y", ">>"),
            ("x < y", "<"),
            ("x 2>&1", "2>&1"),
            ("x 'a b' \\' | y", "|"),
            ("A=1 x\t|\ty", "|"),
        ] {
            assert_eq!(
                error(&[], &[&format!("a={typed}")]),
                format!(
                    "--mcp a: `{operator}` needs a shell, and the command is run without one; \
                    use a=\"sh -c '…'\""
                )
            );
        }
        assert_eq!(
            server(r#"a=x '|' "&&" \; 'a | b' "c \" > d" a|b b;"#),
            McpServer::stdio("a", "x", ["|", "&&", ";", "a | b", "c \" > d", "a|b", "b;"])
        );
    }

    #[test]
    fn invalid_commands_are_reported_without_their_text() {
        for (text, message) in [
            ("sk-1", "--mcp needs NAME=COMMAND or NAME=URL"),
            ("=sk-1", "--mcp needs NAME=COMMAND or NAME=URL"),
            ("https://sk-1?a=b", "--mcp needs NAME=COMMAND or NAME=URL"),
            ("a=", "--mcp a: the command is missing"),
            ("a=KEY=sk-1", "--mcp a: the command is missing"),
            (
                "a='sk-1",
                "--mcp a: a quotation mark in the command is not closed",
            ),
        ] {
            assert_eq!(error(&[], &[text]), message);
        }
    }

    #[test]
    fn a_configuration_may_be_the_json_itself() {
        let given = read(&[r#" {"a": {"command": "x", "arg": []}}"#], &["b=y"]).unwrap();
        let expected = ["a", "b"].map(str::to_owned);
        let names: Vec<_> = given.servers.iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, expected);
        assert_eq!(
            given.ignored,
            ["--mcp-config: a: arg: it is not known; is args meant?"]
        );
        assert_eq!(given.servers[0], McpServer::stdio("a", "x", NO_ARGS));
    }

    #[test]
    fn two_servers_of_one_name_are_an_error_with_both_origins() {
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
