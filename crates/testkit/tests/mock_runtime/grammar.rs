//! Random scripts that are aborted at any time. The stream has the grammar of a real one.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use teamster_core::provider::grammar;
use teamster_core::{AgentEvent, AgentRuntime, Id, RunStatus, ToolKind};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use super::{overloaded, params, result};

/// A random step of a script, which may be invalid in a stream.
#[derive(Debug, Clone)]
enum Step {
    Text(String),
    TextIn(u8, String),
    Retract(u8),
    Thinking,
    Use(u8),
    End(u8, bool),
    Denied(u8),
    Error,
    Done,
    Delay(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let id = 0..4_u8;
    prop_oneof![
        "[a-zé ]{0,6}".prop_map(Step::Text),
        (id.clone(), "[a-zé ]{0,6}").prop_map(|(id, text)| Step::TextIn(id, text)),
        id.clone().prop_map(Step::Retract),
        Just(Step::Thinking),
        id.clone().prop_map(Step::Use),
        (id.clone(), any::<bool>()).prop_map(|(id, failed)| Step::End(id, failed)),
        id.prop_map(Step::Denied),
        Just(Step::Error),
        Just(Step::Done),
        any::<u16>().prop_map(Step::Delay),
    ]
}

fn add(script: Script, step: &Step) -> Script {
    let message = |id: u8| format!("m{id}");
    let tool = |id: u8| format!("t{id}");
    match step.clone() {
        Step::Text(text) => script.text(text),
        Step::TextIn(id, text) => script.text_in(message(id), text),
        Step::Retract(id) => script.retract(message(id)),
        Step::Thinking => script.thinking("Hm."),
        Step::Use(id) => script.tool_use("Bash", tool(id), ToolKind::Execute, json!({"n": id})),
        Step::End(id, false) => script.tool_result(tool(id), "ok"),
        Step::End(id, true) => script.tool_error(tool(id), "no"),
        Step::Denied(id) => script.permission_denied("Bash", tool(id), "no"),
        Step::Error => script.error(overloaded()),
        Step::Done => script.event(AgentEvent::Done(teamster_core::Done::new(Box::default()))),
        Step::Delay(ms) => script.delay(Duration::from_millis(ms.into())),
    }
}

/// Sets the ending. Returns the script and its status unless a denial decides that.
fn end(script: Script, ending: u8) -> (Script, RunStatus) {
    match ending {
        0 => (script.completed(), RunStatus::Completed),
        1 => (script.failed(overloaded()), RunStatus::Failed),
        2 => (script.timed_out(overloaded()), RunStatus::TimedOut),
        _ => (script.incomplete(), RunStatus::Incomplete),
    }
}

proptest! {
    #[test]
    fn any_script_makes_a_complete_stream(
        steps in prop::collection::vec(step(), 0..24),
        ending in 0..4_u8,
        include_native in any::<bool>(),
        abort_after in prop::option::of(0..30_usize),
    ) {
        let script = steps.iter().fold(Script::new(), add);
        let (script, status) = end(script, ending);
        let mock = MockRuntime::new("claude").run(script);
        let mut params = params();
        params.include_native = include_native;

        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let (events, aborted) = runtime.block_on(async {
            let mut stream = mock.execute(params);
            let mut events = Vec::new();
            let mut aborted = false;
            loop {
                if abort_after == Some(events.len()) {
                    stream.abort();
                    aborted = true;
                }
                match stream.next().await {
                    Some(event) => events.push(event),
                    None => break (events, aborted),
                }
            }
        });

        prop_assert_eq!(grammar::check(&events), Ok(()));
        let result = result(&events);
        let denials = &result.permission_denials;
        let is_denied = |id: &Id| denials.iter().any(|it| it.tool_id.as_ref() == Some(id));
        let all_denied = events.iter().all(|event| match event {
            AgentEvent::ToolUse(call) => is_denied(&call.tool_id),
            _ => true,
        });
        let denied = !denials.is_empty() && (all_denied || result.text.trim().is_empty());
        if result.aborted {
            prop_assert!(aborted);
            prop_assert_eq!(result.status, RunStatus::Aborted);
        } else if status == RunStatus::Completed && denied {
            prop_assert_eq!(result.status, RunStatus::Incomplete);
        } else {
            prop_assert_eq!(result.status, status);
        }
        let errors = events.iter().filter(|event| event.type_name() == "error").count();
        prop_assert_eq!(result.errors.len(), errors);
        prop_assert_eq!(mock.active(), 0);
    }
}
