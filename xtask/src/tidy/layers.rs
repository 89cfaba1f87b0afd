//! The layers of the workspace: which crate may stand on which, who talks to a terminal, and circles of modules.

use std::collections::{BTreeMap, BTreeSet};

use super::{File, Problem, Tree};

/// The crates, from the bottom up. A crate stands on crates of lower rows only; dependencies of its tests do not count.
const LAYERS: [&str; 12] = [
    "core mock-model",
    "api claude codex pi command acp fakes mcp-config prices",
    "gemini copilot opencode acp-agents process orchestrator usage client metrics acp-server mcp-server mcp-tools",
    "runner store telemetry mcp-client testkit server workspace",
    "embedded",
    "providers",
    "loop",
    "host",
    "fleet",
    "teamster",
    "cli",
    "conformance magpie",
];

/// Crates with programs, which parse arguments and print.
const PROGRAMS: &[&str] = &[
    "cli",
    "conformance",
    "fakes",
    "magpie",
    "testkit",
    "mock-model",
];

/// Crates in which no modules import each other in a circle.
const WITHOUT_CIRCLES: &[&str] = &["cli", "server", "conformance"];

/// The module that knows the arguments of all commands.
const COMMAND_LINE: &str = "command_line";

/// The root of a crate. It knows all modules, so what they need of it is in a module of its own.
const ROOT: &str = "lib";

/// Files of libraries that may write to a standard stream, with the reason.
const STREAMS: &[(&str, &str)] = &[
    (
        "crates/runner/src/launch.rs",
        "a runner answers the process that has started it on stdout",
    ),
    (
        "crates/runner/src/step.rs",
        "a process that a test kills names where",
    ),
];

/// Libraries that may name a command line of the program, with the reason.
const COMMANDS: &[(&str, &str)] = &[(
    "crates/server/src/",
    "its document describes what the commands of the program return too",
)];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    dependencies(tree, problems);
    for file in tree.with(".rs") {
        let Some(name) = crate_of(&file.path) else {
            continue;
        };
        if !PROGRAMS.contains(&name) {
            library(file, problems);
        }
    }
    for name in WITHOUT_CIRCLES {
        circles(tree, name, problems);
    }
}

/// Returns the crate to whose source a file belongs.
fn crate_of(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    rest.starts_with("src/").then_some(name)
}

fn layer(name: &str) -> Option<usize> {
    let mut layers = LAYERS.iter();
    layers.position(|layer| layer.split(' ').any(|it| it == name))
}

fn dependencies(tree: &Tree, problems: &mut Vec<Problem>) {
    for file in tree.with("Cargo.toml") {
        let Some(name) = (file.path.strip_prefix("crates/"))
            .and_then(|path| path.strip_suffix("/Cargo.toml"))
            .filter(|name| !name.contains('/'))
        else {
            continue;
        };
        let Some(own) = layer(name) else {
            let message = "this crate has no row in `LAYERS` of xtask/src/tidy/layers.rs";
            problems.push(file.problem(0, message));
            continue;
        };
        let mut section = "";
        for (number, line) in file.lines() {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            let is_dependency = section.ends_with("dependencies]") && !section.contains("dev-");
            let dependency = line.split([' ', '=', '.']).next().unwrap_or_default();
            if !is_dependency {
                continue;
            }
            if dependency == "clap" && !PROGRAMS.contains(&name) {
                problems.push(file.problem(number, "only programs parse arguments"));
            }
            let dependency = match dependency {
                "teamster" => "teamster",
                other => other.strip_prefix("teamster-").unwrap_or_default(),
            };
            if let Some(below) = layer(dependency)
                && below >= own
            {
                let message =
                    format!("`{name}` cannot stand on `{dependency}`, which is not below it");
                problems.push(file.problem(number, message));
            }
        }
    }
}

/// Returns the lines of a file without its tests and comments.
fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let lines = file
        .lines()
        .take_while(move |(_, line)| !is_test && line.trim() != "mod tests {");
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Returns the code of a file as one text.
fn joined(file: &File) -> String {
    let lines: Vec<_> = code(file).map(|(_, line)| line).collect();
    lines.join("\n")
}

/// Tasks of programs and not of libraries: the standard streams, and advice in commands of the program.
fn library(file: &File, problems: &mut Vec<Problem>) {
    let excepted = |list: &[(&str, &str)]| list.iter().any(|(path, _)| file.path.starts_with(path));
    let prints = [
        concat!("print", "ln!("),
        concat!("pri", "nt!("),
        concat!("io::std", "out("),
        concat!("io::std", "err("),
        "anstream::std",
    ];
    let command = concat!("`teamster", " ");
    for (number, line) in code(file) {
        if !excepted(STREAMS) && prints.iter().any(|print| line.contains(print)) {
            problems.push(file.problem(number, "a library prints: return it to the caller"));
        }
        if !excepted(COMMANDS) && line.contains(command) {
            let message = "a library names a command of the program: return what it needs as data";
            problems.push(file.problem(number, message));
        }
    }
}

