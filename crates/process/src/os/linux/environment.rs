//! The environment that a process was started with, in `/proc`.

use std::fs::{self, File};
use std::io::{self, Read};
use std::thread;
use std::time::Duration;

use memchr::memmem;

use super::{fields, number};
use crate::os::RUN_ID_VAR;

/// Number of looks at a process that shows no environment, and the pause between them. Such a moment is longer than the
/// pause only if the processors are busy, or the new program is on a disk that does not respond.
const LOOKS: u32 = 200;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Returns the runs that a process belongs to, according to its initial environment. The outermost run is first.
///
/// While a process changes its program (`exec`), it shows no environment. That is waited for, or it would be missed.
pub(super) fn run_ids(pid: u32) -> Vec<String> {
    for _ in 0..LOOKS {
        match environ(pid) {
            Ok(environ) if environ.is_empty() && !has_no_environment(pid) => {
                thread::sleep(BETWEEN_LOOKS);
            }
            Ok(environ) => return run_ids_of(&environ),
            Err(_) => return Vec::new(),
        }
    }
    Vec::new()
}

/// Returns whether a process was started without an environment, or is a part of the kernel.
fn has_no_environment(pid: u32) -> bool {
    let Ok(stat) = fs::read(format!("/proc/{pid}/stat")) else {
        return true;
    };
    let field = |at: usize| number::<u64>(fields(&stat)?.nth(at - 3)?);
    let memory = field(23);
    // Of the environment. They are 0 until the new program has one.
    let (start, end) = (field(50), field(51));
    memory == Some(0) || (start == end && end != Some(0))
}

/// Returns the initial environment of a process.
///
/// It is read for every process of the machine, so mostly by a single call: `fs::read` makes six. A read that does not
/// fill its buffer has reached the end.
fn environ(pid: u32) -> io::Result<Vec<u8>> {
    let mut file = File::open(format!("/proc/{pid}/environ"))?;
    let (mut environ, mut len) = (vec![0; 8 << 10], 0);
    loop {
        len += file.read(&mut environ[len..])?;
        if len < environ.len() {
            environ.truncate(len);
            return Ok(environ);
        }
        environ.resize(2 * len, 0);
    }
}

fn run_ids_of(environ: &[u8]) -> Vec<String> {
    let mark = format!("{RUN_ID_VAR}=");
    // Most processes have no such variable, so one search is enough.
    let value = memmem::find_iter(environ, mark.as_bytes())
        .find(|at| *at == 0 || environ[at - 1] == 0)
        .and_then(|at| environ[at + mark.len()..].split(|b| *b == 0).next());
    let value = value.and_then(|value| std::str::from_utf8(value).ok());
    value
        .into_iter()
        .flat_map(|ids| ids.split(','))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Starts a shell that waits for the end of its input.
    fn waiting(shell: &mut Command) -> Child {
        shell.args(["-c", "echo; read end"]);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut out = io::BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        child
    }

    #[test]
    fn runs_of_a_process_that_changes_its_program_are_found() {
        const AGAIN: &str = r#"exec /bin/sh -c "$0" "$0""#;
        let mut command = Command::new("/bin/sh");
        let command = command.args(["-c", AGAIN, AGAIN]).env(RUN_ID_VAR, "1-2-3");
        let mut child = command.spawn().unwrap();
        let found = (0..2000).filter(|_| run_ids(child.id()) == ["1-2-3"]);
        let found = found.count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, 2000);
    }

    #[test]
    fn process_without_an_environment_is_not_waited_for() {
        let mut child = waiting(Command::new("sh").env_clear());
        assert!(has_no_environment(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(has_no_environment(child.id()), "it has ended");
        assert!(!has_no_environment(std::process::id()));
    }

    #[test]
    fn an_environment_is_read_completely() {
        let mut child = waiting(Command::new("sh").env("LONG", "x".repeat(100_000)));
        let read = environ(child.id()).unwrap();
        assert!(read.len() > 100_000);
        assert_eq!(
            read,
            fs::read(format!("/proc/{}/environ", child.id())).unwrap()
        );
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(environ(child.id()).is_err());
    }

    #[test]
    fn the_runs_of_a_process_are_in_its_environment() {
        let ids = |environ: &str| run_ids_of(environ.as_bytes());
        assert_eq!(ids("A=1\0TEAMSTER_RUN_ID=1-2-3\0B=2\0"), ["1-2-3"]);
        assert_eq!(ids("TEAMSTER_RUN_ID=1-2-3,4-5-6"), ["1-2-3", "4-5-6"]);
        assert!(ids("NO_TEAMSTER_RUN_ID=1-2-3\0").is_empty());
        assert!(ids("A=TEAMSTER_RUN_ID=1\0").is_empty());
    }
}
