//! `--ticks`: whether it works.

use teamster_testkit::stand_in::Act;

use super::Agent;
use crate::{program, run};

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
