//! `teamster mcp check`: with the MCP server of this program, and with worse ones.

use nix::sys::signal::Signal;
use snapbox::{assert_data_eq, str};
use std::fs;
use std::path::PathBuf;
use teamster_testkit::proc::{KillOnDrop, wait_gone, wait_pid_file};
use tempfile::TempDir;

use crate::cli::{Ended, LIMIT, Running, TEAMSTER, run, teamster};

/// `--mcp` for a server of this program with a fault.
fn fake(name: &str, fault: &str) -> String {
    format!("--mcp={name}='{TEAMSTER}' fake-mcp {fault}")
}

/// `--mcp` for a shell script. `NAME.pid` gets its process id.
fn script(dir: &TempDir, name: &str, text: &str) -> (String, PathBuf) {
    let file = dir.path().join(format!("{name}.sh"));
    let pid = dir.path().join(format!("{name}.pid"));
    let text = format!("echo $$ > '{}'\n{text}\n", pid.display());
    fs::write(&file, text).unwrap();
    (format!("--mcp={name}=sh '{}'", file.display()), pid)
}

fn check<'a>(args: impl IntoIterator<Item = &'a str>) -> Ended {
    run(&mut teamster(["mcp", "check"].into_iter().chain(args)))
}

/// The text without how long things took.
fn timeless(text: &str) -> String {
    let lines = text.lines().map(|line| match line.rsplit_once("  ") {
        Some((line, time))
            if time.ends_with('s') && time.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            line
        }
        _ => line,
    });
    let lines: Vec<_> = lines.map(|line| format!("{line}\n")).collect();
    lines.concat()
}

const ANSWER: &str = r#"read -r line
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"half","version":"1"}}}'
read -r line; read -r line"#;

