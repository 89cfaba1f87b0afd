use super::*;
use teamster_core::provider::PathLocation;
use teamster_core::{ErrorCode, ImageSource};

fn args(params: &ExecuteParams) -> Vec<String> {
    let launch = launch(params).unwrap();
    launch
        .args
        .into_iter()
        .map(|arg| arg.into_string().unwrap())
        .collect()
}

const BASE: [&str; 4] = [
    "-p",
    "--output-format=stream-json",
    "--verbose",
    "--include-partial-messages",
];

#[test]
fn every_value_is_joined_to_its_flag() {
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some("--version".into());
    params.fork = true;
    params.new_session_id = Some("11111111-2222-4333-8444-555555555555".into());
    params.title = Some("--a title".into());
    params.model = Some("-m".into());
    params.effort = Some("low".into());
    params.fallback_model = Some("-f".into());
    params.permission = PermissionMode::AcceptEdits;
    params.allowed_tools = vec!["Bash(git *)".into(), "Read".into()];
    params.denied_tools = vec!["WebFetch".into()];
    params.max_turns = Some(3);
    params.max_budget_usd = Some(0.5);
    params.system_prompt = Some(SystemPrompt::Append("--be brief".into()));
    params.output_schema = Some(json!({"type": "object"}));
    params.add_dirs = vec!["-d".into()];
    params.skills = vec!["/s".into()];
    params.extra_args = vec!["--betas".into(), "x".into()];
    assert_eq!(
        args(&params)[4..],
        [
            "--name=--a title",
            "--model=-m",
            "--effort=low",
            "--fallback-model=-f",
            "--permission-mode=acceptEdits",
            "--allowedTools=Bash(git *)",
            "--allowedTools=Read",
            "--disallowedTools=WebFetch",
            "--max-turns=3",
            "--max-budget-usd=0.5",
            "--json-schema={\"type\":\"object\"}",
            "--add-dir=-d",
            "--plugin-dir=/s",
            "--resume=--version",
            "--fork-session",
            "--session-id=11111111-2222-4333-8444-555555555555",
            "--append-system-prompt=--be brief",
            "--betas",
            "x",
            "--",
            "hi",
        ]
    );
}

#[test]
fn a_large_system_prompt_goes_into_a_file() {
    let mut params = ExecuteParams::new("hi");
    params.system_prompt = Some(SystemPrompt::Replace("x".repeat(40_000)));
    let launch = launch(&params).unwrap();
    assert_eq!(launch.args.len(), BASE.len() + 3);
    let file = &launch.private_files[0];
    assert_eq!(file.location, PathLocation::Argument(BASE.len()));
    assert_eq!(launch.args[BASE.len()], "--system-prompt-file=");
    assert_eq!(file.content.len(), 40_000);
}

#[test]
fn images_go_with_the_prompt_as_one_line_of_input() {
    let mut params = ExecuteParams::new("what is this?\n");
    params.images = vec![Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(vec![0, 1, 2, 3]),
    }];
    assert_eq!(args(&params)[4..], ["--input-format=stream-json"]);
    let Stdin::Bytes(line) = launch(&params).unwrap().stdin else {
        panic!("nothing on stdin");
    };
    assert_eq!(
        String::from_utf8(line).unwrap(),
        concat!(
            r#"{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAECAw=="}},{"type":"text","text":"what is this?\n"}]}}"#,
            "\n"
        )
    );
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    type Change = fn(&mut ExecuteParams);
    let cases: &[(&str, Change)] = &[
        ("prompt:", |p| p.prompt = " \n".into()),
        ("session_id:", |p| p.session_id = Some(String::new())),
        ("fork:", |p| p.fork = true),
        ("new_session_id:", |p| p.new_session_id = Some("me".into())),
        ("new_session_id:", |p| {
            p.session_id = Some("a".into());
            p.new_session_id = Some("11111111-2222-4333-8444-555555555555".into());
        }),
        ("hooks:", |p| {
            p.hooks = Some(json!({"Stop": []}));
            p.extra_args = vec!["--settings".into(), "mine.json".into()];
        }),
        ("skills:", |p| {
            p.skills = vec!["/s".into()];
            p.permission = PermissionMode::ReadOnly;
        }),
        ("max_turns:", |p| p.max_turns = Some(0)),
        ("max_budget_usd:", |p| p.max_budget_usd = Some(-1.0)),
        ("output_schema:", |p| p.output_schema = Some(json!("x"))),
        ("images:", |p| {
            p.images = vec![Image {
                media_type: "image/png".into(),
                source: ImageSource::Path("/no/such/file.png".into()),
            }];
        }),
    ];
    for (name, change) in cases {
        let mut params = ExecuteParams::new("hi");
        change(&mut params);
        let error = launch(&params).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
}

#[test]
fn a_prompt_larger_than_stdin_takes_is_refused() {
    let params = ExecuteParams::new("x".repeat(LARGEST_STDIN_PROMPT + 1));
    assert_eq!(launch(&params).unwrap_err().code, ErrorCode::PromptTooLarge);
}

#[test]
fn a_sandbox_is_never_claimed_behind_the_users_back() {
    let mut params = ExecuteParams::new("hi");
    params.permission = PermissionMode::Bypass;
    params.env.insert("IS_SANDBOX".into(), String::new());
    match launch(&params) {
        Ok(launch) => assert!(!geteuid().is_root() && launch.env.is_empty()),
        Err(error) => {
            assert!(geteuid().is_root());
            assert_eq!(error.kind, ErrorKind::Permission);
            assert!(error.message.contains("IS_SANDBOX=1"), "{error}");
        }
    }
    params.env.insert("IS_SANDBOX".into(), "1".into());
    let launch = launch(&params).unwrap();
    assert!(launch.env.iter().all(|(name, _)| name != "IS_SANDBOX"));
}

#[test]
fn hooks_are_in_a_file_and_in_no_argument() {
    let params = ExecuteParams::new("hi").hooks(json!({"Stop": ["secret"]}));
    let launch = launch(&params).unwrap();
    let [file] = &launch.private_files[..] else {
        panic!("{:?}", launch.private_files);
    };
    assert_eq!(file.content, br#"{"hooks":{"Stop":["secret"]}}"#);
    let PathLocation::Argument(at) = file.location else {
        panic!("{:?}", file.location);
    };
    assert_eq!(launch.args[at], "--settings=");
    let has_secret = |arg: &std::ffi::OsString| arg.to_string_lossy().contains("secret");
    assert!(!launch.args.iter().any(has_secret));
}
