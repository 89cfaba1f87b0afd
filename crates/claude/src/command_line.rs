//! Parser of MCP servers, denied and available tools and the session in command lines, either recorded or from the
//! caller's extra arguments.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use teamster_core::ExecuteParams;

/// Flags that the decoder needs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Flags {
    /// Names of MCP servers that are configured inline.
    pub(crate) servers: Vec<String>,
    /// Values of the flags that deny tools. One value may have several rules.
    pub(crate) denied_tools: Vec<String>,
    /// Values of the flag that names the CLI's own tools.
    pub(crate) tools: Option<Vec<String>>,
    /// Id of the resumed session.
    pub(crate) resumed: Option<String>,
}

impl Flags {
    /// Parses arguments, without the program's name. The flags for MCP servers and tools take any number of
    /// values up to the next word that begins with `-`, or a single value after `=`.
    pub(crate) fn of(words: &[String]) -> Self {
        let mut flags = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            let (flag, joined) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value)),
                None => (word, None),
            };
            if flag == "--resume" {
                let next = || words.next_if(|next| !next.starts_with('-'));
                flags.resumed = joined.or_else(next).map(str::to_owned);
                continue;
            }
            if !matches!(
                flag,
                "--mcp-config" | "--disallowedTools" | "--disallowed-tools" | "--tools"
            ) {
                continue;
            }
            let mut values: Vec<_> = joined.into_iter().collect();
            if joined.is_none() {
                while let Some(value) = words.next_if(|next| !next.starts_with('-')) {
                    values.push(value);
                }
            }
            let owned = values.iter().map(|&value| value.to_owned());
            match flag {
                "--mcp-config" => flags.servers.extend(values.into_iter().flat_map(servers)),
                "--tools" => flags.tools.get_or_insert_default().extend(owned),
                _ => flags.denied_tools.extend(owned),
            }
        }
        flags
    }
}

/// Adds the flags of a recorded command line to the parameters. Of MCP servers, only the names are kept.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let flags = Flags::of(argv.get(1..).unwrap_or_default());
    if !flags.servers.is_empty() {
        let servers = flags.servers.into_iter();
        let servers: Map<_, _> = servers.map(|name| (name, Value::Null)).collect();
        let config = json!({ "mcpServers": servers });
        params.extra_args.push(format!("--mcp-config={config}"));
    }
    if let Some(tools) = flags.tools {
        params
            .extra_args
            .push(format!("--tools={}", tools.join(",")));
    }
    params.denied_tools.extend(flags.denied_tools);
    params.session_id = flags.resumed.or(params.session_id.take());
}

/// Returns the names of the servers in an inline configuration. Empty for the path of a file.
fn servers(config: &str) -> Vec<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Config {
        mcp_servers: Map<String, Value>,
    }
    let config = serde_json::from_str(config);
    config.map_or_else(
        |_| Vec::new(),
        |config: Config| {
            config
                .mcp_servers
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Flags {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        Flags::of(&words)
    }

    const CONFIG: &str = r#"{"mcpServers": {"a": {"env": {"KEY": "sk-1"}}, "b": {}}}"#;

    #[test]
    fn servers_and_denied_tools_of_a_command_line() {
        let joined = format!("--mcp-config={CONFIG}");
        for (words, servers, denied) in [
            (&["--mcp-config", CONFIG, "x"][..], &["a", "b"][..], &[][..]),
            (&["--mcp-config", "f.json", CONFIG, "-p"], &["a", "b"], &[]),
            (&[&joined, CONFIG], &["a", "b"], &[]),
            (&["--mcp-config", "-p", CONFIG], &[], &[]),
            (
                &["--mcp-config", "[1]", "{}", r#"{"mcpServers":1}"#],
                &[],
                &[],
            ),
            (&["--", "--mcp-config", CONFIG], &[], &[]),
            (
                &["--disallowedTools", "Bash Edit", "X", "-p", "Y"],
                &[],
                &["Bash Edit", "X"],
            ),
            (&["--disallowed-tools=X,Y", "Z"], &[], &["X,Y"]),
            (&["--disallowedTools"], &[], &[]),
            (&[], &[], &[]),
        ] {
            let found = flags(words);
            assert_eq!(found.servers, servers, "{words:?}");
            assert_eq!(found.denied_tools, denied, "{words:?}");
        }
    }

    #[test]
    fn the_tools_that_a_command_line_leaves() {
        let tools = |words: &[&str]| flags(words).tools;
        let names = |names: &[&str]| Some(names.iter().map(|&it| it.to_owned()).collect());
        assert_eq!(
            tools(&["--tools", "Read", "Glob", "-p"]),
            names(&["Read", "Glob"])
        );
        assert_eq!(tools(&["--tools=Read,Glob", "x"]), names(&["Read,Glob"]));
        assert_eq!(tools(&["--tools", "--verbose"]), names(&[]));
        assert_eq!(tools(&["-p", "--", "--tools=Read"]), None);
        let mut found = ExecuteParams::new("");
        read(
            &["claude", "--tools", "Read"].map(str::to_owned),
            &mut found,
        );
        assert_eq!(found.extra_args, ["--tools=Read"]);
    }

    #[test]
    fn recorded_command_line_has_only_the_names_of_servers() {
        let argv = ["claude", "--mcp-config", CONFIG, "--disallowedTools", "X"];
        let mut found = ExecuteParams::new("");
        read(&argv.map(str::to_owned), &mut found);
        assert_eq!(
            found.extra_args,
            [r#"--mcp-config={"mcpServers":{"a":null,"b":null}}"#]
        );
        assert_eq!(Flags::of(&found.extra_args).servers, ["a", "b"]);
        assert_eq!(found.denied_tools, ["X"]);
        read(&["claude", "--resume=x"].map(str::to_owned), &mut found);
        assert_eq!(found.session_id.as_deref(), Some("x"));
        read(&[], &mut found);
        assert_eq!((found.extra_args.len(), found.denied_tools.len()), (1, 1));
    }
}
