//! Plays a scenario with one process of a real CLI for all turns.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use teamster::{
    AgentSession, ErrorCode, EventStream, ExecuteParams, RunResult, RunStatus, RuntimeConfig,
    SessionOptions, Turn,
};
use teamster_mock_model::{Part, Script, Tokens, Turn as Answer};
use teamster_process::ProcessIdentity;

use crate::accounts;
use crate::agent::Agent;
use crate::answer::answering;
use crate::bench::Bench;
use crate::location;
use crate::play::{self, Before, Stage};
use crate::played::{Played, Process, Which};
use crate::scenario::{ANSWERS_AROUND, Resume, Run, Scenario, Service, Test};
use crate::story;

/// The first prompt, which starts the process before the scenario begins.
const READY: &str = "Are you ready?";
/// The last prompt, after a turn that broke off.
const AGAIN: &str = "Are you there?";
/// Maximum time until processes of a turn are gone after it: the grace before the kill, and time for a busy
/// machine.
const GONE: Duration = Duration::from_secs(4);

/// Plays all runs of a scenario as turns of one session. A first turn starts the process, and a last one
/// follows if a turn of the scenario broke off.
pub(crate) async fn play(
    bench: &Bench,
    agent: impl Into<Agent>,
    scenario: &Scenario,
) -> anyhow::Result<Vec<Played>> {
    let agent = agent.into();
    let script = script(scenario)?;
    let mut stage = Stage::new(
        bench,
        agent,
        &format!("{}-hot", scenario.name),
        scenario,
        script,
    )
    .await?;
    let first = &scenario.test.run[0];
    let session = match first.resume {
        Resume::Unknown => Some(play::unknown_session(agent)),
        Resume::New | Resume::Last | Resume::First => None,
    };
    let resumes = session.is_some();
    let mut params = play::params(
        bench,
        agent,
        first,
        &stage.location,
        &stage.pointing,
        session,
    )?;
    // Only for the scenario's turns: the process may take longer to start.
    let timeouts = std::mem::take(&mut params.timeouts);
    params.images.clear();
    let mut config = play::config(bench, agent);
    config.record_to = stage.record_to();
    let session = open(agent, config, params, first.answer.as_deref())?;
    let mut played: Vec<Played> = Vec::new();
    if !resumes {
        let ready = ready()?;
        let turn = Turn::new(READY);
        played.push(one(&stage, &*session, &ready, Which::Ready, turn, None).await?);
    }
    for (number, run) in scenario.test.run.iter().enumerate() {
        if scenario.test.service == Service::Nobody {
            // It was available for the first turn.
            stage.model = None;
        }
        let mut turn = Turn::new(run.prompt.repeat(run.prompt_times));
        turn.timeouts = timeouts;
        turn.images = crate::image::of_run(run);
        let before = played.last();
        let which = Which::Run(number);
        let now = one_when_possible(&stage, &*session, scenario, which, turn, before).await?;
        played.push(now);
    }
    if broke_off(&scenario.test) {
        let before = played.last();
        let again = again(before.and_then(|played| played.process))?;
        let (which, turn) = (Which::Again, Turn::new(AGAIN));
        let after = one_when_possible(&stage, &*session, &again, which, turn, before).await?;
        played.push(after);
    }
    session.close().await;
    let usage = accounts::of_session(
        &stage.location.home(),
        &stage.requests_from(0),
        scenario,
        &played,
    );
    if let Some(last) = played.last_mut() {
        last.usage_of_session = usage;
        let left = location::processes_of(&stage.location.home());
        last.processes_left.extend(left);
    }
    Ok(played)
}

/// Opens a session with a CLI. Its process starts with its first turn. `answer`, if any, answers all questions.
pub(crate) fn open(
    agent: impl Into<Agent>,
    config: RuntimeConfig,
    params: ExecuteParams,
    answer: Option<&str>,
) -> anyhow::Result<Box<dyn AgentSession>> {
    let runtime = agent.into().sessions(config)?;
    let mut options = SessionOptions::new(params);
    if let Some(answer) = answer {
        options.permissions = answering(answer);
    }
    Ok(runtime.open(options)?)
}

/// Plays one turn. If the provider reports when its session can be resumed, the turn is sent again then.
async fn one_when_possible(
    stage: &Stage,
    session: &dyn AgentSession,
    scenario: &Scenario,
    which: Which,
    turn: Turn,
    before: Option<&Played>,
) -> anyhow::Result<Played> {
    let played = one(stage, session, scenario, which, turn.clone(), before).await?;
    let refused = (played.result.errors.last()).filter(|it| it.code == ErrorCode::InvalidParams);
    let Some(ms) = refused.and_then(|it| it.retry_after_ms) else {
        return Ok(played);
    };
    tokio::time::sleep(Duration::from_millis(ms)).await;
    let mut played = one(stage, session, scenario, which, turn, before).await?;
    played.sent_again = true;
    Ok(played)
}

