//! `acp`: an editor here, with sessions of the server's machine.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::Machine;
use crate::cli::acp::Editor;
use crate::cli::chat::Agent;
use crate::cli::detached::worktree::Repository;
use crate::cli::run;

fn machine(agent: &Agent) -> Machine {
    fs::create_dir(agent.path("work")).unwrap();
    Machine::new(agent.path("").as_path(), &agent.path("claude"))
}

#[test]
fn a_thread_is_a_session_of_the_server() {
    let agent = Agent::new();
    let machine = machine(&agent);
    let folder = agent.path("work");
    let mut editor = Editor::start(&mut machine.remote(["acp", "claude"]));
    let about = editor.initialize();
    let can = &about["result"]["agentCapabilities"];
    assert_eq!(can["promptCapabilities"]["image"], true, "{about}");
    let server = json!({"name": "files", "command": "/bin/true", "args": [], "env": []});
    let begun = editor.call(
        "session/new",
        &json!({"cwd": folder, "mcpServers": [server], "additionalDirectories": ["/other"]}),
    );
    let session = begun["result"]["sessionId"].as_str();
    let session = session.unwrap_or_else(|| panic!("{begun}")).to_owned();
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(editor.text(), "hello");
    let here = fs::read_to_string(agent.path("here")).unwrap();
    assert_eq!(
        here.trim(),
        folder.canonicalize().unwrap().to_str().unwrap()
    );
    let notices = editor.updates("agent_thought_chunk");
    let notices: Vec<_> = notices
        .iter()
        .map(|it| it["content"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].contains("(/other): a server takes none"),
        "{notices:?}"
    );
    assert!(
        notices[1].contains("(files): they are programs of this machine"),
        "{notices:?}"
    );

    let log = agent.path("state").join("teamster/runs").join(&session);
    let log = fs::read_to_string(log.join("events.ndjson")).unwrap();
    assert!(log.contains(r#""text":"hello","from":"test""#), "{log}");
    let live = run(&mut machine.remote(["runs", "list", "--live"]));
    live.stdout_has(&session[..8]);
    assert_eq!(editor.end(), Some(0));
    assert_eq!(machine.served.ended(&session)["status"], "completed");
}

#[test]
fn missing_agent_of_the_server_is_an_error_in_the_editor() {
    let agent = Agent::new();
    let machine = machine(&agent);
    let mut editor = Editor::start(&mut machine.remote(["acp", "claude"]));
    editor.initialize();
    let session = editor.begin(&agent.path("nowhere"));
    let refused = editor.prompt_and_wait(&session, "hello");
    let problem = refused["error"]["message"].as_str().unwrap();
    assert!(problem.contains("no such directory"), "{refused}");
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let params = json!({"cwd": agent.path("work"), "mcpServers": []});
    let mut missing = Editor::start(&mut machine.remote(["acp", "pi"]));
    missing.initialize();
    let refused = missing.call("session/new", &params);
    let problem = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(problem.contains("on the server's machine"), "{refused}");

    for (args, code, words) in [
        (
            &["acp", "claude", "--bin", "/bin/x"][..],
            2,
            "--bin cannot be used with --remote",
        ),
        (&["acp", "claude", "--permission", "bypass"], 0, ""),
    ] {
        let ended = run(&mut machine.remote(args.iter().copied()));
        assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
    let mut wrong = machine.remote(["acp", "claude"]);
    wrong.env("TEAMSTER_REMOTE_TOKEN", "tms_0123456789abcdef");
    run(&mut wrong).only_says(1, "check TEAMSTER_REMOTE_TOKEN");
}

#[test]
fn the_editor_s_repository_goes_along_and_its_branch_comes_back() {
    let agent = Agent::new();
    let machine = machine(&agent);
    let repository = Repository::new();
    let sub = repository.path().join("sub");
    fs::write(sub.join("new"), "new\n").unwrap();
    let status = repository.git(&["status", "--porcelain"]);
    let mut editor = Editor::start(&mut machine.remote(["acp", "claude", "--repo", "."]));
    editor.initialize();
    let elsewhere = agent.path("work");
    let refused = editor.call("session/new", &json!({"cwd": elsewhere, "mcpServers": []}));
    let problem = refused["error"]["message"].as_str().unwrap();
    for part in [
        "--repo: ",
        "not in a git repository",
        "open a folder of a git",
    ] {
        assert!(problem.contains(part), "{part}: {refused}");
    }
    let session = editor.begin(&sub);
    let answer = editor.prompt_and_wait(&session, "touch");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    // The agent works in the same folder of a copy, with what is not committed.
    let here = fs::read_to_string(agent.path("here")).unwrap();
    let here = Path::new(here.trim());
    assert!(here.ends_with("repository/sub"), "{}", here.display());
    assert!(here.join("new").exists() && here.join("touched").exists());
    assert!(!sub.join("touched").exists());
    assert_eq!(repository.git(&["status", "--porcelain"]), status);

    // What needs another process continues in the same copy.
    let server = json!({"cwd": sub, "mcpServers": [], "sessionId": session});
    assert_eq!(editor.end(), Some(0));
    let mut editor = Editor::start(&mut machine.remote(["acp", "claude", "--repo", "."]));
    editor.initialize();
    let listed = editor.call("session/list", &json!({"cwd": sub}));
    let sessions = listed["result"]["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    assert_eq!(sessions[0]["sessionId"], session.as_str());
    let loaded = editor.call("session/load", &server);
    assert!(loaded["result"].is_object(), "{loaded}");
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(agent.starts().last().unwrap().contains("--resume"));
    let again = fs::read_to_string(agent.path("here")).unwrap();
    assert_eq!(Path::new(again.trim()), here);
    assert!(here.join("touched").exists());

    let stderr = editor.end_with_stderr();
    let branch = format!("teamster/{session}");
    assert!(stderr.contains(&format!("branch {branch}: ")), "{stderr}");
    let log = repository.git(&["log", "--format=%s", &branch]);
    assert_eq!(log, "Uncommitted changes\nFirst\n");
    // Of each session what it has left.
    let wips = repository.git(&["for-each-ref", "--format=%(refname)", "refs/teamster/*/wip"]);
    let wips: Vec<_> = wips.lines().collect();
    assert_eq!(wips.len(), 2, "{wips:?}");
    for wip in wips {
        let files = repository.git(&["show", "--stat=80", "--format=", wip]);
        assert!(files.contains("sub/touched"), "{files}");
    }
    assert_eq!(repository.git(&["status", "--porcelain"]), status);

    run(&mut machine.local(["acp", "claude", "--repo", "."])).fails(2, "with --remote");
}
