//! Names of CLIs outside of their providers' crates, including names of files such as `CLAUDE.md` and of
//! variables.

use super::{File, Problem, Tree};

/// The file with the list of CLIs.
const LIST: &str = "crates/providers/src/providers.rs";

/// Paths outside of the list and the providers' crates that may contain names, with the reason.
const EXEMPT: &[&str] = &[
    // Readers of the CLIs' own files, one list of them, and names of vendors and folders.
    "crates/usage/src/",
    // The names of those readers, for the query of a report. A test of `crates/usage` compares them.
    "crates/api/src/usage/query.rs",
    // Vendors and models, some of which have the name of a CLI.
    "crates/prices/src/",
    // Folders of the vendors' installers, for a program of any name.
    "crates/process/src/program.rs",
    // Configuration of each CLI's model, one file each.
    "crates/mock-model/src/cli/",
    // The providers of several CLIs, one file each.
    "crates/acp-agents/src/",
    // Beginnings of the names of the services' models.
    "crates/core/src/provider/classify.rs",
    // Facts about the programs that make a CLI an ACP agent, which are no providers.
    "crates/acp/src/known.rs",
    // Model services and their models, some of which have the name of a CLI.
    "crates/embedded/src/",
    "crates/mock-model/src/protocol.rs",
    "crates/mock-model/src/wire",
    // Data of one CLI only: Copilot's premium requests, Codex's records of limits, Claude Code's status line.
    "crates/cli/src/commands/usage/",
    // Examples of requests, with their own quotes.
    "crates/cli/src/commands/serve/args.rs",
    // Commands of other programs that add an MCP server.
    "crates/cli/src/commands/mcp/args.rs",
    // A recording of a CLI.
    "crates/cli/src/commands/demo/recording.rs",
    // Tests of the CLIs themselves.
    "crates/conformance/",
    "crates/fakes/",
    "crates/testkit/",
    "xtask/",
];

/// Checks for names, except in tests, docs, examples and attributes (features).
pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let Some(list) = tree.files.iter().find(|file| file.path == LIST) else {
        return;
    };
    let names: Vec<&str> = list.text.lines().filter_map(name_of_entry).collect();
    if names.is_empty() {
        problems.push(list.problem(0, "has no list of CLIs: `\"ID\" => crate::ID::Provider,`"));
    }
    for file in tree.with(".rs").filter(|file| is_looked_at(file, &names)) {
        let code = file.lines().take_while(|(_, line)| !begins_tests(line));
        for (number, line) in code {
            let trimmed = line.trim_start();
            if trimmed.starts_with("//") || trimmed.starts_with("#[") {
                continue;
            }
            let found = |name: &&&str| literals(line).any(|literal| has_word(literal, name));
            for name in names.iter().filter(found) {
                let message = format!(
                    "has the name `{name}` in a text: make it a field of `CliInfo` or `Capabilities`, which the \
                     provider fills in, or give the file a reason in `xtask/src/tidy/names.rs`"
                );
                problems.push(file.problem(number, message));
            }
        }
    }
}

/// Returns the texts in quotes that begin on this line, up to its end.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    // An escaped quote counts as the end of a text, and the next one as a beginning. This can only find too
    // much, because no name in code is followed by a quote.
    line.split('"').skip(1).step_by(2)
}

/// Returns whether the name is a word of the text, in any case: `CLAUDE.md`, `claude-3`, but not `claudette`.
fn has_word(text: &str, name: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| word.eq_ignore_ascii_case(name))
}

/// Returns the id in an entry of the list: `"id" | "alias" => crate::id::Provider,`.
fn name_of_entry(line: &str) -> Option<&str> {
    let (names, provider) = line.trim().split_once(" => ")?;
    let is_entry = provider.starts_with("crate::") && provider.ends_with(',');
    let name = names.strip_prefix('"')?.split('"').next()?;
    is_entry.then_some(name)
}

fn is_looked_at(file: &File, names: &[&str]) -> bool {
    let path = &file.path;
    let of_provider = |name: &&str| path.starts_with(&format!("crates/{name}/"));
    let is_beside = ["/tests/", "/examples/", "/benches/"]
        .iter()
        .any(|folder| path.contains(folder));
    path != LIST
        && !is_beside
        && !path.ends_with("tests.rs")
        && !path.ends_with("/testing.rs")
        && !names.iter().any(of_provider)
        && !EXEMPT.iter().any(|exempt| path.starts_with(exempt))
}

/// Returns whether the tests of a file begin here. By convention they are at its end.
fn begins_tests(line: &str) -> bool {
    line.trim_start().starts_with("#[cfg(test)]") || line.contains("#[cfg(all(test")
}

#[cfg(test)]
mod tests {
    use super::super::tests::problems_of;
    use super::*;

    const ENTRIES: &str =
        "builtin! {\n    \"claude\" | \"claude-code\" => crate::claude::Claude,\n}\n";

    #[test]
    fn a_name_in_code_is_found_also_within_a_text() {
        for literal in [
            "claude",
            "CLAUDE.md",
            "TEAMSTER_CLAUDE_BIN",
            "log in with Claude",
        ] {
            let code = format!(
                "//! `\"claude\"`\nfn a() {{\n    b(\"a\", \"{literal}\");\n}}\n\n#[cfg(test)]\nmod tests {{\n    \
                 const A: &str = \"claude\";\n}}\n"
            );
            let files = [(LIST, ENTRIES), ("crates/loop/src/agent.rs", &*code)];
            assert_eq!(
                problems_of(&[check], &files),
                [
                    "crates/loop/src/agent.rs:3: has the name `claude` in a text: make it a field of `CliInfo` or \
                     `Capabilities`, which the provider fills in, or give the file a reason in \
                     `xtask/src/tidy/names.rs`"
                ]
            );
        }
    }

    #[test]
    fn names_may_stand_where_they_belong() {
        let name = "const A: &str = \"claude\";\n";
        let none: [&str; 0] = [];
        let files = [
            (LIST, ENTRIES),
            ("crates/claude/src/lib.rs", name),
            ("crates/loop/tests/day.rs", name),
            ("crates/loop/src/settings/tests.rs", name),
            ("crates/teamster/examples/a.rs", name),
            ("crates/mock-model/src/cli/claude.rs", name),
            (
                "crates/teamster/src/lib.rs",
                "#[cfg(feature = \"claude\")]\npub use a;\n",
            ),
            (
                "crates/loop/src/other.rs",
                "const A: &str = \"claudette\";\n",
            ),
        ];
        assert_eq!(problems_of(&[check], &files), none);
    }

    #[test]
    fn a_list_without_entries_is_a_problem() {
        assert_eq!(
            problems_of(&[check], &[(LIST, "")]),
            [
                "crates/providers/src/providers.rs: has no list of CLIs: `\"ID\" => crate::ID::Provider,`"
            ]
        );
    }
}
