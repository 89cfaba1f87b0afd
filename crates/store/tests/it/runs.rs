//! Tests of the history of runs.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use teamster_api::history::{RunFilter, RunRecord, RunState};
use teamster_api::{Attempt, Outcome};
use teamster_core::{
    AgentError, BudgetKind, CostSource, ErrorCode, ErrorDetail, ErrorKind, RunResult, RunStatus,
    Usage, WorkspaceKind, WorkspaceResult,
};
use teamster_store::{NewRun, StoreError, check_run_id, prompt_hash};

/// Makes runs look as if a process had written them that cannot be checked.
const ELSEWHERE: &str = "UPDATE teamster_runs SET process_space = 'elsewhere'";

fn ids(runs: &[RunRecord]) -> String {
    let ids: Vec<_> = runs.iter().map(|run| &*run.run_id).collect();
    ids.join(" ")
}

fn ended(run_id: &str, status: RunStatus) -> Outcome {
    Outcome::new(run_id, "claude", RunResult::default().status(status))
}

/// Returns an outcome with all figures and texts.
fn full(run_id: &str) -> Outcome {
    let mut outcome = Outcome::new(run_id, "codex", RunResult::default());
    outcome.result.usage = Some(
        Usage::default()
            .input_tokens(1)
            .output_tokens(2)
            .cache_read_tokens(3)
            .cache_write_tokens(0)
            .reasoning_tokens(u64::try_from(i64::MAX).unwrap()),
    );
    let failure = AgentError::new(
        ErrorCode::CliError,
        ErrorKind::RateLimit,
        "too\0 many; 'quoted' \"ü\" \u{1f600}",
    );
    outcome.session_id = Some("s-2".into());
    outcome.model = Some("gpt".into());
    outcome.duration_ms = 77;
    outcome.result.total_cost_usd = Some(0.1 + 0.2);
    outcome.result.cost_source = Some(CostSource::Estimated);
    outcome.result.num_turns = Some(4);
    outcome.result.workspace = Some(workspace());
    outcome.error = Some(failure.clone());
    let mut attempt = Attempt::new("claude", 5);
    attempt.session_id = Some("s-1".into());
    attempt.usage = outcome.result.usage;
    attempt.cost_usd = Some(0.1);
    attempt.error = Some(failure);
    outcome.attempts = vec![attempt];
    outcome
}

fn workspace() -> WorkspaceResult {
    let mut workspace = WorkspaceResult::new(WorkspaceKind::Worktree, "1111");
    workspace.commits = Some(2);
    workspace.wip = Some("2222".into());
    workspace
}

/// Returns an error of the run itself, which no attempt had.
fn budget_error() -> AgentError {
    let cause = AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "try later");
    AgentError::new(
        ErrorCode::BudgetExceeded,
        ErrorKind::Budget,
        "0.5 USD are spent",
    )
    .detail(ErrorDetail::budget(BudgetKind::Usd, Some(0.5)))
    .resets_at_ms(9_000)
    .cause(cause.retry_after_ms(1_000))
}

