//! The runs of this machine keep the contract of all services of runs, with a shell script as Claude Code.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::json;
use teamster_api::agents::Command;
use teamster_api::history::RunFilter;
use teamster_api::usage::UsageQuery;
use teamster_api::{
    KeptSpec, KeptTexts, MachineService, ProblemCode, Reply, RunHandle, RunInfo, RunLogEntry,
    RunService, RunSpec, SessionSpec, Worktree,
};
use teamster_core::{AgentEvent, ExecuteParams, Image, Stopping};
use teamster_host::{Host, LocalMachine, LocalRuns, Notice, RunOptions, state};
use teamster_providers::Providers;
use teamster_runner::LogLimits;
use teamster_store::Store;
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, claude_that, contract};
use tokio::time::timeout;

/// Time limit of what should take a moment.
const LIMIT: Duration = Duration::from_mins(1);

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

#[test]
fn runs_of_this_machine_keep_the_contract() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let runs = Arc::new(LocalRuns::new(&host).unwrap());
    let subject = ScriptedClaude::new(runs).with_repository(repository());
    block_on(contract(&subject));
}

#[test]
fn a_start_compares_the_kept_spec_and_checks_the_folder() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let runs = LocalRuns::new(&host).unwrap();
    block_on(async {
        let mut spec = RunSpec::new("claude", "answers");
        spec.working_directory = Some("/no/such".into());
        let refused = runs.start("r", spec.clone().into()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams));
        assert_eq!(refused.parameter.as_deref(), Some("working_directory"));
        assert_eq!(
            refused.message,
            "working_directory: no such directory: /no/such"
        );
        spec.working_directory = None;
        // A value that is not kept is no other spec.
        spec.trusted.env.insert("A".to_owned(), "one".to_owned());
        assert!(!runs.start("r", spec.clone().into()).await.unwrap().existed);
        spec.trusted.env.insert("A".to_owned(), "two".to_owned());
        assert!(runs.start("r", spec.clone().into()).await.unwrap().existed);
        spec.model = Some("opus".to_owned());
        let other = runs.start("r", spec.into()).await.unwrap_err();
        assert_eq!(other.code, Some(ProblemCode::RunExists));
        assert_eq!(runs.show("r").await.unwrap().prompt.unwrap(), "answers");
    });
}

/// What an agent does that answers with the image that it got.
const SEES: &str = r#"case $line in *'"media_type":"image/png"'*'"data":"AQI="'* | *'"data":"AQI="'*'"media_type":"image/png"'*) saw=image ;; *) saw=nothing ;; esac
      init; result "$saw""#;

