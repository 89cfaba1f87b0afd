//! Where runs go: pools, machines, the machines of conversations, and what workers refuse.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use teamster_api::{
    Placement, ProblemCode, QueueReason, RunHandle, RunService, RunSpec, RunSummary, SessionSpec,
    Spec, TraceContext, ViewState, Workspace,
};
use teamster_core::{PermissionMode, RunStatus, Stopping};
use teamster_fleet::FleetRuns;
use teamster_testkit::proc::wait_until;
use teamster_testkit::run_service::claude_that;
use tokio::time::{interval, timeout};

use super::machine::{
    LIMIT, Machine, Shared, block_on, end, jetstream, read, runs, runs_of, until_workers,
};

/// What the agent does with a prompt. Its session has the id of its machine. Each start is written down with its arguments, and
/// the answer comes when there is a file `go`.
const TELLS: &str = r#"id=s$(basename "$(dirname "$XDG_STATE_HOME")" | tr -d .)
      secret=without; [ -n "$NPM_TOKEN" ] && grep -q "'$NPM_TOKEN'" SHARED/secrets.toml && secret=with
      printf '%s\n' "$*" | tr '\n' ' ' >> SHARED/count; echo >> SHARED/count
      init
      while [ -d SHARED ] && [ ! -e SHARED/go ]; do sleep 0.05; done
      say "$secret""#;

/// Pause between two looks at a run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn tells(shared: &Shared) -> String {
    telling(shared, TELLS)
}

fn telling(shared: &Shared, does: &str) -> String {
    claude_that(&does.replace("SHARED", shared.0.path().to_str().unwrap()))
}

/// Returns the arguments of the agents that were started.
fn starts(shared: &Shared) -> Vec<String> {
    let text = fs::read_to_string(shared.0.path().join("count")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn summary(run: &RunHandle) -> Arc<RunSummary> {
    run.view().await.unwrap().summary
}

/// Waits until a run waits for this reason. Returns its words.
pub(crate) async fn until_waits(run: &RunHandle, reason: QueueReason) -> String {
    let mut looks = interval(LOOK_EVERY);
    let waits = async {
        loop {
            looks.tick().await;
            let queue = summary(run).await.queue.clone();
            if let Some(queue) = queue.filter(|queue| queue.reason == reason) {
                return queue.detail;
            }
        }
    };
    timeout(LIMIT, waits).await.unwrap()
}

pub(crate) fn spec(change: impl FnOnce(&mut RunSpec)) -> RunSpec {
    let mut spec = RunSpec::new("claude", "hello");
    change(&mut spec);
    spec
}

#[test]
fn a_run_waits_for_its_pool_or_its_machine_and_says_why() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let agent = tells(&shared);
    shared.go();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let start = async |id: &str, placement| {
            let spec = spec(|spec| spec.placement = placement);
            RunHandle::start(service.clone(), id, spec).await.unwrap()
        };
        let pool = start("pool", Placement::pool("gpu")).await;
        let machine = start("machine", Placement::machine("w3")).await;
        assert_eq!(summary(&pool).await.state, ViewState::Queued);
        let detail = until_waits(&pool, QueueReason::NoMachine).await;
        assert!(detail.contains("the pool gpu"), "{detail}");
        let detail = until_waits(&machine, QueueReason::MachineAbsent).await;
        assert!(detail.contains("w3"), "{detail}");
        // In a list as well.
        let listed = service
            .list(teamster_api::RunQuery::default())
            .await
            .unwrap();
        let reasons = listed
            .runs
            .iter()
            .map(|run| run.queue.clone().unwrap().reason);
        assert_eq!(
            reasons
                .filter(|reason| *reason == QueueReason::MachineAbsent)
                .count(),
            1
        );
        let _other = Machine::with_policy(&server, "w1", &agent, "slots = 2");
        until_workers(&fleet, 1).await;
        assert_eq!(
            until_waits(&pool, QueueReason::NoMachine)
                .await
                .matches("gpu")
                .count(),
            1
        );
        let status = fleet.status().await.unwrap();
        let queues: Vec<_> = (status.queues.iter())
            .map(|queue| {
                (
                    queue.pool.as_deref(),
                    queue.machine.as_deref(),
                    queue.waiting,
                )
            })
            .collect();
        assert_eq!(queues, [(None, Some("w3"), 1), (Some("gpu"), None, 1)]);
        assert_eq!(status.workers.len(), 1);
        assert_eq!(status.runs["queued"], 2);
        let _gpu = Machine::with_policy(&server, "w2", &agent, "pools = ['gpu']");
        let _named = Machine::with_policy(&server, "w3", &agent, "pools = []");
        assert_eq!(end(&pool).await, RunStatus::Completed);
        assert_eq!(end(&machine).await, RunStatus::Completed);
        assert_eq!(summary(&pool).await.machine.as_deref(), Some("w2"));
        assert_eq!(summary(&machine).await.machine.as_deref(), Some("w3"));
        // The server knows no hint any more.
        let jetstream = jetstream(&server).await;
        for name in ["TM_WORK", "TM_HOST"] {
            let stream = jetstream.get_stream(name).await.unwrap();
            assert_eq!(stream.cached_info().state.messages, 0, "{name}");
        }
        let wrong = spec(|spec| spec.placement = Placement::pool("a.b"));
        let refused = service.start("wrong", wrong.into()).await.unwrap_err();
        assert_eq!(refused.parameter.as_deref(), Some("placement"));
    });
}

