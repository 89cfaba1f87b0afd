//! The turns of a session: decodes lines to events and sends commands as lines.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use std::time::Duration;

use teamster_core::provider::{
    Events, Exit, Outbox, Phase, RecordFiles, SessionCommand, Stop, TurnOrigin,
};
use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, CancellationToken, ErrorKind, PermissionAnswer,
    PermissionPolicy, PermissionRequest, Timeouts,
};
use tokio::time::Instant;

use super::asking::Asking;
use super::commands::CommandTimes;
use super::current::Current;
use super::replies::Replies;
use super::shared::{Command, CommandKind, GRACE_WITHOUT_TOOLS, NewTurn, Setting};
use super::silence::Silence;
use crate::framing::Frame;
use crate::guard::panic_error;
use crate::notice::Notice;
use crate::queue::queue;
use crate::reading::Reader;
use crate::spill::Spill;
use crate::watchdog::{Limits, deadline};

/// Runs the turns of one process, one after another.
pub(crate) struct SessionReading {
    setting: Setting,
    base: Limits,
    /// The turn in progress.
    current: Option<Current>,
    /// A turn that waits for the end of an unasked one.
    waiting: Option<Box<NewTurn>>,
    asking: Asking,
    replies: Replies,
    /// Times of the commands of the turn's tools.
    commands: CommandTimes,
    /// Set if the turn is about to be interrupted while a command runs.
    interrupted_commands: Option<CommandTimes>,
    /// Times of the commands of an interrupted turn that has ended.
    ended_commands: Option<CommandTimes>,
    /// Deadline of the interrupt.
    interrupting: Option<Instant>,
    /// Start of the idle time. `None` before the first turn, for which the process was started.
    idle_since: Option<Instant>,
    silence: Silence,
    /// Input not yet written to the CLI.
    input: Vec<u8>,
    /// True if all handles are dropped, or the session was closed.
    closing: bool,
    /// True while the process is being stopped. The turn ends with it, and the reason is only known then.
    stopping: bool,
    close_reported: bool,
    failed: Option<AgentError>,
    over: bool,
}

impl SessionReading {
    pub(crate) fn new(setting: Setting, permissions: PermissionPolicy, limits: Limits) -> Self {
        let mut this = Self {
            setting,
            base: limits,
            current: None,
            waiting: None,
            asking: Asking::new(permissions),
            replies: Replies::default(),
            commands: CommandTimes::default(),
            interrupted_commands: None,
            ended_commands: None,
            interrupting: None,
            idle_since: None,
            silence: Silence::default(),
            input: Vec::new(),
            closing: false,
            stopping: false,
            close_reported: false,
            failed: None,
            over: false,
        };
        this.settle();
        this
    }

    fn command(&mut self, command: Command) {
        match command {
            // Dropping it sends its caller to the next process.
            Command::Turn(turn) if self.closing => drop(turn),
            Command::Turn(turn) if self.current.is_none() => self.begin(*turn),
            Command::Turn(turn) => self.waiting = Some(turn),
            Command::Interrupt => self.interrupt(),
            Command::WithOutcome(CommandKind::Steer(_), to) if self.current.is_none() => {
                // The caller may be gone.
                let _ = to.send(Err(AgentError::no_turn()));
            }
            Command::WithOutcome(kind, to) => {
                let id = self.replies.add(to);
                self.setting.assembler.command(kind.command(id));
            }
            // A turn that was sent before runs first, and a later one goes to the next process.
            Command::CloseIfIdle if self.current.is_some() || self.closing => {}
            Command::CloseIfIdle => {
                self.setting.known.set_idle();
                self.closing = true;
            }
            Command::Close => {
                self.closing = true;
                self.interrupt();
            }
        }
        self.settle();
    }

    fn begin(&mut self, new: NewTurn) {
        if new.abort.is_aborted() {
            return;
        }
        // If the sender does not wait any more, the events are discarded.
        let _ = new.begun.send(());
        let limits = self.base.with(new.turn.timeouts);
        let current = Current::new(new.queue, &new.abort, limits, Some(new.permit));
        self.current = Some(current);
        self.setting.known.set_in_turn(true);
        self.interrupting = None;
        self.commands = CommandTimes::default();
        self.setting.assembler.begin(new.turn);
    }

    /// Begins an unasked turn.
    fn begin_unasked(&mut self) {
        let setting = &self.setting;
        let spill = Spill::new(setting.spill_dir.as_deref(), setting.spill_limit_bytes);
        let (queue, consumer) = queue(setting.queue_memory_bytes, spill);
        let abort = AbortHandle::new(&CancellationToken::new());
        let limits = self.base.with(Timeouts::default());
        self.current = Some(Current::new(queue, &abort, limits, None));
        self.interrupting = None;
        self.commands = CommandTimes::default();
        setting.known.add_unasked(consumer, abort);
    }

