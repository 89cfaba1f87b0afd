//! Playback of a script. [`RunAssembler`] keeps the state (text, open tools, result), as it does for real
//! runs. Events reach it through a decoder that only forwards them.

use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard};

use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, RunAssembler, Stop};
use teamster_core::sync::lock;
use teamster_core::time::millis;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, CostSource, Decision, ErrorCode, ErrorKind, LogEntry,
    NoticeLevel, NoticeSource, PermissionAnswer, PermissionEvent, PermissionPolicy,
    PermissionRequest, ToolResult, Usage,
};
use tokio::time::{Instant, sleep};

use super::script::{Ending, Script, Step};

/// The next step of a run.
pub(super) enum Next {
    /// Events, after which the run continues.
    Events(Vec<LogEntry>),
    /// Events that end the run.
    End(Vec<LogEntry>),
}

/// Playback of one script.
pub(super) struct Play {
    script: Script,
    hand: Hand,
    assembler: Option<RunAssembler>,
    policy: PermissionPolicy,
    /// One for the whole run, because it counts events.
    out: Events,
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    started: Instant,
}

impl Play {
    pub(super) fn new(script: Script, include_native: bool, policy: PermissionPolicy) -> Self {
        let hand = Hand::default();
        let decoder = Box::new(HandsOn(hand.clone()));
        Self {
            script,
            hand,
            // The script decides how the run ends.
            assembler: Some(
                RunAssembler::new(decoder)
                    .include_native(include_native)
                    .may_be_silent(true),
            ),
            policy,
            out: Events::new(),
            usage: None,
            cost_usd: None,
            started: Instant::now(),
        }
    }

    /// Waits for the script's next events, or until an abort.
    pub(super) async fn next(&mut self, abort: &AbortHandle) -> Next {
        loop {
            if abort.is_aborted() {
                if !self.script.stop_takes.is_zero() {
                    tokio::select! {
                        biased;
                        () = abort.killed() => {}
                        () = sleep(self.script.stop_takes) => {}
                    }
                }
                return Next::End(self.aborted());
            }
            match self.script.steps.pop_front() {
                Some(Step::Event(event)) => return Next::Events(self.emit(event)),
                Some(Step::Ask(request, output)) => {
                    let answer = tokio::select! {
                        biased;
                        () = abort.aborted() => continue,
                        answer = answer(&self.policy, (*request).clone()) => answer,
                    };
                    return Next::Events(self.answered(*request, &answer, output));
                }
                Some(Step::Delay(time)) => tokio::select! {
                    biased;
                    () = abort.aborted() => {}
                    () = sleep(time) => {}
                },
                Some(Step::WaitForAbort) => abort.aborted().await,
                Some(Step::Hang) => pending().await,
                Some(Step::Panic(message)) => panic!("{message}"),
                None => return Next::End(self.end()),
            }
        }
    }

    /// Emits an event of the script.
    fn emit(&mut self, mut event: AgentEvent) -> Vec<LogEntry> {
        match &mut event {
            AgentEvent::SessionStarted(session) if session.model.is_none() => {
                session.model.clone_from(&self.script.figures.model);
            }
            AgentEvent::Usage(report) => {
                self.usage = Some(report.usage);
                self.cost_usd = report.cost_usd.or(self.cost_usd);
            }
            AgentEvent::TurnEnd(end) => self.cost_usd = end.cost_usd.or(self.cost_usd),
            _ => {}
        }
        self.push(event);
        self.out.drain_entries(0).collect()
    }

    /// Returns the events after the answer to a permission request.
    fn answered(
        &mut self,
        request: PermissionRequest,
        answer: &PermissionAnswer,
        output: String,
    ) -> Vec<LogEntry> {
        let (decision, reason) = match answer {
            PermissionAnswer::Deny(reason) => (Decision::Denied, reason.clone()),
            _ => (Decision::Allowed, None),
        };
        let denied = decision == Decision::Denied;
        let mut permission = PermissionEvent::new(request.tool_name, decision);
        permission.tool_id.clone_from(&request.tool_id);
        permission.reason = reason;
        self.push(AgentEvent::Permission(Box::new(permission)));
        if let Some(id) = request.tool_id {
            let output = if denied { "denied".to_owned() } else { output };
            let mut result = ToolResult::new(id, output);
            result.is_error = Some(denied);
            self.push(AgentEvent::ToolResult(Box::new(result)));
        }
        self.out.drain_entries(0).collect()
    }

