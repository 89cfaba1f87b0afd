//! A minimal CLI that is kept for many turns, and its provider.

use std::sync::Arc;

use serde_json::{Value, json};
use teamster_core::provider::{
    CommandId, DecodedResult, Decoder, Events, Exit, Launch, OffersProtocol, OffersQuery, Outbox,
    SessionCommand, SessionProtocol, Stdin,
};
use teamster_core::{
    AgentError, AgentEvent, AgentSession, Capabilities, CliInfo, CliProvider, Decision, ErrorCode,
    ErrorKind, EventStream, ExecuteParams, Id, Image, ImageSource, PermissionAnswer,
    PermissionEvent, PermissionRequest, SessionCapabilities, SessionOptions, SessionProvider,
    SessionRuntime, ToolKind, Turn,
};
use teamster_process::{CliRuntime, RuntimeConfig};

use crate::engine::provider::{Fake, Lines};
use crate::engine::{Run, Story, finish, finish_after, next};

/// A CLI that is kept for many turns. It prints `$1`, or else `fresh`, as its session's id. With `$2`, which
/// requests a fork, it does not print the id at its start.
pub(super) const TALKER: &str = r#"
id=${1:-fresh}
say() { printf '{"t":"%s"}\n' "$1"; }
end() { printf '{"end":false}\n'; }
[ -z "$2" ] && printf '{"s":"%s"}\n' "$id"
while IFS= read -r line; do
  [ -n "$FORGETS" ] && [ -n "$1" ] && line=lost
  case $line in
    lost) printf '{"lost":1}\n'; printf '{"end":true}\n' ;;
    *'"prompt":"pid"'*) say $$; end ;;
    *'"prompt":"id"'*) say "$id"; end ;;
    *'"prompt":"wait"'*) say "waiting $$" ;;
    *'"prompt":"deaf"'*) say "waiting $$"; trap '' TERM; while :; do sleep 1; done ;;
    *'"prompt":"flood"'*)
      say "waiting $$"; IFS= read -r line
      while :; do printf '{"t":"%04096d"}\n' 0; done ;;
    *'"prompt":"polite"'*)
      say "waiting $$"; trap 'printf "{\"end\":true}\n"; exit' TERM; while :; do sleep 0.02; done ;;
    *'"prompt":"stay"'*) say $$; end; while :; do sleep 0.05; done ;;
    *'"prompt":"die"'*) exit 3 ;;
    *'"prompt":"leave"'*) say $$; end; exit 0 ;;
    *'"prompt":"ask"'*) printf '{"ask":"Write"}\n' ;;
    *'"prompt":"warn"'*) echo first >&2; say $$; end; echo "second after it" >&2 ;;
    *'"prompt":"later"'*) say now; end; sleep 0.05; say "by the way"; end ;;
    *'"prompt":"child"'*) sleep 1000 >/dev/null 2>&1 & say "$!"; end ;;
    *'"prompt":"commands"'*)
      setsid sleep 1000 >/dev/null 2>&1 & server=$!
      sleep 1.2
      printf '{"u":"1"}\n'; sleep 0.2
      setsid sleep 1000 >/dev/null 2>&1 & kept=$!
      sleep 0.1; printf '{"r":"1"}\n'; sleep 0.2
      printf '{"u":"2"}\n'; sleep 0.1
      sleep 1000 >/dev/null 2>&1 & own=$!
      setsid sleep 1000 >/dev/null 2>&1 & tool=$!
      left=$(setsid sh -c 'trap "" TERM; sleep 1000 >/dev/null 2>&1 & echo $!')
      say "waiting $server $kept $own $tool $left" ;;
    *'"prompt":"late '*) late=${line#*late }; late=${late%%\"*}; printf '{"u":"1"}\n'; say "waiting $$" ;;
    *'"prompt":"early '*) late=${line#*early }; late=${late%%\"*}; say "waiting $$" ;;
    *'"prompt":"args"'*) say "$*"; end ;;
    *'"say":"'*) line=${line#*:\"}; say "${line%%\"*}"; end ;;
    *'"answer":"yes"'*) say allowed; end ;;
    *'"answer":"no"'*) say denied; end ;;
    *'"stop"'*) printf '{"cut":1}\n'; printf '{"end":true}\n'
      [ -n "$late" ] && sleep 0.03 && setsid sh -c 'echo $$ > "$1"; exec sleep 1000' sh "$late" >/dev/null 2>&1 &
      late= ;;
    *'"steer"'*) say steered; end ;;
    *'"clear"'*) id=cleared; printf '{"cleared":"cleared"}\n' ;;
    *'"model":"good"'*) printf '{"done":1}\n' ;;
    *'"model"'*) printf '{"refused":1}\n' ;;
    *'"close"'*) [ -n "$CLOSED" ] && : > "$CLOSED" ;;
  esac
done
"#;

#[derive(Clone)]
pub(super) struct Talker {
    fake: Fake,
    pub(super) capabilities: SessionCapabilities,
    /// Whether the CLI opens image files itself.
    pub(super) opens_image_files: bool,
    /// Creates the protocol of a process that is only asked.
    pub(super) query: Option<Arc<dyn Fn() -> OffersProtocol + Send + Sync>>,
}

impl CliProvider for Talker {
    fn info(&self) -> &'static CliInfo {
        self.fake.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.fake.capabilities()
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.fake.launch(params)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        self.fake.decoder(params)
    }
}

impl SessionProvider for Talker {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &self.capabilities
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        let mut launch = self.fake.launch(&options.params)?;
        launch.stdin = Stdin::Open(Vec::new());
        launch
            .args
            .extend(options.params.session_id.iter().map(Into::into));
        if options.params.fork {
            launch.args.push("fork".into());
        }
        Ok(launch)
    }

    fn opens_image_files(&self) -> bool {
        self.opens_image_files
    }

    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        let Some(query) = &self.query else {
            return Ok(None);
        };
        let launch = self.launch_session(options)?;
        Ok(Some(OffersQuery::new(launch, query())))
    }

    fn protocol(&self, _: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(Talk::default())
    }
}

