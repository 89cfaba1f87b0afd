//! Text on stdin that is added to the prompt, and output that cannot be written.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use teamster_testkit::fake_agent::{Play, Script};
use teamster_testkit::proc::wait_gone;

use crate::cli::{Claude, LIMIT, Running, TEAMSTER, ended, recorded, recording, run, teamster};

/// Returns the prompt that the agent received.
fn prompt(claude: &Claude) -> String {
    let argv = claude.report().argv;
    let prompt = argv.iter().find(|arg| arg.starts_with("review")).cloned();
    prompt.unwrap_or_else(|| panic!("{argv:?}"))
}

#[test]
fn piped_text_is_added_to_the_prompt() {
    for stdin in ["pipe", "file", "socket"] {
        let claude = Claude::plays("text", 0);
        let mut command = claude.run(["review this", "--quiet"]);
        let mut child = match stdin {
            "file" => {
                fs::write(claude.path("diff"), "+ a line\n").unwrap();
                command.stdin(File::open(claude.path("diff")).unwrap());
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            }
            "socket" => {
                let (ours, its) = std::os::unix::net::UnixStream::pair().unwrap();
                command.stdin(std::os::fd::OwnedFd::from(its));
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                let child = command.spawn().unwrap();
                (&ours).write_all(b"+ a line\n").unwrap();
                child
            }
            _ => {
                command.stdin(Stdio::piped());
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            }
        };
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(b"+ a line\n").unwrap();
        }
        drop(command);
        let ended = ended(child.wait_with_output().unwrap());
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{stdin}");
        assert_eq!(
            prompt(&claude),
            "review this\n\n<stdin>\n+ a line\n</stdin>",
            "{stdin}"
        );
    }
}

#[test]
fn an_empty_stdin_changes_nothing() {
    let claude = Claude::plays("text", 0);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    run(claude.run(["review this", "--quiet"]).stdin(reader)).quiet();
    assert_eq!(prompt(&claude), "review this");
}

#[test]
fn stdin_modes_ignore_and_wait() {
    let claude = Claude::plays("text", 0);
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"left alone").unwrap();
    run(claude
        .run(["review this", "--stdin=ignore", "--quiet"])
        .stdin(reader))
    .quiet();
    assert_eq!(prompt(&claude), "review this");

    // Reading starts at the current offset of a file.
    let claude = Claude::plays("text", 0);
    fs::write(claude.path("list"), "one\ntwo\n").unwrap();
    let mut file = File::open(claude.path("list")).unwrap();
    file.seek(std::io::SeekFrom::Start(4)).unwrap();
    let command = || claude.run(["review this", "--stdin=wait", "--quiet"]);
    run(command().stdin(file)).quiet();
    assert_eq!(prompt(&claude), "review this\n\n<stdin>\ntwo\n</stdin>");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_ends_the_agent() {
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["x", "--json"][..], &["x"], &["x", "--quiet"]] {
        // With --quiet, output is written only at the end of the run.
        let silent = Script::new().play(recording("tool_parallel"));
        let script = if args.contains(&"--quiet") {
            silent
        } else {
            silent.forever()
        };
        let claude = Claude::new(&script);
        let ended = run(claude.run(args.iter().copied()).stdout(full()));
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        let error = "error: cannot write the output: No space left on device (os error 28)\n";
        assert!(ended.stderr.ends_with(error), "{args:?}: {}", ended.stderr);
        assert!(wait_gone(claude.report().pid, LIMIT));
    }
    for args in [
        &["--help"][..],
        &["doctor"],
        &["completions", "bash"],
        &["runs", "list", "--help"],
    ] {
        let ended = run(teamster(args.iter().copied()).stdout(full()));
        assert_eq!(ended.code, Some(1), "{args:?}");
        ended.stderr_has("No space left");
    }
}

#[test]
fn closed_stdout_is_an_error_before_the_agent_starts() {
    let claude = Claude::plays("text", 0);
    for args in [
        &["run", "claude", "x"][..],
        &["run", "claude", "x", "--json"],
        &["run", "claude", "x", "--detach"],
        &["attach", "x"],
        &["doctor"],
    ] {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec \"$0\" \"$@\" >&-", TEAMSTER])
            .args(args)
            .env_clear()
            .env("TEAMSTER_STORE", "off")
            .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"));
        let ended = run(&mut command);
        let error = "error: cannot write the output: stdout is closed; redirect it to a file, or to /dev/null\n";
        assert_eq!((ended.code, &*ended.stderr), (Some(1), error), "{args:?}");
    }
    assert!(!claude.path("report.json").exists());
}

#[test]
fn final_text_is_written_as_it_comes() {
    let recording = Play::new(recorded("gemini", "0.61.0", "text_auto_model"));
    let gemini = Claude::new(&Script::new().play(recording.last(4)).forever());
    let mut command = teamster(["run", "gemini", "x"]);
    let mut running = Running::start(command.env("TEAMSTER_GEMINI_BIN", gemini.path("claude")));
    // The message and its line are still incomplete.
    let mut text = [0; 12];
    running
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut text)
        .unwrap();
    assert_eq!(&text, b"Hello, world");
    running.signal(Signal::SIGTERM);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (Some(130), "\n"));
}
