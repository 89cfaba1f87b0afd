//! GitHub Copilot CLI, with one process per turn.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;

use super::act::Act;
use super::chance::Chance;
use super::lines::Tokens;
use super::signals::{self, Ears};
use super::state::State;
use super::witness::{TurnFigures, What, Witness, iso};
use super::{Ending, flag};

const MODEL: &str = "mock-model";

/// The program's own record of a session, and stdout.
#[derive(Debug)]
struct Record {
    file: PathBuf,
    session: String,
    /// Generator of the lines' ids.
    ids: Chance,
}

impl Record {
    fn line(&mut self, kind: &str, data: &Value) -> Value {
        let id = self.ids.uuid();
        json!({"type": kind, "data": data, "id": id, "timestamp": iso(epoch_ms()), "parentId": null})
    }

    /// Prints a line on stdout, and records it unless it is transient.
    fn say(&mut self, kind: &str, data: &Value) -> io::Result<()> {
        let mut line = self.line(kind, data);
        let passes = matches!(
            kind,
            "assistant.message_start" | "assistant.message_delta" | "assistant.idle"
        );
        if passes {
            line["ephemeral"] = json!(true);
        } else {
            self.append(&line)?;
        }
        print(&line);
        Ok(())
    }

    /// Records a line without printing it.
    fn note(&mut self, kind: &str, data: &Value) -> io::Result<()> {
        let line = self.line(kind, data);
        self.append(&line)
    }

    fn append(&self, line: &Value) -> io::Result<()> {
        let mut file = File::options().append(true).create(true).open(&self.file)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Records the session's figures, which are sums over all its runs.
    fn shut_down(&mut self) -> io::Result<()> {
        let text = fs::read_to_string(&self.file)?;
        let usages = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["type"] == "session.usage_record")
            .map(|line| line["data"]["usage"].clone());
        let (mut count, mut sums) = (0, [0; 3]);
        for usage in usages {
            count += 1;
            for (sum, name) in
                sums.iter_mut()
                    .zip(["inputTokens", "outputTokens", "cacheReadTokens"])
            {
                *sum += usage[name].as_u64().unwrap_or_default();
            }
        }
        self.note(
            "session.shutdown",
            &json!({
                "shutdownType": "routine",
                "totalPremiumRequests": 0,
                "currentModel": MODEL,
                "modelMetrics": {MODEL: {
                    "requests": {"count": count, "cost": 0},
                    "usage": {"inputTokens": sums[0], "outputTokens": sums[1],
                        "cacheReadTokens": sums[2], "cacheWriteTokens": 0, "reasoningTokens": 0},
                }},
            }),
        )
    }

    fn result(&self) {
        print(&json!({
            "type": "result",
            "timestamp": iso(epoch_ms()),
            "sessionId": self.session,
            "exitCode": 0,
            "usage": {"premiumRequests": 0, "totalApiDurationMs": 10, "sessionDurationMs": 20,
                "codeChanges": {"linesAdded": 0, "linesRemoved": 0, "filesModified": []}},
        }));
    }

    /// Prints and records the end of a turn that a signal interrupted.
    fn abort(&mut self) -> io::Result<()> {
        self.say("abort", &json!({"reason": "user_initiated"}))?;
        self.say("assistant.turn_end", &json!({"turnId": "0"}))?;
        self.say("assistant.idle", &json!({"aborted": true}))?;
        self.shut_down()?;
        self.result();
        Ok(())
    }
}

fn print(line: &Value) {
    let mut out = io::stdout().lock();
    // Continues after its reader has gone away.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn refuse(words: &str) -> u8 {
    // The reader may be gone.
    let _ = writeln!(io::stderr(), "{words}");
    1
}

pub(super) fn run(mut state: State) -> Ending {
    let shared: Arc<Mutex<Option<Record>>> = Arc::default();
    let witness = Witness::open(state.plan.witness()).map_err(|error| error.to_string())?;
    let ears = signals::watch({
        let shared = Arc::clone(&shared);
        move |signal| {
            // The process ends whether or not this can be written.
            let _ = witness.saw(What::End {
                why: signal.as_str().to_owned(),
            });
            // Never released: the turn prints nothing more.
            let mut record = lock(&shared);
            if let Some(record) = record.as_mut() {
                let _ = record.abort();
            }
            exit(0);
        }
    })?;
    let resumes = flag(&state.args, "--resume").map(str::to_owned);
    let given = flag(&state.args, "--session-id").map(str::to_owned);
    state.begin(resumes.as_deref())?;
    if let Some(id) = resumes.as_deref().filter(|id| !state.knows(id)) {
        state.saw(What::Refused {
            session: id.to_owned(),
        })?;
        return Ok(refuse(&format!(
            "Error: No session, task, or name matched '{id}'.\n\n\
             To resume by session or task ID:  copilot --resume=<id>\n\
             To start a new session with ID:   copilot --session-id=<valid-uuid>"
        )));
    }
    let mut prompt = flag(&state.args, "--prompt").unwrap_or_default().to_owned();
    if prompt.is_empty() {
        // Unreadable input counts as no prompt.
        let _ = io::stdin().read_to_string(&mut prompt);
    }
    if prompt.trim().is_empty() {
        return Ok(refuse("No prompt provided."));
    }
    let is_new = resumes.is_none() && !given.as_deref().is_some_and(|id| state.knows(id));
    let session = match resumes.or(given) {
        Some(session) => session,
        None => state.uuid(),
    };
    let home = match std::env::var_os("COPILOT_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(std::env::var_os("HOME").ok_or("HOME is not set")?).join(".copilot"),
    };
    let folder = home.join("session-state").join(&session);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    *lock(&shared) = Some(Record {
        file: folder.join("events.jsonl"),
        session: session.clone(),
        ids: state.ids(),
    });
    let run = Run {
        state,
        ears,
        shared,
        session,
    };
    run.turn(&prompt, is_new)
}

