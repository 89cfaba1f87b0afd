//! Stopping of a process and its descendants.
//!
//! The time between the first signal and SIGKILL is [`RuntimeConfig::term_grace`].

use std::future::Future;
use std::pin::pin;
use std::process::ExitStatus;
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use teamster_core::provider::{Launch, Signal as CoreSignal};
use tokio::process::Child;
use tokio::time::Instant;

use crate::config::RuntimeConfig;
use crate::os::{self, Relative};
use crate::run_id::RunId;
use crate::session::commands::CommandTimes;
use crate::trace::trace;

/// Time for SIGTERM after a signal of the provider's own, on which the CLI would have ended. Less if
/// [`RuntimeConfig::term_grace`] is less.
const AFTER_OWN: Duration = Duration::from_millis(500);
/// Duration of a run within which process ids cannot wrap around to its own.
const SHORT_RUN: Duration = Duration::from_secs(2);
/// Time to wait for the exit of killed processes. A process that takes longer hangs in the kernel.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// Times after the end of an interrupted turn at which its late commands are searched: a CLI that is interrupted while
/// it starts a command may end the turn first.
const LATE_LOOKS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(400),
    Duration::from_secs(1),
];
/// Interval for polling the exit of a process that is not a child of this one.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A step of stopping before the last one, SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rung {
    pub(crate) signal: Signal,
    pub(crate) target: Target,
    /// Time to wait before the next step.
    pub(crate) grace: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The CLI's own process.
    Leader,
    /// Its group and all its descendants.
    All,
}

/// Returns the steps of a launch: the provider's own signal, if any, then SIGTERM. SIGKILL follows.
pub(crate) fn ladder(launch: &Launch, config: &RuntimeConfig) -> Vec<Rung> {
    let own = launch.stop_first.map(|step| Rung {
        signal: match step.signal {
            CoreSignal::Interrupt => Signal::SIGINT,
            _ => Signal::SIGTERM,
        },
        target: Target::Leader,
        grace: step.grace,
    });
    let left = (config.term_grace).saturating_sub(own.map_or(Duration::ZERO, |own| own.grace));
    let usual = Rung {
        signal: Signal::SIGTERM,
        target: Target::All,
        grace: left.max(config.term_grace.min(AFTER_OWN)),
    };
    own.into_iter().chain([usual]).collect()
}

/// The CLI's process and its descendants.
///
/// If it is dropped before [`sweep`](Self::sweep) has ended them all, it kills the known ones at once.
pub(crate) struct Tree {
    child: Child,
    /// The leader's process id, which is also that of its group.
    pid: Option<Pid>,
    run_id: String,
    started: Instant,
    exited: bool,
    /// Exit status. Unknown if another part of the program has waited for the process.
    status: Option<ExitStatus>,
    known: Vec<Relative>,
    /// Processes of commands of a turn that is being interrupted.
    commands: Vec<Relative>,
    /// Time at which `commands` are killed, after the end of their turn.
    kill_commands: Option<Instant>,
    /// Interrupted turn that has ended and whose commands may still start.
    late: Option<LateCommands>,
    /// Processes that were killed by the last step of stopping, or reported as leftovers.
    #[cfg(feature = "tracing")]
    killed: Vec<os::Process>,
    over: bool,
}

impl Tree {
    pub(crate) fn new(child: Child, run_id: &RunId) -> Self {
        Self {
            pid: child
                .id()
                .and_then(|pid| i32::try_from(pid).ok())
                .map(Pid::from_raw),
            child,
            run_id: run_id.to_string(),
            started: Instant::now(),
            exited: false,
            status: None,
            known: Vec::new(),
            commands: Vec::new(),
            kill_commands: None,
            late: None,
            #[cfg(feature = "tracing")]
            killed: Vec::new(),
            over: false,
        }
    }

    /// Returns whether the leader has exited and was reaped.
    pub(crate) fn has_exited(&self) -> bool {
        self.exited
    }

