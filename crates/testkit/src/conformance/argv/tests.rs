//! Command lines that were tested with the real CLIs, and the results.

use super::*;

fn claude() -> ArgvModel {
    ArgvModel::new(Parser::Commander)
        .switches("--print|-p --verbose")
        .one("--model")
        .optional("--debug|-d")
        .many("--mcp-config")
        .commands("mcp")
}

fn codex() -> ArgvModel {
    let resume = ArgvModel::new(Parser::Clap)
        .switches("--json")
        .each("--config|-c");
    let exec = ArgvModel::new(Parser::Clap)
        .switches("--json")
        .one("--cd|-C")
        .each("--config|-c")
        .many("--image|-i")
        .command("resume", resume)
        .commands("review help");
    ArgvModel::new(Parser::Clap).command("exec", exec)
}

fn gemini() -> ArgvModel {
    ArgvModel::new(Parser::Yargs)
        .one("--prompt|-p")
        .many("--include-directories")
        .commands("mcp extensions")
        .without_double_dash()
}

#[test]
fn flags_with_many_values_swallow_the_prompt() {
    let parsed = claude().parse_words(&["-p", "--mcp-config", "x", "PROMPT"]);
    let parsed = parsed.unwrap();
    assert_eq!(parsed.texts("--mcp-config"), ["x", "PROMPT"]);
    assert!(parsed.positionals.is_empty());

    let parsed = codex().parse_words(&["exec", "-i", "a.png", "PROMPT"]);
    assert_eq!(parsed.unwrap().texts("--image"), ["a.png", "PROMPT"]);
    let parsed = codex().parse_words(&["exec", "-i", "a.png", "--", "PROMPT"]);
    assert_eq!(parsed.unwrap().positionals, ["PROMPT"]);

    // Flags with a joined value do not, except with yargs.
    let parsed = claude().parse_words(&["--mcp-config=x", "PROMPT"]);
    assert_eq!(parsed.unwrap().positionals, ["PROMPT"]);
    let parsed = gemini().parse_words(&["--include-directories=a", "b"]);
    assert_eq!(parsed.unwrap().texts("--include-directories"), ["a", "b"]);
}

#[test]
fn a_flag_with_an_optional_value_swallows_the_prompt() {
    let parsed = claude().parse_words(&["-d", "PROMPT"]).unwrap();
    assert_eq!(parsed.text("--debug").as_deref(), Some("PROMPT"));
    let parsed = claude()
        .parse_words(&["-d", "--verbose", "PROMPT"])
        .unwrap();
    assert!(parsed.has("--debug") && parsed.has("--verbose"));
    assert_eq!(parsed.positionals, ["PROMPT"]);
}

#[test]
fn prompt_with_a_dash_is_a_flag_unless_protected() {
    let error = claude().parse_words(&["-p", "--help me"]).unwrap_err();
    assert_eq!(error, "\"--help me\" is no flag of the CLI's");
    let parsed = claude().parse_words(&["-p", "--", "--help me"]).unwrap();
    assert_eq!(parsed.positionals, ["--help me"]);

    let error = gemini()
        .parse_words(&["--prompt", "--help me"])
        .unwrap_err();
    assert!(error.starts_with("--prompt has no value"), "{error}");
    let parsed = gemini().parse_words(&["--prompt=--yolo me"]).unwrap();
    assert_eq!(parsed.text("--prompt").as_deref(), Some("--yolo me"));
    let parsed = gemini().parse_words(&["-p=-x"]).unwrap();
    assert_eq!(parsed.text("--prompt").as_deref(), Some("-x"));
}

#[test]
fn some_clis_have_no_end_of_options() {
    let error = gemini().parse_words(&["--", "text"]).unwrap_err();
    assert_eq!(error, "there is `--`, which does not protect what follows");
}

#[test]
fn prompt_equal_to_a_sub_command_begins_it_unless_protected() {
    let parsed = gemini().parse_words(&["mcp"]).unwrap();
    assert_eq!(parsed.commands, ["mcp"]);
    let parsed = codex().parse_words(&["exec", "--json", "resume"]).unwrap();
    assert_eq!(parsed.commands, ["exec", "resume"]);
    let parsed = codex()
        .parse_words(&["exec", "--json", "--", "resume"])
        .unwrap();
    assert_eq!(parsed.commands, ["exec"]);
    assert_eq!(parsed.positionals, ["resume"]);
}

#[test]
fn a_sub_command_has_flags_of_its_own() {
    let model = codex();
    assert!(
        model
            .parse_words(&["exec", "-C", "d", "resume", "id"])
            .is_ok()
    );
    assert!(
        model
            .parse_words(&["exec", "resume", "-C", "d", "id"])
            .is_err()
    );
    let parsed = model.parse_words(&["exec", "resume", "-c", "a=1", "-c", "b=2", "id", "-"]);
    let parsed = parsed.unwrap();
    assert_eq!(parsed.texts("--config"), ["a=1", "b=2"]);
    assert_eq!(parsed.positionals, ["id", "-"]);
}

#[test]
fn ambiguous_arguments_are_refused() {
    for args in [
        ["--verbose=yes", "x"].as_slice(),
        &["--model=a", "--model=b"],
        &["--model"],
        &["--mod=x"],
        &["-pd"],
        &["-d=x"],
    ] {
        assert!(claude().parse_words(args).is_err(), "{args:?}");
    }
}

