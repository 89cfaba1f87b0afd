//! Recording of a run in the format of fixtures: the unchanged output of its pipes, its launch and its end.
//!
//! Each chunk is written at once with one call, before its events are passed on. So all events that a consumer has
//! seen are in the files, even if this process is killed. The reading task writes the files itself, because such a
//! write only copies to the page cache. It spills events in the same way.

mod about;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_core::provider::{Exit, Stop};
use teamster_core::{AgentError, ErrorKind, ExecuteParams};

use crate::config::RuntimeConfig;
use crate::files::{FileMode, create_file, replace_file};
use crate::launch::Plan;
use crate::notice::Notice;
use crate::run_folder::create_private;
use about::About;

/// File with the output of the pipe that carries the events.
const EVENTS: &str = "stdout.ndjson";
/// File with the output of the other pipe.
const OTHER: &str = "stderr.txt";
/// File with the lines of the CLI's own record of the session.
const RECORD: &str = "record.ndjson";
/// File with the launch and the end of the run.
const META: &str = "meta.json";

/// Size by which an incomplete recording is truncated to make room for its `meta.json`, in bytes.
const ROOM: u64 = 16 << 10;

/// Recording of one run.
pub(crate) struct Recording {
    dir: PathBuf,
    events: File,
    other: File,
    /// Created with the first lines of the CLI's record.
    record: Option<File>,
    about: About,
    /// True if `meta.json` exists. Without it the files are empty, and dropping this removes them.
    about_written: bool,
    /// Reason why nothing more is written.
    failed: Option<String>,
    /// Number of lines with events.
    lines: usize,
    /// Number of lines with events when the process was to be stopped.
    lines_before_stop: Option<usize>,
    interrupted: bool,
}

