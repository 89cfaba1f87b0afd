//! Malformed and excessive tool calls of models.

use teamster_core::{AgentEvent, McpServer, RunStatus};

use crate::stage::{MODELS, Stage, assert_completed, results};

fn call(tool: &str, input: &str) -> String {
    format!("[[turn]]\nparts = [{{ tool = {{ name = \"{tool}\", input = {input} }} }}]\n")
}

const DONE: &str = "[[turn]]\nparts = [{ text = \"Done.\" }]\n";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_tools_and_invalid_arguments_are_errors_for_the_model() {
    let script = [
        call("launch_rocket", "{}"),
        call("read", "{ file = \"x\" }"),
        call("read", "\"not json\""),
        call("bash", "{ command = 1 }"),
        call("write", "{ path = \"../out.txt\", content = \"x\" }"),
        call("read", "{ path = \"/etc/passwd\" }"),
        call("read", "{ path = \"out/secret\" }"),
        DONE.to_owned(),
    ]
    .concat();
    for model in MODELS {
        let stage = Stage::new(&script).await;
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s3cret").unwrap();
        std::os::unix::fs::symlink(outside.path(), stage.work().join("out")).unwrap();
        let (result, events) = stage.play(stage.params(model, "Go.")).await;
        assert_completed(&result, model);
        let results = results(&events);
        let expected = [
            "unknown tool `launch_rocket`; available: read, write, edit, bash, grep, glob, update_plan",
            "the arguments do not fit the tool's schema: path is missing",
            "the arguments ",
            "the arguments do not fit the tool's schema: command must be of type string, not number",
            "../out.txt leads out of the directories of this run",
            "/etc/passwd leads out of the directories of this run",
            "out/secret leads out of the directories of this run",
        ];
        assert_eq!(results.len(), expected.len(), "{model}");
        for ((is_error, output), expected) in results.iter().zip(expected) {
            assert!(
                *is_error && output.starts_with(expected),
                "{model}: {output}"
            );
        }
        assert!(!stage.work().join("../out.txt").exists());
        // Each error was sent to the model.
        let last = stage.model.requests().last().unwrap().body.to_string();
        assert!(
            last.contains("launch_rocket") && last.contains("leads out of"),
            "{model}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_call_over_and_over_ends_the_run() {
    let script = call("glob", "{ pattern = \"*.none\" }").repeat(9);
    let stage = Stage::new(&script).await;
    let (result, events) = stage.run("Find it.").await;
    assert_eq!(result.status, RunStatus::Failed);
    let error = result.error().unwrap();
    assert!(error.message.contains("glob 6 times in a row"), "{error}");
    assert!(!error.retryable);
    assert_eq!(results(&events).len(), 6);
    assert_eq!(stage.model.requests().len(), 6);
    assert!(
        stage
            .request(5)
            .to_string()
            .contains("3 calls in a row that are the same")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn how_a_command_ended_is_reported() {
    let script = [
        "[[turn]]\nparts = [{ shell = \"echo out; echo err >&2; exit 3\" }]\n".to_owned(),
        "[[turn]]\nparts = [{ shell = \"true\" }]\n".to_owned(),
        call(
            "bash",
            "{ command = \"echo begun; sleep 60\", timeout_ms = 400 }",
        ),
        "[[turn]]\nparts = [{ shell = \"exec >&- 2>&-; sleep 0.2; touch late\" }]\n".to_owned(),
        "[[turn]]\nparts = [{ shell = \"kill -9 $$\" }]\n".to_owned(),
        "[[turn]]\nparts = [{ shell = \"seq 1 60000\" }]\n".to_owned(),
        DONE.to_owned(),
    ]
    .concat();
    let stage = Stage::new(&script).await;
    let (result, events) = stage.run("Go.").await;
    assert_eq!(result.status, RunStatus::Completed, "{:?}", result.errors);
    let results = results(&events);
    assert_eq!(results[0], (true, "out\nerr\n".to_owned()));
    assert_eq!(results[1], (false, String::new()));
    assert!(results[2].0);
    assert!(
        results[2]
            .1
            .starts_with("begun\n[the command did not end within 400ms"),
        "{}",
        results[2].1
    );
    assert!(!results[3].0, "{}", results[3].1);
    assert!(stage.file("late").is_some());
    assert!(
        results[4].1.contains("ended by SIGKILL"),
        "{}",
        results[4].1
    );
    // The stream has the full output; the model gets its beginning and end.
    assert_eq!(results[5].1.lines().count(), 60_000);
    let sent = stage.request(6).to_string();
    assert!(sent.contains("exit code 3") && sent.contains("it wrote nothing"));
    assert!(sent.contains("59999\\n60000") && sent.contains("bytes left out"));
    assert!(sent.len() < 200_000, "{}", sent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_does_not_get_the_key() {
    let script = "[[turn]]\nparts = [{ shell = \"env; echo $MINE\" }]\n[[turn]]\nparts = [{ text = \"Ok.\" }]";
    let stage = Stage::new(script).await;
    let params = stage.params(MODELS[1], "Go.").env("MINE", "yes-mine");
    let (_, events) = stage.play(params).await;
    let output = &results(&events)[0].1;
    assert!(
        output.contains("yes-mine") && !output.contains("OPENAI_API_KEY"),
        "{output}"
    );
}

/// Variable with the fault of the MCP server that this test program plays.
const FAULT: &str = "TEAMSTER_TEST_FAULT";

/// Returns an MCP server that is this test program.
fn tiny(fault: &str) -> McpServer {
    let program = std::env::current_exe().unwrap().display().to_string();
    // Quiet, so that the harness prints its output on separate lines.
    let args = ["--exact", "tools::server", "--nocapture", "--quiet"];
    McpServer::stdio("tiny", program, args).env(FAULT, fault)
}

/// Entry point of the MCP server. Does nothing as a test; [`tiny`] starts it with the variable.
#[test]
fn server() {
    let Ok(fault) = std::env::var(FAULT) else {
        return;
    };
    let flags = Some(fault).filter(|fault| !fault.is_empty());
    teamster_testkit::fake_mcp_server::main(flags.into_iter());
    std::process::exit(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_give_tools_and_a_broken_one_is_a_warning() {
    let mcp = |tool: &str, arguments: &str| {
        format!(
            "[[turn]]\nparts = [{{ mcp = {{ server = \"tiny\", tool = \"{tool}\", arguments = {arguments} }} }}]\n"
        )
    };
    let script = [
        mcp("echo", "{ text = \"héllo\" }"),
        mcp("fail", "{ why = \"to see it\" }"),
        mcp("draw", "{ title = \"A pixel\" }"),
        DONE.to_owned(),
    ]
    .concat();
    for model in MODELS {
        let stage = Stage::new(&script).await;
        let mut params = stage.params(model, "Ask the server.");
        params.mcp_servers = vec![tiny("")];
        let (result, events) = stage.play(params).await;
        assert_eq!(result.text, "Done.", "{model}: {:?}", result.errors);
        assert_eq!(
            results(&events),
            [
                (false, "echo: héllo".to_owned()),
                (true, "failed on purpose: to see it".to_owned()),
                (false, "A pixel\n[image: image/png, 70 bytes]".to_owned()),
            ],
            "{model}"
        );
        let AgentEvent::SessionStarted(session) = &events[0] else {
            panic!("{:?}", events[0]);
        };
        let servers = session.mcp_servers.as_ref().unwrap();
        assert_eq!(
            (servers[0].name.as_str(), servers[0].status.as_str()),
            ("tiny", "connected")
        );
        let mcp = events.iter().find_map(|event| match event {
            AgentEvent::ToolUse(tool) => tool.mcp.as_ref(),
            _ => None,
        });
        assert_eq!(mcp.unwrap().tool, "echo");
    }
    let stage = Stage::new(DONE).await;
    let mut params = stage.params(MODELS[1], "Ask the server.");
    params.mcp_servers = vec![tiny("--exit")];
    let (result, events) = stage.play(params).await;
    assert_eq!(result.text, "Done.");
    let warned = events.iter().any(|event| {
        matches!(event, AgentEvent::Notice(notice) if notice.message.starts_with("the MCP server tiny cannot be used: "))
    });
    assert!(warned);
}

// Made by hand.
const MALFORMED_TOOL: &str = r#"read -r _
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
read -r _; read -r _
echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"bad","inputSchema":"none"},{"name":"good","inputSchema":{}}]}}'
read -r _
echo '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"works"}]}}'
cat > /dev/null
"#;

#[tokio::test(flavor = "multi_thread")]
async fn malformed_tool_of_a_server_is_a_notice() {
    let call = "[[turn]]\nparts = [{ mcp = { server = \"s\", tool = \"good\" } }]\n";
    let stage = Stage::new(&format!("{call}{DONE}")).await;
    let mut params = stage.params(MODELS[1], "Ask the server.");
    params.mcp_servers = vec![McpServer::stdio("s", "sh", ["-c", MALFORMED_TOOL])];
    let (result, events) = stage.play(params).await;
    assert_eq!(result.text, "Done.", "{:?}", result.errors);
    assert_eq!(results(&events), [(false, "works".to_owned())]);
    let notices = events.iter().filter_map(|event| match event {
        AgentEvent::Notice(notice) => Some(notice.message.as_str()),
        _ => None,
    });
    assert_eq!(
        notices.collect::<Vec<_>>(),
        [
            "the MCP server s has malformed tools, which are left out: bad (its `inputSchema` is not an object)"
        ]
    );
}
