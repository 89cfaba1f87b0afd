//! The address of a server behind `ssh`, and the command line that reaches it.

use crate::error::{ClientError, ClientErrorKind};

/// The program on the other machine, unless the address names it.
const PROGRAM: &str = "teamster";
/// What the program is to do: serve this one client, with all that who may log in there can do anyway.
const ARGUMENTS: &str = "serve --stdio --allow-bypass --allow-commands --allow-mcp --allow-push --allow-env '*' --allow-in '*'";

/// A machine, and the program on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `HOST` or `USER@HOST`. The host may be a name of the user's configuration of `ssh`.
    destination: String,
    port: Option<u16>,
    /// The path of the program: absolute, or `~/` and a path below the home folder.
    program: Option<String>,
}

impl Target {
    /// Reads what follows `ssh:` in an address: `[//][USER@]HOST[:PORT][/PROGRAM]`.
    pub(crate) fn parse(text: &str) -> Result<Self, ClientError> {
        let failed = |kind, message: String| ClientError {
            parameter: Some("url".into()),
            ..ClientError::new(kind, message)
        };
        let invalid = || {
            let message = format!(
                "{:?} is not the address of a machine: expected ssh:HOST or ssh://USER@HOST:PORT, and /PATH of the \
                 program behind it if it is not on the PATH there",
                format!("ssh:{text}")
            );
            failed(ClientErrorKind::InvalidUrl, message)
        };
        let rest = text.strip_prefix("//").unwrap_or(text);
        let (authority, program) = match rest.split_once('/') {
            Some((authority, program)) => (authority, Some(program)),
            None => (rest, None),
        };
        let (user, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(user), host_port),
            None => (None, authority),
        };
        if user.is_some_and(|user| user.contains(':')) {
            let message = "others can read a password in an address: use a key";
            return Err(failed(ClientErrorKind::SecretInUrl, message.to_owned()));
        }
        let (host, port) = match host_port.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']').ok_or_else(invalid)?;
                let port = match behind {
                    "" => None,
                    _ => Some(behind.strip_prefix(':').ok_or_else(invalid)?),
                };
                (host, port)
            }
            None => match host_port.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (host_port, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().map_err(|_| invalid())?),
            None => None,
        };
        if !is_name(host) || user.is_some_and(|user| !is_name(user)) {
            return Err(invalid());
        }
        let program = match program {
            None | Some("") => None,
            Some(path) if path.contains(|c: char| c.is_control() || "?#".contains(c)) => {
                return Err(invalid());
            }
            Some(path) if path.starts_with("~/") => Some(path.to_owned()),
            Some(path) => Some(format!("/{path}")),
        };
        let destination = match user {
            Some(user) => format!("{user}@{host}"),
            None => host.to_owned(),
        };
        Ok(Self {
            destination,
            port,
            program,
        })
    }

    /// Returns the arguments of `ssh`. Everything else is in the user's configuration of it.
    pub(crate) fn arguments(&self, is_asking: bool) -> Vec<String> {
        // No terminal there, also if the configuration requests one.
        let mut arguments = vec!["-T".to_owned()];
        if !is_asking {
            arguments.extend(["-o", "BatchMode=yes"].map(str::to_owned));
        }
        if let Some(port) = self.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.push(self.destination.clone());
        let program = self.program.as_deref().map(quoted);
        let program = program.as_deref().unwrap_or(PROGRAM);
        arguments.push(format!("{program} {ARGUMENTS}"));
        arguments
    }
}

/// Returns whether `ssh` takes a text as a name: it is no option, and a shell that a `ProxyCommand` starts with the name
/// reads nothing else in it.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-+%:".contains(c);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_part)
}

/// Returns a path as one word of the shell there. `~/` stays, so that the shell finds the home folder.
fn quoted(path: &str) -> String {
    let (home, rest) = match path.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None => ("", path),
    };
    format!("{home}'{}'", rest.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn arguments(text: &str) -> Vec<String> {
        let target = Target::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        target.arguments(true)
    }

    #[test]
    fn an_address_names_a_machine_and_maybe_the_program_there() {
        let command = |program: &str| format!("{program} {ARGUMENTS}");
        for (text, destination, program) in [
            ("box", "box", "teamster"),
            ("//box", "box", "teamster"),
            ("me@box.example", "me@box.example", "teamster"),
            ("box/opt/bin/teamster", "box", "'/opt/bin/teamster'"),
            (
                "//box/~/.cargo/bin/teamster",
                "box",
                "~/'.cargo/bin/teamster'",
            ),
            ("box/a b/it's $(x)", "box", r"'/a b/it'\''s $(x)'"),
            ("[::1]", "::1", "teamster"),
        ] {
            assert_eq!(
                arguments(text),
                ["-T", destination, &*command(program)],
                "{text}"
            );
        }
        for (text, port, destination) in [
            ("//me@box:2222", "2222", "me@box"),
            ("//me@[fe80::1%eth0]:22/bin/t", "22", "me@fe80::1%eth0"),
        ] {
            assert_eq!(
                arguments(text)[..4],
                ["-T", "-p", port, destination],
                "{text}"
            );
        }
        let quiet = Target::parse("box").unwrap().arguments(false);
        assert_eq!(quiet[..4], ["-T", "-o", "BatchMode=yes", "box"]);
    }

    #[test]
    fn ambiguous_ssh_targets_are_rejected() {
        for text in [
            "",
            "//",
            "-oProxyCommand=x",
            "//-oProxyCommand=x",
            "me@-x",
            "-l@box",
            "@box",
            "me@",
            "a b",
            "box;x",
            "$(x)",
            "`x`",
            "box\nx",
            "box:port",
            "box:",
            "::1",
            "[::1",
            "[::1]2",
            "box:70000",
            "box/bin/t?x=1",
            "box/bin/\nt",
        ] {
            let error = Target::parse(text).expect_err(text);
            assert_eq!(error.kind, ClientErrorKind::InvalidUrl, "{text:?}: {error}");
        }
        let error = Target::parse("//me:secret@box").unwrap_err();
        assert_eq!(error.kind, ClientErrorKind::SecretInUrl);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
