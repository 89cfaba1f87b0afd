//! Tests that several attempts are one stream.

use serde_json::json;
use teamster_core::{
    AgentRuntime, CostSource, Diagnostics, PermissionEvent, RunStatus, ToolKind, Usage,
};

use super::*;
use crate::OrchestratedRuntime;

fn used(input: u64) -> Usage {
    Usage::default().input_tokens(input)
}

#[tokio::test(start_paused = true)]
async fn text_before_a_new_start_is_retracted() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("a")
                .text("ha")
                .text("lf")
                .tool_use("Read", "t", ToolKind::Read, json!({}))
                .text("meanwhile")
                .tool_result("t", "ok")
                .text("more")
                .text_in("m", "named")
                .text_in("draft", "draft")
                .retract("draft")
                .failed(error(ErrorKind::Overloaded)),
            Script::new()
                .session("b")
                .text("whole")
                .text_in("m", " and named"),
        ],
    );
    let events = all(orchestrator().execute(request(&claude))).await;
    assert_eq!(
        short(&events),
        [
            "session a",
            "text attempt-1 ha",
            "text attempt-1 lf",
            "use t",
            "text attempt-1.2 meanwhile",
            "result t",
            "text attempt-1.3 more",
            "text m named",
            "text draft draft",
            "retract draft",
            "retract attempt-1",
            "retract attempt-1.2",
            "retract attempt-1.3",
            "retract m",
            "retry 1 after 1000 CliError Overloaded",
            "session b",
            "text attempt-2 whole",
            "text m#2  and named",
            "done Completed whole and named",
        ]
    );
    let result = result(&events);
    assert_eq!(result.session_id.as_deref(), Some("b"));
    assert_eq!(result.final_message.as_deref(), Some(" and named"));
    assert_eq!(result.duration_ms, 1000);
}

