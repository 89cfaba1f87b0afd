//! Execution of steps.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::unistd::{self, alarm};
use teamster_core::sync::lock;

use super::output::{RETRY, Sink};
use super::play::play;
use super::report::Report;
use super::signals::{self, Signals};
use super::spawn::spawn;
use super::step::{Pipe, Signal, Stdin, Step, Until};
use super::write::{BigLine, Flood, Stream, Text};
use super::{FakeAgent, Flow, Stop};

/// Default size of one write, in bytes: the capacity of a pipe.
pub(super) const PIECE: usize = 64 * 1024;

/// Interval of the checks whether a file exists.
const POLL: Duration = Duration::from_millis(2);

/// State of the steps, shared by the agent's threads.
#[derive(Debug)]
pub(super) struct Runner {
    agent: FakeAgent,
    stdout: Mutex<Sink>,
    stderr: Mutex<Sink>,
    pub(super) signals: Signals,
    floods: Mutex<Vec<JoinHandle<()>>>,
}

impl Runner {
    /// Prepares a script with these steps. Executes none of them.
    pub(super) fn start(agent: &FakeAgent, steps: &[Step]) -> Result<Arc<Self>, Stop> {
        let runner = Arc::new(Self {
            agent: agent.clone(),
            stdout: Mutex::new(Sink::new(Stream::Stdout)),
            stderr: Mutex::new(Sink::new(Stream::Stderr)),
            signals: Signals::default(),
            floods: Mutex::default(),
        });
        signals::watch(&runner, steps)?;
        Ok(runner)
    }

    /// Executes a whole script and waits for its floods.
    pub(super) fn play(self: &Arc<Self>, steps: &[Step]) -> Flow {
        self.run(steps)?;
        let floods = std::mem::take(&mut *lock(&self.floods));
        for flood in floods {
            // A panic in it has already been printed.
            let _ = flood.join();
        }
        Ok(())
    }

    /// Executes some steps.
    pub(super) fn run(self: &Arc<Self>, steps: &[Step]) -> Flow {
        for (index, step) in steps.iter().enumerate() {
            self.drain()?;
            self.step(step).map_err(|stop| stop.at_step(index + 1))?;
        }
        Ok(())
    }

    fn step(self: &Arc<Self>, step: &Step) -> Flow {
        match step {
            Step::Line(text) => self.write_text(text, true),
            Step::Raw(text) => self.write_text(text, false),
            Step::BigLine(line) => self.big_line(line),
            Step::Play(what) => play(self, what),
            Step::Flood(flood) => self.start_flood(flood),
            Step::Sleep { ms } => self.pause(Duration::from_millis(*ms)),
            Step::Forever {} => self.pause(Duration::MAX),
            Step::Ignore { signals } => {
                self.signals.ignore(signals);
                Ok(())
            }
            Step::OnSignal { signal, step } => {
                self.signals.answer(*signal, step);
                Ok(())
            }
            Step::Spawn(what) => spawn(&self.agent, what),
            Step::Close { stream } => self.close(*stream),
            Step::Stdin(stdin) => self.read_stdin(stdin),
            Step::WaitForFile { path } => {
                while !path.exists() {
                    self.pause(POLL)?;
                }
                Ok(())
            }
            Step::WriteFile { path, text } => write_whole(path, text.as_bytes()),
            Step::IfExists { path, step } if path.exists() => self.run(step),
            Step::IfExists { .. } => Ok(()),
            Step::Report { file } => {
                let report = serde_json::to_vec_pretty(&Report::of_this_process()?)
                    .map_err(|error| Stop::failed("cannot write the report", error))?;
                write_whole(file, &report)
            }
            Step::LossyStdout {} => self.sink(Stream::Stdout).make_lossy(),
            Step::ExitOnEpipe { code } => {
                self.sink(Stream::Stdout).exit_on_epipe = Some(*code);
                self.sink(Stream::Stderr).exit_on_epipe = Some(*code);
                Ok(())
            }
            Step::LifeLimit { seconds } => {
                limit_life(*seconds);
                Ok(())
            }
            Step::Exit { code } => Err(Stop::Exit(*code)),
            Step::KillSelf { signal } => self.signals.send_to_self(*signal),
            Step::Abort {} => self.signals.send_to_self(Signal::Abrt),
        }
    }

