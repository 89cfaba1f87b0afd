use teamster_core::ErrorCode;
use teamster_core::provider::PathLocation;

use super::*;

fn launched(command: &str, params: &ExecuteParams) -> Launch {
    TextCommand::new(command).unwrap().launch(params).unwrap()
}

fn args(launch: &Launch) -> Vec<&str> {
    launch
        .args
        .iter()
        .map(|arg| arg.to_str().unwrap())
        .collect()
}

#[test]
fn a_prompt_is_an_argument_a_file_or_stdin() {
    let params = ExecuteParams::new("say hi").model("m");
    let launch = launched("agent --model {model} --message={prompt} -x", &params);
    assert_eq!(args(&launch), ["--model", "m", "--message=say hi", "-x"]);
    assert_eq!(launch.stdin, Stdin::Closed);

    let params = ExecuteParams::new("say hi");
    let launch = launched("agent --file={prompt_file} -x", &params);
    assert_eq!(args(&launch), ["--file=", "-x"]);
    assert_eq!(launch.private_files[0].location, PathLocation::Argument(0));
    assert_eq!(launch.private_files[0].content, b"say hi");
    assert_eq!(launch.stdin, Stdin::Closed);

    let launch = launched("agent 'two words'", &params);
    assert_eq!(args(&launch), ["two words"]);
    assert_eq!(launch.stdin, Stdin::Bytes(b"say hi".to_vec()));
}

#[test]
fn a_prompt_never_becomes_a_flag_or_another_placeholder() {
    let flag = ExecuteParams::new("--version");
    assert_eq!(args(&launched("agent {prompt}", &flag)), [" --version"]);
    assert_eq!(
        args(&launched("agent -- {prompt}", &flag)),
        ["--", "--version"]
    );
    assert_eq!(
        args(&launched("agent -m={prompt}", &flag)),
        ["-m=--version"]
    );
    let odd = ExecuteParams::new("{model} $(id) `id`");
    assert_eq!(
        args(&launched("agent {prompt}", &odd)),
        ["{model} $(id) `id`"]
    );
}

#[test]
fn a_shell_never_reads_the_prompt_as_a_script() {
    for command in [
        "sh -c 'agent {prompt}'",
        "/bin/bash -c \"agent '{prompt}'\"",
    ] {
        let error = TextCommand::new(command).unwrap_err();
        assert!(error.message.contains("a shell would read"), "{error}");
    }
    let params = ExecuteParams::new("$(id)");
    let launch = launched("sh -c 'agent \"$1\"' sh {prompt}", &params);
    assert_eq!(args(&launch), ["-c", "agent \"$1\"", "sh", "$(id)"]);
}

#[test]
fn a_command_that_makes_no_sense_is_refused() {
    for (command, words) in [
        ("", "the command is missing"),
        ("agent '", "a quotation mark"),
        ("{prompt}", "the name of the program is missing"),
        ("agent {prompt_file}.txt", "at the end of a word"),
        ("agent {prompt} {prompt_file}", "twice"),
        (
            "agent {prompt_file} {prompt_file}",
            "use `{prompt_file}` once",
        ),
    ] {
        let error = TextCommand::new(command).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidParams);
        assert!(error.message.contains(words), "{command}: {error}");
    }
    let name = TextCommand::with_settings("My Agent", CommandSettings::default());
    assert!(name.unwrap_err().message.contains("is not an agent name"));
}

#[test]
fn unsupported_parameters_are_refused_by_name() {
    let refused = |command: &str, params: ExecuteParams| {
        let agent = TextCommand::new(command).unwrap();
        let error = agent.launch(&params).unwrap_err();
        error.parameter().unwrap().to_owned()
    };
    let params = || ExecuteParams::new("x");
    assert_eq!(refused("agent", params().model("m")), "model");
    assert_eq!(refused("agent {model}", params()), "model");
    assert_eq!(refused("agent {model}", params().model("-m")), "model");
    assert_eq!(refused("agent", params().resume("s")), "session_id");
    assert_eq!(
        refused("agent", params().permission(PermissionMode::ReadOnly)),
        "permission"
    );
    assert_eq!(
        refused("agent {prompt}", ExecuteParams::new("a\0b")),
        "prompt"
    );
    assert_eq!(
        refused("agent {prompt}", ExecuteParams::new("x".repeat(200_000))),
        "prompt"
    );
    assert_eq!(refused("agent", ExecuteParams::new(" ")), "prompt");
    assert!(TextCommand::new("agent").unwrap().launch(&params()).is_ok());
}