#[test]
fn images_go_with_the_prompt_of_a_run_and_of_a_turn() {
    in_own_process!(&claude_that(SEES));
    let runs: Arc<dyn RunService> =
        Arc::new(LocalRuns::new(&Host::new(Providers::builtin())).unwrap());
    let image = |bytes: [u8; 2]| vec![Image::bytes("image/png", bytes)];
    block_on(async {
        let mut spec = RunSpec::new("claude", "what is this?");
        spec.images = image([1, 2]);
        let run = RunHandle::start(runs.clone(), "run", spec.clone())
            .await
            .unwrap();
        assert_eq!(run.result().await.unwrap().text, "image");
        // The folder keeps no image, but knows it again.
        let kept = fs::read_to_string(state::file("teamster/runs/run/spec.json").unwrap()).unwrap();
        assert!(!kept.contains("AQI="), "{kept}");
        assert!(kept.contains(r#""withheld":["images"]"#), "{kept}");
        assert!(
            runs.start("run", spec.clone().into())
                .await
                .unwrap()
                .existed
        );
        spec.images = image([1, 3]);
        let other = runs.start("run", spec.into()).await.unwrap_err();
        assert_eq!(other.code, Some(ProblemCode::RunExists));

        let session = SessionSpec::new("claude");
        let session = RunHandle::start(runs.clone(), "session", session)
            .await
            .unwrap();
        for (images, expected) in [(image([1, 2]), "image"), (Vec::new(), "nothing")] {
            let prompt = teamster_api::Command::Send {
                prompt: "and this?".to_owned(),
                images,
                from: None,
                key: None,
                trace: None,
            };
            let Reply::Turn { seq, .. } = session.send(prompt).await.unwrap() else {
                panic!("no turn");
            };
            let mut log = session.follow(seq);
            let result = loop {
                let next = timeout(LIMIT, log.next()).await.unwrap();
                if let Ok(RunLogEntry::Agent(entry)) = next.unwrap().unwrap().entry()
                    && let AgentEvent::Done(done) = entry.event
                {
                    break done.result;
                }
            };
            assert_eq!(result.text, expected);
        }
        session.cancel(Stopping::Graceful).await.unwrap();
        session.result().await.unwrap();
    });
}

#[test]
fn a_machine_without_loops_and_history_has_none() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let machine = LocalMachine::new(&host).with_agents(Some(vec!["claude".to_owned()]));
    block_on(async {
        let agents = machine.agents().await.unwrap();
        assert_eq!((agents.len(), &*agents[0].facts.id), (1, "claude"));
        assert!(agents[0].facts.path.is_some());
        let loops = machine.loops(Command::Status).await.unwrap();
        assert_eq!((loops.config, loops.agents), (None, Vec::new()));
        assert_eq!(machine.history(RunFilter::default()).await.unwrap(), []);
        let missing = machine.history_of("r").await.unwrap_err();
        assert_eq!(missing.code, Some(ProblemCode::RunNotFound));
        let wrong = |query: serde_json::Value| {
            let query: UsageQuery = serde_json::from_value(query).unwrap();
            let machine = &machine;
            async move { machine.usage(query).await.unwrap_err() }
        };
        for (query, parameter, detail) in [
            (json!({"since": "tomorrow"}), "since", "expected a date"),
            (json!({"since": "2026-02-30"}), "since", "expected a date"),
            (json!({"until": "99999999d"}), "until", "no such time"),
            (
                json!({"since": "2026-11-22", "until": "2026-11-20"}),
                "until",
                "not after",
            ),
            (
                json!({"provider": "claude,unknown-agent"}),
                "provider",
                "no CLI \"unknown-agent\"",
            ),
        ] {
            let error = wrong(query).await;
            assert_eq!(error.code, Some(ProblemCode::InvalidParams));
            assert_eq!(error.parameter.as_deref(), Some(parameter));
            assert!(error.message.contains(detail), "{error}");
        }
        // A day is included.
        let query = json!({"since": "2026-11-20", "until": "2026-11-20"});
        let usage = machine.usage(serde_json::from_value(query).unwrap()).await;
        let usage = usage.unwrap();
        let hours = usage.until.unwrap().duration_since(usage.since.unwrap());
        assert_eq!(hours.as_hours(), 24);
    });
}

#[test]
fn session_in_use_is_refused_before_history_and_log() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let mut resumed = ExecuteParams::new("x");
    resumed.session_id = Some("s".to_owned());
    let mut other = state::session_locks(None).unwrap().writer("claude");
    other.begin(&resumed).unwrap();
    block_on(async {
        let store = std::env::current_dir().unwrap().join("store.db");
        let mut spec = RunSpec::new("claude", "answers");
        spec.session_id = Some("s".to_owned());
        spec.trusted.store = Some(store.to_str().unwrap().to_owned());
        let error = host.start("r", spec.clone()).await.unwrap_err();
        assert_eq!(error.code, Some(ProblemCode::SessionInUse));
        // The holder is no run.
        assert_eq!(error.run_id, None);
        let runs = LocalRuns::new(&host).unwrap();
        assert!(runs.show("r").await.is_err());
        let rows = async || {
            let store = Store::open_existing(store.to_str().unwrap()).await.unwrap();
            store.runs(&RunFilter::default()).await.unwrap().len()
        };
        assert_eq!(rows().await, 0);
        drop(other);
        let run = host.start("r", spec).await.unwrap();
        assert_eq!(run.result().await.unwrap().text, "hello");
        // The store is written beside the run.
        let kept = async {
            while rows().await != 1 {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, kept).await.unwrap();
    });
}

fn git(directory: &Path, args: &[&str]) {
    let mut command = process::Command::new("git");
    command.current_dir(directory).args(["-c", "user.name=x"]);
    let status = command.args(["-c", "user.email=x"]).args(args).status();
    assert!(status.unwrap().success());
}

/// Makes a repository with a commit.
fn repository() -> PathBuf {
    let directory = std::env::current_dir().unwrap().join("repository");
    fs::create_dir(&directory).unwrap();
    git(&directory, &["init", "--quiet"]);
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "x"];
    git(&directory, &commit);
    directory
}

