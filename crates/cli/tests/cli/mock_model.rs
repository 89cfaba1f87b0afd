//! `teamster mock-model`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster_testkit::proc::{self, KillOnDrop, wait_gone, wait_until};
use tempfile::TempDir;

use crate::cli::{LIMIT, Running, json_lines, run, teamster};

const SCRIPT: &str = r#"
description = "says hello"

[[turn]]
times = 1
error = "overloaded"

[[turn]]
parts = [{ text = ["Hel", "lo"] }]
"#;

/// A folder with the script in it, where also everything temporary goes.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script.toml"), SCRIPT).unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `teamster mock-model script.toml`, where no CLI is installed.
    fn model<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = teamster(["mock-model", "script.toml"]);
        command
            .args(args)
            .current_dir(self.path())
            .env("HOME", "/home/of/the/user")
            .env(
                "PATH",
                format!("{}:/usr/bin:/bin", self.path().join("bin").display()),
            )
            .env("TMPDIR", self.path().join("tmp"));
        command
    }

    fn program(&self, name: &str, script: &str) {
        let file = self.path().join("bin").join(name);
        proc::write_program(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    }

    fn left(&self) -> usize {
        fs::read_dir(self.path().join("tmp")).unwrap().count()
    }
}

/// Asks the model, and gives all that it answers.
fn ask(url: &str) -> String {
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[]}"#;
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nuser-agent: claude-cli/2.1.197\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn mock_model_serves_until_stopped_and_shows_requests() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new();
        let mut model = Running::start(&mut place.model(["--json", "--log", "log.ndjson"]));
        let announced: Value = serde_json::from_str(&model.line()).unwrap();
        let url = announced["url"].as_str().unwrap();
        let home = Path::new(announced["home"].as_str().unwrap());
        assert!(home.is_dir());
        assert_eq!(announced["pid"], model.child.id());
        let clis = announced["clis"].as_array().unwrap();
        let ids: Vec<_> = clis.iter().map(|cli| cli["id"].as_str().unwrap()).collect();
        assert_eq!(
            ids,
            [
                "claude", "cline", "codex", "copilot", "gemini", "kilo", "kimi", "opencode", "pi",
                "qwen", "embedded"
            ]
        );
        assert_eq!(clis[0]["env"]["ANTHROPIC_BASE_URL"], url);
        assert_eq!(clis[0]["env"]["HOME"], announced["home"]);
        assert_eq!(clis[0]["installed"], false);
        for file in clis.iter().flat_map(|cli| cli["files"].as_array().unwrap()) {
            let content = fs::read_to_string(file["path"].as_str().unwrap()).unwrap();
            assert_eq!(file["content"], content);
        }

        assert!(ask(url).starts_with("HTTP/1.1 529 "));
        let answer = ask(url);
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains("Hello"), "{answer}");
        model.signal(signal);
        let ended = model.end().ok();
        let lines: Vec<_> = ended.stderr.lines().collect();
        assert_eq!(
            lines,
            [
                "claude   turn 1            529  m  POST /v1/messages",
                "claude   turn 1, attempt 2 200  m  POST /v1/messages"
            ]
        );
        assert_eq!(place.left(), 0);
        let log = fs::read_to_string(place.path().join("log.ndjson")).unwrap();
        let log = json_lines(&log);
        assert_eq!(log.len(), 2);
        assert_eq!(
            (&log[1]["turn"], &log[1]["attempt"]),
            (&1.into(), &2.into())
        );
        assert_eq!(log[1]["body"]["messages"][0]["content"], "hi");
    }
}

