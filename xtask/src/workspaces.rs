//! `cargo xtask workspaces`: what a run's workspace costs, in time and bytes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{Outcome, cargo, root, target};

/// Number of runs whose median is printed, where they are short.
const ROUNDS: usize = 9;
const MIB: usize = 1 << 20;

/// Measure what a workspace of its own costs a run: a worktree, a repository that is fetched, one that is submitted.
///
/// It makes a large repository in the target folder, and removes it at the end. The agent is `true`. Each line is printed
/// as soon as it is measured, with the load of the machine at the end. Best on a quiet machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is measured. Default: all.
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    /// Measure this program instead of a release build.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// Number of files of the repository.
    #[arg(long, default_value_t = 50_000)]
    files: u32,
    /// Size of its history in MiB, which cannot be compressed.
    #[arg(long, default_value_t = 1024)]
    history: u32,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Short runs in a small repository.
    Small,
    /// A worktree of the large repository.
    Worktree,
    /// The large repository by its URL.
    Url,
    /// The large repository submitted to a server.
    Submitted,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome> {
    let program = match &args.program {
        Some(program) => root().join(program),
        None => built()?,
    };
    let folder = target().join("workspaces");
    remove(&folder)?;
    fs::create_dir_all(&folder)?;
    let measured = Place { program, folder };
    let outcome = measured.all(args, out);
    remove(&measured.folder)?;
    outcome.map(|()| Outcome::Fine)
}