#[test]
fn starts_with_an_id_at_the_same_time_start_one_run() {
    in_own_process!(CLAUDE);
    let directory = repository();
    let host = Host::new(Providers::builtin());
    block_on(async {
        let mut spec = RunSpec::new("claude", "answers");
        spec.working_directory = Some(directory);
        // Both would make it.
        spec.worktree = Some(Worktree::Switch(true));
        let starts = [(); 2].map(|()| {
            let (host, spec) = (host.clone(), spec.clone());
            tokio::spawn(async move { host.start("r", spec).await.unwrap() })
        });
        let mut existed = Vec::new();
        for start in starts {
            existed.push(start.await.unwrap().accepted().existed);
        }
        existed.sort_unstable();
        assert_eq!(existed, [false, true]);
    });
}

#[test]
fn a_repeated_start_has_the_warnings_of_the_first() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let runs = LocalRuns::new(&host).unwrap();
    block_on(async {
        let mut spec = RunSpec::new("claude", "answers");
        // No folder can be made there.
        spec.trusted.store = Some("/proc/none/store.db".to_owned());
        let first = runs.start("r", spec.clone().into()).await.unwrap();
        assert!(first.important[0].contains("history"), "{first:?}");
        let again = runs.start("r", spec.into()).await.unwrap();
        assert_eq!(again, first.again());
    });
}

#[test]
fn a_worktree_is_held_by_the_run_with_its_id() {
    in_own_process!(CLAUDE);
    let directory = repository();
    let host = Host::new(Providers::builtin());
    block_on(async {
        let prepare = |id: &str| {
            let mut spec = RunSpec::new("claude", "answers");
            spec.working_directory = Some(directory.clone());
            // A name without the run's id in it.
            spec.worktree = Some(Worktree::Branch("topic".to_owned()));
            host.prepare_run(spec, RunOptions::new(id))
        };
        let first = prepare("r").await.unwrap();
        let error = prepare("r").await.err().unwrap();
        assert_eq!(error.parameter(), Some("worktree"));
        assert_eq!(error.holder(), Some("r"), "{error}");
        // The branch belongs to another run.
        let error = prepare("q").await.err().unwrap();
        assert!(error.message.contains("\"topic\" exists"), "{error}");
        assert_eq!(error.holder(), None);
        drop(first);
    });
}

#[test]
fn start_waits_for_the_same_run_of_another_process() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let mut resumed = ExecuteParams::new("x");
    resumed.session_id = Some("s".to_owned());
    let mut other = state::session_locks(Some("r")).unwrap().writer("claude");
    other.begin(&resumed).unwrap();
    block_on(async {
        let mut spec = RunSpec::new("claude", "answers");
        spec.session_id = Some("s".to_owned());
        let start = host.start("r", spec.clone());
        let mut start = std::pin::pin!(start);
        // It has no answer until the other one has.
        let early = timeout(Duration::from_millis(500), &mut start).await;
        assert!(early.is_err());
        let kept = KeptSpec::new(spec.into(), KeptTexts::All);
        let info = RunInfo::new("r", "claude");
        let runs = state::runs().unwrap();
        let _run = runs.accept_spec(&info, &kept, LogLimits::default());
        assert!(start.await.unwrap().accepted().existed);
    });
}

