//! Rules against calls in a real folder.

mod commands;

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::*;

fn rules(allowed: &[&str], denied: &[&str]) -> Result<Rules, AgentError> {
    let owned = |rules: &[&str]| rules.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    Rules::new(&owned(allowed), &owned(denied))
}

fn kind(tool: &str) -> ToolKind {
    if tool.starts_with("mcp__") {
        ToolKind::Mcp
    } else {
        crate::tools::kind(tool)
    }
}

/// A folder with files that are worth protecting.
struct Folder {
    _temp: tempfile::TempDir,
    base: PathBuf,
    roots: Roots,
}

impl Folder {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for file in "
            work/.env work/.git/config work/src/a.rs work/secrets/key other/.env out/x work/bare/HEAD
            work/bare/objects/x work/bare/refs/x work/lib/deep/a.rs
        "
        .split_whitespace()
        {
            let file = base.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        let work = base.join("work");
        symlink(work.join(".env"), work.join("link")).unwrap();
        symlink(work.join("secrets"), work.join("open")).unwrap();
        symlink(work.join("lib"), work.join("linked")).unwrap();
        symlink("../.git", work.join("src/vendor")).unwrap();
        std::fs::hard_link(work.join(".env"), work.join("hard")).unwrap();
        let roots = Roots::new(vec![work, base.join("other")]);
        Self {
            _temp: temp,
            base,
            roots,
        }
    }

    fn verdict(&self, rules: &Rules, mode: PermissionMode, tool: &str, input: &Value) -> Verdict {
        let subject = Subject::new(&self.roots, tool, kind(tool), input);
        rules.verdict(mode, tool, kind(tool), &self.roots, &subject)
    }

    /// Returns the decision about a path, as one word.
    fn path(&self, rules: &Rules, mode: PermissionMode, tool: &str, path: &str) -> &'static str {
        word(&self.verdict(rules, mode, tool, &json!({"path": path})))
    }

    fn command(&self, rules: &Rules, mode: PermissionMode, command: &str) -> &'static str {
        word(&self.verdict(rules, mode, "bash", &json!({"command": command})))
    }
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask(_) => "ask",
        Verdict::Deny(_) => "deny",
    }
}

#[test]
fn a_mode_decides_by_the_kind_of_tool() {
    use PermissionMode::{AcceptEdits, Bypass, Default, ReadOnly};
    let folder = Folder::new();
    let tools = ["read", "grep", "update_plan", "write", "bash", "mcp__a__b"];
    for (mode, expected) in [
        (Default, ["allow", "allow", "allow", "ask", "ask", "ask"]),
        (ReadOnly, ["allow", "allow", "allow", "deny", "deny", "ask"]),
        (
            AcceptEdits,
            ["allow", "allow", "allow", "allow", "ask", "ask"],
        ),
        (Bypass, ["allow"; 6]),
    ] {
        let rules = Rules::default();
        let words = tools
            .map(|tool| word(&folder.verdict(&rules, mode, tool, &json!({"path": "src/a.rs"}))));
        assert_eq!(words, expected, "{mode}");
    }
}

#[test]
fn denied_path_is_denied_in_every_form_and_for_every_reader() {
    let folder = Folder::new();
    let rules = rules(
        &["read"],
        &[
            "read(.env)",
            "Write(src/**)",
            "read(secrets)",
            "grep(lib/*)",
        ],
    )
    .unwrap();
    let absolute = folder.base.join("work/.env").display().to_string();
    for path in [
        ".env",
        "./.env",
        "src/../.env",
        &absolute,
        "link",
        "hard",
        ".ENV",
        ".//.env",
        "src/vendor/../.env",
        "../other/.env",
        "secrets/key",
        "open/key",
        "open",
        "secrets",
    ] {
        for tool in ["read", "edit", "grep", "glob"] {
            let word = folder.path(&rules, PermissionMode::Bypass, tool, path);
            assert_eq!(word, "deny", "{tool} {path}");
        }
    }
    for (tool, path, expected) in [
        ("write", "src/new/b.rs", "deny"),
        ("edit", "./src/../src/a.rs", "deny"),
        ("read", "src/a.rs", "allow"),
        ("write", "srcs/a.rs", "allow"),
        ("read", "lib/deep/a.rs", "allow"),
        ("grep", "linked/deep", "deny"),
        ("write", ".env", "allow"),
    ] {
        let word = folder.path(&rules, PermissionMode::Bypass, tool, path);
        assert_eq!(word, expected, "{tool} {path}");
    }
    let hidden = |tool: &str, file: &str| {
        rules.hides_file(&folder.roots, tool, &folder.base.join("work").join(file))
    };
    assert!(hidden("grep", ".env") && hidden("glob", "secrets/key") && hidden("grep", "hard"));
    assert!(hidden("grep", "lib/deep/a.rs") && !hidden("glob", "lib/deep/a.rs"));
    assert!(!hidden("grep", "src/a.rs"));
}

