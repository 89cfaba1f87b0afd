//! The examples: one program for runs of this machine and of another one.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_host::{Host, LocalMachine, LocalRuns};
use teamster_providers::Providers;
use teamster_server::{Server, ServerConfig, Tokens};

use super::{AGENT, text, with_agent};

const HERE: &str = include_str!("../examples/detached_run.rs");
const THERE: &str = include_str!("../examples/remote_run.rs");

/// Made by hand: what Claude Code prints of a turn that ends with an interrupt.
const SILENT: &str = r#"#!/bin/sh
field() { rest=${line#*"\"$1\":\""}; printf %s "${rest%%\"*}"; }
while IFS= read -r line; do
  case $line in
    *'"subtype":"end_session"'*) exit 0 ;;
    *'"type":"control_request"'*)
      printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(field request_id)"
      case $line in *'"subtype":"interrupt"'*)
        printf '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","num_turns":1,"terminal_reason":"aborted_tools"}\n' ;;
      esac ;;
    *) printf '{"type":"system","subtype":"init","session_id":"s","model":"opus"}\n' ;;
  esac
done
"#;

fn example(name: &str) -> PathBuf {
    let test = env::current_exe().unwrap();
    // Beside the folder of test programs.
    test.ancestors().nth(2).unwrap().join("examples").join(name)
}

/// Asserts that the run of the example ended with an allowed request.
#[track_caller]
fn assert_allowed(output: &Output) {
    let text = text(output);
    assert!(output.status.success(), "{text}");
    let lines: Vec<_> = text.lines().collect();
    let types: Vec<_> = (lines.iter())
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        types.first().map(String::as_str),
        Some("run:start"),
        "{text}"
    );
    assert_eq!(types.last().map(String::as_str), Some("done"), "{text}");
    assert_eq!(lines.last(), Some(&"allowed"), "{text}");
}

/// Interrupts the example once its agent works, and asserts that the run was stopped.
#[track_caller]
fn assert_stopped(command: &mut Command) {
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    let session = lines.find(|line| line.as_ref().unwrap().contains(r#""type":"session""#));
    assert!(session.is_some());
    let pid = Pid::from_raw(running.id().cast_signed());
    kill(pid, Signal::SIGINT).unwrap();
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(running.wait().unwrap().success(), "{rest:?}");
    let done = rest.iter().find(|line| line.contains(r#""type":"done""#));
    assert!(done.unwrap().contains(r#""status":"aborted""#), "{rest:?}");
}

#[test]
fn single_line_selects_the_machine() {
    assert_eq!(HERE.lines().count(), THERE.lines().count());
    let pairs = HERE.lines().zip(THERE.lines());
    let differing: Vec<_> = pairs.filter(|(here, there)| here != there).collect();
    let [(here, there)] = *differing else {
        panic!("{differing:?}");
    };
    assert!(here.contains("LocalRuns::new"), "{here}");
    assert!(there.contains("Client::new"), "{there}");
}

#[test]
fn program_starts_follows_answers_and_stops_runs_outliving_it() {
    for (script, asks) in [(AGENT, true), (SILENT, false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(example("detached_run"));
        with_agent(&mut command, folder.path(), script);
        command.current_dir(&folder);
        if asks {
            assert_allowed(&command.output().unwrap());
        } else {
            assert_stopped(&mut command);
        }
    }
}

#[test]
fn program_gets_the_warnings_of_a_detached_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(example("detached_run"));
    with_agent(&mut command, folder.path(), AGENT);
    // No folder can be made there.
    command.env("TEAMSTER_STORE", "/proc/none/store.db");
    let output = command.current_dir(&folder).output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let warning = "warning: the history of this run is incomplete";
    assert!(text.contains(warning), "{text}");
}

/// Serves the runs of this process's machine, which are carried out by the other example, and calls `there` with a
/// command that starts the program elsewhere: it has neither an agent nor a place for runs.
fn serve(there: impl FnOnce(&mut Command)) {
    let here = env::current_dir().unwrap();
    let host = Host::new(Providers::builtin()).program(example("detached_run"));
    let runs = Arc::new(LocalRuns::new(&host).unwrap());
    let config = ServerConfig::new(Tokens::at(&here));
    let server = Server::new(config, runs, Arc::new(LocalMachine::new(&host)));
    let url = format!("unix:{}", here.join("server.sock").display());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bound = runtime.block_on(server.bind(&url.parse().unwrap()));
    runtime.spawn(bound.unwrap().serve());
    there(
        Command::new(example("remote_run"))
            .arg(&url)
            .env_remove("XDG_STATE_HOME")
            .env_remove("HOME")
            .env("TEAMSTER_CLAUDE_BIN", "/no/such/program"),
    );
}

#[test]
fn the_program_does_the_same_on_another_machine() {
    in_own_process!(AGENT);
    serve(|command| assert_allowed(&command.output().unwrap()));
}

#[test]
fn the_program_stops_a_run_of_another_machine() {
    in_own_process!(SILENT);
    serve(assert_stopped);
}
