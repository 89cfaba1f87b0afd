//! Tests that side effects are not repeated.

use std::sync::Arc;

use serde_json::json;
use teamster_core::{
    AgentEvent, ChangeKind, Decision, ErrorCode, ErrorKind, Image, ImageSource, PermissionEvent,
    RawJson, Text, ToolKind, ToolUse, Unknown,
};
use teamster_orchestrator::{AfterSideEffects, RunRequest};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

pub(crate) fn tool(kind: ToolKind) -> Script {
    Script::new()
        .session("s")
        .tool_use("X", "t", kind, json!({}))
}

fn fails_then(first: Script) -> Arc<MockRuntime> {
    mock(
        "claude",
        [
            first.failed(error(ErrorKind::Network)),
            Script::new().session("s").text("done"),
        ],
    )
}

/// Asserts that the prompt was sent once, and that the session was then resumed with a continuation.
pub(crate) async fn assert_resumed(claude: &Arc<MockRuntime>, request: RunRequest) {
    let continuation = request.retry.side_effects.continuation.clone();
    let events = events(orchestrator().start(request)).await;
    let runs = claude.runs();
    assert_eq!(runs.len(), 2, "{:?}", briefs(&events));
    assert_eq!(runs[0].params.prompt, PROMPT);
    let params = &runs[1].params;
    assert!(
        params.prompt.starts_with(&continuation),
        "{}",
        params.prompt
    );
    assert_eq!(params.session_id.as_deref(), Some("s"));
    assert_eq!(params.new_session_id, None);
    assert!(!params.fork && !params.slash_commands && params.images.is_empty());
    let log = outcome(&events).attempts;
    assert!(!log[0].resumed && log[1].resumed);
}

/// Asserts that the prompt was sent again.
pub(crate) async fn assert_restarted(claude: &Arc<MockRuntime>, request: RunRequest) {
    let events = events(orchestrator().start(request)).await;
    let prompts: Vec<_> = claude
        .runs()
        .into_iter()
        .map(|run| run.params.prompt)
        .collect();
    assert_eq!(prompts, [PROMPT, PROMPT], "{:?}", briefs(&events));
    assert_eq!(claude.runs()[1].params.session_id, None);
    assert!(!outcome(&events).attempts[1].resumed);
}