#[test]
fn an_allowed_path_is_what_it_leads_to() {
    let folder = Folder::new();
    let absolute = folder.base.join("other/**").display().to_string();
    let rules = rules(
        &[
            "write(src/**)",
            "edit(linked/**)",
            &format!("write({absolute})"),
            "mcp__fs(src/*)",
        ],
        &[],
    )
    .unwrap();
    let work = folder.base.join("work/src/b.rs").display().to_string();
    for (tool, path, expected) in [
        ("write", "src/a/b.rs", "allow"),
        ("write", "./src/b.rs", "allow"),
        ("write", "lib/../src/b.rs", "allow"),
        ("write", &work, "allow"),
        ("write", "b.rs", "ask"),
        ("write", "SRC/b.rs", "ask"),
        ("write", "src/../.git/hooks/pre-commit", "ask"),
        ("write", "src/vendor/hooks/pre-commit", "ask"),
        ("write", "src/../b.rs", "ask"),
        ("write", "../other/b", "allow"),
        ("edit", "lib/deep/a.rs", "allow"),
        ("edit", "linked/deep/a.rs", "allow"),
        ("mcp__fs__write", "src/a.rs", "allow"),
        ("mcp__fs__write", "src/../.env", "ask"),
        ("mcp__fs__write", "/etc/src/a", "ask"),
    ] {
        let word = folder.path(&rules, PermissionMode::Default, tool, path);
        assert_eq!(word, expected, "{tool} {path}");
    }
}

#[test]
fn a_pattern_may_begin_at_home_and_end_in_a_slash() {
    let folder = Folder::new();
    let rules = rules(&[], &["read(~/.ssh/**)", "read(l*/)", "read(src/)"]).unwrap();
    let key = std::env::home_dir()
        .unwrap()
        .join(".ssh/id")
        .display()
        .to_string();
    for path in [&key, "lib/deep/a.rs", "src/a.rs"] {
        let word = folder.path(&rules, PermissionMode::Bypass, "read", path);
        assert_eq!(word, "deny", "{path}");
    }
}

#[test]
fn accept_edits_asks_for_files_that_other_programs_run_or_obey() {
    let folder = Folder::new();
    let rules = rules(&["write(.github/workflows/own.yml)"], &[]).unwrap();
    for path in "
        .git/hooks/pre-commit src/../.git/config src/vendor/config sub/.git/config .GIT/config
        .gitmodules .envrc a/.envrc .mcp.json .vscode/tasks.json a/.idea/x.xml x.code-workspace
        AGENTS.md a/CLAUDE.md Agents.md .claude/settings.json .cursor/rules/a.mdc
        .github/workflows/ci.yml .github/copilot-instructions.md .gitlab-ci.yml .husky/pre-push
        .bashrc .npmrc .cargo/config.toml bare/hooks/post-update bare/config sub/HEAD
        .pre-commit-config.yaml .devcontainer/devcontainer.json HEAD
    "
    .split_whitespace()
    {
        let word = folder.path(&rules, PermissionMode::AcceptEdits, "write", path);
        assert_eq!(word, "ask", "{path}");
        let word = folder.path(&rules, PermissionMode::Bypass, "write", path);
        assert_eq!(word, "allow", "{path}");
    }
    for path in "
        src/a.rs .gitignore .env Makefile src/hooks/use.ts .github/dependabot.yml git/config
        docs/agents.txt .github/workflows/own.yml package.json
    "
    .split_whitespace()
    {
        let word = folder.path(&rules, PermissionMode::AcceptEdits, "write", path);
        assert_eq!(word, "allow", "{path}");
    }
    let input = json!({"path": "a/../.envrc"});
    let verdict = folder.verdict(&rules, PermissionMode::AcceptEdits, "write", &input);
    let Verdict::Ask(Some(why)) = verdict else {
        panic!("{verdict:?}");
    };
    assert!(
        why.contains("obey .envrc,") && why.ends_with("--allow-tool 'write(.envrc)'"),
        "{why}"
    );
}

#[test]
fn rules_name_tools_of_servers_and_hide_denied_ones() {
    let folder = Folder::new();
    let rules = rules(&["mcp__db", "mcp__x__get*"], &["Grep"]).unwrap();
    for (tool, expected) in [
        ("mcp__db__query", "allow"),
        ("mcp__dbx__query", "ask"),
        ("mcp__x__get_it", "allow"),
        ("mcp__x__set", "ask"),
        ("grep", "deny"),
    ] {
        let verdict = folder.verdict(&rules, PermissionMode::Default, tool, &json!({}));
        assert_eq!(word(&verdict), expected, "{tool}");
    }
    assert!(rules.hides("grep") && !rules.hides("bash"));
}

