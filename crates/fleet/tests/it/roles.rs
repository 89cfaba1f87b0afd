//! What each role can do on a real server, and what it is refused.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull, push};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, Message, ServerError};
use serde_json::json;
use teamster_api::{
    ProblemCode, QueueReason, RunHandle, RunQuery, RunService, RunSpec, ServiceError,
};
use teamster_core::RunStatus;
use teamster_fleet::{
    Finding, FindingVerdict, Fleet, FleetLogin, FleetOptions, FleetRole, FleetRuns, FleetUser,
    server_accounts,
};
use tokio::sync::watch;
use tokio::time::timeout;

use super::contract::limits;
use super::machine::{LIMIT, Machine, Shared, block_on, end, read, submit, until_workers};
use super::placement::until_waits;
use super::server::Server;

/// Time in which a refusal must be known.
const AT_ONCE: Duration = Duration::from_secs(2);
/// Time in which what is allowed must be answered. What is not is known at once: by an event, or because nothing listens.
const ANSWER: Duration = LIMIT;

const USERS: [(&str, FleetRole); 5] = [
    ("ann", FleetRole::Submitter),
    ("bob", FleetRole::Submitter),
    ("w1", FleetRole::Worker),
    ("eve", FleetRole::Watcher),
    ("op", FleetRole::Operator),
];

/// Starts a server with these users, whose passwords are their names.
pub(crate) fn server() -> Option<Server> {
    Server::start_with(&accounts())
}

fn accounts() -> String {
    let users = USERS.map(|(name, role)| {
        FleetUser::new(name, role, FleetLogin::Password(name.to_owned())).unwrap()
    });
    server_accounts("TEAM", &users)
}

pub(crate) fn url(server: &Server, user: &str) -> String {
    server
        .url
        .replace("nats://", &format!("nats://{user}:{user}@"))
}

pub(crate) async fn fleet(server: &Server, user: &str, owner: &str) -> Fleet {
    let mut options = FleetOptions::new(url(server, user), owner);
    options.inbox = Some(format!("_INBOX_{user}"));
    Fleet::connect(options).await.unwrap()
}

/// Connects an operator, who makes the streams.
pub(crate) async fn operator(server: &Server) -> Fleet {
    let op = fleet(server, "op", "op").await;
    op.init(&limits()).await.unwrap();
    op
}

/// What servers have refused, and when. It comes as an event of the connection: the request gets no answer.
static REFUSED: LazyLock<watch::Sender<Vec<(Instant, String)>>> =
    LazyLock::new(watch::Sender::default);

/// Waits for what becomes of a request about this subject; `None` if it is refused.
async fn unless_refused<T>(subject: &str, request: impl Future<Output = T>) -> Option<T> {
    let began = Instant::now();
    let mut refused = REFUSED.subscribe();
    let names_it =
        |(at, error): &(Instant, String)| *at >= began && error.contains(&format!("\"{subject}\""));
    tokio::select! {
        done = request => Some(done),
        _ = refused.wait_for(|all| all.iter().any(names_it)) => None,
    }
}

/// Connects without the library.
pub(crate) async fn client(server: &Server, user: &str) -> (Client, Context) {
    let options = ConnectOptions::new()
        .custom_inbox_prefix(format!("_INBOX_{user}"))
        .request_timeout(Some(ANSWER));
    let options = options.user_and_password(user.to_owned(), user.to_owned());
    let options = options.event_callback(|event| {
        if let Event::ServerError(ServerError::Other(error)) = event {
            REFUSED.send_modify(|all| all.push((Instant::now(), error)));
        }
        std::future::ready(())
    });
    let client = options.connect(&server.url).await.unwrap();
    let context = jetstream::context::ContextBuilder::new();
    let context = context.timeout(ANSWER).ack_timeout(ANSWER);
    (client.clone(), context.build(client))
}

/// Returns the error of something that must be refused at once.
async fn refused<T: std::fmt::Debug>(
    work: impl Future<Output = Result<T, ServiceError>>,
) -> String {
    let began = Instant::now();
    let error = work.await.unwrap_err();
    assert!(
        began.elapsed() < AT_ONCE,
        "{error} after {:?}",
        began.elapsed()
    );
    assert_eq!(error.code, Some(ProblemCode::InsufficientScope), "{error}");
    assert!(error.message.contains("ask the operator"), "{error}");
    error.message
}

