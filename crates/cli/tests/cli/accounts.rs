//! Limits of accounts, which processes share by their store.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use teamster::{ErrorCode, ErrorKind};
use teamster_core::time::epoch_ms;

use crate::cli::again::Agents;
use crate::cli::{done, program, recorded, run, teamster};

/// A machine with Claude, whose account has reached its limit, and Codex. Its runs have one store.
struct Machine {
    agents: Agents,
    resets_at_ms: u64,
}

impl Machine {
    fn new() -> Self {
        let agents = Agents::new().codex(&[("text", 0), ("text", 0)]);
        let resets_at = epoch_ms() / 1000 + 3600;
        // Made by hand, after the CLI's lines: the limits of recorded ones are over.
        let lines = [
            json!({"type": "system", "subtype": "init", "session_id": "s", "tools": [], "mcp_servers": [],
                "model": "m", "cwd": "/"}),
            json!({"type": "rate_limit_event", "session_id": "s", "rate_limit_info": {"status": "rejected",
                "resetsAt": resets_at, "rateLimitType": "five_hour", "utilization": 1.0}}),
            json!({"type": "result", "subtype": "success", "is_error": true, "session_id": "s",
                "result": "You've hit your limit", "api_error_status": 429, "duration_ms": 1, "num_turns": 1}),
        ];
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        let file = agents.path("limit.ndjson");
        fs::write(&file, lines.join("\n") + "\n").unwrap();
        let count = agents.path("claude.count");
        program(
            &agents.path("claude"),
            &format!(
                "n=$(($(cat '{count}' 2>/dev/null || echo 0) + 1)); echo $n > '{count}'; cat '{file}'; exit 1",
                count = count.display(),
                file = file.display(),
            ),
        );
        Self {
            agents,
            resets_at_ms: resets_at * 1000,
        }
    }

    fn stored(&self, mut command: Command) -> Command {
        command
            .env("TEAMSTER_STORE", self.agents.path("store.db"))
            .env("ANTHROPIC_API_KEY", "sk-ant-made-up-1");
        command
    }

    fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        self.stored(self.agents.run(args))
    }

    fn accounts<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> String {
        let args = ["accounts"].into_iter().chain(args);
        let ended = run(&mut self.stored(teamster(args))).ok();
        ended.stdout
    }
}

#[test]
fn limit_that_one_process_has_met_is_not_asked_for_by_another() {
    let machine = Machine::new();
    let first = run(&mut machine.run(["x", "--json"]));
    let quota = done(&first.stdout).errors[0].clone();
    assert_eq!(quota.kind, ErrorKind::Quota);
    assert_eq!(quota.resets_at_ms, Some(machine.resets_at_ms));
    assert_eq!(machine.agents.starts("claude"), 1);

    let second = run(&mut machine.run(["x", "--json"]));
    assert_eq!(second.code, first.code, "{}", second.stderr);
    let refused = done(&second.stdout).errors[0].clone();
    assert_eq!(refused.code, ErrorCode::ProviderOnHold);
    assert_eq!(refused.resets_at_ms, quota.resets_at_ms);
    let terminal = run(&mut machine.run(["x"]));
    terminal.stderr_has("`teamster accounts release claude`");
    run(&mut machine.run(["x", "--fallback=codex"])).ok();
    assert_eq!(machine.agents.starts("claude"), 1);

    // Another account of the same agent is asked.
    let mut other = machine.run(["x"]);
    run(other.env("ANTHROPIC_API_KEY", "sk-ant-made-up-2"));
    assert_eq!(machine.agents.starts("claude"), 2);
}

#[test]
fn held_accounts_are_listed_and_released() {
    let machine = Machine::new();
    run(&mut machine.run(["x"]));
    let held: Value = serde_json::from_str(&machine.accounts(["list", "--json"])).unwrap();
    assert_eq!(held["provider"], "claude");
    assert_eq!(held["untilMs"], machine.resets_at_ms);
    let table = machine.accounts(["list"]);
    assert!(table.contains("You've hit your limit"), "{table}");
    assert!(!table.contains("sk-ant"), "{table}");

    assert_eq!(
        machine.accounts(["release", "codex"]),
        "0 accounts released\n"
    );
    assert_eq!(
        machine.accounts(["release", "claude"]),
        "1 account released\n"
    );
    assert_eq!(machine.accounts(["list", "--json"]), "");
    run(&mut machine.run(["x"]));
    assert_eq!(machine.agents.starts("claude"), 2);
}