#[test]
fn each_path_and_command_of_a_servers_tool_is_judged() {
    let folder = Folder::new();
    let rules = rules(&["mcp__fs(src/*)"], &["mcp__fs__*(secrets/**)"]).unwrap();
    let secret = folder.base.join("work/secret%73/key").display().to_string();
    for (input, expected) in [
        (json!({"path": "secrets/key", "command": "x"}), "deny"),
        (json!({"path": "/etc/passwd", "command": "src/x"}), "ask"),
        (json!({"command": "src/x"}), "allow"),
        (json!({"file_path": "secrets/key"}), "deny"),
        (
            json!({"source": "src/a.rs", "destination": "secrets/key"}),
            "deny",
        ),
        (
            json!({"source": "src/a.rs", "destination": "src/b.rs"}),
            "allow",
        ),
        (
            json!({"source": "src/a.rs", "destination": "../b.rs"}),
            "ask",
        ),
        (json!({"paths": ["src/a.rs", "secrets/key"]}), "deny"),
        (json!({"edits": [{"filePath": "secrets/key"}]}), "deny"),
        (
            json!({"path": "src/a.rs", "resource": format!("file://{secret}?x")}),
            "deny",
        ),
        (
            json!({"path": "src/a.rs", "content": "secrets/key"}),
            "allow",
        ),
        (json!({"content": "src/a.rs"}), "ask"),
    ] {
        let verdict = folder.verdict(&rules, PermissionMode::Default, "mcp__fs__x", &input);
        assert_eq!(word(&verdict), expected, "{input}");
    }
}

#[test]
fn a_home_folder_that_a_server_may_expand_is_judged_too() {
    let folder = Folder::new();
    let Some(home) = std::env::var_os("HOME").map(PathBuf::from) else {
        return;
    };
    let denied = format!("mcp__fs({}/.ssh)", home.display());
    let rules = rules(&["mcp__fs(*)"], &[&denied]).unwrap();
    for (path, expected) in [("~/.ssh/key", "deny"), ("~/x", "ask"), ("~x", "allow")] {
        assert_eq!(
            folder.path(&rules, PermissionMode::Default, "mcp__fs__read", path),
            expected,
            "{path}"
        );
    }
}

#[test]
fn read_only_is_stronger_than_a_rule() {
    let folder = Folder::new();
    let rules = rules(&["bash"], &[]).unwrap();
    assert_eq!(
        folder.command(&rules, PermissionMode::ReadOnly, "ls"),
        "deny"
    );
}

#[test]
fn always_allow_covers_the_same_command_or_ordinary_files_only() {
    let folder = Folder::new();
    let mut rules = Rules::default();
    let mut always = |tool: &str, input: Value| {
        let subject = Subject::new(&folder.roots, tool, kind(tool), &input);
        rules.allow_always(tool, &folder.roots, &subject);
    };
    always("bash", json!({"command": "make [x]; ls"}));
    always("write", json!({"path": "src/a.rs"}));
    always("write", json!({"path": "src/../.envrc"}));
    always("mcp__fs__x", json!({"path": "src/a.rs", "command": "x"}));
    for (line, expected) in [
        ("make [x]; ls", "allow"),
        ("make x; ls", "ask"),
        ("ls", "ask"),
    ] {
        assert_eq!(
            folder.command(&rules, PermissionMode::Default, line),
            expected,
            "{line}"
        );
    }
    let other = json!({"path": "/etc/passwd", "command": "x"});
    let verdict = folder.verdict(&rules, PermissionMode::Default, "mcp__fs__x", &other);
    assert_eq!(word(&verdict), "ask");
    for (path, expected) in [
        ("new.rs", "allow"),
        (".envrc", "allow"),
        (".git/hooks/pre-commit", "ask"),
        ("src/.envrc", "ask"),
    ] {
        assert_eq!(
            folder.path(&rules, PermissionMode::Default, "write", path),
            expected,
            "{path}"
        );
    }
}

#[test]
fn a_rule_that_is_none_is_refused_by_name() {
    for (rule, problem) in [
        ("bash(git", "allowed_tools: `bash(git`: the `)`"),
        ("(x)", "allowed_tools: `(x)` names no tool"),
        ("a[", "allowed_tools: `a[`: "),
        (
            "read(*/../x)",
            "allowed_tools: `read(*/../x)`: `..` after a wildcard",
        ),
    ] {
        let error = rules(&[rule], &[]).unwrap_err();
        assert!(error.message.starts_with(problem), "{error}");
    }
}
