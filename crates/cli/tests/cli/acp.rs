//! `teamster acp` with an editor's requests and a shell script as Claude Code.

mod taken;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use teamster_testkit::proc::wait_gone;

use crate::cli::chat::Agent;
use crate::cli::json_rpc::Peer;
use crate::cli::{LIMIT, run};

/// An editor and its connection.
pub(crate) type Editor = Peer;

impl Editor {
    fn new<'a>(agent: &Agent, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self::start(&mut command(agent, args))
    }

    pub(crate) fn initialize(&mut self) -> Value {
        self.call(
            "initialize",
            &json!({"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"}}),
        )
    }

    /// Begins a session in this folder and returns its id.
    pub(crate) fn begin(&mut self, cwd: &Path) -> String {
        let begun = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []}));
        let id = begun["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{begun}")).to_owned()
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    pub(crate) fn prompt_and_wait(&mut self, session: &str, text: &str) -> Value {
        let id = self.prompt(session, text);
        self.answer(id)
    }

    /// Returns the updates of this kind so far.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|it| &it["params"]["update"]);
        updates.filter(|it| it["sessionUpdate"] == kind).collect()
    }

    /// Returns the agent's text so far.
    pub(crate) fn text(&self) -> String {
        let chunks = self.updates("agent_message_chunk").into_iter();
        chunks
            .map(|it| it["content"]["text"].as_str().unwrap())
            .collect()
    }
}

fn command<'a>(agent: &Agent, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = agent.command(["acp"]);
    // A login that the program detects.
    command.args(args).env("ANTHROPIC_API_KEY", "made-up");
    command
}

fn stdout_of(agent: &Agent, args: &[&str]) -> String {
    let ended = run(&mut agent.command(args.iter().copied())).ok();
    ended.stdout
}

/// A script as Codex, which has a command that logs out. It leaves a process that holds its pipes.
#[test]
fn an_editor_logs_out_of_the_cli() {
    let agent = Agent::new();
    let codex = agent.path("codex");
    let script = "#!/bin/sh\n[ \"$*\" = logout ] || exit 9\n[ -e login ] || { echo 'no login' >&2; exit 3; }\n/bin/rm login\n/bin/sleep 120 &\n";
    teamster_testkit::proc::write_program(&codex, script).unwrap();
    let login = agent.path("login");
    fs::write(&login, "").unwrap();
    let mut command = command(&agent, ["codex"]);
    command
        .env("TEAMSTER_CODEX_BIN", &codex)
        .current_dir(agent.path(""));
    let mut editor = Editor::start(&mut command);
    let about = editor.initialize();
    let auth = &about["result"]["agentCapabilities"]["auth"];
    assert_eq!(auth["logout"], json!({}), "{about}");
    let done = editor.call("logout", &json!({}));
    assert_eq!(done["result"], json!({}), "{done}");
    assert!(!login.exists());
    let failed = editor.call("logout", &json!({}));
    let message = failed["error"]["message"].as_str().unwrap();
    assert_eq!(message, "Codex did not log out (exit status: 3): no login");
    editor.end();
}

#[test]
fn a_thread_with_an_account_has_its_login() {
    let agent = Agent::new();
    let config = agent.path("config");
    fs::create_dir_all(config.join("teamster")).unwrap();
    let accounts = "[work]\nagent = 'claude'\nenv.ANTHROPIC_API_KEY = 'made-up'\n\
                    [spare]\nagent = 'claude'\nenv.X = 'y'\n";
    fs::write(config.join("teamster/accounts.toml"), accounts).unwrap();
    let editor = |account: &str| {
        let mut command = command(&agent, ["claude", account]);
        command
            .env_remove("ANTHROPIC_API_KEY")
            .env("HOME", agent.path("state"))
            .env("XDG_CONFIG_HOME", &config);
        Editor::start(&mut command)
    };
    let mut work = editor("--account=work");
    // The CLI's command would remove another login.
    let about = work.initialize();
    let auth = &about["result"]["agentCapabilities"]["auth"];
    assert_eq!(auth["logout"], Value::Null, "{about}");
    let session = work.begin(&agent.path(""));
    let answer = work.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    work.end();

    if cfg!(target_os = "linux") {
        let mut spare = editor("--account=spare");
        spare.initialize();
        let params = json!({"cwd": agent.path(""), "mcpServers": []});
        let refused = spare.call("session/new", &params);
        assert_eq!(refused["error"]["code"], -32000, "{refused}");
        let problem = refused["error"]["message"].as_str().unwrap();
        let named = "Claude Code is not logged in with spare: ";
        assert!(problem.starts_with(named), "{problem}");
    }
}

