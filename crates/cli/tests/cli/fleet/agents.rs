//! The agents of a fleet's machines: `doctor`, `usage --limits`, and `acp` for an editor here.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use teamster_core::time::epoch_ms;
use teamster_testkit::proc::wait_until;

use super::Fleet;
use crate::cli::acp::Editor;
use crate::cli::chat::Agent;
use crate::cli::detached::worktree::Repository;
use crate::cli::{Claude, LIMIT};

/// Made by hand: what Claude Code prints for a prompt when its limit of five hours is reached. `RESETS` is the time at which
/// it resets, in seconds.
const LIMITED: &str = r#"
case "$1" in --version) echo '2.1.197 (Claude Code)'; exit 0;; esac
cat > /dev/null
printf '{"type":"system","subtype":"init","session_id":"s","model":"opus"}\n'
printf '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":RESETS,"rateLimitType":"five_hour"}}\n'
printf '{"type":"result","subtype":"success","is_error":true,"session_id":"s","num_turns":1,"result":"limit reached","terminal_reason":"rate_limit"}\n'
"#;

#[test]
fn a_person_sees_the_agents_of_all_machines_and_their_limits() {
    let resets = epoch_ms() / 1000 + 2 * 3600;
    let claude = Claude::plays("text", 0);
    claude.program(&LIMITED.replace("RESETS", &resets.to_string()));
    let Some(fleet) = Fleet::new(claude) else {
        return;
    };
    fleet
        .run(["--fleet", "doctor"])
        .only_says(3, "teamster worker");
    fleet
        .run(["--fleet", "usage", "--limits"])
        .only_says(0, "has reached");

    let _worker = fleet.worker("mini");
    let there = wait_until(LIMIT, || fleet.run(["--fleet", "doctor"]).code == Some(0));
    assert!(there);
    let shown = fleet.ok(["doctor"]);
    let row = |agent: &str| {
        let mut lines = shown.lines();
        let of_agent = |line: &&str| line.starts_with("mini ") && line.contains(agent);
        let line = lines.find(of_agent);
        line.unwrap_or_else(|| panic!("{agent}: {shown}"))
    };
    assert!(row(" claude ").ends_with(" ready"), "{shown}");
    // With how to get it.
    assert!(row(" gemini ").contains(": npm install -g "), "{shown}");
    assert!(shown.contains(" agents ready\n"), "{shown}");
    let json: Value = serde_json::from_str(&fleet.ok(["doctor", "--json"])).unwrap();
    let mut agents = json["providers"].as_array().unwrap().iter();
    let claude = agents.find(|agent| agent["id"] == "claude").unwrap();
    assert_eq!(
        (&claude["machine"], &claude["usable"], &claude["tested"]),
        (&"mini".into(), &true.into(), &true.into())
    );

    fleet.run(["--fleet", "run", "claude", "x"]);
    let limits = || fleet.run(["--fleet", "usage", "--limits", "--json"]).stdout;
    assert!(wait_until(LIMIT, || limits().contains("claude")));
    let limit: Value = serde_json::from_str(&limits()).unwrap();
    let limit = &limit["limits"][0];
    assert_eq!(
        (&limit["windowMinutes"], &limit["usedPercent"]),
        (&300.into(), &100.0.into())
    );
    let shown = fleet.ok(["usage", "--limits"]);
    assert!(shown.contains("claude  5 hours  100%"), "{shown}");
}

#[test]
fn editor_works_on_a_machine_with_its_folder_and_gets_a_branch() {
    let agent = Agent::new();
    let Some(fleet) = Fleet::new(Claude::plays("text", 0)) else {
        return;
    };
    let mut without = fleet.command(["--fleet", "acp", "claude", "--repo", "."]);
    crate::cli::run(&mut without).fails(1, "no worker");

    let _worker = fleet.worker_with("mini", &agent.path("claude"));
    let there = wait_until(LIMIT, || fleet.run(["--fleet", "doctor"]).code == Some(0));
    assert!(there);
    let repository = Repository::new();
    let status = repository.git(&["status", "--porcelain"]);
    let acp = || fleet.command(["--fleet", "acp", "claude", "--repo", "."]);
    let mut editor = Editor::start(&mut acp());
    editor.initialize();
    let session = editor.begin(&repository.path());
    let answer = editor.prompt_and_wait(&session, "touch");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let here = fs::read_to_string(agent.path("here")).unwrap();
    let here = Path::new(here.trim());
    assert!(here.join("touched").exists(), "{}", here.display());
    assert!(!repository.path().join("touched").exists());
    let id = editor.prompt(&session, "write");
    let request = editor.wait("request", |it| it["method"] == "session/request_permission");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow"}});
    editor.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": outcome}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "end_turn");
    assert!(editor.text().contains("allowed"), "{}", editor.text());
    let live = fleet.ok(["runs", "list", "--live"]);
    assert!(live.contains(&session[..8]), "{live}");
    let stderr = editor.end_with_stderr();
    let branch = format!("teamster/{session}");
    assert!(stderr.contains(&format!("branch {branch}: ")), "{stderr}");
    let wips = repository.git(&["for-each-ref", "--format=%(refname)", "refs/teamster/*/wip"]);
    let files = repository.git(&["show", "--stat=80", "--format=", wips.trim()]);
    assert!(files.contains("touched"), "{files}");
    assert_eq!(repository.git(&["status", "--porcelain"]), status);

    // Another editor continues it, where it was.
    let mut editor = Editor::start(&mut acp());
    editor.initialize();
    let listed = editor.call("session/list", &json!({"cwd": repository.path()}));
    assert_eq!(
        listed["result"]["sessions"][0]["sessionId"], *session,
        "{listed}"
    );
    let load = json!({"cwd": repository.path(), "mcpServers": [], "sessionId": session});
    let loaded = editor.call("session/load", &load);
    assert!(loaded["result"].is_object(), "{loaded}");
    let answer = editor.prompt_and_wait(&session, "hello");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(agent.starts().last().unwrap().contains("--resume"));
    assert_eq!(editor.end(), Some(0));
}
