//! git commands that use a network. They ask no person for anything, and one that hangs is ended with its children.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::git;
use crate::running::{Seen, follow};

/// The default time for which such a command may print nothing.
pub const SILENCE: Duration = Duration::from_mins(5);
/// Settings for each command: git starts no process of its own in the background.
pub(crate) const FOREGROUND: [&str; 4] =
    ["-c", "gc.autoDetach=false", "-c", "maintenance.auto=false"];

/// The maximum length of the text that such a command prints to stdout, in bytes: the refs that a name can mean.
const LONGEST: usize = 1 << 20;
/// The length of the end of stderr that is kept, in bytes: git prints an error last, after any amount of progress.
const KEPT: usize = 64 << 10;

/// A command that printed nothing for too long.
#[derive(Debug, thiserror::Error)]
#[error(
    "git printed nothing for {} s, so it was ended: a hook, a helper or the other side hangs",
    .0.as_secs_f64()
)]
pub(crate) struct Hung(Duration);

/// Creates a git command in a directory that reaches another machine, and asks no person for anything.
pub(crate) fn command(directory: &Path) -> Command {
    let mut command = git::command(directory);
    command
        // A certificate's password, for example.
        .args(["-c", "core.askPass=", "-c", "credential.interactive=false"])
        // A server that sends nothing ends the command.
        .env("GIT_HTTP_LOW_SPEED_LIMIT", "1000")
        .env("GIT_HTTP_LOW_SPEED_TIME", "60")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "false")
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env("GCM_INTERACTIVE", "never");
    let is_set = ["GIT_SSH_COMMAND", "GIT_SSH"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
        || git::git(directory, ["config", "core.sshCommand"]).is_ok();
    if !is_set {
        command.env(
            "GIT_SSH_COMMAND",
            "ssh -o BatchMode=yes -o ConnectTimeout=60 -o ServerAliveInterval=20",
        );
    }
    command
}

/// Runs such a command, and returns its output without trailing newlines. It MUST print its progress, which is what
/// `silence` is about. Fails with git's message, without users and passwords of URLs; also if it printed nothing for
/// this time, or more to stdout than any answer is long. Then it and its children were ended.
pub(crate) fn run(command: &mut Command, silence: Duration) -> anyhow::Result<String> {
    let output = output(command, silence)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let message = without_credentials(&without_progress(&message));
        return Err(git::failed(&output, &message));
    }
    let printed = String::from_utf8(output.stdout).context("git printed text that is not UTF-8")?;
    Ok(printed.trim_end_matches('\n').to_owned())
}

