//! Descriptions that are too large for a message, and logs that are read after their copy has aged out.

use std::fs;

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::message::StreamMessage;
use teamster_api::{LogLine, Placement, ProblemCode, RunHandle, RunSpec};
use teamster_core::{Image, RunStatus, Stopping};
use teamster_testkit::run_service::claude_that;
use tokio::time::{interval, timeout};

use super::chaos::processes::most_mebibytes;
use super::machine::{
    LIMIT, Machine, Shared, block_on, jetstream, read, runs_of, submit, until_workers, with_worker,
};

/// What an agent does that answers with the length of the line with the prompt.
pub(crate) const MEASURES: &str = r#"init; say "${#line}""#;

#[test]
fn large_description_arrives_and_its_log_outlives_the_copy() {
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, service, machine) = with_worker(&server, &claude_that(MEASURES)).await;
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
        let jetstream = jetstream(&server).await;
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
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (_fleet, service, _machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        let mut log = run.follow(0);
        for _ in 0..10 {
            timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        }
        shared.go();
        let copy = read(&run).await;
        let jetstream = jetstream(&server).await;
        let logs = jetstream.get_stream("TM_LOG").await.unwrap();
        logs.purge().keep(1).await.unwrap();
        assert_eq!(read(&run).await, copy);
        // A later run with this id, which was cancelled before its start, shows nothing of this one.
        logs.purge().await.unwrap();
        let records = jetstream.get_stream("KV_tm_runs").await.unwrap();
        records.purge().await.unwrap();
        let (_, again) = runs_of(&server, "ann").await;
        let mut spec = RunSpec::new("claude", "hello");
        spec.placement = Placement::pool("other");
        let later = RunHandle::start(again, "run", spec).await.unwrap();
        later.cancel(Stopping::Graceful).await.unwrap();
        let left = String::from_utf8(read(&later).await).unwrap();
        assert_eq!(left.lines().count(), 1, "{left}");
        assert!(left.contains("cancelled before it was started"), "{left}");
        let mut rest = later.follow(1);
        let rest = timeout(LIMIT, rest.next()).await.unwrap();
        assert!(rest.is_none(), "{rest:?}");
        assert!(fs::exists(shared.0.path().join("count")).unwrap());
    });
}

/// Text of which three quarters remain when it is compressed, without anything that JSON escapes.
fn noise(bytes: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 1_u64;
    let letters = (0..bytes).map(|_| {
        state = (state.wrapping_mul(6_364_136_223_846_793_005)).wrapping_add(1);
        char::from(LETTERS[usize::try_from(state >> 58).unwrap()])
    });
    letters.collect()
}

#[test]
fn entry_of_35_mb_and_prompt_of_8_mib_arrive_byte_for_byte() {
    const LARGE: usize = 35_000_000;
    const PROMPT: usize = 8 << 20;
    /// Of the worker, in MiB: some copies of an entry, and not those of the log.
    const MEMORY: u64 = 600;
    let server = server_or_skip!();
    let shared = Shared::new();
    // Of several parts, and the rest is packed faster.
    let mut large = noise(LARGE / 12);
    large.push_str(&noise(1000).repeat(LARGE / 1000 * 11 / 12));
    fs::write(shared.0.path().join("large"), &large).unwrap();
    // As above, with a long answer. The length of the prompt's line is written down.
    let long = r#"printf '%s' "${#line}" > SHARED/length
      init
      printf '{"type":"assistant","session_id":"s","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"'; cat SHARED/large; printf '"}]}}\n'
      printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"result":"'; cat SHARED/large; printf '","usage":{"input_tokens":10,"output_tokens":5},"terminal_reason":"completed"}\n'"#;
    let agent = claude_that(&long.replace("SHARED", shared.0.path().to_str().unwrap()));
    block_on(async {
        let mut limits = super::contract::limits();
        (limits.log_bytes, limits.file_bytes) = (Some(256 << 20), Some(256 << 20));
        let (fleet, service) = runs_of(&server, "ann").await;
        fleet.init(&limits).await.unwrap();
        let mut machine = Machine::start(&server, "w1", &agent);
        until_workers(&fleet, 1).await;
        let spec = RunSpec::new("claude", "x".repeat(PROMPT));
        RunHandle::start(service, "run", spec).await.unwrap();
        // From another machine, while it runs.
        let (_other, service) = runs_of(&server, "ann").await;
        let attached = RunHandle::new(service, "run");
        let mut log = attached.follow(0);
        let mut copy = Vec::new();
        let all = async {
            while let Some(line) = log.next().await {
                copy.extend_from_slice(line.unwrap().json());
                copy.push(b'\n');
            }
        };
        timeout(3 * LIMIT, all).await.unwrap();
        assert!(copy.len() > 2 * large.len(), "{}", copy.len());
        assert!(machine.shown("run").unwrap() == copy);
        let length = fs::read_to_string(shared.0.path().join("length")).unwrap();
        assert!(length.parse::<usize>().unwrap() > PROMPT, "{length}");
        let ended = timeout(LIMIT, attached.result()).await.unwrap().unwrap();
        assert_eq!(ended.status, RunStatus::Completed);
        assert!(ended.text == large);
        let ended = async { while attached.view().await.unwrap().summary.status.is_none() {} };
        timeout(LIMIT, ended).await.unwrap();
        let memory = most_mebibytes(machine.worker.id());
        assert!(memory < MEMORY, "{memory} MiB");
        machine.drain();
        // From the file of the whole log, too.
        let logs = jetstream(&server).await.get_stream("TM_LOG").await.unwrap();
        logs.purge().await.unwrap();
        assert!(read(&attached).await == copy);
    });
}

