//! `cargo xtask fuzz`: coverage-guided tests of what reads the output of others.
//!
//! The targets are one program (`fuzz`, a workspace of its own), built with the coverage of the stable compiler and linked
//! with libFuzzer; there is no sanitizer of memory, as that needs a nightly compiler, and the project has no unsafe code
//! that it would watch. The target `markdown` is a script for Node.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{Outcome, cargo, root, target};

/// What makes the compiler count edges and report comparisons, as libFuzzer reads them.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";
/// Largest input, in bytes. Larger seeds are cut.
const LARGEST: u32 = 64 << 10;
/// Time for one input in seconds, of which most take a hundredth on a quiet machine, and memory in MiB.
const TIMEOUT: u32 = 30;
const MEMORY: u32 = 2048;
/// The target that Node runs.
const MARKDOWN: &str = "markdown";
/// Variable with the target that the program runs.
const VARIABLE: &str = "TEAMSTER_FUZZ";

/// Try to break what reads output of CLIs, editors, services, files of users and logs, with changed recordings.
///
/// Inputs that reach new code are kept in `target/fuzz/corpus`, and the next run begins with them. An input with a fault
/// is kept in `target/fuzz/found`; give it with `--input` to see the fault again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is tried. Default: all targets.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target is tried, in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Print the targets
    #[arg(long)]
    list: bool,
    /// Try these inputs of the named target alone, each once
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "list",
        requires = "targets"
    )]
    input: Vec<PathBuf>,
}

/// A target with the files and folders of its first inputs.
struct Target {
    name: String,
    seeds: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome> {
    ensure!(
        args.input.is_empty() || !args.targets.iter().any(|target| target == MARKDOWN),
        "{MARKDOWN} takes no `--input`: it prints a fault with the name of its file when it finds it"
    );
    if !has("c++") {
        writeln!(out, "not run: libFuzzer needs a C++ compiler (`c++`)")?;
        return Ok(Outcome::NotRun);
    }
    let folder = target().join("fuzz");
    for name in ["corpus", "found"] {
        let path = folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    }
    let program = build(&folder)?;
    let all = targets(&program)?;
    if args.list {
        for target in &all {
            writeln!(out, "{}", target.name)?;
        }
        return Ok(Outcome::Fine);
    }
    for name in &args.targets {
        ensure!(
            all.iter().any(|target| target.name == *name),
            "no target {name}: `cargo xtask fuzz --list` prints them"
        );
    }
    let is_asked = |it: &&Target| args.targets.is_empty() || args.targets.contains(&it.name);
    let mut faulty = Vec::new();
    for target in all.iter().filter(is_asked) {
        let is_fine = if target.name == MARKDOWN {
            if !has("node") {
                writeln!(out, "{MARKDOWN}: not run: it needs Node")?;
                continue;
            }
            markdown(&folder, target, args.seconds)?
        } else {
            fuzz(&program, &folder, target, args)?
        };
        writeln!(
            out,
            "{}: {}",
            target.name,
            if is_fine { "fine" } else { "faulty" }
        )?;
        out.flush()?;
        if !is_fine {
            faulty.push(&*target.name);
        }
    }
    if !faulty.is_empty() {
        let found = folder.join("found");
        writeln!(
            out,
            "faults of {}: their inputs are in {}",
            faulty.join(", "),
            found.display()
        )?;
    }
    Ok(Outcome::problems_if(!faulty.is_empty()))
}

/// Builds the program of all targets.
fn build(folder: &Path) -> Result<PathBuf> {
    let workspace = root().join("fuzz");
    // The versions of the workspace, so that the code that is tried is that which is built.
    let lock = workspace.join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &lock)
        .with_context(|| format!("cannot write {}", lock.display()))?;
    let host = Command::new("rustc")
        .args(["--print", "host-tuple"])
        .output();
    let host = String::from_utf8(host.context("failed to run rustc")?.stdout)?;
    let host = host.trim();
    // With a target named, build scripts and macros are built without coverage.
    let built = cargo()
        .current_dir(&workspace)
        .args(["build", "--release", "--target", host])
        .arg("--target-dir")
        .arg(folder)
        .env("RUSTFLAGS", COVERAGE)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .context("failed to run cargo")?;
    ensure!(built.success(), "the targets could not be built");
    Ok(folder.join(host).join("release/teamster-fuzz"))
}