fn output(command: &mut Command, silence: Duration) -> anyhow::Result<Output> {
    // In this process's group, so that Ctrl-C ends it too: it must not write into a mirror that is no longer locked.
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(git::not_started)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut heard = Instant::now();
    let status = follow(&mut child, |seen, _| {
        match seen {
            Seen::Running if heard.elapsed() >= silence => return Err(Hung(silence).into()),
            Seen::Running => return Ok(()),
            Seen::Stdout(piece) => {
                stdout.extend_from_slice(&piece);
                if stdout.len() > LONGEST {
                    bail!("git printed more than {LONGEST} bytes, so it was ended");
                }
            }
            Seen::Stderr(piece) => {
                stderr.extend_from_slice(&piece);
                // Seldom, because the rest is moved.
                if stderr.len() > 2 * KEPT {
                    stderr.drain(..stderr.len() - KEPT);
                }
            }
        }
        heard = Instant::now();
        Ok(())
    })?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Removes progress from the output of git.
fn without_progress(printed: &str) -> String {
    let lines = printed.split(['\n', '\r']).map(str::trim_end);
    let is_progress = |line: &str| {
        let line = line.strip_prefix("remote: ").unwrap_or(line);
        let (what, rest) = line.split_once(':').unwrap_or(("", ""));
        // As in `Receiving objects:  12% (3/25)` and `Enumerating objects: 5, done.`.
        let starts = ["objects", "deltas", "files", "connectivity"];
        starts.iter().any(|it| what.ends_with(it))
            && rest
                .trim_start()
                .starts_with(|it: char| it.is_ascii_digit())
    };
    let lines: Vec<_> = lines
        .filter(|line| !line.is_empty() && !is_progress(line))
        .collect();
    lines.join("\n")
}

/// Removes users and passwords from the URLs in a message: git may have replaced a part of a URL by its settings.
fn without_credentials(message: &str) -> String {
    let mut shown = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after
            .find(|it: char| it == '/' || it.is_whitespace() || it == '\'')
            .unwrap_or(after.len());
        let host = after[..end].rfind('@').map_or(0, |at| at + 1);
        rest = &after[host..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use teamster_process::ProcessIdentity;

    use super::*;

    #[test]
    fn a_message_has_no_credentials() {
        let shown = without_credentials(
            "fatal: unable to access 'https://user:s3cret@a.example/b': no, http://x@y z",
        );
        assert_eq!(
            shown,
            "fatal: unable to access 'https://a.example/b': no, http://y z"
        );
    }

    // Made by hand: the form is that of git 2.47.
    #[test]
    fn a_message_has_no_progress() {
        let printed = "Enumerating objects: 5, done.\nCounting objects:  50% (1/2)\rCounting objects: 100% (2/2), done.\n\
            remote: Resolving deltas:   0% (0/1)\nremote: no access: 3 strikes\nTo b\n ! [rejected] c -> c (fetch first)\n";
        assert_eq!(
            without_progress(printed),
            "remote: no access: 3 strikes\nTo b\n ! [rejected] c -> c (fetch first)"
        );
    }

    /// Runs a shell script as such a command.
    fn sh(script: &str, silence: Duration) -> anyhow::Result<String> {
        run(Command::new("sh").args(["-c", script]), silence)
    }

    #[test]
    fn printing_command_continues_and_a_hanging_one_is_ended() {
        // In all longer than the silence, each step a tenth of it.
        let busy = "for i in 1 2 3 4 5 6 7 8 9 10 11; do sleep 0.2; echo $i >&2; done; echo done";
        assert_eq!(sh(busy, Duration::from_secs(2)).unwrap(), "done");

        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        // In a session of its own, deaf to SIGTERM. It prints only once that runs.
        let script = format!(
            "trap '' TERM; setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 1000' &
            while ! [ -e {0} ]; do sleep 0.02; echo >&2; done; wait",
            note.display()
        );
        let error = sh(&script, Duration::from_millis(400)).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("git printed nothing for 0.4 s"),
            "{error}"
        );
        let pid: u32 = std::fs::read_to_string(note)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert!(!ProcessIdentity::of(pid).is_some_and(ProcessIdentity::is_running));
    }

    #[test]
    fn background_process_does_not_delay_the_command() {
        for left in [
            "sleep 20",
            "i=0; while [ $i -lt 2000 ]; do echo x >&2; sleep 0.01; i=$((i + 1)); done",
        ] {
            let begun = Instant::now();
            let script = format!("echo done; ({left}) &");
            assert_eq!(sh(&script, SILENCE).unwrap(), "done");
            assert!(begun.elapsed() < Duration::from_secs(15), "{left}");
        }
    }

    #[test]
    fn of_a_flood_the_end_is_kept_and_an_endless_answer_is_an_error() {
        let error = sh(
            "head -c 5000000 /dev/zero | tr '\\0' x >&2; echo; echo 'last words' >&2; exit 1",
            SILENCE,
        );
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("last words"), "{}", error.len());
        assert!(error.len() < 3 * KEPT, "{}", error.len());
        let error = sh("exec yes", SILENCE).unwrap_err().to_string();
        assert_eq!(
            error,
            "git printed more than 1048576 bytes, so it was ended"
        );
    }

    #[test]
    fn a_command_is_ended_by_the_signals_of_the_terminal_too() {
        let group = |pid: &str| {
            let ps = Command::new("ps").args(["-o", "pgid=", "-p", pid]).output();
            String::from_utf8(ps.unwrap().stdout)
                .unwrap()
                .trim()
                .to_owned()
        };
        let ours = group(&std::process::id().to_string());
        assert_eq!(sh("ps -o pgid= -p $$", SILENCE).unwrap().trim(), ours);
    }
}
