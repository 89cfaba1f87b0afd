//! The task that owns the process of a run or a session.
//!
//! Only this task reads the pipes, checks the time limits, stops the process and waits for its exit.
//! [`Driver::poll_round`] polls all sources of events, once for each chunk that is read. The other methods are
//! sequential code on top of it.

use std::ffi::OsString;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::signal::Signal;
use teamster_core::provider::{Exit, Phase, Stop};
use teamster_core::{AgentError, ErrorCode, ErrorKind};
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::container::Contained;
use crate::follow::Follower;
use crate::framing::LineBuf;
use crate::last_output::LastOutput;
use crate::notice::Notice;
use crate::observe::Observed;
use crate::on_disk::OnDisk;
use crate::reading::Reader;
use crate::recording::Recording;
use crate::spawn::Output;
use crate::stderr_tail::Tail;
use crate::stdin::StdinWriter;
use crate::stop::{POLL_INTERVAL, Rung, Target, Tree, describe};
use crate::trace::trace;
use crate::watchdog::{Alarm, deadline};

/// Time to wait for the exit of a process after SIGKILL. A process that takes longer hangs in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(10);
/// The pipes are drained for at most this many times the drain grace after the process is gone.
const DRAIN_GRACES: u32 = 10;
/// Longest wait between two checks of the clock while there is a limit, so that an absence is noticed.
const BEAT: Duration = Duration::from_secs(5);
/// Delay of a wakeup that indicates an absence: this process was stopped (SIGSTOP), or the machine suspended.
const ABSENCE: Duration = Duration::from_secs(1);
/// Time for which the pipes are read once more before a time limit counts as reached. Output of the CLI during an
/// absence may not have been reported as readable yet.
const LAST_LOOK: Duration = Duration::from_millis(50);
/// Number of chunks after which the task yields to other tasks.
const CHUNKS_IN_A_ROW: u32 = 8;

/// State of one process. The reader interprets its output and has the requests of callers.
pub(crate) struct Driver<R: Reader> {
    pub(crate) tree: Tree,
    pub(crate) events: Option<Output>,
    pub(crate) lines: LineBuf,
    pub(crate) last_output: LastOutput,
    pub(crate) other: Option<Output>,
    pub(crate) tail: Tail,
    pub(crate) observed: Option<Observed>,
    pub(crate) stdin: Option<StdinWriter>,
    pub(crate) reader: R,
    pub(crate) ladder: Vec<Rung>,
    pub(crate) exit_grace: Duration,
    pub(crate) term_grace: Duration,
    pub(crate) drain_grace: Duration,
    pub(crate) keep_background: bool,
    /// The files of the run, until they are restored.
    pub(crate) on_disk: Option<OnDisk>,
    /// Reader of the CLI's record files.
    pub(crate) follower: Option<Follower>,
    /// Recording of the unchanged output.
    pub(crate) recording: Option<Recording>,
    pub(crate) alarm: Pin<Box<Alarm>>,
    pub(crate) clock: Clock,
    /// The program, and the `PATH` of its environment.
    pub(crate) program: (PathBuf, Option<OsString>),
    /// The container in which the CLI runs.
    pub(crate) container: Option<Contained>,
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    [a, b].into_iter().flatten().min()
}

impl<R: Reader> Driver<R> {
    /// Drives the process until the stream has its end.
    pub(crate) async fn run(mut self) {
        let mut stop = self.work().await;
        let by_itself = stop.is_none();
        if by_itself {
            self.drain(|driver| driver.stop_wanted().is_some()).await;
            // The drain may have been ended by a request to stop.
            stop = self.stop_wanted();
        } else {
            trace!(INFO, why = ?stop, "stopping");
            self.stop(self.keep_after(stop.as_ref())).await;
        }
        self.stdin = None;
        if self.keep_after(stop.as_ref()) {
            self.tree.leave();
        } else {
            self.tree.sweep().await;
        }
        if !by_itself {
            // The last output may still be in the pipe.
            self.drain(|driver| driver.reader.failed().is_some()).await;
        } else if stop.is_none()
            && let Some(stderr) = self.early_failure()
        {
            stop = self.explained(&stderr).await;
        }
        let record = match self.follower.take() {
            Some(follower) => follower.finish(self.reader.record_files()).await,
            None => Vec::new(),
        };
        let notices = match self.on_disk.take() {
            Some(on_disk) => on_disk.release_elsewhere(&Handle::current()).await,
            None => Vec::new(),
        };
        self.finish(stop, record, notices);
    }

