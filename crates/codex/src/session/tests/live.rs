//! Live output, the size of the context, models and compaction.

use teamster_core::{
    ContextUse, Image, ImageSource, ModelChoice, Notice, NoticeCode, Offers, RunStatus,
    SessionProvider, SlashCommand,
};
use teamster_testkit::events::payloads;

use super::*;
use crate::Codex;

fn contexts(events: &[AgentEvent]) -> Vec<ContextUse> {
    payloads::<ContextUse>(events).copied().collect()
}

#[test]
fn a_command_s_output_is_reported_while_it_runs() {
    let mut peer = Peer::recorded("app_rich", &bypassing());
    let mut outputs = Vec::new();
    while !peer.lines.is_empty() {
        let (events, _) = peer.turn("hi");
        let is_of_call = |event: &&AgentEvent| match event {
            AgentEvent::ToolUse(tool) => &*tool.tool_id == "call_0015",
            AgentEvent::ToolOutput(_) => true,
            AgentEvent::ToolResult(result) => &*result.tool_id == "call_0015",
            _ => false,
        };
        outputs.extend(events.iter().filter(is_of_call).map(|event| match event {
            AgentEvent::ToolOutput(output) => format!("{} {}", output.tool_id, output.text),
            event => event.type_name().to_owned(),
        }));
        if outputs.last().is_some_and(|last| last == "tool_result") {
            break;
        }
    }
    assert_eq!(
        outputs,
        [
            "tool_use",
            "call_0015 tick 2\n",
            "call_0015 tick 3\n",
            "call_0015 tick 4\n",
            "tool_result"
        ]
    );
}

#[test]
fn the_size_of_the_context_is_reported_after_each_request() {
    let mut peer = Peer::recorded("app_two_turns", &bypassing());
    let (first, _) = peer.turn("one");
    assert_eq!(contexts(&first), [ContextUse::new(1240, 258_400)]);
    let (second, _) = peer.turn("two");
    assert_eq!(contexts(&second).last().unwrap().window, 258_400);
}

#[test]
fn models_are_requested_once_and_reported_with_their_efforts() {
    let mut peer = open_session(&bypassing());
    assert_eq!(peer.asked_for_models, 1);
    // Made by hand after the response of Codex 0.169.0, which has more fields.
    peer.json(&json!({"id": "models", "result": {"data": [
        {"id": "gpt-6.1-sol", "model": "gpt-6.1-sol", "displayName": "GPT-6.1-Sol", "hidden": false,
         "description": "For everyday work.", "supportedReasoningEfforts": [
            {"reasoningEffort": "low", "description": "Fast"}, {"reasoningEffort": "ultra", "description": "Most"}]},
        {"id": "old", "model": "old", "displayName": "Old", "hidden": true},
    ], "nextCursor": null}}));
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.end();
    let model = ModelChoice::new("gpt-6.1-sol")
        .name("GPT-6.1-Sol")
        .description("For everyday work.")
        .efforts(vec!["low".to_owned(), "ultra".to_owned()])
        .effort_descriptions(
            [("low", "Fast"), ("ultra", "Most")]
                .map(|(effort, text)| (effort.to_owned(), text.to_owned()))
                .into(),
        );
    let offers = AgentEvent::from(Offers::new().models(vec![model]));
    assert!(events.contains(&offers), "{events:#?}");
    assert_eq!(peer.unknown, 0);
    peer.begin("two");
    assert_eq!(peer.asked_for_models, 1);

    let mut options = bypassing();
    options.one_turn = true;
    assert_eq!(
        open_session(&options).asked_for_models,
        0,
        "a run has no use for them"
    );
}

