//! Loop after one that was killed during a tick.

use std::fs;

use serde_json::{Value, json};
use teamster_loop::Control;
use teamster_usage::{Locations, Provider, TickMeter};

use crate::agent::{Agent, agent_loop, read};

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";

/// Returns an answer as Claude Code writes it to a session file, without the fields that are not read.
fn answer(id: &str, at: &str, tokens: u64) -> String {
    json!({"type": "assistant", "timestamp": at, "sessionId": SESSION, "requestId": id,
           "cwd": "/w", "version": "2.1.330", "uuid": id,
           "message": {"id": id, "role": "assistant", "model": "claude-sonnet-4-5",
                       "usage": {"input_tokens": tokens, "output_tokens": tokens / 10,
                                 "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}}})
    .to_string()
}

#[tokio::test(start_paused = true)]
async fn the_usage_of_a_cut_off_tick_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join(".claude/projects/-w");
    fs::create_dir_all(&project).unwrap();
    let lines = [
        answer("before", "2026-11-20T10:00:00.000Z", 1000),
        answer("first", "2026-11-20T12:00:01.000Z", 2000),
        answer("second", "2026-11-20T12:00:02.000Z", 300),
    ];
    let file = project.join(format!("{SESSION}.jsonl"));
    fs::write(file, lines.join("\n") + "\n").unwrap();
    let orchestrator = directory.path().join(".orchestrator");
    fs::create_dir(&orchestrator).unwrap();
    let tick = json!({"tick": 7, "prompt": "full", "begin": "2026-11-20T12:00:00Z"});
    let left = json!({"runtime": "claude", "session_id": SESSION, "pid": 1, "updated_at_epoch": 1,
                      "tick": tick});
    fs::write(orchestrator.join("session.json"), left.to_string()).unwrap();

    let meter = TickMeter::new(Provider::Claude, Locations::of_home(home.path()));
    let next = agent_loop(directory.path(), Agent::default(), Control::new());
    let next = next.meter(Some(meter)).ticks_limit(Some(1));
    next.run().await.unwrap();

    let first = |name: &str| -> Value {
        let text = read(directory.path(), name);
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    };
    let used = first("usage.jsonl");
    let tokens =
        |record: &Value| [&record["input_tokens"], &record["output_tokens"]].map(Value::as_u64);
    assert_eq!(tokens(&used), [Some(2300), Some(230)], "{used}");
    assert_eq!(used["session_id"], SESSION);
    let tick = first("ticks.jsonl");
    assert_eq!(tokens(&tick), [Some(2300), Some(230)], "{tick}");
    assert_eq!(tick["result"], "killed");
    assert_eq!((&tick["tick"], &tick["pid"]), (&json!(7), &json!(1)));
}
