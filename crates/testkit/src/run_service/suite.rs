//! The checks that every service of runs must pass.

mod results;
mod titles;
mod uploads;

use std::sync::Arc;
use std::time::Duration;

use teamster_api::history::ForgetRuns;
use teamster_api::{
    Answer, Change, Command, ProblemCode, Reply, RunHandle, RunQuery, RunService, RunSpec,
    ServiceError, SessionSpec, Spec, ViewState,
};
use teamster_core::{RunStatus, Stopping};
use tokio::time::timeout;

/// The time limit of one step of a check.
const LIMIT: Duration = Duration::from_secs(30);

/// Behaviour of the agent in a run of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Behavior {
    /// It answers in a few events and completes.
    Answers,
    /// It asks for permission once, and completes after the answer.
    Asks,
    /// It emits something, then nothing until it is stopped.
    Hangs,
}

/// A service under test.
pub trait Subject: Send + Sync {
    /// Returns the service.
    fn service(&self) -> Arc<dyn RunService>;

    /// Returns the spec of a run with this behaviour.
    fn run(&self, behavior: Behavior) -> Spec;

    /// Returns the spec of a session; `None` if the checks of sessions are left out.
    fn session(&self) -> Option<SessionSpec>;

    /// Returns the spec of a run in a workspace of its own, whose agent writes the file `new.txt` there, with the line
    /// `new`, and completes. `None` if the checks of workspaces are left out.
    fn writing(&self) -> Option<RunSpec> {
        None
    }

    /// Returns a prompt for which the session's agent behaves like this.
    fn prompt(&self, behavior: Behavior) -> String;
}

/// Runs all checks, one after the other, on one service.
///
/// # Panics
///
/// Panics at the first check that fails.
pub async fn contract(subject: &dyn Subject) {
    let check = Check { subject };
    check.a_start_can_be_repeated().await;
    check.a_refused_spec_starts_nothing().await;
    check.a_log_has_no_gaps_and_ends_with_done().await;
    check.ids_are_shortened_by_resolve_alone().await;
    check.lists_have_pages_and_filters().await;
    check.a_run_has_a_title_and_its_spec().await;
    check.a_request_is_answered_once().await;
    check.a_run_is_stopped_once().await;
    check.changes_follow_a_snapshot().await;
    check.only_ended_runs_are_forgotten().await;
    check.an_upload_goes_on_with_the_missing_parts().await;
    if let Some(spec) = subject.writing() {
        check
            .a_run_brings_its_changes_and_files_back(spec.clone())
            .await;
        check
            .a_run_without_changes_has_none_to_bring_back(spec.clone())
            .await;
        check.changes_are_applied_and_discarded(spec).await;
    }
    if let Some(session) = subject.session() {
        check.turns_come_one_after_the_other(session.clone()).await;
        check.a_session_is_titled(session.clone()).await;
        check.sessions_of_a_thread_are_listed(session).await;
    }
}

struct Check<'a> {
    subject: &'a dyn Subject,
}

fn code(error: &ServiceError) -> Option<ProblemCode> {
    error.code
}

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    timeout(LIMIT, work)
        .await
        .unwrap_or_else(|_| panic!("{what}: nothing within {LIMIT:?}"))
}

