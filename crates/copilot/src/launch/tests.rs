use std::fs;

use teamster_core::provider::PathLocation;

use super::*;

const SESSION: &str = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";

fn here() -> String {
    env::current_dir().unwrap().display().to_string()
}

fn args(params: &ExecuteParams) -> Vec<String> {
    let launch = launch(params).unwrap();
    launch
        .args
        .into_iter()
        .map(|arg| arg.into_string().unwrap())
        .collect()
}

#[test]
fn a_prompt_larger_than_stdin_takes_is_refused() {
    let params = ExecuteParams::new("x".repeat(LARGEST_STDIN_PROMPT + 1));
    assert_eq!(launch(&params).unwrap_err().code, ErrorCode::PromptTooLarge);
}

#[test]
fn every_value_is_joined_to_its_flag() {
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some(SESSION.into());
    params.model = Some("-m".into());
    params.effort = Some("low".into());
    params.permission = PermissionMode::AcceptEdits;
    params.allowed_tools = vec!["shell(git:*)".into(), "MyMCP".into()];
    params.denied_tools = vec!["shell(git push)".into()];
    params.add_dirs = vec!["-d".into()];
    params.extra_args = vec!["--no-custom-instructions".into()];
    assert_eq!(
        args(&params)[4..],
        [
            format!("--resume={SESSION}").as_str(),
            "--model=-m",
            "--reasoning-effort=low",
            "--allow-tool=write",
            "--allow-tool=shell(git:*)",
            "--allow-tool=MyMCP",
            "--deny-tool=shell(git push)",
            &format!("--add-dir={}/-d", here()),
            "--no-custom-instructions",
        ]
    );
}

#[test]
fn permissions() {
    let args_of = |permission| {
        let mut params = ExecuteParams::new("hi");
        params.permission = permission;
        args(&params)[4..].to_vec()
    };
    assert_eq!(args_of(PermissionMode::Default), [""; 0]);
    assert_eq!(
        args_of(PermissionMode::ReadOnly),
        ["--deny-tool=write,shell"]
    );
    assert_eq!(args_of(PermissionMode::AcceptEdits), ["--allow-tool=write"]);
    assert_eq!(args_of(PermissionMode::Bypass), ["--allow-all"]);
    let mut params = ExecuteParams::new("hi");
    params.permission = PermissionMode::Plan;
    assert!(args(&params).contains(&"--mode=plan".to_owned()));
}

#[test]
fn new_session_gets_its_id_and_a_known_one_is_not_created() {
    let mut params = ExecuteParams::new("hi");
    params.new_session_id = Some(SESSION.into());
    assert_eq!(args(&params)[4..], [format!("--session-id={SESSION}")]);
    params.new_session_id = None;
    params.session_id = Some(SESSION.into());
    assert_eq!(args(&params)[4..], [format!("--resume={SESSION}")]);
}

#[test]
fn the_record_is_where_the_cli_keeps_its_sessions() {
    let mut params = ExecuteParams::new("hi");
    assert_eq!(record(&params), None);
    params.session_id = Some(SESSION.into());
    params.env.insert("HOME".into(), "/home/dev".into());
    params.env.insert("COPILOT_HOME".into(), String::new());
    let path = |params: &ExecuteParams| record(params).unwrap().folder.join("events.jsonl");
    assert_eq!(
        path(&params),
        Path::new(&format!(
            "/home/dev/.copilot/session-state/{SESSION}/events.jsonl"
        ))
    );
    params.env.insert("COPILOT_HOME".into(), "state".into());
    params.working_directory = Some("/tmp/ws".into());
    assert_eq!(
        path(&params),
        Path::new(&format!(
            "/tmp/ws/state/session-state/{SESSION}/events.jsonl"
        ))
    );
    assert_eq!(
        record(&params).unwrap(),
        RecordFiles::new(
            format!("/tmp/ws/state/session-state/{SESSION}"),
            vec!["events.jsonl".into()],
            &["session.usage_record", "session.start", "session.shutdown"],
        )
    );
}

#[test]
fn images_are_files_with_an_extension_of_their_type() {
    // The launch does not open it.
    let path = PathBuf::from("/no/such/pic.png");
    let image = |source| Image {
        media_type: "image/jpeg".into(),
        source,
    };
    let mut params = ExecuteParams::new("what is this?");
    params.images = vec![
        image(ImageSource::Path(path.clone())),
        image(ImageSource::Bytes(vec![1, 2])),
    ];
    let attached = format!("--attachment={}", path.display());
    assert_eq!(args(&params)[4..], [attached.as_str(), "--attachment="]);
    let files = launch(&params).unwrap().private_files;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].location, PathLocation::ArgumentNamed(5, ".jpg"));
    assert_eq!(files[0].content, [1, 2]);
}