on_each_database! {
    async fn an_error_keeps_its_details(database) {
        let store = database.open().await;
        store.begin_run(&NewRun::new("r", "claude", "p")).await.unwrap();
        let mut outcome = full("r");
        outcome.error = Some(budget_error());
        store.end_run(&outcome).await.unwrap();
        let run = store.run("r").await.unwrap().unwrap();
        assert_eq!(run.error, Some(budget_error()));
        let shown = serde_json::to_value(&run).unwrap();
        assert_eq!(shown["error"]["detail"]["budget"], "usd");
        assert_eq!(shown["error"]["cause"]["retryAfterMs"], 1_000);
    }

    async fn a_run_is_reported_completely(database) {
        let (store, clock) = database.open_at(1000).await;
        let mut new = NewRun::new("r-1", "claude", "do it");
        new.model = Some("opus".into());
        new.session_id = Some("s-0".into());
        new.conversation = Some("slack:_:_".into());
        new.working_directory = Some("/work".into());
        store.begin_run(&new).await.unwrap();

        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!(run.status, RunState::Running);
        assert_eq!(run.prompt_hash, prompt_hash("do it"));
        assert_eq!((&*run.provider, run.model.as_deref()), ("claude", Some("opus")));
        assert_eq!(run.session_id.as_deref(), Some("s-0"));
        assert_eq!(run.conversation.as_deref(), Some("slack:_:_"));
        assert_eq!(run.working_directory, Some(PathBuf::from("/work")));
        assert_eq!((run.started_at, run.heartbeat_at), (1000, 1000));
        assert_eq!((run.ended_at, run.duration_ms), (None, None));
        assert_eq!((run.usage, run.cost_usd, run.num_turns), (None, None, None));
        assert_eq!((run.error, run.attempts, run.attempt_log), (None, 0, vec![]));
        assert_eq!(run.pid, std::process::id());
        assert!(!run.host.is_empty());

        clock.store(2000, Relaxed);
        assert!(store.set_run_session("r-1", "claude", "s-1").await.unwrap());
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!(run.session_id.as_deref(), Some("s-1"));
        assert_eq!((run.model.as_deref(), run.heartbeat_at), (Some("opus"), 2000));
        // Another provider has another model.
        assert!(store.set_run_session("r-1", "codex", "s-2").await.unwrap());
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!((&*run.provider, run.model), ("codex", None));

        clock.store(3000, Relaxed);
        let outcome = full("r-1");
        store.end_run(&outcome).await.unwrap();
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!(run.status, RunState::Error);
        assert_eq!((run.started_at, run.ended_at, run.duration_ms), (1000, Some(3000), Some(77)));
        assert_eq!((&*run.provider, run.model.as_deref()), ("codex", Some("gpt")));
        assert_eq!(run.session_id.as_deref(), Some("s-2"));
        assert_eq!(run.usage, outcome.result.usage);
        assert_eq!((run.cost_usd, run.num_turns), (Some(0.1 + 0.2), Some(4)));
        assert_eq!(run.cost_source, Some(CostSource::Estimated));
        assert_eq!(run.workspace, Some(workspace()));
        assert_eq!((run.attempts, run.attempt_log), (1, outcome.attempts.clone()));
        let error = run.error.unwrap();
        assert_eq!((error.kind, error.retryable), (ErrorKind::RateLimit, true));
        assert_eq!(error.message, "too\u{fffd} many; 'quoted' \"ü\" \u{1f600}");
        assert_eq!(error.code, ErrorCode::CliError);

        // An ended run is not changed.
        let again = store.end_run(&ended("r-1", RunStatus::Completed)).await.unwrap_err();
        assert_eq!(again, StoreError::NotRunning { run_id: "r-1".into() });
        assert!(!store.heartbeat("r-1").await.unwrap());
        assert!(!store.set_run_session("r-1", "claude", "s-9").await.unwrap());
        let begun = store.begin_run(&new).await.unwrap_err();
        assert_eq!(begun, StoreError::RunExists { run_id: "r-1".into() });
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!((run.status, run.ended_at), (RunState::Error, Some(3000)));
    }

    async fn absent_figures_stay_absent_on_a_used_connection(database) {
        // A statement is prepared with the types of its first use.
        let store = database.open().await;
        for i in 0..40 {
            let id = format!("r-{i}");
            store.begin_run(&NewRun::new(&*id, "claude", "")).await.unwrap();
            let known = i % 2 == 1;
            let outcome = if known { full(&id) } else { ended(&id, RunStatus::Completed) };
            store.end_run(&outcome).await.unwrap();
            let run = store.run(&id).await.unwrap().unwrap();
            assert_eq!(run.cost_usd, known.then_some(0.1 + 0.2));
            assert_eq!(run.usage, outcome.result.usage);
            assert_eq!(run.num_turns.is_some(), known);
            assert_eq!(run.error.is_some(), known);
        }
        // An invalid cost counts as absent.
        for (id, cost) in [("n", f64::NAN), ("i", f64::INFINITY), ("m", -1.0)] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
            let mut outcome = ended(id, RunStatus::Completed);
            outcome.result.total_cost_usd = Some(cost);
            store.end_run(&outcome).await.unwrap();
            assert_eq!(store.run(id).await.unwrap().unwrap().cost_usd, None);
        }
        let mut outcome = ended("z", RunStatus::Completed);
        outcome.result.total_cost_usd = Some(0.0);
        store.begin_run(&NewRun::new("z", "claude", "")).await.unwrap();
        store.end_run(&outcome).await.unwrap();
        assert_eq!(store.run("z").await.unwrap().unwrap().cost_usd, Some(0.0));
    }

    async fn turns_that_are_not_listed_may_be_of_another_session(database) {
        let store = database.open().await;
        for id in ["0199-a.1", "0199-b.1", "0199-b.2", "0199-b.3", "0199-b.4", "0199-b.5"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
            store.end_run(&ended(id, RunStatus::Completed)).await.unwrap();
        }
        database.execute("UPDATE teamster_runs SET started_at = 1").await;
        database.execute("UPDATE teamster_runs SET started_at = 0 WHERE run_id = '0199-a.1'").await;
        let error = store.run("0199").await.unwrap_err();
        assert_eq!(error.session(), None);
        let message = error.to_string();
        assert!(message.starts_with("more than one run begins with `0199`: 0199-b.5, "), "{message}");
        assert!(message.ends_with(" and more"), "{message}");
        // The whole id names one session, however many turns it has.
        store.begin_run(&NewRun::new("0199-b.6", "claude", "")).await.unwrap();
        assert_eq!(store.run("0199-b").await.unwrap_err().session(), Some("0199-b"));
    }

    async fn a_run_is_found_by_an_unambiguous_prefix_of_its_id(database) {
        let (store, clock) = database.open_at(0).await;
        for id in ["abc1", "abc2", "ab", "AB9", "a%c", "ü-1"] {
            clock.fetch_add(1, Relaxed);
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        let find = async |text: &str| {
            let found = store.run(text).await.unwrap();
            found.map(|run| run.run_id)
        };
        assert_eq!(find("abc1").await.as_deref(), Some("abc1"));
        assert_eq!(find("ab").await.as_deref(), Some("ab"), "exact before prefix");
        assert_eq!(find("AB").await.as_deref(), Some("AB9"));
        assert_eq!(find("a%").await.as_deref(), Some("a%c"));
        assert_eq!(find("ü").await.as_deref(), Some("ü-1"));
        assert_eq!(find("abcd").await, None);
        assert_eq!(find("%").await, None);
        assert_eq!(find("_").await, None);
        for id in ["0199-a.1", "0199-a.2", "0199-a.12", "0198-a.2", "x_1.2", "xy1.2"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        assert_eq!(find("0199.2").await.as_deref(), Some("0199-a.2"));
        assert_eq!(find("0199-a.12").await.as_deref(), Some("0199-a.12"));
        assert_eq!(find("x_.2").await.as_deref(), Some("x_1.2"));
        assert_eq!(find("0199.3").await, None);
        // Ids differ by case in both databases.
        assert_eq!(find("X_.2").await, None);
        assert_eq!(find("0199-A.2").await, None);
        let turns = store.turns("0199-a").await.unwrap();
        let mut turns: Vec<_> = turns.into_iter().map(|run| run.run_id).collect();
        turns.sort_unstable();
        assert_eq!(turns, ["0199-a.1", "0199-a.12", "0199-a.2"]);
        let error = store.run("0199-a").await.unwrap_err();
        assert_eq!(error.session(), Some("0199-a"));
        let message = error.to_string();
        assert!(message.starts_with("0199-a is a session, whose turns are runs: name one of "), "{message}");
        assert_eq!(store.run("019").await.unwrap_err().session(), None);
        // The parts do not overlap.
        assert_eq!(find("0199-a.1.1").await, None);
        assert_eq!(find(".2").await, None);
        assert!(store.run("019.2").await.is_err());
        let error = store.run("abc").await.unwrap_err();
        assert_eq!(
            error,
            StoreError::Ambiguous {
                prefix: "abc".into(),
                candidates: vec!["abc2".into(), "abc1".into()],
                more: false,
            }
        );
        assert!(error.to_string().contains("abc2, abc1"), "{error}");
        for id in ["abc3", "abc4", "abc5", "abc6"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        let error = store.run("abc").await.unwrap_err();
        assert!(matches!(&error, StoreError::Ambiguous { more: true, .. }), "{error:?}");
        assert!(error.to_string().ends_with("and more"), "{error}");
        for bad in ["", "a\0"] {
            assert!(matches!(store.run(bad).await, Err(StoreError::Invalid { .. })));
        }
    }

    async fn runs_are_listed_by_filter_newest_first_in_pages(database) {
        let (store, clock) = database.open_at(0).await;
        for i in 0..6_u32 {
            // Two runs at the same time each.
            clock.store(u64::from(i / 2 * 100), Relaxed);
            let id = format!("r{i}");
            let provider = if i < 3 { "claude" } else { "codex" };
            let mut new = NewRun::new(&*id, provider, "");
            if i != 0 {
                new.conversation = Some(format!("c{}", i % 2));
                new.session_id = Some(format!("s{i}"));
            }
            store.begin_run(&new).await.unwrap();
        }
        clock.store(300, Relaxed);
        store.end_run(&ended("r1", RunStatus::Completed)).await.unwrap();
        store.end_run(&ended("r4", RunStatus::Aborted)).await.unwrap();
        let list = async |change: &dyn Fn(&mut RunFilter)| {
            let mut filter = RunFilter::default();
            change(&mut filter);
            ids(&store.runs(&filter).await.unwrap())
        };
        assert_eq!(list(&|_| ()).await, "r5 r4 r3 r2 r1 r0");
        assert_eq!(list(&|f| f.limit = Some(2)).await, "r5 r4");
        assert_eq!(list(&|f| f.limit = Some(0)).await, "");
        assert_eq!(list(&|f| f.provider = Some("codex".into())).await, "r5 r3");
        assert_eq!(list(&|f| f.provider = Some("claude".into())).await, "r4 r2 r1 r0");
        assert_eq!(list(&|f| f.status = Some(RunState::Running)).await, "r5 r3 r2 r0");
        assert_eq!(list(&|f| f.status = Some(RunState::Aborted)).await, "r4");
        assert_eq!(list(&|f| f.status = Some(RunState::Interrupted)).await, "");
        assert_eq!(list(&|f| f.conversation = Some("c1".into())).await, "r5 r3 r1");
        assert_eq!(list(&|f| f.session_id = Some("s2".into())).await, "r2");
        assert_eq!(list(&|f| f.since_ms = Some(100)).await, "r5 r4 r3 r2");
        assert_eq!(list(&|f| f.until_ms = Some(200)).await, "r3 r2 r1 r0");
        let two = |f: &mut RunFilter| {
            f.provider = Some("claude".into());
            f.status = Some(RunState::Running);
            f.limit = Some(1);
        };
        assert_eq!(list(&two).await, "r2");

        let mut filter = RunFilter::default();
        filter.limit = Some(1);
        let mut seen = Vec::new();
        loop {
            let page = store.runs(&filter).await.unwrap();
            let Some(last) = page.last() else { break };
            filter.after = Some(last.cursor());
            seen.extend(page);
        }
        assert_eq!(ids(&seen), "r5 r4 r3 r2 r1 r0");
    }

    async fn a_run_that_is_not_heard_of_any_more_is_interrupted(database) {
        let (store, clock) = database.open_at(1000).await;
        for id in ["lost", "kept"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        database.execute(ELSEWHERE).await;
        let status = async |id: &str| store.run(id).await.unwrap().unwrap().status;
        clock.store(61_000, Relaxed);
        assert!(store.heartbeat("kept").await.unwrap());
        assert_eq!(status("lost").await, RunState::Running, "60 s are not too long");
        assert_eq!(store.mark_interrupted().await.unwrap(), 0);

        clock.store(61_001, Relaxed);
        assert_eq!(status("lost").await, RunState::Interrupted);
        assert_eq!(status("kept").await, RunState::Running);
        let mut filter = RunFilter::default();
        filter.status = Some(RunState::Interrupted);
        filter.limit = Some(1);
        assert_eq!(ids(&store.runs(&filter).await.unwrap()), "lost");
        filter.status = Some(RunState::Running);
        assert_eq!(ids(&store.runs(&filter).await.unwrap()), "kept", "also behind one that is not");

        // The run reads as interrupted, and nothing was written. After a heartbeat it is running.
        let run = store.run("lost").await.unwrap().unwrap();
        assert_eq!((run.ended_at, run.duration_ms), (None, None));
        assert_eq!(store.mark_interrupted().await.unwrap(), 1);
        assert_eq!(store.mark_interrupted().await.unwrap(), 0);
        let run = store.run("lost").await.unwrap().unwrap();
        assert_eq!(run.status, RunState::Interrupted);
        assert_eq!((run.ended_at, run.duration_ms), (Some(1000), Some(0)));
        assert!(store.heartbeat("lost").await.unwrap());
        let run = store.run("lost").await.unwrap().unwrap();
        assert_eq!((run.status, run.ended_at, run.duration_ms), (RunState::Running, None, None));

        // The run can end, marked or not.
        clock.store(999_000, Relaxed);
        assert_eq!(store.mark_interrupted().await.unwrap(), 2);
        store.end_run(&ended("lost", RunStatus::Completed)).await.unwrap();
        assert_eq!(status("lost").await, RunState::Success);
    }

    async fn old_runs_are_forgotten_but_never_one_that_is_going_on(database) {
        let (store, clock) = database.open_at(1000).await;
        for id in ["done", "lost", "running", "late"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        database.execute(ELSEWHERE).await;
        store.end_run(&ended("done", RunStatus::Completed)).await.unwrap();
        clock.store(100_000, Relaxed);
        store.heartbeat("running").await.unwrap();
        store.end_run(&ended("late", RunStatus::Completed)).await.unwrap();
        assert_eq!(store.forget_runs(100_000).await.unwrap(), 2);
        assert_eq!(ids(&store.runs(&RunFilter::default()).await.unwrap()), "running late");
    }

    async fn a_run_whose_process_exists_is_running_even_with_an_old_heartbeat(database) {
        if !cfg!(target_os = "linux") {
            return;
        }
        let (store, clock) = database.open_at(1000).await;
        store.begin_run(&NewRun::new("slept", "claude", "")).await.unwrap();
        clock.store(1_000_000_000, Relaxed);
        let list = async |state: RunState| {
            let mut filter = RunFilter::default();
            filter.status = Some(state);
            ids(&store.runs(&filter).await.unwrap())
        };
        assert_eq!(store.run("slept").await.unwrap().unwrap().status, RunState::Running);
        assert_eq!(list(RunState::Running).await, "slept");
        assert_eq!(list(RunState::Interrupted).await, "");
        assert_eq!(store.mark_interrupted().await.unwrap(), 0);
        assert_eq!(store.forget_runs(u64::MAX).await.unwrap(), 0);

        // Another machine, which cannot check the process, has marked the run as interrupted.
        database.execute("UPDATE teamster_runs SET status = 'interrupted', ended_at = 1000").await;
        assert_eq!(store.forget_runs(u64::MAX).await.unwrap(), 0);
        let run = store.run("slept").await.unwrap().unwrap();
        assert_eq!((run.status, run.ended_at), (RunState::Running, None));
        store.end_run(&ended("slept", RunStatus::Completed)).await.unwrap();
        assert_eq!(store.forget_runs(u64::MAX).await.unwrap(), 1);
    }

    async fn running_ones_are_found_among_many_that_others_left(database) {
        let (store, clock) = database.open_at(1000).await;
        for i in 0..30 {
            let id = format!("r{i:02}");
            store.begin_run(&NewRun::new(&*id, "claude", "")).await.unwrap();
        }
        database.execute(ELSEWHERE).await;
        clock.store(1_000_000, Relaxed);
        store.begin_run(&NewRun::new("here", "claude", "")).await.unwrap();
        store.heartbeat("r07").await.unwrap();
        let mut filter = RunFilter::default();
        filter.status = Some(RunState::Running);
        assert_eq!(ids(&store.runs(&filter).await.unwrap()), "here r07");
        filter.status = Some(RunState::Interrupted);
        assert_eq!(store.runs(&filter).await.unwrap().len(), 29);
    }

    async fn values_of_a_newer_program_are_shown_as_they_are(database) {
        let store = database.open().await;
        for id in ["old", "new"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        let change = "UPDATE teamster_runs SET status = 'paused', error_kind = 'gremlins', \
            error_message = 'm', attempt_log = '[{\"odd\": 1}]' WHERE run_id = 'new'";
        database.execute(change).await;
        let runs = store.runs(&RunFilter::default()).await.unwrap();
        assert_eq!(runs.len(), 2);
        let new = store.run("new").await.unwrap().unwrap();
        assert_eq!(new.status.to_string(), "paused");
        assert_eq!(serde_json::to_value(&new).unwrap()["status"], "paused");
        assert_eq!(new.error.unwrap().message, "m");
        assert_eq!(new.attempt_log, vec![]);
        let mut filter = RunFilter::default();
        filter.status = Some(new.status);
        assert_eq!(ids(&store.runs(&filter).await.unwrap()), "new");
    }

    async fn an_id_can_be_reserved_and_refused_before_the_run(database) {
        let store = database.open().await;
        store.begin_run(&NewRun::new("abc", "claude", "")).await.unwrap();
        assert!(store.run_exists("abc").await.unwrap());
        for id in ["ab", "abcd", "ABC", "", "a\0"] {
            assert!(!store.run_exists(id).await.unwrap(), "{id:?}");
        }
        let longest = "x".repeat(500);
        assert_eq!(check_run_id(&longest), Ok(()));
        for id in ["", "a\0", "a\nb", "\u{1b}[2J", "a\u{9b}", &*"x".repeat(501)] {
            assert!(matches!(check_run_id(id), Err(StoreError::Invalid { .. })), "{id:?}");
            let begun = store.begin_run(&NewRun::new(id, "claude", "")).await;
            assert_eq!(begun, check_run_id(id));
        }
    }

    async fn control_characters_of_ids_do_not_reach_a_terminal(database) {
        let store = database.open().await;
        for id in ["x1", "x2"] {
            store.begin_run(&NewRun::new(id, "claude", "")).await.unwrap();
        }
        let escape = if database.is_sqlite() { "char(27)" } else { "chr(27)" };
        let change = format!("UPDATE teamster_runs SET run_id = run_id || {escape} || '[2J'");
        database.execute(&change).await;
        let error = store.run("x").await.unwrap_err().to_string();
        assert!(error.contains("x2\\u{1b}[2J") && !error.contains('\u{1b}'), "{error}");
        let error = store.end_run(&ended("\u{1b}[2J", RunStatus::Completed)).await.unwrap_err();
        assert!(!error.to_string().contains('\u{1b}'), "{error}");
    }

    async fn an_unknown_run_cannot_end(database) {
        let store = database.open().await;
        let error = store.end_run(&ended("x", RunStatus::Completed)).await.unwrap_err();
        assert_eq!(error, StoreError::NotRunning { run_id: "x".into() });
        assert!(!store.heartbeat("x").await.unwrap());
        assert_eq!(store.run("x").await.unwrap(), None);
        for (id, provider) in [("", "claude"), ("a\0", "claude"), ("a", "")] {
            let begun = store.begin_run(&NewRun::new(id, provider, "")).await;
            assert!(matches!(begun, Err(StoreError::Invalid { .. })), "{begun:?}");
        }
        assert_eq!(store.runs(&RunFilter::default()).await.unwrap(), []);
    }
}
