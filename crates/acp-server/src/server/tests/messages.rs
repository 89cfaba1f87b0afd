//! Malformed messages, cancellation and arbitrary input.

use super::*;

#[test]
fn initialize_always_answers_with_version_1() {
    for version in [0, 1, 2, 999] {
        let mut editor = Editor::new();
        editor.call(0, "initialize", json!({"protocolVersion": version}));
        let about = editor.answer(0)["result"].clone();
        assert_eq!(about["protocolVersion"], 1);
        assert_eq!(about["agentInfo"]["name"], "teamster");
        assert_eq!(about["authMethods"][0]["id"], "claude");
        assert_eq!(about["agentCapabilities"]["loadSession"], true);
        let can = &about["agentCapabilities"]["sessionCapabilities"];
        for ability in [
            "list",
            "delete",
            "resume",
            "close",
            "title",
            "additionalDirectories",
        ] {
            assert_eq!(can[ability], json!({}), "{ability}");
        }
        assert_eq!(editor.actions, []);
    }
}

#[test]
fn initialize_announces_what_the_agent_takes() {
    let capabilities = |catalog: Catalog| {
        let mut editor = Editor::with(catalog);
        editor.call(0, "initialize", json!({"protocolVersion": 1}));
        let can = editor.answer(0)["result"]["agentCapabilities"].clone();
        let folders = can["sessionCapabilities"]["additionalDirectories"].is_object();
        let (mcp, image) = (&can["mcpCapabilities"], &can["promptCapabilities"]["image"]);
        json!([image, mcp["http"], mcp["sse"], folders])
    };
    let mut small = AgentEntry::new("small", "Small");
    small.transports = vec!["stdio".to_owned(), "http".to_owned()];
    small.images = false;
    small.add_dirs = false;
    assert_eq!(
        capabilities(Catalog::one(small.clone())),
        json!([false, true, false, false])
    );
    assert_eq!(
        capabilities(Catalog::one(claude())),
        json!([true, true, true, true])
    );
    // One of them takes it.
    assert_eq!(
        capabilities(Catalog::choice(vec![small, claude()])),
        json!([true, true, true, true])
    );
}

#[test]
fn a_login_is_removed_where_the_host_can() {
    let mut agent = claude();
    agent.logs_out = true;
    let mut editor = Editor::with(Catalog::one(agent));
    editor.call(0, "initialize", json!({"protocolVersion": 1}));
    let can = editor.answer(0)["result"]["agentCapabilities"].clone();
    assert_eq!(can["auth"]["logout"], json!({}));
    editor.call(1, "logout", json!({}));
    let Some(Action::LogOut { ticket, agent }) = editor.actions.pop() else {
        panic!("{:?}", editor.actions);
    };
    assert_eq!(agent, "claude");
    editor.host(|server, out| server.logged_out(ticket, Ok(()), out));
    assert_eq!(editor.answer(1)["result"], json!({}));

    let mut editor = Editor::new();
    editor.call(0, "initialize", json!({"protocolVersion": 1}));
    let can = editor.answer(0)["result"]["agentCapabilities"].clone();
    assert_eq!(can["auth"]["logout"], Value::Null);
    editor.call(1, "logout", json!({}));
    assert_eq!(editor.answer(1)["error"]["code"], -32601);
    assert_eq!(editor.actions, []);
}

#[test]
fn malformed_messages_get_errors_and_keep_the_connection() {
    let mut editor = Editor::new();
    for (line, code) in [
        ("{", -32700),
        ("7", -32600),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{}}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s1"}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"session/close","params":{"sessionId":"no"}}"#,
            -32002,
        ),
    ] {
        editor.line(line);
        let answer = editor.messages.pop().unwrap_or_else(|| panic!("{line}"));
        assert_eq!(answer["error"]["code"], code, "{line}");
    }
    for nothing in [
        "",
        "  ",
        r#"{"method":"unknown"}"#,
        r#"{"id":99,"result":{}}"#,
        r#"{"method":"session/cancel"}"#,
    ] {
        editor.line(nothing);
        assert_eq!(
            (editor.messages.len(), editor.actions.len()),
            (0, 0),
            "{nothing}"
        );
    }
}

// Made by hand: what `JSON.stringify` makes of a text that was cut in the middle of a character.
#[test]
fn a_message_with_half_a_character_has_an_answer() {
    let mut editor = Editor::new();
    for (line, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"session/close","params":{"sessionId":"no\ud83d"}}"#,
            json!(1),
            -32002,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"\ud83d""#,
            Value::Null,
            -32700,
        ),
    ] {
        editor.line(line);
        let answer = editor.messages.pop().unwrap_or_else(|| panic!("{line}"));
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code))
        );
    }
}

#[test]
fn a_cancelled_request_is_answered_once() {
    let mut editor = Editor::new();
    editor.call(1, "session/new", json!({"cwd": "/w", "mcpServers": []}));
    let Some(Action::Prepare { ticket, .. }) = editor.actions.pop() else {
        panic!();
    };
    editor.notify("$/cancel_request", json!({"requestId": 1}));
    assert_eq!(editor.answer(1)["error"]["code"], -32800);
    editor.host(|server, out| server.prepared(ticket, Ok(Offers::new()), out));
    assert!(!editor.has_answer(1));
}

proptest! {
    /// The server answers or ignores every line without a panic.
    #[test]
    fn arbitrary_lines_do_not_panic(lines in prop::collection::vec(".{0,80}", 0..20)) {
        let mut editor = Editor::with_session();
        for line in lines {
            editor.line(&line);
        }
    }

    /// Every prompt gets exactly one response, in any order of prompts, cancellations and ends.
    #[test]
    fn every_prompt_is_answered_once(steps in prop::collection::vec(0_u8..4, 0..40)) {
        let mut editor = Editor::with_session();
        let (mut id, mut run) = (10, 0);
        let mut in_turn = false;
        for step in steps {
            match step {
                0 => { id += 1; editor.prompt(id, "x"); }
                1 => editor.notify("session/cancel", json!({"sessionId": "s1"})),
                2 => editor.notify("$/cancel_request", json!({"requestId": id})),
                _ => {}
            }
            let begun = editor.actions.iter().any(|it| matches!(it, Action::Prompt { .. }));
            if begun && !in_turn {
                run += 1;
                in_turn = true;
                editor.turn(&format!("s1.{run}"));
            }
            editor.actions.clear();
            if in_turn && step == 3 {
                in_turn = false;
                editor.done(&format!("s1.{run}"), json!({}));
                if editor.actions.iter().any(|it| matches!(it, Action::Prompt { .. })) {
                    run += 1;
                    in_turn = true;
                    editor.turn(&format!("s1.{run}"));
                }
                editor.actions.clear();
            }
        }
        for _ in 0..=QUEUED {
            if in_turn {
                editor.done(&format!("s1.{run}"), json!({}));
                in_turn = editor.actions.iter().any(|it| matches!(it, Action::Prompt { .. }));
                if in_turn {
                    run += 1;
                    editor.turn(&format!("s1.{run}"));
                }
                editor.actions.clear();
            }
        }
        for prompt in 11..=id {
            let answers = editor.messages.iter().filter(|it| it["id"] == prompt && it["method"].is_null());
            prop_assert_eq!(answers.count(), 1, "prompt {}", prompt);
        }
    }
}

/// A number of prompts that is one above the queue's limit.
const QUEUED: usize = crate::session::QUEUE + 1;