    /// Drives the process until it has exited (`None`) or must be stopped for the returned reason.
    async fn work(&mut self) -> Option<Stop> {
        let mut last_look = None;
        loop {
            if let Some(stop) = self.stop_wanted() {
                return Some(stop);
            }
            if self.tree.has_exited() {
                return None;
            }
            if let Some(error) = self.reader.hopeless() {
                return Some(Stop::Failed(error.clone()));
            }
            let (mut until, stop) = self.limit();
            let now = Instant::now();
            if until.is_none_or(|until| now < until) {
                last_look = None;
            } else {
                let look_until = *last_look.get_or_insert(now + LAST_LOOK);
                if now >= look_until {
                    return Some(stop());
                }
                until = Some(look_until);
            }
            self.round(earlier(until, self.reader.deadline())).await;
        }
    }

    /// Returns the reason why the process must be stopped at once.
    pub(crate) fn stop_wanted(&self) -> Option<Stop> {
        match self.reader.failed() {
            Some(error) => Some(Stop::Failed(error.clone())),
            None if self.last_output.is_flood() => Some(Stop::Aborted),
            None => self.reader.stop_wanted(),
        }
    }

    /// Returns the current deadline, and a function that creates the reason for stopping when it is reached.
    fn limit(&self) -> (Option<Instant>, impl FnOnce() -> Stop + use<R>) {
        let phase = self.reader.phase();
        let ended = self
            .clock
            .ended
            .filter(|_| self.events.is_none() || phase == Phase::Ended);
        let limits = self.reader.limits();
        let until = match ended {
            Some(ended) => deadline(ended.max(self.clock.back), self.exit_grace),
            None => {
                let since = self.reader.since().unwrap_or(self.clock.line);
                let since = since.max(self.clock.line).max(self.clock.back);
                deadline(since, limits.of(&phase))
            }
        };
        (until, move || match ended {
            Some(_) => Stop::Lingering,
            None => Stop::Timeout(limits.error(&phase)),
        })
    }

    /// Returns whether background processes of the CLI's tools are kept. They are not if the run was cut short, because
    /// they may be in the middle of their work.
    fn keep_after(&self, stop: Option<&Stop>) -> bool {
        self.keep_background && matches!(stop, None | Some(Stop::Lingering))
    }

    /// Reads the remaining output after the exit of the process. A child of the process may hold the pipes open
    /// forever, so it ends after a silence, after a limit, or when `enough` returns true.
    async fn drain(&mut self, enough: fn(&Self) -> bool) {
        let begun = Instant::now();
        let hard = deadline(begun, self.drain_grace.saturating_mul(DRAIN_GRACES));
        while self.events.is_some() || self.other.is_some() {
            if enough(self) {
                return;
            }
            let silent = deadline(begun.max(self.clock.read), self.drain_grace);
            let until = earlier(silent, hard);
            if until.is_some_and(|until| Instant::now() >= until) {
                return;
            }
            self.round(until).await;
        }
    }

