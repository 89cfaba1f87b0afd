//! Parameters of an agent's processes, from the files of its directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use teamster_core::provider::{LoopContext, LoopSettings};
use teamster_core::{ExecuteParams, PermissionMode};
use teamster_mcp_config::config::parse_available;
use teamster_process::open_regular_file;

use crate::folder::{AgentFolder, ORCHESTRATOR};
use crate::log::Log;
use crate::settings::{Settings, SettingsError};

/// File with the agent's MCP servers, in the agent's directory.
const MCP_CONFIG: &str = ".mcp.json";
/// Copy of [`MCP_CONFIG`] without the servers that cannot be started, in `.orchestrator`.
const MCP_AVAILABLE: &str = "mcp.json";
/// Settings file that the CLI gets in addition to its own.
pub(crate) const SESSION_SETTINGS: &str = "session-settings.json";
/// Margin of the CLI's silence limits over the turn limit: the loop ends the turn first.
const SILENCE_MARGIN: Duration = Duration::from_mins(1);

/// Builds the parameters for all ticks of an agent, and warnings about settings without effect. `env` has the
/// variables of the agent's `.env`.
///
/// # Errors
///
/// Fails if `.mcp.json` cannot be read or parsed and the CLI does not read it itself.
pub fn params(
    settings: &Settings,
    folder: &AgentFolder,
    env: &BTreeMap<String, String>,
) -> Result<(ExecuteParams, Vec<String>), SettingsError> {
    let mut params = ExecuteParams::new("");
    let mut ignored = Vec::new();
    params.working_directory = Some(folder.directory().to_owned());
    params.env.clone_from(env);
    // There is no user to answer permission requests.
    params.permission = PermissionMode::Bypass;
    params.model.clone_from(&settings.model);
    params.effort.clone_from(&settings.reasoning);
    let silence = (settings.turn_limit).saturating_add(SILENCE_MARGIN);
    params.timeouts.idle = Some(silence);
    params.timeouts.tool = Some(silence);
    let mcp_config = folder.directory().join(MCP_CONFIG);
    let support = &settings.agent.agent_loop;
    if params.model.is_none() {
        params.model = support.model.map(str::to_owned);
    }
    if let Some((before, after)) = support.mcp_file {
        if mcp_config.is_file() {
            let left_out = servers_with_unset_variables(&mcp_config, env);
            let file = match write_copy_without(&mcp_config, &left_out, folder) {
                Some(file) => file,
                None => MCP_CONFIG.to_owned(),
            };
            ignored.extend(left_out.iter().map(|it| left_out_warning(&mcp_config, it)));
            let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
            params.extra_args.extend(own(before));
            params.extra_args.push(file);
            params.extra_args.extend(own(after));
        }
    } else {
        let wrong = |error: &dyn std::fmt::Display| {
            SettingsError::new(mcp_config.display().to_string(), error.to_string())
        };
        match read(&mcp_config) {
            Ok(text) => {
                let parsed =
                    parse_available(&text, &variables_of(env)).map_err(|error| wrong(&error))?;
                let left_out = parsed.left_out.iter();
                ignored.extend(left_out.map(|it| left_out_warning(&mcp_config, it)));
                params.mcp_servers = parsed.servers;
                ignored.extend(parsed.ignored);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(wrong(&error)),
        }
    }
    if let Some(file) = &support.settings {
        let path = format!("{ORCHESTRATOR}/{SESSION_SETTINGS}");
        params.extra_args.extend([file.argument.to_owned(), path]);
    }
    match support.browser.filter(|_| settings.chrome) {
        Some(argument) => params.extra_args.push(argument.to_owned()),
        None if settings.chrome => {
            ignored.push(format!("CHROME: {} has no browser", settings.agent.name));
        }
        None => {}
    }
    Ok((params, ignored))
}

/// Builds the parameters of a fallback, which runs a tick in a session of its own. Also writes the settings
/// file that its CLI takes.
///
/// # Errors
///
/// Fails if [`params`] fails, or if the settings file cannot be written.
pub fn fallback_params(
    settings: &Settings,
    folder: &AgentFolder,
    env: &BTreeMap<String, String>,
) -> Result<ExecuteParams, SettingsError> {
    let (params, _) = params(settings, folder, env)?;
    if let Some(file) = &settings.agent.agent_loop.settings {
        let failed = |error: io::Error| SettingsError::new(SESSION_SETTINGS, error.to_string());
        let skills = skills(folder, file.skills).map_err(failed)?;
        write_session_settings(folder, file, &skills).map_err(failed)?;
    }
    Ok(params)
}

/// Looks up a variable in the agent's `.env`, then in the loop's environment.
fn variables_of(env: &BTreeMap<String, String>) -> impl Fn(&str) -> Option<String> {
    |name: &str| {
        let of_file = env.get(name).cloned();
        of_file.or_else(|| std::env::var(name).ok())
    }
}

/// Returns the servers of a file that need a variable which is not set, each with the reason. Other errors in
/// the file are left to the CLI.
fn servers_with_unset_variables(
    file: &Path,
    env: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let text = read(file).unwrap_or_default();
    let parsed = parse_available(&text, &variables_of(env));
    parsed.map(|it| it.left_out).unwrap_or_default()
}

fn left_out_warning(file: &Path, (server, why): &(String, String)) -> String {
    let file = file.display();
    format!("{file}: the server {server} is left out: {why}")
}

/// Writes a copy of the file without these servers and returns its path from the agent's directory. A CLI may
/// start such a server with a literal `${NAME}` (measured with Claude Code 2.1.197 and 2.1.330).
fn write_copy_without(
    file: &Path,
    servers: &[(String, String)],
    folder: &AgentFolder,
) -> Option<String> {
    if servers.is_empty() {
        // An earlier start may have left it.
        let _ = folder.remove(MCP_AVAILABLE);
        return None;
    }
    let mut config: Value = serde_json::from_str(&read(file).ok()?).ok()?;
    let table = config.get_mut("mcpServers")?.as_object_mut()?;
    table.retain(|name, _| !servers.iter().any(|(left_out, _)| left_out == name));
    folder.write_json(MCP_AVAILABLE, &config).ok()?;
    Some(format!("{ORCHESTRATOR}/{MCP_AVAILABLE}"))
}

/// Reads a regular file. Anything else is an error: a pipe without a writer would block.
fn read(path: &Path) -> io::Result<String> {
    io::read_to_string(open_regular_file(File::options().read(true), path)?)
}

pub(crate) fn write_session_settings(
    folder: &AgentFolder,
    file: &LoopSettings,
    skills: &[String],
) -> io::Result<()> {
    let value = (file.content)(&LoopContext {
        skills,
        log: &folder.path(Log::NAME),
        log_in_directory: &format!("{ORCHESTRATOR}/{}", Log::NAME),
    });
    folder.write_json(SESSION_SETTINGS, &value)
}

/// Returns the names of an agent's skills: folders with a `SKILL.md`, below `skills` in the agent's directory.
pub(crate) fn skills(folder: &AgentFolder, skills: &str) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder.directory().join(skills)) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_core::CliInfo;

    use super::*;

    static PLAIN: CliInfo = CliInfo::new("plain", "Plain CLI", "plain");

    /// A CLI that accepts every server.
    static RICH: CliInfo = {
        let mut info = CliInfo::new("rich", "Rich CLI", "rich");
        info.agent_loop.model = Some("long");
        info.agent_loop.mcp_file = Some((&["--servers"], &["--only"]));
        info.agent_loop.browser = Some("--browser");
        info.agent_loop.settings = Some(LoopSettings {
            argument: "--settings",
            skills: "skills",
            content: |context| json!([context.skills, context.log, context.log_in_directory]),
        });
        info
    };

    fn folder() -> (tempfile::TempDir, AgentFolder) {
        let directory = tempfile::tempdir().unwrap();
        let folder = AgentFolder::open(directory.path()).unwrap();
        (directory, folder)
    }

    #[test]
    fn a_cli_gets_what_it_supports() {
        let (directory, folder) = folder();
        let mut settings = Settings::new(&RICH);
        settings.chrome = true;
        let env = BTreeMap::from([("TOKEN".to_owned(), "x".to_owned())]);
        let (without, _) = params(&settings, &folder, &env).unwrap();
        assert_eq!(
            without.extra_args,
            [
                "--settings",
                ".orchestrator/session-settings.json",
                "--browser"
            ]
        );
        assert_eq!(without.model.as_deref(), Some("long"));
        assert_eq!(without.permission, PermissionMode::Bypass);
        assert_eq!(without.env["TOKEN"], "x");
        fs::write(directory.path().join(".mcp.json"), "{}").unwrap();
        let (with, _) = params(&settings, &folder, &env).unwrap();
        assert_eq!(with.extra_args[..3], ["--servers", ".mcp.json", "--only"]);
        assert!(with.mcp_servers.is_empty());
        let servers = r#"{"mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}},
            "b": {"command": "y", "args": ["${NONE_SUCH}"]}}}"#;
        fs::write(directory.path().join(".mcp.json"), servers).unwrap();
        let (with, ignored) = params(&settings, &folder, &env).unwrap();
        assert_eq!(with.extra_args[1], ".orchestrator/mcp.json");
        let why = "the server b is left out: args[0]: the variable NONE_SUCH is not set";
        assert!(ignored[0].ends_with(why), "{ignored:?}");
        let copy: Value = folder.read_json(MCP_AVAILABLE).unwrap();
        // The value of the variable is in no file.
        let left = json!({"mcpServers": {"a": {"command": "x", "env": {"K": "${TOKEN}"}}}});
        assert_eq!(copy, left);
    }

    #[test]
    fn others_get_the_servers_of_the_same_file() {
        let (directory, folder) = folder();
        let mut settings = Settings::new(&PLAIN);
        settings.model = Some("gpt-5".to_owned());
        settings.reasoning = Some("high".to_owned());
        settings.chrome = true;
        let text = r#"{"mcpServers": {"a": {"command": "serve", "env": {"KEY": "${TOKEN}"}}}}"#;
        fs::write(directory.path().join(".mcp.json"), text).unwrap();
        let env = BTreeMap::from([("TOKEN".to_owned(), "x".to_owned())]);
        let (found, ignored) = params(&settings, &folder, &env).unwrap();
        assert_eq!(found.mcp_servers.len(), 1);
        assert!(format!("{:?}", found.mcp_servers).contains('a'));
        assert!(found.extra_args.is_empty());
        assert_eq!(found.model.as_deref(), Some("gpt-5"));
        assert_eq!(found.effort.as_deref(), Some("high"));
        assert_eq!(ignored, ["CHROME: Plain CLI has no browser"]);
        let (found, ignored) = params(&settings, &folder, &BTreeMap::new()).unwrap();
        assert_eq!(found.mcp_servers, []);
        let why = "the server a is left out: env.KEY: the variable TOKEN is not set";
        assert!(ignored[0].ends_with(why), "{ignored:?}");
        fs::write(directory.path().join(".mcp.json"), "{").unwrap();
        let error = params(&settings, &folder, &env).unwrap_err();
        assert!(error.name.contains(".mcp.json"), "{error}");
        // A pipe without a writer.
        let pipe = directory.path().join(".mcp.json");
        fs::remove_file(&pipe).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = params(&settings, &folder, &env).unwrap_err();
        assert!(
            error.problem.ends_with("it is not a regular file"),
            "{error}"
        );
    }

    #[test]
    fn the_turn_limit_may_be_the_longest_duration() {
        let (_directory, folder) = folder();
        let mut settings = Settings::new(&PLAIN);
        settings.turn_limit = Duration::MAX;
        let (params, _) = params(&settings, &folder, &BTreeMap::new()).unwrap();
        assert_eq!(params.timeouts.idle, Some(Duration::MAX));
    }

    #[test]
    fn the_settings_file_is_made_of_the_agents_skills() {
        let (directory, folder) = folder();
        let file = RICH.agent_loop.settings.unwrap();
        assert_eq!(skills(&folder, file.skills).unwrap(), [""; 0]);
        for (name, file) in [
            ("send", "SKILL.md"),
            ("plan", "SKILL.md"),
            ("none", "README.md"),
        ] {
            let skill = directory.path().join("skills").join(name);
            fs::create_dir_all(&skill).unwrap();
            fs::write(skill.join(file), "").unwrap();
        }
        let skills = skills(&folder, file.skills).unwrap();
        assert_eq!(skills, ["plan", "send"]);
        write_session_settings(&folder, &file, &skills).unwrap();
        let written: Value = folder.read_json(SESSION_SETTINGS).unwrap();
        let log = folder.path(Log::NAME);
        assert_eq!(
            written,
            json!([["plan", "send"], log, ".orchestrator/agent-loop.log"])
        );
    }
}
