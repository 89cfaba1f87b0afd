//! Tests of runs that write their history themselves.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use teamster_api::history::{RunFilter, RunState};
use teamster_api::{Attempt, Outcome};
use teamster_core::{AgentError, ErrorCode, ErrorKind, ExecuteParams, Id, RunResult, RunStatus};
use teamster_orchestrator::{Accepted, RunObserver};
use teamster_store::{Conversation, NewSession, Recorder, SessionFilter, Store, StoreError};

pub(crate) fn talk() -> Conversation {
    Conversation::new().channel("test")
}

pub(crate) fn params() -> ExecuteParams {
    let mut params = ExecuteParams::new("a secret prompt");
    params.model = Some("opus".into());
    params.working_directory = Some("/work".into());
    params
}

pub(crate) async fn accept(recorder: &Recorder, run_id: &str, params: &ExecuteParams) -> Id {
    let run_id = Id::from(run_id);
    let accepted = Accepted::new(&run_id, "claude", params);
    recorder.accepted(accepted.at_ms(500)).await;
    run_id
}

pub(crate) async fn session_of(store: &Store, provider: &str) -> Option<String> {
    let found = store.session(&talk().with(provider)).await.unwrap();
    found.map(|found| found.session_id)
}

pub(crate) fn not_found() -> AgentError {
    AgentError::new(
        ErrorCode::CliError,
        ErrorKind::SessionNotFound,
        "no such session",
    )
}

pub(crate) fn attempt(
    provider: &str,
    session_id: Option<&str>,
    error: Option<AgentError>,
) -> Attempt {
    let mut attempt = Attempt::new(provider, 1);
    attempt.session_id = session_id.map(Id::from);
    attempt.error = error;
    attempt
}

/// Returns an outcome with these attempts, with the data of the last one.
pub(crate) fn outcome(run_id: &Id, attempts: Vec<Attempt>) -> Outcome {
    let last = attempts.last().unwrap().clone();
    let status = match last.error {
        None => RunStatus::Completed,
        Some(_) => RunStatus::Failed,
    };
    let mut outcome = Outcome::new(
        Arc::clone(run_id),
        last.provider,
        RunResult::default().status(status),
    );
    outcome.session_id = last.session_id;
    outcome.error = last.error;
    outcome.attempts = attempts;
    outcome
}

