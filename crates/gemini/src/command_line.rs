//! Parses the session and the permissions from a command line.

use teamster_core::provider::is_uuid;
use teamster_core::{ExecuteParams, PermissionMode};

use crate::launch::ALLOWED_SERVERS;

/// Flags that a decoder depends on.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Flags {
    /// Approval mode, if set.
    pub(crate) permission: Option<PermissionMode>,
    /// Id of the resumed session, if set.
    pub(crate) session_id: Option<String>,
    /// Flags of rules, each as one word. They may deny more than the mode.
    pub(crate) policies: Vec<String>,
    /// Names of the MCP servers that may be started. Empty if not limited.
    pub(crate) servers: Vec<String>,
}

impl Flags {
    /// Parses the words after the program's name. A word that begins with `-` is never the value of the previous one:
    /// the CLI refuses that.
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
            let mut value = || joined.or_else(|| words.next_if(|next| !next.starts_with('-')));
            match flag {
                "--approval-mode" | "--approvalMode" => {
                    flags.permission = value().and_then(permission).or(flags.permission);
                }
                "--yolo" | "-y" if joined != Some("false") => {
                    flags.permission = Some(PermissionMode::Bypass);
                }
                "--resume" | "-r" => {
                    // `latest` and numbers are positions in a list.
                    flags.session_id = value().filter(|id| is_uuid(id)).map(str::to_owned);
                }
                "--policy" | "--admin-policy" | "--adminPolicy" => {
                    let value = value().unwrap_or_default();
                    flags.policies.push(format!("{flag}={value}"));
                }
                "--allowed-mcp-server-names" | "--allowedMcpServerNames" => {
                    let names = value().unwrap_or_default().split(',').map(str::trim);
                    let names = names.filter(|name| !name.is_empty());
                    flags.servers.extend(names.map(str::to_owned));
                }
                _ => {}
            }
        }
        flags
    }

    /// Returns whether there are rules with precedence over the user's own.
    pub(crate) fn has_admin_policy(&self) -> bool {
        self.policies.iter().any(|flag| flag.starts_with("--admin"))
    }
}

/// Reads a recorded command line into the parameters.
pub(crate) fn read(argv: &[String], params: &mut ExecuteParams) {
    let flags = Flags::of(argv.get(1..).unwrap_or_default());
    if let Some(permission) = flags.permission {
        params.permission = permission;
    }
    if flags.session_id.is_some() {
        params.session_id = flags.session_id;
    }
    params.extra_args.extend(flags.policies);
    let servers = flags.servers.iter();
    let servers = servers.map(|name| format!("{ALLOWED_SERVERS}={name}"));
    params.extra_args.extend(servers);
}

/// Parses an approval mode. `plan` has no counterpart here: it denies the same as the default.
fn permission(mode: &str) -> Option<PermissionMode> {
    Some(match mode {
        "default" => PermissionMode::Default,
        "auto_edit" => PermissionMode::AcceptEdits,
        "yolo" => PermissionMode::Bypass,
        "plan" => PermissionMode::Plan,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";

    fn recorded(line: &str) -> ExecuteParams {
        let argv: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let mut found = ExecuteParams::new("");
        read(&argv, &mut found);
        found
    }

    #[test]
    fn how_much_a_command_line_allows() {
        for (line, expected) in [
            ("gemini --prompt hi", PermissionMode::Default),
            ("gemini --approval-mode default", PermissionMode::Default),
            ("gemini --approval-mode plan", PermissionMode::Plan),
            (
                "gemini --approval-mode=auto_edit",
                PermissionMode::AcceptEdits,
            ),
            (
                "gemini --approval-mode yolo --prompt x",
                PermissionMode::Bypass,
            ),
            ("gemini --approval-mode=yolo", PermissionMode::Bypass),
            ("gemini -y --prompt x", PermissionMode::Bypass),
            ("gemini --yolo", PermissionMode::Bypass),
            ("gemini --yolo=false", PermissionMode::Default),
            ("gemini --prompt=--yolo", PermissionMode::Default),
            ("gemini -- --yolo", PermissionMode::Default),
            ("gemini --approval-mode", PermissionMode::Default),
            ("gemini", PermissionMode::Default),
            ("", PermissionMode::Default),
        ] {
            assert_eq!(recorded(line).permission, expected, "{line}");
            assert_eq!(recorded(line).session_id, None, "{line}");
        }
    }

    #[test]
    fn the_session_of_a_command_line() {
        for flag in ["--resume ", "--resume=", "-r ", "-r="] {
            let line = format!("gemini {flag}{ID} --prompt hi");
            assert_eq!(recorded(&line).session_id.as_deref(), Some(ID), "{line}");
        }
        for new in [
            "--resume latest",
            "--resume=3",
            "-r 4e7c1419",
            "--resume",
            "--resume --prompt",
        ] {
            assert_eq!(recorded(&format!("gemini {new}")).session_id, None, "{new}");
        }
        assert_eq!(
            recorded(&format!("gemini --session-id {ID}")).session_id,
            None
        );
    }

    #[test]
    fn servers_of_a_command_line() {
        let line = "gemini --allowed-mcp-server-names=a_b,c --allowed-mcp-server-names d --yolo";
        let found = recorded(line);
        let flags = ["a_b", "c", "d"].map(|name| format!("--allowed-mcp-server-names={name}"));
        assert_eq!(found.extra_args, flags);
        assert_eq!(Flags::of(&found.extra_args).servers, ["a_b", "c", "d"]);
    }

    #[test]
    fn rules_of_a_command_line() {
        let found = recorded("gemini --yolo --policy /tmp/p.toml --admin-policy=a.toml");
        assert_eq!(
            found.extra_args,
            ["--policy=/tmp/p.toml", "--admin-policy=a.toml"]
        );
        assert!(Flags::of(&found.extra_args).has_admin_policy());
        assert!(!Flags::of(&found.extra_args[..1]).has_admin_policy());
    }
}
