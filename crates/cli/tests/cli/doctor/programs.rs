//! Programs of CLIs: where they are found, what starts them, and their versions.

use serde_json::Value;
use teamster_testkit::fake_agent::Script;

use super::about_claude;
use crate::cli::{Claude, run, teamster};

/// A script of npm's with its package, as npm installs them, and a stand-in for Node.js. `--version` of the CLI fails.
#[test]
fn a_cli_of_npm_is_not_started_for_its_version() {
    let claude = Claude::new(&Script::new());
    let package = claude.path("lib/gemini-cli");
    std::fs::create_dir_all(package.join("dist")).unwrap();
    let describe = |engine: &str| {
        let text = serde_json::json!({
            "name": "@google/gemini-cli", "version": "9.8.7", "bin": {"gemini": "dist/main.js"},
            "engines": {"node": engine},
        });
        std::fs::write(package.join("package.json"), text.to_string()).unwrap();
    };
    describe(">=22");
    let bin = claude.path("bin");
    std::fs::create_dir(&bin).unwrap();
    crate::cli::program(
        &bin.join("node"),
        "[ \"$1\" = --version ] && echo v22.23.3 && exit
        echo 'Error: cannot find module x' >&2; exit 1",
    );
    let main = package.join("dist/main.js");
    teamster_testkit::proc::write_program(&main, "#!/usr/bin/env node\nmain();\n").unwrap();
    std::os::unix::fs::symlink(&main, bin.join("gemini")).unwrap();
    let report = |args: &[&str]| {
        let ended =
            run(teamster(args.iter().copied())
                .env("PATH", format!("{}:/usr/bin:/bin", bin.display())));
        let report = ended.json();
        let providers = report["providers"].as_array().unwrap();
        providers
            .iter()
            .find(|it| it["id"] == "gemini")
            .unwrap()
            .clone()
    };
    let gemini = report(&["doctor", "--json"]);
    assert_eq!(gemini["usable"], true, "{gemini}");
    assert_eq!(gemini["version"], "9.8.7");
    let file = package.canonicalize().unwrap().join("package.json");
    assert_eq!(gemini["versionFrom"], file.to_str().unwrap());
    let gemini = report(&["doctor", "--json", "--start"]);
    let failed = "reports no version (exit status: 1): Error: cannot find module x";
    assert_eq!(gemini["problem"], failed);
    assert_eq!(gemini["versionFrom"], Value::Null);
    // The package does not prove that it starts with this Node.js.
    describe(">=23");
    let gemini = report(&["doctor", "--json"]);
    assert_eq!(gemini["usable"], false, "{gemini}");
    assert_eq!(gemini["versionFrom"], Value::Null);
}

/// A CLI whose package needs a newer Node.js than the one on PATH, which is a stand-in.
#[test]
fn a_cli_that_needs_a_newer_node_says_so() {
    let claude = Claude::new(&Script::new());
    let package = claude.path("package");
    std::fs::create_dir_all(package.join("dist")).unwrap();
    let engines = r#"{"name": "x", "engines": {"node": ">=22.19.0"}}"#;
    std::fs::write(package.join("package.json"), engines).unwrap();
    let bin = claude.path("bin");
    std::fs::create_dir(&bin).unwrap();
    // Made by hand: as Node.js 20 prints it.
    crate::cli::program(
        &bin.join("node"),
        "[ \"$1\" = --version ] && echo v20.20.2 && exit
        printf 'file:///x/main.mjs:20\\nimport { a } from \"b\";\\n\\nSyntaxError: no export named a\\n' >&2
        printf '    at c (node:d:1)\\n\\nNode.js v20.20.2\\n' >&2; exit 1",
    );
    let cli = package.join("dist/main.mjs");
    teamster_testkit::proc::write_program(&cli, "#!/usr/bin/env node\nimport { a } from 'b';\n")
        .unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let with = |args: &[&str]| {
        run(teamster(args.iter().copied())
            .env("PATH", &path)
            .env("TEAMSTER_CLAUDE_BIN", &cli))
    };
    let problem = format!(
        "needs Node 22.19 or newer (its package.json), found v20.20.2 at {}",
        bin.join("node").display()
    );
    let report = about_claude(&with(&["doctor"]).stdout);
    assert!(
        report.contains(&format!("problem  {problem}\n")),
        "{report}"
    );
    assert!(!report.contains("install"), "{report}");
    let ended = with(&["run", "claude", "hi"]);
    ended.fails(3, &problem);
    ended.stderr_has("install a newer Node.js");
    let ended = with(&["run", "claude", "hi", "--fallback", "cmd:echo ok"]);
    assert_eq!(
        (ended.code, ended.stdout.trim()),
        (Some(0), "ok"),
        "{}",
        ended.stderr
    );

    // The package is satisfied, so the error is the CLI's own: one line of the stack.
    std::fs::write(
        package.join("package.json"),
        engines.replace("22.19", "20.1"),
    )
    .unwrap();
    let report = about_claude(&with(&["doctor"]).stdout);
    assert!(
        report.contains("SyntaxError: no export named a"),
        "{report}"
    );
    with(&["run", "claude", "hi"]).fails(1, "error: SyntaxError: no export named a\n");
}