#[test]
fn a_value_is_all_that_follows_the_first_equals_sign() {
    let parsed = claude().parse_words(&["--model==a=b\n--verbose"]).unwrap();
    assert_eq!(parsed.text("--model").as_deref(), Some("=a=b\n--verbose"));
    assert!(!parsed.has("--verbose"));
    let parsed = claude().parse_words(&["--model="]).unwrap();
    assert_eq!(parsed.text("--model").as_deref(), Some(""));
}

#[test]
fn words_of_a_command_line_include_those_of_sub_commands() {
    let words = codex().words();
    for word in ["exec", "resume", "review", "--cd", "-C", "-c"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
}

/// Returns the model for the tests below. They were measured with `getopt -o vm: -l
/// verbose,model:,color::,file:` (util-linux 2.38.1), a script with the same flags for Python's `argparse`
/// (3.11.7) and the flags of `kubectl create configmap` (`pflag`, 1.32.4).
fn small(parser: Parser) -> ArgvModel {
    ArgvModel::new(parser)
        .switches("--verbose|-v")
        .one("--model|-m")
        .optional("--color")
        .many("--file")
}

#[test]
fn getopt_equals_sign_after_a_short_flag_is_in_the_value() {
    assert!(small(Parser::Getopt).parse_words(&["-m=x"]).is_err());
    for parser in [Parser::Argparse, Parser::Pflag] {
        let parsed = small(parser).parse_words(&["-m=x"]).unwrap();
        assert_eq!(parsed.text("--model").as_deref(), Some("x"), "{parser:?}");
    }
}

#[test]
fn only_some_parsers_swallow_the_words_that_follow() {
    for (parser, swallows) in [
        (Parser::Argparse, true),
        (Parser::Getopt, false),
        (Parser::Pflag, false),
    ] {
        let parsed = small(parser)
            .parse_words(&["--file", "a", "PROMPT"])
            .unwrap();
        assert_eq!(parsed.positionals.is_empty(), swallows, "{parser:?}");
        let parsed = small(parser).parse_words(&["--color", "PROMPT"]).unwrap();
        assert_eq!(parsed.positionals.is_empty(), swallows, "{parser:?}");
        let parsed = small(parser)
            .parse_words(&["--color=red", "--", "-v"])
            .unwrap();
        assert_eq!(parsed.text("--color").as_deref(), Some("red"));
        assert_eq!(parsed.positionals, ["-v"], "{parser:?}");
    }
}

#[test]
fn a_plain_command_line_has_words_only() {
    let parsed = ArgvModel::new(Parser::Plain)
        .parse_words(&["-m", "--", "x=y"])
        .unwrap();
    assert_eq!(parsed.positionals, ["-m", "--", "x=y"]);
    assert!(parsed.flags.is_empty());
}

/// `POSIXLY_CORRECT=1 getopt -o v -- a -v` prints the words `a` and `-v`; without it, a flag and a word.
#[test]
fn with_getopt_flags_come_before_the_other_words() {
    let model = small(Parser::Getopt);
    let parsed = model.parse_words(&["-v", "--", "a", "--", "-v"]).unwrap();
    assert_eq!(parsed.positionals, ["a", "--", "-v"]);
    for args in [["a", "-v"], ["a", "--model=x"], ["a", "--"]] {
        let error = model.parse_words(&args).unwrap_err();
        assert!(error.contains("follows a word"), "{error}");
    }
    // `pflag` parses flags at any position.
    let parsed = small(Parser::Pflag).parse_words(&["a", "-v", "b"]).unwrap();
    assert!(parsed.has("--verbose"));
    assert_eq!(parsed.positionals, ["a", "b"]);
}

/// `argparse` fails for `a -v b`: "unrecognized arguments: b".
#[test]
fn with_argparse_the_other_words_stand_together() {
    let model = small(Parser::Argparse);
    for (args, words) in [
        (["a", "--", "b"].as_slice(), ["a", "b"].as_slice()),
        (&["a", "b", "-v"], &["a", "b"]),
        (&["-v", "--", "a", "--", "b"], &["a", "--", "b"]),
    ] {
        let parsed = model.parse_words(args).unwrap();
        assert_eq!(parsed.positionals, words, "{args:?}");
    }
    for args in [["a", "-v", "b"].as_slice(), &["a", "-v", "--", "b"]] {
        let error = model.parse_words(args).unwrap_err();
        assert!(error.starts_with("a flag parts "), "{error}");
    }
}

/// `argparse` keeps only `b` of `--file a --file b`.
#[test]
fn with_argparse_many_values_are_given_once() {
    let twice = ["--file=a", "--file=b"];
    let error = small(Parser::Argparse).parse_words(&twice).unwrap_err();
    assert_eq!(error, "--file is there twice, and the last one holds");
    let parsed = small(Parser::Pflag).parse_words(&twice).unwrap();
    assert_eq!(parsed.texts("--file"), ["a", "b"]);
}

/// `argparse` fails for `hi` and `-- ask hi`: "invalid choice".
#[test]
fn argparse_command_with_sub_commands_has_no_other_words() {
    let model = small(Parser::Argparse).command("ask", small(Parser::Argparse));
    let parsed = model
        .parse_words(&["-v", "ask", "--", "ask", "-m"])
        .unwrap();
    assert_eq!(parsed.commands, ["ask"]);
    assert_eq!(parsed.positionals, ["ask", "-m"]);
    for args in [["hi"].as_slice(), &["--", "ask", "hi"]] {
        let error = model.parse_words(args).unwrap_err();
        assert!(error.ends_with(" is no sub-command"), "{error}");
    }
    assert!(model.parse_words(&["ask", "--help"]).is_err());
}