/// Plays one turn.
async fn one(
    stage: &Stage,
    session: &dyn AgentSession,
    scenario: &Scenario,
    which: Which,
    turn: Turn,
    before: Option<&Played>,
) -> anyhow::Result<Played> {
    let number = match which {
        Which::Run(number) => number,
        Which::Ready | Which::Again => 0,
    };
    let home = stage.location.home();
    let processes = location::main_processes(&home);
    let all_before = location::ids_of(&home);
    let session_id = before.and_then(|before| before.result.session_id.as_deref());
    let now = Before {
        begun: Instant::now(),
        asked: stage.asked(),
        prompt: turn.prompt.clone(),
        session: session_id.map(str::to_owned),
        record_to: stage.record_to(),
    };
    let stream = session.send(turn);
    let run = &scenario.test.run[number];
    let entries = play::read(stream, Some(run), stage, now.asked).await?;
    let asked = now.asked;
    let begun = now.begun;
    let mut played = play::played(stage, scenario, number, now, entries)?;
    played.which = which;
    while matches!(which, Which::Run(_)) && has_more(scenario, number, &played.result) {
        let stream = next_unasked(session, begun + play::LIMIT).await?;
        let entries = play::read(stream, None, stage, asked).await?;
        played.go_on(entries)?;
        played.requests = stage.requests_from(asked);
        played.time = begun.elapsed();
    }
    let alive = location::main_processes(&home);
    if run.abort.is_some() || run.crash_when_file.is_some() {
        let known = alive.iter().map(|cli| cli.pid()).chain(all_before);
        played.processes_left = left_of_turn(&home, &known.collect::<Vec<_>>()).await;
    }
    played.process = became(&processes, &alive);
    // A warning at the start of the process is reported in the turn that starts it.
    played.warned_before =
        before.is_some_and(|before| before.warned_before || story::warned(&before.events));
    Ok(played)
}