#[derive(Default)]
pub(super) struct Talk {
    lines: Lines,
    outbox: Outbox,
    session_id: Option<Id>,
    cut: bool,
    command: Option<CommandId>,
}

impl Decoder for Talk {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let value: Value = serde_json::from_slice(line).unwrap_or_default();
        if let Some(id) = value["s"].as_str() {
            self.session_id = Some(id.into());
        }
        if let Some(id) = value["cleared"].as_str() {
            self.session_id = Some(id.into());
            self.settle(Ok(()));
        } else if value["done"] == 1 {
            self.settle(Ok(()));
        } else if value["refused"] == 1 {
            self.settle(Err(AgentError::invalid_params("refused")));
        } else if value["lost"] == 1 {
            out.error(AgentError::new(
                ErrorCode::CliError,
                ErrorKind::SessionNotFound,
                "no such session",
            ));
        } else if value["cut"] == 1 {
            self.cut = true;
        } else if let Some(tool) = value["ask"].as_str() {
            out.push(PermissionEvent::new(tool, Decision::Requested));
            let request = PermissionRequest::new(1, tool, ToolKind::Edit, json!({}));
            self.outbox.ask(request);
        } else {
            self.lines.line(line, out);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.lines.finish(exit, out)
    }
}

/// Returns what the protocol sees of an image.
fn shown(image: &Image) -> String {
    match &image.source {
        ImageSource::Path(path) => path.display().to_string(),
        _ => String::from_utf8_lossy(image.in_memory().unwrap()).into_owned(),
    }
}

impl Talk {
    fn settle(&mut self, result: Result<(), AgentError>) {
        if let Some(command) = self.command.take() {
            self.outbox.answer(command, result);
        }
    }
}

impl SessionProtocol for Talk {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn command(&mut self, command: SessionCommand, _: &mut Events) {
        let message = match command {
            SessionCommand::Turn(turn) => {
                assert_ne!(turn.prompt, "panic", "as the test wants it");
                self.lines = Lines::default();
                self.cut = false;
                match turn.images.first() {
                    Some(image) => json!({"say": shown(image)}),
                    None => json!({"prompt": turn.prompt}),
                }
            }
            SessionCommand::Interrupt => json!({"stop": 1}),
            SessionCommand::Steer(id, text) => {
                self.outbox.answer(id, Ok(()));
                json!({"steer": text})
            }
            SessionCommand::Clear(id) => {
                self.command = Some(id);
                json!({"clear": 1})
            }
            SessionCommand::SetModel(id, model) => {
                self.command = Some(id);
                json!({"model": model})
            }
            SessionCommand::Answer(1, PermissionAnswer::Allow) => json!({"answer": "yes"}),
            SessionCommand::Answer(1, _) => json!({"answer": "no"}),
            SessionCommand::Close => json!({"close": 1}),
            _ => return,
        };
        self.outbox.write(&message);
    }

    fn unsupported_answer(&self, _: u64, answer: &PermissionAnswer) -> Option<String> {
        matches!(answer, PermissionAnswer::AllowWith(_)).then(|| "no other input".into())
    }

    fn interrupted(&self) -> bool {
        self.cut
    }

    fn session_id(&self) -> Option<Id> {
        self.session_id.clone()
    }
}

pub(super) const ALL: SessionCapabilities = {
    let mut all = SessionCapabilities::none();
    all.interrupt = true;
    all.steer = true;
    all.clear = true;
    all.set_model = true;
    all.permissions = true;
    all.unasked = true;
    all.images = true;
    all
};

pub(super) struct Prepared {
    pub(super) talker: Talker,
    pub(super) config: RuntimeConfig,
    pub(super) options: SessionOptions,
}

pub(super) fn prepared() -> Prepared {
    let run = Run::of(Launch {
        args: vec!["-c".into(), TALKER.into(), "talker".into()],
        ..Launch::default()
    });
    let mut config = run.config;
    config.program = Some("/bin/sh".into());
    Prepared {
        talker: Talker {
            fake: run.provider,
            capabilities: ALL,
            opens_image_files: false,
            query: None,
        },
        config,
        options: SessionOptions::default(),
    }
}

impl Prepared {
    pub(super) fn open(self) -> Box<dyn AgentSession> {
        let runtime = CliRuntime::with_config(self.talker, self.config);
        runtime.open(self.options).unwrap()
    }
}

pub(super) async fn say(session: &dyn AgentSession, prompt: &str) -> Story {
    finish(session.send(Turn::new(prompt))).await
}

pub(super) async fn pid(session: &dyn AgentSession) -> u32 {
    say(session, "pid").await.result.text.parse().unwrap()
}

/// A turn that is in progress.
pub(super) struct Waiting {
    seen: Vec<AgentEvent>,
    pub(super) rest: EventStream,
}

impl Waiting {
    pub(super) async fn finish(self) -> Story {
        finish_after(self.seen, self.rest).await
    }
}

/// Starts a turn that waits. Returns the turn and its process.
pub(super) async fn waiting(session: &dyn AgentSession, prompt: &str) -> (Waiting, u32) {
    let mut rest = session.send(Turn::new(prompt));
    let mut seen = Vec::new();
    loop {
        let event = next(&mut rest).await;
        seen.push(event.clone());
        if let AgentEvent::Text(text) = event {
            let pid = text.text.strip_prefix("waiting ").unwrap();
            return (Waiting { seen, rest }, pid.parse().unwrap());
        }
    }
}
