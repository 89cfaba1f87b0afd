//! Kills during a turn, while the CLI's shell tool runs.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::bail;
use serde_json::Value;
use teamster_mock_model::{Cli, Part, Script, Tokens, Turn};

use super::checks::{Check, Findings};
use super::stage::{LIMIT, POLL, SLEEPS, Stage};
use crate::bench::Bench;
use crate::conversation::{self, texts};
use crate::location;

/// Text of the model in the first tick and in the tick after the kill.
const TEXTS: [&str; 2] = ["The first is done.", "What was broken off is done."];

/// File that the agent's command creates before it waits.
const RUNNING: &str = "running";

/// Identifies the command among the processes: the duration is unique.
const WAITS: &str = "sleep 7411";

/// The process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Cli,
    Loop,
}

impl Victim {
    fn check(self) -> Check {
        match self {
            Self::Cli => Check::KilledInTurn,
            Self::Loop => Check::LoopKilled,
        }
    }
}

/// Returns the answers: of the first tick, of the tick that is killed, and of all later requests, whose turn
/// depends on how much of the killed turn the CLI has kept.
fn script() -> anyhow::Result<Script> {
    let answer = |number: u64, part: Part| {
        let mut turn = Turn::new(vec![part]);
        let mut usage = Tokens::default();
        (usage.input, usage.output) = (1000 * number + 7, 10 * number + 3);
        turn.usage = usage;
        turn
    };
    let command = format!("touch .orchestrator/did-work {RUNNING} && {WAITS}");
    let mut broken = answer(2, Part::Shell(command));
    broken.times = Some(1);
    let again = answer(3, Part::Text(TEXTS[1].into()));
    Ok(Script::new(vec![
        answer(1, Part::Text(TEXTS[0].into())),
        broken,
        again.clone(),
        again,
    ])?)
}

/// Plays both kills with a CLI.
pub(crate) async fn play(
    bench: &Bench,
    cli: Cli,
    program: &Path,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    play_one(bench, cli, program, Victim::Cli, findings).await?;
    play_one(bench, cli, program, Victim::Loop, findings).await
}

async fn play_one(
    bench: &Bench,
    cli: Cli,
    program: &Path,
    who: Victim,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let check = who.check();
    let mut stage = Stage::new(bench, cli, program, check.name(), script()?).await?;
    let first = stage.rest().await?;
    findings.same(
        check,
        "the sleep after the first tick",
        first,
        SLEEPS[0] + SLEEPS[1],
    );
    let session = session(&stage);
    stage.wake()?;
    until(&stage, "the command does not run", |stage| {
        stage.path(RUNNING).exists() && waits(stage)
    })
    .await?;
    let asked = stage.model.requests().len();
    // Claude Code writes its messages a moment after it has acted on them. OpenCode writes the usage of a
    // step after its tools have ended.
    let written = who == Victim::Loop && cli != Cli::OpenCode;
    if written {
        until(
            &stage,
            "the CLI has not written down what the turn used",
            |stage| has_number(&stage.home(), "2007"),
        )
        .await?;
    }
    match who {
        Victim::Cli => {
            let killed = stage.kill().await?;
            findings.must(check, killed, || "there was no CLI to kill".to_owned());
            let pause = stage.rest().await?;
            findings.same(check, "the pause after a failure", pause, 5);
        }
        Victim::Loop => {
            stage.kill_loop().await?;
            until(&stage, "processes are left", |stage| {
                location::processes_of(&stage.home()).is_empty()
            })
            .await?;
            stage.start()?;
        }
    }
    if cli == Cli::Gemini {
        // Gemini CLI cannot continue the session in the minute of its start.
        let wait = stage.rest().await?;
        findings.must(check, wait <= 60, || format!("a wait of {wait} s"));
    }
    let sleep = stage.rest().await?;
    // The flag of the killed turn applies to the next one.
    findings.same(check, "the sleep after the kill", sleep, SLEEPS[0]);
    findings.must(check, !waits(&stage), || {
        "the command of the turn that was broken off still runs".to_owned()
    });
    let requests = stage.asked_from(asked);
    let all = requests.first().map(texts).unwrap_or_default();
    findings.must(check, all.contains(TEXTS[0]), || {
        format!(
            "the earlier text is not in the request after the kill ({} requests)",
            requests.len()
        )
    });
    findings.same(
        check,
        "the session after the kill",
        self::session(&stage),
        session,
    );
    let records: Vec<Value> = stage
        .read(".orchestrator/usage.jsonl")
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let figures =
        |record: &Value| ["input_tokens", "output_tokens"].map(|name| record[name].as_u64());
    findings.same(
        check,
        "tokens of the last tick",
        records.last().map(figures),
        Some([Some(3007), Some(33)]),
    );
    if written {
        findings.same(
            check,
            "tokens of the tick that was cut off",
            records.iter().rev().nth(1).map(figures),
            Some([Some(2007), Some(23)]),
        );
    }
    let (code, left) = stage.end().await?;
    findings.same(check, "the exit code", code, Some(0));
    findings.must(check, left.is_empty(), || {
        format!("processes are left: {left:?}")
    });
    findings.details.push(format!("== {}", check.name()));
    findings
        .details
        .extend(stage.log().lines().map(str::to_owned));
    for request in &requests {
        findings.details.push(conversation::line(request));
    }
    findings
        .details
        .extend(records.iter().map(Value::to_string));
    Ok(())
}

/// Returns the session that the next loop would continue.
fn session(stage: &Stage) -> Value {
    let text = stage.read(".orchestrator/session.json");
    let session: Value = serde_json::from_str(&text).unwrap_or_default();
    session["session_id"].clone()
}

/// Returns whether the command of the turn is running.
fn waits(stage: &Stage) -> bool {
    let processes = location::processes_of(&stage.home());
    processes.iter().any(|command| command.trim() == WAITS)
}

/// Returns whether a file in or below the directory contains this number, other than the logs of runs, which have it
/// before the CLI has written it.
fn has_number(directory: &Path, number: &str) -> bool {
    let Ok(entries) = fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => {
            entry.file_name() != "teamster" && has_number(&entry.path(), number)
        }
        Ok(kind) if kind.is_file() => fs::read(entry.path()).is_ok_and(|bytes| {
            String::from_utf8_lossy(&bytes)
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == number)
        }),
        _ => false,
    })
}

/// Waits until a condition holds.
async fn until(
    stage: &Stage,
    otherwise: &str,
    holds: impl Fn(&Stage) -> bool,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !holds(stage) {
        if begun.elapsed() > LIMIT {
            let left = location::processes_of(&stage.home());
            bail!("{otherwise}: {left:?}\n{}", stage.log());
        }
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}
