//! The checks on trees of hand-made files.

use super::*;

/// Returns the problems of a tree of hand-made files.
fn problems(files: &[(&str, &str)]) -> Vec<String> {
    problems_of(CHECKS, files)
}

/// Returns the problems that some of the checks find.
pub(super) fn problems_of(checks: &[Check], files: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tree = Tree::read(dir.path()).unwrap();
    let mut problems = Vec::new();
    for check in checks {
        check(&tree, &mut problems);
    }
    problems.iter().map(Problem::to_string).collect()
}

#[test]
fn valid_packages_are_not_mentioned() {
    let manifest = "[package]\ndescription = \"x\"\nlicense.workspace = true\npublish = false\n\
                    [lints]\nworkspace = true\n";
    let readme = "[a](src/lib.rs) [b](https://x.org) [c](#d) [d](src/lib.rs#L1 \"t\")\n";
    let none: [&str; 0] = [];
    assert_eq!(
        problems(&[
            ("crates/core/Cargo.toml", manifest),
            ("crates/core/src/lib.rs", "#![warn(missing_docs)]\n"),
            ("crates/core/README.md", readme),
            ("fixtures/c/1/x/stdout.ndjson", "\t \n"),
            (
                "fixtures/c/1/x/events.snap",
                "---\nsource: fixtures/tests/it.rs\n---\ndone\n",
            ),
            ("target/x.rs", "\t"),
            ("target-musl/x.rs", "\t"),
        ]),
        none
    );
}

#[test]
fn every_check_finds_its_fault() {
    let long = "\n".repeat(MOST_LINES + 1);
    assert_eq!(
        problems(&[
            ("crates/a/Cargo.toml", "[package]\npublish = false\n"),
            ("crates/a/src/lib.rs", concat!("// FIX", "ME\n")),
            ("crates/a/src/long.rs", &long),
            (".github/a.md", "a \n"),
            ("README.md", "a \n\tb\n[x](none.md)\n```\n[x](none.md)\n```"),
            ("fixtures/c/1/x/stdout.ndjson", ""),
            ("fixtures/c/1/y/events.snap", ""),
        ]),
        [
            "crates/a/src/long.rs: has 501 lines, more than 500: split it",
            ".github/a.md:1: white space at the end of the line",
            "README.md:1: white space at the end of the line",
            "README.md:2: a tab; indent with spaces",
            "README.md: no newline at the end",
            concat!("crates/a/src/lib.rs:1: `FIX", "ME` is left over"),
            "crates/a/Cargo.toml: `package.description` is missing",
            "crates/a/Cargo.toml: `package.license` is missing",
            "crates/a/Cargo.toml: `lints.workspace = true` is missing",
            "crates/a/src/lib.rs: `#![warn(missing_docs)]` is missing",
            "fixtures/c/1/x/stdout.ndjson: has no snapshot: run `cargo xtask replay --accept`",
            "fixtures/c/1/y/events.snap: is the snapshot of nothing: there is no stdout.ndjson",
            "fixtures/c/1/y/events.snap: has another header than `source: fixtures/tests/it.rs` alone",
            "README.md:3: the link to none.md is dead",
            "crates/a/Cargo.toml: this crate has no row in `LAYERS` of xtask/src/tidy/layers.rs",
        ]
    );
}

#[test]
fn words_that_are_gone_are_found_in_comments_and_pages() {
    // Split, so that this file does not match.
    let word = concat!("no", "body");
    let code = format!("let {word} = 1;\n/// What {word} sees.\nlet x = {word}_1;\n");
    assert_eq!(
        problems(&[
            ("crates/store/src/a.rs", &code),
            ("docs/a.md", &format!("{}\n", word.to_uppercase())),
            ("docs/versions.md", &format!("{word}\n")),
        ]),
        ["crates/store/src/a.rs:2", "docs/a.md:1"].map(|location| format!(
            "{location}: the word `{word}`: write the caller, or the passive voice"
        ))
    );
}

#[test]
fn a_page_is_in_the_index() {
    assert_eq!(
        problems(&[
            ("docs/README.md", "[a](a.md#b)\n"),
            ("docs/a.md", "a\n"),
            ("docs/b.md", "b\n"),
            ("docs/schema/c.md", "c\n"),
        ]),
        ["docs/b.md:1: is not in the index docs/README.md"]
    );
}

