//! Some scripted ticks of an agent.
//!
//! The turn of a request is derived from the request itself. After a clear and after a reset it starts over
//! at the first. The script therefore has the turns of three consecutive conversations.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use serde_json::{Value, json};
use teamster::agent_loop::{Prompts, Settings};
use teamster_api::agents::Prompt;
use teamster_mock_model::{Cli, Part, Request, Script, Tokens, Turn};

use super::checks::{Check, Findings};
use super::stage::{FOREIGN_SKILL, OWN_SKILL, SLEEPS, Stage};
use crate::bench::Bench;
use crate::conversation::{self, texts, times};

pub(crate) const TICKS: usize = 7;

/// The model's text at the end of each tick.
const TEXTS: [&str; TICKS] = [
    "The first is done.",
    "The second is done.",
    "The third is done.",
    "The fourth is done.",
    "The fifth is done.",
    "The sixth is done.",
    "The seventh is done.",
];

/// Ticks of each conversation.
const CONVERSATIONS: [&[usize]; 3] = [&[1, 2], &[3, 4], &[5, 6, 7]];

/// Text that the MCP server echoes.
const ECHO: &str = "fish 7f3a";

/// Returns whether the loop keeps the CLI's process.
pub(crate) fn is_hot(cli: Cli) -> bool {
    cli != Cli::Copilot
}

/// Returns whether the CLI supports MCP servers.
pub(crate) fn takes_servers(cli: Cli) -> bool {
    let provider = teamster::Providers::builtin().get(cli.id());
    provider.is_some_and(|provider| !provider.capabilities().mcp.transports.is_empty())
}

/// Returns an answer whose usage is derived from its number.
fn answer(number: u64, parts: Vec<Part>) -> Turn {
    let mut turn = Turn::new(parts);
    let mut usage = Tokens::default();
    (usage.input, usage.output) = (1000 * number + 7, 10 * number + 3);
    turn.usage = usage;
    turn
}

/// Returns the answers of a tick: first commands, then text.
fn tick(cli: Cli, number: usize) -> Vec<Turn> {
    let shell = |command: &str| Part::Shell(command.to_owned());
    let did_work = || shell("touch .orchestrator/did-work");
    let skill = |name: &str| Part::Tool {
        name: "Skill".to_owned(),
        input: json!({"skill": name}),
    };
    let first = match number {
        2 => vec![shell(
            "echo '{\"tick\": 2}' > status.json && touch .orchestrator/clear-session",
        )],
        3 if cli == Cli::Claude => vec![did_work(), skill("deploy"), skill("foreign")],
        1 | 3 => vec![did_work()],
        4 => vec![shell("touch .orchestrator/reset-session")],
        5 if takes_servers(cli) => vec![Part::Mcp {
            server: "tiny".to_owned(),
            tool: "echo".to_owned(),
            arguments: json!({"text": ECHO}),
        }],
        _ => Vec::new(),
    };
    let words = vec![Part::Text(TEXTS[number - 1].into())];
    let number = u64::try_from(number).unwrap_or_default();
    let mut turns = Vec::new();
    if !first.is_empty() {
        turns.push(answer(2 * number, first));
    }
    turns.push(answer(2 * number + 1, words));
    turns
}

/// Returns the answers of all turns. If several conversations have the same turn, each answer is for one
/// request, in order.
fn script(cli: Cli) -> anyhow::Result<Script> {
    let conversations = CONVERSATIONS.map(|ticks| {
        let turns = ticks.iter().flat_map(|number| tick(cli, *number));
        turns.collect::<Vec<_>>()
    });
    let longest = conversations.iter().map(Vec::len).max().unwrap_or_default();
    let mut turns = Vec::new();
    for at in 0..longest {
        let mut same: Vec<Turn> = conversations
            .iter()
            .filter_map(|turns| turns.get(at).cloned())
            .collect();
        let last = same.len().saturating_sub(1);
        for turn in &mut same[..last] {
            turn.times = Some(1);
        }
        turns.extend(same);
    }
    Ok(Script::new(turns)?)
}

/// Waits for the next minute. Gemini CLI names the file of a session by the minute, and would overwrite it if
/// the session continued in that minute, which `teamster` refuses.
async fn next_minute() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let second = now.map_or(0, |now| now.as_secs() % 60);
    tokio::time::sleep(Duration::from_secs(61 - second)).await;
}

struct Played {
    sleep: u64,
    asked: Vec<Request>,
    /// The CLI's processes after the tick.
    processes: Vec<u32>,
}