impl Check<'_> {
    fn service(&self) -> Arc<dyn RunService> {
        self.subject.service()
    }

    async fn start(&self, id: &str, behavior: Behavior) -> RunHandle {
        let started = RunHandle::start(self.service(), id, self.subject.run(behavior));
        within("start", started).await.expect("a run starts")
    }

    /// Waits until the run is in this state.
    async fn until(&self, run: &RunHandle, state: ViewState) {
        let mut log = run.follow(0);
        let reached = async {
            while run.view().await.expect("a run is shown").summary.state != state {
                // Each entry may be the change.
                match log.next().await {
                    Some(line) => drop(line.expect("the log is read")),
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        within(&format!("{state:?}"), reached).await;
    }

    async fn a_start_can_be_repeated(&self) {
        let service = self.service();
        let spec = self.subject.run(Behavior::Answers);
        let first = service.start("contract-repeated", spec.clone()).await;
        let first = first.expect("a run starts");
        assert!(!first.existed);
        let again = service.start("contract-repeated", spec).await;
        // With its warnings: the first answer may have been lost.
        assert_eq!(again.expect("a start is repeated"), first.again());
        let other = self.subject.run(Behavior::Hangs);
        let refused = service.start("contract-repeated", other).await;
        let refused = refused.expect_err("the id has another spec");
        assert_eq!(code(&refused), Some(ProblemCode::RunExists));
        let run = RunHandle::find(service, "contract-repeated").await;
        let result = within("the end", run.expect("it is found").result()).await;
        assert_eq!(result.expect("it ends").status, RunStatus::Completed);
    }

    async fn a_refused_spec_starts_nothing(&self) {
        let service = self.service();
        let mut spec = self.subject.run(Behavior::Answers);
        if let Spec::Run(spec) = &mut spec {
            "no-such-agent".clone_into(&mut spec.provider);
        }
        let checked = service.check(&spec).await;
        let checked = checked.expect_err("there is no such agent");
        assert_eq!(code(&checked), Some(ProblemCode::InvalidParams));
        assert!(checked.message.contains("no-such-agent"), "{checked}");
        let refused = service.start("contract-refused", spec).await;
        let refused = refused.expect_err("there is no such agent");
        assert_eq!(code(&refused), Some(ProblemCode::InvalidParams));
        assert!(refused.message.contains("no-such-agent"), "{refused}");
        let mut spec = self.subject.run(Behavior::Answers);
        if let Spec::Run(spec) = &mut spec {
            spec.placement.pool = Some("a".to_owned());
            spec.placement.machine = Some("b".to_owned());
        }
        let refused = service.start("contract-refused", spec).await;
        let refused = refused.expect_err("a machine has its pools");
        assert_eq!(code(&refused), Some(ProblemCode::InvalidParams));
        assert_eq!(refused.parameter.as_deref(), Some("placement"), "{refused}");
        // The history has the turns of sessions under such ids.
        let spec = self.subject.run(Behavior::Answers);
        let of_turn = service.start("contract-refused.1", spec).await;
        let of_turn = of_turn.expect_err("it is the id of a turn");
        assert_eq!(code(&of_turn), Some(ProblemCode::InvalidParams));
        let shown = service.show("contract-refused").await;
        let missing = shown.expect_err("nothing was started");
        assert_eq!(code(&missing), Some(ProblemCode::RunNotFound));
    }

    async fn a_log_has_no_gaps_and_ends_with_done(&self) {
        let run = self.start("contract-log", Behavior::Answers).await;
        let mut log = run.follow(0);
        let mut lines = Vec::new();
        let all = async {
            while let Some(line) = log.next().await {
                lines.push(line.expect("the log is read"));
            }
        };
        within("the log", all).await;
        let numbers: Vec<_> = lines.iter().map(teamster_api::LogLine::seq).collect();
        assert!(numbers.iter().copied().eq(1..=lines.len() as u64));
        assert_eq!(lines[0].type_name(), "run:start");
        let ends: Vec<_> = lines.iter().map(teamster_api::LogLine::is_end).collect();
        let last = ends.len() - 1;
        assert_eq!(ends.iter().position(|end| *end), Some(last));
        // A late reader gets the same bytes, from where it left off.
        let mut late = run.follow(2);
        for line in &lines[2..] {
            let next = within("an entry", late.next()).await;
            assert_eq!(&next.expect("an entry").expect("the log is read"), line);
        }
        assert!(within("the end", late.next()).await.is_none());
        let shown = run.view().await.expect("it is shown").summary;
        assert_eq!(shown.state, ViewState::Ended);
        assert_eq!(shown.seq, lines.len() as u64);
        let result = run.result().await.expect("it has ended");
        assert_eq!(lines[last].result(), Some(result));
    }

    async fn ids_are_shortened_by_resolve_alone(&self) {
        let service = self.service();
        self.start("contract-id-one", Behavior::Answers).await;
        self.start("contract-id-two", Behavior::Answers).await;
        let id = service.resolve("contract-id-o").await;
        assert_eq!(id.expect("one run begins so").run_id, "contract-id-one");
        let several = service.resolve("contract-id").await;
        let several = several.expect_err("two runs begin so");
        assert_eq!(code(&several), Some(ProblemCode::RunIdAmbiguous));
        for missing in [
            service.resolve("contract-id-x").await.map(drop),
            service.show("contract-id-o").await.map(drop),
            service
                .send("contract-id-o", Command::Cancel { kill: false })
                .await
                .map(drop),
        ] {
            let missing = missing.expect_err("no run has this id");
            assert_eq!(code(&missing), Some(ProblemCode::RunNotFound));
        }
        let mut log = service.follow("contract-id-o", 0);
        let first = std::future::poll_fn(|cx| log.as_mut().poll_next(cx)).await;
        let missing = first.expect("an error").expect_err("no run has this id");
        assert_eq!(code(&missing), Some(ProblemCode::RunNotFound));
    }

    async fn lists_have_pages_and_filters(&self) {
        let service = self.service();
        let hanging = self.hanging("contract-list-1").await;
        let ended = self.start("contract-list-2", Behavior::Answers).await;
        self.until(&ended, ViewState::Ended).await;
        let mut all = Vec::new();
        let mut query = RunQuery::default();
        query.limit = Some(1);
        loop {
            let page = service.list(query.clone()).await.expect("runs are listed");
            let [run] = &*page.runs else {
                panic!("{page:?}");
            };
            all.push((run.info.accepted_at_ms, run.info.run_id.clone()));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        // Newest first, each once.
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
        for id in ["contract-list-1", "contract-list-2"] {
            assert!(all.iter().any(|(_, known)| known == id), "{all:?}");
        }
        let mut live = RunQuery::default();
        live.live = true;
        let page = service.list(live).await.expect("runs are listed");
        let ids: Vec<_> = page.runs.iter().map(|run| &*run.info.run_id).collect();
        assert!(ids.contains(&"contract-list-1"), "{ids:?}");
        assert!(!ids.contains(&"contract-list-2"), "{ids:?}");
        assert!(page.runs.iter().all(|run| run.live.is_some()));
        let mut elsewhere = RunQuery::default();
        elsewhere.machine = Some("contract-elsewhere".to_owned());
        let page = service.list(elsewhere).await.expect("runs are listed");
        assert_eq!(page.runs, []);
        let mut wrong = RunQuery::default();
        wrong.cursor = Some("not a cursor".to_owned());
        let refused = service.list(wrong).await.expect_err("it is no cursor");
        assert_eq!(code(&refused), Some(ProblemCode::InvalidParams));
        hanging.cancel(Stopping::Kill).await.expect("it is stopped");
        self.until(&hanging, ViewState::Ended).await;
    }

    async fn a_request_is_answered_once(&self) {
        let run = self.start("contract-request", Behavior::Asks).await;
        self.until(&run, ViewState::Waiting).await;
        let requests = run.requests().await.expect("it is shown");
        assert_eq!(requests.len(), 1);
        let id = &requests[0].request_id;
        assert!(id.starts_with("contract-request/"), "{id}");
        let unknown = run.answer("contract-request/99", Answer::Allow).await;
        let unknown = unknown.expect_err("there is no such request");
        assert_eq!(code(&unknown), Some(ProblemCode::RequestNotFound));
        run.answer(&**id, Answer::Allow)
            .await
            .expect("it is answered");
        let again = run.answer(&**id, Answer::Deny { reason: None }).await;
        let again = again.expect_err("the first answer counts");
        assert!(
            matches!(
                code(&again),
                Some(ProblemCode::AlreadyAnswered | ProblemCode::RunEnded)
            ),
            "{again:?}"
        );
        let result = within("the end", run.result()).await.expect("it ends");
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(run.requests().await.expect("it is shown"), []);
    }

    async fn a_run_is_stopped_once(&self) {
        let run = self.hanging("contract-stop").await;
        run.cancel(Stopping::Graceful).await.expect("it is stopped");
        let result = within("the end", run.result()).await.expect("it ends");
        assert_eq!(result.status, RunStatus::Aborted);
        self.until(&run, ViewState::Ended).await;
        let again = run
            .cancel(Stopping::Graceful)
            .await
            .expect_err("it has ended");
        assert_eq!(code(&again), Some(ProblemCode::RunEnded));
        assert_eq!(again.run_id.as_deref(), Some("contract-stop"));
    }

    async fn changes_follow_a_snapshot(&self) {
        let mut changes = self.service().changes();
        let mut next = async || {
            let next = std::future::poll_fn(|cx| changes.as_mut().poll_next(cx));
            let next = within("a change", next).await;
            next.expect("the stream goes on").expect("no error")
        };
        let Change::Snapshot { runs, .. } = next().await else {
            panic!("the first message is no snapshot");
        };
        assert!(!runs.is_empty());
        let run = self.start("contract-change", Behavior::Hangs).await;
        let mut of_run = async |state: ViewState| loop {
            if let Change::Run { run } = next().await
                && run.info.run_id == "contract-change"
                && run.state == state
            {
                return;
            }
        };
        of_run(ViewState::Running).await;
        run.cancel(Stopping::Graceful).await.expect("it is stopped");
        of_run(ViewState::Ended).await;
        let mut forget = ForgetRuns::default();
        forget.ids = vec!["contract-change".to_owned()];
        self.forget(forget).await.expect("it is forgotten");
        loop {
            if let Change::Gone { run_id } = next().await {
                assert_eq!(run_id, "contract-change");
                return;
            }
        }
    }

    /// Forgets runs. A runner that has just written its end may still be there for a moment.
    async fn forget(&self, request: ForgetRuns) -> Result<u64, ServiceError> {
        let forgotten = async {
            loop {
                match self.service().forget(request.clone()).await {
                    Err(error) if code(&error) == Some(ProblemCode::RunLive) => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                    forgotten => return forgotten.map(|it| it.logs),
                }
            }
        };
        within("forget", forgotten).await
    }

    async fn only_ended_runs_are_forgotten(&self) {
        let service = self.service();
        let live = self.start("contract-forget-1", Behavior::Hangs).await;
        let ended = self.start("contract-forget-2", Behavior::Answers).await;
        self.until(&ended, ViewState::Ended).await;
        let mut both = ForgetRuns::default();
        both.ids = vec![
            "contract-forget-2".to_owned(),
            "contract-forget-1".to_owned(),
        ];
        let refused = service.forget(both).await.expect_err("one is live");
        assert_eq!(code(&refused), Some(ProblemCode::RunLive));
        ended.view().await.expect("none was forgotten");
        let mut one = ForgetRuns::default();
        one.ids = vec!["contract-forget-2".to_owned()];
        assert_eq!(self.forget(one).await.expect("it has ended"), 1);
        let missing = ended.view().await.expect_err("it was forgotten");
        assert_eq!(code(&missing), Some(ProblemCode::RunNotFound));
        live.cancel(Stopping::Kill).await.expect("it is stopped");
        self.until(&live, ViewState::Ended).await;
    }

    async fn turns_come_one_after_the_other(&self, session: SessionSpec) {
        let started = RunHandle::start(self.service(), "contract-session", session);
        let session = within("start", started).await.expect("a session starts");
        let no_turn = session.steer("more").await.expect_err("no turn");
        assert_eq!(code(&no_turn), Some(ProblemCode::NoTurn));
        let key = |prompt: String| Command::Send {
            prompt,
            images: Vec::new(),
            from: None,
            key: Some("key".to_owned()),
            trace: None,
        };
        let answers = self.subject.prompt(Behavior::Answers);
        let first = session.send(key(answers.clone())).await;
        let Ok(Reply::Turn { run_id, seq, known }) = first else {
            panic!("{first:?}");
        };
        assert_eq!((&*run_id, known), ("contract-session.1", false));
        let again = session.send(key(answers)).await;
        assert_eq!(
            again,
            Ok(Reply::Turn {
                run_id: run_id.clone(),
                seq,
                known: true
            })
        );
        let other = session.send(key("something else".to_owned())).await;
        let other = other.expect_err("the key has another prompt");
        assert_eq!(code(&other), Some(ProblemCode::IdempotencyKeyReused));
        self.until_turn_ends(&session, seq).await;

        let hangs = self.subject.prompt(Behavior::Hangs);
        let (turn, seq) = session.say(&*hangs).await.expect("a turn begins");
        assert_eq!(turn, "contract-session.2");
        let busy = session.say(hangs).await.expect_err("a turn is in progress");
        assert_eq!(code(&busy), Some(ProblemCode::SessionBusy));
        // What the agent emits shows that it has the prompt.
        let mut log = session.follow(seq);
        within("an entry", log.next())
            .await
            .expect("an entry")
            .expect("the log is read");
        let ends = async { tokio::join!(session.idle(), session.interrupt(Stopping::Graceful)) };
        let (idle, interrupted) = within("the end of the turn", ends).await;
        interrupted.expect("it is interrupted");
        idle.expect("it is idle");
        self.until_turn_ends(&session, seq).await;
        within("a session without a turn", session.idle())
            .await
            .expect("it is idle");

        session
            .cancel(Stopping::Graceful)
            .await
            .expect("it is ended");
        within("the end", session.result()).await.expect("it ends");
        self.until(&session, ViewState::Ended).await;
        let ended = session.say("more").await.expect_err("it has ended");
        assert_eq!(code(&ended), Some(ProblemCode::RunEnded));
    }

    async fn sessions_of_a_thread_are_listed(&self, mut spec: SessionSpec) {
        let service = self.service();
        let mut sessions = Vec::new();
        for (id, continues) in [
            ("contract-thread", None),
            ("contract-thread-other", None),
            ("contract-thread-more", Some("contract-thread")),
        ] {
            spec.continues = continues.map(str::to_owned);
            let started = RunHandle::start(self.service(), id, spec.clone());
            sessions.push(within("start", started).await.expect("a session starts"));
        }
        let mut query = RunQuery::default();
        query.thread = Some("contract-thread".to_owned());
        let listed = service.list(query).await.expect("a list").runs;
        let ids: Vec<_> = listed.iter().map(|run| &*run.info.run_id).collect();
        assert_eq!(ids, ["contract-thread-more", "contract-thread"]);
        let continues = listed[0].info.continues.as_deref();
        assert_eq!(continues, Some("contract-thread"));
        for session in sessions {
            session
                .cancel(Stopping::Graceful)
                .await
                .expect("it is ended");
            self.until(&session, ViewState::Ended).await;
        }
    }

    /// Waits until the session is idle again after the turn whose prompt has this number.
    async fn until_turn_ends(&self, session: &RunHandle, seq: u64) {
        let mut log = session.follow(seq);
        let done = async {
            let mut last = String::new();
            while last != "done" {
                let line = log.next().await.expect("the session continues");
                last = line.expect("the log is read").type_name();
            }
            let in_turn = async || {
                let summary = session.view().await.expect("it is shown").summary;
                (summary.live.as_ref()).is_some_and(|live| live.turn.is_some())
            };
            while in_turn().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within("the end of the turn", done).await;
    }
}