#[test]
fn a_test_sleeps_only_where_the_clock_is_its_own() {
    let paused = "#[tokio::test(start_paused = true)]\nasync fn a() {}\n";
    // Split, so that this file does not match.
    let sleeps = concat!("    tokio::time::sle", "ep(TIME).await;\n");
    let blocks = concat!("    std::thread::sle", "ep(TIME);\n");
    let call = "    script.sleep(TIME);\n";
    let unit = format!("fn live() {{\n{sleeps}}}\n#[cfg(test)]\nmod tests {{\n{sleeps}}}\n");
    assert_eq!(
        problems(&[
            ("crates/a/src/unit.rs", &unit),
            ("crates/a/src/unit/tests.rs", sleeps),
            ("crates/a/tests/it/one.rs", &format!("{call}{sleeps}")),
            ("crates/a/tests/it/two.rs", blocks),
            ("crates/b/tests/it/paused.rs", paused),
            ("crates/b/tests/it/one.rs", &format!("{sleeps}{blocks}")),
            ("crates/testkit/tests/engine.rs", sleeps),
        ]),
        [
            ("crates/a/src/unit.rs:6"),
            ("crates/a/src/unit/tests.rs:1"),
            ("crates/a/tests/it/one.rs:2"),
            ("crates/a/tests/it/two.rs:1"),
            ("crates/b/tests/it/one.rs:2"),
        ]
        .map(|location| format!(
            "{location}: a test sleeps: wait for what shall happen, with a limit, or pause the clock"
        ))
    );
}

#[test]
fn crates_use_lower_layers_and_libraries_leave_the_terminal() {
    let library = "#![warn(missing_docs)]\n// `teamster run`\nfn a() {\n    println!(\"try `teamster run`\");\n}\n\
                   mod tests {\n    fn b() { println!(); }\n}\n";
    let manifest = "[dependencies]\nclap = \"4\"\nteamster-runner = \"1\"\n[dev-dependencies]\nteamster-host = \"1\"\n";
    assert_eq!(
        problems_of(
            &[layers::check],
            &[
                ("crates/core/Cargo.toml", manifest),
                ("crates/core/src/lib.rs", library),
                (
                    "crates/runner/Cargo.toml",
                    "[dependencies]\nteamster-core = \"1\"\n"
                ),
            ]
        ),
        [
            "crates/core/Cargo.toml:2: only programs parse arguments",
            "crates/core/Cargo.toml:3: `core` cannot stand on `runner`, which is not below it",
            "crates/core/src/lib.rs:4: a library prints: return it to the caller",
            "crates/core/src/lib.rs:4: a library names a command of the program: return what it needs as data",
        ]
    );
}

#[test]
fn module_circles_are_found_through_groups_folders_and_root() {
    let files = [
        ("crates/cli/Cargo.toml", ""),
        (
            "crates/cli/src/lib.rs",
            "use crate::a;\npub use c::{\n    Y,\n    Z,\n};\n",
        ),
        (
            "crates/cli/src/a.rs",
            "use crate::{\n    b::{X, Y},\n    words,\n};\n",
        ),
        ("crates/cli/src/b/more.rs", "use crate::Z;\n"),
        (
            "crates/cli/src/c.rs",
            "fn f() { crate::a::g() }\nmod tests {\n    use crate::words;\n",
        ),
        ("crates/cli/src/words.rs", "use crate::item_of_root;\n"),
    ];
    assert_eq!(
        problems_of(&[layers::check], &files),
        [
            "crates/cli/src/a.rs: modules import each other: a → b → c → a",
            "crates/cli/src/lib.rs: modules import each other: lib → words → lib",
        ]
    );
}

#[test]
fn only_the_command_line_imports_commands() {
    let files = [
        ("crates/cli/Cargo.toml", ""),
        (
            "crates/cli/src/command_line.rs",
            "use crate::commands::{chat, r#loop};\n",
        ),
        (
            "crates/cli/src/commands/loop.rs",
            "use crate::commands::chat::args::ChatArgs;\n",
        ),
        (
            "crates/cli/src/commands/chat/args.rs",
            "use crate::commands::{chat, r#loop};\n",
        ),
    ];
    assert_eq!(
        problems_of(&[layers::check], &files),
        [
            "crates/cli/src/commands/chat/args.rs: imports `commands::loop`: what commands share is beside \
             `commands`, and only `command_line` imports them",
            "crates/cli/src/commands/chat/args.rs: modules import each other: commands::chat → commands::loop → \
             commands::chat",
            "crates/cli/src/commands/loop.rs: imports `commands::chat`: what commands share is beside \
             `commands`, and only `command_line` imports them",
        ]
    );
}