#[test]
fn runs_with_one_key_meet_on_one_machine_one_at_a_time() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let agent = tells(&shared);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let with_key = || spec(|spec| spec.session_key = Some("slack:U42".into()));
        let start =
            async |id: &str, spec: RunSpec| RunHandle::start(service.clone(), id, spec).await;
        let one = start("one", with_key()).await.unwrap();
        let two = start("two", with_key()).await.unwrap();
        let mut machines: Vec<_> = ["w1", "w2"]
            .map(|name| Machine::with_policy(&server, name, &agent, "slots = 4"))
            .into();
        until_workers(&fleet, 2).await;
        shared.until_count(1);
        let [first, second] = match summary(&one).await.state {
            ViewState::Queued => [&two, &one],
            _ => [&one, &two],
        };
        let detail = until_waits(second, QueueReason::Refused).await;
        assert!(
            detail.contains("of the conversation is in progress"),
            "{detail}"
        );
        assert_eq!(shared.count(), 1);
        shared.go();
        assert_eq!(end(first).await, RunStatus::Completed);
        assert_eq!(end(second).await, RunStatus::Completed);
        let home = summary(first).await.machine.clone().unwrap();
        assert_eq!(summary(second).await.machine.as_deref(), Some(&*home));
        let session = summary(first).await.session_id.clone().unwrap();
        let starts_now = starts(&shared);
        assert!(!starts_now[0].contains(&session), "{starts_now:?}");
        assert!(starts_now[1].contains(&session), "{starts_now:?}");
        // By the id of its session, too; not by another's.
        let by_id = || spec(|spec| spec.session_id = Some(session.clone()));
        let third = start("three", by_id()).await.unwrap();
        assert_eq!(end(&third).await, RunStatus::Completed);
        assert_eq!(summary(&third).await.machine.as_deref(), Some(&*home));
        let bob = runs_of(&server, "bob").await.1;
        let foreign = bob.start("x", by_id().into()).await.unwrap_err();
        assert_eq!(foreign.code, Some(ProblemCode::SessionNotFound));
        // The same key of another owner is another conversation.
        let bobs = RunHandle::start(bob, "bobs", with_key()).await.unwrap();
        assert_eq!(end(&bobs).await, RunStatus::Completed);
        let count = starts(&shared).len();
        assert!(
            !starts(&shared)[count - 1].contains("--resume"),
            "{:?}",
            starts(&shared)
        );
        // A machine that is gone.
        let at = usize::from(home == "w2");
        machines[at].drain();
        let gone = start("four", with_key()).await.unwrap_err();
        assert_eq!(gone.code, Some(ProblemCode::RunnerNotResponding));
        assert!(gone.message.contains("`new_session`"), "{gone}");
        let mut elsewhere = with_key();
        elsewhere.new_session = true;
        let elsewhere = start("five", elsewhere).await.unwrap();
        assert_eq!(end(&elsewhere).await, RunStatus::Completed);
        let other = summary(&elsewhere).await.machine.clone().unwrap();
        assert_ne!(other, home);
        // From now on, it is there.
        machines[at].restart(&agent);
        until_workers(&fleet, 2).await;
        let last = start("six", with_key()).await.unwrap();
        assert_eq!(end(&last).await, RunStatus::Completed);
        assert_eq!(summary(&last).await.machine, Some(other));
    });
}

