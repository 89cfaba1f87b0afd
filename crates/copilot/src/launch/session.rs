//! Launch of GitHub Copilot CLI for a session of many turns.

use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{AgentError, SessionOptions};

use super::{begin, check};

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    // Prompts and images are sent with the turns.
    "-".clone_into(&mut params.prompt);
    params.images.clear();
    // Unlike a run, a session supports commands.
    params.slash_commands = false;
    if params.new_session_id.is_some() {
        return Err(AgentError::refused(
            "new_session_id",
            "GitHub Copilot CLI itself chooses the id of such a session; leave it out",
        ));
    }
    check(&params)?;
    // The protocol identifies the session: the CLI takes no flag for it together with `--acp`.
    params.session_id = None;
    let mut args = Args::new();
    args.add("--acp");
    begin(&params, args, Stdin::Open(Vec::new()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_core::provider::PathLocation;
    use teamster_core::{ExecuteParams, McpServer, PermissionMode};

    use super::*;

    fn args(params: ExecuteParams) -> Result<Vec<String>, AgentError> {
        let launch = launch_session(&SessionOptions::new(params))?;
        assert_eq!(launch.stdin, Stdin::Open(Vec::new()));
        let text = |arg: std::ffi::OsString| arg.into_string().unwrap();
        Ok(launch.args.into_iter().map(text).collect())
    }

    #[test]
    fn session_launch_differs_in_prompt_and_id_only() {
        let mut params = ExecuteParams::new("");
        params.session_id = Some("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f".into());
        params.slash_commands = true;
        params.model = Some("m".into());
        params.permission = PermissionMode::ReadOnly;
        params.denied_tools = vec!["url".into()];
        params.mcp_servers = vec![McpServer::stdio("tiny", "tool", ["-x"])];
        let args = args(params).unwrap();
        let file = |arg: &String| arg.starts_with("--additional-mcp-config=@");
        let at = args.iter().position(file).unwrap();
        assert_eq!(
            args[..at],
            [
                "--acp",
                "--no-auto-update",
                "--no-color",
                "--model=m",
                "--deny-tool=write,shell",
                "--deny-tool=url"
            ]
        );
        assert_eq!(
            args[at + 1..],
            ["--allow-tool=tiny", "--enable-mcp-server=tiny"]
        );
    }

    #[test]
    fn started_and_resumed_sessions_get_the_hooks_as_a_plugin() {
        let new = ExecuteParams::new("").hooks(json!({"Stop": ["secret"]}));
        let resumed = new.clone().resume("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f");
        for params in [new, resumed] {
            let launch = launch_session(&SessionOptions::new(params)).unwrap();
            let words = ["--acp", "--no-auto-update", "--no-color", "--plugin-dir="];
            assert_eq!(launch.args, words);
            let [file] = &launch.private_files[..] else {
                panic!("{:?}", launch.private_files);
            };
            let location = PathLocation::ArgumentDirectory(3, "plugin.json");
            assert_eq!(file.location, location);
            let plugin = br#"{"name":"teamster-hooks","hooks":{"Stop":["secret"]}}"#;
            assert_eq!(file.content, plugin);
        }
    }

    #[test]
    fn parameters_without_session_support_are_refused() {
        let refused = |change: fn(&mut ExecuteParams)| {
            let mut params = ExecuteParams::new("");
            change(&mut params);
            args(params).unwrap_err().message
        };
        let new_id = refused(|params| params.new_session_id = Some("x".into()));
        assert!(new_id.starts_with("new_session_id: "), "{new_id}");
        let id = refused(|params| params.session_id = Some("0190b0b".into()));
        assert!(id.starts_with("session_id: "), "{id}");
        let fork = refused(|params| {
            params.session_id = Some("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f".into());
            params.fork = true;
        });
        assert!(fork.starts_with("fork"), "{fork}");
        let turns = refused(|params| params.max_turns = Some(3));
        assert!(turns.starts_with("max_turns"), "{turns}");
        let extra = refused(|params| params.extra_args = vec!["--resume=x".into()]);
        assert!(extra.starts_with("extra_args: "), "{extra}");
    }
}
