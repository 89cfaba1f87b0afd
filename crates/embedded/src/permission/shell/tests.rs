//! Lines, made by hand.

use super::*;

/// Returns the commands as text, or the reason why there are none.
fn read(line: &str) -> Vec<String> {
    match commands(line) {
        Ok(commands) => {
            let text = |command: &Command| {
                let all = command.assignments.iter().chain(&command.words);
                all.map(|word| word.text.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            commands.iter().map(text).collect()
        }
        Err(why) => vec![format!("unreadable: {why}")],
    }
}

#[test]
fn every_command_of_a_line_is_found() {
    for (line, expected) in [
        ("ls -l; rm x", &["ls -l", "rm x"][..]),
        ("a && b || c | d |& e & f", &["a", "b", "c", "d", "e", "f"]),
        ("a\nb # c; rm x\nd", &["a", "b", "d"]),
        ("(cd x; rm y)", &["cd x", "rm y"]),
        ("echo \"$(rm x)\" 'a; b'", &["rm x", "echo $(rm x) a; b"]),
        (
            "echo `rm \\`ls\\``",
            &["ls", "rm `ls`", "echo `rm \\`ls\\``"],
        ),
        ("diff <(rm x) >(b)", &["rm x", "b", "diff <(rm x) >(b)"]),
        ("if a; then rm x; else c; fi", &["a", "rm x", "c"]),
        (
            "for i in a $(rm x); do b $i; done",
            &["rm x", "i a $(rm x)", "b $i"],
        ),
        ("for i do rm x; done", &["i", "rm x"]),
        (
            "for ((i=1<<2;i<3;i++)); do rm x; done",
            &["((i=1<<2;i<3;i++))", "rm x"],
        ),
        ("while ! a; do { rm x; }; done", &["a", "rm x"]),
        ("f() { rm x; }; f", &["f", "rm x", "f"]),
        ("function f { rm x; }", &["rm x"]),
        ("case a in a|b) rm x;; esac", &["case a in a", "b", "rm x"]),
        ("A=1 B=\"c d\" rm x", &["A=1 B=c d rm x"]),
        ("r\\m 'a b' \"c\"d", &["rm a b cd"]),
        ("r\\\nm x", &["rm x"]),
        ("2>&1 rm x >y 2>/dev/null", &["rm x"]),
        ("rm<x>y", &["rm"]),
        (
            "echo ${x:-$(rm y)} $((1 + $(rm z)))",
            &["rm y", "rm z", "echo ${x:-$(rm y)} $((1 + $(rm z)))"],
        ),
        (
            "cat <<A; rm x\n$(b) don't\nA\nc",
            &["cat", "rm x", "b", "", "c"],
        ),
        ("cat <<'A'\n$(b)\nA\nc", &["cat", "c"]),
        ("cat <<-A\n\tx\n\tA\nc", &["cat", "c"]),
        ("((1 << 2))\nrm x\n2", &["((1 << 2))", "rm x", "2"]),
        ("echo $'a\\'b; c' d", &["echo $'a\\'b; c' d"]),
        ("[ -f x ] && rm x", &["[ -f x ]", "rm x"]),
        ("echo a#b", &["echo a#b"]),
        ("a \\\n b \\\n | rm x\\\ny", &["a b", "rm xy"]),
        ("[[ -f x ]] && rm x", &["[[ -f x ]]", "rm x"]),
        ("a[1]=2 rm x", &["a[1]=2 rm x"]),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn a_line_that_bash_may_read_in_another_way_is_unreadable() {
    for line in [
        "echo 'a",
        "echo \"a",
        "echo $(a",
        "echo `a",
        "echo ${a",
        "echo \\",
        "a[1<<2",
        "echo \"${x:-'}\" ; rm y; \"'}\"",
        "echo $(case a in b) rm x;; esac)",
        "${ rm x; }",
        "echo $((rm x); ls)",
        "coproc a { rm x; }",
        "[[ a =~ # ]]; rm x",
        "cat <<A",
        "echo >",
        // Bash removes a newline after `\` before it reads an operator.
        "git log \"$\\\n(rm x)\"",
        "git log \"$\\\n\\\n(rm x)\"",
        "(\\\n(1<<E))\nrm x\nE\ngit log",
        "cat <\\\n<E\n'\nE\nrm x #'",
        "git log ${x\\\n}",
        "echo `echo \"$\\\\\n(rm x)\"`",
        "cat <<E\na\\\nE\nrm x\nE",
        "echo $(cat <<E\nE)\nrm x\nE\n)",
        "echo \"`echo \\\"$(a)\\\"`\"",
        "cat <<E\n`echo \\\"a\\\"`\nE",
        // Parentheses that are not a subshell.
        "[[ a == @(# ) ]]; rm x",
        "[[ a =~ (#) ]]; rm x",
        "[[ a == @(<<E) ]]\nrm x\nE",
        "[[ x && a =~ # ]]; rm x",
        "time [[ a =~ # ]]; rm x",
        "time ((1<<E))\nrm x\nE",
        "shopt -s extglob\necho @(#); rm x",
        "shopt -s extglob\n!(#); rm x",
        "shopt -s extglob\nfor x in @(#); do rm x; done",
        "function f@(#) { a; }",
        "cat >/dev/null@(#); rm x",
        // Bash reads on to the end of an index.
        "a[b[1]<<E\n]=1\nrm x\nE",
        "a[']'1<<E\n]=1\nrm x\nE",
        "a[$(b ])1<<E\n]=1\nrm x\nE",
    ] {
        let found = read(line);
        assert!(found[0].starts_with("unreadable: "), "{line}: {found:?}");
    }
    for piece in ["$(", "${a:-", "$((", "<(", "\"$("] {
        let line = format!("echo {}", piece.repeat(30_000));
        assert_eq!(
            read(&line),
            ["unreadable: it is nested too deep"],
            "{piece}"
        );
    }
    assert_eq!(
        read(&"a;".repeat(MOST_COMMANDS + 1)),
        ["unreadable: too many commands"]
    );
}

#[test]
fn words_with_expansions_are_marked() {
    let word = |line: &str| {
        let commands = commands(line).unwrap();
        let word = &commands.last().unwrap().words[0];
        (word.varies_at, word.expands)
    };
    assert_eq!(word("a\"$b\""), (Some(1), true));
    assert_eq!(word("a*"), (Some(1), false));
    assert_eq!(word("{a,b}"), (Some(0), true));
    assert_eq!(word("~/a"), (Some(0), false));
    assert_eq!(word("'a*$b'"), (None, false));
    assert_eq!(word("a\\$b"), (None, false));
    assert_eq!(word("["), (None, false));
}

#[test]
fn a_plain_line_can_be_read_in_one_way() {
    for line in [
        "git log",
        "a 'b; $(c)' \"d; e\"|f&&g||h;i\nj",
        "a 2>&1 >/dev/null &>x >>y",
        "[ -f x ] && a b[1] HEAD@{1} a#b --c=d 'if' \\;",
        "a 'b\nc' \"d\\\"\"",
    ] {
        assert!(is_plain(line), "{line}");
    }
    for line in [
        "a &",
        "a & b",
        "a |& b",
        "a;;",
        "a <b",
        "a <<E\nb\nE",
        "a <(b)",
        "a >(b)",
        "(a)",
        "((a))",
        "{ a; }",
        "! a",
        "[[ a ]]",
        "if a; then b; fi",
        "for x in a; do b; done",
        "while a; do b; done",
        "case a in b) c;; esac",
        "f() { a; }",
        "function f { a; }",
        "time a",
        "coproc a",
        "a $b",
        "a \"$b\"",
        "a $'b'",
        "a `b`",
        "a \"`b`\"",
        "a \\\nb",
        "a \"\\\nb\"",
        "A=1 b",
        "A+=1 b",
        "a[1]=2 b",
        "a[1 <<E",
        ">x a",
        "2>&1 a",
        "a {b}>/dev/null",
        "a # b",
        "a 'b",
        "a \"b",
        "a \\",
        "a @(b)",
        "a\rb",
        "a\0b",
    ] {
        assert!(!is_plain(line), "{line}");
    }
}
