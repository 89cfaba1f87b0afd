//! Decoder of the output of `magpie ask`.

mod end;
mod errors;

use serde::Deserialize;
use serde_json::json;
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit};
use teamster_core::{
    ErrorKind, ExecuteParams, SessionStarted, Text, ToolKind, ToolResult, ToolUse,
};

use end::End;

/// Decodes the output of one run.
#[derive(Debug, Default)]
pub struct MagpieDecoder {
    model: Option<String>,
    end: End,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    Session {
        id: String,
    },
    Say {
        text: String,
    },
    Run {
        id: String,
        command: String,
    },
    Ran {
        id: String,
        output: String,
        code: i32,
    },
    End {
        error: Option<String>,
        input: u64,
        output: u64,
    },
}

impl MagpieDecoder {
    /// Creates a decoder for a run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        Self {
            model: params.model.clone(),
            end: End::default(),
        }
    }
}

impl Decoder for MagpieDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        let Ok(line) = serde_json::from_slice(line) else {
            return out.unknown(line);
        };
        match line {
            Line::Session { id } => {
                let mut session = SessionStarted::new(id);
                session.model.clone_from(&self.model);
                out.push(session);
            }
            Line::Say { text } => out.push(Text::new(text)),
            Line::Run { id, command } => {
                let input = json!({ "command": command });
                out.push(ToolUse::new("shell", id, ToolKind::Execute, input));
            }
            Line::Ran { id, output, code } => {
                out.push(ToolResult::new(id, output).is_error(code != 0));
            }
            Line::End {
                error,
                input,
                output,
            } => self.end.line(error, input, output, out),
        }
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        self.end.summary()
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of(stderr)
    }
}
