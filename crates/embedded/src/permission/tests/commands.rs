//! Rules about commands.

use super::*;

#[test]
fn denied_command_denies_the_whole_line() {
    let folder = Folder::new();
    let rules = rules(&["bash"], &["bash(rm *)", "bash(rm)", "bash(git push*)"]).unwrap();
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
        "for y in 'a[$(rm x)]'; do ((y)); git log; done",
        "for x in '$(rm x)'; do cat <<E\n${x@P}\nE\ndone",
        "x='a[$(rm x)]'; ((x))",
        "x='a[`rm x`]'; echo $((x))",
        "set -- 'a[$(rm x)]'; (($1))",
        "set -- '$(rm x)'; echo ${1@P}",
        "set -- $'a[\\x24(rm x)]'; echo $(($1))",
        "read y <<< 'a[$(rm x)]'; ((y))",
        "set -- 'a[$(rm x)]'; printf -v \"$1\" y",
        "[[ 'a[$(rm x)]' -eq 0 ]]",
        "test -v 'a[$(rm x)]'",
        "[ -v 'a[$(rm x)]' ]",
        "printf -v 'a[$(rm x)]' y",
        "read 'a[$(rm x)]'",
        "unset 'a[$(rm x)]'",
        "let 'a[$(rm x)]'",
        "declare 'a[$(rm x)]=1'",
        "typeset 'a[$(rm x)]=1'",
        "local 'a[$(rm x)]=1'",
        "export 'a=$(rm x)'",
        "readonly 'a=$(rm x)'",
        "mapfile 'a[$(rm x)]'",
        "readarray 'a[$(rm x)]'",
        "getopts a 'b[$(rm x)]'",
        "wait -p 'a[$(rm x)]'",
        "trap 'rm${IFS}x' EXIT",
        "ssh h 'a|rm'",
        "su -c 'rm x'",
        "su '-crm x'",
        "su --command='rm x'",
        "echo 'rm x' | xargs -I X sh -c X",
        "echo 'rm x' | sudo xargs -I X sh -c X",
        "echo 'rm x' | xargs -I X X y",
        "echo 'rm x' | xargs -iX X y",
        "echo rm | xargs --replace {} x",
        "echo push | xargs -I X git X",
        "echo 'x' | xargs -0n1 rm",
        "echo 'rm x' | xargs env",
        "echo 'rm x' | xargs timeout 5",
        "echo 'rm x' | xargs sh -c",
        "echo 'rm x' | parallel",
        "hash -p /bin/rm r; r x",
        "mapfile -C 'rm x' -c 1 <f",
        "readarray -C 'rm x' -c 1 <f",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "setarch -R rm x",
        "prlimit --cpu=1 rm x",
        "pkexec rm x",
        "gtimeout 5 rm x",
        "genv rm x",
        "compgen -C 'rm x'",
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
        "ls | xargs -n 1 grep -x a",
        "ls | xargs -I {} cp {} b",
        "ls | xargs sh -c 'echo \"$1\"' a",
        "for i in a b; do echo $((i + 1)) \"${i:-c}\"; done",
        "[ -f \"$x\" ] && grep 'a$' b",
        "trap 'ls a' EXIT",
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
            "bash(printf *)",
            "bash(for *)",
        ],
        &[],
    )
    .unwrap();
    for line in [
        "git log",
        "git log; ls",
        "git log --oneline | tail -5",
        "git log 2>&1 | tail -3",
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
        "(ls; git log)",
        "git log & ls",
        "git log # a",
        "sh -c '(ls)'",
        "git log \"$\\\n(rm x)\"",
        "(\\\n(1<<E))\nrm x\nE\ngit log",
        "git log <<E\na\\\nE\nrm x\nE",
        "for y in 'a[$(rm x)]'; do ((y)); git log; done",
        "for PATH in ./evil; do git log; done",
        "((PATH=5)); git log",
        "for x in '$(rm x)'; do git log <<E\n${x@P}\nE\ndone",
        "printf -v 'a[$(rm x)]' y",
        "git log {PATH}>/dev/null; git log",
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Default, line),
            "ask",
            "{line}"
        );
    }
}

#[test]
fn a_word_of_a_denied_command_alone_is_read_where_it_is_a_line() {
    let folder = Folder::new();
    let rules = rules(&[], &["bash(reboot)"]).unwrap();
    for line in [
        "trap reboot EXIT",
        "su -c reboot",
        "su -creboot",
        "su a -lc reboot",
    ] {
        let word = folder.command(&rules, PermissionMode::Bypass, line);
        assert_eq!(word, "deny", "{line}");
    }
}

#[test]
fn lines_within_lines_are_limited_in_number_and_length() {
    let nested = |inner: &str| {
        let quoted = inner.replace('\'', "'\\''");
        format!("env {} -c '{quoted}'", "sh ".repeat(190))
    };
    for line in [nested(&nested("a")), nested(&nested(&nested("a")))] {
        let why = Line::read(&line).err();
        assert_eq!(why.as_deref(), Some("too many commands"));
    }
    let why = Line::read(&"a ".repeat(50_001)).err();
    assert_eq!(why.as_deref(), Some("it is longer than 100000 bytes"));
}