/// Finds modules of a crate that import each other in a circle, and commands that others import.
fn circles(tree: &Tree, name: &str, problems: &mut Vec<Problem>) {
    let imports = imports(tree, &format!("crates/{name}/src/"));
    for (module, (file, used)) in &imports {
        if ![COMMAND_LINE, ROOT].contains(&&**module)
            && let Some(command) = used.iter().find(|other| other.starts_with("commands::"))
        {
            let message = format!(
                "imports `{command}`: what commands share is beside `commands`, and only `{COMMAND_LINE}` imports them"
            );
            problems.push(file.problem(0, message));
        }
        if let Some(path) = way_back(&imports, module)
            // Each circle once: at the first of its modules.
            && path.iter().all(|other| other >= module)
        {
            let way = path.join(" → ");
            problems.push(file.problem(0, format!("modules import each other: {module} → {way}")));
        }
    }
}

/// The modules of a crate, each with its file and the modules that it imports.
type Imports<'a> = BTreeMap<String, (&'a File, BTreeSet<String>)>;

/// Returns the top modules of the source in a folder; a folder of commands counts as one module for each command.
fn imports<'a>(tree: &'a Tree, source: &str) -> Imports<'a> {
    let mut imports = Imports::new();
    for file in tree.with(".rs") {
        let Some(path) = file.path.strip_prefix(source) else {
            continue;
        };
        let module = module_of(path.trim_end_matches(".rs").split('/'));
        if [ROOT, "main", "tests"].contains(&&*module) {
            continue;
        }
        let text = joined(file);
        let entry = imports
            .entry(module)
            .or_insert_with(|| (file, BTreeSet::new()));
        entry.1.extend(paths(&text));
    }
    let root = format!("{source}lib.rs");
    let root = tree.with("lib.rs").find(|file| file.path == root);
    let exported = root.map(exports).unwrap_or_default();
    let known: BTreeSet<String> = imports.keys().cloned().collect();
    for (module, (_, used)) in &mut imports {
        let of_root = used.iter().filter_map(|name| exported.get(name).cloned());
        let of_root: Vec<_> = of_root.collect();
        let is_of_root = |name: &String| !known.contains(name) && !exported.contains_key(name);
        let root = root.filter(|_| used.iter().any(is_of_root));
        used.extend(of_root.into_iter().chain(root.map(|_| ROOT.to_owned())));
        used.retain(|other| other != module && (known.contains(other) || other == ROOT));
    }
    if let Some(root) = root {
        imports.insert(ROOT.to_owned(), (root, known));
    }
    imports
}

/// Returns the items that the root of a crate exports, each with the module that it is from.
fn exports(root: &File) -> BTreeMap<String, String> {
    let text = joined(root);
    let mut found = BTreeMap::new();
    for statement in text.split(';') {
        if let Some((_, path)) = statement.split_once("use ")
            && let Some((module, items)) = path.split_once("::")
        {
            let items = items.split(|c: char| !c.is_alphanumeric() && c != '_');
            let items = items.filter(|item| !item.is_empty());
            found.extend(items.map(|item| (item.to_owned(), module.to_owned())));
        }
    }
    found
}

fn module_of<'a>(mut parts: impl Iterator<Item = &'a str>) -> String {
    let first = parts.next().unwrap_or_default();
    match (first, parts.next()) {
        ("commands", Some(command)) => format!("commands::{command}"),
        _ => first.to_owned(),
    }
}

/// Returns the modules of the own crate that a text names.
fn paths(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("crate::") {
        rest = after;
        // After the last comma of a group comes an empty one.
        for path in branches(after).iter().filter(|path| !path.is_empty()) {
            found.insert(module_of(path.split("::")));
        }
    }
    found
}

/// Returns the paths at the beginning of a text: one, or those of a group in braces, down to two names.
fn branches(text: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let text = text.strip_prefix("r#").unwrap_or(text);
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|c: char| !is_name(c)).unwrap_or(text.len());
        let name = &text[..end];
        return match text[end..].strip_prefix("::") {
            Some(rest) if name == "commands" => branches(rest)
                .into_iter()
                .map(|path| format!("commands::{path}"))
                .collect(),
            _ => vec![name.to_owned()],
        };
    };
    let mut depth = 0;
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' | ',' if depth == 0 => {
                found.extend(branches(group[begin..at].trim_start()));
                begin = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

/// Returns the shortest way from a module back to itself.
fn way_back(imports: &Imports<'_>, start: &str) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut ways = std::collections::VecDeque::from([vec![start.to_owned()]]);
    while let Some(way) = ways.pop_front() {
        let last = way.last()?;
        for next in &imports.get(last)?.1 {
            let mut way = way.clone();
            way.push(next.clone());
            if next == start {
                return Some(way.split_off(1));
            }
            if seen.insert(next.clone()) {
                ways.push_back(way);
            }
        }
    }
    None
}