    /// Stops the process step by step and keeps reading, because its last output may be the most useful.
    async fn stop(&mut self, leader_only: bool) {
        self.reader.stop_requested();
        self.last_output.stop();
        if let Some(recording) = &mut self.recording {
            recording.stop_requested();
        }
        if !leader_only {
            // After the exit, nothing leads from the process to its children.
            self.tree.look();
        }
        for rung in self.ladder.clone() {
            if self.reader.force() {
                break;
            }
            let target = if leader_only {
                Target::Leader
            } else {
                rung.target
            };
            trace!(DEBUG, signal = rung.signal.as_str(), grace = ?rung.grace, "signal");
            self.tree.signal(rung.signal, target);
            let until = deadline(Instant::now(), rung.grace);
            while !self.reader.force() && until.is_none_or(|until| Instant::now() < until) {
                let mut wait = until;
                if self.tree.has_exited() {
                    if target == Target::Leader || !self.tree.others_run() {
                        break;
                    }
                    // Their exit is not reported, so it is polled.
                    wait = earlier(until, Some(Instant::now() + POLL_INTERVAL));
                }
                self.round(wait).await;
            }
        }
        #[cfg(feature = "tracing")]
        if !self.tree.has_exited() || (!leader_only && self.tree.others_run()) {
            trace!(DEBUG, signal = "SIGKILL", "signal");
        }
        if leader_only {
            self.tree.signal(Signal::SIGKILL, Target::Leader);
        } else {
            self.tree.look();
            self.tree.kill_known();
        }
        let until = Instant::now() + AFTER_KILL;
        while !self.tree.has_exited() && Instant::now() < until {
            self.round(Some(until)).await;
        }
    }

    /// Ends the stream.
    fn finish(&mut self, stop: Option<Stop>, record: Vec<String>, notices: Vec<Notice>) {
        while let Some(frame) = self.lines.next() {
            self.reader.frame(frame);
        }
        self.finish_lines();
        if let Some(bytes) = self.last_output.lost() {
            self.reader.lost_output(bytes);
        }
        for notice in notices {
            self.reader.notice(notice);
        }
        if let Some(observed) = &mut self.observed {
            observed.finish();
        }
        let (code, signal) = self.tree.status().map_or((None, None), describe);
        trace!(DEBUG, code, signal, after = ?self.clock.started.elapsed(), "ended");
        let exit = Exit {
            code,
            signal,
            stderr: self.tail.take(),
            stop,
            record,
        };
        let duration = self.clock.started.elapsed();
        if let Some(recording) = self.recording.take()
            && let Some(notice) = recording.finish(&exit, duration)
        {
            self.reader.notice(notice);
        }
        self.reader.finish(exit, duration);
    }

    /// Waits for an event or the deadline, and processes it.
    async fn round(&mut self, until: Option<Instant>) {
        if self.clock.chunks >= CHUNKS_IN_A_ROW {
            // On a single-threaded runtime the consumer could not keep up with an agent that prints fast, and
            // events would be spilled needlessly.
            self.clock.chunks = 0;
            tokio::task::yield_now().await;
        }
        let now = Instant::now();
        // Without a limit, such as between two turns of a session, no timer is needed.
        let wake = earlier(until, self.tree.commands_at());
        let wake = wake.map(|wake| wake.clamp(now, now + BEAT));
        self.alarm.as_mut().set(wake);
        poll_fn(|cx| self.poll_round(cx)).await;
        let now = Instant::now();
        if wake.is_some_and(|wake| now.saturating_duration_since(wake) > ABSENCE) {
            self.clock.back = now;
        }
    }

