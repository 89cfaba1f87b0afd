//! Limits over all attempts of a run, and the output of several attempts.

use std::fs;

use serde_json::Value;
use teamster::{ErrorCode, ErrorKind, RunStatus};

use crate::cli::again::Agents;
use crate::cli::{done, program, run};

/// Returns the value of a flag in the arguments of a CLI.
fn value(argv: &[String], flag: &str) -> Option<f64> {
    let at = argv.iter().position(|arg| arg.starts_with(flag))?;
    let value = match argv[at].split_once('=') {
        Some((_, value)) => value,
        None => &argv[at + 1],
    };
    value.parse().ok()
}

#[test]
fn a_limit_of_the_run_is_one_for_all_attempts() {
    let agents = Agents::new().claude(&[("tool_then_529", 1), ("text", 0)]);
    let args = [
        "x",
        "--retries=1",
        "--max-budget-usd=0.5",
        "--max-turns=5",
        "--json",
    ];
    run(&mut agents.run(args)).ok();
    let (first, second) = (agents.argv("claude", 1), agents.argv("claude", 2));
    assert_eq!(value(&first, "--max-budget-usd"), Some(0.5), "{first:?}");
    assert_eq!(value(&first, "--max-turns"), Some(5.0));
    // The second attempt gets what the first one has left.
    let left = value(&second, "--max-budget-usd").unwrap();
    assert!(left > 0.49 && left < 0.49932, "{second:?}");
    assert_eq!(value(&second, "--max-turns"), Some(3.0), "{second:?}");
}

#[test]
fn a_budget_of_time_ends_the_run() {
    let agents = Agents::new();
    program(&agents.path("claude"), "sleep 600");
    let json = run(&mut agents.run(["x", "--max-time=300ms", "--json"]));
    assert_eq!(json.code, Some(4), "{}", json.stderr);
    let result = done(&json.stdout);
    assert_eq!(result.errors[0].code, ErrorCode::BudgetExceeded);
    let lifecycle = run(&mut agents.run(["x", "--max-time=300ms", "--json", "--lifecycle"]));
    assert_eq!(lifecycle.code, Some(4), "{}", lifecycle.stderr);
    for args in [
        &["x", "--max-time=300ms"][..],
        &["x", "--max-time=300ms", "-q"],
    ] {
        run(&mut agents.run(args.iter().copied())).fails(4, "raise --max-time,");
    }
}

#[test]
fn the_limit_that_ended_the_run_is_named() {
    let agents = Agents::new().claude(&[("tool_then_529", 1), ("text", 0)]);
    run(&mut agents.run(["x", "--retries=1", "--max-tokens=10"])).fails(1, "raise --max-tokens,");
}

/// Returns an agent whose first start fails with a limit that resets after `seconds`.
///
/// With the status `rejected` it is a quota of the account, else a rate limit.
fn limited(status: &str, seconds: u32) -> Agents {
    let agents = Agents::new().claude(&[("text", 0), ("text", 0)]);
    let (play, count) = (agents.path("play"), agents.path("limited"));
    fs::rename(agents.path("claude"), &play).unwrap();
    let (play, count) = (play.display(), count.display());
    program(
        &agents.path("claude"),
        &format!(
            r#"[ -e '{count}' ] && exec '{play}' "$@"
touch '{count}'
id=11111111-2222-4333-8444-555555555555
echo '{{"type":"system","subtype":"init","session_id":"'$id'"}}'
at=$(($(date +%s) + {seconds}))
echo '{{"type":"rate_limit_event","session_id":"'$id'","rate_limit_info":{{"status":"{status}","resetsAt":'$at',"rateLimitType":"five_hour"}}}}'
echo '{{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"session_id":"'$id'","result":"API Error: Request rejected (429) · Rate limited."}}'
exit 1"#
        ),
    );
    agents
}