#[test]
fn a_session_continues_on_the_machine_that_has_the_worktree() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    let agent = tells(&shared);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _other = Machine::with_policy(&server, "w1", &agent, "slots = 4");
        let mut home = Machine::with_policy(&server, "w2", &agent, "pools = []");
        until_workers(&fleet, 2).await;
        let first = spec(|spec| spec.placement = Placement::machine("w2"));
        let first = RunHandle::start(service.clone(), "first", first).await;
        assert_eq!(end(&first.unwrap()).await, RunStatus::Completed);
        let continues = |first: &str, placement| {
            let mut spec = SessionSpec::new("claude");
            spec.workspace = Some(Workspace::Continued {});
            spec.continues = Some(first.to_owned());
            spec.placement = placement;
            Spec::from(spec)
        };
        let refused = async |first: &str, placement| {
            let refused = service.start("other", continues(first, placement)).await;
            refused.unwrap_err()
        };
        // Any machine of the pool would be w1.
        let placement = Placement::default;
        (service.start("next", continues("first", placement())).await).unwrap();
        let next = RunHandle::find(service.clone(), "next").await.unwrap();
        assert_eq!(summary(&next).await.machine.as_deref(), Some("w2"));
        let error = refused("gone", placement()).await;
        assert_eq!(error.parameter.as_deref(), Some("continues"));
        assert!(error.message.contains("begin a new session"), "{error}");
        let waiting = spec(|spec| spec.placement = Placement::pool("none"));
        let waiting = RunHandle::start(service.clone(), "waiting", waiting).await;
        let error = refused("waiting", placement()).await;
        assert!(error.message.contains("wait until it is, or"), "{error}");
        waiting.unwrap().cancel(Stopping::Graceful).await.unwrap();
        let error = refused("waiting", placement()).await;
        assert!(
            error.message.ends_with("worktree: begin a new session"),
            "{error}"
        );
        let error = refused("first", Placement::machine("w1")).await;
        assert_eq!(error.parameter.as_deref(), Some("placement"));
        assert!(error.message.contains("is on worker w2"), "{error}");
        home.drain();
        let error = refused("first", placement()).await;
        assert_eq!(error.code, Some(ProblemCode::RunnerNotResponding));
        assert!(error.message.contains("begin a new session"), "{error}");
    });
}