#[test]
fn a_run_needs_no_more_than_the_roles_permit() {
    let Some(server) = server() else { return };
    let shared = Shared::new();
    block_on(async {
        let op = operator(&server).await;
        let mut w1 = Machine::start_at(&url(&server, "w1"), "w1", &shared.agent());
        until_workers(&op, 1).await;
        let ann = fleet(&server, "ann", "ann").await;
        let anns: Arc<dyn RunService> = Arc::new(FleetRuns::new(&ann));
        let run = submit(&anns, "run").await;
        shared.until_count(1);
        // Its machine answers the owner.
        let began = Instant::now();
        assert!(run.view().await.unwrap().summary.live.is_some());
        assert!(began.elapsed() < AT_ONCE);
        shared.go();
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert!(read(&run).await.ends_with(b"\n"));
        assert_eq!(anns.list(RunQuery::default()).await.unwrap().runs.len(), 1);
        assert_eq!(anns.files("run").await.unwrap().files.len(), 0);
        // Who watches reads the runs of the owner whom it names, and starts none.
        let eve = fleet(&server, "eve", "ann").await;
        let watched: Arc<dyn RunService> = Arc::new(FleetRuns::new(&eve));
        let seen = RunHandle::new(watched.clone(), "run");
        assert_eq!(read(&seen).await, read(&run).await);
        assert_eq!(seen.view().await.unwrap().prompt.as_deref(), Some("hello"));
        let spec = RunSpec::new("claude", "hello");
        refused(RunHandle::start(watched, "other", spec)).await;
        // An owner has no runs of another one.
        let bob = fleet(&server, "bob", "bob").await;
        let bobs: Arc<dyn RunService> = Arc::new(FleetRuns::new(&bob));
        assert_eq!(bobs.list(RunQuery::default()).await.unwrap().runs.len(), 0);
        // With another owner's name, it reads nothing.
        let false_ann = fleet(&server, "bob", "ann").await;
        let false_anns: Arc<dyn RunService> = Arc::new(FleetRuns::new(&false_ann));
        refused(false_anns.show("run")).await;
        refused(false_anns.list(RunQuery::default())).await;
        let spec = RunSpec::new("claude", "hello");
        refused(RunHandle::start(false_anns.clone(), "other", spec)).await;
        let log = RunHandle::new(false_anns, "run");
        refused(async { log.follow(0).next().await.unwrap() }).await;
        // Only an operator makes streams.
        for (user, role) in USERS {
            if role != FleetRole::Operator {
                let fleet = fleet(&server, user, user).await;
                refused(Box::pin(fleet.init(&limits()))).await;
            }
        }
        w1.drain();
    });
}

#[test]
fn worker_that_cannot_write_sessions_runs_what_has_no_key() {
    let (all, salt) = ("\"$KV.tm_sessions.>\"", "\"$KV.tm_sessions.=fleet.salt\"");
    let Some(server) = Server::start_with(&accounts().replace(all, salt)) else {
        return;
    };
    let shared = Shared::answering();
    block_on(async {
        let op = operator(&server).await;
        let _w1 = Machine::start_at(&url(&server, "w1"), "w1", &shared.agent());
        until_workers(&op, 1).await;
        let anns: Arc<dyn RunService> =
            Arc::new(FleetRuns::new(&fleet(&server, "ann", "ann").await));
        let mut with_key = RunSpec::new("claude", "hello");
        with_key.session_key = Some("key".to_owned());
        let waits = RunHandle::start(anns.clone(), "key", with_key)
            .await
            .unwrap();
        let detail = until_waits(&waits, QueueReason::Refused).await;
        assert!(
            detail.contains("does not permit this") && detail.contains("$KV.tm_sessions.ann."),
            "{detail}"
        );
        // The session of its agent is not found later.
        assert_eq!(end(&submit(&anns, "run").await).await, RunStatus::Completed);
    });
}