/// Made by hand, after the messages of version managers and shells.
#[test]
fn shim_without_its_program_is_a_missing_cli() {
    for (script, reason) in [
        (
            "echo 'mise ERROR No version is set for shim: claude' >&2; exit 1",
            "did not start: mise ERROR No version is set for shim: claude",
        ),
        ("exec claude-real", "claude-real"),
    ] {
        let claude = Claude::new(&Script::new());
        claude.program(script);
        let ended = run(teamster(["run", "claude", "hi"]).env("PATH", {
            format!("{}:/usr/bin:/bin", claude.dir.path().display())
        }));
        ended.fails(3, reason);
        ended.stderr_has("next: install it with `npm install -g @anthropic-ai/claude-code`");
    }
}

#[test]
fn a_wrong_variable_is_to_be_corrected_if_it_named_the_program() {
    let with = |args: &[&str]| {
        let args = ["run", "claude", "hi"].iter().chain(args).copied();
        run(teamster(args).env("TEAMSTER_CLAUDE_BIN", "/nowhere/one")).stderr
    };
    let correct = "next: correct TEAMSTER_CLAUDE_BIN, or unset it";
    let named = with(&[]);
    assert!(named.contains(correct), "{named}");
    let option = with(&["--bin", "/nowhere/other"]);
    assert!(option.contains("/nowhere/other"), "{option}");
    assert!(!option.contains(correct), "{option}");
}

/// A service's PATH lacks the folder. The interpreter of the CLI is beside it.
#[test]
fn cli_is_found_at_its_installer_path_with_its_interpreter() {
    let claude = Claude::plays("text", 0);
    let folder = claude.path(".nvm/versions/node/v22.21.1/bin");
    std::fs::create_dir_all(&folder).unwrap();
    let program = std::fs::read_to_string(claude.path("claude")).unwrap();
    let program = program.replacen("#!/bin/sh", "#!/usr/bin/env beside", 1);
    assert!(program.starts_with("#!/usr/bin/env beside"), "{program}");
    teamster_testkit::proc::write_program(&folder.join("claude"), program).unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.join("beside")).unwrap();
    let home = claude.path("");
    let with = |args: &[&str]| run(teamster(args.iter().copied()).env("HOME", &home));
    let report = about_claude(&with(&["doctor"]).stdout);
    assert!(
        report.contains("not on PATH: found where its installer puts it"),
        "{report}"
    );
    with(&["run", "claude", "x"]).ok();
}

/// Volta's shim would take another Node.js, that of mise would end.
#[test]
fn the_guard_of_a_shim_is_named_and_not_passed_on() {
    let claude = Claude::new(&Script::new());
    claude.program(
        "[ -z \"$_VOLTA_TOOL_RECURSION$__MISE_SHIM_PATH\" ] || exit 0
        [ \"$1\" = --version ] && echo '2.1.330 (Claude Code)' && exit
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"hi\",\"session_id\":\"s\"}'",
    );
    let with = |args: &[&str]| {
        run(teamster(args.iter().copied())
            .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))
            .env("_VOLTA_TOOL_RECURSION", "1")
            .env("__MISE_SHIM_PATH", "/x/shims/teamster"))
    };
    let ended = with(&["doctor"]);
    assert!(
        about_claude(&ended.stdout).starts_with("✗ Claude Code  2.1.330, not logged in\n"),
        "{}",
        ended.stdout
    );
    for (name, manager) in [
        ("_VOLTA_TOOL_RECURSION", "Volta"),
        ("__MISE_SHIM_PATH", "mise"),
    ] {
        let note = format!("{name} is set by a shim of {manager}");
        ended.stdout_has(&note);
    }
    let ended = with(&["run", "claude", "x"]);
    assert_eq!(
        (ended.code, ended.stdout.trim()),
        (Some(0), "hi"),
        "{}",
        ended.stderr
    );
}