fn targets(program: &Path) -> Result<Vec<Target>> {
    let listed = Command::new(program).env(VARIABLE, "list").output();
    let listed = listed.with_context(|| format!("failed to run {}", program.display()))?;
    let mut targets = Vec::new();
    for line in String::from_utf8(listed.stdout)?.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap_or_default().to_owned();
        let seeds = fields.map(|seed| root().join(seed)).collect();
        targets.push(Target { name, seeds });
    }
    if targets.is_empty() {
        bail!("{} has no targets", program.display());
    }
    targets.push(Target {
        name: MARKDOWN.to_owned(),
        seeds: texts(&["clients/tests/markdown", "docs"])?,
    });
    Ok(targets)
}

/// Returns the texts in Markdown in these folders.
fn texts(folders: &[&str]) -> Result<Vec<PathBuf>> {
    let mut texts = Vec::new();
    for folder in folders {
        let folder = root().join(folder);
        let entries =
            fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        for entry in entries {
            texts.push(entry?.path());
        }
    }
    texts.retain(|path| path.extension().is_some_and(|it| it == "md"));
    texts.sort();
    Ok(texts)
}

/// Tries a target; returns whether there was no fault.
fn fuzz(program: &Path, folder: &Path, target: &Target, args: &Args) -> Result<bool> {
    let corpus = folder.join("corpus").join(&target.name);
    fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let found = folder.join("found").join(format!("{}-", target.name));
    let mut command = Command::new(program);
    command
        .env(VARIABLE, &target.name)
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-artifact_prefix={}", found.display()));
    if args.input.is_empty() {
        let folders: Vec<_> = target.seeds.iter().filter(|seed| seed.is_dir()).collect();
        let files = target.seeds.iter().filter(|seed| seed.is_file());
        let files: Vec<_> = files.map(|file| file.display().to_string()).collect();
        if !files.is_empty() {
            command.arg(format!("-seed_inputs={}", files.join(",")));
        }
        command
            .arg(format!("-max_total_time={}", args.seconds))
            .arg(format!("-max_len={LARGEST}"))
            .args(["-print_final_stats=1", "-print_funcs=0", "-verbosity=0"])
            .arg(corpus)
            .args(folders);
    } else {
        command.args(&args.input);
    }
    let status = command.status();
    let status = status.with_context(|| format!("failed to run {}", program.display()))?;
    Ok(status.success())
}

fn markdown(folder: &Path, target: &Target, seconds: u64) -> Result<bool> {
    // The modules without a browser: Node takes them for modules because of the manifest beside them.
    let page = folder.join("page");
    fs::create_dir_all(&page).with_context(|| format!("cannot make {}", page.display()))?;
    fs::write(page.join("package.json"), "{\"type\":\"module\"}\n")?;
    for name in ["markdown.js", "inline.js"] {
        fs::copy(
            root().join("crates/server/page").join(name),
            page.join(name),
        )
        .with_context(|| format!("cannot copy {name}"))?;
    }
    let status = Command::new("node")
        .arg(root().join("fuzz/markdown.mjs"))
        .arg(seconds.to_string())
        .arg(folder.join("found"))
        .arg(page)
        .args(&target.seeds)
        .status()
        .context("failed to run node")?;
    Ok(status.success())
}

/// Returns whether this program is installed.
fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn an_input_is_of_a_named_target_of_the_program() {
        let parse = |words: &[&str]| Line::try_parse_from(["fuzz"].iter().chain(words));
        let error = parse(&["--input", "f"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument);
        let line = parse(&["log", "--input", "f"]).unwrap();
        assert_eq!(line.args.targets, ["log"]);
        // Before, it was ignored.
        let line = parse(&[MARKDOWN, "--input", "f"]).unwrap();
        let error = run(&line.args, &mut std::io::sink()).err().unwrap();
        assert!(error.to_string().starts_with("markdown takes no `--input`"));
    }
}