    /// Polls all sources, most urgent first. It polls all of them each time, so that a pipe that is always full cannot
    /// starve the others.
    fn poll_round(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut news = self.reader.poll(cx);
        if self.reader.is_interrupting()
            && let Some(recording) = &mut self.recording
        {
            recording.interrupted();
        }
        if let Some(times) = self.reader.take_interrupted_commands() {
            // Before the CLI receives the interrupt.
            self.tree.look_at_commands(&times);
        }
        news |= self.poll_events(cx);
        news |= self.poll_other(cx);
        // The lines may change what the reader waits for.
        news |= self.poll_record(cx);
        if news {
            self.note_end(Instant::now());
        }
        if let Some(times) = self.reader.take_ended_commands() {
            self.tree.end_commands(times, self.term_grace);
        }
        let is_in_turn = self.reader.is_in_turn();
        self.tree.end_late_commands(is_in_turn, self.term_grace);
        self.tree.kill_commands();
        if let Some(stdin) = &mut self.stdin {
            stdin.push(self.reader.take_input());
            if self.reader.has_ended() {
                stdin.release();
            }
            if stdin.poll(cx).is_ready() {
                // Dropping it closes the pipe.
                self.stdin = None;
                news = true;
            }
        }
        news |= self.tree.poll_exit(cx).is_ready();
        news |= self.alarm.as_mut().poll(cx).is_ready();
        if news { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_events(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pipe) = &mut self.events else {
            return false;
        };
        let buf = self.lines.fill();
        let before = buf.len();
        let Poll::Ready(read) = pin!(pipe.read_buf(&mut *buf)).poll(cx) else {
            return false;
        };
        let kept = self
            .last_output
            .read(buf.len() - before, self.reader.is_interrupting());
        buf.truncate(before + kept);
        if let Some(recording) = &mut self.recording
            && let Some(notice) = recording.events(&buf[before..])
        {
            self.reader.notice(notice);
        }
        let now = Instant::now();
        self.clock.read = now;
        self.clock.chunks += 1;
        #[cfg(feature = "tracing")]
        if self.clock.chunks == 1 {
            trace!(DEBUG, after = ?self.clock.started.elapsed(), "first output");
        }
        while let Some(frame) = self.lines.next() {
            self.clock.line = now;
            self.clock.has_line = true;
            self.reader.frame(frame);
        }
        if !matches!(read, Ok(1..)) {
            self.events = None;
            self.finish_lines();
        }
        self.reader.flush();
        true
    }

    /// Processes the last line, which has no end. It is left out if only its beginning was kept.
    fn finish_lines(&mut self) {
        let frame = self.lines.finish();
        if let Some(frame) = frame.filter(|_| self.last_output.lost().is_none()) {
            self.reader.frame(frame);
        }
    }

    /// Reads new lines of record files. They do not reset the watchdog, whose limits apply to output.
    fn poll_record(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(follower) = &mut self.follower else {
            return false;
        };
        let mut news = false;
        while let Poll::Ready(lines) = follower.poll(&self.reader, cx) {
            if let Some(recording) = &mut self.recording
                && let Some(notice) = recording.record(&lines)
            {
                self.reader.notice(notice);
            }
            self.reader.record_lines(&lines);
            self.reader.flush();
            news = true;
        }
        news
    }

    /// Records the time at which the CLI's output ended, and resets it if more follows.
    fn note_end(&mut self, now: Instant) {
        if !self.reader.has_ended() && self.events.is_some() {
            self.clock.ended = None;
        } else if self.clock.ended.is_none() {
            self.clock.ended = Some(now);
            if self.reader.used_tools() && !self.keep_background {
                // A background process of a tool may have no other trace of its owner.
                self.tree.look();
            }
        }
    }

    fn poll_other(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pipe) = &mut self.other else {
            return false;
        };
        let buf = self.tail.fill();
        let before = buf.len();
        let Poll::Ready(read) = pin!(pipe.read_buf(&mut *buf)).poll(cx) else {
            return false;
        };
        if let Some(recording) = &mut self.recording
            && let Some(notice) = recording.other(&buf[before..])
        {
            self.reader.notice(notice);
            self.reader.flush();
        }
        if let Some(observed) = &mut self.observed {
            observed.read(&buf[before..]);
        }
        self.clock.read = Instant::now();
        if !matches!(read, Ok(1..)) {
            self.other = None;
        }
        true
    }
}

impl<R: Reader> Drop for Driver<R> {
    /// Ends an unfinished run: the runtime that drives it was shut down, or there is a bug in this module. Kills the
    /// processes and still ends the stream.
    fn drop(&mut self) {
        if self.reader.is_over() {
            return;
        }
        self.tree.end_now();
        let stop = self.stop_wanted().unwrap_or_else(|| {
            Stop::Failed(AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                "the run was ended because the asynchronous runtime that drove it was shut down",
            ))
        });
        let notices = self.on_disk.take().map(OnDisk::release);
        self.finish(Some(stop), Vec::new(), notices.unwrap_or_default());
    }
}
