//! The protocol.

use serde_json::{Value, json};

use super::{Asked, Failure, Frame, Reply, What, Wire};
use crate::ErrorKind;

pub(crate) struct Gemini;

impl Wire for Gemini {
    fn asked(&self, _path: &str, _body: &Value) -> Asked {
        Asked {
            model: String::new(),
            stream: true,
            tools: Vec::new(),
            what: What::Answer { turn: 0 },
        }
    }

    fn stream(&self, _reply: &Reply) -> Vec<Frame> {
        Vec::new()
    }

    fn whole(&self, _reply: &Reply) -> Value {
        json!({})
    }

    fn error(&self, _kind: ErrorKind, _message: Option<&str>) -> Failure {
        Failure {
            status: 500,
            body: json!({}),
        }
    }
}
