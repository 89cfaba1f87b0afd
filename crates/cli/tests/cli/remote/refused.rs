//! What cannot be done with `--remote`, and servers that cannot be used.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use super::Machine;
use crate::cli::{Claude, Ended, run, teamster};

#[track_caller]
fn is_refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(code), ""),
        "{}",
        ended.stderr
    );
    for word in words {
        ended.stderr_has(word);
    }
}

#[test]
fn local_options_are_refused_with_the_next_step() {
    let claude = Claude::plays("text", 0);
    let machine = Machine::new(claude.path("").as_path(), &claude.path("claude"));
    let image = claude.path("a.tiff");
    fs::write(&image, "x").unwrap();
    let large = claude.path("large.png");
    let sparse = fs::File::create(&large).unwrap();
    sparse.set_len((64 << 20) + 1).unwrap();
    for (args, words) in [
        (
            &["serve"][..],
            &["teamster serve", "does not support --remote"][..],
        ),
        (&["loop", "."], &["teamster loop"]),
        (&["mcp", "check"], &["teamster mcp"]),
        (&["token", "list"], &["teamster token"]),
        (&["chat", "claude"], &["--detach", "teamster attach ID"]),
        (&["agents", "watch"], &["agents watch"]),
        (
            &["agents", "logs", "a", "--follow"],
            &["agents logs --follow"],
        ),
        (&["usage", "--watch"], &["usage --watch"]),
        (
            &["run", "claude", "x", "--image", image.to_str().unwrap()],
            &["--image", "supported type"],
        ),
        (
            &["run", "claude", "x", "--image", large.to_str().unwrap()],
            &["--image", "more than 64 MiB", "a smaller image"],
        ),
        (
            &["run", "claude", "x", "--env", "A=b"],
            &[
                "error: --env: the server does not let a run set A",
                "--allow-env",
            ],
        ),
        (
            &["run", "claude", "x", "--add-dir", "/tmp"],
            &["--add-dir cannot be used with --remote"],
        ),
        (
            &["run", "claude", "x", "--skill", "/tmp"],
            &["--skill cannot be used with --remote"],
        ),
        (
            &["run", "claude", "x", "--cwd", "src"],
            &["--cwd src", "absolute path"],
        ),
        (
            &["chat", "-d", "claude", "--mcp", "a=b"],
            &["--allow-commands"],
        ),
        (
            &["run", "claude", "x", "--permission", "bypass"],
            &["--allow-bypass"],
        ),
        (&["run", "cmd:cat", "x"], &["--allow-commands"]),
        (
            &["run", "claude", "x", "--cwd", "/nowhere"],
            &["error: --cwd: no such directory: /nowhere"],
        ),
    ] {
        is_refused(&run(&mut machine.remote(args.iter().copied())), 2, words);
    }
    // What is of no machine is done.
    run(&mut machine.remote(["completions", "bash"])).ok();
    // The variable is empty, as a script has it that sets none.
    let mut empty = machine.local(["requests"]);
    run(empty.env("TEAMSTER_REMOTE", "")).ok();
}

#[test]
fn a_token_is_given_by_the_environment_or_a_private_file() {
    let claude = Claude::plays("text", 0);
    let machine = Machine::new(claude.path("").as_path(), &claude.path("claude"));
    let url = format!("http://{}", machine.served.address);
    let file = claude.path("token");
    fs::write(&file, format!("{}\n", machine.served.token)).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &[
            "--remote",
            &url,
            "--remote-token-file",
            file,
            "runs",
            "list",
        ][..],
        &[
            "runs",
            "list",
            "--remote",
            &url,
            "--remote-token-file",
            file,
        ],
    ] {
        assert_eq!(
            run(&mut teamster(args.iter().copied())).code,
            Some(0),
            "{args:?}"
        );
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    let args = [
        "--remote",
        &url,
        "--remote-token-file",
        file,
        "runs",
        "list",
    ];
    is_refused(&run(&mut teamster(args)), 2, &["other users can read"]);
    let args = ["--remote", &url, "runs", "list"];
    is_refused(
        &run(&mut teamster(args)),
        2,
        &["TEAMSTER_REMOTE_TOKEN", "--remote-token-file"],
    );
    let args = ["runs", "list", "--remote-token-file", file];
    is_refused(&run(&mut teamster(args)), 2, &["requires --remote"]);
    let secret = format!("{url}/#token={}", machine.served.token);
    let leaked = run(&mut teamster(["--remote", &secret, "runs", "list"]));
    is_refused(&leaked, 2, &["every user"]);
    assert!(
        !leaked.stderr.contains(&machine.served.token),
        "{}",
        leaked.stderr
    );

    let mut wrong = machine.remote(["runs", "list"]);
    wrong.env("TEAMSTER_REMOTE_TOKEN", "tms_0123456789abcdef");
    is_refused(
        &run(&mut wrong),
        1,
        &["rejected the token", "TEAMSTER_REMOTE_TOKEN"],
    );
    let added = run(&mut machine.local(["token", "add", "reader", "--scope", "read"]));
    let reader = added.stdout.trim_end();
    let mut read_only = machine.remote(["run", "claude", "x"]);
    read_only.env("TEAMSTER_REMOTE_TOKEN", reader);
    is_refused(
        &run(&mut read_only),
        1,
        &["scope `run`", "teamster token add"],
    );
}

#[test]
fn a_server_that_is_none_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ask = || {
        let url = format!("http://{address}");
        let mut command = teamster(["--remote", &url, "runs", "list"]);
        run(command.env("TEAMSTER_REMOTE_TOKEN", "tms_0123456789abcdef"))
    };
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = [0; 1024];
        let _ = stream.read(&mut head).unwrap();
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello")
            .unwrap();
    });
    is_refused(
        &ask(),
        1,
        &["did not respond like a teamster server", "404"],
    );
    other.join().unwrap();
    // Nothing listens there any more.
    is_refused(&ask(), 1, &["cannot reach http://", "refused"]);
    let mut command = teamster(["--remote", "unix:/no/such.sock", "runs", "list"]);
    is_refused(&run(&mut command), 1, &["cannot reach unix:/no/such.sock"]);
}