fn about<'a>(findings: &'a [Finding], what: &str) -> &'a Finding {
    let mut findings = findings.iter();
    findings.find(|finding| finding.what == what).unwrap()
}

#[test]
fn user_learns_its_role_or_what_it_lacks_without_one() {
    let Some(server) = server() else { return };
    block_on(async {
        let _op = operator(&server).await;
        for (user, role) in USERS {
            let findings = fleet(&server, user, user).await.check().await.unwrap();
            let is_bad = |finding: &Finding| finding.verdict == FindingVerdict::Bad;
            assert!(!findings.iter().any(is_bad), "{user}: {findings:?}");
            let detail = &about(&findings, "permissions").detail;
            if role == FleetRole::Operator {
                assert_eq!(
                    detail,
                    "of an operator: this user may do everything, and so read all prompts"
                );
            } else {
                assert!(
                    detail.contains(&format!("of a {role} with the name {user}")),
                    "{detail}"
                );
            }
            let clock = about(&findings, "clock");
            assert_eq!(clock.verdict, FindingVerdict::Good, "{user}: {clock:?}");
        }
        let findings = fleet(&server, "ann", "bob").await.check().await.unwrap();
        let permissions = about(&findings, "permissions");
        assert_eq!(permissions.verdict, FindingVerdict::Bad);
        let detail = &*permissions.detail;
        assert_eq!(detail, "of a submitter with the name ann, and not bob");
    });
}

/// Returns whether the server has stored a message.
pub(crate) async fn publishes(context: &Context, subject: &str) -> bool {
    let stored = async { context.publish(subject.to_owned(), "x".into()).await?.await };
    unless_refused(subject, stored)
        .await
        .is_some_and(|stored| stored.is_ok())
}

/// Returns the answer to a request; `None` if it is refused, or there is none.
async fn answer(client: &Client, subject: &str, body: Vec<u8>) -> Option<Message> {
    let request = client.request(subject.to_owned(), body.into());
    unless_refused(subject, request).await?.ok()
}

async fn answers(client: &Client, subject: &str, body: serde_json::Value) -> bool {
    let body = serde_json::to_vec(&body).unwrap();
    let answer = answer(client, subject, body).await;
    answer.is_some_and(|answer| {
        let is_error = String::from_utf8_lossy(&answer.payload).contains("\"error\"");
        answer.status.is_none() && !is_error
    })
}

/// Returns whether the server answers with the last message of this subject.
async fn reads(client: &Client, stream: &str, subject: &str) -> bool {
    let direct = format!("$JS.API.DIRECT.GET.{stream}.{subject}");
    answers(client, &direct, json!({})).await
}

/// Returns whether a consumer can be made at the subject of this filter, whose own filter may be another one.
async fn consumes(client: &Client, stream: &str, at: &str, filter: &str) -> bool {
    let create = format!("$JS.API.CONSUMER.CREATE.{stream}{at}");
    let config = json!({ "name": "c", "filter_subject": filter, "ack_policy": "none" });
    let body = json!({ "stream_name": stream, "config": config });
    answers(client, &create, body).await
}

