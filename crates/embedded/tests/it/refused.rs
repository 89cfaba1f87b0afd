//! Parameters refused before the first request.

use serde_json::json;
use teamster_core::{
    AgentRuntime, ErrorKind, ExecuteParams, Image, McpServer, SessionOptions, SessionRuntime,
};

use crate::stage::{MODELS, Stage};

type Change = fn(&mut ExecuteParams);

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameters_are_refused_by_name_and_nothing_is_asked() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"Nobody hears this.\" }]").await;
    let changes: [(Change, &str); 16] = [
        (
            |p| p.extra_args = vec!["--sandbox".into()],
            // Of this test's program.
            "extra_args: --sandbox: this program cannot confine commands",
        ),
        (|p| p.prompt = " ".into(), "prompt: it is empty"),
        (
            |p| p.model = Some("llama3".into()),
            "model: `llama3` names no service",
        ),
        (
            |p| p.effort = Some("utmost".into()),
            "effort: unknown; available:",
        ),
        (
            |p| p.working_directory = Some("/nowhere".into()),
            "working_directory: /nowhere cannot be used",
        ),
        (|p| p.add_dirs = vec!["nowhere".into()], "add_dirs: "),
        (
            |p| p.allowed_tools = vec!["bash(".into()],
            "allowed_tools: ",
        ),
        (|p| p.denied_tools = vec![String::new()], "denied_tools: "),
        (
            |p| p.extra_args = vec!["--fast".into()],
            "extra_args: unknown argument `--fast`",
        ),
        (|p| p.max_turns = Some(0), "max_turns: "),
        (|p| p.output_schema = Some(json!(1)), "output_schema: "),
        (
            |p| p.images = vec![Image::file("image/png", "none.png")],
            "images: ",
        ),
        (
            |p| p.slash_commands = true,
            "slash_commands: Embedded has no way to honour it",
        ),
        (
            |p| p.new_session_id = Some("mine".into()),
            "new_session_id: it must be a UUID",
        ),
        (
            |p| p.mcp_servers = vec![McpServer::sse("a", "http://x")],
            "mcp_servers: a: type: Embedded does not support sse",
        ),
        (
            |p| {
                p.model = Some("ollama/llama3".into());
                p.max_budget_usd = Some(1.0);
            },
            "max_budget_usd: ollama/llama3 has no price",
        ),
    ];
    for (change, expected) in changes {
        let mut params = stage.params(MODELS[1], "Go.");
        change(&mut params);
        let (result, events) = stage.play(params).await;
        let error = result.error().unwrap();
        assert!(error.message.starts_with(expected), "{expected}: {error}");
        assert_eq!(events.len(), 2, "{expected}");
    }
    assert!(stage.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_key_is_reported_with_its_variable() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"Nobody hears this.\" }]").await;
    for (model, variable) in [
        (MODELS[0], "ANTHROPIC_API_KEY"),
        (MODELS[1], "OPENAI_API_KEY"),
        (MODELS[2], "GEMINI_API_KEY or GOOGLE_API_KEY"),
    ] {
        let mut params = stage.params(model, "Go.");
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
        ] {
            // An empty variable counts as unset. This makes the test independent of the machine's environment.
            params.env.insert(name.into(), String::new());
        }
        let error = stage.runtime.check(&params).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Auth, "{model}");
        assert!(
            error.message.ends_with(&format!("set {variable}")),
            "{error}"
        );
    }
    assert!(stage.model.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_refuses_parameters_of_runs() {
    let stage = Stage::new("[[turn]]\nparts = [{ text = \"x\" }]").await;
    let mut params = stage.params(MODELS[1], "");
    params.output_schema = Some(json!({}));
    let error = stage
        .runtime
        .open(SessionOptions::new(params))
        .err()
        .unwrap();
    assert_eq!(error.parameter(), Some("output_schema"));
    let mut params = stage.params(MODELS[1], "");
    params.images = vec![Image::bytes("image/png", *b"x")];
    let error = stage
        .runtime
        .open(SessionOptions::new(params))
        .err()
        .unwrap();
    assert_eq!(error.parameter(), Some("images"));
}