#[test]
fn mock_model_prints_the_settings_of_each_cli() {
    let place = Place::new();
    place.program("claude", "");
    let mut model = Running::start(
        place
            .model(["--directory", "bin"])
            .env("CLAUDE_CONFIG_DIR", "/mine"),
    );
    let mut head = model.line();
    head += &model.line();
    assert!(
        head.starts_with("A mock model of 1 turn on http://127.0.0.1:"),
        "{head}"
    );
    assert!(head.ends_with("\nsays hello\n"), "{head}");
    let rest: Vec<_> = (0..6).map(|_| model.line()).collect();
    assert!(
        rest[1].ends_with("/bin: run these lines there.\n"),
        "{rest:?}"
    );
    // Only what is installed.
    assert_eq!((&*rest[2], &*rest[3]), ("\n", "Claude Code\n"));
    let own = shell_words::split(&rest[4]).unwrap().join(" ");
    // Nothing of the shell into which it is pasted leads it elsewhere.
    assert!(
        own.contains("/bin && env -i PATH=$PATH TERM=$TERM HOME="),
        "{own}"
    );
    assert!(own.ends_with("claude -p hello)"), "{own}");
    let run = shell_words::split(&rest[5]).unwrap().join(" ");
    assert!(
        run.starts_with("teamster run claude hello --clean-env --cwd "),
        "{run}"
    );
    assert!(
        run.contains("--env ANTHROPIC_BASE_URL=http://127.0.0.1:"),
        "{run}"
    );
    model.signal(Signal::SIGINT);
    model.end().ok();
}

#[test]
fn a_shell_can_take_the_variables_and_go_on() {
    let place = Place::new();
    let lines = place.path().join("lines");
    let shell = format!(
        "eval \"$({} mock-model script.toml --export --cli claude &)\"\n\
         env >{}; kill $TEAMSTER_MOCK_PID",
        crate::cli::TEAMSTER,
        lines.display()
    );
    run(Command::new("/bin/sh")
        .args(["-c", &shell])
        .current_dir(place.path())
        .env_clear()
        .env("HOME", "/home/of/the/user")
        .env("PATH", "/usr/bin:/bin")
        .env("CLAUDE_CODE_USE_BEDROCK", "1")
        .env("TMPDIR", place.path().join("tmp")))
    .ok();
    let lines = fs::read_to_string(lines).unwrap();
    assert!(
        lines.contains("ANTHROPIC_BASE_URL=http://127.0.0.1:"),
        "{lines}"
    );
    assert!(lines.contains("HOME=/home/of/the/user\n"), "{lines}");
    assert!(lines.contains("CLAUDE_CONFIG_DIR="), "{lines}");
    assert!(!lines.contains("BEDROCK"), "{lines}");
    assert!(wait_until(LIMIT, || place.left() == 0), "it has not ended");
}

#[test]
fn a_command_gets_the_variables_and_gives_its_exit_code() {
    let place = Place::new();
    let show = "echo $HOME; echo $ANTHROPIC_BASE_URL; echo $TEAMSTER_MOCK_URL; echo $CLAUDE_CONFIG_DIR; \
                echo $XDG_DATA_HOME; exit 9";
    let all = |extra: &[&str]| {
        let args = extra.iter().copied().chain(["--", "sh", "-c", show]);
        let mut model = place.model(args);
        model.env("XDG_DATA_HOME", "/data");
        run(model.env("CLAUDE_CONFIG_DIR", "/mine"))
    };
    let ended = all(&[]);
    assert_eq!((ended.code, &*ended.stderr), (Some(9), ""));
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[0].contains("teamster-mock-"), "{lines:?}");
    assert!(lines[1].starts_with("http://127.0.0.1:"), "{lines:?}");
    assert_eq!(lines[1], lines[2]);
    assert_eq!(lines[3..], ["", ""]);

    let ended = all(&["--keep-home"]);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "/home/of/the/user");
    assert!(lines[3].contains("teamster-mock-"), "{lines:?}");
    assert_eq!(lines[4], "/data");
    // A CLI that has no other variable, and is named.
    let ended = all(&["--keep-home", "--cli", "opencode"]);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(lines[4].contains("teamster-mock-"), "{lines:?}");

    let ended = all(&["--cli", "codex"]);
    assert_eq!(ended.stdout.lines().nth(1), Some(""));
    assert_eq!(place.left(), 0);
}

