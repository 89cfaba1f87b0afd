//! Rules about commands.

use super::*;

#[test]
fn one_denied_command_denies_the_whole_line() {
    let folder = Folder::new();
    let rules = rules(&["bash"], &["bash(rm *)", "bash(git push*)"]).unwrap();
    for line in [
        "rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | rm x",
        "ls & rm x",
        "ls\nrm x",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "A=1 rm x",
        "rm   x",
        "rm\tx",
        "\\rm x",
        "'rm' x",
        "r''m x",
        "/bin/rm x",
        "./../bin/rm x",
        ">y rm x",
        "rm>y x",
        "cat <(rm x)",
        "if true; then rm x; fi",
        "for i in 1; do rm x; done",
        "f() { rm x; }",
        "sh -c 'rm x'",
        "bash -lc \"ls; rm x\"",
        "/bin/sh -ec 'rm x'",
        "sh -c 'sh -c \"rm x\"'",
        "env A=1 rm x",
        "env -i rm x",
        "command rm x",
        "exec rm x",
        "nohup rm x",
        "time rm x",
        "timeout -s KILL 5 rm x",
        "sudo -u a rm x",
        "sudo sh -c 'rm x'",
        "ls | xargs rm",
        "xargs -0 rm -f",
        "find . -exec rm {} ;",
        "find . -exec sh -c 'rm x' ;",
        "eval 'rm x'",
        "eval rm x",
        "trap 'rm x' EXIT",
        "busybox rm x",
        "cat <<A\n$(rm x)\nA",
        "echo ${a:-$(rm x)}",
        "git push",
        "git push -f origin",
        "env git push",
        "rm $x",
        "rm *",
        "case a in a) rm x;; esac",
        // Only known when they run.
        "$x -rf",
        "r$x y",
        "/bin/r? x",
        "{rm,x}",
        "eval \"$x\"",
        "sh -c \"$x\"",
        "echo rm x | sh",
        "bash <<< 'rm x'",
        "sh -s",
        "git $x",
        "git {push,x}",
        "env $x",
        "alias r=rm",
        "source /dev/stdin",
        "bash <(echo rm x)",
        "env -S 'rm x'",
        // Not readable.
        "echo 'a",
        "echo $(rm x",
        "coproc rm x",
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Bypass, line),
            "deny",
            "{line}"
        );
    }
    for line in [
        "ls",
        "ls | grep rm",
        "echo 'rm x'",
        "echo \"a; rm x\"",
        "git rm x",
        "grep -r 'rm x' .",
        "git log $x",
        "ls $HOME",
        "cargo test 2>&1 | tail -5",
        "ls # rm x",
        "for i in *; do cat $i; done",
        "timeout 5 ls *",
        "find . -name *.rs",
        "sh script.sh",
        "cat <<'A'\nrm x\nA",
        "[ -f x ] && cat x",
        "echo {a,b}",
        "X=rm",
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Bypass, line),
            "allow",
            "{line}"
        );
    }
    let why = |line: &str| match folder.verdict(
        &rules,
        PermissionMode::Bypass,
        "bash",
        &json!({"command": line}),
    ) {
        Verdict::Deny(why) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why("ls; rm x"), "`rm x` is denied in this run (bash(rm *))");
    assert!(
        why("$x").contains("what `$x` runs cannot be known before"),
        "{}",
        why("$x")
    );
    assert!(
        why("echo 'a").contains("a `'` is missing"),
        "{}",
        why("echo 'a")
    );
}

#[test]
fn a_line_is_allowed_only_if_each_of_its_commands_is() {
    let folder = Folder::new();
    let rules = rules(
        &[
            "bash(git log*)",
            "bash(tail *)",
            "bash(ls)",
            "bash(sh -c *)",
        ],
        &[],
    )
    .unwrap();
    for line in [
        "git log",
        "git log; ls",
        "git log --oneline | tail -5",
        "git log 2>&1 | tail -3",
        "(ls; git log)",
        "git log 'a; b'",
        "ls >/dev/null",
        "git log && ls || ls\nls",
        "sh -c 'ls; git log'",
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Default, line),
            "allow",
            "{line}"
        );
    }
    for line in [
        "rm x",
        "git log; rm x",
        "git log $(rm x)",
        "git log $x",
        "git log `ls`",
        "git log > f",
        "git log < f",
        "git log | sh",
        "A=1 git log",
        "env git log",
        "sh -c 'ls; rm x'",
        "git log 'a",
        "git log & rm x",
        "'git log' x",
        "git log <(rm x)",
        "",
        "# ls",
        "ls; f() { rm x; }",
        "git log <<A\nx\nA\nrm x",
        "./ls",
        "git log {a,b}",
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Default, line),
            "ask",
            "{line}"
        );
    }
}