#[test]
fn invalid_parameters_are_refused_by_name() {
    type Change = fn(&mut ExecuteParams);
    let image = |media_type: &str, source| Image {
        media_type: media_type.into(),
        source,
    };
    let cases: &[(&str, Change)] = &[
        ("prompt:", |p| p.prompt = " \n".into()),
        ("session_id:", |p| p.session_id = Some("my run".into())),
        ("session_id:", |p| p.session_id = Some("0190b0b".into())),
        ("session_id:", |p| p.session_id = Some("--yolo".into())),
        ("new_session_id:", |p| p.new_session_id = Some("me".into())),
    ];
    for (name, change) in cases {
        let mut params = ExecuteParams::new("hi");
        change(&mut params);
        let error = launch(&params).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with(name), "{name}: {error}");
    }
    let mut params = ExecuteParams::new("hi");
    params.images = vec![image("image/tiff", ImageSource::Bytes(vec![1]))];
    let error = launch(&params).unwrap_err();
    assert!(error.message.starts_with("images: "), "{error}");
    assert_eq!(error.kind, ErrorKind::Invalid);
    // The CLI takes no images without a prompt.
    params.prompt = String::new();
    let error = launch(&params).unwrap_err();
    assert!(error.message.starts_with("prompt: "), "{error}");
}

#[test]
fn directories_are_given_from_the_root() {
    let mut params = ExecuteParams::new("hi");
    params.working_directory = Some("/tmp/ws".into());
    params.add_dirs = vec!["lib".into(), "/var".into()];
    params.extra_args = vec!["-C/elsewhere".into()];
    assert_eq!(
        args(&params)[4..],
        ["--add-dir=/tmp/ws/lib", "--add-dir=/var", "-C/elsewhere"]
    );
}

#[test]
fn conflicting_arguments_are_refused_with_the_next_step() {
    for (arg, way) in [
        ("--continue", "session_id"),
        ("--resume", "session_id"),
        ("--resume=x", "session_id"),
        ("-r", "session_id"),
        ("-r=x", "session_id"),
        ("-rx", "session_id"),
        ("--session-id=x", "new_session_id"),
        ("--connect", "remote"),
        ("--trust-folder", "--additional-mcp-config"),
        ("--worktree=x", "working_directory"),
        ("--acp", "protocol"),
    ] {
        let mut params = ExecuteParams::new("hi");
        params.extra_args = vec!["--no-custom-instructions".into(), arg.into()];
        let error = launch(&params).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.starts_with("extra_args: "), "{error}");
        assert!(error.message.contains(way), "{arg}: {error}");
    }
    let mut params = ExecuteParams::new("hi");
    params.extra_args = vec!["--remote".into(), "--name=x".into()];
    assert_eq!(args(&params)[4..], ["--remote", "--name=x"]);
}

#[test]
fn nested_session_variables_are_not_inherited() {
    let launch = launch(&ExecuteParams::new("hi")).unwrap();
    assert!(launch.env_remove.contains(&"COPILOT_AGENT_SESSION_ID"));
    assert!(launch.env_remove.contains(&"COPILOT_CLI"));
    assert!(launch.env.is_empty());
    // The CLI cleans up best on SIGTERM to the group.
    assert_eq!(launch.stop_first, None);
}

const NONE: [PathBuf; 0] = [];

/// Creates an installation with these packages beside the launcher's package or inside it.
fn installed(beside: &[&str], nested: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/@github/copilot");
    let make = |packages: PathBuf, name: &str| {
        let package = packages.join(name);
        fs::create_dir_all(&package).unwrap();
        fs::write(package.join("copilot"), b"").unwrap();
    };
    fs::create_dir_all(&package).unwrap();
    for name in beside {
        make(package.parent().unwrap().to_owned(), name);
    }
    for name in nested {
        make(package.join("node_modules/@github"), name);
    }
    let launcher = package.join("npm-loader.js");
    (folder, launcher)
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn native_program_is_started_if_it_is_unambiguous() {
    let (folder, launcher) = installed(&["copilot-linux-x64", "copilot-linux-arm64"], &[]);
    let program = folder
        .path()
        .join("node_modules/@github/copilot-linux-x64/copilot");
    assert_eq!(native_programs(&launcher), [program]);
    let (folder, launcher) = installed(&[], &["copilot-linuxmusl-x64"]);
    let nested = "node_modules/@github/copilot/node_modules/@github/copilot-linuxmusl-x64/copilot";
    assert_eq!(native_programs(&launcher), [folder.path().join(nested)]);
    // Only the launcher knows the installed C library.
    let (_folder, launcher) = installed(&["copilot-linux-x64", "copilot-linuxmusl-x64"], &[]);
    assert_eq!(native_programs(&launcher), NONE);
    let (_folder, launcher) = installed(&[], &[]);
    assert_eq!(native_programs(&launcher), NONE);
    // The program itself, or one of another name.
    let (_folder, launcher) = installed(&["copilot-linux-x64"], &[]);
    let other = launcher.with_file_name("copilot");
    assert_eq!(native_programs(&other), NONE);
}

#[test]
fn a_new_session_with_the_id_of_another_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let id = "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";
    let mut params = ExecuteParams::new("hi");
    params
        .env
        .insert("COPILOT_HOME".into(), home.path().to_str().unwrap().into());
    params.new_session_id = Some(id.into());
    assert!(launch(&params).is_ok());
    let session = home.path().join("session-state").join(id);
    fs::create_dir_all(&session).unwrap();
    fs::write(session.join("events.jsonl"), "{}\n").unwrap();
    let error = launch(&params).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert!(error.message.starts_with("new_session_id: "), "{error}");
    params.session_id = params.new_session_id.take();
    assert!(launch(&params).is_ok());
}
