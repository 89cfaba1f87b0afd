use teamster_testkit::events::tokens;

use super::*;

/// Lines of a session file by Claude Code 2.1.290; lines between them are omitted.
const FIRST: &str = r#"{"type":"cost-state","sessionId":"f7336b59-6c70-4861-a252-5d055c08d09e","totalCostUSD":0.0060656,"totalAPIDuration":334,"modelUsage":{"claude-opus-5-5":{"inputTokens":16,"outputTokens":110,"thinkingTokens":0,"cacheReadInputTokens":4608,"cacheCreationInputTokens":576,"webSearchRequests":0,"costUSD":0.0060656}},"hasUnknownModelCost":false}"#;
const SECOND: &str = r#"{"type":"cost-state","sessionId":"f7336b59-6c70-4861-a252-5d055c08d09e","totalCostUSD":0.0066136,"totalAPIDuration":357,"modelUsage":{"claude-opus-5-5":{"inputTokens":28,"outputTokens":135,"thinkingTokens":0,"cacheReadInputTokens":4608,"cacheCreationInputTokens":576,"webSearchRequests":0,"costUSD":0.0066136}},"hasUnknownModelCost":false}"#;
const ID: &str = "f7336b59-6c70-4861-a252-5d055c08d09e";

/// Creates a home directory with a session file of this content.
fn home(content: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".claude/projects/-tmp-ws");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(home.path().join(".claude/projects/-other")).unwrap();
    fs::write(folder.join(format!("{ID}.jsonl")), content).unwrap();
    home
}

fn resumed(home: &Path, id: &str) -> ExecuteParams {
    let mut params = ExecuteParams::new("x");
    params.session_id = Some(id.into());
    let home = home.to_str().unwrap();
    params.env.insert("HOME".into(), home.into());
    params.env.insert("CLAUDE_CONFIG_DIR".into(), String::new());
    params
}

fn read(content: &str) -> Totals {
    let home = home(content);
    match baseline(&resumed(home.path(), ID)) {
        Baseline::Resumed(totals) => totals,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_totals_count() {
    let totals = read(&format!(
        "{{\"type\":\"user\"}}\n{FIRST}\n{SECOND}\n{{\"type\":\"mode\"}}\n"
    ));
    assert_eq!(totals.cost.to_string(), "0.0066136");
    assert_eq!(totals.api_ms, Some(357.0));
    let usage = totals.by_model["claude-opus-5-5"].usage;
    assert_eq!(tokens(Some(usage)), Some((28, 135)));
    assert_eq!(
        (usage.cache_read_tokens, usage.cache_write_tokens),
        (Some(4608), Some(576))
    );
}

#[test]
fn a_line_that_was_cut_does_not_count() {
    let totals = read(&format!("{FIRST}\n{}", &SECOND[..SECOND.len() - 9]));
    assert_eq!(totals.cost.to_string(), "0.0060656");
}

#[test]
fn totals_are_found_wherever_a_piece_ends() {
    let piece = usize::try_from(PIECE).unwrap();
    for after in [
        piece - SECOND.len() - 2,
        piece - 1,
        piece - 30,
        piece,
        3 * piece + 7,
    ] {
        let text = format!("{FIRST}\n{SECOND}\n{}", "x".repeat(after));
        assert_eq!(read(&text).cost.to_string(), "0.0066136", "{after}");
    }
}

#[test]
fn words_of_the_conversation_are_no_totals() {
    let quoted = serde_json::json!({"type": "user", "text": SECOND});
    let totals = read(&format!("{quoted}\n x{SECOND}\n"));
    assert!(!totals.is_kept(), "{totals:?}");
}

#[test]
fn missing_files_give_no_totals() {
    let home = home(FIRST);
    for id in ["6601a899-f2a7-4de0-b47f-2f27c391db5b", "a title"] {
        let baseline = baseline(&resumed(home.path(), id));
        assert!(matches!(baseline, Baseline::Unknown), "{baseline:?}");
    }
    let mut params = ExecuteParams::new("x");
    assert!(matches!(baseline(&params), Baseline::New));
    for arg in ["--continue", "-c", "--resume=x"] {
        params.extra_args = vec![arg.into()];
        assert!(matches!(baseline(&params), Baseline::Unknown), "{arg}");
    }
}

/// Line in a sub-agent's file by Claude Code 2.1.330, without unused fields.
const ANSWER: &str = r#"{"parentUuid":"1","isSidechain":true,"agentId":"aff6bcde62e6ebf64","message":{"model":"claude-opus-5-5","id":"msg_mock_agent0_0_0","type":"message","role":"assistant","content":[{"type":"text","text":"First."}],"stop_reason":"tool_use","usage":{"input_tokens":500,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":20}},"type":"assistant","timestamp":"2026-11-24T12:20:34.581Z"}"#;

#[test]
fn a_sub_agents_answer_has_its_figures() {
    let (id, usage) = answer(ANSWER).unwrap();
    assert_eq!(&*id, "msg_mock_agent0_0_0");
    let expected = Usage::default()
        .input_tokens(500)
        .output_tokens(20)
        .cache_read_tokens(7)
        .cache_write_tokens(3);
    assert_eq!(usage, expected);
    for other in [
        r#"{"type":"user","message":{"role":"user","content":"\"type\":\"assistant\""}}"#,
        r#"{"type":"assistant","message":{"id":"m"}}"#,
        r#"{"type":"assistant"}"#,
        "{",
    ] {
        assert!(answer(other).is_none(), "{other}");
    }
}

#[test]
fn the_files_of_a_sessions_sub_agents() {
    let files = sub_agents(Path::new("/p"), ID).unwrap();
    assert_eq!(
        files.paths,
        [
            format!("*/{ID}/subagents/agent-*.jsonl"),
            format!("*/{ID}/subagents/workflows/*/agent-*.jsonl"),
        ]
    );
    assert!(files.containing.iter().any(|text| ANSWER.contains(text)));
    // The id would change the path.
    assert!(sub_agents(Path::new("/p"), "../x").is_none());
}
