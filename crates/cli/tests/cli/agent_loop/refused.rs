//! What cannot work is named before anything starts.

use super::Agent;
use crate::cli::run;

#[test]
fn invalid_setting_is_named_once() {
    let agent = Agent::new(|plan| plan);
    for (runtime, name, value) in [
        ("gemini", "GEMINI_REASONING", "high"),
        ("opencode", "OPENCODE_MODEL", "foo"),
        ("claude", "FULL_PROMPT_FILE", "none.md"),
        ("claude", "MIN_SLEEP", "soon"),
        ("claude", "MAX_TOKENS", "0"),
        ("claude", "FALLBACK", "cluade"),
        ("claude", "RUNTIME", "cluade"),
    ] {
        for adapter in ["hot", "cold"] {
            let mut command = agent.command();
            command.env("RUNTIME", runtime).env(name, value);
            let ended = run(command.env("ADAPTER", adapter));
            assert_eq!(ended.code, Some(2), "{}", ended.stdout);
            let expected = format!("error: {name}: ");
            ended.stderr_begins(&expected);
            assert!(!ended.stdout.contains(name), "{}", ended.stdout);
        }
    }
    assert!(agent.seen().is_empty());
}

#[test]
fn an_agent_without_a_cli_cannot_be_recorded() {
    let agent = Agent::new(|plan| plan);
    let mut command = agent.command();
    command.env("RUNTIME", "embedded");
    let ended = run(command.args(["--record", "recorded"]));
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let expected = "error: no CLI output to record";
    ended.stderr_begins(expected);
}

#[test]
fn cold_claude_is_not_started_as_root() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let agent = Agent::new(|plan| plan);
    let mut command = agent.command();
    command.env_remove("IS_SANDBOX").env("ADAPTER", "cold");
    let ended = run(&mut command);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
    let expected = "error: Claude Code refuses to bypass permissions as root; ";
    ended.stderr_begins(expected);
    assert!(agent.seen().is_empty());
}
