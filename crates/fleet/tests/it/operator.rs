//! What an operator does: making and checking the streams.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::DiscardPolicy;
use teamster_api::{ProblemCode, RunHandle, RunSpec};
use teamster_core::{RunStatus, Stopping};
use teamster_fleet::{FindingVerdict, Fleet, FleetOptions};

use super::contract::limits;
use super::machine::{
    LIMIT, Machine, Shared, block_on, end, jetstream, read, runs, runs_of, until_workers,
};
use super::server::Server;

#[test]
fn streams_are_made_once_and_foreign_ones_are_refused() {
    let server = server_or_skip!();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (fleet, _) = runs_of(&server, "ann").await;
        let findings = fleet.check().await.unwrap();
        let missing: Vec<_> = (findings.iter())
            .filter(|finding| finding.verdict == FindingVerdict::Bad)
            .map(|finding| &*finding.what)
            .collect();
        assert_eq!(missing.len(), 8, "{findings:?}");
        fleet.init(&limits()).await.unwrap();
        fleet.init(&limits()).await.unwrap();
        let findings = fleet.check().await.unwrap();
        let bad = |finding: &&teamster_fleet::Finding| finding.verdict == FindingVerdict::Bad;
        assert_eq!(findings.iter().find(bad), None);
        // One that was made by hand.
        let jetstream = jetstream(&server).await;
        jetstream.delete_stream("TM_LOG").await.unwrap();
        let foreign = async_nats::jetstream::stream::Config {
            name: "TM_LOG".to_owned(),
            subjects: vec!["tm.log.>".to_owned()],
            max_age: Duration::from_mins(1),
            ..Default::default()
        };
        jetstream.create_stream(foreign).await.unwrap();
        let refused = fleet.init(&limits()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams));
        let message = refused.message;
        assert!(
            message.contains("TM_LOG exists with other settings"),
            "{message}"
        );
        assert!(
            message.contains("max_age is 60s instead of 604800s"),
            "{message}"
        );
    });
}

/// Makes the stream of hints for machines as another version of the layout has it.
async fn make_hosts(server: &Server, layout: u32) -> async_nats::jetstream::stream::Stream {
    let jetstream = jetstream(server).await;
    jetstream.delete_stream("TM_HOST").await.unwrap();
    let config = async_nats::jetstream::stream::Config {
        name: "TM_HOST".to_owned(),
        subjects: vec!["tm.host.>".to_owned()],
        discard: DiscardPolicy::New,
        max_messages: 7,
        max_messages_per_subject: 1,
        max_age: Duration::from_hours(2),
        metadata: [("tm_layout".to_owned(), layout.to_string())].into(),
        ..Default::default()
    };
    jetstream.create_stream(config).await.unwrap()
}

#[test]
fn older_layout_is_updated_with_its_messages_and_limits() {
    let server = server_or_skip!();
    block_on(async {
        let (fleet, _) = runs(&server, 0).await;
        let mut hosts = make_hosts(&server, 2).await;
        let jetstream = jetstream(&server).await;
        let sent = jetstream.publish("tm.host.w1.ann.run", "ann.run".into());
        sent.await.unwrap().await.unwrap();
        let machine = tempfile::tempdir().unwrap();
        let said = Machine::refused(machine.path(), &server.url, "w1");
        assert!(
            said.contains("layout 2") && said.contains("an operator brings it up to date"),
            "{said}"
        );
        fleet.init(&limits()).await.unwrap();
        let found = hosts.info().await.unwrap();
        assert_eq!(found.config.max_age, Duration::from_hours(1));
        // Limits that are not given stay.
        assert_eq!((found.config.max_messages, found.state.messages), (7, 1));
    });
}

#[test]
fn a_worker_names_the_layout_of_a_newer_version() {
    let server = server_or_skip!();
    block_on(async {
        let (fleet, _) = runs(&server, 0).await;
        make_hosts(&server, 9).await;
        let machine = tempfile::tempdir().unwrap();
        let said = Machine::refused(machine.path(), &server.url, "w1");
        assert!(
            said.contains("newer version of teamster (layout 9): install that one"),
            "{said}"
        );
        let refused = fleet.init(&limits()).await.unwrap_err().message;
        assert!(
            refused.contains("TM_HOST was made by a newer version"),
            "{refused}"
        );
        let jetstream = jetstream(&server).await;
        jetstream.delete_stream("TM_HOST").await.unwrap();
        let said = Machine::refused(machine.path(), &server.url, "w1");
        assert!(said.contains("the fleet has no stream TM_HOST"), "{said}");
    });
}

