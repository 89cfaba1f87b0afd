//! Tests that no side effect happens twice, for each provider. They use the real provider and engine, and processes that
//! print the recorded output of the real CLI until they crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{ToSpan, Zoned};
use serde_json::json;
use teamster_claude::Claude;
use teamster_codex::Codex;
use teamster_copilot::Copilot;
use teamster_core::{CliProvider, ErrorKind, ExecuteParams, Outcome, RunStatus};
use teamster_gemini::Gemini;
use teamster_opencode::OpenCode;
use teamster_orchestrator::{
    Action, AfterSideEffects, Orchestrator, OrchestratorConfig, RetryPolicy, RunRequest,
};
use teamster_process::{CliRuntime, EnvPolicy, RuntimeConfig};

const PROMPT: &str = "Please order 12 chairs, task 7f3a.";

/// Time limit, long enough for a loaded machine. Only a failing test waits for it.
const LIMIT: Duration = Duration::from_mins(1);

/// A recorded run, up to the first line that contains all of these texts.
struct Recorded {
    fixture: &'static str,
    until: &'static [&'static str],
}

fn recorded(fixture: &'static str, until: &'static [&'static str]) -> Recorded {
    Recorded { fixture, until }
}

/// A crash of the CLI.
#[derive(Debug, Clone, Copy)]
enum Crash {
    /// The CLI exits with code 1, without a message.
    Exits,
    /// The CLI is killed.
    Killed,
}

/// A recorded launch of a CLI.
#[derive(Debug)]
struct Launch {
    args: Vec<String>,
    stdin: String,
}

/// A run whose CLI crashes each time.
struct Played {
    outcome: Outcome,
    launches: Vec<Launch>,
}

impl Recorded {
    /// Returns the lines that the CLI printed before it crashed.
    fn lines(&self) -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fixtures")
            .join(self.fixture)
            .join("stdout.ndjson");
        let all = std::fs::read_to_string(&path).unwrap();
        let is_last = |line: &str| self.until.iter().all(|part| line.contains(part));
        let at = all.lines().position(is_last).unwrap();
        all.lines()
            .take(at + 1)
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    async fn play(
        &self,
        provider: impl CliProvider + 'static,
        crash: Crash,
        then: AfterSideEffects,
    ) -> Played {
        play(&self.lines(), provider, crash, then).await
    }

    /// Asserts that after a crash with an announced side effect the session is resumed with the continuation, and the
    /// prompt is not sent again. The arguments contain these words in sequence.
    async fn is_resumed(
        &self,
        provider: impl CliProvider + Clone + 'static,
        words: impl Fn(&str) -> Vec<String>,
    ) {
        for crash in [Crash::Exits, Crash::Killed] {
            let then = AfterSideEffects::Resume;
            let played = self.play(provider.clone(), crash, then).await;
            let [first, second] = &played.launches[..] else {
                panic!("{crash:?}: {:?}", played.launches);
            };
            assert!(first.has(PROMPT), "{crash:?}: {first:?}");
            assert!(!first.has(&continuation()), "{crash:?}: {first:?}");
            assert!(second.has(&continuation()), "{crash:?}: {second:?}");
            assert!(!second.has(PROMPT), "{crash:?}: {second:?}");
            let log = &played.outcome.attempts;
            assert!(!log[0].resumed && log[1].resumed, "{crash:?}");
            let session = log[0].session_id.as_deref().unwrap();
            assert_eq!(log[1].session_id.as_deref(), Some(session), "{crash:?}");
            let words = words(session);
            let is_there = second.args.windows(words.len()).any(|args| args == words);
            assert!(is_there, "{crash:?}: {words:?} in {second:?}");
        }
    }

    /// Asserts that with the policy to end after side effects nothing is started again, and the error names the change.
    async fn ends(&self, provider: impl CliProvider + Clone + 'static, done: &str) {
        for crash in [Crash::Exits, Crash::Killed] {
            let then = AfterSideEffects::End;
            let played = self.play(provider.clone(), crash, then).await;
            assert_eq!(played.launches.len(), 1, "{crash:?}");
            let error = played.outcome.error.unwrap();
            assert!(error.message.contains(done), "{crash:?}: {error}");
        }
    }

    /// Asserts that after a crash without side effects the prompt is sent again, in a new session.
    async fn is_sent_again(&self, provider: impl CliProvider + Clone + 'static) {
        for crash in [Crash::Exits, Crash::Killed] {
            let then = AfterSideEffects::Resume;
            let played = self.play(provider.clone(), crash, then).await;
            let [first, second] = &played.launches[..] else {
                panic!("{crash:?}: {:?}", played.launches);
            };
            assert!(second.has(PROMPT), "{crash:?}: {second:?}");
            assert!(!second.has(&continuation()), "{crash:?}: {second:?}");
            let log = &played.outcome.attempts;
            assert!(!log[1].resumed, "{crash:?}");
            let session = log[0].session_id.as_deref().unwrap();
            assert!(!second.has(session), "{crash:?}: {second:?}");
            assert_eq!(first.args.len(), second.args.len(), "{crash:?}");
        }
    }
}

/// Executes a run of a CLI that first prints these lines, with one retry after any error, unless a side effect forbids it.
async fn play(
    lines: &str,
    provider: impl CliProvider + 'static,
    crash: Crash,
    then: AfterSideEffects,
) -> Played {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(place.path().join(name), text).unwrap();
    };
    write("lines.1", lines);
    if matches!(crash, Crash::Killed) {
        write("end.1", "kill");
    }
    let mut config = RuntimeConfig::default();
    config.program = Some(cli());
    config.env_policy = EnvPolicy::Clean {
        allow: vec!["PATH".into()],
    };
    let runtime = Arc::new(CliRuntime::with_config(provider, config));
    let mut params = ExecuteParams::new(PROMPT);
    params.working_directory = Some(place.path().to_owned());
    for name in ["PLAY", "HOME"] {
        let folder = place.path().display().to_string();
        params.env.insert(name.into(), folder);
    }
    let mut request = RunRequest::new(runtime, params);
    request.retry.retries = 1;
    request.retry.base_delay = Duration::from_millis(1);
    request.retry.side_effects.then = then;
    // A crash has no known cause, so by default the next candidate would be tried.
    request
        .retry
        .actions
        .insert(ErrorKind::Internal, Action::Retry);
    request
        .retry
        .actions
        .insert(ErrorKind::Protocol, Action::Retry);
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let run = orchestrator.start(request);
    let outcome = tokio::time::timeout(LIMIT, run.outcome()).await.unwrap();
    // The CLI crashes again, without output.
    assert_eq!(outcome.result.status, RunStatus::Failed);
    let launches = launches(place.path());
    assert_eq!(launches.len(), outcome.attempts.len());
    Played { outcome, launches }
}

