//! What an operator does: making and checking the streams.

use std::time::Instant;

use teamster_api::{ProblemCode, RunHandle, RunSpec};
use teamster_fleet::{FindingVerdict, Fleet, FleetOptions};

use super::contract::limits;
use super::machine::{LIMIT, block_on, read, runs};
use super::server::Server;

#[test]
fn streams_are_made_once_and_those_of_another_program_are_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let fleet = Fleet::connect(FleetOptions::new(&server.url, "ann"))
            .await
            .unwrap();
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
        let client = async_nats::connect(&server.url).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
        jetstream.delete_stream("TM_LOG").await.unwrap();
        let foreign = async_nats::jetstream::stream::Config {
            name: "TM_LOG".to_owned(),
            subjects: vec!["tm.log.>".to_owned()],
            max_age: std::time::Duration::from_mins(1),
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

#[test]
fn readers_leave_no_consumer_behind() {
    let Some(server) = Server::start() else {
        return;
    };
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        for number in 0..20 {
            let spec = RunSpec::new("claude", "hello");
            let run = RunHandle::start(service.clone(), format!("run-{number}"), spec).await;
            let run = run.unwrap();
            run.cancel(false).await.unwrap();
            assert_eq!(read(&run).await.split(|byte| *byte == b'\n').count(), 2);
        }
        assert_eq!(fleet.workers().await.unwrap(), []);
        let client = async_nats::connect(&server.url).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
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
fn owners_that_cannot_be_in_a_subject_and_servers_that_are_not_there_are_refused() {
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
