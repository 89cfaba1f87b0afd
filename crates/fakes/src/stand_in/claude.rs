//! The stand-in's process: turns from stdin, or one from the arguments.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::act::Act;
use super::input::{Input, prompt, read};
use super::lines::{At, End, Tokens, response, unknown, unknown_words};
use super::signals::{self, Ears};
use super::state::State;
use super::witness::{TurnFigures, What, Witness};
use super::{Ending, flag};

/// Time that a turn continues after a late reaction to an interrupt.
const LATE: Duration = Duration::from_millis(400);

/// Outcome of a wait.
#[derive(Debug, PartialEq, Eq)]
enum Went {
    On,
    Interrupted,
    Ended(u8),
}

struct Claude {
    state: State,
    ears: Ears,
    input: Receiver<Input>,
    /// Messages that arrived during another turn.
    waiting: VecDeque<Input>,
    model: String,
    folder: String,
    session: String,
    /// Total usage of the process.
    total: Tokens,
    partial: bool,
    replays: bool,
    transcripts: Option<PathBuf>,
    failed: bool,
}

pub(super) fn run(mut state: State) -> Ending {
    let witness = Witness::open(state.plan.witness()).map_err(|error| error.to_string())?;
    let ears = signals::watch(move |signal| {
        // If this fails, the entry is lost; the process ends anyway.
        let _ = witness.saw(What::End {
            why: signal.as_str().to_owned(),
        });
        exit(match signal {
            Signal::SIGTERM => 143,
            Signal::SIGHUP => 129,
            _ => 0,
        });
    })?;
    let resumes = flag(&state.args, "--resume").map(str::to_owned);
    state.begin(resumes.as_deref())?;
    if let Some(session) = resumes.as_deref().filter(|id| !state.knows(id)) {
        state.saw(What::Refused {
            session: session.to_owned(),
        })?;
        say(&unknown(session, &state.uuid()));
        // The reader may be gone.
        let _ = writeln!(io::stderr(), "{}", unknown_words(session));
        return Ok(1);
    }
    let model = match flag(&state.args, "--model") {
        Some("opusplan" | "sonnet") => "claude-sonnet-5",
        Some(model) => model,
        None => "claude-opus-4-8",
    }
    .to_owned();
    let has = |name: &str| state.args.iter().any(|arg| arg == name);
    let (partial, replays) = (
        has("--include-partial-messages"),
        has("--replay-user-messages"),
    );
    let input = if has("--input-format=stream-json") {
        read()
    } else {
        prompt(&state.args)?
    };
    let session = match (resumes, flag(&state.args, "--session-id")) {
        (Some(id), _) => id,
        (None, Some(id)) => id.to_owned(),
        (None, None) => state.uuid(),
    };
    let claude = Claude {
        ears,
        input,
        waiting: VecDeque::new(),
        model,
        folder: state.folder.display().to_string(),
        session,
        total: Tokens::default(),
        partial,
        replays,
        transcripts: transcripts(&state.folder),
        failed: false,
        state,
    };
    claude.live()
}

/// Returns the folder of the transcripts of this folder's sessions.
fn transcripts(folder: &Path) -> Option<PathBuf> {
    let config = match std::env::var_os("CLAUDE_CONFIG_DIR") {
        Some(config) => PathBuf::from(config),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".claude"),
    };
    let name: String = folder
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    Some(config.join("projects").join(name))
}

