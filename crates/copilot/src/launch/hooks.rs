//! Hooks of one run: a plugin that has nothing else.

use std::path::{Path, absolute};

use serde_json::{Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, ExecuteParams};

/// Adds the hooks. A resumed session has them only if they are given again.
pub(super) fn options(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    let Some(hooks) = &params.hooks else {
        return Ok(());
    };
    let here = params.working_directory.as_deref();
    let here = absolute(here.unwrap_or(Path::new("."))).unwrap_or_default();
    let here = here.to_str().ok_or_else(|| {
        let problem =
            "the working directory is not UTF-8, so their JSON cannot contain it; use another";
        AgentError::refused("hooks", problem)
    })?;
    let mut hooks = hooks.clone();
    run_in(&mut hooks, here);
    let plugin = json!({"name": "teamster-hooks", "hooks": hooks});
    args.private_directory("--plugin-dir=", "plugin.json", plugin.to_string());
    Ok(())
}

/// Lets commands run in this directory: those of a plugin run in the plugin's, and `.` is the root of the repository.
fn run_in(hooks: &mut Value, directory: &str) {
    match hooks {
        Value::Object(fields) if fields.get("type").is_some_and(|it| it == "command") => {
            fields.entry("cwd").or_insert_with(|| directory.into());
        }
        Value::Object(fields) => {
            for hooks in fields.values_mut() {
                run_in(hooks, directory);
            }
        }
        Value::Array(all) => {
            for hooks in all {
                run_in(hooks, directory);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use teamster_core::ErrorCode;
    use teamster_core::provider::PathLocation;

    use super::*;

    fn launch(params: &ExecuteParams) -> Result<(PathLocation, Value), AgentError> {
        let launch = super::super::launch(params)?;
        let [file] = &launch.private_files[..] else {
            panic!("{:?}", launch.private_files);
        };
        let plugin = serde_json::from_slice(&file.content).unwrap();
        assert_eq!(launch.args[4], "--plugin-dir=");
        Ok((file.location.clone(), plugin))
    }

    #[test]
    fn hooks_are_a_plugin_that_runs_in_the_working_directory() {
        let hooks = json!({
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./may-run"}]}],
            "sessionStart": [
                {"type": "command", "bash": "true"},
                {"type": "command", "bash": "true", "cwd": "elsewhere"},
                {"type": "http", "url": "http://localhost/"},
            ],
        });
        let params = ExecuteParams::new("hi")
            .hooks(hooks)
            .working_directory("/project");
        let (location, plugin) = launch(&params).unwrap();
        assert_eq!(location, PathLocation::ArgumentDirectory(4, "plugin.json"));
        let pre = json!({"type": "command", "command": "./may-run", "cwd": "/project"});
        let expected = json!({"name": "teamster-hooks", "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [pre]}],
            "sessionStart": [
                {"type": "command", "bash": "true", "cwd": "/project"},
                {"type": "command", "bash": "true", "cwd": "elsewhere"},
                {"type": "http", "url": "http://localhost/"},
            ],
        }});
        assert_eq!(plugin, expected);
    }

    #[test]
    fn hooks_in_a_directory_that_json_cannot_contain_are_refused() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;

        let mut params = ExecuteParams::new("hi").hooks(json!({}));
        params.working_directory = Some(OsStr::from_bytes(b"/\xff").into());
        let error = launch(&params).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(
            error.message.starts_with("hooks: the working directory"),
            "{error}"
        );
    }
}
