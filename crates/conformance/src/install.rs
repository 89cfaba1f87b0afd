//! Installation of the CLIs from npm, by exact versions and a lock file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;
use teamster_mock_model::Cli;

use crate::say;

/// The CLIs of one installation.
#[derive(Debug, Clone)]
pub(crate) struct Installed {
    /// The folder with their programs.
    pub(crate) programs: PathBuf,
    pub(crate) versions: BTreeMap<Cli, String>,
}

impl Installed {
    pub(crate) fn version(&self, cli: Cli) -> anyhow::Result<&str> {
        let version = self.versions.get(&cli).map(String::as_str);
        version.with_context(|| format!("{cli} is not installed in {}", self.programs.display()))
    }
}

/// Returns the installation with these programs.
pub(crate) fn at(programs: &Path) -> anyhow::Result<Installed> {
    let folder = programs.parent().and_then(Path::parent);
    installed(folder.with_context(|| format!("{} is not an installation", programs.display()))?)
}

/// Error if the registry cannot be reached or does not have the package.
#[derive(Debug)]
pub(crate) struct Unreachable(pub(crate) String);

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the CLIs cannot be installed: {}", self.0)
    }
}

impl std::error::Error for Unreachable {}

#[derive(Deserialize)]
struct Manifest {
    dependencies: BTreeMap<String, String>,
}

pub(crate) fn package(cli: Cli) -> &'static str {
    match cli {
        Cli::Claude => "@anthropic-ai/claude-code",
        Cli::Codex => "@openai/codex",
        Cli::Copilot => "@github/copilot",
        Cli::Gemini => "@google/gemini-cli",
        Cli::OpenCode => "opencode-ai",
        Cli::Pi => "@earendil-works/pi-coding-agent",
        _ => "",
    }
}

/// Returns whether a CLI is installed together with others. Other CLIs are installed separately.
pub(crate) fn is_pinned(cli: Cli) -> bool {
    !package(cli).is_empty()
}

/// Returns the CLIs that are installed together.
pub(crate) fn clis() -> Vec<Cli> {
    let all = Cli::ALL.into_iter();
    all.filter(|cli| is_pinned(*cli)).collect()
}

/// Returns the CLIs of the matrix: those that are installed together, and the one without a program. Others
/// are rows of [`acp`](crate::acp).
pub(crate) fn matrix() -> Vec<Cli> {
    let is_in = |cli: &Cli| *cli == Cli::Embedded || is_pinned(*cli);
    Cli::ALL.into_iter().filter(is_in).collect()
}

/// Returns whether a release is older than another one. Returns `false` if either is not a release.
pub(crate) fn is_older(version: &str, than: &str) -> bool {
    match (numbers(version), numbers(than)) {
        (Some(version), Some(than)) => version < than,
        _ => false,
    }
}

/// Parses the numbers of a release such as `2.1.330`. Returns `None` for a pre-release or another text.
pub(crate) fn numbers(version: &str) -> Option<[u64; 3]> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let release = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(release)
}

