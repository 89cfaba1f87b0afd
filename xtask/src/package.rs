//! `cargo xtask package`: the contents of published packages, and their build and tests outside of the
//! repository.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::{Outcome, cargo, published, root, target};

/// Maximum size of a compressed package, in bytes. Crates here have some ten kilobytes; a fixture is larger.
const MOST_BYTES: u64 = 400 * 1024;

/// Files that each package contains.
const NEEDED: &[&str] = &["Cargo.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Folders of a crate that no package contains.
const LEFT_OUT: &[&str] = &["tests", "benches", "fixtures"];

/// Path of the packages after a dry run, in the folder of build output.
const MADE: &str = "package/tmp-registry";

/// Path of the unpacked packages for their tests, in the folder of build output.
const UNPACKED: &str = "unpacked";

/// Make the packages of all published crates, and check what is in them.
///
/// Runs `cargo publish --workspace --dry-run`, which needs the registry's index. Then each package is
/// looked into: it has the README and the licence texts, no fixtures, no tests that need the repository, and
/// is not too large.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Args {
    /// Have cargo build each package by itself, too
    #[arg(long)]
    verify: bool,
    /// Unpack all packages into `unpacked` of the target folder, and run their own tests there, each with the others in place
    /// of what the registry has
    #[arg(long)]
    test: bool,
}

pub(crate) fn run(args: Args, out: &mut impl Write) -> anyhow::Result<Outcome> {
    let mut publish = cargo();
    // Publishing itself refuses uncommitted changes.
    publish.args([
        "publish",
        "--workspace",
        "--dry-run",
        "--allow-dirty",
        "--quiet",
    ]);
    if !args.verify {
        publish.arg("--no-verify");
    }
    run_to_success(publish.current_dir(root()))?;
    let packages = packages()?;
    let mut problems = false;
    for package in &packages {
        let files = files(package)?;
        let bytes = fs::metadata(&package.file)
            .with_context(|| package.file.display().to_string())?
            .len();
        writeln!(out, "{}: {} files, {bytes} bytes", package.id, files.len())?;
        for problem in problems_of(&package.id, &files, bytes) {
            problems = true;
            writeln!(out, "{}: {problem}", package.id)?;
        }
    }
    if args.test && !problems {
        out.flush()?;
        test(&packages)?;
    }
    Ok(Outcome::problems_if(problems))
}

/// A package that cargo created.
struct Package {
    name: String,
    /// Name and version, which is the name of its folder.
    id: String,
    file: PathBuf,
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let version = published::version()?;
    let packages = published::crates()?.into_iter().map(|it| {
        let id = format!("{}-{version}", it.name);
        let file = target().join(MADE).join(format!("{id}.crate"));
        Package {
            name: it.name,
            id,
            file,
        }
    });
    Ok(packages.collect())
}

/// Returns the paths in a package, relative to its folder.
fn files(package: &Package) -> anyhow::Result<Vec<String>> {
    let list = Command::new("tar")
        .arg("tzf")
        .arg(&package.file)
        .output()
        .context("cannot start tar")?;
    if !list.status.success() {
        bail!("tar cannot read {}", package.file.display());
    }
    let list = String::from_utf8(list.stdout).context("the names of files are UTF-8")?;
    let folder = format!("{}/", package.id);
    let files = list.lines().filter_map(|line| line.strip_prefix(&folder));
    Ok(files.map(str::to_owned).collect())
}

fn problems_of(id: &str, files: &[String], bytes: u64) -> Vec<String> {
    let mut problems = Vec::new();
    for needed in NEEDED {
        if !files.iter().any(|file| file == needed) {
            problems.push(format!("{needed} is missing"));
        }
    }
    for file in files {
        let folder = file.split('/').next().unwrap_or_default();
        if LEFT_OUT.contains(&folder) || file.ends_with("/events.snap") {
            problems.push(format!("{file} is for the repository only"));
        }
    }
    if bytes > MOST_BYTES {
        problems.push(format!(
            "{bytes} bytes are more than {MOST_BYTES}: look at `tar tvf {MADE}/{id}.crate` in the target folder"
        ));
    }
    problems
}

/// Runs the tests of the packages in a workspace that contains only them.
fn test(packages: &[Package]) -> anyhow::Result<()> {
    let folder = target().join(UNPACKED);
    // The earlier build next to the sources is kept.
    for package in packages {
        let old = folder.join(&package.id);
        if old.exists() {
            fs::remove_dir_all(&old).with_context(|| old.display().to_string())?;
        }
    }
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for package in packages {
        run_to_success(
            Command::new("tar")
                .arg("xzf")
                .arg(&package.file)
                .current_dir(&folder),
        )?;
    }
    let manifest = folder.join("Cargo.toml");
    fs::write(&manifest, workspace(packages)).with_context(|| manifest.display().to_string())?;
    // Use the same versions of all dependencies.
    let lock = folder.join("Cargo.lock");
    fs::copy(root().join("Cargo.lock"), &lock).with_context(|| lock.display().to_string())?;
    run_to_success(
        cargo()
            .args(["test", "--workspace", "--no-fail-fast", "--target-dir"])
            .arg(folder.join("target"))
            .current_dir(&folder),
    )
}

/// Returns the manifest of a workspace with these packages, which use one another.
fn workspace(packages: &[Package]) -> String {
    let packages = packages.iter();
    let members = packages.clone().map(|it| format!("    \"{}\",", it.id));
    let patches = packages.map(|it| format!("{} = {{ path = \"{}\" }}", it.name, it.id));
    let members = members.collect::<Vec<_>>().join("\n");
    let patches = patches.collect::<Vec<_>>().join("\n");
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\n{members}\n]\n\n[patch.crates-io]\n{patches}\n"
    )
}

fn run_to_success(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !status.success() {
        bail!("{} failed: {status}", program.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_a_package_are_named() {
        let files = |names: &[&str]| names.iter().map(|&it| it.into()).collect::<Vec<String>>();
        let complete = files(&[NEEDED, &["src/lib.rs", "src/tests/a.rs"]].concat());
        assert!(problems_of("a-0.1.0", &complete, MOST_BYTES).is_empty());
        let others = files(&[&NEEDED[..3], &["tests/it.rs", "src/a/events.snap"]].concat());
        assert_eq!(
            problems_of("a-0.1.0", &others, MOST_BYTES + 1),
            [
                "LICENSE-MIT is missing",
                "tests/it.rs is for the repository only",
                "src/a/events.snap is for the repository only",
                "409601 bytes are more than 409600: look at `tar tvf package/tmp-registry/a-0.1.0.crate` in the target folder",
            ]
        );
    }

    #[test]
    fn packages_use_one_another() {
        let package = |name: &str| Package {
            name: name.into(),
            id: format!("{name}-0.1.0"),
            file: PathBuf::new(),
        };
        let text = workspace(&[package("a"), package("b")]);
        let manifest: toml::Table = text.parse().unwrap();
        assert_eq!(
            manifest["workspace"]["members"].as_array().unwrap().len(),
            2
        );
        let patch = &manifest["patch"]["crates-io"];
        assert_eq!(patch["b"]["path"].as_str(), Some("b-0.1.0"));
    }
}
