//! `--ticks`: whether it works.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use teamster_testkit::stand_in::Act;

use super::Agent;
use crate::cli::{Running, program, recorded, run};

#[test]
fn the_code_is_that_of_the_last_tick() {
    let agent = Agent::new(|plan| plan.turn([Act::Die]).turn([Act::DidWork]));
    let ticks = |count: &str| {
        let mut command = agent.command();
        run(command.args(["--ticks", count])).code
    };
    assert_eq!(ticks("1"), Some(1), "{}", agent.log());
    assert_eq!(ticks("1"), Some(0), "{}", agent.log());

    let bin = agent.root.path().join("bin");
    program(&bin.join("claude"), "echo 'it is broken' >&2; exit 1");
    for adapter in ["hot", "cold"] {
        let mut command = agent.command();
        command.env("ADAPTER", adapter).args(["--ticks", "1"]);
        assert_eq!(run(&mut command).code, Some(1), "{}", agent.log());
    }
    std::fs::remove_file(bin.join("claude")).unwrap();
    for adapter in ["hot", "cold"] {
        let mut command = agent.command();
        command.env("ADAPTER", adapter).args(["--ticks", "1"]);
        assert_eq!(run(&mut command).code, Some(3), "{}", agent.log());
    }
}

#[test]
fn each_process_of_the_agent_is_recorded() {
    // Two loops of two ticks each.
    for (adapter, processes) in [("hot", 2), ("cold", 4)] {
        let agent = Agent::new(|plan| plan.turn([Act::DidWork]));
        for _ in 0..2 {
            let mut command = agent.command();
            // The folder is relative to that of the command, not to the agent's.
            command
                .current_dir(agent.root.path())
                .envs([("ADAPTER", adapter), ("MIN_SLEEP", "0"), ("IDLE_STEP", "0")])
                .args(["--ticks", "2", "--record", "recorded"]);
            assert_eq!(run(&mut command).code, Some(0), "{}", agent.log());
        }
        let folder = |number: u32| agent.root.path().join(format!("recorded/{number}"));
        for number in 1..=processes {
            let meta = std::fs::read(folder(number).join("meta.json")).unwrap();
            let meta: Value = serde_json::from_slice(&meta).unwrap();
            assert_eq!(meta["cli"], "claude");
            assert_eq!(meta["exit_code"], 0, "{meta}");
            let output = std::fs::read(folder(number).join("stdout.ndjson")).unwrap();
            assert_ne!(output, b"");
        }
        assert!(!folder(processes + 1).exists());
    }
}

#[test]
fn the_program_of_the_agents_file() {
    let agent = Agent::new(|plan| plan);
    let (bin, mine) = (
        agent.root.path().join("bin"),
        agent.root.path().join("mine"),
    );
    std::fs::rename(bin.join("claude"), &mine).unwrap();
    let env = format!("TEAMSTER_CLAUDE_BIN={}\n", mine.display());
    std::fs::write(agent.directory().join(".env"), env).unwrap();
    let ticks = |command: &mut std::process::Command| run(command.args(["--ticks", "1"])).code;
    assert_eq!(ticks(&mut agent.command()), Some(0), "{}", agent.log());
    // That of the environment goes before it.
    let mut command = agent.command();
    command.env("TEAMSTER_CLAUDE_BIN", bin.join("claude"));
    assert_eq!(ticks(&mut command), Some(3), "{}", agent.log());
}

#[test]
fn an_estimate_is_made_with_the_users_prices() {
    let agent = Agent::new(|plan| plan);
    // Its output has tokens and no cost.
    let played = recorded("gemini", "0.61.0", "conformance_text");
    let script = format!("exec cat '{}'", played.display());
    program(&agent.root.path().join("bin/gemini"), &script);
    let command = || {
        let mut command = agent.command();
        command.envs([("RUNTIME", "gemini"), ("ADAPTER", "cold")]);
        command
    };
    let tick = || {
        run(command().args(["--ticks", "1"])).ok();
        let usage = std::fs::read_to_string(agent.path("usage.jsonl")).unwrap();
        serde_json::from_str::<Value>(usage.lines().last().unwrap()).unwrap()
    };
    let of_table = tick()["cost_usd"].as_f64().unwrap();
    assert!(of_table < 0.001, "{of_table}");
    let folder = agent.root.path().join("home/.config/teamster");
    std::fs::create_dir_all(&folder).unwrap();
    let prices = |output: u32| {
        format!(
            "[models.\"gemini-2.5-flash\"]\ninput = 0\ncache_read = 0\ncache_write = 0\noutput = {output}\n"
        )
    };
    std::fs::write(folder.join("prices.toml"), prices(1_000_000)).unwrap();
    let record = tick();
    assert_eq!(
        record["cost_usd"].as_f64(),
        record["output_tokens"].as_f64()
    );
    assert_eq!(record["cost_source"], "estimated");
    // The agent's own come before.
    let named = agent.root.path().join("named.toml");
    std::fs::write(&named, prices(2_000_000)).unwrap();
    let env = format!("TEAMSTER_PRICES={}\n", named.display());
    std::fs::write(agent.directory().join(".env"), env).unwrap();
    let record = tick();
    let twice = 2.0 * record["output_tokens"].as_f64().unwrap();
    assert_eq!(record["cost_usd"].as_f64(), Some(twice));
    std::fs::write(&named, "[models.x]\ninput = -1\n").unwrap();
    let ended = run(&mut command());
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let error = "error: the file of prices cannot be used: ";
    ended.stderr_begins(error);
}

#[test]
fn servers_of_an_agent_are_read_for_each_process() {
    let agent = Agent::new(|plan| plan);
    let started = agent.root.path().join("started");
    agent.copilot(&format!("echo \"started: $*\" >> '{}'", started.display()));
    let servers = agent.directory().join(".mcp.json");
    let named = |name: &str| {
        let lost = json!({"command": "true", "env": {"K": "${NONE_SUCH}"}});
        json!({"mcpServers": {name: {"command": "true"}, "lost": lost}}).to_string()
    };
    std::fs::write(&servers, named("tracker")).unwrap();
    let mut running = Running::start(agent.command().env("RUNTIME", "copilot"));
    let mut ticks = 0;
    let mut tick = || {
        ticks += 1;
        let ended = format!("tick {ticks} ok in ");
        agent.waits_for("the sleep after a tick", || {
            agent.path("agent-loop.log").exists() && agent.log().contains(&ended) && agent.sleeps()
        });
        let started = std::fs::read_to_string(&started).unwrap();
        started.rsplit("started: ").next().unwrap().to_owned()
    };
    assert!(tick().contains("tracker"));
    std::fs::write(&servers, named("calendar")).unwrap();
    for _ in 0..2 {
        running.signal(Signal::SIGUSR1);
        let argv = tick();
        let changed = argv.contains("calendar") && !argv.contains("tracker");
        assert!(changed, "{argv}\n{}", agent.log());
        // While it cannot be read, the servers are what they were.
        std::fs::write(&servers, "{").unwrap();
    }
    running.stop();
    for report in [
        "the server lost is left out: env.K: the variable NONE_SUCH is not set",
        "the previous values are kept",
    ] {
        let reports = agent.log().matches(report).count();
        assert_eq!(reports, 1, "{report}: {}", agent.log());
    }
}