    /// Locks one output stream.
    pub(super) fn sink(&self, stream: Stream) -> MutexGuard<'_, Sink> {
        match stream {
            Stream::Stdout => lock(&self.stdout),
            Stream::Stderr => lock(&self.stderr),
        }
    }

    /// Waits, and meanwhile retries the output that the pipe did not accept.
    pub(super) fn pause(&self, length: Duration) -> Flow {
        // The clock cannot represent a later time, so the wait never ends.
        let end = Instant::now().checked_add(length);
        loop {
            let drained = self.drain()?;
            let left = end.map_or(Duration::MAX, |end| {
                end.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(if drained { left } else { left.min(RETRY) });
        }
    }

    /// Ends the process if a thread other than the script's has stopped.
    pub(super) fn end_on_stop(&self, flow: Flow) {
        if let Err(stop) = flow {
            // The last chance for the queue of a lossy stdout. The process ends anyway, so errors are
            // ignored.
            let _ = self.drain();
            std::process::exit(stop.code().into());
        }
    }

    /// Retries the queue of a lossy stdout. Returns whether it is empty.
    fn drain(&self) -> Result<bool, Stop> {
        // Does not wait for a thread that is blocked by a full pipe: the stream has no queue then.
        self.stdout
            .try_lock()
            .map_or(Ok(true), |mut stdout| stdout.drain())
    }

    fn write_text(&self, text: &Text, newline: bool) -> Flow {
        let mut end = text.hex.0.clone();
        if newline {
            end.push(b'\n');
        }
        let Some(times) = text.repeat else {
            return self
                .sink(text.to)
                .write(&[text.template.as_bytes(), &end].concat());
        };
        let parts: Vec<&str> = text.template.split("{n}").collect();
        let interval = Duration::from_millis(text.interval_ms);
        let mut piece = Vec::new();
        for n in 0..times {
            for (index, part) in parts.iter().enumerate() {
                if index > 0 {
                    // Writing to a vector cannot fail.
                    let _ = write!(piece, "{n}");
                }
                piece.extend_from_slice(part.as_bytes());
            }
            piece.extend_from_slice(&end);
            let last = n + 1 == times;
            if last || !interval.is_zero() || piece.len() >= PIECE {
                self.sink(text.to).write(&piece)?;
                piece.clear();
            }
            if !last && !interval.is_zero() {
                self.pause(interval)?;
            }
        }
        Ok(())
    }

    fn big_line(&self, line: &BigLine) -> Flow {
        // Locked for the whole line, so that the answer to a signal comes after it.
        let mut sink = self.sink(line.to);
        sink.write(line.prefix.as_bytes())?;
        let piece = line.fill.to_string().repeat(PIECE);
        write_bytes(line.bytes, piece.as_bytes(), |part| sink.write(part))?;
        sink.write(format!("{}\n", line.suffix).as_bytes())
    }

    fn start_flood(self: &Arc<Self>, flood: &Flood) -> Flow {
        if !flood.concurrent {
            return self.flood(flood);
        }
        let (runner, flood) = (Arc::clone(self), flood.clone());
        let thread = thread::spawn(move || runner.end_on_stop(runner.flood(&flood)));
        lock(&self.floods).push(thread);
        Ok(())
    }

    fn flood(&self, flood: &Flood) -> Flow {
        let piece = format!("{}\n", "~".repeat(63)).repeat(PIECE / 64);
        write_bytes(flood.bytes, piece.as_bytes(), |part| {
            self.sink(flood.to).write(part)
        })
    }

    fn close(&self, stream: Pipe) -> Flow {
        let failed = |error| Stop::failed("cannot close the stream", error);
        let null = File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .map_err(failed)?;
        match stream {
            Pipe::Stdin => unistd::dup2_stdin(&null),
            Pipe::Stdout => self.sink(Stream::Stdout).close(&null),
            Pipe::Stderr => self.sink(Stream::Stderr).close(&null),
        }
        .map_err(|error| failed(error.into()))
    }

    fn read_stdin(&self, stdin: &Stdin) -> Flow {
        let mut input = Vec::new();
        match stdin.until {
            Until::Line => io::stdin().lock().read_until(b'\n', &mut input),
            Until::Eof | Until::Forever => io::stdin().lock().read_to_end(&mut input),
        }
        .map_err(|error| Stop::failed("cannot read stdin", error))?;
        if let Some(file) = &stdin.save {
            write_whole(file, &input)?;
        }
        if stdin.echo {
            let text = String::from_utf8_lossy(&input);
            let echo = serde_json::json!({"type": "stdin", "bytes": input.len(), "text": text});
            self.sink(Stream::Stdout)
                .write(format!("{echo}\n").as_bytes())?;
        }
        if stdin.until == Until::Forever {
            self.pause(Duration::MAX)?;
        }
        Ok(())
    }
}

/// Makes `SIGALRM` end this process after this many seconds, or never if 0.
pub(crate) fn limit_life(seconds: u32) {
    // The remaining time of an earlier limit is irrelevant.
    let _ = if seconds == 0 {
        alarm::cancel()
    } else {
        alarm::set(seconds)
    };
}

/// Writes a file atomically.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> Flow {
    let mut part = OsString::from(path);
    part.push(format!(".{}.part", std::process::id()));
    fs::write(&part, content)
        .and_then(|()| fs::rename(&part, path))
        .map_err(|error| Stop::failed(format_args!("cannot write {}", path.display()), error))
}

/// Writes this many bytes by repeating a piece.
fn write_bytes(bytes: u64, piece: &[u8], mut write: impl FnMut(&[u8]) -> Flow) -> Flow {
    let mut left = bytes;
    while left > 0 {
        let length = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
        write(&piece[..length])?;
        left -= length as u64;
    }
    Ok(())
}