#[test]
fn task_run_writes_its_answer_first_and_removes_old_logs() {
    // It notes a query of its version before there is an answer.
    let version = r"case $1 in --version)
  [ -e answer ] || : >early
  echo '2.1.0 (Claude Code)'
  exit ;;
esac";
    let script = CLAUDE.replacen("#!/bin/sh", &format!("#!/bin/sh\n{version}"), 1);
    // A recorded run has its prompt in an argument.
    let script = format!("{script}init; say hello\n");
    in_own_process!(&script);
    let host = Host::new(Providers::builtin());
    let here = std::env::current_dir().unwrap();
    block_on(async {
        let spec = RunSpec::new("claude", "answers");
        let old = host.start("old", spec.clone()).await.unwrap();
        old.result().await.unwrap();
        let log = state::runs().unwrap().root().join("old/events.ndjson");
        let then = SystemTime::now() - Duration::from_hours(100 * 24);
        File::options()
            .append(true)
            .open(log)
            .unwrap()
            .set_modified(then)
            .unwrap();

        let mut spec = spec;
        spec.trusted.output_file = Some(here.join("answer"));
        spec.trusted.record_to = Some(here.join("recording"));
        let run = host.start("new", spec).await.unwrap();
        let result = run.result().await.unwrap();
        assert_eq!(result.text, "hello", "{result:?}");
        let ended = async {
            let meta = || fs::read_to_string(here.join("recording/meta.json"));
            let has_version = || meta().is_ok_and(|it| it.contains("2.1.0"));
            while old.view().await.is_ok() || !has_version() {
                tokio::task::yield_now().await;
            }
        };
        timeout(LIMIT, ended).await.unwrap();
        assert_eq!(fs::read_to_string(here.join("answer")).unwrap(), "hello\n");
        assert!(!here.join("early").exists());
    });
}

#[test]
fn other_prompt_is_another_spec_even_if_prompts_are_not_kept() {
    in_own_process!(CLAUDE, &[("TEAMSTER_KEEP_PROMPTS", "off")]);
    let runs = LocalRuns::new(&Host::new(Providers::builtin())).unwrap();
    block_on(async {
        let start = |prompt: &str| {
            let mut spec = RunSpec::new("claude", prompt);
            spec.append_system_prompt = Some("briefly".to_owned());
            runs.start("r", spec.into())
        };
        assert!(!start("answers").await.unwrap().existed);
        assert!(start("answers").await.unwrap().existed);
        let other = start("answers again").await.unwrap_err();
        assert_eq!(other.code, Some(ProblemCode::RunExists));
        let kept = state::runs().unwrap().root().join("r/spec.json");
        let kept = fs::read_to_string(kept).unwrap();
        assert!(
            !kept.contains("answers") && !kept.contains("briefly"),
            "{kept}"
        );
    });
}

#[test]
fn a_run_that_is_refused_reports_its_worktree() {
    in_own_process!(CLAUDE);
    let notices = Arc::new(Mutex::new(Vec::new()));
    let seen = notices.clone();
    let host = Host::new(Providers::builtin()).on_notice(move |notice| {
        if let Notice::Warning(text) = notice {
            seen.lock().unwrap().push(text);
        }
    });
    let mut spec = RunSpec::new("claude", "answers");
    spec.working_directory = Some(repository());
    spec.worktree = Some(Worktree::Switch(true));
    spec.trusted.output_file = Some("/proc/none/answer".into());
    let error = block_on(host.start("r", spec)).unwrap_err();
    assert_eq!(error.parameter.as_deref(), Some("output_file"));
    assert_eq!(
        *notices.lock().unwrap(),
        ["worktree without changes removed, with its branch teamster/r"]
    );
}

#[test]
fn a_time_limit_of_answers_without_clients_has_a_warning() {
    in_own_process!(CLAUDE);
    let host = Host::new(Providers::builtin());
    let mut spec = RunSpec::new("claude", "answers");
    spec.ask_timeout_ms = Some(1000);
    let warnings = |options: RunOptions| {
        let prepared = block_on(host.prepare_run(spec.clone(), options)).unwrap();
        let texts = prepared.common.warnings.into_iter().map(|it| it.text);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(warnings(RunOptions::new("a").detached()), [""; 0]);
    assert_eq!(
        warnings(RunOptions::new("b")),
        ["`ask_timeout_ms` is ignored: no clients answer requests"]
    );
}
