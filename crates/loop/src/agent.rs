//! How an agent is started in its directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::{ExecuteParams, PermissionMode};
use teamster_mcp::config::parse_available;

use crate::folder::{AgentFolder, ORCHESTRATOR};
use crate::settings::Settings;

/// The file with the agent's MCP servers, in the agent's directory.
const MCP_CONFIG: &str = ".mcp.json";
/// A copy of it without the servers that cannot be started.
const MCP_AVAILABLE: &str = "mcp.json";
/// The folder with the agent's skills, in the agent's directory.
pub(crate) const SKILLS: &str = ".claude/skills";
/// The file with what Claude Code is told beside its own settings.
pub(crate) const SESSION_SETTINGS: &str = "session-settings.json";
/// The log, to which hooks append.
const LOG: &str = "agent-loop.log";
/// Claude Code's model for long sessions.
const CLAUDE_MODEL: &str = "opusplan";
/// How much longer than a turn the CLI may be silent: the loop ends the turn before.
const LONGER_THAN_A_TURN: Duration = Duration::from_mins(1);

/// Parameters for all ticks of an agent, and what has no effect, for a person. `env` are the variables of its
/// file.
pub fn params(
    settings: &Settings,
    folder: &AgentFolder,
    env: &BTreeMap<String, String>,
) -> Result<(ExecuteParams, Vec<String>), String> {
    let mut params = ExecuteParams::new("");
    let mut ignored = Vec::new();
    params.working_directory = Some(folder.directory().to_owned());
    params.env.clone_from(env);
    // Nobody is there to be asked.
    params.permission = PermissionMode::Bypass;
    params.model.clone_from(&settings.model);
    params.effort.clone_from(&settings.reasoning);
    let silence = (settings.turn_limit).saturating_add(LONGER_THAN_A_TURN);
    params.timeouts.idle = Some(silence);
    params.timeouts.tool = Some(silence);
    let mcp_config = folder.directory().join(MCP_CONFIG);
    if settings.runtime == "claude" {
        params.model.get_or_insert_with(|| CLAUDE_MODEL.to_owned());
        if mcp_config.is_file() {
            let left_out = unset_servers(&mcp_config, env);
            let file = match without(&mcp_config, &left_out, folder) {
                Some(file) => file,
                None => MCP_CONFIG.to_owned(),
            };
            ignored.extend(left_out.iter().map(|it| it_is_left_out(&mcp_config, it)));
            let args = ["--mcp-config", &file, "--strict-mcp-config"];
            params.extra_args.extend(args.map(str::to_owned));
        }
        let settings_file = format!("{ORCHESTRATOR}/{SESSION_SETTINGS}");
        let args = ["--settings".to_owned(), settings_file];
        params.extra_args.extend(args);
        if settings.chrome {
            params.extra_args.push("--chrome".to_owned());
        }
    } else {
        match read(&mcp_config) {
            Ok(text) => {
                let parsed = parse_available(&text, &variables_of(env))
                    .map_err(|error| format!("{}: {error}", mcp_config.display()))?;
                let left_out = parsed.left_out.iter();
                ignored.extend(left_out.map(|it| it_is_left_out(&mcp_config, it)));
                params.mcp_servers = parsed.servers;
                ignored.extend(parsed.ignored);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(format!("{}: {error}", mcp_config.display())),
        }
        if settings.chrome {
            ignored.push("CHROME: only Claude Code has it".to_owned());
        }
    }
    Ok((params, ignored))
}

/// The variables of an agent: those of its file, then those of the loop.
fn variables_of(env: &BTreeMap<String, String>) -> impl Fn(&str) -> Option<String> {
    |name: &str| {
        let of_file = env.get(name).cloned();
        of_file.or_else(|| std::env::var(name).ok())
    }
}

/// The servers of a file that need a variable which is not set, each with the reason. Whatever else is wrong
/// in it is for Claude Code to say.
fn unset_servers(file: &Path, env: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let text = read(file).unwrap_or_default();
    let parsed = parse_available(&text, &variables_of(env));
    parsed.map(|it| it.left_out).unwrap_or_default()
}

fn it_is_left_out(file: &Path, (server, why): &(String, String)) -> String {
    let file = file.display();
    format!("{file}: the server {server} is left out: {why}")
}

/// Writes a copy of the file without these servers; its path from the agent's directory. Claude Code would
/// start such a server with `${NAME}` as it stands (measured with 2.1.197 and 2.1.330).
fn without(file: &Path, servers: &[(String, String)], folder: &AgentFolder) -> Option<String> {
    if servers.is_empty() {
        // It may be that of an earlier start.
        let _ = folder.remove(MCP_AVAILABLE);
        return None;
    }
    let mut config: Value = serde_json::from_str(&read(file).ok()?).ok()?;
    let table = config.get_mut("mcpServers")?.as_object_mut()?;
    table.retain(|name, _| !servers.iter().any(|(left_out, _)| left_out == name));
    folder.write_json(MCP_AVAILABLE, &config).ok()?;
    Some(format!("{ORCHESTRATOR}/{MCP_AVAILABLE}"))
}

/// The text of a file. Nobody waits for anything else that is in its place: a pipe may have no writer.
fn read(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("this is not a regular file"));
    }
    fs::read_to_string(path)
}