#[test]
fn unusable_store_is_reported_before_the_first_session() {
    let agent = Agent::new();
    let mut editor = Editor::new(&agent, ["claude", "--store", "/proc/none/store.db"]);
    editor.initialize();
    let session = editor.begin(&agent.path(""));
    editor.prompt_and_wait(&session, "hello");
    let stderr = editor.end_with_stderr();
    let warning = "warning: the history of this run is incomplete: ";
    assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
}

#[test]
fn a_thread_is_a_session_with_a_log_and_a_place_in_the_history() {
    let agent = Agent::new();
    let mut editor = Editor::new(
        &agent,
        ["claude", "--store"]
            .into_iter()
            .chain([&*agent.path("store.db").display().to_string()]),
    );
    let initialized = editor.initialize();
    assert_eq!(initialized["result"]["agentInfo"]["name"], "teamster");
    let session = editor.begin(&agent.path(""));
    // No session begins before the first prompt.
    assert!(!agent.path("argv").exists());
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(answer["result"]["usage"]["inputTokens"], 10);
    assert_eq!(editor.text(), "hello");
    assert_eq!(editor.updates("session_info_update")[0]["title"], "hello");
    assert_eq!(editor.updates("user_message_chunk").len(), 0);
    let here = fs::read_to_string(agent.path("here")).unwrap();
    let folder = agent.path("").canonicalize().unwrap();
    assert_eq!(Path::new(here.trim()), folder);

    // One process for all turns.
    editor.prompt_and_wait(&session, "pid");
    editor.prompt_and_wait(&session, "pid");
    let texts = editor.updates("agent_message_chunk");
    let last = texts
        .iter()
        .rev()
        .take(2)
        .map(|it| it["content"]["text"].clone());
    let pids: Vec<_> = last.collect();
    assert_eq!(pids[0], pids[1]);

    let live = stdout_of(&agent, &["runs", "list", "--live"]);
    assert!(live.contains(&session[..8]), "{live}");
    let pid: u32 = pids[0].as_str().unwrap().parse().unwrap();
    assert_eq!(editor.end(), Some(0));
    assert!(wait_gone(pid, LIMIT), "the agent is still running");
    let log = agent.path("state").join("teamster/runs").join(&session);
    let log = fs::read_to_string(log.join("events.ndjson")).unwrap();
    assert!(log.contains(r#""text":"hello","from":"test""#), "{log}");
    assert!(log.lines().last().unwrap().contains(r#""type":"done""#));
    let store = agent.path("store.db").display().to_string();
    let runs = stdout_of(&agent, &["runs", "list", "--store", &store, "--json"]);
    assert_eq!(runs.lines().count(), 3, "{runs}");
}

#[test]
fn the_cli_reports_what_it_offers_before_a_prompt_without_a_run() {
    let agent = Agent::new();
    let mut editor = Editor::new(&agent, ["claude"]);
    editor.initialize();
    editor.begin(&agent.path(""));
    let update =
        |kind: &'static str| move |it: &Value| it["params"]["update"]["sessionUpdate"] == kind;
    let options = editor.wait("models", update("config_option_update"));
    let options = options["params"]["update"]["configOptions"].clone();
    let model = options
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["id"] == "model");
    assert_eq!(model.unwrap()["options"][1]["name"], "Opus", "{options}");
    let commands = editor.wait("commands", |it: &Value| {
        it["params"]["update"]["availableCommands"][0]["name"] == "compact"
    });
    let commands = commands["params"]["update"]["availableCommands"].as_array();
    let names = commands.unwrap().iter().map(|it| it["name"].clone());
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["compact", "status", "rename"]);
    let queries = fs::read_to_string(agent.path("queries")).unwrap();
    let pid: u32 = queries.trim().parse().unwrap();
    assert!(wait_gone(pid, LIMIT), "it is still running");
    assert!(!agent.path("argv").exists());
    let runs = stdout_of(&agent, &["runs", "list", "--live", "--json"]);
    assert_eq!(runs, "");
    assert_eq!(editor.end(), Some(0));
}

#[test]
fn settings_reach_the_agent() {
    let agent = Agent::new();
    let mut editor = Editor::new(&agent, ["claude", "--append-system-prompt", "be brief"]);
    editor.initialize();
    let session = editor.begin(&agent.path(""));
    let set = |editor: &mut Editor, option: &str, value: &str| {
        let params = json!({"sessionId": session, "configId": option, "value": value});
        let answer = editor.call("session/set_config_option", &params);
        assert!(answer["result"]["configOptions"].is_array(), "{answer}");
    };
    set(&mut editor, "model", "opus");
    set(&mut editor, "thought_level", "high");
    set(&mut editor, "mode", "accept-edits");
    editor.prompt_and_wait(&session, "hello");
    let argv = || fs::read_to_string(agent.path("argv")).unwrap();
    for part in ["--model=opus", "--effort=high", "acceptEdits", "be brief"] {
        assert!(argv().contains(part), "{part}: {}", argv());
    }
    // The effort is an argument, so a new process resumes the session.
    set(&mut editor, "thought_level", "low");
    editor.prompt_and_wait(&session, "more");
    assert_eq!(argv().lines().count(), 2, "{}", argv());
    let last = argv().lines().last().unwrap().to_owned();
    assert!(
        last.contains("--effort=low") && last.contains("--resume"),
        "{last}"
    );
    // The model is changed in the running process.
    set(&mut editor, "model", "haiku");
    editor.prompt_and_wait(&session, "and more");
    assert_eq!(argv().lines().count(), 2, "{}", argv());
    let stdin = fs::read_to_string(agent.path("stdin")).unwrap();
    assert!(stdin.contains(r#""model":"haiku""#), "{stdin}");
}

#[test]
fn a_start_failure_is_reported_by_session_new() {
    let agent = Agent::new();
    let mut missing = command(&agent, ["claude"]);
    missing.env("TEAMSTER_CLAUDE_BIN", "/no/such/claude");
    let mut editor = Editor::start(&mut missing);
    let initialized = editor.initialize();
    assert_eq!(initialized["result"]["protocolVersion"], 1);
    let params = json!({"cwd": agent.path(""), "mcpServers": []});
    let refused = editor.call("session/new", &params);
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(problem.contains("/no/such/claude"), "{problem}");
    drop(editor);

    let mut without_login = command(&agent, ["claude"]);
    without_login
        .env_remove("ANTHROPIC_API_KEY")
        .env("HOME", agent.path("state"));
    let mut editor = Editor::start(&mut without_login);
    editor.initialize();
    let refused = editor.call("session/new", &params);
    if cfg!(target_os = "linux") {
        assert_eq!(refused["error"]["code"], -32000, "{refused}");
    }
    drop(editor);

    let mut editor = Editor::new(&agent, ["claude"]);
    editor.initialize();
    let nowhere = json!({"cwd": "/no/such/folder", "mcpServers": []});
    let refused = editor.call("session/new", &nowhere);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn without_a_name_the_agent_is_chosen_in_the_editor() {
    let agent = Agent::new();
    let mut editor = Editor::new(&agent, []);
    editor.initialize();
    let begun = editor.call(
        "session/new",
        &json!({"cwd": agent.path(""), "mcpServers": []}),
    );
    let options = begun["result"]["configOptions"].as_array().unwrap();
    assert_eq!(options[0]["id"], "agent", "{begun}");
    // The only installed agent is the first one.
    assert_eq!(options[0]["currentValue"], "claude");
    let names: Vec<_> = options[0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["value"].clone())
        .collect();
    assert!(names.contains(&json!("codex")), "{names:?}");
    let session = begun["result"]["sessionId"].as_str().unwrap().to_owned();
    editor.prompt_and_wait(&session, "hello");
    assert_eq!(editor.text(), "hello");
}

#[test]
fn an_agent_without_sessions_is_refused_with_a_reason() {
    let agent = Agent::new();
    run(&mut command(&agent, ["cmd:my-agent {prompt}"])).only_says(2, "has no sessions");
}

#[test]
fn a_killed_connection_leaves_no_agent_and_a_log_with_an_end() {
    let agent = Agent::new();
    let mut editor = Editor::new(&agent, ["claude"]);
    editor.initialize();
    let session = editor.begin(&agent.path(""));
    editor.prompt_and_wait(&session, "pid");
    let pid: u32 = editor.text().parse().unwrap();
    drop(editor);
    if cfg!(target_os = "linux") {
        assert!(wait_gone(pid, LIMIT), "the agent is still running");
    }
    let ended = run(&mut agent.command(["wait", &session]));
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
}