    fn push(&mut self, event: AgentEvent) {
        let Some(assembler) = &mut self.assembler else {
            return;
        };
        // The line of a CLI that prints events in teamster's format.
        let line = serde_json::to_vec(&event).unwrap_or_else(|_| b"{}".to_vec());
        let name = event.type_name();
        let is_unknown = matches!(event, AgentEvent::Unknown(_));
        self.hand.lock().event = Some(event);
        assembler.line(&line, &mut self.out);
        let refused =
            !is_unknown && matches!(self.out.as_slice().last(), Some(AgentEvent::Unknown(_)));
        if refused {
            let why = match name {
                "tool_use" => "its tool id was used before in this run",
                "tool_result" => "no tool call of this id is open",
                _ => "it is made by the runtime; use an ending such as `completed`",
            };
            let message = format!("the script has a `{name}` that cannot be in a stream: {why}");
            self.out
                .notice(NoticeLevel::Warning, NoticeSource::Runtime, message);
        }
    }

    /// Ends the run as the script defines.
    fn end(&mut self) -> Vec<LogEntry> {
        let mut exit = Exit::default();
        let mut summary = std::mem::take(&mut self.script.figures);
        match std::mem::take(&mut self.script.ending) {
            Ending::Completed => {
                summary.ended_with_error = Some(false);
                exit.code = Some(0);
            }
            Ending::Failed(error) => {
                self.push(error.into());
                summary.ended_with_error = Some(true);
                exit.code = Some(1);
            }
            Ending::TimedOut(error) => exit = stopped(Stop::Timeout(error)),
            Ending::Incomplete => {
                // Reported here, because the assembler reports no other error after one of the script's.
                let error = AgentError::new(
                    ErrorCode::StreamEndedEarly,
                    ErrorKind::Protocol,
                    "the mock's output ended before its run was over, as scripted",
                );
                self.push(error.into());
                exit.code = Some(0);
            }
            Ending::BreaksOff => return Vec::new(),
        }
        self.finish(exit, summary)
    }

    /// Ends a run that its caller aborted.
    fn aborted(&mut self) -> Vec<LogEntry> {
        self.finish(stopped(Stop::Aborted), DecodedResult::default())
    }

    fn finish(&mut self, exit: Exit, mut summary: DecodedResult) -> Vec<LogEntry> {
        let reported = self.cost_usd.map(|usd| (usd, CostSource::Reported));
        summary.usage = summary.usage.or(self.usage);
        summary.cost = summary.cost.or(reported);
        self.hand.lock().summary = summary;
        if let Some(assembler) = self.assembler.take() {
            assembler.finish(exit, millis(self.started.elapsed()), &mut self.out);
        }
        let mut events: Vec<_> = self.out.drain_entries(0).collect();
        if let Some(AgentEvent::Done(done)) = events.last_mut().map(|last| &mut last.event) {
            for adjust in &self.script.adjust {
                (adjust.0)(&mut done.result);
            }
        }
        events
    }
}

/// Asks the policy for its answer.
pub(super) async fn answer(
    policy: &PermissionPolicy,
    request: PermissionRequest,
) -> PermissionAnswer {
    match policy {
        PermissionPolicy::Allow => PermissionAnswer::Allow,
        PermissionPolicy::Ask(ask) => ask(request).await,
        _ => PermissionAnswer::deny("no permission handler is set"),
    }
}

/// Returns the exit of a process that obeyed a signal.
fn stopped(why: Stop) -> Exit {
    Exit {
        signal: Some("SIGTERM".to_owned()),
        stop: Some(why),
        ..Exit::default()
    }
}

/// Input of the decoder in addition to the line.
#[derive(Clone, Default)]
struct Hand(Arc<Mutex<InHand>>);

#[derive(Default)]
struct InHand {
    event: Option<AgentEvent>,
    summary: DecodedResult,
}

impl Hand {
    fn lock(&self) -> MutexGuard<'_, InHand> {
        lock(&self.0)
    }
}

/// A decoder that forwards its input.
struct HandsOn(Hand);

impl Decoder for HandsOn {
    fn line(&mut self, _line: &[u8], out: &mut Events) {
        match self.0.lock().event.take() {
            // Reported this way so that it is counted.
            Some(AgentEvent::Unknown(unknown)) => out.unknown(unknown.native.get().as_bytes()),
            Some(event) => out.push(event),
            None => {}
        }
    }

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        std::mem::take(&mut self.0.lock().summary)
    }
}