#[test]
fn a_skill_is_a_command_once_the_cli_has_listed_it() {
    let mut options = bypassing();
    options.params.slash_commands = true;
    let mut peer = Peer::new(&options);
    peer.begin("/greet Ada");
    peer.json(&answer(1, &json!({"userAgent": "x"})));
    peer.json(&opened(2));
    let last = peer.written.last().unwrap();
    assert_eq!(last["method"], "skills/list", "{last}");
    // As Codex 0.169.0 answers, shortened.
    peer.json(&json!({"id": "skills", "result": {"data": [{"cwd": "/nowhere", "skills": [
        {"name": "greet", "description": "Greets a person by name.", "scope": "user", "enabled": true},
        {"name": "imagegen", "description": "Long.", "scope": "system", "enabled": true,
         "interface": {"displayName": "Image Gen", "shortDescription": "Generate images"}},
        {"name": "off", "description": "Off.", "scope": "user", "enabled": false},
    ], "errors": []}]}}));
    let prompt = peer.params("turn/start")["input"][0]["text"].clone();
    assert_eq!(prompt, "$greet Ada");
    peer.json(&turn_answer(3, "t1"));
    peer.json(&turn_started("t1"));
    peer.json(&turn_ended("t1", "completed"));
    let (events, _) = peer.end();
    let offered = payloads::<Offers>(&events).find_map(|offers| offers.commands.clone());
    let greet = SlashCommand::new("greet").description("Greets a person by name.");
    let image = SlashCommand::new("imagegen").description("Generate images");
    // After the CLI's requests.
    assert_eq!(offered.unwrap()[5..], [greet, image]);
    // No skill.
    peer.begin("/off now");
    let prompt = peer.params("turn/start")["input"][0]["text"].clone();
    assert_eq!(prompt, "/off now");
}

#[test]
fn a_compaction_is_a_turn_without_an_answer() {
    let mut options = bypassing();
    options.params.slash_commands = true;
    let mut peer = open_session(&options);
    peer.json(&turn_ended("t1", "completed"));
    peer.end();
    peer.begin("/compact");
    assert_eq!(peer.params("thread/compact/start")["threadId"], THREAD);
    let request = peer.written.last().unwrap()["id"].as_u64().unwrap();
    // As Codex 0.169.0 answers, shortened.
    peer.json(&answer(request, &json!({})));
    peer.json(&turn_started("t2"));
    for method in ["item/started", "item/completed"] {
        let item = json!({"type": "contextCompaction", "id": "c1"});
        let params = json!({"threadId": THREAD, "turnId": "t2", "item": item});
        peer.json(&json!({"method": method, "params": params}));
    }
    peer.json(&turn_ended("t2", "completed"));
    let (events, result) = peer.end();
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    let codes: Vec<_> = payloads::<Notice>(&events)
        .filter_map(|notice| notice.code)
        .collect();
    assert_eq!(
        codes,
        [NoticeCode::CompactionStarted, NoticeCode::Compacted]
    );

    let mut with_image = Turn::new("/compact");
    with_image.images = vec![Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(vec![0]),
    }];
    for turn in [Turn::new("/compact all of it"), with_image] {
        peer.session.begin(turn);
        peer.look();
        let (_, result) = peer.over();
        let refused = "prompt: /compact of Codex takes no text and no image";
        assert_eq!(result.errors[0].message, refused);
    }
}

#[test]
fn a_cli_without_skills_takes_a_slash_as_text() {
    let mut options = bypassing();
    options.params.slash_commands = true;
    let mut peer = Peer::new(&options);
    peer.begin("/etc/hosts is odd");
    peer.json(&answer(1, &json!({"userAgent": "x"})));
    peer.json(&opened(2));
    peer.json(&json!({"id": "skills", "error": {"code": -32600, "message": "unknown variant"}}));
    let prompt = peer.params("turn/start")["input"][0]["text"].clone();
    assert_eq!(prompt, "/etc/hosts is odd");
}

#[test]
fn without_models_in_the_response_none_are_reported() {
    let refused = json!({"code": -32600, "message": "unknown variant"});
    for response in [json!({"error": refused}), json!({"result": {}})] {
        let mut peer = open_session(&bypassing());
        let mut line = response;
        line["id"] = "models".into();
        peer.json(&line);
        peer.json(&turn_ended("t1", "completed"));
        let (events, result) = peer.end();
        assert!(!events.iter().any(|it| matches!(it, AgentEvent::Offers(_))));
        assert!(result.errors.is_empty(), "{result:?}");
        assert_eq!(peer.unknown, 0);
    }
}