#[test]
fn missing_item_is_waited_for_once() {
    let server = server_or_skip!();
    block_on(async {
        let (_, service) = runs(&server, 0).await;
        let spec = RunSpec::new("claude", "hello");
        let run = RunHandle::start(service.clone(), "run", spec).await;
        run.unwrap().cancel(Stopping::Graceful).await.unwrap();
        let jetstream = jetstream(&server).await;
        let records = jetstream.get_stream("KV_tm_runs").await.unwrap();
        records.purge().await.unwrap();
        let mut times = Vec::new();
        for _ in 0..2 {
            let began = Instant::now();
            let gone = service.show("run").await.unwrap_err();
            assert_eq!(gone.code, Some(ProblemCode::RunNotFound));
            times.push(began.elapsed());
        }
        // The first read cannot know that no server has it.
        let waits = Duration::from_secs(2);
        assert!(times[0] >= waits && times[1] < waits, "{times:?}");
    });
}

#[test]
fn consumers_and_workers_are_not_asked_for_repeatedly() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let mut requests = client.subscribe("$JS.API.CONSUMER.CREATE.>").await.unwrap();
        client.flush().await.unwrap();
        let _machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        client
            .publish("$JS.API.CONSUMER.CREATE.begin", "".into())
            .await
            .unwrap();
        client.flush().await.unwrap();
        let mut waiting = Vec::new();
        for number in 0..20 {
            let spec = RunSpec::new("claude", "hello");
            let run = RunHandle::start(service.clone(), format!("run-{number}"), spec).await;
            waiting.push(run.unwrap());
        }
        for run in &waiting {
            assert_eq!(end(run).await, RunStatus::Completed);
        }
        client
            .publish("$JS.API.CONSUMER.CREATE.end", "".into())
            .await
            .unwrap();
        let mut asked = Vec::new();
        while let Some(request) = super::next(&mut requests).await {
            if request.subject.ends_with(".end") {
                break;
            }
            asked.push(request.subject.to_string());
        }
        let count = |part: &str| {
            asked
                .iter()
                .filter(|subject| subject.contains(part))
                .count()
        };
        assert_eq!(
            (count("TM_HOST"), count("TM_WORK.default_claude")),
            (1, 1),
            "{asked:?}"
        );
        // By the submissions one for each two seconds, and one for each ten by the worker that repairs.
        let begin = asked
            .iter()
            .position(|subject| subject.rsplit('.').next() == Some("begin"))
            .unwrap();
        let reads = asked[begin..]
            .iter()
            .filter(|subject| subject.contains("=here"));
        assert!(reads.count() < 10, "{asked:?}");
    });
}

#[test]
fn readers_leave_no_consumer_behind() {
    let server = server_or_skip!();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        for number in 0..20 {
            let spec = RunSpec::new("claude", "hello");
            let run = RunHandle::start(service.clone(), format!("run-{number}"), spec).await;
            let run = run.unwrap();
            run.cancel(Stopping::Graceful).await.unwrap();
            assert_eq!(read(&run).await.split(|byte| *byte == b'\n').count(), 2);
        }
        assert_eq!(fleet.workers().await.unwrap(), []);
        let jetstream = jetstream(&server).await;
        let until = Instant::now() + LIMIT / 6;
        let left = loop {
            let mut left = 0;
            for stream in ["KV_tm_runs", "KV_tm_workers", "TM_LOG", "TM_FILE"] {
                let mut stream = jetstream.get_stream(stream).await.unwrap();
                left += stream.info().await.unwrap().state.consumer_count;
            }
            if left == 0 || Instant::now() > until {
                break left;
            }
        };
        assert_eq!(left, 0);
    });
}

#[test]
fn invalid_owners_and_missing_servers_are_refused() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let url = "nats://127.0.0.1:1";
        let refused = Fleet::connect(FleetOptions::new(url, "jürgen")).await;
        assert_eq!(refused.unwrap_err().parameter.as_deref(), Some("owner"));
        let absent = Fleet::connect(FleetOptions::new(url, "ann")).await;
        let absent = absent.unwrap_err();
        assert!(
            absent.retryable && absent.message.contains("cannot be reached"),
            "{absent}"
        );
    });
}