/// Waits for the time after which a request to a server that is down fails.
#[test]
fn reader_of_kept_log_waits_for_its_server_and_continues() {
    /// More than that time.
    const DOWN: Duration = Duration::from_secs(6);
    let mut server = server_or_skip!();
    let shared = Shared::new();
    fs::write(shared.0.path().join("large"), noise(20 * 100_000)).unwrap();
    // As above, with twenty long messages, so that the file has more parts than are read ahead.
    let long = r#"init
      n=0
      while [ "$n" -lt 20 ]; do
        printf '{"type":"assistant","session_id":"s","message":{"id":"m%s","role":"assistant","content":[{"type":"text","text":"' "$n"
        dd if=SHARED/large bs=100000 skip="$n" count=1 2>/dev/null; printf '"}]}}\n'
        n=$((n + 1))
      done
      result done"#;
    let agent = claude_that(&long.replace("SHARED", shared.0.path().to_str().unwrap()));
    block_on(async {
        let (_fleet, service, mut machine) = with_worker(&server, &agent).await;
        let run = submit(&service, "run").await;
        let copy = read(&run).await;
        machine.drain();
        let logs = jetstream(&server).await.get_stream("TM_LOG").await.unwrap();
        logs.purge().await.unwrap();
        let mut log = run.follow(0);
        let mut found = Vec::new();
        let first = timeout(LIMIT, log.next()).await.unwrap().unwrap();
        found.push(first.unwrap());
        server.stop();
        // What was read ahead comes, and then neither an error nor the end.
        let rest = async {
            while let Some(line) = log.next().await {
                found.push(line.unwrap());
            }
        };
        let waits = timeout(DOWN, rest).await;
        assert!(waits.is_err(), "it ended after {} entries", found.len());
        server.restart();
        while let Some(line) = timeout(LIMIT, log.next()).await.unwrap() {
            found.push(line.unwrap());
        }
        let found: Vec<_> = found
            .iter()
            .flat_map(|line| [line.json(), b"\n"].concat())
            .collect();
        assert!(found == copy, "{} of {} bytes", found.len(), copy.len());
    });
}

#[test]
fn reader_of_a_live_log_gets_a_reset_for_what_is_gone() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (_fleet, service, _machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        let jetstream = jetstream(&server).await;
        // A message has all lines of some time.
        let several = async {
            let mut looks = interval(Duration::from_millis(20));
            loop {
                looks.tick().await;
                let logs = jetstream.get_stream("TM_LOG").await.unwrap();
                if logs.cached_info().state.messages > 2 {
                    return logs;
                }
            }
        };
        let logs = timeout(LIMIT, several).await.unwrap();
        logs.purge().keep(1).await.unwrap();
        let mut log = run.follow(0);
        let reset = timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(reset.type_name(), "reset");
        assert!(reset.seq() > 1, "{}", reset.seq());
        shared.go();
        let (mut seq, mut result) = (reset.seq(), None);
        while let Some(line) = timeout(LIMIT, log.next()).await.unwrap() {
            let line = line.unwrap();
            assert_eq!(line.seq(), seq + 1);
            (seq, result) = (line.seq(), line.result());
        }
        assert_eq!(result.unwrap().status, RunStatus::Completed);
    });
}