impl Recording {
    /// Creates the folder if it is missing, and the files. A folder that has one of them is refused. Called after all
    /// other checks of the run. Blocks briefly.
    pub(crate) fn begin(
        dir: &Path,
        plan: &Plan,
        params: &ExecuteParams,
        config: &RuntimeConfig,
        cli: &'static str,
    ) -> Result<Self, AgentError> {
        let failed = |error: &io::Error| not_writable(dir, error);
        let path = std::path::absolute(dir).map_err(|error| failed(&error))?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|error| failed(&error))?;
        for name in [EVENTS, OTHER, RECORD, META] {
            match path.join(name).symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&error)),
                Ok(_) => return Err(taken(dir, name)),
            }
        }
        let create = |name| match create_private(&path.join(name)) {
            // Another run has created the file meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(taken(dir, name)),
            result => result.map_err(|error| failed(&error)),
        };
        let events = create(EVENTS)?;
        let other = create(OTHER).inspect_err(|_| {
            let _ = fs::remove_file(path.join(EVENTS));
        })?;
        Ok(Self {
            dir: path,
            events,
            other,
            record: None,
            about: About::new(cli, plan, params, config),
            about_written: false,
            failed: None,
            lines: 0,
            lines_before_stop: None,
            interrupted: false,
        })
    }

    /// Writes the launch before the start of the process. An error, such as a full disk, ends the run before the start.
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        params: &ExecuteParams,
        config: &RuntimeConfig,
    ) -> Result<(), AgentError> {
        // The plan now has the paths of the run's files.
        self.about.launched(plan, params, config);
        self.write_about()
            .map_err(|error| not_writable(&self.dir, &error))
    }

    /// Records that the process was not started.
    pub(crate) fn not_started(mut self, why: &str) -> Option<Notice> {
        self.about.not_started(why);
        let error = self.write_about().err()?;
        Some(self.fail(META, &error))
    }

    /// Records output of the pipe that carries the events.
    pub(crate) fn events(&mut self, bytes: &[u8]) -> Option<Notice> {
        if self.failed.is_some() {
            return None;
        }
        self.lines += memchr::memchr_iter(b'\n', bytes).count();
        let error = self.events.write_all(bytes).err()?;
        Some(self.fail(EVENTS, &error))
    }

    /// Records output of the other pipe.
    pub(crate) fn other(&mut self, bytes: &[u8]) -> Option<Notice> {
        if self.failed.is_some() {
            return None;
        }
        let error = self.other.write_all(bytes).err()?;
        Some(self.fail(OTHER, &error))
    }

    /// Records lines of the CLI's own record.
    pub(crate) fn record(&mut self, lines: &[String]) -> Option<Notice> {
        if self.failed.is_some() || lines.is_empty() {
            return None;
        }
        let error = self.write_record(lines).err()?;
        Some(self.fail(RECORD, &error))
    }

    /// Records that the turn is being interrupted.
    pub(crate) fn interrupted(&mut self) {
        self.interrupted = true;
        self.stop_requested();
    }

    /// Records that the process is about to be stopped.
    pub(crate) fn stop_requested(&mut self) {
        self.lines_before_stop.get_or_insert(self.lines);
    }

    /// Records the end of the run. Blocks briefly.
    pub(crate) fn finish(mut self, exit: &Exit, duration: Duration) -> Option<Notice> {
        let notice = self.record(&exit.record);
        let lines = self.lines_before_stop.unwrap_or(self.lines);
        // After an interrupt, the exit of the process has no meaning.
        let by_itself = matches!(exit.stop, None | Some(Stop::Lingering));
        let interrupted = (self.interrupted && by_itself).then_some(&Stop::Aborted);
        let stop = interrupted.or(exit.stop.as_ref());
        self.about
            .ended(exit, stop, lines, duration, self.failed.as_deref());
        let mut written = self.write_about();
        if written.is_err() && self.failed.is_some() && self.make_room().is_ok() {
            written = self.write_about();
        }
        match written {
            Err(error) if self.failed.is_none() => Some(self.fail(META, &error)),
            _ => notice,
        }
    }

    /// Truncates an incomplete recording, so that a full disk has room for the `meta.json` that reports it.
    fn make_room(&self) -> io::Result<()> {
        let length = self.events.metadata()?.len();
        self.events.set_len(length.saturating_sub(ROOM))
    }

    fn write_record(&mut self, lines: &[String]) -> io::Result<()> {
        let mut text = lines.join("\n");
        text.push('\n');
        let file = match &mut self.record {
            Some(file) => file,
            None => (self.record).insert(create_private(&self.dir.join(RECORD))?),
        };
        file.write_all(text.as_bytes())
    }

    /// Writes `meta.json` atomically.
    fn write_about(&mut self) -> io::Result<()> {
        let (meta, text) = (self.dir.join(META), self.about.to_text());
        if self.about_written {
            return replace_file(&meta, text.as_bytes(), FileMode::Private);
        }
        create_file(&meta, text.as_bytes(), FileMode::Private)?;
        self.about_written = true;
        Ok(())
    }

    fn fail(&mut self, file: &str, error: &io::Error) -> Notice {
        let why = format!("{file} could not be written: {error}");
        let notice = Notice::warning(format!(
            "the recording in {} is not complete: {why}",
            self.dir.display()
        ));
        self.failed = Some(why);
        notice
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.about_written {
            for name in [EVENTS, OTHER] {
                let _ = fs::remove_file(self.dir.join(name));
            }
        }
    }
}

/// Creates the folder of the next process, named by the first free number. Creating it claims the number, so several
/// programs can record into one folder.
pub(crate) fn next_folder(dir: &Path) -> Result<PathBuf, AgentError> {
    let create = |path: &Path, recursive: bool| {
        let mut folder = DirBuilder::new();
        folder.recursive(recursive).mode(0o700).create(path)
    };
    create(dir, true).map_err(|error| not_writable(dir, &error))?;
    let mut number = 1_u64;
    loop {
        let next = dir.join(number.to_string());
        match create(&next, false) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(not_writable(dir, &error)),
            Ok(()) => return Ok(next),
        }
    }
}

fn not_writable(dir: &Path, error: &io::Error) -> AgentError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::Permission,
        _ => ErrorKind::Invalid,
    };
    let problem = format!("{} cannot be written to: {error}", dir.display());
    AgentError::refused("record_to", problem).kind(kind)
}

fn taken(dir: &Path, name: &str) -> AgentError {
    AgentError::refused(
        "record_to",
        format!(
            "{} already has a file {name}, and a recording overwrites nothing; name another \
         folder, or remove what is there",
            dir.display()
        ),
    )
}