#[test]
fn max_wait_waits_for_a_limit_without_retries() {
    for (status, kind) in [
        ("rejected", ErrorKind::Quota),
        ("throttled", ErrorKind::RateLimit),
    ] {
        // Long enough that a slow machine still sees the limit in the future.
        let agents = limited(status, 4);
        let ended = run(&mut agents.run(["x", "--max-wait=5m", "--json"]));
        assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
        assert_eq!(agents.starts("claude"), 1);
        assert_eq!(done(&ended.stdout).status, RunStatus::Completed);

        // Not beyond --max-wait, and not without it.
        for args in [&["x", "--max-wait=30s", "--json"][..], &["x", "--json"]] {
            let agents = limited(status, 3600);
            let ended = run(&mut agents.run(args.iter().copied()));
            assert_eq!(ended.code, Some(1), "{}", ended.stderr);
            assert_eq!(done(&ended.stdout).errors[0].kind, kind);
            assert_eq!(agents.starts("claude"), 0);
        }
    }
}

#[test]
fn max_wait_retries_only_limits() {
    let agents = Agents::new().claude(&[("conformance_overloaded", 1), ("text", 0)]);
    let ended = run(&mut agents.run(["x", "--max-wait=5m", "--json"]));
    assert_eq!(ended.code, Some(1));
    assert_eq!(agents.starts("claude"), 1);
}

#[test]
fn a_fallback_cannot_resume_a_session_of_another_agent() {
    let agents = Agents::new().claude(&[("text", 0)]).codex(&[("text", 0)]);
    run(&mut agents.run(["x", "--resume=s-1", "--fallback=codex"]))
        .only_says(2, "--fallback codex: codex does not know the session");
    assert_eq!(agents.starts("claude"), 0);
}

#[test]
fn options_without_support_in_a_fallback_are_reported() {
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("text", 0)]);
    let args = [
        "x",
        "--cli-retries=1",
        "--effort=high",
        "--title=t",
        "--fallback=codex",
    ];
    let ended = run(&mut agents.run(args));
    let warning = "warning: --fallback codex ignores --effort, --cli-retries\n";
    ended.stderr_begins(warning);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(agents.starts("codex"), 1);
}

/// Returns the path of a new store, as a value of `TEAMSTER_STORE`.
fn store(agents: &Agents) -> String {
    agents.path("store.db").to_str().unwrap().to_owned()
}

#[test]
fn a_fallback_that_does_not_know_the_conversation_is_left_out() {
    const WARNING: &str =
        "warning: codex does not know this conversation and is left out as a fallback\n";
    let agents = Agents::new()
        .claude(&[("text", 0), ("conformance_unauthorized", 1)])
        .codex(&[("text", 0), ("text", 0)]);
    let args = ["x", "--session-key=k", "--fallback=codex", "--json"];
    run(agents.run(args).env("TEAMSTER_STORE", store(&agents))).quiet();
    let second = run(agents.run(args).env("TEAMSTER_STORE", store(&agents)));
    assert_eq!((second.code, &*second.stderr), (Some(1), WARNING));
    assert_eq!(done(&second.stdout).errors[0].kind, ErrorKind::Auth);
    assert_eq!(agents.starts("codex"), 0);

    // A new conversation begins with the first agent that answers.
    let agents = Agents::new()
        .claude(&[("conformance_unauthorized", 1)])
        .codex(&[("text", 0)]);
    run(agents.run(args).env("TEAMSTER_STORE", store(&agents))).quiet();
    assert_eq!(agents.starts("codex"), 1);
}

#[test]
fn the_store_variable_is_hidden_from_agents() {
    let agents = Agents::new().claude(&[("text", 0), ("text", 0), ("text", 0)]);
    let secret = store(&agents);
    let env = |number| -> Option<String> {
        let report = fs::read(agents.path(&format!("claude-{number}.json"))).unwrap();
        let report: Value = serde_json::from_slice(&report).unwrap();
        report["env"]["TEAMSTER_STORE"].as_str().map(str::to_owned)
    };
    for (number, args) in [
        &["x"][..],
        &["x", "--env=TEAMSTER_STORE"],
        &[
            "x",
            "--clean-env",
            "--env=TEAMSTER_STORE",
            "--env=TEAMSTER_CLAUDE_BIN",
        ],
    ]
    .iter()
    .enumerate()
    {
        let mut command = agents.run(args.iter().copied());
        run(command.env("TEAMSTER_STORE", &secret)).ok();
        let named = number > 0;
        assert_eq!(env(number + 1), named.then(|| secret.clone()), "{args:?}");
    }
}