#[test]
fn a_good_server_reports_its_tools() {
    let ended = check([&*fake("good", "")]).quiet();
    assert_data_eq!(
        timeless(&ended.stdout),
        str![[r#"
✓ good  teamster-fake-mcp-server [..]  5 tools
    echo  Gives the text back
    fail  Fails always
    slow  Answers after some seconds
    env   Gives the value of an environment variable
    draw  Gives an image

"#]]
    );
    let ended = check([&*fake("none", "--no-tools")]).ok();
    assert!(
        timeless(&ended.stdout).ends_with("  0 tools\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_filter_of_tools_shows_and_a_slip_in_it_too() {
    let config = format!(
        r#"{{"a": {{"command": "{TEAMSTER}", "args": ["fake-mcp"], "tools": ["echo", "eco"]}}}}"#
    );
    let ended = check(["--mcp-config", &config]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert_data_eq!(
        timeless(&ended.stdout),
        str![[r#"
✓ a  teamster-fake-mcp-server [..]  5 tools
    echo  Gives the text back
    fail  Fails always (left out)
    slow  Answers after some seconds (left out)
    env   Gives the value of an environment variable (left out)
    draw  Gives an image (left out)
    warning  it has no tool eco

"#]]
    );
}

#[test]
fn every_failure_is_reported_with_what_the_server_said() {
    let dir = tempfile::tempdir().unwrap();
    let half = format!("{ANSWER}; echo dying >&2; exit 7");
    let (half, _) = script(&dir, "half", &half);
    let args = [
        fake("exits", "--exit"),
        fake("refuses", "--refuse"),
        fake("talks", "--garbage"),
        half,
        "--mcp=missing=no-such-server".to_owned(),
        "--mcp=away=http://user:sk-1@127.0.0.1:1/mcp?sk-2".to_owned(),
        r#"--mcp-config={"docs": {"type": "sse", "url": "https://user:sk-1@example.com/mcp?sk-2"}}"#
            .to_owned(),
    ];
    let ended = check(args.iter().map(String::as_str));
    assert_eq!((ended.code, &*ended.stderr), (Some(1), ""));
    assert_data_eq!(
        timeless(&ended.stdout),
        str![[r#"
- docs
    warning  https://example.com/mcp?… is not contacted: sse is not supported
✗ exits
    it ended before it answered `initialize` (exit status: 3)
    stderr  broken on purpose
✗ refuses
    it answered `initialize` with the error -32000: refused on purpose
✓ talks  teamster-fake-mcp-server 0.1.0  5 tools
    echo  Gives the text back
    fail  Fails always
    slow  Answers after some seconds
    env   Gives the value of an environment variable
    draw  Gives an image
    warning  it prints lines on stdout that are not MCP messages, such as: starting up...
✗ half
    it ended before it answered `tools/list` (exit status: 7)
    stderr  dying
✗ missing
    the program `no-such-server` was not found: searched /usr/bin, /bin
✗ away
    it cannot be reached: Connection refused (os error 111)

"#]]
    );
}

#[test]
fn a_server_that_never_answers_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (mute, pid) = script(&dir, "mute", "trap '' TERM; while :; do sleep 100; done");
    let ended = check([&*mute, &*fake("good", ""), "--timeout", "300ms"]);
    assert_eq!(ended.code, Some(1));
    let said = timeless(&ended.stdout);
    assert!(
        said.starts_with("✗ mute\n    it did not answer `server/discover` within 0.3s\n✓ good"),
        "{said}"
    );
    let pid = KillOnDrop::new(wait_pid_file(&pid, LIMIT).unwrap());
    assert!(!teamster_testkit::proc::is_alive(pid.pid()));
}

#[test]
fn the_limit_of_the_server_itself_counts_if_none_is_asked_for() {
    let config = r#"{"mute": {"command": "sleep", "args": ["100"], "startup_timeout_sec": 0.2}}"#;
    let ended = check(["--mcp-config", config]);
    assert_eq!(ended.code, Some(1));
    ended.stdout_has("within 0.2s");
}

#[test]
fn server_that_ignores_the_end_of_its_input_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    // One child in its group and one in a session of its own, both deaf.
    let children = "(trap '' TERM; sleep 100) & echo $! > one.pid\n\
         setsid sh -c 'echo $$ > two.pid; exec sleep 100' &\n";
    let answer = ANSWER.replace("; read -r line", "; read -r line\n");
    let text = format!(
        "cd '{}'\n{children}{answer}\necho '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":[]}}}}'\ntrap '' TERM\nwait",
        dir.path().display()
    );
    let (server, pid) = script(&dir, "deaf", &text);
    let ended = check([&*server]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    for pid in [pid, dir.path().join("one.pid"), dir.path().join("two.pid")] {
        let process = KillOnDrop::new(wait_pid_file(&pid, LIMIT).unwrap());
        let alive = teamster_testkit::proc::is_alive(process.pid());
        assert!(!alive, "{}", pid.display());
    }
    let ended = check([&*fake("a", "--ignore-eof")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
}

#[test]
fn a_server_that_floods_is_no_trouble() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["yes", "yes | tr -d '\\n'", "yes >&2"] {
        let (server, pid) = script(&dir, "flood", text);
        let ended = check([&*server, "--timeout", "2s"]);
        assert_eq!(ended.code, Some(1), "{}", ended.stdout);
        assert!(ended.stdout.len() < 10_000);
        let pid = wait_pid_file(&pid, LIMIT).unwrap();
        assert!(!teamster_testkit::proc::is_alive(pid));
    }
}

#[test]
fn many_are_tried_at_once_and_reported_in_order() {
    let names: Vec<String> = (0..20).map(|n| format!("s{n}")).collect();
    // Each answers when all are there, so none would be the first one alone.
    let dir = tempfile::tempdir().unwrap();
    let all_there = format!(
        "until [ $(ls '{}'/*.pid | wc -l) -eq 20 ]; do sleep 0.1; done",
        dir.path().display()
    );
    let text = format!(
        "{all_there}\n{ANSWER}\necho '{}'\ncat",
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#
    );
    let waiting: Vec<String> = names
        .iter()
        .map(|name| script(&dir, name, &text).0)
        .collect();
    let ended = check(waiting.iter().map(String::as_str).chain(["--json"]));
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    let report = ended.json();
    let servers = report["servers"].as_array().unwrap().iter();
    let shown: Vec<_> = servers.map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(shown, names);
}

#[test]
fn only_the_named_ones_are_tried() {
    let ended = check(["b", &*fake("a", "--exit"), &*fake("b", "")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stdout);
    assert!(!ended.stdout.contains("✗"), "{}", ended.stdout);
}

#[test]
fn server_gets_variables_and_directory_and_secrets_stay_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let (_, _) = script(&dir, "tells", "pwd >&2; echo \"$TOKEN $OURS\" >&2");
    let config = format!(
        r#"{{"tells": {{"command": "sh", "args": ["tells.sh"], "cwd": "{}", "env": {{"TOKEN": "${{SECRET}}"}}}}}}"#,
        dir.path().display()
    );
    let ended = run(teamster(["mcp", "check", "--mcp-config", &config])
        .env("SECRET", "sk-secret")
        .env("OURS", "of ours"));
    assert_eq!(ended.code, Some(1));
    let real = dir.path().canonicalize().unwrap();
    let expected = format!("    stderr  {}\n    stderr  … of ours\n", real.display());
    assert!(ended.stdout.ends_with(&expected), "{}", ended.stdout);
}

#[test]
fn a_secret_in_what_a_server_answers_is_not_reported() {
    let dir = tempfile::tempdir().unwrap();
    let tool = r#"{"name":"a","description":"of sk-secret","inputSchema":{"type":"object"}}"#;
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{tool}]}}}}"#);
    let text = format!("{}\necho '{list}'", ANSWER.replace("half", "sk-secret"));
    let (server, _) = script(&dir, "tells", &text);
    let server = server.replace("=sh ", "=TOKEN=${SECRET} sh ");
    for more in [&[][..], &["--json"]] {
        let args = ["mcp", "check", &server]
            .into_iter()
            .chain(more.iter().copied());
        let ended = run(teamster(args).env("SECRET", "sk-secret"));
        assert_eq!(ended.code, Some(0), "{}", ended.stdout);
        ended.stdout_has("of …");
        assert!(!ended.stdout.contains("sk-"), "{}", ended.stdout);
    }
}

