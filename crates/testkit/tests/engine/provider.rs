//! A minimal provider and decoder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use teamster_core::provider::{
    Activity, ConfigEdit, ConfigLocation, DecodedResult, Decoder, Events, Exit, Launch, RecordFiles,
};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ErrorCode, ErrorKind, ExecuteParams, Id, Image,
    NoticeLevel, NoticeSource, Retry, SessionStarted, Text, ToolKind, ToolResult, ToolUse, TurnEnd,
    Usage,
};

const INFO: CliInfo = {
    let mut info = CliInfo::new("fake", "Fake Agent", "teamster-fake-agent");
    info.install = "cargo install fake";
    info.login = "log in with `fake`";
    info
};

static PLAIN: CliInfo = INFO;

/// A CLI that reports its session only at the end.
static LATE: CliInfo = {
    let mut info = INFO;
    info.choose_session_id = true;
    info
};

/// Provider that returns the launch of the test.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) launch: Launch,
    pub(crate) capabilities: Capabilities,
    pub(crate) choose_session_id: bool,
    /// Location of its record. Without a session id of the caller, the session's name selects it.
    pub(crate) record: Option<RecordFiles>,
    /// Paths to the native program of its launcher.
    pub(crate) native: Vec<PathBuf>,
    /// The additional directories of its last launch.
    pub(crate) add_dirs: Arc<Mutex<Vec<PathBuf>>>,
    /// Whether its launch takes the bytes of images.
    pub(crate) reads_images: bool,
    /// The images of its last launch.
    pub(crate) images: Arc<Mutex<Vec<Image>>>,
}

impl CliProvider for Fake {
    fn info(&self) -> &'static CliInfo {
        if self.choose_session_id {
            &LATE
        } else {
            &PLAIN
        }
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn native_programs(&self, _: &Path) -> Vec<PathBuf> {
        self.native.clone()
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        let mut launch = self.launch.clone();
        self.add_dirs.lock().unwrap().clone_from(&params.add_dirs);
        self.images.lock().unwrap().clone_from(&params.images);
        let leases = |edit: &ConfigEdit| edit.location == ConfigLocation::Lease;
        if params.mcp_servers.is_empty() && launch.config.as_ref().is_some_and(leases) {
            launch.config = None;
        }
        if let Some(id) = &params.new_session_id {
            launch.args.push(id.into());
        }
        Ok(launch)
    }

    fn reads_image(&self, _: &Path) -> bool {
        self.reads_images
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(Lines {
            record: self.record.clone(),
            has_session: params.session_id.is_some(),
            ..Lines::default()
        })
    }
}

/// Decoder of `{"t":…}` text, `{"u":id,"name":…}` tool use, `{"r":id}` tool result, `{"s":…}` session,
/// `{"retry":"auth"}` a retry of the CLI after a wrong key, `{"end":is_error}` end of the turn, `{"end":…,"more":true}`
/// with more to come, `{"panic":0}` and `{"panic":1}` panic immediately and at the end.
#[derive(Default)]
pub(crate) struct Lines {
    ended: Option<bool>,
    more: bool,
    panics_at_the_end: bool,
    record: Option<RecordFiles>,
    has_session: bool,
    recorded: Vec<String>,
}

impl Decoder for Lines {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let Ok(value) = serde_json::from_str::<Value>(&String::from_utf8_lossy(line)) else {
            return out.malformed(line);
        };
        let text = |key: &str| value[key].as_str();
        if text("retry").is_some() {
            let error = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "the key is wrong");
            out.push(Retry::new(1, error));
        } else if let Some(text) = text("t") {
            out.push(Text::new(text));
        } else if let Some(id) = text("u") {
            out.push(ToolUse::new(
                text("name").unwrap_or("Bash"),
                id,
                ToolKind::Execute,
                Value::Null,
            ));
        } else if let Some(id) = text("r") {
            out.push(ToolResult::new(id, String::new()));
        } else if let Some(id) = text("s") {
            self.has_session = true;
            out.push(SessionStarted::new(Id::from(id)));
        } else if let Some(is_error) = value["end"].as_bool() {
            self.ended = Some(is_error);
            self.more = value["more"].as_bool().unwrap_or(false);
            out.push(TurnEnd::new(is_error));
        } else if let Some(at_the_end) = value["panic"].as_u64() {
            assert_ne!(at_the_end, 0, "the decoder is set to panic");
            self.panics_at_the_end = true;
        } else {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> DecodedResult {
        assert!(!self.panics_at_the_end, "the decoder is set to panic");
        for line in self.recorded.drain(..) {
            out.notice(NoticeLevel::Info, NoticeSource::Runtime, line);
        }
        DecodedResult {
            ended_with_error: self.ended,
            // So that a script without text is a success.
            final_message: Some("ended".to_owned()),
            ..DecodedResult::default()
        }
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.record.clone().filter(|_| self.has_session)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.recorded.push(line.to_owned());
        let value: Value = serde_json::from_str(line).ok()?;
        Some(Usage::default().output_tokens(value["figure"].as_u64()?))
    }

    fn activity(&self) -> Activity {
        if self.more {
            Activity::Background
        } else {
            Activity::None
        }
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        stderr.contains("log in").then_some(ErrorKind::Auth)
    }
}