/// Returns the processes started by the tools of an aborted turn that still run: all except for the known
/// ones. They are asked to end with the turn, and killed after a grace.
async fn left_of_turn(home: &Path, known: &[u32]) -> Vec<String> {
    let deadline = Instant::now() + GONE;
    loop {
        let all = location::ids_of(home).into_iter();
        let left: Vec<_> = all.filter(|id| !known.contains(id)).collect();
        if left.is_empty() || Instant::now() > deadline {
            return left.into_iter().map(location::command_of).collect();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns whether a turn has succeeded while background work continues, so that the model's last answer is
/// still to come.
fn has_more(scenario: &Scenario, run: usize, result: &RunResult) -> bool {
    let last = scenario.answers(run).last().copied();
    let is_reported = |part: &Part| match part {
        Part::Text(pieces) => result.text.ends_with(&pieces.concat()),
        _ => true,
    };
    result.is_success()
        && scenario.is_in_background()
        && !last.is_some_and(|answer| answer.parts.iter().all(is_reported))
}

async fn next_unasked(
    session: &dyn AgentSession,
    deadline: Instant,
) -> anyhow::Result<EventStream> {
    loop {
        if let Some(stream) = session.unasked() {
            return Ok(stream);
        }
        if Instant::now() > deadline {
            bail!("the CLI began no turn by itself when its work in the background had ended");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the change of the process, or `None` if there was none before and there is none now.
fn became(before: &[ProcessIdentity], now: &[ProcessIdentity]) -> Option<Process> {
    match (before, now) {
        ([], []) => None,
        (_, []) => Some(Process::Ended),
        (before, now) if now.iter().all(|process| before.contains(process)) => Some(Process::Same),
        _ => Some(Process::New),
    }
}

/// Returns the scenario's script, with the answers of the turns around it.
fn script(scenario: &Scenario) -> anyhow::Result<Script> {
    let agents = scenario.script.agents.clone();
    let mut turns = scenario.script.turns.clone();
    if scenario.test.run[0].resume != Resume::Unknown {
        turns.insert(0, ready()?.script.turns.remove(0));
    }
    if broke_off(&scenario.test) {
        // The model's text may or may not be part of the conversation. In both cases its next answer is the
        // same.
        if let Some(last) = turns.last_mut() {
            last.times = Some(1);
        }
        let again = again(None)?.script.turns;
        turns.extend(again.iter().cloned().chain(again.iter().cloned()));
    }
    let mut script = Script::new(turns)?;
    script.agents = agents;
    Ok(script)
}

/// Returns whether the scenario's turn is ended from outside.
fn broke_off(test: &Test) -> bool {
    test.run
        .iter()
        .any(|run| run.abort.is_some() || run.idle_timeout_ms.is_some())
}

/// Returns the turn that starts the process.
pub(crate) fn ready() -> anyhow::Result<Scenario> {
    let [answer, _] = ANSWERS_AROUND;
    around("ready", READY, Resume::New, answer, [70, 7], Process::New)
}

/// Returns the turn after one that broke off, depending on what happened to the process.
pub(crate) fn again(before: Option<Process>) -> anyhow::Result<Scenario> {
    let (name, process) = match before {
        Some(Process::Ended) => ("resumed", Process::New),
        _ => ("again", Process::Same),
    };
    let [_, answer] = ANSWERS_AROUND;
    around(name, AGAIN, Resume::Last, answer, [80, 8], process)
}

fn around(
    name: &str,
    prompt: &str,
    resume: Resume,
    text: &str,
    [input, output]: [u64; 2],
    process: Process,
) -> anyhow::Result<Scenario> {
    let mut answer = Answer::new(vec![Part::Text(text.into())]);
    answer.usage = Tokens::default();
    answer.usage.input = input;
    answer.usage.output = output;
    let mut run = Run::new(prompt);
    run.resume = resume;
    run.story
        .insert("status".into(), serde_json::json!(RunStatus::Completed));
    run.story.insert("process".into(), process.word().into());
    Scenario::of_one(name, answer, run)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn scenario(name: &str) -> Scenario {
        crate::scenario::read(&[name.to_owned()]).unwrap().remove(0)
    }

    /// Returns the model's answers in a turn of the conversation, to the first and the second request.
    fn answers(script: &Script, turn: usize) -> [String; 2] {
        [0, 1].map(|attempt| match script.answer(turn, attempt) {
            None => "nothing".to_owned(),
            Some(answer) => answer
                .parts
                .iter()
                .map(|part| match part {
                    Part::Text(pieces) => pieces.concat(),
                    other => format!("{other:?}"),
                })
                .collect(),
        })
    }

    #[test]
    fn the_model_is_ready_first() {
        let script = script(&scenario("resume")).unwrap();
        assert_eq!(answers(&script, 0), ["Ready."; 2]);
        assert_eq!(answers(&script, 1), ["Noted: blue."; 2]);
        assert_eq!(answers(&script, 2), ["It was blue."; 2]);
        assert_eq!(answers(&script, 3), ["nothing"; 2]);
    }

    #[test]
    fn model_continues_after_a_remembered_or_forgotten_turn() {
        let script = script(&scenario("abort_in_text")).unwrap();
        assert_eq!(answers(&script, 1), ["This goes on and on Stall", "I am."]);
        assert_eq!(answers(&script, 2)[0], "I am.");
    }

    #[test]
    fn the_story_of_a_turn_has_the_change_of_the_process() {
        let expected = |scenario: &Scenario| story::expected(scenario, 0);
        assert_eq!(expected(&ready().unwrap())["process"], "new");
        assert_eq!(expected(&ready().unwrap())["usage.input"], 70);
        assert_eq!(expected(&ready().unwrap())["session"], "new");
        assert_eq!(expected(&again(None).unwrap())["session"], "same");
        assert_eq!(
            expected(&again(Some(Process::Same)).unwrap())["process"],
            "same"
        );
        assert_eq!(
            expected(&again(Some(Process::Ended)).unwrap())["process"],
            "new"
        );
        let hot = story::expected_hot(&scenario("text"), 0);
        assert_eq!(
            (&hot["process"], &hot["session"]),
            (&"same".into(), &"same".into())
        );
        let hot = story::expected_hot(&scenario("stalled"), 0);
        assert_eq!(hot["process"], "ended");
    }

    #[test]
    fn a_process_is_known_by_its_number_and_the_time_of_its_start() {
        let id = |pid, start| ProcessIdentity::new(pid, Some(start));
        let one = [id(7, 100)];
        assert_eq!(became(&[], &[]), None);
        assert_eq!(became(&[], &one), Some(Process::New));
        assert_eq!(became(&one, &one), Some(Process::Same));
        assert_eq!(became(&one, &[id(7, 200)]), Some(Process::New));
        assert_eq!(became(&one, &[]), Some(Process::Ended));
    }

    #[test]
    fn a_turn_with_background_work_continues_until_the_last_answer() {
        let result = |status, text: &str| RunResult::default().status(status).text(text);
        let more = |name, status, text| has_more(&scenario(name), 0, &result(status, text));
        let (completed, failed) = (RunStatus::Completed, RunStatus::Failed);
        assert!(more("background_command", completed, "It runs. "));
        assert!(!more(
            "background_command",
            completed,
            "It runs. It is over."
        ));
        assert!(!more("background_command", failed, "It runs. "));
        assert!(more("sub_agent_in_background", completed, ""));
        assert!(!more("sub_agent", completed, ""));
    }
}