#[tokio::test(start_paused = true)]
async fn text_before_a_side_effect_is_kept() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("a")
                .text_in("m", "I do it. ")
                .tool_use("Bash", "t", ToolKind::Execute, json!({}))
                .failed(error(ErrorKind::Network)),
            Script::new()
                .session("a")
                .text_in("m", "Done.")
                .tool_use("Bash", "t", ToolKind::Execute, json!({}))
                .tool_result("t", "ok"),
        ],
    );
    let events = all(orchestrator().execute(request(&claude))).await;
    assert_eq!(
        short(&events),
        [
            "session a",
            "text m I do it. ",
            "use t",
            "retry 1 after 1000 CliError Network",
            "session a",
            "text m#2 Done.",
            "use t#2",
            "result t#2",
            "done Completed I do it. Done.",
        ]
    );
    assert_eq!(result(&events).open_tool_ids, ["t".into()]);
    assert_eq!(claude.runs()[1].params.session_id.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_reported() {
    let claude = mock(
        "claude",
        [Script::new().text("a").failed(error(ErrorKind::Auth))],
    );
    let codex = mock("codex", [Script::new().text("b")]);
    let request = request(&claude).fallback(candidate(&codex).model("small"));
    let events = all(orchestrator().execute(request)).await;
    assert_eq!(
        short(&events),
        [
            "text attempt-1 a",
            "retract attempt-1",
            "notice claude failed (Auth): continuing with codex small",
            "text attempt-2 b",
            "done Completed b",
        ]
    );
    assert_eq!(result(&events).errors, []);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_names_no_session_or_model_has_those_given() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("a")
                .tool_use("Bash", "t", ToolKind::Execute, json!({}))
                .failed(error(ErrorKind::Network)),
            Script::new().text("b"),
        ],
    );
    let mut request = request(&claude);
    request.candidates[0].params.model = Some("big".into());
    let events = all(orchestrator().execute(request)).await;
    assert_eq!(claude.runs()[1].params.session_id.as_deref(), Some("a"));
    let result = result(&events);
    assert_eq!(
        (result.session_id.as_deref(), result.model.as_deref()),
        (Some("a"), Some("big"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_order_after_an_error_stays_and_the_last_one_is_reported() {
    let script = || {
        Script::new()
            .error(error(ErrorKind::Overloaded))
            .usage(used(1))
            .failed(error(ErrorKind::Network))
    };
    let claude = mock("claude", [script(), script()]);
    let mut request = request(&claude);
    request.retry.retries = 1;
    let events = all(orchestrator().execute(request)).await;
    assert_eq!(
        short(&events),
        [
            "usage",
            "retry 1 after 1000 CliError Network",
            "error CliError Overloaded",
            "usage",
            "error CliError Network",
            "done Failed ",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn errors_of_equal_text_are_told_apart() {
    let mut earlier = error(ErrorKind::Network);
    earlier.retry_after_ms = Some(5);
    let script = Script::new()
        .error(earlier)
        .text_in("m", "a")
        .failed(error(ErrorKind::Network));
    let claude = mock("claude", [script, Script::new().text_in("n", "b")]);
    let events = all(orchestrator().execute(request(&claude))).await;
    let retry = (events.iter()).find_map(|event| match event {
        AgentEvent::Retry(retry) => Some((retry.error.retry_after_ms, retry.delay_ms)),
        _ => None,
    });
    assert_eq!(retry, Some((None, Some(1000))));
}

#[tokio::test(start_paused = true)]
async fn an_error_on_the_way_is_no_end() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .error(error(ErrorKind::Mcp))
                .notice(teamster_core::NoticeLevel::Info, "n")
                .text_in("m", "a")
                .failed(error(ErrorKind::Network)),
            Script::new().text_in("n", "b"),
        ],
    );
    let events = all(orchestrator().execute(request(&claude))).await;
    assert_eq!(
        short(&events),
        [
            "error CliError Mcp",
            "notice n",
            "text m a",
            "retract m",
            "retry 1 after 1000 CliError Network",
            "text n b",
            "done Completed b",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn ids_that_come_again_are_others() {
    let denied =
        |id: &str| PermissionEvent::new("Bash", teamster_core::Decision::Denied).tool_id(id);
    let child = |id: &str, text: &str| {
        teamster_core::Text::new(text)
            .message_id("sub")
            .parent_tool_id(id)
    };
    let script = || {
        Script::new()
            .tool_use("Task", "t", ToolKind::Read, json!({}))
            .tool_use("Task", "t#2", ToolKind::Read, json!({}))
            .event(child("t", "x"))
            .event(denied("t"))
            .text_in("m", "a")
    };
    let claude = mock(
        "claude",
        [
            script().failed(error(ErrorKind::Network)),
            script().failed(error(ErrorKind::Network)),
            script()
                .event(
                    teamster_core::FileChange::new("a", teamster_core::ChangeKind::Add)
                        .tool_id("t"),
                )
                .retract("m"),
        ],
    );
    let events = all(orchestrator().execute(request(&claude))).await;
    let line = |number: usize| serde_json::to_value(&events[number]).unwrap();
    assert_eq!(
        short(&events),
        [
            "use t",
            "use t#2",
            "text sub x",
            "permission",
            "text m a",
            "retract sub",
            "retract m",
            "retry 1 after 1000 CliError Network",
            "use t#3",
            "use t#2#2",
            "text sub#2 x",
            "permission",
            "text m#2 a",
            "retract sub#2",
            "retract m#2",
            "retry 2 after 2000 CliError Network",
            "use t#4",
            "use t#2#3",
            "text sub#3 x",
            "permission",
            "text m#3 a",
            "file_change",
            "retract m#3",
            "done Incomplete ",
        ]
    );
    assert_eq!(line(10)["parentToolId"], "t#3");
    assert_eq!(line(11)["toolId"], "t#3");
    assert_eq!(line(21)["toolId"], "t#4");
    let result = result(&events);
    let denials: Vec<_> = result
        .permission_denials
        .iter()
        .map(|d| d.tool_id.clone())
        .collect();
    assert_eq!(denials, ["t", "t#3", "t#4"].map(|id| Some(id.into())));
    assert_eq!(
        result.open_tool_ids,
        ["t", "t#2", "t#3", "t#2#2", "t#4", "t#2#3"].map(Into::into)
    );
}

#[tokio::test(start_paused = true)]
async fn figures_are_those_of_all_attempts() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .model("big")
                .usage(used(1))
                .cost_usd(0.5)
                .num_turns(1)
                .failed(error(ErrorKind::Network))
                .adjust(|result| {
                    result.api_duration_ms = Some(5);
                    result.cost_source = Some(CostSource::Estimated);
                    result.exit_code = Some(9);
                    result.stderr = Some("old".into());
                    result.usage_by_model.entry("big".into()).or_default().usage = used(1);
                }),
            Script::new()
                .usage(used(2))
                .failed(error(ErrorKind::Network)),
            Script::new()
                .usage(used(4))
                .cost_usd(0.25)
                .num_turns(2)
                .structured_output(json!(1))
                .adjust(|result| {
                    result.usage_by_model.entry("big".into()).or_default().usage = used(4);
                    result.session_usage = Some(used(100));
                }),
        ],
    );
    let events = all(orchestrator().execute(request(&claude))).await;
    let so_far: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            AgentEvent::Usage(e) => e.usage.input_tokens,
            _ => None,
        })
        .collect();
    assert_eq!(so_far, [1, 3, 7]);
    let result = result(&events);
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.usage, Some(used(7)));
    assert_eq!(result.usage_by_model["big"].usage, used(5));
    assert_eq!(result.total_cost_usd, Some(0.75));
    assert_eq!(result.cost_source, Some(CostSource::Estimated));
    assert_eq!(result.num_turns, Some(3));
    assert_eq!(result.api_duration_ms, Some(5));
    assert_eq!(result.session_usage, Some(used(100)));
    assert_eq!(
        (result.exit_code, result.stderr.as_deref()),
        (Some(0), None)
    );
    assert_eq!(result.structured_output, Some(json!(1)));
    assert_eq!(result.duration_ms, 3000);
    assert_eq!(result.diagnostics, Diagnostics::default().lines(5));
}