    fn interrupt(&mut self) {
        if self.current.is_none() || self.interrupting.is_some() {
            return;
        }
        self.setting.assembler.stop_requested();
        self.commands.interrupt();
        if self.commands.is_open() {
            self.interrupted_commands = Some(self.commands.clone());
        }
        let grace = if self.setting.interruptible {
            let phase = self.setting.assembler.phase();
            self.setting.assembler.command(SessionCommand::Interrupt);
            match phase {
                Phase::Startup | Phase::Model => {
                    self.setting.interrupt_grace.min(GRACE_WITHOUT_TOOLS)
                }
                _ => self.setting.interrupt_grace,
            }
        } else {
            Duration::ZERO
        };
        self.interrupting = deadline(Instant::now(), grace);
        self.asking.withdraw_all();
    }

    /// Processes the outbox of the protocol.
    fn settle(&mut self) {
        loop {
            let assembler = &mut self.setting.assembler;
            for (id, result) in assembler.outbox(Outbox::take_answers) {
                if let Some(to) = self.replies.take(id) {
                    self.setting.known.set_session_id(assembler.session_id());
                    // The caller may have stopped waiting.
                    let _ = to.send(result);
                }
            }
            for id in assembler.outbox(Outbox::take_withdrawn) {
                self.asking.withdraw(id);
            }
            let asked = assembler.outbox(Outbox::take_requests);
            let written = assembler.outbox(Outbox::take_input);
            self.input.extend(written);
            let over = self.current.is_some() && self.setting.assembler.is_over();
            if over && !self.stopping {
                self.end_turn();
                continue;
            }
            if asked.is_empty() {
                break;
            }
            for request in asked {
                if let Some((request, answer)) = self.asking.ask(request) {
                    self.answer(&request, answer);
                }
            }
        }
        if self.closing && self.current.is_none() && !self.close_reported {
            self.close_reported = true;
            self.setting.known.set_gone();
            self.setting.assembler.command(SessionCommand::Close);
            let written = self.setting.assembler.outbox(Outbox::take_input);
            self.input.extend(written);
        }
        self.silence.settle(&self.setting.assembler);
    }

    fn answer(&mut self, request: &PermissionRequest, answer: PermissionAnswer) {
        self.setting.assembler.answer(request, answer);
        if let Some(current) = &mut self.current {
            // The CLI was silent while the request waited.
            current.since = Instant::now();
        }
    }

    /// Ends the turn while the process continues.
    fn end_turn(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        let assembler = &mut self.setting.assembler;
        self.setting.known.set_session_id(assembler.session_id());
        self.setting
            .known
            .set_cost(assembler.session_id(), assembler.session_cost_usd());
        (self.setting.known).set_permission_mode(assembler.permission_mode());
        let duration = millis(current.begun.elapsed());
        assembler.end_turn(duration);
        self.look_for_loss();
        // A caller that has read `done` finds the process waiting.
        self.setting.known.set_in_turn(false);
        current.queue.close(self.setting.assembler.out());
        if self.interrupting.take().is_some() {
            self.ended_commands = Some(std::mem::take(&mut self.commands));
        }
        self.asking.withdraw_all();
        self.idle_since = Some(Instant::now());
        if let Some(waiting) = self.waiting.take() {
            if self.closing {
                // Its caller sends it to the next process.
                drop(waiting);
            } else {
                self.begin(*waiting);
            }
        }
    }

    /// Detects a lost session: one that was killed before the CLI had saved it cannot be resumed. Only this error shows
    /// it; nothing reports it later.
    fn look_for_loss(&mut self) {
        let lost = |event: &AgentEvent| matches!(event, AgentEvent::Error(it) if it.error.kind == ErrorKind::SessionNotFound);
        let setting = &mut self.setting;
        if setting.restarted && setting.assembler.out().as_slice().iter().any(lost) {
            setting.known.set_lost();
        }
    }

    /// Begins or ends a turn after a line.
    fn follow(&mut self) {
        let unasked = self.setting.assembler.turn() == Some(TurnOrigin::Unasked);
        if self.current.is_none() && unasked {
            self.begin_unasked();
        }
        if self.setting.assembler.hopeless().is_some() {
            self.interrupt();
        }
        self.settle();
    }

    /// Returns the time at which the idle limit is reached.
    fn idle_until(&self) -> Option<Instant> {
        if self.current.is_some() || self.closing {
            return None;
        }
        deadline(self.idle_since?, self.setting.idle?)
    }

    fn is_closed(&self) -> bool {
        self.closing && self.current.is_none()
    }
}

