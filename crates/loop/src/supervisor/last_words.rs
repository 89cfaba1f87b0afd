//! What a loop says of why it cannot run.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::agent::{Exit, UNUSABLE};
use super::process::log_path;

/// So much of the end of a log is searched, in bytes. A loop that cannot run writes little.
const MOST: u64 = 64 << 10;
/// So much of what it says is told, in bytes.
const LONGEST: usize = 300;

/// What is written to the log of a loop that is started: what follows is of this one.
pub(crate) fn beginning(pid: u32) -> String {
    format!("started, pid {pid}")
}

/// How the loop in this directory ended; of one that cannot run with what it said itself.
pub(crate) fn of(exit: Exit, working_dir: &Path, pid: u32) -> String {
    let said = match exit {
        Exit::Code(UNUSABLE) => last_error(&log_path(working_dir), pid),
        _ => None,
    };
    match said {
        Some(error) => format!("ended with code {UNUSABLE}: {error}"),
        None => exit.to_string(),
    }
}

fn last_error(log: &Path, pid: u32) -> Option<String> {
    let length = fs::metadata(log).ok().filter(fs::Metadata::is_file)?.len();
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(length.saturating_sub(MOST)))
        .ok()?;
    let mut text = Vec::new();
    file.take(MOST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, since) = text.rsplit_once(&format!("{}\n", beginning(pid)))?;
    // As it is on stderr, without the time.
    let error = since
        .lines()
        .rev()
        .find_map(|it| it.strip_prefix("error: "))?;
    Some(teamster_core::excerpt(error, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_said_since_its_start_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let log = log_path(dir.path());
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        let told = |exit| of(exit, dir.path(), 7);
        let unknown = Exit::Code(UNUSABLE).to_string();
        assert_eq!(told(Exit::Code(UNUSABLE)), unknown);
        fs::write(&log, "[t] supervisor: started, pid 6\nerror: of another\n").unwrap();
        assert_eq!(told(Exit::Code(UNUSABLE)), unknown);
        let text = "[t] supervisor: started, pid 6\nerror: of another\n\
                    [t] supervisor: started, pid 7\n[t] agent-loop start\nerror: MIN_SLEEP: no\n[t] end\n";
        fs::write(&log, format!("{}{text}", "line\n".repeat(100_000))).unwrap();
        assert_eq!(
            told(Exit::Code(UNUSABLE)),
            "ended with code 2: MIN_SLEEP: no"
        );
        assert_eq!(told(Exit::Code(1)), "ended with code 1");
    }
}
