use super::*;
use crate::Cli;

fn call_with(tools: &[&str], part: &Part) -> Call {
    with_tools(tools, |context| Cli::Codex.call(part, context)).unwrap()
}

fn with_tools<T>(tools: &[&str], call: impl FnOnce(&CallContext<'_>) -> T) -> T {
    let tools: Vec<_> = tools.iter().map(ToString::to_string).collect();
    call(&CallContext {
        tools: &tools,
        ..CallContext::default()
    })
}

fn write_file(content: &str) -> Part {
    Part::WriteFile {
        path: "sub/new.txt".into(),
        content: content.into(),
    }
}

#[test]
fn an_edit_is_a_patch_of_lines() {
    let edit = Part::EditFile {
        path: "a.txt".into(),
        old: "one\ntwo".into(),
        new: "1\n".into(),
    };
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n-two\n+1\n*** End Patch\n";
    assert_eq!(
        call_with(&["exec_command", "apply_patch"], &edit),
        Call::new("apply_patch", patch.into())
    );
    let command = format!("apply_patch <<'EOF'\n{patch}EOF");
    assert_eq!(
        call_with(&["exec_command"], &edit),
        Call::new("exec_command", json!({"cmd": command}))
    );
}

fn echo() -> Part {
    Part::Mcp {
        server: "ti-ny".into(),
        tool: "ec.ho".into(),
        arguments: json!({"text": "hi"}),
    }
}

#[test]
fn codex_is_configured_by_toml_settings() {
    let pointing = point_at("http://127.0.0.1:8787");
    let lines = pointing.args.iter();
    let lines: Vec<_> = lines
        .map(|arg| arg.strip_prefix("--config=").unwrap())
        .collect();
    let mut settings: toml::Table = lines.join("\n").parse().unwrap();
    let provider = settings["model_provider"].as_str().unwrap();
    let provider = &settings["model_providers"][provider];
    assert_eq!(
        provider["base_url"].as_str(),
        Some("http://127.0.0.1:8787/v1")
    );
    assert_eq!(provider["wire_api"].as_str(), Some("responses"));
    let variable = provider["env_key"].as_str().unwrap();
    assert_eq!(
        pointing.env,
        [(variable.to_owned(), "sk-mock-000".to_owned())]
    );
    assert_eq!(settings["analytics"]["enabled"].as_bool(), Some(false));
    assert_eq!(pointing.model.as_deref(), Some("gpt-5.5"));
    // A wrapper starts Codex without these arguments, so a file has the same.
    let [file] = &pointing.files[..] else {
        panic!("{:?}", pointing.files);
    };
    settings.insert("model".to_owned(), "gpt-5.5".into());
    assert_eq!(file.content.parse::<toml::Table>().unwrap(), settings);
}

#[test]
fn codex_is_known_by_its_name_or_tools() {
    let agent = "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)";
    assert_eq!(Cli::who(agent, &[]), Some(Cli::Codex));
    for tool in ["exec_command", "exec"] {
        assert_eq!(
            Cli::who("my-program/1.0", &[tool.to_owned()]),
            Some(Cli::Codex)
        );
    }
    assert!(!is_asking("my-program/1.0", &["mcp__x__exec".to_owned()]));
}

#[test]
fn a_model_with_plain_functions_calls_them() {
    let call = |part| call_with(&["exec_command", "apply_patch"], &part);
    assert_eq!(
        call(Part::Shell("ls | wc".into())),
        Call::new("exec_command", json!({"cmd": "ls | wc"}))
    );
    assert_eq!(
        call(Part::ReadFile("in file.txt".into())),
        Call::new("exec_command", json!({"cmd": "cat 'in file.txt'"}))
    );
    assert_eq!(
        call(write_file("a\n\n+b\n")),
        Call::new(
            "apply_patch",
            json!("*** Begin Patch\n*** Add File: sub/new.txt\n+a\n+\n++b\n*** End Patch\n")
        )
    );
    assert_eq!(
        call(echo()),
        Call {
            name: "ec_ho".into(),
            namespace: Some("mcp__ti_ny".into()),
            input: json!({"text": "hi"}),
        }
    );
}

#[test]
fn a_model_without_a_tool_for_patches_makes_them_in_the_shell() {
    assert_eq!(
        call_with(&["exec_command"], &write_file("EOF\n")),
        Call::new(
            "exec_command",
            json!({
                "cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: sub/new.txt\n+EOF\n*** End Patch\nEOF"
            })
        )
    );
}

#[test]
fn a_model_in_code_mode_writes_programs() {
    let program = |part| {
        let call = call_with(&["exec", "wait"], &part);
        assert_eq!((call.name.as_str(), call.namespace), ("exec", None));
        call.input.as_str().unwrap().to_owned()
    };
    assert_eq!(
        program(Part::Shell("echo \"hi\"".into())),
        "const result = await tools.exec_command({\"cmd\":\"echo \\\"hi\\\"\"});\ntext(result.output);\n"
    );
    assert_eq!(
        program(Part::ReadFile("a.txt".into())),
        "const result = await tools.exec_command({\"cmd\":\"cat a.txt\"});\ntext(result.output);\n"
    );
    assert_eq!(
        program(write_file("a\n")),
        "const result = await tools.apply_patch(\"*** Begin Patch\\n*** Add File: sub/new.txt\\n+a\\n*** End Patch\\n\");\ntext(result);\n"
    );
    assert_eq!(
        program(echo()),
        "const result = await tools.mcp__ti_ny__ec_ho({\"text\":\"hi\"});\ntext(result.content);\n"
    );
}

#[test]
fn a_patch_has_complete_lines() {
    let expected = "*** Begin Patch\n*** Add File: f\n+a\n+b\n*** End Patch\n";
    assert_eq!(patch("f", "a\nb\n"), expected);
    assert_eq!(patch("f", "a\nb"), expected);
    assert_eq!(
        patch("f", ""),
        "*** Begin Patch\n*** Add File: f\n*** End Patch\n"
    );
}

#[test]
fn a_path_is_one_word_of_a_shell_and_no_option() {
    for (path, word) in [
        ("src/a-b_c.rs", "src/a-b_c.rs"),
        ("it's $HOME", r"'it'\''s $HOME'"),
        ("-n", "./-n"),
        ("~/x", "'~/x'"),
        ("", "''"),
    ] {
        assert_eq!(quoted(path), word);
    }
}

#[test]
fn other_items_are_no_calls() {
    let called = with_tools(&["exec"], |context| call(&Part::Cut, context));
    assert_eq!(called, None);
}

#[test]
fn a_sub_agent_is_started_by_the_tool_that_the_model_has() {
    let part = Part::Agent {
        prompt: "Count to 3.".into(),
        background: None,
    };
    for (tools, namespace, input) in [
        (
            &["exec", "collaboration__spawn_agent"][..],
            Some("collaboration"),
            json!({"task_name": "count_to_3", "message": "Count to 3.", "fork_turns": "none"}),
        ),
        (
            &["exec_command", "spawn_agent"],
            None,
            json!({"message": "Count to 3."}),
        ),
    ] {
        let call = call_with(tools, &part);
        assert_eq!(call.name, "spawn_agent");
        assert_eq!(call.namespace.as_deref(), namespace);
        assert_eq!(call.input, input);
    }
}

#[test]
fn a_tool_in_a_namespace_is_called_by_both_names() {
    let named = |name: &str| {
        let part = Part::Tool {
            name: name.into(),
            input: json!({}),
        };
        let call = call_with(&["exec"], &part);
        (call.name, call.namespace)
    };
    assert_eq!(
        named("collaboration__send_message"),
        ("send_message".into(), Some("collaboration".into()))
    );
    assert_eq!(named("exec"), ("exec".into(), None));
}

#[test]
fn answer_with_a_sub_agent_waits_for_it_if_no_id_is_needed() {
    let beside = |tools: &[&str], background| {
        let prompt = "Count.".to_owned();
        let part = Part::Agent { prompt, background };
        with_tools(tools, |context| wait_for_agent(&part, context))
    };
    let second = ["collaboration__spawn_agent", "collaboration__wait_agent"];
    let call = beside(&second, Some(false)).unwrap();
    assert_eq!(call.name, "wait_agent");
    assert_eq!(call.namespace.as_deref(), Some("collaboration"));
    assert_eq!(call.input, json!({}));
    assert_eq!(beside(&second, Some(true)), None);
    assert_eq!(beside(&second, None), None);
    let first = ["multi_agent_v1__spawn_agent", "multi_agent_v1__wait_agent"];
    assert_eq!(beside(&first, Some(false)), None);
}