#[test]
fn a_run_has_neither_live_output_nor_the_size_of_the_context() {
    let mut options = bypassing();
    options.one_turn = true;
    let mut peer = Peer::recorded("app_rich", &options);
    let mut events = Vec::new();
    let is_end = |event: &AgentEvent| matches!(event, AgentEvent::ToolResult(result) if &*result.tool_id == "call_0015");
    while !events.iter().any(is_end) {
        events.extend(peer.turn("hi").0);
    }
    let of_sessions =
        |event: &&AgentEvent| matches!(event, AgentEvent::ToolOutput(_) | AgentEvent::Context(_));
    assert_eq!(events.iter().find(of_sessions), None);
}

#[test]
fn a_compaction_is_reported_once() {
    let started = || {
        item(
            "started",
            "t1",
            &json!({"type": "contextCompaction", "id": "c"}),
        )
    };
    let completed = || {
        item(
            "completed",
            "t1",
            &json!({"type": "contextCompaction", "id": "c"}),
        )
    };
    let compacted = || notification("thread/compacted", json!({"turnId": "t1"}));
    let of_agent = || {
        let item = json!({"type": "contextCompaction", "id": "d"});
        let params = json!({"threadId": "agent", "turnId": "a1", "item": item});
        [
            notification("item/completed", params),
            notification("thread/compacted", json!({"threadId": "agent"})),
        ]
    };
    // Made by hand after the protocol of Codex 0.169.0: no recorded session is long enough.
    for (lines, expected) in [
        (
            vec![started(), completed(), compacted()],
            vec![NoticeCode::CompactionStarted, NoticeCode::Compacted],
        ),
        (vec![compacted()], vec![NoticeCode::Compacted]),
        (
            [
                vec![started(), completed()],
                of_agent().to_vec(),
                vec![compacted()],
            ]
            .concat(),
            vec![NoticeCode::CompactionStarted, NoticeCode::Compacted],
        ),
        (
            vec![compacted(), compacted()],
            vec![NoticeCode::Compacted, NoticeCode::Compacted],
        ),
    ] {
        let mut peer = open_session(&bypassing());
        for line in lines {
            peer.json(&line);
        }
        peer.json(&turn_ended("t1", "completed"));
        let (events, _) = peer.end();
        let codes: Vec<_> = payloads::<Notice>(&events)
            .filter_map(|notice| notice.code)
            .collect();
        assert_eq!(codes, expected);
    }
}

#[test]
fn a_process_that_is_only_asked_starts_no_thread() {
    let mut options = bypassing();
    options.params.slash_commands = true;
    options.params.session_id = Some(THREAD.to_owned());
    let query = Codex.offers_query(&options).unwrap().unwrap();
    let mut session = SessionAssembler::new(Box::new(query.protocol));
    let written = String::from_utf8(session.outbox(Outbox::take_input)).unwrap();
    let methods: Vec<_> = written
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["method"].clone())
        .collect();
    let expected = ["initialize", "initialized", "model/list", "skills/list"];
    assert_eq!(methods, expected);
    session.begin(Turn::new("-"));
    assert_eq!(session.outbox(Outbox::take_input), b"");
    // Made by hand after the responses of 0.169.0.
    session.line(br#"{"id":1,"result":{"userAgent":"teamster"}}"#);
    session.line(br#"{"id":"skills","result":{"data":[{"cwd":"/w","skills":[{"name":"greet","description":"Greets"}]}]}}"#);
    assert!(!session.is_over());
    session.line(br#"{"id":"models","error":{"code":-32600,"message":"unknown variant"}}"#);
    assert!(session.is_over());
    let events: Vec<_> = session.out().drain().collect();
    let AgentEvent::Offers(offers) = &events[0] else {
        panic!("{events:?}");
    };
    let names = offers.commands.iter().flatten().map(|it| &*it.name);
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "compact",
            "review",
            "review-branch",
            "review-commit",
            "goal",
            "greet"
        ]
    );
}
