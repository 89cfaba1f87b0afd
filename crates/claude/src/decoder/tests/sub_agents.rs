//! Usage of sub-agents during a run, with handwritten lines in the measured formats.

use serde_json::json;
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit};
use teamster_core::{AgentEvent, Usage};

use super::super::ClaudeDecoder;
use super::{SESSION, end, init, start, stream};

/// Returns a sub-agent's message in the stream, where the service has reported only a part of its output.
fn heard(id: &str) -> String {
    let usage = json!({"input_tokens": 500, "cache_read_input_tokens": 7, "output_tokens": 1});
    json!({"type": "assistant", "session_id": SESSION, "parent_tool_use_id": "toolu_1",
           "message": {"id": id, "model": "m", "content": [], "usage": usage}})
    .to_string()
}

/// Returns the same message in the sub-agent's file.
fn recorded(id: &str) -> String {
    let usage = json!({"input_tokens": 500, "cache_read_input_tokens": 7, "output_tokens": 20});
    json!({"type": "assistant", "isSidechain": true, "message": {"id": id, "usage": usage}})
        .to_string()
}

/// Returns the end of a message of the main agent.
fn answered() -> String {
    stream(
        &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
                   "usage": {"input_tokens": 100, "output_tokens": 10}}),
    )
}

fn task(subtype: &str) -> String {
    json!({"type": "system", "subtype": subtype, "task_id": "t", "task_type": "local_agent"})
        .to_string()
}

#[derive(Default)]
struct Run {
    decoder: ClaudeDecoder,
    out: Events,
}

impl Run {
    /// Decodes a line. Returns the usage of the run if it changed.
    fn line(&mut self, line: &str) -> Option<Usage> {
        self.decoder.line(line.as_bytes(), &mut self.out);
        self.out.drain().find_map(|event| match event {
            AgentEvent::Usage(report) => Some(report.usage),
            _ => None,
        })
    }

    fn finish(mut self) -> DecodedResult {
        self.decoder.finish(&Exit::default(), &mut self.out)
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "what is compared with it is optional"
)]
fn used(input: u64, output: u64, cached: Option<u64>) -> Option<Usage> {
    let usage = Usage::default().input_tokens(input).output_tokens(output);
    Some(usage.cache_read_tokens(cached))
}

#[test]
fn each_answer_counts_once_wherever_it_is_read() {
    let mut run = Run::default();
    run.line(&init());
    run.line(&start("m1"));
    assert_eq!(run.line(&answered()), used(100, 10, None));
    assert_eq!(run.line(&heard("a1")), used(600, 11, Some(7)));
    // The second block of the message.
    assert_eq!(run.line(&heard("a1")), None);
    assert_eq!(
        run.decoder.record_line(&recorded("a1")),
        used(600, 30, Some(7))
    );
    assert_eq!(run.decoder.record_line(&recorded("a1")), None);
    assert_eq!(run.line(&heard("a1")), None);
    // A message of a workflow is only in its file.
    assert_eq!(
        run.decoder.record_line(&recorded("a2")),
        used(1100, 50, Some(14))
    );
    // The next usage of the main agent includes them.
    run.line(&start("m2"));
    assert_eq!(run.line(&answered()), used(1200, 60, Some(14)));
    // The CLI's own total is the usage of the run.
    let models =
        json!({"m": {"inputTokens": 1200, "outputTokens": 61, "cacheReadInputTokens": 14}});
    run.line(&end(&json!({"modelUsage": models})));
    assert_eq!(run.finish().usage, used(1200, 61, Some(14)));
}

#[test]
fn the_usage_of_a_killed_run_includes_its_sub_agents() {
    let mut run = Run::default();
    for line in [init(), start("m1"), answered(), heard("a1")] {
        run.line(&line);
    }
    assert_eq!(run.finish().usage, used(600, 11, Some(7)));
}

#[test]
fn agents_after_a_turn_are_in_the_result_of_a_killed_run() {
    let models = json!({"m": {"inputTokens": 100, "outputTokens": 10}});
    let result = end(&json!({"modelUsage": models}));
    let lines: [String; 6] = [
        init(),
        start("m1"),
        task("task_started"),
        answered(),
        result,
        heard("a1"),
    ];
    let mut run = Run::default();
    for line in &lines {
        run.line(line);
    }
    assert_eq!(run.finish().usage, used(600, 11, Some(7)));
    // Without active work, the CLI has reported all usage.
    let mut ended = Run::default();
    for line in lines.iter().chain([&task("task_notification")]) {
        ended.line(line);
    }
    ended.line(&end(
        &json!({"modelUsage": {"m": {"inputTokens": 590, "outputTokens": 30}}}),
    ));
    assert_eq!(ended.finish().usage, used(590, 30, None));
}