/// Writes what Claude Code is told beside its own settings: of the skills only these, and hooks that append
/// a line to the log.
pub(crate) fn write_session_settings(folder: &AgentFolder, skills: &[String]) -> io::Result<()> {
    let value = session_settings(skills, &folder.path(LOG));
    folder.write_json(SESSION_SETTINGS, &value)
}

/// The skills of an agent: the folders with a `SKILL.md`.
pub(crate) fn skills(folder: &AgentFolder) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder.directory().join(SKILLS)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().join("SKILL.md").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn session_settings(skills: &[String], log: &Path) -> Value {
    let mut permissions = Map::new();
    if !skills.is_empty() {
        let allow = skills
            .iter()
            .flat_map(|name| [format!("Skill({name})"), format!("Skill({name} *)")]);
        permissions.insert("allow".to_owned(), allow.collect());
    }
    let log = match log.to_str() {
        Some(log) => shell_words::quote(log).into_owned(),
        // There is no other way to write it in JSON.
        None => format!("\"$CLAUDE_PROJECT_DIR\"/{ORCHESTRATOR}/{LOG}"),
    };
    let hook = |event: &str, note: &str| {
        // A shell that cannot open the log ends with 2, and from such a hook no prompt reaches the agent.
        let command = format!(
            "date -u '+[%Y-%m-%dT%H:%M:%SZ] hook:{event} - {note}' >> {log} 2>/dev/null || true"
        );
        json!([{"matcher": "*", "hooks": [{"type": "command", "command": command}]}])
    };
    let mut settings = json!({
        "permissions": permissions,
        "hooks": {
            "SessionStart": hook("SessionStart", "context, MCP servers and skills are being loaded"),
            "UserPromptSubmit": hook("UserPromptSubmit", "all is loaded, the tick begins"),
        },
    });
    if !skills.is_empty() {
        let refuse = json!([{"matcher": "Skill", "hooks": [
            {"type": "command", "command": only_these(skills)}]}]);
        settings["hooks"]["PreToolUse"] = refuse;
    }
    settings
}