/// Returns the versions in `package.json`.
pub(crate) fn pinned() -> anyhow::Result<BTreeMap<Cli, String>> {
    let path = crate::here().join("package.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Manifest =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    clis()
        .into_iter()
        .map(|cli| {
            let version = manifest.dependencies.get(package(cli)).with_context(|| {
                format!(
                    "{}: no `{}` among its dependencies",
                    path.display(),
                    package(cli)
                )
            })?;
            Ok((cli, version.clone()))
        })
        .collect()
}

/// Installs the pinned versions unless they are installed.
pub(crate) fn pinned_versions() -> anyhow::Result<Installed> {
    let folder = crate::target().join("pinned");
    let wanted = pinned()?;
    if versions(&folder).is_ok_and(|versions| versions == wanted) {
        return installed(&folder);
    }
    std::fs::create_dir_all(&folder)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(crate::here().join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    say(format_args!(
        "installing the pinned CLIs with npm (about 1.3 GB, a minute or two)"
    ));
    // Not `npm ci`: it requires the optional packages of every system in the lock file, and not every
    // registry has all of them. The lock file is respected anyway.
    npm(&folder, &["install", "--no-save"])?;
    let found = versions(&folder)?;
    if found != wanted {
        bail!(Unreachable(format!(
            "wanted {wanted:?}, npm installed {found:?}"
        )));
    }
    installed(&folder)
}

/// Returns the versions of a package that npm knows.
pub(crate) fn published(package: &str) -> anyhow::Result<Vec<String>> {
    let folder = crate::target();
    std::fs::create_dir_all(&folder)?;
    let list = npm_once(&folder, &["view", package, "versions", "--json"])?;
    serde_json::from_slice(&list).with_context(|| format!("npm's list of {package}"))
}

/// Returns the versions of a Python package that pip knows.
pub(crate) fn published_for_python(python: &str, package: &str) -> anyhow::Result<Vec<String>> {
    let mut pip = python_command(python);
    pip.args(["-m", "pip", "index", "versions", package]);
    let printed = String::from_utf8_lossy(&python_once(pip)?).into_owned();
    pip_versions(&printed).with_context(|| format!("pip's list of {package}"))
}

/// Returns the versions in the output of `pip index versions`.
fn pip_versions(printed: &str) -> Option<Vec<String>> {
    let mut lines = printed.lines();
    let list = lines.find_map(|line| line.strip_prefix("Available versions: "))?;
    Some(list.split(", ").map(str::to_owned).collect())
}

/// Installs one version of a CLI in a separate folder, unless it is installed.
pub(crate) fn version(cli: Cli, version: &str) -> anyhow::Result<Installed> {
    let folder = crate::target()
        .join("versions")
        .join(cli.id())
        .join(version);
    let is_there = |folder: &Path| {
        versions(folder).is_ok_and(|found| found.get(&cli).is_some_and(|it| it == version))
            && lacking_node(cli, folder).is_none()
    };
    for there in [&folder, &crate::target().join("pinned")] {
        if is_there(there) {
            return installed(there);
        }
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let wanted = format!("{}@{version}", package(cli));
    say(format_args!("installing {wanted} with npm"));
    npm(&folder, &["install", "--no-save", &wanted])?;
    if let Some(node) = lacking_node(cli, &folder) {
        npm(&folder, &["install", "--no-save", &wanted, node])?;
    }
    if !is_there(&folder) {
        bail!(Unreachable(format!(
            "npm installed something else than {wanted}"
        )));
    }
    installed(&folder)
}

/// Returns the package of the Node.js that a CLI needs and that is not installed next to it. A machine may have an
/// older one.
fn lacking_node(cli: Cli, folder: &Path) -> Option<&'static str> {
    let modules = folder.join("node_modules");
    if modules.join(".bin/node").exists() {
        return None;
    }
    match cli {
        // 22.19 is its oldest one by its manifest.
        Cli::Pi => Some("node@22"),
        Cli::Copilot => {
            let packages = modules.join("@github").read_dir().into_iter().flatten();
            let is_native = packages.flatten().any(|it| it.file_name() != "copilot");
            // Measured with 1.0.42.
            (!is_native).then_some("node@24")
        }
        _ => None,
    }
}

/// Installs packages in this folder, unless they are installed. Returns the folder of their programs.
pub(crate) fn packages(folder: &Path, packages: &[String]) -> anyhow::Result<PathBuf> {
    unless_installed(folder, packages, "npm", || {
        std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
        let packages = packages.iter().map(String::as_str);
        let args: Vec<_> = ["install", "--no-save"]
            .into_iter()
            .chain(packages)
            .collect();
        npm(folder, &args)
    })?;
    Ok(folder.join("node_modules/.bin"))
}

/// Installs Python packages in an environment of their own in this folder, unless they are installed. Returns the folder
/// of their programs.
pub(crate) fn python_packages(
    folder: &Path,
    python: &str,
    packages: &[String],
) -> anyhow::Result<PathBuf> {
    let programs = folder.join("bin");
    unless_installed(
        folder,
        packages,
        &format!("pip, for Python {python}"),
        || {
            let mut venv = python_command(python);
            venv.args(["-m", "venv"]).arg(folder);
            python_once(venv)?;
            let mut pip = Command::new(programs.join("pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"])
                .args(packages);
            python_once(pip).map(drop)
        },
    )?;
    Ok(programs)
}

/// Installs packages in a folder that does not have a mark with their names, which it gets then.
fn unless_installed(
    folder: &Path,
    packages: &[String],
    with: &str,
    install: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let wanted = packages.join(" ");
    let mark = folder.join("packages");
    if std::fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    say(format_args!("installing {wanted} with {with}"));
    install()?;
    Ok(std::fs::write(&mark, wanted)?)
}

fn python_command(python: &str) -> Command {
    let mut command = Command::new(format!("python{python}"));
    // Where versions are managed by pyenv, its name is that of all of them.
    command.env("PYENV_VERSION", python);
    command
}

/// Runs a Python program. Returns its output.
fn python_once(mut command: Command) -> anyhow::Result<Vec<u8>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| Unreachable(format!("{program} cannot be started: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().last().unwrap_or_default().to_owned();
        bail!(Unreachable(format!("{program} failed: {last}")));
    }
    Ok(output.stdout)
}

fn npm(folder: &Path, args: &[&str]) -> anyhow::Result<()> {
    // Checks that the registry responds: npm itself retries each package several times before it fails.
    npm_once(
        folder,
        &["view", package(Cli::Claude), "version", "--fetch-retries=0"],
    )?;
    npm_once(folder, args)?;
    Ok(())
}

/// Runs npm. Returns its output.
fn npm_once(folder: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("npm")
        .args(args)
        .args(["--no-audit", "--no-fund", "--fetch-timeout=60000"])
        .args([
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=5000",
        ])
        .current_dir(folder)
        .output()
        .map_err(|error| Unreachable(format!("npm cannot be started: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(Unreachable(format!("npm failed: {}", reasons(&stderr))));
    }
    Ok(output.stdout)
}

/// Returns the reasons in npm's errors: each once, and none of its words about this machine.
fn reasons(stderr: &str) -> String {
    const ABOUT: [&str; 6] = [
        "code 1",
        "path ",
        "command ",
        "notarget In most cases",
        "A complete log",
        "Log files",
    ];
    let mut reasons: Vec<&str> = Vec::new();
    for line in stderr.lines() {
        let Some(mut reason) = line.strip_prefix("npm error ") else {
            continue;
        };
        // npm in a script of a package.
        while let Some(inner) = reason.strip_prefix("npm error ") {
            reason = inner;
        }
        let is_about = ABOUT.iter().any(|start| reason.starts_with(start));
        if !is_about && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.truncate(5);
    reasons.join("; ")
}

fn installed(folder: &Path) -> anyhow::Result<Installed> {
    let mut versions = versions(folder)?;
    versions.insert(Cli::Embedded, env!("CARGO_PKG_VERSION").to_owned());
    Ok(Installed {
        programs: folder.join("node_modules/.bin"),
        versions,
    })
}

fn versions(folder: &Path) -> anyhow::Result<BTreeMap<Cli, String>> {
    let mut versions = BTreeMap::new();
    for cli in clis() {
        let manifest = folder
            .join("node_modules")
            .join(package(cli))
            .join("package.json");
        let program = folder.join("node_modules/.bin").join(cli.id());
        if !manifest.exists() || !program.exists() {
            continue;
        }
        let manifest: Value = serde_json::from_str(&std::fs::read_to_string(&manifest)?)
            .with_context(|| manifest.display().to_string())?;
        let version = manifest["version"].as_str().unwrap_or_default();
        versions.insert(cli, version.to_owned());
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_pip_has_the_versions() {
        // pip 23, shortened.
        let printed =
            "mistral-vibe (3.0.3)\nAvailable versions: 3.0.3, 3.0.2, 2.26.1\n  INSTALLED: 3.0.2\n";
        let versions = pip_versions(printed).unwrap();
        assert_eq!(versions, ["3.0.3", "3.0.2", "2.26.1"]);
        assert_eq!(pip_versions("nothing"), None);
    }

    #[test]
    fn the_reason_of_npm_names_the_package_and_no_path() {
        // npm 11 with a package whose script installs another one, shortened.
        let stderr = "\
npm warn deprecated glob@10.5.0: Old versions are not supported
npm error code 1
npm error path /home/me/versions/kilo/7.8.1/node_modules/@kilocode/cli
npm error command failed
npm error command sh -c node ./postinstall.mjs
npm error npm error code ETARGET
npm error npm error notarget No matching version found for @kilocode/cli-linux-x64@7.8.1.
npm error npm error notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.
npm error npm error code ETARGET
npm error A complete log of this run can be found in: /home/me/.npm/_logs/debug-0.log
";
        let expected =
            "code ETARGET; notarget No matching version found for @kilocode/cli-linux-x64@7.8.1.";
        assert_eq!(reasons(stderr), expected);
    }
}