/// Writes a line. Like the real program, continues after its reader has gone away.
fn say(line: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Claude {
    fn live(mut self) -> Ending {
        loop {
            let next = self.waiting.pop_front();
            let Some(input) = next.or_else(|| self.input.recv().ok()) else {
                self.state.saw(What::End {
                    why: "end of input".to_owned(),
                })?;
                return Ok(self.failed.into());
            };
            let ended = match input {
                Input::Message { uuid, text } if text == "/clear" => {
                    self.clear(uuid.as_deref(), &text)?;
                    None
                }
                Input::Message { uuid, text } => self.turn(uuid.as_deref(), &text)?,
                Input::Request { id, subtype, uuid } => {
                    self.obey(&id, &subtype, uuid.as_deref())?
                }
                Input::Garbage(line) => {
                    let _ = writeln!(io::stderr(), "Error parsing streaming input line: {line}");
                    Some(1)
                }
            };
            if let Some(code) = ended {
                return Ok(code);
            }
        }
    }

    /// Executes a control request. Returns the exit code if it ends the process.
    fn obey(&mut self, id: &str, subtype: &str, uuid: Option<&str>) -> Result<Option<u8>, String> {
        let answer = match subtype {
            "cancel_async_message" => {
                let before = self.waiting.len();
                self.waiting.retain(|input| {
                    !matches!(input, Input::Message { uuid: it, .. } if it.as_deref() == uuid)
                });
                Some(json!({"cancelled": self.waiting.len() < before}))
            }
            _ => None,
        };
        say(&response(id, answer));
        if subtype == "end_session" {
            self.state.saw(What::End {
                why: subtype.to_owned(),
            })?;
            return Ok(Some(0));
        }
        Ok(None)
    }

    /// Waits for this time, or forever, unless interrupted.
    fn wait(&mut self, time: Option<Duration>) -> Result<Went, String> {
        let end = time.map(|time| Instant::now() + time);
        loop {
            let left = end.map_or(Duration::from_hours(24), |end| {
                end.saturating_duration_since(Instant::now())
            });
            match self.input.recv_timeout(left) {
                Ok(Input::Request { id, subtype, uuid }) => {
                    if let Some(code) = self.obey(&id, &subtype, uuid.as_deref())? {
                        return Ok(Went::Ended(code));
                    }
                    if subtype == "interrupt" {
                        self.state.saw(What::Interrupted)?;
                        return Ok(Went::Interrupted);
                    }
                }
                Ok(input) => self.waiting.push_back(input),
                Err(RecvTimeoutError::Timeout) => return Ok(Went::On),
                // The turn continues after the end of the input.
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(left);
                    return Ok(Went::On);
                }
            }
        }
    }

    fn at(&self) -> At<'_> {
        At {
            session: &self.session,
            model: &self.model,
            folder: &self.folder,
        }
    }

    fn begin(&mut self, uuid: Option<&str>, text: &str, asks: bool) {
        let ids = [(); 2].map(|()| self.state.uuid());
        say(&self.at().init(&ids[0]));
        if asks && self.partial {
            say(&self.at().status(&ids[1]));
        }
        if let Some(uuid) = uuid.filter(|_| self.replays && asks) {
            let mut line = self.at().user(&json!(text), uuid);
            line["isReplay"] = json!(true);
            say(&line);
        }
    }

    fn clear(&mut self, uuid: Option<&str>, text: &str) -> Result<(), String> {
        self.state.message(text, &self.session)?;
        self.state.before_clear()?;
        let to = self.state.uuid();
        let from = std::mem::replace(&mut self.session, to.clone());
        self.state.remember(&to)?;
        self.state.saw(What::Cleared { from, to })?;
        if self.state.plan.totals_restart {
            self.total = Tokens::default();
        }
        self.begin(uuid, text, false);
        let ids = [(); 3].map(|()| self.state.uuid());
        let nothing = json!({"type": "text", "text": "(no content)"});
        let mut line = self
            .at()
            .assistant(&ids[0], &nothing, Tokens::default(), &ids[1]);
        line["message"]["model"] = json!("<synthetic>");
        say(&line);
        self.result("", Tokens::default(), 0, false);
        Ok(())
    }

    fn result(&mut self, text: &str, usage: Tokens, turns: u64, interrupted: bool) {
        let uuid = self.state.uuid();
        let total = self.total;
        let end = End {
            text,
            interrupted,
            ms: 15,
            turns,
            usage,
            total,
        };
        say(&self.at().result(end, &uuid));
        self.failed = interrupted;
    }

    /// Writes one answer of the model: its blocks of content, streamed and complete.
    fn answer(&mut self, id: &str, blocks: &[Value], tokens: Tokens) -> Result<(), String> {
        let start = json!({"type": "message_start", "message": {
            "id": id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "usage": Tokens { output: 1, ..tokens }.of_the_service(),
        }});
        self.stream(&start);
        for (index, block) in blocks.iter().enumerate() {
            let (empty, delta) = match block["text"].as_str() {
                Some(text) => (
                    json!({"type": "text", "text": ""}),
                    json!({"type": "text_delta", "text": text}),
                ),
                None => {
                    let mut empty = block.clone();
                    empty["input"] = json!({});
                    let input = block["input"].to_string();
                    (
                        empty,
                        json!({"type": "input_json_delta", "partial_json": input}),
                    )
                }
            };
            let start =
                json!({"type": "content_block_start", "index": index, "content_block": empty});
            self.stream(&start);
            self.stream(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
            let uuid = self.state.uuid();
            say(&self.at().assistant(id, block, tokens, &uuid));
            self.write_down(&self.at().written(id, block, tokens, &uuid))?;
            self.stream(&json!({"type": "content_block_stop", "index": index}));
        }
        let stop = match blocks.last() {
            Some(block) if block["type"] == "tool_use" => "tool_use",
            _ => "end_turn",
        };
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": stop},
            "usage": tokens.of_the_service()});
        self.stream(&delta);
        self.stream(&json!({"type": "message_stop"}));
        Ok(())
    }

    fn stream(&mut self, event: &Value) {
        if self.partial {
            let uuid = self.state.uuid();
            say(&self.at().stream(event, &uuid));
        }
    }

    fn write_down(&self, line: &Value) -> Result<(), String> {
        let Some(folder) = &self.transcripts else {
            return Ok(());
        };
        let write = || {
            fs::create_dir_all(folder)?;
            let file = folder.join(format!("{}.jsonl", self.session));
            let mut file = File::options().create(true).append(true).open(file)?;
            file.write_all(format!("{line}\n").as_bytes())
        };
        write().map_err(|error| format!("{}: {error}", folder.display()))
    }

    /// Plays a turn. Returns the exit code if it ends the process.
    fn turn(&mut self, uuid: Option<&str>, text: &str) -> Result<Option<u8>, String> {
        let turn = self.state.message(text, &self.session)?.unwrap_or_default();
        self.state.remember(&self.session)?;
        let (acts, ms) = self.state.planned(turn);
        self.begin(uuid, text, true);
        if acts.contains(&Act::Die) {
            self.state.die(Act::Die)?;
        }
        // Each turn has different figures, so that a test cannot confuse them.
        let mut usage = Tokens {
            input: 1000 + turn,
            output: 20,
            cache_read: 5,
        };
        let command = State::commands(&acts);
        if !command.is_empty() {
            self.use_tool(&acts, turn, &command, usage)?;
        }
        let before = if command.is_empty() {
            Tokens::default()
        } else {
            usage
        };
        if acts.contains(&Act::Child) {
            self.state.child(turn)?;
        }
        if acts.contains(&Act::DieAfter) {
            self.state.die(Act::DieAfter)?;
        }
        let is_to = |act: Act| acts.contains(&act);
        let stays = [Act::Hang, Act::Deaf, Act::Late]
            .into_iter()
            .find(|act| is_to(*act));
        if let Some(act) = stays {
            self.state.saw(What::Will { act })?;
        }
        if stays == Some(Act::Deaf) {
            self.ears.close();
            thread::sleep(Duration::from_hours(24));
        }
        let time = stays.is_none().then_some(Duration::from_millis(ms));
        let went = self.wait(time)?;
        if let Went::Ended(code) = went {
            return Ok(Some(code));
        }
        if stays == Some(Act::Late) {
            thread::sleep(LATE);
        }
        let interrupted = went == Went::Interrupted;
        if interrupted {
            usage = before;
            let id = self.state.uuid();
            let words = json!([{"type": "text", "text": "[Request interrupted by user]"}]);
            say(&self.at().user(&words, &id));
        } else {
            let tokens = usage;
            usage = tokens.plus(before);
            let id = format!("msg_{turn}_2");
            let block = json!({"type": "text", "text": format!("Turn {turn} is done.")});
            self.answer(&id, &[block], tokens)?;
        }
        self.total = self.total.plus(usage);
        let turns = if command.is_empty() { 1 } else { 2 };
        self.state.saw(What::Result(TurnFigures {
            turn,
            session: self.session.clone(),
            interrupted,
            input_tokens: usage.input,
            output_tokens: usage.output,
            cache_read_tokens: usage.cache_read,
            cost_micro_usd: usage.micro_usd(),
        }))?;
        self.result(&format!("Turn {turn} is done."), usage, turns, interrupted);
        self.state.saw(What::Ended { turn })?;
        Ok(None)
    }

    /// Writes a first answer of the model: a tool call.
    fn use_tool(
        &mut self,
        acts: &[Act],
        turn: u64,
        command: &str,
        tokens: Tokens,
    ) -> Result<(), String> {
        let tool = format!("toolu_{turn}");
        let blocks = [
            json!({"type": "text", "text": format!("Turn {turn}: I do it.")}),
            json!({"type": "tool_use", "id": tool, "name": "Bash",
                "input": {"command": command, "description": "end of the tick"}}),
        ];
        self.answer(&format!("msg_{turn}_1"), &blocks, tokens)?;
        self.state.change_files(acts, turn)?;
        let uuid = self.state.uuid();
        let content = json!([{"tool_use_id": tool, "type": "tool_result", "content": "",
            "is_error": false}]);
        let mut line = self.at().user(&content, &uuid);
        line["tool_use_result"] = json!({"stdout": "", "stderr": "", "interrupted": false,
            "isImage": false, "noOutputExpected": true});
        say(&line);
        Ok(())
    }
}
