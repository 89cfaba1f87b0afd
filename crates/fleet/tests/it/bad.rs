//! Servers, logins and workers that are not as they should be.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use teamster_api::{ProblemCode, RunHandle, RunService, RunSpec};
use teamster_core::RunStatus;
use teamster_fleet::{
    FindingVerdict, Fleet, FleetLogin, FleetOptions, FleetRole, FleetRuns, FleetUser,
    server_accounts,
};
use tokio::time::timeout;

use super::contract::limits;
use super::machine::{
    LIMIT, Machine, Shared, block_on, jetstream, runs_of, until_workers, with_worker,
};
use super::server::Server;

/// Time in which a server that cannot be used must be known.
const SOON: Duration = Duration::from_secs(3);

#[test]
fn a_server_without_jetstream_is_refused_with_what_to_do() {
    let Some(server) = Server::start_without_jetstream("") else {
        return;
    };
    block_on(async {
        let (fleet, service) = runs_of(&server, "ann").await;
        let began = Instant::now();
        let spec = RunSpec::new("claude", "hello");
        let started = RunHandle::start(service.clone(), "run", spec)
            .await
            .map(drop);
        for refused in [
            fleet.init(&limits()).await.unwrap_err(),
            started.unwrap_err(),
            service.show("run").await.map(drop).unwrap_err(),
        ] {
            assert_eq!(refused.code, Some(ProblemCode::Unsupported), "{refused}");
            assert!(
                refused.message.contains("no JetStream: start it with"),
                "{refused}"
            );
        }
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        let findings = fleet.check().await.unwrap();
        let bad = findings
            .iter()
            .find(|finding| finding.verdict == FindingVerdict::Bad);
        assert!(bad.unwrap().detail.contains("no JetStream"), "{findings:?}");
    });
}

/// Made by hand: a server of an old version, which answers nothing but `PING`.
fn old_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let info = r#"{"server_id":"S","server_name":"s","version":"2.11.4","proto":1,"host":"127.0.0.1","port":4222,"headers":true,"max_payload":65536,"jetstream":true,"client_id":1,"client_ip":"127.0.0.1"}"#;
            write!(client, "INFO {info}\r\n").unwrap();
            let lines = BufReader::new(client.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                if line == "PING" {
                    let _ = client.write_all(b"PONG\r\n");
                }
            }
        }
    });
    format!("nats://{address}")
}

#[test]
fn an_old_server_is_refused_before_anything_is_made_there() {
    block_on(async {
        let fleet = Fleet::connect(FleetOptions::new(old_server(), "ann"))
            .await
            .unwrap();
        let refused = fleet.init(&limits()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::Unsupported));
        assert!(refused.message.contains("version 2.11.4"), "{refused}");
        let service = FleetRuns::new(&fleet);
        let refused = service.show("run").await.map(drop).unwrap_err();
        assert!(refused.message.ends_with("use 2.14 or newer"), "{refused}");
        let findings = fleet.check().await.unwrap();
        let bad = |what: &str| {
            let mut findings = findings.iter();
            let found = findings.find(|finding| finding.what == what).unwrap();
            assert_eq!(found.verdict, FindingVerdict::Bad, "{found:?}");
            (&*found.detail, found.next.as_deref().unwrap_or_default())
        };
        assert_eq!(
            bad("version"),
            ("2.11.4 can lose acknowledged writes", "use 2.14 or newer")
        );
        let (detail, next) = bad("max_payload");
        assert_eq!(detail, "a message may have 65536 bytes only");
        assert!(next.contains("at least 1048576"), "{next}");
        assert!(bad("jetstream").0.contains("does not answer"));
    });
}

#[test]
fn a_wrong_login_is_named_as_such() {
    let login = FleetLogin::Password("right".to_owned());
    let ann = FleetUser::new("ann", FleetRole::Submitter, login).unwrap();
    let Some(server) = Server::start_with(&server_accounts("TEAM", &[ann])) else {
        return;
    };
    block_on(async {
        for login in ["", "ann:wr%40ng@", "eve:right@"] {
            let url = server.url.replace("nats://", &format!("nats://{login}"));
            let refused = Fleet::connect(FleetOptions::new(url, "ann"))
                .await
                .unwrap_err();
            assert_eq!(
                refused.code,
                Some(ProblemCode::Unauthorized),
                "{login} {refused}"
            );
            assert!(
                refused.message.contains("refuses the credentials"),
                "{refused}"
            );
            assert!(!refused.message.contains("wr"), "{refused}");
        }
        let refused = Fleet::connect(FleetOptions::new("nats://a b", "ann")).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InvalidParams), "{refused}");
    });
}

#[test]
fn a_workers_name_is_on_one_machine() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service, mut first) = with_worker(&server, &shared.agent()).await;
        let instances = async || {
            let workers = fleet.workers().await.unwrap();
            let about = workers.into_iter().map(|it| (it.worker, it.instance));
            about.collect::<Vec<_>>()
        };
        let present = instances().await;
        let other = tempfile::tempdir().unwrap();
        let said = Machine::refused(other.path(), &server.url, "w1");
        assert!(
            said.contains("another machine") && said.contains("give this one another name"),
            "{said}"
        );
        assert_eq!(instances().await, present);
        // Its own next process is no other one, also while the report of a killed one is there.
        first.kill();
        first.restart(&shared.agent());
        let run = RunHandle::start(service, "run", RunSpec::new("claude", "hello"));
        let result = timeout(LIMIT, run.await.unwrap().result()).await;
        assert_eq!(result.unwrap().unwrap().status, RunStatus::Completed);
        // Another machine may have the name after its end, and then this one is refused.
        first.drain();
        let _second = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        let said = Machine::refused(first.folder.path(), &server.url, "w1");
        assert!(said.contains("another machine"), "{said}");
    });
}

#[test]
fn a_worker_whose_name_was_taken_while_it_was_away_ends() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, _, mut first) = with_worker(&server, &shared.agent()).await;
        // As that of another machine, after its own report has passed.
        let jetstream = jetstream(&server).await;
        let mut present = fleet.workers().await.unwrap().remove(0);
        present.machine = "1".repeat(32).parse().unwrap();
        let json = serde_json::to_vec(&present).unwrap();
        let report = jetstream.publish("$KV.tm_workers.=here.w1", json.into());
        report.await.unwrap().await.unwrap();
        first.until_dead();
        assert_eq!(fleet.workers().await.unwrap(), [present]);
    });
}
