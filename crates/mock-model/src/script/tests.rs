//! Valid and invalid scripts.

use super::*;

fn parsed(text: &str) -> Result<Script, String> {
    text.parse().map_err(|e: ScriptError| e.to_string())
}

#[test]
fn every_part_has_its_form() {
    let script = parsed(
        r#"
        [[turn]]
        parts = [
            { thinking = ["a", "b"] }, { text = "c" }, { shell = "ls" }, { read_file = "x" },
            { write_file = { path = "y", content = "z" } }, { mcp = { server = "s", tool = "t" } },
            { tool = { name = "T", input = { a = 1 } } }, { pause_ms = 3 }, { raw = "?" }, "cut",
        ]
        usage = { input = 1, output = 2, cache_read = 3 }
        "#,
    )
    .unwrap();
    let turn = &script.turns[0];
    assert_eq!(turn.parts.len(), 10);
    assert_eq!(
        turn.parts[0],
        Part::Thinking(Pieces(vec!["a".into(), "b".into()]))
    );
    assert_eq!(turn.parts[9], Part::Cut);
    assert_eq!(turn.stop(), Stop::ToolUse);
    assert_eq!((turn.usage.cache_read, turn.usage.cache_write), (3, 0));
}

#[test]
fn an_answer_for_the_first_requests_gives_way_to_the_next() {
    let script = parsed(
        r#"
        [[turn]]
        times = 2
        error = "overloaded"
        [[turn]]
        times = 1
        parts = [{ text = "half" }, "cut"]
        [[turn]]
        parts = [{ text = "first" }]
        [[turn]]
        parts = [{ text = "second" }]
        "#,
    )
    .unwrap();
    let which = |turn, attempt| {
        let answer = script.answer(turn, attempt)?;
        script
            .turns
            .iter()
            .position(|other| std::ptr::eq(other, answer))
    };
    assert_eq!(
        [
            which(0, 0),
            which(0, 1),
            which(0, 2),
            which(0, 3),
            which(0, 9)
        ],
        [Some(0), Some(0), Some(1), Some(2), Some(2)]
    );
    assert_eq!(
        [which(1, 0), which(1, 5), which(2, 0)],
        [Some(3), Some(3), None]
    );
}

#[test]
fn invalid_scripts_are_refused_with_the_reason() {
    for (text, message) in [
        ("", "missing field `turn`"),
        ("turn = []", "at least one"),
        (
            "[[turn]]\nparts = [\"cut\", { text = \"x\" }]",
            "turn 1: nothing can come after",
        ),
        ("[[turn]]\ntimes = 1", "turn 1: `times` needs"),
        ("[[turn]]\ntimes = 0\n[[turn]]", "`times = 0`"),
        (
            "[[turn]]\nerror = \"server\"\nstop = \"end\"",
            "also `parts` or `stop`",
        ),
        ("[[turn]]\nerror = \"boom\"", "the kind of an error"),
        (
            "[[turn]]\nparts = [{ shel = \"ls\" }]",
            "unknown variant `shel`",
        ),
        ("[[turn]]\ntext = \"x\"", "unknown field `text`"),
    ] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains(message), "{text:?}: {error}");
    }
}

#[test]
fn an_error_that_no_server_could_send_is_an_error_of_its_turn() {
    let good = "[[turn]]\nparts = [{ text = \"x\" }]\n";
    for (error, expected) in [
        ("status = 99", "`status` is from 200 to 599, not 99"),
        ("status = 600", "`status` is from 200 to 599, not 600"),
        (
            "headers = { \"retry after\" = \"1\" }",
            "`retry after` is not a header name",
        ),
        (
            "headers = { retry-after = \"1\\n2\" }",
            "`retry-after` cannot have",
        ),
        (
            "headers = { Content-Length = \"1\" }",
            "`Content-Length` is the server's",
        ),
        ("body = \"\", message = \"\"", "in place of its `message`"),
    ] {
        let text = format!("{good}[[turn]]\nerror = {{ kind = \"server\", {error} }}");
        let message = parsed(&text).unwrap_err();
        assert!(message.starts_with("turn 2: "), "{error}: {message}");
        assert!(message.contains(expected), "{error}: {message}");
    }
    for error in [
        "status = 200",
        "status = 599",
        "headers = { retry-after = \"1\" }",
    ] {
        let text = format!("[[turn]]\nerror = {{ kind = \"server\", {error} }}");
        parsed(&text).unwrap();
    }
}

#[test]
fn a_script_made_by_a_program_is_checked_like_one_that_is_read() {
    assert!(matches!(Script::new(Vec::new()), Err(ScriptError::Empty)));
    let mut failed = Turn::failed(HttpError::new(ErrorKind::Server));
    failed.stop = Some(Stop::End);
    let error = Script::new(vec![Turn::new(vec![Part::Text("a".into())]), failed]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "turn 2: it has an `error`, and also `parts` or `stop`"
    );
    let mut reasons = Turn::default();
    reasons.usage.reasoning = reasons.usage.output + 1;
    let error = Script::new(vec![reasons]).unwrap_err().to_string();
    assert!(
        error.contains("`reasoning` is a part of `output`"),
        "{error}"
    );
    let mcp = Part::Mcp {
        server: "s".into(),
        tool: "t".into(),
        arguments: "text".into(),
    };
    let error = Script::new(vec![Turn::new(vec![mcp])])
        .unwrap_err()
        .to_string();
    assert!(error.contains("`arguments`"), "{error}");
}

#[test]
fn a_mistake_in_a_long_line_is_reported_in_short() {
    let text = format!(
        "[[turn]]\nparts = [{{ text = \"{}\" }}, ?]",
        "x".repeat(100_000)
    );
    let error = text.parse::<Script>().unwrap_err().to_string();
    assert!(
        error.starts_with("TOML parse error at line 2, column"),
        "{error}"
    );
    assert!(error.len() < 3000, "{} bytes", error.len());
}

#[test]
fn a_sub_agent_has_answers_of_its_own() {
    let script: Script = r#"
        [[turn]]
        parts = [{ agent = { prompt = "Look closer." } }]

        [[turn]]
        parts = [{ text = "Done." }]

        [[agent]]
        prompt = "Look closer."

        [[agent.turn]]
        parts = [{ text = "Seen." }]
    "#
    .parse()
    .unwrap();
    assert_eq!(script.turns[0].stop(), Stop::ToolUse);
    assert_eq!(script.agent(&["Look around.", "more"]), None);
    let agent = script.agent(&["context", "You: Look closer. Now."]);
    assert_eq!(agent, Some(0));
    let answer = |turn: usize, agent| {
        script
            .answer_in(agent, turn, 0)
            .map(|turn| turn.parts.clone())
    };
    assert_eq!(answer(0, agent), Some(vec![Part::Text("Seen.".into())]));
    assert_eq!(answer(1, agent), None);
    assert_eq!(answer(1, None), Some(vec![Part::Text("Done.".into())]));
}

#[test]
fn a_sub_agent_needs_a_prompt_and_an_answer() {
    let turn = "[[turn]]\nparts = []\n";
    for (agent, message) in [
        (
            "[[agent]]\nprompt = \"\"\n[[agent.turn]]\nparts = []\n",
            "must not be empty",
        ),
        ("[[agent]]\nprompt = \"x\"\nturn = []\n", "at least one"),
    ] {
        let error = format!("{agent}{turn}").parse::<Script>().unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}