#[test]
fn reader_of_an_ended_run_gets_an_end_for_any_rest_of_its_log() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (_fleet, service, _machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        let copy = read(&run).await;
        let jetstream = jetstream(&server).await;
        let stream = async |name: &str| jetstream.get_stream(name).await.unwrap();
        // As if another server still had the end: something is there, and the end does not come.
        stream("TM_LOG").await.purge().await.unwrap();
        let junk = jetstream.publish("tm.log.ann.run", "junk".into());
        junk.await.unwrap().await.unwrap();
        assert_eq!(read(&run).await, copy);
        // The whole log had no room: what is gone is named, and the record has the result.
        stream("TM_FILE").await.purge().await.unwrap();
        let left = String::from_utf8(read(&run).await).unwrap();
        let [reset, done] = &*left.lines().collect::<Vec<_>>() else {
            panic!("{left}");
        };
        assert!(reset.contains("\"type\":\"reset\""), "{left}");
        // The same end, by the same clock.
        let copy = String::from_utf8(copy).unwrap();
        assert_eq!(Some(*done), copy.lines().last());
        stream("TM_LOG").await.purge().await.unwrap();
        // A reader that has it gets no second one.
        let end: serde_json::Value = serde_json::from_str(done).unwrap();
        let mut rest = run.follow(end["seq"].as_u64().unwrap());
        let rest = timeout(LIMIT, rest.next()).await.unwrap();
        assert!(rest.is_none(), "{rest:?}");
        // The result was too long for the record.
        let records = stream("KV_tm_runs").await;
        let record = "$KV.tm_runs.ann.run";
        let last = records.direct_get_last_for_subject(record).await.unwrap();
        let mut json: serde_json::Value = serde_json::from_slice(&last.payload).unwrap();
        json["result"] = serde_json::Value::Null;
        let stored = jetstream.publish(record, json.to_string().into());
        stored.await.unwrap().await.unwrap();
        let left = String::from_utf8(read(&run).await).unwrap();
        assert!(left.contains("is not kept any more"), "{left}");
        assert!(left.contains("\"status\":\"completed\""), "{left}");
    });
}

/// The pause of the reader is longer than the time for which an ended run's log is waited for.
#[test]
fn a_reader_that_pauses_gets_the_whole_log_of_an_ended_run() {
    const PAUSE: Duration = Duration::from_secs(11);
    /// Time in which what is there arrives.
    const SILENT: Duration = Duration::from_secs(2);
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (_fleet, service, mut machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        let mut log = run.follow(0);
        for _ in 0..60 {
            timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        }
        shared.go();
        let copy = read(&run).await;
        machine.drain();
        let jetstream = jetstream(&server).await;
        let logs = jetstream.get_stream("TM_LOG").await.unwrap();
        let mut messages = Vec::new();
        let last = logs.cached_info().state.last_sequence;
        for number in 1..=last {
            messages.push(logs.get_raw_message(number).await.unwrap());
        }
        assert!(messages.len() > 3, "{}", messages.len());
        let late = messages.split_off(messages.len() - 2);
        let publish = async |message: &StreamMessage| {
            let payload = message.payload.clone();
            // Without the number that was expected.
            let mut headers = HeaderMap::new();
            for (name, values) in message.headers.iter() {
                if name.to_string().starts_with("Tm-") {
                    headers.insert(name.clone(), values[0].clone());
                }
            }
            let sent = jetstream.publish_with_headers("tm.log.ann.run", headers, payload);
            sent.await.unwrap().await.unwrap();
        };
        // As from a server that gets them one after another, and has no whole log.
        jetstream
            .get_stream("TM_FILE")
            .await
            .unwrap()
            .purge()
            .await
            .unwrap();
        logs.purge().await.unwrap();
        for message in &messages {
            publish(message).await;
        }
        let mut found = Vec::new();
        let add = |found: &mut Vec<u8>, line: LogLine| {
            found.extend_from_slice(line.json());
            found.push(b'\n');
        };
        let mut log = run.follow(0);
        while let Ok(line) = timeout(SILENT, log.next()).await {
            add(&mut found, line.unwrap().unwrap());
        }
        publish(&late[0]).await;
        let line = timeout(LIMIT, log.next()).await.unwrap();
        add(&mut found, line.unwrap().unwrap());
        logs.purge().await.unwrap();
        // The server's clock cannot be paused with that of the test.
        let paused = timeout(PAUSE, std::future::pending::<()>()).await;
        assert!(paused.is_err());
        // Neither an error nor the end.
        while let Ok(line) = timeout(SILENT, log.next()).await {
            add(&mut found, line.unwrap().unwrap());
        }
        publish(&late[1]).await;
        while let Some(line) = timeout(LIMIT, log.next()).await.unwrap() {
            add(&mut found, line.unwrap());
        }
        let text = |log: &[u8]| String::from_utf8(log.to_vec()).unwrap();
        assert_eq!(text(&found), text(&copy));
    });
}
