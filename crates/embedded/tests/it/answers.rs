//! Successful runs with every protocol.

use serde_json::json;
use teamster_core::{AgentEvent, CostSource, Image, RunStatus, SystemPrompt, ToolKind};

use crate::stage::{MODELS, Stage, assert_completed, results, types};

const TOOLS: &str = r#"
[[turn]]
parts = [{ thinking = ["I ", "look."] }, { text = "I look first." }, { shell = "printf 'alpha\nbeta\n'; echo 日本語" }]
usage = { input = 1000, output = 40, cache_read = 10 }

[[turn]]
parts = [{ write_file = { path = "made.txt", content = "línea\n" } }, { read_file = "made.txt" }]
usage = { input = 1100, output = 25 }

[[turn]]
parts = [{ text = ["It is ", "done."] }]
usage = { input = 1200, output = 15 }
"#;

#[tokio::test(flavor = "multi_thread")]
async fn text_tools_and_figures_are_the_same_over_every_protocol() {
    for model in MODELS {
        let stage = Stage::new(TOOLS).await;
        let (result, events) = stage.play(stage.params(model, "What is there?")).await;
        assert_completed(&result, model);
        assert_eq!(result.text, "I look first.It is done.", "{model}");
        assert_eq!(
            result.final_message.as_deref(),
            Some("It is done."),
            "{model}"
        );
        assert_eq!(result.model.as_deref(), Some(model));
        assert_eq!(result.num_turns, Some(3), "{model}");
        assert_eq!(result.stop_reason.as_deref(), Some("end_turn"), "{model}");
        let usage = result.usage.unwrap();
        assert_eq!(usage.input_tokens, Some(3300), "{model}");
        assert_eq!(usage.output_tokens, Some(80), "{model}");
        assert_eq!(usage.cache_read_tokens.unwrap_or(0), 10, "{model}");
        assert_eq!(
            results(&events),
            [
                (false, "alpha\nbeta\n日本語\n".to_owned()),
                (false, "made.txt was made (7 bytes).".to_owned()),
                (false, "línea\n".to_owned()),
            ],
            "{model}"
        );
        assert_eq!(
            stage.file("made.txt").as_deref(),
            Some("línea\n"),
            "{model}"
        );
        let kinds: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                AgentEvent::ToolUse(tool) => Some(tool.kind),
                _ => None,
            })
            .collect();
        assert_eq!(
            kinds,
            [ToolKind::Execute, ToolKind::Edit, ToolKind::Read],
            "{model}"
        );
        assert_eq!(
            types(&events)[..7],
            [
                "session",
                "thinking",
                "text",
                "usage",
                "tool_use",
                "tool_result",
                "usage"
            ],
            "{model}"
        );
        assert!(types(&events).contains(&"file_change"), "{model}");
        assert_eq!(stage.model.requests().len(), 3, "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_is_an_estimate_and_absent_where_nothing_has_a_price() {
    let stage = Stage::new(TOOLS).await;
    let (result, events) = stage.run("What is there?").await;
    let reported = events.iter().filter_map(|event| match event {
        AgentEvent::Usage(report) => Some(report.cost_source),
        _ => None,
    });
    assert_eq!(
        reported.collect::<Vec<_>>(),
        [Some(CostSource::Estimated); 3]
    );
    // The prices of the test: 1 USD per 1000 tokens of input and output.
    assert!(
        (result.total_cost_usd.unwrap() - 3.38).abs() < 1e-9,
        "{:?}",
        result.total_cost_usd
    );
    assert_eq!(result.cost_source, Some(CostSource::Estimated));
    assert!(result.usage_by_model["openai/gpt-5.1"].cost_usd.is_some());
    let stage = Stage::new(TOOLS).await;
    let (result, _) = stage
        .play(stage.params("ollama/llama3", "What is there?"))
        .await;
    assert_eq!((result.total_cost_usd, result.cost_source), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_images_and_instructions_reach_every_protocol() {
    for model in MODELS {
        let stage = Stage::new("[[turn]]\nparts = [{ text = \"I see.\" }]").await;
        std::fs::write(stage.work().join("AGENTS.md"), "Use tabs.").unwrap();
        let mut params = stage.params(model, "Wo ist \"das\"? 🙂");
        params.images = vec![Image::bytes("image/png", *b"\x00\x01\x02")];
        params.system_prompt = Some(SystemPrompt::Append("Be brief.".into()));
        params.effort = Some("low".into());
        let (result, _) = stage.play(params).await;
        assert_eq!(result.text, "I see.", "{model}: {:?}", result.errors);
        let body = stage.request(0).to_string();
        for part in [
            "Wo ist \\\"das\\\"? 🙂",
            "AAEC",
            "Use tabs.",
            "Be brief.",
            "bash",
        ] {
            assert!(body.contains(part), "{model}: {part}: {body}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_can_have_the_form_of_a_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": false,
    });
    // First without the tool, then in the wrong form, then correct.
    let script = r#"
[[turn]]
parts = [{ text = "It is 42." }]
[[turn]]
parts = [{ tool = { name = "StructuredOutput", input = { answer = "42" } } }]
[[turn]]
parts = [{ tool = { name = "StructuredOutput", input = { answer = 42 } } }]
"#;
    for model in MODELS {
        let stage = Stage::new(script).await;
        let mut params = stage.params(model, "What is the answer?");
        params.output_schema = Some(schema.clone());
        let (result, events) = stage.play(params).await;
        assert_eq!(
            result.structured_output,
            Some(json!({"answer": 42})),
            "{model}"
        );
        assert_eq!(
            result.final_message.as_deref(),
            Some("{\"answer\":42}"),
            "{model}"
        );
        assert_eq!(
            results(&events)[0],
            (
                true,
                "the arguments do not fit the tool's schema: answer must be of type integer, not string"
                    .to_owned()
            ),
            "{model}"
        );
    }
    let never = "[[turn]]\nparts = [{ text = \"No.\" }]\n".repeat(4);
    let stage = Stage::new(&never).await;
    let mut params = stage.params(MODELS[0], "What is the answer?");
    params.output_schema = Some(schema);
    let (result, _) = stage.play(params).await;
    assert_eq!(result.status, RunStatus::Failed);
    let error = result.error().unwrap();
    assert!(
        error.message.contains("in the form of the output schema"),
        "{error}"
    );
    assert_eq!(stage.model.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_reported() {
    let script = "[[turn]]\nparts = [{ plan = [\"Read\", \"Write\"] }]\n[[turn]]\nparts = [{ text = \"Ok.\" }]";
    let stage = Stage::new(script).await;
    let (_, events) = stage.run("Plan.").await;
    let plan = events.iter().find_map(|event| match event {
        AgentEvent::Plan(plan) => Some(plan.entries.len()),
        _ => None,
    });
    assert_eq!(plan, Some(2));
}
