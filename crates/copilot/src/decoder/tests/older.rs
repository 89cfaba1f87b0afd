//! Lines of the event names that other loops describe: no recorded version prints them.

use teamster_core::{RunStatus, Usage};

use super::*;

fn start() -> String {
    line(
        "session.start",
        &json!({"sessionId": SESSION, "selectedModel": "gpt-5"}),
    )
}

fn shutdown() -> String {
    line(
        "session.shutdown",
        &json!({"shutdownType": "routine", "modelMetrics": {"gpt-5": {
            "requests": {"count": 1, "cost": 0},
            "usage": {"inputTokens": 140, "outputTokens": 9, "cacheReadTokens": 40,
                      "cacheWriteTokens": 0}}}}),
    )
}

#[test]
fn start_message_and_shutdown_are_those_of_a_run() {
    let said = line("message", &json!({"role": "assistant", "content": "Hello"}));
    let asked = line("message", &json!({"role": "user", "content": "hi"}));
    for last in [vec![], vec![result(0)]] {
        let lines = [vec![start(), asked.clone(), said.clone(), shutdown()], last].concat();
        let (events, result) = run(&lines);
        assert_types(&events, "session session text turn_end done");
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(result.session_id.as_deref(), Some(SESSION));
        assert_eq!(result.model.as_deref(), Some("gpt-5"));
        assert_eq!(result.text, "Hello");
        let usage = Usage::default()
            .input_tokens(100)
            .output_tokens(9)
            .cache_read_tokens(40)
            .cache_write_tokens(0);
        assert_eq!(result.usage, Some(usage));
        assert_eq!(result.diagnostics.unknown, 0);
    }
}

#[test]
fn a_message_may_have_its_fields_in_the_line_itself() {
    let said = json!({"type": "message", "content": "Hello"}).to_string();
    let (events, result) = run(&[start(), said, shutdown()]);
    assert_eq!(texts(&events), [("Hello".to_owned(), None)]);
    assert_eq!(result.status, RunStatus::Completed);
}

#[test]
fn after_a_shutdown_the_exit_of_the_process_decides() {
    let exit = Exit {
        code: Some(1),
        stderr: "it rained".into(),
        ..Exit::default()
    };
    let lines = [start(), shutdown()];
    let (_, result) = decode(CopilotDecoder::new(), &lines, exit);
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].message, "it rained");
    let (_, cut) = run(&[start()]);
    assert_eq!(cut.status, RunStatus::Incomplete);
}