/// Returns the files below a folder that have this text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if let Ok(content) = fs::read(&path)
            && content
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn secrets_are_given_by_name_to_the_owners_that_may_have_them() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    let agent = tells(&shared);
    let secrets = shared.0.path().join("secrets.toml");
    let text = "[NPM_TOKEN]\nvalue = 's3cret-value'\nowners = ['ann']\n";
    fs::write(&secrets, text).unwrap();
    fs::set_permissions(&secrets, fs::Permissions::from_mode(0o600)).unwrap();
    let policy = format!("secrets = '{}'", secrets.display());
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let machine = Machine::with_policy(&server, "w1", &agent, &policy);
        until_workers(&fleet, 1).await;
        let with_secret = || spec(|spec| spec.secrets = vec!["NPM_TOKEN".into()]);
        let run = RunHandle::start(service.clone(), "with", with_secret());
        let run = run.await.unwrap();
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(run.result().await.unwrap().text, "with");
        let bob = runs_of(&server, "bob").await.1;
        let bobs = RunHandle::start(bob, "with", with_secret()).await.unwrap();
        let detail = until_waits(&bobs, QueueReason::Refused).await;
        assert!(
            detail.contains("no secret NPM_TOKEN for this owner"),
            "{detail}"
        );
        assert_eq!(files_with(machine.folder.path(), "s3cret-value"), [""; 0]);
        assert_eq!(files_with(server.folder(), "s3cret-value"), [""; 0]);
        let log = read(&run).await;
        assert!(!String::from_utf8(log).unwrap().contains("s3cret-value"));
        let without = spec(|_| ());
        let run = RunHandle::start(service, "without", without).await.unwrap();
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(run.result().await.unwrap().text, "without");
    });
}

#[test]
fn agent_of_a_worker_has_the_place_of_its_submitter_in_a_trace() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OWN: &str = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";
    let server = server_or_skip!();
    let shared = Shared::answering();
    // The answer is the variable.
    let agent = tells(&shared).replace("secret=without;", "secret=$TRACEPARENT;");
    block_on(async {
        let (fleet, _) = runs(&server, 0).await;
        let _machine = Machine::start(&server, "w1", &agent);
        until_workers(&fleet, 1).await;
        let (fleet, _) = runs_of(&server, "ann").await;
        let runs = FleetRuns::new(&fleet).trace(TraceContext::new(PARENT, None));
        let service: Arc<dyn RunService> = Arc::new(runs);
        let with_own = spec(|spec| {
            let env = &mut spec.trusted.env;
            env.insert("TRACEPARENT".to_owned(), OWN.to_owned());
        });
        for (id, spec, expected) in [("one", spec(|_| ()), PARENT), ("two", with_own, OWN)] {
            service.check(&spec.clone().into()).await.unwrap();
            let run = RunHandle::start(service.clone(), id, spec).await.unwrap();
            assert_eq!(run.result().await.unwrap().text, expected);
        }
        let again = service.start("two", spec(|_| ()).into()).await.unwrap();
        assert!(again.existed);
    });
}

#[test]
fn run_that_a_policy_forbids_waits_with_the_reason() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let agent = tells(&shared);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let policy = "max_time = '1s'\npermissions = ['default', 'read-only']";
        let _machine = Machine::with_policy(&server, "w1", &agent, policy);
        until_workers(&fleet, 1).await;
        let edits = spec(|spec| spec.permission = PermissionMode::AcceptEdits);
        let edits = RunHandle::start(service.clone(), "edits", edits);
        let edits = edits.await.unwrap();
        let detail = until_waits(&edits, QueueReason::Refused).await;
        assert!(detail.contains("worker w1 has refused it"), "{detail}");
        assert!(detail.contains("`accept-edits`"), "{detail}");
        let bypass = spec(|spec| spec.permission = PermissionMode::Bypass);
        let refused = service.start("bypass", bypass.into()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::BypassNotAllowed));
        // The agent does not end by itself.
        let long = spec(|spec| spec.max_time_ms = Some(0));
        let long = RunHandle::start(service, "long", long).await.unwrap();
        assert_ne!(end(&long).await, RunStatus::Completed);
        let _other = Machine::with_policy(&server, "w2", &agent, "agents = ['codex']");
        until_workers(&fleet, 2).await;
        let other = spec(|spec| spec.placement = Placement::machine("w2"));
        let other = RunHandle::start(runs_of(&server, "ann").await.1, "other", other);
        let other = other.await.unwrap();
        let detail = until_waits(&other, QueueReason::NoAgent).await;
        assert!(detail.contains("is not allowed"), "{detail}");
        assert!(wait_until(LIMIT, || shared.count() == 1));
    });
}

