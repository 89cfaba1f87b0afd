//! A custom provider for a CLI that `teamster` does not know.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use serde_json::Value;
use teamster::{
    AgentError, AgentEvent, Capabilities, CliInfo, CliProvider, ExecuteParams, Providers,
    RuntimeConfig, Text,
};
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, Launch};

/// Provider of a CLI that takes a prompt and prints lines such as `{"say": "hello"}` and `{"end": "well"}`.
struct MyAgent;

static INFO: CliInfo = {
    let mut info = CliInfo::new("my-agent", "My Agent", "sh");
    info.install = "cargo install my-agent";
    info.login = "log in with `my-agent login`";
    info
};

/// Capabilities of the CLI: only a prompt. Other parameters are refused by name.
static CAPABILITIES: Capabilities = Capabilities::none();

impl CliProvider for MyAgent {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        params.check(&INFO, &CAPABILITIES)?;
        let script = r#"printf '{"say": "you said: %s"}\n{"end": "well"}\n' "$1""#;
        let prompt = params.prompt.as_str().into();
        Ok(Launch {
            args: vec!["-c".into(), script.into(), "my-agent".into(), prompt],
            ..Launch::default()
        })
    }

    fn decoder(&self, _params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(MyDecoder::default())
    }
}

/// Decoder of the CLI's lines. A decoder never fails: other lines are `unknown` or `malformed`.
#[derive(Default)]
struct MyDecoder {
    ended_with_error: Option<bool>,
}

impl Decoder for MyDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let Ok(json) = serde_json::from_slice::<Value>(line) else {
            return out.malformed(line);
        };
        if let Some(text) = json["say"].as_str() {
            out.push(AgentEvent::Text(Text::new(text)));
        } else if let Some(how) = json["end"].as_str() {
            self.ended_with_error = Some(how != "well");
        } else {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _exit: &Exit, _out: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.ended_with_error,
            ..DecodedResult::default()
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let providers = Providers::builtin().with(Arc::new(MyAgent));
    let runtime = providers.runtime("my-agent", RuntimeConfig::default())?;

    let result = runtime.execute(ExecuteParams::new("hello")).await;
    println!("{:?}", result.answer());
    assert_eq!(result.answer(), Some("you said: hello"));
    assert!(result.is_success());

    let refused = runtime
        .execute(ExecuteParams::new("hello").model("large"))
        .await;
    assert_eq!(
        refused.error().and_then(AgentError::parameter),
        Some("model")
    );
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
