//! Live access to a CLI's non-event output (usually stderr).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::framing::{Frame, LineBuf};

/// Limit of the length of a line that is passed on complete, in bytes.
const LONGEST_LINE: usize = 64 << 10;

/// A callback for each line of the stream that carries no events, which is standard error for most CLIs. It is also
/// called between the turns of a session, when there is no stream of events.
///
/// The task that reads the CLI's output calls it, so it MUST NOT block.
#[derive(Clone)]
pub struct LineObserver(Arc<dyn Fn(&str) + Send + Sync>);

impl LineObserver {
    /// Creates an observer that calls this function with each line that is not blank. Invalid UTF-8 is replaced.
    pub fn new(observe: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn observe(&self, line: &str) {
        (self.0)(line);
    }
}

impl fmt::Debug for LineObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineObserver(..)")
    }
}

/// A process that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedProcess {
    /// Its process id.
    pub pid: u32,
    /// The program.
    pub program: PathBuf,
    /// Its arguments. They may contain a prompt.
    pub args: Vec<String>,
}

impl StartedProcess {
    /// Creates a process with this id and program, without arguments.
    pub fn new(pid: u32, program: impl Into<PathBuf>) -> Self {
        Self {
            pid,
            program: program.into(),
            args: Vec::new(),
        }
    }
}

/// A callback for each process that is started for a run or a session.
///
/// The task that starts the process calls it, so it MUST NOT block.
#[derive(Clone)]
pub struct StartObserver(Arc<dyn Fn(&StartedProcess) + Send + Sync>);

impl StartObserver {
    /// Creates an observer that calls this function.
    pub fn new(observe: impl Fn(&StartedProcess) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(crate) fn started(&self, process: &StartedProcess) {
        (self.0)(process);
    }
}

impl fmt::Debug for StartObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StartObserver(..)")
    }
}

/// Splits the output of one process into lines for an observer.
#[derive(Debug)]
pub(crate) struct Observed {
    lines: LineBuf,
    observer: LineObserver,
}

impl Observed {
    pub(crate) fn new(observer: LineObserver) -> Self {
        Self {
            lines: LineBuf::new(LONGEST_LINE),
            observer,
        }
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        self.lines.extend(bytes);
        while let Some(frame) = self.lines.next() {
            notify(&self.observer, &frame);
        }
    }

    pub(crate) fn finish(&mut self) {
        if let Some(frame) = self.lines.finish() {
            notify(&self.observer, &frame);
        }
    }
}

fn notify(observer: &LineObserver, frame: &Frame<'_>) {
    let text = match frame {
        Frame::Line(line) => String::from_utf8_lossy(line),
        Frame::Oversize { head, .. } => format!("{}…", String::from_utf8_lossy(head)).into(),
    };
    observer.observe(&text);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn lines_are_reported_as_they_come_and_the_last_one_at_the_end() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let to = seen.clone();
        let observer = LineObserver::new(move |line| to.lock().unwrap().push(line.to_owned()));
        let mut observed = Observed::new(observer);
        observed.read(b"on");
        assert!(seen.lock().unwrap().is_empty());
        observed.read(b"e\r\n\ntwo \xff\nth");
        assert_eq!(*seen.lock().unwrap(), ["one", "two \u{fffd}"]);
        observed.finish();
        assert_eq!(seen.lock().unwrap().pop().unwrap(), "th");
        observed.read(&vec![b'x'; LONGEST_LINE + 1]);
        observed.read(b"\nlast\n");
        let seen = seen.lock().unwrap();
        assert!(seen[2].starts_with("xxx") && seen[2].ends_with("x…") && seen[2].len() < 2000);
        assert_eq!(seen[3], "last");
    }
}
