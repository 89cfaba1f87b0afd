use teamster_core::ErrorCode;

use super::*;

fn launched(change: impl FnOnce(&mut ExecuteParams)) -> Launch {
    let mut params = ExecuteParams::new("hi");
    change(&mut params);
    launch(&params).unwrap()
}

fn args(launch: &Launch) -> Vec<&str> {
    let args = launch.args.iter();
    args.map(|arg| arg.to_str().unwrap()).collect()
}

fn refused(change: impl FnOnce(&mut ExecuteParams)) -> AgentError {
    let mut params = ExecuteParams::new("hi");
    change(&mut params);
    let error = launch(&params).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    error
}

/// Returns the rules of a run.
fn rules(launch: &Launch) -> &str {
    let [file] = launch.private_files.as_slice() else {
        panic!("{:?}", launch.private_files);
    };
    let PathLocation::ArgumentNamed(at, suffix) = file.location else {
        panic!("{:?}", file.location);
    };
    assert_eq!(launch.args[at], "--admin-policy=");
    assert_eq!(suffix, ".toml");
    std::str::from_utf8(&file.content).unwrap()
}

#[test]
fn a_plain_run_can_neither_wait_for_a_person_nor_for_stdin() {
    let launch = launched(|_| ());
    assert_eq!(
        args(&launch),
        ["--output-format=stream-json", "--prompt=hi"]
    );
    assert_eq!(launch.stdin, Stdin::Closed);
    let env: Vec<_> = launch.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(
        env,
        [
            "GEMINI_CLI_NO_RELAUNCH=true",
            "GEMINI_CLI_TRUST_WORKSPACE=true",
            "NO_COLOR=1"
        ]
    );
    assert!(launch.private_files.is_empty());
    // The CLI leaves whole conversations in temporary files when a request fails.
    assert!(launch.private_tmp);
    assert_eq!(launch.timeouts.idle, Some(Duration::from_mins(6)));
}

#[test]
fn every_value_is_joined_to_its_flag() {
    let launch = launched(|p| {
        p.prompt = "--yolo".into();
        p.model = Some("-m".into());
        p.permission = PermissionMode::AcceptEdits;
        p.allowed_tools = vec!["run_shell_command(git status)".into(), "-x".into()];
        p.add_dirs = vec!["-d".into(), "/srv/data".into()];
        p.session_id = Some("--version".into());
        p.extra_args = vec!["--debug".into()];
    });
    assert_eq!(
        args(&launch),
        [
            "--output-format=stream-json",
            "--model=-m",
            "--approval-mode=auto_edit",
            "--allowed-tools=run_shell_command(git status)",
            "--allowed-tools=-x",
            "--include-directories=-d",
            "--include-directories=/srv/data",
            "--resume=--version",
            "--debug",
            "--prompt=--yolo",
        ]
    );
    let launch = launched(|p| {
        p.permission = PermissionMode::Bypass;
        p.new_session_id = Some("my_run-1".into());
    });
    assert_eq!(
        args(&launch)[1..3],
        ["--approval-mode=yolo", "--session-id=my_run-1"]
    );
}

#[test]
fn a_prompt_that_the_cli_would_cut_off_is_refused() {
    let mut params = ExecuteParams::new("x".repeat(LARGEST_STDIN_PROMPT));
    assert!(launch(&params).is_ok());
    params.prompt.push('x');
    assert_eq!(launch(&params).unwrap_err().code, ErrorCode::PromptTooLarge);
    // This also holds if only the added space makes it too long.
    params.prompt.replace_range(..2, "/");
    assert_eq!(launch(&params).unwrap_err().code, ErrorCode::PromptTooLarge);
}

#[test]
fn a_prompt_is_a_command_only_if_requested() {
    let prompt = |text: &str, commands| {
        let launch = launched(|p| {
            p.prompt = text.into();
            p.slash_commands = commands;
        });
        args(&launch)[1].to_owned()
    };
    assert_eq!(prompt("/greet Bob", false), "--prompt= /greet Bob");
    assert_eq!(prompt("/greet Bob", true), "--prompt=/greet Bob");
    // Texts that the CLI does not take for commands are unchanged.
    for text in ["// a comment", "/* too */", " /greet"] {
        assert_eq!(prompt(text, false), format!("--prompt={text}"));
    }
}

