//! The runs of this machine keep the contract of all services of runs, with a shell script as Claude Code.

use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use teamster_api::agents::Command;
use teamster_api::history::RunFilter;
use teamster_api::usage::UsageQuery;
use teamster_api::{
    KeptSpec, KeptTexts, MachineService, ProblemCode, RunInfo, RunService, RunSpec, Worktree,
};
use teamster_core::{ExecuteParams, Image};
use teamster_host::{Host, LocalMachine, LocalRuns, state};
use teamster_providers::Providers;
use teamster_runner::LogLimits;
use teamster_store::Store;
use teamster_testkit::run_service::{CLAUDE, ScriptedClaude, contract};
use tokio::time::timeout;

use super::is_own_process_of;

/// Time limit of what should take a moment.
const LIMIT: Duration = Duration::from_mins(1);

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

#[test]
fn runs_of_this_machine_keep_the_contract() {
    if !is_own_process_of("service::runs_of_this_machine_keep_the_contract", CLAUDE) {
        return;
    }
    let host = Host::new(Providers::builtin());
    let runs = Arc::new(LocalRuns::new(&host).unwrap());
    block_on(contract(&ScriptedClaude::new(runs)));
}

#[test]
fn a_start_compares_the_kept_spec_and_checks_the_folder() {
    if !is_own_process_of(
        "service::a_start_compares_the_kept_spec_and_checks_the_folder",
        CLAUDE,
    ) {
        return;
    }
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
        let image = Image::bytes("image/png", vec![1]);
        let prompt = teamster_api::Command::Send {
            prompt: "what is this?".to_owned(),
            images: vec![image],
            from: None,
            key: None,
        };
        let refused = runs.send("r", prompt).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::Unsupported));
        assert!(refused.message.contains("images"), "{refused}");
    });
}

#[test]
fn a_machine_without_loops_and_history_has_none() {
    if !is_own_process_of(
        "service::a_machine_without_loops_and_history_has_none",
        CLAUDE,
    ) {
        return;
    }
    let host = Host::new(Providers::builtin());
    let machine = LocalMachine::new(&host);
    block_on(async {
        let agents = machine.agents().await.unwrap();
        let claude = agents.iter().find(|agent| agent.facts.id == "claude");
        assert!(claude.unwrap().facts.path.is_some());
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
                json!({"provider": "claude,nobody"}),
                "provider",
                "no CLI `nobody`",
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
fn a_session_in_use_is_refused_before_history_and_log_have_the_run() {
    if !is_own_process_of(
        "service::a_session_in_use_is_refused_before_history_and_log_have_the_run",
        CLAUDE,
    ) {
        return;
    }
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

#[test]
fn starts_with_an_id_at_the_same_time_start_one_run() {
    if !is_own_process_of(
        "service::starts_with_an_id_at_the_same_time_start_one_run",
        CLAUDE,
    ) {
        return;
    }
    let directory = std::env::current_dir().unwrap().join("repository");
    std::fs::create_dir(&directory).unwrap();
    git(&directory, &["init", "--quiet"]);
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "x"];
    git(&directory, &commit);
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
fn a_start_waits_for_the_run_with_its_id_that_another_process_starts() {
    if !is_own_process_of(
        "service::a_start_waits_for_the_run_with_its_id_that_another_process_starts",
        CLAUDE,
    ) {
        return;
    }
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