impl Reader for SessionReading {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if self.over {
            return false;
        }
        let mut news = false;
        while let Poll::Ready(command) = self.setting.commands.poll_recv(cx) {
            match command {
                Some(command) => self.command(command),
                None if self.closing => break,
                None => self.command(Command::Close),
            }
            news = true;
        }
        if let Some(current) = &mut self.current
            && current.stop_signals.poll(cx)
        {
            self.interrupt();
            news = true;
        }
        for (request, answer) in self.asking.poll(cx) {
            self.answer(&request, answer);
            news = true;
        }
        news |= self.replies.give_up();
        news |= self.silence.poll(&mut self.setting.assembler);
        if (self.idle_until()).is_some_and(|until| Instant::now() >= until) {
            self.command(Command::CloseIfIdle);
            news = true;
        }
        if news {
            self.settle();
            self.flush();
        }
        news
    }

    fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    fn frame(&mut self, frame: Frame<'_>) {
        if self.failed.is_some() || self.over {
            return;
        }
        let before = self.setting.assembler.out().as_slice().len();
        match frame {
            Frame::Line(line) => self.setting.assembler.line(line),
            Frame::Oversize { bytes, head } => self.setting.assembler.oversize_line(bytes, head),
        }
        self.silence.follow(&mut self.setting.assembler, before);
        self.follow();
    }

    fn lost_output(&mut self, bytes: u64) {
        self.setting.assembler.lost_output(bytes);
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.setting.assembler.record_files()
    }

    /// Returns whether a turn waits for its end. Between turns nothing is read, so that an idle process costs nothing.
    fn wants_record(&self) -> bool {
        self.silence.is_awaited()
    }

    fn record_lines(&mut self, lines: &[String]) {
        for line in lines {
            self.setting.assembler.record_line(line);
        }
    }

    fn notice(&mut self, notice: Notice) {
        self.setting.assembler.runtime_event(notice.event());
    }

    fn flush(&mut self) {
        self.look_for_loss();
        self.commands
            .follow(self.setting.assembler.out().as_slice());
        if let Some(current) = &self.current
            && let Err(error) = current.queue.push(self.setting.assembler.out())
        {
            self.failed.get_or_insert(error);
        }
        if self.failed.is_none() {
            self.failed = self.setting.panicked.error();
        }
        let id = self.setting.assembler.session_id();
        self.setting.known.set_session_id(id);
    }

    fn failed(&self) -> Option<&AgentError> {
        self.failed.as_ref()
    }

    fn stop_wanted(&self) -> Option<Stop> {
        let late = |until: Instant| Instant::now() >= until;
        let is_wanted = self.interrupting.is_some_and(late) || self.force();
        is_wanted.then(|| self.setting.assembler.interruption())
    }

    fn deadline(&self) -> Option<Instant> {
        let until = [
            self.replies.deadline(),
            self.interrupting,
            self.silence.deadline(&self.setting.assembler),
            self.idle_until(),
        ];
        until.into_iter().flatten().min()
    }

    fn force(&self) -> bool {
        (self.current.as_ref()).is_some_and(|current| current.stop_signals.force)
    }

    fn stop_requested(&mut self) {
        self.stopping = true;
        self.setting.known.set_gone();
        self.setting.assembler.stop_requested();
    }

    fn phase(&self) -> Phase {
        if self.is_closed() {
            Phase::Ended
        } else if self.asking.is_empty() {
            self.setting.assembler.phase()
        } else {
            Phase::Asking
        }
    }

    fn limits(&self) -> Limits {
        (self.current.as_ref()).map_or(self.base, |current| current.limits)
    }

    fn since(&self) -> Option<Instant> {
        self.current.as_ref().map(|current| current.since)
    }

    fn is_interrupting(&self) -> bool {
        self.interrupting.is_some()
    }

    fn take_interrupted_commands(&mut self) -> Option<CommandTimes> {
        self.interrupted_commands.take()
    }

    fn take_ended_commands(&mut self) -> Option<CommandTimes> {
        self.ended_commands.take()
    }

    fn is_in_turn(&self) -> bool {
        self.current.is_some()
    }

    fn has_ended(&self) -> bool {
        self.is_closed()
    }

    fn used_tools(&self) -> bool {
        // In any of its turns. Their background processes are searched when the process ends.
        true
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn finish(&mut self, exit: Exit, _: Duration) {
        self.over = true;
        self.setting.known.set_gone();
        self.setting.commands.close();
        self.asking.withdraw_all();
        if let Some(current) = self.current.take() {
            let assembler = &mut self.setting.assembler;
            self.setting.known.set_session_id(assembler.session_id());
            let duration = millis(current.begun.elapsed());
            let finish = || assembler.finish(exit, duration);
            let finished = catch_unwind(AssertUnwindSafe(finish)).is_ok();
            self.look_for_loss();
            if finished {
                current.queue.close(self.setting.assembler.out());
            } else {
                let mut out = Events::new();
                for event in teamster_core::provider::RunAssembler::refuse(panic_error()) {
                    out.push(event);
                }
                current.queue.close(&mut out);
            }
        }
        self.setting.known.set_in_turn(false);
        // Dropping the channels reports to waiting callers that there will be no outcome.
        self.replies.clear();
        self.waiting = None;
        while let Ok(command) = self.setting.commands.try_recv() {
            drop(command);
        }
    }
}