#[test]
fn a_system_prompt_is_in_a_file_that_a_variable_names() {
    let launch = launched(|p| p.system_prompt = Some(SystemPrompt::Replace("Be brief.".into())));
    let [file] = launch.private_files.as_slice() else {
        panic!("{:?}", launch.private_files);
    };
    assert_eq!(
        file.location,
        PathLocation::Variable("GEMINI_SYSTEM_MD".to_owned())
    );
    assert_eq!(file.content, b"Be brief.");
    let error = refused(|p| {
        p.system_prompt = Some(SystemPrompt::Replace("Be brief.".into()));
        p.env.insert("GEMINI_SYSTEM_MD".into(), "/other".into());
    });
    assert!(error.message.starts_with("system_prompt: "), "{error}");
}

#[test]
fn read_only_run_denies_every_tool_that_changes_files() {
    let launch = launched(|p| p.permission = PermissionMode::ReadOnly);
    assert_eq!(args(&launch)[1], "--approval-mode=default");
    let rules = rules(&launch);
    for tool in ["write_file", "replace", "run_shell_command"] {
        let rule =
            format!("[[rule]]\ntoolName = \"{tool}\"\ndecision = \"deny\"\npriority = 999\n");
        assert!(rules.contains(&rule), "{rules}");
    }
    assert!(!rules.contains("allow"));
}

/// Without the rule, a run approves its own plan and then writes files (measured).
#[test]
fn a_plan_is_not_carried_out_by_itself() {
    let launch = launched(|p| p.permission = PermissionMode::Plan);
    assert_eq!(args(&launch)[1], "--approval-mode=plan");
    assert_eq!(
        rules(&launch),
        "[[rule]]\ntoolName = \"exit_plan_mode\"\ndecision = \"deny\"\npriority = 999\n\n"
    );
}

#[test]
fn denied_tools_are_rules_in_a_private_file() {
    let launch = launched(|p| {
        p.permission = PermissionMode::Bypass;
        p.denied_tools = vec![
            "run_shell_command(git \"push\" \\)".into(),
            "mcp_my_srv_*".into(),
        ];
    });
    assert_eq!(
        rules(&launch),
        "[[rule]]\n\
         toolName = \"run_shell_command\"\n\
         commandPrefix = \"git \\\"push\\\" \\\\\"\n\
         decision = \"deny\"\n\
         priority = 999\n\n\
         [[rule]]\n\
         toolName = \"mcp_my_srv_*\"\n\
         decision = \"deny\"\n\
         priority = 999\n\n"
    );
}

#[test]
fn a_denial_that_would_deny_nothing_is_refused() {
    for tool in [
        "Bash",
        "write_fil",
        "",
        "run_shell_command(",
        "run_shell_command()",
        "run_shell_command( ls)",
        "run_shell_command(a\nb)",
        "write_file(x)",
        "mcp_a\"b",
    ] {
        let error = refused(|p| p.denied_tools = vec![tool.into()]);
        assert!(error.message.starts_with("denied_tools: "), "{error}");
    }
}

#[test]
fn only_an_id_is_resumed_never_latest_or_a_number() {
    for id in ["latest", "LATEST", "5", "a b", "../x", " x", "ü"] {
        let error = refused(|p| p.session_id = Some(id.into()));
        assert_eq!(error.kind, ErrorKind::SessionNotFound);
        assert!(error.message.starts_with("session_id: "), "{error}");
        let error = refused(|p| p.new_session_id = Some(id.into()));
        assert!(error.message.starts_with("new_session_id: "), "{error}");
    }
}

#[test]
fn ambiguous_values_are_refused_by_name() {
    type Change = fn(&mut ExecuteParams);
    let cases: &[(&str, Change)] = &[
        ("prompt: ", |p| p.prompt = " \n".into()),
        ("model: ", |p| p.model = Some(" m".into())),
        ("model: ", |p| p.model = Some(String::new())),
        ("add_dirs: ", |p| p.add_dirs = vec!["/a,b".into()]),
        ("add_dirs: ", |p| p.add_dirs = vec!["/a ".into()]),
        ("add_dirs: ", |p| p.add_dirs = vec!["~/a".into()]),
        ("allowed_tools: ", |p| p.allowed_tools = vec!["a,b".into()]),
    ];
    for (name, change) in cases {
        let error = refused(change);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
}

#[test]
fn a_path_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let path = std::ffi::OsString::from_vec(b"/a\xff".to_vec());
    let error = refused(|p| p.add_dirs = vec![path.into()]);
    assert!(error.message.starts_with("add_dirs: "), "{error}");
}