impl Launch {
    /// Returns whether the CLI was started with this text.
    fn has(&self, text: &str) -> bool {
        self.stdin.contains(text) || self.args.iter().any(|arg| arg.contains(text))
    }
}

/// Returns the program that plays the recording.
fn cli() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/orchestrator/providers/cli.sh")
}

fn continuation() -> String {
    RetryPolicy::default().side_effects.continuation
}

fn launches(place: &Path) -> Vec<Launch> {
    let read = |name: String| std::fs::read_to_string(place.join(name)).ok();
    (1..)
        .map_while(|number| {
            let args = read(format!("argv.{number}"))?;
            let args = args.split_terminator('\0').map(str::to_owned).collect();
            let stdin = read(format!("stdin.{number}"))?;
            Some(Launch { args, stdin })
        })
        .collect()
}

/// Asserts that a run with side effects is resumed, with `flag` before or in the session's id, or ends with these words.
async fn is_not_run_again(
    provider: impl CliProvider + Clone + 'static,
    flag: &str,
    cases: &[(Recorded, &str)],
) {
    let words = |session: &str| {
        if flag.ends_with('=') {
            vec![format!("{flag}{session}")]
        } else {
            vec![flag.to_owned(), session.to_owned()]
        }
    };
    for (recorded, done) in cases {
        recorded.is_resumed(provider.clone(), words).await;
        recorded.ends(provider.clone(), done).await;
    }
}