#[test]
fn a_command_with_the_name_of_a_cli_gets_what_that_one_needs() {
    let place = Place::new();
    place.program("claude", "env; pwd; echo \"$@\"");
    let ended = run(&mut place.model(["-C", "bin", "--", "claude", "-p", "hi"])).ok();
    assert!(ended.stdout.contains("\nANTHROPIC_API_KEY=sk-mock-000\n"));
    assert!(!ended.stdout.contains("COPILOT"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("/bin\n-p hi\n"), "{}", ended.stdout);
}

#[test]
fn a_signal_ends_the_command_and_what_it_started() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = Place::new();
        let deaf = "trap '' INT TERM; setsid sleep 1000 & echo $!; sleep 1000";
        for script in ["sleep 1000 & echo $!; wait", deaf] {
            let mut model = Running::start(&mut place.model(["--", "sh", "-c", script]));
            let child = KillOnDrop::new(model.line().trim().parse().unwrap());
            model.signal(signal);
            if script == deaf {
                kill(
                    Pid::from_raw(model.child.id().cast_signed()),
                    Signal::SIGHUP,
                )
                .unwrap();
            }
            let ended = model.end();
            assert_eq!((ended.code, &*ended.stderr), (Some(130), ""), "{signal}");
            assert!(wait_gone(child.pid(), LIMIT));
            assert_eq!(place.left(), 0);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_at_a_terminal_belongs_to_the_command() {
    let place = Place::new();
    let script = "n=0; trap 'n=$((n+1)); echo caught $n' INT; echo ready
        while [ $n -lt 3 ]; do sleep 0.05; done; exit 5";
    let model = place.model(["--", "sh", "-c", script]);
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", "--wait"])
        .arg(model.get_program())
        .args(model.get_args())
        .current_dir(place.path())
        .stdin(terminal.slave);
    for (name, value) in model.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut running = Running::start(&mut command);
    drop(command);
    assert_eq!(running.line(), "ready\n");
    let mut keys = fs::File::from(terminal.master);
    for number in 1..=3 {
        keys.write_all(b"\x03").unwrap();
        assert_eq!(running.line(), format!("caught {number}\n"));
    }
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stderr), (Some(5), ""));
}

#[test]
fn requests_of_a_command_are_shown_if_asked_for() {
    let place = Place::new();
    let script = "echo $TEAMSTER_MOCK_URL; while [ ! -e go ]; do sleep 0.02; done";
    let mut model = Running::start(&mut place.model(["-v", "--", "sh", "-c", script]));
    let answer = ask(model.line().trim());
    fs::write(place.path().join("go"), "").unwrap();
    assert!(answer.starts_with("HTTP/1.1 529 "), "{answer}");
    let ended = model.end().ok();
    assert_eq!(
        ended.stderr,
        "claude   turn 1            529  m  POST /v1/messages\n"
    );
}

#[test]
fn invalid_script_is_an_error_with_the_next_step() {
    let place = Place::new();
    fs::write(
        place.path().join("bad.toml"),
        "[[turn]]\nparts = [{ shel = 3 }]\n",
    )
    .unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (
            &["none.toml"],
            2,
            &[
                "cannot read the script none.toml: No such file",
                "--example",
            ],
        ),
        (
            &["bad.toml"],
            2,
            &["bad.toml: TOML parse error at line 2, column 12", "`shel`"],
        ),
        (
            &["script.toml", "--port", &port],
            1,
            &["is in use", "omit --port"],
        ),
        (
            &["script.toml", "--", "no-such-program"],
            3,
            &["`no-such-program` was not found"],
        ),
        (
            &["script.toml", "-C", "nowhere"],
            2,
            &["--directory nowhere"],
        ),
        (
            &["script.toml", "--cli", "acp:my-agent"],
            2,
            &["--cli acp:my-agent", "TEAMSTER_MOCK_URL"],
        ),
    ];
    for (args, code, said) in cases {
        let mut command = teamster(["mock-model"]);
        command
            .args(args)
            .current_dir(place.path())
            .env("TMPDIR", place.path().join("tmp"));
        let ended = run(&mut command);
        assert_eq!((ended.code, &*ended.stdout), (Some(code), ""), "{args:?}");
        for said in said {
            assert!(ended.stderr.contains(said), "{args:?}: {}", ended.stderr);
        }
    }
    assert_eq!(place.left(), 0);
}

#[test]
fn the_example_is_a_script() {
    let ended = run(&mut teamster(["mock-model", "--example"])).quiet();
    let place = Place::new();
    fs::write(place.path().join("script.toml"), &ended.stdout).unwrap();
    run(&mut place.model(["--", "true"])).quiet();
}