/// Asserts that the run ended, with an error that contains `why`.
async fn assert_ended(mocks: &[&Arc<MockRuntime>], request: RunRequest, why: &str) {
    let events = events(orchestrator().start(request)).await;
    let runs: usize = mocks.iter().map(|mock| mock.runs().len()).sum();
    assert_eq!(runs, 1, "{:?}", briefs(&events));
    let message = outcome(&events).error.unwrap().message;
    assert!(message.contains(why), "{message}");
    assert!(message.contains("not started over"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_tool_counts_or_not() {
    for kind in [
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Move,
        ToolKind::Search,
        ToolKind::Execute,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::Task,
        ToolKind::Mcp,
        ToolKind::Other,
    ] {
        // The result does not matter, nor does its absence.
        for script in [
            tool(kind),
            tool(kind).tool_result("t", "ok"),
            tool(kind).tool_error("t", "no"),
        ] {
            let claude = fails_then(script);
            if kind.has_side_effects() {
                assert_resumed(&claude, request(&[&claude])).await;
            } else {
                assert_restarted(&claude, request(&[&claude])).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_resumed_attempt_gets_nothing_that_would_do_it_again() {
    let claude = fails_then(tool(ToolKind::Edit));
    let mut request = request(&[&claude]);
    let params = &mut request.candidates[0].params;
    params.images = vec![Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(vec![1]),
    }];
    params.session_id = Some("origin".into());
    params.fork = true;
    params.new_session_id = Some("new".into());
    params.slash_commands = true;
    params.model = Some("opus".into());
    request.retry.side_effects.continuation = "go on".into();
    assert_resumed(&claude, request).await;
    assert_eq!(claude.runs()[1].params.model.as_deref(), Some("opus"));
}

#[tokio::test(start_paused = true)]
async fn a_sub_agents_tool_and_a_changed_file_without_its_tool_count() {
    let write = ToolUse::new("Write", "t", ToolKind::Edit, json!({})).parent_tool_id("p");
    let script = || Script::new().session("s");
    for script in [
        script().event(write),
        script().file_change("x", ChangeKind::Update),
    ] {
        let claude = fails_then(script);
        assert_resumed(&claude, request(&[&claude])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_tool_does_not_count() {
    let denied = || tool(ToolKind::Execute).permission_denied("X", "t", "no");
    let claude = fails_then(denied());
    assert_restarted(&claude, request(&[&claude])).await;
    let claude = fails_then(denied().tool_error("t", "denied"));
    assert_restarted(&claude, request(&[&claude])).await;
    // One of two calls.
    let claude = fails_then(denied().tool_use("Y", "u", ToolKind::Edit, json!({})));
    assert_resumed(&claude, request(&[&claude])).await;
    // Denied first and then allowed.
    let allowed = AgentEvent::Permission(Box::new(
        PermissionEvent::new("X", Decision::Allowed).tool_id("t"),
    ));
    let claude = mock(
        "claude",
        [
            denied()
                .event(allowed)
                .adjust(|result| result.permission_denials.clear())
                .failed(error(ErrorKind::Network)),
            Script::new(),
        ],
    );
    assert_resumed(&claude, request(&[&claude])).await;
}

#[tokio::test(start_paused = true)]
async fn a_denial_of_no_tool_in_particular_excuses_none() {
    let claude =
        fails_then(tool(ToolKind::Execute).event(PermissionEvent::new("X", Decision::Denied)));
    assert_resumed(&claude, request(&[&claude])).await;
}

#[tokio::test(start_paused = true)]
async fn the_callers_rule_decides() {
    let claude = fails_then(tool(ToolKind::Execute));
    let mut harmless = request(&[&claude]);
    harmless.retry.side_effects.counts = Some(Arc::new(|tool| tool.tool_name != "X"));
    assert_restarted(&claude, harmless).await;
    let claude = fails_then(tool(ToolKind::Read));
    let mut harmful = request(&[&claude]);
    harmful.retry.side_effects.counts = Some(Arc::new(|tool| tool.tool_name == "X"));
    assert_resumed(&claude, harmful).await;
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_panics_is_on_the_safe_side() {
    let claude = fails_then(tool(ToolKind::Read));
    let mut request = request(&[&claude]);
    request.retry.side_effects.counts = Some(Arc::new(|_| panic!("as it should")));
    assert_resumed(&claude, request).await;
}

#[tokio::test(start_paused = true)]
async fn another_provider_is_never_asked() {
    for kind in [ErrorKind::Auth, ErrorKind::Network, ErrorKind::Quota] {
        let script = tool(ToolKind::Edit).failed(error(kind));
        let (claude, codex) = (mock("claude", [script]), mock("codex", [Script::new()]));
        let mut request = request(&[&claude, &codex]);
        request.retry.retries = 0;
        assert_ended(&[&claude, &codex], request, "`X`").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_candidate_of_the_provider_resumes() {
    let claude = mock(
        "claude",
        [tool(ToolKind::Edit).failed(error(ErrorKind::ModelNotFound))],
    );
    let codex = mock("codex", [Script::new()]);
    let other = mock("claude", [Script::new().text("x")]);
    let mut request = request(&[&claude, &codex, &other]);
    request.candidates[2].params.model = Some("haiku".into());
    let lines = story(orchestrator().start(request)).await;
    assert_eq!(
        lines[3..],
        [
            "fallback 2 ModelNotFound +0 claude resumes s",
            "chunk x",
            "message x",
            "end success"
        ]
    );
    assert_eq!(codex.runs().len(), 0);
    let params = &other.runs()[0].params;
    assert_eq!(params.session_id.as_deref(), Some("s"));
    assert_ne!(params.prompt, PROMPT);
    assert_eq!(params.model.as_deref(), Some("haiku"));
}

#[tokio::test(start_paused = true)]
async fn the_policy_can_end_the_run() {
    let claude = fails_then(tool(ToolKind::Edit));
    let mut request = request(&[&claude]);
    request.retry.side_effects.then = AfterSideEffects::End;
    assert_ended(&[&claude], request, "look at what has been done").await;
}

#[tokio::test(start_paused = true)]
async fn without_a_session_the_run_ends() {
    let claude = fails_then(Script::new().tool_use("X", "t", ToolKind::Edit, json!({})));
    assert_ended(&[&claude], request(&[&claude]), "`X`").await;
}

#[tokio::test(start_paused = true)]
async fn agent_without_resume_ends_the_run() {
    let mut runtime = MockRuntime::new("claude");
    runtime.capabilities_mut().resume = false;
    let claude = Arc::new(
        runtime
            .run(tool(ToolKind::Edit).failed(error(ErrorKind::Network)))
            .run(Script::new()),
    );
    assert_ended(&[&claude], request(&[&claude]), "`X`").await;
}

#[tokio::test(start_paused = true)]
async fn side_effects_are_remembered_for_all_later_attempts() {
    let claude = mock(
        "claude",
        [
            fails(ErrorKind::Network),
            tool(ToolKind::Edit).failed(error(ErrorKind::Network)),
            Script::new()
                .text("a ")
                .failed(error(ErrorKind::Overloaded)),
            fails_for(ErrorKind::Quota, 5000),
            Script::new().session("s").text("b"),
        ],
    );
    let mut request = request(&[&claude]);
    request.retry.retries = 3;
    let events = events(orchestrator().start(request)).await;
    let lines = briefs(&events);
    let steps: Vec<_> = lines.iter().filter(|l| l.starts_with("retry")).collect();
    assert_eq!(
        steps,
        [
            "retry 2 Network +1000 claude",
            "retry 3 Network +2000 claude resumes s",
            "retry 4 Overloaded +4000 claude resumes s",
            "retry 5 Quota +5000 claude resumes s",
        ]
    );
    let runs = claude.runs();
    let restarted: Vec<_> = runs.iter().map(|run| run.params.prompt == PROMPT).collect();
    assert_eq!(restarted, [true, true, false, false, false]);
    // The agent's text is kept, because its session is resumed.
    assert_eq!(messages(&events), ["a ", "b"]);
}

fn announces(announces: bool, scripts: [Script; 2]) -> Arc<MockRuntime> {
    let mut runtime = MockRuntime::new("claude");
    runtime.capabilities_mut().announces_tools = announces;
    let [first, second] = scripts;
    Arc::new(runtime.run(first).run(second))
}

#[tokio::test(start_paused = true)]
async fn tools_reported_late_may_have_run_before_a_break() {
    let text = || Script::new().session("s").text("x");
    let died = |code| {
        let error = teamster_core::AgentError::new(code, ErrorKind::Network, "gone");
        text().failed(error)
    };
    for script in [
        text().incomplete(),
        died(ErrorCode::CliExitError),
        died(ErrorCode::WatchdogTimeout),
        died(ErrorCode::Io),
        died(ErrorCode::OutputLimit),
        text().timed_out(error(ErrorKind::Timeout)),
    ] {
        let late = announces(false, [script.clone(), Script::new()]);
        assert_resumed(&late, request(&[&late])).await;
        let before = announces(true, [script, Script::new()]);
        assert_restarted(&before, request(&[&before])).await;
    }
    // The agent reported its failure, or never began.
    for script in [
        text().failed(error(ErrorKind::Network)),
        died(ErrorCode::CliNotFound),
        died(ErrorCode::ConfigLease),
    ] {
        let late = announces(false, [script, Script::new()]);
        assert_restarted(&late, request(&[&late])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_just_ends_may_have_had_more_to_say() {
    for script in [
        Script::new().breaks_off(),
        Script::new().panic("as it should"),
    ] {
        let claude = mock("claude", [script]);
        let codex = mock("codex", [Script::new()]);
        let request = request(&[&claude, &codex]);
        assert_ended(&[&claude, &codex], request, "broke off").await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_line_may_have_been_a_tool() {
    let unknown = AgentEvent::Unknown(Unknown::new(
        RawJson::from_bytes(br#"{"type":"new"}"#).unwrap(),
    ));
    let lost: [fn(&mut teamster_core::RunResult); 2] = [
        |result| result.diagnostics.oversize = 1,
        |result| result.diagnostics.malformed = 1,
    ];
    // Every new version of a CLI has some unknown events.
    let claude = fails_then(Script::new().session("s").event(unknown));
    assert_restarted(&claude, request(&[&claude])).await;
    for lost in lost {
        let claude = fails_then(Script::new().session("s").adjust(lost));
        assert_resumed(&claude, request(&[&claude])).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_broke_off_may_have_changed_something() {
    for (commands, resumed) in [(true, true), (false, false)] {
        let claude = mock(
            "claude",
            [Script::new().session("s").incomplete(), Script::new()],
        );
        let mut request = request(&[&claude]);
        request.candidates[0].params.slash_commands = commands;
        if resumed {
            assert_resumed(&claude, request).await;
        } else {
            assert_restarted(&claude, request).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_text_of_a_sub_agent_is_not_the_agents() {
    let sub = |text: &str| AgentEvent::Text(Text::new(text).parent_tool_id("p"));
    let claude = mock(
        "claude",
        [Script::new().text("I").event(sub("hidden")).text(" say")],
    );
    let done = orchestrator().start(request(&[&claude])).outcome().await;
    assert_eq!(done.result.text, "I say");
    assert_eq!(done.result.messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn cut_off_calls_are_named_to_an_agent_without_its_session() {
    let runs = |command| json!({"command": command});
    let claude = fails_then(
        Script::new()
            .session("s")
            .tool_use("Bash", "1", ToolKind::Execute, runs("make"))
            .tool_result("1", "made")
            .tool_use("Read", "2", ToolKind::Read, json!({}))
            .tool_use("Bash", "3", ToolKind::Execute, runs("make deploy")),
    );
    let mut request = request(&[&claude]);
    request.retry.side_effects.continuation = "go on".into();
    outcome(&events(orchestrator().start(request)).await);
    assert_eq!(
        claude.runs()[1].params.prompt,
        "go on\n\nThese calls were cut off, and may have had their effect all the same:\n\
         - `Bash` {\"command\":\"make deploy\"}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_begun_and_never_came_may_have_run() {
    for kind in [ErrorKind::Overloaded, ErrorKind::Protocol] {
        for after_answer in [false, true] {
            let script = Script::new().session("s").text("x").failed(error(kind));
            let script = script.adjust(|result| result.diagnostics.unfinished_calls = 1);
            let mut runtime = MockRuntime::new("claude");
            runtime.capabilities_mut().runs_calls_after_answer = after_answer;
            let claude = Arc::new(runtime.run(script).run(Script::new()));
            if after_answer {
                assert_restarted(&claude, request(&[&claude])).await;
            } else {
                assert_resumed(&claude, request(&[&claude])).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_lines_count_as_a_side_effect_if_nothing_else_came() {
    let script = || Script::new().session("s");
    let unknown = |script: Script| {
        let script = script.failed(error(ErrorKind::Protocol));
        script.adjust(|result| result.diagnostics.unknown = 1)
    };
    let nothing = announces(true, [unknown(script()), Script::new()]);
    assert_resumed(&nothing, request(&[&nothing])).await;
    let with_text = announces(true, [unknown(script().text("x")), Script::new()]);
    assert_restarted(&with_text, request(&[&with_text])).await;
}
