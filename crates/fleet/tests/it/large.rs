//! Descriptions that are too large for a message, and logs that are read after their copy has aged out.

use std::fs;

use teamster_api::{ProblemCode, RunHandle, RunSpec};
use teamster_core::{Image, RunStatus};
use tokio::time::timeout;

use super::machine::{LIMIT, Machine, Shared, block_on, read, runs, until_workers};
use super::server::Server;

/// Made by hand: what Claude Code prints for a prompt. The answer is the length of the line with the prompt.
pub(crate) const MEASURES: &str = r#"#!/bin/sh
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) exit 0 ;;
    *'"type":"control_request"'*)
      rest=${line#*'"request_id":"'}
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "${rest%%\"*}" ;;
    *)
      printf '{"type":"system","subtype":"init","session_id":"s","model":"opus"}\n'
      printf '{"type":"assistant","session_id":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"%s"}]}}\n' "${#line}"
      printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"result":"%s","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n' "${#line}" ;;
  esac
done
"#;

#[test]
fn a_large_description_arrives_whole_and_its_log_outlives_the_copy() {
    let Some(server) = Server::start() else {
        return;
    };
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let machine = Machine::start(&server, "w1", MEASURES);
        until_workers(&fleet, 1).await;
        let mut spec = RunSpec::new("claude", "x".repeat(1 << 20));
        spec.images = vec![Image::bytes("image/png", vec![7; 1 << 20])];
        let start = || RunHandle::start(service.clone(), "run", spec.clone());
        let run = start().await.unwrap();
        // The same run.
        let again = start().await.unwrap();
        assert_eq!(again.id(), run.id());
        let mut other = spec.clone();
        other.prompt.push('y');
        let refused = service.start("run", other.into()).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::RunExists));
        let result = timeout(LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!(result.status, RunStatus::Completed);
        let length: usize = result.text.parse().unwrap();
        // The prompt, and the image in base64.
        assert!(length > (1 << 20) + (1 << 20) / 3 * 4, "{length}");
        let view = run.view().await.unwrap();
        assert_eq!(view.prompt.map(|prompt| prompt.len()), Some(1 << 20));
        assert!(service.files("run").await.unwrap().files.is_empty());
        let copy = read(&run).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
        let logs = jetstream.get_stream("TM_LOG").await.unwrap();
        logs.purge().await.unwrap();
        assert_eq!(read(&run).await, copy);
        // The original is not needed for it.
        drop(machine);
        assert_eq!(read(&run).await, copy);
        let mut tail = run.follow(2);
        let next = timeout(LIMIT, tail.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(next.seq(), 3);
    });
}

#[test]
fn a_log_whose_beginning_has_aged_out_is_read_from_the_file() {
    let Some(server) = Server::start() else {
        return;
    };
    let shared = Shared::new();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        let spec = RunSpec::new("claude", "hello");
        let run = RunHandle::start(service, "run", spec).await.unwrap();
        let mut log = run.follow(0);
        for _ in 0..10 {
            timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        }
        shared.go();
        let copy = read(&run).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
        let logs = jetstream.get_stream("TM_LOG").await.unwrap();
        logs.purge().keep(1).await.unwrap();
        assert_eq!(read(&run).await, copy);
        assert!(fs::exists(shared.0.path().join("count")).unwrap());
    });
}
