//! One turn, from its prompt to its end.

use teamster_core::provider::RunAssembler;
use teamster_core::{AgentEvent, EventStream, NoticeLevel, RunResult, TextLedger};

use super::AgentLoop;
use crate::machine::Prompt;
use crate::settings::AdapterKind;

/// How a tick was played.
pub(super) struct Played {
    pub(super) result: RunResult,
    pub(super) overran: bool,
    pub(super) stopped: bool,
}

impl AgentLoop {
    /// Plays a turn to its end, at most as long as it may take.
    pub(super) async fn play(&mut self, prompt: Prompt) -> Played {
        let mut played = Played {
            result: RunResult::default(),
            overran: false,
            stopped: false,
        };
        let text = self.prompts.text(prompt).to_owned();
        let mut stream = match self.adapter.tick(&text) {
            Ok(stream) => stream,
            Err(error) => {
                for event in RunAssembler::refuse(error) {
                    if let AgentEvent::Done(done) = event {
                        played.result = *done.result;
                    }
                }
                return played;
            }
        };
        // The text of a process that stays is in its session; of one that goes, this is all that is left.
        let goes = self.settings.adapter_kind() == AdapterKind::Cold;
        let clock = self.clock.clone();
        let mut limit = clock.sleep(self.settings.turn_limit);
        let control = self.control.clone();
        let mut said = TextLedger::without_text();
        let result = loop {
            tokio::select! {
                biased;
                () = control.stopping() => {
                    played.stopped = true;
                    stream.abort();
                    let (result, ()) = tokio::join!(result_of(&mut stream), self.adapter.end());
                    break result;
                }
                () = &mut limit, if !played.overran => {
                    let seconds = self.settings.turn_limit.as_secs();
                    self.log.line(format!("the turn takes longer than {seconds} s: interrupting it"));
                    played.overran = true;
                    stream.abort();
                }
                event = next(&mut stream) => match event {
                    Some(AgentEvent::Done(done)) => break *done.result,
                    Some(event) => {
                        if goes {
                            said.event(&event);
                        }
                        self.event(&event);
                    }
                    None => break RunResult::default(),
                },
            }
        };
        for (_, text) in said.pieces_of(&result.text) {
            self.log.lines("> ", text);
        }
        played.result = result;
        played
    }

    fn event(&mut self, event: &AgentEvent) {
        let runtime = self.settings.name();
        match event {
            AgentEvent::Session(session) => {
                let id = session.session_id.clone();
                if self.written_session.as_ref() != Some(&id) {
                    self.log.line(format!("session_id={id}"));
                }
                self.note_session(Some(id));
            }
            AgentEvent::Notice(notice) if notice.level != NoticeLevel::Info => {
                self.log.line(format!("{runtime}: {}", notice.message));
            }
            AgentEvent::Retry(retry) => {
                let message = &retry.error.message;
                self.log.line(format!(
                    "{runtime} tries again ({}): {message}",
                    retry.attempt
                ));
            }
            _ => {}
        }
    }
}

/// The next event. Of a CLI that prints without end there is always one: now and then it is kept back, so that
/// other branches of a `select!` have their turn. Cancel-safe.
async fn next(stream: &mut EventStream) -> Option<AgentEvent> {
    tokio::task::coop::consume_budget().await;
    stream.next().await
}

/// Reads a stream to its end. Cancel-safe.
pub(super) async fn result_of(stream: &mut EventStream) -> RunResult {
    while let Some(event) = next(stream).await {
        if let AgentEvent::Done(done) = event {
            return *done.result;
        }
    }
    RunResult::default()
}