#[test]
fn limit_holds_an_agent_back_on_all_workers_with_the_login() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let resets = now.as_secs() + 15;
    // Made by hand: what Claude Code prints when a limit is reached. The first agent alone reports it.
    let limit = format!(
        r#"[ "$(wc -l < SHARED/count)" = 1 ] && printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"five_hour"}}}}\n'
      while [ -d SHARED ] && [ ! -e SHARED/go"#
    );
    let does = TELLS.replace("while [ -d SHARED ] && [ ! -e SHARED/go", &limit);
    let agent = telling(&shared, &does);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _machines =
            ["w1", "w2"].map(|name| Machine::with_policy(&server, name, &agent, "slots = 2"));
        until_workers(&fleet, 2).await;
        let start = async |id: &str| RunHandle::start(service.clone(), id, spec(|_| ())).await;
        let first = start("first").await.unwrap();
        assert_eq!(end(&first).await, RunStatus::Completed);
        let mut looks = interval(LOOK_EVERY);
        let held = async {
            loop {
                looks.tick().await;
                if let Some(hold) = fleet.holds().await.unwrap().pop() {
                    return hold;
                }
            }
        };
        let hold = timeout(LIMIT, held).await.unwrap();
        assert_eq!((&*hold.provider, hold.until), ("claude", resets * 1000));
        assert_eq!(hold.limit.as_deref(), Some("five_hour"));
        // The key of the login is in the environment of the workers.
        assert!(!format!("{hold:?}").contains("made-up"));
        let second = start("second").await.unwrap();
        let detail = until_waits(&second, QueueReason::OnHold).await;
        assert!(detail.contains("has reached its limit"), "{detail}");
        assert_eq!(
            summary(&second).await.queue.clone().unwrap().until,
            Some(resets * 1000)
        );
        assert_eq!(fleet.status().await.unwrap().holds, [hold]);
        assert_eq!(end(&second).await, RunStatus::Completed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        assert!(now.as_secs() >= resets);
        assert_eq!(fleet.holds().await.unwrap(), []);
    });
}

#[test]
fn earlier_limit_does_not_replace_the_one_that_holds() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let [week, hours] = [3600, 60].map(|seconds| now.as_secs() + seconds);
    // Made by hand: what Claude Code prints when a limit is reached, one before there is a file `go` and one after.
    let limit = |resets: u64, kind: &str| {
        format!(
            r#"printf '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected","resetsAt":{resets},"rateLimitType":"{kind}"}}}}\n'"#
        )
    };
    let waits = "while [ -d SHARED ] && [ ! -e SHARED/go ]; do sleep 0.05; done";
    let (week_limit, hours_limit) = (limit(week, "seven_day"), limit(hours, "five_hour"));
    let does = TELLS.replace(waits, &format!("{week_limit}\n{waits}\n{hours_limit}"));
    let agent = telling(&shared, &does);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _machine = Machine::with_policy(&server, "w1", &agent, "");
        until_workers(&fleet, 1).await;
        let run = RunHandle::start(service, "run", spec(|_| ()))
            .await
            .unwrap();
        let held = async { while fleet.holds().await.unwrap().is_empty() {} };
        timeout(LIMIT, held).await.unwrap();
        shared.go();
        assert_eq!(end(&run).await, RunStatus::Completed);
        let log = String::from_utf8(read(&run).await).unwrap();
        assert!(log.contains("five_hour"), "{log}");
        let holds = fleet.holds().await.unwrap();
        let holds: Vec<_> = holds
            .iter()
            .map(|hold| (hold.limit.as_deref(), hold.until))
            .collect();
        assert_eq!(holds, [(Some("seven_day"), week * 1000)]);
    });
}