pub(crate) async fn play(bench: &Bench, cli: Cli, program: &Path) -> anyhow::Result<Findings> {
    let mut stage = Stage::new(bench, cli, program, "loop", script(cli)?).await?;
    let mut ticks = Vec::new();
    let mut asked = 0;
    let mut killed = false;
    for number in 1..=TICKS {
        if number == TICKS {
            if cli == Cli::Gemini {
                next_minute().await;
            }
            killed = stage.kill().await?;
        }
        if number > 1 {
            stage.wake()?;
        }
        let sleep = stage.rest().await?;
        ticks.push(Played {
            sleep,
            asked: stage.asked_from(asked),
            processes: stage.processes(),
        });
        asked = stage.model.requests().len();
    }
    let mut findings = Findings::default();
    prompts(&mut findings, &stage, &ticks, killed)?;
    processes(&mut findings, cli, &ticks, killed);
    let [min, step, max] = SLEEPS;
    let sleeps: Vec<_> = ticks.iter().map(|tick| tick.sleep).collect();
    let wanted = [
        min,
        min + step,
        min,
        min + step,
        max.min(min + 2 * step),
        max,
        max,
    ];
    findings.same(Check::Sleep, "sleeps in seconds", &*sleeps, &wanted[..]);
    usage(&mut findings, &stage, &ticks)?;
    if takes_servers(cli) {
        let echo = ticks[4].asked.iter().any(|request| {
            // The text must not only be in the call.
            texts(request).contains(&format!("echo: {ECHO}"))
        });
        findings.must(Check::Mcp, echo, || {
            "the tool's answer did not reach the model".to_owned()
        });
    }
    if cli == Cli::Claude {
        let all: String = ticks[2].asked.iter().map(texts).collect();
        findings.must(Check::Skills, all.contains(OWN_SKILL), || {
            "the agent's own skill could not be used".to_owned()
        });
        findings.must(Check::Skills, !all.contains(FOREIGN_SKILL), || {
            "the user's skill could be used".to_owned()
        });
    }
    files(&mut findings, &stage);
    let (code, left) = stage.end().await?;
    findings.same(Check::End, "the exit code", code, Some(0));
    findings.must(Check::End, left.is_empty(), || {
        format!("processes are left: {left:?}")
    });
    findings
        .details
        .extend(stage.log().lines().map(str::to_owned));
    for (at, tick) in ticks.iter().enumerate() {
        for request in &tick.asked {
            let line = conversation::line(request);
            findings.details.push(format!("tick {}: {line}", at + 1));
        }
    }
    let records = stage.read(".orchestrator/usage.jsonl");
    findings.details.extend(records.lines().map(str::to_owned));
    Ok(findings)
}

/// Checks the requests to the model in each tick: prompts and earlier text.
fn prompts(
    findings: &mut Findings,
    stage: &Stage,
    ticks: &[Played],
    killed: bool,
) -> anyhow::Result<()> {
    let provider = teamster::Providers::builtin()
        .get(stage.cli.id())
        .context("is not in this build")?;
    let prompts = Prompts::read(&Settings::new(provider.info()), Path::new("/"))
        .map_err(anyhow::Error::msg)?;
    // The first sentence of a prompt, because a CLI may change white space.
    let begins = |prompt: Prompt| {
        let sentence = prompts.text(prompt).split(". ").next();
        sentence.unwrap_or_default().to_owned()
    };
    let [full, light] = [Prompt::Full, Prompt::Light].map(begins);
    for (at, tick) in ticks.iter().enumerate() {
        let number = at + 1;
        let conversation = CONVERSATIONS
            .iter()
            .position(|ticks| ticks.contains(&number));
        let before: Vec<usize> = conversation.map_or_else(Vec::new, |at| {
            let ticks = CONVERSATIONS[at].iter().copied();
            ticks.filter(|it| *it < number).collect()
        });
        let is_again = killed && number == TICKS;
        let fulls = 1 + usize::from(is_again);
        let lights = before.len() + 1 - fulls;
        let check = match number {
            3 => Check::Clear,
            5 => Check::Reset,
            TICKS if killed => Check::Killed,
            _ => Check::Prompts,
        };
        let Some(first) = tick.asked.first() else {
            findings.must(check, false, || {
                format!("tick {number}: the model was not asked")
            });
            continue;
        };
        let all = texts(first);
        let found = (times(&all, &full), times(&all, &light));
        let what = format!("tick {number}: how often the full and the light prompt");
        findings.same(check, &what, found, (fulls, lights));
        findings.same(Check::Prompts, &what, found, (fulls, lights));
        let texts: Vec<_> = (1..=TICKS)
            .filter(|it| all.contains(TEXTS[it - 1]))
            .collect();
        findings.same(
            check,
            &format!("tick {number}: earlier text"),
            texts,
            before,
        );
    }
    let log = stage.log();
    findings.must(
        Check::Reset,
        log.contains("as reset-session requests"),
        || "nothing of reset-session in the log".to_owned(),
    );
    Ok(())
}

