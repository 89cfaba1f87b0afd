//! Additional text for a prompt from stdin.
//!
//! Stdin is often open without a writer: under cron, ssh and CI, or if the parent process keeps the pipe open. So a
//! silent stdin must never block a run.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use teamster_core::time::millis;

use crate::args::StdinMode;
use crate::words;

/// The time limit for a pipe's first byte.
const FIRST: Duration = Duration::from_secs(3);

/// The time limit for each further read of a pipe.
const PAUSE: Duration = Duration::from_mins(1);

/// The maximum size of the text, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Time limits for reading a pipe.
#[derive(Debug, Clone, Copy)]
struct ReadLimits {
    first: Duration,
    pause: Duration,
}

/// Adds the text on stdin to the prompt. Returns a warning if text may have been left out.
pub(crate) fn add_to(prompt: &mut String, mode: StdinMode) -> anyhow::Result<Option<String>> {
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let mut stdin = File::from(stdin.context("cannot read stdin")?);
    let limits = match mode {
        StdinMode::Ignore => return Ok(None),
        StdinMode::Wait => None,
        StdinMode::Auto => Some(ReadLimits {
            first: FIRST,
            pause: PAUSE,
        }),
    };
    let (text, warning) = read(&mut stdin, limits)?;
    if !text.trim().is_empty() {
        *prompt = with_stdin(prompt, &text);
    }
    Ok(warning)
}

/// Reads the text on stdin. Returns it with a warning if text may have been left out. Without `limits`, reads a pipe
/// to its end.
fn read(stdin: &mut File, limits: Option<ReadLimits>) -> anyhow::Result<(String, Option<String>)> {
    let left_out = |why: &str| Ok((String::new(), Some(why.to_owned())));
    let stat = stdin.metadata().context("cannot read stdin")?;
    let kind = stat.file_type();
    let bytes = if kind.is_file() {
        // Another command, such as a shell loop, has read part of the file.
        let at = stdin.stream_position().context("cannot read stdin")?;
        if at > 0 && limits.is_some() {
            if at < stat.len() {
                return left_out(
                    "stdin was ignored because another command has read part of it: \
                    `--stdin wait` reads the rest, `--stdin ignore` or `</dev/null` silences this warning",
                );
            }
            return Ok((String::new(), None));
        }
        read_all(stdin, None)?
    } else if kind.is_fifo() || kind.is_socket() {
        match limits {
            Some(limits) if !wait(stdin, limits.first)? => {
                return left_out(&format!(
                    "stdin is open but sent nothing within {}, so the run continues without it: \
                    `--stdin wait` waits for its end, `--stdin ignore` or `</dev/null` skips it",
                    words::duration_ms(millis(limits.first))
                ));
            }
            limits => read_all(stdin, limits.map(|limits| limits.pause))?,
        }
    } else {
        // A terminal or another device.
        return Ok((String::new(), None));
    };
    let text = String::from_utf8(bytes).ok();
    let text = text.context(
        "stdin, which is added to the prompt, is not UTF-8 text: pass it as a file that the agent \
        reads, or skip it with `</dev/null`",
    )?;
    Ok((text, None))
}

/// Reads to the end. A pause longer than `pause` is an error, because half a text is worse than none.
fn read_all(stdin: &mut File, pause: Option<Duration>) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if let Some(pause) = pause
            && !wait(stdin, pause)?
        {
            bail!(
                "stdin sent {} and then nothing for {}, but is still open: close it, or wait for its \
                 end with `--stdin wait`",
                words::plural(bytes.len() as u64, "byte"),
                words::duration_ms(millis(pause))
            );
        }
        // A single read returns what is available without waiting for more.
        match stdin.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(stdin, pause.unwrap_or(PAUSE))?;
                continue;
            }
            Err(error) => return Err(error).context("cannot read stdin"),
        }
        if bytes.len() as u64 > MAX_BYTES {
            bail!(
                "stdin has more than {} MiB, which is too much for a prompt: put it in a file and \
                let the agent read it",
                MAX_BYTES >> 20
            );
        }
    }
}

/// Waits for data or the end. Returns `false` after the time limit.
fn wait(stdin: &File, limit: Duration) -> anyhow::Result<bool> {
    let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
    loop {
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, limit) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot read stdin"),
        }
    }
}

