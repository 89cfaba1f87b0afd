use super::*;
use crate::Codex;
use serde_json::json;
use teamster_core::CliProvider;
use teamster_core::provider::PathLocation;

const SESSION: &str = "01a1ffcf-9322-7b61-8654-8b3cf70c24fa";

const BASE: [&str; 5] = [
    "exec",
    "--json",
    "--color=never",
    "--skip-git-repo-check",
    "--config=features.unbounded_connection_retries=false",
];

fn args(params: &ExecuteParams) -> Vec<String> {
    let launch = launch(params).unwrap();
    launch
        .args
        .into_iter()
        .map(|arg| arg.into_string().unwrap())
        .collect()
}

fn refused(params: &ExecuteParams) -> AgentError {
    launch(params).unwrap_err()
}

fn png() -> Image {
    Image {
        media_type: "image/png".into(),
        source: ImageSource::Bytes(vec![0, 1, 2]),
    }
}

#[test]
fn the_cli_never_waits_for_ever_for_a_network() {
    for session in [None, Some(SESSION.to_owned())] {
        let mut params = ExecuteParams::new("hi");
        params.session_id = session;
        let args = args(&params);
        let setting = "--config=features.unbounded_connection_retries=false";
        assert!(args.iter().any(|arg| arg == setting), "{args:?}");
    }
}

#[test]
fn every_value_is_joined_to_its_flag() {
    let mut params = ExecuteParams::new("hi");
    params.model = Some("-m".into());
    params.effort = Some("high".into());
    params.permission = PermissionMode::AcceptEdits;
    params.add_dirs = vec!["-d".into(), "e,f".into()];
    params.system_prompt = Some(SystemPrompt::Append("Say \"hi\".\n".into()));
    params.extra_args = vec!["--profile".into(), "x".into()];
    assert_eq!(
        args(&params)[5..],
        [
            "--model=-m",
            "--config=model_reasoning_effort=\"high\"",
            "--sandbox=workspace-write",
            "--add-dir=-d",
            "--add-dir=e,f",
            "--config=developer_instructions=\"Say \\\"hi\\\".\\n\"",
            "--profile",
            "x",
            "--",
            "hi",
        ]
    );
}

#[test]
fn flags_stand_before_resume_and_fork_which_refuse_most_of_them() {
    let mut params = ExecuteParams::new("--go on");
    params.session_id = Some(SESSION.into());
    params.permission = PermissionMode::ReadOnly;
    params.extra_args = vec!["--oss".into()];
    assert_eq!(
        args(&params)[5..],
        [
            "--sandbox=read-only",
            "--oss",
            "resume",
            SESSION,
            "--",
            "--go on"
        ]
    );
    params.fork = true;
    assert_eq!(args(&params)[7], "fork");
    params.prompt = "x".repeat(10_001);
    assert_eq!(args(&params)[7..], ["fork", SESSION, "-"]);
    assert_eq!(
        launch(&params).unwrap().stdin,
        Stdin::Bytes(vec![b'x'; 10_001])
    );
}

#[test]
fn permission_modes() {
    let mut params = ExecuteParams::new("hi");
    assert_eq!(args(&params).len(), BASE.len() + 2);
    params.permission = PermissionMode::Bypass;
    assert_eq!(
        args(&params)[5],
        "--dangerously-bypass-approvals-and-sandbox"
    );
}

#[test]
fn session_id_that_is_not_a_uuid_is_refused() {
    for id in ["latest", "--last", "-", "01a1ffcf", &format!("{SESSION} ")] {
        for fork in [false, true] {
            let mut params = ExecuteParams::new("hi");
            params.session_id = Some(id.to_owned());
            params.fork = fork;
            let error = refused(&params);
            assert_eq!(error.code, ErrorCode::InvalidParams);
            assert_eq!(error.kind, ErrorKind::SessionNotFound);
            assert!(error.message.starts_with("session_id: "), "{error}");
        }
    }
}

#[test]
fn a_mark_of_the_byte_order_is_not_lost_on_stdin() {
    let mut params = ExecuteParams::new("\u{feff}x");
    assert_eq!(args(&params)[5..], ["--", "\u{feff}x"]);
    params.prompt.push('\0');
    let twice = "\u{feff}\u{feff}x\0".as_bytes().to_vec();
    assert_eq!(launch(&params).unwrap().stdin, Stdin::Bytes(twice));
}

