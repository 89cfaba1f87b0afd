//! Start of a runner: a separate process that accepts a run or a session and detaches.
//!
//! The caller writes a [`Launch`] to the runner's stdin, because other users can read the arguments of a process. The
//! runner answers on stdout, with one line of JSON, when the run is accepted or refused.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout};
use teamster_api::{Launch, Launched};
use teamster_core::AgentError;

use crate::AcceptedRun;

/// File with the stderr of the runner.
const STDERR: &str = "runner.log";

/// Reads the input, in the runner.
///
/// # Errors
///
/// Fails if the input cannot be read or parsed, or is of a newer version.
pub fn read(from: impl Read) -> Result<Launch, AgentError> {
    let text = io::read_to_string(from).map_err(|error| {
        AgentError::invalid_params(format!("cannot read the launch request: {error}"))
    })?;
    Launch::parse(&text)
}

/// Writes the input of a runner, and waits for its answer; `None` if its output ends without one.
///
/// Lines before the answer are of something else, such as a library that prints. Blocks, usually for some milliseconds.
///
/// # Errors
///
/// Fails if the output cannot be read.
pub fn ask(
    launch: &Launch,
    mut stdin: impl Write,
    stdout: impl Read,
) -> io::Result<Option<Launched>> {
    // A runner that has ended has its reason in its answer or exit code.
    let _ = stdin.write_all(&serde_json::to_vec(launch)?);
    drop(stdin);
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line)? > 0 {
        if let Ok(answer) = serde_json::from_slice(&line) {
            return Ok(Some(answer));
        }
        line.clear();
    }
    Ok(None)
}

/// Closes all inherited descriptors except stdin, stdout and stderr, such as the lock of a calling script,
/// which would stay open for the length of the run. MUST be called before anything else opens a file.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let open = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<RawFd> = open.filter(|fd| *fd > 2).collect();
    for fd in open {
        // The descriptor of the listing is closed already.
        let _ = close(fd);
    }
}

/// Writes the answer to the starting process.
pub fn answer(answer: &Launched) {
    if let Ok(answer) = serde_json::to_string(answer) {
        // What something else has printed may have no end of line. A run that is accepted continues even if no process
        // reads this.
        let _ = io::stdout().write_all(format!("\n{answer}\n").as_bytes());
    }
}

/// Reports to the starting process that the run is accepted, and detaches from it. Further stderr goes to `runner.log` in the
/// run's folder.
pub fn detach(run: &AcceptedRun, accepted: &Launched) -> io::Result<()> {
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.folder.path().join(STDERR))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    answer(accepted);
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&stderr)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use teamster_api::RunSpec;

    use super::*;

    /// Asks a shell script that is the runner. Returns the answer, and the script's process.
    fn asked(script: &str) -> (Option<Launched>, std::process::Child) {
        let mut runner = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (runner.stdin.take().unwrap(), runner.stdout.take().unwrap());
        let launch = Launch::new("r", RunSpec::new("claude", "hi"));
        (ask(&launch, stdin, stdout).unwrap(), runner)
    }

    #[test]
    fn a_runner_without_an_answer_has_none() {
        let (answer, mut runner) = asked("cat >/dev/null; echo banner; exit 7");
        assert_eq!(answer, None);
        assert_eq!(runner.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn runner_answer_is_found_in_other_output_before_the_run_ends() {
        let folder = tempfile::tempdir().unwrap();
        let ended = folder.path().join("ended");
        // The run lasts until the test has the answer.
        let script = format!(
            r#"cat >/dev/null; echo banner; printf 'no end of line'
            printf '\n{{"accepted":{{"warnings":["w"],"important":["i"]}}}}\n'; echo more
            i=0; while [ ! -e '{0}/go' ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
            touch '{0}/ended'"#,
            folder.path().display()
        );
        let (answer, mut runner) = asked(&script);
        assert!(!ended.exists());
        fs::write(folder.path().join("go"), "").unwrap();
        assert_eq!(
            answer,
            Some(Launched::accepted(
                vec!["w".to_owned()],
                vec!["i".to_owned()]
            ))
        );
        runner.wait().unwrap();
    }
}