#[test]
fn requests_beyond_a_role_are_refused_by_the_server() {
    let Some(server) = server() else { return };
    block_on(async {
        let _op = operator(&server).await;
        let (op, op_context) = client(&server, "op").await;
        let (ann, ann_context) = client(&server, "ann").await;
        let (eve, eve_context) = client(&server, "eve").await;
        let (w1, w1_context) = client(&server, "w1").await;
        assert!(publishes(&op_context, "$KV.tm_runs.bob.r1").await);
        assert!(publishes(&op_context, "tm.log.bob.r1").await);
        assert!(publishes(&op_context, "tm.log.ann.r1").await);
        // What a submitter can write.
        assert!(publishes(&ann_context, "$KV.tm_runs.ann.r1").await);
        assert!(publishes(&ann_context, "tm.work.default.claude.n").await);
        assert!(publishes(&ann_context, "tm.file.ann.r1.u.a.0").await);
        for subject in [
            "$KV.tm_runs.bob.r1",
            "$KV.tm_workers.=here.w1",
            "tm.log.ann.r1",
            "tm.file.bob.r1.u.a.0",
        ] {
            assert!(!publishes(&ann_context, subject).await, "{subject}");
        }
        // What it can read.
        assert!(reads(&ann, "KV_tm_runs", "$KV.tm_runs.ann.r1").await);
        assert!(reads(&ann, "TM_LOG", "tm.log.ann.r1").await);
        assert!(!reads(&ann, "KV_tm_runs", "$KV.tm_runs.bob.r1").await);
        let last = json!({ "last_by_subj": "$KV.tm_runs.bob.r1" });
        assert!(answers(&op, "$JS.API.STREAM.MSG.GET.KV_tm_runs", last.clone()).await);
        assert!(!answers(&ann, "$JS.API.STREAM.MSG.GET.KV_tm_runs", last.clone()).await);
        assert!(!answers(&ann, "$JS.API.DIRECT.GET.KV_tm_runs", last).await);
        // The filter of the body must be that of the subject.
        for (stream, at, filter, is_allowed) in [
            ("TM_LOG", ".c.tm.log.ann.>", "tm.log.ann.>", true),
            ("TM_LOG", ".c.tm.log.ann.>", "tm.log.bob.>", false),
            ("TM_LOG", ".c.tm.log.bob.r1", "tm.log.bob.r1", false),
            ("TM_LOG", ".c.tm.log.*.r1", "tm.log.*.r1", false),
            ("TM_LOG", ".c.tm.log.>", "tm.log.>", false),
            ("TM_LOG", "", "", false),
            ("TM_WORK", ".c.tm.work.>", "tm.work.>", false),
        ] {
            let made = consumes(&ann, stream, at, filter).await;
            assert_eq!(made, is_allowed, "{stream}{at} {filter}");
        }
        for request in [
            "STREAM.DELETE.TM_LOG",
            "STREAM.PURGE.TM_LOG",
            "STREAM.INFO.TM_FILE",
            "CONSUMER.NAMES.TM_LOG",
        ] {
            let request = format!("$JS.API.{request}");
            assert!(!answers(&ann, &request, json!({})).await, "{request}");
        }
        // None reads the answers to another one.
        let mut listens = ann.subscribe("_INBOX_bob.>").await.unwrap();
        ann.flush().await.unwrap();
        op.publish("_INBOX_bob.1", "secret".into()).await.unwrap();
        op.flush().await.unwrap();
        let heard = timeout(Duration::from_millis(300), super::next(&mut listens)).await;
        assert!(!matches!(heard, Ok(Some(_))), "{heard:?}");
        // Why a worker left a run to others can have parts of the run.
        assert!(publishes(&w1_context, "$KV.tm_workers.=why.ann.r1.w1").await);
        assert!(publishes(&w1_context, "$KV.tm_workers.=why.bob.r1.w1").await);
        for (filter, is_allowed) in [
            ("$KV.tm_workers.=here.*", true),
            ("$KV.tm_workers.=why.ann.>", true),
            ("$KV.tm_workers.=why.bob.>", false),
            ("$KV.tm_workers.=why.>", false),
            ("$KV.tm_workers.>", false),
        ] {
            let made = consumes(&ann, "KV_tm_workers", &format!(".c.{filter}"), filter).await;
            assert_eq!(made, is_allowed, "{filter}");
        }
        assert!(publishes(&w1_context, "$KV.tm_sessions.=fleet.salt").await);
        for (who, may_read) in [(&w1, true), (&ann, false), (&eve, false)] {
            let salt = reads(who, "KV_tm_sessions", "$KV.tm_sessions.=fleet.salt");
            assert_eq!(salt.await, may_read);
        }
        // A worker takes hints, and speaks for itself only.
        let queue = w1_context.get_stream_no_info("TM_WORK").await.unwrap();
        let config = pull::Config {
            durable_name: Some("default_claude".to_owned()),
            filter_subject: "tm.work.default.claude.*".to_owned(),
            ack_policy: AckPolicy::Explicit,
            ..pull::Config::default()
        };
        let hints = queue.create_consumer(config).await.unwrap();
        let mut hints = hints.fetch().max_messages(1).messages().await.unwrap();
        let hint = super::next(&mut hints).await.unwrap().unwrap();
        // Silence of a busy server is no refusal.
        let taken = async { while hint.double_ack().await.is_err() {} };
        timeout(LIMIT, taken).await.unwrap();
        assert!(publishes(&w1_context, "$KV.tm_workers.=here.w1").await);
        assert!(!publishes(&w1_context, "$KV.tm_workers.=here.w2").await);
        assert!(!answers(&w1, "$JS.API.STREAM.DELETE.TM_LOG", json!({})).await);
        let mut asked = w1.subscribe("tm.ctl.*.*").await.unwrap();
        w1.flush().await.unwrap();
        let worker = w1.clone();
        let reply = tokio::spawn(async move {
            let request = super::next(&mut asked).await.unwrap();
            let reply = request.reply.unwrap();
            worker.publish(reply, "taken".into()).await.unwrap();
        });
        // The server may hear of the request before it hears of the subscription.
        let taken = async {
            loop {
                if let Some(taken) = answer(&ann, "tm.ctl.ann.r1", Vec::new()).await {
                    return taken;
                }
            }
        };
        let taken = timeout(LIMIT, taken).await.unwrap();
        assert_eq!(&*taken.payload, b"taken");
        reply.await.unwrap();
        let foreign = answer(&ann, "tm.ctl.bob.r1", Vec::new()).await;
        assert!(foreign.is_none(), "{foreign:?}");
        // Who watches reads all, and changes nothing.
        assert!(reads(&eve, "KV_tm_runs", "$KV.tm_runs.bob.r1").await);
        assert!(!publishes(&eve_context, "$KV.tm_runs.eve.r1").await);
        let foreign = answer(&eve, "tm.ctl.ann.r1", Vec::new()).await;
        assert!(foreign.is_none(), "{foreign:?}");
        // A consumer delivers where its maker may not publish, but into no stream, and what listens there is a worker,
        // which takes only requests with an inbox.
        let mut heard = w1.subscribe("tm.ctl.bob.r1").await.unwrap();
        w1.flush().await.unwrap();
        let records = ann_context.get_stream_no_info("KV_tm_runs").await.unwrap();
        for subject in ["tm.log.bob.r1", "tm.ctl.bob.r1"] {
            let push = push::Config {
                name: Some(subject.replace('.', "-")),
                filter_subject: "$KV.tm_runs.ann.r1".to_owned(),
                deliver_subject: subject.to_owned(),
                ack_policy: AckPolicy::Explicit,
                ..push::Config::default()
            };
            records.create_consumer(push).await.unwrap();
        }
        let delivered = timeout(LIMIT, super::next(&mut heard)).await.unwrap();
        assert!(delivered.unwrap().reply.unwrap().starts_with("$JS.ACK."));
        let log = op_context.get_stream("TM_LOG").await.unwrap();
        let last = log.direct_get_last_for_subject("tm.log.bob.r1").await;
        assert_eq!(last.unwrap().sequence, 1);
    });
}

/// The page with the server's configuration, which is that of the code. `SNAPSHOTS=overwrite` writes it.
#[test]
fn the_page_of_permissions_has_the_configuration_of_the_roles() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/fleet-permissions.md"
    );
    let text = std::fs::read_to_string(page).unwrap();
    let login = |name: &str| FleetLogin::Nkey(format!("U…{name}"));
    let users = USERS
        .into_iter()
        .filter(|(name, _)| *name != "bob")
        .map(|(name, role)| FleetUser::new(name, role, login(name)).unwrap());
    let config = server_accounts("TEAM", &users.collect::<Vec<_>>());
    let (before, rest) = text.split_once("```conf\n").unwrap();
    let (shown, after) = rest.split_once("```\n").unwrap();
    if std::env::var("SNAPSHOTS").is_ok_and(|what| what == "overwrite") {
        std::fs::write(page, format!("{before}```conf\n{config}```\n{after}")).unwrap();
    } else {
        assert_eq!(shown, config, "SNAPSHOTS=overwrite writes it");
    }
}