/// A command that runs, and one that was run.
#[tokio::test]
async fn a_command_of_claude_is_not_run_again() {
    let shell = "claude/2.1.197/tool_shell_ok";
    let runs = &[r#""type":"assistant""#, r#""type":"tool_use""#];
    let ran = &[r#""type":"tool_result""#];
    let cases = [
        (recorded(shell, runs), "`Bash`"),
        (recorded(shell, ran), "`Bash`"),
    ];
    is_not_run_again(Claude, "--resume=", &cases).await;
    // Words and reading change nothing.
    let words = recorded(shell, &[r#""text":"list it.""#]);
    words.is_sent_again(Claude).await;
    let read = recorded("claude/2.1.197/conformance_missing_file", ran);
    read.is_sent_again(Claude).await;
}

/// Not every tool is announced, so a run that breaks off may have had side effects.
#[tokio::test]
async fn a_command_of_codex_is_not_run_again() {
    let shell = "codex/0.169.0/tool_shell_ok";
    let runs = &[r#""type":"item.started""#, "command_execution"];
    let ran = &[r#""type":"item.completed""#, "command_execution"];
    let cases = [
        (recorded(shell, runs), "`command_execution`"),
        (recorded(shell, ran), "`command_execution`"),
        (recorded(shell, &["agent_message"]), "may have been running"),
    ];
    is_not_run_again(Codex, "resume", &cases).await;
}

/// The session has the id that the first start gave it.
#[tokio::test]
async fn a_command_of_copilot_is_not_run_again() {
    let shell = "copilot/1.0.102/tool_shell_ok";
    let cases = [
        (recorded(shell, &["tool.execution_start"]), "`bash`"),
        (recorded(shell, &["tool.execution_complete"]), "`bash`"),
    ];
    is_not_run_again(Copilot, "--resume=", &cases).await;
    let words = recorded(shell, &[r#""deltaContent":"run a command.""#]);
    words.is_sent_again(Copilot).await;
    let read = recorded("copilot/1.0.102/tool_view", &["tool.execution_complete"]);
    read.is_sent_again(Copilot).await;
}

/// After the command a file is read.
#[tokio::test]
async fn a_command_of_gemini_is_not_run_again() {
    let turns = "gemini/0.61.0/conformance_tools_in_turns";
    let runs = &[r#""type":"tool_use""#, "run_shell_command"];
    let ran = &[r#""type":"tool_result""#, "read_file"];
    let cases = [
        (recorded(turns, runs), "`run_shell_command`"),
        (recorded(turns, ran), "`run_shell_command`"),
    ];
    is_not_run_again(Gemini, "--resume=", &cases).await;
    let words = recorded(turns, &["I look first."]);
    words.is_sent_again(Gemini).await;
    let read = recorded(
        "gemini/0.61.0/conformance_missing_file",
        &[r#""type":"tool_result""#],
    );
    read.is_sent_again(Gemini).await;
}

/// A command is reported after its end, so one may be running when a run breaks off.
#[tokio::test]
async fn a_command_of_opencode_is_not_run_again() {
    let shell = "opencode/1.18.33/tool_shell_ok";
    let cases = [
        (recorded(shell, &[r#""type":"tool_use""#]), "`bash`"),
        (
            recorded(shell, &[r#""type":"text""#]),
            "may have been running",
        ),
    ];
    is_not_run_again(OpenCode, "--session=", &cases).await;
}

/// The CLI prints its message shortly before the limit resets, and ends after it.
#[tokio::test]
async fn a_limit_that_has_just_reset_is_tried_again() {
    let reset = Zoned::now().checked_sub(1.minute()).unwrap();
    let message = format!(
        "You've hit your usage limit. Visit https://x.test/a or try again at {}.",
        reset.strftime("%-I:%M %p")
    );
    // Made by hand: lines of Codex, with a time of today.
    let lines = [
        json!({"type": "thread.started", "thread_id": "01a1ffe8-eb7b-7523-afa9-5cca709e2801"}),
        json!({"type": "turn.started"}),
        json!({"type": "turn.failed", "error": {"message": message}}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n") + "\n";
    let played = play(&lines, Codex, Crash::Exits, AfterSideEffects::Resume).await;
    let log = &played.outcome.attempts;
    assert_eq!(log.len(), 2, "{:?}", played.outcome.error);
    assert_eq!(log[0].error.as_ref().unwrap().kind, ErrorKind::Quota);
}