#[test]
fn empty_prompt_is_an_argument() {
    // Also one that would go to stdin, which the CLI refuses if it is empty.
    let blank = " ".repeat(10_001);
    let mut params = ExecuteParams::new(&*blank);
    params.images = vec![png()];
    assert_eq!(args(&params)[5..], ["--image=", "--", &*blank]);
    assert_eq!(launch(&params).unwrap().stdin, Stdin::Closed);
}

#[test]
fn prompt_above_the_character_limit_is_refused() {
    let mut params = ExecuteParams::new("é".repeat(LARGEST_PROMPT_CHARS));
    assert!(launch(&params).is_ok());
    params.prompt.push('!');
    assert_eq!(refused(&params).code, ErrorCode::PromptTooLarge);
}

#[test]
fn a_system_prompt_in_place_of_the_clis_own_is_a_private_file() {
    let mut params = ExecuteParams::new("hi");
    params.system_prompt = Some(SystemPrompt::Replace("x".repeat(200_000)));
    let launch = launch(&params).unwrap();
    assert_eq!(launch.args[5], "--config=model_instructions_file=");
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(5));
    assert_eq!(launch.private_files[0].content.len(), 200_000);
    // It also applies to a resumed session.
    params.session_id = Some(SESSION.into());
    assert_eq!(args(&params)[6..8], ["resume", SESSION]);
}

#[test]
fn instructions_for_a_resumed_session_are_refused() {
    let mut params = ExecuteParams::new("hi");
    params.system_prompt = Some(SystemPrompt::Append("be brief".into()));
    params.session_id = Some(SESSION.into());
    for fork in [false, true] {
        params.fork = fork;
        let error = refused(&params);
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with("system_prompt: "), "{error}");
    }
}

#[test]
fn instructions_that_are_too_large_for_an_argument_are_refused() {
    let mut params = ExecuteParams::new("hi");
    // Each character takes six characters of TOML.
    params.system_prompt = Some(SystemPrompt::Append("\u{1}".repeat(30_000)));
    let error = refused(&params);
    assert_eq!(error.code, ErrorCode::PromptTooLarge);
    assert!(error.message.starts_with("system_prompt: "), "{error}");
}

#[test]
fn image_is_not_opened_and_its_path_may_have_a_comma() {
    let mut params = ExecuteParams::new("what is this?");
    params.images = vec![Image::file("image/png", "/no/such/a.png")];
    assert_eq!(args(&params)[5], "--image=/no/such/a.png");
    assert!(launch(&params).unwrap().private_files.is_empty());

    params.images = vec![Image::file("image/png", "/no/such/a,b.png")];
    assert_eq!(
        refused(&params).message,
        "images: /no/such/a,b.png was not read before the launch"
    );
    assert!(Codex.reads_image(Path::new("/no/such/a,b.png")));
    assert!(!Codex.reads_image(Path::new("/no/such/a.png")));

    params.images = vec![png()];
    let launched = launch(&params).unwrap();
    assert_eq!(launched.args[5], "--image=");
    assert_eq!(launched.private_files[0].content, [0, 1, 2]);
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    type Change = fn(&mut ExecuteParams);
    let cases: &[(&str, Change)] = &[
        ("prompt:", |p| p.prompt = " \n".into()),
        ("fork:", |p| p.fork = true),
        ("output_schema:", |p| p.output_schema = Some(json!("x"))),
    ];
    for (name, change) in cases {
        let mut params = ExecuteParams::new("hi");
        change(&mut params);
        let error = refused(&params);
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
}

#[test]
fn codex_gets_sigint_first_to_end_its_tools() {
    let launch = launch(&ExecuteParams::new("hi")).unwrap();
    let first = launch.stop_first.unwrap();
    assert_eq!(first.signal, Signal::Interrupt);
    assert!(
        launch
            .env_remove
            .contains(&"CODEX_SANDBOX_NETWORK_DISABLED")
    );
    assert!(launch.env.is_empty(), "no setting of the user's is changed");
}

#[test]
fn the_native_program_is_looked_for_where_npm_puts_it() {
    let Some((package, triple)) = platform() else {
        return;
    };
    let found = native_programs(Path::new("/m/@openai/codex/bin/codex.js"));
    let suffix = std::env::consts::EXE_SUFFIX;
    let program = format!("vendor/{triple}/bin/codex{suffix}");
    let expected = [
        format!("/m/@openai/codex/node_modules/@openai/{package}/{program}"),
        format!("/m/@openai/{package}/{program}"),
        format!("/m/@openai/codex/{program}"),
    ];
    assert_eq!(found, expected.map(PathBuf::from));
    assert!(native_programs(Path::new("/usr/local/bin/codex")).is_empty());
}