fn built() -> Result<PathBuf> {
    let mut build = cargo();
    build.current_dir(root());
    build.args(["build", "--release", "-p", "teamster-cli"]);
    if !build.status().context("failed to run cargo")?.success() {
        bail!("the program could not be built");
    }
    Ok(target().join("release/teamster"))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Prints the name of a figure and the figure.
type Row<'a> = &'a mut dyn FnMut(&str, &str) -> Result<()>;

struct Place {
    program: PathBuf,
    folder: PathBuf,
}

/// A server of the program, which ends with this.
struct Server {
    child: Child,
    url: String,
    token: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Place {
    fn all(&self, args: &Args, out: &mut impl Write) -> Result<()> {
        let is_wanted = |part| args.parts.is_empty() || args.parts.contains(&part);
        let mut row = |name: &str, value: &str| -> Result<()> {
            writeln!(out, "{name}: {value}")?;
            Ok(out.flush()?)
        };
        let small = self.repository("small", 100, 0)?;
        if is_wanted(Part::Small) {
            let of = format!("a small repository, median of {ROUNDS} runs");
            row(&of, "")?;
            let plain = self.median(&small, &[])?;
            row("  plain", &format!("{plain:.0?}"))?;
            for option in ["--worktree", "--empty-dir"] {
                let time = self.median(&small, &[option])?;
                let more = millis(time) - millis(plain);
                row(&format!("  {option}"), &format!("{time:.0?}, {more:+} ms"))?;
            }
        }
        let of_large = [Part::Worktree, Part::Url, Part::Submitted];
        if of_large.into_iter().any(is_wanted) {
            let large = self.repository("large", args.files, args.history)?;
            let of = format!("{} files, {} MiB of history", args.files, args.history);
            row(
                &of,
                &format!("{} in .git", mib(bytes(&large.join(".git"))?)),
            )?;
            let (time, _) = self.timed(&large, &[])?;
            row("  plain", &format!("{time:.1?}"))?;
            if is_wanted(Part::Worktree) {
                self.worktrees(&large, &mut row)?;
            }
            if is_wanted(Part::Url) {
                self.by_url(&small, &large, &mut row)?;
            }
            if is_wanted(Part::Submitted) {
                self.submitted(&large, &mut row)?;
            }
        }
        // Linux only.
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load: Vec<_> = load.split(' ').take(3).collect();
        row("load of the last 1, 5 and 15 minutes", &load.join(" "))
    }

    fn worktrees(&self, large: &Path, row: Row<'_>) -> Result<()> {
        let begun = Instant::now();
        let checkout = self.folder.join("checkout");
        let add = ["worktree", "add", "--quiet", "--detach"];
        git(large, &[&add[..], &[text(&checkout)?]].concat())?;
        row(
            "  `git worktree add` by itself",
            &format!("{:.1?}", begun.elapsed()),
        )?;
        for name in ["first", "second"] {
            let (time, _) = self.timed(large, &["--worktree"])?;
            row(&format!("  --worktree, {name}"), &format!("{time:.1?}"))?;
        }
        Ok(())
    }

    fn by_url(&self, from: &Path, large: &Path, row: Row<'_>) -> Result<()> {
        let url = format!("file://{}", text(large)?);
        let mirrors = self.folder.join("state/teamster/repositories");
        for name in ["first", "second"] {
            let (time, _) = self.timed(from, &["--repo", &url])?;
            let kept = mib(bytes(&mirrors)?);
            row(
                &format!("  --repo URL, {name}"),
                &format!("{time:.1?}, {kept} in the mirror"),
            )?;
        }
        Ok(())
    }

    fn submitted(&self, large: &Path, row: Row<'_>) -> Result<()> {
        let server = self.serve()?;
        for name in ["first", "second", "with one changed file"] {
            if name == "with one changed file" {
                fs::write(large.join("d0/f0"), "changed")?;
            }
            let mut command = self.command(large, &["--repo", "."]);
            command.env("TEAMSTER_REMOTE", &server.url);
            command.env("TEAMSTER_REMOTE_TOKEN", &server.token);
            let (time, said) = timed(&mut command)?;
            let mut lines = said.lines();
            let sent = lines.find_map(|it| it.split_once("repository submitted: "));
            let sent = sent.map_or("?", |(_, sent)| sent);
            row(
                &format!("  --remote --repo ., {name}"),
                &format!("{time:.1?}, {sent}"),
            )?;
        }
        Ok(())
    }

    /// Makes a repository with files, and a history of a file that changes as a whole.
    fn repository(&self, name: &str, files: u32, history: u32) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::create_dir(&path)?;
        git(&path, &["init", "--quiet", "--initial-branch=main"])?;
        let mut import = command(&path)
            .args(["-c", "core.compression=0", "-c", "fastimport.unpackLimit=0"])
            .args(["fast-import", "--quiet", "--depth=0"])
            .stdin(Stdio::piped())
            .spawn()?;
        let mut to = std::io::BufWriter::new(import.stdin.take().context("no pipe")?);
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut blob = vec![0; MIB];
        for number in 0..=history {
            let is_last = number == history;
            write!(
                to,
                "commit refs/heads/main\ncommitter A <a@b> {} +0000\ndata 1\nx\n",
                1_700_000_000 + number
            )?;
            if is_last {
                for file in 0..files {
                    let content = file.to_string();
                    let folder = file % 500;
                    write!(
                        to,
                        "M 100644 inline d{folder}/f{file}\ndata {}\n{content}\n",
                        content.len()
                    )?;
                }
            } else {
                for word in blob.chunks_exact_mut(8) {
                    // Xorshift: what no compression makes smaller.
                    seed ^= seed << 13;
                    seed ^= seed >> 7;
                    seed ^= seed << 17;
                    word.copy_from_slice(&seed.to_le_bytes());
                }
                write!(to, "M 100644 inline data\ndata {MIB}\n")?;
                to.write_all(&blob)?;
                writeln!(to)?;
            }
        }
        drop(to);
        if !import.wait()?.success() {
            bail!("git fast-import has failed");
        }
        git(&path, &["reset", "--quiet", "--hard"])?;
        Ok(path)
    }

    fn serve(&self) -> Result<Server> {
        let state = self.folder.join("there");
        let mut command = self.environment();
        command.args(["serve", "--listen", "127.0.0.1:0", "--allow-commands"]);
        command.env("XDG_STATE_HOME", &state).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut url = String::new();
        let stdout = child.stdout.take().context("no pipe")?;
        BufReader::new(stdout).read_line(&mut url)?;
        let token = fs::read_to_string(state.join("teamster/server/token"))?;
        Ok(Server {
            child,
            url: url.trim().to_owned(),
            token: token.trim().to_owned(),
        })
    }

    fn environment(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.folder)
            .env("XDG_STATE_HOME", self.folder.join("state"))
            .env("TEAMSTER_STORE", "off")
            .stdin(Stdio::null());
        command
    }

    fn command(&self, directory: &Path, more: &[&str]) -> Command {
        let mut command = self.environment();
        command.args(["run", "cmd:true", "x"]).args(more);
        command.current_dir(directory);
        command
    }

    fn timed(&self, directory: &Path, more: &[&str]) -> Result<(Duration, String)> {
        timed(&mut self.command(directory, more))
    }

    fn median(&self, directory: &Path, more: &[&str]) -> Result<Duration> {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(self.timed(directory, more)?.0);
        }
        times.sort_unstable();
        Ok(times.get(ROUNDS / 2).copied().unwrap_or_default())
    }
}

/// Returns the time of a command and its stderr.
fn timed(command: &mut Command) -> Result<(Duration, String)> {
    let begun = Instant::now();
    let output = command.output()?;
    let time = begun.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{command:?}: {said}");
    }
    Ok((time, said))
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn git(directory: &Path, args: &[&str]) -> Result<()> {
    timed(command(directory).args(args)).map(drop)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("the target folder is not UTF-8")
}

/// Returns the size of the files in a folder.
fn bytes(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let about = entry.metadata()?;
        sum += if about.is_dir() {
            bytes(&entry.path())?
        } else {
            about.len()
        };
    }
    Ok(sum)
}

fn millis(time: Duration) -> i128 {
    i128::try_from(time.as_millis()).unwrap_or_default()
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