#[test]
fn next_account_of_an_agent_takes_over_at_a_limit() {
    let machine = Machine::new();
    let config = machine.agents.path("config");
    fs::create_dir_all(config.join("teamster")).unwrap();
    let entry = |name: &str, key: &str| {
        format!("[{name}]\nagent = 'claude'\nenv.ANTHROPIC_API_KEY = '{key}'\n")
    };
    let entries = entry("work", "sk-ant-made-up-1") + &entry("home", "sk-ant-made-up-2");
    fs::write(config.join("teamster/accounts.toml"), entries).unwrap();
    // The limit is that of the first key alone.
    let limited = machine.agents.path("limited");
    fs::rename(machine.agents.path("claude"), &limited).unwrap();
    let recorded = recorded("claude", "2.1.197", "text");
    program(
        &machine.agents.path("claude"),
        &format!(
            "[ \"$ANTHROPIC_API_KEY\" = sk-ant-made-up-1 ] && exec '{}'\nexec cat '{}'",
            limited.display(),
            recorded.display(),
        ),
    );
    let with = |args: &[&'static str]| {
        let mut command = machine.run(args.iter().copied());
        command
            .env("XDG_CONFIG_HOME", &config)
            .env_remove("ANTHROPIC_API_KEY");
        run(&mut command)
    };
    let rotated = with(&["x", "--account=work", "--account=home"]).ok();
    rotated.stderr_has("resume with: teamster run claude --account work --account home --resume ");
    assert_eq!(machine.agents.starts("claude"), 1);
    let mut list = machine.stored(teamster(["runs", "list", "--json"]));
    let record = run(&mut list).json();
    let accounts: Vec<_> = (record["attemptLog"].as_array().unwrap().iter())
        .map(|attempt| attempt["account"].as_str().unwrap())
        .collect();
    assert_eq!(accounts, ["work", "home"]);
    let mut table = machine.stored(teamster(["runs", "list"]));
    run(&mut table).stdout_has("claude@home");
    // The first one is not asked again before its time.
    with(&["x", "--account=work", "--account=home"]).ok();
    assert_eq!(machine.agents.starts("claude"), 1);

    with(&["x", "--account=other"]).fails(2, "no such account; this machine has home, work");

    let mut list = machine.stored(teamster(["accounts", "list", "--json"]));
    let listed = run(list.env("XDG_CONFIG_HOME", &config)).json_lines();
    let of = |name: &str| listed.iter().find(|it| it["account"] == name).unwrap();
    assert_eq!(of("work")["untilMs"], machine.resets_at_ms);
    assert_eq!(of("home").get("untilMs"), None);
    assert_eq!(of("home")["hasLogin"], true);
}

#[test]
fn login_that_ends_is_renewed_by_one_run_before_others_start() {
    let agents = Agents::new();
    let (home, starts) = (agents.path("home"), agents.path("starts"));
    fs::create_dir_all(home.join(".claude")).unwrap();
    let file = home.join(".claude/.credentials.json");
    let now = epoch_ms();
    // Made by hand, in the form of the CLI's file.
    let login =
        |ends: u64| format!(r#"{{"claudeAiOauth":{{"accessToken":"t","expiresAt":{ends}}}}}"#);
    let (soon, later) = (login(now + 30_000), login(now + 28_800_000));
    fs::write(&file, &soon).unwrap();
    // An agent that renews its login a second after its start.
    program(
        &agents.path("claude"),
        &format!(
            "cat '{file}' >> '{starts}'; echo >> '{starts}'; sleep 1\n\
             printf '%s' '{later}' > '{file}.new'; mv '{file}.new' '{file}'\nexec cat '{recorded}'",
            file = file.display(),
            starts = starts.display(),
            recorded = recorded("claude", "2.1.197", "text").display(),
        ),
    );
    let start = || {
        let mut command = agents.run(["x"]);
        command
            .env("TEAMSTER_STORE", agents.path("store.db"))
            .env("HOME", &home);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    for mut run in [start(), start()] {
        assert!(run.wait().unwrap().success());
    }
    let starts = fs::read_to_string(starts).unwrap();
    assert_eq!(starts.lines().collect::<Vec<_>>(), [&*soon, &*later]);
}

#[test]
fn slots_of_an_account_are_those_of_all_processes() {
    let agents = Agents::new();
    let config = agents.path("config");
    fs::create_dir_all(config.join("teamster")).unwrap();
    let entry = "[work]\nagent = 'claude'\nslots = 1\nenv.ANTHROPIC_API_KEY = 'sk-ant-made-up-1'\n";
    fs::write(config.join("teamster/accounts.toml"), entry).unwrap();
    let (busy, overlaps) = (agents.path("busy"), agents.path("overlaps"));
    program(
        &agents.path("claude"),
        &format!(
            "mkdir '{busy}' || echo x >> '{overlaps}'\nsleep 1\nrmdir '{busy}'\nexec cat '{recorded}'",
            busy = busy.display(),
            overlaps = overlaps.display(),
            recorded = recorded("claude", "2.1.197", "text").display(),
        ),
    );
    let start = || {
        let mut command = agents.run(["x", "--account=work"]);
        command
            .env("TEAMSTER_STORE", agents.path("store.db"))
            .env("XDG_CONFIG_HOME", &config);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    for mut run in [start(), start(), start()] {
        assert!(run.wait().unwrap().success());
    }
    assert!(!overlaps.exists());
}