    /// Returns the exit status of the leader, if it is known.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.status
    }

    /// Polls the exit of the leader. Ready once.
    pub(crate) fn poll_exit(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.exited {
            return Poll::Pending;
        }
        pin!(self.child.wait()).poll(cx).map(|result| {
            self.exited = true;
            // An error means that it is not a child of this process any more: the surrounding program has waited for
            // it, or ignores SIGCHLD.
            self.status = result.ok();
        })
    }

    /// Records the current processes of the run. After the exit of the leader, nothing leads to children that are in
    /// sessions of their own.
    pub(crate) fn look(&mut self) {
        let leader = self.group().map(|pid| pid.as_raw().cast_unsigned());
        os::add_tree(leader, &mut self.known);
    }

    pub(crate) fn signal(&self, signal: Signal, target: Target) {
        // A process that is already gone is not an error.
        match (self.pid, target) {
            (Some(pid), Target::Leader) if !self.exited => {
                let _ = kill(pid, signal);
            }
            (Some(_), Target::All) => {
                self.signal_group(signal);
                for stray in self.known.iter().filter(|known| !known.in_group) {
                    let _ = os::signal_process(stray.process, signal);
                }
            }
            _ => {}
        }
    }

    /// Sends SIGKILL to all known processes, including those that changed their group.
    pub(crate) fn kill_known(&mut self) {
        #[cfg(feature = "tracing")]
        self.killed.extend(self.known.iter().map(|it| it.process));
        self.signal_group(Signal::SIGKILL);
        for known in &self.known {
            let _ = os::kill_process(known.process);
        }
    }

    /// Returns the id of leader and group, if it is still theirs. The kernel does not reuse the id of an existing
    /// group. So if the leader was reaped and a process with its id exists, the group is gone and that process is
    /// another one.
    fn group(&self) -> Option<Pid> {
        self.pid
            .filter(|pid| !self.exited || kill(*pid, None) == Err(nix::Error::ESRCH))
    }

    fn signal_group(&self, signal: Signal) {
        if let Some(group) = self.group() {
            let _ = killpg(group, signal);
        }
    }

    /// Records the processes of a turn's commands before the turn is interrupted. After the CLI has ended those that
    /// it knows, nothing leads to the others. Processes in the CLI's own session are left to the CLI, because its
    /// helpers and MCP servers are among them.
    pub(crate) fn look_at_commands(&mut self, times: &CommandTimes) {
        self.look_for_commands(times, None);
    }

    /// As above. With `newer_than`, orphans are only searched among the processes after that id.
    fn look_for_commands(&mut self, times: &CommandTimes, newer_than: Option<u32>) {
        let Some(leader) = self.group().map(|pid| pid.as_raw().cast_unsigned()) else {
            return;
        };
        for process in os::outside_session(leader, &self.run_id, newer_than) {
            let is_known = self.commands.iter().any(|known| known.process == process);
            // A shell tool has a session of its own, and what it starts later belongs to its command.
            let started = os::session_start(process) * os::TICK_MS;
            if !is_known && times.is_of_open(started) {
                self.commands.push(Relative {
                    process,
                    in_group: false,
                });
            }
        }
    }

    /// Sends SIGTERM to the remaining processes of the commands of an interrupted turn that has ended. They are killed
    /// after `grace`.
    pub(crate) fn end_commands(&mut self, times: CommandTimes, grace: Duration) {
        let newest = os::last_pid();
        self.look_for_commands(&times, None);
        self.late = Some(LateCommands {
            times,
            newest,
            ended: Instant::now(),
            looks: 0,
        });
        self.terminate_commands(0, grace);
    }

    /// Does the same for commands that the CLI started after the end of their turn. `is_in_turn`: the next turn has
    /// begun.
    pub(crate) fn end_late_commands(&mut self, is_in_turn: bool, grace: Duration) {
        let Some(mut late) = self.late.take() else {
            return;
        };
        if is_in_turn {
            late.times.next_turn();
        }
        if late.next_look().is_some_and(|at| Instant::now() >= at) {
            late.looks += 1;
            let before = self.commands.len();
            self.look_for_commands(&late.times, late.newest);
            self.terminate_commands(before, grace);
        }
        self.late = late.next_look().is_some().then_some(late);
    }

    /// Sends SIGTERM to the commands from this index on, and sets the time at which they are killed.
    fn terminate_commands(&mut self, from: usize, grace: Duration) {
        if self.commands.len() == from {
            return;
        }
        os::add_tree(None, &mut self.commands);
        for known in &self.commands[from..] {
            // A process that is already gone is not an error.
            let _ = os::signal_process(known.process, Signal::SIGTERM);
        }
        self.kill_commands = Some(Instant::now() + grace);
    }

    /// Returns the time of the next step against the commands of an interrupted turn.
    pub(crate) fn commands_at(&self) -> Option<Instant> {
        let look = self.late.as_ref().and_then(LateCommands::next_look);
        [self.kill_commands, look].into_iter().flatten().min()
    }

    /// Kills the remaining processes of the commands of an interrupted turn, if their time is over.
    pub(crate) fn kill_commands(&mut self) {
        if self.kill_commands.is_none_or(|at| Instant::now() < at) {
            return;
        }
        self.kill_commands = None;
        os::add_tree(None, &mut self.commands);
        for known in self.commands.drain(..) {
            let _ = os::kill_process(known.process);
        }
    }

    /// Returns whether any known process other than the leader still runs.
    pub(crate) fn others_run(&self) -> bool {
        self.known.iter().any(|known| os::is_running(known.process))
    }

    /// Kills the remaining processes, including orphans that only their environment identifies, and waits for their
    /// exit.
    pub(crate) async fn sweep(&mut self) {
        if self
            .group()
            .is_some_and(|group| killpg(group, None).is_ok())
        {
            // To notice their exit.
            self.look();
        }
        #[cfg(feature = "tracing")]
        self.tell_leftovers(&self.known.iter().map(|it| it.process).collect::<Vec<_>>());
        self.kill_known();
        let begun = Instant::now();
        loop {
            let marked = self.marked().await;
            #[cfg(feature = "tracing")]
            self.tell_leftovers(&marked);
            for process in &marked {
                let _ = os::kill_process(*process);
            }
            if (marked.is_empty() && !self.others_run()) || begun.elapsed() > AFTER_KILL {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            self.kill_known();
        }
        self.over = true;
    }

    /// Keeps the remaining processes running.
    pub(crate) fn leave(&mut self) {
        self.over = true;
    }

    /// Kills all processes that can be found, and waits about 100 ms at most for the exit of the leader.
    pub(crate) fn end_now(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        trace!(WARN, pid = ?self.pid, "killed with all that it started: its driver is gone");
        self.look();
        self.kill_known();
        for process in os::marked(&self.run_id, None) {
            let _ = os::kill_process(process);
        }
        // Reaps the leader, because no other task waits for it.
        for _ in 0..100 {
            if self.exited {
                return;
            }
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                result => {
                    self.exited = true;
                    self.status = result.ok().flatten();
                }
            }
        }
    }

    /// Reports the given processes that still run and were not killed before.
    #[cfg(feature = "tracing")]
    fn tell_leftovers(&mut self, of: &[os::Process]) {
        let is_news = |it: &&os::Process| !self.killed.contains(it) && os::is_running(**it);
        let pids: Vec<_> = of.iter().filter(is_news).map(|it| it.pid).collect();
        if !pids.is_empty() {
            trace!(INFO, ?pids, "leftovers");
        }
        self.killed.extend(of);
    }

    async fn marked(&self) -> Vec<os::Process> {
        match self.pid {
            Some(pid) if self.started.elapsed() < SHORT_RUN => {
                os::marked(&self.run_id, Some(pid.as_raw().cast_unsigned()))
            }
            _ => {
                let run_id = self.run_id.clone();
                // Reads a file for each process of the machine.
                tokio::task::spawn_blocking(move || os::marked(&run_id, None))
                    .await
                    .unwrap_or_else(|_| os::marked(&self.run_id, None))
            }
        }
    }
}