/// Checks which process played which tick.
fn processes(findings: &mut Findings, cli: Cli, ticks: &[Played], killed: bool) {
    if !is_hot(cli) {
        let left: Vec<_> = ticks.iter().map(|tick| tick.processes.len()).collect();
        findings.same(
            Check::End,
            "processes between two ticks",
            left,
            vec![0; TICKS],
        );
        return;
    }
    let pids: Vec<_> = ticks.iter().map(|tick| &tick.processes).collect();
    for tick in [2, 4, 6] {
        let what = format!("the processes of tick {tick}");
        findings.same(Check::Prompts, &what, pids[tick - 1], pids[tick - 2]);
    }
    let differ = |a: &[u32], b: &[u32]| !a.is_empty() && a.iter().all(|pid| !b.contains(pid));
    findings.must(Check::Reset, differ(pids[4], pids[3]), || {
        format!(
            "processes before and after the reset: {:?}, {:?}",
            pids[3], pids[4]
        )
    });
    findings.must(Check::Killed, killed && differ(pids[6], pids[5]), || {
        format!(
            "processes before and after the kill: {:?}, {:?}",
            pids[5], pids[6]
        )
    });
    if cli == Cli::Claude {
        findings.same(
            Check::Clear,
            "the process after the clear",
            pids[2],
            pids[1],
        );
    }
}

/// Compares the scripted usage of each tick with the recorded one.
fn usage(findings: &mut Findings, stage: &Stage, ticks: &[Played]) -> anyhow::Result<()> {
    let text = stage.read(".orchestrator/usage.jsonl");
    let records: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let figures = |record: &Value| {
        ["input_tokens", "output_tokens"].map(|name| record[name].as_u64().unwrap_or_default())
    };
    let recorded: Vec<_> = records.iter().map(figures).collect();
    let wanted: Vec<_> = (1..=ticks.len())
        .map(|number| {
            let turns = tick(stage.cli, number);
            let sum =
                |figure: fn(&Tokens) -> u64| turns.iter().map(|turn| figure(&turn.usage)).sum();
            [sum(|usage| usage.input), sum(|usage| usage.output)]
        })
        .collect();
    findings.same(
        Check::Usage,
        "tokens in and out, by ticks",
        recorded,
        wanted,
    );
    for record in &records {
        let source = match stage.cli {
            Cli::Claude | Cli::OpenCode => Some("reported"),
            _ => None,
        };
        if let Some(source) = source {
            let found = record["cost_source"].as_str();
            findings.same(Check::Usage, "the source of the cost", found, Some(source));
            let cost = record["cost_usd"].as_f64().unwrap_or_default();
            findings.must(Check::Usage, cost > 0.0, || format!("no cost: {record}"));
        }
        let session = record["session_id"].as_str().unwrap_or_default();
        findings.must(Check::Usage, !session.is_empty(), || {
            format!("no session: {record}")
        });
    }
    Ok(())
}

fn files(findings: &mut Findings, stage: &Stage) {
    for flag in ["did-work", "clear-session", "reset-session"] {
        for name in [flag.to_owned(), format!("{flag}.taken")] {
            let there = stage.path(".orchestrator").join(&name).exists();
            findings.must(Check::Files, !there, || format!("{name} is left"));
        }
    }
    findings.must(Check::Files, stage.path("MEMORY.md").exists(), || {
        "no MEMORY.md".to_owned()
    });
    let status = stage.read("status.json");
    findings.same(Check::Files, "status.json", status.trim(), "{\"tick\": 2}");
    if stage.cli == Cli::Claude {
        let log = stage.log();
        let ticks = log.matches("hook:UserPromptSubmit").count();
        // The hook runs for every message: the ticks and `/clear`.
        findings.must(Check::Files, ticks >= TICKS, || {
            format!("{ticks} lines of the hook")
        });
        let starts = log.matches("hook:SessionStart").count();
        findings.must(Check::Files, starts >= 3, || {
            format!("{starts} lines of the hook of starts")
        });
    }
}