#[tokio::test(start_paused = true)]
async fn a_runtime_of_it_asks_everyone_in_their_own_words() {
    let claude = mock("claude", [Script::new().failed(error(ErrorKind::Quota))]);
    let other = mock("claude", [Script::new().failed(error(ErrorKind::Auth))]);
    let codex = mock("codex", [Script::new().text_in("m", "yes")]);
    let mut template = request(&claude)
        .fallback(candidate(&other).model("little"))
        .fallback(candidate(&codex).model("five"));
    template.candidates[1].group = Some("second account".into());
    template.id = Some("one".into());
    let runtime = OrchestratedRuntime::new(orchestrator(), template).unwrap();
    assert_eq!(runtime.id(), "claude");
    assert!(runtime.capabilities().max_turns);
    let mut params = ExecuteParams::new("what?");
    params.model = Some("big".into());
    params.extra_args = vec!["--fast".into()];
    let result = runtime.execute(params.clone()).result().await;
    assert_eq!(result.text, "yes");
    let asked = |mock: &MockRuntime| {
        let params = mock.runs().remove(0).params;
        (params.prompt, params.model, params.extra_args.len())
    };
    let is = |model: &str, args| ("what?".to_owned(), Some(model.to_owned()), args);
    assert_eq!(asked(&claude), is("big", 1));
    assert_eq!(asked(&other), is("little", 1));
    assert_eq!(asked(&codex), is("five", 0));

    params.denied_tools = vec!["Bash".into()];
    let refused = all(runtime.execute(params)).await;
    assert!(short(&refused)[0].starts_with("error InvalidParams `denied_tools`"));
    assert_eq!(short(&refused)[1], "done Failed ");

    let mut empty = request(&claude);
    empty.candidates.clear();
    let error = OrchestratedRuntime::new(orchestrator(), empty).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
}

#[tokio::test(start_paused = true)]
async fn the_log_has_all_events_in_one_order() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("a")
                .text("wrong")
                .failed(error(ErrorKind::Overloaded)),
            Script::new().session("b").text("right").completed(),
        ],
    );
    let mut asked = request(&claude);
    asked.id = Some("r".into());
    let mut log = orchestrator().start_log(asked);
    let (mut lines, mut last_ms) = (Vec::new(), 0);
    while let Some(entry) = log.next().await {
        assert_eq!(entry.seq(), lines.len() as u64 + 1);
        assert!(entry.at_ms() > 0 && entry.at_ms() >= last_ms, "{entry:?}");
        last_ms = entry.at_ms();
        let wire = serde_json::to_string(&entry).unwrap();
        assert!(wire.starts_with("{\"seq\":"), "{wire}");
        assert_eq!(wire.matches("\"seq\":").count(), 1, "{wire}");
        let has_next = wire.contains("\"next\":{\"attempt\":2,");
        let attempts = wire.matches("\"attempt\":").count();
        assert_eq!(attempts, 1 + usize::from(has_next), "{wire}");
        let wire: serde_json::Value = serde_json::from_str(&wire).unwrap();
        assert_eq!(wire["runId"], "r");
        // The log has the text of the result once.
        match &wire["type"] {
            end if end == "run:end" => assert_eq!(wire["result"]["payloads"], json!([]), "{wire}"),
            done if done == "done" => assert_eq!(wire["result"]["text"], "right"),
            _ => {}
        }
        lines.push(format!(
            "{} {}",
            wire["attempt"],
            wire["type"].as_str().unwrap()
        ));
    }
    assert_eq!(
        lines,
        [
            "1 run:start",
            "1 run:attempt",
            "1 session",
            "1 text",
            "1 run:retry",
            "1 retract",
            "1 retry",
            "2 run:attempt",
            "2 session",
            "2 text",
            "2 run:end",
            "2 done",
        ]
    );
}