on_each_database! {
    async fn the_prompt_is_kept_on_request_and_read_with_one_run_only(database) {
        let store = database.open().await;
        let long = ExecuteParams::new("é".repeat(40_000));
        for (id, recorder, params) in [
            ("plain", Recorder::new(store.clone()), params()),
            ("kept", Recorder::new(store.clone()).keep_prompts(), params()),
            ("long", Recorder::new(store.clone()).keep_prompts(), long),
        ] {
            accept(&recorder, id, &params).await;
        }
        let prompt = async |id: &str| store.run(id).await.unwrap().unwrap().prompt;
        assert_eq!(prompt("plain").await, None);
        assert_eq!(prompt("kept").await.as_deref(), Some("a secret prompt"));
        // By a prefix, too.
        assert_eq!(prompt("kep").await.as_deref(), Some("a secret prompt"));
        let cut = format!("{}… (80000 bytes in all)", "é".repeat(32_768));
        assert_eq!(prompt("long").await, Some(cut));
        for run in store.runs(&RunFilter::default()).await.unwrap() {
            assert_eq!(run.prompt, None, "{}", run.run_id);
        }
    }

    async fn a_run_is_in_the_history_from_its_acceptance_and_its_session_when_it_is_known(database) {
        let store = database.open().await;
        let recorder = Recorder::new(store.clone()).conversation(talk());
        let run_id = accept(&recorder, "r-1", &params()).await;

        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!(run.status, RunState::Running);
        assert_eq!((run.started_at, run.model.as_deref()), (500, Some("opus")));
        assert_eq!(run.conversation, Some(talk().to_string()));
        assert_eq!(run.prompt_hash, teamster_store::prompt_hash("a secret prompt"));
        assert_eq!(session_of(&store, "claude").await, None);

        recorder.session(&run_id, "claude", &"s-1".into()).await;
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!((run.status, run.session_id.as_deref()), (RunState::Running, Some("s-1")));
        let kept = store.session(&talk().with("claude")).await.unwrap().unwrap();
        assert_eq!((&*kept.session_id, kept.model.as_deref()), ("s-1", Some("opus")));
        assert_eq!(kept.working_directory, Some("/work".into()));

        // A fallback has a session and a provider of its own.
        recorder.session(&run_id, "codex", &"s-2".into()).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("s-1"));
        let kept = store.session(&talk().with("codex")).await.unwrap().unwrap();
        assert_eq!((&*kept.session_id, kept.model), ("s-2", None));

        let overloaded = not_found().kind(ErrorKind::Overloaded);
        let attempts = vec![
            attempt("claude", Some("s-1"), Some(overloaded)),
            attempt("codex", Some("s-2"), None),
        ];
        let mut outcome = outcome(&run_id, attempts);
        outcome.model = Some("gpt".into());
        recorder.ended(&outcome).await;
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!((run.status, run.attempts), (RunState::Success, 2));
        assert_eq!((&*run.provider, run.session_id.as_deref()), ("codex", Some("s-2")));
        let kept = store.session(&talk().with("codex")).await.unwrap().unwrap();
        assert_eq!(kept.model.as_deref(), Some("gpt"));
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("s-1"));
        assert_eq!(recorder.take_errors(), []);
    }

    async fn a_session_that_was_begun_meanwhile_stays(database) {
        let (store, clock) = database.open_at(1000).await;
        let recorder = Recorder::new(store.clone()).conversation(talk());
        let run_id = accept(&recorder, "r-1", &params()).await;
        recorder.session(&run_id, "claude", &"old".into()).await;
        clock.fetch_add(1, Relaxed);
        store.put_session(&talk().with("claude"), &NewSession::new("new")).await.unwrap();
        clock.fetch_add(1, Relaxed);
        // A further attempt in the same session, and the end.
        recorder.session(&run_id, "claude", &"old".into()).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("new"));
        recorder.ended(&outcome(&run_id, vec![attempt("claude", Some("old"), None)])).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("new"));

        // The run itself may go on in another one.
        let run_id = accept(&recorder, "r-2", &params()).await;
        for id in ["first", "second", "first"] {
            recorder.session(&run_id, "claude", &id.into()).await;
            assert_eq!(session_of(&store, "claude").await.as_deref(), Some(id));
        }
        recorder.ended(&outcome(&run_id, vec![attempt("claude", Some("third"), None)])).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("third"));
        assert_eq!(recorder.take_errors(), []);
    }

    async fn without_a_conversation_no_session_is_kept(database) {
        let store = database.open().await;
        let recorder = Recorder::new(store.clone());
        let run_id = accept(&recorder, "r-1", &params()).await;
        recorder.session(&run_id, "claude", &"s-1".into()).await;
        recorder.ended(&outcome(&run_id, vec![attempt("claude", Some("s-1"), None)])).await;
        let kept = store.sessions(&SessionFilter::default()).await.unwrap();
        assert_eq!(kept, []);
        assert_eq!(store.run("r-1").await.unwrap().unwrap().session_id.as_deref(), Some("s-1"));
        assert_eq!(recorder.take_errors(), []);
    }

    async fn a_session_that_the_cli_does_not_know_is_forgotten_and_no_other(database) {
        let (store, clock) = database.open_at(1000).await;
        let put = async |provider: &str, session: &str| {
            let session = NewSession::new(session);
            store.put_session(&talk().with(provider), &session).await.unwrap();
        };
        let recorder = Recorder::new(store.clone()).conversation(talk());
        let mut params = params();
        params.session_id = Some("old".into());

        // The requested session is forgotten.
        put("claude", "old").await;
        clock.fetch_add(1, Relaxed);
        let run_id = accept(&recorder, "r-1", &params).await;
        recorder.ended(&outcome(&run_id, vec![attempt("claude", None, Some(not_found()))])).await;
        assert_eq!(session_of(&store, "claude").await, None);

        // A session that another run has stored meanwhile is not forgotten.
        put("claude", "old").await;
        let run_id = accept(&recorder, "r-2", &params).await;
        put("claude", "newer").await;
        recorder.ended(&outcome(&run_id, vec![attempt("claude", None, Some(not_found()))])).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("newer"));

        // The session in which the run continued is not forgotten.
        put("claude", "old").await;
        let run_id = accept(&recorder, "r-3", &params).await;
        recorder.session(&run_id, "claude", &"new".into()).await;
        let attempts = vec![
            attempt("claude", None, Some(not_found())),
            attempt("claude", Some("new"), None),
        ];
        recorder.ended(&outcome(&run_id, attempts)).await;
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("new"));

        // For a fallback only the existence of an earlier session is known.
        put("codex", "gone").await;
        clock.fetch_add(1, Relaxed);
        let run_id = accept(&recorder, "r-4", &params).await;
        let attempts = vec![
            attempt("claude", Some("new"), Some(not_found().kind(ErrorKind::Quota))),
            attempt("codex", None, Some(not_found())),
        ];
        recorder.ended(&outcome(&run_id, attempts)).await;
        assert_eq!(session_of(&store, "codex").await, None);
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("new"));
        assert_eq!(recorder.take_errors(), []);
    }

    async fn a_run_has_heartbeats_until_its_end(database) {
        // A clock that advances by a minute with every read, so that every heartbeat is visible.
        let minutes = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&minutes);
        let writer = database.open().await.clock(move || {
            60_000 * count.fetch_add(1, Relaxed) as u64
        });
        let reader = database.open().await.clock(|| 0);
        let recorder = Recorder::new(writer).heartbeat(Duration::from_millis(5));
        let run_id = accept(&recorder, "r-1", &params()).await;
        let deadline = Instant::now() + Duration::from_secs(30);
        let heartbeat = async || reader.run("r-1").await.unwrap().unwrap().heartbeat_at;
        let first = heartbeat().await;
        while heartbeat().await < first + 3 * 60_000 {
            assert!(Instant::now() < deadline, "no heartbeat");
            tokio::task::yield_now().await;
        }
        recorder.ended(&outcome(&run_id, vec![attempt("claude", None, None)])).await;
        let run = reader.run("r-1").await.unwrap().unwrap();
        assert_eq!((run.status, Some(run.heartbeat_at)), (RunState::Success, run.ended_at));
        assert_eq!(recorder.take_errors(), []);
    }

    async fn the_row_of_another_run_is_left_alone(database) {
        let store = database.open().await;
        let recorder = Recorder::new(store.clone()).conversation(talk());
        let run_id = accept(&recorder, "r-1", &params()).await;
        let second = Recorder::new(store.clone());
        accept(&second, &run_id, &params()).await;
        second.session(&run_id, "claude", &"mine".into()).await;
        second.ended(&outcome(&run_id, vec![attempt("claude", Some("mine"), None)])).await;
        assert_eq!(second.take_errors(), [StoreError::RunExists { run_id: "r-1".into() }]);
        let run = store.run("r-1").await.unwrap().unwrap();
        assert_eq!((run.status, run.session_id), (RunState::Running, None));
    }

    async fn sessions_that_have_expired_are_deleted_when_a_run_begins(database) {
        let (store, clock) = database.open_at(1000).await;
        let session = NewSession::new("s").ttl(Duration::from_millis(1));
        store.put_session(&talk().with("codex"), &session).await.unwrap();
        let mut filter = SessionFilter::default();
        filter.expired = true;
        clock.store(2000, Relaxed);
        assert_eq!(store.sessions(&filter).await.unwrap().len(), 1);
        let recorder = Recorder::new(store.clone());
        accept(&recorder, "r-1", &params()).await;
        let deadline = Instant::now() + Duration::from_secs(30);
        while !store.sessions(&filter).await.unwrap().is_empty() {
            assert!(Instant::now() < deadline, "it is still there");
            tokio::task::yield_now().await;
        }
        assert_eq!(recorder.take_errors(), []);
    }

    async fn missed_writes_are_repeated(database) {
        let store = database.open().await;
        let message = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&message);
        let recorder = Recorder::new(store.clone())
            .conversation(talk())
            .on_error(move |error| sink.lock().unwrap().push(error.to_string()));
        database.execute("ALTER TABLE teamster_runs RENAME TO away").await;
        let run_id = accept(&recorder, "r-1", &params()).await;
        recorder.session(&run_id, "claude", &"s-1".into()).await;
        // The sessions are in another table.
        assert_eq!(session_of(&store, "claude").await.as_deref(), Some("s-1"));
        // Entries that wait for the row report no further errors.
        let errors = recorder.take_errors();
        assert_eq!(errors.len(), 1, "{errors:?}");
        for (error, message) in errors.iter().zip(message.lock().unwrap().iter()) {
            assert_eq!(&error.to_string(), message);
            assert!(message.starts_with("cannot write down a run in the store"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        assert_eq!(recorder.take_errors(), []);

        database.execute("ALTER TABLE away RENAME TO teamster_runs").await;
        recorder.ended(&outcome(&run_id, vec![attempt("claude", Some("s-1"), None)])).await;
        let runs = store.runs(&RunFilter::default()).await.unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].status, runs[0].started_at), (RunState::Success, 500));
        assert_eq!(recorder.take_errors(), []);
    }
}