/// A command that lets Claude Code use these skills only: it reads the call, and refuses it with exit code 2.
///
/// A rule `deny: ["Skill"]` would not do. It goes before every rule that allows, so that the tool itself is
/// gone, for these skills too (measured with 2.1.197 and 2.1.330: "No such tool available: Skill").
fn only_these(skills: &[String]) -> String {
    let mut command = "grep -qF".to_owned();
    for skill in skills {
        // A quote within a text of the call has a backslash before it, so only a name is found.
        for between in ["", " "] {
            let pattern = format!("\"skill\":{between}{}", Value::from(skill.as_str()));
            command.push_str(" -e ");
            command.push_str(&shell_words::quote(&pattern));
        }
    }
    let words = format!(
        "of the skills only these may be used here: {}",
        skills.join(", ")
    );
    let words = shell_words::quote(&words);
    format!("{command} || {{ echo {words} >&2; exit 2; }}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, AgentFolder) {
        let directory = tempfile::tempdir().unwrap();
        let folder = AgentFolder::open(directory.path()).unwrap();
        (directory, folder)
    }

    #[test]
    fn claude_is_told_of_its_files() {
        let (directory, folder) = folder();
        let settings = Settings {
            chrome: true,
            ..Settings::default()
        };
        let env = BTreeMap::from([("TOKEN".to_owned(), "x".to_owned())]);
        let (without, _) = params(&settings, &folder, &env).unwrap();
        assert_eq!(
            without.extra_args,
            [
                "--settings",
                ".orchestrator/session-settings.json",
                "--chrome"
            ]
        );
        assert_eq!(without.model.as_deref(), Some("opusplan"));
        assert_eq!(without.permission, PermissionMode::Bypass);
        assert_eq!(without.env["TOKEN"], "x");
        fs::write(directory.path().join(".mcp.json"), "{}").unwrap();
        let (with, _) = params(&settings, &folder, &env).unwrap();
        assert_eq!(
            with.extra_args[..3],
            ["--mcp-config", ".mcp.json", "--strict-mcp-config"]
        );
        assert!(with.mcp_servers.is_empty());
        let servers = r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}},
            "b": {"command": "y", "args": ["${NONE_SUCH}"]}}}"#;
        fs::write(directory.path().join(".mcp.json"), servers).unwrap();
        let (with, ignored) = params(&settings, &folder, &env).unwrap();
        assert_eq!(with.extra_args[1], ".orchestrator/mcp.json");
        let why = "the server b is left out: args[0]: the variable NONE_SUCH is not set";
        assert!(ignored[0].ends_with(why), "{ignored:?}");
        let copy: Value = folder.read_json(MCP_AVAILABLE).unwrap();
        // As it stands: what the variable holds is in no file.
        let left = json!({"mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}}}});
        assert_eq!(copy, left);
    }

    #[test]
    fn others_get_the_servers_of_the_same_file() {
        let (directory, folder) = folder();
        let settings = Settings {
            runtime: "copilot".to_owned(),
            model: Some("gpt-5".to_owned()),
            reasoning: Some("high".to_owned()),
            chrome: true,
            ..Settings::default()
        };
        let text = r#"{"mcpServers": {"a": {"command": "serve", "env": {"KEY": "${TOKEN}"}}}}"#;
        fs::write(directory.path().join(".mcp.json"), text).unwrap();
        let env = BTreeMap::from([("TOKEN".to_owned(), "x".to_owned())]);
        let (found, ignored) = params(&settings, &folder, &env).unwrap();
        assert_eq!(found.mcp_servers.len(), 1);
        assert!(format!("{:?}", found.mcp_servers).contains('a'));
        assert!(found.extra_args.is_empty());
        assert_eq!(found.model.as_deref(), Some("gpt-5"));
        assert_eq!(found.effort.as_deref(), Some("high"));
        assert_eq!(ignored, ["CHROME: only Claude Code has it"]);
        let (found, ignored) = params(&settings, &folder, &BTreeMap::new()).unwrap();
        assert_eq!(found.mcp_servers, []);
        let why = "the server a is left out: env.KEY: the variable TOKEN is not set";
        assert!(ignored[0].ends_with(why), "{ignored:?}");
        fs::write(directory.path().join(".mcp.json"), "{").unwrap();
        let error = params(&settings, &folder, &env).unwrap_err();
        assert!(error.contains(".mcp.json"), "{error}");
        #[cfg(unix)]
        {
            // A pipe into which nobody writes.
            let pipe = directory.path().join(".mcp.json");
            fs::remove_file(&pipe).unwrap();
            nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
            let error = params(&settings, &folder, &env).unwrap_err();
            assert!(error.ends_with("this is not a regular file"), "{error}");
        }
    }

    #[test]
    fn only_the_agents_own_skills_are_allowed_and_hooks_write_to_the_log() {
        let (directory, folder) = folder();
        write_session_settings(&folder, &skills(&folder).unwrap()).unwrap();
        let written: Value = folder.read_json(SESSION_SETTINGS).unwrap();
        assert_eq!(written["permissions"], json!({}));
        for (name, file) in [
            ("send", "SKILL.md"),
            ("plan", "SKILL.md"),
            ("none", "README.md"),
        ] {
            let skill = directory.path().join(SKILLS).join(name);
            fs::create_dir_all(&skill).unwrap();
            fs::write(skill.join(file), "").unwrap();
        }
        let skills = skills(&folder).unwrap();
        assert_eq!(skills, ["plan", "send"]);
        write_session_settings(&folder, &skills).unwrap();
        let written: Value = folder.read_json(SESSION_SETTINGS).unwrap();
        assert_eq!(
            written["permissions"],
            json!({"allow": ["Skill(plan)", "Skill(plan *)", "Skill(send)", "Skill(send *)"]})
        );
        let command = &written["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
        let code_for = |input: &str| {
            // A call as Claude Code 2.1.197 gives it to a hook, shortened.
            let call = format!(r#"{{"tool_name":"Skill","tool_input":{input},"tool_use_id":"x"}}"#);
            let file = directory.path().join("call");
            fs::write(&file, call).unwrap();
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", command.as_str().unwrap()]);
            shell.stdin(fs::File::open(file).unwrap());
            shell.output().unwrap().status.code()
        };
        assert_eq!(code_for(r#"{"skill":"send","args":"now"}"#), Some(0));
        assert_eq!(code_for(r#"{"skill": "plan"}"#), Some(0));
        assert_eq!(code_for(r#"{"skill":"sender"}"#), Some(2));
        assert_eq!(
            code_for(r#"{"skill":"x","args":"\"skill\":\"send\""}"#),
            Some(2)
        );
        // The command of a hook, as a shell runs it.
        let command = &written["hooks"]["SessionStart"][0]["hooks"][0]["command"];
        let status = std::process::Command::new("sh")
            .args(["-c", command.as_str().unwrap()])
            .status();
        assert!(status.unwrap().success());
        let log = fs::read_to_string(folder.path("agent-loop.log")).unwrap();
        let (stamp, text) = log.trim_end().split_once("] ").unwrap();
        assert_eq!((stamp.len(), &stamp[..1]), (21, "["));
        assert!(text.starts_with("hook:SessionStart - "), "{log}");
        assert!(written["hooks"]["UserPromptSubmit"][0]["hooks"][0]["type"] == "command");
    }

    #[test]
    fn a_turn_may_take_as_long_as_can_be_said() {
        let (_directory, folder) = folder();
        let settings = Settings {
            turn_limit: Duration::MAX,
            ..Settings::default()
        };
        let (params, _) = params(&settings, &folder, &BTreeMap::new()).unwrap();
        assert_eq!(params.timeouts.idle, Some(Duration::MAX));
    }

    #[cfg(unix)]
    #[test]
    fn a_hook_never_keeps_a_prompt_from_the_agent() {
        use std::os::unix::ffi::OsStrExt;
        let command = |settings: &Value| {
            let hook = &settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"];
            hook.as_str().unwrap().to_owned()
        };
        let nowhere = session_settings(&[], Path::new("/nowhere/it's/agent-loop.log"));
        let mut shell = std::process::Command::new("sh");
        let ended = shell.args(["-c", &command(&nowhere)]).output().unwrap();
        assert_eq!(ended.status.code(), Some(0));

        // A name that JSON cannot have.
        let directory = tempfile::tempdir().unwrap();
        let odd = directory
            .path()
            .join(std::ffi::OsStr::from_bytes(b"a\xffb c"));
        fs::create_dir_all(odd.join(ORCHESTRATOR)).unwrap();
        let settings = session_settings(&[], &odd.join(ORCHESTRATOR).join(LOG));
        let mut shell = std::process::Command::new("sh");
        let shell = shell.env("CLAUDE_PROJECT_DIR", &odd);
        let ended = shell.args(["-c", &command(&settings)]).output().unwrap();
        assert_eq!(ended.status.code(), Some(0));
        let log = fs::read_to_string(odd.join(ORCHESTRATOR).join(LOG)).unwrap();
        assert!(log.contains("hook:UserPromptSubmit"), "{log}");
    }
}
