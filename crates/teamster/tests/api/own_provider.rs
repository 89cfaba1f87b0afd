//! Custom provider of an application, whose CLI prints lines of JSON.

use serde_json::Value;
use teamster::{AgentError, AgentEvent, Capabilities, CliInfo, CliProvider, ExecuteParams, Text};
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, Launch};

pub(crate) struct MyProvider;

static INFO: CliInfo = {
    let mut info = CliInfo::new("my-agent", "My Agent", "my-agent");
    info.install = "cargo install my-agent";
    info.login = "log in with `my-agent login`";
    info
};

static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for MyProvider {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        params.check(&INFO, &CAPABILITIES)?;
        Ok(Launch {
            args: vec![params.prompt.as_str().into()],
            ..Launch::default()
        })
    }

    fn decoder(&self, _params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(MyDecoder { ended: None })
    }
}

struct MyDecoder {
    ended: Option<bool>,
}

impl Decoder for MyDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        match serde_json::from_slice::<Value>(line) {
            Ok(json) if json["say"].is_string() => {
                let text = json["say"].as_str().unwrap_or_default();
                out.push(AgentEvent::Text(Text::new(text)));
            }
            Ok(json) if json["end"].is_string() => self.ended = Some(json["end"] != "well"),
            Ok(_) => out.unknown(line),
            Err(_) => out.malformed(line),
        }
    }

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.ended,
            ..DecodedResult::default()
        }
    }
}