struct Run {
    state: State,
    ears: Ears,
    shared: Arc<Mutex<Option<Record>>>,
    session: String,
}

impl Run {
    /// Changes the record. A signal cannot interrupt the change.
    fn record<T>(&self, act: impl FnOnce(&mut Record) -> io::Result<T>) -> Result<T, String> {
        let mut record = lock(&self.shared);
        let record = record.as_mut().ok_or("no record")?;
        act(record).map_err(|error| format!("{}: {error}", record.file.display()))
    }

    fn turn(self, prompt: &str, is_new: bool) -> Ending {
        let turn = self
            .state
            .message(prompt, &self.session)?
            .unwrap_or_default();
        self.state.remember(&self.session)?;
        let (acts, ms) = self.state.planned(turn);
        self.record(|record| {
            let (kind, data) = begun(&record.session, &self.state.folder, is_new);
            record.note(kind, &data)?;
            record.say(
                "user.message",
                &json!({"content": prompt, "delivery": "idle"}),
            )?;
            record.say("assistant.turn_start", &json!({"turnId": "0"}))
        })?;
        if acts.contains(&Act::Die) {
            self.state.die(Act::Die)?;
        }
        // Includes the tokens that were read from a cache.
        let tokens = Tokens {
            input: 1005 + turn,
            output: 20,
            cache_read: 5,
        };
        let command = State::commands(&acts);
        let mut used = Tokens::default();
        if !command.is_empty() {
            self.use_tool(&acts, turn, &command, tokens)?;
            used = tokens;
        }
        if acts.contains(&Act::Child) {
            self.state.child(turn)?;
        }
        if acts.contains(&Act::DieAfter) {
            self.state.die(Act::DieAfter)?;
        }
        for act in [Act::Hang, Act::Deaf, Act::Late] {
            if acts.contains(&act) {
                self.state.saw(What::Will { act })?;
                if act == Act::Deaf {
                    self.ears.close();
                }
                thread::sleep(Duration::from_hours(24));
            }
        }
        thread::sleep(Duration::from_millis(ms));
        let text = format!("Turn {turn} is done.");
        self.record(|record| {
            let id = format!("message-{turn}");
            record.say("assistant.message_start", &json!({"messageId": id}))?;
            let delta = json!({"messageId": id, "deltaContent": text});
            record.say("assistant.message_delta", &delta)?;
            record.say(
                "assistant.message",
                &json!({"messageId": id, "model": MODEL, "content": text, "toolRequests": []}),
            )?;
            record.note("session.usage_record", &usage_record(tokens))?;
            record.say("assistant.turn_end", &json!({"turnId": "0"}))?;
            record.say("assistant.idle", &json!({}))?;
            record.shut_down()
        })?;
        used = used.plus(tokens);
        self.state.saw(What::Result(TurnFigures {
            turn,
            session: self.session.clone(),
            interrupted: false,
            input_tokens: used.input - used.cache_read,
            output_tokens: used.output,
            cache_read_tokens: used.cache_read,
            cost_micro_usd: 0,
        }))?;
        self.record(|record| {
            record.result();
            Ok(())
        })?;
        self.state.saw(What::Ended { turn })?;
        Ok(0)
    }

    fn use_tool(
        &self,
        acts: &[Act],
        turn: u64,
        command: &str,
        tokens: Tokens,
    ) -> Result<(), String> {
        let id = format!("call_{turn}");
        let arguments = json!({"command": command, "description": "end of the tick"});
        self.record(|record| {
            record.say(
                "assistant.message",
                &json!({"messageId": format!("before-{turn}"), "model": MODEL, "content": "",
                    "toolRequests": [{"toolCallId": id, "name": "bash", "arguments": arguments,
                        "type": "function"}]}),
            )?;
            record.note("session.usage_record", &usage_record(tokens))?;
            record.say(
                "tool.execution_start",
                &json!({"toolCallId": id, "toolName": "bash", "arguments": arguments,
                    "turnId": "0", "model": MODEL}),
            )
        })?;
        self.state.change_files(acts, turn)?;
        self.record(|record| {
            record.say(
                "tool.execution_complete",
                &json!({"toolCallId": id, "model": MODEL, "turnId": "0",
                    "shellExecution": {"exitCode": 0}, "success": true,
                    "result": {"content": "<shellId: 0 completed with exit code 0>"}}),
            )
        })
    }
}

/// Returns the line that begins or resumes a session. Its `sessionLimits` tell readers that the sums at the
/// end are those of the session.
fn begun(session: &str, folder: &Path, is_new: bool) -> (&'static str, Value) {
    let context = json!({"cwd": folder});
    if is_new {
        let data = json!({"sessionId": session, "version": 1, "producer": "copilot-agent",
            "copilotVersion": "1.0.102", "startTime": iso(epoch_ms()), "selectedModel": MODEL,
            "context": context, "alreadyInUse": false});
        return ("session.start", data);
    }
    let data = json!({"resumeTime": iso(epoch_ms()), "selectedModel": MODEL, "sessionLimits": null,
        "context": context, "alreadyInUse": false, "sessionWasActive": false});
    ("session.resume", data)
}

fn usage_record(tokens: Tokens) -> Value {
    json!({"usage": {"model": MODEL, "inputTokens": tokens.input, "outputTokens": tokens.output,
        "cacheReadTokens": tokens.cache_read, "cacheWriteTokens": 0, "reasoningTokens": 0,
        "cost": 0.0, "initiator": "user"}})
}