/// Appends the text to the prompt, in a tag whose end tag does not occur in the text.
fn with_stdin(prompt: &str, text: &str) -> String {
    let names = std::iter::once("stdin".to_owned()).chain((2..).map(|n| format!("stdin-{n}")));
    let mut names = names.skip_while(|name| text.contains(&format!("</{name}>")));
    // The iterator is infinite.
    let name = names.next().unwrap_or_default();
    let prompt = prompt.trim_end_matches('\n');
    let text = text.trim_end_matches('\n');
    format!("{prompt}\n\n<{name}>\n{text}\n</{name}>")
}

#[cfg(test)]
mod tests {
    use std::io::{SeekFrom, Write};
    use std::os::fd::OwnedFd;

    use super::*;

    const SHORT: Option<ReadLimits> = Some(ReadLimits {
        first: Duration::from_millis(10),
        pause: Duration::from_millis(10),
    });

    const LONG: Option<ReadLimits> = Some(ReadLimits {
        first: Duration::from_mins(10),
        pause: Duration::from_mins(10),
    });

    fn pipe() -> (File, File) {
        let (read, write): (OwnedFd, OwnedFd) = nix::unistd::pipe().unwrap();
        (read.into(), write.into())
    }

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let (mut stdin, mut writer) = pipe();
        let writing = std::thread::spawn(move || {
            for _ in 0..3 {
                writer.write_all(&vec![b'x'; 50_000]).unwrap();
            }
        });
        let (text, warning) = read(&mut stdin, LONG).unwrap();
        writing.join().unwrap();
        assert_eq!((text.len(), warning), (150_000, None));
    }

    #[test]
    fn a_pipe_that_stays_silent_is_left_out_with_a_warning() {
        let (mut stdin, writer) = pipe();
        let (text, warning) = read(&mut stdin, SHORT).unwrap();
        assert_eq!(text, "");
        assert!(warning.unwrap().contains("--stdin wait"));
        drop(writer);
        // A closed pipe is not a silent one.
        assert_eq!(read(&mut stdin, LONG).unwrap(), (String::new(), None));
    }

    #[test]
    fn a_pipe_that_pauses_without_an_end_is_an_error() {
        let (mut stdin, mut writer) = pipe();
        writer.write_all(b"half").unwrap();
        let error = read(&mut stdin, SHORT).unwrap_err().to_string();
        assert!(error.contains("sent 4 bytes"), "{error}");
    }

    #[test]
    fn a_file_is_read_unless_another_command_is_in_the_middle_of_it() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\ntwo\n").unwrap();
        file.rewind().unwrap();
        assert_eq!(read(&mut file, LONG).unwrap().0, "one\ntwo\n");
        // No warning at the end of the file.
        assert_eq!(read(&mut file, LONG).unwrap(), (String::new(), None));
        file.seek(SeekFrom::Start(4)).unwrap();
        let (text, warning) = read(&mut file, LONG).unwrap();
        assert_eq!(text, "");
        assert!(warning.unwrap().contains("part of it"));
        assert_eq!(read(&mut file, None).unwrap().0, "two\n");
    }

    #[test]
    fn a_device_is_not_read() {
        let mut zero = File::open("/dev/zero").unwrap();
        assert_eq!(read(&mut zero, LONG).unwrap(), (String::new(), None));
        assert_eq!(read(&mut zero, None).unwrap(), (String::new(), None));
    }

    #[test]
    fn invalid_utf_8_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"\xff\xfe").unwrap();
        file.rewind().unwrap();
        let error = read(&mut file, LONG).unwrap_err().to_string();
        assert!(error.contains("not UTF-8"), "{error}");
    }

    #[test]
    fn the_text_is_separated_from_the_prompt() {
        assert_eq!(
            with_stdin("Review this\n", "a\nb\n\n"),
            "Review this\n\n<stdin>\na\nb\n</stdin>"
        );
        assert_eq!(
            with_stdin("x", "a </stdin> b </stdin-2>"),
            "x\n\n<stdin-3>\na </stdin> b </stdin-2>\n</stdin-3>"
        );
    }
}