/// Interrupted turn that has ended and whose commands may still start.
struct LateCommands {
    times: CommandTimes,
    /// Newest process at the end of the turn.
    newest: Option<u32>,
    ended: Instant,
    /// Number of looks so far.
    looks: usize,
}

impl LateCommands {
    fn next_look(&self) -> Option<Instant> {
        Some(self.ended + *LATE_LOOKS.get(self.looks)?)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.end_now();
    }
}

/// Describes an exit: its code or its signal.
pub(crate) fn describe(status: ExitStatus) -> (Option<i32>, Option<String>) {
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal().map(|number| {
        Signal::try_from(number).map_or_else(
            |_| format!("signal {number}"),
            |signal| signal.as_str().to_owned(),
        )
    });
    (status.code(), signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use teamster_core::provider::StopStep;

    #[test]
    fn a_provider_begins_the_ladder_in_its_own_way() {
        let mut config = RuntimeConfig::default();
        let rung = |signal, target, ms| Rung {
            signal,
            target,
            grace: Duration::from_millis(ms),
        };
        let term = |ms| rung(Signal::SIGTERM, Target::All, ms);
        assert_eq!(ladder(&Launch::default(), &config), [term(1500)]);
        // With a grace of 1.5 s in all, the rest is left for SIGTERM, but not nothing.
        for (own, term_grace, left) in [
            (1000, 1500, 500),
            (1000, 10_000, 9000),
            (3000, 1500, 500),
            (1000, 200, 200),
            (1000, 0, 0),
        ] {
            config.term_grace = Duration::from_millis(term_grace);
            let launch = Launch {
                stop_first: Some(StopStep {
                    signal: CoreSignal::Interrupt,
                    grace: Duration::from_millis(own),
                }),
                ..Launch::default()
            };
            let int = rung(Signal::SIGINT, Target::Leader, own);
            assert_eq!(ladder(&launch, &config), [int, term(left)], "{own} ms");
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(
            describe(ExitStatus::from_raw(9)),
            (None, Some("SIGKILL".into()))
        );
        assert_eq!(describe(ExitStatus::from_raw(3 << 8)), (Some(3), None));
        assert_eq!(
            describe(ExitStatus::from_raw(40)),
            (None, Some("signal 40".into()))
        );
    }
}