#[test]
fn a_signal_ends_the_servers() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let dir = tempfile::tempdir().unwrap();
        let (mute, pid) = script(
            &dir,
            "mute",
            "trap '' TERM INT; while :; do sleep 100; done",
        );
        let mut teamster = Running::start(&mut teamster(["mcp", "check", &mute]));
        let pid = KillOnDrop::new(wait_pid_file(&pid, LIMIT).unwrap());
        teamster.signal(signal);
        let ended = teamster.end();
        assert_eq!((ended.code, &*ended.stderr), (Some(130), ""));
        assert!(wait_gone(pid.pid(), LIMIT));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_check_leaves_no_server() {
    let dir = tempfile::tempdir().unwrap();
    let (mute, pid) = script(&dir, "mute", "exec sleep 100");
    let mut teamster = Running::start(&mut teamster(["mcp", "check", &mute]));
    let pid = KillOnDrop::new(wait_pid_file(&pid, LIMIT).unwrap());
    teamster.signal(Signal::SIGKILL);
    teamster.wait();
    assert!(wait_gone(pid.pid(), LIMIT));
}

#[test]
fn server_elsewhere_is_not_bound_to_the_repository_of_a_hook() {
    let dir = tempfile::tempdir().unwrap();
    let seen = |cwd: Option<&std::path::Path>| {
        let seen = dir.path().join("seen");
        let start = format!(
            "printf '<%s>' \"$GIT_INDEX_FILE\" > '{}'; exec '{TEAMSTER}' fake-mcp",
            seen.display()
        );
        let mut server = serde_json::json!({"command": "sh", "args": ["-c", start]});
        if let Some(cwd) = cwd {
            server["cwd"] = cwd.to_str().into();
        }
        let config = serde_json::json!({"a": server});
        run(
            teamster(["mcp", "check", "--mcp-config", &config.to_string()])
                .env("GIT_INDEX_FILE", "/of/a/hook"),
        )
        .ok();
        fs::read_to_string(seen).unwrap()
    };
    assert_eq!(seen(None), "</of/a/hook>");
    assert_eq!(seen(Some(dir.path())), "<>");
}
